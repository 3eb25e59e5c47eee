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
    int64_t renewed; /* when the lease was, in milliseconds */
    char held[512];  /* why, in the stage HELD */
} slot;

struct tvm_runner {
    tec_context *cx;
    tvm_runner_options o;
    store *db;
    slot slots[TVM_AT_ONCE];
    time_t swept, revived;
    int64_t looked; /* when the queue had nothing to take, in milliseconds */
};

/* What the cause of a job begins with that was paused through nobody's fault: the job goes on by itself. */
#define WAITING "waiting for "

enum { MOST_OUTPUT = 64 << 20, GRACE = 30, TVM_TRIALS = 1000, LOOK_MS = 200 };

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- files of a job that runs ---- */

static const char *folder(tec_context *cx, const tvm_runner *r, int64_t id)
{
    return base_format(cx, "%s/%lld", r->o.work, (long long)id);
}

static const char *place(tec_context *cx, const tvm_runner *r, int64_t id, const char *file)
{
    return base_format(cx, "%s/%s", folder(cx, r, id), file);
}

static bool is_definitions(const char *name)
{
    size_t n = strlen(name);

    return n > 3 && strcmp(name + n - 3, ".te") == 0;
}

static const char *input_file(tec_context *cx, const tvm_runner *r, const slot *s)
{
    return place(cx, r, s->id, is_definitions(s->name) ? "input.te" : "input.onnx");
}

static void clear_folder(tec_context *cx, const tvm_runner *r, int64_t id)
{
    static const char *const files[] = {"input.te",  "input.onnx", "module.tec", "plain.tec",    "list.json",
                                        "tune.json", "build.json", "plain.json", "compare.json", "errors"};

    for (int i = 0; i < BASE_COUNT(files); i++)
        unlink(place(cx, r, id, files[i]));
    rmdir(folder(cx, r, id));
}

