/* tests/lower/lanes.c -- vectorised reductions. */
#include "tests/lower/pass.h"

TestSuite(lanes, .init = open_context, .fini = close_context);

#define SUM                                                                                                  \
    "program p(symbol n, A: f32[n], out C: f32[1]) {\n"                                                      \
    "  for k.0 in 0..floordiv(n + 15, 16) {\n"                                                               \
    "    for k.1 in 0..16 vectorised {\n"                                                                    \
    "      block C(k reduce = k.0*16 + k.1 in 0..n) where k.0*16 + k.1 < n {\n"                              \
    "        reads A[k] writes C[0]\n"                                                                       \
    "        init { C[0] = 0.0 }\n"                                                                          \
    "        C[0] sum= A[k]\n"                                                                               \
    "      }\n"                                                                                              \
    "    }\n"                                                                                                \
    "  }\n"                                                                                                  \
    "}\n"

Test(lanes, keeps_one_partial_result_for_each_lane)
{
    const char *text = after("lanes", AVX512, SUM);

    HAS("buffer C.lanes: f32[1, 16] @local", text);
    HAS("block C.lanes.init(", text);
    HAS("block C.lanes.8(", text);
    same_meaning("lanes", AVX512, SUM, SIZES(0, 1, 16, 35));
}

Test(lanes, spans_the_spatial_loops_inside_the_reduction)
{
    same_meaning("lanes,init,blocks,compact,flatten,vectorize", AVX512,
                 "program p(symbol n, A: f32[5, n], out C: f32[5]) {\n"
                 "  for k.0 in 0..floordiv(n + 5, 6) { for y in 0..5 { for k.1 in 0..6 vectorised {\n"
                 "    block C(y = y in 0..5, k reduce = k.0*6 + k.1 in 0..n) where k.0*6 + k.1 < n {\n"
                 "      reads A[y, k] writes C[y] init { C[y] = 2.0 } C[y] sum= A[y, k]\n"
                 "    }\n"
                 "  } } }\n"
                 "}\n",
                 SIZES(0, 1, 6, 20));
}

/* One loop goes over elements and terms: behind it the lanes of an element would be combined more than
 * once. */
Test(lanes, run_in_order_under_a_loop_of_both_kinds)
{
    const char *text = "program p(A: f32[5, 24], out C: f32[5]) {\n"
                       "  for f in 0..15 { for k.1 in 0..8 vectorised {\n"
                       "    block C(y = floordiv(f, 3) in 0..5, k reduce = f % 3 * 8 + k.1 in 0..24) {\n"
                       "      reads A[y, k] writes C[y] init { C[y] = 2.0 } C[y] sum= A[y, k]\n"
                       "    }\n"
                       "  } }\n"
                       "}\n";

    HAS_NOT("lanes", after("lanes", AVX512, text));
    same_meaning("lanes,init,blocks,compact,flatten,vectorize", AVX512, text, SIZES(1));
}

Test(lanes, combines_tuples)
{
    same_meaning("lanes,init,blocks,compact,flatten,vectorize", AVX512,
                 "program p(A: f32[32], out V: f32[1], out I: i64[1]) {\n"
                 "  for k.0 in 0..2 { for k.1 in 0..16 vectorised {\n"
                 "    block M(k reduce = k.0*16 + k.1 in 0..32) {\n"
                 "      reads A[k] writes V[0], I[0] init { V[0] = -inf I[0] = 9223372036854775807 } (V[0], "
                 "I[0]) argmax= (A[k], k)\n"
                 "    }\n"
                 "  } }\n"
                 "}\n",
                 SIZES(1));
}

/* The tail of a fused loop leaves out elements altogether; %s is a condition on elements and terms at
 * once. */
