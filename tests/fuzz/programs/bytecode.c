/* tests/fuzz/programs/bytecode.c -- damaged bytecode of programs that the compiler made: refused, or run
 * within its limits; nothing is left of a run.
 *
 *   TEC_MUTATIONS=1000000 build/asan/tests/test_fuzz_programs_bytecode --timeout 3600
 *
 * Case S damages program S mod N_SAMPLES: mostly whole instructions of its code (damage.h), otherwise words
 * of the code or bytes of the section. A crash prints its seed; TEC_MUTATION_SEED begins elsewhere. At the
 * end the test says how the cases ended.
 */
#include <stdlib.h>

#include "runtime/alloc.h"
#include "runtime/module.h"
#include "tests/fuzz/programs/damage.h"
#include "tests/fuzz/programs/kit.h"
#include "tests/mutate.h"

enum { N_SAMPLES = N_OWN + 18, FULL_EVERY = 1009 };

/* The longest that a case may take is that of its deadline. */
static const tec_program_options limits = {
    .run = {.threads = 1}, .max_steps = 20000, .max_depth = 200, .max_bytes = 16 << 20, .deadline = 20};
static const tec_program_options full = {
    .run = {.threads = 1}, .max_steps = 10000000, .max_bytes = 1 << 30, .deadline = 120};

typedef struct {
    sample s;
    interp_value *in[FUZZ_MAX_VALUES];
    rt_bytes section;
    int32_t *classes; /* of types */
} victim;

static struct {
    int64_t refused, ran, failed, steps, depth, bytes;
} total;

static uint64_t next(uint64_t *s)
{
    return fuzz_draw(s, UINT64_MAX);
}

/* ---- loading ---- */

/* The kernel of the whole module. */
static tec_kernel_fn *resolve(void *user, const char *symbol)
{
    const tec_module *whole = user;
    const rt_module_desc *m = rt_module_describe(whole);

    for (int i = 0; i < m->n_functions; i++)
        if (m->functions[i].symbol && strcmp(m->functions[i].symbol, symbol) == 0)
            return rt_module_code(whole, i);
    return NULL;
}

static tec_module *load(const victim *v, const rt_module_desc *m, tec_error *err)
{
    return rt_module_from_memory(m, &(rt_memory_code){.resolve = resolve, .user = v->s.module},
                                 RT_BORROW_CONSTANTS, err);
}

/* ---- running ---- */

/* By a limit, or by an error that the run found. */
static void count_end(bool ok, const tec_error *err)
{
    total.ran += ok;
    if (!ok && strstr(err->text, "steps is reached"))
        total.steps++;
    else if (!ok && strstr(err->text, "calls nest deeper"))
        total.depth++;
    else if (!ok && strstr(err->text, "bytes of memory is reached"))
        total.bytes++;
    else
        total.failed += !ok;
}

/* Whatever the code does, the run ends and frees what it took. */
static void run(const victim *v, tec_module *m, uint64_t seed)
{
    tec_object *given[FUZZ_MAX_VALUES] = {NULL}, *out[MAX_OUT] = {NULL};
    int64_t before = rt_alloc_live();
    tec_error err = {0};
    tec_program *p = tec_program_new(m, v->s.entry, seed % FULL_EVERY ? &limits : &full, &err);
    bool ok =
        p && give(p, &v->s, v->in, given) && tec_program_run(p, given, v->s.n_in, out, v->s.n_out, &err);

    count_end(ok, &err);
    cr_assert(ok || !p || err.status != TEC_TIMEOUT, "seed %llu: does not end: %s", (unsigned long long)seed,
              err.text);
    cr_assert(ok || err.status != TEC_INTERNAL, "seed %llu: %s", (unsigned long long)seed, err.text);
    take_back(out, MAX_OUT);
    take_back(given, FUZZ_MAX_VALUES);
    tec_program_free(p);
    cr_assert_eq(rt_alloc_live(), before, "seed %llu leaks", (unsigned long long)seed);
}

static void try_module(const victim *v, const rt_module_desc *m, uint64_t seed)
{
    tec_error err = {0};
    tec_module *loaded = load(v, m, &err);

    if (loaded) {
        run(v, loaded, seed);
        tec_module_free(loaded);
        return;
    }
    total.refused++;
    cr_assert(err.text[0], "seed %llu: refused without a reason", (unsigned long long)seed);
}

/* ---- damage ---- */

