/* tests/lang/unused.c -- functions and data types with type parameters that the program uses nowhere. */
#include "tests/lang/kit.h"

TestSuite(unused, .init = open_context, .fini = close_context);

static const char rest[] = "def main(k: i64) -> i64 { k }\n";

static const graph_module *read(const char *text)
{
    return lang_parse(cx, "p.tecp", base_format(cx, "%s\n%s", text, rest), NULL);
}

typedef struct {
    const char *text, *error;
} wrong;

/* Each text is refused at its own line and column, not where something uses it. */
static void refuses(const wrong *row, int count)
{
    for (int i = 0; i < count; i++) {
        cr_assert_null(read(row[i].text), "%s", row[i].text);
        cr_assert(strstr(tec_context_error(cx), row[i].error), "%s: %s", row[i].text, tec_context_error(cx));
        cr_assert_null(strstr(tec_context_error(cx), "is used here"), "%s", tec_context_error(cx));
        tec_context_clear(cx);
    }
}

Test(unused, names_and_numbers_that_are_wrong_are_told_where_they_stand)
{
    static const wrong row[] = {
        /* names */
        {"def f[a](x: a) -> a { y }",
         "p.tecp:1:23: error: there is no value, function, constructor or operator 'y'\n"
         "def f[a](x: a) -> a { y }\n"
         "                      ^"},
        {"def f[a](x: a, g: fn(a) -> a) -> a { h(g(x)) }", "1:38: error: there is no value, function"},
        {"def f[a](x: Nothing, y: a) -> a { y }", "1:13: error: there is no type 'Nothing'"},
        {"def f[a](x: f32[n], y: a) -> f32[n] { reshape(x, shape = [m]) }", "1:59: error: the extent 'm'"},
        {"def f[a](x: a) -> i64 { match x { Foo => 0 } }", "1:35: error: there is no constructor 'Foo'"},
        {"def f[a](l: List[a]) -> List[i64] { map(l, (x) => y) }", "1:51: error: there is no value"},
        {"def f[a](x: a, y: f32[2]) -> f32[2] { fold(x, y, (s, r) => s + z) }",
         "1:64: error: there is no value"},
        {"def f[a](x: a) -> a { x", "expected '}', found the end of the text"},
        /* how many */
        {"def f[a](x: a) -> a { tanh(x, x) }", "1:23: error: tanh: expected 1 operands, found 2"},
        {"def f[a](x: a) -> a { unique(x, x) }", "1:23: error: unique: expected 1 operands, found 2"},
        {"def f[a, b](x: a, g: fn(a) -> b) -> b { g(x, x) }", "1:41: error: 'g' takes 1 operands, found 2"},
        {"def f[a](x: a, n: i64) -> a { f(x) }", "1:31: error: 'f' takes 2 operands, found 1"},
        {"def f[a](l: List[a]) -> i64 { match l { Nil => 0 Cons(x) => 1 } }",
         "1:50: error: 'Cons' has 2 fields"},
        {"def f[a](l: List[a]) -> i64 { match l { Nil => 0 } }",
         "1:31: error: the match has no arm for constructor 'Cons'"},
        {"def f[a](x: a) -> i64 { match x { Nil => 0 } }", "the match has no arm for constructor 'Cons'"},
    };

    refuses(row, BASE_COUNT(row));
}

