/* tests/runtime/object.c -- blocks of a heap: how much larger they are than what lies in them, and what a
 * tensor that grows costs. */
#include <criterion/criterion.h>
#include <string.h>

#include "runtime/object.h"

static tec_error err;

/* The bytes that the heap counts for a storage of so many. */
static int64_t block_of(int64_t bytes)
{
    rt_heap *heap = rt_heap_new(0, 0, &err);
    rt_object *storage = rt_new_storage(heap, bytes, &err);

    cr_assert(storage, "%s", err.text);
    int64_t taken = rt_heap_bytes(heap);
    char *data = ((rt_storage_object *)(void *)storage)->data;
    cr_assert_eq((uintptr_t)data % 64, 0);
    memset(data, 1, (size_t)bytes); /* inside the block, or the sanitizer sees it */
    rt_release(storage);
    cr_assert_eq(rt_heap_bytes(heap), 0);
    rt_heap_close(heap);
    return taken;
}

Test(object, a_block_is_at_most_an_eighth_too_large)
{
    int64_t before = 0;

    for (int64_t bytes = 0; bytes < 1 << 14; bytes++) {
        int64_t block = block_of(bytes), whole = bytes + 64;

        cr_assert(block >= whole && (block <= 512 || 8 * block <= 9 * whole), "%lld bytes in %lld",
                  (long long)whole, (long long)block);
        cr_assert(block >= before);
        before = block;
    }
    for (int64_t bytes = (1 << 20) - 65; bytes < (1 << 20) - 62; bytes++)
        cr_assert_eq(block_of(bytes), bytes + 64 <= 1 << 20 ? 1 << 20 : 9 << 17);
}

Test(object, what_no_block_can_hold_is_refused)
{
    rt_heap *heap = rt_heap_new(0, 0, &err);

    cr_assert(!rt_new_storage(heap, INT64_MAX / 4, &err));
    cr_assert_eq(err.status, TEC_NO_MEMORY);
    cr_assert_eq(rt_heap_bytes(heap), 0);
    rt_heap_close(heap);
}

/* A view holds the storage, in whose block the tensor lay. */
Test(object, a_view_outlives_a_tensor_in_the_block_of_its_storage)
{
    rt_heap *heap = rt_heap_new(0, 0, &err);
    int64_t shape[] = {2, 16}, row[] = {16}, negative[] = {2, -1}, huge[] = {INT64_MAX / 2, 16};
    rt_object *whole = rt_new_whole(heap, 0, BASE_F32, 2, shape, &err);
    float *data = rt_as_tensor(whole)->tensor.data;

    cr_assert_eq((uintptr_t)data % 64, 0);
    for (int i = 0; i < 32; i++)
        data[i] = (float)i;
    rt_object *view = rt_new_row(heap, whole, 1, &err);
    rt_release(whole);
    cr_assert_float_eq(((const float *)rt_as_tensor(view)->tensor.data)[15], 31, 0);
    cr_assert_eq(rt_as_tensor(view)->shape[0], row[0]);
    rt_release(view);
    cr_assert_eq(rt_heap_bytes(heap), 0);
    cr_assert(!rt_new_whole(heap, 0, BASE_F32, 2, negative, &err));
    cr_assert(strstr(err.text, "a tensor with extent -1"), "%s", err.text);
    err = (tec_error){0};
    cr_assert(!rt_new_whole(heap, 0, BASE_F32, 2, huge, &err));
    cr_assert_eq(err.status, TEC_NO_MEMORY);
    cr_assert_eq(rt_heap_bytes(heap), 0);
    rt_heap_close(heap);
}

/* The room doubles, so that all copies together are less than three times the result. */
Test(object, a_tensor_that_grows_is_copied_seldom)
{
    enum { ROWS = 5000, WIDTH = 24 };
    rt_heap *heap = rt_heap_new(0, 0, &err);
    int64_t shape[] = {1, WIDTH};
    rt_object *s = rt_new_storage(heap, WIDTH * 4, &err),
              *row = rt_new_tensor(heap, s, 0, BASE_F32, 2, shape, &err);
    rt_object *all = rt_retain(row);

    rt_release(s);
    memset(rt_as_tensor(row)->tensor.data, 0, WIDTH * 4);
    for (int i = 1; i < ROWS; i++)
        cr_assert(all = rt_append(heap, all, row, &err), "%s", err.text);
    cr_assert_eq(rt_as_tensor(all)->shape[0], ROWS);
    cr_assert(rt_heap_count(heap)->copied < (int64_t)3 * ROWS * WIDTH * 4, "copied %lld",
              (long long)rt_heap_count(heap)->copied);
    rt_release(all);
    rt_release(row);
    rt_heap_close(heap);
}

