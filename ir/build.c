/* ir/build.c -- constructors of immediates, variables, casts and the table's operations, with the folds that
 * cost nothing.
 *
 *     ir_add(x, 0)  =>  x            ir_mul(2, 3)  =>  6            ir_select(true, a, b)  =>  a
 *     ir_add(f, 0.0)  stays, since f may be -0.0        1 / 0  stays, for the interpreter to report
 *
 * Folded are operations on constant ints and bools, identities of ints (x + 0, x * 1, x * 0, x - x, min(x, x)
 * ...), logic with constants, and casts of constants. Of floats only the sign of an immediate is folded: the
 * rest is the user's arithmetic. The invariant: a fold never drops an expression with an effect.
 */
#include <math.h>

#include "ir/make.h"
#include "ir/value.h"
#include "ir/walk.h"

/* ---- immediates and variables ---- */

/* `value` must be wrapped to dtype already. */
static const ir_expr *make_int(tec_context *cx, base_dtype dtype, int64_t value)
{
    ir_expr *e = ir_make(cx, IR_INT, dtype);

    e->i = value;
    return ir_finish(e);
}

/* NaNs become one and the same, so that texts and hashes are exact. */
static const ir_expr *make_float(tec_context *cx, base_dtype dtype, double value)
{
    ir_expr *e = ir_make(cx, IR_FLOAT, dtype);

    e->f = isnan(value) ? (double)NAN : ir_round_to(dtype, value);
    return ir_finish(e);
}

const ir_expr *ir_int(tec_context *cx, int64_t value)
{
    return make_int(cx, BASE_I64, value);
}

const ir_expr *ir_bool(tec_context *cx, bool value)
{
    return make_int(cx, BASE_BOOL, value);
}

static const ir_expr *refuse_immediate(tec_context *cx, base_dtype dtype)
{
    return ir_refuse(cx, "no immediate has type %s", base_dtype_text(cx, dtype));
}

/* Wrapped to the type: 300 as u8 is 44. A vector type gives a broadcast. */
const ir_expr *ir_imm_int(tec_context *cx, base_dtype dtype, int64_t value)
{
    if (dtype.lanes > 1)
        return ir_broadcast(cx, ir_imm_int(cx, base_dtype_lanes(dtype, 1), value), dtype.lanes);
    if (base_is_float(dtype) && ir_value_knows(dtype))
        return make_float(cx, dtype, dtype.bits == 32 ? (double)(float)value : (double)value);
    if (base_is_int(dtype) || base_is_bool(dtype))
        return make_int(cx, dtype, ir_wrap(dtype, (uint64_t)value));
    return refuse_immediate(cx, dtype);
}

/* Rounded to the type; into an integer it saturates, as a cast does. */
const ir_expr *ir_imm(tec_context *cx, base_dtype dtype, double value)
{
    if (dtype.lanes > 1)
        return ir_broadcast(cx, ir_imm(cx, base_dtype_lanes(dtype, 1), value), dtype.lanes);
    if (base_is_float(dtype) && ir_value_knows(dtype))
        return make_float(cx, dtype, value);
    if (base_is_int(dtype) || base_is_bool(dtype))
        return make_int(cx, dtype, ir_eval_cast(BASE_F64, dtype, (ir_value){.f = value}).i);
    return refuse_immediate(cx, dtype);
}

const ir_expr *ir_string(tec_context *cx, const char *text)
{
    if (!text)
        return NULL;
    ir_expr *e = ir_make(cx, IR_STRING, BASE_HANDLE);
    e->string = base_strdup(cx, text);
    return ir_finish(e);
}

/* Each call makes another variable: variables are told apart by address, and their names are for readers. */
static const ir_expr *make_var(tec_context *cx, const char *name, base_dtype dtype, bool data)
{
    ir_expr *e = ir_make(cx, IR_VAR, dtype);

    e->var.name = base_strdup(cx, name);
    e->var.data = data;
    return ir_finish(e);
}

const ir_expr *ir_var(tec_context *cx, const char *name, base_dtype dtype)
{
    return make_var(cx, name, dtype, false);
}

const ir_expr *ir_data_var(tec_context *cx, const char *name, base_dtype dtype)
{
    return make_var(cx, name, dtype, true);
}

