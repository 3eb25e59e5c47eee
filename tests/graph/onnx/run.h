/* tests/graph/onnx/run.h -- models of the kit (kit.h), compiled for this machine and run on one thread.
 *
 *     compiled c = compile_program(imported());        // for the VM; compile_model: for the static executor
 *     ... tec_program_run(c.program, ...) ...
 *     has_elements(y, (const float[]){1, 2}, 2, 1e-6);
 *     discard(&c);
 */
#ifndef TESTS_GRAPH_ONNX_RUN_H
#define TESTS_GRAPH_ONNX_RUN_H

#include <math.h>

#include "graph/build.h"
#include "tec/program.h"
#include "tec/runtime.h"
#include "tests/graph/onnx/kit.h"

typedef struct {
    tec_module *module;
    tec_program *program;   /* of compile_program */
    tec_executor *executor; /* of compile_model */
} compiled;

static const DLDataType f32 = {kDLFloat, 32, 1}, i64 = {kDLInt, 64, 1}, boolean = {kDLBool, 8, 1};

static inline compiled load_model(graph_module *m)
{
    graph_built *b = graph_build(m, &(graph_build_options){.target = target_native(cx), .jobs = 1});

    cr_assert(b, "%s", tec_context_error(cx));
    compiled c = {.module = graph_load(b)};
    cr_assert(c.module, "%s", tec_context_error(cx));
    return c;
}

static inline compiled compile_model(graph_module *m)
{
    tec_error err = {0};
    compiled c = load_model(m);

    c.executor = tec_executor_new(c.module, NULL, &(tec_run_options){.threads = 1}, &err);
    cr_assert(c.executor, "%s", err.text);
    return c;
}

/* For the VM, which gives the extents of results with them, whether the model has control flow or not. */
static inline compiled compile_program(graph_module *m)
{
    tec_error err = {0};

    m->for_vm = true;
    compiled c = load_model(m);
    c.program = tec_program_new(c.module, NULL, &(tec_program_options){.run = {.threads = 1}}, &err);
    cr_assert(c.program, "%s", err.text);
    return c;
}

static inline void discard(compiled *c)
{
    tec_program_free(c->program);
    tec_executor_free(c->executor);
    tec_module_free(c->module);
}

static inline DLTensor tensor_of(DLDataType t, const void *data, int rank, const int64_t *shape)
{
    return (DLTensor){.data = (void *)(uintptr_t)data,
                      .device = {kDLCPU, 0},
                      .ndim = rank,
                      .dtype = t,
                      .shape = (int64_t *)(uintptr_t)shape};
}

static inline double element(const DLTensor *t, int64_t i)
{
    const char *p = (const char *)t->data + t->byte_offset + i * base_dtype_bytes(t->dtype);

    if (t->dtype.code == kDLFloat)
        return t->dtype.bits == 64 ? *(const double *)(const void *)p
                                   : (double)*(const float *)(const void *)p;
    return t->dtype.bits == 64   ? (double)*(const int64_t *)(const void *)p
           : t->dtype.bits == 32 ? *(const int32_t *)(const void *)p
                                 : *(const int8_t *)p;
}

/* The tensor has these elements, whatever its shape; `tolerance` is relative to 1 + the expected number. */
static inline void has_elements(const DLTensor *y, const double *expected, int64_t count, double tolerance)
{
    cr_assert_eq(tec_tensor_elements(y), count, "%lld elements, expected %lld",
                 (long long)tec_tensor_elements(y), (long long)count);
    for (int64_t i = 0; i < count; i++)
        cr_assert(fabs(element(y, i) - expected[i]) <= tolerance * (1 + fabs(expected[i])),
                  "element %lld is %g, expected %g", (long long)i, element(y, i), expected[i]);
}

#endif
