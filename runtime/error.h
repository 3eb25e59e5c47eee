/* runtime/error.h -- filling a caller's tec_error.
 *
 *     if (n != f->n_params)
 *         return rt_fail(err, TEC_INVALID, "%s: expected %d arguments, found %d", f->name, f->n_params, n);
 *
 * The first failure wins: a tec_error that already holds one stays as it is. err may be NULL.
 */
#ifndef RUNTIME_ERROR_H
#define RUNTIME_ERROR_H

#include <stdbool.h>

#include "base/base.h"

/* Always false. */
bool rt_fail(tec_error *err, tec_status status, const char *fmt, ...) BASE_PRINTF(3, 4);

/* The system's reason for a failed call on a file: "PATH: cannot WHAT: No such file or directory". Always
 * false. */
bool rt_fail_io(tec_error *err, const char *path, const char *what, int system_error);

bool rt_fail_memory(tec_error *err, size_t bytes);

/* A line of text in a buffer of fixed size; what does not fit is dropped, and the end is always
 * terminated. */
typedef struct {
    char *data;
    size_t size, n;
} rt_line;
void rt_put(rt_line *line, const char *fmt, ...) BASE_PRINTF(2, 3);

#endif
