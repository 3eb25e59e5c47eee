/* schedule/reverse.c -- reverse_compute_at: a block runs inside a loop of its producers, over the part that
 * they complete there.
 *
 *     for C.y.0 { for C.y.1 { C[y] = ... } }  reverse_compute_at(Q,  for C.y.0 { for C.y.1 { C[y] = ... }
 *     for Q.y { Q[y] = C[y] + 1 }             C.y.0)  =>               for Q.y in 0..8 {
 *                                                                        Q[C.y.0*8 + Q.y] = ... } }
 *
 * The part must be complete when an iteration ends, and the parts of all iterations must be all of the
 * block's domain: its loops are found by inverting what the producers write and what the block reads.
 *
 * A worked example: C runs to n in tiles of 8, and Q reads C one row further on.
 *
 *     for C.y.0 { for C.y.1 in 0..8 { C[y] = .. } }        for Q.y in 0..n-1 { Q[y] = C[y + 1] + 1 }
 *
 *     reverse_compute_at(Q, C.y.0):   for C.y.0 { for C.y.1 { .. }
 *                                       for Q.y in 0..8 { block Q(y = C.y.0*8 - 1 + Q.y)
 *                                         where C.y.0*8 - 1 + Q.y >= 0 && C.y.0*8 - 1 + Q.y < n - 1 } }
 *
 * An iteration completes C[C.y.0*8 : +8]. Q reads index y + 1, so the instances that read within this box are
 * y = C.y.0*8 - 1 .. C.y.0*8 + 6. The boxes of all iterations together are all of C, so each instance of Q
 * runs in exactly one iteration, the one in which its row of C is complete. Both ends get a predicate, as -1
 * and n - 1 are no rows of Q.
 *
 * What would go wrong without the checks. If C were only a part of its domain (a piece of a cut), the
 * instances of Q that read the rest would run nowhere (writes_all). If Q also read C[y + 2], the second read
 * would lie in the next tile (sched_reads_are_written finds it in the new tree). If C's loops could be empty
 * where Q has points, Q would lose instances (empty_loop).
 */
#include "ir/reason/facts.h"
#include "ir/reason/itermap.h"
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/place.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* Q runs where its producers do, apart from what only keeps those in their domains. A producer under `where x
 * > 3` completes nothing elsewhere, and Q must not run there either. Conditions that only keep the producer
 * in its domain are left out: Q has a domain of its own. */
static void add_guards(sched_move *move, const tree_site *writer)
{
    base_vec all = {0}, counts = {0};

    tree_outer_guards(&move->c->s->view, writer, sched_move_fixed_loops(move, writer), &all);
    ir_conjuncts(move->c->cx, tree_loop_guards(&move->c->s->view, writer), IR_KEEP_LIKELY, &counts);
    for (int i = 0; i < all.n; i++) {
        bool known = false, kept = false;

        for (int j = 0; j < counts.n; j++)
            kept = kept || counts.at[j] == all.at[i];
        for (int j = 0; j < move->guards.n; j++)
            known = known || ir_same(move->guards.at[j], all.at[i]);
        if (kept && !known)
            base_push(move->c->cx, &move->guards, all.at[i]);
    }
}

/* The copy of an accumulating cache leaves its buffer complete when it is at the last of its steps. See
 * accumulate.c: the copy stores in each step k.0, and the value of the last step alone is the result. Q gets
 * `k.0 == last` in its predicate. Any other block with steps is a real scan, whose values change on. */
