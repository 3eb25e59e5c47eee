/* store/sqlite.c -- the engine of a store in one file: SQLite's statements behind engine.h. open.c says how
 * the file is opened. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/sql.h"

/* SQLite's status as an error in the user's words. Always NULL, for callers to return. */
void *store_fail(tec_context *cx, store *db, int rc)
{
    base_loc at = {.file = db->path};
    int error = sqlite3_system_errno(db->db);

    switch (rc & 0xff) {
    case SQLITE_FULL:
        return base_fail(cx, TEC_IO, at,
                         "no space left (the disk is full, or the store has reached its size limit): nothing "
                         "of this write was stored, and all earlier records are kept");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return base_fail(cx, TEC_TIMEOUT, at, "another process is writing; gave up after %g s",
                         db->busy_ms / 1e3);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return base_fail(cx, TEC_IO, at, "no permission to write this record store or its folder");
    case SQLITE_NOTADB:
        return base_fail(cx, TEC_INVALID, at,
                         "not a record store: the file is not a SQLite file, or its first page is damaged");
    case SQLITE_CORRUPT:
        return base_fail(cx, TEC_IO, at, "the record store is damaged: %s", sqlite3_errmsg(db->db));
    case SQLITE_NOMEM: return base_fail(cx, TEC_NO_MEMORY, at, "no memory left");
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return base_fail(cx, TEC_IO, at, "%s%s%s", sqlite3_errmsg(db->db), error ? ": " : "",
                         error ? strerror(error) : "");
    case SQLITE_ERROR:
        return base_fail(cx, TEC_INVALID, at, "not a record store of this version: %s",
                         sqlite3_errmsg(db->db));
    default: return base_fail(cx, TEC_IO, at, "%s", sqlite3_errmsg(db->db));
    }
}

/* ---- statements ---- */

static void prepare(store_stmt *st, const char *sql)
{
    sqlite3_stmt *handle = NULL;

    st->rc = sqlite3_prepare_v2(st->s->db, sql, -1, &handle, NULL);
    st->handle = handle;
}

static int bind_value(sqlite3_stmt *handle, int at, const store_value *value)
{
    switch (value->kind) {
    case STORE_VALUE_NONE: return sqlite3_bind_null(handle, at);
    case STORE_VALUE_TEXT: return sqlite3_bind_text(handle, at, value->text, -1, SQLITE_TRANSIENT);
    case STORE_VALUE_INT: return sqlite3_bind_int64(handle, at, value->whole);
    case STORE_VALUE_REAL: return sqlite3_bind_double(handle, at, value->real);
    case STORE_VALUE_BLOB: return sqlite3_bind_blob64(handle, at, value->data, value->size, SQLITE_TRANSIENT);
    }
    return SQLITE_MISUSE;
}

static void bind(store_stmt *st, const store_value *value)
{
    int rc = bind_value(st->handle, st->next, value);

    if (st->rc == SQLITE_OK)
        st->rc = rc;
}

/* 1: a row, 0: the end, -1 with an error in the context. */
static int step(store_stmt *st)
{
    int rc = sqlite3_step(st->handle);

    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return rc == SQLITE_ROW;
    st->rc = rc;
    store_fail(st->cx, st->s, rc);
    return -1;
}

/* An error that waits since the statement was prepared. */
static int first_step(store_stmt *st)
{
    if (st->rc == SQLITE_OK)
        return step(st);
    store_fail(st->cx, st->s, st->rc);
    return -1;
}

static void again(store_stmt *st)
{
    if (!st->handle)
        return;
    sqlite3_reset(st->handle);
    sqlite3_clear_bindings(st->handle);
}

static void drop(void *handle)
{
    sqlite3_finalize(handle);
}

static int64_t number(store_stmt *st, int column)
{
    return sqlite3_column_int64(st->handle, column);
}

static double real(store_stmt *st, int column)
{
    return sqlite3_column_double(st->handle, column);
}

static const char *text(store_stmt *st, int column)
{
    return (const char *)sqlite3_column_text(st->handle, column);
}

static const void *blob(store_stmt *st, int column, size_t *size)
{
    const void *data = sqlite3_column_blob(st->handle, column);

    *size = data ? (size_t)sqlite3_column_bytes(st->handle, column) : 0;
    return data;
}

static int64_t changed(store_stmt *st)
{
    return sqlite3_changes(st->s->db);
}

/* ---- transactions ---- */

