/* lower/lanes.c -- gives a reduction over a vectorised loop one partial result for each lane.
 *
 *     for k.0 in 0..n/16 {                        for v in 0..16 vectorised { block S.lanes.init: P[v] = 0 }
 *       for k.1 in 0..16 vectorised {             for k.0 in 0..n/16 {
 *         block S(k reduce = k.0*16 + k.1) {  =>    for k.1 in 0..16 vectorised {
 *                                                     block S.lanes(lane = k.1): P[lane] sum= A[k] }
 *           init { S[] = 0 }                      }
 *           S[] sum= A[k]                         for v in 0..8 vectorised {
 *                                                   block S.lanes.8: P[v] sum= P[v + 8] }   # 4, 2, 1
 *     } } }                                       for v in 0..1 { block S(lane reduce = v): init S[] = 0,
 *                                                   S[] sum= P[lane] }
 *
 * requires  a loop tree
 * provides  no vectorised loop is bound to a reduce variable that the block's elements do not depend on
 * breaks    the names of blocks: S is the one that combines the lanes
 *
 * Where the target has masks, the number of lanes is rounded up to a power of two, so that a partial result
 * fills its register. The partial results start at the identity and span all loops of the reduction; they
 * combine once, by halves while their number is even, the rest in order. Lanes that the predicate leaves out
 * keep the identity; elements that it leaves out get no partial results. This re-associates, so it needs a
 * combiner that is declared to allow it, and for floats the fast policy; otherwise the loop runs serially,
 * which is logged.
 *
 * lower/threads.c does the same for the threads of a block.
 *
 * A worked example with 12 lanes on a target with masks, y spatial and k in 0..n*12:
 *
 *     lanes 12 -> 16, partial results P[y, 16], all of them 0 at first
 *     P[y, lane] sum= A[y, k.0*12 + lane] where lane < 12          lanes 12 .. 15 keep the 0
 *     P[y, v] sum= P[y, v + 8], v in 0..8;   then 4, 2, 1          16 -> 8 -> 4 -> 2 -> 1
 *     S[y] = init;  S[y] sum= P[y, 0]
 *
 * The identity in the lanes 12 to 15 makes the rounding up harmless: adding 0 changes no sum. Without masks
 * the buffer has 12 lanes: 12 -> 6 -> 3 by halves, and the last 3 are added in order.
 *
 * What each check of `forbidden` prevents. A reduction that others read half-way would give them a sum that
 * is still spread over lanes. A loop that mixes elements and terms would be copied around the combination,
 * and an element would combine its lanes once for each of its terms. An init that is not at the first point
 * would be applied to some terms only. Threads that share the reduction could not fill lanes, which are
 * registers of one thread.
 */
#include "lower/lanes.h"
#include "ir/calls.h"
#include "ir/region/region.h"
#include "lower/reasons.h"
#include "tree/touch.h"

/* Longer loops are not padded to a power of two. */
enum { MAX_PADDED = 256 };

/* A variable that alone is a spatial one of the block: its values are distinct elements. */
static bool is_dimension(const tree_site *site, const ir_expr *var)
{
    for (int i = 0; i < site->stmt->block.block->n_iters; i++)
        if (site->stmt->block.block->iters[i].kind != IR_REDUCE_ITER && site->stmt->block.bind[i] == var)
            return true;
    return false;
}

/* Whether the expression has a variable of the set. */
static bool uses_any(tec_context *cx, const ir_expr *expr, const base_map *set)
{
    base_vec vars = {0};

    ir_free_vars(cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_has(set, vars.at[i]))
            return true;
    return false;
}

/* The loops and lets of path[at..] that the elements of the block depend on. */
static void add_spatial(tec_context *cx, const tree_site *site, int at, base_map *out)
{
    for (int i = 0; i < site->block->n_iters; i++)
        if (site->block->iters[i].kind != IR_REDUCE_ITER)
            lower_used(cx, site, at, site->stmt->block.bind[i], out);
}

/* The place in the path of a loop over lanes that is all reduction; -1: none. Of several loops over thread
 * axes the last one is taken. Threads along x may keep their partial results in registers, and registers have
 * no dimension for the threads of another axis. Only a loop that no element depends on can be split into
 * lanes of one element. */
static int lane_loop(const lower_splitter *sp, const tree_site *site)
{
    tec_context *cx = sp->rw.cx;
    base_map reduce = {0}, spatial = {0};
    int found = -1;

    lower_reduce_vars(cx, site, &reduce);
    add_spatial(cx, site, 0, &spatial);
    for (int i = 0; i < site->n; i++)
        if (site->path[i]->kind == IR_FOR && sp->kind->runs(site->path[i]->loop.how) &&
            base_map_has(&reduce, site->path[i]->loop.var) &&
            !base_map_has(&spatial, site->path[i]->loop.var) &&
            (found < 0 || site->path[i]->loop.how > site->path[found]->loop.how))
            found = i;
    return found;
}

typedef struct {
    ir_walk w;
    const ir_stmt *update;
} target_use;

