/* tests/schedule/prefetch.c -- prefetch. */
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(prefetch, .init = open_context, .fini = close_context);

static const char product[] =
    "def f(n, A: f32[n, 20], B: f32[20, 7]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";

Test(prefetch, notes_the_distance)
{
    sched *s = schedule_of(product);

    does(s, "prefetch(A, C.y, 2)\nprefetch(B, C.k, 1)");
    cr_assert(strstr(tree_text(s), "for C.y in 0..n @prefetch.A(2) {"), "%s", tree_text(s));
    cr_assert_str_eq(sched_trace_text(cx, s), "prefetch(A, C.y, 2)\nprefetch(B, C.k, 1)\n");
}

Test(prefetch, is_a_function_of_the_library)
{
    sched *s = schedule_of(product);

    cr_assert(tec_prefetch(s, "A", "C.y", 1));
    cr_assert_not(tec_prefetch(s, "B", "C.y", 1));
}
