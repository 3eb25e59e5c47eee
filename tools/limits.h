/* tools/limits.h -- `--limit NAME=N`: one grammar for every command that reads or makes what may be large.
 *
 *     {"limit", TOOL_LIST, &limits, TOOL_LIMIT_VALUE, TOOL_LIMIT_WHAT},
 *     ...
 *     if (!tool_set_limits("compile", cx, &limits)) return TOOL_USAGE;
 */
#ifndef TOOLS_LIMITS_H
#define TOOLS_LIMITS_H

#include "tec/base.h"
#include "tools/args.h"

#define TOOL_LIMIT_VALUE "NAME=N"
#define TOOL_LIMIT_WHAT "sets a limit that 'tec help limits' lists; may be repeated"

/* False, reported on standard error: a value of another form or out of range, an unknown name, a name that is
 * given twice. */
bool tool_set_limits(const char *command, tec_context *cx, const tool_list *list);
void tool_print_limits(void);

#endif
