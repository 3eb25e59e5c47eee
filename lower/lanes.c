/* lower/lanes.c -- gives a reduction over a vectorised loop one partial result for each lane.
 *
 *     for k.0 in 0..n/16 {                            for v in 0..16 vectorised { block S.lanes.init: P[v] = 0 }
 *       for k.1 in 0..16 vectorised {                 for k.0 in 0..n/16 {
 *         block S(k reduce = k.0*16 + k.1) {    =>      for k.1 in 0..16 vectorised { block S.lanes(lane = k.1): P[lane] sum= A[k] }
 *           init { S[] = 0 }                          }
 *           S[] sum= A[k]                             for v in 0..8 vectorised { block S.lanes.8: P[v] sum= P[v + 8] }   # 4, 2, 1
 *     } } }                                           for v in 0..1 { block S(lane reduce = v): init S[] = 0, S[] sum= P[lane] }
 *
 * requires  a loop tree
 * provides  no vectorised loop is bound to a reduce variable that the block's elements do not depend on
 * breaks    the names of blocks: S is the one that combines the lanes
 *
 * Where the target has masks, the number of lanes is rounded up to a power of two, so that a partial result fills its register.
 * The partial results start at the identity and span all loops of the reduction; they combine once, by halves while their number
 * is even, the rest in order. Lanes that the predicate leaves out keep the identity. This re-associates, so it needs a combiner
 * that is declared to allow it, and for floats the fast policy; otherwise the loop runs serially, which is logged.
 *
 * The pass `threads` does the same for a reduction over a threadIdx loop. There the partial results lie in shared memory, or in
 * that of the warp where its threads are all in one (an extent that divides 32, along x); the loops over halves are over the
 * first threads of that axis, and the first thread alone writes the result. The barriers between them are lower/barriers.c's.
 * A thread that the predicate leaves out gives the identity. What must keep its order is refused.
 */
#include "ir/region.h"
#include "lower/nest.h"

/* Longer loops are not padded to a power of two. */
enum { MAX_PADDED = 256, WARP = 32 };

typedef struct {
    ir_rewrite rw;
    const lower_options *o;
    const ir_facts *f;
    base_map loops;  /* the loop of one that must keep its order -> itself: becomes serial */
    base_map lanes;  /* the loop of a vectorised reduction -> its extent from now on */
    base_map blocks; /* its block statement -> the one that updates the partial results */
    base_map before, after; /* the outermost loop of the reduction -> base_vec of statements */
    base_vec buffers;
    bool threads;    /* of loops over threads, not of vectorised ones */
} splitter;

/* One reduction that is split into lanes. */
typedef struct {
    const lower_site *site;
    int at, loop;            /* places in the path: the outermost loop of the reduction, the vectorised one */
    const ir_stmt *update;
    int64_t extent, lanes;   /* of the vectorised loop; of the partial results: a power of two where the target has masks */
    base_map reduce, spatial;
    base_map inner;          /* those of reduce that are loops from `at` on */
    base_vec guards;         /* the conjuncts without them */
    const ir_buffer **part;  /* one for each component of the combiner */
} reduction;

/* The update that is all a block does, possibly under conditions; NULL where it does something else. */
static const ir_stmt *only_update(const ir_stmt *s)
{
    if (s->kind == IR_IF && !s->branch.otherwise)
        return only_update(s->branch.then);
    return s->kind == IR_UPDATE ? s : NULL;
}

static const ir_stmt *with_update(tec_context *cx, const ir_stmt *s, const ir_stmt *update)
{
    return s->kind == IR_IF ? ir_if(cx, s->branch.cond, with_update(cx, s->branch.then, update), NULL) : update;
}

static bool is_thread(ir_how how)
{
    return how >= IR_THREAD_X && how <= IR_THREAD_Z;
}

/* The place in the path of a loop over lanes that is all reduction; -1: none. */
static int lane_loop(const splitter *sp, const lower_site *s)
{
    tec_context *cx = sp->rw.cx;
    base_map reduce = {0}, spatial = {0};
    const ir_block *b = s->stmt->block.block;

    lower_reduce_vars(cx, s, &reduce);
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind != IR_REDUCE_ITER)
            lower_used(cx, s, 0, s->stmt->block.bind[i], &spatial);
    for (int i = 0; i < s->n; i++)
        if (s->path[i]->kind == IR_FOR && (sp->threads ? is_thread(s->path[i]->loop.how) : s->path[i]->loop.how == IR_VECTORISED) &&
            base_map_has(&reduce, s->path[i]->loop.var) && !base_map_has(&spatial, s->path[i]->loop.var))
            return i;
    return -1;
}

