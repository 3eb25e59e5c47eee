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
static bool last_loops(fuzz_stepper *stepper, const char *block, bool reduce, int n, const char **out)
{
    const char **loops;
    int found = 0;

    for (int i = sched_loops_of(stepper->s, block, &loops) - 1; i >= 0 && found < n; i--)
        if ((sched_loop_kind(stepper->s, loops[i]) == IR_REDUCE_ITER) == reduce)
            out[n - 1 - found++] = loops[i];
    return found == n;
}

/* A piece as long as the intrinsic asks; of any length where that is a symbol. */
static void cut(tiles *self, const char *loop, const ir_expr *extent)
{
    int64_t wanted, have;
    bool any = !ir_is_int(extent, &wanted);

    if (any)
        wanted = 1 + fuzz_pick(self->p, 8);
    bool whole = any ? fuzz_odds(self->p, 50)
                     : sched_extent(self->p->s, loop, &have) && have == wanted && fuzz_odds(self->p, 80);
    const char *const *two = whole ? NULL : fuzz_apply_split(self->p, loop, wanted);
    if (two)
        self->outer[self->n_outer++] = two[0];
    self->inner[self->n_inner++] = two ? two[1] : loop;
}

static void move_inside(tiles *self)
{
    const char **all = base_array(self->p->cx, const char *, 2 * MAX_LOOPS);

    for (int i = 0; i < self->n_outer; i++)
        all[i] = self->outer[i];
    fuzz_shuffle(self->p, self->inner, self->n_inner);
    for (int i = 0; i < self->n_inner; i++)
        all[self->n_outer + i] = self->inner[i];
    sched_arg order = {.kind = SCHED_ARG_LOOPS, .names = all, .n = self->n_outer + self->n_inner};
    if (order.n > 1)
        fuzz_apply(self->p, sched_primitive_named("reorder"), &order, 1);
}

/* At the loop, or at the block that blockize makes of it. */
static bool put(fuzz_stepper *stepper, const char *loop, const char *name)
{
    const char *place = loop;

    if (fuzz_odds(stepper, 20) && fuzz_apply_to_loop(stepper, "blockize", loop))
        place = fuzz_last_result(stepper, 0);
    sched_arg arg[] = {{.kind = SCHED_ARG_PLACE, .name = place}, {.kind = SCHED_ARG_WORD, .name = name}};
    return fuzz_apply(stepper, sched_primitive_named("tensorize"), arg, 2);
}

/* Cuts the loops of a block to the intrinsic's sizes, moves the inner ones together, and replaces them. */
static bool tensorize_block(fuzz_stepper *stepper, const char *block, const te_intrinsic *in)
{
    const te_stage *stage = in->behaviour->stages.at[in->behaviour->stages.n - 1];
    const char *loops[2 * MAX_LOOPS];
    tiles t = {.p = stepper};

    if (stage->n_axes + stage->n_reduce > MAX_LOOPS ||
        !last_loops(stepper, block, false, stage->n_axes, loops) ||
        !last_loops(stepper, block, true, stage->n_reduce, loops + stage->n_axes))
        return false;
    for (int i = 0; i < stage->n_axes + stage->n_reduce; i++)
        cut(&t, loops[i], i < stage->n_axes ? stage->extent[i] : stage->reduce_extent[i - stage->n_axes]);
    if (t.n_inner == 0)
        return false;
    move_inside(&t);
    if (t.n_outer && stage->n_reduce && fuzz_odds(stepper, 15))
        fuzz_apply_at(stepper, "decompose_reduction", block, t.outer[t.n_outer - 1]);
    return put(stepper, t.inner[0], in->name);
}

/* For each intrinsic of the case one block that it may fit. */
void fuzz_tensorize(fuzz_stepper *stepper)
{
    const char **blocks, *missing;
    base_vec all = {0};
    int n = sched_blocks(stepper->s, &blocks);
    const te_intrinsic *bits = strstr(stepper->c->te, "popcount(")
                                   ? hw_intrinsic(stepper->cx, "bits.1x1", sched_target(stepper->s), &missing)
                                   : NULL;

    for (int i = 0; i < stepper->intrinsics->list.n; i++)
        base_push(stepper->cx, &all, stepper->intrinsics->list.at[i]);
    if (bits)
        base_push(stepper->cx, &all, (void *)bits);
    for (int i = 0; i < all.n; i++) {
        const te_intrinsic *in = all.at[i];
        const char *stage = base_strndup(stepper->cx, in->name, strcspn(in->name, "."));

        for (int k = 0; k < n && !stepper->broken; k++)
            if ((in == bits || base_same(blocks[k], stage)) && sched_block(stepper->s, blocks[k]) &&
                tensorize_block(stepper, blocks[k], in))
                break;
    }
}
