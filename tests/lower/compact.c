/* tests/lower/compact.c -- where buffers are allocated, and how large. */
#include "tests/lower/pass.h"

TestSuite(compact, .init = open_context, .fini = close_context);

/* The notes below stand for what the pass `reasons` finds of loop trees; tests/tree/private.c has the
 * proofs. */

/* P is needed with a halo of one on both sides; all of it once for each block of 8. */
#define HALO                                                                                                 \
    "program p(A: f32[66], out B: f32[64]) {\n"                                                              \
    "  buffer P: f32[66]\n"                                                                                  \
    "  for i in 0..8 @reason.P(\"private\") {\n"                                                             \
    "    for j in 0..10 { P[i*8 + j] = A[i*8 + j]*2.0 }\n"                                                   \
    "    for j in 0..8 { B[i*8 + j] = P[i*8 + j] + P[i*8 + j + 2] }\n"                                       \
    "  }\n"                                                                                                  \
    "}\n"

Test(compact, shrinks_a_buffer_to_its_hull)
{
    const char *text = after("compact", AVX512, HALO);

    HAS("  for i in 0..8 {\n    allocate P: f32[10]", text);
    same_meaning("compact", AVX512, HALO, SIZES(1));
}

/* Without the note, an iteration might read what an earlier one wrote. */
Test(compact, leaves_a_buffer_outside_of_a_loop_without_a_note)
{
    const char *text = "program p(A: f32[8], out B: f32[8]) {\n"
                       "  buffer P: f32[8]\n"
                       "  for i in 0..8 {\n"
                       "    P[i] = A[i]\n"
                       "    B[i] = P[i]\n"
                       "  }\n"
                       "}\n";

    HAS("{\n  allocate P: f32[8] @local {\n    for i", after("compact", AVX512, text));
    same_meaning("compact", AVX512, text, SIZES(1));
}

/* Neither inside nor outside would be right for sure. */
Test(compact, refuses_a_loop_whose_iterations_run_at_the_same_time_without_a_note)
{
    const char *loops[] = {"parallel", "vectorised", "vthread", "blockIdx.x"};

    for (int k = 0; k < 4; k++) {
        HAS(base_format(
                cx,
                "loop 'i' is %s, and no note says whether each iteration has its own 'P': run the pass "
                "'reasons' on the loop tree, or note @reason.P(\"private\") or @reason.P(\"owned\")",
                loops[k]),
            refusal("compact", AVX512,
                    base_format(cx,
                                "program p(A: f32[8], out B: f32[8]) {\n"
                                "  buffer P: f32[8]\n"
                                "  for i in 0..8 %s {\n"
                                "    P[i] = A[i]\n"
                                "    B[i] = P[i]\n"
                                "  }\n"
                                "}\n",
                                loops[k])));
        tec_context_clear(cx);
    }
}

/* What nobody reads has its place at the write, note or not. */
Test(compact, needs_no_note_for_what_nobody_reads)
{
    HAS("for i in 0..8 parallel {\n    B[i] = A[i]\n    allocate P: f32[1] @local {",
        after("compact", AVX512,
              "program p(A: f32[8], out B: f32[8]) {\n"
              "  buffer P: f32[8]\n"
              "  for i in 0..8 parallel { B[i] = A[i] P[i] = A[i] }\n"
              "}\n"));
}

Test(compact, makes_a_few_elements_local)
{
    HAS("allocate P: f32[10] @local {", after("compact", AVX512, HALO));
}

/* A stack belongs to one thread. */
Test(compact, makes_nothing_local_that_several_threads_use)
{
    HAS("  allocate P: f32[4] {\n",
        after("compact", AVX512,
              "program p(A: f32[4], out B: f32[6, 4]) {\n"
              "  buffer P: f32[4]\n"
              "  for x in 0..4 { P[x] = A[x] }\n"
              "  for z in 0..2 { for y in 0..3 parallel { for x in 0..4 { B[z*3 + y, x] = P[3 - x] } } }\n"
              "}\n"));
}

