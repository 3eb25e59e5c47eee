/* tests/graph/text.c -- the text form: what is printed parses back to the same text; what is wrong is
 * named. */
#include "tests/graph/kit.h"
#include "tests/plain.h"

TestSuite(text, .init = open_context, .fini = close_context);

static void round_trips(const char *text)
{
    const char *once = graph_text(cx, parsed(text), GRAPH_TEXT_FULL);

    cr_assert_str_eq(once, text, "expected:\n%s\nfound:\n%s", text, once);
}

Test(text, round_trips_a_function)
{
    round_trips("graph \"net\" {\n"
                "  symbols n, m\n"
                "  fact n >= 1\n"
                "  function \"main\" {\n"
                "    constant v0 \"w\": f32[4, 2] = [1.0, -2.5, 3.0, 7.460699e-14, 0.0, 1e+06, 7.0, "
                "bits(4286578688)]\n"
                "    input v1 \"x\": f32[n, 4]\n"
                "    input v2: f32[n, m] device 1\n"
                "    v3: f32[n, 2] = op matmul \"mm\"(v1, v0) impl \"matmul.packed\"\n"
                "    v4 \"y\": f32[n, 2] = op relu \"act\"(v3)\n"
                "    output \"result\" v4\n"
                "    output \"again\" v4\n"
                "  }\n"
                "}\n");
}

Test(text, round_trips_attributes_of_each_kind)
{
    round_trips(
        "graph \"net\" {\n"
        "  symbols n\n"
        "  function \"main\" {\n"
        "    input v0: f32[n, 4]\n"
        "    v1: f32[n * 4] = op reshape \"r\"(v0) @shape(exprs [n * 4])\n"
        "    v2: i32[n * 4] = op cast \"c\"(v1) @to(dtype i32)\n"
        "    v3: f32[n, 4] = op leaky_relu \"l\"(v0) @alpha(f64(0.25))\n"
        "    v4: f32[4, n] = op transpose \"t\"(v3) @perm([1, 0])\n"
        "    v5: f32[n, 6] = op pad \"p \\\"q\\\"\"(v0) @before([0, 1]) @after([0, 1]) @mode(\"edge\")\n"
        "    v6: f32[1, 4] = op reduce_sum \"s\"(v3) @axes([0]) @keepdims(1)\n"
        "    v7: f32[n, 4] = op clip \"k\"(v0, _, _)\n"
        "    output \"a\" v2\n"
        "    output \"b\" v4\n"
        "  }\n"
        "}\n");
}

Test(text, round_trips_control_flow_and_calls)
{
    round_trips("graph \"net\" {\n"
                "  symbols n\n"
                "  function \"main\" {\n"
                "    symbols d0\n"
                "    constant v0: f32[1] = [1.0]\n"
                "    input v1: bool[]\n"
                "    input v2: f32[n]\n"
                "    v5: f32[n] = if \"choose\"(v1) {\n"
                "      v3: f32[n] = op add \"one\"(v2, v0)\n"
                "      output v3\n"
                "    } {\n"
                "      v4: f32[n] = op neg \"minus\"(v2)\n"
                "      output v4\n"
                "    }\n"
                "    v10: f32[n], v11: f32[d0, n] = loop \"repeat\"(_, v1, v5) {\n"
                "      input v6: i64[]\n"
                "      input v7: bool[]\n"
                "      input v8: f32[n]\n"
                "      v9: f32[n] = call \"twice\" \"c\"(v8)\n"
                "      output v7\n"
                "      output v9\n"
                "      output v8\n"
                "    }\n"
                "    v15: f32[n], v16: f32[d0] = scan \"rows\"(v10, v11) @states(1) {\n"
                "      input v12: f32[n]\n"
                "      input v13: f32[n]\n"
                "      v14: f32[] = op reduce_sum \"total\"(v13) @keepdims(0)\n"
                "      output v12\n"
                "      output v14\n"
                "    }\n"
                "    output \"y\" v15\n"
                "    output \"z\" v16\n"
                "  }\n"
                "  function \"twice\" {\n"
                "    input v17: f32[n]\n"
                "    v18: f32[n] = op add \"a\"(v17, v17)\n"
                "    output \"y\" v18\n"
                "  }\n"
                "}\n");
}

