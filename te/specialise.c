/* te/specialise.c -- a definition with symbols replaced by constants or by expressions over other symbols.
 *
 *     def f(n, A: f32[n]) ...  with n := 8*q + 3   =>   def f(q, A: f32[8*q + 3]) ...
 *
 * Everything that may mention a symbol is made anew, in order; what is left of the old symbols is shared.
 */
#include "ir/text.h"
#include "ir/walk.h"
#include "te/names.h"

typedef struct {
    tec_context *cx;
    te_def *to;
    ir_subst map; /* old symbols, axes, scalars and buffers to new ones */
} copier;

static const ir_expr *mapped(copier *self, const ir_expr *expr)
{
    return expr ? ir_apply(self->cx, &self->map, expr) : NULL;
}

/* In the order of expr; NULL elements stay NULL. */
static const ir_expr **mapped_all(copier *self, const ir_expr *const *expr, int n)
{
    const ir_expr **out = base_array(self->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        out[i] = mapped(self, expr[i]);
    return out;
}

/* An axis is known by its variable, so the copies must be there before the bodies are mapped. They are made
 * under the names that they have in the text of the original: where an axis n'2 stood beside a symbol n, it
 * keeps this name when n has become a number, so that a schedule of the original finds the same loops. */
static const ir_expr **copy_axes(copier *self, const ir_expr *const *axis, const char *const *name, int count)
{
    const ir_expr **out = base_array(self->cx, const ir_expr *, count);

    for (int i = 0; i < count; i++) {
        const ir_expr *extent = mapped(self, te_axis_extent(axis[i]));

        out[i] = te_axis_is_reduce(axis[i]) ? te_reduce_axis(self->cx, name[i], extent)
                                            : te_axis(self->cx, name[i], extent);
        base_map_put(self->cx, &self->map.vars, axis[i], out[i]);
    }
    return out;
}

/* A reduction is rebuilt by hand, since its axes have new variables and its extents new values. */
static const ir_expr *copy_body(copier *self, const ir_expr *expr)
{
    if (expr->op != IR_REDUCE)
        return mapped(self, expr);
    const ir_expr **axis = base_array(self->cx, const ir_expr *, expr->reduce.n_axes),
                  **extent = base_array(self->cx, const ir_expr *, expr->reduce.n_axes);

    for (int i = 0; i < expr->reduce.n_axes; i++) {
        axis[i] = base_map_get(&self->map.vars, expr->reduce.axis[i]);
        extent[i] = te_axis_extent(axis[i]);
    }
    return ir_reduce(self->cx, expr->reduce.combiner,
                     mapped_all(self, expr->reduce.source, expr->reduce.combiner->n), axis, extent,
                     expr->reduce.n_axes, mapped(self, expr->reduce.condition), expr->reduce.which);
}

static void copy_input(copier *self, const te_stage *stage)
{
    const ir_buffer *b = stage->output[0]->buffer;
    te_tensor *t = te_input(self->to, b->name, b->dtype, mapped_all(self, b->shape, b->n), b->n);

    if (t)
        base_map_put(self->cx, &self->map.buffers, b, t->buffer);
}

static const ir_note *copy_notes(copier *self, const ir_note *notes)
{
    const ir_note *out = NULL;

    for (; notes; notes = notes->next)
        out = ir_note_set(self->cx, out, notes->key, mapped(self, notes->value));
    return out;
}

/* What a stage is made of, with symbols replaced. */
typedef struct {
    const ir_expr **axis, **body;
    const char **name;
    te_tensor **out; /* to fill */
} parts;

/* The axis of time, which the updates of a scan share, has its copy already. */
static parts copy_parts(copier *self, const te_stage *stage)
{
    int n = stage->n_outputs;
    parts p = {.body = base_array(self->cx, const ir_expr *, n),
               .name = base_array(self->cx, const char *, n),
               .out = base_array(self->cx, te_tensor *, n)};
    int timed = stage->scan != NULL;
    te_axis_names names = te_name_axes(self->cx, stage);

    p.axis = base_array(self->cx, const ir_expr *, stage->n_axes);
    copy_axes(self, stage->axis + timed, names.axis + timed, stage->n_axes - timed);
    for (int i = 0; i < stage->n_axes; i++)
        p.axis[i] = base_map_get(&self->map.vars, stage->axis[i]);
    if (stage->n_reduce)
        copy_axes(self, stage->reduce_axis, names.reduce, stage->n_reduce);
    for (int i = 0; i < n; i++) {
        p.name[i] = stage->output[i]->buffer->name;
        p.body[i] = copy_body(self, stage->body[i]);
    }
    base_set_where(self->cx, stage->loc);
    self->to->role = stage->role;
    return p;
}

/* From here on, reads of the old outputs become reads of the new ones. */
static void end_stage(copier *self, const te_stage *stage, const parts *pieces)
{
    ((te_stage *)pieces->out[0]->stage)->notes = copy_notes(self, stage->notes);
    for (int i = 0; i < stage->n_outputs; i++)
        base_map_put(self->cx, &self->map.buffers, stage->output[i]->buffer, pieces->out[i]->buffer);
}

static void copy_stage(copier *self, const te_stage *stage)
{
    parts p = copy_parts(self, stage);

    if (te_compute_named(self->to, stage->name, p.name, p.axis, stage->n_axes, p.body, stage->n_outputs,
                         p.out))
        end_stage(self, stage, &p);
}

/* Through the same constructors as the original: whatever no longer holds with the new sizes is reported
 * there. */
static void copy_scan(copier *self, const te_scan *scan)
{
    base_set_where(self->cx, scan->loc);
    const char *time = te_time_name(self->cx, scan);
    te_scan *to = te_scan_new(self->to, scan->name, copy_axes(self, &scan->time, &time, 1)[0]);

    for (int i = 0; i < scan->states.n && to; i++) {
        const te_stage *init = ((te_tensor *)scan->states.at[i])->stage->init;
        parts p = copy_parts(self, init);

        p.out[0] = te_scan_state(to, p.name[0], p.axis, init->n_axes, p.body[0]);
        if (p.out[0])
            end_stage(self, init, &p);
    }
    for (int i = 0; i < scan->steps.n && to; i++) {
        const te_stage *step = scan->steps.at[i];
        parts p = copy_parts(self, step);

        if (te_scan_step_named(to, step->name, p.name, p.axis, step->n_axes, p.body, step->n_outputs, p.out))
            end_stage(self, step, &p);
    }
    te_scan_close(to);
}

/* The call with mapped shapes and arguments and the new definition's tensors. */
static void copy_extern(copier *self, const te_stage *stage)
{
    te_call call = *stage->call;
    te_tensor **input = base_array(self->cx, te_tensor *, call.n_inputs),
              **out = base_array(self->cx, te_tensor *, call.n_outputs);
    te_extern_output *output = base_copy(self->cx, call.output, (size_t)call.n_outputs * sizeof *output);

    for (int i = 0; i < call.n_inputs; i++)
        input[i] = te_tensor_named(self->to, call.input[i]->buffer->name);
    for (int i = 0; i < call.n_outputs; i++)
        output[i].shape = mapped_all(self, output[i].shape, output[i].n);
    call.input = input;
    call.output = output;
    call.arg = mapped_all(self, call.arg, call.n_args);
    base_set_where(self->cx, stage->loc);
    self->to->role = stage->role;
    if (!te_extern(self->to, &call, out))
        return;
    ((te_stage *)out[0]->stage)->notes = copy_notes(self, stage->notes);
    for (int i = 0; i < call.n_outputs; i++)
        base_map_put(self->cx, &self->map.buffers, stage->output[i]->buffer, out[i]->buffer);
}

static void keep_symbol(te_def *def, const ir_expr *symbol)
{
    for (int i = 0; i < def->symbols.n; i++)
        if (def->symbols.at[i] == symbol)
            return;
    base_push(def->cx, &def->symbols, symbol);
}

/* Symbols that stay come first, then those of the values. */
static void copy_symbols(copier *self, const te_def *def, const ir_expr *const *value, int count)
{
    for (int i = 0; i < def->symbols.n; i++)
        if (!base_map_has(&self->map.vars, def->symbols.at[i]))
            keep_symbol(self->to, def->symbols.at[i]);
    for (int i = 0; i < count; i++) {
        base_vec vars = {0};

        ir_free_vars(self->cx, value[i], &vars);
        for (int j = 0; j < vars.n; j++)
            keep_symbol(self->to, vars.at[j]);
    }
}

/* A fact that has become true is dropped; one that has become false is an error, found before any stage is
 * made. */
static void copy_facts(copier *self, const te_def *def)
{
    for (int i = 0; i < def->facts.n; i++) {
        const ir_expr *fact = mapped(self, def->facts.at[i]);
        int64_t holds;

        if (!fact || !ir_is_int(fact, &holds))
            te_fact(self->to, fact);
        else if (!holds)
            base_fail(self->cx, TEC_INVALID, fact->loc,
                      "'%s' requires %s, which does not hold for the given sizes", def->name,
                      ir_expr_text(self->cx, def->facts.at[i]));
    }
}

/* symbol[i] becomes value[i]. Symbols inside the values become symbols of the new definition, which lives in
 * cx. */
te_def *te_specialise(tec_context *cx, const te_def *def, const ir_expr *const *symbol,
                      const ir_expr *const *value, int count)
{
    if (!def)
        return NULL;
    copier c = {.cx = cx, .to = te_def_new(cx, def->name)};

    c.to->loc = def->loc;
    for (int i = 0; i < count; i++)
        base_map_put(cx, &c.map.vars, symbol[i], value[i]);
    copy_symbols(&c, def, value, count);
    copy_facts(&c, def);
    for (int i = 0; i < def->scalars.n; i++) {
        const ir_expr *s = def->scalars.at[i];

        base_map_put(cx, &c.map.vars, s, te_scalar(c.to, s->var.name, s->dtype));
    }
    for (int i = 0; i < def->stages.n && !base_failed(cx); i++) {
        const te_stage *s = def->stages.at[i];

        if (s->kind == TE_INPUT)
            copy_input(&c, s);
        else if (s->kind == TE_SCAN && s == s->scan->steps.at[0])
            copy_scan(&c, s->scan);
        else if (s->kind == TE_COMPUTE)
            copy_stage(&c, s);
        else if (s->kind == TE_EXTERN)
            copy_extern(&c, s);
    }
    for (int i = 0; i < def->outputs.n && !base_failed(cx); i++)
        te_output(c.to, te_tensor_named(c.to, ((const te_tensor *)def->outputs.at[i])->buffer->name));
    return base_failed(cx) ? NULL : c.to;
}
