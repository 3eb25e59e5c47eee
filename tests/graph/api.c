/* tests/graph/api.c -- the public graph functions: graphs by hand, their errors, their modules. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "space/task.h"
#include "tec/graph.h"

static tec_context *cx;
static tec_graph *g;

static void open_context(void)
{
    cx = tec_context_new();
    g = tec_graph_new(cx, "net");
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(graph_api, .init = open_context, .fini = close_context);

static const DLDataType f32 = {kDLFloat, 32, 1};

static DLTensor tensor(float *data, int n, int64_t *shape)
{
    return (DLTensor){.data = data, .ndim = n, .dtype = f32, .device = {kDLCPU, 0}, .shape = shape};
}

/* y = softmax(x w, axis 1) for any number of rows; w is the transpose of {1, 2, 3; 4, 5, 6}, given with
 * strides. */
static void make_graph(void)
{
    float w[6] = {1, 2, 3, 4, 5, 6};
    int64_t shape[] = {3, 2}, strides[] = {1, 3};
    DLTensor t = tensor(w, 2, shape);

    t.strides = strides;
    tec_value *x = tec_graph_input(g, "x", TEC_F32, tec_graph_symbol(g, "rows"), tec_int(cx, 3));
    tec_value *y = tec_graph_op(g, "matmul", "fc", TEC_NO_ATTRS, x, tec_graph_constant(g, "w", &t));
    cr_assert_str_eq(tec_value_type(g, y), "f32[rows, 2]");
    tec_graph_output(
        g, "y",
        tec_graph_op(g, "reduce_sum", "sum", TEC_ATTRS(TEC_INTS("axes", 1), tec_attr_int("keepdims", 0)), y));
    cr_assert_eq(tec_context_status(cx), TEC_OK, "%s", tec_context_error(cx));
}

static void check_runs(tec_module *m)
{
    tec_error err = {0};
    tec_executor *ex = tec_executor_new(m, NULL, NULL, &err);
    float x[6] = {1, 0, 0, 1, 1, 1};
    int64_t shape[] = {2, 3};
    DLTensor t = tensor(x, 2, shape);

    cr_assert(ex && tec_executor_set_input(ex, 0, &t, &err) && tec_executor_run(ex, &err), "%s", err.text);
    const DLTensor *y = tec_executor_output(ex, 0);
    cr_assert_eq(y->ndim, 1);
    cr_assert_eq(y->shape[0], 2);
    cr_assert_float_eq(((const float *)y->data)[0], 5, 1e-5);
    cr_assert_float_eq(((const float *)y->data)[1], 21, 1e-5);
    tec_executor_free(ex);
}

Test(graph_api, builds_a_graph_into_this_process)
{
    make_graph();
    tec_module *m = tec_graph_build(g, NULL);
    cr_assert(m, "%s", tec_context_error(cx));
    check_runs(m);
    tec_module_free(m);
}

Test(graph_api, writes_a_module_file)
{
    char path[] = "/tmp/tec-graph-api-XXXXXX";
    tec_error err = {0};
    int fd = mkstemp(path);

    cr_assert(fd >= 0 && close(fd) == 0);
    make_graph();
    cr_assert(tec_graph_build_file(g, NULL, path), "%s", tec_context_error(cx));
    tec_module *m = tec_module_open(path, NULL, &err);
    cr_assert(m, "%s", err.text);
    check_runs(m);
    tec_module_free(m);
    unlink(path);
}

static const char *no_steps(const space_source *self, tec_context *into, const space_task *task,
                            const target *t, const char **origin)
{
    (void)self, (void)into, (void)task, (void)t;
    *origin = "measured";
    return "";
}

Test(graph_api, takes_schedules_from_the_records_of_the_options)
{
    space_source records = {.best = no_steps};
    tec_profile_row row;
    tec_error err = {0};

    make_graph();
    tec_module *m = tec_graph_build(g, &(tec_build_options){.records = &records});
    cr_assert(m, "%s", tec_context_error(cx));
    check_runs(m);
    tec_executor *ex = tec_executor_new(m, NULL, &(tec_run_options){.profile = true}, &err);
    cr_assert(ex && tec_executor_profile(ex, 0, &row), "%s", err.text);
    cr_assert_str_eq(row.origin, "measured");
    tec_executor_free(ex);
    tec_module_free(m);
}

