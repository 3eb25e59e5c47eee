/* tests/graph/onnx/tensor.c -- tensors of every dtype, in typed fields and raw; damaged ones. */
#include <stdio.h>

#include "tests/graph/onnx/kit.h"

TestSuite(onnx_tensor, .init = open_context, .fini = close_context);

static const int64_t three[] = {3};

static void holds(int data_type, const char *dtype, const void *data, size_t size)
{
    output("w");
    const graph_value *w = result(imported(), 0);

    cr_assert(w->constant, "type %d", data_type);
    cr_assert_str_eq(op_type_text(cx, &w->type), base_format(cx, "%s[3]", dtype));
    cr_assert_eq((size_t)w->constant->bytes, size);
    cr_assert_arr_eq(w->constant->data, data, size, "type %d", data_type);
}

static void check_raw(int data_type, const char *dtype, const void *data, size_t size)
{
    open_model(13);
    raw(tensor("w", data_type, three, 1), data, size);
    holds(data_type, dtype, data, size);
}

Test(onnx_tensor, raw_data_of_every_type)
{
    static const uint64_t bits[3] = {0x0102030405060708, 0xfffefdfcfbfaf9f8, 1};
    static const uint8_t bools[3] = {0, 1, 1};
    static const struct {
        int data_type;
        const char *dtype;
        size_t width;
    } types[] = {{1, "f32", 4},  {2, "u8", 1},   {3, "i8", 1},   {4, "u16", 2},
                 {5, "i16", 2},  {6, "i32", 4},  {7, "i64", 8},  {10, "f16", 2},
                 {11, "f64", 8}, {12, "u32", 4}, {13, "u64", 8}, {16, "bf16", 2}};

    for (int i = 0; i < BASE_COUNT(types); i++)
        check_raw(types[i].data_type, types[i].dtype, bits, 3 * types[i].width);
    check_raw(9, "bool", bools, 3);
}

static void check_ints(int data_type, const char *dtype, const void *expected, size_t size)
{
    static int32_t values[3] = {1, 0, 77};

    open_model(13);
    Onnx__TensorProto *t = tensor("w", data_type, three, 1);
    t->int32_data = values;
    t->n_int32_data = 3;
    holds(data_type, dtype, expected, size);
}

Test(onnx_tensor, typed_fields_of_every_type)
{
    static const uint8_t bytes[3] = {1, 0, 77};
    static const uint16_t shorts[3] = {1, 0, 77};
    static const int32_t ints[3] = {1, 0, 77};
    static const uint32_t words[3] = {4000000000u, 0, 7};
    static float floats[3] = {1.5f, -2, 0};
    static double doubles[3] = {0.1, -2, 0};
    static int64_t longs[3] = {INT64_MIN, -2, 7};
    static uint64_t large[3] = {UINT64_MAX, 2, 7}, wide[3] = {4000000000u, 0, 7};

    check_ints(2, "u8", bytes, 3);
    check_ints(3, "i8", bytes, 3);
    check_ints(9, "bool", (const uint8_t[]){1, 0, 77}, 3);
    check_ints(4, "u16", shorts, 6);
    check_ints(5, "i16", shorts, 6);
    check_ints(10, "f16", shorts, 6);
    check_ints(16, "bf16", shorts, 6);
    check_ints(6, "i32", ints, 12);

#define FIELD(field, data_type, dtype, values, expected)                                                     \
    do {                                                                                                     \
        open_model(13);                                                                                      \
        Onnx__TensorProto *t = tensor("w", data_type, three, 1);                                             \
        t->field = values;                                                                                   \
        t->n_##field = 3;                                                                                    \
        holds(data_type, dtype, expected, sizeof expected);                                                  \
    } while (0)
    FIELD(float_data, 1, "f32", floats, floats);
    FIELD(double_data, 11, "f64", doubles, doubles);
    FIELD(int64_data, 7, "i64", longs, longs);
    FIELD(uint64_data, 13, "u64", large, large);
    FIELD(uint64_data, 12, "u32", wide, words);
#undef FIELD
}

