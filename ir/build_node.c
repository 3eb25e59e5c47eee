/* ir/build_node.c -- constructors of the structural expressions: loads, vectors, lets, calls, reductions. */
#include <string.h>

#include "ir/make.h"

enum { MAX_LANES = 4096 };

/* ---- loads ---- */

static int widest(const ir_expr *const *expr, int n)
{
    int lanes = 1;

    for (int i = 0; i < n; i++)
        lanes = expr[i]->dtype.lanes > lanes ? expr[i]->dtype.lanes : lanes;
    return lanes;
}

/* A buffer is indexed by all its dimensions, or by one index into its memory as a whole. Vector indices must
 * agree in their lanes, scalars spread to the widest; *lanes: how many elements the access touches. */
bool ir_check_index(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index, int count,
                    int *lanes)
{
    if (!buffer || !ir_all_there(index, count))
        return false;
    if (count != buffer->n && count != 1)
        return ir_refuse(cx, "'%s' has %d dimension%s, and %d ind%s given", buffer->name, buffer->n,
                         buffer->n == 1 ? "" : "s", count, count == 1 ? "ex is" : "ices are");
    *lanes = widest(index, count);
    for (int i = 0; i < count; i++) {
        if (!base_is_int(index[i]->dtype))
            return ir_refuse(cx, "index %d of '%s' is %s: an integer is needed", i + 1, buffer->name,
                             ir_shown(cx, index[i]));
        if (index[i]->dtype.lanes != 1 && index[i]->dtype.lanes != *lanes)
            return ir_refuse(cx, "the indices of '%s' differ in their lanes: %s has not %d", buffer->name,
                             ir_shown(cx, index[i]), *lanes);
    }
    return true;
}

/* A mask has one bool for each lane of the access; a single one spreads to all. */
bool ir_check_mask(tec_context *cx, const char *name, const ir_expr **mask, int lanes)
{
    *mask = ir_convert(cx, *mask, base_dtype_lanes(BASE_BOOL, lanes));
    if (*mask && !base_dtype_same((*mask)->dtype, base_dtype_lanes(BASE_BOOL, lanes)))
        return ir_refuse(cx, "the mask of '%s' is %s: %s is needed", name, ir_shown(cx, *mask),
                         base_dtype_text(cx, base_dtype_lanes(BASE_BOOL, lanes)));
    return true;
}

const ir_expr *ir_load_masked(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index,
                              int count, const ir_expr *mask)
{
    int lanes;

    if (!ir_check_index(cx, buffer, index, count, &lanes) || !ir_check_mask(cx, buffer->name, &mask, lanes))
        return NULL;
    ir_expr *expr = ir_make(cx, IR_LOAD, base_dtype_lanes(buffer->dtype, lanes));
    expr->load.buffer = buffer;
    expr->load.index = ir_copy_exprs(cx, index, count);
    expr->load.n = count;
    expr->load.mask = mask;
    return ir_finish(expr);
}

const ir_expr *ir_load(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index, int n)
{
    return ir_load_masked(cx, buffer, index, n, NULL);
}

/* ---- vectors ---- */

static bool check_lanes(tec_context *cx, const char *what, int64_t lanes)
{
    if (lanes < 1 || lanes > MAX_LANES)
        ir_refuse(cx, "%s of %lld lanes: 1 to %d are possible", what, (long long)lanes, MAX_LANES);
    return lanes >= 1 && lanes <= MAX_LANES;
}

const ir_expr *ir_broadcast_raw(tec_context *cx, const ir_expr *expr, int lanes)
{
    if (!expr || !check_lanes(cx, "broadcast", lanes))
        return NULL;
    if (expr->dtype.lanes != 1)
        return ir_refuse(cx, "'broadcast' of %s: a scalar is needed", ir_shown(cx, expr));
    ir_expr *b = ir_make(cx, IR_BROADCAST, base_dtype_lanes(expr->dtype, lanes));
    b->arg[0] = expr;
    return ir_finish(b);
}

/* A vector of as many lanes stays as it is. */
const ir_expr *ir_broadcast(tec_context *cx, const ir_expr *expr, int lanes)
{
    return expr && (lanes == 1 || expr->dtype.lanes == lanes) ? expr : ir_broadcast_raw(cx, expr, lanes);
}

