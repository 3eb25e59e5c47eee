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

static const ir_expr *give_up(lower_vector *vector, const char *why)
{
    vector->why = why;
    return NULL;
}

static bool is_vector(const ir_expr *expr)
{
    return expr && expr->dtype.lanes > 1;
}

const ir_expr *lower_vector_of(lower_vector *vector, const ir_expr *expr)
{
    return expr && !is_vector(expr) ? ir_broadcast(vector->cx, expr, vector->lanes) : expr;
}

const ir_buffer *lower_vector_buffer(const lower_vector *vector, const ir_buffer *buffer)
{
    const ir_buffer *own = base_map_get(&vector->buffers, buffer);

    return own ? own : buffer;
}

/* ---- ramps ---- */

/* The value of lane i is base + i * stride. */
typedef struct {
    const ir_expr *base, *stride; /* scalars */
} linear;

/* A scalar counts as a ramp of stride 0. */
static bool as_linear(lower_vector *vector, const ir_expr *expr, linear *out)
{
    if (expr->op == IR_RAMP) {
        *out = (linear){expr->ramp.base, expr->ramp.stride};
        return true;
    }
    if (expr->op == IR_BROADCAST)
        expr = expr->arg[0];
    *out = (linear){expr, ir_imm_int(vector->cx, base_dtype_lanes(expr->dtype, 1), 0)};
    return !is_vector(expr);
}

static const ir_expr *ramp(lower_vector *vector, const ir_expr *base, const ir_expr *stride)
{
    return ir_is_value(stride, 0) ? ir_broadcast(vector->cx, base, vector->lanes)
                                  : ir_ramp(vector->cx, base, stride, vector->lanes);
}

/* a op b where the result is a ramp again; NULL where it is none. Sums of ramps are ramps, and products with
 * one that is the same in all lanes. All other operations are done on vectors. */
static const ir_expr *ramp_op(lower_vector *vector, ir_op op, const ir_expr *a, const ir_expr *b)
{
    tec_context *cx = vector->cx;
    linear x, y;

    if (!base_is_int(a->dtype) || !as_linear(vector, a, &x) || !as_linear(vector, b, &y))
        return NULL;
    if (op == IR_ADD || op == IR_SUB)
        return ramp(vector, ir_op2(cx, op, x.base, y.base), ir_op2(cx, op, x.stride, y.stride));
    if (op != IR_MUL)
        return NULL;
    if (ir_is_value(y.stride, 0))
        return ramp(vector, ir_mul(cx, x.base, y.base), ir_mul(cx, x.stride, y.base));
    if (ir_is_value(x.stride, 0))
        return ramp(vector, ir_mul(cx, x.base, y.base), ir_mul(cx, x.base, y.stride));
    return NULL;
}

/* a op b, as a ramp where it is one. */
static const ir_expr *combine(lower_vector *vector, ir_op op, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *r = is_vector(a) || is_vector(b) ? ramp_op(vector, op, a, b) : NULL;

    return r ? r : ir_op2(vector->cx, op, a, b);
}

/* ---- memory ---- */

/* A private copy of a buffer has its lanes interleaved: element e of lane i lies at e * lanes + i. */
const ir_expr *lower_vector_index(lower_vector *vector, const ir_buffer *buffer, const ir_expr *index)
{
    const ir_expr *at = lower_vector_expr(vector, index);

    if (!at || !base_map_has(&vector->buffers, buffer))
        return at;
    return combine(
        vector, IR_ADD,
        combine(vector, IR_MUL, at, ir_imm_int(vector->cx, base_dtype_lanes(at->dtype, 1), vector->lanes)),
        ir_ramp(vector->cx, ir_int(vector->cx, 0), ir_int(vector->cx, 1), vector->lanes));
}

static bool in_bounds(lower_vector *vector, const ir_buffer *buffer, const ir_expr *index)
{
    return ir_prove_le(vector->f, ir_int(vector->cx, 0), index) &&
           ir_prove_lt(vector->f, index, buffer->shape[0]);
}

/* Whether others may store to the buffer, or to one that overlaps it, while no lane of this vector runs. */
static bool is_disturbed(const lower_vector *vector, const ir_buffer *buffer)
{
    for (int i = 0; vector->idle && vector->shared && i < vector->shared->cap; i++) {
        const ir_buffer *stored = vector->shared->slots[i].key;

        if (stored && (stored == buffer || (stored->alias && stored->alias == buffer->alias)))
            return true;
    }
    return false;
}

