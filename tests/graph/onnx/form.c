/* tests/graph/onnx/form.c -- nodes that do not fit their operator: every kind is refused as ONNX's own
 * checker would refuse it. */
#include "tests/graph/onnx/kit.h"

TestSuite(onnx_form, .init = open_context, .fini = close_context);

/* A model with `x`: f32[4, 6], one node that makes `y`, and the error for it. */
#define REFUSED(opset, op, in, message, ...)                                                                 \
    do {                                                                                                     \
        open_model(opset);                                                                                   \
        input("x", 1, "4", "6");                                                                             \
        node(op, in, "y", __VA_ARGS__);                                                                      \
        output("y");                                                                                         \
        refused(TEC_INVALID, "m.onnx: error: node 'the_y' (" op "): " message);                              \
    } while (0)

/* An operand too many would be ignored, one too few would be read behind the list. */
Test(onnx_form, counts_operands)
{
    REFUSED(13, "Add", "x,x,x,x,x", "5 operands, expected 2", NULL);
    REFUSED(13, "Relu", "x,x,x", "3 operands, expected 1", NULL);
    REFUSED(13, "Clip", "x,,,x", "4 operands, expected 1 to 3", NULL);
    REFUSED(13, "Where", "x", "operand 1 is missing", NULL);
    REFUSED(13, "Concat", "x,,x", "operand 1 is missing", attr_int("axis", 0));
    REFUSED(6, "Clip", "x,x", "2 operands, expected 1", NULL);
}

Test(onnx_form, counts_results)
{
    open_model(13);
    input("x", 1, "4");
    node("Relu", "x", "y,z", NULL);
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y,z' (Relu): 2 results, expected 1");
    open_model(13);
    input("x", 1, "4");
    node("Relu", "x", "", NULL);
    refused(TEC_INVALID, "m.onnx: error: node 'the_' (Relu): 0 results, expected 1");
}

/* An attribute that is ignored is another model than the one that was meant. */
Test(onnx_form, knows_each_attribute)
{
    REFUSED(13, "Relu", "x", "there is no attribute 'alpha' in opset 13", attr_float("alpha", 1));
    REFUSED(13, "Add", "x,x", "there is no attribute 'axis' in opset 13", attr_int("axis", 1));
    REFUSED(9, "ArgMax", "x", "there is no attribute 'select_last_index' in opset 9",
            attr_int("select_last_index", 1));
    REFUSED(13, "Softmax", "x", "there are two attributes 'axis'", attr_int("axis", 0), attr_int("axis", 1));
    REFUSED(13, "Concat", "x", "attribute 'axis' is missing", NULL);
    REFUSED(13, "MaxPool", "x", "attribute 'kernel_shape' is missing", NULL);
    REFUSED(13, "DepthToSpace", "x", "attribute 'blocksize' is missing", NULL);
    REFUSED(13, "Cast", "x", "attribute 'to' is missing", NULL);
    REFUSED(13, "BitShift", "x,x", "attribute 'direction' is missing", NULL);
}

/* A file says the type of an attribute, or its fields alone tell it: a value of another type must not be
 * read as 0. */
Test(onnx_form, knows_the_types_and_values_of_attributes)
{
    Onnx__AttributeProto *typed = attr_int("axis", 1), *of_function = attr_int("axis", 1);

    REFUSED(13, "Softmax", "x", "attribute 'axis' is a float, expected an int", attr_float("axis", 1));
    REFUSED(13, "Transpose", "x", "attribute 'perm' is an int, expected a list of ints", attr_int("perm", 1));
    REFUSED(13, "MaxPool", "x",
            "attribute 'auto_pad' is 'FOO', expected one of NOTSET|SAME_UPPER|SAME_LOWER|VALID",
            attr_string("auto_pad", "FOO"));
    REFUSED(13, "DepthToSpace", "x", "attribute 'mode' is 'CR', expected one of DCR|CRD",
            attr_int("blocksize", 2), attr_string("mode", "CR"));
    REFUSED(11, "Pad", "x,x", "attribute 'mode' is 'wrap', expected one of constant|reflect|edge",
            attr_string("mode", "wrap"));
    typed->has_type = true;
    typed->type = 1;
    REFUSED(13, "Softmax", "x", "attribute 'axis' is a float, expected an int", typed);
    of_function->ref_attr_name = "outer";
    REFUSED(13, "Softmax", "x",
            "attribute 'axis' refers to an attribute of a function, but this node is not in a function",
            of_function);
}

