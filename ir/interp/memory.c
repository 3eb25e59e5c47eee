/* ir/interp/memory.c -- the memory of a run: stores, and the views that buffers have of them.
 *
 * Everything is allocated in the scratch context, and counted against the run's limit before it is.
 */
#include "ir/interp/vm.h"

/* Counts memory before it is allocated. False after a message: the run would take more than it may. */
bool ir_vm_take(ir_vm *vm, int64_t count, int64_t each, const char *name, base_loc loc)
{
    int64_t bytes;

    if (!__builtin_mul_overflow(count, each, &bytes) && !__builtin_add_overflow(vm->bytes, bytes, &bytes) &&
        bytes <= vm->max_bytes) {
        vm->bytes = bytes;
        return true;
    }
    ir_vm_fail(vm, TEC_INVALID, loc, "'%s' has %lld elements: the buffers of this run would pass %lld MiB",
               name, (long long)count, (long long)(vm->max_bytes >> 20));
    return false;
}

/* Elements and their marks: a byte of flags each, the last accesses where races are looked for, and the
 * pending value where copies are asynchronous. Counted against the limit of the run before any of it is
 * allocated. */
vm_store *ir_vm_new_store(ir_vm *vm, base_dtype t, int64_t count, const char *name, base_loc loc)
{
    int bytes = base_dtype_bytes(base_dtype_lanes(t, 1));
    vm_store *st;

    if (!ir_vm_take(vm, count,
                    bytes + 1 + (vm->checks_races ? (int)sizeof(vm_shadow) : 0) +
                        (vm->copies_async ? (int)sizeof(vm_late) : 0),
                    name, loc))
        return NULL;
    st = base_new(vm->mem, vm_store);
    st->count = count;
    st->bytes = bytes;
    st->data = base_alloc_array(vm->mem, (size_t)count, (size_t)bytes);
    st->flags = base_array(vm->mem, uint8_t, count);
    st->shadow = vm->checks_races ? base_array(vm->mem, vm_shadow, count) : NULL;
    st->late = vm->copies_async ? base_array(vm->mem, vm_late, count) : NULL;
    return st;
}

static bool evaluate_shape(ir_vm *vm, const vm_buffer *b, vm_view *view)
{
    for (int d = 0; d < b->buffer->n; d++) {
        view->shape[d] = vm_run(vm, b->shape[d], 0).i;
        if (view->shape[d] < 0)
            ir_vm_fail(vm, TEC_INVALID, b->buffer->loc, "dimension %d of '%s' has the extent %lld", d,
                       b->buffer->name, (long long)view->shape[d]);
    }
    return !vm->failed;
}

/* Strides in elements, as declared or row by row without gaps. */
static bool evaluate_strides(ir_vm *vm, const vm_buffer *b, vm_view *view)
{
    int64_t compact = 1;

    for (int d = b->buffer->n - 1; d >= 0; d--) {
        view->strides[d] = b->strides ? vm_run(vm, b->strides[d], 0).i : compact;
        if (view->strides[d] < 0)
            ir_vm_fail(vm, TEC_UNSUPPORTED, b->buffer->loc,
                       "dimension %d of '%s' has the negative stride %lld", d, b->buffer->name,
                       (long long)view->strides[d]);
        if (__builtin_mul_overflow(compact, view->shape[d], &compact))
            ir_vm_fail(vm, TEC_INVALID, b->buffer->loc, "'%s' has more elements than can be counted",
                       b->buffer->name);
    }
    return !vm->failed;
}

/* Shape, strides and offset of the view for the values that symbols have now. */
bool ir_vm_shape_view(ir_vm *vm, const vm_buffer *b, vm_view *view)
{
    int64_t offset = b->offset ? vm_run(vm, b->offset, 0).i : 0;

    view->shape = base_array(vm->mem, int64_t, b->buffer->n);
    view->strides = base_array(vm->mem, int64_t, b->buffer->n);
    view->offset = view->base + offset;
    return evaluate_shape(vm, b, view) && evaluate_strides(vm, b, view);
}

/* Elements from the first to the last one that the view can touch; -1 after a message. */
int64_t ir_vm_span(ir_vm *vm, const vm_buffer *b, const vm_view *view)
{
    int64_t last = 0, step;

    for (int d = 0; d < b->buffer->n; d++)
        if (view->shape[d] == 0)
            return 0;
    for (int d = 0; d < b->buffer->n; d++)
        if (__builtin_mul_overflow(view->shape[d] - 1, view->strides[d], &step) ||
            __builtin_add_overflow(last, step, &last) || last >= INT64_MAX / 64) {
            ir_vm_fail(vm, TEC_INVALID, b->buffer->loc, "'%s' spans more elements than can be counted",
                       b->buffer->name);
            return -1;
        }
    return last + 1;
}

/* A view with memory of its own, as large as shape, strides and offset ask for. */
vm_view *ir_vm_new_view(ir_vm *vm, const vm_buffer *b)
{
    vm_view *view = base_new(vm->mem, vm_view);
    int64_t span;

    if (!ir_vm_shape_view(vm, b, view))
        return NULL;
    span = ir_vm_span(vm, b, view);
    if (span < 0)
        return NULL;
    if (view->offset < 0 || view->offset > INT64_MAX / 128) {
        ir_vm_fail(vm, TEC_INVALID, b->buffer->loc, "'%s' begins at element %lld", b->buffer->name,
                   (long long)view->offset);
        return NULL;
    }
    view->store = ir_vm_new_store(vm, b->buffer->dtype, view->offset + span, b->buffer->name, b->buffer->loc);
    if (!view->store)
        return NULL;
    view->store->of = b;
    return view;
}
