/* tests/lang/meets.c -- unknown extents that must be equal: programs with them are accepted, and the run
 * checks them. The VM and the interpreter of graphs stop at the same line with the same words.
 */
#include <stdio.h>

#include "tests/lang/kit.h"

TestSuite(meets, .init = open_context, .fini = close_context);

/* 1, 2, 3, ... */
static interp_value *counting(int n, const int64_t *shape)
{
    float data[64];

    for (int i = 0; i < BASE_COUNT(data); i++)
        data[i] = (float)(i + 1);
    return interp_tensor(cx, BASE_F32, n, shape, data);
}

static interp_value *vector(int64_t n)
{
    return counting(1, &n);
}

static interp_value *matrix(int64_t rows, int64_t columns)
{
    return counting(2, (const int64_t[]){rows, columns});
}

/* Both give the same values. */
static void runs(const char *text, interp_value *const *in, int n)
{
    agree_on(compile(text, NULL), in, n, 1);
}

/* Both stop, with `words` and at that line. */
static void stops(const char *text, interp_value *const *in, int n, int line, const char *words)
{
    compiled c = compile(text, NULL);
    tec_object *given[8], *out;
    interp_value *value;
    const char *place = base_format(cx, "p.tecp:%d:", line);

    for (int i = 0; i < n; i++)
        given[i] = object_of(&c, in[i]);
    err = (tec_error){0};
    cr_assert_not(tec_program_run(c.p, given, n, &out, 1, &err), "%s", text);
    cr_assert(strstr(err.text, words) && strstr(err.text, place), "the VM says: %s\nexpected: %s %s",
              err.text, place, words);
    cr_assert_not(interp_run(cx, c.graph, NULL, in, n, NULL, &value, 1), "%s", text);
    cr_assert(strstr(tec_context_error(cx), words) && strstr(tec_context_error(cx), place),
              "the interpreter says: %s\nexpected: %s %s", tec_context_error(cx), place, words);
    tec_context_clear(cx);
    for (int i = 0; i < n; i++)
        tec_object_free(given[i]);
    discard(&c);
}

/* A program that the static executor would run becomes one of the VM by the call of `id`. */
#define ID "def id(x: f32[n]) -> f32[n] { x }\n"

Test(meets, operands_of_an_operator)
{
    const char *text = ID "def main(x: f32[?], y: f32[?]) -> f32[?] {\n"
                          "  let z = id(y) * 2\n"
                          "  x + z\n"
                          "}\n";

    runs(text, (interp_value *[]){vector(3), vector(3)}, 2);
    stops(text, (interp_value *[]){vector(3), vector(4)}, 2, 4,
          "add 'add': dimension 0 of operand 0 'x' and dimension 0 of operand 1 'z' must be equal: 3 and 4");
}

/* A 1 that only the run knows does not broadcast. */
Test(meets, an_unknown_extent_of_1_does_not_broadcast)
{
    const char *text = ID "def main(x: f32[?], y: f32[?]) -> f32[?] { x + id(y) }\n";

    stops(text, (interp_value *[]){vector(3), vector(1)}, 2, 2, "must be equal: 3 and 1");
    stops(text, (interp_value *[]){vector(1), vector(3)}, 2, 2, "must be equal: 1 and 3");
    runs(text, (interp_value *[]){vector(1), vector(1)}, 2);
    runs(ID "def main(x: f32[?], y: f32[1]) -> f32[?] { x + id(y) }\n",
         (interp_value *[]){vector(3), vector(1)}, 2);
}

Test(meets, an_unknown_extent_and_a_number)
{
    const char *text = ID "def main(x: f32[?], y: f32[4]) -> f32[4] { id(x) - y }\n";

    runs(text, (interp_value *[]){vector(4), vector(4)}, 2);
    stops(text, (interp_value *[]){vector(3), vector(4)}, 2, 2, "must be equal: 3 and 4");
}

Test(meets, three_operands)
{
    const char *text = ID "def main(c: f32[?], x: f32[?], y: f32[?]) -> f32[?] {\n"
                          "  where(id(c) > 1,\n"
                          "        x, y)\n"
                          "}\n";

    runs(text, (interp_value *[]){vector(5), vector(5), vector(5)}, 3);
    stops(text, (interp_value *[]){vector(5), vector(6), vector(5)}, 3, 3,
          "where 'where': dimension 0 of operand 0 'greater' and dimension 0 of operand 1 'x' must be equal: "
          "5 and 6");
    stops(text, (interp_value *[]){vector(5), vector(5), vector(4)}, 3, 3,
          "dimension 0 of operand 2 'y' must be equal: 5 and 4");
}

