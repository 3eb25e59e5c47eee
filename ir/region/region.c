/* ir/region/region.c -- boxes: the span of an index over inner variables, regions over loops, hulls,
 * containment.
 *
 *     for yo in 0..n//8 {                        which rows of A does one iteration of yo read?
 *       for yi in 0..8 { for ky in 0..3 {
 *         B[yo*8 + yi] += A[(yo*8 + yi)*2 + ky]
 *
 *     index    16*yo + 2*yi + ky     yo is outside: it stays.  yi in 0..8 and ky in 0..3 are inner variables
 *     minimum  16*yo                 each inner variable at the end where it contributes least
 *     width    2*7 + 2 = 16          |coefficient| times (extent - 1), summed
 *     box      A[16*yo .. 16*yo + 17]
 *
 * The minimum keeps the variables outside and the width has none of them, so that a buffer for the box has a
 * constant size. Two ends computed separately would not show that: their difference holds 16*yo twice. Where
 * an index cannot be written so, the box is the whole dimension, which is always right.
 */
#include "ir/region/region.h"
#include "ir/build.h"
#include "ir/reason/reason.h"

typedef struct {
    const ir_facts *f, *outer; /* with and without the ranges of the inner variables */
    const ir_ranges *inner;
    const ir_expr *where; /* NULL: every point counts */
} scope;

enum { MAX_ROUNDS = 64, MAX_UNIT = 1 << 16 /* of a swizzle */ };

/* Whether expr moves while the inner variables run. */
static bool mentions_inner(const scope *within, const ir_expr *expr)
{
    for (int i = 0; i < within->inner->n; i++)
        if (ir_mentions(expr, within->inner->var[i]))
            return true;
    return false;
}

/* The factor with an inner variable that was defined last; a variable goes after what is made of it. The
 * order matters: with k = i // 4 the range of k follows from that of i, so that k is eliminated before i. */
static const ir_expr *pick(const scope *within, const ir_sum *sum)
{
    const ir_term *term = ir_sum_terms(sum);
    const ir_expr *best = NULL, *factor[IR_MAX_FACTORS];

    for (int i = 0; i < sum->n; i++) {
        int n = ir_factors(term[i].atom, factor);
        for (int j = 0; j < n; j++) {
            int apart = best ? ir_rank(within->f, factor[j]) - ir_rank(within->f, best) : 1;
            if ((apart > 0 || (apart == 0 && best->op == IR_VAR && factor[j]->op != IR_VAR)) &&
                mentions_inner(within, factor[j]))
                best = factor[j];
        }
    }
    return best;
}

static bool span_sum(const scope *within, const ir_sum *sum, ir_sum *min, ir_sum *width);
static bool narrow_span(const scope *within, const ir_sum *sum, ir_sum *min, ir_sum *width);

/* Of points that count. The span without the predicate first, then what the predicate takes off it. */
static bool span_expr(const scope *within, const ir_expr *expr, ir_sum *min, ir_sum *width)
{
    ir_sum a = {0};

    ir_sum_read(within->f, &a, expr, 1);
    return span_sum(within, &a, min, width) && narrow_span(within, &a, min, width);
}

/* The greatest value, as an expression without inner variables; false where there is none to be found. */
static bool upper_end(const scope *within, const ir_sum *sum, ir_sum *out)
{
    return ir_sum_eliminate(within->f, sum, within->inner->var, within->inner->n, true, out);
}

/* As upper_end, for the least value. */
static bool lower_end(const scope *within, const ir_sum *sum, ir_sum *out)
{
    return ir_sum_eliminate(within->f, sum, within->inner->var, within->inner->n, false, out);
}

/* From both ends: right for whatever has bounds, but a variable outside that both ends use does not cancel
 * inside a division. An example: the ends of (y + w)//8 are (y + 7)//8 and y//8. Their difference holds y
 * twice, and is no constant. */
