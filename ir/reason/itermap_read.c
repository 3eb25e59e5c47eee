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
bool ir_iter_refuse(ir_iter_marks *marks, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (!marks->reason)
        marks->reason = base_vformat(marks->f->cx, fmt, args);
    va_end(args);
    return false;
}

static const char *text(const ir_iter_marks *marks, const ir_expr *expr)
{
    return ir_expr_text(marks->f->cx, expr);
}

const ir_expr *ir_iter_mul(const ir_iter_marks *marks, const ir_expr *left, const ir_expr *right)
{
    if (left->op == IR_INT && right->op == IR_INT)
        return ir_mul(marks->f->cx, left, right);
    return ir_simplify(marks->f, ir_mul(marks->f->cx, left, right));
}

/* The exact quotient as an expression, or NULL where b does not divide a for all sizes. */
const ir_expr *ir_iter_quotient(const ir_iter_marks *marks, const ir_expr *a, const ir_expr *b)
{
    ir_sum x = {0}, y = {0}, q = {0};

    if (a->op == IR_INT && b->op == IR_INT)
        return b->i != 0 && a->i % b->i == 0 ? ir_int(marks->f->cx, a->i / b->i) : NULL;
    ir_sum_read(marks->f, &x, a, 1);
    ir_sum_read(marks->f, &y, b, 1);
    return ir_sum_exact_quotient(marks->f, &x, &y, &q) ? ir_sum_expr(marks->f, &q, NULL) : NULL;
}

bool ir_iter_same(const ir_iter_marks *marks, const ir_expr *left, const ir_expr *right)
{
    return left == right ||
           (left->op == IR_INT && right->op == IR_INT ? left->i == right->i
                                                      : ir_prove_equal(marks->f, left, right));
}

static bool is_one(const ir_iter_marks *marks, const ir_expr *expr)
{
    return expr->op == IR_INT ? expr->i == 1 : ir_iter_same(marks, expr, ir_int(marks->f->cx, 1));
}

static const ir_expr *one(const ir_iter_marks *marks)
{
    return ir_int(marks->f->cx, 1);
}

static const ir_expr *ceil_quotient(const ir_iter_marks *marks, const ir_expr *left, const ir_expr *right)
{
    const ir_expr *exact = ir_iter_quotient(marks, left, right);

    return exact ? exact : ir_simplify(marks->f, ir_ceildiv(marks->f->cx, left, right));
}

static ir_part part_of(ir_mark *of, const ir_expr *lower, const ir_expr *extent, const ir_expr *scale)
{
    return (ir_part){.of = of, .lower = lower, .extent = extent, .scale = scale};
}

/* Digits of one value are left out. A digit of one value adds nothing to a number, and would stand in the way
 * of joining its neighbours. */
static bool add_part(ir_iter_marks *marks, ir_mix *mix, ir_part part)
{
    if (is_one(marks, part.extent))
        return true;
    if (mix->n == IR_MAX_PARTS)
        return ir_iter_refuse(marks, "it combines more than %d loops or parts of loops", IR_MAX_PARTS);
    mix->part[mix->n++] = part;
    return true;
}

/* ---- chains ---- */

static void swap(ir_part *left, ir_part *right)
{
    ir_part t = *left;

    *left = *right;
    *right = t;
}

/* The digit as an expression of its mark. The top digit needs no remainder: nothing lies above it. */
static const ir_expr *digit_value(const ir_iter_marks *marks, const ir_part *part)
{
    const ir_expr *e = ir_floordiv(marks->f->cx, part->of->value, part->lower);
    bool top = ir_iter_same(marks, ir_iter_mul(marks, part->lower, part->extent), part->of->extent);

    e = top ? e : ir_floormod(marks->f->cx, e, part->extent);
    return part->reversed ? ir_sub(marks->f->cx, ir_sub(marks->f->cx, part->extent, one(marks)), e) : e;
}

/* The number that the digits make. */
static const ir_expr *chain_value(const ir_iter_marks *marks, const ir_mix *chain)
{
    const ir_expr *value = ir_int(marks->f->cx, 0);

    for (int i = 0; i < chain->n; i++)
        value = ir_add(marks->f->cx, value,
                       ir_mul(marks->f->cx, digit_value(marks, chain->part + i), chain->part[i].scale));
    return ir_simplify(marks->f, value);
}

/* A mark that a predicate made in an earlier round and that was left aside must not be made again: reading
 * would start over for ever. */
