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

/* The one stage of the behaviour; NULL: there is another number of them (in *count). */
static const te_stage *only_stage(const te_def *def, int *count)
{
    const te_stage *only = NULL;

    *count = 0;
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        if (stage->kind != TE_INPUT) {
            only = stage;
            ++*count;
        }
    }
    return *count == 1 ? only : NULL;
}

/* What can be compared with a loop's extent at once. */
static bool is_size(const te_def *def, const ir_expr *expr)
{
    for (int i = 0; i < def->symbols.n; i++)
        if (def->symbols.at[i] == expr)
            return true;
    return expr->op == IR_INT;
}

/* Sizes in an intrinsic are constants or symbols: an expression could not be matched with a loop of a
 * program. */
static bool check_sizes(tec_context *cx, const te_def *def)
{
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        for (int j = 0; j < stage->n_outputs; j++)
            for (int k = 0; k < stage->output[j]->buffer->n; k++)
                if (!is_size(def, stage->output[j]->buffer->shape[k])) {
                    base_fail(cx, TEC_INVALID, stage->loc,
                              "a dimension of '%s' in intrinsic '%s' is neither a constant nor a symbol",
                              stage->output[j]->buffer->name, def->name);
                    return false;
                }
        for (int k = 0; k < stage->n_reduce; k++)
            if (!is_size(def, stage->reduce_extent[k])) {
                base_fail(cx, TEC_INVALID, stage->loc,
                          "the extent of axis '%s' in intrinsic '%s' is neither a constant nor a symbol",
                          stage->reduce_axis[k]->var.name, def->name);
                return false;
            }
    }
    return true;
}

/* One stage and no more: a schedule replaces one block by the intrinsic. */
static bool check_behaviour(tec_context *cx, const te_def *def)
{
    int n;
    const te_stage *stage = only_stage(def, &n);

    if (!stage || stage->kind != TE_COMPUTE)
        base_fail(cx, TEC_INVALID, def->loc,
                  stage
                      ? "intrinsic '%s' must be one computed stage; its %d stage is a scan or an extern call"
                      : "intrinsic '%s' must be one computed stage, found %d",
                  def->name, n);
    else if (def->outputs.n != stage->n_outputs)
        base_fail(cx, TEC_INVALID, def->loc, "intrinsic '%s' must return all that it computes", def->name);
    else
        return check_sizes(cx, def);
    return false;
}

/* An update without a reset is allowed: the schedule then sets the start itself. */
static bool check_forms(tec_context *cx, const te_def *def, const char *const text[TE_N_FORMS])
{
    int n;
    const te_stage *stage = only_stage(def, &n);

    if (!text[TE_BODY] && !text[TE_UPDATE])
        base_fail(cx, TEC_INVALID, def->loc, "intrinsic '%s' has neither a body nor an update", def->name);
    if (text[TE_RESET] && !text[TE_UPDATE])
        base_fail(cx, TEC_INVALID, def->loc, "intrinsic '%s' has a reset but no update", def->name);
    if (text[TE_UPDATE] && stage->body[0]->op != IR_REDUCE)
        base_fail(cx, TEC_INVALID, def->loc,
                  "intrinsic '%s' has an update, but its meaning is not a reduction", def->name);
    for (int i = 0; i < TE_N_FORMS; i++)
        if (text[i] && !*text[i])
            base_fail(cx, TEC_INVALID, def->loc, "the %s of intrinsic '%s' is empty", form_text[i],
                      def->name);
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
static const ir_stmt *form_nest(tec_context *cx, const ir_stmt *stmt, int spatial, te_form form)
{
    if (stmt->kind == IR_FOR) {
        const ir_stmt *body = form_nest(cx, stmt->loop.body, spatial - 1, form);

        return spatial <= 0 && form == TE_RESET
                   ? body
                   : ir_for_like(cx, stmt, stmt->loop.min, stmt->loop.extent, body);
    }
    ir_block *block = ir_block_copy(cx, stmt->block.block);
    block->name = base_format(cx, "%s.%s", block->name, form_text[form]);
    if (form == TE_RESET) {
        while (block->n_iters > 0 && block->iters[block->n_iters - 1].kind == IR_REDUCE_ITER)
            block->n_iters--;
        block->n_reads = 0;
        block->body = block->init;
    }
    block->init = NULL;
    return ir_block_stmt(cx, block, stmt->block.bind, stmt->block.where);
}

/* A reset has no use for the inputs. */
static void drop_inputs(tec_context *cx, ir_program *program)
{
    ir_param *param = base_array(cx, ir_param, program->n_params);
    int n = 0;

    for (int i = 0; i < program->n_params; i++)
        if (program->params[i].output || program->params[i].scalar)
            param[n++] = program->params[i];
    program->params = param;
    program->n_params = n;
}

/* The buffers as the operands must lie; the variables of their strides are symbols, and the last
 * parameters. */
static const ir_program *with_operands(tec_context *cx, const te_intrinsic *in, const ir_program *program)
{
    ir_program *out = ir_program_copy(cx, program);
    ir_param *param = base_array(cx, ir_param, program->n_params + in->strides.n);
    const ir_expr **symbol = base_array(cx, const ir_expr *, program->n_symbols + in->strides.n);
    ir_subst map = {0};

    for (int i = 0; i < in->operands.n; i++) {
        const te_operand *operand = in->operands.at[i];
        ir_buffer *buffer = ir_buffer_copy(cx, operand->buffer);

        buffer->strides = operand->strides;
        buffer->align = operand->align;
        buffer->scope = operand->scope;
        base_map_put(cx, &map.buffers, operand->buffer, buffer);
    }
    for (int i = 0; i < program->n_params; i++) {
        const ir_buffer *buffer =
            program->params[i].buffer ? base_map_get(&map.buffers, program->params[i].buffer) : NULL;

        param[i] = program->params[i];
        param[i].buffer = buffer ? buffer : param[i].buffer;
    }
    for (int i = 0; i < program->n_symbols; i++)
        symbol[i] = program->symbols[i];
    for (int i = 0; i < in->strides.n; i++)
        param[out->n_params++].scalar = symbol[out->n_symbols++] = in->strides.at[i];
    out->params = param;
    out->symbols = symbol;
    out->body = ir_apply_stmt(cx, &map, program->body);
    return out->body ? out : NULL;
}

/* The meaning of one form as a program: the whole behaviour, only its start values, or only its accumulation.
 */
static const ir_program *form_program(tec_context *cx, const te_intrinsic *in, te_form form)
{
    const te_def *def = in->behaviour;
    const ir_program *whole = te_call_program(cx, def);
    int n;

    whole = whole && in->operands.n ? with_operands(cx, in, whole) : whole;

    if (!whole || form == TE_BODY)
        return whole;
    ir_program *program = ir_program_copy(cx, whole);
    program->name = base_format(cx, "%s.%s", def->name, form_text[form]);
    program->body = form_nest(cx, whole->body, only_stage(def, &n)->n_axes, form);
    if (form == TE_RESET)
        drop_inputs(cx, program);
    return program->body ? program : NULL;
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
