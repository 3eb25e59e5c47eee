/* tests/graph/passes.c -- each pass on a few lines of graph. */
#include "tests/graph/kit.h"

TestSuite(passes, .init = open_context, .fini = close_context);

/* ---- simplify ---- */

Test(passes, identities_and_casts_to_the_same_type_go)
{
    becomes(graph_simplify,
            "input v0: f32[n]\nv1: f32[n] = op identity \"i\"(v0)\nv2: f32[n] = op cast \"c\"(v1) @to(dtype "
            "f32)\nv3: f32[n] = op relu \"r\"(v2)\noutput \"y\" v3\n",
            "input v0: f32[n]\nv1: f32[n] = op relu \"r\"(v0)\noutput \"y\" v1\n");
}

Test(passes, chains_of_reshapes_become_one)
{
    becomes(
        graph_remove_dead,
        "input v0: f32[2, 6]\nv1: f32[12] = op reshape \"a\"(v0) @shape(exprs [12])\nv2: f32[2, 6] = op "
        "reshape \"b\"(v0) @shape(exprs [2, 6])\noutput \"y\" v2\n",
        "input v0: f32[2, 6]\nv1: f32[2, 6] = op reshape \"b\"(v0) @shape(exprs [2, 6])\noutput \"y\" v1\n");
    graph_module *m = graph_remove_dead(
        after(graph_simplify, "input v0: f32[2, 6]\nv1: f32[12] = op reshape \"a\"(v0) @shape(exprs [12])\n"
                              "v2: f32[3, 4] = op reshape \"b\"(v1) @shape(exprs [3, 4])\noutput \"y\" v2\n"),
        NULL);
    cr_assert_str_eq(
        flush_left(lines_of(m)),
        "input v0: f32[2, 6]\nv1: f32[3, 4] = op reshape \"b\"(v0) @shape(exprs [3, 4])\noutput \"y\" v1\n");
}

Test(passes, a_reshape_to_its_own_shape_goes)
{
    becomes(graph_simplify,
            "input v0: f32[n, 6]\nv1: f32[n, 6] = op reshape \"a\"(v0) @shape(exprs [n, 6])\nv2: f32[n, 6] = "
            "op neg \"b\"(v1)\noutput \"y\" v2\n",
            "input v0: f32[n, 6]\nv1: f32[n, 6] = op neg \"b\"(v0)\noutput \"y\" v1\n");
}

Test(passes, chains_of_transposes_compose)
{
    graph_module *m = graph_remove_dead(
        after(graph_simplify,
              "input v0: f32[2, 3, 4]\nv1: f32[3, 4, 2] = op transpose \"a\"(v0) @perm([1, 2, 0])\n"
              "v2: f32[4, 2, 3] = op transpose \"b\"(v1) @perm([1, 2, 0])\noutput \"y\" v2\n"),
        NULL);

    cr_assert_str_eq(flush_left(lines_of(m)), "input v0: f32[2, 3, 4]\nv1: f32[4, 2, 3] = op transpose "
                                              "\"b\"(v0) @perm([2, 0, 1])\noutput \"y\" v1\n");
}

Test(passes, simplify_leaves_alone_what_does_something)
{
    keeps(graph_simplify,
          "input v0: f32[n]\nv1: i32[n] = op cast \"c\"(v0) @to(dtype i32)\noutput \"y\" v1\n");
    keeps(graph_simplify,
          "input v0: f32[2, 3]\nv1: f32[3, 2] = op transpose \"c\"(v0) @perm([1, 0])\noutput \"y\" v1\n");
}

/* ---- common expressions, dead code ---- */

Test(passes, equal_operators_become_one_with_all_that_hangs_on_them)
{
    becomes(graph_share_common,
            "input v0: f32[n]\nv1: f32[n] = op neg \"a\"(v0)\nv2: f32[n] = op neg \"b\"(v0)\nv3: f32[n] = op "
            "relu \"c\"(v1)\nv4: f32[n] = op relu \"d\"(v2)\n"
            "v5: f32[n] = op add \"e\"(v3, v4)\noutput \"y\" v5\n",
            "input v0: f32[n]\nv1: f32[n] = op neg \"a\"(v0)\nv2: f32[n] = op relu \"c\"(v1)\nv3: f32[n] = "
            "op add \"e\"(v2, v2)\noutput \"y\" v3\n");
}

Test(passes, operators_that_differ_in_an_attribute_stay_two)
{
    keeps(graph_share_common, "input v0: f32[n]\nv1: f32[n] = op leaky_relu \"a\"(v0) @alpha(f64(0.5))\nv2: "
                              "f32[n] = op leaky_relu \"b\"(v0) @alpha(f64(0.25))\n"
                              "output \"y\" v1\noutput \"z\" v2\n");
}