/* Stops at a target. An alias of a target counts: what is stored to the one may be seen in the other. */
static void touch_target(ir_walk *walk, const ir_buffer *buffer, const ir_expr *const *index, bool writes)
{
    const ir_stmt *update = ((target_use *)walk)->update;

    (void)index, (void)writes;
    for (int i = 0; i < update->update.combiner->n; i++) {
        const ir_buffer *t = update->update.buffer[i];

        walk->stop |= t == buffer || (t->alias && t->alias == buffer->alias);
    }
}

/* Whether what stands beside the path at path[i] touches what the block updates. */
static bool is_used_beside(tec_context *cx, const tree_site *site, int i, const ir_stmt *update)
{
    const ir_stmt *next = i + 1 < site->n ? site->path[i + 1] : site->stmt;
    target_use u = {.w = {.touch = touch_target, .cx = cx}, .update = update};

    for (int k = 0; site->path[i]->kind == IR_SEQ && k < site->path[i]->seq.n; k++)
        if (site->path[i]->seq.stmt[k] != next)
            ir_walk_stmt(&u.w, site->path[i]->seq.stmt[k]);
    return u.w.stop;
}

/* The last place between the reduction's outermost loop and the vectorised one where others fill or take the
 * results; -1: none. */
static int shared_at(tec_context *cx, const tree_site *site, int loop)
{
    base_map reduce = {0};

    lower_reduce_vars(cx, site, &reduce);
    for (int i = loop - 1; i > lower_reduction_at(site, &reduce); i--)
        if (is_used_beside(cx, site, i, ir_only_update(site->stmt->block.block->body)))
            return i;
    return -1;
}

/* The place of the outermost loop that the partial results span. Where others fill or take the results within
 * the reduction, as an accumulating cache does, that is a loop inside of what they share. An accumulating
 * cache, for example, loads and stores the result in each step of an outer reduction loop; partial results
 * that spanned these steps would be combined behind the last store. */
static int outermost(tec_context *cx, const tree_site *site, const base_map *reduce, int loop)
{
    int shared = shared_at(cx, site, loop), at = shared + 1;

    if (shared < 0)
        return lower_reduction_at(site, reduce);
    while (at < loop && !(site->path[at]->kind == IR_FOR && base_map_has(reduce, site->path[at]->loop.var)))
        at++;
    return at;
}

/* Asked with all facts at the block: whether all reduce variables can be 0 at the first iteration of the
 * loops. */
static lower_start first_point(const lower_splitter *sp, const tree_site *site)
{
    base_map reduce = {0};

    lower_reduce_vars(sp->rw.cx, site, &reduce);
    return lower_first_point(lower_site_facts(sp->f, site, site->n), site, lower_reduction_at(site, &reduce));
}

/* A loop of the reduction that the elements depend on too: its copies would combine the lanes of an element
 * more than once. */
static bool is_mixed(tec_context *cx, const tree_site *site)
{
    base_map reduce = {0}, spatial = {0};

    lower_reduce_vars(cx, site, &reduce);
    add_spatial(cx, site, 0, &spatial);
    for (int i = 0; i < site->n; i++)
        if (site->path[i]->kind == IR_FOR && base_map_has(&reduce, site->path[i]->loop.var) &&
            base_map_has(&spatial, site->path[i]->loop.var) && !is_dimension(site, site->path[i]->loop.var))
            return true;
    return false;
}

/* The blocks that start and combine the partial results stand outside of the reduction. An axis without
 * elements may be seen by the loops of the reduction alone (tree_domain_guards). */
static bool has_empty_axis(const lower_splitter *sp, const tree_site *site)
{
    tec_context *cx = sp->rw.cx;
    base_map reduce = {0}, spatial = {0};
    base_vec all = {0}, guards = {0}, wanted = {0};

    lower_reduce_vars(cx, site, &reduce);
    int at = lower_reduction_at(site, &reduce);
    add_spatial(cx, site, at, &spatial);
    lower_site_conditions(cx, site, at, &all);
    for (int i = 0; i < all.n; i++)
        if (!uses_any(cx, all.at[i], &reduce))
            base_push(cx, &guards, all.at[i]);
    tree_domain_guards(lower_inside_copies(lower_site_facts(sp->f, site, at), site, at, &spatial, &guards),
                       site->stmt, &wanted);
    return wanted.n > 0;
}

/* Why the reduction must keep its order; NULL where it need not. */
static const char *forbidden(const lower_splitter *sp, const tree_site *site, int loop)
{
    const ir_stmt *u = ir_only_update(site->stmt->block.block->body);
    int64_t n;

    if (!u)
        return "the body of its block is not a single update";
    if (!ir_is_int(site->path[loop]->loop.extent, &n))
        return "its extent is not a constant";
    if (!u->update.combiner->reorders)
        return "its combiner is not declared associative and commutative";
    for (int i = 0; i < u->update.combiner->n; i++)
        if (sp->o->strict && base_is_float(u->update.buffer[i]->dtype))
            return "the floating-point policy is strict";
    if (site->stmt->block.block->init && first_point(sp, site) != LOWER_STARTS)
        return "it may not start at the first point of the reduction";
    if (site->stmt->block.block->init && has_empty_axis(sp, site))
        return "one of its other axes may be empty";
    if (site->stmt->block.block->init && shared_at(sp->rw.cx, site, loop) >= 0)
        return "other blocks go on with its results before it ends";
    if (is_mixed(sp->rw.cx, site))
        return "a loop around it runs over reduction and other axes at once";
    for (int i = loop + 1; i < site->n; i++)
        if (site->path[i]->kind == IR_SEQ ||
            (site->path[i]->kind == IR_FOR && site->path[i]->loop.how == IR_VECTORISED &&
             sp->kind->runs(IR_VECTORISED)))
            return "its body is not a single block";
    return sp->kind->forbids ? sp->kind->forbids(sp->rw.cx, site) : NULL;
}

