/* tests/runtime/bytecode.c -- bytecode: its text, what the verifier refuses and why, what the VM refuses
 * while it runs, and damaged code: refused, or run within its limits. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/fixed.h"
#include "runtime/module.h"
#include "tec/program.h"
#include "tests/runtime/listing.h"

static tec_error err;

static void clear(void)
{
    err = (tec_error){0};
}

TestSuite(bytecode, .init = clear);

static tec_module *load(const program *p)
{
    const rt_memory_code code = {.resolve = resolve};

    return rt_module_from_memory(&p->m, &code, 0, &err);
}

/* A list of n cells, and a vector of `extent` elements. */
static bool make_inputs(tec_program *s, int n, int64_t extent, tec_object **in)
{
    float zeros[64] = {0};
    DLTensor t = {.data = zeros, .device = {kDLCPU, 0}, .ndim = 1, .dtype = BASE_F32, .shape = &extent};

    in[0] = tec_object_data(s, "Nil", NULL, 0, NULL);
    in[1] = tec_object_tensor(s, &t, NULL);
    for (int i = 0; i < n && in[0] && in[1]; i++) {
        tec_object *cell = tec_object_data(s, "Cons", (tec_object *[]){in[1], in[0]}, 2, NULL);

        tec_object_free(in[0]);
        in[0] = cell;
    }
    return in[0] && in[1];
}

/* Runs it on a list of n cells: the first element of the result. */
static bool run(tec_module *m, int n, int64_t extent, const tec_program_options *o, float *first)
{
    tec_program *s = tec_program_new(m, NULL, o, &err);
    tec_object *in[2] = {NULL, NULL}, *out = NULL;
    bool ok = s && make_inputs(s, n, extent, in) && tec_program_run(s, in, 2, &out, 1, &err);

    if (ok && tec_object_dltensor(out) && extent && tec_tensor_elements(tec_object_dltensor(out)) > 0)
        *first = *(const float *)tec_object_dltensor(out)->data;
    tec_object_free(out);
    tec_object_free(in[0]);
    tec_object_free(in[1]);
    tec_program_free(s);
    return ok;
}

static const tec_program_options alone = {.run = {.threads = 1}};

Test(bytecode, runs)
{
    program p;
    float first = 0;

    set_up(&p);
    tec_module *m = load(&p);
    cr_assert(m, "%s", err.text);
    cr_assert(run(m, 5, 3, &alone, &first), "%s", err.text);
    cr_assert_float_eq(first, 5, 0);
    tec_module_free(m);
}

static int64_t seen[8];
static int n_seen;

static int32_t see_turn(const tec_env *env, void *const *args, const int64_t *sizes)
{
    seen[n_seen++] = env->turn;
    return add_one(env, args, sizes);
}

static tec_kernel_fn *resolve_seen(void *user, const char *symbol)
{
    return resolve(user, symbol) ? see_turn : NULL;
}

Test(bytecode, counts_the_calls_of_each_kernel)
{
    program p;
    float first = 0;

    set_up(&p);
    tec_module *m = rt_module_from_memory(&p.m, &(rt_memory_code){.resolve = resolve_seen}, 0, &err);
    cr_assert(m, "%s", err.text);
    cr_assert(run(m, 5, 3, &alone, &first), "%s", err.text);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(seen[i], i);
    tec_module_free(m);
}

Test(bytecode, has_a_text)
{
    static const char *const expected[] = {
        "r2 = get_tag r0",
        "switch r2 (L8, L11)",
        "ret (r1)",
        "r3 = get_field r0 1 0",
        "r4 = get_field r0 1 1",
        "r5 = extent r1 0",
        "r6 = dim {s0*4} (r5)",
        "r7 = load_consti 0",
        "r8 = alloc_storage r6 0",
        "r9 = alloc_tensor_reg r8 r7 (r5)",
        "free_storage r8",
        "invoke_packed kernel 0 (r5) (r1, r9)",
        "r10 = alloc_adt 0 (r9, r4)",
        "r1 = get_field r10 0 0",
        "r11 = alloc_closure @same ()",
        "r1 = invoke_closure r11 (r1)",
        "if r5 L77 L85",
        "check r6 \"the size is not 0\"",
        "tail @main (r4, r1)",
        "fatal \"no way\"",
    };
    program p;
    char text[256];
    int k = 0;

    set_up(&p);
    const rt_routine_desc *f = &p.functions[0];
    for (int32_t at = 0; at < f->n_words; at += rt_instruction_words(f->words, at, f->n_words))
        cr_assert_str_eq(rt_instruction_text(&p.m.program, f, at, text, sizeof text), expected[k++]);
    cr_assert_eq(k, BASE_COUNT(expected));
    cr_assert_eq(rt_line_of(f, 44), 3);
    cr_assert_eq(rt_line_of(f, 45), 5);
}

