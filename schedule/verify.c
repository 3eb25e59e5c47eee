/* schedule/verify.c -- the rules of docs/loop-tree.md that hold of every state and can be checked on the tree
 * alone.
 *
 * What ir_verify checks of any tree (types, bindings, regions) comes first. A violation is our bug: a
 * primitive let something through.
 */
#include <string.h>

#include "ir/reason/facts.h"
#include "ir/verify/verify.h"
#include "schedule/loops.h"

typedef struct {
    const sched *s;
    base_dict names;
    const ir_stmt *parallel, *lanes; /* the ones around */
    bool ok;
} checking;

static void broken(checking *k, const ir_stmt *s, const char *rule, const char *name)
{
    if (k->ok)
        base_fail(k->s->view.cx, TEC_INTERNAL, s->loc, "%s: '%s'", rule, name);
    k->ok = false;
}

static void claim(checking *k, const ir_stmt *s, const char *name)
{
    if (base_dict_has(&k->names, name))
        broken(k, s, "two loops or blocks have one name", name);
    base_dict_put(k->s->view.cx, &k->names, name, s);
}

/* The rules that the loop kinds have among each other; bind.c and annotate.c refuse steps by the same
 * rules. */
static void check_loop(checking *k, const ir_stmt *s)
{
    const char *name = s->loop.var->var.name;

    claim(k, s, name);
    if (!ir_is_value(s->loop.min, 0))
        broken(k, s, "a loop does not start at 0", name);
    if (s->loop.how == IR_PARALLEL && k->parallel)
        broken(k, s, "a parallel loop lies in a parallel one", name);
    if (sched_is_parallel(s->loop.how) && k->lanes)
        broken(k, s, "a loop over threads lies in a vectorised one", name);
    if (s->loop.how == IR_VECTORISED && k->lanes)
        broken(k, s, "a vectorised loop lies in a vectorised one", name);
}

/* Goes down with the innermost parallel and vectorised loops around, and restores them on the way back. */
static void check(checking *k, const ir_stmt *s)
{
    const ir_stmt *parallel = k->parallel, *lanes = k->lanes;

    if (s->kind == IR_FOR) {
        check_loop(k, s);
        k->parallel = s->loop.how == IR_PARALLEL ? s : parallel;
        k->lanes = s->loop.how == IR_VECTORISED ? s : lanes;
    } else if (s->kind == IR_BLOCK) {
        claim(k, s, s->block.block->name);
    }
    for (int i = 0, n = tree_n_children(s); i < n; i++)
        check(k, tree_child(s, i));
    k->parallel = parallel;
    k->lanes = lanes;
}

static bool carries(const ir_block *b)
{
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_SCAN)
            return true;
    return false;
}

/* Whatever is read and no argument was written by an earlier block, by the reader itself, or in an earlier
 * iteration of a loop that carries. */
static void check_order(checking *k)
{
    tree_sites all = tree_all_sites(k->s->view.cx, k->s->view.program->body);

    for (int i = 0; i < all.n; i++)
        for (int j = 0; j < all.at[i].block->n_reads; j++) {
            const ir_buffer *b = all.at[i].block->reads[j].buffer;
            bool written = tree_is_parameter(k->s->view.program, b);

            for (int w = 0; !written && w < (carries(all.at[i].block) ? all.n : i + 1); w++)
                written = tree_writes(all.at[w].block, b);
            if (!written)
                broken(k, all.at[i].stmt, "a buffer is read before anything writes it", b->name);
        }
}

bool sched_verify(const sched *s)
{
    checking k = {.s = s, .ok = true};

    if (!ir_verify(s->view.cx, s->view.program, IR_VERIFY_TREE))
        return false;
    check(&k, s->view.program->body);
    check_order(&k);
    return k.ok;
}
