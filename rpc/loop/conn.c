/* rpc/loop/conn.c -- one connection: from dialling or accepting, over reading and writing, to its end.
 *
 * Whatever ends a connection sets `why` and the state RPC_ENDING; the handles are closed before the loop
 * sleeps, and `closed` is called when libuv has closed the last of them. So no call of this header frees a
 * connection under its caller.
 *
 *     RPC_DIALLING -> RPC_OPEN -> RPC_FINISHING -> RPC_ENDING -> RPC_CLOSING -> `closed`, freed
 *         '------------------------------------------^
 *
 * Finishing writes out what is waiting and takes nothing new; ending is one last attempt to write; closing
 * waits for libuv. All work is done in rpc_conn_settle, once for each turn of the loop: a handler that sends
 * a hundred messages causes one write, and a handler may end any connection, its own among them, without
 * asking who is using it.
 */
#include <stdio.h>
#include <string.h>

#include "rpc/loop/inside.h"
#include "runtime/error.h"

enum {
    HANDSHAKE_MS = 10000,
    PING_MS = 15000,
    SILENT_MS = 45000,
    MOST_WRITTEN = 1 << 18,
    SPARE_REFUSALS = 64,
    MOST_FORWARDED =
        1 << 20 /* bytes that wait at one of two joined connections before the other one is not read */
};

static bool is_alive(const rpc_conn *conn)
{
    return conn->state <= RPC_FINISHING;
}

void rpc_conn_mark(rpc_conn *conn)
{
    if (conn->is_dirty || conn->state == RPC_CLOSING)
        return;
    conn->is_dirty = true;
    conn->next_dirty = conn->loop->dirty;
    conn->loop->dirty = conn;
}

/* The first reason is the one that is told. */
static void end(rpc_conn *conn, tec_status status, const char *why)
{
    if (!is_alive(conn))
        return;
    conn->why.status = status;
    snprintf(conn->why.text, sizeof conn->why.text, "%s", why);
    conn->state = RPC_ENDING;
    rpc_conn_part(conn);
    rpc_conn_mark(conn);
}

/* ---- the end ---- */

/* A listener counts its connections, and lives as long as one of them. */
static void leave_lists(rpc_conn *conn)
{
    if (conn->before)
        conn->before->next = conn->next;
    else
        conn->loop->conns = conn->next;
    if (conn->next)
        conn->next->before = conn->before;
    if (conn->listener) {
        conn->listener->taken--;
        rpc_release_listener(conn->listener);
    }
}

/* Tells the owner and frees, once no handle and no request of the connection is left. Called as each of the
 * handles and the look-up is over, in any order; the last call does the work. `timer.data` is NULL once the
 * timer is closed. */
static void finish(rpc_conn *conn)
{
    if (conn->has_tcp || conn->timer.data || conn->looking_up)
        return;
    leave_lists(conn);
    conn->events->closed(conn, &conn->why);
    rpc_link_free(conn->link);
    uv_freeaddrinfo(conn->addresses);
    rt_free(conn->writing);
    rt_free(conn->address);
    rt_free(conn);
}

static void on_tcp_closed(uv_handle_t *handle)
{
    rpc_conn *c = handle->data;

    c->has_tcp = false;
    finish(c);
}

static void on_timer_closed(uv_handle_t *handle)
{
    rpc_conn *c = handle->data;

    handle->data = NULL;
    finish(c);
}

/* A look-up cannot be closed, only cancelled: on_looked_up comes in any case. With `retrying` the handle is
 * being closed already. */
static void close_handles(rpc_conn *conn)
{
    conn->state = RPC_CLOSING;
    if (conn->looking_up)
        uv_cancel((uv_req_t *)&conn->lookup);
    if (conn->has_tcp && !conn->retrying)
        uv_close((uv_handle_t *)&conn->tcp, on_tcp_closed);
    uv_close((uv_handle_t *)&conn->timer, on_timer_closed);
}

/* TEC_OK means an end in order, for which output is still written; while dialling there is none. */
void rpc_conn_close(rpc_conn *conn, tec_status status, const char *why)
{
    if (status != TEC_OK || conn->state == RPC_DIALLING) {
        end(conn, status, why);
    } else if (conn->state == RPC_OPEN) {
        conn->state = RPC_FINISHING;
        snprintf(conn->why.text, sizeof conn->why.text, "%s", why);
        rpc_conn_part(conn);
        rpc_conn_mark(conn);
    }
}

/* ---- time ---- */

static void on_time(uv_timer_t *handle);

