/* The default schedules of operators: the choices that make them fast, and that they are the start of the
 * space of their definition. */
#include <criterion/criterion.h>

#include <string.h>

#include "ir/text.h"
#include "ir/walk.h"
#include "lower/pass.h"
#include "space/space.h"
#include "te/text.h"

static const char *const conv =
    "def conv(in0: f32[1, 64, 20, 20], in1: f32[1, 4, 4, 3, 3, 16, 16], in2: f32[64]) {\n"
    "  P[n: 1, g: 1, ib: 4, s0: 22, s1: 22, ii: 16] = select(s0 >= 1 && s0 < 21 && (s1 >= 1 && s1 < 21), "
    "in0[n, g * 64 + (ib * 16 + ii), s0 "
    "- 1, s1 - 1], 0.0) @role(prologue) @keep(true)\n"
    "  acc[n: 1, g: 1, ob: 4, s0: 20, s1: 20, oi: 16] = sum[ib: 4, k0: 3, k1: 3, ii: 16](P[n, g, ib, s0 + "
    "k0, s1 + k1, ii] * in1[g, ob, ib, k0, "
    "k1, ii, oi]) @role(anchor)\n"
    "  Y[n: 1, c: 64, s0: 20, s1: 20] = max(acc[n, 0, floordiv(c, 16), s0, s1, c % 16] + in2[c], 0.0) "
    "@role(epilogue)\n"
    "  return Y\n"
    "}\n";

static const char *const product =
    "def mm(in0: f32[60, 96], in1: f32[4, 96, 32], in2: f32[128]) {\n"
    "  acc[m: 60, nb: 4, ni: 32] = sum[k: 96](in0[m, k] * in1[nb, k, ni]) @role(anchor)\n"
    "  Y[m: 60, n: 128] = max(acc[m, floordiv(n, 32), n % 32] + in2[n], 0.0) @role(epilogue)\n"
    "  return Y\n"
    "}\n";

static const char *const packed =
    "def packed(in0: f32[1, 4, 20, 20, 16], in1: f32[4, 4, 3, 3, 16, 16], in2: f32[64]) {\n"
    "  P[n: 1, ib: 4, s0: 20, s1: 22, ii: 16] = select(s1 >= 1 && s1 < 21, in0[n, ib, s0, s1 - 1, ii], 0.0) "
    "@role(prologue) @keep(true)\n"
    "  acc[n: 1, ob: 4, s0: 20, s1: 20, oi: 16] = sum[ib: 4, k0: 3, k1: 3, ii: 16](P[n, ib, s0 + k0 - 1, s1 "
    "+ k1, ii] * in1[ob, ib, k0, "
    "k1, ii, oi] where s0 + k0 >= 1 && s0 + k0 < 21) @role(anchor)\n"
    "  Y[n: 1, ob: 4, s0: 20, s1: 20, oi: 16] = max(acc[n, ob, s0, s1, oi] + in2[ob * 16 + oi], 0.0) "
    "@role(epilogue)\n"
    "  return Y\n"
    "}\n";

static const char *const depthwise =
    "def depthwise(in0: f32[1, 4, 20, 20, 16], in1: f32[4, 3, 3, 16], in2: f32[64]) {\n"
    "  P[n: 1, ib: 4, s0: 22, s1: 22, ii: 16] = select(s0 >= 1 && s0 < 21 && (s1 >= 1 && s1 < 21), in0[n, "
    "ib, s0 - 1, s1 - 1, ii], 0.0) "
    "@role(prologue)\n"
    "  acc[n: 1, ob: 4, s0: 20, s1: 20, oi: 16] = sum[k0: 3, k1: 3](P[n, ob, s0 + k0, s1 + k1, oi] * in1[ob, "
    "k0, k1, oi]) @role(anchor)\n"
    "  Y[n: 1, ob: 4, s0: 20, s1: 20, oi: 16] = max(acc[n, ob, s0, s1, oi] + in2[ob * 16 + oi], 0.0) "
    "@role(epilogue)\n"
    "  return Y\n"
    "}\n";

