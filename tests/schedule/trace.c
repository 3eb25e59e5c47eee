/* tests/schedule/trace.c -- traces print, parse and replay; the C functions make the same steps. */
#include "tec/schedule.h"
#include "tests/plain.h"
#include "tests/schedule/run.h"

TestSuite(trace, .init = open_context, .fini = close_context);

static const char square[] =
    "def mm(A: f32[12, 12], B: f32[12, 12]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";
static const char other[] =
    "def mm(A: f32[7, 9], B: f32[9, 10]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";
static const char small[] =
    "def mm(A: f32[3, 9], B: f32[9, 10]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";

Test(trace, prints_what_was_applied)
{
    sched *s = schedule_of(square);
    const char *y[2];

    cr_assert(sched_split(s, "C.y", TEC_GUARD, y, (int64_t[]){TEC_INFER, 5}, 2));
    cr_assert(sched_split(s, y[1], TEC_SHIFT_INWARDS, NULL, (int64_t[]){1, 5}, 2));
    cr_assert(sched_reorder(s, (const char *[]){"C.k", "C.x"}, 2));
    cr_assert(sched_annotate(s, "C.x", IR_VECTORISED));
    cr_assert(sched_cache_read(s, "A", "local", NULL, 0));
    cr_assert(strcmp(sched_trace_text(cx, s), "C.y.0, C.y.1 = split(C.y, _, 5)\n"
                                              "C.y.1.0, C.y.1.1 = split(C.y.1, 1, 5, shift_inwards)\n"
                                              "reorder(C.k, C.x)\n"
                                              "vectorize(C.x)\n"
                                              "A.cache.local = cache_read(A, local)\n") == 0,
              "%s", sched_trace_text(cx, s));
}

Test(trace, replays_on_the_same_definition_to_the_same_tree)
{
    sched *a = schedule_of(square), *b = schedule_of(square);

    cr_assert(sched_replay(a, "a",
                           "y0, y1 = split(C.y, _, 4)\nx0, x1, x2 = split(C.x, _, 2, 2)\nreorder(y0, x0, "
                           "C.k, y1)\nparallel(y0)"),
              "%s", sched_error(a));
    cr_assert(sched_replay(b, "b", sched_trace_text(cx, a)), "%s", sched_error(b));
    cr_assert(strcmp(tree_text(a), tree_text(b)) == 0);
    cr_assert(strcmp(sched_trace_text(cx, a), sched_trace_text(cx, b)) == 0);
}

Test(trace, replays_on_another_shape)
{
    sched *a = schedule_of(square), *b = schedule_of(other);
    const ir_program *before = sched_tree(b);

    cr_assert(sched_replay(a, "a",
                           "y0, y1 = split(C.y, _, 4)\nx0, x1 = split(C.x, _, 4)\nreorder(y0, x0, C.k, y1, "
                           "x1)\nparallel(y0)\nvectorize(x1)"));
    cr_assert(sched_replay(b, "b", sched_trace_text(cx, a)), "%s", sched_error(b));
    means_the_same(before, sched_tree(b));
}

Test(trace, a_replay_that_fails_names_step_and_reason_and_changes_nothing)
{
    sched *s = schedule_of(small);
    const ir_program *before = sched_tree(s);

    cr_assert(sched_replay(s, "ok", "unroll(C.y)\n"));
    before = sched_tree(s);
    cr_assert_not(sched_replay(s, "mm.sched", "reorder(C.k, C.x)\n\nsplit(C.x, 2, 3)\nunroll(C.k)\n"));
    cr_assert(strcmp(plain(cx, sched_error(s)),
                     "mm.sched:3: split(C.x, 2, 3): the factors make 6 iterations; it is not "
                     "proven that they reach the extent 10 of "
                     "'C.x'") == 0,
              "%s", sched_error(s));
    cr_assert(sched_tree(s) == before);
    cr_assert(strcmp(sched_trace_text(cx, s), "unroll(C.y)\n") == 0);
}

Test(trace, names_an_unknown_primitive)
{
    sched *s = schedule_of(square);

    cr_assert_not(sched_replay(s, "x.sched", "unrol(C.y)"));
    cr_assert(strstr(sched_error(s), "x.sched:1:1: error: there is no primitive 'unrol'"), "%s",
              sched_error(s));
    cr_assert(tec_context_status(cx) == TEC_OK);
    sched_clear(s);
    cr_assert(sched_replay(s, "x.sched", "unroll(C.y)"));
}