void rpc_conn_start_clock(rpc_conn *conn, int64_t ms)
{
    uv_timer_start(&conn->timer, on_time, (uint64_t)(ms > 1 ? ms : 1), 0);
}

/* Asks a silent side whether it is there, or gives it up. A side that this one does not listen to is not
 * called silent. An example with the usual times: heard at 0, ping at 15 s, no answer, given up at 45 s. Each
 * byte that comes or is written begins anew. */
static void on_time(uv_timer_t *handle)
{
    rpc_conn *conn = handle->data;
    int64_t now = rpc_loop_now(conn->loop);
    char text[100];

    if (conn->paused)
        conn->heard_at = now;
    int64_t silent = now - conn->heard_at;
    if (!conn->was_ready) {
        snprintf(text, sizeof text, "no handshake within %g s", conn->handshake_ms / 1e3);
        end(conn, TEC_TIMEOUT, text);
    } else if (silent >= conn->silent_ms) {
        snprintf(text, sizeof text, "the other side was silent for %g s", conn->silent_ms / 1e3);
        end(conn, TEC_LOST, text);
    } else if (silent >= conn->ping_ms && !conn->asked && !conn->is_joined) {
        conn->asked = true;
        rpc_conn_send(conn, 0, RPC_KIND_ping, &(rpc_ping){now});
        rpc_conn_start_clock(conn, conn->silent_ms - silent);
    } else {
        rpc_conn_start_clock(conn,
                             (conn->asked || conn->is_joined ? conn->silent_ms : conn->ping_ms) - silent);
    }
}

/* The timer is not set anew with every byte: when it rings, on_time sees how long the silence really was. */
static void note_life(rpc_conn *conn)
{
    conn->heard_at = rpc_loop_now(conn->loop);
    if (conn->asked) { /* the timer waits for the end of the silence, which is over */
        conn->asked = false;
        rpc_conn_start_clock(conn, conn->ping_ms);
    }
}

/* ---- reading ---- */

/* The link knows the reason. */
static void end_broken(rpc_conn *conn)
{
    const tec_error *e = rpc_link_error(conn->link);

    end(conn, e->status, e->text);
}

/* Answers a ping by itself; all else is the owner's. */
static void hand_on(rpc_conn *conn, const rpc_frame *frame)
{
    rt_arena arena = {0};
    rpc_any m;

    if (frame->kind == RPC_KIND_ping) {
        if (rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n, rpc_link_version(conn->link),
                       &arena))
            rpc_conn_send(conn, 0, RPC_KIND_pong, &(rpc_pong){m.ping.number});
        else
            end(conn, TEC_PROTOCOL, "message 'ping' cannot be decoded");
        rt_arena_free(&arena);
    } else if (frame->kind != RPC_KIND_pong && conn->events->frame) {
        conn->events->frame(conn, frame);
    }
}

/* Hands on the frames that have come whole. The owner hears of the end of the handshake before the first
 * frame. The owner may pause or end the connection in any of its calls, so both are asked for again after
 * each of them. `arrived` comes once for all frames: windows may have opened among them. */
static void deliver(rpc_conn *conn)
{
    rpc_event event = RPC_FRAME;
    rpc_frame f;

    if (conn->is_joined) {
        rpc_conn_forward(conn);
        return;
    }
    while (event == RPC_FRAME && is_alive(conn) && !conn->paused) {
        event = rpc_link_next(conn->link, &f);
        if (!conn->was_ready && rpc_link_ready(conn->link)) {
            conn->was_ready = true;
            note_life(conn);
            rpc_conn_start_clock(conn, conn->ping_ms);
            if (conn->events->ready)
                conn->events->ready(conn);
        }
        if (event == RPC_FRAME && is_alive(conn))
            hand_on(conn, &f);
        if (conn->is_joined) {
            rpc_conn_forward(conn);
            return;
        }
    }
    if (event == RPC_BROKEN && is_alive(conn))
        end_broken(conn);
    if (conn->was_ready && is_alive(conn) && conn->events->arrived)
        conn->events->arrived(conn);
    rpc_conn_mark(conn);
}

/* At most a megabyte at once, so that one fast connection does not keep the others waiting. */
static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    rpc_conn *c = handle->data;
    size_t size = 0;
    uint8_t *at = is_alive(c) ? rpc_link_room(c->link, &size) : NULL;

    (void)suggested;
    *buf = uv_buf_init((char *)at, (unsigned)(size < 1 << 20 ? size : 1 << 20));
}

