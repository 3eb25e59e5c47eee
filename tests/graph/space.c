/* The start of a definition's space is as good as the default schedule of its operator: both lower to the same program. */
#include <criterion/criterion.h>

#include "ir/text.h"
#include "ir/walk.h"
#include "lower/pass.h"
#include "ops/op.h"
#include "space/space.h"
#include "te/text.h"

static const char *const conv = "def conv(in0: f32[1, 64, 20, 20], in1: f32[1, 4, 4, 3, 3, 16, 16], in2: f32[64]) {\n"
                                "  P[n: 1, g: 1, ib: 4, s0: 22, s1: 22, ii: 16] = select(s0 >= 1 && s0 < 21 && (s1 >= 1 && s1 < 21), in0[n, g * 64 + (ib * 16 + ii), s0 "
                                "- 1, s1 - 1], 0.0) @role(prologue) @keep(true)\n"
                                "  acc[n: 1, g: 1, ob: 4, s0: 20, s1: 20, oi: 16] = sum[ib: 4, k0: 3, k1: 3, ii: 16](P[n, g, ib, s0 + k0, s1 + k1, ii] * in1[g, ob, ib, k0, "
                                "k1, ii, oi]) @role(anchor)\n"
                                "  Y[n: 1, c: 64, s0: 20, s1: 20] = max(acc[n, 0, floordiv(c, 16), s0, s1, c % 16] + in2[c], 0.0) @role(epilogue)\n"
                                "  return Y\n"
                                "}\n";

static const char *const product = "def mm(in0: f32[60, 96], in1: f32[4, 96, 32], in2: f32[128]) {\n"
                                   "  acc[m: 60, nb: 4, ni: 32] = sum[k: 96](in0[m, k] * in1[nb, k, ni]) @role(anchor)\n"
                                   "  Y[m: 60, n: 128] = max(acc[m, floordiv(n, 32), n % 32] + in2[n], 0.0) @role(epilogue)\n"
                                   "  return Y\n"
                                   "}\n";

static const char *const packed = "def packed(in0: f32[1, 4, 20, 20, 16], in1: f32[4, 4, 3, 3, 16, 16], in2: f32[64]) {\n"
                                  "  P[n: 1, ib: 4, s0: 20, s1: 22, ii: 16] = select(s1 >= 1 && s1 < 21, in0[n, ib, s0, s1 - 1, ii], 0.0) @role(prologue) @keep(true)\n"
                                  "  acc[n: 1, ob: 4, s0: 20, s1: 20, oi: 16] = sum[ib: 4, k0: 3, k1: 3, ii: 16](P[n, ib, s0 + k0 - 1, s1 + k1, ii] * in1[ob, ib, k0, "
                                  "k1, ii, oi] where s0 + k0 >= 1 && s0 + k0 < 21) @role(anchor)\n"
                                  "  Y[n: 1, ob: 4, s0: 20, s1: 20, oi: 16] = max(acc[n, ob, s0, s1, oi] + in2[ob * 16 + oi], 0.0) @role(epilogue)\n"
                                  "  return Y\n"
                                  "}\n";

static const char *const depthwise = "def depthwise(in0: f32[1, 4, 20, 20, 16], in1: f32[4, 3, 3, 16], in2: f32[64]) {\n"
                                     "  P[n: 1, ib: 4, s0: 22, s1: 22, ii: 16] = select(s0 >= 1 && s0 < 21 && (s1 >= 1 && s1 < 21), in0[n, ib, s0 - 1, s1 - 1, ii], 0.0) "
                                     "@role(prologue)\n"
                                     "  acc[n: 1, ob: 4, s0: 20, s1: 20, oi: 16] = sum[k0: 3, k1: 3](P[n, ob, s0 + k0, s1 + k1, oi] * in1[ob, k0, k1, oi]) @role(anchor)\n"
                                     "  Y[n: 1, ob: 4, s0: 20, s1: 20, oi: 16] = max(acc[n, ob, s0, s1, oi] + in2[ob * 16 + oi], 0.0) @role(epilogue)\n"
                                     "  return Y\n"
                                     "}\n";

static void starts_at_the_default(const char *text, const char *op, int impl, const char *device)
{
    tec_context *cx = tec_context_new();
    te_file *f = te_parse(cx, "test.te", text);
    const target *t = target_parse(cx, device);
    const ir_program *tree = te_tree(cx, f->defs.at[0]);
    space *sp = space_master(cx, tree, t);
    sched *by_default = sched_new(cx, tree, t);
    lower_options o = {.cx = cx, .target = t};

    cr_assert(sp && op_schedule(by_default, &op_find(op)->impls[impl]), "%s", sched_error(by_default));
    space_point p = space_start(sp);
    sched *start = space_apply(cx, sp, &p);
    cr_assert_not(sched_failed(start), "%s", sched_error(start));
    const ir_program *a = lower_run(&o, sched_tree(by_default)), *b = lower_run(&o, sched_tree(start));
    cr_assert(a && b, "%s", tec_context_error(cx));
    cr_assert(ir_same_program(cx, a, b), "the default:\n%s\nthe start:\n%s", ir_program_text(cx, a), ir_program_text(cx, b));
    tec_context_free(cx);
}

Test(space, a_convolution_starts_at_the_default)
{
    starts_at_the_default(conv, "conv", 0, "llvm -mcpu=x86-64-v4 -num-cores=2");
}
Test(space, a_matrix_product_starts_at_the_default)
{
    starts_at_the_default(product, "matmul", 0, "llvm -mcpu=x86-64-v4 -num-cores=2");
}
Test(space, a_convolution_on_packed_channels_starts_at_the_default)
{
    starts_at_the_default(packed, "conv_packed", 0, "llvm -mcpu=x86-64-v4 -num-cores=2");
}
Test(space, a_depthwise_convolution_on_packed_channels_starts_at_the_default)
{
    starts_at_the_default(depthwise, "conv_packed", 1, "llvm -mcpu=x86-64-v4 -num-cores=2");
}
