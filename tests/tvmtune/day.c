/* A day of the daemon in seconds: its clocks are turned ahead. Jobs come, run and are removed; clients follow
 * the events; the page is asked for. What the process has allocated does not grow from the tenth hour on.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/store/kit.h"
#include "tvmtune/http.h"
#include "tvmtune/run.h"

TestSuite(day, .init = set_up, .fini = tear_down);

enum { CLIENTS = 20, STEP_MS = 5000, HOUR_MS = 3600 * 1000, JOBS_AN_HOUR = 4, HOURS = 24 };

static const char token[] = "0123456789abcdef0123456789abcdef";

/* A compiler that takes a moment for each stage: a kernel, its outcome, a module. */
static const char compiler[] = "#!/bin/sh\n"
                               "case \" $* \" in *' --kernels '*)\n"
                               "echo '{\"event\":\"kernel\",\"key\":\"'$(cksum <\"$2\" | cut -c1-8)00000000"
                               "'\",\"target\":\"t\",\"task\":\"k\",\"uses\":1,\"codegen\":\"1\"}'; exit;;\n"
                               "esac\n"
                               "[ \"$1\" != tune ] || echo '{\"event\":\"batch\",\"all_trials\":3}'\n"
                               "while [ $# -gt 1 ] && [ \"$1\" != -o ]; do shift; done\n"
                               "[ \"$1\" != -o ] || echo module >\"$2\"\n";

typedef struct {
    tec_context *cx, *turns;
    tvm_ahead ahead;
    tvm_doors *doors;
    tvm_runner *runner;
    store *db;
    int stream[CLIENTS];
    int64_t events; /* bytes */
    int done;
} day;

static int dial(const day *d)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)tvm_doors_port(d->doors)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static void ask(const day *d, int fd, const char *path)
{
    char text[400];
    int n = snprintf(text, sizeof text,
                     "GET %s HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n", path,
                     tvm_doors_port(d->doors), token);

    cr_assert(eq(i64, send(fd, text, (size_t)n, MSG_NOSIGNAL), n));
}

/* A request whose answer must be a success. */
static void get(const day *d, const char *path)
{
    char text[1 << 14];
    ssize_t n, all = 0;
    int fd = dial(d);

    ask(d, fd, path);
    while ((n = recv(fd, text + (all < 100 ? all : 100), sizeof text - 100, 0)) > 0)
        all += n;
    close(fd);
    cr_assert(all > 12 && strncmp(text + 9, "200", 3) == 0, "%s: %.40s", path, text);
}

/* What has come on the event streams. */
static void drain(day *d)
{
    char text[1 << 14];
    ssize_t n;

    for (int i = 0; i < CLIENTS; i++)
        while ((n = recv(d->stream[i], text, sizeof text, MSG_DONTWAIT)) > 0)
            d->events += n;
}

static void step(day *d, int ms)
{
    bool ok = tvm_runner_step(d->runner, ms);

    cr_assert(ok, "%s", tec_context_error(d->turns));
    tec_context_clear(d->turns);
    tvm_doors_tick(d->doors);
    drain(d);
}

static void told(void *user, const store_queued *queued)
{
    day *d = user;

    cr_assert_neq(queued->state, STORE_QUEUE_FAILED, "job %d: %s", (int)queued->id, queued->cause);
    d->done += queued->state == STORE_QUEUE_DONE;
}

