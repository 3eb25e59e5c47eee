/* schedule/fuse.c -- fuse: two loops, one directly inside the other, become one.
 *
 *     fuse(a, b):  for f in 0..ea*eb, a = floordiv(f, eb), b = floormod(f, eb)
 *
 * The extents multiply, so b's must not depend on a, and an empty reduction loop must not be fused with a
 * spatial one, as the init that runs once per element would have no iteration left (init_survives).
 */
#include <string.h>

#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* How often both loops run together. Of two extents that may be negative, one is cut off at 0: -2 times -2
 * iterations are none, not 4. */
static const ir_expr *fused_extent(sched_call *call, const ir_facts *facts, const ir_expr *ea,
                                   const ir_expr *eb)
{
    const ir_expr *zero = ir_int(call->cx, 0);

    if (!ir_prove_le(facts, zero, ea) && !ir_prove_le(facts, zero, eb))
        ea = ir_max(call->cx, ea, zero);
    return ir_simplify(facts, ir_mul(call->cx, ea, eb));
}

/* a = fused div (extent of b), b = fused mod (extent of b). The body, and the bounds of loops in it, may
 * mention both variables, so both are rebound. */
static const ir_stmt *fuse_pair(sched_call *call, const ir_facts *facts, const ir_stmt *first)
{
    const ir_stmt *b = first->loop.body;
    const ir_expr *ea = first->loop.extent, *eb = b->loop.extent;
    const char *name = sched_fresh_name(
        call, NULL, base_format(call->cx, "%s~%s", first->loop.var->var.name, b->loop.var->var.name));
    const ir_expr *var = ir_var(call->cx, name, BASE_I64), *extent = fused_extent(call, facts, ea, eb);
    ir_facts *in = ir_facts_new(call->cx, facts);

    tree_know_loop(in, var, extent, tree_may_be_empty(call->cx, first) || tree_may_be_empty(call->cx, b));
    const ir_expr *outer =
        sched_simplify_index(in, ir_floordiv(call->cx, var, BASE_PLANT_ON(call->cx, fuse_divisor) ? ea : eb));
    const ir_expr *inner = sched_simplify_index(in, ir_floormod(call->cx, var, eb));
    const ir_stmt *body = sched_rebind(in, b->loop.body, b->loop.var, inner, NULL);
    body = sched_rebind(in, body, first->loop.var, outer, NULL);
    return ir_for(call->cx, var, ir_int(call->cx, 0), extent, IR_SERIAL, body);
}

/* Points that run again must not meet their own reduction: they would be initialised once and updated
 * twice. */
static bool runs_once(sched_call *call, const char *block)
{
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const tree_site *site = tree_site_named(&all, block);
    const char *reason;
    sched_path first;

    sched_find_loop(call->cx, call->tree->body, call->arg[0].names[0], &first);
    int fixed = tree_depth_under(site, sched_end(&first)->loop.var) - 1;
    if (tree_injective(&call->s->view, site, fixed, &reason))
        return true;
    return sched_refuse(call, "the instances of '%s' are not proven to be distinct: %s", block, reason);
}

/* A loop over reduction axes alone that may be empty; one that has spatial axes too was proven to run when it
 * was fused. */
static bool may_be_empty(sched_call *call, const ir_facts *facts, const tree_site *site, const ir_stmt *loop)
{
    return tree_kind_for(call->cx, site, loop->loop.var) != IR_SPATIAL &&
           !sched_binds_spatial(call->cx, site, loop->loop.var) &&
           !ir_prove_le(facts, ir_int(call->cx, 1), loop->loop.extent);
}

/* No axis of the block is the loop's: what it has of more than one iteration repeats instances. */
static bool runs_idle(tec_context *cx, const tree_site *site, const ir_expr *var)
{
    for (int i = 0; i < site->block->n_iters; i++)
        if (ir_uses_var(cx, site->stmt->block.bind[i], var))
            return false;
    return true;
}

/* The loop is no axis, but a condition on it says in which of its iterations the block runs (and
 * initialises). */
static bool only_guards(tec_context *cx, const tree_site *site, const ir_expr *var)
{
    return runs_idle(cx, site, var) && ir_uses_var(cx, site->stmt->block.where, var);
}

/* Conditions over reduction loops do not guard the init: one that does must not become such a condition. */
static bool init_stays_guarded(sched_call *call, const tree_site *site, const ir_stmt *loop,
                               const ir_stmt *other)
{
    if (!only_guards(call->cx, site, loop->loop.var) ||
        tree_kind_for(call->cx, site, other->loop.var) == IR_SPATIAL)
        return true;
    return sched_refuse(call,
                        "a condition on '%s' guards the initialisation of '%s', and '%s' is a reduction loop",
                        loop->loop.var->var.name, site->block->name, other->loop.var->var.name);
}

