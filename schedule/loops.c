/* schedule/loops.c -- split, cut and fuse: one loop becomes several, or several one.
 *
 *     for C.y in 0..n { block C(y = C.y) }
 * =>  split(C.y, _, 12)
 *     for C.y.0 in 0..ceildiv(n,
 *         12) { for C.y.1 in 0..12 { block C(y = C.y.0*12 + C.y.1) where C.y.0*12 + C.y.1 < n } }
 *
 * The guard compares with the extent of the loop, not with the domain of a block: a loop that is a piece of
 * an earlier split must not run into the next piece, or points would repeat.
 *
 * The three tails of a split by 4 of an extent of 10, whose pieces make 12 iterations:
 *
 *     guard          where y.0*4 + y.1 < 10             iterations 10 and 11 do nothing
 *     round_up       the domain grows to 12             they compute padding, which must exist and be written
 *     shift_inwards  y = min(y.0*4, 10 - 4) + y.1       the last tile is 6..9: points 6 and 7 run again
 *
 * Each has its price. A guard is a branch in the innermost loop, until lowering moves it out; round_up needs
 * buffers with room for 12; shift_inwards needs blocks that may run again.
 *
 *     fuse(a, b):  for f in 0..ea*eb, a = floordiv(f, eb), b = floormod(f, eb)
 *
 * The extents multiply, so b's must not depend on a, and an empty reduction loop must not be fused with a
 * spatial one, as the init that runs once per element would have no iteration left (init_survives).
 */
#include <limits.h>
#include <string.h>

#include "ir/reason/facts.h"
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* Refuses loops that run in another way than one iteration after the other. */
static bool need_serial(sched_call *c, const ir_stmt *loop)
{
    if (loop->loop.how == IR_SERIAL)
        return true;
    sched_refuse(c, "loop '%s' is %s; only serial loops can be changed", loop->loop.var->var.name,
                 ir_how_text(loop->loop.how));
    return false;
}

/* ---- split ---- */

/* What a split makes of one loop. `product` is the number of iterations of all pieces together; it is `exact`
 * where it is proven to be the extent, and then no tail needs care. */
typedef struct {
    const ir_stmt *loop;
    int n;
    const ir_expr **extent; /* of the pieces, outermost first */
    const ir_expr **var;
    const ir_expr *product;
    const ir_expr *rebuilt; /* the old variable over the new ones */
    bool exact;
} pieces;

/* The product of the given factors, and which of them is `_`; *inferred = -1: none. The product stays below
 * 2^62, so that nothing computed from it overflows. */
static bool read_factors(sched_call *c, const sched_arg *a, int *inferred, int64_t *product)
{
    *inferred = -1;
    *product = 1;
    if (a->n < 2) {
        sched_refuse(c, "expected at least two factors, found %d", a->n);
        return false;
    }
    for (int i = 0; i < a->n; i++) {
        if (a->ints[i] == TEC_INFER && *inferred >= 0) {
            sched_refuse(c, "only one factor can be inferred");
            return false;
        }
        if (a->ints[i] == TEC_INFER) {
            *inferred = i;
        } else if (a->ints[i] < 1) {
            sched_refuse(c, "factor %lld is not positive", (long long)a->ints[i]);
            return false;
        } else if (*product > INT64_MAX / 2 / a->ints[i]) {
            sched_refuse(c, "the product of the factors is too large");
            return false;
        } else {
            *product *= a->ints[i];
        }
    }
    return true;
}

/* The inferred factor rounds up: ceildiv(extent, product of the others). Factors that are all given must
 * reach the extent, since otherwise the last iterations would be lost. */
static bool set_extents(sched_call *c, const ir_facts *f, const sched_arg *a, pieces *p)
{
    const ir_expr *extent = p->loop->loop.extent;
    int64_t product;
    int inferred;

    if (!read_factors(c, a, &inferred, &product))
        return false;
    for (int i = 0; i < p->n; i++)
        p->extent[i] = i == inferred ? ir_simplify(f, ir_ceildiv(c->cx, extent, ir_int(c->cx, product)))
                                     : ir_int(c->cx, a->ints[i]);
    p->product = ir_int(c->cx, product);
    if (inferred >= 0)
        p->product = ir_simplify(f, ir_mul(c->cx, p->extent[inferred], p->product));
    p->exact = ir_prove_equal(f, p->product, extent);
    if (inferred >= 0 || p->exact || ir_prove_le(f, extent, p->product))
        return true;
    sched_refuse(c, "the factors make %s iterations; it is not proven that they reach the extent %s of '%s'",
                 ir_expr_text(c->cx, p->product), ir_expr_text(c->cx, extent), p->loop->loop.var->var.name);
    return false;
}

