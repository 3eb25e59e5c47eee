/* tree/depend.c -- what the iterations of a loop are to each other in a buffer: the reasons.
 *
 *     for i in 0..8 {
 *       for j in 0..4 { block P(x = j) { P[x] = A[i, x] } }               P: private (private.c)
 *       for j in 0..4 { block C(y = i, x = j) { C[y, x] = P[3 - x] } }    C: owned, i moves the box [i, 0:4]
 *       block S(k reduce = i) { S[0] sum= C[k, 0] }                       S: combined
 *     }
 *
 * All answers are proofs: "no" means that the fact was not proven. An iteration of a loop can only be
 * disturbed by another one where an element crosses between them, and none does where
 * - the buffer is private to the loop (private.c), or
 * - one block owns it: distinct iterations of that block write distinct elements (fill.c), and everything
 *   else in an iteration stays within what the owner writes in the same iteration, or
 * - the loop runs at most once.
 * What would go wrong without the second half of ownership: if a block of the loop read C[7 - y, x],
 * iterations would write elements of their own, and still meet those of others while they are written.
 *
 * Lowering does not prove this again: lower/reasons.c notes on the loop which of these it was, and
 * lower/compact.c reads the note.
 */
#include "tree/depend.h"
#include "ir/reason/facts.h"
#include "tree/touch.h"

typedef struct {
    ir_walk w;
    bool found;
} effect_search;

const char *tree_kind_text(ir_iter_kind kind)
{
    switch (kind) {
    case IR_SPATIAL: return "a spatial";
    case IR_REDUCE_ITER: return "a reduction";
    case IR_SCAN: return "a scan";
    case IR_OPAQUE: return "an opaque";
    }
    return NULL;
}

/* Where instances may run again (a producer computed anew for each consumer, a tile that reaches back over
 * another): each must give the same values a second time. A reduction with its init starts over and does; an
 * update without one would add its terms twice. */
const char *tree_not_idempotent(tec_context *cx, const ir_block *block)
{
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_SCAN || block->iters[i].kind == IR_OPAQUE)
            return block->iters[i].kind == IR_SCAN ? "it is a step of a scan" : "it is opaque";
    for (int i = 0; i < block->n_reads; i++)
        if (tree_writes(block, block->reads[i].buffer))
            return base_format(cx, "it reads '%s', which it writes", block->reads[i].buffer->name);
    if (tree_adds(cx, block))
        return "it does not initialise its reduction itself";
    return tree_has_effect(cx, block->body) ? "it calls a function with an effect" : NULL;
}

static bool look_for_effect(ir_walk *walk, const ir_expr *expr)
{
    ((effect_search *)walk)->found |= (expr->has & IR_HAS_EFFECT) != 0;
    return false;
}

bool tree_has_effect(tec_context *cx, const ir_stmt *body)
{
    effect_search x = {.w = {.cx = cx, .expr = look_for_effect}};

    ir_walk_stmt(&x.w, body);
    return x.found;
}

/* ---- independence ---- */

/* Distinct iterations of the loop write distinct elements: one index moves by at least the width of its box.
 * `box` is what one iteration touches; its dimension d starts at step * var + rest, and the rest stands
 * still. If |step| is at least the width, the boxes of two iterations lie side by side.
 *
 *     for i in 0..8 { .. writes C[i*4 : +4] }     step 4, width 4: apart
 *     for i in 0..8 { .. writes C[i*4 : +5] }     C[4] is written by i = 0 and by i = 1: not proven
 */
static bool strides_apart(const tree_view *view, const tree_site *site, const ir_region *box,
                          const ir_expr *var, int depth)
{
    const ir_facts *facts = tree_site_facts(view, site, depth);

    for (int d = 0; d < box->buffer->n; d++) {
        const ir_expr *rest;
        int64_t step;

        if (!ir_linear(facts, box->min[d], &var, 1, &step, &rest) || step == 0)
            continue;
        if (ir_prove_le(facts, box->extent[d], ir_int(view->cx, step < 0 ? -step : step)))
            return true;
    }
    return false;
}

