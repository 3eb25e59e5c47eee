/* schedule/threads.c -- which memory the threads of a GPU may use, held after every step.
 *
 *     # P must be shared memory
 *     for x in 0..4 threadIdx.x { P[..] = ... }  for y in 0..4 threadIdx.x { C = ... P[..] ... }
 *
 * Between the statements of a tree stand no barriers yet; a later pass places those that memory asks for
 * which all threads see. So what threads hand to each other within a launch is shared memory, or an argument.
 * Other global and local memory may go from a block to another where both stand under the same loops of
 * threads. A block outside of the loops of a thread axis writes local memory in every thread, and any other
 * in the first thread of that axis only, so no block does both. Of local memory alone each thread has its
 * own; outside of the launch there is none to ask for. Lanes have no shared memory of their own. Shared and
 * local memory live as long as a launch: where loops around make one launch after another, each writes what
 * it reads there. A loop over blocks that holds another one is no launch: what stands beside the inner one is
 * on the host, or launched by its own loops over threads.
 */
#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "tree/touch.h"

typedef struct {
    /* of the launch: the blockIdx loop, where it holds no other, or else the outermost threadIdx loop; NULL:
     * on the host */
    const ir_stmt *root;
    const ir_stmt *blocks;  /* the innermost blockIdx loop around the block; NULL: none */
    const ir_stmt *loop[3]; /* by axis; NULL: none around the block */
    int missing;            /* axes that the launch has, and the block does not */
} place;

/* The thread axes of the loops below s, and of s itself, as bits. */
static int axes_below(const ir_stmt *s)
{
    int axes = s->kind == IR_FOR && sched_is_threads(s->loop.how) ? 1 << (s->loop.how - IR_THREAD_X) : 0;

    for (int i = 0, n = tree_n_children(s); i < n; i++)
        axes |= axes_below(tree_child(s, i));
    return axes;
}

/* A loop over blocks below l, which takes the launch from it; NULL: none. */
static const ir_stmt *blocks_below(const ir_stmt *l)
{
    const ir_stmt *found = NULL;

    for (ir_how how = IR_BLOCK_X; how <= IR_BLOCK_Z && !found; how++)
        found = sched_loop_below(l->loop.body, how);
    return found;
}

/* The launch begins at the innermost loop over blocks, unless this loop holds another one on some path: then
 * its statements are not in one launch, and loops over threads below start launches of their own. */
static place place_of(const tree_site *site)
{
    place p = {0};
    int bound = 0;

    for (int i = 0; i < site->n_loops; i++)
        if (sched_is_blocks(site->loop[i]->loop.how))
            p.blocks = site->loop[i];
    if (p.blocks && !blocks_below(p.blocks))
        p.root = p.blocks;
    for (int i = 0; i < site->n_loops; i++) {
        ir_how how = site->loop[i]->loop.how;

        if (sched_is_threads(how) && !p.root)
            p.root = site->loop[i];
        if (sched_is_threads(how)) {
            p.loop[how - IR_THREAD_X] = site->loop[i];
            bound |= 1 << (how - IR_THREAD_X);
        }
    }
    p.missing = p.root ? axes_below(p.root) & ~bound : 0;
    return p;
}

/* The first axis that the launch has and the block does not. */
static const char *missing_axis(const place *p)
{
    return ir_how_text((ir_how)(IR_THREAD_X + (p->missing & 1 ? 0 : p->missing & 2 ? 1 : 2)));
}

static const ir_buffer *local_result(const ir_block *b)
{
    for (int i = 0; i < b->n_writes; i++)
        if (b->writes[i].buffer->scope == IR_LOCAL)
            return b->writes[i].buffer;
    return NULL;
}

/* Every thread runs the block: what it writes is local memory, or lowering gives its lanes or threads partial
 * results, which are. */
static bool is_for_all(sched_call *c, const tree_site *site)
{
    bool parts = false;

    for (int i = 0; i < site->n_loops && !parts; i++)
        parts = (site->loop[i]->loop.how == IR_VECTORISED || sched_is_threads(site->loop[i]->loop.how)) &&
                tree_kind_for(c->cx, site, site->loop[i]->loop.var) == IR_REDUCE_ITER;
    return parts || local_result(site->block);
}

/* Threads that share a reduction are those of one launch: beside the launches of other loops over blocks,
 * each loop over threads would be its own. */
