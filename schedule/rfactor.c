/* schedule/rfactor.c -- rfactor: a reduction in two steps, where each iteration of one of its loops gets a
 * partial result.
 *
 *     for C.k.0 { for C.k.1 {               for C.k.0 { for C.k.1 { block C.rf(v = C.k.1, k reduce = C.k.0) {
 *       block C(k = C.k.0*8 + C.k.1) {          init { C.rf[v] = 0 }  C.rf[v] sum= A[k*8 + v] } } }
 *         init { C[] = 7 }              =>  for C.k.1'2 { block C(v reduce = C.k.1'2) {
 *         C[] sum= A[k]                         init { C[] = 7 }  C[] sum= C.rf[v] } }
 *     } } }
 *
 *     C.rf = rfactor(C.k.1, 0)
 *
 * The partial results start at the identity of the combiner, all of them: what the predicate says about
 * reduction loops guards the updates only, and so moves inside. The user's init stays with C, which comes
 * after the outermost reduction loop, in copies of the spatial loops from there inward.
 *
 * Where C is one part of a cut, the partial results are those of its part: they are as large as the box that
 * it writes, and the variables of C.rf count from there. So a block that nothing else writes with computes
 * all of its domain, which is what moves and copies take for granted.
 *
 * Why the steps must be legal. A sum of n terms in any order and grouping is the same where the combiner is
 * declared associative and commutative: C = 7 + (a0 + a8 + ..) + (a1 + a9 + ..) + ... Here group v holds the
 * terms k with k mod 8 = v. Each group starts at the identity (0 for a sum), which may be added any number of
 * times; the user's init 7 must be added once, so it stays with C. If the partial results started at 7 as
 * well, the result would hold it nine times.
 *
 * Where a group is empty, as with n = 3 and 8 groups, its partial result is the identity, which changes
 * nothing. For this reason conditions on reduction loops move inside of C.rf and guard its updates alone:
 * under a predicate of the block, the groups 3 to 7 would never be initialised, and C would read memory that
 * nobody wrote.
 */
#include <string.h>

#include "ir/reason/facts.h"
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

typedef struct {
    sched_call *c;
    const tree_site *site;
    const ir_stmt *loop;   /* l */
    const ir_stmt *update; /* all that the block does, possibly under conditions */
    int depth;             /* loops outside the outermost reduction loop */
    int axis;
    const ir_buffer **part; /* one for each component of the combiner */
    /* conjuncts of the predicate: about reduction loops, about others; NULL: none */
    const ir_expr *inside, *outside;
    bool of_part; /* the block computes `box` of its results only */
    ir_region box;
    int *dim_of; /* then: the dimension that each iteration variable indexes, or -1 */
} factoring;

static bool binds(const factoring *self, const ir_expr *var, bool spatial)
{
    const tree_site *site = self->site;

    for (int i = 0; i < site->block->n_iters; i++)
        if ((site->block->iters[i].kind != IR_REDUCE_ITER) == spatial &&
            ir_uses_var(self->c->cx, site->stmt->block.bind[i], var))
            return true;
    return false;
}

static bool reduces(const factoring *self, const ir_stmt *loop)
{
    return binds(self, loop->loop.var, false);
}

/* ---- checks ---- */

/* The rewrite makes two updates of one; so the block must be a single update, whose terms may be regrouped,
 * and which does nothing that must happen once per term. */
static bool block_fits(factoring *self)
{
    const ir_block *block = self->site->block;

    self->update = ir_only_update(block->body);
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_OPAQUE)
            return sched_refuse(self->c, "'%s' has %s axis '%s'", block->name,
                                tree_kind_text(block->iters[i].kind), block->iters[i].var->var.name);
    if (!self->update)
        return sched_refuse(self->c, "the body of '%s' is not a single update", block->name);
    if (!self->update->update.combiner->reorders)
        return sched_refuse(self->c, "the combiner of '%s' is not declared associative and commutative",
                            block->name);
    if (tree_has_effect(self->c->cx, block->body))
        return sched_refuse(self->c, "'%s' calls a function with an effect", block->name);
    return true;
}

/* A reduction loop keeps its extent in S.rf, but stands in another nest there; spatial loops inside of the
 * outermost reduction loop are copied for the result. So the bounds may only use loops that are around both
 * nests. */
static bool bounds_fit(factoring *self, int at)
{
    const ir_stmt *l = self->site->loop[at];

    for (int i = 0; i < at; i++)
        if (ir_uses_var(self->c->cx, l->loop.extent, self->site->loop[i]->loop.var) &&
            (reduces(self, l) || i >= self->depth))
            return sched_refuse(self->c, "the bounds of '%s' depend on '%s'", l->loop.var->var.name,
                                self->site->loop[i]->loop.var->var.name);
    return true;
}

