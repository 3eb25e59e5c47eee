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
static int64_t send_module(const remote *self)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    int64_t number = 0;

    snprintf(path, sizeof path, "%s/tec-check-XXXXXX", folder ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) {
        *self->err = (tec_error){.status = TEC_IO};
        snprintf(self->err->text, sizeof self->err->text, "%.400s: cannot be made", path);
        return 0;
    }
    close(fd);
    if (graph_write(self->b, path, RT_WEIGHTS_INSIDE))
        number = tec_rpc_upload(self->session, path, self->err);
    else
        snprintf(self->err->text, sizeof self->err->text, "%s", tec_context_error(self->b->cx));
    unlink(path);
    return number;
}

/* A tensor of zeros for an input that the data does not have; NULL: its shape is not constant. */
static const DLTensor *zeros(const graph_built *built, const op_type *type)
{
    int64_t shape[MOST_DIMS];

    if (type->n > MOST_DIMS)
        return NULL;
    for (int i = 0; i < type->n; i++)
        if (!ir_is_int(type->dim[i], &shape[i]))
            return NULL;
    return tool_new_tensor(built->cx, type->dtype, type->n, shape);
}

static bool send_input(const remote *self, int i, const DLTensor *tensor)
{
    int64_t array =
        tensor ? tec_rpc_array(self->session, tensor->dtype, tensor->ndim, tensor->shape, self->err) : 0;

    return array && tec_rpc_write(self->session, array, tensor, self->err) &&
           tec_rpc_feed(self->session, self->executor, i, array, self->err);
}

/* Inputs that the data leaves out are zeros of their type. */
static bool send_inputs(const remote *self, DLTensor *const *inputs, int count)
{
    const base_vec *all = &((const graph_function *)self->b->module->functions.at[0])->body->inputs;

    for (int i = 0; i < all->n; i++) {
        const DLTensor *t =
            i < count && inputs[i] ? inputs[i] : zeros(self->b, &((const graph_value *)all->at[i])->type);
        if (!send_input(self, i, t))
            return false;
    }
    return true;
}

static bool run_session(remote *self, DLTensor *const *inputs, int n_inputs, tec_array **outputs,
                        int n_outputs)
{
    int64_t module = send_module(self);

    self->executor = module ? tec_rpc_prepare(self->session, module, NULL, 1, self->err) : 0;
    bool good = self->executor && send_inputs(self, inputs, n_inputs) &&
                tec_rpc_run(self->session, self->executor, NULL, self->err);
    for (int k = 0; k < n_outputs && good; k++)
        good = (outputs[k] = tec_rpc_fetch(self->session, self->executor, k, self->err)) != NULL;
    return good;
}

/* A session for each case: what one case breaks does not reach the next. */
bool check_rpc_run(const check_server *server, const graph_built *built, DLTensor *const *inputs,
                   int n_inputs, tec_array **outputs, int n_outputs, tec_error *err)
{
    tec_rpc *c = tec_rpc_connect(server->address, &(tec_rpc_options){.key_file = server->key_file}, err);
    remote r = {.b = built, .session = c ? tec_rpc_open(c, NULL, err) : NULL, .err = err};
    bool good = r.session && run_session(&r, inputs, n_inputs, outputs, n_outputs);

    tec_rpc_close(r.session);
    tec_rpc_disconnect(c);
    return good;
}
