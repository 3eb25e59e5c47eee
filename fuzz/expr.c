/* fuzz/expr.c -- random reads within bounds, and random expressions whose values stay exact.
 *
 * Every expression comes with a bound: no value is larger in size. Operations add or multiply bounds, and a
 * value whose bound comes near to what the dtype holds exactly is clamped. So all orders of evaluation give
 * the same bits, and a schedule may be compared with the default one exactly.
 */
#include "fuzz/define.h"
#include "fuzz/draw.h"

int64_t fuzz_limit(base_dtype dtype)
{
    return base_is_float(dtype) ? (dtype.bits == 64 ? (int64_t)1 << 45 : 1 << 22) : 1 << 28;
}

const char *fuzz_literal(const fuzz_maker *maker, int64_t v)
{
    if (base_dtype_same(maker->t, BASE_F64))
        return base_format(maker->cx, "f64(%lld.0)", (long long)v);
    if (base_is_float(maker->t))
        return base_format(maker->cx, "%lld.0", (long long)v);
    return base_format(maker->cx, "%s(%lld)", base_dtype_text(maker->cx, maker->t), (long long)v);
}

const char *fuzz_clamp(fuzz_maker *maker, const char *e, int64_t limit, int64_t *bound)
{
    if (*bound <= limit)
        return e;
    *bound = 9;
    return base_format(maker->cx, "min(max(%s, %s), %s)", e, fuzz_literal(maker, -9), fuzz_literal(maker, 9));
}

/* ---- indices ---- */

/* Ways to index a dimension of extent `to` that are in bounds without a guard. */
static void list_safe(fuzz_maker *maker, fuzz_dim to, const fuzz_axis *axis, int count, base_vec *out)
{
    tec_context *cx = maker->cx;

    for (int i = 0; i < count; i++) {
        const char *a = axis[i].name;
        fuzz_dim e = axis[i].extent;
        bool same_symbol = e.coef == to.coef && (e.coef == 0 || e.sym == to.sym),
             fixed = fuzz_is_const(e) && fuzz_is_const(to);

        if (same_symbol && e.c <= to.c) {
            int64_t slack = to.c - e.c, off = fuzz_below(maker->state, (int)(slack < 8 ? slack : 8) + 1);

            base_push(cx, out, off ? base_format(cx, "%s + %lld", a, (long long)off) : a);
            if (fuzz_chance(maker->state, 20))
                base_push(cx, out,
                          base_format(cx, "%s - %s",
                                      fuzz_dim_text(maker, (fuzz_dim){to.coef, to.sym, to.c - 1 - off}), a));
        }
        if (fixed && (e.c - 1) * 2 < to.c && fuzz_chance(maker->state, 40))
            base_push(cx, out, base_format(cx, "%s * 2", a));
        if (fixed && e.c >= 1 && (e.c - 1) / 2 < to.c && fuzz_chance(maker->state, 20))
            base_push(cx, out, base_format(cx, "floordiv(%s, 2)", a));
        if (fuzz_dim_min(maker, to) >= 1 && fuzz_chance(maker->state, 8))
            base_push(cx, out,
                      base_format(cx, "(%s + %d) %% %s", a, fuzz_below(maker->state, 4),
                                  to.coef ? base_format(cx, "(%s)", fuzz_dim_text(maker, to))
                                          : fuzz_dim_text(maker, to)));
    }
}

/* An index that may leave the dimension; the guard goes to `guard`. */
static const char *wild_index(fuzz_maker *maker, fuzz_dim to, const fuzz_axis *axis, int count,
                              base_text *guard)
{
    const char *a = axis[fuzz_below(maker->state, count)].name, *and = guard->n ? " && " : "", *e;
    int off = 1 + fuzz_below(maker->state, 3);

    switch (fuzz_below(maker->state, 4)) {
    case 0: e = base_format(maker->cx, "%s + %d", a, off); break;
    case 1: e = base_format(maker->cx, "%s * 2 - %d", a, off); break;
    case 2:
        e = base_format(maker->cx, "%s + %s - %d", a, axis[fuzz_below(maker->state, count)].name, off);
        break;
    default: e = base_format(maker->cx, "%s - %d", a, off);
    }
    base_addf(maker->cx, guard, "%s%s >= 0 && %s < %s", and, e, e, fuzz_dim_text(maker, to));
    return e;
}

/* At this value of the symbol some axis over it is empty, so that nothing is read. */
static bool any_empty(const fuzz_axis *axis, int count, int symbol, int value)
{
    for (int i = 0; i < count; i++)
        if (axis[i].extent.coef && axis[i].extent.sym == symbol &&
            axis[i].extent.coef * value + axis[i].extent.c < 1)
            return true;
    return false;
}

