/* rpc/server/server.c -- see server.h: connections, keys, and which session belongs to whom.
 *
 * Who owns what: a client has a connection, a session belongs to a client and has a host, and each of the
 * three may end first. A client that goes leaves its sessions without a client until their processes have
 * ended; a session whose end its client knows is `over`, and stays in the list until its process is gone. So
 * the list of sessions counts processes, which is what --sessions bounds. Pointers from a session to its
 * client become NULL when the client goes.
 *
 * Of what a client sends for a session only `open` and `close` are read here; of everything else the server
 * knows the kind, the length and the stream, so a damaged question meets no code of the server.
 */
#include "rpc/server/server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/keys.h"
#include "rpc/server/host.h"
#include "rpc/server/member.h"
#include "rpc/server/offer.h"
#include "runtime/alloc.h"

enum { SESSIONS = 4, OUTPUT = 1 << 20, MOST_WAITING_OUTPUT = 1 << 22, LIST_SECONDS = 60, PIECE = 1 << 17 };
/* Of the process that looks for devices, which loads the drivers of all of them. */
static const int64_t LIST_MEMORY = (int64_t)4 << 30;
/* How long a session waits for its lease to become known, and how often it looks. */
enum { EARLY_MS = 3000, EARLY_EVERY_MS = 100 };

typedef struct session session;
typedef struct client client;

/* In the list from on_ready to on_closed; a connection without a client has not proved its key. */
struct client {
    rpc_server *server;
    rpc_conn *conn; /* NULL: gone, and sessions are ending */
    int64_t number;
    bool wants_list;
    client *next;
};

/* `host` lives exactly as long as the session; on_ended frees both. */
struct session {
    rpc_server *server;
    client *client; /* NULL: gone */
    uint32_t stream;
    rpc_host *host;
    int64_t number, requests;
    int64_t lease; /* 0: none is needed */
    bool over;     /* the client knows: what the process says is dropped */
    char device[32];
    session *next;
};

/* A session that is to open once the tracker has told of its lease: the client may hear of it first. */
typedef struct early {
    client *client;
    uint32_t stream;
    rpc_open open;
    char device[32], label[128];
    int64_t until;
    struct early *next;
} early;

struct rpc_server {
    rpc_loop *loop;
    rpc_server_options o;
    rpc_listener *listener;
    rpc_keys keys;
    struct timespec keys_of; /* when the file was changed */
    client *clients;
    session *sessions;
    int n_sessions;
    early *early; /* opened before their leases were known */
    rpc_timer *early_timer;
    rpc_member *member; /* of a pool; NULL: of none */
    rt_arena offered;   /* the member's devices */
    char name[160], announce[300];
    int64_t n_clients_ever, n_sessions_ever;
    bool draining, had_session, loopback; /* loopback: nobody beyond this machine reaches the server */
    rpc_host *lister;                     /* a process that looks for devices */
    uint8_t *list;                        /* its answer: a body of the newest version */
    size_t n_list;
    tec_error why;
    rpc_conn_options conn;
};

/* ---- the log ---- */

static void tell(const rpc_server *server, const char *fmt, ...) BASE_PRINTF(2, 3);

/* One line; what a client wrote cannot begin another one. */
static void tell(const rpc_server *server, const char *fmt, ...)
{
    char line[1200];
    va_list args;

    if (!server->o.log)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    server->o.log(server->o.user, line);
}

/* ---- keys ---- */

/* Reads the file again when it has changed. A file that makes no sense leaves the old keys in force: a slip
 * of an editor locks nobody out, and the log says it. Called at each handshake, so a key that is added or
 * revoked counts for the next connection; those that are open stay. The time of the change is kept even for a
 * file that makes no sense, so that the log says it once. */
static void refresh_keys(rpc_server *server)
{
    struct stat now;
    rpc_keys fresh;
    tec_error err = {0};

    if (stat(server->o.key_file, &now) != 0) {
        tell(server, "%s: cannot be read (%s); the keys read before stay in force", server->o.key_file,
             strerror(errno));
        return;
    }
    if (now.st_mtim.tv_sec == server->keys_of.tv_sec && now.st_mtim.tv_nsec == server->keys_of.tv_nsec)
        return;
    server->keys_of = now.st_mtim;
    if (!rpc_keys_read(&fresh, server->o.key_file, &err)) {
        tell(server, "%s; the keys read before stay in force", err.text);
        return;
    }
    rpc_keys_free(&server->keys);
    server->keys = fresh;
    tell(server, "%s: %d keys", server->o.key_file, server->keys.n);
}

