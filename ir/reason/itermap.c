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

static const char *text(const ir_iter_marks *marks, const ir_expr *expr)
{
    return ir_expr_text(marks->f->cx, expr);
}

/* The state of a proof: the count loops as the first marks, and what is known inside of all of them. The
 * order of the first marks is that of the loops, so that mark i is loop i. Each loop starts as one mark of
 * its whole extent; reading the bindings splits marks into digits. */
static ir_iter_marks *begin(const ir_facts *facts, const ir_expr *const *loop, const ir_expr *const *extent,
                            int count)
{
    ir_iter_marks *marks = base_new(facts->cx, ir_iter_marks);
    ir_facts *inside = ir_facts_new(facts->cx, facts);

    marks->f = inside;
    marks->n_loops = count;
    for (int i = 0; i < count; i++) {
        ir_mark *mark = base_new(facts->cx, ir_mark);
        mark->loop = mark->value = loop[i];
        mark->extent = ir_simplify(inside, extent[i]);
        ir_facts_range(inside, loop[i], ir_int(facts->cx, 0), extent[i]);
        base_push(facts->cx, &marks->marks, mark);
    }
    return marks;
}

/* ---- predicates ---- */

typedef struct {
    const ir_expr *condition, *sum, *bound; /* sum < bound */
    int depth, size;
} constraint;

/* How deep quotients and remainders are nested. A deeper predicate mentions loops that were split earlier, so
 * it is applied earlier. */
static int depth_of(const ir_expr *expr)
{
    int depth = 0;

    if (!ir_is_op(expr->op))
        return 0;
    for (int i = 0; i < ir_ops[expr->op].arity; i++) {
        int d = depth_of(expr->arg[i]);
        depth = d > depth ? d : depth;
    }
    return depth + (expr->op == IR_FLOORDIV || expr->op == IR_FLOORMOD);
}

static bool goes_after(const constraint *left, const constraint *right)
{
    return left->depth != right->depth ? left->depth > right->depth : left->size > right->size;
}

/* diff >= 0 as sum < bound, the sum of all that loops change; its common factor divided away.
 *
 *     0 <= n - 1 - 4*a - 2*b     sum = 2*a + b, bound = (n - 1)//2 + 1, after dividing by the common factor 2
 */
static void write_constraint(ir_iter_marks *marks, const ir_sum *diff, constraint *self)
{
    const ir_term *term = ir_sum_terms(diff);
    ir_sum sum = {0}, rest = {0};

    ir_sum_add_constant(&rest, diff->constant);
    for (int i = 0; i < diff->n; i++)
        if (ir_iter_mentions_loop(marks, term[i].atom))
            ir_sum_add_term(marks->f, &sum, term[i].atom, -term[i].by);
        else
            ir_sum_add_term(marks->f, &rest, term[i].atom, term[i].by);
    int64_t g = ir_sum_content(&sum);
    const ir_expr *last = ir_sum_expr(marks->f, &rest, NULL);
    if (g > 1) {
        ir_sum_divide(&sum, g);
        last = ir_floordiv(marks->f->cx, last, ir_int(marks->f->cx, g));
    }
    self->sum = ir_sum_expr(marks->f, &sum, NULL);
    self->bound = ir_simplify(marks->f, ir_add(marks->f->cx, last, ir_int(marks->f->cx, 1)));
    self->size = sum.n;
    self->depth = depth_of(self->sum);
}

/* Takes `where` apart into constraints, sorted into the order in which trim applies them. Conditions that
 * always hold say nothing and are left out.
 *
 *     where i*4 + j < 10 && k < n, k in 0..n    the second always holds and is left out; the first is listed
 */