/* The values of the symbol of `dim` from `low` to `high` that its facts allow, and at which no axis is empty
 * and dim is not. False: there are none. A constant has no symbol to restrict. */
static bool symbol_range(const fuzz_maker *maker, fuzz_dim dim, const fuzz_axis *axis, int count, int *low,
                         int *high)
{
    int multiple = dim.coef ? maker->multiple[dim.sym] : 1;

    *low = *high = 0;
    if (!dim.coef)
        return dim.c >= 1;
    *low = maker->low[dim.sym];
    *high = maker->high[dim.sym] / multiple * multiple;
    while (*low % multiple || dim.coef * *low + dim.c < 1 || any_empty(axis, count, dim.sym, *low))
        ++*low;
    return *low <= *high;
}

static int64_t extent_at(fuzz_dim dim, int symbol)
{
    return (int64_t)dim.coef * symbol + dim.c;
}

/* Restricts the symbols to values at which an axis of extent `from`, one of `axis`, stays inside of `to`:
 * those of `from` from above, those of `to` from below. False: no values are left beside the open indices
 * before, and nothing is restricted.
 *
 *     x: m - 4 as an index of a dimension 2, m a multiple of 4:     no m is left, since 8 - 4 > 2
 */
static bool stays_inside(fuzz_maker *maker, fuzz_dim from, fuzz_dim to, const fuzz_axis *axis, int count)
{
    int from_low, from_high, to_low, to_high;

    if (!symbol_range(maker, from, axis, count, &from_low, &from_high) ||
        !symbol_range(maker, to, axis, count, &to_low, &to_high) ||
        extent_at(from, from_low) > extent_at(to, to_high))
        return false;
    while (extent_at(from, from_high) > extent_at(to, to_high))
        from_high--;
    while (to_low < to_high && extent_at(from, from_high) > extent_at(to, to_low))
        to_low++;
    if (from.coef)
        maker->high[from.sym] = from_high;
    if (to.coef)
        maker->low[to.sym] = to_low;
    return true;
}

/* An axis of another extent, so that the symbols decide whether it stays inside: a condition of each call.
 * NULL: no values of the symbols meet all such conditions. */
static const char *open_index(fuzz_maker *maker, fuzz_dim to, const fuzz_axis *axis, int count)
{
    const fuzz_axis *chosen = &axis[fuzz_below(maker->state, count)];
    fuzz_dim e = chosen->extent;
    bool differ = e.coef != to.coef || (e.coef && e.sym != to.sym);

    if (!differ || (e.coef && to.coef && e.sym == to.sym) || !stays_inside(maker, e, to, axis, count))
        return NULL;
    return fuzz_chance(maker->state, 50)
               ? chosen->name
               : base_format(maker->cx, "%s - 1 - %s", fuzz_dim_text(maker, to), chosen->name);
}

/* An index for a dimension `to` that stays within it: an axis of equal extent, a constant, or any index under
 * a guard that is added to `guard`. NULL where none is possible. */
static const char *index_of(fuzz_maker *maker, fuzz_dim to, const fuzz_axis *axis, int count, int place,
                            base_text *guard)
{
    base_vec safe = {0};

    /* The axis in the same place first: element-wise chains are what most programs are made of. */
    if (place < count && fuzz_same_dim(axis[place].extent, to) && fuzz_chance(maker->state, 70))
        return axis[place].name;
    if (count > 0 && fuzz_chance(maker->state, 10))
        return wild_index(maker, to, axis, count, guard);
    if (count > 0 && !maker->closed && fuzz_chance(maker->state, 4)) {
        const char *open = open_index(maker, to, axis, count);

        maker->open = maker->open || open;
        if (open)
            return open;
    }
    list_safe(maker, to, axis, count, &safe);
    if (safe.n)
        return safe.at[fuzz_below(maker->state, safe.n)];
    if (fuzz_dim_min(maker, to) >= 1 && (count == 0 || fuzz_chance(maker->state, 50)))
        return base_format(maker->cx, "%d", fuzz_below(maker->state, (int)fuzz_dim_min(maker, to)));
    return count > 0 ? wild_index(maker, to, axis, count, guard) : NULL;
}

/* The value of dtype maker->tensor that an element of another dtype stands for. */
const char *fuzz_converted(const fuzz_maker *maker, const fuzz_tensor *tensor, const char *e)
{
    return base_dtype_same(tensor->t, maker->t)
               ? e
               : base_format(maker->cx, "%s(%s)", base_dtype_text(maker->cx, maker->t), e);
}

