/* runtime/env.h -- inside the room: what a kernel is given: a tec_env over a pool, with workspace that
 * grows on demand.
 *
 *     rt_env e;
 *     if (!rt_env_open(&e, options, false, err))
 *         return false;
 *     if (rt_env_reserve(&e, bytes, bytes_per_thread, err))
 *         status = rt_env_call(&e, code, args, dims);
 *     rt_env_close(&e);
 *
 * Lifetime: the struct must not move while it is open.
 * Errors: into the caller's tec_error.
 * Threads: one at a time.
 */
#ifndef RUNTIME_ENV_H
#define RUNTIME_ENV_H

#include <stdatomic.h>

#include "runtime/error.h"
#include "tec/kernel.h"
#include "tec/runtime.h"

typedef struct {
    tec_env env;
    tec_pool *pool; /* NULL: one thread */
    bool keep_denormals;
    int64_t workspace_size, thread_size;
    _Atomic(const char *) failure; /* what the kernel said last about its failure; NULL: nothing */
    void *(*extern_function)(void *user, const char *name);
    void *extern_user;
    const tec_rivals *rivals; /* NULL: none */
} rt_env;

bool rt_env_open(rt_env *env, const tec_run_options *options, bool keep_denormals, tec_error *err);
void rt_env_close(rt_env *env);

/* Makes the workspace at least so large; what was in it is lost. */
bool rt_env_reserve(rt_env *env, int64_t workspace, int64_t thread_workspace, tec_error *err);

/* Kernels flush denormals to zero, unless their module is strict; callers set the mode around the calls. */
unsigned rt_env_enter(const rt_env *env);
void rt_env_leave(const rt_env *env, unsigned mode);

/* A status; env->failure has the kernel's words. `turn` counts the calls of this kernel. */
int32_t rt_env_call(rt_env *env, tec_kernel_fn *code, int64_t turn, void *const *args, const int64_t *dims);
/* Records a failed call: "matmul: what the kernel said". Always false. */
bool rt_env_fail(const rt_env *env, int32_t status, const char *who, tec_error *err);

#endif
