/* tests/rpc/link.c -- connections without sockets: the handshake and who is kept out, frames and what
 * breaks them, windows. */
#include "tests/rpc/kit.h"

#include "worker/wire.h"

static const rpc_link_options usual = {0};

/* What a side says about its end. */
#define BROKE(link, status_, words)                                                                          \
    do {                                                                                                     \
        const tec_error *e_ = rpc_link_error(link);                                                          \
        cr_assert_eq((int)e_->status, (int)(status_), "status %d: %s", (int)e_->status, e_->text);           \
        cr_assert(strstr(e_->text, words), "'%s' does not say '%s'", e_->text, words);                       \
    } while (0)

static uint32_t open_session(pair *p)
{
    uint32_t s = rpc_link_open_stream(p->client);
    rpc_frame f;

    cr_assert(rpc_link_send(p->client, s, RPC_KIND_open, &(rpc_open){.device = "cpu"}));
    kit_move(p->client, p->server, SIZE_MAX);
    cr_assert_eq(rpc_link_next(p->server, &f), RPC_FRAME);
    cr_assert(f.kind == RPC_KIND_open && f.stream == s);
    return s;
}

/* ---- the handshake ---- */

Test(rpc_link, joins_who_share_a_key)
{
    pair p = {0};
    rpc_frame f;

    kit_join(&p);
    cr_assert_str_eq(rpc_link_peer(p.client), "server 1");
    cr_assert_str_eq(rpc_link_peer(p.server), "client 1");
    cr_assert(rpc_link_version(p.client) == RPC_NEWEST && rpc_link_roles(p.server) == RPC_ROLE_ANY);
    cr_assert(rpc_link_send(p.client, 0, RPC_KIND_ping, &(rpc_ping){42}));
    kit_move(p.client, p.server, SIZE_MAX);
    cr_assert_eq(rpc_link_next(p.server, &f), RPC_FRAME);
    cr_assert(f.kind == RPC_KIND_ping && f.n == 8 && f.body[0] == 42);
    cr_assert_eq(rpc_link_next(p.server, &f), RPC_NOTHING);
    kit_close(&p);
}

Test(rpc_link, joins_byte_by_byte)
{
    pair p = {0};
    rpc_frame f;

    kit_open(&p, usual, usual);
    for (int i = 0; i < 2000; i++) {
        kit_move(p.client, p.server, 1);
        kit_move(p.server, p.client, 1);
        cr_assert_neq(rpc_link_next(p.server, &f), RPC_BROKEN);
        cr_assert_neq(rpc_link_next(p.client, &f), RPC_BROKEN);
    }
    cr_assert(rpc_link_ready(p.client) && rpc_link_ready(p.server));
    kit_close(&p);
}

Test(rpc_link, keeps_out_a_key_that_nobody_knows)
{
    pair p = {.key = kit_key(9), .served = kit_key(1), .roles = 1, .known = true};

    kit_open(&p, usual, usual);
    kit_settle(&p);
    BROKE(p.server, TEC_DENIED, "key 0909090909090909 is refused: no such key");
    BROKE(p.client, TEC_DENIED, "the server refuses the key 0909090909090909");
    kit_close(&p);
}

Test(rpc_link, keeps_out_another_secret_under_a_known_name)
{
    pair p = {.key = kit_key(1), .served = kit_key(1), .roles = 1, .known = true};

    p.key.secret[31] ^= 1;
    kit_open(&p, usual, usual);
    kit_settle(&p);
    BROKE(p.client, TEC_DENIED, "does not prove the secret of key 0101010101010101");
    cr_assert_not(rpc_link_ready(p.server));
    /* A client that does not mind, and sends a proof of its own making. */
    size_t room;
    memset(rpc_link_room(p.server, &room), 7, RPC_PROOF_BYTES);
    rpc_link_received(p.server, RPC_PROOF_BYTES);
    BROKE(p.server, TEC_DENIED, "the client does not prove the secret");
    kit_close(&p);
}