/* ---- refused before it runs ---- */

static void refuses_in(int which, int word, int32_t by, const char *message)
{
    program p;

    clear();
    set_up(&p);
    (which ? p.same : p.code)[word] = by;
    cr_assert(!rt_program_check(&p.m, &err), "word %d = %d is not refused", word, (int)by);
    cr_assert(strstr(err.text, message), "found: %s\nexpected: %s", err.text, message);
}

static void refuses(int word, int32_t by, const char *message)
{
    refuses_in(0, word, by, message);
}

Test(bytecode, words_are_held_against_types)
{
    refuses(0, 99, "bytecode of 'main', word 0 (?): no whole instruction (99)");
    refuses(5, 1000000, "no whole instruction");
    refuses(1, 12, "word 0 (get_tag): operand 12 of 12");
    refuses(1, -1, "operand -1 of 12");
    refuses(2, 1, "word 0 (get_tag): r1 is of the wrong kind");
    refuses(6, 9, "word 3 (switch): no instruction begins at word 9");
    refuses(10, 0, "word 8 (ret): r0 has another type than is expected there");
    refuses(14, 2, "word 11 (get_field): r0 has no constructor 2");
    refuses(15, 2, "field 2 of 2");
    refuses(15, 1, "r3 has another type");
    refuses(24, 1, "word 21 (extent): axis 1 of r1");
    refuses(27, 3, "word 25 (dim): operand 3 of 3");
    refuses(36, 1, "device 1; there is the host alone");
    refuses(46, 1, "word 45 (invoke_packed): operand 1 of 1");
    refuses(50, 0, "r0 is of the wrong kind");
    refuses(54, 1, "r10 has no constructor 1");
    refuses(65, 0, "'main' has other parameters or results");
    refuses(79, 2, "operand 2 of 2");
    refuses(83, 1, "word 80 (tail): r1 has another type");
}

Test(bytecode, registers_are_read_where_they_are_set_on_every_way)
{
    refuses(8 + 2, 3, "word 8 (ret): r3 is read before it is set");
    refuses(4, 5, "word 3 (switch): r5 is read before it is set");
    refuses(44, 9, "word 43 (free_storage): r9 is of the wrong kind");
}

Test(bytecode, rows_are_held_against_what_they_belong_to)
{
    refuses_in(1, 24, 5, "word 23 (row): r5 is not a row of r0");
    refuses_in(1, 25, 3, "word 23 (row): r3 is not a row of r3");
    refuses_in(1, 26, 0, "word 23 (row): r0 is of the wrong kind");
    refuses_in(1, 28, 3, "word 27 (append): r3 has another type");
    refuses_in(1, 30, 6, "word 27 (append): r6 is not a row of r5");
    refuses_in(1, 44, 3, "word 43 (to_tensor): r3 is not an integer or truth value of rank 0");
    refuses_in(1, 45, 0, "word 43 (to_tensor): r0 is of the wrong kind");
}

Test(bytecode, code_does_not_run_behind_its_end)
{
    program p;

    set_up(&p);
    p.functions[0].n_words -= 2;
    cr_assert(!rt_program_check(&p.m, &err));
    set_up(&p);
    p.functions[1].n_words = 0;
    clear();
    cr_assert(!rt_program_check(&p.m, &err));
    cr_assert(strstr(err.text, "the code goes on behind its end"), "%s", err.text);
}

Test(bytecode, places_are_lines_or_texts_of_the_program)
{
    static const rt_line_desc good[] = {{0, -2}, {45, 5}}, bad[] = {{0, 3}, {45, -1000}};
    program p;
    float first;

    set_up(&p);
    p.functions[0].lines = bad;
    cr_assert(!rt_program_check(&p.m, &err));
    cr_assert(strstr(err.text, "a place in 'main' is text 999 of "), "%s", err.text);
    clear();
    set_up(&p);
    p.functions[0].lines = good;
    p.code[6] = 11;
    tec_module *m = load(&p);
    cr_assert(m, "%s", err.text);
    cr_assert(!run(m, 2, 3, &alone, &first));
    cr_assert(strstr(err.text, ": a field of another constructor is read"), "%s", err.text);
    cr_assert_not(strstr(err.text, "p.tecp:"), "%s", err.text);
    tec_module_free(m);
}

