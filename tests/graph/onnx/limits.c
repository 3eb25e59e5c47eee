/* tests/graph/onnx/limits.c -- each limit of the import: a small value refuses the model and is named, the
 * usual one takes it. */
#include "graph/pass.h"
#include "targets/target.h"
#include "tests/graph/onnx/kit.h"

TestSuite(onnx_limits, .init = open_context, .fini = close_context);

#define NAMED(limit, n) "; the limit '" limit "' is " n " (--limit " limit "=N, tec_context_set_limit)"

/* The model at hand is refused with a limit of n, and taken with one of n + 1. */
static void limits(const char *name, int64_t n, tec_status status, const char *message)
{
    cr_assert(tec_context_set_limit(cx, name, n));
    refused(status, message);
    cr_assert(tec_context_set_limit(cx, name, n + 1));
    imported();
}

Test(onnx_limits, nodes)
{
    open_model(13);
    input("x", 1, "4");
    node("Relu", "x", "a", NULL);
    node("Relu", "a", "b", NULL);
    node("Relu", "b", "y", NULL);
    output("y");
    limits("nodes", 2, TEC_UNSUPPORTED, "m.onnx: error: the model has 3 nodes or more" NAMED("nodes", "2"));
}

Test(onnx_limits, depth_of_messages)
{
    open_model(13);
    input("x", 1, "4"); /* model, graph, input, type, tensor type, shape, dimension */
    output("x");
    limits("message-depth", 6, TEC_INVALID,
           "m.onnx: error: messages of the file lie more than 6 deep inside each other" NAMED("message-depth",
                                                                                              "6"));
}

/* The axes are computed from a table of 20 integers. */
Test(onnx_limits, known_elements)
{
    int64_t table[20] = {1};

    open_model(13);
    input("x", 1, "4", "n");
    int64s("table", table, 20);
    INT64S("zero", 0);
    node("Gather", "table,zero", "some", NULL);
    node("ReduceSum", "x,some", "y", attr_int("keepdims", 0));
    output("y");
    limits("known-elements", 19, TEC_UNSUPPORTED,
           "m.onnx: error: 1 part of the model is not supported\n"
           "m.onnx: note: node 'the_y' (ReduceSum): axes computed from integers of too many "
           "elements" NAMED("known-elements", "19"));
    TYPE_IS("f32[4]");
}

/* A table that is computed itself: 3 copies of 4 integers. */
Test(onnx_limits, known_elements_of_a_result)
{
    open_model(13);
    input("x", 1, "4", "n");
    INT64S("four", 1, 0, 0, 0);
    INT64S("zero", 0);
    node("Concat", "four,four,four", "table", attr_int("axis", 0));
    node("Gather", "table,zero", "some", NULL);
    node("ReduceSum", "x,some", "y", attr_int("keepdims", 0));
    output("y");
    limits("known-elements", 11, TEC_UNSUPPORTED,
           "m.onnx: error: 1 part of the model is not supported\n"
           "m.onnx: note: node 'the_y' (ReduceSum): axes computed from integers of too many "
           "elements" NAMED("known-elements", "11"));
}

/* The number of elements of x, squared three times, as a shape. */
Test(onnx_limits, terms_of_a_shape)
{
    open_model(13);
    input("x", 1, "n", "m");
    node("Size", "x", "s0", NULL);
    for (int i = 0; i < 3; i++)
        node("Mul", base_format(cx, "s%d,s%d", i, i), base_format(cx, "s%d", i + 1), NULL);
    INT64S("zero", 0);
    node("Unsqueeze", "s3,zero", "shape", NULL);
    node("ConstantOfShape", "shape", "y", NULL);
    output("y");
    cr_assert(tec_context_set_limit(cx, "dim-terms", 10));
    refused(TEC_UNSUPPORTED,
            "m.onnx: error: 1 part of the model is not supported\n"
            "m.onnx: note: node 'the_y' (ConstantOfShape): a shape that is an expression of too "
            "many terms" NAMED("dim-terms", "10"));
    cr_assert(tec_context_set_limit(cx, "dim-terms", 100));
    imported();
}