Test(compact, keeps_a_carried_buffer_outside_the_loop)
{
    const char *text = "program p(A: f32[64], out B: f32[64]) {\n"
                       "  buffer S: f32[1]\n"
                       "  S[0] = 0.0\n"
                       "  for i in 0..64 {\n"
                       "    S[0] = S[0] + A[i]\n"
                       "    B[i] = S[0]\n"
                       "  }\n"
                       "}\n";

    HAS("{\n  allocate S: f32[1] @local {\n    S[0] = 0.0", after("compact", AVX512, text));
    same_meaning("compact", AVX512, text, SIZES(1));
}

/* Each parallel iteration goes on with the tile that it left, and none touches another's. */
Test(compact, keeps_what_tiles_of_parallel_iterations_hand_on)
{
    static const char *const tiles[] = {"i*4 + j", "31 - i*4 - j", "i*4 + 3 - j"};

    for (int k = 0; k < BASE_COUNT(tiles); k++) {
        const char *at = tiles[k];
        const char *text = base_format(
            cx,
            "program p(A: f32[32], out B: f32[3, 32]) {\n"
            "  buffer P: f32[32]\n"
            "  for t in 0..3 { for i in 0..8 parallel @reason.P(\"owned\") {\n"
            "    for j in 0..4 { if t == 0 { P[%s] = A[i*4 + j] } else { P[%s] = P[%s] + 1.0 } }\n"
            "    for j in 0..4 { B[t, i*4 + j] = P[%s] }\n"
            "  } }\n"
            "}\n",
            at, at, at, at);

        HAS("{\n  allocate P: f32[32] {\n    for t", after("compact", AVX512, text));
        same_meaning("compact", AVX512, text, SIZES(1));
    }
}

/* Nothing here says that all data are less than 100; but all iterations of j write S[0]. */
Test(compact, keeps_a_buffer_private_to_the_lanes_that_all_write_it)
{
    const char *loops[] = {"vectorised", "parallel", "vthread", "blockIdx.x"};

    for (int k = 0; k < 4; k++) {
        const char *text = base_format(cx,
                                       "program p(A: f32[8, 4], out B: f32[8, 4]) {\n"
                                       "  buffer S: f32[1]\n"
                                       "  for i in 0..8 {\n"
                                       "    for j in 0..4 %s @reason.S(\"private\") {\n"
                                       "      if A[i, j] < 100.0 { S[0] = A[i, j] }\n"
                                       "      B[i, j] = S[0] * 2.0\n"
                                       "    }\n"
                                       "  }\n"
                                       "}\n",
                                       loops[k]);

        HAS(base_format(cx, "for j in 0..4 %s {\n      allocate S: f32[1]", loops[k]),
            after("compact", AVX512, text));
        same_meaning("compact", AVX512, text, SIZES(1));
    }
}

/* Whatever n is, all iterations of j write the same elements of S. */
Test(compact, keeps_a_buffer_of_symbolic_size_private_to_the_lanes)
{
    const char *text = "program p(symbol n, A: f32[8, n], out B: f32[8, 4, n]) {\n"
                       "  buffer S: f32[n]\n"
                       "  for i in 0..8 {\n"
                       "    for j in 0..4 parallel @reason.S(\"private\") {\n"
                       "      for k in 0..n { if A[i, k] < 100.0 { S[k] = A[i, k] } }\n"
                       "      for k in 0..n { B[i, j, k] = S[k] * 2.0 }\n"
                       "    }\n"
                       "  }\n"
                       "}\n";

    HAS("for j in 0..4 parallel {\n      allocate S: f32[n]", after("compact", AVX512, text));
    same_meaning("compact", AVX512, text, SIZES(0, 1, 5));
}

/* No two iterations of j write S: it is nobody's own, and the loop around carries it. A loop of one iteration
 * needs no note. */
Test(compact, keeps_a_buffer_that_one_iteration_writes_outside_the_carrying_loop)
{
    const char *loops[] = {"0..1 parallel { let go = true", "0..4 parallel @reason.S(\"once\") { if j < 1",
                           "0..4 vthread @reason.S(\"once\") { if j == 0"};

    for (int k = 0; k < 3; k++) {
        const char *text = base_format(cx,
                                       "program p(A: f32[8], out B: f32[8]) {\n"
                                       "  buffer S: f32[1]\n"
                                       "  for i in 0..8 {\n"
                                       "    for j in %s {\n"
                                       "      if i == 0 { S[0] = 1.0 } else { S[0] = S[0] + A[i] }\n"
                                       "      B[i] = S[0] * 2.0\n"
                                       "    } }\n"
                                       "  }\n"
                                       "}\n",
                                       loops[k]);

        HAS("{\n  allocate S: f32[1]", after("compact", AVX512, text));
        same_meaning("compact", AVX512, text, SIZES(1));
    }
}

