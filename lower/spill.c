/* lower/spill.c -- shared, warp and local memory of a launch whose size is no constant becomes global memory:
 * a part for each that has its own.
 *
 *     buffer S: f32[n] @shared                            buffer S: f32[m/4, n]
 *     for b in 0..m/4 blockIdx.x {                        for b in 0..m/4 blockIdx.x {
 *       for t in 0..32 threadIdx.x { S[..] = A[..] }  =>    for t in 0..32 threadIdx.x { S[b, ..] = A[..] }
 *       for t in 0..32 threadIdx.x { C[..] = S[..] }        for t in 0..32 threadIdx.x { C[..] = S[b, ..] }
 *     }                                                   }
 *
 * Each block has its own shared memory, and each thread its own local memory, so the parts are told apart by
 * the loops over blocks, or over blocks and threads, and by those over virtual threads and lanes. All uses
 * must stand in these loops. Local memory that stands outside of a loop of some thread axis, for every thread
 * of that axis to use its own, is not told apart, and stays. Memory of a warp is told apart by blocks and by
 * the loops along y and z around it, where that gives each warp a part of its own; otherwise it stays:
 *
 *     for y in 0..4 { W }  and 32 threads along x       a row of threads is a warp: a part for each y
 *     for y in 0..4 { W }  and 16 threads along x       a warp is two rows: stays
 *     W used by 16 threads along x, outside of y        by the first row alone: one part for a block
 *     W { for y in 0..4 { .. = W } }                    by four warps, each with its own W: stays
 *
 * What several launches use is one part, as it is where its size is a constant.
 * Barriers order global memory as they order shared memory.
 */
#include "lower/spill.h"

#include "ir/build.h"
#include "ir/walk.h"
#include "lower/util.h"

typedef struct {
    ir_rewrite rw;
    const ir_buffer *old, *new;
    base_vec loops; /* each iteration has its own part */
    bool addressed; /* a call takes the buffer's address */
} spiller;

/* ---- which loops ---- */

/* Axes of threads as bits, and the number of threads along x. */
enum { X = 1 };

typedef struct {
    int axes;
    int64_t row;   /* the most along x; 0 without a loop over x */
    bool constant; /* `row` is known */
} threads;

static threads with_loop(threads around, const ir_stmt *loop)
{
    int64_t extent = 0;

    around.axes |= 1 << (loop->loop.how - IR_THREAD_X);
    if (loop->loop.how == IR_THREAD_X) {
        around.constant = around.constant && ir_is_int(loop->loop.extent, &extent);
        around.row = extent > around.row ? extent : around.row;
    }
    return around;
}

static threads union_of(threads left, threads right)
{
    return (threads){.axes = left.axes | right.axes,
                     .row = left.row > right.row ? left.row : right.row,
                     .constant = left.constant && right.constant};
}

typedef struct {
    ir_walk w;
    const ir_buffer *buffer; /* NULL: every thread loop counts as a use */
    threads around, all;
} thread_walk;

static void note_use(ir_walk *walk, const ir_buffer *buffer, const ir_expr *const *index, bool writes)
{
    thread_walk *self = (thread_walk *)walk;

    if (buffer == self->buffer)
        self->all = union_of(self->all, self->around);
    (void)index;
    (void)writes;
}

/* A loop over threads is walked with a memo of its own, since such loops may share an expression. */
static bool note_loop(ir_walk *walk, const ir_stmt *stmt)
{
    thread_walk *self = (thread_walk *)walk;
    threads around = self->around;
    base_map seen = walk->seen;

    if (!lower_is_thread(stmt))
        return true;
    self->around = with_loop(around, stmt);
    if (!self->buffer)
        self->all = union_of(self->all, self->around);
    walk->seen = (base_map){0};
    ir_walk_stmt(walk, stmt->loop.body);
    walk->seen = seen;
    self->around = around;
    return false;
}

/* The threads of all loops in the statement, or of those around uses of the buffer. */
static threads threads_in(tec_context *cx, const ir_stmt *stmt, const ir_buffer *buffer)
{
    thread_walk a = {.w = {.stmt = note_loop,
                           .expr = buffer ? NULL : ir_skip_expr,
                           .touch = buffer ? note_use : NULL,
                           .cx = cx},
                     .buffer = buffer,
                     .around.constant = true,
                     .all.constant = true};

    ir_walk_stmt(&a.w, stmt);
    return a.all;
}

/* Loops of which each iteration had memory of its own in this scope, so that the global buffer needs a
 * dimension for them: blocks of threads and their likes; rows of threads for memory of a warp; threads and
 * lanes for local memory. */
static bool has_own(const ir_stmt *stmt, ir_scope scope)
{
    if (stmt->kind != IR_FOR)
        return false;
    if (scope == IR_WARP && lower_is_thread(stmt))
        return stmt->loop.how != IR_THREAD_X;
    return lower_is_blocks(stmt) || stmt->loop.how == IR_VTHREAD || stmt->loop.how == IR_PARALLEL ||
           (scope == IR_LOCAL && (lower_is_thread(stmt) || stmt->loop.how == IR_VECTORISED));
}

