/* tests/schedule/pipeline.c -- pipeline and double_buffer: what they note; tests/error has what is
 * refused. */
#include "tests/schedule/run.h"

TestSuite(pipeline, .init = open_context, .fini = close_context);

/* Two stages of work for each row: P is private to an iteration of C.y, Q to one of its own. */
static const char rows[] = "def f(n, A: f32[n, 12]) { P[y, x] = A[y, x] * 2.0 Q[y, x: 12] = P[y, x] + P[y, "
                           "11 - x] C[y, x: 12] = Q[y, 11 - x] return C }";

#define INSIDE "compute_at(Q, C.y)\ncompute_at(P, C.y)\n"

Test(pipeline, notes_stages_and_order)
{
    sched *s = schedule_of("def f(n, A: f32[n]) { P[y] = A[y] * 2.0 C[y] = P[y] return C }");

    does(s, "compute_at(P, C.y)\npipeline(C.y, C, P, 1, 0)");
    looks(s, "for C.y in 0..n @pipeline(1) {\n"
             "  for P.y in 0..1 {\n"
             "    block P(y = C.y + P.y in 0..n) @pipeline_order(1) @pipeline_stage(0) {\n"
             "      reads A[y]\n"
             "      writes P[y]\n"
             "      P[y] = A[y] * 2.0\n"
             "    }\n"
             "  }\n"
             "  block C(y = C.y in 0..n) @pipeline_order(0) @pipeline_stage(1) {\n"
             "    reads P[y]\n"
             "    writes C[y]\n"
             "    C[y] = P[y]\n"
             "  }\n"
             "}\n");
}

Test(pipeline, replays_and_prints)
{
    sched *s = schedule_of(rows), *again = schedule_of(rows);

    does(s, INSIDE "pipeline(C.y, C, P, Q, 3, 0, 1)");
    cr_assert(strstr(sched_trace_text(cx, s), "pipeline(C.y, C, P, Q, 3, 0, 1)\n"));
    does(again, sched_trace_text(cx, s));
    looks(again, tree_text(s));
}