/* base, base + stride, base + 2*stride, ... in `lanes` lanes. */
const ir_expr *ir_ramp_raw(tec_context *cx, const ir_expr *base, const ir_expr *stride, int lanes)
{
    if (!base || !stride || !check_lanes(cx, "ramp", lanes))
        return NULL;
    stride = ir_adopt(cx, stride, base->dtype);
    base = ir_adopt(cx, base, stride->dtype);
    if (!base_is_int(base->dtype) || base->dtype.lanes != 1 || !base_dtype_same(base->dtype, stride->dtype))
        return ir_refuse(cx, "'ramp' of %s and %s: two integers of one type are needed", ir_shown(cx, base),
                         ir_shown(cx, stride));
    ir_expr *expr = ir_make(cx, IR_RAMP, base_dtype_lanes(base->dtype, lanes));
    expr->ramp.base = base;
    expr->ramp.stride = stride;
    return ir_finish(expr);
}

/* One lane, or a stride of 0, is a broadcast. */
const ir_expr *ir_ramp(tec_context *cx, const ir_expr *base, const ir_expr *stride, int lanes)
{
    const ir_expr *e = ir_ramp_raw(cx, base, stride, lanes);

    if (e && (lanes == 1 || (ir_is_value(stride, 0))))
        return ir_broadcast(cx, e->ramp.base, lanes);
    return e;
}

/* The vectors of a shuffle lie behind one another, so that lane numbers count through all of them. */
static bool check_picks(tec_context *cx, const ir_expr *const *vectors, int count, const int *pick, int lanes)
{
    int total = 0;

    for (int i = 0; i < count; i++) {
        if (!base_dtype_same(base_dtype_lanes(vectors[i]->dtype, 1), base_dtype_lanes(vectors[0]->dtype, 1)))
            return ir_refuse(cx, "'shuffle' of %s and %s: vectors of one element type are needed",
                             ir_shown(cx, vectors[0]), ir_shown(cx, vectors[i]));
        total += vectors[i]->dtype.lanes;
    }
    for (int i = 0; i < lanes; i++)
        if (pick[i] < 0 || pick[i] >= total)
            return ir_refuse(cx, "'shuffle' picks lane %d of %d", pick[i], total);
    return true;
}

/* Lane i of the result is lane pick[i] of the concatenated vectors. */
const ir_expr *ir_shuffle(tec_context *cx, const ir_expr *const *vectors, int count, const int *pick,
                          int lanes)
{
    if (!ir_all_there(vectors, count))
        return NULL;
    if (count < 1)
        return ir_refuse(cx, "'shuffle' needs at least one vector");
    if (!check_lanes(cx, "shuffle", lanes) || !check_picks(cx, vectors, count, pick, lanes))
        return NULL;
    ir_expr *expr = ir_make(cx, IR_SHUFFLE, base_dtype_lanes(vectors[0]->dtype, lanes));
    expr->shuffle.vectors = ir_copy_exprs(cx, vectors, count);
    expr->shuffle.n = count;
    expr->shuffle.pick = base_copy(cx, pick, (size_t)lanes * sizeof *pick);
    return ir_finish(expr);
}

/* ---- let, call, reduce ---- */

bool ir_check_var(tec_context *cx, const char *what, const ir_expr *var)
{
    if (var && var->op != IR_VAR)
        ir_refuse(cx, "%s %s: a variable is needed", what, ir_shown(cx, var));
    return var && var->op == IR_VAR;
}

/* The value may be a bare constant, which takes the variable's type. */
bool ir_check_binding(tec_context *cx, const ir_expr *var, const ir_expr **value)
{
    if (!ir_check_var(cx, "'let' binds", var) || !(*value = ir_convert(cx, *value, var->dtype)))
        return false;
    if (!base_dtype_same(var->dtype, (*value)->dtype))
        return ir_refuse(cx, "'let' gives %s the value %s", ir_shown(cx, var), ir_shown(cx, *value));
    return true;
}

/* The value is not substituted here, even if it is a constant: a let keeps a value from being computed
 * twice. */
const ir_expr *ir_let(tec_context *cx, const ir_expr *var, const ir_expr *value, const ir_expr *body)
{
    if (!body || !ir_check_binding(cx, var, &value))
        return NULL;
    ir_expr *e = ir_make(cx, IR_LET, body->dtype);
    e->let.var = var;
    e->let.value = value;
    e->let.body = body;
    return ir_finish(e);
}

