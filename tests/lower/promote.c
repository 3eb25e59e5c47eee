/* tests/lower/promote.c -- local buffers become values. */
#include "tests/lower/pass.h"

TestSuite(promote, .init = open_context, .fini = close_context);

#define P(body)                                                                                              \
    "program p(symbol n, A: f32[64], out B: f32[64]) {\n  for i in 0..64 { B[i] = 7.0 }\n" body "}\n"

Test(promote, makes_one_buffer_for_each_vector)
{
    const char *text = P("  allocate T: f32[32] @local {\n"
                         "    T[ramp(0, 1, 16)] = A[ramp(0, 1, 16)]\n"
                         "    T[ramp(16, 1, 16)] = broadcast(0.0, 16)\n"
                         "    for k in 0..4 { T[ramp(16, 1, 16)] = T[ramp(16, 1, 16)] + T[ramp(0, 1, 16)] }\n"
                         "    B[ramp(0, 1, 16)] = T[ramp(16, 1, 16)]\n"
                         "  }\n");
    const char *now = after("promote", AVX512, text);

    HAS("allocate T.0: f32[16] @local {\n    allocate T.16: f32[16] @local {\n", now);
    HAS("T.16[ramp(0, 1, 16)] = T.16[ramp(0, 1, 16)] + T.0[ramp(0, 1, 16)]", now);
    same_meaning("promote", AVX512, text, SIZES(1));
}

Test(promote, makes_one_buffer_for_each_scalar)
{
    const char *text = P("  allocate T: f32[2] @local { T[1] = A[0] T[0] = T[1] + 1.0 B[0] = T[0] }\n");

    HAS("allocate T.0: f32[1] @local {\n    allocate T.1: f32[1] @local {\n      T.1[0] = A[0]\n",
        after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(1));
}

Test(promote, reads_and_writes_parts_by_shuffles)
{
    const char *text = P("  allocate T: f32[8] @local {\n"
                         "    T[ramp(0, 1, 8)] = A[ramp(0, 1, 8)]\n"
                         "    T[ramp(0, 1, 4)] = T[ramp(0, 1, 4)] + T[ramp(4, 1, 4)]\n"
                         "    T[5] = T[0] + T[3]\n"
                         "    B[ramp(0, 1, 8)] = T[ramp(0, 1, 8)]\n"
                         "  }\n");

    HAS("shuffle(", after("promote", AVX512, text));
    HAS_NOT("T[ramp(4", after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(1));
}

Test(promote, selects_under_masks)
{
    const char *text = P("  allocate T: f32[8] @local {\n"
                         "    T[ramp(0, 1, 8)] = broadcast(0.0, 8) where ramp(0, 1, 8) < broadcast(n, 8)\n"
                         "    for k in 0..4 {\n"
                         "      T[ramp(0, 1, 8)] = (T[ramp(0, 1, 8)] where ramp(0, 1, 8) < broadcast(n, 8)) "
                         "+ A[ramp(k, 1, 8)] where ramp(0, 1, 8) < broadcast(n, 8)\n"
                         "    }\n"
                         "    B[ramp(0, 1, 8)] = T[ramp(0, 1, 8)] where ramp(0, 1, 8) < broadcast(n, 8)\n"
                         "  }\n");

    HAS("= select(ramp(0, 1, 8) < broadcast(n, 8), ", after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(0, 3, 8));
}

/* What a mask leaves out of a load is zero. */
Test(promote, reads_zeros_where_a_mask_is_off)
{
    const char *text = P("  allocate T: f32[8] @local {\n"
                         "    T[ramp(0, 1, 8)] = A[ramp(0, 1, 8)]\n"
                         "    B[ramp(0, 1, 8)] = (T[ramp(0, 1, 8)] where ramp(0, 1, 8) < broadcast(n, 8))\n"
                         "  }\n");

    HAS_NOT(" where ", after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(0, 3, 8));
}

#define FIRST12(x) x " where ramp(0, 1, 16) < broadcast(12, 16)"

