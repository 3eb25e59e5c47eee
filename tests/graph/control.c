/* tests/graph/control.c -- nodes with regions: constructors, passes that go inside, and what refuses them. */
#include "graph/build.h"
#include "graph/plan.h"
#include "tests/graph/kit.h"

TestSuite(control, .init = open_context, .fini = close_context);

static graph_module *m;
static graph_function *f;
static const ir_expr *n;

static op_type vector(const ir_expr *extent)
{
    return (op_type){BASE_F32, 1, base_copy(cx, &extent, sizeof extent)};
}

static void open_graph(void)
{
    open_context();
    m = graph_new(cx, "g");
    f = graph_function_new(m, "main");
    n = graph_symbol(m, "n");
}

TestSuite(building, .init = open_graph, .fini = close_context);

static graph_body *branch(graph_value *x, const char *op)
{
    graph_region_open(f);
    graph_output(f, "y", GRAPH_ADD(f, op, op, NULL, 0, x));
    return graph_region_close(f);
}

Test(building, an_if_has_the_outputs_of_its_branches)
{
    graph_value *c = graph_input(f, "c", (op_type){.dtype = BASE_BOOL}), *x = graph_input(f, "x", vector(n));
    graph_body *then = branch(x, "neg"), *otherwise = branch(x, "relu");
    graph_node *node = graph_add_if(f, "choose", c, then, otherwise);

    cr_assert(node, "%s", tec_context_error(cx));
    graph_output(f, "y", node->out[0]);
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
    cr_assert_eq(f->body->nodes.n, 1);
    cr_assert_eq(then->outer, f->body);
}

Test(building, an_if_of_branches_of_two_extents_has_an_extent_of_its_own)
{
    graph_value *c = graph_input(f, "c", (op_type){.dtype = BASE_BOOL}), *x = graph_input(f, "x", vector(n)),
                *y = graph_input(f, "y", vector(ir_int(cx, 3)));
    graph_node *same = graph_add_if(f, "same", c, branch(x, "neg"), branch(x, "relu"));
    graph_node *either = graph_add_if(f, "either", c, branch(x, "neg"), branch(y, "relu"));

    cr_assert(same && either, "%s", tec_context_error(cx));
    cr_expect_eq(same->n_symbols, 0);
    cr_expect_eq(same->out[0]->type.dim[0], n);
    cr_assert_eq(either->n_symbols, 1);
    cr_expect_eq(either->out[0]->type.dim[0], either->symbol[0]);
}

/* A region with the outputs `first` and `second`. */
static graph_body *pair(graph_value *first, graph_value *second)
{
    graph_region_open(f);
    graph_output(f, "a", first);
    graph_output(f, "b", second);
    return graph_region_close(f);
}

/* `first` twice after one branch, `second` and `third` after the other: the two extents of the results. */
static void share(graph_value *c, graph_value *first, graph_value *second, graph_value *third,
                  const ir_expr *extent[2], int n_symbols)
{
    graph_node *node = graph_add_if(f, "choose", c, pair(first, first), pair(second, third));

    cr_assert(node, "%s", tec_context_error(cx));
    cr_expect_eq(node->n_symbols, n_symbols);
    for (int k = 0; k < 2; k++)
        extent[k] = node->out[k]->type.dim[0];
    graph_output(f, base_format(cx, "y%d", f->body->outputs.n), node->out[0]);
}

/* The extent of x stands in the types of the inputs; that of z only the run tells. */
Test(building, results_of_an_if_share_an_extent_where_both_branches_do)
{
    graph_value *c = graph_input(f, "c", (op_type){.dtype = BASE_BOOL}), *x = graph_input(f, "x", vector(n)),
                *y = graph_input(f, "y", vector(ir_int(cx, 3)));
    graph_node *node = graph_add_if(f, "either", c, branch(x, "neg"), branch(y, "neg"));
    graph_value *z = node->out[0];
    const ir_expr *extent[2];

    share(c, x, y, y, extent, 1);
    cr_expect_eq(extent[0], extent[1]);
    share(c, z, y, y, extent, 1);
    cr_expect_eq(extent[0], extent[1]);
    share(c, z, y, x, extent, 2);
    cr_expect_neq(extent[0], extent[1]);
    share(c, x, y, x, extent, 1);
    cr_expect_neq(extent[0], n);
    cr_expect_eq(extent[1], n);
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
}

