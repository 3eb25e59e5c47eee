/* tools/run_program_there.c -- see run_program.h: a program in a session of a device far away. A tool_value
 * is the number of a value of the session, in the context's memory. */
#include "tools/run_program.h"

#include <string.h>

#include "tools/data.h"

static tool_value *box(const tool_program_run *run, int64_t number)
{
    int64_t *to = number ? base_new(run->cx, int64_t) : NULL;

    if (to)
        *to = number;
    return (tool_value *)to;
}

static int64_t number_of(const tool_value *value)
{
    return *(const int64_t *)value;
}

static tool_value *make_tensor(void *user, const DLTensor *tensor, tec_error *err)
{
    const tool_program_run *run = user;
    int64_t array = tec_rpc_array(run->session, tensor->dtype, tensor->ndim, tensor->shape, err), number = 0;

    if (!array)
        return NULL;
    if (tec_rpc_write(run->session, array, tensor, err))
        number = tec_rpc_tensor(run->session, run->number, array, err);
    tec_rpc_release(run->session, array, NULL);
    return box(run, number);
}

static tool_value *make_compound(void *user, const char *constructor, tool_value *const *part, int n,
                                 tec_error *err)
{
    const tool_program_run *run = user;
    int64_t *number = base_array(run->cx, int64_t, n + 1);

    for (int i = 0; i < n; i++)
        number[i] = number_of(part[i]);
    return box(run, tec_rpc_compound(run->session, run->number, constructor, number, n, err));
}

static void drop(void *user, tool_value *value)
{
    const tool_program_run *run = user;

    tec_rpc_release(run->session, number_of(value), NULL);
}

static const DLTensor *fetch(const tool_program_run *run, int64_t number, tec_error *err)
{
    tec_array *array = tec_rpc_fetch_tensor(run->session, number, err);

    if (!array)
        return NULL;
    const DLTensor *from = tec_array_tensor(array);
    DLTensor *to = tool_new_tensor(run->cx, from->dtype, from->ndim, from->shape);
    memcpy(to->data, tec_array_data(array), tec_tensor_bytes(from));
    tec_array_free(array);
    return to;
}

/* A tensor is fetched into the context, so that it outlives its array. */
static bool look(void *user, const tool_value *value, tool_value_seen *out, tec_error *err)
{
    const tool_program_run *run = user;
    tec_rpc_value seen;

    if (!tec_rpc_look(run->session, number_of(value), &seen, err))
        return false;
    if (seen.is_tensor)
        out->tensor = fetch(run, number_of(value), err);
    out->constructor = *seen.constructor ? base_format(run->cx, "%s", seen.constructor) : NULL;
    out->n = seen.n_parts;
    out->part = base_array(run->cx, tool_value *, out->n);
    for (int i = 0; i < out->n; i++)
        out->part[i] = box(run, seen.parts[i]);
    bool good = !seen.is_tensor || out->tensor;
    tec_rpc_value_free(&seen);
    return good;
}

bool tool_program_open_there(tool_program_run *run, tec_rpc_session *session, int64_t module,
                             const tec_rpc_program_options *options)
{
    run->home = (tool_value_home){run, make_tensor, make_compound, drop, look};
    run->session = session;
    run->number = tec_rpc_program_with(session, module, NULL, options, &run->err);
    return run->number && tool_program_read_inputs(run);
}

static int64_t *inputs_of(const tool_program_run *run)
{
    int64_t *in = base_array(run->cx, int64_t, run->routine->n_params + 1);

    for (int i = 0; i < run->routine->n_params; i++)
        in[i] = number_of(run->in[i]);
    return in;
}

bool tool_program_execute_there(tool_program_run *run)
{
    int n = run->routine->n_results;
    int64_t *out = base_array(run->cx, int64_t, n + 1);

    if (!tec_rpc_execute(run->session, run->number, inputs_of(run), run->routine->n_params, out, n, NULL,
                         &run->err))
        return false;
    for (int i = 0; i < n; i++)
        run->out[i] = box(run, out[i]);
    return true;
}

bool tool_program_time_there(tool_program_run *run, const tec_time_options *options, tec_timing *timing)
{
    const tec_rpc_call_options call = {
        .program = run->number, .arrays = inputs_of(run), .n = run->routine->n_params};

    return tec_rpc_time(run->session, &call, options, timing, &run->err);
}
