/* tests/te/inside.c -- extents that are never negative, indices that stay inside: refused, proven, or a
 * condition of each call. */
#include "tests/te/kit.h"

#include "ir/build.h"
#include "ir/eval.h"

TestSuite(te_inside, .init = open_context, .fini = close_context);

static void has_no_tree(const char *text, const char *message)
{
    const ir_program *p = te_tree(cx, defined(text));

    cr_assert_null(p, "expected: %s", message);
    fails_with(message);
}

Test(te_inside, refuses_an_access_that_is_always_outside)
{
    has_no_tree("def f(A: f32[10]) { B[i: 11] = A[i] return B }",
                "test.te:1: error: 'B' reads outside of 'A': its axis 0 has extent 10, the index i runs from "
                "0 to 10");
    has_no_tree("def f(n, A: f32[n]) {\n B[i: n] = A[i]\n + A[i + 1]\n return B }",
                "test.te:3: error: 'B' reads outside of 'A': its axis 0 has extent n, the index i + 1 runs "
                "from 1 to n");
    has_no_tree("def f(n, A: f32[n]) { B[i: n] = A[i - 1] return B }",
                "test.te:1: error: 'B' reads outside of 'A': its axis 0 has extent n, the index i - 1 runs "
                "from -1 to n - 2");
    has_no_tree("def conv(n, m, X: f32[n, m], W: f32[3, 3]) { Y[y: n, x: m] = sum[ky: 3, kx: 3](X[y + ky, x "
                "+ kx] * W[ky, kx]) "
                "return Y }",
                "test.te:1: error: 'Y' reads outside of 'X': its axis 0 has extent n, the index y + ky runs "
                "from 0 to n + 1");
    has_no_tree(
        "def f(A: f32[4, 8], B: f32[4, 8]) { C[i: 4, j: 8] = sum[k: 8](A[i, k] * B[k, j]) return C }",
        "test.te:1: error: 'C' reads outside of 'B': its axis 0 has extent 4, the index k runs from 0 to 7");
    has_no_tree("def f(A: f32[4]) { B[i: 20] = A[i % 5] return B }",
                "test.te:1: error: 'B' reads outside of 'A': its axis 0 has extent 4, the index i % 5 runs "
                "from 0 to 4");
    has_no_tree(
        "def f(A: f32[9]) { B[i: 10] = select(i != 8, A[i], 0.0) return B }",
        "test.te:1: error: 'B' reads outside of 'A': its axis 0 has extent 9, the index i runs from 0 to 9");
    has_no_tree("def f(n, A: f32[n]) where n >= 2 { scan s[t: n] { init h[t: 1] = A[n] update h[t] = h[t - "
                "1] } return h }",
                "test.te:1: error: 'h.first' reads outside of 'A': its axis 0 has extent n, the index n runs "
                "from n to n");
    has_no_tree("def f(n, A: f32[n]) where n >= 2 { scan s[t: n] { init h[t: 1] = A[t] update h[t] = h[t - "
                "1] + A[t + 1] } return h }",
                "test.te:1: error: 'h' reads outside of 'A': its axis 0 has extent n, the index t + 1 runs "
                "from 2 to n");
}

Test(te_inside, refuses_an_extent_that_is_always_negative)
{
    has_no_tree("def f(n, A: f32[n]) where n < 5 {\n S[] = sum[k: n - 5](A[k])\n return S }",
                "test.te:2: error: the extent of axis 'k' of 'S' is negative: n - 5");
    has_no_tree("def f(n, A: f32[n, 2 - 4]) {\n B[i] = A[i, 0] return B }",
                "test.te:1: error: the extent of dimension 1 of 'A' is negative: -2");
}

/* The conditions of a definition, as its tree prints them. */
static void asks_for(const char *text, const char *conditions)
{
    const ir_program *p = te_tree(cx, defined(text));

    cr_assert(p, "%s\n%s", tec_context_error(cx), text);
    const char *printed = ir_program_text(cx, p), *from = strstr(printed, " where "),
               *end = strstr(printed, " {\n");
    const char *found = from && from < end ? base_strndup(cx, from + 7, (size_t)(end - from - 7)) : "";
    cr_assert_str_eq(found, conditions, "%s\nexpected: %s\nfound:    %s", text, conditions, found);
    const ir_program *again = ir_parse_program(cx, "printed", printed);
    cr_assert(again, "%s", tec_context_error(cx));
    cr_assert_str_eq(ir_program_text(cx, again), printed);
}

