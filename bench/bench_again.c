/* bench/bench_again.c -- schedules of one function once more, each in turns with the first, so that a slower
 * minute of the machine is not taken for a slower schedule.
 *
 *     // the folder has tec and tec_runner; a line "." ends each trace
 *     bench_again FILE.te FOLDER THREADS < traces
 *     // a line for each but the first: how many times as fast as the first
 *     > 1.1893
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/measure.h"
#include "te/text.h"

typedef struct {
    tec_context *cx;
    const tune_task *task;
    tune_measurer *m;
    const char *first;
} bench;

static const char *read_text(tec_context *cx, FILE *f)
{
    base_text text = {0};
    char part[4096];

    for (size_t n; f && (n = fread(part, 1, sizeof part, f)) > 0;)
        base_addn(cx, &text, part, n);
    bool good = f && !ferror(f);
    if (f)
        fclose(f);
    return good ? base_text_str(cx, &text) : NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The median of the ratios of costs that belong together; 0: one of them failed. */
static double gain(tec_context *cx, const tune_result r[2])
{
    int n = r[0].n_costs < r[1].n_costs ? r[0].n_costs : r[1].n_costs;
    double *ratio = base_array(cx, double, n);

    if (r[0].status != STORE_OK || r[1].status != STORE_OK || n == 0)
        return 0;
    for (int i = 0; i < n; i++)
        ratio[i] = r[0].costs[i] / r[1].costs[i];
    qsort(ratio, (size_t)n, sizeof *ratio, by_value);
    return ratio[n / 2];
}

static bool measure(bench *b, const char *trace)
{
    tune_candidate first = {.task = b->task, .trace = b->first, .seed = 1},
                   one = {.task = b->task, .trace = trace, .seed = 1, .check = true};
    tune_result r[2];

    if (!b->first) {
        b->first = trace;
        return true;
    }
    if (!b->m->submit_pair(b->m, b->cx, &first, &one) || b->m->collect_pair(b->m, b->cx, r, INFINITY) != 1)
        return false;
    printf("%.5f\n", gain(b->cx, r));
    fflush(stdout);
    return true;
}

static bool measure_all(bench *b)
{
    base_text trace = {0};
    char line[4096];
    bool ok = true;

    while (ok && fgets(line, sizeof line, stdin)) {
        if (strcmp(line, ".\n") != 0) {
            base_add(b->cx, &trace, line);
            continue;
        }
        ok = measure(b, base_text_str(b->cx, &trace));
        trace = (base_text){0};
    }
    return ok;
}

int main(int argc, char **argv)
{
    bench b = {.cx = tec_context_new()};
    const char *text = argc == 4 ? read_text(b.cx, fopen(argv[1], "r")) : NULL;
    te_file *f = text ? te_parse(b.cx, argv[1], text) : NULL;

    if (argc != 4) {
        fprintf(stderr, "usage: bench_again FILE.te FOLDER THREADS < TRACES\n");
        return 2;
    }
    b.task =
        f ? tune_task_new(b.cx, &(tune_task){.def = f->defs.at[0], .target = target_native(b.cx)}) : NULL;
    b.m = b.task ? tune_measurer_local(
                       b.cx, &(tune_measure_options){.threads = atoi(argv[3]),
                                                     .builder = base_format(b.cx, "%s/tec", argv[2]),
                                                     .runner = base_format(b.cx, "%s/tec_runner", argv[2])})
                 : NULL;
    bool good = b.m && measure_all(&b);
    if (!good)
        fprintf(stderr, "bench_again: %s\n",
                tec_context_error(b.cx) ? tec_context_error(b.cx)
                                        : base_format(b.cx, "cannot read '%s'", argv[1]));
    if (b.m)
        b.m->close(b.m);
    tec_context_free(b.cx);
    return good ? 0 : 1;
}
