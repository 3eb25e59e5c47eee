/* rpc/link.c -- see link.h.
 *
 * States rise from left to right and never fall; each side skips those of the other:
 *
 *     client   AWAIT_ANSWER -> AWAIT_HELLO -> READY
 *     server   AWAIT_GREETING -> AWAIT_PROOF -> AWAIT_HELLO -> READY          any of them -> BROKEN
 *
 * A client says hello right behind its proof, without waiting: a connection costs two journeys of a message
 * there and back. From AWAIT_HELLO on, everything is a sealed frame, and hello is the first one in each
 * direction.
 *
 * Windows, as an example with a window of 2 MiB: a sender starts with may_send = 2 MiB and takes off the body
 * of each `data`; at 0 it has to wait. The receiver takes the same off its may_receive, and breaks the link
 * if that becomes negative. Each time 512 KiB have been consumed it grants them anew by `window`, so a sender
 * that is read from steadily never waits.
 */
#include "rpc/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum { AWAIT_GREETING, AWAIT_ANSWER, AWAIT_PROOF, AWAIT_HELLO, READY, RAW, BROKEN } state;

/* Bytes that are added behind and taken in front. Bytes begin..end of `data` are in use; begin == end only at
 * 0, so that an empty queue never has to be moved. */
typedef struct {
    uint8_t *data;
    size_t begin, end, cap;
} queue;

/* `may_send` is what the other side has granted and may become negative by the body of one frame;
 * `may_receive`, what this side has granted, may not. */
typedef struct {
    uint32_t id;
    int64_t may_send, may_receive;
    int64_t consumed; /* and not granted again yet */
} stream;

/* streams[0..n_streams) are open, in no order. `last_stream` is the greatest number ever: a stream up to this
 * number that is not listed was closed, and frames for it are dropped; a greater one was never opened. `in`
 * holds sealed bytes; the frame that rpc_link_next gave lies in them, opened in place, until `taken` bytes
 * are dropped. */
struct rpc_link {
    state state;
    bool is_server, full;
    rpc_link_options o;
    rpc_key key;
    unsigned roles;
    int version;
    rpc_seal seal;
    uint8_t greeting[RPC_GREETING_BYTES], answer[RPC_ANSWER_BYTES];
    queue in, out;
    size_t taken; /* bytes of the frame that rpc_link_next gave last */
    stream streams[RPC_MOST_STREAMS];
    int n_streams;
    uint32_t last_stream;
    int64_t max_frame, window; /* of this side */
    int64_t peer_frame, peer_window;
    char peer[64];
    rt_bytes scratch;
    tec_error err;
};

/* ---- queues ---- */

static void free_queue(queue *self)
{
    rt_free(self->data);
    *self = (queue){0};
}

/* Room for size bytes behind the end; NULL: no memory. The caller adds size to `end` itself. Every pointer
 * into the queue is invalid after this call.
 *
 * Bytes are moved to the front only where at least as many have been taken since the last move, and the
 * memory grows otherwise: so each byte is moved once at most on average, however slowly the queue is
 * emptied. */
static uint8_t *reserve(queue *self, size_t size)
{
    size_t used = self->end - self->begin;

    if (self->cap - self->end >= size)
        return self->data + self->end;
    if (self->cap < used + size || self->begin < used) {
        size_t cap = self->cap * 2 > used + size ? self->cap * 2 : used + size;
        uint8_t *data = rt_alloc(cap, NULL);

        if (!data)
            return NULL;
        if (used)
            memcpy(data, self->data + self->begin, used);
        rt_free(self->data);
        self->data = data;
        self->cap = cap;
    } else
        memmove(self->data, self->data + self->begin, used);
    self->begin = 0;
    self->end = used;
    return self->data + self->end;
}

static void drop(queue *self, size_t n)
{
    self->begin += n;
    if (self->begin == self->end)
        self->begin = self->end = 0;
}

/* ---- errors ---- */

/* The first reason stays. Output that is waiting is kept, because it may hold the answer that tells the other
 * side. */