/* The variable of data stays data, so that the reasoner does not take it for an index. */
const ir_expr *ir_let_var(tec_context *cx, const char *name, const ir_expr *value)
{
    return value ? make_var(cx, name, value->dtype, value->has & IR_HAS_DATA) : NULL;
}

/* ---- questions about constants ---- */

static const ir_expr *without_broadcast(const ir_expr *expr)
{
    return expr && expr->op == IR_BROADCAST ? expr->arg[0] : expr;
}

/* Also sees through a broadcast: every lane has the value. */
bool ir_is_int(const ir_expr *expr, int64_t *value)
{
    expr = without_broadcast(expr);
    if (!expr || expr->op != IR_INT)
        return false;
    *value = expr->i;
    return true;
}

bool ir_is_value(const ir_expr *expr, int64_t value)
{
    int64_t i;

    return ir_is_int(expr, &i) && i == value;
}

/* NULL stands for a condition that is absent. */
bool ir_is_true(const ir_expr *expr)
{
    return !expr || (base_is_bool(expr->dtype) && ir_is_value(expr, 1));
}

static bool is_false(const ir_expr *expr)
{
    return base_is_bool(expr->dtype) && ir_is_value(expr, 0);
}

/* The neutral start of a maximum: -inf for floats. */
const ir_expr *ir_lowest(tec_context *cx, base_dtype dtype)
{
    if (base_is_float(dtype))
        return ir_imm(cx, dtype, -HUGE_VAL);
    return ir_imm_int(cx, dtype, base_is_signed(dtype) ? (int64_t)(UINT64_MAX << (dtype.bits - 1)) : 0);
}

const ir_expr *ir_highest(tec_context *cx, base_dtype dtype)
{
    if (base_is_float(dtype))
        return ir_imm(cx, dtype, HUGE_VAL);
    return ir_imm_int(cx, dtype, base_is_signed(dtype) ? (int64_t)(UINT64_MAX >> (65 - dtype.bits)) : -1);
}

/* ---- casts ---- */

/* The type that a cast of expr to dtype gives. A scalar type means "as many lanes as expr has". */
static bool cast_type(tec_context *cx, base_dtype *dtype, const ir_expr *expr)
{
    if (dtype->lanes == 1)
        dtype->lanes = expr->dtype.lanes;
    bool scalars =
        ir_value_knows(*dtype) && dtype->code != kDLOpaqueHandle && expr->dtype.code != kDLOpaqueHandle;
    if (!scalars || dtype->lanes != expr->dtype.lanes)
        ir_refuse(cx, "cannot cast %s to %s", ir_shown(cx, expr), base_dtype_text(cx, *dtype));
    return scalars && dtype->lanes == expr->dtype.lanes;
}

/* Without folds, for a text that must be read back as it was written. */
const ir_expr *ir_cast_raw(tec_context *cx, base_dtype dtype, const ir_expr *expr)
{
    if (!expr || !cast_type(cx, &dtype, expr))
        return NULL;
    ir_expr *c = ir_make(cx, IR_CAST, dtype);
    c->arg[0] = expr;
    return ir_finish(c);
}

static const ir_expr *cast_constant(tec_context *cx, base_dtype dtype, const ir_expr *expr)
{
    ir_value v = expr->op == IR_INT ? (ir_value){.i = expr->i} : (ir_value){.f = expr->f};

    v = ir_eval_cast(expr->dtype, dtype, v);
    return base_is_float(dtype) ? make_float(cx, dtype, v.f) : make_int(cx, dtype, v.i);
}

const ir_expr *ir_cast(tec_context *cx, base_dtype dtype, const ir_expr *expr)
{
    if (!expr || !cast_type(cx, &dtype, expr))
        return NULL;
    const ir_expr *inner = without_broadcast(expr);
    if (base_dtype_same(dtype, expr->dtype))
        return expr;
    if (inner->op == IR_INT || inner->op == IR_FLOAT)
        return ir_broadcast(cx, cast_constant(cx, base_dtype_lanes(dtype, 1), inner), dtype.lanes);
    return ir_cast_raw(cx, dtype, expr);
}