static void open_day(day *d)
{
    const char *tec = base_format(cx, "%s/tec", dir), *db = base_format(cx, "%s/day.db", dir);

    cr_assert(base_write_file(cx, tec, compiler, sizeof compiler - 1) && chmod(tec, 0755) == 0);
    d->doors = tvm_doors_open(cx, &(tvm_doors_options){.store = db, .token = token, .ahead = &d->ahead});
    cr_assert(d->doors != NULL, "%s", tec_context_error(cx));
    d->turns = tec_context_new();
    d->runner = tvm_runner_open(d->turns, &(tvm_runner_options){.store = db,
                                                                .work = base_format(cx, "%s/work", dir),
                                                                .name = "here",
                                                                .alone = true,
                                                                .lease = 30,
                                                                .tec = tec,
                                                                .at_once = 2,
                                                                .patience = 600,
                                                                .keep_seconds = 1800,
                                                                .ahead = &d->ahead,
                                                                .told = told,
                                                                .user = d});
    cr_assert(d->runner != NULL, "%s", tec_context_error(d->turns));
    d->db = store_open(cx, db, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        d->stream[i] = dial(d);
        ask(d, d->stream[i], "/v1/events");
    }
}

static void close_day(day *d)
{
    for (int i = 0; i < CLIENTS; i++)
        close(d->stream[i]);
    tvm_runner_close(d->runner);
    tvm_doors_close(d->doors);
    tec_context_free(d->turns);
    store_close(d->db);
}

/* A job, until it is done: its programs run in the machine's time. */
static void run_job(day *d, int number)
{
    tec_context *own = tec_context_new();
    const char *text = base_format(own, "def f%d(A: f32[4]) {}", number);
    int before = d->done;

    cr_assert(store_queue_add(own, d->db, &(store_queued){.name = "a.te", .user = "owner"}, text,
                              strlen(text)) > 0);
    tec_context_free(own);
    d->ahead += 1000; /* the queue is looked at */
    for (int i = 0; i < 60000 && d->done == before; i++)
        step(d, 1);
    cr_assert(eq(int, d->done, before + 1));
}

/* Freed blocks that each thread keeps at hand count as given out, and there are more of them the longer a
 * thread lives: up to seven of each size. Here threads keep none, which malloc must be told at the start. */
__attribute__((constructor)) static void begin_anew(int argc, char **argv)
{
    (void)argc;
    if (getenv("GLIBC_TUNABLES"))
        return;
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
    execv("/proc/self/exe", argv);
}

/* Bytes that malloc has given out. */
static int64_t allocated(void)
{
    return (int64_t)mallinfo2().uordblks;
}

Test(day, leaves_the_memory_as_it_was)
{
    static day d;
    int64_t at[3] = {0}, jobs; /* after hours 10, 17 and 24 */

    open_day(&d);
    for (int hour = 0; hour < HOURS; hour++) {
        for (int k = 0; k < JOBS_AN_HOUR; k++) {
            run_job(&d, hour * JOBS_AN_HOUR + k);
            get(&d, "/v1/jobs");
            get(&d, "/v1/records?search=f");
            get(&d, "/v1/devices");
            get(&d, "/v1/metrics");
            for (int64_t ms = 0; ms < HOUR_MS / JOBS_AN_HOUR; ms += STEP_MS) {
                d.ahead += STEP_MS;
                step(&d, 0);
            }
        }
        if (hour >= 9 && (hour - 9) % 7 == 0)
            at[(hour - 9) / 7] = allocated();
        if (hour % 7 == 2)
            fprintf(stderr, "hour %2d: %lld bytes, %d jobs done, %lld KiB of events\n", hour + 1,
                    (long long)allocated(), d.done, (long long)d.events >> 10);
    }
    /* One byte a step would be 5,040 in seven hours. A leak grows in both spans; an arena that takes one more
     * piece of 256 KiB, when more events than ever come at once, keeps it. */
    int64_t first = at[1] - at[0], second = at[2] - at[1];
    cr_assert(first < 4096 || second < 4096,
              "%lld bytes more after hour 17 than after hour 10, then %lld bytes more", (long long)first,
              (long long)second);
    /* jobs that were over for half an hour are gone */
    cr_assert(store_number(cx, d.db, "SELECT COUNT(*) FROM queue", &jobs));
    cr_assert_lt(jobs, 2 * JOBS_AN_HOUR);
    cr_assert_gt(d.events, (int64_t)CLIENTS * HOURS * 3600 / 16 * 10);
    close_day(&d);
}