/* A load by all lanes of one element stays scalar. It is made whatever the mask says, if the element is
 * there, and if no other thread may store to it where no lane reads it. */
static const ir_expr *load(lower_vector *vector, const ir_expr *expr)
{
    tec_context *cx = vector->cx;
    const ir_buffer *buffer = lower_vector_buffer(vector, expr->load.buffer);
    const ir_expr *at = lower_vector_index(vector, expr->load.buffer, expr->load.index[0]);

    if (!at)
        return NULL;
    if (expr->load.mask)
        return give_up(vector, "it holds a load with a mask of its own");
    if (is_vector(at))
        return vector->mask ? ir_load_masked(cx, buffer, &at, 1, vector->mask) : ir_load(cx, buffer, &at, 1);
    const ir_expr *one =
        at == expr->load.index[0] && buffer == expr->load.buffer ? expr : ir_load(cx, buffer, &at, 1);
    if (!vector->mask || (!is_disturbed(vector, expr->load.buffer) && in_bounds(vector, buffer, at)))
        return one;
    return ir_select(cx, vector->mask, ir_broadcast(cx, one, vector->lanes),
                     ir_imm(cx, base_dtype_lanes(expr->dtype, vector->lanes), 0));
}

/* ---- operations ---- */

/* A division that must not see a zero divisor. */
static bool may_fail(const ir_expr *expr)
{
    return (ir_ops[expr->op].flags & IR_ZERO_FAILS) && !ir_divides_data(expr);
}

/* Lanes that are masked off may hold 0 as divisor, which is an error in index arithmetic: these divide by 1.
 * An index that is the same in all lanes and at least 1 whatever the mask says stays as it is. */
static const ir_expr *safe_divisor(lower_vector *vector, const ir_expr *divisor)
{
    int64_t k;

    if (!vector->mask || (ir_is_int(divisor, &k) && k != 0) ||
        (divisor->dtype.lanes == 1 && ir_prove_le(vector->f, ir_int(vector->cx, 1), divisor)))
        return divisor;
    return ir_select(vector->cx, vector->mask, lower_vector_of(vector, divisor),
                     ir_imm_int(vector->cx, base_dtype_lanes(divisor->dtype, vector->lanes), 1));
}

/* Any operation: its operands first, at least one of which became a vector or changed. */
static const ir_expr *operation(lower_vector *vector, const ir_expr *expr, const ir_expr *const *arg,
                                int count)
{
    tec_context *cx = vector->cx;

    if (expr->op == IR_NEG && arg[0]->op == IR_RAMP)
        return ir_ramp(cx, ir_neg(cx, arg[0]->ramp.base), ir_neg(cx, arg[0]->ramp.stride), vector->lanes);
    if (count == 1)
        return ir_op1(cx, expr->op, arg[0]);
    if (count == 2)
        return combine(vector, expr->op, arg[0], may_fail(expr) ? safe_divisor(vector, arg[1]) : arg[1]);
    return ir_op3(cx, expr->op, arg[0], arg[1], arg[2]);
}

/* A division under a mask is rebuilt even if nothing changed, as its divisor has to become safe. */
static const ir_expr *visit_operation(lower_vector *vector, const ir_expr *expr)
{
    const ir_expr *arg[3] = {0};
    int n = ir_ops[expr->op].arity;
    bool same = true, division = may_fail(expr) && vector->mask;

    for (int i = 0; i < n; i++) {
        arg[i] = lower_vector_expr(vector, expr->arg[i]);
        if (!arg[i])
            return NULL;
        same &= arg[i] == expr->arg[i];
    }
    return same && !division ? expr : operation(vector, expr, arg, n);
}

static const ir_expr *visit_cast(lower_vector *vector, const ir_expr *expr)
{
    const ir_expr *a = lower_vector_expr(vector, expr->arg[0]);

    if (!a || a == expr->arg[0])
        return a ? expr : NULL;
    base_dtype t = base_dtype_lanes(expr->dtype, a->dtype.lanes);
    return expr->op == IR_CAST ? ir_cast(vector->cx, t, a) : ir_reinterpret(vector->cx, t, a);
}

