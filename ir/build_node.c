/* ir/build_node.c -- constructors of the structural expressions: loads, vectors, lets, calls, reductions. */
#include <string.h>

#include "ir/make.h"

enum { MAX_LANES = 4096 };

/* ---- loads ---- */

static int widest(const ir_expr *const *e, int n)
{
    int lanes = 1;

    for (int i = 0; i < n; i++)
        lanes = e[i]->dtype.lanes > lanes ? e[i]->dtype.lanes : lanes;
    return lanes;
}

/* A buffer is indexed by all its dimensions, or by one index into its memory as a whole. Vector indices must
 * agree in their lanes, scalars spread to the widest; *lanes: how many elements the access touches. */
bool ir_check_index(tec_context *cx, const ir_buffer *b, const ir_expr *const *index, int n, int *lanes)
{
    if (!b || !ir_all_there(index, n))
        return false;
    if (n != b->n && n != 1)
        return ir_refuse(cx, "'%s' has %d dimension%s, and %d ind%s given", b->name, b->n,
                         b->n == 1 ? "" : "s", n, n == 1 ? "ex is" : "ices are");
    *lanes = widest(index, n);
    for (int i = 0; i < n; i++) {
        if (!base_is_int(index[i]->dtype))
            return ir_refuse(cx, "index %d of '%s' is %s: an integer is needed", i + 1, b->name,
                             ir_shown(cx, index[i]));
        if (index[i]->dtype.lanes != 1 && index[i]->dtype.lanes != *lanes)
            return ir_refuse(cx, "the indices of '%s' differ in their lanes: %s has not %d", b->name,
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

const ir_expr *ir_load_masked(tec_context *cx, const ir_buffer *b, const ir_expr *const *index, int n,
                              const ir_expr *mask)
{
    int lanes;

    if (!ir_check_index(cx, b, index, n, &lanes) || !ir_check_mask(cx, b->name, &mask, lanes))
        return NULL;
    ir_expr *e = ir_make(cx, IR_LOAD, base_dtype_lanes(b->dtype, lanes));
    e->load.buffer = b;
    e->load.index = ir_copy_exprs(cx, index, n);
    e->load.n = n;
    e->load.mask = mask;
    return ir_finish(e);
}

const ir_expr *ir_load(tec_context *cx, const ir_buffer *b, const ir_expr *const *index, int n)
{
    return ir_load_masked(cx, b, index, n, NULL);
}

/* ---- vectors ---- */

static bool check_lanes(tec_context *cx, const char *what, int64_t lanes)
{
    if (lanes < 1 || lanes > MAX_LANES)
        ir_refuse(cx, "%s of %lld lanes: 1 to %d are possible", what, (long long)lanes, MAX_LANES);
    return lanes >= 1 && lanes <= MAX_LANES;
}

const ir_expr *ir_broadcast_raw(tec_context *cx, const ir_expr *e, int lanes)
{
    if (!e || !check_lanes(cx, "broadcast", lanes))
        return NULL;
    if (e->dtype.lanes != 1)
        return ir_refuse(cx, "'broadcast' of %s: a scalar is needed", ir_shown(cx, e));
    ir_expr *b = ir_make(cx, IR_BROADCAST, base_dtype_lanes(e->dtype, lanes));
    b->arg[0] = e;
    return ir_finish(b);
}

/* A vector of as many lanes stays as it is. */
const ir_expr *ir_broadcast(tec_context *cx, const ir_expr *e, int lanes)
{
    return e && (lanes == 1 || e->dtype.lanes == lanes) ? e : ir_broadcast_raw(cx, e, lanes);
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
    ir_expr *e = ir_make(cx, IR_RAMP, base_dtype_lanes(base->dtype, lanes));
    e->ramp.base = base;
    e->ramp.stride = stride;
    return ir_finish(e);
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
static bool check_picks(tec_context *cx, const ir_expr *const *vectors, int n, const int *pick, int lanes)
{
    int total = 0;

    for (int i = 0; i < n; i++) {
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

const ir_expr *ir_shuffle(tec_context *cx, const ir_expr *const *vectors, int n, const int *pick, int lanes)
{
    if (!ir_all_there(vectors, n))
        return NULL;
    if (n < 1)
        return ir_refuse(cx, "'shuffle' of nothing");
    if (!check_lanes(cx, "shuffle", lanes) || !check_picks(cx, vectors, n, pick, lanes))
        return NULL;
    ir_expr *e = ir_make(cx, IR_SHUFFLE, base_dtype_lanes(vectors[0]->dtype, lanes));
    e->shuffle.vectors = ir_copy_exprs(cx, vectors, n);
    e->shuffle.n = n;
    e->shuffle.pick = base_copy(cx, pick, (size_t)lanes * sizeof *pick);
    return ir_finish(e);
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
const ir_expr *ir_call(tec_context *cx, base_dtype t, const char *name, const ir_intrinsic *intrinsic,
                       const ir_expr *const *arg, int n, const ir_buffer *const *buffer, int n_buffers,
                       bool pure)
{
    if (!ir_all_there(arg, n))
        return NULL;
    for (int i = 0; i < n_buffers; i++)
        if (!buffer[i])
            return NULL;
    ir_expr *e = ir_make(cx, IR_CALL, t);
    e->call.name = base_strdup(cx, name);
    e->call.intrinsic = intrinsic;
    e->call.arg = ir_copy_exprs(cx, arg, n);
    e->call.n = n;
    e->call.buffer = n_buffers ? base_copy(cx, buffer, (size_t)n_buffers * sizeof *buffer) : NULL;
    e->call.n_buffers = n_buffers;
    e->call.pure = pure;
    return ir_finish(e);
}

/* Bare constants take the combiner's type; anything else must have it. */
bool ir_check_sources(tec_context *cx, const ir_combiner *c, const ir_expr **source)
{
    if (!c)
        return false;
    for (int i = 0; i < c->n; i++) {
        base_dtype t = c->y[i]->dtype;
        if (!(source[i] = ir_adopt(cx, source[i], t)))
            return false;
        if (!base_dtype_same(base_dtype_lanes(source[i]->dtype, 1), t))
            return ir_refuse(cx, "'%s' over %s combines %s", c->name, base_dtype_text(cx, t),
                             ir_shown(cx, source[i]));
    }
    return true;
}

/* Extents are converted in place, in the caller's copy. */
static bool check_axes(tec_context *cx, const ir_expr *const *axis, const ir_expr **extent, int n)
{
    if (!ir_all_there(axis, n) || !ir_all_there(extent, n))
        return false;
    for (int i = 0; i < n; i++) {
        if (!ir_check_var(cx, "reduction over", axis[i]))
            return false;
        extent[i] = ir_adopt(cx, extent[i], axis[i]->dtype);
        if (!base_is_int(axis[i]->dtype) || !base_dtype_same(axis[i]->dtype, extent[i]->dtype))
            return ir_refuse(cx, "reduction axis %s has extent %s", ir_shown(cx, axis[i]),
                             ir_shown(cx, extent[i]));
    }
    return true;
}

static const ir_expr **mutable_copy(tec_context *cx, const ir_expr *const *e, int n)
{
    return base_copy(cx, e, (size_t)n * sizeof *e);
}

/* Extents and sources are converted to the types that the combiner wants. `which` selects the component of a
 * combiner of tuples, such as the index of argmax; the expression has that component's type. */
const ir_expr *ir_reduce(tec_context *cx, const ir_combiner *c, const ir_expr *const *source,
                         const ir_expr *const *axis, const ir_expr *const *extent, int n_axes,
                         const ir_expr *condition, int which)
{
    const ir_expr **s = c ? mutable_copy(cx, source, c->n) : NULL, **x = mutable_copy(cx, extent, n_axes);

    if (!ir_check_sources(cx, c, s) || !check_axes(cx, axis, x, n_axes))
        return NULL;
    if (which < 0 || which >= c->n)
        return ir_refuse(cx, "'%s' has no component %d", c->name, which);
    if (condition && !base_dtype_same(condition->dtype, BASE_BOOL))
        return ir_refuse(cx, "'%s' under the condition %s: a bool is needed", c->name,
                         ir_shown(cx, condition));
    ir_expr *e = ir_make(cx, IR_REDUCE, s[which]->dtype);
    e->reduce.combiner = c;
    e->reduce.source = s;
    e->reduce.axis = ir_copy_exprs(cx, axis, n_axes);
    e->reduce.extent = x;
    e->reduce.condition = condition;
    e->reduce.n_axes = n_axes;
    e->reduce.which = which;
    return ir_finish(e);
}
