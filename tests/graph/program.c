/* tests/graph/program.c -- values that are no tensors and the nodes for them: text, rules, passes. */
#include "graph/program.h"
#include "graph/build.h"
#include "graph/plan.h"
#include "graph/scope.h"
#include "tests/graph/kit.h"

TestSuite(program, .init = open_context, .fini = close_context);

static void refuses(const char *text, const char *expected)
{
    cr_assert_null(graph_parse(cx, "g", text, NULL), "%s", text);
    cr_assert(strstr(tec_context_error(cx), expected), "found: %s\nexpected: %s", tec_context_error(cx),
              expected);
    tec_context_clear(cx);
}

/* The sum of all leaves of a tree, by recursion; the height of each tree is another. */
#define TREE                                                                                                 \
    "graph \"g\" {\n"                                                                                        \
    "  data \"Tree\" {\n"                                                                                    \
    "    case \"Leaf\" (f32[4])\n"                                                                           \
    "    case \"Node\" (\"Tree\", \"Tree\")\n"                                                               \
    "  }\n"                                                                                                  \
    "  function \"main\" {\n"                                                                                \
    "    input v0 \"t\": \"Tree\"\n"                                                                         \
    "    v8: f32[4] = match \"which\"(v0) {\n"                                                               \
    "      input v1 \"x\": f32[4]\n"                                                                         \
    "      output v1\n"                                                                                      \
    "    } {\n"                                                                                              \
    "      input v2 \"l\": \"Tree\"\n"                                                                       \
    "      input v3 \"r\": \"Tree\"\n"                                                                       \
    "      v4: f32[4] = call \"main\" \"left\"(v2)\n"                                                        \
    "      v5: f32[4] = call \"main\" \"right\"(v3)\n"                                                       \
    "      v6: f32[4] = op add \"sum\"(v4, v5)\n"                                                            \
    "      v7: f32[4] = op identity \"same\"(v6)\n"                                                          \
    "      output v7\n"                                                                                      \
    "    }\n"                                                                                                \
    "    output \"y\" v8\n"                                                                                  \
    "  }\n"                                                                                                  \
    "}\n"

#define ALL                                                                                                  \
    "graph \"g\" {\n"                                                                                        \
    "  data \"Seq\" {\n"                                                                                     \
    "    case \"Nil\" ()\n"                                                                                  \
    "    case \"Cons\" over k (f32[k, 2], (\"Seq\", i64[]))\n"                                               \
    "  }\n"                                                                                                  \
    "  function \"main\" {\n"                                                                                \
    "    symbols n, d\n"                                                                                     \
    "    input v0 \"x\": f32[n, 2]\n"                                                                        \
    "    input v1 \"i\": i64[]\n"                                                                            \
    "    input v2 \"c\": bool[]\n"                                                                           \
    "    v3: \"Seq\" = construct \"Nil\" \"nil\"()\n"                                                        \
    "    v4: (\"Seq\", i64[]) = tuple \"pair\"(v3, v1)\n"                                                    \
    "    v5: \"Seq\" = construct \"Cons\" \"cons\"(v0, v4)\n"                                                \
    "    v6: \"Seq\" = field \"first\"(v4) @index(0)\n"                                                      \
    "    check \"sane\"(v2) @message(\"the condition must hold\")\n"                                         \
    "    v10: f32[d, 2] = match \"m\"(v5) {\n"                                                               \
    "      output v0\n"                                                                                      \
    "    } {\n"                                                                                              \
    "      symbols a\n"                                                                                      \
    "      input v7: f32[a, 2]\n"                                                                            \
    "      input v8: (\"Seq\", i64[])\n"                                                                     \
    "      v9: f32[a + n, 2] = op concat \"both\"(v7, v0) @axis(0)\n"                                        \
    "      output v9\n"                                                                                      \
    "    }\n"                                                                                                \
    "    v11: fn(f32[n, 2]) -> (f32[n, 2]) = closure \"scale\" \"f\"(v0)\n"                                  \
    "    v12: f32[n, 2] = apply \"use\"(v11, v0)\n"                                                          \
    "    output \"y\" v10\n"                                                                                 \
    "    output \"z\" v12\n"                                                                                 \
    "    output \"s\" v6\n"                                                                                  \
    "  }\n"                                                                                                  \
    "  function \"scale\" {\n"                                                                               \
    "    symbols p\n"                                                                                        \
    "    input v13: f32[p, 2]\n"                                                                             \
    "    input v14: f32[p, 2]\n"                                                                             \
    "    v15: f32[p, 2] = op mul \"m\"(v13, v14)\n"                                                          \
    "    output \"y\" v15\n"                                                                                 \
    "  }\n"                                                                                                  \
    "}\n"

