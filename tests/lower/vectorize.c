/* tests/lower/vectorize.c -- vectorised loops become vector statements. */
#include "tests/lower/pass.h"

TestSuite(vectorize, .init = open_context, .fini = close_context);

#define F32(body)                                                                                            \
    "program p(symbol n, A: f32[1000], I: i64[64], out B: f32[64]) {\n  for x in 0..64 { B[x] = 9.0 "        \
    "}\n" body "}\n"

Test(vectorize, makes_ramps_of_register_width)
{
    const char *text = F32("  for x in 0..32 vectorised { B[x] = A[x]*2.0 }\n");

    HAS("for x.v in 0..2 unrolled {\n    B[ramp(x.v * 16, 1, 16)] = A[ramp(x.v * 16, 1, 16)] * "
        "broadcast(2.0, 16)\n  }\n",
        after("vectorize", AVX512, text));
    HAS("for x.v in 0..4 unrolled {\n    B[ramp(x.v * 8, 1, 8)]", after("vectorize", AVX2, text));
    HAS("for x.v in 0..8 unrolled {\n    B[ramp(x.v * 4, 1, 4)]", after("vectorize", SSE2, text));
    same_meaning("vectorize", AVX512, text, SIZES(1));
}

Test(vectorize, masks_what_is_left_over)
{
    const char *text = F32("  for x in 0..21 vectorised { B[x] = A[x] }\n");

    HAS("where ramp(0, 1, 8) < broadcast(5, 8)", after("vectorize", AVX512, text));
    HAS_NOT("broadcast(5", after("vectorize", SSE2, text));
    same_meaning("vectorize", AVX512, text, SIZES(1));
    same_meaning("vectorize", AVX2, text, SIZES(1));
    same_meaning("vectorize", SSE2, text, SIZES(1));
}

Test(vectorize, masks_lanes_of_a_condition)
{
    const char *text =
        F32("  for x in 0..64 vectorised { if x < n { B[x] = A[x] + A[x*3] } else { B[x] = 1.0 } }\n");

    HAS(" where ramp(x.v * 16, 1, 16) < broadcast(n, 16)", after("vectorize", AVX512, text));
    same_meaning("vectorize", AVX512, text, SIZES(0, 1, 17, 64));
    same_meaning("vectorize", SSE2, text, SIZES(0, 1, 17, 64));
}

Test(vectorize, runs_whole_vectors_without_masks_where_there_are_none)
{
    const char *text =
        after("vectorize", SSE2, F32("  for x in 0..64 vectorised { if x < n { B[x] = A[x] } }\n"));

    HAS("B[ramp(x.v * 4, 1, 4)] = A[ramp(x.v * 4, 1, 4)]\n", text);
    HAS("for x.lane in 0..4 {", text);
}

Test(vectorize, gathers_and_scatters)
{
    const char *text = F32("  for x in 0..64 vectorised { B[63 - x] = A[I[x]*3 + x*2 + 12] }\n");

    HAS("B[ramp(63 - x.v * 16, -1, 16)]", after("vectorize", "llvm -mcpu=x86-64-v4",
                                                F32("  for x in 0..64 vectorised { B[63 - x] = A[x*2] }\n")));
    same_meaning("vectorize", AVX512, text, SIZES(1));
    same_meaning("vectorize", SSE2, text, SIZES(1));
}

/* A ramp times the same number in all lanes is a ramp; times another ramp it is none. */
Test(vectorize, multiplies_ramps)
{
    const char *square = F32("  for x in 0..16 vectorised { B[x] = A[x*x] }\n"),
               *scaled = F32("  for x in 0..16 vectorised { B[x] = A[n*x] }\n");

    HAS("A[ramp(0, 1, 16) * ramp(0, 1, 16)]", after("vectorize", AVX512, square));
    HAS("A[ramp(0, n, 16)]", after("vectorize", AVX512, scaled));
    same_meaning("vectorize", AVX512, square, SIZES(1));
    same_meaning("vectorize", AVX512, scaled, SIZES(0, 1, 7));
}

Test(vectorize, selects_lane_by_lane)
{
    const char *text = F32("  for x in 0..64 vectorised { B[x] = select(1 <= x && x < n, A[x - 1], 0.0) + "
                           "select(n > 5, A[x], 1.0) }\n");

    same_meaning("vectorize", AVX512, text, SIZES(0, 1, 17, 64));
    same_meaning("vectorize", SSE2, text, SIZES(0, 1, 17, 64));
}

Test(vectorize, keeps_loops_inside)
{
    const char *text =
        F32("  for x in 0..16 vectorised { B[x] = 0.0 for k in 0..n { B[x] = B[x] + A[k*16 + x]*A[k] } }\n");

    HAS("for k in 0..n {\n    B[ramp(0, 1, 16)] = B[ramp(0, 1, 16)] + A[ramp(k * 16, 1, 16)] * "
        "broadcast(A[k], 16)\n",
        after("vectorize", AVX512, text));
    same_meaning("vectorize", AVX512, text, SIZES(0, 1, 5));
}

Test(vectorize, keeps_a_scalar_load_under_a_mask_inside_its_buffer)
{
    const char *text = F32("  for x in 0..16 vectorised { if x + 16 < n { B[x] = A[n*40 - 1600] } }\n");

    same_meaning("vectorize", AVX512, text, SIZES(0, 16, 40));
}

Test(vectorize, guards_divisions_of_lanes_that_do_not_run)
{
    const char *text = "program p(A: i64[16], out B: i64[16]) {\n"
                       "  for x in 0..16 { B[x] = 0 }\n"
                       "  for x in 0..16 vectorised { if x > 3 { B[x] = floordiv(A[x], x - 3) } }\n"
                       "}\n";

    same_meaning("vectorize", AVX512, text, SIZES(1));
}

