/* tests/rpc/fuzz.c -- the wire's parser under damaged input: handshakes that are no handshakes, and frames of
 * a valid session, sealed by its keys, with wild and damaged bodies; a server's side and a client's side
 * each.
 *
 * `scripts/fuzz_coverage_wire` runs this with the parser's lines counted.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/rpc/grammar.h"

typedef struct {
    rpc_link *server, *client;
} pair;

typedef struct {
    uint64_t seed;
    pair p;
    uint32_t last;            /* stream that the client opened */
    int64_t executions, past; /* past: inputs that the first check let through */
} storm;

static const rpc_key key = {.id = {1, 2, 3}, .secret = {4, 5, 6}};

static bool find(void *user, const uint8_t *id, rpc_grant *grant)
{
    (void)user;
    if (memcmp(id, key.id, sizeof key.id) != 0)
        return false;
    *grant = (rpc_grant){.key = key, .roles = RPC_ROLE_ANY};
    return true;
}

static pair new_pair(storm *s)
{
    int newest = 1 + (int)fuzz_below(&s->seed, RPC_NEWEST);
    int64_t window = fuzz_below(&s->seed, 3) ? 0 : 1 << 17;
    pair p = {rpc_link_new(&(rpc_link_options){.find = find, .program = "server", .window = window}, NULL),
              rpc_link_new(&(rpc_link_options){.key = &key, .program = "client", .newest = newest}, NULL)};

    cr_assert(p.server && p.client);
    return p;
}

static void free_pair(pair *p)
{
    rpc_link_free(p->server);
    rpc_link_free(p->client);
    *p = (pair){0};
}

/* Hands bytes to a link in pieces of random lengths. */
static void feed(storm *s, rpc_link *to, const uint8_t *data, size_t n)
{
    while (n > 0) {
        size_t room;
        uint8_t *at = rpc_link_room(to, &room);
        size_t piece = (size_t)fuzz_below(&s->seed, 2000) + 1;

        if (!at)
            return;
        piece = piece < n ? piece : n;
        piece = piece < room ? piece : room;
        memcpy(at, data, piece);
        rpc_link_received(to, piece);
        data += piece;
        n -= piece;
    }
}

/* Moves what one side has to say to the other one. */
static void pass(storm *s, rpc_link *from, rpc_link *to)
{
    size_t n;
    const uint8_t *out = rpc_link_output(from, &n);

    feed(s, to, out, n);
    rpc_link_sent(from, n);
}

/* A message that was decoded has one encoding, which is the one that came. */
static void check_encoding(const rpc_frame *f, const rpc_any *m, int version)
{
    rt_bytes again = {0};

    rpc_encode(&again, f->kind, m, version);
    cr_assert(again.n == f->n && (f->n == 0 || memcmp(again.data, f->body, f->n) == 0),
              "'%s' came in another encoding", f->row->record->name);
    rt_bytes_free(&again);
}

/* Takes and decodes the frames that are there, as their receivers do; how many were whole messages. */
static int take(rpc_link *l)
{
    rpc_frame f;
    int whole = 0;

    while (rpc_link_next(l, &f) == RPC_FRAME) {
        rt_arena arena = {0};
        rpc_any m;

        if (rpc_decode(&m, (uint32_t)f.kind, f.body, f.n, rpc_link_version(l), &arena)) {
            check_encoding(&f, &m, rpc_link_version(l));
            whole++;
        }
        if (f.kind == RPC_KIND_data)
            rpc_link_consumed(l, f.stream, f.n);
        rt_arena_free(&arena);
    }
    return whole;
}

static bool shake_hands(storm *s, pair *p)
{
    for (int i = 0; i < 4; i++) {
        pass(s, p->client, p->server);
        take(p->server);
        pass(s, p->server, p->client);
        take(p->client);
    }
    return rpc_link_ready(p->server) && rpc_link_ready(p->client);
}

/* ---- without a session ---- */

