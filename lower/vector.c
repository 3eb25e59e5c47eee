/* lower/vector.c -- expressions over all lanes of a loop at once. See lower/vectorize.c.
 *
 * Linear indices stay ramps, so that a load of consecutive elements is seen as one; what all lanes agree on
 * stays scalar and is broadcast where a vector meets it. Under a mask, vector loads carry it. A scalar load
 * may only be meant for lanes that run: unless its index is proven to be inside the buffer it becomes
 * `select(mask, broadcast(A[i]), 0)`, which evaluates it only where a lane runs. Divisors of lanes that do
 * not run become 1.
 *
 * A worked example: B[x*2 + 1] = A[x] * w + f32(x) over 4 lanes from x = base.
 *
 *     x            ramp(base, 1, 4)
 *     x*2 + 1      ramp(base*2 + 1, 2, 4): a product with a scalar and a sum with one are ramps again
 *     A[x]         A[ramp(base, 1, 4)], consecutive: one vector load
 *     w            scalar; broadcast where the product needs it
 *     f32(x)       a cast of the ramp, a vector
 *     B[..]        a scatter with stride 2
 *
 * Under a mask `x < n`, A[x] becomes a masked load. A scalar load such as A[n - 1] may only be legal in lanes
 * that run: for n = 0 no lane runs, and A[-1] must not be read. Hence the select, which evaluates it lazily.
 */
#include "lower/vector.h"

static const ir_expr *give_up(lower_vector *v, const char *why)
{
    v->why = why;
    return NULL;
}

static bool is_vector(const ir_expr *e)
{
    return e && e->dtype.lanes > 1;
}

const ir_expr *lower_vector_of(lower_vector *v, const ir_expr *e)
{
    return e && !is_vector(e) ? ir_broadcast(v->cx, e, v->lanes) : e;
}

const ir_buffer *lower_vector_buffer(const lower_vector *v, const ir_buffer *b)
{
    const ir_buffer *own = base_map_get(&v->buffers, b);

    return own ? own : b;
}

/* ---- ramps ---- */

/* The value of lane i is base + i * stride. */
typedef struct {
    const ir_expr *base, *stride; /* scalars */
} linear;

/* A scalar counts as a ramp of stride 0. */
static bool as_linear(lower_vector *v, const ir_expr *e, linear *out)
{
    if (e->op == IR_RAMP) {
        *out = (linear){e->ramp.base, e->ramp.stride};
        return true;
    }
    if (e->op == IR_BROADCAST)
        e = e->arg[0];
    *out = (linear){e, ir_imm_int(v->cx, base_dtype_lanes(e->dtype, 1), 0)};
    return !is_vector(e);
}

static const ir_expr *ramp(lower_vector *v, const ir_expr *base, const ir_expr *stride)
{
    return ir_is_value(stride, 0) ? ir_broadcast(v->cx, base, v->lanes)
                                  : ir_ramp(v->cx, base, stride, v->lanes);
}

/* a op b where the result is a ramp again; NULL where it is none. Sums of ramps are ramps, and products with
 * one that is the same in all lanes. All other operations are done on vectors. */
static const ir_expr *ramp_op(lower_vector *v, ir_op op, const ir_expr *a, const ir_expr *b)
{
    tec_context *cx = v->cx;
    linear x, y;

    if (!base_is_int(a->dtype) || !as_linear(v, a, &x) || !as_linear(v, b, &y))
        return NULL;
    if (op == IR_ADD || op == IR_SUB)
        return ramp(v, ir_op2(cx, op, x.base, y.base), ir_op2(cx, op, x.stride, y.stride));
    if (op != IR_MUL)
        return NULL;
    if (ir_is_value(y.stride, 0))
        return ramp(v, ir_mul(cx, x.base, y.base), ir_mul(cx, x.stride, y.base));
    if (ir_is_value(x.stride, 0))
        return ramp(v, ir_mul(cx, x.base, y.base), ir_mul(cx, x.base, y.stride));
    return NULL;
}