/* An empty reduction still initialises, over the spatial loops; one that is fused with a spatial loop must
 * run.
 *
 *     for y in 0..4 { for k in 0..n { block C { init; C[y] sum= .. } } }     with n = 0
 *
 * Apart, the init of C runs for each y even though k is empty. Fused, the loop has 4*0 iterations, and
 * nothing initialises C. So k must be proven to run, unless both loops reduce: then the init is driven by
 * loops further out. An iteration that repeats an instance would initialise once and update twice. */
static bool init_survives(sched_call *call, const ir_facts *facts, const ir_stmt *first,
                          const ir_stmt *second)
{
    tree_sites below = tree_all_sites(call->cx, second->loop.body);

    for (int i = 0; i < below.n; i++) {
        const tree_site *site = &below.at[i];
        bool spatial = sched_binds_spatial(call->cx, site, first->loop.var) ||
                       sched_binds_spatial(call->cx, site, second->loop.var);
        bool reduces = tree_kind_for(call->cx, site, first->loop.var) != IR_SPATIAL ||
                       tree_kind_for(call->cx, site, second->loop.var) != IR_SPATIAL;

        if (!site->block->init || !reduces)
            continue;
        if (!init_stays_guarded(call, site, first, second) || !init_stays_guarded(call, site, second, first))
            return false;
        if ((spatial || runs_idle(call->cx, site, first->loop.var) ||
             runs_idle(call->cx, site, second->loop.var)) &&
            !runs_once(call, site->block->name))
            return false;
        if (!spatial)
            continue;
        const ir_stmt *empty = may_be_empty(call, facts, site, first)    ? first
                               : may_be_empty(call, facts, site, second) ? second
                                                                         : NULL;
        if (empty)
            return sched_refuse(call,
                                "cannot prove that reduction loop '%s' runs at least once; after the fusion "
                                "'%s' might not be initialised",
                                empty->loop.var->var.name, site->block->name);
    }
    return true;
}

/* The product of both extents would not fit a 64-bit count. */
static bool too_many(const ir_stmt *left, const ir_stmt *right)
{
    int64_t n, m, product;

    return ir_is_int(left->loop.extent, &n) && ir_is_int(right->loop.extent, &m) &&
           __builtin_mul_overflow(n, m, &product);
}

/* The new loop runs extent times extent iterations, so the inner extent must be the same in all iterations
 * of the outer loop, and the product must be countable. The inner bounds must not move with the outer loop:
 * from `for i in 0..4 { for j in 0..i }` no single count of iterations gives i and j back by division. */
static bool can_fuse(sched_call *call, const ir_facts *facts, const ir_stmt *outer, const char *b_name)
{
    const ir_stmt *b = outer->loop.body;
    const char *name = outer->loop.var->var.name;

    if (!sched_need_serial(call, outer))
        return false;
    if (b->kind != IR_FOR || strcmp(b->loop.var->var.name, b_name) != 0) {
        sched_refuse(call, "loop '%s' is not the only child of '%s'", b_name, name);
        return false;
    }
    if (!sched_need_serial(call, b))
        return false;
    if (!ir_is_value(b->loop.min, 0) || ir_uses_var(call->cx, b->loop.extent, outer->loop.var)) {
        sched_refuse(call, "the bounds of '%s' depend on '%s'", b_name, name);
        return false;
    }
    if (too_many(outer, b)) {
        sched_refuse(call, "'%s' and '%s' have more iterations than can be counted", name, b_name);
        return false;
    }
    return init_survives(call, facts, outer, b);
}

/* fuse(a, b, ...): nested loops, each the only child of the one before, become one. Fuses from the outside
 * in: a and b, then their loop with call. The names of the loops still come from the old tree, as the result
 * is put into it only once. */
const ir_program *sched_do_fuse(sched_call *call)
{
    const sched_arg *loops = &call->arg[0];
    sched_path at;

    if (loops->n < 2)
        return sched_refuse(call, "expected at least two loops to fuse, found %d", loops->n);
    if (!sched_need_loop(call, loops->names[0], &at))
        return NULL;
    const ir_facts *facts = sched_facts_at(call->s, &at, at.n - 1);
    const ir_stmt *l = sched_end(&at);
    for (int i = 1; i < loops->n; i++) {
        sched_path inner;

        if (!sched_need_loop(call, loops->names[i], &inner) || !can_fuse(call, facts, l, loops->names[i]))
            return NULL;
        l = fuse_pair(call, facts, l);
    }
    base_push(call->cx, &call->results, l->loop.var->var.name);
    return sched_with_body(call, sched_rebuild(call->cx, &at, at.n - 1, l));
}
