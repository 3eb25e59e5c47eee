/* worker/mirror.h -- inside the room: the arguments of a job in the memory of a device.
 *
 *     worker_mirror m = {0};
 *     if (worker_mirror_open(&m, function, arguments, &err) && worker_mirror_put(&m, arguments, &err) &&
 *         tec_function_call(f, m.args, m.n, &err) && worker_mirror_get(&m, arguments, &err))
 *         worker_arguments_check(arguments, ...);
 *     worker_mirror_close(&m);
 *
 * Inputs are copied there once, outputs both ways when that is asked for: what the outputs of a job hold is
 * looked at in main memory. Scalars stay there. A function of the host needs no copies: the mirror then is
 * the arguments themselves.
 */
#ifndef WORKER_MIRROR_H
#define WORKER_MIRROR_H

#include "tec/device.h"
#include "worker/arguments.h"

typedef struct {
    DLTensor **args;
    int n;
    tec_device *device; /* NULL: none, args are those of the arguments */
    tec_array **arrays; /* [n]; NULL: a scalar */
} worker_mirror;

bool worker_mirror_open(worker_mirror *mirror, const rt_function_desc *function,
                        const worker_arguments *arguments, tec_error *err);
/* The outputs to the device, and from there. */
bool worker_mirror_put(worker_mirror *mirror, const worker_arguments *arguments, tec_error *err);
bool worker_mirror_get(worker_mirror *mirror, const worker_arguments *arguments, tec_error *err);
void worker_mirror_close(worker_mirror *mirror);

#endif
