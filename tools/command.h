/* tools/command.h -- the commands of `tec`; each takes its own name as argv[0] and gives the exit status. */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include "tools/args.h"

typedef int tool_main(int argc, char **argv);

typedef struct {
    const char *name;
    tool_main *run;
    const char *what; /* NULL: not for people */
} tool_command;

tool_main tool_compile, tool_tune, tool_run, tool_check, tool_te, tool_opt, tool_inspect, tool_records,
    tool_fuzz, tool_devices, tool_keys, tool_build_worker, tool_check_program, tool_compare, tool_fmt;

#endif
