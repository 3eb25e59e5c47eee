/* targets/llvm/facts.c -- what address arithmetic relies on: multiples, signs, ramps; and which expressions
 * must wait for their condition.
 *
 * These are cheap structural answers about index expressions, whose arithmetic is assumed not to overflow;
 * that of data may. The thorough proofs were made by the passes before; "no knowledge" (1, false) is always a
 * right answer.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"
#include "ir/eval.h"

static int64_t gcd(int64_t left, int64_t right)
{
    left = left < 0 ? -left : left;
    right = right < 0 ? -right : right;
    while (right) {
        int64_t r = left % right;
        left = right;
        right = r;
    }
    return left;
}

enum { MOST = 4096 }; /* no alignment beyond a page is of use */

static int64_t product(int64_t a, int64_t b)
{
    return a >= MOST || b >= MOST ? gcd(MOST, a) > gcd(MOST, b) ? gcd(MOST, a) : gcd(MOST, b) : a * b;
}

/* 0 stands for "is 0", a multiple of everything. */
static int64_t multiple(llvm_gen *gen, const ir_expr *expr)
{
    const llvm_binding *v;
    if (expr->op == IR_INT)
        return expr->i == INT64_MIN ? 1 : expr->i < 0 ? -expr->i : expr->i;
    if (expr->op == IR_VAR)
        return (v = base_map_get(&gen->vars, expr)) ? v->multiple : 1;
    if (expr->op == IR_ADD || expr->op == IR_SUB)
        return gcd(multiple(gen, expr->arg[0]), multiple(gen, expr->arg[1]));
    if (expr->op == IR_MUL)
        return product(multiple(gen, expr->arg[0]), multiple(gen, expr->arg[1]));
    if (expr->op == IR_SELECT)
        return gcd(multiple(gen, expr->arg[1]), multiple(gen, expr->arg[2]));
    if (expr->op == IR_MIN || expr->op == IR_MAX)
        return gcd(multiple(gen, expr->arg[0]), multiple(gen, expr->arg[1]));
    return 1;
}

int64_t llvm_multiple(llvm_gen *gen, const ir_expr *expr)
{
    int64_t m = multiple(gen, expr);
    return m == 0 ? MOST : m;
}

/* Whether the index is never negative, by its structure alone. False says nothing. */
bool llvm_nonnegative(llvm_gen *gen, const ir_expr *expr)
{
    const llvm_binding *v;
    if (expr->op == IR_INT)
        return expr->i >= 0;
    if (expr->op == IR_VAR)
        return (v = base_map_get(&gen->vars, expr)) && v->nonnegative;
    if (expr->op == IR_BROADCAST)
        return llvm_nonnegative(gen, expr->arg[0]);
    if (expr->op == IR_RAMP)
        return llvm_nonnegative(gen, expr->ramp.base) && llvm_nonnegative(gen, expr->ramp.stride);
    if (expr->dtype.code == kDLInt && expr->dtype.bits < 64)
        return false;
    if ((expr->op == IR_ADD || expr->op == IR_MUL) && (expr->has & IR_HAS_DATA))
        return false;
    if (expr->op == IR_ADD || expr->op == IR_MUL || expr->op == IR_MIN || expr->op == IR_FLOORDIV ||
        expr->op == IR_DIV)
        return llvm_nonnegative(gen, expr->arg[0]) && llvm_nonnegative(gen, expr->arg[1]);
    if (expr->op == IR_FLOORMOD)
        return llvm_nonnegative(gen, expr->arg[1]);
    if (expr->op == IR_MAX)
        return llvm_nonnegative(gen, expr->arg[0]) || llvm_nonnegative(gen, expr->arg[1]);
    return false;
}

static bool divides(const ir_expr *expr)
{
    int64_t value;
    return ir_is_op(expr->op) && (ir_ops[expr->op].flags & IR_ZERO_FAILS) && !base_is_float(expr->dtype) &&
           !ir_is_int(expr->arg[1], &value);
}

/* Whether evaluating expr where the program would not may trap or touch memory. */
static bool find_risk(llvm_gen *gen, const ir_expr *expr)
{
    bool risk = expr->op == IR_LOAD || expr->op == IR_CALL || divides(expr);
    if (expr->op == IR_LET)
        risk = llvm_risky(gen, expr->let.value) || llvm_risky(gen, expr->let.body);
    if (expr->op == IR_RAMP)
        risk = llvm_risky(gen, expr->ramp.base) || llvm_risky(gen, expr->ramp.stride);
    if (expr->op == IR_SHUFFLE)
        for (int i = 0; i < expr->shuffle.n && !risk; i++)
            risk = llvm_risky(gen, expr->shuffle.vectors[i]);
    if (ir_is_op(expr->op) || expr->op == IR_CAST || expr->op == IR_REINTERPRET || expr->op == IR_BROADCAST)
        for (int i = 0; i < 3 && !risk; i++)
            risk = expr->arg[i] && llvm_risky(gen, expr->arg[i]);
    return risk;
}

bool llvm_risky(llvm_gen *gen, const ir_expr *expr)
{
    static const char known[2];
    if (expr->op == IR_INT || expr->op == IR_FLOAT || expr->op == IR_VAR)
        return false;
    const char *answer = base_map_get(&gen->risky, expr);
    if (!answer) {
        answer = &known[find_risk(gen, expr)];
        base_map_put(gen->cx, &gen->risky, expr, answer);
    }
    return answer == &known[1];
}

