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

/* The thread axes of the loops below stmt, and of stmt itself, as bits. */
static int axes_below(const ir_stmt *stmt)
{
    int axes =
        stmt->kind == IR_FOR && sched_is_threads(stmt->loop.how) ? 1 << (stmt->loop.how - IR_THREAD_X) : 0;

    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        axes |= axes_below(tree_child(stmt, i));
    return axes;
}

/* A loop over blocks below loop, which takes the launch from it; NULL: none. */
static const ir_stmt *blocks_below(const ir_stmt *loop)
{
    const ir_stmt *found = NULL;

    for (ir_how how = IR_BLOCK_X; how <= IR_BLOCK_Z && !found; how++)
        found = sched_loop_below(loop->loop.body, how);
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
static const char *missing_axis(const place *at)
{
    return ir_how_text((ir_how)(IR_THREAD_X + (at->missing & 1 ? 0 : at->missing & 2 ? 1 : 2)));
}

static const ir_buffer *local_result(const ir_block *block)
{
    for (int i = 0; i < block->n_writes; i++)
        if (block->writes[i].buffer->scope == IR_LOCAL)
            return block->writes[i].buffer;
    return NULL;
}

/* Every thread runs the block: what it writes is local memory, or lowering gives its lanes or threads partial
 * results, which are. */
static bool is_for_all(sched_call *call, const tree_site *site)
{
    bool parts = false;

    for (int i = 0; i < site->n_loops && !parts; i++)
        parts = (site->loop[i]->loop.how == IR_VECTORISED || sched_is_threads(site->loop[i]->loop.how)) &&
                tree_kind_for(call->cx, site, site->loop[i]->loop.var) == IR_REDUCE_ITER;
    return parts || local_result(site->block);
}

/* Threads that share a reduction are those of one launch: beside the launches of other loops over blocks,
 * each loop over threads would be its own. And they keep their partial results, which are local memory, from
 * the first of the reduction's loops to the last:
 *
 *     for k.0 { for b blockIdx.x { for k.1 threadIdx.x { block S(k = k.0*32 + k.1) } } }
 *
 * is refused: each iteration of k.0 is a launch. */
static bool reduces_in_launch(sched_call *call, const tree_site *writer, const place *at)
{
    const ir_stmt *l = at->blocks ? sched_reducing_threads(call->cx, writer) : NULL;
    const ir_stmt *inner = l && at->blocks != at->root ? blocks_below(at->blocks) : NULL;

    for (int i = 0; l && !inner && writer->loop[i] != at->root; i++)
        if (tree_kind_for(call->cx, writer, writer->loop[i]->loop.var) == IR_REDUCE_ITER)
            return sched_refuse(
                call,
                "'%s' is a reduction over the threads of '%s', and its loop '%s' stands around "
                "the launch of '%s', which keeps no partial results for the next launch",
                writer->block->name, l->loop.var->var.name, writer->loop[i]->loop.var->var.name,
                at->root->loop.var->var.name);
    if (inner)
        sched_refuse(call,
                     "'%s' is a reduction over the threads of '%s', and stands in '%s' beside '%s', which is "
                     "%s: no launch is around it",
                     writer->block->name, l->loop.var->var.name, at->blocks->loop.var->var.name,
                     inner->loop.var->var.name, ir_how_text(inner->loop.how));
    return !call->reason;
}

/* A writer outside of the loops over y or z runs in the first warp only, so that memory of the other warps
 * stays empty. They must not read it. */
static bool fills_each_warp(sched_call *call, const tree_site *writer, const place *from,
                            const tree_site *reader, const ir_buffer *buffer)
{
    place to = place_of(reader);

    for (int axis = 1; axis < 3; axis++)
        if (from->missing & 1 << axis && (to.loop[axis] || is_for_all(call, reader)))
            return sched_refuse(
                call,
                "the first thread of %s alone runs '%s', which fills '%s' in warp memory, and "
                "'%s' uses it in the warps of all",
                ir_how_text((ir_how)(IR_THREAD_X + axis)), writer->block->name, buffer->name,
                reader->block->name);
    return true;
}

/* Whether each thread of a user of buffer finds what it wrote itself. Inside one launch the users must stand
 * under the same thread loops on each axis: thread 3 of one loop need not be thread 3 of another. Two
 * different launches exchange global memory at their ends, which is safe, and never local memory. */
static bool hands_over(sched_call *call, const ir_program *after, const tree_site *writer, const place *from,
                       const tree_site *reader, const ir_buffer *buffer)
{
    place to = place_of(reader);

    if (reader == writer || tree_is_parameter(after, buffer) ||
        !(tree_reads(reader->block, buffer) || tree_writes(reader->block, buffer)))
        return true;
    if (from->root != to.root) {
        if (buffer->scope == IR_LOCAL || buffer->scope == IR_WARP)
            sched_refuse(
                call,
                "'%s' uses '%s' outside of the launch in which '%s' writes it, where each thread has its own",
                reader->block->name, buffer->name, writer->block->name);
        return !call->reason;
    }
    for (int axis = 0; axis < 3; axis++)
        if (!sched_is_common_along(buffer->scope, (ir_how)(IR_THREAD_X + axis)) &&
            from->loop[axis] != to.loop[axis] && (from->loop[axis] || buffer->scope == IR_GLOBAL)) {
            sched_refuse(call,
                         "'%s' uses '%s', which '%s' writes in other loops of threads: it would have to be "
                         "shared memory",
                         reader->block->name, buffer->name, writer->block->name);
            return false;
        }
    if (buffer->scope == IR_WARP)
        return fills_each_warp(call, writer, from, reader, buffer);
    if (buffer->scope == IR_GLOBAL && from->missing && is_for_all(call, reader))
        sched_refuse(call, "every thread runs '%s', which uses '%s', but one thread of %s alone runs '%s'",
                     reader->block->name, buffer->name, missing_axis(from), writer->block->name);
    return !call->reason;
}

/* No use outside of the loop of `var`: then the buffer may be each thread's own. */
static bool used_only_below(const tree_sites *all, const ir_buffer *buffer, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++)
        if ((tree_reads(all->at[i].block, buffer) || tree_writes(all->at[i].block, buffer)) &&
            !tree_depth_under(&all->at[i], var))
            return false;
    return true;
}