/* Whether the index moves with threads only, so that each thread that keeps its own partial results has one
 * element of it. */
static bool is_one_for_each(tec_context *cx, const lower_reduction *reduction, const ir_expr *index)
{
    const ir_block *block = reduction->site->stmt->block.block;
    base_map used = {0};

    for (int i = 0; reduction->own && i < block->n_iters; i++)
        if (ir_uses_var(cx, index, block->iters[i].var))
            lower_used(cx, reduction->site, reduction->at, reduction->site->stmt->block.bind[i], &used);
    for (int i = reduction->at; i < reduction->site->n; i++)
        if (reduction->site->path[i]->kind == IR_FOR &&
            base_map_has(&used, reduction->site->path[i]->loop.var) &&
            !lower_is_thread(reduction->site->path[i]))
            return false;
    return used.n > 0;
}

/* The dimension of the partial results that the lanes lie along: the last one, but for threads along y and z
 * the first one. Neighbouring threads along x have neighbouring elements of the result then, and their
 * partial results lie in different banks of shared memory. */
static int lane_dimension(const lower_reduction *reduction)
{
    return reduction->how == IR_THREAD_Y || reduction->how == IR_THREAD_Z ? 0 : reduction->update->update.n;
}

/* The shape of the result, and a dimension for the lanes. Where each thread keeps its own result in a
 * register there is no such dimension, and a dimension that only threads move along has one element. */
static const ir_buffer *partial_buffer(lower_splitter *sp, const lower_reduction *reduction, int which)
{
    tec_context *cx = sp->rw.cx;
    const ir_buffer *buffer = reduction->update->update.buffer[which];
    const ir_expr **shape = base_array(cx, const ir_expr *, buffer->n + 1);
    int lane = lane_dimension(reduction);

    for (int i = 0; i < buffer->n; i++)
        shape[i + (i >= lane)] = is_one_for_each(cx, reduction, reduction->update->update.index[i])
                                     ? ir_int(cx, 1)
                                     : buffer->shape[i];
    shape[lane] = ir_int(cx, reduction->lanes);
    ir_buffer *part = ir_buffer_copy(cx, ir_buffer_new(cx, base_format(cx, "%s.lanes", buffer->name),
                                                       buffer->dtype, shape, buffer->n + !reduction->own));
    part->scope = reduction->scope;
    part->loc = buffer->loc;
    base_push(cx, &sp->buffers, part);
    return part;
}

/* ---- blocks ---- */

/* A block like that of the reduction, with the given variables, bindings and body; its regions follow from
 * the body. The facts for the regions are those of the program alone: a block's inside mentions no loop.
 * What the old block declared to touch is not taken over: the partial results are other buffers. */
static const ir_stmt *make_block(lower_splitter *sp, const lower_reduction *reduction, const char *name,
                                 const ir_iter *iters, const ir_expr *const *bind, int count,
                                 const ir_stmt *init, const ir_stmt *body, const ir_expr *where)
{
    tec_context *cx = sp->rw.cx;
    ir_block *block = ir_block_copy(cx, reduction->site->stmt->block.block);
    base_vec reads = {0}, writes = {0};

    if (!body)
        return NULL;
    ir_touched(sp->f, init ? ir_seq2(cx, init, body) : body, &reads, &writes);
    ir_region *region = base_array(cx, ir_region, reads.n + writes.n);
    for (int i = 0; i < reads.n + writes.n; i++)
        region[i] = *(const ir_region *)(i < reads.n ? reads.at[i] : writes.at[i - reads.n]);
    block->name = name;
    block->iters = base_copy(cx, iters, (size_t)count * sizeof *iters);
    block->n_iters = count;
    block->reads = region;
    block->n_reads = reads.n;
    block->writes = region + reads.n;
    block->n_writes = writes.n;
    block->init = init;
    block->body = body;
    return ir_block_stmt(cx, block, bind, where);
}

/* Iteration variables of the reduction's block, then one over the lanes. */
typedef struct {
    ir_iter *iters;
    const ir_expr **bind;
    int n;
    const ir_expr *lane; /* the last variable */
} variables;

/* The variables are those of the old block itself, as the new block takes over its index expressions. */
static variables take_iters(lower_splitter *sp, const lower_reduction *reduction, bool reduce_too,
                            ir_iter_kind lane_kind, int64_t lanes, const ir_expr *bind)
{
    tec_context *cx = sp->rw.cx;
    const ir_block *block = reduction->site->stmt->block.block;
    variables v = {.iters = base_array(cx, ir_iter, block->n_iters + 1),
                   .bind = base_array(cx, const ir_expr *, block->n_iters + 1)};

    for (int i = 0; i < block->n_iters; i++) {
        if (block->iters[i].kind == IR_REDUCE_ITER && !reduce_too)
            continue;
        v.iters[v.n] = block->iters[i];
        v.bind[v.n++] = reduction->site->stmt->block.bind[i];
    }
    v.lane = ir_var(cx, "lane", BASE_I64);
    v.iters[v.n] = (ir_iter){.var = v.lane, .extent = ir_int(cx, lanes), .kind = lane_kind};
    v.bind[v.n++] = bind;
    return v;
}

