/* schedule/launch.c -- env_threads: all that runs below a loop is one launch, whose blocks or threads are
 * entered once, around it.
 *
 *     for t {                                            for t.blockIdx.x in 0..4 blockIdx.x {
 *       for c.i in 0..4 blockIdx.x { block c(i = c.i) }    for t {
 *       for h.i in 0..4 blockIdx.x { block h(i = h.i) } =>   block c(i = t.blockIdx.x)
 *     }                                                      block h(i = t.blockIdx.x)
 *                                                        } }
 *
 *     env_threads(t, blockIdx.x)
 *
 * A launch for each loop over blocks, in each iteration of t, becomes one: the loops over an axis below are
 * one loop around. What a block (or thread) hands to another one would cross the iterations of that loop, so
 * they must be independent with all of t inside. Threads that do exchange values keep their loops, below one
 * loop over blocks: in there barriers stand between them. Where no loop is over an axis of blocks, the launch
 * has one.
 *
 * Tiles that threads fill together in shared memory keep their loops over threads too, inside the new ones:
 *
 *     for k {                                            for k.threadIdx.x in 0..32 threadIdx.x {
 *       for a in 0..32 threadIdx.x { tile[a] = .. }        for k {
 *       for x in 0..32 threadIdx.x {                 =>      for a in 0..32 threadIdx.x { tile[a] = .. }
 *         C[x] += tile[..]                                   C[k.threadIdx.x] += tile[..]
 *       }                                                } }
 *     }
 *
 * Each thread fills its share of the tile once, and barriers stand around that. With the new loop in place of
 * `a` too, a thread would read what another one writes in the same iteration of k.
 */
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* `left` and `extent` are found while the tree is rewritten, and judged afterwards. */
typedef struct {
    sched_call *c;
    ir_how how;
    const ir_expr *var;    /* of the new loop */
    const ir_expr *extent; /* of the loops that it takes the place of; NULL: none yet */
    const ir_stmt *left;   /* a block in no such loop */
    const ir_facts *facts;
    base_vec tiles;  /* const ir_buffer *: threads fill them together, in loops that stay */
    base_vec around; /* variables of loops and definitions, from the loop that was named to here */
} launch;

/* The loop leaves those around. */
static bool stands_free(launch *self, const ir_stmt *stmt)
{
    for (int i = 0; i < self->around.n; i++) {
        const ir_expr *var = self->around.at[i];

        if (ir_uses_var(self->c->cx, stmt->loop.extent, var))
            return sched_refuse(self->c, "the bounds of '%s' depend on '%s'", stmt->loop.var->var.name,
                                var->var.name);
    }
    return true;
}

static bool is_tile(const launch *self, const ir_buffer *buffer)
{
    for (int i = 0; i < self->tiles.n; i++)
        if (self->tiles.at[i] == buffer)
            return true;
    return false;
}

/* Whether the blocks at and below stmt write tiles alone. */
static bool fills_tiles(const launch *self, const ir_stmt *stmt)
{
    for (int i = 0; stmt->kind == IR_BLOCK && i < stmt->block.block->n_writes; i++)
        if (!is_tile(self, stmt->block.block->writes[i].buffer))
            return false;
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        if (!fills_tiles(self, tree_child(stmt, i)))
            return false;
    return true;
}

/* stmt without the loops over the axis: the new loop's variable in place of theirs. Loops and definitions on
 * the way are kept in `around`, because the extent of a loop that moves outward must not mention them. The
 * inside of a removed loop is not searched: another loop over the axis in there is refused by the checks that
 * follow. */
static const ir_stmt *without_loops(launch *self, const ir_stmt *stmt)
{
    if (stmt->kind == IR_FOR && stmt->loop.how == self->how) {
        if (self->tiles.n && fills_tiles(self, stmt))
            return stmt;
        if (!stands_free(self, stmt))
            return stmt;
        self->extent = self->extent ? self->extent : stmt->loop.extent;
        return sched_rebind(self->facts, stmt->loop.body, stmt->loop.var, self->var, NULL);
    }
    if (stmt->kind == IR_BLOCK && !self->left)
        self->left = stmt;
    int around = self->around.n;
    if (stmt->kind == IR_FOR || stmt->kind == IR_LET_STMT)
        base_push(self->c->cx, &self->around, stmt->kind == IR_FOR ? stmt->loop.var : stmt->let.var);
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        stmt = sched_with_child(self->c->cx, stmt, i, without_loops(self, tree_child(stmt, i)));
    self->around.n = around;
    return stmt;
}

/* Every statement below is the work of some block, or of some thread. */
static bool takes_all(launch *self, const char *loop)
{
    const char *axis = ir_how_text(self->how);

    if (!self->extent && sched_is_blocks(self->how))
        self->extent = ir_int(self->c->cx, 1);
    else if (!self->extent)
        return sched_refuse(self->c, "no loop in '%s' is over %s", loop, axis);
    else if (self->left)
        return sched_refuse(self->c, "'%s' stands in no loop over %s", self->left->block.block->name, axis);
    return true;
}