/* a op b, as a ramp where it is one. */
static const ir_expr *combine(lower_vector *v, ir_op op, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *r = is_vector(a) || is_vector(b) ? ramp_op(v, op, a, b) : NULL;

    return r ? r : ir_op2(v->cx, op, a, b);
}

/* ---- memory ---- */

/* A private copy of a buffer has its lanes interleaved: element e of lane i lies at e * lanes + i. */
const ir_expr *lower_vector_index(lower_vector *v, const ir_buffer *b, const ir_expr *index)
{
    const ir_expr *at = lower_vector_expr(v, index);

    if (!at || !base_map_has(&v->buffers, b))
        return at;
    return combine(v, IR_ADD,
                   combine(v, IR_MUL, at, ir_imm_int(v->cx, base_dtype_lanes(at->dtype, 1), v->lanes)),
                   ir_ramp(v->cx, ir_int(v->cx, 0), ir_int(v->cx, 1), v->lanes));
}

static bool in_bounds(lower_vector *v, const ir_buffer *b, const ir_expr *index)
{
    return ir_prove_le(v->f, ir_int(v->cx, 0), index) && ir_prove_lt(v->f, index, b->shape[0]);
}

/* A load by all lanes of one element stays scalar. */
static const ir_expr *load(lower_vector *v, const ir_expr *e)
{
    tec_context *cx = v->cx;
    const ir_buffer *b = lower_vector_buffer(v, e->load.buffer);
    const ir_expr *at = lower_vector_index(v, e->load.buffer, e->load.index[0]);

    if (!at)
        return NULL;
    if (e->load.mask)
        return give_up(v, "it holds a load with a mask of its own");
    if (is_vector(at))
        return v->mask ? ir_load_masked(cx, b, &at, 1, v->mask) : ir_load(cx, b, &at, 1);
    const ir_expr *one = at == e->load.index[0] && b == e->load.buffer ? e : ir_load(cx, b, &at, 1);
    if (!v->mask || in_bounds(v, b, at))
        return one;
    return ir_select(cx, v->mask, ir_broadcast(cx, one, v->lanes),
                     ir_imm(cx, base_dtype_lanes(e->dtype, v->lanes), 0));
}

/* ---- operations ---- */

static const ir_expr *safe_divisor(lower_vector *v, const ir_expr *d)
{
    int64_t k;

    if (!v->mask || !base_is_int(d->dtype) || (ir_is_int(d, &k) && k != 0))
        return d;
    return ir_select(v->cx, v->mask, lower_vector_of(v, d),
                     ir_imm_int(v->cx, base_dtype_lanes(d->dtype, v->lanes), 1));
}

/* Any operation: its operands first, at least one of which became a vector or changed. */
static const ir_expr *operation(lower_vector *v, const ir_expr *e, const ir_expr *const *arg, int n)
{
    tec_context *cx = v->cx;

    if (e->op == IR_NEG && arg[0]->op == IR_RAMP)
        return ir_ramp(cx, ir_neg(cx, arg[0]->ramp.base), ir_neg(cx, arg[0]->ramp.stride), v->lanes);
    if (n == 1)
        return ir_op1(cx, e->op, arg[0]);
    if (n == 2)
        return combine(v, e->op, arg[0],
                       ir_ops[e->op].flags & IR_ZERO_FAILS ? safe_divisor(v, arg[1]) : arg[1]);
    return ir_op3(cx, e->op, arg[0], arg[1], arg[2]);
}

/* A division under a mask is rebuilt even if nothing changed, as its divisor has to become safe. */
static const ir_expr *visit_operation(lower_vector *v, const ir_expr *e)
{
    const ir_expr *arg[3] = {0};
    int n = ir_ops[e->op].arity;
    bool same = true, division = (ir_ops[e->op].flags & IR_ZERO_FAILS) && v->mask;

    for (int i = 0; i < n; i++) {
        arg[i] = lower_vector_expr(v, e->arg[i]);
        if (!arg[i])
            return NULL;
        same &= arg[i] == e->arg[i];
    }
    return same && !division ? e : operation(v, e, arg, n);
}