/* split(y, _, 3, 4) gives y = (y.0*3 + y.1)*4 + y.2: Horner's scheme over the extents. */
static void make_vars(sched_call *c, pieces *p)
{
    const char *name = p->loop->loop.var->var.name;

    p->rebuilt = NULL;
    for (int i = 0; i < p->n; i++) {
        const char *own = sched_fresh_name(c, NULL, base_format(c->cx, "%s.%d", name, i));

        p->var[i] = ir_var(c->cx, own, BASE_I64);
        p->rebuilt =
            p->rebuilt ? ir_add(c->cx, ir_mul(c->cx, p->rebuilt, p->extent[i]), p->var[i]) : p->var[i];
        base_push(c->cx, &c->results, own);
    }
}

/* The facts inside the new loops, at f. */
static ir_facts *inside(sched_call *c, const ir_facts *f, const pieces *p)
{
    ir_facts *in = ir_facts_new(c->cx, f);
    bool may_be_empty = tree_may_be_empty(c->cx, p->loop);

    for (int i = 0; i < p->n; i++)
        tree_know_loop(in, p->var[i], p->extent[i], may_be_empty);
    return in;
}

static const ir_stmt *wrap(sched_call *c, const pieces *p, const ir_stmt *body)
{
    for (int i = p->n - 1; i >= 0; i--)
        body = ir_for(c->cx, p->var[i], ir_int(c->cx, 0), p->extent[i], IR_SERIAL, body);
    return body;
}

/* ---- split with round_up: the blocks below get larger domains ---- */

/* The iteration variable that is bound to just this loop; -1: none, or another one mentions the loop too. */
static int plain_iter(tec_context *cx, const ir_stmt *s, const ir_expr *var)
{
    int found = -1;

    for (int i = 0; i < s->block.block->n_iters; i++) {
        if (!ir_uses_var(cx, s->block.bind[i], var))
            continue;
        if (s->block.bind[i] != var || found >= 0)
            return -1;
        found = i;
    }
    return found;
}

/* Holds every access of a block against its buffer's shape, whatever conditions it stands under. `ok` becomes
 * false at the first access that may lie outside. */
typedef struct {
    ir_walk w;
    sched_call *c;
    const ir_facts *f;
    const char *block;
    bool ok;
} bounds_check;

/* Conditions inside the block are not looked at: a condition that was written for the old domain may not hold
 * behind it. */
static void check_access(bounds_check *k, const ir_buffer *b, const ir_expr *const *index, int n,
                         const char *does)
{
    tec_context *cx = k->c->cx;

    for (int d = 0; k->ok && d < n; d++) {
        if (ir_prove_le(k->f, ir_int(cx, 0), index[d]) && ir_prove_lt(k->f, index[d], b->shape[d]))
            continue;
        sched_refuse(k->c,
                     "rounded up, '%s' would %s index %s of '%s', which is not proven to lie within 0..%s",
                     k->block, does, ir_expr_text(cx, index[d]), b->name, ir_expr_text(cx, b->shape[d]));
        k->ok = false;
    }
}

static bool check_load(ir_walk *w, const ir_expr *e)
{
    if (e->op == IR_LOAD)
        check_access((bounds_check *)w, e->load.buffer, e->load.index, e->load.n, "read");
    return e->has & IR_HAS_LOAD;
}

static bool check_store(ir_walk *w, const ir_stmt *s)
{
    bounds_check *k = (bounds_check *)w;

    if (s->kind == IR_STORE)
        check_access(k, s->store.buffer, s->store.index, s->store.n, "write");
    for (int i = 0; s->kind == IR_UPDATE && i < s->update.combiner->n; i++)
        check_access(k, s->update.buffer[i], s->update.index, s->update.n, "write");
    return k->ok;
}

/* Init and body both: the init writes all elements of the larger domain too. */
static bool in_bounds(sched_call *c, const ir_facts *f, const ir_block *b)
{
    bounds_check k = {.w = {.cx = c->cx, .expr = check_load, .stmt = check_store},
                      .c = c,
                      .f = f,
                      .block = b->name,
                      .ok = true};

    if (b->init)
        ir_walk_stmt(&k.w, b->init);
    ir_walk_stmt(&k.w, b->body);
    return k.ok;
}

