/* schedule/rolling.c -- rolling_buffer: a serial loop keeps the window of a stage that is computed in it.
 *
 *     for C.y in 0..8 {                                for P.y'2 in 0..2 { P[P.y'2 % 3] = ... }
 *       for P.y in 0..3 { P[C.y + P.y] = ... }         for C.y in 0..8 {
 *       C[C.y] = P[C.y] + P[C.y + 1] + P[C.y + 2]  =>    for P.y in 0..1 { P[(C.y + P.y + 2) % 3] = ... }
 *     }                                                  C[C.y] = P[C.y % 3] + P[(C.y + 1) % 3] + P[(C.y +
 *                                                          2) % 3]
 *                                                      }
 *
 * A window of w rows that moves by s: the rows that the first iteration shares with none before it, w - s,
 * are computed ahead of the loop, and each iteration computes its last s. Row r lies at r mod w. It is
 * overwritten by row r + w, which the first iteration computes that no longer reads r. What the loop carries
 * then keeps its order: iterations that exchange elements are not independent, and the steps that ask for
 * that refuse it.
 *
 * A worked example with its numbers: w = 3 rows, s = 1, so 2 rows are computed ahead.
 *
 *     ahead:  rows 0 and 1 into slots 0 and 1
 *     y = 0:  row 2 into slot 2;  C[0] reads rows 0 1 2 = slots 0 1 2
 *     y = 1:  row 3 into slot 0;  C[1] reads rows 1 2 3 = slots 1 2 0
 *     y = 2:  row 4 into slot 1;  C[2] reads rows 2 3 4 = slots 2 0 1
 *
 * Row 3 overwrites row 0 in the iteration that no longer reads row 0. In general row r is last read in
 * iteration floor(r / s), and row r + w is computed in the next one. If the predicate let an iteration skip
 * its rows (runs_always), the iterations after it would find older rows in their slots. If an input of P were
 * computed in the loop (inputs_before), the rows ahead would be computed from it too early.
 */
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

typedef struct {
    sched_call *c;
    const ir_buffer *b;
    sched_path at; /* to the loop */
    const ir_stmt *loop;
    tree_sites all;
    const tree_site *w; /* what writes the buffer */
    int fixed;          /* its loops, up to the one that carries */
    int dim;            /* which one the window moves in */
    int64_t step, window;
    const ir_stmt *rows; /* the writer's loop over the window */
} rolling;

/* ---- the window ---- */

/* The writer must be the only one: a second one would write rows that the window no longer holds. */
static bool find_writer(rolling *self)
{
    const ir_expr *var = self->loop->loop.var;

    for (int i = 0; i < self->all.n; i++) {
        const tree_site *w = &self->all.at[i];

        if (!tree_writes(w->block, self->b))
            continue;
        if (self->w)
            return sched_refuse(self->c, "'%s' and '%s' write '%s'", self->w->block->name, w->block->name,
                                self->b->name);
        self->w = w;
    }
    self->fixed = self->w ? tree_depth_under(self->w, var) : 0;
    if (!self->fixed)
        return sched_refuse(self->c, "'%s' is not computed inside loop '%s'", self->b->name, var->var.name);
    return true;
}

/* One dimension moves with the loop, by less than the window is wide. `step` is the coefficient of the loop's
 * variable in the first element of the box, `window` the extent of the box. With window <= step no row is
 * shared, and there is nothing to keep. */
