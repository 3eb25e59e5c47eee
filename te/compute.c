/* te/compute.c -- compute stages: their checks, and reductions below the root of a body taken out into stages
 * of their own.
 *
 *     S[i: n] = exp(A[i]) / sum[j: n](exp(A[j]))
 *     =>  S.r[] = sum[j: n](exp(A[j]));   S[i: n] = exp(A[i]) / S.r[]
 *
 * A loop tree has one block per stage and a block reduces as a whole or not at all, so a sum inside of an
 * expression needs a block of its own.
 */
#include "te/stage.h"

#include "ir/text.h"
#include "ir/walk.h"

/* Takes the reductions that stand below the root of a body out into stages of their own. */
typedef struct {
    ir_rewrite rw;
    te_def *def;
    te_scan *scan;
    const char *name;
    base_vec done;   /* reductions taken out, */
    base_vec stages; /* and the first tensor of each one's stage, */
    base_vec axes;   /* and the axes that it is read at (base_vec *) */
} extraction;

static te_tensor *reduction_stage(extraction *self, const ir_expr *expr, base_vec *outer);

/* The element of the stage's result that belongs to this point: the stage runs over exactly these axes. */
static const ir_expr *read_at(tec_context *cx, te_tensor *tensor, const base_vec *axes)
{
    return ir_load(cx, tensor->buffer, (const ir_expr *const *)axes->at, axes->n);
}

/* Component `which` of the reduction that expr is a component of. */
static const ir_expr *component(tec_context *cx, const ir_expr *expr, int which)
{
    return expr->reduce.which == which
               ? expr
               : ir_reduce(cx, expr->reduce.combiner, expr->reduce.source, expr->reduce.axis,
                           expr->reduce.extent, expr->reduce.n_axes, expr->reduce.condition, which);
}

/* Whether both give the same value wherever both may stand, as components of one reduction. The axes that a
 * reduction binds are compared by their places, not by their names: the two sums in
 *
 *     S[i] = sum[j: n](A[i, j]) + sum[k: n](A[i, k])
 *
 * are one once j is taken for k, and share a stage. The axis i is free in both and must be the same. */
static bool same_reduction(tec_context *cx, const ir_expr *left, const ir_expr *right)
{
    return left->reduce.combiner->n == right->reduce.combiner->n &&
           ir_same(left, component(cx, right, left->reduce.which));
}

/* A reduction inside a body becomes a read of a new stage; the same reduction twice becomes one stage. */
static const ir_expr *take_out(ir_rewrite *rw, const ir_expr *expr)
{
    extraction *x = (extraction *)rw;

    if (expr->op != IR_REDUCE)
        return ir_rewrite_children(rw, expr);
    for (int i = 0; i < x->done.n; i++)
        if (same_reduction(rw->cx, x->done.at[i], expr)) {
            te_tensor *first = x->stages.at[i];
            return read_at(rw->cx, first->stage->output[expr->reduce.which], x->axes.at[i]);
        }
    base_vec *outer = base_new(rw->cx, base_vec);
    te_tensor *tensor = reduction_stage(x, expr, outer);

    if (!tensor)
        return NULL;
    base_push(rw->cx, &x->done, expr);
    base_push(rw->cx, &x->stages, tensor->stage->output[0]);
    base_push(rw->cx, &x->axes, outer);
    return read_at(rw->cx, tensor, outer);
}

/* The axes that a reduction depends on, in order of first use; the time of the scan first. True if that is
 * among them. In S[i, j] = B[j] / sum[k](A[i, k]) that is i alone: the sum is computed n times, not n * m
 * times. Its own axes are bound by it and so are no free variables. */
static bool outer_axes(const extraction *self, const ir_expr *reduction, base_vec *out)
{
    const ir_expr *time = self->scan ? self->scan->time : NULL;
    bool timed = time && ir_uses_var(self->rw.cx, reduction, time);
    base_vec vars = {0};

    if (timed)
        base_push(self->rw.cx, out, time);
    ir_free_vars(self->rw.cx, reduction, &vars);
    for (int i = 0; i < vars.n; i++)
        if (te_axis_extent(vars.at[i]) && vars.at[i] != time)
            base_push(self->rw.cx, out, vars.at[i]);
    return timed;
}

/* NAME.r, NAME.r2, ...: taken names include the user's own. */
static const char *fresh_name(te_def *def, const char *name)
{
    const char *s = base_format(def->cx, "%s.r", name);

    for (int i = 2; base_dict_has(&def->names, s); i++)
        s = base_format(def->cx, "%s.r%d", name, i);
    return s;
}