Test(text, round_trips_constants_of_each_type)
{
    round_trips("graph \"net\" {\n"
                "  function \"main\" {\n"
                "    constant v0: f64[2] = [f64(0.1), bits(9221120237041090560)]\n"
                "    constant v1: f16[2] = [0.5, bits(31744)]\n"
                "    constant v2: i8[3] = [-128, 127, 0]\n"
                "    constant v3: u64[1] = [18446744073709551615]\n"
                "    constant v4: bool[2] = [1, 0]\n"
                "    constant v5: i64[] = [-9223372036854775807]\n"
                "    constant v6: f32[0] = []\n"
                "    output \"a\" v0\n"
                "    output \"b\" v1\n"
                "    output \"c\" v2\n"
                "    output \"d\" v3\n"
                "    output \"e\" v4\n"
                "    output \"f\" v5\n"
                "    output \"g\" v6\n"
                "  }\n"
                "}\n");
}

Test(text, large_constants_are_hashes_that_another_module_resolves)
{
    static float data[100] = {1, 2, 3};
    graph_module *m = graph_new(cx, "net");
    graph_function *f = graph_function_new(m, "main");
    const ir_expr *extent = ir_int(cx, 100);
    op_constant c = {.type = {BASE_F32, 1, &extent}, .data = data, .bytes = sizeof data};

    graph_output(f, "y", graph_constant(f, "w", &c));
    const char *text = graph_text(cx, m, 0);
    cr_assert(strstr(text, "constant v0 \"w\": f32[100] = hash \""), "%s", text);
    graph_module *same = graph_parse(cx, "net.graph", text, m);
    cr_assert(same, "%s", tec_context_error(cx));
    cr_assert_str_eq(graph_text(cx, same, 0), text);
    cr_assert_str_eq(graph_text(cx, parsed(graph_text(cx, m, GRAPH_TEXT_FULL)), GRAPH_TEXT_FULL),
                     graph_text(cx, m, GRAPH_TEXT_FULL));
    cr_assert_null(graph_parse(cx, "net.graph", text, NULL));
    cr_assert(
        strstr(plain(cx, tec_context_error(cx)),
               "net.graph:3: error: the module given to the parser has no constant f32[100] with hash \""),
        "%s", tec_context_error(cx));
}

Test(text, round_trips_what_every_pass_makes)
{
    graph_module *m = lines("constant v0 \"w\": f32[4, 3, 1, 1] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, "
                            "9.0, 10.0, 11.0, 12.0]\n"
                            "constant v1: f32[4] = [1.0, 2.0, 3.0, 4.0]\n"
                            "input v2 \"x\": f32[n, 3, 8, 8]\n"
                            "v3: f32[n, 4, 8, 8] = op conv \"c1\"(v2, v0, v1)\n"
                            "v4: f32[n, 4, 8, 8] = op batch_norm \"bn\"(v3, v1, v1, v1, v1)\n"
                            "v5: f32[n, 4, 8, 8] = op relu \"r\"(v4)\n"
                            "output \"y\" v5\n");

    for (int i = 0; i < graph_n_passes; i++) {
        m = graph_passes[i].run(m, any_target());
        cr_assert(m, "%s: %s", graph_passes[i].name, tec_context_error(cx));
        const char *text = graph_text(cx, m, GRAPH_TEXT_FULL);
        cr_assert(graph_verify(m), "%s: %s\n%s", graph_passes[i].name, tec_context_error(cx), text);
        graph_module *same = graph_parse(cx, "test.graph", text, NULL);
        cr_assert(same, "%s: %s\n%s", graph_passes[i].name, tec_context_error(cx), text);
        cr_assert_str_eq(graph_text(cx, same, GRAPH_TEXT_FULL), text);
    }
}

/* ---- errors ---- */

static void refuses(const char *text, const char *message)
{
    cr_assert_null(graph_parse(cx, "g", text, NULL), "%s", message);
    cr_assert_str_eq(plain(cx, tec_context_error(cx)), message);
    tec_context_clear(cx);
}

#define GRAPH(text) "graph \"g\" { symbols n function \"main\" {\n" text "\n} }"

