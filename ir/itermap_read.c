/* ir/itermap_read.c -- reads a binding as a sum of digits.
 *
 *     (ab0*12 + ab1)//4 % 8  over ab0 < 8, ab1 < 12:  ab1//4 + 3*ab0 is fused, and the digit is (fused // 1) % 8
 *
 * A division cuts a chain of digits. Where the cut falls inside a digit, the digit is split; where it fits no digit, the digits around it
 * become one fused mark, and reading starts again with that mark known, so that all bindings speak of the same digits. A loop that counts
 * down, n - 1 - i, is its digit reversed.
 */
#include <stdarg.h>

#include "ir/itermap.h"
#include "ir/text.h"

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

/* Digits of one value are left out. */
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

static const ir_expr *digit_value(const ir_iter_marks *m, const ir_part *p)
{
    const ir_expr *e = ir_floordiv(m->f->cx, p->of->value, p->lower);
    bool top = ir_iter_same(m, ir_iter_mul(m, p->lower, p->extent), p->of->extent);

    e = top ? e : ir_floormod(m->f->cx, e, p->extent);
    return p->reversed ? ir_sub(m->f->cx, ir_sub(m->f->cx, p->extent, one(m)), e) : e;
}

static const ir_expr *chain_value(const ir_iter_marks *m, const ir_mix *chain)
{
    const ir_expr *value = ir_int(m->f->cx, 0);

    for (int i = 0; i < chain->n; i++)
        value = ir_add(m->f->cx, value, ir_mul(m->f->cx, digit_value(m, chain->part + i), chain->part[i].scale));
    return ir_simplify(m->f, value);
}

static bool is_known(const ir_iter_marks *m, const ir_expr *value, const ir_expr *extent)
{
    for (int i = m->n_loops; i < m->marks.n; i++) {
        const ir_mark *mark = m->marks.at[i];
        if (ir_same(mark->value, value) && ir_iter_same(m, mark->extent, extent))
            return true;
    }
    return false;
}

/* The digits below take more values than the next one steps by, but the predicate lets them take just as many: they become a mark. One
 * that is known already was left aside here, and stays so. */
static bool trim_below(ir_iter_marks *m, const ir_mix *mix, int n, const ir_expr *reach)
{
    ir_mix below = *mix;

    below.n = n;
    for (int i = n; i < mix->n && m->where; i++) {
        const ir_expr *step = mix->part[i].scale, *value = chain_value(m, &below);
        if (ir_prove_lt(m->f, step, reach) && !is_known(m, value, step) && ir_prove_lt(m->where, value, step)) {
            ir_iter_fuse(m, &below, step)->trimmed = true;
            m->restart = true;
            return true;
        }
    }
    return false;
}

bool ir_iter_chain(ir_iter_marks *m, const ir_expr *e, ir_mix *mix, const ir_expr **extent)
{
    const ir_expr *next = one(m);

    for (int i = 0; i < mix->n; i++) {
        int j = i;
        while (j < mix->n && !ir_iter_same(m, mix->part[j].scale, next))
            j++;
        if (j == mix->n && i == 0)
            return ir_iter_refuse(m, "'%s': no loop steps by 1, so there are gaps", text(m, e));
        if (j == mix->n && trim_below(m, mix, i, next))
            return false;
        if (j == mix->n)
            return ir_iter_refuse(m, "'%s': '%s' steps by %s, but the digits below it take %s values: they overlap or leave gaps",
                                  text(m, e), text(m, mix->part[i].of->value), text(m, mix->part[i].scale), text(m, next));
        swap(mix->part + i, mix->part + j);
        next = ir_iter_mul(m, next, mix->part[i].extent);
    }
    *extent = next;
    return true;
}

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
static const ir_expr *digits_left(const ir_iter_marks *m, const ir_mark *mark, const ir_expr *lower, const ir_expr *extent)
{
    const ir_expr *left = ceil_quotient(m, mark->extent, lower);

    return ir_prove_le(m->f, left, extent) ? left : extent;
}

/* Two digits of one mark that belong together: x//8%3*8 + x%8. */
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

/* The part that holds a digit of the same mark; *unit: the scale that the digit has in the mix. */
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

/* Takes the digit out of its holder; what is below and above it stays. */
static bool take_out(ir_iter_marks *m, ir_mix *mix, int at, const ir_part *digit)
{
    ir_part p = mix->part[at];
    const ir_expr *skip = ir_iter_quotient(m, digit->lower, p.lower), *through = ir_iter_mul(m, skip, digit->extent);
    ir_part low = p, high = p;
    low.extent = skip;
    high.lower = ir_iter_mul(m, p.lower, through);
    high.extent = ir_iter_quotient(m, p.extent, through);
    high.scale = ir_iter_mul(m, p.scale, through);

    mix->part[at] = mix->part[--mix->n];
    return add_part(m, mix, low) && add_part(m, mix, high);
}