static const char *const grouped =
    "def grouped(in0: f32[1, 6, 20, 20, 16], in1: f32[6, 2, 1, 1, 16, 16]) {\n"
    "  acc[n: 1, ob: 6, s0: 20, s1: 20, oi: 16] = sum[ib: 2, k0: 1, k1: 1, ii: 16](in0[n, floordiv(ob, 2) * "
    "2 + ib, s0 + k0, s1 + k1, "
    "ii] * in1[ob, ib, k0, k1, ii, oi]) @role(anchor)\n"
    "  Y[n: 1, ob: 6, s0: 20, s1: 20, oi: 16] = acc[n, ob, s0, s1, oi] @role(epilogue)\n"
    "  return Y\n"
    "}\n";

static const char *const groups_of_4 =
    "def groups(in0: f32[1, 32, 1, 22, 22, 4], in1: f32[32, 1, 1, 3, 3, 4, 4]) {\n"
    "  acc[n: 1, g: 32, ob: 1, s0: 20, s1: 20, oi: 4] = sum[ib: 1, k0: 3, k1: 3, ii: 4](in0[n, g, ib, s0 + "
    "k0, s1 + k1, ii] * in1[g, "
    "ob, ib, k0, k1, ii, oi]) @role(anchor)\n"
    "  Y[n: 1, c: 128, s0: 20, s1: 20] = acc[n, floordiv(c, 4), floordiv(c % 4, 4), s0, s1, c % 4 % 4] "
    "@role(epilogue)\n"
    "  return Y\n"
    "}\n";

static const char *const groups_of_20 =
    "def groups(in0: f32[1, 3, 5, 20, 20, 16], in1: f32[3, 2, 5, 1, 1, 16, 16]) {\n"
    "  acc[n: 1, g: 3, ob: 2, s0: 20, s1: 20, oi: 16] = sum[ib: 5, k0: 1, k1: 1, ii: 16](in0[n, g, ib, s0 + "
    "k0, s1 + k1, ii] * "
    "in1[g, ob, ib, k0, k1, ii, oi]) @role(anchor)\n"
    "  Y[n: 1, c: 60, s0: 20, s1: 20] = acc[n, floordiv(c, 20), floordiv(c % 20, 16), s0, s1, c % 20 % 16] "
    "@role(epilogue)\n"
    "  return Y\n"
    "}\n";

/* Lanes along the reduction, 8 pixels of one row at a time: with 8 rows, or 8 planes, they would be 64
 * sums. */
static const char *const groups_of_1 =
    "def groups(in0: f32[1, 256, 7, 19], in1: f32[8, 1, 2, 2, 4, 16, 1]) {\n"
    "  P[n: 1, g: 8, ib: 2, s0: 7, s1: 19, ii: 16] = in0[n, g * 32 + (ib * 16 + ii), s0, s1] @role(prologue) "
    "@keep(true)\n"
    "  acc[n: 1, g: 8, ob: 1, s0: 4, s1: 10, oi: 1] = sum[ib: 2, k0: 2, k1: 4, ii: 16](P[n, g, ib, s0 + k0 * "
    "3, s1 + k1 * 3, ii] * in1[g, ob, ib, k0, k1, ii, oi]) @role(anchor)\n"
    "  Y[n: 1, c: 8, s0: 4, s1: 10] = acc[n, c, 0, s0, s1, 0] @role(epilogue)\n"
    "  return Y\n"
    "}\n";

static const char *const volumes_of_1 =
    "def groups(in0: f32[1, 96, 19, 13, 18], in1: f32[3, 1, 2, 4, 1, 2, 16, 1]) {\n"
    "  P[n: 1, g: 3, ib: 2, s0: 19, s1: 13, s2: 18, ii: 16] = in0[n, g * 32 + (ib * 16 + ii), s0, s1, s2] "
    "@role(prologue) @keep(true)\n"
    "  acc[n: 1, g: 3, ob: 1, s0: 13, s1: 13, s2: 15, oi: 1] = sum[ib: 2, k0: 4, k1: 1, k2: 2, ii: 16](P[n, "
    "g, "
    "ib, s0 + k0 * 2, s1 + k1 * 2, s2 + k2 * 3, ii] * in1[g, ob, ib, k0, k1, k2, ii, oi]) @role(anchor)\n"
    "  Y[n: 1, c: 3, s0: 13, s1: 13, s2: 15] = acc[n, c, 0, s0, s1, s2, 0] @role(epilogue)\n"
    "  return Y\n"
    "}\n";

