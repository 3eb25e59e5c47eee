/* store/schema.c -- the tables, and how a file of an older version becomes one of this version.
 *
 * user_version counts the steps that a file has taken. A step is never changed once released: a new version
 * appends one. The tables are STRICT, so that a column holds what it says even in a file that others wrote.
 */
#include <unistd.h>

#include "store/sql.h"

static const char *const version_1[] = {
    "CREATE TABLE workloads (id INTEGER PRIMARY KEY, anchor_key TEXT NOT NULL, exact_key TEXT NOT NULL, "
    "family TEXT NOT NULL, "
    "definition TEXT NOT NULL, summary TEXT NOT NULL, shape BLOB NOT NULL, flops REAL NOT NULL, anchor_hash "
    "INTEGER NOT NULL, "
    "exact_hash INTEGER NOT NULL, UNIQUE (exact_key, anchor_key)) STRICT",
    "CREATE INDEX workloads_anchor ON workloads (anchor_key)",
    "CREATE INDEX workloads_family ON workloads (family)",
    "CREATE TABLE targets (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, text TEXT NOT NULL) "
    "STRICT",
    "CREATE TABLE devices (id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (name, "
    "text)) STRICT",
    "CREATE TABLE records (id INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE, "
    "workload INTEGER NOT NULL REFERENCES workloads (id), target INTEGER NOT NULL REFERENCES targets (id), "
    "device INTEGER NOT NULL REFERENCES devices (id), trace TEXT NOT NULL, costs BLOB NOT NULL, median REAL "
    "NOT NULL, "
    "spread REAL NOT NULL, status TEXT NOT NULL, stage TEXT NOT NULL, error_kind TEXT NOT NULL, error TEXT "
    "NOT NULL, "
    "features_version INTEGER NOT NULL, features BLOB, features_hash INTEGER NOT NULL, tuner TEXT NOT NULL, "
    "job TEXT NOT NULL, "
    "seed INTEGER NOT NULL, batch INTEGER NOT NULL, trial INTEGER NOT NULL, codegen TEXT NOT NULL, tec TEXT "
    "NOT NULL, "
    "time INTEGER NOT NULL) STRICT",
    "CREATE INDEX records_best ON records (workload, target, status, median)",
    "CREATE INDEX records_job ON records (job) WHERE job <> ''",
    "CREATE TABLE dropped (workload INTEGER NOT NULL REFERENCES workloads (id), target INTEGER NOT NULL "
    "REFERENCES targets (id), "
    "status TEXT NOT NULL, stage TEXT NOT NULL, error_kind TEXT NOT NULL, count INTEGER NOT NULL, example "
    "TEXT NOT NULL, "
    "PRIMARY KEY (workload, target, status, stage, error_kind)) STRICT",
    "CREATE TABLE jobs (name TEXT PRIMARY KEY NOT NULL, arguments TEXT NOT NULL, seed INTEGER NOT NULL, "
    "state TEXT NOT NULL, "
    "progress BLOB, created INTEGER NOT NULL, updated INTEGER NOT NULL) STRICT",
    "CREATE TABLE models (target TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, data BLOB NOT "
    "NULL, "
    "hash INTEGER NOT NULL, n_records INTEGER NOT NULL, time INTEGER NOT NULL, PRIMARY KEY (target, name, "
    "version)) STRICT",
    NULL,
};

static const char *const version_2[] = {
    "ALTER TABLE records ADD COLUMN point TEXT NOT NULL DEFAULT ''",
    NULL,
};

/* The queue of a daemon, and the files of its jobs. */
static const char *const version_3[] = {
    "CREATE TABLE queue (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, options TEXT NOT NULL, "
    "trials INTEGER NOT NULL, seconds INTEGER NOT NULL, priority INTEGER NOT NULL, state TEXT NOT NULL, "
    "cause TEXT NOT NULL, tried INTEGER NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL) STRICT",
    "CREATE INDEX queue_waiting ON queue (state, priority)",
    "CREATE TABLE queue_files (job INTEGER NOT NULL REFERENCES queue (id), name TEXT NOT NULL, data BLOB NOT "
    "NULL, "
    "PRIMARY KEY (job, name)) STRICT",
    NULL,
};

/* Who submitted a job and what was asked of it; which kernels jobs consist of, each tuned by one job; users,
 * and what they
 * did. */