/* Rows of 28: the second vector of each uses 12 of its lanes, and the next row begins there. */
Test(promote, keeps_tails_of_rows_in_vectors_of_their_own)
{
    const char *text =
        P("  allocate T: f32[56] @local {\n"
          "    for r in 0..1 {\n"
          "      T[ramp(0, 1, 16)] = broadcast(0.0, 16)\n"
          "      T[ramp(16, 1, 16)] = broadcast(0.0, 16) where ramp(16, 1, 16) < broadcast(28, 16)\n"
          "      T[ramp(28, 1, 16)] = broadcast(1.0, 16)\n"
          "      T[ramp(44, 1, 16)] = broadcast(1.0, 16) where ramp(16, 1, 16) < broadcast(28, 16)\n"
          "    }\n"
          "    for k in 0..4 {\n"
          "      T[ramp(16, 1, 16)] = " FIRST12("(T[ramp(16, 1, 16)]") ") + A[ramp(k, 1, 16)]" FIRST12(
              "") "\n"
                  "      T[ramp(44, 1, 16)] = " FIRST12("(T[ramp(44, 1, 16)]") ") + " FIRST12(
                      "(T[ramp(16, 1, "
                      "16)]") ")" FIRST12("") "\n"
                                              "    }\n"
                                              "    B[ramp(0, 1, 16)] = T[ramp(0, 1, 16)] + T[ramp(28, 1, "
                                              "16)]\n"
                                              "    B[ramp(16, 1, 16)] = " FIRST12(
                                                  "(T[ramp(16, 1, 16)]") ")\n"
                                                                         "    B[ramp(40, 1, 16)] "
                                                                         "= " FIRST12(
                                                                             "(T[ramp(44, 1, "
                                                                             "16)]") ")" FIRST12("") "\n"
                                                                                                     "  }\n");
    const char *now = after("promote", AVX512, text);

    HAS("      T.16[ramp(0, 1, 16)] = T.16[ramp(0, 1, 16)] + A[ramp(k, 1, 16)]\n", now);
    HAS("      T.44[ramp(0, 1, 16)] = T.44[ramp(0, 1, 16)] + T.16[ramp(0, 1, 16)]\n", now);
    HAS("    B[ramp(16, 1, 16)] = select(ramp(0, 1, 16) < broadcast(12, 16), T.16[ramp(0, 1, 16)], "
        "broadcast(0.0, 16))\n",
        now);
    same_meaning("promote", AVX512, text, SIZES(1));
}

/* Lanes that are nobody's divide by whatever they hold: data may be divided by 0. */
Test(promote, divides_beside_a_tail)
{
    const char *text = P("  allocate T: i32[12] @local {\n"
                         "    T[ramp(0, 1, 16)] = " FIRST12(
                             "broadcast(i32(3), 16)") "\n"
                                                      "    T[ramp(0, 1, 16)] = " FIRST12(
                                                          "floordiv(broadcast(i32(60), 16), " FIRST12(
                                                              "(T[ramp(0, 1, 16)]") ") + broadcast(i32(1), "
                                                                                    "16))") "\n"
                                                                                            "    B[ramp(0, "
                                                                                            "1, 12)] = "
                                                                                            "f32x12(T[ramp(0,"
                                                                                            " 1, 12)])\n"
                                                                                            "  }\n");

    HAS("] = floordiv(", after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(1));
}

/* Parts of what is also read as a whole keep the lanes beside them. */
Test(promote, keeps_lanes_beside_a_tail_that_others_read)
{
    const char *text = P("  allocate T: f32[32] @local {\n"
                         "    T[ramp(0, 1, 32)] = A[ramp(0, 1, 32)]\n"
                         "    T[ramp(8, 1, 16)] = " FIRST12(
                             "broadcast(2.0, 16)") "\n"
                                                   "    T[ramp(0, 1, 12)] = T[ramp(16, 1, 12)]\n"
                                                   "    B[ramp(0, 1, 32)] = T[ramp(0, 1, 32)]\n"
                                                   "  }\n");

    HAS("select(ramp(0, 1, 16) < broadcast(12, 16), ", after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(1));
}

/* A mask leaves fewer lanes of it than another access does. */
Test(promote, selects_where_less_than_the_tail_is_stored)
{
    const char *text = P(
        "  allocate T: f32[12] @local {\n"
        "    T[ramp(0, 1, 16)] = " FIRST12("broadcast(1.0, 16)") "\n"
                                                                 "    T[ramp(0, 1, 16)] = broadcast(2.0, 16) "
                                                                 "where ramp(0, 1, 16) < broadcast(5, 16)\n"
                                                                 "    T[11] = T[3] + A[1]\n"
                                                                 "    B[ramp(0, 1, 12)] = T[ramp(0, 1, 12)]\n"
                                                                 "  }\n");

    HAS("select(ramp(0, 1, 16) < broadcast(5, 16), ", after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(1));
}

