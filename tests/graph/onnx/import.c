/* tests/graph/onnx/import.c -- models: what is not supported, shapes that are computed, forms of old opsets,
 * damaged bytes. */
#include "tests/graph/onnx/kit.h"

TestSuite(onnx_import, .init = open_context, .fini = close_context);

/* ---- what is not supported, what is wrong ---- */

Test(onnx_import, names_all_that_is_not_supported_at_once)
{
    open_model(13);
    input("x", 1, "3");
    node("Frobnicate", "x", "a", NULL);
    node("Relu", "a", "b", NULL);
    node("Relu", "x", "c", NULL);
    node("Transmogrify", "c", "d", NULL);
    node("Own", "x", "e", NULL)->domain = "com.example";
    node("GridSample", "x", "f", NULL);
    output("b");
    output("d");
    cr_assert_null(import_model());
    cr_assert_eq(tec_context_status(cx), TEC_UNSUPPORTED);
    const char *text = tec_context_error(cx);
    cr_assert(strstr(text, "m.onnx: error: 4 parts of the model are not supported\n"), "%s", text);
    cr_assert(strstr(text, "node 'the_a' (Frobnicate): there is no such operator here"), "%s", text);
    cr_assert(strstr(text, "node 'the_d' (Transmogrify): there is no such operator here"), "%s", text);
    cr_assert(strstr(text, "node 'the_e' (Own): operators of domain 'com.example'"), "%s", text);
    cr_assert(strstr(text, "node 'the_f' (GridSample)"), "%s", text);
    cr_assert_not(strstr(text, "the_b"), "what only hangs on it is not named: %s", text);
}

Test(onnx_import, inputs_that_are_no_tensors_are_named)
{
    open_model(13);
    input("x", 8, "3");
    input("y", 1, "3");
    g->input[1]->type->tensor_type->shape = NULL;
    node("Relu", "x", "z", NULL);
    output("z");
    refused(TEC_UNSUPPORTED, "m.onnx: error: 2 parts of the model are not supported\nm.onnx: note: input "
                             "'x': elements of type string\n"
                             "m.onnx: note: input 'y': its rank is not known");
}

Test(onnx_import, wrong_models_are_refused)
{
    open_model(13);
    input("x", 1, "3");
    node("Relu", "nowhere", "y", NULL);
    output("y");
    refused(TEC_INVALID, "m.onnx: error: node 'the_y' (Relu): operand 'nowhere' is not the result of an "
                         "earlier node, an input or an initializer");

    open_model(13);
    output("y");
    refused(TEC_INVALID, "m.onnx: error: no node computes output 'y'");

    open_model(13);
    input("x", 1, "3");
    input("z", 1, "4");
    node("Add", "x,z", "y", NULL);
    output("y");
    cr_assert_null(import_model());
    cr_assert(strstr(tec_context_error(cx), "m.onnx: node 'the_y' (Add): error: add 'the_y': operand 1 is "
                                            "f32[4]: dimension 0 does not broadcast with '3'"),
              "%s", tec_context_error(cx));
    tec_context_clear(cx);

    cr_assert_null(onnx_import_bytes(cx, "m.onnx", "hello", 5, NULL));
    cr_assert_str_eq(tec_context_error(cx), "m.onnx: error: the file is not an ONNX model, or it is damaged");
}

/* Every operator with no operands, and with one that it does not expect: an error, never more. */
Test(onnx_import, operators_without_operands_are_refused)
{
    static const char *const ops[] = {
        "Relu",
        "Add",
        "Clip",
        "Softmax",
        "Reshape",
        "Conv",
        "Gemm",
        "MatMul",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "BatchNormalization",
        "Concat",
        "Slice",
        "Pad",
        "Split",
        "Squeeze",
        "Unsqueeze",
        "Gather",
        "Expand",
        "Tile",
        "Transpose",
        "Flatten",
        "Shape",
        "Size",
        "ConstantOfShape",
        "Range",
        "Constant",
        "ReduceSum",
        "ArgMax",
        "Cast",
        "Where",
        "LSTM",
        "Identity",
        "Dropout",
        "PRelu",
        "Pow",
        "Mod",
        "IsInf",
        "BitShift",
        "InstanceNormalization",
        "LRN",
        "DepthToSpace",
        "SpaceToDepth",
        "Sum",
        "Max",
        "Mean",
        "LayerNormalization",
        "Resize",
        "Upsample",
        "GlobalMaxPool",
        "CastLike",
        "Not",
        "HardSwish",
        "Selu",
        "LogSoftmax",
    };

    for (int i = 0; i < BASE_COUNT(ops); i++)
        for (int form = 0; form < 4; form++)
            for (int opset = 1; opset <= 17; opset += 4) {
                static const char *const operands[] = {"", "x", "x,x,x", ",,x"};

                open_model(opset);
                input("x", 1, "2", "n");
                node(ops[i], operands[form], "y", NULL);
                output("y");
                graph_module *m = import_model();
                cr_assert(m ? graph_verify(m) : tec_context_status(cx) != TEC_INTERNAL,
                          "%s(%s) in opset %d: %s", ops[i], operands[form], opset, tec_context_error(cx));
                tec_context_clear(cx);
            }
}