/* From the outermost reduction loop inward stand loops only, each of one kind. */
static bool loops_fit(factoring *self)
{
    const tree_site *site = self->site;

    while (!reduces(self, site->loop[self->depth]))
        self->depth++;
    for (int i = self->depth; i < site->n_loops; i++) {
        const ir_stmt *l = site->loop[i];
        const char *name = l->loop.var->var.name;

        if (reduces(self, l) && binds(self, l->loop.var, true))
            return sched_refuse(self->c, "loop '%s' runs over a spatial and a reduction axis of '%s'", name,
                                site->block->name);
        if (l->loop.body != (i + 1 < site->n_loops ? site->loop[i + 1] : site->stmt))
            return sched_refuse(self->c, "other statements stand between '%s' and '%s'", name,
                                site->block->name);
        if (!bounds_fit(self, i))
            return false;
    }
    return true;
}

/* The partial results are those of one step, and a block that reads its results reads those of earlier
 * ones. */
static bool steps_fit(factoring *self)
{
    const ir_block *block = self->site->block;

    if (tree_step_depth(&self->c->s->view, self->site) > self->depth)
        return sched_refuse(self->c, "a scan loop of '%s' lies inside '%s'", block->name,
                            self->site->loop[self->depth]->loop.var->var.name);
    if (!tree_reads_other_steps(&self->c->s->view, self->site, self->depth))
        return sched_refuse(self->c, "'%s' reads what it writes, '%s'", block->name,
                            self->update->update.buffer[0]->name);
    return true;
}

/* Splits the predicate: `inside` is about reduction loops, `outside` about all others. A conjunct about both
 * would have to guard the init of S.rf for some groups and not for others. A block that never runs has the
 * predicate false, in which the conditions of its loops are gone: it counts for both, since S.rf may be moved
 * to where it runs. */
static bool predicate_fits(factoring *self)
{
    tec_context *cx = self->c->cx;
    base_vec all = {0};

    ir_conjuncts(cx, self->site->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        bool reduce = false, spatial = false;

        for (int j = 0; j < self->site->n_loops; j++)
            if (ir_uses_var(cx, all.at[i], self->site->loop[j]->loop.var)) {
                reduce = reduce || reduces(self, self->site->loop[j]);
                spatial = spatial || !reduces(self, self->site->loop[j]);
            }
        if (reduce && spatial)
            return sched_refuse(self->c, "the predicate '%s' depends on spatial and on reduction loops",
                                ir_expr_text(cx, all.at[i]));
        if (reduce || ir_is_value(all.at[i], 0))
            self->inside = ir_all(cx, self->inside, all.at[i]);
        if (!reduce)
            self->outside = ir_all(cx, self->outside, all.at[i]);
    }
    return true;
}

/* ---- one part of a cut ---- */

/* Another writer would add its part to the result between the partial ones and their sum. */
static bool has_other_writers(const factoring *self, const tree_sites *all)
{
    for (int i = 0; i < all->n; i++)
        if (&all->at[i] != self->site && tree_writes(all->at[i].block, self->update->update.buffer[0]))
            return true;
    return false;
}

/* Inside of spatial loops the partial results live in one iteration, where the box of that iteration says
 * what there is.
 *
 *     for k { for y in 0..4 { block C(y) } }   for k'2 { for y'2 in 0..8 { block C'2(y = y'2 + 4) } }
 *
 * After cut(y, 4) both blocks write C. The partial results of one have the size of the box that it writes, so
 * that the new block fills its buffer. The box must be proven to be full: an element in it that the block
 * does not write would have no partial result. */
static bool part_fits(factoring *self, const tree_sites *all)
{
    tec_context *cx = self->c->cx;
    const sched *s = self->c->s;
    const ir_block *block = self->site->block;
    const ir_region *write = tree_access(block->writes, block->n_writes, self->update->update.buffer[0]);
    ir_region whole = ir_region_whole(cx, write->buffer);

    if (self->depth > 0 || !has_other_writers(self, all) ||
        tree_touches_whole_box(&s->view, self->site, write, &whole, 0))
        return true;
    self->of_part = true;
    self->box = tree_box(&s->view, self->site, write, 0, false);
    self->dim_of = base_array(cx, int, block->n_iters);
    if (tree_store_dims(&s->view, block, write, self->dim_of) &&
        ir_region_contains(s->view.facts, &whole, &self->box) &&
        tree_touches_whole_box(&s->view, self->site, write, &self->box, 0))
        return true;
    return sched_refuse(self->c,
                        "'%s' and other blocks write '%s', and it cannot be proven that the elements that "
                        "'%s' writes form a box",
                        block->name, write->buffer->name, block->name);
}