static bool is_known(const ir_iter_marks *marks, const ir_expr *value, const ir_expr *extent)
{
    for (int i = marks->n_loops; i < marks->marks.n; i++) {
        const ir_mark *mark = marks->marks.at[i];
        if (ir_same(mark->value, value) && ir_iter_same(marks, mark->extent, extent))
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
static bool trim_below(ir_iter_marks *marks, const ir_mix *mix, int count, const ir_expr *reach)
{
    ir_mix below = *mix;

    below.n = count;
    for (int i = count; i < mix->n && marks->where; i++) {
        const ir_expr *step = mix->part[i].scale, *value = chain_value(marks, &below);
        if (ir_prove_lt(marks->f, step, reach) && !is_known(marks, value, step) &&
            ir_prove_lt(marks->where, value, step)) {
            ir_iter_fuse(marks, &below, step)->trimmed = true;
            marks->restart = true;
            return true;
        }
    }
    return false;
}

/* Puts the digits into ascending order of scale while it checks that each scale is the product of the extents
 * below: digits 1 of 4 values, 4 of 3, 12 of 8 make a number of 96 values, one value per combination. A scale
 * that is missing there means gaps or overlaps. `mix` is sorted in place; where the function fails it is
 * partly sorted, and callers drop it. */
bool ir_iter_chain(ir_iter_marks *marks, const ir_expr *expr, ir_mix *mix, const ir_expr **extent)
{
    const ir_expr *next = one(marks);

    for (int i = 0; i < mix->n; i++) {
        int j = i;
        while (j < mix->n && !ir_iter_same(marks, mix->part[j].scale, next))
            j++;
        if (j == mix->n && i == 0)
            return ir_iter_refuse(marks, "'%s' leaves gaps, since none of its terms steps by 1",
                                  text(marks, expr));
        if (j == mix->n && trim_below(marks, mix, i, next))
            return false;
        if (j == mix->n)
            return ir_iter_refuse(
                marks,
                "'%s': '%s' steps by %s, but the digits below it take %s values: they overlap or leave gaps",
                text(marks, expr), text(marks, mix->part[i].of->value), text(marks, mix->part[i].scale),
                text(marks, next));
        swap(mix->part + i, mix->part + j);
        next = ir_iter_mul(marks, next, mix->part[i].extent);
    }
    *extent = next;
    return true;
}

/* A new mark of these digits; `extent` values, fewer than the digits could make where a predicate cuts it. */
ir_mark *ir_iter_fuse(ir_iter_marks *marks, const ir_mix *chain, const ir_expr *extent)
{
    ir_mark *mark = base_new(marks->f->cx, ir_mark);

    mark->inside = *chain;
    mark->extent = extent;
    mark->value = chain_value(marks, chain);
    base_push(marks->f->cx, &marks->marks, mark);
    return mark;
}

/* ---- fused marks inside a mix ---- */

/* How many values a digit has that would have `extent` of them if the mark were long enough. */
static const ir_expr *digits_left(const ir_iter_marks *marks, const ir_mark *mark, const ir_expr *lower,
                                  const ir_expr *extent)
{
    const ir_expr *left = ceil_quotient(marks, mark->extent, lower);

    return ir_prove_le(marks->f, left, extent) ? left : extent;
}

/* Two digits of one mark that belong together become one: x//8%3*8 + x%8 is x%24. Starts over after each
 * join, since a joined digit may fit a further one. Both digits must count in the same direction, and the
 * upper one must begin where the lower one ends, in the mark and in the number alike. */
static void join_digits(ir_iter_marks *marks, ir_mix *mix)
{
    for (int i = 0; i < mix->n; i++)
        for (int j = 0; j < mix->n; j++) {
            ir_part *low = mix->part + i, *high = mix->part + j;
            if (i == j || low->of != high->of || low->reversed != high->reversed ||
                !ir_iter_same(marks, ir_iter_mul(marks, low->lower, low->extent), high->lower) ||
                !ir_iter_same(marks, ir_iter_mul(marks, low->scale, low->extent), high->scale))
                continue;
            low->extent = ir_iter_mul(marks, low->extent, high->extent);
            if (!low->reversed) /* reversed, it counts down from what the two make */
                low->extent = digits_left(marks, low->of, low->lower, low->extent);
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
static int find_holder(const ir_iter_marks *marks, const ir_mix *mix, const ir_part *digit,
                       const ir_expr **unit)
{
    for (int i = 0; i < mix->n; i++) {
        const ir_part *part = mix->part + i;
        bool of_digit = part->of == digit->of && part->reversed == digit->reversed;
        const ir_expr *skip = of_digit ? ir_iter_quotient(marks, digit->lower, part->lower) : NULL;
        if (!skip || !ir_iter_quotient(marks, part->extent, ir_iter_mul(marks, skip, digit->extent)))
            continue;
        *unit = ir_iter_mul(marks, part->scale, skip);
        return i;
    }
    return -1;
}

/* Takes the digit out of its holder. The values of the holder below the digit and above it stay as up to two
 * parts. The part of the example splits into a//4 % 2 below and a//16 % 2 above. */
static bool take_out(ir_iter_marks *marks, ir_mix *mix, int at, const ir_part *digit)
{
    ir_part p = mix->part[at];
    const ir_expr *skip = ir_iter_quotient(marks, digit->lower, p.lower),
                  *through = ir_iter_mul(marks, skip, digit->extent);
    ir_part low = p, high = p;
    low.extent = skip;
    high.lower = ir_iter_mul(marks, p.lower, through);
    high.extent = ir_iter_quotient(marks, p.extent, through);
    high.scale = ir_iter_mul(marks, p.scale, through);

    mix->part[at] = mix->part[--mix->n];
    return add_part(marks, mix, low) && add_part(marks, mix, high);
}

/* Whether the mix contains the fused mark as a whole: all its digits at scales in the proportion of the mark.
 * Returns what one step of the mark adds to the mix, or NULL. */
static const ir_expr *whole_unit(const ir_iter_marks *marks, const ir_mix *mix, const ir_mark *mark)
{
    const ir_expr *unit = NULL, *here;

    for (int i = 0; i < mark->inside.n; i++) {
        const ir_part *d = mark->inside.part + i;
        if (find_holder(marks, mix, d, &here) < 0)
            return NULL;
        if (!unit)
            unit = ir_iter_quotient(marks, here, d->scale);
        if (!unit || !ir_iter_same(marks, here, ir_iter_mul(marks, unit, d->scale)))
            return NULL;
    }
    return unit;
}

/* The part, where all of it lies in a digit of the mark, as one of the mark: b//3 is (a*6 + b)//3 % 2. */
static bool name_after(ir_iter_marks *marks, ir_mark *mark, const ir_part *digit, ir_part *part)
{
    const ir_expr *skip = part->of == digit->of && part->reversed == digit->reversed
                              ? ir_iter_quotient(marks, part->lower, digit->lower)
                              : NULL;

    if (!skip || !ir_iter_quotient(marks, digit->extent, ir_iter_mul(marks, skip, part->extent)))
        return false;
    part->of = mark;
    part->lower = ir_iter_mul(marks, digit->scale, skip);
    part->reversed = false;
    return true;
}

/* Replaces the digits of the mark by the mark itself, where the mix has all of them. What is left of its
 * loops is named after it: f0//392 is (f0*16 + f1)//6272. */
static bool collapse_whole(ir_iter_marks *marks, ir_mix *mix, ir_mark *mark)
{
    const ir_expr *unit = whole_unit(marks, mix, mark), *here;

    for (int j = 0; unit && j < mark->inside.n; j++)
        if (!take_out(marks, mix, find_holder(marks, mix, mark->inside.part + j, &here),
                      mark->inside.part + j))
            return false;
    if (unit && !add_part(marks, mix, part_of(mark, one(marks), mark->extent, unit)))
        return false;
    for (int j = 0; j < mark->inside.n; j++)
        for (int i = 0; i < mix->n; i++)
            name_after(marks, mark, mark->inside.part + j, mix->part + i);
    return true;
}

/* A mark that a predicate cuts short (b < n out of 96 values) must be counted with the values that the
 * predicate leaves. So each digit that the mark was made of is written as a digit of the mark, whose highest
 * digit is the shorter one: with n = 20, b//8 takes 3 values and not 12. A digit that shrinks to one value is
 * left out. A mark of one value is noted (`single`), as no digit speaks for it. */
static bool collapse_trimmed(ir_iter_marks *marks, ir_mix *mix, ir_mark *mark)
{
    const ir_expr *here;
    bool found = false;

    for (int j = 0; j < mark->inside.n; j++) {
        const ir_part *digit = mark->inside.part + j;
        for (int at = find_holder(marks, mix, digit, &here); at >= 0;
             at = find_holder(marks, mix, digit, &here)) {
            if (!take_out(marks, mix, at, digit) ||
                !add_part(marks, mix, part_of(mark, digit->scale, digit->extent, here)))
                return false;
        }
        for (int i = 0; i < mix->n; i++)
            name_after(marks, mark, digit, mix->part + i);
    }
    for (int i = 0; i < mix->n; i++) {
        ir_part p = mix->part[i];
        if (p.of != mark)
            continue;
        found = true;
        p.extent = digits_left(marks, mark, p.lower, p.extent);
        mix->part[i] = p;
        if (is_one(marks, p.extent))
            mix->part[i--] = mix->part[--mix->n];
    }
    if (found && is_one(marks, mark->extent))
        mark->single = true;
    join_digits(marks, mix);
    return true;
}

/* With the first n marks where they fit. */
static bool collapse(ir_iter_marks *marks, ir_mix *mix, int n)
{
    for (int i = marks->n_loops; i < n; i++) {
        ir_mark *mark = marks->marks.at[i];
        if (!(mark->trimmed ? collapse_trimmed : collapse_whole)(marks, mix, mark))
            return false;
    }
    return true;
}

/* ---- cuts ---- */

/* Splits the chain at divisor: digits below divisor, and those above it with scales divided by divisor. A
 * digit that divisor falls into is split where its extent allows; false where divisor falls between no
 * digits. The top digit need not be divided evenly: its upper part then has ceil(extent / inside) values.
 *
 *     digits of 12 (scale 1) and 8 (scale 12), cut at 12:  below {12}, above {8 with scale 1}
 *     cut at 4:   12 = 4*3 splits: below {4}, above {3 with scale 1, 8 with scale 3}
 *     cut at 8:   8 and 12 do not divide each other: false
 */
static bool cut(ir_iter_marks *marks, const ir_mix *chain, const ir_expr *divisor, ir_mix *below,
                ir_mix *above)
{
    *below = *above = (ir_mix){.base = ir_int(marks->f->cx, 0)};
    for (int i = 0; i < chain->n; i++) {
        ir_part p = chain->part[i];
        const ir_expr *up = ir_iter_quotient(marks, p.scale, divisor),
                      *inside = ir_iter_quotient(marks, divisor, p.scale);
        if (up) {
            p.scale = up;
            add_part(marks, above, p);
            continue;
        }
        if (!inside)
            return false;
        if (ir_iter_quotient(marks, inside, p.extent) || ir_prove_le(marks->f, p.extent, inside)) {
            add_part(marks, below, p);
            continue;
        }
        if (!ir_iter_quotient(marks, p.extent, inside) && (i + 1 < chain->n || p.reversed))
            return false;
        ir_part low = p, high = part_of(p.of, ir_iter_mul(marks, p.lower, inside),
                                        ceil_quotient(marks, p.extent, inside), one(marks));
        low.extent = inside;
        high.reversed = p.reversed;
        add_part(marks, below, low);
        add_part(marks, above, high);
    }
    return true;
}

static bool const_size(const ir_expr *expr, int64_t *v)
{
    return ir_is_int(expr, v) && *v > 0;
}

/* Where a cut at divisor is not clean, only the digits around it need to be fused. *from is the largest
 * divisor of divisor at which the chain can be cut, *to the smallest multiple of divisor at which it can, 0
 * where only the top of the chain will do. Both need constant sizes: false otherwise.
 *
 *     digits of 12 and 8, k = 8:  the chain can be cut at 4, which divides 8, and at 24, a multiple of 8
 */
static bool clean_cuts(const ir_mix *chain, int64_t divisor, int64_t *from, int64_t *to)
{
    int64_t s, e, n;

    *from = 1;
    *to = 0;
    for (int i = 0; i < chain->n; i++) {
        if (!const_size(chain->part[i].scale, &s) || !const_size(chain->part[i].extent, &e))
            return false;
        if (divisor % s == 0 && s * ir_gcd(e, divisor / s) > *from)
            *from = s * ir_gcd(e, divisor / s);
        n = divisor / ir_gcd(divisor, s);
        if (*to == 0 && e % n == 0)
            *to = s * n;
    }
    return true;
}

/* The digits that the cut at divisor falls into; all digits of the chain where their sizes are symbols. */
static bool window_around(ir_iter_marks *marks, const ir_mix *chain, const ir_expr *divisor, ir_mix *window)
{
    int64_t k, from, to;
    ir_mix below, rest;

    *window = *chain;
    if (!const_size(divisor, &k) || !clean_cuts(chain, k, &from, &to))
        return true;
    if (!cut(marks, chain, ir_int(marks->f->cx, from), &below, window))
        return false;
    if (to && cut(marks, window, ir_int(marks->f->cx, to / from), &below, &rest))
        *window = below;
    return true;
}

/* Fuses the digits that divisor cuts through into one mark and asks for another round of reading. False in
 * every case: the division itself is read in that next round. */
static bool fuse_around(ir_iter_marks *marks, const ir_expr *expr, const ir_mix *chain,
                        const ir_expr *divisor)
{
    ir_mix window;
    const ir_expr *extent;

    if (!window_around(marks, chain, divisor, &window) || window.n < 2 ||
        !ir_iter_chain(marks, expr, &window, &extent))
        return ir_iter_refuse(marks, "'%s' cuts through loops at %s, which is not a boundary between loops",
                              text(marks, expr), text(marks, divisor));
    ir_iter_fuse(marks, &window, extent);
    marks->restart = true;
    return false;
}

static bool read_sum(ir_iter_marks *marks, const ir_expr *expr, ir_mix *out);

/* Finds a way to write expr->arg[0] such that the divisor expr->arg[1] cuts it. With as many of the fused
 * marks as possible at first, then with fewer: where only the upper or lower part of a mark is meant, its
 * digits must stay as they are. Where the divisor cuts no chain, the digits around the cut of the first chain
 * are fused. Reasons of attempts that fail are forgotten once one of them succeeds. */
static bool chain_to_cut(ir_iter_marks *marks, const ir_expr *expr, const ir_mix *plain, ir_mix *mix,
                         ir_mix *below, ir_mix *above)
{
    const ir_expr *extent;
    const char *reason = marks->reason;
    ir_mix first = {0};

    for (int n = marks->marks.n; n >= marks->n_loops; n--) {
        *mix = *plain;
        if (!collapse(marks, mix, n))
            return false;
        if (!ir_iter_chain(marks, expr->arg[0], mix, &extent)) {
            if (marks->restart)
                return false;
            continue;
        }
        marks->reason = reason;
        if (cut(marks, mix, expr->arg[1], below, above))
            return true;
        first = first.n ? first : *mix;
    }
    return first.n && fuse_around(marks, expr, &first, expr->arg[1]);
}

/* The quotient takes the digits above the cut, the remainder those below. A constant part of the dividend
 * must be a multiple of the divisor; for the quotient it then stands beside the division: (x + 16)//8 is x//8
 * + 2. */
static bool read_division(ir_iter_marks *marks, const ir_expr *expr, ir_mix *out)
{
    ir_mix x, plain = {0}, below, above;
    const ir_expr *shift;

    for (int i = 0; i < marks->n_loops; i++)
        if (ir_mentions(expr->arg[1], ((ir_mark *)marks->marks.at[i])->loop))
            return ir_iter_refuse(marks, "'%s' divides by a loop variable", text(marks, expr));
    if (!read_sum(marks, expr->arg[0], &plain))
        return false;
    shift = ir_iter_quotient(marks, plain.base, expr->arg[1]);
    if (!shift)
        return ir_iter_refuse(marks, "'%s' adds a constant that its divisor does not divide",
                              text(marks, expr));
    if (!chain_to_cut(marks, expr, &plain, &x, &below, &above))
        return false;
    *out = expr->op == IR_FLOORDIV ? above : below;
    out->base = expr->op == IR_FLOORDIV ? shift : ir_int(marks->f->cx, 0);
    return true;
}

/* ---- sums ---- */

bool ir_iter_mentions_loop(const ir_iter_marks *marks, const ir_expr *expr)
{
    for (int i = 0; i < marks->n_loops; i++)
        if (ir_mentions(expr, ((ir_mark *)marks->marks.at[i])->loop))
            return true;
    return false;
}

static ir_mark *mark_of(const ir_iter_marks *marks, const ir_expr *var)
{
    for (int i = 0; i < marks->n_loops; i++)
        if (((ir_mark *)marks->marks.at[i])->loop == var)
            return marks->marks.at[i];
    return NULL;
}

/* A loop, or a division of loops. Everything else cannot be inverted. */
static bool read_factor(ir_iter_marks *marks, const ir_expr *expr, ir_mix *out)
{
    ir_mark *mark = expr->op == IR_VAR ? mark_of(marks, expr) : NULL;

    out->base = ir_int(marks->f->cx, 0);
    if (mark)
        return add_part(marks, out, part_of(mark, one(marks), mark->extent, one(marks)));
    if (expr->op == IR_FLOORDIV || expr->op == IR_FLOORMOD)
        return read_division(marks, expr, out);
    return ir_iter_refuse(marks, "'%s' is not made of loops by sums, quotients and remainders",
                          text(marks, expr));
}

/* Adds |by| * atom, where the atom mentions loops in one factor only: the other factors are sizes and scale
 * the digits of that factor. Values that no loop changes go to `base`. An example: n*((a*12 + b)//4) has the
 * factor n, a size, and one factor with loops. */
static bool read_term(ir_iter_marks *marks, ir_term term, ir_mix *out, ir_sum *base)
{
    const ir_expr *factor[IR_MAX_FACTORS], *scale = ir_int(marks->f->cx, term.by < 0 ? -term.by : term.by),
                                           *moving = NULL;
    ir_mix digits = {0};
    int n = ir_factors(term.atom, factor);

    for (int i = 0; i < n; i++) {
        if (!ir_iter_mentions_loop(marks, factor[i]))
            scale = ir_iter_mul(marks, scale, factor[i]);
        else if (moving)
            return ir_iter_refuse(marks, "'%s' multiplies loops", text(marks, term.atom));
        else
            moving = factor[i];
    }
    if (!ir_prove_le(marks->f, one(marks), scale))
        return ir_iter_refuse(marks, "the factor of '%s' is not proven to be positive",
                              text(marks, term.atom));
    if (!read_factor(marks, moving, &digits))
        return false;
    ir_sum_read(marks->f, base, ir_iter_mul(marks, digits.base, scale), term.by < 0 ? -1 : 1);
    for (int i = 0; i < digits.n; i++) {
        digits.part[i].scale = ir_iter_mul(marks, digits.part[i].scale, scale);
        if (!add_part(marks, out, digits.part[i]))
            return false;
    }
    return true;
}

/* Adds the terms that are subtracted. -v over 0..extent-1 is the reversed digit extent - 1 - v minus the
 * constant extent - 1, which goes to `base`.
 *
 *     7 - i over i in 0..8:  -i is the reversed digit (7 - i) minus 7, and 7 - 7 leaves the base 0
 */
static bool add_reversed(ir_iter_marks *marks, ir_mix *down, ir_mix *out, ir_sum *base)
{
    tec_context *cx = marks->f->cx;

    join_digits(marks, down);
    if (!collapse(marks, down, marks->marks.n))
        return false;
    for (int i = 0; i < down->n; i++) {
        ir_part p = down->part[i];
        p.reversed = !p.reversed;
        ir_sum_read(marks->f, base, ir_mul(cx, p.scale, ir_sub(cx, p.extent, one(marks))), -1);
        if (!add_part(marks, out, p))
            return false;
    }
    return true;
}

/* The entry for any expression: its linear form term by term, positive ones first into `out` and negative
 * ones into `down`, then neighbouring digits joined.
 *
 *     i*8 + 7 - j, j in 0..8:  i with factor 8 goes to `out`, j to `down`; reversed it is the digit 7 - j
 */
static bool read_sum(ir_iter_marks *marks, const ir_expr *expr, ir_mix *out)
{
    ir_sum a = {0}, base = {0};
    ir_mix down = {0};

    expr = ir_simplify(marks->f, expr);
    if (!expr || !ir_is_index(expr))
        return ir_iter_refuse(marks, "a binding is not an index");
    ir_sum_read(marks->f, &a, expr, 1);
    ir_sum_add_constant(&base, a.constant);
    for (int i = 0; i < a.n; i++) {
        ir_term t = ir_sum_terms(&a)[i];
        if (!ir_iter_mentions_loop(marks, t.atom))
            ir_sum_add_term(marks->f, &base, t.atom, t.by);
        else if (!read_term(marks, t, t.by < 0 ? &down : out, &base))
            return false;
    }
    if (!add_reversed(marks, &down, out, &base))
        return false;
    out->base = ir_sum_expr(marks->f, &base, NULL);
    join_digits(marks, out);
    return true;
}

bool ir_iter_read(ir_iter_marks *marks, const ir_expr *expr, ir_mix *out)
{
    return read_sum(marks, expr, out) && collapse(marks, out, marks->marks.n);
}
