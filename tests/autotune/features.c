/* tests/autotune/features.c -- rows of features: as long for every program, finite, and telling programs
 * apart. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "autotune/features.h"
#include "space/space.h"
#include "te/text.h"

static tec_context *cx;
static const target *cpu;

static void open_context(void)
{
    cx = tec_context_new();
    cpu = target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=4");
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(features, .init = open_context, .fini = close_context);

static const char *const definitions[] = {
    /* a convolution with padding, bias and ReLU */
    "def conv(X: f32[16, 14, 14], W: f32[32, 16, 3, 3], B: f32[32]) {\n"
    "  P[c: 16, h: 16, w: 16] = select(h >= 1 && h < 15 && w >= 1 && w < 15, X[c, h - 1, w - 1], 0.0)\n"
    "  Y[o: 32, y: 14, x: 14] = sum[c: 16, ky: 3, kx: 3](P[c, y + ky, x + kx] * W[o, c, ky, kx])\n"
    "  Z[o: 32, y: 14, x: 14] = max(Y[o, y, x] + B[o], 0.0)\n  return Z\n}\n",
    /* strides of two, odd extents */
    "def strided(X: f32[5, 15, 17], W: f32[7, 5, 3, 3]) {\n"
    "  Y[o: 7, y: 7, x: 8] = sum[c: 5, ky: 3, kx: 3](X[c, y*2 + ky, x*2 + kx] * W[o, c, ky, kx])\n  return "
    "Y\n}\n",
    "def mm(A: f32[48, 40], B: f32[40, 56]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n",
    "def bytes(A: i8[32, 64], B: i8[48, 64]) {\n  C[y: 32, x: 48] = sum[k: 64](i32(A[y, k]) * i32(B[x, "
    "k]))\n  return C\n}\n",
    "def pool(X: f32[8, 14, 14]) {\n  Y[c: 8, y: 7, x: 7] = max[ky: 2, kx: 2](X[c, y*2 + ky, x*2 + kx])\n  "
    "return Y\n}\n",
    "def softmax(X: f32[12, 100]) {\n  M[i] = max[j](X[i, j])\n  E[i: 12, j: 100] = exp(X[i, j] - M[i])\n  "
    "S[i: 12] = sum[j: 100](E[i, j])\n"
    "  Y[i: 12, j: 100] = E[i, j] / S[i]\n  return Y\n}\n",
    "def depthwise(X: f32[16, 16, 16], W: f32[16, 3, 3]) {\n"
    "  Y[c: 16, y: 14, x: 14] = sum[ky: 3, kx: 3](X[c, y + ky, x + kx] * W[c, ky, kx])\n  return Y\n}\n",
    "def add(A: f32[30, 50], B: f32[30, 50]) {\n  C[i, j] = tanh(A[i, j] + B[i, j])\n  return C\n}\n",
    "def gather(A: f32[1000, 16], I: i64[64]) {\n  C[i: 64, j: 16] = A[I[i], j]\n  return C\n}\n",
    "def best(A: f32[20, 30]) {\n  M[i: 20] = argmax[k: 30](A[i, k], k)@1\n  return M\n}\n",
    "def scalar(A: f32[1]) {\n  C[i: 1] = A[i] + 1.0\n  return C\n}\n",
    "def dynamic(n, m, A: f32[n, 64], B: f32[64, m]) where m >= 1, m <= 512, m % 8 == 0 {\n  C[y: n, x: m] = "
    "sum[k: 64](A[y, k] * B[k, x])\n  return C\n}\n",
};

static const ir_program *tree_of(const char *text)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    return te_tree(cx, f->defs.at[f->defs.n - 1]);
}

static const float *row_of(const ir_program *p, const target *t, const int64_t *dims)
{
    float *row = base_array(cx, float, TUNE_N_FEATURES);

    cr_assert(tune_features(cx, p, t, dims, row), "%s", tec_context_error(cx));
    return row;
}

static const float *row_after(const char *text, const char *trace)
{
    sched *s = sched_new(cx, tree_of(text), cpu);

    cr_assert(sched_replay(s, "trace", trace), "%s", sched_error(s));
    return row_of(sched_tree(s), cpu, NULL);
}

static float feature(const float *row, const char *name)
{
    int i = 0;

    while (i < TUNE_N_FEATURES && strcmp(tune_feature_name(cx, i), name) != 0)
        i++;
    cr_assert(i < TUNE_N_FEATURES, "no feature '%s'", name);
    return row[i];
}