static bool span_ends(const scope *within, const ir_sum *sum, ir_sum *min, ir_sum *width)
{
    ir_sum low = {0};

    if (!lower_end(within, sum, &low) || !upper_end(within, sum, width))
        return false;
    ir_sum_add(within->f, width, &low, -1);
    ir_sum_add(within->f, min, &low, 1);
    return !width->bad && !min->bad;
}

/* A factor as a form of its own. */
static bool span_factor_ends(const scope *within, const ir_expr *expr, ir_sum *min, ir_sum *width)
{
    ir_sum a = {0};

    ir_sum_add_term(within->f, &a, expr, 1);
    return span_ends(within, &a, min, width);
}

/* min may still mention inner variables (0 <= j < i); the width may not. With j in 0..i and i in 0..8, both
 * inner, j has the least value 0 and the width i - 1 at most, so 6. */
static bool span_var(const scope *within, const ir_expr *expr, ir_sum *min, ir_sum *width)
{
    ir_sum last = {0};

    for (int i = 0; i < within->inner->n; i++) {
        if (within->inner->var[i] != expr)
            continue;
        if (!within->inner->extent[i])
            return false;
        const ir_expr *from =
            within->inner->min ? ir_simplify(within->f, within->inner->min[i]) : ir_int(within->f->cx, 0);
        const ir_expr *extent = ir_simplify(within->f, within->inner->extent[i]);
        if (!from || !extent)
            return false;
        ir_sum_read(within->f, min, from, 1);
        ir_sum_read(within->f, &last, extent, 1);
        ir_sum_add_constant(&last, -1);
        return upper_end(within, &last, width);
    }
    return span_factor_ends(within, expr, min, width);
}

/* The residue of a modulo k where it is known. 0 is given where nothing is known, and the answer is false
 * then. */
static bool residue(const ir_facts *facts, const ir_sum *sum, int64_t k, int64_t *r)
{
    ir_modular m = ir_sum_modulus(facts, sum);

    *r = m.coefficient % k == 0 ? ir_floormod_int(m.base, k) : 0;
    return m.coefficient % k == 0;
}

/* Reads expr into the form; false where it cannot be simplified or does not fit. */
static bool add_simplified(const ir_facts *facts, ir_sum *out, const ir_expr *expr)
{
    expr = ir_simplify(facts, expr);
    if (expr)
        ir_sum_read(facts, out, expr, 1);
    return expr && !out->bad;
}

static const ir_expr *quotient(const ir_facts *facts, const ir_sum *sum, const ir_expr *known)
{
    return ir_floordiv(facts->cx, ir_sum_expr(facts, sum, NULL), known);
}

/* floor of (min..min+width) / d: one more than aligned, unless the alignment of min is known.
 *
 *     (16*yo + w)//8, w in 0..8:   16*yo is known to be a multiple of 8: 2*yo alone, width (7 + 0)//8 = 0
 *     (y + w)//8, w in 0..8:       the alignment of y is unknown: y//8 .. y//8 + 1, width (7 + 7)//8 = 1
 */
static bool span_quotient(const scope *within, const ir_expr *expr, ir_sum *min, ir_sum *width)
{
    const ir_expr *d = expr->arg[1];
    ir_sum low = {0}, wide = {0};
    int64_t r = 0;

    if (ir_atom_bounds(within->f, d).min < 1 || mentions_inner(within, d) ||
        !span_expr(within, expr->arg[0], &low, &wide))
        return span_factor_ends(within, expr, min, width);
    bool aligned = d->op == IR_INT && residue(within->f, &low, d->i, &r);
    if (!add_simplified(within->f, min, quotient(within->f, &low, d)))
        return false;
    if (aligned) {
        ir_sum_add_constant(&wide, r);
    } else {
        ir_sum_read(within->f, &wide, d, 1);
        ir_sum_add_constant(&wide, -1);
    }
    return add_simplified(within->f, width, quotient(within->f, &wide, d));
}

/* x%d lies in 0..d-1. It is narrower where all values of x lie in one multiple of d: then x%d moves as x
 * does, which needs the residue of x's minimum.
 *
 *     (32*y + w) % 16, w in 0..8:   32*y is 0 modulo 16 and w stays below 16: 0 .. 7
 *     (y + w) % 16:                 anything in 0 .. 15
 */
