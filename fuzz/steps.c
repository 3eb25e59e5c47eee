/* fuzz/steps.c -- a random schedule, step by step on the tree of the moment; what is refused is counted and
 * left out.
 *
 * First any primitives in any order. At the end loops are vectorised, unrolled and made parallel, or bound to
 * the blocks and threads of a GPU, so that every pass has work.
 */
#include <string.h>

#include "fuzz/stepper.h"
#include "te/text.h"

enum { MAX_TRIES = 90, MAX_STMTS = 400, MAX_RUNS = 100000 };

/* ---- trying ---- */

/* Told before the step is tried: a step that crashes or hangs is then in the report. */
static const char *about_to(fuzz_stepper *stepper, const sched_primitive *primitive, const sched_arg *arg,
                            int count)
{
    sched_step step = {.primitive = primitive, .n_args = count};

    memcpy(step.arg, arg, (size_t)count * sizeof *arg);
    const char *text = sched_step_text(stepper->cx, &step);
    if (stepper->watch) {
        stepper->c->trace = sched_trace_text(stepper->cx, stepper->s);
        stepper->watch->about_to(stepper->watch->user, stepper->c, text);
    }
    return text;
}

/* One step. A refused step is counted and changes nothing; one after which the program would run too long is
 * taken back. */
bool fuzz_apply(fuzz_stepper *stepper, const sched_primitive *primitive, const sched_arg *arg, int count)
{
    const ir_program *before = sched_tree(stepper->s);

    if (stepper->broken)
        return false;
    const char *text = about_to(stepper, primitive, arg, count);
    sched *undo = sched_fork(stepper->cx, stepper->s);
    bool good = sched_apply(stepper->s, primitive->name, arg, count, NULL, NULL);
    if (good && fuzz_count_runs(sched_tree(stepper->s)->body) > MAX_RUNS) {
        stepper->s = undo;
        return false;
    }
    if (base_failed(stepper->cx)) {
        tec_context_clear(stepper->cx);
        stepper->broken = true;
        stepper->c->trace =
            base_format(stepper->cx, "%s%s\n", sched_trace_text(stepper->cx, stepper->s), text);
        return false;
    }
    stepper->c->accepted += good;
    stepper->c->refused += !good;
    sched_clear(stepper->s);
    return good && sched_tree(stepper->s) != before;
}

bool fuzz_apply_to_loop(fuzz_stepper *stepper, const char *primitive, const char *loop)
{
    return fuzz_apply(stepper, sched_primitive_named(primitive),
                      &(sched_arg){.kind = SCHED_ARG_LOOP, .name = loop}, 1);
}

bool fuzz_apply_at(fuzz_stepper *stepper, const char *primitive, const char *block, const char *loop)
{
    sched_arg arg[] = {{.kind = SCHED_ARG_BLOCK, .name = block}, {.kind = SCHED_ARG_LOOP, .name = loop}};

    return fuzz_apply(stepper, sched_primitive_named(primitive), arg, 2);
}

bool fuzz_apply_word(fuzz_stepper *stepper, const char *primitive, sched_arg_kind kind, const char *name,
                     const char *word)
{
    sched_arg arg[] = {{.kind = kind, .name = name}, {.kind = SCHED_ARG_WORD, .name = word}};

    return fuzz_apply(stepper, sched_primitive_named(primitive), arg, 2);
}

const char *fuzz_last_result(const fuzz_stepper *stepper, int i)
{
    const sched_step *last =
        sched_n_steps(stepper->s) ? sched_step_at(stepper->s, sched_n_steps(stepper->s) - 1) : NULL;

    return last && i < last->n_results ? last->result[i] : NULL;
}

const char *const *fuzz_apply_split(fuzz_stepper *stepper, const char *loop, int64_t factor)
{
    int64_t f[] = {TEC_INFER, factor};
    sched_arg arg[] = {{.kind = SCHED_ARG_LOOP, .name = loop},
                       {.kind = SCHED_ARG_FACTORS, .ints = base_copy(stepper->cx, f, sizeof f), .n = 2},
                       {.kind = SCHED_ARG_WORD, .name = "guard"}};

    if (!fuzz_apply(stepper, sched_primitive_named("split"), arg, 3))
        return NULL;
    return sched_step_at(stepper->s, sched_n_steps(stepper->s) - 1)->result;
}