Test(rpc_link, sees_that_the_other_side_speaks_something_else)
{
    static const char *const said[] = {"GET / HTTP/1.1\r\n\r\n", "tec-rpx\n", "\x16\x03\x01"};

    for (int i = 0; i < BASE_COUNT(said); i++) {
        pair p = {0};
        size_t room;

        kit_open(&p, usual, usual);
        strcpy((char *)rpc_link_room(p.server, &room), said[i]);
        rpc_link_received(p.server, strlen(said[i]));
        BROKE(p.server, TEC_PROTOCOL, "does not speak this protocol");
        strcpy((char *)rpc_link_room(p.client, &room), said[i]);
        rpc_link_received(p.client, strlen(said[i]));
        BROKE(p.client, TEC_PROTOCOL, "does not speak this protocol");
        kit_close(&p);
    }
}

/* ---- versions ---- */

Test(rpc_link, speaks_the_newest_version_that_both_know)
{
    static const struct {
        int client[2], server[2], version;
    } cases[] = {{{1, 2}, {1, 2}, 2},
                 {{1, 1}, {1, 2}, 1},
                 {{1, 2}, {1, 1}, 1},
                 {{2, 3}, {1, 2}, 2},
                 {{1, 2}, {2, 3}, 2}};

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        pair p = {0};

        kit_open(&p, (rpc_link_options){.oldest = cases[i].client[0], .newest = cases[i].client[1]},
                 (rpc_link_options){.oldest = cases[i].server[0], .newest = cases[i].server[1]});
        kit_settle(&p);
        cr_assert(rpc_link_ready(p.client) && rpc_link_ready(p.server));
        cr_assert(rpc_link_version(p.client) == cases[i].version &&
                  rpc_link_version(p.server) == cases[i].version);
        kit_close(&p);
    }
}

Test(rpc_link, says_who_must_upgrade)
{
    pair p = {0}, q = {0};

    kit_open(&p, (rpc_link_options){.oldest = 1, .newest = 2}, (rpc_link_options){.oldest = 3, .newest = 4});
    kit_settle(&p);
    BROKE(p.client, TEC_REFUSED,
          "the server speaks versions 3 to 4 of the protocol, this client 1 to 2: upgrade the client");
    BROKE(p.server, TEC_REFUSED, "upgrade the client");
    kit_open(&q, (rpc_link_options){.oldest = 3, .newest = 4}, (rpc_link_options){.oldest = 1, .newest = 2});
    kit_settle(&q);
    BROKE(q.client, TEC_REFUSED, "upgrade the server");
    BROKE(q.server, TEC_REFUSED, "upgrade the server");
    kit_close(&p);
    kit_close(&q);
}

/* ---- somebody in between ---- */

/* Takes what a side wants to send, so that the test can change it. */
static size_t intercept(rpc_link *from, uint8_t *to)
{
    size_t n;
    const uint8_t *out = rpc_link_output(from, &n);

    if (n > 0)
        memcpy(to, out, n);
    rpc_link_sent(from, n);
    return n;
}

static void deliver(rpc_link *to, const uint8_t *bytes, size_t n)
{
    size_t room;
    uint8_t *at = rpc_link_room(to, &room);

    if (!at)
        return; /* broken already */
    cr_assert_geq(room, n);
    memcpy(at, bytes, n);
    rpc_link_received(to, n);
}

