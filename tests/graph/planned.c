/* tests/graph/planned.c -- the planned form: made, printed, parsed, described, and refused where a node is
 * wrong or out of place. */
#include "graph/planned.h"

#include "graph/emit.h"
#include "ir/text.h"

#include "tests/graph/survive.h"
#include "tests/plain.h"

TestSuite(planned, .init = open_context, .fini = close_context);

/* ---- as before: the module file is the same whether its plan was printed and parsed or not ---- */

static void survives_its_text(const char *text)
{
    module_survives(lines(text), any_target());
}

/* What runs where, what kind of device that is, and the copies between them stand in the plan. */
Test(planned, the_plan_of_a_device_gives_the_same_module)
{
    static const char text[] = "input v0 \"x\": f32[n, 8]\ninput v1 \"d\": f64[n]\n"
                               "v2: f32[n, 8] = op neg \"a\"(v0)\nv3: f64[n] = op exp \"e\"(v1)\n"
                               "v4: f32[n, 8] = op softmax \"b\"(v2) @axis(1)\n"
                               "output \"y\" v4\noutput \"z\" v3\n";

    const char *plan = module_survives(lines(text), target_parse(cx, "opencl -device=mali"));

    cr_assert(strstr(plan, "  devices \"opencl\"\n"), "%s", plan);
    cr_assert(strstr(plan, " device 1 = alloc_storage "), "%s", plan);
    cr_assert(strstr(plan, "device_copy \"x\""), "%s", plan);
}

Test(planned, text_gives_the_same_module)
{
    survives_its_text("input v0 \"x\": f32[4, 8]\nv1: f32[4, 8] = op neg \"a\"(v0)\noutput \"y\" v1\n");
    survives_its_text("input v0 \"x\": f32[n, 8]\nv1: f32[n, 8] = op softmax \"a\"(v0) @axis(1)\nv2: f32[n, "
                      "8] = op softmax \"b\"(v1) @axis(1)\n"
                      "v3: f32[n, 8] = op softmax \"c\"(v2) @axis(1)\nv4: f32[n, 8] = op softmax \"d\"(v3) "
                      "@axis(1)\noutput \"y\" v4\n");
    survives_its_text("constant v9 \"w\": f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\ninput v0 \"x\": f32[n, "
                      "2]\ninput v7 \"z\": f32[m]\n"
                      "v1: f32[n, 3] = op matmul \"fc\"(v0, v9)\nv2: f32[n * 3] = op reshape \"r\"(v1) "
                      "@shape(exprs [n * 3])\nv3: f32[m] = op exp \"e\"(v7)\n"
                      "output \"y\" v2\noutput \"z\" v3\n");
}

Test(planned, outputs_that_are_inputs_constants_or_twice_the_same_survive)
{
    survives_its_text("constant v0 \"c\": f32[2] = [1.0, 2.0]\ninput v1 \"x\": f32[2]\nv2: f32[2] = op neg "
                      "\"a\"(v1)\noutput \"v\" v2\noutput \"w\" v2\n"
                      "output \"y\" v1\noutput \"z\" v0\n");
    survives_its_text(
        "input v1 \"x\": f32[2, 3]\nv2: f32[6] = op reshape \"r\"(v1) @shape(exprs [6])\noutput \"y\" v2\n");
}

/* ---- what is planned ---- */

static const char *plan_of(const char *text)
{
    graph_module *m = graph_optimise(lines(text), any_target());
    graph_kernels k = {.cx = cx, .target = any_target()};
    graph_module *p = m ? graph_planned(m, &k) : NULL;

    cr_assert(p && graph_verify(p), "%s", tec_context_error(cx));
    return flush_left(lines_of(p));
}

