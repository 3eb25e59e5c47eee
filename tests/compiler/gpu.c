/* tests/compiler/gpu.c -- schedules for GPUs from a definition to the lowered program, which the interpreter runs thread by thread. */
#include "ir/build.h"
#include "ir/walk.h"
#include "lower/pass.h"
#include "tests/schedule/run.h"

TestSuite(gpu, .init = open_context, .fini = close_context);

/* The matrix product with a tile of both inputs in shared memory, which the threads of a block fetch together. */
#define MATMUL                                                                                                   \
    "def mm(A: f32[32, 24], B: f32[24, 32]) {\n"                                                             \
    "  C[y: 32, x: 32] = sum[k](A[y, k] * B[k, x])\n  return C\n"                                                    \
    "}\n"

#define COOPERATIVE                                                                                              \
    "by, ty, yi = split(C.y, _, 4, 2)\n"                                                                         \
    "bx, tx, xi = split(C.x, _, 4, 2)\n"                                                                         \
    "ko, ki = split(C.k, _, 8)\n"                                                                                \
    "reorder(by, bx, ko, ty, tx, ki, yi, xi)\n"                                                                  \
    "cache_read(A, shared)\n"                                                                                    \
    "cache_read(B, shared)\n"                                                                                    \
    "compute_at(A.cache.shared, ko)\n"                                                                           \
    "compute_at(B.cache.shared, ko)\n"                                                                           \
    "bind(by, blockIdx.y)\n"                                                                                     \
    "bind(bx, blockIdx.x)\n"                                                                                     \
    "bind(ty, threadIdx.y)\n"                                                                                    \
    "bind(tx, threadIdx.x)\n"                                                                                    \
    FETCH("A.cache.shared") FETCH("B.cache.shared")

/* The elements of a tile are dealt out to the threads. */
#define FETCH(T)                                                                                                 \
    "f = fuse(" T ".ax0, " T ".ax1)\n"                                                                           \
    "f0, fy, fx = split(f, _, 4, 4)\n"                                                                           \
    "bind(fy, threadIdx.y)\n"                                                                                    \
    "bind(fx, threadIdx.x)\n"

static const ir_program *scheduled(const char *trace)
{
    sched *s = schedule_of(MATMUL);

    cr_assert(sched_replay(s, "test.sch", trace), "%s", sched_error(s));
    return sched_tree(s);
}

static const ir_program *lowered(const ir_program *tree)
{
    const ir_program *p = lower_run(&(lower_options){.cx = cx, .target = target_parse(cx, "cuda")}, tree);

    cr_assert(p, "%s", tec_context_error(cx));
    return p;
}

/* ---- barriers ---- */

typedef struct {
    ir_rewrite rw;
    int seen, leave_out;
} remover;

static const ir_stmt *remove_one(ir_rewrite *rw, const ir_stmt *s)
{
    remover *r = (remover *)rw;

    if (s->kind == IR_EVALUATE && s->value->op == IR_CALL && base_same(s->value->call.name, IR_CALL_BARRIER))
        return r->seen++ == r->leave_out ? ir_nothing(rw->cx) : s;
    return ir_rewrite_stmt_children(rw, s);
}

/* p without the barrier of that number; how many there are. */
static const ir_program *without(const ir_program *p, int which, int *total)
{
    remover r = {.rw = {.cx = cx, .stmt = remove_one, .no_memo = true}, .leave_out = which};
    ir_program *out = ir_program_copy(cx, p);

    out->body = ir_rewrite_stmt(&r.rw, p->body);
    *total = r.seen;
    return out;
}

static void needs_each_barrier(const ir_program *tree, int expected)
{
    const ir_program *p = lowered(tree);
    const char *fault;
    int total;

    means_the_same(sched_tree(schedule_of(MATMUL)), p);
    without(p, -1, &total);
    cr_assert_eq(total, expected, "%d barriers:\n%s", total, ir_program_text(cx, p));
    for (int i = 0; i < total; i++) {
        run_program(without(p, i, &total), 1, &fault);
        cr_assert(fault && strstr(fault, "race"), "without barrier %d: %s\n%s", i, fault ? fault : "no fault", ir_program_text(cx, p));
    }
}

Test(gpu, a_matrix_product_with_cooperative_fetching_needs_each_of_its_barriers)
{
    needs_each_barrier(scheduled(COOPERATIVE), 2);
}