/* The later store to all of it changes nothing about the lanes that the first ones keep. */
Test(promote, starts_a_cell_whose_lanes_are_stored_one_by_one)
{
    const char *text = P("  allocate T: f32[2] @local {\n"
                         "    T[0] = A[3]\n"
                         "    T[1] = A[5]\n"
                         "    T[ramp(0, 1, 2)] = T[ramp(0, 1, 2)] + broadcast(1.0, 2)\n"
                         "    B[ramp(0, 1, 2)] = T[ramp(0, 1, 2)]\n"
                         "  }\n");

    HAS("allocate T: f32[2] @local {\n    T[ramp(0, 1, 2)] = broadcast(0.0, 2)\n",
        after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(1));
}

Test(promote, leaves_buffers_with_other_indices)
{
    const char *text = P("  allocate T: f32[8] @local { for i in 0..8 { T[i] = A[i] } B[0] = T[3] }\n");

    HAS("T[i] = A[i]", after("promote", AVX512, text));
}

/* A masked store of a cell stores all of it, here in every iteration; one that is allocated inside is the
 * iteration's own. */
Test(promote, leaves_what_a_parallel_loop_stores_from_outside)
{
    const char *text =
        P("  allocate T: f32[4] @local {\n"
          "    T[ramp(0, 1, 4)] = A[ramp(0, 1, 4)]\n"
          "    for i in 0..4 parallel {\n"
          "      T[ramp(0, 1, 4)] = broadcast(2.0, 4) where ramp(i * 4, 1, 4) < broadcast(3, 4)\n"
          "      allocate U: f32[4] @local {\n"
          "        U[ramp(0, 1, 4)] = A[ramp(i * 4, 1, 4)]\n"
          "        U[0] = U[1]\n"
          "        B[ramp(i * 4, 1, 4)] = U[ramp(0, 1, 4)]\n"
          "      }\n"
          "    }\n"
          "    B[ramp(16, 1, 4)] = T[ramp(0, 1, 4)]\n"
          "  }\n");
    const char *now = after("promote", AVX512, text);

    HAS("T[ramp(0, 1, 4)] = broadcast(2.0, 4) where ramp(", now);
    HAS("U[ramp(0, 1, 4)] = shuffle(", now);
    same_meaning("promote", AVX512, text, SIZES(1));
}

/* Copies of unrolled statements, each with an element of its own. */
Test(promote, allocates_the_cells_that_a_copy_uses)
{
    const char *text =
        P("  for i in 0..3 unrolled { allocate T: f32[3] @local { T[i] = A[i] B[i] = T[i] * 2.0 } }\n");
    const char *now = after("unroll,promote", AVX512, text);

    HAS("  allocate T.1: f32[1] @local {\n    T.1[0] = A[1]\n    B[1] = T.1[0] * 2.0\n  }\n  allocate T.2",
        now);
    same_meaning("unroll,promote", AVX512, text, SIZES(1));
}

Test(promote, leaves_vectors_that_overlap)
{
    const char *text = P("  allocate T: f32[8] @local {\n"
                         "    T[ramp(0, 1, 4)] = broadcast(0.0, 4)\n"
                         "    T[ramp(4, 1, 4)] = broadcast(0.0, 4)\n"
                         "    B[ramp(0, 1, 4)] = T[ramp(2, 1, 4)]\n"
                         "  }\n");

    HAS("T[ramp(2, 1, 4)]", after("promote", AVX512, text));
}

Test(promote, leaves_other_scopes)
{
    HAS("allocate T: f32[2] {",
        after("promote", AVX512, P("  allocate T: f32[2] { T[1] = A[0] T[0] = T[1] B[0] = T[0] }\n")));
}

#define M14 " where ramp(0, 1, 16) < broadcast(14, 16)"

/* A row of 28 in two vectors of 14, copied in and out element by element: the loop keeps it in registers. */
Test(promote, holds_partly_used_vectors_in_registers_of_a_loop)
{
    const char *text =
        P("  allocate T: f32[28] @local {\n"
          "    for i in 0..28 { T[i] = A[i] }\n"
          "    for k in 0..n {\n"
          "      T[ramp(0, 1, 16)] = (T[ramp(0, 1, 16)]" M14 ") + (A[ramp(k, 1, 16)]" M14 ")" M14 "\n"
          "      T[ramp(14, 1, 16)] = (T[ramp(14, 1, 16)]" M14 ") * (A[ramp(k, 1, 16)]" M14 ")" M14 "\n"
          "    }\n"
          "    for i in 0..28 { B[i] = T[i] }\n"
          "  }\n");
    const char *now = after("promote", AVX512, text);

    HAS("T.held.16[ramp(0, 1, 16)] = T.held.16[ramp(0, 1, 16)] *", now);
    HAS("T.held.16[ramp(0, 1, 16)], broadcast(0.0, 16)) where ramp(0, 1, 16) < broadcast(14, 16)", now);
    HAS("if 1 <= n {", now);
    same_meaning("promote", AVX512, text, SIZES(0, 1, 5));
}