/* Not every function takes every type: some would be written for a type that an inner step refuses. */
Test(onnx_import, element_wise_operators_refuse_types_that_they_do_not_take)
{
    static const char *const ops[] = {"Round", "Softplus", "Elu", "Sigmoid", "Erf"};

    for (int i = 0; i < BASE_COUNT(ops); i++)
        for (int type = 6; type <= 9; type += 3) {
            open_model(14);
            input("x", type, "n");
            node(ops[i], "x", "y", NULL);
            output("y");
            cr_assert_null(import_model(), "%s of type %d", ops[i], type);
            cr_assert_eq(tec_context_status(cx), TEC_INVALID, "%s", tec_context_error(cx));
            cr_assert(strstr(tec_context_error(cx), "m.onnx: node 'the_y'"), "%s", tec_context_error(cx));
            tec_context_clear(cx);
        }
}

/* ---- shapes that are computed ---- */

Test(onnx_import, shape_gather_concat_reshape_on_symbols)
{
    open_model(13);
    input("x", 1, "batch", "3", "4");
    INT64S("zero", 0);
    INT64S("rest", -1);
    node("Shape", "x", "s", NULL);
    node("Gather", "s,zero", "b", attr_int("axis", 0));
    node("Concat", "b,rest", "t", attr_int("axis", 0));
    node("Reshape", "x,t", "y", NULL);
    output("y");
    TYPE_IS("f32[batch, 12]");
}

Test(onnx_import, arithmetic_and_slices_of_shapes)
{
    open_model(13);
    input("x", 1, "batch", "6", "h", "w");
    INT64S("one", 1);
    INT64S("two", 2);
    INT64S("end", 9223372036854775807);
    INT64S("minus", -1);
    node("Shape", "x", "s", NULL);
    node("Slice", "s,two,end", "hw", NULL);
    node("Slice", "s,minus,end", "w", NULL);
    node("Slice", "s,one,two", "c", NULL);
    node("Div", "c,two", "half", NULL);
    node("Concat", "minus,half,hw", "t", attr_int("axis", 0));
    node("Reshape", "x,t", "y", NULL);
    output("y");
    graph_module *m = imported();
    cr_assert(strstr(op_type_text(cx, &result(m, 0)->type), ", 3, h, w]"), "%s",
              op_type_text(cx, &result(m, 0)->type));
}

Test(onnx_import, squeezed_and_cast_shapes)
{
    open_model(13);
    input("x", 1, "batch", "6");
    INT64S("axes", 0);
    INT64S("first", 0);
    node("Shape", "x", "s", NULL);
    node("Gather", "s,first", "b", NULL);
    node("Squeeze", "b,axes", "scalar", NULL);
    node("Cast", "scalar", "i", attr_int("to", 6));
    node("Cast", "i", "l", attr_int("to", 7));
    node("Unsqueeze", "l,axes", "t", NULL);
    node("ConstantOfShape", "t", "y", NULL);
    output("y");
    TYPE_IS("f32[batch]");
}

Test(onnx_import, equal_names_of_dimensions_are_one_symbol)
{
    open_model(13);
    input("x", 1, "n", "3");
    input("z", 1, "n", "1");
    node("Add", "x,z", "y", NULL);
    output("y");
    TYPE_IS("f32[n, 3]");
}

Test(onnx_import, given_dimensions_take_the_place_of_symbols)
{
    size_t size;

    open_model(13);
    input("x", 1, "n", "", "3");
    node("Relu", "x", "y", NULL);
    output("y");
    uint8_t *bytes = packed(&size);
    const onnx_dim dims[] = {{"n", 8}, {"x.1", 5}};
    graph_module *m =
        onnx_import_bytes(cx, "m.onnx", bytes, size, &(onnx_options){.n_dims = 2, .dims = dims});
    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert_str_eq(op_type_text(cx, &result(m, 0)->type), "f32[8, 5, 3]");
}

