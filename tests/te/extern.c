/* tests/te/extern.c -- extern stages: their trees, meanings, text, and what is refused. */
#include <stdio.h>

#include "ir/verify/verify.h"
#include "ir/walk.h"
#include "tests/plain.h"
#include "tests/te/kit.h"

TestSuite(te_extern, .init = open_context, .fini = close_context);

/* Twice the prefix sums of A, and where they are largest. */
static const char *const prefix = "def f(n, A: f32[n, 4], s: f32) {\n"
                                  "  B[i: n, j: 4] = A[i, j] + 1.0\n"
                                  "  extern P(run: f32[n, 4], top: i64[n]) = prefix_sums(B, n, s) means def "
                                  "rows(m, X: f32[m, 4], by: f32) {\n"
                                  "    S[i: m, j: 4] = sum[k: 4](X[i, k] * by where k <= j)\n"
                                  "    T.r(T.r.v0, T.r.v1)[i: m] = argmax[k: 4](S[i, k], k)\n"
                                  "    T[i: m] = T.r.v1[i]\n"
                                  "    return S, T\n"
                                  "  }\n"
                                  "  C[i: n] = sum[j: 4](run[i, j])\n"
                                  "  return C, top\n}\n";

Test(te_extern, round_trips)
{
    round_trips(prefix, prefix);
    round_trips("def f(A: f32[8]) { extern S: f32[8] = sort_floats(A) @role(anchor) @keep(1) return S }",
                "def f(A: f32[8]) {\n"
                "  extern S: f32[8] = sort_floats(A) @role(anchor) @keep(1)\n"
                "  return S\n}\n");
}

static void check_prefix(const te_def *d)
{
    float a[8] = {0, 1, 2, 3, -2, -3, 1, 0}, c[2];
    int64_t top[2];

    RUN(d, F32(a, 2, 4), {.scalar_float = 2}, F32(c, 2), I64(top, 2));
    cr_assert(c[0] == 2 * (1 + 3 + 6 + 10) && c[1] == 2 * (-1 - 3 - 1 + 0), "%g %g", (double)c[0],
              (double)c[1]);
    cr_assert(top[0] == 3 && top[1] == 3);
}

Test(te_extern, the_interpreter_runs_the_meaning)
{
    te_def *d = defined(prefix);
    const ir_expr *n = d->symbols.at[0], *two = ir_int(cx, 2);

    check_prefix(d);
    check_prefix(te_specialise(cx, d, &n, &two, 1));
}

Test(te_extern, is_an_opaque_block)
{
    const ir_program *p = te_tree(cx, defined("def f(n, A: f32[n]) { extern S: f32[n] = copy_floats(A, n) "
                                              "means def g(n, A: f32[n]) { B[i] = A[i] "
                                              "return B } return S }"));

    cr_assert(p && ir_verify(cx, p, IR_VERIFY_TREE), "%s", tec_context_error(cx));
    const char *text = ir_program_text(cx, p);
    cr_assert(strstr(text, "  block S(once opaque = 0 in 0..1) {\n"
                           "    reads A[0:n], S[0:n]\n"
                           "    writes S[0:n]\n"
                           "    assert call<i32> copy_floats(&A, &S, 0, 0, n) == i32(0), \"the extern "
                           "function 'copy_floats' of "
                           "stage 'S' failed\"\n"
                           "  }\n"),
              "%s", text);
    const ir_program *again = ir_parse_program(cx, "t", text);
    cr_assert(again && ir_same_program(cx, p, again), "%s", tec_context_error(cx));
}

Test(te_extern, cannot_be_interpreted_without_a_meaning)
{
    const ir_program *p = te_tree(cx, defined("def f(A: f32[4]) { extern S: f32[4] = mystery(A) return S }"));
    float a[4] = {0}, s[4];
    ir_arg args[] = {F32(a, 4), F32(s, 4)};

    cr_assert(p && ir_verify(cx, p, IR_VERIFY_TREE), "%s", tec_context_error(cx));
    cr_assert_not(ir_interpret(cx, p, &(ir_run){.args = args}));
    cr_assert_str_eq(
        plain(cx, tec_context_error(cx)),
        "test.te:1: error: the interpreter cannot run 'mystery': it is an extern function without a meaning");
}

