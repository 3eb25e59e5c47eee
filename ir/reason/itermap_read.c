/* ir/reason/itermap_read.c -- reads a binding as a sum of digits.
 *
 * A digit is (mark // lower) % extent of a loop or of a fused mark (marks.h). A division cuts a chain of
 * digits into those below the divisor and those above:
 *
 *     (a*12 + b)//12         over a < 8, b < 12      a: the cut falls between the two loops
 *     (a*12 + b)//4          over a < 8, b < 12      3*a + b//4: b splits into b//4 and b%4
 *     (a*12 + b)//8          over a < 8, b < 12      no digit of b ends at 8: a and b become one fused
 *                                                    mark f of 96 values, and the binding is f//8
 *
 * After such a fusion reading starts again with the mark known, so that all bindings are written in the same
 * digits: a second binding (a*12 + b)%8 is then f%8, and f//8 with f%8 tile f exactly. A loop that counts
 * down, n - 1 - i, is its digit reversed.
 */
#include <stdarg.h>

#include "ir/reason/marks.h"
#include "ir/text.h"

/* Keeps the first reason: later ones are its consequences. Always false, for callers to return. */
bool ir_iter_refuse(ir_iter_marks *m, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (!m->reason)
        m->reason = base_vformat(m->f->cx, fmt, args);
    va_end(args);
    return false;
}

static const char *text(const ir_iter_marks *m, const ir_expr *e)
{
    return ir_expr_text(m->f->cx, e);
}

const ir_expr *ir_iter_mul(const ir_iter_marks *m, const ir_expr *a, const ir_expr *b)
{
    if (a->op == IR_INT && b->op == IR_INT)
        return ir_mul(m->f->cx, a, b);
    return ir_simplify(m->f, ir_mul(m->f->cx, a, b));
}

/* The exact quotient as an expression, or NULL where b does not divide a for all sizes. */
const ir_expr *ir_iter_quotient(const ir_iter_marks *m, const ir_expr *a, const ir_expr *b)
{
    ir_sum x = {0}, y = {0}, q = {0};

    if (a->op == IR_INT && b->op == IR_INT)
        return b->i != 0 && a->i % b->i == 0 ? ir_int(m->f->cx, a->i / b->i) : NULL;
    ir_sum_read(m->f, &x, a, 1);
    ir_sum_read(m->f, &y, b, 1);
    return ir_sum_exact_quotient(m->f, &x, &y, &q) ? ir_sum_expr(m->f, &q, NULL) : NULL;
}

bool ir_iter_same(const ir_iter_marks *m, const ir_expr *a, const ir_expr *b)
{
    return a == b || (a->op == IR_INT && b->op == IR_INT ? a->i == b->i : ir_prove_equal(m->f, a, b));
}

static bool is_one(const ir_iter_marks *m, const ir_expr *e)
{
    return e->op == IR_INT ? e->i == 1 : ir_iter_same(m, e, ir_int(m->f->cx, 1));
}

static const ir_expr *one(const ir_iter_marks *m)
{
    return ir_int(m->f->cx, 1);
}

static const ir_expr *ceil_quotient(const ir_iter_marks *m, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *exact = ir_iter_quotient(m, a, b);

    return exact ? exact : ir_simplify(m->f, ir_ceildiv(m->f->cx, a, b));
}

static ir_part part_of(ir_mark *of, const ir_expr *lower, const ir_expr *extent, const ir_expr *scale)
{
    return (ir_part){.of = of, .lower = lower, .extent = extent, .scale = scale};
}

/* Digits of one value are left out. A digit of one value adds nothing to a number, and would stand in the way
 * of joining its neighbours. */
static bool add_part(ir_iter_marks *m, ir_mix *mix, ir_part p)
{
    if (is_one(m, p.extent))
        return true;
    if (mix->n == IR_MAX_PARTS)
        return ir_iter_refuse(m, "it has more than %d digits", IR_MAX_PARTS);
    mix->part[mix->n++] = p;
    return true;
}

