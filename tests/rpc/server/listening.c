/* tests/rpc/server/listening.c -- a listening server in this process under damaged input: greetings, proofs
 * and hellos that are none; frames of clients with a good key, with sessions behind some of them; and a
 * tracker that the server registers with and that answers at random. The server answers or closes, and goes
 * on.
 *
 * Each test counts its inputs. One is past the first check if the server welcomed the greeting (handshakes),
 * or if the frame reached a connection that was still whole, is one that its sender may send there, and
 * decodes. TEC_MUTATIONS says how many inputs each test makes, TEC_MUTATION_SEED the first seed. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/keys.h"
#include "rpc/server/serving.h"
#include "tests/rpc/grammar.h"

enum { AT_ONCE = 20, SIDES = 4, MEMBERS = 6, LEASES = 40 };

/* A server of the process, with a folder of its own for the folders of its sessions. */
typedef struct {
    rpc_loop *loop;
    rpc_server *server;
    char folder[80], address[64];
    int port;
    int64_t sessions, refused, registered, log_lines;
} station;

typedef struct {
    char folder[64], keys[80];
    rpc_key_row key, server; /* of all roles; one that may not submit */
    uint64_t seed;
    int64_t inputs, past;
} ground;

/* ---- a server ---- */

static void on_log(void *user, const char *line)
{
    station *at = user;

    for (const char *p = line; *p; p++)
        cr_assert((unsigned char)*p >= ' ' && *p != 0x7f, "the log has a line with a control character");
    at->log_lines++;
    at->sessions += strstr(line, ": opened on ") != NULL;
    at->refused += strstr(line, ": refused") != NULL;
    at->registered += strstr(line, "registered with the tracker") != NULL;
}

static void on_listening(void *user, int port)
{
    station *at = user;

    at->port = port;
    snprintf(at->address, sizeof at->address, "127.0.0.1:%d", port);
    rpc_loop_stop(at->loop);
}

/* The program of the build is what sessions are processes of: this one is a test. */
static void start_server(station *at, const ground *g, int number, const char *tracker)
{
    tec_error err = {0};
    static char names[MEMBERS][8];

    snprintf(at->folder, sizeof at->folder, "%s/%d", g->folder, number);
    cr_assert(mkdir(at->folder, 0755) == 0 && chmod(at->folder, 0755) == 0);
    snprintf(names[number], sizeof names[number], "s%d", number);
    const rpc_server_options o = {.listen = "127.0.0.1:0",
                                  .key_file = g->keys,
                                  .key_file_named = true,
                                  .device_class = tracker ? "desk" : NULL,
                                  .tracker = tracker,
                                  .name = names[number],
                                  .folder = at->folder,
                                  .program = TEC_BINARY_DIR "/rpc_server",
                                  .memory_bytes = 64 << 20,
                                  .seconds = 2,
                                  .drain_seconds = 0.01,
                                  .log = on_log,
                                  .ready = on_listening,
                                  .user = at};
    at->server = rpc_server_new(at->loop, &o, &err);
    cr_assert(at->server, "%s", err.text);
    while (!at->port) {
        rpc_loop_run(at->loop);
        cr_assert_eq(rpc_server_error(at->server)->status, TEC_OK, "%s", rpc_server_error(at->server)->text);
    }
}

static void prepare(ground *g)
{
    *g = (ground){.folder = "/tmp/tec-listening-XXXXXX", .seed = fuzz_seed()};
    signal(SIGPIPE, SIG_IGN); /* as the program does: processes of sessions end while they are written to */
    cr_assert(mkdtemp(g->folder) && chmod(g->folder, 0755) == 0);
    char folder[sizeof g->folder];
    memcpy(folder, g->folder, sizeof folder);
    snprintf(g->keys, sizeof g->keys, "%s/keys", folder);
    g->key = (rpc_key_row){.roles = RPC_ROLE_ANY, .classes = "*", .users = "*"};
    g->server = (rpc_key_row){.roles = RPC_ROLE_SERVE, .classes = "*", .users = "*"};
    cr_assert(rpc_keys_add(g->keys, &g->key, NULL) && rpc_keys_add(g->keys, &g->server, NULL));
    cr_log_info("seed %llu", (unsigned long long)g->seed);
}

