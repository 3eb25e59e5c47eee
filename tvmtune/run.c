/* tvmtune/run.c -- see run.h. A running job is a slot: its stage, its child, and how far the child's output
 * was read. */
#include "tvmtune/run.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "store/queue_tasks.h"
#include "store/queue_users.h"
#include "tec/runtime.h"
#include "tvmtune/child.h"
#include "tvmtune/kernels.h"
#include "tvmtune/report.h"
#include "tvmtune/routes.h"

/* The kernels are listed; those that nobody tuned are tuned; those that other jobs tune are waited for.
 * Then all is compiled with the records and without them, and the two modules run in turns. A job whose
 * state cannot be written is held until it can. */
typedef enum { LIST, TUNE, WAIT, BUILD, PLAIN, COMPARE, HELD } stage;

static const struct {
    const char *doing, *output;
} stages[] = {
    [LIST] = {"importing", "list.json"},       [TUNE] = {"tuning", "tune.json"},
    [BUILD] = {"compiling", "build.json"},     [PLAIN] = {"compiling without records", "plain.json"},
    [COMPARE] = {"comparing", "compare.json"},
};

typedef struct {
    int64_t id; /* 0: free */
    stage stage;
    tvm_child child;
    char name[STORE_MAX_NAME];
    int64_t seen;        /* bytes of the child's output */
    int64_t tried, told; /* trials, and as the store knows them */
    int64_t earlier;     /* of them, by tuning that is over */
    int stale, kept;     /* schedules of an earlier code generator: measured again; kept */
    int parts, mine;     /* kernels; of them, those that this job tunes now */
    char codegen[128];
    time_t heard;  /* when the child last said something */
    time_t looked; /* when it was last asked whether other jobs are through */
    bool asked, cancel, silent;
    bool over; /* the child has ended with `status`, and the store does not know yet what follows */
    int status;
    double renewed; /* when the lease was, by tec_clock */
    char held[512]; /* why, in the stage HELD */
} slot;

struct tvm_runner {
    tec_context *cx;
    tvm_runner_options o;
    store *db;
    slot slots[TVM_AT_ONCE];
    time_t swept, revived;
    double looked; /* when the queue had nothing to take, by tec_clock */
};

/* What the cause of a job begins with that was paused through nobody's fault: the job goes on by itself. */
#define WAITING "waiting for "

enum { MOST_OUTPUT = 64 << 20, GRACE = 30, TVM_TRIALS = 1000 };
#define LOOK_SECONDS 0.2 /* between questions to a queue that had nothing to take */

/* ---- files of a job that runs ---- */

static const char *folder(tec_context *cx, const tvm_runner *runner, int64_t id)
{
    return base_format(cx, "%s/%lld", runner->o.work, (long long)id);
}

static const char *place(tec_context *cx, const tvm_runner *runner, int64_t id, const char *file)
{
    return base_format(cx, "%s/%s", folder(cx, runner, id), file);
}

static bool is_definitions(const char *name)
{
    size_t n = strlen(name);

    return n > 3 && strcmp(name + n - 3, ".te") == 0;
}

static const char *input_file(tec_context *cx, const tvm_runner *runner, const slot *entry)
{
    return place(cx, runner, entry->id, is_definitions(entry->name) ? "input.te" : "input.onnx");
}

static void clear_folder(tec_context *cx, const tvm_runner *runner, int64_t id)
{
    static const char *const files[] = {"input.te",  "input.onnx", "module.tec", "plain.tec",    "list.json",
                                        "tune.json", "build.json", "plain.json", "compare.json", "errors"};

    for (int i = 0; i < BASE_COUNT(files); i++)
        unlink(place(cx, runner, id, files[i]));
    rmdir(folder(cx, runner, id));
}

/* Each stage starts from a fresh folder with the input, so that nothing of an earlier try is taken for a
 * result. */
static bool lay_out(tec_context *cx, const tvm_runner *runner, const slot *entry)
{
    size_t size;
    const void *input = store_queue_read(cx, runner->db, entry->id, "input", &size);

    if (!input)
        return false;
    clear_folder(cx, runner, entry->id);
    if (mkdir(folder(cx, runner, entry->id), 0700) != 0 && errno != EEXIST)
        return base_fail(cx, TEC_IO, (base_loc){.file = folder(cx, runner, entry->id)},
                         "cannot make the folder: %s", strerror(errno));
    return base_write_file(cx, input_file(cx, runner, entry), input, size);
}