Test(planned, bytes_of_dead_tensors_are_used_again)
{
    const char *plan = plan_of("input v0 \"x\": f32[16, 8]\nv1: f32[16, 8] = op softmax \"a\"(v0) "
                               "@axis(1)\nv2: f32[16, 8] = op softmax \"b\"(v1) @axis(1)\n"
                               "v3: f32[16, 8] = op softmax \"c\"(v2) @axis(1)\nv4: f32[16, 8] = op softmax "
                               "\"d\"(v3) @axis(1)\noutput \"y\" v4\n");

    cr_assert_str_eq(plan, "input v0 \"x\": f32[16, 8]\n"
                           "v1: u8[1024] = alloc_storage \"pool\"()\n"
                           "v2: u8[512] = alloc_storage \"y\"() @output(0)\n"
                           "v3: f32[16, 8] = alloc_tensor \"a\"(v1) @offset(exprs [0])\n"
                           "invoke \"softmax\" \"a\"(v0, v3) @dims(exprs []) @operators(\"softmax\")\n"
                           "v4: f32[16, 8] = alloc_tensor \"b\"(v1) @offset(exprs [512])\n"
                           "invoke \"softmax\" \"b\"(v3, v4) @dims(exprs []) @operators(\"softmax\")\n"
                           "kill \"a\"(v3)\n"
                           "v5: f32[16, 8] = alloc_tensor \"c\"(v1) @offset(exprs [0])\n"
                           "invoke \"softmax\" \"c\"(v4, v5) @dims(exprs []) @operators(\"softmax\")\n"
                           "kill \"b\"(v4)\n"
                           "v6: f32[16, 8] = alloc_tensor \"d\"(v2) @offset(exprs [0])\n"
                           "invoke \"softmax\" \"d\"(v5, v6) @dims(exprs []) @operators(\"softmax\")\n"
                           "kill \"c\"(v5)\n"
                           "output \"y\" v6\n");
}

/* Softmaxes write where the concatenation has them, and the last of them reads it there; z is a piece. */
Test(planned, what_is_joined_is_written_into_its_place)
{
    static const char text[] =
        "input v0 \"x\": f32[1, 2, 8]\nv1: f32[1, 2, 8] = op softmax \"a\"(v0)\n"
        "v2: f32[1, 2, 8] = op softmax \"b\"(v1)\nv3: f32[1, 4, 8] = op concat \"c\"(v1, v2) @axis(1)\n"
        "v4: f32[1, 4, 8] = op softmax \"d\"(v3)\noutput \"y\" v4\noutput \"z\" v2\n";

    cr_assert_str_eq(plan_of(text),
                     "input v0 \"x\": f32[1, 2, 8]\n"
                     "v1: u8[128] = alloc_storage \"pool\"()\n"
                     "v2: u8[128] = alloc_storage \"y\"() @output(0)\n"
                     "v3: u8[64] = alloc_storage \"z\"() @output(1)\n"
                     "v4: f32[1, 4, 8] = alloc_tensor \"c\"(v1) @offset(exprs [0])\n"
                     "v5: f32[1, 2, 8] = alloc_tensor \"a\"(v4) @offset(exprs [0])\n"
                     "invoke \"softmax\" \"a\"(v0, v5) @dims(exprs []) @operators(\"softmax\")\n"
                     "v6: f32[1, 2, 8] = alloc_tensor \"b\"(v4) @offset(exprs [64])\n"
                     "invoke \"softmax\" \"b\"(v5, v6) @dims(exprs []) @operators(\"softmax\")\n"
                     "v7: f32[1, 4, 8] = alloc_tensor \"d\"(v2) @offset(exprs [0])\n"
                     "invoke \"softmax'2\" \"d\"(v4, v7) @dims(exprs []) @operators(\"softmax\")\n"
                     "v8: f32[1, 2, 8] = alloc_tensor \"z\"(v3) @offset(exprs [0])\n"
                     "device_copy \"\"(v6, v8)\n"
                     "kill \"c\"(v4)\n"
                     "output \"y\" v7\n"
                     "output \"z\" v8\n");
    survives_its_text(text);
    survives_its_text("input v0 \"x\": f32[n, 16]\nv1: f32[n, 16] = op softmax \"a\"(v0)\n"
                      "v2: f32[n, 16] = op softmax \"b\"(v1)\nv3: f32[2 * n, 16] = op concat \"c\"(v2, v1) "
                      "@axis(0)\noutput \"y\" v3\n");
}

/* ---- what is refused ---- */

/* A plan of neg(neg(x)) over 16 elements, with one of its lines replaced. */
static const char *plan_with(const char *line, const char *instead)
{
    static const char *const plan[] = {"input v0 \"x\": f32[16]\n",
                                       "v1: u8[64] = alloc_storage \"pool\"()\n",
                                       "v2: u8[64] = alloc_storage \"y\"() @output(0)\n",
                                       "v3: f32[16] = alloc_tensor \"a\"(v1) @offset(exprs [0])\n",
                                       "invoke \"neg\" \"a\"(v0, v3) @dims(exprs [16])\n",
                                       "v4: f32[16] = alloc_tensor \"b\"(v2) @offset(exprs [0])\n",
                                       "invoke \"neg\" \"b\"(v3, v4) @dims(exprs [16])\n",
                                       "kill \"a\"(v3)\n",
                                       "output \"y\" v4\n"};
    base_text t = {0};
    bool found = false;

    base_add(cx, &t,
             "graph \"g\" {\ndevices \"opencl\"\nsymbols n\nkernel \"neg\" over n (f32[n]) -> "
             "(f32[n])\nfunction \"main\" {\n");
    for (int i = 0; i < BASE_COUNT(plan); i++) {
        bool this = line && strncmp(plan[i], line, strlen(line)) == 0;

        base_add(cx, &t, this ? instead : plan[i]);
        found = found || this;
    }
    cr_assert(found || !line, "the plan has no line '%s'", line);
    base_add(cx, &t, "} }\n");
    return base_text_str(cx, &t);
}

