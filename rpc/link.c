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

static void free_queue(queue *q)
{
    rt_free(q->data);
    *q = (queue){0};
}

/* Room for n bytes behind the end; NULL: no memory. Old bytes are moved to the front before the memory grows,
 * and the caller adds n to `end` itself. Every pointer into the queue is invalid after this call. */
static uint8_t *reserve(queue *q, size_t n)
{
    size_t used = q->end - q->begin;

    if (q->cap - q->end >= n)
        return q->data + q->end;
    if (q->cap < used + n) {
        size_t cap = q->cap * 2 > used + n ? q->cap * 2 : used + n;
        uint8_t *data = rt_alloc(cap, NULL);

        if (!data)
            return NULL;
        if (used)
            memcpy(data, q->data + q->begin, used);
        rt_free(q->data);
        q->data = data;
        q->cap = cap;
    } else
        memmove(q->data, q->data + q->begin, used);
    q->begin = 0;
    q->end = used;
    return q->data + q->end;
}

static void drop(queue *q, size_t n)
{
    q->begin += n;
    if (q->begin == q->end)
        q->begin = q->end = 0;
}

/* ---- errors ---- */

/* The first reason stays. Output that is waiting is kept, because it may hold the answer that tells the other
 * side. */
void rpc_link_break(rpc_link *l, tec_status status, const char *fmt, ...)
{
    va_list args;

    if (l->state == BROKEN)
        return;
    l->state = BROKEN;
    l->err.status = status;
    va_start(args, fmt);
    vsnprintf(l->err.text, sizeof l->err.text, fmt, args);
    va_end(args);
}

static void break_memory(rpc_link *l)
{
    rpc_link_break(l, TEC_NO_MEMORY, "no memory for a frame");
}

