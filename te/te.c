/* te/te.c -- definitions: inputs, axes, compute stages.
 *
 * A stage's body reads tensors by loading from their buffers, so a definition is plain IR plus the order of its stages. Two invariants
 * hold after each constructor: a stage reads only what the definition holds already, and a reduction is the whole body of its stage.
 */
#include "te/te.h"

#include "ir/text.h"
#include "ir/walk.h"

te_def *te_def_new(tec_context *cx, const char *name)
{
    if (!name)
        return NULL;
    te_def *d = base_new(cx, te_def);

    d->cx = cx;
    d->name = base_strdup(cx, name);
    d->loc = base_where(cx);
    return d;
}

/* ---- symbols, inputs, outputs ---- */

const ir_expr *te_symbol(te_def *d, const char *name)
{
    if (!d)
        return NULL;
    for (int i = 0; i < d->symbols.n; i++) {
        const ir_expr *s = d->symbols.at[i];

        if (base_same(s->var.name, name))
            return s;
    }
    const ir_expr *s = ir_var(d->cx, name, BASE_I64);
    base_push(d->cx, &d->symbols, s);
    return s;
}

void te_use_symbols(te_def *d, const ir_expr *e)
{
    base_vec vars = {0};

    if (!d || !e)
        return;
    ir_free_vars(d->cx, e, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool known = te_axis_extent(vars.at[i]);

        for (int j = 0; j < d->symbols.n; j++)
            known = known || d->symbols.at[j] == vars.at[i];
        if (!known)
            base_push(d->cx, &d->symbols, vars.at[i]);
    }
}

void te_fact(te_def *d, const ir_expr *condition)
{
    if (!d || !condition)
        return;
    if (!base_is_bool(condition->dtype))
        base_fail(d->cx, TEC_INVALID, condition->loc, "a fact must be a condition, '%s' is not", ir_expr_text(d->cx, condition));
    else
        base_push(d->cx, &d->facts, condition);
}

static bool claim_name(te_def *d, const char *name, const void *what)
{
    if (base_dict_has(&d->names, name)) {
        base_fail(d->cx, TEC_INVALID, base_where(d->cx), "'%s' is defined twice in '%s'", name, d->name);
        return false;
    }
    base_dict_put(d->cx, &d->names, base_strdup(d->cx, name), what);
    return true;
}

static te_tensor *new_tensor(te_def *d, te_stage *stage, int which, const ir_buffer *buffer)
{
    te_tensor *t = base_new(d->cx, te_tensor);

    *t = (te_tensor){.def = d, .stage = stage, .which = which, .buffer = buffer};
    return t;
}

static te_stage *new_stage(te_def *d, te_kind kind, const char *name, int n_outputs)
{
    te_stage *s = base_new(d->cx, te_stage);

    s->kind = kind;
    s->name = base_strdup(d->cx, name);
    s->role = d->role;
    s->n_outputs = n_outputs;
    s->output = base_array(d->cx, te_tensor *, n_outputs);
    s->loc = base_where(d->cx);
    return s;
}

te_tensor *te_input(te_def *d, const char *name, base_dtype t, const ir_expr *const *shape, int n)
{
    if (!d)
        return NULL;
    const ir_buffer *buffer = ir_buffer_new(d->cx, name, t, shape, n);
    if (!buffer || !claim_name(d, name, buffer))
        return NULL;
    te_stage *s = new_stage(d, TE_INPUT, name, 1);
    te_tensor *tensor = new_tensor(d, s, 0, buffer);

    ((te_tensor **)s->output)[0] = tensor;
    base_push(d->cx, &d->stages, s);
    base_push(d->cx, &d->inputs, tensor);
    return tensor;
}

const ir_expr *te_scalar(te_def *d, const char *name, base_dtype t)
{
    const ir_expr *v = d ? ir_var(d->cx, name, t) : NULL;

    if (!v || !claim_name(d, name, v))
        return NULL;
    base_push(d->cx, &d->scalars, v);
    return v;
}

