/* tests/graph/onnx/run.c -- models of one node, run: operators whose sizes, axes or numbers must be constants
 * of the model.
 *
 * The expected numbers are those of ONNX's reference evaluator. Operators whose operands may all be inputs
 * are compared with the ONNX backend tests (tests/suite/onnx.sh).
 */
#include "tests/graph/onnx/run.h"
#include "graph/pass.h"

TestSuite(onnx_run, .init = open_context, .fini = close_context);

/* The model of the kit on x, an array of its one input: output 0. */
static void gives(const void *x, DLDataType t, const double *expected, int64_t count)
{
    tec_error err = {0};
    tec_tensor_info info;
    compiled c = compile_model(imported());

    cr_assert(tec_executor_input_info(c.executor, 0, &info, &err), "%s", err.text);
    const DLTensor in = tensor_of(t, x, info.ndim, info.shape);
    cr_assert(tec_executor_set_input(c.executor, 0, &in, &err) && tec_executor_run(c.executor, &err), "%s",
              err.text);
    has_elements(tec_executor_output(c.executor, 0), expected, count, 2e-5);
    discard(&c);
}
#define GIVES(x, ...)                                                                                        \
    gives((x), f32, (const double[]){__VA_ARGS__},                                                           \
          (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

static const float twelve[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

/* ---- resize ---- */

static void open_resize(float height, float width)
{
    open_model(18);
    input("x", 1, "1", "1", "3", "4");
    FLOATS("scales", 1, 1, height, width);
    output("y");
}

Test(onnx_run, resize_nearest)
{
    open_resize(1.5f, 2);
    node("Resize", "x,,scales", "y", NULL);
    GIVES(twelve, 1, 1, 2, 2, 3, 3, 4, 4, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11,
          11, 12, 12);
}

Test(onnx_run, resize_linear)
{
    open_resize(1.5f, 2);
    node("Resize", "x,,scales", "y", attr_string("mode", "linear"));
    GIVES(twelve, 1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4, 3, 3.25, 3.75, 4.25, 4.75, 5.25, 5.75, 6,
          5.6666665, 5.9166665, 6.4166665, 6.9166665, 7.4166665, 7.9166665, 8.416667, 8.666667, 8.333333,
          8.583333, 9.083333, 9.583333, 10.083333, 10.583333, 11.083333, 11.333333);
}

Test(onnx_run, resize_linear_by_corners)
{
    open_resize(1.5f, 1);
    node("Resize", "x,,scales", "y", attr_string("mode", "linear"),
         attr_string("coordinate_transformation_mode", "align_corners"));
    GIVES(twelve, 1, 2, 3, 4, 3.2857143, 4.2857143, 5.2857143, 6.2857143, 5.5714288, 6.5714288, 7.5714288,
          8.5714288, 7.857143, 8.857143, 9.857143, 10.857143);
}

Test(onnx_run, resize_cubic_without_what_lies_outside)
{
    open_resize(1.5f, 1);
    node("Resize", "x,,scales", "y", attr_string("mode", "cubic"), attr_int("exclude_outside", 1));
    GIVES(twelve, 0.5945944, 1.5945945, 2.5945945, 3.5945945, 2.4857142, 3.4857142, 4.4857144, 5.4857144,
          5.973834, 6.973834, 7.973834, 8.973834, 8.535673, 9.535673, 10.535673, 11.535673);
}

Test(onnx_run, resize_smooths_what_becomes_smaller)
{
    open_resize(0.6f, 0.5f);
    node("Resize", "x,,scales", "y", attr_string("mode", "linear"), attr_int("antialias", 1));
    GIVES(twelve, 3.125, 4.875);
}

Test(onnx_run, resize_to_sizes_of_some_axes)
{
    open_model(18);
    input("x", 1, "1", "1", "3", "4");
    INT64S("sizes", 2);
    node("Resize", "x,,,sizes", "y", INTS("axes", -1), attr_string("nearest_mode", "floor"));
    output("y");
    GIVES(twelve, 1, 3, 5, 7, 9, 11);
}

Test(onnx_run, upsample_by_its_attribute)
{
    static const float scales[] = {1, 1, 1, 2};
    Onnx__AttributeProto *a = MESSAGE(Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);

    a->name = "scales";
    a->n_floats = 4;
    a->floats = base_copy(cx, scales, sizeof scales);
    open_model(8);
    input("x", 1, "1", "1", "1", "3");
    node("Upsample", "x", "y", a);
    output("y");
    GIVES(twelve, 1, 1, 2, 2, 3, 3);
}

/* ---- order and counting ---- */

Test(onnx_run, top_k_of_a_constant_number)
{
    static const float x[] = {3, 1, 4, 1, 5, 9, 2, 6};

    open_model(11);
    input("x", 1, "2", "4");
    INT64S("k", 3);
    node("TopK", "x,k", "y,at", NULL);
    output("y");
    GIVES(x, 4, 3, 1, 9, 6, 5);
    open_model(11);
    input("x", 1, "2", "4");
    INT64S("k", 3);
    node("TopK", "x,k", "v,y", attr_int("largest", 0));
    output("y");
    GIVES(x, 1, 3, 0, 2, 0, 3);
}

Test(onnx_run, cum_sum_of_a_constant_axis)
{
    open_model(14);
    input("x", 1, "2", "3");
    INT64S("axis", -1);
    node("CumSum", "x,axis", "y", attr_int("exclusive", 1), attr_int("reverse", 1));
    output("y");
    GIVES(twelve, 5, 3, 0, 11, 6, 0);
}

/* Two sums of three rows, which are read as one of six that begins again. */
Test(onnx_run, cum_sum_of_rows)
{
    double sums[2 * 3 * 17];
    float x[2 * 3 * 17];

    for (int i = 0; i < BASE_COUNT(x); i++) {
        x[i] = (float)(i % 7) - 2;
        sums[i] = (double)x[i] + (i / 17 % 3 ? sums[i - 17] : 0);
    }
    open_model(14);
    input("x", 1, "2", "3", "17");
    INT64S("axis", 1);
    node("CumSum", "x,axis", "y", NULL);
    output("y");
    gives(x, f32, sums, BASE_COUNT(sums));
}

Test(onnx_run, one_hot_of_a_constant_depth)
{
    open_model(11);
    input("x", 7, "3");
    INT64S("depth", 3);
    FLOATS("values", 5, 7);
    node("OneHot", "x,depth,values", "y", attr_int("axis", 0));
    output("y");
    gives((const int64_t[]){1, -2, 0}, i64, (const double[]){5, 5, 7, 7, 7, 5, 5, 5, 5}, 9);
}

Test(onnx_run, range_up_to_a_symbolic_extent)
{
    open_model(14);
    input("x", 1, "n");
    INT64S("zero", 0);
    raw(tensor("start", 7, NULL, 0), (const int64_t[]){1}, 8);
    raw(tensor("step", 7, NULL, 0), (const int64_t[]){2}, 8);
    node("Size", "x", "n", NULL);
    node("Range", "start,n,step", "y", NULL);
    output("y");
    TYPE_IS("i64[floordiv(n, 2)]");
}

/* ---- normalisations and activations ---- */

Test(onnx_run, group_normalization)
{
    open_model(21);
    input("x", 1, "1", "4", "2");
    FLOATS("scale", 1, 2, 3, 4);
    FLOATS("bias", 0, 1, 0, 1);
    node("GroupNormalization", "x,scale,bias", "y", attr_int("num_groups", 2));
    output("y");
    GIVES(((const float[]){0, 1, 2, 3, 4, 5, 6, 7}), -1.3416355, -0.44721183, 1.8944237, 3.683271, -4.024906,
          -1.3416355, 2.7888474, 6.366542);
}

Test(onnx_run, activations_of_transformers)
{
    static const float x[] = {-2, -0.5f, 0, 1, 3};
    static const struct {
        const char *op, *approximate;
        double y[5];
    } rows[] = {
        {"Gelu", NULL, {-0.04550028, -0.15426877, 0, 0.8413447, 2.9959502}},
        {"Gelu", "tanh", {-0.04540235, -0.154286, 0, 0.841192, 2.9963627}},
        {"Mish", NULL, {-0.25250146, -0.22074378, 0, 0.8650984, 2.986535}},
    };

    for (int i = 0; i < BASE_COUNT(rows); i++) {
        open_model(20);
        input("x", 1, "5");
        node(rows[i].op, "x", "y",
             rows[i].approximate ? attr_string("approximate", rows[i].approximate) : NULL);
        output("y");
        gives(x, f32, rows[i].y, 5);
    }
}

Test(onnx_run, lp_normalization)
{
    open_model(18);
    input("x", 1, "2", "2");
    node("LpNormalization", "x", "y", attr_int("axis", 1));
    output("y");
    GIVES(((const float[]){3, 4, 6, 8}), 0.6, 0.8, 0.6, 0.8);
}

/* ---- the rest ---- */

Test(onnx_run, an_einsum_that_turns_its_result)
{
    open_model(12);
    input("x", 1, "2", "3");
    raw(tensor("w", 1, (const int64_t[]){3, 4}, 2), (const float[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
        48);
    node("Einsum", "x,w", "y", attr_string("equation", "ij, jk -> ki"));
    output("y");
    GIVES(((const float[]){0, 1, 2, 3, 4, 5}), 20, 56, 23, 68, 26, 80, 29, 92);
}

Test(onnx_run, quantised_by_column)
{
    open_model(13);
    input("x", 1, "2", "3");
    FLOATS("scale", 1, 2, 3);
    raw(tensor("zero", 3, (const int64_t[]){3}, 1), (const int8_t[]){0, 10, 20}, 3);
    node("QuantizeLinear", "x,scale,zero", "y", attr_int("axis", 1));
    output("y");
    GIVES(((const float[]){-300, 2.5f, 3.5f, 1, 4, 900}), -128, 11, 21, 1, 12, 127);
}

Test(onnx_run, a_gemm_of_integers_keeps_its_fractions)
{
    open_model(13);
    input("x", 6, "2", "2");
    raw(tensor("b", 6, (const int64_t[]){2, 2}, 2), (const int32_t[]){3, 0, 0, 5}, 16);
    node("Gemm", "x,b", "y", attr_float("alpha", 0.5f));
    output("y");
    gives((const int32_t[]){1, 2, 4, -3}, (DLDataType){kDLInt, 32, 1}, (const double[]){1, 5, 6, -7}, 4);
}

Test(onnx_run, a_reduction_over_nothing_and_a_wrap_of_one_axis)
{
    open_model(18);
    input("x", 1, "2");
    node("ReduceLogSum", "x", "y", attr_int("noop_with_empty_axes", 1));
    output("y");
    GIVES(((const float[]){1, 4}), 0, 1.3862944);
    open_model(19);
    input("x", 1, "2", "3");
    INT64S("pads", 2, 1);
    INT64S("axes", 1);
    node("Pad", "x,pads,,axes", "y", attr_string("mode", "wrap"));
    output("y");
    GIVES(((const float[]){0, 1, 2, 3, 4, 5}), 1, 2, 0, 1, 2, 0, 4, 5, 3, 4, 5, 3);
}

Test(onnx_run, a_slice_backwards_by_two)
{
    open_model(13);
    input("x", 1, "2", "4");
    INT64S("s", 10);
    INT64S("e", -11);
    INT64S("a", 1);
    INT64S("p", -2);
    node("Slice", "x,s,e,a,p", "y", NULL);
    output("y");
    GIVES(((const float[]){0, 1, 2, 3, 4, 5, 6, 7}), 3, 1, 7, 5);
}

/* A product of constants whose work is past what is computed while importing becomes part of the model. */
Test(onnx_run, what_takes_long_to_fold_is_left_to_the_model)
{
    open_model(13);
    input("x", 1, "1");
    INT64S("shape", 12000, 12000);
    node("ConstantOfShape", "shape", "a", NULL);
    node("MatMul", "a,a", "b", NULL);
    node("Add", "b,x", "y", NULL);
    output("y");
    graph_module *m = graph_optimise(imported(), target_native(cx));
    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert(strstr(graph_text(cx, m, 0), "matmul"), "%s", graph_text(cx, m, 0));
}

/* v = v + v of constants, sixty times: folded in several rounds. */
Test(onnx_run, a_long_chain_of_constants_is_folded_in_rounds)
{
    open_model(13);
    input("x", 1, "1");
    FLOATS("v0", 1);
    for (int i = 0; i < 60; i++)
        node("Add", base_format(cx, "v%d,v%d", i, i), base_format(cx, "v%d", i + 1), NULL);
    node("Add", "v60,x", "y", NULL);
    output("y");
    GIVES(((const float[]){0}), 1152921504606846976.0);
}