/* An iteration of the loop touches a box of the buffer that no other one does: it may read there what it
 * wrote, as the steps of a scan do. The box is the hull of all accesses below the loop, reads and writes
 * together.
 *
 *     for i in 0..8 { for t in 1..5 { block c(..) { c[i, t] = c[i, t - 1] * 0.5 } } }
 *     hull c[i, 0:5], apart by i
 */
static bool all_apart(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                      const ir_expr *var)
{
    ir_region *box = base_array(view->cx, ir_region, 2 * all->n);
    const tree_site *site = NULL;
    int n = 0, depth = 0;

    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;
        const ir_region *access[] = {tree_access(block->reads, block->n_reads, buffer),
                                     tree_access(block->writes, block->n_writes, buffer)};
        int below = tree_depth_under(&all->at[i], var);

        for (int k = 0; below && k < 2; k++)
            if (access[k]) {
                site = &all->at[i];
                depth = below;
                box[n++] = tree_box(view, site, access[k], depth, true);
            }
    }
    ir_region hull = ir_region_union(tree_site_facts(view, site, depth), box, n);
    return strides_apart(view, site, &hull, var, depth);
}

/* With a single block the answer of fill.c about that block is enough; with more, each must keep to the
 * elements of the iteration. */
bool tree_shared_under(const tree_sites *all, const ir_buffer *buffer, const ir_expr *var)
{
    int n = 0;

    for (int i = 0; i < all->n; i++)
        n += tree_depth_under(&all->at[i], var) &&
             (tree_reads(all->at[i].block, buffer) || tree_writes(all->at[i].block, buffer));
    return n > 1;
}

/* A spatial axis is empty, so that neither the block nor its init ever runs. */
static bool has_no_points(const tree_view *view, const ir_block *block)
{
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_SPATIAL &&
            ir_prove_le(view->facts, block->iters[i].extent, ir_int(view->cx, 0)))
            return true;
    return false;
}

/* The block runs in the first iteration of its loop at most: the extent or the predicate sees to that, or the
 * block never runs. */
static bool runs_once(const tree_view *view, const tree_site *site, const ir_expr *var)
{
    int depth = tree_depth_under(site, var), most = 1 + BASE_PLANT_ON(view->cx, reason_runs);

    if (has_no_points(view, site->block))
        return true;
    if (ir_prove_le(tree_site_facts(view, site, depth - 1), site->loop[depth - 1]->loop.extent,
                    ir_int(view->cx, most)))
        return true;
    if (!ir_uses_var(view->cx, site->stmt->block.where, var))
        return false;
    ir_facts *inside = ir_facts_new(view->cx, tree_site_facts(view, site, site->n_loops));
    ir_facts_assume(inside, site->stmt->block.where);
    return ir_prove_le(inside, var, ir_int(view->cx, 0));
}

/* Each block below the loop that uses the buffer runs in its first iteration at most. */
static bool all_run_once(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                         const ir_expr *var)
{
    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;

        if (tree_depth_under(&all->at[i], var) && (tree_reads(block, buffer) || tree_writes(block, buffer)) &&
            !runs_once(view, &all->at[i], var))
            return false;
    }
    return true;
}

/* Why writer does not own the buffer in the loop of `var`, where it makes this access; NULL: it does. In the
 * example above, writer = C: i is a spatial loop of C; its box [i, 0:4] moves by 1 in a dimension in which it
 * is 1 wide; no other block uses C there but S, whose box [i, 0] lies within. */