/* Axes of threads that the local memory is used in, and in whose launch the writer stands without a loop over
 * them. A loop over threads without blocks around it is no launch by itself: lowering makes one of the whole
 * statement, with one block (lower/launches.c).
 *
 *     for k.0 { P[..] = ..;  for k.1 threadIdx.y { .. P[..] .. } }      P is written in a launch with
 * threadIdx.y
 */
static int missing_axes(const tree_sites *all, const place *at, const ir_buffer *own)
{
    int missing = at->missing;

    for (int i = 0; i < all->n && !at->root; i++) {
        const tree_site *user = &all->at[i];
        place used = place_of(user);

        for (int axis = 0; axis < 3 && tree_reads(user->block, own) && !used.blocks; axis++)
            missing |= used.loop[axis] ? 1 << axis : 0;
    }
    return missing;
}

/* What every thread does for the sake of its local memory, it does to no other memory. */
static bool is_of_one_kind(sched_call *call, const tree_sites *all, const tree_site *writer, const place *at,
                           const ir_buffer *buffer)
{
    const ir_buffer *own = local_result(writer->block);
    const place inside = {.missing = own && buffer->scope != IR_LOCAL ? missing_axes(all, at, own) : 0};

    if (inside.missing)
        sched_refuse(call,
                     "every thread runs '%s', which writes '%s' in local memory, and one thread of %s alone "
                     "may write '%s'",
                     writer->block->name, own->name, missing_axis(&inside), buffer->name);
    return !call->reason;
}

/* Where memory of a launch begins to live: the innermost loop over blocks around all uses of the buffer;
 * where none is, the launch's loop over threads. NULL: it is used outside of both. */
static const ir_stmt *life_of(const tree_sites *all, const tree_site *writer, const place *at,
                              const ir_buffer *buffer)
{
    for (int i = writer->n_loops - 1; i >= 0; i--)
        if (sched_is_blocks(writer->loop[i]->loop.how) &&
            used_only_below(all, buffer, writer->loop[i]->loop.var))
            return writer->loop[i];
    return at->root && used_only_below(all, buffer, at->root->loop.var) ? at->root : NULL;
}