/* More values of var are more elements: every buffer that the block writes is indexed by it. */
static bool writes_apart(tec_context *cx, const ir_block *b, const ir_expr *var)
{
    for (int i = 0; i < b->n_writes; i++) {
        bool mentioned = false;

        for (int d = 0; d < b->writes[i].buffer->n; d++)
            mentioned = mentioned || ir_uses_var(cx, b->writes[i].min[d], var);
        if (!mentioned)
            return false;
    }
    return true;
}

/* The block with iteration variable k running to `extent`; refuses where that is not harmless. Three things
 * make it harmless: the axis is spatial, so that no term joins a reduction; each new value of the axis writes
 * elements of its own; and all accesses are proven to lie within the buffers, which therefore have room
 * behind the old domain. */
static const ir_stmt *enlarge(sched_call *c, const ir_facts *f, const ir_stmt *s, int k, const ir_stmt *loop,
                              const ir_expr *extent)
{
    ir_block *b = ir_block_copy(c->cx, s->block.block);
    ir_iter *iters = base_copy(c->cx, b->iters, (size_t)b->n_iters * sizeof *iters);
    ir_facts *in = ir_facts_new(c->cx, f);

    if (iters[k].kind != IR_SPATIAL)
        return sched_refuse(c, "'%s' is no spatial axis of '%s'; only spatial axes can be rounded up",
                            iters[k].var->var.name, b->name);
    if (!ir_prove_equal(f, iters[k].extent, loop->loop.extent))
        return sched_refuse(c, "loop '%s' runs over a part of axis '%s' of '%s' only",
                            loop->loop.var->var.name, iters[k].var->var.name, b->name);
    if (!writes_apart(c->cx, b, iters[k].var))
        return sched_refuse(c, "rounded up, '%s' would write its elements for more than one value of '%s'",
                            b->name, iters[k].var->var.name);
    iters[k].extent = extent;
    b->iters = iters;
    for (int i = 0; i < b->n_iters; i++)
        ir_facts_range(in, iters[i].var, ir_int(c->cx, 0), iters[i].extent);
    return in_bounds(c, in, b) ? sched_with_block(c->cx, s, sched_refresh(f, b)) : NULL;
}

/* The blocks below with their larger domains. All of them must take part, as one loop drives them all. */
static const ir_stmt *round_up(sched_call *c, const ir_facts *f, const ir_stmt *s, const ir_stmt *loop,
                               const ir_expr *extent)
{
    const ir_expr *var = loop->loop.var;

    if (s->kind == IR_BLOCK) {
        int k = plain_iter(c->cx, s, var);

        if (k < 0)
            return sched_refuse(c, "round_up needs loop '%s' to be an axis of '%s' by itself", var->var.name,
                                s->block.block->name);
        if (ir_uses_var(c->cx, s->block.where, var))
            return sched_refuse(c, "a predicate of '%s' depends on loop '%s'", s->block.block->name,
                                var->var.name);
        return enlarge(c, f, s, k, loop, extent);
    }
    for (int i = 0, n = tree_n_children(s); s && i < n; i++) {
        const ir_stmt *child = round_up(c, f, tree_child(s, i), loop, extent);

        s = child ? sched_with_child(c->cx, s, i, child) : NULL;
    }
    return s;
}

/* Refuses where the block would meet padding of these buffers that nothing fills. */
static bool filled(sched_call *c, const ir_stmt *root, const ir_block *b, const ir_region *r, int n,
                   const char *does)
{
    for (int i = 0; i < n; i++)
        if (tree_leaves_padding(&c->s->view, root, r[i].buffer))
            return sched_refuse(c, "rounded up, '%s' would %s the padding of '%s', which nothing fills",
                                b->name, does, r[i].buffer->name);
    return true;
}

/* What the points behind the end read or add to is written: by blocks that run over the padding, too, and in
 * the same iteration where those share loops with the reader. `root` is the tree as it will be, rounded up
 * below the loop of `var`. A point behind the end reads padding, and reading memory that nobody wrote is an
 * error, which the interpreter reports. */
static bool finds_all_written(sched_call *c, const ir_stmt *root, const ir_expr *var)
{
    tree_sites all = tree_all_sites(c->cx, root);

    for (int i = 0; i < all.n; i++) {
        const ir_block *b = all.at[i].block;

        if (!tree_depth_under(&all.at[i], var))
            continue;
        if (!filled(c, root, b, b->reads, b->n_reads, "read") ||
            (tree_adds(c->cx, b) && !filled(c, root, b, b->writes, b->n_writes, "add to")) ||
            !sched_reads_are_written(c, root, b->name))
            return false;
    }
    return true;
}