Test(te_inside, asks_calls_for_what_the_symbols_decide)
{
    asks_for("def f(n, A: f32[n]) { S[] = sum[k: n - 5](A[k]) return S }",
             "5 <= n \"the extent of axis 'k' of 'S', n - 5, must not be negative\"");
    asks_for("def f(n, A: f32[n]) where n >= 7 { S[] = sum[k: n - 5](A[k]) return S }", "n >= 7");
    asks_for("def f(n, m, A: f32[n, m], B: f32[n, m]) { C[i, j] = sum[k](A[i, k] * B[k, j]) return C }",
             "n < 1 || m <= n \"'C' reads axis 0 of 'B' at 0 to m - 1, its extent is n\"");
    asks_for("def f(n, m, A: f32[n], B: f32[m]) { C[i: n] = select(i >= 1, B[i - 1], 0.0) return C }",
             "n <= m + 1 \"'C' reads axis 0 of 'B' at 0 to n - 2, its extent is m\"");
    asks_for("def f(n, m, A: f32[n], B: f32[m]) { extern S: f32[n] = g(A, n) means def w(p, X: f32[p]) { "
             "Y[i: p] = X[i + p - 5] "
             "return Y }\n"
             " C[i: n] = S[i] return C }",
             "n < 1 || 5 <= n && n < 6 \"in the meaning of extern stage 'S': 'Y' reads axis 0 of 'X' at p - "
             "5 to p * 2 - 6, its "
             "extent is p\"");
    has_no_tree("def f(n, A: f32[n]) { B[i: n] = A[i + 2 * n - 5] return B }",
                "test.te:1: error: 'B' reads outside of 'A': its axis 0 has extent n, the index i + 2 * n - "
                "5 runs from n * 2 - "
                "5 to n * 3 - 6");
}

/* ---- against the interpreter ---- */

enum { MOST = 6 };

/* The tree without its conditions, at sizes n and m: whether every access stays inside. */
static bool runs_inside(const ir_program *tree, int64_t n, int64_t m)
{
    ir_program *p = ir_program_copy(cx, tree);
    float a[MOST], b[MOST], d[MOST * MOST];
    ir_array A = {.dtype = BASE_F32, .n = 1, .shape = {n}, .data = a},
             B = {.dtype = BASE_F32, .n = 1, .shape = {m}, .data = b};
    ir_array D = {.dtype = BASE_F32, .n = 2, .shape = {n, m}, .data = d};

    for (int i = 0; i < MOST; i++)
        a[i] = b[i] = 1;
    p->n_facts = 0;
    bool good =
        ir_interpret(cx, p, &(ir_run){.args = (ir_arg[]){{.array = &A}, {.array = &B}, {.array = &D}}});
    cr_assert(good || strstr(tec_context_error(cx), "bounds"), "%s", tec_context_error(cx));
    tec_context_clear(cx);
    return good;
}

static bool conditions_hold(const ir_program *p, int64_t n, int64_t m)
{
    ir_value values[2] = {{.i = n}, {.i = m}}, v;
    base_map vars = {0};

    for (int i = 0; i < 2; i++)
        base_map_put(cx, &vars, p->symbols[i], &values[i]);
    for (int i = 0; i < p->n_facts; i++)
        if (!ir_eval(cx, p->facts[i], &vars, &v) || !v.i)
            return false;
    return true;
}

/* exact: the conditions refuse no call that would stay inside. */
static void agrees(const char *body, bool exact)
{
    const char *text =
        base_format(cx, "def f(n, m, A: f32[n], B: f32[m]) { D[i: n, j: m] = %s return D }", body);
    const ir_program *p = te_tree(cx, defined(text));

    cr_assert(p, "%s: %s", body, tec_context_error(cx));
    for (int64_t n = 0; n <= MOST; n++)
        for (int64_t m = 0; m <= MOST; m++) {
            bool holds = conditions_hold(p, n, m), inside = runs_inside(p, n, m);

            cr_assert(!holds || inside, "%s leaves its tensor where n = %d, m = %d\n%s", body, (int)n, (int)m,
                      ir_program_text(cx, p));
            cr_assert(!exact || holds || !inside, "%s is refused where n = %d, m = %d\n%s", body, (int)n,
                      (int)m, ir_program_text(cx, p));
        }
}

