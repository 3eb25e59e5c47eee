/* tvmtune/ask.c -- the commands that talk to the daemon. Each is one request; `watch` listens to
 * the event stream until the job is over. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tvmtune/client.h"
#include "tvmtune/commands.h"
#include "tvmtune/field.h"
#include "tvmtune/run.h"

typedef struct {
    const char *command, *state, *token, *output, *file, *role;
    int64_t port;
    bool json;
    tool_list words;
    tec_context *cx;
    tvm_daemon daemon;
} session;

#define STATE_OPTION(s)                                                                                      \
    {"state", TOOL_TEXT, &(s).state, "DIR", "the folder of the daemon (default: " TVM_STATE ")"},            \
        {"port", TOOL_COUNT, &(s).port, "N", "the port of the daemon, if its folder cannot be read"},        \
        {"token-file", TOOL_TEXT, &(s).token, "FILE",                                                        \
         "the file with your token (default: the token in the folder)"}
#define JSON_OPTION(s) {"json", TOOL_FLAG, &(s).json, NULL, "prints what the daemon says, as JSON"}

/* ---- answers ---- */

static void free_json(void *j)
{
    cJSON_Delete(j);
}

static long long number_of(const cJSON *object, const char *key)
{
    return (long long)tvm_number_of(object, key);
}

