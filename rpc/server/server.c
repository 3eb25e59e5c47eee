/* rpc/server/server.c -- see server.h: the server's life, its keys, its place in a pool, its clients. */
#include "rpc/server/server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/server/offer.h"
#include "rpc/server/serving.h"
#include "runtime/alloc.h"

enum { SESSIONS = 4, OUTPUT = 1 << 20 };
enum { EARLY_EVERY_MS = 100 }; /* how often sessions that wait for their leases are looked at */

/* ---- the log ---- */

/* One line; what a client wrote cannot begin another one. */
void rpc_tell(const rpc_server *server, const char *fmt, ...)
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
 * of an editor locks nobody out, and the log says it. Called at each handshake and each dial, so a key that
 * is added or revoked counts for the next connection; those that are open stay. The time of the change is
 * kept even for a file that makes no sense, and is 0 for one that is gone, so that the log says it once. */
static void refresh_keys(rpc_server *server)
{
    struct stat now;
    rpc_keys fresh;
    tec_error err = {0};

    if (stat(server->o.key_file, &now) != 0) {
        if (server->keys_of.tv_sec)
            rpc_tell(server, "%s: cannot be read (%s); the keys read before stay in force",
                     server->o.key_file, strerror(errno));
        server->keys_of = (struct timespec){0};
        return;
    }
    if (now.st_mtim.tv_sec == server->keys_of.tv_sec && now.st_mtim.tv_nsec == server->keys_of.tv_nsec)
        return;
    server->keys_of = now.st_mtim;
    if (!rpc_keys_read(&fresh, server->o.key_file, &err)) {
        rpc_tell(server, "%s; the keys read before stay in force", err.text);
        return;
    }
    rpc_keys_free(&server->keys);
    server->keys = fresh;
    rpc_tell(server, "%s: %d keys", server->o.key_file, server->keys.n);
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
void rpc_stop_when_idle(rpc_server *server)
{
    if (!server->draining || server->sessions || server->lister)
        return;
    if (server->member)
        rpc_member_leave(server->member);
    rpc_loop_stop(server->loop);
}

/* Takes no new clients or sessions, and stops once those at work have ended or the time for it is over. The
 * second call ends them at once. */
void rpc_server_drain(rpc_server *server)
{
    if (server->draining) {
        rpc_kill_sessions(server);
        return;
    }
    server->draining = true;
    rpc_tell(server, "draining: %d sessions at work", server->n_sessions);
    rpc_listener_close(server->listener);
    server->listener = NULL;
    if (server->member)
        rpc_member_drain(server->member);
    for (rpc_client *c = server->clients; c; c = c->next)
        if (c->conn && rpc_link_ready(rpc_conn_link(c->conn)))
            rpc_conn_send(c->conn, 0, RPC_KIND_goodbye, &(rpc_goodbye){"the server ends"});
    rpc_timer_start(server->loop, (int64_t)(server->o.drain_seconds * 1e3), 0, rpc_kill_sessions, server);
    rpc_stop_when_idle(server);
}

/* An error of the server itself, which its program prints at the end. */
void rpc_stop_for(rpc_server *server, tec_status status, const char *text)
{
    rt_fail(&server->why, status, "%s", text);
    rpc_server_drain(server);
    rpc_kill_sessions(server);
}

/* ---- the pool ---- */

static void log_line(void *user, const char *line)
{
    rpc_tell(user, "%s", line);
}

static int count_sessions(void *user)
{
    const rpc_server *s = user;

    return s->n_sessions;
}

/* The key that the tracker is dialled with, and dials back with: one that may serve these classes. */
static const rpc_key *pick_key(void *user, tec_error *err)
{
    rpc_server *server = user;

    refresh_keys(server);
    for (int i = 0; i < server->keys.n; i++) {
        const rpc_key_row *row = &server->keys.rows[i];
        rpc_id_text id = rpc_show_id(row->key.id);

        if (row->state != RPC_KEY_REVOKED && (row->roles & RPC_ROLE_SERVE) &&
            rpc_key_fits(server->o.device_class, row->classes) &&
            (!server->o.tracker_key || strcmp(id.text, server->o.tracker_key) == 0))
            return &row->key;
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
                            .key = pick_key,
                            .log = log_line,
                            .assigned = rpc_look_at_early,
                            .ended = rpc_end_lease,
                            .sessions = count_sessions,
                            .user = server};
    uint8_t *list = rt_arena_alloc(&server->offered, (int64_t)server->n_list, 1, err);
    rpc_any m;

    if (!list)
        return false;
    memcpy(list, server->list, server->n_list);
    set_name(server, server->listener ? rpc_listener_port(server->listener) : 0);
    if (!rpc_decode(&m, RPC_KIND_listed, list, server->n_list, RPC_NEWEST, &server->offered) ||
        !rpc_make_offer(server->o.device_class, &m.listed, &server->offered, &o.devices, &o.n_devices, err))
        return false;
    server->early_timer =
        rpc_timer_start(server->loop, EARLY_EVERY_MS, EARLY_EVERY_MS, rpc_look_at_early, server);
    server->member = server->early_timer ? rpc_member_new(server->loop, &o, err) : NULL;
    return server->member != NULL || rt_fail_memory(err, sizeof o);
}

/* The address by which this server has to do with other machines: where it listens, or its tracker, through
 * which clients come too. NULL: neither is beyond loopback. */
static const char *find_beyond_loopback(const rpc_server *server)
{
    if (server->listener && !rpc_listener_is_loopback(server->listener))
        return server->o.listen;
    return server->o.tracker && !rpc_is_loopback(server->o.tracker) ? server->o.tracker : NULL;
}

/* Opens the doors: listens, or joins a pool, or both. */
bool rpc_start_listening(rpc_server *server, tec_error *err)
{
    server->listener =
        server->o.dial_out ? NULL : rpc_listen(server->loop, server->o.listen, &server->conn, err);
    if (!server->listener && !server->o.dial_out)
        return false;
    const char *beyond = find_beyond_loopback(server);
    server->loopback = beyond == NULL;
    if (beyond && !server->o.key_file_named)
        return rt_fail(err, TEC_DENIED,
                       "%s can be reached from other machines: name the keys that may connect with "
                       "--key-file",
                       beyond);
    if (server->o.tracker && !join_pool(server, err))
        return false;
    if (server->o.ready)
        server->o.ready(server->o.user, server->listener ? rpc_listener_port(server->listener) : 0);
    return true;
}

/* ---- clients ---- */

/* By the connection, since a connection's user is the server for all of them. */
static rpc_client *client_of(rpc_conn *conn)
{
    rpc_server *s = rpc_conn_user(conn);

    for (rpc_client *x = s->clients; x; x = x->next)
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
    rpc_client *c = rt_alloc(sizeof *c, NULL);

    if (!c) {
        rpc_conn_close(conn, TEC_NO_MEMORY, "the server has no memory for another client");
        return;
    }
    *c = (rpc_client){
        .server = server, .conn = conn, .number = ++server->n_clients_ever, .next = server->clients};
    server->clients = c;
    rpc_tell(server, "client %lld: %s with key %s (%s), %s", (long long)c->number, rpc_conn_peer(conn),
             rpc_show_id(rpc_link_id(link)).text, rpc_show_roles(rpc_link_roles(link)), rpc_link_peer(link));
    if (server->draining)
        rpc_conn_send(conn, 0, RPC_KIND_goodbye, &(rpc_goodbye){"the server ends"});
}

/* Tells the client and the log why a message is not taken, and ends the connection. */
static void refuse_message(const rpc_client *peer, const rpc_frame *frame, tec_status status,
                           const char *text)
{
    rpc_tell(peer->server, "client %lld: refused '%s': %s", (long long)peer->number, frame->row->record->name,
             text);
    rpc_conn_send(peer->conn, 0, RPC_KIND_failure,
                  &(rpc_failure){.status = status, .text = text, .fatal = 1, .output = ""});
    rpc_conn_close(peer->conn, TEC_OK, text);
}

/* What is not for a server, as a request for a device: a client that took the server for a tracker would wait
 * for an answer that never comes. `goodbye` is no question. */
static void refuse_question(const rpc_client *peer, const rpc_frame *frame)
{
    if (frame->kind != RPC_KIND_goodbye)
        refuse_message(peer, frame, TEC_PROTOCOL, "this is an rpc_server, and no tracker");
}

/* A key that may open no sessions has no business with their messages either. */
static void refuse_role(const rpc_client *peer, const rpc_frame *frame)
{
    char text[200];

    snprintf(text, sizeof text, "key %s may not send '%s': it lacks the role '%s'",
             rpc_show_id(rpc_link_id(rpc_conn_link(peer->conn))).text, frame->row->record->name,
             rpc_show_roles(frame->row->roles));
    refuse_message(peer, frame, TEC_DENIED, text);
}

/* Frames of a stream belong to its session; on stream 0 a client may only ask what the server offers. A list
 * that is to be refreshed is answered by on_list_ended; all who asked meanwhile share one look. */
static void on_frame(rpc_conn *conn, const rpc_frame *frame)
{
    rpc_client *c = client_of(conn);
    rt_arena arena = {0};
    rpc_any m;

    if (!c)
        return;
    if (rpc_link_lacks_role(rpc_conn_link(conn), frame) && frame->kind != RPC_KIND_open &&
        frame->kind < RPC_KIND_announce) {
        refuse_role(c, frame);
        return;
    }
    if (frame->stream) {
        rpc_on_session_frame(c, frame);
        return;
    }
    if (frame->kind != RPC_KIND_list) {
        refuse_question(c, frame);
        return;
    }
    if (!rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n, rpc_link_version(rpc_conn_link(conn)),
                    &arena)) {
        rt_arena_free(&arena);
        rpc_conn_close(conn, TEC_PROTOCOL, "a message cannot be decoded");
        return;
    }
    rt_arena_free(&arena);
    c->wants_list = true;
    if (!m.list.refresh || (!c->server->lister && !rpc_look_for_devices(c->server, NULL)))
        rpc_send_list(c);
}

/* Windows or output of the connection have room again. */
static void on_room(rpc_conn *conn)
{
    rpc_client *c = client_of(conn);

    if (c)
        rpc_resume_sessions(c);
}

/* A client is gone, and its sessions go with it: their processes are killed, and tell nobody. */
static void on_closed(rpc_conn *conn, const tec_error *why)
{
    rpc_server *server = rpc_conn_user(conn);
    rpc_client *c = client_of(conn), **at = &server->clients;

    if (!c) {
        rpc_tell(server, "%s: refused: %s", rpc_conn_peer(conn), why->text);
        return;
    }
    rpc_tell(server, "client %lld: gone: %s", (long long)c->number, why->text);
    rpc_orphan_sessions(c);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
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
    good = good && (rpc_keys_pick(&server->keys, NULL, err) != NULL) && rpc_look_for_devices(server, err);
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
        rpc_client *next = server->clients->next;

        rt_free(server->clients);
        server->clients = next;
    }
    while (server->early) {
        rpc_early *next = server->early->next;

        rt_free(server->early);
        server->early = next;
    }
    rpc_member_free(server->member);
    rt_arena_free(&server->offered);
    rpc_keys_free(&server->keys);
    rt_free(server->list);
    rt_free(server);
}
