/* tests/te/intrinsic.c -- tensor intrinsics: the meaning of each form, text, and what is refused. */
#include <stdio.h>

#include "ir/verify/verify.h"
#include "ir/walk.h"
#include "tec/te.h"
#include "tests/plain.h"
#include "tests/te/kit.h"

TestSuite(te_intrinsic, .init = open_context, .fini = close_context);

static const char *const dot = "intrinsic dot4(a: u8[2, 4], b: i8[4]) {\n"
                               "  c[i: 2] = sum[k: 4](i32(a[i, k]) * i32(b[k]))\n"
                               "  return c\n"
                               "  body \"c = dot(\\\"a\\\",\\tb)\\n\"\n"
                               "  reset \"c = 0\"\n"
                               "  update \"c += dot(a, b)\"\n"
                               "}\n";

static const te_intrinsic *declared(const char *text)
{
    te_intrinsics *t = te_intrinsics_parse(cx, "t", text);

    cr_assert(t, "%s\n%s", tec_context_error(cx), text);
    return t->list.at[0];
}

Test(te_intrinsic, round_trips)
{
    cr_assert_str_eq(te_intrinsic_text(cx, declared(dot)), dot);
    cr_assert_str_eq(declared(dot)->text[TE_BODY], "c = dot(\"a\",\tb)\n");
}

/* Operands as they lie: in the parameters of every form, the strides' variables behind all others. */
Test(te_intrinsic, says_how_operands_lie)
{
    const char *text = "intrinsic gemm(n, a: f32[4, n], b: f32[n, 8]) {\n"
                       "  c[i: 4, j: 8] = sum[k: n](a[i, k] * b[k, j])\n"
                       "  return c\n"
                       "  strides a[lda, 1]\n"
                       "  align a 16\n"
                       "  scope c local\n"
                       "  reset \"call zero\"\n"
                       "  update \"call gemm\"\n"
                       "}\n";
    const te_intrinsic *in = declared(text);
    const ir_program *p = in->ir[TE_UPDATE]->meaning;

    cr_assert_str_eq(te_intrinsic_text(cx, in), text);
    cr_assert(ir_verify(cx, p, IR_VERIFY_TREE), "%s\n%s", tec_context_error(cx), ir_program_text(cx, p));
    cr_assert(strncmp(ir_program_text(cx, p),
                      "program gemm.update(symbol n, symbol lda, a: f32[4, n] align(16) strides(lda, 1), b: "
                      "f32[n, 8], out c: f32[4, 8] @local, "
                      "n, lda)",
                      120) == 0,
              "%s", ir_program_text(cx, p));
    const ir_program *again = ir_parse_program(cx, "t", ir_program_text(cx, p));
    cr_assert(again && ir_same_program(cx, p, again), "%s", tec_context_error(cx));
    cr_assert_eq(in->ir[TE_RESET]->meaning->n_params, 3);
}

Test(te_intrinsic, joins_lines)
{
    cr_assert_str_eq(
        declared("intrinsic f(a: f32[4]) { c[i] = a[i] return c body \"x\" \"y\" }")->text[TE_BODY], "x\ny");
}

Test(te_intrinsic, stands_beside_definitions)
{
    te_file *f = te_parse(cx, "t", base_format(cx, "%sdef f(A: f32[4]) { B[i] = A[i] return B }", dot));

    cr_assert(f, "%s", tec_context_error(cx));
    cr_assert_eq(f->defs.n, 1);
    cr_assert_eq(te_intrinsic_named(&f->intrinsics, "dot4"), f->intrinsics.list.at[0]);
    cr_assert_null(te_intrinsic_named(&f->intrinsics, "dot5"));
}

static void run_form(const te_intrinsic *in, te_form form, ir_arg *args)
{
    const ir_program *p = in->ir[form]->meaning;

    cr_assert(ir_verify(cx, p, IR_VERIFY_TREE), "%s\n%s", tec_context_error(cx), ir_program_text(cx, p));
    cr_assert(ir_interpret(cx, p, &(ir_run){.args = args}), "%s\n%s", tec_context_error(cx),
              ir_program_text(cx, p));
}

