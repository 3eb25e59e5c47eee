/* tests/pool/devices.c -- a measurer on devices of real servers: what candidates do wrong is theirs, what
 * devices do wrong costs no trial.
 */
#include <math.h>

#include "pool/inside.h"
#include "tests/autotune/candidates.h"

/* A tracker with its servers, as programs; none of its kernels is used here. */
#define TEC_RPC_KERNELS ""
#define pool boards
#include "tests/rpc/client/pool.h"
#undef pool
#include "tests/chaos/proxy.h"

static boards b;
static pool *p;
static tune_measurer *m;

static void begin(void)
{
    cx = tec_context_new();
}

static void end(void)
{
    if (m)
        m->close(m);
    pool_close(p);
    pool_stop(&b);
    tec_context_free(cx);
}
TestSuite(devices, .init = begin, .fini = end, .timeout = 300);

static void open_devices(pool_options o)
{
    o.tracker = b.tracker;
    o.key_file = b.keys;
    o.device_class = "board";
    o.patience = o.patience > 0 ? o.patience : 60;
    o.tolerance = o.tolerance > 0 ? o.tolerance : 50;
    p = pool_open(cx, &o);
    cr_assert(p, "%s", tec_context_error(cx));
}

static void open_pool(int servers, pool_options o)
{
    b = pool_start(servers, NULL);
    open_devices(o);
}

static void open_measurer(void)
{
    const tune_measure_options o = {.builder = TEC_BINARY_DIR "/tec",
                                    .builders = 1,
                                    .min_seconds = 0.002,
                                    .build_timeout = 60,
                                    .run_timeout = 3,
                                    .memory_limit = 64 << 20};

    m = pool_measurer(cx, p, pool_target(p), &o);
    cr_assert(m, "%s", tec_context_error(cx));
}

static tune_result measure(const tune_task *t, const char *trace, bool check)
{
    tune_result r;

    cr_assert(m->submit(m, cx, &(tune_candidate){.task = t, .trace = trace, .seed = 1, .check = check}, 1));
    cr_assert_eq(m->collect(m, cx, t, &r, 1, INFINITY), 1, "%s", tec_context_error(cx));
    return r;
}

static void failed_as(const tune_result *r, store_status status, const char *stage, const char *kind,
                      const char *text)
{
    cr_assert(r->status == status && strcmp(r->stage, stage) == 0 && strcmp(r->error_kind, kind) == 0 &&
                  strstr(r->error, text),
              "expected %s, %s, %s, '%s'; found %s, %s, %s, '%s'", store_status_text(status), stage, kind,
              text, store_status_text(r->status), r->stage, r->error_kind, r->error);
}

static void is_good(const tune_result *r)
{
    cr_assert_eq(r->status, STORE_OK, "%s: %s: %s", r->stage, r->error_kind, r->error);
    cr_assert(r->n_costs >= 1 && r->median > 0 && r->checked);
    cr_assert_str_eq(r->device, "s0/cpu:0");
    cr_assert(strncmp(r->device_text, "class board: ", 13) == 0, "%s", r->device_text);
}

Test(devices, tell_a_bad_candidate_as_the_local_runner_does)
{
    open_pool(1, (pool_options){.devices = 1});
    open_measurer();
    tune_task *t = task_for(tiled);
    tune_result r = measure(t, doing(right), true);
    is_good(&r);
    r = measure(t, doing(crashing), false);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* these catch the signal, and exit */
    cr_assert_eq(r.status, STORE_RUN_ERROR);
#else
    failed_as(&r, STORE_RUN_ERROR, "run", "SIGSEGV", "signal 11");
#endif
    r = measure(t, doing(hanging), true);
    failed_as(&r, STORE_TIMEOUT, "run", "timeout", "no end within 3 s");
    r = measure(t, doing("c[0] += 1;"), true);
    failed_as(&r, STORE_WRONG, "check", "wrong answer", "output 'C' [0, 0] is ");
    r = measure(t, doing("return 7;"), false);
    failed_as(&r, STORE_RUN_ERROR, "run", "error", "mm");
    r = measure(t, doing(right), true);
    is_good(&r);
    cr_assert_eq(m->stats(m).repeated, 0);
}

/* While one candidate hangs, the others are built; then each is sent while the one before is measured. On a
 * machine whose builders are late that takes more than one round. */
