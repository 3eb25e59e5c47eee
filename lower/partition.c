/* lower/partition.c -- cuts loops where their conditions begin and cease to hold, so that the interior runs
 * without them.
 *
 *     for x in 0..n {                                             if/for x in 0..1 { as before }
 *       B[x] = select(1 <= x && x < n - 1, A[x], 0.0)      =>     for x in 1..max(1, n - 1) { B[x] = A[x] }
 *     }                                                           for x in max(1, n - 1)..n { as before }
 *
 * requires  simplified conditions, buffers with their own dimensions
 * provides  nothing: conditions may be left where a cut is not worth its copies
 * breaks    unique names (the copies of a body share their inner names); loops that started at 0 may start
 *           elsewhere
 *
 * From the outside in, for each serial or parallel loop: the conjuncts of ifs and selects inside that are
 * linear in its variable are solved for it, the variables of the loops inside taken at their worst, in all
 * places where the conjunct stands. Where the solutions meet is the interior; there these conjuncts are true.
 * A parallel loop stays one loop, with the interior and the rest as the branches of an if; so does a loop
 * whose variable stands in a floor division or remainder, as that of fused loops does. Conjuncts whose
 * solution would leave a constant interior empty are passed over, and so are those whose solution differs
 * between threads that meet in the loop: the loops inside, of the edges too, get their own turn. A budget
 * bounds the nodes of all copies, those of unrolled loops counted as often as they will stand there;
 * conditions under a loop that was not cut are still right.
 *
 * A worked example with n = 10, for 1 <= x && x < n - 1:
 *
 *     conjunct      solved for x        interior
 *     1 <= x        x >= 1              1 ..
 *     x < n - 1     x < 9               1 .. 9
 *
 * The three loops run over 0..1, 1..9 and 9..10. In the middle one both conjuncts are replaced by true; in
 * the others they stay, and the simplifier decides them, as x has one value there. For a symbolic n the
 * bounds become max and min of each other, so that the pieces never overlap: for n = 1 the interior is
 * 1..max(1, 0), which is empty.
 *
 * Taken at their worst: in `for x { for i in 0..4 { if x*4 + i < n } }` the conjunct holds for all i where
 * x*4 + 3 < n, so the interior ends at floordiv(n - 4, 4) + 1. A cut at the best (x*4 < n) would run a
 * condition that is false for some i as if it were true.
 */
#include "lower/differ.h"

/* Copies may add up to this many nodes, and once more to the size of the program. */
enum { BUDGET_NODES = 20000 };

typedef struct {
    tec_context *cx;
    base_map differ; /* lower/differ.h; empty for CPUs */
    int64_t budget;
} partitioner;

static const ir_stmt *visit(partitioner *p, const ir_facts *f, const ir_stmt *s);

/* ---- conditions inside a loop ---- */

/* A comparison of the loop's variable. It is one node wherever it stands in the body, and what is known of
 * the loops inside differs from place to place: it is solved in all of them, and where it is taken to be true
 * it is so in all of them. */
typedef struct {
    const ir_expr *c;
    bool unsolved;       /* somewhere it is of no form that is solved */
    bool wanted;         /* some if or select asks for it */
    lower_interval in;   /* where the loop is cut: it holds for these values of the variable */
    const ir_expr *test; /* where it is not: it holds where this does */
} condition;

/* What one loop asks for: the interior so far, and the conditions that hold in it. */
typedef struct {
    partitioner *p;
    const ir_stmt *loop;
    const ir_facts *outside;
    const ir_expr *min, *end; /* of the loop */
    const ir_expr *lo, *hi;   /* of the interior, where the loop is cut; NULL: the loop's own */
    /* what decides between the interior and the rest, where it is not; NULL: always */
    const ir_expr *test;
    bool cut;
    base_map conditions; /* ir_expr * -> condition * */
    base_vec wanted;     /* condition *, in the order of evaluation */
    base_map chosen;     /* conditions that are true in the interior */
    base_vec inner;      /* variables of the loops inside, up to where we are */
} search;