/* ---- chains ---- */

static void swap(ir_part *a, ir_part *b)
{
    ir_part t = *a;

    *a = *b;
    *b = t;
}

/* The digit as an expression of its mark. The top digit needs no remainder: nothing lies above it. */
static const ir_expr *digit_value(const ir_iter_marks *m, const ir_part *p)
{
    const ir_expr *e = ir_floordiv(m->f->cx, p->of->value, p->lower);
    bool top = ir_iter_same(m, ir_iter_mul(m, p->lower, p->extent), p->of->extent);

    e = top ? e : ir_floormod(m->f->cx, e, p->extent);
    return p->reversed ? ir_sub(m->f->cx, ir_sub(m->f->cx, p->extent, one(m)), e) : e;
}

/* The number that the digits make. */
static const ir_expr *chain_value(const ir_iter_marks *m, const ir_mix *chain)
{
    const ir_expr *value = ir_int(m->f->cx, 0);

    for (int i = 0; i < chain->n; i++)
        value =
            ir_add(m->f->cx, value, ir_mul(m->f->cx, digit_value(m, chain->part + i), chain->part[i].scale));
    return ir_simplify(m->f, value);
}

/* A mark that a predicate made in an earlier round and that was left aside must not be made again: reading
 * would start over for ever. */
static bool is_known(const ir_iter_marks *m, const ir_expr *value, const ir_expr *extent)
{
    for (int i = m->n_loops; i < m->marks.n; i++) {
        const ir_mark *mark = m->marks.at[i];
        if (ir_same(mark->value, value) && ir_iter_same(m, mark->extent, extent))
            return true;
    }
    return false;
}

/* The digits below the next scale take more values than that scale allows, so numbers would overlap, unless
 * the predicate keeps the digits below it: then they become a trimmed mark, and reading starts again with
 * that mark. A mark that is known already was left aside here on purpose and stays so.
 *
 *     yo*12 + yi with yi in 0..16, under the predicate yi < 12:   yi's 16 values overlap the next step, 12,
 *     but the predicate leaves 12 of them: yi becomes a trimmed mark of 12 values
 */
static bool trim_below(ir_iter_marks *m, const ir_mix *mix, int n, const ir_expr *reach)
{
    ir_mix below = *mix;

    below.n = n;
    for (int i = n; i < mix->n && m->where; i++) {
        const ir_expr *step = mix->part[i].scale, *value = chain_value(m, &below);
        if (ir_prove_lt(m->f, step, reach) && !is_known(m, value, step) &&
            ir_prove_lt(m->where, value, step)) {
            ir_iter_fuse(m, &below, step)->trimmed = true;
            m->restart = true;
            return true;
        }
    }
    return false;
}

/* Puts the digits into ascending order of scale while it checks that each scale is the product of the extents
 * below: digits 1 of 4 values, 4 of 3, 12 of 8 make a number of 96 values, one value per combination. A scale
 * that is missing there means gaps or overlaps. `mix` is sorted in place; where the function fails it is
 * partly sorted, and callers drop it. */
bool ir_iter_chain(ir_iter_marks *m, const ir_expr *e, ir_mix *mix, const ir_expr **extent)
{
    const ir_expr *next = one(m);

    for (int i = 0; i < mix->n; i++) {
        int j = i;
        while (j < mix->n && !ir_iter_same(m, mix->part[j].scale, next))
            j++;
        if (j == mix->n && i == 0)
            return ir_iter_refuse(m, "'%s' leaves gaps, since none of its terms steps by 1", text(m, e));
        if (j == mix->n && trim_below(m, mix, i, next))
            return false;
        if (j == mix->n)
            return ir_iter_refuse(
                m,
                "'%s': '%s' steps by %s, but the digits below it take %s values: they overlap or leave gaps",
                text(m, e), text(m, mix->part[i].of->value), text(m, mix->part[i].scale), text(m, next));
        swap(mix->part + i, mix->part + j);
        next = ir_iter_mul(m, next, mix->part[i].extent);
    }
    *extent = next;
    return true;
}

