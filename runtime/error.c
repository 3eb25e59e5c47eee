/* error.c -- filling a caller's tec_error, and lines of text in fixed buffers. */
#include "runtime/error.h"

#include <stdio.h>
#include <string.h>

/* The first error stays: what follows is mostly a consequence of it. Always false, so that callers can return
 * it. */
bool rt_fail(tec_error *err, tec_status status, const char *fmt, ...)
{
    va_list args;

    if (!err || err->status != TEC_OK)
        return false;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    err->status = status;
    return false;
}

/* This strerror_r is the one of GNU, which returns the text. */
bool rt_fail_io(tec_error *err, const char *path, const char *what, int system_error)
{
    char reason[128];

    return rt_fail(err, TEC_IO, "%s: cannot %s: %s", path, what,
                   strerror_r(system_error, reason, sizeof reason));
}

bool rt_fail_memory(tec_error *err, size_t bytes)
{
    return rt_fail(err, TEC_NO_MEMORY, "out of memory: cannot allocate %zu bytes", bytes);
}

/* Text that does not fit is cut; n then counts beyond the size, so that later calls add nothing. */
void rt_put(rt_line *line, const char *fmt, ...)
{
    va_list args;
    int n;

    if (line->n >= line->size)
        return;
    va_start(args, fmt);
    n = vsnprintf(line->data + line->n, line->size - line->n, fmt, args);
    va_end(args);
    if (n > 0)
        line->n += (size_t)n;
}
