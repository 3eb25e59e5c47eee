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
 * must stand in these loops. Memory of a warp is told apart by blocks and the threads along y and z, which is
 * right if the threads along x are a warp; otherwise the memory stays. Local memory that stands outside of a
 * loop of some thread axis, for every thread of that axis to use its own, is not told apart, and stays.
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

typedef struct {
    ir_walk w;
    int axes;      /* of the threads, as bits */
    int64_t row;   /* the most threads along x */
    bool constant; /* `row` is known */
} axis_walk;

static bool note_axes(ir_walk *walk, const ir_stmt *stmt)
{
    axis_walk *self = (axis_walk *)walk;
    int64_t extent;

    if (!lower_is_thread(stmt))
        return true;
    self->axes |= 1 << (stmt->loop.how - IR_THREAD_X);
    if (stmt->loop.how != IR_THREAD_X)
        return true;
    self->constant = self->constant && ir_is_int(stmt->loop.extent, &extent);
    self->row = self->constant && extent > self->row ? extent : self->row;
    return true;
}

static axis_walk axes_in(tec_context *cx, const ir_stmt *stmt)
{
    axis_walk a = {.w = {.stmt = note_axes, .expr = ir_skip_expr, .cx = cx}, .constant = true};

    ir_walk_stmt(&a.w, stmt);
    return a;
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

/* The loops that tell the parts apart; false where they do not tell all apart. Threads of an axis that no
 * loop of the path is over would share one part. */
static bool take_loops(spiller *sp, const base_vec *around)
{
    enum { X = 1 };
    int axes = 0;
    axis_walk all = {0};

    for (int i = 0; i < around->n; i++) {
        const ir_stmt *stmt = around->at[i];

        if (lower_is_thread(stmt))
            axes |= 1 << (stmt->loop.how - IR_THREAD_X);
        if (all.axes == 0 && (lower_is_thread(stmt) || lower_launches_blocks(sp->rw.cx, stmt)))
            all = axes_in(sp->rw.cx, stmt);
        if (has_own(stmt, sp->old->scope))
            base_push(sp->rw.cx, &sp->loops, stmt);
    }
    if (sp->old->scope == IR_WARP)
        return (axes | X) == (all.axes | X) && all.constant &&
               (all.row == IR_WARP_THREADS || (all.row < IR_WARP_THREADS && (all.axes | X) == X));
    return sp->old->scope == IR_SHARED || axes == all.axes;
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
