/* bench/tune_convs.c -- tunes convolutions with bias and ReLU together, as one model, into a record store.
 *
 *     tune_convs DB SECONDS THREADS C1 C2 ... D9       // the folder above has tec and tec_runner
 *
 * SECONDS is the wall time of the job in all: searching, comparing what was found, and earlier calls with the
 * same DB, with whose job this one goes on. Every workload counts by the ratio of its times, not by their
 * difference. The last line is "SECONDS TRIALS REUSED", of the job: reused trials are those that the store
 * had from other jobs.
 */
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "autotune/session.h"
#include "bench/conv_graph.h"
#include "compiler/options.h"
#include "graph/build.h"
#include "tools/tune_show.h"

typedef struct {
    tec_context *cx;
    const char *db_path, *tools;
    double seconds;
    int threads;
    const char *const *name;
    int n;
    const target *t;
    const tune_task **task;
    tool_tune_show show;
} conv_job;

static int fail(const conv_job *j)
{
    fprintf(stderr, "tune_convs: %s\n", tec_context_error(j->cx));
    return 1;
}

/* ---- tasks ---- */

static float *numbers(conv_job *j, int64_t n, uint32_t seed)
{
    float *x = base_array(j->cx, float, n);

    bench_fill(x, n, seed);
    return x;
}

static bool make_model(conv_job *j, tec_graph *g)
{
    for (int i = 0; i < j->n; i++) {
        const bench_conv *c = bench_conv_named(j->name[i]);

        if (!c)
            return base_fail(j->cx, TEC_INVALID, (base_loc){0}, "'%s' is no workload", j->name[i]);
        bench_conv_add(j->cx, g, c, numbers(j, bench_conv_weights(c), 2), numbers(j, c->out, 3));
    }
    return !base_failed(j->cx);
}

/* A weight that makes times of all workloads about the same, so that what is saved is counted as a share of
 * each. */
static double weight_of(const bench_conv *c)
{
    const double rate = 1e11, depthwise_rate = 5e10;

    return (c->depthwise ? depthwise_rate : rate) / bench_conv_flops(c);
}

static bool find_tasks(conv_job *j)
{
    comp_options o;
    tec_graph *g = tec_graph_new(j->cx, "convolutions");
    graph_kernels *k =
        make_model(j, g) && comp_read_options(j->cx, &(tec_build_options){.threads = j->threads}, NULL, &o)
            ? graph_tasks(g, o.target)
            : NULL;

    j->task = base_array(j->cx, const tune_task *, j->n);
    if (k && k->entries.n != j->n)
        return base_fail(j->cx, TEC_INTERNAL, (base_loc){0}, "%d workloads became %d kernels", j->n,
                         k->entries.n);
    for (int i = 0; k && i < j->n; i++) {
        const graph_kernel_entry *e = graph_kernel_at(k, i);
        const tune_task spec = {.name = j->name[i],
                                .def = e->def,
                                .task = e->task,
                                .target = o.target,
                                .default_trace = e->trace,
                                .weight = weight_of(bench_conv_named(j->name[i])),
                                .tree = e->plain};

        j->task[i] = tune_task_new(j->cx, &spec);
        if (!j->task[i])
            return false;
    }
    j->t = o.target;
    return k;
}

/* ---- the job ---- */

/* Another version, target, default schedule or list of workloads is another job. */
static const char *conv_job_name(conv_job *j)
{
    base_text t = {0};

    base_addf(j->cx, &t, "%s %s %d\n", tec_version(), target_text(j->cx, j->t), j->threads);
    for (int i = 0; i < j->n; i++)
        base_addf(j->cx, &t, "%s\n%s\n", j->task[i]->task->exact_key, j->task[i]->default_trace);
    return base_format(j->cx, "convolutions-%016" PRIx64, base_hash(t.data, t.n, BASE_HASH_SEED));
}

/* Small where there is little time for many tasks, since the first batch of each task comes before any choice
 * among them. */
static int batch_of(const conv_job *j)
{
    enum { LEAST = 4, MOST = 32 };
    double n = j->seconds / (2.0 * j->n);

    return n < LEAST ? LEAST : n > MOST ? MOST : (int)n;
}

static int tune(conv_job *j, store *db, tune_measurer *m)
{
    /* of the seconds that the job has, one in so many is for comparing what was found */
    enum { ADOPTING = 15 };
    struct utsname machine;

    uname(&machine);
    const tune_options o = {.tasks = j->task,
                            .n_tasks = j->n,
                            .measurer = m,
                            .db = db,
                            .job = conv_job_name(j),
                            .arguments = "bench/run tuning",
                            .device = machine.nodename,
                            .device_text = target_text(j->cx, j->t),
                            .seed = 1,
                            .batch = batch_of(j),
                            .seconds = j->seconds - j->seconds / ADOPTING};
    tune_session *s = tune_session_new(j->cx, &o);
    j->show =
        (tool_tune_show){.cx = j->cx, .session = s, .measurer = m, .n_tasks = j->n, .seconds = o.seconds};
    while (s && tune_step(s))
        tool_tune_batch(&j->show);
    if (!s || tune_session_end(s) == TUNE_FAILED || !tune_adopt(s))
        return fail(j);
    tool_tune_table(&j->show);
    int64_t reused = 0;
    for (int i = 0; i < j->n; i++)
        reused += tune_session_task(s, i)->reused;
    printf("%.1f %" PRId64 " %" PRId64 "\n", tune_session_seconds(s), tune_session_trials(s), reused);
    tune_session_close(s);
    return 0;
}

static int run(conv_job *j)
{
    store *db = find_tasks(j) ? store_open(j->cx, j->db_path, NULL) : NULL;
    const tune_measure_options o = {.threads = j->threads,
                                    .builder = base_format(j->cx, "%s/tec", j->tools),
                                    .runner = base_format(j->cx, "%s/tec_runner", j->tools)};
    tune_measurer *m = db ? tune_measurer_local(j->cx, &o) : NULL;
    int status = m ? tune(j, db, m) : fail(j);

    if (m)
        m->close(m);
    store_close(db);
    return status;
}

int main(int argc, char **argv)
{
    conv_job j = {.db_path = argc > 4 ? argv[1] : NULL,
                  .seconds = argc > 4 ? atof(argv[2]) : 0,
                  .threads = argc > 4 ? atoi(argv[3]) : 0,
                  .name = (const char *const *)argv + 4,
                  .n = argc - 4};

    if (j.seconds <= 0 || j.threads < 1) {
        fprintf(stderr, "usage: tune_convs DB SECONDS THREADS NAME...\n");
        return 2;
    }
    j.cx = tec_context_new();
    j.tools = base_format(j.cx, "%s/..", dirname(base_strdup(j.cx, argv[0])));
    int status = run(&j);
    tec_context_free(j.cx);
    return status;
}