/* A variable with a vector as value becomes another variable. What was rewritten with the old one is
 * forgotten. */
const ir_expr *lower_vector_bind(lower_vector *vector, const ir_expr *var, const ir_expr *value)
{
    const ir_expr *before = base_map_get(&vector->vars, var),
                  *now = is_vector(value) ? ir_let_var(vector->cx, var->var.name, value) : var;

    if (before && before != now)
        vector->memo = (base_map){0};
    base_map_put(vector->cx, &vector->vars, var, now);
    return now;
}

static const ir_expr *visit_let(lower_vector *vector, const ir_expr *expr)
{
    const ir_expr *value = lower_vector_expr(vector, expr->let.value),
                  *var = value ? lower_vector_bind(vector, expr->let.var, value) : NULL;

    if (!value)
        return NULL;
    const ir_expr *body = lower_vector_expr(vector, expr->let.body);
    return !body || (value == expr->let.value && body == expr->let.body)
               ? (body ? expr : NULL)
               : ir_let(vector->cx, var, value, body);
}

/* A call is made once for all lanes, so it must not depend on the lane, write nothing, and run in any
 * case. */
static const ir_expr *visit_call(lower_vector *vector, const ir_expr *expr)
{
    const ir_expr **arg = base_array(vector->cx, const ir_expr *, expr->call.n);
    bool same = true;

    for (int i = 0; i < expr->call.n; i++) {
        arg[i] = lower_vector_expr(vector, expr->call.arg[i]);
        if (!arg[i])
            return NULL;
        if (is_vector(arg[i]))
            return give_up(vector, base_format(vector->cx, "it calls '%s'", expr->call.name));
        same &= arg[i] == expr->call.arg[i];
    }
    for (int i = 0; i < expr->call.n_buffers; i++)
        if (base_map_has(&vector->buffers, expr->call.buffer[i]))
            return give_up(vector, base_format(vector->cx, "it calls '%s'", expr->call.name));
    if (!expr->call.pure || vector->mask)
        return give_up(vector, base_format(vector->cx, "it calls '%s'", expr->call.name));
    if (same)
        return expr;
    return ir_call(vector->cx, expr->dtype, expr->call.name, expr->call.intrinsic, arg, expr->call.n,
                   expr->call.buffer, expr->call.n_buffers, true);
}

static const ir_expr *visit_var(lower_vector *vector, const ir_expr *expr)
{
    const ir_expr *now = base_map_get(&vector->vars, expr);

    if (expr == vector->var)
        return ir_ramp(vector->cx, vector->base, ir_int(vector->cx, 1), vector->lanes);
    return now ? now : expr;
}

/* The result is a scalar where all lanes agree, and NULL with a reason where the statement must run lane by
 * lane. */
static const ir_expr *visit(lower_vector *vector, const ir_expr *expr)
{
    switch ((int)expr->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING: return expr;
    case IR_VAR: return visit_var(vector, expr);
    case IR_LOAD: return load(vector, expr);
    case IR_CAST:
    case IR_REINTERPRET: return visit_cast(vector, expr);
    case IR_LET: return visit_let(vector, expr);
    case IR_CALL: return visit_call(vector, expr);
    case IR_RAMP:
    case IR_BROADCAST:
    case IR_SHUFFLE:
        return ir_uses_var(vector->cx, expr, vector->var) ? give_up(vector, "it holds vectors already")
                                                          : expr;
    case IR_REDUCE: return give_up(vector, "it holds a reduction");
    default: return visit_operation(vector, expr);
    }
}

/* Shared nodes are vectorised once (`memo`). The memo holds for one mask and one set of known facts; the
 * caller changes these starts a new one. */
const ir_expr *lower_vector_expr(lower_vector *vector, const ir_expr *expr)
{
    if (!expr || vector->why)
        return NULL;
    if (is_vector(expr))
        return give_up(vector, "it holds vectors already");

    const ir_expr *out = base_map_get(&vector->memo, expr);
    if (out)
        return out;
    ir_at(vector->cx, expr->loc);
    out = visit(vector, expr);
    if (out)
        base_map_put(vector->cx, &vector->memo, expr, out);
    return out;
}
