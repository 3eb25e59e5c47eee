/* store/queue_tasks.c -- see queue_tasks.h. */
#include "store/queue_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "store/sql.h"

/* ---- what a job consists of ---- */

/* One row of the job, and a row for its kernel where no job before had the kernel. */
static bool insert_part(tec_context *cx, store *db, int64_t job, int place, const store_part *part)
{
    store_stmt st = store_statement(cx, db,
                                    "INSERT INTO queue_parts (job, place, key, target, name, summary, uses) "
                                    "VALUES (?, ?, ?, ?, ?, ?, ?)");

    store_bind_int(&st, job);
    store_bind_int(&st, place);
    store_bind_text(&st, part->key);
    store_bind_text(&st, part->target);
    store_bind_text(&st, part->name);
    store_bind_text(&st, part->summary);
    store_bind_real(&st, part->uses);
    if (!store_done(&st))
        return false;
    st = store_statement(cx, db,
                         "INSERT INTO queue_tasks (key, target, claimed, trials, seconds, codegen, report) "
                         "VALUES (?, ?, 0, 0, 0, '', '') ON CONFLICT DO NOTHING");
    store_bind_text(&st, part->key);
    store_bind_text(&st, part->target);
    return store_done(&st);
}

/* Written anew as a whole: the list of a job's kernels is made by one listing. */
static bool set_parts(tec_context *cx, store *db, int64_t job, const store_part *parts, int count)
{
    if (!store_run(cx, db, db->engine->one_writer))
        return false;
    store_stmt st = store_statement(cx, db, "DELETE FROM queue_parts WHERE job = ?");
    store_bind_int(&st, job);
    bool ok = store_done(&st);
    for (int i = 0; ok && i < count; i++)
        ok = insert_part(cx, db, job, i, &parts[i]);
    return ok;
}

bool store_parts_set(tec_context *cx, store *db, int64_t job, const store_part *parts, int n)
{
    for (int i = 0; i < n; i++)
        if (!store_is_utf8(parts[i].name) || !store_is_utf8(parts[i].summary) ||
            strlen(parts[i].name) > STORE_MAX_TEXT || strlen(parts[i].summary) > STORE_MAX_TEXT)
            return base_fail(cx, TEC_INVALID, (base_loc){0},
                             "kernel %d of job %lld has no name that can be stored", i + 1, (long long)job);
    return store_begin(cx, db) && store_end_write(cx, db, set_parts(cx, db, job, parts, n));
}

/* ---- who tunes what ---- */

/* Three parameters: the code generator, trials and seconds. A row that only has trials says nothing of
 * seconds. */
#define IS_TUNED "(t.codegen = ?1 AND 2 * t.trials >= ?2 AND (?2 > 0 OR 2 * t.seconds >= ?3))"

static void bind_budget(store_stmt *st, const store_budget *budget)
{
    store_bind_text(st, budget ? budget->codegen : "");
    store_bind_real(st, budget ? budget->trials : 0);
    store_bind_real(st, budget ? budget->seconds : 0);
}

/* Inside a transaction: see store_parts_claim. A claim of a job that does not run is taken over. */
static bool claim(tec_context *cx, store *db, int64_t job, const store_budget *budget)
{
    if (!store_run(cx, db, db->engine->one_writer))
        return false;
    store_stmt st = store_statement(cx, db, "SELECT COUNT(*) FROM queue_tasks WHERE claimed = ?");
    store_bind_int(&st, job);
    int got = store_step(&st);
    bool holds = got == 1 && store_int(&st, 0) > 0;
    store_finish(&st);
    if (got != 1 || holds)
        return got == 1;
    st = store_statement(cx, db,
                         "UPDATE queue_tasks AS t SET claimed = ?4 WHERE NOT " IS_TUNED
                         " AND (key, target) IN (SELECT key, target FROM queue_parts WHERE job = ?4)"
                         " AND claimed NOT IN (SELECT id FROM queue WHERE state = 'running')");
    bind_budget(&st, budget);
    store_bind_int(&st, job);
    return store_done(&st);
}

