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
static void add_guards(sched_move *m, const tree_site *w)
{
    base_vec all = {0}, counts = {0};

    tree_outer_guards(&m->c->s->view, w, sched_move_fixed_loops(m, w), &all);
    ir_conjuncts(m->c->cx, tree_loop_guards(&m->c->s->view, w), IR_KEEP_LIKELY, &counts);
    for (int i = 0; i < all.n; i++) {
        bool known = false, kept = false;

        for (int j = 0; j < counts.n; j++)
            kept = kept || counts.at[j] == all.at[i];
        for (int j = 0; j < m->guards.n; j++)
            known = known || ir_same(m->guards.at[j], all.at[i]);
        if (kept && !known)
            base_push(m->c->cx, &m->guards, all.at[i]);
    }
}

/* The copy of an accumulating cache leaves its buffer complete when it is at the last of its steps. See
 * accumulate.c: the copy stores in each step k.0, and the value of the last step alone is the result. Q gets
 * `k.0 == last` in its predicate. Any other block with steps is a real scan, whose values change on. */
static bool add_last_steps(sched_move *m, const tree_site *w)
{
    tec_context *cx = m->c->cx;

    for (int i = 0; i < w->block->n_iters; i++) {
        const ir_iter *step = &w->block->iters[i];
        const ir_expr *bind = w->stmt->block.bind[i],
                      *last = ir_simplify(m->c->s->view.facts, ir_sub(cx, step->extent, ir_int(cx, 1)));

        if (step->kind != IR_SCAN || tree_common_loops(w, m->site) >= tree_step_depth(&m->c->s->view, w))
            continue;
        if (w->block->role != IR_ROLE_COPY || !sched_move_in_reach(m, bind) ||
            !ir_prove_le(m->c->s->view.facts, ir_int(cx, 0), last))
            return sched_refuse(m->c,
                                "'%s' is not complete in an iteration of '%s': it goes on in later ones",
                                w->block->name, m->loop_name);
        if (!ir_is_value(last, 0))
            base_push(cx, &m->last_steps, ir_eq(cx, bind, last));
    }
    return true;
}

/* The conjuncts of the predicate that speak of these loops and of no other loop. */
static const ir_expr *conditions_on(sched_move *m, const tree_site *w, const ir_expr *const *loop, int n)
{
    const ir_expr *kept = NULL;
    base_vec all = {0};

    ir_conjuncts(m->c->cx, w->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        bool others = false;

        for (int j = 0; j < w->n_loops; j++) {
            bool listed = false;

            for (int k = 0; k < n; k++)
                listed = listed || loop[k] == w->loop[j]->loop.var;
            others = others || (!listed && ir_uses_var(m->c->cx, all.at[i], w->loop[j]->loop.var));
        }
        if (!others)
            kept = ir_all(m->c->cx, kept, all.at[i]);
    }
    return kept;
}

/* Some iteration of w's loops is the last of its steps: their bindings count, without gaps, from where they
 * start up to the last step. The later part of a loop that was cut may be behind it already:
 *
 *     for k.1 in 0..11 { block Q.copy(step scan = k.1 + 5 in 0..2) where k.1 + 5 < 2 }      5 is after step 1
 *
 * and a block that waits for the last step there would never run. */
