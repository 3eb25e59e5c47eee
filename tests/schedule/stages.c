/* tests/schedule/stages.c -- compute_inline, reverse_inline, cache_read, cache_write, set_scope,
 * decompose_reduction. */
#include "tests/schedule/run.h"

TestSuite(stages, .init = open_context, .fini = close_context);

static const char matmul[] =
    "def mm(n, A: f32[n, 12], B: f32[12, 16]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";
static const char relu[] = "def f(n, A: f32[n, 12], B: f32[12, 16]) { C[y, x] = sum[k](A[y, k] * B[k, x]) "
                           "R[y, x] = max(C[y, x], 0) return R }";

/* ---- compute_inline ---- */

Test(stages, compute_inline_substitutes_the_stage)
{
    sched *s = schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 C[i: 7] = P[i] + P[i + 1] return C }");

    does(s, "compute_inline(P)");
    looks(s, "for C.i in 0..7 {\n"
             "  block C(i = C.i in 0..7) {\n"
             "    reads A[i:+2]\n"
             "    writes C[i]\n"
             "    C[i] = A[i] * 2.0 + A[i + 1] * 2.0\n"
             "  }\n"
             "}\n");
}

Test(stages, a_value_that_is_used_twice_becomes_a_let)
{
    sched *s = schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 C[i] = P[i] * P[i] return C }");

    does(s, "compute_inline(P)");
    looks(s, "for C.i in 0..8 {\n"
             "  block C(i = C.i in 0..8) {\n"
             "    reads A[i]\n"
             "    writes C[i]\n"
             "    C[i] = (let P = A[i] * 2.0 in P * P)\n"
             "  }\n"
             "}\n");
}

Test(stages, chains_of_squares_stay_small)
{
    base_text t = {0};

    base_add(cx, &t, "def f(A: i32[4]) { S0[i] = A[i] + 1 ");
    for (int k = 1; k <= 40; k++)
        base_addf(cx, &t, "S%d[i] = S%d[i] * S%d[i] ", k, k - 1, k - 1);
    base_add(cx, &t, "return S40 }");
    sched *s = schedule_of(t.data);
    for (int k = 0; k < 40; k++)
        cr_assert(sched_compute_inline(s, base_format(cx, "S%d", k)), "%s", sched_error(s));
    cr_assert(strlen(tree_text(s)) < 4000);
}

Test(stages, a_value_under_a_condition_stays_there)
{
    sched *s = schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 C[i: 10] = select(i >= 1 && i < 9, P[i - 1] * "
                           "P[i - 1], 0) return C }");

    does(s, "compute_inline(P)");
    looks(s, "for C.i in 0..10 {\n"
             "  block C(i = C.i in 0..10) {\n"
             "    reads A[i - 1]\n"
             "    writes C[i]\n"
             "    C[i] = select(i >= 1 && i < 9, (let P = A[i - 1] * 2.0 in P * P), 0.0)\n"
             "  }\n"
             "}\n");
}

Test(stages, inlined_values_keep_the_dtype_of_their_buffer)
{
    does(schedule_of("def f(A: i32[8]) { P[i] = i8(A[i] * 100) C[i] = i32(P[i]) + 1 return C }"),
         "compute_inline(P)");
}

Test(stages, a_padding_stage_goes_into_a_reduction)
{
    does(schedule_of("def f(A: f32[8]) { P[i: 10] = select(i >= 1 && i < 9, A[i - 1], 0) C[i: 8] = sum[k: "
                     "3](P[i + k]) return C }"),
         "compute_inline(P)");
}

Test(stages, chains_go_away_from_either_end)
{
    const char *chain =
        "def f(A: f32[8]) { P[i] = A[i] + 1 Q[i] = P[i] * P[i] R[i] = Q[i] + P[i] + Q[i] return R }";

    does(schedule_of(chain), "compute_inline(P)\ncompute_inline(Q)");
    does(schedule_of(chain), "compute_inline(Q)\ncompute_inline(P)");
}

