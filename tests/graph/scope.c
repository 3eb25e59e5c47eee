/* tests/graph/scope.c -- symbols and facts of functions and regions: what is visible, what is proven, and
 * what a call makes of it. */
#include "graph/scope.h"
#include "graph/build.h"
#include "tests/graph/kit.h"
#include "tests/plain.h"

TestSuite(scope, .init = open_context, .fini = close_context);

static void refuses(const char *text, const char *expected)
{
    cr_assert_null(graph_parse(cx, "g", text, NULL), "%s", text);
    cr_assert(strstr(plain(cx, tec_context_error(cx)), expected), "found: %s\nexpected: %s",
              tec_context_error(cx), expected);
    tec_context_clear(cx);
}

static void round_trips(const char *text)
{
    cr_assert_str_eq(graph_text(cx, parsed(text), 0), text);
}

#define MAIN(body) "graph \"g\" {\n  function \"main\" {\n" body "  }\n"
#define TWICE                                                                                                \
    "  function \"twice\" {\n    symbols k\n    fact 1 <= k\n    input v8: f32[k, 4]\n    v9: f32[k, 4] = "  \
    "op add \"sum\"(v8, v8)\n    output \"y\" v9\n  }\n}\n"

/* ---- calls ---- */

Test(scope, a_concrete_type_is_an_instance_of_a_symbolic_one)
{
    round_trips(MAIN(
        "    symbols n\n    input v0 \"x\": f32[7, 4]\n    input v1 \"z\": f32[n, 4]\n"
        "    v2: f32[7, 4] = call \"twice\" \"a\"(v0)\n    v3: f32[n, 4] = call \"twice\" \"b\"(v1)\n"
        "    output \"y\" v2\n    output \"w\" v3\n") "  function \"twice\" {\n    symbols k\n    fact 1 <= "
                                                      "k\n"
                                                      "    input v4: f32[k, 4]\n    v5: f32[k, 4] = op add "
                                                      "\"sum\"(v4, v4)\n    output \"y\" v5\n  }\n}\n");
}

Test(scope, a_call_gives_what_its_operands_tell)
{
    refuses(MAIN("input v0: f32[7, 4]\nv1: f32[8, 4] = call \"twice\" \"a\"(v0)\noutput \"y\" v1\n") TWICE,
            "g:4: error: 'a': result 0 is f32[7, 4], expected f32[8, 4]");
    refuses(MAIN("input v0: f32[7, 5]\nv1: f32[7, 5] = call \"twice\" \"a\"(v0)\noutput \"y\" v1\n") TWICE,
            "g:4: error: 'a': operand 0 is f32[7, 5], expected f32[7, 4]");
}

Test(scope, operands_of_one_call_agree_on_a_symbol)
{
    const char *both = "  function \"both\" {\nsymbols k\ninput v8: f32[k]\ninput v9: f32[k]\nv10: f32[k] = "
                       "op add \"s\"(v8, v9)\noutput \"y\" v10\n}\n}\n";

    refuses(base_format(cx, "%s%s",
                        MAIN("symbols n, m\ninput v0: f32[n]\ninput v1: f32[m]\nv2: f32[n] = call \"both\" "
                             "\"c\"(v0, v1)\noutput \"y\" v2\n"),
                        both),
            "'c': operand 1 is f32[m], expected f32[n]");
    parsed(base_format(cx, "%s%s",
                       MAIN("symbols n, m\nfact n == m\ninput v0: f32[n]\ninput v1: f32[m]\nv2: f32[n] = "
                            "call \"both\" \"c\"(v0, v1)\noutput \"y\" v2\n"),
                       both));
}

/* The callee's n and the caller's are one pointer here: n stands for n + 1 in the call, and still for n
 * outside. */
Test(scope, a_recursive_call_has_symbols_of_its_own)
{
    const char *text = "graph \"g\" {\n  function \"grow\" {\n    symbols n\n    input v0: f32[n]\n    v1: "
                       "f32[n + n] = op concat \"c\"(v0, v0) @axis(0)\n"
                       "    v2: f32[n + n] = call \"grow\" \"again\"(v1)\n    output \"y\" v0\n  }\n}\n";
    graph_module *m = parsed(text);
    const graph_node *call = main_body(m)->nodes.at[1];

    cr_assert_str_eq(op_type_text(cx, &call->out[0]->type), "f32[n + n]");
}

