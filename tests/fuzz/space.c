/* The spaces that follow from definitions: what their points make of them means the same, everywhere. */
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/compiler.h"
#include "fuzz/data.h"
#include "fuzz/fuzz.h"
#include "ir/walk.h"
#include "lower/pass.h"
#include "space/space.h"
#include "te/text.h"

enum { POINTS = 4 };

/* Odd and even extents, symbols, padding, packed layouts, several tiled stages, reductions of every form.
 * Values stay small integers, so that results are exact in any order. */
static const struct {
    const char *name, *text;
} defs[] = {
    {"mm", "def mm(A: f32[24, 20], B: f32[20, 36]) {\n"
           "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
           "  return C\n"
           "}\n"},
    {"mmlarge", "def mmlarge(A: f32[512, 256], B: f32[256, 512]) {\n"
                "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                "  return C\n"
                "}\n"},
    {"mmodd", "def mmodd(A: f32[13, 17], B: f32[17, 37]) {\n"
              "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
              "  return C\n"
              "}\n"},
    {"mmn", "def mmn(n, A: f32[n, 20], B: f32[20, 36]) {\n"
            "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
            "  return C\n"
            "}\n"},
    {"mmk", "def mmk(n, m, k, A: f32[n, k], B: f32[k, m]) {\n"
            "  C[y, x] = sum[k0: k](A[y, k0] * B[k0, x])\n"
            "  return C\n"
            "}\n"},
    {"dense", "def dense(A: f32[1, 24], B: f32[40, 24], b: f32[40]) {\n"
              "  C[y, x] = sum[k](A[y, k] * B[x, k])\n"
              "  D[y, x] = max(C[y, x] + b[x], 0.0)\n"
              "  return D\n"
              "}\n"},
    {"depth", "def depth(X: f32[1, 4, 12, 12], W: f32[4, 1, 3, 3], b: f32[4]) {\n"
              "  P[n: 1, c: 4, y: 14, x: 14] = select(y >= 1 && y < 13 && (x >= 1 && x < 13), X[n, c, y - 1, "
              "x - 1], 0.0) @role(prologue) @keep(true)\n"
              "  acc[n: 1, c: 4, y: 12, x: 12] = sum[ky, kx](P[n, c, y + ky, x + kx] * W[c, 0, ky, kx]) "
              "@role(anchor)\n"
              "  Y[n: 1, c: 4, y: 12, x: 12] = max(acc[n, c, y, x] + b[c], 0.0) @role(epilogue)\n"
              "  return Y\n"
              "}\n"},
    {"direct",
     "def direct(X: f32[1, 4, 9, 9], W: f32[8, 4, 3, 3], b: f32[8]) {\n"
     "  acc[i, o, y: 7, x: 7] = sum[c, ky, kx](X[i, c, y + ky, x + kx] * W[o, c, ky, kx]) @role(anchor)\n"
     "  Y[i, o, y, x] = max(acc[i, o, y, x] + b[o], 0.0) @role(epilogue)\n"
     "  return Y\n"
     "}\n"},
    {"packedconv",
     "def packedconv(in0: f32[1, 8, 6, 6], in1: f32[1, 2, 2, 3, 3, 4, 8], in2: f32[16], other: f32[1, 16, 6, "
     "6]) {\n"
     "  conv.packed[n: 1, g: 1, ib: 2, s0: 8, s1: 8, ii: 4] = select(s0 >= 1 && s0 < 7 && (s1 >= 1 && s1 < "
     "7), in0[n, g * 8 + (ib * 4 + ii), s0 - 1, s1 - 1], 0.0) @role(prologue) @keep(true)\n"
     "  conv.acc[n: 1, g: 1, ob: 2, s0: 6, s1: 6, oi: 8] = sum[ib: 2, k0: 3, k1: 3, ii: 4](conv.packed[n, g, "
     "ib, s0 + k0, s1 + k1, ii] * in1[g, ob, ib, k0, k1, ii, oi]) @role(anchor)\n"
     "  conv[n: 1, c: 16, s0: 6, s1: 6] = conv.acc[n, 0, floordiv(c, 8), s0, s1, c % 8] + in2[c] "
     "@role(epilogue)\n"
     "  add[a0: 1, a1: 16, a2: 6, a3: 6] = conv[0, a1, a2, a3] + other[0, a1, a2, a3] @role(epilogue)\n"
     "  relu[a0: 1, a1: 16, a2: 6, a3: 6] = max(add[0, a1, a2, a3], 0.0) @role(epilogue)\n"
     "  return relu\n"
     "}\n"},
    {"blocked", "def blocked(in0: f32[1, 2, 6, 6, 4], in1: f32[4, 2, 3, 3, 4, 8], in2: f32[32], in3: f32[1, "
                "4, 6, 6, 8]) {\n"
                "  P[n: 1, ib: 2, s0: 6, s1: 8, ii: 4] = select(s1 >= 1 && s1 < 7, in0[n, ib, s0, s1 - 1, "
                "ii], 0.0) @role(prologue) @keep(true)\n"
                "  acc[n: 1, ob: 4, s0: 6, s1: 6, oi: 8] = sum[ib: 2, k0: 3, k1: 3, ii: 4](P[n, ib, s0 + k0 "
                "- 1, s1 + k1, ii] * in1[ob, ib, k0, k1, ii, oi] where s0 + "
                "k0 >= 1 && s0 + k0 < 7) @role(anchor)\n"
                "  Y[n: 1, ob: 4, s0: 6, s1: 6, oi: 8] = max(acc[n, ob, s0, s1, oi] + in2[ob * 8 + oi] + "
                "in3[n, ob, s0, s1, oi], 0.0) @role(epilogue)\n"
                "  return Y\n"
                "}\n"},
    {"packedmm", "def packedmm(A: f32[5, 24], B: f32[3, 24, 32], b: f32[70]) {\n"
                 "  acc[m: 5, nb: 3, ni: 32] = sum[k: 24](A[m, k] * B[nb, k, ni]) @role(anchor)\n"
                 "  Y[m: 5, n: 70] = max(acc[m, floordiv(n, 32), n % 32] + b[n], 0.0) @role(epilogue)\n"
                 "  return Y\n"
                 "}\n"},
    {"softmax", "def softmax(X: f32[12, 50]) {\n"
                "  top[i] = max[k](X[i, k])\n"
                "  e[i, j] = (X[i, j] - top[i]) * (X[i, j] - top[i])\n"
                "  Y[i, j] = e[i, j] - sum[k](e[i, k])\n"
                "  return Y\n"
                "}\n"},
    {"softn", "def softn(n, m, X: f32[n, m]) where m >= 1 {\n"
              "  top[i] = max[k](X[i, k])\n"
              "  e[i, j] = (X[i, j] - top[i]) * (X[i, j] - top[i])\n"
              "  Y[i, j] = e[i, j] - sum[k](e[i, k])\n"
              "  return Y\n"
              "}\n"},
    {"pool", "def pool(X: f32[1, 3, 21, 21]) {\n"
             "  Y[n, c, y: 10, x: 10] = max[ky: 3, kx: 3](X[n, c, 2 * y + ky, 2 * x + kx])\n"
             "  return Y\n"
             "}\n"},
    {"gap", "def gap(X: f32[1, 6, 7, 7]) {\n"
            "  s[n, c] = sum[y, x](X[n, c, y, x])\n"
            "  Y[n, c] = s[n, c] * 2.0\n"
            "  return Y\n"
            "}\n"},
    {"transpose", "def transpose(X: f32[25, 37]) {\n"
                  "  Y[i: 37, j: 25] = X[j, i]\n"
                  "  return Y\n"
                  "}\n"},
    {"ew", "def ew(X: f32[6, 5, 7], Z: f32[6, 5, 7]) {\n"
           "  Y[c, y, x] = max(X[c, y, x] + Z[c, y, x], 0.0)\n"
           "  return Y\n"
           "}\n"},
    {"total", "def total(X: f32[20000]) {\n"
              "  S[] = sum[k](X[k])\n"
              "  return S\n"
              "}\n"},
    {"columns", "def columns(X: f32[300, 64]) {\n"
                "  S[j] = sum[k](X[k, j])\n"
                "  return S\n"
                "}\n"},
    {"best", "def best(X: f32[20, 30]) {\n"
             "  S(V, I)[i] = argmax[k](X[i, k], k)\n"
             "  return I\n"
             "}\n"},
    {"attention", "def attention(Q: f32[2, 9, 8], K: f32[2, 9, 8], V: f32[2, 9, 8]) {\n"
                  "  S[h, i, j: 9] = sum[d](Q[h, i, d] * K[h, j, d])\n"
                  "  top[h, i] = max[j](S[h, i, j])\n"
                  "  E[h, i, j] = S[h, i, j] - top[h, i]\n"
                  "  Z[h, i] = sum[j](E[h, i, j])\n"
                  "  O[h, i, d: 8] = sum[j](E[h, i, j] * V[h, j, d])\n"
                  "  Y[h, i, d] = O[h, i, d] - Z[h, i]\n"
                  "  return Y\n"
                  "}\n"},
    {"lstm",
     "def lstm(n, X: f32[n, 6], W: f32[20, 6], U: f32[20, 5], b: f32[20], h0: f32[5], c0: f32[5]) {\n"
     "  scan cell[t: n + 1] {\n"
     "    init h[t: 1, j: 5] = h0[j]\n"
     "    init c[t: 1, j: 5] = c0[j]\n"
     "    update gate[t, g: 20] = b[g] + sum[k](W[g, k] * X[t - 1, k]) + sum[k](U[g, k] * h[t - 1, k])\n"
     "    update c[t, j] = max(min(gate[t, j + 5], 3.0), -3.0) + c[t - 1, j]\n"
     "    update h[t, j] = max(min(gate[t, j + 15], 3.0), -3.0)\n"
     "  }\n"
     "  return h, c\n"
     "}\n"},
};

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(space, .init = open_context, .fini = close_context);

