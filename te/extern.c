/* te/extern.c -- extern stages: a function of the user's, named and not held, computes whole tensors from
 * whole tensors.
 *
 *     extern S: f32[n] = sort_rows(A, n) means def ascending(m, A: f32[m]) { ... }
 *
 * The function is a word in text until something runs it: generated code asks its environment for the name,
 * the interpreter runs the meaning.
 */
#include "te/extern.h"

#include <ctype.h>

#include "ir/text.h"
#include "ir/walk.h"
#include "te/stage.h"

static bool fail(te_def *def, const char *message)
{
    base_fail(def->cx, TEC_INVALID, base_where(def->cx), "%s", message);
    return false;
}

/* ---- checks ---- */

/* Generated code writes the name as it is: nothing but a word may pass. */
static bool is_word(const char *s)
{
    bool good = s && (isalpha((unsigned char)*s) || *s == '_');

    for (; good && *s; s++)
        good = isalnum((unsigned char)*s) || *s == '_';
    return good;
}

/* An expression that the caller can compute: over symbols and scalars. */
static bool is_known(te_def *def, const te_call *call, const ir_expr *expr)
{
    base_vec vars = {0};

    if (expr->has & (IR_HAS_LOAD | IR_HAS_EFFECT))
        return fail(def, base_format(def->cx,
                                     "argument '%s' of extern stage '%s' reads a tensor: expected an "
                                     "expression over symbols and scalars",
                                     ir_expr_text(def->cx, expr), call->name));
    ir_free_vars(def->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool known = false;

        for (int j = 0; j < def->symbols.n; j++)
            known = known || def->symbols.at[j] == vars.at[i];
        for (int j = 0; j < def->scalars.n; j++)
            known = known || def->scalars.at[j] == vars.at[i];
        if (!known)
            return fail(def, base_format(def->cx, "'%s' is neither a symbol nor a scalar of '%s'",
                                         ((const ir_expr *)vars.at[i])->var.name, def->name));
    }
    return true;
}

/* Inputs are tensors of this definition that exist as a whole; arguments and shapes use symbols that are
 * known. */
static bool check_operands(te_def *def, const te_call *call)
{
    for (int i = 0; i < call->n_inputs; i++) {
        const te_tensor *tensor = call->input[i];

        if (!tensor)
            return false;
        if (tensor->def != def || te_tensor_named(def, tensor->buffer->name) != tensor)
            return fail(
                def, base_format(def->cx, "'%s' is not a tensor of '%s'", tensor->buffer->name, def->name));
        if (te_stage_is_partial(tensor->stage))
            return fail(def,
                        base_format(def->cx, "'%s' has no first steps, so only its scan '%s' may read it",
                                    tensor->buffer->name, tensor->stage->scan->name));
    }
    for (int i = 0; i < call->n_args; i++)
        if (!call->arg[i] || !is_known(def, call, call->arg[i]))
            return false;
    for (int i = 0; i < call->n_outputs; i++)
        for (int k = 0; k < call->output[i].n; k++)
            if (!call->output[i].shape[k] || !is_known(def, call, call->output[i].shape[k]))
                return false;
    return true;
}

/* ---- the meaning ---- */

/* Parameter i of the meaning behind its tensors: its symbols, then its scalars. */
static const ir_expr *meaning_scalar(const te_def *meaning, int i)
{
    return i < meaning->symbols.n ? meaning->symbols.at[i] : meaning->scalars.at[i - meaning->symbols.n];
}

/* Extents may be written in other ways, as long as they are proven equal for the given arguments. */
static bool same_shape(te_def *def, const te_call *call, const ir_subst *map, const ir_buffer *want,
                       base_dtype dtype, const ir_expr *const *shape, int count, const char *name)
{
    bool same = base_dtype_same(want->dtype, dtype) && want->n == count;

    for (int k = 0; same && k < count; k++)
        same = ir_prove_equal(te_facts(def), ir_apply(def->cx, map, want->shape[k]), shape[k]);
    return same ||
           fail(def,
                base_format(
                    def->cx,
                    "'%s' of extern stage '%s' does not have the type and shape of '%s' in the meaning '%s'",
                    name, call->name, want->name, call->meaning->name));
}