/* The new stage runs over those axes that the reduction mentions. In a scan, time is one of them if any
 * operand depends on it. In
 *
 *     update h[t, j: 8] = tanh(sum[k: 8](W[j, k] * h[t - 1, k]) + X[t, j])
 *
 * the sum becomes a step h.r[t, j] before h. Without t, as sum[k](W[j, k]), it is an ordinary stage in front
 * of the scan and computed once. Other axes are made anew, because an axis belongs to one stage; time is that
 * of all steps. */
static te_tensor *reduction_stage(extraction *self, const ir_expr *expr, base_vec *outer)
{
    te_def *def = self->def;
    int n = expr->reduce.combiner->n;
    ir_subst to_own = {0};
    base_vec own = {0};
    const ir_expr **body = base_array(def->cx, const ir_expr *, n);
    te_tensor **out = base_array(def->cx, te_tensor *, n);

    bool timed = outer_axes(self, expr, outer);
    for (int i = 0; i < outer->n; i++) {
        const ir_expr *a = outer->at[i],
                      *mine = timed && i == 0 ? a : te_axis(def->cx, a->var.name, te_axis_extent(a));

        base_push(def->cx, &own, mine);
        base_map_put(def->cx, &to_own.vars, a, mine);
    }
    for (int i = 0; i < n; i++) {
        body[i] = ir_reduce(def->cx, expr->reduce.combiner, expr->reduce.source, expr->reduce.axis,
                            expr->reduce.extent, expr->reduce.n_axes, expr->reduce.condition, i);
        body[i] = ir_apply(def->cx, &to_own, body[i]);
    }
    const char *name = fresh_name(def, self->name);
    const ir_expr *const *axis = (const ir_expr *const *)own.at;
    bool made = timed ? te_scan_step_n(self->scan, name, axis, own.n, body, n, out)
                      : te_compute_n(def, name, axis, own.n, body, n, out);
    return made ? out[expr->reduce.which] : NULL;
}

/* The same reduction with what it reduces free of reductions. Unchanged sources give the same node, so that a
 * definition that needs nothing taken out costs nothing. */
static const ir_expr *clean_sources(extraction *self, const ir_expr *expr)
{
    int n = expr->reduce.combiner->n;
    const ir_expr **source = base_array(self->rw.cx, const ir_expr *, n);
    const ir_expr *condition =
        expr->reduce.condition ? ir_rewrite_expr(&self->rw, expr->reduce.condition) : NULL;
    bool same = condition == expr->reduce.condition;

    for (int i = 0; i < n; i++) {
        source[i] = ir_rewrite_expr(&self->rw, expr->reduce.source[i]);
        same = same && source[i] == expr->reduce.source[i];
    }
    return same ? expr
                : ir_reduce(self->rw.cx, expr->reduce.combiner, source, expr->reduce.axis,
                            expr->reduce.extent, expr->reduce.n_axes, condition, expr->reduce.which);
}

/* What a body may mention: tensors and symbols of the definition, its axes and reduction axes. */
typedef struct {
    ir_walk w;
    te_def *def;
    te_scan *scan;
    const ir_expr *const *axis;
    int n;
    base_map reduce; /* reduction axes that the body binds */
} body_check;

/* Compared as nodes: a symbol of the same name from another definition is none of this one's. */
static bool holds(const base_vec *vec, const void *item)
{
    for (int i = 0; i < vec->n; i++)
        if (vec->at[i] == item)
            return true;
    return false;
}

/* The stage that makes the buffer; stages of the open scan are not in the list yet and are looked for
 * before. */
static const te_stage *definer(const te_def *def, const ir_buffer *buffer)
{
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        for (int j = 0; j < stage->n_outputs; j++)
            if (stage->output[j]->buffer == buffer)
                return stage;
    }
    return NULL;
}

/* Any stage before this one may be read as a whole, except a tensor of a scan that has no first steps: its
 * first rows hold nothing. */
static void check_load(const body_check *self, const ir_expr *expr)
{
    te_def *def = self->def;

    if (self->scan && te_scan_reads(self->scan, expr))
        return;
    const te_stage *stage = definer(def, expr->load.buffer);
    if (!stage)
        base_fail(def->cx, TEC_INVALID, expr->loc, "'%s' is not a tensor of '%s'", expr->load.buffer->name,
                  def->name);
    else if (te_stage_is_partial(stage))
        base_fail(def->cx, TEC_INVALID, expr->loc,
                  "'%s' has no first steps, so only its scan '%s' may read it", expr->load.buffer->name,
                  stage->scan->name);
}

/* Everything that a body mentions must be an axis of the stage, a symbol or a scalar of the definition, or
 * bound inside. */
