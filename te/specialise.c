/* te/specialise.c -- a definition with symbols replaced by constants or by expressions over other symbols.
 *
 *     def f(n, A: f32[n]) ...  with n := 8*q + 3   =>   def f(q, A: f32[8*q + 3]) ...
 *
 * Everything that may mention a symbol is made anew, in order; what is left of the old symbols is shared.
 */
#include "ir/text.h"
#include "ir/walk.h"
#include "te/te.h"

typedef struct {
    tec_context *cx;
    te_def *to;
    ir_subst map; /* old symbols, axes, scalars and buffers to new ones */
} copier;

static const ir_expr *mapped(copier *c, const ir_expr *e)
{
    return e ? ir_apply(c->cx, &c->map, e) : NULL;
}

/* In the order of e; NULL elements stay NULL. */
static const ir_expr **mapped_all(copier *c, const ir_expr *const *e, int n)
{
    const ir_expr **out = base_array(c->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        out[i] = mapped(c, e[i]);
    return out;
}

/* An axis is known by its variable, so the copies must be there before the bodies are mapped. */
static const ir_expr **copy_axes(copier *c, const ir_expr *const *axis, int n)
{
    const ir_expr **out = base_array(c->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++) {
        const ir_expr *extent = mapped(c, te_axis_extent(axis[i]));

        out[i] = te_axis_is_reduce(axis[i]) ? te_reduce_axis(c->cx, axis[i]->var.name, extent)
                                            : te_axis(c->cx, axis[i]->var.name, extent);
        base_map_put(c->cx, &c->map.vars, axis[i], out[i]);
    }
    return out;
}

/* A reduction is rebuilt by hand, since its axes have new variables and its extents new values. */
static const ir_expr *copy_body(copier *c, const ir_expr *e)
{
    if (e->op != IR_REDUCE)
        return mapped(c, e);
    const ir_expr **axis = base_array(c->cx, const ir_expr *, e->reduce.n_axes),
                  **extent = base_array(c->cx, const ir_expr *, e->reduce.n_axes);

    for (int i = 0; i < e->reduce.n_axes; i++) {
        axis[i] = base_map_get(&c->map.vars, e->reduce.axis[i]);
        extent[i] = te_axis_extent(axis[i]);
    }
    return ir_reduce(c->cx, e->reduce.combiner, mapped_all(c, e->reduce.source, e->reduce.combiner->n), axis,
                     extent, e->reduce.n_axes, mapped(c, e->reduce.condition), e->reduce.which);
}

static void copy_input(copier *c, const te_stage *s)
{
    const ir_buffer *b = s->output[0]->buffer;
    te_tensor *t = te_input(c->to, b->name, b->dtype, mapped_all(c, b->shape, b->n), b->n);

    if (t)
        base_map_put(c->cx, &c->map.buffers, b, t->buffer);
}

static const ir_note *copy_notes(copier *c, const ir_note *notes)
{
    const ir_note *out = NULL;

    for (; notes; notes = notes->next)
        out = ir_note_set(c->cx, out, notes->key, mapped(c, notes->value));
    return out;
}

/* What a stage is made of, with symbols replaced. */
typedef struct {
    const ir_expr **axis, **body;
    const char **name;
    te_tensor **out; /* to fill */
} parts;

/* The axis of time, which the updates of a scan share, has its copy already. */
static parts copy_parts(copier *c, const te_stage *s)
{
    int n = s->n_outputs;
    parts p = {.body = base_array(c->cx, const ir_expr *, n),
               .name = base_array(c->cx, const char *, n),
               .out = base_array(c->cx, te_tensor *, n)};
    int timed = s->scan != NULL;

    p.axis = base_array(c->cx, const ir_expr *, s->n_axes);
    copy_axes(c, s->axis + timed, s->n_axes - timed);
    for (int i = 0; i < s->n_axes; i++)
        p.axis[i] = base_map_get(&c->map.vars, s->axis[i]);
    if (s->n_reduce)
        copy_axes(c, s->body[0]->reduce.axis, s->n_reduce);
    for (int i = 0; i < n; i++) {
        p.name[i] = s->output[i]->buffer->name;
        p.body[i] = copy_body(c, s->body[i]);
    }
    base_set_where(c->cx, s->loc);
    c->to->role = s->role;
    return p;
}

/* From here on, reads of the old outputs become reads of the new ones. */
static void end_stage(copier *c, const te_stage *s, const parts *p)
{
    ((te_stage *)p->out[0]->stage)->notes = copy_notes(c, s->notes);
    for (int i = 0; i < s->n_outputs; i++)
        base_map_put(c->cx, &c->map.buffers, s->output[i]->buffer, p->out[i]->buffer);
}

static void copy_stage(copier *c, const te_stage *s)
{
    parts p = copy_parts(c, s);

    if (te_compute_named(c->to, s->name, p.name, p.axis, s->n_axes, p.body, s->n_outputs, p.out))
        end_stage(c, s, &p);
}

/* Through the same constructors as the original: whatever no longer holds with the new sizes is reported
 * there. */
static void copy_scan(copier *c, const te_scan *s)
{
    base_set_where(c->cx, s->loc);
    te_scan *to = te_scan_new(c->to, s->name, copy_axes(c, &s->time, 1)[0]);

    for (int i = 0; i < s->states.n && to; i++) {
        const te_stage *init = ((te_tensor *)s->states.at[i])->stage->init;
        parts p = copy_parts(c, init);

        p.out[0] = te_scan_state(to, p.name[0], p.axis, init->n_axes, p.body[0]);
        if (p.out[0])
            end_stage(c, init, &p);
    }
    for (int i = 0; i < s->steps.n && to; i++) {
        const te_stage *step = s->steps.at[i];
        parts p = copy_parts(c, step);

        if (te_scan_step_named(to, step->name, p.name, p.axis, step->n_axes, p.body, step->n_outputs, p.out))
            end_stage(c, step, &p);
    }
    te_scan_close(to);
}

/* The call with mapped shapes and arguments and the new definition's tensors. */
static void copy_extern(copier *c, const te_stage *s)
{
    te_call call = *s->call;
    te_tensor **input = base_array(c->cx, te_tensor *, call.n_inputs),
              **out = base_array(c->cx, te_tensor *, call.n_outputs);
    te_extern_output *output = base_copy(c->cx, call.output, (size_t)call.n_outputs * sizeof *output);

    for (int i = 0; i < call.n_inputs; i++)
        input[i] = te_tensor_named(c->to, call.input[i]->buffer->name);
    for (int i = 0; i < call.n_outputs; i++)
        output[i].shape = mapped_all(c, output[i].shape, output[i].n);
    call.input = input;
    call.output = output;
    call.arg = mapped_all(c, call.arg, call.n_args);
    base_set_where(c->cx, s->loc);
    c->to->role = s->role;
    if (!te_extern(c->to, &call, out))
        return;
    ((te_stage *)out[0]->stage)->notes = copy_notes(c, s->notes);
    for (int i = 0; i < call.n_outputs; i++)
        base_map_put(c->cx, &c->map.buffers, s->output[i]->buffer, out[i]->buffer);
}

static void keep_symbol(te_def *d, const ir_expr *symbol)
{
    for (int i = 0; i < d->symbols.n; i++)
        if (d->symbols.at[i] == symbol)
            return;
    base_push(d->cx, &d->symbols, symbol);
}

/* Symbols that stay come first, then those of the values. */
static void copy_symbols(copier *c, const te_def *d, const ir_expr *const *value, int n)
{
    for (int i = 0; i < d->symbols.n; i++)
        if (!base_map_has(&c->map.vars, d->symbols.at[i]))
            keep_symbol(c->to, d->symbols.at[i]);
    for (int i = 0; i < n; i++) {
        base_vec vars = {0};

        ir_free_vars(c->cx, value[i], &vars);
        for (int j = 0; j < vars.n; j++)
            keep_symbol(c->to, vars.at[j]);
    }
}

/* A fact that has become true is dropped; one that has become false is an error, found before any stage is
 * made. */
static void copy_facts(copier *c, const te_def *d)
{
    for (int i = 0; i < d->facts.n; i++) {
        const ir_expr *fact = mapped(c, d->facts.at[i]);
        int64_t holds;

        if (!fact || !ir_is_int(fact, &holds))
            te_fact(c->to, fact);
        else if (!holds)
            base_fail(c->cx, TEC_INVALID, fact->loc, "'%s' promises %s, which the given sizes break", d->name,
                      ir_expr_text(c->cx, d->facts.at[i]));
    }
}

/* symbol[i] becomes value[i]. Symbols inside the values become symbols of the new definition, which lives in
 * cx. */
te_def *te_specialise(tec_context *cx, const te_def *d, const ir_expr *const *symbol,
                      const ir_expr *const *value, int n)
{
    if (!d)
        return NULL;
    copier c = {.cx = cx, .to = te_def_new(cx, d->name)};

    c.to->loc = d->loc;
    for (int i = 0; i < n; i++)
        base_map_put(cx, &c.map.vars, symbol[i], value[i]);
    copy_symbols(&c, d, value, n);
    copy_facts(&c, d);
    for (int i = 0; i < d->scalars.n; i++) {
        const ir_expr *s = d->scalars.at[i];

        base_map_put(cx, &c.map.vars, s, te_scalar(c.to, s->var.name, s->dtype));
    }
    for (int i = 0; i < d->stages.n && !base_failed(cx); i++) {
        const te_stage *s = d->stages.at[i];

        if (s->kind == TE_INPUT)
            copy_input(&c, s);
        else if (s->kind == TE_SCAN && s == s->scan->steps.at[0])
            copy_scan(&c, s->scan);
        else if (s->kind == TE_COMPUTE)
            copy_stage(&c, s);
        else if (s->kind == TE_EXTERN)
            copy_extern(&c, s);
    }
    for (int i = 0; i < d->outputs.n && !base_failed(cx); i++)
        te_output(c.to, te_tensor_named(c.to, ((const te_tensor *)d->outputs.at[i])->buffer->name));
    return base_failed(cx) ? NULL : c.to;
}
