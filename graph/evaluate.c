/* graph/evaluate.c -- compiles definitions for this machine, runs them on constants, keeps the results. */
#include "graph/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "compiler/compiler.h"
#include "graph/constant.h"
#include "graph/kernels.h"
#include "runtime/module.h"

static void fill_tensor(tec_context *cx, DLTensor *tensor, const op_type *type, void *data)
{
    int64_t *shape = base_array(cx, int64_t, type->n);

    for (int i = 0; i < type->n; i++)
        ir_is_int(type->dim[i], &shape[i]);
    *tensor = (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = type->n, .dtype = type->dtype, .shape = shape};
}

/* Room for the output, aligned as the fastest code likes it. */
static op_constant *new_constant(tec_context *cx, const ir_buffer *buffer)
{
    op_constant *constant = base_new(cx, op_constant);
    int64_t n = base_dtype_bytes(buffer->dtype), extent;

    constant->type = (op_type){buffer->dtype, buffer->n, buffer->shape};
    for (int i = 0; i < buffer->n; i++) {
        ir_is_int(buffer->shape[i], &extent);
        n *= extent;
    }
    constant->bytes = n;
    constant->data = (void *)(((uintptr_t)base_alloc(cx, (size_t)n + 64) + 63) & ~(uintptr_t)63);
    return constant;
}

static void free_module(void *m)
{
    tec_module_free(m);
}

static void free_function(void *f)
{
    tec_function_free(f);
}

/* The data of an operand: a copy, which `copy` holds, where they are not aligned. */
static void *operand(tec_context *cx, const op_constant *constant, base_held *copy)
{
    if (graph_constant_is_aligned(constant))
        return (void *)constant->data;
    void *data = base_calloc(cx, 1, (size_t)constant->bytes);

    base_hold(cx, copy, free, data);
    memcpy(data, constant->data, (size_t)constant->bytes);
    return data;
}

/* Runs one compiled definition in this process. The result is a new constant in the context. */
static bool run(tec_context *cx, tec_module *module, const char *name, graph_evaluation *evaluation)
{
    tec_error err = {0};
    base_held held;
    int n = evaluation->def->inputs.n;
    base_held *copy = base_array(cx, base_held, n);
    DLTensor *tensor = base_array(cx, DLTensor, n + 1);
    DLTensor **arg = base_array(cx, DLTensor *, n + 1);
    tec_function *function = tec_function_new(module, name, &(tec_run_options){.threads = 1}, &err);

    base_hold(cx, &held, free_function, function);
    for (int i = 0; i < n; i++)
        fill_tensor(cx, &tensor[i], &evaluation->in[i]->type, operand(cx, evaluation->in[i], &copy[i]));
    evaluation->out = new_constant(cx, ((te_tensor *)evaluation->def->outputs.at[0])->buffer);
    fill_tensor(cx, &tensor[n], &evaluation->out->type, (void *)evaluation->out->data);
    for (int i = 0; i <= n; i++)
        arg[i] = &tensor[i];
    bool good = tec_function_call(function, arg, n + 1, &err);
    for (int i = n - 1; i >= 0; i--) {
        base_drop(&copy[i]);
        graph_constant_let_go(evaluation->in[i]);
    }
    base_drop(&held);
    if (!good)
        base_fail(cx, err.status, evaluation->def->loc, "while computing the constant '%s': %s",
                  evaluation->def->name, err.text);
    return good;
}

/* All count definitions are compiled together, so that compiling runs in parallel; then each one is
 * called. */
bool graph_evaluate(const graph_module *module, graph_evaluation *evaluation, int count)
{
    tec_context *cx = module->cx;
    graph_kernels kernels = {.cx = cx, .target = target_native(cx)};
    const char **name = base_array(cx, const char *, count);

    for (int i = 0; i < count; i++) {
        int unit = graph_kernel(&kernels, evaluation[i].def, NULL, evaluation[i].def->name);

        if (unit < 0)
            return false;
        name[i] = graph_kernel_at(&kernels, unit)->unit.name;
    }
    if (count == 0)
        return true;
    comp_code *code = graph_compile_kernels(
        &kernels,
        &(comp_options){.target = kernels.target, .jobs = module->cache ? 1 : 0, .cache = module->cache});
    tec_module *loaded = code ? comp_load(cx, code, NULL) : NULL;
    bool good = loaded != NULL;
    base_held held;

    base_hold(cx, &held, free_module, loaded);
    for (int i = 0; good && i < count; i++)
        good = run(cx, loaded, name[i], &evaluation[i]);
    base_drop(&held);
    return good;
}