static const char *const version_4[] = {
    "ALTER TABLE queue ADD COLUMN user TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE queue ADD COLUMN wish TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE queue_tasks (key TEXT NOT NULL, target TEXT NOT NULL, claimed INTEGER NOT NULL, trials "
    "REAL NOT NULL, "
    "seconds REAL NOT NULL, codegen TEXT NOT NULL, report TEXT NOT NULL, PRIMARY KEY (key, target)) STRICT",
    "CREATE TABLE queue_parts (job INTEGER NOT NULL REFERENCES queue (id), place INTEGER NOT NULL, key TEXT "
    "NOT NULL, "
    "target TEXT NOT NULL, name TEXT NOT NULL, summary TEXT NOT NULL, uses REAL NOT NULL, PRIMARY KEY (job, "
    "place)) STRICT",
    "CREATE TABLE users (name TEXT PRIMARY KEY NOT NULL, role TEXT NOT NULL, token TEXT NOT NULL UNIQUE, "
    "created INTEGER NOT "
    "NULL) STRICT",
    "CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, user TEXT NOT NULL, "
    "action TEXT NOT NULL, "
    "job INTEGER NOT NULL, detail TEXT NOT NULL) STRICT",
    NULL,
};

/* What the device said when it measured. */
static const char *const version_5[] = {
    "ALTER TABLE records ADD COLUMN driver TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE records ADD COLUMN clock_mhz INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE records ADD COLUMN temperature REAL NOT NULL DEFAULT 0",
    NULL,
};

/* The same steps backwards. */
static const char *const back_from_5[] = {
    "ALTER TABLE records DROP COLUMN temperature",
    "ALTER TABLE records DROP COLUMN clock_mhz",
    "ALTER TABLE records DROP COLUMN driver",
    NULL,
};

/* Which daemon runs a job, and until when that holds (seconds since 1970); what devices did, without
 * reading all records. */
static const char *const version_6[] = {
    "ALTER TABLE queue ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE queue ADD COLUMN lease INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX records_device ON records (device, status, time)",
    NULL,
};

static const char *const back_from_6[] = {
    "DROP INDEX records_device",
    "ALTER TABLE queue DROP COLUMN lease",
    "ALTER TABLE queue DROP COLUMN owner",
    NULL,
};

static const char *const *const steps[] = {version_1, version_2, version_3, version_4, version_5, version_6};
static const char *const *const back[] = {back_from_5, back_from_6};

_Static_assert(BASE_COUNT(steps) == STORE_VERSION, "one step for each version");
_Static_assert(BASE_COUNT(back) == STORE_VERSION - STORE_OLDEST, "a way back from each version since");

typedef struct {
    int64_t version, application, tables;
} header;

static bool read_header(tec_context *cx, store *db, header *self)
{
    return store_number(cx, db, "PRAGMA user_version", &self->version) &&
           store_number(cx, db, "PRAGMA application_id", &self->application) &&
           store_number(cx, db, "SELECT COUNT(*) FROM sqlite_schema", &self->tables);
}

static bool is_fresh(const header *self)
{
    return self->version == 0 && self->application == 0 && self->tables == 0;
}

/* Whether this is ours at all; a file of another program must not even change its journal mode. */
static bool accept(tec_context *cx, store *db, const header *self)
{
    base_loc at = {.file = db->path};

    if (is_fresh(self))
        return true;
    if (self->application != STORE_APPLICATION)
        return base_fail(cx, TEC_INVALID, at,
                         "not a record store: a SQLite file of another program (application number 0x%llx, "
                         "expected 0x%x)",
                         (long long)self->application, (unsigned)STORE_APPLICATION);
    if (self->version > STORE_VERSION)
        return base_fail(cx, TEC_UNSUPPORTED, at,
                         "the record store has version %lld of the schema, but tec %s knows versions up "
                         "to %d: use a newer tec",
                         (long long)self->version, tec_version(), STORE_VERSION);
    if (self->version < 1)
        return base_fail(cx, TEC_INVALID, at, "not a record store: its schema has the version %lld",
                         (long long)self->version);
    return true;
}

static bool run_step(tec_context *cx, store *db, const char *const *statements)
{
    for (int i = 0; statements[i]; i++)
        if (!store_run(cx, db, statements[i]))
            return false;
    return true;
}

bool store_take_steps(tec_context *cx, store *db, int64_t version)
{
    for (int64_t v = version; v < STORE_VERSION; v++)
        if (!run_step(cx, db, steps[v]))
            return false;
    return true;
}

static bool make_current(tec_context *cx, store *db, int64_t version)
{
    return store_take_steps(cx, db, version) && db->engine->mark_version(cx, db, STORE_VERSION);
}

