/* tools/te_run.h -- runs the kernel that `tec te` built, on random numbers: times it, or compares it with
 * the definition.
 *
 * Both print their result, and give the exit status. A function of a device runs on the device that `on`
 * names, else on the first of its kind.
 */
#ifndef TOOLS_TE_RUN_H
#define TOOLS_TE_RUN_H

#include "compiler/compiler.h"
#include "te/te.h"

typedef struct {
    tec_context *cx;
    te_def *def;
    tec_module *module;
    const rt_function_desc *function;
    const char *on; /* "opencl:1"; NULL: any */
    int threads;
    bool json, strict;
} te_run;

int tool_te_time(te_run *run);
/* Against the same definition by plain loops on this CPU. */
int tool_te_check(te_run *run);

#endif