/* The value of an iteration variable at the first element of the part. */
static const ir_expr *part_begin(const factoring *self, int iter)
{
    const ir_block *b = self->site->block;
    const ir_region *write = tree_access(b->writes, b->n_writes, self->box.buffer);
    int d = self->dim_of[iter];

    return ir_sub(self->c->cx, self->box.min[d], ir_int(self->c->cx, tree_store_shift(write, d)));
}

/* ---- partial results ---- */

static const ir_expr *not_negative(const factoring *self, const ir_expr *extent)
{
    const ir_expr *zero = ir_int(self->c->cx, 0);

    /* The part of a loop behind a cut, where the loops around do not run. */
    return ir_prove_le(self->c->s->view.facts, zero, extent) ? extent : ir_max(self->c->cx, extent, zero);
}

/* One more dimension than the result, at place `axis`. An extent that may be negative is cut off at 0, since
 * the shape of a buffer must not be negative. */
static const ir_buffer *partial_buffer(factoring *self, const ir_buffer *buffer)
{
    tec_context *cx = self->c->cx;
    const ir_expr **shape = base_array(cx, const ir_expr *, buffer->n + 1);
    const char *name = base_format(cx, "%s.rf", buffer->name);
    const ir_expr *const *of_result = self->of_part ? self->box.extent : buffer->shape;

    for (int d = 0, from = 0; d <= buffer->n; d++)
        shape[d] = not_negative(self, d == self->axis ? self->loop->loop.extent : of_result[from++]);
    for (int i = 2; sched_buffer_named(self->c->tree, name); i++)
        name = base_format(cx, "%s.rf'%d", buffer->name, i);
    ir_buffer *part = ir_buffer_copy(cx, ir_buffer_new(cx, name, buffer->dtype, shape, buffer->n + 1));
    part->loc = buffer->loc;
    return part;
}

/* "k.1" of loop "C.k.1". */
static const char *short_name(const factoring *self, const ir_expr *var)
{
    const char *block = self->site->block->name;
    size_t n = strlen(block);

    return strncmp(var->var.name, block, n) == 0 && var->var.name[n] == '.' ? var->var.name + n + 1
                                                                            : var->var.name;
}

/* The variables of a block that is being made, with their bindings. `map` is filled as variables are added;
 * an expression of the old block is carried over by applying it. */
typedef struct {
    ir_iter *iters;
    const ir_expr **bind;
    int n;
    ir_subst map; /* what the old block's inside, and its predicate over reduction loops, mention */
} variables;

static const ir_expr *add_variable(const factoring *self, variables *vars, const char *name,
                                   const ir_expr *extent, ir_iter_kind kind, const ir_expr *bind)
{
    const ir_expr *var = ir_var(self->c->cx, name, BASE_I64);

    vars->iters[vars->n] = (ir_iter){.var = var, .extent = extent, .kind = kind};
    vars->bind[vars->n++] = bind;
    return var;
}

/* `part`: of a part of the domain, counted from its begin. For a part, the new variable counts from 0: old =
 * new + begin. */
static variables spatial_variables(const factoring *self, bool part)
{
    tec_context *cx = self->c->cx;
    const ir_block *block = self->site->block;
    int most = block->n_iters + self->site->n_loops + 1;
    variables v = {.iters = base_array(cx, ir_iter, most), .bind = base_array(cx, const ir_expr *, most)};

    for (int i = 0; i < block->n_iters; i++) {
        const ir_iter *it = &block->iters[i];
        const ir_expr *bind = self->site->stmt->block.bind[i], *extent = it->extent, *begin = ir_int(cx, 0);

        if (it->kind == IR_REDUCE_ITER)
            continue;
        if (part && self->dim_of[i] >= 0) {
            begin = part_begin(self, i);
            extent = self->box.extent[self->dim_of[i]];
            bind = ir_simplify(self->c->s->view.facts, ir_sub(cx, bind, begin));
        }
        base_map_put(cx, &v.map.vars, it->var,
                     ir_add(cx, add_variable(self, &v, it->var->var.name, extent, it->kind, bind), begin));
    }
    return v;
}

