/* ir/reason/itermap.c -- whether quasi-affine bindings are a bijection from the loop points that satisfy a
 * predicate onto a domain.
 *
 * A block says that it runs once for each point of its domain. A schedule that splits and fuses loops
 * rewrites the bindings of the block, and this file proves that the new loops still visit each point exactly
 * once:
 *
 *     for yo in 0..ceildiv(n, 12) {
 *       for yi in 0..12 {
 *         block "B" (y in 0..n = yo*12 + yi) where yo*12 + yi < n
 *
 *     assumed    0 <= yo < ceildiv(n, 12), 0 <= yi < 12, and the predicate
 *     read       y is the digit yi of 12 values with scale 1, and the digit yo with scale 12
 *     predicate  it cuts that number at n, so yo and yi become one mark of n values
 *     concluded  y takes the n values of the mark, its domain has n, and both loops are used up: a bijection
 *
 *     i = f//8, j = f%8   over f < 8*m:   onto 0..m x 0..8, since the two digits tile f exactly
 *     i = f//8, j = f%4   over f < 8*m:   not one-to-one: the digit f//4%2 is used by no binding
 *
 * Without the proof a schedule could drop a point (a wrong result) or run it twice (a wrong sum). The map is
 * a bijection when each binding is a mixed-radix number of as many values as its domain, and the digits that
 * are used tile each loop and each fused mark exactly. Predicates `sum < bound` are applied before the
 * bindings are read, the smallest first: they decide which loops are fused.
 */
#include "ir/reason/marks.h"
#include "ir/text.h"

static const char *text(const ir_iter_marks *m, const ir_expr *e)
{
    return ir_expr_text(m->f->cx, e);
}

/* The state of a proof: the n loops as the first marks, and what is known inside of all of them. The order of
 * the first marks is that of the loops, so that mark i is loop i. */
static ir_iter_marks *begin(const ir_facts *f, const ir_expr *const *loop, const ir_expr *const *extent,
                            int n)
{
    ir_iter_marks *m = base_new(f->cx, ir_iter_marks);
    ir_facts *inside = ir_facts_new(f->cx, f);

    m->f = inside;
    m->n_loops = n;
    for (int i = 0; i < n; i++) {
        ir_mark *mark = base_new(f->cx, ir_mark);
        mark->loop = mark->value = loop[i];
        mark->extent = ir_simplify(inside, extent[i]);
        ir_facts_range(inside, loop[i], ir_int(f->cx, 0), extent[i]);
        base_push(f->cx, &m->marks, mark);
    }
    return m;
}

/* ---- predicates ---- */

typedef struct {
    const ir_expr *condition, *sum, *bound; /* sum < bound */
    int depth, size;
} constraint;

/* How deep quotients and remainders are nested. A deeper predicate mentions loops that were split earlier, so
 * it is applied earlier. */
static int depth_of(const ir_expr *e)
{
    int depth = 0;

    if (!ir_is_op(e->op))
        return 0;
    for (int i = 0; i < ir_ops[e->op].arity; i++) {
        int d = depth_of(e->arg[i]);
        depth = d > depth ? d : depth;
    }
    return depth + (e->op == IR_FLOORDIV || e->op == IR_FLOORMOD);
}

static bool goes_after(const constraint *a, const constraint *b)
{
    return a->depth != b->depth ? a->depth > b->depth : a->size > b->size;
}

/* d >= 0 as sum < bound, the sum of all that loops change; its common factor divided away.
 *
 *     0 <= n - 1 - 4*a - 2*b     sum = 2*a + b, bound = (n - 1)//2 + 1, after dividing by the common factor 2
 */
static void write_constraint(ir_iter_marks *m, const ir_sum *d, constraint *c)
{
    const ir_term *t = ir_sum_terms(d);
    ir_sum sum = {0}, rest = {0};

    ir_sum_add_constant(&rest, d->constant);
    for (int i = 0; i < d->n; i++)
        if (ir_iter_mentions_loop(m, t[i].atom))
            ir_sum_add_term(m->f, &sum, t[i].atom, -t[i].by);
        else
            ir_sum_add_term(m->f, &rest, t[i].atom, t[i].by);
    int64_t g = ir_sum_content(&sum);
    const ir_expr *last = ir_sum_expr(m->f, &rest, NULL);
    if (g > 1) {
        ir_sum_divide(&sum, g);
        last = ir_floordiv(m->f->cx, last, ir_int(m->f->cx, g));
    }
    c->sum = ir_sum_expr(m->f, &sum, NULL);
    c->bound = ir_simplify(m->f, ir_add(m->f->cx, last, ir_int(m->f->cx, 1)));
    c->size = sum.n;
    c->depth = depth_of(c->sum);
}

