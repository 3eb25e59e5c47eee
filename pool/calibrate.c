/* pool/calibrate.c -- the kernel by which the devices of a class are compared: a small product, built
 * once for their target with its default schedule.
 */
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "compiler/compiler.h"
#include "pool/inside.h"
#include "schedule/sched.h"
#include "space/space.h"
#include "te/text.h"

/* Fits the first caches of all CPUs, and takes long enough for the clock of the slowest board. */
static const char kernel[] = "def calibration(A: f32[48, 48], B: f32[48, 48]) {\n  C[y, x] = sum[k](A[y, k] "
                             "* B[k, x])\n  return C\n}\n";

static bool build(tec_context *cx, const target *machine, rt_bytes *module)
{
    const te_file *file = te_parse(cx, "calibration", kernel);
    const te_def *def = file ? file->defs.at[0] : NULL;
    const ir_program *tree = def ? te_tree(cx, def) : NULL;
    sched *s = tree ? space_default(cx, tree, machine) : NULL;

    if (!s)
        return false;
    comp_unit u = {.name = def->name, .tree = sched_tree(s), .origin = "calibration"};
    comp_code *code = comp_compile(cx, &u, 1, &(comp_options){.target = machine, .jobs = 1});
    return code && comp_bytes(cx, code, module);
}

/* On one thread: what is compared is the device, not how its threads share work. */
bool pool_make_calibration(tec_context *cx, pool *self, const target *machine)
{
    target *one = base_copy(cx, machine, sizeof *machine);

    one->num_cores = 1;
    return build(cx, one, &self->calibration);
}

/* The shortest of the repeats: what disturbs a measurement makes it longer. 0 with an error. */
static double measure_once(pool_device *device, int64_t module, tec_error *err)
{
    const rpc_measurement *measurement = &device->calibration;
    double least = 0;
    const rpc_measure q = {.modules = {&module, 1},
                           .seed = 1,
                           .threads = 1,
                           .min_seconds = 0.005,
                           .repeats = 5,
                           .memory_bytes = 16 << 20,
                           .seconds = 20,
                           .label = ""};

    if (rpc_ask_measure(device->session, &q, &device->calibration, err)) {
        if (measurement->answer.outcome == WORKER_OK)
            least = measurement->costs[0];
        else
            rt_fail(err, TEC_INTERNAL, "the calibration kernel does not run: %s", measurement->error);
        for (int i = 1; least > 0 && i < measurement->answer.n_costs; i++)
            least = measurement->costs[i] < least ? measurement->costs[i] : least;
    }
    return least;
}

static void rest(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

static bool accepts(pool_device *device, double seconds, bool is_last, char why[TUNE_WHY])
{
    pool *p = device->pool;

    pthread_mutex_lock(&p->lock);
    pool_judge trial = p->judge;
    pool_judge_note(&trial, device->is.name, seconds);
    bool good = pool_judge_accepts(&trial, device->is.name, why, TUNE_WHY);
    if (good || is_last)
        p->judge = trial;
    pthread_mutex_unlock(&p->lock);
    return good;
}

/* A device is off only if it is so again and again: a moment's disturbance is none of its own. */
tune_asked pool_calibrate(pool_device *device, tune_failure *failure)
{
    enum { ATTEMPTS = 4 };
    const double pause = 0.2;
    const rt_bytes *code = &device->pool->calibration;
    tec_error err = {0};
    int64_t module = tec_rpc_upload_bytes(device->session, "calibration", code->data, code->n, &err);
    bool good = false;
    double seconds = module ? 1 : 0;

    device->measured = 0;
    for (int i = 0; i < ATTEMPTS && seconds > 0 && !good && !atomic_load(&device->stopped); i++) {
        if (i > 0)
            rest(pause);
        seconds = measure_once(device, module, &err);
        good = seconds > 0 && accepts(device, seconds, i == ATTEMPTS - 1, failure->error);
    }
    if (module)
        tec_rpc_release(device->session, module, NULL);
    if (seconds <= 0)
        tune_fail(failure, STORE_DEVICE_ERROR, "run", "device", err.text);
    else if (!good && !atomic_load(&device->stopped))
        snprintf(device->aside, sizeof device->aside, "%s", failure->error);
    return good ? TUNE_ASK_ANSWERED : TUNE_ASK_DOUBTED;
}