/* The fields of a greeting or an answer, which have no length: a word of it becomes an edge. */
static void damage_fields(storm *s, rt_bytes *b)
{
    static const int words[] = {8, 10, 12, 14, 16, 18, 20, 84};
    uint8_t *at = b->data;
    int where = words[fuzz_below(&s->seed, (int64_t)(sizeof words / sizeof *words))];

    if (fuzz_below(&s->seed, 3) == 0)
        memset(at + 16, 0, b->n > 80 ? 64 : 0); /* a point that is none */
    else if ((size_t)where + 2 <= b->n) {
        at[where] = (uint8_t)fuzz_below(&s->seed, 6);
        at[where + 1] = 0;
    }
}

/* Clients and servers that are full, of other versions, or ask for limits that make no sense. */
static void refuse_handshake(storm *s)
{
    int64_t odd = fuzz_below(&s->seed, 4);
    pair p = {rpc_link_new(&(rpc_link_options){.find = find, .program = "server", .full = odd == 0}, NULL),
              rpc_link_new(&(rpc_link_options){.key = &key,
                                               .program = "client",
                                               .oldest = odd == 1 ? RPC_NEWEST + 1 : 0,
                                               .newest = odd == 1 ? RPC_NEWEST + 1 : 0,
                                               .max_frame = odd == 2 ? 7 : 0,
                                               .window = odd == 3 ? INT64_MAX : 0},
                           NULL)};

    cr_assert_not(shake_hands(s, &p));
    free_pair(&p);
}

/* A step of a handshake with damaged bytes: the greeting, the answer, or the proof and the hello behind it.
 */
static void damage_handshake(storm *s)
{
    pair p = new_pair(s);
    int64_t steps = fuzz_below(&s->seed, 3);
    rpc_link *from = steps == 1 ? p.server : p.client, *to = steps == 1 ? p.client : p.server;
    size_t n;

    for (int64_t i = 0; i < steps; i++)
        pass(s, i % 2 ? p.server : p.client, i % 2 ? p.client : p.server);
    const uint8_t *out = rpc_link_output(from, &n);
    rt_bytes bytes = {0};
    rt_bytes_add(&bytes, out, n);
    if (fuzz_below(&s->seed, 2))
        damage_fields(s, &bytes);
    else
        fuzz_damage(&s->seed, &bytes);
    feed(s, to, bytes.data, bytes.n);
    take(to);
    s->past += rpc_link_error(to)->status == TEC_OK || rpc_link_error(to)->status == TEC_DENIED;
    cr_assert(!(bytes.n == n && rpc_link_ready(to) && memcmp(bytes.data, out, n) != 0) || steps == 2,
              "a damaged handshake was accepted");
    rt_bytes_free(&bytes);
    free_pair(&p);
}

/* ---- with a session ---- */

static void renew_pair(storm *s)
{
    if (s->p.server && rpc_link_error(s->p.server)->status == TEC_OK &&
        rpc_link_error(s->p.client)->status == TEC_OK && fuzz_below(&s->seed, 1000))
        return;
    free_pair(&s->p);
    s->p = new_pair(s);
    s->last = 0;
    cr_assert(shake_hands(s, &s->p));
}

/* A stream that fits the message, or rarely one that does not: a fresh one for `open`, and else one that is
 * likely there. */
static uint32_t some_stream(storm *s, const rpc_message *m)
{
    bool fits = fuzz_below(&s->seed, 20) != 0;

    if (fits && (m->kind == RPC_KIND_open || !s->last)) {
        s->last = s->last < 60 ? rpc_link_open_stream(s->p.client) : s->last;
        if (m->kind != RPC_KIND_open)
            rpc_link_send(s->p.client, s->last, RPC_KIND_open, &(rpc_open){.device = "cpu", .label = ""});
        return s->last;
    }
    return (uint32_t)(fits ? 1 + fuzz_below(&s->seed, s->last) : fuzz_below(&s->seed, 70));
}

