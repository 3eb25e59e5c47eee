/* te/print.c -- definitions as `.te` text. Extents are always written out, so that the text says all that the
 * definition holds.
 *
 * An axis that has the name of a symbol, a scalar or another axis of its stage gets one of its own: inside
 * the stage it would hide them.
 */
#include "ir/text.h"
#include "ir/walk.h"
#include "te/text.h"

/* The axes of one stage under names of their own. */
typedef struct {
    tec_context *cx;
    base_dict taken;
    ir_subst map; /* axis -> variable of another name */
} naming;

/* Gives each axis a name that no other has in this stage, in the order in which they come: the first keeps
 * its own. Printed text read again gives a definition with the new name. */
static void name_axes(naming *n, const ir_expr *const *axis, int count)
{
    for (int i = 0; i < count; i++) {
        const char *wanted = axis[i]->var.name, *name = wanted;

        for (int k = 2; base_dict_has(&n->taken, name); k++)
            name = base_format(n->cx, "%s'%d", wanted, k);
        base_dict_put(n->cx, &n->taken, name, axis[i]);
        if (name != wanted)
            base_map_put(n->cx, &n->map.vars, axis[i], ir_var(n->cx, name, BASE_I64));
    }
}

/* Symbols and scalars keep their names, so they come first. Names of tensors are no matter: they stand before
 * a bracket. */
static naming open_naming(tec_context *cx, const te_def *d, const te_stage *s)
{
    naming n = {.cx = cx};

    for (int i = 0; i < d->symbols.n; i++)
        base_dict_put(cx, &n.taken, ((const ir_expr *)d->symbols.at[i])->var.name, d);
    for (int i = 0; i < d->scalars.n; i++)
        base_dict_put(cx, &n.taken, ((const ir_expr *)d->scalars.at[i])->var.name, d);
    name_axes(&n, s->axis, s->n_axes);
    name_axes(&n, s->reduce_axis, s->n_reduce);
    return n;
}

static const char *shown(const naming *n, const ir_expr *e)
{
    return ir_expr_text(n->cx, ir_apply(n->cx, &n->map, e));
}

static void add_shape(tec_context *cx, base_text *t, const ir_buffer *b)
{
    base_addf(cx, t, "%s[", base_dtype_text(cx, b->dtype));
    for (int i = 0; i < b->n; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "", ir_expr_text(cx, b->shape[i]));
    base_add(cx, t, "]");
}

/* NAME(symbols, inputs, scalars) where facts */
static void add_head(tec_context *cx, base_text *t, const te_def *d)
{
    const char *sep = "";

    base_addf(cx, t, "%s(", d->name);
    for (int i = 0; i < d->symbols.n; i++, sep = ", ")
        base_addf(cx, t, "%s%s", sep, ((const ir_expr *)d->symbols.at[i])->var.name);
    for (int i = 0; i < d->inputs.n; i++, sep = ", ") {
        const ir_buffer *b = ((const te_tensor *)d->inputs.at[i])->buffer;

        base_addf(cx, t, "%s%s: ", sep, b->name);
        add_shape(cx, t, b);
    }
    for (int i = 0; i < d->scalars.n; i++, sep = ", ") {
        const ir_expr *s = d->scalars.at[i];

        base_addf(cx, t, "%s%s: %s", sep, s->var.name, base_dtype_text(cx, s->dtype));
    }
    base_add(cx, t, ")");
    for (int i = 0; i < d->facts.n; i++)
        base_addf(cx, t, "%s%s", i ? ", " : " where ", ir_expr_text(cx, d->facts.at[i]));
}

/* A time axis stands without its extent, which its scan has shown. */
static void add_axes(const naming *own, base_text *t, const ir_expr *const *axis,
                     const ir_expr *const *extent, int n, bool timed)
{
    tec_context *cx = own->cx;

    base_add(cx, t, "[");
    for (int i = 0; i < n; i++) {
        base_addf(cx, t, "%s%s", i ? ", " : "", shown(own, axis[i]));
        if (i || !timed)
            base_addf(cx, t, ": %s", ir_expr_text(cx, extent[i]));
    }
    base_add(cx, t, "]");
}

