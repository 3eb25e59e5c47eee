/* worker/tensors.h -- tensors full of numbers: made at random, and compared.
 *
 *     run_fill_random(&x, seed);
 *     if (!run_compare(&got, &want, text, sizeof text)) puts(text);
 */
#ifndef WORKER_TENSORS_H
#define WORKER_TENSORS_H

#include "base/base.h"
#include "tec/runtime.h"

/* Compact ones: floats in -1..1, ints in 0..7, bools. */
void run_fill_random(DLTensor *t, uint64_t seed);

/* |a - b| <= 1e-3*|b| + max(1e-7, 1e-6*max|b|) for floats (2^-7*|b| for bfloat16, whose neighbours lie that far apart),
 * equality for the rest; NaN equals NaN. False: what differs first, as text. */
bool run_compare(const DLTensor *got, const DLTensor *want, char *text, size_t size);

#endif
