/* te/print.c -- definitions as `.te` text. Extents are always written out, so that the text says all that the definition holds. */
#include "ir/text.h"
#include "ir/walk.h"
#include "te/text.h"

static void add_shape(tec_context *cx, base_text *t, const ir_buffer *b)
{
    base_addf(cx, t, "%s[", base_dtype_text(cx, b->dtype));
    for (int i = 0; i < b->n; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "", ir_expr_text(cx, b->shape[i]));
    base_add(cx, t, "]");
}

static void add_head(tec_context *cx, base_text *t, const te_def *d)
{
    const char *sep = "";

    base_addf(cx, t, "def %s(", d->name);
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

static void add_axes(tec_context *cx, base_text *t, const ir_expr *const *axis, const ir_expr *const *extent, int n)
{
    base_add(cx, t, "[");
    for (int i = 0; i < n; i++)
        base_addf(cx, t, "%s%s: %s", i ? ", " : "", axis[i]->var.name, ir_expr_text(cx, extent[i]));
    base_add(cx, t, "]");
}

static void add_reduction(tec_context *cx, base_text *t, const ir_expr *e)
{
    base_add(cx, t, e->reduce.combiner->name);
    add_axes(cx, t, e->reduce.axis, e->reduce.extent, e->reduce.n_axes);
    base_add(cx, t, "(");
    for (int i = 0; i < e->reduce.combiner->n; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "", ir_expr_text(cx, e->reduce.source[i]));
    if (e->reduce.condition)
        base_addf(cx, t, " where %s", ir_expr_text(cx, e->reduce.condition));
    base_add(cx, t, ")");
}

/* A user's combiners are declared before the stages that use them. */
static void add_combiner(tec_context *cx, base_text *t, const te_stage *s, base_dict *done)
{
    const ir_combiner *c = s->kind == TE_COMPUTE && s->body[0]->op == IR_REDUCE ? s->body[0]->reduce.combiner : NULL;

    if (!c || ir_combiner_is_named(cx, c) || base_dict_has(done, c->name))
        return;
    base_dict_put(cx, done, c->name, c);
    base_addf(cx, t, "  %s\n", ir_combiner_text(cx, c));
}

static void add_names(tec_context *cx, base_text *t, const te_stage *s)
{
    base_add(cx, t, s->name);
    if (s->n_outputs == 1)
        return;
    for (int i = 0; i < s->n_outputs; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "(", s->output[i]->buffer->name);
    base_add(cx, t, ")");
}

static void add_body(tec_context *cx, base_text *t, const te_stage *s)
{
    if (s->body[0]->op == IR_REDUCE) {
        add_reduction(cx, t, s->body[0]);
        return;
    }
    for (int i = 0; i < s->n_outputs; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "", ir_expr_text(cx, s->body[i]));
}

static void add_stage(tec_context *cx, base_text *t, const te_stage *s)
{
    base_add(cx, t, "  ");
    add_names(cx, t, s);
    add_axes(cx, t, s->axis, s->extent, s->n_axes);
    base_add(cx, t, " = ");
    add_body(cx, t, s);
    if (s->role != IR_ROLE_NONE)
        base_addf(cx, t, " @role(%s)", ir_role_text(s->role));
    for (const ir_note *note = s->notes; note; note = note->next)
        base_addf(cx, t, " @%s(%s)", note->key, ir_expr_text(cx, note->value));
    base_add(cx, t, "\n");
}

const char *te_text(tec_context *cx, const te_def *d)
{
    base_text t = {0};
    base_dict combiners = {0};

    if (!d)
        return NULL;
    add_head(cx, &t, d);
    base_add(cx, &t, " {\n");
    for (int i = 0; i < d->stages.n; i++)
        add_combiner(cx, &t, d->stages.at[i], &combiners);
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        if (s->kind != TE_INPUT)
            add_stage(cx, &t, s);
    }
    for (int i = 0; i < d->outputs.n; i++)
        base_addf(cx, &t, "%s%s", i ? ", " : "  return ", ((const te_tensor *)d->outputs.at[i])->buffer->name);
    base_add(cx, &t, "\n}\n");
    return base_text_str(cx, &t);
}