/* Files that are no faults: attributes of opset 1 that meant nothing, zeros that a writer leaves out, notes
 * of its own. */
Test(onnx_form, passes_what_old_files_and_other_writers_say)
{
    Onnx__AttributeProto *zero = attr_int("axis", 0);

    open_model(1);
    input("x", 1, "4", "6");
    node("Relu", "x", "r", INTS("consumed_inputs", 0));
    /* A writer that leaves zeros out, and one with a note of its own. */
    zero->has_i = false;
    zero->has_type = true;
    zero->type = 2;
    node("ArgMax", "r", "y", zero, attr_int("__note", 3));
    output("y");
    TYPE_IS("i64[1, 6]");
}

/* Nodes find their operands by name, so the second value of a name would hide the first. */
Test(onnx_form, a_name_is_one_value)
{
    open_model(13);
    input("x", 1, "4");
    node("Relu", "x", "y", NULL);
    node("Neg", "x", "y", NULL);
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y' (Neg): result 'y' has the same name as another value");
    open_model(13);
    input("x", 1, "4");
    node("Relu", "x", "x", NULL);
    output("x");
    refused(TEC_INVALID, "m.onnx: error: node 'the_x' (Relu): result 'x' has the same name as another value");
    open_model(13);
    input("x", 1, "4");
    node("Split", "x", "y,y", NULL);
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y,y' (Split): two results are named 'y'");
    open_model(13);
    input("x", 1, "4");
    input("x", 1, "4");
    refused(TEC_INVALID, "m.onnx: error: there are two inputs 'x'");
    open_model(13);
    INT64S("w", 1);
    INT64S("w", 2);
    refused(TEC_INVALID, "m.onnx: error: there are two initializers 'w'");
    open_model(13);
    input("x", 1, "4");
    output("x");
    output("x");
    refused(TEC_INVALID, "m.onnx: error: there are two outputs 'x'");
}

/* What an operator means depends on the operator set: one that tec does not know may mean anything. */
Test(onnx_form, operator_sets_have_a_range)
{
    open_model(0);
    refused(TEC_INVALID, "m.onnx: error: operator set 0, expected 1 or later");
    open_model(1000);
    refused(TEC_UNSUPPORTED,
            "m.onnx: error: operator set 1000 is newer than the newest one that tec knows, 28");
    open_model(13);
    g->n_node = 0;
    input("x", 1, "4");
    node("", "x", "y", NULL);
    refused(TEC_INVALID, "m.onnx: error: node 'the_y' (): the node names no operator");
}

Test(onnx_form, dtypes_that_tec_lacks_have_a_name)
{
    open_model(19);
    input("x", 17, "4");
    output("x");
    refused(TEC_UNSUPPORTED, "m.onnx: error: 1 part of the model is not supported\nm.onnx: note: input 'x': "
                             "elements of type float8e4m3fn");
    open_model(19);
    input("x", 99, "4");
    output("x");
    refused(TEC_UNSUPPORTED, "m.onnx: error: 1 part of the model is not supported\nm.onnx: note: input 'x': "
                             "elements of type 99, which ONNX does not have");
}

/* ---- values that do not fit each other ---- */

/* f32[4, 6], an operator of operands that are lists of ints, and the error. */
#define WITH_LISTS(opset, op, names, message, lists, ...)                                                    \
    do {                                                                                                     \
        open_model(opset);                                                                                   \
        input("x", 1, "4", "6");                                                                             \
        lists;                                                                                               \
        node(op, "x," names, "y", __VA_ARGS__);                                                              \
        output("y");                                                                                         \
        refused(TEC_INVALID, "m.onnx: error: node 'the_y' (" op "): " message);                              \
    } while (0)