static void add_reduction(const naming *own, base_text *t, const ir_expr *e)
{
    tec_context *cx = own->cx;

    base_add(cx, t, e->reduce.combiner->name);
    add_axes(own, t, e->reduce.axis, e->reduce.extent, e->reduce.n_axes, false);
    base_add(cx, t, "(");
    for (int i = 0; i < e->reduce.combiner->n; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "", shown(own, e->reduce.source[i]));
    if (e->reduce.condition)
        base_addf(cx, t, " where %s", shown(own, e->reduce.condition));
    base_add(cx, t, ")");
}

/* A user's combiners are declared before the stages that use them. */
static void add_combiner(tec_context *cx, base_text *t, const te_stage *s, base_dict *done)
{
    const ir_combiner *c = s && s->body && s->body[0]->op == IR_REDUCE ? s->body[0]->reduce.combiner : NULL;

    if (!c || ir_combiner_is_named(cx, c) || base_dict_has(done, c->name))
        return;
    base_dict_put(cx, done, c->name, c);
    base_addf(cx, t, "  %s\n", ir_combiner_text(cx, c));
}

static void add_combiners(tec_context *cx, base_text *t, const te_stage *s, base_dict *done)
{
    add_combiner(cx, t, s->init, done);
    add_combiner(cx, t, s, done);
}

/* NAME for one output, NAME(A, B) for several. */
static void add_names(tec_context *cx, base_text *t, const te_stage *s)
{
    base_add(cx, t, s->n_outputs == 1 ? s->output[0]->buffer->name : s->name);
    if (s->n_outputs == 1)
        return;
    for (int i = 0; i < s->n_outputs; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "(", s->output[i]->buffer->name);
    base_add(cx, t, ")");
}

/* One reduction for all outputs is written once. */
static void add_body(const naming *own, base_text *t, const te_stage *s)
{
    if (s->body[0]->op == IR_REDUCE) {
        add_reduction(own, t, s->body[0]);
        return;
    }
    for (int i = 0; i < s->n_outputs; i++)
        base_addf(own->cx, t, "%s%s", i ? ", " : "", shown(own, s->body[i]));
}

/* Also ends the line. */
static void add_notes(tec_context *cx, base_text *t, const te_stage *s)
{
    if (s->role != IR_ROLE_NONE)
        base_addf(cx, t, " @role(%s)", ir_role_text(s->role));
    for (const ir_note *note = s->notes; note; note = note->next)
        base_addf(cx, t, " @%s(%s)", note->key, ir_expr_text(cx, note->value));
    base_add(cx, t, "\n");
}

/* `prefix`: what stands before the name. */
static void add_stage(tec_context *cx, base_text *t, const te_def *d, const te_stage *s, const char *prefix)
{
    naming own = open_naming(cx, d, s);

    base_add(cx, t, prefix);
    add_names(cx, t, s);
    add_axes(&own, t, s->axis, s->extent, s->n_axes, s->scan != NULL);
    base_add(cx, t, " = ");
    add_body(&own, t, s);
    add_notes(cx, t, s);
}

/* The lines of a text, each with `margin` before it but for the first. */
static void add_lines(tec_context *cx, base_text *t, const char *text, const char *margin)
{
    for (; *text; text++) {
        if (*text != '\n' || text[1])
            base_addn(cx, t, text, 1);
        if (*text == '\n' && text[1])
            base_add(cx, t, margin);
    }
}

static void add_extern_outputs(tec_context *cx, base_text *t, const te_stage *s)
{
    base_addf(cx, t, "  extern %s", s->n_outputs == 1 ? "" : s->name);
    for (int i = 0; i < s->n_outputs; i++) {
        base_addf(cx, t, "%s%s: ", s->n_outputs == 1 ? "" : i ? ", " : "(", s->output[i]->buffer->name);
        add_shape(cx, t, s->output[i]->buffer);
    }
    base_add(cx, t, s->n_outputs == 1 ? "" : ")");
}