typedef struct {
    ir_walk w;
    const ir_stmt *update;
    bool found;
} target_use;

static bool is_target(target_use *u, const ir_buffer *b)
{
    for (int i = 0; i < u->update->update.combiner->n; i++) {
        const ir_buffer *t = u->update->update.buffer[i];

        if (t == b || (t->alias && t->alias == b->alias))
            return true;
    }
    return false;
}

static bool use_in_expr(ir_walk *w, const ir_expr *e)
{
    target_use *u = (target_use *)w;

    u->found |= e->op == IR_LOAD && is_target(u, e->load.buffer);
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++)
        u->found |= is_target(u, e->call.buffer[i]);
    return !u->found;
}

static bool use_in_stmt(ir_walk *w, const ir_stmt *s)
{
    target_use *u = (target_use *)w;

    u->found |= s->kind == IR_STORE && is_target(u, s->store.buffer);
    for (int i = 0; s->kind == IR_UPDATE && i < s->update.combiner->n; i++)
        u->found |= is_target(u, s->update.buffer[i]);
    return !u->found;
}

/* Whether what stands beside the path at path[i] touches what the block updates. */
static bool is_used_beside(tec_context *cx, const lower_site *s, int i, const ir_stmt *update)
{
    const ir_stmt *next = i + 1 < s->n ? s->path[i + 1] : s->stmt;
    target_use u = {.w = {.expr = use_in_expr, .stmt = use_in_stmt, .cx = cx}, .update = update};

    for (int k = 0; s->path[i]->kind == IR_SEQ && k < s->path[i]->seq.n; k++)
        if (s->path[i]->seq.stmt[k] != next)
            ir_walk_stmt(&u.w, s->path[i]->seq.stmt[k]);
    return u.found;
}

/* The last place between the reduction's outermost loop and the vectorised one where others fill or take the results; -1: none. */
static int shared_at(tec_context *cx, const lower_site *s, int loop)
{
    base_map reduce = {0};

    lower_reduce_vars(cx, s, &reduce);
    for (int i = loop - 1; i > lower_reduction_at(s, &reduce); i--)
        if (is_used_beside(cx, s, i, only_update(s->stmt->block.block->body)))
            return i;
    return -1;
}

/* The place of the outermost loop that the partial results span. Where others fill or take the results within the reduction, as an
 * accumulating cache does, that is a loop inside of what they share. */
static int outermost(tec_context *cx, const lower_site *s, const base_map *reduce, int loop)
{
    int shared = shared_at(cx, s, loop), at = shared + 1;

    if (shared < 0)
        return lower_reduction_at(s, reduce);
    while (at < loop && !(s->path[at]->kind == IR_FOR && base_map_has(reduce, s->path[at]->loop.var)))
        at++;
    return at;
}

static lower_start first_point(const splitter *sp, const lower_site *s)
{
    base_map reduce = {0};

    lower_reduce_vars(sp->rw.cx, s, &reduce);
    return lower_first_point(lower_site_facts(sp->f, s, s->n), s, lower_reduction_at(s, &reduce));
}

/* A loop of the reduction that the elements depend on too: its copies would combine the lanes of an element more than once. */
static bool is_mixed(tec_context *cx, const lower_site *s)
{
    base_map reduce = {0}, spatial = {0};
    const ir_block *b = s->stmt->block.block;

    lower_reduce_vars(cx, s, &reduce);
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind != IR_REDUCE_ITER)
            lower_used(cx, s, 0, s->stmt->block.bind[i], &spatial);
    for (int i = 0; i < s->n; i++)
        if (s->path[i]->kind == IR_FOR && base_map_has(&reduce, s->path[i]->loop.var) && base_map_has(&spatial, s->path[i]->loop.var))
            return true;
    return false;
}

