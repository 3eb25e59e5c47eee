/* tests/lower/prefetch.c -- loops that ask for what they read later. */
#include "tests/lower/pass.h"

TestSuite(prefetch, .init = open_context, .fini = close_context);

#define ROWS                                                                                                                     \
    "program p(symbol n, A: f32[n, 40], out B: f32[n, 40]) {\n"                                                                  \
    "  for y in 0..n @prefetch.A(2) { for x in 0..40 { B[y, x] = A[y, x] } }\n"                                                  \
    "}\n"

Test(prefetch, asks_for_each_line_of_a_later_row)
{
    const char *out = after("prefetch", AVX512, ROWS);

    HAS("if y + 2 < n {", out);
    HAS("for line in 0..3 {", out);
    HAS("call<i32> prefetch.0(&A, ", out);
    HAS_NOT("@prefetch", out);
    same_meaning("prefetch", AVX512, ROWS, SIZES(0, 1, 2, 3, 7));
}

Test(prefetch, stays_inside_of_the_buffer)
{
    const char *text = "program p(A: f32[18], out B: f32[16]) {\n"
                       "  for i in 0..16 @prefetch.A(5) { B[i] = A[i] + A[17 - i] }\n"
                       "}\n";

    same_meaning("prefetch", AVX512, text, SIZES(1));
}

Test(prefetch, asks_for_buffers_of_several_types)
{
    const char *text = "program p(A: f32[9, 4], I: i8[9, 70], out B: f32[9, 4]) {\n"
                       "  for y in 0..9 @prefetch.A(1) @prefetch.I(2) {\n"
                       "    for x in 0..4 { B[y, x] = A[y, x] + f32(I[y, x * 20]) }\n"
                       "  }\n"
                       "}\n";

    HAS("call<i32> prefetch.1(", after("prefetch", AVX512, text));
    same_meaning("prefetch", AVX512, text, SIZES(1));
}

Test(prefetch, leaves_out_what_is_no_longer_read)
{
    const char *out = after("prefetch", AVX512, "program p(A: f32[8], out B: f32[8]) { for i in 0..8 @prefetch.P(1) { B[i] = A[i] } }\n");

    HAS_NOT("prefetch", out);
}
