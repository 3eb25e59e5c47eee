/* lower/intrinsics.c -- calls of intrinsics whose text is statements become these, over the operands' memory.
 * Calls of functions and of instructions stay.
 *
 *     intrinsic dot.update "c[0] = c[0] + a[0] * b[0]" { program dot.update(a: f32[1], b: f32[1],
 *         out c: f32[1]) ... }
 *     evaluate call<i32> dot.update(&A, &B, &C, i, j, 0)       =>       C[0] = C[0] + A[i] * B[j]
 *
 * requires  every access has one dimension; the offsets of operands are absolute
 * provides  no call of such an intrinsic is left
 * breaks    nothing
 *
 * An element of an operand is its offset plus the indices by the strides that the parameter declares. Loops,
 * lets and allocations of the text get variables of their own at each call.
 */
#include "ir/intrinsic.h"
#include "lower/util.h"

typedef struct {
    ir_rewrite rw;
    base_vec intrinsics; /* of the new program */
    base_map texts;      /* intrinsic -> its ir_program * */
} writer;

/* One call. */
typedef struct {
    ir_rewrite rw;
    writer *w;
    const ir_program *p;
    const ir_expr *call;
    ir_subst values;
} expansion;

/* Two intrinsics of one name are the same: tensorize refused any other. */
static const ir_intrinsic *known_as(writer *out, const ir_intrinsic *in)
{
    for (int i = 0; i < out->intrinsics.n; i++)
        if (base_same(((const ir_intrinsic *)out->intrinsics.at[i])->name, in->name))
            return out->intrinsics.at[i];
    base_push(out->rw.cx, &out->intrinsics, (void *)in);
    return in;
}

/* ---- accesses ---- */

/* Which operand of the call a parameter is; -1: none, it is allocated in the text. */
static int operand_of(const expansion *self, const ir_buffer *param)
{
    for (int i = 0; i < self->p->n_params; i++)
        if (self->p->params[i].buffer == param)
            return i;
    return -1;
}

/* A ramp times a scalar is a ramp. */
static const ir_expr *scaled(tec_context *cx, const ir_expr *index, const ir_expr *by)
{
    if (ir_is_value(by, 1))
        return index;
    if (index->op == IR_RAMP)
        return ir_ramp(cx, ir_mul(cx, index->ramp.base, by), ir_mul(cx, index->ramp.stride, by),
                       index->dtype.lanes);
    return ir_mul(cx, index, index->dtype.lanes > 1 ? ir_broadcast(cx, by, index->dtype.lanes) : by);
}

/* The one value in all lanes of expr; NULL: they differ. */
static const ir_expr *uniform(const ir_expr *expr)
{
    return expr->dtype.lanes == 1 ? expr : expr->op == IR_BROADCAST ? expr->arg[0] : NULL;
}

/* Keeps ramps as ramps: base + uniform value, so that a load of consecutive elements is still seen as one. */
static const ir_expr *add(tec_context *cx, const ir_expr *left, const ir_expr *right)
{
    const ir_expr *ramp = left->op == IR_RAMP    ? left
                          : right->op == IR_RAMP ? right
                                                 : NULL,
                  *other = ramp == left ? right : left;
    int lanes = left->dtype.lanes > right->dtype.lanes ? left->dtype.lanes : right->dtype.lanes;

    if (ramp && uniform(other))
        return ir_ramp(cx, ir_add(cx, ramp->ramp.base, uniform(other)), ramp->ramp.stride, lanes);
    left = left->dtype.lanes < lanes ? ir_broadcast(cx, left, lanes) : left;
    right = right->dtype.lanes < lanes ? ir_broadcast(cx, right, lanes) : right;
    return ir_add(cx, left, right);
}

/* The element number from the operand's address. With as many indices as dimensions, each is multiplied by
 * its stride: the declared one, or that of a compact layout, built up from the last dimension. A single index
 * of a parameter with more dimensions counts elements. */
static const ir_expr *const *element(ir_rewrite *rw, const ir_buffer *param, const ir_expr *const *index,
                                     int count)
{
    expansion *self = (expansion *)rw;
    tec_context *cx = rw->cx;
    const ir_expr **at = base_array(cx, const ir_expr *, 1), *by = ir_int(cx, 1);

    at[0] = self->call->call.arg[operand_of(self, param)];
    if (count != param->n && param->strides)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "operand '%s' of '%s' has strides, so each access needs %d indices", param->name,
                         self->call->call.name, param->n);
    for (int d = count - 1; d >= 0; d--) {
        const ir_expr *step = param->strides && !BASE_PLANT_ON(cx, intrinsics_strides)
                                  ? ir_apply(cx, &self->values, param->strides[d])
                                  : by;

        at[0] = add(cx, at[0], scaled(cx, index[d], step));
        by = count == param->n ? ir_mul(cx, by, ir_apply(cx, &self->values, param->shape[d])) : by;
    }
    return at;
}

