/* tests/graph/inline.c -- which calls become the nodes of the function that they call. */
#include "tests/graph/kit.h"

TestSuite(inline, .init = open_context, .fini = close_context);

static graph_module *inlined(const char *functions)
{
    graph_module *m = graph_inline(parsed(base_format(cx, "graph \"g\" {\n%s}\n", functions)), any_target());

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert(graph_verify(m), "%s\n%s", tec_context_error(cx), graph_text(cx, m, 0));
    return m;
}

static int calls_in(const graph_module *module)
{
    const graph_body *body = main_body(module);
    int n = 0;

    for (int i = 0; i < body->nodes.n; i++)
        n += ((const graph_node *)body->nodes.at[i])->kind == GRAPH_CALL;
    return n;
}

#define MAIN(call, more)                                                                                     \
    "function \"main\" {\ninput v0 \"x\": f32[4]\ninput v1 \"y\": f32[4]\n" call more "output \"z\" v3\n}\n"
#define CALL "v2: f32[4] = call \"sub\" \"c\"(v1, v0)\n"
#define NEG "v3: f32[4] = op neg \"n\"(v2)\n"
#define SUB                                                                                                  \
    "function \"sub\" {\ninput v4 \"a\": f32[4]\ninput v5 \"b\": f32[4]\n"                                   \
    "v6: f32[4] = op sub \"s\"(v4, v5)\noutput \"r\" v6\n}\n"

/* Operands take the places of parameters in their order, and the function goes with its last call. */
Test(inline, a_call_becomes_the_nodes_of_the_function)
{
    graph_module *m = inlined(MAIN(CALL, NEG) SUB);
    const graph_body *body = main_body(m);
    const graph_node *sub = body->nodes.at[0], *neg = body->nodes.at[1];

    cr_assert_eq(m->functions.n, 1);
    cr_assert_eq(body->nodes.n, 2);
    cr_assert_eq(sub->in[0], body->inputs.at[1]);
    cr_assert_eq(sub->in[1], body->inputs.at[0]);
    cr_assert_eq(neg->in[0], sub->out[0]);
}

/* Each call has its own operands; the second one reads the result of the first. */
Test(inline, a_small_function_takes_the_places_of_all_calls)
{
    graph_module *m = inlined(MAIN(CALL, "v3: f32[4] = call \"sub\" \"d\"(v2, v1)\n") SUB);
    const graph_body *body = main_body(m);
    const graph_node *first = body->nodes.at[0], *second = body->nodes.at[1];

    cr_assert_eq(m->functions.n, 1);
    cr_assert_eq(second->in[0], first->out[0]);
    cr_assert_eq(second->in[1], body->inputs.at[1]);
}

/* Its closure needs the function, which keeps its own parameters. */
Test(inline, a_function_that_is_a_value_as_well_stays)
{
    graph_module *m = inlined("function \"main\" {\ninput v0 \"x\": f32[4]\ninput v1 \"y\": f32[4]\n" CALL
                              "v7: fn(f32[4], f32[4]) -> (f32[4]) = closure \"sub\" \"f\"()\noutput \"z\" "
                              "v2\noutput \"f\" v7\n}\n" SUB);

    cr_assert_eq(m->functions.n, 2);
    cr_assert_eq(calls_in(m), 0);
    const graph_body *sub = ((const graph_function *)m->functions.at[1])->body;
    cr_assert_eq(((const graph_node *)sub->nodes.at[0])->in[0], sub->inputs.at[0]);
}

/* A function that calls, one with symbols of its own, and a large one with two calls. */
Test(inline, other_functions_stay)
{
    base_text large = {0};

    cr_assert_eq(calls_in(inlined(MAIN("v2: f32[4] = call \"again\" \"c\"(v1)\n",
                                       NEG) "function \"again\" {\ninput v4 \"a\": f32[4]\n"
                                            "v5: f32[4] = call \"again\" \"r\"(v4)\noutput \"r\" v5\n}\n")),
                 1);
    cr_assert_eq(calls_in(inlined(MAIN("v2: f32[4] = call \"any\" \"c\"(v1)\n",
                                       NEG) "function \"any\" {\nsymbols n\ninput v4 \"a\": f32[n]\n"
                                            "v5: f32[n] = op exp \"e\"(v4)\noutput \"r\" v5\n}\n")),
                 1);
    base_add(cx, &large, "function \"large\" {\ninput v4 \"a\": f32[4]\n");
    for (int i = 0; i < 33; i++)
        base_addf(cx, &large, "v%d: f32[4] = op exp \"e\"(v%d)\n", i + 5, i + 4);
    base_add(cx, &large, "output \"r\" v37\n}\n");
    cr_assert_eq(calls_in(inlined(base_format(cx, "%s%s",
                                              MAIN("v2: f32[4] = call \"large\" \"c\"(v1)\n",
                                                   "v3: f32[4] = call \"large\" \"d\"(v2)\n"),
                                              base_text_str(cx, &large)))),
                 2);
    cr_assert_eq(
        calls_in(inlined(base_format(cx, "%s%s", MAIN("v2: f32[4] = call \"large\" \"c\"(v1)\n", NEG),
                                     base_text_str(cx, &large)))),
        0);
}
