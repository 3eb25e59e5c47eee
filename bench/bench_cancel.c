/* bench/bench_cancel.c -- how soon a cancelled compile returns: at moments spread over all of its phases.
 *
 *     bench_cancel MODEL.onnx SAMPLES [JOBS]
 *     // sample by sample: when it was cancelled, what was being done then, and the delay; then the largest
 *     > 412.3 ms  import  0.4 ms, 0.3 ms of CPU
 *     > largest: 38.1 ms (35.2 ms of CPU), 812.0 ms after the beginning (build)
 *
 * Each sample compiles the model in a context of its own, to a file in /tmp, and cancels it. The delay is the
 * time from the cancel until the call has returned, with all that it held released. On a busy machine the CPU
 * time that the process has spent meanwhile says more (with JOBS = 1).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tec/tec.h"

typedef struct {
    const char *model, *out;
    int jobs;
    tec_context *cx;
    atomic_int phase;     /* of `phases` */
    double returned, cpu; /* when the call returned, and the CPU time of the process then */
    tec_status status;
} compile;

enum { IMPORT, BUILD, DONE };
static const char *const phases[] = {"import", "build", "done"};

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *run(void *arg)
{
    compile *c = arg;
    tec_graph *g = tec_graph_import(c->cx, c->model, NULL);

    if (g) {
        atomic_store(&c->phase, BUILD);
        tec_graph_build_file(g, &(tec_build_options){.target = "native", .jobs = c->jobs}, c->out);
    }
    c->returned = tec_clock();
    c->cpu = cpu_seconds();
    c->status = tec_context_status(c->cx);
    return NULL;
}

static void wait_seconds(double s)
{
    struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};

    nanosleep(&t, NULL);
}

/* A compile that is cancelled, and what it cost. */
typedef struct {
    double after, delay, cpu; /* seconds; a delay less than 0: the compile was done before */
    int phase;
} cancelled;

/* Compiles, and cancels that `after` seconds; 0: not at all, the delay is then the whole time. */
static cancelled sample(compile *c, double after)
{
    cancelled s = {.after = after};
    pthread_t thread;
    double since = tec_clock(), cpu = cpu_seconds();

    c->cx = tec_context_new();
    atomic_store(&c->phase, IMPORT);
    if (!c->cx || pthread_create(&thread, NULL, run, c) != 0) {
        fprintf(stderr, "bench_cancel: no context or thread\n");
        exit(1);
    }
    if (after > 0) {
        wait_seconds(after);
        s.phase = atomic_load(&c->phase);
        since = tec_clock();
        cpu = cpu_seconds();
        tec_context_cancel(c->cx);
    }
    pthread_join(thread, NULL);
    if (c->status != TEC_OK && (after == 0 || c->status != TEC_CANCELLED)) {
        fprintf(stderr, "bench_cancel: %s\n", tec_context_error(c->cx));
        exit(1);
    }
    s.delay = after > 0 && c->status == TEC_OK ? -1 : c->returned - since;
    s.cpu = c->cpu - cpu;
    tec_context_free(c->cx);
    return s;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 0;
    cancelled worst = {0};
    char out[64];

    if (n < 1) {
        fprintf(stderr, "usage: bench_cancel MODEL.onnx SAMPLES [JOBS]\n");
        return 2;
    }
    snprintf(out, sizeof out, "/tmp/bench-cancel-%d.tec", (int)getpid());
    compile c = {.model = argv[1], .out = out, .jobs = argc > 3 ? atoi(argv[3]) : 0};
    double whole = sample(&c, 0).delay;
    printf("the whole compile: %.1f ms\n", whole * 1e3);
    for (int i = 0; i < n; i++) {
        cancelled s = sample(&c, whole * (i + 0.5) / n);

        if (s.delay < 0)
            continue;
        printf("%.1f ms  %s  %.1f ms, %.1f ms of CPU\n", s.after * 1e3, phases[s.phase], s.delay * 1e3,
               s.cpu * 1e3);
        worst = s.cpu > worst.cpu ? s : worst;
    }
    unlink(out);
    printf("largest: %.1f ms (%.1f ms of CPU), %.1f ms after the beginning (%s)\n", worst.delay * 1e3,
           worst.cpu * 1e3, worst.after * 1e3, phases[worst.phase]);
    return 0;
}