static bool lay_out(tec_context *cx, const tvm_runner *r, const slot *s)
{
    size_t size;
    const void *input = store_queue_read(cx, r->db, s->id, "input", &size);

    if (!input)
        return false;
    clear_folder(cx, r, s->id);
    if (mkdir(folder(cx, r, s->id), 0700) != 0 && errno != EEXIST)
        return base_fail(cx, TEC_IO, (base_loc){.file = folder(cx, r, s->id)}, "cannot make the folder: %s",
                         strerror(errno));
    return base_write_file(cx, input_file(cx, r, s), input, size);
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
static void add_options(tec_context *cx, base_vec *argv, const char *options, const slot *s)
{
    base_held held;
    cJSON *all = cJSON_Parse(options);
    const cJSON *o;

    base_hold(cx, &held, free_json, all);
    cJSON_ArrayForEach(o, all) if (cJSON_IsString(o) && takes_option(s->stage, o->valuestring))
        base_push(cx, argv, base_strdup(cx, o->valuestring));
    base_drop(&held);
}

static void push_all(tec_context *cx, base_vec *argv, const char *const *words)
{
    for (; *words; words++)
        base_push(cx, argv, *words);
}

/* The share of a limit of the whole job that the kernels to be tuned now get, rounded up. */
static int64_t share(const slot *s, int64_t limit)
{
    return limit && s->parts ? (limit * s->mine + s->parts - 1) / s->parts : limit;
}

static int64_t trials_of(const store_queued *j)
{
    return j->trials || j->seconds ? j->trials : TVM_TRIALS;
}

/* The kernels that this job claimed, and its limits. False with an error: the store could not be read. */
static bool add_tuning(tec_context *cx, const tvm_runner *r, base_vec *argv, const slot *s,
                       const store_queued *j)
{
    int n;
    const store_part *const *parts = store_parts(cx, r->db, s->id, NULL, &n);

    for (int i = 0; parts && i < n && s->mine < s->parts; i++)
        if (parts[i]->mine)
            base_push(cx, argv, base_format(cx, "--only=%s", parts[i]->key));
    if (trials_of(j))
        base_push(cx, argv, base_format(cx, "--trials=%lld", (long long)share(s, trials_of(j))));
    if (j->seconds)
        base_push(cx, argv, base_format(cx, "--seconds=%lld", (long long)share(s, j->seconds)));
    return parts;
}

static void add_compiling(tec_context *cx, const tvm_runner *r, base_vec *argv, const slot *s)
{
    bool tuned = s->stage == BUILD;

    push_all(cx, argv,
             (const char *const[]){is_definitions(s->name) ? "te" : "compile", input_file(cx, r, s), "--json",
                                   "-o", place(cx, r, s->id, tuned ? "module.tec" : "plain.tec"), NULL});
    if (tuned)
        push_all(cx, argv, (const char *const[]){"--records", r->o.store, NULL});
}

/* The command line of the job's present stage; NULL with an error. */
static const char *const *command(tec_context *cx, const tvm_runner *r, const slot *s, const store_queued *j)
{
    base_vec argv = {0};

    base_push(cx, &argv, r->o.tec);
    if (s->stage == BUILD || s->stage == PLAIN)
        add_compiling(cx, r, &argv, s);
    else if (s->stage == COMPARE)
        push_all(cx, &argv,
                 (const char *const[]){"compare", place(cx, r, s->id, "plain.tec"),
                                       place(cx, r, s->id, "module.tec"), "--json", NULL});
    else
        push_all(
            cx, &argv,
            (const char *const[]){"tune", input_file(cx, r, s), "--json", "--records", r->o.store, NULL});
    if (s->stage == LIST)
        base_push(cx, &argv, "--kernels");
    if (s->stage == TUNE && !add_tuning(cx, r, &argv, s, j))
        return NULL;
    add_options(cx, &argv, j->options, s);
    base_push(cx, &argv, NULL);
    return (const char *const *)argv.at;
}

/* ---- output of the child ---- */

static const char *output_of(const slot *s)
{
    return stages[s->stage].output;
}

/* The number behind the last "all_trials": lines are complete or absent, since the child writes each at
 * once. */
static void read_tried(slot *s, const char *text)
{
    static const char key[] = "\"all_trials\":";

    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key))
        s->tried = s->earlier + strtoll(at + sizeof key - 1, NULL, 10);
}

/* Whether the child has said something more. */
static void listen_to(tec_context *cx, const tvm_runner *r, slot *s)
{
    const char *path = place(cx, r, s->id, output_of(s));
    struct stat st;
    size_t size;

    if (stat(path, &st) != 0 || st.st_size <= s->seen || st.st_size > MOST_OUTPUT)
        return;
    const char *text = base_read_file(cx, path, &size);
    s->seen = st.st_size;
    s->heard = time(NULL);
    if (text && s->stage == TUNE)
        read_tried(s, text);
}

