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

/* A scan over v1 whose state is the pair of v0 with itself; `body` makes the pair v7 out of the state v3 and
 * the row v4. */
#define SCANS(body, use)                                                                                     \
    "graph \"g\" { function \"main\" { symbols n input v0: f32[4] input v1: f32[n, 4]\n"                     \
    "v2: (f32[4], f32[4]) = tuple \"t\"(v0, v0)\n"                                                           \
    "v8: (f32[4], f32[4]), v9: f32[n, 4] = scan \"s\"(v2, v1) @states(1) {\n"                                \
    "input v3 \"state\": (f32[4], f32[4])\ninput v4: f32[4]\n" body "output v7\noutput v4\n}\n" use "}}"
#define APART "v5: f32[4] = field \"a\"(v3) @index(0)\nv6: f32[4] = field \"b\"(v3) @index(1)\n"
#define SWAPPED APART "v7: (f32[4], f32[4]) = tuple \"t\"(v6, v5)\n"

Test(unpack, a_scan_carries_the_parts)
{
    const char *text = unpacked(SCANS(SWAPPED, "v10: f32[4] = field \"c\"(v8) @index(1)\noutput \"y\" v10\n"
                                               "output \"z\" v9\n"));

    CONTAINS(text, "v5: f32[4], v6: f32[4], v7: f32[n, 4] = scan \"s\"(v0, v0, v1) @states(2) {\n"
                   "input v2 \"state.0\": f32[4]\ninput v3 \"state.1\": f32[4]\ninput v4: f32[4]\n"
                   "output v3\noutput v2\noutput v4\n}\noutput \"y\" v6\noutput \"z\" v7\n");
    LACKS(text, "tuple");
    LACKS(text, "field");
}

/* The tuple behind a scan is made once, and not in each iteration. */
Test(unpack, a_carried_tuple_is_made_again_behind_the_scan)
{
    const char *text = unpacked(SCANS(SWAPPED, "output \"y\" v8\noutput \"z\" v9\n"));

    CONTAINS(text, "v8: (f32[4], f32[4]) = tuple \"tuple\"(v5, v6)\noutput \"y\" v8\n");
    CONTAINS(text, "@states(2)");
}

/* It would be made again in each iteration. */
Test(unpack, a_carried_tuple_that_the_body_needs_stays)
{
    const char *text = unpacked(SCANS(
        APART "v11: ((f32[4], f32[4]), f32[4]) = tuple \"u\"(v3, v6)\n"
              "v12: fn() -> (((f32[4], f32[4]), f32[4])) = closure \"hold\" \"f\"(v11)\n"
              "v13: ((f32[4], f32[4]), f32[4]) = apply \"g\"(v12)\n"
              "v14: f32[4] = field \"d\"(v13) @index(1)\nv7: (f32[4], f32[4]) = tuple \"t\"(v14, v5)\n",
        "output \"y\" v9\n}\nfunction \"hold\" { input v20: ((f32[4], f32[4]), f32[4])\noutput \"r\" v20\n"));

    CONTAINS(text, "@states(1)");
    CONTAINS(text, ": (f32[4], f32[4])\n");
}

/* Tuples that change places: one is needed as a whole, so the other is too, an iteration later. */
Test(unpack, carried_tuples_that_change_places_stay_together)
{
#define TURNS(inside)                                                                                        \
    "graph \"g\" { function \"main\" { input v0: f32[4] input v1: i64[]\n"                                   \
    "v2: (f32[4], f32[4]) = tuple \"t\"(v0, v0)\n"                                                           \
    "v7: (f32[4], f32[4]), v8: (f32[4], f32[4]) = loop \"l\"(v1, _, v2, v2) {\n"                             \
    "input v3: i64[]\ninput v4: bool[]\ninput v5: (f32[4], f32[4])\ninput v6: (f32[4], f32[4])\n" inside     \
    "output v4\noutput v6\noutput v5\n}\nv9: f32[4] = field \"a\"(v7) @index(0)\noutput \"y\" v9\n}\n"       \
    "function \"first\" { input v20: (f32[4], f32[4])\nv21: f32[4] = field \"a\"(v20) @index(0)\n"           \
    "output \"r\" v21\n}}"
    const char *text = unpacked(TURNS(""));

    CONTAINS(text, "= loop \"l\"(v1, _, v0, v0, v0, v0) {\n");
    CONTAINS(text, "output v3\noutput v6\noutput v7\noutput v4\noutput v5\n");
    LACKS(text, "tuple");
    text = unpacked(TURNS("v10: f32[4] = call \"first\" \"c\"(v5)\n"));
    CONTAINS(text, "= loop \"l\"(v1, _, v2, v2) {\n");
}

/* Each level by a round of its own; a branch that gives the state as it is does not keep it whole. */
Test(unpack, tuples_in_tuples_and_branches_are_carried_as_parts)
{
    const char *text = unpacked(
        "graph \"g\" { function \"main\" { symbols n input v0: f32[4] input v1: f32[n, 4] input v2: bool[]\n"
        "v3: (f32[4], f32[4]) = tuple \"t\"(v0, v0)\n"
        "v4: (bool[], (f32[4], f32[4])) = tuple \"u\"(v2, v3)\n"
        "v20: (bool[], (f32[4], f32[4])) = scan \"s\"(v4, v1) @states(1) {\n"
        "input v5: (bool[], (f32[4], f32[4]))\ninput v6: f32[4]\n"
        "v7: bool[] = field \"a\"(v5) @index(0)\n"
        "v8: (f32[4], f32[4]) = field \"b\"(v5) @index(1)\nv9: f32[4] = field \"c\"(v8) @index(0)\n"
        "v10: (bool[], (f32[4], f32[4])) = if \"i\"(v7) {\n"
        "v11: (f32[4], f32[4]) = tuple \"t\"(v6, v9)\n"
        "v12: (bool[], (f32[4], f32[4])) = tuple \"u\"(v7, v11)\noutput v12\n} {\noutput v5\n}\noutput "
        "v10\n}\n"
        "v21: (f32[4], f32[4]) = field \"d\"(v20) @index(1)\nv22: f32[4] = field \"e\"(v21) @index(1)\n"
        "output \"y\" v22\n}}");

    CONTAINS(text, "= scan \"s\"(v2, v0, v0, v1) @states(3) {\n");
    LACKS(text, "tuple");
    LACKS(text, "field");
}