/* A message of one side, sealed by its keys; rarely of a kind or a stream that makes no sense. */
static void send_wild(storm *s, rpc_link *from, rpc_sender sender)
{
    const rpc_message *m = fuzz_kind(&s->seed, fuzz_below(&s->seed, 50) ? sender : RPC_FROM_EITHER);
    uint32_t stream = m->place == RPC_ON_SESSION ? some_stream(s, m) : 0;
    rt_bytes body = {0};

    fuzz_body(&s->seed, &body, m->record, rpc_link_version(from));
    if (fuzz_below(&s->seed, 3) == 0)
        fuzz_damage(&s->seed, &body);
    rpc_kind kind = fuzz_below(&s->seed, 200) ? m->kind : (rpc_kind)fuzz_below(&s->seed, 200);
    rpc_link_send_body(from, stream, kind, body.data, body.n);
    rt_bytes_free(&body);
}

/* What owners of links do besides: pieces of data up to the window and beyond, streams closed, links joined.
 */
static void act(storm *s)
{
    static const uint8_t zeros[2000];
    rpc_link *from = fuzz_below(&s->seed, 2) ? s->p.client : s->p.server;
    uint32_t stream = s->last ? 1 + (uint32_t)fuzz_below(&s->seed, s->last) : 0;

    switch (fuzz_below(&s->seed, 40)) {
    case 0: rpc_link_close_stream(from, stream); break;
    case 1:
        rpc_link_make_raw(s->p.server);
        rpc_link_put_raw(s->p.server, zeros, sizeof zeros);
        pass(s, s->p.client, s->p.server);
        rpc_link_raw(s->p.server, &(size_t){0});
        free_pair(&s->p);
        break;
    default:
        if (rpc_link_may_send(from, stream) > sizeof zeros + RPC_DATA_HEAD || fuzz_below(&s->seed, 100) == 0)
            rpc_link_send_piece(from, stream, zeros, sizeof zeros);
    }
}

/* The frame is opened by the other side; one in twenty is damaged on its way, which the seal must notice. */
static void damage_frame(storm *s, bool of_client)
{
    rpc_link *from, *to;
    size_t n;

    renew_pair(s);
    if (fuzz_below(&s->seed, 4) == 0)
        act(s);
    renew_pair(s);
    from = of_client ? s->p.client : s->p.server;
    to = of_client ? s->p.server : s->p.client;
    send_wild(s, from, of_client ? RPC_FROM_CLIENT : RPC_FROM_SERVER);
    const uint8_t *out = rpc_link_output(from, &n);
    if (n && fuzz_below(&s->seed, 20) == 0)
        ((uint8_t *)(uintptr_t)out)[fuzz_below(&s->seed, (int64_t)n)] ^= 1;
    pass(s, from, to);
    s->past += take(to) > 0;
    pass(s, to, from);
    take(from);
    pass(s, s->p.client, s->p.server); /* a stream that the client opened on the way */
    take(s->p.server);
}

Test(rpc_fuzz, survives_damaged_handshakes)
{
    storm s = {.seed = fuzz_seed(), .executions = fuzz_executions(4000)};

    cr_log_info("seed %llu", (unsigned long long)s.seed);
    for (int64_t i = 0; i < s.executions; i++) {
        damage_handshake(&s);
        if (i % 100 == 0)
            refuse_handshake(&s);
    }
    printf("handshakes: %lld of %lld inputs past the first check\n", (long long)s.past,
           (long long)s.executions);
    cr_assert_geq(10 * s.past, 3 * s.executions);
}

static void frames(bool of_client)
{
    storm s = {.seed = fuzz_seed(), .executions = fuzz_executions(40000)};

    for (int64_t i = 0; i < s.executions; i++)
        damage_frame(&s, of_client);
    printf("frames of a %s: %lld of %lld inputs past the first check\n", of_client ? "client" : "server",
           (long long)s.past, (long long)s.executions);
    cr_assert_geq(10 * s.past, 3 * s.executions);
    free_pair(&s.p);
}

Test(rpc_fuzz, survives_wild_frames_of_a_client_with_a_session)
{
    frames(true);
}

Test(rpc_fuzz, survives_wild_frames_of_a_server_with_a_session)
{
    frames(false);
}