/* Nobody reads the rows of `if`; how many there are is what the result has. */
Test(passes, a_node_stays_whose_symbols_alone_are_in_use)
{
    const graph_module *m = graph_remove_dead(
        parsed("graph \"g\" { function \"main\" { symbols n, d\ninput v0: bool[]\ninput v1: f32[n, 4]\n"
               "input v2: f32[4]\nv4: f32[d, 4] = if \"rows\"(v0) {\noutput v1 } {\n"
               "v3: f32[n + n, 4] = op concat \"twice\"(v1, v1) @axis(0)\noutput v3 }\n"
               "v5: f32[4] = op neg \"unused\"(v2)\n"
               "v6: f32[d, 4] = op expand \"y\"(v2) @shape(exprs [d, 4])\noutput \"y\" v6 } }"),
        NULL);

    cr_assert(m && graph_verify(m), "%s", tec_context_error(cx));
    cr_assert(strstr(graph_text(cx, m, 0), "if \"rows\""), "%s", graph_text(cx, m, 0));
    cr_assert_null(strstr(graph_text(cx, m, 0), "unused"));
}

Test(passes, nodes_that_no_output_needs_go)
{
    becomes(graph_remove_dead,
            "input v0: f32[n]\nv1: f32[n] = op neg \"a\"(v0)\nv2: f32[n] = op relu \"b\"(v1)\nv3: f32[n] = "
            "op exp \"c\"(v0)\noutput \"y\" v3\n",
            "input v0: f32[n]\nv1: f32[n] = op exp \"c\"(v0)\noutput \"y\" v1\n");
    keeps(graph_remove_dead, "input v0: f32[n]\nv1: f32[n] = op exp \"c\"(v0)\noutput \"y\" v1\n");
}

/* Functions with and without something that may stop the run, and their values: `apply` calls a function that
 * is only known when it runs. */
#define STOPPING                                                                                             \
    "function \"stops\" { input a0: bool[]\ninput a1: f32[3]\ncheck \"c\"(a0) @message(\"no\")\n"            \
    "output \"r\" a1 }\n"                                                                                    \
    "function \"counts\" { symbols k\ninput b0: i64[]\ninput b1: f32[3]\n"                                   \
    "extents \"e\"(b0) @symbols(exprs [k])\noutput \"r\" b1 }\n"                                             \
    "function \"calm\" { input c0: bool[]\ninput c1: f32[3]\nc2: f32[3] = op neg \"n\"(c1)\n"                \
    "output \"r\" c2 }\n"                                                                                    \
    "function \"use\" { input d0: fn(f32[3]) -> (f32[3])\ninput d1: f32[3]\n"                                \
    "d2: f32[3] = apply \"applied\"(d0, d1)\noutput \"r\" d2 }\n"                                            \
    "function \"later\" { input g0: bool[]\ninput g1: f32[3]\n"                                              \
    "g2: fn(f32[3]) -> (f32[3]) = closure \"stops\" \"made\"(g0)\n"                                          \
    "g3: f32[3] = call \"use\" \"called\"(g2, g1)\noutput \"r\" g3 }\n"

/* A main with those lines, which gives the negated x. */
static const char *without_dead(const char *between)
{
    const graph_module *m = graph_remove_dead(
        parsed(
            base_format(cx,
                        "graph \"g\" { function \"main\" { input x: f32[3]\ninput b: bool[]\ninput k: i64[]\n"
                        "%sy: f32[3] = op neg \"y\"(x)\noutput \"y\" y }\n" STOPPING "}",
                        between)),
        NULL);

    cr_assert(m && graph_verify(m), "%s", tec_context_error(cx));
    const char *text = graph_text(cx, m, 0);
    return base_strndup(cx, text, (size_t)(strstr(text, "function \"stops\"") - text));
}

