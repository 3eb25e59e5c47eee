/* rpc/client/connect.c -- a connection of a client: over a plain socket, with a deadline for every wait.
 *
 * One thread talks at a time, and has the lock while it does. Between calls a thread of the library's own
 * takes the lock once a second, answers pings and notices the end of the connection.
 *
 * A call has the form rpc_begin, questions and rpc_await, rpc_end, with the lock from begin to end. What ends
 * the connection is kept in `lost`, and every later call gives it again: a program that only looks at the
 * last error still learns the first cause.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/client/inside.h"
#include "rpc/keys.h"
#include "runtime/alloc.h"

#define USUAL_SECONDS 60.0

/* How often the thread that keeps a connection alive looks, with leases and without. */
/* Seconds: a server that has nothing to say calls every 15. */
static const double SILENT = 30;

enum { LEASE_MS = 100, IDLE_MS = 1000, MOST_SEALED = 1 << 18 };

/* ---- states ---- */

/* The first cause is kept with the address before it, and the caller gets the same text. */
bool rpc_lose(tec_rpc *client, tec_status status, const char *text, tec_error *err)
{
    rt_fail(&client->lost, status, "%s: %s", client->address, text);
    return rt_fail(err, client->lost.status, "%s", client->lost.text);
}

/* Read without the lock, since the caller that holds it may be the one to be cancelled. */
static bool is_cancelled(const tec_rpc *client)
{
    return __atomic_load_n(&client->cancelled, __ATOMIC_ACQUIRE);
}

static bool is_ending(const tec_rpc *client)
{
    return __atomic_load_n(&client->ending, __ATOMIC_ACQUIRE);
}

/* The lock is held also where this fails: rpc_end follows in any case. */
bool rpc_begin(tec_rpc *client, tec_error *err)
{
    pthread_mutex_lock(&client->lock);
    client->heard = tec_clock();
    client->deadline = client->heard + client->seconds;
    if (is_cancelled(client))
        return rpc_lose(client, TEC_CANCELLED, "the caller cancelled", err);
    return client->lost.status == TEC_OK || rt_fail(err, client->lost.status, "%s", client->lost.text);
}

/* The last message lies in the arena, so nothing of it may be used afterwards. */
void rpc_end(tec_rpc *client)
{
    rt_arena_free(&client->arena);
    client->asking = 0;
    client->ahead = NULL;
    pthread_mutex_unlock(&client->lock);
}

void tec_rpc_set_deadline(tec_rpc *client, double seconds)
{
    if (!client)
        return;
    pthread_mutex_lock(&client->lock);
    client->seconds = seconds > 0 ? seconds : USUAL_SECONDS;
    pthread_mutex_unlock(&client->lock);
}

/* The counter of an eventfd makes every poll on it return, at once and until it is read; nobody reads it,
 * since it is written only for an end. */