static bool span_remainder(const scope *within, const ir_expr *expr, ir_sum *min, ir_sum *width)
{
    const ir_expr *d = expr->arg[1];
    ir_sum low = {0}, wide = {0};
    int64_t r;

    if (ir_atom_bounds(within->f, d).min < 1 || mentions_inner(within, d))
        return span_factor_ends(within, expr, min, width);
    if (d->op == IR_INT && span_expr(within, expr->arg[0], &low, &wide) &&
        residue(within->f, &low, d->i, &r) && ir_sum_bounds(within->f, &wide).max < d->i - r) {
        ir_sum_add_constant(min, r);
        ir_sum_add(within->f, width, &wide, 1);
        return true;
    }
    ir_sum_read(within->f, width, d, 1);
    ir_sum_add_constant(width, -1);
    return true;
}

/* The least power of two above a swizzle's mask; 0: there is none, or too large a one. An example: a mask of
 * 0..5 has the unit 8. */
static int64_t mask_unit(const ir_facts *facts, const ir_expr *mask)
{
    ir_interval b = ir_bounds(facts, mask);
    int64_t unit = 1;

    while (b.min >= 0 && unit <= b.max && unit < MAX_UNIT)
        unit *= 2;
    return b.min >= 0 && unit > b.max ? unit : 0;
}

/* left ^ mask with 0 <= mask < unit stays in the run of `unit` numbers that holds left: the span of left,
 * widened to whole runs.
 *
 *     (8*y + j) ^ 5, j in 0..8:   5 < 8, so it stays in the run of 8 numbers that 8*y begins
 */
static bool span_swizzle(const scope *within, const ir_expr *left, const ir_expr *mask, ir_sum *min,
                         ir_sum *width)
{
    int64_t unit = mask_unit(within->f, mask), r = 0;
    const ir_expr *by = ir_int(within->f->cx, unit);
    ir_sum low = {0}, wide = {0}, runs = {0}, first = {0};

    if (!unit || !span_expr(within, left, &low, &wide))
        return false;
    ir_sum_add_constant(&wide, residue(within->f, &low, unit, &r) ? r : unit - 1);
    if (!add_simplified(within->f, &first, quotient(within->f, &low, by)) ||
        !add_simplified(within->f, &runs, quotient(within->f, &wide, by)))
        return false;
    ir_sum_scale(&first, unit);
    ir_sum_scale(&runs, unit);
    ir_sum_add_constant(&runs, unit - 1);
    ir_sum_add(within->f, min, &first, 1);
    ir_sum_add(within->f, width, &runs, 1);
    return !min->bad && !width->bad;
}

/* The mask may be either operand: the one whose values are small. */
static bool span_xor(const scope *within, const ir_expr *expr, ir_sum *min, ir_sum *width)
{
    return span_swizzle(within, expr->arg[0], expr->arg[1], min, width) ||
           span_swizzle(within, expr->arg[1], expr->arg[0], min, width) ||
           span_factor_ends(within, expr, min, width);
}

/* By the kind of the factor; others are bounded from both ends. */
static bool span_factor(const scope *within, const ir_expr *expr, ir_sum *min, ir_sum *width)
{
    switch (expr->op) {
    case IR_VAR: return span_var(within, expr, min, width);
    case IR_FLOORDIV: return span_quotient(within, expr, min, width);
    case IR_FLOORMOD: return span_remainder(within, expr, min, width);
    case IR_BITXOR: return span_xor(within, expr, min, width);
    default: return span_factor_ends(within, expr, min, width);
    }
}

/* After all inner variables were taken out this is false for the rest: that is the minimum. */
static bool sum_mentions_inner(const scope *within, const ir_sum *sum)
{
    return ir_sum_uses(sum, within->inner->var, within->inner->n);
}