Test(passes, what_may_stop_the_run_stays_though_nobody_reads_the_result)
{
    static const struct {
        const char *lines, *stays; /* NULL: the lines go */
    } row[] = {
        {"v: f32[3] = call \"stops\" \"dead\"(b, x)\n", "call \"stops\""},
        {"v: f32[3] = call \"counts\" \"dead\"(k, x)\n", "call \"counts\""},
        {"v: f32[3] = call \"calm\" \"dead\"(b, x)\n", NULL},
        {"v: f32[3] = call \"later\" \"dead\"(b, x)\n", "call \"later\""},
        {"f: fn(f32[3]) -> (f32[3]) = closure \"stops\" \"f\"(b)\nv: f32[3] = apply \"dead\"(f, x)\n",
         "apply \"dead\""},
        {"f: fn(f32[3]) -> (f32[3]) = closure \"counts\" \"f\"(k)\nv: f32[3] = apply \"dead\"(f, x)\n",
         "apply \"dead\""},
        {"f: fn(f32[3]) -> (f32[3]) = closure \"later\" \"f\"(b)\nv: f32[3] = apply \"dead\"(f, x)\n",
         "apply \"dead\""},
        {"f: fn(f32[3]) -> (f32[3]) = closure \"stops\" \"f\"(b)\nv: f32[3] = call \"use\" \"dead\"(f, x)\n",
         "call \"use\""},
        {"v: f32[3] = if \"i\"(b) {\nf: fn(f32[3]) -> (f32[3]) = closure \"stops\" \"f\"(b)\n"
         "w: f32[3] = apply \"dead\"(f, x)\noutput w } {\noutput x }\n",
         "apply \"dead\""},
        /* making a value of a function does not run it */
        {"f: fn(f32[3]) -> (f32[3]) = closure \"stops\" \"f\"(b)\n", NULL},
    };

    for (int i = 0; i < BASE_COUNT(row); i++) {
        const char *text = without_dead(row[i].lines);

        if (row[i].stays)
            cr_assert(strstr(text, row[i].stays), "%s\n%s", row[i].lines, text);
        else
            cr_assert_null(strstr(text, "call"), "%s\n%s", row[i].lines, text);
        cr_assert(row[i].stays || !strstr(text, "closure"), "%s\n%s", row[i].lines, text);
    }
}

/* An `apply` of a function value that cannot stop goes, if no function in the module that becomes a value may
 * stop. */
Test(passes, calls_of_calm_function_values_go)
{
    const graph_module *m = graph_remove_dead(
        parsed("graph \"g\" { function \"main\" { input x: f32[3]\ninput b: bool[]\n"
               "f: fn(f32[3]) -> (f32[3]) = closure \"calm\" \"f\"(b)\nv: f32[3] = apply \"dead\"(f, x)\n"
               "v2: f32[3] = call \"stops\" \"live\"(b, x)\noutput \"y\" v2 }\n"
               "function \"stops\" { input a0: bool[]\ninput a1: f32[3]\ncheck \"c\"(a0) @message(\"no\")\n"
               "output \"r\" a1 }\n"
               "function \"calm\" { input c0: bool[]\ninput c1: f32[3]\nc2: f32[3] = op neg \"n\"(c1)\n"
               "output \"r\" c2 } }"),
        NULL);

    cr_assert(m && graph_verify(m), "%s", tec_context_error(cx));
    cr_assert_null(strstr(graph_text(cx, m, 0), "dead"), "%s", graph_text(cx, m, 0));
    cr_assert(strstr(graph_text(cx, m, 0), "live"));
}

/* ---- batch normalisation ---- */

#define PARAMETERS                                                                                           \
    "constant v0: f32[2] = [1.0, 2.0]\nconstant v1: f32[2] = [0.5, -1.0]\nconstant v2: f32[2] = [3.0, "      \
    "1.0]\nconstant v3: f32[2] = [4.0, 9.0]\n"                                                               \
    "constant v4: f32[2, 1, 1, 1] = [2.0, -3.0]\ninput v5: f32[1, 1, 2, 2]\n"

static int count_ops(const graph_module *m, const char *op)
{
    const graph_body *body = main_body(m);
    int n = 0;

    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        n += node->kind == GRAPH_OP && base_same(node->op->name, op);
    }
    return n;
}

/* The same outputs before and after. */
static graph_module *same_results(graph_pass_fn *pass, const char *text, int count)
{
    graph_module *before = lines(text), *m = pass(before, any_target());
    base_map data[2] = {{0}, {0}};
    float *out[2], in[64];

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert(graph_verify(m), "%s", tec_context_error(cx));
    for (int i = 0; i < 64; i++)
        in[i] = (float)(i % 7) - 3;
    for (int k = 0; k < 2; k++) {
        const graph_body *body = main_body(k ? m : before);

        for (int i = 0; i < body->inputs.n; i++)
            base_map_put(cx, &data[k], body->inputs.at[i], in);
        interpret(k ? m : before, &data[k]);
        out[k] = data_of(&data[k], body->outputs.at[0]);
    }
    for (int i = 0; i < count; i++)
        cr_assert(fabsf(out[0][i] - out[1][i]) <= 1e-5f * (1 + fabsf(out[0][i])), "element %d: %g becomes %g",
                  i, (double)out[0][i], (double)out[1][i]);
    return m;
}

Test(passes, batch_norm_folds_into_a_convolution)
{
    graph_module *m = same_results(
        graph_fold_batch_norm,
        PARAMETERS "v6: f32[1, 2, 2, 2] = op conv \"c\"(v5, v4)\n"
                   "v7: f32[1, 2, 2, 2] = op batch_norm \"b\"(v6, v0, v1, v2, v3)\noutput \"y\" v7\n",
        8);

    cr_assert_eq(count_ops(m, "batch_norm"), 0);
    cr_assert_eq(((const graph_value *)main_body(m)->outputs.at[0])->node->n_in, 3,
                 "the shift became the bias");
}

