/* schedule/reorder.c -- loops of one path in another order.
 *
 *     for y { for x { for k { block C } } }   reorder(k, y, x)   =>   for k { for y { for x { block C } } }
 *
 * The named loops take each other's places; loops in between stay. Legal where the iterations may run in any
 * order (each element that crosses between blocks does so within one iteration of all of them) and, for
 * reductions, where the terms of one element keep their order or the combiner was declared to allow another.
 *
 * A worked example of the dependence rule, with the loops y and x to be exchanged:
 *
 *     for y { for x { block P { P[y, x] = .. }  block Q { Q[y, x] = P[y, x] } } }       legal
 *     for y { for x { block P { P[y, x] = .. }  block Q { Q[y, x] = P[y - 1, x] } } }   refused: y
 *     for y { for x { block P { P[x] = .. }     block Q { Q[y, x] = P[x] } } }          legal: P is private
 *
 * In the first line what crosses from P to Q stays within one iteration of both loops, so the order of the
 * iterations does not matter. In the second, iteration (y, x) reads what (y - 1, x) wrote. In the third each
 * iteration writes P[x] before it reads it; the values of other iterations are never seen.
 *
 * For reductions the order of the terms of one element counts. Floating-point sums depend on it, so the loops
 * k.0 and k.1 keep their order among themselves unless the combiner says `reorders`. They may still cross
 * spatial loops: exchanging y and k changes the order of elements, and not the order of the terms of one.
 */
#include <string.h>

#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

typedef struct {
    sched_path top;       /* the path to the outermost of the loops */
    int first, last;      /* links of the chain: those of the outermost and innermost */
    const ir_stmt **link; /* the chain of loops from the outermost on */
    int n;
    const ir_stmt **order; /* the same chain as it shall be */
} chain;

static bool already_named(const char *const *loop, int i)
{
    for (int j = 0; j < i; j++)
        if (strcmp(loop[i], loop[j]) == 0)
            return true;
    return false;
}

/* The innermost of the named loops ends the chain; the outermost is the first that its path meets. For
 * reorder(k, i) in the nest i, j, k: the chain goes from i to k, and j, which is not named, keeps its place
 * in between. */
static bool find_chain(sched_call *call, const char *const *loop, int count, chain *out)
{
    sched_path deepest = {0};

    for (int i = 0; i < count; i++) {
        sched_path p;

        if (!sched_need_loop(call, loop[i], &p))
            return false;
        if (already_named(loop, i))
            return sched_refuse(call, "loop '%s' is named twice", loop[i]);
        if (p.n > deepest.n)
            deepest = p;
    }
    out->top = deepest;
    out->last = deepest.n - 1;
    out->first = deepest.n;
    for (int i = 0; i < count; i++) {
        int at = -1;

        for (int j = 0; j < deepest.n; j++)
            if (deepest.link[j].stmt->kind == IR_FOR &&
                strcmp(deepest.link[j].stmt->loop.var->var.name, loop[i]) == 0)
                at = j;
        if (at < 0)
            return sched_refuse(call, "loops '%s' and '%s' are not nested", loop[i],
                                sched_end(&deepest)->loop.var->var.name);
        out->first = at < out->first ? at : out->first;
    }
    return true;
}

/* The chain holds loops alone. A condition or a second statement between two of the loops would run in
 * another number of iterations, or with another value, if the loops changed places around it. */
static bool straight(sched_call *call, chain *ch)
{
    ch->n = ch->last - ch->first + 1;
    ch->link = base_array(call->cx, const ir_stmt *, ch->n);
    for (int i = 0; i < ch->n; i++) {
        ch->link[i] = ch->top.link[ch->first + i].stmt;
        if (ch->link[i]->kind == IR_FOR)
            continue;
        const char *inner = sched_end(&ch->top)->loop.var->var.name, *outer = ch->link[0]->loop.var->var.name;
        const char *what = ch->link[i]->kind == IR_SEQ  ? "other statements stand"
                           : ch->link[i]->kind == IR_IF ? "a condition stands"
                                                        : "a definition stands";
        return sched_refuse(call, "%s between loops '%s' and '%s'", what, outer, inner);
    }
    return true;
}

/* Named loops fill the places of named loops, in the order given; all others stay where they are. So
 * reorder(k, y) of y, x, k gives k, x, y. */
static void set_order(sched_call *call, chain *ch, const char *const *loop, int count)
{
    int next = 0;

    ch->order = base_array(call->cx, const ir_stmt *, ch->n);
    for (int i = 0; i < ch->n; i++) {
        bool named = false;

        for (int j = 0; j < count; j++)
            named = named || strcmp(ch->link[i]->loop.var->var.name, loop[j]) == 0;
        ch->order[i] = ch->link[i];
        for (int j = 0; named && j < ch->n; j++)
            if (strcmp(ch->link[j]->loop.var->var.name, loop[next]) == 0)
                ch->order[i] = ch->link[j];
        next += named;
    }
}