Test(devices, are_sent_the_next_module_while_they_measure)
{
    enum { ROUNDS = 20, N = 4 };
    tune_result r[N];

    open_pool(1, (pool_options){.devices = 1});
    open_measurer();
    tune_task *t = task_for(tiled);
    for (int round = 0; round < ROUNDS && m->stats(m).ahead == 0; round++) {
        int got = 0;

        for (int i = 0; i < N; i++) {
            const tune_candidate c = {.task = t,
                                      .trace = i ? doing(right) : doing(hanging),
                                      .seed = 1 + (uint64_t)i,
                                      .check = true};

            cr_assert(m->submit(m, cx, &c, 1));
        }
        while (got < N) {
            int n = m->collect(m, cx, t, r + got, N - got, INFINITY);

            cr_assert(n > 0, "%s", tec_context_error(cx));
            got += n;
        }
        for (int i = 1; i < N; i++)
            is_good(&r[i]);
    }
    cr_assert_gt(m->stats(m).ahead, 0, "every module was sent when the device had nothing to do");
}

/* The number of the server whose device is at work. */
static int server_at_work(void)
{
    const tune_device *d;
    int n = m->devices(m, cx, &d), server;

    for (int i = 0; i < n; i++)
        if (sscanf(d[i].name, "s%d/", &server) == 1)
            return server;
    return -1;
}

static void kill_server(int i)
{
    kill(b.server[i].pid, SIGKILL);
    cr_assert_eq(waitpid(b.server[i].pid, NULL, 0), b.server[i].pid);
    b.server[i].pid = 0;
}

/* Waits until the runner has a device, of another server than `before`. */
static int next_at_work(int before)
{
    for (int i = 0; i < 600; i++) {
        int now = server_at_work();

        if (now >= 0 && now != before)
            return now;
        usleep(50000);
    }
    cr_assert(false, "no device came");
    return -1;
}

/* The candidate hangs, so that its server can be killed while it runs; twice that is no coincidence. */
Test(devices, that_are_lost_twice_poison_the_candidate)
{
    tune_result r;

    open_pool(3, (pool_options){.devices = 1});
    open_measurer();
    tune_task *t = task_for(tiled);
    cr_assert(m->submit(m, cx, &(tune_candidate){.task = t, .trace = doing(hanging), .seed = 1}, 1));
    while (m->stats(m).link == 0)
        usleep(10000);
    int first = next_at_work(-1);
    usleep(700000);
    kill_server(first);
    int second = next_at_work(first);
    usleep(700000);
    kill_server(second);
    cr_assert_eq(m->collect(m, cx, t, &r, 1, INFINITY), 1, "%s", tec_context_error(cx));
    failed_as(&r, STORE_RUN_ERROR, "run", "poisoned", "2 devices were lost while it ran");
    cr_assert_eq(m->stats(m).repeated, 1);
    r = measure(t, doing(right), true);
    cr_assert_eq(r.status, STORE_OK, "%s", r.error);
}

/* A server whose address is that of a proxy. */
static proxy start_behind_proxy(void)
{
    proxy way = proxy_start();
    char announce[32], listen[32];
    const char *argv[] = {"--tracker", b.tracker, "--device-class", "board",  "--key-file", b.keys,
                          "--name",    "s0",      "--announce",     announce, NULL};

    way.shared->target = proxy_free_port();
    snprintf(announce, sizeof announce, "127.0.0.1:%d", way.port);
    snprintf(listen, sizeof listen, "127.0.0.1:%d", way.shared->target);
    b.n = 1;
    kit_prepare(&b.server[0]);
    cr_assert(kit_launch(&b.server[0], listen, argv), "no server: see %s", b.server[0].log);
    cr_assert(kit_logged(&b.server[0], "the tracker reaches this server"), "see %s", b.server[0].log);
    return way;
}

/* The server goes on when a connection to it breaks, so that two of them say nothing about the candidate that
 * runs then: it is measured a third time, and hangs to its end. */
Test(devices, whose_connections_break_are_no_reason_to_blame_a_candidate)
{
    enum { BREAKS = 2 };
    tune_result r;

    b = pool_start(0, NULL);
    proxy way = start_behind_proxy();
    open_devices((pool_options){.devices = 1});
    open_measurer();
    tune_task *t = task_for(tiled);
    for (int i = 0; i < BREAKS; i++) {
        kit_forget_log(&b.server[0]);
        if (i == 0)
            cr_assert(m->submit(m, cx, &(tune_candidate){.task = t, .trace = doing(hanging), .seed = 1}, 1));
        cr_assert(kit_logged(&b.server[0], "measures '"), "see %s", b.server[0].log);
        proxy_cut_all(&way);
    }
    cr_assert_eq(m->collect(m, cx, t, &r, 1, INFINITY), 1, "%s", tec_context_error(cx));
    failed_as(&r, STORE_TIMEOUT, "run", "timeout", "no end within 3 s");
    cr_assert_eq(m->stats(m).repeated, BREAKS);
    proxy_stop(&way);
}

