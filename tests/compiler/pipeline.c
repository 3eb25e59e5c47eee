/* tests/compiler/pipeline.c -- pipelines from the schedule to the lowered program, which means what the tree
 * means. */
#include "lower/pass.h"
#include "tests/schedule/run.h"

TestSuite(pipeline, .init = open_context, .fini = close_context);

/* Two stages of work for each row: P is private to an iteration of C.y, Q to one of its own. */
static const char rows[] = "def f(n, A: f32[n, 12]) { P[y, x] = A[y, x] * 2.0 Q[y, x: 12] = P[y, x] + P[y, "
                           "11 - x] C[y, x: 12] = Q[y, 11 - x] return C }";

#define INSIDE "compute_at(Q, C.y)\ncompute_at(P, C.y)\n"

static void lowers(sched *s)
{
    static const char *const targets[] = {"llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v4"};

    for (int i = 0; i < 2; i++) {
        const ir_program *p =
            lower_run(&(lower_options){.cx = cx, .target = target_parse(cx, targets[i])}, sched_tree(s));

        cr_assert(p, "%s", tec_context_error(cx));
        means_the_same(sched_tree(s), p);
    }
}

Test(pipeline, overlaps_in_every_legal_way)
{
    static const char *const ways[] = {
        "double_buffer(C.y)",
        "pipeline(C.y, P, Q, C, 0, 1, 2)",
        "pipeline(C.y, C, Q, P, 2, 1, 0)",
        "pipeline(C.y, C, P, Q, 3, 0, 1)",
        "pipeline(C.y, P, Q, C, 0, 0, 1)",
        "pipeline(C.y, C, P, Q, 15, 0, 0)",
        "double_buffer(C.y)\nvectorize(C.x)\nunroll(P.x)",
        "y0, y1 = split(C.y, _, 4)\ndouble_buffer(y1)\nparallel(y0)",
    };

    for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++) {
        sched *s = schedule_of(rows);

        does(s, base_format(cx, INSIDE "%s", ways[i]));
        lowers(s);
    }
}

Test(pipeline, of_a_reduction_keeps_its_sum_in_one_stage)
{
    sched *s = schedule_of(
        "def f(n, m, A: f32[n, m], B: f32[m]) { P[k] = B[k] * 2.0 C[y] = sum[k](A[y, k] * P[k]) return C }");

    does(s, "k0, k1 = split(C.k, _, 4)\nreorder(k0, C.y, k1)\ncompute_at(P, k0)\ndouble_buffer(k0)");
    lowers(s);
}
