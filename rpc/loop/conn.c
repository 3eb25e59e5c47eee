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

static bool is_alive(const rpc_conn *c)
{
    return c->state <= RPC_FINISHING;
}

void rpc_conn_mark(rpc_conn *c)
{
    if (c->is_dirty || c->state == RPC_CLOSING)
        return;
    c->is_dirty = true;
    c->next_dirty = c->loop->dirty;
    c->loop->dirty = c;
}

/* The first reason is the one that is told. */
static void end(rpc_conn *c, tec_status status, const char *why)
{
    if (!is_alive(c))
        return;
    c->why.status = status;
    snprintf(c->why.text, sizeof c->why.text, "%s", why);
    c->state = RPC_ENDING;
    rpc_conn_part(c);
    rpc_conn_mark(c);
}

/* ---- the end ---- */

/* A listener counts its connections, and lives as long as one of them. */
static void leave_lists(rpc_conn *c)
{
    if (c->before)
        c->before->next = c->next;
    else
        c->loop->conns = c->next;
    if (c->next)
        c->next->before = c->before;
    if (c->listener) {
        c->listener->taken--;
        rpc_release_listener(c->listener);
    }
}

/* Tells the owner and frees, once no handle and no request of the connection is left. Called as each of the
 * handles and the look-up is over, in any order; the last call does the work. `timer.data` is NULL once the
 * timer is closed. */
static void finish(rpc_conn *c)
{
    if (c->has_tcp || c->timer.data || c->looking_up)
        return;
    leave_lists(c);
    c->events->closed(c, &c->why);
    rpc_link_free(c->link);
    uv_freeaddrinfo(c->addresses);
    rt_free(c->writing);
    rt_free(c->address);
    rt_free(c);
}

static void on_tcp_closed(uv_handle_t *h)
{
    rpc_conn *c = h->data;

    c->has_tcp = false;
    finish(c);
}

static void on_timer_closed(uv_handle_t *h)
{
    rpc_conn *c = h->data;

    h->data = NULL;
    finish(c);
}

/* A look-up cannot be closed, only cancelled: on_looked_up comes in any case. With `retrying` the handle is
 * being closed already. */