/* A tensor of a layout comes back with its head, but not past the limit. A tensor in a slab is not extended:
 * it would run into its neighbour's bytes. */
Test(object, tensors_of_a_layout_wait_for_the_next_one)
{
    enum { LAYOUT = 2 };
    rt_heap *heap = rt_heap_new(1024, LAYOUT, &err);
    int64_t shape[] = {1, 8}, large[] = {120};
    rt_object *first = rt_new_known(heap, LAYOUT, BASE_F32, 2, shape, &err),
              *row = rt_new_known(heap, LAYOUT, BASE_F32, 2, shape, &err);
    int64_t from_system = rt_heap_count(heap)->from_system, bytes = rt_heap_bytes(heap);

    cr_assert(first && row && first != row);
    cr_assert_eq(rt_as_tensor(first)->layout, LAYOUT);
    memset(rt_as_tensor(first)->tensor.data, 1, 32);
    memset(rt_as_tensor(row)->tensor.data, 2, 32);
    rt_release(first);
    cr_assert_eq(rt_heap_bytes(heap), bytes / 2);
    rt_object *again = rt_take_ready(heap, LAYOUT);
    cr_assert_eq(again, first);
    cr_assert_eq(rt_heap_bytes(heap), bytes);
    cr_assert_eq(rt_heap_count(heap)->from_system, from_system);
    rt_object *grown = rt_append(heap, again, row, &err);
    cr_assert(grown && grown != again, "%s", err.text);
    cr_assert_eq(rt_as_tensor(grown)->layout, 0);
    const char *elements = rt_as_tensor(grown)->tensor.data;
    cr_assert_eq(elements[31], 1);
    cr_assert_eq(elements[32], 2);
    rt_release(grown);
    rt_object *other = rt_new_whole(heap, 0, BASE_F32, 1, large, &err);
    cr_assert(other, "%s", err.text);
    cr_assert(!rt_take_ready(heap, LAYOUT)); /* past the limit */
    cr_assert(!rt_new_known(heap, LAYOUT, BASE_F32, 2, shape, &err));
    cr_assert(strstr(err.text, "the limit of 1024 bytes"), "%s", err.text);
    err = (tec_error){0};
    rt_release(other);
    rt_release(row);
    cr_assert_eq(rt_heap_bytes(heap), 0);
    rt_heap_close(heap);
}

/* The memory of a tensor of a layout comes back when the last view of it goes, and once only: in a slab (the
 * first shape) and in a block of its own. */
Test(object, a_view_keeps_a_tensor_of_a_layout_from_waiting)
{
    for (int64_t width = 16; width <= 16 << 10; width <<= 10) {
        rt_heap *heap = rt_heap_new(0, 1, &err);
        int64_t shape[] = {2, width};
        rt_object *whole = rt_new_known(heap, 1, BASE_F32, 2, shape, &err),
                  *view = rt_new_row(heap, whole, 1, &err);

        memset(rt_as_tensor(whole)->tensor.data, 7, (size_t)width * 8);
        rt_release(whole);
        rt_object *next = rt_take_ready(heap, 1);
        cr_assert_neq(next, whole);
        cr_assert_eq(((const char *)rt_as_tensor(view)->tensor.data)[width * 4 - 1], 7);
        rt_release(view);
        cr_assert_eq(rt_take_ready(heap, 1), whole);
        rt_release(rt_new_row(heap, whole, 0, &err));
        rt_release(whole);
        cr_assert_eq(rt_take_ready(heap, 1), whole);
        rt_release(whole);
        rt_release(next);
        cr_assert_eq(rt_heap_bytes(heap), 0);
        rt_heap_close(heap);
    }
}

/* A result may outlive its heap's owner. */
Test(object, a_heap_goes_with_its_last_tensor_of_a_layout)
{
    rt_heap *heap = rt_heap_new(0, 1, &err);
    int64_t shape[] = {3}, live = rt_alloc_live();
    rt_object *tensor = rt_new_known(heap, 1, BASE_F32, 1, shape, &err);

    cr_assert(tensor, "%s", err.text);
    rt_heap_close(heap);
    rt_release(tensor);
    cr_assert_eq(rt_alloc_live(), live - 1);
}