/* Bytes, the end of the connection, or an error: bytes go to the link, the rest ends the connection. */
static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    rpc_conn *conn = stream->data;
    char text[160];

    (void)buf;
    if (size > 0) {
        note_life(conn);
        rpc_link_received(conn->link, (size_t)size);
        deliver(conn);
    } else if (size == UV_EOF) {
        end(conn, TEC_LOST,
            conn->was_ready ? "the other side closed the connection"
                            : "the other side closed the connection before the handshake was done");
    } else if (size == UV_ENOBUFS) {
        end_broken(conn);
    } else if (size < 0) {
        snprintf(text, sizeof text, "the connection failed: %s", uv_strerror((int)size));
        end(conn, TEC_LOST, text);
    }
}

/* A side that does not read its answers gets no more of its questions read: otherwise output would grow
 * without bound. */
static void start_or_stop_reading(rpc_conn *conn)
{
    bool choked = conn->twin && rpc_conn_waiting(conn->twin) > MOST_FORWARDED;
    bool wanted = is_alive(conn) && !conn->paused && !choked && rpc_conn_waiting(conn) <= RPC_MOST_OUTPUT;

    if (wanted == conn->reading)
        return;
    conn->reading = wanted;
    if (wanted)
        uv_read_start((uv_stream_t *)&conn->tcp, give_room, on_read);
    else
        uv_read_stop((uv_stream_t *)&conn->tcp);
}

void rpc_conn_pause(rpc_conn *conn, bool paused)
{
    conn->paused = paused;
    rpc_conn_mark(conn);
}

/* ---- writing ---- */

/* The kernel took bytes, so the other side took some before: that counts as a sign of life. */
static void on_written(uv_write_t *request, int status)
{
    rpc_conn *conn = request->handle->data;

    conn->is_writing = false;
    conn->n_writing = 0;
    rt_free(conn->writing);
    conn->writing = NULL;
    if (status == 0)
        conn->heard_at = rpc_loop_now(conn->loop);
    else if (status != UV_ECANCELED)
        end(conn, TEC_LOST, "the other side takes no more bytes");
    rpc_conn_mark(conn);
}

/* The system takes no more now: libuv writes a copy when the system does, because the link's output moves.
 * Only one such write is under way at a time, and only of so many bytes that its copy stays small. */
static void write_later(rpc_conn *conn, const uint8_t *out, size_t size)
{
    size = size < MOST_WRITTEN ? size : MOST_WRITTEN;
    conn->writing = rt_alloc(size, NULL);
    if (!conn->writing) {
        end(conn, TEC_NO_MEMORY, "no memory for output");
        return;
    }
    memcpy(conn->writing, out, size);
    conn->n_writing = size;
    rpc_link_sent(conn->link, size);
    uv_buf_t buf = uv_buf_init((char *)conn->writing, (unsigned)size);
    conn->is_writing = uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &buf, 1, on_written) == 0;
    if (!conn->is_writing)
        end(conn, TEC_LOST, "the other side takes no more bytes");
}

/* Writes as much of the link's output as the system takes now, straight from the link's memory; the rest
 * waits in a write request. A connection that ends gets one attempt, so that its last word (why a key is
 * refused) usually arrives. */
static void write_output(rpc_conn *conn)
{
    const uint8_t *out;
    size_t n;

    while (!conn->is_writing && (out = rpc_link_output(conn->link, &n), n) && conn->state != RPC_CLOSING) {
        uv_buf_t buf = uv_buf_init((char *)(uintptr_t)out, (unsigned)(n < 1 << 30 ? n : 1 << 30));
        int done = uv_try_write((uv_stream_t *)&conn->tcp, &buf, 1);

        conn->told_written = false;
        if (done > 0)
            rpc_link_sent(conn->link, (size_t)done);
        else if (conn->state == RPC_ENDING)
            return; /* this was the last attempt */
        else if (done == UV_EAGAIN)
            write_later(conn, out, n);
        else
            end(conn, TEC_LOST, "the other side takes no more bytes");
    }
}

/* The bytes of the link's output and of the write request that is under way. */
size_t rpc_conn_waiting(const rpc_conn *conn)
{
    size_t n;

    rpc_link_output(conn->link, &n);
    return n + conn->n_writing;
}

/* ---- before the loop sleeps ---- */

/* Writes, closes, and starts or stops reading, as the state of the connection wants it now. Everything else
 * only changes that state and marks the connection. `written` is told once for each time that the output runs
 * empty, and may fill it again: the connection is then marked anew and settled in the next turn. */
