/* tests/lang/run.c -- programs: what they mean, by the interpreter of graphs, and what is refused where. */
#include <criterion/criterion.h>
#include <string.h>

#include "graph/interp/interp.h"
#include "lang/lang.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}

static void close_context(void)
{
    tec_context_free(cx);
}

TestSuite(lang, .init = open_context, .fini = close_context);

static graph_module *program(const char *text)
{
    graph_module *m = lang_parse(cx, "p.tecp", text, NULL);

    cr_assert(m, "%s", tec_context_error(cx));
    return m;
}

static void refuses(const char *text, const char *message, const char *place)
{
    cr_assert_null(lang_parse(cx, "p.tecp", text, NULL), "%s", text);
    const char *found = tec_context_error(cx);
    cr_assert(strstr(found, message), "found: %s\nexpected: %s", found, message);
    cr_assert(strstr(found, place), "found: %s\nexpected: %s", found, place);
    tec_context_clear(cx);
}

#define TREE                                                                                                 \
    "type Tree = Leaf(f32[?, 2]) | Node(Tree, Tree)\n"                                                       \
    "def main(t: Tree) -> (f32[2], i64) {\n"                                                                 \
    "  match t {\n"                                                                                          \
    "    Leaf(x) => (reduce_sum(x, axes = [0], keepdims = 0), 1)\n"                                          \
    "    Node(l, r) => {\n"                                                                                  \
    "      let (a, m) = main(l)\n"                                                                           \
    "      let (b, n) = main(r)\n"                                                                           \
    "      (a + b * 2, m + n)\n"                                                                             \
    "    }\n"                                                                                                \
    "  }\n"                                                                                                  \
    "}\n"

Test(lang, recursion_over_a_tree_adds_up_its_leaves)
{
    graph_module *m = program(TREE);
    const graph_data *d = graph_find_data(m, "Tree");
    interp_value *x = interp_tensor(cx, BASE_F32, 2, (const int64_t[]){2, 2}, (const float[]){1, 2, 3, 4}),
                 *y;
    interp_value *leaf = interp_data(cx, d, 0, &x, 1);
    interp_value *t = interp_data(cx, d, 1, (interp_value *[]){leaf, leaf}, 2);

    cr_assert(interp_run(cx, m, NULL, &t, 1, NULL, &y, 1), "%s", tec_context_error(cx));
    cr_assert_eq(memcmp(y->part[0]->array.data, (const float[]){12, 18}, 8), 0);
    cr_assert_eq(*(const int64_t *)y->part[1]->array.data, 2);
}

/* Grows by a row in each call, by as many as the number says. */
#define GROW                                                                                                 \
    "def grow(x: f32[n, 1], i: i64) -> f32[?, 1] {\n"                                                        \
    "  if i <= 0 { x } else { grow(concat(x, x * 2, axis = 0), i - 1) }\n"                                   \
    "}\n"                                                                                                    \
    "def main(x: f32[n, 1], i: i64) -> f32[?, 1] { grow(x, i) }\n"

Test(lang, a_tensor_grows_in_recursion)
{
    graph_module *m = program(GROW);
    interp_value *in[] = {interp_tensor(cx, BASE_F32, 2, (const int64_t[]){1, 1}, (const float[]){1}),
                          interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){2})},
                 *y;

    cr_assert(interp_run(cx, m, NULL, in, 2, NULL, &y, 1), "%s", tec_context_error(cx));
    cr_assert_eq(y->array.shape[0], 4);
    cr_assert_eq(memcmp(y->array.data, (const float[]){1, 2, 2, 4}, 16), 0);
}

#define MAIN(body) "def main(x: f32[n], y: f32[3], i: i64, b: bool) -> f32[n] {\n  " body "\n}\n"