/* A read of tensor with safe indices, or a select with the guard that they need. *bound: of its value. */
const char *fuzz_read(fuzz_maker *maker, const fuzz_tensor *tensor, const fuzz_axis *axis, int count,
                      int64_t *bound)
{
    base_text read = {0}, guard = {0};

    base_addf(maker->cx, &read, "%s[", tensor->name);
    for (int i = 0; i < tensor->rank; i++) {
        /* Trailing dimensions fit trailing axes where a tensor of lower rank is broadcast. */
        const char *index = index_of(maker, tensor->shape[i], axis, count,
                                     count > tensor->rank ? i + count - tensor->rank : i, &guard);

        if (!index)
            return fuzz_literal(maker, *bound = 1);
        base_addf(maker->cx, &read, "%s%s", i ? ", " : "", index);
    }
    base_add(maker->cx, &read, "]");
    *bound = tensor->bound > 2 ? tensor->bound : 2;
    const char *e = fuzz_converted(maker, tensor, base_text_str(maker->cx, &read));
    return guard.n ? base_format(maker->cx, "select(%s, %s, %s)", base_text_str(maker->cx, &guard), e,
                                 fuzz_literal(maker, fuzz_below(maker->state, 3)))
                   : e;
}

/* ---- values ---- */

/* An operand without operations: a scalar, an axis, a literal, or a read. */
static const char *operand(fuzz_maker *maker, const fuzz_axis *axis, int count, int64_t *bound)
{
    const char *type = base_dtype_text(maker->cx, maker->t);

    if (maker->has_scalar && fuzz_chance(maker->state, 12)) {
        *bound = FUZZ_DATA_MAX;
        return "alpha";
    }
    if (count > 0 && fuzz_chance(maker->state, 8)) {
        const fuzz_axis *a = &axis[fuzz_below(maker->state, count)];

        *bound = fuzz_dim_max(a->extent) + 1;
        return base_format(maker->cx, "%s(%s)", type, a->name);
    }
    if (fuzz_chance(maker->state, 15)) {
        *bound = 3;
        return fuzz_literal(maker, fuzz_below(maker->state, 7) - 3);
    }
    return fuzz_read(
        maker, &maker->at[fuzz_chance(maker->state, 40) ? maker->n - 1 : fuzz_below(maker->state, maker->n)],
        axis, count, bound);
}

/* A comparison of axes, or of a value with a literal. */
const char *fuzz_condition(fuzz_maker *maker, const fuzz_axis *axis, int count)
{
    static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};
    const char *op = compare[fuzz_below(maker->state, BASE_COUNT(compare))];
    int64_t bound;

    if (count > 0 && fuzz_chance(maker->state, 60)) {
        const fuzz_axis *a = &axis[fuzz_below(maker->state, count)];
        int most = (int)(fuzz_dim_max(a->extent) < 1 ? 1 : fuzz_dim_max(a->extent));

        if (count > 1 && fuzz_chance(maker->state, 40))
            return base_format(maker->cx, "%s + %d %s %s", a->name, fuzz_below(maker->state, 3), op,
                               axis[fuzz_below(maker->state, count)].name);
        if (fuzz_chance(maker->state, 25))
            return base_format(maker->cx, "%s %% %d == 0", a->name, 2 + fuzz_below(maker->state, 3));
        return base_format(maker->cx, "%s %s %d", a->name, op, fuzz_below(maker->state, most));
    }
    const char *e = operand(maker, axis, count, &bound);
    return base_format(maker->cx, "%s %s %s", e, op, fuzz_literal(maker, fuzz_below(maker->state, 3)));
}

/* Functions whose value at an integer lies far from where it would round to another. */
static const char *rounded(fuzz_maker *maker, const char *operand, int64_t *bound)
{
    const char *half = maker->t.bits == 64 ? "f64(0.5)" : "0.5",
               *quarter = maker->t.bits == 64 ? "f64(0.25)" : "0.25";

    switch (fuzz_below(maker->state, 3)) {
    case 0:
        *bound = 55;
        return base_format(maker->cx, "floor(exp(min(max(%s, %s), %s)) + %s)", operand,
                           fuzz_literal(maker, -3), fuzz_literal(maker, 4), half);
    case 1:
        *bound = 3;
        return base_format(maker->cx, "floor(tanh(%s) * %s + %s)", operand, fuzz_literal(maker, 3), quarter);
    default:
        *bound = 9;
        return base_format(maker->cx, "sqrt(max(min(%s, %s), %s) * max(min(%s, %s), %s))", operand,
                           fuzz_literal(maker, 9), fuzz_literal(maker, -9), operand, fuzz_literal(maker, 9),
                           fuzz_literal(maker, -9));
    }
}

/* Arithmetic at the ends of int64, where index arithmetic would give another result, and division by data,
 * which may be 0. The result may be any number, so it is clamped. */
