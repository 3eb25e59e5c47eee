/* lower/threads.c -- gives a reduction over the threads of a block one partial result for each thread.
 *
 *     for k.0 in 0..n/32 {                     for v in 0..32 threadIdx.x { block S.lanes.init: P[] = 0 }
 *       for k.1 in 0..32 threadIdx.x {         for k.0 in 0..n/32 {
 *         block S(k reduce = k.0*32 + k.1) {     for k.1 in 0..32 threadIdx.x {
 *                                                  block S.lanes: P[] sum= A[k] }
 *           init { S[] = 0 }                   }
 *           S[] sum= A[k]                  =>  for v in 0..32 threadIdx.x {        # and 8, 4, 2, 1
 *     } } }                                      block S.lanes.16 { let other = tec.shuffle_xor(P[],
 *                                                  16) { P[] sum= other } }
 *                                              }
 *                                              for first in 0..1 threadIdx.x { block S: init S[] = 0,
 *                                                  S[] sum= P[] }
 *
 * requires  a loop tree
 * provides  no threadIdx loop is bound to a reduce variable that the block's elements do not depend on
 * breaks    the names of blocks: S is the one that writes the result
 *
 * The way is that of lower/lanes.c. Threads along x whose number divides the warp lie in one warp: each keeps
 * its partial result in a register, and shuffles combine them. Others put theirs into shared memory and
 * combine by halves, in loops over the first threads of that axis; an odd rest is combined in order. The
 * barriers between are lower/barriers.c's. The first thread alone writes the result. A thread that the
 * predicate leaves out gives the identity. Over two axes the one whose loop is outside goes first; the other
 * one combines the partial results of its threads into those. What must keep its order is refused.
 *
 * Partial results live as long as a launch. A reduction that no loop over blockIdx is around becomes a launch
 * of one block first, with the work that stands beside it in its loops (what has no threads there, the first
 * one does: lower/alone.c). A parallel loop there becomes serial: a thread of a device starts no others:
 *
 *     for k.1 in 0..32 threadIdx.x { block S }  =>  for once in 0..1 blockIdx.x {
 *                                                     for k.1 in 0..32 threadIdx.x { block S } }
 *
 * Memory of scope warp that was filled there, outside of all launches, existed once. In a launch it would
 * exist once for each warp, and only the first warp would fill its own. It becomes shared memory:
 *
 *     buffer W @warp                         buffer W @shared
 *     for k.0 {                        =>    for k.0 in 0..n blockIdx.x.. {
 *       W[..] = A[..]                          W[..] = A[..]            # by the first thread
 *       for k.1 threadIdx.y { .. W[..] } }     for k.1 threadIdx.y { .. W[..] } }
 */
#include "lower/lanes.h"

static bool is_thread(ir_how how)
{
    return how >= IR_THREAD_X && how <= IR_THREAD_Z;
}

/* A partial result for each thread. An empty loop keeps one thread, whose result is the identity. */
static void one_for_each(const lower_splitter *sp, lower_reduction *reduction)
{
    reduction->lanes = reduction->extent > 0 ? reduction->extent : 1;
    reduction->own = reduction->how == IR_THREAD_X && sp->o->target->warp_size % reduction->lanes == 0;
    reduction->scope = reduction->own ? IR_LOCAL : IR_SHARED;
}

/* Partial results live as long as the threads do: a loop over blocks must launch them all. */
static const char *without_blocks(tec_context *cx, const tree_site *site)
{
    const ir_stmt *blocks = NULL;

    for (int i = 0; i < site->n; i++)
        if (lower_is_blocks(site->path[i]))
            blocks = site->path[i];
    if (!blocks)
        return "it stands in no loop over blockIdx";
    return lower_launches_blocks(cx, blocks)
               ? NULL
               : "the loop over blockIdx that it stands in holds another one, and so it is in no launch";
}

static bool blame(lower_splitter *sp, const tree_site *site, int loop, const char *why)
{
    const ir_block *b = site->stmt->block.block;

    base_fail(sp->rw.cx, TEC_INVALID, b->loc,
              "the reduction of '%s' cannot be shared between the threads of loop '%s': %s", b->name,
              site->path[loop]->loop.var->var.name, why);
    return false;
}

/* ---- launches of one block ---- */

typedef struct {
    ir_rewrite rw;
    base_map roots;  /* loops that a launch is made of */
    base_map common; /* buffers of scope warp -> the same in shared memory */
    bool inside;     /* of one of the roots */
} launcher;

static bool is_in_blocks(const tree_site *site)
{
    for (int i = 0; i < site->n; i++)
        if (lower_is_blocks(site->path[i]))
            return true;
    return false;
}

