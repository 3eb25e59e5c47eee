/* fuzz/tensorize.c -- random schedules with tensor intrinsics: loops are cut to the sizes of an intrinsic,
 * moved inside and tensorized.
 *
 *     y0, y1 = split(S1.y, _, 4)  x0, x1 = split(S1.x, _, 3)  reorder(y0, x0, S1.k, x1, y1)  tensorize(x1,
 *         S1.tile)
 */
#include <string.h>

#include "fuzz/stepper.h"

enum { MAX_LOOPS = 8 };

typedef struct {
    fuzz_stepper *p;
    const char *outer[MAX_LOOPS], *inner[MAX_LOOPS];
    int n_outer, n_inner;
} tiles;

/* The last n loops of the block that are (not) of a reduction; false: there are fewer. */
static bool last_loops(fuzz_stepper *p, const char *block, bool reduce, int n, const char **out)
{
    const char **loops;
    int found = 0;

    for (int i = sched_loops_of(p->s, block, &loops) - 1; i >= 0 && found < n; i--)
        if ((sched_loop_kind(p->s, loops[i]) == IR_REDUCE_ITER) == reduce)
            out[n - 1 - found++] = loops[i];
    return found == n;
}

/* A piece as long as the intrinsic asks; of any length where that is a symbol. */
static void cut(tiles *t, const char *loop, const ir_expr *extent)
{
    int64_t wanted, have;
    bool any = !ir_is_int(extent, &wanted);

    if (any)
        wanted = 1 + fuzz_pick(t->p, 8);
    bool whole = any ? fuzz_odds(t->p, 50)
                     : sched_extent(t->p->s, loop, &have) && have == wanted && fuzz_odds(t->p, 80);
    const char *const *two = whole ? NULL : fuzz_apply_split(t->p, loop, wanted);
    if (two)
        t->outer[t->n_outer++] = two[0];
    t->inner[t->n_inner++] = two ? two[1] : loop;
}

static void move_inside(tiles *t)
{
    const char **all = base_array(t->p->cx, const char *, 2 * MAX_LOOPS);

    for (int i = 0; i < t->n_outer; i++)
        all[i] = t->outer[i];
    fuzz_shuffle(t->p, t->inner, t->n_inner);
    for (int i = 0; i < t->n_inner; i++)
        all[t->n_outer + i] = t->inner[i];
    sched_arg order = {.kind = SCHED_ARG_LOOPS, .names = all, .n = t->n_outer + t->n_inner};
    if (order.n > 1)
        fuzz_apply(t->p, sched_primitive_named("reorder"), &order, 1);
}

/* At the loop, or at the block that blockize makes of it. */
static bool put(fuzz_stepper *p, const char *loop, const char *name)
{
    const char *place = loop;

    if (fuzz_odds(p, 20) && fuzz_apply_to_loop(p, "blockize", loop))
        place = fuzz_last_result(p, 0);
    sched_arg arg[] = {{.kind = SCHED_ARG_PLACE, .name = place}, {.kind = SCHED_ARG_WORD, .name = name}};
    return fuzz_apply(p, sched_primitive_named("tensorize"), arg, 2);
}

/* Cuts the loops of a block to the intrinsic's sizes, moves the inner ones together, and replaces them. */
static bool tensorize_block(fuzz_stepper *p, const char *block, const te_intrinsic *in)
{
    const te_stage *s = in->behaviour->stages.at[in->behaviour->stages.n - 1];
    const char *loops[2 * MAX_LOOPS];
    tiles t = {.p = p};

    if (s->n_axes + s->n_reduce > MAX_LOOPS || !last_loops(p, block, false, s->n_axes, loops) ||
        !last_loops(p, block, true, s->n_reduce, loops + s->n_axes))
        return false;
    for (int i = 0; i < s->n_axes + s->n_reduce; i++)
        cut(&t, loops[i], i < s->n_axes ? s->extent[i] : s->reduce_extent[i - s->n_axes]);
    if (t.n_inner == 0)
        return false;
    move_inside(&t);
    if (t.n_outer && s->n_reduce && fuzz_odds(p, 15))
        fuzz_apply_at(p, "decompose_reduction", block, t.outer[t.n_outer - 1]);
    return put(p, t.inner[0], in->name);
}

/* For each intrinsic of the case one block that it may fit. */
void fuzz_tensorize(fuzz_stepper *p)
{
    const char **blocks, *missing;
    base_vec all = {0};
    int n = sched_blocks(p->s, &blocks);
    const te_intrinsic *bits =
        strstr(p->c->te, "popcount(") ? hw_intrinsic(p->cx, "bits.1x1", sched_target(p->s), &missing) : NULL;

    for (int i = 0; i < p->intrinsics->list.n; i++)
        base_push(p->cx, &all, p->intrinsics->list.at[i]);
    if (bits)
        base_push(p->cx, &all, (void *)bits);
    for (int i = 0; i < all.n; i++) {
        const te_intrinsic *in = all.at[i];
        const char *stage = base_strndup(p->cx, in->name, strcspn(in->name, "."));

        for (int k = 0; k < n && !p->broken; k++)
            if ((in == bits || base_same(blocks[k], stage)) && sched_block(p->s, blocks[k]) &&
                tensorize_block(p, blocks[k], in))
                break;
    }
}
