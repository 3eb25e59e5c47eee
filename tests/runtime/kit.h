/* tests/runtime/kit.h -- descriptions of the kernels of kernels.h, a small graph over them, tensors on the
 * stack.
 *
 *     graph 'net':  x: f32[n, 8] -> matmul with w: f32[8, 4] -> (pool) -> relu -> y: f32[n, 4];
 *         copy -> flat: f32[n*4]
 */
#ifndef TESTS_RUNTIME_KIT_H
#define TESTS_RUNTIME_KIT_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/format.h"
#include "runtime/module.h"
#include "tests/runtime/kernels/kernels.h"

#define WORDS(...)                                                                                           \
    {(const int64_t[]){__VA_ARGS__}, (int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))}
#define CONST(v) WORDS(RT_DIM_CONST, (v))
#define SYMBOL(k) WORDS(RT_DIM_SYMBOL, (k))
#define F32 {kDLFloat, 32, 1}

static const rt_param_desc relu_params[] = {
    {.name = "x", .dtype = F32, .rank = 2, .shape = (const rt_dim[]){SYMBOL(0), SYMBOL(1)}},
    {.name = "y",
     .dtype = F32,
     .rank = 2,
     .shape = (const rt_dim[]){SYMBOL(0), SYMBOL(1)},
     .is_output = true},
};

static const rt_param_desc matmul_params[] = {
    {.name = "a", .dtype = F32, .rank = 2, .shape = (const rt_dim[]){SYMBOL(0), SYMBOL(1)}},
    {.name = "b", .dtype = F32, .rank = 2, .shape = (const rt_dim[]){SYMBOL(1), SYMBOL(2)}, .alignment = 16},
    {.name = "c",
     .dtype = F32,
     .rank = 2,
     .shape = (const rt_dim[]){SYMBOL(0), SYMBOL(2)},
     .is_output = true},
};

static const rt_param_desc scale_params[] = {
    {.name = "x", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){SYMBOL(0)}},
    {.name = "factor", .kind = RT_PARAM_SCALAR, .dtype = F32},
    {.name = "y", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){SYMBOL(0)}, .is_output = true},
};

static const rt_function_desc kit_functions[] = {
    {.name = "relu",
     .symbol = "kernel_relu",
     .params = relu_params,
     .n_params = 2,
     .symbols = (const char *const[]){"n", "m"},
     .n_symbols = 2,
     .bytes = WORDS(RT_DIM_SYMBOL, 0, RT_DIM_SYMBOL, 1, RT_DIM_MUL, RT_DIM_CONST, 8, RT_DIM_MUL)},
    {.name = "matmul",
     .symbol = "kernel_matmul",
     .params = matmul_params,
     .n_params = 3,
     .symbols = (const char *const[]){"n", "k", "m"},
     .n_symbols = 3,
     .facts = (const rt_fact_desc[]){{WORDS(RT_DIM_SYMBOL, 2, RT_DIM_CONST, 4, RT_DIM_FLOORMOD, RT_DIM_CONST,
                                            0, RT_DIM_EQ),
                                      "m % 4 == 0"}},
     .n_facts = 1,
     .workspace = CONST(8),
     .thread_workspace = WORDS(RT_DIM_SYMBOL, 2, RT_DIM_CONST, 4, RT_DIM_MUL),
     .flops = WORDS(RT_DIM_SYMBOL, 0, RT_DIM_SYMBOL, 1, RT_DIM_MUL, RT_DIM_SYMBOL, 2, RT_DIM_MUL,
                    RT_DIM_CONST, 2, RT_DIM_MUL),
     .origin = "default"},
    {.name = "scale",
     .symbol = "kernel_scale",
     .params = scale_params,
     .n_params = 3,
     .symbols = (const char *const[]){"n"},
     .n_symbols = 1,
     .aliases = (const rt_alias_desc[]){{0, 2}},
     .n_aliases = 1},
    {.name = "refuse",
     .symbol = "kernel_refuse",
     .params = scale_params,
     .n_params = 1,
     .symbols = (const char *const[]){"n"},
     .n_symbols = 1},
};

static const float kit_weights[8 * 4] = {1,  -1, 2, 0, 0, 1, 0, -2, 3, 0, 0, 1, 0, 0, 1, 0,
                                         -1, 2,  0, 0, 0, 0, 1, 1,  1, 0, 0, 0, 0, 1, 0, 1};

static const rt_constant_desc kit_constants[] = {
    {.name = "bias",
     .dtype = F32,
     .rank = 1,
     .shape = (const int64_t[]){3},
     .data = (const float[]){1, 2, 3}},
    {.name = "w", .dtype = F32, .rank = 2, .shape = (const int64_t[]){8, 4}, .data = kit_weights},
};

enum { VALUE_X, VALUE_W, VALUE_PRODUCT, VALUE_Y, VALUE_Y_FLAT, VALUE_FLAT };

/* n*16 rounded up to 64 */
#define POOL_BYTES                                                                                           \
    WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 16, RT_DIM_MUL, RT_DIM_CONST, 63, RT_DIM_ADD, RT_DIM_CONST, 64,    \
          RT_DIM_FLOORDIV, RT_DIM_CONST, 64, RT_DIM_MUL)
#define N_BY_4 WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 4, RT_DIM_MUL)