/* A new mark of these digits; `extent` values, fewer than the digits could make where a predicate cuts it. */
ir_mark *ir_iter_fuse(ir_iter_marks *m, const ir_mix *chain, const ir_expr *extent)
{
    ir_mark *mark = base_new(m->f->cx, ir_mark);

    mark->inside = *chain;
    mark->extent = extent;
    mark->value = chain_value(m, chain);
    base_push(m->f->cx, &m->marks, mark);
    return mark;
}

/* ---- fused marks inside a mix ---- */

/* How many values a digit has that would have `extent` of them if the mark were long enough. */
static const ir_expr *digits_left(const ir_iter_marks *m, const ir_mark *mark, const ir_expr *lower,
                                  const ir_expr *extent)
{
    const ir_expr *left = ceil_quotient(m, mark->extent, lower);

    return ir_prove_le(m->f, left, extent) ? left : extent;
}

/* Two digits of one mark that belong together become one: x//8%3*8 + x%8 is x%24. Starts over after each
 * join, since a joined digit may fit a further one. Both digits must count in the same direction, and the
 * upper one must begin where the lower one ends, in the mark and in the number alike. */
static void join_digits(ir_iter_marks *m, ir_mix *mix)
{
    for (int i = 0; i < mix->n; i++)
        for (int j = 0; j < mix->n; j++) {
            ir_part *low = mix->part + i, *high = mix->part + j;
            if (i == j || low->of != high->of || low->reversed != high->reversed ||
                !ir_iter_same(m, ir_iter_mul(m, low->lower, low->extent), high->lower) ||
                !ir_iter_same(m, ir_iter_mul(m, low->scale, low->extent), high->scale))
                continue;
            low->extent = ir_iter_mul(m, low->extent, high->extent);
            if (!low->reversed) /* reversed, it counts down from what the two make */
                low->extent = digits_left(m, low->of, low->lower, low->extent);
            *high = mix->part[--mix->n];
            i = -1;
            break;
        }
}

/* The index of the part that holds `digit` of the same mark; *unit: the scale that the digit has in the mix.
 * -1: no part holds all of it.
 *
 *     digit: a//8 % 2, in the mix part a//4 % 8 with scale 1:  it skips 2 values of the part, whose 8 = 2*2*2
 *
 * so the part holds the digit, which has the scale 2 there. */
static int find_holder(const ir_iter_marks *m, const ir_mix *mix, const ir_part *digit, const ir_expr **unit)
{
    for (int i = 0; i < mix->n; i++) {
        const ir_part *p = mix->part + i;
        bool of_digit = p->of == digit->of && p->reversed == digit->reversed;
        const ir_expr *skip = of_digit ? ir_iter_quotient(m, digit->lower, p->lower) : NULL;
        if (!skip || !ir_iter_quotient(m, p->extent, ir_iter_mul(m, skip, digit->extent)))
            continue;
        *unit = ir_iter_mul(m, p->scale, skip);
        return i;
    }
    return -1;
}

/* Takes the digit out of its holder. The values of the holder below the digit and above it stay as up to two
 * parts. The part of the example splits into a//4 % 2 below and a//16 % 2 above. */
static bool take_out(ir_iter_marks *m, ir_mix *mix, int at, const ir_part *digit)
{
    ir_part p = mix->part[at];
    const ir_expr *skip = ir_iter_quotient(m, digit->lower, p.lower),
                  *through = ir_iter_mul(m, skip, digit->extent);
    ir_part low = p, high = p;
    low.extent = skip;
    high.lower = ir_iter_mul(m, p.lower, through);
    high.extent = ir_iter_quotient(m, p.extent, through);
    high.scale = ir_iter_mul(m, p.scale, through);

    mix->part[at] = mix->part[--mix->n];
    return add_part(m, mix, low) && add_part(m, mix, high);
}