static bool is_comparison(const ir_expr *e)
{
    return e->op >= IR_EQ && e->op <= IR_GE && base_dtype_same(e->arg[0]->dtype, BASE_I64);
}

static condition *condition_of(search *s, const ir_expr *c)
{
    tec_context *cx = s->p->cx;
    condition *k = base_map_get(&s->conditions, c);

    if (k)
        return k;
    k = base_new(cx, condition);
    k->c = c;
    k->unsolved = !is_comparison(c) || !ir_uses_var(cx, c, s->loop->loop.var) || ir_loads(cx, c) ||
                  lower_may_fail(s->outside, c);
    base_map_put(cx, &s->conditions, c, k);
    return k;
}

/* For the values of the variable that are left, the condition holds in this place, where f does, too. */
static bool solve_interval(const search *s, const ir_facts *f, condition *k)
{
    tec_context *cx = s->p->cx;
    lower_interval i;

    if (!lower_solve(f, k->c, s->loop->loop.var, &s->inner, &i) ||
        lower_parts_exchange(cx, &s->p->differ, i.lo, i.hi, s->loop->loop.body))
        return false;
    if (i.lo)
        k->in.lo = k->in.lo ? ir_max(cx, k->in.lo, i.lo) : i.lo;
    if (i.hi)
        k->in.hi = k->in.hi ? ir_min(cx, k->in.hi, i.hi) : i.hi;
    return true;
}

/* The condition at the worst of the loops inside. All places of the condition must hold, so their worst cases
 * are joined by `and`. */
static bool solve_test(const search *s, const ir_facts *f, condition *k)
{
    const ir_expr *worst = lower_worst(f, k->c, &s->inner);

    if (!worst || lower_parts_exchange(s->p->cx, &s->p->differ, worst, NULL, s->loop->loop.body))
        return false;
    k->test = ir_all(s->p->cx, k->test, worst);
    return true;
}

static void solve(const search *s, const ir_facts *f, condition *k)
{
    if (!k->unsolved)
        k->unsolved = !(s->cut ? solve_interval(s, f, k) : solve_test(s, f, k));
}

/* The conjuncts of what an if or a select asks; directly inside a loop that is not cut there is nothing to
 * gain. Each conjunct for itself: an interior may make some of them true and leave the others. */
static void want(search *s, const ir_expr *cond)
{
    base_vec all = {0};

    ir_conjuncts(s->p->cx, cond, IR_DROP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        condition *k = condition_of(s, all.at[i]);

        if (!k->wanted && (s->cut || s->inner.n > 0))
            base_push(s->p->cx, &s->wanted, k);
        k->wanted = k->wanted || s->cut || s->inner.n > 0;
    }
}

typedef struct {
    ir_walk walk;
    search *s;
    const ir_facts *f;
    const ir_stmt *stmt;
} condition_walk;

/* Comparisons are looked at wherever they stand, selects only where a single lane decides. */
static bool find_condition(ir_walk *w, const ir_expr *e)
{
    condition_walk *k = (condition_walk *)w;

    if (e->op == IR_SELECT && e->arg[0]->dtype.lanes == 1)
        want(k->s, e->arg[0]);
    if (is_comparison(e))
        solve(k->s, k->f, condition_of(k->s, e));
    return true;
}

/* Statements inside have facts of their own. */
static bool is_own(ir_walk *w, const ir_stmt *t)
{
    return ((condition_walk *)w)->stmt == t;
}

static void search_own(search *s, const ir_facts *f, const ir_stmt *t)
{
    condition_walk w = {
        .walk = {.expr = find_condition, .stmt = is_own, .kinds = IR_KIND_COMPARE, .cx = s->p->cx},
        .s = s,
        .f = f,
        .stmt = t};

    ir_walk_stmt(&w.walk, t);
}

