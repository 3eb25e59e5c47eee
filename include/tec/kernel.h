/* tec/kernel.h -- the ABI between generated code and the program that runs it.
 *
 *     int32_t kernel(const tec_env *env, void *const *args, const int64_t *dims);
 *
 * args[i] points at the first element of buffer argument i, or at the value of scalar argument i. dims[j] is
 * the value of the j-th symbol. The result is a tec_status; 0 is success. Generated code calls nothing but
 * what tec_env offers, memcpy, memset and memmove.
 * Lifetime: env, args and dims are borrowed for the call.
 * Errors: a failed assertion calls env->fail with the text and returns TEC_INVALID.
 * Threads: a kernel may run on several threads at once with different environments.
 */
#ifndef TEC_KERNEL_H
#define TEC_KERNEL_H

#include "tec/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TEC_KERNEL_ABI 1

typedef struct tec_env tec_env;

typedef int32_t tec_kernel_fn(const tec_env *env, void *const *args, const int64_t *dims);

/* Runs the iterations begin .. end-1 of a parallel loop, on the worker of number 0 .. env->n_workers-1. */
typedef int32_t tec_parallel_fn(const tec_env *env, void *closure, int64_t begin, int64_t end,
                                int32_t worker);

/* The order of the fields is part of the ABI: generated code reads them by offset. */
struct tec_env {
    int32_t abi;       /* TEC_KERNEL_ABI */
    int32_t n_workers; /* how many values `worker` may take */
    /* Runs body over 0..n-1, cut into slices; returns the first status that is not 0. Never called from
     * inside itself. */
    int32_t (*parallel)(const tec_env *env, tec_parallel_fn *body, void *closure, int64_t count);
    char *workspace;        /* 64-byte aligned; as many bytes as the kernel's metadata asks for (per call) */
    char *thread_workspace; /* of worker 0; worker w has its own at + w * thread_stride (64-byte aligned) */
    int64_t thread_stride;
    void (*fail)(const tec_env *env, const char *text);             /* text is static in the module */
    void *(*extern_function)(const tec_env *env, const char *name); /* NULL where unknown */
    void *user;                                                     /* for the owner of the environment */
    /* How often the kernel was called before. In odd turns some parallel loops run backwards; the results are
     * the same for any number. */
    int64_t turn;
};

#ifdef __cplusplus
}
#endif
#endif