/* Whether the block starts sums over the loop, which its init then stands outside of. */
static bool starts_sums_over(tec_context *cx, const tree_site *site, const ir_stmt *loop)
{
    const ir_block *block = site->block;
    bool over = false;

    for (int i = 0; i < block->n_iters && block->init; i++)
        over |= block->iters[i].kind == IR_REDUCE_ITER &&
                ir_uses_var(cx, site->stmt->block.bind[i], loop->loop.var);
    return over;
}

/* Whether `life` runs more than once, as loops around it say. A loop of at most one iteration does not count,
 * unless the writer reduces over it: its init becomes a launch of its own in front of that loop. */
static bool runs_again(sched_call *call, const tree_site *writer, const ir_stmt *life)
{
    for (int i = 0; writer->loop[i] != life; i++) {
        const ir_stmt *l = writer->loop[i];

        if (starts_sums_over(call->cx, writer, l))
            return true;
        if ((l->loop.how == IR_SERIAL || l->loop.how == IR_UNROLLED) &&
            !ir_prove_le(tree_site_facts(&call->s->view, writer, i), l->loop.extent, ir_int(call->cx, 1)))
            return true;
    }
    return false;
}

/* What lives as long as a launch holds nothing of an earlier one.
 *
 *     for t { launch { tile[..] = .. only if t == 0;  C = tile[..] } }
 *
 * The second launch has a fresh tile, in which nothing was written. */
static bool begins_anew(sched_call *call, const tree_sites *all, const tree_site *writer, const place *at,
                        const ir_buffer *buffer)
{
    bool dies = buffer->scope == IR_SHARED || buffer->scope == IR_WARP || buffer->scope == IR_LOCAL;
    const ir_stmt *life = dies ? life_of(all, writer, at, buffer) : NULL;

    if (life && runs_again(call, writer, life) &&
        !tree_private_to_iteration(&call->s->view, all, buffer, life->loop.var))
        sched_refuse(call,
                     "'%s' is in %s memory, which each launch of '%s' has anew, and it is not proven that a "
                     "launch writes all that it reads there",
                     buffer->name, ir_scope_text(buffer->scope), life->loop.var->var.name);
    return !call->reason;
}

/* What is used below one loop of threads alone: each thread must write what it reads, into what is its own.
 * Lowering will give each thread a buffer of its own. What another thread wrote is then not in there. */
static bool copies_fit(sched_call *call, const tree_sites *all, const tree_site *writer, const place *at,
                       const ir_buffer *buffer)
{
    for (int axis = 0; axis < 3 && !call->reason; axis++) {
        const ir_stmt *l = at->loop[axis];
        const ir_expr *var = l ? l->loop.var : NULL;

        if (!l || !used_only_below(all, buffer, var))
            continue;
        if (buffer->scope == IR_GLOBAL && at->missing)
            sched_refuse(
                call, "each thread of '%s' has its own '%s', but not every thread runs '%s', which writes it",
                var->var.name, buffer->name, writer->block->name);
        else if (buffer->scope != IR_LOCAL && tree_buffer_dependence(&call->s->view, all, buffer, var))
            sched_refuse(call, "each thread of '%s' needs its own '%s', which is not local memory",
                         var->var.name, buffer->name);
    }
    return !call->reason;
}

/* What the loops at and below stmt ask for on each axis. Loops over one axis one after the other use the same
 * threads, so the greatest extent counts. */
static void ask_for(const ir_stmt *stmt, int64_t threads[3])
{
    int64_t extent;

    if (stmt->kind == IR_FOR && sched_is_threads(stmt->loop.how) && ir_is_int(stmt->loop.extent, &extent)) {
        int64_t *axis = &threads[stmt->loop.how - IR_THREAD_X];
        *axis = extent > *axis ? extent : *axis;
    }
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        ask_for(tree_child(stmt, i), threads);
}

/* A device limits the threads of each axis, and of all axes together: CUDA takes 1024 along x and y and 64
 * along z, and 1024 in all. */