/* The first line that the child said of an error, without the names of our own files' folder. */
static const char *first_error(tec_context *cx, const tvm_runner *r, const slot *s)
{
    tec_context *trial = base_child(cx);
    size_t size;
    const char *text = base_read_file(trial, place(trial, r, s->id, "errors"), &size),
               *line = text ? text : "";
    const char *own = base_format(cx, "%s/", folder(cx, r, s->id)), *mark = strstr(line, "error");

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
static const char *said(tec_context *cx, const tvm_runner *r, const slot *s)
{
    tec_context *trial = base_child(cx);
    size_t size;
    const char *text = base_read_file(trial, place(trial, r, s->id, output_of(s)), &size);
    const char *copy = base_strdup(cx, text && size <= MOST_OUTPUT ? text : "");

    tec_context_free(trial);
    return copy;
}

/* ---- the end ---- */

static void set_file(store_queue_file *f, const char *name, const char *text)
{
    *f = (store_queue_file){name, text, text ? strlen(text) : 0};
}

/* What is known of the module end to end, as JSON: `compared` is what the comparison said, `why` why there
 * is none. *keeps: the tuned module is used. */
static const char *end_to_end(tec_context *cx, const slot *s, const char *compared, const char *why,
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
    if (s->stale) {
        cJSON_AddNumberToObject(all, "remeasured", s->stale);
        cJSON_AddNumberToObject(all, "kept", s->kept);
    }
    base_drop(&held);
    return tvm_json_text(cx, all);
}

/* A tuned module that does not win end to end is not used: the job gives the untuned one. */
static bool finish(tec_context *cx, tvm_runner *r, slot *s, const char *compared, const char *why)
{
    store_queue_file files[3] = {{.name = "module"}};
    bool keeps;
    const char *whole = end_to_end(cx, s, compared, why, &keeps);

    files[0].data =
        base_read_file(cx, place(cx, r, s->id, keeps ? "module.tec" : "plain.tec"), &files[0].size);
    set_file(&files[1], "report", tvm_report_json(cx, r->db, s->id, whole));
    set_file(&files[2], "report.html", tvm_report_html(cx, r->db, s->id, whole));
    return files[0].data && files[1].data && files[2].data &&
           store_queue_progress(cx, r->db, s->id, s->tried) &&
           store_queue_end(cx, r->db,
                           &(store_queue_end_of){.id = s->id,
                                                 .owner = r->o.name,
                                                 .to = STORE_QUEUE_DONE,
                                                 .files = files,
                                                 .n = BASE_COUNT(files)});
}

/* ---- stages ---- */

static bool begin(tec_context *cx, tvm_runner *r, slot *s)
{
    const store_queued *j = store_queue_get(cx, r->db, s->id);
    const char *const *argv = j ? command(cx, r, s, j) : NULL;

    if (!argv)
        return false;
    s->seen = 0;
    s->heard = time(NULL);
    if (tvm_child_start(&s->child, argv, place(cx, r, s->id, output_of(s)), place(cx, r, s->id, "errors"),
                        r->o.memory))
        return true;
    return base_fail(cx, TEC_IO, (base_loc){0}, "cannot start %s: %s", r->o.tec, strerror(errno));
}

/* In this order: silence, a signal, the first error that the child printed, its exit status. */
static const char *why_it_failed(tec_context *cx, const tvm_runner *r, const slot *s, int status)
{
    const char *what = stages[s->stage].doing, *line = first_error(cx, r, s);

    if (s->silent)
        return base_format(cx, "%s was ended: nothing was heard of it for %lld seconds", what,
                           (long long)r->o.patience);
    if (WIFSIGNALED(status))
        return base_format(cx, "%s was ended by signal %d (%s)%s%s", what, WTERMSIG(status),
                           strsignal(WTERMSIG(status)), *line ? ": " : "", line);
    return *line ? line
                 : base_format(cx, "%s ended with status %d and said nothing", what, WEXITSTATUS(status));
}

/* ---- which kernels are tuned ---- */

/* Of each kernel, so that jobs with more of them can be compared. */
static bool budget_of(tec_context *cx, const tvm_runner *r, const slot *s, store_budget *b)
{
    const store_queued *j = store_queue_get(cx, r->db, s->id);
    double parts = s->parts ? s->parts : 1;

    *b = (store_budget){.codegen = s->codegen};
    if (j) {
        b->trials = (double)trials_of(j) / parts;
        b->seconds = (double)j->seconds / parts;
    }
    return j;
}

/* The next stage: what nobody tuned is tuned by this job, unless another one is at it. */
static bool choose(tec_context *cx, tvm_runner *r, slot *s)
{
    store_budget b;
    int n, tuned = 0;

    s->looked = time(NULL);
    if (!budget_of(cx, r, s, &b) || !store_parts_claim(cx, r->db, s->id, &b))
        return false;
    const store_part *const *parts = store_parts(cx, r->db, s->id, &b, &n);
    s->mine = 0;
    for (int i = 0; parts && i < n; i++) {
        s->mine += parts[i]->mine;
        tuned += parts[i]->tuned;
    }
    s->stage = s->mine ? TUNE : tuned < n ? WAIT : BUILD;
    return parts && (s->stage == WAIT || begin(cx, r, s));
}

static bool keep_kernels(tec_context *cx, tvm_runner *r, slot *s)
{
    const char *codegen;
    const store_part *parts = tvm_read_kernels(cx, said(cx, r, s), &s->parts, &codegen);

    snprintf(s->codegen, sizeof s->codegen, "%s", codegen);
    return store_parts_set(cx, r->db, s->id, parts, s->parts) && choose(cx, r, s);
}

static bool keep_outcomes(tec_context *cx, tvm_runner *r, slot *s)
{
    store_budget b;
    int n;
    const store_part_report *reports = tvm_read_outcomes(cx, said(cx, r, s), &n);

    int kept;

    s->earlier = s->tried;
    s->stale += tvm_read_remeasured(cx, said(cx, r, s), &kept);
    s->kept += kept;
    return budget_of(cx, r, s, &b) && store_parts_tuned(cx, r->db, s->id, &b, reports, n) && choose(cx, r, s);
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
static bool end_job(tec_context *cx, tvm_runner *r, slot *s, const char *failure)
{
    const char *wait = s->asked ? NULL : what_it_waits_for(failure);
    bool paused = wait || (s->asked && !s->cancel);
    const char *cause = wait       ? base_format(cx, "%s: %s", wait, failure)
                        : paused   ? "on request"
                        : s->asked ? "cancelled"
                                   : failure;

    return store_queue_progress(cx, r->db, s->id, s->tried) &&
           store_queue_end(cx, r->db,
                           &(store_queue_end_of){.id = s->id,
                                                 .owner = r->o.name,
                                                 .to = paused ? STORE_QUEUE_PAUSED : STORE_QUEUE_FAILED,
                                                 .cause = cause});
}

/* Code generation gives equal bytes for equal schedules. */
static bool is_untuned(tec_context *cx, const tvm_runner *r, const slot *s)
{
    size_t n, m;
    const char *tuned = base_read_file(cx, place(cx, r, s->id, "module.tec"), &n);
    const char *plain = base_read_file(cx, place(cx, r, s->id, "plain.tec"), &m);

    return tuned && plain && n == m && memcmp(tuned, plain, n) == 0;
}

static bool next_stage(tec_context *cx, tvm_runner *r, slot *s, stage next)
{
    s->stage = next;
    return begin(cx, r, s);
}

/* What becomes of a job whose child has ended. A comparison that fails fails no job. False with an error:
 * the store could not be written. */
static bool go_on(tec_context *cx, tvm_runner *r, slot *s, int status)
{
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;

    if (s->asked || (!well && s->stage != COMPARE))
        return end_job(cx, r, s, s->asked ? "" : why_it_failed(cx, r, s, status));
    switch (s->stage) {
    case LIST: return keep_kernels(cx, r, s);
    case TUNE: return keep_outcomes(cx, r, s);
    case BUILD: return next_stage(cx, r, s, PLAIN);
    case PLAIN:
        return is_untuned(cx, r, s) ? finish(cx, r, s, NULL, "no other schedule was adopted")
                                    : next_stage(cx, r, s, COMPARE);
    case COMPARE:
        return well ? finish(cx, r, s, said(cx, r, s), NULL)
                    : finish(cx, r, s, NULL, why_it_failed(cx, r, s, status));
    case WAIT:
    case HELD: break;
    }
    return true;
}

static void tell(tec_context *cx, const tvm_runner *r, int64_t id)
{
    tec_context *own = base_child(cx);
    const store_queued *j = r->o.told ? store_queue_get(own, r->db, id) : NULL;

    if (j)
        r->o.told(r->o.user, j);
    tec_context_free(own);
}

static void leave(tec_context *cx, tvm_runner *r, slot *s)
{
    tell(cx, r, s->id);
    clear_folder(cx, r, s->id);
    *s = (slot){.id = 0};
}

/* Another daemon has the job now. */
static void abandon(tec_context *cx, tvm_runner *r, slot *s)
{
    tvm_child_kill(&s->child);
    leave(cx, r, s);
}

/* The lease is renewed three times in its length. False with an error; *held false: the job is another
 * daemon's. */
static bool keep_lease(tec_context *cx, tvm_runner *r, slot *s, bool *held)
{
    *held = true;
    if (now_ms() - s->renewed < r->o.lease * 1000 / 3)
        return true;
    if (!store_queue_renew(cx, r->db, s->id, r->o.name, r->o.lease, held))
        return false;
    s->renewed = now_ms();
    return true;
}

/* Tries to end a job that is held; whether that could be written. */
static bool let_go(tvm_runner *r, slot *s)
{
    tec_context *cx = base_child(r->cx);
    bool ended = end_job(cx, r, s, s->held);

    s->looked = time(NULL);
    if (ended)
        leave(cx, r, s);
    tec_context_free(cx);
    return ended;
}

/* A job that neither runs nor can be ended as it should keeps its slot until the store takes its end. */
static void hold_job(tec_context *cx, tvm_runner *r, slot *s)
{
    tvm_child_kill(&s->child);
    snprintf(s->held, sizeof s->held, "%s", tec_context_error(cx));
    s->stage = HELD;
    let_go(r, s);
}

/* What somebody asked of the job since the last turn. */
static bool hear_wish(tec_context *cx, tvm_runner *r, slot *s)
{
    const store_queued *j = store_queue_get(cx, r->db, s->id);

    if (!j)
        return false;
    s->cancel |= j->wish == STORE_QUEUE_CANCEL;
    if (j->wish == STORE_QUEUE_NO_WISH || s->asked)
        return true;
    s->asked = true;
    s->heard = time(NULL);
    if (s->child.pid > 0)
        tvm_child_ask(&s->child);
    return true;
}

/* A job without a child waits for the kernels that others tune. */
static bool wait_for_others(tec_context *cx, tvm_runner *r, slot *s)
{
    if (s->asked) {
        bool ok = end_job(cx, r, s, "");

        if (ok)
            leave(cx, r, s);
        return ok;
    }
    return s->looked == time(NULL) || choose(cx, r, s);
}

/* Reads what the child has printed, and goes on when the child has ended. False with an error. */
static bool watch_child(tec_context *cx, tvm_runner *r, slot *s)
{
    listen_to(cx, r, s);
    s->over = s->over || tvm_child_ended(&s->child, &s->status);
    if (s->over) {
        listen_to(cx, r, s);
        if (!go_on(cx, r, s, s->status))
            return false;
        s->over = false;
        if (s->child.pid == 0 && s->stage != WAIT)
            leave(cx, r, s);
        return true;
    }
    if (time(NULL) - s->heard > (s->asked ? GRACE : r->o.patience)) {
        s->silent = true;
        kill(-s->child.pid, SIGKILL);
    }
    if (s->tried == s->told)
        return true;
    s->told = s->tried;
    return store_queue_progress(cx, r->db, s->id, s->tried);
}

/* One turn of a job in its slot. False with an error. */
static bool watch(tec_context *cx, tvm_runner *r, slot *s)
{
    bool held;

    if (!keep_lease(cx, r, s, &held))
        return false;
    if (!held) {
        abandon(cx, r, s);
        return true;
    }
    if (s->stage == HELD) {
        if (s->looked != time(NULL))
            let_go(r, s);
        return true;
    }
    if (!hear_wish(cx, r, s))
        return false;
    return s->child.pid > 0 || s->over ? watch_child(cx, r, s) : wait_for_others(cx, r, s);
}

/* Lays out the job that the slot was given, and starts its first stage. False with an error. */
static bool start(tec_context *cx, tvm_runner *r, slot *s)
{
    const store_queued *j = store_queue_get(cx, r->db, s->id);

    if (!j)
        return false;
    snprintf(s->name, sizeof s->name, "%s", j->name);
    tell(cx, r, s->id);
    return lay_out(cx, r, s) && begin(cx, r, s);
}

/* Puts the next job of the queue into a free slot. A job that was taken from a store that then went away is
 * taken again when its lease is over. False with an error. */
static bool take(tec_context *cx, tvm_runner *r, slot *s)
{
    int64_t id;

    if (now_ms() - r->looked < LOOK_MS)
        return true;
    if (!store_queue_take(cx, r->db, r->o.name, r->o.lease, &id))
        return false;
    if (id == 0)
        r->looked = now_ms();
    if (id == 0)
        return true;
    *s = (slot){.id = id, .renewed = now_ms()};
    if (start(cx, r, s))
        return true;
    if (store_is_away(r->db))
        *s = (slot){.id = 0};
    return false;
}

/* One slot's turn, in a context of its own: an error of one job does not touch the others. While the store
 * is away children go on, and the turn is repeated. */
static bool turn(tvm_runner *r, slot *s)
{
    tec_context *cx = base_child(r->cx);
    bool ok = s->id ? watch(cx, r, s) : take(cx, r, s);

    if (!ok && s->id && !store_is_away(r->db))
        hold_job(cx, r, s);
    if (!ok)
        base_adopt(r->cx, cx);
    tec_context_free(cx);
    return ok;
}

/* Once an hour. */
static bool sweep(tvm_runner *r)
{
    enum { HOUR = 3600 };
    int64_t n;
    time_t now = time(NULL);

    if (!r->o.keep_seconds || (r->swept && now - r->swept < HOUR))
        return true;
    if (!store_queue_expire(r->cx, r->db, (int64_t)now - r->o.keep_seconds, &n))
        return false;
    r->swept = now;
    return true;
}

/* A twentieth of the file system, or 64 MiB. */
static bool has_room(const tvm_runner *r)
{
    enum { ENOUGH = 64 << 20, SHARE = 20 };
    struct statvfs f;

    if (statvfs(r->o.work, &f) != 0)
        return false;
    uint64_t room = (uint64_t)f.f_bavail * f.f_frsize, all = (uint64_t)f.f_blocks * f.f_frsize;
    return room >= ENOUGH || room >= all / SHARE;
}

/* Every few seconds: jobs of daemons that fell silent are interrupted, so that even jobs that wait for
 * their kernels go on; jobs that wait for what passes are queued again, while the disk has room. */
static bool revive(tvm_runner *r)
{
    enum { SECONDS = 2 };
    time_t now = time(NULL);

    if (now - r->revived < SECONDS)
        return true;
    r->revived = now;
    tec_context *cx = base_child(r->cx);
    bool ok =
        store_queue_recover(cx, r->db, NULL) && (!has_room(r) || store_queue_revive(cx, r->db, WAITING));
    if (!ok)
        base_adopt(r->cx, cx);
    tec_context_free(cx);
    return ok;
}

bool tvm_runner_step(tvm_runner *r, int ms)
{
    bool ok = sweep(r) && revive(r);

    for (int i = 0; i < r->o.at_once; i++)
        ok &= turn(r, &r->slots[i]);
    poll(NULL, 0, ms);
    return ok;
}

/* Makes the folder of the jobs' files, opens the store, and puts jobs that a killed daemon left running back
 * into
 * the queue. */
tvm_runner *tvm_runner_open(tec_context *cx, const tvm_runner_options *o)
{
    tvm_runner *r = base_new(cx, tvm_runner);

    *r = (tvm_runner){.cx = cx, .o = *o};
    if (mkdir(o->work, 0700) != 0 && errno != EEXIST)
        return base_fail(cx, TEC_IO, (base_loc){.file = o->work}, "cannot make the folder: %s",
                         strerror(errno));
    r->db = store_open(cx, o->store, NULL);
    if (r->db && store_queue_recover(cx, r->db, o->alone ? "" : o->name))
        return r;
    tvm_runner_close(r);
    return NULL;
}

void tvm_runner_close(tvm_runner *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->o.at_once; i++)
        tvm_child_kill(&r->slots[i].child);
    if (r->db)
        store_queue_recover(r->cx, r->db, r->o.name);
    store_close(r->db);
}