/* Whether a part for each iteration of y and z around a warp's memory is a part for each warp that uses it.
 * Without such an iteration, the uses are by the first threads along y and z: by one warp, if x has no more
 * than its threads. With them, threads along x must fill warps, so that none reaches over two rows. Loops
 * over y or z further inside would let several warps use one part. */
static bool tells_warps_apart(threads launch, threads uses, int axes_around)
{
    int rows = axes_around & ~X;

    return (uses.axes & ~(axes_around | X)) == 0 && uses.constant && uses.row <= IR_WARP_THREADS &&
           (rows == 0 || (launch.constant && launch.row % IR_WARP_THREADS == 0 && launch.row > 0));
}

/* The loops that tell the parts apart; false where they do not tell all apart. Threads of an axis that no
 * loop of the path is over would share one part. */
static bool take_loops(spiller *sp, const base_vec *around)
{
    tec_context *cx = sp->rw.cx;
    int axes = 0;
    const ir_stmt *launch = NULL;

    for (int i = 0; i < around->n; i++) {
        const ir_stmt *stmt = around->at[i];

        if (lower_is_thread(stmt))
            axes |= 1 << (stmt->loop.how - IR_THREAD_X);
        if (!launch && (lower_is_thread(stmt) || lower_launches_blocks(cx, stmt)))
            launch = stmt;
        if (has_own(stmt, sp->old->scope))
            base_push(cx, &sp->loops, stmt);
    }
    if (!launch || sp->old->scope == IR_SHARED)
        return true;
    threads all = threads_in(cx, launch, NULL);
    return sp->old->scope == IR_WARP ? tells_warps_apart(all, threads_in(cx, launch, sp->old), axes)
                                     : axes == all.axes;
}

/* Over symbols and constants alone, so that the workspace can be measured before the launch. */
static bool is_known_outside(const spiller *sp, const ir_program *program, const ir_expr *extent)
{
    base_vec vars = {0};

    ir_free_vars(sp->rw.cx, extent, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool symbol = false;

        for (int j = 0; j < program->n_symbols; j++)
            symbol |= program->symbols[j] == vars.at[i];
        if (!symbol)
            return false;
    }
    return true;
}

/* NULL where a part's number is not known before the launch, or there would be too many dimensions. */
static const ir_buffer *wider_buffer(const spiller *sp, const ir_program *program)
{
    tec_context *cx = sp->rw.cx;
    int n = sp->loops.n;
    const ir_expr **shape = base_array(cx, const ir_expr *, n + sp->old->n);

    if (n + sp->old->n > IR_MAX_DIMS)
        return NULL;
    for (int i = 0; i < n; i++) {
        shape[i] = ((const ir_stmt *)sp->loops.at[i])->loop.extent;
        if (!is_known_outside(sp, program, shape[i]))
            return NULL;
    }
    for (int i = 0; i < sp->old->n; i++)
        shape[n + i] = sp->old->shape[i];
    ir_buffer *buffer = ir_buffer_copy(cx, sp->old);
    buffer->n += n;
    buffer->shape = shape;
    buffer->strides = NULL;
    buffer->scope = IR_GLOBAL;
    return buffer;
}

/* ---- the rewrite ---- */

/* One index for each such loop, counted from 0, then the old ones. */
static const ir_expr *const *wider_index(ir_rewrite *rw, const ir_buffer *old, const ir_expr *const *index,
                                         int count)
{
    spiller *sp = (spiller *)rw;
    const ir_expr **out = base_array(rw->cx, const ir_expr *, sp->new->n);

    for (int i = 0; i < sp->loops.n; i++) {
        const ir_stmt *stmt = sp->loops.at[i];
        out[i] = ir_sub(rw->cx, stmt->loop.var, stmt->loop.min);
    }
    for (int i = 0; i < count; i++)
        out[sp->loops.n + i] = index[i];
    (void)old;
    return out;
}

static const ir_buffer *visit_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    spiller *sp = (spiller *)rw;

    return buffer == sp->old ? sp->new : buffer;
}

/* A buffer whose address a call takes cannot get more dimensions. */
static const ir_expr *note_address(ir_rewrite *rw, const ir_buffer *old, const ir_expr *offset)
{
    ((spiller *)rw)->addressed |= old != NULL;
    return offset;
}

/* One rewrite puts the wider buffer in; if it meets a call that takes the address, its result is dropped. */
const ir_program *lower_spill(tec_context *cx, const ir_program *program, const ir_buffer *buffer,
                              const base_vec *around, const ir_buffer **global)
{
    spiller sp = {.rw = {.cx = cx, .buffer = visit_buffer, .index = wider_index, .offset = note_address},
                  .old = buffer};

    if (buffer->offset || !take_loops(&sp, around) || !(sp.new = wider_buffer(&sp, program)))
        return NULL;
    const ir_stmt *body = ir_rewrite_stmt(&sp.rw, program->body);
    if (!body || sp.addressed)
        return NULL;
    const ir_buffer **buffers = base_array(cx, const ir_buffer *, program->n_buffers);
    for (int i = 0; i < program->n_buffers; i++)
        buffers[i] = program->buffers[i] == buffer ? sp.new : program->buffers[i];
    *global = sp.new;
    ir_program *out = ir_program_copy(cx, program);
    out->body = body;
    out->buffers = buffers;
    return out;
}