Test(passes, batch_norm_folds_into_a_convolution_with_bias)
{
    graph_module *m = same_results(graph_fold_batch_norm,
                                   PARAMETERS "v6: f32[1, 2, 2, 2] = op conv \"c\"(v5, v4, v1)\n"
                                              "v7: f32[1, 2, 2, 2] = op batch_norm \"b\"(v6, v0, v1, v2, v3) "
                                              "@epsilon(f64(0.25))\noutput \"y\" v7\n",
                                   8);

    cr_assert_eq(count_ops(m, "batch_norm"), 0);
    cr_assert_str_eq(((const graph_value *)main_body(m)->outputs.at[0])->node->op->name, "conv");
}

Test(passes, batch_norm_after_a_convolution_with_two_readers_becomes_arithmetic)
{
    graph_module *m =
        same_results(graph_fold_batch_norm,
                     PARAMETERS "v6: f32[1, 2, 2, 2] = op conv \"c\"(v5, v4)\n"
                                "v7: f32[1, 2, 2, 2] = op batch_norm \"b\"(v6, v0, v1, v2, v3)\nv8: f32[1, "
                                "2, 2, 2] = op add \"a\"(v7, v6)\noutput \"y\" v8\n",
                     8);

    cr_assert_eq(count_ops(m, "batch_norm"), 0);
    cr_assert_eq(count_ops(m, "conv"), 1);
}

Test(passes, batch_norm_of_an_input_becomes_arithmetic)
{
    graph_module *m =
        same_results(graph_fold_batch_norm,
                     "constant v0: f32[3] = [1.0, 2.0, 3.0]\nconstant v1: f32[3] = [4.0, 5.0, 6.0]\ninput "
                     "v2: f32[2, 3, 5]\n"
                     "v3: f32[2, 3, 5] = op batch_norm \"b\"(v2, v0, v1, v0, v1)\noutput \"y\" v3\n",
                     30);

    cr_assert_eq(count_ops(m, "batch_norm"), 0);
}

/* A variance of ones that an operator makes, and weights that are doubled. */
Test(passes, batch_norm_folds_with_what_constants_are_computed_to)
{
    graph_module *m =
        same_results(graph_fold_batch_norm,
                     PARAMETERS "v8: f32[2] = op exp \"e\"(v1)\n"
                                "v9: f32[2, 1, 1, 1] = op add \"w\"(v4, v4)\n"
                                "v6: f32[1, 2, 2, 2] = op conv \"c\"(v5, v9)\n"
                                "v7: f32[1, 2, 2, 2] = op batch_norm \"b\"(v6, v0, v1, v2, v8)\n"
                                "output \"y\" v7\n",
                     8);

    cr_assert_eq(count_ops(m, "batch_norm"), 0);
    cr_assert_str_eq(((const graph_value *)main_body(m)->outputs.at[0])->node->op->name, "conv");
}

Test(passes, batch_norm_with_parameters_that_are_computed_stays)
{
    keeps(graph_fold_batch_norm, "input v0: f32[3]\ninput v1: f32[2, 3, 5]\nv2: f32[2, 3, 5] = op batch_norm "
                                 "\"b\"(v1, v0, v0, v0, v0)\noutput \"y\" v2\n");
}

/* ---- constants ---- */

Test(passes, what_depends_on_constants_alone_is_computed)
{
    graph_module *m = graph_remove_dead(
        after(graph_fold_constants,
              "constant v0: f32[3] = [1.0, 2.0, 3.0]\nconstant v1: f32[] = [2.0]\ninput v2: f32[n, 3]\n"
              "v3: f32[3] = op mul \"a\"(v0, v1)\nv4: f32[3] = op neg \"b\"(v3)\nv5: f32[n, 3] = op add "
              "\"c\"(v2, v4)\n"
              "output \"y\" v5\noutput \"z\" v3\n"),
        NULL);

    cr_assert_str_eq(flush_left(lines_of(m)),
                     "constant v0: f32[3] = [-2.0, -4.0, -6.0]\nconstant v1: f32[3] = [2.0, 4.0, 6.0]\ninput "
                     "v2: f32[n, 3]\n"
                     "v3: f32[n, 3] = op add \"c\"(v2, v0)\noutput \"y\" v3\noutput \"z\" v1\n");
}

