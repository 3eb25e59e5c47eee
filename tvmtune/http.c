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

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
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
 * here by somebody
 * else. */
static bool is_this_host(const tvm_doors *d, const char *host)
{
    char own[64];

    snprintf(own, sizeof own, "127.0.0.1:%d", d->port);
    if (host && strcmp(host, own) == 0)
        return true;
    snprintf(own, sizeof own, "localhost:%d", d->port);
    return host && (strcmp(host, own) == 0 || is_listed(d->hosts, host));
}

static bool is_this_site(const tvm_doors *d, const char *origin)
{
    return (strncmp(origin, "http://", 7) == 0 && is_this_host(d, origin + 7)) ||
           (strncmp(origin, "https://", 8) == 0 && is_listed(d->hosts, origin + 8));
}

/* In a time that does not depend on where the two differ. */
static bool is_token(const tvm_doors *d, const char *given)
{
    size_t n = strlen(d->token);
    unsigned differ = 0;

    if (strlen(given) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned)(unsigned char)d->token[i] ^ (unsigned char)given[i];
    return differ == 0;
}

/* The owner by the folder's token, others by the hash of theirs. */
static bool find_user_in(tec_context *cx, const tvm_doors *d, const char *token, body *b)
{
    BASE_GUARD(cx, false);
    if (is_token(d, token)) {
        snprintf(b->user, sizeof b->user, TVM_OWNER);
        b->admin = true;
        return true;
    }
    const store_user *u = store_user_find(cx, d->db, tvm_token_hash(cx, token));
    if (u) {
        snprintf(b->user, sizeof b->user, "%s", u->name);
        b->admin = u->role == STORE_ADMIN;
    }
    return u;
}

static bool find_user(const tvm_doors *d, const char *given, body *b)
{
    static const char scheme[] = "Bearer ";
    tec_context *cx = given && strncmp(given, scheme, sizeof scheme - 1) == 0 ? tec_context_new() : NULL;
    bool found = cx && find_user_in(cx, d, given + sizeof scheme - 1, b);

    tec_context_free(cx);
    return found;
}

static bool is_too_long(const tvm_doors *d, const char *length)
{
    return length && strtoll(length, NULL, 10) > d->max_body;
}

/* Whether everybody may have it: the files of the page, which ask for the token themselves. */
static bool is_open(const char *method, const char *path)
{
    return strcmp(method, "GET") == 0 && tvm_page_at(path);
}

/* 0: come in. Otherwise the status, with its reason. */
static int stop_at_door(const tvm_doors *d, struct MHD_Connection *c, const char *method, const char *path,
                        body *b)
{
    const char *origin = header(c, "Origin");

    b->why = "the Host header must name this daemon: 127.0.0.1 or localhost, with its port";
    if (!is_this_host(d, header(c, "Host")))
        return 403;
    b->why = "the page of another site may not ask this daemon (Origin)";
    if (origin && !is_this_site(d, origin))
        return 403;
    b->why = "the token is missing or wrong: Authorization: Bearer TOKEN";
    if (!is_open(method, path) && !find_user(d, header(c, "Authorization"), b))
        return 401;
    b->why = "the body is longer than this daemon takes";
    return is_too_long(d, header(c, "Content-Length")) ? 413 : 0;
}

/* ---- requests ---- */

/* What a browser may do with an answer: nothing. The page may use its own files, a report its own style. */
#define NOTHING "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
#define OF_PAGE NOTHING "; script-src 'self'; style-src 'self'; connect-src 'self'"
#define OF_REPORT NOTHING "; style-src 'unsafe-inline'"

static enum MHD_Result send_response(struct MHD_Connection *c, struct MHD_Response *r, int status,
                                     const char *type, const char *policy)
{
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Content-Security-Policy", policy);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    enum MHD_Result sent = MHD_queue_response(c, (unsigned)status, r);
    MHD_destroy_response(r);
    return sent;
}

static enum MHD_Result send_answer(struct MHD_Connection *c, tvm_answer a)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(a.size, (void *)(uintptr_t)a.data, MHD_RESPMEM_MUST_COPY);

    return send_response(c, r, a.status, a.type, strncmp(a.type, "text/html", 9) == 0 ? OF_REPORT : NOTHING);
}

static enum MHD_Result send_page(struct MHD_Connection *c, const tvm_page *p)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(p->size, (void *)(uintptr_t)p->data, MHD_RESPMEM_PERSISTENT);

    return send_response(c, r, 200, p->type, OF_PAGE);
}

typedef struct {
    const char *keys[PAIRS], *values[PAIRS];
    int n;
    bool more; /* than there is room for */
} pairs;

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
static tvm_answer answer(tec_context *cx, tvm_doors *d, struct MHD_Connection *c, const char *method,
                         const char *path, const body *b)
{
    pairs p = {.n = 0};

    MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, add_pair, &p);
    if (p.more)
        return tvm_error(cx, 400, "there are too many parameters");
    const tvm_request r = {.db = d->db,
                           .user = b->user,
                           .admin = b->admin,
                           .quota = d->quota,
                           .method = method,
                           .path = path,
                           .keys = p.keys,
                           .values = p.values,
                           .n_pairs = p.n,
                           .body = b->data,
                           .body_size = b->n};
    return tvm_route(cx, &r);
}

