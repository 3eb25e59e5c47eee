/* tvmtune/report.c -- see report.h. The JSON is made of the store; the page is made of the JSON. */
#include "tvmtune/report.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "tvmtune/field.h"
#include "tvmtune/routes.h"

static void free_json(void *j)
{
    cJSON_Delete(j);
}

/* ---- the data ---- */

/* The best time so far, as pairs of trial and milliseconds: one for each improvement, and one for the last
 * trial. */
static void add_curve(cJSON *kernel, const double *seconds, int count)
{
    cJSON *curve = cJSON_AddArrayToObject(kernel, "curve");
    double best = 0;
    int failed = 0;

    for (int i = 0; i < count; i++) {
        bool better = seconds[i] > 0 && (best == 0 || seconds[i] < best);

        best = better ? seconds[i] : best;
        failed += seconds[i] == 0;
        if (!better && (i < count - 1 || best == 0))
            continue;
        cJSON *point = cJSON_CreateArray();
        cJSON_AddItemToArray(point, cJSON_CreateNumber(i + 1));
        cJSON_AddItemToArray(point, cJSON_CreateNumber(best * 1e3));
        cJSON_AddItemToArray(curve, point);
    }
    cJSON_AddNumberToObject(kernel, "trials", count);
    cJSON_AddNumberToObject(kernel, "failed", failed);
}

/* What the job that tuned the kernel said at its end. */
static void add_outcome(cJSON *kernel, const store_part *part)
{
    static const char *const known[] = {"before_ms", "after_ms", "adopted", "failure", "kept"};
    cJSON *said = cJSON_Parse(part->report);

    for (int i = 0; i < BASE_COUNT(known); i++) {
        cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(said, known[i]);

        if (item)
            cJSON_AddItemToObject(kernel, known[i], item);
    }
    cJSON_Delete(said);
}

/* All that the store knows of one kernel. False with an error. */
static bool add_kernel(tec_context *cx, store *db, cJSON *kernels, const store_part *part)
{
    int n;
    double seconds;
    const double *curve = store_part_curve(cx, db, part, &n);
    const char *trace = curve ? store_part_best(cx, db, part, &seconds) : NULL;
    cJSON *k = cJSON_CreateObject();

    cJSON_AddItemToArray(kernels, k);
    cJSON_AddStringToObject(k, "key", part->key);
    cJSON_AddStringToObject(k, "task", part->name);
    cJSON_AddStringToObject(k, "summary", part->summary);
    cJSON_AddStringToObject(k, "state", part->tuned ? "tuned" : part->claimed ? "tuning" : "waiting");
    cJSON_AddNumberToObject(k, "uses", part->uses);
    if (!trace)
        return false;
    add_curve(k, curve, n);
    add_outcome(k, part);
    if (seconds > 0)
        cJSON_AddNumberToObject(k, "best_ms", seconds * 1e3);
    cJSON_AddStringToObject(k, "schedule", trace);
    return true;
}

/* The failed trials of one kernel, by status and kind. False with an error. */
static bool add_failures(tec_context *cx, store *db, cJSON *errors, const store_part *part)
{
    int n;
    const store_part_failure *failure = store_part_failures(cx, db, part, &n);

    for (int i = 0; failure && i < n; i++) {
        cJSON *e = cJSON_CreateObject();

        cJSON_AddItemToArray(errors, e);
        cJSON_AddStringToObject(e, "task", part->name);
        cJSON_AddStringToObject(e, "status", failure[i].status);
        cJSON_AddStringToObject(e, "kind", failure[i].kind);
        cJSON_AddNumberToObject(e, "count", (double)failure[i].count);
        cJSON_AddStringToObject(e, "example", failure[i].example);
    }
    return failure;
}

/* The end-to-end time: over the kernels that have both times. */
static void add_total(cJSON *object, const cJSON *kernels)
{
    double before = 0, after = 0, trials = 0;
    int unknown = 0;
    const cJSON *k;

    cJSON_ArrayForEach(k, kernels)
    {
        bool known = tvm_number_of(k, "before_ms") > 0 && tvm_number_of(k, "after_ms") > 0;

        before += known ? tvm_number_of(k, "uses") * tvm_number_of(k, "before_ms") : 0;
        after += known ? tvm_number_of(k, "uses") * tvm_number_of(k, "after_ms") : 0;
        unknown += !known;
        trials += tvm_number_of(k, "trials");
    }
    cJSON *total = cJSON_AddObjectToObject(object, "total");
    cJSON_AddNumberToObject(total, "trials", trials);
    cJSON_AddNumberToObject(total, "before_ms", before);
    cJSON_AddNumberToObject(total, "after_ms", after);
    cJSON_AddNumberToObject(total, "unknown", unknown);
}

