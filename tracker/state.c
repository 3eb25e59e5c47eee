/* tracker/state.c -- see state.h.
 *
 * What is stored is what must survive: leases, the numbers given, devices that were set aside, fingerprints
 * of classes. Who waits and which servers there are is learnt anew from the connections.
 *
 * Changes of one turn are one transaction, opened by the first of them and committed by track_state_commit.
 * Errors of single statements are kept in `failed` until then: no caller has to look at each, and nothing is
 * committed by half.
 */
#include "tracker/state.h"

#include <sqlite3.h>
#include <stdio.h>

#include "runtime/alloc.h"

enum { APPLICATION = 0x74656354, VERSION = 1 }; /* "tecT", in the file's header */

typedef enum { ADD_LEASE, END_LEASE, SET_CLASS, SET_ASIDE, END_ASIDE, SET_NEXT, N_STATEMENTS } statement;

static const char *const texts[N_STATEMENTS] = {
    [ADD_LEASE] = "INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [END_LEASE] = "DELETE FROM leases WHERE number = ?",
    [SET_CLASS] = "INSERT INTO classes VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET fingerprint = ?2",
    [SET_ASIDE] =
        "INSERT INTO asides VALUES (?1, ?2, ?3) ON CONFLICT (device) DO UPDATE SET class = ?2, reason = ?3",
    [END_ASIDE] = "DELETE FROM asides WHERE device = ?",
    [SET_NEXT] = "UPDATE numbers SET next_lease = ?",
};

static const char schema[] =
    "CREATE TABLE numbers (next_lease INTEGER NOT NULL);"
    "INSERT INTO numbers VALUES (1);"
    "CREATE TABLE classes (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE asides (device TEXT PRIMARY KEY, class TEXT NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE leases (number INTEGER PRIMARY KEY, device TEXT NOT NULL UNIQUE, class TEXT NOT NULL,"
    " user TEXT NOT NULL, job TEXT NOT NULL, owner TEXT NOT NULL, priority INTEGER NOT NULL,"
    " term_ms INTEGER NOT NULL);";

