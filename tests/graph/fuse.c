/* tests/graph/fuse.c -- which operators become one kernel. */
#include "tests/graph/kit.h"

TestSuite(fuse, .init = open_context, .fini = close_context);

/* The steps of the graph after fusion: names of operators, joined by '+', one step after another. */
static const char *steps(const char *text)
{
    const graph_body *body = main_body(after(graph_fuse, text));
    base_text t = {0};

    for (int i = 0; i < body->nodes.n; i++)
        base_addf(cx, &t, "%s%s", i ? " " : "", ((const graph_node *)body->nodes.at[i])->name);
    return base_text_str(cx, &t);
}

#define FUSES(text, expected) cr_assert_str_eq(steps(text), expected)

Test(fuse, golden_structure_of_a_group)
{
    becomes(graph_fuse,
            "input v0 \"x\": f32[n]\nv1: f32[n] = op neg \"a\"(v0)\nv2: f32[n] = op mul \"b\"(v1, "
            "v0)\noutput \"y\" v2\n",
            "input v0 \"x\": f32[n]\nv4: f32[n] = group \"a+b\"(v0) {\ninput v1 \"x\": f32[n]\nv2: f32[n] = "
            "op neg \"a\"(v1)\n"
            "v3: f32[n] = op mul \"b\"(v2, v1)\noutput v3\n}\noutput \"y\" v4\n");
}

Test(fuse, injective_operators_with_each_other)
{
    FUSES("input v0: f32[4, 6]\nv1: f32[6, 4] = op transpose \"t\"(v0) @perm([1, 0])\nv2: f32[6, 4] = op "
          "relu \"r\"(v1)\nv3: f32[12, 4] = op concat \"c\"(v2, v2) @axis(0)\noutput \"y\" v3\n",
          "t+r+c");
}

Test(fuse, a_reduction_takes_what_is_in_front_and_nothing_behind)
{
    FUSES("input v0: f32[4, 6]\nv1: f32[4, 6] = op exp \"e\"(v0)\nv2: f32[4, 1] = op reduce_sum \"s\"(v1) "
          "@axes([1])\nv3: f32[4, 1] = op neg \"b\"(v2)\noutput \"y\" v3\n",
          "e+s b");
}

/* The loops of the reduction would choose the operand for each element; element-wise operators are in the
 * loops over each piece. */
Test(fuse, a_reduction_takes_no_concatenation)
{
    FUSES("input v0: f32[4, 6]\nv1: f32[4, 6] = op exp \"e\"(v0)\nv2: f32[4, 12] = op concat \"c\"(v0, v1) "
          "@axis(1)\nv3: f32[4, 12] = op neg \"n\"(v2)\nv4: f32[4, 1] = op reduce_sum \"s\"(v3) @axes([1])\n"
          "output \"y\" v4\n",
          "e+c+n s");
}

/* The plan puts the operands into their places, where each one is made once and begins at 64 bytes. */
Test(fuse, a_concatenation_of_rows_stays_alone)
{
#define ROWS(operands, extent)                                                                               \
    "input v0: f32[2, 16]\nv1: f32[2, 16] = op relu \"r\"(v0)\nv2: f32[2, 16] = op neg \"n\"(v0)\n"          \
    "v3: f32[" extent "] = op concat \"c\"(" operands "\nv4: f32[" extent                                    \
    "] = op exp \"e\"(v3)\noutput \"y\" v4\n"

    FUSES(ROWS("v1, v2) @axis(0)", "4, 16"), "r n c e");
    FUSES(ROWS("v1, v2) @axis(1)", "2, 32"), "r+n+c+e");
    FUSES(ROWS("v1, v1) @axis(0)", "4, 16"), "n r+c+e");
    FUSES(ROWS("v0, v1) @axis(0)", "4, 16"), "n r+c+e");
    FUSES("input v0: f32[9]\nv1: f32[9] = op relu \"r\"(v0)\nv2: f32[9] = op neg \"n\"(v0)\n"
          "v3: f32[18] = op concat \"c\"(v1, v2) @axis(0)\noutput \"y\" v3\n",
          "r+n+c");
}

#define CONV                                                                                                 \
    "constant v0: f32[4, 3, 1, 1] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]\ninput " \
    "v1: f32[n, 3, 8, 8]\nv2: f32[n, 4, 8, 8] = op conv \"c\"(v1, v0)\n"

