/* tests/rpc/loop/loop.c -- connections over loopback: talking, refusing, silence, dialling in vain. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/loop/loop.h"

typedef struct {
    rpc_loop *loop;
    rpc_listener *listener;
    rpc_key key;
    rpc_conn_options served, dialled;
    char address[64];
    int ready, frames, closed; /* of the dialling side */
    int taken_ready, taken_closed;
    int64_t bytes;
    bool stop_when_closed;
    tec_error why, taken_why;
    rpc_conn *conn, *taken;
    uint32_t stream;
} fixture;

static bool find(void *user, const uint8_t *id, rpc_grant *grant)
{
    const fixture *f = user;

    grant->key = f->key;
    grant->roles = RPC_ROLE_ANY;
    return memcmp(id, f->key.id, RPC_ID_BYTES) == 0;
}

static void on_ready(rpc_conn *c)
{
    fixture *f = rpc_conn_user(c);

    f->ready++;
    rpc_conn_send(c, 0, RPC_KIND_list, &(rpc_list){0});
}

static void on_frame(rpc_conn *c, const rpc_frame *frame)
{
    fixture *f = rpc_conn_user(c);

    f->frames++;
    cr_assert_eq(frame->kind, RPC_KIND_goodbye);
    rpc_conn_close(c, TEC_OK, "done");
}

static void on_closed(rpc_conn *c, const tec_error *why)
{
    fixture *f = rpc_conn_user(c);

    f->closed++;
    f->conn = NULL;
    f->why = *why;
    if (f->stop_when_closed)
        rpc_loop_stop(f->loop);
}

static void on_taken_ready(rpc_conn *c)
{
    fixture *f = rpc_conn_user(c);

    f->taken_ready++;
    f->taken = c;
}

static void on_taken_frame(rpc_conn *c, const rpc_frame *frame)
{
    cr_assert_eq(frame->kind, RPC_KIND_list);
    rpc_conn_send(c, 0, RPC_KIND_goodbye, &(rpc_goodbye){"enough"});
}

static void on_taken_closed(rpc_conn *c, const tec_error *why)
{
    fixture *f = rpc_conn_user(c);

    f->taken_closed++;
    f->taken_why = *why;
    f->taken = NULL;
    if (!f->stop_when_closed)
        rpc_loop_stop(f->loop);
}

static const rpc_events dialled = {.ready = on_ready, .frame = on_frame, .closed = on_closed};
static const rpc_events taken = {.ready = on_taken_ready, .frame = on_taken_frame, .closed = on_taken_closed};

static void open_fixture(fixture *f)
{
    tec_error err = {0};

    f->loop = rpc_loop_new(&err);
    cr_assert(f->loop, "%s", err.text);
    memset(f->key.id, 1, sizeof f->key.id);
    f->served = (rpc_conn_options){
        .link = {.find = find, .user = f, .program = "served"}, .events = &taken, .user = f};
    f->dialled =
        (rpc_conn_options){.link = {.key = &f->key, .program = "dialled"}, .events = &dialled, .user = f};
}

static void listen_at(fixture *f, const char *address)
{
    tec_error err = {0};

    f->listener = rpc_listen(f->loop, address, &f->served, &err);
    cr_assert(f->listener, "%s", err.text);
    snprintf(f->address, sizeof f->address, "localhost:%d", rpc_listener_port(f->listener));
}

static void dial(fixture *f)
{
    tec_error err = {0};

    f->conn = rpc_dial(f->loop, f->address, &f->dialled, &err);
    cr_assert(f->conn, "%s", err.text);
}

Test(rpc_loop, carries_messages_both_ways_and_closes_in_order)
{
    fixture f = {0};

    open_fixture(&f);
    listen_at(&f, "127.0.0.1:0");
    cr_assert(rpc_listener_is_loopback(f.listener));
    dial(&f);
    rpc_loop_run(f.loop);
    cr_assert(f.ready == 1 && f.taken_ready == 1 && f.frames == 1 && f.taken_closed == 1);
    cr_assert(rpc_loop_free(f.loop));
    cr_assert(f.closed == 1 && f.why.status == TEC_OK, "%s", f.why.text);
    cr_assert_eq(f.taken_why.status, TEC_LOST, "%s", f.taken_why.text);
}

