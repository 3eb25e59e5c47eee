/* fuzz/expr.c -- random reads within bounds, and random expressions whose values stay exact.
 *
 * Every expression comes with a bound: no value is larger in size. Operations add or multiply bounds, and a
 * value whose bound comes near to what the dtype holds exactly is clamped. So all orders of evaluation give
 * the same bits, and a schedule may be compared with the default one exactly.
 */
#include "fuzz/define.h"
#include "fuzz/draw.h"

int64_t fuzz_limit(base_dtype t)
{
    return base_is_float(t) ? (t.bits == 64 ? (int64_t)1 << 45 : 1 << 22) : 1 << 28;
}

const char *fuzz_literal(const fuzz_maker *m, int64_t v)
{
    if (base_dtype_same(m->t, BASE_F64))
        return base_format(m->cx, "f64(%lld.0)", (long long)v);
    if (base_is_float(m->t))
        return base_format(m->cx, "%lld.0", (long long)v);
    return base_format(m->cx, "%s(%lld)", base_dtype_text(m->cx, m->t), (long long)v);
}

const char *fuzz_clamp(fuzz_maker *m, const char *e, int64_t limit, int64_t *bound)
{
    if (*bound <= limit)
        return e;
    *bound = 9;
    return base_format(m->cx, "min(max(%s, %s), %s)", e, fuzz_literal(m, -9), fuzz_literal(m, 9));
}

/* ---- indices ---- */

/* Ways to index a dimension of extent `to` that are in bounds without a guard. */
static void list_safe(fuzz_maker *m, fuzz_dim to, const fuzz_axis *axis, int n, base_vec *out)
{
    tec_context *cx = m->cx;

    for (int i = 0; i < n; i++) {
        const char *a = axis[i].name;
        fuzz_dim e = axis[i].extent;
        bool same_symbol = e.coef == to.coef && (e.coef == 0 || e.sym == to.sym),
             fixed = fuzz_is_const(e) && fuzz_is_const(to);

        if (same_symbol && e.c <= to.c) {
            int64_t slack = to.c - e.c, off = fuzz_below(m->state, (int)(slack < 8 ? slack : 8) + 1);

            base_push(cx, out, off ? base_format(cx, "%s + %lld", a, (long long)off) : a);
            if (fuzz_chance(m->state, 20))
                base_push(cx, out,
                          base_format(cx, "%s - %s",
                                      fuzz_dim_text(m, (fuzz_dim){to.coef, to.sym, to.c - 1 - off}), a));
        }
        if (fixed && (e.c - 1) * 2 < to.c && fuzz_chance(m->state, 40))
            base_push(cx, out, base_format(cx, "%s * 2", a));
        if (fixed && e.c >= 1 && (e.c - 1) / 2 < to.c && fuzz_chance(m->state, 20))
            base_push(cx, out, base_format(cx, "floordiv(%s, 2)", a));
        if (fuzz_dim_min(m, to) >= 1 && fuzz_chance(m->state, 8))
            base_push(
                cx, out,
                base_format(cx, "(%s + %d) %% %s", a, fuzz_below(m->state, 4),
                            to.coef ? base_format(cx, "(%s)", fuzz_dim_text(m, to)) : fuzz_dim_text(m, to)));
    }
}

/* An index that may leave the dimension; the guard goes to `guard`. */
static const char *wild_index(fuzz_maker *m, fuzz_dim to, const fuzz_axis *axis, int n, base_text *guard)
{
    const char *a = axis[fuzz_below(m->state, n)].name, *and = guard->n ? " && " : "", *e;
    int off = 1 + fuzz_below(m->state, 3);

    switch (fuzz_below(m->state, 4)) {
    case 0: e = base_format(m->cx, "%s + %d", a, off); break;
    case 1: e = base_format(m->cx, "%s * 2 - %d", a, off); break;
    case 2: e = base_format(m->cx, "%s + %s - %d", a, axis[fuzz_below(m->state, n)].name, off); break;
    default: e = base_format(m->cx, "%s - %d", a, off);
    }
    base_addf(m->cx, guard, "%s%s >= 0 && %s < %s", and, e, e, fuzz_dim_text(m, to));
    return e;
}