Test(meets, inner_extents_of_a_product)
{
    const char *text = "def id(x: f32[n, m]) -> f32[n, m] { x }\n"
                       "def main(x: f32[?, ?], y: f32[?, ?]) -> f32[?, ?] { matmul(x, id(y)) }\n";

    runs(text, (interp_value *[]){matrix(2, 3), matrix(3, 4)}, 2);
    stops(text, (interp_value *[]){matrix(2, 3), matrix(2, 4)}, 2, 2,
          "matmul 'matmul': dimension 1 of operand 0 'x' and dimension 0 of operand 1 'id' must be equal: 3 "
          "and 2");
}

Test(meets, other_axes_of_concat)
{
    const char *text = "def id(x: f32[n, m]) -> f32[n, m] { x }\n"
                       "def main(x: f32[?, ?], y: f32[?, ?]) -> f32[?, ?] { concat(id(x), y, axis = 0) }\n";

    runs(text, (interp_value *[]){matrix(2, 3), matrix(1, 3)}, 2);
    stops(text, (interp_value *[]){matrix(2, 3), matrix(2, 4)}, 2, 2,
          "dimension 1 of operand 1 'y' must be equal: 3 and 4");
}

Test(meets, a_check_in_a_branch_is_made_where_the_branch_runs)
{
    const char *text = "def main(x: f32[?], y: f32[?], c: bool) -> f32[?] {\n"
                       "  if c {\n"
                       "    x * y\n"
                       "  } else { x }\n"
                       "}\n";
    interp_value *yes = interp_tensor(cx, BASE_BOOL, 0, NULL, &(bool){true}),
                 *no = interp_tensor(cx, BASE_BOOL, 0, NULL, &(bool){false});

    runs(text, (interp_value *[]){vector(3), vector(3), yes}, 3);
    runs(text, (interp_value *[]){vector(3), vector(4), no}, 3);
    stops(text, (interp_value *[]){vector(3), vector(4), yes}, 3, 3, "must be equal: 3 and 4");
}

Test(meets, operands_of_a_call)
{
    const char *text = "def f(a: f32[n], b: f32[n]) -> f32[n] { a * b }\n"
                       "def main(x: f32[?], y: f32[?]) -> f32[?] {\n"
                       "  f(x,\n"
                       "    y)\n"
                       "}\n";

    runs(text, (interp_value *[]){vector(3), vector(3)}, 2);
    stops(text, (interp_value *[]){vector(3), vector(2)}, 2, 3,
          "'f': operand 2 'y' is f32[d1], expected f32[d0]: dimension 0 differs: 2 and 3");
}

/* The branches of `meet` have results of two extents; the function promises one. */
#define MEET                                                                                                 \
    "def meet(x: f32[n], y: f32[?], k: i64) -> f32[n] {\n"                                                   \
    "  if k > 0 { meet(x, y, k - 1) } else { if k < 0 { x } else { y } }\n"                                  \
    "}\n"

Test(meets, results_of_branches_and_the_declared_type)
{
    const char *text = MEET "def main(x: f32[?], y: f32[?], k: i64) -> f32[?] { x + meet(x, y, k) }\n";
    interp_value *minus = interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){-1}),
                 *three = interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){3});

    runs(text, (interp_value *[]){vector(3), vector(3), three}, 3);
    runs(text, (interp_value *[]){vector(3), vector(4), minus}, 3);
    stops(text, (interp_value *[]){vector(3), vector(4), three}, 3, 1, "dimension 0 differs: 4 and 3");
}