/* For the handshake: the key of that id with its roles, or why it is not accepted here. A reason without a
 * key is for the log only; the client is told no more than "unknown". */
static bool find_key(void *user, const uint8_t *id, rpc_grant *grant)
{
    rpc_server *server = user;

    refresh_keys(server);
    const rpc_key_row *row = rpc_keys_find(&server->keys, id);
    if (!row)
        return false;
    if (row->state == RPC_KEY_REVOKED)
        grant->why = "it is revoked";
    else if (row->state == RPC_KEY_LOOPBACK && !server->loopback)
        grant->why = "it is for loopback alone";
    else if (server->o.device_class && !rpc_key_fits(server->o.device_class, row->classes))
        grant->why = "it is not for this class of devices";
    else {
        grant->key = row->key;
        grant->roles = row->roles;
        return true;
    }
    return false;
}

/* ---- the end of the server ---- */

/* To be called after everything that ends a session or the lister while the server drains. */
static void stop_when_idle(rpc_server *server)
{
    if (!server->draining || server->sessions || server->lister)
        return;
    if (server->member)
        rpc_member_leave(server->member);
    rpc_loop_stop(server->loop);
}

/* Each session ends by on_ended later: the list does not change under this loop. */
static void kill_sessions(void *user)
{
    rpc_server *s = user;

    for (session *x = s->sessions; x; x = x->next)
        rpc_host_kill(x->host, TEC_REFUSED, "the server ends");
    if (s->lister)
        rpc_host_kill(s->lister, TEC_REFUSED, "the server ends");
}

/* Takes no new clients or sessions, and stops once those at work have ended or the time for it is over. The
 * second call ends them at once. */
void rpc_server_drain(rpc_server *server)
{
    if (server->draining) {
        kill_sessions(server);
        return;
    }
    server->draining = true;
    tell(server, "draining: %d sessions at work", server->n_sessions);
    rpc_listener_close(server->listener);
    server->listener = NULL;
    if (server->member)
        rpc_member_drain(server->member);
    for (client *c = server->clients; c; c = c->next)
        if (c->conn && rpc_link_ready(rpc_conn_link(c->conn)))
            rpc_conn_send(c->conn, 0, RPC_KIND_goodbye, &(rpc_goodbye){"the server ends"});
    rpc_timer_start(server->loop, (int64_t)(server->o.drain_seconds * 1e3), 0, kill_sessions, server);
    stop_when_idle(server);
}

/* An error of the server itself, which its program prints at the end. */
static void stop_for(rpc_server *server, tec_status status, const char *text)
{
    rt_fail(&server->why, status, "%s", text);
    rpc_server_drain(server);
    kill_sessions(server);
}

/* ---- sessions ---- */

/* The session must be in the list. */
static void leave(session *self)
{
    session **at = &self->server->sessions;

    while (*at != self)
        at = &(*at)->next;
    *at = self->next;
    self->server->n_sessions--;
}

/* The stream was opened by the client's frame, so it must be closed again, or the client would run out of
 * streams. */
static void refuse(client *peer, uint32_t stream, tec_status status, const char *text)
{
    rpc_conn_send(peer->conn, stream, RPC_KIND_failure,
                  &(rpc_failure){.status = status, .text = text, .fatal = 1, .output = ""});
    rpc_link_close_stream(rpc_conn_link(peer->conn), stream);
}

/* Ends the stream: a session's process, if it is still there, speaks to nobody. */
static void tell_end(session *self, const rpc_host_end *end)
{
    if (self->over)
        return;
    self->over = true;
    if (!self->client || !self->client->conn)
        return;
    rpc_conn_send(self->client->conn, self->stream, RPC_KIND_failure,
                  &(rpc_failure){end->status, end->text, 1, end->signal, end->output});
    rpc_link_close_stream(rpc_conn_link(self->client->conn), self->stream);
}