typedef struct {
    const te_def *def;
    const target *t;
    space *sp;
} setting;

static setting set_up(const char *name, const char *device)
{
    setting x = {.t = target_parse(cx, device)};

    for (int i = 0; i < BASE_COUNT(defs); i++)
        if (strcmp(defs[i].name, name) == 0) {
            te_file *f = te_parse(cx, "test.te", defs[i].text);

            cr_assert(f, "%s", tec_context_error(cx));
            x.def = f->defs.at[0];
        }
    x.sp = space_master(cx, te_tree(cx, x.def), x.t);
    cr_assert(x.sp, "%s: %s", name, tec_context_error(cx));
    return x;
}

static void means_the_same(const setting *x, const space_point *p, const sched *s, uint64_t data)
{
    tec_context *scratch = base_child(cx);
    fuzz_case c = {
        .target = "", .te = te_text(scratch, x->def), .trace = sched_trace_text(scratch, s), .data = data};
    fuzz_result r;

    fuzz_check(scratch, &c, x->t, &r);
    cr_assert(r.outcome == FUZZ_SAME && r.refused == 0, "%s: %s: %s\n%s\n%s", x->def->name, r.where, r.what,
              c.trace, space_point_text(cx, x->sp, p));
    tec_context_free(scratch);
}

/* The start, random points and their neighbours, each checked in the interpreter after every pass and as
 * machine code. */
