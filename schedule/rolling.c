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
static bool find_writer(rolling *r)
{
    const ir_expr *var = r->loop->loop.var;

    for (int i = 0; i < r->all.n; i++) {
        const tree_site *w = &r->all.at[i];

        if (!tree_writes(w->block, r->b))
            continue;
        if (r->w)
            return sched_refuse(r->c, "'%s' and '%s' write '%s'", r->w->block->name, w->block->name,
                                r->b->name);
        r->w = w;
    }
    r->fixed = r->w ? tree_depth_under(r->w, var) : 0;
    if (!r->fixed)
        return sched_refuse(r->c, "'%s' is not computed in '%s'", r->b->name, var->var.name);
    return true;
}

/* One dimension moves with the loop, by less than the window is wide. `step` is the coefficient of the loop's
 * variable in the first element of the box, `window` the extent of the box. With window <= step no row is
 * shared, and there is nothing to keep. */
static bool find_window(rolling *r)
{
    const ir_region *write = tree_access(r->w->block->writes, r->w->block->n_writes, r->b);
    ir_region box = tree_box(&r->c->s->view, r->w, write, r->fixed, true);
    const ir_facts *f = tree_site_facts(&r->c->s->view, r->w, r->fixed);
    const ir_expr *var = r->loop->loop.var, *rest;
    int64_t step;

    r->dim = -1;
    for (int d = 0; d < r->b->n; d++) {
        if (!ir_linear(f, box.min[d], &var, 1, &step, &rest) || ir_uses_var(r->c->cx, box.extent[d], var))
            return sched_refuse(r->c, "dimension %d of '%s' does not move evenly with '%s'", d, r->b->name,
                                var->var.name);
        if (step != 0 && r->dim >= 0)
            return sched_refuse(r->c, "dimensions %d and %d of '%s' move with '%s'", r->dim, d, r->b->name,
                                var->var.name);
        if (step != 0) {
            r->dim = d;
            r->step = step;
        }
    }
    if (r->dim < 0)
        return sched_refuse(r->c, "no dimension of '%s' moves with '%s'", r->b->name, var->var.name);
    if (!ir_is_int(box.extent[r->dim], &r->window) || r->step < 0 || r->window <= r->step)
        return sched_refuse(r->c,
                            "an iteration of '%s' needs %s elements of '%s' and moves by %lld: it shares "
                            "none with the one before",
                            var->var.name, ir_expr_text(r->c->cx, box.extent[r->dim]), r->b->name,
                            (long long)r->step);
    return true;
}

/* The variable that indexes the moving dimension is the window's beginning plus a loop of its own. `users`
 * counts the loops that feed this variable, and then the other variables that the found loop feeds: exactly
 * one in total means that the loop stands for the rows, and for nothing else. */
static bool find_rows(rolling *r)
{
    const ir_region *write = tree_access(r->w->block->writes, r->w->block->n_writes, r->b);
    int *dim_of = base_array(r->c->cx, int, r->w->block->n_iters), users = 0;
    bool plain = tree_plain_store(&r->c->s->view, r->w->block, write, dim_of);

    for (int i = 0; plain && i < r->w->block->n_iters; i++)
        for (int k = r->fixed; dim_of[i] == r->dim && k < r->w->n_loops; k++)
            if (ir_uses_var(r->c->cx, r->w->stmt->block.bind[i], r->w->loop[k]->loop.var)) {
                r->rows = r->w->loop[k];
                users++;
            }
    for (int i = 0; users == 1 && i < r->w->block->n_iters; i++)
        users += dim_of[i] != r->dim && ir_uses_var(r->c->cx, r->w->stmt->block.bind[i], r->rows->loop.var);
    if (users != 1 || !ir_is_value(r->rows->loop.extent, r->window) || r->rows->loop.how != IR_SERIAL)
        return sched_refuse(
            r->c,
            "dimension %d of '%s' is not one serial loop of '%s': roll the buffer before its loops change",
            r->dim, r->b->name, r->w->block->name);
    return true;
}

/* ---- checks ---- */

