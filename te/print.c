/* te/print.c -- definitions as `.te` text. Extents are always written out, so that the text says all that the
 * definition holds.
 *
 * An axis that would hide a symbol, a scalar or another axis inside its stage stands under a name of its own
 * (te/names.h).
 */
#include "ir/text.h"
#include "ir/walk.h"
#include "te/names.h"
#include "te/text.h"

/* The axes of one stage under the names that the text gives them. */
typedef struct {
    tec_context *cx;
    ir_subst map; /* axis -> variable of another name */
} naming;

static void rename_axes(naming *self, const ir_expr *const *axis, const char *const *name, int count)
{
    for (int i = 0; i < count; i++)
        if (!base_same(axis[i]->var.name, name[i]))
            base_map_put(self->cx, &self->map.vars, axis[i], ir_var(self->cx, name[i], BASE_I64));
}

static naming open_naming(tec_context *cx, const te_stage *stage)
{
    naming own = {.cx = cx};
    te_axis_names names = te_name_axes(cx, stage);

    rename_axes(&own, stage->axis, names.axis, stage->n_axes);
    rename_axes(&own, stage->reduce_axis, names.reduce, stage->n_reduce);
    return own;
}

static const char *shown(const naming *self, const ir_expr *expr)
{
    return ir_expr_text(self->cx, ir_apply(self->cx, &self->map, expr));
}

static void add_shape(tec_context *cx, base_text *text, const ir_buffer *buffer)
{
    base_addf(cx, text, "%s[", base_dtype_text(cx, buffer->dtype));
    for (int i = 0; i < buffer->n; i++)
        base_addf(cx, text, "%s%s", i ? ", " : "", ir_expr_text(cx, buffer->shape[i]));
    base_add(cx, text, "]");
}

/* NAME(symbols, inputs, scalars) where facts */
static void add_head(tec_context *cx, base_text *text, const te_def *def)
{
    const char *sep = "";

    base_addf(cx, text, "%s(", def->name);
    for (int i = 0; i < def->symbols.n; i++, sep = ", ")
        base_addf(cx, text, "%s%s", sep, ((const ir_expr *)def->symbols.at[i])->var.name);
    for (int i = 0; i < def->inputs.n; i++, sep = ", ") {
        const ir_buffer *buffer = ((const te_tensor *)def->inputs.at[i])->buffer;

        base_addf(cx, text, "%s%s: ", sep, buffer->name);
        add_shape(cx, text, buffer);
    }
    for (int i = 0; i < def->scalars.n; i++, sep = ", ") {
        const ir_expr *s = def->scalars.at[i];

        base_addf(cx, text, "%s%s: %s", sep, s->var.name, base_dtype_text(cx, s->dtype));
    }
    base_add(cx, text, ")");
    for (int i = 0; i < def->facts.n; i++)
        base_addf(cx, text, "%s%s", i ? ", " : " where ", ir_expr_text(cx, def->facts.at[i]));
}

/* A time axis stands without its extent, which its scan has shown. */
static void add_axes(const naming *own, base_text *text, const ir_expr *const *axis,
                     const ir_expr *const *extent, int count, bool timed)
{
    tec_context *cx = own->cx;

    base_add(cx, text, "[");
    for (int i = 0; i < count; i++) {
        base_addf(cx, text, "%s%s", i ? ", " : "", shown(own, axis[i]));
        if (i || !timed)
            base_addf(cx, text, ": %s", ir_expr_text(cx, extent[i]));
    }
    base_add(cx, text, "]");
}

static void add_reduction(const naming *own, base_text *text, const ir_expr *expr)
{
    tec_context *cx = own->cx;

    base_add(cx, text, expr->reduce.combiner->name);
    add_axes(own, text, expr->reduce.axis, expr->reduce.extent, expr->reduce.n_axes, false);
    base_add(cx, text, "(");
    for (int i = 0; i < expr->reduce.combiner->n; i++)
        base_addf(cx, text, "%s%s", i ? ", " : "", shown(own, expr->reduce.source[i]));
    if (expr->reduce.condition)
        base_addf(cx, text, " where %s", shown(own, expr->reduce.condition));
    base_add(cx, text, ")");
}

/* A user's combiners are declared before the stages that use them. */
static void add_combiner(tec_context *cx, base_text *text, const te_stage *stage, base_dict *done)
{
    const ir_combiner *c =
        stage && stage->body && stage->body[0]->op == IR_REDUCE ? stage->body[0]->reduce.combiner : NULL;

    if (!c || ir_combiner_is_named(cx, c) || base_dict_has(done, c->name))
        return;
    base_dict_put(cx, done, c->name, c);
    base_addf(cx, text, "  %s\n", ir_combiner_text(cx, c));
}

static void add_combiners(tec_context *cx, base_text *text, const te_stage *stage, base_dict *done)
{
    add_combiner(cx, text, stage->init, done);
    add_combiner(cx, text, stage, done);
}

/* NAME for one output, NAME(A, B) for several. */
static void add_names(tec_context *cx, base_text *text, const te_stage *stage)
{
    base_add(cx, text, stage->n_outputs == 1 ? stage->output[0]->buffer->name : stage->name);
    if (stage->n_outputs == 1)
        return;
    for (int i = 0; i < stage->n_outputs; i++)
        base_addf(cx, text, "%s%s", i ? ", " : "(", stage->output[i]->buffer->name);
    base_add(cx, text, ")");
}