/* Nothing is checked against the declaration of the intrinsic here: ir/verify compares every call with the
 * program's list. `pure` promises that the call has no effect and may be dropped or repeated. */
const ir_expr *ir_call(tec_context *cx, base_dtype dtype, const char *name, const ir_intrinsic *intrinsic,
                       const ir_expr *const *arg, int count, const ir_buffer *const *buffer, int n_buffers,
                       bool pure)
{
    if (!ir_all_there(arg, count))
        return NULL;
    for (int i = 0; i < n_buffers; i++)
        if (!buffer[i])
            return NULL;
    ir_expr *expr = ir_make(cx, IR_CALL, dtype);
    expr->call.name = base_strdup(cx, name);
    expr->call.intrinsic = intrinsic;
    expr->call.arg = ir_copy_exprs(cx, arg, count);
    expr->call.n = count;
    expr->call.buffer = n_buffers ? base_copy(cx, buffer, (size_t)n_buffers * sizeof *buffer) : NULL;
    expr->call.n_buffers = n_buffers;
    expr->call.pure = pure;
    return ir_finish(expr);
}

/* Bare constants take the combiner's type; anything else must have it. */
bool ir_check_sources(tec_context *cx, const ir_combiner *combiner, const ir_expr **source)
{
    if (!combiner)
        return false;
    for (int i = 0; i < combiner->n; i++) {
        base_dtype t = combiner->y[i]->dtype;
        if (!(source[i] = ir_adopt(cx, source[i], t)))
            return false;
        if (!base_dtype_same(base_dtype_lanes(source[i]->dtype, 1), t))
            return ir_refuse(cx, "'%s' over %s combines %s", combiner->name, base_dtype_text(cx, t),
                             ir_shown(cx, source[i]));
    }
    return true;
}

/* Extents are converted in place, in the caller's copy. */
static bool check_axes(tec_context *cx, const ir_expr *const *axis, const ir_expr **extent, int count)
{
    if (!ir_all_there(axis, count) || !ir_all_there(extent, count))
        return false;
    for (int i = 0; i < count; i++) {
        if (!ir_check_var(cx, "reduction over", axis[i]))
            return false;
        extent[i] = ir_adopt(cx, extent[i], axis[i]->dtype);
        if (!base_is_int(axis[i]->dtype) || !base_dtype_same(axis[i]->dtype, extent[i]->dtype))
            return ir_refuse(cx, "reduction axis %s has extent %s", ir_shown(cx, axis[i]),
                             ir_shown(cx, extent[i]));
    }
    return true;
}

static const ir_expr **mutable_copy(tec_context *cx, const ir_expr *const *expr, int n)
{
    return base_copy(cx, expr, (size_t)n * sizeof *expr);
}

/* Extents and sources are converted to the types that the combiner wants. `which` selects the component of a
 * combiner of tuples, such as the index of argmax; the expression has that component's type. */
const ir_expr *ir_reduce(tec_context *cx, const ir_combiner *combiner, const ir_expr *const *source,
                         const ir_expr *const *axis, const ir_expr *const *extent, int n_axes,
                         const ir_expr *condition, int which)
{
    const ir_expr **s = combiner ? mutable_copy(cx, source, combiner->n) : NULL,
                  **x = mutable_copy(cx, extent, n_axes);

    if (!ir_check_sources(cx, combiner, s) || !check_axes(cx, axis, x, n_axes))
        return NULL;
    if (which < 0 || which >= combiner->n)
        return ir_refuse(cx, "'%s' has no component %d", combiner->name, which);
    if (condition && !base_dtype_same(condition->dtype, BASE_BOOL))
        return ir_refuse(cx, "'%s' under the condition %s: a bool is needed", combiner->name,
                         ir_shown(cx, condition));
    ir_expr *expr = ir_make(cx, IR_REDUCE, s[which]->dtype);
    expr->reduce.combiner = combiner;
    expr->reduce.source = s;
    expr->reduce.axis = ir_copy_exprs(cx, axis, n_axes);
    expr->reduce.extent = x;
    expr->reduce.condition = condition;
    expr->reduce.n_axes = n_axes;
    expr->reduce.which = which;
    return ir_finish(expr);
}
