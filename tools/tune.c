/* tools/tune.c -- `tec tune`: looks for fast schedules of the kernels of a model or of a .te file, and keeps
 * all that it measures. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/explorer.h"
#include "autotune/source.h"
#include "hardware/hardware.h"
#include "jobs/job.h"
#include "pool/pool.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/device_cache.h"
#include "tools/dims.h"
#include "tools/key_file.h"
#include "tools/limits.h"
#include "tools/ranges.h"
#include "tools/report.h"
#include "tools/stop.h"
#include "tools/tune_show.h"

typedef struct {
    const char *records, *target, *precision, *plot, *explorer, *model, *name, *histogram, *params;
    const char *tracker, *device_class, *key_file, *user, *run_log, *device_cache;
    double min_gain, tolerance; /* per cent */
    int64_t trials, seconds, seed, threads, devices, priority, patience;
    tool_list given_dims, schedules, only, limits;
    tool_dims dims;
    tool_ranges ranges;
    bool replay, json, kernels;
} settings;

/* `stop` is NULL in a replay. */
typedef struct {
    tec_context *cx;
    settings *s;
    const char *path;
    job *job;
    pool *pool; /* NULL: this machine measures */
    tool_stop *stop;
    bool interrupted; /* and the display knows */
    tool_tune_show show;
} run;

/* ---- interrupts and progress ---- */

/* Asked between candidates. */
static bool stop(void *user)
{
    run *x = user;
    bool asked = tool_stop_asked(x->stop, 0);

    if (asked && !x->interrupted)
        tool_tune_leave(&x->show);
    x->interrupted = asked;
    return asked;
}

static void print_prior(const tune_session *session)
{
    if (tune_session_prior(session))
        fprintf(stderr, "cost model: begins with %s\n", tune_session_prior(session));
}

static void print_remeasured(const run *self, const tune_session *session)
{
    int kept, n = tune_session_remeasured(session, &kept);

    if (self->s->json)
        printf("{\"event\":\"remeasured\",\"tasks\":%d,\"kept\":%d}\n", n, kept);
    else
        fprintf(stderr, "%d schedules of another version of tec were measured again: %d are kept\n", n, kept);
    fflush(stdout);
}

/* What happens in the job, shown as lines or as a live display, under the lock of standard error. */
static void show(void *user, job_event event, const tune_session *session)
{
    run *x = user;

    x->show.session = session;
    if (x->s->replay)
        return;
    /* Where a message has come in between, the display begins anew below it. */
    flockfile(stderr);
    stop(x);
    if (event == JOB_REMEASURED)
        print_remeasured(x, session);
    if (event == JOB_STARTED)
        print_prior(session);
    if (event == JOB_COMPARING)
        x->show.adopting = true;
    if (event == JOB_RESULT || event == JOB_COMPARED)
        tool_tune_progress(&x->show);
    if (event == JOB_BATCH || event == JOB_END)
        tool_tune_batch(&x->show);
    funlockfile(stderr);
}

/* ---- a store that cannot be written ---- */

/* A disk may get room again: a minute is waited for it. True: try again. */
static bool hold(void *user, const char *why, int attempt)
{
    enum { TRIES = 60, PAUSE_MS = 1000 };
    run *x = user;

    if (attempt == 0)
        fprintf(stderr,
                "\n%s\ntec tune: the last results are held back and written as soon as that is possible; "
                "waiting for a minute\n",
                why);
    tool_tune_leave(&x->show);
    return attempt < TRIES && !tool_stop_asked(x->stop, PAUSE_MS);
}

/* Results that the store did not take, in a file that can be imported later. */
static void save_elsewhere(const run *self)
{
    const char *temp = getenv("TMPDIR"), *lines;
    tec_context *cx = tool_context();
    int n = 0;
    const char *path = job_save_elsewhere(cx, self->job, temp ? temp : "/tmp", &lines);

    tune_unsaved(job_session(self->job), &n);
    if (path)
        fprintf(stderr,
                "tec tune: %d results could not be stored; they are in %s: tec records import %s %s\n", n,
                path, self->s->records, path);
    else
        fprintf(stderr, "tec tune: %d results could not be stored anywhere:\n%s", n, lines);
    tec_context_free(cx);
}

/* ---- running ---- */