/* Each list is read up to the length of the starts: shorter ones were read behind their ends. */
Test(onnx_form, lists_of_a_slice_are_equally_long)
{
    WITH_LISTS(13, "Slice", "s,e,a,p", "4 starts, 1 ends, 4 axes, 4 steps: expected equal numbers",
               (INT64S("s", 0, 0, 0, 0), INT64S("e", 1), INT64S("a", 0, 1, 2, 3), INT64S("p", 1, 1, 1, 1)),
               NULL);
    WITH_LISTS(13, "Slice", "s,e,a,p", "2 starts, 2 ends, 1 axes, 2 steps: expected equal numbers",
               (INT64S("s", 0, 0), INT64S("e", 1, 1), INT64S("a", 0), INT64S("p", 1, 1)), NULL);
    WITH_LISTS(13, "Slice", "s,e,a,p", "2 starts, 2 ends, 2 axes, 1 steps: expected equal numbers",
               (INT64S("s", 0, 0), INT64S("e", 1, 1), INT64S("a", 0, 1), INT64S("p", 1)), NULL);
    WITH_LISTS(13, "Slice", "s,e,a,p", "expected a step other than 0, found 0",
               (INT64S("s", 0), INT64S("e", 1), INT64S("a", 0), INT64S("p", 0)), NULL);
    WITH_LISTS(13, "Slice", "s,e,a", "axis 1 is given twice",
               (INT64S("s", 0, 0), INT64S("e", 1, 1), INT64S("a", 1, -1)), NULL);
    REFUSED(9, "Slice", "x", "2 starts, 1 ends, 2 axes, 2 steps: expected equal numbers",
            INTS("starts", 0, 0), INTS("ends", 1));
    REFUSED(9, "Slice", "x", "found 3 bounds for an operand of 2 dimensions", INTS("starts", 0, 0, 0),
            INTS("ends", 1, 1, 1));
}

/* Extents below 0 have one meaning, -1, in one place. */
Test(onnx_form, shapes_of_a_reshape_mean_something)
{
    WITH_LISTS(13, "Reshape", "s", "dimension 0 is -2, expected -1 or more", INT64S("s", -2, 12), NULL);
    WITH_LISTS(13, "Reshape", "s",
               "dimensions 0 and 2 are both -1: only one extent can be computed from the others",
               INT64S("s", -1, 4, -1), NULL);
    WITH_LISTS(13, "Expand", "s", "expected extents of at least 0, but dimension 1 of the shape is -6",
               INT64S("s", 4, -6), NULL);
    WITH_LISTS(13, "Unsqueeze", "a", "axis 0 is given twice", INT64S("a", 0, 0), NULL);
    WITH_LISTS(13, "ReduceSum", "a", "axis 1 is given twice", INT64S("a", 1, -1), NULL);
}

/* Parts are slices: sizes that do not add up would leave elements out, or overflow. */
Test(onnx_form, sizes_of_a_split_add_up)
{
    open_model(13);
    input("x", 1, "4");
    INT64S("s", 1, 1);
    node("Split", "x,s", "y,z", NULL);
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y,z' (Split): the sizes add up to 2, but the extent is 4");
    open_model(13);
    input("x", 1, "4");
    INT64S("s", 2, INT64_MAX);
    node("Split", "x,s", "y,z", NULL);
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y,z' (Split): size 9223372036854775807 of part 1 does not "
                         "fit: 2 of the extent 4 are left");
    open_model(13);
    input("x", 1, "5");
    node("Split", "x", "y,z", NULL);
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y,z' (Split): cannot split extent 5 into 2 equal parts");
    open_model(18);
    input("x", 1, "4");
    node("Split", "x", "y,z", attr_int("num_outputs", 3));
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y,z' (Split): expected one size for each result, found 3 "
                         "sizes for 2 results");
}

