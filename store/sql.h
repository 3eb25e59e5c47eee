/* store/sql.h -- inside the room: statements whose errors are kept until the next step, transactions,
 * error texts.
 *
 *     store_stmt st = store_statement(cx, s, "SELECT id FROM targets WHERE fingerprint = ?");
 *     store_bind_text(&st, fingerprint);
 *     // 1: a row, 0: no more, -1: failed, the context says why
 *     int got = store_step(&st);
 *     int64_t id = got == 1 ? store_int(&st, 0) : 0;
 *     store_finish(&st);
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include <sqlite3.h>
#include <sys/types.h>

#include "base/guard.h"
#include "store/engine.h"
#include "store/record.h"

enum { STORE_APPLICATION = 0x74656352 }; /* "tecR", in the file's header */

struct store {
    const store_engine *engine;
    sqlite3 *db;                 /* of store_sqlite */
    struct store_server *server; /* of store_postgres */
    char *path;                  /* as the user wrote it, without a password */
    char *real_path;             /* where links lead; the whole address of a server */
    pid_t pid;
    int busy_ms;
    const char *read_only; /* NULL, or why it may not be written */
    bool away;             /* the last error was a server that could not be reached */
    base_held writing;     /* a transaction that is under way; giving up rolls it back */
};

typedef struct store_stmt {
    store *s;
    tec_context *cx;
    void *handle;            /* the engine's */
    struct store_held *held; /* as cx holds it: giving up drops the handle */
    int next;                /* parameter to bind */
    int rc;                  /* of the first failure */
    bool many;               /* set before the first step: the result may not fit into memory */
} store_stmt;

store_stmt store_statement(tec_context *cx, store *db, const char *sql);
void store_bind_text(store_stmt *st, const char *text); /* NULL: "" */
void store_bind_none(store_stmt *st);                   /* NULL where a text could stand */
void store_bind_int(store_stmt *st, int64_t value);
void store_bind_real(store_stmt *st, double value);
void store_bind_blob(store_stmt *st, const void *data, size_t size); /* size 0 with data NULL: NULL */
int store_step(store_stmt *st);
bool store_done(store_stmt *st);  /* steps to the end and finishes */
void store_again(store_stmt *st); /* ready for new parameters */
void store_finish(store_stmt *st);

int64_t store_int(store_stmt *st, int column);
double store_real(store_stmt *st, int column);
const char *store_text(store_stmt *st, int column); /* "" for NULL; until the next step */
/* NULL for NULL and for an empty blob; until the next step. */
const void *store_blob(store_stmt *st, int column, size_t *size);
/* The rows that the last step inserted, changed or removed. */
int64_t store_changed(store_stmt *st);

/* Statements without parameters or results. */
bool store_run(tec_context *cx, store *db, const char *sql);
/* The first column of the first row as a number; false with an error. */
bool store_number(tec_context *cx, store *db, const char *sql, int64_t *out);

/* False with an error: the store is NULL (without one), its parent's, or, to write, open for reading only. */
bool store_usable(tec_context *cx, store *db);
bool store_begin(tec_context *cx, store *db); /* as the one writer, after waiting for others */
/* Commits, or rolls back when `ok` is false; whether all went well. */
bool store_end_write(tec_context *cx, store *db, bool ok);

/* ---- the schema (schema.c) ---- */

/* Takes the steps from one version to this one, inside a transaction. */
bool store_take_steps(tec_context *cx, store *db, int64_t version);
/* The SQL of the tables and indices of a file of this version, in the order of their making; NULL with an
 * error. */
const base_vec *store_schema_texts(tec_context *cx);

/* The names of all columns, each as TABLE.COLUMN; NULL with an error. */
const base_vec *store_schema_columns(tec_context *cx);

/* ---- SQLite alone ---- */

/* Records what SQLite said as an error with the path; always NULL. */
void *store_fail(tec_context *cx, store *db, int rc);
bool store_open_file(tec_context *cx, store *db, const store_options *options);
/* Makes or migrates the file, or refuses it. */
bool store_settle_file(tec_context *cx, store *db);

/* ---- PostgreSQL alone ---- */

bool store_is_address(const char *path); /* of a server: postgresql://... */
/* The statement for PostgreSQL. */
const char *store_postgres_sql(tec_context *cx, const char *sql);

/* ---- where a file lies (place.c) ---- */

/* False with an error where the folder is on a network file system. */
bool store_check_place(tec_context *cx, const char *path, const char *real_path);

/* ---- insertion and decoding ---- */

/* Binds the fields of `object` in the order of the table. */
void store_bind_fields(store_stmt *st, const char *object, const store_record *record);
/* Adds to a transaction that is under way. */
bool store_insert(tec_context *cx, store *db, const store_record *records, int count, store_added *added);
bool store_write_job(tec_context *cx, store *db, const store_job *job);

/* The columns of all fields, "w.anchor_key, ..."; and the tables that they come from. */
void store_add_columns(tec_context *cx, base_text *sql);
#define STORE_TABLES                                                                                         \
    " FROM records r JOIN workloads w ON w.id = r.workload JOIN targets t ON t.id = r.target"                \
    " JOIN devices d ON d.id = r.device"
/* SELECT `what` of the records of query, and `tail` behind the conditions; parameters of the tail may be
 * bound next. */
store_stmt store_select(tec_context *cx, store *db, const store_query *query, const char *what,
                        const char *tail);
/* The same inside of another query, which begins with `head` and ends with `tail`; `what` names columns of
 * records alone. */
store_stmt store_select_in(tec_context *cx, store *db, const store_query *query, const char *head,
                           const char *what, const char *tail);
/* A record from a row of "r.id, <all columns>". `numbers` is memory for its costs and shape. NULL, or what is
 * wrong. */
typedef struct {
    double costs[STORE_MAX_COSTS], shape[STORE_MAX_SHAPE];
} store_numbers;
const char *store_decode(store_stmt *st, store_numbers *numbers, store_record *out);

#endif
