/* schedule/blockize.c -- all that runs below a loop becomes one instance of its block.
 *
 *     for yo { for k { for yi in 0..4 {             for yo { for k {
 *       block C(y = yo*4 + yi, k reduce = k) {  =>    block C(y = yo, k reduce = k) {
 *         init { C[y] = 0 }                             init { for yi in 0..4 { C[y*4 + yi] = 0 } }
 *         C[y] sum= A[y, k] } } } }                     for yi in 0..4 { C[y*4 + yi] sum= A[y*4 + yi,
 *                                                         k] } } } }
 *
 * Each binding is a multiple of how many values the inner loops give it, plus these values without gaps; the
 * iteration variable counts the multiples from now on, and keeps its kind. A variable that the inner loops
 * cover goes. If no reduce variable is left, nothing is carried from one instance to the next, and the init
 * stands in front of the body. Conditions on inner loops move inside. Where the values do not divide the
 * extent, the last instance does what of it lies within: the loops around may not reach it now, but those of
 * a later step may.
 *
 * A worked example: y runs to 10 in tiles of 4, and k to 12 in pieces of 3.
 *
 *     for yo in 0..3 { for ko in 0..4 { for yi in 0..4 { for ki in 0..3 {
 *       block C(y = yo*4 + yi, k reduce = ko*3 + ki) where yo*4 + yi < 10 { init { C[y] = 0 } ... } } } } }
 *
 *     blockize(yi):  block C(y = yo in 0..3, k reduce = ko in 0..4) {
 *                      init { for yi { if y*4 + yi < 10 { C[y*4 + yi] = 0 } } }
 *                      for yi { for ki { if y*4 + yi < 10 { C[y*4 + yi] sum= A[y*4 + yi, k*3 + ki] } } }
 *                    }
 *
 * The binding yo*4 + yi splits into the outer part yo*4 and the inner part yi, which takes 4 values without a
 * gap; the outer part is a multiple of 4, so the new variable counts yo*4 / 4 = yo, and its extent is
 * ceildiv(10, 4) = 3. The guard moves inside, into the updates and into the init. Without it in the init the
 * last instance would write C[10] and C[11]. If the inner part were yi*2, the values 0, 2, 4, 6 would have
 * gaps: one instance would skip the odd elements, and no box could say what it writes.
 */
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

typedef struct {
    sched_call *c;
    tec_context *cx;
    const ir_facts *f; /* around the outer loops and inside of the inner ones */
    const tree_site *site;
    int fixed;                    /* outer loops */
    const ir_expr **var, **fresh; /* of the inner loops, and in the new body */
    int *owner;                   /* the iteration variable that each inner loop feeds; -1: none yet */
    int n;
    ir_subst map;      /* iteration variables -> what they are in the new body */
    ir_facts *in_body; /* the ranges of the variables of the new body */
    ir_iter *iters;
    const ir_expr **bind;
    int n_iters;
    bool reduces; /* a reduce variable is left */
    const ir_expr *where, *inside, *inside_init;
} blocking;

/* ---- checks ---- */

/* The body of the new block runs its loops one after the other, in one thread. A parallel or vectorised loop
 * would lose its meaning there. */
static bool need_one_nest(sched_call *call, const ir_stmt *loop)
{
    const ir_stmt *stmt = loop;

    for (; stmt->kind == IR_FOR; stmt = stmt->loop.body)
        if (stmt->loop.how != IR_SERIAL && stmt->loop.how != IR_UNROLLED)
            return sched_refuse(call,
                                "loop '%s' is %s; one instance of a block runs its loops one after the other",
                                stmt->loop.var->var.name, ir_how_text(stmt->loop.how));
    if (stmt->kind != IR_BLOCK)
        return sched_refuse(call, "expected only loops around one block below '%s', found other statements",
                            loop->loop.var->var.name);
    return true;
}