static void refuses(const char *line, const char *instead, const char *message)
{
    const char *text = plan_with(line, instead);

    cr_assert_null(graph_parse(cx, "plan.graph", text, NULL), "accepted:\n%s", text);
    cr_assert(strstr(tec_context_error(cx), message), "expected '%s', found '%s'", message,
              tec_context_error(cx));
    tec_context_clear(cx);
}

Test(planned, a_right_plan_is_accepted)
{
    cr_assert(graph_parse(cx, "plan.graph", plan_with(NULL, NULL), NULL), "%s", tec_context_error(cx));
}

Test(planned, refuses_wrong_storages_and_places)
{
    refuses("v1:", "v1: f32[16] = alloc_storage \"pool\"()\n",
            "node 'pool': a storage is u8[bytes], found f32[16]");
    refuses("v1:", "v1: u8[64] device 1 = alloc_storage \"pool\"()\n",
            "it is on device 0, its storage on device 1");
    refuses("v1:", "v1: u8[64] device 2 = alloc_storage \"pool\"()\n",
            "'pool' is on device 2; the module names 1 devices beside the host");
    refuses("v1:", "v1: u8[64] = alloc_storage \"pool\"(v0)\n",
            "expected 0 operands and 1 results, found 1 and 1");
    refuses("v2:", "v2: u8[64] = alloc_storage \"y\"() @output(1)\n",
            "@output names no output of the function");
    refuses("v1:", "v1: u8[32] = alloc_storage \"pool\"()\n",
            "node 'a': f32[16] at offset 0 does not fit into 32 bytes");
    refuses("v1:", "v1: u8[n] = alloc_storage \"pool\"()\n", "does not fit into n bytes");
    refuses("v3:", "v3: f32[16] = alloc_tensor \"a\"(v1)\n",
            "a tensor in a storage has @offset(exprs [bytes])");
    refuses("v3:", "v3: f32[8] = alloc_tensor \"a\"(v1) @offset(exprs [32])\n",
            "offset 32 is not a multiple of 64");
    refuses("v3:", "v3: f32[16] device 1 = alloc_tensor \"a\"(v1) @offset(exprs [0])\n",
            "it is on device 1, its storage on device 0");
    refuses("v3:",
            "v3: f32[16] = alloc_tensor \"a\"(v1) @offset(exprs [0])\nv9: f32[8] = alloc_tensor \"z\"(v1) "
            "@offset(exprs [0])\n",
            "node 'z': its bytes overlap those of 'a', which still lives");
    refuses("kill", "v9: f32[8] = alloc_tensor \"z\"(v3)\nkill \"a\"(v3)\n",
            "f32[8] has another size than f32[16], which it views");
}