/* Whether the mix contains the fused mark as a whole: all its digits at scales in the proportion of the mark.
 * Returns what one step of the mark adds to the mix, or NULL. */
static const ir_expr *whole_unit(const ir_iter_marks *m, const ir_mix *mix, const ir_mark *mark)
{
    const ir_expr *unit = NULL, *here;

    for (int i = 0; i < mark->inside.n; i++) {
        const ir_part *d = mark->inside.part + i;
        if (find_holder(m, mix, d, &here) < 0)
            return NULL;
        if (!unit)
            unit = ir_iter_quotient(m, here, d->scale);
        if (!unit || !ir_iter_same(m, here, ir_iter_mul(m, unit, d->scale)))
            return NULL;
    }
    return unit;
}

/* Replaces the digits of the mark by the mark itself, where the mix has all of them. */
static bool collapse_whole(ir_iter_marks *m, ir_mix *mix, ir_mark *mark)
{
    const ir_expr *unit = whole_unit(m, mix, mark), *here;

    if (!unit)
        return true;
    for (int j = 0; j < mark->inside.n; j++)
        if (!take_out(m, mix, find_holder(m, mix, mark->inside.part + j, &here), mark->inside.part + j))
            return false;
    return add_part(m, mix, part_of(mark, one(m), mark->extent, unit));
}

/* The part, where all of it lies in a digit of the mark, as one of the mark: b//3 is (a*6 + b)//3 % 2. */
static bool name_after(ir_iter_marks *m, ir_mark *mark, const ir_part *digit, ir_part *p)
{
    const ir_expr *skip = p->of == digit->of && p->reversed == digit->reversed
                              ? ir_iter_quotient(m, p->lower, digit->lower)
                              : NULL;

    if (!skip || !ir_iter_quotient(m, digit->extent, ir_iter_mul(m, skip, p->extent)))
        return false;
    p->of = mark;
    p->lower = ir_iter_mul(m, digit->scale, skip);
    p->reversed = false;
    return true;
}

/* A mark that a predicate cuts short (b < n out of 96 values) must be counted with the values that the
 * predicate leaves. So each digit that the mark was made of is written as a digit of the mark, whose highest
 * digit is the shorter one: with n = 20, b//8 takes 3 values and not 12. A digit that shrinks to one value is
 * left out. A mark of one value is noted (`single`), as no digit speaks for it. */
static bool collapse_trimmed(ir_iter_marks *m, ir_mix *mix, ir_mark *mark)
{
    const ir_expr *here;
    bool found = false;

    for (int j = 0; j < mark->inside.n; j++) {
        const ir_part *digit = mark->inside.part + j;
        for (int at = find_holder(m, mix, digit, &here); at >= 0; at = find_holder(m, mix, digit, &here)) {
            if (!take_out(m, mix, at, digit) ||
                !add_part(m, mix, part_of(mark, digit->scale, digit->extent, here)))
                return false;
        }
        for (int i = 0; i < mix->n; i++)
            name_after(m, mark, digit, mix->part + i);
    }
    for (int i = 0; i < mix->n; i++) {
        ir_part p = mix->part[i];
        if (p.of != mark)
            continue;
        found = true;
        p.extent = digits_left(m, mark, p.lower, p.extent);
        mix->part[i] = p;
        if (is_one(m, p.extent))
            mix->part[i--] = mix->part[--mix->n];
    }
    if (found && is_one(m, mark->extent))
        mark->single = true;
    join_digits(m, mix);
    return true;
}

