/* lower/outside.c -- shared and warp memory that no launch has as its own becomes global memory, so that
 * barriers are of the kind that orders it.
 *
 *     allocate S: f32[8] @shared {                        allocate S: f32[8] {
 *       for tx in 0..8 threadIdx.x { S[tx] = A[tx] .. }     for tx in 0..8 threadIdx.x { S[tx] = A[tx] .. }
 *       for tx in 0..8 threadIdx.x { .. = S[7 - tx] }  =>   for tx in 0..8 threadIdx.x { .. = S[7 - tx] }
 *     }                                                   }
 *     for tx in 0..8 threadIdx.x {                        for tx in 0..8 threadIdx.x {
 *       allocate T: f32[8] @shared { .. } }                 allocate T: f32[8] @shared { .. } }
 *
 * Two launches use S, so that S has a place in the workspace (lower/split.c), which is global memory of the
 * device. A barrier of shared memory would not order its elements: OpenCL has a fence for each sort of
 * memory. T is memory of one launch, and stays.
 *
 * A launch without blocks has as its own what is allocated directly around its loop over threads, or inside.
 * That is taken in the order in which it stands, as long as its size is a constant and the device's shared
 * memory has room; what is left becomes global memory around the launch. Inside of loops over blocks nothing
 * becomes global memory, as each block would need a part of its own (lower/spill.c). An asynchronous copy
 * into what became global memory is made at once. Warp memory inside of a launch is lower/warps.c's.
 */
#include "lower/outside.h"

#include "ir/calls.h"

enum { ALIGNMENT = 64 }; /* as lower/launches.c counts */

typedef struct {
    ir_rewrite rw;
    const ir_facts *facts;
    int64_t room;    /* bytes of shared memory of a block; 0: not known, and taken for enough */
    base_map global; /* buffers -> the same in global memory */
    bool inside;     /* of a launch */
    bool blocks;     /* which has loops over blocks */
} mover;

static bool is_of_threads(const ir_stmt *stmt)
{
    return stmt->kind == IR_ALLOCATE &&
           (stmt->allocate.buffer->scope == IR_SHARED || stmt->allocate.buffer->scope == IR_WARP);
}

const ir_stmt *lower_threads_of(tec_context *cx, const ir_stmt *stmt)
{
    while (is_of_threads(stmt))
        stmt = stmt->allocate.body;
    return lower_is_thread(stmt) && !lower_find_stmt(cx, stmt, lower_is_blocks) ? stmt : NULL;
}

/* ---- what becomes global memory ---- */

static void make_global(mover *self, const ir_buffer *buffer)
{
    if (base_map_has(&self->global, buffer))
        return;
    ir_buffer *global = ir_buffer_copy(self->rw.cx, buffer);

    global->scope = BASE_PLANT_ON(self->rw.cx, outside_scope) ? buffer->scope : IR_GLOBAL;
    base_log(self->rw.cx, 1, "barriers: '%s' of scope %s is kept in the workspace", buffer->name,
             ir_scope_text(buffer->scope));
    base_map_put(self->rw.cx, &self->global, buffer, global);
}

/* The allocations of one launch, each buffer once. */
typedef struct {
    ir_walk walk;
    mover *mover;
    base_map seen;
    int64_t bytes;
} launch_walk;

/* One allocation of the launch: its bytes are counted, or, where they are no constant or there is no room for
 * them, the buffer becomes global memory. */
