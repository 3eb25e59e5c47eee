/* rpc/server/sessions.c -- sessions as their clients see them: opened, asked, answered, ended.
 *
 * Of what a client sends for a session, `open`, `close` and the label of `measure` are read here; of
 * everything else the server knows the kind, the length and the stream, so a damaged question meets no code
 * of the server. Of what the session's process answers, failures are read for the log.
 */
#include <stdio.h>
#include <string.h>

#include "rpc/server/offer.h"
#include "rpc/server/serving.h"
#include "runtime/alloc.h"

enum { MOST_WAITING_OUTPUT = 1 << 22 };
enum { EARLY_MS = 3000 }; /* how long a session waits for its lease to become known */

/* The session must be in the list. */
static void leave(rpc_hosted *self)
{
    rpc_hosted **at = &self->server->sessions;

    while (*at != self)
        at = &(*at)->next;
    *at = self->next;
    self->server->n_sessions--;
}

/* Answers an `open`, and logs it. The stream was opened by the client's frame, so it must be closed again, or
 * the client would run out of streams. */
static void refuse(rpc_client *peer, uint32_t stream, const char *device, tec_status status, const char *text)
{
    rpc_tell(peer->server, "client %lld: refused 'open' of %.40s: %s", (long long)peer->number, device, text);
    rpc_conn_send(peer->conn, stream, RPC_KIND_failure,
                  &(rpc_failure){.status = status, .text = text, .fatal = 1, .output = ""});
    rpc_link_close_stream(rpc_conn_link(peer->conn), stream);
}

/* Ends the stream: a session's process, if it is still there, speaks to nobody. */
static void tell_end(rpc_hosted *self, const rpc_host_end *end)
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

/* Logs what was refused, or failed, and why. The body comes from a process that is not trusted: the decoder
 * takes damaged bodies, and the log no line breaks. */
static void log_failure(const rpc_hosted *self, const uint8_t *body, size_t size)
{
    const rpc_message *asked = rpc_find_message((uint32_t)rpc_host_asked(self->host));
    const rpc_link *link = rpc_conn_link(self->client->conn);
    rt_arena arena = {0};
    rpc_any m;
    bool good = rpc_decode(&m, RPC_KIND_failure, body, size, rpc_link_version(link), &arena);

    rpc_tell(self->server, "session %lld: '%s' failed: %s", (long long)self->number,
             asked ? asked->record->name : "open", good ? m.failure.text : "the answer cannot be decoded");
    rt_arena_free(&arena);
}

/* Hands an answer of the session's process on to its client; false: not now, as the client does not read. A
 * data message must fit the window of the stream; other answers only must not pile up in the connection's
 * output. */
static bool on_answer(void *user, rpc_kind kind, const uint8_t *body, size_t size)
{
    rpc_hosted *x = user;
    rpc_conn *conn = x->client ? x->client->conn : NULL;

    if (x->over || !conn)
        return true;
    bool full = rpc_conn_waiting(conn) > MOST_WAITING_OUTPUT;
    if (full || (kind == RPC_KIND_data && rpc_link_may_send(rpc_conn_link(conn), x->stream) < size))
        return false;
    if (kind == RPC_KIND_failure)
        log_failure(x, body, size);
    rpc_link_send_body(rpc_conn_link(conn), x->stream, kind, body, size);
    rpc_conn_flush(conn);
    if (kind != RPC_KIND_data)
        x->requests++;
    if (kind == RPC_KIND_measured && x->measuring) {
        x->measuring = false;
        rpc_tell(x->server, "session %lld: has measured", (long long)x->number);
    }
    if (kind == RPC_KIND_closed) {
        x->over = true;
        rpc_link_close_stream(rpc_conn_link(conn), x->stream);
    }
    return true;
}

/* The process has read n bytes: the client may send as many more. */
static void on_taken(void *user, size_t n)
{
    rpc_hosted *x = user;

    if (!x->over && x->client && x->client->conn)
        rpc_conn_consumed(x->client->conn, x->stream, n);
}

/* The session's process is gone: its client learns the cause, unless the session was over already. */
static void on_ended(void *user, const rpc_host_end *self)
{
    rpc_hosted *x = user;
    rpc_server *server = x->server;
    rpc_host_end end = *self;

    if (end.status == TEC_OK && !x->over) {
        end.status = TEC_CRASHED;
        end.text = "this session's process ended by itself";
    }
    rpc_tell(server, "session %lld: over after %lld answers%s%s%s%s", (long long)x->number,
             (long long)x->requests, end.status != TEC_OK ? ": " : "", end.status != TEC_OK ? end.text : "",
             *end.output ? "; it printed: " : "", end.output);
    tell_end(x, &end);
    leave(x);
    rt_free(x);
    rpc_stop_when_idle(server);
}