/* In a tuple, and by a call at the end, which then cannot be a tail call. */
Test(meets, a_call_at_the_end_and_the_declared_type)
{
    const char *text = "type L = Nil | Cons(f32[1, 2], L)\n"
                       "def rows(l: L, m: f32[n, 2]) -> f32[?, 2] {\n"
                       "  match l { Nil => m Cons(x, t) => rows(t, concat(m, x, axis = 0)) }\n"
                       "}\n"
                       "def three(l: L, m: f32[n, 2]) -> f32[3, 2] { rows(l, m) }\n"
                       "def main(m: f32[?, 2]) -> (f32[3, 2], f32[3, 2]) {\n"
                       "  (three(Cons(slice(m, begin = [0, 0], extent = [1, 2], step = [1, 1]), Nil), m),\n"
                       "   three(Nil, concat(m, m * 0, axis = 1) * 1))\n"
                       "}\n";
    const char *good = base_format(cx, "%.*s{ (three(Nil, m), three(Nil, m * 2)) }\n",
                                   (int)(strstr(text, "{\n  (three") - text), text);

    cr_assert_null(lang_parse(cx, "p.tecp", text, NULL)); /* f32[n, 4] is no f32[n, 2] */
    tec_context_clear(cx);
    runs(good, (interp_value *[]){matrix(3, 2)}, 1);
    stops(good, (interp_value *[]){matrix(2, 2)}, 1, 5,
          "'three' gives f32[d3, 2], expected f32[3, 2]: dimension 0 differs: 2 and 3");
}

Test(meets, fields_of_a_constructor)
{
    const char *text = "type Box = Box(f32[2, ?], f32[3])\n"
                       "def main(x: f32[?, ?], y: f32[?]) -> Box {\n"
                       "  Box(x, y)\n"
                       "}\n";

    runs(text, (interp_value *[]){matrix(2, 7), vector(3)}, 2);
    stops(text, (interp_value *[]){matrix(3, 7), vector(3)}, 2, 3,
          "'Box': field 0 is f32[d0, d1], expected f32[2, d1]: dimension 0 differs: 3 and 2");
    stops(text, (interp_value *[]){matrix(2, 7), vector(4)}, 2, 3, "'Box': field 1 is f32[d2]");
}

Test(meets, what_a_loop_carries)
{
    const char *text = "def main(m: f32[?, ?], s: f32[3], r: f32[?]) -> f32[3] {\n"
                       "  fold(m, s, (t, row) =>\n"
                       "    r * 2 - row)\n"
                       "}\n";

    runs(text, (interp_value *[]){matrix(2, 3), vector(3), vector(3)}, 3);
    runs(text, (interp_value *[]){matrix(0, 4), vector(3), vector(5)}, 3); /* no iteration, no check */
    stops(text, (interp_value *[]){matrix(2, 4), vector(3), vector(4)}, 3, 2,
          "'fold': next value 0 is f32[d2], expected f32[3]: dimension 0 differs: 4 and 3");
    stops(text, (interp_value *[]){matrix(2, 4), vector(3), vector(3)}, 3, 3, "must be equal: 3 and 4");
}

Test(meets, what_a_lambda_takes)
{
    const char *text = "def twice[a](x: a, f: fn(a) -> a) -> a { f(f(x)) }\n"
                       "def main(x: f32[?], y: f32[?]) -> f32[?] {\n"
                       "  twice(x, (v) => v + y)\n"
                       "}\n";

    runs(text, (interp_value *[]){vector(3), vector(3)}, 2);
    stops(text, (interp_value *[]){vector(3), vector(4)}, 2, 3, "must be equal: 3 and 4");
}

Test(meets, extents_that_data_tell)
{
    const char *text = "def main(x: f32[?], y: f32[?], k: f32[?]) -> f32[?] {\n"
                       "  let a = compress(x, k > 2)\n"
                       "  let b = compress(y, k > 2)\n"
                       "  a + b * concat(a, b, axis = 0)\n"
                       "}\n";
    const char *good = "def main(x: f32[?], y: f32[?], k: f32[?]) -> f32[?] {\n"
                       "  let a = compress(x, k > 2)\n"
                       "  let b = compress(y, k > 2)\n"
                       "  a - b * a\n"
                       "}\n";

    runs(good, (interp_value *[]){vector(6), vector(6), vector(6)}, 3);
    stops(text, (interp_value *[]){vector(6), vector(6), vector(6)}, 3, 4, "must be equal: 4 and 8");
    runs(text, (interp_value *[]){vector(2), vector(2), vector(2)}, 3); /* 0 and 0 */
}

/* n == n * 2 holds of 0 alone, so that extents inside of a kernel have a bound (graph/bounded.c). */
Test(meets, extents_that_only_0_fulfils)
{
    const char *text = "def id(x: f32[n, 4]) -> f32[?, 4] { x }\n"
                       "def main(x: f32[n, 4], y: f32[?, 4], v: f32[4]) -> f32[?, 4] {\n"
                       "  let m = tanh(id(x))\n"
                       "  let z = concat(m, m, axis = 0)\n"
                       "  tanh(where(m > 0.125, y, z) * v)\n"
                       "}\n";

    runs(text, (interp_value *[]){matrix(0, 4), matrix(0, 4), vector(4)}, 3);
    stops(text, (interp_value *[]){matrix(2, 4), matrix(2, 4), vector(4)}, 3, 5, "must be equal: 2 and 4");
}