/* Why the reduction must keep its order; NULL where it need not. */
static const char *forbidden(const splitter *sp, const lower_site *s, int loop)
{
    const ir_stmt *u = only_update(s->stmt->block.block->body);
    int64_t n;

    if (!u)
        return "its block is no single update";
    if (!ir_is_int(s->path[loop]->loop.extent, &n))
        return "its extent is not a constant";
    if (!u->update.combiner->reorders)
        return "its combiner is not declared associative and commutative";
    for (int i = 0; i < u->update.combiner->n; i++)
        if (sp->o->strict && base_is_float(u->update.buffer[i]->dtype))
            return "the floating-point policy is strict";
    if (s->stmt->block.block->init && first_point(sp, s) != LOWER_STARTS)
        return "it may not start at the first point of the reduction";
    if (s->stmt->block.block->init && shared_at(sp->rw.cx, s, loop) >= 0)
        return "other blocks go on with its results before it ends";
    if (is_mixed(sp->rw.cx, s))
        return "a loop around it runs over reduction and other axes at once";
    for (int i = loop + 1; i < s->n; i++)
        if (s->path[i]->kind == IR_SEQ || (s->path[i]->kind == IR_FOR && s->path[i]->loop.how == IR_VECTORISED))
            return "its body is not a single block";
    return NULL;
}

static ir_scope scope_of(const reduction *r)
{
    ir_how how = r->site->path[r->loop]->loop.how;

    if (!is_thread(how))
        return IR_LOCAL;
    return how == IR_THREAD_X && WARP % r->lanes == 0 ? IR_WARP : IR_SHARED;
}

static const ir_buffer *partial_buffer(splitter *sp, const reduction *r, int which)
{
    tec_context *cx = sp->rw.cx;
    const ir_buffer *b = r->update->update.buffer[which];
    const ir_expr **shape = base_array(cx, const ir_expr *, b->n + 1);

    for (int i = 0; i < b->n; i++)
        shape[i] = b->shape[i];
    shape[b->n] = ir_int(cx, r->lanes);
    ir_buffer *part = ir_buffer_copy(cx, ir_buffer_new(cx, base_format(cx, "%s.lanes", b->name), b->dtype, shape, b->n + 1));
    part->scope = scope_of(r);
    part->loc = b->loc;
    base_push(cx, &sp->buffers, part);
    return part;
}

/* ---- blocks ---- */

/* A block like that of the reduction, with the given variables, bindings and body; its regions follow from the body. */
static const ir_stmt *make_block(splitter *sp, const reduction *r, const char *name, const ir_iter *iters,
                                 const ir_expr *const *bind, int n, const ir_stmt *init, const ir_stmt *body, const ir_expr *where)
{
    tec_context *cx = sp->rw.cx;
    ir_block *b = ir_block_copy(cx, r->site->stmt->block.block);
    ir_facts *f = ir_facts_new(cx, sp->f);
    base_vec reads = {0}, writes = {0};

    if (!body)
        return NULL;
    for (int i = 0; i < n; i++)
        ir_facts_range(f, iters[i].var, ir_int(cx, 0), iters[i].extent);
    ir_touched(f, init ? ir_seq2(cx, init, body) : body, &reads, &writes);
    ir_region *region = base_array(cx, ir_region, reads.n + writes.n);
    for (int i = 0; i < reads.n + writes.n; i++)
        region[i] = *(const ir_region *)(i < reads.n ? reads.at[i] : writes.at[i - reads.n]);
    b->name = name;
    b->iters = base_copy(cx, iters, (size_t)n * sizeof *iters);
    b->n_iters = n;
    b->reads = region;
    b->n_reads = reads.n;
    b->writes = region + reads.n;
    b->n_writes = writes.n;
    b->init = init;
    b->body = body;
    return ir_block_stmt(cx, b, bind, where);
}

/* Iteration variables of the reduction's block of some kinds, then one over the lanes. */
typedef struct {
    ir_iter *iters;
    const ir_expr **bind;
    int n;
    const ir_expr *lane; /* the last variable */
} variables;