void te_output(te_def *d, te_tensor *t)
{
    if (!d || !t)
        return;
    for (int i = 0; i < d->outputs.n; i++)
        if (d->outputs.at[i] == t) {
            base_fail(d->cx, TEC_INVALID, base_where(d->cx), "'%s' is an output of '%s' already", t->buffer->name, d->name);
            return;
        }
    if (t->stage->kind == TE_INPUT)
        base_fail(d->cx, TEC_INVALID, base_where(d->cx), "input '%s' of '%s' cannot be its output as well", t->stage->name, d->name);
    else
        base_push(d->cx, &d->outputs, t);
}

/* ---- expressions ---- */

const ir_expr *te_read(te_tensor *t, const ir_expr *const *index, int n)
{
    if (!t)
        return NULL;
    tec_context *cx = t->def->cx;
    const ir_expr **wide = base_array(cx, const ir_expr *, n);

    if (n != t->buffer->n)
        return base_fail(cx, TEC_INVALID, base_where(cx), "'%s' has %d dimension%s, but is read with %d ind%s", t->buffer->name, t->buffer->n,
                         t->buffer->n == 1 ? "" : "s", n, n == 1 ? "ex" : "ices");
    for (int i = 0; i < n; i++) {
        if (!index[i])
            return NULL;
        wide[i] = base_is_int(index[i]->dtype) ? ir_cast(cx, BASE_I64, index[i]) : index[i];
    }
    return ir_load(cx, t->buffer, wide, n);
}

const ir_expr *te_reduce(tec_context *cx, const char *combiner, const ir_expr *e, const ir_expr *const *axis, int n)
{
    if (!e)
        return NULL;
    const ir_combiner *c = ir_combiner_named(cx, combiner, e->dtype, BASE_I64);
    if (!c || c->n != 1)
        return base_fail(cx, TEC_INVALID, base_where(cx), "no reduction of one value is named '%s'", combiner);

    const ir_expr **extent = base_array(cx, const ir_expr *, n);
    for (int i = 0; i < n; i++) {
        if (!axis[i])
            return NULL;
        if (!te_axis_is_reduce(axis[i]))
            return base_fail(cx, TEC_INVALID, base_where(cx), "'%s' is reduced over '%s', which is no reduction axis", combiner,
                             ir_expr_text(cx, axis[i]));
        extent[i] = te_axis_extent(axis[i]);
    }
    return ir_reduce(cx, c, &e, axis, extent, n, NULL, 0);
}

/* ---- compute ---- */

/* Takes the reductions that stand below the root of a body out into stages of their own. */
typedef struct {
    ir_rewrite rw;
    te_def *def;
    const char *name;
    base_vec done;    /* reductions taken out, */
    base_vec stages;  /* and the first tensor of each one's stage, */
    base_vec axes;    /* and the axes that it is read at (base_vec *) */
} extraction;

static te_tensor *reduction_stage(extraction *x, const ir_expr *e, base_vec *outer);

static const ir_expr *read_at(tec_context *cx, te_tensor *t, const base_vec *axes)
{
    return ir_load(cx, t->buffer, (const ir_expr *const *)axes->at, axes->n);
}

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

/* The axes that a reduction depends on, in order of first use. */
static void outer_axes(tec_context *cx, const ir_expr *reduction, base_vec *out)
{
    base_vec vars = {0};

    ir_free_vars(cx, reduction, &vars);
    for (int i = 0; i < vars.n; i++)
        if (te_axis_extent(vars.at[i]))
            base_push(cx, out, vars.at[i]);
}

static const char *fresh_name(te_def *d, const char *name)
{
    const char *s = base_format(d->cx, "%s.r", name);

    for (int i = 2; base_dict_has(&d->names, s); i++)
        s = base_format(d->cx, "%s.r%d", name, i);
    return s;
}

