/* tests/schedule/layout.c -- storage_align, buffer_bind. */
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(layout, .init = open_context, .fini = close_context);

static const char twice[] =
    "def f(n, A: f32[n, 30]) { P[y, x] = A[y, x] * 2 C[y, x: 30] = P[y, 29 - x] return C }";

Test(layout, storage_align_spreads_the_rows)
{
    sched *s = schedule_of(twice);

    does(s, "storage_align(P, 0, 16, 4)");
    cr_assert(strstr(ir_program_text(cx, sched_tree(s)), "buffer P: f32[n, 30] strides(36, 1)\n"), "%s",
              ir_program_text(cx, sched_tree(s)));
    does(s, "compute_at(P, C.y)\nparallel(C.y)");
}

Test(layout, storage_align_moves_the_dimensions_outside)
{
    sched *s = schedule_of(
        "def f(A: f32[4, 5, 6]) { P[z, y, x] = A[z, y, x] * 2 C[z, y, x] = P[z, y, x] return C }");

    does(s, "storage_align(P, 1, 8, 1)");
    cr_assert(strstr(ir_program_text(cx, sched_tree(s)), "buffer P: f32[4, 5, 6] strides(45, 9, 1)\n"), "%s",
              ir_program_text(cx, sched_tree(s)));
}

Test(layout, storage_align_takes_a_row_of_unknown_length)
{
    does(schedule_of("def f(n, A: f32[4, n]) { P[y, x] = A[y, x] * 2 C[y: 4, x] = P[3 - y, x] return C }"),
         "storage_align(P, 0, 8, 0)");
}

Test(layout, storage_align_is_a_function_of_the_library)
{
    sched *s = schedule_of(twice);

    cr_assert(tec_storage_align(s, "P", 0, 32, 0));
    cr_assert_str_eq(sched_trace_text(cx, s), "storage_align(P, 0, 32, 0)\n");
}

Test(layout, storage_align_refuses_what_does_not_fit)
{
    sched *s = schedule_of(twice);

    refuses(s, "storage_align(Q, 0, 16, 4)", "there is no buffer 'Q'");
    refuses(s, "storage_align(A, 0, 16, 4)",
            "'A' is an argument of the program, and the caller determines its layout");
    refuses(s, "storage_align(P, 2, 16, 4)", "expected a dimension of 'P' from 0 to 1, found 2");
    refuses(s, "storage_align(P, 0, 0, 0)",
            "expected a positive factor and an offset below it, found 0 and 0");
    refuses(s, "storage_align(P, 0, 4, 4)",
            "expected a positive factor and an offset below it, found 4 and 4");
    does(s, "storage_align(P, 0, 16, 4)");
    refuses(s, "storage_align(P, 0, 16, 4)", "'P' has strides already");
}

Test(layout, buffer_bind_places_a_buffer)
{
    sched *s = schedule_of(twice);

    does(s, "buffer_bind(P, (40, 1), 8, 64)");
    cr_assert(strstr(ir_program_text(cx, sched_tree(s)),
                     "buffer P: f32[n, 30] align(64) strides(40, 1) offset(8)\n"),
              "%s", ir_program_text(cx, sched_tree(s)));
    cr_assert_str_eq(sched_trace_text(cx, s), "buffer_bind(P, (40, 1), 8, 64)\n");
    does(s, "compute_at(P, C.y)\nparallel(C.y)");
}

Test(layout, buffer_bind_takes_any_order_of_the_dimensions)
{
    does(schedule_of(twice), "buffer_bind(P, (1, n + 3), 0, 0)");
    does(schedule_of(twice), "buffer_bind(P, (2, n * 2), n, 4)");
    does(schedule_of(
             "def f(A: f32[4, 1, 6]) { P[z, y, x] = A[z, y, x] * 2 C[z, y, x] = P[z, y, x] return C }"),
         "buffer_bind(P, (1, 0, 5), 0, 0)");
}

Test(layout, buffer_bind_refuses_elements_that_may_meet)
{
    sched *s = schedule_of(twice);

    refuses(s, "buffer_bind(P, (29, 1), 0, 0)",
            "cannot prove that the strides give each element of 'P' an address of its own");
    refuses(s, "buffer_bind(P, (1, n - 1), 0, 0)", "cannot prove that stride 'n - 1' is at least 0");
    refuses(s, "buffer_bind(P, (n, 1), 0, 0)",
            "cannot prove that the strides give each element of 'P' an address of its own");
    refuses(s, "buffer_bind(P, (30, 0), 0, 0)",
            "cannot prove that the strides give each element of 'P' an address of its own");
}

Test(layout, buffer_bind_is_a_function_of_the_library)
{
    sched *s = schedule_of(twice);

    cr_assert(tec_buffer_bind(s, "P", "(1, n)", 4, 16));
    cr_assert_str_eq(sched_trace_text(cx, s), "buffer_bind(P, (1, n), 4, 16)\n");
}