static variables take_iters(splitter *sp, const reduction *r, bool reduce_too, ir_iter_kind lane_kind, int64_t lanes,
                            const ir_expr *bind)
{
    tec_context *cx = sp->rw.cx;
    const ir_block *b = r->site->stmt->block.block;
    variables v = {.iters = base_array(cx, ir_iter, b->n_iters + 1), .bind = base_array(cx, const ir_expr *, b->n_iters + 1)};

    for (int i = 0; i < b->n_iters; i++) {
        if (b->iters[i].kind == IR_REDUCE_ITER && !reduce_too)
            continue;
        v.iters[v.n] = b->iters[i];
        v.bind[v.n++] = r->site->stmt->block.bind[i];
    }
    v.lane = ir_var(cx, "lane", BASE_I64);
    v.iters[v.n] = (ir_iter){.var = v.lane, .extent = ir_int(cx, lanes), .kind = lane_kind};
    v.bind[v.n++] = bind;
    return v;
}

/* The element of the partial results for the block's indices and a lane. */
static const ir_expr *const *partial_index(splitter *sp, const reduction *r, const ir_expr *lane)
{
    int n = r->update->update.n;
    const ir_expr **index = base_array(sp->rw.cx, const ir_expr *, n + 1);

    for (int i = 0; i < n; i++)
        index[i] = r->update->update.index[i];
    index[n] = lane;
    return index;
}

static const ir_stmt *lane_update(splitter *sp, const reduction *r)
{
    tec_context *cx = sp->rw.cx;
    const ir_stmt *u = r->update, *s = r->site->stmt;
    const ir_stmt *loop = r->site->path[r->loop];
    variables v = take_iters(sp, r, true, IR_SPATIAL, r->lanes, ir_sub(cx, loop->loop.var, loop->loop.min));
    const ir_stmt *body = ir_update(cx, u->update.combiner, r->part, partial_index(sp, r, v.lane), u->update.n + 1,
                                    u->update.source);
    const ir_expr *where = s->block.where;

    if (r->lanes > r->extent)
        where = ir_all(cx, ir_lt(cx, loop->loop.var, ir_add(cx, loop->loop.min, ir_int(cx, r->extent))), where);
    return make_block(sp, r, base_format(cx, "%s.lanes", s->block.block->name), v.iters, v.bind, v.n, NULL,
                      with_update(cx, s->block.block->body, body), where);
}

/* A nest of the reduction's spatial loops around a loop over lanes around a block. */
static const ir_stmt *nest(splitter *sp, const reduction *r, const ir_expr *var, int64_t n, ir_how how, const ir_stmt *block)
{
    tec_context *cx = sp->rw.cx;
    const ir_stmt *loop = ir_for(cx, var, ir_int(cx, 0), ir_int(cx, n), n > 1 || is_thread(how) ? how : IR_SERIAL, block);

    return lower_copy_loops(cx, r->site, r->at, &r->spatial, &r->guards, loop);
}

static const ir_stmt *start(splitter *sp, const reduction *r)
{
    tec_context *cx = sp->rw.cx;
    const ir_combiner *c = r->update->update.combiner;
    const ir_expr *var = ir_var(cx, "lane", BASE_I64);
    variables v = take_iters(sp, r, false, IR_SPATIAL, r->lanes, var);
    const ir_stmt **store = base_array(cx, const ir_stmt *, c->n);

    for (int i = 0; i < c->n; i++)
        store[i] = ir_store(cx, r->part[i], c->identity[i], partial_index(sp, r, v.lane), r->update->update.n + 1);
    return nest(sp, r, var, r->lanes, r->site->path[r->loop]->loop.how,
                make_block(sp, r, base_format(cx, "%s.lanes.init", r->site->stmt->block.block->name), v.iters, v.bind, v.n, NULL,
                           ir_seq(cx, store, c->n), NULL));
}

/* Lane j takes in lane j + half, for all j < half. */
static const ir_stmt *fold(splitter *sp, const reduction *r, int64_t half)
{
    tec_context *cx = sp->rw.cx;
    const ir_combiner *c = r->update->update.combiner;
    const ir_expr *var = ir_var(cx, "lane", BASE_I64);
    variables v = take_iters(sp, r, false, IR_SPATIAL, half, var);
    const ir_expr **source = base_array(cx, const ir_expr *, c->n);

    for (int i = 0; i < c->n; i++)
        source[i] = ir_load(cx, r->part[i], partial_index(sp, r, ir_add(cx, v.lane, ir_int(cx, half))), r->update->update.n + 1);
    const ir_stmt *body = ir_update(cx, c, r->part, partial_index(sp, r, v.lane), r->update->update.n + 1, source);
    return nest(sp, r, var, half, r->site->path[r->loop]->loop.how,
                make_block(sp, r, base_format(cx, "%s.lanes.%lld", r->site->stmt->block.block->name, (long long)half), v.iters, v.bind, v.n,
                           NULL, body, NULL));
}

