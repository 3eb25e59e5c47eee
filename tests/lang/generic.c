/* tests/lang/generic.c -- data types with type parameters: made for each use, by the VM as by the
 * interpreter of graphs. */
#include "tests/lang/kit.h"

TestSuite(generic, .init = open_context, .fini = close_context);

static const char program[] =
    "type Pair[a, b] = Pair(a, b)\n"
    "def sum(l: List[f32[2]], acc: f32[2]) -> f32[2] {\n"
    "  match l {\n"
    "    Nil => acc\n"
    "    Cons(x, rest) => sum(rest, acc + x)\n"
    "  }\n"
    "}\n"
    "def lengths(l: List[List[f32[?]]]) -> List[i64] {\n"
    "  match l {\n"
    "    Nil => Nil\n"
    "    Cons(x, rest) => Cons(count(x), lengths(rest))\n"
    "  }\n"
    "}\n"
    "def count(l: List[f32[?]]) -> i64 {\n"
    "  match l {\n"
    "    Nil => 0\n"
    "    Cons(x, rest) => 1 + count(rest)\n"
    "  }\n"
    "}\n"
    "def swap(p: Pair[f32[?], i64]) -> Pair[i64, f32[?]] { match p { Pair(x, k) => Pair(k, x) } }\n"
    "type List[a] = Nil | Cons(a, List[a])\n"
    "def main(l: List[f32[2]], m: List[List[f32[?]]], z: f32[2]) -> (f32[2], List[i64], Pair[i64, f32[?]], "
    "List[f32[2]]) {\n"
    "  let more = Cons(z, Cons(z * 2, l))\n"
    "  let none = Nil[f32[2]]\n"
    "  (sum(more, z) + sum(Nil, z) + sum(none, z), lengths(m), swap(Pair(z, 3)), if 1 < 2 { more } else { "
    "Nil })\n"
    "}\n";

static interp_value *data(const graph_module *m, const char *type, const char *name,
                          interp_value *const *part, int n)
{
    const graph_data *d = graph_find_data(m, type);
    int which;

    cr_assert(d && graph_find_case(d, name, &which), "%s.%s", type, name);
    return interp_data(cx, d, which, part, n);
}

/* A list of vectors of so many elements each. */
static interp_value *vectors(const graph_module *m, const char *type, const int64_t *extent, int n)
{
    static const float elements[] = {1, -2, .5F, 3, 4};
    interp_value *list = data(m, type, "Nil", NULL, 0);

    while (n-- > 0) {
        interp_value *cell[] = {interp_tensor(cx, BASE_F32, 1, &extent[n], elements), list};
        list = data(m, type, "Cons", cell, 2);
    }
    return list;
}

Test(generic, lists_of_several_types_in_one_program)
{
    const graph_module *m = lang_parse(cx, "p.tecp", program, NULL);
    const int64_t extent[] = {2, 2, 2, 2};
    const char *outer = "List[List[f32[?]]]";

    cr_assert(m, "%s", tec_context_error(cx));
    for (int n = 0; n < 4; n++) {
        interp_value *nested = data(m, outer, "Nil", NULL, 0);
        for (int k = 0; k < n; k++) {
            interp_value *cell[] = {vectors(m, "List[f32[?]]", (const int64_t[]){0, 5, 3}, k), nested};
            nested = data(m, outer, "Cons", cell, 2);
        }
        interp_value *in[] = {vectors(m, "List[f32[2]]", extent, n), nested,
                              interp_tensor(cx, BASE_F32, 1, extent, (const float[]){2, 7})};
        agree_on(compile(program, NULL), in, 3, 1);
    }
}

Test(generic, only_types_that_are_used_are_in_the_module)
{
    const graph_module *m = lang_parse(
        cx, "p.tecp", "type List[a] = Nil | Cons(a, List[a])\ndef main(c: bool) -> bool { c }\n", NULL);

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert_eq(m->data.n, 0);
}

/* A long list, with a tail call for each element. */
Test(generic, a_list_of_a_million_elements_is_folded)
{
    compiled c =
        compile("type List[a] = Nil | Cons(a, List[a])\n"
                "def build(k: i64, l: List[i64]) -> List[i64] {\n"
                "  if k > 0 { build(k - 1, Cons(k, l)) } else { l }\n"
                "}\n"
                "def sum(l: List[i64], s: i64) -> i64 { match l { Nil => s Cons(x, r) => sum(r, s + x) } }\n"
                "def main(k: i64) -> i64 { sum(build(k, Nil), 0) }\n",
                NULL);
    interp_value *k = interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){1000000});
    tec_object *given = object_of(&c, k), *out = NULL;

    cr_assert(tec_program_run(c.p, &given, 1, &out, 1, &err), "%s", err.text);
    cr_assert_eq(*(const int64_t *)tec_object_dltensor(out)->data, 500000500000);
    tec_object_free(out);
    tec_object_free(given);
    discard(&c);
}