Test(lang, errors_show_line_column_and_caret)
{
    refuses(MAIN("x + z"), "there is no value, function, constructor or operator 'z'", "\n  x + z\n      ^");
    refuses(MAIN("x + "), "expected an expression, found '}'", "p.tecp:3");
    refuses(MAIN("concat(x, x, y, axis = 0)"), "'main' gives f32[n * 2 + 3], expected f32[n]", "p.tecp:1");
    refuses(MAIN("reshape(x, shape = [n, 1])"), "'main' gives f32[n, 1], expected f32[n]", "p.tecp:1");
    refuses(MAIN("main(x, x)"), "'main' takes 4 operands, found 2", ":3: error: ");
    refuses(MAIN("main(x, y, x, b)"), "'main': operand 3 is f32[n], expected i64[]", ":3: error: ");
    refuses(MAIN("let (a, c) = x x"), "the pattern does not fit a value of type f32[n]", ":7: error: ");
    refuses(MAIN("let (a, c) = (x, y, x) a"), "the pattern has 2 names, expected 3", ":7: error: ");
    refuses(MAIN("match x { A => x }"), "match takes a value of a data type, found f32[n]", ":3: error: ");
    refuses(MAIN("x + i * 0.5"), "the number 0.5 is not a value of the other operand's type", "p.tecp:2");
    refuses(MAIN("main(x, y, i, b, axis = 1)"),
            "'main' is not an operator, so it cannot take the attribute 'axis'", ":3: error: ");
    refuses("def f(x: f32) -> f32 { x }", "the program has no function 'main'", "p.tecp:1");
    refuses("def main(x: Bush) -> f32 { 1.0 }", "there is no type 'Bush'", ":13: error: ");
    refuses("def main(x: f32) -> f32[n] { x }", "the extent 'n' is not known here", ":25: error: ");
    refuses("def main(x: f32) -> f32 { x } def main(x: f32) -> f32 { x }",
            "there is a function 'main' already", ":35: error: ");
    refuses("type A = B type A = C", "there is a data type 'A' already", ":17: error: ");
    refuses("type A = B | B", "there is a constructor 'B' already", ":14: error: ");
    refuses("word", "expected 'type', 'param' or 'def', found 'word'", ":1: error: ");
}

/* `n` is told by f32[n], by f32[n * 2 + 1], and by f32[9 - n]; beside f32[m] also by f32[m - n]. */
Test(lang, the_name_of_an_extent_is_told_by_the_arguments_of_each_call)
{
#define REST(first) first " -> f32[?] { x }\n"
    refuses(
        REST("def main(x: f32[n * m])"),
        "no argument tells 'n': expected an extent 'n', or a multiple of 'n' plus what other extents tell, "
        "found 'n * m'\ndef main(x: f32[n * m]) -> f32[?] { x }\n                ^",
        "p.tecp:1:17: error: ");
    refuses(REST("def main(x: f32[n * m], y: f32[m])"), "no argument tells 'n'", "p.tecp:1:17: error: ");
    refuses(REST("def main(x: f32[3], y: (i64, f32[2,\n n * n]))"), "found 'n * n'\n n * n", ":2:2: error: ");
    refuses(REST("def main(x: f32[n + m])"), "no argument tells 'n'", ":17: error: ");
    refuses(REST("def main(x: f32[n - n + m * m])"), "no argument tells 'n'", ":17: error: ");
    refuses(REST("def main(x: f32[? + ?])"), "no argument tells 'd0'", ":17: error: ");
    refuses(REST("def main(x: f32[n]) -> f32[n] { x }\ndef f(x: f32[n * m])"), "no argument tells 'n'",
            "p.tecp:2:14: error: ");
    refuses(REST("def main(x: f32[n]) -> f32[n] { x }\ndef f[a](y: a, x: f32[n * m])"),
            "no argument tells 'n'", "p.tecp:2:23: error: ");
    refuses(REST("def main(x: f32[n]) -> f32[?] { f(x, x) }\ndef f[a](y: a, x: f32[n * m])"),
            "no argument tells 'n'", "p.tecp:2:23: error: ");
    refuses(REST("def main(x: f32[n]) -> f32[?] { f(x, tanh) }\ndef f(x: f32[n * m], g: fn(f32) -> f32)"),
            "no argument tells 'n'", "p.tecp:2:14: error: ");
}

