/* tests/runtime/vm_device.c -- programs whose kernels run on a device: what is copied there and back, and
 * that nothing is left behind, whatever fails or is damaged. TEC_MUTATIONS and TEC_MUTATION_SEED are as in
 * bytecode.c.
 *
 *     main(x: f32[n]) -> ((f32[n], f32[n]),):
 *         y = copy(x); pair = (y, y); z = copy(y); check n != 5; w = large(z); ret (pair's y, w)
 */
#include <stdlib.h>

#include "runtime/device.h"
#include "tec/device.h"
#include "tec/program.h"
#include "tests/runtime/kit.h"
#include "tests/runtime/standin/use.h"

TestSuite(vm_device, .init = open_driver);

/* ---- the module ---- */

/* The second function needs more workspace: it copies there first, and from there twice, in a loop. */
static const rt_param_desc params[] = {
    {.name = "x", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){SYMBOL(0)}},
    {.name = "y", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){SYMBOL(0)}, .is_output = true}};
static const rt_arg_desc args[] = {
    {.index = 0}, {.index = 1}, {RT_ARG_SIZE, 0, WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 4, RT_DIM_MUL)}};
static const rt_launch_desc launch = {.kernel = "copy",
                                      .grid = (const rt_dim[]){CONST(1), CONST(1), CONST(1)},
                                      .block = {4, 1, 1},
                                      .n_args = 3,
                                      .args = args};
#define BYTES_OF_X {RT_ARG_SIZE, 0, WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 4, RT_DIM_MUL)}
static const rt_arg_desc there[] = {
    {.index = 0}, {.kind = RT_ARG_WORKSPACE, .value = CONST(128)}, BYTES_OF_X};
static const rt_arg_desc back[] = {{.kind = RT_ARG_WORKSPACE, .value = CONST(128)}, {.index = 1}, BYTES_OF_X};
static const rt_launch_desc through[] = {{.kernel = "copy",
                                          .grid = (const rt_dim[]){SYMBOL(0), CONST(1), CONST(1)},
                                          .block = {4, 1, 1},
                                          .n_args = 3,
                                          .args = there},
                                         {.kernel = "copy",
                                          .guard = WORDS(RT_DIM_SYMBOL, 1, RT_DIM_CONST, 8, RT_DIM_LT),
                                          .grid = (const rt_dim[]){SYMBOL(1), CONST(1), CONST(1)},
                                          .block = {2, 2, 1},
                                          .n_args = 3,
                                          .args = back}};
static const rt_loop_desc twice = {1, 2, CONST(1), CONST(2)};
static const rt_kernel_desc kernel = {"copy", (const int32_t[]){0, 0, 8}, 3};
static const rt_code_desc code = {.target = "opencl",
                                  .device = "opencl",
                                  .format = RT_CODE_OPENCL_C,
                                  .kernels = &kernel,
                                  .n_kernels = 1,
                                  .bytes = "text",
                                  .size = 4};
#define FUNCTION(title, bytes, ...)                                                                          \
    {.name = (title),                                                                                        \
     .device = "opencl",                                                                                     \
     __VA_ARGS__,                                                                                            \
     .params = params,                                                                                       \
     .n_params = 2,                                                                                          \
     .symbols = (const char *const[]){"n"},                                                                  \
     .n_symbols = 1,                                                                                         \
     .workspace = CONST(bytes)}
static const rt_function_desc functions[] = {
    FUNCTION("small", 64, .launches = &launch, .n_launches = 1),
    FUNCTION("large", 4096, .launches = through, .n_launches = 2, .loops = &twice, .n_loops = 1)};

enum { NUMBER, STORAGE, VECTOR, PAIR, N_TYPES };
static const rt_type_desc types[N_TYPES] = {
    [NUMBER] = {.kind = RT_TYPE_NUMBER},
    [STORAGE] = {.kind = RT_TYPE_STORAGE},
    [VECTOR] = {.kind = RT_TYPE_TENSOR, .dtype = F32, .rank = 1, .extents = (const int64_t[]){-1}},
    [PAIR] = {.kind = RT_TYPE_TUPLE, .parts = (const int32_t[]){VECTOR, VECTOR}, .n_parts = 2}};