static bool add_last_steps(sched_move *move, const tree_site *writer)
{
    tec_context *cx = move->c->cx;

    for (int i = 0; i < writer->block->n_iters; i++) {
        const ir_iter *step = &writer->block->iters[i];
        const ir_expr *bind = writer->stmt->block.bind[i],
                      *last = ir_simplify(move->c->s->view.facts, ir_sub(cx, step->extent, ir_int(cx, 1)));

        if (step->kind != IR_SCAN ||
            tree_common_loops(writer, move->site) >= tree_step_depth(&move->c->s->view, writer))
            continue;
        if (writer->block->role != IR_ROLE_COPY || !sched_move_in_reach(move, bind) ||
            !ir_prove_le(move->c->s->view.facts, ir_int(cx, 0), last))
            return sched_refuse(
                move->c, "'%s' is not complete in one iteration of '%s': later iterations go on with it",
                writer->block->name, move->loop_name);
        if (!ir_is_value(last, 0))
            base_push(cx, &move->last_steps, ir_eq(cx, bind, last));
    }
    return true;
}

/* The conjuncts of the predicate that speak of these loops and of no other loop. With loops {i}: of `i < n
 * && i + j < 10` the first conjunct is kept. */
static const ir_expr *conditions_on(sched_move *move, const tree_site *writer, const ir_expr *const *loop,
                                    int count)
{
    const ir_expr *kept = NULL;
    base_vec all = {0};

    ir_conjuncts(move->c->cx, writer->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        bool others = false;

        for (int j = 0; j < writer->n_loops; j++) {
            bool listed = false;

            for (int k = 0; k < count; k++)
                listed = listed || loop[k] == writer->loop[j]->loop.var;
            others = others || (!listed && ir_uses_var(move->c->cx, all.at[i], writer->loop[j]->loop.var));
        }
        if (!others)
            kept = ir_all(move->c->cx, kept, all.at[i]);
    }
    return kept;
}

/* Some iteration of w's loops is the last of its steps: their bindings count, without gaps, from where they
 * start up to the last step. The later part of a loop that was cut may be behind it already:
 *
 *     for k.1 in 0..11 { block Q.copy(step scan = k.1 + 5 in 0..2) where k.1 + 5 < 2 }      5 is after step 1
 *
 * and a block that waits for the last step there would never run. */
static bool reaches_last_step(sched_move *move, const tree_site *writer)
{
    tec_context *cx = move->c->cx;
    int n_loops = 0, n = 0, from = tree_common_loops(writer, move->site);
    const ir_facts *facts = tree_site_facts(&move->c->s->view, writer, from);
    const ir_expr **loop = base_array(cx, const ir_expr *, writer->n_loops),
                  **extent = base_array(cx, const ir_expr *, writer->n_loops),
                  **bind = base_array(cx, const ir_expr *, writer->block->n_iters),
                  **dom = base_array(cx, const ir_expr *, writer->block->n_iters);
    ir_subst start = {0};
    ir_iter_map map;

    for (int j = from; j < writer->n_loops; j++)
        if (tree_kind_for(cx, writer, writer->loop[j]->loop.var) == IR_SCAN) {
            loop[n_loops] = writer->loop[j]->loop.var;
            extent[n_loops++] = writer->loop[j]->loop.extent;
            base_map_put(cx, &start.vars, writer->loop[j]->loop.var, ir_int(cx, 0));
        }
    for (int i = 0; i < writer->block->n_iters; i++) {
        const ir_expr *first = ir_apply(cx, &start, writer->stmt->block.bind[i]);

        if (writer->block->iters[i].kind != IR_SCAN)
            continue;
        bind[n] = ir_simplify(facts, ir_sub(cx, writer->stmt->block.bind[i], first));
        dom[n] = ir_simplify(facts, ir_sub(cx, writer->block->iters[i].extent, first));
        if (!ir_prove_le(facts, ir_int(cx, 1), dom[n++]))
            return false;
    }
    return ir_iter_map_detect(facts, loop, extent, n_loops, bind, dom, n,
                              conditions_on(move, writer, loop, n_loops), &map);
}

/* Blocks under the target that write what Q reads: complete within an iteration. Gives the last one. A
 * reduction loop at or outside of the target leaves the sum unfinished when an iteration ends.
 * reverse_compute_at moves Q behind the last of the blocks that it must wait for. A producer that under i
 * has made only a part of its sum when an iteration of i ends is refused. */
