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

/* Whether e moves while the inner variables run. */
static bool mentions_inner(const scope *s, const ir_expr *e)
{
    for (int i = 0; i < s->inner->n; i++)
        if (ir_mentions(e, s->inner->var[i]))
            return true;
    return false;
}

/* The factor with an inner variable that was defined last; a variable goes after what is made of it. */
static const ir_expr *pick(const scope *s, const ir_sum *a)
{
    const ir_term *t = ir_sum_terms(a);
    const ir_expr *best = NULL, *factor[IR_MAX_FACTORS];

    for (int i = 0; i < a->n; i++) {
        int n = ir_factors(t[i].atom, factor);
        for (int j = 0; j < n; j++) {
            int apart = best ? ir_rank(s->f, factor[j]) - ir_rank(s->f, best) : 1;
            if ((apart > 0 || (apart == 0 && best->op == IR_VAR && factor[j]->op != IR_VAR)) &&
                mentions_inner(s, factor[j]))
                best = factor[j];
        }
    }
    return best;
}

static bool span_sum(const scope *s, const ir_sum *a, ir_sum *min, ir_sum *width);
static bool narrow_span(const scope *s, const ir_sum *a, ir_sum *min, ir_sum *width);

/* Of points that count. The span without the predicate first, then what the predicate takes off it. */
static bool span_expr(const scope *s, const ir_expr *e, ir_sum *min, ir_sum *width)
{
    ir_sum a = {0};

    ir_sum_read(s->f, &a, e, 1);
    return span_sum(s, &a, min, width) && narrow_span(s, &a, min, width);
}

/* The greatest value, as an expression without inner variables; false where there is none to be found. */
static bool upper_end(const scope *s, const ir_sum *a, ir_sum *out)
{
    return ir_sum_eliminate(s->f, a, s->inner->var, s->inner->n, true, out);
}

/* As upper_end, for the least value. */
static bool lower_end(const scope *s, const ir_sum *a, ir_sum *out)
{
    return ir_sum_eliminate(s->f, a, s->inner->var, s->inner->n, false, out);
}

/* From both ends: right for whatever has bounds, but a variable outside that both ends use does not cancel
 * inside a division. An example: the ends of (y + w)//8 are (y + 7)//8 and y//8. Their difference holds y
 * twice, and is no constant. */
static bool span_ends(const scope *s, const ir_sum *a, ir_sum *min, ir_sum *width)
{
    ir_sum low = {0};

    if (!lower_end(s, a, &low) || !upper_end(s, a, width))
        return false;
    ir_sum_add(s->f, width, &low, -1);
    ir_sum_add(s->f, min, &low, 1);
    return !width->bad && !min->bad;
}

/* A factor as a form of its own. */
static bool span_factor_ends(const scope *s, const ir_expr *e, ir_sum *min, ir_sum *width)
{
    ir_sum a = {0};

    ir_sum_add_term(s->f, &a, e, 1);
    return span_ends(s, &a, min, width);
}

/* min may still mention inner variables (0 <= j < i); the width may not. With j in 0..i and i in 0..8, both
 * inner, j has the least value 0 and the width i - 1 at most, so 6. */
static bool span_var(const scope *s, const ir_expr *e, ir_sum *min, ir_sum *width)
{
    ir_sum last = {0};

    for (int i = 0; i < s->inner->n; i++) {
        if (s->inner->var[i] != e)
            continue;
        if (!s->inner->extent[i])
            return false;
        const ir_expr *from = s->inner->min ? ir_simplify(s->f, s->inner->min[i]) : ir_int(s->f->cx, 0);
        const ir_expr *extent = ir_simplify(s->f, s->inner->extent[i]);
        if (!from || !extent)
            return false;
        ir_sum_read(s->f, min, from, 1);
        ir_sum_read(s->f, &last, extent, 1);
        ir_sum_add_constant(&last, -1);
        return upper_end(s, &last, width);
    }
    return span_factor_ends(s, e, min, width);
}

/* The residue of a modulo k where it is known. 0 is given where nothing is known, and the answer is false
 * then. */
static bool residue(const ir_facts *f, const ir_sum *a, int64_t k, int64_t *r)
{
    ir_modular m = ir_sum_modulus(f, a);

    *r = m.coefficient % k == 0 ? ir_floormod_int(m.base, k) : 0;
    return m.coefficient % k == 0;
}