static void expect(const float *row, const char *name, double value)
{
    cr_assert_float_eq(feature(row, name), value, 1e-4, "%s is %g, expected %g", name,
                       (double)feature(row, name), value);
}

static void expect_finite(const float *row, const char *what)
{
    for (int i = 0; i < TUNE_N_FEATURES; i++)
        cr_assert(isfinite(row[i]), "%s: %s is %g", what, tune_feature_name(cx, i), (double)row[i]);
}

/* ---- properties over whole spaces ---- */

/* Samples a space; a mark behind the row shows that no more is written. */
static int sample_space(const char *text, const target *t, int n)
{
    float row[TUNE_N_FEATURES + 1], again[TUNE_N_FEATURES];
    space *sp = space_master(cx, tree_of(text), t);
    uint64_t state = 11;
    int applied = 0;

    cr_assert(sp, "%s", tec_context_error(cx));
    for (int i = 0; i < n; i++) {
        base_mark mark = base_arena_mark(cx);
        space_point p;
        sched *s = space_sample(cx, sp, &state, &p) ? space_apply(cx, sp, &p) : NULL;

        if (s && !sched_failed(s)) {
            size_t used = base_used(cx);

            row[TUNE_N_FEATURES] = 42;
            cr_assert(tune_features(cx, sched_tree(s), t, NULL, row), "%s", tec_context_error(cx));
            cr_assert_eq(row[TUNE_N_FEATURES], 42);
            cr_assert_eq(base_used(cx), used);
            expect_finite(row, sched_trace_text(cx, s));
            cr_assert(tune_features(cx, sched_tree(space_apply(cx, sp, &p)), t, NULL, again));
            cr_assert_arr_eq(row, again, sizeof again);
            applied++;
        }
        base_arena_release(cx, mark);
    }
    return applied;
}

Test(features, of_every_point_of_every_space_are_as_many_and_finite)
{
    int applied = 0;

    for (int i = 0; i < BASE_COUNT(definitions); i++) {
        int n = sample_space(definitions[i], cpu, 30);

        cr_assert(n > 0, "no point applies to %s", definitions[i]);
        applied += n;
    }
    cr_assert(applied > 200, "%d points applied", applied);
}

Test(features, of_gpu_schedules_are_as_many_and_finite)
{
    const target *gpu = target_parse(cx, "cuda");

    cr_assert(gpu, "%s", tec_context_error(cx));
    cr_assert(sample_space(definitions[0], gpu, 20) > 0);
    cr_assert(sample_space(definitions[2], gpu, 20) > 0);
}

Test(features, tell_most_points_of_a_space_apart)
{
    enum { N = 200 };
    space *sp = space_master(cx, tree_of(definitions[2]), cpu);
    uint64_t state = 3;
    const float *row[N];
    const char *trace[N];
    int n = 0, differ = 0, pairs = 0;

    while (n < N) {
        space_point p;
        sched *s = space_sample(cx, sp, &state, &p) ? space_apply(cx, sp, &p) : NULL;

        if (!s || sched_failed(s))
            continue;
        trace[n] = sched_trace_text(cx, s);
        row[n++] = row_of(sched_tree(s), cpu, NULL);
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            if (strcmp(trace[i], trace[j]) == 0)
                continue;
            pairs++;
            differ += memcmp(row[i], row[j], sizeof *row[i] * TUNE_N_FEATURES) != 0;
        }
    cr_assert(pairs > 0 && differ > 0.99 * pairs, "%d of %d pairs differ", differ, pairs);
}

/* ---- what the numbers say, on programs small enough to count by hand ---- */

static const char *const product =
    "def mm(A: f32[64, 32], B: f32[32, 128]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n";

/* 4 x 16 tiles; vectors of 8 lanes */
static const char *const tiled = "C.y.0, C.y.1 = split(C.y, _, 4)\n"
                                 "C.x.0, C.x.1, C.x.2 = split(C.x, _, 2, 8)\n"
                                 "reorder(C.y.0, C.x.0, C.k, C.y.1, C.x.1, C.x.2)\n"
                                 "parallel(C.y.0)\nunroll(C.y.1)\nunroll(C.x.1)\nvectorize(C.x.2)\n";

