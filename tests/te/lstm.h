/* tests/te/lstm.h -- an LSTM of 64 steps as a definition, and the same in C: X[t] goes into step t + 1. */
#ifndef TESTS_TE_LSTM_H
#define TESTS_TE_LSTM_H

#include <math.h>

enum { LSTM_STEPS = 64, LSTM_IN = 6, LSTM_HIDDEN = 5 };

static const char *const lstm_text =
    "def lstm(n, X: f32[n, 6], W: f32[20, 6], U: f32[20, 5], b: f32[20], h0: f32[5], c0: f32[5]) {\n"
    "  scan cell[t: n + 1] {\n"
    "    init h[t: 1, j: 5] = h0[j]\n"
    "    init c[t: 1, j: 5] = c0[j]\n"
    "    update gate[t, g: 20] = b[g] + sum[k](W[g, k] * X[t - 1, k]) + sum[k](U[g, k] * h[t - 1, k])\n"
    "    update c[t, j] = sigmoid(gate[t, j + 5]) * c[t - 1, j] + sigmoid(gate[t, j]) * tanh(gate[t, j + "
    "10])\n"
    "    update h[t, j] = sigmoid(gate[t, j + 15]) * tanh(c[t, j])\n"
    "  }\n"
    "  return h, c\n"
    "}\n";

typedef struct {
    float X[LSTM_STEPS][LSTM_IN], W[4 * LSTM_HIDDEN][LSTM_IN], U[4 * LSTM_HIDDEN][LSTM_HIDDEN],
        b[4 * LSTM_HIDDEN];
    float h0[LSTM_HIDDEN], c0[LSTM_HIDDEN];
    float h[LSTM_STEPS + 1][LSTM_HIDDEN], c[LSTM_STEPS + 1][LSTM_HIDDEN];
} lstm_data;

static inline void lstm_fill(float *x, int n, unsigned seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
}

static inline void lstm_make(lstm_data *d)
{
    lstm_fill(&d->X[0][0], LSTM_STEPS * LSTM_IN, 1);
    lstm_fill(&d->W[0][0], 4 * LSTM_HIDDEN * LSTM_IN, 2);
    lstm_fill(&d->U[0][0], 4 * LSTM_HIDDEN * LSTM_HIDDEN, 3);
    lstm_fill(d->b, 4 * LSTM_HIDDEN, 4);
    lstm_fill(d->h0, LSTM_HIDDEN, 5);
    lstm_fill(d->c0, LSTM_HIDDEN, 6);
}

static inline double lstm_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static inline void lstm_step(const lstm_data *d, int t, double h[LSTM_HIDDEN], double c[LSTM_HIDDEN])
{
    double gate[4 * LSTM_HIDDEN];

    for (int g = 0; g < 4 * LSTM_HIDDEN; g++) {
        gate[g] = (double)d->b[g];
        for (int k = 0; k < LSTM_IN; k++)
            gate[g] += (double)d->W[g][k] * (double)d->X[t][k];
        for (int k = 0; k < LSTM_HIDDEN; k++)
            gate[g] += (double)d->U[g][k] * h[k];
    }
    for (int j = 0; j < LSTM_HIDDEN; j++) {
        c[j] = lstm_sigmoid(gate[j + LSTM_HIDDEN]) * c[j] +
               lstm_sigmoid(gate[j]) * tanh(gate[j + 2 * LSTM_HIDDEN]);
        h[j] = lstm_sigmoid(gate[j + 3 * LSTM_HIDDEN]) * tanh(c[j]);
    }
}

/* The largest difference between d->h, d->c and what this computes in double; infinite where one is no
 * number. */
static inline double lstm_error(const lstm_data *d)
{
    double h[LSTM_HIDDEN], c[LSTM_HIDDEN], worst = 0;

    for (int j = 0; j < LSTM_HIDDEN; j++) {
        h[j] = (double)d->h0[j];
        c[j] = (double)d->c0[j];
    }
    for (int t = 0; t <= LSTM_STEPS; t++) {
        for (int j = 0; j < LSTM_HIDDEN; j++) {
            double dh = fabs(h[j] - (double)d->h[t][j]), dc = fabs(c[j] - (double)d->c[t][j]);

            worst = dh <= worst ? worst : isnan(dh) ? INFINITY : dh;
            worst = dc <= worst ? worst : isnan(dc) ? INFINITY : dc;
        }
        if (t < LSTM_STEPS)
            lstm_step(d, t, h, c);
    }
    return worst;
}

#endif
