/* bench/bench_tracker.c -- what the tracker takes: servers that are registered, clients that wait, leases a
 * second, memory.
 *
 *     bench_tracker [SERVERS [CLIENTS [SECONDS]]]        5000 500 5; at most 8000, 2000 and 20
 *
 * Starts the rpc_tracker beside it on a free port of loopback with keys and a state of its own, registers
 * SERVERS servers of one device each, which the tracker dials back, and lets each of CLIENTS clients lease a
 * device of the class `few` (one for five clients) and give it back, over and over. Prints one line for each
 * figure.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/loop/loop.h"

enum {
    MOST_SERVERS = 8000,
    MOST_CLIENTS = 2000,
    MOST_SECONDS = 20,
    GIVE_UP_MS = 120000,
    HEARTBEAT_MS = 4000
};

typedef struct bench bench;

typedef struct {
    bench *b;
    rpc_conn *conn;
    int index;
    bool is_server;
} side;

struct bench {
    rpc_loop *loop;
    rpc_key key;
    rpc_conn_options dial;
    rpc_listener *served;
    char tracker[64], folder[64], dialled_at[32];
    int n_servers, n_clients, seconds;
    int announced, ready_clients, joining; /* joining: connections under way */
    int next_server, next_client;
    side *sides;
    int64_t grants, started_at, joined_at;
    bool measuring, failed;
    pid_t child;
};

static bool find(void *user, const uint8_t *id, rpc_grant *grant)
{
    const bench *b = user;

    grant->key = b->key;
    grant->roles = RPC_ROLE_ANY;
    return memcmp(id, b->key.id, RPC_ID_BYTES) == 0;
}

static void give_up(bench *b, const char *why)
{
    fprintf(stderr, "bench_tracker: %s\n", why);
    b->failed = true;
    rpc_loop_stop(b->loop);
}

/* ---- the two kinds of connections ---- */

static void ask(side *s)
{
    char user[16];

    snprintf(user, sizeof user, "u%d", s->index % 7);
    rpc_conn_send(s->conn, 0, RPC_KIND_request,
                  &(rpc_request){.number = 1, .class = "few", .user = user, .job = "bench", .prefer = ""});
}

static void join_more(bench *b);

static void on_ready(rpc_conn *c)
{
    side *s = rpc_conn_user(c);
    bench *b = s->b;
    char name[16];
    rpc_offered device = {"cpu:0", s->index < b->n_clients / 5 ? "few" : "many", "bench", "none", "", {0}};

    snprintf(name, sizeof name, "s%d", s->index);
    if (s->is_server)
        rpc_conn_send(c, 0, RPC_KIND_announce, &(rpc_announce){name, b->dialled_at, {&device, 1}});
    else {
        b->ready_clients++;
        b->joining--;
        join_more(b);
    }
}

static void on_granted(side *s, const rpc_frame *f)
{
    rt_arena arena = {0};
    rpc_any m;

    if (!rpc_decode(&m, (uint32_t)f->kind, f->body, f->n, rpc_link_version(rpc_conn_link(s->conn)), &arena))
        give_up(s->b, "a grant cannot be decoded");
    else if (s->b->measuring) {
        s->b->grants++;
        rpc_conn_send(s->conn, 0, RPC_KIND_give_back, &(rpc_give_back){m.granted.lease});
        ask(s);
    }
    rt_arena_free(&arena);
}

/* With the tracker's own words. */
static void on_refused(side *s, const rpc_frame *f)
{
    rt_arena arena = {0};
    rpc_any m;
    char why[400] = "the tracker refused what it should take";
    size_t used = strlen(why);

    if (rpc_decode(&m, (uint32_t)f->kind, f->body, f->n, rpc_link_version(rpc_conn_link(s->conn)), &arena))
        snprintf(why + used, sizeof why - used, ": %s",
                 f->kind == RPC_KIND_failure ? m.failure.text : m.refused.text);
    give_up(s->b, why);
    rt_arena_free(&arena);
}

static void on_frame(rpc_conn *c, const rpc_frame *f)
{
    side *s = rpc_conn_user(c);
    bench *b = s->b;

    if (f->kind == RPC_KIND_granted)
        on_granted(s, f);
    else if (f->kind == RPC_KIND_dialled) {
        b->announced++;
        b->joining--;
        join_more(b);
    } else if (f->kind == RPC_KIND_failure || f->kind == RPC_KIND_refused)
        on_refused(s, f);
}

static void on_closed(rpc_conn *c, const tec_error *why)
{
    side *s = rpc_conn_user(c);

    s->conn = NULL;
    if (why->status != TEC_CANCELLED)
        give_up(s->b, why->text);
}

static const rpc_events events = {.ready = on_ready, .frame = on_frame, .closed = on_closed};

static void ignore(rpc_conn *c, const tec_error *why)
{
    (void)c;
    (void)why;
}

static const rpc_events dialled_back = {.closed = ignore};

/* ---- joining, measuring ---- */

static void report_end(void *user)
{
    bench *b = user;
    double lasted = (double)(rpc_loop_now(b->loop) - b->started_at) / 1e3;

    b->measuring = false;
    printf("grants a second: %.0f (%lld in %.1f s)\n", (double)b->grants / lasted, (long long)b->grants,
           lasted);
    rpc_loop_stop(b->loop);
}

static void start_measuring(bench *b)
{
    printf("registered servers: %d, clients: %d, after %.1f s\n", b->announced, b->ready_clients,
           (double)(rpc_loop_now(b->loop) - b->joined_at) / 1e3);
    b->measuring = true;
    b->started_at = rpc_loop_now(b->loop);
    for (int i = b->n_servers; i < b->n_servers + b->n_clients; i++)
        ask(&b->sides[i]);
    rpc_timer_start(b->loop, 1000 * b->seconds, 0, report_end, b);
}