/* The same bits under another type, so both must have as many. */
const ir_expr *ir_reinterpret(tec_context *cx, base_dtype dtype, const ir_expr *expr)
{
    if (!expr)
        return NULL;
    if (base_is_bool(dtype) || base_is_bool(expr->dtype) ||
        dtype.bits * dtype.lanes != expr->dtype.bits * expr->dtype.lanes)
        return ir_refuse(cx, "cannot reinterpret %s as %s: %s", ir_shown(cx, expr),
                         base_dtype_text(cx, dtype),
                         base_is_bool(dtype) || base_is_bool(expr->dtype) ? "a bool has no bits"
                                                                          : "the number of bits differs");
    ir_expr *r = ir_make(cx, IR_REINTERPRET, dtype);
    r->arg[0] = expr;
    return ir_finish(r);
}

/* ---- folds; each gives NULL where it does not apply ---- */

/* Whether expr may be left out: nobody misses a value, but a call's effect. */
static bool drops_freely(const ir_expr *expr)
{
    return !(expr->has & IR_HAS_EFFECT);
}

static const ir_expr *zero_of(tec_context *cx, const ir_expr *expr)
{
    return ir_imm_int(cx, expr->dtype, 0);
}

/* All operands constant ints or bools: the evaluator computes; a zero divisor stays for the interpreter to
 * report. Division by zero is not computed, so that the program still fails where it stood. */
static const ir_expr *fold_constants(tec_context *cx, ir_op op, const ir_expr *const *arg)
{
    const ir_op_info *info = &ir_ops[op];
    const ir_expr *last = arg[info->arity - 1];
    ir_value value[3], out;

    for (int i = 0; i < info->arity; i++)
        if (!ir_is_int(arg[i], &value[i].i))
            return NULL;
    if ((info->flags & IR_EFFECT) || !ir_eval_op(op, base_dtype_lanes(last->dtype, 1), value, &out))
        return NULL;
    return ir_imm_int(
        cx, info->result == IR_BOOLEAN ? base_dtype_lanes(BASE_BOOL, last->dtype.lanes) : last->dtype, out.i);
}

/* x + 0, 0 + x, x - 0, 0 - x, x - x. */
static const ir_expr *fold_sum(tec_context *cx, ir_op op, const ir_expr *left, const ir_expr *right)
{
    if (ir_is_value(right, 0))
        return left;
    if (op == IR_ADD)
        return ir_is_value(left, 0) ? right : NULL;
    if (left == right && drops_freely(left))
        return zero_of(cx, left);
    return ir_is_value(left, 0) ? ir_neg(cx, right) : NULL;
}

/* x * 0 drops x, x * 1 does not. */
static const ir_expr *fold_product(const ir_expr *left, const ir_expr *right)
{
    if (ir_is_value(right, 1) || (ir_is_value(left, 0) && drops_freely(right)))
        return left;
    return ir_is_value(left, 1) || (ir_is_value(right, 0) && drops_freely(left)) ? right : NULL;
}

/* x / 1 is x, and x % 1 is 0 if x may be dropped. */
static const ir_expr *fold_quotient(tec_context *cx, ir_op op, const ir_expr *left, const ir_expr *right)
{
    if (!ir_is_value(right, 1))
        return NULL;
    if (op == IR_DIV || op == IR_FLOORDIV)
        return left;
    return drops_freely(left) ? zero_of(cx, left) : NULL;
}

/* Of one expression twice; the comparison of ints with themselves. */
static const ir_expr *fold_twins(tec_context *cx, ir_op op, const ir_expr *operand)
{
    switch (op) {
    case IR_MIN:
    case IR_MAX:
    case IR_AND:
    case IR_OR:
    case IR_BITAND:
    case IR_BITOR: return operand;
    case IR_EQ:
    case IR_LE:
    case IR_GE: return ir_imm_int(cx, base_dtype_lanes(BASE_BOOL, operand->dtype.lanes), 1);
    case IR_NE:
    case IR_LT:
    case IR_GT: return ir_imm_int(cx, base_dtype_lanes(BASE_BOOL, operand->dtype.lanes), 0);
    case IR_BITXOR: return zero_of(cx, operand);
    default: return NULL;
    }
}

