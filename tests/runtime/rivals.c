/* tests/runtime/rivals.c -- functions of the user's in the place of kernels. What is faster is decided by a
 * kernel and a function that wait.
 */
#include "runtime/alloc.h"
#include "runtime/cpu.h"
#include "tec/program.h"
#include "tests/runtime/kit.h"

/* ---- twice(x: f32[n]) -> y: f32[n], twice as large ---- */

static int kernel_calls, rival_calls;

static void wait_for(int64_t microseconds)
{
    double end = tec_clock() + 1e-6 * (double)microseconds;

    while (tec_clock() < end)
        ;
}

static void compute(void *const *args, const int64_t *dims)
{
    for (int64_t i = 0; i < dims[0]; i++)
        ((float *)args[1])[i] = 2 * ((const float *)args[0])[i];
}

/* The kernel takes a microsecond for each element, the rival always eight. */
static int32_t kernel(const tec_env *env, void *const *args, const int64_t *dims)
{
    (void)env;
    kernel_calls++;
    wait_for(dims[0]);
    compute(args, dims);
    return 0;
}

static int32_t rival(const tec_env *env, void *const *args, const int64_t *dims)
{
    (void)env;
    rival_calls++;
    wait_for(8);
    compute(args, dims);
    return 0;
}

static int32_t wrong(const tec_env *env, void *const *args, const int64_t *dims)
{
    kernel(env, args, dims);
    ((float *)args[1])[dims[0] - 1] += dims[0] > 4;
    return 0;
}

static int32_t failing(const tec_env *env, void *const *args, const int64_t *dims)
{
    (void)args, (void)dims;
    env->fail(env, "no library");
    return TEC_UNSUPPORTED;
}

static tec_kernel_fn *resolve(void *user, const char *symbol)
{
    (void)user, (void)symbol;
    return kernel;
}

static const rt_param_desc params[] = {
    {.name = "x", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){SYMBOL(0)}},
    {.name = "y", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){SYMBOL(0)}, .is_output = true}};
static const rt_function_desc function = {.name = "twice",
                                          .symbol = "twice",
                                          .params = params,
                                          .n_params = 2,
                                          .symbols = (const char *const[]){"n"},
                                          .n_symbols = 1};
static const rt_value_desc values[] = {{F32, 1, (const rt_dim[]){SYMBOL(0)}, RT_IN_INPUT, 0, {0}, 0},
                                       {F32, 1, (const rt_dim[]){SYMBOL(0)}, RT_IN_OUTPUT, 0, {0}, 0}};
static const rt_step_desc step = {.function = 0,
                                  .values = (const int32_t[]){0, 1},
                                  .n_values = 2,
                                  .dims = (const rt_dim[]){SYMBOL(0)},
                                  .n_dims = 1,
                                  .name = "twice"};
static const rt_graph_desc graph = {
    .name = "g",
    .symbols = (const rt_symbol_desc[]){{"n", 0, 0}},
    .n_symbols = 1,
    .inputs = (const rt_tensor_desc[]){{"x", F32, 1, (const rt_dim[]){SYMBOL(0)}}},
    .n_inputs = 1,
    .outputs = (const rt_tensor_desc[]){{"y", F32, 1, (const rt_dim[]){SYMBOL(0)}}},
    .n_outputs = 1,
    .values = values,
    .n_values = 2,
    .steps = &step,
    .n_steps = 1};

/* main(x: f32[n]) -> f32[n]: twice(x) */
enum { NUMBER, STORAGE, VECTOR, N_TYPES };
static const rt_type_desc types[N_TYPES] = {
    [NUMBER] = {.kind = RT_TYPE_NUMBER},
    [STORAGE] = {.kind = RT_TYPE_STORAGE},
    [VECTOR] = {.kind = RT_TYPE_TENSOR, .dtype = F32, .rank = 1, .extents = (const int64_t[]){-1}}};