/* The element of the partial results for the block's indices and a lane (which those of a lane's own have no
 * dimension for). */
static const ir_expr *const *partial_index(lower_splitter *sp, const lower_reduction *reduction,
                                           const ir_expr *lane)
{
    int n = reduction->update->update.n, at = lane_dimension(reduction);
    const ir_expr **index = base_array(sp->rw.cx, const ir_expr *, n + 1);

    for (int i = 0; i < n; i++)
        index[i + (i >= at)] = is_one_for_each(sp->rw.cx, reduction, reduction->update->update.index[i])
                                   ? ir_int(sp->rw.cx, 0)
                                   : reduction->update->update.index[i];
    index[at] = lane;
    return index;
}

static const ir_expr *partial(lower_splitter *sp, const lower_reduction *reduction, int which,
                              const ir_expr *lane)
{
    return ir_load(sp->rw.cx, reduction->part[which], partial_index(sp, reduction, lane),
                   reduction->part[which]->n);
}

/* The block with the reads of the old block, whose regions may be smaller than those that its body shows: the
 * schedule knew the loops around it. */
static const ir_stmt *with_reads_of(tec_context *cx, const ir_stmt *stmt, const ir_block *old)
{
    ir_block *block = ir_block_copy(cx, stmt->block.block);

    block->reads = old->reads;
    block->n_reads = old->n_reads;
    return ir_block_stmt(cx, block, stmt->block.bind, stmt->block.where);
}

/* The block that stands in the reduction's place: one update of the lane's own partial result, in the loop
 * whose extent became the number of lanes. Lanes behind the old extent do nothing. The conditions of the body
 * that guard the start become conditions of the block, so that proofs see them: the block touches no element
 * that was not started. */
static const ir_stmt *lane_update(lower_splitter *sp, const lower_reduction *reduction)
{
    tec_context *cx = sp->rw.cx;
    const ir_stmt *u = reduction->update, *stmt = reduction->site->stmt;
    const ir_stmt *loop = reduction->site->path[reduction->loop];
    variables v = take_iters(sp, reduction, true, IR_SPATIAL, reduction->lanes,
                             ir_sub(cx, loop->loop.var, loop->loop.min));
    const ir_stmt *body =
        ir_update(cx, u->update.combiner, reduction->part, partial_index(sp, reduction, v.lane),
                  reduction->part[0]->n, u->update.source);
    const ir_expr *where = stmt->block.where;
    const ir_stmt *out;

    for (int i = 0; i < reduction->inside.n; i++)
        where = ir_all(cx, where, reduction->inside.at[i]);
    if (reduction->lanes > reduction->extent)
        where = ir_all(
            cx, ir_lt(cx, loop->loop.var, ir_add(cx, loop->loop.min, ir_int(cx, reduction->extent))), where);
    out = make_block(sp, reduction, base_format(cx, "%s.lanes", stmt->block.block->name), v.iters, v.bind,
                     v.n, NULL, ir_with_update(cx, stmt->block.block->body, body), where);
    return out ? with_reads_of(cx, out, stmt->block.block) : NULL;
}

static const ir_stmt *over_lanes(lower_splitter *sp, const ir_expr *var, int64_t n, ir_how how,
                                 const ir_stmt *body)
{
    return ir_for(sp->rw.cx, var, ir_int(sp->rw.cx, 0), ir_int(sp->rw.cx, n),
                  n > 1 || how != IR_VECTORISED ? how : IR_SERIAL, body);
}

static const ir_stmt *one_by_one(ir_rewrite *rw, const ir_stmt *stmt)
{
    stmt = ir_rewrite_stmt_children(rw, stmt);
    return stmt && stmt->kind == IR_FOR && stmt->loop.how == IR_VECTORISED
               ? ir_for(rw->cx, stmt->loop.var, stmt->loop.min, stmt->loop.extent, IR_SERIAL, stmt->loop.body)
               : stmt;
}

/* Copies of the reduction's spatial loops around a statement. Threads that combine their results meet in
 * them, so a vectorised loop that each thread has for itself is serial in the copy. The guards of elements
 * stand around the inner statement, in terms of the old variables; the copies rename both. */
static const ir_stmt *nest(lower_splitter *sp, const lower_reduction *reduction, const ir_stmt *inner)
{
    const ir_stmt *out = lower_copy_loops(sp->rw.cx, reduction->site, reduction->at, &reduction->spatial,
                                          &reduction->guards, inner);
    ir_rewrite rw = {.cx = sp->rw.cx, .stmt = one_by_one};

    return out && reduction->how != IR_VECTORISED ? ir_rewrite_stmt(&rw, out) : out;
}