Test(generic, a_constructor_without_its_type_takes_the_first_that_fits)
{
    compiled c = compile("type List[a] = Nil | Cons(a, List[a])\n"
                         "def main(l: List[i64], m: List[f32]) -> (List[f32], List[i64]) { (m, l) }\n",
                         NULL);
    interp_value *x = interp_tensor(cx, BASE_F32, 0, NULL, &(float){2});
    tec_object *nil = tec_object_data(c.p, "List[f32].Nil", NULL, 0, &err), *cell[] = {object_of(&c, x), nil},
               *list = tec_object_data(c.p, "Cons", cell, 2, &err),
               *other = tec_object_data(c.p, "Nil", NULL, 0, &err), *in[] = {other, list}, *out = NULL;

    cr_assert(nil && list && other, "%s", err.text);
    cr_assert(tec_program_run(c.p, in, 2, &out, 1, &err), "%s", err.text);
    cr_assert_str_eq(tec_object_constructor(c.p, tec_object_part(out, 0)), "Cons");
    cr_assert_null(tec_object_data(c.p, "List[f32].None", NULL, 0, &err));
    cr_assert(strstr(err.text, "there is no constructor 'List[f32].None'"), "%s", err.text);
    err = (tec_error){0};
    cr_assert_null(tec_object_data(c.p, "Cons", (tec_object *[]){cell[0], other}, 2, &err));
    cr_assert(strstr(err.text, "field"), "%s", err.text);
    tec_object_free(out);
    for (int i = 0; i < 2; i++)
        tec_object_free(in[i]);
    for (int i = 0; i < 2; i++)
        tec_object_free(cell[i]);
    discard(&c);
}

Test(generic, what_is_wrong_is_told_with_both_types)
{
    static const struct {
        const char *text, *error;
    } row[] = {
        {"def main(c: bool) -> i64 { match Nil { Nil => 0 Cons(x, r) => x } }",
         "the type of 'Nil' is not known here: write Nil[TYPE], for a value of List"},
        {"def main(x: i64, y: f32) -> List[i64] { Cons(x, Cons(y, Nil)) }",
         "'Cons': operand 0 is f32[], expected i64[]"},
        {"def f(l: List[i64]) -> i64 { 1 }\ndef main(y: f32) -> i64 { f(Cons[f32](y, Nil)) }",
         "p.tecp:3:27: error: 'f': operand 1 is \"List[f32]\", expected \"List[i64]\""},
        {"def main(l: List[i64, f32]) -> i64 { 1 }", "'List' takes 1 types, found 2"},
        {"def main(l: List) -> i64 { 1 }", "'List' has type parameters: expected List[...] with 1 types"},
        {"def main(l: List[f32[n]]) -> i64 { 1 }", "the extent 'n' is not known here"},
        {"def main(l: List[Bush]) -> i64 { 1 }", "there is no type 'Bush'"},
        {"type Other = Nil\ndef main(c: bool) -> bool { c }", "there is a constructor 'Nil' already"},
        {"type T[a] = A(a, T[(a, a)])\ndef main(t: T[i64]) -> i64 { 1 }",
         "the type parameters of 'T' need more than 1000 letters"},
    };

    for (int i = 0; i < BASE_COUNT(row); i++) {
        const char *text = base_format(cx, "type List[a] = Nil | Cons(a, List[a])\n%s\n", row[i].text);

        cr_assert_null(lang_parse(cx, "p.tecp", text, NULL), "%s", text);
        cr_assert(strstr(tec_context_error(cx), row[i].error), "%s", tec_context_error(cx));
        tec_context_clear(cx);
    }
}

Test(generic, a_tree_that_is_deep_to_the_left_is_walked)
{
    compiled c =
        compile("type Tree[a] = Leaf(a) | Node(Tree[a], Tree[a])\n"
                "def build(k: i64, t: Tree[i64]) -> Tree[i64] {\n"
                "  if k > 0 { build(k - 1, Node(t, Leaf(k))) } else { t }\n"
                "}\n"
                "def sum(t: Tree[i64]) -> i64 { match t { Leaf(x) => x Node(l, r) => sum(l) + sum(r) } }\n"
                "def main(k: i64) -> i64 { sum(build(k, Leaf(0))) }\n",
                NULL);
    interp_value *k = interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){10000});
    tec_object *given = object_of(&c, k), *out = NULL;

    cr_assert(tec_program_run(c.p, &given, 1, &out, 1, &err), "%s", err.text);
    cr_assert_eq(*(const int64_t *)tec_object_dltensor(out)->data, 50005000);
    tec_object_free(out);
    tec_object_free(given);
    discard(&c);
}
