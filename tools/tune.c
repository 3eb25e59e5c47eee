/* tools/tune.c -- `tec tune`: looks for fast schedules of the kernels of a model or of a .te file, and keeps all that it measures. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "autotune/explorer.h"
#include "autotune/features.h"
#include "autotune/source.h"
#include "graph/build.h"
#include "te/text.h"
#include "tools/command.h"
#include "tools/data.h"
#include "tools/dims.h"
#include "tools/stop.h"
#include "tools/tune_show.h"

typedef struct {
    const char *records, *target, *plot, *explorer, *model, *name;
    double min_gain; /* per cent */
    int64_t trials, seconds, seed, threads;
    tool_list given_dims, schedules;
    tool_dims dims;
    bool replay, json;
} settings;

typedef struct {
    tec_context *cx;
    settings *s;
    const char *path;
    const target *t;
    const tune_task **task;
    int n_tasks;
    store *db;
    const char *job, *lock_path;
    int lock;
    tool_stop *stop;
    bool interrupted; /* and the display knows */
    tool_tune_show show;
} run;

/* Times are measured at one size: a kernel must have its sizes. */
static bool has_symbols(run *x, const te_def *d, const char *name)
{
    if (d->symbols.n == 0)
        return false;
    base_fail(x->cx, TEC_INVALID, (base_loc){x->path, 0}, "'%s' has a symbolic extent '%s': give it a value with --dim %s=N", name,
              ((const ir_expr *)d->symbols.at[0])->var.name, ((const ir_expr *)d->symbols.at[0])->var.name);
    return true;
}

/* ---- tasks ---- */

static bool add_task(run *x, const tune_task *spec)
{
    const tune_task *t = has_symbols(x, spec->def, spec->name) ? NULL : tune_task_new(x->cx, spec);

    x->task[x->n_tasks++] = t;
    return t;
}

static bool tasks_of_model(run *x)
{
    onnx_options import = tool_import_options(x->cx, &x->s->dims);
    graph_module *m = onnx_import(x->cx, x->path, &import);
    graph_kernels *k = m ? graph_tasks(m, x->t) : NULL;

    x->task = k ? base_array(x->cx, const tune_task *, k->entries.n) : NULL;
    for (int i = 0; k && i < k->entries.n; i++) {
        const graph_kernel_entry *e = graph_kernel_at(k, i);
        const tune_task spec = {.name = base_format(x->cx, "%s (%s)", e->unit.name, e->node), .def = e->def, .task = e->task, .target = x->t,
                                .default_trace = e->trace, .weight = e->uses, .tree = e->plain};

        if (!add_task(x, &spec))
            return false;
    }
    return k;
}

/* What `tec te` would use: the schedule in the file, or the start of the space. */
static const char *default_of(run *x, const te_file *file, const te_def *d, const space *sp)
{
    const char *text = base_dict_get(&file->schedules, d->name);

    if (text || !sp)
        return text;
    const space_point start = space_start(sp);
    sched *s = space_apply(x->cx, sp, &start);
    if (sched_failed(s))
        return base_fail(x->cx, TEC_INTERNAL, d->loc, "the start of the space of '%s' was refused: %s", d->name, sched_error(s));
    return sched_trace_text(x->cx, s);
}

static bool add_definition(run *x, const te_file *file, te_def *d)
{
    const ir_program *tree = d && !has_symbols(x, d, d->name) ? te_tree(x->cx, d) : NULL;
    const space *sp = tree ? space_master(x->cx, tree, x->t) : NULL;
    const char *trace = sp ? default_of(x, file, d, sp) : NULL;

    return trace && add_task(x, &(tune_task){.name = d->name, .def = d, .target = x->t, .default_trace = trace, .tree = tree, .space = sp,
                                             .intrinsics = &file->intrinsics});
}

static bool tasks_of_file(run *x)
{
    size_t size;
    const char *text = base_read_file(x->cx, x->path, &size);
    te_file *file = text ? te_parse(x->cx, x->path, text) : NULL;

    x->task = file ? base_array(x->cx, const tune_task *, file->defs.n) : NULL;
    for (int i = 0; file && i < file->defs.n; i++) {
        te_def *d = file->defs.at[i];

        if ((!x->s->name || strcmp(d->name, x->s->name) == 0) && !add_definition(x, file, tool_specialise(x->cx, d, &x->s->dims)))
            return false;
    }
    const char *unused = file ? tool_unused_dim(&x->s->dims) : NULL;
    if (unused)
        return base_fail(x->cx, TEC_INVALID, (base_loc){x->path, 0}, "--dim %s: no definition has a symbol of this name", unused);
    if (file && x->n_tasks == 0)
        base_fail(x->cx, TEC_INVALID, (base_loc){x->path, 0}, x->s->name ? "there is no definition '%s'" : "there is no definition", x->s->name);
    return x->n_tasks > 0;
}