static bool check_node(ir_walk *walk, const ir_expr *expr)
{
    body_check *c = (body_check *)walk;
    te_def *def = c->def;

    if (expr->op == IR_LOAD)
        check_load(c, expr);
    if (expr->op == IR_REDUCE)
        for (int i = 0; i < expr->reduce.n_axes; i++)
            base_map_put(def->cx, &c->reduce, expr->reduce.axis[i], expr);
    if (expr->op == IR_LET)
        base_map_put(def->cx, &c->reduce, expr->let.var, expr);
    if (expr->op != IR_VAR || holds(&def->symbols, expr) || holds(&def->scalars, expr) ||
        base_map_has(&c->reduce, expr))
        return true;
    for (int i = 0; i < c->n; i++)
        if (c->axis[i] == expr)
            return true;
    if (te_axis_is_reduce(expr))
        base_fail(def->cx, TEC_INVALID, expr->loc, "reduction axis '%s' is used outside its reduction",
                  expr->var.name);
    else
        base_fail(def->cx, TEC_INVALID, expr->loc,
                  "'%s' is neither an axis of this stage nor a symbol of '%s'", expr->var.name, def->name);
    return true;
}

/* Axes of a stage are spatial, and each is used once. */
bool te_check_axes(te_def *def, const char *name, const ir_expr *const *axis, int count)
{
    for (int i = 0; i < count; i++) {
        if (!axis[i])
            return false;
        if (!te_axis_extent(axis[i]) || te_axis_is_reduce(axis[i])) {
            base_fail(def->cx, TEC_INVALID, base_where(def->cx),
                      "'%s' cannot be an axis of '%s': it is not a spatial axis",
                      ir_expr_text(def->cx, axis[i]), name);
            return false;
        }
        for (int j = 0; j < i; j++)
            if (axis[j] == axis[i]) {
                base_fail(def->cx, TEC_INVALID, base_where(def->cx), "axis '%s' is used twice by '%s'",
                          axis[i]->var.name, name);
                return false;
            }
    }
    return true;
}

/* Several bodies are either all components of one reduction or all plain. */
static bool check_tuple(te_def *def, const char *name, const ir_expr *const *body, int count)
{
    bool reduces = body[0]->op == IR_REDUCE;

    for (int i = 0; i < count; i++) {
        bool fits = (body[i]->op == IR_REDUCE) == reduces;

        if (fits && reduces)
            fits = body[i]->reduce.which == i && body[i]->reduce.combiner->n == count &&
                   same_reduction(def->cx, body[0], body[i]);
        if (!fits) {
            base_fail(def->cx, TEC_INVALID, body[i]->loc,
                      "output %d of '%s' is not a component of the reduction that computes the other outputs",
                      i, name);
            return false;
        }
    }
    return true;
}

/* A reduction that is the whole body stays; its sources, and other bodies, lose the reductions inside them.
 * One component of a tuple as the body of a stage with one output, as in I[i] = argmax[k](A[i, k], k)@1, is
 * taken out too: the block has to keep both components. Where all bodies are components of one reduction, the
 * later ones are made of the first one, so that the stage has one set of reduction axes. */
static bool clean_bodies(const te_recipe *recipe, const ir_expr **clean)
{
    extraction x = {.rw = {.cx = recipe->def->cx, .expr = take_out},
                    .def = recipe->def,
                    .scan = recipe->scan,
                    .name = recipe->name};

    for (int i = 0; i < recipe->n_bodies; i++) {
        const ir_expr *expr = recipe->body[i];

        bool is_root = expr->op == IR_REDUCE && expr->reduce.combiner->n == recipe->n_bodies;

        clean[i] = is_root && i ? component(x.rw.cx, clean[0], i)
                   : is_root    ? clean_sources(&x, expr)
                                : ir_rewrite_expr(&x.rw, expr);
        if (!clean[i])
            return false;
    }
    return true;
}

/* All bodies reduce over the same axes (check_tuple), so the first one tells them. */
static void set_reduction(te_def *def, te_stage *stage, const ir_expr *body)
{
    if (body->op != IR_REDUCE)
        return;
    stage->n_reduce = body->reduce.n_axes;
    stage->reduce_axis =
        base_copy(def->cx, body->reduce.axis, (size_t)stage->n_reduce * sizeof *stage->reduce_axis);
    stage->reduce_extent =
        base_copy(def->cx, body->reduce.extent, (size_t)stage->n_reduce * sizeof *stage->reduce_extent);
}

/* Shape of the outputs: the extents, but for a first dimension that is longer than what this stage computes
 * of it. */
static bool make_outputs(const te_recipe *recipe, te_stage *stage)
{
    const ir_expr **shape = base_copy(recipe->def->cx, stage->extent, (size_t)stage->n_axes * sizeof *shape);

    if (recipe->length)
        shape[0] = recipe->length;
    for (int i = 0; i < recipe->n_bodies; i++) {
        const ir_buffer *buffer = recipe->state ? recipe->state->buffer
                                                : ir_buffer_new(recipe->def->cx, recipe->output[i],
                                                                stage->body[i]->dtype, shape, stage->n_axes);

        if (!buffer)
            return false;
        ((te_tensor **)stage->output)[i] =
            recipe->state ? recipe->state : te_new_tensor(recipe->def, stage, i, buffer);
    }
    return true;
}

