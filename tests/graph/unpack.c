/* tests/graph/unpack.c -- tuples that become several results, and those that stay tuples. */
#include "tests/graph/kit.h"

TestSuite(unpack, .init = open_context, .fini = close_context);

/* The module behind the pass, without the tuples that nobody uses any more. */
static const char *unpacked(const char *text)
{
    graph_module *m = graph_remove_dead(graph_unpack_tuples(parsed(text), any_target()), any_target());

    cr_assert(m && graph_verify(m), "%s", tec_context_error(cx));
    return flush_left(graph_text(cx, m, 0));
}

#define CONTAINS(text, part) cr_assert(strstr(text, part), "expected %s in\n%s", part, text)
#define LACKS(text, part) cr_assert(!strstr(text, part), "expected no %s in\n%s", part, text)

/* Calls `pair`, whose body is `body`, and takes its result apart. */
#define CALLS(use, body)                                                                                     \
    "graph \"g\" { function \"main\" { input v0: f32[4] input v9: bool[]\n"                                  \
    "v1: (f32[4], f32[4]) = call \"pair\" \"c\"(v0, v9)\n"                                                   \
    "v2: f32[4] = field \"a\"(v1) @index(0)\nv3: f32[4] = field \"b\"(v1) @index(1)\n"                       \
    "v4: f32[4] = op sub \"s\"(v2, v3)\noutput \"y\" v4\n" use "}\n"                                         \
    "function \"pair\" { input v10: f32[4] input v11: bool[]\n" body "}}"
#define TWO "v12: f32[4] = op neg \"n\"(v10)\nv13: (f32[4], f32[4]) = tuple \"t\"(v10, v12)\n"

Test(unpack, a_function_gives_the_parts)
{
    const char *text = unpacked(CALLS("", TWO "output \"r\" v13\n"));

    CONTAINS(text, "v2: f32[4], v3: f32[4] = call \"pair\" \"c\"(v0, v1)\n"
                   "v4: f32[4] = op sub \"s\"(v2, v3)\n");
    CONTAINS(text, "output \"r.0\" v5\n");
    LACKS(text, "tuple");
}

Test(unpack, a_tuple_that_is_used_as_a_whole_is_made_again)
{
    const char *text = unpacked(CALLS("output \"whole\" v1\n", TWO "output \"r\" v13\n"));

    CONTAINS(text, "v2: f32[4], v3: f32[4] = call \"pair\"");
    CONTAINS(text, "v4: (f32[4], f32[4]) = tuple \"tuple\"(v2, v3)\n");
    CONTAINS(text, "output \"whole\" v4\n");
}

/* The call in the last place stays the last, so that a recursion needs one frame. */
Test(unpack, regions_give_the_parts_and_calls_stay_last)
{
    const char *text = unpacked(
        CALLS("", "v14: (f32[4], f32[4]) = if \"i\"(v11) {\n"
                  "v15: f32[4] = op neg \"n\"(v10)\n"
                  "v16: (f32[4], f32[4]) = call \"pair\" \"again\"(v15, v11)\noutput v16\n"
                  "} {\nv17: (f32[4], f32[4]) = tuple \"t\"(v10, v10)\noutput v17\n}\noutput \"r\" v14\n"));

    CONTAINS(text, "= if \"i\"(v6) {\n");
    CONTAINS(text, "f32[4] = call \"pair\" \"again\"(v7, v6)\noutput v8\noutput v9\n} {\n"
                   "output v5\noutput v5\n}\n");
    LACKS(text, "tuple");
    LACKS(text, "field");
}

/* Readers of a function value know its type alone; a recursion through the entry has one convention. */
Test(unpack, entries_and_function_values_and_their_cycles_stay)
{
    const char *text = unpacked(CALLS("v5: fn(bool[]) -> ((f32[4], f32[4])) = closure \"pair\" \"f\"(v0)\n"
                                      "v6: (f32[4], f32[4]) = apply \"use\"(v5, v9)\noutput \"z\" v6\n",
                                      TWO "output \"r\" v13\n"));

    CONTAINS(text, "(f32[4], f32[4]) = call \"pair\"");
    text =
        unpacked("graph \"g\" { function \"main\" { input v0: f32[4] input v9: bool[]\n"
                 "v1: (f32[4], f32[4]) = call \"other\" \"c\"(v0, v9)\noutput \"y\" v1\n}\n"
                 "function \"other\" { input v10: f32[4] input v11: bool[]\n"
                 "v12: (f32[4], f32[4]) = if \"i\"(v11) {\n"
                 "v13: (f32[4], f32[4]) = call \"main\" \"back\"(v10, v11)\noutput v13\n"
                 "} {\nv14: (f32[4], f32[4]) = tuple \"t\"(v10, v10)\noutput v14\n}\noutput \"r\" v12\n}}");
    CONTAINS(text, "(f32[4], f32[4]) = call \"other\"");
    CONTAINS(text, "(f32[4], f32[4]) = call \"main\"");
}
