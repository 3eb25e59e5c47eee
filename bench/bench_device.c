/* bench/bench_device.c -- runs a module on a device, checks what it computes, and times it by the device's
 * own clock. A worker of bench/run, and the program of the folders that scripts/portable makes.
 *
 *     bench_device DEVICE                           // prints what the driver says about the device
 *     bench_device DEVICE copy BYTES [ROW]          // copies within the device's memory
 *     bench_device DEVICE MODULE REFERENCE [ROW]
 *     < sample 0.2                                  // run for so many seconds
 *     > 0.3125                                      // the median, in milliseconds
 *     < write FOLDER                                // arguments, or inputs and outputs, to NAME.npy
 *     > 3                                           // files
 *
 * REFERENCE is what the results are compared with before anything is timed: a module of the same function
 * for this CPU, which is run here; or a folder with NAME.npy for each input and output of a model; or
 * `none`. Inputs without a file are seeded random numbers; every extent that a model leaves open is 1 then.
 * First the worker says "ready FLOPS". With ROW, which is the name of the workload, there is no protocol:
 * the program measures for half a second and prints a row of a table,
 *     NAME  milliseconds  GFLOP/s  GB/s  largest difference from the reference
 *
 * A function is timed between two marks in the device's stream, with its tensors in the device's memory. A
 * run of a model goes from main memory to main memory: the marks stand before the copies of inputs and
 * behind those of outputs. Exit status: 0, 1 where a result is wrong or the device fails, 2 for wrong usage,
 * 3 where there is no such device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/device.h"
#include "runtime/module.h"
#include "worker/tensors.h"

enum { MOST = 32, REPEATS = 5, MOST_TIMES = 100000, NO_DEVICE = 3 };

/* Results may differ from the reference by this share of the greatest value: sums are added in another
 * order. */
#define TOLERANCE 1e-4

typedef struct {
    const char *name, *path, *reference;
    tec_device *device;
    tec_module *m;
    /* One of both: a function and its arguments, on the device and in main memory; or a model. */
    tec_function *f;
    tec_array *on[MOST], *host[MOST];
    DLTensor *arg[MOST];
    tec_param_info param[MOST];
    int n;
    tec_executor *ex;
    rt_stream stream; /* of the model, or of the copies */
    int64_t copied;   /* bytes of one copy; 0: a module runs */
    double flops, bytes;
    double error; /* largest difference from the reference, as a share of the greatest value; -1: unknown */
    tec_error err;
} bench;

static bool say(bench *self, const char *what)
{
    if (self->err.status == TEC_OK) {
        self->err.status = TEC_INVALID;
        snprintf(self->err.text, sizeof self->err.text, "%.400s", what);
    }
    return false;
}

static DLTensor *tensor_of(tec_array *array)
{
    return (DLTensor *)(uintptr_t)tec_array_tensor(array);
}

/* ---- comparing ---- */

/* The largest difference, as a share of the greatest value that was expected. A NaN on either side is one. */
static double difference(const DLTensor *got, const DLTensor *want)
{
    double most = 0, apart = 0;
    bool is_float = base_is_float(got->dtype);

    for (int64_t i = 0, n = tec_tensor_elements(want); i < n; i++) {
        double b = is_float ? worker_get_float(want, i) : (double)worker_get_int(want, i);
        double a = is_float ? worker_get_float(got, i) : (double)worker_get_int(got, i);

        if (!isfinite(a) || !isfinite(b))
            return INFINITY;
        most = fmax(most, fabs(b));
        apart = fmax(apart, fabs(a - b));
    }
    return apart == 0 ? 0 : apart / most;
}

/* Remembers the difference; a result of another shape, or of zeros alone, is wrong too. */
static bool compare(bench *self, const char *name, const DLTensor *got, const DLTensor *want)
{
    char text[300], a[100], b[100];

    tec_tensor_text(got, a, sizeof a);
    tec_tensor_text(want, b, sizeof b);
    if (strcmp(a, b) != 0) {
        snprintf(text, sizeof text, "result '%s' is %s, and the reference %s", name, a, b);
        return say(self, text);
    }
    double error = difference(got, want);
    self->error = fmax(self->error, error);
    if (error <= TOLERANCE)
        return true;
    snprintf(text, sizeof text, "result '%s' differs from the reference by %.2g of its greatest value", name,
             error);
    return say(self, text);
}

/* ---- functions ---- */