/* clang-format off */
enum { X, N, BYTES, ZERO, PLACE, Y, Z, W, BOTH, GOOD, N_REGISTERS };
#define NEW(to)                                                                                              \
    RT_ALLOC_STORAGE, PLACE, BYTES, 0,                                                                       \
    RT_ALLOC_TENSOR_REG, (to), PLACE, ZERO, 1, N,                                                            \
    RT_FREE_STORAGE, PLACE
#define CALL(f, from, to) RT_INVOKE_PACKED, (f), 1, N, 2, (from), (to)
static const int32_t words[] = {
    RT_EXTENT, N, X, 0,
    RT_DIM, BYTES, 0, 1, N,
    RT_LOAD_CONSTI, ZERO, 0,
    NEW(Y), CALL(0, X, Y),
    RT_ALLOC_ADT, BOTH, 0, 2, Y, Y,
    NEW(Z), CALL(0, Y, Z),
    RT_DIM, GOOD, 1, 1, N,
    RT_CHECK, GOOD, 0,
    NEW(W), CALL(1, Z, W),
    RT_GET_FIELD, Y, BOTH, 0, 1,
    RT_RET, 2, Y, W};
/* clang-format on */
static const int32_t registers[N_REGISTERS] = {VECTOR, NUMBER, NUMBER, NUMBER, STORAGE,
                                               VECTOR, VECTOR, VECTOR, PAIR,   NUMBER};
static const rt_routine_desc routine = {.name = "main",
                                        .file = "p.tecp",
                                        .registers = registers,
                                        .n_registers = N_REGISTERS,
                                        .n_params = 1,
                                        .params = (const char *const[]){"x"},
                                        .n_names = 1,
                                        .results = (const int32_t[]){VECTOR, VECTOR},
                                        .n_results = 2,
                                        .words = words,
                                        .n_words = BASE_COUNT(words)};
static const rt_dim dims[] = {WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 4, RT_DIM_MUL),
                              WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, -5, RT_DIM_ADD)};

static const int32_t dim_symbols[] = {1, 1};
static const char *const texts[] = {"n is 5"};

static rt_module_desc describe(const rt_routine_desc *main)
{
    return (rt_module_desc){.target = "opencl",
                            .functions = functions,
                            .n_functions = 2,
                            .codes = &code,
                            .n_codes = 1,
                            .program = {.types = types,
                                        .n_types = N_TYPES,
                                        .dims = dims,
                                        .n_dims = 2,
                                        .dim_symbols = dim_symbols,
                                        .n_dim_symbols = 2,
                                        .texts = texts,
                                        .n_texts = 1,
                                        .functions = main,
                                        .n_functions = 1}};
}

static tec_module *load(tec_error *err)
{
    const rt_module_desc m = describe(&routine);

    return rt_module_from_memory(&m, NULL, 0, err);
}

/* ---- using it ---- */

static bool holds(const tec_object *object, int64_t n)
{
    const DLTensor *t = tec_object_dltensor(object);

    for (int64_t i = 0; i < n; i++)
        if (((const float *)t->data)[i] != kit_input(i))
            return false;
    return t->shape[0] == n && t->device.device_type == kDLCPU;
}

/* One run; its results must be what was given. */
static bool run(tec_program *p, int64_t n, tec_error *err)
{
    float data[16];
    DLTensor x = tensor_of(data, 1, &n);
    tec_object *in, *out[2] = {NULL, NULL};

    for (int64_t i = 0; i < n; i++)
        data[i] = kit_input(i);
    in = tec_object_tensor(p, &x, err);
    bool ok = in && tec_program_run(p, &in, 1, out, 2, err);
    cr_assert(!ok || (holds(out[0], n) && holds(out[1], n)), "extent %d: other elements", (int)n);
    cr_assert(ok || (!out[0] && !out[1]));
    tec_object_free(out[0]);
    tec_object_free(out[1]);
    tec_object_free(in);
    return ok;
}