/* ---- split with shift_inwards: the last tile starts earlier and does some points again ---- */

/*     extent 10, tiles of 4:  0..3  4..7  6..9      points 6 and 7 run twice
 *
 * A point that runs twice must leave the same value, and no other instance may write its elements, as the
 * second run would undo that. A reduction that reaches over the loop would add its terms twice. */
static bool may_repeat(sched_call *c, const ir_stmt *loop)
{
    tree_sites below = tree_all_sites(c->cx, loop->loop.body);

    for (int i = 0; i < below.n; i++) {
        const tree_site *site = &below.at[i];
        const char *reason = tree_not_idempotent(c->cx, site->block);

        for (int j = 0; !reason && j < site->block->n_writes; j++)
            if (!tree_writes_once(&c->s->view, site->block, &site->block->writes[j]))
                reason = base_format(c->cx, "later ones overwrite what they left in '%s'",
                                     site->block->writes[j].buffer->name);
        for (int j = 0; !reason && j < site->block->n_iters; j++) {
            base_vec vars = {0};

            if (site->block->iters[j].kind != IR_REDUCE_ITER)
                continue;
            ir_free_vars(c->cx, site->stmt->block.bind[j], &vars);
            for (int k = 0; k < vars.n; k++)
                if (!tree_depth_under(site, vars.at[k]))
                    reason = base_format(c->cx, "its reduction over '%s' is not completed inside '%s'",
                                         ((const ir_expr *)vars.at[k])->var.name, loop->loop.var->var.name);
        }
        if (reason) {
            sched_refuse(c, "shift_inwards repeats instances of '%s', but %s", site->block->name, reason);
            return false;
        }
    }
    return true;
}

/* The start of the last tile is min(outer * tile, extent - tile), so the extent must have room for one
 * tile. */
static const ir_expr *shifted(sched_call *c, const ir_facts *f, const pieces *p)
{
    const ir_expr *extent = p->loop->loop.extent, *tile = ir_int(c->cx, 1), *within = NULL;

    for (int i = 1; i < p->n; i++) {
        tile = ir_mul(c->cx, tile, p->extent[i]);
        within = within ? ir_add(c->cx, ir_mul(c->cx, within, p->extent[i]), p->var[i]) : p->var[i];
    }
    if (!ir_prove_le(f, tile, extent))
        return sched_refuse(c, "shift_inwards needs one full tile; it is not proven that %s <= %s",
                            ir_expr_text(c->cx, tile), ir_expr_text(c->cx, extent));
    if (!may_repeat(c, p->loop))
        return NULL;
    const ir_expr *start = ir_min(c->cx, ir_mul(c->cx, p->var[0], tile), ir_sub(c->cx, extent, tile));
    return ir_add(c->cx, start, within);
}

static bool binds_spatial(tec_context *cx, const tree_site *site, const ir_expr *var)
{
    for (int j = 0; j < site->block->n_iters; j++)
        if (site->block->iters[j].kind == IR_SPATIAL && ir_uses_var(cx, site->stmt->block.bind[j], var))
            return true;
    return false;
}

/* A predicate on a loop that mixes the axes would have to guard the init and the updates in different ways.
 * An example is the loop f that fuse made of y and k in 0..4: the guard f < 10 leaves out the updates k = 2
 * and 3 of y = 2, while the init of y = 2 must run. */
static bool tail_is_clear(sched_call *c, const ir_stmt *loop)
{
    tree_sites below = tree_all_sites(c->cx, loop->loop.body);

    for (int i = 0; i < below.n; i++) {
        const tree_site *site = &below.at[i];

        if (site->block->init && binds_spatial(c->cx, site, loop->loop.var) &&
            tree_kind_for(c->cx, site, loop->loop.var) != IR_SPATIAL)
            return sched_refuse(
                c, "loop '%s' runs over a spatial and a reduction axis of '%s'; its factors must divide it",
                loop->loop.var->var.name, site->block->name);
    }
    return true;
}

/* Simplified as the bindings will be, so that both mention the same loops: what the init of a reduction is
 * guarded by hangs on that. A guard that simplifies to a constant stays in its long form: a constant mentions
 * no loop, so that `false` would guard the init of a reduction as well. */
static const ir_expr *tail_guard(sched_call *c, const ir_facts *in, const pieces *p)
{
    const ir_expr *guard = ir_lt(c->cx, p->rebuilt, p->loop->loop.extent), *simple = ir_simplify(in, guard);
    int64_t value;

    return ir_is_int(simple, &value) ? guard : simple;
}

