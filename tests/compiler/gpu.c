/* tests/compiler/gpu.c -- schedules for GPUs from a definition to the lowered program, which the interpreter runs thread by thread. */
#include "ir/build.h"
#include "ir/walk.h"
#include "lower/pass.h"
#include "tests/schedule/run.h"

TestSuite(gpu, .init = open_context, .fini = close_context);

/* The matrix product of section 4.2 of the TVM paper: a tile of both inputs in shared memory, which the threads of a block fetch
 * together. EDGE is a size that tiles need not divide. */
#define MATMUL(EDGE)                                                                                             \
    "def mm(n, A: f32[" EDGE ", 24], B: f32[24, " EDGE "]) {\n"                                                  \
    "  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n"                                                        \
    "}\n"

/* The elements of a tile are dealt out to the threads. */
#define FETCH(T)                                                                                                 \
    "f = fuse(" T ".ax0, " T ".ax1)\n"                                                                           \
    "f0, fy, fx = split(f, _, 4, 4)\n"                                                                           \
    "bind(fy, threadIdx.y)\n"                                                                                    \
    "bind(fx, threadIdx.x)\n"

#define SHARED                                                                                                   \
    "cache_read(A, shared)\n"                                                                                    \
    "cache_read(B, shared)\n"                                                                                    \
    "compute_at(A.cache.shared, ko)\n"                                                                           \
    "compute_at(B.cache.shared, ko)\n"                                                                           \
    "bind(by, blockIdx.y)\n"                                                                                     \
    "bind(bx, blockIdx.x)\n"                                                                                     \
    "bind(ty, threadIdx.y)\n"                                                                                    \
    "bind(tx, threadIdx.x)\n"                                                                                    \
    FETCH("A.cache.shared") FETCH("B.cache.shared")

#define COOPERATIVE                                                                                              \
    "by, ty, yi = split(C.y, _, 4, 2)\n"                                                                         \
    "bx, tx, xi = split(C.x, _, 4, 2)\n"                                                                         \
    "ko, ki = split(C.k, _, 8)\n"                                                                                \
    "reorder(by, bx, ko, ty, tx, ki, yi, xi)\n" SHARED

/* Each thread computes four tiles, far apart, as though it were four. */
#define VIRTUAL                                                                                                  \
    "by, vy, ty, yi = split(C.y, _, 2, 4, 1)\n"                                                                  \
    "bx, vx, tx, xi = split(C.x, _, 2, 4, 1)\n"                                                                  \
    "ko, ki = split(C.k, _, 8)\n"                                                                                \
    "reorder(by, bx, ko, vy, vx, ty, tx, ki, yi, xi)\n" SHARED                                                   \
    "bind(vy, vthread)\n"                                                                                        \
    "bind(vx, vthread)\n"

static const ir_program *scheduled(const char *definition, const char *trace)
{
    sched *s = schedule_of(definition);

    cr_assert(sched_replay(s, "test.sch", trace), "%s\n%s", sched_error(s), ir_program_text(cx, sched_tree(s)));
    return sched_tree(s);
}

static const ir_program *lowered(const ir_program *tree)
{
    const ir_program *p = lower_run(&(lower_options){.cx = cx, .target = target_parse(cx, "cuda")}, tree);

    cr_assert(p, "%s\n%s", tec_context_error(cx), ir_program_text(cx, tree));
    return p;
}

/* ---- barriers, waits and commits ---- */

typedef struct {
    ir_rewrite rw;
    int seen, leave_out;
} remover;

static bool orders(const ir_stmt *s)
{
    const char *name = s->kind == IR_EVALUATE && s->value->op == IR_CALL ? s->value->call.name : NULL;

    return base_same(name, IR_CALL_BARRIER) || base_same(name, IR_CALL_COMMIT) || base_same(name, IR_CALL_WAIT);
}

static const ir_stmt *remove_one(ir_rewrite *rw, const ir_stmt *s)
{
    remover *r = (remover *)rw;

    if (orders(s))
        return r->seen++ == r->leave_out ? ir_nothing(rw->cx) : s;
    return ir_rewrite_stmt_children(rw, s);
}

/* p without the barrier, wait or commit of that number; how many there are. */
static const ir_program *without(const ir_program *p, int which, int *total)
{
    remover r = {.rw = {.cx = cx, .stmt = remove_one, .no_memo = true}, .leave_out = which};
    ir_program *out = ir_program_copy(cx, p);

    out->body = ir_rewrite_stmt(&r.rw, p->body);
    *total = r.seen;
    return out;
}

