/* tests/lang/poly.c -- functions with type parameters, parameters that are functions, and the prelude: each
 * program by the VM as by the interpreter of graphs. */
#include "fuzz/draw.h"
#include "tests/lang/kit.h"

TestSuite(poly, .init = open_context, .fini = close_context);

static interp_value *data(const graph_module *m, const char *type, const char *name,
                          interp_value *const *part, int n)
{
    const graph_data *d = graph_find_data(m, type);
    int which;

    cr_assert(d && graph_find_case(d, name, &which), "%s.%s", type, name);
    return interp_data(cx, d, which, part, n);
}

static interp_value *vector(float first)
{
    return interp_tensor(cx, BASE_F32, 1, (const int64_t[]){2}, (const float[]){first, 1 - first * .5F});
}

static interp_value *vectors(const graph_module *m, int n)
{
    interp_value *list = data(m, "List[f32[2]]", "Nil", NULL, 0);

    while (n-- > 0)
        list = data(m, "List[f32[2]]", "Cons", (interp_value *[]){vector((float)n * .25F - .5F), list}, 2);
    return list;
}

/* The function main(l: List[f32[2]], w: f32[2]) for lists of 0 to 3 elements. */
static void agree_on_lists(const char *text)
{
    for (int n = 0; n < 4; n++) {
        compiled c = compile(text, NULL);
        interp_value *in[] = {vectors(c.graph, n), vector(.75F)};

        agree_on(c, in, 2, 1);
    }
}

Test(poly, own_functions_with_type_parameters)
{
    agree_on_lists("type Pair[a, b] = Pair(a, b)\n"
                   "def swap[a, b](p: Pair[a, b]) -> Pair[b, a] { match p { Pair(x, y) => Pair(y, x) } }\n"
                   "def first[a, b](p: Pair[a, b]) -> a { match p { Pair(x, y) => x } }\n"
                   "def both[a](x: a, y: a) -> (a, a) { (x, y) }\n"
                   "def main(l: List[f32[2]], w: f32[2]) -> (List[f32[2]], f32[2], (i64, i64)) {\n"
                   "  let p = swap(Pair(w, l))\n"
                   "  (first(p), first(swap(p)), both[i64](1, length(l)))\n"
                   "}\n");
}

Test(poly, functions_as_operands)
{
    agree_on_lists("def twice(f: fn(f32[2]) -> f32[2], x: f32[2]) -> f32[2] { f(f(x)) }\n"
                   "def double(x: f32[2]) -> f32[2] { x * 2 }\n"
                   "def chain[a, b, c](x: a, f: fn(a) -> b, g: fn(b) -> c) -> c { g(f(x)) }\n"
                   "def main(l: List[f32[2]], w: f32[2]) -> (f32[2], f32[2], f32[2], f32[4]) {\n"
                   "  let k = w * 3\n"
                   "  (twice(double, w), twice(tanh, w), twice((x) => x * k + w, w),\n"
                   "   chain(w, (x) => concat(x, k, axis = 0), (y) => y - concat(w, w, axis = 0)))\n"
                   "}\n");
}

Test(poly, a_lambda_in_a_lambda_captures_from_both_around)
{
    agree_on_lists("def main(l: List[f32[2]], w: f32[2]) -> List[f32[2]] {\n"
                   "  map(l, (x) => fold(l, x * w, (s, y) => s + y * x - w))\n"
                   "}\n");
}

Test(poly, a_function_that_is_handed_on)
{
    agree_on_lists(
        "def apply_all[a](l: List[a], f: fn(a) -> a, n: i64) -> List[a] {\n"
        "  if n > 0 { apply_all(map(l, f), f, n - 1) } else { map(l, (x) => f(f(x))) }\n"
        "}\n"
        "def main(l: List[f32[2]], w: f32[2]) -> List[f32[2]] { apply_all(l, (x) => x * w, length(l)) }\n");
}

Test(poly, a_lambda_in_a_region_and_with_a_tuple)
{
    agree_on_lists(
        "def main(l: List[f32[2]], w: f32[2]) -> (f32[2], i64) {\n"
        "  match l {\n"
        "    Nil => (w, 0)\n"
        "    Cons(x, rest) => fold(zip(rest, map(rest, (y) => 1)), (x, 0), ((s, k), (y, one)) => {\n"
        "      let t = s * x + y\n"
        "      if k > 1 { (t, k + one) } else { (t - w, k + 2) }\n"
        "    })\n"
        "  }\n"
        "}\n");
}