/* ---- refused while it runs ---- */

static void fails(int word, int32_t by, const char *message)
{
    program p;
    float first;

    clear();
    set_up(&p);
    p.code[word] = by;
    tec_module *m = load(&p);
    cr_assert(m, "%s", err.text);
    cr_assert(!run(m, 2, 3, &alone, &first), "word %d = %d runs", word, (int)by);
    cr_assert(strstr(err.text, message), "found: %s\nexpected: %s", err.text, message);
    tec_module_free(m);
}

Test(bytecode, what_depends_on_values_is_checked_while_it_runs)
{
    fails(6, 11, "p.tecp:3: in 'main': a field of another constructor is read");
    fails(35, 7, "a tensor of 12 bytes does not fit into 0");
    fails(40, 5, "a tensor at offset 3 of 12 bytes");
    fails(48, 6, "p.tecp:5: in 'main': 'x' of add_one: expected f32[n] where n = 12, found f32[3]");
    fails(51, 1, "the kernel would write memory that overlaps another argument");
    fails(78, 7, "the size is not 0");
    fails(74, 7, "no way");
}

/* y = x + 1 with numbers as extents, and x twice, so that its call is as long as that of the listing. */
static int32_t add_one_of_three(const tec_env *env, void *const *args, const int64_t *sizes)
{
    (void)sizes;
    return add_one(env, (void *const[]){args[1], args[2]}, (const int64_t[]){3});
}

static tec_kernel_fn *resolve_three(void *user, const char *symbol)
{
    return resolve(user, symbol) ? add_one_of_three : NULL;
}

#define THREE {.word = (const int64_t[]){RT_DIM_CONST, 3}, .n = 2}

static const rt_param_desc params_of_three[] = {
    {.name = "x", .dtype = {kDLFloat, 32, 1}, .rank = 1, .shape = (const rt_dim[]){THREE}},
    {.name = "again", .dtype = {kDLFloat, 32, 1}, .rank = 1, .shape = (const rt_dim[]){THREE}},
    {.name = "y", .dtype = {kDLFloat, 32, 1}, .rank = 1, .shape = (const rt_dim[]){THREE}, .is_output = true},
};

static const rt_param_desc output_first[] = {
    {.name = "y", .dtype = {kDLFloat, 32, 1}, .rank = 1, .shape = (const rt_dim[]){THREE}, .is_output = true},
    {.name = "x", .dtype = {kDLFloat, 32, 1}, .rank = 1, .shape = (const rt_dim[]){THREE}}};

/* The program of the listing with that kernel; `written`: the register that the kernel writes. */
static tec_module *load_of_three(program *p, rt_function_desc *kernel, int32_t written)
{
    static const int32_t call[] = {RT_INVOKE_PACKED, 0, 0, 3, 1, 1};

    clear();
    set_up(p);
    *kernel = (rt_function_desc){.name = "add_three",
                                 .symbol = p->m.functions[0].symbol,
                                 .params = params_of_three,
                                 .n_params = BASE_COUNT(params_of_three)};
    p->m.functions = kernel;
    p->m.n_functions = 1;
    memcpy(p->code + 45, call, sizeof call);
    p->code[45 + BASE_COUNT(call)] = written;
    tec_module *m = rt_module_from_memory(&p->m, &(rt_memory_code){.resolve = resolve_three}, 0, &err);
    cr_assert(m, "%s", err.text);
    return m;
}

