/* tools/run_program.h -- `tec run` of a program: its inputs from files, its results as JSON.
 *
 *     tool_program_run r = {.cx = cx, .module = m, .inputs = &inputs};
 *     if (!tool_program_open(&r, &o) || !tool_program_once(&r)) return fail(&r.err);
 *     tool_program_print(&r, NULL);
 *     tool_program_close(&r);
 *
 * It runs here, or in a session of a device far away (tool_program_open_there); the other functions are the
 * same.
 *
 * Errors: in the context, or of a run in `err`.
 */
#ifndef TOOLS_RUN_PROGRAM_H
#define TOOLS_RUN_PROGRAM_H

#include "runtime/module.h"
#include "tec/rpc.h"
#include "tools/args.h"
#include "tools/value.h"

typedef struct {
    tec_context *cx;
    tec_module *module; /* its description alone, where the program runs far away */
    const tool_list *inputs;
    tec_error err;
    const rt_routine_desc *routine; /* NULL: not open */
    tool_value_home home;
    tool_value **in, **out;
    tec_program *p;           /* here */
    tec_rpc_session *session; /* there */
    int64_t number;           /* of the instance there */
} tool_program_run;

/* Opens the first function of the program and reads its inputs. */
bool tool_program_open(tool_program_run *run, const tec_program_options *options);
/* The same of a module that was sent to a session. */
bool tool_program_open_there(tool_program_run *run, tec_rpc_session *session, int64_t module,
                             const tec_rpc_program_options *options);
bool tool_program_once(tool_program_run *run);
/* To standard output, or as DIR/result.json (result0.json, ... of several). */
bool tool_program_print(tool_program_run *run, const char *dir);
/* Latency on the clock of the session's device. */
bool tool_program_time_there(tool_program_run *run, const tec_time_options *options, tec_timing *timing);
void tool_program_close(tool_program_run *run);

/* run_program_there.c, for run_program.c */
bool tool_program_execute_there(tool_program_run *run);
/* run_program.c, for run_program_there.c: values for all inputs, once the home is known. */
bool tool_program_read_inputs(tool_program_run *run);

#endif