Test(rpc_link, any_changed_byte_of_the_handshake_is_seen)
{
    for (int at = 0; at < RPC_GREETING_BYTES + RPC_ANSWER_BYTES + RPC_PROOF_BYTES; at++) {
        pair p = {0};
        uint8_t bytes[4096];
        rpc_frame f;

        kit_open(&p, usual, usual);
        size_t n = intercept(p.client, bytes);
        if (at < RPC_GREETING_BYTES)
            bytes[at] ^= 4;
        deliver(p.server, bytes, n);
        n = intercept(p.server, bytes);
        if (at >= RPC_GREETING_BYTES && at < RPC_GREETING_BYTES + RPC_ANSWER_BYTES)
            bytes[at - RPC_GREETING_BYTES] ^= 4;
        deliver(p.client, bytes, n);
        n = intercept(p.client, bytes);
        if (n && at >= RPC_GREETING_BYTES + RPC_ANSWER_BYTES)
            bytes[at - RPC_GREETING_BYTES - RPC_ANSWER_BYTES] ^= 4;
        deliver(p.server, bytes, n);
        rpc_link_next(p.server, &f);
        cr_assert_not(rpc_link_ready(p.server), "byte %d was changed and nobody saw", at);
        kit_close(&p);
    }
}

/* Both sides speak versions 1 and 2; in between, the greeting becomes one of version 1 alone. */
Test(rpc_link, a_downgraded_version_is_seen)
{
    pair p = {0};
    uint8_t bytes[4096];

    kit_open(&p, usual, usual);
    size_t n = intercept(p.client, bytes);
    bytes[10] = 1;
    deliver(p.server, bytes, n);
    n = intercept(p.server, bytes);
    deliver(p.client, bytes, n);
    BROKE(p.client, TEC_PROTOCOL, "chose version 1 of the protocol, which is not the newest that both speak");
    kit_close(&p);
}

/* Everything that a client sent once, sent again to a fresh server with the same key. */
Test(rpc_link, a_recorded_handshake_proves_nothing)
{
    pair p = {0}, q = {0};
    uint8_t greeting[4096], proof[4096], unused[4096];
    rpc_frame f;

    kit_open(&p, usual, usual);
    size_t n_greeting = intercept(p.client, greeting);
    deliver(p.server, greeting, n_greeting);
    deliver(p.client, unused, intercept(p.server, unused));
    size_t n_proof = intercept(p.client, proof);
    deliver(p.server, proof, n_proof);
    cr_assert_eq(rpc_link_next(p.server, &f), RPC_NOTHING);
    cr_assert(rpc_link_ready(p.server));
    kit_open(&q, usual, usual);
    deliver(q.server, greeting, n_greeting);
    deliver(q.server, proof, n_proof);
    BROKE(q.server, TEC_DENIED, "does not prove the secret");
    kit_close(&p);
    kit_close(&q);
}

static size_t ping_bytes(pair *p, int64_t number, uint8_t *to)
{
    cr_assert(rpc_link_send(p->client, 0, RPC_KIND_ping, &(rpc_ping){number}));
    return intercept(p->client, to);
}

Test(rpc_link, a_frame_twice_is_seen)
{
    pair p = {0};
    uint8_t bytes[256];
    rpc_frame f;

    kit_join(&p);
    size_t n = ping_bytes(&p, 1, bytes);
    deliver(p.server, bytes, n);
    cr_assert_eq(rpc_link_next(p.server, &f), RPC_FRAME);
    deliver(p.server, bytes, n);
    cr_assert_eq(rpc_link_next(p.server, &f), RPC_BROKEN);
    BROKE(p.server, TEC_PROTOCOL, "changed, repeated, left out or moved");
    kit_close(&p);
}

Test(rpc_link, frames_out_of_order_or_left_out_are_seen)
{
    pair p = {0};
    uint8_t first[256], second[256];
    rpc_frame f;

    kit_join(&p);
    ping_bytes(&p, 1, first);
    deliver(p.server, second, ping_bytes(&p, 2, second));
    cr_assert_eq(rpc_link_next(p.server, &f), RPC_BROKEN);
    BROKE(p.server, TEC_PROTOCOL, "changed, repeated, left out or moved");
    kit_close(&p);
}

Test(rpc_link, any_changed_byte_of_a_frame_is_seen)
{
    for (size_t at = 0; at < 4 + 8 + 8 + RPC_TAG_BYTES; at++) {
        pair p = {0};
        uint8_t bytes[256];
        rpc_frame f;

        kit_join(&p);
        size_t n = ping_bytes(&p, 1, bytes);
        cr_assert_eq(n, 4 + 8 + 8 + RPC_TAG_BYTES);
        bytes[at] ^= 1;
        deliver(p.server, bytes, n);
        cr_assert_neq(rpc_link_next(p.server, &f), RPC_FRAME, "byte %zu was changed and nobody saw", at);
        kit_close(&p);
    }
}