static bool reaches_last_step(sched_move *m, const tree_site *w)
{
    tec_context *cx = m->c->cx;
    int n_loops = 0, n = 0, from = tree_common_loops(w, m->site);
    const ir_facts *f = tree_site_facts(&m->c->s->view, w, from);
    const ir_expr **loop = base_array(cx, const ir_expr *, w->n_loops),
                  **extent = base_array(cx, const ir_expr *, w->n_loops),
                  **bind = base_array(cx, const ir_expr *, w->block->n_iters),
                  **dom = base_array(cx, const ir_expr *, w->block->n_iters);
    ir_subst start = {0};
    ir_iter_map map;

    for (int j = from; j < w->n_loops; j++)
        if (tree_kind_for(cx, w, w->loop[j]->loop.var) == IR_SCAN) {
            loop[n_loops] = w->loop[j]->loop.var;
            extent[n_loops++] = w->loop[j]->loop.extent;
            base_map_put(cx, &start.vars, w->loop[j]->loop.var, ir_int(cx, 0));
        }
    for (int i = 0; i < w->block->n_iters; i++) {
        const ir_expr *first = ir_apply(cx, &start, w->stmt->block.bind[i]);

        if (w->block->iters[i].kind != IR_SCAN)
            continue;
        bind[n] = ir_simplify(f, ir_sub(cx, w->stmt->block.bind[i], first));
        dom[n] = ir_simplify(f, ir_sub(cx, w->block->iters[i].extent, first));
        if (!ir_prove_le(f, ir_int(cx, 1), dom[n++]))
            return false;
    }
    return ir_iter_map_detect(f, loop, extent, n_loops, bind, dom, n, conditions_on(m, w, loop, n_loops),
                              &map);
}

/* Blocks under the target that write what Q reads: complete within an iteration. Gives the last one. A
 * reduction loop at or outside of the target leaves the sum unfinished when an iteration ends. */
static const tree_site *last_producer(sched_move *m)
{
    const tree_site *last = NULL;

    for (int i = 0; i < m->all.n; i++) {
        const tree_site *w = &m->all.at[i];
        bool produces = false;

        for (int j = 0; j < m->site->block->n_reads; j++)
            produces = produces || (tree_writes(w->block, m->site->block->reads[j].buffer) &&
                                    !sched_move_earlier_only(m, &m->site->block->reads[j], w));
        if (w == m->site || !produces || !sched_move_under(m, w))
            continue;
        for (int k = 0; k < sched_move_fixed_loops(m, w); k++)
            if (tree_kind_for(m->c->cx, w, w->loop[k]->loop.var) != IR_SPATIAL &&
                tree_kind_for(m->c->cx, w, w->loop[k]->loop.var) != IR_SCAN)
                return sched_refuse(
                    m->c, "'%s' is not complete in an iteration of '%s': '%s' is its reduction loop",
                    w->block->name, m->loop_name, w->loop[k]->loop.var->var.name);
        int steps = m->last_steps.n;
        if (!add_last_steps(m, w))
            return NULL;
        if (m->last_steps.n > steps && !reaches_last_step(m, w))
            return sched_refuse(m->c, "it is not proven that '%s' ever makes its last step under '%s'",
                                w->block->name, m->loop_name);
        add_guards(m, w);
        last = w;
    }
    if (!last)
        return sched_refuse(m->c, "nothing under '%s' writes what '%s' reads", m->loop_name,
                            m->site->block->name);
    return last;
}

/* v = x - c: the iteration variable of Q that index d of a read is, up to a constant; -1: none. */
static int read_iter(sched_move *m, const ir_region *read, int d, int64_t *c)
{
    const ir_block *b = m->site->block;

    if (!ir_is_value(read->extent[d], 1))
        return -1;
    for (int i = 0; i < b->n_iters; i++) {
        const ir_expr *shift =
            ir_simplify(m->c->s->view.facts, ir_sub(m->c->cx, read->min[d], b->iters[i].var));

        if (b->iters[i].kind == IR_SPATIAL && ir_is_int(shift, c))
            return i;
    }
    return -1;
}

/* The iterations of w together write every element of its domain (of a scan: in a step). A piece of a cut
 * loop does not, nor a block that was computed at its readers: it writes what they use, and an index under a
 * condition may not be used. `whole` is the box that the block's domain would write. Where it is filled with
 * no loop standing still, the loops reach all of the domain. A scan's box is that of one step: its other
 * loops are asked alone. */