/* The body below the new loops, for the tail that was asked for. `exact` splits have no tail, whatever the
 * word says. The rebinding puts the guard on all blocks below. */
static const ir_stmt *split_body(sched_call *c, const ir_facts *f, const pieces *p, const char *tail)
{
    const ir_stmt *body = p->loop->loop.body;
    const ir_expr *value = p->rebuilt, *guard = NULL;
    const ir_facts *in = inside(c, f, p);
    bool tiling = c->arg[1].kind == SCHED_ARG_LOOP;

    if (strcmp(tail, "guard") != 0 && strcmp(tail, "round_up") != 0 && strcmp(tail, "shift_inwards") != 0)
        return sched_refuse(c, "'%s' is no way to split: expected guard, round_up or shift_inwards", tail);
    if (!p->exact && strcmp(tail, "round_up") == 0)
        body = round_up(c, f, body, p->loop, p->product);
    else if (!p->exact && strcmp(tail, "shift_inwards") == 0)
        value = shifted(c, f, p);
    else if (!p->exact && tail_is_clear(c, p->loop))
        guard = BASE_PLANT_ON(c->cx, split_guard) || (tiling && BASE_PLANT_ON(c->cx, tile_guard))
                    ? NULL
                    : tail_guard(c, in, p);
    return body && value && !c->reason ? sched_rebind(in, body, p->loop->loop.var, value, guard) : NULL;
}

/* Splits the loop at the end of the path; tile uses this too. The last check needs the whole new tree, since
 * padding that is read may be written elsewhere in it. */
static const ir_program *split_at(sched_call *c, const sched_path *at, const sched_arg *factors,
                                  const char *tail)
{
    const ir_facts *f = sched_facts_at(c->s, at, at->n - 1);
    pieces p = {.loop = sched_end(at), .n = factors->n};

    p.extent = base_array(c->cx, const ir_expr *, p.n);
    p.var = base_array(c->cx, const ir_expr *, p.n);
    if (!need_serial(c, p.loop) || !set_extents(c, f, factors, &p))
        return NULL;
    make_vars(c, &p);
    const ir_stmt *body = split_body(c, f, &p, tail);
    const ir_stmt *root = body ? sched_rebuild(c->cx, at, at->n - 1, wrap(c, &p, body)) : NULL;
    if (root && !p.exact && strcmp(tail, "round_up") == 0 && !finds_all_written(c, root, p.var[0]))
        return NULL;
    return sched_with_body(c, root);
}

/* split(l, f1, f2, ...): l becomes nested loops of these extents; one factor may be `_`. */
const ir_program *sched_do_split(sched_call *c)
{
    sched_path at;

    return sched_need_loop(c, c->arg[0].name, &at) ? split_at(c, &at, &c->arg[1], c->arg[2].name) : NULL;
}

/* ---- cut ---- */

/* Where l belongs to a reduction, the second part goes on with what the first began. A loop over both kinds
 * of axes is refused: for some elements the second part would begin the reduction, and for others go on. */
static const ir_stmt *without_init(sched_call *c, const ir_stmt *s, const ir_expr *var)
{
    if (s->kind == IR_BLOCK) {
        tree_site site = {.stmt = s, .block = s->block.block};

        if (!s->block.block->init || tree_kind_for(c->cx, &site, var) != IR_REDUCE_ITER)
            return s;
        for (int i = 0; i < site.block->n_iters; i++)
            if (site.block->iters[i].kind == IR_SPATIAL && ir_uses_var(c->cx, s->block.bind[i], var))
                return sched_refuse(c, "loop '%s' runs over a spatial and a reduction axis of '%s'",
                                    var->var.name, site.block->name);
        ir_block *b = ir_block_copy(c->cx, site.block);
        b->init = NULL;
        return sched_with_block(c->cx, s, b);
    }
    for (int i = 0, n = tree_n_children(s); s && i < n; i++) {
        const ir_stmt *child = without_init(c, tree_child(s, i), var);

        s = child ? sched_with_child(c->cx, s, i, child) : NULL;
    }
    return s;
}

static bool any_reads(const tree_sites *all, const ir_buffer *b)
{
    for (int i = 0; i < all->n; i++)
        if (tree_reads(all->at[i].block, b))
            return true;
    return false;
}

/* Buffers that each iteration of l fills for itself and reads: the second part gets its own, so that they
 * stay private to its loops.
 *
 *     for y { P[y] = A[y];  C[y] = P[y] }  cut(y, 4)  =>  for y.0 { P.. C.. }  for y.1 { P'2 .. C.. }
 *
 * With one buffer P, both loops would use it, and it would be private to an iteration of neither. */
