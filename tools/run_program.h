/* tools/run_program.h -- `tec run` of a program: its inputs from files, its results as JSON.
 *
 *     tool_program_run r = {.cx = cx, .module = m, .inputs = &inputs};
 *     if (!tool_program_open(&r, NULL, &o) || !tool_program_once(&r)) return fail(&r.err);
 *     tool_program_print(&r, NULL);
 *     tool_program_close(&r);
 *
 * Errors: in the context, or of a run in `err`.
 */
#ifndef TOOLS_RUN_PROGRAM_H
#define TOOLS_RUN_PROGRAM_H

#include "tec/program.h"
#include "tools/args.h"

typedef struct {
    tec_context *cx;
    tec_module *module;
    const tool_list *inputs;
    tec_error err;
    tec_program *p;
    tec_object **in, **out;
} tool_program_run;

/* function NULL: the first. */
bool tool_program_open(tool_program_run *run, const char *function, const tec_program_options *options);
bool tool_program_once(tool_program_run *run);
/* To standard output, or as DIR/result.json (result0.json, ... of several). */
bool tool_program_print(tool_program_run *run, const char *dir);
void tool_program_close(tool_program_run *run);

#endif