Test(features, count_the_loops_of_a_tiled_product)
{
    const float *row = row_after(product, tiled);

    expect(row, "hot0.iterations", log2(1 + 64 * 128 * 32));
    expect(row, "hot0.fma", 1);
    expect(row, "hot0.add", 0);
    expect(row, "hot0.loads_global", 2);
    expect(row, "hot0.vector", log2(9));
    expect(row, "hot0.vector_fill", 0);
    expect(row, "hot0.unrolled", log2(9));
    expect(row, "hot0.parallel", log2(17));
    expect(row, "hot0.parallel_per_core", 2);
    expect(row, "hot0.imbalance", 0);
    expect(row, "hot0.reduce", log2(33));
    expect(row, "hot0.waste", 0);
    expect(row, "hot0.tile_elements", log2(65));
    expect(row, "hot0.accumulators", log2(8.0 / 16));
    expect(row, "hot0.loop0_vectorised", 1);
    expect(row, "hot0.loop1_unrolled", 1);
    expect(row, "hot0.loop3_reduce", 1);
    expect(row, "hot0.loop3_serial", 1);
}

Test(features, count_what_a_tiled_product_touches)
{
    const float *row = row_after(product, tiled);

    expect(row, "hot0.write.touched_vector", log2(1 + 4 * 8));
    expect(row, "hot0.write.touched_tile", log2(1 + 4 * 64));
    expect(row, "hot0.write.touched_all", log2(1 + 4 * 64 * 128));
    expect(row, "hot0.write.reuse_sums", 5);
    expect(row, "hot0.write.contiguous", 1);
    /* B comes in the most often: all of it for each block of rows. A: four rows of it in a parallel task. */
    expect(row, "hot0.read1.size", log2(1 + 4 * 32 * 128));
    expect(row, "hot0.read1.touched_tile", log2(1 + 4 * 16));
    expect(row, "hot0.read1.touched_sums", log2(1 + 4 * 16 * 32));
    expect(row, "hot0.read1.contiguous", 1);
    expect(row, "hot0.read1.run", log2(1 + 4 * 16));
    expect(row, "hot0.read2.touched_task", log2(1 + 4 * 4 * 32));
    expect(row, "hot0.read2.same", 1);
    expect(row, "hot0.read2.reuse_task", 7);
    expect(row, "hot0.read2.reuse_loop", log2(1 + 8));
}

Test(features, see_what_a_guarded_tail_wastes)
{
    const float *row = row_after("def s(A: f32[100]) {\n  C[i] = A[i] + 1.0\n  return C\n}\n",
                                 "C.i.0, C.i.1 = split(C.i, _, 64)\n");

    expect(row, "hot0.waste", log2(128.0 / 100));
    expect(row, "hot0.guards", 1);
    expect(row, "repeated", log2(128.0 / 100));
}

Test(features, see_how_a_fused_loop_walks)
{
    const float *row = row_after(
        "def s(A: f32[64, 96]) {\n  C[i, j] = A[i, j] + 1.0\n  return C\n}\n",
        "C.i~C.j = fuse(C.i, C.j)\nC.i~C.j.0, C.i~C.j.1 = split(C.i~C.j, _, 16)\nvectorize(C.i~C.j.1)\n");

    expect(row, "hot0.read1.touched_vector", log2(1 + 4 * 16));
    expect(row, "hot0.read1.touched_all", log2(1 + 4 * 64 * 96));
    expect(row, "hot0.read1.contiguous", 1);
    expect(row, "hot0.read1.aligned", 6);
}

Test(features, hold_strides_and_gathers_apart)
{
    const float *columns =
        row_after("def s(A: f32[64, 96]) {\n  C[j: 96, i: 64] = A[i, j]\n  return C\n}\n", "");
    const float *data = row_after(definitions[8], "");

    expect(columns, "hot0.read1.stride", log2(1 + 96));
    expect(columns, "hot0.read1.gather", 1);
    expect(columns, "hot0.write.contiguous", 1);
    expect(data, "hot0.write.contiguous", 1);
    expect(data, "hot0.read1.gather", 1);
}

/* Sixteen rows whose starts lie so many elements apart. */
static double rows_together(int elements)
{
    const char *text = base_format(
        cx,
        "def mm(A: f32[32, %d], B: f32[%d, 64]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n",
        elements, elements);
    const float *row = row_after(text, "y, rows = split(C.y, _, 16)\nx, lane = split(C.x, _, 8)\nreorder(y, "
                                       "x, C.k, rows, lane)\nunroll(rows)\n"
                                       "vectorize(lane)\n");

    return fmax(feature(row, "hot0.read1.together"), feature(row, "hot0.read2.together"));
}

