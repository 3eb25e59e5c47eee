/* schedule/bind.c -- loops that run over the thread axes of a device: blocks of threads, threads, virtual
 * threads.
 *
 *     for C.y { for C.k.0 { for C.k.1 threadIdx.x {    bind(C.k.1, threadIdx.x): each thread sums its share
 *                                                        of the row
 *       block C(y = C.y, k reduce = C.k.0*32 + C.k.1)
 *     } } }
 *
 * What runs at the same time must be independent. The threads of a reduction may share its result, where the
 * combiner allows one partial result each: lowering gives them those, and one thread writes the result
 * (lower/threads.c). So the result must lie where all threads see it, for as long as the tree binds the loop:
 * sched_apply holds every step against sched_hidden_result.
 */
#include <string.h>

#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/place.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

bool sched_thread_axis(const char *word, ir_how *how)
{
    for (int i = IR_BLOCK_X; i < IR_N_HOWS; i++)
        if (strcmp(ir_how_text((ir_how)i), word) == 0) {
            *how = (ir_how)i;
            return true;
        }
    return false;
}

/* blockIdx outside threadIdx; both outside of what runs on one thread's own.
 *
 *     for i blockIdx.x { for j threadIdx.x { .. } }        fits
 *     for i threadIdx.x { for j blockIdx.x { .. } }    a thread cannot start blocks: refused for i and for j
 *     for i parallel { for j threadIdx.x { .. } }          a launch per worker: refused
 */
bool sched_nesting_fits(sched_call *call, const sched_path *at, ir_how how)
{
    const ir_stmt *l = sched_end(at), *above = NULL, *below = NULL;

    for (ir_how other = IR_PARALLEL; other < IR_N_HOWS; other++) {
        if (!above && (other == IR_PARALLEL || other == IR_VECTORISED ||
                       (sched_is_blocks(how) && sched_is_threads(other))))
            above = sched_loop_above(at, other);
        if (!below && (other == IR_PARALLEL || (sched_is_threads(how) && sched_is_blocks(other))))
            below = sched_loop_below(l->loop.body, other);
    }
    if (above)
        sched_refuse(call, "'%s' would run as %s inside '%s', which is %s", l->loop.var->var.name,
                     ir_how_text(how), above->loop.var->var.name, ir_how_text(above->loop.how));
    else if (below)
        sched_refuse(call, "'%s' would run as %s around '%s', which is %s", l->loop.var->var.name,
                     ir_how_text(how), below->loop.var->var.name, ir_how_text(below->loop.how));
    return !above && !below;
}

/* Every loop over the axis below stmt has the extent of the loop. */
static bool agrees_below(sched_call *call, const ir_stmt *stmt, const ir_stmt *loop, ir_how how)
{
    if (stmt->kind == IR_FOR && stmt->loop.how == how && !ir_is_value(stmt->loop.extent, 1) &&
        !ir_prove_equal(call->s->view.facts, stmt->loop.extent, loop->loop.extent)) {
        sched_refuse(call, "%s has %s iterations at '%s', but %s at '%s'", ir_how_text(how),
                     ir_expr_text(call->cx, loop->loop.extent), loop->loop.var->var.name,
                     ir_expr_text(call->cx, stmt->loop.extent), stmt->loop.var->var.name);
        return false;
    }
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        if (!agrees_below(call, tree_child(stmt, i), loop, how))
            return false;
    return true;
}

/* The extents of an axis of threads are equal everywhere, those of blocks in one launch. Loops over blocks
 * that do not lie in each other are launches of their own, each with as many blocks as it wants.
 *
 *     for y.0 in 0..28 blockIdx.x { .. }  for x.0 in 0..7 blockIdx.x { .. }      two launches: accepted
 */
bool sched_axis_agrees(sched_call *call, const ir_stmt *body, const sched_path *at, ir_how how)
{
    const ir_stmt *loop = sched_end(at), *launch = sched_is_blocks(how) ? loop : body;

    /* the outermost loop over blocks around; the loop itself may not be bound yet */
    for (int i = at->n - 2; i >= 0 && sched_is_blocks(how); i--)
        if (at->link[i].stmt->kind == IR_FOR && sched_is_blocks(at->link[i].stmt->loop.how))
            launch = at->link[i].stmt;
    return agrees_below(call, launch, loop, how);
}

