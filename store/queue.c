/* store/queue.c -- see queue.h. */
#include "store/queue.h"

#include <string.h>
#include <time.h>

#include "store/sql.h"

static const char *const words[] = {
#define X(name, text) text,
    STORE_QUEUE_LIST(X)
#undef X
};

const char *store_queue_state_text(store_queue_state state)
{
    return (unsigned)state < BASE_COUNT(words) ? words[state] : "unknown state";
}

/* ---- what may be stored ---- */

static bool check_text(tec_context *cx, const char *what, const char *text, size_t limit)
{
    size_t size = text ? strlen(text) : 0;

    if (size > limit)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s has %zu bytes, over the limit of %zu", what,
                         size, limit);
    return !text || store_is_utf8(text) ||
           base_fail(cx, TEC_INVALID, (base_loc){0}, "%s is not UTF-8 text", what);
}

/* Limits of 0 mean "as the daemon says". */
static bool check_new(tec_context *cx, const store_queued *queued)
{
    if (!queued->name || !*queued->name)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "the name of the job is missing");
    if (queued->trials < 0 || queued->seconds < 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "job '%s': the limits of trials and seconds may not be negative", queued->name);
    return check_text(cx, "the name of the job", queued->name, STORE_MAX_NAME) &&
           check_text(cx, "the options of the job", queued->options, STORE_MAX_TEXT);
}

static void *no_job(tec_context *cx, int64_t id)
{
    return base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no job %lld", (long long)id);
}

/* ---- files ---- */

/* Adds the file to the job, or replaces the file of this name. */
static bool write_file(tec_context *cx, store *db, int64_t id, const store_queue_file *file)
{
    if (file->size > STORE_MAX_BLOB)
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "the file '%s' of job %lld has %zu bytes, over the limit of %d", file->name,
                         (long long)id, file->size, STORE_MAX_BLOB);
    store_stmt st =
        store_statement(cx, db,
                        "INSERT INTO queue_files (job, name, data) VALUES (?, ?, ?) ON CONFLICT (job, name) "
                        "DO UPDATE SET data = excluded.data");
    store_bind_int(&st, id);
    store_bind_text(&st, file->name);
    store_bind_blob(&st, file->data ? file->data : "", file->size);
    return store_done(&st);
}

/* The bytes of a job's file, copied. An empty file is not NULL. */
const void *store_queue_read(tec_context *cx, store *db, int64_t id, const char *name, size_t *size)
{
    const void *data = NULL;

    *size = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = store_statement(cx, db, "SELECT data FROM queue_files WHERE job = ? AND name = ?");
    store_bind_int(&st, id);
    store_bind_text(&st, name);
    int got = store_step(&st);
    if (got == 1) {
        const void *bytes = store_blob(&st, 0, size);

        data = *size ? base_copy(cx, bytes, *size) : "";
    }
    store_finish(&st);
    if (got == 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "job %lld has no file '%s'", (long long)id, name);
    return data;
}

/* ---- reading jobs ---- */

#define COLUMNS                                                                                              \
    "id, name, options, trials, seconds, priority, state, cause, tried, created, updated, user, wish, owner"

static const char *const wishes[] = {"", "pause", "cancel"};

/* One row of the queue; a state that no version knows makes it damaged. */
static const store_queued *decode(store_stmt *st)
{
    store_queued *j = base_new(st->cx, store_queued);
    int state = store_find_word(words, BASE_COUNT(words), store_text(st, 6));

    *j = (store_queued){.id = store_int(st, 0),
                        .name = base_strdup(st->cx, store_text(st, 1)),
                        .options = base_strdup(st->cx, store_text(st, 2)),
                        .trials = store_int(st, 3),
                        .seconds = store_int(st, 4),
                        .priority = store_int(st, 5),
                        .cause = base_strdup(st->cx, store_text(st, 7)),
                        .tried = store_int(st, 8),
                        .created = store_int(st, 9),
                        .updated = store_int(st, 10),
                        .user = base_strdup(st->cx, store_text(st, 11)),
                        .owner = base_strdup(st->cx, store_text(st, 13))};
    int wish = store_find_word(wishes, BASE_COUNT(wishes), store_text(st, 12));
    j->wish = wish < 0 ? STORE_QUEUE_NO_WISH : (store_queue_wish)wish;
    if (state < 0)
        return base_fail(st->cx, TEC_IO, (base_loc){.file = st->s->path},
                         "the record store is damaged: job %lld has the unknown state '%s'", (long long)j->id,
                         store_text(st, 6));
    j->state = (store_queue_state)state;
    return j;
}

