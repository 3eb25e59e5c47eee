/* space/master.c -- the spaces that follow from a definition: one template for each kind of target. */
#include "space/master.h"

static const space_loop *read_loops(tec_context *cx, const sched *s, space_stage *g)
{
    const char **name;
    int n = sched_loops_of(s, g->name, &name);
    space_loop *loop = base_array(cx, space_loop, n);

    for (int i = 0; i < n; i++) {
        loop[i] = (space_loop){.name = name[i], .kind = sched_loop_kind(s, name[i])};
        if (!sched_extent(s, name[i], &loop[i].extent))
            loop[i].extent = 0;
        g->n_spatial += loop[i].kind == IR_SPATIAL;
        g->n_reduce += loop[i].kind == IR_REDUCE_ITER;
    }
    g->n_loops = n;
    return loop;
}

const space_shape *space_analyse(tec_context *cx, const sched *base)
{
    const target *t = sched_target(base);
    const char **name;
    int n = sched_blocks(base, &name);
    space_stage *stage = base_array(cx, space_stage, n);
    space_shape *shape = base_new(cx, space_shape);

    for (int i = 0; i < n; i++) {
        const ir_block *b = sched_block(base, name[i])->block.block;

        stage[i] = (space_stage){.name = name[i], .block = b};
        stage[i].lanes = t && b->n_writes ? target_lanes(t, b->writes[0].buffer->dtype) : 1;
        stage[i].loop = read_loops(cx, base, &stage[i]);
    }
    *shape = (space_shape){.base = base, .stage = stage, .n = n, .cores = t ? t->num_cores : 1};
    return shape;
}

space *space_master(tec_context *cx, const ir_program *tree, const target *t)
{
    if (!tree || base_failed(cx))
        return NULL;
    const space_shape *shape = space_analyse(cx, sched_new(cx, tree, t));

    return space_new(cx, shape->base, space_cpu_template, (void *)shape);
}
