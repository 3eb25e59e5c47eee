/* tests/schedule/api.c -- each function of tec/schedule.h takes the step that its line in a trace says, and
 * gives the names that it made. */
#include "ir/build.h"
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(schedule_api, .init = open_context, .fini = close_context);

static const char two[] = "def f(n, A: f32[24, 30], B: f32[30, 16]) {\n"
                          "  P[y, k] = A[y, k] * 2\n"
                          "  C[y, x] = sum[k](P[y, k] * B[k, x])\n"
                          "  D[y, x] = C[y, x] + 1\n"
                          "  return D\n}";
static const char stencil[] =
    "def f(A: f32[34]) { P[i] = A[i] * 2 C[i: 32] = P[i] + P[i + 1] + P[i + 2] return C }";

/* The trace is this, and a replay of it gives the same tree. */
static void traces(const sched *s, const char *text, const char *expected)
{
    sched *again = schedule_of(text);

    cr_assert(!sched_failed(s), "%s", sched_error(s));
    cr_assert_str_eq(sched_trace_text(cx, s), expected);
    does(again, expected);
    cr_assert_str_eq(tree_text(again), tree_text(s));
}

static void are_loops(const sched *s, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        cr_assert(names[i] && sched_loop(s, names[i]), "result %d", i);
}

Test(schedule_api, loops)
{
    sched *s = schedule_of(two);
    const char *k[3], *y[2], *d[4];

    cr_assert(tec_split(s, "C.k", k, TEC_INFER, 5, 2));
    cr_assert(tec_split_tail(s, "C.y", TEC_SHIFT_INWARDS, y, TEC_INFER, 12));
    are_loops(s, k, 3);
    are_loops(s, y, 2);
    cr_assert(tec_reorder(s, y[0], k[0], y[1], k[1]));
    cr_assert(tec_tile(s, "D.y", "D.x", 6, 8, d));
    are_loops(s, d, 4);
    cr_assert(tec_cut(s, "P.y", 10, y));
    are_loops(s, y, 2);
    const char *fused = tec_fuse(s, d[0], d[1]);
    are_loops(s, &fused, 1);
    cr_assert(tec_parallel(s, fused) && tec_vectorize(s, d[3]) && tec_unroll(s, d[2]));
    traces(s, two,
           "C.k.0, C.k.1, C.k.2 = split(C.k, _, 5, 2)\n"
           "C.y.0, C.y.1 = split(C.y, _, 12, shift_inwards)\n"
           "reorder(C.y.0, C.k.0, C.y.1, C.k.1)\n"
           "D.y.0, D.x.0, D.y.1, D.x.1 = tile(D.y, D.x, 6, 8)\n"
           "P.y.0, P.y.1 = cut(P.y, 10)\n"
           "D.y.0~D.x.0 = fuse(D.y.0, D.x.0)\n"
           "parallel(D.y.0~D.x.0)\nvectorize(D.x.1)\nunroll(D.y.1)\n");
}

Test(schedule_api, a_refused_step_gives_no_names)
{
    sched *s = schedule_of(two);
    const char *out[4] = {"a", "b", "c", "d"};

    cr_assert(!tec_tile(s, "D.y", "D.x", 0, 8, out));
    for (int i = 0; i < 4; i++)
        cr_assert_null(out[i]);
    cr_assert_null(tec_fuse(s, "D.y", "C.x"));
    cr_assert_null(tec_cache_read(s, "A", "nowhere", "P"));
    cr_assert_str_eq(sched_trace_text(cx, s), "");
}

Test(schedule_api, places)
{
    sched *s = schedule_of(two);

    cr_assert(tec_compute_at(s, "P", "C.y") && tec_reverse_compute_at(s, "D", "C.y") &&
              tec_compute_root(s, "P") && tec_compute_inline(s, "P"));
    traces(s, two, "compute_at(P, C.y)\nreverse_compute_at(D, C.y)\ncompute_root(P)\ncompute_inline(P)\n");
    s = schedule_of(two);
    cr_assert_str_eq(tec_cache_write(s, "C", "local"), "C.cache.local");
    cr_assert(tec_reverse_inline(s, "D"));
    traces(s, two, "C.cache.local = cache_write(C, local)\nreverse_inline(D)\n");
    s = schedule_of(two);
    cr_assert(tec_compute_inline_within(s, "P", 100));
    traces(s, two, "compute_inline(P, 100)\n");
    s = schedule_of("def f(A: f32[64]) { P[i: 61] = A[i] * A[i + 1] + A[i + 2] * A[i + 3] "
                    "C[i: 16] = P[i] * P[i + 15] + P[i + 30] * P[i + 45] return C }");
    cr_assert_not(tec_compute_inline_within(s, "P", 5));
    cr_assert(strstr(sched_error((sched *)s), "the limit is 5"), "%s", sched_error((sched *)s));
}