/* ---- command lines ---- */

static void free_json(void *j)
{
    cJSON_Delete(j);
}

/* The seed is for tuning alone, and a module has all but the threads in it. */
static bool takes_option(stage at, const char *option)
{
    return at == COMPARE                ? base_starts_with(option, "--threads=")
           : at == BUILD || at == PLAIN ? !base_starts_with(option, "--seed=")
                                        : true;
}

/* The options that the job was submitted with. */
static void add_options(tec_context *cx, base_vec *argv, const char *options, const slot *entry)
{
    base_held held;
    cJSON *all = cJSON_Parse(options);
    const cJSON *o;

    base_hold(cx, &held, free_json, all);
    cJSON_ArrayForEach(o, all) if (cJSON_IsString(o) && takes_option(entry->stage, o->valuestring))
        base_push(cx, argv, base_strdup(cx, o->valuestring));
    base_drop(&held);
}

static void push_all(tec_context *cx, base_vec *argv, const char *const *words)
{
    for (; *words; words++)
        base_push(cx, argv, *words);
}

/* The share of a limit of the whole job that the kernels to be tuned now get, rounded up. */
static int64_t share(const slot *entry, int64_t limit)
{
    return limit && entry->parts ? (limit * entry->mine + entry->parts - 1) / entry->parts : limit;
}

static int64_t trials_of(const store_queued *queued)
{
    return queued->trials || queued->seconds ? queued->trials : TVM_TRIALS;
}

/* The kernels that this job claimed, and its limits. False with an error: the store could not be read. */
static bool add_tuning(tec_context *cx, const tvm_runner *runner, base_vec *argv, const slot *entry,
                       const store_queued *queued)
{
    int n;
    const store_part *const *parts = store_parts(cx, runner->db, entry->id, NULL, &n);

    for (int i = 0; parts && i < n && entry->mine < entry->parts; i++)
        if (parts[i]->mine)
            base_push(cx, argv, base_format(cx, "--only=%s", parts[i]->key));
    if (trials_of(queued))
        base_push(cx, argv, base_format(cx, "--trials=%lld", (long long)share(entry, trials_of(queued))));
    if (queued->seconds)
        base_push(cx, argv, base_format(cx, "--seconds=%lld", (long long)share(entry, queued->seconds)));
    return parts;
}

static void add_compiling(tec_context *cx, const tvm_runner *runner, base_vec *argv, const slot *entry)
{
    bool tuned = entry->stage == BUILD;

    push_all(cx, argv,
             (const char *const[]){is_definitions(entry->name) ? "te" : "compile",
                                   input_file(cx, runner, entry), "--json", "-o",
                                   place(cx, runner, entry->id, tuned ? "module.tec" : "plain.tec"), NULL});
    if (tuned)
        push_all(cx, argv, (const char *const[]){"--records", runner->o.store, NULL});
}

/* The command line of the job's present stage; NULL with an error. */
static const char *const *command(tec_context *cx, const tvm_runner *runner, const slot *entry,
                                  const store_queued *queued)
{
    base_vec argv = {0};

    base_push(cx, &argv, runner->o.tec);
    if (entry->stage == BUILD || entry->stage == PLAIN)
        add_compiling(cx, runner, &argv, entry);
    else if (entry->stage == COMPARE)
        push_all(cx, &argv,
                 (const char *const[]){"compare", place(cx, runner, entry->id, "plain.tec"),
                                       place(cx, runner, entry->id, "module.tec"), "--json", NULL});
    else
        push_all(cx, &argv,
                 (const char *const[]){"tune", input_file(cx, runner, entry), "--json", "--records",
                                       runner->o.store, NULL});
    if (entry->stage == LIST)
        base_push(cx, &argv, "--kernels");
    if (entry->stage == TUNE && !add_tuning(cx, runner, &argv, entry, queued))
        return NULL;
    add_options(cx, &argv, queued->options, entry);
    base_push(cx, &argv, NULL);
    return (const char *const *)argv.at;
}

/* ---- output of the child ---- */

static const char *output_of(const slot *entry)
{
    return stages[entry->stage].output;
}

/* The number behind the last "all_trials": lines are complete or absent, since the child writes each at
 * once. */
