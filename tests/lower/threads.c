/* tests/lower/threads.c -- reductions over the threads of a block. */
#include "tests/lower/pass.h"

TestSuite(threads, .init = open_context, .fini = close_context);

/* Row sums of A: `how` runs the inner loop of the reduction; its extent does not divide the row. */
static const char *row_sums(int threads, const char *how, const char *around)
{
    return base_format(
        cx,
        "program p(symbol n, A: f32[n, 70], out C: f32[n]) {\n"
        "  for y in 0..n %s { for k.0 in 0..%d { for k.1 in 0..%d %s {\n"
        "    block C(y = y in 0..n, k reduce = k.0*%d + k.1 in 0..70) where k.0*%d + k.1 < 70 {\n"
        "      reads A[y, k] writes C[y] init { C[y] = 1.0 } C[y] sum= A[y, k]\n"
        "    }\n"
        "  } } }\n"
        "}\n",
        around, (70 + threads - 1) / threads, threads, how, threads, threads);
}

/* The same as the serial loop. */
static const ir_program *same_as_serial(int threads, const char *axis)
{
    const ir_program *serial = parse(row_sums(threads, "", "")), *p;

    p = through("all", "cuda", parse(row_sums(threads, axis, "blockIdx.x")), false);
    cr_assert(p, "%s", tec_context_error(cx));
    for (int64_t n = 0; n <= 3; n++)
        same_results(serial, p, n, 5, "all");
    return p;
}

Test(threads, combine_by_halves_through_shared_memory)
{
    const char *text = ir_program_text(cx, same_as_serial(64, "threadIdx.x"));

    HAS("@shared", text);
    HAS("tec.barrier(\"shared\")", text);
}

Test(threads, of_one_warp_combine_by_shuffles)
{
    const char *text = ir_program_text(cx, same_as_serial(32, "threadIdx.x"));

    HAS("C.lanes[0], 16)", text);
    HAS("tec.shuffle_xor(C.lanes[0], 1)", text);
    HAS_NOT("tec.barrier", text);
    HAS_NOT("@shared", text);
    HAS("tec.shuffle_xor(C.lanes[0], 4)", ir_program_text(cx, same_as_serial(8, "threadIdx.x")));
}

Test(threads, along_other_axes_and_in_odd_numbers)
{
    HAS("@shared", ir_program_text(cx, same_as_serial(16, "threadIdx.y")));
    same_as_serial(12, "threadIdx.x");
    same_as_serial(7, "threadIdx.z");
    same_as_serial(1, "threadIdx.x");
}

Test(threads, keep_an_order_that_must_be_kept)
{
    lower_options o = {.cx = cx, .target = target_parse(cx, "cuda"), .strict = true};

    cr_assert_not(lower_run(&o, parse(row_sums(32, "threadIdx.x", "blockIdx.x"))));
    HAS("the reduction of 'C' cannot be shared between the threads of loop 'k.1': the floating-point policy "
        "is strict",
        tec_context_error(cx));
}

/* The tail of a fused loop leaves out elements altogether. */
static const char *behind_a_tail(const char *blocks, const char *threads, const char *condition)
{
    return base_format(cx,
                       "program p(A: f32[3, 8], out C: f32[3]) {\n"
                       "  for y in 0..3 { block C.init(y = y in 0..3) { writes C[y] C[y] = 2.0 } }\n"
                       "  for f.0 in 0..2 %s { for f.1 in 0..2 { for f.2 in 0..8 %s {\n"
                       "    block C(y = f.0*2 + f.1 in 0..3, k reduce = f.2 in 0..8) where %s {\n"
                       "      reads A[y, k] writes C[y] C[y] sum= A[y, k]\n"
                       "    }\n"
                       "  } } }\n"
                       "}\n",
                       blocks, threads, condition);
}

Test(threads, are_of_the_elements_that_a_fused_tail_leaves)
{
    static const char *const axes[] = {"threadIdx.x", "threadIdx.y"}, tail[] = "f.0*16 + f.1*8 + f.2 < 24";

    for (int i = 0; i < 2; i++) {
        const ir_program *p =
            through("all", "cuda", parse(behind_a_tail("blockIdx.x", axes[i], tail)), false);

        cr_assert(p, "%s", tec_context_error(cx));
        same_results(parse(behind_a_tail("", "", tail)), p, 1, 5, "all");
    }
}

