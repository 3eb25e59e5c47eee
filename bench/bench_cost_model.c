/* bench/bench_cost_model.c -- how well a cost model ranks candidates that it has not seen, and what it costs.
 *
 *     tec records export tune.db > records.jsonl; bench_cost_model records.jsonl  rank correlations,
 *         with and without transfer
 *     bench_cost_model times 800                                                  milliseconds for features,
 *                                                                                   fit and prediction
 *
 * Of each task in the records, the last third of the candidates is held out. The model learns from the first
 * 0, 16, 32 ... others: alone; with all other tasks as its prior, as a tuner begins; or all rows at once,
 * "joint". Failed candidates count as the slowest. Printed are Spearman's rho, Kendall's tau, and how near
 * the best of the eight candidates that are scored highest comes to the best of all held out; then which
 * features take part in the decisions of a model of all tasks. Features are made anew from definitions and
 * traces.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "autotune/prior.h"
#include "space/space.h"
#include "te/text.h"

enum { MAX_TASKS = 64, MAX_ROWS = 2000, TOP = 8 };

typedef struct {
    uint64_t key;
    const char *name;
    float *rows;
    double *cost;
    int n, failed;
} task;

typedef struct {
    task of[MAX_TASKS];
    int n, skipped;
} data;

static int fail(const tec_context *cx)
{
    fprintf(stderr, "bench_cost_model: %s\n", tec_context_error(cx));
    return 1;
}

/* ---- reading ---- */

static task *task_of(tec_context *cx, data *d, const store_record *r)
{
    uint64_t key = base_hash(r->workload.exact_key, strlen(r->workload.exact_key),
                             base_hash(r->target.text, strlen(r->target.text), 0));
    int i = 0;

    while (i < d->n && d->of[i].key != key)
        i++;
    if (i < d->n)
        return &d->of[i];
    if (d->n == MAX_TASKS)
        return NULL;
    d->of[d->n++] = (task){.key = key,
                           .name = base_strdup(cx, r->workload.summary),
                           .rows = malloc(sizeof(float) * MAX_ROWS * TUNE_N_FEATURES),
                           .cost = malloc(sizeof(double) * MAX_ROWS)};
    return &d->of[i];
}

static void read_record(tec_context *cx, tec_context *scratch, data *d, const store_record *r)
{
    const target *t = target_parse(scratch, r->target.text);
    task *to = task_of(cx, d, r);

    if (!t || !to || to->n == MAX_ROWS || r->status == STORE_DEVICE_ERROR || r->status == STORE_CANCELLED ||
        !tune_features_of_record(scratch, r, t, to->rows + (size_t)to->n * TUNE_N_FEATURES)) {
        d->skipped++;
        return;
    }
    to->cost[to->n] = tune_cost_of_record(r);
    to->failed += isinf(to->cost[to->n]) != 0;
    to->n++;
}

static bool read_file(tec_context *cx, const char *path, data *out)
{
    tec_context *scratch = base_child(cx);
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;

    if (!f)
        return base_fail(cx, TEC_IO, (base_loc){0}, "cannot read '%s'", path), false;
    for (ssize_t n; (n = getline(&line, &room, f)) > 0; base_reset(scratch)) {
        const store_record *r = store_json_parse(scratch, line, (size_t)n);

        if (r)
            read_record(cx, scratch, out, r);
        else
            out->skipped++;
    }
    free(line);
    fclose(f);
    tec_context_free(scratch);
    return true;
}

/* ---- judging ---- */

static double speed(double cost)
{
    return isinf(cost) ? 0 : 1 / cost;
}

static double rank_of(const double *v, int n, int i)
{
    double rank = 0;

    for (int j = 0; j < n; j++)
        rank += v[j] < v[i] ? 1 : v[j] == v[i] ? 0.5 : 0;
    return rank - n / 2.0;
}

typedef struct {
    double rho, tau, best; /* best: of the highest scored, relative to the best of all */
} judgement;

static double kendall(const double *a, const double *b, int n)
{
    double sum = 0, pairs = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            sum += (a[i] > a[j] ? 1 : a[i] < a[j] ? -1 : 0) * (b[i] > b[j] ? 1 : b[i] < b[j] ? -1 : 0);
            pairs += b[i] != b[j];
        }
    return pairs > 0 ? sum / pairs : 0;
}

static double best_of_top(const double *score, const double *speeds, int n)
{
    double best = 0, all = 0;

    for (int i = 0; i < n; i++) {
        int above = 0;

        for (int j = 0; j < n; j++)
            above += score[j] > score[i] || (score[j] == score[i] && j < i);
        best = above < TOP ? fmax(best, speeds[i]) : best;
        all = fmax(all, speeds[i]);
    }
    return all > 0 ? best / all : 0;
}

