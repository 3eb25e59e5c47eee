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

/* Load and temperature are known of this machine alone. */
static void add_device(cJSON *list, const store_device_use *use, const char *own)
{
    cJSON *o = cJSON_CreateObject();
    double load;

    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "name", use->name);
    cJSON_AddStringToObject(o, "text", use->text);
    cJSON_AddNumberToObject(o, "trials", (double)use->trials);
    cJSON_AddNumberToObject(o, "failed", (double)use->failed);
    cJSON_AddNumberToObject(o, "last", (double)use->last);
    cJSON_AddBoolToObject(o, "here", strcmp(use->name, own) == 0);
    if (strcmp(use->name, own) != 0)
        return;
    cJSON_AddNumberToObject(o, "cores", (double)sysconf(_SC_NPROCESSORS_ONLN));
    if (getloadavg(&load, 1) == 1)
        cJSON_AddNumberToObject(o, "load", load);
    if (temperature() > 0)
        cJSON_AddNumberToObject(o, "celsius", temperature());
}

tvm_answer tvm_show_devices(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    struct utsname machine;
    int n;
    const store_device_use *all = store_device_uses(cx, request->db, &n);
    cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "devices");

    (void)id, (void)rest;
    uname(&machine);
    for (int i = 0; all && i < n; i++)
        add_device(list, &all[i], machine.nodename);
    return answer_json(cx, all, o);
}