static void points_mean_the_same(const char *name, const char *device)
{
    setting x = set_up(name, device);
    space_point p = space_start(x.sp);
    uint64_t state = 42;

    cr_assert(space_check(cx, x.sp, &p, NULL));
    for (int i = 0; i < POINTS; i++) {
        tec_context *scratch = base_child(cx);
        sched *s = space_apply(scratch, x.sp, &p);

        cr_assert_not(base_failed(scratch), "%s: %s", name, tec_context_error(scratch));
        cr_assert(i > 0 || !sched_failed(s), "%s: the start is refused: %s", name, sched_error(s));
        if (!sched_failed(s))
            means_the_same(&x, &p, s, (uint64_t)i + 7);
        tec_context_free(scratch);
        cr_assert(i % 2 ? space_mutate(cx, x.sp, &state, &p, &p) : space_sample(cx, x.sp, &state, &p));
    }
}

static const char *const wide = "llvm -mcpu=native -num-cores=2";

Test(space, mm_means_the_same)
{
    points_mean_the_same("mm", wide);
}
Test(space, mmodd_means_the_same)
{
    points_mean_the_same("mmodd", wide);
}
Test(space, mmn_means_the_same)
{
    points_mean_the_same("mmn", wide);
}
Test(space, mmk_means_the_same)
{
    points_mean_the_same("mmk", wide);
}
Test(space, dense_means_the_same)
{
    points_mean_the_same("dense", wide);
}
Test(space, depth_means_the_same)
{
    points_mean_the_same("depth", wide);
}
Test(space, direct_means_the_same)
{
    points_mean_the_same("direct", wide);
}
Test(space, packedconv_means_the_same)
{
    points_mean_the_same("packedconv", wide);
}
Test(space, blocked_means_the_same)
{
    points_mean_the_same("blocked", wide);
}
Test(space, packedmm_means_the_same)
{
    points_mean_the_same("packedmm", wide);
}
Test(space, softmax_means_the_same)
{
    points_mean_the_same("softmax", wide);
}
Test(space, softn_means_the_same)
{
    points_mean_the_same("softn", wide);
}
Test(space, pool_means_the_same)
{
    points_mean_the_same("pool", wide);
}
Test(space, gap_means_the_same)
{
    points_mean_the_same("gap", wide);
}
Test(space, transpose_means_the_same)
{
    points_mean_the_same("transpose", wide);
}
Test(space, ew_means_the_same)
{
    points_mean_the_same("ew", wide);
}
Test(space, total_means_the_same)
{
    points_mean_the_same("total", wide);
}
Test(space, columns_means_the_same)
{
    points_mean_the_same("columns", wide);
}
Test(space, best_means_the_same)
{
    points_mean_the_same("best", wide);
}
Test(space, attention_means_the_same)
{
    points_mean_the_same("attention", wide);
}
Test(space, lstm_means_the_same)
{
    points_mean_the_same("lstm", wide);
}