Test(passes, integers_and_bools_are_computed_exactly)
{
    graph_module *m = graph_remove_dead(
        after(graph_fold_constants,
              "constant v0: i64[2] = [4611686018427387905, -7]\nconstant v1: i64[2] = [2, 3]\n"
              "v2: i64[2] = op sub \"a\"(v0, v1)\nv3: bool[2] = op less \"b\"(v0, v1)\noutput \"y\" "
              "v2\noutput \"z\" v3\n"),
        NULL);

    cr_assert_str_eq(flush_left(lines_of(m)), "constant v0: i64[2] = [4611686018427387903, -10]\nconstant "
                                              "v1: bool[2] = [0, 1]\noutput \"y\" v0\noutput \"z\" v1\n");
}

Test(passes, values_of_symbols_are_no_constants)
{
    keeps(graph_fold_constants, "input v0: f32[n, 3]\nv1: i64[2] = op values \"s\"() @values(exprs [n, "
                                "3])\nv2: f32[2] = op cast \"c\"(v1) @to(dtype f32)\noutput \"y\" v2\n");
}

Test(passes, constants_in_regions_are_computed)
{
    graph_module *m =
        after(graph_fold_constants, "constant v0: f32[] = [2.0]\ninput v1: bool[]\ninput v2: f32[]\n"
                                    "v9: f32[] = if \"i\"(v1) {\nv3: f32[] = op neg \"a\"(v0)\nv4: f32[] = "
                                    "op add \"b\"(v2, v3)\noutput v4\n} {\noutput v2\n}\noutput \"y\" v9\n");

    cr_assert(strstr(graph_text(cx, m, 0), "constant v0: f32[] = [-2.0]"), "%s", graph_text(cx, m, 0));
}

/* ---- implementations ---- */

Test(passes, weights_are_packed_once)
{
    graph_module *m =
        after(graph_choose, "constant v0: f32[3, 2] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\ninput v1: f32[n, 3]\n"
                            "v2: f32[n, 2] = op matmul \"mm\"(v1, v0)\noutput \"y\" v2\n");
    const char *text = flush_left(lines_of(m));

    cr_assert(
        strstr(text, " = pack matmul \"mm.pack\"(v0) plain(f32[n, 3], f32[3, 2]) impl \"matmul.packed\"\n"),
        "%s", text);
    cr_assert(
        strstr(text, " = op matmul \"mm\"(v1, v2) plain(f32[n, 3], f32[3, 2]) impl \"matmul.packed\"\n"),
        "%s", text);
}

static int count_packs(const char *text)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, " = pack matmul ")); at++)
        n++;
    return n;
}

Test(passes, weights_of_several_operators_are_packed_once)
{
    const char *two = "constant v0: f32[3, 2] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\ninput v1: f32[n, 3]\nv2: "
                      "f32[n, 3] = op relu \"r\"(v1)\n"
                      "v3: f32[n, 2] = op matmul \"a\"(v1, v0)\nv4: f32[n, 2] = op matmul \"b\"(v2, "
                      "v0)\noutput \"y\" v3\noutput \"z\" v4\n";
    const char *rows =
        "constant v0: f32[3, 2] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\ninput v1: f32[n, 3]\ninput v2: f32[64, 3]\n"
        "v3: f32[n, 2] = op matmul \"a\"(v1, v0)\nv4: f32[64, 2] = op matmul \"b\"(v2, v0)\noutput \"y\" "
        "v3\noutput \"z\" v4\n";
    const char *other =
        "constant v0: f32[3, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]\ninput v1: f32[n, 3]\n"
        "v3: f32[n, 3] = op matmul \"a\"(v1, v0)\nv4: f32[n, 3] = op matmul \"b\"(v1, v0) "
        "@trans_b(1)\noutput \"y\" v3\noutput \"z\" v4\n";

    cr_expect_eq(count_packs(lines_of(after(graph_choose, two))), 1);
    cr_expect_eq(count_packs(lines_of(after(graph_choose, rows))), 1,
                 "the number of rows says nothing about the weight");
    cr_expect_eq(count_packs(lines_of(after(graph_choose, other))), 2);
}

Test(passes, weights_that_are_no_constants_are_not_packed_ahead)
{
    graph_module *m = after(graph_choose, "input v0: f32[3, 2]\ninput v1: f32[n, 3]\nv2: f32[n, 2] = op "
                                          "matmul \"mm\"(v1, v0)\noutput \"y\" v2\n");

    cr_assert_not(strstr(graph_text(cx, m, 0), "pack matmul"));
}

/* ---- layouts: the target's vectors hold 8 floats ---- */

static void add_names(base_text *t, const graph_body *body)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        base_addf(cx, t, "%s%s", i ? " " : "", node->kind == GRAPH_OP ? node->op->name : "(");
        for (int k = 0; k < node->n_bodies; k++)
            add_names(t, node->body[k]);
        base_addf(cx, t, "%s", node->kind == GRAPH_OP ? "" : ")");
    }
}