/* All partial results at the identity, in front of the outermost loop of the reduction. */
static const ir_stmt *start(lower_splitter *sp, const lower_reduction *reduction)
{
    tec_context *cx = sp->rw.cx;
    const ir_combiner *combiner = reduction->update->update.combiner;
    const ir_expr *var = ir_var(cx, "lane", BASE_I64);
    variables v = take_iters(sp, reduction, false, IR_SPATIAL, reduction->lanes, var);
    const ir_stmt **store = base_array(cx, const ir_stmt *, combiner->n);

    for (int i = 0; i < combiner->n; i++) {
        const ir_expr *from = combiner->identity[i];

        if (reduction->how == IR_VECTORISED && BASE_PLANT_ON(cx, lanes_identity))
            from = ir_cast(cx, from->dtype, ir_int(cx, 1));
        store[i] = ir_store(cx, reduction->part[i], from, partial_index(sp, reduction, v.lane),
                            reduction->part[0]->n);
    }
    const ir_stmt *block =
        make_block(sp, reduction, base_format(cx, "%s.lanes.init", reduction->site->stmt->block.block->name),
                   v.iters, v.bind, v.n, NULL, ir_seq(cx, store, combiner->n), NULL);
    return nest(sp, reduction, over_lanes(sp, var, reduction->lanes, reduction->how, block));
}

/* The lane takes in lane + half; where each has its own, what a shuffle brings from lane ^ half, so that all
 * end with the result.
 *
 *     lanes 8, half 4:  P[v] sum= P[v + 4], v in 0..4;  registers: r sum= shuffle(r, lane ^ 4), all 8 lanes
 */
static const ir_stmt *take_in(lower_splitter *sp, const lower_reduction *reduction, int64_t half,
                              const ir_expr *lane)
{
    tec_context *cx = sp->rw.cx;
    const ir_combiner *combiner = reduction->update->update.combiner;
    const ir_expr **source = base_array(cx, const ir_expr *, combiner->n);
    const ir_expr *distance =
        ir_int(cx, reduction->how != IR_VECTORISED && BASE_PLANT_ON(cx, threads_half) ? 1 : half);
    const ir_stmt *body;

    for (int i = 0; i < combiner->n; i++)
        source[i] = reduction->own ? ir_data_var(cx, "other", reduction->part[i]->dtype)
                                   : partial(sp, reduction, i, ir_add(cx, lane, distance));
    body = ir_update(cx, combiner, reduction->part, partial_index(sp, reduction, lane), reduction->part[0]->n,
                     source);
    for (int i = combiner->n - 1; reduction->own && i >= 0; i--) {
        const ir_expr *arg[2] = {partial(sp, reduction, i, lane), distance};

        body =
            ir_let_stmt(cx, source[i],
                        ir_call(cx, source[i]->dtype, IR_CALL_SHUFFLE, NULL, arg, 2, NULL, 0, false), body);
    }
    return body;
}

/* One halving: lane v takes in lane v + half. With shuffles all lanes run, and each gets the sum of its
 * pair. */
static const ir_stmt *fold(lower_splitter *sp, const lower_reduction *reduction, int64_t half)
{
    const ir_expr *loop = ir_var(sp->rw.cx, "lane", BASE_I64);
    int64_t lanes = reduction->own ? reduction->lanes : half;
    variables v = take_iters(sp, reduction, false, IR_SPATIAL, lanes, loop);
    const char *name =
        base_format(sp->rw.cx, "%s.lanes.%lld", reduction->site->stmt->block.block->name, (long long)half);

    const ir_stmt *block = make_block(sp, reduction, name, v.iters, v.bind, v.n, NULL,
                                      take_in(sp, reduction, half, v.lane), NULL);

    return nest(sp, reduction, over_lanes(sp, loop, lanes, reduction->how, block));
}

/* The block itself, over the lanes that are left; of threads, the first does it. The block keeps its name and
 * its init, so that later passes find the reduction where it was. */
static const ir_stmt *finish(lower_splitter *sp, const lower_reduction *reduction, int64_t lanes)
{
    tec_context *cx = sp->rw.cx;
    const ir_stmt *u = reduction->update;
    const ir_block *b = reduction->site->stmt->block.block;
    const ir_expr *var = ir_var(cx, "lane", BASE_I64),
                  **source = base_array(cx, const ir_expr *, u->update.combiner->n);
    variables v = take_iters(sp, reduction, false, IR_REDUCE_ITER, lanes, var);

    for (int i = 0; i < u->update.combiner->n; i++)
        source[i] = partial(sp, reduction, i, v.lane);
    const ir_stmt *body =
        ir_update(cx, u->update.combiner, u->update.buffer, u->update.index, u->update.n, source);
    const ir_stmt *block = make_block(sp, reduction, b->name, v.iters, v.bind, v.n, b->init, body, NULL);
    const ir_stmt *all = over_lanes(sp, var, lanes, IR_UNROLLED, block);

    return nest(sp, reduction,
                reduction->how == IR_VECTORISED
                    ? all
                    : over_lanes(sp, ir_var(cx, "first", BASE_I64), 1, reduction->how, all));
}

/* ---- the whole ---- */

/* The block's variable runs over its domain in a loop of its own: each iteration has an element, whatever is
 * said of terms. Then the variable is no evidence that a guard is about elements. */