static const char *fault_without(const ir_program *p, int which)
{
    const char *fault = NULL;
    int total;

    for (uint64_t seed = 1; seed <= 8 && !fault; seed++)
        run_program(without(p, which, &total), seed, &fault);
    return fault;
}

/* The schedule keeps the meaning in the tree and lowered; it has that many barriers, and none too many: without any one of them
 * the interpreter finds a race, or a read of what another thread has yet to write. */
static const ir_program *needs_each_barrier(const char *definition, const char *trace, int expected)
{
    const ir_program *tree = scheduled(definition, trace), *plain = sched_tree(schedule_of(definition)), *p = lowered(tree);
    int total;

    means_the_same(plain, tree);
    means_the_same(plain, p);
    without(p, -1, &total);
    cr_assert_eq(total, expected, "%d barriers:\n%s", total, ir_program_text(cx, p));
    for (int i = 0; i < total; i++) {
        const char *fault = fault_without(p, i);

        cr_assert(fault && (strstr(fault, "race") || strstr(fault, "which nothing has written") || strstr(fault, "not waited for")), "without barrier %d: %s\n%s", i,
                  fault ? fault : "no fault", ir_program_text(cx, p));
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
    needs_each_barrier(MATMUL("n"), COOPERATIVE "pipeline(ko, C, A.cache.shared, B.cache.shared, 1, 0, 0)\n", 2);
    needs_each_barrier(MATMUL("n"), COOPERATIVE "pipeline(ko, C, A.cache.shared, B.cache.shared, 2, 0, 1)\n", 3);
}

Test(gpu, a_matrix_product_with_asynchronous_copies)
{
    needs_each_barrier(MATMUL("32"), COOPERATIVE "double_buffer(ko, async)\n", 8);
    needs_each_barrier(MATMUL("n"), COOPERATIVE "double_buffer(ko, async)\n", 8);
    needs_each_barrier(MATMUL("n"), COOPERATIVE "pipeline(ko, C, A.cache.shared, B.cache.shared, 1, 0, 0, async)\n", 6);
    needs_each_barrier(MATMUL("n"), COOPERATIVE "pipeline(ko, C, A.cache.shared, B.cache.shared, 2, 0, 0, async)\n", 10);
    needs_each_barrier(MATMUL("n"), VIRTUAL "double_buffer(ko, async)\n", 8);
}

Test(gpu, a_double_buffered_matrix_product_on_virtual_threads)
{
    needs_each_barrier(MATMUL("32"), VIRTUAL "double_buffer(ko)\n", 2);
    needs_each_barrier(MATMUL("n"), VIRTUAL "double_buffer(ko)\n", 2);
}

#define SOFTMAX                                                                                                  \
    "def softmax(n, A: f32[n, 70]) {\n"                                                                          \
    "  M[y] = max[k](A[y, k])\n  E[y, x] = A[y, x] - M[y]\n  S[y] = sum[k](E[y, k] * E[y, k])\n  D[y, x] = E[y, x] * S[y]\n  return D\n" \
    "}\n"

/* One block for each row; its threads find the maximum, the sum, and the results. */
#define ROWS(N)                                                                                                  \
    "compute_inline(E)\nbind(D.y, blockIdx.x)\n"                                                                 \
    "compute_at(S, D.y)\ncompute_at(M, D.y)\nset_scope(S, shared)\nset_scope(M, shared)\n"                       \
    "m0, m1 = split(M.k, _, " N ")\nbind(m1, threadIdx.x)\n"                                                     \
    "s0, s1 = split(S.k, _, " N ")\nbind(s1, threadIdx.x)\n"                                                     \
    "d0, d1 = split(D.x, _, " N ")\nbind(d1, threadIdx.x)\n"

Test(gpu, rows_that_threads_reduce_by_shuffles)
{
    const char *text = ir_program_text(cx, needs_each_barrier(SOFTMAX, ROWS("32"), 2));

    cr_assert(strstr(text, "tec.shuffle_xor(M.lanes[0], 16)") && strstr(text, "tec.shuffle_xor(S.lanes[0], 1)"), "%s", text);
    needs_each_barrier(SOFTMAX, ROWS("8"), 2);
}

Test(gpu, rows_that_threads_reduce_through_shared_memory)
{
    needs_each_barrier(SOFTMAX, ROWS("64"), 14);
    needs_each_barrier(SOFTMAX, ROWS("12"), 8);
}