static enum MHD_Result answer_in(tec_context *cx, tvm_doors *d, struct MHD_Connection *c, const char *method,
                                 const char *path, const body *b)
{
    BASE_GUARD(cx, MHD_NO);
    return send_answer(c, b->status ? tvm_error(cx, b->status, b->why) : answer(cx, d, c, method, path, b));
}

/* Without memory the connection is closed. */
static enum MHD_Result finish(tvm_doors *d, struct MHD_Connection *c, const char *method, const char *path,
                              const body *b)
{
    if (!b->status && is_open(method, path))
        return send_page(c, tvm_page_at(path));
    if (!b->status && strcmp(method, "GET") == 0 && strcmp(path, "/v1/events") == 0)
        return send_response(c, tvm_streams_answer(d->streams, c, b->user, b->admin), 200,
                             "text/event-stream", NOTHING);
    tec_context *cx = tec_context_new();
    enum MHD_Result r = cx ? answer_in(cx, d, c, method, path, b) : MHD_NO;

    if (cx)
        tec_context_free(cx);
    return r;
}

/* Who sends a byte now and then is never idle, so a body as a whole has a time. */
static bool is_too_slow(const body *b)
{
    return time(NULL) - b->started > b->doors->body_seconds;
}

/* Room for n more bytes: twice as much as before, as far as all bodies together have their share of
 * memory. */
static bool grow(body *b, size_t n)
{
    size_t cap = b->cap ? b->cap : 1 << 16;

    while (cap < b->n + n)
        cap *= 2;
    if (b->doors->held + (int64_t)(cap - b->cap) > BODIES)
        return false;
    char *data = cap == b->cap ? b->data : realloc(b->data, cap);
    if (!data)
        return false;
    b->doors->held += (int64_t)(cap - b->cap);
    b->data = data;
    b->cap = cap;
    return true;
}

/* Called when the headers are there, for each piece of the body, and when the body is complete. */
static enum MHD_Result handle(void *user, struct MHD_Connection *c, const char *path, const char *method,
                              const char *version, const char *data, size_t *size, void **state)
{
    tvm_doors *d = user;
    body *b = *state;

    (void)version;
    if (!b) {
        *state = b = calloc(1, sizeof *b);
        if (!b)
            return MHD_NO;
        b->doors = d;
        b->started = time(NULL);
        b->status = stop_at_door(d, c, method, path, b);
        return b->status ? finish(d, c, method, path, b) : MHD_YES;
    }
    if (*size == 0)
        return finish(d, c, method, path, b);
    if ((int64_t)(b->n + *size) > d->max_body || is_too_slow(b) || !grow(b, *size))
        return MHD_NO;
    memcpy(b->data + b->n, data, *size);
    b->n += *size;
    *size = 0;
    return MHD_YES;
}

static void forget(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
    body *b = *state;

    (void)user, (void)c, (void)why;
    if (b) {
        b->doors->held -= (int64_t)b->cap;
        free(b->data);
    }
    free(b);
    *state = NULL;
}

/* ---- opening and closing ---- */

/* Only the loopback address: a daemon for others stands behind a proxy or ssh. */
static bool start(tec_context *cx, tvm_doors *d, int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    d->daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME,
                                 (uint16_t)port, NULL, NULL, handle, d, MHD_OPTION_SOCK_ADDR,
                                 (struct sockaddr *)&at, MHD_OPTION_NOTIFY_COMPLETED, forget, NULL,
                                 MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TVM_IDLE_SECONDS,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)TVM_CONNECTIONS, MHD_OPTION_END);
    if (!d->daemon)
        return base_fail(cx, TEC_IO, (base_loc){0},
                         "cannot listen on 127.0.0.1, port %d: the port may be in use", port);
    d->port = MHD_get_daemon_info(d->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    return true;
}

/* The store of the doors is opened first, because requests come as soon as the port is open. */
tvm_doors *tvm_doors_open(tec_context *cx, const tvm_doors_options *o)
{
    tvm_doors *d = base_new(cx, tvm_doors);

    *d = (tvm_doors){.token = base_strdup(cx, o->token),
                     .hosts = o->hosts ? base_strdup(cx, o->hosts) : NULL,
                     .quota = o->quota,
                     .body_seconds = o->body_seconds ? o->body_seconds : TVM_BODY_SECONDS,
                     .max_body = o->max_body ? o->max_body : TVM_MAX_BODY};
    d->db = store_open(cx, o->store, NULL);
    d->streams = d->db ? tvm_streams_open(d->db) : NULL;
    if (d->db && !d->streams)
        base_no_memory(cx, 0);
    if (d->db && start(cx, d, o->port))
        return d;
    tvm_doors_close(d);
    return NULL;
}

int tvm_doors_port(const tvm_doors *d)
{
    return d->port;
}

void tvm_doors_tick(tvm_doors *d)
{
    tvm_streams_tick(d->streams);
}

void tvm_doors_close(tvm_doors *d)
{
    if (!d)
        return;
    if (d->streams)
        tvm_streams_end(d->streams);
    if (d->daemon)
        MHD_stop_daemon(d->daemon);
    tvm_streams_close(d->streams);
    store_close(d->db);
}
