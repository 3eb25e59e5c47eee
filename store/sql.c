/* store/sql.c -- see sql.h. */
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* SQLite's status as an error in the user's words. Always NULL, for callers to return. */
void *store_fail(tec_context *cx, store *s, int rc)
{
    base_loc at = {.file = s->path};
    int error = sqlite3_system_errno(s->db);

    switch (rc & 0xff) {
    case SQLITE_FULL:
        return base_fail(
            cx, TEC_IO, at,
            "no space left (full disk, or the size limit of this store): nothing of this write was "
            "kept, all that was stored before is there");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return base_fail(cx, TEC_TIMEOUT, at, "another process is writing; gave up after %g s",
                         s->busy_ms / 1e3);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return base_fail(cx, TEC_IO, at, "no permission to write this record store or its folder");
    case SQLITE_NOTADB:
        return base_fail(cx, TEC_INVALID, at,
                         "not a record store: this is no SQLite file, or its first page is damaged");
    case SQLITE_CORRUPT:
        return base_fail(cx, TEC_IO, at, "the record store is damaged: %s", sqlite3_errmsg(s->db));
    case SQLITE_NOMEM: return base_fail(cx, TEC_NO_MEMORY, at, "no memory left");
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return base_fail(cx, TEC_IO, at, "%s%s%s", sqlite3_errmsg(s->db), error ? ": " : "",
                         error ? strerror(error) : "");
    case SQLITE_ERROR:
        return base_fail(cx, TEC_INVALID, at, "not a record store of this version: %s",
                         sqlite3_errmsg(s->db));
    default: return base_fail(cx, TEC_IO, at, "%s", sqlite3_errmsg(s->db));
    }
}

/* A statement is passed about by value, so what its context holds lies elsewhere. */
struct store_held {
    base_held held;
    const store *s;
    sqlite3_stmt *sql;
};

/* In a child of fork the statement is still the parent's. */
static void finalize(void *what)
{
    struct store_held *h = what;

    if (h->s->pid == getpid())
        sqlite3_finalize(h->sql);
    free(h);
}

store_stmt store_statement(tec_context *cx, store *s, const char *sql)
{
    store_stmt st = {.s = s, .cx = cx, .next = 1, .held = base_calloc(cx, 1, sizeof *st.held)};

    base_hold(cx, &st.held->held, finalize, st.held);
    st.rc = sqlite3_prepare_v2(s->db, sql, -1, &st.sql, NULL);
    st.held->s = s;
    st.held->sql = st.sql;
    return st;
}

static void take_status(store_stmt *st, int rc)
{
    if (st->rc == SQLITE_OK)
        st->rc = rc;
    st->next++;
}

void store_bind_text(store_stmt *st, const char *text)
{
    take_status(st, sqlite3_bind_text(st->sql, st->next, text ? text : "", -1, SQLITE_TRANSIENT));
}

void store_bind_int(store_stmt *st, int64_t value)
{
    take_status(st, sqlite3_bind_int64(st->sql, st->next, value));
}

void store_bind_real(store_stmt *st, double value)
{
    take_status(st, sqlite3_bind_double(st->sql, st->next, value));
}

void store_bind_blob(store_stmt *st, const void *data, size_t size)
{
    take_status(st, sqlite3_bind_blob64(st->sql, st->next, data, size, SQLITE_TRANSIENT));
}

/* 1: a row, 0: no further row, -1: an error. After an error the statement stays failed. */
int store_step(store_stmt *st)
{
    if (st->rc != SQLITE_OK) {
        store_fail(st->cx, st->s, st->rc);
        return -1;
    }
    int rc = sqlite3_step(st->sql);
    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE)
        return 0;
    st->rc = rc;
    store_fail(st->cx, st->s, rc);
    return -1;
}

void store_finish(store_stmt *st)
{
    if (st->held)
        base_drop(&st->held->held);
    st->held = NULL;
    st->sql = NULL;
}

bool store_done(store_stmt *st)
{
    int got;

    while ((got = store_step(st)) == 1)
        ;
    store_finish(st);
    return got == 0;
}

void store_again(store_stmt *st)
{
    if (st->sql) {
        sqlite3_reset(st->sql);
        sqlite3_clear_bindings(st->sql);
    }
    st->next = 1;
}

int64_t store_int(store_stmt *st, int column)
{
    return sqlite3_column_int64(st->sql, column);
}

double store_real(store_stmt *st, int column)
{
    return sqlite3_column_double(st->sql, column);
}

const char *store_text(store_stmt *st, int column)
{
    const char *text = (const char *)sqlite3_column_text(st->sql, column);

    return text ? text : "";
}

bool store_run(tec_context *cx, store *s, const char *sql)
{
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK || store_fail(cx, s, rc);
}

bool store_number(tec_context *cx, store *s, const char *sql, int64_t *out)
{
    store_stmt st = store_statement(cx, s, sql);
    int got = store_step(&st);

    *out = got == 1 ? store_int(&st, 0) : 0;
    store_finish(&st);
    return got >= 0;
}

bool store_usable(tec_context *cx, store *s)
{
    if (!s)
        return false;
    if (s->pid != getpid())
        return base_fail(cx, TEC_INVALID, (base_loc){.file = s->path},
                         "the store was opened by process %d, not by this one (%d)", (int)s->pid,
                         (int)getpid());
    return true;
}

/* Some errors have rolled back by themselves. */
static void roll_back(void *what)
{
    const store *s = what;

    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

bool store_begin(tec_context *cx, store *s)
{
    if (!store_usable(cx, s))
        return false;
    if (s->read_only)
        return base_fail(cx, TEC_INVALID, (base_loc){.file = s->path}, "cannot write: %s", s->read_only);
    if (!store_run(cx, s, "BEGIN IMMEDIATE"))
        return false;
    base_hold(cx, &s->writing, roll_back, s);
    return true;
}

bool store_end_write(tec_context *cx, store *s, bool ok)
{
    if (ok && store_run(cx, s, "COMMIT")) {
        base_keep(&s->writing);
        return true;
    }
    base_drop(&s->writing);
    return false;
}