/* Gives each inner loop a variable for the new body, with its range as a fact. Extents must not depend on
 * other loops: the inner values would then differ from one instance to the next. An extent such as `for j in
 * 0..i + 1` would be a different body for each i, and a block has one body. */
static bool read_loops(blocking *self)
{
    int n = self->site->n_loops - self->fixed;

    self->var = base_array(self->cx, const ir_expr *, n);
    self->fresh = base_array(self->cx, const ir_expr *, n);
    self->owner = base_array(self->cx, int, n);
    for (int i = self->fixed; i < self->site->n_loops; i++) {
        const ir_stmt *l = self->site->loop[i];

        for (int k = 0; k < i; k++)
            if (ir_uses_var(self->cx, l->loop.extent, self->site->loop[k]->loop.var))
                return sched_refuse(self->c, "the extent '%s' of '%s' depends on a loop",
                                    ir_expr_text(self->cx, l->loop.extent), l->loop.var->var.name);
        self->owner[self->n] = -1;
        self->var[self->n] = l->loop.var;
        self->fresh[self->n] = ir_var(self->cx, l->loop.var->var.name, BASE_I64);
        tree_know_loop(self->in_body, self->fresh[self->n++], l->loop.extent,
                       tree_kind_for(self->cx, self->site, l->loop.var) == IR_REDUCE_ITER);
    }
    return true;
}

/* ---- bindings ---- */

static const ir_expr *extent_of(const blocking *self, int loop)
{
    return self->site->loop[self->fixed + loop]->loop.extent;
}

/* How many values the inner loops with coefficients `by` run through; NULL: with gaps.
 *
 *     by = {4, 1}, extents {3, 4}:  1 -> 4 (by the loop of step 1) -> 12 (by the loop of step 4)
 *
 * Starting from one value, the loop whose coefficient equals the number of values so far extends them without
 * a gap, until no loop is left. Loops of one iteration add nothing and are left out. */
static const ir_expr *width(blocking *self, const int64_t *by)
{
    const ir_expr *values = ir_int(self->cx, 1);
    int left = 0, found = 1;

    for (int j = 0; j < self->n; j++)
        left += by[j] != 0 && !ir_is_value(extent_of(self, j), 1);
    for (; left > 0 && found; left -= found)
        for (int j = found = 0; j < self->n && !found; j++)
            if (by[j] && !ir_is_value(extent_of(self, j), 1) &&
                ir_prove_equal(self->f, values, ir_int(self->cx, by[j]))) {
                values = ir_simplify(self->f, ir_mul(self->cx, values, extent_of(self, j)));
                found = 1;
            }
    return left > 0 ? NULL : values;
}

/* Makes each inner loop the property of one axis. An inner loop in two bindings, such as y = i and x = i,
 * runs along a diagonal: the points that one instance does are no box of the axes. */
static bool own_loops(blocking *self, int iter, const int64_t *by)
{
    for (int j = 0; j < self->n; j++) {
        if (!by[j])
            continue;
        if (self->owner[j] >= 0)
            return sched_refuse(self->c, "loop '%s' takes part in '%s' and in '%s'", self->var[j]->var.name,
                                self->site->block->iters[self->owner[j]].var->var.name,
                                self->site->block->iters[iter].var->var.name);
        self->owner[j] = iter;
    }
    return true;
}

static void keep_iter(blocking *self, const ir_iter *from, const ir_expr *extent, const ir_expr *bind)
{
    self->iters[self->n_iters] = (ir_iter){
        .var = ir_var(self->cx, from->var->var.name, BASE_I64), .extent = extent, .kind = from->kind};
    tree_know_loop(self->in_body, self->iters[self->n_iters].var, extent, from->kind == IR_REDUCE_ITER);
    self->bind[self->n_iters++] = bind;
    self->reduces = self->reduces || from->kind == IR_REDUCE_ITER;
}

/* The outer part of a binding: the binding with the inner loops at 0. `simple` is that part too, from
 * ir_linear, and may lack a loop that the reduction needs to be bound to (sched_simplify_index). */