/* Where it holds in an iteration, it held in the one before: the end of a tile. */
static bool held_before(rolling *r, const ir_expr *condition)
{
    tec_context *cx = r->c->cx;
    const ir_expr *var = r->loop->loop.var;
    ir_facts *f = ir_facts_new(cx, tree_site_facts(&r->c->s->view, r->w, r->fixed));

    ir_facts_assume(f, condition);
    ir_facts_assume(f, ir_ge(cx, var, ir_int(cx, 1)));
    return ir_prove(f, ir_substitute(cx, condition, var, ir_sub(cx, var, ir_int(cx, 1))));
}

/* The loops of the writer hold nothing else. */
static bool stands_alone(rolling *r)
{
    for (int i = 0; i < r->all.n; i++)
        if (&r->all.at[i] != r->w && r->fixed < r->w->n_loops &&
            tree_depth_under(&r->all.at[i], r->w->loop[r->fixed]->loop.var))
            return sched_refuse(r->c, "loop '%s' of '%s' holds '%s' as well",
                                r->w->loop[r->fixed]->loop.var->var.name, r->w->block->name,
                                r->all.at[i].block->name);
    return true;
}

/* The rows that an iteration leaves out must have been computed by the ones before. A condition on the rows
 * themselves would leave out rows inside the window. */
static bool runs_always(rolling *r)
{
    base_vec all = {0};

    ir_conjuncts(r->c->cx, tree_loop_guards(&r->c->s->view, r->w), IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++)
        if (ir_uses_var(r->c->cx, all.at[i], r->rows->loop.var) ||
            (ir_uses_var(r->c->cx, all.at[i], r->loop->loop.var) && !held_before(r, all.at[i])))
            return sched_refuse(
                r->c, "'%s' does not run in all iterations of '%s' up to its last one: its predicate is '%s'",
                r->w->block->name, r->loop->loop.var->var.name, ir_expr_text(r->c->cx, all.at[i]));
    return true;
}

/* The rows ahead of the loop are computed where nothing in it has run. */
static bool inputs_before(rolling *r)
{
    for (int i = 0; i < r->all.n; i++)
        for (int j = 0; j < r->w->block->n_reads; j++)
            if (&r->all.at[i] != r->w && tree_depth_under(&r->all.at[i], r->loop->loop.var) &&
                tree_writes(r->all.at[i].block, r->w->block->reads[j].buffer))
                return sched_refuse(r->c, "'%s', which '%s' reads, is computed in '%s' too",
                                    r->w->block->reads[j].buffer->name, r->w->block->name,
                                    r->loop->loop.var->var.name);
    return true;
}

/* All that must hold before the rewrite. find_window and find_rows also fill in what the rewrite needs. */
static bool check(rolling *r)
{
    const ir_expr *var = r->loop->loop.var;
    const char *reason;

    if (r->loop->loop.how != IR_SERIAL)
        return sched_refuse(r->c, "loop '%s' is %s; only a serial loop carries a window", var->var.name,
                            ir_how_text(r->loop->loop.how));
    if (r->b->strides)
        return sched_refuse(r->c, "'%s' has strides already", r->b->name);
    if (!find_writer(r))
        return false;
    if ((reason = tree_not_idempotent(r->c->cx, r->w->block)))
        return sched_refuse(r->c, "'%s' cannot run ahead of the loop: %s", r->w->block->name, reason);
    if (!tree_private(&r->c->s->view, &r->all, r->b, var))
        return sched_refuse(r->c,
                            "it is not proven that each iteration of '%s' computes all of '%s' that it reads",
                            var->var.name, r->b->name);
    return find_window(r) && stands_alone(r) && find_rows(r) && runs_always(r) && inputs_before(r);
}

/* ---- the rewrite ---- */

/* The nest of the writer with its loop over the window running over rows first .. first+n-1. The loop is
 * rebuilt with a new extent; its variable is rebound to `first + variable` in the body. */