static const char *conflict(const tree_view *view, const tree_sites *all, const tree_site *writer,
                            const ir_region *access, const ir_expr *var)
{
    const ir_buffer *buffer = access->buffer;
    const ir_region *own = tree_access(writer->block->reads, writer->block->n_reads, buffer);
    bool shared = tree_shared_under(all, buffer, var);
    int depth = tree_depth_under(writer, var);
    ir_iter_kind kind = tree_kind_for(view->cx, writer, var);

    if (kind != IR_SPATIAL)
        return base_format(view->cx, "'%s' is %s loop of '%s'", var->var.name, tree_kind_text(kind),
                           writer->block->name);
    ir_region box = tree_box(view, writer, access, depth, true);
    bool apart = strides_apart(view, writer, &box, var, depth);
    if ((own || shared) &&
        all_apart(view, all, buffer, var)) /* otherwise the box is all that the loop touches */
        return NULL;
    if (!apart && !tree_digits_apart(view, writer, access, var, depth) && !runs_once(view, writer, var))
        return base_format(view->cx,
                           "it is not proven that iterations of '%s' write distinct elements of '%s'",
                           var->var.name, buffer->name);
    if (own && tree_reads_no_write_of_loop(view, writer, own, writer, var))
        own = NULL;
    if (!shared)
        return own ? base_format(view->cx, "'%s' reads what it writes, '%s'", writer->block->name,
                                 buffer->name)
                   : NULL;
    if (own || !tree_all_within(view, all, writer, buffer, var, &box) ||
        !(apart || tree_touches_whole_box(view, writer, access, &box, depth) ||
          all_run_once(view, all, buffer, var)))
        return base_format(view->cx,
                           "it is not proven that each iteration of '%s' uses only its own elements of '%s', "
                           "which '%s' writes",
                           var->var.name, buffer->name, writer->block->name);
    return NULL;
}

/* Another buffer below the loop that may be the same memory: nothing is known of which elements meet; NULL:
 * none. */
static const char *aliased(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                           const ir_expr *var)
{
    for (int i = 0; buffer->alias && i < all->n; i++) {
        const ir_block *block = all->at[i].block;

        if (!tree_depth_under(&all->at[i], var))
            continue;
        for (int j = 0; j < block->n_reads + block->n_writes; j++) {
            const ir_buffer *other =
                j < block->n_reads ? block->reads[j].buffer : block->writes[j - block->n_reads].buffer;

            if (other != buffer && other->alias == buffer->alias)
                return base_format(view->cx, "'%s' and '%s' may share memory", buffer->name, other->name);
        }
    }
    return NULL;
}

/* Some writer must own the buffer; the reason that the first one gives is the one to read. */
const char *tree_buffer_dependence(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                                   const ir_expr *var)
{
    const char *reason = NULL;

    for (int i = 0; i < all->n; i++) {
        const tree_site *w = &all->at[i];
        const ir_region *access =
            tree_depth_under(w, var) ? tree_access(w->block->writes, w->block->n_writes, buffer) : NULL;

        if (!access)
            continue;
        const char *why = conflict(view, all, w, access, var);
        if (!why)
            return aliased(view, all, buffer, var);
        reason = reason ? reason : why;
    }
    return reason;
}

/* The block runs once for all iterations of its loop `depth`: its threads share the work (bind.c,
 * need_common_work). */
static bool is_common_work(const tree_site *site, int depth)
{
    for (int i = depth; i < site->n_loops; i++)
        if (site->loop[i]->loop.how == site->loop[depth - 1]->loop.how)
            return true;
    return false;
}

/* Memory that the threads of a block share is no thread's own, whatever each of them writes first, unless
 * they fill it together. The threads of a warp, which share its memory, lie along x. */
static bool is_shared_by_threads(const tree_sites *all, const ir_buffer *buffer, const ir_expr *var)
{
    for (int i = 0; i < all->n && (buffer->scope == IR_SHARED || buffer->scope == IR_WARP); i++) {
        int depth = tree_depth_under(&all->at[i], var);
        ir_how how = depth ? all->at[i].loop[depth - 1]->loop.how : IR_SERIAL;
        ir_how last = buffer->scope == IR_WARP ? IR_THREAD_X : IR_THREAD_Z;

        if (how >= IR_THREAD_X && how <= last && tree_writes(all->at[i].block, buffer) &&
            !is_common_work(&all->at[i], depth))
            return true;
    }
    return false;
}

/* Privacy, but for shared memory that one thread writes and others read. */
static bool is_private(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                       const ir_expr *var)
{
    return !is_shared_by_threads(all, buffer, var) && tree_private_to_iteration(view, all, buffer, var);
}

/* No two iterations of the loop run a block. */
static bool runs_at_most_once(const tree_view *view, const tree_sites *all, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++)
        if (tree_depth_under(&all->at[i], var) && !runs_once(view, &all->at[i], var))
            return false;
    return true;
}

/* The first of PRIVATE, OWNED, ONCE that is proven, or DEPENDS. `why`, for the reader: what keeps the buffer
 * from being owned; NULL for an owned or a private one. */