Test(onnx_tensor, scalars_and_empty_tensors)
{
    open_model(13);
    raw(tensor("s", 1, NULL, 0), (const float[]){2.5f}, 4);
    tensor("e", 1, (const int64_t[]){4, 0}, 2);
    output("s");
    output("e");
    graph_module *m = imported();
    cr_assert_str_eq(op_type_text(cx, &result(m, 0)->type), "f32[]");
    cr_assert_str_eq(op_type_text(cx, &result(m, 1)->type), "f32[4, 0]");
}

static void refuse_tensor(const int64_t *dims, size_t n, size_t bytes, const char *message)
{
    static const char zeros[64];

    open_model(13);
    raw(tensor("w", 1, dims, n), zeros, bytes);
    output("w");
    refused(TEC_INVALID, message);
}

Test(onnx_tensor, damaged_ones_are_named)
{
    refuse_tensor(three, 1, 8, "m.onnx: error: tensor 'w': expected 12 bytes, found 8");
    refuse_tensor((const int64_t[]){-1}, 1, 8,
                  "m.onnx: error: tensor 'w': expected extents of at least 0 whose product can be counted, "
                  "found -1 in dimension 0");
    refuse_tensor((const int64_t[]){INT64_MAX, 3}, 2, 8,
                  "m.onnx: error: tensor 'w': expected extents of at least 0 whose product can be counted, "
                  "found 3 in dimension 1");
    refuse_tensor((const int64_t[]){INT64_MAX / 2}, 1, 8,
                  "m.onnx: error: tensor 'w': its size in bytes is too large to count");
    open_model(13);
    tensor("w", 1, (const int64_t[]){1000000000000}, 1);
    output("w");
    refused(TEC_INVALID, "m.onnx: error: tensor 'w': expected 1000000000000 elements, found 0");
}

Test(onnx_tensor, data_outside_of_the_models_folder_is_refused)
{
    Onnx__StringStringEntryProto *at =
        MESSAGE(Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);

    open_model(13);
    Onnx__TensorProto *t = tensor("w", 1, three, 1);
    at->key = "location";
    at->value = "../secret";
    t->has_data_location = true;
    t->data_location = 1;
    PUSH(t, external_data, at);
    output("w");
    refused(
        TEC_INVALID,
        "m.onnx: error: tensor 'w': its data is in '../secret': expected a file in the folder of the model");
    at->value = "/etc/passwd";
    refused(TEC_INVALID, "m.onnx: error: tensor 'w': its data is in '/etc/passwd': expected a file in the "
                         "folder of the model");
}

Test(onnx_tensor, strings_are_not_supported)
{
    open_model(13);
    tensor("w", 8, three, 1);
    output("w");
    refused(TEC_UNSUPPORTED, "m.onnx: error: 1 part of the model is not supported\nm.onnx: note: input 'w': "
                             "initializer with elements of type string");
}

Test(onnx_tensor, a_file_gives_back_what_was_written)
{
    const char *path = base_format(cx, "%s/test_onnx_tensor.pb", TEC_BINARY_DIR), *name;
    const ir_expr *dim[] = {ir_int(cx, 3)};
    op_constant c = {.type = {BASE_I64, 1, dim}, .data = (const int64_t[]){1, -2, 3}, .bytes = 24};

    cr_assert(onnx_write_tensor(cx, path, "t", &c), "%s", tec_context_error(cx));
    const op_constant *again = onnx_read_tensor(cx, path, &name);
    cr_assert(again, "%s", tec_context_error(cx));
    cr_assert_str_eq(name, "t");
    cr_assert_str_eq(op_type_text(cx, &again->type), "i64[3]");
    cr_assert_arr_eq(again->data, c.data, 24);
    remove(path);
}