/* What one direction carries opens in no other connection and not in the other direction. */
Test(rpc_link, frames_of_another_connection_do_not_open)
{
    pair p = {0}, q = {0};
    uint8_t bytes[256];
    rpc_frame f;

    kit_join(&p);
    kit_join(&q);
    size_t n = ping_bytes(&p, 1, bytes);
    deliver(q.server, bytes, n);
    cr_assert_eq(rpc_link_next(q.server, &f), RPC_BROKEN);
    deliver(p.client, bytes, n);
    cr_assert_eq(rpc_link_next(p.client, &f), RPC_BROKEN);
    kit_close(&p);
    kit_close(&q);
}

Test(rpc_link, nothing_is_readable_on_the_way)
{
    pair p = {0};
    uint8_t bytes[4096];

    kit_join(&p);
    uint32_t s = rpc_link_open_stream(p.client);
    rpc_link_send(p.client, s, RPC_KIND_open, &(rpc_open){.device = "cpu", .label = "secret label"});
    size_t n = intercept(p.client, bytes);
    cr_assert_null(memmem(bytes, n, "secret", 6));
    kit_close(&p);
}

/* ---- frames that are well sealed and yet wrong ---- */

static rpc_event feed(pair *p, rpc_link *from, rpc_link *to, rpc_frame *f)
{
    (void)p;
    kit_move(from, to, SIZE_MAX);
    return rpc_link_next(to, f);
}

Test(rpc_link, refuses_what_the_sender_may_not_send)
{
    pair p = {0}, q = {0};
    rpc_frame f;

    kit_join(&p);
    rpc_link_send(p.client, 0, RPC_KIND_listed, &(rpc_listed){0});
    cr_assert_eq(feed(&p, p.client, p.server, &f), RPC_BROKEN);
    BROKE(p.server, TEC_PROTOCOL, "message 'listed' is not one that a client sends");
    kit_join(&q);
    rpc_link_send(q.client, 0, RPC_KIND_open, &(rpc_open){0});
    cr_assert_eq(feed(&q, q.client, q.server, &f), RPC_BROKEN);
    BROKE(q.server, TEC_PROTOCOL, "message 'open' came on stream 0");
    kit_close(&p);
    kit_close(&q);
}

Test(rpc_link, refuses_kinds_that_there_are_not_and_bodies_too_long)
{
    pair p = {0}, q = {0};
    static const uint8_t body[65];
    rpc_frame f;

    kit_join(&p);
    rpc_link_send_body(p.client, 0, (rpc_kind)9999, NULL, 0);
    cr_assert_eq(feed(&p, p.client, p.server, &f), RPC_BROKEN);
    BROKE(p.server, TEC_PROTOCOL, "a frame is of kind 9999, which there is not");
    kit_join(&q);
    rpc_link_send_body(q.client, 0, RPC_KIND_ping, body, sizeof body);
    cr_assert_eq(feed(&q, q.client, q.server, &f), RPC_BROKEN);
    BROKE(q.server, TEC_PROTOCOL, "message 'ping' has 65 bytes; its limit is 64");
    kit_close(&p);
    kit_close(&q);
}

/* A length of four gigabytes is refused when it is read: nothing of this size is allocated. */
Test(rpc_link, a_frame_beyond_the_limit_is_refused_at_its_length)
{
    pair p = {0};
    static const uint8_t lengths[][4] = {
        {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0}, {23, 0, 0, 0}, {25, 0, 2, 0}};

    for (int i = 0; i < BASE_COUNT(lengths); i++) {
        rpc_frame f;

        p = (pair){0};
        kit_join(&p);
        deliver(p.server, lengths[i], 4);
        cr_assert_eq(rpc_link_next(p.server, &f), RPC_BROKEN);
        BROKE(p.server, TEC_PROTOCOL, "a frame claims");
        kit_close(&p);
    }
}