static const ir_expr *outer_part(blocking *self, const ir_expr *bind, const ir_expr *simple)
{
    const ir_expr *outer = bind, *zero = ir_int(self->cx, 0);

    for (int j = 0; j < self->n; j++)
        outer = ir_substitute(self->cx, outer, self->var[j], zero);
    return sched_simplify_index(self->f, outer) == outer ? outer : simple;
}

/* The binding of an iteration variable as multiple * width + inner. Three cases, in this order. The inner
 * loops cover the whole axis: the axis goes, and its variable becomes the inner sum. Otherwise the outer part
 * must be a multiple of the number of inner values: the axis stays, and counts the multiples. Otherwise the
 * step is refused, since an instance would straddle two multiples. The new block runs even if its inner loops
 * do not, so its own domain is proven or guarded by what holds around it (`around`) alone. */
static bool divide(blocking *self, int index)
{
    tec_context *cx = self->cx;
    const ir_iter *iter = &self->site->block->iters[index];
    const ir_expr *bind = self->site->stmt->block.bind[index], *outer, *inner = ir_int(cx, 0), *values;
    int64_t *by = base_array(cx, int64_t, self->n);
    const ir_facts *around = tree_site_facts(&self->c->s->view, self->site, self->fixed);

    if (!ir_linear(self->f, bind, self->var, self->n, by, &outer) || !(values = width(self, by)))
        return sched_refuse(self->c, "'%s = %s' does not run without gaps below '%s'", iter->var->var.name,
                            ir_expr_text(cx, bind), self->var[0]->var.name);
    if (!own_loops(self, index, by))
        return false;
    outer = outer_part(self, bind, outer);
    for (int j = 0; j < self->n; j++)
        inner = ir_add(cx, inner, ir_mul(cx, ir_int(cx, by[j]), self->fresh[j]));
    if (ir_is_value(outer, 0) && ir_prove_equal(self->f, values, iter->extent)) {
        base_map_put(cx, &self->map.vars, iter->var, inner);
        return true;
    }
    const ir_expr *times = ir_is_value(values, 1)
                               ? outer
                               : sched_simplify_index(self->f, ir_simplify(self->c->s->view.facts,
                                                                           ir_floordiv(cx, outer, values)));
    if (!ir_prove_equal(self->f, ir_mul(cx, times, values), outer))
        return sched_refuse(
            self->c, "'%s' is not proven to be a multiple of %s, which '%s' advances by below '%s'",
            ir_expr_text(cx, outer), ir_expr_text(cx, values), iter->var->var.name, self->var[0]->var.name);
    if (!ir_prove_le(around, ir_int(cx, 1), values))
        return sched_refuse(self->c, "it is not proven that the loops of '%s' run at all below '%s'",
                            iter->var->var.name, self->var[0]->var.name);
    keep_iter(self, iter, ir_simplify(self->c->s->view.facts, ir_ceildiv(cx, iter->extent, values)), times);
    self->where = sched_domain_guard(around, self->where, times, self->iters[self->n_iters - 1].extent);
    base_map_put(cx, &self->map.vars, iter->var,
                 ir_add(cx, ir_mul(cx, self->iters[self->n_iters - 1].var, values), inner));
    return true;
}

/* A loop of more than one iteration that feeds no axis would run the same instances again; the new block
 * could not say how often. */
static bool divide_all(blocking *self)
{
    int n = self->site->block->n_iters;

    self->iters = base_array(self->cx, ir_iter, n);
    self->bind = base_array(self->cx, const ir_expr *, n);
    for (int i = 0; i < n; i++)
        if (!divide(self, i))
            return false;
    for (int j = 0; j < self->n; j++)
        if (self->owner[j] < 0 && !ir_is_value(extent_of(self, j), 1))
            return sched_refuse(self->c, "loop '%s' repeats the instances of '%s'", self->var[j]->var.name,
                                self->site->block->name);
    return true;
}

