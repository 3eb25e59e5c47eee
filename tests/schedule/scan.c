/* tests/schedule/scan.c -- recurrences under every primitive: what moves within a step, what leaves the scan,
 * what crosses time. */
#include "tests/schedule/run.h"

TestSuite(scan, .init = open_context, .fini = close_context);

/* Two states of different dtypes; x and p live within a step. */
static const char two_states[] = "def f(n, m, A: i32[n, m], W: i32[m, m]) where n >= 1, m >= 2 {\n"
                                 "  scan S[t: n] {\n"
                                 "    init g[t: 1, j: m] = A[0, j]\n"
                                 "    init h[t: 1, j: m] = i64(A[t, j])\n"
                                 "    update x[t, j: m] = A[t, j] * 2\n"
                                 "    update p[t, j: m] = sum[k: m](g[t - 1, k] * W[j, k])\n"
                                 "    update g[t, j] = x[t, j] + p[t, j]\n"
                                 "    update h[t, j] = h[t - 1, j] + i64(g[t, j])\n"
                                 "  }\n"
                                 "  R[j] = h[n - 1, j]\n"
                                 "  return R, g\n}\n";

/* A prefix sum of each column. */
static const char prefix[] =
    "def f(n, m, A: i32[n, m]) where n >= 1 {\n"
    "  scan S[t: n] { init h[t: 1, j: m] = A[0, j] update h[t, j] = h[t - 1, j] + A[t, j] }\n"
    "  return h\n}\n";

/* The same with its right neighbour's. */
static const char neighbours[] =
    "def f(n, m, A: i32[n, m]) where n >= 1 {\n"
    "  scan S[t: n] { init h[t: 1, j: m] = A[0, j] update h[t, j] = h[t - 1, (j + 1) % m] + A[t, j] }\n"
    "  return h\n}\n";

/* A state that is a reduction itself. */
static const char product[] =
    "def f(n, A: i32[n, 8], W: i32[8, 8]) where n >= 1 {\n"
    "  scan S[t: n] { init h[t: 1, j: 8] = A[0, j] update h[t, j] = sum[k: 8](h[t - 1, k] * W[k, j]) }\n"
    "  return h\n}\n";

/* ---- within a step ---- */

Test(scan, what_lives_within_a_step_moves_there)
{
    sched *s = schedule_of(two_states);

    does(s, "compute_at(p, g.j)");
    does(s, "compute_inline(x)");
    does(s, "a, b = split(g.j, _, 4)");
    does(s, "parallel(g.j.0)");
}

Test(scan, a_state_moves_within_its_step)
{
    does(schedule_of(two_states), "reverse_compute_at(h, g.j)");
    does(schedule_of(two_states), "a, b = split(g.j, _, 3)\nreverse_compute_at(h, g.j.0)\nparallel(g.j.0)");
    does(schedule_of(two_states), "a, b = split(h.j, _, 3)\ncompute_at(g, h.j.0)\ncompute_at(x, g.j)");
}

Test(scan, a_moved_state_keeps_its_step_without_a_loop)
{
    sched *s = schedule_of("def f(n, A: i32[n, 6]) where n >= 1 {\n"
                           "  scan S[t: n] { init h[t: 1, j: 6] = A[0, j] update x[t, j: 6] = A[t, j] * 2 "
                           "update h[t, j] = h[t - 1, j] + x[t, j] }\n"
                           "  return h }");

    does(s, "reverse_compute_at(h, x.j)");
    cr_assert(strstr(tree_text(s), "    for h.j in 0..1 {\n"
                                   "      block h(t scan = S.t in 0..n - 1, j = x.j + h.j in 0..6) {\n"),
              "%s", tree_text(s));
}

Test(scan, loops_of_a_step_are_split_and_run_as_lanes)
{
    sched *s = schedule_of(two_states);

    does(s, "a, b = split(h.j, _, 4)\nvectorize(h.j.1)");
    does(s, "c, d = split(p.k, _, 4)\nreorder(p.k.0, p.j, p.k.1)");
    does(s, "parallel(h.j.0)");
}

