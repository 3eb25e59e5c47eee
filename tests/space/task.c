/* The keys of tuning tasks. */
#include <criterion/criterion.h>
#include <string.h>

#include "space/task.h"
#include "te/text.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(task, .init = open_context, .fini = close_context);

static const space_task *task_of(const char *text)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    const space_task *t = space_task_new(cx, f->defs.at[0], NULL);
    cr_assert(t, "%s", tec_context_error(cx));
    return t;
}

static const char *const product =
    "def mm(A: f32[24, 20], B: f32[20, 36]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";

Test(task, the_anchor_key_says_what_is_computed_and_how_large)
{
    const space_task *t = task_of(product);

    cr_assert_str_eq(
        t->family,
        "b0[v0, v1] sum= b1[v0, v2] * b2[v2, v1] with b0: f32, b1: f32, b2: f32 over v0, v1, v2 reduce");
    cr_assert_str_eq(t->summary, "C [24, 36, 20]");
    cr_assert_str_eq(t->anchor_key, base_format(cx, "%s [24, 36, 20]", t->family));
    cr_assert(t->n_shape == 3 && t->shape[0] == 24 && t->shape[1] == 36 && t->shape[2] == 20);
}

Test(task, names_are_not_in_the_keys)
{
    const space_task *a = task_of(product);
    const space_task *b =
        task_of("def other(P: f32[24, 20], Q: f32[20, 36]) { C[y, x] = sum[k](P[y, k] * Q[k, x]) return C }");

    cr_assert_str_eq(a->anchor_key, b->anchor_key);
    cr_assert_str_eq(a->exact_key, b->exact_key);
}

Test(task, an_epilogue_is_in_the_exact_key_alone)
{
    const space_task *a = task_of(product);
    const space_task *b = task_of("def f(A: f32[24, 20], B: f32[20, 36], b: f32[36]) {\n"
                                  "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                                  "  D[y, x] = max(C[y, x] + b[x], 0.0)\n"
                                  "  return D\n"
                                  "}");

    cr_assert_str_eq(a->anchor_key, b->anchor_key);
    cr_assert_str_neq(a->exact_key, b->exact_key);
}

Test(task, another_shape_is_another_task_of_the_same_family)
{
    const space_task *a = task_of(product);
    const space_task *b =
        task_of("def mm(A: f32[48, 20], B: f32[20, 36]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }");

    cr_assert_str_eq(a->family, b->family);
    cr_assert_str_neq(a->anchor_key, b->anchor_key);
    cr_assert(b->shape[0] == 48);
}

Test(task, another_dtype_or_stride_is_another_family)
{
    const space_task *a = task_of(product);
    const space_task *b =
        task_of("def mm(A: f64[24, 20], B: f64[20, 36]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }");
    const space_task *c = task_of(
        "def mm(A: f32[48, 20], B: f32[20, 36]) { C[y: 24, x] = sum[k](A[2 * y, k] * B[k, x]) return C }");

    cr_assert_str_neq(a->family, b->family);
    cr_assert_str_neq(a->family, c->family);
}

Test(task, symbols_are_named_by_their_order_and_have_their_ranges)
{
    const space_task *a =
        task_of("def f(n, A: f32[n, 20], B: f32[20, 36]) where n >= 1, n <= 64, n % 8 == 0 {\n"
                "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                "  return C\n"
                "}");
    const space_task *b =
        task_of("def f(m, A: f32[m, 20], B: f32[20, 36]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }");

    cr_assert_str_eq(a->summary, "C [s0, 36, 20] where s0 in 8..64 % 8 == 0");
    cr_assert_str_eq(b->summary, "C [s0, 36, 20] where s0 in 0..");
    cr_assert_str_eq(a->family, b->family);
    cr_assert(a->shape[0] > 22 && a->shape[0] < 23 && b->shape[0] == 0);
}

Test(task, the_role_says_which_stage_is_the_anchor)
{
    const space_task *t = task_of("def f(A: f32[4], B: f32[100, 100]) {\n"
                                  "  S[i] = A[i] * 2.0 @role(anchor)\n"
                                  "  T[y, x] = B[y, x] + S[0]\n"
                                  "  return T\n"
                                  "}");

    cr_assert_str_eq(t->summary, "S+T [4]");
}

Test(task, an_operator_says_what_its_anchor_is)
{
    te_file *f = te_parse(cx, "test.te", product);
    const ir_expr *shape[] = {ir_int(cx, 24), ir_int(cx, 20)};
    const ir_buffer *operand[] = {ir_buffer_new(cx, "in", BASE_F32, shape, 2)};
    space_anchor a = {.impl = "matmul.packed",
                      .version = 2,
                      .operand = operand,
                      .n_operands = 1,
                      .attributes = "trans_a=0"};
    const space_task *t = space_task_new(cx, f->defs.at[0], &a);

    cr_assert_str_eq(t->anchor_key, "matmul.packed@2(f32 of rank 2) trans_a=0 [24, 20]");
    cr_assert(base_starts_with(t->exact_key, t->anchor_key));
}