/* False with an error in the context. */
static bool fill(tec_context *cx, store *db, const store_queued *queued, cJSON *object)
{
    int n;
    const store_part *const *parts = store_parts(cx, db, queued->id, NULL, &n);
    cJSON *kernels = cJSON_AddArrayToObject(object, "kernels"),
          *errors = cJSON_AddArrayToObject(object, "errors");

    cJSON_AddItemToObject(object, "job", tvm_job_object(queued));
    for (int i = 0; parts && i < n; i++)
        if (!add_kernel(cx, db, kernels, parts[i]) || !add_failures(cx, db, errors, parts[i]))
            return false;
    add_total(object, kernels);
    return parts;
}

/* Collects the data, then prints them in one of both forms. */
static const char *report(tec_context *cx, store *db, int64_t id, const char *whole,
                          const char *(*print)(tec_context *cx, const cJSON *object))
{
    const store_queued *j = store_queue_get(cx, db, id);
    store_queued *over = base_copy(cx, j ? j : &(store_queued){0}, sizeof *j);
    cJSON *o = cJSON_CreateObject();
    base_held held;

    if (whole) {
        over->state = STORE_QUEUE_DONE;
        cJSON_AddItemToObject(o, "end_to_end", cJSON_Parse(whole));
    }
    base_hold(cx, &held, free_json, o);
    const char *text = j && fill(cx, db, over, o) ? print(cx, o) : NULL;
    base_drop(&held);
    return text;
}

static const char *print_json(tec_context *cx, const cJSON *object)
{
    return tvm_json_text(cx, cJSON_Duplicate(object, true));
}

const char *tvm_report_json(tec_context *cx, store *db, int64_t job, const char *whole)
{
    return report(cx, db, job, whole, print_json);
}

/* ---- the page ---- */

/* Names and messages come from strangers: nothing of them may become markup. */
static void add_escaped(tec_context *cx, base_text *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': base_add(cx, out, "&lt;"); break;
        case '>': base_add(cx, out, "&gt;"); break;
        case '&': base_add(cx, out, "&amp;"); break;
        case '"': base_add(cx, out, "&quot;"); break;
        case '\'': base_add(cx, out, "&#39;"); break;
        default: base_addn(cx, out, text, 1);
        }
}

static void add_cell(tec_context *cx, base_text *out, const char *text)
{
    base_add(cx, out, "<td>");
    add_escaped(cx, out, text);
    base_add(cx, out, "</td>");
}

static void add_ms(tec_context *cx, base_text *text, double ms)
{
    base_addf(cx, text, ms > 0 ? "<td class=n>%.4g</td>" : "<td class=n>-</td>", ms);
}

