/* tools/ranges.h -- `--dim NAME=FROM..TO` and `--dim NAME=N,N`: symbolic dimensions that stay symbolic, with
 * the extents that matter.
 *
 *     tool_ranges ranges;
 *     if (!tool_read_ranges("tune", &list, "lengths.txt", &dims, &ranges)) return TOOL_USAGE;
 *
 * Lifetime: until the program ends. Errors: on standard error. Threads: plain data.
 */
#ifndef TOOLS_RANGES_H
#define TOOLS_RANGES_H

#include "jobs/find.h"
#include "tools/dims.h"

typedef struct {
    job_range *at;
    int n;
} tool_ranges;

/* Of --dim: what has one extent goes to dims, as tool_read_dims reads it. histogram: a file with lines
 * "EXTENT COUNT", how often each extent comes; NULL: all extents count alike. */
bool tool_read_ranges(const char *command, const tool_list *list, const char *histogram, tool_dims *dims,
                      tool_ranges *out);

#endif