static const char *const why_it_ended[] = {[TUNE_GOES_ON] = "",
                                           [TUNE_TRIALS] = "all trials are done",
                                           [TUNE_SECONDS] = "the time is over",
                                           [TUNE_GAIN] = "little more is to be gained",
                                           [TUNE_EXHAUSTED] = "every schedule of the spaces was tried",
                                           [TUNE_STOPPED] = "stopped: the same command goes on from here",
                                           [TUNE_FAILED] = ""};

/* Results that the store did not take must not be lost with the program. */
static int fail(const run *self)
{
    const tune_session *session = job_session(self->job);
    int n = 0;

    if (session)
        tune_unsaved(session, &n);
    if (n)
        save_elsewhere(self);
    return tool_fail_dims("tune", self->cx, &self->s->dims);
}

/* What compile would say of the model with the schedules that stand now. */
static void report_tf32(run *self)
{
    int n = 0, total = job_tasks_of(self->job).n;

    for (int i = 0; i < total; i++) {
        const tune_state *state = tune_session_task(self->show.session, i);
        sched *s = tune_task_schedule(self->cx, state->task);

        sched_replay(s, "schedule", state->stands ? state->stands : state->task->default_trace);
        n += hw_rounds_to_tf32(sched_tree(s));
        sched_clear(s);
    }
    tool_report_tf32(self->path, n, total);
}

/* Why tuning ended, and the table of what it found. */
static int report(run *self, tune_end end)
{
    if (end == TUNE_FAILED)
        return fail(self);
    if (self->s->replay) {
        printf("%" PRId64 " trials of job %s replayed: the proposals are the same\n",
               tune_session_trials(self->show.session), job_name(self->job));
        return TOOL_OK;
    }
    fprintf(stderr, "%s\n", why_it_ended[end]);
    if (end == TUNE_STOPPED)
        return TOOL_FAILED;
    tool_tune_table(&self->show);
    if (job_spec_of(self->job)->from.target->precision == TARGET_TF32)
        report_tf32(self);
    return TOOL_OK;
}

/* Runs the job with measurer measurer (NULL in a replay) and reports. */
static int tune(run *self, tune_measurer *measurer)
{
    const job_spec *spec = job_spec_of(self->job);
    const job_calls calls = {.event = show, .stop = stop, .unsaved = hold, .user = self};

    self->show = (tool_tune_show){.cx = self->cx,
                                  .measurer = measurer,
                                  .n_tasks = job_tasks_of(self->job).n,
                                  .trials = spec->trials,
                                  .seconds = spec->seconds,
                                  .json = self->s->json,
                                  .live = measurer && tool_tune_is_live(self->s->json)};
    tune_end end = job_run(self->job, measurer, &calls);
    self->show.whole = job_whole_of(self->job);
    int status = report(self, end);
    if (status != TOOL_FAILED && self->s->plot && !tool_tune_plot(&self->show, self->s->plot))
        status = tool_fail_dims("tune", self->cx, &self->s->dims);
    return status;
}

/* Processes that build and run here, or devices of the pool. Compilers of device code are slow: NVRTC runs in
 * the builder, and the driver of an OpenCL device compiles where the kernel is loaded. */
static tune_measurer *open_measurer(run *self)
{
    const target *t = job_spec_of(self->job)->from.target;
    const double patience = target_offers(t, TARGET_HOST) ? 0 : 60;
    const char *cache = self->s->device_cache;
    const tune_measure_options o = {.threads = t->num_cores,
                                    .build_timeout = patience,
                                    .run_timeout = patience,
                                    .log = self->s->run_log,
                                    .log_name = self->path,
                                    .device_cache = cache && strcmp(cache, "off") != 0 ? cache : NULL,
                                    .device_cache_bytes = TOOL_DEVICE_CACHE_BYTES};

    return self->pool ? pool_measurer(self->cx, self->pool, t, &o) : tune_measurer_local(self->cx, &o);
}

/* Ctrl-C asks from here on; the second one ends the program at once. */
static bool watch(run *self, const char *remove)
{
    static const char told[] = "tec tune: stopping after this candidate; all is kept. Ctrl-C again: at once";

    self->stop = tool_stop_watch(self->cx, told, remove);
    return self->stop;
}

/* All that was taken is given back in the opposite order, on each way out. */
static int measure(run *self)
{
    bool ready = job_take(self->job) && watch(self, job_lock_path(self->job));
    tune_measurer *measurer = ready ? open_measurer(self) : NULL;
    int status = measurer ? tune(self, measurer) : tool_fail_dims("tune", self->cx, &self->s->dims);

    job_close(self->job);
    self->job = NULL;
    if (measurer)
        measurer->close(measurer);
    tool_stop_close(self->stop);
    return status;
}

