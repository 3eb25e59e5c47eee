/* tests/schedule/rfactor.c -- reductions in two steps. */
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(rfactor, .init = open_context, .fini = close_context);

static const char sums[] = "def f(n, A: f32[n, 37]) { S[y] = sum[k](A[y, k]) return S }";

Test(rfactor, makes_partial_results_that_a_second_block_reduces)
{
    sched *s = schedule_of(sums);

    does(s, "ko, ki = split(S.k, _, 8)\nrf = rfactor(ki, 1)");
    looks(s, "for S.y in 0..n {\n"
             "  for S.k.0 in 0..5 {\n"
             "    for S.k.1 in 0..8 {\n"
             "      block S.rf(y = S.y in 0..n, k.0 reduce = S.k.0 in 0..5, k.1 = S.k.1 in 0..8) {\n"
             "        reads A[y, k.0 * 8 + k.1]\n"
             "        writes S.rf[y, k.1]\n"
             "        init {\n"
             "          S.rf[y, k.1] = 0.0\n"
             "        }\n"
             "        if k.0 * 8 + k.1 < 37 {\n"
             "          S.rf[y, k.1] sum= A[y, k.0 * 8 + k.1]\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "  for S.k.1'2 in 0..8 {\n"
             "    block S(y = S.y in 0..n, k.1 reduce = S.k.1'2 in 0..8) {\n"
             "      reads S.rf[y, k.1]\n"
             "      writes S[y]\n"
             "      init {\n"
             "        S[y] = 0.0\n"
             "      }\n"
             "      S[y] sum= S.rf[y, k.1]\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(rfactor, starts_partial_results_that_have_no_point)
{
    does(schedule_of("def f(A: f32[3, 2]) { S[y] = sum[k](A[y, k]) return S }"),
         "ko, ki = split(S.k, _, 4)\nrfactor(ki, 0)");
    does(schedule_of("def f(A: f32[3, 2]) { S[y] = prod[k](A[y, k]) return S }"),
         "ko, ki = split(S.k, _, 4)\nrfactor(ki, 0)");
    does(schedule_of("def f(A: f32[3, 0]) { S[y] = max[k](A[y, k]) return S }"), "rfactor(S.k, 1)");
}

Test(rfactor, keeps_the_components_of_a_tuple_together)
{
    const char *text = "def f(A: f32[3, 20]) { S(V, I)[y] = argmax[k](A[y, k], k) return V, I }";

    does(schedule_of(text), "ko, ki = split(S.k, _, 8)\nrfactor(ki, 0)");
    does(schedule_of(text), "ko, ki = split(S.k, 4, _)\nrfactor(ko, 1)");
}

Test(rfactor, gives_lanes_and_threads_a_result_each)
{
    does(schedule_of(sums), "ko, ki = split(S.k, _, 8)\nrfactor(ki, 1)\nvectorize(ki)\nparallel(S.y)");
    does(schedule_of("def f(A: f32[370]) { S[] = sum[k](A[k]) return S }"),
         "ko, ki = split(S.k, 4, _)\nrfactor(ko, 0)\nparallel(ko)\nvectorize(S.k.0'2)");
}

Test(rfactor, copies_spatial_loops_inside_the_reduction)
{
    sched *s = schedule_of(
        "def mm(n, A: f32[n, 12], B: f32[12, 16]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }");

    does(s, "xo, xi = split(C.x, _, 5)\nko, ki = split(C.k, _, 4)\nreorder(ko, ki, xi)\nvectorize(xi)\n"
            "rfactor(ko, 2)\ndecompose_reduction(C, C.k.0'2)");
}

Test(rfactor, makes_partial_results_of_a_part_as_large_as_the_part)
{
    sched *s = schedule_of("def f(n, A: f32[n, 12]) where 4 <= n { S[y] = sum[k](A[y, k]) return S }");

    does(s, "cut(S.y, 3)\nreorder(S.k, S.y.0)\nreorder(S.k'2, S.y.1)\nrfactor(S.k'2, 0)\nrfactor(S.k, 1)");
    cr_assert(strstr(ir_program_text(cx, sched_tree(s)), "buffer S.rf: f32[12, n - 3]"));
    cr_assert(strstr(ir_program_text(cx, sched_tree(s)), "buffer S.rf'2: f32[3, 12]"));
    does(s, "cache_write(S'2.rf, local)\ncache_read(S.rf'2, local)\ncompute_at(S'2.rf.cache.local, S.k'2'2)");
}

Test(rfactor, leaves_the_init_of_the_user_to_the_result)
{
    sched *s = schedule_of(sums);

    does(s, "init = decompose_reduction(S, S.k)\nrf = rfactor(S.k, 0)\nrfactor(S.k'2, 0)");
}

Test(rfactor, is_a_function_of_the_library)
{
    sched *s = schedule_of(sums);

    cr_assert_str_eq(tec_rfactor(s, "S.k", 0), "S.rf");
    cr_assert_str_eq(sched_trace_text(cx, s), "S.rf = rfactor(S.k, 0)\n");
}

Test(rfactor, refuses_a_spatial_loop)
{
    refuses(schedule_of(sums), "rfactor(S.y, 0)", "'S.y' is not a reduction loop of 'S'");
}

Test(rfactor, refuses_a_dimension_that_there_is_not)
{
    refuses(schedule_of(sums), "rfactor(S.k, 2)",
            "expected a dimension of the partial results from 0 to 1, found 2");
    refuses(schedule_of(sums), "rfactor(S.k, -1)",
            "expected a dimension of the partial results from 0 to 1, found -1");
}

Test(rfactor, refuses_a_combiner_that_keeps_its_order)
{
    sched *s = schedule_of_tree("program f(A: f32[3], out C: f32[5]) {\n"
                                "  combiner horner(x: f32; y: f32) = (x * 2.0 + y) identity (0.0)\n"
                                "  for C.i in 0..5 {\n"
                                "    for C.k in 0..3 {\n"
                                "      block C(i = C.i in 0..5, k reduce = C.k in 0..3) {\n"
                                "        reads A[k]\n"
                                "        writes C[i]\n"
                                "        init { C[i] = 0.0 }\n"
                                "        C[i] horner= A[k]\n"
                                "      }\n"
                                "    }\n"
                                "  }\n"
                                "}\n");

    refuses(s, "rfactor(C.k, 0)", "the combiner of 'C' is not declared associative and commutative");
}

Test(rfactor, refuses_a_loop_of_both_kinds)
{
    sched *s = schedule_of("def f(A: f32[4, 12]) { C[y] = sum[k](A[y, k]) return C }");

    does(s, "fuse(C.y, C.k)");
    refuses(s, "rfactor(C.y~C.k, 0)", "loop 'C.y~C.k' runs over a spatial and a reduction axis of 'C'");
}

Test(rfactor, refuses_other_statements_inside_the_reduction)
{
    sched *s = schedule_of("def f(A: f32[4, 12]) { P[y, k] = A[y, k] * 2 C[y] = sum[k](P[y, k]) return C }");

    does(s, "compute_at(P, C.k)");
    refuses(s, "rfactor(C.k, 0)", "other statements stand between 'C.k' and 'C'");
}
