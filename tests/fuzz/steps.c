/* tests/fuzz/steps.c -- damaged schedules: the steps of the tests and the pages for definitions that are as
 * they were, with steps left out, steps of other schedules, and steps that are drawn from the signatures of
 * the primitives with names of the tree.
 *
 *   TEC_MUTATIONS=1000000 TEC_MUTATION_SEED=7 build/asan/tests/test_fuzz_steps --jobs 1 --timeout 9000
 *
 * Each step is accepted or refused with a reason, within seconds and megabytes. What the schedule says at its
 * end gives the same tree again. At the end the test says how many steps there were, how many got behind the
 * parser, and how many were accepted.
 */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ir/text.h"
#include "schedule/primitive.h"
#include "te/text.h"
#include "tests/damage.h"

enum { MOST_SECONDS = 10, MOST_MEGABYTES = 2048, MOST_STEPS = 24 };

static base_vec steps; /* char *: lines of all schedules */

static void learn_steps(tec_context *cx, const char *text)
{
    const char *at = strstr(text, "\nschedule ");

    learn(cx, text);
    while (at && (at = strchr(at + 1, '\n')) && at[1] && at[1] != '}') {
        size_t n = strcspn(at + 1, "\n");

        if (memchr(at + 1, '(', n))
            base_push(cx, &steps, base_strndup(cx, at + 1, n));
    }
}

static void read_texts(tec_context *cx)
{
    static const char *const from[] = {"/tests/error/*.te", "/tests/regress/*.te", "/docs/schedule.d/*.te"};

    for (int i = 0; i < BASE_COUNT(from); i++) {
        glob_t g;

        cr_assert_eq(glob(base_format(cx, "%s%s", TEC_SOURCE_DIR, from[i]), 0, NULL, &g), 0, "no %s",
                     from[i]);
        for (size_t k = 0; k < g.gl_pathc; k++) {
            const char *text = base_read_file(cx, g.gl_pathv[k], NULL);

            cr_assert(text, "%s", tec_context_error(cx));
            if (!strstr(g.gl_pathv[k], "too-large")) /* seconds each */
                learn_steps(cx, text);
        }
        globfree(&g);
    }
}

/* ---- steps ---- */

static const char *some_block(const sched *s)
{
    const char **block;
    int n = sched_blocks(s, &block);

    return n ? block[below(n)] : "C";
}

static const char *some_loop(const sched *s)
{
    const char **loop;
    int n = sched_loops_of(s, some_block(s), &loop);

    return n ? loop[below(n)] : "C.i";
}

static const char *some_int(tec_context *cx)
{
    static const char *const rare[] = {"0", "-1", "9223372036854775807", "4611686018427387904", "1000000"};

    return below(20) ? base_format(cx, "%d", 1 + below(below(3) ? 8 : 64)) : rare[below(BASE_COUNT(rare))];
}

static const char *some_word(tec_context *cx)
{
    static const char *const usual[] = {"guard",       "round_up",   "shift_inwards", "local",   "shared",
                                        "global",      "blockIdx.x", "threadIdx.x",   "vthread", "sync",
                                        "threadIdx.y", "async",      "unroll",        "stack"};

    (void)cx;
    return below(10) ? usual[below(BASE_COUNT(usual))] : words.at[below(words.n)];
}

static const char *some_expr(tec_context *cx)
{
    static const char *const exprs[] = {
        "n",   "n * 4", "0",         "64", "i",     "i * 8 + j", "i // 4", "j % 4", "select(n > 3, 1, 2)",
        "0.0", "true",  "min(i, j)", "-i", "i + n", "f32(1)",    "(i",     "A[i]"};

    return below(8) ? exprs[below(BASE_COUNT(exprs))] : some_int(cx);
}

