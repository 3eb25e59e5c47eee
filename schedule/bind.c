/* schedule/bind.c -- loops that run over the thread axes of a device: blocks of threads, threads, virtual threads.
 *
 *     for C.y { for C.k.0 { for C.k.1 threadIdx.x {       bind(C.k.1, threadIdx.x): each thread sums its share of the row
 *       block C(y = C.y, k reduce = C.k.0*32 + C.k.1)
 *     } } }
 *
 * What runs at the same time must be independent. The threads of a reduction may share its result, where the combiner allows one
 * partial result each: lowering gives them those, and one thread writes the result (lower/threads.c). So the result must lie where
 * all threads see it, for as long as the tree binds the loop: sched_apply holds every step against sched_hidden_result.
 */
#include <string.h>

#include "ir/text.h"
#include "schedule/state.h"

bool sched_thread_axis(const char *word, ir_how *how)
{
    for (int i = IR_BLOCK_X; i < IR_N_HOWS; i++)
        if (strcmp(ir_how_text((ir_how)i), word) == 0) {
            *how = (ir_how)i;
            return true;
        }
    return false;
}

/* blockIdx outside threadIdx; both outside of what runs on one thread's own. */
bool sched_nesting_fits(sched_call *c, const sched_path *at, ir_how how)
{
    const ir_stmt *l = sched_end(at), *above = NULL, *below = NULL;

    for (ir_how other = IR_PARALLEL; other < IR_N_HOWS; other++) {
        if (!above && (other == IR_PARALLEL || other == IR_VECTORISED || (sched_is_blocks(how) && sched_is_threads(other))))
            above = sched_loop_above(at, other);
        if (!below && (other == IR_PARALLEL || (sched_is_threads(how) && sched_is_blocks(other))))
            below = sched_loop_below(l->loop.body, other);
    }
    if (above)
        sched_refuse(c, "'%s' would run as %s inside '%s', which is %s", l->loop.var->var.name, ir_how_text(how),
                     above->loop.var->var.name, ir_how_text(above->loop.how));
    else if (below)
        sched_refuse(c, "'%s' would run as %s around '%s', which is %s", l->loop.var->var.name, ir_how_text(how),
                     below->loop.var->var.name, ir_how_text(below->loop.how));
    return !above && !below;
}

/* The extents of one thread axis are equal everywhere. */
bool sched_axis_agrees(sched_call *c, const ir_stmt *s, const ir_stmt *l, ir_how how)
{
    if (s->kind == IR_FOR && s->loop.how == how && !ir_prove_equal(c->s->facts, s->loop.extent, l->loop.extent)) {
        sched_refuse(c, "%s has %s iterations at '%s', but %s at '%s'", ir_how_text(how), ir_expr_text(c->cx, l->loop.extent),
                     l->loop.var->var.name, ir_expr_text(c->cx, s->loop.extent), s->loop.var->var.name);
        return false;
    }
    for (int i = 0, n = sched_n_children(s); i < n; i++)
        if (!sched_axis_agrees(c, sched_child(s, i), l, how))
            return false;
    return true;
}

/* ---- one axis twice ---- */

/* The loop over the axis between l and the block; NULL: none. */
static const ir_stmt *inner_loop(const sched_site *site, const ir_stmt *l, ir_how how)
{
    for (int i = sched_depth_under(site, l->loop.var); i < site->n_loops; i++)
        if (site->loop[i]->loop.how == how)
            return site->loop[i];
    return NULL;
}

/* What the threads of an inner loop over l's axis do for all of l: it is the same in each iteration of l, so that each thread does its
 * share once, and lies where all see it. */
static bool need_common_work(sched_call *c, const sched_site *site, const ir_stmt *l, const ir_stmt *inner)
{
    const char *name = l->loop.var->var.name, *why = sched_not_idempotent(c->cx, site->block);
    bool differs = sched_mentions(c->cx, site->stmt->block.where, l->loop.var);

    for (int i = 0; i < site->block->n_iters; i++)
        differs = differs || sched_mentions(c->cx, site->stmt->block.bind[i], l->loop.var);
    if (differs || why || sched_kind_for(c->cx, site, inner->loop.var) != IR_SPATIAL)
        return sched_refuse(c, "'%s' lies inside '%s' and is %s already, and '%s' is not the same for all of its threads",
                            inner->loop.var->var.name, name, ir_how_text(inner->loop.how), site->block->name);
    for (int i = 0; i < site->block->n_writes; i++)
        if (site->block->writes[i].buffer->scope != IR_SHARED)
            return sched_refuse(c, "the threads of '%s' do '%s' together, but '%s' is not in shared memory", inner->loop.var->var.name,
                                site->block->name, site->block->writes[i].buffer->name);
    return true;
}

/* A thread axis may be bound again inside, by what the threads do together: the fetching of a tile that all of them use. */
static bool need_axis_free(sched_call *c, const sched_path *at, ir_how how)
{
    sched_sites all = sched_all_sites(c->cx, c->tree->body);
    const ir_stmt *l = sched_end(at);

    if (!sched_is_threads(how) || sched_loop_above(at, how))
        return sched_need_none_around(c, at, how);
    for (int i = 0; i < all.n; i++) {
        const ir_stmt *inner = sched_depth_under(&all.at[i], l->loop.var) ? inner_loop(&all.at[i], l, how) : NULL;

        if (inner && !need_common_work(c, &all.at[i], l, inner))
            return false;
    }
    return true;
}