/* Makes the stage from bodies that were checked; its outputs get their buffers. */
static te_stage *finish_stage(const te_recipe *recipe, const ir_expr *const *body)
{
    tec_context *cx = recipe->def->cx;
    te_stage *stage =
        te_new_stage(recipe->def, recipe->scan ? TE_SCAN : TE_COMPUTE, recipe->name, recipe->n_bodies);
    const ir_expr **extent = base_array(cx, const ir_expr *, recipe->n);

    for (int i = 0; i < recipe->n; i++)
        extent[i] = te_axis_extent(recipe->axis[i]);
    stage->scan = recipe->scan;
    stage->n_axes = recipe->n;
    stage->axis = base_copy(cx, recipe->axis, (size_t)recipe->n * sizeof *recipe->axis);
    stage->extent = extent;
    stage->body = base_copy(cx, body, (size_t)recipe->n_bodies * sizeof *body);
    set_reduction(recipe->def, stage, body[0]);
    return make_outputs(recipe, stage) ? stage : NULL;
}

/* An update keeps the name of its state. A stage with several outputs, and the first steps of a state, have a
 * name beside those of the outputs. */
static bool claim_names(const te_recipe *recipe)
{
    if (recipe->state)
        return true;
    for (int i = 0; i < recipe->n_bodies; i++)
        if (!te_claim_name(recipe->def, recipe->output[i], recipe->def))
            return false;
    return (recipe->n_bodies == 1 && !recipe->length) ||
           te_claim_name(recipe->def, recipe->name, recipe->def);
}

/* Several bodies are the components of one tuple reduction, so they must agree in everything but the
 * component. */
static bool check_bodies(const te_recipe *recipe)
{
    body_check check = {.w = {.expr = check_node, .cx = recipe->def->cx},
                        .def = recipe->def,
                        .scan = recipe->scan,
                        .axis = recipe->axis,
                        .n = recipe->n};

    for (int i = 0; i < recipe->n_bodies; i++) {
        if (!recipe->body[i])
            return false;
        ir_walk_expr(&check.w, recipe->body[i]);
    }
    return !base_failed(recipe->def->cx) &&
           (recipe->n_bodies == 1 || check_tuple(recipe->def, recipe->name, recipe->body, recipe->n_bodies));
}

/* Checks come first, then names, then reductions become stages: a wrong body is found before anything is
 * added. */
te_stage *te_build_stage(const te_recipe *recipe)
{
    tec_context *cx = recipe->def->cx;
    base_loc here = base_where(cx);
    const ir_expr **clean = base_array(cx, const ir_expr *, recipe->n_bodies);

    if (!te_check_axes(recipe->def, recipe->name, recipe->axis, recipe->n) || !check_bodies(recipe) ||
        !claim_names(recipe) || !clean_bodies(recipe, clean))
        return NULL;
    base_set_where(cx, here);
    return finish_stage(recipe, clean);
}

/* `output` are the names of the outputs, NULL for names derived from the stage. False with an error: nothing
 * was added. */
bool te_compute_named(te_def *def, const char *name, const char *const *output, const ir_expr *const *axis,
                      int count, const ir_expr *const *body, int n_bodies, te_tensor **out)
{
    te_stage *stage = !def ? NULL
                           : te_build_stage(&(te_recipe){.def = def,
                                                         .name = name,
                                                         .output = output,
                                                         .axis = axis,
                                                         .n = count,
                                                         .body = body,
                                                         .n_bodies = n_bodies});

    if (!stage)
        return false;
    base_push(def->cx, &def->stages, stage);
    for (int i = 0; i < n_bodies; i++)
        out[i] = stage->output[i];
    return true;
}

/* NAME, or NAME.v0, NAME.v1, ... */
const char *const *te_output_names(tec_context *cx, const char *name, int n)
{
    const char **output = base_array(cx, const char *, n);

    for (int i = 0; i < n; i++)
        output[i] = n == 1 ? name : base_format(cx, "%s.v%d", name, i);
    return output;
}

bool te_compute_n(te_def *def, const char *name, const ir_expr *const *axis, int n,
                  const ir_expr *const *body, int n_bodies, te_tensor **out)
{
    return def && te_compute_named(def, name, te_output_names(def->cx, name, n_bodies), axis, n, body,
                                   n_bodies, out);
}

te_tensor *te_compute(te_def *def, const char *name, const ir_expr *const *axis, int n, const ir_expr *body)
{
    te_tensor *t;

    return te_compute_n(def, name, axis, n, &body, 1, &t) ? t : NULL;
}
