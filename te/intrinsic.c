/* te/intrinsic.c -- tensor intrinsics: their checks, and the meaning of each form made from the tree of the
 * behaviour.
 *
 *     for k { block c(k reduce) { init { c[] = 0 } c[] sum= a[k] * b[k] } }        body
 *     block c.reset() { c[] = 0 }                                                  reset
 *     for k { block c.update(k reduce) { c[] sum= a[k] * b[k] } }                  update
 */
#include "te/intrinsic.h"

#include "ir/walk.h"
#include "te/extern.h"

static const char *const form_text[TE_N_FORMS] = {
    [TE_BODY] = "body", [TE_RESET] = "reset", [TE_UPDATE] = "update"};

const char *te_form_text(te_form form)
{
    return form_text[form];
}

/* ---- checks ---- */

/* The one stage of the behaviour; NULL: there is another number of them (in *n). */
static const te_stage *only_stage(const te_def *d, int *n)
{
    const te_stage *only = NULL;

    *n = 0;
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        if (s->kind != TE_INPUT) {
            only = s;
            ++*n;
        }
    }
    return *n == 1 ? only : NULL;
}

/* What can be compared with a loop's extent at once. */
static bool is_size(const te_def *d, const ir_expr *e)
{
    for (int i = 0; i < d->symbols.n; i++)
        if (d->symbols.at[i] == e)
            return true;
    return e->op == IR_INT;
}

/* Sizes in an intrinsic are constants or symbols: an expression could not be matched with a loop of a
 * program. */
static bool check_sizes(tec_context *cx, const te_def *d)
{
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        for (int j = 0; j < s->n_outputs; j++)
            for (int k = 0; k < s->output[j]->buffer->n; k++)
                if (!is_size(d, s->output[j]->buffer->shape[k])) {
                    base_fail(cx, TEC_INVALID, s->loc,
                              "a dimension of '%s' in intrinsic '%s' is neither a constant nor a symbol",
                              s->output[j]->buffer->name, d->name);
                    return false;
                }
        for (int k = 0; k < s->n_reduce; k++)
            if (!is_size(d, s->reduce_extent[k])) {
                base_fail(cx, TEC_INVALID, s->loc,
                          "the extent of axis '%s' in intrinsic '%s' is neither a constant nor a symbol",
                          s->reduce_axis[k]->var.name, d->name);
                return false;
            }
    }
    return true;
}

/* One stage and no more: a schedule replaces one block by the intrinsic. */
static bool check_behaviour(tec_context *cx, const te_def *d)
{
    int n;
    const te_stage *s = only_stage(d, &n);

    if (!s || s->kind != TE_COMPUTE)
        base_fail(cx, TEC_INVALID, d->loc, "intrinsic '%s' must be one computed stage, it has %d%s", d->name,
                  n, s ? " that is none" : "");
    else if (d->outputs.n != s->n_outputs)
        base_fail(cx, TEC_INVALID, d->loc, "intrinsic '%s' must return all that it computes", d->name);
    else
        return check_sizes(cx, d);
    return false;
}

/* An update without a reset is allowed: the schedule then sets the start itself. */
static bool check_forms(tec_context *cx, const te_def *d, const char *const text[TE_N_FORMS])
{
    int n;
    const te_stage *s = only_stage(d, &n);

    if (!text[TE_BODY] && !text[TE_UPDATE])
        base_fail(cx, TEC_INVALID, d->loc, "intrinsic '%s' has neither a body nor an update", d->name);
    if (text[TE_RESET] && !text[TE_UPDATE])
        base_fail(cx, TEC_INVALID, d->loc, "intrinsic '%s' has a reset but no update", d->name);
    if (text[TE_UPDATE] && s->body[0]->op != IR_REDUCE)
        base_fail(cx, TEC_INVALID, d->loc, "intrinsic '%s' has an update, but reduces nothing", d->name);
    for (int i = 0; i < TE_N_FORMS; i++)
        if (text[i] && !*text[i])
            base_fail(cx, TEC_INVALID, d->loc, "the %s of intrinsic '%s' is empty", form_text[i], d->name);
    return !base_failed(cx);
}

/* ---- forms ---- */

/* The nest of one form. Below `spatial` loops of the nest stand the reduction's own, which a reset has no use
 * for:
 *
 *     for i { for k { block c(i, k reduce) { init { c[i] = 0 } c[i] sum= a[i, k] } } }
 *     reset:   for i { block c.reset(i) { c[i] = 0 } }
 *     update:  for i { for k { block c.update(i, k reduce) { c[i] sum= a[i, k] } } }
 *
 * Iteration variables of reductions stand behind the others (te/tree.c), so the reset drops them from the
 * end. */
