/* tests/lower/barriers.c -- barriers: where they stand, where none is needed, what happens without one of
 * them. */
#include "tests/lower/pass.h"
#include "tests/lower/remove.h"

TestSuite(barriers, .init = open_context, .fini = close_context);

/* The program is right as lowered, has that many barriers, and is wrong without any one of them: a race, or,
 * where no barrier is left for threads to run up to, a read of what another thread has yet to write. */
static void needs_each(const char *text, int expected)
{
    const ir_program *p = through("barriers", CUDA, parse(text), false);
    int total;

    cr_assert(p, "%s", tec_context_error(cx));
    without(p, -1, &total);
    cr_assert_eq(total, expected, "%d barriers:\n%s", total, ir_program_text(cx, p));
    cr_assert_null(fault(p, 7, 5), "%s\n%s", fault(p, 7, 5), ir_program_text(cx, p));
    for (int i = 0; i < expected; i++) {
        const ir_program *less = without(p, i, &total);
        const char *why = fault(less, 7, 5);

        cr_assert(why, "barrier %d is not needed:\n%s", i, ir_program_text(cx, p));
        cr_assert(blames_order(why), "%s", why);
    }
}

Test(barriers, stand_between_a_write_and_a_read_and_around_the_loop)
{
    const char *text = "program p(A: f32[4, 8], out B: f32[4, 8]) {\n"
                       "  for tx in 0..8 threadIdx.x { for k in 0..4 { allocate S: f32[8] @shared {\n"
                       "    S[tx] = A[k, tx]\n"
                       "    B[k, tx] = S[7 - tx]\n"
                       "  } } }\n"
                       "}\n";

    SHOWS("program p(A: f32[4, 8], out B: f32[4, 8]) {\n"
          "  allocate S: f32[8] @shared {\n"
          "    for tx in 0..8 threadIdx.x {\n"
          "      for k in 0..4 {\n"
          "        evaluate call<i32> tec.barrier(\"shared\")\n"
          "        S[tx] = A[k, tx]\n"
          "        evaluate call<i32> tec.barrier(\"shared\")\n"
          "        B[k, tx] = S[7 - tx]\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("barriers", CUDA, text));
    needs_each(text, 2);
}

Test(barriers, are_not_needed_where_each_thread_has_its_own)
{
    needs_each(
        "program p(A: f32[4, 8], out B: f32[4, 8]) {\n"
        "  for ty in 0..4 threadIdx.y { for tx in 0..8 threadIdx.x { allocate S: f32[4, 16] @shared {\n"
        "    for i in 0..2 { S[ty, tx*2 + i] = A[ty, tx] }\n"
        "    for i in 0..2 { S[ty, tx*2 + i] = S[ty, tx*2 + i] + 1.0 }\n"
        "    B[ty, tx] = S[ty, tx*2 + 1] + S[ty, tx*2]\n"
        "  } } }\n"
        "}\n",
        0);
}

Test(barriers, leave_loops_that_hold_one_of_the_accesses)
{
    needs_each("program p(A: f32[8, 8], out B: f32[8, 8]) {\n"
               "  for b in 0..8 blockIdx.x { allocate S: f32[8] @shared {\n"
               "    for i in 0..2 { for tx in 0..4 threadIdx.x { S[i*4 + tx] = A[b, i*4 + tx] } }\n"
               "    for i in 0..2 { for tx in 0..4 threadIdx.x { B[b, i*4 + tx] = S[7 - i*4 - tx] } }\n"
               "  } }\n"
               "}\n",
               1);
}

Test(barriers, one_for_each_turn_of_two_buffers)
{
    needs_each("program p(A: f32[6, 8], out B: f32[6, 8]) {\n"
               "  for tx in 0..8 threadIdx.x { allocate S: f32[2, 8] @shared {\n"
               "    S[0, tx] = A[0, tx]\n"
               "    for k in 0..5 {\n"
               "      S[(k + 1) % 2, tx] = A[k + 1, tx]\n"
               "      B[k, tx] = S[k % 2, 7 - tx]\n"
               "    }\n"
               "    B[5, tx] = S[1, 7 - tx]\n"
               "  } }\n"
               "}\n",
               2);
}

Test(barriers, none_between_turns_that_are_not_the_same)
{
    needs_each("program p(A: f32[8, 8], out B: f32[8, 8]) {\n"
               "  for tx in 0..8 threadIdx.x { allocate S: f32[3, 8] @shared {\n"
               "    S[0, tx] = A[0, tx]\n"
               "    S[1, tx] = A[1, tx]\n"
               "    for k in 0..6 {\n"
               "      S[(k + 2) % 3, tx] = A[k + 2, tx]\n"
               "      B[k, tx] = S[k % 3, 7 - tx]\n"
               "    }\n"
               "    B[6, tx] = A[6, tx]\n"
               "    B[7, tx] = A[7, tx]\n"
               "  } }\n"
               "}\n",
               1);
}

Test(barriers, leave_conditions_that_differ_between_threads)
{
    const char *text = "program p(A: f32[8], out B: f32[8]) {\n"
                       "  for tx in 0..8 threadIdx.x { allocate S: f32[8] @shared {\n"
                       "    B[tx] = 0.0\n"
                       "    if tx < 5 {\n"
                       "      S[tx] = A[tx]\n"
                       "      let d = A[tx] { for i in 0..2 { B[tx] = B[tx] + S[4 - tx] + d } }\n"
                       "    }\n"
                       "  } }\n"
                       "}\n";

    needs_each(text, 1);
    same_meaning("barriers", CUDA,
                 "program p(A: f32[8], out B: f32[8]) {\n"
                 "  for tx in 0..8 threadIdx.x { if tx < 3 { B[tx] = A[tx] } else { B[tx] = 2.0*A[tx] } }\n"
                 "}\n",
                 SIZES(1));
}

Test(barriers, stand_inside_of_conditions_that_all_threads_share)
{
    needs_each("program p(symbol n, A: f32[8], out B: f32[8]) {\n"
               "  for tx in 0..8 threadIdx.x { allocate S: f32[8] @shared {\n"
               "    B[tx] = 0.0\n"
               "    if n > 3 { S[tx] = A[tx]\n B[tx] = S[7 - tx] }\n"
               "  } }\n"
               "}\n",
               1);
    needs_each("program p(symbol n, A: f32[8], out B: f32[8]) {\n"
               "  for tx in 0..8 threadIdx.x { allocate S: f32[8] @shared {\n"
               "    B[tx] = 0.0\n"
               "    if n < 3 { B[tx] = 1.0 } else { S[tx] = A[tx]\n B[tx] = S[7 - tx] }\n"
               "  } }\n"
               "}\n",
               1);
}

Test(barriers, let_all_threads_reach_them_in_a_shorter_loop)
{
    needs_each("program p(A: f32[8], out B: f32[8], out C: f32[4]) {\n"
               "  for b in 0..1 blockIdx.x { allocate S: f32[4] @shared {\n"
               "    for tx in 0..8 threadIdx.x { B[tx] = A[tx] }\n"
               "    for tx in 0..4 threadIdx.x { S[tx] = A[tx]\n C[tx] = S[3 - tx] }\n"
               "  } }\n"
               "}\n",
               1);
}

/* Thread 7 has one iteration and thread 0 has three, and each has a barrier: all threads must come to all
 * three barriers, and a thread without work there only waits. */
Test(barriers, let_all_threads_run_the_most_iterations_of_a_loop_whose_bounds_differ)
{
    const char *text =
        "program p(A: f32[16], out B: f32[8]) {\n"
        "  for tx in 0..8 threadIdx.x { allocate S: f32[8] @shared { for i in tx..+min(3, 8 - tx) {\n"
        "    S[tx] = A[i]\n B[tx] = S[7 - tx]\n"
        "  } } }\n"
        "}\n";

    SHOWS("program p(A: f32[16], out B: f32[8]) {\n"
          "  allocate S: f32[8] @shared {\n"
          "    for tx in 0..8 threadIdx.x {\n"
          "      for i in 0..3 {\n"
          "        evaluate call<i32> tec.barrier(\"shared\")\n"
          "        let mine = i < min(3, 8 - tx) {\n"
          "          if mine {\n"
          "            S[tx] = A[tx + i]\n"
          "          }\n"
          "          evaluate call<i32> tec.barrier(\"shared\")\n"
          "          if mine {\n"
          "            B[tx] = S[7 - tx]\n"
          "          }\n"
          "        }\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("barriers", CUDA, text));
    needs_each(text, 2);
}

Test(barriers, stand_in_a_vectorised_loop_that_runs_serially)
{
    needs_each("program p(A: f32[8, 4], out B: f32[8, 4]) {\n"
               "  for tx in 0..8 threadIdx.x { allocate S: f32[8] @shared { for i in 0..4 vectorised {\n"
               "    S[tx] = A[tx, i]\n B[tx, i] = S[7 - tx]\n"
               "  } } }\n"
               "}\n",
               2);
}

Test(barriers, refuse_a_loop_whose_bounds_are_data)
{
    HAS("threads need a barrier between the write of 'S' and the read of 'S' inside loop 'i', whose bounds "
        "differ between threads",
        refusal("barriers", CUDA,
                "program p(A: f32[8], N: i64[8], out B: f32[8]) {\n"
                "  for tx in 0..8 threadIdx.x { allocate S: f32[8] @shared { for i in 0..N[tx] {\n"
                "    S[tx] = A[i]\n B[tx] = S[7 - tx]\n"
                "  } } }\n"
                "}\n"));
}

/* What stands there before, as the barriers of pipelines do. */
#define MEET "evaluate call<i32> tec.barrier(\"shared\")"

Test(barriers, that_stand_already_are_for_all_threads_too)
{
    static const char shorter[] =
        "program p(A: f32[8], out B: f32[8], out C: f32[4]) {\n"
        "  for b in 0..1 blockIdx.x { allocate S: f32[4] @shared {\n"
        "    for tx in 0..8 threadIdx.x { B[tx] = A[tx] }\n"
        "    for tx in 0..4 threadIdx.x { S[tx] = A[tx]\n " MEET "\n C[tx] = S[3 - tx] }\n"
        "  } }\n"
        "}\n";
    static const char guarded[] = "program p(A: f32[8], out B: f32[8]) {\n"
                                  "  for tx in 0..8 threadIdx.x { allocate S: f32[8] @shared {\n"
                                  "    B[tx] = 0.0\n"
                                  "    if tx < 5 { for i in 0..2 { S[tx] = A[tx]\n " MEET
                                  "\n B[tx] = S[4 - tx] } } else { B[tx] = 1.0 }\n"
                                  "  } }\n"
                                  "}\n";

    needs_each(shorter, 1);
    needs_each(guarded, 2);
    HAS("threads need a barrier inside loop 'i', whose bounds differ between threads: not all of them would "
        "reach it",
        refusal("barriers", CUDA,
                "program p(A: f32[8], N: i64[8], out B: f32[8]) {\n"
                "  for tx in 0..8 threadIdx.x { for i in 0..N[tx] { B[tx] = A[i]\n " MEET "\n } }\n"
                "}\n"));
}

Test(barriers, follow_what_fewer_threads_write)
{
    needs_each("program p(A: f32[8], out B: f32[8]) {\n"
               "  for b in 0..1 blockIdx.x { allocate S: f32[1] @shared {\n"
               "    for first in 0..1 threadIdx.x { S[0] = A[0] }\n"
               "    for tx in 0..8 threadIdx.x { B[tx] = S[0] }\n"
               "  } }\n"
               "}\n",
               1);
}

Test(barriers, are_not_needed_where_bounds_differ_and_elements_do_not)
{
    needs_each("program p(A: f32[16], out B: f32[16]) {\n"
               "  for b in 0..1 blockIdx.x {\n"
               "    for tx in 0..8 threadIdx.x { for i in 0..min(2, 16 - tx*2) { B[tx*2 + i] = 0.0 } }\n"
               "    for ty in 0..8 threadIdx.x { for i in 0..min(2, 16 - ty*2) { B[ty*2 + i] = B[ty*2 + i] + "
               "A[ty*2 + i] } }\n"
               "  }\n"
               "}\n",
               0);
}

Test(barriers, are_not_needed_by_one_thread)
{
    needs_each("program p(A: f32[8], out B: f32[8]) {\n"
               "  for tx in 0..1 threadIdx.x { allocate S: f32[2] @shared {\n"
               "    for k in 0..8 { S[1] = A[k]\n B[k] = S[1] }\n"
               "  } }\n"
               "}\n",
               0);
    needs_each("program p(symbol n, A: f32[8], out B: f32[1]) {\n"
               "  for tx in 0..1 threadIdx.x { allocate S: f32[8] @shared {\n"
               "    S[n % 8] = A[0]\n S[n % 4] = A[1]\n B[0] = S[n % 4]\n"
               "  } }\n"
               "}\n",
               0);
}

/* A thread's own piece is told from the others' by the most that its loop runs, however the bound is
 * written. */
Test(barriers, are_not_needed_where_a_bound_keeps_to_the_threads_piece)
{
    static const char *const bounds[] = {"min(4, n)",         "min(n, 4)",         "min(min(n, 4), 9)",
                                         "min(9, min(4, n))", "max(min(n, 4), 1)", "max(1, min(4, n))"};

    for (int i = 0; i < BASE_COUNT(bounds); i++)
        needs_each(base_format(cx,
                               "program p(symbol n, A: f32[32], out B: f32[32]) {\n"
                               "  for tx in 0..8 threadIdx.x { allocate S: f32[32] @shared {\n"
                               "    for i in 0..%s { S[tx*4 + i] = A[tx*4 + i] }\n"
                               "    for i in 0..%s { B[tx*4 + i] = S[tx*4 + i] }\n"
                               "  } }\n"
                               "}\n",
                               bounds[i], bounds[i]),
                   0);
}

/* One iteration more, and the last element is the next thread's first. */
Test(barriers, are_needed_where_a_bound_leaves_the_threads_piece)
{
    static const char *const bounds[] = {"min(3, n)", "min(n, 3)", "max(min(n, 1), 3)",
                                         "min(9, max(3, min(n, 2)))"};

    for (int i = 0; i < BASE_COUNT(bounds); i++)
        needs_each(base_format(cx,
                               "program p(symbol n, A: f32[17], out B: f32[8]) {\n"
                               "  for tx in 0..8 threadIdx.x { allocate S: f32[17] @shared {\n"
                               "    for i in 0..2 { S[tx*2 + i] = A[tx*2 + i] }\n"
                               "    B[tx] = 0.0\n"
                               "    if tx < 7 { for i in 0..%s { B[tx] = B[tx] + S[tx*2 + i] } }\n"
                               "  } }\n"
                               "}\n",
                               bounds[i]),
                   1);
}

Test(barriers, of_a_warp_order_warp_memory)
{
    const char *text = "program p(A: f32[64], out B: f32[64]) {\n"
                       "  for tx in 0..64 threadIdx.x { allocate W: f32[32] @warp {\n"
                       "    W[tx % 32] = A[tx]\n"
                       "    B[tx] = W[31 - tx % 32]\n"
                       "  } }\n"
                       "}\n";

    HAS("tec.barrier(\"warp\")", after("barriers", CUDA, text));
    HAS_NOT("tec.barrier(\"shared\")", after("barriers", CUDA, text));
}

/* Statements over two shared rows and an own element, in random order, some under loops and conditions. */
static const char *random_program(uint64_t *state)
{
    base_text t = {0};
    int stages = 2 + (int)base_random_below(state, 4);
    static const char *const left[] = {"S[tx]", "T[tx]", "S[7 - tx]", "T[(tx + 3) % 8]", "B[tx]"};

    base_addf(cx, &t,
              "program p(A: f32[8], out B: f32[8]) {\n  for tx in 0..8 threadIdx.x { allocate S: f32[8] "
              "@shared { allocate T: f32[8] @shared {\n"
              "    S[tx] = A[tx]\n    T[7 - tx] = A[tx]\n    B[tx] = 0.0\n");
    for (int i = 0; i < stages; i++) {
        const char *to = left[base_random_below(state, 5)], *a = left[base_random_below(state, 5)],
                   *b = left[base_random_below(state, 5)];
        const char *again = left[base_random_below(state, 5)];

        switch (base_random_below(state, 4)) {
        case 0: base_addf(cx, &t, "    %s = %s + %s\n", to, a, b); break;
        case 1:
            base_addf(cx, &t, "    for k in 0..3 { %s = %s + f32(k)\n %s = %s }\n", to, a, again, b);
            break;
        case 2: base_addf(cx, &t, "    if tx < 4 { %s = %s\n B[tx] = %s }\n", to, a, b); break;
        default: base_addf(cx, &t, "    if A[0] > 0.0 { %s = %s }\n", to, a); break;
        }
    }
    base_addf(cx, &t, "    B[tx] = B[tx] + S[tx] + T[tx]\n  } } }\n}\n");
    return base_text_str(cx, &t);
}

/* A statement that reads what another thread writes is refused with or without barriers; all others must
 * run. */
Test(barriers, suffice_for_random_programs)
{
    int ran = 0;

    for (uint64_t seed = 1; seed <= 150; seed++) {
        uint64_t state = seed * 104729;
        const char *text = random_program(&state);
        const ir_program *before = parse(text), *p = through("barriers", CUDA, before, false);

        cr_assert(p, "seed %llu: %s\n%s", (unsigned long long)seed, tec_context_error(cx), text);
        memory m = fill(before, 1, 3), n = fill(before, 1, 3);
        ir_array a[2] = {array_of(before, before->params[0].buffer, 1),
                         array_of(before, before->params[1].buffer, 1)},
                 b[2] = {a[0], a[1]};
        for (int i = 0; i < 2; i++) {
            a[i].data = m.data[i];
            b[i].data = n.data[i];
        }
        if (!ir_interpret(cx, before,
                          &(ir_run){.args = (ir_arg[]){{.array = &a[0]}, {.array = &a[1]}},
                                    .implied_barriers = true})) {
            tec_context_clear(cx);
            continue;
        }
        ran++;
        cr_assert(ir_interpret(cx, p, &(ir_run){.args = (ir_arg[]){{.array = &b[0]}, {.array = &b[1]}}}),
                  "seed %llu: %s\n%s", (unsigned long long)seed, tec_context_error(cx),
                  ir_program_text(cx, p));
        cr_assert_eq(memcmp(m.data[1], n.data[1], 32), 0, "seed %llu\n%s", (unsigned long long)seed,
                     ir_program_text(cx, p));
    }
    cr_assert_gt(ran, 30, "only %d programs ran", ran);
}

#define EXCHANGE(loop, read, end)                                                                            \
    "program p(A: f32[8], out B: f32[8]) {\n  for tx in 0..8 threadIdx.x { B[tx] = 0.0 " loop                \
    "allocate S: i64[8] @shared {\n"                                                                         \
    "    S[tx] = tx\n    " read "\n  } } " end "}\n"

Test(barriers, order_reads_wherever_they_stand)
{
    needs_each(EXCHANGE("", "for i in S[7 - tx]..+2 { B[tx] = 1.0 }", ""), 1);
    needs_each(EXCHANGE("", "for i in 0..S[7 - tx] { B[tx] = 1.0 }", ""), 1);
    needs_each(EXCHANGE("", "let d = S[7 - tx] { B[tx] = f32(d) }", ""), 1);
    needs_each(EXCHANGE("", "if S[7 - tx] > 1 { B[tx] = 1.0 }", ""), 1);
    needs_each(EXCHANGE("", "B[tx] = A[S[7 - tx]]", ""), 1);
    needs_each(EXCHANGE("", "assert S[7 - tx] < 9, \"too large\"", ""), 1);
}

/* Around a loop, what stands behind the read in one iteration comes before it in the next. */
Test(barriers, order_reads_in_bounds_around_a_loop)
{
    needs_each(EXCHANGE("for k in 0..3 { ", "for i in S[7 - tx]..+2 { B[tx] = 1.0 }", "} "), 2);
    needs_each(EXCHANGE("for k in 0..3 { ", "for i in 0..S[7 - tx] { B[tx] = 1.0 }", "} "), 2);
}

/* Memory that two launches use lies in the workspace, whatever its scope was: its barriers order global
 * memory. */
Test(barriers, order_shared_memory_of_several_launches_as_global_memory)
{
    static const char *const scopes[] = {"shared", "warp"};

    for (int i = 0; i < BASE_COUNT(scopes); i++)
        SHOWS("program p(A: f32[8], out B: f32[8], out C: f32[8]) {\n"
              "  allocate S: f32[8] {\n"
              "    for tx in 0..8 threadIdx.x {\n"
              "      S[tx] = A[tx]\n"
              "      evaluate call<i32> tec.barrier(\"global\")\n"
              "      B[tx] = S[7 - tx]\n"
              "    }\n"
              "    for tx in 0..8 threadIdx.x {\n"
              "      C[tx] = S[7 - tx]\n"
              "    }\n"
              "  }\n"
              "}\n",
              after("barriers", OPENCL,
                    base_format(cx,
                                "program p(A: f32[8], out B: f32[8], out C: f32[8]) {\n"
                                "  allocate S: f32[8] @%s {\n"
                                "    for tx in 0..8 threadIdx.x { S[tx] = A[tx]\n B[tx] = S[7 - tx] }\n"
                                "    for tx in 0..8 threadIdx.x { C[tx] = S[7 - tx] }\n"
                                "  }\n"
                                "}\n",
                                scopes[i])));
}

/* The device has 32 KiB: S and T are shared memory of the launch, and U, which no longer fits, lies in the
 * workspace. */
Test(barriers, order_what_does_not_fit_into_shared_memory_as_global_memory)
{
    SHOWS("program p(A: f32[4000], out B: f32[4000]) {\n"
          "  allocate U: f32[4000] {\n"
          "    allocate S: f32[4000] @shared {\n"
          "      allocate T: f32[4000] @shared {\n"
          "        for tx in 0..8 threadIdx.x {\n"
          "          S[tx] = A[tx]\n"
          "          evaluate call<i32> tec.barrier(\"shared\")\n"
          "          T[tx] = S[7 - tx]\n"
          "          evaluate call<i32> tec.barrier(\"shared\")\n"
          "          U[tx] = T[7 - tx]\n"
          "          evaluate call<i32> tec.barrier(\"global\")\n"
          "          B[tx] = U[7 - tx]\n"
          "        }\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("barriers", OPENCL,
                "program p(A: f32[4000], out B: f32[4000]) {\n"
                "  allocate S: f32[4000] @shared { for tx in 0..8 threadIdx.x {\n"
                "    allocate T: f32[4000] @shared { allocate U: f32[4000] @shared {\n"
                "      S[tx] = A[tx]\n T[tx] = S[7 - tx]\n U[tx] = T[7 - tx]\n B[tx] = U[7 - tx]\n"
                "  } } } }\n"
                "}\n"));
}

/* A copy into global memory is none of those that the hardware makes by itself. */
Test(barriers, make_copies_into_global_memory_at_once)
{
    const char *text = "program p(A: f32[8], out B: f32[8], out C: f32[8]) {\n"
                       "  allocate S: f32[8] @shared {\n"
                       "    for b in 0..1 blockIdx.x { for tx in 0..8 threadIdx.x {\n"
                       "      attribute async_copy(1) { S[tx] = A[tx] }\n"
                       "      evaluate call<i32> tec.async_commit()\n"
                       "      evaluate call<i32> tec.async_wait(0)\n"
                       "      B[tx] = S[7 - tx]\n"
                       "    } }\n"
                       "    for tx in 0..8 threadIdx.x { C[tx] = S[7 - tx] }\n"
                       "  }\n"
                       "}\n";
    const char *out = after("barriers", CUDA, text);

    cr_assert(strstr(out, "        S[tx] = A[tx]\n"
                          "        evaluate call<i32> tec.async_commit()\n"
                          "        evaluate call<i32> tec.async_wait(0)\n"
                          "        evaluate call<i32> tec.barrier(\"global\")\n"
                          "        B[tx] = S[7 - tx]\n"),
              "%s", out);
    HAS_NOT("async_copy", out);
    same_meaning("barriers", CUDA,
                 "program p(A: f32[8], out B: f32[8], out C: f32[8]) {\n"
                 "  allocate S: f32[8] @shared {\n"
                 "    for tx in 0..8 threadIdx.x { attribute async_copy(1) { S[tx] = A[tx] }\n"
                 "      evaluate call<i32> tec.async_commit()  evaluate call<i32> tec.async_wait(0) }\n"
                 "    for tx in 0..8 threadIdx.x { B[tx] = S[7 - tx]  C[tx] = S[tx] }\n"
                 "  }\n"
                 "}\n",
                 SIZES(1));
}

Test(barriers, refuse_global_memory_where_an_intrinsic_expects_shared_memory)
{
    HAS("buffer 'S' lies outside of launches, in global memory, but the intrinsic 'take' expects it in scope "
        "shared",
        refusal("barriers", CUDA,
                "program p(A: f32[8], out B: f32[8]) {\n"
                "  intrinsic take \"warp tec_take\" { program take(s: f32[8] @shared, out d: f32[8]) {\n"
                "    for i in 0..8 { d[i] = s[i] } } }\n"
                "  allocate S: f32[8] @shared {\n"
                "    for tx in 0..8 threadIdx.x { S[tx] = A[tx] }\n"
                "    for tx in 0..32 threadIdx.x { evaluate call<i32> take(&S, &B, 0, 0) }\n"
                "  }\n"
                "}\n"));
}