/* Hands an answer of the session's process on to its client; false: not now, as the client does not read. A
 * data message must fit the window of the stream; other answers only must not pile up in the connection's
 * output. */
static bool on_answer(void *user, rpc_kind kind, const uint8_t *body, size_t size)
{
    session *x = user;
    rpc_conn *conn = x->client ? x->client->conn : NULL;

    if (x->over || !conn)
        return true;
    bool full = rpc_conn_waiting(conn) > MOST_WAITING_OUTPUT;
    if (full || (kind == RPC_KIND_data && rpc_link_may_send(rpc_conn_link(conn), x->stream) < size))
        return false;
    rpc_link_send_body(rpc_conn_link(conn), x->stream, kind, body, size);
    rpc_conn_flush(conn);
    if (kind != RPC_KIND_data)
        x->requests++;
    if (kind == RPC_KIND_closed) {
        x->over = true;
        rpc_link_close_stream(rpc_conn_link(conn), x->stream);
    }
    return true;
}

/* The process has read n bytes: the client may send as many more. */
static void on_taken(void *user, size_t n)
{
    session *x = user;

    if (!x->over && x->client && x->client->conn)
        rpc_conn_consumed(x->client->conn, x->stream, n);
}

/* The session's process is gone: its client learns the cause, unless the session was over already. */
static void on_ended(void *user, const rpc_host_end *self)
{
    session *x = user;
    rpc_server *server = x->server;
    rpc_host_end end = *self;

    if (end.status == TEC_OK && !x->over) {
        end.status = TEC_CRASHED;
        end.text = "this session's process ended by itself";
    }
    tell(server, "session %lld: over after %lld answers%s%s%s%s", (long long)x->number,
         (long long)x->requests, end.status != TEC_OK ? ": " : "", end.status != TEC_OK ? end.text : "",
         *end.output ? "; it printed: " : "", end.output);
    tell_end(x, &end);
    leave(x);
    rt_free(x);
    stop_when_idle(server);
}

static const rpc_host_events session_events = {on_answer, on_taken, on_ended};

static rpc_host_options host_options(const rpc_server *server, const rpc_host_events *events, void *user)
{
    return (rpc_host_options){.session = {.memory_bytes = server->o.memory_bytes,
                                          .seconds = server->o.seconds,
                                          .weak = server->o.weak_sandbox,
                                          .version = RPC_NEWEST,
                                          .piece = PIECE},
                              .folder = server->o.folder,
                              .program = server->o.program,
                              .output_bytes = server->o.output_bytes,
                              .events = events,
                              .user = user};
}

/* Letters that need no quoting: the name becomes a word of a command line. "list" there means something
 * else. */
static bool is_device_name(const char *name)
{
    return *name && strlen(name) < sizeof((session *)0)->device &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789:_-")] && strcmp(name, "list") != 0;
}

/* The limits of the client and of the server: the smaller one counts. A client's zero means no wish. `piece`
 * must fit a frame of the client, as bodies are passed on uncut. */
static void set_limits(rpc_session_options *options, const rpc_server *server, const rpc_open *message,
                       client *peer)
{
    size_t most = rpc_link_max_body(rpc_conn_link(peer->conn));

    if (message->memory_bytes > 0 && message->memory_bytes < server->o.memory_bytes)
        options->memory_bytes = message->memory_bytes;
    if (message->seconds > 0 && message->seconds < server->o.seconds)
        options->seconds = message->seconds;
    options->version = rpc_link_version(rpc_conn_link(peer->conn));
    options->piece = most < PIECE ? (int64_t)most : PIECE;
}

