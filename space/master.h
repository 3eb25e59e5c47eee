/* space/master.h -- inside the room: templates that fit every definition, one for each kind of target, and what they know of it.
 *
 *     const space_shape *shape = space_analyse(cx, base);
 *     space_new(cx, shape->base, space_cpu_template, (void *)shape);
 */
#ifndef SPACE_MASTER_H
#define SPACE_MASTER_H

#include "space/knobs.h"

/* A loop of a block's own in the default tree. */
typedef struct {
    const char *name;
    int64_t extent; /* 0: not constant */
    ir_iter_kind kind;
} space_loop;

typedef struct {
    const char *name;
    const ir_block *block;
    const space_loop *loop; /* outermost first */
    int n_loops, n_spatial, n_reduce;
    int lanes; /* of its element in one vector of the target */
} space_stage;

typedef struct {
    const sched *base;
    const space_stage *stage; /* blocks in order of execution */
    int n;
    int cores;
} space_shape;

const space_shape *space_analyse(tec_context *cx, const sched *base);

tec_template space_cpu_template;

#endif
