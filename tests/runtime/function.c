#include "runtime/solve.h"
#include "tests/runtime/kit.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tec/runtime.h"

typedef struct {
    tec_module *module;
    tec_function *f;
    tec_error err;
} fixture;

static fixture open_function(const char *name, const tec_run_options *options)
{
    fixture t = {.module = kit_open()};

    t.f = tec_function_new(t.module, name, options, &t.err);
    cr_assert(t.f, "%s", t.err.text);
    return t;
}

static void close_function(fixture *t)
{
    tec_function_free(t->f);
    tec_module_free(t->module);
}

/* Calls matmul on shapes [n, k], [k2, m], [n2, m2] and gives the error. */
static tec_error call_matmul(const int64_t s[6])
{
    static float data[3][64];
    fixture t = open_function("matmul", NULL);
    int64_t shape[3][2] = {{s[0], s[1]}, {s[2], s[3]}, {s[4], s[5]}};
    DLTensor a[3];
    DLTensor *args[3] = {&a[0], &a[1], &a[2]};

    for (int i = 0; i < 3; i++)
        a[i] = tensor_of(data[i], 2, shape[i]);
    tec_function_call(t.f, args, 3, &t.err);
    close_function(&t);
    return t.err;
}

Test(function, multiplies_matrices_of_any_size)
{
    fixture t = open_function("matmul", NULL);

    for (int64_t n = 1; n < 20; n++) {
        float a[20 * 3], c[20 * 8];
        _Alignas(16) float b[3 * 8];
        int64_t as[] = {n, 3}, bs[] = {3, 8}, cs[] = {n, 8};
        DLTensor ta = tensor_of(a, 2, as), tb = tensor_of(b, 2, bs), tc = tensor_of(c, 2, cs);

        for (int i = 0; i < 20 * 3; i++)
            a[i] = (float)(i % 7);
        for (int i = 0; i < 3 * 8; i++)
            b[i] = (float)(i % 5 - 2);
        cr_assert(tec_function_call(t.f, (DLTensor *[]){&ta, &tb, &tc}, 3, &t.err), "%s", t.err.text);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < 8; j++)
                cr_assert_eq(c[i * 8 + j],
                             a[i * 3] * b[j] + a[i * 3 + 1] * b[8 + j] + a[i * 3 + 2] * b[16 + j]);
    }
    close_function(&t);
}

Test(function, says_which_argument_has_the_wrong_shape)
{
    tec_error err = call_matmul((int64_t[]){2, 3, 4, 4, 2, 4});

    cr_assert_eq(err.status, TEC_INVALID);
    cr_assert_str_eq(err.text,
                     "matmul: argument 'b': expected f32[k, m] where k = 3, m = 4, found f32[4, 4]");
}

Test(function, quotes_the_condition_that_does_not_hold)
{
    tec_error err = call_matmul((int64_t[]){2, 3, 3, 6, 2, 6});

    cr_assert_str_eq(err.text, "matmul: needs m % 4 == 0, which does not hold where m = 6");
}

Test(function, says_which_argument_has_the_wrong_dtype_or_rank)
{
    fixture t = open_function("relu", NULL);
    float data[8] = {0};
    int64_t shape[] = {2, 4};
    DLTensor x = tensor_of(data, 2, shape), y = tensor_of(data, 2, shape);
    tec_error err = {0};

    x.dtype = BASE_F64;
    cr_assert(!tec_function_call(t.f, (DLTensor *[]){&x, &y}, 2, &t.err));
    cr_assert_str_eq(t.err.text, "relu: argument 'x': expected f32[n, m], found f64[2, 4]");
    x.dtype = BASE_F32;
    x.ndim = 1;
    cr_assert(!tec_function_call(t.f, (DLTensor *[]){&x, &y}, 2, &err));
    cr_assert_str_eq(err.text, "relu: argument 'x': expected f32[n, m], found f32[2]");
    close_function(&t);
}

static void assert_refused(fixture *t, DLTensor *x, DLTensor *y, const char *text)
{
    tec_error err = {0};

    cr_assert(!tec_function_call(t->f, (DLTensor *[]){x, y}, 2, &err));
    cr_assert(strncmp(err.text, text, strlen(text)) == 0, "%s", err.text);
}