static const tree_site *last_producer(sched_move *move)
{
    const tree_site *last = NULL;

    for (int i = 0; i < move->all.n; i++) {
        const tree_site *w = &move->all.at[i];
        bool produces = false;

        for (int j = 0; j < move->site->block->n_reads; j++)
            produces = produces || (tree_writes(w->block, move->site->block->reads[j].buffer) &&
                                    !sched_move_earlier_only(move, &move->site->block->reads[j], w));
        if (w == move->site || !produces || !sched_move_under(move, w))
            continue;
        for (int k = 0; k < sched_move_fixed_loops(move, w); k++)
            if (tree_kind_for(move->c->cx, w, w->loop[k]->loop.var) != IR_SPATIAL &&
                tree_kind_for(move->c->cx, w, w->loop[k]->loop.var) != IR_SCAN)
                return sched_refuse(
                    move->c, "'%s' is not complete in an iteration of '%s': '%s' is its reduction loop",
                    w->block->name, move->loop_name, w->loop[k]->loop.var->var.name);
        int steps = move->last_steps.n;
        if (!add_last_steps(move, w))
            return NULL;
        if (move->last_steps.n > steps && !reaches_last_step(move, w))
            return sched_refuse(move->c, "cannot prove that '%s' reaches its last step under '%s'",
                                w->block->name, move->loop_name);
        add_guards(move, w);
        last = w;
    }
    if (!last)
        return sched_refuse(move->c, "no block under '%s' writes a buffer that '%s' reads", move->loop_name,
                            move->site->block->name);
    return last;
}

/* v = x - by: the iteration variable of Q that index dim of a read is, up to a constant; -1: none. */
static int read_iter(sched_move *move, const ir_region *read, int dim, int64_t *by)
{
    const ir_block *block = move->site->block;

    if (!ir_is_value(read->extent[dim], 1))
        return -1;
    for (int i = 0; i < block->n_iters; i++) {
        const ir_expr *shift =
            ir_simplify(move->c->s->view.facts, ir_sub(move->c->cx, read->min[dim], block->iters[i].var));

        if (block->iters[i].kind == IR_SPATIAL && ir_is_int(shift, by))
            return i;
    }
    return -1;
}

/* The iterations of writer together write every element of its domain (of a scan: in a step). A piece of a
 * cut loop does not, nor a block that was computed at its readers: it writes what they use, and an index
 * under a condition may not be used. `whole` is the box that the block's domain would write. Where it is
 * filled with no loop standing still, the loops reach all of the domain. A scan's box is that of one step:
 * its other loops are asked alone. */
static bool writes_all(sched_move *move, const tree_site *writer, const ir_region *write, const int *dim_of)
{
    int step = 0, n = write->buffer->n;
    const ir_expr **extent = base_array(move->c->cx, const ir_expr *, n),
                  **min = base_array(move->c->cx, const ir_expr *, n);
    ir_region whole = {.buffer = write->buffer, .min = min, .extent = extent};

    for (int d = 0; d < n; d++) {
        min[d] = write->min[d];
        extent[d] = ir_int(move->c->cx, 1);
    }
    for (int k = 0; k < writer->block->n_iters; k++)
        if (dim_of[k] >= 0 && writer->block->iters[k].kind == IR_SCAN) {
            min[dim_of[k]] = tree_stored_at(move->c->cx, writer, write, dim_of[k]);
            step = tree_step_depth(&move->c->s->view, writer);
        } else if (dim_of[k] >= 0) {
            min[dim_of[k]] = ir_int(move->c->cx, tree_store_shift(write, dim_of[k]));
            extent[dim_of[k]] = writer->block->iters[k].extent;
        }
    return tree_touches_whole_box(&move->c->s->view, writer, write, &whole, step);
}