/* ---- the pool ---- */

static bool stop_waiting(void *user)
{
    run *x = user;

    return tool_stop_asked(x->stop, 0);
}

static void say_waiting(void *user, const char *why)
{
    (void)user;
    fprintf(stderr, "tec tune: %s\n", why);
}

/* Waits for a first device, which says what the target is. */
static bool open_pool(run *self)
{
    const settings *s = self->s;
    char keys[4096];

    if (!tool_key_file(s->key_file, keys, sizeof keys))
        return base_fail(self->cx, TEC_INVALID, (base_loc){0},
                         "cannot find the key file: --key-file is not given and HOME is not set");
    const pool_options o = {.tracker = s->tracker,
                            .key_file = base_strdup(self->cx, keys),
                            .device_class = s->device_class,
                            .user = s->user,
                            .job = self->path,
                            .priority = (int)s->priority,
                            .devices = (int)s->devices,
                            .patience = (double)s->patience,
                            .tolerance = s->tolerance / 100,
                            .stop = stop_waiting,
                            .waiting = say_waiting,
                            .data = self};

    if (!(self->stop = tool_stop_watch(self->cx, "tec tune: stopping", NULL)))
        return false;
    self->pool = pool_open(self->cx, &o);
    tool_stop_close(self->stop);
    self->stop = NULL;
    return self->pool;
}

/* What the devices are, or what the user says they are, and their class. */
static const target *target_of(run *self)
{
    const settings *s = self->s;
    const char *own = s->target ? s->target : "native";

    if (self->pool)
        own = s->target ? base_format(self->cx, "%s -model=%s", own, pool_model(self->pool))
                        : target_text(self->cx, pool_target(self->pool));
    if (s->precision)
        own = base_format(self->cx, "%s -precision=%s", own, s->precision);
    return tool_target(self->cx, own, s->threads);
}

/* The kernels that the command line names. */
static job_source source_of(run *self, const target *machine)
{
    settings *s = self->s;
    const onnx_options dims = tool_import_options(self->cx, &s->dims);

    return (job_source){.path = self->path,
                        .target = machine,
                        .dims = dims.dims,
                        .n_dims = dims.n_dims,
                        .unknown_dim = dims.unknown_dim,
                        .ranges = s->ranges.at,
                        .n_ranges = s->ranges.n,
                        .params = s->params,
                        .definition = s->name,
                        .schedules = s->schedules.at,
                        .n_schedules = s->schedules.n,
                        .hashes = s->only.at,
                        .n_hashes = s->only.n};
}

/* A model, all of its kernels, and measured on this machine: then the model itself can tell what it gains. A
 * program's time depends on its values, which random numbers do not stand for. */
static bool is_whole_model(const run *self)
{
    return !base_ends_with(self->path, ".te") && !base_ends_with(self->path, ".tecp") && !self->pool &&
           !self->s->replay && self->s->only.n == 0;
}

/* The settings as a job; NULL with an error. */
static job *open_job(run *self)
{
    const settings *s = self->s;
    const target *t = target_of(self);
    const job_spec spec = {.from = source_of(self, t),
                           .records = s->records,
                           .explorer = s->explorer,
                           .model = s->model,
                           .seed = (uint64_t)s->seed,
                           .trials = s->trials,
                           .seconds = (double)s->seconds,
                           .gain = s->min_gain / 100,
                           .replay = s->replay,
                           .elsewhere = self->pool,
                           .whole = is_whole_model(self)};

    return t ? job_open(self->cx, &spec) : NULL;
}

/* Prints the kernels and measures nothing. */
static int print_kernels(run *self)
{
    const target *t = target_of(self);
    const job_source from = source_of(self, t);
    job_tasks tasks;

    if (!t || !job_find_tasks(self->cx, &from, &tasks))
        return tool_fail_dims("tune", self->cx, &self->s->dims);
    for (int i = 0; i < tasks.n; i++)
        tool_tune_kernel(self->cx, tasks.at[i], t, self->s->json);
    return TOOL_OK;
}