static void close_handles(rpc_conn *c)
{
    c->state = RPC_CLOSING;
    if (c->looking_up)
        uv_cancel((uv_req_t *)&c->lookup);
    if (c->has_tcp && !c->retrying)
        uv_close((uv_handle_t *)&c->tcp, on_tcp_closed);
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

/* TEC_OK means an end in order, for which output is still written; while dialling there is none. */
void rpc_conn_close(rpc_conn *c, tec_status status, const char *why)
{
    if (status != TEC_OK || c->state == RPC_DIALLING) {
        end(c, status, why);
    } else if (c->state == RPC_OPEN) {
        c->state = RPC_FINISHING;
        snprintf(c->why.text, sizeof c->why.text, "%s", why);
        rpc_conn_part(c);
        rpc_conn_mark(c);
    }
}

/* ---- time ---- */

static void on_time(uv_timer_t *handle);

void rpc_conn_start_clock(rpc_conn *c, int64_t ms)
{
    uv_timer_start(&c->timer, on_time, (uint64_t)(ms > 1 ? ms : 1), 0);
}

/* Asks a silent side whether it is there, or gives it up. A side that this one does not listen to is not
 * called silent. An example with the usual times: heard at 0, ping at 15 s, no answer, given up at 45 s. Each
 * byte that comes or is written begins anew. */
static void on_time(uv_timer_t *handle)
{
    rpc_conn *c = handle->data;
    int64_t now = rpc_loop_now(c->loop);
    char text[100];

    if (c->paused)
        c->heard_at = now;
    int64_t silent = now - c->heard_at;
    if (!c->was_ready) {
        snprintf(text, sizeof text, "no handshake within %g s", c->handshake_ms / 1e3);
        end(c, TEC_TIMEOUT, text);
    } else if (silent >= c->silent_ms) {
        snprintf(text, sizeof text, "the other side was silent for %g s", c->silent_ms / 1e3);
        end(c, TEC_LOST, text);
    } else if (silent >= c->ping_ms && !c->asked && !c->is_joined) {
        c->asked = true;
        rpc_conn_send(c, 0, RPC_KIND_ping, &(rpc_ping){now});
        rpc_conn_start_clock(c, c->silent_ms - silent);
    } else {
        rpc_conn_start_clock(c, (c->asked || c->is_joined ? c->silent_ms : c->ping_ms) - silent);
    }
}

/* The timer is not set anew with every byte: when it rings, on_time sees how long the silence really was. */
static void note_life(rpc_conn *c)
{
    c->heard_at = rpc_loop_now(c->loop);
    if (c->asked) { /* the timer waits for the end of the silence, which is over */
        c->asked = false;
        rpc_conn_start_clock(c, c->ping_ms);
    }
}

/* ---- reading ---- */

/* The link knows the reason. */
static void end_broken(rpc_conn *c)
{
    const tec_error *e = rpc_link_error(c->link);

    end(c, e->status, e->text);
}

/* Answers a ping by itself; all else is the owner's. */
static void hand_on(rpc_conn *c, const rpc_frame *f)
{
    rt_arena arena = {0};
    rpc_any m;

    if (f->kind == RPC_KIND_ping) {
        if (rpc_decode(&m, (uint32_t)f->kind, f->body, f->n, rpc_link_version(c->link), &arena))
            rpc_conn_send(c, 0, RPC_KIND_pong, &(rpc_pong){m.ping.number});
        else
            end(c, TEC_PROTOCOL, "message 'ping' is garbled");
        rt_arena_free(&arena);
    } else if (f->kind != RPC_KIND_pong && c->events->frame) {
        c->events->frame(c, f);
    }
}

/* Hands on the frames that have come whole. The owner hears of the end of the handshake before the first
 * frame. The owner may pause or end the connection in any of its calls, so both are asked for again after
 * each of them. `arrived` comes once for all frames: windows may have opened among them. */
static void deliver(rpc_conn *c)
{
    rpc_event event = RPC_FRAME;
    rpc_frame f;

    if (c->is_joined) {
        rpc_conn_forward(c);
        return;
    }
    while (event == RPC_FRAME && is_alive(c) && !c->paused) {
        event = rpc_link_next(c->link, &f);
        if (!c->was_ready && rpc_link_ready(c->link)) {
            c->was_ready = true;
            note_life(c);
            rpc_conn_start_clock(c, c->ping_ms);
            if (c->events->ready)
                c->events->ready(c);
        }
        if (event == RPC_FRAME && is_alive(c))
            hand_on(c, &f);
        if (c->is_joined) {
            rpc_conn_forward(c);
            return;
        }
    }
    if (event == RPC_BROKEN && is_alive(c))
        end_broken(c);
    if (c->was_ready && is_alive(c) && c->events->arrived)
        c->events->arrived(c);
    rpc_conn_mark(c);
}

/* At most a megabyte at once, so that one fast connection does not keep the others waiting. */
static void give_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    rpc_conn *c = h->data;
    size_t size = 0;
    uint8_t *at = is_alive(c) ? rpc_link_room(c->link, &size) : NULL;

    (void)suggested;
    *buf = uv_buf_init((char *)at, (unsigned)(size < 1 << 20 ? size : 1 << 20));
}

/* Bytes, the end of the connection, or an error: bytes go to the link, the rest ends the connection. */
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    rpc_conn *c = stream->data;
    char text[160];

    (void)buf;
    if (n > 0) {
        note_life(c);
        rpc_link_received(c->link, (size_t)n);
        deliver(c);
    } else if (n == UV_EOF) {
        end(c, TEC_LOST,
            c->was_ready ? "the other side closed the connection"
                         : "the other side closed the connection before the handshake was done");
    } else if (n == UV_ENOBUFS) {
        end_broken(c);
    } else if (n < 0) {
        snprintf(text, sizeof text, "the connection failed: %s", uv_strerror((int)n));
        end(c, TEC_LOST, text);
    }
}

/* A side that does not read its answers gets no more of its questions read: otherwise output would grow
 * without bound. */