static bool count_shared(ir_walk *walk, const ir_stmt *stmt)
{
    launch_walk *self = (launch_walk *)walk;
    const ir_buffer *buffer = stmt->kind == IR_ALLOCATE ? stmt->allocate.buffer : NULL;
    int64_t bytes;

    if (!buffer || buffer->scope != IR_SHARED || base_map_has(&self->seen, buffer))
        return true;
    base_map_put(walk->cx, &self->seen, buffer, stmt);
    if (!ir_is_int(ir_simplify(self->mover->facts, lower_span(walk->cx, buffer)), &bytes) ||
        __builtin_mul_overflow(bytes, base_dtype_bytes(buffer->dtype), &bytes) ||
        __builtin_add_overflow((bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, self->bytes, &bytes) ||
        (self->mover->room && bytes > self->mover->room))
        make_global(self->mover, buffer);
    else
        self->bytes = bytes;
    return true;
}

typedef struct {
    ir_walk walk;
    mover *mover;
} finder;

/* Outside of launches all that threads share becomes global memory; of a launch without blocks, what does not
 * fit. Warp memory around a launch was filled by no warp of its own. */
static bool find(ir_walk *walk, const ir_stmt *stmt)
{
    mover *self = ((finder *)walk)->mover;
    launch_walk launch = {.walk = {.stmt = count_shared, .expr = ir_skip_expr, .cx = walk->cx},
                          .mover = self};

    if (lower_threads_of(walk->cx, stmt)) {
        for (const ir_stmt *at = stmt; at->kind == IR_ALLOCATE; at = at->allocate.body)
            if (at->allocate.buffer->scope == IR_WARP)
                make_global(self, at->allocate.buffer);
        ir_walk_stmt(&launch.walk, stmt);
        return false;
    }
    if (is_of_threads(stmt))
        make_global(self, stmt->allocate.buffer);
    return !lower_is_blocks(stmt) && !lower_is_thread(stmt);
}

/* ---- what cannot ---- */

/* An instruction that takes shared memory by its declaration cannot have global memory. */
static bool check_operands(ir_walk *walk, const ir_expr *expr)
{
    mover *self = ((finder *)walk)->mover;
    const ir_program *meaning =
        expr->op == IR_CALL && expr->call.intrinsic ? expr->call.intrinsic->meaning : NULL;

    for (int k = 0, i = 0; meaning && k < meaning->n_params && i < expr->call.n_buffers; k++) {
        const ir_buffer *operand = meaning->params[k].buffer;

        if (operand && operand->scope != IR_GLOBAL && base_map_has(&self->global, expr->call.buffer[i])) {
            base_fail(
                walk->cx, TEC_INVALID, expr->call.buffer[i]->loc,
                "buffer '%s' lies outside of launches, in global memory, but the intrinsic '%s' expects "
                "it in scope %s",
                expr->call.buffer[i]->name, expr->call.name, ir_scope_text(operand->scope));
            walk->stop = true;
            return false;
        }
        i += operand != NULL;
    }
    return true;
}

/* ---- the rewrite ---- */

static const ir_buffer *global_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    const ir_buffer *global = base_map_get(&((mover *)rw)->global, buffer);

    return global ? global : buffer;
}

static bool stores_elsewhere(const ir_stmt *stmt)
{
    return stmt->kind == IR_STORE && stmt->store.buffer->scope != IR_SHARED;
}

/* Inside of a launch without blocks no allocation of global memory is left, as each thread would have its
 * own. Copies that are no longer to shared memory are no asynchronous ones. */
static const ir_stmt *visit_inside(ir_rewrite *rw, const ir_stmt *stmt)
{
    const mover *self = (const mover *)rw;

    if (!self->blocks && stmt->kind == IR_ALLOCATE && base_map_has(&self->global, stmt->allocate.buffer))
        return ir_rewrite_stmt(rw, stmt->allocate.body);
    const ir_stmt *out = ir_rewrite_stmt_children(rw, stmt);
    bool copy = out && out->kind == IR_ATTRIBUTE && base_same(out->attribute.key, IR_ASYNC_COPY);
    return copy && lower_find_stmt(rw->cx, out, stores_elsewhere) ? out->attribute.body : out;
}

typedef struct {
    ir_walk walk;
    mover *mover;
    base_vec found; /* what became global memory */
} taken_walk;

static bool look_taken(ir_walk *walk, const ir_stmt *stmt)
{
    taken_walk *self = (taken_walk *)walk;
    const ir_buffer *global =
        stmt->kind == IR_ALLOCATE ? base_map_get(&self->mover->global, stmt->allocate.buffer) : NULL;

    for (int i = 0; i < self->found.n && global; i++)
        global = self->found.at[i] == global ? NULL : global;
    if (global)
        base_push(walk->cx, &self->found, global);
    return true;
}

/* What a launch without blocks allocated, and became global memory, is allocated around it. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    mover *self = (mover *)rw;
    taken_walk taken = {.walk = {.stmt = look_taken, .expr = ir_skip_expr, .cx = rw->cx}, .mover = self};

    if (self->inside)
        return visit_inside(rw, stmt);
    self->blocks = lower_is_blocks(stmt);
    if (!self->blocks && !lower_threads_of(rw->cx, stmt))
        return ir_rewrite_stmt_children(rw, stmt);
    if (!self->blocks)
        ir_walk_stmt(&taken.walk, stmt);
    self->inside = true;
    const ir_stmt *out = visit_inside(rw, stmt);
    self->inside = false;
    for (int i = taken.found.n - 1; i >= 0 && out; i--)
        out = ir_allocate(rw->cx, taken.found.at[i], out);
    return out;
}

/* First all is found that becomes global memory, since copies of a loop may allocate one buffer in several
 * launches, then all uses change. */
const ir_program *lower_take_outside(const lower_options *options, const ir_program *program)
{
    tec_context *cx = options->cx;
    mover m = {.rw = {.cx = cx, .stmt = visit, .buffer = global_buffer},
               .facts = ir_facts_of_program(cx, program),
               .room = options->target->shared_bytes};
    finder f = {.walk = {.stmt = find, .expr = ir_skip_expr, .cx = cx}, .mover = &m};
    finder check = {.walk = {.expr = check_operands, .cx = cx}, .mover = &m};

    ir_walk_stmt(&f.walk, program->body);
    if (m.global.n == 0)
        return program;
    ir_walk_stmt(&check.walk, program->body);
    return base_failed(cx) ? NULL : lower_with_body(cx, program, ir_rewrite_stmt(&m.rw, program->body));
}