/* Nothing here says that all threads write the same elements, nor that each writes what it reads. */
Test(compact, leaves_memory_of_threads_in_their_launch)
{
    const char *text = "program p(A: f32[8, 4], out B: f32[8, 4]) {\n"
                       "  buffer S: f32[20] @local\n"
                       "  for i in 0..8 {\n"
                       "    for j in 0..4 threadIdx.x {\n"
                       "      if A[i, j] < 100.0 { S[j * j] = A[i, j] }\n"
                       "      B[i, j] = S[j * j] * 2.0\n"
                       "    }\n"
                       "  }\n"
                       "}\n";

    HAS("for j in 0..4 threadIdx.x {\n      allocate S: f32", after("compact", AVX512, text));
    same_meaning("compact", AVX512, text, SIZES(1));
}

/* Iterations that write elements of their own have S together, where a loop around carries it; iterations to
 * which S is private have one each. No note stays. */
Test(compact, follows_the_reason_why_iterations_do_not_meet)
{
    const char *how[] = {"parallel", "vectorised", "vthread"}, *reason[] = {"owned", "once", "private"};
    const char *body = "select(i == 0, 0.0, S[j / 4, j % 4]) + A[i]";

    for (int k = 0; k < 9; k++) {
        const char *text = base_format(cx,
                                       "program p(A: f32[8], out B: f32[8, 12]) {\n"
                                       "  buffer S: f32[3, 4]\n"
                                       "  for i in 0..8 {\n"
                                       "    for j in 0..12 %s @reason.S(\"%s\") @other(1) {\n"
                                       "      S[j / 4, j %% 4] = %s\n"
                                       "      B[i, j] = S[j / 4, j %% 4]\n"
                                       "    }\n"
                                       "  }\n"
                                       "}\n",
                                       how[k % 3], reason[k / 3], k < 6 ? body : "A[i]");
        HAS(k < 6 ? "{\n  allocate S: f32[3, 4] " : "@other(1) {\n      allocate S: f32[1, 1] @local",
            after("compact", AVX512, text));
        HAS_NOT("reason", after("compact", AVX512, text));
        same_meaning("compact", AVX512, text, SIZES(1));
    }
}

/* Each iteration of j writes what it reads, which a condition hides, and the next one writes it too: the loop
 * around seems to carry S. */
Test(compact, keeps_a_buffer_private_whose_elements_are_not_known_to_be_distinct)
{
    const char *how[] = {"parallel", "vectorised", "vthread"};

    for (int k = 0; k < 3; k++) {
        const char *text = base_format(cx,
                                       "program p(A: f32[8], out B: f32[8, 8]) {\n"
                                       "  buffer S: f32[4]\n"
                                       "  for i in 0..8 {\n"
                                       "    for j in 0..8 %s @reason.S(\"private\") {\n"
                                       "      if A[j] < 0.0 { S[j / 2] = A[j] } else { S[j / 2] = 1.0 }\n"
                                       "      B[i, j] = S[j / 2]\n"
                                       "    }\n"
                                       "  }\n"
                                       "}\n",
                                       how[k]);

        HAS(base_format(cx, "    for j in 0..8 %s {\n      allocate S: f32[1]", how[k]),
            after("compact", AVX512, text));
        same_meaning("compact", AVX512, text, SIZES(1));
    }
}

Test(compact, never_shares_a_buffer_between_parallel_iterations)
{
    const char *text = "program p(symbol n, A: f32[n, 64], out B: f32[n, 64]) {\n"
                       "  buffer P: f32[n, 64]\n"
                       "  for i in 0..n parallel @reason.P(\"private\") {\n"
                       "    for j in 0..64 { P[i, j] = A[i, j]*2.0 }\n"
                       "    for j in 0..64 { B[i, j] = P[i, 63 - j] }\n"
                       "  }\n"
                       "}\n";

    HAS("parallel {\n    allocate P: f32[1, 64]", after("compact", AVX512, text));
    same_meaning("compact", AVX512, text, SIZES(0, 1, 3));
}

