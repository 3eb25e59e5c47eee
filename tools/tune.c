/* tools/tune.c -- `tec tune`: looks for fast schedules of the kernels of a model or of a .te file, and keeps
 * all that it measures. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "autotune/explorer.h"
#include "autotune/source.h"
#include "jobs/job.h"
#include "pool/pool.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/dims.h"
#include "tools/key_file.h"
#include "tools/stop.h"
#include "tools/tune_show.h"

typedef struct {
    const char *records, *target, *plot, *explorer, *model, *name;
    const char *tracker, *device_class, *key_file, *user;
    double min_gain, tolerance; /* per cent */
    int64_t trials, seconds, seed, threads, devices, priority, patience;
    tool_list given_dims, schedules, only;
    tool_dims dims;
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

static void print_prior(const tune_session *s)
{
    if (tune_session_prior(s))
        fprintf(stderr, "cost model: begins with %s\n", tune_session_prior(s));
}

static void print_remeasured(const run *x, const tune_session *s)
{
    int kept, n = tune_session_remeasured(s, &kept);

    if (x->s->json)
        printf("{\"event\":\"remeasured\",\"tasks\":%d,\"kept\":%d}\n", n, kept);
    else
        fprintf(stderr, "%d schedules of another version of tec were measured again: %d are kept\n", n, kept);
    fflush(stdout);
}