static const ir_expr *visit_cast(lower_vector *v, const ir_expr *e)
{
    const ir_expr *a = lower_vector_expr(v, e->arg[0]);

    if (!a || a == e->arg[0])
        return a ? e : NULL;
    base_dtype t = base_dtype_lanes(e->dtype, a->dtype.lanes);
    return e->op == IR_CAST ? ir_cast(v->cx, t, a) : ir_reinterpret(v->cx, t, a);
}

const ir_expr *lower_vector_bind(lower_vector *v, const ir_expr *var, const ir_expr *value)
{
    const ir_expr *before = base_map_get(&v->vars, var),
                  *now = is_vector(value) ? ir_let_var(v->cx, var->var.name, value) : var;

    if (before && before != now)
        v->memo = (base_map){0};
    base_map_put(v->cx, &v->vars, var, now);
    return now;
}

static const ir_expr *visit_let(lower_vector *v, const ir_expr *e)
{
    const ir_expr *value = lower_vector_expr(v, e->let.value),
                  *var = value ? lower_vector_bind(v, e->let.var, value) : NULL;

    if (!value)
        return NULL;
    const ir_expr *body = lower_vector_expr(v, e->let.body);
    return !body || (value == e->let.value && body == e->let.body) ? (body ? e : NULL)
                                                                   : ir_let(v->cx, var, value, body);
}

/* A call is made once for all lanes, so it must not depend on the lane, write nothing, and run in any
 * case. */
static const ir_expr *visit_call(lower_vector *v, const ir_expr *e)
{
    const ir_expr **arg = base_array(v->cx, const ir_expr *, e->call.n);
    bool same = true;

    for (int i = 0; i < e->call.n; i++) {
        arg[i] = lower_vector_expr(v, e->call.arg[i]);
        if (!arg[i])
            return NULL;
        if (is_vector(arg[i]))
            return give_up(v, base_format(v->cx, "it calls '%s'", e->call.name));
        same &= arg[i] == e->call.arg[i];
    }
    for (int i = 0; i < e->call.n_buffers; i++)
        if (base_map_has(&v->buffers, e->call.buffer[i]))
            return give_up(v, base_format(v->cx, "it calls '%s'", e->call.name));
    if (!e->call.pure || v->mask)
        return give_up(v, base_format(v->cx, "it calls '%s'", e->call.name));
    if (same)
        return e;
    return ir_call(v->cx, e->dtype, e->call.name, e->call.intrinsic, arg, e->call.n, e->call.buffer,
                   e->call.n_buffers, true);
}

static const ir_expr *visit_var(lower_vector *v, const ir_expr *e)
{
    const ir_expr *now = base_map_get(&v->vars, e);

    if (e == v->var)
        return ir_ramp(v->cx, v->base, ir_int(v->cx, 1), v->lanes);
    return now ? now : e;
}

/* The result is a scalar where all lanes agree, and NULL with a reason where the statement must run lane by
 * lane. */
static const ir_expr *visit(lower_vector *v, const ir_expr *e)
{
    switch ((int)e->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING: return e;
    case IR_VAR: return visit_var(v, e);
    case IR_LOAD: return load(v, e);
    case IR_CAST:
    case IR_REINTERPRET: return visit_cast(v, e);
    case IR_LET: return visit_let(v, e);
    case IR_CALL: return visit_call(v, e);
    case IR_RAMP:
    case IR_BROADCAST:
    case IR_SHUFFLE: return ir_uses_var(v->cx, e, v->var) ? give_up(v, "it holds vectors already") : e;
    case IR_REDUCE: return give_up(v, "it holds a reduction");
    default: return visit_operation(v, e);
    }
}

/* Shared nodes are vectorised once (`memo`). The memo holds for one mask and one set of known facts; whoever
 * changes these starts a new one. */
const ir_expr *lower_vector_expr(lower_vector *v, const ir_expr *e)
{
    if (!e || v->why)
        return NULL;
    if (is_vector(e))
        return give_up(v, "it holds vectors already");

    const ir_expr *out = base_map_get(&v->memo, e);
    if (out)
        return out;
    ir_at(v->cx, e->loc);
    out = visit(v, e);
    if (out)
        base_map_put(v->cx, &v->memo, e, out);
    return out;
}