/* Takes `where` apart into constraints, sorted into the order in which trim applies them. Conditions that
 * always hold say nothing and are left out. */
static bool list_constraints(ir_iter_marks *m, const ir_expr *where, base_vec *out)
{
    ir_sum d = {0};
    ir_op op;

    if (where->op == IR_AND)
        return list_constraints(m, where->arg[0], out) && list_constraints(m, where->arg[1], out);
    if (where->op == IR_LIKELY)
        return list_constraints(m, where->arg[0], out);
    if (ir_prove(m->f, where))
        return true;
    if (!ir_compare_sum(m->f, where, &d, &op) || op != IR_GE)
        return ir_iter_refuse(m, "the predicate '%s' is not of the form rebuilt < extent", text(m, where));
    constraint *c = base_new(m->f->cx, constraint);
    c->condition = where;
    write_constraint(m, &d, c);
    base_push(m->f->cx, out, c);
    for (int i = out->n - 1; i > 0 && goes_after(out->at[i - 1], c); i--) {
        out->at[i] = out->at[i - 1];
        out->at[i - 1] = c;
    }
    return true;
}

/* How often reading may start again with a mark more: one mark can ask for the next for ever. */
enum { MAX_ROUNDS = 32 };

/* Applies one predicate sum < bound. Where the sum never reaches the bound nothing changes; where the bound
 * may lie on either side of the greatest value the proof ends with a reason; otherwise the digits of the sum
 * become one mark of `bound` values.
 *
 *     yo*12 + yi < n:   the sum takes 12*ceildiv(n, 12) values, n of them pass: a mark of n values, trimmed
 */
static bool trim(ir_iter_marks *m, const constraint *c)
{
    ir_mix mix;
    const ir_expr *full;
    bool read = false;

    m->restart = true;
    for (int round = 0; round < MAX_ROUNDS && !read && m->restart; round++) {
        m->restart = false;
        mix = (ir_mix){0};
        read = ir_iter_read(m, c->sum, &mix) && ir_iter_chain(m, c->sum, &mix, &full);
    }
    if (!read || !ir_is_value(mix.base, 0))
        return ir_iter_refuse(m, "the predicate '%s' is not of the form rebuilt < extent",
                              text(m, c->condition));
    if (ir_prove_le(m->f, full, c->bound))
        return true;
    if (!ir_prove_le(m->f, c->bound, full))
        return ir_iter_refuse(m, "the predicate '%s' may or may not cut the %s values of '%s' short",
                              text(m, c->condition), text(m, full), text(m, c->sum));
    ir_iter_fuse(m, &mix, c->bound)->trimmed = true;
    return true;
}

/* Takes the predicate into account before any binding is read: it is known in m->where, and each of its
 * constraints may fuse loops into a mark. NULL: every point of the loops counts. */
static bool apply_where(ir_iter_marks *m, const ir_expr *where)
{
    base_vec constraints = {0};

    where = where ? ir_simplify(m->f, where) : NULL;
    if (!where || ir_is_true(where))
        return true;
    m->where = ir_facts_new(m->f->cx, m->f);
    ir_facts_assume(m->where, where);
    if (!list_constraints(m, where, &constraints))
        return false;
    for (int i = 0; i < constraints.n; i++)
        if (!trim(m, constraints.at[i]))
            return false;
    return true;
}

/* ---- use of each digit ---- */

/* What a fused mark is made of is used with it, down to the loops. */
static void use_mark(ir_iter_marks *m, ir_mark *mark)
{
    if (mark->used)
        return;
    mark->used = true;
    for (int i = 0; i < mark->inside.n; i++) {
        ir_part *p = mark->inside.part + i;
        base_push(m->f->cx, &p->of->uses, p);
        use_mark(m, p->of);
    }
}

static void use_part(ir_iter_marks *m, ir_part *p)
{
    base_push(m->f->cx, &p->of->uses, p);
    use_mark(m, p->of);
}

static const char *mark_text(const ir_iter_marks *m, const ir_mark *mark)
{
    return text(m, mark->value);
}

/* Whether the digits of the mark that the bindings use cover it from below without overlap: sorted by
 * `lower`, each begins where the one before ends. *complete: they also reach the extent exactly. False: some
 * values of the mark give the same point, so points repeat.
 *
 *     a mark of 96 values, digits in use: lower 1 extent 8, lower 8 extent 12     1 -> 8 -> 96: complete
 *     digits in use: lower 1 extent 8 alone                                       1 -> 8: values repeat
 *     digits in use: lower 1 extent 8, lower 4 extent 24                          overlap: refused
 */