/* `lock`: what the engine adds so that nobody else changes the job before the end of this transaction. */
static const store_queued *read_job(tec_context *cx, store *db, int64_t id, const char *lock)
{
    store_stmt st =
        store_statement(cx, db, base_format(cx, "SELECT " COLUMNS " FROM queue WHERE id = ?%s", lock));

    store_bind_int(&st, id);
    int got = store_step(&st);
    const store_queued *j = got == 1 ? decode(&st) : NULL;
    store_finish(&st);
    return got == 0 ? no_job(cx, id) : j;
}

const store_queued *store_queue_get(tec_context *cx, store *db, int64_t id)
{
    return store_usable(cx, db) ? read_job(cx, db, id, "") : NULL;
}

/* Inside a transaction that is going to change the job. */
static const store_queued *lock_job(tec_context *cx, store *db, int64_t id)
{
    return read_job(cx, db, id, db->engine->lock_rows);
}

/* All jobs in the order in which they were submitted; NULL after an error. */
const store_queued *const *store_queue_all(tec_context *cx, store *db, int *count)
{
    base_vec jobs = {0};
    int got;

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = store_statement(cx, db, "SELECT " COLUMNS " FROM queue ORDER BY id");
    while ((got = store_step(&st)) == 1) {
        const store_queued *j = decode(&st);

        if (!j) {
            got = -1;
            break;
        }
        base_push(cx, &jobs, j);
    }
    store_finish(&st);
    if (got < 0)
        return NULL;
    *count = jobs.n;
    base_push(cx, &jobs, NULL);
    return (const store_queued *const *)jobs.at;
}

/* ---- changing jobs: inside a transaction ---- */

/* Kernels that the job was tuning are free for others. */
static bool release(tec_context *cx, store *db, int64_t id)
{
    store_stmt st = store_statement(cx, db, "UPDATE queue_tasks SET claimed = 0 WHERE claimed = ?");

    store_bind_int(&st, id);
    return store_done(&st);
}

/* A wish of the state before is followed or void. A job that will go on keeps its claims, so that it goes on
 * with the same kernels; as long as it does not run, others may take them over. */
static bool set_state(tec_context *cx, store *db, int64_t id, store_queue_state to, const char *cause)
{
    store_stmt st =
        store_statement(cx, db, "UPDATE queue SET state = ?, cause = ?, updated = ?, wish = '' WHERE id = ?");

    store_bind_text(&st, words[to]);
    store_bind_text(&st, cause);
    store_bind_int(&st, (int64_t)time(NULL));
    store_bind_int(&st, id);
    return store_done(&st) && ((to != STORE_QUEUE_DONE && to != STORE_QUEUE_FAILED) || release(cx, db, id));
}

/* The only way in which a job changes its state: it must be in `from`, or somebody else was faster. */
static bool move(tec_context *cx, store *db, int64_t id, store_queue_state from, store_queue_state to,
                 const char *cause)
{
    const store_queued *j = lock_job(cx, db, id);

    if (j && j->state != from)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "job %lld is %s, but must be %s to become %s",
                         (long long)id, words[j->state], words[from], words[to]);
    return j && set_state(cx, db, id, to, cause);
}

bool store_queue_move(tec_context *cx, store *db, int64_t id, store_queue_state from, store_queue_state to,
                      const char *cause)
{
    return store_begin(cx, db) && store_end_write(cx, db, move(cx, db, id, from, to, cause));
}

/* A daemon that lost the job to another one leaves it alone. */
static bool is_run_by(tec_context *cx, const store_queued *queued, const char *owner)
{
    return queued->state != STORE_QUEUE_RUNNING || strcmp(queued->owner, owner ? owner : "") == 0 ||
           base_fail(cx, TEC_INVALID, (base_loc){0}, "another daemon, '%s', runs job %lld now", queued->owner,
                     (long long)queued->id);
}

/* Only the daemon that holds the lease may end a job: another one may have taken it over meanwhile. */
static bool end(tec_context *cx, store *db, const store_queue_end_of *of)
{
    const store_queued *j = lock_job(cx, db, of->id);
    bool ok =
        j && is_run_by(cx, j, of->owner) && move(cx, db, of->id, STORE_QUEUE_RUNNING, of->to, of->cause);

    for (int i = 0; i < of->n; i++)
        ok = ok && write_file(cx, db, of->id, &of->files[i]);
    return ok;
}

bool store_queue_end(tec_context *cx, store *db, const store_queue_end_of *of)
{
    return store_begin(cx, db) && store_end_write(cx, db, end(cx, db, of));
}