static bool find_window(rolling *self)
{
    const ir_region *write = tree_access(self->w->block->writes, self->w->block->n_writes, self->b);
    ir_region box = tree_box(&self->c->s->view, self->w, write, self->fixed, true);
    const ir_facts *facts = tree_site_facts(&self->c->s->view, self->w, self->fixed);
    const ir_expr *var = self->loop->loop.var, *rest;
    int64_t step;

    self->dim = -1;
    for (int d = 0; d < self->b->n; d++) {
        if (!ir_linear(facts, box.min[d], &var, 1, &step, &rest) ||
            ir_uses_var(self->c->cx, box.extent[d], var))
            return sched_refuse(
                self->c, "dimension %d of '%s' does not advance by a constant in each iteration of '%s'", d,
                self->b->name, var->var.name);
        if (step != 0 && self->dim >= 0)
            return sched_refuse(self->c,
                                "dimensions %d and %d of '%s' both advance with '%s': expected one dimension",
                                self->dim, d, self->b->name, var->var.name);
        if (step != 0) {
            self->dim = d;
            self->step = step;
        }
    }
    if (self->dim < 0)
        return sched_refuse(self->c, "no dimension of '%s' advances with loop '%s'", self->b->name,
                            var->var.name);
    if (!ir_is_int(box.extent[self->dim], &self->window) || self->step < 0 || self->window <= self->step)
        return sched_refuse(self->c,
                            "an iteration of '%s' needs %s elements of '%s' and advances by %lld, so it "
                            "shares no element with the iteration before",
                            var->var.name, ir_expr_text(self->c->cx, box.extent[self->dim]), self->b->name,
                            (long long)self->step);
    return true;
}

/* The variable that indexes the moving dimension is the window's beginning plus a loop of its own. `users`
 * counts the loops that feed this variable, and then the other variables that the found loop feeds: exactly
 * one in total means that the loop stands for the rows, and for nothing else. */
static bool find_rows(rolling *self)
{
    const ir_region *write = tree_access(self->w->block->writes, self->w->block->n_writes, self->b);
    int *dim_of = base_array(self->c->cx, int, self->w->block->n_iters), users = 0;
    bool plain = tree_store_dims(&self->c->s->view, self->w->block, write, dim_of);

    for (int i = 0; plain && i < self->w->block->n_iters; i++)
        for (int k = self->fixed; dim_of[i] == self->dim && k < self->w->n_loops; k++)
            if (ir_uses_var(self->c->cx, self->w->stmt->block.bind[i], self->w->loop[k]->loop.var)) {
                self->rows = self->w->loop[k];
                users++;
            }
    for (int i = 0; users == 1 && i < self->w->block->n_iters; i++)
        users += dim_of[i] != self->dim &&
                 ir_uses_var(self->c->cx, self->w->stmt->block.bind[i], self->rows->loop.var);
    if (users != 1 || !ir_is_value(self->rows->loop.extent, self->window) ||
        self->rows->loop.how != IR_SERIAL)
        return sched_refuse(
            self->c,
            "dimension %d of '%s' is not one serial loop of '%s': roll the buffer before its loops change",
            self->dim, self->b->name, self->w->block->name);
    return true;
}

/* ---- checks ---- */

/* Where it holds in an iteration, it held in the one before: the end of a tile. */
static bool held_before(rolling *self, const ir_expr *condition)
{
    tec_context *cx = self->c->cx;
    const ir_expr *var = self->loop->loop.var;
    ir_facts *f = ir_facts_new(cx, tree_site_facts(&self->c->s->view, self->w, self->fixed));

    ir_facts_assume(f, condition);
    ir_facts_assume(f, ir_ge(cx, var, ir_int(cx, 1)));
    return ir_prove(f, ir_substitute(cx, condition, var, ir_sub(cx, var, ir_int(cx, 1))));
}

/* The loops of the writer hold nothing else. */
static bool stands_alone(rolling *self)
{
    for (int i = 0; i < self->all.n; i++)
        if (&self->all.at[i] != self->w && self->fixed < self->w->n_loops &&
            tree_depth_under(&self->all.at[i], self->w->loop[self->fixed]->loop.var))
            return sched_refuse(self->c, "loop '%s' of '%s' holds '%s' as well",
                                self->w->loop[self->fixed]->loop.var->var.name, self->w->block->name,
                                self->all.at[i].block->name);
    return true;
}

/* The rows that an iteration leaves out must have been computed by the ones before. A condition on the rows
 * themselves would leave out rows inside the window. */
