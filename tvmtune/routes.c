/* tvmtune/routes.c -- see routes.h. */
#include "tvmtune/routes.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "store/queue_users.h"
#include "tvmtune/report.h"
#include "tvmtune/users.h"
#include "tvmtune/views.h"

/* ---- answers ---- */

static void free_json(void *j)
{
    cJSON_Delete(j);
}

/* The text of a JSON value, which is deleted. */
const char *tvm_json_text(tec_context *cx, cJSON *json)
{
    char *text = cJSON_PrintUnformatted(json);
    base_held held;

    cJSON_Delete(json);
    if (!text)
        base_no_memory(cx, 0);
    base_hold(cx, &held, free, text);
    const char *copy = base_strdup(cx, text);
    base_drop(&held);
    return copy;
}

static tvm_answer json_answer(int status, const char *text)
{
    return (tvm_answer){.status = status, .type = "application/json", .data = text, .size = strlen(text)};
}

tvm_answer tvm_error(tec_context *cx, int status, const char *text)
{
    cJSON *j = cJSON_CreateObject();

    cJSON_AddStringToObject(j, "error", text);
    return json_answer(status, tvm_json_text(cx, j));
}

/* The context's error: the user's own mistakes are 400, what is not there 404, a state that does not fit
 * 409. */
static tvm_answer refusal(tec_context *cx, int status)
{
    const char *text = tec_context_error(cx);

    if (strstr(text, "there is no job") || strstr(text, "has no file"))
        status = 404;
    return tvm_error(cx, status, text);
}

/* A job as docs/api.md says. */
cJSON *tvm_job_object(const store_queued *queued)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "id", (double)queued->id);
    cJSON_AddStringToObject(o, "name", queued->name);
    cJSON_AddStringToObject(o, "state", store_queue_state_text(queued->state));
    cJSON_AddStringToObject(o, "cause", queued->cause);
    cJSON_AddStringToObject(o, "user", queued->user ? queued->user : "");
    cJSON_AddStringToObject(o, "daemon", queued->owner ? queued->owner : "");
    cJSON_AddStringToObject(o, "wish",
                            queued->wish == STORE_QUEUE_PAUSE    ? "pause"
                            : queued->wish == STORE_QUEUE_CANCEL ? "cancel"
                                                                 : "");
    cJSON_AddNumberToObject(o, "priority", (double)queued->priority);
    cJSON_AddNumberToObject(o, "trials", (double)queued->trials);
    cJSON_AddNumberToObject(o, "seconds", (double)queued->seconds);
    cJSON_AddNumberToObject(o, "tried", (double)queued->tried);
    cJSON_AddNumberToObject(o, "created", (double)queued->created);
    cJSON_AddNumberToObject(o, "updated", (double)queued->updated);
    return o;
}

const char *tvm_job_json(tec_context *cx, const store_queued *queued)
{
    return tvm_json_text(cx, tvm_job_object(queued));
}

/* ---- what is submitted ---- */

/* A name that a user gave is shown in pages and tells the kind of the input; it never becomes a path. */
bool tvm_is_file_name(const char *name)
{
    size_t n = strlen(name);

    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127 || *p == '/' || *p == '\\')
            return false;
    return n <= 200 && name[0] != '.' && name[0] != '-' &&
           ((n > 3 && strcmp(name + n - 3, ".te") == 0) || (n > 5 && strcmp(name + n - 5, ".onnx") == 0));
}

static bool read_number(tec_context *cx, const char *key, const char *text, int64_t least, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    if (*text && !*end && errno == 0 && *out >= least && *out <= 1000000000)
        return true;
    return base_fail(cx, TEC_INVALID, (base_loc){0},
                     "%s: expected a number from %lld to 1000000000, found '%s'", key, (long long)least,
                     text);
}

/* What the programs that tune and compile are told, each as an option of its own. */
static bool is_option(const char *key)
{
    static const char *const known[] = {"target", "threads", "dim", "definition", "seed", "device-class"};

    for (int i = 0; i < BASE_COUNT(known); i++)
        if (strcmp(key, known[i]) == 0)
            return true;
    return false;
}