/* Starts the process of a session that may be. */
static void start_session(client *peer, uint32_t stream, const rpc_open *message)
{
    rpc_server *server = peer->server;
    tec_error err = {0};
    session *x = rt_alloc(sizeof *x, &err);

    if (!x) {
        refuse(peer, stream, TEC_NO_MEMORY, err.text);
        return;
    }
    *x = (session){.server = server,
                   .client = peer,
                   .stream = stream,
                   .number = ++server->n_sessions_ever,
                   .lease = message->lease};
    snprintf(x->device, sizeof x->device, "%s", message->device);
    rpc_host_options o = host_options(server, &session_events, x);
    o.number = x->number;
    o.session.device = x->device;
    set_limits(&o.session, server, message, peer);
    x->host = rpc_host_start(server->loop, &o, &err);
    if (!x->host) {
        tell(server, "session %lld: cannot start: %s", (long long)x->number, err.text);
        refuse(peer, stream, err.status, err.text);
        rt_free(x);
        return;
    }
    x->next = server->sessions;
    server->sessions = x;
    server->n_sessions++;
    server->had_session = true;
    tell(server, "session %lld: opened on %s by client %lld, '%.100s'", (long long)x->number, x->device,
         (long long)peer->number, message->label);
}

/* Why a session cannot be had now, with its status; NULL: it can. */
static const char *find_fault(const client *peer, const rpc_open *message, tec_status *status)
{
    const rpc_server *server = peer->server;
    const rpc_link *link = rpc_conn_link(peer->conn);
    const rpc_key_row *row = rpc_keys_find(&server->keys, rpc_link_id(link));
    char class[256];

    *status = TEC_DENIED;
    if (!(rpc_find_message(RPC_KIND_open)->roles & rpc_link_roles(link)))
        return "the key lacks the role 'submit', which sessions take";
    if (server->o.device_class &&
        rpc_class_of(server->o.device_class, message->device, class, sizeof class) && row &&
        !rpc_class_allowed(row->classes, class))
        return "the key is not for the class of this device";
    if (server->member && !message->lease)
        return "the devices of this server are given away by its tracker: ask the tracker for a lease";
    *status = TEC_REFUSED;
    if (server->draining)
        return "the server ends and takes no more sessions";
    if (server->n_sessions >= server->o.most_sessions)
        return "the server has as many sessions as it takes";
    *status = TEC_INVALID;
    return is_device_name(message->device) ? NULL
                                           : "the name of a device is a kind and a number, as in cpu:0";
}

/* Waits for the lease in a list; the tracker's word and the client's come over two connections. */
static void wait_for_lease(client *peer, uint32_t stream, const rpc_open *message)
{
    rpc_server *server = peer->server;
    early *e = rt_alloc(sizeof *e, NULL);

    if (!e) {
        refuse(peer, stream, TEC_NO_MEMORY, "the server has no memory for another session");
        return;
    }
    *e = (early){.client = peer,
                 .stream = stream,
                 .open = *message,
                 .until = rpc_loop_now(server->loop) + EARLY_MS,
                 .next = server->early};
    snprintf(e->device, sizeof e->device, "%s", message->device);
    snprintf(e->label, sizeof e->label, "%s", message->label);
    e->open.device = e->device;
    e->open.label = e->label;
    server->early = e;
}

/* Checks role, class, lease and room before a process is started; each refusal goes to the client and into
 * the log. */
static void open_session(client *peer, uint32_t stream, const rpc_open *message)
{
    rpc_server *server = peer->server;
    tec_status status;
    const char *fault = find_fault(peer, message, &status);

    if (fault) {
        tell(server, "client %lld: refused 'open' of %.40s: %s", (long long)peer->number, message->device,
             fault);
        refuse(peer, stream, status, fault);
    } else if (server->member && !rpc_member_admits(server->member, message->device, message->lease,
                                                    rpc_link_id(rpc_conn_link(peer->conn))))
        wait_for_lease(peer, stream, message);
    else
        start_session(peer, stream, message);
}

/* Opens the sessions whose leases are known now, and refuses those that have waited too long. */
static void look_at_early(void *user)
{
    rpc_server *server = user;
    char text[200];

    for (early **at = &server->early; *at;) {
        early *e = *at;
        client *c = e->client;
        bool admitted = c->conn && rpc_member_admits(server->member, e->device, e->open.lease,
                                                     rpc_link_id(rpc_conn_link(c->conn)));

        if (!admitted && c->conn && rpc_loop_now(server->loop) < e->until) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        if (admitted)
            open_session(c, e->stream, &e->open);
        else if (c->conn) {
            snprintf(text, sizeof text, "the tracker gave this key no lease %lld of %s",
                     (long long)e->open.lease, e->device);
            tell(server, "client %lld: refused 'open': %s", (long long)c->number, text);
            refuse(c, e->stream, TEC_DENIED, text);
        }
        rt_free(e);
    }
}