/* What the import says of these values for a model with the input x: f32[batch, ?, 3] and z: f32[batch]. */
static const char *refusal_of_dims(const onnx_dim *dims, int n)
{
    size_t size;

    open_model(13);
    input("x", 1, "batch", "", "3");
    input("z", 1, "batch");
    node("Relu", "x", "y", NULL);
    output("y");
    uint8_t *bytes = packed(&size);
    cr_assert_null(onnx_import_bytes(cx, "m.onnx", bytes, size, &(onnx_options){.n_dims = n, .dims = dims}));
    cr_assert_eq(tec_context_status(cx), TEC_INVALID);
    return tec_context_error(cx);
}

Test(onnx_import, a_value_for_a_dimension_that_is_not_open_is_refused)
{
    const onnx_dim one[] = {{"bacth", 8}}, fixed[] = {{"x.2", 3}}, two[] = {{"batch", 8}, {"z.0", 4}};

    cr_expect_str_eq(
        refusal_of_dims(one, 1),
        "m.onnx: error: a value is given for dimension 'bacth', but the model leaves only these open: "
        "'batch', 'x.0', 'x.1', 'z.0'; did you mean 'batch'?");
    tec_context_clear(cx);
    cr_expect(strstr(refusal_of_dims(fixed, 1), "for dimension 'x.2', but the model leaves only these open"));
    tec_context_clear(cx);
    cr_expect_str_eq(refusal_of_dims(two, 2),
                     "m.onnx: error: dimension 'z.0' is given as 4, but as 'batch' it is given as 8");
}

/* ---- opsets ---- */

static const char *lines_with(const graph_module *m, const char *op)
{
    const char *at = strstr(graph_text(cx, m, 0), base_format(cx, "= op %s ", op));

    return at ? base_strndup(cx, at, strcspn(at, "\n")) : "";
}

Test(onnx_import, clip_takes_bounds_as_attributes_up_to_opset_10)
{
    for (int opset = 6; opset <= 11; opset += 5) {
        open_model(opset);
        input("x", 1, "n");
        if (opset < 11)
            node("Clip", "x", "y", attr_float("min", 1), attr_float("max", 2));
        else {
            raw(tensor("high", 1, NULL, 0), (const float[]){2}, 4);
            node("Clip", "x,,high", "y", NULL);
        }
        output("y");
        const graph_module *m = imported();
        cr_assert(*lines_with(m, "clip"), "%s", graph_text(cx, m, 0));
        cr_assert_eq(strstr(lines_with(m, "clip"), "_,") != NULL, opset == 11, "%s", lines_with(m, "clip"));
    }
}

Test(onnx_import, softmax_flattens_up_to_opset_12)
{
    open_model(12);
    input("x", 1, "n", "3", "4");
    node("Softmax", "x", "y", NULL);
    output("y");
    graph_module *m = imported();
    cr_assert(strstr(lines_with(m, "softmax"), "@axis(1)") && strstr(lines_with(m, "softmax"), "@flatten(1)"),
              "%s", lines_with(m, "softmax"));

    open_model(13);
    input("x", 1, "n", "3", "4");
    node("Softmax", "x", "y", NULL);
    output("y");
    m = imported();
    cr_assert(strstr(lines_with(m, "softmax"), "@axis(2)") &&
                  !strstr(lines_with(m, "softmax"), "@flatten(1)"),
              "%s", lines_with(m, "softmax"));
}

Test(onnx_import, reshape_takes_its_shape_as_an_attribute_up_to_opset_4)
{
    open_model(1);
    input("x", 1, "2", "6");
    node("Reshape", "x", "y", INTS("shape", 0, 3, -1));
    output("y");
    TYPE_IS("f32[2, 3, 2]");
    open_model(5);
    input("x", 1, "2", "6");
    INT64S("shape", 0, 3, -1);
    node("Reshape", "x,shape", "y", NULL);
    output("y");
    TYPE_IS("f32[2, 3, 2]");
}

Test(onnx_import, old_operators_broadcast_along_an_axis_when_they_are_told)
{
    open_model(6);
    input("x", 1, "2", "3", "4");
    input("z", 1, "3");
    node("Add", "x,z", "y", attr_int("broadcast", 1), attr_int("axis", 1));
    output("y");
    TYPE_IS("f32[2, 3, 4]");
    open_model(6);
    input("x", 1, "2", "3", "4");
    input("z", 1, "3", "4");
    node("Mul", "x,z", "y", attr_int("broadcast", 1));
    output("y");
    TYPE_IS("f32[2, 3, 4]");
}

