/* runtime/shape.h -- shapes as dimension code: evaluated, compared with tensors, printed.
 *
 * Threads: plain data.
 */
#ifndef RUNTIME_SHAPE_H
#define RUNTIME_SHAPE_H

#include "runtime/format.h"

/* Extents of a shape under the symbols' values; an error that begins with `what` where one is negative or
 * cannot be computed. */
bool rt_shape_eval(const rt_dim *shape, int32_t rank, const int64_t *symbols, int64_t *extents,
                   const char *what, tec_error *err);

/* A size in bytes or the like: the value of an expression, 0 where it is absent. */
bool rt_size_eval(rt_dim dim, const int64_t *symbols, int64_t *size, const char *what, tec_error *err);

/* "f32[n, 1024]", cut to size; gives buffer. */
const char *rt_shape_text(base_dtype dtype, const rt_dim *shape, int32_t rank, const char *const *names,
                          char *buffer, size_t size);

/* " where count = 8, m = 3" for the symbols that the code uses; "" where it uses none. */
const char *rt_where_text(const rt_dim *dims, int32_t count, const char *const *names, const int64_t *symbols,
                          int32_t n_symbols, char *buffer, size_t size);

/* Whether the conditions hold; the error quotes the one that does not. */
bool rt_facts_hold(const rt_fact_desc *facts, int32_t count, const char *const *names, const int64_t *symbols,
                   int32_t n_symbols, const char *who, tec_error *err);

#endif
