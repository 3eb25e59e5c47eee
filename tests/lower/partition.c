/* tests/lower/partition.c -- interiors without conditions. */
#include "tests/lower/pass.h"

TestSuite(partition, .init = open_context, .fini = close_context);

#define PAD                                                                                                  \
    "program p(symbol n, A: f32[n], out B: f32[n + 2]) {\n"                                                  \
    "  for x in 0..n + 2 { B[x] = select(1 <= x && x < n + 1, A[x - 1], 0.0) }\n"                            \
    "}\n"

Test(partition, cuts_a_loop_around_its_interior)
{
    const char *text = after("simplify,partition,simplify", AVX512, PAD);

    HAS("{\n    B[x] = A[x - 1]\n", text);
    same_meaning("simplify,partition,simplify", AVX512, PAD, SIZES(0, 1, 2, 7));
}

/* The condition speaks of an outer loop and of two inner ones. */
#define CONV                                                                                                 \
    "program p(A: f32[24], W: f32[3], out B: f32[24]) {\n"                                                   \
    "  for x.0 in 0..6 {\n"                                                                                  \
    "    for x.1 in 0..4 unrolled { B[x.0*4 + x.1] = 0.0 }\n"                                                \
    "    for k in 0..3 {\n"                                                                                  \
    "      for x.1 in 0..4 unrolled {\n"                                                                     \
    "        if 0 <= x.0*4 + x.1 + k - 1 && x.0*4 + x.1 + k - 1 < 24 {\n"                                    \
    "          B[x.0*4 + x.1] = B[x.0*4 + x.1] + A[x.0*4 + x.1 + k - 1]*W[k]\n"                              \
    "        }\n"                                                                                            \
    "      }\n"                                                                                              \
    "    }\n"                                                                                                \
    "  }\n"                                                                                                  \
    "}\n"

Test(partition, solves_for_the_outermost_loop_and_then_inside_the_edges)
{
    const char *text = after("simplify,trim,partition,unroll,simplify", AVX512, CONV);

    HAS("for x.0 in 1..+4 {\n", text);
    HAS_NOT("if", text);
    same_meaning("simplify,trim,partition,unroll,simplify", AVX512, CONV, SIZES(1));
}

Test(partition, keeps_a_parallel_loop_in_one_piece)
{
    const char *text =
        "program p(symbol n, A: f32[n], out B: f32[n]) {\n"
        "  for x.0 in 0..floordiv(n + 3, 4) parallel {\n"
        "    for x.1 in 0..4 unrolled { if x.0*4 + x.1 < n { B[x.0*4 + x.1] = A[x.0*4 + x.1] } }\n"
        "  }\n"
        "}\n";

    HAS("parallel {\n    if x.0 ", after("simplify,partition,simplify", AVX512, text));
    same_meaning("simplify,partition,simplify", AVX512, text, SIZES(0, 1, 3, 4, 9));
}

Test(partition, tests_once_for_loops_that_were_fused)
{
    const char *text = "program p(symbol n, A: f32[n, 6], out B: f32[n, 6]) {\n"
                       "  for yx in 0..floordiv(n + 3, 4)*2 {\n"
                       "    for y.1 in 0..4 unrolled { for x.1 in 0..3 unrolled {\n"
                       "      if floordiv(yx, 2)*4 + y.1 < n { B[floordiv(yx, 2)*4 + y.1, yx % 2*3 + x.1] = "
                       "A[floordiv(yx, 2)*4 + y.1, yx % 2*3 + x.1] }\n"
                       "    } }\n"
                       "  }\n"
                       "}\n";

    HAS("{\n    if floordiv(yx, 2) * 4 + 3 < n {\n", after("simplify,partition,simplify", AVX512, text));
    same_meaning("simplify,partition,simplify", AVX512, text, SIZES(0, 1, 3, 4, 9));
}

Test(partition, splits_off_the_one_iteration_that_an_equality_names)
{
    const char *text = "program p(symbol n, A: f32[n], out B: f32[n]) {\n"
                       "  for x in 0..n { B[x] = select(x == 3, A[x], 1.0) }\n"
                       "}\n";

    HAS_NOT("select", after("simplify,partition,simplify", AVX512, text));
    same_meaning("simplify,partition,simplify", AVX512, text, SIZES(0, 3, 4, 9));
}

/* One condition stands under two others, which leave different values to the loop inside; the node is shared
 * by the copies. */
Test(partition, solves_a_condition_in_all_places_where_it_stands)
{
    const char *text = "program p(out B: f32[17]) {\n"
                       "  for x.0 in 0..2 { for x.1 in 0..16 {\n"
                       "    for v in 0..4 vthread {\n"
                       "      if x.1*4 + v < 17 { B[x.1*4 + v] = select(48 - x.0*48 + x.1 < 4, 1.0, 0.0) }\n"
                       "    }\n"
                       "  } }\n"
                       "}\n";

    same_meaning("trim,vthread,simplify,partition", AVX512, text, SIZES(1));
}

Test(partition, leaves_conditions_on_data)
{
    const char *text =
        "program p(A: i64[9], out B: i64[9]) {\n  for x in 0..9 { B[x] = select(A[x] < 3, A[x], 0) }\n}\n";

    SHOWS(after("simplify", AVX512, text), after("simplify,partition", AVX512, text));
}

/* Each thread reads what another one wrote in the same iteration: all of them run one loop and take one
 * branch around. */
Test(partition, keeps_threads_together_that_meet)
{
    static const char text[] =
        "program p(A: f32[8, 4], out B: f32[6, 8, 4]) {\n"
        "  for tx in 0..8 threadIdx.x { for k in 0..6 { allocate S: f32[8, 4] @shared {\n"
        "    for i in 0..4 { S[tx, i] = A[tx, i] }\n"
        "    for i in 0..4 { B[k, tx, i] = select(%s + tx + i < 9, S[7 - tx, i], 0.0) }\n"
        "  } } }\n"
        "}\n";

    for (int i = 0; i < 2; i++) {
        const char *program = base_format(cx, text, i ? "k / 2" : "k");

        same_with_barriers("partition", "cuda", program, SIZES(1));
    }
}