/* The same of extents that only the branches know. */
Test(building, results_of_an_if_share_an_extent_of_the_branches)
{
    graph_value *c = graph_input(f, "c", (op_type){.dtype = BASE_BOOL}), *x = graph_input(f, "x", vector(n)),
                *y = graph_input(f, "y", vector(ir_int(cx, 3)));
    const ir_expr *told[2];

    for (int others = 0; others < 2; others++) {
        graph_body *body[2];

        for (int b = 0; b < 2; b++) {
            graph_region_open(f);
            graph_value *z = graph_add_if(f, "either", c, branch(x, "neg"), branch(y, "neg"))->out[0];
            graph_output(f, "a", z);
            graph_output(f, "b", b && others ? y : z);
            body[b] = graph_region_close(f);
        }
        graph_node *node = graph_add_if(f, "choose", c, body[0], body[1]);
        cr_assert(node, "%s", tec_context_error(cx));
        cr_expect_eq(node->n_symbols, others ? 2 : 1);
        for (int k = 0; k < 2; k++)
            told[k] = node->out[k]->type.dim[0];
        cr_expect_eq(told[0] == told[1], !others);
        graph_output(f, base_format(cx, "y%d", others), node->out[0]);
    }
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
}

Test(building, an_if_refuses_branches_of_two_ranks)
{
    graph_value *c = graph_input(f, "c", (op_type){.dtype = BASE_BOOL}), *x = graph_input(f, "x", vector(n)),
                *y = graph_input(f, "y", (op_type){.dtype = BASE_F32});

    cr_assert_null(graph_add_if(f, "choose", c, branch(x, "neg"), branch(y, "relu")));
    cr_assert_str_eq(tec_context_error(cx), "error: 'choose': output of 'else' 0 is f32[], expected f32[n]");
    tec_context_clear(cx);
    cr_assert_null(graph_add_if(f, "choose", x, branch(x, "neg"), branch(x, "relu")));
    cr_assert_str_eq(tec_context_error(cx), "error: 'choose': operand 0 is f32[n], expected bool[]");
}

static graph_body *loop_body(op_type carried)
{
    graph_region_open(f);
    graph_input(f, "i", (op_type){.dtype = BASE_I64});
    graph_value *go = graph_input(f, "go", (op_type){.dtype = BASE_BOOL}), *x = graph_input(f, "x", carried);
    graph_value *y = GRAPH_ADD(f, "neg", "neg", NULL, 0, x);
    graph_output(f, NULL, go);
    graph_output(f, NULL, y);
    graph_output(f, NULL, x);
    return graph_region_close(f);
}

Test(building, a_loop_carries_and_collects)
{
    graph_value *x = graph_input(f, "x", vector(n)), *in[] = {NULL, NULL, x};
    graph_node *node = graph_add_loop(f, "repeat", in, 3, loop_body(vector(n)));

    cr_assert(node, "%s", tec_context_error(cx));
    cr_assert_str_eq(op_type_text(cx, &node->out[0]->type), "f32[n]");
    cr_assert_str_eq(op_type_text(cx, &node->out[1]->type), "f32[d0, n]");
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
    cr_assert_null(graph_add_loop(f, "repeat", in, 3, loop_body(vector(ir_add(cx, n, ir_int(cx, 1))))));
    cr_assert_str_eq(tec_context_error(cx), "error: 'repeat': operand 2 is f32[n], expected f32[n + 1]");
}