/* rest = c*var + q becomes q + (the least that c*var can be); its width is added. Where the coefficient is
 * negative, the least value is at the greatest var, so the width is added to `low`.
 *
 *     rest = 3*i - 2*j + 5, i in 0..4, j in 0..8:
 *     take i: rest 5 - 2*j, width 9;  take j: rest 5 - 14, width 9 + 14
 *     so the index runs over -9 .. 14: min -9, width 23
 */
static bool take_factor(const scope *within, ir_sum *rest, const ir_expr *var, ir_sum *width)
{
    ir_sum c = {0}, q = {0}, low = {0}, wide = {0};

    ir_sum_split(within->f, rest, var, &c, &q);
    int sign = ir_sum_sign(within->f, &c);
    if (sign == 0 || sum_mentions_inner(within, &c) || !span_factor(within, var, &low, &wide))
        return false;
    if (sign < 0)
        ir_sum_add(within->f, &low, &wide, 1);
    if (!ir_sum_mul(within->f, &q, &c, &low))
        return false;
    ir_sum_scale(&c, sign);
    *rest = q;
    return ir_sum_mul(within->f, width, &c, &wide) && !rest->bad && !width->bad;
}

/* Takes the inner variables out of the sum one after another, the last defined first; a factor that cannot be
 * taken out makes the whole sum be bounded from both ends (span_ends). The width of a sum is the sum of the
 * widths only because each inner variable is taken out once, with all its terms. i - i//8*8 is recombined to
 * i%8 first, as its two terms are not independent. */
static bool span_sum(const scope *within, const ir_sum *sum, ir_sum *min, ir_sum *width)
{
    ir_sum rest, wide = {0};

    ir_sum_copy(within->f, &rest, sum);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const ir_expr *v = pick(within, &rest);
        if (!v) {
            ir_sum_add(within->f, min, &rest, 1);
            ir_sum_add(within->f, width, &wide, 1);
            return !min->bad && !width->bad;
        }
        if (!take_factor(within, &rest, v, &wide))
            return span_ends(within, sum, min, width);
        ir_recombine(within->f, &rest);
    }
    return false;
}

/* ---- predicates ---- */

/* by with a's first inner term == -by * d's: known >= 0 then bounds a; 0 where it says nothing. Only the
 * first inner term decides; if known has others, the sum a + by*known still mentions them, and is bounded as
 * any sum is. */
static int64_t matching(const scope *within, const ir_sum *sum, const ir_sum *known)
{
    const ir_term *term = ir_sum_terms(known);

    for (int i = 0; i < known->n; i++)
        if (mentions_inner(within, term[i].atom)) {
            int64_t by = ir_sum_by(sum, term[i].atom);
            return by % term[i].by == 0 ? -(by / term[i].by) : 0;
        }
    return 0;
}

/* low <= high: the difference is never negative. The facts are those without the inner variables' ranges,
 * since both ends are free of them. */
static bool proves_le(const ir_facts *facts, const ir_sum *low, const ir_sum *high)
{
    ir_sum d = {0};

    ir_sum_add(facts, &d, high, 1);
    ir_sum_add(facts, &d, low, -1);
    return ir_sum_nonneg(facts, &d, IR_THOROUGH);
}

/* One conjunct known >= 0: sum <= sum + by*known where by > 0, sum >= sum + by*known where by < 0. Only an
 * end that is proven to be tighter replaces the old one. */
static void narrow_by(const scope *within, const ir_sum *sum, const ir_sum *known, ir_sum *min, ir_sum *max)
{
    int64_t by = matching(within, sum, known);
    ir_sum bound = {0}, end = {0};

    if (by == 0)
        return;
    ir_sum_add(within->f, &bound, sum, 1);
    ir_sum_add(within->f, &bound, known, by);
    if (by > 0 && upper_end(within, &bound, &end) && proves_le(within->outer, &end, max))
        *max = end;
    else if (by < 0 && lower_end(within, &bound, &end) && proves_le(within->outer, min, &end))
        *min = end;
}

/* Each conjunct of `where` that bounds a sum may bring an end of the span nearer. With i in 0..16 and where i
 * < n: the end 15 becomes n - 1 only if n - 1 <= 15 is proven. Otherwise both are bounds, the minimum of them
 * would be right, and the constant is kept, because buffers want constant sizes. */