/* ---- one axis twice ---- */

/* The loop over the axis between loop and the block; NULL: none. */
static const ir_stmt *inner_loop(const tree_site *site, const ir_stmt *loop, ir_how how)
{
    for (int i = tree_depth_under(site, loop->loop.var); i < site->n_loops; i++)
        if (site->loop[i]->loop.how == how)
            return site->loop[i];
    return NULL;
}

/* What the threads of an inner loop over l's axis do for all of loop: it is the same in each iteration of
 * loop, so that each thread does its share once, and lies where all see it.
 *
 *     for C.x in 0..32 threadIdx.x {
 *       for ax in 0..32 threadIdx.x { tile[ax] = A[C.k*32 + ax] }     # the same work for every C.x
 *       block C ... reads tile
 *     }
 *
 * The tree says that each of 32 threads fills the whole tile. On the device each thread fills one element,
 * and all 32 together fill the tile once. Both give the same tile if the work does not mention C.x, may run
 * any number of times, and lies in memory that all the threads share. */
static bool need_common_work(sched_call *call, const tree_site *site, const ir_stmt *loop,
                             const ir_stmt *inner, ir_how how)
{
    const char *name = loop->loop.var->var.name, *why = tree_not_idempotent(call->cx, site->block);
    bool differs = ir_uses_var(call->cx, site->stmt->block.where, loop->loop.var);

    for (int i = 0; i < site->block->n_iters; i++)
        differs = differs || ir_uses_var(call->cx, site->stmt->block.bind[i], loop->loop.var);
    if (differs || why || tree_kind_for(call->cx, site, inner->loop.var) != IR_SPATIAL)
        return sched_refuse(
            call, "'%s' lies inside '%s' and is %s already, and '%s' is not the same for all of its threads",
            inner->loop.var->var.name, name, ir_how_text(inner->loop.how), site->block->name);
    for (int i = 0; i < site->block->n_writes; i++)
        if (!sched_is_common_along(site->block->writes[i].buffer->scope, how))
            return sched_refuse(
                call, "the threads of '%s' do '%s' together, but '%s' is not in shared memory",
                inner->loop.var->var.name, site->block->name, site->block->writes[i].buffer->name);
    return true;
}

/* The loop of one iteration over the axis around l, which compute_at made: l takes its place. NULL: none. */
static const ir_stmt *stand_in(const sched_path *at, ir_how how)
{
    const ir_stmt *found = NULL;

    for (int i = 0; i < at->n - 1; i++) {
        const ir_stmt *stmt = at->link[i].stmt;

        if (stmt->kind == IR_FOR && stmt->loop.how == how)
            found = ir_is_value(stmt->loop.extent, 1) ? stmt : NULL;
    }
    return found;
}

/* The tree without that loop, whose one iteration stays. */
static const ir_program *without_stand_in(sched_call *call, const sched_path *at, const ir_stmt *unit)
{
    for (int i = 0; i < at->n - 1; i++)
        if (at->link[i].stmt == unit)
            return sched_with_body(call, sched_rebuild(call->cx, at, i,
                                                       ir_substitute_stmt(call->cx, unit->loop.body,
                                                                          unit->loop.var, unit->loop.min)));
    return NULL;
}

bool sched_inner_work_is_common(sched_call *call, const ir_program *program, const ir_stmt *loop, ir_how how)
{
    tree_sites all = tree_all_sites(call->cx, program->body);

    for (int i = 0; i < all.n; i++) {
        const ir_stmt *inner =
            tree_depth_under(&all.at[i], loop->loop.var) ? inner_loop(&all.at[i], loop, how) : NULL;

        if (inner && !need_common_work(call, &all.at[i], loop, inner, how))
            return false;
    }
    return true;
}