static bool runs_always(rolling *self)
{
    base_vec all = {0};

    ir_conjuncts(self->c->cx, tree_loop_guards(&self->c->s->view, self->w), IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++)
        if (ir_uses_var(self->c->cx, all.at[i], self->rows->loop.var) ||
            (ir_uses_var(self->c->cx, all.at[i], self->loop->loop.var) && !held_before(self, all.at[i])))
            return sched_refuse(
                self->c,
                "'%s' does not run in all iterations of '%s' up to its last one: its predicate is '%s'",
                self->w->block->name, self->loop->loop.var->var.name, ir_expr_text(self->c->cx, all.at[i]));
    return true;
}

/* The rows ahead of the loop are computed where nothing in it has run. */
static bool inputs_before(rolling *self)
{
    for (int i = 0; i < self->all.n; i++)
        for (int j = 0; j < self->w->block->n_reads; j++)
            if (&self->all.at[i] != self->w && tree_depth_under(&self->all.at[i], self->loop->loop.var) &&
                tree_writes(self->all.at[i].block, self->w->block->reads[j].buffer))
                return sched_refuse(self->c, "'%s', which '%s' reads, is computed in '%s' too",
                                    self->w->block->reads[j].buffer->name, self->w->block->name,
                                    self->loop->loop.var->var.name);
    return true;
}

/* All that must hold before the rewrite. find_window and find_rows also fill in what the rewrite needs. */
static bool check(rolling *self)
{
    const ir_expr *var = self->loop->loop.var;
    const char *reason;

    if (self->loop->loop.how != IR_SERIAL)
        return sched_refuse(self->c,
                            "loop '%s' is %s; only a serial loop can keep elements for its next iteration",
                            var->var.name, ir_how_text(self->loop->loop.how));
    if (self->b->strides)
        return sched_refuse(self->c, "'%s' has strides already", self->b->name);
    if (!find_writer(self))
        return false;
    if ((reason = tree_not_idempotent(self->c->cx, self->w->block)))
        return sched_refuse(self->c, "'%s' cannot run ahead of the loop: %s", self->w->block->name, reason);
    if (!tree_private_to_iteration(&self->c->s->view, &self->all, self->b, var))
        return sched_refuse(
            self->c, "cannot prove that each iteration of '%s' computes all elements of '%s' that it reads",
            var->var.name, self->b->name);
    return find_window(self) && stands_alone(self) && find_rows(self) && runs_always(self) &&
           inputs_before(self);
}

/* ---- the rewrite ---- */

/* The nest of the writer with its loop over the window running over rows first .. first+rows-1. The loop is
 * rebuilt with a new extent; its variable is rebound to `first + variable` in the body. */
static const ir_stmt *with_rows(rolling *self, const ir_facts *facts, const ir_stmt *nest, int64_t first,
                                int64_t rows)
{
    tec_context *cx = self->c->cx;
    const ir_expr *old = self->rows->loop.var, *var = ir_var(cx, old->var.name, BASE_I64),
                  *extent = ir_int(cx, rows);
    ir_facts *in = ir_facts_new(cx, facts);
    sched_path at;

    if (!sched_find_var(cx, nest, old, &at))
        return NULL;
    tree_know_loop(in, var, extent, false);
    const ir_stmt *body =
        sched_rebind(in, sched_end(&at)->loop.body, old, ir_add(cx, var, ir_int(cx, first)), NULL);
    return sched_rebuild(cx, &at, at.n - 1, ir_for(cx, var, ir_int(cx, 0), extent, IR_SERIAL, body));
}

/* Whether every instance of the nest's block lies in the domain of the block, by what its own loops say. */
static bool stays_inside(rolling *self, const ir_stmt *nest)
{
    tree_sites all = tree_all_sites(self->c->cx, nest);
    const tree_site *site = &all.at[0];
    const ir_facts *facts = tree_site_facts(&self->c->s->view, site, site->n_loops);
    bool inside = true;

    for (int i = 0; i < site->block->n_iters && inside; i++) {
        const ir_expr *bind = site->stmt->block.bind[i];

        inside = ir_prove(facts, ir_ge(self->c->cx, bind, ir_int(self->c->cx, 0))) &&
                 ir_prove(facts, ir_lt(self->c->cx, bind, site->block->iters[i].extent));
    }
    return inside;
}

