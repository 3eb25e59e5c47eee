/* tests/lower/fma.c -- fused multiply-adds. */
#include "tests/lower/pass.h"

TestSuite(fma, .init = open_context, .fini = close_context);

#define P(t, value)                                                                                          \
    "program p(A: " t "[4], B: " t "[4], out C: " t "[4]) {\n  for i in 0..4 { C[i] = " value " }\n}\n"

Test(fma, fuses_sums_and_differences_of_products)
{
    HAS("C[i] = fma(A[i], B[i], A[0])", after("fma", AVX512, P("f32", "A[0] + A[i]*B[i]")));
    HAS("C[i] = fma(A[i], B[i], A[0])", after("fma", AVX512, P("f64", "A[i]*B[i] + A[0]")));
    HAS("C[i] = fma(-A[i], B[i], A[0])", after("fma", AVX512, P("f32", "A[0] - A[i]*B[i]")));
    HAS("C[i] = fma(A[i], B[i], -A[0])", after("fma", AVX512, P("f32", "A[i]*B[i] - A[0]")));
    same_meaning("fma", AVX512, P("f32", "A[0] - A[i]*B[i] + (A[i]*B[0] - B[i])"), SIZES(1));
}

Test(fma, leaves_integers_and_half_floats)
{
    HAS_NOT("fma", after("fma", AVX512, P("i32", "A[0] + A[i]*B[i]")));
    HAS_NOT("fma", after("fma", AVX512, P("f16", "A[0] + A[i]*B[i]")));
}

Test(fma, does_nothing_under_the_strict_policy_or_without_the_instruction)
{
    const ir_program *p = parse(P("f32", "A[0] + A[i]*B[i]"));

    cr_assert_eq(through("fma", AVX512, p, true), p);
    cr_assert_eq(through("fma", SSE2, p, false), p);
    cr_assert_neq(through("fma", AVX512, p, false), p);
}
