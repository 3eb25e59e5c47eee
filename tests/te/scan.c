/* tests/te/scan.c -- recurrences: what they compute, their trees and text, and what is refused. */
#include <stdio.h>

#include "ir/verify/verify.h"
#include "tests/te/kit.h"
#include "tests/te/lstm.h"

TestSuite(te_scan, .init = open_context, .fini = close_context);

static const char *const fibonacci = "def f(n) where n >= 2 {\n"
                                     "  scan S[t: n] {\n"
                                     "    init a[t: 2] = t\n"
                                     "    update a[t] = a[t - 1] + a[t - 2]\n"
                                     "  }\n"
                                     "  return a\n}\n";

static void run_with(const te_def *d, ir_arg *args, const char *symbol, int64_t value)
{
    const ir_program *p = te_tree(cx, d);

    cr_assert(p, "%s", tec_context_error(cx));
    cr_assert(ir_verify(cx, p, IR_VERIFY_TREE), "%s", tec_context_error(cx));
    ir_run run = {.args = args, .symbol_name = &symbol, .symbol_value = &value, .n_symbols = 1};
    cr_assert(ir_interpret(cx, p, &run), "%s\n%s", tec_context_error(cx), ir_program_text(cx, p));
}

Test(te_scan, reads_two_steps_back)
{
    for (int n = 2; n < 12; n += 3) {
        int64_t a[12], x = 0, y = 1;

        run_with(defined(fibonacci), (ir_arg[]){I64(a, n)}, "n", n);
        for (int i = 0; i < n; i++) {
            int64_t next = x + y;
            cr_assert_eq(a[i], x);
            x = y;
            y = next;
        }
    }
}

Test(te_scan, has_one_loop_over_time_around_all_updates)
{
    const te_def *d = defined("def f(n, x: f32[n, 4]) where n >= 1 {\n"
                              "  scan S[t: n] {\n"
                              "    init h[t: 1, j: 4] = 0.0\n"
                              "    update z[t, j: 4] = x[t, j] * h[t - 1, j]\n"
                              "    update h[t, j] = sum[k: 4](z[t, k]) + 1.0\n"
                              "  }\n"
                              "  return h\n}\n");
    const ir_program *p = te_tree(cx, d);

    cr_assert(p && ir_verify(cx, p, IR_VERIFY_TREE), "%s", tec_context_error(cx));
    cr_assert(strstr(ir_program_text(cx, p), "  for S.t in 0..n - 1 {\n"
                                             "    for z.j in 0..4 {\n"
                                             "      block z(t = S.t in 0..n - 1, j = z.j in 0..4) {\n"
                                             "        reads x[t + 1, j], h[t, j]\n"
                                             "        writes z[t + 1, j]\n"),
              "%s", ir_program_text(cx, p));
    cr_assert(strstr(ir_program_text(cx, p),
                     "    for h.r.k in 0..4 {\n"
                     "      block h.r(t = S.t in 0..n - 1, k reduce = h.r.k in 0..4) {\n"),
              "%s", ir_program_text(cx, p));
    cr_assert(strstr(ir_program_text(cx, p), "    for h.j in 0..4 {\n"
                                             "      block h(t scan = S.t in 0..n - 1, j = h.j in 0..4) {\n"),
              "%s", ir_program_text(cx, p));
}

Test(te_scan, round_trips)
{
    round_trips(fibonacci, fibonacci);
    round_trips("def f(n, x: f32[n, 4]) where n >= 1 { scan S[t: n] { init h[s: 1, j: 4] = x[0, j] "
                "@role(copy) update h[t, j] = "
                "sum[k](h[t - 1, k]) * x[t, j] @role(anchor) @keep(1) } y[t, j] = h[t, j] + 1.0 return y }",
                "def f(n, x: f32[n, 4]) where n >= 1 {\n"
                "  scan S[t: n] {\n"
                "    init h[s: 1, j: 4] = x[0, j] @role(copy)\n"
                "    update h.r[t] = sum[k: 4](h[t - 1, k])\n"
                "    update h[t, j: 4] = h.r[t] * x[t, j] @role(anchor) @keep(1)\n"
                "  }\n"
                "  y[t: n, j: 4] = h[t, j] + 1.0\n"
                "  return y\n}\n");
}

/* ---- an LSTM ---- */