Test(scan, steps_are_copied_and_reduced_in_parts)
{
    does(schedule_of(two_states), "c = cache_read(g, local, p)");
    does(schedule_of(two_states), "c = cache_write(p, local)");
    does(schedule_of(two_states), "c = cache_write(p, local, p.j)");
    does(schedule_of(two_states), "i = decompose_reduction(p, p.k)");
    does(schedule_of(two_states), "a, b = split(p.k, _, 4)\nr = rfactor(b, 0)");
    does(schedule_of(product), "i = decompose_reduction(h, h.j)\nreorder(h.k, h.j)\nvectorize(h.j)");
    does(schedule_of(product), "reorder(h.k, h.j)\na, b = split(h.k, _, 4)\nr = rfactor(b, 0)");
}

/* The copy holds the steps from 1 on. At the root it must not read step 0, which nothing wrote. */
Test(scan, what_steps_wrote_is_copied_at_the_root)
{
    static const char unread[] =
        "def f(n, m, A: i32[n, m]) where n >= 1 {\n"
        "  scan S[t: n] { init h[t: 1, j: m] = A[0, j] update x[t, j: m] = h[t - 1, j] * 2\n"
        "    update h[t, j] = h[t - 1, j] + A[t, j] }\n"
        "  return h\n}\n";

    does(schedule_of(unread), "c = cache_write(x, global)\ncompute_root(x.cache.global)");
}

/* A copy into which its buffer was inlined may read no buffer at all. */
Test(scan, copies_that_compute_move_to_the_root_whole)
{
    static const char inlined[] =
        "def f(A: i32[8]) {\n  P[i: 8] = i32(1)\n  C[i: 8] = P[i] + A[i]\n  return C\n}\n";

    does(schedule_of(inlined),
         "c = cache_read(P, global, C)\ncompute_inline(P)\ncompute_root(P.cache.global)");
}

/* The sums keep their order, so the results are the same to the last bit. */
Test(scan, the_example_keeps_its_meaning)
{
    static const char path[] = TEC_SOURCE_DIR "/examples/lstm.te";
    size_t size;
    const char *text = base_read_file(cx, path, &size);
    te_file *f = te_parse(cx, path, text);
    const ir_program *p = te_tree(cx, f->defs.at[0]);
    sched *s = sched_new(cx, p, NULL);

    cr_assert(sched_replay(s, path, base_dict_get(&f->schedules, "lstm")), "%s", sched_error(s));
    const char *d = difference(p, sched_tree(s), 3);
    cr_assert(!d, "%s\n%s", d, tree_text(s));
}

/* ---- out of the scan ---- */

Test(scan, what_needs_no_state_is_computed_for_all_steps_before)
{
    sched *s = schedule_of(two_states);

    does(s, "compute_root(x)");
    does(s, "a = fuse(x.t, x.j)\nparallel(a)");
    does(s, "c = cache_read(x, local)");
    refuses(s, "compute_root(p)", "'g' overwrites 'g', which 'p' reads");
    refuses(s, "compute_root(h)", "'h' stays in its scan loop 'S.t'");
}

Test(scan, first_steps_run_in_parallel)
{
    does(schedule_of(two_states), "a = fuse(g.first.t, g.first.j)\nparallel(a)");
}

/* The layout knows that t is 0, and the value does not. */
Test(scan, given_steps_are_not_rounded_up)
{
    sched *s = schedule_of("def f(n) where n >= 1 {\n"
                           "  scan S[t: n] { init h[t: 1, j: 4] = i32(t) update h[t, j] = h[t - 1, j] + 1 }\n"
                           "  R[j] = h[n - 1, j] return R }");

    does(s, "transform_layout(h, (i0, i1) -> (i1, i0))");
    refuses(s, "a, b = split(h.first.t, _, 5, round_up)",
            "rounded up, 'h.first' would write its elements for more than one value of 't'");
}