static void clean(const ground *g)
{
    char command[100];

    snprintf(command, sizeof command, "rm -rf %s", g->folder);
    cr_assert_eq(system(command), 0);
}

static void wake(void *user)
{
    rpc_loop_stop(user);
}

/* Drains, so that no process of a session is left. */
static void stop_server(station *at)
{
    rpc_timer *timer = rpc_timer_start(at->loop, 5, 5, wake, at->loop);

    rpc_server_drain(at->server);
    rpc_server_drain(at->server);
    do
        rpc_loop_run(at->loop);
    while (at->server->sessions || at->server->lister);
    rpc_timer_stop(timer);
}

static void report(const char *what, const ground *g)
{
    printf("%s: %lld of %lld inputs past the first check (%.1f %%)\n", what, (long long)g->past,
           (long long)g->inputs, 100.0 * (double)g->past / (double)g->inputs);
    fflush(stdout);
    cr_assert_geq(10 * g->past, 3 * g->inputs);
}

/* ---- handshakes, from a thread ---- */

typedef struct {
    ground *g;
    station *at;
    int64_t executions, ready;
    atomic_bool done;
} shaker;

static int dial(const station *at)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)at->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* The port is free again at once: a million connections need more ports than there are. */
    struct linger at_once = {1, 0};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* A word of the greeting becomes an edge, its point none, or any of its bytes another one. */
static void damage_greeting(uint64_t *seed, rt_bytes *b)
{
    uint8_t *at = b->data;

    switch (fuzz_below(seed, 3)) {
    case 0: at[8 + fuzz_below(seed, 12)] = (uint8_t)fuzz_below(seed, 6); break;
    case 1: memset(at + 20, (int)fuzz_below(seed, 2) * 255, 32); break;
    default: fuzz_damage(seed, b);
    }
}

static void send_output(rpc_link *l, int fd, uint64_t *seed, bool damage, bool greeting)
{
    size_t n;
    const uint8_t *out = rpc_link_output(l, &n);
    rt_bytes bytes = {0};

    rt_bytes_add(&bytes, out, n);
    if (damage && greeting && n)
        damage_greeting(seed, &bytes);
    else if (damage)
        fuzz_damage(seed, &bytes);
    (void)!send(fd, bytes.data, bytes.n, MSG_NOSIGNAL); /* the server may have closed */
    rt_bytes_free(&bytes);
    rpc_link_sent(l, n);
}

/* Reads until the server closes or is silent for good, as nothing more is sent; whether it was a welcome. */
static bool read_answer(rpc_link *l, int fd, bool all)
{
    size_t got = 0;
    bool welcome = false;

    while (all || got < 112) {
        uint8_t bytes[4096];
        ssize_t n = recv(fd, bytes, all ? sizeof bytes : 112 - got, 0);
        if (n <= 0)
            break;
        if (got <= 8 && got + (size_t)n > 9)
            welcome = bytes[8 - got] == 0 && bytes[9 - got] == 0;
        got += (size_t)n;
        size_t room;
        uint8_t *to = rpc_link_room(l, &room);
        if (!to || room < (size_t)n)
            break;
        memcpy(to, bytes, (size_t)n);
        rpc_link_received(l, (size_t)n);
        rpc_frame f;
        while (rpc_link_next(l, &f) == RPC_FRAME)
            ;
    }
    return welcome && got >= 112;
}

/* One connection, of which the greeting, or the proof and the hello behind it, are damaged, or nothing is. */
static void shake(shaker *s)
{
    ground *g = s->g;
    uint64_t *seed = &g->seed;
    int64_t step = fuzz_below(seed, 16); /* 0 to 5 the greeting, 15 nothing */
    rpc_key key = g->key.key;
    int newest = 1 + (int)fuzz_below(seed, RPC_NEWEST);

    if (step == 14)
        key.secret[0] ^= 1;
    rpc_link *l = rpc_link_new(&(rpc_link_options){.key = &key, .program = "client", .newest = newest}, NULL);
    int fd = dial(s->at);
    cr_assert(l);
    send_output(l, fd, seed, step < 6, true);
    if (step < 6)
        shutdown(fd, SHUT_WR);
    bool welcome = read_answer(l, fd, false);
    if (step >= 6 && welcome) {
        send_output(l, fd, seed, step < 14, false);
        shutdown(fd, SHUT_WR);
        read_answer(l, fd, true);
    }
    g->inputs++;
    g->past += welcome;
    s->ready += rpc_link_ready(l);
    cr_assert(step != 14 || !rpc_link_ready(l), "a wrong secret was let in");
    close(fd);
    rpc_link_free(l);
}

