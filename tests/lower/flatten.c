/* tests/lower/flatten.c -- one-dimensional buffers. */
#include "tests/lower/pass.h"

TestSuite(flatten, .init = open_context, .fini = close_context);

Test(flatten, counts_elements_from_the_address)
{
    SHOWS("program p(symbol n, A: f32[n * 64], out B: f32[n * 2 * 8]) {\n"
          "  for y in 0..n {\n"
          "    for x in 0..8 {\n"
          "      B[y * 16 + x] = A[y * 64 + x * 2]\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("flatten", AVX512,
                "program p(symbol n, A: f32[n, 64], out B: f32[n, 2, 8]) {\n"
                "  for y in 0..n { for x in 0..8 { B[y, 0, x] = A[y, x*2] } }\n"
                "}\n"));
}

Test(flatten, follows_strides_and_offsets)
{
    const char *text = "program p(symbol n, A: f32[n, 8] strides(16, 1) offset(4), out B: f32[n, 8]) {\n"
                       "  for y in 0..n { for x in 0..8 { B[y, x] = A[y, x] } }\n"
                       "}\n";

    same_meaning("flatten", AVX512, text, SIZES(1, 3));
}

Test(flatten, gives_a_scalar_buffer_one_element)
{
    const char *text = "program p(A: f32[], out B: f32[]) {\n  B[] = A[]\n}\n";

    HAS("(A: f32[1], out B: f32[1]) {\n  B[0] = A[0]\n", after("flatten", AVX512, text));
    same_meaning("flatten", AVX512, text, SIZES(1));
}