/* A replay takes no lock, as it writes nothing. */
static int start(run *self)
{
    if (self->s->tracker && !open_pool(self))
        return tool_fail_dims("tune", self->cx, &self->s->dims);
    if (self->s->kernels)
        return print_kernels(self);
    self->job = open_job(self);
    if (!self->job)
        return tool_fail_dims("tune", self->cx, &self->s->dims);
    return self->s->replay ? tune(self, NULL) : measure(self);
}

/* "anneal|genetic|...": every explorer of the table. */
static const char *explorer_names(tec_context *cx)
{
    base_text names = {0};

    for (int i = 0; i < tune_n_explorers(); i++)
        base_addf(cx, &names, "%s%s", i ? "|" : "", tune_explorer_name(i));
    return base_text_str(cx, &names);
}

/* Options of the pool without a pool would be heeded by nobody. */
static int check_pool(const settings *options)
{
    const struct {
        const char *name;
        bool given;
    } option[] = {{"--device-class", options->device_class},
                  {"--key-file", options->key_file},
                  {"--user", options->user},
                  {"--priority", options->priority != 0},
                  {"--devices", options->devices != 0},
                  {"--patience", options->patience != 0},
                  {"--tolerance", options->tolerance != 0}};

    for (int i = 0; i < BASE_COUNT(option) && !options->tracker; i++)
        if (option[i].given)
            return tool_misuse("tune", "%s is for --tracker", option[i].name);
    if (options->tracker && options->run_log)
        return tool_misuse("tune", "--run-log is for runs on this machine: servers of a --tracker have logs");
    if (options->tracker && options->device_cache)
        return tool_misuse("tune",
                           "--device-cache is for runs on this machine: servers of a --tracker keep nothing");
    if (options->tracker && !options->device_class)
        return tool_misuse("tune", "which devices of the pool measure is missing: --device-class CLASS");
    if (options->tracker && options->replay)
        return tool_misuse("tune",
                           "--replay measures nothing: name the --target of the records, not a --tracker");
    return TOOL_OK;
}

/* The rest of the command line's checks, then the work. */
static int check_settings(run *self, settings *given)
{
    if (!given->records && !given->kernels)
        return tool_misuse("tune", "where the records go is missing: --records DB");
    if (!tool_read_ranges("tune", &given->given_dims, given->histogram, &given->dims, &given->ranges))
        return TOOL_USAGE;
    if (given->dims.n && base_ends_with(self->path, ".tecp"))
        return tool_misuse("tune",
                           "--dim %s: a program's extents come from its arguments; those to tune for are a "
                           "range or a list, as in %s=1..64",
                           given->dims.at[0].name, given->dims.at[0].name);
    return check_pool(given) == TOOL_OK ? start(self) : TOOL_USAGE;
}

/* For how long, on what, and where the measurements go. */
static void add_limits(tool_options *all, settings *to)
{
    const tool_option options[] = {
        {"records", TOOL_TEXT, &to->records, "DB", "the record store; made if it does not exist (required)"},
        {"target", TOOL_TARGET, &to->target, "T",
         "what to tune for; this machine must be able to run it (native; of a pool: what its devices are)"},
        {"precision", TOOL_CHOICE, &to->precision, TOOL_PRECISION_VALUE, TOOL_PRECISION_HELP},
        {"trials", TOOL_COUNT, &to->trials, "N", "candidates in all (1000 where no limit is given)"},
        {"seconds", TOOL_COUNT, &to->seconds, "S",
         "stops after S seconds, counting earlier sessions of the same command"},
        {"min-gain", TOOL_DECIMAL, &to->min_gain, "PERCENT",
         "stops when the next batch is expected to save less than PERCENT of the end-to-end time"},
        {"seed", TOOL_NUMBER, &to->seed, "N", "the seed that candidates are drawn from (default: 1)"},
        {"threads", TOOL_COUNT, &to->threads, "N",
         "the threads that kernels run on (default: the cores of the target)"},
    };

    TOOL_ADD(all, options);
}