Test(rpc_loop, says_that_nobody_listens_and_where)
{
    fixture f = {.stop_when_closed = true};

    open_fixture(&f);
    listen_at(&f, "127.0.0.1:0");
    rpc_listener_close(f.listener); /* a port that was free a moment ago */
    dial(&f);
    rpc_loop_run(f.loop);
    cr_assert_eq(f.why.status, TEC_REFUSED);
    cr_assert(strstr(f.why.text, "connection refused") && strstr(f.why.text, f.address), "%s", f.why.text);
    cr_assert(rpc_loop_free(f.loop));
}

Test(rpc_loop, tells_both_sides_of_a_key_that_is_not_known)
{
    fixture f = {.stop_when_closed = true};
    rpc_key other = {.id = {9}};

    open_fixture(&f);
    f.dialled.link.key = &other;
    listen_at(&f, "127.0.0.1:0");
    dial(&f);
    rpc_loop_run(f.loop);
    cr_assert_eq(f.why.status, TEC_DENIED);
    cr_assert(strstr(f.why.text, "0900000000000000"), "%s", f.why.text);
    cr_assert(rpc_loop_free(f.loop));
    cr_assert_eq(f.taken_why.status, TEC_DENIED);
}

Test(rpc_loop, refuses_connections_beyond_the_most)
{
    fixture f = {.stop_when_closed = true};

    open_fixture(&f);
    f.served.most = 1;
    listen_at(&f, "127.0.0.1:0");
    f.dialled.events = &(rpc_events){.closed = on_closed};
    dial(&f);
    dial(&f);
    rpc_loop_run(f.loop);
    cr_assert_eq(f.why.status, TEC_REFUSED);
    cr_assert_str_eq(f.why.text, "the server has as many connections as it takes");
    cr_assert(rpc_loop_free(f.loop));
    cr_assert(f.closed == 2 && f.taken_closed == 2);
}