Test(compact, wraps_only_the_statements_that_use_the_buffer)
{
    HAS("  B[0] = 1.0\n"
        "  allocate P: f32[1] @local {\n"
        "    P[0] = 2.0\n"
        "    B[1] = P[0]\n"
        "  }\n"
        "  B[2] = 3.0\n",
        after("compact", AVX512,
              "program p(out B: f32[3]) {\n  buffer P: f32[1]\n  B[0] = 1.0\n  P[0] = 2.0\n  B[1] = P[0]\n  "
              "B[2] = 3.0\n}\n"));
}

Test(compact, keeps_a_gathered_dimension_whole)
{
    const char *text = "program p(A: f32[4, 64], I: i64[4], out B: f32[4]) {\n"
                       "  buffer P: f32[4, 64]\n"
                       "  for i in 0..4 @reason.P(\"private\") {\n"
                       "    for j in 0..64 { P[i, j] = A[i, j] }\n"
                       "    B[i] = P[i, 32 + I[i]]\n"
                       "  }\n"
                       "}\n";

    HAS("for i in 0..4 {\n    allocate P: f32[1, 64]", after("compact", AVX512, text));
    same_meaning("compact", AVX512, text, SIZES(1));
}

Test(compact, keeps_the_shape_of_a_buffer_with_strides)
{
    HAS("allocate P: f32[4, 8] @local strides(9, 1) {", after("compact", AVX512,
                                                              "program p(A: f32[4, 8], out B: f32[4, 8]) {\n"
                                                              "  buffer P: f32[4, 8] strides(9, 1)\n"
                                                              "  for i in 0..4 {\n"
                                                              "    for j in 0..8 { P[i, j] = A[i, j] }\n"
                                                              "    for j in 0..8 { B[i, j] = P[i, j] }\n"
                                                              "  }\n"
                                                              "}\n"));
}

/* Rows of 65 lie in other banks, as they do one after the other: the new rows are 8, and 33 is 65 modulo 32
 * words. Rows of 96 keep to the banks of 0: 32. Rows that lie as close as they can do so still. */
Test(compact, keeps_the_banks_of_shared_memory_with_strides)
{
    static const struct {
        const char *strides, *now;
    } rows[] = {{"65, 1", "33, 1"}, {"96, 1", "32, 1"}, {"68, 1", "36, 1"}, {"64, 1", "8, 1"}};

    for (int k = 0; k < 4; k++) {
        const char *text =
            base_format(cx,
                        "program p(A: f32[64, 64], out B: f32[64, 64]) {\n"
                        "  buffer P: f32[64, 64] @shared strides(%s)\n"
                        "  for b in 0..8 blockIdx.x @reason.P(\"private\") {\n"
                        "    for i in 0..64 { for j in 0..8 { P[i, b*8 + j] = A[i, b*8 + j] } }\n"
                        "    for i in 0..64 { for j in 0..8 { B[i, b*8 + j] = P[i, b*8 + j] } }\n"
                        "  }\n"
                        "}\n",
                        rows[k].strides);

        HAS(base_format(cx, "allocate P: f32[64, 8] @shared strides(%s) {", rows[k].now),
            after("compact", "cuda", text));
        same_meaning("compact", "cuda", text, SIZES(1));
    }
}

Test(compact, drops_a_buffer_that_nobody_uses)
{
    HAS_NOT("P",
            after("compact", AVX512, "program p(out B: f32[1]) {\n  buffer P: f32[3]\n  B[0] = 1.0\n}\n"));
}

Test(compact, moves_a_local_buffer_of_symbolic_size_to_the_workspace)
{
    const char *text = "program p(symbol n, A: f32[n], out B: f32[n]) {\n"
                       "  buffer P: f32[n] @local\n"
                       "  for i in 0..n { P[i] = A[i] }\n"
                       "  for i in 0..n { B[i] = P[n - 1 - i] }\n"
                       "}\n";

    HAS("allocate P: f32[n] {", after("compact", AVX512, text));
    HAS("compact: 'P' is kept in the workspace: dimension 0 is 'n' here\n",
        logged("compact", AVX512, parse(text), false));
    same_meaning("compact", AVX512, text, SIZES(0, 1, 5));
}

