/* tools/check_there.c -- see check_there.h: a session for each case, so that what a case does to its session
 * is that case's alone. A model with control flow runs as a program: its inputs and outputs are values. */
#include "tools/check_there.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ir/build.h"
#include "runtime/error.h"
#include "tools/data.h"

typedef struct {
    const graph_built *b;
    tec_rpc_session *session;
    int64_t executor, program; /* one of them is made */
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

static const base_vec *inputs_of(const remote *self)
{
    return &((const graph_function *)self->b->module->functions.at[0])->body->inputs;
}

/* A tensor of zeros for input i, which the data does not have; NULL with an error: its shape is not constant.
 */
static const DLTensor *zeros(const remote *self, int i)
{
    const graph_value *value = inputs_of(self)->at[i];
    int64_t *shape = base_array(self->b->cx, int64_t, value->type.n);

    for (int d = 0; d < value->type.n; d++)
        if (!ir_is_int(value->type.dim[d], &shape[d])) {
            rt_fail(self->err, TEC_INVALID, "the data has no value for input %d, whose shape is symbolic", i);
            return NULL;
        }
    return tool_new_tensor(self->b->cx, value->type.dtype, value->type.n, shape);
}

/* An array with the elements of the tensor; 0: failed, or there is no tensor. */
static int64_t send_tensor(const remote *self, const DLTensor *tensor)
{
    int64_t array =
        tensor ? tec_rpc_array(self->session, tensor->dtype, tensor->ndim, tensor->shape, self->err) : 0;

    return array && tec_rpc_write(self->session, array, tensor, self->err) ? array : 0;
}

static bool feed_inputs(const remote *self, DLTensor *const *inputs, int count)
{
    const base_vec *all = inputs_of(self);

    for (int i = 0; i < all->n; i++) {
        int64_t array = send_tensor(self, i < count && inputs[i] ? inputs[i] : zeros(self, i));

        if (!array || !tec_rpc_feed(self->session, self->executor, i, array, self->err))
            return false;
    }
    return true;
}

static bool run_graph(remote *self, int64_t module, DLTensor *const *inputs, int n_inputs,
                      tec_array **outputs, int n_outputs)
{
    self->executor = tec_rpc_prepare(self->session, module, NULL, 1, self->err);
    bool good = self->executor && feed_inputs(self, inputs, n_inputs) &&
                tec_rpc_run(self->session, self->executor, NULL, self->err);

    for (int k = 0; k < n_outputs && good; k++)
        good = (outputs[k] = tec_rpc_fetch(self->session, self->executor, k, self->err)) != NULL;
    return good;
}

/* Values for all inputs; an input that the data lacks is an error, as it is here. */
static bool make_values(const remote *self, DLTensor *const *inputs, int count, int64_t *values)
{
    const base_vec *all = inputs_of(self);

    for (int i = 0; i < all->n; i++) {
        int64_t array = i < count ? send_tensor(self, inputs[i]) : 0;

        if (!array && self->err->status == TEC_OK)
            return rt_fail(self->err, TEC_INVALID, "the data has no value for input %d", i);
        values[i] = array ? tec_rpc_tensor(self->session, self->program, array, self->err) : 0;
        if (!values[i])
            return false;
    }
    return true;
}

/* Arrays of the results; NULL for one that is no tensor. */
static bool fetch_values(const remote *self, const int64_t *values, tec_array **outputs, int count)
{
    for (int k = 0; k < count; k++) {
        tec_rpc_value value;

        if (!tec_rpc_look(self->session, values[k], &value, self->err))
            return false;
        outputs[k] = value.is_tensor ? tec_rpc_fetch_tensor(self->session, values[k], self->err) : NULL;
        bool good = outputs[k] || !value.is_tensor;
        tec_rpc_value_free(&value);
        if (!good)
            return false;
    }
    return true;
}

static bool run_program(remote *self, int64_t module, DLTensor *const *inputs, int n_inputs,
                        tec_array **outputs, int n_outputs)
{
    const graph_body *body = ((const graph_function *)self->b->module->functions.at[0])->body;
    int64_t *in = base_array(self->b->cx, int64_t, body->inputs.n + 1),
            *out = base_array(self->b->cx, int64_t, body->outputs.n + 1);

    self->program = tec_rpc_program(self->session, module, NULL, 1, self->err);
    return self->program && make_values(self, inputs, n_inputs, in) &&
           tec_rpc_execute(self->session, self->program, in, body->inputs.n, out, body->outputs.n, NULL,
                           self->err) &&
           fetch_values(self, out, outputs, n_outputs);
}

/* The device is asked for here, when the code is compiled, and given back with the outputs: compiling holds
 * no device. */
bool check_there(const check_where *where, const graph_built *built, DLTensor *const *inputs, int n_inputs,
                 tec_array **outputs, int n_outputs, tec_error *err)
{
    tool_remote device;

    if (!tool_remote_open(&device, "check", &where->options, NULL, err))
        return false;
    if (where->ready)
        where->ready();
    remote r = {.b = built, .session = device.session, .err = err};
    int64_t module = send_module(&r);
    bool good = module && (built->desc.program.n_functions
                               ? run_program(&r, module, inputs, n_inputs, outputs, n_outputs)
                               : run_graph(&r, module, inputs, n_inputs, outputs, n_outputs));
    tool_remote_close(&device);
    return good;
}