/* A loop of one iteration over the axis around another loop: the first thread runs it alone. So the threads
 * of a loop inside would do one share of the work and leave the others undone:
 *
 *     for S.first.z in 0..1 threadIdx.z { for ax in 0..3 threadIdx.z { tile[ax] = .. } }     tile[0] alone
 */
static bool need_no_lone_thread(sched_call *call, const sched_path *at, ir_how how)
{
    const ir_stmt *l = sched_end(at);

    for (int i = 0; i < at->n - 1 && !ir_is_value(l->loop.extent, 1); i++) {
        const ir_stmt *around = at->link[i].stmt;

        if (around->kind == IR_FOR && around->loop.how == how && ir_is_value(around->loop.extent, 1))
            return sched_refuse(call, "'%s' lies in '%s', which the first thread of %s runs alone",
                                l->loop.var->var.name, around->loop.var->var.name, ir_how_text(how));
    }
    return true;
}

/* A thread axis may be bound again inside, by what the threads do together: the fetching of a tile that all
 * of them use. Two situations lead here: the new loop stands inside a loop over its axis, or around one. In
 * the first the refusal names the outer loop instead of the block whose work differs. */
static bool need_axis_free(sched_call *call, const sched_path *at, ir_how how)
{
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const ir_stmt *l = sched_end(at);

    const ir_stmt *above = sched_loop_above(at, how);

    if (!sched_is_threads(how))
        return sched_need_none_around(call, at, how);
    if (!need_no_lone_thread(call, at, how))
        return false;
    for (int i = 0; above && i < all.n; i++)
        if (tree_depth_under(&all.at[i], l->loop.var) && !need_common_work(call, &all.at[i], above, l, how)) {
            call->reason = NULL;
            return sched_need_none_around(call, at, how);
        }
    return sched_inner_work_is_common(call, call->tree, l, how);
}

/* ---- reductions over threads ---- */

static bool runs_on_threads(const tree_site *site, const ir_stmt *loop)
{
    return sched_is_threads(loop->loop.how) && tree_depth_under(site, loop->loop.var);
}

const ir_stmt *sched_reducing_threads(tec_context *cx, const tree_site *site)
{
    const ir_stmt *found = NULL;

    for (int i = 0; i < site->n_loops; i++)
        if (sched_is_threads(site->loop[i]->loop.how) &&
            tree_kind_for(cx, site, site->loop[i]->loop.var) == IR_REDUCE_ITER)
            found = site->loop[i];
    return found;
}

/* All uses of the buffer lie under one loop over threads, so that each thread has its own. */
static bool belongs_to_thread(const tree_sites *all, const tree_site *site, const ir_buffer *buffer)
{
    for (int i = 0; i < site->n_loops; i++) {
        bool everywhere = true;

        for (int j = 0; j < all->n; j++)
            if (tree_reads(all->at[j].block, buffer) || tree_writes(all->at[j].block, buffer))
                everywhere = everywhere && runs_on_threads(&all->at[j], site->loop[i]);
        if (everywhere && sched_is_threads(site->loop[i]->loop.how))
            return true;
    }
    return false;
}

/* All threads of a reduction must see its result: one of them writes it after the partial results are
 * combined. Local and warp memory belong to one thread (or a few), and so does a global buffer that is used
 * under the threads alone, since lowering will give each thread a copy. */
const char *sched_hidden_result(tec_context *cx, const ir_program *program)
{
    tree_sites all = tree_all_sites(cx, program->body);

    for (int i = 0; i < all.n; i++) {
        const tree_site *site = &all.at[i];
        const ir_stmt *l = sched_reducing_threads(cx, site);

        for (int j = 0; l && j < site->block->n_writes; j++) {
            const ir_buffer *buffer = site->block->writes[j].buffer;

            if (buffer->scope == IR_LOCAL || buffer->scope == IR_WARP ||
                (buffer->scope == IR_GLOBAL && !tree_is_parameter(program, buffer) &&
                 belongs_to_thread(&all, site, buffer)))
                return base_format(cx,
                                   "'%s' is a reduction over the threads of '%s', and its result '%s' is not "
                                   "where all of them see it",
                                   site->block->name, l->loop.var->var.name, buffer->name);
        }
    }
    return NULL;
}

