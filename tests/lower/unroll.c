/* tests/lower/unroll.c -- loops written out. */
#include "tests/lower/pass.h"

TestSuite(unroll, .init = open_context, .fini = close_context);

Test(unroll, writes_one_copy_per_iteration)
{
    SHOWS("program p(A: f32[8], out B: f32[8]) {\n  B[2] = A[2]\n  B[3] = A[3]\n}\n",
          after("unroll", AVX512,
                "program p(A: f32[8], out B: f32[8]) {\n  for i in 2..+2 unrolled { B[i] = A[i] }\n}\n"));
}

Test(unroll, blames_the_users_line_for_a_symbolic_extent)
{
    HAS("test.tir:2: error: cannot unroll 'i': extent 'n' is not a constant",
        refusal("unroll", AVX512,
                "program p(symbol n, A: f32[n], out B: f32[n]) {\n  for i in 0..n unrolled { B[i] = A[i] "
                "}\n}\n"));
}

Test(unroll, refuses_too_many_copies)
{
    HAS("cannot unroll 'i' 5000 times; the limit 'unrolled-copies' is 4096 (--limit unrolled-copies=N, "
        "tec_context_set_limit)",
        refusal(
            "unroll", AVX512,
            "program p(A: f32[5000], out B: f32[5000]) {\n  for i in 0..5000 unrolled { B[i] = A[i] }\n}\n"));
}

Test(unroll, refuses_copies_of_too_large_a_body)
{
    HAS("nodes; the limit 'unrolled-nodes' is 1000000 (--limit unrolled-nodes=N, tec_context_set_limit)",
        refusal("unroll", AVX512,
                "program p(A: f32[4000], out B: f32[4000]) {\n"
                "  for i in 0..4000 unrolled { for j in 0..1000 unrolled { B[i] = A[j] } }\n"
                "}\n"));
}

Test(unroll, follows_the_pragma_within_its_steps)
{
    const char *text =
        "program p(A: f32[64], out B: f32[64]) {\n"
        "  for i in 0..4 @auto_unroll(16) { for j in 0..4 { for k in 0..4 { B[i*16 + j*4 + k] = A[k] } } }\n"
        "}\n";

    HAS("for i in 0..4", after("unroll", AVX512, text));
    HAS_NOT("for j", after("unroll", AVX512, text));
    same_meaning("unroll", AVX512, text, SIZES(1));
}

Test(unroll, follows_the_pragma_within_its_depth)
{
    const char *text = "program p(A: f32[64], out B: f32[64]) {\n"
                       "  for i in 0..4 @auto_unroll(16) @auto_unroll_depth(1) { for j in 0..4 { for k in "
                       "0..4 { B[i*16 + j*4 + k] = A[k] } } }\n"
                       "}\n";

    HAS("for j", after("unroll", AVX512, text));
    HAS_NOT("for k", after("unroll", AVX512, text));
}