Test(function, refuses_arguments_that_the_kernel_could_not_use)
{
    fixture t = open_function("relu", NULL);
    float in[16] = {0}, out[16] = {0};
    int64_t shape[] = {2, 4}, negative[] = {2, -4}, strides[] = {8, 1}, unit[] = {1, 4};
    DLTensor good = tensor_of(in, 2, shape), y = tensor_of(out, 2, shape), x = good;

    assert_refused(&t, NULL, &y, "relu: argument 'x': expected a tensor, found NULL");
    x.device.device_type = kDLCUDA;
    assert_refused(&t, &x, &y, "relu: argument 'x': expected a tensor in main memory, found one on cuda:0");
    x = good;
    x.data = NULL;
    assert_refused(&t, &x, &y, "relu: argument 'x': has no data");
    x = good;
    x.shape = negative;
    assert_refused(&t, &x, &y, "relu: argument 'x': its shape or element type is not valid");
    x = good;
    x.strides = strides;
    assert_refused(&t, &x, &y, "relu: argument 'x': expected compact row-major strides, found others");
    x = good;
    x.byte_offset = 2;
    assert_refused(&t, &x, &y, "relu: argument 'x': expected an address that is a multiple of 4, found ");
    x = good;
    x.data = out + 1;
    assert_refused(&t, &x, &y, "relu: arguments 'x' and 'y' overlap in memory, but one of them is written");
    x = good;
    x.shape = unit;
    x.strides = strides;
    y.shape = unit;
    cr_assert(tec_function_call(t.f, (DLTensor *[]){&x, &y}, 2, &t.err), "%s", t.err.text);
    cr_assert(!tec_function_call(t.f, (DLTensor *[]){&x, &y}, 1, &t.err));
    cr_assert_str_eq(t.err.text, "relu: expected 2 arguments, found 1");
    close_function(&t);
}

Test(function, passes_scalars_and_lets_declared_pairs_alias)
{
    fixture t = open_function("scale", NULL);
    float x[4] = {1, 2, 3, 4}, factor = 3;
    int64_t shape[] = {4};
    DLTensor tx = tensor_of(x, 1, shape), tf = tensor_of(&factor, 0, NULL);

    cr_assert(tec_function_call(t.f, (DLTensor *[]){&tx, &tf, &tx}, 3, &t.err), "%s", t.err.text);
    cr_assert_eq(x[3], 12);
    tf.data = x;
    cr_assert(!tec_function_call(t.f, (DLTensor *[]){&tx, &tf, &tx}, 3, &t.err));
    ASSERT_SAYS(t.err, "'factor' and 'y' overlap");
    close_function(&t);
}

Test(function, takes_empty_tensors)
{
    fixture t = open_function("relu", NULL);
    int64_t shape[] = {0, 4};
    DLTensor x = tensor_of(NULL, 2, shape), y = tensor_of(NULL, 2, shape);

    cr_assert(tec_function_call(t.f, (DLTensor *[]){&x, &y}, 2, &t.err), "%s", t.err.text);
    close_function(&t);
}

Test(function, reports_what_a_kernel_says_about_its_failure)
{
    fixture t = open_function("refuse", NULL);
    float x[3] = {-1, 0, 0};
    int64_t shape[] = {2};
    DLTensor tx = tensor_of(x, 1, shape);
    tec_error err = {0};

    cr_assert(!tec_function_call(t.f, (DLTensor *[]){&tx}, 1, &t.err));
    cr_assert_str_eq(t.err.text, "refuse: x[0] is negative");
    shape[0] = 3;
    cr_assert(!tec_function_call(t.f, (DLTensor *[]){&tx}, 1, &err));
    cr_assert_str_eq(err.text, "refuse: invalid input");
    cr_assert_eq(err.status, TEC_INVALID);
    close_function(&t);
}

static int64_t seen[8];
static int n_seen;

static int32_t see_turn(const tec_env *env, void *const *args, const int64_t *dims)
{
    seen[n_seen++] = env->turn;
    return kernel_scale(env, args, dims);
}