Test(compact, refuses_a_shared_buffer_that_does_not_fit)
{
    HAS("buffer 'P' takes 400000 bytes of shared memory, the target has 166912",
        refusal("compact", "cuda",
                "program p(A: f32[100000], out B: f32[100000]) {\n"
                "  buffer P: f32[100000] @shared\n"
                "  for i in 0..100000 { P[i] = A[i] }\n"
                "  for i in 0..100000 { B[i] = P[99999 - i] }\n"
                "}\n"));
}

Test(compact, refuses_a_shared_buffer_of_symbolic_size)
{
    HAS("buffer 'P' in scope shared needs constant extents: dimension 0 is 'n' here",
        refusal("compact", AVX512,
                "program p(symbol n, A: f32[n], out B: f32[n]) {\n"
                "  buffer P: f32[n] @shared\n"
                "  for i in 0..n { P[i] = A[i] }\n"
                "  for i in 0..n { B[i] = P[n - 1 - i] }\n"
                "}\n"));
}

/* Each thread of x has its own P for all of the launch, but it is written outside of the loop over x. */
Test(compact, refuses_local_memory_of_symbolic_size_that_no_loop_tells_apart)
{
    HAS("buffer 'P' in scope local needs constant extents: dimension 0 is 'n' here",
        refusal("compact", "cuda",
                "program p(symbol n, A: f32[n], out B: f32[8, n]) {\n"
                "  buffer P: f32[n] @local\n"
                "  for b in 0..1 blockIdx.x {\n"
                "    for i in 0..n { P[i] = A[i] }\n"
                "    for t in 0..8 threadIdx.x { for i in 0..n { B[t, i] = P[n - 1 - i] } }\n"
                "  }\n"
                "}\n"));
}

Test(compact, keeps_shared_memory_of_symbolic_size_in_the_workspace)
{
    const char *text = after("compact", "cuda",
                             "program p(symbol n, symbol m, A: f32[n], out B: f32[m, 8]) {\n"
                             "  buffer P: f32[n] @shared\n"
                             "  for b in 0..m blockIdx.x {\n"
                             "    for t in 0..8 threadIdx.x { for i in 0..n/8 { P[i*8 + t] = A[i*8 + t] } }\n"
                             "    for t in 0..8 threadIdx.x { B[b, t] = P[7 - t] }\n"
                             "  }\n"
                             "}\n");

    HAS("allocate P: f32[m, n] {\n    for b in 0..m blockIdx.x", text);
    HAS("B[b, t] = P[b, 7 - t]", text);
}

/* Each warp adds up its own row: y tells the warps of a block apart. */
Test(compact, keeps_warp_memory_of_symbolic_size_apart_for_each_warp)
{
    const char *format =
                   "program p(symbol n, A: f32[4, n], out B: f32[4, 32]) {\n"
                   "  buffer P: f32[n] @warp\n"
                   "  for b in 0..1 blockIdx.x { for y in 0..4 threadIdx.y { for t in 0..%s threadIdx.x {\n"
                   "    for i in 0..n/32 { P[i*32 + t] = A[y, i*32 + t] }\n"
                   "    B[y, t] = P[31 - t]\n"
                   "  } } }\n"
                   "}\n",
               *text = after("compact", "cuda", base_format(cx, format, "32"));

    HAS("allocate P: f32[1, 4, n] {\n    for b in 0..1 blockIdx.x", text);
    HAS("B[y, t] = P[b, y, 31 - t]", text);
    HAS("buffer 'P' in scope warp needs constant extents: dimension 0 is 'n' here",
        refusal("compact", "cuda", base_format(cx, format, "64")));
}

/* Uses outside of loops over y are by the first row of threads, which is one warp: no part for each y. Uses
 * inside of one that the memory stands outside of are by several warps, each with memory of its own. */
