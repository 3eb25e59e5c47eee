/* tree/box.c -- what holds at a block, and which box of a buffer it touches while its outer loops stand
 * still.
 *
 *     for i in 0..8 { for j in 0..4 { block P(y = i*4 + j) { reads A[y:+3] } } }
 *         i standing still: A[i*4:+6], since j moves the start by 3 at most and the access is 3 wide
 *
 * Most indices are sums of loops with constant factors, and most loops have constant extents: then the box is
 * read off the sum. Everything else is ir_region_over's.
 */
#include "ir/reason/facts.h"
#include "tree/touch.h"

/* The kinds are ordered: spatial < reduce < scan < opaque. A loop that takes part in several variables, as a
 * fused loop does, has the strictest kind of them.
 *
 *     for f in 0..32 { block S(y = f / 8, k reduce = f % 8) }       f: reduce
 */
ir_iter_kind tree_kind_for(tec_context *cx, const tree_site *site, const ir_expr *var)
{
    ir_iter_kind kind = IR_SPATIAL;

    for (int i = 0; i < site->block->n_iters; i++)
        if (site->block->iters[i].kind > kind && ir_uses_var(cx, site->stmt->block.bind[i], var))
            kind = site->block->iters[i].kind;
    return kind;
}

/* Made from the outside in, each level a child of the one before, and kept at the site: a proof at depth 3
 * and one at depth 5 share the facts of the three outer loops. */
const ir_facts *tree_site_facts(const tree_view *view, const tree_site *site, int fixed)
{
    if (fixed == 0)
        return view->facts;
    if (!site->facts[fixed]) {
        ir_facts *facts = ir_facts_new(view->cx, tree_site_facts(view, site, fixed - 1));

        const ir_stmt *l = site->loop[fixed - 1];

        tree_know_loop(facts, l->loop.var, l->loop.extent, tree_may_be_empty(view->cx, l));
        site->facts[fixed] = facts;
    }
    return site->facts[fixed];
}

/* The loops that move while the outer `fixed` ones stand still, in the form that the regions and the
 * iterator maps take. */
ir_ranges tree_inner_ranges(tec_context *cx, const tree_site *site, int fixed)
{
    int n = site->n_loops - fixed;
    const ir_expr **var = base_array(cx, const ir_expr *, n), **min = base_array(cx, const ir_expr *, n),
                  **extent = base_array(cx, const ir_expr *, n);

    for (int i = 0; i < n; i++) {
        const ir_stmt *l = site->loop[fixed + i];

        var[i] = l->loop.var;
        min[i] = l->loop.min;
        extent[i] = l->loop.extent;
    }
    return (ir_ranges){.var = var, .min = min, .extent = extent, .n = n};
}

ir_subst tree_bindings(tec_context *cx, const tree_site *site)
{
    ir_subst map = {0};

    for (int i = 0; i < site->block->n_iters; i++)
        base_map_put(cx, &map.vars, site->block->iters[i].var, site->stmt->block.bind[i]);
    return map;
}

/* The condition says that one value is less than its extent, word for word. */
static bool is_end_of_domain(const tree_site *site, const ir_expr *condition)
{
    for (int i = 0; condition->op == IR_LT && i < site->block->n_iters; i++)
        if (ir_same(condition->arg[0], site->stmt->block.bind[i]) &&
            ir_same(condition->arg[1], site->block->iters[i].extent))
            return true;
    return false;
}

/* Two steps, the cheap one first. A conjunct that repeats `binding < extent` word for word keeps the block
 * in its domain and is dropped. Of the others those are dropped that follow from "all bindings lie in their
 * domains", as the tail of a loop that was split twice does:
 *
 *     block B(y = a*8 + b*4 + c in 0..n) where a*8 + b*4 + c < n && a*8 + b*4 < n      both are dropped
 *     block B(y = a*8 + b in 0..n) where a*8 + b < n && b < 6                          b < 6 is left
 */