#define F(stage) "def f(n, A: f32[n], s: f32) { " stage " return S }"
#define G " means def g(m, X: f32[m]) where m >= 1 { Y[i] = X[i] return Y }"

Test(te_extern, names_what_is_wrong)
{
    refuses(F("extern S: f32[n] = a.b(A)"), "t:1: error: 'a.b' cannot be the name of an extern function");
    refuses(F("extern S: f32[n] = f(B)"), "t:1: error: unknown variable 'B'");
    refuses(F("extern S: f32[n] = f(A[0])"), "t:1: error: argument 'A[0]' of extern stage 'S' reads a "
                                             "tensor: expected an expression over symbols and scalars");
    refuses(F("extern A: f32[n] = f(A)"), "t:1: error: 'A' is defined twice in 'f'");
    refuses(F("extern S: f32[n] = f(A)" G),
            "t:1: error: extern stage 'S' has 1 inputs, 1 outputs and 0 other arguments; its "
            "meaning 'g' has 1, 1, and 1 symbols and scalars");
    refuses(F("extern S: f32[n] = f(A, s)" G),
            "t:1: error: 'm' in the meaning 'g' is i64, but extern stage 'S' passes f32");
    refuses(F("extern S: f32[n] = f(A, n + 1)" G),
            "t:1: error: 'A' of extern stage 'S' does not have the type and shape of 'X' in the meaning 'g'");
    refuses(F("extern S: i32[n] = f(A, n)" G),
            "t:1: error: 'S' of extern stage 'S' does not have the type and shape of 'Y' in the meaning 'g'");
    refuses(F("extern S: f32[n] = f(A, n)" G),
            "t:1: error: the meaning 'g' of extern stage 'S' needs m >= 1, which cannot be proven");
    refuses(F("extern R: f32[n] = f(A) extern S: f32[n] = f(A, n) means def g(m, X: f32[m]) { Y[i] = X[i] "
              "return Y }"),
            "t:1: error: 'f' means something else in the extern stages 'R' and 'S'");
}

Test(te_extern, survives_deep_and_torn_text)
{
    base_text t = {0};
    char torn[1024];

    for (int i = 0; i < 100000; i++)
        base_add(cx, &t, i ? " = f() means def f() { extern S: f32[1]" : "def f() { extern S: f32[1]");
    refuses(base_text_str(cx, &t), "t:1: error: definitions are nested too deeply; the limit 'definitions' "
                                   "is 16 (--limit definitions=N, "
                                   "tec_context_set_limit)");
    for (size_t n = 0; n + 2 < strlen(prefix); n++) {
        snprintf(torn, sizeof torn, "%.*s", (int)n, prefix);
        cr_assert_null(te_parse(cx, "t", torn), "%s", torn);
        cr_assert(base_failed(cx));
        tec_context_clear(cx);
    }
}

Test(te_extern, definitions_nest_as_deep_as_the_limit_says)
{
    const char *text =
        "def f(n, A: f32[n]) { extern S: f32[n] = g(A, n) means def g(m, X: f32[m]) { extern T: f32[m] = "
        "h(X, m) means def h(k, Z: f32[k]) { Y[i] = Z[i] return Y } return T } return S }";

    cr_assert(te_parse(cx, "t", text), "%s", tec_context_error(cx));
    cr_assert(tec_context_set_limit(cx, "definitions", 1));
    refuses(text, "t:1: error: definitions are nested too deeply; the limit 'definitions' is 1 (--limit "
                  "definitions=N, tec_context_set_limit)");
    cr_assert(tec_context_set_limit(cx, "definitions", 2));
    cr_assert(te_parse(cx, "t", text), "%s", tec_context_error(cx));
}
