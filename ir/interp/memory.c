/* ir/interp/memory.c -- the memory of a run: stores, and the views that buffers have of them.
 *
 * Everything is allocated in the scratch context, and counted against the run's limit before it is.
 */
#include "ir/interp/exec.h"

/* Counts memory before it is allocated. False after a message: the run would take more than it may. */
bool ir_exec_take(ir_exec *exec, int64_t count, int64_t each, const char *name, base_loc loc)
{
    int64_t bytes;

    if (!__builtin_mul_overflow(count, each, &bytes) && !__builtin_add_overflow(exec->bytes, bytes, &bytes) &&
        bytes <= exec->max_bytes) {
        exec->bytes = bytes;
        return true;
    }
    ir_exec_fail(exec, TEC_INVALID, loc,
                 "'%s' has %lld elements: the buffers of this run would pass %lld MiB", name,
                 (long long)count, (long long)(exec->max_bytes >> 20));
    return false;
}

/* Elements and their marks: a byte of flags each, the last accesses where races are looked for, and the
 * pending value where copies are asynchronous. Counted against the limit of the run before any of it is
 * allocated. */
exec_store *ir_exec_new_store(ir_exec *exec, base_dtype dtype, int64_t count, const char *name, base_loc loc)
{
    int bytes = base_dtype_bytes(base_dtype_lanes(dtype, 1));
    exec_store *st;

    if (!ir_exec_take(exec, count,
                      bytes + 1 + (exec->checks_races ? (int)sizeof(exec_shadow) : 0) +
                          (exec->copies_async ? (int)sizeof(exec_late) : 0),
                      name, loc))
        return NULL;
    st = base_new(exec->mem, exec_store);
    st->count = count;
    st->bytes = bytes;
    st->data = base_alloc_array(exec->mem, (size_t)count, (size_t)bytes);
    st->flags = base_array(exec->mem, uint8_t, count);
    st->shadow = exec->checks_races ? base_array(exec->mem, exec_shadow, count) : NULL;
    st->late = exec->copies_async ? base_array(exec->mem, exec_late, count) : NULL;
    return st;
}

static bool evaluate_shape(ir_exec *exec, const exec_buffer *buffer, exec_view *view)
{
    for (int d = 0; d < buffer->buffer->n; d++) {
        view->shape[d] = exec_run(exec, buffer->shape[d], 0).i;
        if (view->shape[d] < 0)
            ir_exec_fail(exec, TEC_INVALID, buffer->buffer->loc, "dimension %d of '%s' has the extent %lld",
                         d, buffer->buffer->name, (long long)view->shape[d]);
    }
    return !exec->failed;
}

/* Strides in elements, as declared or row by row without gaps. */
static bool evaluate_strides(ir_exec *exec, const exec_buffer *buffer, exec_view *view)
{
    int64_t compact = 1;

    for (int d = buffer->buffer->n - 1; d >= 0; d--) {
        view->strides[d] = buffer->strides ? exec_run(exec, buffer->strides[d], 0).i : compact;
        if (view->strides[d] < 0)
            ir_exec_fail(exec, TEC_UNSUPPORTED, buffer->buffer->loc,
                         "dimension %d of '%s' has the negative stride %lld", d, buffer->buffer->name,
                         (long long)view->strides[d]);
        if (__builtin_mul_overflow(compact, view->shape[d], &compact))
            ir_exec_fail(exec, TEC_INVALID, buffer->buffer->loc, "'%s' has more elements than can be counted",
                         buffer->buffer->name);
    }
    return !exec->failed;
}

/* Shape, strides and offset of the view for the values that symbols have now. */
bool ir_exec_shape_view(ir_exec *exec, const exec_buffer *buffer, exec_view *view)
{
    int64_t offset = buffer->offset ? exec_run(exec, buffer->offset, 0).i : 0;

    view->shape = base_array(exec->mem, int64_t, buffer->buffer->n);
    view->strides = base_array(exec->mem, int64_t, buffer->buffer->n);
    view->offset = view->base + offset;
    return evaluate_shape(exec, buffer, view) && evaluate_strides(exec, buffer, view);
}

/* Elements from the first to the last one that the view can touch; -1 after a message. */
int64_t ir_exec_span(ir_exec *exec, const exec_buffer *buffer, const exec_view *view)
{
    int64_t last = 0, step;

    for (int d = 0; d < buffer->buffer->n; d++)
        if (view->shape[d] == 0)
            return 0;
    for (int d = 0; d < buffer->buffer->n; d++)
        if (__builtin_mul_overflow(view->shape[d] - 1, view->strides[d], &step) ||
            __builtin_add_overflow(last, step, &last) || last >= INT64_MAX / 64) {
            ir_exec_fail(exec, TEC_INVALID, buffer->buffer->loc,
                         "'%s' spans more elements than can be counted", buffer->buffer->name);
            return -1;
        }
    return last + 1;
}

/* A view with memory of its own, as large as shape, strides and offset ask for. */
exec_view *ir_exec_new_view(ir_exec *exec, const exec_buffer *buffer)
{
    exec_view *view = base_new(exec->mem, exec_view);
    int64_t span;

    if (!ir_exec_shape_view(exec, buffer, view))
        return NULL;
    span = ir_exec_span(exec, buffer, view);
    if (span < 0)
        return NULL;
    if (view->offset < 0 || view->offset > INT64_MAX / 128) {
        ir_exec_fail(exec, TEC_INVALID, buffer->buffer->loc, "'%s' begins at element %lld",
                     buffer->buffer->name, (long long)view->offset);
        return NULL;
    }
    view->store = ir_exec_new_store(exec, buffer->buffer->dtype, view->offset + span, buffer->buffer->name,
                                    buffer->buffer->loc);
    if (!view->store)
        return NULL;
    view->store->of = buffer;
    return view;
}
