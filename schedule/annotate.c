/* schedule/annotate.c -- how loops run (parallel, vectorised, unrolled), and pragmas. Thread axes are
 * bind.c's.
 *
 * Whatever runs at the same time must be independent (docs/loop-tree.md, "What always holds"); the lanes of a
 * reduction may share its result where the combiner allows one partial result each. Unrolled loops keep their
 * order, so that only the size counts.
 */
#include <string.h>

#include "base/limit.h"
#include "ir/calls.h"
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* Past this, a slip in the schedule is likelier than a wish. */
enum { MAX_LANES = 1024 };

const ir_program *sched_annotate_loop(sched_call *call, const sched_path *at, ir_how how)
{
    ir_stmt *l = ir_stmt_copy(call->cx, sched_end(at));

    l->loop.how = how;
    if (how == IR_UNROLLED && BASE_PLANT_ON(call->cx, unroll_extent))
        l->loop.extent = ir_sub(call->cx, l->loop.extent, ir_int(call->cx, 1));
    return sched_with_body(call, sched_rebuild(call->cx, at, at->n - 1, l));
}

bool sched_need_plain(sched_call *call, const ir_stmt *loop)
{
    if (loop->loop.how != IR_SERIAL)
        sched_refuse(call, "loop '%s' is %s already", loop->loop.var->var.name, ir_how_text(loop->loop.how));
    return loop->loop.how == IR_SERIAL;
}

bool sched_need_independent(sched_call *call, const ir_program *program, const ir_stmt *loop)
{
    tree_sites all = tree_all_sites(call->cx, program->body);
    const char *reason = tree_dependence(&call->s->view, &all, loop->loop.var);

    if (reason)
        sched_refuse(call, "%s", reason);
    return !reason;
}

/* The limit bounds what later passes write out: copies of a body, lanes of a vector, threads of a launch. */
bool sched_need_constant(sched_call *call, const ir_stmt *loop, int64_t limit)
{
    int64_t n;

    if (!ir_is_int(loop->loop.extent, &n))
        sched_refuse(call, "the extent '%s' of '%s' is not a constant",
                     ir_expr_text(call->cx, loop->loop.extent), loop->loop.var->var.name);
    else if (n > limit)
        sched_refuse(call, "'%s' has %lld iterations; the limit is %lld", loop->loop.var->var.name,
                     (long long)n, (long long)limit);
    else
        return true;
    return false;
}

/* The outermost such loop on the first path that has one. */
const ir_stmt *sched_loop_below(const ir_stmt *stmt, ir_how how)
{
    if (stmt->kind == IR_FOR && stmt->loop.how == how)
        return stmt;
    for (int i = 0, n = tree_n_children(stmt); i < n; i++) {
        const ir_stmt *found = sched_loop_below(tree_child(stmt, i), how);

        if (found)
            return found;
    }
    return NULL;
}

const ir_stmt *sched_loop_above(const sched_path *at, ir_how how)
{
    for (int i = 0; i < at->n - 1; i++)
        if (at->link[i].stmt->kind == IR_FOR && at->link[i].stmt->loop.how == how)
            return at->link[i].stmt;
    return NULL;
}

/* Loops of these kinds do not nest: neither around nor below the loop may stand one of the same kind. */
bool sched_need_none_around(sched_call *call, const sched_path *at, ir_how how)
{
    const ir_stmt *l = sched_end(at), *above = sched_loop_above(at, how),
                  *below = sched_loop_below(l->loop.body, how);

    if (above)
        sched_refuse(call, "'%s' lies inside '%s', which is %s already", l->loop.var->var.name,
                     above->loop.var->var.name, ir_how_text(how));
    else if (below)
        sched_refuse(call, "'%s' lies inside '%s' and is %s already", below->loop.var->var.name,
                     l->loop.var->var.name, ir_how_text(how));
    return !above && !below;
}

/* The blocks and threads of a launch are all that runs there at the same time, and only one thread of the
 * host launches. */
static bool need_no_launch(sched_call *call, const sched_path *at)
{
    const ir_stmt *l = sched_end(at);

    for (ir_how how = IR_BLOCK_X; how <= IR_THREAD_Z; how++) {
        const ir_stmt *above = sched_loop_above(at, how), *below = sched_loop_below(l->loop.body, how);

        if (above || below)
            return sched_refuse(call, "'%s' would run as parallel %s '%s', which is %s",
                                l->loop.var->var.name, above ? "inside" : "around",
                                (above ? above : below)->loop.var->var.name, ir_how_text(how));
    }
    return true;
}