static tec_kernel_fn *resolve_seen(void *user, const char *symbol)
{
    return strcmp(symbol, "kernel_scale") == 0 ? see_turn : kit_resolve(user, symbol);
}

Test(function, counts_the_calls_of_its_kernel)
{
    rt_module_desc desc = kit_module();
    tec_error err = {0};
    tec_module *m = rt_module_from_memory(&desc, &(rt_memory_code){.resolve = resolve_seen}, 0, &err);
    tec_function *f = tec_function_new(m, "scale", NULL, &err);
    float x = 1, factor = 2, y;
    int64_t shape[] = {1};
    DLTensor tx = tensor_of(&x, 1, shape), tf = tensor_of(&factor, 0, NULL), ty = tensor_of(&y, 1, shape);

    for (int i = 0; i < 3; i++)
        cr_assert(tec_function_call(f, (DLTensor *[]){&tx, &tf, &ty}, 3, &err), "%s", err.text);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(seen[i], i);
    tec_function_free(f);
    tec_module_free(m);
}

Test(function, flushes_denormals_inside_and_restores_the_mode)
{
    tec_run_options one = {.threads = 1};
    fixture t = open_function("scale", &one);
    float x = 1e-30f, factor = 1e-10f, y = 1;
    int64_t shape[] = {1};
    DLTensor tx = tensor_of(&x, 1, shape), tf = tensor_of(&factor, 0, NULL), ty = tensor_of(&y, 1, shape);

    cr_assert(tec_function_call(t.f, (DLTensor *[]){&tx, &tf, &ty}, 3, &t.err));
    cr_assert_eq(y, 0);
    volatile float still = x;
    cr_assert(still * factor > 0, "the caller's mode is restored");
#if defined(__x86_64__)
    cr_assert_eq(_mm_getcsr() & 0x8040u, 0);
#endif
    close_function(&t);
}

Test(function, a_strict_module_keeps_denormals)
{
    rt_module_desc m = kit_module();
    tec_error err = {0};
    float x = 1e-30f, factor = 1e-10f, y = 1;
    int64_t shape[] = {1};
    DLTensor tx = tensor_of(&x, 1, shape), tf = tensor_of(&factor, 0, NULL), ty = tensor_of(&y, 1, shape);

    m.flags = RT_MODULE_KEEP_DENORMALS;
    tec_module *module = rt_module_from_memory(&m, &kit_code, 0, &err);
    tec_function *f = tec_function_new(module, "scale", NULL, &err);
    cr_assert(tec_function_call(f, (DLTensor *[]){&tx, &tf, &ty}, 3, &err), "%s", err.text);
    cr_assert(y > 0);
    tec_function_free(f);
    tec_module_free(module);
}

Test(function, is_found_by_name)
{
    tec_module *m = kit_open();
    tec_error err = {0}, other = {0};
    char text[40];

    cr_assert_null(tec_function_new(m, "conv", NULL, &err));
    cr_assert_str_eq(err.text, "module in memory: has no function 'conv'");
    cr_assert_null(tec_function_new(m, NULL, NULL, &other));
    cr_assert_str_eq(other.text, "module in memory: has 4 functions; expected the name of one");
    tec_function *f = tec_function_new(m, "matmul", NULL, NULL);
    cr_assert_eq(tec_function_n_params(f), 3);
    cr_assert_str_eq(tec_function_param_text(f, 1, text, sizeof text), "b: f32[k, m]");
    cr_assert_null(tec_function_param_text(f, 3, text, sizeof text));
    tec_function_free(f);
    tec_module_free(m);
}

Test(function, refuses_a_symbol_that_no_shape_tells)
{
    rt_param_desc param = {.name = "x",
                           .dtype = F32,
                           .rank = 1,
                           .shape = (const rt_dim[]){WORDS(RT_DIM_SYMBOL, 0, RT_DIM_SYMBOL, 0, RT_DIM_MUL)}};
    rt_function_desc f = {.name = "f",
                          .symbol = "kernel_refuse",
                          .params = &param,
                          .n_params = 1,
                          .symbols = (const char *const[]){"n"},
                          .n_symbols = 1};
    rt_module_desc m = {.functions = &f, .n_functions = 1};
    tec_error err = {0};
    tec_module *module = rt_module_from_memory(&m, &kit_code, 0, &err);

    cr_assert(module, "%s", err.text);
    cr_assert_null(tec_function_new(module, "f", NULL, &err));
    cr_assert_str_eq(err.text, "f: no dimension of a parameter determines the value of 'n'");
    tec_module_free(module);
}

