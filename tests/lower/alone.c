/* tests/lower/alone.c -- statements outside of the loops over threads. */
#include "tests/lower/pass.h"

TestSuite(alone, .init = open_context, .fini = close_context);

Test(alone, is_the_first_thread_of_each_missing_axis)
{
    const char *text = "program p(A: f32[4], out B: f32[4, 3, 8]) {\n"
                       "  for b in 0..4 blockIdx.x { allocate S: f32[2] @shared {\n"
                       "    for i in 0..2 { S[i] = A[b] }\n"
                       "    S[1] = 2.0\n"
                       "    for ty in 0..3 threadIdx.y {\n"
                       "      if b > 0 { S[0] = 1.0 }\n"
                       "      for tx in 0..8 threadIdx.x { B[b, ty, tx] = S[1] }\n"
                       "    }\n"
                       "  } }\n"
                       "}\n";

    SHOWS("program p(A: f32[4], out B: f32[4, 3, 8]) {\n"
          "  for b in 0..4 blockIdx.x {\n"
          "    allocate S: f32[2] @shared {\n"
          "      for first in 0..1 threadIdx.y {\n"
          "        for first'2 in 0..1 threadIdx.x {\n"
          "          for i in 0..2 {\n"
          "            S[i] = A[b]\n"
          "          }\n"
          "        }\n"
          "      }\n"
          "      for first in 0..1 threadIdx.y {\n"
          "        for first'2 in 0..1 threadIdx.x {\n"
          "          S[1] = 2.0\n"
          "        }\n"
          "      }\n"
          "      for ty in 0..3 threadIdx.y {\n"
          "        for first in 0..1 threadIdx.x {\n"
          "          if b > 0 {\n"
          "            S[0] = 1.0\n"
          "          }\n"
          "        }\n"
          "        for tx in 0..8 threadIdx.x {\n"
          "          B[b, ty, tx] = S[1]\n"
          "        }\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("alone", "cuda", text));
}

Test(alone, leaves_to_all_threads_what_is_each_ones_own)
{
    const char *text = "program p(A: f32[4], out B: f32[4, 8]) {\n"
                       "  for b in 0..4 blockIdx.x { allocate L: f32[1] @local {\n"
                       "    L[0] = A[b]\n"
                       "    for tx in 0..8 threadIdx.x { B[b, tx] = L[0] }\n"
                       "  } }\n"
                       "}\n";

    HAS_NOT("first", after("alone", "cuda", text));
    same_meaning("alone,barriers", "cuda", text, SIZES(1));
}

/* Whatever a call does to its local buffer, each thread has one. */
Test(alone, leaves_to_all_threads_calls_on_what_is_each_ones_own)
{
    static const char *const calls[] = {"f(&L, &A, 0, b)", "f(&A, &L, b, 0)"};

    for (int i = 0; i < BASE_COUNT(calls); i++)
        HAS_NOT("first", after("alone", "cuda",
                               base_format(cx,
                                           "program p(A: f32[4], out B: f32[4, 8]) {\n"
                                           "  intrinsic f\n"
                                           "  for b in 0..4 blockIdx.x { allocate L: f32[1] @local {\n"
                                           "    evaluate call<i32> %s\n"
                                           "    for tx in 0..8 threadIdx.x { B[b, tx] = L[0] }\n"
                                           "  } }\n"
                                           "}\n",
                                           calls[i])));
}

/* What a call only reads does not say whose work it is. */
Test(alone, gives_calls_that_read_local_memory_to_the_first_thread)
{
    const char *text = "program p(A: f32[4], out B: f32[4, 8]) {\n"
                       "  intrinsic f { program f(a: f32[1], out c: f32[1]) { c[0] = a[0] } }\n"
                       "  for b in 0..4 blockIdx.x { allocate L: f32[1] @%s { allocate T: f32[1] @%s {\n"
                       "    L[0] = A[b]\n"
                       "    evaluate call<i32> f(&L, &T, 0, 0)\n"
                       "    for tx in 0..8 threadIdx.x { B[b, tx] = T[0] }\n"
                       "  } } }\n"
                       "}\n";

    HAS("        for first in 0..1 threadIdx.x {\n          evaluate call<i32> f",
        after("alone", "cuda", base_format(cx, text, "local", "shared")));
    HAS("        }\n        evaluate call<i32> f",
        after("alone", "cuda", base_format(cx, text, "shared", "local")));
}

Test(alone, leaves_what_has_no_threads_and_other_launches_axes)
{
    HAS_NOT("first",
            after("alone", "cuda", "program p(out B: f32[4]) { for b in 0..4 blockIdx.x { B[b] = 1.0 } }"));
    same_meaning("alone,barriers", "cuda",
                 "program p(out B: f32[4], out C: f32[4, 2]) {\n"
                 "  for i in 0..4 threadIdx.x { B[i] = 1.0 }\n"
                 "  for b in 0..4 blockIdx.x { for ty in 0..2 threadIdx.y { C[b, ty] = B[b] } }\n"
                 "}\n",
                 SIZES(1));
}

Test(alone, hands_on_what_it_wrote_across_a_barrier)
{
    const char *text = "program p(A: f32[4], out B: f32[4, 8]) {\n"
                       "  for b in 0..4 blockIdx.x { allocate S: f32[1] @shared {\n"
                       "    S[0] = A[b]\n"
                       "    for k in 0..3 { S[0] = S[0] + 1.0 }\n"
                       "    for tx in 0..8 threadIdx.x { B[b, tx] = S[0] }\n"
                       "  } }\n"
                       "}\n";
    const char *found = ir_program_text(cx, through("alone,barriers", "cuda", parse(text), false));
    const char *barrier = strstr(found, "tec.barrier");

    cr_assert(barrier && !strstr(barrier + 1, "tec.barrier"), "%s", found);
    cr_assert(through("all", "cuda", parse(text), false), "%s", tec_context_error(cx));
}
