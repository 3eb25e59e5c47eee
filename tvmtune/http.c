/* tvmtune/http.c -- see http.h. */
#include "tvmtune/http.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "store/queue_users.h"
#include "tvmtune/page.h"
#include "tvmtune/stream.h"
#include "tvmtune/users.h"

enum { PAIRS = 64, BODIES = 1 << 30 };

struct tvm_doors {
    struct MHD_Daemon *daemon;
    store *db;
    const char *token;
    const char *hosts;
    const char *tracker;
    tvm_devices *devices;
    int64_t max_body, body_seconds, quota;
    int64_t held; /* bytes of all bodies that are arriving: at most BODIES */
    int port;
    tvm_streams *streams;
};

/* A request whose body is arriving, and who asks. */
typedef struct {
    char *data;
    size_t n, cap;
    int status; /* of the door: 0 where the request may come in */
    const char *why;
    bool admin;
    char user[128];
    time_t started;
    tvm_doors *doors;
} body;

/* ---- the door ---- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Whether `name` is one of the words of `list`, which stand between commas. */
static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = list; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (n > 0 && strcspn(at, ",") == n && strncmp(at, name, n) == 0)
            return true;
    return false;
}

/* "127.0.0.1:PORT", "localhost:PORT", or a name that the operator lists: any other name was made to point
 * here by somebody else. */
static bool is_this_host(const tvm_doors *doors, const char *host)
{
    char own[64];

    snprintf(own, sizeof own, "127.0.0.1:%d", doors->port);
    if (host && strcmp(host, own) == 0)
        return true;
    snprintf(own, sizeof own, "localhost:%d", doors->port);
    return host && (strcmp(host, own) == 0 || is_listed(doors->hosts, host));
}

static bool is_this_site(const tvm_doors *doors, const char *origin)
{
    return (strncmp(origin, "http://", 7) == 0 && is_this_host(doors, origin + 7)) ||
           (strncmp(origin, "https://", 8) == 0 && is_listed(doors->hosts, origin + 8));
}

/* In a time that does not depend on where the two differ. */
static bool is_token(const tvm_doors *doors, const char *given)
{
    size_t n = strlen(doors->token);
    unsigned differ = 0;

    if (strlen(given) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned)(unsigned char)doors->token[i] ^ (unsigned char)given[i];
    return differ == 0;
}

/* The owner by the folder's token, others by the hash of theirs. */
static bool find_user_in(tec_context *cx, const tvm_doors *doors, const char *token, body *self)
{
    BASE_GUARD(cx, false);
    if (is_token(doors, token)) {
        snprintf(self->user, sizeof self->user, TVM_OWNER);
        self->admin = true;
        return true;
    }
    const store_user *user = store_user_find(cx, doors->db, tvm_token_hash(cx, token));
    if (user) {
        snprintf(self->user, sizeof self->user, "%s", user->name);
        self->admin = user->role == STORE_ADMIN;
    }
    return user;
}

/* By the hash of the token: the daemon stores no token. */
static bool find_user(const tvm_doors *doors, const char *given, body *self)
{
    static const char scheme[] = "Bearer ";
    tec_context *cx = given && strncmp(given, scheme, sizeof scheme - 1) == 0 ? tec_context_new() : NULL;
    bool found = cx && find_user_in(cx, doors, given + sizeof scheme - 1, self);

    tec_context_free(cx);
    return found;
}

static bool is_too_long(const tvm_doors *doors, const char *length)
{
    return length && strtoll(length, NULL, 10) > doors->max_body;
}

/* Whether everybody may have it: the files of the page, which ask for the token themselves. */
static bool is_open(const char *method, const char *path)
{
    return strcmp(method, "GET") == 0 && tvm_page_at(path);
}

/* 0: come in. Otherwise the status, with its reason. */
static int stop_at_door(const tvm_doors *doors, struct MHD_Connection *connection, const char *method,
                        const char *path, body *self)
{
    const char *origin = header(connection, "Origin");

    self->why = "the Host header must name this daemon: 127.0.0.1 or localhost, with its port";
    if (!is_this_host(doors, header(connection, "Host")))
        return 403;
    self->why = "the page of another site may not ask this daemon (Origin)";
    if (origin && !is_this_site(doors, origin))
        return 403;
    self->why = "the token is missing or wrong: Authorization: Bearer TOKEN";
    if (!is_open(method, path) && !find_user(doors, header(connection, "Authorization"), self))
        return 401;
    self->why = "the body is longer than this daemon takes";
    return is_too_long(doors, header(connection, "Content-Length")) ? 413 : 0;
}