/* ... of a buffer with a layout, whose padding counts as written. */
static bool writes_box(sched_move *move, const tree_site *writer, const ir_region *write)
{
    ir_region whole = ir_region_whole(move->c->cx, write->buffer);

    return tree_touches_whole_box(&move->c->s->view, writer, write, &whole, 0);
}

static bool plain_read(sched_move *move, const ir_region *read)
{
    int64_t shift;

    for (int d = 0; d < read->buffer->n; d++)
        if (read_iter(move, read, d, &shift) < 0)
            return false;
    return true;
}

/* The values of w's iteration variables where it writes the element that Q reads, over the variables of Q; a
 * NULL among them: any. NULL: not known. By the plain store, an iteration variable is the element's index
 * less a constant; by a layout, it is the inverse map at the index that Q reads. */
static const ir_expr **writing_point(sched_move *move, const ir_region *read, const tree_site *writer,
                                     const ir_region *write)
{
    tec_context *cx = move->c->cx;
    const ir_expr **value = base_array(cx, const ir_expr *, writer->block->n_iters);
    int *dim_of = base_array(cx, int, writer->block->n_iters);
    ir_subst at = {0};
    tree_layout l;

    if (tree_store_dims(&move->c->s->view, writer->block, write, dim_of)) {
        for (int k = 0; k < writer->block->n_iters; k++)
            if (dim_of[k] >= 0)
                value[k] = ir_sub(cx, read->min[dim_of[k]], ir_int(cx, tree_store_shift(write, dim_of[k])));
        return value;
    }
    if (!tree_invert_store(&move->c->s->view, writer->block, write, &l))
        return NULL;
    for (int d = 0; d < l.n; d++)
        base_map_put(cx, &at.vars, l.point[d], read->min[d]);
    for (int k = 0; k < writer->block->n_iters; k++)
        value[k] = l.var[k] ? ir_apply(cx, &at, l.var[k]) : NULL;
    return value;
}

/* All that Q reads of the buffer is written by an instance of writer, and not the padding of a layout: there
 * Q would find no iteration to run in. An example: writer writes P[floordiv(i, 8), i % 8] for i < 13, so that
 * P[1, 5..7] is padding. If Q reads all 16 elements, the instances of Q at the padding belong to no instance
 * of writer. */
static bool reads_instances(sched_move *move, const ir_region *read, const tree_site *writer,
                            const ir_region *write)
{
    const ir_expr **value = writing_point(move, read, writer, write), *zero = ir_int(move->c->cx, 0);
    ir_facts *facts = ir_facts_new(move->c->cx, move->c->s->view.facts);

    for (int i = 0; i < move->site->block->n_iters; i++)
        ir_facts_range(facts, move->site->block->iters[i].var, zero, move->site->block->iters[i].extent);
    for (int k = 0; value && k < writer->block->n_iters; k++)
        if (value[k] && !(ir_prove_le(facts, zero, value[k]) &&
                          ir_prove_lt(facts, value[k], writer->block->iters[k].extent)))
            return false;
    return value != NULL;
}

/* Q reads every element of the buffer at one of its points: those in the box say which points run. */
static bool take_layout_part(sched_move *move, const ir_facts *facts, const ir_region *read,
                             const ir_region *box)
{
    tree_layout l;

    if (!tree_invert_read(&move->c->s->view, move->site->block, read, &l))
        return false;
    for (int i = 0; i < move->site->block->n_iters; i++)
        if (l.var[i] && !sched_span_in_box(facts, &l, l.var[i], box, &move->min[i], &move->extent[i]))
            return false;
    return true;
}

/* The loop's variable says where Q starts. */
static bool any_starts_at(const sched_move *move, const ir_expr *var)
{
    for (int i = 0; i < move->site->block->n_iters; i++)
        if (ir_uses_var(move->c->cx, move->min[i], var))
            return true;
    return false;
}

/* Whether Q runs depends on loop i around writer as it did not before. In a loop that Q shared with writer it
 * runs as it did, but for those of its reduction: where they had no iteration, Q initialised. */