const tec_error *rpc_link_error(const rpc_link *l)
{
    return &l->err;
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
static bool add_output(rpc_link *l, const void *data, size_t n)
{
    uint8_t *to = reserve(&l->out, n);

    if (!to) {
        break_memory(l);
        return false;
    }
    memcpy(to, data, n);
    l->out.end += n;
    return true;
}

/* The greeting is kept, since both proofs cover its bytes. */
static void greet(rpc_link *l)
{
    rpc_greeting g = {.oldest = l->o.oldest, .newest = l->o.newest};

    memcpy(g.id, l->key.id, sizeof g.id);
    rpc_seal_begin(&l->seal, g.point);
    rpc_random(g.nonce, sizeof g.nonce);
    rpc_put_greeting(l->greeting, &g);
    add_output(l, l->greeting, sizeof l->greeting);
}

/* A client's greeting lies in the output when this returns. Until hello tells how long frames may be, only
 * the length that every side accepts is used. */
rpc_link *rpc_link_new(const rpc_link_options *o, tec_error *err)
{
    rpc_link *l = rt_alloc(sizeof *l, err);

    if (!l)
        return NULL;
    if (!rpc_seal_ready()) {
        rt_fail(err, TEC_IO, "the system gives no random numbers");
        rt_free(l);
        return NULL;
    }
    l->o = *o;
    l->o.oldest = o->oldest ? o->oldest : RPC_OLDEST;
    l->o.newest = o->newest ? o->newest : RPC_NEWEST;
    l->max_frame = o->max_frame ? o->max_frame : RPC_USUAL_FRAME;
    l->window = o->window ? o->window : RPC_USUAL_WINDOW;
    l->peer_frame = RPC_LEAST_FRAME;
    l->is_server = !o->key;
    l->state = l->is_server ? AWAIT_GREETING : AWAIT_ANSWER;
    if (o->key) {
        l->key = *o->key;
        greet(l);
    }
    return l;
}

void rpc_link_free(rpc_link *l)
{
    if (!l)
        return;
    rpc_seal_clear(&l->seal);
    memset(&l->key, 0, sizeof l->key);
    free_queue(&l->in);
    free_queue(&l->out);
    rt_bytes_free(&l->scratch);
    rt_free(l);
}

/* ---- streams ---- */

/* At most 64 are open, so the list is searched. */
static stream *find_stream(const rpc_link *l, uint32_t id)
{
    for (int i = 0; i < l->n_streams; i++)
        if (l->streams[i].id == id)
            return (stream *)(uintptr_t)&l->streams[i];
    return NULL;
}

/* The window is the one that hello announced: streams are opened only once the link is ready. */
static stream *add_stream(rpc_link *l, uint32_t id)
{
    if (l->n_streams == RPC_MOST_STREAMS)
        return NULL;
    l->last_stream = id;
    l->streams[l->n_streams] = (stream){.id = id, .may_send = l->peer_window, .may_receive = l->window};
    return &l->streams[l->n_streams++];
}

uint32_t rpc_link_open_stream(rpc_link *l)
{
    stream *s = l->last_stream < UINT32_MAX ? add_stream(l, l->last_stream + 1) : NULL;

    return s ? s->id : 0;
}

/* The last stream takes the place of the closed one. */
void rpc_link_close_stream(rpc_link *l, uint32_t id)
{
    stream *s = find_stream(l, id);

    if (s)
        *s = l->streams[--l->n_streams];
}

/* A quarter of the window is collected before it is granted again, so that one message of 16 bytes stands for
 * many pieces of data. */
void rpc_link_consumed(rpc_link *l, uint32_t id, size_t n)
{
    stream *s = find_stream(l, id);

    if (!s || l->state != READY)
        return;
    s->consumed += (int64_t)n;
    if (s->consumed < l->window / 4)
        return;
    int64_t more = s->consumed;
    s->may_receive += more;
    s->consumed = 0;
    rpc_link_send(l, id, RPC_KIND_window, &(rpc_window){more});
}

size_t rpc_link_may_send(const rpc_link *l, uint32_t id)
{
    const stream *s = find_stream(l, id);

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
static bool send_parts(rpc_link *l, uint32_t id, rpc_kind kind, const void *a, size_t n_a, const void *b,
                       size_t n_b)
{
    size_t plain = RPC_FRAME_HEAD - 4 + n_a + n_b;
    uint8_t *to = reserve(&l->out, 4 + plain + RPC_TAG_BYTES);

    if (!to) {
        break_memory(l);
        return false;
    }
    store_u32(to, (uint32_t)(plain + RPC_TAG_BYTES));
    store_u32(to + 4, id);
    store_u32(to + 8, (uint32_t)kind);
    if (n_a)
        memcpy(to + RPC_FRAME_HEAD, a, n_a);
    if (n_b)
        memcpy(to + RPC_FRAME_HEAD + n_a, b, n_b);
    if (!rpc_seal_close(&l->seal, to + 4, plain, to, 4)) {
        rpc_link_break(l, TEC_PROTOCOL, "the connection has carried as many frames as it may");
        return false;
    }
    l->out.end += 4 + plain + RPC_TAG_BYTES;
    return true;
}

/* Whether a frame of n bytes may go out on a stream; data take from the stream's window. */
static bool admit(rpc_link *l, uint32_t id, rpc_kind kind, size_t n)
{
    stream *s = find_stream(l, id);

    if (l->state != READY || n > (size_t)l->peer_frame || (id && !s))
        return false;
    if (s && kind == RPC_KIND_data)
        s->may_send -= (int64_t)n;
    return true;
}

bool rpc_link_send_body(rpc_link *l, uint32_t id, rpc_kind kind, const void *body, size_t n)
{
    return admit(l, id, kind, n) && send_parts(l, id, kind, body, n, NULL, 0);
}

bool rpc_link_send_piece(rpc_link *l, uint32_t id, const void *piece, size_t n)
{
    uint8_t head[RPC_DATA_HEAD];

    store_u32(head, (uint32_t)n);
    store_u32(head + 4, 0);
    return admit(l, id, RPC_KIND_data, n + sizeof head) &&
           send_parts(l, id, RPC_KIND_data, head, sizeof head, piece, n);
}

/* The message is encoded before the frame is begun: the length stands in front. */
bool rpc_link_send(rpc_link *l, uint32_t id, rpc_kind kind, const void *message)
{
    l->scratch.n = 0;
    rpc_encode(&l->scratch, kind, message, l->version);
    if (l->scratch.failed) {
        break_memory(l);
        return false;
    }
    return rpc_link_send_body(l, id, kind, l->scratch.data, l->scratch.n);
}

/* Written without `admit`, since the link is not ready yet. Only a server has roles to tell, and the client
 * learns from them what its key may do. */
static void say_hello(rpc_link *l)
{
    char roles[64];
    rpc_hello h = {.program = l->o.program, .max_frame = l->max_frame, .window = l->window, .roles = roles};

    snprintf(roles, sizeof roles, "%s%s%s", l->roles & RPC_ROLE_SUBMIT ? "submit " : "",
             l->roles & RPC_ROLE_SERVE ? "serve " : "", l->roles & RPC_ROLE_ADMINISTER ? "administer" : "");
    l->scratch.n = 0;
    rpc_encode(&l->scratch, RPC_KIND_hello, &h, l->version);
    if (l->scratch.failed)
        break_memory(l);
    else
        send_parts(l, 0, RPC_KIND_hello, l->scratch.data, l->scratch.n, NULL, 0);
}

/* ---- the handshake ---- */

/* Takes n bytes of the input, once they are there. The bytes stay where they are until more are read, so the
 * caller may use them at once. */
static const uint8_t *take(rpc_link *l, size_t n)
{
    if (l->in.end - l->in.begin < n)
        return NULL;
    l->in.begin += n;
    return l->in.data + l->in.begin - n;
}

/* The newest version that both ranges have; 0: there is none. */
static int common_version(const rpc_link *l, int oldest, int newest)
{
    int version = newest < l->o.newest ? newest : l->o.newest;

    return version >= oldest && version >= l->o.oldest ? version : 0;
}

/* An answer without proof and keys: its verdict is the whole message. */
static void refuse(rpc_link *l, rpc_answer *a, rpc_verdict verdict)
{
    a->verdict = verdict;
    rpc_put_answer(l->answer, a);
    add_output(l, l->answer, sizeof l->answer);
}

/* The answer is put down twice: the hash that the proof needs covers all of the answer but the proof. */
static void answer(rpc_link *l, const rpc_greeting *g, rpc_answer *a)
{
    rpc_seal_begin(&l->seal, a->point);
    rpc_random(a->nonce, sizeof a->nonce);
    rpc_put_answer(l->answer, a);
    if (!rpc_seal_agree(&l->seal, &l->key, g->point, l->greeting, l->answer, true)) {
        rpc_link_break(l, TEC_PROTOCOL, "the greeting's X25519 key is none");
        return;
    }
    rpc_seal_proof(&l->seal, true, a->proof);
    rpc_put_answer(l->answer, a);
    if (add_output(l, l->answer, sizeof l->answer))
        l->state = AWAIT_PROOF;
}

/* A server's side of the greeting: versions, then the key. Fullness is told first, as it needs no look at the
 * key. A key that is not there and one that is revoked get the same verdict, so that nobody can find out
 * which ids exist; the difference is in this server's log. */
static void on_greeting(rpc_link *l, const uint8_t *bytes)
{
    rpc_answer a = {.oldest = l->o.oldest, .newest = l->o.newest};
    rpc_greeting g;
    rpc_grant grant = {.why = "no such key"};

    memcpy(l->greeting, bytes, sizeof l->greeting);
    if (!rpc_get_greeting(bytes, &g)) {
        rpc_link_break(l, TEC_PROTOCOL, "the greeting states no range of versions");
        return;
    }
    memcpy(l->key.id, g.id, sizeof g.id);
    a.version = common_version(l, g.oldest, g.newest);
    l->version = a.version;
    if (l->o.full) {
        refuse(l, &a, RPC_FULL);
        rpc_link_break(l, TEC_REFUSED, "there are as many connections as this server takes");
    } else if (!a.version) {
        refuse(l, &a, RPC_NO_COMMON_VERSION);
        rpc_link_break(
            l, TEC_REFUSED,
            "the client speaks versions %d to %d of the protocol, this server %d to %d: upgrade the %s",
            g.oldest, g.newest, l->o.oldest, l->o.newest, g.newest < l->o.oldest ? "client" : "server");
    } else if (!l->o.find(l->o.user, g.id, &grant)) {
        refuse(l, &a, RPC_UNKNOWN_KEY);
        rpc_link_break(l, TEC_DENIED, "key %s is refused: %s", rpc_show_id(g.id).text, grant.why);
    } else {
        l->key = grant.key;
        l->roles = grant.roles;
        answer(l, &g, &a);
    }
}

/* A client's reading of an answer that does not welcome. The break at the end counts only for a verdict that
 * this version does not know, since the first reason stays. */
static void on_refusal(rpc_link *l, const rpc_answer *a)
{
    rpc_id_text id = rpc_show_id(l->key.id);

    switch (a->verdict) {
    case RPC_WELCOME: break;
    case RPC_UNKNOWN_KEY:
        rpc_link_break(l, TEC_DENIED,
                       "the server refuses the key %s: it does not know the key, or the key is revoked",
                       id.text);
        break;
    case RPC_NO_COMMON_VERSION:
        rpc_link_break(
            l, TEC_REFUSED,
            "the server speaks versions %d to %d of the protocol, this client %d to %d: upgrade the %s",
            a->oldest, a->newest, l->o.oldest, l->o.newest, l->o.newest < a->oldest ? "client" : "server");
        break;
    case RPC_FULL: rpc_link_break(l, TEC_REFUSED, "the server has as many connections as it takes"); break;
    }
    rpc_link_break(l, TEC_PROTOCOL, "the server's answer has the verdict %d, which this client does not know",
                   (int)a->verdict);
}

/* The version is checked to be the newest that both speak: somebody on the way could otherwise make two new
 * programs speak an old version. The proof is checked before anything is sent that depends on the secret. */
static void on_answer(rpc_link *l, const uint8_t *bytes)
{
    uint8_t proof[RPC_PROOF_BYTES];
    rpc_answer a;

    memcpy(l->answer, bytes, sizeof l->answer);
    if (!rpc_get_answer(bytes, &a))
        rpc_link_break(l, TEC_PROTOCOL, "the server's answer is none of this protocol");
    else if (a.verdict != RPC_WELCOME)
        on_refusal(l, &a);
    else if (a.version != common_version(l, a.oldest, a.newest) || !a.version)
        rpc_link_break(l, TEC_PROTOCOL,
                       "the server chose version %d of the protocol, which is not the newest that both speak",
                       a.version);
    else if (!rpc_seal_agree(&l->seal, &l->key, a.point, l->greeting, l->answer, false))
        rpc_link_break(l, TEC_PROTOCOL, "the server's X25519 key is none");
    else if (!rpc_seal_check(&l->seal, true, a.proof))
        rpc_link_break(l, TEC_DENIED,
                       "the server does not prove the secret of key %s: it has another one under this name, "
                       "or somebody changed "
                       "the handshake on its way",
                       rpc_show_id(l->key.id).text);
    if (l->state == BROKEN)
        return;
    l->version = a.version;
    rpc_seal_proof(&l->seal, false, proof);
    if (add_output(l, proof, sizeof proof)) {
        l->state = AWAIT_HELLO;
        say_hello(l);
    }
}

/* Only here does a server know that the client has the secret, and not only its id. */
static void on_proof(rpc_link *l, const uint8_t *bytes)
{
    if (!rpc_seal_check(&l->seal, false, bytes)) {
        rpc_link_break(l, TEC_DENIED, "the client does not prove the secret of key %s",
                       rpc_show_id(l->key.id).text);
        return;
    }
    l->state = AWAIT_HELLO;
    say_hello(l);
}

/* Goes as far in the handshake as the bytes reach. The first bytes are looked at as soon as they come: an
 * HTTP request to this port is told at once, and not when as many bytes as a greeting has have come. */
static void shake_hands(rpc_link *l)
{
    const uint8_t *bytes;
    size_t there = l->in.end - l->in.begin;

    if ((l->state == AWAIT_GREETING || l->state == AWAIT_ANSWER) && there &&
        !rpc_may_greet(l->in.data + l->in.begin, there))
        rpc_link_break(l, TEC_PROTOCOL,
                       "the other side does not speak this protocol: its first byte is 0x%02x",
                       l->in.data[l->in.begin]);
    if (l->state == AWAIT_GREETING && (bytes = take(l, RPC_GREETING_BYTES)))
        on_greeting(l, bytes);
    if (l->state == AWAIT_ANSWER && (bytes = take(l, RPC_ANSWER_BYTES)))
        on_answer(l, bytes);
    if (l->state == AWAIT_PROOF && (bytes = take(l, RPC_PROOF_BYTES)))
        on_proof(l, bytes);
}

/* ---- receiving ---- */

/* Bytes of the frame that begins in the input, as far as that is known. */
static size_t wanted_bytes(rpc_link *l)
{
    size_t there = l->in.end - l->in.begin;

    if (l->state == AWAIT_GREETING || l->state == AWAIT_PROOF || l->state == AWAIT_ANSWER)
        return 512;
    return there < 4 ? 4 : 4 + load_u32(l->in.data + l->in.begin);
}

/* Room for the frame that is under way at once, so that a long frame needs no second move. A length that is
 * refused later must not be reserved: it is a number that a stranger wrote. */
uint8_t *rpc_link_room(rpc_link *l, size_t *size)
{
    if (l->taken) {
        drop(&l->in, l->taken);
        l->taken = 0;
    }
    size_t there = l->in.end - l->in.begin, wanted = l->state == BROKEN ? 0 : wanted_bytes(l);
    if (wanted > (size_t)l->max_frame + RPC_FRAME_HEAD + RPC_TAG_BYTES)
        wanted = RPC_LEAST_FRAME; /* rpc_link_next refuses the frame */
    size_t more = wanted > there ? wanted - there : 0;
    /* A link that waits for its handshake costs little memory; later, reads are long. */
    size_t least = l->state >= AWAIT_HELLO ? 16384 : 512;
    uint8_t *at = l->state == BROKEN ? NULL : reserve(&l->in, more > least ? more : least);
    if (!at && l->state != BROKEN)
        break_memory(l);
    *size = at ? l->in.cap - l->in.end : 0;
    return at;
}

void rpc_link_received(rpc_link *l, size_t n)
{
    l->in.end += n;
    if (l->state < AWAIT_HELLO)
        shake_hands(l);
}

/* For messages without texts and lists, whose structs need nothing of the arena, which is given back at once;
 * `program` of hello lies in the frame itself. */
static bool decode(rpc_link *l, const rpc_frame *f, rpc_any *m)
{
    rt_arena arena = {0};
    bool good = rpc_decode(m, (uint32_t)f->kind, f->body, f->n, l->version, &arena);

    rt_arena_free(&arena);
    if (!good)
        rpc_link_break(l, TEC_PROTOCOL, "message '%s' is garbled", f->row->record->name);
    return good;
}

/* Limits of the other side hold for what this side sends. A window shorter than a frame could never admit a
 * full one. */
static void on_hello(rpc_link *l, const rpc_frame *f)
{
    rpc_any m;

    if (f->kind != RPC_KIND_hello) {
        rpc_link_break(l, TEC_PROTOCOL, "expected hello first, found '%s'", f->row->record->name);
        return;
    }
    if (!decode(l, f, &m))
        return;
    if (m.hello.max_frame < RPC_LEAST_FRAME || m.hello.window < m.hello.max_frame ||
        m.hello.window > RPC_MOST_WINDOW) {
        rpc_link_break(l, TEC_PROTOCOL, "hello asks for frames of %lld bytes in windows of %lld",
                       (long long)m.hello.max_frame, (long long)m.hello.window);
        return;
    }
    l->peer_frame = m.hello.max_frame < RPC_MOST_FRAME ? m.hello.max_frame : RPC_MOST_FRAME;
    l->peer_window = m.hello.window;
    snprintf(l->peer, sizeof l->peer, "%s", m.hello.program);
    l->state = READY;
}

/* The sum is checked, as the other side could let it overflow step by step. */
static void on_window(rpc_link *l, const rpc_frame *f)
{
    stream *s = find_stream(l, f->stream);
    rpc_any m;

    if (!decode(l, f, &m) || !s)
        return;
    if (m.window.bytes < 0 || m.window.bytes > RPC_MOST_WINDOW ||
        s->may_send + m.window.bytes > RPC_MOST_WINDOW)
        rpc_link_break(l, TEC_PROTOCOL, "stream %u is granted %lld bytes", (unsigned)f->stream,
                       (long long)m.window.bytes);
    else
        s->may_send += m.window.bytes;
}

/* Whether the frame may come at all: its kind, its sender, its place, its length. `failure` may come on any
 * stream and on none: it answers a question, or ends everything. */
static bool check_row(rpc_link *l, const rpc_frame *f)
{
    rpc_sender sender = l->is_server ? RPC_FROM_CLIENT : RPC_FROM_SERVER;

    if (!f->row)
        rpc_link_break(l, TEC_PROTOCOL, "a frame is of kind %u, which there is not", (unsigned)f->kind);
    else if (!(f->row->sender & sender))
        rpc_link_break(l, TEC_PROTOCOL, "message '%s' is not one that a %s sends", f->row->record->name,
                       l->is_server ? "client" : "server");
    else if ((f->row->place == RPC_ON_SESSION) != (f->stream != 0) && f->kind != RPC_KIND_failure)
        rpc_link_break(l, TEC_PROTOCOL, "message '%s' came on stream %u", f->row->record->name,
                       (unsigned)f->stream);
    else if (f->n > f->row->limit)
        rpc_link_break(l, TEC_PROTOCOL, "message '%s' has %zu bytes; its limit is %zu", f->row->record->name,
                       f->n, f->row->limit);
    return l->state != BROKEN;
}

/* Whether the frame is for somebody: its stream is open, or opened by it, and its window is kept. False
 * without a break means that the frame is dropped: its stream was closed while the frame was under way. */
static bool check_stream(rpc_link *l, const rpc_frame *f)
{
    stream *s = find_stream(l, f->stream);

    if (f->stream == 0)
        return true;
    if (!s && l->is_server && f->kind == RPC_KIND_open && f->stream > l->last_stream) {
        s = add_stream(l, f->stream);
        if (!s)
            rpc_link_break(l, TEC_PROTOCOL, "more than %d streams at once", RPC_MOST_STREAMS);
    } else if (!s && f->stream > l->last_stream)
        rpc_link_break(l, TEC_PROTOCOL, "message '%s' came on stream %u, which is not open",
                       f->row->record->name, (unsigned)f->stream);
    if (!s || f->kind != RPC_KIND_data)
        return s && l->state != BROKEN;
    s->may_receive -= (int64_t)f->n;
    if (s->may_receive < 0)
        rpc_link_break(l, TEC_PROTOCOL, "stream %u carries more than its window of %lld bytes",
                       (unsigned)f->stream, (long long)l->window);
    return l->state != BROKEN;
}

/* Opens the next sealed frame in place; false: there is none yet, or the link broke. */
static bool open_frame(rpc_link *l, rpc_frame *f)
{
    uint8_t *at = l->in.data + l->in.begin;
    size_t there = l->in.end - l->in.begin, sealed = there >= 4 ? load_u32(at) : 0;

    if (there < 4)
        return false;
    if (sealed < RPC_FRAME_HEAD - 4 + RPC_TAG_BYTES ||
        sealed > (size_t)l->max_frame + RPC_FRAME_HEAD - 4 + RPC_TAG_BYTES) {
        rpc_link_break(l, TEC_PROTOCOL, "a frame claims %zu bytes; between %d and %lld are expected", sealed,
                       RPC_FRAME_HEAD - 4 + RPC_TAG_BYTES,
                       (long long)l->max_frame + RPC_FRAME_HEAD - 4 + RPC_TAG_BYTES);
        return false;
    }
    if (there < 4 + sealed)
        return false;
    if (!rpc_seal_open(&l->seal, at + 4, sealed - RPC_TAG_BYTES, at, 4)) {
        rpc_link_break(l, TEC_PROTOCOL,
                       "frame %llu does not open: it was changed, repeated, left out or moved on its way",
                       (unsigned long long)l->seal.received);
        return false;
    }
    l->taken = 4 + sealed;
    *f = (rpc_frame){
        .stream = load_u32(at + 4), .kind = (rpc_kind)load_u32(at + 8), .body = at + RPC_FRAME_HEAD};
    f->n = sealed - RPC_TAG_BYTES - (RPC_FRAME_HEAD - 4);
    f->row = rpc_find_message((uint32_t)f->kind);
    return true;
}

/* Goes round for frames that are the link's own. The frame handed out last is dropped first, which is why its
 * body is valid only until this call. */
rpc_event rpc_link_next(rpc_link *l, rpc_frame *f)
{
    for (;;) {
        drop(&l->in, l->taken);
        l->taken = 0;
        if (l->state < AWAIT_HELLO || l->state >= RAW || !open_frame(l, f) || !check_row(l, f))
            return l->state == BROKEN ? RPC_BROKEN : RPC_NOTHING;
        if (l->state == AWAIT_HELLO)
            on_hello(l, f);
        else if (f->kind == RPC_KIND_hello)
            rpc_link_break(l, TEC_PROTOCOL, "hello came twice");
        else if (check_stream(l, f) && f->kind != RPC_KIND_window)
            return RPC_FRAME;
        else if (f->kind == RPC_KIND_window)
            on_window(l, f);
    }
}

/* ---- bytes of another link ---- */

void rpc_link_make_raw(rpc_link *l)
{
    drop(&l->in, l->taken);
    l->taken = 0;
    if (l->state != BROKEN)
        l->state = RAW;
}

const uint8_t *rpc_link_raw(rpc_link *l, size_t *n)
{
    const uint8_t *at = l->in.data + l->in.begin;

    *n = l->in.end - l->in.begin;
    l->in.begin = l->in.end = 0;
    return at;
}

bool rpc_link_put_raw(rpc_link *l, const void *data, size_t n)
{
    return n == 0 || add_output(l, data, n);
}

/* ---- output and asking ---- */

const uint8_t *rpc_link_output(const rpc_link *l, size_t *n)
{
    *n = l->out.end - l->out.begin;
    return l->out.data + l->out.begin;
}

void rpc_link_sent(rpc_link *l, size_t n)
{
    drop(&l->out, n);
}

size_t rpc_link_max_body(const rpc_link *l)
{
    return (size_t)l->peer_frame;
}

bool rpc_link_ready(const rpc_link *l)
{
    return l->state == READY;
}

int rpc_link_version(const rpc_link *l)
{
    return l->version;
}

unsigned rpc_link_roles(const rpc_link *l)
{
    return l->roles;
}

const uint8_t *rpc_link_id(const rpc_link *l)
{
    return l->key.id;
}

const char *rpc_link_peer(const rpc_link *l)
{
    return l->peer;
}