/* Where the first steps end, the others begin: together they fill the state. */
Test(scan, a_state_can_be_read_behind_the_end_of_an_axis)
{
    sched *s = schedule_of(
        "def f(A: i32[6, 13]) {\n"
        "  scan S[t: 6] { init h[t: 1, j: 13] = A[0, j] update h[t, j] = h[t - 1, j] + A[t, j] }\n"
        "  C[t: 6, j: 10] = h[t, j] + 1\n"
        "  D[t: 6, j: 10] = C[t, j] + 1 return D }");

    does(s, "transform_layout(C, (t, j) -> (t, floordiv(j, 4), j % 4))");
    does(s, "split(C.j, _, 4, round_up)");
}

/* ---- time and space ---- */

Test(scan, elementwise_steps_go_inside_a_spatial_loop)
{
    sched *s = schedule_of(prefix);

    does(s, "a, b = split(h.j, _, 4)");
    does(s, "reorder(h.j.0, S.t, h.j.1)");
    does(s, "parallel(h.j.0)");
}

Test(scan, steps_that_read_their_neighbours_do_not)
{
    sched *s = schedule_of(neighbours);

    refuses(s, "reorder(h.j, S.t)", "'h.j' cannot cross the scan loop 'S.t': 'h' reads what it writes, 'h'");
    does(s, "parallel(h.j)");
}

Test(scan, time_keeps_its_place_among_reductions)
{
    sched *s = schedule_of(
        "def f(n, m, A: i32[n, m]) where n >= 1 {\n"
        "  scan S[t: n] { init h[t: 1] = A[0, 0] update h[t] = sum[k: m](A[t, k] + h[t - 1]) } return h }");

    refuses(s, "reorder(h.k, S.t)", "'S.t' is a loop of the scan 'h' and keeps its place");
    refuses(s, "parallel(S.t)", "'S.t' is a scan loop of 'h'");
}

/* ---- refusals ---- */

Test(scan, a_step_is_written_whole)
{
    sched *s = schedule_of("def f(n, A: i32[n, 6]) where n >= 1 {\n"
                           "  scan S[t: n] {\n"
                           "    init g[t: 1, j: 6] = A[0, j] init h[t: 1, j: 3] = i32(0)\n"
                           "    update g[t, j] = g[t - 1, (j + 1) % 6] + A[t, j]\n"
                           "    update h[t, j] = g[t, j] + h[t - 1, j]\n"
                           "  }\n"
                           "  return h }");

    refuses(s, "compute_at(g, h.j)",
            "it is not proven that 'g' would still write all of 'g' in each step of 'S.t'");
}

Test(scan, the_copy_of_an_accumulating_cache_does_not_overtake_its_load)
{
    sched *s = schedule_of("def f(A: f32[4, 8]) { C[i] = sum[k](A[i, k]) return C }");

    does(s, "reorder(C.k, C.i)\nc = cache_write(C, local, C.k)\nd = cache_read(C.cache.local, local)");
    refuses(s, "compute_at(C.cache.local, C.cache.local.load.i)",
            "'C.cache.local.load' reads 'C' before 'C.cache.local' overwrites it");
}

Test(scan, a_block_that_reads_its_own_step_stays)
{
    sched *s = schedule_of_tree(
        "program f(symbol n, A: i32[n, 4], out B: i32[n, 4]) {\n"
        "  buffer g: i32[4]\n"
        "  for g.first.j in 0..4 { block g.first(j = g.first.j in 0..4) { writes g[j] g[j] = 0 } }\n"
        "  for t in 0..n {\n"
        "    for g.j in 0..4 {\n"
        "      block g(t scan = t in 0..n, j = g.j in 0..4) { reads g[j], A[t, j] writes g[j] g[j] = g[j] + "
        "A[t, j] }\n"
        "    }\n"
        "    for B.j in 0..4 { block B(t = t in 0..n, j = B.j in 0..4) { reads g[j] writes B[t, j] B[t, j] = "
        "g[j] } }\n"
        "  }\n"
        "}\n");

    refuses(s, "compute_at(g, B.j)",
            "'g' cannot move: it is not proven that it reads only what earlier steps wrote");
}
