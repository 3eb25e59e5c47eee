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

static bool fail(te_def *d, const char *message)
{
    base_fail(d->cx, TEC_INVALID, base_where(d->cx), "%s", message);
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
static bool is_known(te_def *d, const te_call *c, const ir_expr *e)
{
    base_vec vars = {0};

    if (e->has & (IR_HAS_LOAD | IR_HAS_EFFECT))
        return fail(d, base_format(d->cx, "'%s' of extern stage '%s' reads a tensor", ir_expr_text(d->cx, e),
                                   c->name));
    ir_free_vars(d->cx, e, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool known = false;

        for (int j = 0; j < d->symbols.n; j++)
            known = known || d->symbols.at[j] == vars.at[i];
        for (int j = 0; j < d->scalars.n; j++)
            known = known || d->scalars.at[j] == vars.at[i];
        if (!known)
            return fail(d, base_format(d->cx, "'%s' is neither a symbol nor a scalar of '%s'",
                                       ((const ir_expr *)vars.at[i])->var.name, d->name));
    }
    return true;
}

/* Inputs are tensors of this definition that exist as a whole; arguments and shapes use symbols that are
 * known. */
static bool check_operands(te_def *d, const te_call *c)
{
    for (int i = 0; i < c->n_inputs; i++) {
        const te_tensor *t = c->input[i];

        if (!t)
            return false;
        if (t->def != d || te_tensor_named(d, t->buffer->name) != t)
            return fail(d, base_format(d->cx, "'%s' is no tensor of '%s'", t->buffer->name, d->name));
        if (te_stage_is_partial(t->stage))
            return fail(d, base_format(d->cx, "'%s' has no first steps, so only its scan '%s' may read it",
                                       t->buffer->name, t->stage->scan->name));
    }
    for (int i = 0; i < c->n_args; i++)
        if (!c->arg[i] || !is_known(d, c, c->arg[i]))
            return false;
    for (int i = 0; i < c->n_outputs; i++)
        for (int k = 0; k < c->output[i].n; k++)
            if (!c->output[i].shape[k] || !is_known(d, c, c->output[i].shape[k]))
                return false;
    return true;
}

/* ---- the meaning ---- */

/* Parameter i of the meaning behind its tensors: its symbols, then its scalars. */
static const ir_expr *meaning_scalar(const te_def *m, int i)
{
    return i < m->symbols.n ? m->symbols.at[i] : m->scalars.at[i - m->symbols.n];
}

/* Extents may be written in other ways, as long as they are proven equal for the given arguments. */
static bool same_shape(te_def *d, const te_call *c, const ir_subst *map, const ir_buffer *want, base_dtype t,
                       const ir_expr *const *shape, int n, const char *name)
{
    bool same = base_dtype_same(want->dtype, t) && want->n == n;

    for (int k = 0; same && k < n; k++)
        same = ir_prove_equal(te_facts(d), ir_apply(d->cx, map, want->shape[k]), shape[k]);
    return same ||
           fail(d,
                base_format(
                    d->cx,
                    "'%s' of extern stage '%s' does not have the type and shape of '%s' in the meaning '%s'",
                    name, c->name, want->name, c->meaning->name));
}

/* What the meaning promises itself, its caller has to prove, or the interpreter would run on a broken
 * promise. */
static bool check_facts(te_def *d, const te_call *c, const ir_subst *map)
{
    for (int i = 0; i < c->meaning->facts.n; i++)
        if (!ir_prove(te_facts(d), ir_apply(d->cx, map, c->meaning->facts.at[i])))
            return fail(
                d, base_format(d->cx, "the meaning '%s' of extern stage '%s' wants %s, which is not proven",
                               c->meaning->name, c->name, ir_expr_text(d->cx, c->meaning->facts.at[i])));
    return true;
}

/* Symbols and scalars are handed in as arguments one by one: an extern function gets no shapes. */
static bool check_counts(te_def *d, const te_call *c)
{
    const te_def *m = c->meaning;

    if (m->inputs.n == c->n_inputs && m->outputs.n == c->n_outputs &&
        m->symbols.n + m->scalars.n == c->n_args)
        return true;
    return fail(d, base_format(d->cx,
                               "extern stage '%s' has %d inputs, %d outputs and %d other arguments; its "
                               "meaning '%s' has %d, %d, and %d symbols "
                               "and scalars",
                               c->name, c->n_inputs, c->n_outputs, c->n_args, m->name, m->inputs.n,
                               m->outputs.n, m->symbols.n + m->scalars.n));
}

/* The meaning is a definition of its own: its inputs, scalars and outputs must fit what the call hands in. */
static bool check_meaning(te_def *d, const te_call *c)
{
    const te_def *m = c->meaning;
    ir_subst map = {0};

    if (!m)
        return true;
    if (!check_counts(d, c))
        return false;
    for (int i = 0; i < c->n_args; i++) {
        const ir_expr *p = meaning_scalar(m, i);

        if (!base_dtype_same(p->dtype, c->arg[i]->dtype))
            return fail(d, base_format(d->cx, "'%s' in the meaning '%s' is %s, extern stage '%s' hands in %s",
                                       p->var.name, m->name, base_dtype_text(d->cx, p->dtype), c->name,
                                       base_dtype_text(d->cx, c->arg[i]->dtype)));
        base_map_put(d->cx, &map.vars, p, c->arg[i]);
    }
    for (int i = 0; i < c->n_inputs; i++) {
        const ir_buffer *b = c->input[i]->buffer;

        if (!same_shape(d, c, &map, ((te_tensor *)m->inputs.at[i])->buffer, b->dtype, b->shape, b->n,
                        b->name))
            return false;
    }
    for (int i = 0; i < c->n_outputs; i++) {
        const te_extern_output *o = &c->output[i];

        if (!same_shape(d, c, &map, ((te_tensor *)m->outputs.at[i])->buffer, o->dtype, o->shape, o->n,
                        o->name))
            return false;
    }
    return check_facts(d, c, &map);
}

/* The meaning as a program whose parameters stand in the order of the call: inputs, outputs, then arguments.
 */
const ir_program *te_call_program(tec_context *cx, const te_def *m)
{
    const ir_program *tree = te_tree(cx, m);
    ir_program *p = tree ? ir_program_copy(cx, tree) : NULL;
    int n = 0, others = m->symbols.n + m->scalars.n;

    if (!p)
        return NULL;
    ir_param *param = base_array(cx, ir_param, m->inputs.n + m->outputs.n + others);
    for (int i = 0; i < m->inputs.n; i++)
        param[n++].buffer = ((te_tensor *)m->inputs.at[i])->buffer;
    for (int i = 0; i < m->outputs.n; i++)
        param[n++] = (ir_param){.buffer = ((te_tensor *)m->outputs.at[i])->buffer, .output = true};
    for (int i = 0; i < others; i++)
        param[n++].scalar = meaning_scalar(m, i);
    p->params = param;
    p->n_params = n;
    return p;
}

/* One function has one meaning in a definition. */
static bool find_intrinsic(te_def *d, const te_call *c, const ir_intrinsic **out)
{
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        if (s->kind != TE_EXTERN || !base_same(s->call->function, c->function))
            continue;
        *out = s->call->intrinsic;
        return s->call->meaning == c->meaning ||
               fail(d, base_format(d->cx, "'%s' means something else in the extern stages '%s' and '%s'",
                                   c->function, s->name, c->name));
    }
    if (!c->meaning)
        return true;
    ir_intrinsic *in = base_new(d->cx, ir_intrinsic);
    in->name = c->function;
    in->meaning = te_call_program(d->cx, c->meaning);
    *out = in;
    return in->meaning != NULL;
}