/* With the first n marks where they fit. */
static bool collapse(ir_iter_marks *m, ir_mix *mix, int n)
{
    for (int i = m->n_loops; i < n; i++) {
        ir_mark *mark = m->marks.at[i];
        if (!(mark->trimmed ? collapse_trimmed : collapse_whole)(m, mix, mark))
            return false;
    }
    return true;
}

/* ---- cuts ---- */

/* Splits the chain at k: digits below k, and those above it with scales divided by k. A digit that k falls
 * into is split where its extent allows; false where k falls between no digits. The top digit need not be
 * divided evenly: its upper part then has ceil(extent / inside) values.
 *
 *     digits of 12 (scale 1) and 8 (scale 12), cut at 12:  below {12}, above {8 with scale 1}
 *     cut at 4:   12 = 4*3 splits: below {4}, above {3 with scale 1, 8 with scale 3}
 *     cut at 8:   8 and 12 do not divide each other: false
 */
static bool cut(ir_iter_marks *m, const ir_mix *chain, const ir_expr *k, ir_mix *below, ir_mix *above)
{
    *below = *above = (ir_mix){.base = ir_int(m->f->cx, 0)};
    for (int i = 0; i < chain->n; i++) {
        ir_part p = chain->part[i];
        const ir_expr *up = ir_iter_quotient(m, p.scale, k), *inside = ir_iter_quotient(m, k, p.scale);
        if (up) {
            p.scale = up;
            add_part(m, above, p);
            continue;
        }
        if (!inside)
            return false;
        if (ir_iter_quotient(m, inside, p.extent) || ir_prove_le(m->f, p.extent, inside)) {
            add_part(m, below, p);
            continue;
        }
        if (!ir_iter_quotient(m, p.extent, inside) && (i + 1 < chain->n || p.reversed))
            return false;
        ir_part low = p, high = part_of(p.of, ir_iter_mul(m, p.lower, inside),
                                        ceil_quotient(m, p.extent, inside), one(m));
        low.extent = inside;
        high.reversed = p.reversed;
        add_part(m, below, low);
        add_part(m, above, high);
    }
    return true;
}

static bool const_size(const ir_expr *e, int64_t *v)
{
    return ir_is_int(e, v) && *v > 0;
}

/* Where a cut at k is not clean, only the digits around it need to be fused. *from is the largest divisor of
 * k at which the chain can be cut, *to the smallest multiple of k at which it can, 0 where only the top of
 * the chain will do. Both need constant sizes: false otherwise.
 *
 *     digits of 12 and 8, k = 8:  the chain can be cut at 4, which divides 8, and at 24, a multiple of 8
 */
static bool clean_cuts(const ir_mix *chain, int64_t k, int64_t *from, int64_t *to)
{
    int64_t s, e, n;

    *from = 1;
    *to = 0;
    for (int i = 0; i < chain->n; i++) {
        if (!const_size(chain->part[i].scale, &s) || !const_size(chain->part[i].extent, &e))
            return false;
        if (k % s == 0 && s * ir_gcd(e, k / s) > *from)
            *from = s * ir_gcd(e, k / s);
        n = k / ir_gcd(k, s);
        if (*to == 0 && e % n == 0)
            *to = s * n;
    }
    return true;
}

/* The digits that the cut at d falls into; all digits of the chain where their sizes are symbols. */
static bool window_around(ir_iter_marks *m, const ir_mix *chain, const ir_expr *d, ir_mix *window)
{
    int64_t k, from, to;
    ir_mix below, rest;

    *window = *chain;
    if (!const_size(d, &k) || !clean_cuts(chain, k, &from, &to))
        return true;
    if (!cut(m, chain, ir_int(m->f->cx, from), &below, window))
        return false;
    if (to && cut(m, window, ir_int(m->f->cx, to / from), &below, &rest))
        *window = below;
    return true;
}

/* Fuses the digits that d cuts through into one mark and asks for another round of reading. False in every
 * case: the division itself is read in that next round. */