static void run_lstm(const te_def *d, lstm_data *x)
{
    lstm_make(x);
    RUN(d, F32(x->X, LSTM_STEPS, LSTM_IN), F32(x->W, 4 * LSTM_HIDDEN, LSTM_IN),
        F32(x->U, 4 * LSTM_HIDDEN, LSTM_HIDDEN), F32(x->b, 4 * LSTM_HIDDEN), F32(x->h0, LSTM_HIDDEN),
        F32(x->c0, LSTM_HIDDEN), F32(x->h, LSTM_STEPS + 1, LSTM_HIDDEN),
        F32(x->c, LSTM_STEPS + 1, LSTM_HIDDEN));
    cr_assert_lt(lstm_error(x), 1e-5);
}

Test(te_scan, an_lstm_is_that_in_c)
{
    lstm_data x;

    run_lstm(defined(lstm_text), &x);
}

Test(te_scan, an_lstm_survives_printing_and_specialisation)
{
    te_def *d = defined(te_text(cx, defined(lstm_text)));
    const ir_expr *n = d->symbols.at[0], *steps = ir_int(cx, LSTM_STEPS);
    te_def *fixed = te_specialise(cx, d, &n, &steps, 1);
    lstm_data x;

    cr_assert(fixed, "%s", tec_context_error(cx));
    cr_assert_eq(fixed->symbols.n, 0);
    run_lstm(d, &x);
    run_lstm(fixed, &x);
    cr_assert(strstr(te_text(cx, fixed), "scan cell[t: 65] {"), "%s", te_text(cx, fixed));
}

/* ---- refusals ---- */

#define F(scan) "def f(n, A: f32[n]) where n >= 1 { scan S[t: n] { " scan " } return h }"

Test(te_scan, names_what_is_wrong)
{
    refuses(F("init h[t: 1] = 0.0"), "t:1: error: scan 'S' has no update");
    refuses(F("init h[t: 1] = 0.0 init g[t: 1] = 0.0 update h[t] = g[t - 1]"),
            "t:1: error: 'g' has first steps, but scan 'S' never updates it");
    refuses(F("init h[t: n] = 0.0 update h[t] = h[t - 1]"),
            "t:1: error: the number of first steps of 'h' must be a positive constant, found 'n'");
    refuses(F("init h[t: 0] = 0.0 update h[t] = h[t - 1]"),
            "t:1: error: the number of first steps of 'h' must be a positive constant, found '0'");
    refuses(F("init h[t: 1] = 0.0 init g[t: 2] = 0.0"),
            "t:1: error: 'g' has 2 first steps, but the other states of scan 'S' have 1");
    refuses(F("init h[t: 1] = 0.0 update h[t] = h[t - 1] init g[t: 1] = 0.0"),
            "t:1: error: the first steps of 'g' must stand before the updates of scan 'S'");
    refuses(F("init h[] = 0.0"), "t:1: error: state 'h' of scan 'S' has no time axis");
    refuses(F("init h[t: 2] = 0.0 update h[t] = h[t - 2]"),
            "t:1: error: scan 'S' has 2 first steps, but it cannot be proven that its 'n' steps are at least "
            "as many");
    refuses(F("init h[t: 1] = 0.0 update h[t] = h[t - 1] update h[t] = h[t - 1]"),
            "t:1: error: 'h' is updated twice by scan 'S'");
    refuses(F("init h[t: 1] = 0.0 update h[t, j: 2] = h[t - 1]"),
            "t:1: error: 'h' has 1 axes in its first steps and 2 in its update");
    refuses(F("init h[t: 1] = 0.0 update h[t] = f64(h[t - 1])"),
            "t:1: error: 'h' is f32 in its first steps and f64 in its update");
    refuses(F("init h[t: 1, j: 2] = 0.0 update h[t, j: 3] = h[t - 1, j]"),
            "t:1: error: axis 'j' of 'h' runs over '3' in its update and over '2' in its first steps");
    refuses(F("update h[s] = 0.0"), "t:1: error: expected 't', the time of scan 'S', found 's'");
    refuses("def f(n) { scan S[t] { update h[t] = 0.0 } return h }",
            "t:1: error: scan 'S' has 1 axes; expected its time with an extent, as in S[t: n]");
    refuses(F("h[t] = 0.0"), "t:1: error: expected 'init', 'update' or '}', found 'h'");
}