/* A new job in the state 'queued'; *id: its number. */
static bool insert(tec_context *cx, store *db, const store_queued *queued, int64_t *id)
{
    store_stmt st = store_statement(
        cx, db,
        "INSERT INTO queue (name, options, trials, seconds, priority, state, cause, tried, created, "
        "updated, user) VALUES (?, ?, ?, ?, ?, 'queued', '', 0, ?, ?, ?) RETURNING id");
    int64_t now = (int64_t)time(NULL);

    store_bind_text(&st, queued->name);
    store_bind_text(&st, queued->options);
    store_bind_int(&st, queued->trials);
    store_bind_int(&st, queued->seconds);
    store_bind_int(&st, queued->priority);
    store_bind_int(&st, now);
    store_bind_int(&st, now);
    store_bind_text(&st, queued->user);
    bool ok = store_step(&st) == 1;
    *id = ok ? store_int(&st, 0) : 0;
    store_finish(&st);
    return ok;
}

int64_t store_queue_add(tec_context *cx, store *db, const store_queued *queued, const void *input,
                        size_t size)
{
    const store_queue_file file = {"input", input, size};
    int64_t id = 0;

    if (!check_new(cx, queued) || !store_begin(cx, db))
        return 0;
    bool ok = insert(cx, db, queued, &id) && write_file(cx, db, id, &file);
    return store_end_write(cx, db, ok) ? id : 0;
}

/* ---- running: leases ---- */

/* Jobs that nobody runs any more: a pause or cancel that was asked for is followed now, and claims of jobs
 * that do not go on end. Owner NULL: those whose lease is over. */
static bool interrupt(tec_context *cx, store *db, const char *owner)
{
    const char *which =
        owner ? "(?1 = '' OR owner = ?1 OR owner = '')" : base_format(cx, "lease < %s", db->engine->now);
    store_stmt st = store_statement(
        cx, db,
        base_format(
            cx,
            "UPDATE queue SET state = CASE wish WHEN 'pause' THEN 'paused' WHEN 'cancel' THEN 'failed' "
            "ELSE 'interrupted' END, cause = CASE wish WHEN 'pause' THEN 'on request' WHEN 'cancel' "
            "THEN 'cancelled' ELSE '' END, wish = '', owner = '' WHERE state = 'running' AND %s",
            which));

    if (owner)
        store_bind_text(&st, owner);
    return store_done(&st) &&
           store_run(
               cx, db,
               "UPDATE queue_tasks SET claimed = 0 WHERE claimed <> 0 AND claimed NOT IN (SELECT id FROM "
               "queue WHERE state NOT IN ('done', 'failed'))");
}

/* By the clock of the database, which all daemons share. */
static bool set_lease(tec_context *cx, store *db, int64_t id, const char *owner, int64_t seconds)
{
    store_stmt st = store_statement(
        cx, db, base_format(cx, "UPDATE queue SET owner = ?, lease = %s + ? WHERE id = ?", db->engine->now));

    store_bind_text(&st, owner);
    store_bind_int(&st, seconds);
    store_bind_int(&st, id);
    return store_done(&st);
}

/* Rows that another daemon is taking at the moment are passed over. */
static bool take(tec_context *cx, store *db, const char *owner, int64_t seconds, int64_t *id)
{
    if (!interrupt(cx, db, NULL))
        return false;
    store_stmt st =
        store_statement(cx, db,
                        base_format(cx,
                                    "SELECT id FROM queue WHERE state IN ('queued', 'interrupted') "
                                    "ORDER BY state = 'interrupted' DESC, priority DESC, id LIMIT 1%s",
                                    db->engine->lock_free));
    int got = store_step(&st);

    *id = got == 1 ? store_int(&st, 0) : 0;
    store_finish(&st);
    return got == 0 || (got == 1 && set_state(cx, db, *id, STORE_QUEUE_RUNNING, NULL) &&
                        set_lease(cx, db, *id, owner, seconds));
}

/* Nothing is written where nothing waits. */
bool store_queue_take(tec_context *cx, store *db, const char *owner, int64_t seconds, int64_t *id)
{
    int64_t any;

    *id = 0;
    if (!store_usable(cx, db) ||
        !store_number(cx, db,
                      base_format(cx,
                                  "SELECT COUNT(*) FROM queue WHERE state IN ('queued', 'interrupted') OR "
                                  "(state = 'running' AND lease < %s)",
                                  db->engine->now),
                      &any))
        return false;
    return !any || (store_begin(cx, db) && store_end_write(cx, db, take(cx, db, owner, seconds, id)));
}

/* One row changes where the job is still this daemon's, none otherwise. */
bool store_queue_renew(tec_context *cx, store *db, int64_t id, const char *owner, int64_t seconds, bool *held)
{
    *held = false;
    if (!store_begin(cx, db))
        return false;
    store_stmt st = store_statement(
        cx, db,
        base_format(cx, "UPDATE queue SET lease = %s + ? WHERE id = ? AND owner = ? AND state = 'running'",
                    db->engine->now));
    store_bind_int(&st, seconds);
    store_bind_int(&st, id);
    store_bind_text(&st, owner);
    bool ok = store_step(&st) == 0;
    *held = ok && store_changed(&st) > 0;
    store_finish(&st);
    return store_end_write(cx, db, ok);
}