/* The operators that are left, in order; those of regions in parentheses. */
static const char *laid_out(const char *text)
{
    base_text t = {0};

    add_names(&t, main_body(graph_remove_dead(after(graph_layout, text), any_target())));
    return base_text_str(cx, &t);
}

#define TWO_CONVOLUTIONS(between)                                                                            \
    "input v0 \"x\": f32[n, 8, 4, 4]\ninput v1 \"w\": f32[16, 8, 3, 3]\ninput v2 \"u\": f32[8, 16, 3, 3]\n"  \
    "v3: f32[n, 16, 4, 4] = op conv \"a\"(v0, v1) @pads([1, 1, 1, 1])\n" between                             \
    "v9: f32[n, 8, 4, 4] = op conv \"b\"(v8, v2) @pads([1, 1, 1, 1])\noutput \"y\" v9\n"

Test(passes, channels_stay_packed_between_convolutions)
{
    cr_assert_str_eq(laid_out(TWO_CONVOLUTIONS("v8: f32[n, 16, 4, 4] = op relu \"r\"(v3)\n")),
                     "pack_channels conv_packed relu conv_packed unpack_channels");
    cr_assert_str_eq(
        laid_out(TWO_CONVOLUTIONS(
            "v8: f32[n, 16, 4, 4] = op max_pool \"p\"(v3) @kernel([3, 3]) @pads([1, 1, 1, 1])\n")),
        "pack_channels conv_packed max_pool conv_packed unpack_channels");
    cr_assert_str_eq(
        laid_out(TWO_CONVOLUTIONS(
            "v4: f32[n, 16, 4, 4] = op relu \"r\"(v3)\nv8: f32[n, 16, 4, 4] = op add \"s\"(v3, v4)\n")),
        "pack_channels conv_packed relu add conv_packed unpack_channels");
    cr_assert_str_eq(
        laid_out(TWO_CONVOLUTIONS("v4: f32[n, 16, 1, 1] = op reduce_mean \"m\"(v3) @axes([2, 3])\n"
                                  "v8: f32[n, 16, 4, 4] = op mul \"s\"(v3, v4)\n")),
        "pack_channels conv_packed reduce_mean mul conv_packed unpack_channels");
}

static const char *in_type(const char *type, const char *text)
{
    base_text t = {0};

    for (const char *at = text; *at; at++)
        if (strncmp(at, "f32", 3) == 0) {
            base_add(cx, &t, type);
            at += 2;
        } else {
            base_addn(cx, &t, at, 1);
        }
    return base_text_str(cx, &t);
}

/* Blocks have the lanes of float32, the type of the sums. */
Test(passes, channels_of_16_bits_stay_packed_too)
{
    const char *text = TWO_CONVOLUTIONS("v8: f32[n, 16, 4, 4] = op relu \"r\"(v3)\n");

    cr_assert_str_eq(laid_out(in_type("f16", text)),
                     "pack_channels conv_packed relu conv_packed unpack_channels");
    cr_assert_str_eq(laid_out(in_type("bf16", text)),
                     "pack_channels conv_packed relu conv_packed unpack_channels");
    cr_assert_str_eq(laid_out(in_type("f64", text)), "conv relu conv");
}

Test(passes, values_per_channel_are_packed_beside_packed_channels)
{
    cr_assert_str_eq(laid_out(TWO_CONVOLUTIONS("input v4 \"s\": f32[16, 1, 1]\ninput v5 \"k\": f32[]\nv6: "
                                               "f32[n, 16, 4, 4] = op mul \"m\"(v3, v4)\n"
                                               "v8: f32[n, 16, 4, 4] = op add \"a\"(v6, v5)\n")),
                     "pack_channels conv_packed reshape pack_channels mul add conv_packed unpack_channels");
}

Test(passes, what_needs_plain_channels_gets_them)
{
    cr_assert_str_eq(
        laid_out(TWO_CONVOLUTIONS("v8: f32[n, 16, 4, 4] = op transpose \"t\"(v3) @perm([0, 1, 3, 2])\n")),
        "pack_channels conv_packed unpack_channels transpose pack_channels conv_packed unpack_channels");
    cr_assert_str_eq(
        laid_out(TWO_CONVOLUTIONS(
            "input v4 \"z\": f32[n, 1, 4, 4]\nv8: f32[n, 16, 4, 4] = op add \"s\"(v3, v4)\n")),
        "pack_channels conv_packed unpack_channels add pack_channels conv_packed unpack_channels");
}

