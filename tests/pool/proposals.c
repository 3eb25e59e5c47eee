/* tests/pool/proposals.c -- what a tuning session proposes does not depend on where its candidates run: with
 * costs that follow from the traces alone, a pool of servers that answer out of order and the local measurer
 * give the same trials.
 *
 * The candidates are built and run by the real measurers; this test replaces only the costs. The way to one
 * of the servers goes through a proxy that holds every upload behind the first one up for 0.3 s, so that
 * trials which were submitted later, to the other two servers, are answered first.
 */
#include "pool/pool.h"
#include "tests/autotune/fake.h"
#include "tests/chaos/proxy.h"

/* A tracker with its servers, as programs; none of its kernels is used here. */
#define TEC_RPC_KERNELS ""
#define pool boards
#include "tests/rpc/client/pool.h"
#undef pool

enum { TRIALS = 32, MOST_QUEUED = 256, UPLOAD = 4096 };

/* A measurer in front of another one: candidates in the order of submission, each with its task. */
typedef struct {
    tune_measurer measurer; /* first: the measurer is this one */
    tune_measurer *inner;
    tune_candidate queue[MOST_QUEUED], pair[2];
    bool taken[MOST_QUEUED];
    int n;
    int of_slow, of_others; /* results by the device that gave them */
} stand_in;

static stand_in front;

static bool submit(tune_measurer *m, tec_context *cx, const tune_candidate *candidate, int n)
{
    for (int i = 0; i < n; i++) {
        cr_assert(front.n < MOST_QUEUED);
        front.queue[front.n++] = candidate[i];
    }
    (void)m;
    return front.inner->submit(front.inner, cx, candidate, n);
}

/* The oldest candidate of the task whose result was not handed on. */
static const tune_candidate *next_of(const tune_task *task)
{
    for (int i = 0; i < front.n; i++)
        if (!front.taken[i] && (!task || front.queue[i].task == task)) {
            front.taken[i] = true;
            return &front.queue[i];
        }
    cr_assert(false, "a result of nothing that was submitted");
    return NULL;
}

/* The proxy in front of server 0 becomes slow with the first result of that server. If the proxy was slow
 * from the beginning, the others might have measured all before that first result. */
static proxy_shared *slow_server;

static void replace_costs(tec_context *cx, const tune_candidate *candidate, tune_result *result)
{
    cr_assert_eq(result->status, STORE_OK, "%s: %s: %s", result->stage, result->error_kind, result->error);
    tune_result fixed = fake_result(cx, candidate);

    result->costs = fixed.costs;
    result->n_costs = fixed.n_costs;
    result->median = fixed.median;
    result->spread = fixed.spread;
    result->anchor = fixed.anchor;
    if (result->device && strncmp(result->device, "s0/", 3) == 0) {
        front.of_slow++;
        slow_server->again = slow_server->fault = PROXY_DELAY;
    } else {
        front.of_others++;
    }
}

static int collect(tune_measurer *m, tec_context *cx, const tune_task *task, tune_result *out, int max,
                   double seconds)
{
    int n = front.inner->collect(front.inner, cx, task, out, max, seconds);

    (void)m;
    for (int i = 0; i < n; i++)
        replace_costs(cx, next_of(task), &out[i]);
    return n;
}

static bool submit_pair(tune_measurer *m, tec_context *cx, const tune_candidate *left,
                        const tune_candidate *right)
{
    (void)m;
    front.pair[0] = *left;
    front.pair[1] = *right;
    return front.inner->submit_pair(front.inner, cx, left, right);
}

static int collect_pair(tune_measurer *m, tec_context *cx, tune_result out[2], double seconds)
{
    int got = front.inner->collect_pair(front.inner, cx, out, seconds);

    (void)m;
    for (int i = 0; got == 1 && i < 2; i++)
        replace_costs(cx, &front.pair[i], &out[i]);
    return got;
}

/* Number, batch, kernel and trace of each trial, in their order. */
static const char *trials_of(tec_context *cx)
{
    store_query q = {.job = "job"};
    const char *line[TRIALS] = {0};
    base_text all = {0};
    store_record r;
    store_cursor *c = store_find(fake.cx, fake.db, &q);

    while (store_next(fake.cx, c, &r)) {
        if (strcmp(r.tuner, TUNE_ADOPTED) == 0)
            continue;
        cr_assert(r.trial >= 0 && r.trial < TRIALS && !line[r.trial]);
        line[r.trial] = base_format(fake.cx, "%lld %lld %s\n%s\n", (long long)r.trial, (long long)r.batch,
                                    r.workload.summary, r.trace);
    }
    cr_assert(store_end(c));
    for (int i = 0; i < TRIALS; i++) {
        cr_assert(line[i], "trial %d is not stored", i);
        base_addf(fake.cx, &all, "%s", line[i]);
    }
    return base_strdup(cx, base_text_str(fake.cx, &all));
}

