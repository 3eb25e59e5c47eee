/* fuzz/offer.c -- what a loop tree offers to random steps: its loops, blocks and buffers, and how large it
 * is. */
#include "fuzz/stepper.h"

enum { MAX_RUNS = 1 << 30, SYMBOL_RUNS = 16 };

static void list_loops(tec_context *cx, const ir_stmt *s, base_vec *out)
{
    if (s->kind == IR_FOR)
        base_push(cx, out, s->loop.var->var.name);
    for (int i = 0; i < tree_n_children(s); i++)
        list_loops(cx, tree_child(s, i), out);
}

const char *fuzz_any_loop(fuzz_stepper *p)
{
    base_vec all = {0};

    list_loops(p->cx, sched_tree(p->s)->body, &all);
    return all.n ? all.at[fuzz_pick(p, all.n)] : NULL;
}

const char *fuzz_any_block(fuzz_stepper *p)
{
    const char **names;
    int n = sched_blocks(p->s, &names);

    return n ? names[fuzz_pick(p, n)] : NULL;
}

const char *fuzz_own_loop(fuzz_stepper *p, const char *block)
{
    const char **loops;
    int n = block ? sched_loops_of(p->s, block, &loops) : 0;

    return n ? loops[fuzz_pick(p, n)] : NULL;
}

const char *fuzz_loop_near(fuzz_stepper *p, const char *block, bool reader)
{
    const char **names;
    int n = !block   ? 0
            : reader ? sched_readers_of(p->s, block, &names)
                     : sched_producers_of(p->s, block, &names);
    const char *loop = n ? fuzz_own_loop(p, names[fuzz_pick(p, n)]) : NULL;

    return loop ? loop : fuzz_any_loop(p);
}

const char *fuzz_any_buffer(fuzz_stepper *p, bool argument)
{
    const ir_program *tree = sched_tree(p->s);
    int params = argument ? tree->n_params : 0;

    if (params + tree->n_buffers == 0)
        return NULL;
    int k = fuzz_pick(p, params + tree->n_buffers);
    if (k >= params)
        return tree->buffers[k - params]->name;
    return tree->params[k].buffer ? tree->params[k].buffer->name : NULL;
}

int fuzz_count_stmts(const ir_stmt *s)
{
    int n = 1;

    for (int i = 0; i < tree_n_children(s); i++)
        n += fuzz_count_stmts(tree_child(s, i));
    return n;
}

int64_t fuzz_count_runs(const ir_stmt *s)
{
    int64_t inside = 0, extent = SYMBOL_RUNS;

    for (int i = 0; i < tree_n_children(s); i++)
        inside += fuzz_count_runs(tree_child(s, i));
    if (s->kind == IR_FOR) {
        ir_is_int(s->loop.extent, &extent);
        inside = inside > MAX_RUNS ? inside : inside * extent;
    }
    return tree_n_children(s) ? inside : 1;
}