/* The outermost loop of the reduction or of its threads, with all that stands in it; NULL: no such loop, or
 * no threads. Where the threads' loop stands outside of the reduction, the launch begins there. */
static const ir_stmt *launch_of(tec_context *cx, const tree_site *site)
{
    base_map reduce = {0};
    bool threads = false;
    int at;

    lower_reduce_vars(cx, site, &reduce);
    if (reduce.n == 0)
        return NULL;
    at = lower_reduction_at(site, &reduce);
    for (int i = site->n - 1; i >= 0; i--)
        if (lower_is_thread(site->path[i])) {
            threads = threads || base_map_has(&reduce, site->path[i]->loop.var);
            at = i < at ? i : at;
        }
    return threads ? site->path[at] : NULL;
}

static const ir_stmt *in_turn(tec_context *cx, const ir_stmt *loop)
{
    ir_stmt *copy = ir_stmt_copy(cx, loop);

    copy->loop.how = IR_SERIAL;
    return copy;
}

/* Puts a loop over one block around each root. What was a parallel loop of the host below the root runs in a
 * thread of the device now, and a thread starts no others: its loop becomes serial. */
static const ir_stmt *launch(ir_rewrite *rw, const ir_stmt *stmt)
{
    launcher *self = (launcher *)rw;
    bool begins = !self->inside && base_map_has(&self->roots, stmt);
    const ir_stmt *out;

    self->inside |= begins;
    out = ir_rewrite_stmt_children(rw, stmt);
    if (self->inside && out && out->kind == IR_FOR && out->loop.how == IR_PARALLEL)
        out = in_turn(rw->cx, out);
    if (!begins)
        return out;
    self->inside = false;
    return ir_for(rw->cx, ir_var(rw->cx, "once", BASE_I64), ir_int(rw->cx, 0), ir_int(rw->cx, 1), IR_BLOCK_X,
                  out);
}

static const ir_buffer *common_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    const ir_buffer *common = base_map_get(&((launcher *)rw)->common, buffer);

    return common ? common : buffer;
}

/* Whether the block, outside of all launches so far, gets into one. */
static bool is_taken_in(const launcher *self, const tree_site *site)
{
    bool taken = false;

    for (int i = 0; i < site->n; i++) {
        if (lower_is_thread(site->path[i]) || lower_is_blocks(site->path[i]))
            return false;
        taken |= base_map_has(&self->roots, site->path[i]);
    }
    return taken;
}

/* Memory of a warp that such blocks fill. What is in a launch already has memory for each warp: schedules
 * may not use one buffer in both ways. */
static void find_common(launcher *self, const tree_sites *sites)
{
    for (int i = 0; i < sites->n; i++) {
        const ir_block *block = sites->at[i].stmt->block.block;

        for (int k = 0; k < block->n_writes && is_taken_in(self, &sites->at[i]); k++) {
            const ir_buffer *buffer = block->writes[k].buffer;

            if (buffer->scope != IR_WARP || base_map_has(&self->common, buffer))
                continue;
            ir_buffer *common = ir_buffer_copy(self->rw.cx, buffer);
            common->scope = IR_SHARED;
            base_map_put(self->rw.cx, &self->common, buffer, common);
        }
    }
}

/* The program with the launches, and with the buffers that change their scope. */
static const ir_program *with_launches(launcher *self, const ir_program *program)
{
    const ir_stmt *body = ir_rewrite_stmt(&self->rw, program->body);
    const ir_buffer **buffers = base_array(self->rw.cx, const ir_buffer *, program->n_buffers + 1);
    ir_program *out = ir_program_copy(self->rw.cx, program);

    for (int i = 0; i < program->n_buffers; i++)
        buffers[i] = common_buffer(&self->rw, program->buffers[i]);
    out->body = body;
    out->buffers = buffers;
    return body ? out : NULL;
}

/* Reductions over threads outside of all loops over blocks become launches of one block. */
static const ir_program *launch_reductions(tec_context *cx, const ir_program *program)
{
    launcher l = {.rw = {.cx = cx, .stmt = launch, .buffer = common_buffer}};
    tree_sites sites = tree_all_sites(cx, program->body);

    for (int i = 0; i < sites.n; i++) {
        const ir_stmt *root = is_in_blocks(&sites.at[i]) ? NULL : launch_of(cx, &sites.at[i]);

        if (root)
            base_map_put(cx, &l.roots, root, root);
    }
    find_common(&l, &sites);
    return l.roots.n > 0 ? with_launches(&l, program) : program;
}

const ir_program *lower_threads(const lower_options *options, const ir_program *program)
{
    static const lower_lane_kind threads = {
        .runs = is_thread, .shape = one_for_each, .forbids = without_blocks, .refuse = blame};

    return lower_split_lanes(options, launch_reductions(options->cx, program), &threads);
}