static void start_or_stop_reading(rpc_conn *c)
{
    bool choked = c->twin && rpc_conn_waiting(c->twin) > MOST_FORWARDED;
    bool wanted = is_alive(c) && !c->paused && !choked && rpc_conn_waiting(c) <= RPC_MOST_OUTPUT;

    if (wanted == c->reading)
        return;
    c->reading = wanted;
    if (wanted)
        uv_read_start((uv_stream_t *)&c->tcp, give_room, on_read);
    else
        uv_read_stop((uv_stream_t *)&c->tcp);
}

void rpc_conn_pause(rpc_conn *c, bool paused)
{
    c->paused = paused;
    rpc_conn_mark(c);
}

/* ---- writing ---- */

/* The kernel took bytes, so the other side took some before: that counts as a sign of life. */
static void on_written(uv_write_t *request, int status)
{
    rpc_conn *c = request->handle->data;

    c->is_writing = false;
    c->n_writing = 0;
    rt_free(c->writing);
    c->writing = NULL;
    if (status == 0)
        c->heard_at = rpc_loop_now(c->loop);
    else if (status != UV_ECANCELED)
        end(c, TEC_LOST, "the other side takes no more bytes");
    rpc_conn_mark(c);
}

/* The system takes no more now: libuv writes a copy when the system does, because the link's output moves.
 * Only one such write is under way at a time, and only of so many bytes that its copy stays small. */
static void write_later(rpc_conn *c, const uint8_t *out, size_t n)
{
    n = n < MOST_WRITTEN ? n : MOST_WRITTEN;
    c->writing = rt_alloc(n, NULL);
    if (!c->writing) {
        end(c, TEC_NO_MEMORY, "no memory for output");
        return;
    }
    memcpy(c->writing, out, n);
    c->n_writing = n;
    rpc_link_sent(c->link, n);
    uv_buf_t buf = uv_buf_init((char *)c->writing, (unsigned)n);
    c->is_writing = uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written) == 0;
    if (!c->is_writing)
        end(c, TEC_LOST, "the other side takes no more bytes");
}

/* Writes as much of the link's output as the system takes now, straight from the link's memory; the rest
 * waits in a write request. A connection that ends gets one attempt, so that its last word (why a key is
 * refused) usually arrives. */
static void write_output(rpc_conn *c)
{
    const uint8_t *out;
    size_t n;

    while (!c->is_writing && (out = rpc_link_output(c->link, &n), n) && c->state != RPC_CLOSING) {
        uv_buf_t buf = uv_buf_init((char *)(uintptr_t)out, (unsigned)(n < 1 << 30 ? n : 1 << 30));
        int done = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);

        c->told_written = false;
        if (done > 0)
            rpc_link_sent(c->link, (size_t)done);
        else if (c->state == RPC_ENDING)
            return; /* this was the last attempt */
        else if (done == UV_EAGAIN)
            write_later(c, out, n);
        else
            end(c, TEC_LOST, "the other side takes no more bytes");
    }
}

/* The bytes of the link's output and of the write request that is under way. */
size_t rpc_conn_waiting(const rpc_conn *c)
{
    size_t n;

    rpc_link_output(c->link, &n);
    return n + c->n_writing;
}

/* ---- before the loop sleeps ---- */

/* Writes, closes, and starts or stops reading, as the state of the connection wants it now. Everything else
 * only changes that state and marks the connection. `written` is told once for each time that the output runs
 * empty, and may fill it again: the connection is then marked anew and settled in the next turn. */
void rpc_conn_settle(rpc_conn *c)
{
    if (c->state == RPC_DIALLING || c->state == RPC_CLOSING)
        return;
    if (!c->talking) { /* dialling failed, or was given up */
        close_handles(c);
        return;
    }
    write_output(c);
    if (c->state == RPC_FINISHING && !rpc_conn_waiting(c))
        c->state = RPC_ENDING;
    if (c->state == RPC_ENDING) {
        close_handles(c);
        return;
    }
    start_or_stop_reading(c);
    if (c->twin && c->twin->state == RPC_OPEN)
        start_or_stop_reading(c->twin);
    if (!rpc_conn_waiting(c) && !c->told_written) {
        c->told_written = true;
        if (c->was_ready && c->events->written)
            c->events->written(c);
    }
}

/* ---- making ---- */

