/* tools/fuzz_rpc.c -- see fuzz_rpc.h. A session lasts for many cases; one that a case ended is opened
 * again. */
#include "tools/fuzz_rpc.h"

enum { MOST_ARRAYS = 64 };

void tool_fuzz_leave(tool_fuzz_server *server)
{
    tec_rpc_close(server->session);
    tec_rpc_disconnect(server->connection);
    server->session = NULL;
    server->connection = NULL;
    server->module = 0;
}

/* Opened when the first case needs it and kept for all; after a failure the next case opens another. */
static bool enter(tool_fuzz_server *server, tec_error *err)
{
    if (server->session)
        return true;
    server->connection =
        tec_rpc_connect(server->address, &(tec_rpc_options){.key_file = server->key_file}, err);
    tec_rpc_session_options options = {.device = server->device};
    server->session = server->connection ? tec_rpc_open(server->connection, &options, err) : NULL;
    if (!server->session)
        tool_fuzz_leave(server);
    return server->session != NULL;
}

/* The module of the case before is released first, or a server would collect thousands. */
static bool load(void *user, const void *module, size_t size, tec_error *err)
{
    tool_fuzz_server *server = user;

    if (server->module && !tec_rpc_release(server->session, server->module, err))
        tool_fuzz_leave(server);
    *err = (tec_error){0};
    server->module =
        enter(server, err) ? tec_rpc_upload_bytes(server->session, "case", module, size, err) : 0;
    if (!server->module)
        tool_fuzz_leave(server);
    return server->module != 0;
}

static bool send_arrays(tec_rpc_session *session, DLTensor *const *args, int64_t *arrays, int n,
                        tec_error *err)
{
    for (int i = 0; i < n; i++) {
        arrays[i] = tec_rpc_array(session, args[i]->dtype, args[i]->ndim, args[i]->shape, err);
        if (!arrays[i] || !tec_rpc_write(session, arrays[i], args[i], err))
            return false;
    }
    return true;
}

/* A refused call leaves the session as it was; after a crash there is none any more. */
static bool call(void *user, DLTensor *const *args, int count, int threads, tec_error *err)
{
    tool_fuzz_server *server = user;
    int64_t arrays[MOST_ARRAYS] = {0};
    tec_rpc_call_options o = {.module = server->module, .arrays = arrays, .n = count, .threads = threads};
    bool good = server->session && count <= MOST_ARRAYS &&
                send_arrays(server->session, args, arrays, count, err) &&
                tec_rpc_call(server->session, &o, NULL, err);
    tec_error ignored = {0};

    for (int i = 0; i < count && good; i++)
        good = tec_rpc_read(server->session, arrays[i], args[i], err);
    for (int i = 0; i < count && i < MOST_ARRAYS; i++)
        if (arrays[i])
            tec_rpc_release(server->session, arrays[i], &ignored);
    if (!good && (err->status == TEC_CRASHED || err->status == TEC_TIMEOUT || err->status == TEC_LOST))
        tool_fuzz_leave(server);
    return good;
}

fuzz_elsewhere tool_fuzz_there(tool_fuzz_server *server)
{
    return (fuzz_elsewhere){.load = load, .call = call, .user = server};
}