/* Some connections at a time, as a backlog of a listener is finite; servers first. */
static void join_more(bench *b)
{
    while (b->joining < 100 && b->next_server < b->n_servers + b->n_clients && !b->failed) {
        side *s = &b->sides[b->next_server];

        *s = (side){.b = b, .index = b->next_server, .is_server = b->next_server < b->n_servers};
        b->next_server++;
        b->joining++;
        b->dial.user = s;
        s->conn = rpc_dial(b->loop, b->tracker, &b->dial, NULL);
        if (!s->conn)
            give_up(b, "no memory");
    }
    if (b->announced == b->n_servers && b->ready_clients == b->n_clients && !b->measuring)
        start_measuring(b);
}

static void beat(void *user)
{
    bench *b = user;

    for (int i = 0; i < b->n_servers; i++)
        if (b->sides[i].conn && rpc_link_ready(rpc_conn_link(b->sides[i].conn)))
            rpc_conn_send(b->sides[i].conn, 0, RPC_KIND_heartbeat, &(rpc_heartbeat){0});
}

static void too_late(void *user)
{
    give_up(user, "gave up after two minutes");
}

/* ---- the tracker ---- */

static void path_of(const bench *b, const char *name, char *to, size_t size)
{
    snprintf(to, size, "%s/%s", b->folder, name);
}

/* Starts the tracker that lies beside this program's folder, with a key of its own; false: it does not. */
static bool start_tracker(bench *b, const char *self)
{
    char keys[100], program[4096], line[100] = "";
    const char *slash = strrchr(self, '/');
    int ends[2], port = 0;
    FILE *f;

    snprintf(program, sizeof program, "%.*s/../rpc_tracker", slash ? (int)(slash - self) : 1,
             slash ? self : ".");
    snprintf(b->folder, sizeof b->folder, "/tmp/tec-bench-XXXXXX");
    if (!mkdtemp(b->folder) || pipe(ends) != 0)
        return false;
    path_of(b, "pool.keys", keys, sizeof keys);
    memset(&b->key, 0x11, sizeof b->key);
    f = fopen(keys, "w");
    if (!f)
        return false;
    for (int i = 0; i < RPC_ID_BYTES; i++)
        fputs("11", f);
    fputc(' ', f);
    for (int i = 0; i < RPC_SECRET_BYTES; i++)
        fputs("11", f);
    fputs(" submit,serve,administer * active users=*\n", f);
    fclose(f);
    b->child = fork();
    if (b->child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execl(program, program, "--listen", "127.0.0.1:0", "--key-file", keys, "--quiet", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    for (size_t n = 0; n + 1 < sizeof line && read(ends[0], line + n, 1) == 1 && line[n] != '\n'; n++)
        ;
    snprintf(b->tracker, sizeof b->tracker, "127.0.0.1:");
    return sscanf(line, "rpc_tracker: ready at port %d", &port) == 1 &&
           snprintf(b->tracker, sizeof b->tracker, "127.0.0.1:%d", port) > 0;
}

static void print_memory(const bench *b)
{
    char path[64], line[200];

    snprintf(path, sizeof path, "/proc/%d/status", (int)b->child);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            printf("tracker's memory at most: %.1f MB\n", atof(line + 6) / 1e3);
    if (f)
        fclose(f);
}

static void end_tracker(const bench *b)
{
    static const char *const names[] = {"pool.keys", "tracker.db", "tracker.db-wal", "tracker.db-shm"};
    char path[100];

    kill(b->child, SIGTERM);
    waitpid(b->child, NULL, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path_of(b, names[i], path, sizeof path);
        unlink(path);
    }
    rmdir(b->folder);
}

static int bounded(int argc, char **argv, int at, int usual, int most)
{
    int n = argc > at ? atoi(argv[at]) : usual;

    return n < 1 ? 1 : n > most ? most : n;
}

/* The grants are counted for a fixed time after all have joined, so that joining costs them nothing. */
int main(int argc, char **argv)
{
    bench b = {.n_servers = bounded(argc, argv, 1, 5000, MOST_SERVERS),
               .n_clients = bounded(argc, argv, 2, 500, MOST_CLIENTS),
               .seconds = bounded(argc, argv, 3, 5, MOST_SECONDS)};
    struct rlimit files = {0};

    umask(077);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
    setrlimit(RLIMIT_NOFILE, &files);
    b.sides = calloc((size_t)(b.n_servers + b.n_clients), sizeof *b.sides);
    b.loop = rpc_loop_new(NULL);
    if (!b.sides || !b.loop || !start_tracker(&b, argv[0]))
        give_up(&b, "cannot start rpc_tracker");
    rpc_conn_options served = {.link = {.find = find, .user = &b, .program = "bench"},
                               .events = &dialled_back};
    b.served = b.failed ? NULL : rpc_listen(b.loop, "127.0.0.1:0", &served, NULL);
    if (b.served) {
        snprintf(b.dialled_at, sizeof b.dialled_at, ":%d", rpc_listener_port(b.served));
        b.dial = (rpc_conn_options){.link = {.key = &b.key, .program = "bench"}, .events = &events};
        b.joined_at = rpc_loop_now(b.loop);
        rpc_timer_start(b.loop, HEARTBEAT_MS, HEARTBEAT_MS, beat, &b);
        rpc_timer_start(b.loop, GIVE_UP_MS, 0, too_late, &b);
        join_more(&b);
        rpc_loop_run(b.loop);
        print_memory(&b);
    }
    rpc_loop_free(b.loop);
    if (b.child > 0)
        end_tracker(&b);
    free(b.sides);
    return b.failed;
}
