/* tests/compiler/gpu.c -- schedules for GPUs from a definition to the lowered program, which the interpreter
 * runs thread by thread. */
#include "lower/pass.h"
#include "tests/schedule/run.h"

#include "tests/lower/remove.h"

TestSuite(gpu, .init = open_context, .fini = close_context);

/* The matrix product of section 4.2 of the TVM paper: a tile of both inputs in shared memory, which the
 * threads of a block fetch together. EDGE is a size that tiles need not divide. */
#define MATMUL(EDGE)                                                                                         \
    "def mm(n, A: f32[" EDGE ", 24], B: f32[24, " EDGE "]) {\n"                                              \
    "  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n"                                                    \
    "}\n"

/* The elements of a tile are dealt out to the threads. */
#define FETCH(T)                                                                                             \
    "f = fuse(" T ".ax0, " T ".ax1)\n"                                                                       \
    "f0, fy, fx = split(f, _, 4, 4)\n"                                                                       \
    "bind(fy, threadIdx.y)\n"                                                                                \
    "bind(fx, threadIdx.x)\n"

#define SHARED                                                                                               \
    "cache_read(A, shared)\n"                                                                                \
    "cache_read(B, shared)\n"                                                                                \
    "compute_at(A.cache.shared, ko)\n"                                                                       \
    "compute_at(B.cache.shared, ko)\n"                                                                       \
    "bind(by, blockIdx.y)\n"                                                                                 \
    "bind(bx, blockIdx.x)\n"                                                                                 \
    "bind(ty, threadIdx.y)\n"                                                                                \
    "bind(tx, threadIdx.x)\n" FETCH("A.cache.shared") FETCH("B.cache.shared")

#define COOPERATIVE                                                                                          \
    "by, ty, yi = split(C.y, _, 4, 2)\n"                                                                     \
    "bx, tx, xi = split(C.x, _, 4, 2)\n"                                                                     \
    "ko, ki = split(C.k, _, 8)\n"                                                                            \
    "reorder(by, bx, ko, ty, tx, ki, yi, xi)\n" SHARED

/* Each thread computes four tiles, far apart, as though it were four. */
#define VIRTUAL                                                                                              \
    "by, vy, ty, yi = split(C.y, _, 2, 4, 1)\n"                                                              \
    "bx, vx, tx, xi = split(C.x, _, 2, 4, 1)\n"                                                              \
    "ko, ki = split(C.k, _, 8)\n"                                                                            \
    "reorder(by, bx, ko, vy, vx, ty, tx, ki, yi, xi)\n" SHARED "bind(vy, vthread)\n"                         \
    "bind(vx, vthread)\n"

static const ir_program *scheduled(const char *definition, const char *trace)
{
    sched *s = schedule_of(definition);

    cr_assert(sched_replay(s, "test.sch", trace), "%s\n%s", sched_error(s),
              ir_program_text(cx, sched_tree(s)));
    return sched_tree(s);
}

/* Without fused multiply-adds, so that results are those of the tree to the last bit. */
static const ir_program *lowered(const ir_program *tree)
{
    const target *cuda = target_parse(cx, "cuda");
    target *apart = base_copy(cx, cuda, sizeof *cuda);

    apart->has_fma = false;
    const ir_program *p = lower_run(&(lower_options){.cx = cx, .target = apart}, tree);

    cr_assert(p, "%s\n%s", tec_context_error(cx), ir_program_text(cx, tree));
    return p;
}

static const char *fault_without(const ir_program *p, int which)
{
    const char *fault = NULL;
    int total;

    for (uint64_t seed = 1; seed <= 8 && !fault; seed++)
        run_program(without(p, which, &total), seed, &fault);
    return fault;
}

/* The schedule keeps the meaning in the tree and lowered; it has that many barriers, and none too many:
 * without any one of them the interpreter finds a race, or a read of what another thread has yet to write. */