Test(stages, compute_inline_refuses_a_reduction)
{
    refuses(schedule_of(relu), "compute_inline(C)",
            "'k' is not a spatial axis of 'C'; only spatial stages can be inlined");
}

Test(stages, compute_inline_refuses_an_output)
{
    refuses(schedule_of(relu), "compute_inline(R)", "'R' is an argument of the program; it must be written");
}

Test(stages, compute_inline_refuses_a_cut_stage)
{
    sched *s = schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 C[i] = P[i] return C }");

    does(s, "cut(P.i, 4)");
    refuses(s, "compute_inline(P)", "'P' is not the only writer of 'P': 'P'2' writes it too");
}

/* ---- reverse_inline ---- */

Test(stages, reverse_inline_moves_the_epilogue_into_the_store)
{
    sched *s = schedule_of(
        "def f(A: f32[8, 4]) { P[i, j] = A[i, j] * 2 Q[j: 4, i: 8] = P[i, j] + P[i, j] * P[i, j] return Q }");

    does(s, "reverse_inline(Q)");
    looks(s, "for P.i in 0..8 {\n"
             "  for P.j in 0..4 {\n"
             "    block P(i = P.i in 0..8, j = P.j in 0..4) {\n"
             "      reads A[i, j]\n"
             "      writes Q[j, i]\n"
             "      Q[j, i] = (let P = A[i, j] * 2.0 in P + P * P)\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(stages, reverse_inline_takes_the_copy_of_a_cached_reduction)
{
    does(schedule_of(relu), "cache_write(C, local)\nreverse_inline(R)");
}

Test(stages, reverse_inline_refuses_a_reduction)
{
    refuses(schedule_of(relu), "reverse_inline(R)",
            "'k' is not a spatial axis of 'C'; only spatial stages can be inlined");
}

Test(stages, reverse_inline_refuses_another_reader)
{
    refuses(schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 Q[i] = P[i] S[i] = P[i] return Q, S }"),
            "reverse_inline(Q)", "'S' reads 'P' too");
}

Test(stages, reverse_inline_refuses_a_part)
{
    refuses(schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 Q[i: 7] = P[i] return Q }"), "reverse_inline(Q)",
            "it is not proven that 'Q' reads all of 'P', each element once");
}

Test(stages, reverse_inline_refuses_two_indices)
{
    refuses(schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 Q[i: 8] = P[i] + P[7 - i] return Q }"),
            "reverse_inline(Q)", "'Q' does not read 'P' at exactly one index, in any case");
}

/* ---- caches ---- */

Test(stages, cache_read_copies_the_buffer_before_its_readers)
{
    sched *s = schedule_of("def f(A: f32[8]) { C[i] = A[i] * 2 D[i] = A[i] + 1 return C, D }");

    does(s, "cache_read(A, local, D)");
    looks(s, "for C.i in 0..8 {\n"
             "  block C(i = C.i in 0..8) {\n"
             "    reads A[i]\n"
             "    writes C[i]\n"
             "    C[i] = A[i] * 2.0\n"
             "  }\n"
             "}\n"
             "for A.cache.local.ax0 in 0..8 {\n"
             "  block A.cache.local(ax0 = A.cache.local.ax0 in 0..8) role cache {\n"
             "    reads A[ax0]\n"
             "    writes A.cache.local[ax0]\n"
             "    A.cache.local[ax0] = A[ax0]\n"
             "  }\n"
             "}\n"
             "for D.i in 0..8 {\n"
             "  block D(i = D.i in 0..8) {\n"
             "    reads A.cache.local[i]\n"
             "    writes D[i]\n"
             "    D[i] = A.cache.local[i] + 1.0\n"
             "  }\n"
             "}\n");
}