Test(trace, reports_bad_syntax_with_its_line)
{
    static const char *const bad[] = {"split(C.y, _, 4",
                                      "split C.y",
                                      "a, = split(C.y, _, 4)",
                                      "split(C.y _ 4)",
                                      "cut(C.y, x)",
                                      "reorder(C.y,)",
                                      "split(,)",
                                      "4"};

    for (int i = 0; i < BASE_COUNT(bad); i++) {
        sched *s = schedule_of(square);
        cr_assert_not(sched_replay(s, "x.sched", bad[i]), "accepted: %s", bad[i]);
        cr_assert(strstr(plain(cx, sched_error(s)), "x.sched:1: "), "%s", sched_error(s));
        cr_assert(tec_context_status(cx) == TEC_OK);
    }
}

Test(trace, counts_named_results)
{
    sched *s = schedule_of(square);

    cr_assert_not(sched_replay(s, "x.sched", "a, b, c = split(C.y, _, 4)"));
    cr_assert(strstr(sched_error(s), "split gives 2 results, but 3 are named"), "%s", sched_error(s));
}

Test(trace, a_refused_step_refuses_those_that_use_its_results)
{
    sched *s = schedule_of(square);
    const char *y[2];

    cr_assert_not(sched_split(s, "C.y", TEC_GUARD, y, (int64_t[]){2, 2}, 2));
    cr_assert(!y[0] && !y[1]);
    cr_assert_not(sched_annotate(s, y[1], IR_UNROLLED));
    cr_assert(strstr(sched_error(s), "the factors make 4 iterations"), "%s", sched_error(s));
    sched_clear(s);
    cr_assert_not(sched_annotate(s, y[1], IR_UNROLLED));
    cr_assert(strcmp(sched_error(s), "unroll((none)): the step names a loop or block that does not exist, "
                                     "because an earlier step was refused") == 0,
              "%s", sched_error(s));
}

Test(trace, a_fork_goes_its_own_way)
{
    sched *s = schedule_of(square);

    cr_assert(sched_replay(s, "a", "unroll(C.y)"));
    sched *f = sched_fork(cx, s);
    cr_assert(sched_replay(f, "b", "unroll(C.x)"));
    cr_assert(strcmp(sched_trace_text(cx, s), "unroll(C.y)\n") == 0);
    cr_assert(strcmp(sched_trace_text(cx, f), "unroll(C.y)\nunroll(C.x)\n") == 0);
    cr_assert(sched_loop(s, "C.x")->loop.how == IR_SERIAL);
}

Test(trace, the_public_functions_blame_the_users_line)
{
    tec_def *d = tec_def_parse(cx, "mm.te", square, 0);
    tec_schedule *s = tec_schedule_new(cx, d, NULL);
    const char *y[2];

    cr_assert(tec_split(s, "C.y", y, TEC_INFER, 4));
    cr_assert(tec_reorder(s, y[0], "C.k", y[1], "C.x"));
    cr_assert(tec_vectorize(s, "C.x"));
    cr_assert_null(tec_schedule_error(s));
    int line = __LINE__ + 1;
    cr_assert_not(tec_unroll(s, "nothing"));
    cr_assert(strstr(tec_schedule_error(s),
                     base_format(cx, "trace.c:%d: unroll(nothing): there is no loop 'nothing'", line)),
              "%s", tec_schedule_error(s));
    tec_schedule_clear(s);
    cr_assert(tec_schedule_replay(s, "t", "parallel(C.y.0)"));
    cr_assert(strstr(tec_schedule_trace(s), "parallel(C.y.0)\n"));
    cr_assert(strstr(tec_schedule_tree(s), "vectorised"));
}

/* ---- looking ---- */

Test(trace, the_tree_can_be_asked)
{
    sched *s = schedule_of("def f(A: f32[6, 10]) { S[y] = sum[k](A[y, k]) @role(anchor) D[y, x] = A[y, x] - "
                           "S[y] E[y] = S[y] return D, E }");
    const char **names;
    int64_t n;

    cr_assert(sched_blocks(s, &names) == 3 && strcmp(names[1], "D") == 0);
    cr_assert(strcmp(sched_block_with_role(s, IR_ROLE_ANCHOR), "S") == 0);
    cr_assert_null(sched_block_with_role(s, IR_ROLE_EPILOGUE));
    cr_assert(sched_extent(s, "S.k", &n) && n == 10);
    cr_assert_not(sched_extent(s, "nothing", &n));
    cr_assert(sched_loop_kind(s, "S.k") == IR_REDUCE_ITER && sched_loop_kind(s, "S.y") == IR_SPATIAL);
    cr_assert(sched_readers_of(s, "S", &names) == 2 && strcmp(names[0], "D") == 0 &&
              strcmp(names[1], "E") == 0);
    cr_assert(sched_producers_of(s, "E", &names) == 1 && strcmp(names[0], "S") == 0);
}

/* ---- other shapes ---- */