/* ---- parameters whose extents are sums and multiples of a name ---- */

#define HALVES                                                                                               \
    "def halves(x: f32[n * 2]) -> f32[n] {\n"                                                                \
    "  slice(x, begin = [0], extent = [n], step = [1]) * 10 + "                                              \
    "slice(x, begin = [n], extent = [n], step = [1])\n"                                                      \
    "}\n"

Test(meets, a_parameter_of_an_even_extent)
{
    const char *text = HALVES "def main(x: f32[?], y: f32[k]) -> (f32[?], f32[k]) {\n"
                              "  (halves(x), halves(concat(y, y, axis = 0)))\n"
                              "}\n";

    for (int n = 0; n < 7; n += 2)
        runs(text, (interp_value *[]){vector(n), vector(3)}, 2);
    stops(text, (interp_value *[]){vector(5), vector(3)}, 2, 5, "dimension 0 differs: 5 and 4");
}

Test(meets, a_parameter_of_one_row_more)
{
    const char *text = "def rest(x: f32[n + 1, m]) -> f32[n, m] {\n"
                       "  slice(x, begin = [1, 0], extent = [n, m], step = [1, 1])\n"
                       "}\n"
                       "def main(x: f32[?, ?]) -> f32[?, ?] {\n"
                       "  rest(\n"
                       "    rest(x))\n"
                       "}\n";

    runs(text, (interp_value *[]){matrix(4, 3)}, 1);
    runs(text, (interp_value *[]){matrix(2, 3)}, 1);
    stops(text, (interp_value *[]){matrix(0, 3)}, 1, 6, "'rest': the extent 'n' would be negative");
    stops(text, (interp_value *[]){matrix(1, 3)}, 1, 5, "'rest': the extent 'n' would be negative");
}

/* n is told by what is left when m is known; the parts of a tuple tell extents, too. */
Test(meets, extents_that_others_help_to_solve)
{
    const char *text = "def f(x: f32[n * 3 + m], y: (f32[m], f32[k + 1, 2])) -> (f32[n], f32[k]) {\n"
                       "  let (a, b) = y\n"
                       "  (slice(x, begin = [m], extent = [n], step = [1]),\n"
                       "   reduce_sum(slice(b, begin = [1, 0], extent = [k, 2], step = [1, 1]), axes = [1],"
                       " keepdims = 0))\n"
                       "}\n"
                       "def main(x: f32[?], a: f32[?], b: f32[?, 2]) -> (f32[?], f32[?]) {\n"
                       "  f(x, (a, b))\n"
                       "}\n";

    runs(text, (interp_value *[]){vector(8), vector(2), matrix(4, 2)}, 3);
    stops(text, (interp_value *[]){vector(9), vector(2), matrix(4, 2)}, 3, 7, "dimension 0 differs: 9 and 8");
    stops(text, (interp_value *[]){vector(1), vector(2), matrix(4, 2)}, 3, 7, "would be negative");
}

/* f32[m - n] beside f32[m] tells how many elements are missing. */
Test(meets, a_parameter_of_fewer_elements_than_another)
{
    const char *text = "def missing(x: f32[m], y: f32[m - n * 2]) -> f32[n] {\n"
                       "  slice(x, begin = [m - n * 2], extent = [n], step = [1]) * 10 + "
                       "slice(x, begin = [m - n], extent = [n], step = [1])\n"
                       "}\n"
                       "def main(x: f32[?], y: f32[?]) -> f32[?] {\n"
                       "  missing(x, y)\n"
                       "}\n";

    runs(text, (interp_value *[]){vector(7), vector(3)}, 2);
    runs(text, (interp_value *[]){vector(7), vector(7)}, 2);
    runs(text, (interp_value *[]){vector(4), vector(0)}, 2);
    stops(text, (interp_value *[]){vector(7), vector(4)}, 2, 5, "dimension 0 differs: 4 and 5");
    stops(text, (interp_value *[]){vector(7), vector(8)}, 2, 5, "the extent 'n' would be negative");
}