static const ir_program *needs_each_barrier(const char *definition, const char *trace, int expected)
{
    const ir_program *tree = scheduled(definition, trace), *plain = sched_tree(schedule_of(definition)),
                     *p = lowered(tree);
    int total;

    means_the_same(plain, tree);
    means_the_same(plain, p);
    without(p, -1, &total);
    cr_assert_eq(total, expected, "%d barriers:\n%s", total, ir_program_text(cx, p));
    for (int i = 0; i < total; i++) {
        const char *fault = fault_without(p, i);

        cr_assert(fault && blames_order(fault), "without barrier %d: %s\n%s", i, fault ? fault : "no fault",
                  ir_program_text(cx, p));
    }
    return p;
}

Test(gpu, a_matrix_product_with_cooperative_fetching)
{
    needs_each_barrier(MATMUL("32"), COOPERATIVE, 2);
    needs_each_barrier(MATMUL("n"), COOPERATIVE, 2);
    needs_each_barrier(MATMUL("19"), COOPERATIVE, 2);
}

Test(gpu, a_matrix_product_on_virtual_threads)
{
    needs_each_barrier(MATMUL("32"), VIRTUAL, 2);
    needs_each_barrier(MATMUL("n"), VIRTUAL, 2);
}

Test(gpu, a_double_buffered_matrix_product)
{
    needs_each_barrier(MATMUL("32"), COOPERATIVE "double_buffer(ko)\n", 2);
    needs_each_barrier(MATMUL("n"), COOPERATIVE "double_buffer(ko)\n", 2);
    needs_each_barrier(MATMUL("n"), COOPERATIVE "pipeline(ko, C, A.cache.shared, B.cache.shared, 1, 0, 0)\n",
                       2);
    needs_each_barrier(MATMUL("n"), COOPERATIVE "pipeline(ko, C, A.cache.shared, B.cache.shared, 2, 0, 1)\n",
                       3);
}

Test(gpu, a_matrix_product_with_asynchronous_copies)
{
    needs_each_barrier(MATMUL("32"), COOPERATIVE "double_buffer(ko, async)\n", 8);
    needs_each_barrier(MATMUL("n"), COOPERATIVE "double_buffer(ko, async)\n", 8);
    needs_each_barrier(MATMUL("n"),
                       COOPERATIVE "pipeline(ko, C, A.cache.shared, B.cache.shared, 1, 0, 0, async)\n", 6);
    needs_each_barrier(MATMUL("n"),
                       COOPERATIVE "pipeline(ko, C, A.cache.shared, B.cache.shared, 2, 0, 0, async)\n", 10);
    needs_each_barrier(MATMUL("n"), VIRTUAL "double_buffer(ko, async)\n", 8);
}

Test(gpu, a_double_buffered_matrix_product_on_virtual_threads)
{
    needs_each_barrier(MATMUL("32"), VIRTUAL "double_buffer(ko)\n", 2);
    needs_each_barrier(MATMUL("n"), VIRTUAL "double_buffer(ko)\n", 2);
}

#define SOFTMAX                                                                                              \
    "def softmax(n, A: f32[n, 70]) {\n"                                                                      \
    "  M[y] = max[k](A[y, k])\n  E[y, x] = A[y, x] - M[y]\n  S[y] = sum[k](E[y, k] * E[y, k])\n  D[y, x] = " \
    "E[y, x] * S[y]\n  return D\n"                                                                           \
    "}\n"

/* One block for each row; its threads find the maximum, the sum, and the results. */
#define ROWS(N)                                                                                              \
    "compute_inline(E)\nbind(D.y, blockIdx.x)\n"                                                             \
    "compute_at(S, D.y)\ncompute_at(M, D.y)\nset_scope(S, shared)\nset_scope(M, shared)\n"                   \
    "m0, m1 = split(M.k, _, " N ")\nbind(m1, threadIdx.x)\n"                                                 \
    "s0, s1 = split(S.k, _, " N ")\nbind(s1, threadIdx.x)\n"                                                 \
    "d0, d1 = split(D.x, _, " N ")\nbind(d1, threadIdx.x)\n"

Test(gpu, rows_that_threads_reduce_by_shuffles)
{
    const char *text = ir_program_text(cx, needs_each_barrier(SOFTMAX, ROWS("32"), 2));

    cr_assert(strstr(text, "tec.shuffle_xor(M.lanes[0], 16)") &&
                  strstr(text, "tec.shuffle_xor(S.lanes[0], 1)"),
              "%s", text);
    needs_each_barrier(SOFTMAX, ROWS("8"), 2);
}

