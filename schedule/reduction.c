/* schedule/reduction.c -- decompose_reduction: the initialisation of a reduction becomes a block of its own.
 *
 *     for C.y { for C.k { for C.x {          for C.y { for C.init.x { block C.init { C[y, x] = 0 } }
 *       block C { init .. update } }}}  =>             for C.k { for C.x { block C { C[y, x] sum= ... } } } }
 *
 *     C.init = decompose_reduction(C, C.k)
 *
 * What each check prevents, for C[y, x] sum= A[y, k]*B[k, x]:
 *
 *     depth       for k { for y { .. } }, l = y     the init in front of y would run once for each k
 *     loops_fit   a loop f of y and k together      the init nest would need a half of f
 *     init_guard  where y + k < n                   neither keeping nor dropping it for the init is right
 *     injective   an instance that runs twice       initialised once, but updated twice
 *
 * A block with a scan variable keeps its step loops outside: each step has an init of its own.
 */
#include <string.h>

#include "ir/reason/facts.h"
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* The loops from l inwards, seen from the reduction. */
typedef struct {
    sched_call *c;
    const tree_site *site;
    int depth; /* loops outside l */
    const char *loop;
} split_off;

/* A step of a scan is one for the initialisation as well: its loops count as spatial. */
static bool is_spatial(const ir_iter *it)
{
    return it->kind == IR_SPATIAL || it->kind == IR_SCAN;
}

static bool binds_kind(const split_off *divided, const ir_expr *var, bool spatial)
{
    for (int i = 0; i < divided->site->block->n_iters; i++)
        if (is_spatial(&divided->site->block->iters[i]) == spatial &&
            ir_uses_var(divided->c->cx, divided->site->stmt->block.bind[i], var))
            return true;
    return false;
}

/* The nest of the init gets copies of the loops that do not reduce. So each loop must be of one kind, and
 * the bounds of a loop that is copied must not mention a loop that is not. decompose_reduction(C, j) puts
 * the init in front of j, in copies of the loops from j inwards that move along elements. A loop that
 * reduces outside of j would run the init once for each of its terms. */
static bool loops_fit(split_off *divided)
{
    const char *name = divided->site->block->name;

    for (int i = 0; i < divided->site->n_loops; i++) {
        const ir_expr *var = divided->site->loop[i]->loop.var;
        bool reduces = binds_kind(divided, var, false);

        if (i < divided->depth && reduces)
            return sched_refuse(divided->c, "'%s', a reduction loop of '%s', lies outside '%s'",
                                var->var.name, name, divided->loop);
        if (reduces && binds_kind(divided, var, true))
            return sched_refuse(divided->c, "loop '%s' runs over a spatial and a reduction axis of '%s'",
                                var->var.name, name);
        for (int j = divided->depth; !reduces && j < i; j++)
            if (binds_kind(divided, divided->site->loop[j]->loop.var, false) &&
                ir_uses_var(divided->c->cx, divided->site->loop[i]->loop.extent,
                            divided->site->loop[j]->loop.var))
                return sched_refuse(divided->c, "the bounds of '%s' depend on the reduction loop '%s'",
                                    var->var.name, divided->site->loop[j]->loop.var->var.name);
    }
    return true;
}

/* Adds that no spatial axis is empty, where the loops around the init do not say so. */
static void domain_guard(split_off *divided, const ir_expr **guard)
{
    tec_context *cx = divided->c->cx;
    ir_facts *facts = ir_facts_new(cx, divided->c->s->view.facts);
    base_vec conditions = {0};

    for (int i = 0; i < divided->site->n_loops; i++) {
        const ir_stmt *loop = divided->site->loop[i];

        if (i < divided->depth || !binds_kind(divided, loop->loop.var, false))
            ir_facts_range(facts, loop->loop.var, loop->loop.min, loop->loop.extent);
    }
    if (*guard)
        ir_facts_assume(facts, *guard);
    tree_domain_guards(facts, divided->site->stmt, &conditions);
    for (int i = 0; i < conditions.n; i++)
        *guard = ir_all(cx, *guard, conditions.at[i]);
}