static tree_reason reason_for(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                              const ir_expr *var, const char **why)
{
    *why = NULL;
    if (is_private(view, all, buffer, var))
        return TREE_PRIVATE;
    *why = tree_buffer_dependence(view, all, buffer, var);
    if (!*why)
        return TREE_OWNED;
    return runs_at_most_once(view, all, var) ? TREE_ONCE : TREE_DEPENDS;
}

/* All blocks below the loop that write the buffer add to it over the loop. */
static bool is_combined(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                        const ir_expr *var)
{
    bool any = false;

    for (int i = 0; i < all->n; i++) {
        const tree_site *site = &all->at[i];

        if (!tree_depth_under(site, var) || !tree_access(site->block->writes, site->block->n_writes, buffer))
            continue;
        if (tree_kind_for(view->cx, site, var) != IR_REDUCE_ITER || !tree_combiner(site->block))
            return false;
        any = true;
    }
    return any;
}

/* Serial and unrolled loops keep their order and need none. Threads have local memory of their own each, and
 * meet at barriers in shared memory (lower/barriers.c); global memory they have in common. */
bool tree_needs_reason(const ir_stmt *loop, const ir_buffer *buffer)
{
    ir_how how = loop->loop.how;

    return how != IR_SERIAL && how != IR_UNROLLED &&
           (buffer->scope == IR_GLOBAL || how < IR_THREAD_X || how > IR_THREAD_Z);
}

/* Four kinds of loops: over blocks of threads, to which memory of a launch belongs by its nature; loops that
 * keep their order, where only privacy is of use, to place the buffer; and loops whose iterations run at the
 * same time, which need a reason or are an error. A reduction that is combined comes last, since only some
 * passes can lower it. */
tree_reason tree_reason_of_loop(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                                const ir_stmt *loop, const char **why)
{
    const ir_expr *var = loop->loop.var;

    *why = NULL;
    /* memory of a launch is a block's own */
    if (loop->loop.how >= IR_BLOCK_X && loop->loop.how <= IR_BLOCK_Z && buffer->scope != IR_GLOBAL)
        return TREE_PRIVATE;
    if (!tree_needs_reason(loop, buffer))
        return is_private(view, all, buffer, var) ? TREE_PRIVATE : TREE_DEPENDS;
    tree_reason reason = reason_for(view, all, buffer, var, why);
    return reason == TREE_DEPENDS && is_combined(view, all, buffer, var) ? TREE_COMBINED : reason;
}

/* The question of `parallel`, `vectorize`, `bind` and of the passes: may the iterations of the loop of `var`
 * run in any order? Each written buffer is asked about once; a function with an effect is like a buffer that
 * all iterations write. */
const char *tree_dependence(const tree_view *view, const tree_sites *all, const ir_expr *var)
{
    base_map done = {0};

    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;

        if (!tree_depth_under(&all->at[i], var))
            continue;
        for (int j = 0; j < block->n_writes; j++) {
            const ir_buffer *buffer = block->writes[j].buffer;
            const char *why;

            if (base_map_has(&done, buffer))
                continue;
            base_map_put(view->cx, &done, buffer, buffer);
            if (reason_for(view, all, buffer, var, &why) == TREE_DEPENDS)
                return why;
        }
        if (tree_has_effect(view->cx, block->body))
            return runs_at_most_once(view, all, var)
                       ? NULL
                       : base_format(view->cx, "'%s' calls a function with an effect", block->name);
    }
    return NULL;
}

const char *tree_reason_text(tree_reason reason)
{
    switch (reason) {
    case TREE_DEPENDS: return "depends";
    case TREE_PRIVATE: return "private";
    case TREE_OWNED: return "owned";
    case TREE_ONCE: return "once";
    case TREE_COMBINED: return "combined";
    case TREE_OUTSIDE: return "outside";
    }
    return NULL;
}

tree_reason tree_reason_of_text(const char *text)
{
    for (tree_reason r = TREE_PRIVATE; r <= TREE_OUTSIDE; r++)
        if (base_same(text, tree_reason_text(r)))
            return r;
    return TREE_DEPENDS;
}
