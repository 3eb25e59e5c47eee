/* tests/lower/storage.c -- the stack and the workspace. */
#include "tests/lower/pass.h"

TestSuite(storage, .init = open_context, .fini = close_context);

#define COPY(from, to) "  for i in 0..8192 { " to "[i] = " from "[i] }\n"
#define MIRROR(from, to) "  for i in 0..8192 { " to "[i] = " from "[8191 - i] }\n"

Test(storage, reuses_what_is_no_longer_alive)
{
    const char *text =
        "program p(A: f32[8192], out B: f32[8192]) {\n"
        "  allocate P: f32[8192] { allocate Q: f32[8192] { allocate R: f32[8192] {\n" MIRROR("A", "P")
            MIRROR("P", "Q") MIRROR("Q", "R") MIRROR("R", "B") "  } } }\n"
                                                               "}\n";
    const char *now = after("storage", AVX512, text);

    HAS("@thread_workspace(0) @workspace(65536) {", now);
    HAS("allocate P: f32[8192] @workspace(0)", now);
    HAS("allocate Q: f32[8192] @workspace(32768)", now);
    HAS("allocate R: f32[8192] @workspace(0)", now);
    same_meaning("storage", AVX512, text, SIZES(1));
}

Test(storage, keeps_a_buffer_alive_through_the_loop_that_reads_it)
{
    const char *text =
        "program p(A: f32[8192], out B: f32[8192]) {\n"
        "  allocate P: f32[8192] {\n" COPY("A", "P") "  for k in 0..2 {\n"
                                                     "    allocate Q: f32[8192] {\n" COPY("P", "Q")
                                                         COPY("Q", "B") "    }\n"
                                                                        "    allocate R: f32[8192] {\n" COPY(
                                                                            "A", "R") COPY("R", "B") "    }\n"
                                                                                                     "  } }\n"
                                                                                                     "}\n";
    const char *now = after("storage", AVX512, text);

    HAS("@workspace(65536) {", now);
    HAS("allocate Q: f32[8192] @workspace(32768)", now);
    HAS("allocate R: f32[8192] @workspace(32768)", now);
}

Test(storage, writes_over_an_operand_that_is_read_for_the_last_time)
{
    const char *now = after("storage", AVX512,
                            "program p(A: f32[8192], out B: f32[8192]) {\n"
                            "  allocate P: f32[8192] { allocate Q: f32[8192] {\n" COPY(
                                "A", "P") "    for i in 0..64 { for j in 0..128 { Q[i*128 + j] = P[i*128 + "
                                          "j]*2.0 + A[j] } }\n" COPY("Q", "B") "  } }\n"
                                                                               "}\n");

    HAS("@workspace(32768) {", now);
    HAS("allocate P: f32[8192] @workspace(0)", now);
    HAS("allocate Q: f32[8192] @workspace(0)", now);
}

static const char *totals(const char *stores, const char *after_them)
{
    return after("storage", AVX512,
                 base_format(cx,
                             "program p(A: f32[8192], out B: f32[8192]) {\n"
                             "  allocate P: f32[8192] { allocate Q: f32[8192] {\n" COPY("A", "P") "%s" COPY(
                                 "Q", "B") "%s  } }\n}\n",
                             stores, after_them));
}

Test(storage, does_not_write_over_what_is_still_read)
{
    HAS("@workspace(65536) {", totals("    for i in 0..8192 { Q[i] = P[8191 - i] }\n", ""));
    HAS("@workspace(65536) {", totals("    for i in 0..8192 { Q[i] = P[i] + P[0] }\n", ""));
    HAS("@workspace(65536) {",
        totals("    for i in 0..64 { for j in 0..128 { Q[i*64 + j] = P[i*64 + j] } }\n", ""));
    HAS("@workspace(65536) {", totals("    for k in 0..2 { for i in 0..8192 { Q[i] = P[i] } }\n", ""));
    HAS("@workspace(65536) {", totals("    for i in 0..8192 { Q[i] = P[i] }\n", "    B[0] = P[0]\n"));
    HAS("@workspace(32768) {", totals("    for i in 0..8192 { Q[i] = P[i] }\n", ""));
}

Test(storage, gives_threads_their_own)
{
    const char *now = after("storage", AVX512,
                            "program p(A: f32[8192], out B: f32[8192]) {\n"
                            "  for t in 0..4 parallel {\n"
                            "    allocate Q: f32[8200] { for i in 0..8192 { Q[i] = A[i] } B[t] = Q[t] }\n"
                            "  }\n"
                            "}\n");

    HAS("@thread_workspace(32832) @workspace(0) {", now);
    HAS("allocate Q: f32[8200] @thread_workspace(0)", now);
}