static const char *const one_column =
    "def mv(in0: f32[512, 256], in1: f32[1, 256, 1]) {\n"
    "  acc[m: 512, nb: 1, ni: 1] = sum[k: 256](in0[m, k] * in1[nb, k, ni]) @role(anchor)\n"
    "  Y[m: 512, n: 1] = acc[m, n, 0] @role(epilogue)\n"
    "  return Y\n"
    "}\n";

/* The default schedule has each of these steps, which are separated by newlines. */
static void has_steps(const char *text, const char *device, const char *steps)
{
    tec_context *cx = tec_context_new();
    te_file *f = te_parse(cx, "test.te", text);
    const target *t = target_parse(cx, device);
    const ir_program *tree = te_tree(cx, f->defs.at[0]);
    space *sp = space_master(cx, tree, t);
    const sched *by_default = space_default(cx, tree, t);

    cr_assert(sp && by_default, "%s", tec_context_error(cx));
    cr_assert_not(sched_failed(by_default), "%s", sched_error(by_default));
    space_point start = space_start(sp);
    const char *trace = sched_trace_text(cx, by_default);
    cr_assert(space_check(cx, sp, &start, NULL));
    cr_assert_str_eq(trace, sched_trace_text(cx, space_apply(cx, sp, &start)));
    for (char *step = strtok(base_strdup(cx, steps), "\n"); step; step = strtok(NULL, "\n"))
        cr_assert(strstr(trace, step), "expected '%s' in\n%s", step, trace);
    lower_options o = {.cx = cx, .target = t};
    cr_assert(lower_run(&o, sched_tree(by_default)), "%s", tec_context_error(cx));
    tec_context_free(cx);
}

static const char *const avx512 = "llvm -mcpu=x86-64-v4 -num-cores=2",
                         *const avx2 = "llvm -mcpu=x86-64-v3 -num-cores=2";

/* 24 vectors of sums on 32 registers, 12 on 16; a few steps of the reduction written out; the input padded by
 * a nest of its own. */
Test(space, a_convolution_has_a_tile_of_rows_times_blocks_of_channels)
{
    has_steps(conv, avx512,
              "= split(Y.c, _, 1, 2, 16)\n= split(Y.s1, _, 1, 10)\n= split(acc.ii, _, 4)\nset_scope(acc, "
              "local)\nunroll(acc.s1)\nunroll(acc.ob)\nvectorize(acc.oi)");
    has_steps(conv, avx2, "= split(acc.ii, _, 4)\nset_scope(acc, local)");
}

Test(space, a_matrix_product_has_a_tile_of_whole_panels)
{
    has_steps(product, avx512,
              "= split(Y.n, _, 1, 2, 16)\n= split(Y.m, _, 1, 12)\n= split(acc.k, _, 4)\nset_scope(acc, "
              "local)\nparallel(");
    has_steps(product, avx2, "= split(Y.n, _, 1, 4, 8)\n= split(Y.m, _, 1, 3)");
}

Test(space, a_convolution_on_packed_channels_has_its_lanes_on_the_block)
{
    has_steps(packed, avx512,
              "= split(Y.ob, _, 1, 2)\n= split(Y.s1, _, 1, 10)\nvectorize(acc.oi)\nset_scope(acc, "
              "local)\nvectorize(P.ii)");
}

Test(space, a_depthwise_convolution_pads_where_it_reads_and_takes_8_pixels)
{
    has_steps(depthwise, avx512,
              "compute_inline(P)\n= split(Y.s1, _, 3, 8)\nunroll(acc.k1)\nset_scope(acc, local)");
}

/* Both blocks of a group read the same input. */
Test(space, a_tile_of_a_grouped_convolution_stays_in_its_group)
{
    has_steps(grouped, avx512, "= split(Y.ob, _, 1, 2)\n= split(Y.s1, _, 2, 10)");
}

Test(space, vectors_are_no_longer_than_the_channels_of_a_group)
{
    has_steps(groups_of_4, avx512, "= split(Y.c, _, 1, 1, 4)\nvectorize(acc.oi)");
}

/* Vectors of 16 do not divide the 20 channels of a group: a tile may reach into the next group, whose loop
 * stands outside of the tile's. */