/* ---- the stage ---- */

/* The caller's arrays may be temporary. */
static te_call *copy_call(tec_context *cx, const te_call *from)
{
    te_call *c = base_copy(cx, from, sizeof *from);
    te_extern_output *o = base_copy(cx, from->output, (size_t)from->n_outputs * sizeof *o);

    for (int i = 0; i < c->n_outputs; i++) {
        o[i].name = base_strdup(cx, o[i].name);
        o[i].shape = base_copy(cx, o[i].shape, (size_t)o[i].n * sizeof *o[i].shape);
    }
    c->name = base_strdup(cx, c->name);
    c->function = base_strdup(cx, c->function);
    c->input = base_copy(cx, c->input, (size_t)c->n_inputs * sizeof *c->input);
    c->arg = base_copy(cx, c->arg, (size_t)c->n_args * sizeof *c->arg);
    c->output = o;
    return c;
}

/* One output: the stage has its name. Several: the stage needs one more. */
static bool claim_names(te_def *d, const te_call *c)
{
    for (int i = 0; i < c->n_outputs; i++)
        if (!te_claim_name(d, c->output[i].name, d))
            return false;
    return c->n_outputs == 1 || te_claim_name(d, c->name, d);
}

/* Adds the stage and gives its output tensors in `out`. */
bool te_extern(te_def *d, const te_call *call, te_tensor **out)
{
    if (!d || base_failed(d->cx))
        return false;
    if (!is_word(call->function))
        return fail(d, base_format(d->cx, "'%s' cannot be the name of an extern function",
                                   call->function ? call->function : ""));
    if (call->n_outputs < 1)
        return fail(d, base_format(d->cx, "extern stage '%s' has no output", call->name));
    te_call *c = copy_call(d->cx, call);
    if (!check_operands(d, c) || !check_meaning(d, c) || !find_intrinsic(d, c, &c->intrinsic) ||
        !claim_names(d, c))
        return false;
    te_stage *s = te_new_stage(d, TE_EXTERN, c->name, c->n_outputs);

    s->call = c;
    for (int i = 0; i < c->n_outputs; i++) {
        const te_extern_output *o = &c->output[i];
        const ir_buffer *b = ir_buffer_new(d->cx, o->name, o->dtype, o->shape, o->n);

        if (!b)
            return false;
        out[i] = ((te_tensor **)s->output)[i] = te_new_tensor(d, s, i, b);
    }
    base_push(d->cx, &d->stages, s);
    return true;
}

/* ---- the block ---- */

/* The stage as a statement: a call that hands over every buffer from its first element, and an assert on its
 * status. */
const ir_stmt *te_extern_call(tec_context *cx, const te_stage *s)
{
    const te_call *c = s->call;
    int n_buffers = c->n_inputs + c->n_outputs, n = n_buffers + c->n_args;
    const ir_buffer **buffer = base_array(cx, const ir_buffer *, n_buffers);
    const ir_expr **arg = base_array(cx, const ir_expr *, n);

    for (int i = 0; i < n_buffers; i++) {
        buffer[i] = i < c->n_inputs ? c->input[i]->buffer : s->output[i - c->n_inputs]->buffer;
        arg[i] = ir_int(cx, 0);
    }
    for (int i = 0; i < c->n_args; i++)
        arg[n_buffers + i] = c->arg[i];
    const ir_expr *status =
        ir_call(cx, BASE_I32, c->function, c->intrinsic, arg, n, buffer, n_buffers, false);
    const char *message =
        base_format(cx, "the extern function '%s' of stage '%s' failed", c->function, s->name);

    return ir_assert(cx, ir_eq(cx, status, ir_imm_int(cx, BASE_I32, 0)), message);
}
