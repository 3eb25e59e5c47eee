/* schedule/api.c -- the C functions of the primitives: each builds the arguments of its step and applies it.
 * Most are rows of schedule/functions.def.
 */
#include "base/guard.h"
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
#define INT(value) {.kind = SCHED_ARG_INT, .i = (value)}
#define EXPR(value) {.kind = SCHED_ARG_EXPR, .expr = (value)}

/* Applies a step and hands out its results; they are NULL after a refusal. */
static bool step(sched *s, const char *primitive, const sched_arg *arg, int n, const char **out, int n_out)
{
    const char *const *results;
    int made = 0;
    bool ok = sched_apply(s, primitive, arg, n, &results, &made);

    for (int i = 0; out && i < n_out; i++)
        out[i] = ok && i < made ? results[i] : NULL;
    return ok;
}

/* The name of the one result of a step; NULL after a refusal. */
static const char *named(sched *s, const char *primitive, const sched_arg *arg, int n)
{
    const char *out;

    return step(s, primitive, arg, n, &out, 1) ? out : NULL;
}

/* ---- functions that pass on their parameters ---- */

#define ARGS(...) (sched_arg[]){__VA_ARGS__}, BASE_COUNT(((sched_arg[]){__VA_ARGS__}))

#define SCHED_FUNCTION(name, public, parameters, results, n_results, ...)                                    \
    bool sched_##name parameters                                                                             \
    {                                                                                                        \
        return step(s, #name, ARGS(__VA_ARGS__), results, n_results);                                        \
    }
#define SCHED_NAMING_FUNCTION(name, public, parameters, ...)                                                 \
    const char *sched_##name parameters                                                                      \
    {                                                                                                        \
        return named(s, #name, ARGS(__VA_ARGS__));                                                           \
    }
#include "schedule/functions.def"

#define SCHED_FUNCTION(name, public, parameters, results, n_results, ...)                                    \
    bool(tec_##public) parameters                                                                            \
    {                                                                                                        \
        BASE_GUARD(s ? s->view.cx : NULL, false);                                                            \
        return step(s, #name, ARGS(__VA_ARGS__), results, n_results);                                        \
    }
#define SCHED_NAMING_FUNCTION(name, public, parameters, ...)                                                 \
    const char *(tec_##public)parameters                                                                     \
    {                                                                                                        \
        BASE_GUARD(s ? s->view.cx : NULL, NULL);                                                             \
        return named(s, #name, ARGS(__VA_ARGS__));                                                           \
    }
#include "schedule/functions.def"

/* ---- the others ---- */

bool sched_split(sched *s, const char *loop, const int64_t *factor, int n, sched_tail tail, const char **out)
{
    static const char *const tails[] = {"guard", "round_up", "shift_inwards"};

    return step(s, "split", (sched_arg[]){LOOP(loop), FACTORS(factor, n), WORD(tails[tail])}, 3, out, n);
}

bool sched_annotate(sched *s, const char *loop, ir_how how)
{
    if (how == IR_PARALLEL)
        return step(s, "parallel", (sched_arg[]){LOOP(loop)}, 1, NULL, 0);
    if (how == IR_VECTORISED)
        return step(s, "vectorize", (sched_arg[]){LOOP(loop)}, 1, NULL, 0);
    if (how == IR_UNROLLED)
        return step(s, "unroll", (sched_arg[]){LOOP(loop)}, 1, NULL, 0);
    return step(s, "bind", (sched_arg[]){LOOP(loop), WORD(ir_how_text(how))}, 2, NULL, 0);
}

const char *sched_cache_read(sched *s, const char *buffer, ir_scope scope, const char *const *readers, int n)
{
    const char *out;

    return step(s, "cache_read",
                (sched_arg[]){BUFFER(buffer), WORD(ir_scope_text(scope)), BLOCKS(readers, n)}, 3, &out, 1)
               ? out
               : NULL;
}

const char *sched_cache_write(sched *s, const char *block, ir_scope scope)
{
    const char *out;

    return step(s, "cache_write", (sched_arg[]){BLOCK(block), WORD(ir_scope_text(scope)), LOOPS(NULL, 0)}, 3,
                &out, 1)
               ? out
               : NULL;
}

const char *sched_cache_write_at(sched *s, const char *block, ir_scope scope, const char *loop)
{
    const char *out;

    return step(s, "cache_write", (sched_arg[]){BLOCK(block), WORD(ir_scope_text(scope)), LOOPS(&loop, 1)}, 3,
                &out, 1)
               ? out
               : NULL;
}

bool sched_set_scope(sched *s, const char *buffer, ir_scope scope)
{
    return step(s, "set_scope", (sched_arg[]){BUFFER(buffer), WORD(ir_scope_text(scope))}, 2, NULL, 0);
}

bool sched_buffer_bind(sched *s, const char *buffer, const char *strides, int64_t offset, int align)
{
    if (!s)
        return false;
    sched_arg arg[] = {BUFFER(buffer),
                       {.kind = SCHED_ARG_TUPLE},
                       {.kind = SCHED_ARG_EXPR, .expr = ir_int(s->view.cx, offset)},
                       {.kind = SCHED_ARG_INT, .i = align}};

    return sched_read_text(s, "buffer_bind", strides, &arg[1]) && step(s, "buffer_bind", arg, 4, NULL, 0);
}

bool sched_env_threads(sched *s, const char *loop, const char *const *axis, int n, const char **out)
{
    return step(s, "env_threads", (sched_arg[]){LOOP(loop), {.kind = SCHED_ARG_WORDS, .names = axis, .n = n}},
                2, out, n);
}

bool sched_transform_layout(sched *s, const char *buffer, const char *map, const char *pad)
{
    sched_arg arg[] = {BUFFER(buffer), {.kind = SCHED_ARG_MAP}, {.kind = SCHED_ARG_EXPRS}};

    return sched_read_text(s, "transform_layout", map, &arg[1]) &&
           (!pad || sched_read_text(s, "transform_layout", pad, &arg[2])) &&
           step(s, "transform_layout", arg, 3, NULL, 0);
}