/* Text from others, on a terminal: no control characters. */
static const char *clean(tec_context *cx, const char *text)
{
    char *copy = base_strdup(cx, text);

    for (char *p = copy; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    return copy;
}

static void print_job(session *self, const cJSON *object)
{
    const char *cause = tvm_text_of(object, "cause");

    printf("%5lld  %-11s  %6lld of %-6lld  %s%s%s\n", number_of(object, "id"), tvm_text_of(object, "state"),
           number_of(object, "tried"), number_of(object, "trials"),
           clean(self->cx, tvm_text_of(object, "name")), *cause ? ": " : "", clean(self->cx, cause));
}

/* An answer of the daemon that is no success, as an error of the command. */
static bool accept(session *self, const tvm_reply *reply)
{
    base_held held;

    if (reply->status >= 200 && reply->status < 300)
        return true;
    cJSON *o = cJSON_Parse(reply->data);
    base_hold(self->cx, &held, free_json, o);
    base_fail(self->cx, TEC_INVALID, (base_loc){0}, "the daemon refuses (%d): %s", reply->status,
              clean(self->cx, tvm_text_of(o, "error")));
    base_drop(&held);
    return false;
}

static bool ask(session *self, const char *method, const char *path, tvm_reply *reply)
{
    return tvm_ask(self->cx, &self->daemon, method, path, NULL, 0, reply) && accept(self, reply);
}

/* The list of jobs, or the one job, that the daemon answered with. */
static int print_answer(session *self, const tvm_reply *reply)
{
    base_held held;
    const cJSON *one;

    if (self->json) {
        printf("%s\n", reply->data);
        return TOOL_OK;
    }
    cJSON *o = cJSON_Parse(reply->data), *jobs = cJSON_GetObjectItemCaseSensitive(o, "jobs");
    base_hold(self->cx, &held, free_json, o);
    cJSON_ArrayForEach(one, jobs) print_job(self, one);
    if (!jobs && cJSON_HasObjectItem(o, "id"))
        print_job(self, o);
    base_drop(&held);
    return TOOL_OK;
}

/* ---- the frame of each command ---- */

/* Parses the words, finds the daemon by its state folder or --port, asks it, and prints the first error. */
static int run_command(session *s, const tool_usage *usage, int argc, char **argv, int (*run)(session *s))
{
    int status = tool_parse(usage, argc, argv, &s->words);

    if (status != TOOL_GO_ON)
        return status;
    s->cx = tool_context();
    s->command = usage->command;
    status = tvm_find_daemon(s->cx, s->state, s->port, s->token, &s->daemon) ? run(s) : TOOL_FAILED;
    if (status == TOOL_FAILED && base_failed(s->cx))
        tool_fail(usage->command, s->cx);
    tec_context_free(s->cx);
    return status;
}

/* Numbers alone reach the address: a word of the user is never part of a path. */
static const char *job_path(session *self, const char *rest)
{
    int64_t id;

    if (!tool_number(self->words.at[0], &id) || id < 1)
        return base_fail(self->cx, TEC_INVALID, (base_loc){0}, "expected the number of a job, found '%s'",
                         self->words.at[0]);
    return base_format(self->cx, "/v1/jobs/%lld%s", (long long)id, rest);
}

/* ---- submit ---- */

typedef struct {
    session s;
    const char *target, *name, *device_class;
    int64_t trials, seconds, priority, threads, seed;
    tool_list dims;
} submission;

static void add_number(tec_context *cx, base_text *path, const char *key, int64_t value)
{
    if (value)
        base_addf(cx, path, "&%s=%lld", key, (long long)value);
}

static void add_text(tec_context *cx, base_text *path, const char *key, const char *value)
{
    if (value)
        base_addf(cx, path, "&%s=%s", key, tvm_escape(cx, value));
}

/* The options of the command as parameters of the request; the file goes by its name alone. */
static const char *submission_path(tec_context *cx, const submission *self, const char *file)
{
    const char *slash = strrchr(file, '/');
    base_text path = {0};

    base_addf(cx, &path, "/v1/jobs?name=%s", tvm_escape(cx, slash ? slash + 1 : file));
    add_number(cx, &path, "trials", self->trials);
    add_number(cx, &path, "seconds", self->seconds);
    add_number(cx, &path, "priority", self->priority);
    add_number(cx, &path, "threads", self->threads);
    add_number(cx, &path, "seed", self->seed);
    add_text(cx, &path, "target", self->target);
    add_text(cx, &path, "definition", self->name);
    add_text(cx, &path, "device-class", self->device_class);
    for (int i = 0; i < self->dims.n; i++)
        add_text(cx, &path, "dim", self->dims.at[i]);
    return base_text_str(cx, &path);
}

static int submit(session *self)
{
    const submission *w = (const submission *)self;
    size_t size;
    const char *file = self->words.at[0], *data = base_read_file(self->cx, file, &size);
    tvm_reply r;

    if (!data ||
        !tvm_ask(self->cx, &self->daemon, "POST", submission_path(self->cx, w, file), data, size, &r) ||
        !accept(self, &r))
        return TOOL_FAILED;
    return print_answer(self, &r);
}

/* The options of `submit` lie behind those that all commands share, so that one frame runs them all. */
int tvm_submit(int argc, char **argv)
{
    submission w = {.s = {.state = TVM_STATE}};
    const tool_option options[] = {
        STATE_OPTION(w.s),
        {"trials", TOOL_COUNT, &w.trials, "N",
         "stops after N candidates (default: 1000, if there is no other limit)"},
        {"seconds", TOOL_COUNT, &w.seconds, "S", "stops after S seconds of tuning"},
        {"priority", TOOL_NUMBER, &w.priority, "N",
         "jobs of higher priority run first; -1000 to 1000000000 (default: 0)"},
        {"target", TOOL_TARGET, &w.target, "T",
         "the target to tune for (default: native, the daemon's machine)"},
        {"threads", TOOL_COUNT, &w.threads, "N",
         "the threads that kernels run on (default: the cores of the target)"},
        {"seed", TOOL_COUNT, &w.seed, "N", "the seed that candidates are drawn from (default: 1)"},
        {"dim", TOOL_LIST, &w.dims, "NAME=N", "gives symbolic dimension NAME the extent N; may be repeated"},
        {"name", TOOL_TEXT, &w.name, "NAME", "for a .te file: tunes only this definition"},
        {"device-class", TOOL_TEXT, &w.device_class, "CLASS",
         "measures on devices of this class of the daemon's pool (default: on the daemon's machine)"},
        JSON_OPTION(w.s),
    };
    const tool_usage usage = {
        "submit", "MODEL.onnx|FILE.te", "Gives a file to the daemon as a new job, and prints the job.",
        options,  BASE_COUNT(options),  1,
        1};

    return run_command(&w.s, &usage, argc, argv, submit);
}

/* ---- list and watch ---- */

static int list(session *self)
{
    tvm_reply r;
    const char *path = self->words.n ? job_path(self, "") : "/v1/jobs";

    return path && ask(self, "GET", path, &r) ? print_answer(self, &r) : TOOL_FAILED;
}

/* `tvmtune list`: the options, and the jobs or one job. */
int tvm_list(int argc, char **argv)
{
    session s = {.state = TVM_STATE};
    const tool_option options[] = {STATE_OPTION(s), JSON_OPTION(s)};
    const tool_usage usage = {
        "list",
        "[JOB]",
        "Lists the jobs with their number, state, trials so far, trials in all, and name.",
        options,
        BASE_COUNT(options),
        0,
        1};

    return run_command(&s, &usage, argc, argv, list);
}

typedef struct {
    session *s;
    const char *job; /* its number */
    char last[128];
    int status; /* -1: it goes on */
} watcher;

/* The exit status that the job's state stands for; -1: the job goes on. One that is paused through nobody's
 * fault goes on by itself. */
static int status_of(const cJSON *queued)
{
    const char *state = tvm_text_of(queued, "state");

    if (strcmp(state, "done") == 0)
        return TOOL_OK;
    if (strcmp(state, "paused") == 0 && base_starts_with(tvm_text_of(queued, "cause"), TVM_WAITING))
        return -1;
    return strcmp(state, "failed") == 0 || strcmp(state, "paused") == 0 ? TOOL_FAILED : -1;
}

/* The job as the daemon says it; printed where it has changed. */
static void look(watcher *self, const char *json)
{
    base_held held;
    cJSON *o = cJSON_Parse(json);

    base_hold(self->s->cx, &held, free_json, o);
    const char *state = tvm_text_of(o, "state"),
               *now = base_format(self->s->cx, "%s %lld", state, number_of(o, "tried"));
    if (strcmp(now, self->last) != 0)
        print_answer(self->s, &(tvm_reply){.status = 200, .data = json, .size = strlen(json)});
    fflush(stdout);
    snprintf(self->last, sizeof self->last, "%s", now);
    self->status = status_of(o);
    base_drop(&held);
}

/* An event of another job tells nothing. */
static bool is_of(const watcher *self, const char *json)
{
    cJSON *o = cJSON_Parse(json);
    bool is = o && number_of(o, "id") == atoll(self->job);

    cJSON_Delete(o);
    return is;
}

/* Each event has a context of its own, so that memory does not grow. */
static bool take_event(void *user, const char *event, const char *data)
{
    watcher *w = user;
    tec_context *all = w->s->cx;

    if (strcmp(event, "gone") == 0 && atoll(data) == atoll(w->job)) {
        base_fail(all, TEC_INVALID, (base_loc){0}, "job %s was removed", w->job);
        w->status = TOOL_FAILED;
    } else if (strcmp(event, "job") == 0 && is_of(w, data)) {
        w->s->cx = base_child(all);
        look(w, data);
        base_adopt(all, w->s->cx);
        tec_context_free(w->s->cx);
        w->s->cx = all;
    }
    return w->status < 0;
}

/* Asks once, because the daemon says no event of a job that is not there, then listens. */
static int watch(session *self)
{
    watcher w = {.s = self, .job = self->words.at[0], .status = -1};
    const char *path = job_path(self, "");
    tvm_reply r;

    if (!path || !ask(self, "GET", path, &r))
        return TOOL_FAILED;
    look(&w, r.data);
    if (w.status < 0 && !tvm_listen(self->cx, &self->daemon, take_event, &w))
        return TOOL_FAILED;
    return w.status;
}

/* Its exit status says how the job ended, for scripts. */
int tvm_watch(int argc, char **argv)
{
    session s = {.state = TVM_STATE};
    const tool_option options[] = {STATE_OPTION(s), JSON_OPTION(s)};
    const tool_usage usage = {"watch",
                              "JOB",
                              "Prints a job whenever it changes, until it is done (status 0), failed or "
                              "paused (status 1). A job that "
                              "waits for a disk, a store or a device is watched on.",
                              options,
                              BASE_COUNT(options),
                              1,
                              1};

    return run_command(&s, &usage, argc, argv, watch);
}

/* ---- fetch ---- */

/* `-` writes to standard output; else the file is named by the job. */
static int fetch(session *self)
{
    const char *path = job_path(self, base_format(self->cx, "/files/%s", self->file)), *out;
    tvm_reply r;

    if (!path || !ask(self, "GET", path, &r))
        return TOOL_FAILED;
    out = self->output ? self->output
                       : base_format(self->cx, "job-%s.%s", self->words.at[0],
                                     strcmp(self->file, "module") == 0 ? "tec" : self->file);
    if (strcmp(out, "-") == 0)
        return fwrite(r.data, 1, r.size, stdout) == r.size ? TOOL_OK : TOOL_FAILED;
    return base_write_file(self->cx, out, r.data, r.size) ? TOOL_OK : TOOL_FAILED;
}

/* The module by default, since that is what a job is submitted for. */
int tvm_fetch(int argc, char **argv)
{
    session s = {.state = TVM_STATE, .file = "module"};
    const tool_option options[] = {
        STATE_OPTION(s),
        {"file", TOOL_CHOICE, &s.file, "module|report|report.html|input",
         "the file to fetch (default: module)"},
        {"o", TOOL_TEXT, &s.output, "OUT",
         "where to write the file, - for standard output (job-N.tec, job-N.report ...)"},
    };
    const tool_usage usage = {
        "fetch",
        "JOB",
        "Fetches a file of a job: the compiled module, the report as JSON or HTML, or the submitted model.",
        options,
        BASE_COUNT(options),
        1,
        1};

    return run_command(&s, &usage, argc, argv, fetch);
}

/* ---- best ---- */

static void print_best(session *self, const cJSON *kernel)
{
    const cJSON *ms = cJSON_GetObjectItemCaseSensitive(kernel, "best_ms");

    printf("# %s: ", clean(self->cx, tvm_text_of(kernel, "task")));
    if (cJSON_IsNumber(ms))
        printf("%.4g ms\n%s\n", ms->valuedouble, tvm_text_of(kernel, "schedule"));
    else
        printf("nothing is measured\n\n");
}

/* Takes the kernels out of the report, which the daemon makes at any time. */
static int best(session *self)
{
    const char *path = job_path(self, "/files/report");
    tvm_reply r;
    base_held held;
    const cJSON *k;

    if (!path || !ask(self, "GET", path, &r))
        return TOOL_FAILED;
    cJSON *o = cJSON_Parse(r.data), *kernels = cJSON_GetObjectItemCaseSensitive(o, "kernels");
    base_hold(self->cx, &held, free_json, o);
    if (self->json) {
        char *text = cJSON_PrintUnformatted(kernels);

        printf("%s\n", text ? text : "[]");
        cJSON_free(text);
    } else
        cJSON_ArrayForEach(k, kernels) print_best(self, k);
    base_drop(&held);
    return TOOL_OK;
}

int tvm_best(int argc, char **argv)
{
    session s = {.state = TVM_STATE};
    const tool_option options[] = {STATE_OPTION(s), JSON_OPTION(s)};
    const tool_usage usage = {"best",
                              "JOB",
                              "Prints the adopted schedule of each kernel of a job, with its time.",
                              options,
                              BASE_COUNT(options),
                              1,
                              1};

    return run_command(&s, &usage, argc, argv, best);
}

/* ---- users ---- */

static void print_user(session *self, const cJSON *object)
{
    printf("%-6s %s\n", tvm_text_of(object, "role"), clean(self->cx, tvm_text_of(object, "name")));
}

static void print_audit(session *self, const cJSON *object)
{
    printf("%lld  %-12s %-16s", number_of(object, "time"), clean(self->cx, tvm_text_of(object, "user")),
           clean(self->cx, tvm_text_of(object, "action")));
    if (number_of(object, "job"))
        printf(" job %lld", number_of(object, "job"));
    printf(" %s\n", clean(self->cx, tvm_text_of(object, "detail")));
}

/* The list that an answer holds, or the token of a new user. */
static int print_users(session *self, const tvm_reply *reply)
{
    base_held held;
    const cJSON *one;

    if (self->json) {
        printf("%s\n", reply->data);
        return TOOL_OK;
    }
    cJSON *o = cJSON_Parse(reply->data);
    base_hold(self->cx, &held, free_json, o);
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(o, "users")) print_user(self, one);
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(o, "audit")) print_audit(self, one);
    if (cJSON_HasObjectItem(o, "token"))
        printf("%s\n", tvm_text_of(o, "token"));
    base_drop(&held);
    return TOOL_OK;
}

