/* tests/schedule/launch.c -- env_threads. */
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(launch, .init = open_context, .fini = close_context);

static const char rnn[] = "def rnn(t, n, X: f32[t, n, 5], U: f32[5, 5]) where t >= 1, n >= 1 {\n"
                          "  scan cell[s: t + 1] {\n    init h[s: 1, i: n, j: 5] = 0.0\n"
                          "    update g[s, i: n, j: 5] = sum[k](h[s - 1, i, k] * U[k, j])\n"
                          "    update h[s, i, j] = g[s, i, j] * 0.5 + X[s - 1, i, j]\n  }\n  return h\n}\n";

/* A recurrence in which each element goes its own way. */
static const char decay[] = "def decay(t, X: f32[t, 6, 7]) where t >= 1 {\n"
                            "  scan cell[s: t + 1] {\n    init c[s: 1, i: 6, j: 7] = 1.0\n"
                            "    update d[s, i: 6, j: 7] = c[s - 1, i, j] * 0.5\n    update c[s, i, j] = "
                            "d[s, i, j] + X[s - 1, i, j]\n  }\n  return c\n}\n";

Test(launch, the_blocks_of_all_steps_are_one_loop_around)
{
    sched *s = schedule_of(rnn);

    does(s, "set_scope(g, shared)\nbind(g.i, blockIdx.x)\nbind(h.i, blockIdx.x)\nbind(g.j, "
            "threadIdx.x)\nbind(h.j, threadIdx.x)\n"
            "b = env_threads(cell.s, blockIdx.x)");
    cr_assert(strstr(tree_text(s), "for cell.s.blockIdx.x in 0..n blockIdx.x {\n  for cell.s in"), "%s",
              tree_text(s));
    cr_assert(strstr(sched_trace_text(cx, s), "cell.s.blockIdx.x = env_threads(cell.s, blockIdx.x)\n"), "%s",
              sched_trace_text(cx, s));
    cr_assert_null(sched_loop(s, "g.i"));
}

/* The trace that it prints replays. */
Test(launch, can_be_replayed)
{
    sched *s = schedule_of(decay), *again = schedule_of(decay);

    does(s, "bind(c.i, blockIdx.y)\nbind(d.i, blockIdx.y)\nbind(d.j, threadIdx.x)\nbind(c.j, threadIdx.x)\n"
            "by, tx = env_threads(cell.s, blockIdx.y, threadIdx.x)\nreorder(by, tx)");
    does(again, sched_trace_text(cx, s));
    cr_assert_str_eq(tree_text(again), tree_text(s));
}

Test(launch, threads_that_keep_to_their_elements_go_around_time)
{
    does(schedule_of(decay),
         "bind(d.j, threadIdx.x)\nbind(c.j, threadIdx.x)\nenv_threads(cell.s, threadIdx.x)");
    does(
        schedule_of(decay),
        "d0, d1 = split(d.j, 4, _)\nbind(d0, threadIdx.x)\nc0, c1 = split(c.j, 4, _)\nbind(c0, threadIdx.x)\n"
        "env_threads(cell.s, threadIdx.x)");
}

/* Loops in the way are crossed, as long as nothing is handed on across. */
Test(launch, a_loop_that_is_no_scan_will_do)
{
    does(schedule_of("def f(n, A: f32[n, 6], B: f32[6, 5]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }"),
         "reorder(C.k, C.y)\nbind(C.x, threadIdx.x)\nenv_threads(C.k, threadIdx.x)");
}

Test(launch, without_loops_over_blocks_there_is_one_block)
{
    sched *s = schedule_of(rnn);

    does(s, "set_scope(g, shared)\nbind(g.j, threadIdx.x)\nbind(h.j, threadIdx.x)\nenv_threads(cell.s, "
            "blockIdx.x)");
    cr_assert(strstr(tree_text(s), "for cell.s.blockIdx.x in 0..1 blockIdx.x {"), "%s", tree_text(s));
}

/* What all threads fill together and read of each other keeps its loop; the sums of a thread are its own. */
Test(launch, tiles_keep_their_loops_over_threads)
{
    sched *s = schedule_of("def f(n, A: f32[n, 32], B: f32[32, 8]) where n >= 1 {\n"
                           "  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n");

    does(s, "k0, k1 = split(C.k, _, 8)\nreorder(k0, C.y, C.x, k1)\nreorder(C.y, k0)\ncache_read(A, shared)\n"
            "compute_at(A.cache.shared, k0)\nbind(A.cache.shared.ax1, threadIdx.x)\nbind(C.x, threadIdx.x)\n"
            "tx = env_threads(k0, threadIdx.x)\nbind(C.y, blockIdx.x)");
    cr_assert(strstr(tree_text(s), "for C.k.0.threadIdx.x in 0..8 threadIdx.x {"), "%s", tree_text(s));
    cr_assert(strstr(tree_text(s), "for A.cache.shared.ax1 in 0..8 threadIdx.x {"), "%s", tree_text(s));
    cr_assert_null(sched_loop(s, "C.x"));
}

Test(launch, keeps_to_the_rules_of_bind)
{
    sched *s = schedule_of(decay);

    does(s, "bind(d.j, threadIdx.x)\nbind(c.j, threadIdx.x)\nbind(c.i, threadIdx.y)\nbind(d.i, threadIdx.y)");
    refuses(s, "env_threads(cell.s, threadIdx.x, blockIdx.x)",
            "'cell.s.blockIdx.x' would run as blockIdx.x inside 'cell.s.threadIdx.x', which is threadIdx.x");
    does(s, "bind(c.first.i, blockIdx.x)"); /* a launch of its own, with 6 blocks: that is no reason */
    refuses(s, "env_threads(cell.s, blockIdx.x)",
            "'c' uses 'd', which 'd' writes in other loops of threads: it would have to be shared memory");
    refuses(s, "env_threads(c.i, threadIdx.x)", "loop 'c.i' is threadIdx.y already");
}

Test(launch, is_a_function_of_the_library)
{
    sched *s = schedule_of(decay);
    const char *out[2];

    cr_assert(tec_bind(s, "d.j", "threadIdx.x") && tec_bind(s, "c.j", "threadIdx.x"));
    cr_assert(tec_env_threads(s, "cell.s", out, "blockIdx.x", "threadIdx.x"));
    cr_assert_str_eq(out[1], "cell.s.threadIdx.x");
    cr_assert_not(tec_env_threads(s, "cell.s", NULL, "threadIdx.x"));
    cr_assert(strstr(tec_schedule_error(s), "launch.c:"), "%s", tec_schedule_error(s));
}