/* x: f32[1, 1, extent], and w: the weights of a convolution over three elements. */
static void open_line(const char *extent)
{
    open_model(13);
    input("x", 1, "1", "1", extent);
    raw(tensor("w", 1, (const int64_t[]){1, 1, 3}, 3), (const float[]){1, 2, 3}, 12);
}

/* Numbers of 62 bits overflowed in the extent of the result; a kernel or stride of 0 divided by 0. */
Test(onnx_form, windows_are_in_range)
{
    static const int64_t huge = (int64_t)1 << 62;
    static const struct {
        const char *name;
        int64_t value;
        const char *message;
    } wrong[] = {
        {"kernel_shape", 0, "kernel 0, stride 1, dilation 1 in spatial dimension 0: expected at least 1"},
        {"kernel_shape", -1, "kernel -1, stride 1, dilation 1 in spatial dimension 0: expected at least 1"},
        {"kernel_shape", huge,
         "kernel 4611686018427387904, stride 1, dilation 1 in spatial dimension 0: expected at most "
         "1073741824"},
        {"strides", huge,
         "kernel 2, stride 4611686018427387904, dilation 1 in spatial dimension 0: expected at most "
         "1073741824"},
        {"dilations", huge,
         "kernel 2, stride 1, dilation 4611686018427387904 in spatial dimension 0: expected at most "
         "1073741824"},
        {"pads", -3, "padding -3, expected 0 to 1073741824"},
        {"pads", huge, "padding 4611686018427387904, expected 0 to 1073741824"},
    };

    for (int i = 0; i < BASE_COUNT(wrong); i++) {
        open_model(13);
        input("x", 1, "1", "1", "5");
        Onnx__AttributeProto *a = attr_ints(wrong[i].name, (const int64_t[]){wrong[i].value, wrong[i].value},
                                            base_same(wrong[i].name, "pads") ? 2 : 1);
        node("MaxPool", "x", "y", a,
             base_same(wrong[i].name, "kernel_shape") ? NULL : INTS("kernel_shape", 2));
        output("y");
        refused(TEC_INVALID, base_format(cx, "m.onnx: error: node 'the_y' (MaxPool): %s", wrong[i].message));
    }
    open_line("5");
    node("Conv", "x,w", "y", INTS("kernel_shape", 5));
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y' (Conv): 'kernel_shape' is 5 in spatial dimension 0, "
                         "but the weights have extent 3");
}

Test(onnx_form, the_shape_of_a_transposed_convolution_is_in_range)
{
    open_line("3");
    node("ConvTranspose", "x,w", "y", INTS("output_shape", INT64_MIN));
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y' (ConvTranspose): 'output_shape' is "
                         "-9223372036854775808 in spatial dimension 0");
}

Test(onnx_form, the_padding_of_a_transposed_convolution_is_in_range)
{
    open_line("3");
    node("ConvTranspose", "x,w", "y", INTS("pads", 0, INT64_MIN));
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y' (ConvTranspose): padding -9223372036854775808, "
                         "expected at most 1073741824");
}

/* ---- what would grow without end ---- */

#define LIMIT_BYTES                                                                                          \
    "; the limit 'tensor-bytes' is 140737488355328 (--limit tensor-bytes=N, tec_context_set_limit)"

/* Products of extents overflowed, which made a huge tensor look small. */
Test(onnx_form, no_tensor_is_larger_than_memory_can_be)
{
    open_model(13);
    input("x", 1, "4611686018427387904", "4", "4");
    output("x");
    refused(TEC_INVALID, "m.onnx: error: input 'x' is f32[4611686018427387904, 4, 4]: it would have too many "
                         "bytes" LIMIT_BYTES);
    open_model(13);
    input("x", 1, "n", "1", "1");
    INT64S("s", 1, 1099511627776, 1099511627776);
    node("Expand", "x,s", "y", NULL);
    output("y");
    refused(TEC_INVALID, "m.onnx: node 'the_y' (Expand): error: expand 'the_y': result 0: it would have too "
                         "many bytes" LIMIT_BYTES);
}

