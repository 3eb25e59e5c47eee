/* tests/runtime/listing.h -- a program by hand that uses most instructions: a list, tail calls, a closure, a
 * kernel, rows.
 *
 *     program p;
 *     set_up(&p);
 *     p.code[3] = RT_GOTO;                       // what a test damages
 *     rt_module_from_memory(&p.m, &(rt_memory_code){.resolve = resolve}, 0, &err);
 */
#ifndef TESTS_RUNTIME_LISTING_H
#define TESTS_RUNTIME_LISTING_H

#include <string.h>

#include "runtime/bytecode.h"
#include "runtime/module.h"

/* y[i] = x[i] + 1 over f32[n]. */
static int32_t add_one(const tec_env *env, void *const *args, const int64_t *dims)
{
    (void)env;
    for (int64_t i = 0; i < dims[0]; i++)
        ((float *)args[1])[i] = ((const float *)args[0])[i] + 1;
    return 0;
}

static inline tec_kernel_fn *resolve(void *user, const char *symbol)
{
    (void)user;
    return strcmp(symbol, "add_one") == 0 ? add_one : NULL;
}

enum { NUMBER, STORAGE, VECTOR, LIST, PAIR, FUNCTION, FLAG, ELEMENT, COUNT, N_TYPES };

static const int64_t any[] = {-1};
static const int32_t pair_parts[] = {VECTOR, LIST}, function_parts[] = {VECTOR, VECTOR};
static const rt_type_desc types[N_TYPES] = {
    [NUMBER] = {.kind = RT_TYPE_NUMBER},
    [STORAGE] = {.kind = RT_TYPE_STORAGE},
    [VECTOR] = {.kind = RT_TYPE_TENSOR, .dtype = {kDLFloat, 32, 1}, .rank = 1, .extents = any},
    [LIST] = {.kind = RT_TYPE_DATA},
    [PAIR] = {.kind = RT_TYPE_TUPLE, .parts = pair_parts, .n_parts = 2},
    [FUNCTION] = {.kind = RT_TYPE_FUNCTION, .parts = function_parts, .n_parts = 2, .n_params = 1},
    [FLAG] = {.kind = RT_TYPE_TENSOR, .dtype = {kDLBool, 8, 1}},
    [ELEMENT] = {.kind = RT_TYPE_TENSOR, .dtype = {kDLFloat, 32, 1}},
    [COUNT] = {.kind = RT_TYPE_TENSOR, .dtype = {kDLInt, 64, 1}},
};
static const rt_constructor_desc cases[] = {{"Nil", NULL, 0}, {"Cons", pair_parts, 2}};
static const rt_data_desc list_type[] = {{"List", cases, 2}};

/* main(l: List, x: vector) -> vector: x + 1 for each cell of the list, by tail calls. */
static const int32_t main_registers[] = {LIST,   VECTOR, NUMBER,  VECTOR, LIST, NUMBER,
                                         NUMBER, NUMBER, STORAGE, VECTOR, PAIR, FUNCTION};