Test(schedule_api, cut_at_takes_a_text)
{
    static const char joined[] = "def f(n, A: f32[n], B: f32[7]) {\n"
                                 "  C[i: n + 7] = select(i < n, A[i], B[i - n]) return C }";
    sched *s = schedule_of(joined);
    const char *part[2];

    cr_assert(tec_cut_at(s, "C.i", "n + 2", part));
    are_loops(s, part, 2);
    traces(s, joined, "C.i.0, C.i.1 = cut(C.i, n + 2)\n");
    cr_assert_not(tec_cut_at(s, "C.i.1", NULL, part));
    cr_assert(sched_failed(s) && !part[0] && !part[1]);
}

Test(schedule_api, caches)
{
    sched *s = schedule_of(two);

    cr_assert_str_eq(tec_cache_read(s, "P", "local", "C"), "P.cache.local");
    cr_assert_str_eq(tec_cache_read_n(s, "B", "global", NULL, 0), "B.cache.global");
    cr_assert_str_eq(tec_cache_write_at(s, "C", "local", "C.y"), "C.cache.local");
    cr_assert(tec_set_scope(s, "P", "shared"));
    traces(s, two,
           "P.cache.local = cache_read(P, local, C)\nB.cache.global = cache_read(B, global)\n"
           "C.cache.local = cache_write(C, local, C.y)\nset_scope(P, shared)\n");
}

Test(schedule_api, reductions)
{
    sched *s = schedule_of(two);
    const char *k[2];

    cr_assert(tec_split(s, "C.k", k, TEC_INFER, 5));
    cr_assert_str_eq(tec_rfactor(s, k[0], 1), "C.rf");
    cr_assert_str_eq(tec_decompose_reduction(s, "C", "C.y"), "C.init");
    traces(
        s, two,
        "C.k.0, C.k.1 = split(C.k, _, 5)\nC.rf = rfactor(C.k.0, 1)\nC.init = decompose_reduction(C, C.y)\n");
}

Test(schedule_api, memory)
{
    sched *s = schedule_of(two);

    cr_assert(tec_storage_align(s, "P", 0, 32, 1) && tec_prefetch(s, "B", "C.k", 2));
    cr_assert(tec_transform_layout(s, "C", "(y, x) -> (floordiv(x, 8), y, x % 8)", NULL));
    traces(s, two,
           "storage_align(P, 0, 32, 1)\nprefetch(B, C.k, 2)\ntransform_layout(C, (y, x) -> (floordiv(x, 8), "
           "y, x % 8))\n");
    s = schedule_of(two);
    cr_assert(tec_buffer_bind(s, "P", "(32, 1)", 4, 16) && tec_pragma(s, "C", "note", ir_int(cx, 3)));
    cr_assert_str_eq(tec_blockize(s, "D.x"), "D");
    traces(s, two, "buffer_bind(P, (32, 1), 4, 16)\npragma(C, note, 3)\nD = blockize(D.x)\n");
}

Test(schedule_api, steps_in_time)
{
    sched *s = schedule_of(stencil);
    static const char *const blocks[] = {"P", "C"};
    static const int64_t stages[] = {0, 1};

    cr_assert(tec_compute_at(s, "P", "C.i"));
    cr_assert_str_eq(tec_rolling_buffer(s, "P", "C.i"), "P'2");
    traces(s, stencil, "compute_at(P, C.i)\nP'2 = rolling_buffer(P, C.i)\n");
    s = schedule_of(two);
    cr_assert(tec_compute_at(s, "P", "C.y") && tec_pipeline(s, "C.y", blocks, stages, 2, false));
    traces(s, two, "compute_at(P, C.y)\npipeline(C.y, P, C, 0, 1)\n");
    s = schedule_of(two);
    cr_assert(tec_compute_at(s, "P", "C.y") && tec_double_buffer(s, "C.y", false));
    traces(s, two, "compute_at(P, C.y)\ndouble_buffer(C.y)\n");
}

Test(schedule_api, threads)
{
    static const char sums[] =
        "def f(n, m, A: f32[n, 7]) { P[y] = sum[k](A[y, k]) C[y, x: m] = P[y] * 2.0 return C }";
    sched *s = schedule_of(two);
    const char *out[2], *y[2];

    cr_assert(tec_split(s, "D.y", y, TEC_INFER, 4));
    cr_assert(tec_bind(s, y[1], "threadIdx.y") && tec_bind(s, "D.x", "threadIdx.x"));
    cr_assert(tec_env_threads(s, y[0], out, "threadIdx.y", "threadIdx.x"));
    are_loops(s, out, 2);
    traces(s, two,
           "D.y.0, D.y.1 = split(D.y, _, 4)\nbind(D.y.1, threadIdx.y)\nbind(D.x, threadIdx.x)\n"
           "D.y.0.threadIdx.y, D.y.0.threadIdx.x = env_threads(D.y.0, threadIdx.y, threadIdx.x)\n");
    s = schedule_of(sums);
    cr_assert(tec_compute_at(s, "P", "C.x") && tec_store_predicate(s, "P", "C.x"));
    traces(s, sums, "compute_at(P, C.x)\nstore_predicate(P, C.x)\n");
}
