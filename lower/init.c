/* lower/init.c -- gives the start of each reduction a place of its own.
 *
 *     for y in 0..8 { for k in 0..n {             for y in 0..8 {
 *       block C(y = y, k reduce = k) {              block C.init(y = y) { C[y] = 0 }
 *         init { C[y] = 0 }                  =>     for k in 0..n {
 *         C[y] sum= A[y, k]                           block C(y = y, k reduce = k) { C[y] sum= A[y, k] }
 *     } } }                                       } }
 *
 * requires  a loop tree
 * provides  no block has an init
 * breaks    nothing
 *
 * The init stands before the outermost loop of its reduction, in copies of those loops inside that its
 * elements depend on: so a reduction without points still initialises, and the inner loop does not test. The
 * spatial conjuncts of the predicate guard it; those that speak of a loop of the reduction alone guard only
 * the update. Where the loops need not start at the first point of the reduction (the later part of a loop
 * that was cut), the init is either known not to be due, or it stays in place under a test that all reduce
 * variables are 0; that is right only if there is a first point and no other comes before it, so a reduction
 * that may be empty or is guarded there, or several loops of both kinds, are refused.
 *
 * Where the init may not be moved in front: the later part of a loop that was cut.
 *
 *     for k in 0..4 { block C { init; C[y] sum= A[y, k] } }        starts at k = 0: hoisted
 *     for k in 0..8 { block C'2 { C[y] sum= A[y, k + 4] } }        has no init: cut took it away
 *
 * Had the second loop an init and bounds that are not known to begin at 0, the test `k == 0` would stand in
 * place. That is only right if the point 0 exists and comes first. With two loops that mix spatial and reduce
 * variables, reordered against each other, another point of the element may come before it, and its term
 * would be overwritten by the init. So such nests are refused, with the loop's name.
 */
#include "ir/region/region.h"
#include "lower/nest.h"

typedef struct {
    ir_rewrite rw;
    base_map before; /* statement -> base_vec of the inits that go before it */
} placer;

/* The conjuncts that concern where the init stores; true where others were left out. A conjunct about reduce
 * variables alone says which terms there are, and the init is due without terms as well. */
static bool spatial_conjuncts(tec_context *cx, const tree_site *site, int at, const base_map *reduce,
                              const base_map *spatial, base_vec *out)
{
    base_vec all = {0};
    bool left_out = false;

    lower_site_conditions(cx, site, at, &all);
    for (int i = 0; i < all.n; i++) {
        base_vec vars = {0};
        bool only_reduce = false;

        ir_free_vars(cx, all.at[i], &vars);
        for (int j = 0; j < vars.n; j++)
            only_reduce |= base_map_has(reduce, vars.at[j]) && !base_map_has(spatial, vars.at[j]);
        if (only_reduce)
            left_out = true;
        else
            base_push(cx, out, all.at[i]);
    }
    return left_out;
}

/* The block of the init has the block's iteration variables except the reduce ones; its regions are those of
 * the init statement. */
static const ir_stmt *init_block(const ir_facts *facts, const tree_site *site)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_block *block = site->stmt->block.block;
    ir_block *init = ir_block_copy(cx, block);
    ir_iter *iters = base_array(cx, ir_iter, block->n_iters);
    const ir_expr **bind = base_array(cx, const ir_expr *, block->n_iters);
    base_vec reads = {0}, writes = {0};

    init->n_iters = 0;
    for (int i = 0; i < block->n_iters; i++) {
        if (block->iters[i].kind == IR_REDUCE_ITER)
            continue;
        bind[init->n_iters] = site->stmt->block.bind[i];
        iters[init->n_iters++] = block->iters[i];
    }
    ir_touched(facts, block->init, &reads, &writes);
    ir_region *read = base_array(cx, ir_region, reads.n);
    for (int i = 0; i < reads.n; i++)
        read[i] = *(const ir_region *)reads.at[i];
    init->name = base_format(cx, "%s.init", block->name);
    init->iters = iters;
    init->reads = read;
    init->n_reads = reads.n;
    init->body = block->init;
    init->init = NULL;
    return ir_block_stmt(cx, init, bind, NULL);
}