static te_tensor *reduction_stage(extraction *x, const ir_expr *e, base_vec *outer)
{
    te_def *d = x->def;
    int n = e->reduce.combiner->n;
    ir_subst to_own = {0};
    base_vec own = {0};
    const ir_expr **body = base_array(d->cx, const ir_expr *, n);
    te_tensor **out = base_array(d->cx, te_tensor *, n);

    outer_axes(d->cx, e, outer);
    for (int i = 0; i < outer->n; i++) {
        const ir_expr *a = outer->at[i], *mine = te_axis(d->cx, a->var.name, te_axis_extent(a));

        base_push(d->cx, &own, mine);
        base_map_put(d->cx, &to_own.vars, a, mine);
    }
    for (int i = 0; i < n; i++) {
        body[i] = ir_reduce(d->cx, e->reduce.combiner, e->reduce.source, e->reduce.axis, e->reduce.extent, e->reduce.n_axes, e->reduce.condition, i);
        body[i] = ir_apply(d->cx, &to_own, body[i]);
    }
    if (!te_compute_n(d, fresh_name(d, x->name), (const ir_expr *const *)own.at, own.n, body, n, out))
        return NULL;
    return out[e->reduce.which];
}

/* The same reduction with what it reduces free of reductions. */
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
    return same ? e : ir_reduce(x->rw.cx, e->reduce.combiner, source, e->reduce.axis, e->reduce.extent, e->reduce.n_axes, condition, e->reduce.which);
}

/* What a body may mention: tensors and symbols of the definition, its axes and reduction axes. */
typedef struct {
    ir_walk w;
    te_def *def;
    const ir_expr *const *axis;
    int n;
    base_map reduce; /* reduction axes that the body binds */
} body_check;

static bool holds(const base_vec *v, const void *item)
{
    for (int i = 0; i < v->n; i++)
        if (v->at[i] == item)
            return true;
    return false;
}

static bool defines(const te_def *d, const ir_buffer *b)
{
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        for (int j = 0; j < s->n_outputs; j++)
            if (s->output[j]->buffer == b)
                return true;
    }
    return false;
}

static bool check_node(ir_walk *w, const ir_expr *e)
{
    body_check *c = (body_check *)w;
    te_def *d = c->def;

    if (e->op == IR_LOAD && !defines(d, e->load.buffer))
        base_fail(d->cx, TEC_INVALID, e->loc, "'%s' is no tensor of '%s'", e->load.buffer->name, d->name);
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
        base_fail(d->cx, TEC_INVALID, e->loc, "reduction axis '%s' is used outside its reduction", e->var.name);
    else
        base_fail(d->cx, TEC_INVALID, e->loc, "'%s' is neither an axis of this stage nor a symbol of '%s'", e->var.name, d->name);
    return true;
}

