/* schedule/toy.c -- a primitive: a loop of at most four iterations is unrolled, any other is refused. */
#include "schedule/loops.h"

const ir_program *sched_do_toy(sched_call *c)
{
    sched_path at;

    if (!sched_need_loop(c, c->arg[0].name, &at) || !sched_need_plain(c, sched_end(&at)) ||
        !sched_need_constant(c, sched_end(&at), 4))
        return NULL;
    return sched_annotate_loop(c, &at, IR_UNROLLED);
}
