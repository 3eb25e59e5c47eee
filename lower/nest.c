/* lower/nest.c -- conditions and loops around a block, and copies of those loops.
 *
 * Several passes take a statement out of a reduction (its init, the start and end of partial results) and put
 * it in front of or behind the outermost loop of the reduction. There it needs copies of those loops that its
 * elements depend on, and no others:
 *
 *     for y { let w = y*2 in for k { for x { block C(y = w, x = x, k reduce = k) } } }
 *
 *     place: loop k (lower_reduction_at); elements: w, x; used: {w, y, x}
 *     copies around the init at k's place:   for x { block C.init(y = w, x = x) }
 *
 * The let and the loop y stand outside of the place and are shared.
 */
#include "lower/nest.h"

static void add_vars(tec_context *cx, const ir_expr *expr, base_map *set)
{
    base_vec vars = {0};

    if (expr)
        ir_free_vars(cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        base_map_put(cx, set, vars.at[i], vars.at[i]);
}

/* Adds what expr depends on through the lets and bounds between `at` and the block. From the inside out,
 * since a bound may mention a variable of a loop further out. */
void lower_used(tec_context *cx, const tree_site *site, int at, const ir_expr *expr, base_map *used)
{
    add_vars(cx, expr, used);
    for (int i = site->n - 1; i >= at; i--) {
        const ir_stmt *p = site->path[i];

        if (p->kind == IR_LET_STMT && base_map_has(used, p->let.var))
            add_vars(cx, p->let.value, used);
        if (p->kind == IR_FOR && base_map_has(used, p->loop.var)) {
            add_vars(cx, p->loop.min, used);
            add_vars(cx, p->loop.extent, used);
        }
    }
}

/* Loops and lets that feed reduce variables. A let counts together with what its value mentions; loops that
 * merely bound another one do not. */
void lower_reduce_vars(tec_context *cx, const tree_site *site, base_map *out)
{
    const ir_block *block = site->stmt->block.block;
    base_map all = {0};

    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_REDUCE_ITER)
            add_vars(cx, site->stmt->block.bind[i], &all);
    for (int i = site->n - 1; i >= 0; i--) {
        const ir_stmt *p = site->path[i];
        const ir_expr *var = p->kind == IR_LET_STMT ? p->let.var : p->kind == IR_FOR ? p->loop.var : NULL;

        if (!var || !base_map_has(&all, var))
            continue;
        base_map_put(cx, out, var, var);
        if (p->kind == IR_LET_STMT)
            add_vars(cx, p->let.value, &all);
    }
}

/* site->n, the place of the block itself: no loop around it takes part in the reduction. */
int lower_reduction_at(const tree_site *site, const base_map *reduce_vars)
{
    for (int i = 0; i < site->n; i++)
        if (site->path[i]->kind == IR_FOR && base_map_has(reduce_vars, site->path[i]->loop.var))
            return i;
    return site->n;
}

/* All reduce bindings at the least values of the inner loops: all 0 means that the loops begin at the first
 * point; one that is greater than 0 means that the point 0 is not among theirs. */
lower_start lower_first_point(const ir_facts *facts, const tree_site *site, int at)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_block *block = site->stmt->block.block;
    base_vec inner = {0};
    lower_start all = LOWER_STARTS;

    for (int i = site->n - 1; i >= at; i--)
        if (site->path[i]->kind == IR_FOR)
            base_push(cx, &inner, site->path[i]->loop.var);
    for (int i = 0; i < block->n_iters; i++) {
        const ir_expr *min = site->stmt->block.bind[i], *max;

        if (block->iters[i].kind != IR_REDUCE_ITER)
            continue;
        if (inner.n > 0 && !ir_eliminate(facts, site->stmt->block.bind[i], (const ir_expr *const *)inner.at,
                                         inner.n, &min, &max))
            all = LOWER_UNKNOWN;
        else if (ir_prove_lt(facts, ir_int(cx, 0), min))
            return LOWER_NEVER;
        else if (!ir_prove_equal(facts, min, ir_int(cx, 0)))
            all = LOWER_UNKNOWN;
    }
    return all;
}

/* Whether site->path[i] is an `if` whose else branch leads on to the block. */
static bool in_else(const tree_site *site, int i)
{
    const ir_stmt *next = i + 1 < site->n ? site->path[i + 1] : site->stmt;

    return site->path[i]->branch.then != next;
}

/* Conditions of `if` statements, negated in an else branch, and the block's predicate, as conjuncts. Hints
 * are dropped. */
void lower_site_conditions(tec_context *cx, const tree_site *site, int at, base_vec *out)
{
    for (int i = at; i < site->n; i++) {
        if (site->path[i]->kind != IR_IF)
            continue;
        if (in_else(site, i))
            base_push(cx, out, ir_not(cx, site->path[i]->branch.cond));
        else
            ir_conjuncts(cx, site->path[i]->branch.cond, IR_DROP_LIKELY, out);
    }
    ir_conjuncts(cx, site->stmt->block.where, IR_DROP_LIKELY, out);
}

/* The copies get variables of their own at the end, as the originals stay in the tree. */
const ir_stmt *lower_copy_loops(tec_context *cx, const tree_site *site, int at, const base_map *used,
                                const base_vec *conjuncts, const ir_stmt *inner)
{
    const ir_expr *guard = ir_conjoin(cx, conjuncts);

    if (guard)
        inner = ir_if(cx, guard, inner, NULL);
    for (int i = site->n - 1; i >= at; i--) {
        const ir_stmt *p = site->path[i];

        if ((p->kind == IR_FOR && base_map_has(used, p->loop.var)) ||
            (p->kind == IR_LET_STMT && base_map_has(used, p->let.var)))
            inner = lower_with_inner(cx, p, inner);
    }
    return inner ? ir_rename(cx, inner) : NULL;
}

/* From the outside in, since the facts of a loop build on those around it. */
const ir_facts *lower_site_facts(const ir_facts *facts, const tree_site *site, int at)
{
    for (int i = 0; i < at; i++) {
        const ir_stmt *p = site->path[i];

        facts = p->kind == IR_IF && in_else(site, i) ? lower_inside_else(facts, p) : lower_inside(facts, p);
    }
    return facts;
}

/* Each copied loop runs where its body does, so that its extent is at least 1. */
const ir_facts *lower_inside_copies(const ir_facts *outside, const tree_site *site, int at,
                                    const base_map *used, const base_vec *guards)
{
    ir_facts *facts = ir_facts_new(ir_facts_context(outside), outside);

    for (int i = at; i < site->n; i++) {
        const ir_stmt *p = site->path[i];

        if (p->kind == IR_FOR && base_map_has(used, p->loop.var))
            ir_facts_range(facts, p->loop.var, p->loop.min, p->loop.extent);
        else if (p->kind == IR_LET_STMT && base_map_has(used, p->let.var))
            ir_facts_value(facts, p->let.var, p->let.value);
    }
    for (int i = 0; i < guards->n; i++)
        ir_facts_assume(facts, guards->at[i]);
    return facts;
}
