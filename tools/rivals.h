/* tools/rivals.h -- the option --rival: functions of shared libraries in the place of kernels, where they are
 * faster (tec_rivals_add).
 *
 *     {"rival", TOOL_LIST, &s.rivals, TOOL_RIVAL_VALUE, TOOL_RIVAL_HELP},
 *     ...
 *     tool_rivals r = {.rivals = NULL};
 *     if (tool_open_rivals(cx, &s.rivals, module, &options, &r))
 *         options.rivals = r.rivals;
 *     tool_close_rivals(&r);                // after all that was made with the options
 *
 * Lifetime: libraries stay loaded until the rivals are closed. Errors: in the context. Threads: one.
 */
#ifndef TOOLS_RIVALS_H
#define TOOLS_RIVALS_H

#include "base/base.h"
#include "tec/runtime.h"
#include "tools/command.h"

#define TOOL_RIVAL_VALUE "KERNEL=FILE.so:FUNCTION[@N,...]"
#define TOOL_RIVAL_HELP                                                                                      \
    "runs this function of a shared library (tec/kernel.h) in the place of the kernel where it is faster: "  \
    "both are measured at the extents N of the kernel's symbol (1, 2, 4, ..., 256); may be repeated"

typedef struct {
    tec_rivals *rivals; /* NULL: none were asked for */
    base_vec libraries; /* what dlclose takes */
} tool_rivals;

/* Loads and measures each of the list, and says on standard error how often it was faster. */
bool tool_open_rivals(tec_context *cx, const tool_list *given, tec_module *module,
                      const tec_run_options *options, tool_rivals *out);
void tool_close_rivals(tool_rivals *rivals);

#endif