/* An axis of another extent, so that the symbols decide whether it stays inside: a condition of each call.
 * NULL: it would always be outside. */
static const char *open_index(fuzz_maker *m, fuzz_dim to, const fuzz_axis *a)
{
    fuzz_dim e = a->extent;
    bool differ = e.coef != to.coef || (e.coef && e.sym != to.sym);

    if (!differ || fuzz_dim_min(m, e) + (e.coef ? m->multiple[e.sym] : 0) > fuzz_dim_max(to))
        return NULL;
    return fuzz_chance(m->state, 50) ? a->name
                                     : base_format(m->cx, "%s - 1 - %s", fuzz_dim_text(m, to), a->name);
}

/* An index for a dimension `to` that stays within it: an axis of equal extent, a constant, or any index under
 * a guard that is added to `guard`. NULL where none is possible. */
static const char *index_of(fuzz_maker *m, fuzz_dim to, const fuzz_axis *axis, int n, int place,
                            base_text *guard)
{
    base_vec safe = {0};

    /* The axis in the same place first: element-wise chains are what most programs are made of. */
    if (place < n && fuzz_same_dim(axis[place].extent, to) && fuzz_chance(m->state, 70))
        return axis[place].name;
    if (n > 0 && fuzz_chance(m->state, 10))
        return wild_index(m, to, axis, n, guard);
    if (n > 0 && !m->closed && fuzz_chance(m->state, 4)) {
        const char *open = open_index(m, to, &axis[fuzz_below(m->state, n)]);

        m->open = m->open || open;
        if (open)
            return open;
    }
    list_safe(m, to, axis, n, &safe);
    if (safe.n)
        return safe.at[fuzz_below(m->state, safe.n)];
    if (fuzz_dim_min(m, to) >= 1 && (n == 0 || fuzz_chance(m->state, 50)))
        return base_format(m->cx, "%d", fuzz_below(m->state, (int)fuzz_dim_min(m, to)));
    return n > 0 ? wild_index(m, to, axis, n, guard) : NULL;
}

/* The value of dtype m->t that an element of another dtype stands for. */
static const char *converted(const fuzz_maker *m, const fuzz_tensor *t, const char *e)
{
    return base_dtype_same(t->t, m->t) ? e : base_format(m->cx, "%s(%s)", base_dtype_text(m->cx, m->t), e);
}

/* A read of t with safe indices, or a select with the guard that they need. *bound: of its value. */
const char *fuzz_read(fuzz_maker *m, const fuzz_tensor *t, const fuzz_axis *axis, int n, int64_t *bound)
{
    base_text read = {0}, guard = {0};

    base_addf(m->cx, &read, "%s[", t->name);
    for (int i = 0; i < t->rank; i++) {
        /* Trailing dimensions fit trailing axes where a tensor of lower rank is broadcast. */
        const char *index = index_of(m, t->shape[i], axis, n, n > t->rank ? i + n - t->rank : i, &guard);

        if (!index)
            return fuzz_literal(m, *bound = 1);
        base_addf(m->cx, &read, "%s%s", i ? ", " : "", index);
    }
    base_add(m->cx, &read, "]");
    *bound = t->bound > 2 ? t->bound : 2;
    const char *e = converted(m, t, base_text_str(m->cx, &read));
    return guard.n ? base_format(m->cx, "select(%s, %s, %s)", base_text_str(m->cx, &guard), e,
                                 fuzz_literal(m, fuzz_below(m->state, 3)))
                   : e;
}

/* ---- values ---- */