Test(passes, concatenated_channels_stay_packed)
{
    cr_assert_str_eq(laid_out("input v0 \"x\": f32[1, 8, 4, 4]\ninput v1 \"w\": f32[8, 8, 3, 3]\nv2: f32[1, "
                              "8, 4, 4] = op conv \"a\"(v0, v1) @pads([1, 1, 1, 1])\n"
                              "v3: f32[1, 8, 4, 4] = op relu \"r\"(v2)\nv4: f32[1, 16, 4, 4] = op concat "
                              "\"c\"(v2, v3) @axis(1)\noutput \"y\" v4\n"),
                     "pack_channels conv_packed relu concat unpack_channels");
}

Test(passes, an_image_is_read_plain_and_odd_channels_are_left_alone)
{
    cr_assert_str_eq(laid_out("input v0 \"x\": f32[1, 3, 4, 4]\ninput v1 \"w\": f32[8, 3, 3, 3]\nv2: f32[1, "
                              "8, 4, 4] = op conv \"a\"(v0, v1) @pads([1, 1, 1, 1])\noutput \"y\" v2\n"),
                     "conv_packed unpack_channels");
    keeps(graph_layout, "input v0 \"x\": f32[1, 9, 4, 4]\ninput v1 \"w\": f32[8, 9, 3, 3]\nv2: f32[1, 8, 4, "
                        "4] = op conv \"a\"(v0, v1) @pads([1, 1, 1, 1])\noutput \"y\" v2\n");
    keeps(graph_layout, "input v0 \"x\": f32[1, 8, 4, 4]\ninput v1 \"w\": f32[9, 8, 3, 3]\nv2: f32[1, 9, 4, "
                        "4] = op conv \"a\"(v0, v1) @pads([1, 1, 1, 1])\noutput \"y\" v2\n");
    keeps(graph_layout, "input v0 \"x\": f32[1, 8, 4, 4]\ninput v1 \"w\": f32[8, 4, 3, 3]\nv2: f32[1, 8, 4, "
                        "4] = op conv \"a\"(v0, v1) @pads([1, 1, 1, 1]) @group(2)\noutput \"y\" v2\n");
}

Test(passes, packed_forms_stay_in_the_body_that_makes_them)
{
    cr_assert_str_eq(
        laid_out("input v0 \"x\": f32[1, 8, 4, 4]\ninput v1 \"w\": f32[8, 8, 3, 3]\ninput v2 \"go\": bool[]\n"
                 "v3: f32[1, 8, 4, 4] = if \"i\"(v2) {\nv4: f32[1, 8, 4, 4] = op conv \"a\"(v0, v1) "
                 "@pads([1, 1, 1, 1])\noutput "
                 "v4\n} {\noutput v0\n}\n"
                 "v5: f32[1, 8, 4, 4] = op conv \"b\"(v0, v1) @pads([1, 1, 1, 1])\noutput \"y\" v3\noutput "
                 "\"z\" v5\n"),
        "(pack_channels conv_packed unpack_channels) pack_channels conv_packed unpack_channels");
}

Test(passes, packed_channels_give_the_same_results)
{
    same_results(graph_layout,
                 "input v5 \"x\": f32[1, 2, 2, 2]\nconstant v4 \"w\": f32[8, 2, 2, 2] = "
                 "[1.0, -2.0, 3.0, 0.5, 2.0, 1.0, -1.0, 4.0, 1.5, -2.0, 3.0, 0.5, 2.0, 1.0, -1.0, 4.0, 1.0, "
                 "-2.0, 3.5, 0.5, 2.0, 1.0, -1.0, 4.0, 1.0, -2.0, 3.0, "
                 "0.5, 2.0, 1.0, -1.0, 4.0, 1.0, -2.0, 3.0, 0.25, 2.0, 1.0, -1.0, 4.0, 1.0, -2.0, 3.0, 0.5, "
                 "2.0, 1.0, -1.0, 4.0, 1.0, -2.0, 3.0, 0.5, 2.0, 1.0, "
                 "-1.0, 4.0, 1.0, -2.0, 3.0, 0.5, 2.0, 1.0, -1.0, -4.0]\n"
                 "v6: f32[1, 8, 3, 3] = op conv \"c\"(v5, v4) @pads([1, 1, 1, 1])\nv7: f32[1, 8, 3, 3] = op "
                 "relu \"r\"(v6)\n"
                 "v8: f32[1, 8, 2, 2] = op average_pool \"p\"(v7) @kernel([2, 2])\nv9: f32[1, 8, 2, 2] = op "
                 "add \"s\"(v8, v8)\noutput \"y\" v9\n",
                 32);
}

/* ---- products of single pixels ---- */

#define ONE_PIXEL(behind)                                                                                    \
    "input v0 \"x\": f32[n, 16, 4, 4]\ninput v1 \"w\": f32[16, 16, 1, 1]\ninput v2 \"b\": f32[16]\n"         \
    "v3: f32[n, 16, 4, 4] = op conv \"a\"(v0, v1, v2)\n" behind