Test(te_intrinsic, body_and_reset_mean_what_they_say)
{
    const te_intrinsic *in = declared(dot);
    uint8_t a[8] = {1, 2, 3, 4, 255, 255, 255, 255};
    int8_t b[4] = {1, -1, 2, -128};
    int32_t c[2] = {7, 7};
    ir_arg all[] = {ARRAY(BASE_U8, a, 2, 4), ARRAY(BASE_I8, b, 4), ARRAY(BASE_I32, c, 2)};

    run_form(in, TE_BODY, all);
    cr_assert(c[0] == 1 - 2 + 6 - 512 && c[1] == 255 * -126);
    run_form(in, TE_RESET, &all[2]);
    cr_assert(c[0] == 0 && c[1] == 0);
    cr_assert_str_eq(in->ir[TE_BODY]->name, "dot4");
    cr_assert_str_eq(in->ir[TE_RESET]->name, "dot4.reset");
    cr_assert_str_eq(in->ir[TE_UPDATE]->name, "dot4.update");
}

/* reset once, then update: a program that calls both, as the tree after tensorize will. */
Test(te_intrinsic, update_combines_into_what_is_there)
{
    const te_intrinsic *in = declared(dot);
    const ir_expr *zero = ir_int(cx, 0), *four = ir_int(cx, 4), *shape[2] = {ir_int(cx, 4), four},
                  *two = ir_int(cx, 2);
    const ir_buffer *a = ir_buffer_new(cx, "A", BASE_U8, shape, 2),
                    *b = ir_buffer_new(cx, "B", BASE_I8, &four, 1),
                    *c = ir_buffer_new(cx, "C", BASE_I32, &two, 1), *abc[] = {a, b, c};
    const ir_expr *i = ir_var(cx, "i", BASE_I64), *at[] = {ir_mul(cx, i, ir_int(cx, 8)), zero, zero};
    const ir_stmt *reset =
        ir_evaluate(cx, ir_call(cx, BASE_I32, "dot4.reset", in->ir[TE_RESET], &zero, 1, &c, 1, false));
    const ir_stmt *update =
        ir_evaluate(cx, ir_call(cx, BASE_I32, "dot4.update", in->ir[TE_UPDATE], at, 3, abc, 3, false));
    ir_param params[] = {{.buffer = a}, {.buffer = b}, {.buffer = c, .output = true}};
    ir_program p = {.name = "p",
                    .params = params,
                    .n_params = 3,
                    .intrinsics = in->ir + TE_RESET,
                    .n_intrinsics = 2,
                    .body = ir_seq2(cx, reset, ir_for(cx, i, zero, two, IR_SERIAL, update))};
    uint8_t A[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    int8_t B[4] = {1, -1, 2, 3};
    int32_t C[2];
    ir_arg args[] = {ARRAY(BASE_U8, A, 4, 4), ARRAY(BASE_I8, B, 4), ARRAY(BASE_I32, C, 2)};

    cr_assert(ir_verify(cx, &p, IR_VERIFY_TREE), "%s", tec_context_error(cx));
    cr_assert(ir_interpret(cx, &p, &(ir_run){.args = args}), "%s\n%s", tec_context_error(cx),
              ir_program_text(cx, &p));
    for (int k = 0; k < 2; k++) {
        int want = 0;

        for (int j = 0; j < 4; j++)
            want += (A[4 * k + j] + A[8 + 4 * k + j]) * B[j];
        cr_assert_eq(C[k], want, "%d: %d, not %d", k, C[k], want);
    }
    const ir_program *again = ir_parse_program(cx, "t", ir_program_text(cx, &p));
    cr_assert(again && ir_same_program(cx, &p, again), "%s\n%s", tec_context_error(cx),
              ir_program_text(cx, &p));
}

Test(te_intrinsic, a_table_prints_what_it_read)
{
    const char *both = base_format(
        cx, "%sintrinsic inc(a: f32[4]) {\n  c[i: 4] = a[i] + 1.0\n  return c\n  body \"inc\"\n}\n", dot);
    const tec_intrinsics *t = tec_intrinsics_parse(cx, "t", both);

    cr_assert_eq(tec_intrinsics_count(t), 2, "%s", tec_context_error(cx));
    cr_assert_str_eq(tec_intrinsics_text(cx, t), both);
}

static void refuses_intrinsic(const char *text, const char *message)
{
    cr_assert_null(te_intrinsics_parse(cx, "t", text), "expected: %s", message);
    cr_assert_str_eq(plain(cx, tec_context_error(cx)), message);
    tec_context_clear(cx);
}

#define ADD "c[i] = a[i] + 1.0 return c "

Test(te_intrinsic, names_what_is_wrong)
{
    refuses_intrinsic("", "t: error: no intrinsic found: expected 'intrinsic NAME(...) { ... }'");
    refuses_intrinsic("def f(A: f32[4]) { B[i] = A[i] return B }",
                      "t:1: error: expected 'intrinsic', found 'def'");
    refuses_intrinsic("intrinsic f(a: f32[4]) { b[i] = a[i] c[i] = b[i] return c body \"x\" }",
                      "t:1: error: intrinsic 'f' must be one computed stage, found 2");
    refuses_intrinsic(
        "intrinsic f(a: f32[4]) { extern c: f32[4] = g(a) return c body \"x\" }",
        "t:1: error: intrinsic 'f' must be one computed stage; its 1 stage is a scan or an extern call");
    refuses_intrinsic("intrinsic f(a: f32[4]) { c(x, y)[i] = a[i], a[i] return x body \"x\" }",
                      "t:1: error: intrinsic 'f' must return all that it computes");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "}",
                      "t:1: error: intrinsic 'f' has neither a body nor an update");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "body \"x\" reset \"y\" }",
                      "t:1: error: intrinsic 'f' has a reset but no update");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "update \"x\" }",
                      "t:1: error: intrinsic 'f' has an update, but its meaning is not a reduction");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "body \"\" }",
                      "t:1: error: the body of intrinsic 'f' is empty");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "body \"x\" body \"y\" }",
                      "t:1: error: 'body' is given twice");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "body x }",
                      "t:1: error: expected a text in quotes, found 'x'");
    refuses_intrinsic(
        "intrinsic f(s: i64, a: f32[4]) { c[] = sum[k: s](a[k]) return c body \"x\" }",
        "t:1: error: the extent of axis 'k' in intrinsic 'f' is neither a constant nor a symbol");
    refuses_intrinsic("intrinsic f(s: i64, a: f32[4]) { c[i: s] = a[i] return c body \"x\" }",
                      "t:1: error: a dimension of 'c' in intrinsic 'f' is neither a constant nor a symbol");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "strides b[1] body \"x\" }",
                      "t:1: error: 'b' is not a tensor of 'f'");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "strides a[s, 1] body \"x\" }",
                      "t:1: error: 'a' has 1 dimensions, but 2 strides are given");
    refuses_intrinsic("intrinsic f(n, a: f32[n]) { " ADD "strides a[n] body \"x\" }",
                      "t:1: error: stride 'n' has the same name as a symbol");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "align a 12 body \"x\" }",
                      "t:1: error: expected a power of two up to 4096 as the alignment, found 12");
    refuses_intrinsic("intrinsic f(a: f32[4]) { " ADD "scope a near body \"x\" }",
                      "t:1: error: there is no scope 'near'");
    refuses_intrinsic(base_format(cx, "%s%s", dot, dot), "t:8: error: intrinsic 'dot4' is declared twice");
}

Test(te_intrinsic, survives_torn_text)
{
    char torn[512];

    for (size_t n = 0; n + 2 < strlen(dot); n++) {
        snprintf(torn, sizeof torn, "%.*s", (int)n, dot);
        cr_assert_null(te_intrinsics_parse(cx, "t", torn), "%s", torn);
        tec_context_clear(cx);
    }
}