static const rt_value_desc kit_values[] = {
    [VALUE_X] = {F32, 2, (const rt_dim[]){SYMBOL(0), CONST(8)}, RT_IN_INPUT, 0, {0}, 0},
    [VALUE_W] = {F32, 2, (const rt_dim[]){CONST(8), CONST(4)}, RT_IN_CONSTANT, 1, {0}, 0},
    [VALUE_PRODUCT] = {F32, 2, (const rt_dim[]){SYMBOL(0), CONST(4)}, RT_IN_POOL, 0, CONST(0), 0},
    [VALUE_Y] = {F32, 2, (const rt_dim[]){SYMBOL(0), CONST(4)}, RT_IN_OUTPUT, 0, {0}, 0},
    [VALUE_Y_FLAT] = {F32, 1, (const rt_dim[]){N_BY_4}, RT_IN_OUTPUT, 0, {0}, 0},
    [VALUE_FLAT] = {F32, 1, (const rt_dim[]){N_BY_4}, RT_IN_OUTPUT, 1, {0}, 0},
};

static const rt_step_desc kit_steps[] = {
    {.function = 1,
     .values = (const int32_t[]){VALUE_X, VALUE_W, VALUE_PRODUCT},
     .n_values = 3,
     .dims = (const rt_dim[]){SYMBOL(0), CONST(8), CONST(4)},
     .n_dims = 3,
     .name = "MatMul",
     .nodes = "fc1"},
    {.function = 0,
     .values = (const int32_t[]){VALUE_PRODUCT, VALUE_Y},
     .n_values = 2,
     .dims = (const rt_dim[]){SYMBOL(0), CONST(4)},
     .n_dims = 2,
     .name = "Relu",
     .nodes = "relu1"},
    {.function = RT_STEP_COPY,
     .values = (const int32_t[]){VALUE_Y_FLAT, VALUE_FLAT},
     .n_values = 2,
     .name = "Reshape"},
};

static const rt_graph_desc kit_graphs[] = {
    {.name = "net",
     .symbols = (const rt_symbol_desc[]){{"n", 0, 0}},
     .n_symbols = 1,
     .facts = (const rt_fact_desc[]){{WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 1000, RT_DIM_LE), "n <= 1000"}},
     .n_facts = 1,
     .inputs = (const rt_tensor_desc[]){{"x", F32, 2, (const rt_dim[]){SYMBOL(0), CONST(8)}}},
     .n_inputs = 1,
     .outputs = (const rt_tensor_desc[]){{"y", F32, 2, (const rt_dim[]){SYMBOL(0), CONST(4)}},
                                         {"flat", F32, 1, (const rt_dim[]){N_BY_4}}},
     .n_outputs = 2,
     .values = kit_values,
     .n_values = 6,
     .pool_size = POOL_BYTES,
     .steps = kit_steps,
     .n_steps = 3},
};

static inline rt_module_desc kit_module(void)
{
    return (rt_module_desc){.target = "test",
                            .arch = NULL,
                            .producer = "test",
                            .functions = kit_functions,
                            .n_functions = 4,
                            .constants = kit_constants,
                            .n_constants = 2,
                            .graphs = kit_graphs,
                            .n_graphs = 1};
}

static inline tec_kernel_fn *kit_resolve(void *user, const char *symbol)
{
    (void)user;
    return strcmp(symbol, "kernel_relu") == 0     ? kernel_relu
           : strcmp(symbol, "kernel_matmul") == 0 ? kernel_matmul
           : strcmp(symbol, "kernel_scale") == 0  ? kernel_scale
           : strcmp(symbol, "kernel_refuse") == 0 ? kernel_refuse
                                                  : NULL;
}

static const rt_memory_code kit_code = {.resolve = kit_resolve};

static inline tec_module *kit_open(void)
{
    rt_module_desc m = kit_module();
    tec_error err = {0};
    tec_module *module = rt_module_from_memory(&m, &kit_code, 0, &err);

    cr_assert(module, "%s", err.text);
    return module;
}

/* A compact f32 tensor over the caller's data and shape. */
static inline DLTensor tensor_of(void *data, int ndim, int64_t *shape)
{
    return (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = ndim, .dtype = F32, .shape = shape};
}

static inline float kit_input(int64_t i)
{
    return (float)((i * 7 + 3) % 11 - 5);
}

/* What 'net' computes for row r of kit_input. */
static inline float kit_expected(int64_t r, int64_t j)
{
    float sum = 0;

    for (int64_t p = 0; p < 8; p++)
        sum += kit_input(r * 8 + p) * kit_weights[p * 4 + j];
    return sum > 0 ? sum : 0;
}

static inline void kit_fill(float *x, int64_t rows)
{
    for (int64_t i = 0; i < rows * 8; i++)
        x[i] = kit_input(i);
}

static inline void kit_check(const DLTensor *y, int64_t rows)
{
    const float *data = y->data;

    cr_assert_eq(y->shape[0], rows);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < 4; j++)
            cr_assert_eq(data[r * 4 + j], kit_expected(r, j), "y[%d, %d]", (int)r, (int)j);
}

/* The error's text holds `part`, and there is an error. */
#define ASSERT_SAYS(err, part)                                                                               \
    cr_assert((err).status != TEC_OK && strstr((err).text, (part)), "expected '%s' in '%s'", (part),         \
              (err).text)

#endif