Test(graph_api, building_leaves_the_graph_as_it_is)
{
    make_graph();
    for (int i = 0; i < 2; i++) {
        tec_module *m = tec_graph_build(g, NULL);

        cr_assert(m, "%s", tec_context_error(cx));
        check_runs(m);
        tec_module_free(m);
    }
}

Test(graph_api, lists_operators_with_their_help)
{
    int n = 0, conv = 0;

    for (const char *name; (name = tec_operator_name(n)); n++) {
        cr_assert(tec_operator_help(name) && *tec_operator_help(name), "'%s' has no help", name);
        conv += strcmp(name, "conv") == 0;
    }
    cr_assert_eq(conv, 1);
    cr_assert_gt(n, 30);
    cr_assert_null(tec_operator_name(-1));
    cr_assert_null(tec_operator_help("no such operator"));
}

static void refused(const void *nothing, const char *words)
{
    cr_assert_null(nothing);
    cr_assert(tec_context_error(cx) && strstr(tec_context_error(cx), words), "expected '%s', found '%s'",
              words, tec_context_error(cx));
}

Test(graph_api, an_error_names_the_callers_line_and_the_operator)
{
    tec_value *x = tec_graph_input(g, "x", TEC_F32, tec_int(cx, 2), tec_int(cx, 3));
    char line[64];

    snprintf(line, sizeof line, "api.c:%d: error", __LINE__ + 1);
    tec_value *y = tec_graph_op(g, "matmul", "fc", TEC_NO_ATTRS, x, x);
    refused(y, "fc");
    cr_assert(strstr(tec_context_error(cx), line), "expected %s in: %s", line, tec_context_error(cx));
}

Test(graph_api, an_unknown_operator_is_refused)
{
    refused(
        tec_graph_op(g, "frobnicate", "f", TEC_NO_ATTRS, tec_graph_input(g, "x", TEC_F32, tec_int(cx, 2))),
        "there is no operator 'frobnicate'");
}

Test(graph_api, a_result_that_is_not_there_is_refused)
{
    tec_value *x = tec_graph_input(g, "x", TEC_F32, tec_int(cx, 2)),
              *y = tec_graph_op(g, "relu", "act", TEC_NO_ATTRS, x);

    cr_assert_eq(tec_graph_result(g, y, 0), y);
    refused(tec_graph_result(g, y, 1), "there is no output 1: 'act' has 1");
    tec_context_clear(cx);
    refused(tec_graph_result(g, x, 0), "not made by an operator");
}

Test(graph_api, a_graph_without_output_is_refused)
{
    refused(tec_graph_build(g, NULL), "graph 'net' has no output");
}

Test(graph_api, nothing_flows_through_a_chain)
{
    cr_assert_null(tec_graph_input(NULL, "x", TEC_F32, tec_int(cx, 1)));
    cr_assert_null(tec_graph_constant(g, "w", NULL));
    cr_assert_null(tec_graph_op(NULL, "relu", "r", TEC_NO_ATTRS, NULL));
    cr_assert_null(tec_graph_build(NULL, NULL));
    cr_assert_not(tec_graph_build_file(NULL, NULL, "/nowhere"));
}

Test(graph_api, a_promise_about_a_symbol_is_checked_at_each_run)
{
    const tec_expr *n = tec_graph_symbol(g, "n");
    tec_error err = {0};
    float x[8] = {0};
    int64_t shape[] = {8};
    DLTensor t = tensor(x, 1, shape);

    tec_graph_fact(g, tec_le(cx, n, tec_int(cx, 4)));
    tec_graph_output(g, "y",
                     tec_graph_op(g, "relu", "act", TEC_NO_ATTRS, tec_graph_input(g, "x", TEC_F32, n)));
    tec_module *m = tec_graph_build(g, NULL);
    cr_assert(m, "%s", tec_context_error(cx));
    tec_executor *ex = tec_executor_new(m, NULL, NULL, &err);
    cr_assert_not(tec_executor_set_input(ex, 0, &t, &err) && tec_executor_run(ex, &err));
    cr_assert(strstr(err.text, "n <= 4"), "%s", err.text);
    tec_executor_free(ex);
    tec_module_free(m);
}