/* A job that waits follows at once. */
static bool ask(tec_context *cx, store *db, int64_t id, store_queue_wish wish, bool *done)
{
    const store_queued *j = lock_job(cx, db, id);
    bool pause = wish == STORE_QUEUE_PAUSE;

    if (!j)
        return false;
    if (j->state == STORE_QUEUE_DONE || j->state == STORE_QUEUE_FAILED)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "job %lld is over: %s", (long long)id,
                         words[j->state]);
    *done = j->state != STORE_QUEUE_RUNNING;
    if (*done)
        return set_state(cx, db, id, pause ? STORE_QUEUE_PAUSED : STORE_QUEUE_FAILED,
                         pause ? "on request" : "cancelled");
    if (j->wish == STORE_QUEUE_CANCEL)
        return true;
    store_stmt st = store_statement(cx, db, "UPDATE queue SET wish = ? WHERE id = ?");
    store_bind_text(&st, wishes[wish]);
    store_bind_int(&st, id);
    return store_done(&st);
}

bool store_queue_ask(tec_context *cx, store *db, int64_t id, store_queue_wish wish, bool *done)
{
    *done = false;
    return store_begin(cx, db) && store_end_write(cx, db, ask(cx, db, id, wish, done));
}

bool store_queue_progress(tec_context *cx, store *db, int64_t id, int64_t tried)
{
    if (!store_begin(cx, db))
        return false;
    store_stmt st =
        store_statement(cx, db, "UPDATE queue SET tried = ?, updated = ? WHERE id = ? AND state = 'running'");
    store_bind_int(&st, tried);
    store_bind_int(&st, (int64_t)time(NULL));
    store_bind_int(&st, id);
    return store_end_write(cx, db, store_done(&st));
}

/* Nothing is written where no lease is over. */
bool store_queue_recover(tec_context *cx, store *db, const char *owner)
{
    int64_t any = 1;

    if (!store_usable(cx, db) ||
        (!owner &&
         !store_number(cx, db,
                       base_format(cx, "SELECT COUNT(*) FROM queue WHERE state = 'running' AND lease < %s",
                                   db->engine->now),
                       &any)))
        return false;
    return !any || (store_begin(cx, db) && store_end_write(cx, db, interrupt(cx, db, owner)));
}

/* A table of files has no cascade of its own to rely on: links are checked only where a connection asks for
 * it. */
static bool remove_rows(tec_context *cx, store *db, int64_t id)
{
    static const char *const sql[] = {
        "UPDATE queue_tasks SET claimed = 0 WHERE claimed = ?", "DELETE FROM queue_files WHERE job = ?",
        "DELETE FROM queue_parts WHERE job = ?", "DELETE FROM queue WHERE id = ?"};
    const store_queued *j = lock_job(cx, db, id);

    if (j && j->state == STORE_QUEUE_RUNNING)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "job %lld is running: cancel it first",
                         (long long)id);
    for (int i = 0; j && i < BASE_COUNT(sql); i++) {
        store_stmt st = store_statement(cx, db, sql[i]);

        store_bind_int(&st, id);
        if (!store_done(&st))
            return false;
    }
    return j != NULL;
}

bool store_queue_remove(tec_context *cx, store *db, int64_t id)
{
    return store_begin(cx, db) && store_end_write(cx, db, remove_rows(cx, db, id));
}

bool store_queue_stamp(tec_context *cx, store *db, int64_t *stamp)
{
    return store_usable(cx, db) && db->engine->stamp(cx, db, stamp);
}

/* Nothing is written where nobody waits. */
bool store_queue_revive(tec_context *cx, store *db, const char *cause)
{
    static const char where[] = " FROM queue WHERE state = 'paused' AND substr(cause, 1, length(?1)) = ?1";

    if (!store_usable(cx, db))
        return false;
    store_stmt st = store_statement(cx, db, base_format(cx, "SELECT COUNT(*)%s", where));
    store_bind_text(&st, cause);
    int got = store_step(&st);
    bool any = got == 1 && store_int(&st, 0) > 0;
    store_finish(&st);
    if (!any)
        return got == 1;
    if (!store_begin(cx, db))
        return false;
    st = store_statement(
        cx, db,
        base_format(cx, "UPDATE queue SET state = 'queued', cause = '' WHERE id IN (SELECT id%s)", where));
    store_bind_text(&st, cause);
    return store_end_write(cx, db, store_done(&st));
}