Test(space, one_core_and_short_vectors_mean_the_same)
{
    points_mean_the_same("mmodd", "llvm -mcpu=x86-64 -num-cores=1");
    points_mean_the_same("packedconv", "llvm -mcpu=x86-64-v3 -num-cores=1");
}

/* How many blocks fill the registers of a tile or empty them; each must do it in vectors that are written
 * out, since a tile that a loop walks through stays in memory. */
static int register_copies(const sched *s)
{
    const char **block, **loop;
    int found = 0, n_blocks = sched_blocks(s, &block);

    for (int i = 0; i < n_blocks; i++) {
        size_t length = strlen(block[i]);
        int n = strstr(block[i], ".cache.local") ? sched_loops_of(s, block[i], &loop) : 0;

        found += n > 0;
        for (int j = 0; j < n; j++) {
            const ir_stmt *l = sched_loop(s, loop[j]);
            bool own = strncmp(loop[j], block[i], length) == 0 && loop[j][length] == '.';

            cr_assert(!own || l->loop.how != IR_SERIAL || ir_is_value(l->loop.extent, 1), "%s of\n%s",
                      loop[j], sched_trace_text(cx, s));
        }
    }
    return found;
}

Test(space, a_blocked_reduction_keeps_its_tile_in_registers)
{
    setting x = set_up("mmlarge", "llvm -mcpu=x86-64-v4 -num-cores=1");
    uint64_t state = 3;
    int found = 0;

    for (int i = 0; i < 200; i++) {
        tec_context *scratch = base_child(cx);
        space_point p;

        cr_assert(space_sample(cx, x.sp, &state, &p));
        sched *s = space_apply(scratch, x.sp, &p);
        found += sched_failed(s) ? 0 : register_copies(s);
        tec_context_free(scratch);
    }
    cr_assert(found >= 16, "only %d copies between memory and registers", found);
}

/* Points that pass the check and are refused by the schedule cost a tuner a trial each. */
Test(space, few_points_are_refused)
{
    int refused = 0, all = 0;

    for (int i = 0; i < BASE_COUNT(defs); i++) {
        setting x = set_up(defs[i].name, wide);
        uint64_t state = 5;
        int here = 0;
        space_point p;

        for (int k = 0; k < 60 && space_sample(cx, x.sp, &state, &p); k++, all++) {
            tec_context *scratch = base_child(cx);

            here += sched_failed(space_apply(scratch, x.sp, &p));
            tec_context_free(scratch);
        }
        refused += here;
        cr_log_info("%s: %d of 60 refused", defs[i].name, here);
        cr_assert(here <= 12, "%s: %d of 60 points are refused", defs[i].name, here);
    }
    cr_assert(refused * 20 <= all, "%d of %d points are refused", refused, all);
}

