/* tests/compiler/scan.c -- recurrences compiled: an LSTM against the same in C. */
#include <criterion/criterion.h>

#include "tec/build.h"
#include "tests/te/lstm.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(build_scan, .init = open_context, .fini = close_context);

#define TENSOR(x, ...)                                                                                                           \
    &(DLTensor)                                                                                                                  \
    {                                                                                                                            \
        .data = (x), .ndim = (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), .dtype = {kDLFloat, 32, 1}, .device = {kDLCPU, 0},     \
        .shape = (int64_t[])                                                                                                     \
        {                                                                                                                        \
            __VA_ARGS__                                                                                                          \
        }                                                                                                                        \
    }

static void run_lstm(tec_schedule *s)
{
    tec_module *m = tec_build(s, NULL);
    cr_assert(m, "%s\n%s", tec_context_error(cx), tec_schedule_tree(s));
    tec_error err = {0};
    tec_function *f = tec_function_new(m, "lstm", NULL, &err);
    lstm_data x;

    cr_assert(f, "%s", err.text);
    lstm_make(&x);
    DLTensor *args[] = {TENSOR(x.X, LSTM_STEPS, LSTM_IN),
                        TENSOR(x.W, 4 * LSTM_HIDDEN, LSTM_IN),
                        TENSOR(x.U, 4 * LSTM_HIDDEN, LSTM_HIDDEN),
                        TENSOR(x.b, 4 * LSTM_HIDDEN),
                        TENSOR(x.h0, LSTM_HIDDEN),
                        TENSOR(x.c0, LSTM_HIDDEN),
                        TENSOR(x.h, LSTM_STEPS + 1, LSTM_HIDDEN),
                        TENSOR(x.c, LSTM_STEPS + 1, LSTM_HIDDEN)};
    cr_assert(tec_function_call(f, args, 8, &err), "%s", err.text);
    cr_assert_lt(lstm_error(&x), 1e-5);
    tec_function_free(f);
    tec_module_free(m);
}

Test(build_scan, an_lstm_is_that_in_c)
{
    run_lstm(tec_schedule_new(cx, tec_def_parse(cx, "lstm.te", lstm_text, 0), "native"));
}

/* y[t] = x[t] + y[t - 1] / 2, from the C API. */
Test(build_scan, a_filter_from_the_c_api)
{
    tec_def *d = tec_def_new(cx, "filter");
    const tec_expr *n = tec_symbol(d, "n"), *t = tec_axis(cx, "t", n), *t0 = tec_axis(cx, "t", tec_int(cx, 1));
    tec_tensor *x = tec_input(d, "x", TEC_F32, n);
    float in[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, out[9];

    tec_fact(d, tec_ge(cx, n, tec_int(cx, 1)));
    tec_scan *s = tec_scan_new(d, "S", t);
    tec_tensor *y = tec_scan_state(s, "y", tec_at(x, t0), t0);
    const tec_expr *before = tec_at(y, tec_sub(cx, t, tec_int(cx, 1)));
    tec_scan_step(s, "y", tec_add(cx, tec_at(x, t), tec_div(cx, before, tec_const(cx, TEC_F32, 2))), t);
    cr_assert(tec_scan_close(s), "%s", tec_context_error(cx));
    tec_output(d, y);
    tec_module *m = tec_build(tec_schedule_new(cx, d, "native"), NULL);
    cr_assert(m, "%s", tec_context_error(cx));
    tec_error err = {0};
    tec_function *f = tec_function_new(m, "filter", NULL, &err);
    cr_assert(tec_function_call(f, (DLTensor *[]){TENSOR(in, 9), TENSOR(out, 9)}, 2, &err), "%s", err.text);
    cr_assert_eq(out[0], 1);
    for (int i = 1; i < 9; i++)
        cr_assert_eq(out[i], in[i] + out[i - 1] / 2);
    tec_function_free(f);
    tec_module_free(m);
}

/* Loops inside a step may be scheduled; time stays as it is. */
Test(build_scan, the_inside_of_a_step_can_be_scheduled)
{
    tec_schedule *s = tec_schedule_new(cx, tec_def_parse(cx, "lstm.te", lstm_text, 0), "native");

    cr_assert(tec_unroll(s, "h.j"), "%s", tec_schedule_error(s));
    cr_assert(tec_vectorize(s, "gate.g"), "%s", tec_schedule_error(s));
    cr_assert_not(tec_parallel(s, "cell.t"));
    cr_assert(tec_schedule_error(s));
    tec_schedule_clear(s);
    run_lstm(s);
}