static void narrow(const scope *within, const ir_sum *sum, ir_sum *min, ir_sum *max)
{
    base_vec conjuncts = {0};

    ir_conjuncts(within->f->cx, within->where, IR_DROP_LIKELY, &conjuncts);
    for (int i = 0; i < conjuncts.n; i++) {
        ir_sum d = {0};
        ir_op op;

        if (ir_compare_sum(within->f, conjuncts.at[i], &d, &op) && op == IR_GE)
            narrow_by(within, sum, &d, min, max);
    }
}

/* The predicate may move both ends; the width is computed anew from them. Min and max move independently of
 * each other, and a bound that uses the one does not know of the other. */
static bool narrow_span(const scope *within, const ir_sum *sum, ir_sum *min, ir_sum *width)
{
    ir_sum max = {0};

    if (!within->where)
        return true;
    ir_sum_add(within->f, &max, min, 1);
    ir_sum_add(within->f, &max, width, 1);
    narrow(within, sum, min, &max);
    *width = (ir_sum){0};
    ir_sum_add(within->f, width, &max, 1);
    ir_sum_add(within->f, width, min, -1);
    return !width->bad;
}

/* min and width of `expr` under the facts with the inner ranges. The ranges of inner variables are known
 * here without assuming that their loops run (ir_facts_span), since the box is used outside of them. */
static bool span(const ir_facts *facts, const ir_expr *expr, const ir_ranges *inner, const ir_expr *where,
                 ir_sum *min, ir_sum *width)
{
    ir_facts *all = ir_facts_new(facts->cx, facts);
    scope s = {.f = all, .outer = facts, .inner = inner};

    for (int i = 0; i < inner->n; i++)
        if (inner->extent[i])
            ir_facts_span(all, inner->var[i], inner->min ? inner->min[i] : ir_int(facts->cx, 0),
                          inner->extent[i]);
    expr = ir_simplify(all, expr);
    if (!expr || !ir_is_index(expr))
        return false;
    where = where ? ir_simplify(all, where) : NULL;
    s.where = where && where->op != IR_INT ? where : NULL;
    return span_expr(&s, expr, min, width);
}

/* From minimum and width to minimum and extent: the width is one less than the number of elements. */
static bool write_span(const ir_facts *facts, ir_sum *min, ir_sum *width, const ir_expr **from,
                       const ir_expr **extent)
{
    ir_sum_add_constant(width, 1);
    if (min->bad || width->bad)
        return false;
    ir_recombine(facts, min);
    ir_recombine(facts, width);
    *from = ir_sum_expr(facts, min, NULL);
    *extent = ir_sum_expr(facts, width, NULL);
    return *from && *extent;
}

bool ir_span(const ir_facts *facts, const ir_expr *expr, const ir_ranges *inner, const ir_expr *where,
             const ir_expr **min, const ir_expr **extent)
{
    ir_sum low = {0}, wide = {0};

    return expr && span(facts, expr, inner, where, &low, &wide) &&
           write_span(facts, &low, &wide, min, extent);
}

/* ---- boxes ---- */

/* The arrays are given to the caller to fill; the region points to them. */
static ir_region new_region(tec_context *cx, const ir_buffer *buffer, const ir_expr ***min,
                            const ir_expr ***extent)
{
    *min = base_array(cx, const ir_expr *, buffer->n);
    *extent = base_array(cx, const ir_expr *, buffer->n);
    return (ir_region){buffer, *min, *extent};
}

ir_region ir_region_whole(tec_context *cx, const ir_buffer *buffer)
{
    const ir_expr **min, **extent;
    ir_region r = new_region(cx, buffer, &min, &extent);

    for (int d = 0; d < buffer->n; d++) {
        min[d] = ir_int(cx, 0);
        extent[d] = buffer->shape[d];
    }
    return r;
}

ir_region ir_region_point(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index)
{
    const ir_expr **min, **extent;
    ir_region r = new_region(cx, buffer, &min, &extent);

    for (int d = 0; d < buffer->n; d++) {
        min[d] = index[d];
        extent[d] = ir_int(cx, 1);
    }
    return r;
}