/* The element of the partial results beside the element of the result that the variables give. */
static const ir_expr *const *partial_index(const factoring *self, const variables *vars,
                                           const ir_expr *of_loop)
{
    tec_context *cx = self->c->cx;
    int n = self->update->update.n;
    const ir_expr **out = base_array(cx, const ir_expr *, n + 1);

    out[self->axis] = of_loop;
    for (int d = 0; d < n; d++) {
        const ir_expr *at = ir_apply(cx, &vars->map, self->update->update.index[d]);

        out[d + (d >= self->axis)] =
            self->of_part ? ir_simplify(self->c->s->view.facts, ir_sub(cx, at, self->box.min[d])) : at;
    }
    return out;
}

/* The new block keeps role, notes and source line of the old one; its regions are computed anew. */
static const ir_block *make_block(const factoring *self, const variables *vars, const char *name,
                                  const ir_stmt *init, const ir_stmt *body)
{
    ir_block *block = ir_block_copy(self->c->cx, self->site->block);

    if (!body)
        return NULL;
    block->name = name;
    block->iters = vars->iters;
    block->n_iters = vars->n;
    block->init = init;
    block->body = body;
    return sched_refresh(self->c->s->view.facts, block);
}

/* The old reduction variables as sums of the new ones, one for each reduction loop. Gives the variable of l.
 * Each reduction loop becomes an iteration variable of its own, so the old ones can be written as sums: with
 * k = k.0*8 + k.1, k.0 reduces and k.1, the loop that is factored, becomes spatial. */
static const ir_expr *factor_variables(const factoring *self, variables *vars)
{
    tec_context *cx = self->c->cx;
    const ir_block *block = self->site->block;
    const ir_expr *of_loop = NULL;

    for (int i = self->depth; i < self->site->n_loops; i++) {
        const ir_stmt *l = self->site->loop[i];

        if (!reduces(self, l))
            continue;
        const ir_expr *var = add_variable(self, vars, short_name(self, l->loop.var), l->loop.extent,
                                          l == self->loop ? IR_SPATIAL : IR_REDUCE_ITER, l->loop.var);
        base_map_put(cx, &vars->map.vars, l->loop.var, var);
        of_loop = l == self->loop ? var : of_loop;
    }
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_REDUCE_ITER)
            base_map_put(cx, &vars->map.vars, block->iters[i].var,
                         ir_apply(cx, &vars->map, self->site->stmt->block.bind[i]));
    return of_loop;
}

/* S.rf in place of S. Stores the identity of each component, then updates the partial results under the
 * condition that was the predicate's part over reduction loops. */
static const ir_stmt *partial_block(const factoring *self, const char *name)
{
    tec_context *cx = self->c->cx;
    const ir_combiner *combiner = self->update->update.combiner;
    int n = self->update->update.n + 1;
    variables v = spatial_variables(self, self->of_part);
    const ir_expr *var = factor_variables(self, &v), *const *index = partial_index(self, &v, var);
    const ir_stmt **store = base_array(cx, const ir_stmt *, combiner->n);
    const ir_stmt *body =
        ir_with_update(cx, self->site->block->body,
                       ir_update(cx, combiner, self->part, index, n, self->update->update.source));

    for (int i = 0; i < combiner->n; i++) {
        const ir_expr *from = combiner->identity[i];

        if (BASE_PLANT_ON(cx, rfactor_identity))
            from = ir_cast(cx, from->dtype, ir_int(cx, 1));
        store[i] = ir_store(cx, self->part[i], from, index, n);
    }
    if (self->inside)
        body = ir_if(cx, self->inside, body, NULL);
    const ir_block *block =
        make_block(self, &v, name, ir_apply_stmt(cx, &v.map, ir_seq(cx, store, combiner->n)),
                   ir_apply_stmt(cx, &v.map, body));
    return block ? ir_block_stmt(cx, block, v.bind, self->outside) : NULL;
}

/* ---- the result ---- */

/* Reduces over the one variable of the loop that was factored; its terms are the partial results, component
 * by component. */
static const ir_stmt *final_block(const factoring *self, const ir_expr *loop)
{
    tec_context *cx = self->c->cx;
    const ir_stmt *u = self->update;
    const ir_combiner *combiner = u->update.combiner;
    variables v = spatial_variables(self, false);
    const ir_expr *var = add_variable(self, &v, short_name(self, self->loop->loop.var),
                                      self->loop->loop.extent, IR_REDUCE_ITER, loop);
    const ir_expr *const *index = partial_index(self, &v, var),
                         **source = base_array(cx, const ir_expr *, combiner->n);

    for (int i = 0; i < combiner->n; i++)
        source[i] = ir_load(cx, self->part[i], index, u->update.n + 1);
    const ir_stmt *body = ir_update(cx, combiner, u->update.buffer, u->update.index, u->update.n, source);
    const ir_stmt *init = self->site->block->init;
    const ir_block *block =
        make_block(self, &v, self->site->block->name, init ? ir_apply_stmt(cx, &v.map, init) : NULL,
                   ir_apply_stmt(cx, &v.map, body));
    return block ? ir_block_stmt(cx, block, v.bind, self->outside) : NULL;
}

