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

static te_tensor *reduction_stage(extraction *x, const ir_expr *e, base_vec *outer);

/* The element of the stage's result that belongs to this point: the stage runs over exactly these axes. */
static const ir_expr *read_at(tec_context *cx, te_tensor *t, const base_vec *axes)
{
    return ir_load(cx, t->buffer, (const ir_expr *const *)axes->at, axes->n);
}

/* Whether both give the same value wherever both may stand. Axes are compared as variables, so the two sums
 * in
 *
 *     S[i] = sum[j: n](A[j]) + sum[k: n](A[k])
 *
 * count as different and get a stage each; a reduction whose text stood once, and was used twice by a program
 * that builds definitions, is found. `which` may differ: both are components of one stage. */
static bool same_reduction(const ir_expr *a, const ir_expr *b)
{
    if (a->reduce.combiner != b->reduce.combiner || a->reduce.n_axes != b->reduce.n_axes)
        return false;
    for (int i = 0; i < a->reduce.n_axes; i++)
        if (a->reduce.axis[i] != b->reduce.axis[i])
            return false;
    for (int i = 0; i < a->reduce.combiner->n; i++)
        if (!ir_same(a->reduce.source[i], b->reduce.source[i]))
            return false;
    return a->reduce.condition == b->reduce.condition ||
           (a->reduce.condition && b->reduce.condition && ir_same(a->reduce.condition, b->reduce.condition));
}

/* A reduction inside a body becomes a read of a new stage; the same reduction twice becomes one stage. */
static const ir_expr *take_out(ir_rewrite *rw, const ir_expr *e)
{
    extraction *x = (extraction *)rw;

    if (e->op != IR_REDUCE)
        return ir_rewrite_children(rw, e);
    for (int i = 0; i < x->done.n; i++)
        if (same_reduction(x->done.at[i], e)) {
            te_tensor *first = x->stages.at[i];
            return read_at(rw->cx, first->stage->output[e->reduce.which], x->axes.at[i]);
        }
    base_vec *outer = base_new(rw->cx, base_vec);
    te_tensor *t = reduction_stage(x, e, outer);

    if (!t)
        return NULL;
    base_push(rw->cx, &x->done, e);
    base_push(rw->cx, &x->stages, t->stage->output[0]);
    base_push(rw->cx, &x->axes, outer);
    return read_at(rw->cx, t, outer);
}

/* The axes that a reduction depends on, in order of first use; the time of the scan first. True if that is
 * among them. In S[i, j] = B[j] / sum[k](A[i, k]) that is i alone: the sum is computed n times, not n * m
 * times. Its own axes are bound by it and so are no free variables. */
static bool outer_axes(const extraction *x, const ir_expr *reduction, base_vec *out)
{
    const ir_expr *time = x->scan ? x->scan->time : NULL;
    bool timed = time && ir_uses_var(x->rw.cx, reduction, time);
    base_vec vars = {0};

    if (timed)
        base_push(x->rw.cx, out, time);
    ir_free_vars(x->rw.cx, reduction, &vars);
    for (int i = 0; i < vars.n; i++)
        if (te_axis_extent(vars.at[i]) && vars.at[i] != time)
            base_push(x->rw.cx, out, vars.at[i]);
    return timed;
}

