/* te/te.c -- definitions: symbols, inputs, outputs, reads.
 *
 * A stage's body reads tensors by loading from their buffers, so a definition is plain IR plus the order of
 * its stages. Two invariants hold after each constructor: a stage reads only what the definition holds
 * already, and a reduction is the whole body of its stage.
 */
#include "te/stage.h"

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

/* The symbol of that name, which exists once in a definition; extents that name it agree by that. */
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

/* Variables of e that the definition does not know yet become its symbols; axes are none. */
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
        base_fail(d->cx, TEC_INVALID, condition->loc, "a fact must be a condition, '%s' is not",
                  ir_expr_text(d->cx, condition));
    else
        base_push(d->cx, &d->facts, condition);
}

/* Tensors, scalars and stages share one set of names, because schedules find blocks and buffers by name. */
bool te_claim_name(te_def *d, const char *name, const void *what)
{
    if (base_dict_has(&d->names, name)) {
        base_fail(d->cx, TEC_INVALID, base_where(d->cx), "'%s' is defined twice in '%s'", name, d->name);
        return false;
    }
    base_dict_put(d->cx, &d->names, base_strdup(d->cx, name), what);
    return true;
}

te_tensor *te_new_tensor(te_def *d, te_stage *stage, int which, const ir_buffer *buffer)
{
    te_tensor *t = base_new(d->cx, te_tensor);

    *t = (te_tensor){.def = d, .stage = stage, .which = which, .buffer = buffer};
    return t;
}

te_stage *te_new_stage(te_def *d, te_kind kind, const char *name, int n_outputs)
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

/* A parameter tensor. NULL with an error where the name is taken. */
te_tensor *te_input(te_def *d, const char *name, base_dtype t, const ir_expr *const *shape, int n)
{
    if (!d)
        return NULL;
    const ir_buffer *buffer = ir_buffer_new(d->cx, name, t, shape, n);
    if (!buffer || !te_claim_name(d, name, buffer))
        return NULL;
    te_stage *s = te_new_stage(d, TE_INPUT, name, 1);
    te_tensor *tensor = te_new_tensor(d, s, 0, buffer);

    ((te_tensor **)s->output)[0] = tensor;
    base_push(d->cx, &d->stages, s);
    base_push(d->cx, &d->inputs, tensor);
    return tensor;
}

const ir_expr *te_scalar(te_def *d, const char *name, base_dtype t)
{
    const ir_expr *v = d ? ir_data_var(d->cx, name, t) : NULL;

    if (!v || !te_claim_name(d, name, v))
        return NULL;
    base_push(d->cx, &d->scalars, v);
    return v;
}

/* Outputs are handed out in the order of these calls. */
void te_output(te_def *d, te_tensor *t)
{
    if (!d || !t)
        return;
    for (int i = 0; i < d->outputs.n; i++)
        if (d->outputs.at[i] == t) {
            base_fail(d->cx, TEC_INVALID, base_where(d->cx), "'%s' is an output of '%s' already",
                      t->buffer->name, d->name);
            return;
        }
    if (te_stage_is_partial(t->stage))
        base_fail(d->cx, TEC_INVALID, base_where(d->cx),
                  "'%s' cannot be an output of '%s': it has no first steps", t->buffer->name, d->name);
    else if (t->stage->kind == TE_INPUT)
        base_fail(d->cx, TEC_INVALID, base_where(d->cx), "input '%s' of '%s' cannot be its output as well",
                  t->stage->name, d->name);
    else
        base_push(d->cx, &d->outputs, t);
}

/* ---- expressions ---- */

/* An element of the tensor as an expression, one index per dimension. Indices are widened to int64. */
const ir_expr *te_read(te_tensor *t, const ir_expr *const *index, int n)
{
    if (!t)
        return NULL;
    tec_context *cx = t->def->cx;
    const ir_expr **wide = base_array(cx, const ir_expr *, n);

    if (n != t->buffer->n)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "'%s' has %d dimension%s, but is read with %d ind%s", t->buffer->name, t->buffer->n,
                         t->buffer->n == 1 ? "" : "s", n, n == 1 ? "ex" : "ices");
    for (int i = 0; i < n; i++) {
        if (!index[i])
            return NULL;
        wide[i] = base_is_int(index[i]->dtype) ? ir_cast(cx, BASE_I64, index[i]) : index[i];
    }
    return ir_load(cx, t->buffer, wide, n);
}

/* Reduces e over the axes where the condition holds (NULL: everywhere) by a combiner with a well-known name.
 */
const ir_expr *te_reduce_where(tec_context *cx, const char *combiner, const ir_expr *e,
                               const ir_expr *const *axis, int n, const ir_expr *condition)
{
    if (!e)
        return NULL;
    const ir_combiner *c = ir_combiner_named(cx, combiner, e->dtype, BASE_I64);
    if (!c || c->n != 1)
        return base_fail(cx, TEC_INVALID, base_where(cx), "no reduction of one value is named '%s'",
                         combiner);

    const ir_expr **extent = base_array(cx, const ir_expr *, n);
    for (int i = 0; i < n; i++) {
        if (!axis[i])
            return NULL;
        if (!te_axis_is_reduce(axis[i]))
            return base_fail(cx, TEC_INVALID, base_where(cx),
                             "'%s' is reduced over '%s', which is no reduction axis", combiner,
                             ir_expr_text(cx, axis[i]));
        extent[i] = te_axis_extent(axis[i]);
    }
    return ir_reduce(cx, c, &e, axis, extent, n, condition, 0);
}

const ir_expr *te_reduce(tec_context *cx, const char *combiner, const ir_expr *e, const ir_expr *const *axis,
                         int n)
{
    return te_reduce_where(cx, combiner, e, axis, n, NULL);
}

/* A tensor of a scan that is no state: only the steps from `first` on write it, so its first rows hold
 * nothing. */
bool te_stage_is_partial(const te_stage *s)
{
    return s->kind == TE_SCAN && s->scan->first > 0 && !s->init;
}

/* Built anew for each question: symbols and facts may have been added. Sizes are at least 0, since they are
 * extents. */
ir_facts *te_facts(te_def *d)
{
    ir_facts *f = ir_facts_new(d->cx, NULL);

    for (int i = 0; i < d->symbols.n; i++)
        ir_facts_assume(f, ir_ge(d->cx, d->symbols.at[i], ir_int(d->cx, 0)));
    for (int i = 0; i < d->facts.n; i++)
        ir_facts_assume(f, d->facts.at[i]);
    return f;
}

/* The stage is shared by its tensors: a note on one is a note on all. */
void te_note(te_tensor *t, const char *key, const ir_expr *value)
{
    te_stage *s = t ? (te_stage *)t->stage : NULL;

    if (s && value)
        s->notes = ir_note_set(t->def->cx, s->notes, key, value);
}

/* NULL: none of that name so far. A state's tensor is found when its scan is closed, not before. */
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
