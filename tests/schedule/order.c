/* tests/schedule/order.c -- reorder, and loops that run at the same time. */
#include "tests/schedule/run.h"

TestSuite(order, .init = open_context, .fini = close_context);

static const char matmul[] =
    "def mm(n, A: f32[n, 12], B: f32[12, 16]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";

/* ---- reorder ---- */

Test(order, parallel_refuses_a_reduction_that_nobody_reads)
{
    refuses(schedule_of("def f(A: f32[4]) { S[y: 1] = sum[k: 4](A[k]) T[x: 3] = A[x] return T }"),
            "parallel(S.k)", "'S.k' is a reduction loop of 'S'");
}

Test(order, reorder_permutes_a_nest)
{
    sched *s = schedule_of(matmul);

    does(s, "reorder(C.k, C.x, C.y)");
    looks(s, "for C.k in 0..12 {\n"
             "  for C.x in 0..16 {\n"
             "    for C.y in 0..n {\n"
             "      block C(y = C.y in 0..n, x = C.x in 0..16, k reduce = C.k in 0..12) {\n"
             "        reads A[y, k], B[k, x]\n"
             "        writes C[y, x]\n"
             "        init {\n"
             "          C[y, x] = 0.0\n"
             "        }\n"
             "        C[y, x] sum= A[y, k] * B[k, x]\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(order, loops_that_are_not_named_keep_their_places)
{
    sched *s = schedule_of(matmul);
    const char **names;

    does(s, "reorder(C.k, C.y)");
    sched_loops_of(s, "C", &names);
    cr_assert(strcmp(names[0], "C.k") == 0 && strcmp(names[1], "C.x") == 0 && strcmp(names[2], "C.y") == 0);
}

Test(order, the_order_of_the_milestone_keeps_its_meaning)
{
    sched *s = schedule_of(matmul);

    does(s, "split(C.y, _, 4)\nsplit(C.x, _, 8)\nreorder(C.y.0, C.x.0, C.k, C.y.1, "
            "C.x.1)\nparallel(C.y.0)\nunroll(C.y.1)\nvectorize(C.x.1)");
    looks(s, "for C.y.0 in 0..floordiv(n + 3, 4) parallel {\n"
             "  for C.x.0 in 0..2 {\n"
             "    for C.k in 0..12 {\n"
             "      for C.y.1 in 0..4 unrolled {\n"
             "        for C.x.1 in 0..8 vectorised {\n"
             "          block C(y = C.y.0 * 4 + C.y.1 in 0..n, x = C.x.0 * 8 + C.x.1 in 0..16, k reduce = "
             "C.k in 0..12) where "
             "C.y.0 * 4 + C.y.1 < n {\n"
             "            reads A[y, k], B[k, x]\n"
             "            writes C[y, x]\n"
             "            init {\n"
             "              C[y, x] = 0.0\n"
             "            }\n"
             "            C[y, x] sum= A[y, k] * B[k, x]\n"
             "          }\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(order, reorder_refuses_one_loop)
{
    refuses(schedule_of(matmul), "reorder(C.y)", "expected at least two loops to reorder, found 1");
}

Test(order, reorder_refuses_a_loop_named_twice)
{
    refuses(schedule_of(matmul), "reorder(C.y, C.y)", "loop 'C.y' is named twice");
}

Test(order, reorder_refuses_loops_of_different_nests)
{
    refuses(schedule_of("def f(A: f32[4]) { B[i] = A[i] + 1 C[i] = B[i] return C }"), "reorder(B.i, C.i)",
            "loops 'C.i' and 'B.i' are not nested");
}

Test(order, reorder_refuses_to_pass_other_statements)
{
    sched *s = schedule_of("def f(A: f32[4, 4]) { B[i, j] = A[i, j] + 1 C[i, j] = B[i, j] * 2 return C }");

    does(s, "compute_at(B, C.i)");
    refuses(s, "reorder(C.j, C.i)", "other statements stand between loops 'C.i' and 'C.j'");
}

Test(order, reorder_refuses_to_leave_a_loop_that_the_bounds_use)
{
    sched *s = schedule_of_tree("program f(A: f32[4, 4], out C: f32[4, 4]) {\n"
                                "  for i in 0..4 {\n"
                                "    for j in 0..i + 1 {\n"
                                "      block C(y = i in 0..4, x = j in 0..4) {\n"
                                "        reads A[y, x]\n"
                                "        writes C[y, x]\n"
                                "        C[y, x] = A[y, x]\n"
                                "      }\n"
                                "    }\n"
                                "  }\n"
                                "}\n");

    refuses(s, "reorder(j, i)", "the bounds of 'j' depend on 'i'");
}

/* C[0] = sum over k of A[k] * x^k in Horner's way: the combiner is neither associative nor commutative. */
static const char horner[] =
    "program f(A: f32[3, 4], out C: f32[5]) {\n"
    "  combiner horner(x: f32; y: f32) = (x * 2.0 + y) identity (0.0)\n"
    "  for C.i in 0..5 {\n"
    "    for C.k in 0..3 {\n"
    "      for C.l in 0..4 {\n"
    "        block C(i = C.i in 0..5, k reduce = C.k in 0..3, l reduce = C.l in 0..4) {\n"
    "          reads A[k, l]\n"
    "          writes C[i]\n"
    "          init { C[i] = 0.0 }\n"
    "          C[i] horner= A[k, l]\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

Test(order, reorder_refuses_to_change_the_order_of_horners_terms)
{
    refuses(schedule_of_tree(horner), "reorder(C.l, C.k)",
            "it would exchange the reduction loops 'C.k' and 'C.l' of 'C', whose combiner is not declared "
            "associative and "
            "commutative");
}

Test(order, reorder_moves_spatial_loops_of_horners_sum)
{
    does(schedule_of_tree(horner), "reorder(C.k, C.l, C.i)");
}

/* ---- parallel ---- */

Test(order, parallel_refuses_a_reduction_loop)
{
    refuses(schedule_of(matmul), "parallel(C.k)", "'C.k' is a reduction loop of 'C'");
}

Test(order, parallel_refuses_a_spatial_loop_fused_with_a_reduction)
{
    sched *s = schedule_of(matmul);

    does(s, "fuse(C.x, C.k)");
    refuses(s, "parallel(C.x~C.k)", "'C.x~C.k' is a reduction loop of 'C'");
}

Test(order, parallel_takes_a_fused_loop)
{
    does(schedule_of(matmul), "fuse(C.y, C.x)\nparallel(C.y~C.x)");
}

Test(order, parallel_takes_a_fused_loop_of_tiles_with_its_init_apart)
{
    does(schedule_of(matmul), "tile(C.y, C.x, 4, 8)\nf = fuse(C.y.0, C.x.0)\nreorder(C.k, C.y.1, "
                              "C.x.1)\ndecompose_reduction(C, C.k)\nparallel(f)");
}

Test(order, parallel_refuses_a_parallel_loop_inside)
{
    sched *s = schedule_of(matmul);

    does(s, "parallel(C.y)");
    refuses(s, "parallel(C.x)", "'C.x' lies inside 'C.y', which is parallel already");
}

Test(order, parallel_refuses_a_parallel_loop_around)
{
    sched *s = schedule_of(matmul);

    does(s, "parallel(C.x)");
    refuses(s, "parallel(C.y)", "'C.x' lies inside 'C.y' and is parallel already");
}

Test(order, an_annotated_loop_is_not_annotated_again)
{
    sched *s = schedule_of(matmul);

    does(s, "parallel(C.y)");
    refuses(s, "unroll(C.y)", "loop 'C.y' is parallel already");
}

/* Q[i] = P[i] + P[i - 1] with both in one loop: what an iteration reads, the one before wrote. */
static const char neighbours[] = "program f(A: f32[8], out Q: f32[8]) {\n"
                                 "  buffer P: f32[8]\n"
                                 "  for i in 0..8 {\n"
                                 "    block P(v = i in 0..8) {\n"
                                 "      reads A[v]\n"
                                 "      writes P[v]\n"
                                 "      P[v] = A[v] * 2.0\n"
                                 "    }\n"
                                 "    block Q(v = i in 0..8) {\n"
                                 "      reads P[v - 1:+2]\n"
                                 "      writes Q[v]\n"
                                 "      Q[v] = P[v] + select(v >= 1, P[v - 1], 0.0)\n"
                                 "    }\n"
                                 "  }\n"
                                 "}\n";

Test(order, parallel_refuses_iterations_that_read_what_others_write)
{
    refuses(
        schedule_of_tree(neighbours), "parallel(i)",
        "it is not proven that each iteration of 'i' uses only its own elements of 'P', which 'P' writes");
}

Test(order, vectorize_refuses_iterations_that_read_what_others_write)
{
    refuses(
        schedule_of_tree(neighbours), "vectorize(i)",
        "it is not proven that each iteration of 'i' uses only its own elements of 'P', which 'P' writes");
}

Test(order, parallel_takes_recomputed_halos)
{
    sched *s =
        schedule_of("def f(A: f32[34]) { P[i] = A[i] * 2 C[i: 32] = P[i] + P[i + 1] + P[i + 2] return C }");

    does(s, "split(C.i, _, 8)\ncompute_at(P, C.i.0)\nparallel(C.i.0)");
}

/* The parallel loop fuses tiles of both axes, so what it owns is no box of its own; but each inner tile makes
 * its halo anew. */
Test(order, parallel_takes_halos_of_an_inner_loop)
{
    sched *s = schedule_of(
        "def f(A: f32[10, 10]) { P[y, x] = A[y, x] * 2 C[y: 8, x: 8] = P[y, x] + P[y + 2, x + 2] return C }");

    does(s, "split(C.y, _, 2, 2)\nsplit(C.x, _, 2)\nreorder(C.y.0, C.x.0, C.y.1, C.y.2, C.x.1)\nfuse(C.y.0, "
            "C.x.0)\n"
            "compute_at(P, C.y.1)\nparallel(C.y.0~C.x.0)");
}

/* The two parts of P, 2 and 2 wide, are together what C reads in the iteration. */
Test(order, parallel_takes_halos_that_parts_of_an_iteration_made)
{
    sched *s = schedule_of("def f(A: f32[10]) { P[x] = A[x] * 2 C[x: 8] = P[x] + P[x + 2] return C }");

    does(s, "split(C.x, _, 2)\ncompute_at(P, C.x.0)\ncut(P.x, 2)\nparallel(C.x.0)");
}

/* Whatever its iterations would do to each other, a loop that runs once has no others. */
Test(order, a_loop_of_one_iteration_runs_at_the_same_time_as_itself)
{
    static const char vector[] = "def f(A: f32[8]) { C[i: 8] = A[i] + 1.0 return C }";

    does(schedule_of(vector), "split(C.i, _, 8)\nparallel(C.i.0)\nvectorize(C.i.1)");
    does(schedule_of("def f(A: f32[1, 8]) { S[k: 1] = sum[j: 8](A[k, j]) return S }"), "parallel(S.k)");
    does(schedule_of("def f(A: f32[1]) { S[i: 2] = sum[k: 1](A[k]) return S }"),
         "reorder(S.k, S.i)\nparallel(S.k)");
}

Test(order, a_guarded_split_of_a_loop_that_runs_once_runs_once)
{
    sched *s = schedule_of("def f(A: f32[1, 34]) { P[b: 1, i: 34] = A[b, i] * 2.0 C[b: 1, i: 32] = P[b, i] + "
                           "P[b, i + 2] return C }");

    does(s, "split(C.i, _, 8)\ncompute_at(P, C.i.0)\nsplit(P.b, _, 4)\nparallel(C.i.0)\nsplit(C.b, _, 4)\n");
    s = schedule_of("def f(A: f32[1, 8]) { C[b: 1, i: 8] = A[b, i] + 1.0 return C }");
    does(s, "split(C.b, _, 4)\nparallel(C.b.1)");
}

Test(order, a_loop_that_a_predicate_lets_run_twice_is_no_single_one)
{
    sched *s = schedule_of("def f(A: f32[4]) { S[i: 1] = sum[k: 2](A[k]) return S }");

    does(s, "split(S.k, _, 4)");
    refuses(s, "parallel(S.k.1)", "'S.k.1' is a reduction loop of 'S'");
}

/* Every second element is written, by the instances whose b is 0: the loop of b is that of v, too. */
Test(order, parallel_refuses_a_buffer_that_a_variable_of_one_value_leaves_gaps_in)
{
    sched *s = schedule_of_tree("program f(A: f32[8], out C: f32[8]) {\n"
                                "  buffer P: f32[4]\n"
                                "  for i in 0..2 {\n"
                                "    for j in 0..4 {\n"
                                "      block P(b = j % 2 in 0..1, v = j in 0..4) where j % 2 < 1 {\n"
                                "        reads A[v]\n"
                                "        writes P[v]\n"
                                "        P[v] = A[v]\n"
                                "      }\n"
                                "    }\n"
                                "    for k in 0..4 {\n"
                                "      block C(v = i * 4 + k in 0..8) {\n"
                                "        reads P[v % 4]\n"
                                "        writes C[v]\n"
                                "        C[v] = P[v % 4]\n"
                                "      }\n"
                                "    }\n"
                                "  }\n"
                                "}\n");

    refuses(s, "parallel(i)", "it is not proven that iterations of 'i' write distinct elements of 'P'");
}

Test(order, parallel_takes_tiles_of_a_fused_halo)
{
    sched *s = schedule_of("def f(A: f32[16, 16]) { P[y: 16, x: 16] = A[y, x] * 2.0 "
                           "C[y: 14, x: 14] = sum[i: 3, j: 3](P[y + i, x + j]) return C }");

    does(s, "split(C.y, _, 3)\nsplit(C.x, _, 8)\nreorder(C.y.0, C.x.0, C.y.1, C.x.1)\ncompute_at(P, C.x.0)\n"
            "all = fuse(P.y, P.x)\nsplit(all, _, 16)\nparallel(C.y.0)");
}

Test(order, parallel_takes_parts_of_a_fused_loop_of_unknown_size)
{
    static const char rows[] =
        "def f(n, m, A: f32[n, m]) where n >= 1 && m >= 1 { C[y, x] = A[y, x] + 1.0 return C }";

    does(schedule_of("def f(n, A: f32[n, 32]) where n >= 1 { C[y, x] = A[y, x] + 1.0 return C }"),
         "all = fuse(C.y, C.x)\na, b = split(all, 8, _)\nparallel(a)");
    does(schedule_of(rows), "all = fuse(C.y, C.x)\na, b = split(all, 8, _)\nparallel(a)");
    does(schedule_of(rows), "all = fuse(C.y, C.x)\na, b = split(all, _, 8)\nparallel(a)\nvectorize(b)");
}

/* ---- vectorize, unroll ---- */

Test(order, vectorize_takes_a_split_fused_loop_whose_lanes_cross_rows)
{
    sched *s = schedule_of("def f(A: f32[3, 4, 5]) {\n  C[i, j, k] = A[i, j, k] * 2.0\n  return C\n}\n");

    does(s, "all = fuse(C.i, C.j, C.k)\no, l = split(all, _, 16)\nvectorize(l)\nparallel(o)");
}

Test(order, vectorize_refuses_a_symbolic_extent)
{
    refuses(schedule_of(matmul), "vectorize(C.y)", "the extent 'n' of 'C.y' is not a constant");
}

Test(order, vectorize_gives_lanes_of_a_reduction_a_result_each)
{
    sched *s = schedule_of("def f(A: f32[3, 37]) { S[y] = sum[k](A[y, k]) return S }");

    does(s, "ko, ki = split(S.k, _, 8)\nvectorize(ki)");
    looks(s, "for S.y in 0..3 {\n"
             "  for S.k.0 in 0..5 {\n"
             "    for S.k.1 in 0..8 vectorised {\n"
             "      block S(y = S.y in 0..3, k reduce = S.k.0 * 8 + S.k.1 in 0..37) where S.k.0 * 8 + S.k.1 "
             "< 37 {\n"
             "        reads A[y, k]\n"
             "        writes S[y]\n"
             "        init {\n"
             "          S[y] = 0.0\n"
             "        }\n"
             "        S[y] sum= A[y, k]\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(order, vectorize_takes_the_lanes_of_a_tuple)
{
    does(schedule_of("def f(A: f32[3, 16]) { S(V, I)[y] = argmax[k](A[y, k], k) return V, I }"),
         "vectorize(S.k)");
}

Test(order, vectorize_refuses_the_lanes_of_a_combiner_that_keeps_its_order)
{
    refuses(schedule_of_tree(horner), "vectorize(C.l)",
            "'C.l' is a reduction loop of 'C', whose combiner is not declared associative and commutative");
}

Test(order, vectorize_refuses_a_loop_that_mixes_a_reduction_with_its_elements)
{
    sched *s = schedule_of("def f(A: f32[4, 12]) { C[y] = sum[k](A[y, k]) return C }");

    does(s, "fuse(C.y, C.k)");
    refuses(s, "vectorize(C.y~C.k)", "loop 'C.y~C.k' runs over a spatial and a reduction axis of 'C'");
}

Test(order, vectorize_refuses_lanes_of_a_reduction_among_other_statements)
{
    sched *s = schedule_of("def f(A: f32[4, 12]) { P[y, k] = A[y, k] * 2 C[y] = sum[k](P[y, k]) return C }");

    does(s, "compute_at(P, C.k)");
    refuses(s, "vectorize(C.k)", "'C.k' is a reduction loop of 'C', and other statements stand below it");
}

Test(order, unroll_refuses_a_symbolic_extent)
{
    refuses(schedule_of(matmul), "unroll(C.y)", "the extent 'n' of 'C.y' is not a constant");
}

Test(order, unroll_refuses_too_many_copies)
{
    refuses(schedule_of("def f(A: f32[5000]) { C[i] = A[i] return C }"), "unroll(C.i)",
            "'C.i' has 5000 iterations; the limit 'unrolled-copies' is 4096 (--limit unrolled-copies=N, "
            "tec_context_set_limit)");
}

Test(order, unroll_takes_a_reduction_loop)
{
    does(schedule_of(matmul), "unroll(C.k)");
}

Test(order, reorder_keeps_lanes_inside_of_threads)
{
    sched *s = schedule_of(matmul);

    does(s, "parallel(C.y)\nvectorize(C.x)");
    refuses(s, "reorder(C.x, C.y)", "'C.y' (parallel) would lie inside 'C.x' (vectorised)");
}

/* ---- pragma ---- */

Test(order, pragma_notes_loops_and_blocks)
{
    sched *s = schedule_of(matmul);

    does(s, "pragma(C.y, unroll_limit, 16)\npragma(C, hint, \"wide\")");
    cr_assert(ir_is_value(ir_note_get(sched_loop(s, "C.y")->loop.notes, "unroll_limit"), 16));
    cr_assert(ir_note_get(sched_block(s, "C")->block.block->notes, "hint"));
}

Test(order, pragma_refuses_what_does_not_exist)
{
    refuses(schedule_of(matmul), "pragma(D, key, 1)", "there is no loop or block 'D'");
}