/* One definition in several sizes: 20 rows, 33, or n. */
static const char *sized(const char *rows, const char *symbols)
{
    return base_format(cx,
                       "def f(%sA: f32[%s + 2, 12], B: f32[12, 8]) {\n"
                       "  P[y: %s + 2, k] = A[y, k] * 2\n"
                       "  C[y: %s, x] = sum[k: 12](P[y, k] * B[k, x])\n"
                       "  D[y, x] = C[y, x] + P[y + 2, x]\n"
                       "  return D\n}",
                       symbols, rows, rows, rows);
}

static const char *const portable[] = {
    "split(D.y, _, 5)\nparallel(D.y.0)\nunroll(D.y.1)\n",
    "D.y.0, D.y.1, D.y.2 = split(D.y, _, 2, 3)\nreorder(D.y.0, D.y.2, D.y.1)\n",
    "C.y.0, C.x.0, C.y.1, C.x.1 = tile(C.y, C.x, 4, 8)\nvectorize(C.x.1)\n",
    "cut(D.y, 7)\n",
    "fuse(D.y, D.x)\nsplit(D.y~D.x, _, 16)\n",
    "split(D.y, _, 4)\ncompute_at(C, D.y.0)\ncompute_root(C)\n",
    "reverse_compute_at(D, C.y)\n",
    "compute_inline(P)\n",
    "cache_write(C, local)\nreverse_inline(D)\n",
    "cache_read(P, local, C)\ncache_write(C, local, C.y)\n",
    "decompose_reduction(C, C.k)\n",
    "split(C.k, _, 4)\nrfactor(C.k.1, 0)\n",
    "set_scope(P, local)\nstorage_align(P, 0, 16, 1)\n",
    "buffer_bind(P, (16, 1), 4, 16)\n",
    "transform_layout(P, (y, k) -> (floordiv(y, 8), k, y % 8))\ncompute_inline(P)\n",
    "transform_layout(P, (y, k) -> (y, k), 0)\npragma(D.y, auto_unroll, 4)\n",
    "prefetch(P, C.y, 2)\nbind(D.y, vthread)\n",
};

/* The trace as it prints (inferred factors are still `_`) on the other sizes: accepted, and it means the same
 * there. */
Test(trace, steps_are_replayed_on_other_shapes)
{
    const char *size[][2] = {{"20", ""}, {"33", ""}, {"n", "n, "}};

    for (int i = 0; i < BASE_COUNT(portable); i++) {
        const char *constant = strstr(portable[i], "vthread") ? "bind(D.y, vthread)"
                               : strstr(portable[i], "cut")   ? "cut(D.y, 7)"
                                                              : NULL;
        sched *s = schedule_of(sized(size[0][0], size[0][1]));

        does(s, portable[i]);
        const char *trace = sched_trace_text(cx, s);
        for (int k = 1; k < BASE_COUNT(size); k++) {
            sched *there = schedule_of(sized(size[k][0], size[k][1]));

            if (constant && k == 2)
                cr_assert(!sched_replay(there, "t", trace) && strstr(sched_error(there), constant), "%s",
                          sched_error(there));
            else
                does(there, trace);
        }
    }
}

/* What depends on the shape says at which step, and why. */
Test(trace, a_step_that_another_shape_does_not_allow_is_named)
{
    static const struct {
        const char *trace, *error;
    } cases[] = {
        {"split(D.x, _, 4)\nsplit(D.y, 4, 5)\n", "t:2: split(D.y, 4, 5): the factors make 20 iterations; it "
                                                 "is not proven that they reach the extent 33 of 'D.y'"},
        {"parallel(D.y)\nset_scope(P, local)\nbuffer_bind(P, (1, 22), 0, 0)\n",
         "t:3: buffer_bind(P, (1, 22), 0, 0): cannot prove that the strides give each element of 'P' an "
         "address of its own"},
        {"split(D.y, _, 4, round_up)\n", "t:1: split(D.y, _, 4, round_up): rounded up, 'D' would write index "
                                         "y of 'D', which is not proven to lie within 0..33"},
        {"transform_layout(P, (y, k) -> (y, k ^ y % 4))\ntransform_layout(C, (y, x) -> (x, y % 20))\n",
         "t:2: transform_layout(C, (y, x) -> (x, y % 20)): the map is not proven to be one-to-one: the "
         "parts of 'y' in use tell 20 values apart, but it takes 33"},
    };

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        sched *s = schedule_of(sized("20", "")), *there = schedule_of(sized("33", ""));
        const ir_program *before = sched_tree(there);

        does(s, cases[i].trace);
        cr_assert(!sched_replay(there, "t", cases[i].trace), "%s is accepted", cases[i].trace);
        cr_assert_str_eq(plain(cx, sched_error(there)), cases[i].error);
        cr_assert(sched_tree(there) == before);
    }
}
