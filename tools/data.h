/* tools/data.h -- tensors for programs: files, random numbers, comparison; and what commands share.
 *
 *     DLTensor *x = tool_read(cx, "image.npy", &err);           // .npy, or ONNX .pb
 *     tool_fill_random(x, seed);
 *     if (!tool_compare(got, want, &difference)) puts(difference.text);
 */
#ifndef TOOLS_DATA_H
#define TOOLS_DATA_H

#include "base/base.h"
#include "targets/target.h"
#include "tec/runtime.h"

/* In the context; NULL with an error in it. */
DLTensor *tool_read(tec_context *cx, const char *path);
bool tool_write(tec_context *cx, const char *path, const DLTensor *t); /* .npy, or .pb by the name */
DLTensor *tool_new_tensor(tec_context *cx, DLDataType t, int ndim, const int64_t *shape); /* zeroed, 64-byte aligned */
void tool_fill_random(DLTensor *t, uint64_t seed); /* floats in -1..1, ints in 0..7, bools */

/* |a - b| <= 1e-3*|b| + max(1e-7, 1e-6*max|b|) for floats (2^-7*|b| for bfloat16, whose neighbours lie that far apart),
 * equality for the rest; NaN equals NaN. False: what differs first, as text. */
bool tool_compare(const DLTensor *got, const DLTensor *want, char *text, size_t size);

/* Prints the context's error, prefixed by the command; TOOL_FAILED. */
int tool_fail(const char *command, const tec_context *cx);
int tool_fail_run(const char *command, const tec_error *err);

/* A target with its number of threads; NULL with an error in the context. */
const target *tool_target(tec_context *cx, const char *text, int64_t threads);

/* While files are written, an interrupt waits: what was begun is finished or removed, never left in part. */
void tool_hold_interrupts(bool hold);

/* "1.234 ms" and its like, into buffer. */
const char *tool_seconds(double s, char *buffer, size_t size);

#endif