/* NAME.r, NAME.r2, ...: taken names include the user's own. */
static const char *fresh_name(te_def *d, const char *name)
{
    const char *s = base_format(d->cx, "%s.r", name);

    for (int i = 2; base_dict_has(&d->names, s); i++)
        s = base_format(d->cx, "%s.r%d", name, i);
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
static te_tensor *reduction_stage(extraction *x, const ir_expr *e, base_vec *outer)
{
    te_def *d = x->def;
    int n = e->reduce.combiner->n;
    ir_subst to_own = {0};
    base_vec own = {0};
    const ir_expr **body = base_array(d->cx, const ir_expr *, n);
    te_tensor **out = base_array(d->cx, te_tensor *, n);

    bool timed = outer_axes(x, e, outer);
    for (int i = 0; i < outer->n; i++) {
        const ir_expr *a = outer->at[i],
                      *mine = timed && i == 0 ? a : te_axis(d->cx, a->var.name, te_axis_extent(a));

        base_push(d->cx, &own, mine);
        base_map_put(d->cx, &to_own.vars, a, mine);
    }
    for (int i = 0; i < n; i++) {
        body[i] = ir_reduce(d->cx, e->reduce.combiner, e->reduce.source, e->reduce.axis, e->reduce.extent,
                            e->reduce.n_axes, e->reduce.condition, i);
        body[i] = ir_apply(d->cx, &to_own, body[i]);
    }
    const char *name = fresh_name(d, x->name);
    const ir_expr *const *axis = (const ir_expr *const *)own.at;
    bool made = timed ? te_scan_step_n(x->scan, name, axis, own.n, body, n, out)
                      : te_compute_n(d, name, axis, own.n, body, n, out);
    return made ? out[e->reduce.which] : NULL;
}

/* The same reduction with what it reduces free of reductions. Unchanged sources give the same node, so that a
 * definition that needs nothing taken out costs nothing. */
static const ir_expr *clean_sources(extraction *x, const ir_expr *e)
{
    int n = e->reduce.combiner->n;
    const ir_expr **source = base_array(x->rw.cx, const ir_expr *, n);
    const ir_expr *condition = e->reduce.condition ? ir_rewrite_expr(&x->rw, e->reduce.condition) : NULL;
    bool same = condition == e->reduce.condition;

    for (int i = 0; i < n; i++) {
        source[i] = ir_rewrite_expr(&x->rw, e->reduce.source[i]);
        same = same && source[i] == e->reduce.source[i];
    }
    return same ? e
                : ir_reduce(x->rw.cx, e->reduce.combiner, source, e->reduce.axis, e->reduce.extent,
                            e->reduce.n_axes, condition, e->reduce.which);
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
static bool holds(const base_vec *v, const void *item)
{
    for (int i = 0; i < v->n; i++)
        if (v->at[i] == item)
            return true;
    return false;
}

/* The stage that makes the buffer; stages of the open scan are not in the list yet and are looked for
 * before. */
static const te_stage *definer(const te_def *d, const ir_buffer *b)
{
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        for (int j = 0; j < s->n_outputs; j++)
            if (s->output[j]->buffer == b)
                return s;
    }
    return NULL;
}

/* Any stage before this one may be read as a whole, except a tensor of a scan that has no first steps: its
 * first rows hold nothing. */
static void check_load(const body_check *c, const ir_expr *e)
{
    te_def *d = c->def;

    if (c->scan && te_scan_reads(c->scan, e))
        return;
    const te_stage *s = definer(d, e->load.buffer);
    if (!s)
        base_fail(d->cx, TEC_INVALID, e->loc, "'%s' is no tensor of '%s'", e->load.buffer->name, d->name);
    else if (te_stage_is_partial(s))
        base_fail(d->cx, TEC_INVALID, e->loc, "'%s' has no first steps, so only its scan '%s' may read it",
                  e->load.buffer->name, s->scan->name);
}

/* Everything that a body mentions must be an axis of the stage, a symbol or a scalar of the definition, or
 * bound inside. */
static bool check_node(ir_walk *w, const ir_expr *e)
{
    body_check *c = (body_check *)w;
    te_def *d = c->def;

    if (e->op == IR_LOAD)
        check_load(c, e);
    if (e->op == IR_REDUCE)
        for (int i = 0; i < e->reduce.n_axes; i++)
            base_map_put(d->cx, &c->reduce, e->reduce.axis[i], e);
    if (e->op == IR_LET)
        base_map_put(d->cx, &c->reduce, e->let.var, e);
    if (e->op != IR_VAR || holds(&d->symbols, e) || holds(&d->scalars, e) || base_map_has(&c->reduce, e))
        return true;
    for (int i = 0; i < c->n; i++)
        if (c->axis[i] == e)
            return true;
    if (te_axis_is_reduce(e))
        base_fail(d->cx, TEC_INVALID, e->loc, "reduction axis '%s' is used outside its reduction",
                  e->var.name);
    else
        base_fail(d->cx, TEC_INVALID, e->loc, "'%s' is neither an axis of this stage nor a symbol of '%s'",
                  e->var.name, d->name);
    return true;
}

/* Axes of a stage are spatial, and each is used once. */
bool te_check_axes(te_def *d, const char *name, const ir_expr *const *axis, int n)
{
    for (int i = 0; i < n; i++) {
        if (!axis[i])
            return false;
        if (!te_axis_extent(axis[i]) || te_axis_is_reduce(axis[i])) {
            base_fail(d->cx, TEC_INVALID, base_where(d->cx),
                      "'%s' cannot be an axis of '%s': it is no spatial axis", ir_expr_text(d->cx, axis[i]),
                      name);
            return false;
        }
        for (int j = 0; j < i; j++)
            if (axis[j] == axis[i]) {
                base_fail(d->cx, TEC_INVALID, base_where(d->cx), "axis '%s' is used twice by '%s'",
                          axis[i]->var.name, name);
                return false;
            }
    }
    return true;
}

/* Several bodies are either all components of one reduction or all plain. */
static bool check_tuple(te_def *d, const char *name, const ir_expr *const *body, int n)
{
    bool reduces = body[0]->op == IR_REDUCE;

    for (int i = 0; i < n; i++) {
        bool fits = (body[i]->op == IR_REDUCE) == reduces;

        if (fits && reduces)
            fits = body[i]->reduce.which == i && body[i]->reduce.combiner->n == n &&
                   same_reduction(body[0], body[i]);
        if (!fits) {
            base_fail(d->cx, TEC_INVALID, body[i]->loc,
                      "output %d of '%s' is no component of the reduction that makes its other outputs", i,
                      name);
            return false;
        }
    }
    return true;
}

/* A reduction that is the whole body stays; its sources, and other bodies, lose the reductions inside them.
 * One component of a tuple as the body of a stage with one output, as in I[i] = argmax[k](A[i, k], k)@1, is
 * taken out too: the block has to keep both components. */
static bool clean_bodies(const te_recipe *r, const ir_expr **clean)
{
    extraction x = {
        .rw = {.cx = r->def->cx, .expr = take_out}, .def = r->def, .scan = r->scan, .name = r->name};

    for (int i = 0; i < r->n_bodies; i++) {
        const ir_expr *e = r->body[i];

        clean[i] = e->op == IR_REDUCE && e->reduce.combiner->n == r->n_bodies ? clean_sources(&x, e)
                                                                              : ir_rewrite_expr(&x.rw, e);
        if (!clean[i])
            return false;
    }
    return true;
}

/* All bodies reduce over the same axes (check_tuple), so the first one tells them. */
static void set_reduction(te_def *d, te_stage *s, const ir_expr *body)
{
    if (body->op != IR_REDUCE)
        return;
    s->n_reduce = body->reduce.n_axes;
    s->reduce_axis = base_copy(d->cx, body->reduce.axis, (size_t)s->n_reduce * sizeof *s->reduce_axis);
    s->reduce_extent = base_copy(d->cx, body->reduce.extent, (size_t)s->n_reduce * sizeof *s->reduce_extent);
}

/* Shape of the outputs: the extents, but for a first dimension that is longer than what this stage computes
 * of it. */
static bool make_outputs(const te_recipe *r, te_stage *s)
{
    const ir_expr **shape = base_copy(r->def->cx, s->extent, (size_t)s->n_axes * sizeof *shape);

    if (r->length)
        shape[0] = r->length;
    for (int i = 0; i < r->n_bodies; i++) {
        const ir_buffer *b =
            r->state ? r->state->buffer
                     : ir_buffer_new(r->def->cx, r->output[i], s->body[i]->dtype, shape, s->n_axes);

        if (!b)
            return false;
        ((te_tensor **)s->output)[i] = r->state ? r->state : te_new_tensor(r->def, s, i, b);
    }
    return true;
}

/* Makes the stage from bodies that were checked; its outputs get their buffers. */
static te_stage *finish_stage(const te_recipe *r, const ir_expr *const *body)
{
    tec_context *cx = r->def->cx;
    te_stage *s = te_new_stage(r->def, r->scan ? TE_SCAN : TE_COMPUTE, r->name, r->n_bodies);
    const ir_expr **extent = base_array(cx, const ir_expr *, r->n);

    for (int i = 0; i < r->n; i++)
        extent[i] = te_axis_extent(r->axis[i]);
    s->scan = r->scan;
    s->n_axes = r->n;
    s->axis = base_copy(cx, r->axis, (size_t)r->n * sizeof *r->axis);
    s->extent = extent;
    s->body = base_copy(cx, body, (size_t)r->n_bodies * sizeof *body);
    set_reduction(r->def, s, body[0]);
    return make_outputs(r, s) ? s : NULL;
}

/* An update keeps the name of its state. A stage with several outputs, and the first steps of a state, have a
 * name beside those of the outputs. */
static bool claim_names(const te_recipe *r)
{
    if (r->state)
        return true;
    for (int i = 0; i < r->n_bodies; i++)
        if (!te_claim_name(r->def, r->output[i], r->def))
            return false;
    return (r->n_bodies == 1 && !r->length) || te_claim_name(r->def, r->name, r->def);
}

/* Several bodies are the components of one tuple reduction, so they must agree in everything but the
 * component. */
static bool check_bodies(const te_recipe *r)
{
    body_check check = {.w = {.expr = check_node, .cx = r->def->cx},
                        .def = r->def,
                        .scan = r->scan,
                        .axis = r->axis,
                        .n = r->n};

    for (int i = 0; i < r->n_bodies; i++) {
        if (!r->body[i])
            return false;
        ir_walk_expr(&check.w, r->body[i]);
    }
    return !base_failed(r->def->cx) &&
           (r->n_bodies == 1 || check_tuple(r->def, r->name, r->body, r->n_bodies));
}

/* Checks come first, then names, then reductions become stages: a wrong body is found before anything is
 * added. */
te_stage *te_build_stage(const te_recipe *r)
{
    tec_context *cx = r->def->cx;
    base_loc here = base_where(cx);
    const ir_expr **clean = base_array(cx, const ir_expr *, r->n_bodies);

    if (!te_check_axes(r->def, r->name, r->axis, r->n) || !check_bodies(r) || !claim_names(r) ||
        !clean_bodies(r, clean))
        return NULL;
    base_set_where(cx, here);
    return finish_stage(r, clean);
}

/* `output` are the names of the outputs, NULL for names derived from the stage. False with an error: nothing
 * was added. */
bool te_compute_named(te_def *d, const char *name, const char *const *output, const ir_expr *const *axis,
                      int n, const ir_expr *const *body, int n_bodies, te_tensor **out)
{
    te_stage *s = !d ? NULL
                     : te_build_stage(&(te_recipe){.def = d,
                                                   .name = name,
                                                   .output = output,
                                                   .axis = axis,
                                                   .n = n,
                                                   .body = body,
                                                   .n_bodies = n_bodies});

    if (!s)
        return false;
    base_push(d->cx, &d->stages, s);
    for (int i = 0; i < n_bodies; i++)
        out[i] = s->output[i];
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

bool te_compute_n(te_def *d, const char *name, const ir_expr *const *axis, int n, const ir_expr *const *body,
                  int n_bodies, te_tensor **out)
{
    return d &&
           te_compute_named(d, name, te_output_names(d->cx, name, n_bodies), axis, n, body, n_bodies, out);
}

te_tensor *te_compute(te_def *d, const char *name, const ir_expr *const *axis, int n, const ir_expr *body)
{
    te_tensor *t;

    return te_compute_n(d, name, axis, n, &body, 1, &t) ? t : NULL;
}