Test(te_inside, conditions_hold_exactly_where_no_access_leaves_its_tensor)
{
    const char *const exact[] = {
        "A[i]",
        "A[j]",
        "B[i] + A[j]",
        "A[n - 1 - i] + B[i]",
        "A[j + 1]",
        "A[j - 2 + floordiv(n, 2)]",
        "A[floordiv(j, 2)]",
        "A[2 * j]",
        "A[floordiv(2 * j, 3) + 1]",
        "B[2 * i + 1] + A[3]",
        "A[i + j]",
        "select(j < 3, A[j], 0.0)",
        "select(j >= 2, A[j - 2], 0.0)",
        "select(j >= n, A[j - n], 0.0)",
        "select(j >= n, A[j - n], A[j])",
        "select(j < n, A[j], B[j - n])",
        "select(j >= 1 && j <= n, A[j - 1], 0.0)",
        "select(j < 1 || j > n, 0.0, A[j - 1])",
        "select(!(j >= 4), A[j], 0.0)",
        "select(2 * j < n, A[2 * j], 0.0)",
        "select(3 * j >= n, A[3 * j - n], 0.0)",
        "select(i + j >= 2 && i + j < m + 2, B[i + j - 2], 0.0)",
        "select(i + j < 4, A[i + j], 0.0)",
        "select(j == 2, A[j], 0.0)",
        "select(j == n, 0.0, 1.0)",
        "select(j != n, A[j], 0.0)",
        "select(j != 0, A[j - 1], 0.0)",
        "select(j != n - 1 && j != 0, A[j], 0.0)",
        "select(n != 3, A[j], 0.0)",
        "select(n % 2 == 0 && j < 4, A[j], 0.0)",
        "sum[k: 4](A[k] where k != 3)",
        "sum[k: 4](A[k] where k != 3 && i32(k) != i32(0) && k + j >= 0)",
        "select(i >= m, A[i + 1], 1.0)",
        "select(i >= 1 && i <= m, B[i], 0.0)",
        "select(i >= 2, select(j >= 3, A[j - 3], A[j]), 0.0)",
        "sum[k: n](B[k])",
        "sum[k: n + 1](B[k] where k < 4)",
        "sum[k: m](A[k] where k < i)",
        "sum[k: 3](A[i + k - 1] where i + k >= 1 && i + k <= n)",
        "sum[k: 3, l: m](B[l] * A[k])",
        "select(i < 2 && B[i] > 0.5, 1.0, 0.0)",
        "select(i >= 2 || B[i] > 0.5, 1.0, 0.0)",
    };
    const char *const safe[] = {
        "A[i * j]",
        "A[j % 3]",
        "A[max(j - 2, 0)]",
        "A[min(i, j)]",
        "A[floordiv(i + j, 2)]",
        "select(i + j < 4 && i >= 1, A[i + j - 1], 0.0)",
        "select(i % 2 == 1, A[j], 0.0)",
        "select(i != j, A[3], 0.0)",
    };

    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        agrees(exact[i], true);
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        agrees(safe[i], false);
}

/* The guard holds at no k, so nothing is read. */
Test(te_inside, an_access_behind_a_guard_that_never_holds_is_no_access)
{
    asks_for("def f(m, A: f64[1, m]) { S[y: m] = min[k: 1](select(k + k - 1 >= 0 && k + k - 1 < 1, A[k + k - "
             "1, y], f64(2.0))) return S }",
             "");
}

Test(te_inside, leaves_data_to_the_author)
{
    asks_for("def f(n, m, A: f32[n], I: i64[m]) { B[i: m] = A[I[i]] return B }", "");
    asks_for("def f(n, m, A: f32[n], I: i64[m]) { B[i: m] = select(I[i] > 0, A[i + 100], 0.0) return B }",
             "");
    asks_for("def f(n, m, A: f32[n], B: f32[m], s: i64) { C[i: m] = A[s] return C }", "");
    asks_for("def f(n, m, A: f32[n], B: f32[m]) { C[i: m] = select(i % 3 == 1, A[i], 0.0) return C }", "");
}