static judgement judge(const double *score, const double *speeds, int n)
{
    double xy = 0, xx = 0, yy = 0;

    for (int i = 0; i < n; i++) {
        double x = rank_of(score, n, i), y = rank_of(speeds, n, i);

        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    return (judgement){xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0, kendall(score, speeds, n),
                       best_of_top(score, speeds, n)};
}

/* ---- learning ---- */

typedef enum { ALONE, PRIOR, JOINT, N_WAYS } way;
static const char *const ways[N_WAYS] = {"alone", "prior", "joint"};

static bool add_rows(tec_context *cx, tune_model *m, const task *t, int n)
{
    for (int i = 0; i < n; i++)
        if (!tune_model_add(cx, m, t->key, t->rows + (size_t)i * TUNE_N_FEATURES, t->cost[i]))
            return false;
    return true;
}

/* A model that knows the first n rows of a task, and of other tasks what the way says. */
static tune_model *teach(tec_context *cx, const data *d, int own, int n, way how, const char *kind)
{
    tune_model *m = tune_model_new(cx, kind, 1);
    bool ok = m != NULL;

    for (int i = 0; ok && how != ALONE && i < d->n; i++)
        ok = i == own || add_rows(cx, m, &d->of[i], d->of[i].n);
    ok = ok && (how != PRIOR || tune_model_settle(cx, m)) && add_rows(cx, m, &d->of[own], n) &&
         tune_model_fit(cx, m);
    if (ok)
        return m;
    tune_model_close(m);
    return NULL;
}

static bool measure(tec_context *cx, const data *d, int own, int n, way how, const char *kind, judgement *out)
{
    const task *t = &d->of[own];
    int first = t->n - t->n / 3, held_out = t->n / 3;
    double *score = base_array(cx, double, held_out + 1), *speeds = base_array(cx, double, held_out + 1);
    tune_model *m = teach(cx, d, own, n, how, kind);
    bool ok = m && tune_model_predict(cx, m, t->rows + (size_t)first * TUNE_N_FEATURES, held_out, score);

    for (int i = 0; i < held_out; i++)
        speeds[i] = speed(t->cost[first + i]);
    *out = judge(score, speeds, held_out);
    tune_model_close(m);
    return ok;
}

static const int learned[] = {0, 16, 32, 64, 128};

static bool print_correlations(tec_context *cx, const data *d, const char *kind)
{
    printf("%s\n%-24s %5s %6s %7s |%20s |%20s |%20s\n%46s|%s\n", kind, "task", "rows", "failed", "learned",
           ways[0], ways[1], ways[2], "", "   rho    tau   best |   rho    tau   best |   rho    tau   best");
    for (int k = 0; k < BASE_COUNT(learned); k++) {
        judgement mean[N_WAYS] = {{0}};
        int counted = 0;

        for (int i = 0; i < d->n; i++) {
            const task *t = &d->of[i];

            if (learned[k] > t->n - t->n / 3 || t->n < 12)
                continue;
            printf("%-24.24s %5d %6d %7d", t->name, t->n, t->failed, learned[k]);
            for (int w = 0; w < N_WAYS; w++) {
                judgement j;

                if (!measure(cx, d, i, learned[k], (way)w, kind, &j))
                    return false;
                printf(" |%6.3f %6.3f %6.3f", j.rho, j.tau, j.best);
                mean[w].rho += j.rho, mean[w].tau += j.tau, mean[w].best += j.best;
            }
            printf("\n");
            counted++;
        }
        printf("%-24s %5s %6s %7d", "mean", "", "", learned[k]);
        for (int w = 0; w < N_WAYS && counted; w++)
            printf(" |%6.3f %6.3f %6.3f", mean[w].rho / counted, mean[w].tau / counted,
                   mean[w].best / counted);
        printf("\n\n");
    }
    return true;
}

static bool print_importance(tec_context *cx, const data *d)
{
    enum { SHOWN = 25 };
    tune_model *m = tune_model_new(cx, "rank", 1);
    double gain[TUNE_N_FEATURES];
    bool ok = m != NULL;

    for (int i = 0; ok && i < d->n; i++)
        ok = add_rows(cx, m, &d->of[i], d->of[i].n);
    ok = ok && tune_model_fit(cx, m) && tune_model_importance(cx, m, gain);
    for (int shown = 0; ok && shown < SHOWN; shown++) {
        int best = 0;

        for (int i = 0; i < TUNE_N_FEATURES; i++)
            best = gain[i] > gain[best] ? i : best;
        if (gain[best] <= 0)
            break;
        printf("%5.1f %%  %-32s %s\n", 100 * gain[best], tune_feature_name(cx, best),
               tune_feature_what(best));
        gain[best] = 0;
    }
    tune_model_close(m);
    return ok;
}

static int correlations(tec_context *cx, const char *path)
{
    data *d = calloc(1, sizeof *d);

    if (!read_file(cx, path, d))
        return fail(cx);
    printf("%d tasks; %d records without features were left out\n\n", d->n, d->skipped);
    if (!print_correlations(cx, d, "rank") || !print_correlations(cx, d, "regression") ||
        !print_importance(cx, d))
        return fail(cx);
    for (int i = 0; i < d->n; i++) {
        free(d->of[i].rows);
        free(d->of[i].cost);
    }
    free(d);
    return 0;
}

/* ---- times ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* C2 and C6 of ResNet-18 with padding, bias and ReLU. */
static const ir_program *convolution(tec_context *cx, int channels, int size)
{
    te_file *f = te_parse(
        cx, "conv",
        base_format(
            cx,
            "def conv(X: f32[%d, %d, %d], W: f32[%d, %d, 3, 3], B: f32[%d]) {\n"
            "  P[c: %d, h: %d, w: %d] = select(h >= 1 && h < %d && w >= 1 && w < %d, X[c, h - 1, w - 1], "
            "0.0)\n"
            "  Y[o: %d, y: %d, x: %d] = sum[c: %d, ky: 3, kx: 3](P[c, y + ky, x + kx] * W[o, c, ky, kx])\n"
            "  Z[o: %d, y: %d, x: %d] = max(Y[o, y, x] + B[o], 0.0)\n  return Z\n}\n",
            channels, size, size, channels, channels, channels, channels, size + 2, size + 2, size + 1,
            size + 1, channels, size, size, channels, channels, size, size));

    return f ? te_tree(cx, f->defs.at[0]) : NULL;
}

/* Rows of n candidates, and what each took. */
static bool time_features(tec_context *cx, const space *sp, const target *t, int n, float *rows,
                          double *apply, double *features)
{
    tec_context *scratch = base_child(cx);
    uint64_t state = 1;

    for (int i = 0; i < n; base_reset(scratch)) {
        space_point p;
        double start = now();
        sched *s = space_sample(scratch, sp, &state, &p) ? space_apply(scratch, sp, &p) : NULL;
        double applied = now();

        if (!s || sched_failed(s))
            continue;
        if (!tune_features(scratch, sched_tree(s), t, NULL, rows + (size_t)i * TUNE_N_FEATURES))
            return false;
        *features += now() - applied;
        *apply += applied - start;
        i++;
    }
    tec_context_free(scratch);
    return true;
}

static bool time_model(tec_context *cx, const char *kind, const float *rows, int n)
{
    tune_model *m = tune_model_new(cx, kind, 1);
    double *score = base_array(cx, double, n), start;
    bool ok = m != NULL;

    for (int i = 0; ok && i < n; i++)
        ok = tune_model_add(cx, m, 1, rows + (size_t)i * TUNE_N_FEATURES,
                            exp2(rows[(size_t)i * TUNE_N_FEATURES + TUNE_PROGRAM_estimate]));
    start = now();
    ok = ok && tune_model_fit(cx, m);
    double fitted = now();
    ok = ok && tune_model_predict(cx, m, rows, n, score);
    printf("%-10s fit of %d rows %7.1f, prediction of as many %7.2f\n", kind, n, fitted - start,
           now() - fitted);
    tune_model_close(m);
    return ok;
}

static int times(tec_context *cx, int n)
{
    static const int shape[][2] = {{64, 56}, {128, 28}};
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v4 -num-cores=2");
    float *rows = malloc(sizeof *rows * (size_t)n * TUNE_N_FEATURES);

    printf("%d features; milliseconds of one core\n", TUNE_N_FEATURES);
    for (int i = 0; i < BASE_COUNT(shape); i++) {
        const ir_program *tree = convolution(cx, shape[i][0], shape[i][1]);
        space *sp = tree && t ? space_master(cx, tree, t) : NULL;
        double apply = 0, features = 0;

        if (!sp || !time_features(cx, sp, t, n, rows, &apply, &features))
            return fail(cx);
        printf("C%d        a candidate: schedule %.3f, features %.3f\n", i ? 6 : 2, apply / n, features / n);
        if (!time_model(cx, "rank", rows, n) || !time_model(cx, "regression", rows, n))
            return fail(cx);
    }
    free(rows);
    return 0;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 0;
    tec_context *cx = tec_context_new();
    int status = 2;

    if (argc == 3 && strcmp(argv[1], "times") == 0 && n > 0 && n <= 10000)
        status = times(cx, n);
    else if (argc == 2)
        status = correlations(cx, argv[1]);
    else
        fprintf(stderr, "usage: bench_cost_model RECORDS.jsonl | times CANDIDATES\n");
    tec_context_free(cx);
    return status;
}
