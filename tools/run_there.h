/* tools/run_there.h -- inside the room: `tec run` on a device far away. */
#ifndef TOOLS_RUN_THERE_H
#define TOOLS_RUN_THERE_H

#include "tools/dims.h"
#include "tools/remote.h"

typedef struct {
    tool_remote_options where;
    const char *device, *graph, *function, *out, *format;
    const tool_list *inputs;
    tool_dims *dims;
    tec_time_options time;
    tec_rpc_program_options limits; /* of a program */
    int64_t seed;
    int threads;
    bool json, profile; /* profile: the time of each step, too */
} tool_run_there_options;

/* Runs and measures a program, a model or a function of the module there; an exit status. */
int tool_run_there(tec_context *cx, const char *path, const tool_run_there_options *options);

#endif