/* A connection with its link, whose handles are open and whose handshake is timed. The caller says how it
 * came to be. From here on only `finish` frees the connection, as its handles belong to the loop. `events`
 * must not be called before the caller has returned. */
static rpc_conn *new_conn(rpc_loop *loop, const rpc_conn_options *o, const rpc_link_options *link,
                          tec_error *err)
{
    rpc_conn *c = rt_alloc(sizeof *c, err);

    if (!c)
        return NULL;
    c->link = rpc_link_new(link, err);
    if (!c->link) {
        rt_free(c);
        return NULL;
    }
    c->loop = loop;
    c->events = o->events;
    c->user = o->user;
    c->told_written = true;
    c->handshake_ms = o->handshake_ms ? o->handshake_ms : HANDSHAKE_MS;
    c->ping_ms = o->ping_ms ? o->ping_ms : PING_MS;
    c->silent_ms = o->silent_ms ? o->silent_ms : SILENT_MS;
    uv_timer_init(&loop->uv, &c->timer);
    uv_tcp_init(&loop->uv, &c->tcp);
    c->has_tcp = true;
    c->timer.data = c->tcp.data = c;
    c->next = loop->conns;
    if (c->next)
        c->next->before = c;
    loop->conns = c;
    rpc_conn_start_clock(c, c->handshake_ms);
    return c;
}

/* Messages are short and wait for answers, so nothing is gained by collecting them (TCP_NODELAY). */
static void begin_talk(rpc_conn *c)
{
    struct sockaddr_storage sa;
    int size = sizeof sa;

    uv_tcp_nodelay(&c->tcp, 1);
    if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&sa, &size) == 0)
        rpc_show_address((struct sockaddr *)&sa, c->peer, sizeof c->peer);
    c->state = RPC_OPEN;
    c->talking = true;
    rpc_conn_mark(c);
}

static void on_refused(uv_handle_t *h)
{
    rt_free(h);
}

/* One connection beyond all limits is closed without a word. libuv offers the next connection only after this
 * one was accepted. */
static void turn_away(rpc_listener *l)
{
    uv_tcp_t *tcp = rt_alloc(sizeof *tcp, NULL);

    if (!tcp)
        return;
    uv_tcp_init(&l->loop->uv, tcp);
    uv_accept((uv_stream_t *)&l->tcp, (uv_stream_t *)tcp);
    uv_close((uv_handle_t *)tcp, on_refused);
}

/* A connection beyond `most` still gets a link: its handshake answers that the server is full. The
 * connections that are only told so are bounded as well: SPARE_REFUSALS of them. */
void rpc_accept(rpc_listener *l)
{
    rpc_link_options link = l->o.link;
    rpc_conn *c;

    link.full = link.full || l->taken >= l->o.most;
    if (l->taken >= l->o.most + SPARE_REFUSALS || !(c = new_conn(l->loop, &l->o, &link, NULL))) {
        turn_away(l);
        return;
    }
    c->listener = l;
    l->taken++;
    l->refs++;
    if (uv_accept((uv_stream_t *)&l->tcp, (uv_stream_t *)&c->tcp) == 0)
        begin_talk(c);
    else {
        c->state = RPC_OPEN;
        end(c, TEC_LOST, "the other side was gone before it was answered");
    }
}

/* ---- dialling ---- */

static void dial_next(rpc_conn *c, int error);

/* The states tell a caller whether to try again: refused means that nobody listens there now. */
static void end_dialling(rpc_conn *c, int error)
{
    char text[400];

    snprintf(text, sizeof text, "cannot connect to %s: %s", c->address, uv_strerror(error));
    end(c, error == UV_ECONNREFUSED ? TEC_REFUSED : error == UV_ETIMEDOUT ? TEC_TIMEOUT : TEC_LOST, text);
}

/* A connection that was given up meanwhile is closed by rpc_conn_settle. */
static void on_connected(uv_connect_t *request, int status)
{
    rpc_conn *c = request->handle->data;

    if (!is_alive(c))
        return;
    if (status == 0)
        begin_talk(c);
    else
        dial_next(c, status);
}

/* The handle of an attempt that failed is closed: the next attempt, or the end, follows. A TCP handle whose
 * connection failed cannot be used again, so each attempt has a fresh one. */