Test(scope, what_only_the_call_tells_is_a_fresh_symbol)
{
    const char *fresh = "  function \"pick\" {\nsymbols k\ninput v8: f32[2]\nv9: f32[2], v10: f32[k, 2] = "
                        "loop \"l\"(_, _, v8) {\ninput v5: i64[]\ninput v6: bool[]\n"
                        "input v7: f32[2]\noutput v6\noutput v7\noutput v7\n}\noutput \"y\" v10\n}\n}\n";

    parsed(base_format(
        cx, "%s%s",
        MAIN("symbols a\ninput v0: f32[2]\nv1: f32[a, 2] = call \"pick\" \"p\"(v0)\noutput \"y\" v1\n"),
        fresh));
    refuses(base_format(cx, "%s%s",
                        MAIN("input v0: f32[2]\nv1: f32[9, 2] = call \"pick\" \"p\"(v0)\noutput \"y\" v1\n"),
                        fresh),
            "'p': result 0 is f32[k, 2], expected f32[9, 2]");
    refuses(base_format(cx, "%s%s",
                        MAIN("symbols n\ninput v0: f32[2]\ninput v2: f32[n]\nv1: f32[n, 2] = call \"pick\" "
                             "\"p\"(v0)\noutput \"y\" v1\n"),
                        fresh),
            "'p': result 0 is f32[k, 2], expected f32[n, 2]");
    /* Two calls give two lengths. */
    refuses(base_format(cx, "%s%s",
                        MAIN("symbols a\ninput v0: f32[2]\nv1: f32[a, 2] = call \"pick\" \"p\"(v0)\nv2: "
                             "f32[a, 2] = call \"pick\" \"q\"(v0)\noutput \"y\" v1\n"),
                        fresh),
            "'q': result 0 is f32[k, 2], expected f32[a, 2]");
}

Test(scope, the_constructor_of_a_call_makes_that_symbol)
{
    graph_module *m = graph_new(cx, "g");
    graph_function *f = graph_function_new(m, "main"), *g = graph_function_new(m, "pick");
    const ir_expr *two = ir_int(cx, 2), *n = graph_symbol_in(m, g->body, "n");
    graph_value *p = graph_input(g, "p", (op_type){BASE_F32, 1, &n}), *in[] = {NULL, NULL, p};

    graph_region_open(g);
    graph_input(g, "i", (op_type){.dtype = BASE_I64});
    graph_value *go = graph_input(g, "go", (op_type){.dtype = BASE_BOOL}), *c = graph_input(g, "c", p->type);
    graph_output(g, NULL, go);
    graph_output(g, NULL, c);
    graph_output(g, NULL, c);
    graph_node *loop = graph_add_loop(g, "l", in, 3, graph_region_close(g));
    cr_assert(loop, "%s", tec_context_error(cx));
    graph_output(g, "y", loop->out[1]);
    graph_value *x = graph_input(f, "x", (op_type){BASE_F32, 1, &two});
    graph_node *call = graph_add_call(f, "pick", "c", &x, 1);
    cr_assert(call, "%s", tec_context_error(cx));
    cr_assert_str_eq(op_type_text(cx, &call->out[0]->type), "f32[d1, 2]");
    cr_assert_eq(call->n_symbols, 1);
    graph_output(f, "y", call->out[0]);
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
}

/* ---- facts ---- */

/* 'sum' relies on n == m, which only the first branch knows. */
Test(scope, a_fact_of_one_branch_does_not_leak)
{
    const char *text =
        MAIN("symbols n, m\ninput v0: bool[]\ninput v1: f32[n]\ninput v2: f32[m]\nv9: f32[n] = if \"i\"(v0) "
             "{\nfact n == m\n"
             "v3: f32[n] = op add \"sum\"(v1, v2)\noutput v3\n} {\n%s}\noutput \"y\" v9\n") "}\n";

    parsed(base_format(cx, text, "v4: f32[n] = op neg \"minus\"(v1)\noutput v4\n"));
    refuses(base_format(cx, text, "v4: f32[m] = op neg \"minus\"(v2)\noutput v4\n"),
            "'i': output of 'else' 0 is f32[m], expected f32[n]");
}

Test(scope, what_an_operator_relies_on_stays_in_its_branch)
{
    graph_module *m = graph_new(cx, "g");
    graph_function *f = graph_function_new(m, "main");
    const ir_expr *n = graph_symbol(m, "n"), *k = graph_symbol(m, "k");
    graph_value *c = graph_input(f, "c", (op_type){.dtype = BASE_BOOL}),
                *x = graph_input(f, "x", (op_type){BASE_F32, 1, &n}),
                *y = graph_input(f, "y", (op_type){BASE_F32, 1, &k});

    graph_region_open(f);
    graph_output(f, NULL,
                 GRAPH_ADD(f, "einsum", "dot", ((op_attr[]){op_attr_string("equation", "i,i->")}), 1, x, y));
    graph_body *then = graph_region_close(f);
    cr_assert_not(base_failed(cx), "%s", tec_context_error(cx));
    cr_assert(ir_prove_equal(graph_facts_in(m, then), n, k), "the branch knows what its operator needs");
    cr_assert_not(ir_prove_equal(graph_facts_in(m, f->body), n, k), "the body around the branch does not");
    graph_region_open(f);
    graph_output(f, NULL, GRAPH_ADD(f, "reduce_sum", "sum", ((op_attr[]){op_attr_int("keepdims", 0)}), 1, x));
    graph_node *node = graph_add_if(f, "i", c, then, graph_region_close(f));
    cr_assert(node, "%s", tec_context_error(cx));
    graph_output(f, "y", node->out[0]);
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
    cr_assert_eq(m->facts.n, 0);
    /* In the body of the entry the model itself demands it. */
    cr_assert(GRAPH_ADD(f, "einsum", "dot", ((op_attr[]){op_attr_string("equation", "i,i->")}), 1, x, y));
    cr_assert_eq(m->facts.n, 1);
}