static const ir_expr *find_loop_guards(const tree_view *view, const tree_site *site)
{
    const ir_expr *kept = NULL;
    base_vec conjuncts = {0}, all = {0};

    ir_conjuncts(view->cx, site->stmt->block.where, IR_KEEP_LIKELY, &conjuncts);
    for (int i = 0; i < conjuncts.n; i++)
        if (!is_end_of_domain(site, conjuncts.at[i]))
            base_push(view->cx, &all, conjuncts.at[i]);
    if (all.n == 0)
        return NULL;
    ir_facts *domain = ir_facts_new(view->cx, tree_site_facts(view, site, site->n_loops));
    for (int i = 0; i < site->block->n_iters; i++) {
        ir_facts_assume(domain, ir_ge(view->cx, site->stmt->block.bind[i], ir_int(view->cx, 0)));
        ir_facts_assume(domain, ir_lt(view->cx, site->stmt->block.bind[i], site->block->iters[i].extent));
    }
    for (int i = 0; i < all.n; i++)
        if (!ir_prove(domain, all.at[i]))
            kept = ir_all(view->cx, kept, all.at[i]);
    return kept;
}

const ir_expr *tree_loop_guards(const tree_view *view, const tree_site *site)
{
    if (!site->stmt->block.where)
        return NULL;
    if (!*site->guards)
        *site->guards =
            base_copy(view->cx, &(const ir_expr *){find_loop_guards(view, site)}, sizeof **site->guards);
    return **site->guards;
}

/* ---- boxes ---- */

/* A sum over the inner loops: their factors, and what is left. */
typedef struct {
    tec_context *cx;
    const tree_site *site;
    int fixed;
    int64_t *factor; /* of each inner loop */
    int64_t constant;
    const ir_expr *rest; /* NULL: 0 */
} loop_sum;

static int inner_loop(const loop_sum *sum, const ir_expr *var)
{
    for (int i = sum->fixed; i < sum->site->n_loops; i++)
        if (sum->site->loop[i]->loop.var == var)
            return i - sum->fixed;
    return -1;
}

/* No inner loop in it; only what sums of loops are made of is looked into. */
static bool stands_still(const loop_sum *sum, const ir_expr *expr)
{
    if (expr->op == IR_VAR)
        return inner_loop(sum, expr) < 0;
    if (expr->op == IR_INT)
        return true;
    if (!ir_is_op(expr->op))
        return false;
    for (int i = 0; i < 3 && expr->arg[i]; i++)
        if (!stands_still(sum, expr->arg[i]))
            return false;
    return true;
}

/* Adds `expr * by` to the sum, term by term; false: it is no such sum. For i*8 + (j - 2)*3 with i standing
 * still and j an inner loop: the factor of j grows by 3, the constant by -6, and i*8 goes to the rest as it
 * is. */
static bool add_terms(loop_sum *sum, const ir_expr *expr, int64_t by)
{
    int64_t c;
    int k;

    if (expr->op == IR_INT) {
        sum->constant += by * expr->i;
        return true;
    }
    if (expr->op == IR_VAR && (k = inner_loop(sum, expr)) >= 0) {
        sum->factor[k] += by;
        return true;
    }
    if (expr->op == IR_ADD || expr->op == IR_SUB)
        return add_terms(sum, expr->arg[0], by) &&
               add_terms(sum, expr->arg[1], expr->op == IR_ADD ? by : -by);
    if (expr->op == IR_MUL && ir_is_int(expr->arg[1], &c))
        return add_terms(sum, expr->arg[0], by * c);
    if (!stands_still(sum, expr))
        return false;
    const ir_expr *term = ir_mul(sum->cx, expr, ir_int(sum->cx, by));
    sum->rest = sum->rest ? ir_add(sum->cx, sum->rest, term) : term;
    return true;
}

/* The interval of one index; false: not such a sum, or loops of other extents. */
static bool read_off(loop_sum *sum, const ir_expr *index, const ir_expr *shape, const ir_expr **min,
                     const ir_expr **extent)
{
    int64_t width, whole, n;

    if (!ir_is_int(*extent, &width) || !add_terms(sum, index, 1))
        return false;
    for (int i = 0; i < sum->site->n_loops - sum->fixed; i++) {
        int64_t by = sum->factor[i];

        if (by == 0)
            continue;
        if (!ir_is_int(sum->site->loop[sum->fixed + i]->loop.extent, &n) || n < 1)
            return false;
        width += (by < 0 ? -by : by) * (n - 1);
        sum->constant += by < 0 ? by * (n - 1) : 0;
    }
    if (!sum->rest && ir_is_int(shape, &whole) && sum->constant <= 0 && sum->constant + width >= whole) {
        sum->constant = 0;
        width = whole;
    }
    *min = sum->rest ? ir_add(sum->cx, sum->rest, ir_int(sum->cx, sum->constant))
                     : ir_int(sum->cx, sum->constant);
    *extent = ir_int(sum->cx, width);
    return true;
}