/* Runs the program several times, also with extent 5, which its check refuses with three values alive. */
static bool use(tec_error *err)
{
    tec_error refused = {0};
    tec_module *m = load(err);
    tec_program *p = m ? tec_program_new(m, NULL, &(tec_program_options){.run = {.threads = 1}}, err) : NULL;
    bool ok = p && run(p, 3, err);

    if (ok && run(p, 5, &refused))
        cr_assert_fail("extent 5 is not refused");
    if (ok && !strstr(refused.text, "n is 5")) {
        *err = refused;
        ok = false;
    }
    ok = ok && run(p, 16, err) && run(p, 0, err);
    tec_program_free(p);
    tec_module_free(m);
    return ok;
}

Test(vm_device, copies_operands_there_and_results_back)
{
    tec_error err = {0};
    int64_t before = rt_alloc_live();

    fail_at(0, 0, 0);
    cr_assert(use(&err), "%s", err.text);
    cr_assert_eq(live(), 0);
    cr_assert_eq(rt_alloc_live(), before);
}

/* Kernels, the stream, the workspace, and memory of each size that was needed stay for the next run. */
Test(vm_device, keeps_what_the_next_run_needs_and_nothing_else)
{
    tec_error err = {0};
    int64_t after_first;

    fail_at(0, 0, 0);
    tec_module *m = load(&err);
    tec_program *p = tec_program_new(m, NULL, &(tec_program_options){.run = {.threads = 1}}, &err);
    cr_assert(p && run(p, 3, &err) && run(p, 0, &err), "%s", err.text);
    cr_assert_not(run(p, 5, &(tec_error){0}));
    after_first = live();
    cr_assert_gt(after_first, 0);
    for (int i = 0; i < 20; i++)
        cr_assert(i % 3 == 2 ? !run(p, 5, &(tec_error){0}) : run(p, i % 16 == 5 ? 6 : i % 16, &err), "%s",
                  err.text);
    cr_assert_eq(live(), after_first);
    tec_program_free(p);
    tec_module_free(m);
    cr_assert_eq(live(), 0);
}

/* A program that failed runs again. */
Test(vm_device, whatever_call_fails_says_so_and_leaves_nothing)
{
    let_each_call_fail(use, 60);
}

Test(vm_device, runs_again_after_a_failure)
{
    tec_error err = {0};
    int64_t total;

    fail_at(0, 0, 0);
    tec_module *m = load(&err);
    tec_program *p = tec_program_new(m, NULL, &(tec_program_options){.run = {.threads = 1}}, &err);
    cr_assert(p && run(p, 3, &err), "%s", err.text);
    fail_at(0, 0, 0);
    cr_assert(run(p, 3, &err), "%s", err.text);
    total = calls();
    for (int64_t n = 1; n <= total; n++) {
        tec_error failed = {0};

        fail_at(n, OUT_OF_RESOURCES, 0);
        run(p, 3, &failed);
        fail_at(0, 0, 0);
        cr_assert(run(p, 3, &err), "after call %d, %s: %s", (int)n, failed.text, err.text);
    }
    tec_program_free(p);
    tec_module_free(m);
    cr_assert_eq(live(), 0);
}

Test(vm_device, whatever_allocation_fails_leaves_nothing)
{
    let_each_allocation_fail(use, 600);
}

/* ---- damage ---- */

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoll(text, NULL, 10) : otherwise;
}

/* A program with up to three words changed, mostly to small numbers. */
static tec_module *load_with_other_words(uint64_t *state, int32_t *changed, tec_error *err)
{
    rt_routine_desc main = routine;

    memcpy(changed, words, sizeof words);
    for (int k = 1 + (int)(next(state) % 3); k > 0; k--) {
        int32_t *word = &changed[next(state) % BASE_COUNT(words)];

        switch (next(state) % 4) {
        case 0: *word = (int32_t)next(state); break;
        case 1: *word += 1 - (int32_t)(next(state) % 3); break;
        case 2: *word = changed[next(state) % BASE_COUNT(words)]; break;
        default: *word = (int32_t)(next(state) % RT_N_INSTRUCTIONS); break;
        }
    }
    main.words = changed;
    const rt_module_desc m = describe(&main);
    return rt_module_from_memory(&m, NULL, 0, err);
}