/* An operand without operations: a scalar, an axis, a literal, or a read. */
static const char *operand(fuzz_maker *m, const fuzz_axis *axis, int n, int64_t *bound)
{
    const char *type = base_dtype_text(m->cx, m->t);

    if (m->has_scalar && fuzz_chance(m->state, 12)) {
        *bound = FUZZ_DATA_MAX;
        return "alpha";
    }
    if (n > 0 && fuzz_chance(m->state, 8)) {
        const fuzz_axis *a = &axis[fuzz_below(m->state, n)];

        *bound = fuzz_dim_max(a->extent) + 1;
        return base_format(m->cx, "%s(%s)", type, a->name);
    }
    if (fuzz_chance(m->state, 15)) {
        *bound = 3;
        return fuzz_literal(m, fuzz_below(m->state, 7) - 3);
    }
    return fuzz_read(m, &m->at[fuzz_chance(m->state, 40) ? m->n - 1 : fuzz_below(m->state, m->n)], axis, n,
                     bound);
}

/* A comparison of axes, or of a value with a literal. */
const char *fuzz_condition(fuzz_maker *m, const fuzz_axis *axis, int n)
{
    static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};
    const char *op = compare[fuzz_below(m->state, BASE_COUNT(compare))];
    int64_t bound;

    if (n > 0 && fuzz_chance(m->state, 60)) {
        const fuzz_axis *a = &axis[fuzz_below(m->state, n)];
        int most = (int)(fuzz_dim_max(a->extent) < 1 ? 1 : fuzz_dim_max(a->extent));

        if (n > 1 && fuzz_chance(m->state, 40))
            return base_format(m->cx, "%s + %d %s %s", a->name, fuzz_below(m->state, 3), op,
                               axis[fuzz_below(m->state, n)].name);
        if (fuzz_chance(m->state, 25))
            return base_format(m->cx, "%s %% %d == 0", a->name, 2 + fuzz_below(m->state, 3));
        return base_format(m->cx, "%s %s %d", a->name, op, fuzz_below(m->state, most));
    }
    const char *e = operand(m, axis, n, &bound);
    return base_format(m->cx, "%s %s %s", e, op, fuzz_literal(m, fuzz_below(m->state, 3)));
}

/* Functions whose value at an integer lies far from where it would round to another. */
static const char *rounded(fuzz_maker *m, const char *e, int64_t *bound)
{
    const char *half = m->t.bits == 64 ? "f64(0.5)" : "0.5",
               *quarter = m->t.bits == 64 ? "f64(0.25)" : "0.25";

    switch (fuzz_below(m->state, 3)) {
    case 0:
        *bound = 55;
        return base_format(m->cx, "floor(exp(min(max(%s, %s), %s)) + %s)", e, fuzz_literal(m, -3),
                           fuzz_literal(m, 4), half);
    case 1:
        *bound = 3;
        return base_format(m->cx, "floor(tanh(%s) * %s + %s)", e, fuzz_literal(m, 3), quarter);
    default:
        *bound = 9;
        return base_format(m->cx, "sqrt(max(min(%s, %s), %s) * max(min(%s, %s), %s))", e, fuzz_literal(m, 9),
                           fuzz_literal(m, -9), e, fuzz_literal(m, 9), fuzz_literal(m, -9));
    }
}

/* Arithmetic at the ends of int64, where index arithmetic would be another one. The result may be any number,
 * so that it is clamped. */
