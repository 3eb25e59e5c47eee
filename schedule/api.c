/* schedule/api.c -- the C functions of the primitives: each builds the arguments of its step and applies it.
 * They are rows of schedule/functions.def; the words below are what a row writes for an argument.
 */
#include "base/guard.h"
#include "ir/build.h"
#include "schedule/state.h"
#include "tec/schedule.h"

#define LOOP(n) {.kind = SCHED_ARG_LOOP, .name = (n)}
#define BLOCK(n) {.kind = SCHED_ARG_BLOCK, .name = (n)}
#define BUFFER(n) {.kind = SCHED_ARG_BUFFER, .name = (n)}
#define WORD(n) {.kind = SCHED_ARG_WORD, .name = (n)}
#define LOOPS(p, count) {.kind = SCHED_ARG_LOOPS, .names = (p), .n = (count)}
#define BLOCKS(p, count) {.kind = SCHED_ARG_BLOCKS, .names = (p), .n = (count)}
#define FACTORS(p, count) {.kind = SCHED_ARG_FACTORS, .ints = (p), .n = (count)}

#define PLACE(n) {.kind = SCHED_ARG_PLACE, .name = (n)}
#define WORDS(p, count) {.kind = SCHED_ARG_WORDS, .names = (p), .n = (count)}
#define TAIL(tail) WORD((tail) == TEC_GUARD ? "guard" : (tail) == TEC_ROUND_UP ? "round_up" : "shift_inwards")
#define INT(value) {.kind = SCHED_ARG_INT, .i = (value)}
#define EXPR(value) {.kind = SCHED_ARG_EXPR, .expr = (value)}
#define NUMBER(value) EXPR(s ? ir_int(s->view.cx, (value)) : NULL)
/* What is given as text, as a trace writes it; NUMBERS(NULL): none. */
#define NUMBERS(text) {.kind = SCHED_ARG_EXPRS, .name = (text)}
#define FORMULA(text) {.kind = SCHED_ARG_EXPR, .name = (text) ? (text) : ""}
#define TUPLE(text) {.kind = SCHED_ARG_TUPLE, .name = (text)}
#define MAP(text) {.kind = SCHED_ARG_MAP, .name = (text)}

/* Reads an argument that a row gave as text; refuses what does not parse. */
static bool read_argument(sched *schedule, const char *primitive, sched_arg *arg)
{
    bool is_text = arg->kind == SCHED_ARG_EXPRS || arg->kind == SCHED_ARG_TUPLE ||
                   arg->kind == SCHED_ARG_MAP || (arg->kind == SCHED_ARG_EXPR && arg->name);

    if (!is_text || (!arg->name && arg->kind == SCHED_ARG_EXPRS))
        return true;
    return sched_read_text(schedule, primitive, arg->name, arg);
}

/* Applies a step and hands out its results; they are NULL after a refusal. */
static bool step(sched *schedule, const char *primitive, sched_arg *arg, int count, const char **out,
                 int n_out)
{
    const char *const *results;
    int made = 0;
    bool ok = schedule != NULL;

    for (int i = 0; ok && i < count; i++)
        ok = read_argument(schedule, primitive, &arg[i]);
    ok = ok && sched_apply(schedule, primitive, arg, count, &results, &made);

    for (int i = 0; out && i < n_out; i++)
        out[i] = ok && i < made ? results[i] : NULL;
    return ok;
}

/* The name of the one result of a step; NULL after a refusal. */
static const char *named(sched *schedule, const char *primitive, sched_arg *arg, int n)
{
    const char *out;

    return step(schedule, primitive, arg, n, &out, 1) ? out : NULL;
}

#define ARGS(...) (sched_arg[]){__VA_ARGS__}, BASE_COUNT(((sched_arg[]){__VA_ARGS__}))

#define SCHED_FUNCTION(primitive, name, public, parameters, results, n_results, ...)                         \
    bool sched_##name parameters                                                                             \
    {                                                                                                        \
        return step(s, #primitive, ARGS(__VA_ARGS__), results, n_results);                                   \
    }
#define SCHED_NAMING_FUNCTION(primitive, name, public, parameters, ...)                                      \
    const char *sched_##name parameters                                                                      \
    {                                                                                                        \
        return named(s, #primitive, ARGS(__VA_ARGS__));                                                      \
    }
#include "schedule/functions.def"

#define SCHED_FUNCTION(primitive, name, public, parameters, results, n_results, ...)                         \
    bool(tec_##public) parameters                                                                            \
    {                                                                                                        \
        BASE_GUARD(s ? s->view.cx : NULL, false);                                                            \
        return step(s, #primitive, ARGS(__VA_ARGS__), results, n_results);                                   \
    }
#define SCHED_NAMING_FUNCTION(primitive, name, public, parameters, ...)                                      \
    const char *(tec_##public)parameters                                                                     \
    {                                                                                                        \
        BASE_GUARD(s ? s->view.cx : NULL, NULL);                                                             \
        return named(s, #primitive, ARGS(__VA_ARGS__));                                                      \
    }
#include "schedule/functions.def"

bool sched_annotate(sched *schedule, const char *loop, ir_how how)
{
    switch (how) {
    case IR_PARALLEL: return sched_parallel(schedule, loop);
    case IR_VECTORISED: return sched_vectorize(schedule, loop);
    case IR_UNROLLED: return sched_unroll(schedule, loop);
    default: return sched_bind(schedule, loop, ir_how_text(how));
    }
}
