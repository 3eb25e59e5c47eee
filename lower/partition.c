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

static const ir_stmt *visit(void *user, const ir_facts *facts, const ir_stmt *stmt);

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

static bool is_comparison(const ir_expr *expr)
{
    return expr->op >= IR_EQ && expr->op <= IR_GE && base_dtype_same(expr->arg[0]->dtype, BASE_I64);
}

/* A condition that no cut of this loop decides is `unsolved` from the start: one that is no comparison, does
 * not use the variable, reads memory (which may change), or may fail where it is evaluated early. */
static condition *condition_of(search *self, const ir_expr *cond)
{
    tec_context *cx = self->p->cx;
    condition *k = base_map_get(&self->conditions, cond);

    if (k)
        return k;
    k = base_new(cx, condition);
    k->c = cond;
    k->unsolved = !is_comparison(cond) || !ir_uses_var(cx, cond, self->loop->loop.var) ||
                  ir_loads(cx, cond) || lower_may_fail(self->outside, cond);
    base_map_put(cx, &self->conditions, cond, k);
    return k;
}

/* For the values of the variable that are left, the condition holds in this place, where facts does, too. */
static bool solve_interval(const search *self, const ir_facts *facts, condition *cut)
{
    tec_context *cx = self->p->cx;
    lower_interval i;

    if (!lower_solve(facts, cut->c, self->loop->loop.var, &self->inner, &i) ||
        lower_parts_exchange(cx, &self->p->differ, i.lo, i.hi, self->loop->loop.body))
        return false;
    if (i.lo)
        cut->in.lo = cut->in.lo ? ir_max(cx, cut->in.lo, i.lo) : i.lo;
    if (i.hi)
        cut->in.hi = cut->in.hi ? ir_min(cx, cut->in.hi, i.hi) : i.hi;
    return true;
}

/* The condition at the worst of the loops inside. All places of the condition must hold, so their worst cases
 * are joined by `and`. */
static bool solve_test(const search *self, const ir_facts *facts, condition *cut)
{
    const ir_expr *worst = lower_worst(facts, cut->c, &self->inner);

    if (!worst || lower_parts_exchange(self->p->cx, &self->p->differ, worst, NULL, self->loop->loop.body))
        return false;
    cut->test = ir_all(self->p->cx, cut->test, worst);
    return true;
}

static void solve(const search *self, const ir_facts *facts, condition *cut)
{
    if (!cut->unsolved)
        cut->unsolved = !(self->cut ? solve_interval(self, facts, cut) : solve_test(self, facts, cut));
}

/* The conjuncts of what an if or a select asks; directly inside a loop that is not cut there is nothing to
 * gain. Each conjunct for itself: an interior may make some of them true and leave the others. */
static void want(search *self, const ir_expr *cond)
{
    base_vec all = {0};

    ir_conjuncts(self->p->cx, cond, IR_DROP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        condition *k = condition_of(self, all.at[i]);

        if (!k->wanted && (self->cut || self->inner.n > 0))
            base_push(self->p->cx, &self->wanted, k);
        k->wanted = k->wanted || self->cut || self->inner.n > 0;
    }
}

typedef struct {
    ir_walk walk;
    search *s;
    const ir_facts *f;
    const ir_stmt *stmt;
} condition_walk;

/* Comparisons are looked at wherever they stand, selects only where a single lane decides. */
static bool find_condition(ir_walk *walk, const ir_expr *expr)
{
    condition_walk *k = (condition_walk *)walk;

    if (expr->op == IR_SELECT && expr->arg[0]->dtype.lanes == 1)
        want(k->s, expr->arg[0]);
    if (is_comparison(expr))
        solve(k->s, k->f, condition_of(k->s, expr));
    return true;
}

/* Statements inside have facts of their own. */
static bool is_own(ir_walk *walk, const ir_stmt *wanted)
{
    return ((condition_walk *)walk)->stmt == wanted;
}

static void search_own(search *self, const ir_facts *facts, const ir_stmt *wanted)
{
    condition_walk w = {
        .walk = {.expr = find_condition, .stmt = is_own, .kinds = IR_KIND_COMPARE, .cx = self->p->cx},
        .s = self,
        .f = facts,
        .stmt = wanted};

    ir_walk_stmt(&w.walk, wanted);
}

/* Goes down with the loops inside as `inner`: their variables are the ones to take at their worst. Facts
 * follow the statements, so that a condition under another one is solved where that one holds. */