/* Sums that wait in shared memory between the blocks of the reduction; passes copy the loop that holds the
 * shared tile of A. */
Test(gpu, a_shared_tile_in_copies_of_a_loop_is_allocated_once)
{
    const char *definition =
        "def mm(A: f32[24, 20], B: f32[20, 36]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";
    const ir_program *tree = scheduled(
        definition,
        "cache_write(C, global)\n"
        "xo, xi = split(C.cache.global.x, _, 4)\nyo, yi = split(C.cache.global.y, _, 4)\nreorder(xo, yo, xi, "
        "yi)\n"
        "b = fuse(xo, yo)\ncompute_at(C, b)\nt = fuse(xi, yi)\nt0, t1 = split(t, _, 4)\n"
        "bind(t1, threadIdx.x)\ny0, y1, y2 = split(C.y, 1, 2, 2)\nx0, x1, x2 = split(C.x, 1, 2, 2)\n"
        "k0, k1 = split(C.k, _, 2)\nreorder(k0, y0, x0, y1, x1, k1, y2, x2)\nu = fuse(y1, x1)\n"
        "set_scope(C.cache.global, shared)\ncache_write(C, local, u)\ncache_read(A, shared, C)\n"
        "compute_at(A.cache.shared, k0)\nf = fuse(A.cache.shared.ax0, A.cache.shared.ax1)\nf0, f1 = split(f, "
        "_, 4)\n"
        "bind(f1, threadIdx.x)\nbind(u, threadIdx.x)\nbind(b, blockIdx.x)\n");

    means_the_same(sched_tree(schedule_of(definition)), lowered(tree));
}

Test(gpu, rows_that_threads_reduce_through_shared_memory)
{
    needs_each_barrier(SOFTMAX, ROWS("64"), 14);
    needs_each_barrier(SOFTMAX, ROWS("12"), 8);
}

/* All steps of a recurrence in one launch: each block has a sequence, whose threads wait for each other in
 * each step. */
#define RECURRENCE(N)                                                                                        \
    "def rnn(t, n, X: f32[t, n, 12], U: f32[12, 12]) where t >= 1, n >= " N " {\n"                           \
    "  scan cell[s: t + 1] {\n    init h[s: 1, i: " N ", j: 12] = 0.0\n"                                     \
    "    update g[s, i: " N ", j: 12] = sum[k](h[s - 1, i, k] * U[k, j])\n"                                  \
    "    update h[s, i, j] = g[s, i, 11 - j] * 0.5 + X[s - 1, i, j]\n  }\n  return h\n}\n"

#define ON_THREADS "bind(g.j, threadIdx.x)\nbind(h.j, threadIdx.x)\n"

Test(gpu, a_scan_in_one_launch_with_a_block_for_each_sequence)
{
    needs_each_barrier(RECURRENCE("n"),
                       ON_THREADS "bind(g.i, blockIdx.x)\nbind(h.i, blockIdx.x)\nset_scope(g, "
                                  "shared)\nenv_threads(cell.s, blockIdx.x)\n",
                       2);
}

Test(gpu, a_scan_in_one_launch_of_one_block)
{
    needs_each_barrier(RECURRENCE("3"), ON_THREADS "set_scope(g, shared)\nenv_threads(cell.s, blockIdx.x)\n",
                       2);
}