Test(scope, an_operator_that_relies_on_no_fact_is_found)
{
    graph_module *m =
        parsed(MAIN("symbols n, m\ninput v0: f32[n]\ninput v1: f32[m]\nfact n == m\n"
                    "v2: f32[] = op einsum \"dot\"(v0, v1) @equation(\"i,i->\")\noutput \"y\" v2\n") "}\n");

    ((graph_function *)m->functions.at[0])->body->facts.n = 0;
    cr_assert_not(graph_verify(m));
    cr_assert(
        strstr(tec_context_error(cx), "node 'dot': its operator needs 'n == m', which is not a fact here"),
        "%s", tec_context_error(cx));
}

/* ---- loops ---- */

#define DECODE(result, step)                                                                                 \
    MAIN("symbols d\ninput v0: f32[1, 4]\ninput v1: i64[]\nv9: " result                                      \
         " = loop \"decode\"(v1, _, v0) {\nsymbols n\ninput v2: i64[]\n"                                     \
         "input v3: bool[]\ninput v4: f32[n, 4]\nv5: " step "\noutput v3\noutput v5\n}\noutput \"y\" v9\n")  \
    "}\n"

Test(scope, a_loop_may_carry_a_tensor_that_grows)
{
    parsed(DECODE("f32[d, 4]", "f32[n + 1, 4] = op concat \"c\"(v4, v0) @axis(0)"));
    refuses(DECODE("f32[1, 4]", "f32[n + 1, 4] = op concat \"c\"(v4, v0) @axis(0)"),
            "'decode': output 1 is f32[n + 1, 4], expected f32[1, 4]");
    refuses(DECODE("f32[d, 4]", "f32[n, 5] = op pad \"p\"(v4) @before([0, 0]) @after([0, 1])"),
            "'decode': output 1 is f32[n, 5], expected f32[n, 4]");
}

Test(scope, a_symbol_of_an_iteration_is_not_seen_behind_the_loop)
{
    refuses(DECODE("f32[n, 4]", "f32[n + 1, 4] = op concat \"c\"(v4, v0) @axis(0)"),
            "error: unknown variable 'n'");
}

/* ---- verification ---- */

Test(scope, a_symbol_without_a_value_is_found)
{
    refuses(MAIN("symbols n\ninput v0: f32[n * n]\noutput \"y\" v0\n") "}\n",
            "symbol 'n' in extent 'n * n' has no value yet");
    refuses(MAIN("symbols n, n\n") "}\n", "error: symbol 'n' is declared twice");
}

Test(scope, shadowing_is_refused_and_names_of_siblings_are_free)
{
    refuses("graph \"g\" {\n symbols n\n function \"main\" { symbols n } }",
            "g:3: error: symbol 'n' is declared twice");
    parsed("graph \"g\" { function \"main\" { symbols n input v0: f32[n] output \"y\" v0 } function \"f\" { "
           "symbols n input v1: f32[n] output \"y\" v1 } }");
}

/* ---- passes ---- */

Test(scope, passes_keep_scopes)
{
    const char *before = "graph \"g\" {\n  function \"main\" {\n    symbols d\n    input v0: f32[1, 4]\n    "
                         "input v1: i64[]\n    v9: f32[d, 4] = loop \"decode\"(v1, _, v0) {\n"
                         "symbols n\nfact n <= 64\ninput v2: i64[]\ninput v3: bool[]\ninput v4: f32[n, "
                         "4]\nv5: f32[n, 4] = op identity \"same\"(v4)\n"
                         "v6: f32[n + 1, 4] = op concat \"c\"(v5, v0) @axis(0)\noutput v3\noutput "
                         "v6\n}\noutput \"y\" v9\n}\n}\n";
    graph_module *m = graph_simplify(parsed(before), any_target());

    cr_assert(m && graph_verify(m), "%s", tec_context_error(cx));
    cr_assert(strstr(graph_text(cx, m, 0), "symbols n\n      fact n <= 64\n"), "%s", graph_text(cx, m, 0));
    cr_assert_null(strstr(graph_text(cx, m, 0), "identity"));
}

Test(scope, the_symbols_of_the_entry_are_the_static_graph_s)
{
    graph_module *m = parsed(MAIN("symbols n\nfact 2 <= n\ninput v0 \"x\": f32[n, 4]\nv1: f32[n, 4] = op neg "
                                  "\"a\"(v0)\noutput \"y\" v1\n") "}\n");
    graph_built *b = graph_build(m, &(graph_build_options){.target = any_target(), .jobs = 1});

    cr_assert(b, "%s", tec_context_error(cx));
    cr_assert_eq(b->planned->symbols.n, 1);
    cr_assert_eq(b->planned->facts.n, 1);
}