Test(fuse, a_convolution_takes_element_wise_operators_behind)
{
    FUSES(
        CONV
        "v3: f32[n, 4, 8, 8] = op relu \"r\"(v2)\nv4: f32[n, 4, 8, 8] = op neg \"m\"(v3)\noutput \"y\" v4\n",
        "c+r+m");
}

Test(fuse, a_convolution_takes_the_residual_addition)
{
    FUSES(CONV "input v5: f32[n, 4, 8, 8]\nv3: f32[n, 4, 8, 8] = op add \"a\"(v5, v2)\nv4: f32[n, 4, 8, 8] = "
               "op relu \"r\"(v3)\noutput \"y\" v4\n",
          "c+a+r");
}

Test(fuse, two_convolutions_that_are_added_stay_two)
{
    FUSES(CONV "v3: f32[n, 4, 8, 8] = op conv \"d\"(v1, v0)\nv4: f32[n, 4, 8, 8] = op add \"a\"(v2, v3)\nv5: "
               "f32[n, 4, 8, 8] = op relu \"r\"(v4)\noutput \"y\" v5\n",
          "d c+a+r");
}

Test(fuse, a_convolution_takes_nothing_that_changes_its_shape)
{
    FUSES(CONV "v3: f32[4, n, 8, 8] = op transpose \"t\"(v2) @perm([1, 0, 2, 3])\noutput \"y\" v3\n", "c t");
    FUSES(CONV
          "input v5: f32[2, n, 4, 8, 8]\nv3: f32[2, n, 4, 8, 8] = op add \"a\"(v5, v2)\noutput \"y\" v3\n",
          "c a");
}

Test(fuse, a_convolution_takes_nothing_in_front)
{
    FUSES("constant v0: f32[1, 1, 1, 1] = [2.0]\ninput v1: f32[n, 1, 8, 8]\nv2: f32[n, 1, 8, 8] = op relu "
          "\"r\"(v1)\nv3: f32[n, 1, 8, 8] = op conv \"c\"(v2, v0)\noutput \"y\" v3\n",
          "r c");
}

Test(fuse, an_opaque_operator_stays_alone)
{
    FUSES("input v0: f32[n, 4]\nv1: f32[n, 4] = op neg \"a\"(v0)\nv2: f32[n, 4] = op softmax \"s\"(v1)\nv3: "
          "f32[n, 4] = op neg \"b\"(v2)\noutput \"y\" v3\n",
          "a s b");
}

Test(fuse, a_reshape_stays_alone)
{
    FUSES("input v0: f32[2, 4]\nv1: f32[2, 4] = op neg \"a\"(v0)\nv2: f32[8] = op reshape \"r\"(v1) "
          "@shape(exprs [8])\nv3: f32[8] = op neg \"b\"(v2)\noutput \"y\" v3\n",
          "a r b");
}

Test(fuse, a_value_with_two_readers_is_made_once)
{
    FUSES("input v0: f32[n]\nv1: f32[n] = op exp \"e\"(v0)\nv2: f32[n] = op neg \"a\"(v1)\nv3: f32[n] = op "
          "relu \"b\"(v1)\noutput \"y\" v2\noutput \"z\" v3\n",
          "e a b");
}

Test(fuse, a_value_that_is_an_output_is_made_by_its_own_kernel)
{
    FUSES("input v0: f32[n]\nv1: f32[n] = op exp \"e\"(v0)\nv2: f32[n] = op neg \"a\"(v1)\noutput \"y\" "
          "v1\noutput \"z\" v2\n",
          "e a");
}

Test(fuse, a_value_that_one_operator_reads_twice_has_one_reader)
{
    FUSES("input v0: f32[n]\nv1: f32[n] = op exp \"e\"(v0)\nv2: f32[n] = op mul \"a\"(v1, v1)\noutput \"y\" "
          "v2\n",
          "e+a");
}

