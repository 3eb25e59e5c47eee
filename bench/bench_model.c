/* bench/bench_model.c -- a worker of bench/run: runs one module, when it is told to.
 *
 *     bench_model MODULE THREADS EXTENT [FOLDER]     // EXTENT: of symbolic dimensions
 *     < sample 0.2                                   // run for so many seconds
 *     > 31.25                                        // the median, in milliseconds
 *
 * First it says "ready FLOPS", with what one run computes. The bytes of input N are in FOLDER/N.bin; without
 * a folder, inputs are seeded random numbers. It links the runtime alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tec/runtime.h"

typedef struct {
    tec_executor *ex;
    tec_error err;
    const char *folder; /* NULL: random numbers */
} runner;

static void fill(const DLTensor *t)
{
    uint32_t state = 12345;

    for (int64_t i = 0; i < tec_tensor_elements(t) && t->dtype.code == kDLFloat && t->dtype.bits == 32; i++) {
        state = state * 1664525 + 1013904223;
        ((float *)t->data)[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
}

static bool read_input(runner *r, int i, const DLTensor *t)
{
    char path[4096];
    size_t size = tec_tensor_bytes(t);

    snprintf(path, sizeof path, "%s/%d.bin", r->folder, i);
    FILE *f = fopen(path, "rb");
    bool good = f && fread(t->data, 1, size, f) == size && fgetc(f) == EOF;
    if (!good) {
        r->err.status = TEC_IO;
        snprintf(r->err.text, sizeof r->err.text, "%.400s does not hold %zu bytes", path, size);
    }
    if (f)
        fclose(f);
    return good;
}

static bool set_input(runner *r, int i, int64_t extent)
{
    tec_tensor_info info;

    if (!tec_executor_input_info(r->ex, i, &info, &r->err))
        return false;
    for (int d = 0; d < info.ndim; d++)
        if (info.shape[d] < 0)
            info.shape[d] = extent;
    tec_array *a = tec_array_new(info.dtype, info.ndim, info.shape, &r->err);
    if (!a)
        return false;
    if (!r->folder)
        fill(tec_array_tensor(a));
    bool good = (!r->folder || read_input(r, i, tec_array_tensor(a))) &&
                tec_executor_set_input(r->ex, i, tec_array_tensor(a), &r->err);
    tec_array_free(a);
    return good;
}

static bool start(runner *r, tec_module *m, int threads, bool profile, int64_t extent)
{
    r->ex = tec_executor_new(m, NULL, &(tec_run_options){.threads = threads, .profile = profile}, &r->err);
    for (int i = 0; i < tec_executor_n_inputs(r->ex); i++)
        if (!set_input(r, i, extent))
            return false;
    return tec_executor_run(r->ex, &r->err);
}

/* Operations of one run: each step's rate times its time. */
static double count_flops(tec_module *m, int64_t extent, const char *folder, tec_error *err)
{
    runner r = {.folder = folder};
    double flops = 0;

    if (!start(&r, m, 1, true, extent))
        *err = r.err;
    for (int i = 0; i < tec_executor_n_steps(r.ex); i++) {
        tec_profile_row row;

        if (tec_executor_profile(r.ex, i, &row))
            flops += row.gflops * row.median_s * 1e9;
    }
    tec_executor_free(r.ex);
    return flops;
}

static tec_status run(void *user)
{
    runner *r = user;

    return tec_executor_run(r->ex, &r->err) ? TEC_OK : r->err.status;
}

/* Answers until its input ends. */
static bool serve(runner *r)
{
    char line[64];
    double seconds;

    while (fgets(line, sizeof line, stdin)) {
        tec_timing t;

        if (sscanf(line, "sample %lf", &seconds) != 1)
            return false;
        if (!tec_time(run, r, &(tec_time_options){.min_seconds = seconds, .repeats = 3}, &t, &r->err))
            return false;
        printf("%.6f\n", t.median_s * 1e3);
        fflush(stdout);
    }
    return true;
}

int main(int argc, char **argv)
{
    runner r = {.folder = argc == 5 ? argv[4] : NULL};

    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: bench_model MODULE THREADS EXTENT [FOLDER]\n");
        return 2;
    }
    int64_t extent = atoll(argv[3]);
    tec_module *m = tec_module_open(argv[1], &(tec_module_options){.copy_weights = true}, &r.err);
    double flops = m ? count_flops(m, extent, r.folder, &r.err) : 0;
    bool good = r.err.status == TEC_OK && start(&r, m, atoi(argv[2]), false, extent);
    if (good) {
        printf("ready %.0f\n", flops);
        fflush(stdout);
        good = serve(&r);
    }
    if (!good)
        fprintf(stderr, "bench_model: %s\n", r.err.text);
    tec_executor_free(r.ex);
    tec_module_free(m);
    return good ? 0 : 1;
}