/* One parameter of a submission: a field of the job, or an option for the programs of its stages. */
static bool take_pair(tec_context *cx, const char *key, const char *value, store_queued *queued,
                      cJSON *options)
{
    if (strcmp(key, "name") == 0)
        queued->name = value;
    else if (strcmp(key, "trials") == 0)
        return read_number(cx, key, value, 1, &queued->trials);
    else if (strcmp(key, "seconds") == 0)
        return read_number(cx, key, value, 1, &queued->seconds);
    else if (strcmp(key, "priority") == 0)
        return read_number(cx, key, value, -1000, &queued->priority);
    else if (!is_option(key))
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "unknown parameter '%s'", key);
    else if (!*value)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "the parameter '%s' is empty", key);
    else
        cJSON_AddItemToArray(options, cJSON_CreateString(base_format(
                                          cx, "--%s=%s", strcmp(key, "definition") ? key : "name", value)));
    return true;
}

/* A class of devices needs a tracker that leases them, and has a short name without control characters. */
static bool check_class(tec_context *cx, const tvm_request *request, const char *name)
{
    enum { LONGEST = 200 };

    if (!request->tracker)
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "device-class: this daemon knows no pool of devices; it is started with --tracker");
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return base_fail(cx, TEC_INVALID, (base_loc){0},
                             "device-class: expected the name of a class, found control characters");
    return strlen(name) <= LONGEST || base_fail(cx, TEC_INVALID, (base_loc){0},
                                                "device-class: the name has more than %d bytes", LONGEST);
}

/* The job that a request describes; the options as a JSON array of command-line options. */
static bool read_job(tec_context *cx, const tvm_request *request, store_queued *queued)
{
    cJSON *options = cJSON_CreateArray();
    base_held held;
    bool ok = true;

    base_hold(cx, &held, free_json, options);
    *queued = (store_queued){.name = ""};
    for (int i = 0; ok && i < request->n_pairs; i++)
        ok = take_pair(cx, request->keys[i], request->values[i] ? request->values[i] : "", queued, options) &&
             (strcmp(request->keys[i], "device-class") != 0 || check_class(cx, request, request->values[i]));
    base_keep(&held);
    queued->options = tvm_json_text(cx, options);
    if (ok && !tvm_is_file_name(queued->name))
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "name: expected the name of a file without its folder that ends in .te or .onnx");
    if (ok && request->body_size == 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "the file '%s' is empty", queued->name);
    return ok;
}

/* ---- the paths ---- */

typedef tvm_answer handler(tec_context *cx, const tvm_request *request, int64_t id, const char *rest);

static tvm_answer one_job(tec_context *cx, const tvm_request *request, int status, int64_t id)
{
    const store_queued *j = store_queue_get(cx, request->db, id);

    return j ? json_answer(status, tvm_job_json(cx, j)) : refusal(cx, 500);
}

/* POST /v1/jobs: reads the job, checks the user's quota, and puts the job into the queue. */
static tvm_answer submit(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    store_queued j;

    (void)rest;
    tvm_answer full = tvm_quota_refusal(cx, request);
    if (full.status)
        return full;
    if (!read_job(cx, request, &j))
        return refusal(cx, 400);
    j.user = request->user;
    id = store_queue_add(cx, request->db, &j, request->body, request->body_size);
    return id ? one_job(cx, request, 201, id)
              : refusal(cx, tec_context_status(cx) == TEC_INVALID ? 400 : 500);
}

bool tvm_may_see(const tvm_request *request, const store_queued *queued)
{
    return request->admin || strcmp(request->user, queued->user) == 0;
}

static tvm_answer list(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    int n;
    const store_queued *const *all = store_queue_all(cx, request->db, &n);
    cJSON *o = cJSON_CreateObject(), *jobs = cJSON_AddArrayToObject(o, "jobs");

    (void)id, (void)rest;
    for (int i = 0; all && i < n; i++)
        if (tvm_may_see(request, all[i]))
            cJSON_AddItemToArray(jobs, tvm_job_object(all[i]));
    const char *text = tvm_json_text(cx, o);
    return all ? json_answer(200, text) : refusal(cx, 500);
}

static tvm_answer show(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    (void)rest;
    return one_job(cx, request, 200, id);
}

/* What a file of a job is, by its name. A report of a job that is not done is made when it is asked for. */
static const struct {
    const char *name, *type;
    const char *(*make)(tec_context *cx, store *db, int64_t job, const char *whole);
} files[] = {
    {"module", "application/octet-stream", NULL},
    {"input", "application/octet-stream", NULL},
    {"report", "application/json", tvm_report_json},
    {"report.html", "text/html; charset=utf-8", tvm_report_html},
};