static void wake(const tec_rpc *client)
{
    uint64_t one = 1;

    while (write(client->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* For any thread, at any time: takes no lock, since the call that is to be cancelled holds the lock. */
void tec_rpc_cancel(tec_rpc *client)
{
    if (!client)
        return;
    __atomic_store_n(&client->cancelled, true, __ATOMIC_RELEASE);
    wake(client);
}

/* ---- bytes ---- */

/* Nothing went wrong; the socket has nothing to give or no room now. */
static bool is_passing(ssize_t n)
{
    return n < 0 && (errno == EINTR || errno == EAGAIN);
}

/* Sends what the socket takes now. */
static bool send_some(tec_rpc *client, tec_error *err)
{
    size_t n;
    const uint8_t *out;

    while ((out = rpc_link_output(client->link, &n)), n) {
        ssize_t done = send(client->fd, out, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (is_passing(done))
            return true;
        if (done < 0)
            return rpc_lose(client, TEC_LOST, strerror(errno), err);
        rpc_link_sent(client->link, (size_t)done);
    }
    return true;
}

/* Takes what the socket has now. At most one read, into the link's own memory. The end of the stream is an
 * error here, as the client ends connections. */
static bool receive_some(tec_rpc *client, tec_error *err)
{
    size_t size;
    uint8_t *to = rpc_link_room(client->link, &size);
    const tec_error *broken = rpc_link_error(client->link);

    if (!to)
        return rpc_lose(client, broken->status, broken->text, err);
    ssize_t n = recv(client->fd, to, size, MSG_DONTWAIT);
    if (is_passing(n))
        return true;
    if (n < 0)
        return rpc_lose(client, TEC_LOST, strerror(errno), err);
    if (n == 0)
        return rpc_lose(client, TEC_LOST, "the server closed the connection", err);
    rpc_link_received(client->link, (size_t)n);
    client->heard = tec_clock();
    return true;
}

/* Until the socket can be read, or written where there is output; false: the deadline, a cancel. Returns also
 * if nothing has happened, so its callers go round. The time is rounded up by a millisecond, so that a
 * deadline is not asked for in a busy loop just before it. A server calls by itself after 15 s: one that is
 * silent for longer is gone, however long its answer may take. */
static bool wait_for_socket(tec_rpc *client, tec_error *err)
{
    size_t left;
    double now = tec_clock(), seconds = client->deadline - now,
           silent = client->heard + client->silence - now;
    char text[100];

    rpc_link_output(client->link, &left);
    struct pollfd p[2] = {{.fd = client->fd, .events = (short)(POLLIN | (left ? POLLOUT : 0))},
                          {.fd = client->wake, .events = POLLIN}};
    if (is_cancelled(client))
        return rpc_lose(client, TEC_CANCELLED, "the caller cancelled", err);
    if (seconds > 0 && silent <= 0) {
        snprintf(text, sizeof text, "the server was silent for %g s", client->silence);
        return rpc_lose(client, TEC_LOST, text, err);
    }
    if (seconds > 0) {
        poll(p, 2, (int)((seconds < silent ? seconds : silent) * 1e3) + 1);
        return true;
    }
    snprintf(text, sizeof text, "no answer within %g s", client->seconds);
    return rpc_lose(client, TEC_TIMEOUT, text, err);
}

/* A number that this version does not know becomes TEC_INTERNAL. */
static tec_status status_of(const rpc_failure *failure)
{
    return failure->status > 0 && failure->status <= TEC_LOST ? (tec_status)failure->status : TEC_INTERNAL;
}

/* A session that ended while nobody asked: its next call says why. */
static void note_end(tec_rpc *client, const rpc_frame *frame)
{
    rt_arena arena = {0};
    rpc_any m;

    for (tec_rpc_session *session = client->sessions; session; session = session->next)
        if (session->stream == frame->stream && frame->kind == RPC_KIND_failure &&
            session->over.status == TEC_OK &&
            rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n, rpc_link_version(client->link),
                       &arena))
            rt_fail(&session->over, status_of(&m.failure), "%s", m.failure.text);
    rt_arena_free(&arena);
}

/* A failure on the connection itself that ends everything: the other side is no server, or no tracker. False:
 * it is an answer like others. */
static bool note_refusal(tec_rpc *client, const rpc_frame *frame)
{
    rt_arena arena = {0};
    rpc_any m;
    bool ends = frame->kind == RPC_KIND_failure && frame->stream == 0 &&
                rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n, rpc_link_version(client->link),
                           &arena) &&
                (m.failure.fatal || client->asking);

    if (ends)
        rpc_lose(client, status_of(&m.failure), m.failure.text, NULL);
    rt_arena_free(&arena);
    return ends;
}

/* A ping is answered, a goodbye needs none; all else is the caller's. Frames of another stream than the one
 * that asks are late: of a session that was given up, or that ended unasked. */
static bool is_for_caller(tec_rpc *client, const rpc_frame *frame)
{
    rt_arena arena = {0};
    rpc_any m;

    if (frame->kind == RPC_KIND_ping) {
        if (rpc_decode(&m, RPC_KIND_ping, frame->body, frame->n, rpc_link_version(client->link), &arena))
            rpc_link_send(client->link, 0, RPC_KIND_pong, &(rpc_pong){m.ping.number});
        rt_arena_free(&arena);
        return false;
    }
    if (frame->stream && frame->stream != client->asking) {
        note_end(client, frame);
        return false;
    }
    return frame->kind != RPC_KIND_pong && frame->kind != RPC_KIND_goodbye &&
           !rpc_take_lease_frame(client, frame);
}

/* The next frame that is here already. */
static rpc_event next_here(tec_rpc *client, rpc_frame *frame, tec_error *err)
{
    for (;;) {
        rpc_event e = rpc_link_next(client->link, frame);
        const tec_error *broken = rpc_link_error(client->link);

        if (e == RPC_BROKEN)
            rpc_lose(client, broken->status, broken->text, err);
        if (e == RPC_FRAME && note_refusal(client, frame)) {
            rt_fail(err, client->lost.status, "%s", client->lost.text);
            return RPC_BROKEN;
        }
        if (e != RPC_FRAME || is_for_caller(client, frame))
            return e;
    }
}

/* The length of the next piece of so many bytes. */
size_t rpc_piece(const tec_rpc *client, size_t left)
{
    size_t most = rpc_link_max_body(client->link);

    most = (most < RPC_PIECE ? most : RPC_PIECE) - RPC_DATA_HEAD;
    return left < most ? left : most;
}

/* Sends of the upload behind a question what the window and the socket take now. */
static bool send_ahead(tec_rpc *client, tec_error *err)
{
    rpc_ahead *ahead = client->ahead ? &client->ahead->ahead : NULL;
    size_t waiting;

    while (ahead && ahead->left) {
        size_t piece = rpc_piece(client, ahead->left);

        rpc_link_output(client->link, &waiting);
        if (waiting >= MOST_SEALED ||
            rpc_link_may_send(client->link, client->ahead->stream) < piece + RPC_DATA_HEAD)
            break;
        if (!rpc_link_send_piece(client->link, client->ahead->stream, ahead->from + ahead->size - ahead->left,
                                 piece))
            return rpc_lose(client, TEC_LOST, "a piece of data was not taken", err);
        ahead->left -= piece;
        if (!send_some(client, err))
            return false;
    }
    return true;
}

/* Frames first, then output, then sleep: an answer that is here is never waited for. */
bool rpc_await(tec_rpc *client, rpc_frame *frame, tec_error *err)
{
    for (;;) {
        rpc_event e = next_here(client, frame, err);

        if (e == RPC_NOTHING && !send_ahead(client, err))
            return false;
        if (!send_some(client, err) || e == RPC_BROKEN)
            return false;
        if (e == RPC_FRAME)
            return true;
        if (!wait_for_socket(client, err) || !receive_some(client, err))
            return false;
    }
}

/* Sends until the link takes `room` more bytes on the stream, or a frame has come, which may be the server's
 * refusal. Only little output may wait as well: what was sealed just now is still in the caches when it is
 * sent. */
bool rpc_push(tec_rpc *client, uint32_t stream, size_t room, rpc_frame *frame, bool *has_frame,
              tec_error *err)
{
    size_t left;

    *has_frame = false;
    for (;;) {
        rpc_event e = next_here(client, frame, err);

        if (!send_some(client, err) || e == RPC_BROKEN)
            return false;
        *has_frame = e == RPC_FRAME;
        rpc_link_output(client->link, &left);
        if (*has_frame || (left < MOST_SEALED && rpc_link_may_send(client->link, stream) >= room))
            return true;
        if (!wait_for_socket(client, err) || !receive_some(client, err))
            return false;
        client->deadline =
            tec_clock() + client->seconds; /* a transfer may take long: what counts is that it moves */
    }
}

/* One turn: sends, waits for at most so many seconds, takes what has come, and sends what that gave. */
bool rpc_pump(tec_rpc *client, double seconds, tec_error *err)
{
    rpc_frame f;
    struct pollfd p[2] = {{.fd = client->fd, .events = POLLIN}, {.fd = client->wake, .events = POLLIN}};

    if (client->lost.status != TEC_OK || is_cancelled(client))
        return rpc_lose(client, TEC_CANCELLED, "the caller cancelled", err);
    if (!send_some(client, err))
        return false;
    if (seconds > 0)
        poll(p, 2, (int)(seconds * 1e3) + 1);
    if (!receive_some(client, err))
        return false;
    rpc_event e = next_here(client, &f, err);
    if (e == RPC_FRAME)
        return rpc_lose(client, TEC_PROTOCOL, "the server spoke without being asked", err);
    return e != RPC_BROKEN && send_some(client, err);
}

/* ---- answers ---- */

/* What was wrong, and what a session's process printed last. */
static bool take_failure(const rpc_failure *failure, bool *fatal, tec_error *err)
{
    *fatal = failure->fatal != 0;
    return rt_fail(err, status_of(failure), "%s%s%.200s", failure->text,
                   *failure->output ? "; it printed: " : "", *failure->output ? failure->output : "");
}

/* Decodes the answer that was waited for. A `failure` becomes the error; any other frame ends the connection,
 * as the two sides no longer agree on who speaks. The answer lies in client->message until the next question
 * or rpc_end. */
bool rpc_take_answer(tec_rpc *client, const rpc_frame *frame, uint32_t stream, rpc_kind wanted, bool *fatal,
                     tec_error *err)
{
    char text[160];

    *fatal = false;
    if (frame->stream != stream || (frame->kind != wanted && frame->kind != RPC_KIND_failure)) {
        snprintf(text, sizeof text, "expected an answer of kind %d, found '%s'", (int)wanted,
                 frame->row->record->name);
        return rpc_lose(client, TEC_PROTOCOL, text, err);
    }
    rt_arena_free(&client->arena);
    if (!rpc_decode(&client->message, (uint32_t)frame->kind, frame->body, frame->n,
                    rpc_link_version(client->link), &client->arena))
        return rpc_lose(client, TEC_PROTOCOL, "the server's answer cannot be decoded", err);
    client->signal = frame->kind == wanted ? 0 : (int)client->message.failure.signal;
    return frame->kind == wanted || take_failure(&client->message.failure, fatal, err);
}

bool rpc_await_answer(tec_rpc *client, uint32_t stream, rpc_kind wanted, bool *fatal, tec_error *err)
{
    rpc_frame f;

    *fatal = false;
    return rpc_await(client, &f, err) && rpc_take_answer(client, &f, stream, wanted, fatal, err);
}

/* ---- the thread that keeps a connection alive ---- */

/* The thread that answers pings while the caller is silent. It takes the lock only if nobody else has it: the
 * holder of the lock reads the socket as well. A cancel ends this thread too: the connection cannot be used
 * any more. Reading a frame here means that the server spoke without being asked, as pings and the ends of
 * sessions were taken out before. */
static void *keep_alive(void *user)
{
    tec_rpc *c = user;
    struct pollfd p = {.fd = c->wake, .events = POLLIN};

    while (!is_ending(c) && !is_cancelled(c)) {
        poll(&p, 1, __atomic_load_n(&c->leases, __ATOMIC_RELAXED) ? LEASE_MS : IDLE_MS);
        if (is_ending(c) || pthread_mutex_trylock(&c->lock) != 0)
            continue;
        if (c->lost.status == TEC_OK)
            rpc_pump(c, 0, NULL);
        rpc_keep_leases(c);
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* ---- connecting ---- */

/* Connects to one address within the deadline; 0, or the errno of what went wrong, with no socket left open.
 *
 * The socket does not block, so the deadline holds for the connection as well; the cancel is not looked at
 * here. */
static int dial_one(tec_rpc *client, const struct addrinfo *address)
{
    int one = 1, failure = 0;
    socklen_t size = sizeof failure;

    client->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd < 0)
        return errno;
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(client->fd, address->ai_addr, address->ai_addrlen) == 0)
        return 0;
    if (errno == EINPROGRESS) {
        struct pollfd p = {.fd = client->fd, .events = POLLOUT};
        double left = client->deadline - tec_clock();

        failure = left > 0 && poll(&p, 1, (int)(left * 1e3) + 1) > 0 ? 0 : ETIMEDOUT;
        if (!failure && getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0)
            failure = errno;
    } else
        failure = errno;
    if (failure) {
        close(client->fd);
        client->fd = -1;
    }
    return failure;
}

/* HOST:PORT, cut; the last colon parts them. The port stays a text, as getaddrinfo takes it. */
static bool split(const char *address, char *host, size_t size, const char **port, tec_error *err)
{
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : 0;
    bool brackets = n > 2 && address[0] == '[' && colon[-1] == ']';

    if (n == 0 || n >= size || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")] ||
        (!brackets && memchr(address, ':', n)))
        return rt_fail(err, TEC_INVALID, "'%s' is not an address: expected HOST:PORT, as in 127.0.0.1:9190",
                       address);
    snprintf(host, size, "%.*s", (int)(n - 2 * brackets), address + brackets);
    *port = colon + 1;
    return true;
}

/* Tries the addresses of the host in the resolver's order, until one of them answers. */
static bool dial(tec_rpc *client, tec_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    char host[256];
    const char *port = NULL;
    int failure = 0;

    if (!split(client->address, host, sizeof host, &port, err))
        return false;
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc)
        return rt_fail(err, TEC_LOST, "%s: %s", client->address, gai_strerror(rc));
    for (struct addrinfo *a = found; a && client->fd < 0; a = a->ai_next)
        failure = dial_one(client, a);
    freeaddrinfo(found);
    return client->fd >= 0 || rt_fail(err,
                                      failure == ECONNREFUSED ? TEC_REFUSED
                                      : failure == ETIMEDOUT  ? TEC_TIMEOUT
                                                              : TEC_LOST,
                                      "cannot connect to %s: %s", client->address, strerror(failure));
}

/* Sends and receives until both sides have proved that they know the key. */
static bool shake_hands(tec_rpc *client, tec_error *err)
{
    rpc_frame f;

    while (!rpc_link_ready(client->link)) {
        rpc_event e = next_here(client, &f, err);

        if (!send_some(client, err) || e == RPC_BROKEN)
            return false;
        if (rpc_link_ready(client->link))
            return true;
        if (!wait_for_socket(client, err) || !receive_some(client, err))
            return false;
    }
    return true;
}

static bool read_key(rpc_key *key, const tec_rpc_options *options, tec_error *err)
{
    rpc_keys keys;

    if (!options || !options->key_file)
        return rt_fail(err, TEC_INVALID, "expected the path of a key file, found none");
    if (!rpc_keys_read(&keys, options->key_file, err))
        return false;
    const rpc_key_row *row = rpc_keys_pick(&keys, options->key, err);
    if (row)
        *key = row->key;
    rpc_keys_free(&keys);
    return row != NULL;
}

static bool make_link(tec_rpc *client, tec_error *err)
{
    rpc_link_free(client->link);
    client->link = rpc_link_new(&(rpc_link_options){.key = &client->key, .program = client->program}, err);
    return client->link != NULL;
}

/* The tracker joins this connection with one of the server. What follows is a handshake with the server,
 * which the tracker forwards: the tracker does not have the keys that come of it. */
static bool be_relayed(tec_rpc *client, tec_error *err)
{
    bool fatal;
    bool good = rpc_link_send(client->link, 0, RPC_KIND_relay, &(rpc_relay){client->lease}) &&
                rpc_await_answer(client, 0, RPC_KIND_joined, &fatal, err);

    rt_arena_free(&client->arena);
    return good && make_link(client, err) && shake_hands(client, err);
}

/* Link, connection and handshake, with the key that the connection has. */
static bool open_link(tec_rpc *client, tec_error *err)
{
    client->heard = tec_clock();
    return make_link(client, err) && dial(client, err) && shake_hands(client, err) &&
           (!client->relayed || be_relayed(client, err));
}

bool rpc_reconnect(tec_rpc *client, tec_error *err)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->lost = (tec_error){0};
    if (open_link(client, err))
        return true;
    rt_fail(&client->lost, err->status, "%s", err->text);
    return false;
}