static bool is_new_loop(sched_move *move, const tree_site *writer, int i)
{
    return i >= tree_common_loops(writer, move->site) ||
           tree_kind_for(move->c->cx, move->site, writer->loop[i]->loop.var) == IR_REDUCE_ITER;
}

/* Where Q has points, its new loops must run. NULL: all of the new loops run. Facts are added loop by loop,
 * as the extent of a loop may depend on those around it. */
static const ir_stmt *empty_loop(sched_move *move, const tree_site *writer)
{
    const ir_expr *one = ir_int(move->c->cx, 1);
    ir_facts *facts = ir_facts_new(move->c->cx, move->c->s->view.facts);

    for (int i = 0; i < move->site->block->n_iters; i++)
        if (move->site->block->iters[i].kind == IR_SPATIAL)
            ir_facts_assume(facts, ir_le(move->c->cx, one, move->site->block->iters[i].extent));
    for (int i = 0; i < sched_move_fixed_loops(move, writer); i++) {
        const ir_stmt *l = writer->loop[i];

        if (is_new_loop(move, writer, i) && !ir_prove_le(facts, one, l->loop.extent))
            return l;
        tree_know_loop(facts, l->loop.var, l->loop.extent, false);
    }
    return NULL;
}

/* In one iteration of the new loops that say nothing of which points of Q run, the first (or the last) of
 * each, conditions on them hold. Gives one that is not proven to. A loop that says nothing of Q's points
 * repeats the same part. Then Q runs in each of its iterations, unless a condition on the loop picks one; the
 * first and the last are the ones that such conditions pick. */
static const ir_expr *idle_guard(sched_move *move, const tree_site *writer, bool last)
{
    tec_context *cx = move->c->cx;
    int fixed = sched_move_fixed_loops(move, writer);
    const ir_facts *facts = tree_site_facts(&move->c->s->view, writer, fixed);
    ir_subst at = {0};

    for (int i = 0; i < fixed; i++)
        if (is_new_loop(move, writer, i) && !any_starts_at(move, writer->loop[i]->loop.var))
            base_map_put(cx, &at.vars, writer->loop[i]->loop.var,
                         last ? ir_sub(cx, writer->loop[i]->loop.extent, ir_int(cx, 1)) : ir_int(cx, 0));
    for (int i = 0; i < move->guards.n; i++) {
        const ir_expr *there = ir_apply(cx, &at, move->guards.at[i]);

        if (there != move->guards.at[i] && !ir_prove(facts, there))
            return move->guards.at[i];
    }
    return NULL;
}

/* All that Q reads of w's part is computed in each iteration in which Q runs, and Q runs. The reasons are
 * tried in this order, and the first that applies is the one for the reader. If Q ran in iterations in which
 * w computes nothing, Q would read what an earlier iteration left; if w computed in iterations in which Q
 * does not run, those elements of Q would never be written. */
static bool part_is_reached(sched_move *move, const tree_site *writer, const char **reason)
{
    const ir_stmt *empty = empty_loop(move, writer);
    const ir_expr *unmet = empty || !idle_guard(move, writer, true) ? NULL : idle_guard(move, writer, false);

    if (empty)
        *reason =
            base_format(move->c->cx, "it is not proven that '%s' runs at all", empty->loop.var->var.name);
    else if (unmet)
        *reason = base_format(move->c->cx, "it is not proven that '%s' ever holds",
                              ir_expr_text(move->c->cx, unmet));
    if (empty || unmet)
        return false;
    for (int i = 0; i < move->guards.n; i++) {
        const ir_expr *guard = move->guards.at[i];

        if (!tree_has_guard(&move->c->s->view, writer, guard))
            *reason = base_format(move->c->cx, "it depends on '%s' whether all that '%s' reads is computed",
                                  ir_expr_text(move->c->cx, guard), move->site->block->name);
        else if (ir_is_value(guard, 0)) /* a part of a cut behind the last term: Q would never run */
            *reason = base_format(move->c->cx, "it is not proven that '%s' ever holds",
                                  ir_expr_text(move->c->cx, guard));
        else
            continue;
        return false;
    }
    return true;
}