static bool is_whole(tec_context *cx, const tree_site *site, int iter)
{
    for (int i = 0; i < site->n; i++) {
        const ir_stmt *p = site->path[i];

        if (p->kind == IR_FOR &&
            ir_same(site->stmt->block.bind[iter], ir_sub(cx, p->loop.var, p->loop.min)) &&
            ir_same(site->stmt->block.block->iters[iter].extent, p->loop.extent))
            return true;
    }
    return false;
}

/* A loop of the reduction that its elements do not depend on. */
static bool runs_over_terms(const lower_reduction *reduction, const ir_stmt *stmt)
{
    return stmt->kind == IR_FOR && base_map_has(&reduction->reduce, stmt->loop.var) &&
           !base_map_has(&reduction->spatial, stmt->loop.var);
}

/* What is known in copies of the loops: no condition of the block, and not that the loops of the terms
 * run. */
static const ir_facts *facts_of_copies(const lower_splitter *sp, const lower_reduction *reduction)
{
    const ir_facts *facts = lower_site_facts(sp->f, reduction->site, reduction->at);

    for (int i = reduction->at; i < reduction->site->n; i++) {
        const ir_stmt *p = reduction->site->path[i];

        if (runs_over_terms(reduction, p)) {
            ir_facts *terms = ir_facts_new(sp->rw.cx, facts);

            ir_facts_span(terms, p->loop.var, p->loop.min, p->loop.extent);
            facts = terms;
        } else if (p->kind == IR_FOR || p->kind == IR_LET_STMT) {
            facts = lower_inside(facts, p);
        }
    }
    return facts;
}

/* Where the guards are not proven to leave existing elements alone, they say so. A guard that is weakened to
 * "for some term", or left out as one of terms alone, may have been what kept elements in the domain:
 *
 *     for v in 0..4 vectorised { block S(y = 0 in 0..m, k reduce = v in 0..2) where v < m*2 }
 *
 * S has an element only if 0 < m. */
static void stay_inside(const ir_facts *outside, lower_reduction *reduction)
{
    tec_context *cx = ir_facts_context(outside);
    const ir_stmt *stmt = reduction->site->stmt;
    ir_facts *facts = ir_facts_new(cx, outside);

    for (int i = 0; i < reduction->guards.n; i++)
        ir_facts_assume(facts, reduction->guards.at[i]);
    for (int i = 0; i < stmt->block.block->n_iters; i++) {
        const ir_expr *at = stmt->block.bind[i], *extent = stmt->block.block->iters[i].extent;

        if (stmt->block.block->iters[i].kind == IR_REDUCE_ITER || is_whole(cx, reduction->site, i))
            continue;
        if (!ir_prove_le(facts, ir_int(cx, 0), at))
            base_push(cx, &reduction->guards, ir_le(cx, ir_int(cx, 0), at));
        if (!ir_prove_lt(facts, at, extent))
            base_push(cx, &reduction->guards, ir_lt(cx, at, extent));
    }
}

/* The variables (keys) of the loops outside of the reduction's span whose iterations run at once: as threads,
 * as virtual threads, on several cores. */
static void add_concurrent(tec_context *cx, const lower_reduction *reduction, base_map *out)
{
    for (int i = 0; i < reduction->at; i++) {
        const ir_stmt *p = reduction->site->path[i];

        if (p->kind == IR_FOR && p->loop.how != IR_SERIAL && p->loop.how != IR_UNROLLED)
            base_map_put(cx, out, p->loop.var, p);
    }
}

static bool has_same(const base_vec *conditions, const ir_expr *condition)
{
    for (int i = 0; i < conditions->n; i++)
        if (ir_same(conditions->at[i], condition))
            return true;
    return false;
}

/* The conditions in the block's body that use one of these variables, as conditions on loops, but for those
 * that are `known`. Conditions on data are left out, since other data may be there when the lanes are
 * combined. */
static void add_body_conditions(const lower_splitter *sp, const tree_site *site, const base_map *wanted,
                                const base_vec *known, base_vec *out)
{
    tec_context *cx = sp->rw.cx;
    ir_subst map = tree_bindings(cx, site);
    base_vec all = {0};

    for (const ir_stmt *s = site->stmt->block.block->body; s->kind == IR_IF; s = s->branch.then)
        ir_conjuncts(cx, s->branch.cond, IR_DROP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        const ir_expr *condition = ir_apply(cx, &map, all.at[i]);

        if (uses_any(cx, condition, wanted) && !ir_loads(cx, condition) &&
            !lower_may_fail(sp->f, condition) && !has_same(known, condition))
            base_push(cx, out, condition);
    }
}

/* The conditions under which the lanes of an element are started and combined: those of the block that use no
 * loop of the terms. A condition that mixes terms with elements, as the tail of a loop that was fused over
 * both does, leaves out whole elements. Its weakest form over the terms says which elements are left:
 *
 *     where y*4 + k < 10 over terms k in 0..4:  holds for some k where y*4 < 10
 *
 * So does a condition that mixes terms with loops around the reduction whose iterations run at once. Such
 * loops are legal only because their iterations are proven to write distinct elements, and the proof may rest
 * on the condition:
 *
 *     for p in 0..3 vthread { for v in 0..2 vectorised { block where p*2 + v < 1 { S[0] sum= 1.0 } } }
 *
 * Only the virtual thread p = 0 writes S[0]. If all three combined their lanes into S[0], they would race.
 * Here the weakest form is p*2 < 1. The condition may stand in the body, too.
 *
 * A block with its init starts all elements, and all loops of its reduction lie within the span. False if
 * such a condition, *mixed_guard, is not a comparison of sums, so that its weakest form is not known. */