/* The number of elements of x, squared forty times, as a shape: an expression of 2^40 terms. */
Test(onnx_form, expressions_of_shapes_stay_short)
{
    open_model(13);
    input("x", 1, "n", "m");
    node("Size", "x", "s0", NULL);
    for (int i = 0; i < 40; i++)
        node("Mul", base_format(cx, "s%d,s%d", i, i), base_format(cx, "s%d", i + 1), NULL);
    INT64S("zero", 0);
    node("Unsqueeze", "s40,zero", "shape", NULL);
    node("Expand", "x,shape", "y", NULL);
    output("y");
    refused(TEC_UNSUPPORTED,
            "m.onnx: error: 1 part of the model is not supported\n"
            "m.onnx: note: node 'the_y' (Expand): a shape that is an expression of too many terms; "
            "the limit 'dim-terms' is 1000 (--limit dim-terms=N, tec_context_set_limit)");
}

/* ---- bounds and functions that were misread ---- */

static const char *text_of(const char *op)
{
    const char *text = graph_text(cx, imported(), 0), *at = strstr(text, base_format(cx, "= op %s ", op));

    cr_assert(at, "no %s in %s", op, text);
    return base_strndup(cx, at, strcspn(at, "\n"));
}

Test(onnx_form, a_slice_backwards_of_nothing_is_empty)
{
    open_model(13);
    input("x", 1, "3", "0");
    INT64S("s", -1);
    INT64S("e", INT64_MIN);
    INT64S("a", 1);
    INT64S("p", -1);
    node("Slice", "x,s,e,a,p", "y", NULL);
    output("y");
    TYPE_IS("f32[3, 0]");
}

Test(onnx_form, a_slice_of_a_symbolic_dimension_has_a_short_extent)
{
    open_model(13);
    input("x", 1, "n", "m");
    INT64S("s", 2);
    INT64S("e", 5);
    INT64S("a", 1);
    node("Slice", "x,s,e,a", "y", NULL);
    output("y");
    TYPE_IS("f32[n, max(0, min(5, m) - 2)]");
}

Test(onnx_form, reductions_over_no_axes_keep_their_function)
{
    open_model(18);
    input("x", 1, "4");
    node("ReduceL1", "x", "y", attr_int("noop_with_empty_axes", 1));
    output("y");
    cr_assert(strstr(text_of("reduce_l1"), "@axes([])"), "%s", text_of("reduce_l1"));
    TYPE_IS("f32[4]");
}

Test(onnx_form, a_gemm_of_integers_is_scaled_by_fractions)
{
    open_model(13);
    input("a", 6, "2", "3");
    input("b", 6, "3", "2");
    node("Gemm", "a,b", "y", attr_float("alpha", 0.5));
    output("y");
    cr_assert(strstr(text_of("mul"), "\"the_y\""), "%s", text_of("mul"));
    cr_assert(strstr(graph_text(cx, imported(), 0), "f64[2, 2] = op mul"), "%s",
              graph_text(cx, imported(), 0));
    TYPE_IS("i32[2, 2]");
}

Test(onnx_form, pads_may_be_for_chosen_axes)
{
    open_model(18);
    input("x", 1, "2", "3", "4");
    INT64S("p", 1, 2);
    INT64S("a", -2);
    node("Pad", "x,p,,a", "y", attr_string("mode", "wrap"));
    output("y");
    TYPE_IS("f32[2, 6, 4]");
}

Test(onnx_form, defaults_of_attributes_are_float32)
{
    open_model(16);
    input("x", 11, "4");
    node("LeakyRelu", "x", "l", NULL);
    node("HardSwish", "l", "y", NULL);
    output("y");
    cr_assert(strstr(text_of("leaky_relu"), "0x1.47ae14p-7"), "%s", text_of("leaky_relu"));
    cr_assert(strstr(text_of("hard_swish"), "0x1.555556p-3"), "%s", text_of("hard_swish"));
}