static void read_tried(slot *entry, const char *text)
{
    static const char key[] = "\"all_trials\":";

    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key))
        entry->tried = entry->earlier + strtoll(at + sizeof key - 1, NULL, 10);
}

/* Whether the child has said something more. */
static void listen_to(tec_context *cx, const tvm_runner *runner, slot *entry)
{
    const char *path = place(cx, runner, entry->id, output_of(entry));
    struct stat st;
    size_t size;

    if (stat(path, &st) != 0 || st.st_size <= entry->seen || st.st_size > MOST_OUTPUT)
        return;
    const char *text = base_read_file(cx, path, &size);
    entry->seen = st.st_size;
    entry->heard = time(NULL);
    if (text && entry->stage == TUNE)
        read_tried(entry, text);
}

/* The first line that the child said of an error, without the names of our own files' folder. */
static const char *first_error(tec_context *cx, const tvm_runner *runner, const slot *entry)
{
    tec_context *trial = base_child(cx);
    size_t size;
    const char *text = base_read_file(trial, place(trial, runner, entry->id, "errors"), &size),
               *line = text ? text : "";
    const char *own = base_format(cx, "%s/", folder(cx, runner, entry->id)), *mark = strstr(line, "error");

    while (mark && mark > line && mark[-1] != '\n')
        mark--;
    line = mark ? mark : line;
    const char *at = strstr(line, own);
    int length = (int)strcspn(line, "\n");
    const char *cause = at && at < line + length
                            ? base_format(cx, "%.*s%.*s", (int)(at - line), line,
                                          (int)(line + length - at) - (int)strlen(own), at + strlen(own))
                            : base_format(cx, "%.*s", length, line);
    tec_context_free(trial);
    return cause;
}

/* All that the child has printed; "" where it printed nothing. */
static const char *said(tec_context *cx, const tvm_runner *runner, const slot *entry)
{
    tec_context *trial = base_child(cx);
    size_t size;
    const char *text = base_read_file(trial, place(trial, runner, entry->id, output_of(entry)), &size);
    const char *copy = base_strdup(cx, text && size <= MOST_OUTPUT ? text : "");

    tec_context_free(trial);
    return copy;
}

/* ---- the end ---- */

static void set_file(store_queue_file *file, const char *name, const char *text)
{
    *file = (store_queue_file){name, text, text ? strlen(text) : 0};
}

/* What is known of the module end to end, as JSON: `compared` is what the comparison said, `why` why there
 * is none. *keeps: the tuned module is used. */
static const char *end_to_end(tec_context *cx, const slot *entry, const char *compared, const char *why,
                              bool *keeps)
{
    base_held held;
    cJSON *o = compared ? cJSON_Parse(compared) : NULL, *all = cJSON_CreateObject();
    const cJSON *wins = cJSON_GetObjectItemCaseSensitive(o, "wins");
    static const char *const names[][2] = {{"first_ms", "untuned_ms"},
                                           {"second_ms", "tuned_ms"},
                                           {"pairs", "pairs"},
                                           {"gain", "gain"},
                                           {"noise", "noise"}};

    base_hold(cx, &held, free_json, o);
    *keeps = !cJSON_IsFalse(wins);
    for (int i = 0; i < BASE_COUNT(names); i++) {
        const cJSON *x = cJSON_GetObjectItemCaseSensitive(o, names[i][0]);

        if (cJSON_IsNumber(x))
            cJSON_AddNumberToObject(all, names[i][1], x->valuedouble);
    }
    cJSON_AddStringToObject(all, "module", *keeps ? "tuned" : "untuned");
    if (why)
        cJSON_AddStringToObject(all, "not_compared", why);
    if (entry->stale) {
        cJSON_AddNumberToObject(all, "remeasured", entry->stale);
        cJSON_AddNumberToObject(all, "kept", entry->kept);
    }
    base_drop(&held);
    return tvm_json_text(cx, all);
}