static bool guard_elements(const lower_splitter *sp, lower_reduction *reduction, const ir_expr **mixed_guard)
{
    tec_context *cx = sp->rw.cx;
    const tree_site *site = reduction->site;
    const ir_block *block = site->stmt->block.block;
    const ir_facts *facts = facts_of_copies(sp, reduction);
    base_vec all = {0}, inner = {0};
    base_map terms = {0}, elements = {0}, concurrent = {0};
    bool weaker = false;

    for (int i = reduction->at; i < site->n; i++)
        if (runs_over_terms(reduction, site->path[i])) {
            base_push(cx, &inner, site->path[i]->loop.var);
            base_map_put(cx, &terms, site->path[i]->loop.var, site->path[i]);
        }
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind != IR_REDUCE_ITER && !is_whole(cx, site, i))
            lower_used(cx, site, reduction->at, site->stmt->block.bind[i], &elements);
    lower_site_conditions(cx, site, reduction->at, &all);
    if (!block->init) {
        add_concurrent(cx, reduction, &concurrent);
        add_body_conditions(sp, site, &concurrent, &all, &reduction->inside);
        for (int i = 0; i < reduction->inside.n; i++)
            base_push(cx, &all, reduction->inside.at[i]);
    }
    for (int i = 0; i < all.n; i++) {
        const ir_expr *guard = all.at[i];

        if (uses_any(cx, guard, &terms)) {
            bool about_elements = uses_any(cx, guard, &elements);

            weaker = true;
            if (block->init || (!about_elements && !uses_any(cx, guard, &concurrent)))
                continue;
            *mixed_guard = guard;
            guard = lower_best(facts, guard, &inner);
            if (!guard)
                return false;
        }
        base_push(cx, &reduction->guards, guard);
    }
    if (weaker)
        stay_inside(facts, reduction);
    for (int i = 0; i < reduction->guards.n; i++)
        lower_used(cx, site, reduction->at, reduction->guards.at[i], &reduction->spatial);
    return true;
}

/* Everything that one reduction becomes, noted in maps by statement; `visit` then rewrites the tree once. */
static bool split(lower_splitter *sp, const tree_site *site, int loop)
{
    tec_context *cx = sp->rw.cx;
    const ir_block *block = site->stmt->block.block;
    lower_reduction r = {
        .site = site, .loop = loop, .how = site->path[loop]->loop.how, .update = ir_only_update(block->body)};
    const ir_expr *mixed_guard = NULL;
    const ir_stmt *top;

    ir_at(cx, block->loc);
    lower_reduce_vars(cx, site, &r.reduce);
    r.at = outermost(cx, site, &r.reduce, loop);
    ir_is_int(site->path[loop]->loop.extent, &r.extent);
    sp->kind->shape(sp, &r);
    add_spatial(cx, site, r.at, &r.spatial);
    if (!guard_elements(sp, &r, &mixed_guard))
        return sp->kind->refuse(
            sp, site, loop,
            base_format(
                cx,
                "the guard '%s' mixes an output axis with a reduction axis and is not a comparison of sums",
                ir_expr_text(cx, mixed_guard)));
    r.part = base_array(cx, const ir_buffer *, r.update->update.combiner->n);
    for (int i = 0; i < r.update->update.combiner->n; i++)
        r.part[i] = partial_buffer(sp, &r, i);

    for (int i = 0; i < r.at + BASE_PLANT_ON(cx, reason_parts); i++)
        for (int k = 0; site->path[i]->kind == IR_FOR && k < r.update->update.combiner->n; k++)
            lower_list_add(cx, &sp->around, site->path[i], r.part[k]);
    top = site->path[r.at];
    base_map_put(cx, &sp->blocks, site->stmt, lane_update(sp, &r));
    base_map_put(cx, &sp->lanes, site->path[loop], ir_int(cx, r.lanes));
    lower_list_add(cx, &sp->before, top, start(sp, &r));
    int64_t left = r.lanes;
    for (; left % 2 == 0; left /= 2)
        lower_list_add(cx, &sp->after, top, fold(sp, &r, left / 2));
    lower_list_add(cx, &sp->after, top, finish(sp, &r, left));
    return !base_failed(cx);
}

/* The partial results start anew in each iteration of the loops around their reduction, but that those in
 * shared memory are the threads' in common. */
static const ir_stmt *note_parts(tec_context *cx, const ir_stmt *loop, const base_vec *parts)
{
    for (int i = 0; parts && i < parts->n; i++) {
        const ir_buffer *part = parts->at[i];

        if (!lower_is_thread(loop) || part->scope != IR_SHARED || BASE_PLANT_ON(cx, reason_shared))
            loop = lower_with_reason(cx, loop, part, TREE_PRIVATE);
    }
    return loop;
}