static bool list_constraints(ir_iter_marks *marks, const ir_expr *where, base_vec *out)
{
    ir_sum d = {0};
    ir_op op;

    if (where->op == IR_AND)
        return list_constraints(marks, where->arg[0], out) && list_constraints(marks, where->arg[1], out);
    if (where->op == IR_LIKELY)
        return list_constraints(marks, where->arg[0], out);
    if (ir_prove(marks->f, where))
        return true;
    if (!ir_compare_sum(marks->f, where, &d, &op) || op != IR_GE)
        return ir_iter_refuse(marks, "the predicate '%s' is not of the form rebuilt < extent",
                              text(marks, where));
    constraint *c = base_new(marks->f->cx, constraint);
    c->condition = where;
    write_constraint(marks, &d, c);
    base_push(marks->f->cx, out, c);
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
static bool trim(ir_iter_marks *marks, const constraint *self)
{
    ir_mix mix;
    const ir_expr *full;
    bool read = false;

    marks->restart = true;
    for (int round = 0; round < MAX_ROUNDS && !read && marks->restart; round++) {
        marks->restart = false;
        mix = (ir_mix){0};
        read = ir_iter_read(marks, self->sum, &mix) && ir_iter_chain(marks, self->sum, &mix, &full);
    }
    if (!read || !ir_is_value(mix.base, 0))
        return ir_iter_refuse(marks, "the predicate '%s' is not of the form rebuilt < extent",
                              text(marks, self->condition));
    if (ir_prove_le(marks->f, full, self->bound))
        return true;
    if (!ir_prove_le(marks->f, self->bound, full))
        return ir_iter_refuse(marks, "the predicate '%s' may or may not cut the %s values of '%s' short",
                              text(marks, self->condition), text(marks, full), text(marks, self->sum));
    ir_iter_fuse(marks, &mix, self->bound)->trimmed = true;
    return true;
}

/* Takes the predicate into account before any binding is read: it is known in marks->where, and each of its
 * constraints may fuse loops into a mark. NULL: every point of the loops counts. */
static bool apply_where(ir_iter_marks *marks, const ir_expr *where)
{
    base_vec constraints = {0};

    where = where ? ir_simplify(marks->f, where) : NULL;
    if (!where || ir_is_true(where))
        return true;
    marks->where = ir_facts_new(marks->f->cx, marks->f);
    ir_facts_assume(marks->where, where);
    if (!list_constraints(marks, where, &constraints))
        return false;
    for (int i = 0; i < constraints.n; i++)
        if (!trim(marks, constraints.at[i]))
            return false;
    return true;
}

/* ---- use of each digit ---- */

/* What a fused mark is made of is used with it, down to the loops. */
static void use_mark(ir_iter_marks *marks, ir_mark *mark)
{
    if (mark->used)
        return;
    mark->used = true;
    for (int i = 0; i < mark->inside.n; i++) {
        ir_part *part = mark->inside.part + i;
        base_push(marks->f->cx, &part->of->uses, part);
        use_mark(marks, part->of);
    }
}

static void use_part(ir_iter_marks *marks, ir_part *part)
{
    base_push(marks->f->cx, &part->of->uses, part);
    use_mark(marks, part->of);
}

static const char *mark_text(const ir_iter_marks *marks, const ir_mark *mark)
{
    return text(marks, mark->value);
}

/* Whether the digits of the mark that the bindings use cover it from below without overlap: sorted by
 * `lower`, each begins where the one before ends. *complete: they also reach the extent exactly. False: some
 * values of the mark give the same point, so points repeat.
 *
 *     a mark of 96 values, digits in use: lower 1 extent 8, lower 8 extent 12     1 -> 8 -> 96: complete
 *     digits in use: lower 1 extent 8 alone                                       1 -> 8: values repeat
 *     digits in use: lower 1 extent 8, lower 4 extent 24                          overlap: refused
 */
static bool tile(ir_iter_marks *marks, ir_mark *mark, bool *complete)
{
    const ir_expr *reached = ir_int(marks->f->cx, 1);
    int n = mark->uses.n;

    for (int taken = 0; taken < n; taken++) {
        int j = taken;
        while (j < n && !ir_iter_same(marks, ((ir_part *)mark->uses.at[j])->lower, reached))
            j++;
        if (j == n) {
            ir_iter_refuse(marks, "'%s' is used twice, or in part only", mark_text(marks, mark));
            return false;
        }
        ir_part *part = mark->uses.at[j];
        mark->uses.at[j] = mark->uses.at[taken];
        mark->uses.at[taken] = part;
        reached = ir_iter_mul(marks, reached, part->extent);
    }
    *complete = ir_iter_same(marks, reached, mark->extent);
    if (*complete)
        return true;
    if (n == 0)
        ir_iter_refuse(marks, "no binding uses '%s', which takes %s values: points repeat",
                       mark_text(marks, mark), text(marks, mark->extent));
    else
        ir_iter_refuse(marks, "the parts of '%s' in use tell %s values apart, but it takes %s",
                       mark_text(marks, mark), text(marks, reached), text(marks, mark->extent));
    return ir_prove_le(marks->f, mark->extent, reached);
}

/* Every loop must be tiled; a fused mark only where some binding uses it. A mark that a predicate cut short
 * and that no binding rebuilds makes the map inexact: the predicate removes points that the domain still has.
 */
static bool tile_all(ir_iter_marks *marks, bool *exact)
{
    bool injective = true, complete;

    for (int i = 0; i < marks->marks.n; i++) {
        ir_mark *mark = marks->marks.at[i];
        bool loop = i < marks->n_loops;
        if (!loop && !mark->used) {
            if (mark->trimmed) {
                *exact = ir_iter_refuse(marks, "the predicate cuts '%s' short, which no binding rebuilds",
                                        mark_text(marks, mark));
            }
            continue;
        }
        if (!tile(marks, mark, &complete))
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
static bool spaced(ir_iter_marks *marks, ir_mix *mix)
{
    const ir_expr *reach = ir_int(marks->f->cx, 1);

    for (int i = 0; i < mix->n; i++) {
        int least = i;
        for (int j = i + 1; j < mix->n; j++)
            if (ir_prove_le(marks->f, mix->part[j].scale, mix->part[least].scale))
                least = j;
        ir_part t = mix->part[least];
        mix->part[least] = mix->part[i];
        mix->part[i] = t;
        if (!ir_prove_le(marks->f, reach, t.scale))
            return false;
        reach = ir_simplify(
            marks->f,
            ir_add(marks->f->cx, reach,
                   ir_mul(marks->f->cx, t.scale, ir_sub(marks->f->cx, t.extent, ir_int(marks->f->cx, 1)))));
    }
    return true;
}

/* ---- the whole map ---- */

/* A binding must run from 0 through as many values as its domain has, or it misses some. */
static bool check_domain(ir_iter_marks *marks, const ir_expr *bind, const ir_mix *mix, const ir_expr *extent,
                         const ir_expr *dom)
{
    if (!ir_is_value(mix->base, 0))
        return ir_iter_refuse(marks, "'%s' starts at %s and not at 0", text(marks, bind),
                              text(marks, mix->base));
    if (!ir_iter_same(marks, extent, dom))
        return ir_iter_refuse(marks, "'%s' takes %s values, but its domain has %s", text(marks, bind),
                              text(marks, extent), text(marks, dom));
    return true;
}

typedef struct {
    bool injective, exact;
} verdict;

/* Reads all bindings with the marks known so far; false where reading must start again or is impossible. */
static bool read_all(ir_iter_marks *marks)
{
    const ir_expr *extent;

    for (int i = 0; i < marks->n_bind; i++) {
        marks->mix[i] = (ir_mix){0};
        if (!ir_iter_read(marks, marks->bind[i], &marks->mix[i]))
            return false;
        if (!ir_iter_chain(marks, marks->bind[i], &marks->mix[i], &extent) && marks->restart)
            return false;
    }
    return true;
}

/* Each new fused mark may give digits that fit another binding, so reading starts again until nothing is
 * fused any more. An example: (a*12 + b)//8 makes a mark of a and b; a binding a that was read before as a
 * loop of its own must be read again, as a digit of the mark. */
static bool read_with_restarts(ir_iter_marks *marks)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        marks->restart = false;
        if (read_all(marks))
            return true;
        if (!marks->restart)
            return false;
    }
    return ir_iter_refuse(marks, "the loops are fused and split in too many ways");
}

/* The verdict once all bindings are read: each must be a number of as many values as its domain, and the
 * digits must tile the marks. `exact` is what the caller still hopes for; it only becomes false here. The
 * order matters: the digits are collected over all bindings first, since two bindings may share a mark. */
static verdict judge(ir_iter_marks *marks, const ir_expr *const *dom, bool exact)
{
    verdict v = {true, exact};

    for (int i = 0; i < marks->n_bind; i++) {
        const ir_expr *extent;
        if (!ir_iter_chain(marks, marks->bind[i], &marks->mix[i], &extent)) {
            v.exact = false;
            v.injective = v.injective && spaced(marks, &marks->mix[i]);
        } else if (!check_domain(marks, marks->bind[i], &marks->mix[i], extent, dom[i])) {
            v.exact = false;
        }
        for (int j = 0; j < marks->mix[i].n; j++)
            use_part(marks, marks->mix[i].part + j);
    }
    for (int i = marks->n_loops; i < marks->marks.n; i++)
        if (((ir_mark *)marks->marks.at[i])->single)
            use_mark(marks, marks->marks.at[i]);
    v.injective = tile_all(marks, &v.exact) && v.injective;
    return v;
}

/* A proof for these loops and bindings. */
static ir_iter_marks *start(const ir_facts *facts, const ir_expr *const *loop, const ir_expr *const *extent,
                            int n_loops, const ir_expr *const *bind, int n_bind)
{
    ir_iter_marks *m = begin(facts, loop, extent, n_loops);

    m->bind = bind;
    m->n_bind = n_bind;
    m->mix = base_array(facts->cx, ir_mix, n_bind);
    return m;
}

/* A map that is not bijective may still be one-to-one: asked once more without the predicate, since leaving
 * points out cannot make two points meet.
 *
 *     loops i: 4, j: 8;  bind i*8 + j over 32         digits j (8), i (4): a bijection
 *     loops i: 4, j: 8;  bind i*8 + j over 40         one-to-one, but 32 .. 39 are missed: injective
 *     loops i: 4, j: 8;  bind i*4 + j over 20         i = 0, j = 4 and i = 1, j = 0 meet: neither
 */
bool ir_iter_map_detect(const ir_facts *facts, const ir_expr *const *loop, const ir_expr *const *extent,
                        int n_loops, const ir_expr *const *bind, const ir_expr *const *dom, int n_bind,
                        const ir_expr *where, ir_iter_map *out)
{
    ir_iter_marks *marks = start(facts, loop, extent, n_loops, bind, n_bind);
    verdict v = {false, false};

    *out = (ir_iter_map){0};
    bool understood = apply_where(marks, where);
    if (understood && read_with_restarts(marks))
        v = judge(marks, dom, true);
    out->bijective = v.injective && v.exact;
    out->injective = v.injective;
    out->reason = out->bijective ? NULL : marks->reason;
    /* With fewer conditions there are more points: what is one-to-one there is one-to-one here. */
    if (!v.injective && where) {
        marks = start(facts, loop, extent, n_loops, bind, n_bind);
        if (read_with_restarts(marks))
            out->injective = judge(marks, dom, false).injective;
    }
    out->marks = marks;
    return out->bijective;
}

/* ---- inverse ---- */

/* The value of each digit of a mixed-radix number; the top one needs no remainder.
 *
 *     number 29 with digits of 12 (scale 1) and 8 (scale 12):  29//1%12 = 5, 29//12 = 2
 */
static void spread(const ir_facts *facts, const ir_mix *mix, const ir_expr *number, ir_part *to)
{
    for (int i = 0; i < mix->n; i++) {
        const ir_expr *q = ir_floordiv(facts->cx, number, mix->part[i].scale);
        q = i + 1 < mix->n ? ir_floormod(facts->cx, q, mix->part[i].extent) : q;
        to[i].value = mix->part[i].reversed
                          ? ir_sub(facts->cx, ir_sub(facts->cx, mix->part[i].extent, ir_int(facts->cx, 1)), q)
                          : q;
    }
}

/* From the bindings' values back to the loops: each binding is spread into its digits, then each mark, the
 * last made first, is put together from its digits and spread into those that it was fused from, down to the
 * loops. */
bool ir_iter_map_inverse(const ir_facts *facts, const ir_iter_map *map, const ir_expr *const *point,
                         const ir_expr *const *loop, int n_loops, const ir_expr **out)
{
    ir_iter_marks *k = map->marks;

    if (!map->bijective || k->n_loops != n_loops)
        return false;
    for (int i = 0; i < k->n_bind; i++)
        spread(facts, &k->mix[i], point[i], k->mix[i].part);
    for (int i = k->marks.n - 1; i >= 0; i--) {
        ir_mark *mark = k->marks.at[i];
        const ir_expr *value = ir_int(facts->cx, 0);
        for (int j = 0; j < mark->uses.n; j++) {
            const ir_part *part = mark->uses.at[j];
            value = ir_add(facts->cx, value, ir_mul(facts->cx, part->value, part->lower));
        }
        if (i >= n_loops && mark->used)
            spread(facts, &mark->inside, value, mark->inside.part);
        else if (i < n_loops && mark->loop != loop[i])
            return false;
        else if (i < n_loops)
            out[i] = ir_simplify(facts, value);
        if (i < n_loops && !out[i])
            return false;
    }
    return true;
}