/* clang-format off */
enum { X, N, BYTES, ZERO, PLACE, Y, N_REGISTERS };
static const int32_t words[] = {
    RT_EXTENT, N, X, 0,
    RT_DIM, BYTES, 0, 1, N,
    RT_LOAD_CONSTI, ZERO, 0,
    RT_ALLOC_STORAGE, PLACE, BYTES, 0,
    RT_ALLOC_TENSOR_REG, Y, PLACE, ZERO, 1, N,
    RT_INVOKE_PACKED, 0, 1, N, 2, X, Y,
    RT_RET, 1, Y};
/* clang-format on */
static const rt_routine_desc routine = {
    .name = "main",
    .registers = (const int32_t[]){VECTOR, NUMBER, NUMBER, NUMBER, STORAGE, VECTOR},
    .n_registers = N_REGISTERS,
    .n_params = 1,
    .params = (const char *const[]){"x"},
    .n_names = 1,
    .results = (const int32_t[]){VECTOR},
    .n_results = 1,
    .words = words,
    .n_words = BASE_COUNT(words)};
static const rt_program_desc program = {
    .types = types,
    .n_types = N_TYPES,
    .dims = (const rt_dim[]){WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 4, RT_DIM_MUL)},
    .n_dims = 1,
    .dim_symbols = (const int32_t[]){1},
    .n_dim_symbols = 1,
    .functions = &routine,
    .n_functions = 1};

static tec_module *open_module(void)
{
    const rt_module_desc m = {.target = "test",
                              .arch = rt_cpu_arch(),
                              .functions = &function,
                              .n_functions = 1,
                              .graphs = &graph,
                              .n_graphs = 1,
                              .program = program};
    const rt_memory_code code = {.resolve = resolve};
    tec_error err = {0};

    tec_module *module = rt_module_from_memory(&m, &code, 0, &err);
    cr_assert(module, "%s", err.text);
    return module;
}

static const int64_t extents[] = {1, 4, 32, 128};

static tec_rivals *measured(tec_module *module, int *faster)
{
    tec_error err = {0};
    tec_rivals *rivals = tec_rivals_new(&err);
    const tec_run_options one = {.threads = 1};

    cr_assert(tec_rivals_add(rivals, module, "twice", rival, extents, 4, &one, faster, &err), "%s", err.text);
    return rivals;
}

/* A rival that is slow on purpose for some extents: who ran is told by what it counts, not by times. */
Test(rivals, take_the_extents_at_which_they_were_faster)
{
    tec_module *module = open_module();
    int faster;
    tec_rivals *rivals = measured(module, &faster);
    tec_error err = {0};
    tec_executor *ex =
        tec_executor_new(module, NULL, &(tec_run_options){.threads = 1, .rivals = rivals}, &err);
    float x[200];

    cr_assert_eq(faster, 2, "%d of 4", faster);
    cr_assert(ex, "%s", err.text);
    for (int64_t n = 1; n <= 200; n += n < 20 ? 1 : 60) {
        DLTensor in = tensor_of(x, 1, &n);

        for (int64_t i = 0; i < n; i++)
            x[i] = (float)i;
        kernel_calls = rival_calls = 0;
        cr_assert(tec_executor_set_input(ex, 0, &in, &err) && tec_executor_run(ex, &err), "%s", err.text);
        for (int64_t i = 0; i < n; i++)
            cr_assert_eq(((const float *)tec_executor_output(ex, 0)->data)[i], 2 * (float)i);
        cr_assert_eq(rival_calls, n > 11, "n = %d: 11 is nearer to 4, 12 to 32", (int)n);
        cr_assert_eq(kernel_calls, n <= 11);
    }
    tec_executor_free(ex);
    tec_rivals_free(rivals);
    tec_module_free(module);
}

