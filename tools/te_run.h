/* tools/te_run.h -- runs the kernel that `tec te` built: times it, or compares it with the definition.
 *
 * Inputs come from files, else they are random numbers. Both print their result, and give the exit status. A
 * function of a device runs on the device that `on` names, else on the first of its kind.
 */
#ifndef TOOLS_TE_RUN_H
#define TOOLS_TE_RUN_H

#include "compiler/compiler.h"
#include "te/te.h"
#include "tools/args.h"
#include "tools/call.h"

typedef struct {
    tec_context *cx;
    te_def *def;
    tec_module *module;
    const rt_function_desc *function;
    const char *on; /* "opencl:1"; NULL: any */
    int threads;
    bool json, strict;
    bool rough;              /* the code may round more than the definition (--precision) */
    const tool_list *inputs; /* NAME=FILE */
} te_run;

int tool_te_time(te_run *run);
/* Against the definition in the interpreter of ir/, or by plain loops on this CPU where the interpreter would
 * take too long. Symbols without a value run at several sizes that the definition's facts allow. */
int tool_te_check(te_run *run);

/* The value of a symbol. */
typedef struct {
    const char *symbol;
    int64_t value;
} te_size;

/* What the kernel is called with. Feeds of one seed have equal inputs. False, with an error: some symbol has
 * no value, or a file does not fit. */
bool tool_te_feed(te_run *run, const te_size *sizes, int n_sizes, int64_t seed, tool_feed *out);

#endif