static bool launch_fits(sched_call *call, const ir_stmt *root)
{
    const target *t = call->s->target;
    int64_t limit = t ? t->max_threads : 0, threads[3] = {1, 1, 1};

    ask_for(root, threads);
    for (int i = 0; i < 3 && limit; i++)
        if (threads[i] > t->max_block[i])
            return sched_refuse(call,
                                "the launch of '%s' has %lld threads along threadIdx.%c; the limit is %d",
                                root->loop.var->var.name, (long long)threads[i], 'x' + i, t->max_block[i]);
    if (!limit || threads[0] * threads[1] <= limit / threads[2])
        return true;
    return sched_refuse(call, "the launch of '%s' has %lld * %lld * %lld threads; the limit is %lld",
                        root->loop.var->var.name, (long long)threads[0], (long long)threads[1],
                        (long long)threads[2], (long long)limit);
}

/* A warp is 32 neighbouring threads, x first. compute_at and bind take its memory for that of all threads
 * along x, and of no others. So these must be a warp:
 *
 *     32 x 4 threads: a warp for each y          16 x 1: one warp
 *     16 x 2: a warp would hold two rows of x    64 x 1: the threads along x would be two warps
 */
static bool warp_fits(sched_call *call, const ir_stmt *root, const ir_buffer *buffer)
{
    int64_t threads[3] = {1, 1, 1};

    if (buffer->scope != IR_WARP)
        return true;
    ask_for(root, threads);
    if (threads[0] == IR_WARP_THREADS || (threads[0] < IR_WARP_THREADS && threads[1] == 1 && threads[2] == 1))
        return true;
    return sched_refuse(call,
                        "'%s' is in warp memory, which %d threads along threadIdx.x share, or fewer if there "
                        "are no others; the launch of '%s' has %lld * %lld * %lld",
                        buffer->name, IR_WARP_THREADS, root->loop.var->var.name, (long long)threads[0],
                        (long long)threads[1], (long long)threads[2]);
}

/* A buffer that is used in a vectorised loop alone is each lane's own; but lanes do not wait for other
 * threads to fill it. */
static bool lanes_fit(sched_call *call, const tree_sites *all, const tree_site *writer,
                      const ir_buffer *buffer)
{
    for (int i = 0; i < writer->n_loops && (buffer->scope == IR_SHARED || buffer->scope == IR_WARP); i++)
        if (writer->loop[i]->loop.how == IR_VECTORISED &&
            used_only_below(all, buffer, writer->loop[i]->loop.var)) {
            sched_refuse(call, "each lane of '%s' needs its own '%s', which threads share",
                         writer->loop[i]->loop.var->var.name, buffer->name);
            return false;
        }
    return true;
}

/* Whether threads or blocks of them start somewhere below. */
static bool has_launch(const ir_stmt *stmt)
{
    if (stmt->kind == IR_FOR && (sched_is_blocks(stmt->loop.how) || sched_is_threads(stmt->loop.how)))
        return true;
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        if (has_launch(tree_child(stmt, i)))
            return true;
    return false;
}

/* Looks at every write of the tree, and at all users of what it writes: quadratic, but trees are small. A
 * tree without a launch passes at once. */
bool sched_threads_fit(sched_call *call, const ir_program *after)
{
    if (!has_launch(after->body))
        return true;
    tree_sites all = tree_all_sites(call->cx, after->body);
    for (int i = 0; i < all.n; i++) {
        const tree_site *w = &all.at[i];
        place at = place_of(w);

        if (at.root && (!launch_fits(call, at.root) || !reduces_in_launch(call, w, &at)))
            return false;
        for (int j = 0; j < w->block->n_writes; j++) {
            const ir_buffer *buffer = w->block->writes[j].buffer;

            if (!is_of_one_kind(call, &all, w, &at, buffer) || !begins_anew(call, &all, w, &at, buffer))
                return false;
            if (!at.root)
                continue;
            if (!lanes_fit(call, &all, w, buffer) || !warp_fits(call, at.root, buffer))
                return false;
            for (int k = 0; k < all.n && buffer->scope != IR_SHARED; k++)
                if (!hands_over(call, after, w, &at, &all.at[k], buffer))
                    return false;
            if (!tree_is_parameter(after, buffer) && !copies_fit(call, &all, w, &at, buffer))
                return false;
        }
    }
    return true;
}
