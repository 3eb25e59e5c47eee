/* tests/schedule/rolling.c -- rolling_buffer. */
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(rolling, .init = open_context, .fini = close_context);

static const char blur[] = "def f(n, A: f32[n + 2, 6]) { P[y, x] = A[y, x] * 2 C[y: n, x] = P[y, x] + P[y + "
                           "1, x] * 3 + P[y + 2, x] return C }";
static const char strided[] =
    "def f(A: f32[21]) { P[y] = A[y] * A[y] C[y: 9] = sum[k: 5](P[y * 2 + k]) return C }";
static const char padded[] =
    "def f(A: f32[12, 5]) { P[y, x] = A[y, x] * 2 "
    "C[y, x] = select(y >= 1, P[y - 1, x], 0) + P[y, x] + select(y < 11, P[y + 1, x], 0) return C }";
static const char chain[] =
    "def f(A: f32[16]) { O[y] = A[y] + 1 P[y: 14] = O[y] + O[y + 2] C[y: 12] = P[y] + P[y + 2] return C }";

Test(rolling, computes_the_new_rows_only)
{
    sched *s = schedule_of(blur);

    does(s, "compute_at(P, C.y)\nahead = rolling_buffer(P, C.y)");
    looks(s, "for P.y'2 in 0..2 {\n"
             "  for P.x'2 in 0..6 {\n"
             "    block P'2(y = P.y'2 in 0..n + 2, x = P.x'2 in 0..6) {\n"
             "      reads A[y, x]\n"
             "      writes P[y % 3, x]\n"
             "      P[y % 3, x] = A[y, x] * 2.0\n"
             "    }\n"
             "  }\n"
             "}\n"
             "for C.y in 0..n {\n"
             "  for P.y in 0..1 {\n"
             "    for P.x in 0..6 {\n"
             "      block P(y = C.y + 2 in 0..n + 2, x = P.x in 0..6) {\n"
             "        reads A[y, x]\n"
             "        writes P[y % 3, x]\n"
             "        P[y % 3, x] = A[y, x] * 2.0\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "  for C.x in 0..6 {\n"
             "    block C(y = C.y in 0..n, x = C.x in 0..6) {\n"
             "      reads P[0:3, x]\n"
             "      writes C[y, x]\n"
             "      C[y, x] = P[y % 3, x] + P[(y + 1) % 3, x] * 3.0 + P[(y + 2) % 3, x]\n"
             "    }\n"
             "  }\n"
             "}\n");
    cr_assert_str_eq(sched_trace_text(cx, s), "compute_at(P, C.y)\nP'2 = rolling_buffer(P, C.y)\n");
}

Test(rolling, takes_a_window_that_moves_by_more_than_a_row)
{
    does(schedule_of(strided), "compute_at(P, C.y)\nrolling_buffer(P, C.y)");
    does(schedule_of(strided), "split(C.y, _, 2)\ncompute_at(P, C.y.0)\nrolling_buffer(P, C.y.0)");
}

Test(rolling, takes_a_window_that_reaches_over_both_edges)
{
    does(schedule_of(padded), "compute_at(P, C.y)\nrolling_buffer(P, C.y)");
}

Test(rolling, starts_anew_in_each_tile)
{
    does(schedule_of(blur),
         "split(C.y, _, 4)\ncompute_at(P, C.y.1)\nparallel(C.y.0)\nrolling_buffer(P, C.y.1)\nvectorize(C.x)");
    does(schedule_of(padded), "split(C.y, _, 5)\ncompute_at(P, C.y.1)\nrolling_buffer(P, C.y.1)");
}

Test(rolling, takes_reductions_that_are_complete)
{
    does(schedule_of(
             "def f(A: f32[10, 7]) { P[y] = sum[k](A[y, k]) C[y: 8] = P[y] + P[y + 1] + P[y + 2] return C }"),
         "compute_at(P, C.y)\nrolling_buffer(P, C.y)");
}

Test(rolling, keeps_the_order_of_the_loop)
{
    sched *s = schedule_of(blur);

    does(s, "compute_at(P, C.y)\nrolling_buffer(P, C.y)");
    refuses(s, "parallel(C.y)", "it is not proven that iterations of 'C.y' write distinct elements of 'P'");
    refuses(s, "compute_root(P)", "'P' is not the only writer of 'P': 'P'2' writes it too");
    does(s, "split(C.y, _, 4)\nparallel(P.x)\nvectorize(C.x)");
    s = schedule_of(strided);
    does(s, "compute_at(P, C.y)\nrolling_buffer(P, C.y)");
    refuses(s, "split(C.y, _, 4, shift_inwards)",
            "shift_inwards repeats instances of 'P', but later ones overwrite what they left in 'P'");
    does(s, "cut(C.y, 4)\nunroll(C.y.0)");
}

Test(rolling, a_window_stays_in_one_stage_of_a_pipeline)
{
    sched *s = schedule_of(blur);

    does(s, "compute_at(P, C.y)\nrolling_buffer(P, C.y)");
    refuses(s, "pipeline(C.y, P, C, 0, 1)",
            "'P' (stage 0) would run before 'C' (stage 1) of an earlier iteration, and both use 'P'");
    s = schedule_of("def f(A: f32[18, 6]) { P[y, x] = A[y, x] * 2 C[y: 16, x] = P[y, x] + P[y + 2, x] D[y, "
                    "x] = C[y, x] + 1 return D }");
    does(s,
         "compute_at(C, D.y)\ncompute_at(P, D.y)\nrolling_buffer(P, D.y)\npipeline(D.y, P, C, D, 0, 0, 1)");
    s = schedule_of(blur);
    does(s, "compute_at(P, C.y)\npipeline(C.y, P, C, 0, 1)");
    refuses(s, "rolling_buffer(P, C.y)", "the pipeline in which 'P'2' has a stage would be gone");
}

Test(rolling, is_a_function_of_the_library)
{
    sched *s = schedule_of(blur);

    cr_assert(tec_compute_at(s, "P", "C.y"));
    cr_assert_str_eq(tec_rolling_buffer(s, "P", "C.y"), "P'2");
    cr_assert_null(tec_rolling_buffer(s, "P", "C.y"));
}

Test(rolling, refuses_what_has_no_window)
{
    sched *s = schedule_of(blur);

    refuses(s, "rolling_buffer(A, C.y)",
            "'A' is an argument of the program, and the caller determines its layout");
    refuses(s, "rolling_buffer(P, C.y)", "'P' is not computed inside loop 'C.y'");
    does(s, "compute_at(P, C.y)");
    refuses(s, "rolling_buffer(P, P.y)",
            "cannot prove that each iteration of 'P.y' computes all elements of 'P' that it reads");
    does(s, "split(P.y, _, 2)");
    refuses(s, "rolling_buffer(P, C.y)",
            "dimension 0 of 'P' is not one serial loop of 'P': roll the buffer before its loops change");
    s = schedule_of(blur);
    does(s, "split(C.y, _, 4)\ncompute_at(P, C.y.0)\nparallel(C.y.0)");
    refuses(s, "rolling_buffer(P, C.y.0)",
            "loop 'C.y.0' is parallel; only a serial loop can keep elements for its next iteration");
    s = schedule_of(
        "def f(A: f32[8, 8]) { P[y, x] = A[y, x] * 2 C[y: 8, x] = P[y, x] + P[y, 7 - x] return C }");
    does(s, "compute_at(P, C.y)");
    refuses(s, "rolling_buffer(P, C.y)",
            "an iteration of 'C.y' needs 1 elements of 'P' and advances by 1, so it shares no element with "
            "the iteration before");
    s = schedule_of("def f(A: f32[8]) { P[y] = A[y] * 2 C[y: 4, x: 3] = P[x] + P[x + 1] return C }");
    does(s, "compute_at(P, C.y)");
    refuses(s, "rolling_buffer(P, C.y)", "no dimension of 'P' advances with loop 'C.y'");
    s = schedule_of(
        "def f(A: f32[9, 9]) { P[y, x] = A[y, x] * 2 C[y: 8] = P[y, y] + P[y + 1, y + 1] return C }");
    does(s, "compute_at(P, C.y)");
    refuses(s, "rolling_buffer(P, C.y)",
            "dimensions 0 and 1 of 'P' both advance with 'C.y': expected one dimension");
}

Test(rolling, refuses_inputs_of_the_same_loop)
{
    sched *s = schedule_of(chain);

    does(s, "compute_at(P, C.y)\ncompute_at(O, C.y)");
    refuses(s, "rolling_buffer(P, C.y)", "'O', which 'P' reads, is computed in 'C.y' too");
    does(s, "rolling_buffer(O, C.y)");
    s = schedule_of(chain);
    does(s, "compute_at(P, C.y)\nrolling_buffer(P, C.y)");
}