/* Reduce variables whose extent is not known to be at least 1: the first, or NULL. */
static const ir_expr *maybe_empty(const ir_facts *facts, const ir_block *block)
{
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_REDUCE_ITER &&
            !ir_prove_lt(facts, ir_int(ir_facts_context(facts), 0), block->iters[i].extent))
            return block->iters[i].var;
    return NULL;
}

/* The fuzzer plants an init that does not reach the last elements: behind it, nothing is private any more. */
static const ir_stmt *planted(tec_context *cx, const ir_stmt *init)
{
    if (!BASE_PLANT_ON(cx, reason_init) || !init || init->kind != IR_FOR)
        return init;
    return ir_for_like(cx, init, init->loop.min, ir_sub(cx, init->loop.extent, ir_int(cx, 1)),
                       init->loop.body);
}

/* Before path[at], in copies of the loops that the elements depend on; `used` holds those of the bindings.
 * facts holds there: inside the loops it would be known that they run. A copied loop that also reduces may be
 * empty exactly where the reduction is: the init would not run. */
static const ir_stmt *hoisted(const ir_facts *facts, const tree_site *site, int at, const base_map *reduce,
                              base_map *used, base_vec *guards)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_block *block = site->stmt->block.block;

    tree_domain_guards(lower_inside_copies(facts, site, at, used, guards), site->stmt, guards);
    for (int i = 0; i < guards->n; i++)
        lower_used(cx, site, at, guards->at[i], used);
    for (int i = at; i < site->n; i++) {
        const ir_stmt *p = site->path[i];

        if (p->kind == IR_FOR && base_map_has(used, p->loop.var) && base_map_has(reduce, p->loop.var) &&
            maybe_empty(facts, block))
            return base_fail(cx, TEC_INVALID, block->loc,
                             "cannot place the init of '%s': loop '%s' mixes spatial and reduce variables, "
                             "and the reduction over '%s' may be empty",
                             block->name, p->loop.var->var.name, maybe_empty(facts, block)->var.name);
    }
    return planted(cx, lower_copy_loops(cx, site, at, used,
                                        BASE_PLANT_ON(cx, init_guard) ? &(base_vec){0} : guards,
                                        init_block(facts, site)));
}

/* A fused loop visits the points of a reduction in order, but pieces of it may have been reordered: the
 * second loop from path[at] inwards of both kinds, with which another point may come before the one where all
 * reduce variables are 0. */
static const ir_stmt *mixed_loop(const tree_site *site, int at, const base_map *reduce,
                                 const base_map *spatial)
{
    int n = 0;

    for (int i = at; i < site->n; i++) {
        const ir_stmt *p = site->path[i];

        if (p->kind == IR_FOR && base_map_has(reduce, p->loop.var) && base_map_has(spatial, p->loop.var) &&
            ++n == 2)
            return p;
    }
    return NULL;
}

/* Beside the block itself, where all its reduce variables are 0. Two refusals: a mixed nest, where another
 * point may come first, and a reduction that may have no point at all. */
static const ir_stmt *in_place(const ir_facts *facts, const tree_site *site, const ir_stmt *mixed,
                               const base_vec *guards, bool guarded)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_block *block = site->stmt->block.block;
    base_vec tests = {0};

    if (mixed)
        return base_fail(cx, TEC_INVALID, block->loc,
                         "cannot place the init of '%s': its loops are not known to start at the first point "
                         "of the reduction, and '%s' is not the "
                         "only one that mixes spatial and reduce variables",
                         block->name, mixed->loop.var->var.name);
    if (guarded || maybe_empty(facts, block))
        return base_fail(cx, TEC_INVALID, block->loc,
                         "cannot place the init of '%s': its loops are not known to start at the first point "
                         "of the reduction, "
                         "which may be %s",
                         block->name, guarded ? "guarded" : "empty");
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_REDUCE_ITER)
            base_push(cx, &tests, ir_eq(cx, site->stmt->block.bind[i], ir_int(cx, 0)));
    for (int i = 0; i < guards->n; i++)
        base_push(cx, &tests, guards->at[i]);
    const ir_expr *test = ir_conjoin(cx, &tests);
    return test ? ir_if(cx, test, init_block(facts, site), NULL) : init_block(facts, site);
}