static bool ramp_of_sum(llvm_gen *gen, const ir_expr *expr, const ir_expr **base, int64_t *stride)
{
    const ir_expr *a, *b;
    int64_t s, t;
    if (!llvm_as_ramp(gen, expr->arg[0], &a, &s) || !llvm_as_ramp(gen, expr->arg[1], &b, &t))
        return false;
    *base = ir_op2(gen->cx, expr->op, a, b);
    *stride = expr->op == IR_ADD ? s + t : s - t;
    return true;
}

static bool ramp_of_product(llvm_gen *gen, const ir_expr *expr, const ir_expr **base, int64_t *stride)
{
    const ir_expr *a;
    int64_t s, factor;
    int constant = ir_is_int(expr->arg[1], &factor) ? 1 : ir_is_int(expr->arg[0], &factor) ? 0 : -1;
    if (constant < 0 || !llvm_as_ramp(gen, expr->arg[1 - constant], &a, &s))
        return false;
    *base = ir_mul(gen->cx, a, ir_imm_int(gen->cx, a->dtype, factor));
    *stride = s * factor;
    return true;
}

/* Whether the lanes of expr are base, base + stride, base + 2*stride, ... with a constant stride. */
bool llvm_as_ramp(llvm_gen *gen, const ir_expr *expr, const ir_expr **base, int64_t *stride)
{
    if (expr->op == IR_RAMP) {
        *base = expr->ramp.base;
        return ir_is_int(expr->ramp.stride, stride);
    }
    if (expr->op == IR_BROADCAST) {
        *base = expr->arg[0];
        *stride = 0;
        return true;
    }
    if (expr->op == IR_ADD || expr->op == IR_SUB)
        return ramp_of_sum(gen, expr, base, stride);
    if (expr->op == IR_MUL)
        return ramp_of_product(gen, expr, base, stride);
    if (expr->op == IR_VAR) {
        const llvm_binding *v = base_map_get(&gen->vars, expr);
        return v && v->expr && llvm_as_ramp(gen, v->expr, base, stride);
    }
    return false;
}

/* ---- lanes at known distances ---- */

/* The value of one lane of a vector of i64 or bool; false: it is no constant. A choice needs only the branch
 * that the lane takes to be one. */
bool llvm_lane_value(const ir_expr *expr, int lane, int64_t *out)
{
    ir_value arg[3], value;
    int64_t a, b;
    int n = 0;

    if (!base_is_bool(expr->dtype) && !base_dtype_same(base_dtype_lanes(expr->dtype, 1), BASE_I64))
        return false;
    if (ir_is_int(expr, out))
        return true;
    if (expr->op == IR_BROADCAST)
        return ir_is_int(expr->arg[0], out);
    if (expr->op == IR_RAMP)
        return ir_is_int(expr->ramp.base, &a) && ir_is_int(expr->ramp.stride, &b) &&
               !__builtin_mul_overflow(b, lane, &b) && !__builtin_add_overflow(a, b, out);
    if (expr->op == IR_SELECT)
        return llvm_lane_value(expr->arg[0], lane, &a) && llvm_lane_value(expr->arg[a ? 1 : 2], lane, out);
    if (!ir_is_op(expr->op))
        return false;
    for (; n < 3 && expr->arg[n]; n++)
        if (!llvm_lane_value(expr->arg[n], lane, &arg[n].i))
            return false;
    if (n == 0 || !ir_eval_op(expr->op, base_dtype_lanes(expr->arg[n - 1]->dtype, 1), arg, &value))
        return false;
    *out = value.i;
    return true;
}

/* Whether the lanes of expr are at constant distances from a scalar: base + offset[lane]. A ramp is, and so
 * is x*8 + floordiv(ramp(0, 1, 16), 2): base x*8, offsets 0, 0, 1, 1, .. 7. */
bool llvm_as_offsets(llvm_gen *gen, const ir_expr *expr, const ir_expr **base, int64_t *offset)
{
    int lanes = expr->dtype.lanes;
    int64_t stride;
    bool even = llvm_as_ramp(gen, expr, base, &stride), known = true;

    for (int k = 0; even && k < lanes; k++)
        if (__builtin_mul_overflow(k, stride, &offset[k]))
            return false;
    if (even || (expr->op != IR_ADD && expr->op != IR_SUB)) {
        for (int k = 0; !even && known && k < lanes; k++)
            known = llvm_lane_value(expr, k, &offset[k]);
        if (!even)
            *base = ir_imm_int(gen->cx, base_dtype_lanes(expr->dtype, 1), 0);
        return known;
    }
    const ir_expr *right;
    int64_t *other = base_array(gen->cx, int64_t, lanes);
    if (!llvm_as_offsets(gen, expr->arg[0], base, offset) ||
        !llvm_as_offsets(gen, expr->arg[1], &right, other))
        return false;
    for (int k = 0; k < lanes; k++)
        if (expr->op == IR_ADD ? __builtin_add_overflow(offset[k], other[k], &offset[k])
                               : __builtin_sub_overflow(offset[k], other[k], &offset[k]))
            return false;
    *base = ir_op2(gen->cx, expr->op, *base, right);
    return true;
}