/* Until a device says so. */
static void await_word(const char *word)
{
    const tune_device *d;

    for (int i = 0; i < 600; i++) {
        int n = m->devices(m, cx, &d);

        for (int k = 0; k < n; k++)
            if (strstr(d[k].state, word))
                return;
        usleep(50000);
    }
    cr_assert(false, "no device says '%s'", word);
}

/* As if another board of the class had been a thousand times as fast. */
Test(devices, that_are_off_are_set_aside_with_the_reason)
{
    open_pool(1, (pool_options){.devices = 1});
    pool_judge_note(&p->judge, "another/cpu:0", 1e-9);
    open_measurer();
    await_word("set aside: the calibration kernel takes ");
}

/* As if the first board had been another one. */
Test(devices, that_only_look_alike_are_set_aside)
{
    open_pool(1, (pool_options){.devices = 1});
    p->first.fingerprint ^= 1;
    open_measurer();
    await_word("s0/cpu:0 set aside: not the board that 's0/cpu:0' is");
}

Test(devices, nobody_grants_are_not_waited_for_without_end)
{
    open_pool(1, (pool_options){.devices = 1});
    const pool_options o = {
        .tracker = b.tracker, .key_file = b.keys, .device_class = "board", .patience = 1.5};

    cr_assert_null(pool_open(cx, &o));
    cr_assert(strstr(tec_context_error(cx), "no device of class 'board' was granted within 1.5 s"), "%s",
              tec_context_error(cx));
}

enum { MANY = 600, FEW = 3 };

static void submit(tune_measurer *to, const tune_task *t, int n)
{
    tune_candidate c[MANY];

    for (int i = 0; i < n; i++)
        c[i] = (tune_candidate){.task = t, .seed = (uint64_t)i};
    cr_assert(to->submit(to, cx, c, n), "%s", tec_context_error(cx));
}

/* Another job of one device measures a few candidates. */
static void measure_beside(const tune_task *t)
{
    tune_result r[FEW];
    pool *second = pool_open(cx, &(pool_options){.tracker = b.tracker,
                                                 .key_file = b.keys,
                                                 .device_class = "board",
                                                 .devices = 1,
                                                 .tolerance = 50,
                                                 .job = "short"});
    cr_assert(second, "%s", tec_context_error(cx));
    tune_measurer *other =
        pool_measurer(cx, second, pool_target(second),
                      &(tune_measure_options){.builder = TEC_BINARY_DIR "/tec", .builders = 1});
    cr_assert(other, "%s", tec_context_error(cx));
    submit(other, t, FEW);
    for (int got = 0; got < FEW; got += other->collect(other, cx, t, r, FEW, INFINITY))
        ;
    other->close(other);
    pool_close(second);
}

/* Two jobs and one device: the second job does not wait until the first one has all its results. */
Test(devices, that_others_wait_for_are_shared)
{
    static tune_result r[MANY];

    open_pool(1, (pool_options){.devices = 1, .quantum = 0.3, .job = "long"});
    open_measurer();
    tune_task *t = task_for(tiled);
    submit(m, t, MANY);
    cr_assert_eq(m->collect(m, cx, t, r, 1, INFINITY), 1, "%s", tec_context_error(cx));
    measure_beside(t);
    cr_assert_lt(m->collect(m, cx, t, r, MANY, 0), MANY - 1, "the first job was done before the second one");
}

/* The first job has its device and nothing to measure; later it has, and gets a device again. */
Test(devices, that_have_nothing_to_do_are_given_back)
{
    tune_result r[FEW];

    open_pool(1, (pool_options){.devices = 1, .quantum = 0.3, .job = "idle"});
    open_measurer();
    tune_task *t = task_for(tiled);
    for (int i = 0; i < 2; i++) {
        submit(m, t, FEW);
        for (int got = 0; got < FEW; got += m->collect(m, cx, t, r, FEW, INFINITY))
            ;
        measure_beside(t);
    }
}