/* Reads e into the form; false where it cannot be simplified or does not fit. */
static bool add_simplified(const ir_facts *f, ir_sum *out, const ir_expr *e)
{
    e = ir_simplify(f, e);
    if (e)
        ir_sum_read(f, out, e, 1);
    return e && !out->bad;
}

static const ir_expr *quotient(const ir_facts *f, const ir_sum *a, const ir_expr *d)
{
    return ir_floordiv(f->cx, ir_sum_expr(f, a, NULL), d);
}

/* floor of (min..min+width) / d: one more than aligned, unless the alignment of min is known.
 *
 *     (16*yo + w)//8, w in 0..8:   16*yo is known to be a multiple of 8: 2*yo alone, width (7 + 0)//8 = 0
 *     (y + w)//8, w in 0..8:       the alignment of y is unknown: y//8 .. y//8 + 1, width (7 + 7)//8 = 1
 */
static bool span_quotient(const scope *s, const ir_expr *e, ir_sum *min, ir_sum *width)
{
    const ir_expr *d = e->arg[1];
    ir_sum low = {0}, wide = {0};
    int64_t r = 0;

    if (ir_atom_bounds(s->f, d).min < 1 || mentions_inner(s, d) || !span_expr(s, e->arg[0], &low, &wide))
        return span_factor_ends(s, e, min, width);
    bool aligned = d->op == IR_INT && residue(s->f, &low, d->i, &r);
    if (!add_simplified(s->f, min, quotient(s->f, &low, d)))
        return false;
    if (aligned) {
        ir_sum_add_constant(&wide, r);
    } else {
        ir_sum_read(s->f, &wide, d, 1);
        ir_sum_add_constant(&wide, -1);
    }
    return add_simplified(s->f, width, quotient(s->f, &wide, d));
}

/* x%d lies in 0..d-1. It is narrower where all values of x lie in one multiple of d: then x%d moves as x
 * does, which needs the residue of x's minimum.
 *
 *     (32*y + w) % 16, w in 0..8:   32*y is 0 modulo 16 and w stays below 16: 0 .. 7
 *     (y + w) % 16:                 anything in 0 .. 15
 */
static bool span_remainder(const scope *s, const ir_expr *e, ir_sum *min, ir_sum *width)
{
    const ir_expr *d = e->arg[1];
    ir_sum low = {0}, wide = {0};
    int64_t r;

    if (ir_atom_bounds(s->f, d).min < 1 || mentions_inner(s, d))
        return span_factor_ends(s, e, min, width);
    if (d->op == IR_INT && span_expr(s, e->arg[0], &low, &wide) && residue(s->f, &low, d->i, &r) &&
        ir_sum_bounds(s->f, &wide).max < d->i - r) {
        ir_sum_add_constant(min, r);
        ir_sum_add(s->f, width, &wide, 1);
        return true;
    }
    ir_sum_read(s->f, width, d, 1);
    ir_sum_add_constant(width, -1);
    return true;
}

/* The least power of two above a swizzle's mask; 0: there is none, or too large a one. An example: a mask of
 * 0..5 has the unit 8. */
static int64_t mask_unit(const ir_facts *f, const ir_expr *mask)
{
    ir_interval b = ir_bounds(f, mask);
    int64_t unit = 1;

    while (b.min >= 0 && unit <= b.max && unit < MAX_UNIT)
        unit *= 2;
    return b.min >= 0 && unit > b.max ? unit : 0;
}

/* a ^ mask with 0 <= mask < unit stays in a's run of `unit` numbers: the span of a, widened to whole runs.
 *
 *     (8*y + j) ^ 5, j in 0..8:   5 < 8, so it stays in the run of 8 numbers that 8*y begins
 */
