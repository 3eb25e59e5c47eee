/* schedule/predicate.c -- store_predicate: of the iterations of some loops, in which a block stores the same,
 * the first one stores.
 *
 *     for C.y {                                    for C.y {
 *       for C.x {                                    for C.x {
 *         for P.k { block P(y = C.y, ..) }     =>      for P.k { block P(y = C.y, ..) where C.x == 0 }
 *         block C(y = C.y, x = C.x)                    block C(y = C.y, x = C.x)
 *     } }                                          } }
 *
 *     store_predicate(P, C.x)
 *
 * What is left out must be a duplicate. So each iteration of the loop runs the same instances (or none), each
 * element is stored by one of them, and neither what they read nor what they write is written by anything
 * else in the loop: then it still holds what the first iteration put there. Where iterations run at the same
 * time, no other one may wait for that: sched_still_independent looks at the new tree.
 */
#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* Between loop and the block nothing says otherwise than the loops and bindings. */
static bool plain_path(sched_call *call, const sched_path *at, const ir_stmt *loop, const char *block)
{
    bool inside = false;

    for (int i = 0; i < at->n - 1; i++) {
        const ir_stmt *stmt = at->link[i].stmt;

        if (inside && (stmt->kind == IR_IF || stmt->kind == IR_LET_STMT))
            return sched_refuse(call, "a condition or a definition stands between '%s' and '%s'",
                                loop->loop.var->var.name, block);
        inside = inside || stmt == loop;
    }
    return true;
}

/* Where the predicate holds in an iteration of the loop, it holds in the first: the end of a tile. `C.x.0*8 +
 * C.x.1 < n` with C.x.0 in the place of var: it holds at 0 wherever it holds at a later iteration. A
 * condition such as `C.x >= 2` does not, and the first iteration, which is to store for all, would not
 * run. */
static bool runs_at_first(sched_call *call, const tree_site *site, const ir_expr *var)
{
    base_vec all = {0};

    ir_conjuncts(call->cx, site->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        ir_facts *facts = ir_facts_new(call->cx, tree_site_facts(&call->s->view, site, site->n_loops));

        ir_facts_assume(facts, all.at[i]);
        if (ir_uses_var(call->cx, all.at[i], var) &&
            !ir_prove(facts, ir_substitute(call->cx, all.at[i], var, ir_int(call->cx, 0))))
            return false;
    }
    return true;
}

/* No instance depends on the iteration of loop, and their reductions are complete in each. The reduction
 * loops must lie inside of loop, or the first iteration would store an unfinished sum. A store that is the
 * same in all iterations of j may be made in the first of them alone. Where a binding or an extent depends
 * on j, or the predicate excludes j = 0, the first iteration does not do the work of the others. */
static bool repeats(sched_call *call, const tree_site *site, const ir_stmt *loop)
{
    const ir_expr *var = loop->loop.var;
    bool differs = !runs_at_first(call, site, var);

    for (int i = 0; i < site->block->n_iters; i++)
        differs = differs || ir_uses_var(call->cx, site->stmt->block.bind[i], var);
    for (int i = tree_depth_under(site, var); i < site->n_loops; i++)
        differs = differs || ir_uses_var(call->cx, site->loop[i]->loop.extent, var);
    if (differs)
        return sched_refuse(call, "'%s' is not the same in all iterations of '%s'", site->block->name,
                            var->var.name);
    for (int i = 0; i < tree_depth_under(site, var); i++)
        if (tree_kind_for(call->cx, site, site->loop[i]->loop.var) == IR_REDUCE_ITER)
            return sched_refuse(call,
                                "'%s' does not complete its reduction over '%s' in an iteration of '%s'",
                                site->block->name, site->loop[i]->loop.var->var.name, var->var.name);
    return true;
}

/* Each element has one value, whichever instance stored last. */
static bool stores_once(sched_call *call, const tree_site *site)
{
    const char *why = tree_not_idempotent(call->cx, site->block);

    if (why)
        return sched_refuse(call, "the stores of '%s' are not duplicates: %s", site->block->name, why);
    for (int i = 0; i < site->block->n_writes; i++)
        if (!tree_writes_once(&call->s->view, site->block, &site->block->writes[i]))
            return sched_refuse(
                call, "it is not proven that each element of '%s' is stored by one instance of '%s'",
                site->block->writes[i].buffer->name, site->block->name);
    return true;
}

static const ir_buffer *changed_by(const ir_block *other, const ir_region *region, int n)
{
    for (int i = 0; i < n; i++)
        if (tree_writes(other, region[i].buffer))
            return region[i].buffer;
    return NULL;
}

/* Refuses where another block in the loop writes what the block reads or writes. The block would have stored
 * again after that, and now does not. */
static bool nothing_changes(sched_call *call, const tree_sites *all, const tree_site *site,
                            const ir_stmt *loop)
{
    for (int i = 0; i < all->n; i++) {
        const ir_block *other = all->at[i].block;

        if (other == site->block || !tree_depth_under(&all->at[i], loop->loop.var))
            continue;
        const ir_buffer *buffer = changed_by(other, site->block->reads, site->block->n_reads);
        buffer = buffer ? buffer : changed_by(other, site->block->writes, site->block->n_writes);
        if (buffer)
            return sched_refuse(call, "'%s' writes '%s' in '%s' too, and '%s' would not run again",
                                other->name, buffer->name, loop->loop.var->var.name, site->block->name);
    }
    return true;
}

/* That the iteration of the named loop is the first; NULL where what the others store is not proven to be the
 * same. All four checks are made for each loop by itself. The conjunction of their conditions then leaves the
 * one iteration that is the first in all of them. */
static const ir_expr *first_of(sched_call *call, const sched_path *at, const tree_sites *all,
                               const tree_site *site, const char *loop)
{
    sched_path to;

    if (!sched_need_loop(call, loop, &to))
        return NULL;
    const ir_stmt *l = sched_end(&to);
    if (!tree_depth_under(site, l->loop.var))
        return sched_refuse(call, "'%s' does not stand around '%s'", loop, site->block->name);
    if (!plain_path(call, at, l, site->block->name) || !repeats(call, site, l) ||
        !nothing_changes(call, all, site, l))
        return NULL;
    return ir_eq(call->cx, l->loop.var, ir_int(call->cx, BASE_PLANT_ON(call->cx, store_predicate_second)));
}

/* store_predicate(block, loops): it stores in the first iteration of the loops only. The predicate becomes
 * `where .. && j == 0` for each loop, in the order given. */
const ir_program *sched_do_store_predicate(sched_call *call)
{
    const sched_arg *loops = &call->arg[1];
    sched_path at;

    if (!sched_need_block(call, call->arg[0].name, &at))
        return NULL;
    if (loops->n == 0)
        return sched_refuse(call, "expected a loop in which '%s' stores the same again and again",
                            call->arg[0].name);
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const tree_site *site = tree_site_named(&all, call->arg[0].name);
    if (!stores_once(call, site))
        return NULL;
    ir_stmt *stmt = ir_stmt_copy(call->cx, sched_end(&at));
    for (int i = 0; i < loops->n; i++) {
        const ir_expr *first = first_of(call, &at, &all, site, loops->names[i]);

        if (!first)
            return NULL;
        stmt->block.where = ir_all(call->cx, stmt->block.where, first);
    }
    const ir_stmt *root = sched_rebuild(call->cx, &at, at.n - 1, stmt);
    return sched_still_independent(call, &at, root) ? sched_with_body(call, root) : NULL;
}