/* `tvmtune user`: lists, adds or removes users of the daemon, or prints their log. */
static int user(session *self)
{
    const char *what = self->words.at[0],
               *name = self->words.n > 1 ? tvm_escape(self->cx, self->words.at[1]) : NULL;
    bool add = strcmp(what, "add") == 0, remove = strcmp(what, "remove") == 0, log = strcmp(what, "log") == 0;
    tvm_reply r;

    if ((!add && !remove && !log && strcmp(what, "list") != 0) || (add || remove) != (name != NULL))
        return tool_misuse("user", "expected 'add NAME', 'remove NAME', 'list' or 'log'");
    const char *path =
        log    ? "/v1/audit"
        : name ? base_format(self->cx, "/v1/users/%s%s%s", name, add && self->role ? "?role=" : "",
                             add && self->role ? self->role : "")
               : "/v1/users";
    return ask(self,
               add      ? "POST"
               : remove ? "DELETE"
                        : "GET",
               path, &r)
               ? print_users(self, &r)
               : TOOL_FAILED;
}

/* All commands about users: the first operand says which. */
int tvm_user(int argc, char **argv)
{
    session s = {.state = TVM_STATE};
    const tool_option options[] = {STATE_OPTION(s),
                                   {"role", TOOL_CHOICE, &s.role, "user|admin",
                                    "of a new user: an admin sees and changes the jobs of all (user)"},
                                   JSON_OPTION(s)};
    const tool_usage usage = {
        "user",
        "add NAME|remove NAME|list|log",
        "Users of the daemon. 'add' prints the new user's token, which is shown this once; 'log' says "
        "who did what, the newest first.",
        options,
        BASE_COUNT(options),
        1,
        2};

    return run_command(&s, &usage, argc, argv, user);
}