/* parallel(l): its iterations run on several threads. */
const ir_program *sched_do_parallel(sched_call *call)
{
    sched_path at;

    if (!sched_need_loop(call, call->arg[0].name, &at) || !sched_need_plain(call, sched_end(&at)) ||
        !sched_need_none_around(call, &at, IR_PARALLEL) || !need_no_launch(call, &at) ||
        (!BASE_PLANT_ON(call->cx, parallel_race) &&
         !sched_need_independent(call, call->tree, sched_end(&at))))
        return NULL;
    const ir_stmt *lanes = sched_loop_above(&at, IR_VECTORISED);
    if (lanes)
        return sched_refuse(call, "'%s' lies inside '%s', which is vectorised", call->arg[0].name,
                            lanes->loop.var->var.name);
    return sched_annotate_loop(call, &at, IR_PARALLEL);
}

/* Bounds of inner loops must be the same for all lanes. */
static bool lanes_agree(sched_call *call, const ir_stmt *stmt, const ir_expr *lane)
{
    if (stmt->kind == IR_FOR && ir_uses_var(call->cx, stmt->loop.extent, lane)) {
        sched_refuse(call, "the bounds of '%s' depend on '%s'", stmt->loop.var->var.name, lane->var.name);
        return false;
    }
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        if (!lanes_agree(call, tree_child(stmt, i), lane))
            return false;
    return true;
}

/* Lanes are made by rewriting the body of each block over vectors. The body of an opaque block and that of a
 * tensorized one are not ours to rewrite. */
static bool nothing_opaque(sched_call *call, const ir_stmt *loop)
{
    tree_sites below = tree_all_sites(call->cx, loop->loop.body);

    for (int i = 0; i < below.n; i++) {
        if (sched_is_tensorized(below.at[i].block))
            return sched_refuse(call, "'%s' is tensorized and cannot run in lanes", below.at[i].block->name);
        for (int j = 0; j < below.at[i].block->n_iters; j++)
            if (below.at[i].block->iters[j].kind == IR_OPAQUE) {
                sched_refuse(call, "'%s' is opaque and cannot run in lanes", below.at[i].block->name);
                return false;
            }
    }
    return true;
}

/* Only loops stand between l and its block. Anything else beside the block would run once for each lane and
 * see partial results. */
static bool single_block(const ir_stmt *stmt)
{
    while (stmt->kind == IR_FOR)
        stmt = stmt->loop.body;
    return stmt->kind == IR_BLOCK;
}

/* The element would depend on the lane: then lanes do not share one result. */
static bool binds_spatial(sched_call *call, const tree_site *site, const ir_expr *var)
{
    for (int i = 0; i < site->block->n_iters; i++)
        if (site->block->iters[i].kind != IR_REDUCE_ITER &&
            ir_uses_var(call->cx, site->stmt->block.bind[i], var))
            return true;
    return false;
}

/* Each lane or thread may sum its own share of a reduction, if the shares may be combined in another order.
 *
 *     for k vectorised { block C(k reduce = k) { C[y] sum= A[y, k] } }
 *
 * Lane i sums its own terms into a partial result, and the partial results are combined afterwards. So the
 * block must be one update (there is nothing else to repeat per lane), the element must not depend on the
 * lane, and the combiner must be declared to allow another order of the terms. A block that reads C would see
 * an unfinished sum. */
bool sched_need_partial_results(sched_call *call, const ir_stmt *loop, const tree_site *site)
{
    const char *name = loop->loop.var->var.name, *block = site->block->name;
    const ir_stmt *update = ir_only_update(site->block->body);

    if (!single_block(loop->loop.body))
        sched_refuse(call, "'%s' is a reduction loop of '%s', and other statements stand below it", name,
                     block);
    else if (binds_spatial(call, site, loop->loop.var))
        sched_refuse(call, "loop '%s' runs over a spatial and a reduction axis of '%s'", name, block);
    else if (!update)
        sched_refuse(call, "'%s' is a reduction loop of '%s', whose body is not a single update", name,
                     block);
    else if (!update->update.combiner->reorders)
        sched_refuse(
            call,
            "'%s' is a reduction loop of '%s', whose combiner is not declared associative and commutative",
            name, block);
    else if (tree_has_effect(call->cx, site->block->body))
        sched_refuse(call, "'%s' calls a function with an effect", block);
    else if (tree_reads(site->block, site->block->writes[0].buffer))
        sched_refuse(call, "'%s' reads what it writes, '%s'", block, site->block->writes[0].buffer->name);
    else
        return true;
    return false;
}