/* A number as the extent is solved where the program is read. */
Test(meets, a_number_that_is_no_multiple_is_refused)
{
    cr_assert_null(lang_parse(cx, "p.tecp", HALVES "def main(x: f32[7]) -> f32[?] { halves(x) }", NULL));
    cr_assert(strstr(tec_context_error(cx), "'halves': operand 1 is f32[7], expected f32[6]"), "%s",
              tec_context_error(cx));
    tec_context_clear(cx);
    runs(HALVES "def main(x: f32[6]) -> f32[3] { halves(x) }", (interp_value *[]){vector(6)}, 1);
}

Test(meets, an_input_of_what_a_number_leaves)
{
    const char *text = "def main(x: f32[9 - n * 2]) -> f32[n] {\n"
                       "  slice(concat(x, x * 3, axis = 0), begin = [9 - n * 2], extent = [n], step = [1])\n"
                       "}\n";

    runs(text, (interp_value *[]){vector(5)}, 1);
    runs(text, (interp_value *[]){vector(7)}, 1);
    runs(text, (interp_value *[]){vector(9)}, 1);
}

/* What the user of the program gives. */
Test(meets, an_input_of_an_even_extent)
{
    const char *text = "def main(x: f32[n * 2 + 1]) -> f32[n] {\n"
                       "  slice(x, begin = [n], extent = [n], step = [1])\n"
                       "}\n";
    char expected[160];

    runs(text, (interp_value *[]){vector(1)}, 1);
    runs(text, (interp_value *[]){vector(7)}, 1);
    for (int n = 0; n < 7; n += 2) {
        compiled c = compile(text, NULL);
        interp_value *in = vector(n), *value;
        tec_object *given = object_of(&c, in), *out;

        err = (tec_error){0};
        cr_assert_not(tec_program_run(c.p, &given, 1, &out, 1, &err));
        snprintf(expected, sizeof expected,
                 "p.tecp:1: in 'main': input 'x': expected f32[n * 2 + 1]; dimension 0, expected and found: "
                 "%d and %d",
                 n ? n - 1 : 1, n);
        cr_assert_str_eq(err.text, expected);
        cr_assert_not(interp_run(cx, c.graph, NULL, &in, 1, NULL, &value, 1));
        cr_assert(strstr(tec_context_error(cx), "expected f32[n * 2 + 1]"), "%s", tec_context_error(cx));
        tec_context_clear(cx);
        tec_object_free(given);
        discard(&c);
    }
}

/* What no extents can make equal is refused as before. */
Test(meets, extents_that_always_differ_are_refused)
{
    const char *text = "def main(x: f32[n]) -> f32[n] { x + concat(x, reshape(reduce_sum(x, axes = [0], "
                       "keepdims = 0), shape = [1]), axis = 0) }\n";

    cr_assert_null(lang_parse(cx, "p.tecp", text, NULL));
    cr_assert(strstr(tec_context_error(cx), "dimension 0 does not broadcast with 'n'"), "%s",
              tec_context_error(cx));
    tec_context_clear(cx);
    cr_assert_null(lang_parse(cx, "p.tecp", "def main(x: f32[3], y: f32[4]) -> f32[3] { x + y }", NULL));
    tec_context_clear(cx);
    cr_assert_null(lang_parse(cx, "p.tecp", "def main(x: f32[3], y: f32[4]) -> f32[3] { y }", NULL));
}

/* The static executor checks when it is called. */
Test(meets, a_model_of_operators_alone)
{
    graph_module *m =
        lang_parse(cx, "p.tecp", "def main(x: f32[n], y: f32[m]) -> f32[n] { let z = y * 2 x + z }", NULL);
    const graph_build_options o = {.target = target_parse(cx, "native"), .jobs = 1};
    float data[4] = {1, 2, 3, 4};

    cr_assert(m, "%s", tec_context_error(cx));
    graph_built *b = graph_build(m, &o);
    cr_assert(b, "%s", tec_context_error(cx));
    tec_module *module = graph_load(b);
    tec_executor *ex = tec_executor_new(module, NULL, NULL, &err);
    cr_assert(ex, "%s", err.text);
    for (int64_t n = 3; n < 5; n++) {
        DLTensor x = {.data = data,
                      .device = {kDLCPU, 0},
                      .ndim = 1,
                      .dtype = BASE_F32,
                      .shape = &(int64_t){3}},
                 y = x;
        y.shape = &n;
        bool ran = tec_executor_set_input(ex, 0, &x, &err) && tec_executor_set_input(ex, 1, &y, &err) &&
                   tec_executor_run(ex, &err);
        cr_assert_eq(ran, n == 3, "%s", err.text);
    }
    cr_assert(strstr(err.text, "needs n == m (add 'add': dimension 0 of operand 0 'x' and dimension 0 of "
                               "operand 1 'z' must be equal), which does not hold where n = 3, m = 4"),
              "%s", err.text);
    tec_executor_free(ex);
    tec_module_free(module);
}