/* All dimensions by read_off, or none: a box that is exact in some dimensions and a hull in others would be
 * right, but the general way (ir_region_over) knows the predicate, too. */
static bool read_box(const tree_view *view, const tree_site *site, const ir_region *access, int fixed,
                     ir_region *out)
{
    int n = access->buffer->n;
    const ir_expr **min = base_array(view->cx, const ir_expr *, n),
                  **extent = base_array(view->cx, const ir_expr *, n);

    for (int d = 0; d < n; d++) {
        loop_sum l = {.cx = view->cx,
                      .site = site,
                      .fixed = fixed,
                      .factor = base_array(view->cx, int64_t, site->n_loops - fixed)};

        extent[d] = access->extent[d];
        if (!read_off(&l, access->min[d], access->buffer->shape[d], &min[d], &extent[d]))
            return false;
    }
    *out = (ir_region){.buffer = access->buffer, .min = min, .extent = extent};
    return true;
}

/* The way of most accesses is read_box; a predicate, or an index that is no sum of loops with constant
 * factors, takes the general one. With `covering` the conditions at the end of the domain are dropped
 * before: the last of the tiles of 8 over 0..n has a box of 8 elements as all others have, whose elements
 * behind n nobody can use. */
ir_region tree_box(const tree_view *view, const tree_site *site, const ir_region *access, int fixed,
                   bool covering)
{
    const ir_expr *where = covering ? tree_loop_guards(view, site) : site->stmt->block.where;
    ir_subst map = tree_bindings(view->cx, site);
    const ir_region *over = ir_apply_region(view->cx, &map, access);
    ir_ranges inner = tree_inner_ranges(view->cx, site, fixed);
    ir_region box;

    if (!where && read_box(view, site, over, fixed, &box))
        return box;
    return ir_region_over(tree_site_facts(view, site, fixed), over, &inner, where);
}

const ir_expr *tree_stored_at(tec_context *cx, const tree_site *site, const ir_region *access, int d)
{
    ir_subst map = tree_bindings(cx, site);

    return ir_apply(cx, &map, access->min[d]);
}

/* ---- conditions over outer loops ---- */

/* A conjunct that uses no inner loop is the same for all of them: it decides whether the block runs at all
 * in this iteration of the outer loops. A proof that relies on the block having run must see to these
 * conjuncts (runs_with in private.c). */
void tree_outer_guards(const tree_view *view, const tree_site *site, int fixed, base_vec *out)
{
    base_vec all = {0};

    ir_conjuncts(view->cx, site->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        bool inner = false;

        for (int j = fixed; j < site->n_loops; j++)
            inner = inner || ir_uses_var(view->cx, all.at[i], site->loop[j]->loop.var);
        if (!inner)
            base_push(view->cx, out, all.at[i]);
    }
}

/* The conjunction of tree_outer_guards; NULL where there is none. */
const ir_expr *tree_outer_guard(const tree_view *view, const tree_site *site, int fixed)
{
    const ir_expr *guard = NULL;
    base_vec all = {0};

    tree_outer_guards(view, site, fixed, &all);
    for (int i = 0; i < all.n; i++)
        guard = ir_all(view->cx, guard, all.at[i]);
    return guard;
}

/* Compared word for word: what follows from other conjuncts is asked of the prover by the caller. */
bool tree_has_guard(const tree_view *view, const tree_site *site, const ir_expr *guard)
{
    base_vec all = {0}, wanted = {0};

    ir_conjuncts(view->cx, site->stmt->block.where, IR_KEEP_LIKELY, &all);
    ir_conjuncts(view->cx, guard, IR_KEEP_LIKELY, &wanted);
    for (int i = 0; i < wanted.n; i++) {
        bool found = false;

        for (int j = 0; j < all.n; j++)
            found = found || ir_same(all.at[j], wanted.at[i]);
        if (!found)
            return false;
    }
    return true;
}

/* What may be assumed at a reader that does run: its own outer guards hold. */
const ir_facts *tree_running_facts(const tree_view *view, const tree_site *site, int fixed)
{
    const ir_facts *facts = tree_site_facts(view, site, fixed);
    const ir_expr *guard = tree_outer_guard(view, site, fixed);

    if (!guard)
        return facts;
    ir_facts *known = ir_facts_new(view->cx, facts);
    ir_facts_assume(known, guard);
    return known;
}