Test(space, groups_of_uneven_panels_are_computed_one_after_the_other)
{
    has_steps(groups_of_20, avx512, "= split(Y.c, _, 1, 2, 16)\nreorder(acc.g, acc.ib, \nvectorize(acc.oi)");
}

Test(space, the_sums_of_groups_of_one_channel_fit_the_registers)
{
    has_steps(groups_of_1, avx512, "= split(Y.s1, _, 1, 8, 1)\n= split(Y.s0, _, 2, 3)\nvectorize(acc.ii)");
    has_steps(groups_of_1, avx2, "set_scope(acc, local)");
    has_steps(volumes_of_1, avx512, "= split(Y.s0, _, 13, 1)\n= split(Y.s2, _, 1, 8, 1)\nvectorize(acc.ii)");
    has_steps(volumes_of_1, avx2, "set_scope(acc, local)");
}

/* Along the rows of the product its operand lies far apart; along the reduction it lies together. */
Test(space, a_product_with_one_column_has_its_lanes_on_the_reduction)
{
    has_steps(one_column, avx512, "= split(Y.m, _, 1, 8, 1)\n= split(acc.k, _, 16)\nvectorize(acc.k.1)");
}

static const char *trace_of(tec_context *cx, const char *text, const char *device)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    const sched *s = space_default(cx, te_tree(cx, f->defs.at[0]), target_parse(cx, device));
    cr_assert(s && !sched_failed(s), "%s", s ? sched_error(s) : tec_context_error(cx));
    return sched_trace_text(cx, s);
}

/* A module runs with the threads of the machine that it is run on. */
Test(space, the_default_does_not_depend_on_the_number_of_cores)
{
    const char *const all[] = {conv, product, packed, depthwise, grouped, groups_of_4, one_column};
    tec_context *cx = tec_context_new();

    for (int i = 0; i < BASE_COUNT(all); i++) {
        const char *one = trace_of(cx, all[i], "llvm -mcpu=x86-64-v4 -num-cores=1");

        cr_assert(strstr(one, "parallel("), "%s", one);
        cr_assert_str_eq(one, trace_of(cx, all[i], "llvm -mcpu=x86-64-v4 -num-cores=8"));
        cr_assert_str_eq(one, trace_of(cx, all[i], "llvm -mcpu=x86-64-v4"));
    }
    tec_context_free(cx);
}

