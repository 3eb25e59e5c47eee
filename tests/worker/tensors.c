/* tests/worker/tensors.c -- the rules of comparing, and how differences read. */
#include "worker/tensors.h"

#include <criterion/criterion.h>
#include <math.h>

static char text[400];

static bool same_as(DLDataType t, void *got, void *want, int64_t n)
{
    DLTensor a = {.data = got, .device = {kDLCPU, 0}, .ndim = 1, .dtype = t, .shape = &n}, b = a;

    b.data = want;
    return worker_compare(&a, &b, text, sizeof text);
}

#define F32(got, want) same_as((DLDataType){kDLFloat, 32, 1}, &(float){got}, &(float){want}, 1)
#define F64(got, want) same_as((DLDataType){kDLFloat, 64, 1}, &(double){got}, &(double){want}, 1)

Test(tensors, an_infinity_equals_only_itself)
{
    cr_assert(F32(INFINITY, INFINITY) && F32(-INFINITY, -INFINITY) && F32(NAN, NAN));
    cr_assert_not(F32(3, INFINITY));
    cr_assert_str_eq(text, "[0] is 3, expected inf (1 of 1 elements differ)");
    cr_assert_not(F32(INFINITY, 3));
    cr_assert_not(F32(INFINITY, -INFINITY));
    cr_assert_not(F32(NAN, INFINITY));
    cr_assert_not(F32(INFINITY, NAN));
    cr_assert_not(F32(NAN, 1));
    cr_assert_not(F32(1, NAN));
}

Test(tensors, float32_is_held_to_a_thousandth)
{
    cr_assert(F32(1.0009f, 1));
    cr_assert_not(F32(1.0012f, 1));
    cr_assert(F32(0, 0.9e-7f));
    cr_assert_not(F32(0, 1.2e-7f));
}

Test(tensors, float64_is_held_to_a_thousand_millionth)
{
    cr_assert(F64(1 + 0.9e-9, 1));
    cr_assert_not(F64(1 + 1.2e-9, 1));
    cr_assert_str_eq(text, "[0] is 1.0000000012000001, expected 1 (1 of 1 elements differ)");
    cr_assert(F64(0, 0.9e-12));
    cr_assert_not(F64(0, 1.2e-12));
}

Test(tensors, the_greatest_element_widens_what_is_allowed_near_zero)
{
    DLDataType f32 = {kDLFloat, 32, 1}, f64 = {kDLFloat, 64, 1};

    cr_assert(same_as(f32, (float[]){0.9e-3f, 1000}, (float[]){0, 1000}, 2));
    cr_assert_not(same_as(f32, (float[]){1.1e-3f, 1000}, (float[]){0, 1000}, 2));
    cr_assert_not(same_as(f32, (float[]){0.9e-3f, INFINITY}, (float[]){0, INFINITY}, 2));
    cr_assert(same_as(f64, (double[]){0.9e-9, 1000}, (double[]){0, 1000}, 2));
    cr_assert_not(same_as(f64, (double[]){1.1e-9, 1000}, (double[]){0, 1000}, 2));
}

Test(tensors, the_neighbour_of_a_bfloat_is_near_enough)
{
    DLDataType bf16 = {kDLBfloat, 16, 1};
    uint16_t one = 0x3f80, next = 0x3f81, far = 0x3f82;

    cr_assert(same_as(bf16, &next, &one, 1));
    cr_assert_not(same_as(bf16, &far, &one, 1));
}

Test(tensors, integers_read_as_their_type_means_them)
{
    cr_assert_not(same_as((DLDataType){kDLInt, 32, 1}, (int32_t[]){7, -1}, (int32_t[]){7, -2}, 2));
    cr_assert_str_eq(text, "[1] is -1, expected -2 (1 of 2 elements differ)");
    cr_assert_not(same_as((DLDataType){kDLInt, 8, 1}, (int8_t[]){-128}, (int8_t[]){127}, 1));
    cr_assert_str_eq(text, "[0] is -128, expected 127 (1 of 1 elements differ)");
    cr_assert_not(same_as((DLDataType){kDLUInt, 64, 1}, (uint64_t[]){UINT64_MAX}, (uint64_t[]){0}, 1));
    cr_assert_str_eq(text, "[0] is 18446744073709551615, expected 0 (1 of 1 elements differ)");
    cr_assert_not(same_as((DLDataType){kDLBool, 8, 1}, (uint8_t[]){1}, (uint8_t[]){0}, 1));
    cr_assert_str_eq(text, "[0] is true, expected false (1 of 1 elements differ)");
}

/* The results of models of 16 bits may be some roundings of the greatest value apart. */
Test(tensors, models_of_16_bits_are_held_to_their_greatest_value)
{
    uint16_t far[] = {0x0010, 0x3f80}, near[] = {0x3cf0, 0x3f80}, want[] = {0x0000, 0x3f80};
    int64_t n = 2;
    DLTensor a = {.data = near, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLBfloat, 16, 1}, .shape = &n},
             b = a;

    b.data = want;
    cr_assert_not(worker_compare(&a, &b, text, sizeof text), "0.0293 beside 1, for a kernel");
    cr_assert(worker_compare_model(&a, &b, text, sizeof text), "%s", text);
    far[0] = 0x3d10; /* 0.0352: more than 2^-5 */
    a.data = far;
    cr_assert_not(worker_compare_model(&a, &b, text, sizeof text));
    float x[] = {1e-4F, 1}, y[] = {0, 1};
    a = (DLTensor){.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n};
    b = a;
    b.data = y;
    cr_assert_not(worker_compare_model(&a, &b, text, sizeof text), "float32 is held as a kernel's");
}