/* What the meaning promises itself, its caller has to prove, or the interpreter would run on a broken
 * promise. */
static bool check_facts(te_def *def, const te_call *call, const ir_subst *map)
{
    for (int i = 0; i < call->meaning->facts.n; i++)
        if (!ir_prove(te_facts(def), ir_apply(def->cx, map, call->meaning->facts.at[i])))
            return fail(
                def, base_format(
                         def->cx, "the meaning '%s' of extern stage '%s' needs %s, which cannot be proven",
                         call->meaning->name, call->name, ir_expr_text(def->cx, call->meaning->facts.at[i])));
    return true;
}

/* Symbols and scalars are handed in as arguments one by one: an extern function gets no shapes. */
static bool check_counts(te_def *def, const te_call *call)
{
    const te_def *m = call->meaning;

    if (m->inputs.n == call->n_inputs && m->outputs.n == call->n_outputs &&
        m->symbols.n + m->scalars.n == call->n_args)
        return true;
    return fail(def, base_format(def->cx,
                                 "extern stage '%s' has %d inputs, %d outputs and %d other arguments; its "
                                 "meaning '%s' has %d, %d, and %d symbols "
                                 "and scalars",
                                 call->name, call->n_inputs, call->n_outputs, call->n_args, m->name,
                                 m->inputs.n, m->outputs.n, m->symbols.n + m->scalars.n));
}

/* The meaning is a definition of its own: its inputs, scalars and outputs must fit what the call hands in. */
static bool check_meaning(te_def *def, const te_call *call)
{
    const te_def *m = call->meaning;
    ir_subst map = {0};

    if (!m)
        return true;
    if (!check_counts(def, call))
        return false;
    for (int i = 0; i < call->n_args; i++) {
        const ir_expr *p = meaning_scalar(m, i);

        if (!base_dtype_same(p->dtype, call->arg[i]->dtype))
            return fail(def, base_format(def->cx,
                                         "'%s' in the meaning '%s' is %s, but extern stage '%s' passes %s",
                                         p->var.name, m->name, base_dtype_text(def->cx, p->dtype), call->name,
                                         base_dtype_text(def->cx, call->arg[i]->dtype)));
        base_map_put(def->cx, &map.vars, p, call->arg[i]);
    }
    for (int i = 0; i < call->n_inputs; i++) {
        const ir_buffer *buffer = call->input[i]->buffer;

        if (!same_shape(def, call, &map, ((te_tensor *)m->inputs.at[i])->buffer, buffer->dtype, buffer->shape,
                        buffer->n, buffer->name))
            return false;
    }
    for (int i = 0; i < call->n_outputs; i++) {
        const te_extern_output *output = &call->output[i];

        if (!same_shape(def, call, &map, ((te_tensor *)m->outputs.at[i])->buffer, output->dtype,
                        output->shape, output->n, output->name))
            return false;
    }
    return check_facts(def, call, &map);
}

/* The meaning as a program whose parameters stand in the order of the call: inputs, outputs, then arguments.
 */
const ir_program *te_call_program(tec_context *cx, const te_def *meaning)
{
    const ir_program *tree = te_tree(cx, meaning);
    ir_program *program = tree ? ir_program_copy(cx, tree) : NULL;
    int n = 0, others = meaning->symbols.n + meaning->scalars.n;

    if (!program)
        return NULL;
    ir_param *param = base_array(cx, ir_param, meaning->inputs.n + meaning->outputs.n + others);
    for (int i = 0; i < meaning->inputs.n; i++)
        param[n++].buffer = ((te_tensor *)meaning->inputs.at[i])->buffer;
    for (int i = 0; i < meaning->outputs.n; i++)
        param[n++] = (ir_param){.buffer = ((te_tensor *)meaning->outputs.at[i])->buffer, .output = true};
    for (int i = 0; i < others; i++)
        param[n++].scalar = meaning_scalar(meaning, i);
    program->params = param;
    program->n_params = n;
    return program;
}