static const char *wrapping(fuzz_maker *maker, const char *operand, int64_t *bound)
{
    static const int64_t numbers[] = {-7, -5, -1, 3, 8, -8, INT64_MAX, INT64_MIN + 1, (int64_t)1 << 62};
    long long number = numbers[fuzz_below(maker->state, BASE_COUNT(numbers))];

    *bound = INT64_MAX / 8;
    if (fuzz_chance(maker->state, 30))
        return base_format(maker->cx, "select((%s) + i64(%lld) > (%s), i64(1), i64(2))", operand, number,
                           operand);
    switch (fuzz_below(maker->state, 10)) {
    case 0: return base_format(maker->cx, "floordiv(%s, i64(%lld))", operand, number);
    case 1: return base_format(maker->cx, "((%s) %% i64(%lld))", operand, number);
    case 2: return base_format(maker->cx, "truncmod(%s, i64(%lld))", operand, number);
    case 3: return base_format(maker->cx, "((%s) * i64(%lld))", operand, number);
    case 4: return base_format(maker->cx, "((%s) + i64(%lld))", operand, number);
    case 5: return base_format(maker->cx, "abs((%s) - i64(%lld))", operand, number);
    case 6: return base_format(maker->cx, "floordiv(i64(%lld), %s)", number, operand);
    case 7: return base_format(maker->cx, "(i64(%lld) %% (%s))", number, operand);
    case 8: return base_format(maker->cx, "((%s) / (%s))", operand, operand);
    default: return base_format(maker->cx, "max((%s) * i64(3), i64(%lld))", operand, number);
    }
}

/* An operation on operand; *bound is kept true. */
static const char *unary(fuzz_maker *maker, const char *operand, int64_t *bound)
{
    bool is_float = base_is_float(maker->t);

    if (base_dtype_same(maker->t, BASE_I64) && fuzz_chance(maker->state, 40))
        return wrapping(maker, operand, bound);

    if (is_float && fuzz_chance(maker->state, 8))
        return rounded(maker, operand, bound);
    switch (fuzz_below(maker->state, 6)) {
    case 0: return base_format(maker->cx, "abs(%s)", operand);
    case 1: return base_format(maker->cx, "(-(%s))", operand);
    case 2:
        return base_format(maker->cx,
                           !is_float             ? "floordiv(%s, 2)"
                           : maker->t.bits == 64 ? "floor((%s) * f64(0.5))"
                                                 : "floor((%s) * 0.5)",
                           operand);
    case 3:
        return is_float ? base_format(maker->cx, "max(%s, %s)", operand, fuzz_literal(maker, 0))
                        : (*bound = 5, base_format(maker->cx, "((%s) %% 5)", operand));
    case 4: *bound += 1; return base_format(maker->cx, "(%s + %s)", operand, fuzz_literal(maker, 1));
    default: return base_format(maker->cx, "max(%s, %s)", operand, fuzz_literal(maker, 0));
    }
}

/* Keeps the bound of the result, with which the caller decides how much more may be built on top. */
static const char *binary(fuzz_maker *maker, const char *left, const char *right, int64_t *bound,
                          int64_t other)
{
    int64_t most = *bound > other ? *bound : other;

    switch (fuzz_below(maker->state, 5)) {
    case 0: *bound += other; return base_format(maker->cx, "(%s + %s)", left, right);
    case 1: *bound += other; return base_format(maker->cx, "(%s - %s)", left, right);
    case 2: *bound *= other; return base_format(maker->cx, "%s * %s", left, right);
    case 3: *bound = most; return base_format(maker->cx, "min(%s, %s)", left, right);
    default: *bound = most; return base_format(maker->cx, "max(%s, %s)", left, right);
    }
}

/* `depth` operations around a first read; the bound stays below the dtype's limit. */
const char *fuzz_expr(fuzz_maker *maker, const fuzz_tensor *first, const fuzz_axis *axis, int count,
                      int depth, int64_t *bound)
{
    const char *e = first ? fuzz_read(maker, first, axis, count, bound) : operand(maker, axis, count, bound),
               *other;
    int64_t other_bound, limit = fuzz_limit(maker->t);

    for (; depth > 0; depth--) {
        int way = fuzz_below(maker->state, maker->open ? 8 : 10);

        if (way < 5) {
            other = operand(maker, axis, count, &other_bound);
            /* The product must fit before it is clamped. */
            e = fuzz_clamp(maker, e, limit / (other_bound + 1), bound);
            e = fuzz_chance(maker->state, 50) ? binary(maker, e, other, bound, other_bound)
                                              : binary(maker, other, e, bound, other_bound);
        } else if (way < 8)
            e = unary(maker, e, bound);
        else {
            bool closed = maker->closed;

            maker->closed = true;
            other = operand(maker, axis, count, &other_bound);
            maker->closed = closed;
            e = base_format(maker->cx, "select(%s, %s, %s)", fuzz_condition(maker, axis, count), e, other);
            *bound = *bound > other_bound ? *bound : other_bound;
        }
        e = fuzz_clamp(maker, e, limit / 64, bound);
    }
    return e;
}
