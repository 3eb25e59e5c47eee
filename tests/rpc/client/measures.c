/* tests/rpc/client/measures.c -- what sessions measure for tuners: on which CPUs, in turns, for how long, and
 * what is released on the way. */
#include <pthread.h>
#include <sched.h>

#include "rpc/client/measure.h"
#include "tests/rpc/client/kit.h"
#include "worker/cores.h"

#define PLAIN ((const char *[]){NULL})

/* Measures the kernel `sum` on x of `n` bytes, with that much time for measuring and in all. */
static bool measure_sum(fixture *f, tec_rpc_session *s, int64_t module, int64_t n, double min_seconds,
                        double seconds, rpc_measurement *out)
{
    const rpc_symbol sizes[] = {{"n", n}, {"m", 2}};
    const rpc_measure q = {.modules = {&module, 1},
                           .symbols = {sizes, 2},
                           .arguments = 1,
                           .repeats = 2,
                           .threads = 1,
                           .min_seconds = min_seconds,
                           .memory_bytes = 1 << 20,
                           .seconds = seconds,
                           .label = ""};

    f->err = (tec_error){0};
    return rpc_ask_measure(s, &q, out, &f->err);
}

/* A candidate is a module of one function. */
static int64_t upload(fixture *f, tec_rpc_session *s)
{
    if (!f->module.n)
        f->module = kit_module_of(KIT_ARCH, (const char *[]){"sum"}, 1);
    int64_t module = tec_rpc_upload_bytes(s, "kernels.so", f->module.data, f->module.n, &f->err);
    cr_assert(module, "%s", f->err.text);
    return module;
}

/* The first child of the server: the process of its only session. */
static pid_t find_session(const fixture *f)
{
    char command[64];
    int pid = 0;

    snprintf(command, sizeof command, "pgrep -P %d", (int)f->pid);
    FILE *p = popen(command, "re");
    cr_assert(p && fscanf(p, "%d", &pid) == 1);
    pclose(p);
    return pid;
}

static bool has_cpus(pid_t process, const cpu_set_t *cpus)
{
    cpu_set_t set;

    cr_assert_eq(sched_getaffinity(process, sizeof set, &set), 0);
    return CPU_EQUAL(&set, cpus);
}

/* Between two measurements the process leaves the measured CPU to others, and loads modules elsewhere; for
 * anything else that it computes it has all CPUs. */
Test(measures, leave_the_measured_cores_to_others)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    const worker_cores cores = worker_cores_here(1);
    const cpu_set_t *rest = cores.apart ? &cores.others : &cores.all;
    pid_t process = find_session(&f);
    static rpc_measurement m;
    int32_t y[2];

    int64_t module = upload(&f, s);
    cr_assert(has_cpus(process, &cores.all));
    cr_assert(measure_sum(&f, s, module, 100, 0.001, 5, &m), "%s", f.err.text);
    cr_assert_eq(m.answer.outcome, WORKER_OK, "%s", m.error);
    cr_assert(has_cpus(process, rest));
    upload(&f, s);
    cr_assert(has_cpus(process, rest));
    cr_assert(measure_sum(&f, s, module, 100, 0.001, 5, &m), "%s", f.err.text);
    cr_assert(has_cpus(process, rest));
    cr_assert(kit_call(&f, s, "sum", "ab", y), "%s", f.err.text);
    cr_assert(has_cpus(process, &cores.all));
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

/* A module that is loaded while others measure is loaded without waiting for them. */
Test(measures, load_modules_while_others_measure)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    const worker_cores cores = worker_cores_here(1);
    static rpc_measurement m;
    worker_core_lock lock;

    int64_t module = upload(&f, s);
    cr_assert(measure_sum(&f, s, module, 100, 0.001, 5, &m), "%s", f.err.text);
    cr_assert(worker_cores_lock(&lock, &cores.measured, 60, NULL));
    cr_assert(upload(&f, s) > 0);
    worker_cores_unlock(&lock);
    cr_assert(measure_sum(&f, s, module, 100, 0.001, 5, &m), "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

typedef struct {
    worker_core_lock lock;
    double seconds;
} holder;

static void *hold(void *user)
{
    holder *h = user;

    nanosleep(&(struct timespec){.tv_nsec = (long)(h->seconds * 1e9)}, NULL);
    worker_cores_unlock(&h->lock);
    return NULL;
}

/* The wait for others is no part of the time that a candidate has, and is told of. The timer of the candidate
 * counts behind the wait as before it. */
Test(measures, wait_for_others_and_end_in_time)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    const worker_cores cores = worker_cores_here(1);
    holder h = {.seconds = 0.6};
    static rpc_measurement m;
    pthread_t thread;

    int64_t module = upload(&f, s);
    cr_assert(worker_cores_lock(&h.lock, &cores.measured, 60, NULL));
    cr_assert_eq(pthread_create(&thread, NULL, hold, &h), 0);
    cr_assert(measure_sum(&f, s, module, 100, 0.001, 0.5, &m), "%s", f.err.text);
    pthread_join(thread, NULL);
    cr_assert_eq(m.answer.outcome, WORKER_OK, "%s", m.error);
    cr_assert_geq(m.waited_seconds, 0.3);
    cr_assert_not(measure_sum(&f, s, module, 100, 100, 0.1, &m));
    cr_assert_eq(f.err.status, TEC_TIMEOUT, "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

static int64_t new_array(fixture *f, tec_rpc_session *s)
{
    return tec_rpc_array(s, (DLDataType){kDLInt, 32, 1}, 0, NULL, &f->err);
}

/* What is released later is gone when the next question is answered, so its handle is given again. Handles
 * that nobody has, or a question that cannot be sent, leave questions and answers in step. */
Test(measures, release_modules_along_with_the_next_question)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    enum { LONG = 1 << 22 };
    char *name = malloc(LONG);

    int64_t module = upload(&f, s);
    rpc_release_later(s, module);
    cr_assert_eq(new_array(&f, s), module);
    rpc_release_later(s, 999);
    rpc_release_later(s, module);
    cr_assert_eq(new_array(&f, s), module);
    memset(name, 'x', LONG - 1);
    name[LONG - 1] = '\0';
    rpc_release_later(s, module);
    cr_assert_not(tec_rpc_call(s, &(tec_rpc_call_options){.module = 1, .function = name}, NULL, &f.err));
    cr_assert_str_eq(f.err.text, "the request does not fit into a message");
    cr_assert_eq(new_array(&f, s), module);
    for (int i = 0; i < 20; i++)
        rpc_release_later(s, module);
    cr_assert_eq(new_array(&f, s), module);
    rpc_release_later(s, module); /* and is not sent any more */
    rpc_release_later(NULL, 1);
    tec_rpc_close(s);
    free(name);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}