/* Goes down with the loops inside as `inner`: their variables are the ones to take at their worst. Facts
 * follow the statements, so that a condition under another one is solved where that one holds. */
static void search_stmt(search *s, const ir_facts *f, const ir_stmt *t)
{
    if (t->kind == IR_SEQ) {
        for (int i = 0; i < t->seq.n; i++)
            search_stmt(s, f, t->seq.stmt[i]);
        return;
    }
    if (t->kind == IR_IF)
        want(s, t->branch.cond);
    search_own(s, f, t);
    if (t->kind == IR_FOR)
        base_push(s->p->cx, &s->inner, t->loop.var);
    if (t->kind == IR_IF) {
        search_stmt(s, lower_inside(f, t), t->branch.then);
        if (t->branch.otherwise)
            search_stmt(s, lower_inside_else(f, t), t->branch.otherwise);
    } else if (lower_inner(t)) {
        search_stmt(s, lower_inside(f, t), lower_inner(t));
    }
    s->inner.n -= t->kind == IR_FOR;
}

/* ---- the interior ---- */

/* Whether lo..hi surely has no value; unknown counts as no. */
static bool is_empty(const search *s, const ir_expr *lo, const ir_expr *hi)
{
    return ir_prove_le(s->outside, hi ? hi : s->end, lo ? lo : s->min);
}

/* Takes the solution of the condition into the interior. A condition whose solution would leave nothing of
 * the interior is passed over; the others still count. */
static bool choose_cut(search *s, const condition *k)
{
    tec_context *cx = s->p->cx;
    const ir_expr *lo = k->in.lo ? (s->lo ? ir_max(cx, s->lo, k->in.lo) : k->in.lo) : s->lo;
    const ir_expr *hi = k->in.hi ? (s->hi ? ir_min(cx, s->hi, k->in.hi) : k->in.hi) : s->hi;

    lo = lo ? ir_simplify(s->outside, lo) : NULL;
    hi = hi ? ir_simplify(s->outside, hi) : NULL;
    if (is_empty(s, lo, hi))
        return false;
    s->lo = lo;
    s->hi = hi;
    return true;
}

/* A test that never holds would leave the interior without iterations. */
static bool choose_test(search *s, const condition *k)
{
    tec_context *cx = s->p->cx;
    const ir_facts *inside = lower_inside(s->outside, s->loop);
    const ir_expr *worst = ir_simplify(inside, k->test);

    if (ir_prove(inside, ir_not(cx, worst)))
        return false;
    s->test = ir_simplify(inside, ir_all(cx, s->test, worst));
    return true;
}

/* The conditions are taken in the order in which they are evaluated: an earlier one may narrow the interior
 * so far that a later one is passed over. */
static void choose(search *s)
{
    for (int i = 0; i < s->wanted.n; i++) {
        const condition *k = s->wanted.at[i];

        if (!k->unsolved && (s->cut ? choose_cut(s, k) : choose_test(s, k)))
            base_map_put(s->p->cx, &s->chosen, k->c, k->c);
    }
}

static search look_at(partitioner *p, const ir_facts *f, const ir_stmt *loop, bool cut)
{
    search s = {.p = p,
                .loop = loop,
                .outside = f,
                .min = loop->loop.min,
                .end = ir_add(p->cx, loop->loop.min, loop->loop.extent),
                .cut = cut};

    search_stmt(&s, lower_inside(f, loop), loop->loop.body);
    choose(&s);
    return s;
}

/* ---- the pieces ---- */

typedef struct {
    ir_rewrite rw;
    const base_map *chosen;
} interior;

/* Replaces chosen conditions by `true`, and a select on `true` by its first arm, which no longer needs the
 * guard. */
static const ir_expr *hold(ir_rewrite *rw, const ir_expr *e)
{
    if (base_map_has(((interior *)rw)->chosen, e))
        return ir_bool(rw->cx, true);
    e = ir_rewrite_children(rw, e);
    return e && e->op == IR_SELECT && e->arg[0]->dtype.lanes == 1 && ir_is_true(e->arg[0]) ? e->arg[1] : e;
}