static void search_stmt(search *self, const ir_facts *facts, const ir_stmt *stmt)
{
    if (stmt->kind == IR_SEQ) {
        for (int i = 0; i < stmt->seq.n; i++)
            search_stmt(self, facts, stmt->seq.stmt[i]);
        return;
    }
    if (stmt->kind == IR_IF)
        want(self, stmt->branch.cond);
    search_own(self, facts, stmt);
    if (stmt->kind == IR_FOR)
        base_push(self->p->cx, &self->inner, stmt->loop.var);
    if (stmt->kind == IR_IF) {
        search_stmt(self, lower_inside(facts, stmt), stmt->branch.then);
        if (stmt->branch.otherwise)
            search_stmt(self, lower_inside_else(facts, stmt), stmt->branch.otherwise);
    } else if (lower_inner(stmt)) {
        search_stmt(self, lower_inside(facts, stmt), lower_inner(stmt));
    }
    self->inner.n -= stmt->kind == IR_FOR;
}

/* ---- the interior ---- */

/* Whether lo..hi surely has no value; unknown counts as no. */
static bool is_empty(const search *self, const ir_expr *lo, const ir_expr *hi)
{
    return ir_prove_le(self->outside, hi ? hi : self->end, lo ? lo : self->min);
}

/* Takes the solution of the condition into the interior. A condition whose solution would leave nothing of
 * the interior is passed over; the others still count. */
static bool choose_cut(search *self, const condition *cut)
{
    tec_context *cx = self->p->cx;
    const ir_expr *lo = cut->in.lo ? (self->lo ? ir_max(cx, self->lo, cut->in.lo) : cut->in.lo) : self->lo;
    const ir_expr *hi = cut->in.hi ? (self->hi ? ir_min(cx, self->hi, cut->in.hi) : cut->in.hi) : self->hi;

    lo = lo ? ir_simplify(self->outside, lo) : NULL;
    hi = hi ? ir_simplify(self->outside, hi) : NULL;
    if (is_empty(self, lo, hi))
        return false;
    self->lo = lo;
    self->hi = hi;
    return true;
}

/* A test that never holds would leave the interior without iterations. */
static bool choose_test(search *self, const condition *cut)
{
    tec_context *cx = self->p->cx;
    const ir_facts *inside = lower_inside(self->outside, self->loop);
    const ir_expr *worst = ir_simplify(inside, cut->test);

    if (ir_prove(inside, ir_not(cx, worst)))
        return false;
    self->test = ir_simplify(inside, ir_all(cx, self->test, worst));
    return true;
}

/* The conditions are taken in the order in which they are evaluated: an earlier one may narrow the interior
 * so far that a later one is passed over. */
static void choose(search *self)
{
    for (int i = 0; i < self->wanted.n; i++) {
        const condition *k = self->wanted.at[i];

        if (!k->unsolved && (self->cut ? choose_cut(self, k) : choose_test(self, k)))
            base_map_put(self->p->cx, &self->chosen, k->c, k->c);
    }
}

/* Without `cut` only the profit is estimated, with the bounds as they are. */
static search look_at(partitioner *self, const ir_facts *facts, const ir_stmt *loop, bool cut)
{
    search s = {.p = self,
                .loop = loop,
                .outside = facts,
                .min = loop->loop.min,
                .end = ir_add(self->cx, loop->loop.min, loop->loop.extent),
                .cut = cut};

    search_stmt(&s, lower_inside(facts, loop), loop->loop.body);
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
static const ir_expr *hold(ir_rewrite *rw, const ir_expr *expr)
{
    if (base_map_has(((interior *)rw)->chosen, expr))
        return ir_bool(rw->cx, true);
    expr = ir_rewrite_children(rw, expr);
    return expr && expr->op == IR_SELECT && expr->arg[0]->dtype.lanes == 1 && ir_is_true(expr->arg[0])
               ? expr->arg[1]
               : expr;
}

static const ir_stmt *hold_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    stmt = ir_rewrite_stmt_children(rw, stmt);
    return stmt && stmt->kind == IR_IF && ir_is_true(stmt->branch.cond) ? stmt->branch.then : stmt;
}

/* The body with the chosen conditions taken as true. */
static const ir_stmt *interior_of(const search *self)
{
    interior in = {.rw = {.cx = self->p->cx, .expr = hold, .stmt = hold_stmt, .kinds = IR_KIND_COMPARE},
                   .chosen = &self->chosen};

    return ir_rewrite_stmt(&in.rw, self->loop->loop.body);
}

/* The loop over min..end with the body; the single iteration of a loop of one without the loop. A loop of one
 * iteration is replaced by its body, simplified at once: often nothing of the conditions is left. */
static const ir_stmt *piece(partitioner *self, const ir_facts *facts, const ir_stmt *loop, const ir_expr *min,
                            const ir_expr *end, const ir_stmt *body)
{
    tec_context *cx = self->cx;
    const ir_expr *extent = ir_simplify(facts, lower_extent(facts, min, end));
    int64_t n;

    if (ir_is_int(extent, &n) && n <= 0)
        return ir_nothing(cx);
    if (ir_is_int(extent, &n) && n == 1) {
        /* The conditions in it are often decided now, which saves the copies of loops inside. */
        body = ir_substitute_stmt(cx, body, loop->loop.var, min);
        return body ? visit(self, facts, ir_simplify_stmt(facts, body)) : NULL;
    }
    if (BASE_PLANT_ON(cx, partition_piece))
        extent = ir_sub(cx, extent, ir_int(cx, 1));
    const ir_stmt *part = ir_for_like(cx, loop, min, extent, body);
    const ir_stmt *inner = part ? visit(self, lower_inside(facts, part), body) : NULL;
    return inner ? lower_with_inner(cx, part, inner) : NULL;
}