/* Statements to put before and behind are kept in order: the start, the loop, the foldings, the finish. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    lower_splitter *sp = (lower_splitter *)rw;
    const base_vec *before = base_map_get(&sp->before, stmt), *after = base_map_get(&sp->after, stmt);
    const ir_stmt *out;

    if (stmt->kind == IR_BLOCK)
        return base_map_has(&sp->blocks, stmt) ? base_map_get(&sp->blocks, stmt) : stmt;
    out = ir_rewrite_stmt_children(rw, stmt);
    if (out && base_map_has(&sp->loops, stmt)) {
        ir_stmt *serial = ir_stmt_copy(rw->cx, out);

        serial->loop.how = IR_SERIAL;
        out = serial;
    }
    out = out ? note_parts(rw->cx, out, base_map_get(&sp->around, stmt)) : NULL;
    const ir_expr *lanes = base_map_get(&sp->lanes, stmt);
    if (out && lanes)
        out = ir_for_like(rw->cx, out, out->loop.min, lanes, out->loop.body);
    for (int i = before ? before->n - 1 : -1; i >= 0; i--)
        out = ir_seq2(rw->cx, before->at[i], out);
    for (int i = 0; after && i < after->n; i++)
        out = ir_seq2(rw->cx, out, after->at[i]);
    return out;
}

static bool visit_site(lower_splitter *sp, const tree_site *site)
{
    int loop = lane_loop(sp, site);
    const char *why = loop < 0 ? NULL : forbidden(sp, site, loop);

    if (loop < 0)
        return true;
    return why ? sp->kind->refuse(sp, site, loop, why) : split(sp, site, loop);
}

/* The buffers of the program, then the partial results. */
static const ir_buffer *const *more_buffers(tec_context *cx, const ir_program *program, const base_vec *added)
{
    const ir_buffer **all = base_array(cx, const ir_buffer *, program->n_buffers + added->n);

    for (int i = 0; i < program->n_buffers + added->n; i++)
        all[i] = i < program->n_buffers ? program->buffers[i] : added->at[i - program->n_buffers];
    return all;
}

/* One loop of each block. A block that reduces over several loops of the kind has one of them split at a
 * time; the next call finds the updates of partial results as a reduction of its own. */
static const ir_program *split_once(const lower_options *options, const ir_program *program,
                                    const lower_lane_kind *kind)
{
    lower_splitter sp = {.rw = {.cx = options->cx, .stmt = visit},
                         .o = options,
                         .f = ir_facts_of_program(options->cx, program),
                         .kind = kind};
    tree_sites sites = tree_all_sites(options->cx, program->body);

    for (int i = 0; i < sites.n; i++)
        if (!visit_site(&sp, &sites.at[i]))
            return NULL;
    if (sp.blocks.n == 0 && sp.loops.n == 0)
        return program;

    const ir_stmt *body = lower_name_blocks(options->cx, ir_rewrite_stmt(&sp.rw, program->body));
    if (!body || base_failed(options->cx))
        return NULL;
    ir_program *out = ir_program_copy(options->cx, program);
    out->body = body;
    out->buffers = more_buffers(options->cx, program, &sp.buffers);
    out->n_buffers = program->n_buffers + sp.buffers.n;
    return out;
}

/* Each round splits one loop of each reduction; the rounds end when nothing changes any more. */
const ir_program *lower_split_lanes(const lower_options *options, const ir_program *program,
                                    const lower_lane_kind *kind)
{
    const ir_program *before = NULL;

    while (program && program != before) {
        before = program;
        program = split_once(options, program, kind);
    }
    return program;
}

/* ---- lanes of a vector ---- */

static bool is_vectorised(ir_how how)
{
    return how == IR_VECTORISED;
}

/* 1 for 0, too: an empty loop keeps a lane, which holds the identity. */
static int64_t power_above(int64_t n)
{
    int64_t p = 1;

    while (p < n)
        p *= 2;
    return n > MAX_PADDED ? n : p;
}

static void fill_registers(const lower_splitter *sp, lower_reduction *reduction)
{
    reduction->lanes = sp->o->target->has_masks || reduction->extent == 0 ? power_above(reduction->extent)
                                                                          : reduction->extent;
    reduction->scope = IR_LOCAL;
}

/* Threads combine their partial results in one thread of each axis. Lanes are registers, which each thread
 * has of its own: after the threads had combined into them, other threads would read lanes that nothing
 * filled. */
static const char *threads_share(tec_context *cx, const tree_site *site)
{
    base_map reduce = {0};

    lower_reduce_vars(cx, site, &reduce);
    for (int i = 0; i < site->n; i++)
        if (site->path[i]->kind == IR_FOR && lower_is_thread(site->path[i]) &&
            base_map_has(&reduce, site->path[i]->loop.var))
            return "threads share the same reduction";
    return NULL;
}

static bool run_in_order(lower_splitter *sp, const tree_site *site, int loop, const char *why)
{
    base_log(sp->rw.cx, 1, "lanes: the reduction of '%s' over loop '%s' runs in order: %s",
             site->stmt->block.block->name, site->path[loop]->loop.var->var.name, why);
    base_map_put(sp->rw.cx, &sp->loops, site->path[loop], site->path[loop]);
    return true;
}

const ir_program *lower_lanes(const lower_options *options, const ir_program *program)
{
    static const lower_lane_kind vectorised = {
        .runs = is_vectorised, .shape = fill_registers, .refuse = run_in_order, .forbids = threads_share};

    return lower_split_lanes(options, program, &vectorised);
}
