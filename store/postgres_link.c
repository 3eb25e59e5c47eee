/* store/postgres_link.c -- see postgres.h: the library, the connection, and what goes wrong with both. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/postgres.h"

enum { NAP_MS = 100, PATIENCE_MS = 2000 };

/* ---- the library ---- */

/* A pointer to an object is one to a function as well where there is dlsym. */
static bool find_call(tec_context *cx, void *library, const char *name, void *to, size_t size)
{
    void *found = dlsym(library, name);

    memcpy(to, &found, size);
    return found || base_fail(cx, TEC_UNSUPPORTED, (base_loc){0}, "libpq.so.5 has no function '%s'", name);
}

/* The library stays loaded: what it uses itself has work to do at the end of the process. */
static bool load_calls(tec_context *cx, const store *db, store_pg_calls *call)
{
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return base_fail(cx, TEC_UNSUPPORTED, (base_loc){.file = db->path},
                         "a record store on PostgreSQL needs the library libpq.so.5 (Debian: libpq5): %s",
                         dlerror());
#define X(name)                                                                                              \
    if (!find_call(cx, library, #name, &call->name, sizeof call->name))                                      \
        return false;
    PG_CALLS(X)
#undef X
    return true;
}

/* ---- errors ---- */

/* The first line of what the server or the library said, without the word that it begins with. */
static const char *first_line(tec_context *cx, const char *text)
{
    static const char *const marks[] = {"ERROR:  ", "FATAL:  "};

    for (int i = 0; i < BASE_COUNT(marks); i++)
        if (base_starts_with(text, marks[i]))
            text += strlen(marks[i]);
    return base_format(cx, "%.*s", (int)strcspn(text, "\n"), text);
}

static bool is_lost(const struct store_server *server)
{
    return server->call.PQstatus(server->connection) != CONNECTION_OK;
}

/* `away` makes the next statement try to connect again. */
static bool fail_lost(tec_context *cx, store *db)
{
    const char *why = first_line(cx, db->server->call.PQerrorMessage(db->server->connection));

    db->away = true;
    return base_fail(cx, TEC_IO, (base_loc){.file = db->path},
                     "the server of the record store cannot be reached: %s", *why ? why : "no answer");
}

/* SQLSTATE, what becomes of the call, and the message. NULL: what the server said. */
static const struct {
    const char *state;
    tec_status status;
    const char *message;
} known[] = {
    {"53100", TEC_IO,
     "no space left on the disk of the server: nothing of this write was kept, all that was stored before is "
     "there"},
    {"25006", TEC_IO, "no permission to write this record store: the server only reads"},
    {"42501", TEC_IO, NULL},
    {"42P01", TEC_INVALID, "not a record store of this version"},
    {"42703", TEC_INVALID, "not a record store of this version"},
};

/* A lost connection goes before what the server said last. */
bool store_pg_fail(tec_context *cx, store *db, const PGresult *got)
{
    const struct store_server *server = db->server;
    base_loc at = {.file = db->path};

    if (is_lost(server))
        return fail_lost(cx, db);
    const char *state = server->call.PQresultErrorField(got, PG_DIAG_SQLSTATE);
    const char *said = first_line(cx, server->call.PQerrorMessage(server->connection));
    if (state && strcmp(state, "55P03") == 0)
        return base_fail(cx, TEC_TIMEOUT, at, "another process is writing; gave up after %g s",
                         db->busy_ms / 1e3);
    for (int i = 0; state && i < BASE_COUNT(known); i++)
        if (strcmp(known[i].state, state) == 0)
            return base_fail(cx, known[i].status, at, "%s%s%s", known[i].message ? known[i].message : "",
                             known[i].message ? ": " : "", said);
    return base_fail(cx, TEC_IO, at, "the server says: %s", said);
}

bool store_pg_is_well(const struct store_server *server, const PGresult *got)
{
    ExecStatusType status = server->call.PQresultStatus(got);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

/* ---- connecting ---- */

static void nap(void)
{
    nanosleep(&(struct timespec){0, NAP_MS * 1000000L}, NULL);
}

/* What the session needs after each connecting: settings, and the name that was held. */
static bool settle_session(struct store_server *server)
{
    PGresult *got = server->call.PQexec(server->connection, server->settings);
    bool well = store_pg_is_well(server, got);

    server->call.PQclear(got);
    if (!well || !server->held)
        return well;
    const char *const values[] = {server->held};
    got = server->call.PQexecParams(server->connection, "SELECT pg_advisory_lock(hashtextextended($1, 0))", 1,
                                    NULL, values, NULL, NULL, 0);
    well = store_pg_is_well(server, got);
    server->call.PQclear(got);
    return well;
}

/* Connects again until that succeeds or the time is over. Whether there is a connection. */
static bool reach(tec_context *cx, store *db, int most_ms)
{
    struct store_server *server = db->server;

    for (int waited = 0; is_lost(server) || !settle_session(server); waited += NAP_MS) {
        if (waited >= most_ms)
            return fail_lost(cx, db);
        nap();
        base_check(cx);
        server->call.PQreset(server->connection);
        server->links++;
    }
    db->away = false;
    return true;
}

/* A call that the loss of the connection interrupts is made anew, but inside a transaction: what the
 * transaction did before is lost with the connection. */
PGresult *store_pg_send(tec_context *cx, store *db, store_pg_sender *send, void *user)
{
    struct store_server *server = db->server;

    for (int tries = 0; tries < 3; tries++) {
        PGresult *got = send(server, user);

        if (store_pg_is_well(server, got)) {
            db->away = false;
            return got;
        }
        if (server->writing || !is_lost(server)) {
            store_pg_fail(cx, db, got);
            server->call.PQclear(got);
            return NULL;
        }
        server->call.PQclear(got);
        if (!reach(cx, db, db->busy_ms))
            return NULL;
    }
    fail_lost(cx, db);
    return NULL;
}

static PGresult *send_text(struct store_server *server, void *sql)
{
    return server->call.PQexec(server->connection, sql);
}

bool store_pg_run(tec_context *cx, store *db, const char *sql)
{
    PGresult *got = store_pg_send(cx, db, send_text, (void *)(uintptr_t)sql);

    if (got)
        db->server->call.PQclear(got);
    return got;
}

/* The address comes last, so that its own settings win. */
static PGconn *connect_to(const struct store_server *server, const char *address)
{
    static const char *const names[] = {"connect_timeout", "fallback_application_name", "dbname",
                                        "client_encoding", NULL};
    const char *const values[] = {"10", "tec", address, "UTF8", NULL};

    return server->call.PQconnectdbParams(names, values, 1);
}

static bool is_on(const struct store_server *server, const char *parameter)
{
    const char *value = server->call.PQparameterStatus(server->connection, parameter);

    return value && strcmp(value, "on") == 0;
}

/* Refuses databases whose texts are not UTF-8, and notes why the server may not be written. */
static bool check_server(tec_context *cx, store *db, const store_options *options)
{
    const struct store_server *server = db->server;
    const char *encoding = server->call.PQparameterStatus(server->connection, "server_encoding");

    if (!encoding || strcmp(encoding, "UTF8") != 0)
        return base_fail(cx, TEC_UNSUPPORTED, (base_loc){.file = db->path},
                         "a record store needs a database in UTF8; this one is in %s",
                         encoding ? encoding : "an unknown encoding");
    db->read_only = options->read_only                               ? "it was opened for reading only"
                    : is_on(server, "in_hot_standby")                ? "the server only follows another one"
                    : is_on(server, "default_transaction_read_only") ? "the server only reads for this user"
                                                                     : NULL;
    return true;
}

/* A transaction that its process forgot must not keep others waiting for ever. */
static char *session_settings(tec_context *cx, const store *db, const store_options *options)
{
    const char *sql =
        base_format(cx,
                    "SET client_min_messages = error; SET lock_timeout = %d; "
                    "SET idle_in_transaction_session_timeout = 120000%s",
                    db->busy_ms, options->read_only ? "; SET default_transaction_read_only = on" : "");

    return strcpy(base_calloc(cx, strlen(sql) + 1, 1), sql);
}

static void close_held(void *server)
{
    store_pg_close(server);
}

/* What was opened is closed again where a later step fails. */
struct store_server *store_pg_connect(tec_context *cx, store *db, const store_options *options)
{
    struct store_server *server = base_calloc(cx, 1, sizeof *server);
    base_held held;

    base_hold(cx, &held, close_held, server);
    server->settings = session_settings(cx, db, options);
    if (load_calls(cx, db, &server->call)) {
        db->server = server;
        server->connection = connect_to(server, db->real_path);
        if (reach(cx, db, db->busy_ms < PATIENCE_MS ? db->busy_ms : PATIENCE_MS) &&
            check_server(cx, db, options)) {
            base_keep(&held);
            return server;
        }
    }
    db->server = NULL;
    base_drop(&held);
    return NULL;
}

void store_pg_close(struct store_server *server)
{
    if (!server)
        return;
    if (server->connection)
        server->call.PQfinish(server->connection);
    free(server->settings);
    free(server->held);
    free(server);
}
