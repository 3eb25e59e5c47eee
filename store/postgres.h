/* store/postgres.h -- inside the room: the connection to a server of PostgreSQL.
 *
 *     s->server = store_pg_connect(cx, s, &options); // loads libpq, connects, settles the session
 *     PGresult *got = store_pg_send(cx, s, send, &query);
 *     // NULL: an error in the context. A connection that was lost has been made again
 *     s->server->call.PQclear(got);
 *
 * libpq.so.5 is loaded when the first store on a server is opened: a tec that only uses files needs no
 * libpq. A connection that is lost outside a transaction is made again, for as long as the store waits for
 * other writers; a transaction that was under way fails, and s->away is set.
 */
#ifndef STORE_POSTGRES_H
#define STORE_POSTGRES_H

#include <postgresql/libpq-fe.h>

#include "store/sql.h"

#define PG_CALLS(X)                                                                                          \
    X(PQconnectdbParams)                                                                                     \
    X(PQfinish)                                                                                              \
    X(PQreset)                                                                                               \
    X(PQstatus)                                                                                              \
    X(PQerrorMessage)                                                                                        \
    X(PQparameterStatus)                                                                                     \
    X(PQexec)                                                                                                \
    X(PQexecParams)                                                                                          \
    X(PQresultStatus)                                                                                        \
    X(PQresultErrorField)                                                                                    \
    X(PQcmdStatus)                                                                                           \
    X(PQcmdTuples)                                                                                           \
    X(PQntuples)                                                                                             \
    X(PQgetisnull)                                                                                           \
    X(PQgetvalue)                                                                                            \
    X(PQclear)                                                                                               \
    X(PQunescapeBytea)                                                                                       \
    X(PQfreemem)

/* The functions of libpq that are used, as they were found in the library. */
typedef struct {
#define X(name) __typeof__(&name) name;
    PG_CALLS(X)
#undef X
} store_pg_calls;

struct store_server {
    store_pg_calls call;
    PGconn *connection;
    bool writing;   /* a transaction is under way: no connection but this one can end it */
    int cursors;    /* that were ever opened: for their names */
    int links;      /* connections that were lost */
    char *held;     /* the name that store_lock took; NULL: none */
    char *settings; /* SQL of the session, run after each connecting */
};

/* NULL with an error. */
struct store_server *store_pg_connect(tec_context *cx, store *db, const store_options *options);
void store_pg_close(struct store_server *server);

/* Sends by `send` until the server answers; NULL with an error. The caller clears the result. */
typedef PGresult *store_pg_sender(struct store_server *server, void *user);
PGresult *store_pg_send(tec_context *cx, store *db, store_pg_sender *send, void *user);
/* One or more statements without parameters; whether the server did them. */
bool store_pg_run(tec_context *cx, store *db, const char *sql);
/* The result's error in the user's words; always false. */
bool store_pg_fail(tec_context *cx, store *db, const PGresult *got);
bool store_pg_is_well(const struct store_server *server, const PGresult *got);

#endif