/* The steps with `bind(L, blockIdx.x)` written as `parallel(L)`. */
static const char *without_blocks(tec_context *cx, const char *trace)
{
    base_text out = {0};

    for (const char *line = trace; *line;) {
        size_t n = strcspn(line, "\n");
        const char *axis = strstr(line, ", blockIdx.x)");

        if (base_starts_with(line, "bind(") && axis && axis < line + n)
            base_addf(cx, &out, "parallel(%.*s)\n", (int)(axis - line - 5), line + 5);
        else
            base_addf(cx, &out, "%.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    return base_text_str(cx, &out);
}

/* A CPU behind OpenCL has the schedules of a CPU, with blocks in the place of tasks. */
Test(space, cores_that_run_blocks_have_the_default_of_a_cpu)
{
    const char *const all[] = {conv, product, packed, depthwise, grouped, groups_of_4, one_column};
    tec_context *cx = tec_context_new();

    for (int i = 0; i < BASE_COUNT(all); i++) {
        const char *blocks = trace_of(cx, all[i], "opencl -device=pocl");

        cr_assert(strstr(blocks, ", blockIdx.x)") && !strstr(blocks, "threadIdx"), "%s", blocks);
        cr_assert_str_eq(without_blocks(cx, blocks),
                         without_blocks(cx, trace_of(cx, all[i], "llvm -mcpu=x86-64-v3")));
    }
    tec_context_free(cx);
}

/* One loop over all elements, whatever is known of the extents; indices of rows and columns are gone. */
Test(space, what_is_flat_is_one_loop_over_symbolic_extents)
{
    tec_context *cx = tec_context_new();
    te_file *f =
        te_parse(cx, "test.te",
                 "def f(n, m, k, A: f32[n, m, k]) { B[a: n, b: m, c: k] = max(A[a, b, c], 0.0) return B }");
    lower_options o = {.cx = cx, .target = target_parse(cx, avx512)};
    const sched *s = space_default(cx, te_tree(cx, f->defs.at[0]), o.target);
    const ir_program *p = lower_run(&o, sched_tree(s));

    cr_assert(p, "%s", tec_context_error(cx));
    const char *trace = sched_trace_text(cx, s), *text = ir_program_text(cx, p);
    cr_assert(strstr(trace, "= fuse(B.a, B.b, B.c)"), "%s", trace);
    cr_assert_not(strchr(text, '%'), "%s", text);
    tec_context_free(cx);
}

/* Columns of one panel: the rows are dealt out, in tiles that leave none over. */
Test(space, rows_of_one_panel_run_in_parallel)
{
    has_steps("def mm(A: f32[4096, 64], B: f32[1, 64, 16]) {\n"
              "  acc[m: 4096, nb: 1, ni: 16] = sum[k: 64](A[m, k] * B[nb, k, ni]) @role(anchor)\n"
              "  Y[m: 4096, n: 16] = acc[m, floordiv(n, 16), n % 16] @role(epilogue)\n"
              "  return Y\n}\n",
              avx512, "= split(Y.m, _, 4, 16)");
    has_steps("def mm(A: f32[4096, 64], B: f32[1, 64, 16]) {\n"
              "  acc[m: 4096, nb: 1, ni: 16] = sum[k: 64](A[m, k] * B[nb, k, ni]) @role(anchor)\n"
              "  Y[m: 4096, n: 16] = acc[m, floordiv(n, 16), n % 16] @role(epilogue)\n"
              "  return Y\n}\n",
              avx512, "parallel(Y.");
}

/* Images of a batch of unknown size: whether vectors end with an image or not, the loops become one, and the
 * schedule is never refused. */
Test(space, images_of_a_symbolic_batch_are_flat)
{
    static const int64_t sizes[][3] = {{128, 56, 56}, {128, 7, 7}, {3, 5, 9},     {16, 1, 1},
                                       {8, 14, 14},   {6, 6, 6},   {240, 28, 28}, {2, 224, 224}};
    tec_context *cx = tec_context_new();

    for (int i = 0; i < BASE_COUNT(sizes); i++) {
        const int64_t *e = sizes[i];
        const char *text = base_format(cx,
                                       "def f(n, A: f32[n, %d, %d, %d]) { B[a: n, b: %d, c: %d, d: %d] = "
                                       "max(A[a, b, c, d], 0.0) return B }",
                                       (int)e[0], (int)e[1], (int)e[2], (int)e[0], (int)e[1], (int)e[2]);

        cr_expect(strstr(trace_of(cx, text, avx512), "= fuse(B.a, B.b, B.c, B.d)"), "%s", text);
        trace_of(cx, text, "llvm -mcpu=x86-64-v2");
    }
    tec_context_free(cx);
}

/* A row index is a quotient that all lanes share, masked or not. */
Test(space, the_row_of_symbolic_columns_is_no_vector)
{
    tec_context *cx = tec_context_new();
    te_file *f =
        te_parse(cx, "test.te", "def f(n, m, A: f32[n]) { B[a: n, b: m] = max(A[a], 0.0) return B }");
    lower_options o = {.cx = cx, .target = target_parse(cx, avx512)};
    const ir_program *p = lower_run(&o, sched_tree(space_default(cx, te_tree(cx, f->defs.at[0]), o.target)));

    cr_assert(p, "%s", tec_context_error(cx));
    const char *text = ir_program_text(cx, p);
    cr_assert(strstr(text, "floordiv(B.a~B.b.0, floordiv(m + 15, 16))"), "%s", text);
    cr_assert_not(strstr(text, "broadcast(1, 16)"), "%s", text);
    tec_context_free(cx);
}

/* Four panels of columns are four tasks; with the tiles of rows there are twenty. */
/* A prime number of rows has no equal pieces. One panel gives no other tasks; many panels do. */
Test(space, rows_that_leave_a_rest_run_in_parallel_where_nothing_else_does)
{
    tec_context *cx = tec_context_new();
    const char
        *one = "def p(A: f32[1009, 512], B: f32[512, 16]) { C[i, j] = sum[k](A[i, k] * B[k, j]) return C }",
        *small = "def p(A: f32[13, 8], B: f32[8, 16]) { C[i, j] = sum[k](A[i, k] * B[k, j]) return C }";

    has_steps(one, avx512, "parallel(C.cache.global.j.0~C.cache.global.i.0)");
    cr_assert_null(strstr(trace_of(cx, small, avx512), "parallel"));
    tec_context_free(cx);
}

/* One result gives no tasks, so partial results do. */
Test(space, a_long_reduction_to_a_scalar_is_parallel)
{
    tec_context *cx = tec_context_new();
    has_steps("def f(A: f32[4000000]) { M[] = max[k](A[k]) return M }", avx512,
              "split(M.k, 64, _)\nM.rf = rfactor(M.k.0, 0)\n");
    has_steps("def f(A: f32[4000000]) { M[] = max[k](A[k]) return M }", avx512, "parallel(M.k.0)");
    cr_assert_null(
        strstr(trace_of(cx, "def f(A: f32[4000]) { M[] = max[k](A[k]) return M }", avx512), "parallel"));
    tec_context_free(cx);
}

/* The number of parts follows from the length at the call: a short one has a single part, on one thread. */
Test(space, a_reduction_of_unknown_length_to_a_scalar_has_parts_of_one_length)
{
    has_steps("def f(n, A: f32[n]) { M[] = max[k](A[k]) return M }", avx512,
              "M.k.0, M.k.1 = split(M.k, _, 64)\nM.k.0.0, M.k.0.1 = split(M.k.0, _, 512)\n"
              "M.rf = rfactor(M.k.0.0, 0)\nvectorize(M.k.1)\nparallel(M.k.0.0)");
    has_steps("def f(n, m, A: f32[n, m]) { M[] = max[i, k](A[i, k]) return M }", avx512,
              "parallel(M.i~M.k.0.0)");
}

Test(space, a_product_is_parallel_over_rows_where_its_panels_are_few)
{
    has_steps(product, avx512, "= fuse(Y.n.0, Y.m.0)\nparallel(Y.n.0~Y.m.0)");
}

/* 128 rows are sixteen tiles of 8, since tiles of 12 would leave a rest. */
Test(space, tiles_of_a_product_divide_its_rows_where_a_few_rows_less_do)
{
    has_steps("def mm(A: f32[128, 64], B: f32[24, 64, 32]) {\n"
              "  acc[m: 128, nb: 24, ni: 32] = sum[k: 64](A[m, k] * B[nb, k, ni])\n"
              "  Y[m: 128, n: 768] = acc[m, floordiv(n, 32), n % 32]\n"
              "  return Y\n}\n",
              avx512, "= split(Y.m, _, 4, 8)");
}

Test(space, work_that_costs_less_than_a_fork_stays_on_one_thread)
{
    tec_context *cx = tec_context_new();

    cr_assert_not(strstr(
        trace_of(cx, "def f(A: f32[1, 64], B: f32[64, 32]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }",
                 avx512),
        "parallel"));
    cr_assert_not(
        strstr(trace_of(cx, "def f(A: f32[4000]) { C[x] = max(A[x], 0.0) return C }", avx512), "parallel"));
    cr_assert(
        strstr(trace_of(cx, "def f(A: f32[4000]) { C[x] = tanh(exp(A[x])) return C }", avx512), "parallel"));
    cr_assert(
        strstr(trace_of(cx, "def f(A: f32[400000]) { C[x] = max(A[x], 0.0) return C }", avx512), "parallel"));
    tec_context_free(cx);
}

/* A square of what is read across goes through registers where a row is a vector. */
Test(space, a_transpose_turns_squares_in_registers)
{
    const char *text = "def f(A: f32[1000, 520]) {\n  T[y: 520, x: 1000] = A[x, y]\n  return T\n}\n";

    has_steps(text, avx512,
              "T.y.0, T.y.1 = split(T.y, _, 16)\nA.cache.local = cache_read(A, local, T)\n"
              "compute_at(A.cache.local, T.x.0)\nvectorize(A.cache.local.ax1)\nunroll(T.y.1)");
    has_steps("def f(A: f32[1000, 12]) {\n  T[y: 12, x: 1000] = A[x, y]\n  return T\n}\n", avx512,
              "T.y.0, T.y.1 = split(T.y, _, 8)\ncompute_at(A.cache.local, T.x.0)");
}

/* The axis of one element that was reduced is no column. A long row starts with several vectors. */
Test(space, a_reduction_that_keeps_its_axis_has_lanes_along_its_rows)
{
    has_steps("def f(A: f32[512, 1000]) {\n  M[y: 512, z: 1] = max[x: 1000](A[y, x])\n  return M\n}\n",
              avx512, "= split(M.x, _, 64)\nvectorize(M.x.1)\nparallel(M.y");
    has_steps("def f(A: f32[512, 100]) {\n  M[y: 512, z: 1] = max[x: 100](A[y, x])\n  return M\n}\n", avx512,
              "= split(M.x, _, 16)\nvectorize(M.x.1)");
    has_steps("def f(A: f32[1000, 512]) {\n  M[z: 1, x: 512] = max[y: 1000](A[y, x])\n  return M\n}\n",
              avx512, "= split(M.x, _, 16)\nvectorize(M.x.1)");
}

static const char *const softmax = "def softmax(X: f32[%d, %d]) {\n"
                                   "  M[y: %d] = max[x: %d](X[y, x])\n"
                                   "  E[y: %d, x: %d] = exp(X[y, x] - M[y]) @keep(true)\n"
                                   "  S[y: %d] = sum[x: %d](E[y, x])\n"
                                   "  Y[y: %d, x: %d] = E[y, x] / S[y]\n"
                                   "  return Y\n}\n";

Test(space, the_stages_of_a_long_row_of_a_softmax_are_computed_row_by_row)
{
    tec_context *cx = tec_context_new();

    has_steps(base_format(cx, softmax, 512, 1000, 512, 1000, 512, 1000, 512, 1000, 512, 1000), avx512,
              "parallel(Y.y)\ncompute_at(S, Y.y)\ncompute_at(E, Y.y)\ncompute_at(M, Y.y)");
    cr_assert_not(
        strstr(trace_of(cx, base_format(cx, softmax, 512, 64, 512, 64, 512, 64, 512, 64, 512, 64), avx512),
               "compute_at"));
    tec_context_free(cx);
}

Test(space, a_transpose_goes_by_tiles_of_cache_lines)
{
    has_steps("def f(A: f32[256, 512]) {\n  B[y: 512, x: 256] = A[x, y]\n  return B\n}\n", avx512,
              "= split(B.y, _, 16)\n= split(B.x, _, 16)\nreorder(B.y.0, B.x.0, B.y.1, B.x.1)");
}

/* A weight that is used once need not be packed for that. */
Test(space, an_operand_that_few_rows_use_is_packed_in_passing)
{
    static const char *const text =
        "def f(A: f32[%d, 256], B: f32[256, 512]) {\n"
        "  P[nb: 16, k: 256, ni: 32] = B[k, nb * 32 + ni] @role(prologue) @keep(true)\n"
        "  acc[m: %d, nb: 16, ni: 32] = sum[k: 256](A[m, k] * P[nb, k, ni]) @role(anchor)\n"
        "  Y[m: %d, n: 512] = acc[m, floordiv(n, 32), n %% 32] @role(epilogue)\n"
        "  return Y\n}\n";
    tec_context *cx = tec_context_new();

    cr_assert(strstr(trace_of(cx, base_format(cx, text, 1, 1, 1), avx512), "compute_inline(P)"));
    cr_assert_not(strstr(trace_of(cx, base_format(cx, text, 64, 64, 64), avx512), "compute_inline(P)"));
    tec_context_free(cx);
}

/* The rest of the rows is cut off from a loop of their own; in a fused loop each tile would have to ask
 * whether it is the last. */
Test(space, rows_of_unknown_number_are_a_loop_inside_of_the_parallel_one)
{
    has_steps("def mm(n, A: f32[n, 64], B: f32[24, 64, 32]) {\n"
              "  acc[m: n, nb: 24, ni: 32] = sum[k: 64](A[m, k] * B[nb, k, ni])\n"
              "  Y[m: n, x: 768] = acc[m, floordiv(x, 32), x % 32]\n"
              "  return Y\n}\n",
              avx512, "reorder(Y.x.0, Y.m.0, Y.x.1, Y.m.1, Y.m.2, Y.x.2, Y.x.3)\nparallel(Y.x.0)");
}
