/* store/sql.c -- see sql.h. */
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A statement is passed about by value, so what its context holds lies elsewhere. */
struct store_held {
    base_held held;
    const store *s;
    void *handle;
};

/* In a child of fork the statement is still the parent's. */
static void drop_statement(void *what)
{
    struct store_held *h = what;

    if (h->s->pid == getpid())
        h->s->engine->drop(h->handle);
    free(h);
}

/* Held until store_finish, so that an allocation that jumps out of the caller releases it. */
store_stmt store_statement(tec_context *cx, store *db, const char *sql)
{
    store_stmt st = {.s = db, .cx = cx, .next = 1, .held = base_calloc(cx, 1, sizeof *st.held)};

    st.held->s = db;
    base_hold(cx, &st.held->held, drop_statement, st.held);
    db->engine->prepare(&st, sql);
    st.held->handle = st.handle;
    return st;
}

static void bind(store_stmt *st, store_value value)
{
    st->s->engine->bind(st, &value);
    st->next++;
}

void store_bind_text(store_stmt *st, const char *text)
{
    bind(st, (store_value){.kind = STORE_VALUE_TEXT, .text = text ? text : ""});
}

void store_bind_none(store_stmt *st)
{
    bind(st, (store_value){.kind = STORE_VALUE_NONE});
}

void store_bind_int(store_stmt *st, int64_t value)
{
    bind(st, (store_value){.kind = STORE_VALUE_INT, .whole = value});
}

void store_bind_real(store_stmt *st, double value)
{
    bind(st, (store_value){.kind = STORE_VALUE_REAL, .real = value});
}

void store_bind_blob(store_stmt *st, const void *data, size_t size)
{
    bind(st, (store_value){.kind = STORE_VALUE_BLOB, .data = data, .size = size});
}

/* 1: a row, 0: no further row, -1: an error. After an error the statement stays failed. */
int store_step(store_stmt *st)
{
    return st->s->engine->step(st);
}

void store_finish(store_stmt *st)
{
    if (st->held)
        base_drop(&st->held->held);
    st->held = NULL;
    st->handle = NULL;
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
    st->s->engine->again(st);
    st->next = 1;
}

int64_t store_int(store_stmt *st, int column)
{
    return st->s->engine->number(st, column);
}

double store_real(store_stmt *st, int column)
{
    return st->s->engine->real(st, column);
}

const char *store_text(store_stmt *st, int column)
{
    const char *text = st->s->engine->text(st, column);

    return text ? text : "";
}

const void *store_blob(store_stmt *st, int column, size_t *size)
{
    return st->s->engine->blob(st, column, size);
}

int64_t store_changed(store_stmt *st)
{
    return st->s->engine->changed(st);
}

bool store_run(tec_context *cx, store *db, const char *sql)
{
    return db->engine->run(cx, db, sql);
}

bool store_number(tec_context *cx, store *db, const char *sql, int64_t *out)
{
    store_stmt st = store_statement(cx, db, sql);
    int got = store_step(&st);

    *out = got == 1 ? store_int(&st, 0) : 0;
    store_finish(&st);
    return got >= 0;
}

/* A connection does not survive a fork: two processes would speak on one socket, or break the file's locks.
 */
bool store_usable(tec_context *cx, store *db)
{
    if (!db)
        return false;
    if (db->pid != getpid())
        return base_fail(cx, TEC_INVALID, (base_loc){.file = db->path},
                         "the store was opened by process %d, not by this one (%d)", (int)db->pid,
                         (int)getpid());
    return true;
}

static void roll_back(void *what)
{
    store *s = what;

    s->engine->roll_back(s);
}

/* Held likewise: leaving by a jump rolls the transaction back. */
bool store_begin(tec_context *cx, store *db)
{
    if (!store_usable(cx, db))
        return false;
    if (db->read_only)
        return base_fail(cx, TEC_INVALID, (base_loc){.file = db->path}, "cannot write: %s", db->read_only);
    if (!db->engine->begin(cx, db))
        return false;
    base_hold(cx, &db->writing, roll_back, db);
    return true;
}

bool store_end_write(tec_context *cx, store *db, bool ok)
{
    if (ok && db->engine->commit(cx, db)) {
        base_keep(&db->writing);
        return true;
    }
    base_drop(&db->writing);
    return false;
}
