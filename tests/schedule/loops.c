/* tests/schedule/loops.c -- split, cut, fuse and tile. */
#include "tests/schedule/run.h"

TestSuite(loops, .init = open_context, .fini = close_context);

static const char copy10[] = "def f(A: f32[10]) { C[i] = A[i] * 2 return C }";
static const char copy24[] = "def f(A: f32[24]) { C[i] = A[i] * 2 return C }";
static const char matmul[] =
    "def mm(n, A: f32[n, 12], B: f32[12, 16]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";
static const char rows[] = "def f(A: f32[6, 10]) { C[y] = sum[k](A[y, k]) return C }";

/* ---- split ---- */

Test(loops, split_makes_nested_loops_and_no_guard_where_the_factors_divide)
{
    sched *s = schedule_of(copy24);

    does(s, "C.i.0, C.i.1 = split(C.i, _, 12)");
    looks(s, "for C.i.0 in 0..2 {\n"
             "  for C.i.1 in 0..12 {\n"
             "    block C(i = C.i.0 * 12 + C.i.1 in 0..24) {\n"
             "      reads A[i]\n"
             "      writes C[i]\n"
             "      C[i] = A[i] * 2.0\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(loops, split_guards_what_the_last_tile_overshoots)
{
    sched *s = schedule_of(copy10);

    does(s, "split(C.i, _, 4)");
    looks(s, "for C.i.0 in 0..3 {\n"
             "  for C.i.1 in 0..4 {\n"
             "    block C(i = C.i.0 * 4 + C.i.1 in 0..10) where C.i.0 * 4 + C.i.1 < 10 {\n"
             "      reads A[i]\n"
             "      writes C[i]\n"
             "      C[i] = A[i] * 2.0\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(loops, a_second_split_compares_with_the_loop_and_not_with_the_domain)
{
    sched *s = schedule_of(copy24);

    does(s, "a, b = split(C.i, _, 12)\nsplit(b, _, 5)");
    looks(
        s,
        "for C.i.0 in 0..2 {\n"
        "  for C.i.1.0 in 0..3 {\n"
        "    for C.i.1.1 in 0..5 {\n"
        "      block C(i = C.i.0 * 12 + C.i.1.0 * 5 + C.i.1.1 in 0..24) where C.i.1.0 * 5 + C.i.1.1 < 12 {\n"
        "        reads A[i]\n"
        "        writes C[i]\n"
        "        C[i] = A[i] * 2.0\n"
        "      }\n"
        "    }\n"
        "  }\n"
        "}\n");
}

Test(loops, split_into_three_guards_the_whole_sum)
{
    sched *s = schedule_of(copy10);

    does(s, "split(C.i, _, 2, 3)");
    looks(s, "for C.i.0 in 0..2 {\n"
             "  for C.i.1 in 0..2 {\n"
             "    for C.i.2 in 0..3 {\n"
             "      block C(i = (C.i.0 * 2 + C.i.1) * 3 + C.i.2 in 0..10) where C.i.0 * 6 + C.i.1 * 3 + "
             "C.i.2 < 10 {\n"
             "        reads A[i]\n"
             "        writes C[i]\n"
             "        C[i] = A[i] * 2.0\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(loops, a_factor_in_the_middle_can_be_inferred)
{
    sched *s = schedule_of(copy24);
    int64_t n;

    does(s, "split(C.i, 2, _, 3)");
    cr_assert(sched_extent(s, "C.i.1", &n) && n == 4);
}

Test(loops, split_of_a_symbolic_extent_rounds_up)
{
    sched *s = schedule_of(matmul);

    does(s, "split(C.y, _, 4)");
    looks(s, "for C.y.0 in 0..floordiv(n + 3, 4) {\n"
             "  for C.y.1 in 0..4 {\n"
             "    for C.x in 0..16 {\n"
             "      for C.k in 0..12 {\n"
             "        block C(y = C.y.0 * 4 + C.y.1 in 0..n, x = C.x in 0..16, k reduce = C.k in 0..12) "
             "where C.y.0 * 4 + C.y.1 "
             "< n {\n"
             "          reads A[y, k], B[k, x]\n"
             "          writes C[y, x]\n"
             "          init {\n"
             "            C[y, x] = 0.0\n"
             "          }\n"
             "          C[y, x] sum= A[y, k] * B[k, x]\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(loops, split_refuses_factors_that_do_not_reach_the_extent)
{
    refuses(schedule_of(copy10), "split(C.i, 2, 3)",
            "the factors make 6 iterations; it is not proven that they reach the extent 10 of 'C.i'");
}

Test(loops, split_refuses_factors_of_which_it_is_not_proven_that_they_reach_a_symbol)
{
    refuses(schedule_of(matmul), "split(C.y, 4, 4)",
            "the factors make 16 iterations; it is not proven that they reach the extent n of 'C.y'");
}

Test(loops, split_refuses_a_factor_of_zero)
{
    refuses(schedule_of(copy10), "split(C.i, _, 0)", "factor 0 is not positive");
}

Test(loops, split_refuses_to_infer_two_factors)
{
    refuses(schedule_of(copy10), "split(C.i, _, _)", "only one factor can be inferred");
}

Test(loops, split_refuses_a_single_factor)
{
    refuses(schedule_of(copy10), "split(C.i, 10)", "expected at least two factors, found 1");
}

Test(loops, split_refuses_products_that_overflow)
{
    refuses(schedule_of(copy10), "split(C.i, _, 4000000000, 4000000000)",
            "the product of the factors is too large");
}

Test(loops, split_refuses_a_loop_that_does_not_exist)
{
    refuses(schedule_of(copy10), "split(C.j, _, 2)", "there is no loop 'C.j'; did you mean 'C.i'?");
}

Test(loops, split_refuses_an_annotated_loop_and_later_steps_go_on)
{
    sched *s = schedule_of(copy24);

    does(s, "unroll(C.i)");
    refuses(s, "split(C.i, _, 2)", "loop 'C.i' is unrolled; only serial loops can be changed");
    does(s, "pragma(C.i, key, 4)");
}

Test(loops, split_refuses_a_tail_on_a_loop_that_mixes_spatial_and_reduction)
{
    sched *s = schedule_of(rows);

    does(s, "fuse(C.y, C.k)");
    refuses(s, "split(C.y~C.k, _, 7)",
            "loop 'C.y~C.k' runs over a spatial and a reduction axis of 'C'; its factors must divide it");
    does(s, "split(C.y~C.k, _, 4)");
}

Test(loops, split_refuses_an_unknown_tail)
{
    refuses(schedule_of(copy10), "split(C.i, _, 3, sideways)",
            "'sideways' is not a way to split: expected guard, round_up or shift_inwards");
}

/* ---- tails ---- */

static const char padded[] = "program f(A: f32[12], out C: f32[10]) {\n"
                             "  buffer P: f32[12]\n"
                             "  for P.i in 0..10 {\n"
                             "    block P(i = P.i in 0..10) {\n"
                             "      reads A[i]\n"
                             "      writes P[i]\n"
                             "      P[i] = A[i]\n"
                             "    }\n"
                             "  }\n"
                             "  for C.i in 0..10 {\n"
                             "    block C(i = C.i in 0..10) {\n"
                             "      reads P[i]\n"
                             "      writes C[i]\n"
                             "      C[i] = P[i]\n"
                             "    }\n"
                             "  }\n"
                             "}\n";

Test(loops, round_up_writes_into_the_padding)
{
    sched *s = schedule_of_tree(padded);

    does(s, "split(P.i, _, 4, round_up)");
    looks(s, "for P.i.0 in 0..3 {\n"
             "  for P.i.1 in 0..4 {\n"
             "    block P(i = P.i.0 * 4 + P.i.1 in 0..12) {\n"
             "      reads A[i]\n"
             "      writes P[i]\n"
             "      P[i] = A[i]\n"
             "    }\n"
             "  }\n"
             "}\n"
             "for C.i in 0..10 {\n"
             "  block C(i = C.i in 0..10) {\n"
             "    reads P[i]\n"
             "    writes C[i]\n"
             "    C[i] = P[i]\n"
             "  }\n"
             "}\n");
}

Test(loops, round_up_refuses_to_write_past_an_argument)
{
    refuses(schedule_of_tree(padded), "split(C.i, _, 4, round_up)",
            "rounded up, 'C' would write index i of 'C', which is not proven to lie within 0..10");
}

Test(loops, round_up_refuses_reduction_loops)
{
    refuses(schedule_of(rows), "split(C.k, _, 4, round_up)",
            "'k' is not a spatial axis of 'C'; only spatial axes can be rounded up");
}

Test(loops, round_up_refuses_loops_that_are_a_piece_of_an_axis)
{
    sched *s = schedule_of_tree(padded);

    does(s, "a, b = split(P.i, _, 5)");
    refuses(s, "split(P.i.1, _, 2, round_up)",
            "round_up needs a whole axis of 'P', but loop 'P.i.1' is only a part of one");
}

Test(loops, shift_inwards_repeats_points_of_the_last_tile)
{
    sched *s = schedule_of(copy10);

    does(s, "split(C.i, _, 4, shift_inwards)");
    looks(s, "for C.i.0 in 0..3 {\n"
             "  for C.i.1 in 0..4 {\n"
             "    block C(i = min(C.i.0 * 4, 6) + C.i.1 in 0..10) {\n"
             "      reads A[i]\n"
             "      writes C[i]\n"
             "      C[i] = A[i] * 2.0\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(loops, shift_inwards_refuses_loops_shorter_than_a_tile)
{
    refuses(schedule_of(matmul), "split(C.y, _, 4, shift_inwards)",
            "shift_inwards needs one full tile; it is not proven that 4 <= n");
}

Test(loops, shift_inwards_refuses_a_reduction_loop)
{
    refuses(
        schedule_of(rows), "split(C.k, _, 4, shift_inwards)",
        "shift_inwards repeats instances of 'C', but its reduction over 'C.k' is not completed inside 'C.k'");
}

Test(loops, shift_inwards_refuses_a_spatial_loop_inside_a_reduction)
{
    sched *s = schedule_of("def f(A: f32[6, 10]) { C[y] = sum[k](A[y, k]) return C }");

    does(s, "reorder(C.k, C.y)");
    refuses(
        s, "split(C.y, _, 4, shift_inwards)",
        "shift_inwards repeats instances of 'C', but its reduction over 'C.k' is not completed inside 'C.y'");
}

Test(loops, a_shifted_reduction_that_completes_inside_keeps_its_meaning)
{
    sched *s = schedule_of(rows);

    does(s, "split(C.y, _, 4, shift_inwards)");
    refuses(s, "parallel(C.y.0)",
            "it is not proven that iterations of 'C.y.0' write distinct elements of 'C'");
}

/* ---- cut ---- */

Test(loops, cut_makes_two_loops_one_after_the_other)
{
    sched *s = schedule_of(copy10);

    does(s, "a, b = cut(C.i, 8)\nvectorize(a)");
    looks(s, "for C.i.0 in 0..8 vectorised {\n"
             "  block C(i = C.i.0 in 0..10) {\n"
             "    reads A[i]\n"
             "    writes C[i]\n"
             "    C[i] = A[i] * 2.0\n"
             "  }\n"
             "}\n"
             "for C.i.1 in 0..2 {\n"
             "  block C'2(i = C.i.1 + 8 in 0..10) {\n"
             "    reads A[i]\n"
             "    writes C[i]\n"
             "    C[i] = A[i] * 2.0\n"
             "  }\n"
             "}\n");
}

Test(loops, cut_of_a_reduction_initialises_once)
{
    sched *s = schedule_of(rows);

    does(s, "cut(C.k, 4)");
    looks(s, "for C.y in 0..6 {\n"
             "  for C.k.0 in 0..4 {\n"
             "    block C(y = C.y in 0..6, k reduce = C.k.0 in 0..10) {\n"
             "      reads A[y, k]\n"
             "      writes C[y]\n"
             "      init {\n"
             "        C[y] = 0.0\n"
             "      }\n"
             "      C[y] sum= A[y, k]\n"
             "    }\n"
             "  }\n"
             "  for C.k.1 in 0..6 {\n"
             "    block C'2(y = C.y in 0..6, k reduce = C.k.1 + 4 in 0..10) {\n"
             "      reads A[y, k]\n"
             "      writes C[y]\n"
             "      C[y] sum= A[y, k]\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(loops, cut_refuses_a_point_outside)
{
    refuses(schedule_of(copy10), "cut(C.i, 11)",
            "it is not proven that 11 lies within 0..10, the range of 'C.i'");
}

Test(loops, cut_refuses_empty_parts)
{
    refuses(schedule_of(rows), "cut(C.k, 0)", "the first part of 'C.k' would be empty");
    refuses(schedule_of(rows), "cut(C.y, 6)", "the second part of 'C.y' would be empty");
}

/* The first part has no term; its init runs all the same. */
Test(loops, cut_keeps_the_init_of_a_part_without_terms)
{
    static const char *const axes[] = {"y = C.y in 0..4, k reduce = C.k in 0..8",
                                       "k reduce = C.k in 0..8, y = C.y in 0..4"};

    for (int i = 0; i < BASE_COUNT(axes); i++)
        does(schedule_of_tree(
                 base_format(cx,
                             "program f(A: f32[4, 8], out C: f32[4]) {\n"
                             "  for C.y in 0..4 { for C.k in 0..8 {\n"
                             "    block C(%s) where C.k >= 3 {\n"
                             "      reads A[y, k] writes C[y] init { C[y] = 0.0 } C[y] sum= A[y, k] } } }\n"
                             "}\n",
                             axes[i])),
             "cut(C.k, 3)");
}

Test(loops, cut_takes_a_symbolic_loop_that_is_long_enough)
{
    does(schedule_of("def f(n, A: f32[n]) where n >= 3 { C[i] = A[i] * 2 return C }"), "cut(C.i, 3)");
}

/* Both parts may be empty: `n` and `m` are extents, and nothing more is known of them. */
static const char joined[] = "def f(n, m, A: f32[n], B: f32[m]) {\n"
                             "  C[i: n + m] = select(i < n, A[i], B[i - n]) return C }";

Test(loops, cut_takes_a_symbolic_point)
{
    sched *s = schedule_of(joined);

    does(s, "cut(C.i, n)");
    looks(s, "for C.i.0 in 0..n {\n"
             "  block C(i = C.i.0 in 0..n + m) {\n"
             "    reads A[i], B[i - n]\n"
             "    writes C[i]\n"
             "    C[i] = select(i < n, A[i], B[i - n])\n"
             "  }\n"
             "}\n"
             "for C.i.1 in 0..m {\n"
             "  block C'2(i = C.i.1 + n in 0..n + m) {\n"
             "    reads A[i], B[i - n]\n"
             "    writes C[i]\n"
             "    C[i] = select(i < n, A[i], B[i - n])\n"
             "  }\n"
             "}\n");
    cr_assert_str_eq(sched_trace_text(cx, s), "C.i.0, C.i.1 = cut(C.i, n)\n");
}

Test(loops, cut_refuses_a_symbolic_point_that_is_not_proven_to_be_inside)
{
    refuses(schedule_of(joined), "cut(C.i, n + 1)",
            "it is not proven that n + 1 lies within 0..n + m, the range of 'C.i'");
    refuses(schedule_of(joined), "cut(C.i, n - m)",
            "it is not proven that n - m lies within 0..n + m, the range of 'C.i'");
    refuses(schedule_of(joined), "cut(C.i, n + m)", "the second part of 'C.i' would be empty");
    refuses(schedule_of(joined), "cut(C.i, 1.0)", "'1.0' is no integer expression over symbols");
    refuses(schedule_of(joined), "cut(C.i, n < m)", "'n < m' is no integer expression over symbols");
}

/* For n = 0, the sum would have no beginning. */
Test(loops, cut_of_a_reduction_needs_a_first_part)
{
    static const char text[] = "def f(n, m, A: f32[n + m]%s { C[] = sum[k](A[k]) return C }";

    refuses(
        schedule_of(base_format(cx, text, ", B: f32[n], D: f32[m])")), "cut(C.k, n)",
        "'C.k' belongs to a reduction, and it is not proven that n is at least 1: where the first part is "
        "empty, nothing would begin the reduction");
    does(schedule_of(base_format(cx, text, ", B: f32[n], D: f32[m]) where n >= 1")), "cut(C.k, n)");
}

Test(loops, the_pieces_of_a_cut_can_be_split_apart)
{
    sched *s = schedule_of("def f(A: f32[56]) { C[i] = A[i] * 2 return C }");

    does(s, "a, b = cut(C.i, 52)\nsplit(a, _, 13)\nunroll(b)");
}

/* ---- fuse ---- */

Test(loops, fuse_takes_the_variables_apart_again)
{
    sched *s = schedule_of(matmul);

    does(s, "C.y~C.x = fuse(C.y, C.x)");
    looks(s, "for C.y~C.x in 0..n * 16 {\n"
             "  for C.k in 0..12 {\n"
             "    block C(y = floordiv(C.y~C.x, 16) in 0..n, x = C.y~C.x % 16 in 0..16, k reduce = C.k in "
             "0..12) {\n"
             "      reads A[y, k], B[k, x]\n"
             "      writes C[y, x]\n"
             "      init {\n"
             "        C[y, x] = 0.0\n"
             "      }\n"
             "      C[y, x] sum= A[y, k] * B[k, x]\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(loops, fuse_of_a_split_gives_the_loop_back)
{
    sched *s = schedule_of(copy24);

    does(s, "a, b = split(C.i, _, 6)\nfuse(a, b)");
    looks(s, "for C.i.0~C.i.1 in 0..24 {\n"
             "  block C(i = C.i.0~C.i.1 in 0..24) {\n"
             "    reads A[i]\n"
             "    writes C[i]\n"
             "    C[i] = A[i] * 2.0\n"
             "  }\n"
             "}\n");
}

Test(loops, fuse_takes_three_loops)
{
    does(schedule_of(matmul), "fuse(C.y, C.x, C.k)");
}

/* Extents of a tree may be negative where nothing runs: -2 times -4 iterations are none. */
static const char maybe_negative[] =
    "program f(symbol n, symbol m, A: f32[n, m], out S: f32[1]) {\n"
    "  for S.init.x in 0..1 { block S.init(x = S.init.x in 0..1) { writes S[x] S[x] = 0.0 } }\n"
    "  for S.k in 0..n - 5 { for S.l in 0..m - 7 {\n"
    "    block S(x = 0 in 0..1, k reduce = S.k in 0..n - 5, l reduce = S.l in 0..m - 7) {\n"
    "      reads A[k, l] writes S[x] S[x] sum= A[k, l] } } }\n"
    "}\n";

Test(loops, fuse_of_two_extents_that_may_be_negative_runs_only_where_both_run)
{
    const char *const traces[] = {"fuse(S.k, S.l)", "split(S.l, _, 3)\nfuse(S.k, S.l.0, S.l.1)",
                                  "reorder(S.l, S.k)\nsplit(S.k, _, 2)\nfuse(S.l, S.k.0)",
                                  "tile(S.k, S.l, 2, 3)\nfuse(S.k.0, S.l.0)", "rfactor(S.l, 0)"};

    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        sched *s = schedule_of_tree(maybe_negative);
        const ir_program *before = sched_tree(s);

        does(s, traces[i]);
        for (uint64_t seed = 5; seed <= 24; seed++) {
            const char *d = difference(before, sched_tree(s), seed);

            cr_assert(!d, "seed %d: %s\n%s", (int)seed, d, ir_program_text(cx, sched_tree(s)));
        }
    }
}

Test(loops, fuse_cuts_an_extent_off_only_where_both_may_be_negative)
{
    sched *s = schedule_of_tree(maybe_negative), *t = schedule_of(matmul);

    does(s, "fuse(S.k, S.l)");
    cr_assert(strstr(tree_text(s), "for S.k~S.l in 0..max(0, n - 5) * m - max(0, n - 5) * 7 {"), "%s",
              tree_text(s));
    does(t, "fuse(C.y, C.x)");
    cr_assert(strstr(tree_text(t), "for C.y~C.x in 0..n * 16 {"), "%s", tree_text(t));
}

Test(loops, fuse_refuses_loops_that_are_not_nested_directly)
{
    refuses(schedule_of(matmul), "fuse(C.y, C.k)", "loop 'C.k' is not the only child of 'C.y'");
}

Test(loops, fuse_refuses_a_spatial_loop_with_a_reduction_that_may_be_empty)
{
    refuses(schedule_of("def f(n, A: f32[6, n]) { C[y] = sum[k](A[y, k]) return C }"), "fuse(C.y, C.k)",
            "cannot prove that reduction loop 'C.k' runs at least once; after the fusion 'C' might not be "
            "initialised");
}

Test(loops, cut_gives_each_part_its_own_halo_of_a_parallel_loop)
{
    sched *s = schedule_of(
        "def f(A: f32[7, 8]) { P[y, x] = A[y, x] * 2 Q[y, x: 7] = P[y, x] + P[y, x + 1] return Q }");

    does(s, "compute_at(P, Q.x)\nparallel(Q.x)\ncut(Q.y, 3)");
    cr_assert(sched_tree(s)->n_buffers == 2, "%s", tree_text(s));
}

Test(loops, fuse_refuses_a_part_of_a_reduction_that_may_be_empty_behind_one_that_runs)
{
    sched *s = schedule_of("def f(n, A: f32[n, 2]) { C[y] = sum[k: n](A[k, y]) return C }");

    does(s, "C.k.0, C.k.1 = split(C.k, 3, _)\nfuse(C.y, C.k.0)");
    refuses(s, "fuse(C.y~C.k.0, C.k.1)",
            "cannot prove that reduction loop 'C.k.1' runs at least once; after the fusion 'C' might not be "
            "initialised");
}

Test(loops, fuse_refuses_a_reduction_with_a_loop_that_repeats_points)
{
    sched *s = schedule_of(rows);
    const ir_program *before;

    does(s, "split(C.y, _, 4, shift_inwards)\nreorder(C.y.0, C.y.1, C.k)");
    before = sched_tree(s);
    cr_assert_not(sched_replay(s, "test", "fuse(C.y.1, C.k)\nfuse(C.y.0, C.y.1~C.k)"));
    cr_assert(strstr(sched_error(s), "the instances of 'C' are not proven to be distinct"), "%s",
              sched_error(s));
    cr_assert(sched_tree(s) == before);
}

Test(loops, fuse_refuses_one_loop)
{
    refuses(schedule_of(matmul), "fuse(C.y)", "expected at least two loops to fuse, found 1");
}

Test(loops, fuse_refuses_an_annotated_loop)
{
    sched *s = schedule_of(matmul);

    does(s, "vectorize(C.x)");
    refuses(s, "fuse(C.y, C.x)", "loop 'C.x' is vectorised; only serial loops can be changed");
}

/* ---- tile ---- */

Test(loops, tile_puts_the_inner_loops_inside)
{
    sched *s = schedule_of(matmul);
    const char **names;

    does(s, "tile(C.y, C.x, 4, 8)");
    cr_assert(sched_loops_of(s, "C", &names) == 5);
    cr_assert(strcmp(names[0], "C.y.0") == 0 && strcmp(names[1], "C.x.0") == 0);
    cr_assert(strcmp(names[2], "C.y.1") == 0 && strcmp(names[3], "C.x.1") == 0);
}

Test(loops, tile_needs_two_factors)
{
    refuses(schedule_of(matmul), "tile(C.y, C.x, 4)", "expected two factors, one for each loop, found 1");
}

Test(loops, cut_leaves_a_buffer_that_nothing_reads_whole)
{
    does(schedule_of("def f(A: f32[10]) { P[i] = A[i] * 2 C[i] = A[i] + 1 return C }"),
         "cut(P.i, 4)\ncache_write(P'2, global)");
}

Test(loops, cut_gives_each_part_its_own_private_buffers)
{
    sched *s = schedule_of(
        "def f(A: f32[10, 8]) { P[y, x] = A[y, x] * 2 C[y: 9, x] = P[y, x] + P[y + 1, x] return C }");

    does(s, "compute_at(P, C.x)\nvectorize(C.x)\ncut(C.y, 4)");
    cr_assert(sched_tree(s)->n_buffers == 2, "%s", tree_text(s));
}

Test(loops, fuse_keeps_what_guards_the_initialisation)
{
    sched *s = schedule_of("def f(n, A: f32[n, 3]) { C[y] = sum[k](A[y, k]) return C }");

    does(s, "C.k.0, C.k.1 = split(C.k, _, 4)\nC.k.0.0, C.k.0.1 = split(C.k.0, _, 3)\na, b, c = "
            "split(C.k.0.0, _, 5, 2)");
    refuses(s, "a = fuse(C.k.0.0.2, C.k.0.1)",
            "a condition on 'C.k.0.0.2' guards the initialisation of 'C', and 'C.k.0.1' is a reduction loop");
}
