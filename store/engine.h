/* store/engine.h -- inside the room: what a database must do to hold a record store. The tables, the
 * queries and their SQL are the same for all; an engine sends them.
 *
 *     s->engine->prepare(&st, "SELECT id FROM targets WHERE fingerprint = ?");
 *     s->engine->bind(&st, &(store_value){.kind = STORE_VALUE_TEXT, .text = "cpu"});
 *     while (s->engine->step(&st) == 1)
 *         id = s->engine->number(&st, 0);
 *
 * store_sqlite (sqlite.c) is a file; store_postgres (postgres.c) is a server that several machines share.
 * Queries are written in the SQL that both understand; what differs by its nature (the list of parameters,
 * the types of columns) postgres_sql.c translates.
 *
 * Errors: as those of the store, by the context of the statement or of the call.
 */
#ifndef STORE_ENGINE_H
#define STORE_ENGINE_H

#include "store/store.h"

typedef enum {
    STORE_VALUE_NONE, /* NULL of a text */
    STORE_VALUE_TEXT,
    STORE_VALUE_INT,
    STORE_VALUE_REAL,
    STORE_VALUE_BLOB
} store_value_kind;

typedef struct {
    store_value_kind kind;
    const char *text;
    int64_t whole;
    double real;
    const void *data; /* NULL: NULL */
    size_t size;
} store_value;

struct store_stmt;

typedef struct {
    /* Connects, and makes, migrates or refuses what is there. The paths of the store are set. */
    bool (*open)(tec_context *cx, store *db, const store_options *options);
    void (*close)(store *db);

    /* Statements without parameters or results, several with ';' between them. */
    bool (*run)(tec_context *cx, store *db, const char *sql);
    bool (*begin)(tec_context *cx, store *db); /* waits for other writers, and for a server that is away */
    bool (*commit)(tec_context *cx, store *db);
    void (*roll_back)(store *db); /* whatever is under way; never fails */

    /* A statement: prepare sets st->handle; an error waits in st->rc for the first step. */
    void (*prepare)(struct store_stmt *st, const char *sql);
    void (*bind)(struct store_stmt *st, const store_value *value); /* parameter st->next */
    int (*step)(struct store_stmt *st);                            /* 1: a row, 0: the end, -1: an error */
    void (*again)(struct store_stmt *st);
    void (*drop)(void *handle);
    int64_t (*number)(struct store_stmt *st, int column);
    double (*real)(struct store_stmt *st, int column);
    const char *(*text)(struct store_stmt *st, int column);
    const void *(*blob)(struct store_stmt *st, int column, size_t *size);
    int64_t (*changed)(struct store_stmt *st); /* rows that the last step inserted, changed or removed */

    /* A number that is another one after each change by anybody. */
    bool (*stamp)(tec_context *cx, store *db, int64_t *stamp);
    /* Whether both are one database, under whatever names. */
    bool (*same)(tec_context *cx, store *left, store *right);
    int64_t (*bytes)(tec_context *cx, store *db);
    bool (*shrink)(tec_context *cx, store *db); /* gives unused space back */
    bool (*mark_version)(tec_context *cx, store *db, int version);
    /* Damage that is not a matter of single records. */
    void (*check)(tec_context *cx, store *db, void (*problem)(void *user, const char *what), void *user);
    /* A name that one process holds until its store is closed; false with an error: another one has it.
     * NULL: processes exclude each other by other means. */
    bool (*lock)(tec_context *cx, store *db, const char *name);

    const char *now; /* seconds since 1970, by the clock of the database */
    /* Run before records are added, so that their ids rise in the order of commits, and before kernels are
     * claimed, so that two claims never wait for each other. */
    const char *one_writer;
    const char *lock_rows; /* behind a SELECT: its rows are this transaction's until its end */
    const char *lock_free; /* the same, passing over rows that another transaction has */
} store_engine;

extern const store_engine store_sqlite, store_postgres;

#endif