/* Connection, handshake, and the thread that keeps the connection alive, in this order; all of them or none.
 * */
tec_rpc *rpc_connect_with(const char *address, int64_t relayed, const rpc_key *key,
                          const tec_rpc_options *options, tec_error *err)
{
    tec_rpc *c = rt_alloc(sizeof *c, err);

    if (!c)
        return NULL;
    c->fd = -1;
    c->key = *key;
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&c->lock, NULL);
    snprintf(c->address, sizeof c->address, "%s", address);
    snprintf(c->program, sizeof c->program, "%s", options && options->program ? options->program : "tec");
    c->seconds = options && options->seconds > 0 ? options->seconds : USUAL_SECONDS;
    c->deadline = tec_clock() + c->seconds;
    c->silence = SILENT;
    c->lease = relayed;
    c->relayed = relayed != 0;
    bool good = c->wake >= 0 && open_link(c, err);
    c->has_keeper = good && pthread_create(&c->keeper, NULL, keep_alive, c) == 0;
    if (good && !c->has_keeper)
        rt_fail(err, TEC_NO_MEMORY, "cannot start the thread that keeps the connection alive");
    if (c->has_keeper)
        return c;
    tec_rpc_disconnect(c);
    return NULL;
}

tec_rpc *tec_rpc_connect(const char *address, const tec_rpc_options *options, tec_error *err)
{
    rpc_key key;

    if (!address) {
        rt_fail(err, TEC_INVALID, "expected an address to connect to, found none");
        return NULL;
    }
    if (!read_key(&key, options, err))
        return NULL;
    tec_rpc *c = rpc_connect_with(address, 0, &key, options, err);
    sodium_memzero(&key, sizeof key);
    return c;
}

/* The thread goes first, since it uses all the rest; the key is wiped. */
void tec_rpc_disconnect(tec_rpc *client)
{
    if (!client)
        return;
    __atomic_store_n(&client->ending, true, __ATOMIC_RELEASE);
    if (client->has_keeper) {
        wake(client);
        pthread_join(client->keeper, NULL);
    }
    if (client->fd >= 0)
        close(client->fd);
    if (client->wake >= 0)
        close(client->wake);
    rpc_link_free(client->link);
    rt_arena_free(&client->arena);
    rt_arena_free(&client->list_arena);
    pthread_mutex_destroy(&client->lock);
    sodium_memzero(&client->key, sizeof client->key);
    rt_free(client);
}