/* The conjuncts that guard the initialisation: those without a reduction loop. `where y < n && k < 10` gives
 * the guard y < n: an element whose terms are all left out is initialised all the same. A conjunct over
 * both, as y + k < n, cannot be decided for an element without its terms: refused. */
static bool init_guard(split_off *divided, const ir_expr **guard)
{
    base_vec all = {0};

    *guard = NULL;
    ir_conjuncts(divided->c->cx, divided->site->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        bool spatial = false, reduces = false;

        for (int j = 0; j < divided->site->n_loops; j++) {
            const ir_expr *var = divided->site->loop[j]->loop.var;
            if (!ir_uses_var(divided->c->cx, all.at[i], var))
                continue;
            reduces = reduces || binds_kind(divided, var, false);
            spatial = spatial || !binds_kind(divided, var, false);
        }
        if (reduces && spatial)
            return sched_refuse(divided->c, "the predicate '%s' depends on spatial and on reduction loops",
                                ir_expr_text(divided->c->cx, all.at[i]));
        if (!reduces)
            *guard = ir_all(divided->c->cx, *guard, all.at[i]);
    }
    domain_guard(divided, guard);
    return true;
}

static const char *init_name(sched_call *call, const char *block, const char *loop)
{
    size_t n = strlen(block);
    const char *rest = strncmp(loop, block, n) == 0 && loop[n] == '.' ? loop + n + 1 : loop;

    return sched_fresh_name(call, NULL, base_format(call->cx, "%s.init.%s", block, rest));
}

/* The block of the initialisation over iteration variables of its own; `bind` receives the spatial bindings.
 * The variables are new ones, since both blocks stand in one tree and each owns its variables. */
static const ir_block *init_block(split_off *divided, const ir_expr **bind)
{
    tec_context *cx = divided->c->cx;
    const ir_block *block = divided->site->block;
    ir_block *init = base_new(cx, ir_block);
    ir_iter *iters = base_array(cx, ir_iter, block->n_iters);
    const ir_stmt *body = block->init;

    for (int i = 0; i < block->n_iters; i++) {
        if (!is_spatial(&block->iters[i]))
            continue;
        ir_iter *it = &iters[init->n_iters];
        *it = block->iters[i];
        it->var = ir_var(cx, block->iters[i].var->var.name, BASE_I64);
        body = body ? ir_substitute_stmt(cx, body, block->iters[i].var, it->var) : NULL;
        bind[init->n_iters++] = divided->site->stmt->block.bind[i];
    }
    init->name = sched_fresh_name(divided->c, NULL, base_format(cx, "%s.init", block->name));
    init->role = block->role;
    init->iters = iters;
    init->body = body;
    init->loc = block->loc;
    return body ? sched_refresh(divided->c->s->view.facts, init) : NULL;
}

/* The loops of the init run as the originals do (parallel, vectorised), over variables with new names; `map`
 * carries the bindings, the guard and the bounds over to them. */
static const ir_stmt *init_nest(split_off *divided, const ir_expr *guard)
{
    tec_context *cx = divided->c->cx;
    const ir_expr **bind = base_array(cx, const ir_expr *, divided->site->block->n_iters);
    const ir_block *init = init_block(divided, bind);
    ir_subst map = {0};

    for (int i = divided->depth; i < divided->site->n_loops; i++) {
        const ir_expr *var = divided->site->loop[i]->loop.var;
        if (!binds_kind(divided, var, false))
            base_map_put(
                cx, &map.vars, var,
                ir_var(cx, init_name(divided->c, divided->site->block->name, var->var.name), BASE_I64));
    }
    for (int i = 0; init && i < init->n_iters; i++)
        bind[i] = ir_apply(cx, &map, bind[i]);
    const ir_stmt *stmt =
        init ? ir_block_stmt(cx, init, bind, guard ? ir_apply(cx, &map, guard) : NULL) : NULL;
    for (int i = divided->site->n_loops - 1; stmt && i >= divided->depth; i--) {
        const ir_stmt *l = divided->site->loop[i];
        const ir_expr *var = base_map_get(&map.vars, l->loop.var);
        if (var)
            stmt = ir_for(cx, var, l->loop.min,
                          BASE_PLANT_ON(cx, decompose_extent) ? ir_sub(cx, l->loop.extent, ir_int(cx, 1))
                                                              : ir_apply(cx, &map, l->loop.extent),
                          l->loop.how, stmt);
    }
    return stmt;
}