Test(program, texts_round_trip)
{
    cr_assert_str_eq(graph_text(cx, parsed(TREE), 0), TREE);
    cr_assert_str_eq(graph_text(cx, parsed(ALL), 0), ALL);
}

/* `text` with the first `old` replaced. */
static const char *with(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);

    cr_assert(at, "%s is not in the text", old);
    return base_format(cx, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
}

Test(program, types_of_nodes_are_held_against_each_other)
{
    refuses(with(ALL, "(v0, v4)", "(v4, v0)"), "'cons': operand 0 is (\"Seq\", i64[]), expected f32[k, 2]");
    refuses(with(ALL, "@index(0)", "@index(2)"),
            "'first': operand 0 is (\"Seq\", i64[]), expected a tuple that has the part @index");
    refuses(with(ALL, "v6: \"Seq\"", "v6: i64[]"), "'first': result 0 is i64[], expected \"Seq\"");
    refuses(with(ALL, "construct \"Nil\"", "construct \"Nul\""),
            "'nil': data type 'Seq' has no constructor 'Nul'");
    refuses(with(ALL, "check \"sane\"(v2)", "check \"sane\"(v1)"),
            "'sane': operand 0 is i64[], expected bool[]");
    refuses(with(ALL, "closure \"scale\"", "closure \"scales\""), "'f': there is no function 'scales'");
    refuses(with(ALL, "apply \"use\"(v11, v0)", "apply \"use\"(v0, v0)"),
            "'use': operand 0 is f32[n, 2], expected a function");
    refuses(with(ALL, "apply \"use\"(v11, v0)", "apply \"use\"(v11)"), "'use' has 0 operands, expected 1");
    refuses(with(ALL, "apply \"use\"(v11, v0)", "apply \"use\"(v11, v10)"),
            "'use': operand 1 is f32[d, 2], expected f32[n, 2]");
    refuses(with(ALL, "v11: fn(f32[n, 2])", "v11: fn(f32[d, 2])"),
            "'f': parameter 1 is f32[d, 2], expected f32[n, 2]");
    refuses(with(TREE, "input v1 \"x\": f32[4]", "input v1 \"x\": f32[5]"),
            "'which': field of 'Leaf' 0 is f32[4], expected f32[5]");
    refuses(with(TREE, "(\"Tree\", \"Tree\")", "(\"Tree\")"), "'which' has 2 inputs of 'Node', expected 1");
    refuses(with(TREE, "(\"Tree\", \"Tree\")", "(\"Tree\", \"Bush\")"), "there is no data type 'Bush'");
    refuses(with(TREE, "op add \"sum\"(v4, v5)", "op add \"sum\"(v4, v3)"),
            "add 'sum': expected a tensor as operand 1, found \"Tree\"");
}

/* Which extent a field has, only the value knows. */
Test(program, a_field_of_unknown_extent_is_opened_by_match)
{
    refuses(with(with(ALL, "input v7: f32[a, 2]", "input v7: f32[n, 2]"), "f32[a + n, 2]", "f32[n + n, 2]"),
            "'m': field of 'Cons' 0 is f32[k, 2], expected f32[n, 2]");
    refuses(with(ALL, "v10: f32[d, 2]", "v10: f32[n, 2]"),
            "'m': output of 'Cons' 0 is f32[a + n, 2], expected f32[n, 2]");
}