static void on_tells(void *user, const char *text)
{
    const rpc_hosted *x = user;

    rpc_tell(x->server, "session %lld: %s", (long long)x->number, text);
}

static const rpc_host_events session_events = {on_answer, on_taken, on_ended, on_tells};

rpc_host_options rpc_host_options_of(const rpc_server *server, const rpc_host_events *events, void *user)
{
    return (rpc_host_options){.session = {.memory_bytes = server->o.memory_bytes,
                                          .seconds = server->o.seconds,
                                          .weak = server->o.weak_sandbox,
                                          .version = RPC_NEWEST,
                                          .piece = RPC_PIECE},
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
    return *name && strlen(name) < sizeof((rpc_hosted *)0)->device &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789:_-")] && strcmp(name, "list") != 0;
}

/* The limits of the client and of the server: the smaller one counts. A client's zero means no wish. `piece`
 * must fit a frame of the client, as bodies are passed on uncut. */
static void set_limits(rpc_session_options *options, const rpc_server *server, const rpc_open *message,
                       rpc_client *peer)
{
    size_t most = rpc_link_max_body(rpc_conn_link(peer->conn));

    if (message->memory_bytes > 0 && message->memory_bytes < server->o.memory_bytes)
        options->memory_bytes = message->memory_bytes;
    if (message->seconds > 0 && message->seconds < server->o.seconds)
        options->seconds = message->seconds;
    options->version = rpc_link_version(rpc_conn_link(peer->conn));
    options->piece = most < RPC_PIECE ? (int64_t)most : RPC_PIECE;
}

/* Starts the process of a session that may be. */
static void start_session(rpc_client *peer, uint32_t stream, const rpc_open *message)
{
    rpc_server *server = peer->server;
    tec_error err = {0};
    rpc_hosted *x = rt_alloc(sizeof *x, &err);

    if (!x) {
        refuse(peer, stream, message->device, TEC_NO_MEMORY, err.text);
        return;
    }
    *x = (rpc_hosted){.server = server,
                      .client = peer,
                      .stream = stream,
                      .number = ++server->n_sessions_ever,
                      .lease = message->lease};
    snprintf(x->device, sizeof x->device, "%s", message->device);
    rpc_host_options o = rpc_host_options_of(server, &session_events, x);
    o.number = x->number;
    o.session.device = x->device;
    set_limits(&o.session, server, message, peer);
    x->host = rpc_host_start(server->loop, &o, &err);
    if (!x->host) {
        refuse(peer, stream, message->device, err.status, err.text);
        rt_free(x);
        return;
    }
    x->next = server->sessions;
    server->sessions = x;
    server->n_sessions++;
    server->had_session = true;
    rpc_tell(server, "session %lld: opened on %s by client %lld, '%.100s'", (long long)x->number, x->device,
             (long long)peer->number, message->label);
}

/* Why a session cannot be had now, with its status; NULL: it can. */
static const char *find_fault(const rpc_client *peer, const rpc_open *message, tec_status *status)
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
static void wait_for_lease(rpc_client *peer, uint32_t stream, const rpc_open *message)
{
    rpc_server *server = peer->server;
    rpc_early *e = rt_alloc(sizeof *e, NULL);

    if (!e) {
        refuse(peer, stream, message->device, TEC_NO_MEMORY, "the server has no memory for another session");
        return;
    }
    *e = (rpc_early){.client = peer,
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
static void open_session(rpc_client *peer, uint32_t stream, const rpc_open *message)
{
    rpc_server *server = peer->server;
    tec_status status;
    const char *fault = find_fault(peer, message, &status);

    if (fault)
        refuse(peer, stream, message->device, status, fault);
    else if (server->member && !rpc_member_admits(server->member, message->device, message->lease,
                                                  rpc_link_id(rpc_conn_link(peer->conn))))
        wait_for_lease(peer, stream, message);
    else
        start_session(peer, stream, message);
}

/* Opens the sessions whose leases are known now, and refuses those that have waited too long. */
void rpc_look_at_early(void *user)
{
    rpc_server *server = user;
    char text[200];

    for (rpc_early **at = &server->early; *at;) {
        rpc_early *e = *at;
        rpc_client *c = e->client;
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
            refuse(c, e->stream, e->device, TEC_DENIED, text);
        }
        rt_free(e);
    }
}

/* A lease is over: so are its sessions, no matter who uses them. */
void rpc_end_lease(void *user, int64_t lease)
{
    rpc_server *server = user;
    char text[100];

    snprintf(text, sizeof text, "lease %lld of this session is over", (long long)lease);
    for (rpc_hosted *x = server->sessions; x; x = x->next)
        if (x->lease == lease && !x->over) {
            tell_end(x, &(rpc_host_end){TEC_DENIED, 0, text, ""});
            rpc_host_kill(x->host, TEC_DENIED, text);
        }
}

static rpc_hosted *find_session(const rpc_client *peer, uint32_t stream)
{
    for (rpc_hosted *x = peer->server->sessions; x; x = x->next)
        if (x->client == peer && x->stream == stream && !x->over)
            return x;
    return NULL;
}

/* A cancel: a question at work is answered by a failure, an idle session by `closed`. Either way the client
 * is answered before the process is dead, as a computation may take long to be ended. */
static void close_now(rpc_hosted *self)
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

/* Each run of a tuner's trial is a line in the log before it begins: what was executed can be compared with
 * what was stored, also where this server is killed meanwhile. */
static void log_run(rpc_hosted *self, const rpc_measure *message)
{
    if (!*message->label)
        return;
    self->measuring = true;
    rpc_tell(self->server, "session %lld: measures '%.100s'", (long long)self->number, message->label);
}

/* What the server itself has to do with a message; false: the message goes no further. A second `open` on one
 * stream breaks the protocol, and its connection ends. */
static bool take_own(rpc_client *peer, rpc_hosted *self, const rpc_frame *frame, const rpc_any *message)
{
    if (frame->kind == RPC_KIND_open && self)
        rpc_conn_close(peer->conn, TEC_PROTOCOL, "a session was opened twice");
    else if (frame->kind == RPC_KIND_open)
        open_session(peer, frame->stream, &message->open);
    else if (self && frame->kind == RPC_KIND_close && message->close.now)
        close_now(self);
    else {
        if (self && frame->kind == RPC_KIND_measure)
            log_run(self, &message->measure);
        return true;
    }
    return false;
}

/* `close` with now = 0 goes to the process, which answers when it has done everything asked before. */
void rpc_on_session_frame(rpc_client *peer, const rpc_frame *frame)
{
    rpc_hosted *x = find_session(peer, frame->stream);
    bool own =
        frame->kind == RPC_KIND_open || frame->kind == RPC_KIND_close || frame->kind == RPC_KIND_measure;
    rt_arena arena = {0};
    rpc_any m;
    bool good = !own || rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n,
                                   rpc_link_version(rpc_conn_link(peer->conn)), &arena);
    bool go_on = good && (!own || take_own(peer, x, frame, &m));

    rt_arena_free(&arena);
    if (!good)
        rpc_conn_close(peer->conn, TEC_PROTOCOL, "a message cannot be decoded");
    else if (go_on && x && !rpc_host_question(x->host, frame->kind, frame->body, frame->n))
        rpc_host_kill(x->host, TEC_REFUSED, "too many questions wait for their answers");
}

/* ---- the end of a client, and of all ---- */

static void forget_early(const rpc_client *peer)
{
    for (rpc_early **at = &peer->server->early; *at;) {
        rpc_early *e = *at;

        if (e->client == peer) {
            *at = e->next;
            rt_free(e);
        } else
            at = &e->next;
    }
}

/* Their processes are killed, and tell nobody. */
void rpc_orphan_sessions(const rpc_client *peer)
{
    forget_early(peer);
    for (rpc_hosted *x = peer->server->sessions; x; x = x->next)
        if (x->client == peer) {
            x->client = NULL;
            x->over = true;
            rpc_host_kill(x->host, TEC_LOST, "its client is gone");
        }
}

/* Each session is tried: which of them waits for the connection is not recorded. */
void rpc_resume_sessions(const rpc_client *peer)
{
    for (rpc_hosted *x = peer->server->sessions, *next; x; x = next) {
        next = x->next;
        if (x->client == peer && x->host)
            rpc_host_resume(x->host);
    }
}

/* Each session ends by on_ended later: the list does not change under this loop. */
void rpc_kill_sessions(void *user)
{
    rpc_server *s = user;

    for (rpc_hosted *x = s->sessions; x; x = x->next)
        rpc_host_kill(x->host, TEC_REFUSED, "the server ends");
    if (s->lister)
        rpc_host_kill(s->lister, TEC_REFUSED, "the server ends");
}
