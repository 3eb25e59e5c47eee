/* tests/graph/onnx/lift.c -- large weights stay in the file of the model. */
#include <unistd.h>

#include "graph/constant.h"
#include "tests/graph/onnx/kit.h"

TestSuite(onnx_lift, .init = open_context, .fini = close_context);

enum { ROWS = 600, COLUMNS = 601 };

/* W + S, where W has 1.4 MB; `name` moves W to another address of the file. */
static float *add_weight(const char *name)
{
    const int64_t dims[] = {ROWS, COLUMNS}, small[] = {1};
    float *w = base_array(cx, float, ROWS *COLUMNS), half = 0.5F;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        w[i] = (float)(i % 1000);
    open_model(13);
    raw(tensor(name, 1, dims, 2), w, ROWS * COLUMNS * sizeof *w);
    raw(tensor("S", 1, small, 1), &half, sizeof half);
    output(name);
    return w;
}

static graph_module *from_file(const uint8_t *bytes, size_t size)
{
    const char *path = base_format(cx, "/tmp/tec-lift-%d.onnx", (int)getpid());

    cr_assert(base_write_file(cx, path, bytes, size));
    graph_module *m = onnx_import(cx, path, NULL);
    unlink(path);
    return m;
}

/* At every address modulo the size of an element. */
Test(onnx_lift, weights_of_a_file_are_not_copied)
{
    const char *const name[] = {"W", "WW", "WWW", "WWWW"};
    int aligned = 0;

    for (int i = 0; i < BASE_COUNT(name); i++) {
        float *w = add_weight(name[i]);
        size_t size;
        const uint8_t *bytes = packed(&size);
        size_t before = base_used(cx);
        graph_module *m = from_file(bytes, size);

        cr_assert(m, "%s", tec_context_error(cx));
        cr_expect_lt(base_used(cx) - before, size / 2);
        const op_constant *constant = result(m, 0)->constant;
        cr_assert(constant->mapped);
        cr_assert_arr_eq(constant->data, w, (size_t)constant->bytes);
        graph_constant_let_go(constant);
        cr_assert_arr_eq(constant->data, w, (size_t)constant->bytes, "read again");
        aligned += graph_constant_is_aligned(constant);
        graph_constant_align(cx, constant);
        cr_expect(graph_constant_is_aligned(constant));
        cr_assert_arr_eq(constant->data, w, (size_t)constant->bytes);
    }
    cr_expect_eq(aligned, 1);
}

Test(onnx_lift, weights_of_bytes_outlive_the_bytes)
{
    float *w = add_weight("W");
    size_t size;
    uint8_t *bytes = packed(&size);
    graph_module *m = onnx_import_bytes(cx, "m.onnx", bytes, size, NULL);

    cr_assert(m, "%s", tec_context_error(cx));
    memset(bytes, 0, size);
    cr_expect_not(result(m, 0)->constant->mapped);
    cr_assert_arr_eq(result(m, 0)->constant->data, w, ROWS * COLUMNS * sizeof *w);
}

Test(onnx_lift, a_weight_of_another_size_is_refused)
{
    size_t size;

    add_weight("W");
    g->initializer[0]->dims[0] = ROWS + 1;
    const uint8_t *bytes = packed(&size);
    cr_assert_null(from_file(bytes, size));
    cr_assert(strstr(tec_context_error(cx), "tensor 'W': 1444804 bytes expected, 1442400 found"), "%s",
              tec_context_error(cx));
}

/* The file ends inside of the graph. The last field behind it, the operator set, may be absent. */
Test(onnx_lift, damaged_files_are_refused)
{
    size_t size;

    add_weight("W");
    const uint8_t *bytes = packed(&size);
    for (size_t cut = 10; cut < size - (1 << 20); cut += cut < 200 ? 1 : 40000) {
        cr_assert_null(from_file(bytes, size - cut), "%zu", cut);
        tec_context_clear(cx);
    }
}

/* A field 1999 of the file's own: a number of no span is ignored, and another gives that span's bytes. */
Test(onnx_lift, fields_that_a_file_has_itself_do_no_harm)
{
    uint8_t number[] = {7};
    ProtobufCMessageUnknownField unknown = {
        .tag = 1999, .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT, .len = 1, .data = number};
    size_t size;

    add_weight("W");
    g->initializer[1]->base.n_unknown_fields = 1;
    g->initializer[1]->base.unknown_fields = &unknown;
    const uint8_t *bytes = packed(&size);
    cr_assert(from_file(bytes, size), "%s", tec_context_error(cx));
    number[0] = 0;
    bytes = packed(&size);
    cr_assert_null(from_file(bytes, size));
    cr_assert(strstr(tec_context_error(cx), "tensor 'S': 4 bytes expected"), "%s", tec_context_error(cx));
}