/* One reduction for all outputs is written once. */
static void add_body(const naming *own, base_text *text, const te_stage *stage)
{
    if (stage->body[0]->op == IR_REDUCE) {
        add_reduction(own, text, stage->body[0]);
        return;
    }
    for (int i = 0; i < stage->n_outputs; i++)
        base_addf(own->cx, text, "%s%s", i ? ", " : "", shown(own, stage->body[i]));
}

/* Also ends the line. */
static void add_notes(tec_context *cx, base_text *text, const te_stage *stage)
{
    if (stage->role != IR_ROLE_NONE)
        base_addf(cx, text, " @role(%s)", ir_role_text(stage->role));
    for (const ir_note *note = stage->notes; note; note = note->next)
        base_addf(cx, text, " @%s(%s)", note->key, ir_expr_text(cx, note->value));
    base_add(cx, text, "\n");
}

/* `prefix`: what stands before the name. */
static void add_stage(tec_context *cx, base_text *text, const te_stage *stage, const char *prefix)
{
    naming own = open_naming(cx, stage);

    base_add(cx, text, prefix);
    add_names(cx, text, stage);
    add_axes(&own, text, stage->axis, stage->extent, stage->n_axes, stage->scan != NULL);
    base_add(cx, text, " = ");
    add_body(&own, text, stage);
    add_notes(cx, text, stage);
}

/* The lines of a text, each with `margin` before it but for the first. */
static void add_lines(tec_context *cx, base_text *out, const char *text, const char *margin)
{
    for (; *text; text++) {
        if (*text != '\n' || text[1])
            base_addn(cx, out, text, 1);
        if (*text == '\n' && text[1])
            base_add(cx, out, margin);
    }
}

static void add_extern_outputs(tec_context *cx, base_text *text, const te_stage *stage)
{
    base_addf(cx, text, "  extern %s", stage->n_outputs == 1 ? "" : stage->name);
    for (int i = 0; i < stage->n_outputs; i++) {
        base_addf(cx, text, "%s%s: ",
                  stage->n_outputs == 1 ? ""
                  : i                   ? ", "
                                        : "(",
                  stage->output[i]->buffer->name);
        add_shape(cx, text, stage->output[i]->buffer);
    }
    base_add(cx, text, stage->n_outputs == 1 ? "" : ")");
}

/* extern outputs = function(inputs, arguments) means definition */
static void add_extern(tec_context *cx, base_text *text, const te_stage *stage)
{
    const te_call *call = stage->call;
    const char *sep = "";

    add_extern_outputs(cx, text, stage);
    base_addf(cx, text, " = %s(", call->function);
    for (int i = 0; i < call->n_inputs; i++, sep = ", ")
        base_addf(cx, text, "%s%s", sep, call->input[i]->buffer->name);
    for (int i = 0; i < call->n_args; i++, sep = ", ")
        base_addf(cx, text, "%s%s", sep, ir_expr_text(cx, call->arg[i]));
    base_add(cx, text, ")");
    if (call->meaning) {
        base_add(cx, text, " means ");
        add_lines(cx, text, te_text(cx, call->meaning), "  ");
    }
    add_notes(cx, text, stage);
}

/* Time has one name for the scan and all of its updates. */
static void add_scan(tec_context *cx, base_text *text, const te_scan *scan)
{
    base_addf(cx, text, "  scan %s[%s: %s] {\n", scan->name, te_time_name(cx, scan),
              ir_expr_text(cx, scan->extent));
    for (int i = 0; i < scan->states.n; i++)
        add_stage(cx, text, ((te_tensor *)scan->states.at[i])->stage->init, "    init ");
    for (int i = 0; i < scan->steps.n; i++)
        add_stage(cx, text, scan->steps.at[i], "    update ");
    base_add(cx, text, "  }\n");
}

/* The whole definition but for its closing brace. */
static void add_def(tec_context *cx, base_text *text, const te_def *def)
{
    base_dict combiners = {0};

    add_head(cx, text, def);
    base_add(cx, text, " {\n");
    for (int i = 0; i < def->stages.n; i++)
        add_combiners(cx, text, def->stages.at[i], &combiners);
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        if (stage->kind == TE_COMPUTE)
            add_stage(cx, text, stage, "  ");
        else if (stage->kind == TE_SCAN && stage == stage->scan->steps.at[0])
            add_scan(cx, text, stage->scan);
        else if (stage->kind == TE_EXTERN)
            add_extern(cx, text, stage);
    }
    for (int i = 0; i < def->outputs.n; i++)
        base_addf(cx, text, "%s%s", i ? ", " : "  return ",
                  ((const te_tensor *)def->outputs.at[i])->buffer->name);
    base_add(cx, text, "\n");
}

const char *te_text(tec_context *cx, const te_def *def)
{
    base_text t = {0};

    if (!def)
        return NULL;
    base_add(cx, &t, "def ");
    add_def(cx, &t, def);
    base_add(cx, &t, "}\n");
    return base_text_str(cx, &t);
}

static void add_operand(tec_context *cx, base_text *text, const te_operand *operand)
{
    for (int i = 0; operand->strides && i < operand->buffer->n; i++)
        base_addf(cx, text, "%s%s%s", i ? ", " : base_format(cx, "  strides %s[", operand->buffer->name),
                  ir_expr_text(cx, operand->strides[i]), i + 1 < operand->buffer->n ? "" : "]\n");
    if (operand->align)
        base_addf(cx, text, "  align %s %d\n", operand->buffer->name, operand->align);
    if (operand->scope != IR_GLOBAL)
        base_addf(cx, text, "  scope %s %s\n", operand->buffer->name, ir_scope_text(operand->scope));
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