/* In one transaction: the file has the one version or the other, whatever happens. */
bool store_step_back(tec_context *cx, store *db, int version)
{
    bool ok = true;

    if (version < STORE_OLDEST || version > STORE_VERSION)
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "cannot downgrade the schema to version %d; expected %d to %d", version,
                         STORE_OLDEST, STORE_VERSION);
    if (!store_begin(cx, db))
        return false;
    for (int v = STORE_VERSION; ok && v > version; v--)
        ok = run_step(cx, db, back[v - STORE_OLDEST - 1]);
    return store_end_write(cx, db, ok && db->engine->mark_version(cx, db, version));
}

/* Another process may have done it while this one waited, so the header is read again under the lock. */
static bool migrate(tec_context *cx, store *db)
{
    header h;

    if (!store_begin(cx, db))
        return false;
    bool ok = read_header(cx, db, &h) && accept(cx, db, &h) &&
              (h.version == STORE_VERSION || make_current(cx, db, h.version));
    return store_end_write(cx, db, ok);
}

/* Two processes that make one file meet here: SQLite gives up at once where waiting could be for ever, so we
 * ask again. */
static bool use_log(tec_context *cx, store *db)
{
    for (int waited = 0;; waited += 10) {
        store_stmt st = store_statement(cx, db, "PRAGMA journal_mode = WAL");
        int rc = st.rc == SQLITE_OK ? sqlite3_step(st.handle) : st.rc;
        bool on = rc == SQLITE_ROW && sqlite3_stricmp(store_text(&st, 0), "wal") == 0;

        store_finish(&st);
        if (on)
            return true;
        if (rc == SQLITE_ROW)
            return base_fail(cx, TEC_UNSUPPORTED, (base_loc){.file = db->path},
                             "this file system cannot hold a write-ahead log, which "
                             "needs memory shared between processes: put the record store on a local disk");
        if ((rc & 0xff) != SQLITE_BUSY || waited >= db->busy_ms)
            return store_fail(cx, db, rc);
        sqlite3_sleep(10);
        base_check(cx);
    }
}

/* In one transaction: another process that makes the file meanwhile would be seen by one of the questions
 * alone, and the file would look like one of another program. */
static bool read_whole_header(tec_context *cx, store *db, header *self)
{
    return store_run(cx, db, "BEGIN") && read_header(cx, db, self) && store_run(cx, db, "COMMIT");
}

/* Brings a file of an older version up to this one, and refuses files of newer versions and files that are
 * none. */
bool store_settle_file(tec_context *cx, store *db)
{
    header h;

    if (!read_whole_header(cx, db, &h) || !accept(cx, db, &h))
        return false;
    if (!db->read_only)
        return use_log(cx, db) && (h.version == STORE_VERSION || migrate(cx, db));
    if (is_fresh(&h))
        return base_fail(cx, TEC_INVALID, (base_loc){.file = db->path},
                         "not a record store: the file is empty");
    if (h.version < STORE_VERSION)
        return base_fail(cx, TEC_INVALID, (base_loc){.file = db->path},
                         "the record store has version %lld of the schema and must be "
                         "opened for writing once to become version %d; but %s",
                         (long long)h.version, STORE_VERSION, db->read_only);
    return true;
}

static void close_database(void *db)
{
    sqlite3_close(db);
}

/* The first column of a query about an empty store in memory: a file that took all steps is what SQLite
 * made of them, so SQLite is asked. NULL with an error. */
static const base_vec *ask_reference(tec_context *cx, const char *sql)
{
    store reference = {.engine = &store_sqlite, .path = ":memory:", .pid = getpid()};
    base_vec *texts = base_new(cx, base_vec);
    int rc = sqlite3_open(":memory:", &reference.db), got = -1;
    base_held held;

    base_hold(cx, &held, close_database, reference.db);
    if (rc != SQLITE_OK)
        store_fail(cx, &reference, rc);
    else if (store_take_steps(cx, &reference, 0)) {
        store_stmt st = store_statement(cx, &reference, sql);

        while ((got = store_step(&st)) == 1)
            base_push(cx, texts, base_strdup(cx, store_text(&st, 0)));
        store_finish(&st);
    }
    base_drop(&held);
    return got == 0 ? texts : NULL;
}

const base_vec *store_schema_texts(tec_context *cx)
{
    return ask_reference(cx, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid");
}

const base_vec *store_schema_columns(tec_context *cx)
{
    return ask_reference(
        cx, "SELECT m.name || '.' || c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c "
            "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.rowid, c.cid");
}