Test(compact, keeps_warp_memory_of_symbolic_size_of_the_first_warp_alone)
{
    const char *format = "program p(symbol n, A: f32[n], out B: f32[4, 32], out C: f32[4, 32]) {\n"
                         "  buffer P: f32[n] @warp\n"
                         "  for b in 0..1 blockIdx.x {\n"
                         "    for y in 0..4 threadIdx.y { for t in 0..%d threadIdx.x { C[y, t] = 1.0 } }\n"
                         "    for t in 0..%d threadIdx.x {\n"
                         "      for i in 0..n/32 { P[i*32 + t] = A[i*32 + t] }\n"
                         "      B[0, t] = P[31 - t]\n"
                         "    }\n"
                         "    %s\n"
                         "  }\n"
                         "}\n";
    static const struct {
        int row, used;
        const char *more;
        bool kept;
    } cases[] = {
        {32, 32, "", true},
        {16, 32, "", true},
        {64, 32, "", true},
        {64, 64, "", false},
        {32, 32, "for y in 0..4 threadIdx.y { for t in 0..32 threadIdx.x { C[y, t] = P[t] } }", false},
    };

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        close_context(); /* a refusal stays in the context */
        open_context();
        const char *text = base_format(cx, format, cases[i].row, cases[i].used, cases[i].more);

        if (cases[i].kept)
            HAS("allocate P: f32[1, n] {\n    for b in 0..1 blockIdx.x", after("compact", "cuda", text));
        else
            HAS("buffer 'P' in scope warp needs constant extents", refusal("compact", "cuda", text));
    }
}

/* What one launch writes and another one reads outlives both, whatever its scope and size. */
Test(compact, keeps_warp_memory_that_launches_share_in_the_workspace)
{
    HAS("allocate P: f32[n] {\n    for b in 0..1 blockIdx.x",
        after("compact", "cuda",
              "program p(symbol n, A: f32[n], out B: f32[4, 32]) {\n"
              "  buffer P: f32[n] @warp\n"
              "  for b in 0..1 blockIdx.x { for t in 0..32 threadIdx.x {\n"
              "    for i in 0..n/32 { P[i*32 + t] = A[i*32 + t] }\n"
              "  } }\n"
              "  for b in 0..4 blockIdx.x { for t in 0..32 threadIdx.x { B[b, t] = P[t] } }\n"
              "}\n"));
}

/* The first extent is a symbol outside of the loops, and strides do not depend on it. */
Test(compact, shrinks_warp_and_shared_memory_with_strides_in_rows_of_a_symbol)
{
    static const char *const scopes[] = {"warp", "shared"};

    for (int k = 0; k < BASE_COUNT(scopes); k++) {
        const char *text = base_format(
            cx,
            "program p(symbol n, A: f32[n, 64, 64], out B: f32[n, 64, 64]) {\n"
            "  buffer P: f32[n, 64, 64] @%s strides(4160, 65, 1)\n"
            "  for b in 0..n blockIdx.x @reason.P(\"private\") { for t in 0..32 threadIdx.x {\n"
            "    for i in 0..64 { for j in 0..2 { P[b, i, j*32 + t] = A[b, i, j*32 + t] } }\n"
            "    for i in 0..64 { for j in 0..2 { B[b, i, j*32 + t] = P[b, i, j*32 + 31 - t] } }\n"
            "  } }\n"
            "}\n",
            scopes[k]);

        HAS(base_format(cx, "allocate P: f32[1, 64, 64] @%s strides(4160, 65, 1) {", scopes[k]),
            after("compact", "cuda", text));
    }
}

/* A mask reads as a value does: what it reads of an earlier iteration has to last. */
Test(compact, keeps_alive_what_a_mask_reads)
{
    const char *text = "program p(symbol n, A: f32[n, 4], out C: f32[n, 4]) {\n"
                       "  buffer T: f32[4]\n"
                       "  for y in 0..n {\n"
                       "    for x in 0..4 { C[y, x] = 0.0 }\n"
                       "    if y > 0 { C[y, ramp(0, 1, 4)] = A[y, ramp(0, 1, 4)] where T[ramp(0, 1, 4)] > "
                       "broadcast(0.0, 4) }\n"
                       "    for x in 0..4 { T[x] = A[y, x] }\n"
                       "  }\n"
                       "}\n";

    HAS("  allocate T: f32[4] @local {\n    for y in 0..n {\n", after("compact", AVX512, text));
    same_meaning("compact", AVX512, text, SIZES(0, 1, 2, 5));
}
