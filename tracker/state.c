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
static bool fail(const track_state *s, tec_error *err, int rc)
{
    return rt_fail(err, TEC_IO, "%s: %s", s->path,
                   (rc & 0xff) == SQLITE_BUSY     ? "another tracker uses this state"
                   : (rc & 0xff) == SQLITE_NOTADB ? "this file is no state of a tracker"
                                                  : sqlite3_errmsg(s->db));
}

static bool run(track_state *s, const char *sql, tec_error *err)
{
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK || fail(s, err, rc);
}

/* For one value of one row, as pragmas give. */
static bool number(track_state *s, const char *sql, int64_t *out, tec_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    *out = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    bool good = rc == SQLITE_ROW || fail(s, err, rc);
    sqlite3_finalize(st);
    return good;
}

/* ---- opening ---- */

/* A file of this program in this version, or a new one; another file is refused and stays as it is. The
 * exclusive lock is taken by the transaction and kept after it (locking_mode). The marks are written in the
 * same transaction as the tables: a file that was cut short by a crash has neither. */
static bool settle_schema(track_state *s, tec_error *err)
{
    int64_t application, version, tables;

    if (!run(s, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 500; BEGIN EXCLUSIVE", err) ||
        !number(s, "PRAGMA application_id", &application, err) ||
        !number(s, "PRAGMA user_version", &version, err) ||
        !number(s, "SELECT count(*) FROM sqlite_schema", &tables, err))
        return false;
    if (tables == 0) {
        char marks[120];

        snprintf(marks, sizeof marks, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
                 APPLICATION, VERSION);
        return run(s, schema, err) && run(s, marks, err);
    }
    if (application != APPLICATION)
        return rt_fail(err, TEC_INVALID, "%s: this file is no state of a tracker", s->path);
    if (version != VERSION)
        return rt_fail(err, TEC_UNSUPPORTED, "%s: the state has version %lld, this tracker writes version %d",
                       s->path, (long long)version, VERSION);
    return run(s, "COMMIT", err);
}

/* The statements live as long as the state. */
static bool prepare(track_state *s, tec_error *err)
{
    for (int i = 0; i < N_STATEMENTS; i++) {
        int rc = sqlite3_prepare_v3(s->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[i], NULL);

        if (rc != SQLITE_OK)
            return fail(s, err, rc);
    }
    return true;
}

/* Opens, checks and locks the file: two trackers would give one device twice. WAL with synchronous = NORMAL:
 * a crash of the program loses nothing; one of the machine may lose the last turns, whose leases then end by
 * their terms. */
track_state *track_state_open(const char *path, tec_error *err)
{
    track_state *s = rt_alloc(sizeof *s, err);

    if (!s)
        return NULL;
    s->path = rt_strdup(path, err);
    if (!s->path) {
        rt_free(s);
        return NULL;
    }
    int rc = sqlite3_open(path, &s->db);
    if (rc != SQLITE_OK)
        fail(s, err, rc);
    else if (settle_schema(s, err) && run(s, settings, err) && prepare(s, err) &&
             number(s, "SELECT next_lease FROM numbers", &s->next_lease, err))
        return s;
    track_state_close(s);
    return NULL;
}

void track_state_close(track_state *s)
{
    if (!s)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        sqlite3_finalize(s->statements[i]);
    sqlite3_close(s->db);
    rt_free(s->path);
    rt_free(s);
}

int64_t track_state_next_lease(const track_state *s)
{
    return s->next_lease;
}

/* ---- loading ---- */

/* NULL counts as empty; valid until the next step of the statement. */
static const char *text(sqlite3_stmt *st, int column)
{
    const char *t = (const char *)sqlite3_column_text(st, column);

    return t ? t : "";
}

typedef bool restore_fn(sqlite3_stmt *st, track_pool *p, int64_t now, tec_error *err);

static bool restore_class(sqlite3_stmt *st, track_pool *p, int64_t now, tec_error *err)
{
    (void)now;
    return track_restore_class(p, text(st, 0), text(st, 1), err);
}

static bool restore_aside(sqlite3_stmt *st, track_pool *p, int64_t now, tec_error *err)
{
    return track_restore_aside(p, now, text(st, 0), text(st, 1), text(st, 2), err);
}

static bool restore_lease(sqlite3_stmt *st, track_pool *p, int64_t now, tec_error *err)
{
    track_memory m = {.number = sqlite3_column_int64(st, 0),
                      .device = text(st, 1),
                      .class = text(st, 2),
                      .user = text(st, 3),
                      .job = text(st, 4),
                      .owner = text(st, 5),
                      .priority = sqlite3_column_int(st, 6),
                      .term_ms = sqlite3_column_int64(st, 7)};

    return track_restore(p, now, &m, err);
}

/* Row by row, in the order of the statement. */
static bool load(track_state *s, const char *sql, restore_fn *restore, track_pool *p, int64_t now,
                 tec_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
    bool good = rc == SQLITE_OK || fail(s, err, rc);

    while (good && (rc = sqlite3_step(st)) == SQLITE_ROW)
        good = restore(st, p, now, err);
    if (good && rc != SQLITE_DONE)
        good = fail(s, err, rc);
    sqlite3_finalize(st);
    return good;
}

/* Classes first, as the others name them; leases by number, so that they are granted in their old order. */
bool track_state_load(track_state *s, track_pool *p, int64_t now, tec_error *err)
{
    return load(s, "SELECT name, fingerprint FROM classes", restore_class, p, now, err) &&
           load(s, "SELECT device, class, reason FROM asides", restore_aside, p, now, err) &&
           load(s,
                "SELECT number, device, class, user, job, owner, priority, term_ms FROM leases ORDER BY "
                "number",
                restore_lease, p, now, err);
}

/* ---- changes ---- */

/* Only the first error of a turn is kept and told. */
static void keep_outcome(track_state *s, int rc)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE)
        fail(s, &s->failed, rc);
}