/* Tensors with seeded numbers in main memory, and their copies on the device. */
static bool add_arguments(bench *self)
{
    self->n = tec_function_n_params(self->f);
    if (self->n > MOST)
        return say(self, "the function has too many parameters");
    for (int i = 0; i < self->n; i++) {
        tec_param_info *p = &self->param[i];

        if (!tec_function_param_info(self->f, i, p, &self->err))
            return false;
        for (int d = 0; d < p->ndim; d++)
            if (p->shape[d] < 0)
                return say(self, "the function has extents that are no numbers");
        self->host[i] = tec_array_new(p->dtype, p->ndim, p->shape, &self->err);
        self->on[i] =
            self->host[i] ? tec_array_new_on(self->device, p->dtype, p->ndim, p->shape, &self->err) : NULL;
        if (!self->on[i])
            return false;
        if (!p->is_output)
            worker_fill_random(tensor_of(self->host[i]), (uint64_t)i + 1);
        self->arg[i] = p->is_scalar ? tensor_of(self->host[i]) : tensor_of(self->on[i]);
        if (!p->is_scalar && !tec_tensor_copy(self->arg[i], tensor_of(self->host[i]), &self->err))
            return false;
    }
    return true;
}

static bool fetch_outputs(bench *self)
{
    for (int i = 0; i < self->n; i++)
        if (self->param[i].is_output && !tec_tensor_copy(tensor_of(self->host[i]), self->arg[i], &self->err))
            return false;
    return true;
}

/* The same inputs through the CPU's code, whose outputs are memory of their own. */
static bool compare_with_cpu(bench *self)
{
    tec_module *m = tec_module_open(self->reference, NULL, &self->err);
    tec_function *f = m ? tec_function_new(m, NULL, NULL, &self->err) : NULL;
    tec_array *want[MOST] = {NULL};
    DLTensor *arg[MOST];
    bool good = f != NULL;

    for (int i = 0; good && i < self->n; i++) {
        const tec_param_info *p = &self->param[i];

        want[i] = p->is_output ? tec_array_new(p->dtype, p->ndim, p->shape, &self->err)
                               : tec_array_ref(self->host[i]);
        good = want[i] != NULL;
        arg[i] = good ? tensor_of(want[i]) : NULL;
    }
    good = good && tec_function_call(f, arg, self->n, &self->err);
    for (int i = 0; good && i < self->n; i++)
        if (self->param[i].is_output)
            good = compare(self, self->param[i].name, tensor_of(self->host[i]), arg[i]);
    for (int i = 0; i < self->n; i++)
        tec_array_free(want[i]);
    tec_function_free(f);
    tec_module_free(m);
    return good;
}

static bool open_function(bench *self)
{
    const rt_function_desc *desc = rt_module_describe(self->m)->functions;
    int64_t flops, bytes = 0;

    self->f = tec_function_new(self->m, NULL, &(tec_run_options){.device = self->device}, &self->err);
    if (!self->f || !add_arguments(self))
        return false;
    for (int i = 0; i < self->n; i++)
        bytes += tec_tensor_bytes(tensor_of(self->host[i]));
    self->bytes = (double)bytes;
    self->flops = rt_dim_is_const(desc->flops, &flops) ? (double)flops : 0;
    return tec_function_call(self->f, self->arg, self->n, &self->err) && fetch_outputs(self) &&
           (!self->reference || compare_with_cpu(self));
}

/* ---- models ---- */

/* The input from its file, or of seeded numbers. */
static bool set_input(bench *self, int i)
{
    char path[4096];
    tec_tensor_info info;
    tec_array *a;

    if (!tec_executor_input_info(self->ex, i, &info, &self->err))
        return false;
    if (self->reference) {
        snprintf(path, sizeof path, "%s/%s.npy", self->reference, info.name);
        a = tec_npy_read(path, &self->err);
    } else {
        for (int d = 0; d < info.ndim; d++)
            info.shape[d] = info.shape[d] < 0 ? 1 : info.shape[d];
        a = tec_array_new(info.dtype, info.ndim, info.shape, &self->err);
        if (a)
            worker_fill_random(tensor_of(a), (uint64_t)i + 1);
    }
    bool good = a && tec_executor_set_input(self->ex, i, tec_array_tensor(a), &self->err);
    self->host[self->n++] = a;
    return good;
}

