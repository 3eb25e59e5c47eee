/* tests/runtime/kernels/kernels.h -- hand-written kernels that stand in for generated code.
 *
 * Tests include it for kernels in their own process; kernels.c makes a shared object of it.
 */
#ifndef TESTS_RUNTIME_KERNELS_H
#define TESTS_RUNTIME_KERNELS_H

#include "tec/kernel.h"

#ifndef KERNEL
#define KERNEL static inline
#endif

typedef struct {
    void *const *args;
    const int64_t *dims;
} kernel_closure;

/* relu(x: f32[n, m]) -> y: f32[n, m]; dims n, m; parallel over n */
static inline int32_t relu_rows(const tec_env *env, void *closure, int64_t begin, int64_t end, int32_t worker)
{
    const kernel_closure *c = closure;
    const float *x = c->args[0];
    float *y = c->args[1];

    (void)env;
    (void)worker;
    for (int64_t i = begin * c->dims[1]; i < end * c->dims[1]; i++)
        y[i] = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;
    return 0;
}

KERNEL int32_t kernel_relu(const tec_env *env, void *const *args, const int64_t *dims)
{
    kernel_closure c = {args, dims};

    return env->parallel(env, relu_rows, &c, dims[0]);
}

/* matmul(a: f32[n, k], b: f32[k, m]) -> c: f32[n, m]; dims n, k, m. Each worker sums a row in its own
 * workspace of m floats; the call's workspace of 8 bytes must be there too. */
static inline int32_t matmul_rows(const tec_env *env, void *closure, int64_t begin, int64_t end,
                                  int32_t worker)
{
    const kernel_closure *c = closure;
    int64_t k = c->dims[1], m = c->dims[2];
    const float *a = c->args[0], *b = c->args[1];
    float *out = c->args[2], *row = (float *)(void *)(env->thread_workspace + worker * env->thread_stride);

    for (int64_t i = begin; i < end; i++) {
        for (int64_t j = 0; j < m; j++)
            row[j] = 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < m; j++)
                row[j] += a[i * k + p] * b[p * m + j];
        for (int64_t j = 0; j < m; j++)
            out[i * m + j] = row[j];
    }
    return 0;
}

KERNEL int32_t kernel_matmul(const tec_env *env, void *const *args, const int64_t *dims)
{
    kernel_closure c = {args, dims};

    *(int64_t *)(void *)env->workspace = dims[0];
    return env->parallel(env, matmul_rows, &c, dims[0]);
}

/* scale(x: f32[n], factor: f32) -> y: f32[n]; dims n; x and y may be one */
KERNEL int32_t kernel_scale(const tec_env *env, void *const *args, const int64_t *dims)
{
    const float *x = args[0], *factor = args[1];
    float *y = args[2];

    (void)env;
    for (int64_t i = 0; i < dims[0]; i++)
        y[i] = x[i] * *factor;
    return 0;
}

/* refuse(x: f32[n]): fails when x[0] is negative; with words when n is even */
KERNEL int32_t kernel_refuse(const tec_env *env, void *const *args, const int64_t *dims)
{
    const float *x = args[0];

    if (x[0] >= 0)
        return 0;
    if (dims[0] % 2 == 0)
        env->fail(env, "x[0] is negative");
    return TEC_INVALID;
}

#endif