Test(building, a_scan_runs_over_the_first_dimension)
{
    op_type rows = {BASE_F32, 2, (const ir_expr *const[]){n, ir_int(cx, 5)}};
    graph_value *x = graph_input(f, "x", rows), *s = graph_input(f, "s", vector(ir_int(cx, 5))),
                *in[] = {s, x};

    graph_region_open(f);
    graph_value *state = graph_input(f, "s", vector(ir_int(cx, 5))),
                *row = graph_input(f, "row", vector(ir_int(cx, 5)));
    graph_value *sum = GRAPH_ADD(f, "add", "add", NULL, 0, state, row);
    graph_output(f, NULL, sum);
    graph_output(f, NULL, sum);
    graph_node *node = graph_add_scan(f, "sums", in, 2, 1, graph_region_close(f));

    cr_assert(node, "%s", tec_context_error(cx));
    cr_assert_str_eq(op_type_text(cx, &node->out[1]->type), "f32[n, 5]");
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
}

Test(building, a_call_names_a_function_that_exists)
{
    graph_function *g = graph_function_new(m, "twice");
    graph_value *p = graph_input(g, "p", vector(n));
    graph_output(g, "q", GRAPH_ADD(g, "add", "add", NULL, 0, p, p));
    graph_value *x = graph_input(f, "x", vector(n)),
                *y = graph_input(f, "y", vector(ir_add(cx, n, ir_int(cx, 3))));
    graph_node *node = graph_add_call(f, "twice", "c", &x, 1);

    cr_assert(node, "%s", tec_context_error(cx));
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
    cr_assert_null(graph_add_call(f, "thrice", "c", &x, 1));
    cr_assert_str_eq(tec_context_error(cx), "error: 'c' calls 'thrice', but there is no such function");
    tec_context_clear(cx);
    cr_assert_null(graph_add_call(f, "twice", "c", &y, 1));
    cr_assert_str_eq(tec_context_error(cx), "error: 'c': operand 0 is f32[n + 3], expected f32[n]");
}

/* ---- verification ---- */

Test(building, a_value_of_a_region_is_not_used_outside)
{
    graph_value *x = graph_input(f, "x", vector(n)), *c = graph_input(f, "c", (op_type){.dtype = BASE_BOOL});
    graph_body *then = branch(x, "neg");
    graph_node *node = graph_add_if(f, "choose", c, then, branch(x, "relu"));

    cr_assert(node);
    graph_output(f, "y", then->outputs.at[0]);
    cr_assert_not(graph_verify(m));
    cr_assert_str_eq(tec_context_error(cx),
                     "error: graph 'g', function 'main': output 0 (f32[n]) is not made before it is used");
}

Test(building, a_type_that_no_operator_gives_is_found)
{
    graph_value *x = graph_input(f, "x", vector(n)), *y = GRAPH_ADD(f, "neg", "minus", NULL, 0, x);

    y->type = vector(ir_int(cx, 3));
    graph_output(f, "y", y);
    cr_assert_not(graph_verify(m));
    cr_assert_str_eq(
        tec_context_error(cx),
        "error: graph 'g', function 'main', node 'minus': output 0 is f32[3], its operator gives f32[n]");
}

Test(building, an_order_that_uses_before_it_makes_is_found)
{
    graph_value *x = graph_input(f, "x", vector(n)), *y = GRAPH_ADD(f, "neg", "a", NULL, 0, x),
                *z = GRAPH_ADD(f, "neg", "b", NULL, 0, y);
    void *first = f->body->nodes.at[0];

    graph_output(f, "z", z);
    f->body->nodes.at[0] = f->body->nodes.at[1];
    f->body->nodes.at[1] = first;
    cr_assert_not(graph_verify(m));
    cr_assert_str_eq(
        tec_context_error(cx),
        "error: graph 'g', function 'main', node 'b': operand 0 (f32[n]) is not made before it is used");
}

Test(building, an_extent_of_another_module_is_found)
{
    graph_output(f, "y", graph_input(f, "x", vector(ir_var(cx, "k", BASE_I64))));
    cr_assert_not(graph_verify(m));
    cr_assert_str_eq(tec_context_error(cx), "error: graph 'g', function 'main': 'k' in extent 'k' is not a "
                                            "symbol of the module, the function or a region around it");
}

/* ---- passes ---- */

#define IF(then, otherwise)                                                                                  \
    "input v0: bool[]\ninput v1: f32[n, m]\nv9: f32[n, m] = if \"i\"(v0) {\n" then "} {\n" otherwise         \
    "}\noutput \"y\" v9\n"
