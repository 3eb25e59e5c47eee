/* tests/rpc/client/hostile.c -- the client's library against a server that shares its key and answers at
 * random: wild and damaged messages, in order and out of it. Each call ends, with an answer or an error. An
 * answer is one input; it is past the first check if it is a whole message of a kind that answers the
 * question, on the question's stream. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/client/measure.h"
#include "rpc/keys.h"
#include "tec/rpc.h"
#include "tests/rpc/grammar.h"

typedef struct {
    int listener, port;
    uint64_t seed;
    rpc_key key;
    bool ending;
    atomic_long inputs, past;
} hostile;

static bool find(void *user, const uint8_t *id, rpc_grant *grant)
{
    const hostile *h = user;

    (void)id;
    *grant = (rpc_grant){.key = h->key, .roles = RPC_ROLE_ANY};
    return true;
}

/* What usually answers a message, so that calls get past their first step. */
static rpc_kind usual_answer(rpc_kind question)
{
    switch ((int)question) {
    case RPC_KIND_open: return RPC_KIND_opened;
    case RPC_KIND_list: return RPC_KIND_listed;
    case RPC_KIND_read:
    case RPC_KIND_fetch: return RPC_KIND_contents;
    case RPC_KIND_call:
    case RPC_KIND_run: return RPC_KIND_called;
    case RPC_KIND_time: return RPC_KIND_timed;
    case RPC_KIND_close: return RPC_KIND_closed;
    case RPC_KIND_request: return RPC_KIND_granted;
    case RPC_KIND_renew: return RPC_KIND_renewed;
    case RPC_KIND_give_back: return RPC_KIND_ended;
    case RPC_KIND_set_aside:
    case RPC_KIND_drain_server: return RPC_KIND_noted;
    case RPC_KIND_execute: return RPC_KIND_executed;
    case RPC_KIND_look: return RPC_KIND_seen;
    case RPC_KIND_profile: return RPC_KIND_profiled;
    case RPC_KIND_measure: return RPC_KIND_measured;
    case RPC_KIND_data: return RPC_KIND_window;
    default: return RPC_KIND_done;
    }
}

/* An answer that makes sense for the calls below, or one of random values. */
static void put_answer(hostile *h, rt_bytes *body, rpc_kind kind, int version)
{
    uint64_t *seed = &h->seed;
    const int64_t shape = 4;
    rpc_cost costs[4] = {{1e-3}, {2e-3}, {fuzz_decimal(seed)}, {1e-3}};
    const rpc_measured measured = {.outcome = fuzz_below(seed, 3) ? 0 : fuzz_below(seed, WORKER_N_OUTCOMES),
                                   .stage = fuzz_text(seed),
                                   .kind = fuzz_text(seed),
                                   .error = fuzz_text(seed),
                                   .clock_mhz = 1000,
                                   .temperature = 40,
                                   .costs = {costs, fuzz_below(seed, 5)}};

    if (kind == RPC_KIND_contents && fuzz_below(seed, 2))
        rpc_encode(body, kind, &(rpc_contents){kDLInt, 32, {&shape, 1}, 16}, version);
    else if (kind == RPC_KIND_measured && fuzz_below(seed, 2))
        rpc_encode(body, kind, &measured, version);
    else
        fuzz_body(seed, body, rpc_find_message((uint32_t)kind)->record, version);
    if (fuzz_below(seed, 4) == 0)
        fuzz_damage(seed, body);
}

/* What comes behind `contents`: the 16 bytes, in one or two pieces, some more, or none. */
static void send_contents(hostile *h, rpc_link *l, uint32_t stream)
{
    static const uint8_t bytes[64];
    static const size_t pieces[][2] = {{16, 0}, {8, 8}, {12, 20}, {0, 0}};
    const size_t *piece = pieces[fuzz_below(&h->seed, 4)];

    for (int i = 0; i < 2; i++)
        if (piece[i])
            rpc_link_send_piece(l, stream, bytes, piece[i]);
}