/* Some texts between commas. */
static const char *listed(tec_context *cx, const sched *s, int most,
                          const char *(*one)(tec_context *cx, const sched *s))
{
    base_text t = {0};

    for (int i = below(most) + 1; i > 0; i--)
        base_addf(cx, &t, "%s%s", t.n ? ", " : "", one(cx, s));
    return base_text_str(cx, &t);
}

static const char *a_loop(tec_context *cx, const sched *s)
{
    (void)cx;
    return some_loop(s);
}
static const char *a_block(tec_context *cx, const sched *s)
{
    (void)cx;
    return some_block(s);
}
static const char *a_factor(tec_context *cx, const sched *s)
{
    (void)s;
    return below(4) ? some_int(cx) : "_";
}
static const char *a_word(tec_context *cx, const sched *s)
{
    (void)s;
    return some_word(cx);
}
static const char *an_expr(tec_context *cx, const sched *s)
{
    (void)s;
    return some_expr(cx);
}

/* An argument of the kind that the signature says. */
static const char *some_arg(tec_context *cx, const sched *s, const char *kind, size_t n)
{
    static const char *const kinds[] = {
#define X(NAME, text) text,
        SCHED_ARG_LIST(X)
#undef X
    };
    int k = 0;

    while (k < BASE_COUNT(kinds) && (strlen(kinds[k]) != n || strncmp(kinds[k], kind, n) != 0))
        k++;
    switch ((sched_arg_kind)k) {
    case SCHED_ARG_LOOP: return some_loop(s);
    case SCHED_ARG_LOOPS: return listed(cx, s, 4, a_loop);
    case SCHED_ARG_BLOCK: return some_block(s);
    case SCHED_ARG_BLOCKS: return listed(cx, s, 3, a_block);
    case SCHED_ARG_PLACE: return below(3) ? some_loop(s) : some_block(s);
    case SCHED_ARG_BUFFER: return below(3) ? some_block(s) : words.at[below(words.n)];
    case SCHED_ARG_FACTORS: return listed(cx, s, 3, a_factor);
    case SCHED_ARG_INT: return some_int(cx);
    case SCHED_ARG_WORD: return some_word(cx);
    case SCHED_ARG_WORDS: return listed(cx, s, 3, a_word);
    case SCHED_ARG_EXPR: return some_expr(cx);
    case SCHED_ARG_EXPRS: return listed(cx, s, 2, an_expr);
    case SCHED_ARG_TUPLE: return base_format(cx, "(%s)", listed(cx, s, 3, an_expr));
    case SCHED_ARG_MAP:
        return base_format(cx, "(%s) -> (%s)",
                           below(2)   ? "i, j"
                           : below(2) ? "i"
                                      : "i, j, k",
                           listed(cx, s, 3, an_expr));
    }
    return "C";
}

static const char *drawn_step(tec_context *cx, const sched *s)
{
    const sched_primitive *p = &sched_primitives[below(sched_n_primitives)];
    base_text t = {0};

    base_addf(cx, &t, "%s(", p->name);
    for (const char *w = p->signature; *w;) {
        size_t word = strcspn(w, " ="), all = strcspn(w, " ");

        if (word == all || below(2))
            base_addf(cx, &t, "%s%s", w > p->signature ? ", " : "", some_arg(cx, s, w, word));
        w += all;
        w += strspn(w, " ");
    }
    base_add(cx, &t, below(50) ? ")" : "");
    return base_text_str(cx, &t);
}

/* ---- runs ---- */

static struct {
    int64_t steps, parsed, accepted;
} total;

/* One step, by the table of primitives: a refusal names its primitive. */
static void step(tec_context *cx, sched *s, const char *line)
{
    const char *begin =
        strchr(line, '=') && strchr(line, '=') < strchr(line, '(') ? strchr(line, '=') + 1 : line;
    const char *name = begin + strspn(begin, " ");

    total.steps++;
    if (sched_replay(s, "damaged.te", line)) {
        total.parsed++;
        total.accepted++;
        return;
    }
    cr_assert(sched_error(s), "no reason for %s", line);
    size_t n = strcspn(name, "(");
    total.parsed += strstr(sched_error(s), base_format(cx, ": %.*s(", (int)n, name)) != NULL;
    sched_clear(s);
}

