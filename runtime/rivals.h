/* runtime/rivals.h -- inside the room: functions of the user's that run in the place of kernels
 * (tec_rivals_add in tec/runtime.h): which one takes a call.
 *
 *     tec_kernel_fn *rival = rt_rival_for(options->rivals, function, dims);    // NULL: the kernel runs
 *
 * Lifetime: the user's; the rivals outlive what was made with them. Errors: none. Threads: rivals that are in
 * use do not change.
 */
#ifndef RUNTIME_RIVALS_H
#define RUNTIME_RIVALS_H

#include "runtime/env.h"
#include "runtime/format.h"

tec_kernel_fn *rt_rival_for(const tec_rivals *rivals, const rt_function_desc *function, const int64_t *dims);

/* What runs a call of function `called` of the module: a rival of that function, or the code of the one that
 * its ranges choose (runtime/ranges.h). */
tec_kernel_fn *rt_code_for(const rt_env *env, const tec_module *module, int32_t called, int32_t chosen,
                           const int64_t *dims);

#endif