static bool tile(ir_iter_marks *m, ir_mark *mark, bool *complete)
{
    const ir_expr *reached = ir_int(m->f->cx, 1);
    int n = mark->uses.n;

    for (int taken = 0; taken < n; taken++) {
        int j = taken;
        while (j < n && !ir_iter_same(m, ((ir_part *)mark->uses.at[j])->lower, reached))
            j++;
        if (j == n) {
            ir_iter_refuse(m, "'%s' is used twice, or in part only", mark_text(m, mark));
            return false;
        }
        ir_part *p = mark->uses.at[j];
        mark->uses.at[j] = mark->uses.at[taken];
        mark->uses.at[taken] = p;
        reached = ir_iter_mul(m, reached, p->extent);
    }
    *complete = ir_iter_same(m, reached, mark->extent);
    if (*complete)
        return true;
    if (n == 0)
        ir_iter_refuse(m, "no binding uses '%s', which takes %s values: points repeat", mark_text(m, mark),
                       text(m, mark->extent));
    else
        ir_iter_refuse(m, "the parts of '%s' in use tell %s values apart, but it takes %s",
                       mark_text(m, mark), text(m, reached), text(m, mark->extent));
    return ir_prove_le(m->f, mark->extent, reached);
}

/* Every loop must be tiled; a fused mark only where some binding uses it. A mark that a predicate cut short
 * and that no binding rebuilds makes the map inexact: the predicate removes points that the domain still has.
 */
static bool tile_all(ir_iter_marks *m, bool *exact)
{
    bool injective = true, complete;

    for (int i = 0; i < m->marks.n; i++) {
        ir_mark *mark = m->marks.at[i];
        bool loop = i < m->n_loops;
        if (!loop && !mark->used) {
            if (mark->trimmed) {
                *exact = ir_iter_refuse(m, "the predicate cuts '%s' short, which no binding rebuilds",
                                        mark_text(m, mark));
            }
            continue;
        }
        if (!tile(m, mark, &complete))
            injective = false;
        else if (!complete)
            *exact = false;
    }
    return injective;
}

/* A sum that is no mixed-radix number is still one-to-one where each scale is at least what the digits below
 * can reach: i*16 + j with j < 12 leaves gaps, but no two points meet. Sorts the digits by scale on the way.
 * Sorted by scale, each digit must step over all that the smaller ones reach: for i*16 + j with j < 12 the
 * reach is 12, and 16 is enough. */
static bool spaced(ir_iter_marks *m, ir_mix *mix)
{
    const ir_expr *reach = ir_int(m->f->cx, 1);

    for (int i = 0; i < mix->n; i++) {
        int least = i;
        for (int j = i + 1; j < mix->n; j++)
            if (ir_prove_le(m->f, mix->part[j].scale, mix->part[least].scale))
                least = j;
        ir_part t = mix->part[least];
        mix->part[least] = mix->part[i];
        mix->part[i] = t;
        if (!ir_prove_le(m->f, reach, t.scale))
            return false;
        reach = ir_simplify(
            m->f, ir_add(m->f->cx, reach,
                         ir_mul(m->f->cx, t.scale, ir_sub(m->f->cx, t.extent, ir_int(m->f->cx, 1)))));
    }
    return true;
}

/* ---- the whole map ---- */

/* A binding must run from 0 through as many values as its domain has, or it misses some. */
static bool check_domain(ir_iter_marks *m, const ir_expr *bind, const ir_mix *mix, const ir_expr *extent,
                         const ir_expr *dom)
{
    if (!ir_is_value(mix->base, 0))
        return ir_iter_refuse(m, "'%s' starts at %s and not at 0", text(m, bind), text(m, mix->base));
    if (!ir_iter_same(m, extent, dom))
        return ir_iter_refuse(m, "'%s' takes %s values, but its domain has %s", text(m, bind),
                              text(m, extent), text(m, dom));
    return true;
}

typedef struct {
    bool injective, exact;
} verdict;

/* Reads all bindings with the marks known so far; false where reading must start again or is impossible. */
static bool read_all(ir_iter_marks *m)
{
    const ir_expr *extent;

    for (int i = 0; i < m->n_bind; i++) {
        m->mix[i] = (ir_mix){0};
        if (!ir_iter_read(m, m->bind[i], &m->mix[i]))
            return false;
        if (!ir_iter_chain(m, m->bind[i], &m->mix[i], &extent) && m->restart)
            return false;
    }
    return true;
}

/* Each new fused mark may give digits that fit another binding, so reading starts again until nothing is
 * fused any more. An example: (a*12 + b)//8 makes a mark of a and b; a binding a that was read before as a
 * loop of its own must be read again, as a digit of the mark. */
static bool read_with_restarts(ir_iter_marks *m)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        m->restart = false;
        if (read_all(m))
            return true;
        if (!m->restart)
            return false;
    }
    return ir_iter_refuse(m, "the loops are fused and split in too many ways");
}

