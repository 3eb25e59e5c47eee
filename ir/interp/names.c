/* ir/interp/names.c -- numbers for variables and buffers, and where the uses of a listed buffer meet.
 *
 * A listed buffer (a loop tree allocates nothing) will get its memory at the innermost place that encloses
 * all its uses. The interpreter gives it one store for the whole run, but knows that place: a parallel loop
 * around it makes the buffer private to an iteration, thread loops around it make it private to a thread.
 */
#include "ir/interp/build.h"

/* A vector variable has two slots for each lane: the value, and whether it is still due. */
int ir_exec_slot(exec_builder *builder, const ir_expr *var)
{
    intptr_t known = (intptr_t)base_map_get(&builder->names->slots, var);

    if (known)
        return (int)known - 1;
    base_map_put(builder->exec->mem, &builder->names->slots, var,
                 (void *)(intptr_t)(builder->exec->n_slots + 1));
    builder->exec->n_slots += var->dtype.lanes == 1 ? 1 : 2 * var->dtype.lanes;
    return builder->exec->n_slots - (var->dtype.lanes == 1 ? 1 : 2 * var->dtype.lanes);
}

/* `listed`: the program lists the buffer at its head and allocates it nowhere, so its place is found from its
 * uses. */
exec_buffer *ir_exec_declare(exec_builder *builder, const ir_buffer *buffer, bool listed)
{
    exec_buffer *vb = base_new(builder->exec->mem, exec_buffer);

    vb->buffer = buffer;
    vb->listed = listed;
    vb->slot = builder->exec->n_views++;
    if (!ir_value_knows(buffer->dtype) || buffer->dtype.lanes != 1)
        ir_exec_fail(builder->exec, TEC_UNSUPPORTED, buffer->loc,
                     "the interpreter has no elements of type %s, as '%s' has",
                     base_dtype_text(builder->exec->mem, buffer->dtype), buffer->name);
    base_map_put(builder->exec->mem, &builder->names->buffers, buffer, vb);
    if (listed)
        base_push(builder->exec->mem, &builder->names->listed, vb);
    return vb;
}

void ir_exec_size_buffer(exec_builder *builder, exec_buffer *vb)
{
    const ir_buffer *buffer = vb->buffer;

    vb->shape = ir_exec_exprs(builder, buffer->shape, buffer->n);
    vb->strides = buffer->strides ? ir_exec_exprs(builder, buffer->strides, buffer->n) : NULL;
    vb->offset = ir_exec_expr(builder, buffer->offset);
}

/* The innermost place that encloses both. */
static const exec_place *common(const exec_place *left, const exec_place *right)
{
    while (left != right)
        if (!right || (left && left->depth >= right->depth))
            left = left->up;
        else
            right = right->up;
    return left;
}

/* Notes where the buffer is used: its memory belongs to the innermost place around all uses. */
exec_buffer *ir_exec_use(exec_builder *builder, const ir_buffer *buffer, base_loc loc)
{
    exec_buffer *vb = base_map_get(&builder->names->buffers, buffer);

    if (!vb) {
        ir_exec_fail(builder->exec, TEC_INVALID, loc,
                     "'%s' is neither a parameter, nor listed, nor allocated around this use", buffer->name);
        return NULL;
    }
    vb->place = vb->used ? common(vb->place, builder->place) : builder->place;
    vb->used = true;
    return vb;
}