/* The state begins as f32[0, 2]. */
Test(poly, a_state_that_grows)
{
    agree_on_lists("def main(l: List[f32[2]], w: f32[2]) -> f32[?, 2] {\n"
                   "  let rows = reshape(w, shape = [1, 2])\n"
                   "  fold(l, rows, (s, x) => concat(s, reshape(x, shape = [1, 2]), axis = 0))\n"
                   "}\n");
}

Test(poly, all_of_the_prelude)
{
    agree_on_lists("def positive(x: f32[2]) -> bool { reduce_sum(x, axes = [0], keepdims = 0) > 0.25 }\n"
                   "def main(l: List[f32[2]], w: f32[2]) ->\n"
                   "    (List[f32[2]], List[f32[2]], i64, List[(f32[2], f32[2])], (i64, List[f32[4]]), "
                   "f32[2], f32[2]) {\n"
                   "  (filter(l, positive), append(reverse(l), l), length(l), zip(l, filter(l, positive)),\n"
                   "   scan(l, 0, (k, x) => (k + 1, concat(x, w, axis = 0))),\n"
                   "   or_else(head(l), w), or_else(element(l, 2), w * 2))\n"
                   "}\n");
}

Test(poly, trees_of_the_prelude)
{
    static const char text[] =
        "def main(t: Tree[f32[2]], w: f32[2]) -> (f32[2], i64, Tree[f32[2]]) {\n"
        "  (fold_tree(t, (x) => x * w, (a, b) => tanh(a - b)), fold_tree(t, (x) => 1, (a, b) => a + b),\n"
        "   map_tree(t, (x) => x + w))\n"
        "}\n";
    compiled c = compile(text, NULL);
    interp_value *tree = data(c.graph, "Tree[f32[2]]", "Leaf", (interp_value *[]){vector(.5F)}, 1);

    for (int i = 0; i < 3; i++) {
        interp_value *leaf = data(c.graph, "Tree[f32[2]]", "Leaf", (interp_value *[]){vector((float)i)}, 1);

        tree = data(c.graph, "Tree[f32[2]]", "Node",
                    i == 1 ? (interp_value *[]){leaf, tree} : (interp_value *[]){tree, leaf}, 2);
    }
    agree_on(c, (interp_value *[]){tree, vector(-.5F)}, 2, 1);
}

/* Declared by the program, the names are the program's. */
Test(poly, the_program_hides_the_prelude)
{
    compiled c = compile("type List = Nil | Cons(f32[2], List)\n"
                         "def map(x: f32[2]) -> f32[2] { x * 3 }\n"
                         "def or_else(x: f32[2]) -> f32[2] { map(x) - 1 }\n"
                         "def main(w: f32[2], k: i64) -> (f32[2], Option[i64]) { (or_else(w), Some(k)) }\n",
                         NULL);

    cr_assert_null(graph_find_data(c.graph, "List[f32[2]]"));
    agree_on(c, (interp_value *[]){vector(2), interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){7})}, 2, 1);
}

/* Each call is the last thing that its function does, so the VM's depth stays the same. */
Test(poly, lists_of_a_million_elements)
{
    compiled c = compile("def build(k: i64, l: List[i64]) -> List[i64] {\n"
                         "  if k > 0 { build(k - 1, Cons(k, l)) } else { l }\n"
                         "}\n"
                         "def main(k: i64) -> i64 {\n"
                         "  let odd = filter(map(build(k, Nil), (x) => x * 2 + 1), (x) => x > 10)\n"
                         "  fold(odd, length(odd), (s, x) => s + x)\n"
                         "}\n",
                         NULL);
    tec_object *given = object_of(&c, interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){1000000})), *out = NULL;

    /* 3, 5, .. 2000001 without 3, 5, 7, 9: the sum, and how many they are */
    cr_assert(tec_program_run(c.p, &given, 1, &out, 1, &err), "%s", err.text);
    cr_assert_eq(*(const int64_t *)tec_object_dltensor(out)->data, 1000002000000 - 24 + 1000000 - 4);
    tec_object_free(out);
    tec_object_free(given);
    discard(&c);
}

Test(poly, only_what_is_used_is_in_the_module)
{
    const graph_module *m = lang_parse(cx, "p.tecp", "def main(c: bool) -> bool { c }\n", NULL);

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert_eq(m->functions.n, 1);
    cr_assert_eq(m->data.n, 0);
}