Test(unused, types_that_are_wrong_are_told_where_they_stand)
{
    static const wrong row[] = {
        {"def f[a, b](x: a) -> b { x }", "1:24: error: 'f' gives \"a\", expected \"b\""},
        {"def f[a](x: a) -> f32[2] { x }", "1:26: error: 'f' gives \"a\", expected f32[2]"},
        {"def f[a](x: a, l: List[a]) -> a { l }", "'f' gives \"List[a]\", expected \"a\""},
        {"def f[a](l: List[a]) -> List[a] { l + 1 }",
         "1:37: error: add 'add': expected a tensor as operand 0, found \"List[a]\""},
        {"def f[a](x: a) -> List[i64] { Cons(x * 2, Nil[a]) }",
         "1:31: error: 'Cons': operand 1 is \"List[a]\", expected \"List[i64]\""},
        {"def f[a](x: a) -> Option[List[a]] { Some(Cons(Some(x), Nil)) }",
         "1:42: error: 'Cons': operand 0 is \"Option[a]\", expected \"a\""},
        {"def f[a](x: a, c: bool) -> a { if c { x } else { 1 } }",
         "1:32: error: 'if': output of 'else' 0 is i64[], expected \"a\""},
        {"def f[a, b](x: a, g: fn(a) -> b) -> a { g(x) }", "1:39: error: 'f' gives \"b\", expected \"a\""},
        {"def f(g: fn(f32[2]) -> f32[2], x: f32[3]) -> f32[2] { g(x) }",
         "1:55: error: 'g': operand 1 is f32[3], expected f32[2]"},
        {"def f[a](l: List[a], g: fn(i64) -> a) -> List[a] { map(l, g) }",
         "1:59: error: 'g' does not take \"a\" as operand 1, which 'f' of 'map' gives"},
        {"def f[a](l: List[a]) -> List[i64] { map(l, (x) => length(x)) }",
         "1:58: error: 'length': operand 1 is \"a\", expected List[a]"},
        {"def f[a](x: a) -> i64 { let (p, q) = x length(Some(p)) }",
         "1:47: error: 'length': operand 1 is \"Option[?]\", expected List[a]"},
    };

    refuses(row, BASE_COUNT(row));
}

/* Each body fits some types. Nothing of the check is left in the module. */
Test(unused, what_some_use_could_make_right_is_accepted)
{
    static const char *const row[] = {
        "def f[a](x: a) -> a { x + x }",
        "def f[a](x: a) -> f32[2] { tanh(x) * 2 - x }",
        "def f[a](x: a, c: bool) -> a { if c { x } else { x * 2 } }",
        "def f[a](x: a) -> i64 { if x > 0 { 1 } else { 2 } }",
        "def f[a](x: a) -> i64 { let (p, q) = x p + q }",
        "def f[a](x: a) -> i64 { match x { Nil => 0 Cons(y, r) => length(r) } }",
        "def f[a](x: a, y: f32[2]) -> f32[2] { fold(x, y, (s, r) => s + r) }",
        "def f[a](x: f32[n, 2], y: a) -> a { fold(x, y * 2, (s, r) => s + r) }",
        "def f[a](x: f32[n, 2], y: a) -> (f32[2], f32[n, 2]) { scan(x, y * 2, (s, r) => (s + r, r)) }",
        "def f[a](x: a) -> a { map(x, tanh) }",
        "def f[a](x: a) -> a { unique(x) }",
        "def f[a](x: a) -> List[a] { Cons(x * 1, Nil) }",
        "def f[a](x: a) -> List[a] { Cons(x * 1, reverse(Cons(x, Nil))) }",
        "def f[a](l: List[a]) -> List[i64] { map(l, (x) => x + 1) }",
        "def f[a](l: List[a]) -> List[a] { match l { Nil => Nil Cons(x, r) => Cons(x, f(r)) } }",
        "def f[a](t: Tree[a]) -> a { fold_tree(t, (x) => x, (p, q) => p + q) }",
        "def f[a, b](l: List[a], g: fn(a) -> b) -> List[(b, a)] { zip(map(l, g), filter(l, (x) => x > 0)) }",
        "def g(x: f32[2]) -> f32[2] { x }\ndef f[a](x: a) -> f32[2] { g(x * 2) }",
        "type P[a] = P(a)\ndef f[a](n: i64, x: a) -> i64 { if n > 0 { f(n - 1, P(x)) } else { 0 } }",
        "def f(g: fn(f32[2]) -> f32[2], x: f32[2]) -> f32[2] { g(g(x)) }",
    };

    for (int i = 0; i < BASE_COUNT(row); i++) {
        const graph_module *m = read(row[i]);
        int plain = strncmp(row[i], "def g(x", 7) == 0;

        cr_assert(m, "%s: %s", row[i], tec_context_error(cx));
        cr_assert_eq(m->functions.n, 1 + plain, "%s", row[i]);
        cr_assert_eq(m->data.n, 0, "%s", row[i]);
    }
}

