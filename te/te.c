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
    te_def *def = base_new(cx, te_def);

    def->cx = cx;
    def->name = base_strdup(cx, name);
    def->loc = base_where(cx);
    return def;
}

/* ---- symbols, inputs, outputs ---- */

/* The symbol of that name, which exists once in a definition; extents that name it agree by that. */
const ir_expr *te_symbol(te_def *def, const char *name)
{
    if (!def)
        return NULL;
    for (int i = 0; i < def->symbols.n; i++) {
        const ir_expr *s = def->symbols.at[i];

        if (base_same(s->var.name, name))
            return s;
    }
    const ir_expr *s = ir_var(def->cx, name, BASE_I64);
    base_push(def->cx, &def->symbols, s);
    return s;
}

/* Variables of expr that the definition does not know yet become its symbols; axes are none. */
void te_use_symbols(te_def *def, const ir_expr *expr)
{
    base_vec vars = {0};

    if (!def || !expr)
        return;
    ir_free_vars(def->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool known = te_axis_extent(vars.at[i]);

        for (int j = 0; j < def->symbols.n; j++)
            known = known || def->symbols.at[j] == vars.at[i];
        if (!known)
            base_push(def->cx, &def->symbols, vars.at[i]);
    }
}

void te_fact(te_def *def, const ir_expr *condition)
{
    if (!def || !condition)
        return;
    if (!base_is_bool(condition->dtype))
        base_fail(def->cx, TEC_INVALID, condition->loc, "expected a condition as a fact, found '%s'",
                  ir_expr_text(def->cx, condition));
    else
        base_push(def->cx, &def->facts, condition);
}

/* Tensors, scalars and stages share one set of names, because schedules find blocks and buffers by name. */
bool te_claim_name(te_def *def, const char *name, const void *what)
{
    if (base_dict_has(&def->names, name)) {
        base_fail(def->cx, TEC_INVALID, base_where(def->cx), "'%s' is defined twice in '%s'", name,
                  def->name);
        return false;
    }
    base_dict_put(def->cx, &def->names, base_strdup(def->cx, name), what);
    return true;
}

te_tensor *te_new_tensor(te_def *def, te_stage *stage, int which, const ir_buffer *buffer)
{
    te_tensor *t = base_new(def->cx, te_tensor);

    *t = (te_tensor){.def = def, .stage = stage, .which = which, .buffer = buffer};
    return t;
}

te_stage *te_new_stage(te_def *def, te_kind kind, const char *name, int n_outputs)
{
    te_stage *stage = base_new(def->cx, te_stage);

    stage->kind = kind;
    stage->name = base_strdup(def->cx, name);
    stage->role = def->role;
    stage->n_outputs = n_outputs;
    stage->output = base_array(def->cx, te_tensor *, n_outputs);
    stage->loc = base_where(def->cx);
    return stage;
}

/* A parameter tensor. NULL with an error where the name is taken. */
te_tensor *te_input(te_def *def, const char *name, base_dtype dtype, const ir_expr *const *shape, int count)
{
    if (!def)
        return NULL;
    const ir_buffer *buffer = ir_buffer_new(def->cx, name, dtype, shape, count);
    if (!buffer || !te_claim_name(def, name, buffer))
        return NULL;
    te_stage *stage = te_new_stage(def, TE_INPUT, name, 1);
    te_tensor *tensor = te_new_tensor(def, stage, 0, buffer);

    ((te_tensor **)stage->output)[0] = tensor;
    base_push(def->cx, &def->stages, stage);
    base_push(def->cx, &def->inputs, tensor);
    return tensor;
}

const ir_expr *te_scalar(te_def *def, const char *name, base_dtype dtype)
{
    const ir_expr *v = def ? ir_data_var(def->cx, name, dtype) : NULL;

    if (!v || !te_claim_name(def, name, v))
        return NULL;
    base_push(def->cx, &def->scalars, v);
    return v;
}