static const ir_stmt *with_rows(rolling *r, const ir_facts *f, const ir_stmt *nest, int64_t first, int64_t n)
{
    tec_context *cx = r->c->cx;
    const ir_expr *old = r->rows->loop.var, *var = ir_var(cx, old->var.name, BASE_I64),
                  *extent = ir_int(cx, n);
    ir_facts *in = ir_facts_new(cx, f);
    sched_path at;

    if (!sched_find_var(cx, nest, old, &at))
        return NULL;
    tree_know_loop(in, var, extent, false);
    const ir_stmt *body =
        sched_rebind(in, sched_end(&at)->loop.body, old, ir_add(cx, var, ir_int(cx, first)), NULL);
    return sched_rebuild(cx, &at, at.n - 1, ir_for(cx, var, ir_int(cx, 0), extent, IR_SERIAL, body));
}

/* The rows that are computed ahead of the loop: what its first iteration would compute, without the last
 * `step`. */
static const ir_stmt *rows_ahead(rolling *r, const ir_stmt *nest)
{
    ir_facts *f = sched_facts_at(r->c->s, &r->at, r->at.n - 1);

    nest = sched_rebind(f, nest, r->loop->loop.var, ir_int(r->c->cx, 0), NULL);
    return sched_duplicate(
        r->c, with_rows(r, f, nest, 0, r->window - r->step - BASE_PLANT_ON(r->c->cx, rolling_ahead)));
}

/* Puts the rows ahead in front of the loop, and the writer with its last `step` rows into the loop, in the
 * place of the old nest. The facts differ: ahead of the loop its variable is 0. */
static const ir_stmt *carry(rolling *r)
{
    tec_context *cx = r->c->cx;
    const ir_stmt *body = r->loop->loop.body;
    int child = sched_child_with(body, r->w->block->name);
    const ir_stmt *nest = body->kind == IR_SEQ ? body->seq.stmt[child] : body;
    const ir_stmt *ahead = rows_ahead(r, nest), *rest = with_rows(r, sched_facts_at(r->c->s, &r->at, r->at.n),
                                                                  nest, r->window - r->step, r->step);

    if (!ahead || !rest)
        return NULL;
    base_push(cx, &r->c->results, tree_all_sites(cx, ahead).at[0].block->name);
    body = body->kind == IR_SEQ ? sched_with_child(cx, body, child, rest) : rest;
    return sched_rebuild(cx, &r->at, r->at.n - 1, ir_seq2(cx, ahead, sched_with_child(cx, r->loop, 0, body)));
}

/* The buffer of one window, and the map of its elements. The new buffer is one window in the moving
 * dimension, and the map takes row r to r mod window. */
static const ir_buffer *ring(rolling *r, sched_arg *map)
{
    tec_context *cx = r->c->cx;
    const ir_expr **var = base_array(cx, const ir_expr *, r->b->n),
                  **index = base_array(cx, const ir_expr *, r->b->n),
                  **shape = base_copy(cx, r->b->shape, (size_t)r->b->n * sizeof *shape),
                  *window = ir_int(cx, r->window);
    ir_buffer *out = ir_buffer_copy(cx, r->b);

    for (int d = 0; d < r->b->n; d++) {
        var[d] = ir_var(cx, base_format(cx, "i%d", d), BASE_I64);
        index[d] = d == r->dim ? ir_floormod(cx, var[d], window) : var[d];
    }
    shape[r->dim] = window;
    out->shape = shape;
    *map = (sched_arg){.kind = SCHED_ARG_MAP, .vars = var, .n_vars = r->b->n, .exprs = index, .n = r->b->n};
    return out;
}

/* rolling_buffer(buffer, l): iterations of l keep what the next ones read of the buffer, which is as large as
 * the window. */
const ir_program *sched_do_rolling_buffer(sched_call *c)
{
    rolling r = {.c = c, .b = sched_own_buffer(c)};
    sched_arg map;

    if (!r.b || !sched_need_loop(c, c->arg[1].name, &r.at) || !sched_takes_loops(c, &r.at))
        return NULL;
    r.loop = sched_end(&r.at);
    r.all = tree_all_sites(c->cx, c->tree->body);
    if (!check(&r))
        return NULL;
    const ir_buffer *to = ring(&r, &map);
    const ir_stmt *root = sched_reindex(c, carry(&r), r.b, to, &map);
    if (!root)
        return NULL;
    ir_program after = *c->tree;
    after.body = root;
    return sched_swap_buffer(c->cx, &after, r.b, to);
}