/* A hull that reaches the shape is the whole dimension. A box that reaches over the shape on both sides is
 * cut to the shape; one that reaches over on one side keeps its own bounds, since cutting would bring min and
 * max into them. */
static void snap(const ir_facts *facts, const ir_expr *shape, const ir_expr **min, const ir_expr **extent)
{
    if (ir_is_value(*min, 0) && ir_prove_equal(facts, *extent, shape)) {
        *extent = shape;
        return;
    }
    if (!ir_prove_le(facts, *min, ir_int(facts->cx, 0)) ||
        !ir_prove_le(facts, shape, ir_add(facts->cx, *min, *extent)))
        return;
    *min = ir_int(facts->cx, 0);
    *extent = shape;
}

/* The interval from.. of `size` while the inner variables run.
 *
 *     from = 4*i, size = i + 1, i in 0..3:   the ends are 0 and (4*2) + 3, found from from + size
 */
static bool span_interval(const ir_facts *facts, const ir_expr *from, const ir_expr *size,
                          const ir_ranges *inner, const ir_expr *where, const ir_expr **min,
                          const ir_expr **extent)
{
    ir_sum low = {0}, wide = {0}, last = {0}, span_of_last = {0};
    bool fixed = true;

    for (int i = 0; i < inner->n; i++)
        fixed = fixed && !ir_mentions(size, inner->var[i]);
    if (!span(facts, from, inner, where, &low, &wide))
        return false;
    if (fixed) {
        ir_sum_read(facts, &wide, ir_simplify(facts, size), 1);
    } else {
        if (!span(facts, ir_add(facts->cx, from, size), inner, where, &last, &span_of_last))
            return false;
        wide = (ir_sum){0};
        ir_sum_add(facts, &wide, &last, 1);
        ir_sum_add(facts, &wide, &span_of_last, 1);
        ir_sum_add(facts, &wide, &low, -1);
    }
    ir_sum_add_constant(&wide, -1);
    return write_span(facts, &low, &wide, min, extent);
}

/* A ramp is its first element with an inner variable of its own. An index that is the same in all lanes is
 * that of one lane. */
static bool span_dimension(const ir_facts *facts, const ir_expr *from, const ir_expr *size,
                           const ir_ranges *inner, const ir_expr *where, const ir_expr **min,
                           const ir_expr **extent)
{
    if (from->op == IR_BROADCAST)
        from = from->arg[0];
    if (from->op != IR_RAMP)
        return ir_is_index(from) && span_interval(facts, from, size, inner, where, min, extent);
    const ir_expr *lane = ir_var(facts->cx, "lane", BASE_I64), *lanes = ir_int(facts->cx, from->dtype.lanes);
    const ir_expr *expr = ir_add(facts->cx, from->ramp.base, ir_mul(facts->cx, lane, from->ramp.stride));
    const ir_expr **var = base_array(facts->cx, const ir_expr *, inner->n + 1);
    const ir_expr **low = base_array(facts->cx, const ir_expr *, inner->n + 1),
                  **wide = base_array(facts->cx, const ir_expr *, inner->n + 1);

    for (int i = 0; i < inner->n; i++) {
        var[i] = inner->var[i];
        low[i] = inner->min ? inner->min[i] : ir_int(facts->cx, 0);
        wide[i] = inner->extent[i];
    }
    var[inner->n] = lane;
    low[inner->n] = ir_int(facts->cx, 0);
    wide[inner->n] = lanes;
    return ir_is_index(expr) &&
           span_interval(facts, expr, size, &(ir_ranges){var, low, wide, inner->n + 1}, where, min, extent);
}

/* The box of region while the inner variables run through their ranges, dimension by dimension. An extent or
 * index that is not understood gives the whole dimension.
 *
 *     P[i*4 + j : +1, k], j in 0..4 and k in 0..n inner, i standing still:     P[i*4 : +4, 0 : n]
 */
