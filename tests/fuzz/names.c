/* tests/fuzz/names.c -- definitions with axes named like symbols and like each other: print and parse keeps
 * their trees, so that a schedule of the text fits the definition in memory. */
#include <criterion/criterion.h>
#include <string.h>

#include "fuzz/draw.h"
#include "fuzz/fuzz.h"
#include "ir/text.h"
#include "lower/pass.h"
#include "schedule/sched.h"

/* Gives about two of three axes another name: that of a symbol or scalar, or one of a few that many axes get.
 * An axis never changes once it is made, which a definition of the API may give any name; here the names are
 * exchanged before anything else has seen the definition. */
static void rename_axes(const te_def *def, const ir_expr *const *axis, int count, uint64_t *state)
{
    static const char *const few[] = {"y", "n'2", "y'2", "m'2"};

    for (int i = 0; i < count; i++) {
        int k = fuzz_below(state, def->symbols.n + def->scalars.n + BASE_COUNT(few));
        const char *name = k < def->symbols.n ? ((const ir_expr *)def->symbols.at[k])->var.name
                           : k < def->symbols.n + def->scalars.n
                               ? ((const ir_expr *)def->scalars.at[k - def->symbols.n])->var.name
                               : few[k - def->symbols.n - def->scalars.n];

        if (fuzz_chance(state, 66))
            ((ir_expr *)axis[i])->var.name = name;
    }
}

static void rename_all(const te_def *def, uint64_t *state)
{
    for (int i = 0; i < def->stages.n; i++)
        for (const te_stage *stage = def->stages.at[i]; stage; stage = stage->init) {
            rename_axes(def, stage->axis, stage->n_axes, state);
            rename_axes(def, stage->reduce_axis, stage->n_reduce, state);
        }
}

/* NULL: the trace was refused. */
static sched *scheduled(tec_context *cx, const te_file *file, const target *machine, const char *trace)
{
    sched *s = sched_new(cx, te_tree(cx, file->defs.at[0]), machine);

    sched_use_intrinsics(s, &file->intrinsics);
    cr_assert(sched_replay(s, "trace", trace), "%s\n%s\n%s", sched_error(s), fuzz_te_text(cx, file), trace);
    return s;
}

static const char *lowered(tec_context *cx, const sched *s, const target *machine)
{
    const ir_program *out = lower_run(&(lower_options){.cx = cx, .target = machine}, sched_tree(s));
    const char *text = out ? ir_program_text(cx, out) : base_strdup(cx, tec_context_error(cx));

    tec_context_clear(cx);
    return text;
}

/* Gives how many steps of the text's schedule the definition in memory took. */
static int check_round(tec_context *cx, uint64_t seed)
{
    const target *machine = target_parse(cx, "llvm -mcpu=x86-64-v3");
    uint64_t state = seed;
    te_file *file = te_parse(cx, "case.te", fuzz_definition(cx, &state));

    cr_assert(file, "seed %llu: %s", (unsigned long long)seed, tec_context_error(cx));
    rename_all(file->defs.at[0], &state);
    const char *text = fuzz_te_text(cx, file);
    const te_file *again = te_parse(cx, "printed.te", text);
    cr_assert(again, "seed %llu: %s\n%s", (unsigned long long)seed, tec_context_error(cx), text);
    cr_assert_str_eq(fuzz_te_text(cx, again), text);
    cr_assert_str_eq(ir_program_text(cx, te_tree(cx, again->defs.at[0])),
                     ir_program_text(cx, te_tree(cx, file->defs.at[0])), "seed %llu\n%s",
                     (unsigned long long)seed, text);

    fuzz_case sample = {.te = text, .target = ""};
    fuzz_steps(cx, &sample, machine, &state, 6, NULL);
    tec_context_clear(cx);
    sched *first = scheduled(cx, file, machine, sample.trace),
          *second = scheduled(cx, again, machine, sample.trace);
    cr_assert_str_eq(sched_trace_text(cx, first), sched_trace_text(cx, second));
    cr_assert_str_eq(lowered(cx, first, machine), lowered(cx, second, machine), "seed %llu\n%s\n%s",
                     (unsigned long long)seed, text, sample.trace);
    return sample.accepted;
}

Test(fuzz_names, a_schedule_of_the_text_fits_the_definition)
{
    int steps = 0;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        tec_context *cx = tec_context_new();

        steps += check_round(cx, seed);
        tec_context_free(cx);
    }
    cr_assert_gt(steps, 200);
}
