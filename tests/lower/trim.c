/* tests/lower/trim.c -- conditions become bounds. */
#include "tests/lower/pass.h"

TestSuite(trim, .init = open_context, .fini = close_context);

#define PROGRAM(body) "program p(symbol n, A: f32[n], out B: f32[n]) {\n" body "}\n"

Test(trim, skips_padding_taps)
{
    const char *text = "program p(A: f32[8], W: f32[3], out B: f32[8]) {\n"
                       "  for x in 0..8 {\n"
                       "    B[x] = 0.0\n"
                       "    for k in 0..3 {\n"
                       "      if 0 <= x + k - 1 && x + k - 1 < 8 { B[x] = B[x] + A[x + k - 1]*W[k] }\n"
                       "    }\n"
                       "  }\n"
                       "}\n";

    HAS_NOT("if", after("trim", AVX512, text));
    same_meaning("trim", AVX512, text, SIZES(1));
}

Test(trim, shortens_a_tail)
{
    const char *text = PROGRAM("  for x.0 in 0..floordiv(n + 3, 4) { for x.1 in 0..4 { if x.0*4 + x.1 < n { "
                               "B[x.0*4 + x.1] = A[x.0*4 + x.1] } } }\n");

    HAS_NOT("if", after("trim", AVX512, text));
    same_meaning("trim", AVX512, text, SIZES(0, 1, 3, 4, 9));
}

Test(trim, understands_negative_and_large_coefficients)
{
    const char *text = PROGRAM("  for x in 0..n { B[x] = 0.0 }\n"
                               "  for x in 0..40 { if 3*x < n && n - 2*x <= 9 { B[3*x] = 1.0 } }\n");

    HAS_NOT("if", after("trim", AVX512, text));
    same_meaning("trim", AVX512, text, SIZES(0, 1, 3, 8, 9, 30));
}

Test(trim, moves_a_condition_out_of_loops_that_it_does_not_use)
{
    const char *text = PROGRAM("  for x in 0..n { B[x] = 0.0 }\n"
                               "  for i in 0..9 { for x in 0..1 { for j in 0..3 unrolled { if i*4 + x < n { "
                               "B[i*4 + x] = 1.0 } } } }\n");

    HAS("for j in 0..3 unrolled {\n          B[", after("trim", AVX512, text));
    same_meaning("trim", AVX512, text, SIZES(0, 1, 30));
}

Test(trim, takes_the_common_conjuncts_of_a_sequence_outside)
{
    const char *text = PROGRAM(
        "  for x.0 in 0..floordiv(n + 3, 4) { for x.1 in 0..4 {\n"
        "    if x.0*4 + x.1 < n { B[x.0*4 + x.1] = 0.0 }\n"
        "    for k in 0..3 { if x.0*4 + x.1 < n { B[x.0*4 + x.1] = B[x.0*4 + x.1] + A[x.0*4 + x.1] } }\n"
        "  } }\n");

    HAS_NOT("if", after("trim", AVX512, text));
    same_meaning("trim", AVX512, text, SIZES(0, 1, 3, 4, 9));
}

Test(trim, leaves_conditions_of_vectorised_loops_and_of_loads)
{
    const char *text = "program p(symbol n, A: i64[n], out B: i64[n]) {\n"
                       "  for x in 0..n { B[x] = 5 }\n"
                       "  for x in 0..16 vectorised { if x < n { B[x] = A[x] } }\n"
                       "  for x in 0..n { if A[x] < 2 { B[x] = 7 } }\n"
                       "}\n";

    HAS("vectorised {\n    if x < n {", after("trim", AVX512, text));
    HAS("if A[x] < 2 {", after("trim", AVX512, text));
    same_meaning("trim", AVX512, text, SIZES(0, 1, 30));
}

Test(trim, trims_a_vectorised_loop_to_constants)
{
    HAS("for x in 1..+6 vectorised", after("trim", AVX512,
                                           "program p(out B: f32[8]) {\n  for x in 0..8 vectorised { if 1 <= "
                                           "x && x < 7 { B[x] = 1.0 } }\n}\n"));
}

Test(trim, keeps_an_else)
{
    const char *text = PROGRAM("  for x in 0..n { if x < 5 { B[x] = 1.0 } else { B[x] = A[x] } }\n");

    HAS("else", after("trim", AVX512, text));
    same_meaning("trim", AVX512, text, SIZES(0, 3, 9));
}

/* Threads in pairs hand each other a value: a loop with bounds of its own for each pair would have no place
 * where all meet. */
Test(trim, keeps_the_bounds_of_loops_in_which_threads_meet)
{
    static const char text[] = "program p(A: f32[8, 8], out B: f32[8, 8]) {\n"
                               "  for tx in 0..8 threadIdx.x { for i in 0..8 { B[i, tx] = 0.0 }\n"
                               "    for k in 0..8 { allocate S: f32[8] @%s {\n"
                               "      if tx / 2 + k < 9 { S[tx] = A[k, tx] }\n"
                               "      if tx / 2 + k < 9 { B[k, tx] = S[%s] }\n"
                               "    } }\n"
                               "  }\n"
                               "}\n";
    const char *meet = base_format(cx, text, "shared", "tx + 1 - tx % 2*2");

    HAS("for k in 0..8 {", after("trim", "cuda", meet));
    same_meaning("trim,barriers", "cuda", base_format(cx, text, "local", "tx"), SIZES(1));
    HAS("for k in 0..min(8, 9 - floordiv(tx, 2))",
        after("trim", "cuda", base_format(cx, text, "local", "tx")));
    same_with_barriers("trim", "cuda", meet, SIZES(1));
}