static const ir_stmt *hold_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    s = ir_rewrite_stmt_children(rw, s);
    return s && s->kind == IR_IF && ir_is_true(s->branch.cond) ? s->branch.then : s;
}

static const ir_stmt *interior_of(const search *s)
{
    interior in = {.rw = {.cx = s->p->cx, .expr = hold, .stmt = hold_stmt, .kinds = IR_KIND_COMPARE},
                   .chosen = &s->chosen};

    return ir_rewrite_stmt(&in.rw, s->loop->loop.body);
}

/* The loop over min..end with the body; the single iteration of a loop of one without the loop. A loop of one
 * iteration is replaced by its body, simplified at once: often nothing of the conditions is left. */
static const ir_stmt *piece(partitioner *p, const ir_facts *f, const ir_stmt *loop, const ir_expr *min,
                            const ir_expr *end, const ir_stmt *body)
{
    tec_context *cx = p->cx;
    const ir_expr *extent = ir_simplify(f, lower_extent(f, min, end));
    int64_t n;

    if (ir_is_int(extent, &n) && n <= 0)
        return ir_nothing(cx);
    if (ir_is_int(extent, &n) && n == 1) {
        /* The conditions in it are often decided now, which saves the copies of loops inside. */
        body = ir_substitute_stmt(cx, body, loop->loop.var, min);
        return body ? visit(p, f, ir_simplify_stmt(f, body)) : NULL;
    }
    if (BASE_PLANT_ON(cx, partition_piece))
        extent = ir_sub(cx, extent, ir_int(cx, 1));
    const ir_stmt *part = ir_for_like(cx, loop, min, extent, body);
    const ir_stmt *inner = part ? visit(p, lower_inside(f, part), body) : NULL;
    return inner ? lower_with_inner(cx, part, inner) : NULL;
}

/* Loops before, in and behind the interior. */
static const ir_stmt *in_three(search *s, const ir_facts *f, const ir_stmt *body)
{
    tec_context *cx = s->p->cx;
    const ir_expr *lo = s->min, *hi = s->end;
    const ir_stmt *part[3];

    if (s->lo)
        lo = ir_simplify(f, ir_max(cx, s->min, ir_min(cx, s->lo, s->end)));
    if (s->hi)
        hi = ir_simplify(f, ir_max(cx, lo, ir_min(cx, s->hi, s->end)));
    part[0] = s->lo ? piece(s->p, f, s->loop, s->min, lo, s->loop->loop.body) : ir_nothing(cx);
    part[1] = piece(s->p, f, s->loop, lo, hi, body);
    part[2] = s->hi ? piece(s->p, f, s->loop, hi, s->end, s->loop->loop.body) : ir_nothing(cx);
    return part[0] && part[1] && part[2] ? ir_seq(cx, part, 3) : NULL;
}

/* Both branches get their turn: conditions about inner loops are left in either. */
static const ir_stmt *by_branch(search *s, const ir_facts *f, const ir_stmt *body)
{
    tec_context *cx = s->p->cx;
    const ir_facts *inside = lower_inside(f, s->loop);
    const ir_stmt *in = visit(s->p, inside, body), *edge = visit(s->p, inside, s->loop->loop.body);

    return in && edge ? lower_with_inner(cx, s->loop, ir_if(cx, s->test, in, edge)) : NULL;
}

/* Nodes, once loops are unrolled. Counts what code generators will see, since a body in an unrolled loop is
 * paid for as often as it is written. */