static const ir_program *own_buffers(sched_call *c, const ir_expr *var, ir_subst *own)
{
    tree_sites all = tree_all_sites(c->cx, c->tree->body);
    const ir_program *p = c->tree;

    for (int i = 0; i < c->tree->n_buffers; i++) {
        const ir_buffer *b = c->tree->buffers[i];
        const char *name = b->name;

        if (!any_reads(&all, b) || !tree_private(&c->s->view, &all, b, var))
            continue;
        for (int k = 2; sched_buffer_named(p, name); k++)
            name = base_format(c->cx, "%s'%d", b->name, k);
        ir_buffer *copy = ir_buffer_copy(c->cx, b);
        copy->name = name;
        base_map_put(c->cx, &own->buffers, b, copy);
        p = sched_add_buffer(c->cx, p, copy);
    }
    return p;
}

/* The loops inside the parts whose iterations run at the same time still may; lanes of a reduction always
 * may. */
static bool parts_independent(sched_call *c, const tree_sites *all, const ir_stmt *s)
{
    if (s->kind == IR_FOR && s->loop.how != IR_SERIAL && s->loop.how != IR_UNROLLED) {
        bool reduces = false;

        for (int i = 0; i < all->n; i++)
            reduces = reduces || (tree_depth_under(&all->at[i], s->loop.var) &&
                                  tree_kind_for(c->cx, &all->at[i], s->loop.var) == IR_REDUCE_ITER);
        const char *reason = reduces ? NULL : tree_dependence(&c->s->view, all, s->loop.var);
        if (reason)
            return sched_refuse(c, "'%s' is %s, and %s", s->loop.var->var.name, ir_how_text(s->loop.how),
                                reason);
    }
    for (int i = 0, n = tree_n_children(s); i < n; i++)
        if (!parts_independent(c, all, tree_child(s, i)))
            return false;
    return true;
}

/* cut(l, point): l becomes two loops, one after the other. The second one's blocks and inner loops get fresh
 * names. The point must be proven to lie in the range of the loop, and no part may be known to be empty. The
 * second part is a duplicate with fresh names, whose reductions go on without an init. */
const ir_program *sched_do_cut(sched_call *c)
{
    sched_path at;

    if (!sched_need_loop(c, c->arg[0].name, &at) || !need_serial(c, sched_end(&at)))
        return NULL;
    const ir_stmt *l = sched_end(&at);
    const ir_facts *f = sched_facts_at(c->s, &at, at.n - 1);
    const ir_expr *point = ir_int(c->cx, c->arg[1].i), *zero = ir_int(c->cx, 0);
    const char *name = l->loop.var->var.name;
    if (!ir_prove_le(f, zero, point) || !ir_prove_le(f, point, l->loop.extent))
        return sched_refuse(c, "it is not proven that %lld lies within 0..%s, the range of '%s'",
                            (long long)c->arg[1].i, ir_expr_text(c->cx, l->loop.extent), name);

    const ir_expr *var[2], *rest = ir_simplify(f, ir_sub(c->cx, l->loop.extent, point));
    if (ir_is_value(point, 0) || ir_is_value(rest, 0))
        return sched_refuse(c, "the %s part of '%s' would be empty",
                            ir_is_value(point, 0) ? "first" : "second", name);
    for (int i = 0; i < 2; i++) {
        var[i] = ir_var(c->cx, sched_fresh_name(c, NULL, base_format(c->cx, "%s.%d", name, i)), BASE_I64);
        base_push(c->cx, &c->results, var[i]->var.name);
    }
    const ir_stmt *second = without_init(c, l->loop.body, l->loop.var);
    if (!second)
        return NULL;
    ir_facts *in = ir_facts_new(c->cx, f), *in2 = ir_facts_new(c->cx, f);
    tree_know_loop(in, var[0], point, false);
    tree_know_loop(in2, var[1], rest, tree_may_be_empty(c->cx, l));
    ir_subst own = {0};
    const ir_program *p = own_buffers(c, l->loop.var, &own);
    const ir_expr *start = BASE_PLANT_ON(c->cx, cut_point) ? ir_int(c->cx, c->arg[1].i - 1) : point;
    second = sched_rebind(in2, sched_duplicate(c, second), l->loop.var, ir_add(c->cx, var[1], start), NULL);
    second = ir_apply_stmt(c->cx, &own, second);
    const ir_stmt *first = sched_rebind(in, l->loop.body, l->loop.var, var[0], NULL);
    const ir_stmt *both = ir_seq2(c->cx, ir_for(c->cx, var[0], zero, point, IR_SERIAL, first),
                                  ir_for(c->cx, var[1], zero, rest, IR_SERIAL, second));
    ir_program *after = ir_program_copy(c->cx, p);
    after->body = sched_rebuild(c->cx, &at, at.n - 1, both);
    tree_sites all = tree_all_sites(c->cx, after->body);
    return parts_independent(c, &all, both) ? after : NULL;
}