/* x + 1 of a constant, whatever the input is. */
Test(bytecode, kernels_take_constants)
{
    static const float data[] = {41, 41, 41, 41};
    static const int64_t three[] = {3}, four[] = {4};
    rt_constant_desc constant = {.dtype = BASE_F32, .rank = 1, .shape = three, .data = data};
    rt_function_desc kernel;
    program p;
    char text[256];
    float first = 0;
    tec_module *m = load_of_three(&p, &kernel, 9);

    tec_module_free(m);
    p.m.constants = &constant;
    p.m.n_constants = 1;
    p.code[50] = -1;
    m = rt_module_from_memory(&p.m, &(rt_memory_code){.resolve = resolve_three}, 0, &err);
    cr_assert(m, "%s", err.text);
    cr_assert(run(m, 2, 3, &alone, &first), "%s", err.text);
    cr_assert_float_eq(first, 42, 0);
    tec_module_free(m);
    cr_assert_str_eq(rt_instruction_text(&p.m.program, &p.functions[0], 45, text, sizeof text),
                     "invoke_packed kernel 0 () (r1, const 0, r9)");
    constant.shape = four; /* the extents are looked at when it runs */
    m = rt_module_from_memory(&p.m, &(rt_memory_code){.resolve = resolve_three}, 0, &err);
    cr_assert(m, "%s", err.text);
    cr_assert(!run(m, 2, 3, &alone, &first));
    cr_assert(strstr(err.text, "'again' of add_three: expected f32[3], found f32[4]"), "%s", err.text);
    tec_module_free(m);
    clear();
    constant.dtype = BASE_I64;
    cr_assert(!rt_program_check(&p.m, &err));
    cr_assert(strstr(err.text, "constant 0 is no 'again' of kernel 'add_three'"), "%s", err.text);
    clear();
    p.code[50] = -2;
    cr_assert(!rt_program_check(&p.m, &err));
    cr_assert(strstr(err.text, "operand 1 of 1"), "%s", err.text);
}

/* What needs no look at the description is checked all the same. */
Test(bytecode, calls_of_fixed_shapes_are_checked)
{
    rt_function_desc kernel;
    program p;
    float first = 0;
    tec_module *m = load_of_three(&p, &kernel, 9);

    cr_assert(run(m, 5, 3, &alone, &first), "%s", err.text);
    cr_assert_float_eq(first, 5, 0);
    cr_assert(!run(m, 2, 4, &alone, &first));
    cr_assert(strstr(err.text, "'y' of add_three: expected f32[3], found f32[4]"), "%s", err.text);
    tec_module_free(m);
    m = load_of_three(&p, &kernel, 1);
    cr_assert(!run(m, 2, 3, &alone, &first));
    cr_assert(strstr(err.text, "would write memory that overlaps another argument"), "%s", err.text);
    tec_module_free(m);
}

/* In the place of the instructions that make register 9 and its storage: as many words. */
static void put_whole(program *p, const int32_t *words)
{
    clear();
    set_up(p);
    memcpy(p->code + 33, words, 12 * sizeof *words);
}

/* The program gives what its own instructions give. `expected`: the text of the instruction at `at`. */
static void runs_whole(const int32_t *words, int at, const char *expected)
{
    program p;
    char text[256];
    float first = 0;

    put_whole(&p, words);
    tec_module *m = load(&p);
    cr_assert(m, "%s", err.text);
    cr_assert(run(m, 5, 3, &alone, &first), "%s", err.text);
    cr_assert_float_eq(first, 5, 0);
    tec_module_free(m);
    cr_assert_str_eq(rt_instruction_text(&p.m.program, &p.functions[0], at, text, sizeof text), expected);
}

static void refuses_whole(const int32_t *words, const char *message)
{
    program p;

    put_whole(&p, words);
    cr_assert(!rt_program_check(&p.m, &err));
    cr_assert(strstr(err.text, message), "found: %s\nexpected: %s", err.text, message);
}

Test(bytecode, a_tensor_and_its_storage_may_be_made_at_once)
{
    static const int32_t whole[] = {RT_NEW_TENSOR_REG, 9, 1,       5, RT_FREE, 0,
                                    RT_FREE,           0, RT_FREE, 0, RT_FREE, 0},
                         rank[] = {RT_NEW_TENSOR_REG, 9, 2,       5, 5, RT_LOAD_CONSTI, 7, 0,
                                   RT_FREE,           0, RT_FREE, 0},
                         number[] = {RT_NEW_TENSOR, 5, 1, 3, RT_FREE, 0, RT_FREE, 0, RT_FREE, 0, RT_FREE, 0},
                         vector[] = {RT_NEW_TENSOR_REG, 9, 1,       1, RT_FREE, 0,
                                     RT_FREE,           0, RT_FREE, 0, RT_FREE, 0};

    runs_whole(whole, 33, "r9 = new_tensor_reg (r5)");
    refuses_whole(rank, "word 33 (new_tensor_reg): 2 extents; r9 has 1");
    refuses_whole(number, "word 33 (new_tensor): r5 is of the wrong kind");
    refuses_whole(vector, "word 33 (new_tensor_reg): r1 is of the wrong kind");
}

