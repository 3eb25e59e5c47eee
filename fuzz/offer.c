/* fuzz/offer.c -- what a loop tree offers to random steps: its loops, blocks and buffers, and how large it
 * is. */
#include "fuzz/stepper.h"

enum { MAX_RUNS = 1 << 30, SYMBOL_RUNS = 16 };

static void list_loops(tec_context *cx, const ir_stmt *stmt, base_vec *out)
{
    if (stmt->kind == IR_FOR)
        base_push(cx, out, stmt->loop.var->var.name);
    for (int i = 0; i < tree_n_children(stmt); i++)
        list_loops(cx, tree_child(stmt, i), out);
}

const char *fuzz_any_loop(fuzz_stepper *stepper)
{
    base_vec all = {0};

    list_loops(stepper->cx, sched_tree(stepper->s)->body, &all);
    return all.n ? all.at[fuzz_pick(stepper, all.n)] : NULL;
}

const char *fuzz_any_block(fuzz_stepper *stepper)
{
    const char **names;
    int n = sched_blocks(stepper->s, &names);

    return n ? names[fuzz_pick(stepper, n)] : NULL;
}

const char *fuzz_own_loop(fuzz_stepper *stepper, const char *block)
{
    const char **loops;
    int n = block ? sched_loops_of(stepper->s, block, &loops) : 0;

    return n ? loops[fuzz_pick(stepper, n)] : NULL;
}

/* A loop of a reader (or producer) of the block, where most primitives that move blocks have an effect; any
 * loop otherwise. */
const char *fuzz_loop_near(fuzz_stepper *stepper, const char *block, bool reader)
{
    const char **names;
    int n = !block   ? 0
            : reader ? sched_readers_of(stepper->s, block, &names)
                     : sched_producers_of(stepper->s, block, &names);
    const char *loop = n ? fuzz_own_loop(stepper, names[fuzz_pick(stepper, n)]) : NULL;

    return loop ? loop : fuzz_any_loop(stepper);
}

const char *fuzz_any_buffer(fuzz_stepper *stepper, bool argument)
{
    const ir_program *tree = sched_tree(stepper->s);
    int params = argument ? tree->n_params : 0;

    if (params + tree->n_buffers == 0)
        return NULL;
    int k = fuzz_pick(stepper, params + tree->n_buffers);
    if (k >= params)
        return tree->buffers[k - params]->name;
    return tree->params[k].buffer ? tree->params[k].buffer->name : NULL;
}

int fuzz_count_stmts(const ir_stmt *stmt)
{
    int n = 1;

    for (int i = 0; i < tree_n_children(stmt); i++)
        n += fuzz_count_stmts(tree_child(stmt, i));
    return n;
}

/* How often the innermost statements run, roughly: symbols count as SYMBOL_RUNS. Schedules that would run
 * for minutes in the interpreter are left out. */
int64_t fuzz_count_runs(const ir_stmt *stmt)
{
    int64_t inside = 0, extent = SYMBOL_RUNS;

    for (int i = 0; i < tree_n_children(stmt); i++)
        inside += fuzz_count_runs(tree_child(stmt, i));
    if (stmt->kind == IR_FOR) {
        ir_is_int(stmt->loop.extent, &extent);
        inside = inside > MAX_RUNS ? inside : inside * extent;
    }
    return tree_n_children(stmt) ? inside : 1;
}