/* No block between the outermost loop of the reduction and loop goes on with what is not complete. Threads
 * combine once, after the outermost reduction loop. A block inside this loop would read the result before,
 * where each thread still holds its share. */
static bool need_complete_result(sched_call *call, const tree_site *site, const ir_stmt *loop)
{
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    int top = 0;

    while (tree_kind_for(call->cx, site, site->loop[top]->loop.var) != IR_REDUCE_ITER)
        top++;
    for (int i = 0; i < all.n; i++)
        for (int j = 0; j < site->block->n_writes; j++) {
            const ir_block *block = all.at[i].block;
            const ir_buffer *result = site->block->writes[j].buffer;

            if (block == site->block || !tree_depth_under(&all.at[i], site->loop[top]->loop.var) ||
                (!tree_reads(block, result) && !tree_writes(block, result)))
                continue;
            sched_refuse(
                call, "'%s' is a reduction loop of '%s', and '%s' uses '%s' before the reduction is complete",
                loop->loop.var->var.name, site->block->name, block->name, result->name);
            return false;
        }
    return true;
}

static const tree_site *reduced_by(sched_call *call, const tree_sites *all, const ir_stmt *loop)
{
    for (int i = 0; i < all->n; i++)
        if (tree_depth_under(&all->at[i], loop->loop.var) &&
            tree_kind_for(call->cx, &all->at[i], loop->loop.var) == IR_REDUCE_ITER)
            return &all->at[i];
    return NULL;
}

/* The innermost loop that a block has in common with the blocks which read what it writes, below the loop of
 * `var`: where compute_at put it. NULL: none, or a loop of its own is annotated, which a new nest would
 * lose. */
static const ir_stmt *place_of_stage(const tree_sites *all, const tree_site *site, const ir_expr *var)
{
    int common = site->n_loops;

    for (int i = 0; i < all->n; i++)
        for (int j = 0; j < site->block->n_writes; j++)
            if (&all->at[i] != site && tree_reads(all->at[i].block, site->block->writes[j].buffer)) {
                int n = tree_common_loops(&all->at[i], site);
                common = n < common ? n : common;
            }
    for (int i = common; i < site->n_loops; i++)
        if (site->loop[i]->loop.how != IR_SERIAL &&
            !(sched_is_threads(site->loop[i]->loop.how) && ir_is_value(site->loop[i]->loop.extent, 1)))
            return NULL;
    return common > 0 && common < site->n_loops && tree_depth_under(site, var) <= common
               ? site->loop[common - 1]
               : NULL;
}

static bool writes_common_alone(const tree_site *writer, ir_how how)
{
    for (int j = 0; j < writer->block->n_writes; j++)
        if (!sched_is_common_along(writer->block->writes[j].buffer->scope, how))
            return false;
    return writer->block->n_writes > 0;
}

/* Whether the loops around a stage that was placed again are as independent as they have to be. */
static bool fits_around(sched_call *call, const ir_program *program, const char *to)
{
    sched_path at;

    return sched_find_loop(call->cx, program->body, to, &at) &&
           sched_still_independent(call, &at, program->body);
}

/* Stages in shared memory below a new loop over threads, placed again: what one thread needed of them becomes
 * what all need. Before the loop was bound, each stage was computed for one iteration of it. Placing a stage
 * again (compute_at the same loop) widens its box to all threads, since it writes shared memory.
 *
 *     bind(y, threadIdx.y):  for y threadIdx.y { for k { B.shared[k, :];  A.shared[y, k];  C += .. } }
 *
 * All threads write the same B.shared, each its own row of A.shared. Both are placed again, because loops of
 * both may be dealt out among the threads afterwards. Judged one by one, A.shared would be refused for the
 * sake of B.shared, so the loops are judged when all stages are placed; if they depend on each other then,
 * the tree stays as it is, and bind refuses the loop. Each stage is looked up by name, because a stage that
 * moved stands at another place in the list of sites. */
