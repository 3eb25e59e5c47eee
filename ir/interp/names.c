/* ir/interp/names.c -- numbers for variables and buffers, and where the uses of a listed buffer meet.
 *
 * A listed buffer (a loop tree allocates nothing) will get its memory at the innermost place that encloses
 * all its uses. The interpreter gives it one store for the whole run, but knows that place: a parallel loop
 * around it makes the buffer private to an iteration, thread loops around it make it private to a thread.
 */
#include "ir/interp/build.h"

/* A vector variable has two slots for each lane: the value, and whether it is still due. */
int ir_vm_slot(vm_builder *b, const ir_expr *var)
{
    intptr_t known = (intptr_t)base_map_get(&b->names->slots, var);

    if (known)
        return (int)known - 1;
    base_map_put(b->vm->mem, &b->names->slots, var, (void *)(intptr_t)(b->vm->n_slots + 1));
    b->vm->n_slots += var->dtype.lanes == 1 ? 1 : 2 * var->dtype.lanes;
    return b->vm->n_slots - (var->dtype.lanes == 1 ? 1 : 2 * var->dtype.lanes);
}

/* `listed`: the program lists the buffer at its head and allocates it nowhere, so its place is found from its
 * uses. */
vm_buffer *ir_vm_declare(vm_builder *b, const ir_buffer *buffer, bool listed)
{
    vm_buffer *vb = base_new(b->vm->mem, vm_buffer);

    vb->buffer = buffer;
    vb->listed = listed;
    vb->slot = b->vm->n_views++;
    if (!ir_value_knows(buffer->dtype) || buffer->dtype.lanes != 1)
        ir_vm_fail(b->vm, TEC_UNSUPPORTED, buffer->loc,
                   "the interpreter has no elements of type %s, as '%s' has",
                   base_dtype_text(b->vm->mem, buffer->dtype), buffer->name);
    base_map_put(b->vm->mem, &b->names->buffers, buffer, vb);
    if (listed)
        base_push(b->vm->mem, &b->names->listed, vb);
    return vb;
}

void ir_vm_size_buffer(vm_builder *b, vm_buffer *vb)
{
    const ir_buffer *buffer = vb->buffer;

    vb->shape = ir_vm_exprs(b, buffer->shape, buffer->n);
    vb->strides = buffer->strides ? ir_vm_exprs(b, buffer->strides, buffer->n) : NULL;
    vb->offset = ir_vm_expr(b, buffer->offset);
}

/* The innermost place that encloses both. */
static const vm_place *common(const vm_place *a, const vm_place *b)
{
    while (a != b)
        if (!b || (a && a->depth >= b->depth))
            a = a->up;
        else
            b = b->up;
    return a;
}

/* Notes where the buffer is used: its memory belongs to the innermost place around all uses. */
vm_buffer *ir_vm_use(vm_builder *b, const ir_buffer *buffer, base_loc loc)
{
    vm_buffer *vb = base_map_get(&b->names->buffers, buffer);

    if (!vb) {
        ir_vm_fail(b->vm, TEC_INVALID, loc,
                   "'%s' is neither a parameter, nor listed, nor allocated around this use", buffer->name);
        return NULL;
    }
    vb->place = vb->used ? common(vb->place, b->place) : b->place;
    vb->used = true;
    return vb;
}