/* ---- conditions ---- */

/* binding < expr as variable < expr; -1: no binding stands there. */
static int bound_iter(const blocking *self, const ir_expr *expr)
{
    for (int i = 0; i < self->site->block->n_iters; i++)
        if (ir_prove_equal(self->f, expr, self->site->stmt->block.bind[i]))
            return i;
    return -1;
}

static bool mentions_loops(const blocking *self, const ir_expr *expr, int from)
{
    for (int i = from; i < self->site->n_loops; i++)
        if (ir_uses_var(self->cx, expr, self->site->loop[i]->loop.var))
            return true;
    return false;
}

/* iteration variable < end, inside. The init runs over the spatial axes alone, so a condition on a reduction
 * axis must not guard it. */
static void end_inside(blocking *self, int iter, const ir_expr *end)
{
    const ir_iter *of = &self->site->block->iters[iter];
    const ir_expr *here = ir_lt(self->cx, ir_apply(self->cx, &self->map, of->var), end);

    self->inside = ir_all(self->cx, self->inside, here);
    if (of->kind != IR_REDUCE_ITER)
        self->inside_init = ir_all(self->cx, self->inside_init, here);
}

/* A condition about outer loops alone stays in the predicate. A condition about inner loops can only move
 * inside if it is an end of one axis, `binding < expr` with expr constant over the loops: then it says the
 * same over the new variables. */
static bool place_condition(blocking *self, const ir_expr *expr)
{
    int iter;

    if (!mentions_loops(self, expr, self->fixed)) {
        self->where = ir_all(self->cx, self->where, expr);
        return true;
    }
    if (expr->op != IR_LT || mentions_loops(self, expr->arg[1], 0) ||
        (iter = bound_iter(self, expr->arg[0])) < 0)
        return sched_refuse(self->c, "the predicate '%s' is about loops inside and outside of '%s'",
                            ir_expr_text(self->cx, expr), self->var[0]->var.name);
    end_inside(self, iter, expr->arg[1]);
    return true;
}

/* Another block writes what this one does, as after a cut: neither gets other loops than those it has
 * (sched_move_allowed). */
static bool stays(const blocking *self)
{
    const ir_block *block = self->site->block;
    tree_sites all = tree_all_sites(self->cx, self->c->tree->body);
    int step = tree_step_depth(&self->c->s->view, self->site);
    bool shared = false;

    for (int i = 0; i < all.n; i++)
        for (int j = 0; all.at[i].block != block && tree_common_loops(&all.at[i], self->site) >= step &&
                        j < block->n_writes;
             j++)
            shared = shared || tree_writes(all.at[i].block, block->writes[j].buffer);
    return shared;
}

/* No instance does what lies outside of the domain, whatever loops it will get. Rounding the extent up made
 * room for instances that did not exist. Today no loop may reach them, but a later step, such as a compute_at
 * over another region, may. */
static void keep_in_domain(blocking *self)
{
    for (int i = 0; i < self->site->block->n_iters && !stays(self); i++) {
        const ir_iter *iter = &self->site->block->iters[i];
        const ir_expr *known = iter->kind == IR_REDUCE_ITER ? self->inside : self->inside_init;
        ir_facts *facts = ir_facts_new(self->cx, self->in_body);

        if (known)
            ir_facts_assume(facts, known);
        if (!ir_prove_lt(facts, ir_apply(self->cx, &self->map, iter->var), iter->extent))
            end_inside(self, i, iter->extent);
    }
}

/* keep_in_domain comes last, since it leaves out the ends that the predicate's conjuncts say already. */
static bool place_conditions(blocking *self)
{
    base_vec all = {0};

    if (self->site->stmt->block.where)
        ir_conjuncts(self->cx, self->site->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++)
        if (!place_condition(self, all.at[i]))
            return false;
    keep_in_domain(self);
    return true;
}

/* ---- the block ---- */