static bool reduces_in_launch(sched_call *c, const tree_site *w, const place *at)
{
    const ir_stmt *l = at->blocks && at->blocks != at->root ? sched_reducing_threads(c->cx, w) : NULL;
    const ir_stmt *inner = l ? blocks_below(at->blocks) : NULL;

    if (l)
        sched_refuse(c,
                     "'%s' is a reduction over the threads of '%s', and stands in '%s' beside '%s', which is "
                     "%s: no launch is around it",
                     w->block->name, l->loop.var->var.name, at->blocks->loop.var->var.name,
                     inner->loop.var->var.name, ir_how_text(inner->loop.how));
    return !c->reason;
}

/* Whether each thread of a user of b finds what it wrote itself. Inside one launch the users must stand under
 * the same thread loops on each axis: thread 3 of one loop need not be thread 3 of another. Two different
 * launches exchange global memory at their ends, which is safe, and never local memory. */
static bool hands_over(sched_call *c, const ir_program *after, const tree_site *w, const place *from,
                       const tree_site *r, const ir_buffer *b)
{
    place to = place_of(r);

    if (r == w || tree_is_parameter(after, b) || !(tree_reads(r->block, b) || tree_writes(r->block, b)))
        return true;
    if (from->root != to.root) {
        if (b->scope == IR_LOCAL)
            sched_refuse(
                c,
                "'%s' uses '%s' outside of the launch in which '%s' writes it, where each thread has its own",
                r->block->name, b->name, w->block->name);
        return !c->reason;
    }
    for (int axis = 0; axis < 3; axis++)
        if (from->loop[axis] != to.loop[axis] && (from->loop[axis] || b->scope == IR_GLOBAL)) {
            sched_refuse(c,
                         "'%s' uses '%s', which '%s' writes in other loops of threads: it would have to be "
                         "shared memory",
                         r->block->name, b->name, w->block->name);
            return false;
        }
    if (b->scope == IR_GLOBAL && from->missing && is_for_all(c, r))
        sched_refuse(c, "every thread runs '%s', which uses '%s', but one thread of %s alone runs '%s'",
                     r->block->name, b->name, missing_axis(from), w->block->name);
    return !c->reason;
}

static bool used_only_below(const tree_sites *all, const ir_buffer *b, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++)
        if ((tree_reads(all->at[i].block, b) || tree_writes(all->at[i].block, b)) &&
            !tree_depth_under(&all->at[i], var))
            return false;
    return true;
}

/* What every thread does for the sake of its local memory, it does to no other memory. */
static bool is_of_one_kind(sched_call *c, const tree_site *w, const place *at, const ir_buffer *b)
{
    const ir_buffer *own = local_result(w->block);

    if (at->missing && own && b->scope != IR_LOCAL)
        sched_refuse(c,
                     "every thread runs '%s', which writes '%s' in local memory, and one thread of %s alone "
                     "may write '%s'",
                     w->block->name, own->name, missing_axis(at), b->name);
    return !c->reason;
}

/* A loop around the launch may run it more than once. A loop of at most one iteration does not count. */
static bool runs_again(sched_call *c, const tree_site *w, const ir_stmt *root)
{
    for (int i = 0; w->loop[i] != root; i++) {
        const ir_stmt *l = w->loop[i];

        if ((l->loop.how == IR_SERIAL || l->loop.how == IR_UNROLLED) &&
            !ir_prove_le(tree_site_facts(&c->s->view, w, i), l->loop.extent, ir_int(c->cx, 1)))
            return true;
    }
    return false;
}

/* What lives as long as a launch holds nothing of an earlier one.
 *
 *     for t { launch { tile[..] = .. only if t == 0;  C = tile[..] } }
 *
 * The second launch has a fresh tile, in which nothing was written. */
static bool begins_anew(sched_call *c, const tree_sites *all, const tree_site *w, const place *at,
                        const ir_buffer *b)
{
    const ir_expr *var = at->root->loop.var;

    if ((b->scope == IR_SHARED || b->scope == IR_WARP || b->scope == IR_LOCAL) &&
        used_only_below(all, b, var) && runs_again(c, w, at->root) && !tree_private(&c->s->view, all, b, var))
        sched_refuse(c,
                     "'%s' is in %s memory, which each launch of '%s' has anew, and it is not proven that a "
                     "launch writes all that it reads there",
                     b->name, ir_scope_text(b->scope), var->var.name);
    return !c->reason;
}