static int64_t written_out(tec_context *cx, const ir_stmt *s)
{
    int64_t n = 1, times;

    switch (s->kind) {
    case IR_FOR:
        n = s->loop.how == IR_UNROLLED && ir_is_int(s->loop.extent, &times) && times > 1 ? times : 1;
        return 1 + n * written_out(cx, s->loop.body);
    case IR_SEQ:
        for (int i = 0; i < s->seq.n; i++)
            n += written_out(cx, s->seq.stmt[i]);
        return n;
    case IR_IF:
        return n + written_out(cx, s->branch.then) +
               (s->branch.otherwise ? written_out(cx, s->branch.otherwise) : 0);
    case IR_LET_STMT:
    case IR_ALLOCATE:
    case IR_ATTRIBUTE: return n + written_out(cx, lower_inner(s));
    default: return ir_count_nodes(cx, s);
    }
}

/* A cut first; if nothing can be cut, a test by a branch. What does not fit into the budget stays as it is,
 * but the loops inside still have their turn. */
static const ir_stmt *visit_loop(partitioner *p, const ir_facts *f, const ir_stmt *s)
{
    tec_context *cx = p->cx;
    search look = {0};

    if (s->loop.how == IR_SERIAL)
        look = look_at(p, f, s, true);
    if (look.chosen.n == 0 && (s->loop.how == IR_SERIAL || s->loop.how == IR_PARALLEL))
        look = look_at(p, f, s, false);
    if (look.chosen.n > 0) {
        int copies = look.cut ? (look.lo != NULL) + (look.hi != NULL) : 1;
        int64_t cost = copies * written_out(cx, s->loop.body);

        if (cost <= p->budget) {
            const ir_stmt *body = interior_of(&look);

            p->budget -= cost;
            if (!body)
                return NULL;
            return look.cut ? in_three(&look, f, body) : by_branch(&look, f, body);
        }
    }
    const ir_stmt *body = visit(p, lower_inside(f, s), s->loop.body);
    return body ? lower_with_inner(cx, s, body) : NULL;
}

static const ir_stmt *visit_seq(partitioner *p, const ir_facts *f, const ir_stmt *s)
{
    const ir_stmt **stmt = base_array(p->cx, const ir_stmt *, s->seq.n);
    bool same = true;

    for (int i = 0; i < s->seq.n; i++) {
        stmt[i] = visit(p, f, s->seq.stmt[i]);
        if (!stmt[i])
            return NULL;
        same &= stmt[i] == s->seq.stmt[i];
    }
    return same ? s : ir_seq(p->cx, stmt, s->seq.n);
}

static const ir_stmt *visit_if(partitioner *p, const ir_facts *f, const ir_stmt *s)
{
    const ir_stmt *then = visit(p, lower_inside(f, s), s->branch.then), *otherwise = NULL;

    if (s->branch.otherwise && !(otherwise = visit(p, lower_inside_else(f, s), s->branch.otherwise)))
        return NULL;
    if (!then || (then == s->branch.then && otherwise == s->branch.otherwise))
        return then ? s : NULL;
    return ir_if(p->cx, s->branch.cond, then, otherwise);
}

/* One case for each statement with children; leaves are as they are. */
static const ir_stmt *visit(partitioner *p, const ir_facts *f, const ir_stmt *s)
{
    if (!s)
        return NULL;
    ir_at(p->cx, s->loc);
    switch (s->kind) {
    case IR_FOR: return visit_loop(p, f, s);
    case IR_SEQ: return visit_seq(p, f, s);
    case IR_IF: return visit_if(p, f, s);
    case IR_LET_STMT:
    case IR_ALLOCATE:
    case IR_ATTRIBUTE: {
        const ir_stmt *body = visit(p, lower_inside(f, s), lower_inner(s));

        return body ? lower_with_inner(p->cx, s, body) : NULL;
    }
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: break;
    }
    return s;
}

const ir_program *lower_partition(const lower_options *o, const ir_program *p)
{
    partitioner pt = {.cx = o->cx, .budget = BUDGET_NODES + written_out(o->cx, p->body)};

    if (target_offers(o->target, TARGET_THREADS))
        pt.differ = lower_find_differing(o->cx, p->body);
    return lower_with_body(o->cx, p, visit(&pt, ir_facts_of_program(o->cx, p), p->body));
}
