/* tools/call.c -- see call.h. */
#include "tools/call.h"

#include <string.h>

#include "runtime/error.h"

/* The feed's tensor, copied into the device's memory. */
static bool move_argument(tool_call *self, int k, tec_error *err)
{
    const DLTensor *tensor = self->feed->port[k].tensor;

    self->array[k] = tec_array_new_on(self->device, tensor->dtype, tensor->ndim, tensor->shape, err);
    self->arg[k] = (DLTensor *)(uintptr_t)tec_array_tensor(self->array[k]);
    return self->array[k] && tec_tensor_copy(self->arg[k], tensor, err);
}

/* The runtime ignores the device where a function is one of the CPU, so the user is told here. */
static bool check_device(const rt_function_desc *function, const char *on, tec_error *err)
{
    if (!on || function->device || strncmp(on, "cpu", 3) == 0)
        return true;
    return rt_fail(err, TEC_INVALID, "'%s' was compiled for the CPU and cannot run on %s", function->name,
                   on);
}

/* The function first: if it cannot run there, nothing is copied. */
bool tool_call_open(tool_call *call, const tool_feed *feed, tec_module *module,
                    const rt_function_desc *function, const char *on, const tec_run_options *options,
                    tec_error *err)
{
    tec_run_options o = *options;

    call->feed = feed;
    call->arg = base_array(feed->cx, DLTensor *, feed->n);
    call->array = base_array(feed->cx, tec_array *, feed->n);
    if (!check_device(function, on, err))
        return false;
    if (function->device && !(call->device = tec_device_open(on ? on : function->device, err)))
        return false;
    o.device = call->device;
    call->f = tec_function_new(module, function->name, &o, err);
    for (int k = 0; call->f && k < feed->n; k++) {
        call->arg[k] = feed->port[k].tensor;
        if (call->device && function->params[k].kind == RT_PARAM_BUFFER && !move_argument(call, k, err))
            return false;
    }
    return call->f;
}

bool tool_call_once(tool_call *call, tec_error *err)
{
    return tec_function_call(call->f, call->arg, call->feed->n, err);
}

bool tool_call_fetch(tool_call *call, tec_error *err)
{
    for (int k = 0; k < call->feed->n; k++)
        if (call->array[k] && call->feed->port[k].is_output &&
            !tec_tensor_copy(call->feed->port[k].tensor, call->arg[k], err))
            return false;
    return true;
}

void tool_call_close(tool_call *call)
{
    tec_function_free(call->f);
    for (int k = 0; call->array && k < call->feed->n; k++)
        tec_array_free(call->array[k]);
    tec_device_free(call->device);
}