/* An axis of the reduction is empty: the init runs, and no update does, wherever the loops would begin. */
static bool is_empty(const ir_facts *program, const ir_block *block)
{
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_REDUCE_ITER &&
            ir_prove_le(program, block->iters[i].extent, ir_int(ir_facts_context(program), 0)))
            return true;
    return false;
}

/* Decides between three cases: the loops start at the first point (hoist), they never reach it (no init is
 * due), or it is not known (test in place). For the loops inside of the reduction the facts outside are used,
 * as inside a loop it would be known that the loop runs. */
static bool place(placer *self, const ir_facts *program, const tree_site *site)
{
    tec_context *cx = self->rw.cx;
    const ir_block *block = site->stmt->block.block;
    base_map reduce = {0}, spatial = {0};
    base_vec guards = {0};

    ir_at(cx, block->loc);
    lower_reduce_vars(cx, site, &reduce);
    int at = lower_reduction_at(site, &reduce);
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind != IR_REDUCE_ITER)
            lower_used(cx, site, at, site->stmt->block.bind[i], &spatial);

    const ir_facts *facts = lower_site_facts(program, site, site->n);
    bool guarded = spatial_conjuncts(cx, site, at, &reduce, &spatial, &guards);
    lower_start first = is_empty(program, block) ? LOWER_STARTS : lower_first_point(facts, site, at);
    if (first == LOWER_NEVER)
        return true;

    const ir_facts *outside = lower_site_facts(program, site, at);
    const ir_stmt *init =
        first == LOWER_STARTS
            ? hoisted(outside, site, at, &reduce, &spatial, &guards)
            : in_place(outside, site, mixed_loop(site, at, &reduce, &spatial), &guards, guarded);
    if (init)
        lower_list_add(cx, &self->before, first == LOWER_STARTS && at < site->n ? site->path[at] : site->stmt,
                       init);
    return init != NULL;
}

static const ir_stmt *without_init(tec_context *cx, const ir_stmt *stmt)
{
    ir_block *b = ir_block_copy(cx, stmt->block.block);

    b->init = NULL;
    return ir_block_stmt(cx, b, stmt->block.bind, stmt->block.where);
}

static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    const base_vec *inits = base_map_get(&((placer *)rw)->before, stmt);
    const ir_stmt *out = stmt;

    if (stmt->kind == IR_BLOCK)
        out = stmt->block.block->init ? without_init(rw->cx, stmt) : stmt;
    else
        out = ir_rewrite_stmt_children(rw, stmt);
    for (int i = inits ? inits->n - 1 : -1; i >= 0; i--)
        out = ir_seq2(rw->cx, inits->at[i], out);
    return out;
}

/* Finds for each block with an init the statement that the init goes before, then writes the tree anew with
 * the inits there. NULL with an error where a block has no such place. */
const ir_program *lower_init(const lower_options *options, const ir_program *program)
{
    placer pl = {.rw = {.cx = options->cx, .stmt = visit}};
    const ir_facts *facts = ir_facts_of_program(options->cx, program);
    tree_sites sites = tree_all_sites(options->cx, program->body);

    for (int i = 0; i < sites.n; i++) {
        const tree_site *site = &sites.at[i];

        if (site->stmt->block.block->init && !place(&pl, facts, site))
            return NULL;
    }
    return lower_with_body(options->cx, program,
                           lower_name_blocks(options->cx, ir_rewrite_stmt(&pl.rw, program->body)));
}
