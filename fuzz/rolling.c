/* fuzz/rolling.c -- chains of stencils whose loops keep a window: what a block reads is computed at one of
 * its loops, and rolled there.
 *
 *     compute_at(S1, S2.x)    rolling_buffer(S1, S2.x)
 */
#include "fuzz/stepper.h"

/* Both steps, or none of them. */
static bool roll(fuzz_stepper *stepper, const char *producer, const char *buffer, const char *loop)
{
    sched_arg arg[] = {{.kind = SCHED_ARG_BUFFER, .name = buffer}, {.kind = SCHED_ARG_LOOP, .name = loop}};
    sched *undo = sched_fork(stepper->cx, stepper->s);

    if (fuzz_apply_at(stepper, "compute_at", producer, loop)) {
        if (fuzz_apply(stepper, sched_primitive_named("rolling_buffer"), arg, 2))
            return true;
        stepper->c->accepted--;
    }
    if (!stepper->broken)
        stepper->s = undo;
    return false;
}

/* Tries rolling_buffer on the blocks that `block` reads from, at loops in random order, until one is
 * accepted. */
static void roll_into(fuzz_stepper *stepper, const char *block)
{
    const char **producers, **loops;
    int n = sched_producers_of(stepper->s, block, &producers);

    for (int i = 0; i < n && !stepper->broken; i++) {
        const ir_stmt *stmt = sched_block(stepper->s, producers[i]);
        int n_loops = sched_loops_of(stepper->s, block, &loops),
            first = n_loops ? fuzz_pick(stepper, n_loops) : 0;

        for (int k = 0; stmt && stmt->block.block->n_writes == 1 && k < n_loops && !stepper->broken; k++)
            if (roll(stepper, producers[i], stmt->block.block->writes[0].buffer->name,
                     loops[(first + k) % n_loops]))
                break;
    }
}

void fuzz_roll(fuzz_stepper *stepper)
{
    const char **blocks;
    int n = sched_blocks(stepper->s, &blocks);

    for (int i = n - 1; i >= 0 && !stepper->broken; i--)
        if (sched_block(stepper->s, blocks[i]))
            roll_into(stepper, blocks[i]);
}