static const char *behind_a_tail(const char *condition)
{
    return base_format(cx,
                       "program p(A: f32[3, 8], out C: f32[3]) {\n"
                       "  for y in 0..3 { block C.init(y = y in 0..3) { writes C[y] C[y] = 2.0 } }\n"
                       "  for f.0 in 0..2 { for f.1 in 0..2 { for f.2 in 0..8 vectorised {\n"
                       "    block C(y = f.0*2 + f.1 in 0..3, k reduce = f.2 in 0..8) where %s {\n"
                       "      reads A[y, k] writes C[y] C[y] sum= A[y, k]\n"
                       "    }\n"
                       "  } } }\n"
                       "}\n",
                       condition);
}

Test(lanes, are_of_the_elements_that_a_fused_tail_leaves)
{
    const char *text = behind_a_tail("f.0*16 + f.1*8 + f.2 < 24");

    HAS("C.lanes", after("lanes", AVX512, text));
    same_meaning("lanes,init,blocks,compact,flatten,vectorize", AVX512, text, SIZES(1));
    same_meaning("all", AVX512, text, SIZES(1));
}

static void runs_in_order(const ir_program *now)
{
    cr_assert(now, "%s", tec_context_error(cx));
    HAS_NOT("vectorised", ir_program_text(cx, now));
    HAS_NOT("lanes", ir_program_text(cx, now));
}

Test(lanes, keeps_the_order_under_the_strict_policy)
{
    runs_in_order(through("lanes", AVX512, parse(SUM), true));
}

Test(lanes, says_why_it_keeps_the_order)
{
    HAS("lanes: the reduction of 'C' over loop 'k.1' runs in order: the floating-point policy is strict\n",
        logged("lanes", AVX512, parse(SUM), true));
    HAS("runs in order: its extent is not a constant\n",
        logged("lanes", AVX512,
               parse("program p(symbol n, A: f32[n], out C: f32[1]) {\n"
                     "  for k in 0..n vectorised {\n"
                     "    block C(k reduce = k in 0..n) { reads A[k] writes C[0] init { C[0] = 0.0 } C[0] "
                     "sum= A[k] }\n"
                     "  }\n"
                     "}\n"),
               false));
    HAS("runs in order: it may not start at the first point of the reduction\n",
        logged("lanes", AVX512,
               parse("program p(A: f32[32], out C: f32[1]) {\n"
                     "  for k in 0..16 vectorised {\n"
                     "    block C(k reduce = k + 16 in 0..32) { reads A[k] writes C[0] init { C[0] = 0.0 } "
                     "C[0] sum= A[k] }\n"
                     "  }\n"
                     "}\n"),
               false));
    HAS("runs in order: the guard 'f.0 < 1 || f.1 * 8 + f.2 < 8' mixes an output axis with a reduction axis "
        "and is not a comparison of sums\n",
        logged("lanes", AVX512, parse(behind_a_tail("f.0 < 1 || f.1*8 + f.2 < 8")), false));
}

Test(lanes, splits_integers_under_the_strict_policy_too)
{
    HAS("buffer C.lanes: i32[1, 16]",
        ir_program_text(cx, through("lanes", AVX512,
                                    parse("program p(A: i32[16], out C: i32[1]) {\n"
                                          "  for k in 0..16 vectorised {\n"
                                          "    block C(k reduce = k in 0..16) { reads A[k] writes C[0] init "
                                          "{ C[0] = i32(0) } C[0] sum= A[k] }\n"
                                          "  }\n"
                                          "}\n"),
                                    true)));
}

Test(lanes, rounds_the_lanes_up_where_there_are_masks)
{
    const char *text =
        "program p(A: f32[11], out C: f32[1]) {\n"
        "  for k in 0..11 vectorised {\n"
        "    block C(k reduce = k in 0..11) { reads A[k] writes C[0] init { C[0] = 0.0 } C[0] sum= A[k] }\n"
        "  }\n"
        "}\n";

    HAS("buffer C.lanes: f32[1, 16]", after("lanes", AVX512, text));
    HAS("buffer C.lanes: f32[1, 11]", after("lanes", SSE2, text));
    same_meaning("all", AVX512, text, SIZES(1));
    same_meaning("all", SSE2, text, SIZES(1));
}