/* ---- points with the same effect ---- */

static const char *machine_code(tec_context *scratch, const setting *x, const sched *s)
{
    comp_unit u = {.name = x->def->name, .tree = sched_tree(s), .origin = "test"};
    comp_code *code = comp_compile(scratch, &u, 1, &(comp_options){.target = x->t, .jobs = 1, .text = "asm"});

    return code ? comp_code_text(code, 0) : tec_context_error(scratch);
}

/* Up to where memory is allocated, which machine code does not show. */
static bool same_effect(tec_context *scratch, const setting *x, const sched *a, const sched *b)
{
    lower_options o = {.cx = scratch, .target = x->t};
    const ir_program *low = lower_run(&o, sched_tree(a)),
                     *other = sched_failed(b) ? NULL : lower_run(&o, sched_tree(b));

    return low && other &&
           (ir_same_program(scratch, low, other) ||
            strcmp(machine_code(scratch, x, a), machine_code(scratch, x, b)) == 0);
}

/* Where changing one knob's value gives a point that the space makes this one again, both have the same
 * effect. How many such values were tried. */
static int tries_one_of_each(const setting *x, const space_point *p, uint64_t *state)
{
    tec_context *scratch = base_child(cx);
    sched *s = space_apply(scratch, x->sp, p);
    int tried = 0;

    for (int k = 0; !sched_failed(s) && k < space_n_knobs(x->sp); k++) {
        space_point other = *p, counts;

        other.value[k] = (int32_t)base_random_below(state, space_knob_at(x->sp, k)->count);
        counts = other;
        if (space_same(&other, p) || !space_settle(scratch, x->sp, &counts) || !space_same(&counts, p))
            continue;
        cr_assert(same_effect(scratch, x, s, space_apply(scratch, x->sp, &other)),
                  "%s: not the same:\n%s\n%s", x->def->name, space_point_text(scratch, x->sp, p),
                  space_point_text(scratch, x->sp, &other));
        tried++;
    }
    tec_context_free(scratch);
    return tried;
}

Test(space, points_that_count_as_one_are_one_program)
{
    int tried = 0;

    for (int i = 0; i < BASE_COUNT(defs); i++) {
        setting x = set_up(defs[i].name, wide);
        uint64_t state = 11;
        space_point p = space_start(x.sp);
        int here = 0;

        for (int n = 0; n < 24; n++) {
            here += tries_one_of_each(&x, &p, &state);
            cr_assert(space_sample(cx, x.sp, &state, &p));
        }
        cr_log_info("%s: %d values", defs[i].name, here);
        tried += here;
    }
    cr_assert(tried >= 200, "only %d values have the same effect as others", tried);
}

/* ---- GPUs: the tree, and the lowered program with its barriers, thread by thread ---- */

static void runs_on_threads(const setting *x, const space_point *p, const sched *s, uint64_t data)
{
    tec_context *scratch = base_child(cx);
    const ir_program *tree = te_tree(scratch, x->def),
                     *low = lower_run(&(lower_options){.cx = scratch, .target = x->t}, sched_tree(s));
    fuzz_sizes sizes[FUZZ_MAX_SETS];
    int n = fuzz_draw_sizes(scratch, tree, data, sizes);

    cr_assert(low, "%s: %s\n%s", x->def->name, tec_context_error(scratch), sched_trace_text(scratch, s));
    for (int i = 0; i < n; i++) {
        fuzz_data d;

        cr_assert(fuzz_draw_data(scratch, tree, &sizes[i], data + (uint64_t)i, &d) &&
                  fuzz_interpret(scratch, tree, &d, true));
        cr_assert(fuzz_interpret(scratch, sched_tree(s), &d, false) &&
                      fuzz_interpret(scratch, low, &d, false),
                  "%s: %s\n%s\n%s", x->def->name, d.fault, sched_trace_text(scratch, s),
                  space_point_text(scratch, x->sp, p));
    }
    tec_context_free(scratch);
}