Test(features, see_rows_that_meet_in_one_set_of_the_cache)
{
    cr_expect_float_eq(rows_together(1024), 4, 1e-6, "all 16 rows start at one offset in their pages");
    cr_expect_float_eq(rows_together(1536), 3, 1e-6, "at two");
    cr_expect_float_eq(rows_together(256), 2, 1e-6, "at four");
    cr_expect_float_eq(rows_together(1040), 0, 1e-6, "all apart");
}

Test(features, a_stencil_touches_a_window_once)
{
    const float *row =
        row_after("def s(A: f32[66]) {\n  C[i: 64] = A[i] + A[i + 1] + A[i + 2]\n  return C\n}\n", "");

    expect(row, "hot0.read1.count", 3);
    expect(row, "hot0.read1.touched_all", log2(1 + 4 * 66));
    expect(row, "hot0.read1.touched_vector", log2(1 + 4 * 3));
}

Test(features, a_temporary_is_as_large_as_where_it_lives)
{
    const char *text = "def t(A: f32[64, 96]) {\n  T[i, j] = A[i, j] * 2.0\n  C[i: 64, j: 96] = T[i, j] + "
                       "1.0\n  return C\n}\n";

    expect(row_after(text, ""), "temporaries", log2(1 + 4 * 64 * 96));
    expect(row_after(text, "compute_at(T, C.i)\n"), "temporaries", log2(1 + 4 * 96));
}

/* The product with tiles of so many rows and vectors. */
static double estimate_of(int rows, int vectors)
{
    const char *trace = base_format(
        cx,
        "C.y.0, C.y.1 = split(C.y, _, %d)\nC.x.0, C.x.1, C.x.2 = split(C.x, _, %d, 8)\n"
        "reorder(C.y.0, C.x.0, C.k, C.y.1, C.x.1, C.x.2)\nunroll(C.y.1)\nunroll(C.x.1)\nvectorize(C.x.2)\n",
        rows, vectors);
    const float *row = row_after(product, trace);

    return row[TUNE_PROGRAM_estimate];
}

/* Two multiply-adds begin in each cycle and take four: eight results keep them busy, and sixteen registers
 * hold fourteen. */
Test(features, estimate_what_few_and_many_results_cost)
{
    double few = estimate_of(1, 1), enough = estimate_of(4, 2), many = estimate_of(8, 4),
           scalar = row_after(product, "")[TUNE_PROGRAM_estimate];

    cr_assert(few > enough + 1.5, "1 result %g, 8 results %g", few, enough);
    cr_assert(many > enough + 0.2, "32 results %g, 8 results %g", many, enough);
    cr_assert(scalar > few + 2, "no vectors %g, vectors %g", scalar, few);
    cr_assert(enough > log2(1 / 16.0), "faster than 16 multiply-adds a cycle: %g", enough);
}

/* Loops are cut where an index leaves the bounds: the tests of a padding do not weigh as arithmetic does,
 * wherever they stand. */
Test(features, estimate_a_padding_by_what_it_moves)
{
    const char *text =
        "def pad(X: f32[64, 64]) {\n  P[y: 66, x: 64] = select(y >= 1 && y < 65, X[y - 1, x], 0.0)\n"
        "  Y[y: 64, x: 64] = sum[k: 3](P[y + k, x])\n  return Y\n}\n";
    const char *values = "def pad(X: f32[64, 64]) {\n  P[y: 64, x: 64] = select(X[y, x] >= 1.0 && X[y, x] < "
                         "65.0, X[y, x], 0.0)\n"
                         "  Y[y: 62, x: 64] = sum[k: 3](P[y + k, x])\n  return Y\n}\n";
    const char *inlined = "compute_inline(P)\nvectorize(Y.x)\n", *apart = "vectorize(P.x)\nvectorize(Y.x)\n";
    double inside = row_after(text, inlined)[TUNE_PROGRAM_estimate],
           outside = row_after(text, apart)[TUNE_PROGRAM_estimate];
    double by_value = row_after(values, inlined)[TUNE_PROGRAM_estimate];

    cr_assert(inside < outside, "inlined %g, in a loop of its own %g", inside, outside);
    cr_assert(by_value > inside + 0.3, "by value %g, by index %g", by_value, inside);
}