static bool span_swizzle(const scope *s, const ir_expr *a, const ir_expr *mask, ir_sum *min, ir_sum *width)
{
    int64_t unit = mask_unit(s->f, mask), r = 0;
    const ir_expr *by = ir_int(s->f->cx, unit);
    ir_sum low = {0}, wide = {0}, runs = {0}, first = {0};

    if (!unit || !span_expr(s, a, &low, &wide))
        return false;
    ir_sum_add_constant(&wide, residue(s->f, &low, unit, &r) ? r : unit - 1);
    if (!add_simplified(s->f, &first, quotient(s->f, &low, by)) ||
        !add_simplified(s->f, &runs, quotient(s->f, &wide, by)))
        return false;
    ir_sum_scale(&first, unit);
    ir_sum_scale(&runs, unit);
    ir_sum_add_constant(&runs, unit - 1);
    ir_sum_add(s->f, min, &first, 1);
    ir_sum_add(s->f, width, &runs, 1);
    return !min->bad && !width->bad;
}

/* The mask may be either operand: the one whose values are small. */
static bool span_xor(const scope *s, const ir_expr *e, ir_sum *min, ir_sum *width)
{
    return span_swizzle(s, e->arg[0], e->arg[1], min, width) ||
           span_swizzle(s, e->arg[1], e->arg[0], min, width) || span_factor_ends(s, e, min, width);
}

/* By the kind of the factor; others are bounded from both ends. */
static bool span_factor(const scope *s, const ir_expr *e, ir_sum *min, ir_sum *width)
{
    switch (e->op) {
    case IR_VAR: return span_var(s, e, min, width);
    case IR_FLOORDIV: return span_quotient(s, e, min, width);
    case IR_FLOORMOD: return span_remainder(s, e, min, width);
    case IR_BITXOR: return span_xor(s, e, min, width);
    default: return span_factor_ends(s, e, min, width);
    }
}

/* After all inner variables were taken out this is false for the rest: that is the minimum. */
static bool sum_mentions_inner(const scope *s, const ir_sum *a)
{
    return ir_sum_uses(a, s->inner->var, s->inner->n);
}

/* rest = c*v + q becomes q + (the least that c*v can be); its width is added. Where the coefficient is
 * negative, the least value is at the greatest v, so the width is added to `low`. */
static bool take_factor(const scope *s, ir_sum *rest, const ir_expr *v, ir_sum *width)
{
    ir_sum c = {0}, q = {0}, low = {0}, wide = {0};

    ir_sum_split(s->f, rest, v, &c, &q);
    int sign = ir_sum_sign(s->f, &c);
    if (sign == 0 || sum_mentions_inner(s, &c) || !span_factor(s, v, &low, &wide))
        return false;
    if (sign < 0)
        ir_sum_add(s->f, &low, &wide, 1);
    if (!ir_sum_mul(s->f, &q, &c, &low))
        return false;
    ir_sum_scale(&c, sign);
    *rest = q;
    return ir_sum_mul(s->f, width, &c, &wide) && !rest->bad && !width->bad;
}

/* Takes the inner variables out of the sum one after another, the last defined first; a factor that cannot be
 * taken out makes the whole sum be bounded from both ends (span_ends). The width of a sum is the sum of the
 * widths only because each inner variable is taken out once, with all its terms. i - i//8*8 is recombined to
 * i%8 first, as its two terms are not independent. */
static bool span_sum(const scope *s, const ir_sum *a, ir_sum *min, ir_sum *width)
{
    ir_sum rest, wide = {0};

    ir_sum_copy(s->f, &rest, a);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const ir_expr *v = pick(s, &rest);
        if (!v) {
            ir_sum_add(s->f, min, &rest, 1);
            ir_sum_add(s->f, width, &wide, 1);
            return !min->bad && !width->bad;
        }
        if (!take_factor(s, &rest, v, &wide))
            return span_ends(s, a, min, width);
        ir_recombine(s->f, &rest);
    }
    return false;
}

/* ---- predicates ---- */

/* by with a's first inner term == -by * d's: d >= 0 then bounds a; 0 where it says nothing. Only the first
 * inner term decides; if d has others, the sum a + by*d still mentions them, and is bounded as any sum is. */
static int64_t matching(const scope *s, const ir_sum *a, const ir_sum *d)
{
    const ir_term *t = ir_sum_terms(d);

    for (int i = 0; i < d->n; i++)
        if (mentions_inner(s, t[i].atom)) {
            int64_t by = ir_sum_by(a, t[i].atom);
            return by % t[i].by == 0 ? -(by / t[i].by) : 0;
        }
    return 0;
}