/* A tuned module that does not win end to end is not used: the job gives the untuned one. */
static bool finish(tec_context *cx, tvm_runner *runner, slot *entry, const char *compared, const char *why)
{
    store_queue_file files[3] = {{.name = "module"}};
    bool keeps;
    const char *whole = end_to_end(cx, entry, compared, why, &keeps);

    files[0].data =
        base_read_file(cx, place(cx, runner, entry->id, keeps ? "module.tec" : "plain.tec"), &files[0].size);
    set_file(&files[1], "report", tvm_report_json(cx, runner->db, entry->id, whole));
    set_file(&files[2], "report.html", tvm_report_html(cx, runner->db, entry->id, whole));
    return files[0].data && files[1].data && files[2].data &&
           store_queue_progress(cx, runner->db, entry->id, entry->tried) &&
           store_queue_end(cx, runner->db,
                           &(store_queue_end_of){.id = entry->id,
                                                 .owner = runner->o.name,
                                                 .to = STORE_QUEUE_DONE,
                                                 .files = files,
                                                 .n = BASE_COUNT(files)});
}

/* ---- stages ---- */

/* `heard` is when the child last said something: a child that is silent for too long is killed (see turn). */
static bool begin(tec_context *cx, tvm_runner *runner, slot *entry)
{
    const store_queued *j = store_queue_get(cx, runner->db, entry->id);
    const char *const *argv = j ? command(cx, runner, entry, j) : NULL;

    if (!argv)
        return false;
    entry->seen = 0;
    entry->heard = time(NULL);
    if (tvm_child_start(&entry->child, argv, place(cx, runner, entry->id, output_of(entry)),
                        place(cx, runner, entry->id, "errors"), runner->o.memory))
        return true;
    return base_fail(cx, TEC_IO, (base_loc){0}, "cannot start %s: %s", runner->o.tec, strerror(errno));
}

/* In this order: silence, a signal, the first error that the child printed, its exit status. */
static const char *why_it_failed(tec_context *cx, const tvm_runner *runner, const slot *entry, int status)
{
    const char *what = stages[entry->stage].doing, *line = first_error(cx, runner, entry);

    if (entry->silent)
        return base_format(cx, "%s was ended: nothing was heard of it for %lld seconds", what,
                           (long long)runner->o.patience);
    if (WIFSIGNALED(status))
        return base_format(cx, "%s was ended by signal %d (%s)%s%s", what, WTERMSIG(status),
                           strsignal(WTERMSIG(status)), *line ? ": " : "", line);
    return *line ? line
                 : base_format(cx, "%s ended with status %d and said nothing", what, WEXITSTATUS(status));
}

/* ---- which kernels are tuned ---- */

/* Of each kernel, so that jobs with more of them can be compared. */
static bool budget_of(tec_context *cx, const tvm_runner *runner, const slot *entry, store_budget *budget)
{
    const store_queued *j = store_queue_get(cx, runner->db, entry->id);
    double parts = entry->parts ? entry->parts : 1;

    *budget = (store_budget){.codegen = entry->codegen};
    if (j) {
        budget->trials = (double)trials_of(j) / parts;
        budget->seconds = (double)j->seconds / parts;
    }
    return j;
}

/* The next stage: what nobody tuned is tuned by this job, unless another one is at it. */
static bool choose(tec_context *cx, tvm_runner *runner, slot *entry)
{
    store_budget b;
    int n, tuned = 0;

    entry->looked = time(NULL);
    if (!budget_of(cx, runner, entry, &b) || !store_parts_claim(cx, runner->db, entry->id, &b))
        return false;
    const store_part *const *parts = store_parts(cx, runner->db, entry->id, &b, &n);
    entry->mine = 0;
    for (int i = 0; parts && i < n; i++) {
        entry->mine += parts[i]->mine;
        tuned += parts[i]->tuned;
    }
    entry->stage = entry->mine ? TUNE : tuned < n ? WAIT : BUILD;
    return parts && (entry->stage == WAIT || begin(cx, runner, entry));
}

static bool keep_kernels(tec_context *cx, tvm_runner *runner, slot *entry)
{
    const char *codegen;
    const store_part *parts = tvm_read_kernels(cx, said(cx, runner, entry), &entry->parts, &codegen);

    snprintf(entry->codegen, sizeof entry->codegen, "%s", codegen);
    return store_parts_set(cx, runner->db, entry->id, parts, entry->parts) && choose(cx, runner, entry);
}

/* What tuning said of each kernel, written with the trials that it took, in one step. */
static bool keep_outcomes(tec_context *cx, tvm_runner *runner, slot *entry)
{
    store_budget b;
    int n;
    const store_part_report *reports = tvm_read_outcomes(cx, said(cx, runner, entry), &n);

    int kept;

    entry->earlier = entry->tried;
    entry->stale += tvm_read_remeasured(cx, said(cx, runner, entry), &kept);
    entry->kept += kept;
    return budget_of(cx, runner, entry, &b) && store_parts_tuned(cx, runner->db, entry->id, &b, reports, n) &&
           choose(cx, runner, entry);
}