Test(rivals, run_in_programs_too)
{
    tec_module *module = open_module();
    tec_rivals *rivals = measured(module, NULL);
    tec_error err = {0};
    const tec_program_options options = {.run = {.threads = 1, .rivals = rivals}};
    tec_program *p = tec_program_new(module, NULL, &options, &err);
    float x[64] = {1};

    cr_assert(p, "%s", err.text);
    for (int64_t n = 2; n <= 64; n += 62) {
        DLTensor in = tensor_of(x, 1, &n);
        tec_object *given = tec_object_tensor(p, &in, &err), *out = NULL;

        kernel_calls = rival_calls = 0;
        cr_assert(tec_program_run(p, &given, 1, &out, 1, &err), "%s", err.text);
        cr_assert_eq(((const float *)tec_object_dltensor(out)->data)[0], 2);
        cr_assert_eq(rival_calls, n == 64);
        cr_assert_eq(kernel_calls, n == 2);
        tec_object_free(out);
        tec_object_free(given);
    }
    tec_program_free(p);
    tec_rivals_free(rivals);
    tec_module_free(module);
}

Test(rivals, run_in_functions_too_and_nowhere_without_the_option)
{
    tec_module *module = open_module();
    tec_rivals *rivals = measured(module, NULL);
    tec_error err = {0};
    int64_t n = 64;
    float x[64] = {1}, y[64];
    DLTensor in = tensor_of(x, 1, &n), out = tensor_of(y, 1, &n);

    for (int with = 0; with < 2; with++) {
        tec_function *f = tec_function_new(
            module, "twice", &(tec_run_options){.threads = 1, .rivals = with ? rivals : NULL}, &err);

        kernel_calls = rival_calls = 0;
        cr_assert(f && tec_function_call(f, (DLTensor *[]){&in, &out}, 2, &err), "%s", err.text);
        cr_assert_eq(rival_calls, with);
        cr_assert_eq(y[0], 2);
        tec_function_free(f);
    }
    tec_rivals_free(rivals);
    tec_module_free(module);
}

static void refused(const char *kernel_name, tec_kernel_fn *f, const int64_t *at, int n, const char *message)
{
    tec_module *module = open_module();
    tec_error err = {0};
    tec_rivals *rivals = tec_rivals_new(&err);
    const tec_run_options one = {.threads = 1};

    cr_assert_not(tec_rivals_add(rivals, module, kernel_name, f, at, n, &one, NULL, &err), "%s", message);
    ASSERT_SAYS(err, message);
    tec_rivals_free(rivals);
    tec_module_free(module);
}

Test(rivals, that_are_wrong_or_fail_are_refused)
{
    refused("twice", wrong, extents, 4, "twice: the function gives another 'y' than the kernel for 32");
    refused("twice", failing, extents, 4, "twice: no library");
    refused("other", rival, extents, 4, "has no function 'other'");
    refused("twice", rival, NULL, 4, "twice: expected 1 to 64 extents of 'n', found 0");
    refused("twice", rival, extents, 65, "expected 1 to 64 extents of 'n', found 65");
    refused("twice", rival, (const int64_t[]){4, 4}, 2, "twice: expected rising extents of at least 1");
    refused("twice", rival, (const int64_t[]){0, 4}, 2, "twice: expected rising extents of at least 1");
    refused("twice", NULL, extents, 4, "expected rivals, a module, the name of a kernel and a function");
}

/* Nothing stays when an allocation fails. */
Test(rivals, whatever_allocation_fails_leaves_nothing)
{
    tec_module *module = open_module();
    const tec_run_options one = {.threads = 1};
    int64_t before = rt_alloc_live();

    for (int n = 1; n < 100; n++) {
        tec_error err = {0};

        rt_alloc_fail_at(n);
        tec_rivals *rivals = tec_rivals_new(&err);
        bool ok = rivals && tec_rivals_add(rivals, module, "twice", rival, extents, 1, &one, NULL, &err);
        rt_alloc_fail_at(0);
        tec_rivals_free(rivals);
        cr_assert_eq(rt_alloc_live(), before, "allocation %d", n);
        if (ok) {
            tec_module_free(module);
            return;
        }
        cr_assert_eq(err.status, TEC_NO_MEMORY, "allocation %d: %s", n, err.text);
    }
    cr_assert_fail("it never succeeds");
}
