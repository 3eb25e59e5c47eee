/* tvmtune/commands.h -- inside the room: the commands of `tvmtune`; each takes its own name as argv[0]. */
#ifndef TVMTUNE_COMMANDS_H
#define TVMTUNE_COMMANDS_H

#include "tools/command.h"

tool_main tvm_serve, tvm_submit, tvm_list, tvm_watch, tvm_fetch, tvm_pause, tvm_resume, tvm_cancel, tvm_rm,
    tvm_doctor, tvm_best, tvm_user;

/* Where the daemon keeps its store, its token and its port, unless --state says otherwise. */
#define TVM_STATE "tvmtune.state"

#endif