static void *shake_all(void *user)
{
    shaker *s = user;

    while (s->g->inputs < s->executions)
        shake(s);
    s->done = true;
    return NULL;
}

static void look_at_shaker(void *user)
{
    shaker *s = user;

    if (s->done)
        rpc_loop_stop(s->at->loop);
}

Test(rpc_listening, survives_damaged_handshakes)
{
    static ground g;
    static station at;
    shaker s = {.g = &g, .at = &at, .executions = fuzz_executions(2000)};
    pthread_t thread;

    prepare(&g);
    at.loop = rpc_loop_new(NULL);
    start_server(&at, &g, 0, NULL);
    cr_assert_eq(pthread_create(&thread, NULL, shake_all, &s), 0);
    rpc_timer *timer = rpc_timer_start(at.loop, 5, 5, look_at_shaker, &s);
    while (!s.done)
        rpc_loop_run(at.loop);
    pthread_join(thread, NULL);
    rpc_timer_stop(timer);
    stop_server(&at);
    cr_assert(rpc_loop_free(at.loop));
    rpc_server_free(at.server);
    clean(&g);
    cr_assert(s.ready > g.inputs / 40, "%lld of %lld were let in", (long long)s.ready, (long long)g.inputs);
    report("handshakes at a listening server", &g);
}

/* ---- frames of clients ---- */

typedef struct {
    ground *g;
    station *at;
    rpc_conn *conn;
    bool ready, closed, may_submit;
    uint32_t last;       /* stream that was opened last */
    uint32_t live;       /* of a session that was asked for; `awaited` until it is there or refused */
    bool awaited, fresh; /* fresh: nothing was sent on the stream yet */
    int64_t lists, opened;
} side;

static void on_side_ready(rpc_conn *c)
{
    side *s = rpc_conn_user(c);

    s->ready = true;
    rpc_loop_stop(s->at->loop);
}

static void on_side_frame(rpc_conn *c, const rpc_frame *f)
{
    side *s = rpc_conn_user(c);
    rt_arena arena = {0};
    rpc_any m;

    cr_assert(rpc_decode(&m, (uint32_t)f->kind, f->body, f->n, rpc_link_version(rpc_conn_link(c)), &arena),
              "the server sends a '%s' that cannot be decoded", f->row->record->name);
    s->opened += f->kind == RPC_KIND_opened;
    if (f->stream == s->live &&
        (f->kind == RPC_KIND_opened || f->kind == RPC_KIND_failure || f->kind == RPC_KIND_closed)) {
        s->awaited = false;
        s->live = f->kind == RPC_KIND_opened ? s->live : 0;
        rpc_loop_stop(s->at->loop);
    }
    if (f->kind == RPC_KIND_listed) {
        s->lists++;
        rpc_loop_stop(s->at->loop);
    }
    if (f->kind == RPC_KIND_closed || (f->kind == RPC_KIND_failure && m.failure.fatal))
        rpc_link_close_stream(rpc_conn_link(c), f->stream);
    if (f->kind == RPC_KIND_data)
        rpc_conn_consumed(c, f->stream, f->n);
    rt_arena_free(&arena);
}

static void on_side_closed(rpc_conn *c, const tec_error *why)
{
    side *s = rpc_conn_user(c);

    (void)why;
    s->closed = true;
    s->conn = NULL;
    rpc_loop_stop(s->at->loop);
}

static const rpc_events side_events = {
    .ready = on_side_ready, .frame = on_side_frame, .closed = on_side_closed};

