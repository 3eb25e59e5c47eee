/* ir/interp/launch.c -- what a launch of threads is made of: its axes, and the listed buffers that live
 * inside it.
 *
 * A launch starts at the innermost blockIdx loop, or at the outermost threadIdx loop where there is none. All
 * threadIdx loops below it run over one group of threads, as many on each axis as the largest of these loops
 * asks for.
 */
#include "ir/interp/build.h"

#include "ir/walk.h"

typedef struct {
    ir_walk walk;
    base_vec threads; /* loops */
    bool has_blocks;
} scan;

static bool is_thread(ir_how how)
{
    return how >= IR_THREAD_X && how <= IR_THREAD_Z;
}
static bool is_block(ir_how how)
{
    return how >= IR_BLOCK_X && how <= IR_BLOCK_Z;
}

/* Finds the loops of a launch: threads, and whether further blocks lie inside. */
static bool look_at(ir_walk *walk, const ir_stmt *stmt)
{
    scan *sc = (scan *)(void *)walk;

    if (stmt->kind == IR_FOR && is_thread(stmt->loop.how))
        base_push(walk->cx, &sc->threads, stmt);
    sc->has_blocks |= stmt->kind == IR_FOR && is_block(stmt->loop.how);
    return true;
}

/* Threads start before anything inside the launch runs, so the extent of a thread loop may depend only on
 * what is known outside. */
static void add_axis(exec_builder *builder, exec_launch *launch, const ir_stmt *loop)
{
    int axis = (int)(loop->loop.how - IR_THREAD_X);
    base_vec vars = {0};

    ir_free_vars(builder->exec->mem, loop->loop.extent, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!base_map_has(&builder->names->slots, vars.at[i])) {
            ir_exec_fail(builder->exec, TEC_UNSUPPORTED, loop->loc,
                         "the extent of the %s loop '%s' depends on '%s', which is bound inside the launch",
                         ir_how_text(loop->loop.how), loop->loop.var->var.name,
                         ((const ir_expr *)vars.at[i])->var.name);
            return;
        }
    launch->axes |= 1 << axis;
    base_push(builder->exec->mem, &launch->extent[axis], ir_exec_expr(builder, loop->loop.extent));
}

/* The launch that begins at `loop`, or NULL where it begins further in. Outer blockIdx loops only repeat the
 * launch. */
exec_launch *ir_exec_find_launch(exec_builder *builder, const ir_stmt *loop)
{
    scan sc = {.walk = {.expr = ir_skip_expr, .stmt = look_at, .cx = builder->exec->mem}};
    exec_launch *launch;

    if (!is_block(loop->loop.how) && !is_thread(loop->loop.how))
        return NULL;
    ir_walk_stmt(&sc.walk, loop->loop.body);
    if (is_block(loop->loop.how) && sc.has_blocks)
        return NULL;
    launch = base_new(builder->exec->mem, exec_launch);
    launch->root = loop;
    if (is_thread(loop->loop.how))
        add_axis(builder, launch, loop);
    for (int i = 0; i < sc.threads.n; i++)
        add_axis(builder, launch, sc.threads.at[i]);
    base_map_put(builder->exec->mem, &builder->names->launches, loop, launch);
    return launch;
}

/* Memory of a block is allocated inside of a loop over blocks or threads, or directly around a launch without
 * blocks. What else is shared by threads has a place in the workspace, which is global memory of the device:
 *
 *     allocate S @shared { for tx in 0..8 threadIdx.x { .. } }            memory of the block
 *     allocate S @shared { for tx .. { .. }  for tx .. { .. } }           workspace: two launches use it
 *
 * A buffer that is listed has no place yet: until the pass `compact` gives it one, its scope says which
 * barriers order it.
 */
bool ir_exec_is_outside(const exec_builder *builder, const ir_stmt *allocation)
{
    scan sc = {.walk = {.expr = ir_skip_expr, .stmt = look_at, .cx = builder->exec->mem}};
    const ir_stmt *stmt = allocation;

    for (const exec_path *path = builder->path; path; path = path->up)
        if (path->s->kind == IR_FOR && (is_thread(path->s->loop.how) || is_block(path->s->loop.how)))
            return false;
    while (stmt->kind == IR_ALLOCATE &&
           (stmt->allocate.buffer->scope == IR_SHARED || stmt->allocate.buffer->scope == IR_WARP))
        stmt = stmt->allocate.body;
    if (stmt->kind != IR_FOR || !is_thread(stmt->loop.how))
        return true;
    ir_walk_stmt(&sc.walk, stmt->loop.body);
    return sc.has_blocks;
}

/* ---- listed buffers ---- */

static exec_launch *launch_around(const exec_builder *builder, const exec_place *place)
{
    exec_launch *l = NULL;

    for (; place && !l; place = place->up)
        l = base_map_get(&builder->names->launches, place->loop);
    return l;
}

/* Inside a thread's loop, and no loop around the launch, whose iterations run in order, could carry values
 * from one launch to the next. */
static bool belongs_to_thread(const exec_buffer *vb, const exec_launch *launch)
{
    const exec_place *place = vb->place;
    bool in_thread = false;

    for (; place && place->loop != launch->root; place = place->up)
        in_thread |= is_thread(place->loop->loop.how);
    in_thread |= is_thread(launch->root->loop.how);
    for (place = place ? place->up : NULL; place; place = place->up)
        if (place->loop->loop.how == IR_SERIAL || place->loop->loop.how == IR_UNROLLED)
            return false;
    return in_thread;
}

/* Decides for each buffer without an allocation how often it exists: once per group of threads, once per
 * thread, or once for the run. A buffer without a scope belongs to a thread where all its uses lie inside one
 * thread's loops. */
void ir_exec_place_buffers(exec_builder *builder, base_vec *once)
{
    for (int i = 0; i < builder->names->listed.n; i++) {
        exec_buffer *vb = builder->names->listed.at[i];
        exec_launch *launch = vb->used ? launch_around(builder, vb->place) : NULL;
        ir_scope scope = vb->buffer->scope;

        if (launch && (scope == IR_SHARED || scope == IR_WARP))
            base_push(builder->exec->mem, &launch->per_group, vb);
        else if (launch && (scope == IR_LOCAL || belongs_to_thread(vb, launch)))
            base_push(builder->exec->mem, &launch->per_strand, vb);
        else
            base_push(builder->exec->mem, once, vb);
    }
}