Test(rpc_link, hello_is_first_and_once)
{
    pair p = {0};
    rpc_frame f;

    kit_join(&p);
    rpc_link_send(p.client, 0, RPC_KIND_hello, &(rpc_hello){.max_frame = 4096, .window = 4096});
    cr_assert_eq(feed(&p, p.client, p.server, &f), RPC_BROKEN);
    BROKE(p.server, TEC_PROTOCOL, "hello came twice");
    kit_close(&p);
}

Test(rpc_link, hello_must_ask_for_sane_limits)
{
    pair p = {0};
    rpc_frame f;

    kit_open(&p, (rpc_link_options){.max_frame = 100}, usual);
    for (int i = 0; i < 4; i++) {
        kit_move(p.client, p.server, SIZE_MAX);
        rpc_link_next(p.server, &f);
        kit_move(p.server, p.client, SIZE_MAX);
    }
    BROKE(p.server, TEC_PROTOCOL, "hello asks for frames of 100 bytes");
    kit_close(&p);
}

/* ---- streams and windows ---- */

Test(rpc_link, streams_are_opened_by_open_alone)
{
    pair p = {0};
    rpc_frame f;

    kit_join(&p);
    uint32_t s = rpc_link_open_stream(p.client);
    rpc_link_send(p.client, s, RPC_KIND_run, &(rpc_run){1});
    cr_assert_eq(feed(&p, p.client, p.server, &f), RPC_BROKEN);
    BROKE(p.server, TEC_PROTOCOL, "message 'run' came on stream 1, which is not open");
    kit_close(&p);
}

Test(rpc_link, what_comes_late_for_a_closed_stream_is_dropped)
{
    pair p = {0};
    rpc_frame f;

    kit_join(&p);
    uint32_t s = open_session(&p);
    rpc_link_close_stream(p.server, s);
    rpc_link_send(p.client, s, RPC_KIND_run, &(rpc_run){1});
    cr_assert_eq(feed(&p, p.client, p.server, &f), RPC_NOTHING);
    cr_assert_not(rpc_link_send(p.server, s, RPC_KIND_done, &(rpc_done){0}));
    kit_close(&p);
}

Test(rpc_link, streams_are_limited_in_number)
{
    pair p = {0};
    rpc_frame f;

    kit_join(&p);
    for (int i = 0; i < RPC_MOST_STREAMS; i++)
        cr_assert_neq(rpc_link_open_stream(p.client), 0);
    cr_assert_eq(rpc_link_open_stream(p.client), 0);
    rpc_link_close_stream(p.client, 5);
    cr_assert_eq(rpc_link_open_stream(p.client), RPC_MOST_STREAMS + 1);
    /* A client that has closed one of them, and not told the server. */
    rpc_event e = RPC_FRAME;
    for (uint32_t i = 1; i <= RPC_MOST_STREAMS + 1 && e == RPC_FRAME; i++) {
        cr_assert(i == 5 || rpc_link_send(p.client, i, RPC_KIND_open, &(rpc_open){.device = "cpu"}));
        e = i == 5 ? RPC_FRAME : feed(&p, p.client, p.server, &f);
    }
    cr_assert_eq(e, RPC_FRAME);
    rpc_link_close_stream(p.client, 6);
    cr_assert(
        rpc_link_send(p.client, rpc_link_open_stream(p.client), RPC_KIND_open, &(rpc_open){.device = "cpu"}));
    cr_assert_eq(feed(&p, p.client, p.server, &f), RPC_BROKEN);
    BROKE(p.server, TEC_PROTOCOL, "more than 64 streams at once");
    kit_close(&p);
}