/* The constructors of a data type with type parameters are read although nothing uses them. */
Test(unused, what_is_wrong_in_a_data_type_is_told_where_it_stands)
{
    static const struct {
        const char *text, *error;
    } row[] = {
        {"type T[a] = L(Nothing)", "p.tecp:1:15: error: there is no type 'Nothing'\n"
                                   "type T[a] = L(Nothing)\n"
                                   "              ^"},
        {"type T[a] = L(b)", "1:15: error: there is no type 'b'"},
        {"type T[a] = L((a, b))", "1:19: error: there is no type 'b'"},
        {"type T[a] = L(a[3])", "1:16: error: expected ')', found '['"},
        {"type T[a] = L(f32[n])", "1:19: error: the extent 'n' is not known here"},
        {"type T[a] = L(T)", "1:16: error: 'T' has type parameters: expected T[...] with 1 types"},
        {"type T[a] = L(T[a, a])", "1:16: error: 'T' takes 1 types, found 2"},
        {"type T[a] = L(List[a, a])", "1:19: error: 'List' takes 1 types, found 2"},
        {"type T[a] = L(T[T[a]])", "1:15: error: 'T' is used with more than 256 different types"},
        {"type T[a] = L(fn(a) -> a)", "1:15: error: only a parameter of a function can be a function"},
        {"type T[a] = A(U[a]) type U[b] = B(b, T)", "1:39: error: 'T' has type parameters"},
        {"type T[a, a] = L(a)", "1:11: error: there is a type parameter 'a' already"},
        {"type T[i64] = L(i64)", "1:8: error: expected a type parameter, found the type 'i64'"},
        {"type T[a] =", "2:1: error: expected a constructor, found 'def'"},
        {"type T =", "2:1: error: expected a constructor, found 'def'"},
        {"type T = A |", "2:1: error: expected a constructor, found 'def'"},
    };

    for (int i = 0; i < BASE_COUNT(row); i++) {
        cr_assert_null(read(row[i].text), "%s", row[i].text);
        cr_assert(strstr(tec_context_error(cx), row[i].error), "%s: %s", row[i].text, tec_context_error(cx));
        tec_context_clear(cx);
    }
}

Test(unused, a_data_type_that_is_right_is_accepted)
{
    static const char *const row[] = {
        "type T[a] = L(a) | N(T[a], T[a])",
        "type T[a] = L(f32[?, 4], a)",
        "type T[a, b] = L((a, List[b])) | N(Option[T[b, a]])",
        "type T[a] = A(U[a]) type U[b] = B(b, T[b])",
        "type List[a] = L(a)",
        "type T[a] = L(i64)",
        "type T[a] = W(a)\ndef f[a](x: a) -> T[a] { W(x) }",
    };

    for (int i = 0; i < BASE_COUNT(row); i++) {
        const graph_module *m = read(row[i]);

        cr_assert(m, "%s: %s", row[i], tec_context_error(cx));
        cr_assert_eq(m->functions.n, 1, "%s", row[i]);
        cr_assert_eq(m->data.n, 0, "%s", row[i]);
    }
}

/* A type of the program may have the name of a type parameter. */
Test(unused, a_type_parameter_is_no_type_of_its_name)
{
    cr_assert_null(read("type a = A(f32[2])\ndef g() -> a { A(g2()) }\ndef g2() -> f32[2] { g2() }\n"
                        "def f[a](x: a) -> a { g() }"));
    cr_assert(strstr(tec_context_error(cx), "'f' gives \"a\", expected \"a'\""), "%s", tec_context_error(cx));
}

/* The types of its uses are what counts then. */
Test(unused, a_function_that_is_used_is_checked_with_its_types)
{
    cr_assert(lang_parse(cx, "p.tecp",
                         "def f[a](x: a) -> f32[2] { x }\n"
                         "def main(x: f32[2]) -> f32[2] { f(x) }\n",
                         NULL),
              "%s", tec_context_error(cx));
}
