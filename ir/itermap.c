/* ir/itermap.c -- whether quasi-affine bindings are a bijection from the loop points that satisfy a predicate onto a domain.
 *
 *     y = yo*12 + yi  where yo*12 + yi < n       yo < ceildiv(n, 12), yi < 12:   onto 0..n, each point once
 *     i = f//8, j = f%8                          f < 8*m:                        onto 0..m x 0..8
 *
 * Each binding is read as digits of loops (itermap_read.c). Predicates `rebuilt < bound` fuse their digits into marks that end at the bound,
 * the smallest first. The map is a bijection when each binding is a mixed-radix number of as many values as its domain, and the digits that
 * are used tile each loop and each fused mark exactly.
 */
#include "ir/itermap.h"
#include "ir/text.h"

static const char *text(const ir_iter_marks *m, const ir_expr *e)
{
    return ir_expr_text(m->f->cx, e);
}

static ir_iter_marks *begin(const ir_facts *f, const ir_expr *const *loop, const ir_expr *const *extent, int n)
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

/* Quotients and remainders inside one another: the deeper, the earlier the loops were made that it speaks of. */
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

static bool mentions_loop(const ir_iter_marks *m, const ir_expr *e)
{
    for (int i = 0; i < m->n_loops; i++)
        if (ir_mentions(e, ((ir_mark *)m->marks.at[i])->loop))
            return true;
    return false;
}

/* d >= 0 as sum < bound, the sum of all that loops change; its common factor divided away. */
static void write_constraint(ir_iter_marks *m, const ir_sum *d, constraint *c)
{
    const ir_term *t = ir_sum_terms(d);
    ir_sum sum = {0}, rest = {0};

    ir_sum_add_constant(&rest, d->constant);
    for (int i = 0; i < d->n; i++)
        if (mentions_loop(m, t[i].atom))
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
        return ir_iter_refuse(m, "the predicate '%s' is not of the form rebuilt < extent", text(m, c->condition));
    if (ir_prove_le(m->f, full, c->bound))
        return true;
    if (!ir_prove_le(m->f, c->bound, full))
        return ir_iter_refuse(m, "the predicate '%s' may or may not cut the %s values of '%s' short", text(m, c->condition), text(m, full),
                              text(m, c->sum));
    ir_iter_fuse(m, &mix, c->bound)->trimmed = true;
    return true;
}

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

/* The digits in use tile the mark from below; *complete: exactly. False: points repeat. */
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
        ir_iter_refuse(m, "no binding uses '%s', which takes %s values: points repeat", mark_text(m, mark), text(m, mark->extent));
    else
        ir_iter_refuse(m, "the digits in use split '%s' into %s values, but it takes %s", mark_text(m, mark), text(m, reached),
                       text(m, mark->extent));
    return ir_prove_le(m->f, mark->extent, reached);
}

static bool tile_all(ir_iter_marks *m, bool *exact)
{
    bool injective = true, complete;

    for (int i = 0; i < m->marks.n; i++) {
        ir_mark *mark = m->marks.at[i];
        bool loop = i < m->n_loops;
        if (!loop && !mark->used) {
            if (mark->trimmed) {
                *exact = ir_iter_refuse(m, "the predicate cuts '%s' short, which no binding rebuilds", mark_text(m, mark));
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

/* Radices that leave gaps are still one-to-one: each scale is at least what the digits below reach. */
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
        reach = ir_simplify(m->f, ir_add(m->f->cx, reach, ir_mul(m->f->cx, t.scale, ir_sub(m->f->cx, t.extent, ir_int(m->f->cx, 1)))));
    }
    return true;
}

/* ---- the whole map ---- */

static bool check_domain(ir_iter_marks *m, const ir_expr *bind, const ir_mix *mix, const ir_expr *extent, const ir_expr *dom)
{
    if (!ir_is_value(mix->base, 0))
        return ir_iter_refuse(m, "'%s' starts at %s and not at 0", text(m, bind), text(m, mix->base));
    if (!ir_iter_same(m, extent, dom))
        return ir_iter_refuse(m, "'%s' takes %s values, but its domain has %s", text(m, bind), text(m, extent), text(m, dom));
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

static ir_iter_marks *start(const ir_facts *f, const ir_expr *const *loop, const ir_expr *const *extent, int n_loops,
                            const ir_expr *const *bind, int n_bind)
{
    ir_iter_marks *m = begin(f, loop, extent, n_loops);

    m->bind = bind;
    m->n_bind = n_bind;
    m->mix = base_array(f->cx, ir_mix, n_bind);
    return m;
}

bool ir_iter_map_detect(const ir_facts *f, const ir_expr *const *loop, const ir_expr *const *extent, int n_loops, const ir_expr *const *bind,
                        const ir_expr *const *dom, int n_bind, const ir_expr *where, ir_iter_map *out)
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
    if (!v.injective && where) { /* without the predicate there are more points: one-to-one there is one-to-one here */
        m = start(f, loop, extent, n_loops, bind, n_bind);
        if (read_with_restarts(m))
            out->injective = judge(m, dom, false).injective;
    }
    out->marks = m;
    return out->bijective;
}

/* ---- inverse ---- */

/* The value of each digit of a mixed-radix number; the top one needs no remainder. */
static void spread(const ir_facts *f, const ir_mix *mix, const ir_expr *number, ir_part *to)
{
    for (int i = 0; i < mix->n; i++) {
        const ir_expr *q = ir_floordiv(f->cx, number, mix->part[i].scale);
        q = i + 1 < mix->n ? ir_floormod(f->cx, q, mix->part[i].extent) : q;
        to[i].value = mix->part[i].reversed ? ir_sub(f->cx, ir_sub(f->cx, mix->part[i].extent, ir_int(f->cx, 1)), q) : q;
    }
}

bool ir_iter_map_inverse(const ir_facts *f, const ir_iter_map *m, const ir_expr *const *point, const ir_expr *const *loop, int n_loops,
                         const ir_expr **out)
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