Test(lanes, keeps_the_order_of_a_combiner_that_is_not_declared)
{
    runs_in_order(through("lanes", AVX512,
                          parse("program p(A: f32[32], out C: f32[1]) {\n"
                                "  combiner horner(x: f32; y: f32) = (x*2.0 + y) identity (0.0)\n"
                                "  for k in 0..32 vectorised {\n"
                                "    block C(k reduce = k in 0..32) { reads A[k] writes C[0] init { C[0] = "
                                "0.0 } C[0] horner= A[k] }\n"
                                "  }\n"
                                "}\n"),
                          false));
}

/* What is beside the lanes fills and takes their results in each step of the outer loop, or has nothing to do
 * with them. */
static const char *beside(const char *first, const char *last)
{
    return base_format(
        cx,
        "program p(A: f32[48], out C: f32[1], out D: f32[3]) {\n"
        "  buffer T: f32[1]\n"
        "  block I(z = 0 in 0..1) { writes C[0], T[0] C[0] = 1.0\n T[0] = 0.0 }\n"
        "  for k.0 in 0..3 {\n"
        "    block L(z = k.0 in 0..3) { %s }\n"
        "    for k.1 in 0..16 vectorised {\n"
        "      block S(k reduce = k.0*16 + k.1 in 0..48) { reads A[k] writes T[0] T[0] sum= A[k] }\n"
        "    }\n"
        "    block W(z = k.0 in 0..3) { %s }\n"
        "  }\n"
        "  block E(z = 0 in 0..1) { reads T[0] writes C[0] C[0] = T[0] }\n"
        "}\n",
        first, last);
}

Test(lanes, combine_where_others_fill_and_take_their_results)
{
    const char *text = beside("reads C[0] writes T[0] T[0] = C[0]",
                              "reads T[0] writes C[0], D[z] C[0] = T[0]\n D[z] = T[0]");

    HAS("  for k.0 in 0..3 @reason.T.lanes(\"private\") {\n    block L(", after("lanes", AVX512, text));
    same_meaning("lanes,init,blocks,compact,flatten,vectorize", AVX512, text, SIZES(1));
    same_meaning("all", AVX512, text, SIZES(1));
    text = beside("writes D[z] D[z] = 2.0", "writes D[z] D[z] = 3.0");
    HAS_NOT("  for k.0 in 0..3 {\n    block L(z = k.0 in 0..3) {\n      writes D[z]\n      D[z] = 2.0\n    "
            "}\n    for lane",
            after("lanes", AVX512, text));
    same_meaning("lanes,init,blocks,compact,flatten,vectorize", AVX512, text, SIZES(1));
}

Test(lanes, leaves_vectorised_spatial_loops)
{
    const ir_program *p = parse("program p(A: f32[32, 4], out C: f32[32]) {\n"
                                "  for k in 0..4 { for y in 0..32 vectorised {\n"
                                "    block C(y = y in 0..32, k reduce = k in 0..4) { reads A[y, k] writes "
                                "C[y] init { C[y] = 0.0 } C[y] sum= A[y, k] }\n"
                                "  } }\n"
                                "}\n");

    cr_assert_eq(through("lanes", AVX512, p, false), p);
    /* Here the loop is that of the terms as well, of which each element has one. */
    p = parse("program p(A: f32[8, 4], out C: f32[8]) {\n"
              "  for k in 0..4 { for y in 0..8 vectorised {\n"
              "    block C(y = y in 0..8, k reduce = k + floordiv(y, 8) in 0..4) { reads A[y, k] writes C[y] "
              "init { C[y] = 0.0 } C[y] sum= A[y, k] }\n"
              "  } }\n"
              "}\n");
    cr_assert_eq(through("lanes", AVX512, p, false), p);
}