/* A stored file, or a report of a job that goes on. */
static tvm_answer file(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    const store_queued *j = store_queue_get(cx, request->db, id);
    size_t size = 0;

    for (int i = 0; j && i < BASE_COUNT(files); i++) {
        if (strcmp(files[i].name, rest) != 0)
            continue;
        bool live = files[i].make && j->state != STORE_QUEUE_DONE;
        const void *data = live ? files[i].make(cx, request->db, id, NULL)
                                : store_queue_read(cx, request->db, id, rest, &size);
        return data ? (tvm_answer){200, files[i].type, data, live ? strlen(data) : size} : refusal(cx, 500);
    }
    return j ? tvm_error(cx, 404, base_format(cx, "job %lld has no file '%s'", (long long)id, rest))
             : refusal(cx, 500);
}

/* A job that runs gets the wish only, which the runner follows; any other changes its state here. */
static tvm_answer stop(tec_context *cx, const tvm_request *request, int64_t id, store_queue_wish wish)
{
    bool done;

    return store_queue_ask(cx, request->db, id, wish, &done) ? one_job(cx, request, done ? 200 : 202, id)
                                                             : refusal(cx, 409);
}

static tvm_answer pause_job(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    (void)rest;
    return stop(cx, request, id, STORE_QUEUE_PAUSE);
}

static tvm_answer cancel(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    (void)rest;
    return stop(cx, request, id, STORE_QUEUE_CANCEL);
}

static tvm_answer resume(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    (void)rest;
    return store_queue_move(cx, request->db, id, STORE_QUEUE_PAUSED, STORE_QUEUE_QUEUED, NULL)
               ? one_job(cx, request, 200, id)
               : refusal(cx, 409);
}

static tvm_answer drop(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    (void)rest;
    return store_queue_remove(cx, request->db, id) ? json_answer(200, "{}") : refusal(cx, 409);
}

/* Counts for a monitor, in the text format of Prometheus. */
static tvm_answer metrics(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    int64_t in_state[STORE_QUEUE_INTERRUPTED + 1] = {0}, tried = 0,
                                               records = store_count(cx, request->db, NULL);
    int n;
    const store_queued *const *all = store_queue_all(cx, request->db, &n);
    base_text t = {0};

    (void)id, (void)rest;
    if (!all || records < 0)
        return refusal(cx, 500);
    for (int i = 0; i < n; i++) {
        in_state[all[i]->state]++;
        tried += all[i]->tried;
    }
    base_add(cx, &t, "# TYPE tvmtune_jobs gauge\n");
    for (int i = 0; i < BASE_COUNT(in_state); i++)
        base_addf(cx, &t, "tvmtune_jobs{state=\"%s\"} %lld\n", store_queue_state_text((store_queue_state)i),
                  (long long)in_state[i]);
    base_addf(cx, &t,
              "# TYPE tvmtune_trials gauge\ntvmtune_trials %lld\n# TYPE tvmtune_records "
              "gauge\ntvmtune_records %lld\n",
              (long long)tried, (long long)records);
    return (tvm_answer){200, "text/plain; version=0.0.4; charset=utf-8", base_text_str(cx, &t), t.n};
}

/* The list of jobs as events, and the end: http.c answers this path with a stream. */
static tvm_answer events(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    int n;
    const store_queued *const *all = store_queue_all(cx, request->db, &n);
    base_text t = {0};

    (void)id, (void)rest;
    for (int i = 0; all && i < n; i++)
        if (tvm_may_see(request, all[i]))
            base_addf(cx, &t, "event: job\ndata: %s\n\n", tvm_job_json(cx, all[i]));
    return all ? (tvm_answer){.status = 200,
                              .type = "text/event-stream",
                              .data = base_text_str(cx, &t),
                              .size = t.n}
               : refusal(cx, 500);
}

/* '#' is the number of a job, '*' one more word. What an admin alone may ask; what the log says of a request
 * that changes something. */