void rpc_conn_settle(rpc_conn *conn)
{
    if (conn->state == RPC_DIALLING || conn->state == RPC_CLOSING)
        return;
    if (!conn->talking) { /* dialling failed, or was given up */
        close_handles(conn);
        return;
    }
    write_output(conn);
    if (conn->state == RPC_FINISHING && !rpc_conn_waiting(conn))
        conn->state = RPC_ENDING;
    if (conn->state == RPC_ENDING) {
        close_handles(conn);
        return;
    }
    start_or_stop_reading(conn);
    if (conn->twin && conn->twin->state == RPC_OPEN)
        start_or_stop_reading(conn->twin);
    if (!rpc_conn_waiting(conn) && !conn->told_written) {
        conn->told_written = true;
        if (conn->was_ready && conn->events->written)
            conn->events->written(conn);
    }
}

/* ---- making ---- */

/* A connection with its link, whose handles are open and whose handshake is timed. The caller says how it
 * came to be. From here on only `finish` frees the connection, as its handles belong to the loop. `events`
 * must not be called before the caller has returned. */
static rpc_conn *new_conn(rpc_loop *loop, const rpc_conn_options *options, const rpc_link_options *link,
                          tec_error *err)
{
    rpc_conn *conn = rt_alloc(sizeof *conn, err);

    if (!conn)
        return NULL;
    conn->link = rpc_link_new(link, err);
    if (!conn->link) {
        rt_free(conn);
        return NULL;
    }
    conn->loop = loop;
    conn->events = options->events;
    conn->user = options->user;
    conn->told_written = true;
    conn->handshake_ms = options->handshake_ms ? options->handshake_ms : HANDSHAKE_MS;
    conn->ping_ms = options->ping_ms ? options->ping_ms : PING_MS;
    conn->silent_ms = options->silent_ms ? options->silent_ms : SILENT_MS;
    uv_timer_init(&loop->uv, &conn->timer);
    uv_tcp_init(&loop->uv, &conn->tcp);
    conn->has_tcp = true;
    conn->timer.data = conn->tcp.data = conn;
    conn->next = loop->conns;
    if (conn->next)
        conn->next->before = conn;
    loop->conns = conn;
    rpc_conn_start_clock(conn, conn->handshake_ms);
    return conn;
}

/* Messages are short and wait for answers, so nothing is gained by collecting them (TCP_NODELAY). */
static void begin_talk(rpc_conn *conn)
{
    struct sockaddr_storage sa;
    int size = sizeof sa;

    uv_tcp_nodelay(&conn->tcp, 1);
    if (uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&sa, &size) == 0)
        rpc_show_address((struct sockaddr *)&sa, conn->peer, sizeof conn->peer);
    conn->state = RPC_OPEN;
    conn->talking = true;
    rpc_conn_mark(conn);
}

static void on_refused(uv_handle_t *handle)
{
    rt_free(handle);
}

/* One connection beyond all limits is closed without a word. libuv offers the next connection only after this
 * one was accepted. */
static void turn_away(rpc_listener *listener)
{
    uv_tcp_t *tcp = rt_alloc(sizeof *tcp, NULL);

    if (!tcp)
        return;
    uv_tcp_init(&listener->loop->uv, tcp);
    uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)tcp);
    uv_close((uv_handle_t *)tcp, on_refused);
}

/* A connection beyond `most` still gets a link: its handshake answers that the server is full. The
 * connections that are only told so are bounded as well: SPARE_REFUSALS of them. */
void rpc_accept(rpc_listener *listener)
{
    rpc_link_options link = listener->o.link;
    rpc_conn *conn;

    link.full = link.full || listener->taken >= listener->o.most;
    if (listener->taken >= listener->o.most + SPARE_REFUSALS ||
        !(conn = new_conn(listener->loop, &listener->o, &link, NULL))) {
        turn_away(listener);
        return;
    }
    conn->listener = listener;
    listener->taken++;
    listener->refs++;
    if (uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&conn->tcp) == 0)
        begin_talk(conn);
    else {
        conn->state = RPC_OPEN;
        end(conn, TEC_LOST, "the other side was gone before it was answered");
    }
}

/* ---- dialling ---- */

static void dial_next(rpc_conn *conn, int error);

/* The states tell a caller whether to try again: refused means that nobody listens there now. */
static void end_dialling(rpc_conn *conn, int error)
{
    char text[400];

    snprintf(text, sizeof text, "cannot connect to %s: %s", conn->address, uv_strerror(error));
    end(conn, error == UV_ECONNREFUSED ? TEC_REFUSED : error == UV_ETIMEDOUT ? TEC_TIMEOUT : TEC_LOST, text);
}

/* A connection that was given up meanwhile is closed by rpc_conn_settle. */
static void on_connected(uv_connect_t *request, int status)
{
    rpc_conn *conn = request->handle->data;

    if (!is_alive(conn))
        return;
    if (status == 0)
        begin_talk(conn);
    else
        dial_next(conn, status);
}