/* ---- fuse ---- */

/* How often both loops run together. Of two extents that may be negative, one is cut off at 0: -2 times -2
 * iterations are none, not 4. */
static const ir_expr *fused_extent(sched_call *c, const ir_facts *f, const ir_expr *ea, const ir_expr *eb)
{
    const ir_expr *zero = ir_int(c->cx, 0);

    if (!ir_prove_le(f, zero, ea) && !ir_prove_le(f, zero, eb))
        ea = ir_max(c->cx, ea, zero);
    return ir_simplify(f, ir_mul(c->cx, ea, eb));
}

/* a = fused div (extent of b), b = fused mod (extent of b). The body, and the bounds of loops in it, may
 * mention both variables, so both are rebound. */
static const ir_stmt *fuse_pair(sched_call *c, const ir_facts *f, const ir_stmt *a)
{
    const ir_stmt *b = a->loop.body;
    const ir_expr *ea = a->loop.extent, *eb = b->loop.extent;
    const char *name =
        sched_fresh_name(c, NULL, base_format(c->cx, "%s~%s", a->loop.var->var.name, b->loop.var->var.name));
    const ir_expr *var = ir_var(c->cx, name, BASE_I64), *extent = fused_extent(c, f, ea, eb);
    ir_facts *in = ir_facts_new(c->cx, f);

    tree_know_loop(in, var, extent, tree_may_be_empty(c->cx, a) || tree_may_be_empty(c->cx, b));
    const ir_expr *outer =
        ir_simplify(in, ir_floordiv(c->cx, var, BASE_PLANT_ON(c->cx, fuse_divisor) ? ea : eb));
    const ir_expr *inner = ir_simplify(in, ir_floormod(c->cx, var, eb));
    const ir_stmt *body = sched_rebind(in, b->loop.body, b->loop.var, inner, NULL);
    body = sched_rebind(in, body, a->loop.var, outer, NULL);
    return ir_for(c->cx, var, ir_int(c->cx, 0), extent, IR_SERIAL, body);
}

/* Points that run again must not meet their own reduction: they would be initialised once and updated
 * twice. */
static bool runs_once(sched_call *c, const char *block)
{
    tree_sites all = tree_all_sites(c->cx, c->tree->body);
    const tree_site *site = tree_site_named(&all, block);
    const char *reason;
    sched_path first;

    sched_find_loop(c->cx, c->tree->body, c->arg[0].names[0], &first);
    int fixed = tree_depth_under(site, sched_end(&first)->loop.var) - 1;
    if (tree_injective(&c->s->view, site, fixed, &reason))
        return true;
    return sched_refuse(c, "the instances of '%s' are not proven to be distinct: %s", block, reason);
}

/* A loop over reduction axes alone that may be empty; one that has spatial axes too was proven to run when it
 * was fused. */