/* ---- how a job goes on ---- */

/* What the store, SQLite, PostgreSQL and the system say of troubles that pass, and what the job waits for. */
static const struct {
    const char *said, *wait;
} passing[] = {
    {"no space left", WAITING "space on the disk"},
    {"disk is full", WAITING "space on the disk"},
    {"the record store cannot be reached", WAITING "the record store"},
    {"another process holds", WAITING "another process"},
};

/* NULL: the failure stays. */
static const char *what_it_waits_for(const char *failure)
{
    for (int i = 0; i < BASE_COUNT(passing); i++)
        if (strcasestr(failure, passing[i].said))
            return passing[i].wait;
    return NULL;
}

/* A job that waits for what is nobody's mistake is paused until revive. False with an error. */
static bool end_job(tec_context *cx, tvm_runner *runner, slot *entry, const char *failure)
{
    const char *wait = entry->asked ? NULL : what_it_waits_for(failure);
    bool paused = wait || (entry->asked && !entry->cancel);
    const char *cause = wait           ? base_format(cx, "%s: %s", wait, failure)
                        : paused       ? "on request"
                        : entry->asked ? "cancelled"
                                       : failure;

    return store_queue_progress(cx, runner->db, entry->id, entry->tried) &&
           store_queue_end(cx, runner->db,
                           &(store_queue_end_of){.id = entry->id,
                                                 .owner = runner->o.name,
                                                 .to = paused ? STORE_QUEUE_PAUSED : STORE_QUEUE_FAILED,
                                                 .cause = cause});
}

/* Code generation gives equal bytes for equal schedules. */
static bool is_untuned(tec_context *cx, const tvm_runner *runner, const slot *entry)
{
    size_t n, m;
    const char *tuned = base_read_file(cx, place(cx, runner, entry->id, "module.tec"), &n);
    const char *plain = base_read_file(cx, place(cx, runner, entry->id, "plain.tec"), &m);

    return tuned && plain && n == m && memcmp(tuned, plain, n) == 0;
}

static bool next_stage(tec_context *cx, tvm_runner *runner, slot *entry, stage next)
{
    entry->stage = next;
    return begin(cx, runner, entry);
}

/* What becomes of a job whose child has ended. A comparison that fails fails no job. False with an error:
 * the store could not be written. */
static bool go_on(tec_context *cx, tvm_runner *runner, slot *entry, int status)
{
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;

    if (entry->asked || (!well && entry->stage != COMPARE))
        return end_job(cx, runner, entry, entry->asked ? "" : why_it_failed(cx, runner, entry, status));
    switch (entry->stage) {
    case LIST: return keep_kernels(cx, runner, entry);
    case TUNE: return keep_outcomes(cx, runner, entry);
    case BUILD: return next_stage(cx, runner, entry, PLAIN);
    case PLAIN:
        return is_untuned(cx, runner, entry)
                   ? finish(cx, runner, entry, NULL, "no other schedule was adopted")
                   : next_stage(cx, runner, entry, COMPARE);
    case COMPARE:
        return well ? finish(cx, runner, entry, said(cx, runner, entry), NULL)
                    : finish(cx, runner, entry, NULL, why_it_failed(cx, runner, entry, status));
    case WAIT:
    case HELD: break;
    }
    return true;
}

/* In a context of its own: being told is no part of the job, and its failure does not fail the job. */
static void tell(tec_context *cx, const tvm_runner *runner, int64_t id)
{
    tec_context *own = base_child(cx);
    const store_queued *j = runner->o.told ? store_queue_get(own, runner->db, id) : NULL;

    if (j)
        runner->o.told(runner->o.user, j);
    tec_context_free(own);
}

static void leave(tec_context *cx, tvm_runner *runner, slot *entry)
{
    tell(cx, runner, entry->id);
    clear_folder(cx, runner, entry->id);
    *entry = (slot){.id = 0};
}

/* Another daemon has the job now. */
static void abandon(tec_context *cx, tvm_runner *runner, slot *entry)
{
    tvm_child_kill(&entry->child);
    leave(cx, runner, entry);
}