/* Loops before, in and behind the interior. */
static const ir_stmt *in_three(search *self, const ir_facts *facts, const ir_stmt *body)
{
    tec_context *cx = self->p->cx;
    const ir_expr *lo = self->min, *hi = self->end;
    const ir_stmt *part[3];

    if (self->lo)
        lo = ir_simplify(facts, ir_max(cx, self->min, ir_min(cx, self->lo, self->end)));
    if (self->hi)
        hi = ir_simplify(facts, ir_max(cx, lo, ir_min(cx, self->hi, self->end)));
    part[0] =
        self->lo ? piece(self->p, facts, self->loop, self->min, lo, self->loop->loop.body) : ir_nothing(cx);
    part[1] = piece(self->p, facts, self->loop, lo, hi, body);
    part[2] =
        self->hi ? piece(self->p, facts, self->loop, hi, self->end, self->loop->loop.body) : ir_nothing(cx);
    return part[0] && part[1] && part[2] ? ir_seq(cx, part, 3) : NULL;
}

/* Both branches get their turn: conditions about inner loops are left in either. */
static const ir_stmt *by_branch(search *self, const ir_facts *facts, const ir_stmt *body)
{
    tec_context *cx = self->p->cx;
    const ir_facts *inside = lower_inside(facts, self->loop);
    const ir_stmt *in = visit(self->p, inside, body), *edge = visit(self->p, inside, self->loop->loop.body);

    return in && edge ? lower_with_inner(cx, self->loop, ir_if(cx, self->test, in, edge)) : NULL;
}

/* Nodes, once loops are unrolled. Counts what code generators will see, since a body in an unrolled loop is
 * paid for as often as it is written. */
static int64_t written_out(tec_context *cx, const ir_stmt *stmt)
{
    int64_t n = 1, times;

    switch (stmt->kind) {
    case IR_FOR:
        n = stmt->loop.how == IR_UNROLLED && ir_is_int(stmt->loop.extent, &times) && times > 1 ? times : 1;
        return 1 + n * written_out(cx, stmt->loop.body);
    case IR_SEQ:
        for (int i = 0; i < stmt->seq.n; i++)
            n += written_out(cx, stmt->seq.stmt[i]);
        return n;
    case IR_IF:
        return n + written_out(cx, stmt->branch.then) +
               (stmt->branch.otherwise ? written_out(cx, stmt->branch.otherwise) : 0);
    case IR_LET_STMT:
    case IR_ALLOCATE:
    case IR_ATTRIBUTE: return n + written_out(cx, lower_inner(stmt));
    default: return ir_count_nodes(cx, stmt);
    }
}

/* A cut first; if nothing can be cut, a test by a branch. What does not fit into the budget stays as it is,
 * but the loops inside still have their turn. */
static const ir_stmt *visit_loop(partitioner *self, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = self->cx;
    search look = {0};

    if (stmt->loop.how == IR_SERIAL)
        look = look_at(self, facts, stmt, true);
    if (look.chosen.n == 0 && (stmt->loop.how == IR_SERIAL || stmt->loop.how == IR_PARALLEL))
        look = look_at(self, facts, stmt, false);
    if (look.chosen.n > 0) {
        int copies = look.cut ? (look.lo != NULL) + (look.hi != NULL) : 1;
        int64_t cost = copies * written_out(cx, stmt->loop.body);

        if (cost <= self->budget) {
            const ir_stmt *body = interior_of(&look);

            self->budget -= cost;
            if (!body)
                return NULL;
            return look.cut ? in_three(&look, facts, body) : by_branch(&look, facts, body);
        }
    }
    return lower_visit_children(facts, stmt, visit, self);
}

static const ir_stmt *visit(void *user, const ir_facts *facts, const ir_stmt *stmt)
{
    if (!stmt)
        return NULL;
    ir_at(ir_facts_context(facts), stmt->loc);
    return stmt->kind == IR_FOR ? visit_loop(user, facts, stmt)
                                : lower_visit_children(facts, stmt, visit, user);
}

const ir_program *lower_partition(const lower_options *options, const ir_program *program)
{
    partitioner pt = {.cx = options->cx, .budget = BUDGET_NODES + written_out(options->cx, program->body)};

    if (target_offers(options->target, TARGET_THREADS))
        pt.differ = lower_find_differing(options->cx, program->body);
    return lower_with_body(options->cx, program,
                           visit(&pt, ir_facts_of_program(options->cx, program), program->body));
}
