/* tests/compiler/scan.c -- recurrences compiled: an LSTM against the same in C. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define TENSOR(x, ...)                                                                                       \
    &(DLTensor)                                                                                              \
    {                                                                                                        \
        .data = (x), .ndim = (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), .dtype = {kDLFloat, 32, 1},        \
        .device = {kDLCPU, 0}, .shape = (int64_t[])                                                          \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
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
    const tec_expr *n = tec_symbol(d, "n"), *t = tec_axis(cx, "t", n),
                   *t0 = tec_axis(cx, "t", tec_int(cx, 1));
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

/* ---- examples/lstm.te: its own schedule, the number of steps and of sequences known at the call only
 * ---- */

enum { IN = 48, HIDDEN = 32, MOST_STEPS = 64, MOST_ROWS = 9 };

typedef struct {
    float X[MOST_STEPS * MOST_ROWS * IN], W[IN * 4 * HIDDEN], U[HIDDEN * 4 * HIDDEN], b[4 * HIDDEN];
    float h0[MOST_ROWS * HIDDEN], c0[MOST_ROWS * HIDDEN], h[MOST_ROWS * HIDDEN], c[MOST_ROWS * HIDDEN];
} example_data;

static float centred(int i, unsigned seed)
{
    unsigned x = ((unsigned)i + 1) * 2654435761u ^ seed * 40503u;

    return (float)((x >> 8) % 2001) / 4000.0f - 0.25f;
}

static void example_fill(example_data *d)
{
    float *const at = d->X;

    for (int i = 0; i < (int)(sizeof *d / sizeof(float)); i++)
        at[i] = centred(i, 7);
}

/* One sequence in double. */
static void example_row(const example_data *d, int steps, int rows, int row, double *h, double *c)
{
    for (int j = 0; j < HIDDEN; j++) {
        h[j] = (double)d->h0[row * HIDDEN + j];
        c[j] = (double)d->c0[row * HIDDEN + j];
    }
    for (int t = 0; t < steps; t++) {
        double gate[4 * HIDDEN];

        for (int g = 0; g < 4 * HIDDEN; g++) {
            gate[g] = (double)d->b[g];
            for (int k = 0; k < IN; k++)
                gate[g] += (double)d->X[(t * rows + row) * IN + k] * (double)d->W[k * 4 * HIDDEN + g];
            for (int k = 0; k < HIDDEN; k++)
                gate[g] += h[k] * (double)d->U[k * 4 * HIDDEN + g];
        }
        for (int j = 0; j < HIDDEN; j++) {
            c[j] = lstm_sigmoid(gate[j + HIDDEN]) * c[j] + lstm_sigmoid(gate[j]) * tanh(gate[j + 2 * HIDDEN]);
            h[j] = lstm_sigmoid(gate[j + 3 * HIDDEN]) * tanh(c[j]);
        }
    }
}

static void check_example(tec_function *f, example_data *d, int steps, int rows)
{
    tec_error err = {0};
    DLTensor *args[] = {TENSOR(d->X, steps, rows, IN),   TENSOR(d->W, IN, 4, HIDDEN),
                        TENSOR(d->U, HIDDEN, 4, HIDDEN), TENSOR(d->b, 4, HIDDEN),
                        TENSOR(d->h0, rows, HIDDEN),     TENSOR(d->c0, rows, HIDDEN),
                        TENSOR(d->h, rows, HIDDEN),      TENSOR(d->c, rows, HIDDEN)};

    example_fill(d);
    cr_assert(tec_function_call(f, args, 8, &err), "%s", err.text);
    for (int row = 0; row < rows; row++) {
        double h[HIDDEN], c[HIDDEN];

        example_row(d, steps, rows, row, h, c);
        for (int j = 0; j < HIDDEN; j++) {
            cr_assert_lt(fabs(h[j] - (double)d->h[row * HIDDEN + j]), 1e-5,
                         "h of %d steps, %d rows at %d, %d", steps, rows, row, j);
            cr_assert_lt(fabs(c[j] - (double)d->c[row * HIDDEN + j]), 1e-5,
                         "c of %d steps, %d rows at %d, %d", steps, rows, row, j);
        }
    }
}

/* The text of a file, and its part behind "schedule NAME {". */
static char *read_example(const char **schedule)
{
    static const char path[] = TEC_SOURCE_DIR "/examples/lstm.te";
    char *text = calloc(1, 1 << 14);
    FILE *f = fopen(path, "r");

    cr_assert(f && text && fread(text, 1, (1 << 14) - 1, f) > 0, "cannot read %s", path);
    (void)fclose(f);
    char *at = strstr(text, "schedule lstm {\n");
    cr_assert(at);
    *schedule = at + strlen("schedule lstm {\n");
    *at = 0;
    *strrchr(*schedule, '}') = 0;
    return text;
}

Test(build_scan, a_scheduled_lstm_of_any_length_is_that_in_c)
{
    const char *trace;
    char *text = read_example(&trace);
    tec_schedule *s = tec_schedule_new(cx, tec_def_parse(cx, "lstm.te", text, 0), "native");

    cr_assert(tec_schedule_replay(s, "lstm.te", trace), "%s", tec_schedule_error(s));
    tec_module *m = tec_build(s, NULL);
    cr_assert(m, "%s", tec_context_error(cx));
    tec_error err = {0};
    tec_function *f = tec_function_new(m, "lstm", NULL, &err);
    example_data *d = malloc(sizeof *d);

    cr_assert(f && d, "%s", err.text);
    check_example(f, d, MOST_STEPS, MOST_ROWS);
    check_example(f, d, MOST_STEPS, 1);
    check_example(f, d, 1, 4);
    check_example(f, d, 7, 3);
    free(d);
    free(text);
    tec_function_free(f);
    tec_module_free(m);
}