Test(vectorize, gives_each_lane_its_copy_of_a_buffer)
{
    const char *text = F32("  for x in 0..16 vectorised {\n"
                           "    allocate T: f32[2] @local {\n"
                           "      T[0] = A[x]\n"
                           "      T[1] = 3.0\n"
                           "      B[x] = T[0]*T[1]\n"
                           "    }\n"
                           "  }\n");

    HAS("allocate T: f32[32] @local {", after("vectorize", AVX512, text));
    same_meaning("vectorize", AVX512, text, SIZES(1));
}

Test(vectorize, evaluates_lets_once)
{
    same_meaning(
        "vectorize", AVX512,
        F32("  for x in 0..16 vectorised { let t = A[x] + 1.0 { let u = A[n] { B[x] = t*t*u } } }\n"),
        SIZES(1));
}

Test(vectorize, runs_loops_of_different_lengths_lane_by_lane)
{
    const char *text =
        F32("  for x in 0..16 vectorised { B[x] = 0.0 for k in 0..x { B[x] = B[x] + A[k] } }\n");

    HAS("B[ramp(0, 1, 16)] = broadcast(0.0, 16)\n  for x.lane in 0..16 {\n    for k in 0..x.lane {",
        after("vectorize", AVX512, text));
    same_meaning("vectorize", AVX512, text, SIZES(1));
}

Test(vectorize, runs_a_reduction_in_memory_in_order)
{
    HAS("for x.lane in 0..16 {\n    B[3] = B[3] + A[x.lane]\n",
        after("vectorize", AVX512, F32("  for x in 0..16 vectorised { B[3] = B[3] + A[x] }\n")));
}

Test(vectorize, sees_through_divisions_by_the_lanes)
{
    const char *text = F32("  for x in 0..64 vectorised { B[x] = A[floordiv(x, 16)*100 + x % 16] }\n");

    HAS("A[ramp(x.v * 100, 1, 16)]", after("simplify,vectorize", AVX512, text));
    same_meaning("simplify,vectorize", AVX512, text, SIZES(1));
}

Test(vectorize, takes_lanes_for_the_widest_elements)
{
    HAS("ramp(x.v * 8, 1, 8)",
        after(
            "vectorize", AVX512,
            "program p(A: i8[64], out B: i64[64]) {\n  for x in 0..64 vectorised { B[x] = i64(A[x]) }\n}\n"));
}

Test(vectorize, calls_functions_lane_by_lane)
{
    const char *text = after("vectorize", AVX512,
                             "program p(A: f32[16], out B: f32[16]) {\n"
                             "  intrinsic foo\n"
                             "  for x in 0..16 vectorised { B[x] = call<f32> foo(A[x]) }\n"
                             "}\n");

    HAS("for x.lane in 0..16 {", text);
}

Test(vectorize, says_what_runs_lane_by_lane_and_why)
{
    HAS("vectorize: a statement of loop 'x' runs lane by lane: the bounds of loop 'k' differ between lanes\n",
        logged("vectorize", AVX512,
               parse(F32("  for x in 0..16 vectorised { for k in 0..x { B[k] = A[x] } }\n")), false));
    HAS("vectorize: a statement of loop 'x' runs lane by lane: all lanes store to one element of 'B'\n",
        logged("vectorize", AVX512, parse(F32("  for x in 0..16 vectorised { B[3] = A[x] }\n")), false));
    HAS("vectorize: loop 'x' runs lane by lane: it has one iteration\n",
        logged("vectorize", AVX512, parse(F32("  for x in 0..1 vectorised { B[x] = A[x] }\n")), false));
    HAS("runs lane by lane: it calls 'foo'\n",
        logged("vectorize", AVX512,
               parse("program p(A: f32[16], out B: f32[16]) {\n  intrinsic foo\n  for x in 0..16 vectorised "
                     "{ B[x] = call<f32> foo(A[x]) }\n}\n"),
               false));
    HAS("vectorize: a statement of loop 'x' runs lane by lane: the target has no masks\n",
        logged("vectorize", SSE2, parse(F32("  for x in 0..16 vectorised { if x < n { B[x] = A[x] } }\n")),
               false));
}

Test(vectorize, runs_a_whole_loop_lane_by_lane_where_a_let_is_in_the_way)
{
    const char *text =
        F32("  for x in 0..16 vectorised { let t = A[x] { for k in 0..x { B[x] = t + A[k] } } }\n");

    same_meaning("vectorize", AVX512, text, SIZES(1));
}

Test(vectorize, makes_an_outer_vectorised_loop_serial)
{
    const char *text =
        F32("  for x in 0..4 vectorised { for y in 0..16 vectorised { B[x*16 + y] = A[y] } }\n");

    HAS("B[ramp(x.lane * 16, 1, 16)]", after("vectorize", AVX512, text));
    HAS("it holds vectors already", logged("vectorize", AVX512, parse(text), false));
    same_meaning("vectorize", AVX512, text, SIZES(1));
}

Test(vectorize, blames_a_symbolic_extent)
{
    HAS("test.tir:3: error: cannot vectorise 'x': extent 'n' is not a constant",
        refusal("vectorize", AVX512, F32("  for x in 0..n vectorised { B[x] = A[x] }\n")));
}

Test(vectorize, refuses_a_huge_extent)
{
    HAS("cannot vectorise 'x' of extent 100000 (limit 65536)",
        refusal("vectorize", AVX512,
                "program p(out B: f32[100000]) {\n  for x in 0..100000 vectorised { B[x] = 1.0 }\n}\n"));
}
