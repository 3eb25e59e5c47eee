#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "runtime/alloc.h"
#include "tec/runtime.h"

static tec_array *counting(int ndim, const int64_t *shape)
{
    tec_array *a = tec_array_new(BASE_I32, ndim, shape, NULL);

    for (int64_t i = 0; i < tec_tensor_elements(tec_array_tensor(a)); i++)
        ((int32_t *)tec_array_data(a))[i] = (int32_t)i;
    return a;
}

Test(array, is_compact_aligned_and_zero)
{
    tec_array *a = tec_array_new(BASE_F64, 2, (int64_t[]){3, 5}, NULL);
    const DLTensor *t = tec_array_tensor(a);

    cr_assert_eq((uintptr_t)t->data % 64, 0);
    cr_assert(tec_tensor_is_compact(t));
    cr_assert_eq(tec_tensor_bytes(t), 120);
    for (int i = 0; i < 15; i++)
        cr_assert_eq(((double *)t->data)[i], 0);
    tec_array_free(a);
}

/* Whether the kernel was told to use huge pages for the memory at `data`: the flags of its mapping. */
static bool asks_for_huge_pages(const void *data)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long from, to;
    bool inside = false, asks = false;

    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from <= (uintptr_t)data && (uintptr_t)data < to;
        asks |= inside && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg");
    }
    if (maps)
        fclose(maps);
    return asks;
}

/* Emulators of CPUs do not tell the flags of mappings: a mapping that does ask for huge pages tells. */
static bool flags_are_told(void)
{
    void *probe = mmap(NULL, 2 * RT_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool told = probe != MAP_FAILED && madvise(probe, 2 * RT_HUGE_PAGE, MADV_HUGEPAGE) == 0 &&
                asks_for_huge_pages(probe);

    if (probe != MAP_FAILED)
        munmap(probe, 2 * RT_HUGE_PAGE);
    return told;
}

Test(array, a_large_one_lies_on_huge_pages)
{
    tec_array *large = tec_array_new(BASE_U8, 1, &(int64_t){2 * RT_HUGE_PAGE + 100}, NULL),
              *small = tec_array_new(BASE_U8, 1, &(int64_t){RT_HUGE_PAGE - 1}, NULL);
    const uint8_t *bytes = tec_array_data(large);

    cr_assert_eq((uintptr_t)bytes % RT_HUGE_PAGE, 0);
    for (int64_t i = 0; i < 2 * RT_HUGE_PAGE + 100; i += 50)
        cr_assert_eq(bytes[i], 0);
    if (flags_are_told()) {
        cr_assert(asks_for_huge_pages(bytes));
        cr_assert_not(asks_for_huge_pages(tec_array_data(small)));
    }
    tec_array_free(large);
    tec_array_free(small);
}

Test(array, refuses_senseless_shapes)
{
    tec_error err[3] = {0};
    int64_t many[17] = {0};

    cr_assert_null(tec_array_new(BASE_F32, 1, (int64_t[]){-1}, &err[0]));
    cr_assert_str_eq(err[0].text, "the shape or the element type of the array is not valid");
    cr_assert_null(tec_array_new(BASE_F32, 3, (int64_t[]){INT64_MAX, 2, 2}, &err[1]));
    cr_assert_eq(err[1].status, TEC_INVALID);
    cr_assert_null(tec_array_new(BASE_F32, 17, many, &err[2]));
    cr_assert_str_eq(err[2].text, "expected 0 to 16 dimensions of an array, found 17");
}

Test(array, may_be_empty_or_a_scalar)
{
    tec_array *none = tec_array_new(BASE_F32, 3, (int64_t[]){0, INT64_MAX, INT64_MAX}, NULL);
    tec_array *scalar = tec_array_new(BASE_F32, 0, NULL, NULL);
    char text[40];

    cr_assert(none && scalar);
    cr_assert_eq(tec_tensor_bytes(tec_array_tensor(none)), 0);
    cr_assert_eq(tec_tensor_elements(tec_array_tensor(scalar)), 1);
    cr_assert_str_eq(tec_tensor_text(tec_array_tensor(scalar), text, sizeof text), "f32[]");
    tec_array_free(none);
    tec_array_free(scalar);
}

Test(array, a_view_shares_bytes_and_keeps_its_array)
{
    int64_t before = rt_alloc_live();
    tec_array *a = counting(2, (int64_t[]){4, 6});
    tec_array *column = tec_array_view(a, BASE_I32, 1, (int64_t[]){4}, (int64_t[]){6}, 2 * 4, NULL);
    tec_array *copy;

    cr_assert(column);
    tec_array_free(a);
    copy = tec_array_copy(tec_array_tensor(column), NULL);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(((int32_t *)tec_array_data(copy))[i], 6 * i + 2);
    tec_array_free(column);
    tec_array_free(copy);
    cr_assert_eq(rt_alloc_live(), before);
}

static void assert_beyond(tec_array *a, int64_t extent, int64_t stride, int64_t offset)
{
    tec_error err = {0};

    cr_assert_null(tec_array_view(a, BASE_I32, 1, &extent, &stride, offset, &err));
    cr_assert(strstr(err.text, "reaches beyond its array i32[4, 6]"), "%s", err.text);
}

Test(array, a_view_stays_inside_its_array)
{
    tec_array *a = counting(2, (int64_t[]){4, 6});
    tec_array *reversed = tec_array_view(a, BASE_I32, 1, (int64_t[]){24}, (int64_t[]){-1}, 23 * 4, NULL);

    cr_assert(reversed);
    assert_beyond(a, 25, 1, 0);
    assert_beyond(a, 4, 6, 8 * 4);
    assert_beyond(a, 2, -1, 0);
    assert_beyond(a, 1, 1, -4);
    assert_beyond(a, 3, INT64_MAX / 2, 0);
    assert_beyond(a, 3, INT64_MIN, 4);
    assert_beyond(a, 1, 1, INT64_MAX);
    tec_array_free(reversed);
    tec_array_free(a);
}

Test(array, copies_any_strides)
{
    tec_array *a = counting(3, (int64_t[]){2, 3, 4});
    const DLTensor *t = tec_array_tensor(a);
    int64_t shape[] = {4, 3, 2}, strides[] = {1, 4, 12};
    DLTensor transposed = *t;
    tec_array *copy;

    transposed.shape = shape;
    transposed.strides = strides;
    cr_assert(!tec_tensor_is_compact(&transposed));
    copy = tec_array_copy(&transposed, NULL);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 2; k++)
                cr_assert_eq(((int32_t *)tec_array_data(copy))[(i * 3 + j) * 2 + k], k * 12 + j * 4 + i);
    tec_array_free(copy);
    tec_array_free(a);
}