static bool writes_all(sched_move *m, const tree_site *w, const ir_region *write, const int *dim_of)
{
    int step = 0, n = write->buffer->n;
    const ir_expr **extent = base_array(m->c->cx, const ir_expr *, n),
                  **min = base_array(m->c->cx, const ir_expr *, n);
    ir_region whole = {.buffer = write->buffer, .min = min, .extent = extent};

    for (int d = 0; d < n; d++) {
        min[d] = write->min[d];
        extent[d] = ir_int(m->c->cx, 1);
    }
    for (int k = 0; k < w->block->n_iters; k++)
        if (dim_of[k] >= 0 && w->block->iters[k].kind == IR_SCAN) {
            min[dim_of[k]] = tree_stored_at(m->c->cx, w, write, dim_of[k]);
            step = tree_step_depth(&m->c->s->view, w);
        } else if (dim_of[k] >= 0) {
            min[dim_of[k]] = ir_int(m->c->cx, tree_store_shift(write, dim_of[k]));
            extent[dim_of[k]] = w->block->iters[k].extent;
        }
    return tree_fills(&m->c->s->view, w, write, &whole, step);
}

/* ... of a buffer with a layout, whose padding counts as written. */
static bool writes_box(sched_move *m, const tree_site *w, const ir_region *write)
{
    ir_region whole = ir_region_whole(m->c->cx, write->buffer);

    return tree_fills(&m->c->s->view, w, write, &whole, 0);
}

static bool plain_read(sched_move *m, const ir_region *read)
{
    int64_t shift;

    for (int d = 0; d < read->buffer->n; d++)
        if (read_iter(m, read, d, &shift) < 0)
            return false;
    return true;
}

/* The values of w's iteration variables where it writes the element that Q reads, over the variables of Q; a
 * NULL among them: any. NULL: not known. By the plain store, an iteration variable is the element's index
 * less a constant; by a layout, it is the inverse map at the index that Q reads. */
static const ir_expr **writing_point(sched_move *m, const ir_region *read, const tree_site *w,
                                     const ir_region *write)
{
    tec_context *cx = m->c->cx;
    const ir_expr **value = base_array(cx, const ir_expr *, w->block->n_iters);
    int *dim_of = base_array(cx, int, w->block->n_iters);
    ir_subst at = {0};
    tree_layout l;

    if (tree_plain_store(&m->c->s->view, w->block, write, dim_of)) {
        for (int k = 0; k < w->block->n_iters; k++)
            if (dim_of[k] >= 0)
                value[k] = ir_sub(cx, read->min[dim_of[k]], ir_int(cx, tree_store_shift(write, dim_of[k])));
        return value;
    }
    if (!tree_invert_store(&m->c->s->view, w->block, write, &l))
        return NULL;
    for (int d = 0; d < l.n; d++)
        base_map_put(cx, &at.vars, l.point[d], read->min[d]);
    for (int k = 0; k < w->block->n_iters; k++)
        value[k] = l.var[k] ? ir_apply(cx, &at, l.var[k]) : NULL;
    return value;
}

/* All that Q reads of the buffer is written by an instance of w, and not the padding of a layout: there Q
 * would find no iteration to run in. An example: w writes P[floordiv(i, 8), i % 8] for i < 13, so that P[1,
 * 5..7] is padding. If Q reads all 16 elements, the instances of Q at the padding belong to no instance of
 * w. */
static bool reads_instances(sched_move *m, const ir_region *read, const tree_site *w, const ir_region *write)
{
    const ir_expr **value = writing_point(m, read, w, write), *zero = ir_int(m->c->cx, 0);
    ir_facts *f = ir_facts_new(m->c->cx, m->c->s->view.facts);

    for (int i = 0; i < m->site->block->n_iters; i++)
        ir_facts_range(f, m->site->block->iters[i].var, zero, m->site->block->iters[i].extent);
    for (int k = 0; value && k < w->block->n_iters; k++)
        if (value[k] &&
            !(ir_prove_le(f, zero, value[k]) && ir_prove_lt(f, value[k], w->block->iters[k].extent)))
            return false;
    return value != NULL;
}