/* Opens the transaction, if need be. */
static sqlite3_stmt *begin(track_state *s, statement which)
{
    if (!s->is_open) {
        keep_outcome(s, sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
        s->is_open = true;
    }
    return s->statements[which];
}

/* Reset at once, because a statement that is not reset keeps its transaction open. */
static void finish(track_state *s, sqlite3_stmt *st)
{
    keep_outcome(s, sqlite3_step(st));
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
}

/* SQLITE_STATIC: the texts live until the step, which follows within the caller. */
static void bind_texts(track_state *s, sqlite3_stmt *st, int first, const char *const *values, int n)
{
    for (int i = 0; i < n; i++)
        keep_outcome(s, sqlite3_bind_text(st, first + i, values[i], -1, SQLITE_STATIC));
}

/* The weight is stored as the priority that it came from; both are whole numbers. */
void track_state_add_lease(track_state *s, const track_lease *l)
{
    sqlite3_stmt *st = begin(s, ADD_LEASE);
    const char *values[] = {l->device->entry.name, l->device->class->entry.name, track_user_name(l->job),
                            l->job->entry.name, l->owner};

    keep_outcome(s, sqlite3_bind_int64(st, 1, l->number));
    bind_texts(s, st, 2, values, BASE_COUNT(values));
    keep_outcome(s, sqlite3_bind_int(st, 7, (int)l->job->weight));
    keep_outcome(s, sqlite3_bind_int64(st, 8, l->term_ms));
    finish(s, st);
    if (l->number >= s->next_lease)
        s->next_lease = l->number + 1;
}

void track_state_end_lease(track_state *s, int64_t number)
{
    sqlite3_stmt *st = begin(s, END_LEASE);

    keep_outcome(s, sqlite3_bind_int64(st, 1, number));
    finish(s, st);
}

void track_state_set_class(track_state *s, const track_class *c)
{
    sqlite3_stmt *st = begin(s, SET_CLASS);
    const char *values[] = {c->entry.name, c->fingerprint ? c->fingerprint : ""};

    bind_texts(s, st, 1, values, BASE_COUNT(values));
    finish(s, st);
}

/* `aside` NULL takes the device off the list. */
void track_state_set_aside(track_state *s, const track_device *d)
{
    sqlite3_stmt *st = begin(s, d->aside ? SET_ASIDE : END_ASIDE);
    const char *values[] = {d->entry.name, d->class->entry.name, d->aside};

    bind_texts(s, st, 1, values, d->aside ? 3 : 1);
    finish(s, st);
}

/* Stores what has gathered, with the number of the next lease; where nothing has, does nothing. After an
 * error the caller has to rewrite the state as a whole, since this turn's changes are gone. */
bool track_state_commit(track_state *s, tec_error *err)
{
    if (!s->is_open)
        return true;
    sqlite3_stmt *st = begin(s, SET_NEXT);
    keep_outcome(s, sqlite3_bind_int64(st, 1, s->next_lease));
    finish(s, st);
    s->is_open = false;
    if (s->failed.status == TEC_OK)
        keep_outcome(s, sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL));
    if (s->failed.status == TEC_OK)
        return true;
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    rt_fail(err, s->failed.status, "%s", s->failed.text);
    s->failed = (tec_error){0};
    return false;
}

/* The tables are emptied and filled in one transaction: a kill in between leaves the old ones. The log goes
 * first, because it may be what has filled the disk. */
bool track_state_rewrite(track_state *s, const track_pool *p, tec_error *err)
{
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    s->is_open = false;
    s->failed = (tec_error){0};
    begin(s, SET_NEXT);
    keep_outcome(s, sqlite3_exec(s->db, "DELETE FROM leases; DELETE FROM asides", NULL, NULL, NULL));
    for (const track_entry *e = track_leases(p)->first; e; e = e->later)
        track_state_add_lease(s, TRACK_OWNER(e, track_lease, entry));
    for (const track_entry *e = track_classes(p)->first; e; e = e->later)
        track_state_set_class(s, TRACK_OWNER(e, track_class, entry));
    for (const track_entry *e = track_devices(p)->first; e; e = e->later) {
        const track_device *d = TRACK_OWNER(e, track_device, entry);

        if (d->aside)
            track_state_set_aside(s, d);
    }
    return track_state_commit(s, err);
}