/* The block itself, over the lanes that are left. */
static const ir_stmt *finish(splitter *sp, const reduction *r, int64_t lanes)
{
    tec_context *cx = sp->rw.cx;
    const ir_stmt *u = r->update;
    const ir_block *b = r->site->stmt->block.block;
    const ir_combiner *c = u->update.combiner;
    const ir_expr *var = ir_var(cx, "lane", BASE_I64);
    variables v = take_iters(sp, r, false, IR_REDUCE_ITER, lanes, var);
    const ir_expr **source = base_array(cx, const ir_expr *, c->n);

    for (int i = 0; i < c->n; i++)
        source[i] = ir_load(cx, r->part[i], partial_index(sp, r, v.lane), u->update.n + 1);
    const ir_stmt *body = ir_update(cx, c, u->update.buffer, u->update.index, u->update.n, source);
    const ir_stmt *block = make_block(sp, r, b->name, v.iters, v.bind, v.n, b->init, body, NULL);

    if (sp->threads)
        block = ir_for(cx, ir_var(cx, "first", BASE_I64), ir_int(cx, 0), ir_int(cx, 1), r->site->path[r->loop]->loop.how, block);
    return nest(sp, r, var, lanes, IR_UNROLLED, block);
}

/* ---- the whole ---- */

static void put(splitter *sp, base_map *where, const ir_stmt *loop, const ir_stmt *s)
{
    base_vec *list = base_map_get(where, loop);

    if (!list) {
        list = base_new(sp->rw.cx, base_vec);
        base_map_put(sp->rw.cx, where, loop, list);
    }
    base_push(sp->rw.cx, list, s);
}

/* Conjuncts that speak of no loop of the reduction from r->at on. */
static void spatial_guards(tec_context *cx, reduction *r)
{
    base_vec all = {0};

    for (int i = r->at; i < r->site->n; i++)
        if (r->site->path[i]->kind == IR_FOR && base_map_has(&r->reduce, r->site->path[i]->loop.var))
            base_map_put(cx, &r->inner, r->site->path[i]->loop.var, r->site->path[i]);
    lower_site_conditions(cx, r->site, r->at, &all);
    for (int i = 0; i < all.n; i++) {
        base_vec vars = {0};
        bool reduce = false;

        ir_free_vars(cx, all.at[i], &vars);
        for (int j = 0; j < vars.n; j++)
            reduce |= base_map_has(&r->inner, vars.at[j]);
        if (!reduce)
            base_push(cx, &r->guards, all.at[i]);
    }
    for (int i = 0; i < r->guards.n; i++)
        lower_used(cx, r->site, r->at, r->guards.at[i], &r->spatial);
}

static int64_t power_above(int64_t n)
{
    int64_t p = 1;

    while (p < n)
        p *= 2;
    return n > MAX_PADDED ? n : p;
}

static bool split(splitter *sp, const lower_site *s, int loop)
{
    tec_context *cx = sp->rw.cx;
    const ir_block *b = s->stmt->block.block;
    reduction r = {.site = s, .loop = loop, .update = only_update(b->body)};
    const ir_stmt *top;

    ir_at(cx, b->loc);
    lower_reduce_vars(cx, s, &r.reduce);
    r.at = outermost(cx, s, &r.reduce, loop);
    ir_is_int(s->path[loop]->loop.extent, &r.extent);
    r.lanes = sp->o->target->has_masks && !sp->threads ? power_above(r.extent) : r.extent;
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind != IR_REDUCE_ITER)
            lower_used(cx, s, r.at, s->stmt->block.bind[i], &r.spatial);
    spatial_guards(cx, &r);
    r.part = base_array(cx, const ir_buffer *, r.update->update.combiner->n);
    for (int i = 0; i < r.update->update.combiner->n; i++)
        r.part[i] = partial_buffer(sp, &r, i);

    top = s->path[r.at];
    base_map_put(cx, &sp->blocks, s->stmt, lane_update(sp, &r));
    base_map_put(cx, &sp->lanes, s->path[loop], ir_int(cx, r.lanes));
    put(sp, &sp->before, top, start(sp, &r));
    int64_t left = r.lanes;
    for (; left % 2 == 0; left /= 2)
        put(sp, &sp->after, top, fold(sp, &r, left / 2));
    put(sp, &sp->after, top, finish(sp, &r, left));
    return !base_failed(cx);
}

