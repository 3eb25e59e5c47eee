/* tests/lang/format.c -- programs in their canonical layout: what is moved, what stays, and that the meaning
 * does. */
#include "tests/lang/kit.h"

#include <dirent.h>

#include "lang/format.h"
#include "tec/graph.h"

TestSuite(format, .init = open_context, .fini = close_context);

static const char *formatted(const char *text)
{
    const char *result = lang_format(cx, "p.tecp", text);

    cr_assert(result, "%s", tec_context_error(cx));
    return result;
}

/* The layout of `text`, which is its own layout. */
static void expect(const char *text, const char *expected)
{
    const char *result = formatted(text);

    cr_assert_str_eq(result, expected, "found:\n%s", result);
    cr_assert_str_eq(formatted(result), expected);
}

Test(format, spaces_are_the_formatters)
{
    expect("type T=A|B( f32 [ ? , n*2 ],T)\nparam W : f32[4,3],b:f32[3]\n"
           "def f(x:f32[n,4],k:i64)->(f32[?],T){(-x*2+W/ 3,B(a=1,b= -2,c=[1 ,n+1]))}",
           "type T = A | B(f32[?, n * 2], T)\n"
           "param W: f32[4, 3], b: f32[3]\n"
           "def f(x: f32[n, 4], k: i64) -> (f32[?], T) { (-x * 2 + W / 3, B(a = 1, b = -2, c = [1, n + 1])) "
           "}\n");
}

Test(format, bindings_and_arms_have_lines)
{
    expect("def f(l: L) -> f32 { let (a, (b, _)) = g(l)  a + match l { Nil => b, Cons(x, r) => if c { x } "
           "else { f(r) } } }",
           "def f(l: L) -> f32 {\n"
           "  let (a, (b, _)) = g(l)\n"
           "  a\n"
           "    + match l {\n"
           "      Nil => b\n"
           "      Cons(x, r) => if c { x } else { f(r) }\n"
           "    }\n"
           "}\n");
}

Test(format, comments_and_empty_lines_stay)
{
    expect("# the file\n\n\n\n# of f\ndef f(x: f32) -> f32 { # opens\n\n\n  let y = x  # twice\n\n"
           "  // the value\n  g(y, # first\n    x)   # last\n  # closes\n}\n\n\ndef g() -> f32 { 1 } # "
           "end\n# file\n",
           "# the file\n\n# of f\ndef f(x: f32) -> f32 {  # opens\n  let y = x  # twice\n\n"
           "  // the value\n  g(\n    y,  # first\n    x\n  )  # last\n  # closes\n}\n\n"
           "def g() -> f32 { 1 }  # end\n# file\n");
}

Test(format, a_comment_may_stand_between_any_two_tokens)
{
    static const char *const token[] = {
        "def",  "f", "(", "x", ":", "f32",  "[", "n", "]", ")", "->", "f32", "[",   "n", "]", "{",
        "let",  "y", "=", "f", "(", "x",    ",", "a", "=", "1", ")",  "if",  "c",   "{", "y", "}",
        "else", "{", "x", "}", "}", "type", "T", "=", "A", "|", "B",  "(",   "f32", ")"};

    for (int own = 0; own < 2; own++)
        for (int k = 0; k < BASE_COUNT(token); k++) {
            base_text text = {0};
            for (int i = 0; i < BASE_COUNT(token); i++) {
                bool call = i > 0 && base_same(token[i], "(") && base_same(token[i - 1], "f");
                base_addf(cx, &text, "%s%s%s", i == 0 || call ? "" : " ", token[i],
                          i != k || base_same(token[i], "f") ? ""
                          : own                              ? "\n# here\n"
                                                             : " # here\n");
            }
            const char *once = formatted(base_text_str(cx, &text)), *twice = formatted(once);
            cr_assert_str_eq(once, twice, "from:\n%s\nonce:\n%s\ntwice:\n%s", text.data, once, twice);
            cr_assert_eq(strstr(text.data, "# here") == NULL, strstr(once, "# here") == NULL, "%s", once);
        }
}