static bool check_axes(te_def *d, const char *name, const ir_expr *const *axis, int n)
{
    for (int i = 0; i < n; i++) {
        if (!axis[i])
            return false;
        if (!te_axis_extent(axis[i]) || te_axis_is_reduce(axis[i])) {
            base_fail(d->cx, TEC_INVALID, base_where(d->cx), "'%s' cannot be an axis of '%s': it is no spatial axis",
                      ir_expr_text(d->cx, axis[i]), name);
            return false;
        }
        for (int j = 0; j < i; j++)
            if (axis[j] == axis[i]) {
                base_fail(d->cx, TEC_INVALID, base_where(d->cx), "axis '%s' is used twice by '%s'", axis[i]->var.name, name);
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
            fits = body[i]->reduce.which == i && body[i]->reduce.combiner->n == n && same_reduction(body[0], body[i]);
        if (!fits) {
            base_fail(d->cx, TEC_INVALID, body[i]->loc, "output %d of '%s' is no component of the reduction that makes its other outputs", i, name);
            return false;
        }
    }
    return true;
}

static bool clean_bodies(te_def *d, const char *name, const ir_expr *const *body, const ir_expr **clean, int n)
{
    extraction x = {.rw = {.cx = d->cx, .expr = take_out}, .def = d, .name = name};

    for (int i = 0; i < n; i++) {
        clean[i] = body[i]->op == IR_REDUCE && body[i]->reduce.combiner->n == n ? clean_sources(&x, body[i]) : ir_rewrite_expr(&x.rw, body[i]);
        if (!clean[i])
            return false;
    }
    return true;
}

static void set_reduction(te_def *d, te_stage *s, const ir_expr *body)
{
    if (body->op != IR_REDUCE)
        return;
    s->n_reduce = body->reduce.n_axes;
    s->reduce_axis = base_copy(d->cx, body->reduce.axis, (size_t)s->n_reduce * sizeof *s->reduce_axis);
    s->reduce_extent = base_copy(d->cx, body->reduce.extent, (size_t)s->n_reduce * sizeof *s->reduce_extent);
}

static te_stage *finish_stage(te_def *d, const char *name, const char *const *output, const ir_expr *const *axis, int n,
                              const ir_expr *const *body, int n_bodies)
{
    te_stage *s = new_stage(d, TE_COMPUTE, name, n_bodies);
    const ir_expr **extent = base_array(d->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        extent[i] = te_axis_extent(axis[i]);
    s->n_axes = n;
    s->axis = base_copy(d->cx, axis, (size_t)n * sizeof *axis);
    s->extent = extent;
    s->body = base_copy(d->cx, body, (size_t)n_bodies * sizeof *body);
    set_reduction(d, s, body[0]);
    for (int i = 0; i < n_bodies; i++) {
        const ir_buffer *b = ir_buffer_new(d->cx, output[i], body[i]->dtype, extent, n);

        if (!b)
            return NULL;
        ((te_tensor **)s->output)[i] = new_tensor(d, s, i, b);
    }
    base_push(d->cx, &d->stages, s);
    return s;
}

static bool claim_names(te_def *d, const char *name, const char *const *output, int n)
{
    if (n == 1)
        return claim_name(d, output[0], d);
    for (int i = 0; i < n; i++)
        if (!claim_name(d, output[i], d))
            return false;
    return claim_name(d, name, d);
}

bool te_compute_named(te_def *d, const char *name, const char *const *output, const ir_expr *const *axis, int n, const ir_expr *const *body,
                      int n_bodies, te_tensor **out)
{
    if (!d || !check_axes(d, name, axis, n))
        return false;
    base_loc here = base_where(d->cx);
    const ir_expr **clean = base_array(d->cx, const ir_expr *, n_bodies);
    body_check check = {.w = {.expr = check_node, .cx = d->cx}, .def = d, .axis = axis, .n = n};

    for (int i = 0; i < n_bodies; i++) {
        if (!body[i])
            return false;
        ir_walk_expr(&check.w, body[i]);
    }
    if (base_failed(d->cx) || (n_bodies > 1 && !check_tuple(d, name, body, n_bodies)) || !claim_names(d, name, output, n_bodies) ||
        !clean_bodies(d, name, body, clean, n_bodies))
        return false;
    base_set_where(d->cx, here);

    te_stage *s = finish_stage(d, name, output, axis, n, clean, n_bodies);
    for (int i = 0; s && i < n_bodies; i++)
        out[i] = s->output[i];
    return s != NULL;
}

bool te_compute_n(te_def *d, const char *name, const ir_expr *const *axis, int n, const ir_expr *const *body, int n_bodies, te_tensor **out)
{
    if (!d)
        return false;
    const char **output = base_array(d->cx, const char *, n_bodies);

    for (int i = 0; i < n_bodies; i++)
        output[i] = n_bodies == 1 ? name : base_format(d->cx, "%s.v%d", name, i);
    return te_compute_named(d, name, output, axis, n, body, n_bodies, out);
}

te_tensor *te_compute(te_def *d, const char *name, const ir_expr *const *axis, int n, const ir_expr *body)
{
    te_tensor *t;

    return te_compute_n(d, name, axis, n, &body, 1, &t) ? t : NULL;
}

void te_note(te_tensor *t, const char *key, const ir_expr *value)
{
    te_stage *s = t ? (te_stage *)t->stage : NULL;

    if (s && value)
        s->notes = ir_note_set(t->def->cx, s->notes, key, value);
}

te_tensor *te_tensor_named(const te_def *d, const char *name)
{
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        for (int j = 0; j < s->n_outputs; j++)
            if (base_same(s->output[j]->buffer->name, name))
                return s->output[j];
    }
    return NULL;
}