static const ir_program *share_stages(sched_call *call, const ir_program *program, const ir_expr *var,
                                      ir_how how)
{
    const ir_program *before = call->tree, *after = program;
    tree_sites all = tree_all_sites(call->cx, program->body);
    base_vec targets = {0};
    bool fit = true;

    if (!tree_dependence(&call->s->view, &all, var))
        return program;
    for (int i = 0; i < all.n; i++) {
        tree_sites now = tree_all_sites(call->cx, after->body);
        const tree_site *w = tree_site_named(&now, all.at[i].block->name); /* a stage moves behind others */
        const ir_stmt *to =
            tree_depth_under(w, var) && writes_common_alone(w, how) ? place_of_stage(&now, w, var) : NULL;

        if (!to)
            continue;
        call->tree = after;
        const ir_program *placed = sched_place_tile(call, w->block->name, to->loop.var->var.name);
        call->tree = before;
        call->reason = NULL;
        after = placed ? placed : after;
        if (placed)
            base_push(call->cx, &targets, (void *)(uintptr_t)to->loop.var->var.name);
    }
    call->tree = after;
    for (int i = 0; fit && i < targets.n; i++)
        fit = fits_around(call, after, targets.at[i]);
    call->tree = before;
    call->reason = NULL;
    return fit ? after : program;
}

/* The checks of bind, for the loop at the end of the path. A reduction loop has rules of its own and is not
 * held to be independent: its iterations do share the result. The order: what can be seen of the loop alone
 * (its extent, its axis, its nesting), then what the engine of dependences says. A stage in shared memory
 * that the threads fill together is dealt out among them before that question, since it is independent only
 * then. */
static const ir_program *bind_at(sched_call *call, const sched_path *at, ir_how how)
{
    const ir_stmt *l = sched_end(at);
    int64_t limit =
        call->s->target && call->s->target->max_threads ? call->s->target->max_threads : INT32_MAX;
    if ((sched_is_threads(how) || how == IR_VTHREAD) && !sched_need_constant(call, l, limit))
        return NULL;
    if (how != IR_VTHREAD &&
        !(need_axis_free(call, at, how) && sched_axis_agrees(call, call->tree->body, at, how)))
        return NULL;
    if (!sched_nesting_fits(call, at, how))
        return NULL;

    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const tree_site *reduction = sched_is_threads(how) ? reduced_by(call, &all, l) : NULL;
    if (reduction)
        return sched_need_partial_results(call, l, reduction) && need_complete_result(call, reduction, l)
                   ? sched_annotate_loop(call, at, how)
                   : NULL;
    const ir_program *out = sched_annotate_loop(call, at, how);
    if (out && sched_is_threads(how))
        out = share_stages(call, out, l->loop.var, how);
    return BASE_PLANT_ON(call->cx, bind_race) || sched_need_independent(call, out, l) ? out : NULL;
}

/* ---- tiles that were shaped before the threads around them ---- */

/* The step that placed the block last; -1: none. */
static int placed_by(const sched *s, const char *block)
{
    int i = s->steps.n - 1;

    while (i >= 0) {
        const sched_step *step = s->steps.at[i];

        if (step->primitive->run == sched_do_compute_at && base_same(step->arg[0].name, block))
            break;
        i--;
    }
    return i;
}

/* The step behind the placing of the tiles inside the loop that threads along the axis share, if a later step
 * shaped one of them; 0: none did. Names of loops begin with the block's. */
static int before_shaping(sched_call *call, ir_how how)
{
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const base_vec *steps = &call->s->steps;
    sched_path at;
    int first = 0;
    bool shaped = false;

    if (!sched_need_loop(call, call->arg[0].name, &at))
        return 0;
    for (int i = 0; i < all.n; i++) {
        const char *name = all.at[i].block->name;
        size_t n = strlen(name);

        if (!tree_depth_under(&all.at[i], sched_end(&at)->loop.var) || !writes_common_alone(&all.at[i], how))
            continue;
        int placed = placed_by(call->s, name);
        first = placed >= first ? placed + 1 : first;
        for (int k = placed + 1; placed >= 0 && k < steps->n; k++) {
            const sched_step *step = steps->at[k];
            const char *made = step->n_results ? step->result[0] : "";

            shaped = shaped || (strncmp(made, name, n) == 0 && made[n] == '.');
        }
    }
    return shaped && first < steps->n ? first : 0;
}