/* Parts of the tensor "a", which has 64 bytes. */
Test(planned, refuses_wrong_parts)
{
#define WRITE_PARTS                                                                                          \
    "v8: f32[16] = alloc_tensor \"p\"(v3) @offset(exprs [0])\n"                                              \
    "invoke \"neg\" \"a\"(v0, v8) @dims(exprs [16])\n"

    refuses("kill", "v9: f32[4, 4] = alloc_tensor \"z\"(v3) @offset(exprs [64])\nkill \"a\"(v3)\n",
            "node 'z': f32[4, 4] at offset 64 does not fit into 64 bytes");
    refuses("kill", "v9: f32[8] = alloc_tensor \"z\"(v3) @offset(exprs [32])\nkill \"a\"(v3)\n",
            "offset 32 is not a multiple of 64");
    refuses("kill", "v9: f32[8] = alloc_tensor \"z\"(v0) @offset(exprs [0])\nkill \"a\"(v3)\n",
            "node 'z': 'x' is an input or a constant, which has no parts");
    refuses("invoke \"neg\" \"a\"", WRITE_PARTS "v9: f32[8] = alloc_tensor \"q\"(v3) @offset(exprs [0])\n",
            "node 'q': its bytes overlap those of 'p', which still lives");
    refuses("invoke \"neg\" \"a\"",
            "v8: f32[8] = alloc_tensor \"p\"(v3) @offset(exprs [0])\n"
            "invoke \"neg\" \"a\"(v0, v8) @dims(exprs [16])\n",
            "operand 1 is f32[8], kernel 'neg' takes f32[16] there");
    refuses("invoke \"neg\" \"a\"",
            "v8: f32[8] = alloc_tensor \"p\"(v3) @offset(exprs [0])\nv9: f32[8] = alloc_tensor \"h\"(v0)\n",
            "f32[8] has another size than f32[16], which it views");
    refuses("invoke \"neg\" \"a\"",
            "input v9: f32[8]\nv8: f32[8] = alloc_tensor \"p\"(v3) @offset(exprs [0])\n"
            "invoke \"neg\" \"a\"(v9, v8) @dims(exprs [8])\n",
            "'a' is read before anything was written to it");
    refuses("invoke \"neg\" \"b\"",
            "v8: f32[16] = alloc_tensor \"p\"(v3) @offset(exprs [0])\n"
            "invoke \"neg\" \"b\"(v3, v8) @dims(exprs [16])\n",
            "operand 1 is written and is operand 0 too");
    refuses("invoke \"neg\" \"b\"",
            "v8: f32[16] = alloc_tensor \"p\"(v3) @offset(exprs [0])\ndevice_copy \"b\"(v8, v3)\n",
            "it copies a tensor to itself");
    refuses("invoke \"neg\" \"a\"", WRITE_PARTS "kill \"p\"(v8)\n", "'p' is not a tensor of a pool");
    refuses("kill",
            "v8: f32[16] = alloc_tensor \"p\"(v3) @offset(exprs [0])\nkill \"a\"(v3)\n"
            "device_copy \"c\"(v8, v4)\n",
            "is used after its kill");
    cr_assert(graph_parse(cx, "plan.graph", plan_with("invoke \"neg\" \"a\"", WRITE_PARTS), NULL), "%s",
              tec_context_error(cx));
#undef WRITE_PARTS
}

Test(planned, refuses_wrong_invocations)
{
    refuses("invoke \"neg\" \"a\"", "invoke \"abs\" \"a\"(v0, v3) @dims(exprs [16])\n",
            "there is no kernel 'abs'");
    refuses("invoke \"neg\" \"a\"", "invoke \"neg\" \"a\"(v0, v0, v3) @dims(exprs [16])\n",
            "kernel 'neg' takes 2 operands, found 3");
    refuses("invoke \"neg\" \"a\"", "invoke \"neg\" \"a\"(v0, v3)\n",
            "kernel 'neg' has 1 symbols, @dims gives 0");
    refuses("invoke \"neg\" \"a\"", "invoke \"neg\" \"a\"(v0, v3) @dims(exprs [8])\n",
            "operand 0 is f32[16], kernel 'neg' takes f32[8] there");
    refuses("invoke \"neg\" \"a\"", "invoke \"neg\" \"a\"(v1, v3) @dims(exprs [16])\n",
            "'pool' is a storage, not a tensor");
    refuses("invoke \"neg\" \"a\"", "invoke \"neg\" \"a\"(_, v3) @dims(exprs [16])\n",
            "an operand is left out");
    refuses("invoke \"neg\" \"a\"", "invoke \"neg\" \"a\"(v3, v0) @dims(exprs [16])\n",
            "'a' is read before anything was written to it");
    refuses("invoke \"neg\" \"b\"", "invoke \"neg\" \"b\"(v3, v0) @dims(exprs [16])\n",
            "'x' is an input or a constant and cannot be written");
    refuses("invoke \"neg\" \"b\"", "invoke \"neg\" \"b\"(v3, v3) @dims(exprs [16])\n",
            "operand 1 is written and is operand 0 too");
    refuses("invoke \"neg\" \"b\"", "device_copy \"b\"(v3, v3)\n", "it copies a tensor to itself");
    refuses("invoke \"neg\" \"b\"", "v9: f32[4, 4] = alloc_tensor \"z\"(v3)\ndevice_copy \"b\"(v9, v4)\n",
            "it copies f32[4, 4] to f32[16]");
    refuses("invoke \"neg\" \"b\"", "v9: f32[16] = op neg \"z\"(v3)\n",
            "this node has no place in a planned function");
}

