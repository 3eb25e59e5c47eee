/* tools/fuzz_rpc.h -- inside the room: code of `tec fuzz` on a server of devices.
 *
 *     tool_fuzz_server s = {.address = "board:9190", .key_file = "keys"};
 *     fuzz_elsewhere there = tool_fuzz_there(&s);
 *     fuzz_check_on(cx, &c, t, &there, &result);
 *     tool_fuzz_leave(&s);
 */
#ifndef TOOLS_FUZZ_RPC_H
#define TOOLS_FUZZ_RPC_H

#include "fuzz/fuzz.h"
#include "tec/rpc.h"

typedef struct {
    const char *address, *key_file; /* address NULL: no server */
    const char *device;             /* of the server, "opencl:0"; NULL: its CPU */
    bool compile_only;              /* no server, and code is not called on this machine either */
    tec_rpc *connection;            /* made when first needed, and anew after a crash */
    tec_rpc_session *session;
    int64_t module;
} tool_fuzz_server;

fuzz_elsewhere tool_fuzz_there(tool_fuzz_server *server);
void tool_fuzz_leave(tool_fuzz_server *server);

#endif