/* The operand's formal buffer becomes the actual one; what the text allocates stays. */
static const ir_buffer *actual(ir_rewrite *rw, const ir_buffer *buffer)
{
    expansion *x = (expansion *)rw;
    int operand = operand_of(x, buffer);

    return operand < 0 ? buffer : x->call->call.buffer[operand];
}

static const ir_expr *passed_on(ir_rewrite *rw, const ir_buffer *param, const ir_expr *offset)
{
    const expansion *x = (const expansion *)rw;

    return add(rw->cx, x->call->call.arg[operand_of(x, param)], offset);
}

/* Calls inside the text name intrinsics of the text's own list, which the program lists from now on. */
static const ir_expr *expand_expr(ir_rewrite *rw, const ir_expr *expr)
{
    expansion *x = (expansion *)rw;

    if (expr->op == IR_VAR && base_map_get(&x->values.vars, expr))
        return base_map_get(&x->values.vars, expr);
    const ir_expr *out = ir_rewrite_children(rw, expr);
    if (!out || out->op != IR_CALL || !out->call.intrinsic)
        return out;
    return ir_call(rw->cx, out->dtype, out->call.name, known_as(x->w, out->call.intrinsic), out->call.arg,
                   out->call.n, out->call.buffer, out->call.n_buffers, out->call.pure);
}

/* ---- calls ---- */

/* An intrinsic that is called at many places is parsed once. */
static const ir_program *text_of(writer *out, const ir_intrinsic *in)
{
    const ir_program *p = base_map_get(&out->texts, in);

    if (!p && (p = ir_intrinsic_program(out->rw.cx, in)))
        base_map_put(out->rw.cx, &out->texts, in, (void *)p);
    return p;
}

/* The body is renamed first: its loops and lets need variables of their own at each call. */
static const ir_stmt *expand(writer *out, const ir_expr *call)
{
    expansion x = {.rw = {.cx = out->rw.cx,
                          .expr = expand_expr,
                          .buffer = actual,
                          .index = element,
                          .offset = passed_on},
                   .w = out,
                   .call = call};

    if (!(x.p = text_of(out, call->call.intrinsic)))
        return NULL;
    for (int i = 0; i < x.p->n_params; i++)
        if (x.p->params[i].scalar)
            base_map_put(out->rw.cx, &x.values.vars, x.p->params[i].scalar, (void *)call->call.arg[i]);
    return ir_rewrite_stmt(&x.rw, ir_rename(out->rw.cx, x.p->body));
}

static bool has_statements(tec_context *cx, const ir_intrinsic *in)
{
    int group;

    return in && in->text && in->meaning && !ir_intrinsic_function(cx, in) &&
           !ir_intrinsic_instruction(cx, in, &group);
}

static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    if (stmt->kind != IR_EVALUATE || stmt->value->op != IR_CALL ||
        !has_statements(rw->cx, stmt->value->call.intrinsic))
        return ir_rewrite_stmt_children(rw, stmt);
    ir_at(rw->cx, stmt->loc);
    return expand((writer *)rw, stmt->value);
}

/* Intrinsics whose text was written out leave the list of the program; those that it calls come in. */
const ir_program *lower_intrinsics(const lower_options *options, const ir_program *program)
{
    writer w = {.rw = {.cx = options->cx, .stmt = visit}};

    for (int i = 0; i < program->n_intrinsics; i++)
        if (!has_statements(options->cx, program->intrinsics[i]))
            base_push(options->cx, &w.intrinsics, (void *)program->intrinsics[i]);
    const ir_stmt *body = program->n_intrinsics ? ir_rewrite_stmt(&w.rw, program->body) : program->body;
    if (!body || body == program->body)
        return body ? program : NULL;
    ir_program *out = ir_program_copy(options->cx, program);
    out->body = body;
    out->intrinsics = (const ir_intrinsic *const *)w.intrinsics.at;
    out->n_intrinsics = w.intrinsics.n;
    return out;
}
