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

static void broken(checking *self, const ir_stmt *stmt, const char *rule, const char *name)
{
    if (self->ok)
        base_fail(self->s->view.cx, TEC_INTERNAL, stmt->loc, "%s: '%s'", rule, name);
    self->ok = false;
}

static void claim(checking *self, const ir_stmt *stmt, const char *name)
{
    if (base_dict_has(&self->names, name))
        broken(self, stmt, "two loops or blocks have one name", name);
    base_dict_put(self->s->view.cx, &self->names, name, stmt);
}

/* The rules that the loop kinds have among each other; bind.c and annotate.c refuse steps by the same
 * rules. */
static void check_loop(checking *self, const ir_stmt *stmt)
{
    const char *name = stmt->loop.var->var.name;

    claim(self, stmt, name);
    if (!ir_is_value(stmt->loop.min, 0))
        broken(self, stmt, "a loop does not start at 0", name);
    if (stmt->loop.how == IR_PARALLEL && self->parallel)
        broken(self, stmt, "a parallel loop lies in a parallel one", name);
    if (sched_is_parallel(stmt->loop.how) && self->lanes)
        broken(self, stmt, "a loop over threads lies in a vectorised one", name);
    if (stmt->loop.how == IR_VECTORISED && self->lanes)
        broken(self, stmt, "a vectorised loop lies in a vectorised one", name);
}

/* Goes down with the innermost parallel and vectorised loops around, and restores them on the way back. */
static void check(checking *self, const ir_stmt *stmt)
{
    const ir_stmt *parallel = self->parallel, *lanes = self->lanes;

    if (stmt->kind == IR_FOR) {
        check_loop(self, stmt);
        self->parallel = stmt->loop.how == IR_PARALLEL ? stmt : parallel;
        self->lanes = stmt->loop.how == IR_VECTORISED ? stmt : lanes;
    } else if (stmt->kind == IR_BLOCK) {
        claim(self, stmt, stmt->block.block->name);
    }
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        check(self, tree_child(stmt, i));
    self->parallel = parallel;
    self->lanes = lanes;
}

static bool carries(const ir_block *block)
{
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_SCAN)
            return true;
    return false;
}

/* Whatever is read and no argument was written by an earlier block, by the reader itself, or in an earlier
 * iteration of a loop that carries. */
static void check_order(checking *self)
{
    tree_sites all = tree_all_sites(self->s->view.cx, self->s->view.program->body);

    for (int i = 0; i < all.n; i++)
        for (int j = 0; j < all.at[i].block->n_reads; j++) {
            const ir_buffer *buffer = all.at[i].block->reads[j].buffer;
            bool written = tree_is_parameter(self->s->view.program, buffer);

            for (int w = 0; !written && w < (carries(all.at[i].block) ? all.n : i + 1); w++)
                written = tree_writes(all.at[w].block, buffer);
            if (!written)
                broken(self, all.at[i].stmt, "a buffer is read before anything writes it", buffer->name);
        }
}

/* The rules of every program, then those that only a tree with a schedule has. */
bool sched_verify(const sched *schedule)
{
    checking k = {.s = schedule, .ok = true};

    if (!ir_verify(schedule->view.cx, schedule->view.program, IR_VERIFY_TREE))
        return false;
    check(&k, schedule->view.program->body);
    check_order(&k);
    return k.ok;
}