/* false & x drops x even if evaluating x has an effect: the operation is lazy, and x would not be evaluated.
 * x & false would evaluate x first. */
static const ir_expr *fold_and(const ir_expr *left, const ir_expr *right)
{
    if (is_false(left) || ir_is_true(right))
        return left;
    return ir_is_true(left) || (is_false(right) && drops_freely(left)) ? right : NULL;
}

/* As fold_and, with true. */
static const ir_expr *fold_or(const ir_expr *left, const ir_expr *right)
{
    if (ir_is_true(left) || is_false(right))
        return left;
    return is_false(left) || (ir_is_true(right) && drops_freely(left)) ? right : NULL;
}

/* (x ^ b) ^ b is x: what a swizzle does is undone by itself. */
static const ir_expr *undo_xor(const ir_expr *a, const ir_expr *b)
{
    if (a->op != IR_BITXOR || !drops_freely(b))
        return NULL;
    return ir_same(a->arg[1], b) ? a->arg[0] : ir_same(a->arg[0], b) ? a->arg[1] : NULL;
}

/* x & 0 drops x; all other identities with 0 keep the other operand. */
static const ir_expr *fold_bits(ir_op op, const ir_expr *left, const ir_expr *right)
{
    if (op == IR_BITXOR && (undo_xor(left, right) || undo_xor(right, left)))
        return undo_xor(left, right) ? undo_xor(left, right) : undo_xor(right, left);
    if (op == IR_BITAND)
        return ir_is_value(right, 0) && drops_freely(left)   ? right
               : ir_is_value(left, 0) && drops_freely(right) ? left
                                                             : NULL;
    if (ir_is_value(right, 0))
        return left;
    return ir_is_value(left, 0) && (op == IR_BITOR || op == IR_BITXOR) ? right : NULL;
}

/* x op x first (x - x is 0), then the identities of the operation by a constant operand. Both drop x, so they
 * ask drops_freely. Compares addresses: equal trees at two addresses are the simplifier's business. */
static const ir_expr *fold_two(tec_context *cx, ir_op op, const ir_expr *left, const ir_expr *right)
{
    const ir_expr *twins = left == right && drops_freely(left) ? fold_twins(cx, op, left) : NULL;

    if (twins)
        return twins;
    switch (op) {
    case IR_ADD:
    case IR_SUB: return fold_sum(cx, op, left, right);
    case IR_MUL: return fold_product(left, right);
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD: return fold_quotient(cx, op, left, right);
    case IR_AND: return fold_and(left, right);
    case IR_OR: return fold_or(left, right);
    case IR_BITAND:
    case IR_BITOR:
    case IR_BITXOR:
    case IR_SHL:
    case IR_SHR: return fold_bits(op, left, right);
    default: return NULL;
    }
}

/* The condition goes where both values are the same expression and evaluating it has no effect. */
static const ir_expr *fold_select(const ir_expr *cond, const ir_expr *left, const ir_expr *right)
{
    if (ir_is_true(cond))
        return left;
    if (is_false(cond))
        return right;
    return left == right && drops_freely(cond) ? left : NULL;
}

/* -(-x) and !(!x). */
static const ir_expr *fold_inverse(ir_op op, const ir_expr *left)
{
    return (op == IR_NEG || op == IR_NOT || op == IR_BITNOT) && left->op == op ? left->arg[0] : NULL;
}

/* Only the sign of an immediate: anything else could round or raise NaN in another way than the program does.
 */
static const ir_expr *fold_float(tec_context *cx, ir_op op, const ir_expr *left)
{
    const ir_expr *f = without_broadcast(left);

    if (f->op != IR_FLOAT || (op != IR_NEG && op != IR_ABS) || isnan(f->f))
        return NULL;
    return ir_imm(cx, left->dtype, op == IR_NEG ? -f->f : fabs(f->f));
}