/* Q reads every element of the buffer at one of its points: those in the box say which points run. */
static bool take_layout_part(sched_move *m, const ir_facts *f, const ir_region *read, const ir_region *box)
{
    tree_layout l;

    if (!tree_invert_read(&m->c->s->view, m->site->block, read, &l))
        return false;
    for (int i = 0; i < m->site->block->n_iters; i++)
        if (l.var[i] && !sched_span_in_box(f, &l, l.var[i], box, &m->min[i], &m->extent[i]))
            return false;
    return true;
}

/* The loop's variable says where Q starts. */
static bool any_starts_at(const sched_move *m, const ir_expr *var)
{
    for (int i = 0; i < m->site->block->n_iters; i++)
        if (ir_uses_var(m->c->cx, m->min[i], var))
            return true;
    return false;
}

/* Whether Q runs depends on loop i around w as it did not before. In a loop that Q shared with w it runs as
 * it did, but for those of its reduction: where they had no iteration, Q initialised. */
static bool is_new_loop(sched_move *m, const tree_site *w, int i)
{
    return i >= tree_common_loops(w, m->site) ||
           tree_kind_for(m->c->cx, m->site, w->loop[i]->loop.var) == IR_REDUCE_ITER;
}

/* Where Q has points, its new loops must run. NULL: all of the new loops run. Facts are added loop by loop,
 * as the extent of a loop may depend on those around it. */
static const ir_stmt *empty_loop(sched_move *m, const tree_site *w)
{
    const ir_expr *one = ir_int(m->c->cx, 1);
    ir_facts *f = ir_facts_new(m->c->cx, m->c->s->view.facts);

    for (int i = 0; i < m->site->block->n_iters; i++)
        if (m->site->block->iters[i].kind == IR_SPATIAL)
            ir_facts_assume(f, ir_le(m->c->cx, one, m->site->block->iters[i].extent));
    for (int i = 0; i < sched_move_fixed_loops(m, w); i++) {
        const ir_stmt *l = w->loop[i];

        if (is_new_loop(m, w, i) && !ir_prove_le(f, one, l->loop.extent))
            return l;
        tree_know_loop(f, l->loop.var, l->loop.extent, false);
    }
    return NULL;
}

/* In one iteration of the new loops that say nothing of which points of Q run, the first (or the last) of
 * each, conditions on them hold. Gives one that is not proven to. A loop that says nothing of Q's points
 * repeats the same part. Then Q runs in each of its iterations, unless a condition on the loop picks one; the
 * first and the last are the ones that such conditions pick. */
static const ir_expr *idle_guard(sched_move *m, const tree_site *w, bool last)
{
    tec_context *cx = m->c->cx;
    int fixed = sched_move_fixed_loops(m, w);
    const ir_facts *f = tree_site_facts(&m->c->s->view, w, fixed);
    ir_subst at = {0};

    for (int i = 0; i < fixed; i++)
        if (is_new_loop(m, w, i) && !any_starts_at(m, w->loop[i]->loop.var))
            base_map_put(cx, &at.vars, w->loop[i]->loop.var,
                         last ? ir_sub(cx, w->loop[i]->loop.extent, ir_int(cx, 1)) : ir_int(cx, 0));
    for (int i = 0; i < m->guards.n; i++) {
        const ir_expr *there = ir_apply(cx, &at, m->guards.at[i]);

        if (there != m->guards.at[i] && !ir_prove(f, there))
            return m->guards.at[i];
    }
    return NULL;
}

/* All that Q reads of w's part is computed in each iteration in which Q runs, and Q runs. The reasons are
 * tried in this order, and the first that applies is the one for the reader. */