/* Nobody reads what the branch gives; that its extents are equal is checked all the same. */
Test(meets, in_a_region_whose_results_nobody_reads)
{
    const char *text = ID "def main(x: f32[?], y: f32[?], c: bool) -> f32[?] {\n"
                          "  let z = if c {\n"
                          "    reduce_sum(x + id(y), axes = [0], keepdims = 0)\n"
                          "  } else { 0.0 }\n"
                          "  x\n"
                          "}\n";
    bool yes = true, no = false;
    interp_value *taken = interp_tensor(cx, BASE_BOOL, 0, NULL, &yes),
                 *left = interp_tensor(cx, BASE_BOOL, 0, NULL, &no);

    runs(text, (interp_value *[]){vector(3), vector(3), taken}, 3);
    runs(text, (interp_value *[]){vector(3), vector(4), left}, 3);
    stops(text, (interp_value *[]){vector(3), vector(4), taken}, 3, 4, "must be equal: 3 and 4");
}

/* The same of a call, of a call of a function value, and of a call that leads to one. */
Test(meets, in_a_call_whose_result_nobody_reads)
{
    static const char *const calls[] = {"same(x, y)", "through(x, y)", "apply(x, y, same)"};

    for (int i = 0; i < BASE_COUNT(calls); i++) {
        const char *text =
            base_format(cx,
                        "def same(x: f32[?], y: f32[?]) -> f32[?] {\n"
                        "  x + y\n"
                        "}\n"
                        "def through(x: f32[?], y: f32[?]) -> f32[?] { same(x, y) }\n"
                        "def apply(x: f32[?], y: f32[?], f: fn(f32[?], f32[?]) -> f32[?]) -> f32[?] "
                        "{ f(x, y) }\n"
                        "def main(x: f32[?], y: f32[?]) -> f32[?] {\n"
                        "  let z = %s\n"
                        "  x\n"
                        "}\n",
                        calls[i]);

        runs(text, (interp_value *[]){vector(3), vector(3)}, 2);
        stops(text, (interp_value *[]){vector(3), vector(4)}, 2, 2, "must be equal: 3 and 4");
    }
}

/* Two results share an extent after one branch and not after another: behind the branches they have an extent
 * each. Two that share an extent after each branch can be added. */
Test(meets, in_results_of_branches)
{
#define GROWN "def grown(x: f32[?]) -> f32[?] { concat(x, x, axis = 0) }\n"
    const char *choose = GROWN "def main(x: f32[?], y: f32[?], k: i64) -> (f32[?], f32[?]) {\n"
                               "  if k == 0 {\n"
                               "    let z = grown(x)\n"
                               "    (z, z)\n"
                               "  } else { (x, y) }\n"
                               "}\n";
    const char *match = GROWN "type Way = One | Two | Three\n"
                              "def way(k: i64) -> Way {\n"
                              "  if k == 0 { One } else { if k == 1 { Two } else { Three } }\n"
                              "}\n"
                              "def main(x: f32[?], y: f32[?], k: i64) -> (f32[?], f32[?], f32[?]) {\n"
                              "  match way(k) {\n"
                              "    One => { let z = grown(x) (z, z, z) }\n"
                              "    Two => (x, y, y)\n"
                              "    Three => { let z = grown(y) (x, x, z) }\n"
                              "  }\n"
                              "}\n";
    const char *shared = GROWN "def main(x: f32[?], y: f32[?], k: i64) -> f32[?] {\n"
                               "  let (a, b) = if k == 0 {\n"
                               "    let z = grown(x)\n"
                               "    (z, z)\n"
                               "  } else { (y, neg(y)) }\n"
                               "  a + b\n"
                               "}\n";
    const char *const texts[] = {choose, match, shared};

    for (int64_t k = 0; k < 3; k++)
        for (int i = 0; i < BASE_COUNT(texts); i++)
            runs(texts[i], (interp_value *[]){vector(3), vector(4), interp_tensor(cx, BASE_I64, 0, NULL, &k)},
                 3);
}
