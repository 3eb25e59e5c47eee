/* tests/lower/warps.c -- memory of a warp in registers, or in shared memory where these do not do. */
#include "tests/lower/pass.h"

TestSuite(warps, .init = open_context, .fini = close_context);

/* The interpreter gives the same with memory of a warp, between whose uses barriers stand, and with what it
 * becomes. */
static void keeps_meaning(const char *gpu, const char *text)
{
    same_with_barriers("warps", gpu, text, SIZES(0, 1, 2, 3));
}

static const char reversed[] = "program p(symbol n, A: f32[n, 32], out B: f32[n, 32]) {\n"
                               "  for b in 0..n blockIdx.x { allocate W: f32[32] @warp {\n"
                               "    for t in 0..32 threadIdx.x { W[t] = A[b, t] }\n"
                               "    for u in 0..32 threadIdx.x { B[b, u] = W[31 - u] }\n"
                               "  } }\n"
                               "}\n";

Test(warps, are_registers_that_threads_exchange)
{
    SHOWS("program p(symbol n, A: f32[n, 32], out B: f32[n, 32]) {\n"
          "  for b in 0..n blockIdx.x {\n"
          "    allocate W: f32[1] @local {\n"
          "      W[0] = 0.0\n"
          "      for t in 0..32 threadIdx.x {\n"
          "        W[0] = A[b, t]\n"
          "      }\n"
          "      for u in 0..32 threadIdx.x {\n"
          "        let W.lane = call<f32> tec.shuffle(W[0], 31 - u) {\n"
          "          B[b, u] = W.lane\n"
          "        }\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("warps", CUDA, reversed));
    keeps_meaning(CUDA, reversed);
}

Test(warps, are_a_slice_of_shared_memory_without_shuffles)
{
    const char *text =
        "program p(symbol n, A: f32[n, 4, 32], out B: f32[n, 4, 32]) {\n"
        "  for b in 0..n blockIdx.x { for y in 0..4 threadIdx.y { allocate W: f32[32] @warp {\n"
        "    for t in 0..32 threadIdx.x { W[t] = A[b, y, t] }\n"
        "    for u in 0..32 threadIdx.x { B[b, y, u] = W[31 - u] }\n"
        "  } } }\n"
        "}\n";

    HAS("allocate W: f32[4, 32] @shared", after("warps", OPENCL, text));
    HAS("tec.barrier(\"shared\")", after("warps,barriers", OPENCL, text));
    HAS("tec.shuffle(W[0], 31 - u)", after("warps", CUDA, text));
    keeps_meaning(OPENCL, text);
    keeps_meaning(CUDA, text);
}

/* Each thread has four neighbouring elements in four registers; the element 4*i + j of another. */
Test(warps, hold_neighbours_in_registers_of_one_thread)
{
    const char *text = "program p(symbol n, A: f32[n, 128], out B: f32[n, 128]) {\n"
                       "  for b in 0..n blockIdx.x { for t in 0..32 threadIdx.x {\n"
                       "    allocate W: f32[128] @warp {\n"
                       "      for i in 0..4 { W[t*4 + i] = A[b, t*4 + i] }\n"
                       "      for i in 0..4 { B[b, t*4 + i] = W[(31 - t)*4 + i] }\n"
                       "    } } }\n"
                       "}\n";

    HAS("allocate W: f32[4] @local", after("warps", CUDA, text));
    HAS("tec.shuffle(W[i], 31 - t)", after("warps", CUDA, text));
    keeps_meaning(CUDA, text);
}

/* A thread's own element needs no shuffle. */
Test(warps, keep_what_a_thread_reads_itself)
{
    const char *text = "program p(symbol n, A: f32[n, 64], out B: f32[n, 64]) {\n"
                       "  for b in 0..n blockIdx.x { for t in 0..32 threadIdx.x {\n"
                       "    allocate W: f32[64] @warp {\n"
                       "      for i in 0..2 { W[i*32 + t] = A[b, i*32 + t] }\n"
                       "      for i in 0..2 { B[b, i*32 + t] = W[i*32 + t] }\n"
                       "    } } }\n"
                       "}\n";

    HAS("allocate W: f32[2] @local", after("warps", CUDA, text));
    HAS_NOT("tec.shuffle", after("warps", CUDA, text));
    keeps_meaning(CUDA, text);
}

/* A shuffle names a thread and not its register. */
Test(warps, need_shared_memory_where_threads_ask_for_different_registers)
{
    const char *text = "program p(symbol n, A: f32[n, 64], out B: f32[n, 64]) {\n"
                       "  for b in 0..n blockIdx.x { for t in 0..32 threadIdx.x {\n"
                       "    allocate W: f32[64] @warp {\n"
                       "      for i in 0..2 { W[i*32 + t] = A[b, i*32 + t] }\n"
                       "      for i in 0..2 { B[b, t*2 + i] = W[t*2 + i] }\n"
                       "    } } }\n"
                       "}\n";

    HAS("allocate W: f32[1, 64] @shared", after("warps", CUDA, text));
    keeps_meaning(CUDA, text);
}

/* Values are asked for outside of what decides whether a thread reads. */
Test(warps, shuffle_outside_of_conditions_and_of_loops_that_ask_for_the_same)
{
    const char *text = "program p(symbol n, A: f32[n, 32], out B: f32[n, 32, 4]) {\n"
                       "  for b in 0..n blockIdx.x { for t in 0..32 threadIdx.x {\n"
                       "    allocate W: f32[32] @warp {\n"
                       "      for j in 0..4 { B[b, t, j] = 0.0 }\n"
                       "      if t < 20 { W[t] = A[b, t] }\n"
                       "      for k in 0..5 { if t < 7 { for j in 0..4 { B[b, t, j] = W[k*4] } } }\n"
                       "    } } }\n"
                       "}\n";

    HAS("        for k in 0..5 {\n"
        "          let W.lane = call<f32> tec.shuffle(W[0], k * 4) {\n"
        "            if t < 7 {\n",
        after("warps", CUDA, text));
    keeps_meaning(CUDA, text);
}

/* Threads behind the shorter loop come to the shuffle all the same, and so do those of a loop that runs less
 * often. */
Test(warps, are_reached_by_all_threads)
{
    static const char *const use[] = {
        "for u in 0..9 threadIdx.x { B[b, u] = W[31 - u] }",
        "for u in 0..32 threadIdx.x { for k in 0..u + 1 { B[b, u] = W[k] } }",
        "for u in 0..32 threadIdx.x { for k in u..+32 - u { B[b, u] = W[k] } }",
        "for u in 0..32 threadIdx.x { if u < 3 { for k in 0..n { B[b, u] = B[b, u] + W[k % 32] } } }",
        "for u in 0..32 threadIdx.x { if A[b, u] < 3.0 { W[u] = 1.0 } if W[(u + 1) % 32] < 2.0 { B[b, u] = "
        "7.0 } }",
    };

    for (int i = 0; i < BASE_COUNT(use); i++) {
        const char *text = base_format(cx,
                                       "program p(symbol n, A: f32[n, 32], out B: f32[n, 32]) {\n"
                                       "  for b in 0..n blockIdx.x { allocate W: f32[32] @warp {\n"
                                       "    for t in 0..32 threadIdx.x { W[t] = A[b, t] }\n"
                                       "    for t in 0..32 threadIdx.x { B[b, t] = 0.0 }\n"
                                       "    %s\n"
                                       "  } }\n"
                                       "}\n",
                                       use[i]);

        HAS("tec.shuffle(W[0]", after("warps,barriers", CUDA, text));
        keeps_meaning(CUDA, text);
    }
}

/* A condition that is moved inward says who reads, not who gives. */
Test(warps, give_what_a_thread_that_does_not_read_has)
{
    const char *text =
        "program p(symbol n, A: f32[n, 32], out B: f32[n, 32]) {\n"
        "  for b in 0..n blockIdx.x { allocate S: f32[32] @shared { for t in 0..32 threadIdx.x {\n"
        "    B[b, t] = 0.0\n"
        "    if t >= 5 { allocate W: f32[32] @warp {\n"
        "      S[t] = A[b, t]\n"
        "      W[t] = A[b, t] + 1.0\n"
        "      B[b, t] = W[36 - t] + S[36 - t]\n"
        "    } }\n"
        "  } } }\n"
        "}\n";

    HAS("tec.shuffle(W[0], (4 - t) % 32)", after("warps,barriers", CUDA, text));
    keeps_meaning(CUDA, text);
}

Test(warps, of_less_than_32_threads_count_modulo_their_number)
{
    const char *text = "program p(symbol n, A: f32[n, 12], out B: f32[n, 12]) {\n"
                       "  for b in 0..n blockIdx.x { for t in 0..12 threadIdx.x {\n"
                       "    allocate W: f32[12] @warp {\n"
                       "      W[t] = A[b, t]\n"
                       "      B[b, t] = 0.0\n"
                       "      if t < 8 { B[b, t] = W[t + 4] }\n"
                       "    } } }\n"
                       "}\n";

    HAS("tec.shuffle(W[0], (t + 4) % 12)", after("warps", CUDA, text));
    keeps_meaning(CUDA, text);
}

/* Rows of 16 threads: a warp has two of them, whose threads do not lie along x. */
Test(warps, that_lie_across_rows_are_shared_memory)
{
    const char *text =
        "program p(symbol n, A: f32[n, 4, 16], out B: f32[n, 4, 16]) {\n"
        "  for b in 0..n blockIdx.x { for y in 0..4 threadIdx.y { for t in 0..16 threadIdx.x {\n"
        "    allocate W: f32[2, 16] @warp {\n"
        "      W[y % 2, t] = A[b, y, t]\n"
        "      B[b, y, t] = W[1 - y % 2, 15 - t]\n"
        "    } } } }\n"
        "}\n";

    HAS("allocate W: f32[2, 2, 16] @shared", after("warps", CUDA, text));
    keeps_meaning(CUDA, text);
}

/* storage_align spreads rows of shared memory over the banks; registers have none. */
Test(warps, keep_rows_that_are_spread_where_they_are_shared_memory)
{
    const char *text =
        "program p(symbol n, A: f32[n, 4, 64], out B: f32[n, 4, 64]) {\n"
        "  for b in 0..n blockIdx.x { for y in 0..4 threadIdx.y { for t in 0..32 threadIdx.x {\n"
        "    allocate W: f32[2, 32] @warp strides(33, 1) {\n"
        "      for i in 0..2 { W[i, t] = A[b, y, i*32 + t] }\n"
        "      for i in 0..2 { B[b, y, i*32 + t] = W[1 - i, 31 - t] }\n"
        "    } } } }\n"
        "}\n";

    HAS("allocate W: f32[4, 2, 32] @shared strides(65, 33, 1)", after("warps", OPENCL, text));
    HAS("allocate W: f32[2] @local", after("warps", CUDA, text));
    keeps_meaning(OPENCL, text);
    keeps_meaning(CUDA, text);
}

/* The lanes of a vector would each need a register of their own, and a shuffle between. */
Test(warps, need_shared_memory_where_vectors_are_read_of_other_threads)
{
    static const char *const read[] = {"(31 - t)*4 + i", "i*32 + t", "(t*4 + i + 1) % 128"};

    for (int i = 0; i < BASE_COUNT(read); i++) {
        const char *text = base_format(cx,
                                       "program p(symbol n, A: f32[n, 128], out B: f32[n, 128]) {\n"
                                       "  for b in 0..n blockIdx.x { for t in 0..32 threadIdx.x {\n"
                                       "    allocate W: f32[128] @warp {\n"
                                       "      for i in 0..4 vectorised { W[t*4 + i] = A[b, t*4 + i] }\n"
                                       "      for i in 0..4 vectorised { B[b, t*4 + i] = W[%s] }\n"
                                       "    } } }\n"
                                       "}\n",
                                       read[i]);

        HAS("allocate W: f32[1, 128] @shared", after("warps", CUDA, text));
        HAS("tec.barrier(\"shared\")", after("warps,barriers", CUDA, text));
        keeps_meaning(CUDA, text);
    }
}

/* A vector of the thread's own elements needs no other thread. */
Test(warps, keep_vectors_that_a_thread_reads_itself)
{
    const char *text = "program p(symbol n, A: f32[n, 128], out B: f32[n, 128]) {\n"
                       "  for b in 0..n blockIdx.x { for t in 0..32 threadIdx.x {\n"
                       "    allocate W: f32[128] @warp {\n"
                       "      for i in 0..4 vectorised { W[t*4 + i] = A[b, t*4 + i] }\n"
                       "      for i in 0..4 vectorised { B[b, t*4 + i] = W[t*4 + i] + W[5] }\n"
                       "    } } }\n"
                       "}\n";

    HAS("allocate W: f32[4] @local", after("warps", CUDA, text));
    HAS("tec.shuffle(W[1], 1)", after("warps", CUDA, text));
    keeps_meaning(CUDA, text);
}

/* Statements outside of all launches become a launch of one thread. */
Test(warps, outside_of_launches_belong_to_one_thread)
{
    const char *text = "program p(symbol n, A: f32[n, 4], out B: f32[n, 4]) {\n"
                       "  for i in 0..n { allocate W: f32[4] @warp {\n"
                       "    for j in 0..4 { W[j] = A[i, j] }\n"
                       "    for j in 0..4 { B[i, j] = W[3 - j] }\n"
                       "  } }\n"
                       "}\n";

    HAS("allocate W: f32[1, 4] @shared", after("warps", CUDA, text));
    keeps_meaning(CUDA, text);
    keeps_meaning(OPENCL, text);
}

Test(warps, refuse_more_than_the_target_has)
{
    HAS("buffer 'W' of 8 warps takes 65536 bytes of shared memory, the target has 32768",
        refusal("warps", OPENCL,
                "program p(A: f32[2048], out B: f32[2048]) {\n"
                "  for y in 0..8 threadIdx.y { for t in 0..32 threadIdx.x { allocate W: f32[2048] @warp {\n"
                "    for i in 0..64 { W[i*32 + t] = A[i*32 + t] }\n"
                "    for i in 0..64 { B[i*32 + t] = W[i*32 + 31 - t] }\n"
                "  } } }\n"
                "}\n"));
}
