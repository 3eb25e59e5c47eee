/* store/postgres.c -- the engine of a store on a server of PostgreSQL, which several machines share.
 *
 * A statement is sent at its first step, when all its parameters are there. Results come as text. A result
 * that may be large is read through a cursor that outlives its transaction, a thousand rows at a time. The
 * version of the schema is the one row of the table tec_schema. All tables lie in the schema that the
 * connection works in, so that several stores fit into one database.
 */
#include "store/postgres.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMETERS = 64, TEXT_TYPE = 25, INT_TYPE = 20, REAL_TYPE = 701, BLOB_TYPE = 17, BLOCK = 1000 };

bool store_is_address(const char *path)
{
    return base_starts_with(path, "postgresql://") || base_starts_with(path, "postgres://");
}

/* ---- statements ---- */

/* Bytes that a blob was decoded to: they live until the next step. */
typedef struct decoded {
    struct decoded *next;
    unsigned char *bytes;
} decoded;

typedef struct {
    store *s;
    char *sql;
    int n;
    Oid types[MOST_PARAMETERS];
    char *values[MOST_PARAMETERS]; /* NULL: NULL */
    int lengths[MOST_PARAMETERS], binary[MOST_PARAMETERS];
    PGresult *result; /* NULL: not sent */
    int row;
    int cursor;    /* its number; 0: none */
    int link;      /* the connection that knows the cursor; -1: none yet */
    int64_t given; /* rows of the blocks before this one */
    char *last;    /* the first column of the last of them, a key of the rows; NULL: none were given */
    bool overlaps; /* this block begins with that row once more */
    decoded *blobs;
} statement;

static const store_pg_calls *calls(const statement *self)
{
    return &self->s->server->call;
}

static void forget_blobs(statement *self)
{
    while (self->blobs) {
        decoded *d = self->blobs;

        self->blobs = d->next;
        calls(self)->PQfreemem(d->bytes);
        free(d);
    }
}

static void forget_result(statement *self)
{
    forget_blobs(self);
    if (self->result)
        calls(self)->PQclear(self->result);
    self->result = NULL;
    self->row = -1;
}

/* Statements are written for SQLite and translated (store_postgres_sql): one text for both engines. */
static void prepare(store_stmt *st, const char *sql)
{
    statement *q = base_calloc(st->cx, 1, sizeof *q);
    base_mark mark = base_arena_mark(st->cx);
    const char *text = store_postgres_sql(st->cx, sql);

    q->s = st->s;
    q->row = -1;
    q->sql = strdup(text);
    base_arena_release(st->cx, mark);
    if (!q->sql)
        base_no_memory(st->cx, 0);
    st->handle = q;
}

static void set_value(statement *self, int at, const void *bytes, size_t size)
{
    free(self->values[at]);
    self->values[at] = malloc(size + 1);
    if (self->values[at]) {
        memcpy(self->values[at], bytes, size);
        self->values[at][size] = '\0';
    }
    self->lengths[at] = (int)size;
}

/* Numbers go as text that reads back exactly. */
static void set_parameter(statement *self, int at, const store_value *value)
{
    char number[64];

    self->binary[at] = value->kind == STORE_VALUE_BLOB;
    self->types[at] = value->kind == STORE_VALUE_INT    ? INT_TYPE
                      : value->kind == STORE_VALUE_REAL ? REAL_TYPE
                      : value->kind == STORE_VALUE_BLOB ? BLOB_TYPE
                                                        : TEXT_TYPE;
    if (value->kind == STORE_VALUE_TEXT)
        set_value(self, at, value->text, strlen(value->text));
    else if (value->kind == STORE_VALUE_BLOB && value->data)
        set_value(self, at, value->data, value->size);
    else if (value->kind == STORE_VALUE_INT || value->kind == STORE_VALUE_REAL)
        set_value(self, at, number,
                  (size_t)(value->kind == STORE_VALUE_INT
                               ? snprintf(number, sizeof number, "%lld", (long long)value->whole)
                               : snprintf(number, sizeof number, "%.17g", value->real)));
}

/* Values become texts of the protocol; NULL stays a parameter without one. */
static void bind(store_stmt *st, const store_value *value)
{
    statement *q = st->handle;
    int at = st->next - 1;

    if (at >= MOST_PARAMETERS)
        BASE_BUG(st->cx, "a statement has more than %d parameters", MOST_PARAMETERS);
    set_parameter(q, at, value);
    bool none = value->kind == STORE_VALUE_NONE || (value->kind == STORE_VALUE_BLOB && !value->data);
    if (!none && !q->values[at])
        base_no_memory(st->cx, 0);
    q->n = at + 1 > q->n ? at + 1 : q->n;
}