/* A kernel that takes vectors of three elements takes such a register's tensor without a look at its extents.
 */
Test(bytecode, a_tensor_has_the_extents_of_its_type)
{
    static const int64_t three[] = {3};
    static const int32_t right[] = {RT_NEW_TENSOR, 9, 1, 3}, wrong[] = {RT_NEW_TENSOR, 9, 1, 4};
    static const int32_t frees[] = {RT_FREE, 0, RT_FREE, 0, RT_FREE, 0, RT_FREE, 0};
    rt_type_desc known[N_TYPES];
    rt_function_desc kernel;
    program p;
    float first = 0;

    for (int k = 0; k < 2; k++) {
        tec_module_free(load_of_three(&p, &kernel, 9));
        memcpy(known, types, sizeof known);
        known[VECTOR].extents = three;
        p.m.program.types = known;
        memcpy(p.code + 33, k ? wrong : right, sizeof right);
        memcpy(p.code + 37, frees, sizeof frees);
        if (k) {
            cr_assert(!rt_program_check(&p.m, &err));
            cr_assert(strstr(err.text, "word 33 (new_tensor): extent 0 is 4; r9 has 3"), "%s", err.text);
            continue;
        }
        tec_module *m = rt_module_from_memory(&p.m, &(rt_memory_code){.resolve = resolve_three}, 0, &err);
        cr_assert(m, "%s", err.text);
        cr_assert(run(m, 5, 3, &alone, &first), "%s", err.text);
        cr_assert_float_eq(first, 5, 0);
        tec_module_free(m);
    }
}

Test(bytecode, several_objects_are_freed_at_once)
{
    static const int32_t number[] = {RT_NEW_TENSOR_REG, 9, 1, 5, RT_FREE, 2, 3, 7, RT_FREE, 2, 3, 3},
                         unset[] = {RT_NEW_TENSOR_REG, 9, 1, 5, RT_FREE, 2, 3, 9, RT_FREE, 2, 3, 3},
                         used[] = {RT_NEW_TENSOR_REG, 9, 1, 5, RT_FREE, 2, 3, 9, RT_FREE, 0, RT_FREE, 0},
                         good[] = {RT_NEW_TENSOR_REG, 9, 1, 5, RT_FREE, 6, 3, 3, 3, 3, 3, 3};

    runs_whole(good, 37, "free (r3, r3, r3, r3, r3, r3)");
    refuses_whole(number, "word 37 (free): r7 holds no object");
    refuses_whole(unset, "word 41 (free): r3 is read before it is set");
    refuses_whole(used, "word 45 (invoke_packed): r9 is read before it is set");
}

/* Each of these is called by its description. */
Test(bytecode, some_kernels_have_no_fixed_calls)
{
    rt_function_desc kernel;
    program p;
    rt_arena arena = {0};
    rt_fixed_call *call = NULL;
    rt_layouts layouts = {0};
    tec_module *m = load_of_three(&p, &kernel, 9);

    cr_assert(rt_fix_call(&arena, m, 0, &layouts, &call, &err));
    cr_assert(call && call->n_params == 3 && call->words[1] == 3);
    cr_assert_eq(call->words[0], 1 | RT_FIXED_OUTPUT | (int64_t)1 << RT_FIXED_LAYOUT);
    tec_module_free(m);
    set_up(&p);
    m = load(&p); /* with a symbol */
    cr_assert(rt_fix_call(&arena, m, 0, &layouts, &call, &err) && !call);
    tec_module_free(m);
    kernel.params = output_first;
    kernel.n_params = 2;
    const rt_module_desc alone_in_it = {.target = "test", .functions = &kernel, .n_functions = 1};
    m = rt_module_from_memory(&alone_in_it, &(rt_memory_code){.resolve = resolve_three}, 0, &err);
    cr_assert(m, "%s", err.text);
    cr_assert(rt_fix_call(&arena, m, 0, &layouts, &call, &err) && !call);
    tec_module_free(m);
    rt_arena_free(&arena);
}

/* The place of a row so far away would not fit into 64 bits. */
Test(bytecode, a_row_far_outside_is_refused)
{
    static const int64_t far[] = {RT_DIM_CONST, -8358680908399640575};
    const rt_dim other[] = {dims[0], {far, 2}, dims[2]};
    program p;
    float first;

    set_up(&p);
    p.m.program.dims = other;
    tec_module *m = load(&p);
    cr_assert(m, "%s", err.text);
    cr_assert(!run(m, 2, 3, &alone, &first));
    cr_assert(strstr(err.text, "element -8358680908399640575 of 3"), "%s", err.text);
    tec_module_free(m);
}