/* The lease is renewed three times in its length. False with an error; *held false: the job is another
 * daemon's. */
static bool keep_lease(tec_context *cx, tvm_runner *runner, slot *entry, bool *held)
{
    *held = true;
    if (tec_clock() - entry->renewed < (double)runner->o.lease / 3)
        return true;
    if (!store_queue_renew(cx, runner->db, entry->id, runner->o.name, runner->o.lease, held))
        return false;
    entry->renewed = tec_clock();
    return true;
}

/* Tries to end a job that is held; whether that could be written. */
static bool let_go(tvm_runner *runner, slot *entry)
{
    tec_context *cx = base_child(runner->cx);
    bool ended = end_job(cx, runner, entry, entry->held);

    entry->looked = time(NULL);
    if (ended)
        leave(cx, runner, entry);
    tec_context_free(cx);
    return ended;
}

/* A job that neither runs nor can be ended as it should keeps its slot until the store takes its end. */
static void hold_job(tec_context *cx, tvm_runner *runner, slot *entry)
{
    tvm_child_kill(&entry->child);
    snprintf(entry->held, sizeof entry->held, "%s", tec_context_error(cx));
    entry->stage = HELD;
    let_go(runner, entry);
}

/* What somebody asked of the job since the last turn. */
static bool hear_wish(tec_context *cx, tvm_runner *runner, slot *entry)
{
    const store_queued *j = store_queue_get(cx, runner->db, entry->id);

    if (!j)
        return false;
    entry->cancel |= j->wish == STORE_QUEUE_CANCEL;
    if (j->wish == STORE_QUEUE_NO_WISH || entry->asked)
        return true;
    entry->asked = true;
    entry->heard = time(NULL);
    if (entry->child.pid > 0)
        tvm_child_ask(&entry->child);
    return true;
}

/* A job without a child waits for the kernels that others tune. */
static bool wait_for_others(tec_context *cx, tvm_runner *runner, slot *entry)
{
    if (entry->asked) {
        bool ok = end_job(cx, runner, entry, "");

        if (ok)
            leave(cx, runner, entry);
        return ok;
    }
    return entry->looked == time(NULL) || choose(cx, runner, entry);
}

/* Reads what the child has printed, and goes on when the child has ended. False with an error. */
static bool watch_child(tec_context *cx, tvm_runner *runner, slot *entry)
{
    listen_to(cx, runner, entry);
    entry->over = entry->over || tvm_child_ended(&entry->child, &entry->status);
    if (entry->over) {
        listen_to(cx, runner, entry);
        if (!go_on(cx, runner, entry, entry->status))
            return false;
        entry->over = false;
        if (entry->child.pid == 0 && entry->stage != WAIT)
            leave(cx, runner, entry);
        return true;
    }
    if (time(NULL) - entry->heard > (entry->asked ? GRACE : runner->o.patience)) {
        entry->silent = true;
        kill(-entry->child.pid, SIGKILL);
    }
    if (entry->tried == entry->told)
        return true;
    entry->told = entry->tried;
    return store_queue_progress(cx, runner->db, entry->id, entry->tried);
}

/* One turn of a job in its slot. False with an error. */
static bool watch(tec_context *cx, tvm_runner *runner, slot *entry)
{
    bool held;

    if (!keep_lease(cx, runner, entry, &held))
        return false;
    if (!held) {
        abandon(cx, runner, entry);
        return true;
    }
    if (entry->stage == HELD) {
        if (entry->looked != time(NULL))
            let_go(runner, entry);
        return true;
    }
    if (!hear_wish(cx, runner, entry))
        return false;
    return entry->child.pid > 0 || entry->over ? watch_child(cx, runner, entry)
                                               : wait_for_others(cx, runner, entry);
}

/* Lays out the job that the slot was given, and starts its first stage. False with an error. */
static bool start(tec_context *cx, tvm_runner *runner, slot *entry)
{
    const store_queued *j = store_queue_get(cx, runner->db, entry->id);

    if (!j)
        return false;
    snprintf(entry->name, sizeof entry->name, "%s", j->name);
    tell(cx, runner, entry->id);
    return lay_out(cx, runner, entry) && begin(cx, runner, entry);
}

/* Puts the next job of the queue into a free slot. A job that was taken from a store that then went away is
 * taken again when its lease is over. False with an error. */