/* v + v, sixteen times: one kernel would read x 65,536 times for each element. */
Test(fuse, what_is_read_twice_again_and_again_is_not_one_kernel)
{
    base_text t = {0};

    base_add(cx, &t, "input v0: f32[n]\n");
    for (int i = 0; i < 16; i++)
        base_addf(cx, &t, "v%d: f32[n] = op add \"a%d\"(v%d, v%d)\n", i + 1, i, i, i);
    base_add(cx, &t, "output \"y\" v16\n");
    FUSES(base_text_str(cx, &t), "a0+a1+a2+a3+a4+a5+a6 a7+a8+a9+a10+a11+a12+a13 a14+a15");
}

/* An operator whose own expression reads its operand three times. */
Test(fuse, chains_of_activations_stay_short)
{
    base_text t = {0};

    base_add(cx, &t, "input v0: f32[n]\n");
    for (int i = 0; i < 8; i++)
        base_addf(cx, &t, "v%d: f32[n] = op elu \"a%d\"(v%d) @alpha(f64(1.0))\n", i + 1, i, i);
    base_add(cx, &t, "output \"y\" v8\n");
    FUSES(base_text_str(cx, &t), "a0+a1+a2+a3 a4+a5+a6+a7");
}

/* ---- programs, for the VM ---- */

#define STATE(between, results)                                                                              \
    "input v0: f32[n]\ninput v1: f32[n]\nv2: f32[n] = op mul \"m\"(v0, v1)\n" between                        \
    "v3: f32[n] = op tanh \"t\"(v2)\nv4: f32[n] = op mul \"h\"(v3, v1)\n" results

/* The graph after fusion, with the results of its groups: "m+t+h:2" has two. */
static const char *program_steps(const char *text)
{
    graph_module *module = lines(text);
    base_text t = {0};

    module->for_vm = true;
    module = graph_fuse(module, any_target());
    cr_assert(graph_verify(module), "%s", tec_context_error(cx));
    const graph_body *body = main_body(module);
    for (int i = 0; i < body->nodes.n; i++)
        base_addf(cx, &t, "%s%s:%d", i ? " " : "", ((const graph_node *)body->nodes.at[i])->name,
                  ((const graph_node *)body->nodes.at[i])->n_out);
    return base_text_str(cx, &t);
}

/* As the state of an LSTM, of which the output is made. */
Test(fuse, a_program_gives_a_value_besides_what_is_made_of_it)
{
    cr_expect_str_eq(program_steps(STATE("", "output \"y\" v4\noutput \"z\" v2\n")), "m+t+h:2");
    cr_expect_str_eq(program_steps(STATE("", "output \"y\" v2\noutput \"z\" v4\noutput \"w\" v3\n")),
                     "m+t+h:3");
    cr_expect_str_eq(steps(STATE("", "output \"y\" v4\noutput \"z\" v2\n")), "m t+h");
}

/* A kernel with both results would wait for the sum of the first one. */
Test(fuse, a_program_does_not_give_what_another_node_reads)
{
    cr_expect_str_eq(program_steps(STATE("v5: f32[1] = op reduce_sum \"s\"(v2) @axes([0])\n",
                                         "output \"y\" v4\noutput \"z\" v2\noutput \"w\" v5\n")),
                     "m:1 s:1 t+h:1");
}

/* The loops of the kernel are those of one shape. */
Test(fuse, a_program_gives_values_of_one_shape)
{
    cr_expect_str_eq(
        program_steps(
            "input v0: f32[4, n]\ninput v1: f32[1, n]\nv2: f32[1, n] = op exp \"e\"(v1)\nv3: f32[4, n] = "
            "op add \"a\"(v0, v2)\noutput \"y\" v2\noutput \"z\" v3\n"),
        "e:1 a:1");
}

/* Tiles of a product are for one result. */
Test(fuse, a_program_gives_no_value_besides_a_product)
{
    for (int first = 0; first < 2; first++)
        cr_expect_str_eq(program_steps(base_format(
                             cx,
                             "input v0: f32[8, 8]\ninput v1: f32[8, 8]\n"
                             "v2: f32[8, 8] = op matmul \"p\"(v0, v1)\nv3: f32[8, 8] = op exp \"e\"(v0)\n"
                             "v4: f32[8, 8] = op neg \"n\"(v3)\nv5: f32[8, 8] = op add \"a\"(v%d, v%d)\n"
                             "output \"y\" v3\noutput \"z\" v5\n",
                             first ? 4 : 2, first ? 2 : 4)),
                         first ? "p:1 e+n+a:2" : "e+n:2 p+a:1");
}