static const int32_t main_code[] = {
    RT_GET_TAG,
    2,
    0, /* 0 */
    RT_SWITCH,
    2,
    2,
    8,
    11, /* 3 */
    RT_RET,
    1,
    1, /* 8 */
    RT_GET_FIELD,
    3,
    0,
    1,
    0, /* 11 */
    RT_GET_FIELD,
    4,
    0,
    1,
    1, /* 16 */
    RT_EXTENT,
    5,
    1,
    0, /* 21 */
    RT_DIM,
    6,
    0,
    1,
    5, /* 25 */
    RT_LOAD_CONSTI,
    7,
    0, /* 30 */
    RT_ALLOC_STORAGE,
    8,
    6,
    0, /* 33 */
    RT_ALLOC_TENSOR_REG,
    9,
    8,
    7,
    1,
    5, /* 37 */
    RT_FREE_STORAGE,
    8, /* 43 */
    RT_INVOKE_PACKED,
    0,
    1,
    5,
    2,
    1,
    9, /* 45 */
    RT_ALLOC_ADT,
    10,
    0,
    2,
    9,
    4, /* 52 */
    RT_GET_FIELD,
    1,
    10,
    0,
    0, /* 58 */
    RT_ALLOC_CLOSURE,
    11,
    1,
    0, /* 63 */
    RT_INVOKE_CLOSURE,
    11,
    1,
    1,
    1,
    1, /* 67 */
    RT_IF,
    5,
    77,
    85, /* 73 */
    RT_CHECK,
    6,
    0, /* 77 */
    RT_TAIL,
    0,
    2,
    4,
    1, /* 80 */
    RT_FATAL,
    1, /* 85 */
};
/* same(x: vector) -> vector: x taken apart, its elements put together again in a loop. */
static const int32_t same_registers[] = {VECTOR, NUMBER, NUMBER, ELEMENT, STORAGE, VECTOR, COUNT};
static const int32_t same_code[] = {
    RT_EXTENT,
    1,
    0,
    0, /* 0 */
    RT_LOAD_CONSTI,
    2,
    0, /* 4 */
    RT_ALLOC_STORAGE,
    4,
    2,
    0, /* 7 */
    RT_ALLOC_TENSOR_REG,
    5,
    4,
    2,
    1,
    2, /* 11 */
    RT_FREE_STORAGE,
    4, /* 17 */
    RT_IF,
    1,
    23,
    43, /* 19 */
    RT_ROW,
    3,
    0,
    2, /* 23 */
    RT_APPEND,
    5,
    5,
    3, /* 27 */
    RT_DIM,
    2,
    1,
    1,
    2, /* 31 */
    RT_DIM,
    1,
    2,
    1,
    1, /* 36 */
    RT_GOTO,
    19, /* 41 */
    RT_TO_TENSOR,
    6,
    2, /* 43 */
    RT_SCALAR,
    1,
    6, /* 46 */
    RT_RET,
    1,
    5, /* 49 */
};
static const int32_t vector_result[] = {VECTOR};
static const char *const main_params[] = {"l", "x"}, *const same_params[] = {"x"};
static const rt_line_desc lines[] = {{0, 3}, {45, 5}};
static const int64_t times_four[] = {RT_DIM_SYMBOL, 0, RT_DIM_CONST, 4, RT_DIM_MUL};
static const int64_t plus_one[] = {RT_DIM_SYMBOL, 0, RT_DIM_CONST, 1, RT_DIM_ADD};
static const int64_t minus_one[] = {RT_DIM_SYMBOL, 0, RT_DIM_CONST, -1, RT_DIM_ADD};
static const rt_dim dims[] = {{times_four, 5}, {plus_one, 5}, {minus_one, 5}};
static const int32_t dim_symbols[] = {1, 1, 1};
static const char *const texts[] = {"the size is not 0", "no way"};
static const int64_t symbol_n[] = {RT_DIM_SYMBOL, 0};
static const rt_dim n_shape[] = {{symbol_n, 2}};
static const rt_param_desc kernel_params[] = {
    {.name = "x", .dtype = {kDLFloat, 32, 1}, .rank = 1, .shape = n_shape},
    {.name = "y", .dtype = {kDLFloat, 32, 1}, .is_output = true, .rank = 1, .shape = n_shape}};
static const char *const kernel_symbols[] = {"n"};
static const rt_function_desc kernels[] = {{.name = "add_one",
                                            .symbol = "add_one",
                                            .params = kernel_params,
                                            .n_params = 2,
                                            .symbols = kernel_symbols,
                                            .n_symbols = 1}};

/* A copy that a test may change. */
typedef struct {
    int32_t code[256], same[64];
    rt_routine_desc functions[2];
    rt_module_desc m;
} program;

static inline void set_up(program *p)
{
    memset(p, 0, sizeof *p);
    memcpy(p->code, main_code, sizeof main_code);
    memcpy(p->same, same_code, sizeof same_code);
    p->functions[0] = (rt_routine_desc){.name = "main",
                                        .file = "p.tecp",
                                        .registers = main_registers,
                                        .n_registers = 12,
                                        .n_params = 2,
                                        .params = main_params,
                                        .n_names = 2,
                                        .results = vector_result,
                                        .n_results = 1,
                                        .words = p->code,
                                        .n_words = BASE_COUNT(main_code),
                                        .lines = lines,
                                        .n_lines = 2};
    p->functions[1] = (rt_routine_desc){.name = "same",
                                        .registers = same_registers,
                                        .n_registers = BASE_COUNT(same_registers),
                                        .n_params = 1,
                                        .params = same_params,
                                        .n_names = 1,
                                        .results = vector_result,
                                        .n_results = 1,
                                        .words = p->same,
                                        .n_words = BASE_COUNT(same_code)};
    p->m = (rt_module_desc){.target = "test", .functions = kernels, .n_functions = 1};
    p->m.program = (rt_program_desc){.types = types,
                                     .n_types = N_TYPES,
                                     .data = list_type,
                                     .n_data = 1,
                                     .dims = dims,
                                     .n_dims = 3,
                                     .dim_symbols = dim_symbols,
                                     .n_dim_symbols = 3,
                                     .texts = texts,
                                     .n_texts = 2,
                                     .functions = p->functions,
                                     .n_functions = 2};
}

#endif
