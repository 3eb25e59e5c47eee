/* tests/schedule/threads.c -- which memory threads of a GPU may hand to each other. */
#include "tests/schedule/run.h"

TestSuite(schedule_threads, .init = open_context, .fini = close_context);

static const char chain[] =
    "def f(A: f32[8, 6]) { P[y, x] = A[y, x] + 1.0 C[y, x] = P[y, x] * 2.0 return C }";

/* P inside the blocks of rows, its columns on threads. */
static sched *inside_blocks(const char *scope)
{
    sched *s = schedule_of(chain);

    does(s, base_format(cx, "bind(C.y, blockIdx.x)\ncompute_at(P, C.y)\nset_scope(P, %s)", scope));
    return s;
}

Test(schedule_threads, share_what_other_threads_read)
{
    does(inside_blocks("shared"), "bind(P.x, threadIdx.x)\nbind(C.x, threadIdx.x)");
}

Test(schedule_threads, keep_local_memory_to_themselves)
{
    sched *s = inside_blocks("local");

    refuses(s, "bind(P.x, threadIdx.x)",
            "'C' uses 'P', which 'P' writes in other loops of threads: it would have to be shared memory");
    does(s, "bind(C.x, threadIdx.x)");
}

Test(schedule_threads, hand_nothing_over_in_global_memory)
{
    refuses(inside_blocks("global"), "bind(C.x, threadIdx.x)",
            "'C' uses 'P', which 'P' writes in other loops of threads: it would have to be shared memory");
}

static const char window[] =
    "def f(A: f32[8, 7]) { P[y, x] = A[y, x] + 1.0 C[y: 8, x: 6] = P[y, x] + P[y, x + 1] return C }";

Test(schedule_threads, need_what_overlaps_as_their_own)
{
    sched *s = schedule_of(window);

    does(s, "bind(C.y, blockIdx.x)\nbind(C.x, threadIdx.x)");
    refuses(s, "compute_at(P, C.x)", "each thread of 'C.x' needs its own 'P', which is not local memory");
    does(s, "set_scope(P, local)\ncompute_at(P, C.x)");
}

Test(schedule_threads, all_write_what_each_reads)
{
    sched *s = schedule_of(chain);

    does(s, "bind(C.y, threadIdx.x)\ncompute_at(P, C.y)");
    refuses(s, "bind(C.x, threadIdx.y)",
            "'C' uses 'P', which 'P' writes in other loops of threads: it would have to be shared memory");
}

/* No loop over blocks stands around: lowering makes a launch of the whole statement, in which every thread
 * would write S1a for itself, and all of them S1q. */
Test(schedule_threads, write_one_kind_of_memory_in_a_launch_that_lowering_makes)
{
    sched *s = schedule_of(
        "def f(A: f32[8]) {\n"
        "combiner two(a: f32, b: f32; s: f32, q: f32) = (a + s, b + q) identity (0.0, 0.0) reorders\n"
        "S1(S1a, S1q)[y: 8] = two[k: 2](A[y], A[y]) C[y] = S1a[y] * 2.0 return C }");

    does(s, "split(C.y, _, 4)\nbind(C.y.1, threadIdx.y)\ncompute_at(S1, C.y.0)");
    refuses(
        s, "set_scope(S1a, local)",
        "every thread runs 'S1', which writes 'S1a' in local memory, and one thread of threadIdx.y alone may "
        "write 'S1q'");
}
