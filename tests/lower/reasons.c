/* tests/lower/reasons.c -- why iterations that run at the same time do not disturb each other, as notes. */
#include "tests/lower/pass.h"

TestSuite(reasons, .init = open_context, .fini = close_context);

/* A scan in each lane: its steps go on with what earlier ones wrote, in a column that no other lane touches.
 * */
#define COLUMNS(around, inside)                                                                              \
    "program p(A: f32[9, 4], out B: f32[4]) {\n"                                                             \
    "  buffer C: f32[9, 4]\n"                                                                                \
    "  for j in 0..4 " around " {\n"                                                                         \
    "    block C.first(x = j in 0..4) { reads A[0, x] writes C[0, x] C[0, x] = A[0, x] }\n"                  \
    "    for t in 0..8 { for k in 0..1 " inside " {\n"                                                       \
    "      block C(s scan = t in 0..8, x = j in 0..4) { reads C[s, x], A[s + 1, x] writes C[s + 1, x]\n"     \
    "        C[s + 1, x] = C[s, x] + A[s + 1, x] } } }\n"                                                    \
    "    block B(x = j in 0..4) { reads C[8, x] writes B[x] B[x] = C[8, x] }\n"                              \
    "  }\n"                                                                                                  \
    "}\n"

/* P is written and read in each iteration of i. */
#define TILES(how)                                                                                           \
    "program p(A: f32[8, 4], out B: f32[8, 4]) {\n"                                                          \
    "  buffer P: f32[8, 4]\n"                                                                                \
    "  for i in 0..8 " how " {\n"                                                                            \
    "    for j in 0..4 { block P(y = i in 0..8, x = j in 0..4) { reads A[y, x] writes P[y, x] P[y, x] = "    \
    "A[y, x] "                                                                                               \
    "} }\n"                                                                                                  \
    "    for k in 0..4 { block B(y = i in 0..8, x = k in 0..4) { reads P[y, 3 - x] writes B[y, x]\n"         \
    "      B[y, x] = P[y, 3 - x] } }\n"                                                                      \
    "  }\n"                                                                                                  \
    "}\n"

Test(reasons, notes_that_each_iteration_has_a_buffer_of_its_own)
{
    const char *how[] = {"parallel", "vectorised", "vthread", "blockIdx.x"};

    for (int k = 0; k < BASE_COUNT(how); k++) {
        const char *text = after("reasons", AVX512, base_format(cx, TILES("%s"), how[k]));

        HAS(base_format(cx, "for i in 0..8 %s @reason.P(\"private\") {", how[k]), text);
    }
    same_meaning("reasons", AVX512, TILES("parallel"), SIZES(1));
}

Test(reasons, notes_on_loops_that_keep_their_order_what_is_private)
{
    const char *how[] = {"", "unrolled "};

    for (int k = 0; k < 2; k++)
        HAS(base_format(cx, "for i in 0..8 %s@reason.P(\"private\") {", how[k]),
            after("reasons", AVX512, base_format(cx, TILES("%s"), how[k])));
}

/* An iteration goes on with what the one before left. */
Test(reasons, notes_nothing_of_what_iterations_hand_on)
{
    HAS_NOT("for t in 0..8 @", after("reasons", AVX512, COLUMNS("parallel", "")));
}

/* Old notes are replaced, also where nothing is proven; others stay. */
Test(reasons, replaces_notes_that_stand_there)
{
    const char *text =
        after("reasons", AVX512, TILES("parallel @other(7) @reason.P(\"owned\") @reason.Q(\"once\")"));

    HAS("for i in 0..8 parallel @other(7) @reason.P(\"private\") {", text);
}

Test(reasons, notes_that_iterations_own_what_they_write)
{
    HAS("for j in 0..4 parallel @reason.C(\"owned\") {", after("reasons", AVX512, COLUMNS("parallel", "")));
    same_meaning("reasons", AVX512, COLUMNS("parallel", ""), SIZES(1));
}

/* C is allocated outside of k in any case. */
Test(reasons, notes_which_buffers_are_used_outside_of_the_loop)
{
    HAS("vectorised @reason.C(\"outside\") {", after("reasons", AVX512, COLUMNS("", "vectorised")));
}

/* S is used outside of the loop, or not. */
Test(reasons, notes_that_iterations_add_to_one_element)
{
    const char *text = "program p(A: f32[8], out B: f32[1]) {\n"
                       "  buffer S: f32[1]\n"
                       "  for i in 0..8 vectorised { block S(k reduce = i in 0..8) { reads A[k] writes S[0]\n"
                       "    init { S[0] = 0.0 } S[0] sum= A[k] } }\n"
                       "  block B(x = 0 in 0..1) { reads S[x] writes B[x] B[x] = S[x] }\n"
                       "}\n";

    HAS("vectorised @reason.S(\"outside\") {", after("reasons", AVX512, text));
    text = "program p(A: f32[8], out B: f32[8]) {\n"
           "  buffer S: f32[1]\n"
           "  for i in 0..8 vectorised { block S(k reduce = i in 0..8) { reads A[k] writes S[0]\n"
           "    init { S[0] = 0.0 } S[0] sum= A[k] } }\n"
           "  for i in 0..8 { block B(x = i in 0..8) { reads A[x] writes B[x] B[x] = A[x] } }\n"
           "}\n";
    HAS("vectorised @reason.S(\"combined\") {", after("reasons", AVX512, text));
}

/* A loop of which one iteration at most runs a block. */
Test(reasons, notes_that_no_two_iterations_run_a_block)
{
    const char *text = "program p(A: f32[8], out B: f32[1]) {\n"
                       "  buffer S: f32[1]\n"
                       "  for i in 0..1 vectorised { for k in 0..8 {\n"
                       "    block S(c reduce = i + k in 0..8) { reads A[c] writes S[0]\n"
                       "      init { S[0] = 0.0 } S[0] sum= A[c] } }\n"
                       "    block B(x = i in 0..1) { reads S[x] writes B[x] B[x] = S[x] }\n"
                       "  }\n"
                       "}\n";

    HAS("vectorised @reason.S(\"once\") {", after("reasons", AVX512, text));
}