/* ---- what is asked of one job ---- */

static int change(session *self)
{
    bool remove = strcmp(self->command, "rm") == 0;
    const char *path = job_path(self, remove ? "" : base_format(self->cx, "/%s", self->command));
    tvm_reply r;

    return path && ask(self, remove ? "DELETE" : "POST", path, &r) ? print_answer(self, &r) : TOOL_FAILED;
}

static int change_command(const char *name, const char *what, int argc, char **argv)
{
    session s = {.state = TVM_STATE};
    const tool_option options[] = {STATE_OPTION(s), JSON_OPTION(s)};
    const tool_usage usage = {name, "JOB", what, options, BASE_COUNT(options), 1, 1};

    return run_command(&s, &usage, argc, argv, change);
}

int tvm_pause(int argc, char **argv)
{
    return change_command(
        "pause", "Stops a job after the candidate that is being measured, until it is resumed.", argc, argv);
}

int tvm_resume(int argc, char **argv)
{
    return change_command("resume", "Lets a paused job go on where it stopped.", argc, argv);
}

int tvm_cancel(int argc, char **argv)
{
    return change_command("cancel", "Ends a job as failed. What it measured stays in the store.", argc, argv);
}

int tvm_rm(int argc, char **argv)
{
    return change_command("rm", "Removes a job that does not run, with its files. Its records stay.", argc,
                          argv);
}