Test(format, long_lists_have_one_item_on_a_line)
{
    expect("def main(x: f32[n, 4]) -> f32[?, 4] { concat(a_long_name(x), another_long_name(x), "
           "a_third_long_name(x), axis = 0) }",
           "def main(x: f32[n, 4]) -> f32[?, 4] {\n"
           "  concat(a_long_name(x), another_long_name(x), a_third_long_name(x), axis = 0)\n"
           "}\n");
    expect("def main(x: f32[n, 4]) -> f32[?, 4] { concat(a_long_name(x), another_long_name(x), "
           "a_third_long_name(x), a_fourth(x) + a_fifth(x), axis = 0,) }",
           "def main(x: f32[n, 4]) -> f32[?, 4] {\n"
           "  concat(\n"
           "    a_long_name(x),\n"
           "    another_long_name(x),\n"
           "    a_third_long_name(x),\n"
           "    a_fourth(x) + a_fifth(x),\n"
           "    axis = 0\n"
           "  )\n"
           "}\n");
}

Test(format, a_block_at_the_end_of_a_call_keeps_its_place)
{
    expect("def main(x: f32[n, 4]) -> f32[4] { scan(x,z,(h,row)=>{let a=h+row (a,a)}) }",
           "def main(x: f32[n, 4]) -> f32[4] {\n"
           "  scan(x, z, (h, row) => {\n"
           "    let a = h + row\n"
           "    (a, a)\n"
           "  })\n"
           "}\n");
}

Test(format, type_parameters_and_functions_as_parameters)
{
    expect("type List[ a ]=Nil|Cons(a,List[a])\ndef map[a,b](l:List[a],f:fn (a)->b)->List[b]{Nil[f32[ ? ]]}",
           "type List[a] = Nil | Cons(a, List[a])\n"
           "def map[a, b](l: List[a], f: fn(a) -> b) -> List[b] { Nil[f32[?]] }\n");
}

Test(format, faulty_syntax_is_told_with_its_place)
{
    static const struct {
        const char *text, *error;
    } row[] = {{"def f(x: f32 -> f32 { x }", "p.tecp:1:14: error: expected ')', found '->'"},
               {"def f() -> f32 { let = 1 }", "p.tecp:1:22: error: expected a name or '(', found '='"},
               {"def f() -> f32 {\n  x", "expected '}', found the end of the text"},
               {"let x = 1", "p.tecp:1:1: error: expected 'type', 'param' or 'def', found 'let'"}};

    for (int i = 0; i < BASE_COUNT(row); i++) {
        cr_assert_null(lang_format(cx, "p.tecp", row[i].text));
        cr_assert(strstr(tec_context_error(cx), row[i].error), "%s", tec_context_error(cx));
        tec_context_clear(cx);
    }
    base_text deep = {0};
    base_add(cx, &deep, "def f() -> f32 { ");
    for (int i = 0; i < 100000; i++)
        base_add(cx, &deep, "(");
    cr_assert_null(lang_format(cx, "p.tecp", base_text_str(cx, &deep)));
    cr_assert(strstr(tec_context_error(cx), "nest deeper than 200"));
}

/* The layout is stable and becomes the same graph. */
static void check_program(const char *path)
{
    size_t size;
    const char *text = base_read_file(cx, path, &size), *once = formatted(text);

    cr_assert_str_eq(formatted(once), once, "%s", path);
    const graph_module *before = lang_parse(cx, path, text, lang_params_zero(cx)),
                       *after = lang_parse(cx, path, once, lang_params_zero(cx));
    cr_assert(before && after, "%s: %s", path, tec_context_error(cx));
    cr_assert_str_eq(graph_text(cx, before, 0), graph_text(cx, after, 0), "%s", path);
}

Test(format, programs_of_the_repository_keep_their_meaning)
{
    DIR *dir = opendir("bench/programs");
    int n = 0;

    cr_assert(dir, "tests run in the root of the repository");
    for (const struct dirent *file; (file = readdir(dir));)
        if (base_ends_with(file->d_name, ".tecp")) {
            check_program(base_format(cx, "bench/programs/%s", file->d_name));
            n++;
        }
    closedir(dir);
    cr_assert_geq(n, 4);
}

Test(format, the_public_function_formats_a_text)
{
    const char *text = tec_graph_format_program(cx, NULL, "def main(c:bool)->bool{c}");

    cr_assert_str_eq(text, "def main(c: bool) -> bool { c }\n");
    cr_assert_null(tec_graph_format_program(cx, "p", NULL));
}
