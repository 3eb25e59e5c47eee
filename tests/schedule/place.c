/* tests/schedule/place.c -- compute_at, reverse_compute_at, compute_root. */
#include "tests/schedule/run.h"

TestSuite(place, .init = open_context, .fini = close_context);

static const char stencil[] =
    "def f(A: f32[34]) { P[i] = A[i] * 2 C[i: 32] = P[i] + P[i + 1] + P[i + 2] return C }";
static const char chain[] =
    "def f(A: f32[8, 8]) { P[i, j] = A[i, j] + 1 Q[i, j] = P[i, j] * 2 R[i, j] = Q[i, j] - 3 return R }";
static const char conv[] =
    "def conv(n, A: f32[n, 9, 9, 4], W: f32[3, 3, 4, 8], B: f32[8]) {\n"
    "  P[b, y: 11, x: 11, c] = select(y >= 1 && y < 10 && x >= 1 && x < 10, A[b, y - 1, x - 1, c], 0)\n"
    "  C[b, y: 5, x: 5, o] = sum[ky: 3, kx: 3, c](P[b, y * 2 + ky, x * 2 + kx, c] * W[ky, kx, c, o])\n"
    "  D[b, y, x, o] = C[b, y, x, o] + B[o]\n"
    "  R[b, y, x, o] = max(D[b, y, x, o], 0)\n"
    "  return R\n"
    "}";
static const char rows[] =
    "def f(n, A: f32[n, 10]) { S[y] = sum[k](A[y, k]) D[y, x] = A[y, x] - S[y] return D }";

/* ---- compute_at ---- */