/* A lease is over: so are its sessions, no matter who uses them. */
static void end_lease(void *user, int64_t lease)
{
    rpc_server *server = user;
    char text[100];

    snprintf(text, sizeof text, "lease %lld of this session is over", (long long)lease);
    for (session *x = server->sessions; x; x = x->next)
        if (x->lease == lease && !x->over) {
            tell_end(x, &(rpc_host_end){TEC_DENIED, 0, text, ""});
            rpc_host_kill(x->host, TEC_DENIED, text);
        }
}

static session *find_session(const client *peer, uint32_t stream)
{
    for (session *x = peer->server->sessions; x; x = x->next)
        if (x->client == peer && x->stream == stream && !x->over)
            return x;
    return NULL;
}

/* A cancel: a question at work is answered by a failure, an idle session by `closed`. Either way the client
 * is answered before the process is dead, as a computation may take long to be ended. */
static void close_now(session *self)
{
    rpc_conn *conn = self->client->conn;

    if (rpc_host_waiting(self->host))
        tell_end(self, &(rpc_host_end){TEC_CANCELLED, 0, "the client cancelled", ""});
    else {
        self->over = true;
        rpc_conn_send(conn, self->stream, RPC_KIND_closed, &(rpc_closed){self->requests});
        rpc_link_close_stream(rpc_conn_link(conn), self->stream);
    }
    rpc_host_kill(self->host, TEC_CANCELLED, "the client cancelled");
}

/* `open` and `close` are the server's own; everything else goes to the session's process unread. `close` with
 * now = 0 goes to the process, which answers when it has done everything asked before. A second `open` on one
 * stream breaks the protocol, and its connection ends. */
static void on_session_frame(client *peer, const rpc_frame *frame)
{
    session *x = find_session(peer, frame->stream);
    rt_arena arena = {0};
    rpc_any m;

    if (frame->kind == RPC_KIND_open || frame->kind == RPC_KIND_close) {
        if (!rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n,
                        rpc_link_version(rpc_conn_link(peer->conn)), &arena)) {
            rt_arena_free(&arena);
            rpc_conn_close(peer->conn, TEC_PROTOCOL, "a message cannot be decoded");
            return;
        }
        rt_arena_free(&arena);
        if (frame->kind == RPC_KIND_open && !x) {
            open_session(peer, frame->stream, &m.open);
            return;
        }
        if (frame->kind == RPC_KIND_open) {
            rpc_conn_close(peer->conn, TEC_PROTOCOL, "a session was opened twice");
            return;
        }
        if (x && m.close.now) {
            close_now(x);
            return;
        }
    }
    if (x && !rpc_host_question(x->host, frame->kind, frame->body, frame->n))
        rpc_host_kill(x->host, TEC_REFUSED, "too many questions wait for their answers");
}

/* ---- the pool ---- */

static void log_line(void *user, const char *line)
{
    tell(user, "%s", line);
}

static int count_sessions(void *user)
{
    const rpc_server *s = user;

    return s->n_sessions;
}

/* The key that the tracker is dialled with, and dials back with: one that may serve these classes. */
static const rpc_key_row *pick_key(const rpc_server *server, tec_error *err)
{
    for (int i = 0; i < server->keys.n; i++) {
        const rpc_key_row *row = &server->keys.rows[i];
        rpc_id_text id = rpc_show_id(row->key.id);

        if (row->state != RPC_KEY_REVOKED && (row->roles & RPC_ROLE_SERVE) &&
            rpc_key_fits(server->o.device_class, row->classes) &&
            (!server->o.tracker_key || strcmp(id.text, server->o.tracker_key) == 0))
            return row;
    }
    rt_fail(err, TEC_DENIED, "%s: has no key%s%s with the role 'serve' for devices of class '%s'",
            server->o.key_file, server->o.tracker_key ? " " : "",
            server->o.tracker_key ? server->o.tracker_key : "", server->o.device_class);
    return NULL;
}