Test(text, names_what_is_wrong)
{
    refuses(GRAPH("output \"y\" v0"), "g:2: error: there is no value 'v0' above this line");
    refuses(GRAPH("v0: f32[n] = op nothing \"a\"()"), "g:2: error: there is no operator 'nothing'");
    refuses(GRAPH("input v0: f32[n]\ninput v0: f32[n]"), "g:3: error: 'v0' is made twice");
    refuses(GRAPH("input v0: f32[n]\nv1: f32[3] = op relu \"a\"(v0)"),
            "g:3: error: result 0 of 'a' is f32[n], but the text says f32[3]");
    refuses(GRAPH("input v0: f32[n]\nv1: f32[n], v2: f32[n] = op relu \"a\"(v0)"),
            "g:3: error: 'a' gives 1 value, but the text names 2");
    refuses(GRAPH("input v0: f32[n]\nv1: f32[n] = op add \"a\"(v0, _)"),
            "g:3: error: operand 1 of 'add' is left out");
    refuses(GRAPH("input v0: f32[-1]"), "g:2: error: the extent -1 is negative");
    refuses(GRAPH("constant v0: f32[3] = [1.0]"),
            "g:2: error: the number of elements, 1, does not fit the type of the constant, f32[3]");
    refuses(GRAPH("constant v0: f32[n] = [1.0]"), "g:2: error: a constant cannot be f32[n]");
    refuses(GRAPH("input v0: f32[n]\nv1: f32[n] = op relu \"a\"(v0) impl \"fast\""),
            "g:3: error: operator 'relu' has no implementation 'fast'");
    refuses(GRAPH("input v0: f32[n]\nv1: f32[n] = call \"f\" \"a\"(v0)\noutput \"y\" v1"),
            "g:3: error: 'a' calls 'f', but there is no such function");
    refuses(GRAPH("input v0: f32[n]\nv1: f32[n] = maybe \"a\"(v0)"),
            "g:3: error: expected the kind of a node: op, group, call, if, loop, scan, tuple, match, pack, "
            "alloc_tensor, ..., found 'maybe'");
    refuses("graph \"g\" { symbols n, n }", "g:1: error: symbol 'n' is declared twice");
    refuses("graph \"g\" { symbols n fact n + 1 }",
            "g:1: error: expected a condition as a fact, found 'n + 1'");
    refuses("graph \"g\" { } x", "g:1: error: expected the end of the text, found 'x'");
}

/* Mutations of a good text never crash; they parse to a module that verifies or give an error. */
Test(text, survives_hostile_text)
{
    const char *good = graph_text(
        cx,
        parsed("graph \"net\" { symbols n fact n >= 1 function \"main\" {\n"
               "constant v0 \"w\": f32[2, 2] = [1.0, 2.0, 3.0, bits(7)]\n"
               "input v1 \"x\": f32[n, 2]\ninput v2: bool[]\n"
               "v3: f32[n, 2] = op matmul \"mm\"(v1, v0) @trans_b(1) impl \"matmul.packed\"\n"
               "v6: f32[n, 2] = if \"i\"(v2) {\nv4: f32[n, 2] = op clip \"k\"(v3, _, _)\noutput v4 }"
               "{ v5: f32[2, n] = op transpose \"t\"(v3) @perm([1, 0])\n v7: f32[n, 2] = op reshape "
               "\"r\"(v5) @shape(exprs [n, 2])\n"
               "output v7 }\noutput \"y\" v6 } }"),
        GRAPH_TEXT_FULL);
    static const char bits[] = "(){}[],:=@_v0129 \"n.-\n";
    uint64_t seed = 7;
    size_t size = strlen(good);

    for (int round = 0; round < 3000; round++) {
        tec_context *mine = tec_context_new();
        char *text = base_strdup(mine, good);
        int64_t edits = 1 + base_random_below(&seed, 4);

        for (int64_t e = 0; e < edits; e++) {
            size_t at = (size_t)base_random_below(&seed, (int64_t)size),
                   from = (size_t)base_random_below(&seed, (int64_t)size);

            if (base_random_below(&seed, 3) == 0)
                text[at] = '\0';
            else if (base_random_below(&seed, 2))
                text[at] = bits[base_random_below(&seed, (int64_t)sizeof bits - 1)];
            else
                memmove(text + at, text + from, size - (at > from ? at : from));
        }
        graph_module *m = graph_parse(mine, "hostile", text, NULL);
        cr_assert(m || tec_context_error(mine), "%s", text);
        cr_assert(tec_context_status(mine) != TEC_INTERNAL || strstr(tec_context_error(mine), "graph '"),
                  "%s\n%s", tec_context_error(mine), text);
        tec_context_free(mine);
    }
}

/* ---- documentation ---- */

/* The text between the next line "```graph" and its "```". */
static char *next_example(char **at)
{
    char *begin = strstr(*at, "\n```graph\n"), *end = begin ? strstr(begin + 10, "\n```\n") : NULL;

    if (!end)
        return NULL;
    *at = end + 4;
    return base_strndup(cx, begin + 10, (size_t)(end + 1 - begin - 10));
}

Test(text, the_examples_of_the_documentation_round_trip)
{
    size_t size;
    char *doc = base_read_file(cx, TEC_SOURCE_DIR "/docs/graph.md", &size), *example;
    int n = 0;

    cr_assert(doc, "%s", tec_context_error(cx));
    for (; (example = next_example(&doc)); n++)
        round_trips(example);
    cr_assert_eq(n, 5);
}