void rpc_link_break(rpc_link *link, tec_status status, const char *fmt, ...)
{
    va_list args;

    if (link->state == BROKEN)
        return;
    link->state = BROKEN;
    link->err.status = status;
    va_start(args, fmt);
    vsnprintf(link->err.text, sizeof link->err.text, fmt, args);
    va_end(args);
}

static void break_memory(rpc_link *link)
{
    rpc_link_break(link, TEC_NO_MEMORY, "no memory for a frame");
}

const tec_error *rpc_link_error(const rpc_link *link)
{
    return &link->err;
}

rpc_id_text rpc_show_id(const uint8_t id[RPC_ID_BYTES])
{
    rpc_id_text t;

    for (int i = 0; i < RPC_ID_BYTES; i++)
        snprintf(t.text + 2 * i, 3, "%02x", id[i]);
    return t;
}

/* ---- making ---- */

/* Copies `data`, which may be short-lived. */
static bool add_output(rpc_link *link, const void *data, size_t size)
{
    uint8_t *to = reserve(&link->out, size);

    if (!to) {
        break_memory(link);
        return false;
    }
    memcpy(to, data, size);
    link->out.end += size;
    return true;
}

/* The greeting is kept, since both proofs cover its bytes. */
static void greet(rpc_link *link)
{
    rpc_greeting g = {.oldest = link->o.oldest, .newest = link->o.newest};

    memcpy(g.id, link->key.id, sizeof g.id);
    rpc_seal_begin(&link->seal, g.point);
    rpc_random(g.nonce, sizeof g.nonce);
    rpc_put_greeting(link->greeting, &g);
    add_output(link, link->greeting, sizeof link->greeting);
}

/* A client's greeting lies in the output when this returns. Until hello tells how long frames may be, only
 * the length that every side accepts is used. */
rpc_link *rpc_link_new(const rpc_link_options *options, tec_error *err)
{
    rpc_link *link = rt_alloc(sizeof *link, err);

    if (!link)
        return NULL;
    if (!rpc_seal_ready()) {
        rt_fail(err, TEC_IO, "cannot get random numbers from the system");
        rt_free(link);
        return NULL;
    }
    link->o = *options;
    link->o.oldest = options->oldest ? options->oldest : rpc_spoken.oldest;
    link->o.newest = options->newest ? options->newest : rpc_spoken.newest;
    link->max_frame = options->max_frame ? options->max_frame : RPC_USUAL_FRAME;
    link->window = options->window ? options->window : RPC_USUAL_WINDOW;
    link->peer_frame = RPC_LEAST_FRAME;
    link->is_server = !options->key;
    link->state = link->is_server ? AWAIT_GREETING : AWAIT_ANSWER;
    if (options->key) {
        link->key = *options->key;
        greet(link);
    }
    return link;
}

void rpc_link_free(rpc_link *link)
{
    if (!link)
        return;
    rpc_seal_clear(&link->seal);
    memset(&link->key, 0, sizeof link->key);
    free_queue(&link->in);
    free_queue(&link->out);
    rt_bytes_free(&link->scratch);
    rt_free(link);
}

/* ---- streams ---- */

/* At most 64 are open, so the list is searched. */
static stream *find_stream(const rpc_link *link, uint32_t id)
{
    for (int i = 0; i < link->n_streams; i++)
        if (link->streams[i].id == id)
            return (stream *)(uintptr_t)&link->streams[i];
    return NULL;
}

/* The window is the one that hello announced: streams are opened only once the link is ready. */
static stream *add_stream(rpc_link *link, uint32_t id)
{
    if (link->n_streams == RPC_MOST_STREAMS)
        return NULL;
    link->last_stream = id;
    link->streams[link->n_streams] =
        (stream){.id = id, .may_send = link->peer_window, .may_receive = link->window};
    return &link->streams[link->n_streams++];
}