/* ---- schedules of one's own ---- */

/* What is wrong with it is said now, with the line of the file, and not after an hour. */
static const char *read_schedule(run *x, const tune_task *t, const char *path)
{
    size_t size;
    const char *text = base_read_file(x->cx, path, &size);
    sched *s = text ? tune_task_schedule(x->cx, t) : NULL;

    if (!s || sched_replay(s, path, text))
        return text;
    return base_fail(x->cx, TEC_INVALID, (base_loc){0}, "%s", sched_error(s));
}

static bool read_schedules(run *x)
{
    enum { MOST = 100 };
    int n = x->s->schedules.n;
    const char **given = base_array(x->cx, const char *, n);

    if (n == 0)
        return true;
    if (x->n_tasks > 1)
        return base_fail(x->cx, TEC_INVALID, (base_loc){x->path, 0}, "--schedule is for one kernel, and there are %d: choose one with --name", x->n_tasks);
    if (n > MOST)
        return base_fail(x->cx, TEC_INVALID, (base_loc){x->path, 0}, "%d schedules were given with --schedule: at most %d can be tried first", n, MOST);
    for (int i = 0; i < n; i++)
        if (!(given[i] = read_schedule(x, x->task[0], x->s->schedules.at[i])))
            return false;
    tune_task *t = base_copy(x->cx, x->task[0], sizeof *t);
    t->given = given;
    t->n_given = n;
    x->task[0] = t;
    return true;
}

static bool find_tasks(run *x)
{
    const char *dot = strrchr(x->path, '.');
    const char *unfit;

    if (!(x->t = tool_target(x->cx, x->s->target, x->s->threads)))
        return false;
    if (!x->s->replay && (unfit = target_unfit(x->cx, x->t)))
        return base_fail(x->cx, TEC_UNSUPPORTED, (base_loc){0}, "%s", unfit);
    return (dot && strcmp(dot, ".te") == 0 ? tasks_of_file(x) : tasks_of_model(x)) && read_schedules(x);
}

/* ---- the job ---- */

/* Everything that decides what is proposed, so that the same command goes on with its job and another one has its own. */
static const char *job_name(run *x)
{
    base_text t = {0};
    const char *slash = strrchr(x->path, '/'), *name = slash ? slash + 1 : x->path;

    base_addf(x->cx, &t, "%s %s %" PRId64 " %s %s %d\n", tec_version(), tune_target_key(x->cx, x->t), x->s->seed, x->s->explorer, x->s->model,
              TUNE_FEATURES_VERSION);
    for (int i = 0; i < x->n_tasks; i++) {
        const tune_task *task = x->task[i];

        base_addf(x->cx, &t, "%s %g\n%s\n", task->task->exact_key, task->weight, task->default_trace);
        for (int k = 0; k < task->n_given; k++)
            base_addf(x->cx, &t, "%s\n", task->given[k]);
    }
    return base_format(x->cx, "%s-%016" PRIx64, name, base_hash(t.data, t.n, BASE_HASH_SEED));
}

