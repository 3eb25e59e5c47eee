/* store/compact.c -- keeps the best of each workload on each target, and of the rest how often what happened.
 *
 * The choice is one transaction; giving back the space is another step, and the store is whole if it fails.
 */
#include "store/sql.h"

/* Of a pair of which none is ok the last failure stays, so that it is known that it was tried. */
static const char choose[] = "CREATE TEMP TABLE keep (id INTEGER PRIMARY KEY); "
                             "INSERT INTO keep SELECT id FROM (SELECT id, status, ROW_NUMBER() OVER "
                             "(PARTITION BY workload, target ORDER BY status <> 'ok', "
                             "CASE WHEN status = 'ok' THEN median END, CASE WHEN status = 'ok' THEN id ELSE "
                             "-id END) AS place FROM records) ranked "
                             "WHERE place = 1 OR (status = 'ok' AND place <= %d) "
                             "UNION SELECT records.id FROM records JOIN jobs ON jobs.name = records.job "
                             "WHERE jobs.state IN ('%s', '%s')";

static const char drop[] =
    "INSERT INTO dropped (workload, target, status, stage, error_kind, count, example) "
    "SELECT workload, target, status, stage, error_kind, COUNT(*), MAX(error) FROM records WHERE id NOT IN "
    "(SELECT id FROM keep) "
    "GROUP BY workload, target, status, stage, error_kind ON CONFLICT (workload, target, status, stage, "
    "error_kind) DO UPDATE SET count = dropped.count + excluded.count; "
    "DELETE FROM records WHERE id NOT IN (SELECT id FROM keep); "
    "DROP TABLE keep";

static bool drop_records(tec_context *cx, store *db, int keep, store_compacted *out)
{
    int64_t before;

    if (!store_number(cx, db, "SELECT COUNT(*) FROM records", &before) ||
        !store_run(cx, db,
                   base_format(cx, choose, keep, store_job_state_text(STORE_JOB_RUNNING),
                               store_job_state_text(STORE_JOB_PAUSED))) ||
        !store_run(cx, db, drop) || !store_number(cx, db, "SELECT COUNT(*) FROM records", &out->kept))
        return false;
    out->dropped = before - out->kept;
    return true;
}

/* Keeps `keep` records of each workload and target, and counts of the failures. */
bool store_compact(tec_context *cx, store *db, int keep, store_compacted *out)
{
    *out = (store_compacted){0};
    if (keep < 1)
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "expected to keep at least 1 record of each workload, not %d", keep);
    if (!store_begin(cx, db) || !store_end_write(cx, db, true))
        return false;
    out->bytes_before = db->engine->bytes(cx, db);
    if (out->bytes_before < 0 || !store_begin(cx, db) ||
        !store_end_write(cx, db, drop_records(cx, db, keep, out)) || !db->engine->shrink(cx, db))
        return false;
    out->bytes_after = db->engine->bytes(cx, db);
    return out->bytes_after >= 0;
}