/* The lines of a schedule with others between them, for a definition that it was written for. */
static void schedule(tec_context *cx, sched *s, const char *trace)
{
    int n = 0;

    for (const char *at = trace; at && *at && n < MOST_STEPS;
         at += strcspn(at, "\n"), at += *at == '\n', n++) {
        char *line = base_strndup(cx, at, strcspn(at, "\n"));
        int how = below(20);

        if (!strchr(line, '('))
            continue;
        for (; how < 8 && n < MOST_STEPS && below(2); n++)
            step(cx, s, below(4) ? drawn_step(cx, s) : steps.at[below(steps.n)]);
        if (how != 19)
            step(cx, s, how < 14 ? line : damage_token(cx, line));
    }
    for (; n < 3; n++)
        step(cx, s, drawn_step(cx, s));
}

/* The steps that were accepted give the same tree, by their text. */
static void replay(tec_context *cx, const sched *s, const ir_program *tree, const target *t,
                   const te_intrinsics *intrinsics)
{
    sched *again = sched_new(cx, tree, t);

    sched_use_intrinsics(again, intrinsics);
    const char *trace = sched_trace_text(cx, s);
    cr_assert(sched_replay(again, "trace", trace), "%s\n%s", sched_error(again), trace);
    cr_assert_str_eq(ir_program_text(cx, sched_tree(again)), ir_program_text(cx, sched_tree(s)), "%s", trace);
}

static void one(const target *t)
{
    uint64_t start = seed;
    tec_context *cx = tec_context_new();
    const char *text = texts.at[below(texts.n)];
    clock_t begin = clock();

    mutation_note(start);
    te_file *f = te_parse(cx, "whole.te", text);
    const te_def *d = f && f->defs.n ? f->defs.at[below(f->defs.n)] : NULL;
    const ir_program *tree = d ? te_tree(cx, d) : NULL;
    if (tree) {
        sched *s = sched_new(cx, tree, t);
        const char *trace = base_dict_get(&f->schedules, d->name);

        if (getenv("TEC_MUTATION_SHOW"))
            fprintf(stderr, "---- seed %llu\n%s\n", (unsigned long long)start, text);
        sched_use_intrinsics(s, &f->intrinsics);
        schedule(cx, s, trace ? trace : "");
        if (!below(8))
            replay(cx, s, tree, t, &f->intrinsics);
    }
    cr_assert_neq(tec_context_status(cx), TEC_INTERNAL, "seed %llu: %s\n%s", (unsigned long long)start,
                  tec_context_error(cx), text);
    clock_t took = (clock() - begin) / CLOCKS_PER_SEC;
    cr_assert(took <= MOST_SECONDS, "seed %llu takes %d s\n%s", (unsigned long long)start, (int)took, text);
    cr_assert(base_used(cx) >> 20 <= MOST_MEGABYTES, "seed %llu takes %zu MB\n%s", (unsigned long long)start,
              base_used(cx) >> 20, text);
    tec_context_free(cx);
}

Test(steps, every_step_is_accepted_or_refused_with_a_reason)
{
    int64_t n = mutation_count(1500);
    tec_context *cx = tec_context_new();

    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    seed = mutation_begin();
    read_texts(cx);
    for (int64_t i = 0; i < n; i++)
        one(t);
    fprintf(stderr, "%lld schedules of %lld steps: %.1f %% behind the parser, %.1f %% accepted\n",
            (long long)n, (long long)total.steps, 100.0 * (double)total.parsed / (double)total.steps,
            100.0 * (double)total.accepted / (double)total.steps);
    cr_assert(total.parsed * 10 >= total.steps * 3, "too few steps get behind the parser");
    tec_context_free(cx);
}