/* Of the threads of l, which would all store the row, the first one does, and the others find it. */
Test(gpu, of_threads_that_store_the_same_one_stores)
{
    static const char text[] =
        "program f(A: f32[3, 4], out C: f32[3, 6, 4]) {\n  buffer P: f32[3, 4] @shared\n  for b in 0..3 {\n"
        "    for l in 0..6 {\n      for i in 0..4 {\n"
        "        block P(b = b in 0..3, i = i in 0..4) { reads A[b, i] writes P[b, i] P[b, i] = A[b, i] * "
        "3.0 }\n      }\n    }\n"
        "    for m in 0..6 {\n      for j in 0..4 {\n"
        "        block C(b = b in 0..3, m = m in 0..6, j = j in 0..4) { reads P[b, j] writes C[b, m, j] C[b, "
        "m, j] = P[b, j] }\n"
        "      }\n    }\n  }\n}\n";
    sched *s = schedule_of_tree(text);
    const ir_program *plain = sched_tree(s);
    int total;

    does(s, "bind(b, blockIdx.x)\nbind(m, threadIdx.x)");
    refuses(s, "bind(l, threadIdx.x)",
            "it is not proven that iterations of 'l' write distinct elements of 'P'");
    does(s, "store_predicate(P, l)\nbind(l, threadIdx.x)");
    const ir_program *p = lowered(sched_tree(s));
    means_the_same(plain, p);
    without(p, -1, &total);
    cr_assert_eq(total, 1, "%s", ir_program_text(cx, p));
    cr_assert(blames_order(fault_without(p, 0)));
}

/* A product whose rows are summed by the threads of a warp, from double-buffered tiles that all of them
 * fetch. */
#define SPLIT_SUM                                                                                            \
    "y0, y1, yi = split(C.y, _, 4, 2)\n"                                                                     \
    "x0, xi = split(C.x, _, 2)\n"                                                                            \
    "k0, k1 = split(C.k, _, 8)\n"                                                                            \
    "reorder(y0, x0, k0, y1, k1, yi, xi)\n"                                                                  \
    "bind(y0, blockIdx.y)\n"                                                                                 \
    "bind(x0, blockIdx.x)\n"                                                                                 \
    "bind(y1, threadIdx.y)\n"                                                                                \
    "bind(k1, threadIdx.x)\n"                                                                                \
    "cache_read(A, shared)\n"                                                                                \
    "compute_at(A.cache.shared, k0)\n"                                                                       \
    "f = fuse(A.cache.shared.ax0, A.cache.shared.ax1)\n"                                                     \
    "f0, fy, fx = split(f, _, 4, 8)\n"                                                                       \
    "bind(fy, threadIdx.y)\n"                                                                                \
    "bind(fx, threadIdx.x)\n"

Test(gpu, a_matrix_product_whose_sums_are_shared_by_a_warp)
{
    const ir_program *p = needs_each_barrier(MATMUL("16"), SPLIT_SUM, 2);

    cr_assert(strstr(ir_program_text(cx, p), "tec.shuffle_xor"), "%s", ir_program_text(cx, p));
    needs_each_barrier(MATMUL("n"), SPLIT_SUM "double_buffer(k0)\n", 2);
    needs_each_barrier(MATMUL("n"), SPLIT_SUM "double_buffer(k0, async)\n", 8);
}

/* The tile of A is fetched below threadIdx.x, whose threads share that work too. */
#define BELOW_THREADS                                                                                        \
    "by, ty, yi = split(C.y, _, 4, 2)\n"                                                                     \
    "bx, tx, xi = split(C.x, _, 4, 2)\n"                                                                     \
    "ko, ki = split(C.k, _, 8)\n"                                                                            \
    "reorder(by, bx, tx, ko, ty, ki, yi, xi)\n"                                                              \
    "cache_read(A, shared)\n"                                                                                \
    "compute_at(A.cache.shared, ko)\n"                                                                       \
    "f = fuse(A.cache.shared.ax0, A.cache.shared.ax1)\n"                                                     \
    "f0, fy, fx = split(f, _, 4, 4)\n"                                                                       \
    "bind(fy, threadIdx.y)\n"                                                                                \
    "bind(fx, threadIdx.x)\n"                                                                                \
    "bind(by, blockIdx.y)\n"                                                                                 \
    "bind(bx, blockIdx.x)\n"                                                                                 \
    "bind(ty, threadIdx.y)\n"                                                                                \
    "bind(tx, threadIdx.x)\n"

Test(gpu, a_matrix_product_that_fetches_below_a_thread_axis)
{
    needs_each_barrier(MATMUL("16"), BELOW_THREADS, 2);
    needs_each_barrier(MATMUL("n"), BELOW_THREADS, 2);
    needs_each_barrier(MATMUL("n"), BELOW_THREADS "double_buffer(ko)\n", 2);
}