/* low <= high: the difference is never negative. The facts are those without the inner variables' ranges,
 * since both ends are free of them. */
static bool proves_le(const ir_facts *f, const ir_sum *low, const ir_sum *high)
{
    ir_sum d = {0};

    ir_sum_add(f, &d, high, 1);
    ir_sum_add(f, &d, low, -1);
    return ir_sum_nonneg(f, &d, IR_THOROUGH);
}

/* One conjunct d >= 0: a <= a + by*d where by > 0, a >= a + by*d where by < 0. Only an end that is proven to
 * be tighter replaces the old one. */
static void narrow_by(const scope *s, const ir_sum *a, const ir_sum *d, ir_sum *min, ir_sum *max)
{
    int64_t by = matching(s, a, d);
    ir_sum bound = {0}, end = {0};

    if (by == 0)
        return;
    ir_sum_add(s->f, &bound, a, 1);
    ir_sum_add(s->f, &bound, d, by);
    if (by > 0 && upper_end(s, &bound, &end) && proves_le(s->outer, &end, max))
        *max = end;
    else if (by < 0 && lower_end(s, &bound, &end) && proves_le(s->outer, min, &end))
        *min = end;
}

/* Each conjunct of `where` that bounds a sum may bring an end of the span nearer. With i in 0..16 and where i
 * < n: the end 15 becomes n - 1 only if n - 1 <= 15 is proven. Otherwise both are bounds, the minimum of them
 * would be right, and the constant is kept, because buffers want constant sizes. */
static void narrow(const scope *s, const ir_sum *a, ir_sum *min, ir_sum *max)
{
    base_vec conjuncts = {0};

    ir_conjuncts(s->f->cx, s->where, IR_DROP_LIKELY, &conjuncts);
    for (int i = 0; i < conjuncts.n; i++) {
        ir_sum d = {0};
        ir_op op;

        if (ir_compare_sum(s->f, conjuncts.at[i], &d, &op) && op == IR_GE)
            narrow_by(s, a, &d, min, max);
    }
}

/* The predicate may move both ends; the width is computed anew from them. Min and max move independently of
 * each other, and a bound that uses the one does not know of the other. */
static bool narrow_span(const scope *s, const ir_sum *a, ir_sum *min, ir_sum *width)
{
    ir_sum max = {0};

    if (!s->where)
        return true;
    ir_sum_add(s->f, &max, min, 1);
    ir_sum_add(s->f, &max, width, 1);
    narrow(s, a, min, &max);
    *width = (ir_sum){0};
    ir_sum_add(s->f, width, &max, 1);
    ir_sum_add(s->f, width, min, -1);
    return !width->bad;
}

/* min and width of `e` under the facts with the inner ranges. */
static bool span(const ir_facts *f, const ir_expr *e, const ir_ranges *inner, const ir_expr *where,
                 ir_sum *min, ir_sum *width)
{
    ir_facts *all = ir_facts_new(f->cx, f);
    scope s = {.f = all, .outer = f, .inner = inner};

    for (int i = 0; i < inner->n; i++)
        if (inner->extent[i])
            ir_facts_span(all, inner->var[i], inner->min ? inner->min[i] : ir_int(f->cx, 0),
                          inner->extent[i]);
    e = ir_simplify(all, e);
    if (!e || !ir_is_index(e))
        return false;
    where = where ? ir_simplify(all, where) : NULL;
    s.where = where && where->op != IR_INT ? where : NULL;
    return span_expr(&s, e, min, width);
}

/* From minimum and width to minimum and extent: the width is one less than the number of elements. */
static bool write_span(const ir_facts *f, ir_sum *min, ir_sum *width, const ir_expr **from,
                       const ir_expr **extent)
{
    ir_sum_add_constant(width, 1);
    if (min->bad || width->bad)
        return false;
    ir_recombine(f, min);
    ir_recombine(f, width);
    *from = ir_sum_expr(f, min, NULL);
    *extent = ir_sum_expr(f, width, NULL);
    return *from && *extent;
}

bool ir_span(const ir_facts *f, const ir_expr *e, const ir_ranges *inner, const ir_expr *where,
             const ir_expr **min, const ir_expr **extent)
{
    ir_sum low = {0}, wide = {0};

    return e && span(f, e, inner, where, &low, &wide) && write_span(f, &low, &wide, min, extent);
}