/* Ten concatenations of x with itself: an extent of ten terms and more. */
Test(onnx_limits, terms_of_a_result)
{
    open_model(13);
    input("x", 1, "n");
    input("y", 1, "m");
    node("Concat", "x,y", "z", attr_int("axis", 0));
    output("z");
    limits(
        "dim-terms", 2, TEC_INVALID,
        "m.onnx: node 'the_z' (Concat): error: concat 'the_z': result 0: dimension 0 is an expression of too "
        "many terms" NAMED("dim-terms", "2"));
}

Test(onnx_limits, bytes_of_a_tensor)
{
    open_model(13);
    input("x", 1, "5", "5");
    output("x");
    limits("tensor-bytes", 99, TEC_INVALID,
           "m.onnx: error: input 'x' is f32[5, 5]: it would have too many bytes" NAMED("tensor-bytes", "99"));
}

/* Each of the 2 elements is made of 2 * 4 others: the scale is a quarter. */
static void open_resize(void)
{
    open_model(18);
    input("x", 1, "8");
    FLOATS("scales", 0.25F);
    node("Resize", "x,,scales", "y", attr_string("mode", "linear"), attr_int("antialias", 1));
    output("y");
}

Test(onnx_limits, taps_of_resize)
{
    open_resize();
    limits("resize-taps", 7, TEC_UNSUPPORTED,
           "m.onnx: error: 1 part of the model is not supported\n"
           "m.onnx: note: node 'the_y' (Resize): 2 elements that are each made of 8 or "
           "more" NAMED("resize-taps", "7"));
}

Test(onnx_limits, weights_of_resize)
{
    open_resize();
    limits("resize-weights", 15, TEC_UNSUPPORTED,
           "m.onnx: error: 1 part of the model is not supported\n"
           "m.onnx: note: node 'the_y' (Resize): 2 elements that are each made of 8" NAMED("resize-weights",
                                                                                           "15"));
}

/* Three steps of a layer of one neuron. */
Test(onnx_limits, steps_of_a_recurrent_layer)
{
    const float one[] = {1};

    open_model(14);
    input("x", 1, "3", "1", "1");
    raw(tensor("w", 1, (const int64_t[]){1, 1, 1}, 3), one, sizeof one);
    raw(tensor("r", 1, (const int64_t[]){1, 1, 1}, 3), one, sizeof one);
    node("RNN", "x,w,r", "y", NULL);
    output("y");
    limits("recurrent-steps", 2, TEC_UNSUPPORTED,
           "m.onnx: error: 1 part of the model is not supported\n"
           "m.onnx: note: node 'the_y' (RNN): 3 steps" NAMED("recurrent-steps", "2"));
}

/* Whether the product of two constants is computed while the model is compiled. */
static bool is_folded(void)
{
    graph_module *m = graph_optimise(imported(), target_native(cx));

    cr_assert(m, "%s", tec_context_error(cx));
    return !strstr(graph_text(cx, m, 0), "matmul");
}

static void open_product(void)
{
    open_model(13);
    input("x", 1, "1");
    INT64S("shape", 8, 8);
    node("ConstantOfShape", "shape", "a", NULL);
    node("MatMul", "a,a", "b", NULL);
    node("Add", "b,x", "y", NULL);
    output("y");
}

Test(onnx_limits, elements_that_are_folded)
{
    open_product();
    cr_assert(is_folded());
    cr_assert(tec_context_set_limit(cx, "fold-elements", 63));
    cr_assert_not(is_folded());
    cr_assert(tec_context_set_limit(cx, "fold-elements", 64));
    cr_assert(is_folded());
}

Test(onnx_limits, work_of_folding)
{
    open_product();
    cr_assert(tec_context_set_limit(cx, "fold-work", 511));
    cr_assert_not(is_folded());
    cr_assert(tec_context_set_limit(cx, "fold-work", 512));
    cr_assert(is_folded());
}