uint32_t rpc_link_open_stream(rpc_link *link)
{
    stream *s = link->last_stream < UINT32_MAX ? add_stream(link, link->last_stream + 1) : NULL;

    return s ? s->id : 0;
}

/* The last stream takes the place of the closed one. */
void rpc_link_close_stream(rpc_link *link, uint32_t id)
{
    stream *s = find_stream(link, id);

    if (s)
        *s = link->streams[--link->n_streams];
}

/* A quarter of the window is collected before it is granted again, so that one message of 16 bytes stands for
 * many pieces of data. */
void rpc_link_consumed(rpc_link *link, uint32_t id, size_t size)
{
    stream *s = find_stream(link, id);

    if (!s || link->state != READY)
        return;
    s->consumed += (int64_t)size;
    if (s->consumed < link->window / 4)
        return;
    int64_t more = s->consumed;
    s->may_receive += more;
    s->consumed = 0;
    rpc_link_send(link, id, RPC_KIND_window, &(rpc_window){more});
}

size_t rpc_link_may_send(const rpc_link *link, uint32_t id)
{
    const stream *s = find_stream(link, id);

    return s && s->may_send > 0 ? (size_t)s->may_send : 0;
}

/* ---- sending ---- */

static void store_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t load_u32(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

/* The body of a frame in two parts, sealed in the output.
 *     length (4) | stream (4) kind (4) body | tag (16)
 *                '------ sealed ----------'
 *
 * The length stays readable, as the receiver needs it before it can open the frame; it is covered by the tag,
 * so it cannot be changed unnoticed. The body is written into the output once and sealed there. Two parts
 * spare the caller of rpc_link_send_piece a copy of its data. */
static bool send_parts(rpc_link *link, uint32_t id, rpc_kind kind, const void *left, size_t n_a,
                       const void *right, size_t n_b)
{
    size_t plain = RPC_FRAME_HEAD - 4 + n_a + n_b;
    uint8_t *to = reserve(&link->out, 4 + plain + RPC_TAG_BYTES);

    if (!to) {
        break_memory(link);
        return false;
    }
    store_u32(to, (uint32_t)(plain + RPC_TAG_BYTES));
    store_u32(to + 4, id);
    store_u32(to + 8, (uint32_t)kind);
    if (n_a)
        memcpy(to + RPC_FRAME_HEAD, left, n_a);
    if (n_b)
        memcpy(to + RPC_FRAME_HEAD + n_a, right, n_b);
    if (!rpc_seal_close(&link->seal, to + 4, plain, to, 4)) {
        rpc_link_break(link, TEC_PROTOCOL, "the connection has carried as many frames as it may");
        return false;
    }
    link->out.end += 4 + plain + RPC_TAG_BYTES;
    return true;
}

/* Whether a frame of n bytes may go out on a stream; data take from the stream's window. */
static bool admit(rpc_link *link, uint32_t id, rpc_kind kind, size_t n)
{
    stream *s = find_stream(link, id);

    if (link->state != READY || n > (size_t)link->peer_frame || (id && !s))
        return false;
    if (s && kind == RPC_KIND_data)
        s->may_send -= (int64_t)n;
    return true;
}

bool rpc_link_send_body(rpc_link *link, uint32_t id, rpc_kind kind, const void *body, size_t n)
{
    return admit(link, id, kind, n) && send_parts(link, id, kind, body, n, NULL, 0);
}

bool rpc_link_send_piece(rpc_link *link, uint32_t id, const void *piece, size_t n)
{
    uint8_t head[RPC_DATA_HEAD];

    store_u32(head, (uint32_t)n);
    store_u32(head + 4, 0);
    return admit(link, id, RPC_KIND_data, n + sizeof head) &&
           send_parts(link, id, RPC_KIND_data, head, sizeof head, piece, n);
}

/* The message is encoded before the frame is begun: the length stands in front. */
bool rpc_link_send(rpc_link *link, uint32_t id, rpc_kind kind, const void *message)
{
    link->scratch.n = 0;
    rpc_encode(&link->scratch, kind, message, link->version);
    if (link->scratch.failed) {
        break_memory(link);
        return false;
    }
    return rpc_link_send_body(link, id, kind, link->scratch.data, link->scratch.n);
}

/* Written without `admit`, since the link is not ready yet. Only a server has roles to tell, and the client
 * learns from them what its key may do. */
static void say_hello(rpc_link *link)
{
    char roles[64];
    rpc_hello h = {
        .program = link->o.program, .max_frame = link->max_frame, .window = link->window, .roles = roles};

    snprintf(roles, sizeof roles, "%s%s%s", link->roles & RPC_ROLE_SUBMIT ? "submit " : "",
             link->roles & RPC_ROLE_SERVE ? "serve " : "",
             link->roles & RPC_ROLE_ADMINISTER ? "administer" : "");
    link->scratch.n = 0;
    rpc_encode(&link->scratch, RPC_KIND_hello, &h, link->version);
    if (link->scratch.failed)
        break_memory(link);
    else
        send_parts(link, 0, RPC_KIND_hello, link->scratch.data, link->scratch.n, NULL, 0);
}

/* ---- the handshake ---- */

/* Takes n bytes of the input, once they are there. The bytes stay where they are until more are read, so the
 * caller may use them at once. */
static const uint8_t *take(rpc_link *link, size_t n)
{
    if (link->in.end - link->in.begin < n)
        return NULL;
    link->in.begin += n;
    return link->in.data + link->in.begin - n;
}

/* The newest version that both ranges have; 0: there is none. */
static int common_version(const rpc_link *link, int oldest, int newest)
{
    int version = newest < link->o.newest ? newest : link->o.newest;

    return version >= oldest && version >= link->o.oldest ? version : 0;
}

/* An answer without proof and keys: its verdict is the whole message. */
static void refuse(rpc_link *link, rpc_answer *answer, rpc_verdict verdict)
{
    answer->verdict = verdict;
    rpc_put_answer(link->answer, answer);
    add_output(link, link->answer, sizeof link->answer);
}

/* The answer is put down twice: the hash that the proof needs covers all of the answer but the proof. */
static void answer(rpc_link *link, const rpc_greeting *greeting, rpc_answer *self)
{
    rpc_seal_begin(&link->seal, self->point);
    rpc_random(self->nonce, sizeof self->nonce);
    rpc_put_answer(link->answer, self);
    if (!rpc_seal_agree(&link->seal, &link->key, greeting->point, link->greeting, link->answer, true)) {
        rpc_link_break(link, TEC_PROTOCOL, "the greeting's X25519 key is none");
        return;
    }
    rpc_seal_proof(&link->seal, true, self->proof);
    rpc_put_answer(link->answer, self);
    if (add_output(link, link->answer, sizeof link->answer))
        link->state = AWAIT_PROOF;
}

/* A server's side of the greeting: versions, then the key. Fullness is told first, as it needs no look at the
 * key. A key that is not there and one that is revoked get the same verdict, so that nobody can find out
 * which ids exist; the difference is in this server's log. */
static void on_greeting(rpc_link *link, const uint8_t *bytes)
{
    rpc_answer a = {.oldest = link->o.oldest, .newest = link->o.newest};
    rpc_greeting g;
    rpc_grant grant = {.why = "no such key"};

    memcpy(link->greeting, bytes, sizeof link->greeting);
    if (!rpc_get_greeting(bytes, &g)) {
        rpc_link_break(link, TEC_PROTOCOL, "the greeting states no range of versions");
        return;
    }
    memcpy(link->key.id, g.id, sizeof g.id);
    a.version = common_version(link, g.oldest, g.newest);
    link->version = a.version;
    if (link->o.full) {
        refuse(link, &a, RPC_FULL);
        rpc_link_break(link, TEC_REFUSED, "there are as many connections as this server takes");
    } else if (!a.version) {
        refuse(link, &a, RPC_NO_COMMON_VERSION);
        rpc_link_break(
            link, TEC_REFUSED,
            "the client speaks versions %d to %d of the protocol, this server %d to %d: upgrade the %s",
            g.oldest, g.newest, link->o.oldest, link->o.newest,
            g.newest < link->o.oldest ? "client" : "server");
    } else if (!link->o.find(link->o.user, g.id, &grant)) {
        refuse(link, &a, RPC_UNKNOWN_KEY);
        rpc_link_break(link, TEC_DENIED, "key %s is refused: %s", rpc_show_id(g.id).text, grant.why);
    } else {
        link->key = grant.key;
        link->roles = grant.roles;
        answer(link, &g, &a);
    }
}

/* A client's reading of an answer that does not welcome. The break at the end counts only for a verdict that
 * this version does not know, since the first reason stays. */
static void on_refusal(rpc_link *link, const rpc_answer *answer)
{
    rpc_id_text id = rpc_show_id(link->key.id);

    switch (answer->verdict) {
    case RPC_WELCOME: break;
    case RPC_UNKNOWN_KEY:
        rpc_link_break(link, TEC_DENIED,
                       "the server refuses the key %s: it does not know the key, or the key is revoked",
                       id.text);
        break;
    case RPC_NO_COMMON_VERSION:
        rpc_link_break(
            link, TEC_REFUSED,
            "the server speaks versions %d to %d of the protocol, this client %d to %d: upgrade the %s",
            answer->oldest, answer->newest, link->o.oldest, link->o.newest,
            link->o.newest < answer->oldest ? "client" : "server");
        break;
    case RPC_FULL: rpc_link_break(link, TEC_REFUSED, "the server has as many connections as it takes"); break;
    }
    rpc_link_break(link, TEC_PROTOCOL,
                   "the server's answer has the verdict %d, which this client does not know",
                   (int)answer->verdict);
}

/* The version is checked to be the newest that both speak: somebody on the way could otherwise make two new
 * programs speak an old version. The proof is checked before anything is sent that depends on the secret. */
static void on_answer(rpc_link *link, const uint8_t *bytes)
{
    uint8_t proof[RPC_PROOF_BYTES];
    rpc_answer a;

    memcpy(link->answer, bytes, sizeof link->answer);
    if (!rpc_get_answer(bytes, &a))
        rpc_link_break(link, TEC_PROTOCOL, "the server's answer is none of this protocol");
    else if (a.verdict != RPC_WELCOME)
        on_refusal(link, &a);
    else if (a.version != common_version(link, a.oldest, a.newest) || !a.version)
        rpc_link_break(link, TEC_PROTOCOL,
                       "the server chose version %d of the protocol, which is not the newest that both speak",
                       a.version);
    else if (!rpc_seal_agree(&link->seal, &link->key, a.point, link->greeting, link->answer, false))
        rpc_link_break(link, TEC_PROTOCOL, "the server's X25519 key is none");
    else if (!rpc_seal_check(&link->seal, true, a.proof))
        rpc_link_break(link, TEC_DENIED,
                       "the server does not prove the secret of key %s: it has another one under this name, "
                       "or somebody changed "
                       "the handshake on its way",
                       rpc_show_id(link->key.id).text);
    if (link->state == BROKEN)
        return;
    link->version = a.version;
    rpc_seal_proof(&link->seal, false, proof);
    if (add_output(link, proof, sizeof proof)) {
        link->state = AWAIT_HELLO;
        say_hello(link);
    }
}

/* Only here does a server know that the client has the secret, and not only its id. */
static void on_proof(rpc_link *link, const uint8_t *bytes)
{
    if (!rpc_seal_check(&link->seal, false, bytes)) {
        rpc_link_break(link, TEC_DENIED, "the client does not prove the secret of key %s",
                       rpc_show_id(link->key.id).text);
        return;
    }
    link->state = AWAIT_HELLO;
    say_hello(link);
}

/* Goes as far in the handshake as the bytes reach. The first bytes are looked at as soon as they come: an
 * HTTP request to this port is told at once, and not when as many bytes as a greeting has have come. */
static void shake_hands(rpc_link *link)
{
    const uint8_t *bytes;
    size_t there = link->in.end - link->in.begin;

    if ((link->state == AWAIT_GREETING || link->state == AWAIT_ANSWER) && there &&
        !rpc_may_greet(link->in.data + link->in.begin, there))
        rpc_link_break(link, TEC_PROTOCOL,
                       "the other side does not speak this protocol: its first byte is 0x%02x",
                       link->in.data[link->in.begin]);
    if (link->state == AWAIT_GREETING && (bytes = take(link, RPC_GREETING_BYTES)))
        on_greeting(link, bytes);
    if (link->state == AWAIT_ANSWER && (bytes = take(link, RPC_ANSWER_BYTES)))
        on_answer(link, bytes);
    if (link->state == AWAIT_PROOF && (bytes = take(link, RPC_PROOF_BYTES)))
        on_proof(link, bytes);
}

/* ---- receiving ---- */

/* Bytes of the frame that begins in the input, as far as that is known. */
static size_t wanted_bytes(rpc_link *link)
{
    size_t there = link->in.end - link->in.begin;

    if (link->state == AWAIT_GREETING || link->state == AWAIT_PROOF || link->state == AWAIT_ANSWER)
        return 512;
    return there < 4 ? 4 : 4 + load_u32(link->in.data + link->in.begin);
}

/* Room for the frame that is under way at once, so that a long frame needs no second move. A length that is
 * refused later must not be reserved: it is a number that a stranger wrote. */
uint8_t *rpc_link_room(rpc_link *link, size_t *size)
{
    if (link->taken) {
        drop(&link->in, link->taken);
        link->taken = 0;
    }
    size_t there = link->in.end - link->in.begin, wanted = link->state == BROKEN ? 0 : wanted_bytes(link);
    if (wanted > (size_t)link->max_frame + RPC_FRAME_HEAD + RPC_TAG_BYTES)
        wanted = RPC_LEAST_FRAME; /* rpc_link_next refuses the frame */
    size_t more = wanted > there ? wanted - there : 0;
    /* A link that waits for its handshake costs little memory; later, reads are long. */
    size_t least = link->state >= AWAIT_HELLO ? 16384 : 512;
    uint8_t *at = link->state == BROKEN ? NULL : reserve(&link->in, more > least ? more : least);
    if (!at && link->state != BROKEN)
        break_memory(link);
    *size = at ? link->in.cap - link->in.end : 0;
    return at;
}

void rpc_link_received(rpc_link *link, size_t n)
{
    link->in.end += n;
    if (link->state < AWAIT_HELLO)
        shake_hands(link);
}

/* For messages without texts and lists, whose structs need nothing of the arena, which is given back at once;
 * `program` of hello lies in the frame itself. */
static bool decode(rpc_link *link, const rpc_frame *frame, rpc_any *message)
{
    rt_arena arena = {0};
    bool good = rpc_decode(message, (uint32_t)frame->kind, frame->body, frame->n, link->version, &arena);

    rt_arena_free(&arena);
    if (!good)
        rpc_link_break(link, TEC_PROTOCOL, "message '%s' cannot be decoded", frame->row->record->name);
    return good;
}

/* Limits of the other side hold for what this side sends. A window shorter than a frame could never admit a
 * full one. */
static void on_hello(rpc_link *link, const rpc_frame *frame)
{
    rpc_any m;

    if (frame->kind != RPC_KIND_hello) {
        rpc_link_break(link, TEC_PROTOCOL, "expected hello first, found '%s'", frame->row->record->name);
        return;
    }
    if (!decode(link, frame, &m))
        return;
    if (m.hello.max_frame < RPC_LEAST_FRAME || m.hello.window < m.hello.max_frame ||
        m.hello.window > RPC_MOST_WINDOW) {
        rpc_link_break(link, TEC_PROTOCOL, "hello asks for frames of %lld bytes in windows of %lld",
                       (long long)m.hello.max_frame, (long long)m.hello.window);
        return;
    }
    link->peer_frame = m.hello.max_frame < RPC_MOST_FRAME ? m.hello.max_frame : RPC_MOST_FRAME;
    link->peer_window = m.hello.window;
    snprintf(link->peer, sizeof link->peer, "%s", m.hello.program);
    link->state = READY;
}

/* The sum is checked, as the other side could let it overflow step by step. */
static void on_window(rpc_link *link, const rpc_frame *frame)
{
    stream *s = find_stream(link, frame->stream);
    rpc_any m;

    if (!decode(link, frame, &m) || !s)
        return;
    if (m.window.bytes < 0 || m.window.bytes > RPC_MOST_WINDOW ||
        s->may_send + m.window.bytes > RPC_MOST_WINDOW)
        rpc_link_break(link, TEC_PROTOCOL, "stream %u is granted %lld bytes", (unsigned)frame->stream,
                       (long long)m.window.bytes);
    else
        s->may_send += m.window.bytes;
}

/* Whether the frame may come at all: its kind, its sender, its place, its length. `failure` may come on any
 * stream and on none: it answers a question, or ends everything. */
static bool check_row(rpc_link *link, const rpc_frame *frame)
{
    rpc_sender sender = link->is_server ? RPC_FROM_CLIENT : RPC_FROM_SERVER;

    if (!frame->row)
        rpc_link_break(link, TEC_PROTOCOL, "a frame is of kind %u, which there is not",
                       (unsigned)frame->kind);
    else if (!(frame->row->sender & sender))
        rpc_link_break(link, TEC_PROTOCOL, "message '%s' is not one that a %s sends",
                       frame->row->record->name, link->is_server ? "client" : "server");
    else if ((frame->row->place == RPC_ON_SESSION) != (frame->stream != 0) && frame->kind != RPC_KIND_failure)
        rpc_link_break(link, TEC_PROTOCOL, "message '%s' came on stream %u", frame->row->record->name,
                       (unsigned)frame->stream);
    else if (frame->n > frame->row->limit)
        rpc_link_break(link, TEC_PROTOCOL, "message '%s' has %zu bytes; its limit is %zu",
                       frame->row->record->name, frame->n, frame->row->limit);
    return link->state != BROKEN;
}

bool rpc_link_lacks_role(const rpc_link *link, const rpc_frame *frame)
{
    return link->is_server && !(frame->row->roles & link->roles);
}

/* Whether the frame is for somebody: its stream is open, or opened by it, and its window is kept. False
 * without a break means that the frame is dropped: its stream was closed while the frame was under way. */
static bool check_stream(rpc_link *link, const rpc_frame *frame)
{
    stream *s = find_stream(link, frame->stream);

    if (frame->stream == 0)
        return true;
    if (!s && link->is_server && frame->kind == RPC_KIND_open && frame->stream > link->last_stream) {
        s = add_stream(link, frame->stream);
        if (!s)
            rpc_link_break(link, TEC_PROTOCOL, "more than %d streams at once", RPC_MOST_STREAMS);
    } else if (!s && frame->stream > link->last_stream)
        rpc_link_break(link, TEC_PROTOCOL, "message '%s' came on stream %u, which is not open",
                       frame->row->record->name, (unsigned)frame->stream);
    if (!s || frame->kind != RPC_KIND_data)
        return s && link->state != BROKEN;
    s->may_receive -= (int64_t)frame->n;
    if (s->may_receive < 0)
        rpc_link_break(link, TEC_PROTOCOL, "stream %u carries more than its window of %lld bytes",
                       (unsigned)frame->stream, (long long)link->window);
    return link->state != BROKEN;
}

/* Opens the next sealed frame in place; false: there is none yet, or the link broke. */
static bool open_frame(rpc_link *link, rpc_frame *frame)
{
    uint8_t *at = link->in.data + link->in.begin;
    size_t there = link->in.end - link->in.begin, sealed = there >= 4 ? load_u32(at) : 0;

    if (there < 4)
        return false;
    if (sealed < RPC_FRAME_HEAD - 4 + RPC_TAG_BYTES ||
        sealed > (size_t)link->max_frame + RPC_FRAME_HEAD - 4 + RPC_TAG_BYTES) {
        rpc_link_break(link, TEC_PROTOCOL, "a frame claims %zu bytes; between %d and %lld are expected",
                       sealed, RPC_FRAME_HEAD - 4 + RPC_TAG_BYTES,
                       (long long)link->max_frame + RPC_FRAME_HEAD - 4 + RPC_TAG_BYTES);
        return false;
    }
    if (there < 4 + sealed)
        return false;
    if (!rpc_seal_open(&link->seal, at + 4, sealed - RPC_TAG_BYTES, at, 4)) {
        rpc_link_break(link, TEC_PROTOCOL,
                       "frame %llu does not open: it was changed, repeated, left out or moved on its way",
                       (unsigned long long)link->seal.received);
        return false;
    }
    link->taken = 4 + sealed;
    *frame = (rpc_frame){
        .stream = load_u32(at + 4), .kind = (rpc_kind)load_u32(at + 8), .body = at + RPC_FRAME_HEAD};
    frame->n = sealed - RPC_TAG_BYTES - (RPC_FRAME_HEAD - 4);
    frame->row = rpc_find_message((uint32_t)frame->kind);
    return true;
}

/* Goes round for frames that are the link's own. The frame handed out last is dropped first, which is why its
 * body is valid only until this call. */
rpc_event rpc_link_next(rpc_link *link, rpc_frame *frame)
{
    for (;;) {
        drop(&link->in, link->taken);
        link->taken = 0;
        if (link->state < AWAIT_HELLO || link->state >= RAW || !open_frame(link, frame) ||
            !check_row(link, frame))
            return link->state == BROKEN ? RPC_BROKEN : RPC_NOTHING;
        if (link->state == AWAIT_HELLO)
            on_hello(link, frame);
        else if (frame->kind == RPC_KIND_hello)
            rpc_link_break(link, TEC_PROTOCOL, "hello came twice");
        else if (rpc_link_lacks_role(link, frame) && frame->kind != RPC_KIND_open)
            return RPC_FRAME; /* on whatever stream: the owner refuses it by name */
        else if (check_stream(link, frame) && frame->kind != RPC_KIND_window)
            return RPC_FRAME;
        else if (frame->kind == RPC_KIND_window)
            on_window(link, frame);
    }
}

/* ---- bytes of another link ---- */

void rpc_link_make_raw(rpc_link *link)
{
    drop(&link->in, link->taken);
    link->taken = 0;
    if (link->state != BROKEN)
        link->state = RAW;
}

const uint8_t *rpc_link_raw(rpc_link *link, size_t *n)
{
    const uint8_t *at = link->in.data + link->in.begin;

    *n = link->in.end - link->in.begin;
    link->in.begin = link->in.end = 0;
    return at;
}

bool rpc_link_put_raw(rpc_link *link, const void *data, size_t n)
{
    return n == 0 || add_output(link, data, n);
}

/* ---- output and asking ---- */

const uint8_t *rpc_link_output(const rpc_link *link, size_t *n)
{
    *n = link->out.end - link->out.begin;
    return link->out.data + link->out.begin;
}

void rpc_link_sent(rpc_link *link, size_t n)
{
    drop(&link->out, n);
}

size_t rpc_link_max_body(const rpc_link *link)
{
    return (size_t)link->peer_frame;
}

bool rpc_link_ready(const rpc_link *link)
{
    return link->state == READY;
}

int rpc_link_version(const rpc_link *link)
{
    return link->version;
}

unsigned rpc_link_roles(const rpc_link *link)
{
    return link->roles;
}

const uint8_t *rpc_link_id(const rpc_link *link)
{
    return link->key.id;
}

const char *rpc_link_peer(const rpc_link *link)
{
    return link->peer;
}
