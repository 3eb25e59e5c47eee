/* tests/schedule/bind.c -- loops over thread axes. */
#include "tests/schedule/run.h"

TestSuite(bind, .init = open_context, .fini = close_context);

static const char matmul[] =
    "def mm(n, A: f32[n, 24], B: f32[24, 40]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";
static const char sums[] = "def f(n, A: f32[n, 37]) { S[y] = sum[k](A[y, k]) return S }";

Test(bind, takes_blocks_and_threads)
{
    does(schedule_of(matmul), "split(C.y, _, 4)\nbind(C.y.0, blockIdx.x)\nbind(C.y.1, threadIdx.x)");
}

Test(bind, refuses_an_unknown_axis)
{
    refuses(schedule_of(matmul), "bind(C.y, lane)",
            "'lane' is not a thread axis: expected blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
            "threadIdx.y, threadIdx.z or vthread");
}

Test(bind, refuses_a_block_inside_threads)
{
    sched *s = schedule_of(matmul);

    does(s, "bind(C.x, threadIdx.x)\nsplit(C.k, _, 4)");
    refuses(s, "bind(C.k.0, blockIdx.x)",
            "'C.k.0' would run as blockIdx.x inside 'C.x', which is threadIdx.x");
}

Test(bind, refuses_two_extents_of_one_axis)
{
    sched *s = schedule_of("def f(A: f32[8], B: f32[4]) { C[i] = A[i] D[i] = B[i] return C, D }");

    does(s, "bind(C.i, threadIdx.x)");
    refuses(s, "bind(D.i, threadIdx.x)", "threadIdx.x has 4 iterations at 'D.i', but 8 at 'C.i'");
}

Test(bind, gives_each_launch_its_own_number_of_blocks)
{
    sched *s = schedule_of("def f(A: f32[8], B: f32[4, 2]) { C[i] = A[i] D[i, j] = B[i, j] return C, D }");

    does(s, "bind(C.i, blockIdx.x)\nbind(D.i, blockIdx.x)");
    refuses(s, "bind(D.j, blockIdx.x)", "'D.j' lies inside 'D.i', which is blockIdx.x already");
}

/* The copy of a block has 34 columns, 32 apart from those of the next: where blocks stand still, a thread's
 * number tells its elements. */
Test(bind, deals_out_copies_of_windows_that_overlap_between_blocks)
{
    does(schedule_of("def f(X: f32[8, 66]) { C[x: 64] = sum[k: 8, j: 3](X[k, x + j]) return C }"),
         "x0, x1 = split(C.x, _, 32)\nbind(x0, blockIdx.x)\ncache_read(X, shared)\n"
         "compute_at(X.cache.shared, x0)\nfa = fuse(X.cache.shared.ax0, X.cache.shared.ax1)\n"
         "a0, a1 = split(fa, _, 32)\nbind(a1, threadIdx.x)\nbind(x1, threadIdx.x)");
}

/* ---- reductions over threads ---- */

Test(bind, lets_threads_reduce_together)
{
    does(schedule_of(sums), "ko, ki = split(S.k, _, 8)\nbind(S.y, blockIdx.x)\nbind(ki, threadIdx.x)");
    does(
        schedule_of(sums),
        "ko, ki = split(S.k, 8, _)\nbind(ko, threadIdx.y)\nyo, yi = split(S.y, _, 4)\nbind(yi, threadIdx.x)");
    does(schedule_of(sums), "k0, k1, k2 = split(S.k, _, 4, 8)\nbind(S.y, blockIdx.x)\nbind(k1, "
                            "threadIdx.y)\nbind(k2, threadIdx.x)");
    does(schedule_of("def f(A: f32[3, 20]) { S(V, I)[y] = argmax[k](A[y, k], k) return V, I }"),
         "ko, ki = split(S.k, _, 8)\nbind(S.y, blockIdx.x)\nbind(ki, threadIdx.x)");
}

Test(bind, hands_the_result_of_threads_to_others_through_shared_memory)
{
    sched *s =
        schedule_of("def f(n, A: f32[n, 32]) { S[y] = sum[k](A[y, k]) D[y, x] = A[y, x] / S[y] return D }");

    does(s, "bind(D.y, blockIdx.x)\ncompute_at(S, D.y)\nset_scope(S, shared)\nbind(S.k, "
            "threadIdx.x)\nbind(D.x, threadIdx.x)");
    refuses(
        s, "set_scope(S, local)",
        "'S' is a reduction over the threads of 'S.k', and its result 'S' is not where all of them see it");
}

Test(bind, refuses_a_reduction_whose_result_its_threads_do_not_see)
{
    sched *s = schedule_of("def f(n, A: f32[n, 32]) { S[y] = sum[k](A[y, k]) D[y] = S[y] + 1.0 return D }");

    does(s, "compute_at(S, D.y)\nyo, yi = split(D.y, _, 4)\nbind(yo, blockIdx.x)\nbind(yi, threadIdx.y)");
    refuses(
        s, "bind(S.k, threadIdx.x)",
        "'S' is a reduction over the threads of 'S.k', and its result 'S' is not where all of them see it");
}