static bool part_is_reached(sched_move *m, const tree_site *w, const char **reason)
{
    const ir_stmt *empty = empty_loop(m, w);
    const ir_expr *unmet = empty || !idle_guard(m, w, true) ? NULL : idle_guard(m, w, false);

    if (empty)
        *reason = base_format(m->c->cx, "it is not proven that '%s' runs at all", empty->loop.var->var.name);
    else if (unmet)
        *reason =
            base_format(m->c->cx, "it is not proven that '%s' ever holds", ir_expr_text(m->c->cx, unmet));
    if (empty || unmet)
        return false;
    for (int i = 0; i < m->guards.n; i++)
        if (!tree_has_guard(&m->c->s->view, w, m->guards.at[i])) {
            *reason = base_format(m->c->cx, "it depends on '%s' whether all that '%s' reads is computed",
                                  ir_expr_text(m->c->cx, m->guards.at[i]), m->site->block->name);
            return false;
        }
    return true;
}

/* Q runs at the points that read, one variable for each dimension, what lies in the box.
 *
 *     w writes C[y], y in 0..n;  Q reads C[y + 1]:  shift 1, so Q's y is the box's index less 1
 *
 * `ahead` is how far the read lies ahead of the write in terms of iterations; Q's domain shifted by it must
 * lie within w's, or some instances of Q would read rows that w never writes. */
static bool take_plain_part(sched_move *m, const ir_region *read, const tree_site *w, const ir_region *write,
                            const int *dim_of, const ir_region *box, const char **reason)
{
    const ir_block *b = m->site->block;
    const ir_facts *f = tree_site_facts(&m->c->s->view, w, sched_move_fixed_loops(m, w));
    bool *set = base_array(m->c->cx, bool, b->n_iters);

    for (int k = 0; k < w->block->n_iters; k++) {
        int64_t shift = 0;
        int d = dim_of[k], i = d < 0 ? -1 : read_iter(m, read, d, &shift);

        if (i < 0 || set[i])
            continue;
        int64_t ahead = shift - tree_store_shift(write, d);
        const ir_expr *end = ir_add(m->c->cx, b->iters[i].extent, ir_int(m->c->cx, ahead));
        if (ahead < 0 || !ir_prove_le(f, end, w->block->iters[k].extent)) {
            *reason =
                base_format(m->c->cx, "no part of '%s' that '%s' writes covers all of axis '%s' of '%s'",
                            read->buffer->name, w->block->name, b->iters[i].var->var.name, b->name);
            return false;
        }
        m->min[i] = ir_simplify(f, ir_sub(m->c->cx, box->min[d], ir_int(m->c->cx, shift)));
        m->extent[i] = ir_simplify(f, box->extent[d]);
        set[i] = true;
    }
    return true;
}

/* Lets the part of `write` that w completes per iteration say which points of Q run; false where it does not
 * cover all of them. First: does w write all of its buffer? Then: which instances of Q read what one
 * iteration completes, by the plain read or by the inverse of a layout? Last: do these instances run? */
static bool take_part(sched_move *m, const ir_region *read, const tree_site *w, const ir_region *write,
                      const char **reason)
{
    int *dim_of = base_array(m->c->cx, int, w->block->n_iters);
    ir_region box = tree_box(&m->c->s->view, w, write, sched_move_fixed_loops(m, w), true);
    const ir_facts *f = tree_site_facts(&m->c->s->view, w, sched_move_fixed_loops(m, w));
    bool plain = tree_plain_store(&m->c->s->view, w->block, write, dim_of);

    if (!plain && !writes_box(m, w, write)) {
        *reason = base_format(m->c->cx, "the store of '%s' cannot be inverted", w->block->name);
        return false;
    }
    if (plain && !writes_all(m, w, write, dim_of)) {
        *reason = base_format(m->c->cx, "it is not proven that '%s' writes all of '%s'", w->block->name,
                              read->buffer->name);
        return false;
    }
    if (!plain_read(m, read) && take_layout_part(m, f, read, &box)) {
        if (reads_instances(m, read, w, write))
            return part_is_reached(m, w, reason);
        *reason =
            base_format(m->c->cx, "it is not proven that '%s' writes each element of '%s' that '%s' reads",
                        w->block->name, read->buffer->name, m->site->block->name);
        return false;
    }
    if (!plain) {
        *reason = base_format(m->c->cx, "the read of '%s' by '%s' cannot be inverted", read->buffer->name,
                              m->site->block->name);
        return false;
    }
    return take_plain_part(m, read, w, write, dim_of, &box, reason) && part_is_reached(m, w, reason);
}

