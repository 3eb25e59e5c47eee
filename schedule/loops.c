/* schedule/loops.c -- split and tile: one loop becomes several, one inside the other.
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
 */
#include <limits.h>
#include <string.h>

#include "ir/reason/facts.h"
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* Refuses loops that run in another way than one iteration after the other. */
bool sched_need_serial(sched_call *call, const ir_stmt *loop)
{
    if (loop->loop.how == IR_SERIAL)
        return true;
    sched_refuse(call, "loop '%s' is %s; only serial loops can be changed", loop->loop.var->var.name,
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
 * 2^62, so that nothing computed from it overflows. The limit keeps `product * factor` from overflowing in
 * the callers. */
static bool read_factors(sched_call *call, const sched_arg *arg, int *inferred, int64_t *product)
{
    *inferred = -1;
    *product = 1;
    if (arg->n < 2) {
        sched_refuse(call, "expected at least two factors, found %d", arg->n);
        return false;
    }
    for (int i = 0; i < arg->n; i++) {
        if (arg->ints[i] == TEC_INFER && *inferred >= 0) {
            sched_refuse(call, "only one factor can be inferred");
            return false;
        }
        if (arg->ints[i] == TEC_INFER) {
            *inferred = i;
        } else if (arg->ints[i] < 1) {
            sched_refuse(call, "factor %lld is not positive", (long long)arg->ints[i]);
            return false;
        } else if (*product > INT64_MAX / 2 / arg->ints[i]) {
            sched_refuse(call, "the product of the factors is too large");
            return false;
        } else {
            *product *= arg->ints[i];
        }
    }
    return true;
}

/* The inferred factor rounds up: ceildiv(extent, product of the others). Factors that are all given must
 * reach the extent, since otherwise the last iterations would be lost.
 *
 *     split(i, _, 8)  with i in 0..n:  extents ceildiv(n, 8) and 8; exact if n is a multiple of 8
 *     split(i, 4, 8)  with i in 0..30:    32 iterations reach 30: a tail of 2
 *     split(i, 3, 8)  with i in 0..30:    24 do not: refused
 */
static bool set_extents(sched_call *call, const ir_facts *facts, const sched_arg *arg, pieces *self)
{
    const ir_expr *extent = self->loop->loop.extent;
    int64_t product;
    int inferred;

    if (!read_factors(call, arg, &inferred, &product))
        return false;
    for (int i = 0; i < self->n; i++)
        self->extent[i] = i == inferred
                              ? ir_simplify(facts, ir_ceildiv(call->cx, extent, ir_int(call->cx, product)))
                              : ir_int(call->cx, arg->ints[i]);
    self->product = ir_int(call->cx, product);
    if (inferred >= 0)
        self->product = ir_simplify(facts, ir_mul(call->cx, self->extent[inferred], self->product));
    self->exact = ir_prove_equal(facts, self->product, extent);
    if (inferred >= 0 || self->exact || ir_prove_le(facts, extent, self->product))
        return true;
    sched_refuse(call,
                 "the factors make %s iterations; it is not proven that they reach the extent %s of '%s'",
                 ir_expr_text(call->cx, self->product), ir_expr_text(call->cx, extent),
                 self->loop->loop.var->var.name);
    return false;
}

/* split(y, _, 3, 4) gives y = (y.0*3 + y.1)*4 + y.2: Horner's scheme over the extents. */
static void make_vars(sched_call *call, pieces *self)
{
    const char *name = self->loop->loop.var->var.name;

    self->rebuilt = NULL;
    for (int i = 0; i < self->n; i++) {
        const char *own = sched_fresh_name(call, NULL, base_format(call->cx, "%s.%d", name, i));

        self->var[i] = ir_var(call->cx, own, BASE_I64);
        self->rebuilt = self->rebuilt
                            ? ir_add(call->cx, ir_mul(call->cx, self->rebuilt, self->extent[i]), self->var[i])
                            : self->var[i];
        base_push(call->cx, &call->results, own);
    }
}

/* The facts inside the new loops, at facts. */
static ir_facts *inside(sched_call *call, const ir_facts *facts, const pieces *self)
{
    ir_facts *in = ir_facts_new(call->cx, facts);
    bool may_be_empty = tree_may_be_empty(call->cx, self->loop);

    for (int i = 0; i < self->n; i++)
        tree_know_loop(in, self->var[i], self->extent[i], may_be_empty);
    return in;
}

static const ir_stmt *wrap(sched_call *call, const pieces *self, const ir_stmt *body)
{
    for (int i = self->n - 1; i >= 0; i--)
        body = ir_for(call->cx, self->var[i], ir_int(call->cx, 0), self->extent[i], IR_SERIAL, body);
    return body;
}

/* ---- split with round_up: the blocks below get larger domains ---- */

/* The iteration variable that is bound to just this loop; -1: none, or another one mentions the loop too. */
static int plain_iter(tec_context *cx, const ir_stmt *stmt, const ir_expr *var)
{
    int found = -1;

    for (int i = 0; i < stmt->block.block->n_iters; i++) {
        if (!ir_uses_var(cx, stmt->block.bind[i], var))
            continue;
        if (stmt->block.bind[i] != var || found >= 0)
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
static void check_access(bounds_check *self, const ir_buffer *buffer, const ir_expr *const *index, int count,
                         const char *does)
{
    tec_context *cx = self->c->cx;

    for (int d = 0; self->ok && d < count; d++) {
        if (ir_prove_le(self->f, ir_int(cx, 0), index[d]) && ir_prove_lt(self->f, index[d], buffer->shape[d]))
            continue;
        sched_refuse(
            self->c, "rounded up, '%s' would %s index %s of '%s', which is not proven to lie within 0..%s",
            self->block, does, ir_expr_text(cx, index[d]), buffer->name, ir_expr_text(cx, buffer->shape[d]));
        self->ok = false;
    }
}

static bool check_load(ir_walk *walk, const ir_expr *expr)
{
    if (expr->op == IR_LOAD)
        check_access((bounds_check *)walk, expr->load.buffer, expr->load.index, expr->load.n, "read");
    return expr->has & IR_HAS_LOAD;
}

static bool check_store(ir_walk *walk, const ir_stmt *stmt)
{
    bounds_check *k = (bounds_check *)walk;

    if (stmt->kind == IR_STORE)
        check_access(k, stmt->store.buffer, stmt->store.index, stmt->store.n, "write");
    for (int i = 0; stmt->kind == IR_UPDATE && i < stmt->update.combiner->n; i++)
        check_access(k, stmt->update.buffer[i], stmt->update.index, stmt->update.n, "write");
    return k->ok;
}

/* Init and body both: the init writes all elements of the larger domain too. */
static bool in_bounds(sched_call *call, const ir_facts *facts, const ir_block *block)
{
    bounds_check k = {.w = {.cx = call->cx, .expr = check_load, .stmt = check_store},
                      .c = call,
                      .f = facts,
                      .block = block->name,
                      .ok = true};

    if (block->init)
        ir_walk_stmt(&k.w, block->init);
    ir_walk_stmt(&k.w, block->body);
    return k.ok;
}

/* More values of var are more elements: every buffer that the block writes is indexed by it. */
static bool writes_apart(tec_context *cx, const ir_block *block, const ir_expr *var)
{
    for (int i = 0; i < block->n_writes; i++) {
        bool mentioned = false;

        for (int d = 0; d < block->writes[i].buffer->n; d++)
            mentioned = mentioned || ir_uses_var(cx, block->writes[i].min[d], var);
        if (!mentioned)
            return false;
    }
    return true;
}

/* The block with iteration variable index running to `extent`; refuses where that is not harmless. Three
 * things make it harmless: the axis is spatial, so that no term joins a reduction; each new value of the axis
 * writes elements of its own; and all accesses are proven to lie within the buffers, which therefore have
 * room behind the old domain. */
static const ir_stmt *enlarge(sched_call *call, const ir_facts *facts, const ir_stmt *stmt, int index,
                              const ir_stmt *loop, const ir_expr *extent)
{
    ir_block *block = ir_block_copy(call->cx, stmt->block.block);
    ir_iter *iters = base_copy(call->cx, block->iters, (size_t)block->n_iters * sizeof *iters);
    ir_facts *in = ir_facts_new(call->cx, facts);

    if (iters[index].kind != IR_SPATIAL)
        return sched_refuse(call, "'%s' is not a spatial axis of '%s'; only spatial axes can be rounded up",
                            iters[index].var->var.name, block->name);
    if (!ir_prove_equal(facts, iters[index].extent, loop->loop.extent))
        return sched_refuse(call, "loop '%s' covers only a part of axis '%s' of '%s'",
                            loop->loop.var->var.name, iters[index].var->var.name, block->name);
    if (!writes_apart(call->cx, block, iters[index].var))
        return sched_refuse(call, "rounded up, '%s' would write its elements for more than one value of '%s'",
                            block->name, iters[index].var->var.name);
    iters[index].extent = extent;
    block->iters = iters;
    for (int i = 0; i < block->n_iters; i++)
        ir_facts_range(in, iters[i].var, ir_int(call->cx, 0), iters[i].extent);
    return in_bounds(call, in, block) ? sched_with_block(call->cx, stmt, sched_refresh(facts, block)) : NULL;
}

/* The blocks below with their larger domains. All of them must take part, as one loop drives them all. */
static const ir_stmt *round_up(sched_call *call, const ir_facts *facts, const ir_stmt *stmt,
                               const ir_stmt *loop, const ir_expr *extent)
{
    const ir_expr *var = loop->loop.var;

    if (stmt->kind == IR_BLOCK) {
        int k = plain_iter(call->cx, stmt, var);

        if (k < 0)
            return sched_refuse(call,
                                "round_up needs a whole axis of '%s', but loop '%s' is only a part of one",
                                stmt->block.block->name, var->var.name);
        if (ir_uses_var(call->cx, stmt->block.where, var))
            return sched_refuse(call, "a predicate of '%s' depends on loop '%s'", stmt->block.block->name,
                                var->var.name);
        return enlarge(call, facts, stmt, k, loop, extent);
    }
    for (int i = 0, n = tree_n_children(stmt); stmt && i < n; i++) {
        const ir_stmt *child = round_up(call, facts, tree_child(stmt, i), loop, extent);

        stmt = child ? sched_with_child(call->cx, stmt, i, child) : NULL;
    }
    return stmt;
}

/* Refuses where the block would meet padding of these buffers that nothing fills. */
static bool filled(sched_call *call, const ir_stmt *root, const ir_block *block, const ir_region *region,
                   int n, const char *does)
{
    for (int i = 0; i < n; i++)
        if (tree_leaves_padding(&call->s->view, root, region[i].buffer, block->name))
            return sched_refuse(call, "rounded up, '%s' would %s the padding of '%s', which nothing fills",
                                block->name, does, region[i].buffer->name);
    return true;
}

/* What the points behind the end read or add to is written: by blocks that run over the padding, too, and in
 * the same iteration where those share loops with the reader. `root` is the tree as it will be, rounded up
 * below the loop of `var`. A point behind the end reads padding, and reading memory that nobody wrote is an
 * error, which the interpreter reports. */
static bool finds_all_written(sched_call *call, const ir_stmt *root, const ir_expr *var)
{
    tree_sites all = tree_all_sites(call->cx, root);

    for (int i = 0; i < all.n; i++) {
        const ir_block *block = all.at[i].block;

        if (!tree_depth_under(&all.at[i], var))
            continue;
        if (!filled(call, root, block, block->reads, block->n_reads, "read") ||
            (tree_adds(call->cx, block) &&
             !filled(call, root, block, block->writes, block->n_writes, "add to")) ||
            !sched_reads_are_written(call, root, block->name))
            return false;
    }
    return true;
}

/* ---- split with shift_inwards: the last tile starts earlier and does some points again ---- */

/*     extent 10, tiles of 4:  0..3  4..7  6..9      points 6 and 7 run twice
 *
 * A point that runs twice must leave the same value, and no other instance may write its elements, as the
 * second run would undo that. A reduction that reaches over the loop would add its terms twice. */
static bool may_repeat(sched_call *call, const ir_stmt *loop)
{
    tree_sites below = tree_all_sites(call->cx, loop->loop.body);

    for (int i = 0; i < below.n; i++) {
        const tree_site *site = &below.at[i];
        const char *reason = tree_not_idempotent(call->cx, site->block);

        for (int j = 0; !reason && j < site->block->n_writes; j++)
            if (!tree_writes_once(&call->s->view, site->block, &site->block->writes[j]))
                reason = base_format(call->cx, "later ones overwrite what they left in '%s'",
                                     site->block->writes[j].buffer->name);
        for (int j = 0; !reason && j < site->block->n_iters; j++) {
            base_vec vars = {0};

            if (site->block->iters[j].kind != IR_REDUCE_ITER)
                continue;
            ir_free_vars(call->cx, site->stmt->block.bind[j], &vars);
            for (int k = 0; k < vars.n; k++)
                if (!tree_depth_under(site, vars.at[k]))
                    reason = base_format(call->cx, "its reduction over '%s' is not completed inside '%s'",
                                         ((const ir_expr *)vars.at[k])->var.name, loop->loop.var->var.name);
        }
        if (reason) {
            sched_refuse(call, "shift_inwards repeats instances of '%s', but %s", site->block->name, reason);
            return false;
        }
    }
    return true;
}

/* The start of the last tile is min(outer * tile, extent - tile), so the extent must have room for one
 * tile. */
static const ir_expr *shifted(sched_call *call, const ir_facts *facts, const pieces *self)
{
    const ir_expr *extent = self->loop->loop.extent, *tile = ir_int(call->cx, 1), *within = NULL;

    for (int i = 1; i < self->n; i++) {
        tile = ir_mul(call->cx, tile, self->extent[i]);
        within =
            within ? ir_add(call->cx, ir_mul(call->cx, within, self->extent[i]), self->var[i]) : self->var[i];
    }
    if (!ir_prove_le(facts, tile, extent))
        return sched_refuse(call, "shift_inwards needs one full tile; it is not proven that %s <= %s",
                            ir_expr_text(call->cx, tile), ir_expr_text(call->cx, extent));
    if (!may_repeat(call, self->loop))
        return NULL;
    const ir_expr *start =
        ir_min(call->cx, ir_mul(call->cx, self->var[0], tile), ir_sub(call->cx, extent, tile));
    return ir_add(call->cx, start, within);
}

bool sched_binds_spatial(tec_context *cx, const tree_site *site, const ir_expr *var)
{
    for (int j = 0; j < site->block->n_iters; j++)
        if (site->block->iters[j].kind == IR_SPATIAL && ir_uses_var(cx, site->stmt->block.bind[j], var))
            return true;
    return false;
}

bool sched_need_reduction_only(sched_call *call, const tree_site *site, const ir_expr *var)
{
    return !sched_binds_spatial(call->cx, site, var) ||
           sched_refuse(call, "loop '%s' runs over a spatial and a reduction axis of '%s'", var->var.name,
                        site->block->name);
}

bool sched_need_only_writer(sched_call *call, const tree_sites *all, const tree_site *writer,
                            const ir_buffer *buffer)
{
    for (int i = 0; i < all->n; i++)
        if (&all->at[i] != writer && tree_writes(all->at[i].block, buffer))
            return sched_refuse(call, "'%s' is not the only writer of '%s': '%s' writes it too",
                                writer->block->name, buffer->name, all->at[i].block->name);
    return true;
}

/* A predicate on a loop that mixes the axes would have to guard the init and the updates in different ways.
 * An example is the loop f that fuse made of y and k in 0..4: the guard f < 10 leaves out the updates k = 2
 * and 3 of y = 2, while the init of y = 2 must run. */
static bool tail_is_clear(sched_call *call, const ir_stmt *loop)
{
    tree_sites below = tree_all_sites(call->cx, loop->loop.body);

    for (int i = 0; i < below.n; i++) {
        const tree_site *site = &below.at[i];

        if (site->block->init && sched_binds_spatial(call->cx, site, loop->loop.var) &&
            tree_kind_for(call->cx, site, loop->loop.var) != IR_SPATIAL)
            return sched_refuse(
                call,
                "loop '%s' runs over a spatial and a reduction axis of '%s'; its factors must divide it",
                loop->loop.var->var.name, site->block->name);
    }
    return true;
}

/* Simplified as the bindings will be, so that both mention the same loops: what the init of a reduction is
 * guarded by hangs on that. A guard that simplifies to a constant stays in its long form: a constant mentions
 * no loop, so that `false` would guard the init of a reduction as well. */
static const ir_expr *tail_guard(sched_call *call, const ir_facts *in, const pieces *self)
{
    const ir_expr *guard = ir_lt(call->cx, self->rebuilt, self->loop->loop.extent),
                  *simple = ir_simplify(in, guard);
    int64_t value;

    return ir_is_int(simple, &value) ? guard : simple;
}

/* The body below the new loops, for the tail that was asked for. `exact` splits have no tail, whatever the
 * word says. The rebinding puts the guard on all blocks below. With i = o*8 + r in 0..30: `guard` adds `o*8
 * + r < 30`; `round_up` makes the domain 32; `shift_inwards` uses min(o*8, 22) + r, which computes some
 * elements twice and needs no condition. */
static const ir_stmt *split_body(sched_call *call, const ir_facts *facts, const pieces *self,
                                 const char *tail)
{
    const ir_stmt *body = self->loop->loop.body;
    const ir_expr *value = self->rebuilt, *guard = NULL;
    const ir_facts *in = inside(call, facts, self);
    bool tiling = call->arg[1].kind == SCHED_ARG_LOOP;

    if (strcmp(tail, "guard") != 0 && strcmp(tail, "round_up") != 0 && strcmp(tail, "shift_inwards") != 0)
        return sched_refuse(call, "'%s' is not a way to split: expected guard, round_up or shift_inwards",
                            tail);
    if (!self->exact && strcmp(tail, "round_up") == 0)
        body = round_up(call, facts, body, self->loop, self->product);
    else if (!self->exact && strcmp(tail, "shift_inwards") == 0)
        value = shifted(call, facts, self);
    else if (!self->exact && tail_is_clear(call, self->loop))
        guard = BASE_PLANT_ON(call->cx, split_guard) || (tiling && BASE_PLANT_ON(call->cx, tile_guard))
                    ? NULL
                    : tail_guard(call, in, self);
    return body && value && !call->reason ? sched_rebind(in, body, self->loop->loop.var, value, guard) : NULL;
}

/* What the chosen tail asks of the whole new tree. The padding of round_up may be read, and must then be
 * written elsewhere in the tree. The start of a shifted tile is a minimum, in which a proof about a parallel
 * loop around may fail that the sum before did not hinder. */
static bool tail_fits(sched_call *call, const sched_path *at, const pieces *self, const ir_stmt *root,
                      const char *tail)
{
    if (self->exact)
        return true;
    if (strcmp(tail, "round_up") == 0)
        return finds_all_written(call, root, self->var[0]);
    return strcmp(tail, "shift_inwards") != 0 || sched_still_independent(call, at, root);
}

/* Splits the loop at the end of the path; tile uses this too. */
static const ir_program *split_at(sched_call *call, const sched_path *at, const sched_arg *factors,
                                  const char *tail)
{
    const ir_facts *facts = sched_facts_at(call->s, at, at->n - 1);
    pieces p = {.loop = sched_end(at), .n = factors->n};

    p.extent = base_array(call->cx, const ir_expr *, p.n);
    p.var = base_array(call->cx, const ir_expr *, p.n);
    if (!sched_need_serial(call, p.loop) || !set_extents(call, facts, factors, &p))
        return NULL;
    make_vars(call, &p);
    const ir_stmt *body = split_body(call, facts, &p, tail);
    const ir_stmt *root = body ? sched_rebuild(call->cx, at, at->n - 1, wrap(call, &p, body)) : NULL;
    return root && tail_fits(call, at, &p, root, tail) ? sched_with_body(call, root) : NULL;
}

/* split(l, f1, f2, ...): l becomes nested loops of these extents; one factor may be `_`. */
const ir_program *sched_do_split(sched_call *call)
{
    sched_path at;

    return sched_need_loop(call, call->arg[0].name, &at)
               ? split_at(call, &at, &call->arg[1], call->arg[2].name)
               : NULL;
}

/* ---- tile ---- */

/* tile(y, x, fy, fx): both split, y.0 x.0 y.1 x.1. The results of the splits are y.0, y.1, x.0, x.1, and tile
 * gives y.0, x.0, y.1, x.1. The helper functions work on call->tree, so the tree after each split is put
 * there, and the old one put back. */
const ir_program *sched_do_tile(sched_call *call)
{
    const sched_arg *f = &call->arg[2];
    const ir_program *before = call->tree, *after;
    base_vec names = {0};

    if (f->n != 2)
        return sched_refuse(call, "expected two factors, one for each loop, found %d", f->n);
    for (int i = 0; i < 2; i++) {
        sched_arg factors = {.kind = SCHED_ARG_FACTORS, .n = 2, .ints = (int64_t[]){TEC_INFER, f->ints[i]}};
        sched_path at;

        if (!sched_need_loop(call, call->arg[i].name, &at) ||
            !(after = split_at(call, &at, &factors, "guard")))
            return NULL;
        call->tree = after;
    }
    for (int i = 0; i < 4; i++)
        base_push(call->cx, &names, call->results.at[i / 2 + i % 2 * 2]);
    call->results = names;
    after = sched_permute(call, (const char *const *)names.at, 4);
    call->tree = before;
    return after;
}