#define KEEP "v8: f32[n, m] = op neg \"b\"(v1)\noutput v8\n"

Test(control, a_pass_rewrites_inside_a_region)
{
    becomes(
        graph_simplify,
        IF("v2: f32[m, n] = op transpose \"s\"(v1) @perm([1, 0])\nv3: f32[n, m] = op transpose \"t\"(v2) "
           "@perm([1, 0])\n"
           "v4: f32[n, m] = op relu \"a\"(v3)\noutput v4\n",
           KEEP),
        "input v0: bool[]\ninput v1: f32[n, m]\nv5: f32[n, m] = if \"i\"(v0) {\n"
        "v2: f32[m, n] = op transpose \"s\"(v1) @perm([1, 0])\nv3: f32[n, m] = op relu \"a\"(v1)\noutput v3\n"
        "} {\nv4: f32[n, m] = op neg \"b\"(v1)\noutput v4\n}\noutput \"y\" v5\n");
}

Test(control, dead_nodes_go_from_regions_too)
{
    becomes(graph_remove_dead,
            IF("v2: f32[n, m] = op neg \"dead\"(v1)\nv3: f32[n, m] = op relu \"a\"(v1)\noutput v3\n", KEEP),
            "input v0: bool[]\ninput v1: f32[n, m]\nv4: f32[n, m] = if \"i\"(v0) {\nv2: f32[n, m] = op relu "
            "\"a\"(v1)\noutput v2\n"
            "} {\nv3: f32[n, m] = op neg \"b\"(v1)\noutput v3\n}\noutput \"y\" v4\n");
}

Test(control, common_expressions_of_two_branches_stay_two)
{
    keeps(graph_share_common, IF("v2: f32[n, m] = op neg \"a\"(v1)\noutput v2\n", KEEP));
}

Test(control, fusion_groups_inside_a_region_and_not_across)
{
    becomes(graph_fuse,
            "input v0: bool[]\ninput v1: f32[n]\nv2: f32[n] = op neg \"outside\"(v1)\nv9: f32[n] = if "
            "\"i\"(v0) {\n"
            "v3: f32[n] = op relu \"a\"(v2)\nv4: f32[n] = op neg \"b\"(v3)\noutput v4\n} {\nv5: f32[n] = op "
            "exp \"c\"(v1)\noutput v5\n}\noutput \"y\" v9\n",
            "input v0: bool[]\ninput v1: f32[n]\nv2: f32[n] = op neg \"outside\"(v1)\nv8: f32[n] = if "
            "\"i\"(v0) {\n"
            "v6: f32[n] = group \"a+b\"(v2) {\ninput v3: f32[n]\nv4: f32[n] = op relu \"a\"(v3)\nv5: f32[n] "
            "= op neg \"b\"(v4)\noutput v5\n}\n"
            "output v6\n} {\nv7: f32[n] = op exp \"c\"(v1)\noutput v7\n}\noutput \"y\" v8\n");
}

Test(control, a_static_plan_refuses_control_flow_by_name)
{
    graph_module *g = lines(IF("v2: f32[n, m] = op relu \"a\"(v1)\noutput v2\n", KEEP));
    graph_plan p;

    cr_assert_not(graph_plan_memory(g, main_body(g), &p));
    cr_assert_eq(tec_context_status(cx), TEC_UNSUPPORTED);
    cr_assert(
        strstr(tec_context_error(cx), "error: 'i': expected a static graph, found control flow or a call"),
        "%s", tec_context_error(cx));
}

Test(control, a_module_with_control_flow_becomes_a_program)
{
    graph_module *g = lines(IF("v2: f32[n, m] = op relu \"a\"(v1)\noutput v2\n", KEEP));
    graph_built *b = graph_build(g, &(graph_build_options){.target = any_target()});

    cr_assert(b, "%s", tec_context_error(cx));
    cr_assert_eq(b->desc.n_graphs, 0);
    cr_assert_eq(b->desc.program.n_functions, 1);
}