bool store_parts_claim(tec_context *cx, store *db, int64_t job, const store_budget *budget)
{
    return store_begin(cx, db) && store_end_write(cx, db, claim(cx, db, job, budget));
}

/* A row of store_parts; with any budget: the task counts whatever its budget was. */
static const store_part *decode(store_stmt *st, int64_t job, bool any)
{
    store_part *part = base_new(st->cx, store_part);

    *part = (store_part){.key = base_strdup(st->cx, store_text(st, 0)),
                         .target = base_strdup(st->cx, store_text(st, 1)),
                         .name = base_strdup(st->cx, store_text(st, 2)),
                         .summary = base_strdup(st->cx, store_text(st, 3)),
                         .uses = store_real(st, 4),
                         .mine = store_int(st, 5) == job,
                         .claimed = store_int(st, 5),
                         .report = base_strdup(st->cx, store_text(st, 6)),
                         .tuned = any ? *store_text(st, 8) : store_int(st, 7),
                         .stale = store_int(st, 9)};
    return part;
}

/* Joins the rows of the job with what is known of each kernel. */
const store_part *const *store_parts(tec_context *cx, store *db, int64_t job, const store_budget *budget,
                                     int *count)
{
    base_vec parts = {0};
    int got;

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = store_statement(
        cx, db,
        "SELECT p.key, p.target, p.name, p.summary, p.uses, t.claimed, t.report, " IS_TUNED
        ", t.codegen, t.codegen NOT IN ('', ?1) FROM queue_parts p JOIN queue_tasks t ON t.key = "
        "p.key AND t.target = p.target WHERE p.job = ?4 ORDER BY p.place");
    bind_budget(&st, budget);
    store_bind_int(&st, job);
    while ((got = store_step(&st)) == 1)
        base_push(cx, &parts, (void *)(uintptr_t)decode(&st, job, !budget));
    store_finish(&st);
    if (got < 0)
        return NULL;
    *count = parts.n;
    base_push(cx, &parts, NULL);
    return (const store_part *const *)parts.at;
}

static bool set_report(tec_context *cx, store *db, int64_t job, const store_part_report *report)
{
    store_stmt st =
        store_statement(cx, db, "UPDATE queue_tasks SET report = ? WHERE key = ? AND claimed = ?");

    store_bind_text(&st, report->report);
    store_bind_text(&st, report->key);
    store_bind_int(&st, job);
    return store_done(&st);
}

/* Inside a transaction: the reports first, because they find their rows by the claim. */
static bool set_tuned(tec_context *cx, store *db, int64_t job, const store_budget *budget,
                      const store_part_report *reports, int count)
{
    bool ok = true;

    for (int i = 0; ok && i < count; i++)
        ok = set_report(cx, db, job, &reports[i]);
    if (!ok)
        return false;
    store_stmt st = store_statement(
        cx, db, "UPDATE queue_tasks SET claimed = 0, codegen = ?, trials = ?, seconds = ? WHERE claimed = ?");
    bind_budget(&st, budget);
    store_bind_int(&st, job);
    return store_done(&st);
}

bool store_parts_tuned(tec_context *cx, store *db, int64_t job, const store_budget *budget,
                       const store_part_report *reports, int n)
{
    return store_begin(cx, db) && store_end_write(cx, db, set_tuned(cx, db, job, budget, reports, n));
}

/* ---- what the records say of a kernel ---- */

/* The records of a kernel: parameters are its key as a number and the target. What was adopted is no trial.
 * */
#define RECORDS                                                                                              \
    " FROM records r JOIN workloads w ON w.id = r.workload JOIN targets t ON t.id = r.target WHERE "         \
    "w.exact_hash = ? AND "                                                                                  \
    "t.fingerprint = ?"

/* The key is 64 bits written in hexadecimal and stored as a signed number. */
static store_stmt of_part(tec_context *cx, store *db, const char *sql, const store_part *part)
{
    store_stmt st = store_statement(cx, db, sql);

    store_bind_int(&st, (int64_t)strtoull(part->key, NULL, 16));
    store_bind_text(&st, part->target);
    return st;
}