static const struct {
    const char *method, *path;
    handler *run;
    bool admin;
    const char *action;
} routes[] = {
    {"POST", "/v1/jobs", submit, false, "submit"},
    {"GET", "/v1/jobs", list, false, NULL},
    {"GET", "/v1/jobs/#", show, false, NULL},
    {"DELETE", "/v1/jobs/#", drop, false, "rm"},
    {"POST", "/v1/jobs/#/pause", pause_job, false, "pause"},
    {"POST", "/v1/jobs/#/resume", resume, false, "resume"},
    {"POST", "/v1/jobs/#/cancel", cancel, false, "cancel"},
    {"GET", "/v1/jobs/#/files/*", file, false, NULL},
    {"GET", "/v1/metrics", metrics, false, NULL},
    {"GET", "/v1/events", events, false, NULL},
    {"GET", "/v1/records", tvm_show_records, false, NULL},
    {"GET", "/v1/devices", tvm_show_devices, false, NULL},
    {"GET", "/v1/users", tvm_list_users, true, NULL},
    {"POST", "/v1/users/*", tvm_add_user, true, "user add"},
    {"DELETE", "/v1/users/*", tvm_remove_user, true, "user remove"},
    {"GET", "/v1/audit", tvm_show_audit, true, NULL},
};

/* A number without sign or leading zero; behind it, or NULL. */
static const char *match_number(const char *path, int64_t *id)
{
    int64_t n = 0;
    int digits = 0;

    for (; path[digits] >= '0' && path[digits] <= '9' && digits < 15; digits++)
        n = n * 10 + (path[digits] - '0');
    *id = n;
    return digits && path[0] != '0' ? path + digits : NULL;
}

/* Whether the path has the form of the pattern; its number and word are given back. */
static bool match(const char *pattern, const char *path, int64_t *id, const char **rest)
{
    for (; *pattern; pattern++) {
        if (*pattern == '*') {
            *rest = path;
            return *path && !strchr(path, '/');
        }
        if (*pattern != '#' && *pattern != *path)
            return false;
        path = *pattern == '#' ? match_number(path, id) : path + 1;
        if (!path)
            return false;
    }
    return !*path;
}

/* The job that a submission made. */
static int64_t job_of(const tvm_answer *answer)
{
    cJSON *o = cJSON_ParseWithLength(answer->data, answer->size);
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(o, "id");
    int64_t job = cJSON_IsNumber(id) ? (int64_t)id->valuedouble : 0;

    cJSON_Delete(o);
    return job;
}

/* Refuses what the asker may not do; writes down what was changed, and what was refused. */
static tvm_answer run_route(tec_context *cx, const tvm_request *request, int index, int64_t id,
                            const char *rest)
{
    tvm_answer a = {.status = 0};

    if (routes[index].admin && !request->admin)
        a = tvm_error(cx, 403, "only an admin may do this");
    else if (id)
        a = tvm_user_refusal(cx, request, id);
    if (a.status == 0)
        a = routes[index].run(cx, request, id, rest);
    if (!routes[index].action || (a.status >= 300 && a.status != 403))
        return a;
    tec_context *own = base_child(cx);
    const char *action =
        a.status == 403 ? base_format(own, "refused: %s", routes[index].action) : routes[index].action;
    bool told =
        store_audit_add(own, request->db,
                        &(store_audit){.user = request->user,
                                       .action = action,
                                       .job = strcmp(routes[index].action, "submit") == 0 ? job_of(&a) : id,
                                       .detail = rest});
    if (!told)
        a = tvm_error(cx, 500, tec_context_error(own));
    tec_context_free(own);
    return a;
}

/* 405 where the path exists with other methods, 404 where nothing is there. */
tvm_answer tvm_route(tec_context *cx, const tvm_request *request)
{
    bool found = false;

    for (int i = 0; i < BASE_COUNT(routes); i++) {
        int64_t id = 0;
        const char *rest = "";

        if (!match(routes[i].path, request->path, &id, &rest))
            continue;
        if (strcmp(routes[i].method, request->method) == 0)
            return run_route(cx, request, i, id, rest);
        found = true;
    }
    return found ? tvm_error(cx, 405, "this path does not allow the method of the request")
                 : tvm_error(cx, 404, "this path does not exist");
}

/* The table's path with {id} for '#' and {file} for '*'. */
bool tvm_route_row(tec_context *cx, int index, const char **method, const char **path)
{
    base_text t = {0};

    if (index >= BASE_COUNT(routes))
        return false;
    for (const char *p = routes[index].path; *p; p++)
        if (*p == '#' || *p == '*')
            base_add(cx, &t, *p == '#' ? "{id}" : "{file}");
        else
            base_addn(cx, &t, p, 1);
    *method = routes[index].method;
    *path = base_text_str(cx, &t);
    return true;
}