/* One function has one meaning in a definition. */
static bool find_intrinsic(te_def *def, const te_call *call, const ir_intrinsic **out)
{
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        if (stage->kind != TE_EXTERN || !base_same(stage->call->function, call->function))
            continue;
        *out = stage->call->intrinsic;
        return stage->call->meaning == call->meaning ||
               fail(def, base_format(def->cx, "'%s' means something else in the extern stages '%s' and '%s'",
                                     call->function, stage->name, call->name));
    }
    if (!call->meaning)
        return true;
    ir_intrinsic *in = base_new(def->cx, ir_intrinsic);
    in->name = call->function;
    in->meaning = te_call_program(def->cx, call->meaning);
    *out = in;
    return in->meaning != NULL;
}

/* ---- the stage ---- */

/* The caller's arrays may be temporary. */
static te_call *copy_call(tec_context *cx, const te_call *from)
{
    te_call *call = base_copy(cx, from, sizeof *from);
    te_extern_output *output = base_copy(cx, from->output, (size_t)from->n_outputs * sizeof *output);

    for (int i = 0; i < call->n_outputs; i++) {
        output[i].name = base_strdup(cx, output[i].name);
        output[i].shape = base_copy(cx, output[i].shape, (size_t)output[i].n * sizeof *output[i].shape);
    }
    call->name = base_strdup(cx, call->name);
    call->function = base_strdup(cx, call->function);
    call->input = base_copy(cx, call->input, (size_t)call->n_inputs * sizeof *call->input);
    call->arg = base_copy(cx, call->arg, (size_t)call->n_args * sizeof *call->arg);
    call->output = output;
    return call;
}

/* One output: the stage has its name. Several: the stage needs one more. */
static bool claim_names(te_def *def, const te_call *call)
{
    for (int i = 0; i < call->n_outputs; i++)
        if (!te_claim_name(def, call->output[i].name, def))
            return false;
    return call->n_outputs == 1 || te_claim_name(def, call->name, def);
}

/* Adds the stage and gives its output tensors in `out`. */
bool te_extern(te_def *def, const te_call *call, te_tensor **out)
{
    if (!def || base_failed(def->cx))
        return false;
    if (!is_word(call->function))
        return fail(def, base_format(def->cx, "'%s' cannot be the name of an extern function",
                                     call->function ? call->function : ""));
    if (call->n_outputs < 1)
        return fail(def, base_format(def->cx, "extern stage '%s' has no output", call->name));
    te_call *c = copy_call(def->cx, call);
    if (!check_operands(def, c) || !check_meaning(def, c) || !find_intrinsic(def, c, &c->intrinsic) ||
        !claim_names(def, c))
        return false;
    te_stage *stage = te_new_stage(def, TE_EXTERN, c->name, c->n_outputs);

    stage->call = c;
    for (int i = 0; i < c->n_outputs; i++) {
        const te_extern_output *output = &c->output[i];
        const ir_buffer *buffer =
            ir_buffer_new(def->cx, output->name, output->dtype, output->shape, output->n);

        if (!buffer)
            return false;
        out[i] = ((te_tensor **)stage->output)[i] = te_new_tensor(def, stage, i, buffer);
    }
    base_push(def->cx, &def->stages, stage);
    return true;
}

/* ---- the block ---- */

/* The stage as a statement: a call that hands over every buffer from its first element, and an assert on its
 * status. */
const ir_stmt *te_extern_call(tec_context *cx, const te_stage *stage)
{
    const te_call *call = stage->call;
    int n_buffers = call->n_inputs + call->n_outputs, n = n_buffers + call->n_args;
    const ir_buffer **buffer = base_array(cx, const ir_buffer *, n_buffers);
    const ir_expr **arg = base_array(cx, const ir_expr *, n);

    for (int i = 0; i < n_buffers; i++) {
        buffer[i] = i < call->n_inputs ? call->input[i]->buffer : stage->output[i - call->n_inputs]->buffer;
        arg[i] = ir_int(cx, 0);
    }
    for (int i = 0; i < call->n_args; i++)
        arg[n_buffers + i] = call->arg[i];
    const ir_expr *status =
        ir_call(cx, BASE_I32, call->function, call->intrinsic, arg, n, buffer, n_buffers, false);
    const char *message =
        base_format(cx, "the extern function '%s' of stage '%s' failed", call->function, stage->name);

    return ir_assert(cx, ir_eq(cx, status, ir_imm_int(cx, BASE_I32, 0)), message);
}