/* The elements that are initialised before the loop are still so when their updates come. */
static bool stays_initialised(const split_off *divided)
{
    const ir_block *block = divided->site->block;
    bool several = false;

    for (int i = divided->depth; i < divided->site->n_loops; i++)
        several = several || binds_kind(divided, divided->site->loop[i]->loop.var, true);
    for (int i = 0; several && i < block->n_writes; i++)
        if (!tree_writes_once(&divided->c->s->view, block, &block->writes[i]))
            return sched_refuse(
                divided->c,
                "'%s' overwrites elements of '%s' under '%s', and all of them would be initialised before",
                block->name, block->writes[i].buffer->name, divided->loop);
    return true;
}

/* decompose_reduction(S, l): S.init runs before l, S only updates. The block that is split off has the same
 * role and place in the source. The first path is found again after the update lost its init, as the tree is
 * another one then. */
const ir_program *sched_do_decompose_reduction(sched_call *call)
{
    sched_path at, block;
    const char *reason;
    const ir_expr *guard;

    if (!sched_need_block(call, call->arg[0].name, &block) || !sched_need_loop(call, call->arg[1].name, &at))
        return NULL;
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    split_off d = {.c = call, .site = tree_site_named(&all, call->arg[0].name), .loop = call->arg[1].name};
    const ir_block *b = d.site->block;
    d.depth = tree_depth_under(d.site, sched_end(&at)->loop.var) - 1;
    if (!b->init)
        return sched_refuse(call, "'%s' has no initialisation to take out", b->name);
    if (d.depth < 0)
        return sched_refuse(call, "'%s' does not lie under '%s'", b->name, d.loop);
    if (d.site->branches)
        return sched_refuse(call, "'%s' stands under a condition", b->name);
    if (tree_step_depth(&call->s->view, d.site) > d.depth)
        return sched_refuse(call, "'%s' lies outside a scan loop of '%s'", d.loop, b->name);
    if (!tree_reads_other_steps(&call->s->view, d.site, d.depth))
        return sched_refuse(call,
                            "'%s' reads what it writes, and the initialisation would come before all of '%s'",
                            b->name, d.loop);
    if (!loops_fit(&d) || !init_guard(&d, &guard) || !stays_initialised(&d))
        return NULL;
    if (!tree_injective(&call->s->view, d.site, d.depth, &reason))
        return sched_refuse(call, "the instances of '%s' under '%s' are not proven to be distinct: %s",
                            b->name, d.loop, reason);

    const ir_stmt *nest = init_nest(&d, guard);
    ir_block *update = ir_block_copy(call->cx, b);
    update->init = NULL;
    const ir_stmt *body =
        sched_rebuild(call->cx, &block, block.n - 1, sched_with_block(call->cx, sched_end(&block), update));
    if (!nest || !body || !sched_find_var(call->cx, body, sched_end(&at)->loop.var, &at))
        return NULL;
    base_push(call->cx, &call->results, base_format(call->cx, "%s.init", b->name));
    return sched_with_body(call,
                           sched_rebuild(call->cx, &at, at.n - 1, ir_seq2(call->cx, nest, sched_end(&at))));
}