/* No loop may leave one that its bounds use. A loop's own place counts too (j = i), and is harmless: no
 * extent mentions its own variable. */
static bool bounds_hold(sched_call *call, const chain *ch)
{
    for (int i = 0; i < ch->n; i++)
        for (int j = i; j < ch->n; j++)
            if (ir_uses_var(call->cx, ch->order[i]->loop.extent, ch->order[j]->loop.var))
                return sched_refuse(call, "the bounds of '%s' depend on '%s'",
                                    ch->order[i]->loop.var->var.name, ch->order[j]->loop.var->var.name);
    return true;
}

/* Some block below counts its steps by loop index of the chain. A scan variable is bound to the number of a
 * step; the loop counts time. */
static bool is_scan(sched_call *call, const chain *ch, int index)
{
    tree_sites below = tree_all_sites(call->cx, ch->link[ch->n - 1]);

    for (int k = 0; k < below.n; k++)
        for (int j = 0; j < below.at[k].block->n_iters; j++)
            if (below.at[k].block->iters[j].kind == IR_SCAN &&
                ir_uses_var(call->cx, below.at[k].stmt->block.bind[j], ch->link[index]->loop.var))
                return true;
    return false;
}

/* Lanes stay inside of threads, threads inside of blocks. Only annotated loops can break this rule; serial
 * ones may stand anywhere. */
static bool nesting_holds(sched_call *call, const chain *ch)
{
    for (int i = 0; i < ch->n; i++)
        for (int j = i + 1; j < ch->n; j++) {
            const ir_stmt *outer = ch->order[i], *inner = ch->order[j];
            ir_how a = outer->loop.how, b = inner->loop.how;

            if ((a == IR_VECTORISED && sched_is_parallel(b)) || (sched_is_threads(a) && sched_is_blocks(b)))
                return sched_refuse(call, "'%s' (%s) would lie inside '%s' (%s)", inner->loop.var->var.name,
                                    ir_how_text(b), outer->loop.var->var.name, ir_how_text(a));
        }
    return true;
}

/* Reduce loops of the site, as they come in `order`, in the same order as in the chain. Where they are not,
 * *a and *b name two loops that changed places, for the message. Compared pair by pair with the old order:
 * floating-point terms are added in another order otherwise, which needs a combiner that is declared to
 * allow it. */
static bool reduction_order_kept(sched_call *call, const chain *ch, const tree_site *site, const char **a,
                                 const char **b)
{
    const ir_stmt *last = NULL;
    int at = -1;

    for (int i = 0; i < ch->n; i++) {
        if (tree_kind_for(call->cx, site, ch->order[i]->loop.var) == IR_SPATIAL)
            continue;
        for (int j = 0; j < ch->n; j++)
            if (ch->link[j] == ch->order[i]) {
                if (j < at) {
                    *a = last->loop.var->var.name;
                    *b = ch->order[i]->loop.var->var.name;
                    return false;
                }
                at = j;
                last = ch->order[i];
            }
    }
    return true;
}

/* The loop's place in the new order; it is one of the chain. */
static int new_place(const chain *ch, const ir_stmt *loop)
{
    int i = 0;

    while (ch->order[i] != loop)
        i++;
    return i;
}

/* Loops i and j change sides. */
static bool cross(const chain *ch, int i, int j)
{
    return i != j && (i < j) != (new_place(ch, ch->link[i]) < new_place(ch, ch->link[j]));
}

/* Time may change sides with spatial loops only; nothing does with loops without order. An opaque stage runs
 * as it was written, so that no loop at all may cross its loops. */
static bool order_kept(sched_call *call, const chain *ch, const tree_site *site)
{
    for (int i = 0; i < ch->n; i++) {
        ir_iter_kind kind = tree_kind_for(call->cx, site, ch->link[i]->loop.var);

        for (int j = 0; (kind == IR_SCAN || kind == IR_OPAQUE) && j < ch->n; j++)
            if (cross(ch, i, j) &&
                (kind == IR_OPAQUE || tree_kind_for(call->cx, site, ch->link[j]->loop.var) != IR_SPATIAL))
                return sched_refuse(call, "'%s' is a loop of the %s '%s' and keeps its place",
                                    ch->link[i]->loop.var->var.name,
                                    kind == IR_SCAN ? "scan" : "opaque stage", site->block->name);
    }
    return true;
}

/* A spatial loop that comes to lie outside of time, or inside, takes part in no exchange between steps.
 *
 *     for t { for x { S[t, x] = S[t - 1, x] + 1 } }       x may leave t: column x needs column x alone
 *     for t { for x { S[t, x] = S[t - 1, x + 1] } }       refused: step t of x needs step t - 1 of x + 1
 */