Test(array, refuses_a_copy_between_shapes)
{
    tec_array *a = counting(2, (int64_t[]){4, 6}), *b = counting(1, (int64_t[]){24});
    tec_error err = {0};

    cr_assert(!tec_tensor_copy(tec_array_tensor(a), tec_array_tensor(b), &err));
    cr_assert_str_eq(err.text, "copy: expected i32[4, 6], found i32[24]");
    tec_array_free(a);
    tec_array_free(b);
}

Test(array, goes_through_dlpack_and_back)
{
    int64_t before = rt_alloc_live();
    tec_array *a = counting(2, (int64_t[]){4, 6}), *b;
    DLManagedTensorVersioned *d = tec_array_to_dlpack(a, NULL);
    void *data = tec_array_data(a);

    tec_array_free(a);
    cr_assert_eq(d->version.major, 1);
    b = tec_array_from_dlpack(d, NULL);
    cr_assert_eq(tec_array_data(b), data);
    cr_assert_eq(((int32_t *)tec_array_data(b))[23], 23);
    tec_array_free(b);
    cr_assert_eq(rt_alloc_live(), before);
}

Test(array, refuses_dlpack_that_it_cannot_use)
{
    tec_array *a = counting(1, (int64_t[]){2});
    DLManagedTensorVersioned *d = tec_array_to_dlpack(a, NULL);
    tec_error err[2] = {0};

    d->version.major = 2;
    cr_assert_null(tec_array_from_dlpack(d, &err[0]));
    cr_assert_str_eq(err[0].text, "expected a DLPack array of version 1, found version 2");
    d->version.major = 1;
    d->dl_tensor.device.device_type = kDLCUDA;
    cr_assert_null(tec_array_from_dlpack(d, &err[1]));
    cr_assert_str_eq(err[1].text, "DLPack array: expected a tensor in main memory, found one on cuda:0");
    d->deleter(d);
    tec_array_free(a);
}

Test(array, hands_out_dlpack_without_a_version)
{
    int64_t before = rt_alloc_live();
    tec_array *a = counting(2, (int64_t[]){4, 6});
    DLManagedTensor *d = tec_array_to_dlpack_unversioned(a, NULL);

    tec_array_free(a);
    cr_assert_eq(d->dl_tensor.ndim, 2);
    cr_assert_eq(((int32_t *)d->dl_tensor.data)[23], 23);
    d->deleter(d);
    cr_assert_eq(rt_alloc_live(), before);
    cr_assert_null(tec_array_to_dlpack_unversioned(NULL, NULL));
}