/* X: f32[n*2 + 3, m + n] */
static const rt_dim linear_shape[] = {
    WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 2, RT_DIM_MUL, RT_DIM_CONST, 3, RT_DIM_ADD),
    WORDS(RT_DIM_SYMBOL, 1, RT_DIM_SYMBOL, 0, RT_DIM_ADD)};

Test(function, turns_linear_dimensions_round)
{
    rt_param_desc param = {.name = "x", .dtype = F32, .rank = 2, .shape = linear_shape};
    rt_function_desc f = {.name = "f",
                          .symbol = "kernel_refuse",
                          .params = &param,
                          .n_params = 1,
                          .symbols = (const char *const[]){"n", "m"},
                          .n_symbols = 2};
    const struct {
        int64_t shape[2], n, m;
    } cases[] = {{{13, 9}, 5, 4},
                 {{3, 0}, 0, 0},
                 {{1, 7}, 0, 7},
                 {{14, 2}, 5, 0},
                 {{INT64_MAX, 1}, (INT64_MAX - 3) / 2, 0}};
    rt_solution s[2];

    cr_assert_eq(rt_solve(&f, s), 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        DLTensor x = {.ndim = 2, .shape = (int64_t *)cases[i].shape}, *args[] = {&x};
        int64_t symbols[2];

        rt_take_symbols(&f, s, 2, args, symbols);
        cr_assert_eq(symbols[0], cases[i].n, "case %zu: n = %lld", i, (long long)symbols[0]);
        cr_assert_eq(symbols[1], cases[i].m, "case %zu: m = %lld", i, (long long)symbols[1]);
    }
}

Test(function, refuses_extents_that_no_symbol_gives)
{
    float data[64];
    rt_param_desc param = {.name = "x", .dtype = F32, .rank = 2, .shape = linear_shape};
    rt_function_desc f = {.name = "f",
                          .symbol = "kernel_refuse",
                          .params = &param,
                          .n_params = 1,
                          .symbols = (const char *const[]){"n", "m"},
                          .n_symbols = 2};
    rt_module_desc m = {.functions = &f, .n_functions = 1};
    tec_error err = {0};
    tec_module *module = rt_module_from_memory(&m, &kit_code, 0, &err);
    tec_function *function = tec_function_new(module, "f", NULL, &err);
    DLTensor x = {.data = data, .ndim = 2, .dtype = F32, .device = {kDLCPU, 0}, .shape = (int64_t[]){6, 4}},
             *args[] = {&x};

    cr_assert(function, "%s", err.text);
    cr_assert_not(tec_function_call(function, args, 1, &err));
    cr_assert_str_eq(err.text,
                     "f: argument 'x': expected f32[n*2 + 3, m + n] where n = 1, m = 3, found f32[6, 4]");
    tec_function_free(function);
    tec_module_free(module);
}

Test(function, checks_strides_that_the_metadata_names)
{
    rt_param_desc param = {.name = "x",
                           .dtype = F32,
                           .rank = 2,
                           .shape = (const rt_dim[]){SYMBOL(0), CONST(2)},
                           .strides = (const rt_dim[]){CONST(4), CONST(1)}};
    rt_function_desc f = {.name = "f",
                          .symbol = "kernel_refuse",
                          .params = &param,
                          .n_params = 1,
                          .symbols = (const char *const[]){"n"},
                          .n_symbols = 1};
    rt_module_desc m = {.functions = &f, .n_functions = 1};
    tec_error err = {0};
    tec_module *module = rt_module_from_memory(&m, &kit_code, 0, &err);
    tec_function *function = tec_function_new(module, NULL, NULL, &err);
    float data[16] = {0};
    int64_t shape[] = {3, 2}, strides[] = {4, 1};
    DLTensor x = tensor_of(data, 2, shape);

    cr_assert(!tec_function_call(function, (DLTensor *[]){&x}, 1, &err));
    cr_assert_str_eq(err.text, "f: argument 'x': expected stride 4 in dimension 0, found 2");
    x.strides = strides;
    cr_assert(tec_function_call(function, (DLTensor *[]){&x}, 1, NULL));
    tec_function_free(function);
    tec_module_free(module);
}