static PGresult *send_statement(struct store_server *server, void *user)
{
    const statement *q = user;

    return server->call.PQexecParams(server->connection, q->sql, q->n, q->types,
                                     (const char *const *)q->values, q->lengths, q->binary, 0);
}

/* Large results come in blocks through a cursor, so that a million records need no memory for all. The
 * server forgets a cursor with its connection: on a new connection the cursor is declared again, and the
 * block begins with the last row that was given. */
static PGresult *send_block(struct store_server *server, void *user)
{
    statement *q = user;
    char sql[80];

    q->overlaps = q->link != server->links && q->given;
    if (q->link != server->links) {
        PGresult *declared = send_statement(server, q);

        if (!store_pg_is_well(server, declared))
            return declared;
        server->call.PQclear(declared);
        q->link = server->links;
    }
    if (q->overlaps && q->given > 1) {
        snprintf(sql, sizeof sql, "MOVE FORWARD %lld FROM store_%d", (long long)q->given - 1, q->cursor);
        server->call.PQclear(server->call.PQexec(server->connection, sql));
    }
    snprintf(sql, sizeof sql, "FETCH %d FROM store_%d", BLOCK, q->cursor);
    return server->call.PQexec(server->connection, sql);
}

/* Makes the statement the declaration of a cursor, which no connection knows yet. */
static void name_cursor(store_stmt *st, statement *self)
{
    base_mark mark = base_arena_mark(st->cx);

    self->cursor = ++self->s->server->cursors;
    self->link = -1;
    const char *sql =
        base_format(st->cx, "DECLARE store_%d NO SCROLL CURSOR WITH HOLD FOR %s", self->cursor, self->sql);
    free(self->sql);
    self->sql = strdup(sql);
    base_arena_release(st->cx, mark);
    if (!self->sql)
        base_no_memory(st->cx, 0);
}

/* Counts the rows of the block that ends, and keeps the key of its last row for a new connection. */
static void count_block(store_stmt *st, statement *self)
{
    int n = calls(self)->PQntuples(self->result);

    self->given += n - self->overlaps;
    free(self->last);
    self->last = strdup(calls(self)->PQgetvalue(self->result, n - 1, 0));
    if (!self->last)
        base_no_memory(st->cx, 0);
}

/* Whether a block that overlaps the one before begins with the last row given: rows that came or went before
 * that row while there was no connection would make the walk skip or repeat as many. */
static bool goes_on(store_stmt *st, statement *self)
{
    const store_pg_calls *call = calls(self);

    if (!self->overlaps)
        return true;
    if (call->PQntuples(self->result) && strcmp(call->PQgetvalue(self->result, 0, 0), self->last) == 0) {
        self->row = 0;
        return true;
    }
    return base_fail(st->cx, TEC_IO, (base_loc){.file = st->s->path},
                     "the records changed while the connection to the server was lost: read them again");
}

/* Sends what is to be sent before the next row can be read; false with an error. */
static bool fetch(store_stmt *st, statement *self)
{
    bool first = !self->result;

    if (!first && (!self->cursor || calls(self)->PQntuples(self->result) < BLOCK))
        return true;
    if (!first)
        count_block(st, self);
    else if (st->many)
        name_cursor(st, self);
    forget_result(self);
    self->result = store_pg_send(st->cx, st->s, self->cursor ? send_block : send_statement, self);
    return self->result && goes_on(st, self);
}

/* The next row of what was fetched, or of the next block of a cursor. */
static int step(store_stmt *st)
{
    statement *q = st->handle;

    if (st->rc)
        return -1;
    forget_blobs(q);
    if ((!q->result || q->row + 1 == calls(q)->PQntuples(q->result)) && !fetch(st, q)) {
        st->rc = -1;
        return -1;
    }
    if (q->row + 1 >= calls(q)->PQntuples(q->result))
        return 0;
    q->row++;
    return 1;
}

static void again(store_stmt *st)
{
    statement *q = st->handle;

    forget_result(q);
    for (int i = 0; i < q->n; i++) {
        free(q->values[i]);
        q->values[i] = NULL;
    }
    q->n = 0;
}

/* A cursor that its transaction took along is closed already. */
static void close_cursor(const statement *self)
{
    char sql[40];

    snprintf(sql, sizeof sql, "CLOSE store_%d", self->cursor);
    calls(self)->PQclear(calls(self)->PQexec(self->s->server->connection, sql));
}

/* Registered with base_hold: a jump out of the caller releases the statement, too. */
static void drop(void *handle)
{
    statement *q = handle;

    if (!q)
        return;
    forget_result(q);
    if (q->cursor && q->s->server && q->link == q->s->server->links)
        close_cursor(q);
    for (int i = 0; i < q->n; i++)
        free(q->values[i]);
    free(q->last);
    free(q->sql);
    free(q);
}

