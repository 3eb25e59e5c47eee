/* space/work.c -- whether a nest pays in parallel, and into how many tasks it is cut: one rule for all
 * stages, from their work and the cost of a fork.
 *
 *     512 rows of 1000 maxima    96,000 cycles: parallel, over the rows
 *     a product of 1 x 512 x 10     160 cycles: on one thread
 *
 * The number of threads plays no part: a module runs on other machines than the one that builds it. A
 * parallel loop hands each thread a range of its tasks, so small tasks cost little, and too few leave threads
 * idle.
 */
#include <math.h>

#include "ir/walk.h"
#include "space/master.h"

enum {
    /* starting threads and waiting for them takes as long as this work, about a microsecond */
    FORK_CYCLES = 4096,
    TASK_CYCLES = 512, /* pieces of less than this are not worth their calls */
    MEMORY_CYCLES = 2, /* for one vector that is read or written, from the second cache */
    MATH_CYCLES = 16,  /* for one vector of roots, exponentials, ... */
    FORKS = 4          /* a small part of a nest is worth a fork if it takes so many times as long */
};

typedef struct {
    ir_walk w;
    int loads, ops, math;
} cost;

/* A load is not looked into: the arithmetic of its index is folded into addresses. */
static bool count_node(ir_walk *walk, const ir_expr *expr)
{
    cost *c = (cost *)walk;

    c->loads += expr->op == IR_LOAD;
    c->math += expr->op >= IR_SQRT && expr->op <= IR_ATANH;
    c->ops += ir_is_op(expr->op);
    return expr->op != IR_LOAD;
}

/* Of one vector of a stage that is not tiled. Of results in pieces one alternative counts. */
static double cycles_of_vector(tec_context *cx, const space_stage *stage)
{
    cost c = {.w = {.expr = count_node, .cx = cx}};

    ir_walk_stmt(&c.w, stage->block->body);
    if (stage->pieces) {
        c.loads -= stage->pieces->n;
        c.ops -= 2 * stage->pieces->n; /* select, comparison */
    }
    return MEMORY_CYCLES * (c.loads + 1) + 0.5 * (c.ops - c.math) + MATH_CYCLES * c.math;
}

/* Only to decide whether threads pay and how many tasks there should be, so rough is enough. */
double space_cycles(tec_context *cx, const space_shape *shape, const space_stage *stage)
{
    const target *t = sched_target(shape->base);
    double elements = 1, ports = t && t->fma_ports ? t->fma_ports : 1;

    for (int i = 0; i < stage->n_loops; i++) {
        if (stage->loop[i].extent == 0)
            return INFINITY;
        elements *= (double)stage->loop[i].extent;
    }
    return elements / stage->lanes * (stage->tiled ? 1 / ports : cycles_of_vector(cx, stage));
}

bool space_pays_in_parallel(const space_stage *stage)
{
    return stage->cycles >= FORK_CYCLES;
}

bool space_is_worth_forks(double cycles)
{
    return cycles >= FORKS * FORK_CYCLES;
}

/* Tasks must outnumber threads for balance, and each must be long enough to pay for its start. An example: 4
 * tasks of 100,000 cycles in all. 64/4 = 16 pieces of each are wanted, 100000/512/4 = 48 would pay: 16. */
int64_t space_more_tasks(const space_stage *stage, int64_t tasks)
{
    double most = stage->cycles / TASK_CYCLES / (double)tasks,
           wanted = ceil((double)SPACE_TASKS / (double)tasks);

    if (!space_pays_in_parallel(stage) || most < 1)
        return 1;
    return (int64_t)(wanted < most ? wanted : most);
}

/* A power of two, so that vectors divide it. An example: the sum of float32 costs 4.5 cycles for a vector of
 * 16 lanes, and half of 4 forks are 8192 cycles: 1820 vectors have 29,127 terms, so a task takes 32,768. */
int64_t space_terms_of_task(tec_context *cx, const space_stage *stage)
{
    double least = FORKS * FORK_CYCLES / 2 / cycles_of_vector(cx, stage) * stage->lanes;
    int64_t terms = 1;

    while ((double)terms < least)
        terms *= 2;
    return terms;
}