/* Two processes that go on with one job would measure everything twice. The lock ends with the process, however that ends. */
static bool lock_job(run *x)
{
    struct stat s;

    x->lock_path = base_format(x->cx, "%s.%s.lock", x->s->records, x->job);
    for (;;) {
        x->lock = open(x->lock_path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
        if (x->lock < 0)
            return base_fail(x->cx, TEC_IO, (base_loc){x->lock_path, 0}, "cannot make the lock of the job: %s", strerror(errno));
        if (flock(x->lock, LOCK_EX | LOCK_NB) != 0)
            return base_fail(x->cx, TEC_INVALID, (base_loc){x->s->records, 0},
                             "another process tunes this with the same options; give another --seed to tune beside it");
        if (fstat(x->lock, &s) == 0 && s.st_nlink > 0)
            return true;
        close(x->lock); /* its owner removed it in between */
    }
}

static void unlock_job(run *x)
{
    if (x->lock < 0)
        return;
    unlink(x->lock_path);
    close(x->lock);
}

/* ---- interrupts and progress ---- */

static bool stop(void *user)
{
    run *x = user;
    bool asked = tool_stop_asked(x->stop, 0);

    if (asked && !x->interrupted)
        tool_tune_leave(&x->show);
    x->interrupted = asked;
    return asked;
}

/* Where a message has come in between, the display begins anew below it. */
static void show(run *x, void (*what)(tool_tune_show *))
{
    flockfile(stderr);
    stop(x);
    what(&x->show);
    funlockfile(stderr);
}

static void progress(void *user, const tune_session *s)
{
    run *x = user;

    x->show.session = s;
    show(x, tool_tune_progress);
}

/* ---- a store that cannot be written ---- */

/* A disk may get room again: a minute is waited for it. */
static bool hold(void *user, const char *why, int try)
{
    enum { TRIES = 60, PAUSE_MS = 1000 };
    run *x = user;

    if (try == 0)
        fprintf(stderr, "\n%s\ntec tune: the last results are held back and written as soon as that is possible; waiting for a minute\n", why);
    tool_tune_leave(&x->show);
    return try < TRIES && !tool_stop_asked(x->stop, PAUSE_MS);
}

/* Beside the store, or else where temporary files go. */
static void save_elsewhere(run *x, const store_record *r, int n)
{
    const char *temp = getenv("TMPDIR");
    const char *place[] = {base_format(x->cx, "%s.unsaved.jsonl", x->s->records),
                           base_format(x->cx, "%s/tec-%s.unsaved.jsonl", temp ? temp : "/tmp", x->job)};
    base_text all = {0};
    tec_context *cx = tec_context_new();

    for (int i = 0; i < n; i++)
        base_addf(cx, &all, "%s\n", store_json(cx, &r[i]));
    for (int i = 0; i < BASE_COUNT(place); i++) {
        tec_context_clear(cx);
        if (base_write_file(cx, place[i], all.data, all.n)) {
            fprintf(stderr, "tec tune: %d results could not be stored; they are in %s: tec records import %s %s\n", n, place[i], x->s->records, place[i]);
            tec_context_free(cx);
            return;
        }
    }
    fprintf(stderr, "tec tune: %d results could not be stored anywhere:\n%s", n, all.data);
    tec_context_free(cx);
}

/* ---- running ---- */

static const char *const why_it_ended[] = {
    [TUNE_GOES_ON] = "", [TUNE_TRIALS] = "all trials are done", [TUNE_SECONDS] = "the time is over", [TUNE_GAIN] = "little more is to be gained",
    [TUNE_EXHAUSTED] = "every schedule of the spaces was tried", [TUNE_STOPPED] = "stopped: the same command goes on from here", [TUNE_FAILED] = ""};

static int report(run *x, tune_session *s)
{
    int n = 0;
    const store_record *lost = tune_unsaved(s, &n);
    tune_end end = tune_session_end(s);

    if (end == TUNE_FAILED || base_failed(x->cx)) {
        if (n)
            save_elsewhere(x, lost, n);
        return tool_fail("tune", x->cx);
    }
    if (x->s->replay) {
        printf("%" PRId64 " trials of job %s replayed: the proposals are the same\n", tune_session_trials(s), x->job);
        return TOOL_OK;
    }
    fprintf(stderr, "%s\n", why_it_ended[end]);
    if (end == TUNE_STOPPED)
        return TOOL_FAILED;
    tool_tune_table(&x->show);
    return TOOL_OK;
}

static int tune(run *x, tune_measurer *m)
{
    struct utsname machine;

    uname(&machine);
    const tune_options o = {.tasks = x->task, .n_tasks = x->n_tasks, .measurer = m, .db = x->db, .job = x->job, .arguments = x->path,
                            .device = machine.nodename, .device_text = target_text(x->cx, x->t), .explorer = x->s->explorer, .model = x->s->model,
                            .seed = (uint64_t)x->s->seed, .trials = x->s->trials, .seconds = (double)x->s->seconds, .gain = x->s->min_gain / 100,
                            .stop = stop, .progress = progress, .unsaved = hold, .user = x};
    x->show = (tool_tune_show){.cx = x->cx, .measurer = m, .n_tasks = x->n_tasks, .trials = x->s->trials, .seconds = (double)x->s->seconds,
                               .json = x->s->json, .live = m && tool_tune_is_live(x->s->json)};
    tune_session *s = tune_session_new(x->cx, &o);
    if (!s)
        return tool_fail("tune", x->cx);
    x->show.session = s;
    if (m && tune_session_ground(s))
        fprintf(stderr, "cost model: begins with %s\n", tune_session_ground(s));
    for (bool more = true; more;) {
        more = tune_step(s);
        if (!x->s->replay)
            show(x, tool_tune_batch);
    }
    x->show.adopting = m && tune_session_end(s) != TUNE_FAILED && tune_session_end(s) != TUNE_STOPPED;
    if (x->show.adopting) {
        tune_adopt(s);
        show(x, tool_tune_batch);
    }
    int status = report(x, s);
    if (status != TOOL_FAILED && x->s->plot && !tool_tune_plot(&x->show, x->s->plot))
        status = tool_fail("tune", x->cx);
    tune_session_close(s);
    return status;
}

/* With processes that build and run. */
static int measure(run *x)
{
    static const char told[] = "tec tune: stopping after this candidate; all is kept. Ctrl-C again: at once";
    bool ready = lock_job(x) && (x->stop = tool_stop_watch(x->cx, told, x->lock_path));
    tune_measurer *m = ready ? tune_measurer_local(x->cx, &(tune_measure_options){.threads = x->t->num_cores}) : NULL;
    int status = m ? tune(x, m) : tool_fail("tune", x->cx);

    if (m)
        m->close(m);
    tool_stop_close(x->stop);
    unlock_job(x);
    return status;
}

static int start(run *x)
{
    if (!find_tasks(x))
        return tool_fail("tune", x->cx);
    x->job = job_name(x);
    x->db = store_open(x->cx, x->s->records, &(store_options){.read_only = x->s->replay, .must_exist = x->s->replay});
    if (!x->db)
        return tool_fail("tune", x->cx);
    if (store_is_read_only(x->db) && !x->s->replay) {
        base_fail(x->cx, TEC_IO, (base_loc){x->s->records, 0}, "this record store may not be written, so nothing was measured");
        return tool_fail("tune", x->cx);
    }
    return x->s->replay ? tune(x, NULL) : measure(x);
}

/* "anneal|genetic|...": every explorer of the table. */
static const char *explorer_names(tec_context *cx)
{
    base_text names = {0};

    for (int i = 0; i < tune_n_explorers(); i++)
        base_addf(cx, &names, "%s%s", i ? "|" : "", tune_explorer_name(i));
    return base_text_str(cx, &names);
}

/* The rest of the command line's checks, then the work. */
static int check_settings(run *x, settings *s)
{
    if (!s->records)
        return tool_misuse("tune", "where the records go is missing: --records DB");
    if (!tool_read_dims("tune", &s->given_dims, &s->dims))
        return TOOL_USAGE;
    if (!s->trials && !s->seconds && s->min_gain <= 0)
        s->trials = 1000;
    return start(x);
}

int tool_tune(int argc, char **argv)
{
    settings s = {.target = "native", .explorer = "anneal", .model = "rank", .seed = 1};
    tool_list files = {0};
    run x = {.cx = tec_context_new(), .s = &s, .lock = -1};
    const tool_option options[] = {
        {"records", TOOL_TEXT, &s.records, "DB", "the record store, made where it is missing; needed"},
        {"target", TOOL_TEXT, &s.target, "T", "what to tune for; this machine must be able to run it (native)"},
        {"trials", TOOL_COUNT, &s.trials, "N", "candidates in all (1000 where no limit is given)"},
        {"seconds", TOOL_COUNT, &s.seconds, "S", "time in all, earlier sessions of the same command included"},
        {"min-gain", TOOL_DECIMAL, &s.min_gain, "PERCENT", "stops where a batch is expected to save less of the end-to-end time"},
        {"seed", TOOL_NUMBER, &s.seed, "N", "another seed looks elsewhere (1)"},
        {"threads", TOOL_COUNT, &s.threads, "N", "threads of the kernels (the cores of the target)"},
        {"dim", TOOL_LIST, &s.given_dims, "NAME=N", "fixes a symbolic dimension; may be repeated"},
        {"name", TOOL_TEXT, &s.name, "NAME", "of a .te file, this definition alone"},
        {"schedule", TOOL_LIST, &s.schedules, "FILE", "a schedule of one's own, tried first; may be repeated"},
        {"explorer", TOOL_CHOICE, &s.explorer, explorer_names(x.cx), "how candidates are proposed (anneal)"},
        {"model", TOOL_CHOICE, &s.model, "rank|regression|none", "the cost model (rank)"},
        {"replay", TOOL_FLAG, &s.replay, NULL, "measures nothing: goes through the records of this command and checks that it proposes the same"},
        {"plot", TOOL_TEXT, &s.plot, "FILE", "writes the curves there, as SVG"},
        {"json", TOOL_FLAG, &s.json, NULL, "prints a line of JSON for each batch, kernel, and the end"},
    };
    const tool_usage usage = {"tune", "MODEL.onnx|FILE.te",
                              "Looks for fast schedules by measuring, and keeps every measurement. The same command goes on where it stopped.", options,
                              BASE_COUNT(options), 1, 1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status == TOOL_GO_ON) {
        x.path = files.at[0];
        status = check_settings(&x, &s);
    }
    store_close(x.db);
    tec_context_free(x.cx);
    return status;
}