/* The log is taken into the file long before it is as large as a small disk. */
static const char settings[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                               "PRAGMA wal_autocheckpoint = 64; PRAGMA journal_size_limit = 262144";

struct track_state {
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statements[N_STATEMENTS];
    int64_t next_lease;
    bool is_open; /* a transaction */
    tec_error failed;
};

/* ---- errors and single statements ---- */

/* Always false. */
static bool fail(const track_state *state, tec_error *err, int rc)
{
    return rt_fail(err, TEC_IO, "%s: %s", state->path,
                   (rc & 0xff) == SQLITE_BUSY     ? "another tracker uses this state"
                   : (rc & 0xff) == SQLITE_NOTADB ? "the file is not the state of a tracker"
                                                  : sqlite3_errmsg(state->db));
}

static bool run(track_state *state, const char *sql, tec_error *err)
{
    int rc = sqlite3_exec(state->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK || fail(state, err, rc);
}

/* For one value of one row, as pragmas give. */
static bool number(track_state *state, const char *sql, int64_t *out, tec_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(state->db, sql, -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    *out = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    bool good = rc == SQLITE_ROW || fail(state, err, rc);
    sqlite3_finalize(st);
    return good;
}

/* ---- opening ---- */

/* A file of this program in this version, or a new one; another file is refused and stays as it is. The
 * exclusive lock is taken by the transaction and kept after it (locking_mode). The marks are written in the
 * same transaction as the tables: a file that was cut short by a crash has neither. */
static bool settle_schema(track_state *state, tec_error *err)
{
    int64_t application, version, tables;

    if (!run(state, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 500; BEGIN EXCLUSIVE", err) ||
        !number(state, "PRAGMA application_id", &application, err) ||
        !number(state, "PRAGMA user_version", &version, err) ||
        !number(state, "SELECT count(*) FROM sqlite_schema", &tables, err))
        return false;
    if (tables == 0) {
        char marks[120];

        snprintf(marks, sizeof marks, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
                 APPLICATION, VERSION);
        return run(state, schema, err) && run(state, marks, err);
    }
    if (application != APPLICATION)
        return rt_fail(err, TEC_INVALID, "%s: the file is not the state of a tracker", state->path);
    if (version != VERSION)
        return rt_fail(err, TEC_UNSUPPORTED,
                       "%s: the state has version %lld, but this tracker reads version %d", state->path,
                       (long long)version, VERSION);
    return run(state, "COMMIT", err);
}

/* The statements live as long as the state. */
static bool prepare(track_state *state, tec_error *err)
{
    for (int i = 0; i < N_STATEMENTS; i++) {
        int rc = sqlite3_prepare_v3(state->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &state->statements[i],
                                    NULL);

        if (rc != SQLITE_OK)
            return fail(state, err, rc);
    }
    return true;
}

/* Opens, checks and locks the file: two trackers would give one device twice. WAL with synchronous = NORMAL:
 * a crash of the program loses nothing; one of the machine may lose the last turns, whose leases then end by
 * their terms. */
track_state *track_state_open(const char *path, tec_error *err)
{
    track_state *state = rt_alloc(sizeof *state, err);

    if (!state)
        return NULL;
    state->path = rt_strdup(path, err);
    if (!state->path) {
        rt_free(state);
        return NULL;
    }
    int rc = sqlite3_open(path, &state->db);
    if (rc != SQLITE_OK)
        fail(state, err, rc);
    else if (settle_schema(state, err) && run(state, settings, err) && prepare(state, err) &&
             number(state, "SELECT next_lease FROM numbers", &state->next_lease, err))
        return state;
    track_state_close(state);
    return NULL;
}

void track_state_close(track_state *state)
{
    if (!state)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        sqlite3_finalize(state->statements[i]);
    sqlite3_close(state->db);
    rt_free(state->path);
    rt_free(state);
}

int64_t track_state_next_lease(const track_state *state)
{
    return state->next_lease;
}

/* ---- loading ---- */

/* NULL counts as empty; valid until the next step of the statement. */
static const char *text(sqlite3_stmt *st, int column)
{
    const char *t = (const char *)sqlite3_column_text(st, column);

    return t ? t : "";
}

typedef bool restore_fn(sqlite3_stmt *st, track_pool *pool, int64_t now, tec_error *err);

static bool restore_class(sqlite3_stmt *st, track_pool *pool, int64_t now, tec_error *err)
{
    (void)now;
    return track_restore_class(pool, text(st, 0), text(st, 1), err);
}

static bool restore_aside(sqlite3_stmt *st, track_pool *pool, int64_t now, tec_error *err)
{
    return track_restore_aside(pool, now, text(st, 0), text(st, 1), text(st, 2), err);
}

static bool restore_lease(sqlite3_stmt *st, track_pool *pool, int64_t now, tec_error *err)
{
    track_memory m = {.number = sqlite3_column_int64(st, 0),
                      .device = text(st, 1),
                      .class = text(st, 2),
                      .user = text(st, 3),
                      .job = text(st, 4),
                      .owner = text(st, 5),
                      .priority = sqlite3_column_int(st, 6),
                      .term_ms = sqlite3_column_int64(st, 7)};

    return track_restore(pool, now, &m, err);
}

/* Row by row, in the order of the statement. */
static bool load(track_state *state, const char *sql, restore_fn *restore, track_pool *pool, int64_t now,
                 tec_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(state->db, sql, -1, &st, NULL);
    bool good = rc == SQLITE_OK || fail(state, err, rc);

    while (good && (rc = sqlite3_step(st)) == SQLITE_ROW)
        good = restore(st, pool, now, err);
    if (good && rc != SQLITE_DONE)
        good = fail(state, err, rc);
    sqlite3_finalize(st);
    return good;
}

/* Classes first, as the others name them; leases by number, so that they are granted in their old order. */
bool track_state_load(track_state *state, track_pool *pool, int64_t now, tec_error *err)
{
    return load(state, "SELECT name, fingerprint FROM classes", restore_class, pool, now, err) &&
           load(state, "SELECT device, class, reason FROM asides", restore_aside, pool, now, err) &&
           load(state,
                "SELECT number, device, class, user, job, owner, priority, term_ms FROM leases ORDER BY "
                "number",
                restore_lease, pool, now, err);
}

/* ---- changes ---- */

/* Only the first error of a turn is kept and told. */
static void keep_outcome(track_state *state, int rc)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE)
        fail(state, &state->failed, rc);
}

/* Opens the transaction, if need be. */
static sqlite3_stmt *begin(track_state *state, statement which)
{
    if (!state->is_open) {
        keep_outcome(state, sqlite3_exec(state->db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
        state->is_open = true;
    }
    return state->statements[which];
}

/* Reset at once, because a statement that is not reset keeps its transaction open. */
static void finish(track_state *state, sqlite3_stmt *st)
{
    keep_outcome(state, sqlite3_step(st));
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
}

/* SQLITE_STATIC: the texts live until the step, which follows within the caller. */
static void bind_texts(track_state *state, sqlite3_stmt *st, int first, const char *const *values, int n)
{
    for (int i = 0; i < n; i++)
        keep_outcome(state, sqlite3_bind_text(st, first + i, values[i], -1, SQLITE_STATIC));
}

/* The weight is stored as the priority that it came from; both are whole numbers. */
void track_state_add_lease(track_state *state, const track_lease *lease)
{
    sqlite3_stmt *st = begin(state, ADD_LEASE);
    const char *values[] = {lease->device->entry.name, lease->device->class->entry.name,
                            track_user_name(lease->job), lease->job->entry.name, lease->owner};

    keep_outcome(state, sqlite3_bind_int64(st, 1, lease->number));
    bind_texts(state, st, 2, values, BASE_COUNT(values));
    keep_outcome(state, sqlite3_bind_int(st, 7, (int)lease->job->weight));
    keep_outcome(state, sqlite3_bind_int64(st, 8, lease->term_ms));
    finish(state, st);
    if (lease->number >= state->next_lease)
        state->next_lease = lease->number + 1;
}

void track_state_end_lease(track_state *state, int64_t number)
{
    sqlite3_stmt *st = begin(state, END_LEASE);

    keep_outcome(state, sqlite3_bind_int64(st, 1, number));
    finish(state, st);
}

void track_state_set_class(track_state *state, const track_class *kind)
{
    sqlite3_stmt *st = begin(state, SET_CLASS);
    const char *values[] = {kind->entry.name, kind->fingerprint ? kind->fingerprint : ""};

    bind_texts(state, st, 1, values, BASE_COUNT(values));
    finish(state, st);
}

/* `aside` NULL takes the device off the list. */
void track_state_set_aside(track_state *state, const track_device *device)
{
    sqlite3_stmt *st = begin(state, device->aside ? SET_ASIDE : END_ASIDE);
    const char *values[] = {device->entry.name, device->class->entry.name, device->aside};

    bind_texts(state, st, 1, values, device->aside ? 3 : 1);
    finish(state, st);
}

/* Stores what has gathered, with the number of the next lease; where nothing has, does nothing. After an
 * error the caller has to rewrite the state as a whole, since this turn's changes are gone. */
bool track_state_commit(track_state *state, tec_error *err)
{
    if (!state->is_open)
        return true;
    sqlite3_stmt *st = begin(state, SET_NEXT);
    keep_outcome(state, sqlite3_bind_int64(st, 1, state->next_lease));
    finish(state, st);
    state->is_open = false;
    if (state->failed.status == TEC_OK)
        keep_outcome(state, sqlite3_exec(state->db, "COMMIT", NULL, NULL, NULL));
    if (state->failed.status == TEC_OK)
        return true;
    if (!sqlite3_get_autocommit(state->db))
        sqlite3_exec(state->db, "ROLLBACK", NULL, NULL, NULL);
    rt_fail(err, state->failed.status, "%s", state->failed.text);
    state->failed = (tec_error){0};
    return false;
}

/* The tables are emptied and filled in one transaction: a kill in between leaves the old ones. The log goes
 * first, because it may be what has filled the disk. */
bool track_state_rewrite(track_state *state, const track_pool *pool, tec_error *err)
{
    if (!sqlite3_get_autocommit(state->db))
        sqlite3_exec(state->db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_exec(state->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    state->is_open = false;
    state->failed = (tec_error){0};
    begin(state, SET_NEXT);
    keep_outcome(state, sqlite3_exec(state->db, "DELETE FROM leases; DELETE FROM asides", NULL, NULL, NULL));
    for (const track_entry *e = track_leases(pool)->first; e; e = e->later)
        track_state_add_lease(state, TRACK_OWNER(e, track_lease, entry));
    for (const track_entry *e = track_classes(pool)->first; e; e = e->later)
        track_state_set_class(state, TRACK_OWNER(e, track_class, entry));
    for (const track_entry *e = track_devices(pool)->first; e; e = e->later) {
        const track_device *device = TRACK_OWNER(e, track_device, entry);

        if (device->aside)
            track_state_set_aside(state, device);
    }
    return track_state_commit(state, err);
}