Test(threads, of_elements_that_no_comparison_tells_are_refused)
{
    HAS("the reduction of 'C' cannot be shared between the threads of loop 'f.2': the guard "
        "'f.0 < 1 || f.1 * 8 + f.2 < 8' mixes an output axis with a reduction axis and is not a comparison "
        "of "
        "sums",
        refusal("all", "cuda", behind_a_tail("blockIdx.x", "threadIdx.x", "f.0 < 1 || f.1*8 + f.2 < 8")));
}

Test(threads, of_a_reduction_without_blocks_become_a_launch_of_one)
{
    const ir_program *serial = parse(row_sums(32, "", "")),
                     *p = through("all", "cuda", parse(row_sums(32, "threadIdx.x", "")), false);

    cr_assert(p, "%s", tec_context_error(cx));
    HAS("for once in 0..1 blockIdx.x {", ir_program_text(cx, p));
    for (int64_t n = 0; n <= 3; n++)
        same_results(serial, p, n, 5, "all");
}

/* A sum over two loops with other work between them; `how` runs the inner one. */
static const char *beside_other_work(const char *how)
{
    return base_format(cx,
                       "program p(A: f32[64], out C: f32[1], out D: f32[2]) {\n"
                       "  for k.0 in 0..2 {\n"
                       "    block D(d = k.0 in 0..2) { reads A[d] writes D[d] D[d] = A[d] }\n"
                       "    for k.1 in 0..32 %s {\n"
                       "      block C(y = 0 in 0..1, k reduce = k.0*32 + k.1 in 0..64) {\n"
                       "        reads A[k] writes C[y] init { C[y] = 0.0 } C[y] sum= A[k]\n"
                       "      }\n"
                       "    }\n"
                       "  }\n"
                       "}\n",
                       how);
}

Test(threads, of_a_reduction_take_the_work_beside_it_into_their_launch)
{
    const ir_program *p = through("all", "cuda", parse(beside_other_work("threadIdx.y")), false);

    cr_assert(p, "%s", tec_context_error(cx));
    HAS("for once in 0..1 blockIdx.x {", ir_program_text(cx, p));
    same_results(parse(beside_other_work("")), p, 1, 5, "all");
}

/* Rows of four that a vector adds up, then the rows by threads. */
static const char *vectors_of_threads(const char *threads, const char *lanes)
{
    return base_format(cx,
                       "program p(symbol n, A: f32[n, 32], out C: f32[n]) {\n"
                       "  for y in 0..n %s { for k.0 in 0..8 %s { for k.1 in 0..4 %s {\n"
                       "    block C(y = y in 0..n, k reduce = k.0*4 + k.1 in 0..32) { reads A[y, k] writes "
                       "C[y] init { C[y] = 1.0 } C[y] sum= A[y, k] }\n"
                       "  } } }\n"
                       "}\n",
                       *threads ? "blockIdx.x" : "", threads, lanes);
}

Test(threads, of_a_reduction_may_each_add_up_a_vector)
{
    static const char *const axes[] = {"threadIdx.x", "threadIdx.y"};

    for (int i = 0; i < 2; i++) {
        const ir_program *p = through("all", "cuda", parse(vectors_of_threads(axes[i], "vectorised")), false);

        cr_assert(p, "%s", tec_context_error(cx));
        for (int64_t n = 0; n <= 3; n++)
            same_results(parse(vectors_of_threads("", "")), p, n, 5, "all");
    }
}