static void on_attempt_closed(uv_handle_t *h)
{
    rpc_conn *c = h->data;

    c->has_tcp = c->retrying = false;
    if (!is_alive(c)) {
        finish(c);
        return;
    }
    uv_tcp_init(&c->loop->uv, &c->tcp);
    c->tcp.data = c;
    c->has_tcp = true;
    const struct sockaddr *sa = c->next_address->ai_addr;
    c->next_address = c->next_address->ai_next;
    int rc = uv_tcp_connect(&c->connect, &c->tcp, sa, on_connected);
    if (rc)
        dial_next(c, rc);
}

/* The error of the last address is the one that is told. */
static void dial_next(rpc_conn *c, int error)
{
    if (c->next_address) {
        c->retrying = true;
        uv_close((uv_handle_t *)&c->tcp, on_attempt_closed);
    } else
        end_dialling(c, error);
}

/* The name has addresses, or has none. The addresses are tried in their order, because `localhost` often
 * names two and a server listens at one. Freed by uv_freeaddrinfo in `finish`, since the next attempts need
 * the list. */
static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    rpc_conn *c = request->data;

    c->looking_up = false;
    c->addresses = found;
    if (c->state == RPC_CLOSING) {
        finish(c);
        return;
    }
    if (!is_alive(c))
        return;
    if (status) {
        end_dialling(c, status);
        return;
    }
    c->next_address = found->ai_next;
    int rc = uv_tcp_connect(&c->connect, &c->tcp, found->ai_addr, on_connected);
    if (rc)
        dial_next(c, rc);
}

/* Starts a look-up, whose end starts the connection; a failure that is known now is told by `closed` as
 * well. */
rpc_conn *rpc_dial(rpc_loop *loop, const char *address, const rpc_conn_options *o, tec_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char host[256], service[8];
    int port;

    if (!rpc_split_address(address, host, &port, err))
        return NULL;
    char *copy = rt_strdup(address, err);
    rpc_conn *c = copy ? new_conn(loop, o, &o->link, err) : NULL;
    if (!c) {
        rt_free(copy);
        return NULL;
    }
    c->address = copy;
    c->state = RPC_DIALLING;
    c->lookup.data = c;
    snprintf(c->peer, sizeof c->peer, "%s", address);
    snprintf(service, sizeof service, "%d", port);
    int rc = uv_getaddrinfo(&loop->uv, &c->lookup, on_looked_up, host, service, &hints);
    c->looking_up = rc == 0;
    if (rc)
        end_dialling(c, rc);
    return c;
}

/* ---- asking and sending ---- */

void *rpc_conn_user(const rpc_conn *c)
{
    return c->user;
}

void rpc_conn_set_user(rpc_conn *c, void *user)
{
    c->user = user;
}

rpc_link *rpc_conn_link(const rpc_conn *c)
{
    return c->link;
}

const char *rpc_conn_peer(const rpc_conn *c)
{
    return c->peer;
}

void rpc_conn_host(const rpc_conn *c, char *to, size_t size)
{
    const char *colon = strrchr(c->peer, ':');

    snprintf(to, size, "%.*s", colon ? (int)(colon - c->peer) : 0, c->peer);
}

/* False while dialling too: nothing is queued before the handshake. */
bool rpc_conn_send(rpc_conn *c, uint32_t stream, rpc_kind kind, const void *message)
{
    bool sent = c->state == RPC_OPEN && rpc_link_send(c->link, stream, kind, message);

    rpc_conn_mark(c);
    return sent;
}

bool rpc_conn_send_piece(rpc_conn *c, uint32_t stream, const void *piece, size_t n)
{
    bool sent = c->state == RPC_OPEN && rpc_link_send_piece(c->link, stream, piece, n);

    rpc_conn_mark(c);
    return sent;
}

void rpc_conn_consumed(rpc_conn *c, uint32_t stream, size_t n)
{
    if (is_alive(c))
        rpc_link_consumed(c->link, stream, n);
    rpc_conn_mark(c);
}

void rpc_conn_flush(rpc_conn *c)
{
    rpc_conn_mark(c);
}
