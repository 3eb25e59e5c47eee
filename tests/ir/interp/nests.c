/* tests/ir/interp/nests.c -- a reduction under random loop nests: split with tails, reordered, fused, run
 * side by side. Its init must run once for each element whatever the nest is, empty reductions and masked
 * taps included. */
#include "ir/walk.h"
#include "tests/ir/interp/run.h"

TestSuite(interp_nests, .init = open_context, .fini = close_context);

enum { MOST = 8, LOOPS = 4 };

/* Loops from the outermost inward, the values of y and k over them, and the predicate. */
typedef struct {
    uint64_t random;
    const ir_expr *var[LOOPS];
    int64_t extent[LOOPS];
    int n;
    const ir_expr *y, *k, *where;
} nest;

static int below(nest *t, int n)
{
    return (int)base_random_below(&t->random, n);
}

static const ir_expr *add_loop(nest *t, const char *name, int64_t extent)
{
    t->extent[t->n] = extent;
    return t->var[t->n++] = VAR(name);
}

/* One loop, or two whose product may be larger than n, with the predicate that makes up for it. */
static const ir_expr *cover(nest *t, const char *name, int n)
{
    int factor = 1 + below(t, 4);
    const ir_expr *outer, *inner, *value;

    if (below(t, 3) == 0)
        return add_loop(t, name, n);
    outer = add_loop(t, name, (n + factor - 1) / factor);
    inner = add_loop(t, name, factor);
    value = ADD(MUL(outer, INT(factor)), inner);
    t->where = ir_all(cx, LT(value, INT(n)), t->where);
    return value;
}

static void shuffle(nest *t)
{
    for (int i = t->n - 1; i > 0; i--) {
        int j = below(t, i + 1);
        const ir_expr *var = t->var[i];
        int64_t extent = t->extent[i];
        t->var[i] = t->var[j];
        t->extent[i] = t->extent[j];
        t->var[j] = var;
        t->extent[j] = extent;
    }
}

/* The two outermost loops as one; not where it would be empty, since then nothing says which elements there
 * are. */
static void fuse(nest *t)
{
    const ir_expr *f = VAR("f"), *a = t->var[0], *b = t->var[1], *inner = INT(t->extent[1]);
    const ir_expr **at[] = {&t->y, &t->k, &t->where};

    if (t->extent[0] * t->extent[1] == 0)
        return;
    for (int i = 0; i < 3; i++)
        if (*at[i])
            *at[i] = ir_substitute(cx, ir_substitute(cx, *at[i], a, ir_floordiv(cx, f, inner)), b,
                                   ir_floormod(cx, f, inner));
    t->var[0] = f;
    t->extent[0] *= t->extent[1];
    for (int i = 1; i + 1 < t->n; i++) {
        t->var[i] = t->var[i + 1];
        t->extent[i] = t->extent[i + 1];
    }
    t->n--;
}

/* Loops of y alone are independent: they may run side by side in any way. The innermost of k may be
 * vectorised, since the sum is declared to reorder. */
static ir_how pick_how(nest *t, int i, bool *threads)
{
    static const ir_how hows[] = {IR_SERIAL, IR_PARALLEL, IR_VTHREAD, IR_THREAD_X, IR_BLOCK_X, IR_VECTORISED};
    ir_how how = hows[below(t, BASE_COUNT(hows))];
    const char *name = t->var[i]->var.name;

    if (strcmp(name, "y") != 0)
        return i == t->n - 1 && strcmp(name, "k") == 0 && below(t, 2) ? IR_VECTORISED
               : below(t, 2)                                          ? IR_SERIAL
                                                                      : IR_UNROLLED;
    if ((how == IR_BLOCK_X && i > 0) || (how == IR_THREAD_X && *threads) ||
        (how == IR_VECTORISED && i < t->n - 1))
        return IR_SERIAL;
    *threads |= how == IR_THREAD_X;
    return how;
}

static const ir_stmt *wrap(nest *t, const ir_stmt *body)
{
    bool threads = false;

    for (int i = t->n - 1; i >= 0; i--)
        body = FOR(t->var[i], INT(t->extent[i]), pick_how(t, i, &threads), body);
    return body;
}

static ir_program *row_sums(nest *t, int height, int width, int skipped)
{
    const ir_buffer *a = BUFFER("A", BASE_I64, INT(height), INT(width)),
                    *c = BUFFER("C", BASE_I64, INT(height));
    const ir_expr *y = VAR("y"), *k = VAR("k"), *value = LOAD(a, y, k);
    const ir_combiner *sum = ir_combiner_named(cx, "sum", BASE_I64, BASE_I64);
    const ir_stmt *step = ir_update(cx, sum, &c, &y, 1, &value);
    const ir_block *b =
        block_of("C", ITERS(ITER(y, INT(height), IR_SPATIAL), ITER(k, INT(width), IR_REDUCE_ITER)),
                 STORE(c, INT(1000), y), step);
    ir_program *p;

    t->y = cover(t, "y", height);
    t->k = cover(t, "k", width);
    t->where = ir_all(cx, ir_le(cx, INT(skipped), t->k), t->where);
    shuffle(t);
    if (below(t, 3) == 0 && t->n > 1)
        fuse(t);
    p = program(wrap(t, BLOCK(b, t->where, t->y, t->k)));
    param(p, a, false);
    param(p, c, true);
    return p;
}

static void check_case(uint64_t seed)
{
    nest t = {.random = seed};
    int height = 1 + below(&t, MOST - 1), width = below(&t, MOST), skipped = below(&t, 3);
    ir_program *p = row_sums(&t, height, width, skipped);
    int64_t in[MOST * MOST], out[MOST];

    for (int i = 0; i < MOST * MOST; i++)
        in[i] = i * 31 % 17;
    if (ir_is_value(t.where, 0))
        return; /* nobody can tell any more which part of the predicate it was: such a block never runs */
    cr_assert(RUN(p, ARRAY(BASE_I64, in, height, width), ARRAY(BASE_I64, out, height)), "seed %llu: %s",
              (unsigned long long)seed, tec_context_error(cx));
    for (int y = 0; y < height; y++) {
        int64_t expected = 1000;
        for (int k = skipped; k < width; k++)
            expected += in[y * width + k];
        cr_assert_eq(out[y], expected, "seed %llu: C[%d] is %lld, expected %lld", (unsigned long long)seed, y,
                     (long long)out[y], (long long)expected);
    }
}

Test(interp_nests, a_reduction_is_the_same_under_any_nest)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        base_mark mark = base_arena_mark(cx);
        check_case(seed);
        base_arena_release(cx, mark);
    }
}