static const tune_measure_options measuring = {.builder = TEC_BINARY_DIR "/tec",
                                               .runner = TEC_BINARY_DIR "/tec_runner",
                                               .builders = 1,
                                               .min_seconds = 0.002,
                                               .build_timeout = 60};

/* A job from nothing with this measurer, which it closes. Its trials, in cx. */
static const char *tune(tec_context *cx, tune_measurer *inner)
{
    cr_assert(inner, "%s", tec_context_error(fake.cx));
    front = (stand_in){.measurer = *inner, .inner = inner};
    front.measurer.submit = submit;
    front.measurer.collect = collect;
    front.measurer.submit_pair = submit_pair;
    front.measurer.collect_pair = collect_pair;
    tune_options o = fake_options(2);
    o.measurer = &front.measurer;
    o.trials = TRIALS;
    tune_session *s = fake_run(&o);
    cr_assert_eq(tune_session_end(s), TUNE_TRIALS, "%s", tec_context_error(fake.cx));
    tune_session_close(s);
    inner->close(inner);
    return trials_of(cx);
}

/* The address that the tracker gives clients for server 0 is that of the proxy. */
static proxy start_boards(boards *b)
{
    rpc_key_row row = {.roles = RPC_ROLE_ANY, .classes = "*", .users = "*"};
    proxy p = proxy_start();
    char announce[40], listen[40];

    *b = (boards){.folder = "/tmp/tec-pool-XXXXXX", .n = 3};
    cr_assert(mkdtemp(b->folder));
    snprintf(b->keys, sizeof b->keys, "%s/pool.keys", b->folder);
    snprintf(b->log, sizeof b->log, "%s/log", b->folder);
    cr_assert(rpc_keys_add(b->keys, &row, &b->err), "%s", b->err.text);
    pool_start_tracker(b, 0);
    snprintf(announce, sizeof announce, "127.0.0.1:%d", p.port);
    p.shared->least = UPLOAD;
    kit_prepare(&b->server[0]);
    const char *argv[] = {"--tracker", b->tracker, "--device-class", "board",  "--key-file", b->keys,
                          "--name",    "s0",       "--announce",     announce, NULL};
    p.shared->target = proxy_free_port();
    snprintf(listen, sizeof listen, "127.0.0.1:%d", p.shared->target);
    cr_assert(kit_launch(&b->server[0], listen, argv), "see %s", b->server[0].log);
    cr_assert(kit_logged(&b->server[0], "the tracker reaches this server"), "see %s", b->server[0].log);
    for (int i = 1; i < 3; i++)
        pool_start_server(b, i, NULL);
    return p;
}

/* Since one of the servers is slow, results come from the pool in another order than from the local measurer;
 * the trials must be the same. */
Test(proposals, of_a_pool_are_those_of_the_local_measurer, .timeout = 300)
{
    tec_context *cx = tec_context_new();
    boards b;
    proxy slow = start_boards(&b);

    fake_open();
    fake.native = true;
    fake_end();
    fake_begin();
    pool *p = pool_open(fake.cx, &(pool_options){.tracker = b.tracker,
                                                 .key_file = b.keys,
                                                 .device_class = "board",
                                                 .devices = 3,
                                                 .tolerance = 1000});
    cr_assert(p, "%s", tec_context_error(fake.cx));
    slow_server = slow.shared;
    const char *there = tune(cx, pool_measurer(fake.cx, p, pool_target(p), &measuring));
    cr_assert_gt(front.of_slow, 0, "the slow server has measured nothing");
    cr_assert_gt(front.of_others, front.of_slow, "the slow server has not fallen behind");
    pool_close(p);
    fake_end();
    fake_remove(fake.path);
    fake_begin();
    cr_assert_str_eq(tune(cx, tune_measurer_local(fake.cx, &measuring)), there);
    fake_close();
    tec_context_free(cx);
    cr_assert_eq(pool_stop(&b), 0);
    proxy_stop(&slow);
}
