/* tests/rpc/client/frames.c -- frames that somebody on the way replays, reorders, changes, cuts or makes up,
 * against rpc_server: each ends that connection with its reason in the log, and the same frames in order are
 * answered. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/rpc/client/kit.h"

/* A client's side of a connection whose bytes the test moves by itself. */
typedef struct {
    fixture f;
    rpc_keys keys;
    rpc_link *link;
    int fd;
} raw;

static int dial(const fixture *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(f->address, ':') + 1))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void send_bytes(const raw *r, const uint8_t *data, size_t n)
{
    cr_assert_eq(send(r->fd, data, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* Takes what the server says next; false: it has closed the connection. */
static bool receive(raw *r)
{
    size_t room;
    uint8_t *to = rpc_link_room(r->link, &room);
    ssize_t n = read(r->fd, to, room);

    if (n > 0)
        rpc_link_received(r->link, (size_t)n);
    return n > 0;
}

/* The next frame from the server; false: it has closed the connection. */
static bool next_frame(raw *r, rpc_frame *f)
{
    rpc_event e;

    while ((e = rpc_link_next(r->link, f)) == RPC_NOTHING)
        if (!receive(r))
            return false;
    cr_assert_eq(e, RPC_FRAME, "%s", rpc_link_error(r->link)->text);
    return true;
}

/* The bytes that the link wants to send, taken out of it. */
static size_t take_output(raw *r, uint8_t to[4096])
{
    size_t n;
    const uint8_t *out = rpc_link_output(r->link, &n);

    cr_assert(n <= 4096);
    memcpy(to, out, n);
    rpc_link_sent(r->link, n);
    return n;
}

/* Connects and shakes hands with a server of its own. */
static raw join(void)
{
    raw r = {.f = kit_start((const char *[]){NULL})};
    uint8_t out[4096];
    rpc_frame f;

    cr_assert(rpc_keys_read(&r.keys, r.f.keys, &r.f.err), "%s", r.f.err.text);
    r.link = rpc_link_new(&(rpc_link_options){.key = &r.keys.rows[0].key, .program = "raw"}, NULL);
    r.fd = dial(&r.f);
    while (!rpc_link_ready(r.link)) {
        size_t n = take_output(&r, out);

        send_bytes(&r, out, n);
        cr_assert(receive(&r));
        rpc_link_next(r.link, &f);
    }
    send_bytes(&r, out, take_output(&r, out));
    return r;
}

/* A frame that asks for the list of devices, sealed. */
static size_t make_list(raw *r, uint8_t frame[4096])
{
    cr_assert(rpc_link_send(r->link, 0, RPC_KIND_list, &(rpc_list){0}));
    return take_output(r, frame);
}

/* The server has closed the connection, says why in its log, and serves others. */
static void refused(raw *r, const char *logged)
{
    rpc_frame f;

    while (next_frame(r, &f))
        ;
    cr_assert(kit_logged(&r->f, logged), "no '%s' in %s", logged, r->f.log);
    tec_rpc_disconnect(kit_connect(&r->f));
    close(r->fd);
    rpc_link_free(r->link);
    rpc_keys_free(&r->keys);
    cr_assert_eq(kit_stop(&r->f), 0);
}

Test(frames, in_their_order_are_answered)
{
    raw r = join();
    uint8_t one[4096], two[4096];
    size_t n_one = make_list(&r, one), n_two = make_list(&r, two);
    rpc_frame f;

    send_bytes(&r, one, n_one);
    send_bytes(&r, two, n_two);
    for (int i = 0; i < 2; i++)
        cr_assert(next_frame(&r, &f) && f.kind == RPC_KIND_listed);
    shutdown(r.fd, SHUT_WR);
    refused(&r, "client 1: gone: the other side closed the connection");
}

Test(frames, that_are_replayed_end_the_connection)
{
    raw r = join();
    uint8_t one[4096];
    size_t n = make_list(&r, one);

    send_bytes(&r, one, n);
    send_bytes(&r, one, n);
    refused(&r, "does not open: it was changed, repeated, left out or moved");
}

Test(frames, that_are_reordered_end_the_connection)
{
    raw r = join();
    uint8_t one[4096], two[4096];
    size_t n_one = make_list(&r, one), n_two = make_list(&r, two);

    send_bytes(&r, two, n_two);
    send_bytes(&r, one, n_one);
    refused(&r, "does not open: it was changed, repeated, left out or moved");
}

Test(frames, that_are_changed_end_the_connection)
{
    raw r = join();
    uint8_t one[4096];
    size_t n = make_list(&r, one);

    one[n / 2] ^= 4;
    send_bytes(&r, one, n);
    refused(&r, "does not open: it was changed, repeated, left out or moved");
}

/* The length alone: the server does not wait for so many bytes, and takes no memory for them. */
Test(frames, that_claim_to_be_huge_end_the_connection)
{
    raw r = join();

    send_bytes(&r, (const uint8_t *)"\xff\xff\xff\x7f", 4);
    refused(&r, "a frame claims 2147483647 bytes");
}

/* A sealed message of a good key, whose list claims 2^60 numbers. */
Test(frames, that_claim_long_lists_are_refused_without_memory_for_them)
{
    raw r = join();
    uint32_t stream = rpc_link_open_stream(r.link);
    uint8_t out[4096], body[40] = {1};
    rpc_frame f;

    cr_assert(rpc_link_send(r.link, stream, RPC_KIND_open, &(rpc_open){.device = "cpu:0", .label = ""}));
    send_bytes(&r, out, take_output(&r, out));
    cr_assert(next_frame(&r, &f) && f.kind == RPC_KIND_opened);
    memset(body + 16, 0, 8);
    body[23] = 0x10; /* behind module 1 and an empty name: how many arrays */
    cr_assert(rpc_link_send_body(r.link, stream, RPC_KIND_call, body, sizeof body));
    send_bytes(&r, out, take_output(&r, out));
    cr_assert(next_frame(&r, &f) && f.kind == RPC_KIND_failure, "%s", f.row->record->name);
    shutdown(r.fd, SHUT_WR);
    refused(&r, "client 1: gone: the other side closed the connection");
}

/* Somebody on the way lowers the newest version of the greeting: the server's proof is of other bytes. */
Test(frames, of_a_downgraded_greeting_prove_nothing)
{
    raw r = {.f = kit_start((const char *[]){NULL})};
    uint8_t out[4096];
    rpc_frame f;

    cr_assert(rpc_keys_read(&r.keys, r.f.keys, &r.f.err), "%s", r.f.err.text);
    r.link = rpc_link_new(&(rpc_link_options){.key = &r.keys.rows[0].key, .program = "raw"}, NULL);
    r.fd = dial(&r.f);
    size_t n = take_output(&r, out);
    cr_assert_eq(out[10], RPC_NEWEST);
    out[10] = 1;
    send_bytes(&r, out, n);
    cr_assert(receive(&r));
    cr_assert_eq(rpc_link_next(r.link, &f), RPC_BROKEN);
    cr_assert(strstr(rpc_link_error(r.link)->text, "which is not the newest that both speak"), "%s",
              rpc_link_error(r.link)->text);
    shutdown(r.fd, SHUT_WR);
    while (read(r.fd, out, sizeof out) > 0)
        ;
    cr_assert(kit_logged(&r.f, "before the handshake was done"));
    close(r.fd);
    rpc_link_free(r.link);
    rpc_keys_free(&r.keys);
    tec_rpc_disconnect(kit_connect(&r.f));
    cr_assert_eq(kit_stop(&r.f), 0);
}