Test(threads, of_a_reduction_beside_other_blocks_have_no_launch)
{
    HAS("the reduction of 'C' cannot be shared between the threads of loop 'k': the loop over blockIdx that "
        "it stands in holds another one",
        refusal("all", "cuda",
                "program p(A: f32[4, 32], out C: f32[4], out D: f32[4, 8]) {\n"
                "  for y in 0..4 blockIdx.x {\n"
                "    for k in 0..32 threadIdx.x {\n"
                "      block C(y = y in 0..4, k reduce = k in 0..32) { reads A[y, k] writes C[y] init { C[y] "
                "= 0.0 } C[y] sum= A[y, k] }\n"
                "    }\n"
                "    for x in 0..8 blockIdx.y { block D(y = y in 0..4, x = x in 0..8) { writes D[y, x] D[y, "
                "x] = 1.0 } }\n"
                "  }\n"
                "}\n"));
}

/* Rows of argmax, and of its inits, on `how`. */
static const char *row_maxima(int threads, const char *how, const char *around)
{
    return base_format(
        cx,
        "program p(symbol n, A: f32[n, 70], out C: f32[n], out I: i64[n]) {\n"
        "  for y in 0..n %s { for k.0 in 0..%d { for k.1 in 0..%d %s {\n"
        "    block C(y = y in 0..n, k reduce = k.0*%d + k.1 in 0..70) where k.0*%d + k.1 < 70 {\n"
        "      reads A[y, k] writes C[y], I[y] init { C[y] = -100.0\n I[y] = 7 } (C[y], I[y]) argmax= (A[y, "
        "k], k)\n"
        "    }\n"
        "  } } }\n"
        "}\n",
        around, (70 + threads - 1) / threads, threads, how, threads, threads);
}

Test(threads, combine_the_components_of_a_tuple_together)
{
    for (int threads = 4; threads <= 64; threads *= 2) {
        const ir_program *p =
            through("all", "cuda", parse(row_maxima(threads, "threadIdx.x", "blockIdx.x")), false);

        cr_assert(p, "%s", tec_context_error(cx));
        for (int64_t n = 0; n <= 3; n++)
            same_results(parse(row_maxima(threads, "", "")), p, n, 5, "all");
    }
}

/* Column sums of blocks of rows: y over ny threads, k over nk of them, on the given axes. */
static const char *beside(const char *spatial, const char *reducing, int nk, const char *around)
{
    return base_format(cx,
                       "program p(symbol n, A: f32[n, 70], out C: f32[n]) {\n"
                       "  for y.0 in 0..floordiv(n + 3, 4) %s { for y.1 in 0..4 %s { for k.0 in 0..%d { for "
                       "k.1 in 0..%d %s {\n"
                       "    block C(y = y.0*4 + y.1 in 0..n, k reduce = k.0*%d + k.1 in 0..70) where y.0*4 + "
                       "y.1 < n && k.0*%d + k.1 < 70 {\n"
                       "      reads A[y, k] writes C[y] init { C[y] = 1.0 } C[y] sum= A[y, k]\n"
                       "    }\n"
                       "  } } } }\n"
                       "}\n",
                       around, spatial, (70 + nk - 1) / nk, nk, reducing, nk, nk);
}

/* A register of a thread holds its own element alone; of shared memory the threads of the other axis have an
 * element each. */
Test(threads, keep_no_more_than_their_own_element)
{
    HAS("buffer C.lanes: f32[1] @local\n",
        after("threads", "cuda", beside("threadIdx.y", "threadIdx.x", 8, "blockIdx.x")));
    HAS("buffer C.lanes: f32[8, n] @shared\n",
        after("threads", "cuda", beside("threadIdx.x", "threadIdx.y", 8, "blockIdx.x")));
    HAS("buffer C.lanes: f32[n] @local\n",
        after(
            "threads", "cuda",
            "program p(symbol n, A: f32[n, 64], out C: f32[n]) {\n"
            "  for b in 0..1 blockIdx.x { for k.0 in 0..2 { for y in 0..n { for k.1 in 0..32 threadIdx.x {\n"
            "    block C(y = y in 0..n, k reduce = k.0*32 + k.1 in 0..64) {\n"
            "      reads A[y, k] writes C[y] init { C[y] = 1.0 } C[y] sum= A[y, k]\n"
            "    }\n"
            "  } } } }\n"
            "}\n"));
}