static const char *value(store_stmt *st, int column)
{
    const statement *q = st->handle;

    return calls(q)->PQgetisnull(q->result, q->row, column) ? NULL
                                                            : calls(q)->PQgetvalue(q->result, q->row, column);
}

/* A truth is "t" or "f". */
static int64_t number(store_stmt *st, int column)
{
    const char *text = value(st, column);

    return !text ? 0 : *text == 't' ? 1 : strtoll(text, NULL, 10);
}

static double real(store_stmt *st, int column)
{
    const char *text = value(st, column);

    return text ? strtod(text, NULL) : 0;
}

/* Decodes the text of a blob; the bytes belong to the statement until its next step. */
static const void *blob(store_stmt *st, int column, size_t *size)
{
    statement *q = st->handle;
    const char *text = value(st, column);
    decoded *d = text ? base_calloc(st->cx, 1, sizeof *d) : NULL;

    *size = 0;
    if (!d)
        return NULL;
    d->bytes = calls(q)->PQunescapeBytea((const unsigned char *)text, size);
    d->next = q->blobs;
    q->blobs = d;
    if (!d->bytes)
        base_no_memory(st->cx, 0);
    return *size ? d->bytes : NULL;
}

static int64_t changed(store_stmt *st)
{
    const statement *q = st->handle;

    return strtoll(calls(q)->PQcmdTuples(q->result), NULL, 10);
}

/* ---- transactions ---- */

static bool run(tec_context *cx, store *db, const char *sql)
{
    base_mark mark = base_arena_mark(cx);
    bool ok = store_pg_run(cx, db, store_postgres_sql(cx, sql));

    base_arena_release(cx, mark);
    return ok;
}

static bool begin(tec_context *cx, store *db)
{
    db->server->writing = store_pg_run(cx, db, "BEGIN");
    return db->server->writing;
}

static PGresult *send_commit(struct store_server *server, void *user)
{
    (void)user;
    return server->call.PQexec(server->connection, "COMMIT");
}

/* A transaction that failed is rolled back by COMMIT, which the server takes for success. */
static bool commit(tec_context *cx, store *db)
{
    PGresult *got = store_pg_send(cx, db, send_commit, NULL);
    bool well = got && strcmp(db->server->call.PQcmdStatus(got), "COMMIT") == 0;

    db->server->writing = false;
    if (got)
        db->server->call.PQclear(got);
    return well ||
           (got && base_fail(cx, TEC_IO, (base_loc){.file = db->path}, "the server aborted the transaction"));
}

static void roll_back(store *db)
{
    struct store_server *server = db->server;

    if (server->writing)
        server->call.PQclear(server->call.PQexec(server->connection, "ROLLBACK"));
    server->writing = false;
}

/* ---- the schema ---- */

#define TABLES "FROM information_schema.tables WHERE table_schema = current_schema()"

/* Of what is there: 0: nothing; -1: with an error, or the tables of another program. */
static int64_t find_version(tec_context *cx, store *db)
{
    int64_t ours, tables, version;

    if (!store_number(cx, db, "SELECT COUNT(*) " TABLES " AND table_name = 'tec_schema'", &ours) ||
        !store_number(cx, db, "SELECT COUNT(*) " TABLES, &tables))
        return -1;
    if (!ours && tables) {
        base_fail(cx, TEC_INVALID, (base_loc){.file = db->path},
                  "not a record store: the schema of this database holds %lld tables of another program",
                  (long long)tables);
        return -1;
    }
    return !ours || store_number(cx, db, "SELECT COALESCE(MAX(version), 0) FROM tec_schema", &version)
               ? (ours ? version : 0)
               : -1;
}

static bool mark_version(tec_context *cx, store *db, int version)
{
    return run(cx, db,
               base_format(cx,
                           "CREATE TABLE IF NOT EXISTS tec_schema (version INTEGER NOT NULL); DELETE FROM "
                           "tec_schema; INSERT INTO tec_schema (version) VALUES (%d)",
                           version));
}

/* One process makes or migrates the tables; the others wait for it and find them. */
static bool migrate(tec_context *cx, store *db)
{
    if (!store_begin(cx, db))
        return false;
    bool ok = run(cx, db, "SELECT pg_advisory_xact_lock(hashtextextended('tec ' || current_schema(), 0))");
    int64_t version = ok ? find_version(cx, db) : -1;
    ok = version >= 0 && (version >= STORE_VERSION ||
                          (store_take_steps(cx, db, version) && mark_version(cx, db, STORE_VERSION)));
    return store_end_write(cx, db, ok);
}

