/* tests/rpc/client/roles.c -- the table of messages, one by one, behind `open` too: each message of a session
 * is refused to a key that may not open sessions, and the same message of a key that may is answered. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/rpc/client/kit.h"
#include "tests/rpc/grammar.h"

/* A client's side of one connection. */
typedef struct {
    const fixture *f;
    rpc_link *link;
    int fd;
} raw;

/* Sends what the link has to send; the server may have closed. */
static void flush(raw *r)
{
    size_t n;
    const uint8_t *out = rpc_link_output(r->link, &n);

    (void)!send(r->fd, out, n, MSG_NOSIGNAL);
    rpc_link_sent(r->link, n);
}

/* The next frame; false: the connection is over. */
static bool next_frame(raw *r, rpc_frame *frame)
{
    rpc_event e;

    while ((e = rpc_link_next(r->link, frame)) == RPC_NOTHING) {
        size_t room;
        flush(r);
        uint8_t *to = rpc_link_room(r->link, &room);
        ssize_t n = read(r->fd, to, room);

        if (n <= 0)
            return false;
        rpc_link_received(r->link, (size_t)n);
    }
    cr_assert_eq(e, RPC_FRAME, "%s", rpc_link_error(r->link)->text);
    return true;
}

static raw join(const fixture *f, const rpc_key *key)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(f->address, ':') + 1))};
    raw r = {.f = f, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    size_t room;
    rpc_frame frame;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(connect(r.fd, (struct sockaddr *)&to, sizeof to), 0);
    r.link = rpc_link_new(&(rpc_link_options){.key = key, .program = "raw"}, NULL);
    while (!rpc_link_ready(r.link)) {
        flush(&r);
        uint8_t *at = rpc_link_room(r.link, &room);
        ssize_t n = read(r.fd, at, room);
        cr_assert_gt(n, 0);
        rpc_link_received(r.link, (size_t)n);
        rpc_link_next(r.link, &frame);
    }
    return r;
}

static void leave(raw *r)
{
    close(r->fd);
    rpc_link_free(r->link);
}

/* What is said on the stream, or of the whole connection: its status in a failure, TEC_OK for any other
 * answer. */
static tec_status take(raw *r, rpc_kind *kind, char *text, size_t size)
{
    rt_arena arena = {0};
    rpc_frame frame;
    rpc_any m;

    *kind = RPC_KIND_NONE;
    if (!next_frame(r, &frame))
        return TEC_LOST;
    *kind = frame.kind;
    if (frame.kind != RPC_KIND_failure)
        return TEC_OK;
    cr_assert(rpc_decode(&m, RPC_KIND_failure, frame.body, frame.n, rpc_link_version(r->link), &arena));
    snprintf(text, size, "%s", m.failure.text);
    tec_status status = (tec_status)m.failure.status;
    rt_arena_free(&arena);
    return status;
}

static void send_open(raw *r, uint32_t stream)
{
    cr_assert(
        rpc_link_send(r->link, stream, RPC_KIND_open, &(rpc_open){.device = "cpu:0", .label = "roles"}));
}

/* A body of the message with random values. */
static void send_message(raw *r, uint32_t stream, const rpc_message *message, uint64_t *seed)
{
    rt_bytes body = {0};

    if (message->kind == RPC_KIND_open)
        send_open(r, stream);
    else {
        fuzz_body(seed, &body, message->record, rpc_link_version(r->link));
        rpc_link_send_body(r->link, stream, message->kind, body.data, body.n);
    }
    rt_bytes_free(&body);
    flush(r);
}

