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

/* The kernels are listed; those that nobody tuned are tuned; those that other jobs tune are waited for; then
 * all is
 * compiled. A job whose state cannot be written is held until it can. */
typedef enum { LIST, TUNE, WAIT, BUILD, HELD } stage;

typedef struct {
    int64_t id; /* 0: free */
    stage stage;
    tvm_child child;
    char name[STORE_MAX_NAME];
    int64_t seen;        /* bytes of the child's output */
    int64_t tried, told; /* trials, and as the store knows them */
    int64_t earlier;     /* of them, by tuning that is over */
    int parts, mine;     /* kernels; of them, those that this job tunes now */
    char codegen[128];
    time_t heard;  /* when the child last said something */
    time_t looked; /* when it was last asked whether other jobs are through */
    bool asked, cancel, silent;
    char held[512]; /* why, in the stage HELD */
} slot;

struct tvm_runner {
    tec_context *cx;
    tvm_runner_options o;
    store *db;
    slot slots[TVM_AT_ONCE];
    time_t swept, revived;
};

/* What the cause of a job begins with that was paused since a disk is full: it goes on by itself. */
#define NO_SPACE "waiting for space on the disk"

enum { MOST_OUTPUT = 64 << 20, GRACE = 30, TVM_TRIALS = 1000 };

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
    static const char *const files[] = {"input.te",  "input.onnx", "module.tec", "list.json",
                                        "tune.json", "build.json", "errors"};

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

