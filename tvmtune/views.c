/* tvmtune/views.c -- see views.h. */
#include "tvmtune/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "store/queue_tasks.h"

static tvm_answer answer_json(tec_context *cx, bool ok, cJSON *object)
{
    const char *text = tvm_json_text(cx, object);

    return ok ? (tvm_answer){.status = 200, .type = "application/json", .data = text, .size = strlen(text)}
              : tvm_error(cx, 500, tec_context_error(cx));
}

/* ---- records ---- */

static const char *search_words(const tvm_request *request)
{
    for (int i = 0; i < request->n_pairs; i++)
        if (strcmp(request->keys[i], "search") == 0 && request->values[i])
            return request->values[i];
    return "";
}

/* All words, in any order, in what the record says of its kernel and target. */
static bool matches(tec_context *cx, const store_summary *summary, const char *words)
{
    char *copy = base_strdup(cx, words), *rest = copy;

    for (const char *word; (word = strtok_r(rest, " ", &rest));)
        if (!strcasestr(summary->workload.summary, word) && !strcasestr(summary->workload.definition, word) &&
            !strcasestr(summary->target.text, word))
            return false;
    return true;
}

static void add_record(cJSON *list, const store_summary *summary)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "summary", summary->workload.summary);
    cJSON_AddStringToObject(o, "definition", summary->workload.definition);
    cJSON_AddStringToObject(o, "target", summary->target.text);
    cJSON_AddNumberToObject(o, "ok", (double)summary->n_ok);
    cJSON_AddNumberToObject(o, "failed", (double)summary->n_failed);
    if (summary->best > 0)
        cJSON_AddNumberToObject(o, "best_ms", summary->best * 1e3);
}

tvm_answer tvm_show_records(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    const char *words = search_words(request);
    int n, found = 0;
    const store_summary *all = store_summaries(cx, request->db, NULL, &n);
    cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "records");

    (void)id, (void)rest;
    for (int i = 0; all && i < n; i++)
        if (matches(cx, &all[i], words) && found++ < TVM_MOST_RECORDS)
            add_record(list, &all[i]);
    cJSON_AddNumberToObject(o, "found", found);
    return answer_json(cx, all, o);
}

/* ---- devices ---- */

/* The hottest sensor; 0: there is none. */
static double temperature(void)
{
    enum { ZONES = 64 };
    double hottest = 0;

    for (int i = 0; i < ZONES; i++) {
        char path[64], text[32] = "";

        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/temp", i);
        FILE *f = fopen(path, "re");
        if (!f)
            break;
        if (fgets(text, sizeof text, f) && strtod(text, NULL) / 1000 > hottest)
            hottest = strtod(text, NULL) / 1000;
        fclose(f);
    }
    return hottest;
}

/* Cores, load and temperature of the daemon's own machine. */
static void add_here(cJSON *object)
{
    double load;

    cJSON_AddNumberToObject(object, "cores", (double)sysconf(_SC_NPROCESSORS_ONLN));
    if (getloadavg(&load, 1) == 1)
        cJSON_AddNumberToObject(object, "load", load);
    if (temperature() > 0)
        cJSON_AddNumberToObject(object, "celsius", temperature());
}

/* What the records say of a device. */
static cJSON *add_device(cJSON *list, const store_device_use *use, const char *own)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "name", use->name);
    cJSON_AddStringToObject(o, "text", use->text);
    cJSON_AddNumberToObject(o, "trials", (double)use->trials);
    cJSON_AddNumberToObject(o, "failed", (double)use->failed);
    cJSON_AddNumberToObject(o, "last", (double)use->last);
    cJSON_AddBoolToObject(o, "here", strcmp(use->name, own) == 0);
    if (strcmp(use->name, own) == 0)
        add_here(o);
    else if (use->celsius != 0)
        cJSON_AddNumberToObject(o, "celsius", use->celsius);
    return o;
}

static void copy_text(cJSON *to, const cJSON *from, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(from, key));

    cJSON_AddStringToObject(to, key, text ? text : "");
}

/* What the tracker says of one of its devices, beside what the records say; a device that has measured
 * nothing yet is added. Of a board whose description changed there may be several entries: each gets the
 * state. */
static void add_state(cJSON *list, const cJSON *device)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(device, "name"));
    const store_device_use unused = {.name = name, .text = ""};
    bool known = false;
    cJSON *o;

    if (!name)
        return;
    cJSON_ArrayForEach(o, list) known |=
        strcmp(cJSON_GetObjectItemCaseSensitive(o, "name")->valuestring, name) == 0;
    if (!known)
        add_device(list, &unused, "");
    cJSON_ArrayForEach(o, list)
    {
        if (strcmp(cJSON_GetObjectItemCaseSensitive(o, "name")->valuestring, name) != 0)
            continue;
        copy_text(o, device, "state");
        copy_text(o, device, "reason");
        copy_text(o, device, "class");
        copy_text(o, device, "job");
    }
}

/* The state of the pool, as far as its tracker has answered: devices, and what troubles it. */
static void add_pool(cJSON *answer, cJSON *list, const char *state)
{
    cJSON *pool = cJSON_Parse(state);
    const cJSON *device;

    cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(pool, "devices")) add_state(list, device);
    if (pool)
        copy_text(answer, pool, "trouble");
    cJSON_Delete(pool);
}

/* GET /v1/devices: the devices of the records, then what the tracker says of them and of others. */
tvm_answer tvm_show_devices(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    struct utsname machine;
    int n;
    const store_device_use *all = store_device_uses(cx, request->db, &n);
    const char *state = tvm_devices_state(cx, request->devices);
    cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "devices");

    (void)id, (void)rest;
    uname(&machine);
    for (int i = 0; all && i < n; i++)
        add_device(list, &all[i], machine.nodename);
    cJSON_AddStringToObject(o, "tracker", request->tracker ? request->tracker : "");
    add_pool(o, list, state);
    return answer_json(cx, all, o);
}