/* The one place that decides which folds apply to the type of the operands. NULL: build the node as asked. */
static const ir_expr *fold(tec_context *cx, ir_op op, const ir_expr *const *arg)
{
    const ir_op_info *info = &ir_ops[op];
    const ir_expr *constant;

    if (op == IR_SELECT)
        return fold_select(arg[0], arg[1], arg[2]);
    if (base_is_float(arg[0]->dtype))
        return info->arity == 1 ? fold_float(cx, op, arg[0]) : NULL;
    if (!base_is_int(arg[0]->dtype) && !base_is_bool(arg[0]->dtype))
        return NULL;
    if ((constant = fold_constants(cx, op, arg)))
        return constant;
    if (info->arity == 1)
        return fold_inverse(op, arg[0]);
    return info->arity == 2 ? fold_two(cx, op, arg[0], arg[1]) : NULL;
}

/* NULL operands have been told of, and give NULL. */
static const ir_expr *build(tec_context *cx, ir_op op, const ir_expr **arg)
{
    if (!ir_unify(cx, op, arg))
        return NULL;
    const ir_expr *folded = fold(cx, op, arg);
    return folded ? folded : ir_op_raw(cx, op, arg);
}

const ir_expr *ir_op1(tec_context *cx, ir_op op, const ir_expr *left)
{
    return build(cx, op, (const ir_expr *[]){left});
}

const ir_expr *ir_op2(tec_context *cx, ir_op op, const ir_expr *left, const ir_expr *right)
{
    return build(cx, op, (const ir_expr *[]){left, right});
}

const ir_expr *ir_op3(tec_context *cx, ir_op op, const ir_expr *left, const ir_expr *right,
                      const ir_expr *cond)
{
    return build(cx, op, (const ir_expr *[]){left, right, cond});
}

/* Where the operands of a division of data lost their data (an inlined Y[i] became i, an arm of a select is
 * never taken), the division by them would be one of indices, for which a divisor of 0 is an error. A select
 * keeps the 0 that data divided by 0 give:
 *
 *     Y[i] / X[i], both inlined as i     becomes     select(i == 0, 0, i / i)
 */
const ir_expr *ir_op_again(tec_context *cx, const ir_expr *old, const ir_expr *const *arg)
{
    int n = ir_ops[old->op].arity;
    const ir_expr *out = n == 1   ? ir_op1(cx, old->op, arg[0])
                         : n == 2 ? ir_op2(cx, old->op, arg[0], arg[1])
                                  : ir_op3(cx, old->op, arg[0], arg[1], arg[2]);
    int64_t divisor;

    if (!out || !(ir_ops[old->op].flags & IR_ZERO_FAILS) || !ir_divides_data(old) || ir_divides_data(out) ||
        (ir_is_int(arg[1], &divisor) && divisor != 0))
        return out;
    const ir_expr *zero = ir_imm_int(cx, out->dtype, 0);
    return ir_select(cx, ir_eq(cx, arg[1], zero), zero, out);
}

/* For b > 0. */
const ir_expr *ir_ceildiv(tec_context *cx, const ir_expr *a, const ir_expr *b)
{
    if (!a || !b)
        return NULL;
    if (ir_is_value(b, 1))
        return a;
    /* b - 1 first: one constant instead of two where b is one. */
    return ir_floordiv(cx, ir_add(cx, a, ir_sub(cx, b, ir_int(cx, 1))), b);
}

const ir_expr *ir_all(tec_context *cx, const ir_expr *left, const ir_expr *right)
{
    if (!left || !right)
        return left ? left : right;
    return ir_and(cx, left, right);
}

/* An example: a & likely(b) & true gives a, b. */
void ir_conjuncts(tec_context *cx, const ir_expr *expr, ir_hints hints, base_vec *out)
{
    if (expr && expr->op == IR_AND) {
        ir_conjuncts(cx, expr->arg[0], hints, out);
        ir_conjuncts(cx, expr->arg[1], hints, out);
    } else if (expr && expr->op == IR_LIKELY && hints == IR_DROP_LIKELY) {
        ir_conjuncts(cx, expr->arg[0], hints, out);
    } else if (!ir_is_true(expr)) {
        base_push(cx, out, expr);
    }
}

/* NULL for none, which means true. */
const ir_expr *ir_conjoin(tec_context *cx, const base_vec *conjuncts)
{
    const ir_expr *all = NULL;

    for (int i = 0; i < conjuncts->n; i++)
        all = ir_all(cx, all, conjuncts->at[i]);
    return all;
}