/* The loop over the partial results, around copies of the spatial loops inside the outermost reduction loop.
 * Built from the inside out. Each copied loop has a new variable, and the bodies made so far follow it. */
static const ir_stmt *final_nest(const factoring *self)
{
    tec_context *cx = self->c->cx;
    const ir_expr *var =
        ir_var(cx, sched_fresh_name(self->c, NULL, self->loop->loop.var->var.name), BASE_I64);
    const ir_stmt *stmt = final_block(self, var);

    for (int i = self->site->n_loops - 1; stmt && i >= self->depth; i--) {
        const ir_stmt *l = self->site->loop[i];

        if (reduces(self, l))
            continue;
        ir_stmt *copy = ir_stmt_copy(cx, l);
        copy->loop.var = ir_var(cx, sched_fresh_name(self->c, NULL, l->loop.var->var.name), BASE_I64);
        copy->loop.body = ir_substitute_stmt(cx, stmt, l->loop.var, copy->loop.var);
        stmt = copy;
    }
    return stmt ? ir_for(cx, var, ir_int(cx, 0), self->loop->loop.extent, IR_SERIAL, stmt) : NULL;
}

/* The result's nest goes behind the outermost reduction loop. Loops around that run at the same time must
 * still be independent: the partial results are a new buffer that they share. */
static const ir_program *factored(factoring *self, const sched_path *block, const char *name)
{
    tec_context *cx = self->c->cx;
    const ir_combiner *combiner = self->update->update.combiner;
    const ir_stmt *part, *final;
    sched_path top;

    self->part = base_array(cx, const ir_buffer *, combiner->n);
    for (int i = 0; i < combiner->n; i++)
        self->part[i] = partial_buffer(self, self->update->update.buffer[i]);
    part = partial_block(self, name);
    final = part ? final_nest(self) : NULL;
    const ir_stmt *root = final ? sched_rebuild(cx, block, block->n - 1, part) : NULL;
    if (!root || !sched_find_var(cx, root, self->site->loop[self->depth]->loop.var, &top))
        return NULL;
    root = sched_rebuild(cx, &top, top.n - 1, ir_seq2(cx, sched_end(&top), final));
    if (!sched_still_independent(self->c, &top, root))
        return NULL;
    const ir_program *after = sched_with_body(self->c, root);
    for (int i = 0; after && i < combiner->n; i++)
        after = sched_add_buffer(cx, after, self->part[i]);
    return after;
}

/* rfactor(l, axis): partial results in a buffer with dimension `axis` for l. If several blocks lie below the
 * loop, the one that reduces over it is meant. */
const ir_program *sched_do_rfactor(sched_call *call)
{
    sched_path at, block;

    if (!sched_need_loop(call, call->arg[0].name, &at))
        return NULL;
    tree_sites all = tree_all_sites(call->cx, call->tree->body),
               below = tree_all_sites(call->cx, sched_end(&at));
    const char *name = below.at[0].block->name;

    for (int i = 0; i < below.n; i++)
        if (tree_kind_for(call->cx, &below.at[i], sched_end(&at)->loop.var) == IR_REDUCE_ITER)
            name = below.at[i].block->name;
    factoring r = {.c = call, .site = tree_site_named(&all, name), .loop = sched_end(&at)};

    if (!reduces(&r, r.loop))
        return sched_refuse(call, "'%s' is not a reduction loop of '%s'", call->arg[0].name, name);
    if (!block_fits(&r) || !loops_fit(&r) || !steps_fit(&r) || !predicate_fits(&r) || !part_fits(&r, &all) ||
        !sched_find_block(call->cx, call->tree->body, name, &block))
        return NULL;
    if (call->arg[1].i < 0 || call->arg[1].i > r.update->update.n)
        return sched_refuse(call, "expected a dimension of the partial results from 0 to %d, found %lld",
                            r.update->update.n, (long long)call->arg[1].i);
    r.axis = (int)call->arg[1].i;
    base_push(call->cx, &call->results, sched_fresh_name(call, NULL, base_format(call->cx, "%s.rf", name)));
    return factored(&r, &block, call->results.at[0]);
}