Test(te_scan, refuses_steps_that_are_not_there)
{
    refuses(F("init h[t: 1] = 0.0 update h[t] = h[t]"),
            "t:1: error: 'h' is read at step 't' before scan 'S' computes it");
    refuses(F("init h[t: 1] = 0.0 update h[t] = h[t + 1]"),
            "t:1: error: 'h' is read at step 't + 1', which is later than 't'");
    refuses(F("init h[t: 1] = 0.0 update h[t] = h[t - 2]"),
            "t:1: error: 'h' is read 2 steps back, but scan 'S' has only 1 first steps");
    refuses(F("init h[t: 1] = 0.0 update h[t] = h[t * 2]"),
            "t:1: error: 'h' is read at step 't * 2': expected 't' minus a constant");
    refuses(F("init h[t: 1] = 0.0 update h[t] = sum[k: 2](h[t - k])"),
            "t:1: error: 'h' is read at step 't - k': expected 't' minus a constant");
    refuses(F("init h[t: 1] = 0.0 update z[t] = h[t - 1] update h[t] = z[t - 1]"),
            "t:1: error: 'z' has no first steps, so it can only be read at step 't'");
    refuses("def f(n) where n >= 1 { scan S[t: n] { init h[t: 1] = 0.0 update z[t] = h[t - 1] update h[t] = "
            "z[t] } y[t] = z[t] "
            "return y }",
            "t:1: error: 'z' has no first steps, so only its scan 'S' may read it");
    refuses("def f(n) where n >= 1 { scan S[t: n] { init h[t: 1] = 0.0 update z[t] = h[t - 1] update h[t] = "
            "z[t] } return z }",
            "t:1: error: 'z' cannot be an output of 'f': it has no first steps");
}

Test(te_scan, must_be_closed_and_alone)
{
    te_def *d = te_def_new(cx, "f");
    const ir_expr *t = te_axis(cx, "t", ir_int(cx, 4)), *i = te_axis(cx, "i", ir_int(cx, 4));
    te_scan *s = te_scan_new(d, "S", t);

    te_output(d, te_scan_step(s, "h", &t, 1, t));
    cr_assert_null(te_tree(cx, d));
    fails_with("error: scan 'S' is not closed");
    cr_assert_null(te_scan_new(d, "R", t));
    fails_with("error: scan 'S' is still open, so 'R' cannot begin");
    cr_assert_null(te_scan_step(s, "g", &i, 1, i));
    fails_with("error: the first axis of 'g' must be the time 't' of scan 'S', found 'i'");
    cr_assert_null(te_scan_step(s, "g", NULL, 0, t));
    fails_with("error: update 'g' of scan 'S' has no time axis");
    cr_assert(te_scan_close(s));
    cr_assert_null(te_scan_step(s, "g", &t, 1, t));
    fails_with("error: scan 'S' is closed");
    cr_assert_not(te_scan_close(s));
    fails_with("error: scan 'S' is closed");
    cr_assert(te_tree(cx, d));
}

/* A tree that was written by hand and reads the step to come. */
Test(te_scan, the_interpreter_reports_a_step_that_is_not_computed_yet)
{
    const ir_program *p = ir_parse_program(cx, "t",
                                           "program f(out h: f32[4]) {\n"
                                           "  for t in 0..4 { block h(s scan = t in 0..4) {\n"
                                           "    reads h[0:4] writes h[s] h[s] = h[(s + 1) % 4]\n"
                                           "  } }\n}\n");
    float h[4];
    ir_arg arg = F32(h, 4);

    cr_assert(p, "%s", tec_context_error(cx));
    cr_assert_not(ir_interpret(cx, p, &(ir_run){.args = &arg}));
    cr_assert(strstr(tec_context_error(cx), "read of 'h'[1], which nothing has written"), "%s",
              tec_context_error(cx));
}

Test(te_scan, several_outputs_of_one_update)
{
    const char *text = "def f(A: f32[3, 4]) {\n"
                       "  scan S[t: 3] {\n"
                       "    update B(V, I)[t] = argmax[k: 4](A[t, k], k)\n"
                       "    update at[t] = I[t]\n"
                       "  }\n"
                       "  return V, at\n}\n";
    float a[12] = {0, 3, 1, 2, 9, 0, 0, 0, 1, 2, 3, 4}, v[3];
    int64_t at[3];

    round_trips(text, text);
    RUN(defined(text), F32(a, 3, 4), F32(v, 3), I64(at, 3));
    cr_assert(v[0] == 3 && v[1] == 9 && v[2] == 4 && at[0] == 1 && at[1] == 0 && at[2] == 3);
}

/* Every prefix of a text with a scan is refused or read, and never more. */
Test(te_scan, survives_torn_text)
{
    char text[1024];

    for (size_t n = 0; n + 2 < strlen(lstm_text); n++) {
        snprintf(text, sizeof text, "%.*s", (int)n, lstm_text);
        cr_assert_null(te_parse(cx, "t", text), "%s", text);
        cr_assert(base_failed(cx));
        tec_context_clear(cx);
    }
}