Test(poly, what_is_wrong_is_told)
{
    static const struct {
        const char *text, *error;
    } row[] = {
        {"def main(l: List[f32[2]], w: f32[2]) -> f32[2] { fold(l, w, (s) => s) }",
         "p.tecp:1:61: error: 'fold': the function 'f' has 2 operands, found 1 names"},
        {"def main(l: List[f32[2]], w: f32[2]) -> f32[2] { fold(l, w, (s, x, y) => s) }",
         "'fold': the function 'f' has 2 operands, found more names"},
        {"def main(l: List[f32[2]]) -> i64 { fold(l, 1, (s, x) => x) }",
         "'fold': the function 'f' gives f32[2], expected i64[], for which 's' stands"},
        {"def main(l: List[f32[2]], w: f32[2]) -> List[f32[2]] { map(l, w) }",
         "'w' is a value of type f32[2], expected a function for 'f' of 'map'"},
        {"def main(l: List[f32[2]]) -> List[f32[2]] { map(l, nothing) }",
         "there is no function or operator 'nothing'"},
        {"def g(x: f32[2], y: f32[2]) -> f32[2] { x }\n"
         "def main(l: List[f32[2]]) -> List[f32[2]] { map(l, g) }",
         "'g' takes 2 operands, expected 1 as 'f' of 'map'"},
        {"def main(l: List[f32[2]]) -> List[f32[2]] { reverse(l, l) }",
         "'reverse' takes 1 operands, found more"},
        {"def main(l: List[f32[2]]) -> List[(f32[2], f32[2])] { zip(l) }", "'zip' takes 2 operands, found 1"},
        {"def main(w: f32[2]) -> i64 { length(w) }", "'length': operand 1 is f32[2], expected List[a]"},
        {"def none[a](k: i64) -> i64 { k }\ndef main(k: i64) -> i64 { none(k) }",
         "the type 'a' of 'none' is not known here: write none[TYPES](...)"},
        /* what a number in front was expected to be says nothing of the next expression */
        {"def g(k: i64) -> i64 { k }\ndef none[a](k: i64) -> a { none(k) }\n"
         "def main(k: i64) -> i64 { let p = g(1) let q = none(3) p }",
         "the type 'a' of 'none' is not known here: write none[TYPES](...)"},
        {"def none[a](k: i64) -> i64 { k }\ndef main(k: i64) -> i64 { none[i64, i64](k) }",
         "'none' takes 1 types, found 2"},
        {"def f[a](x: a) -> a { x + x }\ndef main(l: List[i64]) -> List[i64] { f(l) }",
         "p.tecp:2:39: note: 'f' is used here as 'f[List[i64]]'"},
        {"def f(g: fn(i64) -> i64) -> i64 { g }\ndef main(k: i64) -> i64 { f((x) => x + k) }",
         "'g' is a function: it can be called, or given to a parameter that is a function"},
        {"def f(g: fn(i64) -> i64) -> i64 { g(1, 2) }\ndef main(k: i64) -> i64 { f((x) => x + k) }",
         "'g' takes 1 operands, found 2"},
        {"def f(k: i64) -> fn(i64) -> i64 { k }\ndef main(k: i64) -> i64 { k }",
         "only a parameter of a function can be a function"},
        {"def f[a](k: a) -> fn(a) -> a { k }\ndef main(k: i64) -> i64 { k }",
         "the result of 'f' cannot be a function"},
        {"def main(f: fn(i64) -> i64) -> i64 { 1 }", "'main' has no type parameters"},
        {"def f[a, a](k: a) -> a { k }\ndef main(k: i64) -> i64 { k }",
         "there is a type parameter 'a' already"},
        {"type P[a] = P(a)\n"
         "def grow[a](n: i64, x: a) -> i64 { if n > 0 { grow(n - 1, P(x)) } else { 0 } }\n"
         "def main(n: i64) -> i64 { grow(n, n) }",
         "'P' is used with more than 256 different types"},
        {"def grow[a](n: i64, x: a) -> i64 { if n > 0 { grow(n - 1, (x, x)) } else { 0 } }\n"
         "def main(n: i64) -> i64 { grow(n, n) }",
         "'grow' is used with ever more types"},
        {"def f[a](k: a) -> a { k }\ndef f(k: i64) -> i64 { k }\ndef main(k: i64) -> i64 { k }",
         "there is a function 'f' already"},
    };

    for (int i = 0; i < BASE_COUNT(row); i++) {
        cr_assert_null(lang_parse(cx, "p.tecp", row[i].text, NULL), "%s", row[i].text);
        cr_assert(strstr(tec_context_error(cx), row[i].error), "%s: %s", row[i].text, tec_context_error(cx));
        tec_context_clear(cx);
    }
}