/* What is used below one loop of threads alone: each thread must write what it reads, into what is its own.
 * Lowering will give each thread a buffer of its own. What another thread wrote is then not in there. */
static bool copies_fit(sched_call *c, const tree_sites *all, const tree_site *w, const place *at,
                       const ir_buffer *b)
{
    for (int axis = 0; axis < 3 && !c->reason; axis++) {
        const ir_stmt *l = at->loop[axis];
        const ir_expr *var = l ? l->loop.var : NULL;

        if (!l || !used_only_below(all, b, var))
            continue;
        if (b->scope == IR_GLOBAL && at->missing)
            sched_refuse(
                c, "each thread of '%s' has its own '%s', but not every thread runs '%s', which writes it",
                var->var.name, b->name, w->block->name);
        else if (b->scope != IR_LOCAL && tree_buffer_dependence(&c->s->view, all, b, var))
            sched_refuse(c, "each thread of '%s' needs its own '%s', which is not local memory",
                         var->var.name, b->name);
    }
    return !c->reason;
}

/* What the loops at and below s ask for on each axis. Loops over one axis one after the other use the same
 * threads, so the greatest extent counts. */
static void ask_for(const ir_stmt *s, int64_t threads[3])
{
    int64_t extent;

    if (s->kind == IR_FOR && sched_is_threads(s->loop.how) && ir_is_int(s->loop.extent, &extent)) {
        int64_t *axis = &threads[s->loop.how - IR_THREAD_X];
        *axis = extent > *axis ? extent : *axis;
    }
    for (int i = 0, n = tree_n_children(s); i < n; i++)
        ask_for(tree_child(s, i), threads);
}

/* Each axis is within the limit; together they may not be. */
static bool launch_fits(sched_call *c, const ir_stmt *root)
{
    int64_t limit = c->s->target ? c->s->target->max_threads : 0, threads[3] = {1, 1, 1};

    ask_for(root, threads);
    if (!limit || threads[0] * threads[1] <= limit / threads[2])
        return true;
    return sched_refuse(c, "the launch of '%s' has %lld * %lld * %lld threads; the limit is %lld",
                        root->loop.var->var.name, (long long)threads[0], (long long)threads[1],
                        (long long)threads[2], (long long)limit);
}

/* A buffer that is used in a vectorised loop alone is each lane's own; but lanes do not wait for other
 * threads to fill it. */
static bool lanes_fit(sched_call *c, const tree_sites *all, const tree_site *w, const ir_buffer *b)
{
    for (int i = 0; i < w->n_loops && (b->scope == IR_SHARED || b->scope == IR_WARP); i++)
        if (w->loop[i]->loop.how == IR_VECTORISED && used_only_below(all, b, w->loop[i]->loop.var)) {
            sched_refuse(c, "each lane of '%s' needs its own '%s', which threads share",
                         w->loop[i]->loop.var->var.name, b->name);
            return false;
        }
    return true;
}

static bool has_launch(const ir_stmt *s)
{
    if (s->kind == IR_FOR && (sched_is_blocks(s->loop.how) || sched_is_threads(s->loop.how)))
        return true;
    for (int i = 0, n = tree_n_children(s); i < n; i++)
        if (has_launch(tree_child(s, i)))
            return true;
    return false;
}

/* Looks at every write of the tree, and at all users of what it writes: quadratic, but trees are small. A
 * tree without a launch passes at once. */
bool sched_threads_fit(sched_call *c, const ir_program *after)
{
    if (!has_launch(after->body))
        return true;
    tree_sites all = tree_all_sites(c->cx, after->body);
    for (int i = 0; i < all.n; i++) {
        const tree_site *w = &all.at[i];
        place at = place_of(w);

        if (at.root && (!launch_fits(c, at.root) || !reduces_in_launch(c, w, &at)))
            return false;
        for (int j = 0; at.root && j < w->block->n_writes; j++) {
            const ir_buffer *b = w->block->writes[j].buffer;

            if (!lanes_fit(c, &all, w, b) || !is_of_one_kind(c, w, &at, b) ||
                !begins_anew(c, &all, w, &at, b))
                return false;
            for (int k = 0; k < all.n && b->scope != IR_SHARED; k++)
                if (!hands_over(c, after, w, &at, &all.at[k], b))
                    return false;
            if (!tree_is_parameter(after, b) && !copies_fit(c, &all, w, &at, b))
                return false;
        }
    }
    return true;
}