/* ---- boxes ---- */

/* The arrays are given to the caller to fill; the region points to them. */
static ir_region new_region(tec_context *cx, const ir_buffer *b, const ir_expr ***min,
                            const ir_expr ***extent)
{
    *min = base_array(cx, const ir_expr *, b->n);
    *extent = base_array(cx, const ir_expr *, b->n);
    return (ir_region){b, *min, *extent};
}

ir_region ir_region_whole(tec_context *cx, const ir_buffer *b)
{
    const ir_expr **min, **extent;
    ir_region r = new_region(cx, b, &min, &extent);

    for (int d = 0; d < b->n; d++) {
        min[d] = ir_int(cx, 0);
        extent[d] = b->shape[d];
    }
    return r;
}

ir_region ir_region_point(tec_context *cx, const ir_buffer *b, const ir_expr *const *index)
{
    const ir_expr **min, **extent;
    ir_region r = new_region(cx, b, &min, &extent);

    for (int d = 0; d < b->n; d++) {
        min[d] = index[d];
        extent[d] = ir_int(cx, 1);
    }
    return r;
}

/* A hull that reaches the shape is the whole dimension. A box that reaches over the shape on both sides is
 * cut to the shape; one that reaches over on one side keeps its own bounds, since cutting would bring min and
 * max into them. */
static void snap(const ir_facts *f, const ir_expr *shape, const ir_expr **min, const ir_expr **extent)
{
    if (ir_is_value(*min, 0) && ir_prove_equal(f, *extent, shape)) {
        *extent = shape;
        return;
    }
    if (!ir_prove_le(f, *min, ir_int(f->cx, 0)) || !ir_prove_le(f, shape, ir_add(f->cx, *min, *extent)))
        return;
    *min = ir_int(f->cx, 0);
    *extent = shape;
}

/* The interval from.. of `size` while the inner variables run.
 *
 *     from = 4*i, size = i + 1, i in 0..3:   the ends are 0 and (4*2) + 3, found from from + size
 */
static bool span_interval(const ir_facts *f, const ir_expr *from, const ir_expr *size, const ir_ranges *inner,
                          const ir_expr *where, const ir_expr **min, const ir_expr **extent)
{
    ir_sum low = {0}, wide = {0}, last = {0}, span_of_last = {0};
    bool fixed = true;

    for (int i = 0; i < inner->n; i++)
        fixed = fixed && !ir_mentions(size, inner->var[i]);
    if (!span(f, from, inner, where, &low, &wide))
        return false;
    if (fixed) {
        ir_sum_read(f, &wide, ir_simplify(f, size), 1);
    } else {
        if (!span(f, ir_add(f->cx, from, size), inner, where, &last, &span_of_last))
            return false;
        wide = (ir_sum){0};
        ir_sum_add(f, &wide, &last, 1);
        ir_sum_add(f, &wide, &span_of_last, 1);
        ir_sum_add(f, &wide, &low, -1);
    }
    ir_sum_add_constant(&wide, -1);
    return write_span(f, &low, &wide, min, extent);
}

/* A ramp is its first element with an inner variable of its own. An index that is the same in all lanes is
 * that of one lane. */
static bool span_dimension(const ir_facts *f, const ir_expr *from, const ir_expr *size,
                           const ir_ranges *inner, const ir_expr *where, const ir_expr **min,
                           const ir_expr **extent)
{
    if (from->op == IR_BROADCAST)
        from = from->arg[0];
    if (from->op != IR_RAMP)
        return ir_is_index(from) && span_interval(f, from, size, inner, where, min, extent);
    const ir_expr *lane = ir_var(f->cx, "lane", BASE_I64), *lanes = ir_int(f->cx, from->dtype.lanes);
    const ir_expr *e = ir_add(f->cx, from->ramp.base, ir_mul(f->cx, lane, from->ramp.stride));
    const ir_expr **var = base_array(f->cx, const ir_expr *, inner->n + 1);
    const ir_expr **low = base_array(f->cx, const ir_expr *, inner->n + 1),
                  **wide = base_array(f->cx, const ir_expr *, inner->n + 1);

    for (int i = 0; i < inner->n; i++) {
        var[i] = inner->var[i];
        low[i] = inner->min ? inner->min[i] : ir_int(f->cx, 0);
        wide[i] = inner->extent[i];
    }
    var[inner->n] = lane;
    low[inner->n] = ir_int(f->cx, 0);
    wide[inner->n] = lanes;
    return ir_is_index(e) &&
           span_interval(f, e, size, &(ir_ranges){var, low, wide, inner->n + 1}, where, min, extent);
}

