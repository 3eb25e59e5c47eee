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
 */
#include "ir/text.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"

/* `left` and `extent` are found while the tree is rewritten, and judged afterwards. */
typedef struct {
    sched_call *c;
    ir_how how;
    const ir_expr *var;    /* of the new loop */
    const ir_expr *extent; /* of the loops that it takes the place of; NULL: none yet */
    const ir_stmt *left;   /* a block in no such loop */
    const ir_facts *facts;
    base_vec around; /* variables of loops and definitions, from the loop that was named to here */
} launch;

/* The loop leaves those around. */
static bool stands_free(launch *l, const ir_stmt *s)
{
    for (int i = 0; i < l->around.n; i++) {
        const ir_expr *var = l->around.at[i];

        if (ir_uses_var(l->c->cx, s->loop.extent, var))
            return sched_refuse(l->c, "the bounds of '%s' depend on '%s'", s->loop.var->var.name,
                                var->var.name);
    }
    return true;
}

/* s without the loops over the axis: the new loop's variable in place of theirs. Loops and definitions on the
 * way are kept in `around`, because the extent of a loop that moves outward must not mention them. The
 * inside of a removed loop is not searched: another loop over the axis in there is refused by the checks that
 * follow. */
static const ir_stmt *without_loops(launch *l, const ir_stmt *s)
{
    if (s->kind == IR_FOR && s->loop.how == l->how) {
        if (!stands_free(l, s))
            return s;
        l->extent = l->extent ? l->extent : s->loop.extent;
        return sched_rebind(l->facts, s->loop.body, s->loop.var, l->var, NULL);
    }
    if (s->kind == IR_BLOCK && !l->left)
        l->left = s;
    int around = l->around.n;
    if (s->kind == IR_FOR || s->kind == IR_LET_STMT)
        base_push(l->c->cx, &l->around, s->kind == IR_FOR ? s->loop.var : s->let.var);
    for (int i = 0, n = tree_n_children(s); i < n; i++)
        s = sched_with_child(l->c->cx, s, i, without_loops(l, tree_child(s, i)));
    l->around.n = around;
    return s;
}

/* Every statement below is the work of some block, or of some thread. */
static bool takes_all(launch *l, const char *loop)
{
    const char *axis = ir_how_text(l->how);

    if (!l->extent && sched_is_blocks(l->how))
        l->extent = ir_int(l->c->cx, 1);
    else if (!l->extent)
        return sched_refuse(l->c, "no loop in '%s' is over %s", loop, axis);
    else if (l->left)
        return sched_refuse(l->c, "'%s' stands in no loop over %s", l->left->block.block->name, axis);
    return true;
}

/* The tree with one loop over the axis around the one at the end of the path. The facts for rewriting are
 * those around the named loop, where the new loop will stand. All checks of bind follow, on the new tree,
 * because the new loop is bound. */
static const ir_program *with_axis(sched_call *c, ir_how how)
{
    sched_path at;
    const char *name = base_format(c->cx, "%s.%s", c->arg[0].name, ir_how_text(how));

    if (!sched_need_loop(c, c->arg[0].name, &at))
        return NULL;
    launch l = {.c = c,
                .how = how,
                .var = ir_var(c->cx, sched_fresh_name(c, NULL, name), BASE_I64),
                .facts = sched_facts_at(c->s, &at, at.n - 1)};
    const ir_stmt *body = without_loops(&l, sched_end(&at));
    if (c->reason || !takes_all(&l, c->arg[0].name))
        return NULL;
    if (BASE_PLANT_ON(c->cx, env_threads_extent))
        l.extent = ir_sub(c->cx, l.extent, ir_int(c->cx, 1));
    const ir_stmt *loop = ir_for(c->cx, l.var, ir_int(c->cx, 0), l.extent, how, body);
    const ir_program *out = sched_with_body(c, sched_rebuild(c->cx, &at, at.n - 1, loop));
    base_push(c->cx, &c->results, l.var->var.name);
    sched_find_loop(c->cx, out->body, l.var->var.name, &at);
    if (!sched_need_none_around(c, &at, how) || !sched_axis_agrees(c, out->body, loop, how) ||
        !sched_nesting_fits(c, &at, how))
        return NULL;
    return sched_need_independent(c, out, loop) ? out : NULL;
}

/* A loop over blocks that stays inside is a launch of its own. */
static bool one_launch(sched_call *c, const ir_program *p)
{
    sched_path at;

    sched_find_loop(c->cx, p->body, c->arg[0].name, &at);
    for (ir_how how = IR_BLOCK_X; how <= IR_BLOCK_Z; how++) {
        const ir_stmt *inner = sched_loop_below(sched_end(&at)->loop.body, how);

        if (inner)
            return sched_refuse(c, "'%s' is %s and would stay a launch of its own in '%s'",
                                inner->loop.var->var.name, ir_how_text(how), c->arg[0].name);
    }
    return true;
}

/* env_threads(l, axes): loops over the axes stand around l, and no longer in it. Each axis is one rewrite of
 * the tree that the axis before left. The call's tree is set for the helpers, and put back at the end, as
 * sched_apply expects. */
const ir_program *sched_do_env_threads(sched_call *c)
{
    const sched_arg *axes = &c->arg[1];
    const ir_program *before = c->tree, *after = before;
    sched_path at;

    if (!sched_need_loop(c, c->arg[0].name, &at) || !sched_need_plain(c, sched_end(&at)))
        return NULL;
    if (axes->n == 0)
        return sched_refuse(c, "expected an axis that the launch around '%s' has", c->arg[0].name);
    for (int i = 0; after && i < axes->n; i++) {
        ir_how how;

        if (!sched_thread_axis(axes->names[i], &how) || how == IR_VTHREAD)
            after = sched_refuse(
                c, "'%s' is no axis of a launch: expected blockIdx or threadIdx with .x, .y or .z",
                axes->names[i]);
        else
            after = with_axis(c, how);
        c->tree = after ? after : before;
    }
    c->tree = before;
    return after && one_launch(c, after) ? after : NULL;
}
