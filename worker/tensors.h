/* worker/tensors.h -- tensors full of numbers: made at random, and compared.
 *
 *     worker_fill_random(&x, seed);
 *     if (!worker_compare(&got, &want, text, sizeof text)) puts(text);
 */
#ifndef WORKER_TENSORS_H
#define WORKER_TENSORS_H

#include "base/base.h"
#include "tec/runtime.h"

/* Compact ones: floats in -1..1, ints in 0..7, bools. */
void worker_fill_random(DLTensor *tensor, uint64_t seed);

/* Element `index` of a tensor of floats, or of integers or booleans, of any width. */
double worker_get_float(const DLTensor *tensor, int64_t index);
int64_t worker_get_int(const DLTensor *tensor, int64_t index);

/* Whether |a - b| <= r*|b| + max(1e-7, 1e-6*max|b|) for all floats, with r = 1e-3 for float32 and narrower
 * ones, and 2^-7 for bfloat16, whose neighbours lie that far apart; for float64 r is 1e-9, and 1e-12 stands
 * in place of 1e-7 and 1e-6. NaN equals NaN, an infinity only itself. Integers and booleans are equal or not.
 * False: `text` says what differs first. */
bool worker_compare(const DLTensor *got, const DLTensor *want, char *text, size_t size);

/* The same for the results of whole models. Where these have 16 bits, each operator has rounded to 16 bits,
 * and two orders of the same arithmetic differ by some roundings of the greatest values: 8 units of
 * rounding of max|b| take the place of 1e-6*max|b|, 2^-8 of it for float16 and 2^-5 for bfloat16. */
bool worker_compare_model(const DLTensor *got, const DLTensor *want, char *text, size_t size);
/* The same for code of a precision that rounds factors to 11 bits (tf32): floats may lie 1/256 of their own
 * and of the greatest value apart. */
bool worker_compare_rough(const DLTensor *got, const DLTensor *want, char *text, size_t size);

#endif