/* The options that the job was submitted with; the seed is for tuning alone. */
static void add_options(tec_context *cx, base_vec *argv, const char *options, const slot *s)
{
    base_held held;
    cJSON *all = cJSON_Parse(options);
    const cJSON *o;

    base_hold(cx, &held, free_json, all);
    cJSON_ArrayForEach(o, all) if (cJSON_IsString(o) &&
                                   (s->stage != BUILD || !base_starts_with(o->valuestring, "--seed=")))
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

/* The command line of the job's present stage; NULL with an error. */
static const char *const *command(tec_context *cx, const tvm_runner *r, const slot *s, const store_queued *j)
{
    base_vec argv = {0};
    const char *input = input_file(cx, r, s);

    base_push(cx, &argv, r->o.tec);
    if (s->stage == BUILD)
        push_all(cx, &argv,
                 (const char *const[]){is_definitions(s->name) ? "te" : "compile", input, "--json",
                                       "--records", r->o.store, "-o", place(cx, r, s->id, "module.tec"),
                                       NULL});
    else
        push_all(cx, &argv, (const char *const[]){"tune", input, "--json", "--records", r->o.store, NULL});
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
    return s->stage == LIST ? "list.json" : s->stage == TUNE ? "tune.json" : "build.json";
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

static bool finish(tec_context *cx, tvm_runner *r, slot *s)
{
    store_queue_file files[3] = {{.name = "module"}};

    files[0].data = base_read_file(cx, place(cx, r, s->id, "module.tec"), &files[0].size);
    set_file(&files[1], "report", tvm_report_json(cx, r->db, s->id, true));
    set_file(&files[2], "report.html", tvm_report_html(cx, r->db, s->id, true));
    return files[0].data && files[1].data && files[2].data &&
           store_queue_progress(cx, r->db, s->id, s->tried) &&
           store_queue_end(cx, r->db, s->id, STORE_QUEUE_DONE, NULL, files, BASE_COUNT(files));
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
    const char *what = s->stage == LIST   ? "importing"
                       : s->stage == TUNE ? "tuning"
                                          : "compiling",
               *line = first_error(cx, r, s);

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

    s->earlier = s->tried;
    return budget_of(cx, r, s, &b) && store_parts_tuned(cx, r->db, s->id, &b, reports, n) && choose(cx, r, s);
}

/* ---- how a job goes on ---- */

/* What the store, SQLite and the system say. */
static bool is_full_disk(const char *failure)
{
    return strcasestr(failure, "no space left") || strstr(failure, "disk is full");
}

/* A full disk is nobody's mistake: the job is paused until there is room. False with an error. */
static bool end_job(tec_context *cx, tvm_runner *r, slot *s, const char *failure)
{
    bool full = !s->asked && is_full_disk(failure), paused = full || (s->asked && !s->cancel);
    const char *cause = full       ? base_format(cx, NO_SPACE ": %s", failure)
                        : paused   ? "on request"
                        : s->asked ? "cancelled"
                                   : failure;

    return store_queue_progress(cx, r->db, s->id, s->tried) &&
           store_queue_end(cx, r->db, s->id, paused ? STORE_QUEUE_PAUSED : STORE_QUEUE_FAILED, cause, NULL,
                           0);
}

/* What becomes of a job whose child has ended. False with an error: the store could not be written. */
static bool go_on(tec_context *cx, tvm_runner *r, slot *s, int status)
{
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;

    if (well && s->stage == BUILD)
        return finish(cx, r, s);
    if (!well || s->asked)
        return end_job(cx, r, s, s->asked ? "" : why_it_failed(cx, r, s, status));
    return s->stage == LIST ? keep_kernels(cx, r, s) : keep_outcomes(cx, r, s);
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
    int status;

    listen_to(cx, r, s);
    if (tvm_child_ended(&s->child, &status)) {
        listen_to(cx, r, s);
        if (!go_on(cx, r, s, status))
            return false;
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
    if (s->stage == HELD) {
        if (s->looked != time(NULL))
            let_go(r, s);
        return true;
    }
    if (!hear_wish(cx, r, s))
        return false;
    return s->child.pid > 0 ? watch_child(cx, r, s) : wait_for_others(cx, r, s);
}

/* Puts the next job of the queue into a free slot and starts its first stage. False with an error. */
static bool take(tec_context *cx, tvm_runner *r, slot *s)
{
    int64_t id;

    if (!store_queue_take(cx, r->db, &id))
        return false;
    if (id == 0)
        return true;
    *s = (slot){.id = id};
    const store_queued *j = store_queue_get(cx, r->db, id);
    if (!j)
        return false;
    snprintf(s->name, sizeof s->name, "%s", j->name);
    tell(cx, r, id);
    return lay_out(cx, r, s) && begin(cx, r, s);
}

/* One slot's turn, in a context of its own: an error of one job does not touch the others. */
static bool turn(tvm_runner *r, slot *s)
{
    tec_context *cx = base_child(r->cx);
    bool ok = s->id ? watch(cx, r, s) : take(cx, r, s);

    if (!ok && s->id)
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

/* Every few seconds: jobs that wait for space are queued again where there is some. */
static bool revive(tvm_runner *r)
{
    enum { SECONDS = 3 };
    time_t now = time(NULL);

    if (now - r->revived < SECONDS || !has_room(r))
        return true;
    r->revived = now;
    tec_context *cx = base_child(r->cx);
    bool ok = store_queue_revive(cx, r->db, NO_SPACE);
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
    int64_t n;

    *r = (tvm_runner){.cx = cx, .o = *o};
    if (mkdir(o->work, 0700) != 0 && errno != EEXIST)
        return base_fail(cx, TEC_IO, (base_loc){.file = o->work}, "cannot make the folder: %s",
                         strerror(errno));
    r->db = store_open(cx, o->store, NULL);
    if (r->db && store_queue_recover(cx, r->db, &n))
        return r;
    tvm_runner_close(r);
    return NULL;
}

void tvm_runner_close(tvm_runner *r)
{
    int64_t n;

    if (!r)
        return;
    for (int i = 0; i < r->o.at_once; i++)
        tvm_child_kill(&r->slots[i].child);
    if (r->db)
        store_queue_recover(r->cx, r->db, &n);
    store_close(r->db);
}
