/* tests/error/api.c -- what is refused and no trace can say: steps made by calls of functions. The files
 * beside are for the rest. */
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(api, .init = open_context, .fini = close_context);

/* The step before was refused with this message, and the tree is as it was. */
static void was_refused(sched *s, const ir_program *before, const char *message)
{
    cr_assert(sched_error(s), "it is accepted");
    cr_assert_str_eq(sched_error(s), message);
    cr_assert(sched_tree(s) == before);
    sched_clear(s);
}

Test(api, a_step_on_the_result_of_a_refused_step)
{
    sched *s = schedule_of("def f(A: f32[8]) { C[i] = A[i] * 2 return C }");
    const char *i[2];

    cr_assert_not(sched_split(s, "C.i", TEC_GUARD, i, (int64_t[]){2, 2}, 2));
    sched_clear(s);
    cr_assert_not(sched_annotate(s, i[0], IR_UNROLLED));
    was_refused(s, sched_tree(s),
                "unroll((none)): the step names a loop or block that does not exist, because an earlier step "
                "was refused");
    cr_assert_not(sched_reorder(s, (const char *[]){"C.i", i[1]}, 2));
    cr_assert(sched_failed(s));
}

Test(api, a_pragma_without_a_value)
{
    sched *s = schedule_of("def f(A: f32[8]) { C[i] = A[i] * 2 return C }");
    const ir_program *before = sched_tree(s);

    cr_assert_not(sched_pragma(s, "C.i", "key", NULL));
    was_refused(s, before, "pragma(C.i, key, NULL): expected a value of the pragma, found none");
}

/* Schedules keep loops that start at 0; a tree from elsewhere may have others. */
Test(api, a_loop_that_does_not_start_at_0)
{
    sched *s = schedule_of_tree("program f(A: f32[8], out C: f32[8]) {\n"
                                "  for C.i in 1..+7 {\n"
                                "    block C(i = C.i in 0..8) {\n"
                                "      reads A[i]\n"
                                "      writes C[i]\n"
                                "      C[i] = A[i]\n"
                                "    }\n"
                                "  }\n"
                                "}\n");
    const ir_program *before = sched_tree(s);

    cr_assert_not(sched_annotate(s, "C.i", IR_UNROLLED));
    was_refused(s, before, "unroll(C.i): loop 'C.i' does not start at 0");
}