/* ---- random programs ---- */

enum { DEEPEST = 3 };

static const char *list(uint64_t *state, int depth, const char *const *names, int n);

/* An f32[2], by the names of vectors in scope. */
static const char *value(uint64_t *state, int depth, const char *const *names, int n)
{
    const char *inner[8];

    for (int i = 0; i < n; i++)
        inner[i] = names[i];
    inner[n] = base_format(cx, "x%d", n);
    inner[n + 1] = base_format(cx, "x%d", n + 1);
    switch (depth > 0 && n < 5 ? fuzz_below(state, 6) : 6) {
    case 0:
        return base_format(cx, "fold(%s, %s, (%s, %s) => %s)", list(state, depth - 1, names, n),
                           value(state, depth - 1, names, n), inner[n], inner[n + 1],
                           value(state, depth - 1, inner, n + 2));
    case 1:
        return base_format(cx, "or_else(head(%s), %s)", list(state, depth - 1, names, n),
                           value(state, depth - 1, names, n));
    case 2:
        return base_format(cx, "tanh(%s - %s)", value(state, depth - 1, names, n),
                           value(state, depth - 1, names, n));
    case 3:
        return base_format(cx, "if length(%s) > 1 { %s } else { %s }", list(state, depth - 1, names, n),
                           value(state, depth - 1, names, n), value(state, depth - 1, names, n));
    case 4:
        return base_format(cx, "twice(%s, (%s) => %s)", value(state, depth - 1, names, n), inner[n],
                           value(state, depth - 1, inner, n + 1));
    default: return names[fuzz_below(state, n)];
    }
}

/* A List[f32[2]]. */
static const char *list(uint64_t *state, int depth, const char *const *names, int n)
{
    const char *inner[8];

    for (int i = 0; i < n; i++)
        inner[i] = names[i];
    inner[n] = base_format(cx, "x%d", n);
    inner[n + 1] = base_format(cx, "x%d", n + 1);
    switch (depth > 0 && n < 5 ? fuzz_below(state, 6) : 6) {
    case 0:
        return base_format(cx, "map(%s, (%s) => %s)", list(state, depth - 1, names, n), inner[n],
                           value(state, depth - 1, inner, n + 1));
    case 1:
        return base_format(cx, "filter(%s, (%s) => positive(%s))", list(state, depth - 1, names, n), inner[n],
                           value(state, depth - 1, inner, n + 1));
    case 2:
        return base_format(cx, "append(%s, reverse(%s))", list(state, depth - 1, names, n),
                           list(state, depth - 1, names, n));
    case 3:
        return base_format(cx, "map(zip(%s, %s), ((%s, %s)) => %s)", list(state, depth - 1, names, n),
                           list(state, depth - 1, names, n), inner[n], inner[n + 1],
                           value(state, depth - 1, inner, n + 2));
    case 4: return base_format(cx, "map(%s, tanh)", list(state, depth - 1, names, n));
    default: return "l";
    }
}

/* Lambdas in lambdas that capture what is around them, by the VM as by the interpreter. */
Test(poly, random_programs)
{
    static const char *const names[] = {"w"};
    uint64_t state = 41;

    for (int k = 0; k < 40; k++) {
        const char *text = base_format(
            cx,
            "def positive(x: f32[2]) -> bool { reduce_sum(x, axes = [0], keepdims = 0) > 0.25 }\n"
            "def twice[a](x: a, f: fn(a) -> a) -> a { f(f(x)) }\n"
            "def main(l: List[f32[2]], w: f32[2]) -> (f32[2], List[f32[2]]) {\n  (%s,\n   %s)\n}\n",
            value(&state, DEEPEST, names, 1), list(&state, DEEPEST, names, 1));
        compiled c = compile(text, NULL);

        agree_on(c, (interp_value *[]){vectors(c.graph, k % 4), vector(.5F)}, 2, 1);
    }
}