static bool take(tec_context *cx, tvm_runner *runner, slot *entry)
{
    int64_t id;

    if (tec_clock() - runner->looked < LOOK_SECONDS)
        return true;
    if (!store_queue_take(cx, runner->db, runner->o.name, runner->o.lease, &id))
        return false;
    if (id == 0)
        runner->looked = tec_clock();
    if (id == 0)
        return true;
    *entry = (slot){.id = id, .renewed = tec_clock()};
    if (start(cx, runner, entry))
        return true;
    if (store_is_away(runner->db))
        *entry = (slot){.id = 0};
    return false;
}

/* One slot's turn, in a context of its own: an error of one job does not touch the others. While the store
 * is away children go on, and the turn is repeated. */
static bool turn(tvm_runner *runner, slot *entry)
{
    tec_context *cx = base_child(runner->cx);
    bool ok = entry->id ? watch(cx, runner, entry) : take(cx, runner, entry);

    if (!ok && entry->id && !store_is_away(runner->db))
        hold_job(cx, runner, entry);
    if (!ok)
        base_adopt(runner->cx, cx);
    tec_context_free(cx);
    return ok;
}

/* Once an hour. */
static bool sweep(tvm_runner *runner)
{
    enum { HOUR = 3600 };
    int64_t n;
    time_t now = time(NULL);

    if (!runner->o.keep_seconds || (runner->swept && now - runner->swept < HOUR))
        return true;
    if (!store_queue_expire(runner->cx, runner->db, (int64_t)now - runner->o.keep_seconds, &n))
        return false;
    runner->swept = now;
    return true;
}

/* A twentieth of the file system, or 64 MiB. */
static bool has_room(const tvm_runner *runner)
{
    enum { ENOUGH = 64 << 20, SHARE = 20 };
    struct statvfs f;

    if (statvfs(runner->o.work, &f) != 0)
        return false;
    uint64_t room = (uint64_t)f.f_bavail * f.f_frsize, all = (uint64_t)f.f_blocks * f.f_frsize;
    return room >= ENOUGH || room >= all / SHARE;
}

/* Every few seconds: jobs of daemons that fell silent are interrupted, so that even jobs that wait for
 * their kernels go on; jobs that wait for what passes are queued again, while the disk has room. */
static bool revive(tvm_runner *runner)
{
    enum { SECONDS = 2 };
    time_t now = time(NULL);

    if (now - runner->revived < SECONDS)
        return true;
    runner->revived = now;
    tec_context *cx = base_child(runner->cx);
    bool ok = store_queue_recover(cx, runner->db, NULL) &&
              (!has_room(runner) || store_queue_revive(cx, runner->db, WAITING));
    if (!ok)
        base_adopt(runner->cx, cx);
    tec_context_free(cx);
    return ok;
}

/* Housekeeping first, then each slot does what it can do without waiting. */
bool tvm_runner_step(tvm_runner *runner, int ms)
{
    bool ok = sweep(runner) && revive(runner);

    for (int i = 0; i < runner->o.at_once; i++)
        ok &= turn(runner, &runner->slots[i]);
    poll(NULL, 0, ms);
    return ok;
}

/* Makes the folder of the jobs' files, opens the store, and puts jobs that a killed daemon left running back
 * into the queue. */
tvm_runner *tvm_runner_open(tec_context *cx, const tvm_runner_options *options)
{
    tvm_runner *runner = base_new(cx, tvm_runner);

    *runner = (tvm_runner){.cx = cx, .o = *options};
    if (mkdir(options->work, 0700) != 0 && errno != EEXIST)
        return base_fail(cx, TEC_IO, (base_loc){.file = options->work}, "cannot make the folder: %s",
                         strerror(errno));
    runner->db = store_open(cx, options->store, NULL);
    if (runner->db && store_queue_recover(cx, runner->db, options->alone ? "" : options->name))
        return runner;
    tvm_runner_close(runner);
    return NULL;
}

/* Jobs that this daemon was running become interrupted: they are the first that the next daemon takes. */
void tvm_runner_close(tvm_runner *runner)
{
    if (!runner)
        return;
    for (int i = 0; i < runner->o.at_once; i++)
        tvm_child_kill(&runner->slots[i].child);
    if (runner->db)
        store_queue_recover(runner->cx, runner->db, runner->o.name);
    store_close(runner->db);
}