/* The scale of the whole mark in the mix, or NULL where it is not there whole. */
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
    const ir_expr *skip = p->of == digit->of && p->reversed == digit->reversed ? ir_iter_quotient(m, p->lower, digit->lower) : NULL;

    if (!skip || !ir_iter_quotient(m, digit->extent, ir_iter_mul(m, skip, p->extent)))
        return false;
    p->of = mark;
    p->lower = ir_iter_mul(m, digit->scale, skip);
    p->reversed = false;
    return true;
}

/* What a predicate cuts short as one is used as one: each digit that it was made of becomes a digit of it, so that a part of it, too,
 * has as many values as the predicate leaves. */
static bool collapse_trimmed(ir_iter_marks *m, ir_mix *mix, ir_mark *mark)
{
    const ir_expr *here;
    bool found = false;

    for (int j = 0; j < mark->inside.n; j++) {
        const ir_part *digit = mark->inside.part + j;
        for (int at = find_holder(m, mix, digit, &here); at >= 0; at = find_holder(m, mix, digit, &here)) {
            if (!take_out(m, mix, at, digit) || !add_part(m, mix, part_of(mark, digit->scale, digit->extent, here)))
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

/* Splits the chain at k: digits below k, and those above it with scales divided by k. False: k falls between no digits. */
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
        ir_part low = p, high = part_of(p.of, ir_iter_mul(m, p.lower, inside), ceil_quotient(m, p.extent, inside), one(m));
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

/* The largest clean cut that divides k, and the smallest clean one that k divides (0: none, up to the top). */
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

/* The digits that d cuts through; all of them where sizes are symbols. */
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

/* The digits around a cut become one mark. */
static bool fuse_around(ir_iter_marks *m, const ir_expr *e, const ir_mix *chain, const ir_expr *d)
{
    ir_mix window;
    const ir_expr *extent;

    if (!window_around(m, chain, d, &window) || window.n < 2 || !ir_iter_chain(m, e, &window, &extent))
        return ir_iter_refuse(m, "'%s' cuts through loops at %s, which is no boundary of them", text(m, e), text(m, d));
    ir_iter_fuse(m, &window, extent);
    m->restart = true;
    return false;
}

static bool read_sum(ir_iter_marks *m, const ir_expr *e, ir_mix *out);

/* A chain that d cuts, with as many fused marks as leave one; the digits as they are where only the upper or lower part of a mark is
 * meant. Where d cuts none: the first chain, and *n == 0. */
static bool chain_to_cut(ir_iter_marks *m, const ir_expr *e, const ir_mix *plain, ir_mix *x, ir_mix *below, ir_mix *above)
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

/* A shift by whole divisors stands beside the division. */
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
        return ir_iter_refuse(m, "'%s' shifts before it divides", text(m, e));
    if (!chain_to_cut(m, e, &plain, &x, &below, &above))
        return false;
    *out = e->op == IR_FLOORDIV ? above : below;
    out->base = e->op == IR_FLOORDIV ? shift : ir_int(m->f->cx, 0);
    return true;
}

/* ---- sums ---- */

static bool mentions_loop(const ir_iter_marks *m, const ir_expr *e)
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

/* |by| * atom, where the atom mentions loops in one factor. What is constant in by * atom goes to the base. */
static bool read_term(ir_iter_marks *m, ir_term t, ir_mix *out, ir_sum *base)
{
    const ir_expr *factor[IR_MAX_FACTORS], *scale = ir_int(m->f->cx, t.by < 0 ? -t.by : t.by), *moving = NULL;
    ir_mix digits = {0};
    int n = ir_factors(t.atom, factor);

    for (int i = 0; i < n; i++) {
        if (!mentions_loop(m, factor[i]))
            scale = ir_iter_mul(m, scale, factor[i]);
        else if (moving)
            return ir_iter_refuse(m, "'%s' multiplies loops", text(m, t.atom));
        else
            moving = factor[i];
    }
    if (!ir_prove_le(m->f, one(m), scale))
        return ir_iter_refuse(m, "it is not proven whether '%s' counts up or down", text(m, t.atom));
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

/* What is subtracted: -v is (extent - 1 - v) - (extent - 1). */
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
        if (!mentions_loop(m, t.atom))
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