/* Which kernels of the file, of which extents. */
static void add_kernels(tool_options *all, settings *to)
{
    const tool_option options[] = {
        {"dim", TOOL_LIST, &to->given_dims, "NAME=N|NAME=N,N|NAME=FROM..TO",
         "gives symbolic dimension NAME the extent N, or makes a version of its kernels for each listed "
         "extent, "
         "or tunes for all extents of a range; may be repeated"},
        {"histogram", TOOL_TEXT, &to->histogram, "FILE",
         "how often the extents come: lines 'EXTENT COUNT' (all alike)"},
        {"params", TOOL_TEXT, &to->params, "FILE",
         "a program's parameters, from a .safetensors file, by name"},
        {"name", TOOL_TEXT, &to->name, "NAME", "for a .te file: tunes only this definition"},
        {"schedule", TOOL_LIST, &to->schedules, "FILE",
         "tries the schedule in this file first; may be repeated"},
        {"only", TOOL_LIST, &to->only, "KEY",
         "the kernel with this key alone, as --kernels prints it; may be repeated"},
        {"kernels", TOOL_FLAG, &to->kernels, NULL,
         "prints the kernels with their keys, and measures nothing"},
    };

    TOOL_ADD(all, options);
}

/* Devices of a pool, and what is told of each run. */
static void add_pool(tool_options *all, settings *to)
{
    const tool_option options[] = {
        {"tracker", TOOL_TEXT, &to->tracker, "HOST:PORT", "measures on devices that this tracker leases"},
        {"device-class", TOOL_TEXT, &to->device_class, "CLASS", "of these devices; needed with --tracker"},
        {"key-file", TOOL_TEXT, &to->key_file, "F",
         "the keys that the tracker and its servers know (those of this machine's loopback servers)"},
        {"user", TOOL_TEXT, &to->user, "NAME", "whose share of the class the devices count for (the key's)"},
        {"priority", TOOL_COUNT, &to->priority, "N", "of this job among the user's: 1 to 100 (10)"},
        {"devices", TOOL_COUNT, &to->devices, "N", "at once, at most (8)"},
        {"patience", TOOL_COUNT, &to->patience, "S", "how long to wait for the first device (60)"},
        {"tolerance", TOOL_DECIMAL, &to->tolerance, "PERCENT",
         "by which a device may differ from the others before it is set aside (25)"},
        {"run-log", TOOL_TEXT, &to->run_log, "FILE",
         "adds a line to this file before each run of a candidate on this machine"},
        {"device-cache", TOOL_TEXT, &to->device_cache, "DIR|off",
         "keeps the code that an OpenCL driver compiled in this folder (off: most candidates run once)"},
    };

    TOOL_ADD(all, options);
}

/* How candidates are proposed, and how the search is shown. */
static void add_search(tool_options *all, settings *to, const char *explorers)
{
    const tool_option options[] = {
        {"explorer", TOOL_CHOICE, &to->explorer, explorers, "how candidates are proposed (anneal)"},
        {"model", TOOL_CHOICE, &to->model, "rank|regression|none", "the cost model (rank)"},
        {"replay", TOOL_FLAG, &to->replay, NULL,
         "does not measure: checks that this command proposes the candidates of its records again"},
        {"limit", TOOL_LIST, &to->limits, TOOL_LIMIT_VALUE, TOOL_LIMIT_WHAT},
        {"plot", TOOL_TEXT, &to->plot, "FILE", "writes the tuning curves to this file, as SVG"},
        {"json", TOOL_FLAG, &to->json, NULL, "prints a line of JSON for each batch, kernel, and the end"},
    };

    TOOL_ADD(all, options);
}

/* Reads the command line into *to and *files. */
static int read_options(tec_context *cx, int argc, char **argv, settings *to, tool_list *files)
{
    tool_options all = {.n = 0};

    add_limits(&all, to);
    add_kernels(&all, to);
    add_pool(&all, to);
    add_search(&all, to, explorer_names(cx));
    const tool_usage usage = {
        "tune",
        "MODEL.onnx|PROGRAM.tecp|FILE.te",
        "Searches for fast schedules by measuring candidates, and stores every measurement. The same command "
        "continues where it was stopped.",
        all.at,
        all.n,
        1,
        1};
    return tool_parse(&usage, argc, argv, files);
}

/* The command: what was opened is closed on every way out, in the opposite order. */
int tool_tune(int argc, char **argv)
{
    settings s = {.explorer = "anneal", .model = "rank", .seed = 1};
    tool_list files = {0};
    run x = {.cx = tool_context(), .s = &s};
    int status = read_options(x.cx, argc, argv, &s, &files);

    if (status == TOOL_GO_ON && !tool_set_limits("tune", x.cx, &s.limits))
        status = TOOL_USAGE;
    if (status == TOOL_GO_ON) {
        x.path = files.at[0];
        status = check_settings(&x, &s);
    }
    job_close(x.job);
    pool_close(x.pool);
    tec_context_free(x.cx);
    return status;
}