/* Of a key without the role: `open` is answered by a refusal, all others end the connection with one. */
static void is_refused(const fixture *f, const rpc_key *key, const rpc_message *message, uint64_t *seed)
{
    raw r = join(f, key);
    char text[400] = "", named[100];
    rpc_kind kind;

    kit_forget_log(f);
    send_message(&r, rpc_link_open_stream(r.link), message, seed);
    cr_assert_eq(take(&r, &kind, text, sizeof text), TEC_DENIED, "'%s': %s", message->record->name, text);
    if (message->kind == RPC_KIND_open) {
        cr_assert(strstr(text, "lacks the role 'submit'"), "%s", text);
        cr_assert(kit_logged(f, "refused 'open' of cpu:0: the key lacks the role 'submit'"));
    } else {
        snprintf(named, sizeof named, "may not send '%s': it lacks the role 'submit'", message->record->name);
        cr_assert(strstr(text, named), "'%s': %s", message->record->name, text);
        cr_assert(kit_logged(f, named), "'%s' is not logged", message->record->name);
        cr_assert_eq(take(&r, &kind, text, sizeof text), TEC_LOST);
    }
    leave(&r);
}

/* Of a key with the role: an answer, and be it that the values make no sense; data that nobody waits for have
 * none, and do no harm. `close` behind it ends what waits for more. */
static void is_answered(const fixture *f, const rpc_key *key, const rpc_message *message, uint64_t *seed)
{
    raw r = join(f, key);
    uint32_t stream = rpc_link_open_stream(r.link);
    char text[400] = "";
    rpc_kind kind = RPC_KIND_NONE;
    int answers = 0;

    send_open(&r, stream);
    flush(&r);
    cr_assert_eq(take(&r, &kind, text, sizeof text), TEC_OK, "%s", text);
    cr_assert_eq(kind, RPC_KIND_opened);
    if (message->kind != RPC_KIND_open && message->kind != RPC_KIND_close) {
        send_message(&r, stream, message, seed);
        rpc_link_send(r.link, stream, RPC_KIND_release, &(rpc_release){77});
    }
    rpc_link_send(r.link, stream, RPC_KIND_close, &(rpc_close){0});
    flush(&r);
    for (; kind != RPC_KIND_closed; answers++) {
        tec_status status = take(&r, &kind, text, sizeof text);
        cr_assert(status != TEC_DENIED && status != TEC_LOST && status != TEC_PROTOCOL, "'%s': %s",
                  message->record->name, text);
    }
    bool alone = message->kind == RPC_KIND_open || message->kind == RPC_KIND_close;
    cr_assert_eq(answers,
                 alone                            ? 1
                 : message->kind == RPC_KIND_data ? 2
                                                  : 3,
                 "'%s': %d answers", message->record->name, answers);
    leave(&r);
}

static rpc_key_row add_key(fixture *f, unsigned roles)
{
    rpc_key_row row = {.roles = roles, .classes = "*"};

    cr_assert(rpc_keys_add(f->keys, &row, &f->err), "%s", f->err.text);
    return row;
}

/* Windows belong to the connection, and ask for nothing. */
Test(roles, of_each_message_of_a_session_are_checked)
{
    fixture f = kit_start((const char *[]){"--sessions", "64", "--seconds", "5", NULL});
    rpc_key_row without = add_key(&f, RPC_ROLE_SERVE | RPC_ROLE_ADMINISTER),
                with = add_key(&f, RPC_ROLE_SUBMIT);
    uint64_t seed = fuzz_seed();
    int tried = 0;

    for (int i = 0; i < rpc_n_messages; i++) {
        const rpc_message *m = &rpc_messages[i];

        if (m->place != RPC_ON_SESSION || !(m->sender & RPC_FROM_CLIENT) || m->kind == RPC_KIND_window)
            continue;
        cr_assert_eq(m->roles, RPC_ROLE_SUBMIT, "'%s' may be sent by other keys", m->record->name);
        is_refused(&f, &without.key, m, &seed);
        is_answered(&f, &with.key, m, &seed);
        tried++;
    }
    cr_assert_geq(tried, 20, "%d messages", tried);
    cr_assert_eq(kit_stop(&f), 0);
}