Test(stages, a_read_cache_moves_into_a_tile)
{
    does(schedule_of(matmul),
         "tile(C.y, C.x, 4, 8)\nsplit(C.k, _, 5)\nreorder(C.y.0, C.x.0, C.k.0, C.y.1, C.k.1, "
         "C.x.1)\ncache_read(B, local)\n"
         "compute_at(B.cache.local, C.k.0)\nvectorize(B.cache.local.ax1)\nparallel(C.y.0)");
}

Test(stages, cache_read_of_a_stage_that_lies_in_a_tile_copies_a_part)
{
    sched *s = schedule_of("def f(A: f32[34]) { P[i] = A[i] * 2 C[i: 32] = P[i] + P[i + 2] return C }");

    does(s, "split(C.i, _, 8)\ncompute_at(P, C.i.0)\ncache_read(P, local)");
    looks(s, "for C.i.0 in 0..4 {\n"
             "  for P.i in 0..10 {\n"
             "    block P(i = C.i.0 * 8 + P.i in 0..34) {\n"
             "      reads A[i]\n"
             "      writes P[i]\n"
             "      P[i] = A[i] * 2.0\n"
             "    }\n"
             "  }\n"
             "  for P.cache.local.ax0 in 0..10 {\n"
             "    block P.cache.local(ax0 = C.i.0 * 8 + P.cache.local.ax0 in 0..34) role cache {\n"
             "      reads P[ax0]\n"
             "      writes P.cache.local[ax0]\n"
             "      P.cache.local[ax0] = P[ax0]\n"
             "    }\n"
             "  }\n"
             "  for C.i.1 in 0..8 {\n"
             "    block C(i = C.i.0 * 8 + C.i.1 in 0..32) {\n"
             "      reads P.cache.local[i:+3]\n"
             "      writes C[i]\n"
             "      C[i] = P.cache.local[i] + P.cache.local[i + 2]\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(stages, cache_read_refuses_a_block_that_does_not_read)
{
    refuses(schedule_of(relu), "cache_read(A, local, R)", "'R' does not read 'A'");
}

Test(stages, cache_read_refuses_an_unknown_buffer)
{
    refuses(schedule_of(matmul), "cache_read(D, local)", "there is no buffer 'D'");
}

Test(stages, cache_read_refuses_an_unknown_scope)
{
    refuses(schedule_of(matmul), "cache_read(A, nowhere)", "'nowhere' is not a storage scope");
}

Test(stages, cache_write_writes_through_a_copy)
{
    sched *s = schedule_of(matmul);

    does(s, "cache_write(C, local)");
    looks(s,
          "for C.y in 0..n {\n"
          "  for C.x in 0..16 {\n"
          "    for C.k in 0..12 {\n"
          "      block C(y = C.y in 0..n, x = C.x in 0..16, k reduce = C.k in 0..12) {\n"
          "        reads A[y, k], B[k, x]\n"
          "        writes C.cache.local[y, x]\n"
          "        init {\n"
          "          C.cache.local[y, x] = 0.0\n"
          "        }\n"
          "        C.cache.local[y, x] sum= A[y, k] * B[k, x]\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n"
          "for C.cache.local.y in 0..n {\n"
          "  for C.cache.local.x in 0..16 {\n"
          "    block C.cache.local(y = C.cache.local.y in 0..n, x = C.cache.local.x in 0..16) role copy {\n"
          "      reads C.cache.local[y, x]\n"
          "      writes C[y, x]\n"
          "      C[y, x] = C.cache.local[y, x]\n"
          "    }\n"
          "  }\n"
          "}\n");
}

Test(stages, cache_write_takes_an_init_of_its_own_along)
{
    does(schedule_of(matmul), "decompose_reduction(C, C.k)\ncache_write(C, local)");
}

Test(stages, a_written_cache_follows_the_tiles)
{
    does(schedule_of(matmul),
         "cache_write(C, local)\ntile(C.y, C.x, 4, 8)\nreorder(C.y.0, C.x.0, C.k, C.y.1, C.x.1)\n"
         "reverse_compute_at(C.cache.local, "
         "C.x.0)\nvectorize(C.cache.local.x)\nvectorize(C.x.1)\nunroll(C.y.1)\nparallel(C.y.0)");
}

Test(stages, cache_write_keeps_the_outputs_of_a_tuple_together)
{
    does(schedule_of("def f(A: f32[6, 9]) { S(V, I)[y] = argmax[k](A[y, k], k) return V, I }"),
         "cache_write(S, local)\nreverse_compute_at(S.cache.local, S.y)");
}

/* Behind the end of a row of A, its layout has the elements of the next row: a tile of 16 writes only 4. */
Test(stages, cache_write_of_rows_that_end_in_the_next_is_refused)
{
    sched *s = schedule_of(
        "def f(C: f32[5]) { A[y: 5, x: 4] = C[y] * 2 B[y: 20] = A[floordiv(y, 4), y % 4] return B }");

    does(s, "split(A.x, _, 4)\nsplit(A.x.0, _, 4)\nreverse_inline(B)");
    refuses(s, "cache_write(A, global, A.x.0.0)",
            "cannot prove that the elements that 'A' writes in one iteration of 'A.x.0.0' form a box");
}

Test(stages, a_cache_under_a_reduction_loop_is_refused)
{
    sched *s = schedule_of(matmul);

    does(s, "cache_write(C, local)\nreorder(C.k, C.y, C.x)");
    refuses(s, "reverse_compute_at(C.cache.local, C.y)",
            "'C' is not complete in an iteration of 'C.y': 'C.k' is its reduction loop");
}

Test(stages, an_accumulating_cache_takes_up_what_is_there)
{
    sched *s = schedule_of(matmul);

    does(s, "split(C.k, _, 5)\nreorder(C.k.0, C.y, C.x, C.k.1)\nC.cache.local = cache_write(C, local, C.y)");
    looks(s, "for C.k.0 in 0..3 {\n"
             "  for C.y in 0..n {\n"
             "    for C.cache.local.load.y in 0..1 {\n"
             "      for C.cache.local.load.x in 0..16 {\n"
             "        block C.cache.local.load(y = C.y + C.cache.local.load.y in 0..n, x = "
             "C.cache.local.load.x in 0..16, step0 "
             "scan = C.k.0 in 0..3) role cache {\n"
             "          reads C[y, x]\n"
             "          writes C.cache.local[y, x]\n"
             "          C.cache.local[y, x] = select(step0 == 0, 0.0, C[y, x])\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "    for C.x in 0..16 {\n"
             "      for C.k.1 in 0..5 {\n"
             "        block C(y = C.y in 0..n, x = C.x in 0..16, k reduce = C.k.0 * 5 + C.k.1 in 0..12) "
             "where C.k.0 * 5 + C.k.1 "
             "< 12 {\n"
             "          reads A[y, k], B[k, x]\n"
             "          writes C.cache.local[y, x]\n"
             "          C.cache.local[y, x] sum= A[y, k] * B[k, x]\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "    for C.cache.local.y in 0..1 {\n"
             "      for C.cache.local.x in 0..16 {\n"
             "        block C.cache.local(y = C.y + C.cache.local.y in 0..n, x = C.cache.local.x in 0..16, "
             "step0 scan = C.k.0 in "
             "0..3) role copy {\n"
             "          reads C.cache.local[y, x]\n"
             "          writes C[y, x]\n"
             "          C[y, x] = C.cache.local[y, x]\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(stages, the_epilogue_of_an_accumulating_cache_runs_last)
{
    sched *s = schedule_of(relu);

    does(s, "tile(C.y, C.x, 4, 8)\nsplit(C.k, _, 5)\nreorder(C.y.0, C.k.0, C.x.0, C.k.1, C.y.1, "
            "C.x.1)\ncache_write(C, local, "
            "C.x.0)\n"
            "reverse_compute_at(R, "
            "C.x.0)\nparallel(C.y.0)\nvectorize(C.x.1)\nunroll(C.y.1)\nvectorize(C.cache.local.x)");
    refuses(s, "parallel(C.k.0)", "'C.k.0' lies inside 'C.y.0', which is parallel already");
}

Test(stages, an_accumulating_cache_keeps_tuples_together)
{
    does(schedule_of("def f(A: f32[6, 9]) { S(V, I)[y] = argmax[k](A[y, k], k) return V, I }"),
         "split(S.k, _, 4)\nreorder(S.k.0, S.y, S.k.1)\ncache_write(S, local, S.y)");
}

Test(stages, a_cache_inside_a_reduction_free_loop_needs_no_load)
{
    const char **names;
    sched *s = schedule_of(matmul);

    does(s, "cache_write(C, local, C.y)");
    cr_assert(sched_blocks(s, &names) == 2);
}

Test(stages, an_accumulating_cache_refuses_a_reduction_that_may_be_empty)
{
    sched *s = schedule_of("def f(n, A: f32[4, n]) { C[y] = sum[k](A[y, k]) return C }");

    does(s, "reorder(C.k, C.y)");
    refuses(s, "cache_write(C, local, C.y)",
            "cannot prove that reduction loop 'C.k' runs at least once, so 'C' might not be initialised");
}

Test(stages, a_cache_refuses_tiles_of_which_some_lie_outside_of_a_domain_of_one)
{
    sched *s =
        schedule_of("def mm(A: f32[3, 8], B: f32[8, 1]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }");

    does(s, "split(C.x, _, 5, 4)\nreorder(C.x.0, C.k, C.y, C.x.2, C.x.1)");
    refuses(s, "cache_write(C, local, C.x.2)",
            "cannot prove that the elements that 'C' writes in one iteration of 'C.x.2' form a box");
}

Test(stages, an_accumulating_cache_refuses_an_init_elsewhere)
{
    sched *s = schedule_of(matmul);

    does(s, "decompose_reduction(C, C.k)");
    refuses(s, "cache_write(C, local, C.k)",
            "'C' cannot be cached: it does not initialise its reduction itself");
}

Test(stages, set_scope_moves_a_buffer)
{
    sched *s = schedule_of(relu);

    does(s, "set_scope(C, local)");
    cr_assert(sched_tree(s)->buffers[0]->scope == IR_LOCAL);
}

Test(stages, set_scope_refuses_an_argument)
{
    refuses(schedule_of(relu), "set_scope(A, local)",
            "'A' is an argument of the program, which lives in global memory");
}

/* ---- decompose_reduction ---- */

Test(stages, decompose_reduction_puts_the_init_before_the_loop)
{
    sched *s = schedule_of(matmul);

    does(s, "reorder(C.y, C.k, C.x)\nC.init = decompose_reduction(C, C.k)");
    looks(s, "for C.y in 0..n {\n"
             "  for C.init.x in 0..16 {\n"
             "    block C.init(y = C.y in 0..n, x = C.init.x in 0..16) {\n"
             "      writes C[y, x]\n"
             "      C[y, x] = 0.0\n"
             "    }\n"
             "  }\n"
             "  for C.k in 0..12 {\n"
             "    for C.x in 0..16 {\n"
             "      block C(y = C.y in 0..n, x = C.x in 0..16, k reduce = C.k in 0..12) {\n"
             "        reads A[y, k], B[k, x]\n"
             "        writes C[y, x]\n"
             "        C[y, x] sum= A[y, k] * B[k, x]\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(stages, the_init_of_tiles_keeps_their_predicates)
{
    does(schedule_of(matmul),
         "tile(C.y, C.x, 4, 5)\nsplit(C.k, _, 5)\nreorder(C.y.0, C.x.0, C.k.0, C.k.1, C.y.1, "
         "C.x.1)\ndecompose_reduction(C, C.k.0)");
}

Test(stages, decompose_at_an_outer_spatial_loop)
{
    does(schedule_of(matmul), "decompose_reduction(C, C.y)");
}

Test(stages, decompose_refuses_a_loop_inside_a_reduction_loop)
{
    sched *s = schedule_of(matmul);

    does(s, "reorder(C.k, C.y, C.x)");
    refuses(s, "decompose_reduction(C, C.y)", "'C.k', a reduction loop of 'C', lies outside 'C.y'");
}

Test(stages, decompose_refuses_a_loop_that_mixes_spatial_and_reduction)
{
    sched *s = schedule_of(matmul);

    does(s, "fuse(C.x, C.k)");
    refuses(s, "decompose_reduction(C, C.x~C.k)",
            "loop 'C.x~C.k' runs over a spatial and a reduction axis of 'C'");
}

Test(stages, decompose_refuses_a_second_time)
{
    sched *s = schedule_of(matmul);

    does(s, "decompose_reduction(C, C.k)");
    refuses(s, "decompose_reduction(C, C.k)", "'C' has no initialisation to take out");
}

Test(stages, decompose_refuses_a_stage_without_reduction)
{
    refuses(schedule_of(relu), "decompose_reduction(R, R.y)", "'R' has no initialisation to take out");
}

Test(stages, an_empty_reduction_still_initialises)
{
    does(schedule_of("def f(A: f32[4, 0]) { C[y] = sum[k](A[y, k]) return C }"),
         "decompose_reduction(C, C.k)\nsplit(C.k, _, 4)");
}

Test(stages, decompose_refuses_a_loop_of_another_nest)
{
    refuses(schedule_of(relu), "decompose_reduction(C, R.y)", "'C' does not lie under 'R.y'");
}

/* ---- conditions inside of reductions ---- */

/* The first tap of the first row is masked by the padding; the init runs all the same. */
static const char masked[] = "def f(A: f32[8]) { C[i: 8] = sum[k: 3](A[i + k - 1] * 2 where i + k >= 1 && i "
                             "+ k < 9) R[i] = max(C[i], 0) return R }";

Test(stages, a_masked_first_tap_does_not_keep_the_init_from_running)
{
    does(schedule_of(masked), "reorder(C.k, C.i)\nsplit(C.i, _, 3)\nvectorize(C.i.1)");
    does(schedule_of(masked), "split(C.k, _, 2)\nreorder(C.k.1, C.k.0)\ndecompose_reduction(C, C.k.1)");
    does(schedule_of(masked), "split(C.i, _, 3)\nreorder(C.k, C.i.0, C.i.1)\ncache_write(C, local, C.i.0)");
    does(schedule_of(masked), "split(R.i, _, 3)\ncompute_at(C, R.i.0)\nunroll(C.k)\nparallel(R.i.0)");
}

/* What the writer left out, the copy does too: there the buffer holds nothing. */
Test(stages, cache_read_copies_under_the_condition_of_its_readers)
{
    does(schedule_of_tree("program f(A: f32[8, 4], out C: f32[8, 4]) {\n"
                          "  buffer P: f32[8, 4]\n"
                          "  for y in 0..8 {\n"
                          "    for p in 0..4 { block P(y = y in 0..8, x = p in 0..4) where y >= 3 { reads "
                          "A[y, x] writes P[y, x] P[y, x] = A[y, x] } }\n"
                          "    for c in 0..4 { block C(y = y in 0..8, x = c in 0..4) where y >= 3 { reads "
                          "P[y, x] writes C[y, x] C[y, x] = P[y, x] } }\n"
                          "    for d in 0..4 { block D(y = y in 0..8, x = d in 0..4) where y < 3 { writes "
                          "C[y, x] C[y, x] = 0.0 } }\n"
                          "  }\n"
                          "}\n"),
         "cache_read(P, local, C)");
}