Test(bind, refuses_threads_that_share_an_ordered_reduction)
{
    refuses(schedule_of_tree("program f(A: f32[8], out S: f32[1]) {\n"
                             "  combiner horner(x: f32; y: f32) = (x * 2.0 + y) identity (0.0)\n"
                             "  for S.k in 0..8 { block S(y = 0 in 0..1, k reduce = S.k in 0..8) {\n"
                             "    reads A[k] writes S[y] init { S[y] = 0.0 } S[y] horner= A[k] } }\n"
                             "}\n"),
            "bind(S.k, threadIdx.x)",
            "'S.k' is a reduction loop of 'S', whose combiner is not declared associative and commutative");
    refuses(schedule_of("def f(A: f32[4, 6]) { S[y] = sum[k](A[y, k]) return S }"),
            "y = fuse(S.y, S.k)\nbind(y, threadIdx.x)",
            "loop 'S.y~S.k' runs over a spatial and a reduction axis of 'S'");
    refuses(schedule_of("def f(n, m, A: f32[n, m]) { S[y] = sum[k](A[y, k]) return S }"),
            "bind(S.k, threadIdx.x)", "the extent 'm' of 'S.k' is not a constant");
    refuses(schedule_of(sums), "bind(S.k, blockIdx.x)", "'S.k' is a reduction loop of 'S'");
}

Test(bind, refuses_a_result_that_others_use_before_it_is_complete)
{
    sched *s = schedule_of(sums);

    does(s, "ko, ki = split(S.k, _, 8)\ncache_write(S, shared, ko)");
    refuses(s, "bind(S.k.1, threadIdx.x)",
            "'S.k.1' is a reduction loop of 'S', and 'S.cache.shared.load' uses 'S.cache.shared' before the "
            "reduction is complete");
}

Test(bind, keeps_the_reading_of_one_thread_apart_from_what_others_fill)
{
    sched *s = schedule_of(matmul);

    does(s, "cache_read(A, warp)\nbind(C.y, blockIdx.x)\nbind(C.x, threadIdx.x)");
    refuses(
        s, "compute_at(A.cache.warp, C.x)",
        "'A.cache.warp' is in warp memory, which 32 threads along threadIdx.x share, or fewer if there are "
        "no others; the launch of 'C.y' has 40 * 1 * 1");
}

/* Each row of y is a warp, which fetches what its 32 threads need, and no more. */
Test(bind, shares_a_row_of_a_warp_along_x_alone)
{
    sched *s = schedule_of("def mm(n, A: f32[n, 64], B: f32[64, 64]) {\n"
                           "  C[y, x] = sum[k](A[y, k] * B[k, x]) return C }");

    does(s, "y0, y1 = split(C.y, _, 4)\nx0, x1 = split(C.x, _, 32)\nreorder(y0, x0, y1, x1)\n"
            "bind(y0, blockIdx.y)\nbind(x0, blockIdx.x)\nbind(x1, threadIdx.x)\nbind(y1, threadIdx.y)\n"
            "k0, k1 = split(C.k, _, 32)\ncache_read(A, warp)\ncompute_at(A.cache.warp, k0)\n"
            "bind(A.cache.warp.ax1, threadIdx.x)");
    cr_assert(strstr(ir_program_text(cx, sched_tree(s)), "for A.cache.warp.ax1 in 0..32 threadIdx.x {"), "%s",
              ir_program_text(cx, sched_tree(s)));
}

/* Sums in registers over all of k, tiles of both operands fetched by all threads at each block of k: whether
 * the threads are bound before the tiles get their place or after it, the tree is the same. */
Test(bind, shares_tiles_of_a_product_among_threads_in_either_order)
{
    static const char tiles[] = "cache_write(C, local)\n"
                                "y0, yt, yi = split(C.cache.local.y, _, 4, 2)\n"
                                "x0, xt, xi = split(C.cache.local.x, _, 4, 2)\n"
                                "reorder(y0, x0, yt, xt, yi, xi)\n"
                                "compute_at(C, xt)\n"
                                "k0, k1 = split(C.k, _, 8)\n"
                                "reorder(k0, k1, C.y, C.x)\n";
    static const char threads[] =
        "bind(y0, blockIdx.y)\nbind(x0, blockIdx.x)\nbind(yt, threadIdx.y)\nbind(xt, threadIdx.x)\n";
    static const char shared[] = "cache_read(A, shared)\ncache_read(B, shared)\n"
                                 "compute_at(A.cache.shared, k0)\ncompute_at(B.cache.shared, k0)\n";
    static const char fetch[] =
        "fa = fuse(A.cache.shared.ax0, A.cache.shared.ax1)\na0, a1, a2 = split(fa, _, 4, 4)\n"
        "bind(a1, threadIdx.y)\nbind(a2, threadIdx.x)\n"
        "fb = fuse(B.cache.shared.ax0, B.cache.shared.ax1)\nb0, b1, b2 = split(fb, _, 4, 4)\n"
        "bind(b1, threadIdx.y)\nbind(b2, threadIdx.x)\n";
    const char *tree[2];

    for (int late = 0; late < 2; late++) {
        sched *s = schedule_of(matmul);

        does(s, base_format(cx, "%s%s%s%s", tiles, late ? shared : threads, late ? threads : shared, fetch));
        tree[late] = ir_program_text(cx, sched_tree(s));
    }
    cr_assert_str_eq(tree[0], tree[1]);
    cr_assert(strstr(tree[0], "for A.cache.shared.ax0~A.cache.shared.ax1.2 in 0..4 threadIdx.x {"), "%s",
              tree[0]);
}
