/* space/stream.c -- operands that pass through a core: a tiled stage reads each element once, or once for a
 * few rows at a time of a number of rows that only the call knows.
 *
 *     C[x] sum= A[k] * B[k, x]        A is in the first cache; all of B passes through the core once
 *
 * Such a product takes as long as its operand needs to arrive. Caches guess what is read next, but the guess
 * is late, or ends at the end of a page. So each step of the reduction asks for what a later step reads:
 *
 *     for k.0 @prefetch.B(ahead) { C'[0..8 vectors] sum= A[k.0] * B[k.0, ..] }
 *
 * On a Zen 5 server, for 4 MiB in the third cache: 41 us without, 34 us with it, of 32 us at its bandwidth.
 * A product with one row has one step in the loop: the core fetches early by the address of the instruction
 * that reads, and forgets those of long loops.
 */
#include "space/loads.h"
#include "space/master.h"

typedef enum { READ_OFTEN, READ_ONCE, READ_FOR_ROWS } use;

/* How a load moves with the loops of the sums: with all of them, so that no element is read twice, or with
 * all but loops of unknown extent, where it moves with the lanes. For C[y, x] sum= A[y, k] * B[k, x] with
 * 1 y, B moves with all; with n y, B moves with all but y; with 64 y, B is read 64 times. */
static use use_of(tec_context *cx, const space_tiled *tiled, const ir_expr *load)
{
    const space_stage *sums = tiled->sums;
    use found = READ_ONCE;

    for (int i = 0; i < sums->n_loops; i++) {
        const space_loop *loop = &sums->loop[i];
        const ir_iter *iter = space_iter_named(sums->block, loop->iter);

        if (loop->extent == 1 || (iter && space_load_uses(cx, load, iter->var)))
            continue;
        if (loop->extent > 1 || loop->kind == IR_REDUCE_ITER || base_same(loop->iter, tiled->lane))
            return READ_OFTEN;
        found = READ_FOR_ROWS;
    }
    return found;
}

/* Whether a cache of so many bytes is too small. A size that is not constant may be that large. */
static bool passes_through(const ir_buffer *buffer, int64_t cache)
{
    int64_t bytes = base_dtype_bytes(buffer->dtype), extent;

    for (int d = 0; d < buffer->n && bytes <= cache; d++) {
        if (!ir_is_int(buffer->shape[d], &extent) || extent > cache)
            return true;
        bytes *= extent;
    }
    return bytes > cache;
}

static bool is_param(const ir_program *tree, const ir_buffer *buffer)
{
    for (int i = 0; i < tree->n_params; i++)
        if (tree->params[i].buffer == buffer)
            return true;
    return false;
}

/* The first parameter that passes through, of those that the sums read. Not where lanes run along the
 * reduction: there each vector of a column reads a row of its own, in pieces far apart. */
void space_find_streamed(tec_context *cx, const space_shape *shape, space_tiled *tiled)
{
    const target *machine = sched_target(shape->base);

    if (!machine || !(machine->offers & TARGET_CACHES) || !tiled->n_reduce || tiled->on_reduction)
        return;
    for (int i = 0; i < tiled->n_loads && !tiled->streamed; i++) {
        const ir_buffer *buffer = tiled->load[i]->load.buffer;
        use found = use_of(cx, tiled, tiled->load[i]);

        if (found == READ_OFTEN || !is_param(sched_tree(shape->base), buffer) ||
            !passes_through(buffer, machine->l1_bytes))
            continue;
        tiled->streamed = buffer;
        tiled->streamed_once = found == READ_ONCE;
    }
}

/* The start is the first distance that is long enough. With one row half a KiB: about what a core uses up
 * while a line comes from the third cache; a step of eight vectors of 16 floats is that long. With several
 * rows the operand comes from further away, as others have passed since: 2 KiB. With a distance of 4 KiB, on
 * Sapphire Rapids, 15 rows take 1.2 times as long, and 2 to 4 rows as long as with 2 KiB. */
int64_t space_pick_ahead(tec_knobs *knobs, const space_stage *stage, int64_t step_bytes)
{
    static const int64_t steps[] = {0, 1, 2, 4, 8};
    int64_t near = stage->tiled->streamed_once ? 512 : 2048;
    int start = 1;

    while (start < BASE_COUNT(steps) - 1 && steps[start] * step_bytes < near)
        start++;
    return space_pick(knobs, stage, "ahead", steps, BASE_COUNT(steps), steps[start]);
}

/* An operand that the second cache cannot hold is read from both ends in turns. Behind a pass from the first
 * panel to the last one, the last panels are in that cache, and the next pass begins with them. A loop that
 * does nothing but read 4 MiB takes 30.5 us so, and 32.4 us always forwards, on a core with 1 MiB of second
 * cache. Programs with a loop call the kernel again and again; the others lose nothing.
 *
 * An operand that several rows read is read in this way too, since the loop over the rows stands inside of
 * the loop over the panels. A measurement on a core with 2 MiB of second cache, with 2.4 MB of weights: tiles
 * for several rows take 1.2 times as long for one row as the kernel for one row alone does, and 1.7 to 1.9
 * times as long where they always read forwards. */
bool space_alternate(sched *schedule, const space_tiled *tiled, const char *loop)
{
    const target *machine = sched_target(schedule);

    return !tiled->streamed || !passes_through(tiled->streamed, machine->l2_bytes) ||
           sched_pragma(schedule, loop, "alternate", ir_int(sched_context(schedule), 1));
}