/* The inner loops around stmt; for an init those that its elements depend on. */
static const ir_stmt *in_loops(blocking *self, const ir_stmt *stmt, const ir_expr *condition, bool init)
{
    stmt = ir_apply_stmt(self->cx, &self->map, stmt);
    if (stmt && condition)
        stmt = ir_if(self->cx, condition, stmt, NULL);
    for (int j = self->n - 1; stmt && j >= 0; j--)
        if (!init || (self->owner[j] >= 0 && self->site->block->iters[self->owner[j]].kind != IR_REDUCE_ITER))
            stmt = ir_for(self->cx, self->fresh[j], ir_int(self->cx, 0), extent_of(self, j),
                          self->site->loop[self->fixed + j]->loop.how, stmt);
    return stmt;
}

/* Without a reduction variable left, each instance does the whole reduction of its elements, so the init
 * becomes the first half of the body. Its loops are renamed: they would have the names of the body's
 * loops. */
static const ir_stmt *new_block(blocking *self)
{
    ir_block *block = ir_block_copy(self->cx, self->site->block);
    const ir_stmt *init = block->init ? in_loops(self, block->init, self->inside_init, true) : NULL;

    block->body = in_loops(self, block->body, self->inside, false);
    block->init = self->reduces ? init : NULL;
    if (init && !self->reduces && block->body)
        block->body = ir_seq2(self->cx, ir_rename(self->cx, init), block->body);
    block->iters = self->iters;
    block->n_iters = self->n_iters;
    return block->body ? ir_block_stmt(self->cx, sched_refresh(self->c->s->view.facts, block), self->bind,
                                       self->where)
                       : NULL;
}

/* The checks come before any rewriting. `blocking.f` holds inside all loops of the site, where the bindings
 * are; what is asked of the loops around alone uses facts of its own. For i*8 + j with i outside and j
 * inside of the loop given, divide_all finds the quotient i, which the new block iterates over, and the
 * remainder j, over which its body loops:
 *
 *     for i in 0..4 { for j in 0..8 { block C(y = i*8 + j) { .. } } }
 *     =>  for i in 0..4 { block C_o(yo = i) { for j in 0..8 { block C(y = yo*8 + j) { .. } } } }
 */
const ir_program *sched_make_block(sched_call *call, const sched_path *at, const char **name)
{
    tree_sites all = tree_all_sites(call->cx, call->tree->body), below;
    blocking b = {.c = call, .cx = call->cx};

    if (!need_one_nest(call, sched_end(at)))
        return NULL;
    below = tree_all_sites(call->cx, sched_end(at));
    *name = below.at[0].block->name;
    b.site = tree_site_named(&all, *name);
    b.fixed = tree_depth_under(b.site, sched_end(at)->loop.var) - 1;
    b.f = tree_site_facts(&call->s->view, b.site, b.site->n_loops);
    b.in_body = ir_facts_new(call->cx, call->s->view.facts);
    if (tree_has_effect(call->cx, b.site->block->body))
        return sched_refuse(call, "'%s' calls a function with an effect", *name);
    if (!read_loops(&b) || !divide_all(&b) ||
        (!BASE_PLANT_ON(call->cx, blockize_where) && !place_conditions(&b)))
        return NULL;
    /* Lanes around combine the results of a single update, which may be hidden in the new block now. */
    sched_path around = *at;
    around.n--;
    const ir_stmt *block = new_block(&b),
                  *root = block ? sched_rebuild(call->cx, at, at->n - 1, block) : NULL;
    return root && sched_still_independent(call, &around, root) ? sched_with_body(call, root) : NULL;
}

/* blockize(l): the block of all that runs below l. */
const ir_program *sched_do_blockize(sched_call *call)
{
    sched_path at;
    const char *name;

    if (!sched_need_loop(call, call->arg[0].name, &at))
        return NULL;
    const ir_program *after = sched_make_block(call, &at, &name);
    if (after)
        base_push(call->cx, &call->results, name);
    return after;
}