/* The box of r while the inner variables run through their ranges, dimension by dimension. An extent or index
 * that is not understood gives the whole dimension. */
ir_region ir_region_over(const ir_facts *f, const ir_region *r, const ir_ranges *inner, const ir_expr *where)
{
    const ir_expr **min, **extent;
    ir_region out = new_region(f->cx, r->buffer, &min, &extent);

    for (int d = 0; d < r->buffer->n; d++) {
        const ir_expr *shape = r->buffer->shape[d];
        if (!span_dimension(f, r->min[d], r->extent[d], inner, where, min + d, extent + d)) {
            min[d] = ir_int(f->cx, 0);
            extent[d] = shape;
        }
        snap(f, shape, min + d, extent + d);
    }
    return out;
}

/* The least of both starts and the greatest of both ends; false where they cannot be compared. An end that is
 * an expression must be one of the two: a minimum of both would spoil later proofs. */
static bool join(const ir_facts *f, const ir_expr **min, const ir_expr **extent, const ir_expr *from,
                 const ir_expr *size)
{
    const ir_expr *end = ir_add(f->cx, *min, *extent), *other = ir_add(f->cx, from, size);
    const ir_expr *first = ir_prove_le(f, *min, from) ? *min : ir_prove_le(f, from, *min) ? from : NULL;
    const ir_expr *last = ir_prove_le(f, other, end) ? end : ir_prove_le(f, end, other) ? other : NULL;

    if (!first || !last)
        return false;
    *min = first;
    *extent = ir_simplify(f, ir_sub(f->cx, last, first));
    return *extent;
}

/* The smallest box around all n boxes as far as the starts and ends can be compared; otherwise the whole
 * dimension. The boxes are those of one buffer, and n is at least 1. */
ir_region ir_region_union(const ir_facts *f, const ir_region *boxes, int n)
{
    const ir_expr **min, **extent;
    const ir_buffer *b = boxes[0].buffer;
    ir_region out = new_region(f->cx, b, &min, &extent);

    for (int d = 0; d < b->n; d++) {
        bool known = true;
        min[d] = boxes[0].min[d];
        extent[d] = boxes[0].extent[d];
        for (int i = 1; i < n && known; i++)
            known = join(f, min + d, extent + d, boxes[i].min[d], boxes[i].extent[d]);
        if (!known) {
            min[d] = ir_int(f->cx, 0);
            extent[d] = b->shape[d];
        }
        snap(f, b->shape[d], min + d, extent + d);
    }
    return out;
}

/* False says only that it is not proven. An empty inner box that lies elsewhere is not contained: nothing is
 * known of its extent here. */
bool ir_region_contains(const ir_facts *f, const ir_region *outer, const ir_region *inner)
{
    for (int d = 0; d < outer->buffer->n; d++)
        if (!ir_prove_le(f, outer->min[d], inner->min[d]) ||
            !ir_prove_le(f, ir_add(f->cx, inner->min[d], inner->extent[d]),
                         ir_add(f->cx, outer->min[d], outer->extent[d])))
            return false;
    return outer->buffer == inner->buffer;
}

/* Apart in one dimension is apart. */
bool ir_region_disjoint(const ir_facts *f, const ir_region *a, const ir_region *b)
{
    for (int d = 0; d < a->buffer->n && a->buffer == b->buffer; d++)
        if (ir_prove_le(f, ir_add(f->cx, a->min[d], a->extent[d]), b->min[d]) ||
            ir_prove_le(f, ir_add(f->cx, b->min[d], b->extent[d]), a->min[d]))
            return true;
    return false;
}

const ir_region *ir_regions_of(tec_context *cx, const base_vec *v)
{
    ir_region *r = base_array(cx, ir_region, v->n);

    for (int i = 0; i < v->n; i++)
        r[i] = *(const ir_region *)v->at[i];
    return r;
}
