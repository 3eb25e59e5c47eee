/* tools/check_rpc.c -- see check_rpc.h: one connection and one session for each case, so that what a case
 * does to its session is that case's alone. */
#include "tools/check_rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ir/build.h"
#include "tools/data.h"

enum { MOST_DIMS = 64 };

typedef struct {
    const graph_built *b;
    tec_rpc_session *session;
    int64_t executor;
    tec_error *err;
} remote;

/* The module as a file, which is gone when it has been sent; its number there, or 0. */
static int64_t send_module(const remote *r)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    int64_t number = 0;

    snprintf(path, sizeof path, "%s/tec-check-XXXXXX", folder ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) {
        *r->err = (tec_error){.status = TEC_IO};
        snprintf(r->err->text, sizeof r->err->text, "%.400s: cannot be made", path);
        return 0;
    }
    close(fd);
    if (graph_write(r->b, path, RT_WEIGHTS_INSIDE))
        number = tec_rpc_upload(r->session, path, r->err);
    else
        snprintf(r->err->text, sizeof r->err->text, "%s", tec_context_error(r->b->cx));
    unlink(path);
    return number;
}

/* A tensor of zeros for an input that the data does not have; NULL: its shape is not constant. */
static const DLTensor *zeros(const graph_built *b, const op_type *t)
{
    int64_t shape[MOST_DIMS];

    if (t->n > MOST_DIMS)
        return NULL;
    for (int i = 0; i < t->n; i++)
        if (!ir_is_int(t->dim[i], &shape[i]))
            return NULL;
    return tool_new_tensor(b->cx, t->dtype, t->n, shape);
}

static bool send_input(const remote *r, int i, const DLTensor *t)
{
    int64_t array = t ? tec_rpc_array(r->session, t->dtype, t->ndim, t->shape, r->err) : 0;

    return array && tec_rpc_write(r->session, array, t, r->err) &&
           tec_rpc_feed(r->session, r->executor, i, array, r->err);
}

static bool send_inputs(const remote *r, DLTensor *const *inputs, int n)
{
    const base_vec *all = &((const graph_function *)r->b->module->functions.at[0])->body->inputs;

    for (int i = 0; i < all->n; i++) {
        const DLTensor *t =
            i < n && inputs[i] ? inputs[i] : zeros(r->b, &((const graph_value *)all->at[i])->type);
        if (!send_input(r, i, t))
            return false;
    }
    return true;
}

static bool run_session(remote *r, DLTensor *const *inputs, int n_inputs, tec_array **outputs, int n_outputs)
{
    int64_t module = send_module(r);

    r->executor = module ? tec_rpc_prepare(r->session, module, NULL, 1, r->err) : 0;
    bool good =
        r->executor && send_inputs(r, inputs, n_inputs) && tec_rpc_run(r->session, r->executor, NULL, r->err);
    for (int k = 0; k < n_outputs && good; k++)
        good = (outputs[k] = tec_rpc_fetch(r->session, r->executor, k, r->err)) != NULL;
    return good;
}

bool check_rpc_run(const check_server *server, const graph_built *b, DLTensor *const *inputs, int n_inputs,
                   tec_array **outputs, int n_outputs, tec_error *err)
{
    tec_rpc *c = tec_rpc_connect(server->address, &(tec_rpc_options){.key_file = server->key_file}, err);
    remote r = {.b = b, .session = c ? tec_rpc_open(c, NULL, err) : NULL, .err = err};
    bool good = r.session && run_session(&r, inputs, n_inputs, outputs, n_outputs);

    tec_rpc_close(r.session);
    tec_rpc_disconnect(c);
    return good;
}
