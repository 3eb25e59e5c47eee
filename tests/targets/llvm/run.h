/* tests/targets/llvm/run.h -- what the tests of code generation share: small programs, compiling them,
 * calling them.
 *
 *     kernel k = compile(cx, program, "native");
 *     cr_assert(eq(int, call(&k, (void *[]){a, b}, NULL), 0));
 *     close_kernel(&k);
 */
#ifndef TESTS_TARGETS_LLVM_RUN_H
#define TESTS_TARGETS_LLVM_RUN_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "lower/pass.h"
#include "targets/llvm/llvm.h"

typedef struct {
    llvm_jit *jit;
    tec_kernel_fn *run;
    const target_code *code;
} kernel;

/* ---- programs ---- */

/* Parameters, the last one written; buffers of one dimension. */
static inline const ir_program *program_of(tec_context *cx, const char *name, const ir_buffer *const *buffers,
                                           int n, const ir_stmt *body)
{
    ir_program *p = base_new(cx, ir_program);
    ir_param *params = base_array(cx, ir_param, n);
    for (int i = 0; i < n; i++)
        params[i] = (ir_param){.buffer = buffers[i], .output = i == n - 1};
    p->name = name;
    p->n_params = n;
    p->params = params;
    p->body = body;
    cr_assert(body != NULL, "%s", tec_context_error(cx));
    return p;
}

static inline const ir_buffer *array(tec_context *cx, const char *name, base_dtype t, int64_t n)
{
    const ir_expr *extent = ir_int(cx, n);
    return ir_buffer_new(cx, name, t, &extent, 1);
}

static inline const ir_buffer *local_array(tec_context *cx, const char *name, base_dtype t, int64_t n)
{
    ir_buffer *b = ir_buffer_copy(cx, array(cx, name, t, n));
    b->scope = IR_LOCAL;
    return b;
}

static inline const ir_expr *load_at(tec_context *cx, const ir_buffer *b, const ir_expr *index)
{
    return ir_load(cx, b, &index, 1);
}

static inline const ir_stmt *store_at(tec_context *cx, const ir_buffer *b, const ir_expr *index,
                                      const ir_expr *value)
{
    return ir_store(cx, b, value, &index, 1);
}

static inline const ir_expr *lanes_from(tec_context *cx, const ir_expr *base, int lanes)
{
    return lanes == 1 ? base : ir_ramp(cx, base, ir_int(cx, 1), lanes);
}

/* for i in 0..n/lanes { out[i*lanes ...] = value(in, i*lanes ...) } */
typedef const ir_expr *value_fn(tec_context *cx, const void *what, const ir_expr *const *in);
static inline const ir_program *map_program(tec_context *cx, const char *name, const base_dtype *in, int n_in,
                                            base_dtype out, int64_t n, int lanes, value_fn *value,
                                            const void *what)
{
    const ir_buffer *buffers[5];
    const ir_expr *loaded[4] = {NULL, NULL, NULL, NULL}, *i = ir_var(cx, "i", BASE_I64);
    const ir_expr *at = lanes_from(cx, ir_mul(cx, i, ir_int(cx, lanes)), lanes);
    for (int k = 0; k < n_in; k++) {
        buffers[k] = array(cx, base_format(cx, "in%d", k), in[k], n);
        loaded[k] = load_at(cx, buffers[k], at);
    }
    buffers[n_in] = array(cx, "out", out, n);
    const ir_stmt *body = store_at(cx, buffers[n_in], at, value(cx, what, loaded));
    return program_of(cx, name, buffers, n_in + 1,
                      ir_for(cx, i, ir_int(cx, 0), ir_int(cx, n / lanes), IR_SERIAL, body));
}

/* ---- running ---- */

static inline int32_t run_slices(const tec_env *env, tec_parallel_fn *body, void *closure, int64_t n)
{
    int32_t status = 0;
    for (int64_t i = 0; i < n && !status; i += 3) /* uneven slices, workers in turn */
        status = body(env, closure, i, i + 3 < n ? i + 3 : n, (int32_t)(i / 3 % env->n_workers));
    return status;
}

static inline void keep_message(const tec_env *env, const char *text)
{
    *(const char **)env->user = text;
}

static inline kernel compile_as(tec_context *cx, const ir_program *p, const char *target_words, bool strict)
{
    kernel k = {0};
    const target *t = target_parse(cx, target_words);
    lower_options lowering = {.cx = cx, .target = t, .strict = strict};
    target_codegen_options options = {.texts = (const char *const[]){"llvm", "asm", NULL},
                                      .keep_denormals = strict};
    const ir_program *q = t ? lower_math(&lowering, p) : NULL;
    k.code = q ? llvm_generate(cx, &q, 1, t, &options) : NULL;
    cr_assert(k.code != NULL, "%s: %s", p->name, tec_context_error(cx));
    k.jit = llvm_jit_open(cx, &k.code, 1);
    cr_assert(k.jit != NULL, "%s: %s", p->name, tec_context_error(cx));
    k.run = (tec_kernel_fn *)llvm_jit_find(k.jit, k.code->symbols[0]);
    cr_assert(k.run != NULL);
    return k;
}

static inline kernel compile(tec_context *cx, const ir_program *p, const char *target_words)
{
    return compile_as(cx, p, target_words, false);
}

static inline int call_env(const kernel *k, void *const *args, const int64_t *dims, const char **message)
{
    static _Alignas(64) char workspace[1 << 16];
    const char *ignored = NULL;
    tec_env env = {.abi = TEC_KERNEL_ABI,
                   .n_workers = 2,
                   .parallel = run_slices,
                   .workspace = workspace,
                   .thread_workspace = workspace + (1 << 15),
                   .thread_stride = 1 << 14,
                   .fail = keep_message,
                   .user = message ? message : &ignored};
    return k->run(&env, args, dims);
}

static inline int call(const kernel *k, void *const *args, const int64_t *dims)
{
    return call_env(k, args, dims, NULL);
}

static inline void close_kernel(kernel *k)
{
    llvm_jit_close(k->jit);
}

/* The targets that this machine can run, of those that differ most. */
static const char *const test_targets[] = {"native", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2",
                                           "llvm -mcpu=x86-64"};
static inline bool runs_here(tec_context *cx, const char *target_words)
{
    const target *t = target_parse(cx, target_words);
    return t && t->native;
}

#endif