/* Pieces until the window is used up; then the receiver makes room, and the sender hears of that. */
Test(rpc_link, a_window_bounds_what_is_under_way)
{
    pair p = {0};
    static uint8_t piece[65536];
    rpc_frame f;
    size_t sent = 0, got = 0;

    kit_join(&p);
    uint32_t s = open_session(&p);
    while (rpc_link_may_send(p.client, s) >= sizeof piece + RPC_DATA_HEAD) {
        cr_assert(rpc_link_send_piece(p.client, s, piece, sizeof piece));
        sent += sizeof piece + RPC_DATA_HEAD;
    }
    cr_assert(sent <= RPC_USUAL_WINDOW && sent > RPC_USUAL_WINDOW / 2);
    while (got < sent) {
        kit_move(p.client, p.server, SIZE_MAX);
        while (rpc_link_next(p.server, &f) == RPC_FRAME) {
            cr_assert(f.kind == RPC_KIND_data && f.n == sizeof piece + RPC_DATA_HEAD);
            got += f.n;
            rpc_link_consumed(p.server, s, f.n);
        }
    }
    size_t before = rpc_link_may_send(p.client, s);
    kit_move(p.server, p.client, SIZE_MAX);
    cr_assert_eq(rpc_link_next(p.client, &f), RPC_NOTHING);
    cr_assert_gt(rpc_link_may_send(p.client, s), before);
    kit_close(&p);
}

Test(rpc_link, who_ignores_a_window_is_cut_off)
{
    pair p = {0};
    static uint8_t piece[65536];
    rpc_event e = RPC_NOTHING;
    rpc_frame f;

    kit_join(&p);
    uint32_t s = open_session(&p);
    for (int i = 0; i < 40 && e != RPC_BROKEN; i++) {
        cr_assert(rpc_link_send_piece(p.client, s, piece, sizeof piece));
        for (size_t n = 1; n && e != RPC_BROKEN;) {
            n = kit_move(p.client, p.server, SIZE_MAX);
            while ((e = rpc_link_next(p.server, &f)) == RPC_FRAME)
                continue;
        }
    }
    BROKE(p.server, TEC_PROTOCOL, "stream 1 carries more than its window of 2097152 bytes");
    kit_close(&p);
}

Test(rpc_link, a_window_cannot_be_widened_without_end)
{
    pair p = {0};
    rpc_frame f;

    kit_join(&p);
    uint32_t s = open_session(&p);
    rpc_link_send(p.client, s, RPC_KIND_window, &(rpc_window){RPC_MOST_WINDOW});
    cr_assert_eq(feed(&p, p.client, p.server, &f), RPC_BROKEN);
    BROKE(p.server, TEC_PROTOCOL, "stream 1 is granted 1073741824 bytes");
    kit_close(&p);
}

/* ---- memory ---- */

/* A connection that says nothing holds little; every failed allocation is an error of the link. */
Test(rpc_link, survives_without_memory)
{
    int64_t live = rt_alloc_live();

    for (int n = 1; n < 40; n++) {
        pair p = {.key = kit_key(1), .served = kit_key(1), .roles = 1, .known = true};
        rpc_frame f;

        p.client = rpc_link_new(&(rpc_link_options){.key = &p.key}, NULL);
        p.server = rpc_link_new(&(rpc_link_options){.find = kit_find, .user = &p}, NULL);
        rt_alloc_fail_at(n);
        for (int i = 0; i < 4; i++) {
            kit_move(p.client, p.server, SIZE_MAX);
            rpc_link_next(p.server, &f);
            kit_move(p.server, p.client, SIZE_MAX);
            rpc_link_next(p.client, &f);
        }
        rt_alloc_fail_at(0);
        if (!rpc_link_ready(p.server) || !rpc_link_ready(p.client))
            cr_assert(rpc_link_error(p.client)->status == TEC_NO_MEMORY ||
                      rpc_link_error(p.server)->status == TEC_NO_MEMORY);
        else
            cr_assert_gt(n, 3);
        kit_close(&p);
    }
    cr_assert_eq(rt_alloc_live(), live);
}