/* A client with a key of all roles, or rarely with one that may not submit. */
static void join(side *s)
{
    ground *g = s->g;
    bool may = fuzz_below(&g->seed, 20) != 0;
    const rpc_conn_options o = {
        .link = {.key = may ? &g->key.key : &g->server.key,
                 .program = "storm",
                 .newest = fuzz_below(&g->seed, 2) ? 0 : 1 + (int)fuzz_below(&g->seed, RPC_NEWEST)},
        .events = &side_events,
        .user = s};

    *s = (side){.g = g, .at = s->at, .may_submit = may};
    s->conn = rpc_dial(s->at->loop, s->at->address, &o, NULL);
    cr_assert(s->conn);
    while (!s->ready && !s->closed)
        rpc_loop_run(s->at->loop);
    cr_assert(s->ready);
}

/* A body for the server: what it decodes itself is mostly sensible, and starts a process now and then. */
static void draw_body(side *s, rt_bytes *b, const rpc_message *m, uint32_t stream, int version)
{
    uint64_t *seed = &s->g->seed;
    bool rarely = fuzz_below(seed, 2000) == 0;

    if (m->kind == RPC_KIND_list)
        worker_put_i64(b, rarely);
    else if (m->kind == RPC_KIND_open && (rarely || fuzz_below(seed, s->live ? 400 : 40) == 0)) {
        const rpc_open open = {.device = "cpu:0",
                               .label = fuzz_text(seed),
                               .seconds = 1,
                               .memory_bytes = 1 << 26,
                               .lease = fuzz_below(seed, LEASES)};
        rpc_encode(b, RPC_KIND_open, &open, version);
        if (!s->live && stream == s->last && s->fresh) {
            s->live = stream;
            s->awaited = true;
        }
    } else if (m->kind == RPC_KIND_open) {
        const rpc_open open = {.device = fuzz_below(seed, 2) ? "" : "list",
                               .label = fuzz_text(seed),
                               .seconds = fuzz_decimal(seed),
                               .memory_bytes = fuzz_number(seed)};
        rpc_encode(b, RPC_KIND_open, &open, version);
    } else
        fuzz_body(seed, b, m->record, version);
    if (fuzz_below(seed, 60) == 0)
        fuzz_damage(seed, b);
}

/* The stream of a frame that fits its message; rarely one that does not. */
static uint32_t draw_stream(side *s, const rpc_message *m)
{
    uint64_t *seed = &s->g->seed;

    if (fuzz_below(seed, 300) == 0)
        return (uint32_t)fuzz_below(seed, 70);
    if (m->place == RPC_ON_CONNECTION)
        return 0;
    if (m->kind == RPC_KIND_open) {
        uint32_t fresh = rpc_link_open_stream(rpc_conn_link(s->conn));
        s->last = fresh ? fresh : s->last;
        s->fresh = fresh != 0;
        return s->last;
    }
    if (s->live && fuzz_below(seed, 4))
        return s->live;
    return s->last ? (uint32_t)(s->last - fuzz_below(seed, s->last < 3 ? s->last : 3)) : 0;
}

/* Whether the link of the other side takes the frame, and its body is a message. */
static bool is_whole(const rpc_link *l, rpc_sender sender, uint32_t stream, uint32_t last, rpc_kind kind,
                     const rt_bytes *body)
{
    const rpc_message *m = rpc_find_message((uint32_t)kind);
    rt_arena arena = {0};
    rpc_any any;
    bool good = m && (m->sender & sender) && (m->place == RPC_ON_SESSION) == (stream != 0) &&
                stream <= last && kind != RPC_KIND_hello &&
                rpc_decode(&any, (uint32_t)kind, body->data, body->n, rpc_link_version(l), &arena);

    rt_arena_free(&arena);
    return good;
}

