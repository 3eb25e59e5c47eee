/* tests/lower/blocks.c -- blocks become what they do. */
#include "tests/lower/pass.h"

TestSuite(blocks, .init = open_context, .fini = close_context);

Test(blocks, substitutes_bindings_and_tests_the_predicate)
{
    SHOWS("program p(symbol n, A: f32[n], out B: f32[n]) {\n"
          "  for x.0 in 0..floordiv(n + 3, 4) {\n"
          "    for x.1 in 0..4 {\n"
          "      if x.0 * 4 + x.1 < n {\n"
          "        B[x.0 * 4 + x.1] = A[x.0 * 4 + x.1] * 2.0\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("blocks", AVX512,
                "program p(symbol n, A: f32[n], out B: f32[n]) {\n"
                "  for x.0 in 0..floordiv(n + 3, 4) { for x.1 in 0..4 {\n"
                "    block B(x = x.0*4 + x.1 in 0..n) where x.0*4 + x.1 < n { reads A[x] writes B[x] B[x] = "
                "A[x]*2.0 }\n"
                "  } }\n"
                "}\n"));
}

Test(blocks, makes_an_update_a_load_and_a_store)
{
    SHOWS(
        "program p(A: f32[8], out C: f32[1]) {\n"
        "  for k in 0..8 {\n"
        "    C[0] = C[0] + A[k]\n"
        "  }\n"
        "}\n",
        after("blocks", AVX512,
              "program p(A: f32[8], out C: f32[1]) {\n"
              "  for k in 0..8 { block C(k reduce = k in 0..8) { reads A[k] writes C[0] C[0] sum= A[k] } }\n"
              "}\n"));
}

#define ARGMAX                                                                                               \
    "program p(A: f32[3, 9], out V: f32[3], out I: i64[3]) {\n"                                              \
    "  for y in 0..3 {\n"                                                                                    \
    "    for k in 0..9 {\n"                                                                                  \
    "      block M(y = y in 0..3, k reduce = k in 0..9) {\n"                                                 \
    "        reads A[y, k] writes V[y], I[y]\n"                                                              \
    "        init { V[y] = -inf I[y] = 9223372036854775807 }\n"                                              \
    "        (V[y], I[y]) argmax= (A[y, k], k)\n"                                                            \
    "      }\n"                                                                                              \
    "    }\n"                                                                                                \
    "  }\n"                                                                                                  \
    "}\n"

Test(blocks, loads_all_of_a_tuple_before_it_stores_any)
{
    same_meaning("init,blocks", AVX512, ARGMAX, SIZES(1));
}

Test(blocks, refuses_an_init_that_has_no_place_yet)
{
    HAS("the initialisation of block 'C' was not moved out of the block",
        refusal("blocks", AVX512,
                "program p(A: f32[8], out C: f32[1]) {\n"
                "  for k in 0..8 { block C(k reduce = k in 0..8) { reads "
                "A[k] writes C[0] init { C[0] = 0.0 } C[0] sum= A[k] } }\n"
                "}\n"));
}
