/* tests/te/recover.c -- several errors of one text, each with its column, and none that another explains. */
#include "te/recover.h"

#include "tests/te/kit.h"

TestSuite(te_recover, .init = open_context, .fini = close_context);

static void says(const char *text, const char *message)
{
    cr_assert_null(te_parse(cx, "t", text), "expected: %s", message);
    cr_assert_str_eq(tec_context_error(cx), message);
    tec_context_clear(cx);
}

Test(te_recover, shows_line_column_and_caret)
{
    says("def f(n, A: f32[n]) {\n\tB[i] = A[j]\n\treturn B\n}",
         "t:2:11: error: unknown variable 'j'\n\tB[i] = A[j]\n\t         ^");
}

Test(te_recover, tells_each_error_and_no_consequence)
{
    says("def f(n, A: f32[n], X: float32[n]) {\n"
         "  B[i] = A[j]\n"
         "  C[i] = B[i] + 1.0\n"
         "  D[i] = C[i] + Q[i]\n"
         "  E[i: n] = X[i]\n"
         "  F[i] = A[i, i]\n"
         "  return C, E\n"
         "}\n"
         "schedule f { unroll(B.i) }\n"
         "def g(A: f32[4]) { B[i] = A[i] return BB }\n",
         "t:1:24: error: expected a type, found 'float32'; did you mean 'f32'?\n"
         "def f(n, A: f32[n], X: float32[n]) {\n"
         "                       ^\n"
         "t:2:12: error: unknown variable 'j'\n"
         "  B[i] = A[j]\n"
         "           ^\n"
         "t:6:10: error: 'A' has 1 dimension, and 2 indices are given\n"
         "  F[i] = A[i, i]\n"
         "         ^\n"
         "t:10:39: error: 'BB' is not a tensor of 'g'\n"
         "def g(A: f32[4]) { B[i] = A[i] return BB }\n"
         "                                      ^");
}

Test(te_recover, shows_how_a_scalar_result_is_written)
{
    says("def f(n, A: f32[n]) {\n  S = sum[i](A[i])\n  return S\n}\n",
         "t:2:5: error: expected '[' and the axes of 'S' (a scalar has none: S[] = ...), found '='\n"
         "  S = sum[i](A[i])\n"
         "    ^");
}

Test(te_recover, leaves_a_definition_whose_brackets_do_not_balance)
{
    says("def f(n, A: f32[n]) {\n"
         "  B[i] = A[i\n"
         "  C[i] = A[q]\n"
         "  return B\n"
         "}\n"
         "def g(A: f32[4]) { B[i] = A[j] return B }\n",
         "t:3:3: error: expected ']', found 'C'\n  C[i] = A[q]\n  ^\n"
         "t:6:29: error: unknown variable 'j'\n"
         "def g(A: f32[4]) { B[i] = A[j] return B }\n"
         "                            ^");
}

Test(te_recover, counts_what_is_beyond_the_limit)
{
    base_text t = {0};

    base_add(cx, &t, "def f(A: f32[4]) {\n");
    for (int i = 0; i < 13; i++)
        base_addf(cx, &t, "  B%d[i] = A[j]\n", i);
    base_add(cx, &t, "  return B0\n}\n");
    cr_assert_null(te_parse(cx, "t", base_text_str(cx, &t)));
    const char *said = tec_context_error(cx);
    int n = 0;
    for (const char *p = said; (p = strstr(p, "unknown variable")); p++)
        n++;
    cr_assert(n == 10 && base_ends_with(said, "\nerror: 3 more errors in this text"), "%s", said);
}

Test(te_recover, finds_the_next_item)
{
    static const struct {
        const char *text, *next;
    } cases[] = {{"B[i] = A[i] # ( x\n  C[i] = 1", "C[i] = 1"},
                 {"B[i] = A[i] +\n  A[i + 1]\n}", "}"},
                 {"B[i] = sum[k](\n  A[k])\n\n\treturn B", "return B"},
                 {"scan s[t: n] {\n init a\n update b\n}\nD[i] = 2", "D[i] = 2"},
                 {"B[i] = (A[i]\n  C[i] = 1\n}", NULL},
                 {"B[i] = A[i]", NULL},
                 {"B[i] = A[i]\ndef g", NULL}};

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        const char *next = te_next_item(cases[i].text);

        cr_assert(base_same(next, cases[i].next), "%s: %s", cases[i].text, next ? next : "nothing");
    }
}
