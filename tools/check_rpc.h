/* tools/check_rpc.h -- inside the room: a case of `tec check` on a server of devices.
 *
 *     const check_server *server = check_server_open(cx, "board:9190", NULL);      // the key file
 *     check_result r = check_case(cx, dir, t, server, false);
 */
#ifndef TOOLS_CHECK_RPC_H
#define TOOLS_CHECK_RPC_H

#include "graph/build.h"
#include "tec/rpc.h"

typedef struct {
    const char *address, *key_file;
} check_server;

/* Compiled code runs there once: inputs go there, n outputs come back as arrays, which the caller frees.
 * False with the reason in err. */
bool check_rpc_run(const check_server *server, const graph_built *built, DLTensor *const *inputs,
                   int n_inputs, tec_array **outputs, int n_outputs, tec_error *err);

#endif