/* Outputs are handed out in the order of these calls. */
void te_output(te_def *def, te_tensor *tensor)
{
    if (!def || !tensor)
        return;
    for (int i = 0; i < def->outputs.n; i++)
        if (def->outputs.at[i] == tensor) {
            base_fail(def->cx, TEC_INVALID, base_where(def->cx), "'%s' is an output of '%s' already",
                      tensor->buffer->name, def->name);
            return;
        }
    if (te_stage_is_partial(tensor->stage))
        base_fail(def->cx, TEC_INVALID, base_where(def->cx),
                  "'%s' cannot be an output of '%s': it has no first steps", tensor->buffer->name, def->name);
    else if (tensor->stage->kind == TE_INPUT)
        base_fail(def->cx, TEC_INVALID, base_where(def->cx),
                  "input '%s' of '%s' cannot be its output as well", tensor->stage->name, def->name);
    else
        base_push(def->cx, &def->outputs, tensor);
}

/* ---- expressions ---- */

/* An element of the tensor as an expression, one index per dimension. Indices are widened to int64. */
const ir_expr *te_read(te_tensor *tensor, const ir_expr *const *index, int count)
{
    if (!tensor)
        return NULL;
    tec_context *cx = tensor->def->cx;
    const ir_expr **wide = base_array(cx, const ir_expr *, count);

    if (count != tensor->buffer->n)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "'%s' has %d dimension%s, but is read with %d ind%s", tensor->buffer->name,
                         tensor->buffer->n, tensor->buffer->n == 1 ? "" : "s", count,
                         count == 1 ? "ex" : "ices");
    for (int i = 0; i < count; i++) {
        if (!index[i])
            return NULL;
        wide[i] = base_is_int(index[i]->dtype) ? ir_cast(cx, BASE_I64, index[i]) : index[i];
    }
    return ir_load(cx, tensor->buffer, wide, count);
}

/* Reduces expr over the axes where the condition holds (NULL: everywhere) by a combiner with a well-known
 * name.
 */
const ir_expr *te_reduce_where(tec_context *cx, const char *combiner, const ir_expr *expr,
                               const ir_expr *const *axis, int count, const ir_expr *condition)
{
    if (!expr)
        return NULL;
    const ir_combiner *c = ir_combiner_named(cx, combiner, expr->dtype, BASE_I64);
    if (!c || c->n != 1)
        return base_fail(cx, TEC_INVALID, base_where(cx), "no reduction of one value is named '%s'",
                         combiner);

    const ir_expr **extent = base_array(cx, const ir_expr *, count);
    for (int i = 0; i < count; i++) {
        if (!axis[i])
            return NULL;
        if (!te_axis_is_reduce(axis[i]))
            return base_fail(cx, TEC_INVALID, base_where(cx),
                             "'%s' reduces over '%s', which is not a reduction axis", combiner,
                             ir_expr_text(cx, axis[i]));
        extent[i] = te_axis_extent(axis[i]);
    }
    return ir_reduce(cx, c, &expr, axis, extent, count, condition, 0);
}

const ir_expr *te_reduce(tec_context *cx, const char *combiner, const ir_expr *expr,
                         const ir_expr *const *axis, int n)
{
    return te_reduce_where(cx, combiner, expr, axis, n, NULL);
}

/* A tensor of a scan that is no state: only the steps from `first` on write it, so its first rows hold
 * nothing. */
bool te_stage_is_partial(const te_stage *stage)
{
    return stage->kind == TE_SCAN && stage->scan->first > 0 && !stage->init;
}

/* Built anew for each question: symbols and facts may have been added. Sizes are at least 0, since they are
 * extents. */
ir_facts *te_facts(te_def *def)
{
    ir_facts *f = ir_facts_new(def->cx, NULL);

    for (int i = 0; i < def->symbols.n; i++)
        ir_facts_assume(f, ir_ge(def->cx, def->symbols.at[i], ir_int(def->cx, 0)));
    for (int i = 0; i < def->facts.n; i++)
        ir_facts_assume(f, def->facts.at[i]);
    return f;
}

/* The stage is shared by its tensors: a note on one is a note on all. */
void te_note(te_tensor *tensor, const char *key, const ir_expr *value)
{
    te_stage *s = tensor ? (te_stage *)tensor->stage : NULL;

    if (s && value)
        s->notes = ir_note_set(tensor->def->cx, s->notes, key, value);
}

/* NULL: none of that name so far. A state's tensor is found when its scan is closed, not before. */
te_tensor *te_tensor_named(const te_def *def, const char *name)
{
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        for (int j = 0; j < stage->n_outputs; j++)
            if (base_same(stage->output[j]->buffer->name, name))
                return stage->output[j];
    }
    return NULL;
}