/* The verdict once all bindings are read: each must be a number of as many values as its domain, and the
 * digits must tile the marks. `exact` is what the caller still hopes for; it only becomes false here. The
 * order matters: the digits are collected over all bindings first, since two bindings may share a mark. */
static verdict judge(ir_iter_marks *m, const ir_expr *const *dom, bool exact)
{
    verdict v = {true, exact};

    for (int i = 0; i < m->n_bind; i++) {
        const ir_expr *extent;
        if (!ir_iter_chain(m, m->bind[i], &m->mix[i], &extent)) {
            v.exact = false;
            v.injective = v.injective && spaced(m, &m->mix[i]);
        } else if (!check_domain(m, m->bind[i], &m->mix[i], extent, dom[i])) {
            v.exact = false;
        }
        for (int j = 0; j < m->mix[i].n; j++)
            use_part(m, m->mix[i].part + j);
    }
    for (int i = m->n_loops; i < m->marks.n; i++)
        if (((ir_mark *)m->marks.at[i])->single)
            use_mark(m, m->marks.at[i]);
    v.injective = tile_all(m, &v.exact) && v.injective;
    return v;
}

/* A proof for these loops and bindings. */
static ir_iter_marks *start(const ir_facts *f, const ir_expr *const *loop, const ir_expr *const *extent,
                            int n_loops, const ir_expr *const *bind, int n_bind)
{
    ir_iter_marks *m = begin(f, loop, extent, n_loops);

    m->bind = bind;
    m->n_bind = n_bind;
    m->mix = base_array(f->cx, ir_mix, n_bind);
    return m;
}

/* A map that is not bijective may still be one-to-one: asked once more without the predicate, since leaving
 * points out cannot make two points meet. */
bool ir_iter_map_detect(const ir_facts *f, const ir_expr *const *loop, const ir_expr *const *extent,
                        int n_loops, const ir_expr *const *bind, const ir_expr *const *dom, int n_bind,
                        const ir_expr *where, ir_iter_map *out)
{
    ir_iter_marks *m = start(f, loop, extent, n_loops, bind, n_bind);
    verdict v = {false, false};

    *out = (ir_iter_map){0};
    bool understood = apply_where(m, where);
    if (understood && read_with_restarts(m))
        v = judge(m, dom, true);
    out->bijective = v.injective && v.exact;
    out->injective = v.injective;
    out->reason = out->bijective ? NULL : m->reason;
    /* With fewer conditions there are more points: what is one-to-one there is one-to-one here. */
    if (!v.injective && where) {
        m = start(f, loop, extent, n_loops, bind, n_bind);
        if (read_with_restarts(m))
            out->injective = judge(m, dom, false).injective;
    }
    out->marks = m;
    return out->bijective;
}

/* ---- inverse ---- */

/* The value of each digit of a mixed-radix number; the top one needs no remainder.
 *
 *     number 29 with digits of 12 (scale 1) and 8 (scale 12):  29//1%12 = 5, 29//12 = 2
 */
static void spread(const ir_facts *f, const ir_mix *mix, const ir_expr *number, ir_part *to)
{
    for (int i = 0; i < mix->n; i++) {
        const ir_expr *q = ir_floordiv(f->cx, number, mix->part[i].scale);
        q = i + 1 < mix->n ? ir_floormod(f->cx, q, mix->part[i].extent) : q;
        to[i].value = mix->part[i].reversed
                          ? ir_sub(f->cx, ir_sub(f->cx, mix->part[i].extent, ir_int(f->cx, 1)), q)
                          : q;
    }
}

/* From the bindings' values back to the loops: each binding is spread into its digits, then each mark, the
 * last made first, is put together from its digits and spread into those that it was fused from, down to the
 * loops. */
bool ir_iter_map_inverse(const ir_facts *f, const ir_iter_map *m, const ir_expr *const *point,
                         const ir_expr *const *loop, int n_loops, const ir_expr **out)
{
    ir_iter_marks *k = m->marks;

    if (!m->bijective || k->n_loops != n_loops)
        return false;
    for (int i = 0; i < k->n_bind; i++)
        spread(f, &k->mix[i], point[i], k->mix[i].part);
    for (int i = k->marks.n - 1; i >= 0; i--) {
        ir_mark *mark = k->marks.at[i];
        const ir_expr *value = ir_int(f->cx, 0);
        for (int j = 0; j < mark->uses.n; j++) {
            const ir_part *p = mark->uses.at[j];
            value = ir_add(f->cx, value, ir_mul(f->cx, p->value, p->lower));
        }
        if (i >= n_loops && mark->used)
            spread(f, &mark->inside, value, mark->inside.part);
        else if (i < n_loops && mark->loop != loop[i])
            return false;
        else if (i < n_loops)
            out[i] = ir_simplify(f, value);
        if (i < n_loops && !out[i])
            return false;
    }
    return true;
}
