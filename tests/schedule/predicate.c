/* tests/schedule/predicate.c -- store_predicate. */
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(predicate, .init = open_context, .fini = close_context);

static const char sums[] =
    "def f(n, m, A: f32[n, 7]) { P[y] = sum[k](A[y, k]) C[y, x: m] = P[y] * 2.0 return C }";

Test(predicate, of_equal_stores_the_first_one_stays)
{
    sched *s = schedule_of(sums);

    does(s, "compute_at(P, C.x)\nstore_predicate(P, C.x)");
    cr_assert(strstr(tree_text(s), "k reduce = P.k in 0..7) where C.x == 0"), "%s", tree_text(s));
    cr_assert_str_eq(sched_trace_text(cx, s), "compute_at(P, C.x)\nstore_predicate(P, C.x)\n");
}

/* The pieces of the loop, one by one or together; odd extents. */
Test(predicate, takes_several_loops)
{
    does(schedule_of(sums),
         "x0, x1, x2 = split(C.x, _, 2, 3)\ncompute_at(P, x2)\nstore_predicate(P, x0, x1, x2)");
    does(schedule_of(sums), "x0, x1 = split(C.x, _, 4)\nreorder(x0, C.y, x1)\ncompute_at(P, "
                            "x1)\nstore_predicate(P, x1)\nstore_predicate(P, x0)");
    does(schedule_of("def f(n, A: f32[n]) { P[y] = A[y] * A[y] C[y: n, x: 5, z: n] = P[y] + P[z] return C }"),
         "compute_at(P, C.x)\nstore_predicate(P, C.x)");
    does(schedule_of("def f(A: f32[7]) { P[] = sum[k](A[k]) C[x: 5] = P[] * 2.0 return C }"),
         "compute_at(P, C.x)\nstore_predicate(P, C.x)");
}

/* As many stages as the list of them has places. */
Test(predicate, among_eight_stages)
{
    does(schedule_of("def f(n, m, A: f32[n, 7]) {\n"
                     "  P[y] = sum[k](A[y, k]) C[y, x: m] = P[y] * 2.0\n"
                     "  D[y] = A[y, 0] E[y] = D[y] + 1 F[y] = E[y] + D[y] G[y] = F[y] * 3 H[y] = G[y] - 1 "
                     "I[y] = H[y] * G[y]\n"
                     "  return C, I\n}"),
         "compute_at(P, C.x)\nstore_predicate(P, C.x)");
}

Test(predicate, later_steps_keep_it)
{
    does(schedule_of(sums), "compute_at(P, C.x)\nstore_predicate(P, C.x)\nsplit(C.x, _, 4)");
    does(schedule_of(sums), "compute_at(P, C.x)\nstore_predicate(P, C.x)\nfuse(C.y, C.x)");
    does(schedule_of(sums), "compute_at(P, C.x)\nstore_predicate(P, C.x)\nparallel(C.y)");
    does(schedule_of("def f(n, A: f32[n, 7]) { P[y] = sum[k](A[y, k]) C[y, x: 9] = P[y] * 2.0 return C }"),
         "compute_at(P, C.x)\nstore_predicate(P, C.x)\ncut(C.x, 4)");
}

/* Iterations that read what only the first one computes are not independent. */
Test(predicate, makes_the_loop_carry_the_values)
{
    sched *s = schedule_of(sums);

    does(s, "compute_at(P, C.x)\nstore_predicate(P, C.x)");
    refuses(
        s, "parallel(C.x)",
        "it is not proven that each iteration of 'C.x' uses only its own elements of 'P', which 'P' writes");
    refuses(s, "fuse(C.y, C.x)\nparallel(C.y~C.x)",
            "it is not proven that iterations of 'C.y~C.x' write distinct elements of 'P'");
}

/* An output that all iterations of a loop store alike: without the predicate threads would race for it. */
static const char shared_row[] =
    "program f(A: f32[4], B: f32[6, 4], out P: f32[4], out C: f32[6, 4]) {\n"
    "  for l in 0..6 {\n    for i in 0..4 {\n"
    "      block P(i = i in 0..4) { reads A[i] writes P[i] P[i] = A[i] * 3.0 }\n"
    "      block C(l = l in 0..6, i = i in 0..4) { reads B[l, i] writes C[l, i] C[l, i] = B[l, i] + 1.0 }\n"
    "    }\n  }\n}\n";

Test(predicate, lets_threads_that_store_the_same_run)
{
    sched *s = schedule_of_tree(shared_row);

    refuses(s, "bind(l, threadIdx.x)",
            "it is not proven that iterations of 'l' write distinct elements of 'P'");
    does(s, "store_predicate(P, l)\nbind(l, threadIdx.x)");
    s = schedule_of_tree(shared_row);
    does(s, "store_predicate(P, l)\nparallel(l)");
}

Test(predicate, is_a_function_of_the_library)
{
    sched *s = schedule_of(sums);

    cr_assert(tec_compute_at(s, "P", "C.x") && tec_store_predicate(s, "P", "C.x"));
    cr_assert_not(tec_store_predicate(s, "C", "C.x"));
    cr_assert(strstr(tec_schedule_error(s), "predicate.c:"), "%s", tec_schedule_error(s));
}

/* Which of the instances along z stored last is not known of the layout; nor what an inlined value would
 * be. */
Test(predicate, knows_that_a_layout_leaves_out_an_axis)
{
    static const char text[] =
        "program f(A: f32[8], out C: f32[4, 8]) {\n"
        "  buffer P: f32[4, 2]\n"
        "  for l in 0..4 {\n"
        "    for i in 0..8 { for z in 0..3 {\n"
        "      block P(i = i in 0..8, z = z in 0..3) {\n"
        "        reads A[i] writes P[floordiv(i, 2), i % 2] P[floordiv(i, 2), i % 2] = A[i] * f32(z)\n"
        "      }\n"
        "    } }\n"
        "    for j in 0..8 { block C(l = l in 0..4, j = j in 0..8) {\n"
        "      reads P[floordiv(j, 2), j % 2] writes C[l, j] C[l, j] = P[floordiv(j, 2), j % 2]\n"
        "    } }\n"
        "  }\n"
        "}\n";

    refuses(schedule_of_tree(text), "store_predicate(P, l)",
            "it is not proven that each element of 'P' is stored by one instance of 'P'");
    refuses(schedule_of_tree(text), "compute_inline(P)", "the store of 'P' cannot be inverted");
}
