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
static bool look_at(ir_walk *w, const ir_stmt *s)
{
    scan *sc = (scan *)(void *)w;

    if (s->kind == IR_FOR && is_thread(s->loop.how))
        base_push(w->cx, &sc->threads, s);
    sc->has_blocks |= s->kind == IR_FOR && is_block(s->loop.how);
    return true;
}

/* Threads start before anything inside the launch runs, so the extent of a thread loop may depend only on
 * what is known outside. */
static void add_axis(vm_builder *b, vm_launch *l, const ir_stmt *loop)
{
    int axis = (int)(loop->loop.how - IR_THREAD_X);
    base_vec vars = {0};

    ir_free_vars(b->vm->mem, loop->loop.extent, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!base_map_has(&b->names->slots, vars.at[i])) {
            ir_vm_fail(b->vm, TEC_UNSUPPORTED, loop->loc,
                       "the extent of the %s loop '%s' depends on '%s', which is bound inside the launch",
                       ir_how_text(loop->loop.how), loop->loop.var->var.name,
                       ((const ir_expr *)vars.at[i])->var.name);
            return;
        }
    l->axes |= 1 << axis;
    base_push(b->vm->mem, &l->extent[axis], ir_vm_expr(b, loop->loop.extent));
}

/* The launch that begins at `loop`, or NULL where it begins further in. Outer blockIdx loops only repeat the
 * launch. */
vm_launch *ir_vm_find_launch(vm_builder *b, const ir_stmt *loop)
{
    scan sc = {.walk = {.expr = ir_skip_expr, .stmt = look_at, .cx = b->vm->mem}};
    vm_launch *l;

    if (!is_block(loop->loop.how) && !is_thread(loop->loop.how))
        return NULL;
    ir_walk_stmt(&sc.walk, loop->loop.body);
    if (is_block(loop->loop.how) && sc.has_blocks)
        return NULL;
    l = base_new(b->vm->mem, vm_launch);
    l->root = loop;
    if (is_thread(loop->loop.how))
        add_axis(b, l, loop);
    for (int i = 0; i < sc.threads.n; i++)
        add_axis(b, l, sc.threads.at[i]);
    base_map_put(b->vm->mem, &b->names->launches, loop, l);
    return l;
}

/* ---- listed buffers ---- */

static vm_launch *launch_around(const vm_builder *b, const vm_place *p)
{
    vm_launch *l = NULL;

    for (; p && !l; p = p->up)
        l = base_map_get(&b->names->launches, p->loop);
    return l;
}

/* Inside a thread's loop, and no loop around the launch, whose iterations run in order, could carry values
 * from one launch to the next. */
static bool belongs_to_thread(const vm_buffer *vb, const vm_launch *l)
{
    const vm_place *p = vb->place;
    bool in_thread = false;

    for (; p && p->loop != l->root; p = p->up)
        in_thread |= is_thread(p->loop->loop.how);
    in_thread |= is_thread(l->root->loop.how);
    for (p = p ? p->up : NULL; p; p = p->up)
        if (p->loop->loop.how == IR_SERIAL || p->loop->loop.how == IR_UNROLLED)
            return false;
    return in_thread;
}

/* Decides for each buffer without an allocation how often it exists: once per group of threads, once per
 * thread, or once for the run. A buffer without a scope belongs to a thread where all its uses lie inside one
 * thread's loops. */
void ir_vm_place_buffers(vm_builder *b, base_vec *once)
{
    for (int i = 0; i < b->names->listed.n; i++) {
        vm_buffer *vb = b->names->listed.at[i];
        vm_launch *l = vb->used ? launch_around(b, vb->place) : NULL;
        ir_scope scope = vb->buffer->scope;

        if (l && (scope == IR_SHARED || scope == IR_WARP))
            base_push(b->vm->mem, &l->per_group, vb);
        else if (l && (scope == IR_LOCAL || belongs_to_thread(vb, l)))
            base_push(b->vm->mem, &l->per_strand, vb);
        else
            base_push(b->vm->mem, once, vb);
    }
}