/* The lanes (or threads) of a reduction get a partial result each; all others must be independent. */
static bool need_lanes(sched_call *call, const ir_stmt *loop)
{
    tree_sites below = tree_all_sites(call->cx, loop), all = tree_all_sites(call->cx, call->tree->body);

    for (int i = 0; i < below.n; i++)
        if (tree_kind_for(call->cx, &below.at[i], loop->loop.var) == IR_REDUCE_ITER)
            return sched_need_partial_results(call, loop, tree_site_named(&all, below.at[i].block->name));
    return BASE_PLANT_ON(call->cx, vectorize_race) || sched_need_independent(call, call->tree, loop);
}

/* One thread runs all lanes of a vectorised loop. */
static bool holds_no_threads(sched_call *call, const ir_stmt *loop)
{
    for (ir_how how = IR_PARALLEL; how < IR_N_HOWS; how++) {
        const ir_stmt *threads = sched_is_parallel(how) ? sched_loop_below(loop->loop.body, how) : NULL;

        if (threads)
            return sched_refuse(call, "'%s' lies inside '%s' and is %s", threads->loop.var->var.name,
                                loop->loop.var->var.name, ir_how_text(how));
    }
    return true;
}

/* vectorize(l): its iterations are the lanes of vector operations. */
const ir_program *sched_do_vectorize(sched_call *call)
{
    sched_path at;

    if (!sched_need_loop(call, call->arg[0].name, &at) || !sched_need_plain(call, sched_end(&at)) ||
        !sched_need_constant(call, sched_end(&at), MAX_LANES) ||
        !sched_need_none_around(call, &at, IR_VECTORISED) || !nothing_opaque(call, sched_end(&at)) ||
        !lanes_agree(call, sched_end(&at)->loop.body, sched_end(&at)->loop.var) ||
        !need_lanes(call, sched_end(&at)) || !holds_no_threads(call, sched_end(&at)))
        return NULL;
    return sched_annotate_loop(call, &at, IR_VECTORISED);
}

/* Past the limit, a slip in the schedule is likelier than a wish. */
static bool few_copies(sched_call *call, const ir_stmt *loop)
{
    int64_t n;

    if (!ir_is_int(loop->loop.extent, &n) || n <= base_limit(call->cx, BASE_LIMIT_unrolled_copies))
        return true;
    return sched_refuse(call, "'%s' has %lld iterations; %s", loop->loop.var->var.name, (long long)n,
                        base_limit_text(call->cx, BASE_LIMIT_unrolled_copies));
}

/* unroll(l): its body is written out. */
const ir_program *sched_do_unroll(sched_call *call)
{
    sched_path at;

    if (!sched_need_loop(call, call->arg[0].name, &at) || !sched_need_plain(call, sched_end(&at)) ||
        !sched_need_constant(call, sched_end(&at), INT64_MAX) || !few_copies(call, sched_end(&at)))
        return NULL;
    return sched_annotate_loop(call, &at, IR_UNROLLED);
}

/* ---- pragmas ---- */

/* A copy of the loop with the note; an older note under the same key is replaced. */
static const ir_program *note_on_loop(sched_call *call, const sched_path *at)
{
    ir_stmt *l = ir_stmt_copy(call->cx, sched_end(at));

    l->loop.notes = ir_note_set(call->cx, l->loop.notes, call->arg[1].name, call->arg[2].expr);
    return sched_with_body(call, sched_rebuild(call->cx, at, at->n - 1, l));
}

/* pragma(loop or block, key, value): a note for later passes. Keys that lowering acts on by itself are
 * refused here. A pipeline is checked when it is made; a note under the same name, set by hand, would skip
 * these checks. */
const ir_program *sched_do_pragma(sched_call *call)
{
    sched_path at;

    if (!call->arg[2].expr)
        return sched_refuse(call, "expected a value of the pragma, found none");
    if (strncmp(call->arg[1].name, "pipeline", 8) == 0 || strcmp(call->arg[1].name, "double_buffer") == 0 ||
        strcmp(call->arg[1].name, IR_ASYNC_COPY) == 0)
        return sched_refuse(
            call, "'%s' is not a pragma: use the steps pipeline and double_buffer, which check the loop",
            call->arg[1].name);
    if (sched_find_loop(call->cx, call->tree->body, call->arg[0].name, &at))
        return note_on_loop(call, &at);
    if (!sched_find_block(call->cx, call->tree->body, call->arg[0].name, &at))
        return sched_refuse(call, "there is no loop or block '%s'", call->arg[0].name);
    ir_block *block = ir_block_copy(call->cx, sched_end(&at)->block.block);
    block->notes = ir_note_set(call->cx, block->notes, call->arg[1].name, call->arg[2].expr);
    block->init = BASE_PLANT_ON(call->cx, pragma_init) ? NULL : block->init;
    return sched_with_body(
        call, sched_rebuild(call->cx, &at, at.n - 1, sched_with_block(call->cx, sched_end(&at), block)));
}