ir_region ir_region_over(const ir_facts *facts, const ir_region *region, const ir_ranges *inner,
                         const ir_expr *where)
{
    const ir_expr **min, **extent;
    ir_region out = new_region(facts->cx, region->buffer, &min, &extent);

    for (int d = 0; d < region->buffer->n; d++) {
        const ir_expr *shape = region->buffer->shape[d];
        if (!span_dimension(facts, region->min[d], region->extent[d], inner, where, min + d, extent + d)) {
            min[d] = ir_int(facts->cx, 0);
            extent[d] = shape;
        }
        snap(facts, shape, min + d, extent + d);
    }
    return out;
}

/* The least of both starts and the greatest of both ends; false where they cannot be compared. An end that
 * is an expression must be one of the two: a minimum of both would spoil later proofs.
 *
 *     [i*4 : +4] and [i*4 + 2 : +4]     =>    [i*4 : +6]
 *     [0 : n] and [m : +1]              the ends cannot be compared: false
 */
static bool join(const ir_facts *facts, const ir_expr **min, const ir_expr **extent, const ir_expr *from,
                 const ir_expr *size)
{
    const ir_expr *end = ir_add(facts->cx, *min, *extent), *other = ir_add(facts->cx, from, size);
    const ir_expr *first = ir_prove_le(facts, *min, from)   ? *min
                           : ir_prove_le(facts, from, *min) ? from
                                                            : NULL;
    const ir_expr *last = ir_prove_le(facts, other, end)   ? end
                          : ir_prove_le(facts, end, other) ? other
                                                           : NULL;

    if (!first || !last)
        return false;
    *min = first;
    *extent = ir_simplify(facts, ir_sub(facts->cx, last, first));
    return *extent;
}

/* The smallest box around all count boxes as far as the starts and ends can be compared; otherwise the whole
 * dimension. The boxes are those of one buffer, and count is at least 1. */
ir_region ir_region_union(const ir_facts *facts, const ir_region *boxes, int count)
{
    const ir_expr **min, **extent;
    const ir_buffer *buffer = boxes[0].buffer;
    ir_region out = new_region(facts->cx, buffer, &min, &extent);

    for (int d = 0; d < buffer->n; d++) {
        bool known = true;
        min[d] = boxes[0].min[d];
        extent[d] = boxes[0].extent[d];
        for (int i = 1; i < count && known; i++)
            known = join(facts, min + d, extent + d, boxes[i].min[d], boxes[i].extent[d]);
        if (!known) {
            min[d] = ir_int(facts->cx, 0);
            extent[d] = buffer->shape[d];
        }
        snap(facts, buffer->shape[d], min + d, extent + d);
    }
    return out;
}

/* False says only that it is not proven. An empty inner box that lies elsewhere is not contained: nothing is
 * known of its extent here. */
bool ir_region_contains(const ir_facts *facts, const ir_region *outer, const ir_region *inner)
{
    for (int d = 0; d < outer->buffer->n; d++)
        if (!ir_prove_le(facts, outer->min[d], inner->min[d]) ||
            !ir_prove_le(facts, ir_add(facts->cx, inner->min[d], inner->extent[d]),
                         ir_add(facts->cx, outer->min[d], outer->extent[d])))
            return false;
    return outer->buffer == inner->buffer;
}

/* Apart in one dimension is apart. */
bool ir_region_disjoint(const ir_facts *facts, const ir_region *left, const ir_region *right)
{
    for (int d = 0; d < left->buffer->n && left->buffer == right->buffer; d++)
        if (ir_prove_le(facts, ir_add(facts->cx, left->min[d], left->extent[d]), right->min[d]) ||
            ir_prove_le(facts, ir_add(facts->cx, right->min[d], right->extent[d]), left->min[d]))
            return true;
    return false;
}

const ir_region *ir_regions_of(tec_context *cx, const base_vec *vec)
{
    ir_region *r = base_array(cx, ir_region, vec->n);

    for (int i = 0; i < vec->n; i++)
        r[i] = *(const ir_region *)vec->at[i];
    return r;
}