/* What happens in the job, shown as lines or as a live display, under the lock of standard error. */
static void show(void *user, job_event e, const tune_session *s)
{
    run *x = user;

    x->show.session = s;
    if (x->s->replay)
        return;
    /* Where a message has come in between, the display begins anew below it. */
    flockfile(stderr);
    stop(x);
    if (e == JOB_REMEASURED)
        print_remeasured(x, s);
    if (e == JOB_STARTED)
        print_prior(s);
    if (e == JOB_COMPARING)
        x->show.adopting = true;
    if (e == JOB_RESULT || e == JOB_COMPARED)
        tool_tune_progress(&x->show);
    if (e == JOB_BATCH || e == JOB_END)
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
static void save_elsewhere(const run *x)
{
    const char *temp = getenv("TMPDIR"), *lines;
    tec_context *cx = tool_context();
    int n = 0;
    const char *path = job_save_elsewhere(cx, x->job, temp ? temp : "/tmp", &lines);

    tune_unsaved(job_session(x->job), &n);
    if (path)
        fprintf(stderr,
                "tec tune: %d results could not be stored; they are in %s: tec records import %s %s\n", n,
                path, x->s->records, path);
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
static int fail(const run *x)
{
    const tune_session *s = job_session(x->job);
    int n = 0;

    if (s)
        tune_unsaved(s, &n);
    if (n)
        save_elsewhere(x);
    return tool_fail("tune", x->cx);
}

/* Why tuning ended, and the table of what it found. */
static int report(run *x, tune_end end)
{
    if (end == TUNE_FAILED)
        return fail(x);
    if (x->s->replay) {
        printf("%" PRId64 " trials of job %s replayed: the proposals are the same\n",
               tune_session_trials(x->show.session), job_name(x->job));
        return TOOL_OK;
    }
    fprintf(stderr, "%s\n", why_it_ended[end]);
    if (end == TUNE_STOPPED)
        return TOOL_FAILED;
    tool_tune_table(&x->show);
    return TOOL_OK;
}

/* Runs the job with measurer m (NULL in a replay) and reports. */
static int tune(run *x, tune_measurer *m)
{
    const job_spec *spec = job_spec_of(x->job);
    const job_calls calls = {.event = show, .stop = stop, .unsaved = hold, .user = x};

    x->show = (tool_tune_show){.cx = x->cx,
                               .measurer = m,
                               .n_tasks = job_tasks_of(x->job).n,
                               .trials = spec->trials,
                               .seconds = spec->seconds,
                               .json = x->s->json,
                               .live = m && tool_tune_is_live(x->s->json)};
    int status = report(x, job_run(x->job, m, &calls));
    if (status != TOOL_FAILED && x->s->plot && !tool_tune_plot(&x->show, x->s->plot))
        status = tool_fail("tune", x->cx);
    return status;
}

/* Processes that build and run here, or devices of the pool. */
static tune_measurer *open_measurer(run *x)
{
    const target *t = job_spec_of(x->job)->from.target;
    const tune_measure_options o = {.threads = t->num_cores};

    return x->pool ? pool_measurer(x->cx, x->pool, t, &o) : tune_measurer_local(x->cx, &o);
}

/* Ctrl-C asks from here on; the second one ends the program at once. */
static bool watch(run *x, const char *remove)
{
    static const char told[] = "tec tune: stopping after this candidate; all is kept. Ctrl-C again: at once";

    x->stop = tool_stop_watch(x->cx, told, remove);
    return x->stop;
}

static int measure(run *x)
{
    bool ready = job_take(x->job) && watch(x, job_lock_path(x->job));
    tune_measurer *m = ready ? open_measurer(x) : NULL;
    int status = m ? tune(x, m) : tool_fail("tune", x->cx);

    job_close(x->job);
    x->job = NULL;
    if (m)
        m->close(m);
    tool_stop_close(x->stop);
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
static bool open_pool(run *x)
{
    const settings *s = x->s;
    char keys[4096];

    if (!tool_key_file(s->key_file, keys, sizeof keys))
        return base_fail(x->cx, TEC_INVALID, (base_loc){0},
                         "neither --key-file nor $HOME says where the file of keys is");
    const pool_options o = {.tracker = s->tracker,
                            .key_file = base_strdup(x->cx, keys),
                            .device_class = s->device_class,
                            .user = s->user,
                            .job = x->path,
                            .priority = (int)s->priority,
                            .devices = (int)s->devices,
                            .patience = (double)s->patience,
                            .tolerance = s->tolerance / 100,
                            .stop = stop_waiting,
                            .waiting = say_waiting,
                            .data = x};

    if (!(x->stop = tool_stop_watch(x->cx, "tec tune: stopping", NULL)))
        return false;
    x->pool = pool_open(x->cx, &o);
    tool_stop_close(x->stop);
    x->stop = NULL;
    return x->pool;
}

/* What the devices are, or what the user says they are, and their class. */
static const target *target_of(run *x)
{
    const settings *s = x->s;
    const char *own = s->target ? s->target : "native";

    if (x->pool)
        own = s->target ? base_format(x->cx, "%s -model=%s", own, pool_model(x->pool))
                        : target_text(x->cx, pool_target(x->pool));
    return tool_target(x->cx, own, s->threads);
}

/* The kernels that the command line names. */
static job_source source_of(run *x, const target *t)
{
    const settings *s = x->s;
    const onnx_options dims = tool_import_options(x->cx, &s->dims);

    return (job_source){.path = x->path,
                        .target = t,
                        .dims = dims.dims,
                        .n_dims = dims.n_dims,
                        .definition = s->name,
                        .schedules = s->schedules.at,
                        .n_schedules = s->schedules.n,
                        .hashes = s->only.at,
                        .n_hashes = s->only.n};
}

/* The settings as a job; NULL with an error. */
static job *open_job(run *x)
{
    const settings *s = x->s;
    const target *t = target_of(x);
    const job_spec spec = {.from = source_of(x, t),
                           .records = s->records,
                           .explorer = s->explorer,
                           .model = s->model,
                           .seed = (uint64_t)s->seed,
                           .trials = s->trials,
                           .seconds = (double)s->seconds,
                           .gain = s->min_gain / 100,
                           .replay = s->replay,
                           .elsewhere = x->pool};

    return t ? job_open(x->cx, &spec) : NULL;
}

/* Prints the kernels and measures nothing. */
static int print_kernels(run *x)
{
    const target *t = target_of(x);
    const job_source from = source_of(x, t);
    job_tasks tasks;

    if (!t || !job_find_tasks(x->cx, &from, &tasks))
        return tool_fail("tune", x->cx);
    for (int i = 0; i < tasks.n; i++)
        tool_tune_kernel(tasks.at[i], tune_target_key(x->cx, t), x->s->json);
    return TOOL_OK;
}

/* A replay takes no lock, as it writes nothing. */
static int start(run *x)
{
    if (x->s->tracker && !open_pool(x))
        return tool_fail("tune", x->cx);
    if (x->s->kernels)
        return print_kernels(x);
    x->job = open_job(x);
    if (!x->job)
        return tool_fail("tune", x->cx);
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

/* Options of the pool without a pool would be heeded by nobody. */
static int check_pool(const settings *s)
{
    const struct {
        const char *name;
        bool given;
    } option[] = {
        {"--device-class", s->device_class}, {"--key-file", s->key_file},    {"--user", s->user},
        {"--priority", s->priority != 0},    {"--devices", s->devices != 0}, {"--patience", s->patience != 0},
        {"--tolerance", s->tolerance != 0}};

    for (int i = 0; i < BASE_COUNT(option) && !s->tracker; i++)
        if (option[i].given)
            return tool_misuse("tune", "%s is for --tracker", option[i].name);
    if (s->tracker && !s->device_class)
        return tool_misuse("tune", "which devices of the pool measure is missing: --device-class CLASS");
    if (s->tracker && s->replay)
        return tool_misuse("tune",
                           "--replay measures nothing: name the --target of the records, not a --tracker");
    return TOOL_OK;
}

/* The rest of the command line's checks, then the work. */
static int check_settings(run *x, settings *s)
{
    if (!s->records && !s->kernels)
        return tool_misuse("tune", "where the records go is missing: --records DB");
    if (!tool_read_dims("tune", &s->given_dims, &s->dims))
        return TOOL_USAGE;
    return check_pool(s) == TOOL_OK ? start(x) : TOOL_USAGE;
}

/* The command's options. */
int tool_tune(int argc, char **argv)
{
    settings s = {.explorer = "anneal", .model = "rank", .seed = 1};
    tool_list files = {0};
    run x = {.cx = tool_context(), .s = &s};
    const tool_option options[] = {
        {"records", TOOL_TEXT, &s.records, "DB", "the record store; made if it does not exist (required)"},
        {"target", TOOL_TEXT, &s.target, "T",
         "what to tune for; this machine must be able to run it (native; of a pool: what its devices are)"},
        {"trials", TOOL_COUNT, &s.trials, "N", "candidates in all (1000 where no limit is given)"},
        {"seconds", TOOL_COUNT, &s.seconds, "S",
         "stops after S seconds, counting earlier sessions of the same command"},
        {"min-gain", TOOL_DECIMAL, &s.min_gain, "PERCENT",
         "stops when the next batch is expected to save less than PERCENT of the end-to-end time"},
        {"seed", TOOL_NUMBER, &s.seed, "N", "the seed that candidates are drawn from (default: 1)"},
        {"threads", TOOL_COUNT, &s.threads, "N",
         "the threads that kernels run on (default: the cores of the target)"},
        {"dim", TOOL_LIST, &s.given_dims, "NAME=N",
         "gives symbolic dimension NAME the extent N; may be repeated"},
        {"name", TOOL_TEXT, &s.name, "NAME", "for a .te file: tunes only this definition"},
        {"schedule", TOOL_LIST, &s.schedules, "FILE",
         "tries the schedule in this file first; may be repeated"},
        {"only", TOOL_LIST, &s.only, "KEY",
         "the kernel with this key alone, as --kernels prints it; may be repeated"},
        {"kernels", TOOL_FLAG, &s.kernels, NULL, "prints the kernels with their keys, and measures nothing"},
        {"tracker", TOOL_TEXT, &s.tracker, "HOST:PORT", "measures on devices that this tracker leases"},
        {"device-class", TOOL_TEXT, &s.device_class, "CLASS", "of these devices; needed with --tracker"},
        {"key-file", TOOL_TEXT, &s.key_file, "F",
         "the keys that the tracker and its servers know (those of this machine's loopback servers)"},
        {"user", TOOL_TEXT, &s.user, "NAME", "whose share of the class the devices count for (the key's)"},
        {"priority", TOOL_COUNT, &s.priority, "N", "of this job among the user's: 1 to 100 (10)"},
        {"devices", TOOL_COUNT, &s.devices, "N", "at once, at most (8)"},
        {"patience", TOOL_COUNT, &s.patience, "S", "how long to wait for the first device (60)"},
        {"tolerance", TOOL_DECIMAL, &s.tolerance, "PERCENT",
         "by which a device may differ from the others before it is set aside (25)"},
        {"explorer", TOOL_CHOICE, &s.explorer, explorer_names(x.cx), "how candidates are proposed (anneal)"},
        {"model", TOOL_CHOICE, &s.model, "rank|regression|none", "the cost model (rank)"},
        {"replay", TOOL_FLAG, &s.replay, NULL,
         "does not measure: checks that this command proposes the candidates of its records again"},
        {"plot", TOOL_TEXT, &s.plot, "FILE", "writes the tuning curves to this file, as SVG"},
        {"json", TOOL_FLAG, &s.json, NULL, "prints a line of JSON for each batch, kernel, and the end"},
    };
    const tool_usage usage = {
        "tune",
        "MODEL.onnx|FILE.te",
        "Searches for fast schedules by measuring candidates, and stores every measurement. The same command "
        "continues where it was stopped.",
        options,
        BASE_COUNT(options),
        1,
        1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status == TOOL_GO_ON) {
        x.path = files.at[0];
        status = check_settings(&x, &s);
    }
    job_close(x.job);
    pool_close(x.pool);
    tec_context_free(x.cx);
    return status;
}
