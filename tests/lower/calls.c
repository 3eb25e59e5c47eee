/* tests/lower/calls.c -- calls that get buffers: each pass that moves, copies or resizes a buffer tells them
 * where their element is now. */
#include "tests/lower/pass.h"

TestSuite(calls, .init = open_context, .fini = close_context);

#define THREADS(body)                                                                                        \
    "program p(A: f32[4, 8], out B: f32[4, 8] offset(4)) {\n"                                                \
    "  for v in 0..2 vthread { allocate T: f32[2, 8] {\n" body "  } }\n"                                     \
    "}\n"
#define LOADED                                                                                               \
    "    evaluate call<i32> load(&T, &A, 8, v*8)\n"                                                          \
    "    for x in 0..8 { B[v, x] = T[1, x] }\n"                                                              \
    "    evaluate call<i32> tec.barrier(\"shared\")\n"                                                       \
    "    evaluate call<i32> put(&B, v*8, 1)\n"

Test(calls, of_each_virtual_thread_get_its_copy)
{
    SHOWS("program p(A: f32[4, 8], out B: f32[4, 8] offset(4)) {\n"
          "  allocate T: f32[2, 2, 8] {\n"
          "    evaluate call<i32> load(&T, &A, 8, 0)\n"
          "    evaluate call<i32> load(&T, &A, 24, 8)\n"
          "    for x in 0..8 {\n"
          "      B[0, x] = T[0, 1, x]\n"
          "      B[1, x] = T[1, 1, x]\n"
          "    }\n"
          "    evaluate call<i32> tec.barrier(\"shared\")\n"
          "    evaluate call<i32> put(&B, 0, 1)\n"
          "    evaluate call<i32> put(&B, 8, 1)\n"
          "  }\n"
          "}\n",
          after("vthread", AVX512, THREADS(LOADED)));
}

Test(calls, get_the_offset_of_a_buffer_that_became_flat)
{
    SHOWS("program p(A: f32[32], out B: f32[36]) {\n"
          "  for v in 0..2 vthread {\n"
          "    allocate T: f32[16] {\n"
          "      evaluate call<i32> load(&T, &A, 8, v * 8)\n"
          "      for x in 0..8 {\n"
          "        B[4 + v * 8 + x] = T[8 + x]\n"
          "      }\n"
          "      evaluate call<i32> tec.barrier(\"shared\")\n"
          "      evaluate call<i32> put(&B, v * 8 + 4, 1)\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("flatten", AVX512, THREADS(LOADED)));
}

Test(calls, in_a_pipeline_get_the_version_of_their_turn)
{
    SHOWS("program p(A: f32[6, 4], out B: f32[6, 4]) {\n"
          "  allocate T: f32[2, 4] {\n"
          "    for x in 0..4 {\n"
          "      T[0, x] = A[0, x]\n"
          "    }\n"
          "    evaluate call<i32> half(&T, 2)\n"
          "    for k in 0..5 {\n"
          "      for x in 0..4 {\n"
          "        T[(k + 1) % 2, x] = A[k + 1, x]\n"
          "      }\n"
          "      evaluate call<i32> half(&T, (k + 1) % 2 * 4 + 2)\n"
          "      evaluate call<i32> put(&B, &T, k * 4, k % 2 * 4 + 1)\n"
          "    }\n"
          "    evaluate call<i32> put(&B, &T, 20, 5)\n"
          "  }\n"
          "}\n",
          after("overlap", AVX512,
                "program p(A: f32[6, 4], out B: f32[6, 4]) {\n"
                "  for k in 0..6 @pipeline(1) { allocate T: f32[4] {\n"
                "    attribute pipeline_stage(0) { for x in 0..4 { T[x] = A[k, x] } evaluate call<i32> "
                "half(&T, 2) }\n"
                "    attribute pipeline_stage(1) { evaluate call<i32> put(&B, &T, k*4, 1) }\n"
                "  } }\n"
                "}\n"));
}

Test(calls, keep_the_shape_of_a_buffer)
{
    SHOWS("program p(symbol n, A: f32[n, 8], out B: f32[n, 8]) {\n"
          "  allocate T: f32[n, 8] {\n"
          "    for y in 0..n {\n"
          "      allocate U: f32[1, 8] @local {\n"
          "        for x in 0..8 {\n"
          "          T[y, x] = A[y, x]\n"
          "          U[0, x] = 1.0\n"
          "        }\n"
          "        evaluate call<i32> half(&T, y * 8)\n"
          "        for x in 0..8 {\n"
          "          B[y, x] = T[y, x] + U[0, x]\n"
          "        }\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("compact", AVX512,
                "program p(symbol n, A: f32[n, 8], out B: f32[n, 8]) {\n"
                "  buffer T: f32[n, 8]\n"
                "  buffer U: f32[n, 8]\n"
                "  for y in 0..n @reason.U(\"private\") {\n"
                "    for x in 0..8 { T[y, x] = A[y, x] U[y, x] = 1.0 }\n"
                "    evaluate call<i32> half(&T, y*8)\n"
                "    for x in 0..8 { B[y, x] = T[y, x] + U[y, x] }\n"
                "  }\n"
                "}\n"));
}

#define LANES(body)                                                                                          \
    "program p(symbol n, A: f32[16], out B: f32[16]) {\n  for x in 0..16 vectorised {\n    " body "\n  "     \
    "}\n}\n"
#define WITH(line) "program p(symbol n, A: f32[16], out B: f32[16]) {\n" line "}\n"

Test(calls, run_once_for_each_lane)
{
    SHOWS(WITH("  for x.lane in 0..16 {\n    evaluate call<i32> put(&B, x.lane, 1)\n  }\n"),
          after("vectorize", AVX512, LANES("evaluate call<i32> put(&B, x, 1)")));
    SHOWS(WITH("  for x.lane in 0..16 {\n    B[x.lane] = pure<f32> g(&A, x.lane) + pure<f32> h(A[x.lane])\n  "
               "}\n"),
          after("vectorize", AVX512, LANES("B[x] = pure<f32> g(&A, x) + pure<f32> h(A[x])")));
    SHOWS(WITH("  for x.lane in 0..16 {\n    assert x.lane < n, \"late\"\n  }\n"),
          after("vectorize", AVX512, LANES("assert x < n, \"late\"")));
}

Test(calls, without_effects_that_are_the_same_in_all_lanes_run_once)
{
    SHOWS(WITH("  B[ramp(0, 1, 16)] = (let d = A[ramp(0, 1, 16)] in d * d + broadcast((let e = n + 1 in "
               "f32(e)), 16)) +"
               " broadcast(pure<f32> g(&A, n), 16)\n"),
          after("vectorize", AVX512,
                LANES("B[x] = (let d = A[x] in d*d + (let e = n + 1 in f32(e))) + pure<f32> g(&A, n)")));
}

/* A barrier that stands there already is one: no second stands beside it. */
Test(calls, of_a_barrier_hand_elements_over)
{
    const char *given = "program p(A: f32[16], out B: f32[16]) {\n"
                        "  for b in 0..1 blockIdx.x {\n"
                        "    allocate T: f32[16] @shared {\n"
                        "      for x in 0..16 threadIdx.x {\n"
                        "        T[x] = A[x]\n"
                        "      }\n"
                        "      evaluate call<i32> tec.barrier(\"shared\")\n"
                        "      for y in 0..16 threadIdx.x {\n"
                        "        B[y] = T[15 - y]\n"
                        "      }\n"
                        "    }\n"
                        "  }\n"
                        "}\n";

    SHOWS(given, after("barriers", "cuda", given));
}
