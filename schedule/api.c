/* schedule/api.c -- the C functions of the primitives: each builds the arguments of its step and applies it. */
#include "schedule/state.h"

#define LOOP(n)                                                                                                                  \
    {                                                                                                                            \
        .kind = SCHED_ARG_LOOP, .name = (n)                                                                                      \
    }
#define BLOCK(n)                                                                                                                 \
    {                                                                                                                            \
        .kind = SCHED_ARG_BLOCK, .name = (n)                                                                                     \
    }
#define BUFFER(n)                                                                                                                \
    {                                                                                                                            \
        .kind = SCHED_ARG_BUFFER, .name = (n)                                                                                    \
    }
#define WORD(n)                                                                                                                  \
    {                                                                                                                            \
        .kind = SCHED_ARG_WORD, .name = (n)                                                                                      \
    }
#define LOOPS(p, count)                                                                                                          \
    {                                                                                                                            \
        .kind = SCHED_ARG_LOOPS, .names = (p), .n = (count)                                                                      \
    }
#define BLOCKS(p, count)                                                                                                         \
    {                                                                                                                            \
        .kind = SCHED_ARG_BLOCKS, .names = (p), .n = (count)                                                                     \
    }
#define FACTORS(p, count)                                                                                                        \
    {                                                                                                                            \
        .kind = SCHED_ARG_FACTORS, .ints = (p), .n = (count)                                                                     \
    }

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

bool sched_split(sched *s, const char *loop, const int64_t *factor, int n, sched_tail tail, const char **out)
{
    static const char *const tails[] = {"guard", "round_up", "shift_inwards"};

    return step(s, "split", (sched_arg[]){LOOP(loop), FACTORS(factor, n), WORD(tails[tail])}, 3, out, n);
}

bool sched_cut(sched *s, const char *loop, int64_t point, const char **out)
{
    return step(s, "cut", (sched_arg[]){LOOP(loop), {.kind = SCHED_ARG_INT, .i = point}}, 2, out, 2);
}

const char *sched_fuse(sched *s, const char *const *loop, int n)
{
    const char *out;

    return step(s, "fuse", (sched_arg[]){LOOPS(loop, n)}, 1, &out, 1) ? out : NULL;
}

bool sched_reorder(sched *s, const char *const *loop, int n)
{
    return step(s, "reorder", (sched_arg[]){LOOPS(loop, n)}, 1, NULL, 0);
}

