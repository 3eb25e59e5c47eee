/* bench/bench_measure.c -- how many candidates a second the local measurer gets through, and where the time
 * goes.
 *
 *     // random points of the master space of a convolution, or of
 *     bench_measure C6 200 build/release
 *     // a matrix product; the folder has tec and tec_runner
 *     bench_measure sgemm512 200 build/release THREADS
 *
 * Batches are submitted ahead, as a tuner does it. Every eighth candidate has its outputs checked.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/measure.h"
#include "bench/shapes.h"
#include "te/text.h"
#include "tec/runtime.h"

enum { BATCH = 16 };

typedef struct {
    tec_context *cx;
    tune_task *task;
    tune_measurer *m;
    uint64_t seed;
    int failed[STORE_CANCELLED + 1];
    double proposing, best;
} bench;

static const char *definition(tec_context *cx, const char *name)
{
    if (strncmp(name, "sgemm", 5) == 0) {
        int n = atoi(name + 5);

        return base_format(cx,
                           "def sgemm(A: f32[%d, %d], B: f32[%d, %d]) {\n  C[y, x] = sum[k](A[y, k] * B[k, "
                           "x])\n  return C\n}\n",
                           n, n, n, n);
    }
    const bench_conv *c = bench_conv_named(name);
    if (!c || c->depthwise)
        return NULL;
    long long k = c->kernel, s = c->stride, out = bench_conv_out(c),
              before = ((out - 1) * s + k - c->extent) / 2, n = c->extent;
    return base_format(cx,
                       "def conv(X: f32[%lld, %lld, %lld], W: f32[%lld, %lld, %lld, %lld]) {\n"
                       "  P[c: %lld, h: %lld, w: %lld] = select(h >= %lld && h < %lld && w >= %lld && w < "
                       "%lld, X[c, h - %lld, w - %lld], 0.0)\n"
                       "  Y[o: %lld, y: %lld, x: %lld] = sum[c: %lld, ky: %lld, kx: %lld](P[c, y*%lld + ky, "
                       "x*%lld + kx] * W[o, c, ky, kx])\n"
                       "  return Y\n}\n",
                       (long long)c->in, n, n, (long long)c->out, (long long)c->in, k, k, (long long)c->in,
                       (out - 1) * s + k, (out - 1) * s + k, before, n + before, before, n + before, before,
                       before, (long long)c->out, out, out, (long long)c->in, k, k, s, s);
}

static const char *next_trace(bench *b)
{
    double begun = tec_clock();
    space_point p = {0};
    const char *text = NULL;

    if (space_sample(b->cx, b->task->space, &b->seed, &p))
        text = sched_trace_text(b->cx, space_apply(b->cx, b->task->space, &p));
    b->proposing += tec_clock() - begun;
    return text;
}

static bool submit_batch(bench *b, int n, int before)
{
    tune_candidate c[BATCH];

    for (int i = 0; i < n; i++)
        c[i] = (tune_candidate){
            .task = b->task, .trace = next_trace(b), .seed = 1, .check = (before + i) % 8 == 0};
    return b->m->submit(b->m, b->cx, c, n);
}

static void count(bench *b, const tune_result *r, bool verbose)
{
    b->failed[r->status] += r->status != STORE_OK;
    if (r->status == STORE_OK && (b->best == 0 || r->median < b->best))
        b->best = r->median;
    if (r->status != STORE_OK && verbose)
        printf("%s: %s: %s\n", r->stage, r->error_kind, r->error);
}

static bool measure_all(bench *b, int n)
{
    int submitted = 0, got = 0;

    while (got < n) {
        tune_result r[BATCH];

        while (submitted < n && submitted - got < 2 * BATCH) {
            int some = n - submitted < BATCH ? n - submitted : BATCH;
            if (!submit_batch(b, some, submitted))
                return false;
            submitted += some;
        }
        int some = b->m->collect(b->m, b->cx, NULL, r, BATCH, INFINITY);
        if (some < 0)
            return false;
        for (int i = 0; i < some; i++)
            count(b, &r[i], true);
        got += some;
    }
    return true;
}

static void row(const char *what, double seconds, const tune_measure_stats *s)
{
    printf("  %-34s %8.2f s  %5.1f %% of the wall time  %7.1f ms a candidate\n", what, seconds,
           100 * seconds / s->wall, 1e3 * seconds / (double)(s->candidates ? s->candidates : 1));
}

static void report(bench *b, const char *name)
{
    tune_measure_stats s = b->m->stats(b->m);

    printf("%s: %lld candidates, %lld valid, %.1f valid a second, best %.3f ms (%.1f GFLOP/s)\n", name,
           (long long)s.candidates, (long long)s.ok, (double)s.ok / s.wall, 1e3 * b->best,
           b->best > 0 ? b->task->flops / b->best / 1e9 : 0);
    for (int i = 0; i <= STORE_CANCELLED; i++)
        if (b->failed[i])
            printf("  %d %s\n", b->failed[i], store_status_text((store_status)i));
    row("proposing (the caller)", b->proposing, &s);
    row("builders", s.build, &s);
    row("  schedule", s.schedule, &s);
    row("  lower and generate code", s.compile, &s);
    row("  link", s.link, &s);
    row("runner", s.run, &s);
    row("  load, arguments", s.load, &s);
    row("  first calls, checks, references", s.check, &s);
    row("  warm-up and measurement", s.timed, &s);
    row("the caller waited", s.collect, &s);
    printf("  processes replaced: %lld builders, %lld runners\n", (long long)s.builders_lost,
           (long long)s.runners_lost);
}

int main(int argc, char **argv)
{
    bench b = {.cx = tec_context_new(), .seed = 1};
    const char *text = argc >= 4 ? definition(b.cx, argv[1]) : NULL;
    te_file *f = text ? te_parse(b.cx, "bench.te", text) : NULL;

    if (argc < 4) {
        fprintf(stderr, "usage: bench_measure C1..C12|sgemmN CANDIDATES FOLDER [THREADS]\n");
        return 2;
    }
    b.task =
        f ? tune_task_new(b.cx, &(tune_task){.def = f->defs.at[0], .target = target_native(b.cx)}) : NULL;
    b.m = b.task ? tune_measurer_local(
                       b.cx, &(tune_measure_options){.threads = argc > 4 ? atoi(argv[4]) : 1,
                                                     .builder = base_format(b.cx, "%s/tec", argv[3]),
                                                     .runner = base_format(b.cx, "%s/tec_runner", argv[3])})
                 : NULL;
    bool good = b.m && measure_all(&b, atoi(argv[2]));
    if (good)
        report(&b, argv[1]);
    else
        fprintf(stderr, "bench_measure: %s\n",
                tec_context_error(b.cx) ? tec_context_error(b.cx) : "nothing to measure");
    if (b.m)
        b.m->close(b.m);
    tec_context_free(b.cx);
    return good ? 0 : 1;
}
