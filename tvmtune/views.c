/* tvmtune/views.c -- see views.h. */
#include "tvmtune/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "store/queue_tasks.h"

static tvm_answer answer_json(tec_context *cx, bool ok, cJSON *o)
{
    const char *text = tvm_json_text(cx, o);

    return ok ? (tvm_answer){.status = 200, .type = "application/json", .data = text, .size = strlen(text)}
              : tvm_error(cx, 500, tec_context_error(cx));
}

/* ---- records ---- */

static const char *search_words(const tvm_request *r)
{
    for (int i = 0; i < r->n_pairs; i++)
        if (strcmp(r->keys[i], "search") == 0 && r->values[i])
            return r->values[i];
    return "";
}

/* All words, in any order, in what the record says of its kernel and target. */
static bool matches(tec_context *cx, const store_summary *s, const char *words)
{
    char *copy = base_strdup(cx, words), *rest = copy;

    for (const char *word; (word = strtok_r(rest, " ", &rest));)
        if (!strcasestr(s->workload.summary, word) && !strcasestr(s->workload.definition, word) &&
            !strcasestr(s->target.text, word))
            return false;
    return true;
}

static void add_record(cJSON *list, const store_summary *s)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "summary", s->workload.summary);
    cJSON_AddStringToObject(o, "definition", s->workload.definition);
    cJSON_AddStringToObject(o, "target", s->target.text);
    cJSON_AddNumberToObject(o, "ok", (double)s->n_ok);
    cJSON_AddNumberToObject(o, "failed", (double)s->n_failed);
    if (s->best > 0)
        cJSON_AddNumberToObject(o, "best_ms", s->best * 1e3);
}

tvm_answer tvm_show_records(tec_context *cx, const tvm_request *r, int64_t id, const char *rest)
{
    const char *words = search_words(r);
    int n, found = 0;
    const store_summary *all = store_summaries(cx, r->db, NULL, &n);
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
static void add_device(cJSON *list, const store_device_use *d, const char *own)
{
    cJSON *o = cJSON_CreateObject();
    double load;

    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "name", d->name);
    cJSON_AddStringToObject(o, "text", d->text);
    cJSON_AddNumberToObject(o, "trials", (double)d->trials);
    cJSON_AddNumberToObject(o, "failed", (double)d->failed);
    cJSON_AddNumberToObject(o, "last", (double)d->last);
    cJSON_AddBoolToObject(o, "here", strcmp(d->name, own) == 0);
    if (strcmp(d->name, own) != 0)
        return;
    cJSON_AddNumberToObject(o, "cores", (double)sysconf(_SC_NPROCESSORS_ONLN));
    if (getloadavg(&load, 1) == 1)
        cJSON_AddNumberToObject(o, "load", load);
    if (temperature() > 0)
        cJSON_AddNumberToObject(o, "celsius", temperature());
}

tvm_answer tvm_show_devices(tec_context *cx, const tvm_request *r, int64_t id, const char *rest)
{
    struct utsname machine;
    int n;
    const store_device_use *all = store_device_uses(cx, r->db, &n);
    cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "devices");

    (void)id, (void)rest;
    uname(&machine);
    for (int i = 0; all && i < n; i++)
        add_device(list, &all[i], machine.nodename);
    return answer_json(cx, all, o);
}