Test(features, differ_between_tile_sizes)
{
    const float *a = row_after(product, "C.x.0, C.x.1 = split(C.x, _, 8)\n"),
                *b = row_after(product, "C.x.0, C.x.1 = split(C.x, _, 16)\n");

    cr_assert(memcmp(a, b, sizeof *a * TUNE_N_FEATURES) != 0);
}

Test(features, of_symbolic_extents_are_those_of_the_dims)
{
    const char *fixed = "def dynamic(A: f32[24, 64], B: f32[64, 80]) {\n  C[y: 24, x: 80] = sum[k: 64](A[y, "
                        "k] * B[k, x])\n  return C\n}\n";
    const float *a = row_of(tree_of(definitions[11]), cpu, (int64_t[]){24, 80}),
                *b = row_of(tree_of(fixed), cpu, NULL);

    cr_assert_arr_eq(a, b, sizeof *a * TUNE_N_FEATURES);
    /* Without dims: n has no end, m is in the middle of 8..512. */
    expect(row_of(tree_of(definitions[11]), cpu, NULL), "hot0.iterations", log2(1 + 256 * 64 * 64));
}

/* A warp reads 32 neighbours: 4 transactions for 128 bytes; or 32 elements a row apart: 32 transactions. */
Test(features, see_what_the_threads_of_a_warp_ask_for_together)
{
    const char *add = "def s(A: f32[64, 64]) {\n  C[i, j] = A[i, j] + 1.0\n  return C\n}\n",
               *turned = "def s(A: f32[64, 64]) {\n  C[i: 64, j: 64] = A[j, i]\n  return C\n}\n",
               *along = "bind(C.i, blockIdx.x)\nbind(C.j, threadIdx.x)\n",
               *tile = "A.cache.shared = cache_read(A, shared)\ncompute_at(A.cache.shared, C.j.0)\n";
    const target *host = cpu;
    const float *row;

    cpu = target_parse(cx, "cuda -arch=sm_80");
    row = row_after(add, along);
    expect(row, "hot0.read1.sectors", 0);
    expect(row, "hot0.block_global", log2(1 + 2 * 64 * 4));
    expect(row, "hot0.occupancy", 1);
    row = row_after(turned, along);
    expect(row, "hot0.read1.sectors", 3);
    row = row_after(turned, base_format(cx,
                                        "C.j.0, C.j.1 = split(C.j, _, 32)\nbind(C.i, blockIdx.x)\n"
                                        "bind(C.j.1, threadIdx.x)\n%s",
                                        tile));
    expect(row, "hot0.read1.conflicts", 0);
    cpu = host;
}

Test(features, need_a_program)
{
    float row[TUNE_N_FEATURES];

    cr_assert_not(tune_features(cx, NULL, cpu, NULL, row));
    cr_assert_str_eq(tec_context_error(cx), "error: features need a program with a body, and a target");
}

/* ---- names and bytes ---- */

Test(features, have_a_name_each)
{
    base_dict names = {0};

    for (int i = 0; i < TUNE_N_FEATURES; i++) {
        cr_assert_not(base_dict_has(&names, tune_feature_name(cx, i)), "%s", tune_feature_name(cx, i));
        base_dict_put(cx, &names, tune_feature_name(cx, i), cx);
        cr_assert(strlen(tune_feature_what(i)) > 0);
    }
    cr_assert_null(tune_feature_name(cx, -1));
    cr_assert_null(tune_feature_name(cx, TUNE_N_FEATURES));
    cr_assert_null(tune_feature_what(TUNE_N_FEATURES));
}

Test(features, read_back_from_bytes)
{
    const float *row = row_after(product, tiled);
    float back[TUNE_N_FEATURES];
    uint8_t *bytes = (uint8_t *)tune_features_pack(cx, row);

    cr_assert(tune_features_unpack(bytes, TUNE_FEATURES_SIZE, TUNE_FEATURES_VERSION, back));
    cr_assert_arr_eq(row, back, sizeof back);
    cr_assert_not(tune_features_unpack(bytes, TUNE_FEATURES_SIZE - 1, TUNE_FEATURES_VERSION, back));
    cr_assert_not(tune_features_unpack(bytes, TUNE_FEATURES_SIZE, TUNE_FEATURES_VERSION + 1, back));
    cr_assert_not(tune_features_unpack(NULL, 0, TUNE_FEATURES_VERSION, back));
    memset(bytes + 8, 0xff, 4);
    cr_assert_not(tune_features_unpack(bytes, TUNE_FEATURES_SIZE, TUNE_FEATURES_VERSION, back));
}