/* ---- the end of a schedule for a CPU ---- */

/* The innermost loop of a block, cut to a length that vectors have. */
static const char *vector_loop(fuzz_stepper *stepper, const char *loop)
{
    static const int64_t lanes[] = {4, 8, 16};
    int64_t extent;

    if (sched_extent(stepper->s, loop, &extent) && extent <= 16)
        return loop;
    const char *const *pieces = fuzz_apply_split(stepper, loop, lanes[fuzz_pick(stepper, 3)]);
    return pieces ? pieces[1] : loop;
}

/* Vectorises, unrolls and parallelises loops of a block, where that is possible. */
static void finish_block(fuzz_stepper *stepper, const char *block)
{
    const char **loops;
    int n = sched_loops_of(stepper->s, block, &loops);

    if (n && fuzz_odds(stepper, 60))
        fuzz_apply_to_loop(stepper, "vectorize",
                           vector_loop(stepper, loops[n - 1 - (n > 1 && fuzz_odds(stepper, 20))]));
    n = sched_loops_of(stepper->s, block, &loops);
    for (int i = n - 1; i >= 0 && i >= n - 3; i--) {
        int64_t extent;

        if (fuzz_odds(stepper, 40) && sched_extent(stepper->s, loops[i], &extent) && extent <= 8)
            fuzz_apply_to_loop(stepper, "unroll", loops[i]);
    }
    /* An intrinsic may have parallel loops of its own. */
    if (n && !stepper->gpu &&
        fuzz_odds(stepper, sched_is_tensorized(sched_block(stepper->s, block)->block.block) ? 80 : 30))
        fuzz_apply_to_loop(stepper, "parallel", loops[n > 1 && fuzz_odds(stepper, 25)]);
    if (n > 1 && !stepper->gpu && fuzz_odds(stepper, 15))
        fuzz_apply_to_loop(stepper, "parallel", loops[1]);
}

static void finish(fuzz_stepper *stepper)
{
    const char **blocks;
    int n = sched_blocks(stepper->s, &blocks);

    for (int i = 0; i < n; i++)
        if (fuzz_odds(stepper, stepper->gpu ? 30 : 80))
            finish_block(stepper, blocks[i]);
}

/* ---- the whole ---- */

/* Refused steps count as tries: a small tree may refuse nearly all. */
static void try_steps(fuzz_stepper *stepper, int wanted)
{
    sched_arg arg[SCHED_MAX_ARGS];
    int n;

    for (int i = 0; i < MAX_TRIES && stepper->c->accepted < wanted && !stepper->broken; i++)
        if (fuzz_count_stmts(sched_tree(stepper->s)->body) < MAX_STMTS) {
            const sched_primitive *q = fuzz_draw_step(stepper, arg, &n);

            fuzz_apply(stepper, q, arg, n);
        }
}

/* The trace of a random schedule of about `wanted` steps for the case's definition, in sample->trace. */
void fuzz_steps(tec_context *cx, fuzz_case *sample, const target *machine, uint64_t *state, int wanted,
                const fuzz_watch *watch)
{
    te_file *file = te_parse(cx, "case.te", sample->te);
    const ir_program *tree = file ? te_tree(cx, file->defs.at[0]) : NULL;

    sample->trace = "";
    sample->accepted = sample->refused = 0;
    if (!tree)
        return;
    fuzz_stepper p = {.cx = cx,
                      .state = state,
                      .s = sched_new(cx, tree, machine),
                      .c = sample,
                      .watch = watch,
                      .gpu = target_offers(machine, TARGET_THREADS),
                      .intrinsics = &file->intrinsics};
    sched_use_intrinsics(p.s, p.intrinsics);
    fuzz_import(&p, file->defs.at[0]);
    if (fuzz_odds(&p, 30))
        fuzz_roll(&p);
    if (fuzz_odds(&p, 25))
        try_steps(&p, fuzz_pick(&p, 4));
    if (fuzz_odds(&p, 85))
        fuzz_tensorize(&p);
    try_steps(&p, p.gpu ? fuzz_pick(&p, wanted) : wanted);
    if (p.gpu)
        fuzz_bind_threads(&p);
    finish(&p);
    if (!p.broken)
        sample->trace = sched_trace_text(cx, p.s);
}