static bool fuse_around(ir_iter_marks *m, const ir_expr *e, const ir_mix *chain, const ir_expr *d)
{
    ir_mix window;
    const ir_expr *extent;

    if (!window_around(m, chain, d, &window) || window.n < 2 || !ir_iter_chain(m, e, &window, &extent))
        return ir_iter_refuse(m, "'%s' cuts through loops at %s, which is no boundary of them", text(m, e),
                              text(m, d));
    ir_iter_fuse(m, &window, extent);
    m->restart = true;
    return false;
}

static bool read_sum(ir_iter_marks *m, const ir_expr *e, ir_mix *out);

/* Finds a way to write e->arg[0] such that the divisor e->arg[1] cuts it. With as many of the fused marks as
 * possible at first, then with fewer: where only the upper or lower part of a mark is meant, its digits must
 * stay as they are. Where the divisor cuts no chain, the digits around the cut of the first chain are fused.
 * Reasons of attempts that fail are forgotten once one of them succeeds. */
static bool chain_to_cut(ir_iter_marks *m, const ir_expr *e, const ir_mix *plain, ir_mix *x, ir_mix *below,
                         ir_mix *above)
{
    const ir_expr *extent;
    const char *reason = m->reason;
    ir_mix first = {0};

    for (int n = m->marks.n; n >= m->n_loops; n--) {
        *x = *plain;
        if (!collapse(m, x, n))
            return false;
        if (!ir_iter_chain(m, e->arg[0], x, &extent)) {
            if (m->restart)
                return false;
            continue;
        }
        m->reason = reason;
        if (cut(m, x, e->arg[1], below, above))
            return true;
        first = first.n ? first : *x;
    }
    return first.n && fuse_around(m, e, &first, e->arg[1]);
}

/* The quotient takes the digits above the cut, the remainder those below. A constant part of the dividend
 * must be a multiple of the divisor; for the quotient it then stands beside the division: (x + 16)//8 is x//8
 * + 2. */
static bool read_division(ir_iter_marks *m, const ir_expr *e, ir_mix *out)
{
    ir_mix x, plain = {0}, below, above;
    const ir_expr *shift;

    for (int i = 0; i < m->n_loops; i++)
        if (ir_mentions(e->arg[1], ((ir_mark *)m->marks.at[i])->loop))
            return ir_iter_refuse(m, "'%s' divides by a loop variable", text(m, e));
    if (!read_sum(m, e->arg[0], &plain))
        return false;
    shift = ir_iter_quotient(m, plain.base, e->arg[1]);
    if (!shift)
        return ir_iter_refuse(m, "'%s' adds a constant that its divisor does not divide", text(m, e));
    if (!chain_to_cut(m, e, &plain, &x, &below, &above))
        return false;
    *out = e->op == IR_FLOORDIV ? above : below;
    out->base = e->op == IR_FLOORDIV ? shift : ir_int(m->f->cx, 0);
    return true;
}

/* ---- sums ---- */

bool ir_iter_mentions_loop(const ir_iter_marks *m, const ir_expr *e)
{
    for (int i = 0; i < m->n_loops; i++)
        if (ir_mentions(e, ((ir_mark *)m->marks.at[i])->loop))
            return true;
    return false;
}

static ir_mark *mark_of(const ir_iter_marks *m, const ir_expr *var)
{
    for (int i = 0; i < m->n_loops; i++)
        if (((ir_mark *)m->marks.at[i])->loop == var)
            return m->marks.at[i];
    return NULL;
}

/* A loop, or a division of loops. Everything else cannot be inverted. */
static bool read_factor(ir_iter_marks *m, const ir_expr *e, ir_mix *out)
{
    ir_mark *mark = e->op == IR_VAR ? mark_of(m, e) : NULL;

    out->base = ir_int(m->f->cx, 0);
    if (mark)
        return add_part(m, out, part_of(mark, one(m), mark->extent, one(m)));
    if (e->op == IR_FLOORDIV || e->op == IR_FLOORMOD)
        return read_division(m, e, out);
    return ir_iter_refuse(m, "'%s' is not made of loops by sums, quotients and remainders", text(m, e));
}