/* The name of the machine and the port, unless the server has a name. */
static void set_name(rpc_server *server, int port)
{
    char host[100] = "";

    gethostname(host, sizeof host - 1);
    for (char *p = host; *p; p++)
        *p = *p == '/' ? '-' : *p;
    if (server->o.name)
        snprintf(server->name, sizeof server->name, "%s", server->o.name);
    else
        snprintf(server->name, sizeof server->name, "%s-%d", *host ? host : "server",
                 port ? port : (int)getpid());
    if (server->o.dial_out)
        server->announce[0] = '\0';
    else if (server->o.announce)
        snprintf(server->announce, sizeof server->announce, "%s", server->o.announce);
    else
        snprintf(server->announce, sizeof server->announce, ":%d", port);
}

/* Joins the pool of the tracker with the devices that were found. */
static bool join_pool(rpc_server *server, tec_error *err)
{
    rpc_member_options o = {.tracker = server->o.tracker,
                            .name = server->name,
                            .address = server->announce,
                            .clients = &server->conn,
                            .log = log_line,
                            .assigned = look_at_early,
                            .ended = end_lease,
                            .sessions = count_sessions,
                            .user = server};
    const rpc_key_row *row = pick_key(server, err);
    uint8_t *list = row ? rt_arena_alloc(&server->offered, (int64_t)server->n_list, 1, err) : NULL;
    rpc_any m;

    if (!list)
        return false;
    memcpy(list, server->list, server->n_list);
    set_name(server, server->listener ? rpc_listener_port(server->listener) : 0);
    if (!rpc_decode(&m, RPC_KIND_listed, list, server->n_list, RPC_NEWEST, &server->offered) ||
        !rpc_make_offer(server->o.device_class, &m.listed, &server->offered, &o.devices, &o.n_devices, err))
        return false;
    o.key = row->key;
    server->early_timer =
        rpc_timer_start(server->loop, EARLY_EVERY_MS, EARLY_EVERY_MS, look_at_early, server);
    server->member = server->early_timer ? rpc_member_new(server->loop, &o, err) : NULL;
    return server->member != NULL || rt_fail_memory(err, sizeof o);
}

/* ---- the list of devices ---- */

/* The list is decoded and encoded anew for each client, as its version may be older and the sessions at work
 * have changed. */
static void send_list(client *peer)
{
    rpc_server *server = peer->server;
    rt_arena arena = {0};
    rpc_any m;

    peer->wants_list = false;
    if (!peer->conn || !rpc_decode(&m, RPC_KIND_listed, server->list, server->n_list, RPC_NEWEST, &arena))
        return;
    m.listed.sessions = server->n_sessions;
    m.listed.most_sessions = server->o.most_sessions;
    rpc_conn_send(peer->conn, 0, RPC_KIND_listed, &m.listed);
    rt_arena_free(&arena);
}

/* Keeps the answer of the process that looked for devices. A failure ends the process at once, with its text
 * as the reason; on_list_ended tells those who wait. */
static bool on_list_answer(void *user, rpc_kind kind, const uint8_t *body, size_t size)
{
    rpc_server *server = user;
    rt_arena arena = {0};
    rpc_any m;

    if (kind == RPC_KIND_failure && rpc_decode(&m, (uint32_t)kind, body, size, RPC_NEWEST, &arena))
        rpc_host_kill(server->lister, (tec_status)m.failure.status, m.failure.text);
    else if (kind == RPC_KIND_listed && rpc_decode(&m, (uint32_t)kind, body, size, RPC_NEWEST, &arena)) {
        uint8_t *list = rt_alloc(size, NULL);

        if (list) {
            memcpy(list, body, size);
            rt_free(server->list);
            server->list = list;
            server->n_list = size;
        }
    }
    rt_arena_free(&arena);
    return true;
}

static void on_list_taken(void *user, size_t n)
{
    (void)user;
    (void)n;
}