bool sched_tile(sched *s, const char *y, const char *x, int64_t fy, int64_t fx, const char **out)
{
    return step(s, "tile", (sched_arg[]){LOOP(y), LOOP(x), FACTORS(((int64_t[]){fy, fx}), 2)}, 3, out, 4);
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

bool sched_compute_at(sched *s, const char *block, const char *loop)
{
    return step(s, "compute_at", (sched_arg[]){BLOCK(block), LOOP(loop)}, 2, NULL, 0);
}

bool sched_reverse_compute_at(sched *s, const char *block, const char *loop)
{
    return step(s, "reverse_compute_at", (sched_arg[]){BLOCK(block), LOOP(loop)}, 2, NULL, 0);
}

bool sched_compute_inline(sched *s, const char *block)
{
    return step(s, "compute_inline", (sched_arg[]){BLOCK(block)}, 1, NULL, 0);
}

bool sched_reverse_inline(sched *s, const char *block)
{
    return step(s, "reverse_inline", (sched_arg[]){BLOCK(block)}, 1, NULL, 0);
}

bool sched_compute_root(sched *s, const char *block)
{
    return step(s, "compute_root", (sched_arg[]){BLOCK(block)}, 1, NULL, 0);
}

const char *sched_cache_read(sched *s, const char *buffer, ir_scope scope, const char *const *readers, int n)
{
    const char *out;

    return step(s, "cache_read", (sched_arg[]){BUFFER(buffer), WORD(ir_scope_text(scope)), BLOCKS(readers, n)}, 3, &out, 1)
               ? out
               : NULL;
}

const char *sched_cache_write(sched *s, const char *block, ir_scope scope)
{
    const char *out;

    return step(s, "cache_write", (sched_arg[]){BLOCK(block), WORD(ir_scope_text(scope)), LOOPS(NULL, 0)}, 3, &out, 1) ? out
                                                                                                                       : NULL;
}

const char *sched_cache_write_at(sched *s, const char *block, ir_scope scope, const char *loop)
{
    const char *out;

    return step(s, "cache_write", (sched_arg[]){BLOCK(block), WORD(ir_scope_text(scope)), LOOPS(&loop, 1)}, 3, &out, 1) ? out
                                                                                                                        : NULL;
}

bool sched_set_scope(sched *s, const char *buffer, ir_scope scope)
{
    return step(s, "set_scope", (sched_arg[]){BUFFER(buffer), WORD(ir_scope_text(scope))}, 2, NULL, 0);
}

const char *sched_decompose_reduction(sched *s, const char *block, const char *loop)
{
    const char *out;

    return step(s, "decompose_reduction", (sched_arg[]){BLOCK(block), LOOP(loop)}, 2, &out, 1) ? out : NULL;
}

const char *sched_rfactor(sched *s, const char *loop, int axis)
{
    const char *out;

    return step(s, "rfactor", (sched_arg[]){LOOP(loop), {.kind = SCHED_ARG_INT, .i = axis}}, 2, &out, 1) ? out : NULL;
}

bool sched_pipeline(sched *s, const char *loop, const char *const *block, const int64_t *stage, int n, bool async)
{
    sched_arg arg[] = {LOOP(loop), BLOCKS(block, n), FACTORS(stage, n), WORD(async ? "async" : "sync")};

    return step(s, "pipeline", arg, 4, NULL, 0);
}

bool sched_double_buffer(sched *s, const char *loop, bool async)
{
    return step(s, "double_buffer", (sched_arg[]){LOOP(loop), WORD(async ? "async" : "sync")}, 2, NULL, 0);
}

bool sched_storage_align(sched *s, const char *buffer, int dim, int64_t factor, int64_t offset)
{
    sched_arg arg[] = {BUFFER(buffer), {.kind = SCHED_ARG_INT, .i = dim}, {.kind = SCHED_ARG_INT, .i = factor}, {.kind = SCHED_ARG_INT, .i = offset}};

    return step(s, "storage_align", arg, 4, NULL, 0);
}

const char *sched_blockize(sched *s, const char *loop)
{
    const char *out;

    return step(s, "blockize", (sched_arg[]){LOOP(loop)}, 1, &out, 1) ? out : NULL;
}

const char *sched_tensorize(sched *s, const char *loop_or_block, const char *intrinsic)
{
    const char *out;

    return step(s, "tensorize", (sched_arg[]){{.kind = SCHED_ARG_PLACE, .name = loop_or_block}, WORD(intrinsic)}, 2, &out, 1) ? out : NULL;
}

bool sched_buffer_bind(sched *s, const char *buffer, const char *strides, int64_t offset, int align)
{
    if (!s)
        return false;
    sched_arg arg[] = {BUFFER(buffer),
                       {.kind = SCHED_ARG_TUPLE},
                       {.kind = SCHED_ARG_EXPR, .expr = ir_int(s->cx, offset)},
                       {.kind = SCHED_ARG_INT, .i = align}};

    return sched_read_text(s, "buffer_bind", strides, &arg[1]) && step(s, "buffer_bind", arg, 4, NULL, 0);
}

const char *sched_rolling_buffer(sched *s, const char *buffer, const char *loop)
{
    const char *out;

    return step(s, "rolling_buffer", (sched_arg[]){BUFFER(buffer), LOOP(loop)}, 2, &out, 1) ? out : NULL;
}

bool sched_prefetch(sched *s, const char *buffer, const char *loop, int distance)
{
    return step(s, "prefetch", (sched_arg[]){BUFFER(buffer), LOOP(loop), {.kind = SCHED_ARG_INT, .i = distance}}, 3, NULL, 0);
}

bool sched_store_predicate(sched *s, const char *block, const char *const *loop, int n)
{
    return step(s, "store_predicate", (sched_arg[]){BLOCK(block), LOOPS(loop, n)}, 2, NULL, 0);
}

bool sched_env_threads(sched *s, const char *loop, const char *const *axis, int n, const char **out)
{
    return step(s, "env_threads", (sched_arg[]){LOOP(loop), {.kind = SCHED_ARG_WORDS, .names = axis, .n = n}}, 2, out, n);
}

bool sched_transform_layout(sched *s, const char *buffer, const char *map, const char *pad)
{
    sched_arg arg[] = {BUFFER(buffer), {.kind = SCHED_ARG_MAP}, {.kind = SCHED_ARG_EXPRS}};

    return sched_read_text(s, "transform_layout", map, &arg[1]) && (!pad || sched_read_text(s, "transform_layout", pad, &arg[2])) &&
           step(s, "transform_layout", arg, 3, NULL, 0);
}

bool sched_pragma(sched *s, const char *loop_or_block, const char *key, const ir_expr *value)
{
    return step(
        s, "pragma",
        (sched_arg[]){{.kind = SCHED_ARG_PLACE, .name = loop_or_block}, WORD(key), {.kind = SCHED_ARG_EXPR, .expr = value}}, 3,
        NULL, 0);
}