/* Small numbers, other words of the function and other instructions, since most words are such. */
static void damage_word(int32_t *words, int n, uint64_t *s)
{
    int at = (int)(next(s) % (uint64_t)n);

    switch (next(s) % 4) {
    case 0: words[at] = (int32_t)next(s); break;
    case 1: words[at] = (int32_t)((uint32_t)words[at] + 1 - (uint32_t)(next(s) % 3)); break;
    case 2: words[at] = words[next(s) % (uint64_t)n]; break;
    default: words[at] = (int32_t)(next(s) % RT_N_INSTRUCTIONS); break;
    }
}

/* One or two places of one function: instructions, or words without regard to where instructions begin. */
static void damage_code(const victim *v, bool whole, uint64_t seed, uint64_t *s)
{
    rt_module_desc m = *rt_module_describe(v->s.module);
    rt_routine_desc *f = malloc((size_t)m.program.n_functions * sizeof *f);
    int which = (int)(next(s) % (uint64_t)m.program.n_functions), n = m.program.functions[which].n_words;
    int32_t *words = malloc((size_t)n * sizeof *words + 1);

    memcpy(f, m.program.functions, (size_t)m.program.n_functions * sizeof *f);
    memcpy(words, f[which].words, (size_t)n * sizeof *words);
    const wound w = {.m = &m, .f = &f[which], .words = words, .classes = v->classes, .state = s};
    for (int k = next(s) % 3 ? 1 : 2; k > 0 && n > 0; k--)
        if (whole)
            damage_instruction(&w);
        else
            damage_word(words, n, s);
    f[which].words = words;
    m.program.functions = f;
    try_module(v, &m, seed);
    free(words);
    free(f);
}

static void damage_bytes(const victim *v, uint64_t seed, uint64_t *s)
{
    rt_module_desc m = *rt_module_describe(v->s.module);
    uint8_t *bytes = malloc(v->section.n);
    rt_arena arena = {0};
    tec_error err = {0};

    memcpy(bytes, v->section.data, v->section.n);
    for (int k = next(s) % 3 ? 1 : 2; k > 0; k--)
        bytes[next(s) % v->section.n] = (uint8_t)(next(s) % 2 ? next(s) : next(s) % 16);
    if (rt_module_decode(&m, RT_SECTION_PROGRAM, bytes, v->section.n, &arena, &err))
        try_module(v, &m, seed);
    else
        total.refused++;
    rt_arena_free(&arena);
    free(bytes);
}

Test(bytecode, damaged_programs_of_the_compiler_are_refused_or_run_within_limits, .timeout = 3600)
{
    int64_t n = mutation_count(3000);
    uint64_t seed = mutation_begin();
    tec_context *cx = tec_context_new();
    victim *v = base_array(cx, victim, N_SAMPLES);
    tec_error err = {0};

    for (int i = 0; i < N_SAMPLES && i < n; i++) {
        int which = (int)((seed + (uint64_t)i) % N_SAMPLES);

        v[i].s = make_sample(cx, which);
        draw_inputs(&v[i].s, (uint64_t)which, v[i].in);
        const rt_module_desc *m = rt_module_describe(v[i].s.module);
        v[i].classes = base_array(cx, int32_t, m->program.n_types);
        cr_assert(rt_type_classes(&m->program, v[i].classes, &err));
        cr_assert(rt_module_encode(m, RT_SECTION_PROGRAM, &v[i].section, &err));
    }
    for (int64_t i = 0; i < n; i++, seed++) {
        uint64_t s = seed * 0x9e3779b97f4a7c15u + 1;

        mutation_note(seed);
        const uint64_t kind = next(&s) % 8;
        if (kind < 7)
            damage_code(&v[i % N_SAMPLES], kind < 6, seed, &s);
        else
            damage_bytes(&v[i % N_SAMPLES], seed, &s);
    }
    fprintf(stderr,
            "%lld cases of %d programs: %lld refused, %lld ran to their end, %lld failed, %lld met a limit "
            "(steps %lld, depth %lld, bytes %lld)\n",
            (long long)n, N_SAMPLES, (long long)total.refused, (long long)total.ran, (long long)total.failed,
            (long long)(total.steps + total.depth + total.bytes), (long long)total.steps,
            (long long)total.depth, (long long)total.bytes);
    cr_assert(n < 1000 || (total.refused < n / 10 * 7 && total.ran > n / 10 && total.failed > n / 500 &&
                           total.steps + total.depth + total.bytes > 0));
    for (int i = 0; i < N_SAMPLES && i < n; i++) {
        rt_bytes_free(&v[i].section);
        tec_module_free(v[i].s.module);
    }
    tec_context_free(cx);
}