static const char *wrapping(fuzz_maker *m, const char *e, int64_t *bound)
{
    static const int64_t numbers[] = {-7, -5, -1, 3, 8, -8, INT64_MAX, INT64_MIN + 1, (int64_t)1 << 62};
    long long number = numbers[fuzz_below(m->state, BASE_COUNT(numbers))];

    *bound = INT64_MAX / 8;
    if (fuzz_chance(m->state, 30))
        return base_format(m->cx, "select((%s) + i64(%lld) > (%s), i64(1), i64(2))", e, number, e);
    switch (fuzz_below(m->state, 7)) {
    case 0: return base_format(m->cx, "floordiv(%s, i64(%lld))", e, number);
    case 1: return base_format(m->cx, "((%s) %% i64(%lld))", e, number);
    case 2: return base_format(m->cx, "truncmod(%s, i64(%lld))", e, number);
    case 3: return base_format(m->cx, "((%s) * i64(%lld))", e, number);
    case 4: return base_format(m->cx, "((%s) + i64(%lld))", e, number);
    case 5: return base_format(m->cx, "abs((%s) - i64(%lld))", e, number);
    default: return base_format(m->cx, "max((%s) * i64(3), i64(%lld))", e, number);
    }
}

/* An operation on e; *bound is kept true. */
static const char *unary(fuzz_maker *m, const char *e, int64_t *bound)
{
    bool is_float = base_is_float(m->t);

    if (base_dtype_same(m->t, BASE_I64) && fuzz_chance(m->state, 40))
        return wrapping(m, e, bound);

    if (is_float && fuzz_chance(m->state, 8))
        return rounded(m, e, bound);
    switch (fuzz_below(m->state, 6)) {
    case 0: return base_format(m->cx, "abs(%s)", e);
    case 1: return base_format(m->cx, "(-(%s))", e);
    case 2:
        return base_format(m->cx,
                           !is_float         ? "floordiv(%s, 2)"
                           : m->t.bits == 64 ? "floor((%s) * f64(0.5))"
                                             : "floor((%s) * 0.5)",
                           e);
    case 3:
        return is_float ? base_format(m->cx, "max(%s, %s)", e, fuzz_literal(m, 0))
                        : (*bound = 5, base_format(m->cx, "((%s) %% 5)", e));
    case 4: *bound += 1; return base_format(m->cx, "(%s + %s)", e, fuzz_literal(m, 1));
    default: return base_format(m->cx, "max(%s, %s)", e, fuzz_literal(m, 0));
    }
}

static const char *binary(fuzz_maker *m, const char *a, const char *b, int64_t *bound, int64_t other)
{
    int64_t most = *bound > other ? *bound : other;

    switch (fuzz_below(m->state, 5)) {
    case 0: *bound += other; return base_format(m->cx, "(%s + %s)", a, b);
    case 1: *bound += other; return base_format(m->cx, "(%s - %s)", a, b);
    case 2: *bound *= other; return base_format(m->cx, "%s * %s", a, b);
    case 3: *bound = most; return base_format(m->cx, "min(%s, %s)", a, b);
    default: *bound = most; return base_format(m->cx, "max(%s, %s)", a, b);
    }
}

/* `depth` operations around a first read; the bound stays below the dtype's limit. */
const char *fuzz_expr(fuzz_maker *m, const fuzz_tensor *first, const fuzz_axis *axis, int n, int depth,
                      int64_t *bound)
{
    const char *e = first ? fuzz_read(m, first, axis, n, bound) : operand(m, axis, n, bound), *other;
    int64_t other_bound, limit = fuzz_limit(m->t);

    for (; depth > 0; depth--) {
        int way = fuzz_below(m->state, m->open ? 8 : 10);

        if (way < 5) {
            other = operand(m, axis, n, &other_bound);
            /* The product must fit before it is clamped. */
            e = fuzz_clamp(m, e, limit / (other_bound + 1), bound);
            e = fuzz_chance(m->state, 50) ? binary(m, e, other, bound, other_bound)
                                          : binary(m, other, e, bound, other_bound);
        } else if (way < 8)
            e = unary(m, e, bound);
        else {
            m->closed = true;
            other = operand(m, axis, n, &other_bound);
            m->closed = false;
            e = base_format(m->cx, "select(%s, %s, %s)", fuzz_condition(m, axis, n), e, other);
            *bound = *bound > other_bound ? *bound : other_bound;
        }
        e = fuzz_clamp(m, e, limit / 64, bound);
    }
    return e;
}