/* Q runs at the points that read, one variable for each dimension, what lies in the box.
 *
 *     w writes C[y], y in 0..n;  Q reads C[y + 1]:  shift 1, so Q's y is the box's index less 1
 *
 * `ahead` is how far the read lies ahead of the write in terms of iterations; Q's domain shifted by it must
 * lie within w's, or some instances of Q would read rows that writer never writes. */
static bool take_plain_part(sched_move *move, const ir_region *read, const tree_site *writer,
                            const ir_region *write, const int *dim_of, const ir_region *box,
                            const char **reason)
{
    const ir_block *block = move->site->block;
    const ir_facts *facts = tree_site_facts(&move->c->s->view, writer, sched_move_fixed_loops(move, writer));
    bool *set = base_array(move->c->cx, bool, block->n_iters);

    for (int k = 0; k < writer->block->n_iters; k++) {
        int64_t shift = 0;
        int d = dim_of[k], i = d < 0 ? -1 : read_iter(move, read, d, &shift);

        if (i < 0 || set[i])
            continue;
        int64_t ahead = shift - tree_store_shift(write, d);
        const ir_expr *end = ir_add(move->c->cx, block->iters[i].extent, ir_int(move->c->cx, ahead));
        if (ahead < 0 || !ir_prove_le(facts, end, writer->block->iters[k].extent)) {
            *reason = base_format(
                move->c->cx, "no part of '%s' that '%s' writes covers all of axis '%s' of '%s'",
                read->buffer->name, writer->block->name, block->iters[i].var->var.name, block->name);
            return false;
        }
        move->min[i] = ir_simplify(facts, ir_sub(move->c->cx, box->min[d], ir_int(move->c->cx, shift)));
        move->extent[i] = ir_simplify(facts, box->extent[d]);
        set[i] = true;
    }
    return true;
}

/* Lets the part of `write` that writer completes per iteration say which points of Q run; false where it does
 * not cover all of them. First: does writer write all of its buffer? Then: which instances of Q read what one
 * iteration completes, by the plain read or by the inverse of a layout? Last: do these instances run? */
static bool take_part(sched_move *move, const ir_region *read, const tree_site *writer,
                      const ir_region *write, const char **reason)
{
    int *dim_of = base_array(move->c->cx, int, writer->block->n_iters);
    ir_region box = tree_box(&move->c->s->view, writer, write, sched_move_fixed_loops(move, writer), true);
    const ir_facts *facts = tree_site_facts(&move->c->s->view, writer, sched_move_fixed_loops(move, writer));
    bool plain = tree_store_dims(&move->c->s->view, writer->block, write, dim_of);

    if (!plain && !writes_box(move, writer, write)) {
        *reason = base_format(move->c->cx, "the store of '%s' cannot be inverted", writer->block->name);
        return false;
    }
    if (plain && !writes_all(move, writer, write, dim_of)) {
        *reason = base_format(move->c->cx, "it is not proven that '%s' writes all of '%s'",
                              writer->block->name, read->buffer->name);
        return false;
    }
    if (!plain_read(move, read) && take_layout_part(move, facts, read, &box)) {
        if (reads_instances(move, read, writer, write))
            return part_is_reached(move, writer, reason);
        *reason =
            base_format(move->c->cx, "it is not proven that '%s' writes each element of '%s' that '%s' reads",
                        writer->block->name, read->buffer->name, move->site->block->name);
        return false;
    }
    if (!plain) {
        *reason = base_format(move->c->cx, "the read of '%s' by '%s' cannot be inverted", read->buffer->name,
                              move->site->block->name);
        return false;
    }
    return take_plain_part(move, read, writer, write, dim_of, &box, reason) &&
           part_is_reached(move, writer, reason);
}

