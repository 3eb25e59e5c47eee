/* tests/graph/onnx/api.c -- importing a model through the public API. */
#include <criterion/criterion.h>
#include <string.h>

#include "tec/graph.h"

static const char *const digits = TEC_SOURCE_DIR "/tests/models/digits/model.onnx";

static void expect_input(tec_graph *g, tec_context *cx, const char *text)
{
    tec_error err = {0};
    tec_tensor_info info;
    tec_module *m = tec_graph_build(g, NULL);

    cr_assert(m, "%s", tec_context_error(cx));
    tec_executor *ex = tec_executor_new(m, NULL, NULL, &err);
    cr_assert(ex && tec_executor_input_info(ex, 0, &info, &err), "%s", err.text);
    cr_assert_str_eq(info.text, text);
    tec_executor_free(ex);
    tec_module_free(m);
}

Test(import_api, a_dimension_stays_symbolic_unless_it_gets_a_value)
{
    tec_context *cx = tec_context_new();
    const char *dim = "batch";
    int64_t value = 8;

    expect_input(tec_graph_import(cx, digits, NULL), cx, "f32[batch, 1, 8, 8]");
    expect_input(
        tec_graph_import(cx, digits, &(tec_import_options){.n_dims = 1, .dim = &dim, .value = &value}), cx,
        "f32[8, 1, 8, 8]");
    tec_context_free(cx);
}

Test(import_api, bytes_that_are_no_model_are_refused)
{
    tec_context *cx = tec_context_new();

    cr_assert_null(tec_graph_import_bytes(cx, "mine", "no model", 8, NULL));
    cr_assert(strstr(tec_context_error(cx), "mine"), "%s", tec_context_error(cx));
    tec_context_free(cx);
}