/* ---- reductions over threads ---- */

static bool runs_on_threads(const sched_site *site, const ir_stmt *l)
{
    return sched_is_threads(l->loop.how) && sched_depth_under(site, l->loop.var);
}

const ir_stmt *sched_reducing_threads(tec_context *cx, const sched_site *site)
{
    const ir_stmt *found = NULL;

    for (int i = 0; i < site->n_loops; i++)
        if (sched_is_threads(site->loop[i]->loop.how) && sched_kind_for(cx, site, site->loop[i]->loop.var) == IR_REDUCE_ITER)
            found = site->loop[i];
    return found;
}

/* All uses of the buffer lie under one loop over threads, so that each thread has its own. */
static bool belongs_to_thread(const sched_sites *all, const sched_site *site, const ir_buffer *b)
{
    for (int i = 0; i < site->n_loops; i++) {
        bool everywhere = true;

        for (int j = 0; j < all->n; j++)
            if (sched_reads(all->at[j].block, b) || sched_writes(all->at[j].block, b))
                everywhere = everywhere && runs_on_threads(&all->at[j], site->loop[i]);
        if (everywhere && sched_is_threads(site->loop[i]->loop.how))
            return true;
    }
    return false;
}

const char *sched_hidden_result(tec_context *cx, const ir_program *p)
{
    sched_sites all = sched_all_sites(cx, p->body);

    for (int i = 0; i < all.n; i++) {
        const sched_site *site = &all.at[i];
        const ir_stmt *l = sched_reducing_threads(cx, site);

        for (int j = 0; l && j < site->block->n_writes; j++) {
            const ir_buffer *b = site->block->writes[j].buffer;

            if (b->scope == IR_LOCAL || b->scope == IR_WARP ||
                (b->scope == IR_GLOBAL && !sched_is_output(p, b) && belongs_to_thread(&all, site, b)))
                return base_format(cx, "'%s' is a reduction over the threads of '%s', and its result '%s' is not where all of them see it",
                                   site->block->name, l->loop.var->var.name, b->name);
        }
    }
    return NULL;
}

/* No block between the outermost loop of the reduction and l goes on with what is not complete. */
static bool need_complete_result(sched_call *c, const sched_site *site, const ir_stmt *l)
{
    sched_sites all = sched_all_sites(c->cx, c->tree->body);
    int top = 0;

    while (sched_kind_for(c->cx, site, site->loop[top]->loop.var) != IR_REDUCE_ITER)
        top++;
    for (int i = 0; i < all.n; i++)
        for (int j = 0; j < site->block->n_writes; j++) {
            const ir_block *b = all.at[i].block;
            const ir_buffer *result = site->block->writes[j].buffer;

            if (b == site->block || !sched_depth_under(&all.at[i], site->loop[top]->loop.var) ||
                (!sched_reads(b, result) && !sched_writes(b, result)))
                continue;
            sched_refuse(c, "'%s' is a reduction loop of '%s', and '%s' uses '%s' before the reduction is complete",
                         l->loop.var->var.name, site->block->name, b->name, result->name);
            return false;
        }
    return true;
}

static const sched_site *reduced_by(sched_call *c, const sched_sites *all, const ir_stmt *l)
{
    for (int i = 0; i < all->n; i++)
        if (sched_depth_under(&all->at[i], l->loop.var) &&
            sched_kind_for(c->cx, &all->at[i], l->loop.var) == IR_REDUCE_ITER)
            return &all->at[i];
    return NULL;
}

/* bind(l, threadIdx.x): its iterations are threads, blocks of threads, or virtual threads of the device. */
const ir_program *sched_do_bind(sched_call *c)
{
    sched_path at;
    ir_how how;

    if (!sched_thread_axis(c->arg[1].name, &how))
        return sched_refuse(c,
                            "'%s' is no thread axis: expected blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, "
                            "threadIdx.z or vthread",
                            c->arg[1].name);
    if (!sched_need_loop(c, c->arg[0].name, &at) || !sched_need_plain(c, sched_end(&at)))
        return NULL;
    const ir_stmt *l = sched_end(&at);
    int64_t limit = c->s->target && c->s->target->max_threads ? c->s->target->max_threads : INT32_MAX;
    if ((sched_is_threads(how) || how == IR_VTHREAD) && !sched_need_constant(c, l, limit))
        return NULL;
    if (how != IR_VTHREAD && !(need_axis_free(c, &at, how) && sched_axis_agrees(c, c->tree->body, l, how)))
        return NULL;
    if (!sched_nesting_fits(c, &at, how))
        return NULL;

    sched_sites all = sched_all_sites(c->cx, c->tree->body);
    const sched_site *reduction = sched_is_threads(how) ? reduced_by(c, &all, l) : NULL;
    if (reduction)
        return sched_need_partial_results(c, l, reduction) && need_complete_result(c, reduction, l)
                   ? sched_annotate_loop(c, &at, how)
                   : NULL;
    const ir_program *out = sched_annotate_loop(c, &at, how);
    return BASE_PLANT_ON(c->cx, bind_race) || sched_need_independent(c, out, l) ? out : NULL;
}