Test(lang, an_extent_is_a_number_from_0_on)
{
    refuses("def main(x: f32[3 - 5]) -> f32[?] { x }", "the extent is -2: expected 0 or more",
            ":17: error: ");
    refuses("def main(x: f32[2, 3 * 4 - 13]) -> f32[?, ?] { x }", "the extent is -1", ":20: error: ");
    refuses("type T = A(f32[0 - 3]) def main(t: T) -> i64 { 1 }", "the extent is -3", ":16: error: ");
    refuses("def main(x: f32[3]) -> f32[0 - 1] { x }", "the extent is -1", ":28: error: ");
    refuses("def main(x: f32[9223372036854775807 + 1]) -> f32[?] { x }", "the extent does not fit in 64 bits",
            ":17: error: ");
    refuses("def main(x: f32[4294967296 * 4294967296]) -> f32[?] { x }", "the extent does not fit in 64 bits",
            ":17: error: ");
    refuses("def main(x: f32[3]) -> f32[?] { reshape(x, shape = [0 - 9223372036854775807 - 2]) }",
            "the extent does not fit in 64 bits", ":53: error: ");
}

/* The result of 7 elements is no f32[? * 2], which nothing would compare. */
Test(lang, an_unknown_extent_stands_alone_but_for_parameters)
{
    program("def main(x: f32[? * 2]) -> f32[?] { x }");
    refuses("def main(x: f32[n]) -> f32[? * 2] { x }", "'?' stands alone here", ":28: error: ");
    refuses("type T = A(f32[1 + ?]) def main(t: T) -> i64 { 1 }", "'?' stands alone here", ":16: error: ");
    refuses("def main(l: List[f32[? * 2]]) -> i64 { 1 }", "'?' stands alone here", ":22: error: ");
    refuses("def main(x: f32[n]) -> f32[?] { f(x) } def f[a](x: a) -> f32[? + 1] { x }",
            "'?' stands alone here", ":62: error: ");
}

Test(lang, what_runs_along_a_tensor_is_checked)
{
    refuses(MAIN("fold(i, x, (s, e) => s)"), "expected a tensor with a first axis to run along, found i64[]",
            ":8: error: ");
    refuses(MAIN("scan(y, x, (s, e) => s)"), "scan's function gives (state, element), found f32[n]",
            ":24: error: ");
    refuses(MAIN("fold(y, x, (s, e) => concat(s, y, axis = 0))"), "'fold'", ":3: error: ");
    refuses(MAIN("map(y, e => e)"), "expected '(', found 'e'", ":10: error: ");
}

Test(lang, parameters_have_values_and_known_extents)
{
    refuses("param W: f32[2] def main(x: f32[2]) -> f32[2] { x + W }",
            "the parameter 'W' has no value: give the program's .safetensors file", ":7: error: ");
    refuses("param W: f32[?] def main(x: f32[2]) -> f32[2] { x + W }",
            "a parameter is a tensor with known extents", ":10: error: ");
    refuses("param W: f32[2 - 4]\ndef main(x: f32) -> f32 { x }", "the extent is -2: expected 0 or more",
            ":14: error: ");
    refuses("param W: f32[4611686018427387904, 8]\ndef main(x: f32) -> f32 { x }",
            "the extents of 'W' have a product of 2^40 or more", ":10: error: ");
}

Test(lang, a_match_has_each_constructor_once)
{
#define MATCH(arms) "type O = None | Some(f32, f32)\ndef main(o: O) -> f32 { match o { " arms " } }"
    program(MATCH("Some(a, _) => a None => 0.0"));
    refuses(MATCH("None => 1.0"), "the match has no arm for constructor 'Some'", ":25: error: ");
    refuses(MATCH("None => 1.0 None => 2.0"), "constructor 'None' has two arms in this match",
            ":47: error: ");
    refuses(MATCH("None => 1.0 Some(a) => a"), "'Some' has 2 fields, which the pattern must name",
            ":47: error: ");
    refuses(MATCH("Many(a) => a"), "'O' has no constructor 'Many'", ":35: error: ");
}

Test(lang, nesting_is_limited)
{
    base_text t = {0};

    base_add(cx, &t, "def main(x: f32) -> f32 { ");
    for (int i = 0; i < 5000; i++)
        base_add(cx, &t, "(");
    base_add(cx, &t, "x");
    for (int i = 0; i < 5000; i++)
        base_add(cx, &t, ")");
    base_add(cx, &t, " }");
    refuses(base_text_str(cx, &t), "nest deeper than 200", "p.tecp:1");
}
