/* tests/lower/vthread.c -- virtual threads in one stream of statements. */
#include "tests/lower/pass.h"

TestSuite(vthread, .init = open_context, .fini = close_context);

Test(vthread, alternates_the_statements_and_shares_the_loop)
{
    SHOWS("program p(A: f32[2, 16], out B: f32[2, 16]) {\n"
          "  allocate T: f32[2, 8] @local {\n"
          "    for k in 0..16 {\n"
          "      T[0, k % 8] = A[0, k]\n"
          "      T[1, k % 8] = A[1, k]\n"
          "      B[0, k] = T[0, k % 8]\n"
          "      B[1, k] = T[1, k % 8]\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("vthread", AVX512,
                "program p(A: f32[2, 16], out B: f32[2, 16]) {\n"
                "  for v in 0..2 vthread { allocate T: f32[8] @local { for k in 0..16 {\n"
                "    T[k % 8] = A[v, k]\n"
                "    B[v, k] = T[k % 8]\n"
                "  } } }\n"
                "}\n"));
}

Test(vthread, keeps_one_copy_of_what_is_the_same_for_all)
{
    const char *text = "program p(A: f32[16], B: f32[2, 16], out C: f32[2, 16]) {\n"
                       "  for v in 0..2 vthread { allocate T: f32[1] @local { for k in 0..16 {\n"
                       "    T[0] = A[k]\n"
                       "    C[v, k] = T[0]*B[v, k]\n"
                       "  } } }\n"
                       "}\n";

    HAS("allocate T: f32[1]", after("vthread", AVX512, text));
    same_meaning("vthread", AVX512, text, SIZES(1));
}

Test(vthread, copies_lets_conditions_and_loops_that_differ)
{
    const char *text =
        "program p(symbol n, A: f32[n, 3], out B: f32[n, 3]) {\n"
        "  for y in 0..n { for v in 0..3 vthread {\n"
        "    let d = A[y, v] + 1.0 {\n"
        "      B[y, v] = d\n"
        "      if v < 2 { for i in 0..v { B[y, v] = B[y, v]*d + f32(i) } } else { B[y, v] = d*d }\n"
        "    }\n"
        "  } }\n"
        "}\n";

    HAS_NOT("vthread", after("vthread", AVX512, text));
    same_meaning("vthread", AVX512, text, SIZES(0, 1, 4));
    same_meaning("all", AVX512, text, SIZES(0, 1, 4));
}

Test(vthread, nests)
{
    same_meaning("vthread", AVX512,
                 "program p(A: f32[2, 3, 8], out B: f32[2, 3, 8]) {\n"
                 "  for u in 0..2 vthread { allocate S: f32[1] @local {\n"
                 "    S[0] = A[u, 0, 0]\n"
                 "    for v in 0..3 vthread { allocate T: f32[8] @local {\n"
                 "      for k in 0..8 { T[k] = A[u, v, k] + S[0] }\n"
                 "      for k in 0..8 { B[u, v, k] = T[7 - k] }\n"
                 "    } }\n"
                 "  } }\n"
                 "}\n",
                 SIZES(1));
}

/* The inner loop leaves two lets of one variable behind. */
Test(vthread, nests_around_a_let)
{
    const char *text = "program p(A: f32[2, 3], out B: f32[2, 3]) {\n"
                       "  for u in 0..2 vthread { for v in 0..3 vthread { if v < 2 {\n"
                       "    let d = A[u, v] { B[u, v] = d*d }\n"
                       "  } else { B[u, v] = 1.0 } } }\n"
                       "}\n";

    same_meaning("vthread", AVX512, text, SIZES(1));
}

/* Copies of one shape are one array; of several shapes each thread has its own, and what holds it is written
 * out. */
Test(vthread, writes_out_what_holds_buffers_of_several_shapes)
{
    const char *text = "program p(A: f32[3, 8], out B: f32[3, 8]) {\n"
                       "  for v in 0..3 vthread { allocate T: f32[4, v + 6] {\n"
                       "    for k in 0..8 { T[2, 5 - k % 5] = A[v, k]\n B[v, k] = T[2, 5 - k % 5] }\n"
                       "  } }\n"
                       "}\n";
    const char *now = after("vthread,simplify", AVX512, text);

    HAS("allocate T: f32[4, 6] {\n", now);
    HAS(": f32[4, 8] {\n", now);
    same_meaning("vthread", AVX512, text, SIZES(1));
}

Test(vthread, refuses_an_extent_that_is_no_constant)
{
    HAS("cannot interleave 'v': expected a constant extent up to 256, found 'n'",
        refusal(
            "vthread", AVX512,
            "program p(symbol n, A: f32[n], out B: f32[n]) {\n  for v in 0..n vthread { B[v] = A[v] }\n}\n"));
}

/* Blocks of random statements over a buffer of the thread, one common input, and the thread's row of the
 * output. */
static const char *random_program(uint64_t *state)
{
    base_text t = {0};
    int threads = 1 + (int)base_random_below(state, 4), stages = 1 + (int)base_random_below(state, 3);

    base_addf(cx, &t,
              "program p(A: f32[8], B: f32[4, 8], out C: f32[4, 8]) {\n  for y in 0..4 { for x in 0..8 { "
              "C[y, x] = 0.0 } }\n");
    base_addf(
        cx, &t, "  for v in %d..+%d vthread { allocate T: f32[8] @local { for i in 0..8 { T[i] = %s }\n",
        threads < 4 ? 1 : 0, threads < 4 ? threads : 4, base_random_below(state, 2) ? "A[i]" : "B[v, i]");
    for (int i = 0; i < stages; i++)
        switch (base_random_below(state, 4)) {
        case 0:
            base_addf(cx, &t,
                      "    for k in 0..8 { if (k + v) %% 2 == 0 { C[v, k] = C[v, k] + T[7 - k] } }\n");
            break;
        case 1: base_addf(cx, &t, "    for k in 0..v + 2 { T[k] = T[k + 1] + A[k] }\n"); break;
        case 2:
            base_addf(cx, &t, "    let d = T[v] { for k in 0..8 { C[v, k] = C[v, k] + d*B[v, k] } }\n");
            break;
        default: base_addf(cx, &t, "    for k in 0..8 { T[k] = A[k] + 1.0\n C[v, k] = T[k] }\n"); break;
        }
    base_addf(cx, &t, "  } }\n}\n");
    return base_text_str(cx, &t);
}

Test(vthread, keeps_the_results_of_random_programs)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t state = seed * 7919;

        same_meaning("vthread", AVX512, random_program(&state), SIZES(1));
    }
}