/* Opens the doors: listens, or joins a pool, or both. */
static bool start_listening(rpc_server *server, tec_error *err)
{
    server->listener =
        server->o.dial_out ? NULL : rpc_listen(server->loop, server->o.listen, &server->conn, err);
    if (!server->listener && !server->o.dial_out)
        return false;
    server->loopback =
        server->listener ? rpc_listener_is_loopback(server->listener) : rpc_is_loopback(server->o.tracker);
    if (!server->loopback && !server->o.key_file_named)
        return rt_fail(err, TEC_DENIED,
                       "%s can be reached from other machines: name the keys that may connect with "
                       "--key-file",
                       server->o.dial_out ? server->o.tracker : server->o.listen);
    if (server->o.tracker && !join_pool(server, err))
        return false;
    if (server->o.ready)
        server->o.ready(server->o.user, server->listener ? rpc_listener_port(server->listener) : 0);
    return true;
}

/* The first list opens the doors: until then nobody is let in. A later look that fails leaves the old list in
 * force. `end->output` are the layers of the sandbox, which the process prints when it only lists. */
static void on_list_ended(void *user, const rpc_host_end *end)
{
    rpc_server *server = user;
    tec_error err = {0};

    server->lister = NULL;
    if (end->status != TEC_OK || !server->list)
        tell(server, "looking for devices failed: %s", *end->text ? end->text : "no answer came");
    if (!server->list) {
        stop_for(server, end->status == TEC_OK ? TEC_CRASHED : end->status, end->text);
        return;
    }
    if (!server->draining && !server->listener && !server->member) {
        tell(server, "sessions are kept in by: %s", end->output);
        if (!start_listening(server, &err))
            stop_for(server, err.status, err.text);
    }
    for (client *c = server->clients; c; c = c->next)
        if (c->wants_list)
            send_list(c);
    stop_when_idle(server);
}

static const rpc_host_events list_events = {on_list_answer, on_list_taken, on_list_ended};

/* In a process of its own, with the same sandbox as a session: a driver that crashes ends that process
 * only. */
static bool look_for_devices(rpc_server *server, tec_error *err)
{
    rpc_host_options o = host_options(server, &list_events, server);

    o.session.device = "list";
    o.session.seconds = LIST_SECONDS;
    o.session.memory_bytes = LIST_MEMORY;
    server->lister = rpc_host_start(server->loop, &o, err);
    return server->lister != NULL;
}

/* ---- clients ---- */

/* By the connection, since a connection's user is the server for all of them. */
static client *client_of(rpc_conn *conn)
{
    rpc_server *s = rpc_conn_user(conn);

    for (client *x = s->clients; x; x = x->next)
        if (x->conn == conn)
            return x;
    return NULL;
}

/* A client has proved its key: from here on it is listed and may ask. Also while the server drains: the
 * client learns by `goodbye` why it gets no session. */
static void on_ready(rpc_conn *conn)
{
    rpc_server *server = rpc_conn_user(conn);
    const rpc_link *link = rpc_conn_link(conn);
    client *c = rt_alloc(sizeof *c, NULL);

    if (!c) {
        rpc_conn_close(conn, TEC_NO_MEMORY, "the server has no memory for another client");
        return;
    }
    *c =
        (client){.server = server, .conn = conn, .number = ++server->n_clients_ever, .next = server->clients};
    server->clients = c;
    tell(server, "client %lld: %s with key %s (%s), %s", (long long)c->number, rpc_conn_peer(conn),
         rpc_show_id(rpc_link_id(link)).text, rpc_show_roles(rpc_link_roles(link)), rpc_link_peer(link));
    if (server->draining)
        rpc_conn_send(conn, 0, RPC_KIND_goodbye, &(rpc_goodbye){"the server ends"});
}

/* Frames of a stream belong to its session; on stream 0 a client may only ask what the server offers. A list
 * that is to be refreshed is answered by on_list_ended; all who asked meanwhile share one look. */
static void on_frame(rpc_conn *conn, const rpc_frame *frame)
{
    client *c = client_of(conn);
    rt_arena arena = {0};
    rpc_any m;

    if (!c)
        return;
    if (frame->stream) {
        on_session_frame(c, frame);
        return;
    }
    if (frame->kind != RPC_KIND_list)
        return;
    if (!rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n, rpc_link_version(rpc_conn_link(conn)),
                    &arena)) {
        rt_arena_free(&arena);
        rpc_conn_close(conn, TEC_PROTOCOL, "a message cannot be decoded");
        return;
    }
    rt_arena_free(&arena);
    c->wants_list = true;
    if (!m.list.refresh || (!c->server->lister && !look_for_devices(c->server, NULL)))
        send_list(c);
}