static bool run(tec_context *cx, store *db, const char *sql)
{
    int rc = sqlite3_exec(db->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK || store_fail(cx, db, rc);
}

static bool begin(tec_context *cx, store *db)
{
    return run(cx, db, "BEGIN IMMEDIATE");
}

static bool commit(tec_context *cx, store *db)
{
    return run(cx, db, "COMMIT");
}

/* Some errors have rolled back by themselves. */
static void roll_back(store *db)
{
    if (!sqlite3_get_autocommit(db->db))
        sqlite3_exec(db->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- the whole file ---- */

/* A number that changes with each write of this or another connection. */
static bool stamp(tec_context *cx, store *db, int64_t *out)
{
    int64_t others;

    if (!store_number(cx, db, "PRAGMA data_version", &others))
        return false;
    *out = (others << 32) + sqlite3_total_changes(db->db);
    return true;
}

/* Links and other spellings of a path lead to one inode. */
static bool same(tec_context *cx, store *left, store *right)
{
    struct stat x, y;

    (void)cx;
    return stat(left->real_path, &x) == 0 && stat(right->real_path, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Everything from the log into the file, so that the size is that of the file alone. */
static bool empty_log(tec_context *cx, store *db)
{
    return run(cx, db, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* -1 with an error. */
static int64_t bytes(tec_context *cx, store *db)
{
    struct stat st;

    if (!empty_log(cx, db))
        return -1;
    return stat(db->real_path, &st) == 0 ? (int64_t)st.st_size : 0;
}

static bool shrink(tec_context *cx, store *db)
{
    return run(cx, db, "VACUUM");
}

static bool mark_version(tec_context *cx, store *db, int version)
{
    return run(
        cx, db,
        base_format(cx, "PRAGMA user_version = %d; PRAGMA application_id = %d", version, STORE_APPLICATION));
}

/* ---- the check ---- */

typedef struct {
    tec_context *cx;
    store *s;
    void (*problem)(void *user, const char *what);
    void *user;
} checker;

/* A part of the check that cannot be carried out is a problem of the file, not the end of the check. */
static void end_part(const checker *ck, store_stmt *st, int got)
{
    store_finish(st);
    if (got < 0)
        ck->problem(ck->user, tec_context_error(ck->cx));
    tec_context_clear(ck->cx);
}

static void check_pages(const checker *ck)
{
    store_stmt st = store_statement(ck->cx, ck->s, "PRAGMA integrity_check(100)");
    int got;

    while ((got = store_step(&st)) == 1)
        if (strcmp(store_text(&st, 0), "ok") != 0)
            ck->problem(ck->user, base_format(ck->cx, "damaged: %s", store_text(&st, 0)));
    end_part(ck, &st, got);
}

/* Compares the text of each table and index with what this version would create. */
static void check_schema(const checker *ck)
{
    const base_vec *texts = store_schema_texts(ck->cx);

    if (!texts) {
        ck->problem(ck->user, tec_context_error(ck->cx));
        tec_context_clear(ck->cx);
    }
    for (int i = 0; texts && i < texts->n; i++) {
        store_stmt st = store_statement(ck->cx, ck->s, "SELECT COUNT(*) FROM sqlite_schema WHERE sql = ?");
        store_bind_text(&st, texts->at[i]);
        int got = store_step(&st);
        if (got == 1 && store_int(&st, 0) != 1)
            ck->problem(ck->user, base_format(ck->cx, "missing or changed in the schema: %.60s...",
                                              (const char *)texts->at[i]));
        end_part(ck, &st, got);
    }
}

static void check_links(const checker *ck)
{
    store_stmt st = store_statement(ck->cx, ck->s, "PRAGMA foreign_key_check");
    int got;

    while ((got = store_step(&st)) == 1)
        ck->problem(ck->user,
                    base_format(ck->cx, "row %lld of '%s' names a row of '%s' that is not there",
                                (long long)store_int(&st, 1), store_text(&st, 0), store_text(&st, 2)));
    end_part(ck, &st, got);
}

static void check(tec_context *cx, store *db, void (*problem)(void *user, const char *what), void *user)
{
    const checker ck = {cx, db, problem, user};

    check_pages(&ck);
    check_schema(&ck);
    check_links(&ck);
}

static void close_file(store *db)
{
    sqlite3_close_v2(db->db);
}

const store_engine store_sqlite = {.open = store_open_file,
                                   .close = close_file,
                                   .run = run,
                                   .begin = begin,
                                   .commit = commit,
                                   .roll_back = roll_back,
                                   .prepare = prepare,
                                   .bind = bind,
                                   .step = first_step,
                                   .again = again,
                                   .drop = drop,
                                   .number = number,
                                   .real = real,
                                   .text = text,
                                   .blob = blob,
                                   .changed = changed,
                                   .stamp = stamp,
                                   .same = same,
                                   .bytes = bytes,
                                   .shrink = shrink,
                                   .mark_version = mark_version,
                                   .check = check,
                                   .now = "CAST(strftime('%s', 'now') AS INTEGER)",
                                   .one_writer = "",
                                   .lock_rows = "",
                                   .lock_free = ""};