Test(threads, stand_beside_threads_over_the_elements)
{
    static const char *const axes[][2] = {
        {"threadIdx.y", "threadIdx.x"}, {"threadIdx.x", "threadIdx.y"}, {"threadIdx.x", "threadIdx.z"}};

    for (int i = 0; i < 3; i++)
        for (int nk = 5; nk <= 64; nk += nk < 8 ? 3 : nk) {
            const ir_program *p =
                through("all", "cuda", parse(beside(axes[i][0], axes[i][1], nk, "blockIdx.x")), false);

            cr_assert(p, "%s", tec_context_error(cx));
            for (int64_t n = 0; n <= 9; n += 3)
                same_results(parse(beside("", "", nk, "")), p, n, 5, "all");
        }
}

/* A reduction over two axes at once. */
static const char *on_two_axes(int ny, const char *outer, int nx, const char *inner, const char *around)
{
    return base_format(cx,
                       "program p(symbol n, A: f32[n, 70], out C: f32[n]) {\n"
                       "  for y in 0..n %s { for k.0 in 0..%d { for k.1 in 0..%d %s { for k.2 in 0..%d %s {\n"
                       "    block C(y = y in 0..n, k reduce = k.0*%d + k.1*%d + k.2 in 0..70) where k.0*%d + "
                       "k.1*%d + k.2 < 70 {\n"
                       "      reads A[y, k] writes C[y] init { C[y] = 1.0 } C[y] sum= A[y, k]\n"
                       "    }\n"
                       "  } } } }\n"
                       "}\n",
                       around, (70 + nx * ny - 1) / (nx * ny), ny, outer, nx, inner, nx * ny, nx, nx * ny,
                       nx);
}

Test(threads, of_two_axes_reduce_together)
{
    static const int sizes[][2] = {{4, 8}, {3, 32}, {8, 6}, {2, 64}};

    for (int i = 0; i < 4; i++)
        for (int turn = 0; turn < 2; turn++) {
            int ny = sizes[i][turn], nx = sizes[i][1 - turn];
            const char *outer = turn ? "threadIdx.x" : "threadIdx.y",
                       *inner = turn ? "threadIdx.y" : "threadIdx.x";
            const ir_program *p =
                through("all", "cuda", parse(on_two_axes(ny, outer, nx, inner, "blockIdx.x")), false);

            cr_assert(p, "%s", tec_context_error(cx));
            for (int64_t n = 0; n <= 2; n++)
                same_results(parse(on_two_axes(ny, "", nx, "", "")), p, n, 5, "all");
        }
}

Test(threads, random_shapes)
{
    uint64_t state = 77;

    for (int i = 0; i < 25; i++)
        same_as_serial(1 + (int)base_random_below(&state, 70),
                       base_random_below(&state, 2) ? "threadIdx.x" : "threadIdx.y");
}

/* Memory of a warp that is filled outside of all launches exists once, and so it does where a launch is made
 * of what stands around. */
Test(threads, read_what_was_memory_of_a_warp_outside_of_launches)
{
    const char *text =
        "program p(symbol n, A: f32[6, n], out C: f32[n]) {\n"
        "  buffer W: f32[6, n] @warp\n"
        "  for y in 0..n { for k.0 in 0..2 {\n"
        "    for w in 0..3 { block W(w = k.0*3 + w in 0..6, y = y in 0..n) {\n"
        "      reads A[w, y] writes W[w, y] W[w, y] = A[w, y]\n"
        "    } }\n"
        "    for k.1 in 0..3 threadIdx.y { block C(y = y in 0..n, k reduce = k.0*3 + k.1 in 0..6) {\n"
        "      reads W[k, y] writes C[y] init { C[y] = 1.0 } C[y] sum= W[k, y]\n"
        "    } }\n"
        "  } }\n"
        "}\n";

    HAS("buffer W: f32[6, n] @shared\n", after("threads", "cuda", text));
    same_meaning("threads", "cuda", text, SIZES(0, 1, 5));
    same_meaning("all", "cuda", text, SIZES(0, 1, 5));
    same_meaning("all", "opencl", text, SIZES(0, 1, 5));
}