/* One producer's part decides; the others must have completed what Q reads there. The first producer whose
 * part passes is taken. Each attempt starts from the whole domain again. The user sees the reason of the
 * first producer that failed. */
static const ir_stmt *try_parts(sched_move *m, const char *last)
{
    const char *why = NULL, *reason = NULL;

    for (int i = 0; i < m->all.n; i++)
        for (int j = 0; j < m->site->block->n_reads; j++) {
            const tree_site *w = &m->all.at[i];
            const ir_region *read = &m->site->block->reads[j],
                            *write = tree_access(w->block->writes, w->block->n_writes, read->buffer);

            if (w == m->site || !write || !sched_move_under(m, w) || sched_move_earlier_only(m, read, w))
                continue;
            sched_move_whole_domain(m);
            m->c->reason = NULL;
            if (take_part(m, read, w, write, &reason)) {
                const ir_stmt *root =
                    sched_move_carry_out(m, last, !BASE_PLANT_ON(m->c->cx, reverse_compute_at_place));

                if (root && sched_move_keeps_step(m, root) &&
                    sched_reads_are_written(m->c, root, m->site->block->name))
                    return root;
                reason = m->c->reason;
            }
            why = why ? why : reason;
        }
    m->c->reason = NULL;
    return why ? sched_refuse(m->c, "%s", why)
               : sched_refuse(
                     m->c, "what '%s' writes under '%s' is read by '%s' as another buffer of the same memory",
                     last, m->loop_name, m->site->block->name);
}

/* The other inputs of Q are complete before the target's body. */
static bool others_complete(sched_move *m, const tree_site *last)
{
    const ir_block *b = m->site->block;
    int first_under = m->all.n;

    for (int i = m->all.n - 1; i >= 0; i--)
        if (sched_move_under(m, &m->all.at[i]))
            first_under = i;
    for (int i = 0; i < m->all.n; i++)
        for (int j = 0; j < b->n_reads; j++) {
            const tree_site *w = &m->all.at[i];

            if (w == m->site || sched_move_under(m, w) || !tree_writes(w->block, b->reads[j].buffer) ||
                sched_move_earlier_only(m, &b->reads[j], w))
                continue;
            if (w->order > first_under)
                return sched_refuse(
                    m->c, "'%s', which '%s' reads, is not complete before '%s': '%s' writes it later",
                    b->reads[j].buffer->name, b->name, m->loop_name, w->block->name);
        }
    if (last->order > m->site->order)
        return sched_refuse(m->c, "'%s' writes what '%s' reads, but runs after it", last->block->name,
                            b->name);
    return true;
}

/* reverse_compute_at(Q, l): Q runs inside l, after its last producer there, over what the producers complete
 * in the iteration. Checks that need no new tree come first. What remains is tried producer by producer. */
const ir_program *sched_do_reverse_compute_at(sched_call *c)
{
    const tree_site *last;
    sched_move m;

    if (!sched_move_start(c, &m, c->arg[0].name, c->arg[1].name))
        return NULL;
    if (sched_move_under(&m, m.site))
        return sched_refuse(c, "'%s' lies under '%s' already", c->arg[0].name, c->arg[1].name);
    if (!sched_move_allowed(&m) || !sched_move_writes_once(&m) || !sched_takes_loops(c, &m.to) ||
        !sched_move_overtakes_nobody(&m) || !(last = last_producer(&m)) || !others_complete(&m, last))
        return NULL;
    for (int j = 0; j < m.site->block->n_writes; j++)
        if (m.site->block->writes[j].buffer->alias)
            return sched_refuse(c, "'%s' may share memory with other buffers",
                                m.site->block->writes[j].buffer->name);
    const ir_stmt *root = try_parts(&m, last->block->name);
    return root && sched_still_independent(c, &m.to, root) ? sched_with_body(c, root) : NULL;
}