/* Reads at most 100,000 records of the kernel. */
const double *store_part_curve(tec_context *cx, store *db, const store_part *part, int *count)
{
    enum { MOST = 100000 };
    base_text costs = {0};
    int got;

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st =
        of_part(cx, db, "SELECT r.median, r.status" RECORDS " AND r.tuner <> 'adopted' ORDER BY r.id", part);
    while ((got = store_step(&st)) == 1 && *count < MOST) {
        double seconds = strcmp(store_text(&st, 1), "ok") == 0 ? store_real(&st, 0) : 0;

        base_addn(cx, &costs, (const char *)&seconds, sizeof seconds);
        ++*count;
    }
    store_finish(&st);
    return got < 0 ? NULL : base_copy(cx, *count ? costs.data : "", *count ? costs.n : 1);
}

/* Reads at most 100 kinds of failure. */
const store_part_failure *store_part_failures(tec_context *cx, store *db, const store_part *part, int *count)
{
    enum { MOST = 100 };
    store_part_failure *all = base_array(cx, store_part_failure, MOST);
    int got;

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = of_part(
        cx, db,
        "SELECT r.status, r.error_kind, MIN(r.error), COUNT(*)" RECORDS
        " AND r.status <> 'ok' GROUP BY r.status, r.error_kind ORDER BY COUNT(*) DESC, r.status LIMIT 100",
        part);
    while ((got = store_step(&st)) == 1 && *count < MOST)
        all[(*count)++] = (store_part_failure){.status = base_strdup(cx, store_text(&st, 0)),
                                               .kind = base_strdup(cx, store_text(&st, 1)),
                                               .example = base_strdup(cx, store_text(&st, 2)),
                                               .count = store_int(&st, 3)};
    store_finish(&st);
    return got < 0 ? NULL : all;
}

/* An adopted record goes before every other one, the last before earlier ones. */
const char *store_part_best(tec_context *cx, store *db, const store_part *part, double *seconds)
{
    const char *trace = "";

    *seconds = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = of_part(cx, db,
                            "SELECT r.trace, r.median" RECORDS
                            " AND r.status = 'ok' ORDER BY r.tuner = 'adopted' DESC, CASE "
                            "WHEN r.tuner = 'adopted' THEN -r.id ELSE r.median END LIMIT 1",
                            part);
    int got = store_step(&st);
    if (got == 1) {
        trace = base_strdup(cx, store_text(&st, 0));
        *seconds = store_real(&st, 1);
    }
    store_finish(&st);
    return got < 0 ? NULL : trace;
}

/* Reads at most 1000 devices. */
const store_device_use *store_device_uses(tec_context *cx, store *db, int *count)
{
    enum { MOST = 1000 };
    store_device_use *all = base_array(cx, store_device_use, MOST);
    int got;

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st =
        store_statement(cx, db,
                        "SELECT d.name, d.text, g.n, g.failed, g.last, r.temperature FROM (SELECT "
                        "device, COUNT(*) AS n, COUNT(CASE WHEN status <> 'ok' THEN 1 END) AS "
                        "failed, MAX(time) AS last, MAX(id) AS newest FROM records GROUP BY "
                        "device) g JOIN devices d ON d.id = g.device JOIN records r ON r.id = "
                        "g.newest ORDER BY d.name, d.id LIMIT 1000");
    while ((got = store_step(&st)) == 1 && *count < MOST)
        all[(*count)++] = (store_device_use){.name = base_strdup(cx, store_text(&st, 0)),
                                             .text = base_strdup(cx, store_text(&st, 1)),
                                             .trials = store_int(&st, 2),
                                             .failed = store_int(&st, 3),
                                             .last = store_int(&st, 4),
                                             .celsius = store_real(&st, 5)};
    store_finish(&st);
    return got < 0 ? NULL : all;
}
