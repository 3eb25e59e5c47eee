/* two_threads.c -- a small network by the graph API; its module runs in two executors, on two threads, at
 * once. */
#include <stdio.h>
#include <stdlib.h>
#include <tec/tec.h>
#include <threads.h>

enum { IN = 256, OUT = 64, RUNS = 1000 };

/* y = relu(x w), for any number of rows. */
static tec_module *build(tec_context *cx)
{
    tec_graph *g = tec_graph_new(cx, "layer");
    tec_array *w = tec_array_new((DLDataType){kDLFloat, 32, 1}, 2, (int64_t[]){IN, OUT}, NULL);
    for (int i = 0; w && i < IN * OUT; i++)
        ((float *)tec_array_data(w))[i] = i % OUT % 2 ? -1.0f : 1.0f;

    tec_value *x = tec_graph_input(g, "x", TEC_F32, tec_graph_symbol(g, "rows"), tec_int(cx, IN));
    tec_value *y =
        tec_graph_op(g, "matmul", "fc", TEC_NO_ATTRS, x, tec_graph_constant(g, "w", tec_array_tensor(w)));
    tec_graph_output(g, "y", tec_graph_op(g, "relu", "act", TEC_NO_ATTRS, y));
    tec_array_free(w);
    return tec_graph_build(g, NULL);
}

/* One thread: an executor of its own over the shared module, with as many rows as it was told. */
typedef struct {
    tec_module *module;
    int64_t rows;
    tec_error error;
    float first;
} job;

static int run(void *user)
{
    job *j = user;
    tec_executor *ex = tec_executor_new(j->module, NULL, NULL, &j->error);
    tec_array *x = tec_array_new((DLDataType){kDLFloat, 32, 1}, 2, (int64_t[]){j->rows, IN}, &j->error);
    for (int64_t i = 0; x && i < j->rows * IN; i++)
        ((float *)tec_array_data(x))[i] = (float)j->rows;

    bool good = x && tec_executor_set_input(ex, 0, tec_array_tensor(x), &j->error);
    for (int i = 0; good && i < RUNS; i++)
        good = tec_executor_run(ex, &j->error);
    if (good)
        j->first = *(const float *)tec_executor_output(ex, 0)->data;
    tec_executor_free(ex);
    tec_array_free(x);
    return good && j->first == (float)(j->rows * IN) ? 0 : 1;
}

int main(void)
{
    tec_context *cx = tec_context_new();
    tec_module *m = build(cx);
    job jobs[2] = {{.module = m, .rows = 1}, {.module = m, .rows = 3}};
    thrd_t thread[2];
    int failed = 0;
    if (!m)
        return fprintf(stderr, "%s\n", tec_context_error(cx)), EXIT_FAILURE;
    tec_context_free(cx); /* the module does not need it */

    for (int i = 0; i < 2; i++)
        failed |= thrd_create(&thread[i], run, &jobs[i]) != thrd_success;
    for (int i = 0; i < 2; i++) {
        int result = 1;
        failed |= thrd_join(thread[i], &result) != thrd_success || result;
        printf("%lld rows, %d runs: y[0, 0] = %g %s\n", (long long)jobs[i].rows, RUNS, (double)jobs[i].first,
               jobs[i].error.text);
    }
    tec_module_free(m);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