static bool same_step(const sched *s, const sched_step *step)
{
    const sched_step *made = s->steps.at[s->steps.n - 1];
    bool same = made->n_results == step->n_results;

    for (int i = 0; same && i < step->n_results; i++)
        same = base_same(made->result[i], step->result[i]);
    return same;
}

/* The tree of the same steps in another order: this bind right behind the placing of the tiles. Bound there,
 * the threads make the tiles larger, and the steps that shaped the tiles divide what all threads need:
 *
 *     compute_at(A.shared, k)  a0, a1 = split(A.shared.ax, _, 32)  bind(x, threadIdx.x)
 * =>  compute_at(A.shared, k)  bind(x, threadIdx.x)  a0, a1 = split(A.shared.ax, _, 32)
 *
 * NULL: no tile stands in the way, or the steps do not fit the larger tiles. Then the bind stays refused for
 * the reason that it had. */
static const ir_program *bind_earlier(sched_call *call)
{
    const sched *s = call->s;
    ir_how how;
    int first = sched_thread_axis(call->arg[1].name, &how) ? before_shaping(call, how) : 0;
    sched *again = first > 0 ? sched_new(call->cx, s->plain, s->target) : NULL;

    if (!again)
        return NULL;
    again->intrinsics = s->intrinsics;
    again->def = s->def;
    for (int i = 0; i < s->steps.n; i++) {
        const sched_step *step = s->steps.at[i];

        if (i == first && !sched_apply(again, "bind", call->arg, 2, NULL, NULL))
            return NULL;
        if (!sched_apply(again, step->primitive->name, step->arg, step->n_args, NULL, NULL) ||
            !same_step(again, step))
            return NULL;
    }
    return again->view.program;
}

/* A stage that was placed again has lost what split its loops. */
static bool has_all_loops(sched_call *call, const ir_stmt *stmt, const ir_program *after)
{
    sched_path at;

    if (stmt->kind == IR_FOR && !sched_find_loop(call->cx, after->body, stmt->loop.var->var.name, &at))
        return false;
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        if (!has_all_loops(call, tree_child(stmt, i), after))
            return false;
    return true;
}

/* bind(l, threadIdx.x): its iterations are threads, blocks of threads, or virtual threads of the device.
 * compute_at leaves a loop of one iteration over the axis around a stage, so that one thread does the work
 * until the user says who shares it. If the loop stands in such a one, it takes its place. */
const ir_program *sched_do_bind(sched_call *call)
{
    sched_path at;
    ir_how how;

    if (!sched_thread_axis(call->arg[1].name, &how))
        return sched_refuse(call,
                            "'%s' is not a thread axis: expected blockIdx.x, blockIdx.y, blockIdx.z, "
                            "threadIdx.x, threadIdx.y, threadIdx.z or vthread",
                            call->arg[1].name);
    if (!sched_need_loop(call, call->arg[0].name, &at) || !sched_need_plain(call, sched_end(&at)))
        return NULL;
    const ir_stmt *unit = sched_is_threads(how) ? stand_in(&at, how) : NULL;
    if (unit) {
        const ir_program *before = call->tree;

        call->tree = without_stand_in(call, &at, unit);
        bool found = call->tree && sched_need_loop(call, call->arg[0].name, &at);
        const ir_program *out = found ? bind_at(call, &at, how) : NULL;
        call->tree = before;
        return out;
    }
    const ir_program *out = bind_at(call, &at, how);
    if (!sched_is_threads(how) || (out && has_all_loops(call, call->tree->body, out)))
        return out;
    const char *reason = call->reason;
    call->reason = NULL;
    const ir_program *earlier = bind_earlier(call);
    call->reason = earlier ? NULL : reason;
    return earlier ? earlier : out;
}