static void runs_on_a_gpu(const char *name)
{
    setting x = set_up(name, "cuda");
    uint64_t state = 3;
    int refused = 0;

    for (int i = 0; i < 8; i++) {
        tec_context *scratch = base_child(cx);
        space_point p;

        cr_assert(space_sample(cx, x.sp, &state, &p), "%s has no point", name);
        sched *s = space_apply(scratch, x.sp, &p);
        refused += sched_failed(s);
        if (!sched_failed(s))
            runs_on_threads(&x, &p, s, (uint64_t)i + 7);
        tec_context_free(scratch);
    }
    cr_assert(refused <= 3, "%s: %d of 8 points are refused", name, refused);
}

Test(space, mm_runs_on_a_gpu)
{
    runs_on_a_gpu("mm");
}
Test(space, mmodd_runs_on_a_gpu)
{
    runs_on_a_gpu("mmodd");
}
Test(space, mmn_runs_on_a_gpu)
{
    runs_on_a_gpu("mmn");
}
Test(space, dense_runs_on_a_gpu)
{
    runs_on_a_gpu("dense");
}
Test(space, depth_runs_on_a_gpu)
{
    runs_on_a_gpu("depth");
}
Test(space, direct_runs_on_a_gpu)
{
    runs_on_a_gpu("direct");
}
Test(space, packedconv_runs_on_a_gpu)
{
    runs_on_a_gpu("packedconv");
}
Test(space, blocked_runs_on_a_gpu)
{
    runs_on_a_gpu("blocked");
}
Test(space, packedmm_runs_on_a_gpu)
{
    runs_on_a_gpu("packedmm");
}
Test(space, softmax_runs_on_a_gpu)
{
    runs_on_a_gpu("softmax");
}
Test(space, softn_runs_on_a_gpu)
{
    runs_on_a_gpu("softn");
}
Test(space, pool_runs_on_a_gpu)
{
    runs_on_a_gpu("pool");
}
Test(space, transpose_runs_on_a_gpu)
{
    runs_on_a_gpu("transpose");
}
Test(space, ew_runs_on_a_gpu)
{
    runs_on_a_gpu("ew");
}
Test(space, columns_runs_on_a_gpu)
{
    runs_on_a_gpu("columns");
}
Test(space, best_runs_on_a_gpu)
{
    runs_on_a_gpu("best");
}

/* The sums of the whole result would not fit into shared memory; those of a block do. */
Test(space, a_large_product_has_points_on_a_gpu)
{
    setting x = set_up("mmlarge", "cuda");
    uint64_t state = 4;

    for (int i = 0; i < 8; i++) {
        space_point p;

        cr_assert(space_sample(cx, x.sp, &state, &p));
        sched *s = space_apply(cx, x.sp, &p);
        cr_assert_not(sched_failed(s), "%s", sched_error(s));
    }
}

static void gpu_refuses(const char *name, const char *why)
{
    setting x = set_up(name, "cuda");
    space_point p = space_start(x.sp);
    const char *reason;
    uint64_t state = 1;

    cr_assert_not(space_check(cx, x.sp, &p, &reason));
    cr_assert_str_eq(reason, why);
    cr_assert_not(space_sample(cx, x.sp, &state, &p));
}

Test(space, a_gpu_refuses_what_needs_two_launches)
{
    gpu_refuses("attention", "'S' would need a launch of its own, beside that of 'Y'");
}
Test(space, a_gpu_refuses_a_single_result)
{
    gpu_refuses("total", "'S' has one result, which is not dealt out to blocks");
}

/* Limits of the device are said before a schedule is made. */
Test(space, a_gpu_point_keeps_the_limits_of_the_device)
{
    setting x = set_up("mm", "opencl -device=mali");
    const char *reason;
    space_point p;

    cr_assert(
        space_point_parse(
            cx, x.sp,
            "{\"C.tile.x\": [1, 32, 1], \"C.tile.y\": [1, 16, 1], \"C.reduce_block\": 4, \"C.unroll\": 16, "
            "\"C.share.A\": 0, \"C.share.B\": 0}",
            &p),
        "%s", tec_context_error(cx));
    cr_assert_not(space_check(cx, x.sp, &p, &reason));
    cr_assert_str_eq(reason, "a block of 512 threads is more than the device's 256");
}