/* One frame; false: the server closes for it, or should. */
static bool send_frame(side *s, bool counts)
{
    ground *g = s->g;
    rpc_link *l = rpc_conn_link(s->conn);
    const rpc_message *m;
    rt_bytes body = {0};

    do /* what is for a tracker ends the connection */
        m = fuzz_kind(&g->seed, RPC_FROM_CLIENT);
    while (m->kind >= 100 && fuzz_below(&g->seed, 500));
    if (m->kind == RPC_KIND_goodbye || m->kind == RPC_KIND_hello || (m->place == RPC_ON_SESSION && !s->last))
        m = rpc_find_message(fuzz_below(&g->seed, 30) ? RPC_KIND_open : (uint32_t)m->kind);
    uint32_t stream = draw_stream(s, m);
    draw_body(s, &body, m, stream, rpc_link_version(l));
    rpc_kind kind = fuzz_below(&g->seed, 400) ? m->kind : (rpc_kind)fuzz_below(&g->seed, 200);
    bool whole = is_whole(l, RPC_FROM_CLIENT, stream, s->last, kind, &body);
    /* A stream that the server closed takes no frames of this side's link: such an input is not sent, nor
     * counted. */
    if (rpc_link_send_body(l, stream, kind, body.data, body.n)) {
        g->inputs++;
        g->past += whole && counts;
    } else
        whole = true;
    if (s->awaited && stream == s->live && (!whole || kind != RPC_KIND_open)) {
        s->awaited = false;
        s->live = 0;
    }
    rt_bytes_free(&body);
    return whole;
}

/* Some frames and a question, whose answer says that all before it were taken unless the server closed. */
static void send_batch(side *s)
{
    bool counts = true;

    if (!s->conn)
        join(s);
    for (int i = 0; i < AT_ONCE && rpc_link_error(rpc_conn_link(s->conn))->status == TEC_OK; i++)
        counts = send_frame(s, counts) && counts;
    int64_t before = s->lists;
    rpc_conn_send(s->conn, 0, RPC_KIND_list, &(rpc_list){0});
    while (!s->closed && (s->lists == before || s->awaited))
        rpc_loop_run(s->at->loop);
}

Test(rpc_listening, survives_wild_frames_of_clients)
{
    static ground g;
    static station at;
    side sides[SIDES] = {0};
    int64_t executions = fuzz_executions(10000), closed = 0, opened = 0;

    prepare(&g);
    at.loop = rpc_loop_new(NULL);
    start_server(&at, &g, 0, NULL);
    while (g.inputs < executions) {
        side *s = &sides[fuzz_below(&g.seed, SIDES)];

        s->g = &g;
        s->at = &at;
        opened += s->closed ? s->opened : 0;
        closed += s->closed;
        send_batch(s);
    }
    stop_server(&at);
    cr_assert(rpc_loop_free(at.loop));
    rpc_server_free(at.server);
    clean(&g);
    for (int i = 0; i < SIDES; i++)
        opened += sides[i].opened;
    printf("%lld sessions, of these opened %lld; %lld connections closed, %lld refusals logged\n",
           (long long)at.sessions, (long long)opened, (long long)closed, (long long)at.refused);
    cr_assert(at.sessions > 0 && opened > 0 && closed > 0 && at.refused > 0);
    report("frames of clients at a listening server", &g);
}

/* ---- a tracker that answers at random ---- */

/* The connection of one server. Each server says its name when it announces itself. */
typedef struct {
    rpc_conn *conn;
    int64_t synced; /* announcements that the server has logged when the last batch went out */
} member;

typedef struct {
    ground g;
    rpc_loop *loop;
    station at[MEMBERS];
    member members[MEMBERS];
    int64_t visits, lost;
} tracker;

static bool find_key(void *user, const uint8_t *id, rpc_grant *grant)
{
    const tracker *t = user;

    *grant = (rpc_grant){.key = t->g.key.key, .roles = RPC_ROLE_ANY};
    return memcmp(id, t->g.key.key.id, RPC_ID_BYTES) == 0;
}

/* What the tracker says to a server that it invited: that a client is there, whose handshake makes no
 * sense, or anything. */
static void answer_visit(tracker *t, rpc_conn *c)
{
    uint8_t noise[100];

    t->visits++;
    if (fuzz_below(&t->g.seed, 4) == 0) {
        rpc_conn_send(c, 0, RPC_KIND_dialled, &(rpc_dialled){0, "x"});
        return;
    }
    rpc_conn_send(c, 0, RPC_KIND_joined, &(rpc_joined){0});
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)fuzz_random(&t->g.seed);
    if (fuzz_below(&t->g.seed, 2))
        memcpy(noise, "tec-rpc\n\1\0\6", 11);
    rpc_link_make_raw(rpc_conn_link(c));
    rpc_link_put_raw(rpc_conn_link(c), noise, sizeof noise);
    rpc_conn_flush(c);
    rpc_conn_close(c, TEC_OK, "said all");
}