/* ---- damage ---- */

/* A small generator of its own: the seed is all that a failure needs. */
static uint64_t next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoll(text, NULL, 10) : otherwise;
}

/* Small numbers, since most operands are. */
static void damage(program *p, uint64_t *s)
{
    int n = 1 + (int)(next(s) % 3);

    for (int i = 0; i < n; i++) {
        bool in_same = next(s) % 3 == 0;
        int32_t *code = in_same ? p->same : p->code;
        uint64_t words = in_same ? BASE_COUNT(same_code) : BASE_COUNT(main_code);
        int word = (int)(next(s) % words);

        switch (next(s) % 4) {
        case 0: code[word] = (int32_t)next(s); break;
        case 1: code[word] += 1 - (int32_t)(next(s) % 3); break;
        case 2: code[word] = code[next(s) % words]; break;
        default: code[word] = (int32_t)(next(s) % RT_N_INSTRUCTIONS); break;
        }
    }
}

Test(bytecode, damaged_code_is_refused_or_runs_within_its_limits)
{
    const tec_program_options limits = {
        .run = {.threads = 1}, .max_steps = 2000, .max_depth = 50, .max_bytes = 1 << 20};
    int64_t n = setting("TEC_MUTATIONS", 4000), refused = 0, ran = 0, failed = 0;
    uint64_t seed = (uint64_t)setting("TEC_MUTATION_SEED", 1);

    for (int64_t i = 0; i < n; i++, seed++) {
        uint64_t s = seed * 0x9e3779b97f4a7c15u + 1;
        program p;
        float first;

        clear();
        set_up(&p);
        damage(&p, &s);
        tec_module *m = load(&p);
        if (!m) {
            refused++;
            continue;
        }
        int64_t before = rt_alloc_live();
        if (run(m, (int)(next(&s) % 4), (int64_t)(next(&s) % 4), &limits, &first))
            ran++;
        else
            failed++;
        cr_assert_eq(rt_alloc_live(), before, "seed %llu leaks", (unsigned long long)seed);
        tec_module_free(m);
    }
    cr_assert_gt(refused, n / 4);
    cr_assert_gt(ran, n / 100);
    cr_assert_gt(failed, n / 1000);
}

/* The same with any byte of the section: types, counts, names. */
Test(bytecode, a_damaged_section_is_refused_or_runs_within_its_limits)
{
    const tec_program_options limits = {
        .run = {.threads = 1}, .max_steps = 2000, .max_depth = 50, .max_bytes = 1 << 20};
    int64_t n = setting("TEC_MUTATIONS", 4000), refused = 0, loaded = 0;
    uint64_t seed = (uint64_t)setting("TEC_MUTATION_SEED", 1);
    rt_bytes bytes = {0};
    program p;

    set_up(&p);
    cr_assert(rt_module_encode(&p.m, RT_SECTION_PROGRAM, &bytes, &err), "%s", err.text);
    uint8_t *damaged = malloc(bytes.n);
    for (int64_t i = 0; i < n; i++, seed++) {
        uint64_t s = seed * 0x9e3779b97f4a7c15u + 7;
        rt_arena arena = {0};
        program other = p;
        float first;

        memcpy(damaged, bytes.data, bytes.n);
        for (int k = 1 + (int)(next(&s) % 3); k > 0; k--)
            damaged[next(&s) % bytes.n] = (uint8_t)(next(&s) % 2 ? next(&s) : next(&s) % 16);
        clear();
        tec_module *m = rt_module_decode(&other.m, RT_SECTION_PROGRAM, damaged, bytes.n, &arena, &err)
                            ? load(&other)
                            : NULL;
        if (m) {
            loaded++;
            run(m, (int)(next(&s) % 4), (int64_t)(next(&s) % 4), &limits, &first);
            tec_module_free(m);
        } else {
            refused++;
            cr_assert(err.text[0], "seed %llu: refused without a reason", (unsigned long long)seed);
        }
        rt_arena_free(&arena);
    }
    free(damaged);
    rt_bytes_free(&bytes);
    cr_assert_gt(refused, n / 4);
    cr_assert_gt(loaded, n / 100);
}
