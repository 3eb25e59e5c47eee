/* runtime/tensor.h -- inside the room: questions about DLTensors that several files ask.
 *
 * Threads: plain data.
 */
#ifndef RUNTIME_TENSOR_H
#define RUNTIME_TENSOR_H

#include "runtime/error.h"
#include "tec/runtime.h"

static inline char *rt_tensor_data(const DLTensor *tensor)
{
    return (char *)tensor->data + tensor->byte_offset;
}

/* Bytes of a compact tensor of this shape; -1 where an extent is negative or they do not fit. */
int64_t rt_shape_bytes(base_dtype dtype, int ndim, const int64_t *shape);

/* A tensor in main memory with a sane rank, shape and size, and with data unless it is empty. `what` begins
 * the message: "x". */
bool rt_tensor_check(const DLTensor *tensor, const char *what, tec_error *err);

/* The same of a tensor on any device. */
bool rt_tensor_sane(const DLTensor *tensor, const char *what, tec_error *err);

/* The first byte, and the byte past the last, that its elements occupy; equal where it is empty. */
void rt_tensor_range(const DLTensor *tensor, uintptr_t *begin, uintptr_t *end);

#endif