static bool compare_with_files(bench *self)
{
    bool good = true;

    for (int i = 0; good && i < tec_executor_n_outputs(self->ex); i++) {
        const char *name = tec_executor_output_name(self->ex, i);
        char path[4096];

        snprintf(path, sizeof path, "%s/%s.npy", self->reference, name);
        tec_array *want = tec_npy_read(path, &self->err);
        good = want && compare(self, name, tec_executor_output(self->ex, i), tec_array_tensor(want));
        tec_array_free(want);
    }
    return good;
}

/* What one run computes, by a profile: each step's rate times its time. */
static bool count_flops(bench *self)
{
    tec_executor *ex = self->ex;

    for (int i = 0; i < tec_executor_n_steps(ex); i++) {
        tec_profile_row row;

        if (tec_executor_profile(ex, i, &row))
            self->flops += row.gflops * row.median_s * 1e9;
    }
    return true;
}

/* An executor in our stream with its inputs set, after one run. */
static bool open_executor(bench *self, bool profile)
{
    tec_run_options options = {.device = self->device, .stream = self->stream.queue, .profile = profile};

    for (; self->n > 0; self->n--)
        tec_array_free(self->host[self->n - 1]);
    tec_executor_free(self->ex);
    self->ex = tec_executor_new(self->m, NULL, &options, &self->err);
    int n = self->ex ? tec_executor_n_inputs(self->ex) : -1;
    if (n < 0 || n > MOST)
        return say(self, "the model has too many inputs");
    for (int i = 0; i < n; i++)
        if (!set_input(self, i))
            return false;
    return tec_executor_run(self->ex, &self->err);
}

static bool open_model(bench *self)
{
    return rt_stream_open(&self->stream, self->device, &self->err) && open_executor(self, true) &&
           count_flops(self) && open_executor(self, false) && (!self->reference || compare_with_files(self));
}

/* ---- timing ---- */

/* Puts one run, or one copy, into the stream. */
static bool begin_run(bench *self)
{
    if (self->ex)
        return tec_executor_run_async(self->ex, &self->err);
    return self->device->kind->copy(&self->stream, (rt_place){tec_array_data(self->on[1]), 0},
                                    (rt_place){tec_array_data(self->on[0]), 0}, self->copied, &self->err);
}

/* Between two marks around each run. A model's runs wait for each other, since their memory is one. */
static bool time_stream(bench *self, int times, double *seconds)
{
    const rt_device_kind *kind = self->device->kind;

    *seconds = 0;
    for (int i = 0; i < times; i++) {
        void *from = kind->mark(&self->stream, &self->err);
        bool good = from && begin_run(self);
        void *to = good ? kind->mark(&self->stream, &self->err) : NULL;
        double took = 0;

        good = to && (!self->ex || tec_executor_wait(self->ex, &self->err)) &&
               kind->wait(&self->stream, &self->err) &&
               kind->between(self->device, from, to, &took, &self->err);
        kind->drop_mark(self->device, from);
        kind->drop_mark(self->device, to);
        if (!good)
            return false;
        *seconds += took;
    }
    return true;
}

static bool time_runs(bench *self, int times, double *seconds)
{
    return self->f ? rt_function_time(self->f, self->arg, self->n, times, seconds, &self->err)
                   : time_stream(self, times, seconds);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of REPEATS samples, each of which runs as often as fits into its share of `seconds`. The share
 * before them warms up and tells how often that is. Milliseconds of one run. */
static bool sample(bench *self, double seconds, double *ms)
{
    double share = seconds / (REPEATS + 1), begun = tec_clock(), took, shortest = INFINITY, v[REPEATS];

    do {
        if (!time_runs(self, 1, &took))
            return false;
        shortest = fmin(shortest, took);
    } while (tec_clock() - begun < share);
    int times = (int)fmin(fmax(1, share / fmax(shortest, 1e-9)), MOST_TIMES);
    for (int i = 0; i < REPEATS; i++) {
        if (!time_runs(self, times, &took))
            return false;
        v[i] = took / times;
    }
    qsort(v, REPEATS, sizeof *v, by_value);
    *ms = v[REPEATS / 2] * 1e3;
    return true;
}

/* ---- what the program does ---- */

static bool write_one(bench *self, const char *folder, const char *name, const DLTensor *tensor)
{
    char path[4096 + 300];

    snprintf(path, sizeof path, "%s/%.256s.npy", folder, name);
    return tec_npy_write(path, tensor, &self->err);
}

static bool write_files(bench *self, const char *folder)
{
    int outputs = self->ex ? tec_executor_n_outputs(self->ex) : 0;

    for (int i = 0; i < self->n; i++)
        if (!write_one(self, folder, self->ex ? tec_executor_input_name(self->ex, i) : self->param[i].name,
                       tensor_of(self->host[i])))
            return false;
    for (int i = 0; i < outputs; i++)
        if (!write_one(self, folder, tec_executor_output_name(self->ex, i), tec_executor_output(self->ex, i)))
            return false;
    printf("%d\n", self->n + outputs);
    return true;
}

/* Answers until its input ends. */
static bool serve(bench *self)
{
    char line[4096], folder[4096];
    double seconds, ms;

    printf("ready %.0f\n", self->flops);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "sample %lf", &seconds) == 1) {
            if (!sample(self, seconds, &ms))
                return false;
            printf("%.6f\n", ms);
        } else if (sscanf(line, "write %4095[^\n]", folder) != 1) {
            return say(self, "expected 'sample SECONDS' or 'write FOLDER'");
        } else if (!write_files(self, folder)) {
            return false;
        }
        fflush(stdout);
    }
    return true;
}