Test(storage, leaves_small_local_buffers_on_the_stack)
{
    const char *now =
        after("storage", AVX512,
              "program p(A: f32[8192], out B: f32[8192]) {\n"
              "  allocate S: f32[16] @local { allocate L: f32[4096] @local { allocate M: f32[16] @local {\n"
              "    S[0] = 1.0\n"
              "    L[0] = 1.0\n"
              "    M[0] = S[0] + L[0]\n"
              "    B[0] = M[0]\n"
              "  } } }\n"
              "}\n");

    HAS("allocate S: f32[16] @local {", now);
    HAS("allocate M: f32[16] @local {", now);
    HAS("allocate L: f32[4096] @workspace(0) {", now);
}

Test(storage, puts_what_threads_share_into_the_workspace)
{
    HAS("allocate S: f32[16] @workspace(0) {", after("storage", AVX512,
                                                     "program p(out B: f32[16]) {\n"
                                                     "  allocate S: f32[16] @local {\n"
                                                     "    for i in 0..16 parallel { S[i] = 1.0 }\n"
                                                     "    for i in 0..16 parallel { B[i] = S[i] }\n"
                                                     "  }\n"
                                                     "}\n"));
}

Test(storage, plans_symbolic_sizes_behind_the_constant_ones)
{
    const char *text = "program p(symbol n, A: f32[n], out B: f32[n]) {\n"
                       "  allocate K: f32[16] { K[0] = 1.0\n"
                       "  allocate P: f32[n] { allocate Q: f32[n] { allocate R: f32[n] {\n"
                       "    for i in 0..n { P[i] = A[i] }\n"
                       "    for i in 0..n { Q[i] = P[i] }\n"
                       "    for i in 0..n { R[i] = Q[i] }\n"
                       "    for i in 0..n { B[i] = R[i]*K[0] }\n"
                       "  } } } }\n"
                       "}\n";
    const char *now = after("storage", AVX512, text);

    HAS("allocate K: f32[16] @workspace(0)", now);
    HAS("allocate P: f32[n] @workspace(64)", now);
    HAS("allocate R: f32[n] @workspace(64)", now);
    same_meaning("storage", AVX512, text, SIZES(0, 1, 20));
}

Test(storage, bounds_a_size_by_the_loops_around)
{
    HAS("allocate T: f32[i * 2 + n] @workspace(0) {",
        after("storage", AVX512,
              "program p(symbol n, out B: f32[8]) {\n"
              "  for i in 0..8 { allocate T: f32[i*2 + n] { T[0] = 1.0 B[i] = T[0] } }\n"
              "}\n"));
    HAS("@workspace(floordiv(",
        after("storage", AVX512,
              "program p(symbol n, out B: f32[8]) {\n"
              "  for i in 0..8 { allocate T: f32[i*2 + n] { T[0] = 1.0 B[i] = T[0] } }\n"
              "}\n"));
}

Test(storage, refuses_a_size_that_only_data_decide)
{
    HAS("cannot bound the size of buffer 'T' of 'k' elements by the program's symbols",
        refusal("storage", AVX512,
                "program p(A: i64[8], out B: f32[8]) {\n"
                "  for i in 0..8 { let k = A[i] { allocate T: f32[k] { T[0] = 1.0 B[i] = T[0] } } }\n"
                "}\n"));
}

/* Of 3000 buffers two live at any time. */
static const char *many_buffers(const char *size)
{
    base_text t = {0};

    base_add(cx, &t, "program p(symbol n, A: f32[64], out B: f32[64]) {\n");
    for (int i = 0; i < 1500; i++)
        base_addf(cx, &t,
                  "  allocate P%d: f32[%s%d] {\n    for i in 0..64 { P%d[i] = A[63 - i] }\n"
                  "    allocate Q%d: f32[%s%d] {\n"
                  "      for j in 0..2 { for i in 0..64 { Q%d[63 - i] = P%d[i] } }\n"
                  "      for i in 0..64 { B[i] = Q%d[i] }\n    }\n  }\n",
                  i, size, 64 + 16 * (i % 50), i, i, size, 64 + 16 * (i % 50), i, i, i);
    base_add(cx, &t, "}\n");
    return base_text_str(cx, &t);
}

Test(storage, reuses_the_places_of_thousands)
{
    HAS("@workspace(6784) {", after("storage", AVX512, many_buffers("")));
    HAS("allocate Q1499: f32[n + 848] @workspace(", after("storage", AVX512, many_buffers("n + ")));
}