/* Reshapes of weights, pixels and bias stand in front; what follows works on the product. */
Test(passes, a_convolution_of_single_pixels_is_a_product)
{
    cr_expect_str_eq(laid_out(ONE_PIXEL("v8: f32[n, 16, 4, 4] = op relu \"r\"(v3)\noutput \"y\" v8\n")),
                     "reshape reshape matmul reshape add relu reshape");
    cr_expect_str_eq(laid_out(ONE_PIXEL("input v4 \"s\": f32[16, 1, 1]\nv5: f32[n, 16, 4, 4] = op mul "
                                        "\"m\"(v3, v4)\nv8: f32[n, 16, 4, 4] = op add \"r\"(v5, v0)\n"
                                        "output \"y\" v8\n")),
                     "reshape reshape matmul reshape add reshape mul reshape add reshape");
    cr_expect_str_eq(laid_out(ONE_PIXEL("input v4 \"s\": f32[n, 1, 4, 4]\nv8: f32[n, 16, 4, 4] = op mul "
                                        "\"m\"(v3, v4)\noutput \"y\" v8\n")),
                     "reshape reshape matmul reshape add reshape mul", "a value for each pixel");
}

/* Factors for channels, as of squeezed images: the result is larger than the product. */
Test(passes, a_product_that_is_spread_stays_in_its_shape)
{
    cr_expect_str_eq(laid_out("input v0 \"x\": f32[1, 16, 1, 1]\ninput v1 \"w\": f32[16, 16, 1, 1]\ninput v2 "
                              "\"y\": f32[1, 16, 4, 4]\nv3: f32[1, 16, 1, 1] = op conv \"a\"(v0, v1)\n"
                              "v4: f32[1, 16, 4, 4] = op mul \"m\"(v3, v2)\noutput \"z\" v4\n"),
                     "reshape reshape matmul reshape mul");
}

Test(passes, a_product_needs_one_pixel_and_many_channels)
{
    static const char *const plain[] = {
        "f32[16, 16, 1, 1]\nv2: f32[1, 16, 6, 6] = op conv \"a\"(v0, v1) @pads([1, 1, 1, 1])",
        "f32[16, 16, 1, 1]\nv2: f32[1, 16, 2, 2] = op conv \"a\"(v0, v1) @strides([2, 2])",
        "f32[16, 4, 1, 1]\nv2: f32[1, 16, 4, 4] = op conv \"a\"(v0, v1) @group(4)",
        "f32[16, 1, 1, 1]\nv2: f32[1, 16, 4, 4] = op conv \"a\"(v0, v1) @group(16)",
        "f32[16, 16, 1, 2]\nv2: f32[1, 16, 4, 3] = op conv \"a\"(v0, v1)",
    };

    for (int i = 0; i < BASE_COUNT(plain); i++)
        cr_expect_not(strstr(laid_out(base_format(cx,
                                                  "input v0 \"x\": f32[1, 16, 4, 4]\ninput v1 \"w\": "
                                                  "%s\noutput \"y\" v2\n",
                                                  plain[i])),
                             "matmul"),
                      "%s", plain[i]);
}

/* Packing 16 channels in front of it costs less than packing its result. */
Test(passes, what_a_convolution_wants_packed_is_no_product)
{
    cr_expect_str_eq(
        laid_out(ONE_PIXEL("v4: f32[n, 16, 4, 4] = op relu \"r\"(v3)\ninput v5 \"u\": f32[8, 16, 3, 3]\n"
                           "v8: f32[n, 8, 2, 2] = op conv \"c\"(v4, v5)\noutput \"y\" v8\n")),
        "pack_channels conv_packed relu conv_packed unpack_channels");
}

Test(passes, products_of_single_pixels_give_the_same_results)
{
    base_text weights = {0};

    for (int i = 0; i < 2 * 8 * 8; i++)
        base_addf(cx, &weights, "%s%d.5", i ? ", " : "", i * 7 % 11 - 5);
    same_results(graph_layout,
                 base_format(cx,
                             "input v0 \"x\": f32[1, 16, 2, 2]\nconstant v1 \"w\": f32[16, 8, 1, 1] = [%s]\n"
                             "constant v2 \"b\": f32[16] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, "
                             "-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0]\n"
                             "v3: f32[1, 16, 2, 2] = op conv \"c\"(v0, v1, v2) @group(2)\n"
                             "v4: f32[1, 16, 2, 2] = op relu \"r\"(v3)\n"
                             "v5: f32[1, 16, 2, 2] = op add \"s\"(v4, v0)\noutput \"y\" v5\n",
                             base_text_str(cx, &weights)),
                 64);
}
