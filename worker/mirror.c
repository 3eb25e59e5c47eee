/* worker/mirror.c -- see mirror.h. */
#include "worker/mirror.h"

/* An array like the argument; inputs with its elements. */
static bool make_array(worker_mirror *mirror, const worker_arguments *arguments, int i, tec_error *err)
{
    const DLTensor *from = arguments->args[i];

    mirror->arrays[i] = tec_array_new_on(mirror->device, from->dtype, from->ndim, from->shape, err);
    if (!mirror->arrays[i])
        return false;
    mirror->args[i] = (DLTensor *)tec_array_tensor(mirror->arrays[i]);
    return arguments->is_output[i] || tec_tensor_copy(mirror->args[i], from, err);
}

/* Of a function of the host the mirror is the arguments themselves. On failure nothing is left open. */
bool worker_mirror_open(worker_mirror *mirror, const rt_function_desc *function,
                        const worker_arguments *arguments, tec_error *err)
{
    *mirror = (worker_mirror){.args = arguments->args, .n = arguments->n};
    if (!function->device)
        return true;
    mirror->arrays = rt_alloc_array(arguments->n, sizeof *mirror->arrays, err);
    mirror->args = mirror->arrays ? rt_alloc_array(arguments->n, sizeof(DLTensor *), err) : NULL;
    mirror->device = mirror->args ? tec_device_open(function->device, err) : NULL;
    bool ok = mirror->device != NULL;
    for (int i = 0; ok && i < arguments->n; i++) {
        mirror->args[i] = arguments->args[i];
        ok = function->params[i].kind == RT_PARAM_SCALAR || make_array(mirror, arguments, i, err);
    }
    if (!ok)
        worker_mirror_close(mirror);
    return ok;
}

bool worker_mirror_put(worker_mirror *mirror, const worker_arguments *arguments, tec_error *err)
{
    for (int i = 0; mirror->device && i < mirror->n; i++)
        if (arguments->is_output[i] && !tec_tensor_copy(mirror->args[i], arguments->args[i], err))
            return false;
    return true;
}

bool worker_mirror_get(worker_mirror *mirror, const worker_arguments *arguments, tec_error *err)
{
    for (int i = 0; mirror->device && i < mirror->n; i++)
        if (arguments->is_output[i] && !tec_tensor_copy(arguments->args[i], mirror->args[i], err))
            return false;
    return true;
}

void worker_mirror_close(worker_mirror *mirror)
{
    for (int i = 0; mirror->arrays && i < mirror->n; i++)
        tec_array_free(mirror->arrays[i]);
    if (mirror->arrays)
        rt_free(mirror->args);
    rt_free(mirror->arrays);
    tec_device_free(mirror->device);
    *mirror = (worker_mirror){0};
}