static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *s)
{
    splitter *sp = (splitter *)rw;
    const base_vec *before = base_map_get(&sp->before, s), *after = base_map_get(&sp->after, s);
    const ir_stmt *out;

    if (s->kind == IR_BLOCK)
        return base_map_has(&sp->blocks, s) ? base_map_get(&sp->blocks, s) : s;
    out = ir_rewrite_stmt_children(rw, s);
    if (out && base_map_has(&sp->loops, s)) {
        ir_stmt *serial = ir_stmt_copy(rw->cx, out);

        serial->loop.how = IR_SERIAL;
        out = serial;
    }
    const ir_expr *lanes = base_map_get(&sp->lanes, s);
    if (out && lanes)
        out = ir_for_like(rw->cx, out, out->loop.min, lanes, out->loop.body);
    for (int i = before ? before->n - 1 : -1; i >= 0; i--)
        out = ir_seq2(rw->cx, before->at[i], out);
    for (int i = 0; after && i < after->n; i++)
        out = ir_seq2(rw->cx, out, after->at[i]);
    return out;
}

static bool visit_site(splitter *sp, const lower_site *s)
{
    int loop = lane_loop(sp, s);
    const char *why = loop < 0 ? NULL : forbidden(sp, s, loop);

    if (loop < 0)
        return true;
    if (!why)
        return split(sp, s, loop);
    if (sp->threads) {
        base_fail(sp->rw.cx, TEC_INVALID, s->stmt->block.block->loc,
                  "the reduction of '%s' cannot be shared between the threads of loop '%s': %s", s->stmt->block.block->name,
                  s->path[loop]->loop.var->var.name, why);
        return false;
    }
    base_log(sp->rw.cx, 1, "lanes: the reduction of '%s' over loop '%s' runs in order: %s", s->stmt->block.block->name,
             s->path[loop]->loop.var->var.name, why);
    base_map_put(sp->rw.cx, &sp->loops, s->path[loop], s->path[loop]);
    return true;
}

static const ir_buffer *const *more_buffers(tec_context *cx, const ir_program *p, const base_vec *added)
{
    const ir_buffer **all = base_array(cx, const ir_buffer *, p->n_buffers + added->n);

    for (int i = 0; i < p->n_buffers + added->n; i++)
        all[i] = i < p->n_buffers ? p->buffers[i] : added->at[i - p->n_buffers];
    return all;
}

static const ir_program *split_all(const lower_options *o, const ir_program *p, bool threads)
{
    splitter sp = {.rw = {.cx = o->cx, .stmt = visit}, .o = o, .f = ir_facts_of_program(o->cx, p), .threads = threads};
    base_vec sites = {0};

    lower_sites(o->cx, p->body, &sites);
    for (int i = 0; i < sites.n; i++)
        if (!visit_site(&sp, sites.at[i]))
            return NULL;
    if (sp.blocks.n == 0 && sp.loops.n == 0)
        return p;

    const ir_stmt *body = ir_rewrite_stmt(&sp.rw, p->body);
    if (!body || base_failed(o->cx))
        return NULL;
    ir_program *out = ir_program_copy(o->cx, p);
    out->body = body;
    out->buffers = more_buffers(o->cx, p, &sp.buffers);
    out->n_buffers = p->n_buffers + sp.buffers.n;
    return out;
}

const ir_program *lower_lanes(const lower_options *o, const ir_program *p)
{
    return split_all(o, p, false);
}

const ir_program *lower_threads(const lower_options *o, const ir_program *p)
{
    return split_all(o, p, true);
}