/* Refuses newer versions and stores that should be there; makes or migrates the others. */
static bool settle(tec_context *cx, store *db, const store_options *options)
{
    int64_t version = find_version(cx, db);
    base_loc at = {.file = db->path};

    if (version < 0)
        return false;
    if (version > STORE_VERSION)
        return base_fail(cx, TEC_UNSUPPORTED, at,
                         "the record store has version %lld of the schema, but tec %s knows versions up "
                         "to %d: use a newer tec",
                         (long long)version, tec_version(), STORE_VERSION);
    if (version == 0 && (options->must_exist || db->read_only))
        return base_fail(cx, TEC_IO, at, "the record store does not exist");
    if (version == STORE_VERSION)
        return true;
    if (db->read_only)
        return base_fail(cx, TEC_INVALID, at,
                         "the record store has version %lld of the schema and must be "
                         "opened for writing once to become version %d; but %s",
                         (long long)version, STORE_VERSION, db->read_only);
    return migrate(cx, db);
}

static bool open_server(tec_context *cx, store *db, const store_options *options)
{
    if (options->max_bytes > 0)
        return base_fail(cx, TEC_UNSUPPORTED, (base_loc){.file = db->path},
                         "a size limit can only be set for a record store in a file");
    db->server = store_pg_connect(cx, db, options);
    return db->server && settle(cx, db, options);
}

static void close_server(store *db)
{
    store_pg_close(db->server);
    db->server = NULL;
}

/* ---- the whole database ---- */

/* Which transactions are over: each commit changes the answer. */
static bool stamp(tec_context *cx, store *db, int64_t *out)
{
    return store_number(cx, db, "SELECT hashtextextended(CAST(pg_current_snapshot() AS text), 0)", out);
}

/* Two addresses that lead to one database must be found to be one, or a merge would read what it writes. */
static const char *identity(tec_context *cx, store *db)
{
    store_stmt st = store_statement(
        cx, db,
        "SELECT concat_ws('.', current_database(), current_schema(), pg_postmaster_start_time(), "
        "current_setting('data_directory', true), current_setting('port'))");
    const char *text = store_step(&st) == 1 ? base_strdup(cx, store_text(&st, 0)) : NULL;

    store_finish(&st);
    return text;
}

static bool same(tec_context *cx, store *left, store *right)
{
    const char *x = identity(cx, left), *y = identity(cx, right);

    return x && y && strcmp(x, y) == 0;
}

static int64_t bytes(tec_context *cx, store *db)
{
    int64_t n;

    return store_number(cx, db,
                        "SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN "
                        "pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND "
                        "c.relkind = 'r'",
                        &n)
               ? n
               : -1;
}

/* Others wait meanwhile. */
static bool shrink(tec_context *cx, store *db)
{
    return store_pg_run(cx, db, "VACUUM FULL records");
}

/* Pages and links are the server's to hold; a column that is missing is found. */
static void check(tec_context *cx, store *db, void (*problem)(void *user, const char *what), void *user)
{
    const base_vec *columns = store_schema_columns(cx);

    for (int i = 0; columns && i < columns->n; i++) {
        store_stmt st =
            store_statement(cx, db,
                            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = "
                            "current_schema() AND table_name || '.' || column_name = ?");
        store_bind_text(&st, columns->at[i]);
        if (store_step(&st) != 1 || store_int(&st, 0) != 1)
            problem(user,
                    base_format(cx, "missing in the schema: the column %s", (const char *)columns->at[i]));
        store_finish(&st);
    }
    if (!columns)
        problem(user, tec_context_error(cx));
    tec_context_clear(cx);
}

/* The lock is the connection's; a connection that is made again takes it again. */
static bool lock(tec_context *cx, store *db, const char *name)
{
    store_stmt st =
        store_statement(cx, db, "SELECT pg_try_advisory_lock(hashtextextended(CAST(? AS text), 0))");

    store_bind_text(&st, name);
    int got = store_step(&st);
    bool taken = got == 1 && store_int(&st, 0);
    store_finish(&st);
    if (taken)
        db->server->held = strcpy(base_calloc(cx, strlen(name) + 1, 1), name);
    return taken || (got == 1 && base_fail(cx, TEC_INVALID, (base_loc){.file = db->path},
                                           "another process holds '%s'", name));
}

const store_engine store_postgres = {
    .open = open_server,
    .close = close_server,
    .run = run,
    .begin = begin,
    .commit = commit,
    .roll_back = roll_back,
    .prepare = prepare,
    .bind = bind,
    .step = step,
    .again = again,
    .drop = drop,
    .number = number,
    .real = real,
    .text = value,
    .blob = blob,
    .changed = changed,
    .stamp = stamp,
    .same = same,
    .bytes = bytes,
    .shrink = shrink,
    .mark_version = mark_version,
    .check = check,
    .lock = lock,
    .now = "CAST(extract(epoch FROM clock_timestamp()) AS bigint)",
    .one_writer = "SELECT pg_advisory_xact_lock(hashtextextended('tec records ' || current_schema(), 0))",
    .lock_rows = " FOR UPDATE",
    .lock_free = " FOR UPDATE SKIP LOCKED"};