Test(program, constructors_infer_the_types)
{
    graph_module *m = graph_new(cx, "g");
    graph_function *f = graph_function_new(m, "main");
    const ir_expr *four = ir_int(cx, 4);
    graph_type vector = graph_tensor_type(&(op_type){BASE_F32, 1, &four}), tree = graph_data_type("Tree"),
               both[] = {tree, tree};
    graph_data *d = graph_data_new(m, "Tree");

    graph_data_case(m, d, "Leaf", &vector, 1);
    graph_data_case(m, d, "Node", both, 2);
    graph_value *x = graph_typed_input(f, "x", &vector),
                *leaf = graph_add_construct(f, "Tree", "Leaf", "l", &x, 1);
    graph_value *node = graph_add_construct(f, "Tree", "Node", "n", (graph_value *[]){leaf, leaf}, 2);
    graph_value *pair = graph_add_tuple(f, "p", (graph_value *[]){x, node}, 2),
                *again = graph_add_field(f, "t", pair, 1);
    cr_assert(again, "%s", tec_context_error(cx));
    graph_region_open(f);
    graph_output(f, NULL, graph_typed_input(f, NULL, &vector));
    graph_body *first = graph_region_close(f);
    graph_region_open(f);
    graph_typed_input(f, NULL, &tree);
    graph_typed_input(f, NULL, &tree);
    graph_output(f, NULL, x);
    graph_node *match = graph_add_match(f, "m", again, (graph_body *[]){first, graph_region_close(f)}, 2);
    cr_assert(match, "%s", tec_context_error(cx));
    graph_output(f, "y", match->out[0]);
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
    cr_assert_null(graph_add_field(f, "t", pair, 2));
    cr_assert_str_eq(
        tec_context_error(cx),
        "error: 't': operand 0 is (f32[4], \"Tree\"), expected a tuple that has the part @index");
    tec_context_clear(cx);
    cr_assert_null(graph_add_field(f, "t", NULL, 0));
    cr_assert_not(base_failed(cx));
}

/* ---- passes ---- */

Test(program, passes_work_inside_of_match)
{
    graph_module *m = graph_optimise(parsed(TREE), any_target());

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
    cr_assert_null(strstr(graph_text(cx, m, 0), "identity"));
    m = graph_optimise(parsed(ALL), any_target());
    cr_assert(m && graph_verify(m), "%s", tec_context_error(cx));
    cr_assert(strstr(graph_text(cx, m, 0), "check \"sane\""),
              "nobody needs what a check gives, and the check stays");
}

Test(program, a_static_plan_refuses_program_nodes_by_name)
{
    graph_module *tree = parsed(TREE), *all = parsed(ALL);
    graph_plan p;

    cr_assert(!graph_plan_memory(tree, ((graph_function *)tree->functions.at[0])->body, &p));
    cr_assert(strstr(tec_context_error(cx),
                     "input 0 ('t') is not a tensor, so it cannot be an input of a static graph"),
              "%s", tec_context_error(cx));
    tec_context_clear(cx);
    cr_assert(!graph_plan_memory(all, ((graph_function *)all->functions.at[0])->body, &p));
    cr_assert(strstr(tec_context_error(cx), "'nil': expected a static graph, found control flow or a call"),
              "%s", tec_context_error(cx));
}

Test(program, all_nodes_of_programs_become_bytecode)
{
    const graph_build_options options = {.target = any_target(), .jobs = 1};
    graph_built *b = graph_build(parsed(TREE), &options);

    cr_assert(b && b->desc.program.n_functions == 1, "%s", tec_context_error(cx));
    b = graph_build(parsed(ALL), &options);
    cr_assert(b && b->desc.program.n_functions == 2, "%s", tec_context_error(cx));
    tec_error err = {0};
    tec_module *m = graph_load(b);
    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert(rt_module_check(&b->desc, &err), "%s", err.text);
    tec_module_free(m);
}