/* The second vector is touched under a condition, and exists under it alone. */
Test(promote, copies_under_the_condition_of_a_loop)
{
    const char *text =
        P("  allocate T: f32[28] @local {\n"
          "    for i in 0..14 { T[i] = A[i] }\n"
          "    if 2 < n { for i in 0..14 { T[i + 14] = A[i] } }\n"
          "    for k in 0..4 {\n"
          "      T[ramp(0, 1, 16)] = (T[ramp(0, 1, 16)]" M14 ") + (A[ramp(k, 1, 16)]" M14 ")" M14 "\n"
          "      if 2 < n {\n"
          "        T[ramp(14, 1, 16)] = (T[ramp(14, 1, 16)]" M14 ") + broadcast(1.0, 16)" M14 "\n"
          "      }\n"
          "    }\n"
          "    for i in 0..14 { B[i] = T[i] }\n"
          "    if 2 < n { for i in 0..14 { B[i + 14] = T[i + 14] } }\n"
          "  }\n");

    HAS("if 2 < n {\n", after("promote", AVX512, text));
    HAS("T.held.16", after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(1, 2, 3));
}

/* Rows of an output, at constant distances from each other: the loop over k keeps 14 sums of each. */
Test(promote, holds_partly_used_vectors_of_a_parameter)
{
    const char *text = P("  for y in 0..2 {\n"
                         "    B[ramp(y * 28, 1, 16)] = broadcast(0.5, 16)" M14 "\n"
                         "    B[ramp(y * 28 + 14, 1, 16)] = broadcast(0.25, 16)" M14 "\n"
                         "    for k in 0..n {\n"
                         "      B[ramp(y * 28, 1, 16)] = (B[ramp(y * 28, 1, 16)]" M14
                         ") + (A[ramp(k, 1, 16)]" M14 ")" M14 "\n"
                         "      B[ramp(y * 28 + 14, 1, 16)] = (B[ramp(y * 28 + 14, 1, 16)]" M14
                         ") * (A[ramp(k, 1, 16)]" M14 ")" M14 "\n"
                         "    }\n"
                         "  }\n");
    const char *now = after("promote", AVX512, text);

    HAS("B.held.0[ramp(0, 1, 16)] = B.held.0[ramp(0, 1, 16)] +", now);
    HAS("B.held.16[ramp(0, 1, 16)] = B.held.16[ramp(0, 1, 16)] *", now);
    same_meaning("promote", AVX512, text, SIZES(0, 1, 5));
}

/* Another row of the output in each iteration, rows at a distance that a symbol gives, or vectors that
 * overlap: the output stays in memory. */
Test(promote, holds_nothing_of_a_parameter_that_moves)
{
#define ROW(at, sign)                                                                                        \
    "      B[ramp(" at ", 1, 16)] = (B[ramp(" at ", 1, 16)]" M14 ") " sign " (A[ramp(k, 1, 16)]" M14 ")" M14 \
    "\n"
#define LOOP(rows) P("    for k in 0..3 {\n" rows "    }\n")
    const char *const texts[] = {LOOP(ROW("k * 14", "+")), LOOP(ROW("0", "+") ROW("n * 14", "*")),
                                 LOOP(ROW("0", "+") ROW("7", "*"))};

    for (int i = 0; i < 3; i++) {
        HAS_NOT("held", after("promote", AVX512, texts[i]));
        same_meaning("promote", AVX512, texts[i], SIZES(1, 2, 3));
    }
}

/* Iterations answer the condition differently, or the buffer's address is taken: it stays in memory. */
Test(promote, holds_nothing_whose_accesses_differ_between_iterations)
{
    const char *text =
        P("  allocate T: f32[28] @local {\n"
          "    for i in 0..28 { T[i] = A[i] }\n"
          "    for k in 0..4 {\n"
          "      if k < n { T[ramp(0, 1, 16)] = (T[ramp(0, 1, 16)]" M14 ") + broadcast(1.0, 16)" M14 " }\n"
          "    }\n"
          "    for i in 0..28 { B[i] = T[i] }\n"
          "  }\n");

    HAS_NOT("held", after("promote", AVX512, text));
    same_meaning("promote", AVX512, text, SIZES(1, 2, 8));
}
