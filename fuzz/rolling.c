/* fuzz/rolling.c -- chains of stencils whose loops keep a window: what a block reads is computed at one of
 * its loops, and rolled there.
 *
 *     compute_at(S1, S2.x)    rolling_buffer(S1, S2.x)
 */
#include "fuzz/stepper.h"

/* Both steps, or none of them. */
static bool roll(fuzz_stepper *p, const char *producer, const char *buffer, const char *loop)
{
    sched_arg arg[] = {{.kind = SCHED_ARG_BUFFER, .name = buffer}, {.kind = SCHED_ARG_LOOP, .name = loop}};
    sched *undo = sched_fork(p->cx, p->s);

    if (fuzz_apply_at(p, "compute_at", producer, loop)) {
        if (fuzz_apply(p, sched_primitive_named("rolling_buffer"), arg, 2))
            return true;
        p->c->accepted--;
    }
    if (!p->broken)
        p->s = undo;
    return false;
}

static void roll_into(fuzz_stepper *p, const char *block)
{
    const char **producers, **loops;
    int n = sched_producers_of(p->s, block, &producers);

    for (int i = 0; i < n && !p->broken; i++) {
        const ir_stmt *s = sched_block(p->s, producers[i]);
        int n_loops = sched_loops_of(p->s, block, &loops), first = n_loops ? fuzz_pick(p, n_loops) : 0;

        for (int k = 0; s && s->block.block->n_writes == 1 && k < n_loops && !p->broken; k++)
            if (roll(p, producers[i], s->block.block->writes[0].buffer->name, loops[(first + k) % n_loops]))
                break;
    }
}

void fuzz_roll(fuzz_stepper *p)
{
    const char **blocks;
    int n = sched_blocks(p->s, &blocks);

    for (int i = n - 1; i >= 0 && !p->broken; i--)
        if (sched_block(p->s, blocks[i]))
            roll_into(p, blocks[i]);
}