static void on_member_frame(rpc_conn *c, const rpc_frame *f)
{
    tracker *t = rpc_conn_user(c);
    rt_arena arena = {0};
    rpc_any m;

    cr_assert(rpc_decode(&m, (uint32_t)f->kind, f->body, f->n, rpc_link_version(rpc_conn_link(c)), &arena));
    if (f->kind == RPC_KIND_announce) {
        int i = atoi(m.announce.name + 1);

        cr_assert(i >= 0 && i < MEMBERS);
        t->members[i] = (member){.conn = c};
        rpc_loop_stop(t->loop);
    } else if (f->kind == RPC_KIND_arrive)
        answer_visit(t, c);
    rt_arena_free(&arena);
}

static void on_member_closed(rpc_conn *c, const tec_error *why)
{
    tracker *t = rpc_conn_user(c);

    (void)why;
    for (int i = 0; i < MEMBERS; i++)
        if (t->members[i].conn == c) {
            t->members[i].conn = NULL;
            t->lost++;
        }
    rpc_loop_stop(t->loop);
}

static const rpc_events member_events = {.frame = on_member_frame, .closed = on_member_closed};

/* A text that fits its message; rarely any. */
static const char *draw_text(uint64_t *seed)
{
    const char *text = fuzz_text(seed);

    while (strlen(text) > 100 && fuzz_below(seed, 50))
        text = fuzz_text(seed);
    return text;
}

/* A word that the server expects, with leases of few numbers. */
static void put_word(tracker *t, rt_bytes *b, rpc_kind kind, int version)
{
    uint64_t *seed = &t->g.seed;
    rpc_id_text id = rpc_show_id(t->g.key.key.id);
    const rpc_assigned assigned = {.device = fuzz_below(seed, 2) ? "cpu:0" : draw_text(seed),
                                   .lease =
                                       fuzz_below(seed, 2000) ? fuzz_below(seed, LEASES) : fuzz_number(seed),
                                   .owner = fuzz_below(seed, 2) ? id.text : draw_text(seed),
                                   .on = fuzz_below(seed, 3) != 0,
                                   .user = draw_text(seed)};

    if (kind == RPC_KIND_assigned)
        rpc_encode(b, kind, &assigned, version);
    else if (kind == RPC_KIND_announced)
        rpc_encode(b, kind, &(rpc_announced){draw_text(seed), fuzz_number(seed)}, version);
    else if (kind == RPC_KIND_dialled)
        rpc_encode(b, kind, &(rpc_dialled){fuzz_number(seed), draw_text(seed)}, version);
    else
        fuzz_body(seed, b, rpc_find_message((uint32_t)kind)->record, version);
}

/* Mostly what a tracker says to a server; rarely what it says to others. A connection that ends is dialled
 * again after a tenth of a second: few of the words end it. */
static void draw_word(tracker *t, rt_bytes *b, rpc_kind *kind, int version)
{
    static const rpc_kind usual[] = {RPC_KIND_announced, RPC_KIND_dialled, RPC_KIND_assigned,
                                     RPC_KIND_assigned,  RPC_KIND_ping,    RPC_KIND_assigned};
    uint64_t *seed = &t->g.seed;

    *kind = usual[fuzz_below(seed, (int64_t)(sizeof usual / sizeof *usual))];
    if (fuzz_below(seed, 300) == 0)
        *kind = fuzz_below(seed, 2) ? RPC_KIND_invite : RPC_KIND_goodbye;
    if (fuzz_below(seed, 2000) == 0)
        *kind = fuzz_kind(seed, RPC_FROM_SERVER)->kind;
    put_word(t, b, *kind, version);
    if (fuzz_below(seed, 250) == 0)
        fuzz_damage(seed, b);
}