static bool print_row(bench *self)
{
    double ms;

    if (!sample(self, 0.5, &ms))
        return false;
    printf("%-20s %12.4f ms", self->name, ms);
    self->flops > 0 ? printf(" %10.1f GFLOP/s", self->flops / ms * 1e-6) : printf(" %18s", "");
    self->bytes > 0 ? printf(" %9.1f GB/s", self->bytes / ms * 1e-6) : printf(" %14s", "");
    self->error >= 0 ? printf("  ok, %.1e apart\n", self->error) : printf("\n");
    return true;
}

static bool open_copy(bench *self, int64_t bytes)
{
    self->copied = bytes;
    self->bytes = 2 * (double)bytes; /* read and written */
    for (int i = 0; i < 2; i++) {
        self->on[i] =
            tec_array_new_on(self->device, (DLDataType){kDLUInt, 8, 1}, 1, (int64_t[]){bytes}, &self->err);
        if (!self->on[i])
            return false;
    }
    return rt_stream_open(&self->stream, self->device, &self->err);
}

static bool open_module(bench *self)
{
    self->m = tec_module_open(self->path, NULL, &self->err);
    return self->m && (tec_module_n_graphs(self->m) ? open_model(self) : open_function(self));
}

static bool describe(bench *self)
{
    tec_device_info d;

    if (!tec_device_describe(self->device, &d, &self->err))
        return false;
    printf("device  %s: %s, %.1f GiB, %d units\n", d.name, d.hardware, (double)d.memory_bytes / (1 << 30),
           (int)d.units);
    printf("driver  %s\nclock   at most %d MHz\n", d.driver, (int)d.clock_mhz);
    return true;
}

static void end(bench *self)
{
    tec_executor_free(self->ex);
    tec_function_free(self->f);
    rt_stream_close(&self->stream);
    for (int i = 0; i < MOST; i++) {
        tec_array_free(self->on[i]);
        tec_array_free(self->host[i]);
    }
    tec_module_free(self->m);
    tec_device_free(self->device);
}

int main(int argc, char **argv)
{
    bench self = {.error = -1};

    if (argc != 2 && argc != 4 && argc != 5) {
        fprintf(stderr, "usage: bench_device DEVICE [MODULE REFERENCE|none [ROW] | copy BYTES [ROW]]\n");
        return 2;
    }
    self.name = argc == 5 ? argv[4] : NULL;
    self.path = argc >= 4 ? argv[2] : NULL;
    self.reference = argc >= 4 && strcmp(argv[3], "none") != 0 ? argv[3] : NULL;
    self.device = tec_device_open(argv[1], &self.err);
    if (!self.device) {
        fprintf(stderr, "bench_device: %s\n", self.err.text);
        return NO_DEVICE;
    }
    bool good = !self.path                       ? describe(&self)
                : strcmp(self.path, "copy") == 0 ? open_copy(&self, atoll(argv[3]))
                                                 : open_module(&self);
    good = good && (!self.path || (self.name ? print_row(&self) : serve(&self)));
    if (!good)
        fprintf(stderr, "bench_device: %s%s%s\n", self.name ? self.name : "", self.name ? ": " : "",
                self.err.text);
    end(&self);
    return good ? 0 : 1;
}