/* The loop over the axis around what without_loops leaves of the one at the path's end; NULL: refused. */
static const ir_stmt *entered_once(launch *self, const sched_path *at)
{
    self->extent = NULL;
    self->left = NULL;
    const ir_stmt *body = without_loops(self, sched_end(at));
    if (self->c->reason || !takes_all(self, self->c->arg[0].name))
        return NULL;
    if (BASE_PLANT_ON(self->c->cx, env_threads_extent))
        self->extent = ir_sub(self->c->cx, self->extent, ir_int(self->c->cx, 1));
    return ir_for(self->c->cx, self->var, ir_int(self->c->cx, 0), self->extent, self->how, body);
}

/* Shared memory through which threads of the new loop would exchange values: its loops stay. */
static void find_tiles(launch *self, const sched_path *at, const ir_stmt *loop)
{
    tree_sites all = tree_all_sites(self->c->cx, sched_rebuild(self->c->cx, at, at->n - 1, loop));

    for (int i = 0; sched_is_threads(self->how) && i < all.n; i++)
        for (int j = 0; tree_depth_under(&all.at[i], self->var) && j < all.at[i].block->n_writes; j++) {
            const ir_buffer *buffer = all.at[i].block->writes[j].buffer;

            if (sched_is_common_along(buffer->scope, self->how) && !is_tile(self, buffer) &&
                tree_buffer_dependence(&self->c->s->view, &all, buffer, self->var))
                base_push(self->c->cx, &self->tiles, (void *)(uintptr_t)buffer);
        }
}

/* Loops over the axis inside the one at the end of the path are those that fill tiles; none is around. */
static bool inside_is_tiles(sched_call *call, const ir_program *program, const sched_path *at, ir_how how)
{
    const ir_stmt *l = sched_end(at), *above = sched_loop_above(at, how);

    if (above)
        return sched_refuse(call, "'%s' lies inside '%s', which is %s already", l->loop.var->var.name,
                            above->loop.var->var.name, ir_how_text(how));
    return sched_inner_work_is_common(call, program, l, how);
}

/* The tree with one loop over the axis around the one at the end of the path. The facts for rewriting are
 * those around the named loop, where the new loop will stand. All checks of bind follow, on the new tree,
 * because the new loop is bound. */
static const ir_program *with_axis(sched_call *call, ir_how how)
{
    sched_path at;
    const char *name = base_format(call->cx, "%s.%s", call->arg[0].name, ir_how_text(how));

    if (!sched_need_loop(call, call->arg[0].name, &at))
        return NULL;
    launch l = {.c = call,
                .how = how,
                .var = ir_var(call->cx, sched_fresh_name(call, NULL, name), BASE_I64),
                .facts = sched_facts_at(call->s, &at, at.n - 1)};
    const ir_stmt *loop = entered_once(&l, &at);
    if (loop)
        find_tiles(&l, &at, loop);
    if (loop && l.tiles.n)
        loop = entered_once(&l, &at);
    if (!loop)
        return NULL;
    const ir_program *out = sched_with_body(call, sched_rebuild(call->cx, &at, at.n - 1, loop));
    base_push(call->cx, &call->results, l.var->var.name);
    sched_find_loop(call->cx, out->body, l.var->var.name, &at);
    if (!(l.tiles.n ? inside_is_tiles(call, out, &at, how) : sched_need_none_around(call, &at, how)) ||
        !sched_axis_agrees(call, out->body, &at, how) || !sched_nesting_fits(call, &at, how))
        return NULL;
    return sched_need_independent(call, out, loop) ? out : NULL;
}

/* A loop over blocks that stays inside is a launch of its own. */
static bool one_launch(sched_call *call, const ir_program *program)
{
    sched_path at;

    sched_find_loop(call->cx, program->body, call->arg[0].name, &at);
    for (ir_how how = IR_BLOCK_X; how <= IR_BLOCK_Z; how++) {
        const ir_stmt *inner = sched_loop_below(sched_end(&at)->loop.body, how);

        if (inner)
            return sched_refuse(call, "'%s' is %s and would stay a launch of its own in '%s'",
                                inner->loop.var->var.name, ir_how_text(how), call->arg[0].name);
    }
    return true;
}

/* env_threads(l, axes): loops over the axes stand around l, and no longer in it. Each axis is one rewrite of
 * the tree that the axis before left. The call's tree is set for the helpers, and put back at the end, as
 * sched_apply expects. */
const ir_program *sched_do_env_threads(sched_call *call)
{
    const sched_arg *axes = &call->arg[1];
    const ir_program *before = call->tree, *after = before;
    sched_path at;

    if (!sched_need_loop(call, call->arg[0].name, &at) || !sched_need_plain(call, sched_end(&at)))
        return NULL;
    if (axes->n == 0)
        return sched_refuse(call, "expected an axis that the launch around '%s' has", call->arg[0].name);
    for (int i = 0; after && i < axes->n; i++) {
        ir_how how;

        if (!sched_thread_axis(axes->names[i], &how) || how == IR_VTHREAD)
            after = sched_refuse(
                call, "'%s' is not an axis of a launch: expected blockIdx or threadIdx with .x, .y or .z",
                axes->names[i]);
        else
            after = with_axis(call, how);
        call->tree = after ? after : before;
    }
    call->tree = before;
    return after && one_launch(call, after) ? after : NULL;
}
