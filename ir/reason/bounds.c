/* ir/reason/bounds.c -- constant bounds of index expressions by interval arithmetic.
 *
 * INT64_MIN and INT64_MAX as ends mean that nothing is known on that side; arithmetic saturates to them.
 * Index arithmetic does not overflow (ir/ir.h), so an end that would leave the range says nothing more than
 * infinity does. Data may wrap from one end to the other: an operation on data that may wrap has no known
 * bound on either side.
 *
 *     0 <= i < 8, n >= 0          i*4 + 1               1 .. 29
 *                                 i - n                 no least value, at most 7
 *     A: i32[n]                   i64(A[i])*4 + 1       -2^33+1 .. 2^33-3
 *     X: i64[n]                   X[i] + 1, abs(X[i])   anything
 *
 * Why infinity must be no number. With n >= 0 alone, n*2 has the ends 0 and infinity, and n*2 - n*2 as two
 * unrelated terms has no known end on either side, although the value is 0. An end is only ever a promise in
 * one direction: "never less than", "never more than". So each function may widen an interval and never
 * narrow it.
 */
#include "ir/reason/reason.h"

enum { MAX_DEPTH = 8 };

/* C's `/` truncates towards 0; the quotient of operands of different signs is one less when something is left
 * over. */
int64_t ir_floordiv_int(int64_t a, int64_t b)
{
    if (b == -1)
        return a == INT64_MIN ? INT64_MAX : -a;
    int64_t q = a / b;

    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/* The sign of the result is that of the divisor. */
int64_t ir_floormod_int(int64_t a, int64_t b)
{
    if (b == -1)
        return 0;
    int64_t r = a % b;

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* 1 where the result would not fit: gcd(INT64_MIN, 0) is 2^63. Every number is a multiple of 1, so 1 is
 * always right. */
int64_t ir_gcd(int64_t left, int64_t right)
{
    uint64_t x = left < 0 ? -(uint64_t)left : (uint64_t)left,
             y = right < 0 ? -(uint64_t)right : (uint64_t)right;

    while (y) {
        uint64_t r = x % y;
        x = y;
        y = r;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

/* The ends of int64 stand for "no bound", so that a sum that does not fit becomes one. */
static int64_t saturated_sum(int64_t a, int64_t b)
{
    int64_t c;

    return !__builtin_add_overflow(a, b, &c) ? c : a < 0 ? INT64_MIN : INT64_MAX;
}

/* The sign of the exact product tells to which side it left the range. */
static int64_t saturated_product(int64_t a, int64_t b)
{
    int64_t c;

    return !__builtin_mul_overflow(a, b, &c) ? c : (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

static bool infinite(int64_t v)
{
    return v == INT64_MIN || v == INT64_MAX;
}

/* An interval whose least value is "no greatest" would say that nothing satisfies it. Arithmetic near the
 * ends may produce one; it is moved inwards by one number, which keeps it wide enough. */
ir_interval ir_interval_proper(ir_interval range)
{
    if (range.min == INT64_MAX)
        range.min--;
    if (range.max == INT64_MIN)
        range.max++;
    return range;
}

/* A side without bound stays so, whatever the other operand is. */
ir_interval ir_interval_add(ir_interval range, ir_interval other)
{
    int64_t min =
        range.min == IR_NO_MIN || other.min == IR_NO_MIN ? IR_NO_MIN : saturated_sum(range.min, other.min);
    int64_t max =
        range.max == IR_NO_MAX || other.max == IR_NO_MAX ? IR_NO_MAX : saturated_sum(range.max, other.max);

    return ir_interval_proper((ir_interval){min, max});
}

/* One corner of a product: 0 times infinity is 0, since infinity stands for some number. */
static int64_t corner(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    if (infinite(a) || infinite(b))
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return saturated_product(a, b);
}

static int64_t least(const int64_t *v, int n)
{
    int64_t m = v[0];

    for (int i = 1; i < n; i++)
        m = v[i] < m ? v[i] : m;
    return m;
}

static int64_t greatest(const int64_t *v, int n)
{
    int64_t m = v[0];

    for (int i = 1; i < n; i++)
        m = v[i] > m ? v[i] : m;
    return m;
}

/* The extremes of a product lie at corners: [-2, 3] * [4, 5] has -10, -8, 12, 15. */
ir_interval ir_interval_mul(ir_interval range, ir_interval other)
{
    int64_t v[4] = {corner(range.min, other.min), corner(range.min, other.max), corner(range.max, other.min),
                    corner(range.max, other.max)};

    return ir_interval_proper((ir_interval){least(v, 4), greatest(v, 4)});
}

ir_interval ir_interval_scale(ir_interval range, int64_t by)
{
    return ir_interval_mul(range, (ir_interval){by, by});
}

ir_interval ir_interval_meet(ir_interval range, ir_interval other)
{
    return (ir_interval){range.min > other.min ? range.min : other.min,
                         range.max < other.max ? range.max : other.max};
}

ir_interval ir_interval_hull(ir_interval range, ir_interval other)
{
    return (ir_interval){range.min < other.min ? range.min : other.min,
                         range.max > other.max ? range.max : other.max};
}

/* 3..10 with members 4*k + 2 becomes 6..10. Ends near infinity stay, since moving them could overflow. */
ir_interval ir_interval_align(ir_interval range, ir_modular modular)
{
    if (modular.coefficient == 0)
        return ir_interval_meet(range, (ir_interval){modular.base, modular.base});
    if (range.min > INT64_MIN / 2 && range.min < INT64_MAX / 2)
        range.min += ir_floormod_int(modular.base - range.min, modular.coefficient);
    if (range.max > INT64_MIN / 2 && range.max < INT64_MAX / 2)
        range.max -= ir_floormod_int(range.max - modular.base, modular.coefficient);
    return range;
}

/* Quotients by a positive divisor in divisor; `divide` floors or truncates, both grow with the dividend.
 *
 *     a = -7..10, d = 2..3, floors:  least: -7 by the smallest divisor 2 = -4; greatest: 10 by 2 = 5
 *
 * A negative dividend gets smaller quotients from small divisors, and one that is not negative from large
 * ones. */
static ir_interval divide_positive(ir_interval range, ir_interval divisor, bool floors)
{
    int64_t small = divisor.min > 0 ? divisor.min : 1, big = divisor.max, low, high;
    int64_t least_by = range.min >= 0 ? big : small, most_by = range.max >= 0 ? small : big;

    if (infinite(range.min))
        low = range.min;
    else if (infinite(least_by))
        low = range.min >= 0 || !floors ? 0 : -1;
    else
        low = floors ? ir_floordiv_int(range.min, least_by) : range.min / least_by;
    if (infinite(range.max))
        high = range.max;
    else if (infinite(most_by))
        high = range.max >= 0 || !floors ? 0 : -1;
    else
        high = floors ? ir_floordiv_int(range.max, most_by) : range.max / most_by;
    return (ir_interval){low, high};
}

/* A divisor that may have either sign, or be 0, bounds nothing. */
static ir_interval divide(ir_interval range, ir_interval divisor, bool floors)
{
    if (divisor.min >= 0 && divisor.max > 0)
        return divide_positive(range, divisor, floors);
    if (divisor.max <= 0 && divisor.min < 0)
        return divide_positive(ir_interval_scale(range, -1), ir_interval_scale(divisor, -1), floors);
    return IR_EVERYTHING;
}

/* The result lies below the largest divisor, and is the dividend itself where that lies below the smallest
 * one. */
static ir_interval floormod(ir_interval range, ir_interval divisor)
{
    if (divisor.min < 0 || divisor.max <= 0)
        return IR_EVERYTHING;
    int64_t last = infinite(divisor.max) ? IR_NO_MAX : divisor.max - 1;

    if (range.min >= 0 && divisor.min > 0 && range.max < divisor.min)
        return range;
    return (ir_interval){0, range.min >= 0 && range.max < last ? range.max : last};
}

/* The remainder of C's `%` has the sign of the dividend, and its size is below that of the divisor and at
 * most that of the dividend. Of a divisor that may be 0 nothing need be said (see or_zero). An example:
 * a = -5..3 and divisor = 4 give -3..3. */
static ir_interval truncmod(ir_interval range, ir_interval divisor)
{
    ir_interval size = {0, IR_NO_MAX};

    if (!infinite(divisor.min) && !infinite(divisor.max)) {
        int64_t below = -divisor.min, above = divisor.max;
        size.max = (below > above ? below : above) - 1;
    }
    ir_interval r = {range.min >= 0       ? 0
                     : infinite(size.max) ? IR_NO_MIN
                                          : -size.max,
                     range.max <= 0 ? 0 : size.max};
    if (r.min < 0 && r.min < range.min)
        r.min = range.min;
    if (r.max > 0 && r.max > range.max)
        r.max = range.max;
    return r;
}

/* What the type alone says. Of 64-bit integers it says nothing, since int64 cannot hold the ends of uint64.
 */
static ir_interval of_type(base_dtype dtype)
{
    if (base_is_bool(dtype))
        return (ir_interval){0, 1};
    if (!base_is_int(dtype) || dtype.bits >= 64)
        return dtype.code == kDLUInt ? (ir_interval){IR_NO_MIN, IR_NO_MAX} : IR_EVERYTHING;
    if (dtype.code == kDLUInt)
        return (ir_interval){0, (int64_t)((UINT64_C(1) << dtype.bits) - 1)};
    return (ir_interval){-(INT64_C(1) << (dtype.bits - 1)), (INT64_C(1) << (dtype.bits - 1)) - 1};
}

static bool within(ir_interval inner, ir_interval outer)
{
    return inner.min >= outer.min && inner.max <= outer.max;
}

static ir_interval bounds_of(const ir_facts *facts, const ir_expr *expr, int depth);

/* A cast that cannot wrap keeps the interval; one that may wrap can give anything in its type. */
static ir_interval cast_bounds(const ir_facts *facts, const ir_expr *expr, int depth)
{
    if (!base_is_int(expr->arg[0]->dtype) && !base_is_bool(expr->arg[0]->dtype))
        return of_type(expr->dtype);
    ir_interval from = bounds_of(facts, expr->arg[0], depth), to = of_type(expr->dtype);

    return expr->dtype.code == kDLUInt && expr->dtype.bits == 64 ? IR_EVERYTHING
           : within(from, to)                                    ? from
                                                                 : to;
}

static ir_interval var_bounds(const ir_facts *facts, const ir_expr *expr)
{
    const ir_var_fact *v = ir_fact_of(facts, expr);

    return v ? v->interval : IR_EVERYTHING;
}

/* By a constant: division by a power of two that rounds down, also for negative numbers. */
static ir_interval shift_right(ir_interval range, ir_interval by)
{
    if (by.min != by.max || by.min < 0 || by.min > 62)
        return IR_EVERYTHING;
    return divide_positive(range, (ir_interval){INT64_C(1) << by.min, INT64_C(1) << by.min}, true);
}

static ir_interval absolute(ir_interval range)
{
    ir_interval minus = ir_interval_scale(range, -1);

    if (range.min >= 0)
        return range;
    if (range.max <= 0)
        return minus;
    return (ir_interval){0, range.max > minus.max ? range.max : minus.max};
}

/* x & y is at most each operand that is not negative, since it only clears bits of it. `X[i] & 7` lies in
 * 0..7 whatever the data are. */
static ir_interval and_bounds(ir_interval range, ir_interval other)
{
    if (range.min < 0 && other.min < 0)
        return IR_EVERYTHING;
    if (range.min < 0)
        return (ir_interval){0, other.max};
    if (other.min < 0)
        return (ir_interval){0, range.max};
    return (ir_interval){0, range.max < other.max ? range.max : other.max};
}

/* Of two numbers that are not negative: no bit above their highest. An example: 0..5 ^ 0..9 has no bit above
 * that of 8, so it is at most 15. */
static ir_interval xor_bounds(ir_interval range, ir_interval other)
{
    int64_t most = range.max > other.max ? range.max : other.max, ones = 0;

    if (range.min < 0 || other.min < 0)
        return IR_EVERYTHING;
    while (ones < most)
        ones = 2 * ones + 1;
    return (ir_interval){0, ones};
}

static bool holds_data(const ir_expr *expr)
{
    return expr->has & IR_HAS_DATA;
}

static bool is_small(ir_interval range)
{
    return range.min >= -IR_MOST_INDEX && range.max <= IR_MOST_INDEX;
}

/* Index arithmetic, data within the range of indices, and sums of those. Each summand must be bounded on its
 * own: X - X of data is 0, but X alone may be anything, and so may the sum before the subtraction. */
static bool counts_as_index(const ir_facts *facts, const ir_expr *expr, int depth)
{
    if (!holds_data(expr) || is_small(bounds_of(facts, expr, depth)))
        return true;
    if (depth == 0 || (expr->op != IR_ADD && expr->op != IR_SUB))
        return false;
    return counts_as_index(facts, expr->arg[0], depth - 1) && counts_as_index(facts, expr->arg[1], depth - 1);
}

/* Index arithmetic never wraps by definition, so only operations on data can. The sum of two numbers that
 * each lie in the range of indices fits into int64; a product must be bounded. `data` is what is loaded or a
 * parameter: i + A[j] may leave int64, i + j over indices cannot. */
static bool may_wrap(const ir_facts *facts, const ir_expr *expr, int depth)
{
    if (!holds_data(expr))
        return false;
    switch (expr->op) {
    case IR_ADD:
    case IR_SUB:
        return !counts_as_index(facts, expr->arg[0], depth) || !counts_as_index(facts, expr->arg[1], depth);
    case IR_MUL:
        return !is_small(
            ir_interval_mul(bounds_of(facts, expr->arg[0], depth), bounds_of(facts, expr->arg[1], depth)));
    case IR_NEG:
    case IR_ABS: return bounds_of(facts, expr->arg[0], depth).min == INT64_MIN;
    case IR_DIV:
    case IR_FLOORDIV: /* INT64_MIN / -1 */
        return bounds_of(facts, expr->arg[0], depth).min == INT64_MIN &&
               within((ir_interval){-1, -1}, bounds_of(facts, expr->arg[1], depth));
    default: return false;
    }
}

bool ir_wraps(const ir_facts *facts, const ir_expr *expr)
{
    return may_wrap(facts, expr, MAX_DEPTH);
}

bool ir_is_wide(const ir_facts *facts, const ir_expr *expr)
{
    return holds_data(expr) && !is_small(bounds_of(facts, expr, MAX_DEPTH));
}

/* Data divided by 0 give 0; in index arithmetic dividing by 0 is the program's error. An example:
 * X in 5..9 and Y in 0..3 give X // Y in 1..9 for indices, 0..9 for data. */
static ir_interval or_zero(const ir_expr *expr, ir_interval divisor, ir_interval result)
{
    if (!ir_divides_data(expr) || !within((ir_interval){0, 0}, divisor))
        return result;
    return result.min > result.max ? (ir_interval){0, 0} : ir_interval_hull(result, (ir_interval){0, 0});
}

/* A product of an expression with itself is not negative, which the intervals of two independent operands
 * would not show. Other operations, such as shifts to the left, may wrap, and have no bounds.
 *
 *     i in [0, 7], j in [2, 3]:  i + j in [2, 10],  i - j in [-3, 5],  i*j in [0, 21],  i // j in [0, 3]
 */
static ir_interval binary_bounds(const ir_facts *facts, const ir_expr *expr, int depth)
{
    ir_interval a = bounds_of(facts, expr->arg[0], depth), b = bounds_of(facts, expr->arg[1], depth);

    switch (expr->op) {
    case IR_ADD: return ir_interval_add(a, b);
    case IR_SUB: return ir_interval_add(a, ir_interval_scale(b, -1));
    case IR_MUL:
        return ir_alike(expr->arg[0], expr->arg[1]) ? ir_interval_mul(absolute(a), absolute(a))
                                                    : ir_interval_mul(a, b);
    case IR_FLOORDIV: return or_zero(expr, b, divide(a, b, true));
    case IR_DIV: return or_zero(expr, b, divide(a, b, false));
    case IR_FLOORMOD: return or_zero(expr, b, floormod(a, b));
    case IR_MOD: return or_zero(expr, b, truncmod(a, b));
    case IR_MIN: return (ir_interval){a.min < b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
    case IR_MAX: return (ir_interval){a.min > b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
    case IR_SHR: return shift_right(a, b);
    case IR_BITAND: return and_bounds(a, b);
    case IR_BITXOR: return xor_bounds(a, b);
    default: return IR_EVERYTHING;
    }
}

/* Only index arithmetic is free of wrapping, and all of it is int64. A select has the hull of its arms,
 * whatever its condition says. `depth` bounds the work: an expression that nests deeper counts as unknown
 * there. */
static ir_interval bounds_of(const ir_facts *facts, const ir_expr *expr, int depth)
{
    if (expr->op == IR_INT && (expr->dtype.code != kDLUInt || expr->i >= 0))
        return ir_interval_proper((ir_interval){expr->i, expr->i});
    if (expr->op == IR_CAST && base_is_int(expr->dtype))
        return depth > 0 ? cast_bounds(facts, expr, depth - 1) : of_type(expr->dtype);
    if (expr->dtype.code != kDLInt || expr->dtype.bits != 64)
        return of_type(expr->dtype);
    if (expr->op == IR_VAR)
        return var_bounds(facts, expr);
    if (depth == 0 || may_wrap(facts, expr, depth - 1))
        return IR_EVERYTHING;
    switch (expr->op) {
    case IR_NEG: return ir_interval_scale(bounds_of(facts, expr->arg[0], depth - 1), -1);
    case IR_ABS: return absolute(bounds_of(facts, expr->arg[0], depth - 1));
    case IR_POPCOUNT:
    case IR_CLZ: return (ir_interval){0, 64};
    case IR_BROADCAST:
    case IR_LIKELY: return bounds_of(facts, expr->arg[0], depth - 1);
    case IR_RAMP:
        return ir_interval_add(bounds_of(facts, expr->ramp.base, depth - 1),
                               ir_interval_mul(bounds_of(facts, expr->ramp.stride, depth - 1),
                                               (ir_interval){0, expr->dtype.lanes - 1}));
    case IR_SELECT:
        return ir_interval_hull(bounds_of(facts, expr->arg[1], depth - 1),
                                bounds_of(facts, expr->arg[2], depth - 1));
    default:
        return ir_is_op(expr->op) && ir_ops[expr->op].arity == 2 ? binary_bounds(facts, expr, depth - 1)
                                                                 : IR_EVERYTHING;
    }
}

ir_interval ir_atom_bounds(const ir_facts *facts, const ir_expr *expr)
{
    return bounds_of(facts, expr, MAX_DEPTH);
}

/* The sum of the terms' intervals, as if the atoms had nothing to do with each other. Stops early once both
 * sides are open. */
ir_interval ir_sum_bounds(const ir_facts *facts, const ir_sum *form)
{
    const ir_term *term = ir_sum_terms(form);
    ir_interval sum = {form->constant, form->constant};

    if (form->bad)
        return IR_EVERYTHING;
    for (int i = 0; i < form->n && (sum.min != IR_NO_MIN || sum.max != IR_NO_MAX); i++)
        sum = ir_interval_add(sum, ir_interval_scale(ir_atom_bounds(facts, term[i].atom), term[i].by));
    return sum;
}

/* What is left open by intervals, from bounds that are expressions: n - i with i < n is at least 1. An
 * example of intervals that fail: 0 <= i < n leaves n - i without ends. With i at its greatest, n - 1, the
 * difference is 1, and the symbol n is gone. */
static int64_t symbolic_end(const ir_facts *facts, const ir_sum *sum, bool upper)
{
    const ir_term *term = ir_sum_terms(sum);
    const ir_expr **vars = base_array(facts->cx, const ir_expr *, sum->n);
    ir_sum end = {0};
    int n = 0;

    for (int i = 0; i < sum->n; i++) {
        const ir_var_fact *v = term[i].atom->op == IR_VAR ? ir_fact_of(facts, term[i].atom) : NULL;
        if (v && (v->min || v->max || v->value))
            vars[n++] = term[i].atom;
    }
    if (n == 0 || !ir_sum_eliminate(facts, sum, vars, n, upper, &end))
        return upper ? IR_NO_MAX : IR_NO_MIN;
    return upper ? ir_sum_bounds(facts, &end).max : ir_sum_bounds(facts, &end).min;
}

/* Intervals of the linear form first, moved inwards to the known residue; a side that is still open is tried
 * by eliminating variables, which sees that n - i is at least 1 where i < n.
 *
 *     4*i + 2 with i in [0, 5], known to be 2 mod 4:        [2, 22]
 *     n - i with i in 0..n, n unknown:    the interval is open; eliminating i by i <= n - 1 gives [1, ..]
 */
ir_interval ir_bounds(const ir_facts *facts, const ir_expr *expr)
{
    expr = ir_simplify(facts, expr);
    if (!expr)
        return IR_EVERYTHING;
    if (!ir_is_index(expr))
        return ir_atom_bounds(facts, expr);
    ir_sum a = {0};
    ir_sum_read(facts, &a, expr, 1);
    ir_interval b = ir_interval_align(ir_sum_bounds(facts, &a), ir_sum_modulus(facts, &a));

    if (a.n > 1 && b.min == IR_NO_MIN)
        b.min = symbolic_end(facts, &a, false);
    if (a.n > 1 && b.max == IR_NO_MAX)
        b.max = symbolic_end(facts, &a, true);
    return b;
}