Test(onnx_import, squeeze_and_reductions_take_axes_as_attributes_up_to_opset_12)
{
    open_model(11);
    input("x", 1, "1", "3", "4");
    node("Squeeze", "x", "s", INTS("axes", 0));
    node("ReduceSum", "s", "y", INTS("axes", -1), attr_int("keepdims", 0));
    output("y");
    TYPE_IS("f32[3]");
    open_model(13);
    input("x", 1, "1", "3", "4");
    INT64S("zero", 0);
    INT64S("last", -1);
    node("Squeeze", "x,zero", "s", NULL);
    node("ReduceSum", "s,last", "y", attr_int("keepdims", 0));
    output("y");
    TYPE_IS("f32[3]");
}

/* ---- damaged bytes ---- */

static void good_model(void)
{
    open_model(13);
    input("x", 1, "n", "3", "8", "8");
    INT64S("zero", 0);
    INT64S("rest", -1);
    raw(tensor("w", 1, (const int64_t[]){2, 3, 1, 1}, 4), (const float[]){1, 2, 3, 4, 5, 6}, 24);
    node("Conv", "x,w", "c", INTS("strides", 2, 2), INTS("pads", 1, 1, 0, 0));
    node("MaxPool", "c", "p", INTS("kernel_shape", 2, 2), attr_int("ceil_mode", 1));
    node("Shape", "p", "s", NULL);
    node("Gather", "s,zero", "b", attr_int("axis", 0));
    node("Concat", "b,rest", "t", attr_int("axis", 0));
    node("Reshape", "p,t", "r", NULL);
    node("Transpose", "r", "q", INTS("perm", 1, 0));
    node("Softmax", "q", "m", attr_int("axis", 0));
    node("ReduceMean", "m", "y", INTS("axes", 0));
    output("y");
}

static void survives(const uint8_t *bytes, size_t size, int round)
{
    tec_context *mine = base_child(cx);
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees each read behind the end */

    memcpy(exact, bytes, size);
    graph_module *m = onnx_import_bytes(mine, "m.onnx", exact, size, NULL);
    cr_assert(m ? graph_verify(m)
                : tec_context_status(mine) != TEC_OK && tec_context_status(mine) != TEC_INTERNAL,
              "round %d: %s", round, tec_context_error(mine));
    tec_context_free(mine);
    free(exact);
}

Test(onnx_import, survives_every_truncation)
{
    size_t size;

    good_model();
    imported();
    uint8_t *bytes = packed(&size);
    for (size_t n = 0; n < size; n++)
        survives(bytes, n, (int)n);
}

Test(onnx_import, survives_mutations)
{
    size_t size;
    uint64_t seed = 5;

    good_model();
    uint8_t *bytes = packed(&size), *text = base_alloc(cx, size);
    for (int round = 0; round < 3000; round++) {
        int64_t edits = 1 + base_random_below(&seed, 4);

        memcpy(text, bytes, size);
        for (int64_t e = 0; e < edits; e++) {
            uint8_t *at = text + base_random_below(&seed, (int64_t)size);

            *at = base_random_below(&seed, 2) ? (uint8_t)base_random(&seed)
                                              : (uint8_t)(*at ^ (1u << base_random_below(&seed, 8)));
        }
        survives(text, size, round);
    }
}

/* Sub-graphs in attributes of nodes in sub-graphs in attributes: as deep as the bytes allow. */
Test(onnx_import, survives_deep_nesting)
{
    enum { LEVELS = 100000 };
    uint8_t *bytes = malloc(LEVELS * 8 * 3), *end = bytes + (size_t)LEVELS * 8 * 3, *p = end;
    static const uint8_t tag[] = {0x2a /* node.attribute */, 0x0a /* graph.node */, 0x32 /* attribute.g */};

    for (int i = 0; i < LEVELS * 3; i++) {
        uint64_t n = (uint64_t)(end - p), size = n;
        int length = 1;

        while (size >>= 7)
            length++;
        p -= length;
        for (int k = 0; k < length; k++)
            p[k] = (uint8_t)((n >> (7 * k) & 127) | (k + 1 < length ? 128 : 0));
        *--p = i == LEVELS * 3 - 1 ? 0x3a : tag[i % 3];
    }
    survives(p, (size_t)(end - p), 0);
    free(bytes);
}