Test(place, compute_at_computes_the_halo_of_a_tile)
{
    sched *s = schedule_of(stencil);

    does(s, "split(C.i, _, 8)\ncompute_at(P, C.i.0)");
    looks(s, "for C.i.0 in 0..4 {\n"
             "  for P.i in 0..10 {\n"
             "    block P(i = C.i.0 * 8 + P.i in 0..34) {\n"
             "      reads A[i]\n"
             "      writes P[i]\n"
             "      P[i] = A[i] * 2.0\n"
             "    }\n"
             "  }\n"
             "  for C.i.1 in 0..8 {\n"
             "    block C(i = C.i.0 * 8 + C.i.1 in 0..32) {\n"
             "      reads P[i:+3]\n"
             "      writes C[i]\n"
             "      C[i] = P[i] + P[i + 1] + P[i + 2]\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(place, compute_at_inside_the_innermost_loop_computes_one_window)
{
    sched *s = schedule_of(stencil);

    does(s, "compute_at(P, C.i)");
    looks(s, "for C.i in 0..32 {\n"
             "  for P.i in 0..3 {\n"
             "    block P(i = C.i + P.i in 0..34) {\n"
             "      reads A[i]\n"
             "      writes P[i]\n"
             "      P[i] = A[i] * 2.0\n"
             "    }\n"
             "  }\n"
             "  block C(i = C.i in 0..32) {\n"
             "    reads P[i:+3]\n"
             "    writes C[i]\n"
             "    C[i] = P[i] + P[i + 1] + P[i + 2]\n"
             "  }\n"
             "}\n");
}

Test(place, a_shared_variable_cancels_in_the_region_of_a_strided_window)
{
    sched *s = schedule_of(conv);
    int64_t n;

    does(s, "split(C.y, _, 2)\nsplit(C.x, _, 2)\nreorder(C.b, C.y.0, C.x.0, C.ky, C.kx, C.c, C.y.1, C.x.1, "
            "C.o)\ncompute_at(P, "
            "C.x.0)");
    cr_assert(sched_extent(s, "P.y", &n) && n == 5, "%d", (int)n);
    cr_assert(sched_extent(s, "P.x", &n) && n == 5);
    cr_assert(sched_extent(s, "P.c", &n) && n == 4);
    cr_assert(sched_extent(s, "P.b", &n) && n == 1);
}

/* The guard of the axis with one value leaves it where the loops are at 0, however few elements the other one
 * has. */
Test(place, reverse_compute_at_a_producer_with_a_guarded_axis_of_one_value)
{
    sched *s = schedule_of("def f(n, A: f32[n]) { P[y, u: 1] = A[y] * 2 C[y] = P[y, 0] + 1 return C }");
    int64_t n;

    does(s, "split(P.u, _, 2)\nsplit(P.y, _, 4)\nreverse_compute_at(C, P.y.0)");
    cr_assert(sched_extent(s, "C.y", &n) && n == 4);
}

/* A reduction without terms initialises, so that it fills its part however many there are. */
Test(place, reverse_compute_at_a_reduction_that_may_be_empty)
{
    static const char text[] =
        "def f(n, m, A: f32[n, m]) { P[y] = sum[k](A[y, k]) C[y] = P[y] * 2 return C }";

    does(schedule_of(text), "split(P.y, _, 4)\nreverse_compute_at(C, P.y.0)\nparallel(P.y.0)");
    does(schedule_of(text), "split(P.y, _, 4)\nsplit(P.k, _, 3)\nreorder(P.y.0, P.k.0, P.y.1, "
                            "P.k.1)\nreverse_compute_at(C, P.y.0)");
}

/* Two buffers of one block, of which the readers in an iteration want parts of different widths, in either
 * order. */
static const char *two_parts(int x, int y)
{
    return base_format(
        cx,
        "program f(A: f32[40], out C: f32[8, %d], out D: f32[8, %d]) {\n"
        "  buffer X: f32[40]\n  buffer Y: f32[40]\n"
        "  for P.i in 0..40 {\n"
        "    block P(i = P.i in 0..40) { reads A[i] writes X[i], Y[i] X[i] = A[i]\n Y[i] = A[i] * 2.0 }\n"
        "  }\n"
        "  for y in 0..8 {\n"
        "    for j in 0..%d { block C(y = y in 0..8, j = j in 0..%d) { reads X[y*4 + j] writes C[y, j] C[y, "
        "j] = X[y*4 + j] } }\n"
        "    for k in 0..%d { block D(y = y in 0..8, j = k in 0..%d) { reads Y[y*4 + j] writes D[y, j] D[y, "
        "j] = Y[y*4 + j] } }\n"
        "  }\n"
        "}\n",
        x, y, x, x, y, y);
}

Test(place, compute_at_computes_what_the_readers_of_each_buffer_need)
{
    static const int widths[][2] = {{4, 8}, {8, 4}, {4, 4}};

    for (int i = 0; i < 3; i++) {
        sched *s = schedule_of_tree(two_parts(widths[i][0], widths[i][1]));
        int64_t n;

        does(s, "compute_at(P, y)");
        cr_assert(sched_extent(s, "P.i", &n) && n == (widths[i][0] == widths[i][1] ? 4 : 40), "%d", (int)n);
    }
}

/* The loop that a division hides moves with the box all the same. */
Test(place, compute_at_for_readers_that_divide)
{
    static const char text[] = "def f(A: f32[4, 16]) { P[y, i] = A[y, i] * 3 C[y, i: 32] = P[y, floordiv(i, "
                               "2)] + P[y, i % 16] return C }";

    does(schedule_of(text), "compute_at(P, C.y)");
    does(schedule_of(text), "split(C.i, _, 8)\ncompute_at(P, C.i.0)");
    does(schedule_of(text), "reorder(C.i, C.y)\ncompute_at(P, C.i)");
    static const char *const halves[] = {
        "def f(A: f32[4, 16]) { P[y, i] = A[y, i] * 3 C[y, i: 8] = P[y, floordiv(i, 2)] return C }",
        "def f(A: f32[16]) { P[i] = A[i] * 3 C[y: 4, i: 8] = P[floordiv(i, 2)] return C }"};
    for (int i = 0; i < BASE_COUNT(halves); i++) {
        sched *s = schedule_of(halves[i]);
        int64_t n;

        does(s, "compute_at(P, C.y)");
        cr_assert(sched_extent(s, "P.i", &n) && n == 4, "%s", tree_text(s));
    }
}

Test(place, compute_at_goes_through_reversed_indices)
{
    sched *s = schedule_of("def f(A: f32[12]) { P[i] = A[i] * 3 C[i: 12] = P[11 - i] return C }");

    does(s, "split(C.i, _, 4)\ncompute_at(P, C.i.0)");
    looks(s, "for C.i.0 in 0..3 {\n"
             "  for P.i in 0..4 {\n"
             "    block P(i = 8 - C.i.0 * 4 + P.i in 0..12) {\n"
             "      reads A[i]\n"
             "      writes P[i]\n"
             "      P[i] = A[i] * 3.0\n"
             "    }\n"
             "  }\n"
             "  for C.i.1 in 0..4 {\n"
             "    block C(i = C.i.0 * 4 + C.i.1 in 0..12) {\n"
             "      reads P[11 - i]\n"
             "      writes C[i]\n"
             "      C[i] = P[11 - i]\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(place, consumers_move_first)
{
    does(schedule_of(chain), "compute_at(Q, R.i)\ncompute_at(P, R.i)");
}

Test(place, a_moved_block_can_be_split_and_move_on)
{
    does(schedule_of(stencil),
         "split(C.i, _, 8)\ncompute_at(P, C.i.0)\nsplit(P.i, _, 4)\nvectorize(P.i.1)\ncompute_at(P, C.i.1)");
}

Test(place, a_reduction_completes_inside)
{
    sched *s = schedule_of(rows);

    does(s, "compute_at(S, D.y)");
    looks(s, "for D.y in 0..n {\n"
             "  for S.y in 0..1 {\n"
             "    for S.k in 0..10 {\n"
             "      block S(y = D.y + S.y in 0..n, k reduce = S.k in 0..10) {\n"
             "        reads A[y, k]\n"
             "        writes S[y]\n"
             "        init {\n"
             "          S[y] = 0.0\n"
             "        }\n"
             "        S[y] sum= A[y, k]\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "  for D.x in 0..10 {\n"
             "    block D(y = D.y in 0..n, x = D.x in 0..10) {\n"
             "      reads A[y, x], S[y]\n"
             "      writes D[y, x]\n"
             "      D[y, x] = A[y, x] - S[y]\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(place, compute_at_under_a_split_with_a_tail_keeps_to_the_domain)
{
    does(schedule_of("def f(n, A: f32[n + 2]) { P[i] = A[i] * 2 C[i: n] = P[i] + P[i + 2] return C }"),
         "split(C.i, _, 4)\ncompute_at(P, C.i.0)");
}

Test(place, a_gather_takes_the_whole_dimension)
{
    sched *s =
        schedule_of("def f(A: f32[6], I: i32[5]) { P[i] = A[i] + 1 C[j] = P[i64(I[j]) % 6] return C }");
    int64_t n;

    does(s, "compute_at(P, C.j)");
    cr_assert(sched_extent(s, "P.i", &n) && n == 6);
}

Test(place, compute_at_refuses_outputs)
{
    refuses(schedule_of("def f(A: f32[4]) { P[i] = A[i] C[i] = P[i] return P, C }"), "compute_at(P, C.i)",
            "'P' is an argument of the program; all of it must be written");
}

Test(place, compute_at_refuses_readers_elsewhere)
{
    refuses(schedule_of("def f(A: f32[4]) { P[i] = A[i] C[i] = P[i] D[i] = P[i] return C, D }"),
            "compute_at(P, C.i)", "'D' reads 'P', but does not lie under 'C.i'");
}

Test(place, compute_at_refuses_a_block_that_nothing_reads_there)
{
    refuses(schedule_of(chain), "compute_at(P, R.i)", "'Q' reads 'P', but does not lie under 'R.i'");
}

Test(place, compute_at_refuses_a_decomposed_reduction)
{
    sched *s = schedule_of(rows);

    does(s, "decompose_reduction(S, S.k)");
    refuses(s, "compute_at(S, D.y)", "'S' cannot move: it does not initialise its reduction itself");
}

Test(place, compute_at_refuses_to_leave_the_loop_of_an_input)
{
    sched *s = schedule_of(chain);

    does(s, "compute_at(P, Q.i)");
    refuses(s, "compute_at(Q, R.i)", "'Q' would leave loop 'Q.i', in which its input 'P' is computed");
}

Test(place, compute_at_refuses_a_second_writer)
{
    sched *s = schedule_of("def f(A: f32[8]) { P[i] = A[i] C[i] = P[i] return C }");

    does(s, "cut(P.i, 4)");
    refuses(s, "compute_at(P, C.i)", "'P' is not the only writer of 'P': 'P'2' writes it too");
}

Test(place, compute_at_refuses_a_vectorised_loop)
{
    sched *s = schedule_of(stencil);

    does(s, "vectorize(C.i)");
    refuses(s, "compute_at(P, C.i)", "'C.i' is vectorised and takes no further loops");
}

Test(place, a_stage_with_two_readers_moves_before_both)
{
    does(schedule_of("def f(A: f32[8]) { P[i] = A[i] Q[i] = P[i] R[i] = Q[i] + P[i] return R }"),
         "compute_at(Q, R.i)\ncompute_at(P, R.i)");
}

Test(place, a_stage_can_move_deeper_than_its_input)
{
    does(schedule_of("def f(A: f32[8, 8]) { P[i, j] = A[i, j] Q[i, j] = P[i, j] * 2 R[i, j] = Q[i, j] + P[i, "
                     "j] return R }"),
         "compute_at(Q, R.i)\ncompute_at(P, R.i)\ncompute_at(Q, R.j)");
}

static const char overwritten[] = "program f(A: f32[8], out C: f32[8]) {\n"
                                  "  buffer T: f32[8]\n"
                                  "  buffer P: f32[8]\n"
                                  "  for T.i in 0..8 {\n"
                                  "    block T(i = T.i in 0..8) {\n"
                                  "      reads A[i]\n"
                                  "      writes T[i]\n"
                                  "      T[i] = A[i]\n"
                                  "    }\n"
                                  "  }\n"
                                  "  for P.i in 0..8 {\n"
                                  "    block P(i = P.i in 0..8) {\n"
                                  "      reads T[i]\n"
                                  "      writes P[i]\n"
                                  "      P[i] = T[i]\n"
                                  "    }\n"
                                  "  }\n"
                                  "  for U.i in 0..8 {\n"
                                  "    block U(i = U.i in 0..8) {\n"
                                  "      writes T[i]\n"
                                  "      T[i] = 0.0\n"
                                  "    }\n"
                                  "  }\n"
                                  "  for C.i in 0..8 {\n"
                                  "    block C(i = C.i in 0..8) {\n"
                                  "      reads P[i], T[i]\n"
                                  "      writes C[i]\n"
                                  "      C[i] = P[i] + T[i]\n"
                                  "    }\n"
                                  "  }\n"
                                  "}\n";

Test(place, compute_at_refuses_to_pass_a_block_that_overwrites_its_input)
{
    refuses(schedule_of_tree(overwritten), "compute_at(P, C.i)", "'U' overwrites 'T', which 'P' reads");
}

static const char aliased[] = "program f(A: f32[8], out C: f32[6]) {\n"
                              "  buffer P: f32[8] alias(1)\n"
                              "  for P.i in 0..8 {\n"
                              "    block P(i = P.i in 0..8) {\n"
                              "      reads A[i]\n"
                              "      writes P[i]\n"
                              "      P[i] = A[i]\n"
                              "    }\n"
                              "  }\n"
                              "  for C.i in 0..6 {\n"
                              "    block C(i = C.i in 0..6) {\n"
                              "      reads P[i:+3]\n"
                              "      writes C[i]\n"
                              "      C[i] = P[i] + P[i + 2]\n"
                              "    }\n"
                              "  }\n"
                              "}\n";

Test(place, compute_at_refuses_halos_in_shared_memory)
{
    refuses(schedule_of_tree(aliased), "compute_at(P, C.i)", "'P' may share memory with other buffers");
}

/* ---- compute_root ---- */

Test(place, compute_root_undoes_compute_at)
{
    sched *s = schedule_of(stencil);
    const char *before = tree_text(s);

    does(s, "compute_at(P, C.i)\ncompute_root(P)");
    looks(s, before);
}

Test(place, compute_root_takes_tiles_that_lie_apart)
{
    static const char pair[] = "def f(A: f32[8, 8]) { P[i, j] = A[i, j] + 1 C[i, j] = P[i, j] * 2 return C }";
    sched *s = schedule_of(pair);

    does(s, "o, n = split(P.i, _, 4)\nblockize(n)\ncompute_root(P)");
    s = schedule_of(pair);
    does(s, "y, yi = split(P.i, _, 4)\nx, xi = split(P.j, _, 2)\nreorder(y, x, yi, "
            "xi)\nblockize(yi)\ncompute_root(P)");
    s = schedule_of(pair);
    does(s, "ij = fuse(P.i, P.j)\no, n = split(ij, _, 5)\ncompute_root(P)");
}

Test(place, compute_root_refuses_to_leave_the_loop_of_its_input)
{
    sched *s = schedule_of(chain);

    does(s, "compute_at(Q, R.i)\ncompute_at(P, R.i)");
    refuses(s, "compute_root(Q)", "'Q' would leave loop 'R.i', in which its input 'P' is computed");
}

/* ---- reverse_compute_at ---- */

Test(place, reverse_compute_at_runs_over_the_tile_that_its_producer_completes)
{
    sched *s = schedule_of("def f(A: f32[32]) { C[i] = A[i] * 2 R[i] = max(C[i], 0) return R }");

    does(s, "split(C.i, _, 8)\nreverse_compute_at(R, C.i.0)");
    looks(s, "for C.i.0 in 0..4 {\n"
             "  for C.i.1 in 0..8 {\n"
             "    block C(i = C.i.0 * 8 + C.i.1 in 0..32) {\n"
             "      reads A[i]\n"
             "      writes C[i]\n"
             "      C[i] = A[i] * 2.0\n"
             "    }\n"
             "  }\n"
             "  for R.i in 0..8 {\n"
             "    block R(i = C.i.0 * 8 + R.i in 0..32) {\n"
             "      reads C[i]\n"
             "      writes R[i]\n"
             "      R[i] = max(C[i], 0.0)\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(place, an_epilogue_follows_the_tiles_of_a_convolution)
{
    does(schedule_of(conv),
         "compute_inline(D)\nsplit(C.y, _, 2)\nsplit(C.x, _, 2)\n"
         "reorder(C.b, C.y.0, C.x.0, C.ky, C.kx, C.c, C.y.1, C.x.1, C.o)\n"
         "compute_at(P, C.x.0)\nreverse_compute_at(R, C.x.0)\nvectorize(R.o)\nparallel(C.b)");
}

Test(place, a_reduction_can_follow_its_producer)
{
    does(schedule_of("def f(A: f32[6, 10]) { P[y, x] = A[y, x] * 2 S[y] = sum[k](P[y, k]) return S }"),
         "reverse_compute_at(S, P.y)");
}

Test(place, reverse_compute_at_refuses_a_relu_under_a_reduction_loop)
{
    sched *s = schedule_of("def f(A: f32[6, 10]) { C[y] = sum[k](A[y, k]) R[y] = max(C[y], 0) return R }");

    refuses(s, "reverse_compute_at(R, C.k)",
            "'C' is not complete in an iteration of 'C.k': 'C.k' is its reduction loop");
    does(s, "reverse_compute_at(R, C.y)");
}

Test(place, reverse_compute_at_refuses_points_that_no_part_of_a_producer_covers)
{
    refuses(
        schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 Q[i: 8] = select(i >= 1, P[i - 1], 0) return Q }"),
        "reverse_compute_at(Q, P.i)", "no part of 'P' that 'P' writes covers all of axis 'i' of 'Q'");
}

Test(place, reverse_compute_at_refuses_what_the_iteration_has_not_written)
{
    refuses(schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 Q[i: 7] = P[i] + P[i + 1] return Q }"),
            "reverse_compute_at(Q, P.i)",
            "it is not proven that 'Q' finds all of 'P' that it reads complete in one iteration of 'P.i'");
}

Test(place, reverse_compute_at_refuses_a_transposed_reader)
{
    refuses(
        schedule_of("def f(A: f32[8, 8]) { P[i, j] = A[i, j] * 2 Q[i, j: 8] = P[i, j] + P[j, i] return Q }"),
        "reverse_compute_at(Q, P.i)",
        "it is not proven that 'Q' finds all of 'P' that it reads complete in one iteration of 'P.i'");
}

Test(place, reverse_compute_at_refuses_a_piece_of_a_cut)
{
    sched *s = schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 Q[i] = P[i] + 1 return Q }");

    does(s, "a, b = cut(P.i, 4)");
    refuses(s, "reverse_compute_at(Q, P.i.1)", "it is not proven that 'P'2' writes all of 'P'");
}

Test(place, reverse_compute_at_refuses_inputs_that_come_later)
{
    refuses(schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 S[i] = A[i] + 1 Q[i] = P[i] + S[i] return Q }"),
            "reverse_compute_at(Q, P.i)",
            "'S', which 'Q' reads, is not complete before 'P.i': 'S' writes it later");
}

Test(place, reverse_compute_at_refuses_a_loop_without_a_producer)
{
    refuses(schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 S[i] = A[i] + 1 Q[i] = P[i] return Q, S }"),
            "reverse_compute_at(Q, S.i)", "no block under 'S.i' writes a buffer that 'Q' reads");
}

Test(place, reverse_compute_at_refuses_a_block_that_is_there_already)
{
    sched *s = schedule_of("def f(A: f32[8]) { P[i] = A[i] * 2 Q[i] = P[i] return Q }");

    does(s, "reverse_compute_at(Q, P.i)");
    refuses(s, "reverse_compute_at(Q, P.i)", "'Q' lies under 'P.i' already");
}

Test(place, reverse_compute_at_needs_the_loops_around_to_run)
{
    sched *s =
        schedule_of("def f(n, B: f32[0, 9], A: f32[n, 0]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }");

    does(s, "c = cache_read(B, local)");
    refuses(s, "reverse_compute_at(C, B.cache.local.ax1)",
            "it is not proven that 'B.cache.local.ax0' runs at all");
}

Test(place, reverse_compute_at_stays_out_of_its_own_reduction_that_may_be_empty)
{
    const char *steps = "split(C.k, _, 4) compute_at(P, C.k.1)";
    sched *s = schedule_of("def f(m) { P[y: 4, c: m] = 1.0 C[y: 4] = sum[k: m, c: m](P[y, c]) return C }");

    does(s, steps);
    refuses(s, "reverse_compute_at(C, P.y)", "it is not proven that 'C.k.0' runs at all");
    s = schedule_of(
        "def f(m) where m >= 1 { P[y: 4, c: m] = 1.0 C[y: 4] = sum[k: m, c: m](P[y, c]) return C }");
    does(s, steps);
    does(s, "reverse_compute_at(C, P.y)");
}

Test(place, reverse_compute_at_needs_an_iteration_in_which_its_producers_run)
{
    const char *steps = "split(C.k, 1, 4) compute_at(P, C.k.1)";
    sched *s = schedule_of("def f(m) where m <= 4 { P[y: 4] = 1.0 C[y: 4] = sum[k: m](P[y]) return C }");

    does(s, steps);
    refuses(s, "reverse_compute_at(C, P.y)", "it is not proven that 'C.k.1 < m' ever holds");
    s = schedule_of("def f(m) where m >= 1, m <= 4 { P[y: 4] = 1.0 C[y: 4] = sum[k: m](P[y]) return C }");
    does(s, steps);
    does(s, "reverse_compute_at(C, P.y)");
}

Test(place, reverse_compute_at_needs_a_fused_loop_to_run)
{
    const char *steps = "split(P.c, _, 4) fuse(P.y, P.c.0)";
    sched *s =
        schedule_of("def f(m) where m <= 4 { P[y: 6, c: m] = 1.0 C[y: 6] = sum[k: m](P[y, k]) return C }");

    does(s, steps);
    refuses(s, "reverse_compute_at(C, P.y~P.c.0)", "it is not proven that 'P.y~P.c.0' runs at all");
    s = schedule_of(
        "def f(m) where m >= 1, m <= 4 { P[y: 6, c: m] = 1.0 C[y: 6] = sum[k: m](P[y, k]) return C }");
    does(s, steps);
    does(s, "reverse_compute_at(C, P.y~P.c.0)");
}

Test(place, reverse_compute_at_needs_all_its_producers_to_run)
{
    sched *s =
        schedule_of("def f(n, A: f32[n, 9], B: f32[9, 3]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }");

    does(s, "reorder(C.x, C.y, C.k)\na, b, c = split(C.x, _, 5, 2)\nd = cache_write(C, local)\ne, f = "
            "cut(C.x.1, 4)");
    refuses(s, "reverse_compute_at(C.cache.local, C.x.0)",
            "it depends on 'false' whether all that 'C.cache.local' reads is computed");
}

/* In an iteration in which nobody reads, the block has nothing to do. */
Test(place, runs_only_where_somebody_reads)
{
    sched *s = schedule_of("def f(A: f32[10]) { P[i] = A[i] + 1.0 C[i] = P[i] * 2.0 return C }");

    does(s, "split(C.i, 5, 4)\nreorder(C.i.1, C.i.0)\ncompute_at(P, C.i.0)");
    looks(s, "for C.i.1 in 0..4 {\n"
             "  for C.i.0 in 0..5 {\n"
             "    for P.i in 0..1 {\n"
             "      block P(i = C.i.1 + C.i.0 * 4 + P.i in 0..10) where C.i.1 + C.i.0 * 4 + P.i < 10 && "
             "C.i.0 * 4 + C.i.1 < 10 {\n"
             "        reads A[i]\n"
             "        writes P[i]\n"
             "        P[i] = A[i] + 1.0\n"
             "      }\n"
             "    }\n"
             "    block C(i = C.i.0 * 4 + C.i.1 in 0..10) where C.i.0 * 4 + C.i.1 < 10 {\n"
             "      reads P[i]\n"
             "      writes C[i]\n"
             "      C[i] = P[i] * 2.0\n"
             "    }\n"
             "  }\n"
             "}\n");
}

/* What threads fetch together binds its own loops to their axes, inside loops over the same axes. */
Test(place, one_thread_of_an_axis_works_where_two_loops_run_over_the_axis)
{
    sched *s = schedule_of("def f(A: i32[7, 6]) {\n"
                           "  S2[y: 7, x: 6] = A[y, x] + 1 S3[y: 7, x: 6] = S2[y, x] * 2\n"
                           "  S4[y: 6, x: 7] = S3[x, y] + S3[y + 1, y] return S4, S2 }");

    does(s, "f = fuse(S4.y, S4.x)\nf0, f1 = split(f, _, 4)\nbind(f1, threadIdx.x)\ncompute_at(S3, f0)\n"
            "set_scope(S3, shared)\ng0, g1 = split(f0, _, 3)\nbind(g1, threadIdx.y)\n"
            "c = cache_read(S2, shared, S3)\ncompute_at(c, S3.first.y)");
    cr_assert(strstr(tree_text(s), "for S2.cache.shared.first.y in 0..1 threadIdx.y {"), "%s", tree_text(s));
    cr_assert_null(strstr(tree_text(s), "first.y'2"), "%s", tree_text(s));
}