static void *find_extern(void *user, const char *name)
{
    return strcmp(name, "known") == 0 ? user : NULL;
}

static int32_t call_extern(const tec_env *env, void *const *args, const int64_t *dims)
{
    (void)dims;
    *(float *)args[0] = env->extern_function(env, "known") && !env->extern_function(env, "other") ? 1 : -1;
    return 0;
}

static tec_kernel_fn *resolve_extern(void *user, const char *symbol)
{
    (void)user;
    (void)symbol;
    return call_extern;
}

Test(function, gives_kernels_the_extern_functions_of_the_options)
{
    rt_function_desc f = kit_functions[3];
    rt_module_desc m = {.functions = &f, .n_functions = 1};
    rt_memory_code code = {.resolve = resolve_extern};
    tec_module *module = rt_module_from_memory(&m, &code, 0, NULL);
    float x = 0;
    int64_t shape[] = {1};
    DLTensor tx = tensor_of(&x, 1, shape);
    tec_run_options options = {.extern_function = find_extern, .extern_user = &x};
    tec_function *function = tec_function_new(module, NULL, &options, NULL);

    cr_assert(tec_function_call(function, (DLTensor *[]){&tx}, 1, NULL));
    cr_assert_eq(x, 1);
    tec_function_free(function);
    tec_module_free(module);
}

Test(function, refuses_a_negative_number_of_threads)
{
    tec_module *m = kit_open();
    tec_error err = {0};

    cr_assert_null(tec_function_new(m, "relu", &(tec_run_options){.threads = -2}, &err));
    cr_assert_str_eq(err.text,
                     "expected a positive number of threads, or 0 for all threads of the pool; found -2");
    tec_module_free(m);
}

Test(function, refuses_a_workspace_of_negative_size)
{
    rt_function_desc f = kit_functions[3];
    rt_module_desc m = {.functions = &f, .n_functions = 1};
    float x[2] = {0};
    int64_t shape[] = {2};
    DLTensor tx = tensor_of(x, 1, shape);
    tec_error err = {0};

    f.workspace = (rt_dim)WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 5, RT_DIM_SUB);
    tec_module *module = rt_module_from_memory(&m, &kit_code, 0, &err);
    tec_function *function = tec_function_new(module, NULL, NULL, &err);
    cr_assert(!tec_function_call(function, (DLTensor *[]){&tx}, 1, &err));
    cr_assert_str_eq(err.text, "refuse: -3 is negative");
    tec_function_free(function);
    tec_module_free(module);
}

Test(function, tells_its_parameters_as_data)
{
    fixture t = open_function("scale", NULL);
    tec_param_info x, factor, y;
    tec_error err = {0}, none = {0};

    cr_assert(tec_function_param_info(t.f, 0, &x, &t.err) &&
                  tec_function_param_info(t.f, 1, &factor, &t.err) &&
                  tec_function_param_info(t.f, 2, &y, &t.err),
              "%s", t.err.text);
    cr_assert_str_eq(x.name, "x");
    cr_assert_str_eq(x.text, "f32[n]");
    cr_assert(x.dtype.code == kDLFloat && x.dtype.bits == 32 && x.ndim == 1 && x.shape[0] == -1);
    cr_assert(!x.is_output && !x.is_scalar && factor.is_scalar && !factor.is_output && y.is_output &&
              !y.is_scalar);
    cr_assert_eq(factor.ndim, 0);
    cr_assert(!tec_function_param_info(t.f, 3, &x, &err));
    cr_assert_str_eq(err.text, "parameter 3 of 3");
    cr_assert(!tec_function_param_info(NULL, 0, &x, &none));
    cr_assert_str_eq(none.text, "expected a function, found NULL");
    close_function(&t);
}