/* Windows or output of the connection have room again. Each session is tried: which of them waits for the
 * connection is not recorded. */
static void on_room(rpc_conn *conn)
{
    client *c = client_of(conn);

    for (session *x = c ? c->server->sessions : NULL, *next; x; x = next) {
        next = x->next;
        if (x->client == c && x->host)
            rpc_host_resume(x->host);
    }
}

static void forget_early(const client *peer)
{
    for (early **at = &peer->server->early; *at;) {
        early *e = *at;

        if (e->client == peer) {
            *at = e->next;
            rt_free(e);
        } else
            at = &e->next;
    }
}

/* A client is gone, and its sessions go with it: their processes are killed, and tell nobody. */
static void on_closed(rpc_conn *conn, const tec_error *why)
{
    rpc_server *server = rpc_conn_user(conn);
    client *c = client_of(conn), **at = &server->clients;

    if (!c) {
        tell(server, "%s: refused: %s", rpc_conn_peer(conn), why->text);
        return;
    }
    tell(server, "client %lld: gone: %s", (long long)c->number, why->text);
    for (session *x = server->sessions; x; x = x->next)
        if (x->client == c) {
            x->client = NULL;
            x->over = true;
            rpc_host_kill(x->host, TEC_LOST, "its client is gone");
        }
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    forget_early(c);
    rt_free(c);
    if (server->o.once && server->had_session && !server->clients && !server->draining)
        rpc_server_drain(server);
}

static const rpc_events events = {
    .ready = on_ready, .frame = on_frame, .arrived = on_room, .written = on_room, .closed = on_closed};

/* ---- the server ---- */

/* Fills in the defaults, reads the keys and looks for devices; a server without a usable key does not start.
 *
 * Listening starts later, by on_list_ended. */
rpc_server *rpc_server_new(rpc_loop *loop, const rpc_server_options *options, tec_error *err)
{
    rpc_server *server = rt_alloc(sizeof *server, err);
    struct stat file;

    if (!server)
        return NULL;
    server->loop = loop;
    server->o = *options;
    server->o.most_sessions = options->most_sessions ? options->most_sessions : SESSIONS;
    server->o.memory_bytes = options->memory_bytes ? options->memory_bytes : (int64_t)4 << 30;
    server->o.seconds = options->seconds > 0 ? options->seconds : 600;
    server->o.output_bytes = options->output_bytes ? options->output_bytes : OUTPUT;
    server->o.drain_seconds = options->drain_seconds > 0 ? options->drain_seconds : 30;
    server->conn = (rpc_conn_options){.link = {.find = find_key, .user = server, .program = "rpc_server"},
                                      .events = &events,
                                      .user = server};
    rpc_host_sweep(options->folder);
    bool good = (!options->device_class || rpc_check_classes(options->device_class, err)) &&
                rpc_keys_read(&server->keys, options->key_file, err);
    if (good && stat(options->key_file, &file) == 0)
        server->keys_of = file.st_mtim;
    good = good && (rpc_keys_pick(&server->keys, NULL, err) != NULL) && look_for_devices(server, err);
    if (good)
        return server;
    rpc_keys_free(&server->keys);
    rt_free(server);
    return NULL;
}

const tec_error *rpc_server_error(const rpc_server *server)
{
    return &server->why;
}

/* What the loop's end left: clients whose sessions were ending, and sessions that waited for a lease. */
void rpc_server_free(rpc_server *server)
{
    if (!server)
        return;
    while (server->clients) {
        client *next = server->clients->next;

        rt_free(server->clients);
        server->clients = next;
    }
    while (server->early) {
        early *next = server->early->next;

        rt_free(server->early);
        server->early = next;
    }
    rpc_member_free(server->member);
    rt_arena_free(&server->offered);
    rpc_keys_free(&server->keys);
    rt_free(server->list);
    rt_free(server);
}