/* A batch of words and one that the server writes down: it is there when the batch was taken. */
static void speak(tracker *t, int i)
{
    member *m = &t->members[i];
    rpc_link *l = rpc_conn_link(m->conn);
    bool counts = true;
    int64_t announced = 1;

    m->synced = t->at[i].registered;
    for (int k = 0; k < AT_ONCE; k++) {
        rt_bytes body = {0};
        rpc_kind kind;

        draw_word(t, &body, &kind, rpc_link_version(l));
        bool whole = is_whole(l, RPC_FROM_SERVER, 0, 0, kind, &body);
        rpc_link_send_body(l, 0, kind, body.data, body.n);
        announced += whole && counts && kind == RPC_KIND_announced;
        t->g.inputs++;
        t->g.past += whole && counts;
        /* `failure` and what is for clients alone ends the connection behind it. */
        counts = counts && whole && kind != RPC_KIND_failure &&
                 (kind == RPC_KIND_announced || kind == RPC_KIND_dialled || kind == RPC_KIND_assigned ||
                  kind == RPC_KIND_invite || kind == RPC_KIND_goodbye || kind == RPC_KIND_ping ||
                  kind == RPC_KIND_pong);
        rt_bytes_free(&body);
    }
    rpc_conn_send(m->conn, 0, RPC_KIND_announced, &(rpc_announced){"", 1000});
    m->synced += announced;
}

/* A client that opens sessions with leases that the tracker tells of, or does not. */
static void try_lease(tracker *t, side *s)
{
    if (!s->conn) {
        s->g = &t->g;
        s->at = &t->at[fuzz_below(&t->g.seed, MEMBERS)];
        join(s);
    }
    uint32_t stream = rpc_link_open_stream(rpc_conn_link(s->conn));
    if (stream)
        rpc_conn_send(s->conn, stream, RPC_KIND_open,
                      &(rpc_open){.device = "cpu:0",
                                  .label = "",
                                  .seconds = 1,
                                  .memory_bytes = 1 << 26,
                                  .lease = fuzz_below(&t->g.seed, LEASES)});
    if (fuzz_below(&t->g.seed, 4) == 0)
        rpc_conn_close(s->conn, TEC_OK, "enough");
}

Test(rpc_listening, survives_a_wild_tracker)
{
    static tracker t;
    const rpc_conn_options o = {
        .link = {.find = find_key, .user = &t, .program = "tracker"}, .events = &member_events, .user = &t};
    int64_t executions = fuzz_executions(10000), refused = 0, registered = 0, sessions = 0;
    side client = {0};
    char address[64];

    prepare(&t.g);
    t.loop = rpc_loop_new(NULL);
    rpc_listener *listener = rpc_listen(t.loop, "127.0.0.1:0", &o, NULL);
    cr_assert(listener);
    snprintf(address, sizeof address, "127.0.0.1:%d", rpc_listener_port(listener));
    for (int i = 0; i < MEMBERS; i++) {
        t.at[i].loop = t.loop;
        start_server(&t.at[i], &t.g, i, address);
    }
    rpc_timer *timer = rpc_timer_start(t.loop, 1, 1, wake, t.loop);
    for (int64_t turn = 0; t.g.inputs < executions; turn++) {
        for (int i = 0; i < MEMBERS; i++)
            if (t.members[i].conn && t.at[i].registered >= t.members[i].synced)
                speak(&t, i);
        if (turn % 50 == 0)
            try_lease(&t, &client);
        rpc_loop_run(t.loop);
    }
    rpc_timer_stop(timer);
    for (int i = 0; i < MEMBERS; i++) {
        stop_server(&t.at[i]);
        refused += t.at[i].refused;
        registered += t.at[i].registered;
        sessions += t.at[i].sessions;
    }
    cr_assert(rpc_loop_free(t.loop));
    for (int i = 0; i < MEMBERS; i++)
        rpc_server_free(t.at[i].server);
    clean(&t.g);
    printf("%lld registrations, %lld connections lost, %lld visits, %lld sessions, %lld refusals\n",
           (long long)registered, (long long)t.lost, (long long)t.visits, (long long)sessions,
           (long long)refused);
    cr_assert(t.lost > 0 && t.visits > 0 && registered > 0 && sessions + refused > 0);
    report("words of a tracker at a server", &t.g);
}