/* One producer's part decides; the others must have completed what Q reads there. The first producer whose
 * part passes is taken. Each attempt starts from the whole domain again. The user sees the reason of the
 * first producer that failed. */
static const ir_stmt *try_parts(sched_move *move, const char *last)
{
    const char *why = NULL, *reason = NULL;

    for (int i = 0; i < move->all.n; i++)
        for (int j = 0; j < move->site->block->n_reads; j++) {
            const tree_site *w = &move->all.at[i];
            const ir_region *read = &move->site->block->reads[j],
                            *write = tree_access(w->block->writes, w->block->n_writes, read->buffer);

            if (w == move->site || !write || !sched_move_under(move, w) ||
                sched_move_earlier_only(move, read, w))
                continue;
            sched_move_whole_domain(move);
            move->c->reason = NULL;
            if (take_part(move, read, w, write, &reason)) {
                const ir_stmt *root =
                    sched_move_carry_out(move, last, !BASE_PLANT_ON(move->c->cx, reverse_compute_at_place));

                if (root && sched_move_keeps_step(move, root) &&
                    sched_reads_are_written(move->c, root, move->site->block->name))
                    return root;
                reason = move->c->reason;
            }
            why = why ? why : reason;
        }
    move->c->reason = NULL;
    return why ? sched_refuse(move->c, "%s", why)
               : sched_refuse(
                     move->c,
                     "what '%s' writes under '%s' is read by '%s' as another buffer of the same memory", last,
                     move->loop_name, move->site->block->name);
}

/* The other inputs of Q are complete before the target's body. Inputs that are written by blocks outside of
 * the target must lie before its first block. */
static bool others_complete(sched_move *move, const tree_site *last)
{
    const ir_block *block = move->site->block;
    int first_under = move->all.n;

    for (int i = move->all.n - 1; i >= 0; i--)
        if (sched_move_under(move, &move->all.at[i]))
            first_under = i;
    for (int i = 0; i < move->all.n; i++)
        for (int j = 0; j < block->n_reads; j++) {
            const tree_site *w = &move->all.at[i];

            if (w == move->site || sched_move_under(move, w) ||
                !tree_writes(w->block, block->reads[j].buffer) ||
                sched_move_earlier_only(move, &block->reads[j], w))
                continue;
            if (w->order > first_under)
                return sched_refuse(
                    move->c, "'%s', which '%s' reads, is not complete before '%s': '%s' writes it later",
                    block->reads[j].buffer->name, block->name, move->loop_name, w->block->name);
        }
    if (last->order > move->site->order)
        return sched_refuse(move->c, "'%s' writes what '%s' reads, but runs after it", last->block->name,
                            block->name);
    return true;
}

/* reverse_compute_at(Q, l): Q runs inside l, after its last producer there, over what the producers complete
 * in the iteration. Checks that need no new tree come first. What remains is tried producer by producer. */
const ir_program *sched_do_reverse_compute_at(sched_call *call)
{
    const tree_site *last;
    sched_move m;

    if (!sched_move_start(call, &m, call->arg[0].name, call->arg[1].name))
        return NULL;
    if (sched_move_under(&m, m.site))
        return sched_refuse(call, "'%s' lies under '%s' already", call->arg[0].name, call->arg[1].name);
    if (!sched_move_allowed(&m) || !sched_move_writes_once(&m) || !sched_takes_loops(call, &m.to) ||
        !sched_move_overtakes_nobody(&m) || !(last = last_producer(&m)) || !others_complete(&m, last))
        return NULL;
    for (int j = 0; j < m.site->block->n_writes; j++)
        if (m.site->block->writes[j].buffer->alias)
            return sched_refuse(call, "'%s' may share memory with other buffers",
                                m.site->block->writes[j].buffer->name);
    const ir_stmt *root = try_parts(&m, last->block->name);
    return root && sched_still_independent(call, &m.to, root) ? sched_with_body(call, root) : NULL;
}