static bool steps_are_elementwise(sched_call *call, const chain *ch, const ir_stmt *root)
{
    tree_sites all = tree_all_sites(call->cx, root);

    for (int i = 0; i < ch->n; i++)
        for (int j = 0; j < ch->n; j++) {
            const ir_expr *time = ch->link[i]->loop.var, *var = ch->link[j]->loop.var;
            const char *reason = cross(ch, i, j) && is_scan(call, ch, i) && !is_scan(call, ch, j)
                                     ? tree_dependence(&call->s->view, &all, var)
                                     : NULL;

            if (reason)
                return sched_refuse(call, "'%s' cannot cross the scan loop '%s': %s", var->var.name,
                                    time->var.name, reason);
        }
    return true;
}

/* What is asked of each block below the chain by itself. */
static bool may_permute(sched_call *call, const chain *ch, const tree_site *site)
{
    const ir_combiner *combiner = tree_combiner(site->block);
    const char *a, *b;

    if (!order_kept(call, ch, site))
        return false;
    if (tree_has_effect(call->cx, site->block->body))
        return sched_refuse(call, "'%s' calls a function with an effect", site->block->name);
    if (!(combiner && combiner->reorders) && !reduction_order_kept(call, ch, site, &a, &b))
        return sched_refuse(
            call,
            "it would exchange the reduction loops '%s' and '%s' of '%s', whose combiner is not declared "
            "associative and commutative",
            b, a, site->block->name);
    return true;
}

/* What one block writes may be used by others only within one iteration of all loops of the chain; by itself,
 * bindings must be an injection. The loops are asked one after the other. Scan loops are left out: their
 * iterations do depend on each other, and steps_are_elementwise looks at what crosses them, in the new
 * tree. */
static bool dependences_hold(sched_call *call, const chain *ch)
{
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const ir_expr *innermost = ch->link[ch->n - 1]->loop.var, *outermost = ch->link[0]->loop.var;

    for (int i = 0; i < all.n; i++) {
        const tree_site *site = &all.at[i];
        int outer = tree_depth_under(site, outermost) - 1;
        const char *reason = NULL;

        if (!tree_depth_under(site, innermost))
            continue;
        if (!may_permute(call, ch, site))
            return false;
        for (int j = 0; j < site->block->n_writes; j++) {
            const ir_buffer *buffer = site->block->writes[j].buffer;

            if (tree_private_to_iteration(&call->s->view, &all, buffer, innermost))
                continue;
            if (!tree_injective(&call->s->view, site, outer, &reason))
                return sched_refuse(call, "the instances of '%s' are not proven to be distinct: %s",
                                    site->block->name, reason);
            for (int k = 0; k < ch->n; k++)
                if (!is_scan(call, ch, k) &&
                    (tree_shared_under(&all, buffer, innermost) ||
                     !tree_reads_other_steps(&call->s->view, site, outer)) &&
                    (reason = tree_buffer_dependence(&call->s->view, &all, buffer, ch->link[k]->loop.var)))
                    return sched_refuse(call, "%s", reason);
        }
    }
    return true;
}

/* Where the order is the old one the tree is returned as it is; the step still goes into the trace. Four
 * checks: bounds (a loop whose extent uses i must stay inside of i), nesting (threads inside of blocks),
 * dependences (no element is written and read in another order), and, on the new tree, the steps of scans. */
const ir_program *sched_permute(sched_call *call, const char *const *loop, int count)
{
    chain ch;

    if (count < 2)
        return sched_refuse(call, "expected at least two loops to reorder, found %d", count);
    if (!find_chain(call, loop, count, &ch) || !straight(call, &ch))
        return NULL;
    set_order(call, &ch, loop, count);
    if (memcmp(ch.order, ch.link, (size_t)ch.n * sizeof *ch.link) == 0)
        return call->tree;
    if (!bounds_hold(call, &ch) || (!BASE_PLANT_ON(call->cx, reorder_order) &&
                                    (!nesting_holds(call, &ch) || !dependences_hold(call, &ch))))
        return NULL;

    const ir_stmt *stmt = ch.link[ch.n - 1]->loop.body;
    for (int i = ch.n - 1; i >= 0; i--)
        stmt = sched_with_child(call->cx, ch.order[i], 0, stmt);
    const ir_stmt *root = sched_rebuild(call->cx, &ch.top, ch.first, stmt);
    return root && steps_are_elementwise(call, &ch, root) ? sched_with_body(call, root) : NULL;
}

/* reorder(l1, l2, ...): from the outermost to the innermost. */
const ir_program *sched_do_reorder(sched_call *call)
{
    return sched_permute(call, call->arg[0].names, call->arg[0].n);
}