/* The handle of an attempt that failed is closed: the next attempt, or the end, follows. A TCP handle whose
 * connection failed cannot be used again, so each attempt has a fresh one. */
static void on_attempt_closed(uv_handle_t *handle)
{
    rpc_conn *conn = handle->data;

    conn->has_tcp = conn->retrying = false;
    if (!is_alive(conn)) {
        finish(conn);
        return;
    }
    uv_tcp_init(&conn->loop->uv, &conn->tcp);
    conn->tcp.data = conn;
    conn->has_tcp = true;
    const struct sockaddr *sa = conn->next_address->ai_addr;
    conn->next_address = conn->next_address->ai_next;
    int rc = uv_tcp_connect(&conn->connect, &conn->tcp, sa, on_connected);
    if (rc)
        dial_next(conn, rc);
}

/* The error of the last address is the one that is told. */
static void dial_next(rpc_conn *conn, int error)
{
    if (conn->next_address) {
        conn->retrying = true;
        uv_close((uv_handle_t *)&conn->tcp, on_attempt_closed);
    } else
        end_dialling(conn, error);
}

/* The name has addresses, or has none. The addresses are tried in their order, because `localhost` often
 * names two and a server listens at one. Freed by uv_freeaddrinfo in `finish`, since the next attempts need
 * the list. */
static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    rpc_conn *conn = request->data;

    conn->looking_up = false;
    conn->addresses = found;
    if (conn->state == RPC_CLOSING) {
        finish(conn);
        return;
    }
    if (!is_alive(conn))
        return;
    if (status) {
        end_dialling(conn, status);
        return;
    }
    conn->next_address = found->ai_next;
    int rc = uv_tcp_connect(&conn->connect, &conn->tcp, found->ai_addr, on_connected);
    if (rc)
        dial_next(conn, rc);
}

/* Starts a look-up, whose end starts the connection; a failure that is known now is told by `closed` as
 * well. */
rpc_conn *rpc_dial(rpc_loop *loop, const char *address, const rpc_conn_options *options, tec_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char host[256], service[8];
    int port;

    if (!rpc_split_address(address, host, &port, err))
        return NULL;
    char *copy = rt_strdup(address, err);
    rpc_conn *conn = copy ? new_conn(loop, options, &options->link, err) : NULL;
    if (!conn) {
        rt_free(copy);
        return NULL;
    }
    conn->address = copy;
    conn->state = RPC_DIALLING;
    conn->lookup.data = conn;
    snprintf(conn->peer, sizeof conn->peer, "%s", address);
    snprintf(service, sizeof service, "%d", port);
    int rc = uv_getaddrinfo(&loop->uv, &conn->lookup, on_looked_up, host, service, &hints);
    conn->looking_up = rc == 0;
    if (rc)
        end_dialling(conn, rc);
    return conn;
}

/* ---- asking and sending ---- */

void *rpc_conn_user(const rpc_conn *conn)
{
    return conn->user;
}

void rpc_conn_set_user(rpc_conn *conn, void *user)
{
    conn->user = user;
}

rpc_link *rpc_conn_link(const rpc_conn *conn)
{
    return conn->link;
}

const char *rpc_conn_peer(const rpc_conn *conn)
{
    return conn->peer;
}

void rpc_conn_host(const rpc_conn *conn, char *to, size_t size)
{
    const char *colon = strrchr(conn->peer, ':');

    snprintf(to, size, "%.*s", colon ? (int)(colon - conn->peer) : 0, conn->peer);
}

/* False while dialling too: nothing is queued before the handshake. */
bool rpc_conn_send(rpc_conn *conn, uint32_t stream, rpc_kind kind, const void *message)
{
    bool sent = conn->state == RPC_OPEN && rpc_link_send(conn->link, stream, kind, message);

    rpc_conn_mark(conn);
    return sent;
}

bool rpc_conn_send_piece(rpc_conn *conn, uint32_t stream, const void *piece, size_t n)
{
    bool sent = conn->state == RPC_OPEN && rpc_link_send_piece(conn->link, stream, piece, n);

    rpc_conn_mark(conn);
    return sent;
}

void rpc_conn_consumed(rpc_conn *conn, uint32_t stream, size_t n)
{
    if (is_alive(conn))
        rpc_link_consumed(conn->link, stream, n);
    rpc_conn_mark(conn);
}

void rpc_conn_flush(rpc_conn *conn)
{
    rpc_conn_mark(conn);
}