/* ---- requests ---- */

/* What a browser may do with an answer: nothing. The page may use its own files, a report its own style. */
#define NOTHING "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
#define OF_PAGE NOTHING "; script-src 'self'; style-src 'self'; connect-src 'self'"
#define OF_REPORT NOTHING "; style-src 'unsafe-inline'"

/* The headers keep a browser from running, sniffing, naming or storing what it got. */
static enum MHD_Result send_response(struct MHD_Connection *connection, struct MHD_Response *response,
                                     int status, const char *type, const char *policy)
{
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Content-Security-Policy", policy);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result sent = MHD_queue_response(connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return sent;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, tvm_answer answer)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(answer.size, (void *)(uintptr_t)answer.data, MHD_RESPMEM_MUST_COPY);

    return send_response(connection, r, answer.status, answer.type,
                         strncmp(answer.type, "text/html", 9) == 0 ? OF_REPORT : NOTHING);
}

static enum MHD_Result send_page(struct MHD_Connection *connection, const tvm_page *page)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(page->size, (void *)(uintptr_t)page->data, MHD_RESPMEM_PERSISTENT);

    return send_response(connection, r, 200, page->type, OF_PAGE);
}

typedef struct {
    const char *keys[PAIRS], *values[PAIRS];
    int n;
    bool more; /* than there is room for */
} pairs;

/* More words than there is room for make the request an error: `more` tells. */
static enum MHD_Result add_pair(void *user, enum MHD_ValueKind kind, const char *key, const char *value)
{
    pairs *p = user;

    (void)kind;
    p->more = p->n == PAIRS;
    if (p->more)
        return MHD_NO;
    p->keys[p->n] = key;
    p->values[p->n++] = value;
    return MHD_YES;
}

/* Collects the parameters of the query, and asks the table of paths. */
static tvm_answer answer(tec_context *cx, tvm_doors *doors, struct MHD_Connection *connection,
                         const char *method, const char *path, const body *self)
{
    pairs p = {.n = 0};

    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_pair, &p);
    if (p.more)
        return tvm_error(cx, 400, "there are too many parameters");
    const tvm_request r = {.db = doors->db,
                           .user = self->user,
                           .admin = self->admin,
                           .quota = doors->quota,
                           .tracker = doors->tracker,
                           .devices = doors->devices,
                           .method = method,
                           .path = path,
                           .keys = p.keys,
                           .values = p.values,
                           .n_pairs = p.n,
                           .body = self->data,
                           .body_size = self->n};
    return tvm_route(cx, &r);
}

static enum MHD_Result answer_in(tec_context *cx, tvm_doors *doors, struct MHD_Connection *connection,
                                 const char *method, const char *path, const body *self)
{
    BASE_GUARD(cx, MHD_NO);
    return send_answer(connection, self->status ? tvm_error(cx, self->status, self->why)
                                                : answer(cx, doors, connection, method, path, self));
}

/* Without memory the connection is closed. */
static enum MHD_Result finish(tvm_doors *doors, struct MHD_Connection *connection, const char *method,
                              const char *path, const body *self)
{
    if (!self->status && is_open(method, path))
        return send_page(connection, tvm_page_at(path));
    if (!self->status && strcmp(method, "GET") == 0 && strcmp(path, "/v1/events") == 0)
        return send_response(connection,
                             tvm_streams_answer(doors->streams, connection, self->user, self->admin), 200,
                             "text/event-stream", NOTHING);
    tec_context *cx = tec_context_new();
    enum MHD_Result r = cx ? answer_in(cx, doors, connection, method, path, self) : MHD_NO;

    if (cx)
        tec_context_free(cx);
    return r;
}

/* Who sends a byte now and then is never idle, so a body as a whole has a time. */
static bool is_too_slow(const body *self)
{
    return time(NULL) - self->started > self->doors->body_seconds;
}

/* Room for size more bytes: twice as much as before, as far as all bodies together have their share of
 * memory. */
