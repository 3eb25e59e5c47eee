/* space/gpu_lanes.c -- which element-wise stages of a GPU compute four neighbours in each thread.
 *
 *     C[y, x] = max(A[y, x] + b[y], 0.0), x to 1024      a thread reads A[y, 4*t : +4] by one instruction of
 *                                                        16 bytes, and writes C likewise
 *
 * The transactions of memory stay as they are, and a warp asks for them by a quarter of the requests. That
 * holds if every vector begins at a multiple of 16 bytes: elements have 4 bytes, rows are whole vectors, and
 * each index is a row's own, so that no vector begins in between. What does not move with x is read once for
 * four results. One load of another kind, as of A[y, x + 1], would be four requests whose threads are 16
 * bytes apart, which take four times the transactions; then the stage keeps single elements.
 */
#include "space/gpu.h"

#include "ir/build.h"
#include "space/gpu_banks.h"
#include "space/loads.h"

enum { LANE_BYTES = 4 };

typedef struct {
    ir_walk walk;
    const ir_expr *x; /* of the last loop */
} lanes;

/* Rows of the buffer are whole vectors, and x alone is the index in them. */
static bool lies_in_rows(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index,
                         const ir_expr *x)
{
    int64_t extent;

    for (int d = 0; d < buffer->n - 1; d++)
        if (ir_uses_var(cx, index[d], x))
            return false;
    return buffer->n > 0 && buffer->scope == IR_GLOBAL && !buffer->strides && !buffer->offset &&
           index[buffer->n - 1] == x && ir_is_int(buffer->shape[buffer->n - 1], &extent) &&
           extent % SPACE_GPU_LANES == 0 && base_dtype_bytes(buffer->dtype) == LANE_BYTES;
}

/* What moves with x is arithmetic on elements of 4 bytes that has vectors, or a load of an element; the rest
 * may be anything. */
static bool visit(ir_walk *walk, const ir_expr *expr)
{
    lanes *self = (lanes *)walk;

    if (!ir_uses_var(walk->cx, expr, self->x))
        return false;
    bool load = expr->op == IR_LOAD;

    walk->stop |=
        base_dtype_bytes(expr->dtype) != LANE_BYTES ||
        !(load ? !expr->load.mask && lies_in_rows(walk->cx, expr->load.buffer, expr->load.index, self->x)
               : ir_has_vectors(expr->op, expr->dtype));
    return !load && !walk->stop;
}

/* Whether vectors pay depends on warps: a core of a CPU behind OpenCL has its threads one after the other. */
bool space_gpu_has_lanes(const space_shape *shape, const space_stage *stage)
{
    const ir_stmt *store = stage->block->body;
    tec_context *cx = sched_context(shape->base);
    const target *machine = sched_target(shape->base);

    if (!machine || machine->warp_size != SPACE_WARP || stage->n_reduce || stage->n_spatial < 1 ||
        store->kind != IR_STORE || store->store.mask)
        return false;
    const space_loop *last = &stage->loop[stage->n_loops - 1];
    lanes self = {.walk = {.cx = cx, .expr = visit}, .x = space_iter_named(stage->block, last->iter)->var};

    if (last->extent == 0 || last->extent % SPACE_GPU_LANES ||
        !lies_in_rows(cx, store->store.buffer, store->store.index, self.x))
        return false;
    ir_walk_expr(&self.walk, store->store.value);
    return !self.walk.stop;
}