/* The best time over the trials, from zero, in a box of 240 x 48. */
static void add_plot(tec_context *cx, base_text *text, const cJSON *kernel)
{
    enum { WIDTH = 240, HEIGHT = 48 };
    const cJSON *curve = cJSON_GetObjectItemCaseSensitive(kernel, "curve"), *p,
                *first = curve ? curve->child : NULL;
    double trials = tvm_number_of(kernel, "trials"),
           top = first ? cJSON_GetArrayItem(first, 1)->valuedouble : 0, y = 0;
    bool begun = false;

    base_addf(
        cx, text,
        "<td><svg viewBox=\"0 0 %d %d\" width=%d height=%d role=img aria-label=\"best time over trials\">",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    base_add(cx, text, "<polyline fill=none stroke=currentColor points=\"");
    cJSON_ArrayForEach(p, curve)
    {
        double x = WIDTH * p->child->valuedouble / (trials > 0 ? trials : 1);
        double now = HEIGHT - (HEIGHT - 4) * p->child->next->valuedouble / top;

        base_addf(cx, text, "%.1f,%.1f ", x, begun ? y : now);
        base_addf(cx, text, "%.1f,%.1f ", x, now);
        y = now;
        begun = true;
    }
    base_add(cx, text, "\"/></svg></td>");
}

/* One row of the table of kernels. */
static void add_row(tec_context *cx, base_text *text, const cJSON *kernel)
{
    double before = tvm_number_of(kernel, "before_ms"), after = tvm_number_of(kernel, "after_ms");

    base_add(cx, text, "<tr>");
    add_cell(cx, text, tvm_text_of(kernel, "task"));
    add_cell(cx, text, tvm_text_of(kernel, "summary"));
    base_addf(cx, text, "<td class=n>%.0f</td><td class=n>%.0f</td><td class=n>%.0f</td>",
              tvm_number_of(kernel, "uses"), tvm_number_of(kernel, "trials"),
              tvm_number_of(kernel, "failed"));
    add_ms(cx, text, before);
    add_ms(cx, text, after);
    base_addf(cx, text, "<td class=n>%.2f</td>", before > 0 && after > 0 ? before / after : 1.0);
    add_plot(cx, text, kernel);
    base_add(cx, text, "</tr>\n");
}

/* The table of failures, or a sentence where there are none. */
static void add_errors(tec_context *cx, base_text *text, const cJSON *errors)
{
    const cJSON *e;

    if (cJSON_GetArraySize(errors) == 0)
        base_add(cx, text, "<p>No trial failed.</p>\n");
    else
        base_add(cx, text, "<table><tr><th>kernel<th>status<th>kind<th>count<th>first line of one</tr>\n");
    cJSON_ArrayForEach(e, errors)
    {
        base_add(cx, text, "<tr>");
        add_cell(cx, text, tvm_text_of(e, "task"));
        add_cell(cx, text, tvm_text_of(e, "status"));
        add_cell(cx, text, tvm_text_of(e, "kind"));
        base_addf(cx, text, "<td class=n>%.0f</td>", tvm_number_of(e, "count"));
        add_cell(cx, text, tvm_text_of(e, "example"));
        base_add(cx, text, "</tr>\n");
    }
    if (cJSON_GetArraySize(errors))
        base_add(cx, text, "</table>\n");
}

/* What the two modules took, run in turns. */
static void add_end_to_end(tec_context *cx, base_text *text, const cJSON *whole)
{
    const char *why = tvm_text_of(whole, "not_compared");

    if (!whole)
        return;
    if (tvm_number_of(whole, "pairs") > 0)
        base_addf(cx, text,
                  "<p>The whole, run in turns: %.4g ms untuned, %.4g ms tuned (%.2f %%, noise %.2f %%).",
                  tvm_number_of(whole, "untuned_ms"), tvm_number_of(whole, "tuned_ms"),
                  100 * tvm_number_of(whole, "gain"), 100 * tvm_number_of(whole, "noise"));
    else {
        base_add(cx, text, "<p>The whole was not compared: ");
        add_escaped(cx, text, why);
        base_add(cx, text, ".");
    }
    base_addf(cx, text, " The module is the %s one.", tvm_text_of(whole, "module"));
    if (tvm_number_of(whole, "remeasured") > 0)
        base_addf(cx, text, " Of %.0f schedules of another version of tec, measured again, %.0f are kept.",
                  tvm_number_of(whole, "remeasured"), tvm_number_of(whole, "kept"));
    base_add(cx, text, "</p>\n");
}

static void add_schedules(tec_context *cx, base_text *text, const cJSON *kernels)
{
    const cJSON *k;

    cJSON_ArrayForEach(k, kernels)
    {
        base_add(cx, text, "<details><summary>");
        add_escaped(cx, text, tvm_text_of(k, "task"));
        base_add(cx, text, "</summary><pre>");
        add_escaped(cx, text, tvm_text_of(k, "schedule"));
        base_add(cx, text, "</pre></details>\n");
    }
}

/* The page: a head line, the kernels with their curves, the errors, the schedules. */
static const char *print_html(tec_context *cx, const cJSON *object)
{
    static const char style[] = "body{font:15px/1.4 system-ui,sans-serif;margin:2em;color-scheme:light dark}"
                                "table{border-collapse:collapse}td,th{padding:.2em "
                                ".7em;text-align:left;border-bottom:1px solid #8886}"
                                ".n{text-align:right}pre{overflow:auto}";
    const cJSON *job = cJSON_GetObjectItemCaseSensitive(object, "job"),
                *total = cJSON_GetObjectItemCaseSensitive(object, "total"),
                *kernels = cJSON_GetObjectItemCaseSensitive(object, "kernels"), *k;
    base_text t = {0};

    base_addf(cx, &t, "<!doctype html>\n<html lang=en><meta charset=utf-8><style>%s</style>\n<title>", style);
    add_escaped(cx, &t, tvm_text_of(job, "name"));
    base_add(cx, &t, "</title>\n<h1>");
    add_escaped(cx, &t, tvm_text_of(job, "name"));
    base_addf(cx, &t, "</h1>\n<p>Job %.0f, %s. End to end %.4g ms before, %.4g ms after; %.0f trials.</p>\n",
              tvm_number_of(job, "id"), tvm_text_of(job, "state"), tvm_number_of(total, "before_ms"),
              tvm_number_of(total, "after_ms"), tvm_number_of(total, "trials"));
    if (tvm_number_of(total, "unknown") > 0)
        base_addf(cx, &t, "<p>Without %.0f kernels that have no time.</p>\n",
                  tvm_number_of(total, "unknown"));
    add_end_to_end(cx, &t, cJSON_GetObjectItemCaseSensitive(object, "end_to_end"));
    base_add(cx, &t,
             "<h2>Kernels</h2>\n<table><tr><th>kernel<th>shapes<th>uses<th>trials<th>failed<th>before, "
             "ms<th>after, ms<th>gain<th>best over trials</tr>\n");
    cJSON_ArrayForEach(k, kernels) add_row(cx, &t, k);
    base_add(cx, &t, "</table>\n<h2>Errors</h2>\n");
    add_errors(cx, &t, cJSON_GetObjectItemCaseSensitive(object, "errors"));
    base_add(cx, &t, "<h2>Schedules</h2>\n");
    add_schedules(cx, &t, kernels);
    base_add(cx, &t, "</html>\n");
    return base_text_str(cx, &t);
}

const char *tvm_report_html(tec_context *cx, store *db, int64_t job, const char *whole)
{
    return report(cx, db, job, whole, print_html);
}