static bool grow(body *self, size_t size)
{
    size_t cap = self->cap ? self->cap : 1 << 16;

    while (cap < self->n + size)
        cap *= 2;
    if (self->doors->held + (int64_t)(cap - self->cap) > BODIES)
        return false;
    char *data = cap == self->cap ? self->data : realloc(self->data, cap);
    if (!data)
        return false;
    self->doors->held += (int64_t)(cap - self->cap);
    self->data = data;
    self->cap = cap;
    return true;
}

/* Called when the headers are there, for each piece of the body, and when the body is complete. */
static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *data, size_t *size,
                              void **state)
{
    tvm_doors *doors = user;
    body *b = *state;

    (void)version;
    if (!b) {
        *state = b = calloc(1, sizeof *b);
        if (!b)
            return MHD_NO;
        b->doors = doors;
        b->started = time(NULL);
        b->status = stop_at_door(doors, connection, method, path, b);
        return b->status ? finish(doors, connection, method, path, b) : MHD_YES;
    }
    if (*size == 0)
        return finish(doors, connection, method, path, b);
    if ((int64_t)(b->n + *size) > doors->max_body || is_too_slow(b) || !grow(b, *size))
        return MHD_NO;
    memcpy(b->data + b->n, data, *size);
    b->n += *size;
    *size = 0;
    return MHD_YES;
}

/* Called by the library whenever a request is over, also where it broke off: all memory of a request is
 * given back here. */
static void forget(void *user, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why)
{
    body *b = *state;

    (void)user, (void)connection, (void)why;
    if (b) {
        b->doors->held -= (int64_t)b->cap;
        free(b->data);
    }
    free(b);
    *state = NULL;
}

/* ---- opening and closing ---- */

/* Only the loopback address: a daemon for others stands behind a proxy or ssh. */
static bool start(tec_context *cx, tvm_doors *doors, int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    doors->daemon = MHD_start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME, (uint16_t)port, NULL, NULL,
        handle, doors, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at, MHD_OPTION_NOTIFY_COMPLETED, forget,
        NULL, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TVM_IDLE_SECONDS, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)TVM_CONNECTIONS, MHD_OPTION_END);
    if (!doors->daemon)
        return base_fail(cx, TEC_IO, (base_loc){0},
                         "cannot listen on 127.0.0.1, port %d: the port may be in use", port);
    doors->port = MHD_get_daemon_info(doors->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    return true;
}

/* The store of the doors is opened first, because requests come as soon as the port is open. */
tvm_doors *tvm_doors_open(tec_context *cx, const tvm_doors_options *options)
{
    tvm_doors *doors = base_new(cx, tvm_doors);

    *doors = (tvm_doors){.token = base_strdup(cx, options->token),
                         .hosts = options->hosts ? base_strdup(cx, options->hosts) : NULL,
                         .tracker = options->tracker ? base_strdup(cx, options->tracker) : NULL,
                         .devices = options->devices,
                         .quota = options->quota,
                         .body_seconds = options->body_seconds ? options->body_seconds : TVM_BODY_SECONDS,
                         .max_body = options->max_body ? options->max_body : TVM_MAX_BODY};
    doors->db = store_open(cx, options->store, NULL);
    doors->streams = doors->db ? tvm_streams_open(doors->db, options->ahead) : NULL;
    if (doors->db && !doors->streams)
        base_no_memory(cx, 0);
    if (doors->db && start(cx, doors, options->port))
        return doors;
    tvm_doors_close(doors);
    return NULL;
}

int tvm_doors_port(const tvm_doors *doors)
{
    return doors->port;
}

bool tvm_doors_serve(tvm_doors *doors, int fd)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return MHD_add_connection(doors->daemon, fd, (struct sockaddr *)&from, sizeof from) == MHD_YES;
}

void tvm_doors_tick(tvm_doors *doors)
{
    tvm_streams_tick(doors->streams);
}

/* Streams end first, since the server waits for its connections. */
void tvm_doors_close(tvm_doors *doors)
{
    if (!doors)
        return;
    if (doors->streams)
        tvm_streams_end(doors->streams);
    if (doors->daemon)
        MHD_stop_daemon(doors->daemon);
    tvm_streams_close(doors->streams);
    store_close(doors->db);
}