/* A program whose section of the file has up to three bytes changed. */
static tec_module *load_with_other_bytes(uint64_t *state, const rt_bytes *section, rt_arena *arena,
                                         tec_error *err)
{
    rt_module_desc m = describe(&routine);
    uint8_t *changed = malloc(section->n);

    memcpy(changed, section->data, section->n);
    for (int k = 1 + (int)(next(state) % 3); k > 0; k--)
        changed[next(state) % section->n] = (uint8_t)(next(state) % 2 ? next(state) : next(state) % 16);
    bool good = rt_module_decode(&m, RT_SECTION_PROGRAM, changed, section->n, arena, err);
    tec_module *loaded = good ? rt_module_from_memory(&m, NULL, 0, err) : NULL;
    free(changed);
    return loaded;
}

/* A number of one to eight bytes at any place: small ones and the largest are where limits are. */
static void damage(uint64_t *state, uint8_t *data, size_t n)
{
    static const int64_t extreme[] = {0, 1, -1, 2, 3, 64, 4096, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    size_t size = (size_t)1 << next(state) % 4, at = next(state) % n;
    int64_t value = next(state) % 4 ? extreme[next(state) % BASE_COUNT(extreme)] : (int64_t)next(state);

    if (at + size <= n)
        memcpy(data + at, &value, size);
}

/* A program with one to three numbers changed in what the module says of its functions: their launches, with
 * loops, guards, grids and arguments, and their parameters; or of the code for the device. */
static tec_module *load_with_other_launches(uint64_t *state, const rt_bytes *sections, rt_arena *arena,
                                            tec_error *err)
{
    rt_section_kind kind = next(state) % 8 ? RT_SECTION_FUNCTIONS : RT_SECTION_CODE;
    const rt_bytes *section = &sections[kind == RT_SECTION_CODE];
    rt_module_desc m = describe(&routine);
    uint8_t *changed = malloc(section->n);

    memcpy(changed, section->data, section->n);
    for (int k = next(state) % 2 ? 1 : 1 + (int)(next(state) % 3); k > 0; k--)
        damage(state, changed, section->n);
    bool good = rt_module_decode(&m, kind, changed, section->n, arena, err);
    tec_module *loaded = good ? rt_module_from_memory(&m, NULL, 0, err) : NULL;
    free(changed);
    return loaded;
}

/* Whatever it gives, where it runs. */
static bool run_damaged(tec_module *m, int64_t n)
{
    const tec_program_options limits = {
        .run = {.threads = 1}, .max_steps = 2000, .max_depth = 50, .max_bytes = 1 << 20};
    float data[4] = {1, 2, 3, 4};
    DLTensor x = tensor_of(data, 1, &n);
    tec_program *p = tec_program_new(m, NULL, &limits, NULL);
    tec_object *in = p ? tec_object_tensor(p, &x, NULL) : NULL, *out[2] = {NULL, NULL};
    bool ok = in && tec_program_run(p, &in, 1, out, 2, NULL);

    tec_object_free(out[0]);
    tec_object_free(out[1]);
    tec_object_free(in);
    tec_program_free(p);
    return ok;
}

/* Sections of the whole module that are damaged: the program, the functions, the code for the device. */
typedef struct {
    rt_bytes program, launches[2];
} sections;

typedef tec_module *load_fn(uint64_t *state, const sections *whole, rt_arena *arena, int32_t *changed,
                            tec_error *err);

static tec_module *load_damaged_program(uint64_t *state, const sections *whole, rt_arena *arena,
                                        int32_t *changed, tec_error *err)
{
    return next(state) % 2 ? load_with_other_words(state, changed, err)
                           : load_with_other_bytes(state, &whole->program, arena, err);
}

static tec_module *load_damaged_launches(uint64_t *state, const sections *whole, rt_arena *arena,
                                         int32_t *changed, tec_error *err)
{
    (void)changed;
    return load_with_other_launches(state, whole->launches, arena, err);
}

/* Many damaged modules: each is refused with a reason, or runs within its limits and leaves nothing. */
static void survives(load_fn *load_one)
{
    int64_t n = setting("TEC_MUTATIONS", 4000), ran = 0, failed = 0;
    uint64_t seed = (uint64_t)setting("TEC_MUTATION_SEED", 1);
    const rt_module_desc module = describe(&routine);
    sections whole = {0};
    tec_error err = {0};

    fail_at(0, 0, 0);
    cr_assert(rt_module_encode(&module, RT_SECTION_PROGRAM, &whole.program, &err) &&
                  rt_module_encode(&module, RT_SECTION_FUNCTIONS, &whole.launches[0], &err) &&
                  rt_module_encode(&module, RT_SECTION_CODE, &whole.launches[1], &err),
              "%s", err.text);
    for (int64_t i = 0; i < n; i++, seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15u + 3;
        int64_t before = rt_alloc_live();
        rt_arena arena = {0};
        int32_t changed[BASE_COUNT(words)];

        err = (tec_error){0};
        tec_module *m = load_one(&state, &whole, &arena, changed, &err);
        cr_assert(m || err.text[0], "seed %llu: refused without a reason", (unsigned long long)seed);
        bool ok = m && run_damaged(m, (int64_t)(next(&state) % 4));
        ran += ok;
        failed += m && !ok;
        tec_module_free(m);
        rt_arena_free(&arena);
        cr_assert_eq(live(), 0, "seed %llu leaves objects", (unsigned long long)seed);
        cr_assert_eq(rt_alloc_live(), before, "seed %llu leaks", (unsigned long long)seed);
    }
    rt_bytes_free(&whole.program);
    rt_bytes_free(&whole.launches[0]);
    rt_bytes_free(&whole.launches[1]);
    cr_log_info("%lld programs: %lld ran, %lld failed", (long long)n, (long long)ran, (long long)failed);
    cr_assert_gt(n - ran - failed, n / 4);
    cr_assert_gt(ran, n / 100);
    cr_assert_gt(failed, n / 1000);
}

Test(vm_device, a_damaged_program_is_refused_or_runs_within_its_limits)
{
    survives(load_damaged_program);
}

Test(vm_device, so_are_damaged_launches)
{
    survives(load_damaged_launches);
}

/* The loop around the launches of a kernel has 2^62 iterations. */
Test(vm_device, the_limits_of_a_run_hold_inside_of_a_kernel)
{
    const rt_loop_desc endless = {1, 2, CONST(1), CONST(INT64_C(1) << 62)},
                       too_large = {1, 2, CONST(INT64_MAX), CONST(2)};
    rt_function_desc with_loop[2] = {functions[0], functions[1]};
    rt_module_desc m = describe(&routine);
    const tec_program_options limits = {.run = {.threads = 1}, .max_steps = 5000};
    tec_error err = {0};

    fail_at(0, 0, 0);
    m.functions = with_loop;
    with_loop[1].loops = &endless;
    tec_module *module = rt_module_from_memory(&m, NULL, 0, &err);
    tec_program *p = tec_program_new(module, NULL, &limits, &err);
    cr_assert(p, "%s", err.text);
    cr_assert_not(run(p, 3, &err));
    cr_assert(strstr(err.text, "the limit of 5000 steps is reached"), "%s", err.text);
    tec_program_free(p);
    tec_module_free(module);
    err = (tec_error){0};
    with_loop[1].loops = &too_large;
    module = rt_module_from_memory(&m, NULL, 0, &err);
    p = tec_program_new(module, NULL, &limits, &err);
    cr_assert(p && !run(p, 3, &err));
    cr_assert(strstr(err.text, "a loop around launches has numbers that are too large"), "%s", err.text);
    tec_program_free(p);
    tec_module_free(module);
    cr_assert_eq(live(), 0);
}

Test(vm_device, runs_on_the_device_that_the_caller_chose)
{
    tec_error err = {0};

    fail_at(0, 0, 0);
    tec_device *d = tec_device_open("opencl", &err);
    tec_module *m = load(&err);
    const tec_program_options options = {.run = {.threads = 1, .device = d}};
    tec_program *p = tec_program_new(m, NULL, &options, &err);
    cr_assert(d && p && run(p, 4, &err), "%s", err.text);
    tec_device_free(d); /* the program holds it */
    cr_assert(run(p, 7, &err), "%s", err.text);
    tec_program_free(p);
    tec_module_free(m);
    cr_assert_eq(live(), 0);
}