/* Adds |by| * atom, where the atom mentions loops in one factor only: the other factors are sizes and scale
 * the digits of that factor. Values that no loop changes go to `base`. An example: n*((a*12 + b)//4) has the
 * factor n, a size, and one factor with loops. */
static bool read_term(ir_iter_marks *m, ir_term t, ir_mix *out, ir_sum *base)
{
    const ir_expr *factor[IR_MAX_FACTORS], *scale = ir_int(m->f->cx, t.by < 0 ? -t.by : t.by), *moving = NULL;
    ir_mix digits = {0};
    int n = ir_factors(t.atom, factor);

    for (int i = 0; i < n; i++) {
        if (!ir_iter_mentions_loop(m, factor[i]))
            scale = ir_iter_mul(m, scale, factor[i]);
        else if (moving)
            return ir_iter_refuse(m, "'%s' multiplies loops", text(m, t.atom));
        else
            moving = factor[i];
    }
    if (!ir_prove_le(m->f, one(m), scale))
        return ir_iter_refuse(m, "the factor of '%s' is not proven to be positive", text(m, t.atom));
    if (!read_factor(m, moving, &digits))
        return false;
    ir_sum_read(m->f, base, ir_iter_mul(m, digits.base, scale), t.by < 0 ? -1 : 1);
    for (int i = 0; i < digits.n; i++) {
        digits.part[i].scale = ir_iter_mul(m, digits.part[i].scale, scale);
        if (!add_part(m, out, digits.part[i]))
            return false;
    }
    return true;
}

/* Adds the terms that are subtracted. -v over 0..extent-1 is the reversed digit extent - 1 - v minus the
 * constant extent - 1, which goes to `base`.
 *
 *     7 - i over i in 0..8:  -i is the reversed digit (7 - i) minus 7, and 7 - 7 leaves the base 0
 */
static bool add_reversed(ir_iter_marks *m, ir_mix *down, ir_mix *out, ir_sum *base)
{
    tec_context *cx = m->f->cx;

    join_digits(m, down);
    if (!collapse(m, down, m->marks.n))
        return false;
    for (int i = 0; i < down->n; i++) {
        ir_part p = down->part[i];
        p.reversed = !p.reversed;
        ir_sum_read(m->f, base, ir_mul(cx, p.scale, ir_sub(cx, p.extent, one(m))), -1);
        if (!add_part(m, out, p))
            return false;
    }
    return true;
}

/* The entry for any expression: its linear form term by term, positive ones first into `out` and negative
 * ones into `down`, then neighbouring digits joined. */
static bool read_sum(ir_iter_marks *m, const ir_expr *e, ir_mix *out)
{
    ir_sum a = {0}, base = {0};
    ir_mix down = {0};

    e = ir_simplify(m->f, e);
    if (!e || !ir_is_index(e))
        return ir_iter_refuse(m, "a binding is not an index");
    ir_sum_read(m->f, &a, e, 1);
    ir_sum_add_constant(&base, a.constant);
    for (int i = 0; i < a.n; i++) {
        ir_term t = ir_sum_terms(&a)[i];
        if (!ir_iter_mentions_loop(m, t.atom))
            ir_sum_add_term(m->f, &base, t.atom, t.by);
        else if (!read_term(m, t, t.by < 0 ? &down : out, &base))
            return false;
    }
    if (!add_reversed(m, &down, out, &base))
        return false;
    out->base = ir_sum_expr(m->f, &base, NULL);
    join_digits(m, out);
    return true;
}

bool ir_iter_read(ir_iter_marks *m, const ir_expr *e, ir_mix *out)
{
    return read_sum(m, e, out) && collapse(m, out, m->marks.n);
}