static bool may_be_empty(sched_call *c, const ir_facts *f, const tree_site *site, const ir_stmt *loop)
{
    return tree_kind_for(c->cx, site, loop->loop.var) != IR_SPATIAL &&
           !binds_spatial(c->cx, site, loop->loop.var) &&
           !ir_prove_le(f, ir_int(c->cx, 1), loop->loop.extent);
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
static bool init_stays_guarded(sched_call *c, const tree_site *site, const ir_stmt *loop,
                               const ir_stmt *other)
{
    if (!only_guards(c->cx, site, loop->loop.var) ||
        tree_kind_for(c->cx, site, other->loop.var) == IR_SPATIAL)
        return true;
    return sched_refuse(c,
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
static bool init_survives(sched_call *c, const ir_facts *f, const ir_stmt *a, const ir_stmt *b)
{
    tree_sites below = tree_all_sites(c->cx, b->loop.body);

    for (int i = 0; i < below.n; i++) {
        const tree_site *site = &below.at[i];
        bool spatial = binds_spatial(c->cx, site, a->loop.var) || binds_spatial(c->cx, site, b->loop.var);
        bool reduces = tree_kind_for(c->cx, site, a->loop.var) != IR_SPATIAL ||
                       tree_kind_for(c->cx, site, b->loop.var) != IR_SPATIAL;

        if (!site->block->init || !reduces)
            continue;
        if (!init_stays_guarded(c, site, a, b) || !init_stays_guarded(c, site, b, a))
            return false;
        if ((spatial || runs_idle(c->cx, site, a->loop.var) || runs_idle(c->cx, site, b->loop.var)) &&
            !runs_once(c, site->block->name))
            return false;
        if (!spatial)
            continue;
        const ir_stmt *empty = may_be_empty(c, f, site, a) ? a : may_be_empty(c, f, site, b) ? b : NULL;
        if (empty)
            return sched_refuse(c,
                                "it is not proven that reduction loop '%s' runs at all; fused with a spatial "
                                "loop nothing would initialise '%s'",
                                empty->loop.var->var.name, site->block->name);
    }
    return true;
}

static bool too_many(const ir_stmt *a, const ir_stmt *b)
{
    int64_t n, m, product;

    return ir_is_int(a->loop.extent, &n) && ir_is_int(b->loop.extent, &m) &&
           __builtin_mul_overflow(n, m, &product);
}

/* The new loop runs extent times extent iterations, so the inner extent must be the same in all iterations of
 * the outer loop, and the product must be countable. */
static bool can_fuse(sched_call *c, const ir_facts *f, const ir_stmt *a, const char *b_name)
{
    const ir_stmt *b = a->loop.body;
    const char *name = a->loop.var->var.name;

    if (!need_serial(c, a))
        return false;
    if (b->kind != IR_FOR || strcmp(b->loop.var->var.name, b_name) != 0) {
        sched_refuse(c, "loop '%s' is not the only child of '%s'", b_name, name);
        return false;
    }
    if (!need_serial(c, b))
        return false;
    if (!ir_is_value(b->loop.min, 0) || ir_uses_var(c->cx, b->loop.extent, a->loop.var)) {
        sched_refuse(c, "the bounds of '%s' depend on '%s'", b_name, name);
        return false;
    }
    if (too_many(a, b)) {
        sched_refuse(c, "'%s' and '%s' have more iterations than can be counted", name, b_name);
        return false;
    }
    return init_survives(c, f, a, b);
}

/* fuse(a, b, ...): nested loops, each the only child of the one before, become one. Fuses from the outside
 * in: a and b, then their loop with c. The names of the loops still come from the old tree, as the result is
 * put into it only once. */
const ir_program *sched_do_fuse(sched_call *c)
{
    const sched_arg *loops = &c->arg[0];
    sched_path at;

    if (loops->n < 2)
        return sched_refuse(c, "expected at least two loops to fuse, found %d", loops->n);
    if (!sched_need_loop(c, loops->names[0], &at))
        return NULL;
    const ir_facts *f = sched_facts_at(c->s, &at, at.n - 1);
    const ir_stmt *l = sched_end(&at);
    for (int i = 1; i < loops->n; i++) {
        sched_path inner;

        if (!sched_need_loop(c, loops->names[i], &inner) || !can_fuse(c, f, l, loops->names[i]))
            return NULL;
        l = fuse_pair(c, f, l);
    }
    base_push(c->cx, &c->results, l->loop.var->var.name);
    return sched_with_body(c, sched_rebuild(c->cx, &at, at.n - 1, l));
}

/* ---- tile ---- */

/* tile(y, x, fy, fx): both split, y.0 x.0 y.1 x.1. The results of the splits are y.0, y.1, x.0, x.1, and tile
 * gives y.0, x.0, y.1, x.1. The helper functions work on c->tree, so the tree after each split is put there,
 * and the old one put back. */
const ir_program *sched_do_tile(sched_call *c)
{
    const sched_arg *f = &c->arg[2];
    const ir_program *before = c->tree, *after;
    base_vec names = {0};

    if (f->n != 2)
        return sched_refuse(c, "expected two factors, one for each loop, found %d", f->n);
    for (int i = 0; i < 2; i++) {
        sched_arg factors = {.kind = SCHED_ARG_FACTORS, .n = 2, .ints = (int64_t[]){TEC_INFER, f->ints[i]}};
        sched_path at;

        if (!sched_need_loop(c, c->arg[i].name, &at) || !(after = split_at(c, &at, &factors, "guard")))
            return NULL;
        c->tree = after;
    }
    for (int i = 0; i < 4; i++)
        base_push(c->cx, &names, c->results.at[i / 2 + i % 2 * 2]);
    c->results = names;
    after = sched_permute(c, (const char *const *)names.at, 4);
    c->tree = before;
    return after;
}