Test(planned, refuses_wrong_orders_and_ends)
{
    refuses("invoke \"neg\" \"a\"", "kill \"a\"(v3)\ninvoke \"neg\" \"a\"(v0, v3) @dims(exprs [16])\n",
            "'a' is used after its kill");
    refuses("kill", "kill \"a\"(v3)\nkill \"a\"(v3)\n", "'a' is used after its kill");
    refuses("kill", "v9: f32[4, 4] = alloc_tensor \"z\"(v3)\nkill \"a\"(v3)\ndevice_copy \"c\"(v9, v9)\n",
            "'a' is used after its kill");
    refuses("kill", "kill \"a\"(v3)\nkill \"b\"(v4)\n", "'b' is not a tensor of a pool");
    refuses("kill", "kill \"a\"(v3)\nkill \"x\"(v0)\n", "'x' is not a tensor of a pool");
    refuses("kill", "", "'a' is never killed");
    refuses("output", "output \"y\" v0\n", "output 0 does not lie in the storage of output 0");
    refuses("invoke \"neg\" \"b\"", "", "'b' is read before anything was written to it");
    refuses("v3:", "", "there is no value 'v3' above this line");
}

Test(planned, a_symbol_of_one_kernel_means_nothing_behind_it)
{
    cr_assert_null(graph_parse(cx, "k.graph",
                               "graph \"g\" {\nkernel \"neg\" over q (f32[q]) -> (f32[q])\n"
                               "kernel \"exp\" (f32[q]) -> (f32[q])\n}",
                               NULL));
    cr_assert(strstr(plain(cx, tec_context_error(cx)), "k.graph:3: error: ") &&
                  strstr(tec_context_error(cx), "'q'"),
              "%s", tec_context_error(cx));
}

/* ---- errors name the node ---- */

Test(planned, a_kernel_stands_where_its_node_does)
{
    const graph_module *m =
        lines("input v0 \"x\": f32[16, 8]\nv1: f32[16, 8] = op softmax \"first\"(v0) @axis(1)\n"
              "v2: f32[16, 8] = op softmax \"second\"(v1) @axis(0)\noutput \"y\" v2\n");

    for (int i = 0; i < 2; i++) {
        const graph_node *node = main_body(m)->nodes.at[i];
        const te_def *d = graph_definition(m, node, any_target());

        cr_assert_eq(d->loc.line, node->loc.line, "'%s' of line %d has its kernel at line %d", node->name,
                     node->loc.line, d->loc.line);
    }
}

/* ---- numbers in kernels ---- */

/* The operands of the last node's kernel, and its text. */
static const char *last_kernel(const char *text, int *operands)
{
    const graph_module *m = lines(text);
    const base_vec *nodes = &main_body(m)->nodes;
    const graph_node *node = nodes->at[nodes->n - 1];
    base_vec reads = {0};

    graph_distinct_operands(cx, node, &reads);
    *operands = reads.n;
    return ir_program_text(cx, te_tree(cx, graph_definition(m, node, any_target())));
}

Test(planned, a_constant_of_one_number_stands_in_the_kernel)
{
    int n;
    const char *text = last_kernel("input v0 \"x\": f32[4]\nconstant v1 \"two\": f32[] = [2.0]\n"
                                   "v2: f32[4] = op pow \"p\"(v0, v1)\noutput \"y\" v2\n",
                                   &n);

    cr_assert_eq(n, 1);
    cr_assert(strstr(text, ", 2.0)") && !strstr(text, "in1"), "%s", text);
}

/* What has no decimal form, more than one number, and what other operators read stay operands. */
Test(planned, other_constants_stay_operands)
{
    int n;

    last_kernel("input v0 \"x\": f32[2]\nconstant v1 \"c\": f32[2] = [2.0, 3.0]\n"
                "v2: f32[2] = op mul \"p\"(v0, v1)\noutput \"y\" v2\n",
                &n);
    cr_assert_eq(n, 2);
    last_kernel("input v0 \"x\": f32[2]\nconstant v1 \"c\": f32[1] = [bits(2139095040)]\n"
                "v2: f32[2] = op mul \"p\"(v0, v1)\noutput \"y\" v2\n",
                &n);
    cr_assert_eq(n, 2);
    last_kernel("input v0 \"x\": f32[2]\nconstant v1 \"c\": f32[1] = [2.0]\n"
                "v2: f32[3] = op concat \"p\"(v0, v1) @axis(0)\noutput \"y\" v2\n",
                &n);
    cr_assert_eq(n, 2);
}