static void answer(hostile *h, rpc_link *l, const rpc_frame *f)
{
    rpc_kind kind =
        fuzz_below(&h->seed, 12) ? usual_answer(f->kind) : fuzz_kind(&h->seed, RPC_FROM_SERVER)->kind;
    rt_bytes body = {0};

    put_answer(h, &body, kind, rpc_link_version(l));
    uint32_t stream = fuzz_below(&h->seed, 30) ? f->stream : (uint32_t)fuzz_below(&h->seed, 4);
    rt_arena arena = {0};
    rpc_any m;
    h->past += kind == usual_answer(f->kind) && stream == f->stream &&
               rpc_decode(&m, (uint32_t)kind, body.data, body.n, rpc_link_version(l), &arena);
    h->inputs++;
    rt_arena_free(&arena);
    rpc_link_send_body(l, stream, kind, body.data, body.n);
    if (kind == RPC_KIND_contents)
        send_contents(h, l, stream);
    rt_bytes_free(&body);
}

static bool push(rpc_link *l, int fd)
{
    size_t n;
    const uint8_t *out;

    while (out = rpc_link_output(l, &n), n) {
        ssize_t sent = send(fd, out, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        rpc_link_sent(l, (size_t)sent);
    }
    return true;
}

/* One client: a few answers, then the connection closes, so that nobody waits for long. */
static void serve(hostile *h, int fd)
{
    int newest = fuzz_below(&h->seed, 4) ? RPC_NEWEST : 1 + (int)fuzz_below(&h->seed, RPC_NEWEST);
    const rpc_link_options o = {.find = find, .user = h, .program = "hostile", .newest = newest};
    rpc_link *l = rpc_link_new(&o, NULL);
    int64_t left = 1 + fuzz_below(&h->seed, 24);
    rpc_frame f;

    while (left > 0 && push(l, fd)) {
        rpc_event e = rpc_link_next(l, &f);
        size_t room;

        if (e == RPC_BROKEN)
            break;
        if (e == RPC_FRAME) {
            if (f.kind != RPC_KIND_goodbye && f.kind != RPC_KIND_pong && f.kind != RPC_KIND_data &&
                f.kind != RPC_KIND_window)
                answer(h, l, &f);
            left--;
            continue;
        }
        uint8_t *at = rpc_link_room(l, &room);
        ssize_t n = at ? recv(fd, at, room, 0) : 0;
        if (n <= 0)
            break;
        rpc_link_received(l, (size_t)n);
    }
    push(l, fd);
    rpc_link_free(l);
    close(fd);
}

static void *serve_all(void *user)
{
    hostile *h = user;
    int fd;

    while ((fd = accept(h->listener, NULL, NULL)) >= 0 && !h->ending)
        serve(h, fd);
    return NULL;
}

static bool measure(tec_rpc_session *s)
{
    rpc_measurement *measurement = calloc(1, sizeof *measurement);
    const rpc_measure question = {
        .modules = {&(int64_t){1}, 1}, .repeats = 1, .threads = 1, .min_seconds = 0.001, .label = ""};
    bool good = rpc_ask_measure(s, &question, measurement, NULL);

    free(measurement);
    return good;
}

static bool look(tec_rpc_session *s)
{
    tec_rpc_value seen;
    bool good = tec_rpc_look(s, 1, &seen, NULL);

    if (good)
        tec_rpc_value_free(&seen);
    return good;
}

static bool profile(tec_rpc_session *s)
{
    tec_rpc_profile_rows rows;
    bool good = tec_rpc_profile(s, 1, &rows, NULL);

    tec_rpc_profile_free(&rows);
    return good;
}

static bool fetch(tec_rpc_session *s, bool tensor)
{
    tec_array *a = tensor ? tec_rpc_fetch_tensor(s, 1, NULL) : tec_rpc_fetch(s, 1, 0, NULL);
    bool good = a != NULL;

    tec_array_free(a);
    return good;
}

/* Runs of programs that give no result, one, or one that is missing its place. */
static bool execute(tec_rpc_session *s, int64_t number)
{
    int64_t values[] = {1, 2}, out;
    double seconds;

    switch (number) {
    case 0: return tec_rpc_execute(s, 1, values, 2, &out, 1, NULL, NULL);
    case 1: return tec_rpc_execute(s, 1, NULL, 0, NULL, 0, &seconds, NULL);
    default: return tec_rpc_execute(s, 1, values, 2, NULL, 1, NULL, NULL);
    }
}

/* A value of an array, of parts, of nothing, or of parts and arrays that are missing. */
static bool make_value(tec_rpc_session *s, int64_t number)
{
    const int64_t parts[] = {1, 2};

    switch (number) {
    case 0: return tec_rpc_tensor(s, 1, 2, NULL) != 0;
    case 1: return tec_rpc_compound(s, 1, "Leaf", parts, 2, NULL) != 0;
    case 2: return tec_rpc_compound(s, 1, NULL, NULL, 0, NULL) != 0;
    case 3: return tec_rpc_tensor(s, 1, 0, NULL) != 0;
    default: return tec_rpc_compound(s, 1, "Leaf", NULL, 2, NULL) != 0;
    }
}

/* An instance of a program with limits, with a profile, or plain: each is of another version of the wire. */
static bool make_program(tec_rpc_session *s, int64_t number)
{
    switch (number) {
    case 0: return tec_rpc_program_with(s, 1, NULL, &(tec_rpc_program_options){.max_steps = 9}, NULL) != 0;
    case 1: return tec_rpc_program_with(s, 1, "main", &(tec_rpc_program_options){.profile = 1}, NULL) != 0;
    default: return tec_rpc_program(s, 1, NULL, 1, NULL) != 0;
    }
}

/* One call of a client, by its number; whether it succeeded. The seed chooses among its forms. */
static bool use_call(tec_rpc_session *s, int64_t number, uint64_t *seed)
{
    static uint8_t module[3000];
    int64_t n = 4, parts[] = {1, 2};
    int32_t data[4] = {0};
    DLTensor t = {data, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &n, NULL, 0};
    const tec_rpc_call_options call = {.module = 1, .function = "f", .arrays = parts, .n = 2},
                               program = {.program = 1, .arrays = parts, .n = 2};
    tec_timing timing;

    switch (number) {
    case 0: return tec_rpc_upload_bytes(s, "m.so", module, sizeof module, NULL) != 0;
    case 1: return tec_rpc_upload_ahead(s, "n.so", module, sizeof module, NULL);
    case 2: return tec_rpc_uploaded(s, NULL) != 0;
    case 3: return tec_rpc_array(s, t.dtype, 1, &n, NULL) != 0;
    case 4: return tec_rpc_write(s, 1, &t, NULL);
    case 5: return tec_rpc_read(s, 1, &t, NULL);
    case 6: return tec_rpc_call(s, &call, NULL, NULL);
    case 7: return tec_rpc_time(s, &call, NULL, &timing, NULL);
    case 8: return tec_rpc_time(s, &program, NULL, &timing, NULL);
    case 9: return tec_rpc_prepare(s, 1, NULL, 1, NULL) != 0;
    case 10: return tec_rpc_feed(s, 1, 0, 2, NULL);
    case 11: return tec_rpc_run(s, 1, NULL, NULL);
    case 12: return fetch(s, false);
    case 13: return fetch(s, true);
    case 14: return make_program(s, fuzz_below(seed, 3));
    case 15: return make_value(s, fuzz_below(seed, 5));
    case 16: return execute(s, fuzz_below(seed, 3));
    case 17: return look(s);
    case 18: return profile(s);
    case 19: return tec_rpc_release(s, 1, NULL);
    case 20: rpc_release_later(s, 1); return true;
    default: return measure(s);
    }
}

enum { CALLS = 25 }; /* the last ones measure */

/* A few calls in any order, as a connection rarely outlives the third wild answer; how many succeeded. */
static int use_session(tec_rpc_session *s, uint64_t *seed)
{
    int good = 0;

    for (int64_t left = 1 + fuzz_below(seed, 8); left > 0; left--)
        good += use_call(s, fuzz_below(seed, CALLS), seed);
    return good;
}

static int use(const char *address, const char *keys, bool as_tracker, uint64_t *seed)
{
    tec_error err = {0};
    tec_rpc *c = tec_rpc_connect(address, &(tec_rpc_options){.key_file = keys, .seconds = 0.05}, &err);
    int good = 0;

    if (c && as_tracker) {
        tec_rpc_lease *l = tec_rpc_request(c, &(tec_rpc_lease_options){.device_class = "board"}, NULL);
        tec_rpc_queue queue;
        tec_rpc_grant_info granted;
        good += tec_rpc_wait(l, 0.002, NULL) == TEC_RPC_GRANTED;
        good += tec_rpc_queue_of(l, &queue);
        good += tec_rpc_granted(l, &granted);
        good += tec_rpc_renew(l, NULL);
        tec_rpc_wanted(l);
        good += tec_rpc_set_aside(l, "slow", NULL);
        good += tec_rpc_set_device_aside(c, "a/cpu:0", "slow", NULL, NULL);
        good += tec_rpc_drain(c, "a", NULL, NULL);
        good += tec_rpc_restore(c, "a", NULL);
        tec_rpc_give_back(l);
    } else if (c) {
        if (fuzz_below(seed, 4) == 0)
            good += tec_rpc_list(c, fuzz_below(seed, 2) != 0, NULL) != NULL;
        tec_rpc_session *s = tec_rpc_open(c, NULL, NULL);
        good += s != NULL;
        tec_rpc_session *other = s && fuzz_below(seed, 3) == 0 ? tec_rpc_open(c, NULL, NULL) : NULL;
        if (s)
            good += use_session(s, seed);
        if (other)
            good += use_session(other, seed);
        tec_rpc_close(other);
        tec_rpc_close(s);
    }
    tec_rpc_disconnect(c);
    return good;
}

/* A client trusts no server: one that the key admits answers with damaged messages, and each call ends with a
 * result or an error. */
Test(rpc_hostile, servers_cannot_harm_a_client)
{
    static hostile h;
    char folder[] = "/tmp/tec-hostile-XXXXXX", keys[64], address[64];
    rpc_key_row row = {.roles = RPC_ROLE_ANY, .classes = "*", .users = "*"};
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int64_t executions = fuzz_executions(1500), good = 0, clients = 0;
    uint64_t client_seed = fuzz_seed() + 1; /* of this thread: the server's is another one's */
    pthread_t thread;

    cr_assert(mkdtemp(folder));
    snprintf(keys, sizeof keys, "%s/keys", folder);
    cr_assert(rpc_keys_add(keys, &row, NULL));
    h = (hostile){
        .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .seed = fuzz_seed(), .key = row.key};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert(bind(h.listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(h.listener, 16) == 0 &&
              getsockname(h.listener, (struct sockaddr *)&at, &size) == 0);
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
    cr_assert_eq(pthread_create(&thread, NULL, serve_all, &h), 0);
    for (; h.inputs < executions; clients++)
        good += use(address, keys, clients % 4 == 0, &client_seed);
    h.ending = true;
    shutdown(h.listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(h.listener);
    unlink(keys);
    rmdir(folder);
    printf("answers to clients: %ld of %ld inputs past the first check; %lld clients, %lld calls that "
           "succeeded\n",
           h.past, h.inputs, (long long)clients, (long long)good);
    cr_assert_geq(10 * h.past, 3 * h.inputs);
    cr_assert_gt(good, clients / 2);
}