/* extern outputs = function(inputs, arguments) means definition */
static void add_extern(tec_context *cx, base_text *t, const te_stage *s)
{
    const te_call *c = s->call;
    const char *sep = "";

    add_extern_outputs(cx, t, s);
    base_addf(cx, t, " = %s(", c->function);
    for (int i = 0; i < c->n_inputs; i++, sep = ", ")
        base_addf(cx, t, "%s%s", sep, c->input[i]->buffer->name);
    for (int i = 0; i < c->n_args; i++, sep = ", ")
        base_addf(cx, t, "%s%s", sep, ir_expr_text(cx, c->arg[i]));
    base_add(cx, t, ")");
    if (c->meaning) {
        base_add(cx, t, " means ");
        add_lines(cx, t, te_text(cx, c->meaning), "  ");
    }
    add_notes(cx, t, s);
}

/* Time has one name for all updates. It is the first that each of them takes, so that none gives it
 * another. */
static void add_scan(tec_context *cx, base_text *t, const te_def *d, const te_scan *s)
{
    naming own = open_naming(cx, d, &(te_stage){.n_axes = 1, .axis = &s->time});

    base_addf(cx, t, "  scan %s", s->name);
    add_axes(&own, t, &s->time, &s->extent, 1, false);
    base_add(cx, t, " {\n");
    for (int i = 0; i < s->states.n; i++)
        add_stage(cx, t, d, ((te_tensor *)s->states.at[i])->stage->init, "    init ");
    for (int i = 0; i < s->steps.n; i++)
        add_stage(cx, t, d, s->steps.at[i], "    update ");
    base_add(cx, t, "  }\n");
}

/* The whole definition but for its closing brace. */
static void add_def(tec_context *cx, base_text *t, const te_def *d)
{
    base_dict combiners = {0};

    add_head(cx, t, d);
    base_add(cx, t, " {\n");
    for (int i = 0; i < d->stages.n; i++)
        add_combiners(cx, t, d->stages.at[i], &combiners);
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        if (s->kind == TE_COMPUTE)
            add_stage(cx, t, d, s, "  ");
        else if (s->kind == TE_SCAN && s == s->scan->steps.at[0])
            add_scan(cx, t, d, s->scan);
        else if (s->kind == TE_EXTERN)
            add_extern(cx, t, s);
    }
    for (int i = 0; i < d->outputs.n; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "  return ", ((const te_tensor *)d->outputs.at[i])->buffer->name);
    base_add(cx, t, "\n");
}

const char *te_text(tec_context *cx, const te_def *d)
{
    base_text t = {0};

    if (!d)
        return NULL;
    base_add(cx, &t, "def ");
    add_def(cx, &t, d);
    base_add(cx, &t, "}\n");
    return base_text_str(cx, &t);
}

static void add_operand(tec_context *cx, base_text *t, const te_operand *o)
{
    for (int i = 0; o->strides && i < o->buffer->n; i++)
        base_addf(cx, t, "%s%s%s", i ? ", " : base_format(cx, "  strides %s[", o->buffer->name),
                  ir_expr_text(cx, o->strides[i]), i + 1 < o->buffer->n ? "" : "]\n");
    if (o->align)
        base_addf(cx, t, "  align %s %d\n", o->buffer->name, o->align);
    if (o->scope != IR_GLOBAL)
        base_addf(cx, t, "  scope %s %s\n", o->buffer->name, ir_scope_text(o->scope));
}

/* The declaration as te_parse reads it. */
const char *te_intrinsic_text(tec_context *cx, const te_intrinsic *in)
{
    base_text t = {0};

    if (!in)
        return NULL;
    base_add(cx, &t, "intrinsic ");
    add_def(cx, &t, in->behaviour);
    for (int i = 0; i < in->operands.n; i++)
        add_operand(cx, &t, in->operands.at[i]);
    for (int i = 0; i < TE_N_FORMS; i++)
        if (in->text[i])
            base_addf(cx, &t, "  %s %s\n", te_form_text((te_form)i),
                      ir_expr_text(cx, ir_string(cx, in->text[i])));
    base_add(cx, &t, "}\n");
    return base_text_str(cx, &t);
}