static const ir_stmt *form_nest(tec_context *cx, const ir_stmt *s, int spatial, te_form form)
{
    if (s->kind == IR_FOR) {
        const ir_stmt *body = form_nest(cx, s->loop.body, spatial - 1, form);

        return spatial <= 0 && form == TE_RESET ? body
                                                : ir_for_like(cx, s, s->loop.min, s->loop.extent, body);
    }
    ir_block *b = ir_block_copy(cx, s->block.block);
    b->name = base_format(cx, "%s.%s", b->name, form_text[form]);
    if (form == TE_RESET) {
        while (b->n_iters > 0 && b->iters[b->n_iters - 1].kind == IR_REDUCE_ITER)
            b->n_iters--;
        b->n_reads = 0;
        b->body = b->init;
    }
    b->init = NULL;
    return ir_block_stmt(cx, b, s->block.bind, s->block.where);
}

/* A reset has no use for the inputs. */
static void drop_inputs(tec_context *cx, ir_program *p)
{
    ir_param *param = base_array(cx, ir_param, p->n_params);
    int n = 0;

    for (int i = 0; i < p->n_params; i++)
        if (p->params[i].output || p->params[i].scalar)
            param[n++] = p->params[i];
    p->params = param;
    p->n_params = n;
}

/* The buffers as the operands must lie; the variables of their strides are symbols, and the last
 * parameters. */
static const ir_program *with_operands(tec_context *cx, const te_intrinsic *in, const ir_program *p)
{
    ir_program *out = ir_program_copy(cx, p);
    ir_param *param = base_array(cx, ir_param, p->n_params + in->strides.n);
    const ir_expr **symbol = base_array(cx, const ir_expr *, p->n_symbols + in->strides.n);
    ir_subst map = {0};

    for (int i = 0; i < in->operands.n; i++) {
        const te_operand *o = in->operands.at[i];
        ir_buffer *b = ir_buffer_copy(cx, o->buffer);

        b->strides = o->strides;
        b->align = o->align;
        b->scope = o->scope;
        base_map_put(cx, &map.buffers, o->buffer, b);
    }
    for (int i = 0; i < p->n_params; i++) {
        const ir_buffer *b = p->params[i].buffer ? base_map_get(&map.buffers, p->params[i].buffer) : NULL;

        param[i] = p->params[i];
        param[i].buffer = b ? b : param[i].buffer;
    }
    for (int i = 0; i < p->n_symbols; i++)
        symbol[i] = p->symbols[i];
    for (int i = 0; i < in->strides.n; i++)
        param[out->n_params++].scalar = symbol[out->n_symbols++] = in->strides.at[i];
    out->params = param;
    out->symbols = symbol;
    out->body = ir_apply_stmt(cx, &map, p->body);
    return out->body ? out : NULL;
}

/* The meaning of one form as a program: the whole behaviour, only its start values, or only its accumulation.
 */
static const ir_program *form_program(tec_context *cx, const te_intrinsic *in, te_form form)
{
    const te_def *d = in->behaviour;
    const ir_program *whole = te_call_program(cx, d);
    int n;

    whole = whole && in->operands.n ? with_operands(cx, in, whole) : whole;

    if (!whole || form == TE_BODY)
        return whole;
    ir_program *p = ir_program_copy(cx, whole);
    p->name = base_format(cx, "%s.%s", d->name, form_text[form]);
    p->body = form_nest(cx, whole->body, only_stage(d, &n)->n_axes, form);
    if (form == TE_RESET)
        drop_inputs(cx, p);
    return p->body ? p : NULL;
}

/* The body has the intrinsic's name, the others have the form's behind it. */
static const ir_intrinsic *make_form(tec_context *cx, const te_intrinsic *of, te_form form)
{
    ir_intrinsic *in = base_new(cx, ir_intrinsic);

    in->name = form == TE_BODY ? of->name : base_format(cx, "%s.%s", of->name, form_text[form]);
    in->text = of->text[form];
    in->meaning = form_program(cx, of, form);
    return in->meaning ? in : NULL;
}

/* Declares an intrinsic in the table. `text[form]`: what the target writes for it, NULL where the form does
 * not exist. */
const te_intrinsic *te_intrinsic_new(tec_context *cx, te_intrinsics *table, const te_def *behaviour,
                                     const base_vec *operands, const base_vec *strides,
                                     const char *const text[TE_N_FORMS])
{
    if (!behaviour || base_failed(cx))
        return NULL;
    if (base_dict_has(&table->names, behaviour->name))
        return base_fail(cx, TEC_INVALID, behaviour->loc, "intrinsic '%s' is declared twice",
                         behaviour->name);
    if (!check_behaviour(cx, behaviour) || !check_forms(cx, behaviour, text))
        return NULL;
    te_intrinsic *in = base_new(cx, te_intrinsic);

    *in = (te_intrinsic){.name = behaviour->name,
                         .behaviour = behaviour,
                         .operands = *operands,
                         .strides = *strides,
                         .loc = behaviour->loc};
    for (int i = 0; i < TE_N_FORMS; i++) {
        if (!text[i])
            continue;
        in->text[i] = base_strdup(cx, text[i]);
        in->ir[i] = make_form(cx, in, (te_form)i);
        if (!in->ir[i])
            return NULL;
    }
    base_dict_put(cx, &table->names, in->name, in);
    base_push(cx, &table->list, in);
    return in;
}

const te_intrinsic *te_intrinsic_named(const te_intrinsics *table, const char *name)
{
    return base_dict_get(&table->names, name);
}