/* The rows that are computed ahead of the loop: what its first iteration would compute, without the last
 * `step`. A loop that may be empty has no first iteration: there the rows are guarded, unless they lie in the
 * domain anyway. */
static const ir_stmt *rows_ahead(rolling *self, const ir_stmt *nest)
{
    ir_facts *f = sched_facts_at(self->c->s, &self->at, self->at.n - 1);
    const ir_expr *zero = ir_int(self->c->cx, 0), *runs = ir_gt(self->c->cx, self->loop->loop.extent, zero);
    int64_t count = self->window - self->step - BASE_PLANT_ON(self->c->cx, rolling_ahead);
    const ir_stmt *rows =
        with_rows(self, f, sched_rebind(f, nest, self->loop->loop.var, zero, NULL), 0, count);

    if (rows && !ir_prove(f, runs) && !stays_inside(self, rows))
        rows = with_rows(self, f, sched_rebind(f, nest, self->loop->loop.var, zero, runs), 0, count);
    return rows ? sched_duplicate(self->c, rows) : NULL;
}

/* Puts the rows ahead in front of the loop, and the writer with its last `step` rows into the loop, in the
 * place of the old nest. The facts differ: ahead of the loop its variable is 0. */
static const ir_stmt *carry(rolling *self)
{
    tec_context *cx = self->c->cx;
    const ir_stmt *body = self->loop->loop.body;
    int child = sched_child_with(body, self->w->block->name);
    const ir_stmt *nest = body->kind == IR_SEQ ? body->seq.stmt[child] : body;
    const ir_stmt *ahead = rows_ahead(self, nest),
                  *rest = with_rows(self, sched_facts_at(self->c->s, &self->at, self->at.n), nest,
                                    self->window - self->step, self->step);

    if (!ahead || !rest)
        return NULL;
    base_push(cx, &self->c->results, tree_all_sites(cx, ahead).at[0].block->name);
    body = body->kind == IR_SEQ ? sched_with_child(cx, body, child, rest) : rest;
    return sched_rebuild(cx, &self->at, self->at.n - 1,
                         ir_seq2(cx, ahead, sched_with_child(cx, self->loop, 0, body)));
}

/* The buffer of one window, and the map of its elements. The new buffer is one window in the moving
 * dimension, and the map takes row self to self mod window. */
static const ir_buffer *ring(rolling *self, sched_arg *map)
{
    tec_context *cx = self->c->cx;
    const ir_expr **var = base_array(cx, const ir_expr *, self->b->n),
                  **index = base_array(cx, const ir_expr *, self->b->n),
                  **shape = base_copy(cx, self->b->shape, (size_t)self->b->n * sizeof *shape),
                  *window = ir_int(cx, self->window);
    ir_buffer *out = ir_buffer_copy(cx, self->b);

    for (int d = 0; d < self->b->n; d++) {
        var[d] = ir_var(cx, base_format(cx, "i%d", d), BASE_I64);
        index[d] = d == self->dim ? ir_floormod(cx, var[d], window) : var[d];
    }
    shape[self->dim] = window;
    out->shape = shape;
    *map = (sched_arg){
        .kind = SCHED_ARG_MAP, .vars = var, .n_vars = self->b->n, .exprs = index, .n = self->b->n};
    return out;
}

/* rolling_buffer(buffer, l): iterations of l keep what the next ones read of the buffer, which is as large as
 * the window. */
const ir_program *sched_do_rolling_buffer(sched_call *call)
{
    rolling r = {.c = call, .b = sched_own_buffer(call)};
    sched_arg map;

    if (!r.b || !sched_need_loop(call, call->arg[1].name, &r.at) || !sched_takes_loops(call, &r.at))
        return NULL;
    r.loop = sched_end(&r.at);
    r.all = tree_all_sites(call->cx, call->tree->body);
    if (!check(&r))
        return NULL;
    const ir_buffer *to = ring(&r, &map);
    const ir_stmt *root = sched_reindex(call, carry(&r), r.b, to, &map);
    if (!root)
        return NULL;
    ir_program after = *call->tree;
    after.body = root;
    return sched_swap_buffer(call->cx, &after, r.b, to);
}