/* A socket that connects and says no word. */
static int connect_mutely(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

Test(rpc_loop, closes_a_connection_that_never_shakes_hands)
{
    fixture f = {0};

    open_fixture(&f);
    f.served.handshake_ms = 30;
    listen_at(&f, "127.0.0.1:0");
    int fd = connect_mutely(rpc_listener_port(f.listener));
    rpc_loop_run(f.loop);
    cr_assert_eq(f.taken_why.status, TEC_TIMEOUT);
    cr_assert_str_eq(f.taken_why.text, "no handshake within 0.03 s");
    close(fd);
    cr_assert(rpc_loop_free(f.loop));
}

/* A peer that answers the handshake and then nothing: its loop is not run any more. */
static void freeze(rpc_conn *c)
{
    fixture *f = rpc_conn_user(c);

    f->ready++;
    rpc_conn_pause(c, true);
}

Test(rpc_loop, asks_a_silent_side_and_gives_it_up)
{
    fixture f = {.stop_when_closed = true};

    open_fixture(&f);
    f.served.ping_ms = 600000;
    f.served.silent_ms = 600000;
    f.served.events = &(rpc_events){.ready = freeze, .closed = on_taken_closed};
    f.dialled.ping_ms = 20;
    f.dialled.silent_ms = 60;
    f.dialled.events = &(rpc_events){.closed = on_closed};
    listen_at(&f, "127.0.0.1:0");
    dial(&f);
    rpc_loop_run(f.loop);
    cr_assert_eq(f.why.status, TEC_LOST);
    cr_assert_str_eq(f.why.text, "the other side was silent for 0.06 s");
    cr_assert(rpc_loop_free(f.loop));
}

static void stop(void *user)
{
    rpc_loop_stop(user);
}

Test(rpc_loop, keeps_a_silent_side_that_answers)
{
    fixture f = {0};

    open_fixture(&f);
    f.dialled.ping_ms = 10;
    f.dialled.silent_ms = 100000;
    f.dialled.events = &(rpc_events){.closed = on_closed};
    listen_at(&f, "127.0.0.1:0");
    dial(&f);
    rpc_timer *t = rpc_timer_start(f.loop, 150, 0, stop, f.loop);
    rpc_loop_run(f.loop);
    cr_assert(f.closed == 0 && f.taken_ready == 1);
    rpc_timer_stop(t);
    cr_assert(rpc_loop_free(f.loop));
    cr_assert(f.closed == 1 && f.why.status == TEC_CANCELLED);
}

/* ---- much data ---- */

enum { MUCH = 50 << 20, PIECE = 100000 };

static void open_stream(rpc_conn *c)
{
    fixture *f = rpc_conn_user(c);

    f->stream = rpc_link_open_stream(rpc_conn_link(c));
    rpc_conn_send(c, f->stream, RPC_KIND_open, &(rpc_open){.device = "cpu", .label = ""});
}

static uint8_t piece[PIECE];

/* As much as the window allows; the receiver's grants and the end of each write bring it back. */
static void pour(rpc_conn *c)
{
    fixture *f = rpc_conn_user(c);

    while (f->stream && f->bytes < MUCH && rpc_link_may_send(rpc_conn_link(c), f->stream) >= PIECE + 8) {
        cr_assert(rpc_conn_send_piece(c, f->stream, piece, PIECE));
        f->bytes += PIECE;
    }
}

static void pour_on_timer(void *user)
{
    fixture *f = user;

    if (f->conn && rpc_link_ready(rpc_conn_link(f->conn)))
        pour(f->conn);
}

static int64_t received;

static void take_data(rpc_conn *c, const rpc_frame *frame)
{
    fixture *f = rpc_conn_user(c);

    if (frame->kind != RPC_KIND_data)
        return;
    received += (int64_t)frame->n - RPC_DATA_HEAD;
    rpc_conn_consumed(c, frame->stream, frame->n);
    if (received >= MUCH)
        rpc_loop_stop(f->loop);
}

Test(rpc_loop, carries_much_data_within_the_windows)
{
    fixture f = {0};

    open_fixture(&f);
    f.served.events = &(rpc_events){.frame = take_data, .closed = on_taken_closed};
    f.dialled.events = &(rpc_events){.ready = open_stream, .written = pour, .closed = on_closed};
    listen_at(&f, "127.0.0.1:0");
    dial(&f);
    rpc_timer *t = rpc_timer_start(f.loop, 1, 1, pour_on_timer, &f);
    rpc_loop_run(f.loop);
    cr_assert_geq(received, MUCH);
    rpc_timer_stop(t);
    cr_assert(rpc_loop_free(f.loop));
}

Test(rpc_loop, hears_signals)
{
    fixture f = {0};
    tec_error err = {0};

    open_fixture(&f);
    listen_at(&f, "127.0.0.1:0");
    cr_assert(rpc_on_signal(f.loop, SIGUSR1, stop, f.loop, &err), "%s", err.text);
    raise(SIGUSR1);
    rpc_loop_run(f.loop);
    cr_assert(rpc_loop_free(f.loop));
}

Test(rpc_loop, names_an_address_that_is_none)
{
    static const char *const wrong[] = {"board",    "board:", ":1",      "board:65536",
                                        "board:-1", "::1:80", "board:1x"};
    char host[256];
    int port;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tec_error err = {0};

        cr_assert_not(rpc_split_address(wrong[i], host, &port, &err), "%s", wrong[i]);
        cr_assert(strstr(err.text, wrong[i]), "%s", err.text);
    }
    cr_assert(rpc_split_address("[::1]:80", host, &port, NULL) && port == 80);
    cr_assert_str_eq(host, "::1");
}
