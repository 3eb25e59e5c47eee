/* tests/schedule/pipeline.c -- pipeline and double_buffer: what they note, and what is refused. */
#include "tests/schedule/run.h"

TestSuite(pipeline, .init = open_context, .fini = close_context);

/* Two stages of work for each row: P is private to an iteration of C.y, Q to one of its own. */
static const char rows[] = "def f(n, A: f32[n, 12]) { P[y, x] = A[y, x] * 2.0 Q[y, x: 12] = P[y, x] + P[y, 11 - x] C[y, x: 12] = Q[y, 11 - x] return C }";

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

/* ---- refusals ---- */

static void refuses_inside(const char *step, const char *reason)
{
    sched *s = schedule_of(rows);

    does(s, INSIDE);
    refuses(s, step, reason);
}

Test(pipeline, refuses_stages_that_are_none)
{
    refuses_inside("pipeline(C.y, P, Q, C, 0, 1)", "3 blocks have 2 stages");
    refuses_inside("pipeline(C.y, P, Q, 0, 1)", "'C' stands under 'C.y' and has no stage");
    refuses_inside("pipeline(C.y, P, P, Q, C, 0, 0, 1, 1)", "'P' is named twice");
    refuses_inside("pipeline(C.y, P, Q, D, 0, 1, 1)", "there is no block 'D' under 'C.y'");
    refuses_inside("pipeline(C.y, P, Q, C, 0, 0, 0)", "the stages of 'C.y' are 0 to 0; expected 0 and at least one more");
    refuses_inside("pipeline(C.y, P, Q, C, 1, 2, 2)", "the stages of 'C.y' are 1 to 2; expected 0 and at least one more");
    refuses_inside("pipeline(C.y, P, Q, C, 0, 1, 16)", "stage 16 of 'C': expected 0 to 15");
}

Test(pipeline, refuses_stages_against_the_dependences)
{
    refuses_inside("pipeline(C.y, P, Q, C, 1, 0, 1)", "'Q' (stage 0) would run before 'P' (stage 1) of the same iteration, and both use 'P'");
    refuses_inside("pipeline(C.y, Q, P, C, 0, 0, 1)", "'Q' (stage 0) would run before 'P' (stage 0) of the same iteration, and both use 'P'");
}

Test(pipeline, refuses_carried_values_in_two_stages)
{
    sched *s = schedule_of_tree("program f(A: f32[8], out B: f32[9], out C: f32[8]) {\n"
                                "  for k in 0..8 {\n"
                                "    block R(k = k in 0..8) { reads A[k] writes B[k] B[k] = A[k] }\n"
                                "    block W(k = k in 0..8) { reads B[k] writes C[k] C[k] = B[k] }\n"
                                "  }\n"
                                "  block E(u = 0 in 0..1) { writes B[8] B[8] = 0.0 }\n"
                                "}\n");

    refuses(s, "pipeline(k, R, W, 0, 1)", "'R' (stage 0) would run before 'W' (stage 1) of an earlier iteration, and both use 'B'");
}

Test(pipeline, refuses_to_part_what_stands_in_one_statement)
{
    sched *s = schedule_of(rows);

    does(s, "compute_at(Q, C.y)\ncompute_at(P, Q.x)");
    refuses(s, "pipeline(C.y, P, Q, C, 0, 1, 1)", "'P' and 'Q' stand in one statement of 'C.y': they need one stage and follow each other");
    does(s, "pipeline(C.y, P, Q, C, 0, 0, 1)");
}

Test(pipeline, refuses_loops_that_are_not_serial_or_pipelines_already)
{
    refuses_inside("parallel(C.y)\ndouble_buffer(C.y)", "loop 'C.y' is parallel already");
    refuses_inside("double_buffer(C.y)\ndouble_buffer(C.y)", "'C.y' is a pipeline already");
    refuses_inside("y0, y1 = split(C.y, _, 4)\ndouble_buffer(y1)\ndouble_buffer(y0)", "'C.y.0' would be a pipeline together with 'C.y.1': one inside the other");
    refuses(schedule_of(rows), "double_buffer(C.y)", "nothing under 'C.y' just fills a buffer that lives in one of its iterations");
    refuses_inside("storage_align(P, 0, 8, 1)\ndouble_buffer(C.y)", "'P' has strides of its own, and would need versions");
}

Test(pipeline, is_kept_by_later_steps)
{
    refuses_inside("double_buffer(C.y)\nparallel(C.y)", "'C.y' is a pipeline and stays serial");
    refuses_inside("double_buffer(C.y)\nsplit(C.y, _, 2)", "the pipeline in which 'P' has a stage would be gone");
    refuses_inside("double_buffer(C.y)\ncompute_root(P)", "the pipeline in which 'P' has a stage would be gone");
    refuses_inside("double_buffer(C.y)\ncache_write(C, local, C.y)", "'C.cache.local' would stand in the pipeline of 'C.y' without a stage");
    refuses_inside("pragma(C.y, pipeline, 1)",
                   "'pipeline' is no pragma: pipeline and double_buffer are steps of their own, which are checked");
}
