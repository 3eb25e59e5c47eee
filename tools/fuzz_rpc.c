/* tools/fuzz_rpc.c -- see fuzz_rpc.h. A session lasts for many cases; one that a case ended is opened
 * again. */
#include "tools/fuzz_rpc.h"

enum { MOST_ARRAYS = 64 };

void tool_fuzz_leave(tool_fuzz_server *s)
{
    tec_rpc_close(s->session);
    tec_rpc_disconnect(s->connection);
    s->session = NULL;
    s->connection = NULL;
    s->module = 0;
}

static bool enter(tool_fuzz_server *s, tec_error *err)
{
    if (s->session)
        return true;
    s->connection = tec_rpc_connect(s->address, &(tec_rpc_options){.key_file = s->key_file}, err);
    s->session = s->connection ? tec_rpc_open(s->connection, NULL, err) : NULL;
    if (!s->session)
        tool_fuzz_leave(s);
    return s->session != NULL;
}

static bool load(void *user, const void *module, size_t size, tec_error *err)
{
    tool_fuzz_server *s = user;

    if (s->module && !tec_rpc_release(s->session, s->module, err))
        tool_fuzz_leave(s);
    *err = (tec_error){0};
    s->module = enter(s, err) ? tec_rpc_upload_bytes(s->session, "case", module, size, err) : 0;
    if (!s->module)
        tool_fuzz_leave(s);
    return s->module != 0;
}

static bool send_arrays(tec_rpc_session *s, DLTensor *const *args, int64_t *arrays, int n, tec_error *err)
{
    for (int i = 0; i < n; i++) {
        arrays[i] = tec_rpc_array(s, args[i]->dtype, args[i]->ndim, args[i]->shape, err);
        if (!arrays[i] || !tec_rpc_write(s, arrays[i], args[i], err))
            return false;
    }
    return true;
}

/* A refused call leaves the session as it was; after a crash there is none any more. */
static bool call(void *user, DLTensor *const *args, int n, int threads, tec_error *err)
{
    tool_fuzz_server *s = user;
    int64_t arrays[MOST_ARRAYS] = {0};
    tec_rpc_call_options o = {.module = s->module, .arrays = arrays, .n = n, .threads = threads};
    bool good = s->session && n <= MOST_ARRAYS && send_arrays(s->session, args, arrays, n, err) &&
                tec_rpc_call(s->session, &o, NULL, err);
    tec_error ignored = {0};

    for (int i = 0; i < n && good; i++)
        good = tec_rpc_read(s->session, arrays[i], args[i], err);
    for (int i = 0; i < n && i < MOST_ARRAYS; i++)
        if (arrays[i])
            tec_rpc_release(s->session, arrays[i], &ignored);
    if (!good && (err->status == TEC_CRASHED || err->status == TEC_TIMEOUT || err->status == TEC_LOST))
        tool_fuzz_leave(s);
    return good;
}

fuzz_elsewhere tool_fuzz_there(tool_fuzz_server *s)
{
    return (fuzz_elsewhere){.load = load, .call = call, .user = s};
}
