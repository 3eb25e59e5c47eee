/* tests/chaos/shares.c -- three users with five jobs of different priority share six servers: programs of
 * their own on loopback. What each job had of the devices is compared with the policy.
 *
 * A job has six clients. Each leases a device, sleeps there in a session for as long as the job's runs take,
 * gives the device back and asks again: so work of every job waits all the time, and a job with long runs
 * gets fewer of them. Times are those of the clients, from the grant to the return, and not the tracker's own
 * books.
 *
 *     TEC_SHARES=100 build/debug/tests/test_chaos_shares          100 seconds (tests/chaos/run)
 */
#include <math.h>
#include <pthread.h>

#include "tests/rpc/client/pool.h"

enum { SHARED = 6, JOBS = 5, CLIENTS = 6, MOST_LEASES = 20000 };

typedef struct {
    const char *user, *name;
    int priority;
    double policy; /* share of all device time: ann has weight 2, bob and cid have 1 */
    int nap;       /* of a run, in hundredths of a second */
} job;

static const job jobs[JOBS] = {{"ann", "long", 20, 0.5 * 2 / 3, 24},
                               {"ann", "short", 10, 0.5 * 1 / 3, 4},
                               {"bob", "most", 30, 0.25 * 3 / 4, 8},
                               {"bob", "least", 10, 0.25 * 1 / 4, 5},
                               {"cid", "only", 1, 0.25, 12}};

typedef struct {
    int job;
    double begin, end;
} held;

typedef struct {
    pool p;
    bool ending;
    pthread_mutex_t lock;
    held held[MOST_LEASES];
    int n;
    double longest_wait[JOBS];
} market;

typedef struct {
    market *m;
    int job;
    fixture kernels; /* the module, and the error of a call */
} client;

static bool is_ending(market *m)
{
    return __atomic_load_n(&m->ending, __ATOMIC_ACQUIRE);
}

static void note(market *m, int of, double asked, double begin, double end)
{
    pthread_mutex_lock(&m->lock);
    cr_assert_lt(m->n, MOST_LEASES);
    m->held[m->n++] = (held){of, begin, end};
    if (begin - asked > m->longest_wait[of])
        m->longest_wait[of] = begin - asked;
    pthread_mutex_unlock(&m->lock);
}

/* A run on the leased device. */
static void run(client *c, tec_rpc_lease *lease)
{
    const char x[] = {(char)jobs[c->job].nap, '\0'};
    int32_t y[2];
    tec_error err = {0};
    tec_rpc *server = tec_rpc_connect_leased(lease, NULL, &err);
    tec_rpc_session *s = server ? tec_rpc_open(server, NULL, &err) : NULL;

    cr_assert(s, "%s", err.text);
    cr_assert(kit_call(&c->kernels, s, "nap", x, y), "%s", c->kernels.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(server);
}

/* Asks again and again, until the market closes. A request that waits then is withdrawn. */
static void *work(void *user)
{
    client *c = user;
    const job *j = &jobs[c->job];
    tec_rpc_lease_options o = {
        .device_class = "board", .user = j->user, .job = j->name, .priority = j->priority};
    tec_error err = {0};
    tec_rpc *tracker =
        tec_rpc_connect(c->m->p.tracker, &(tec_rpc_options){.key_file = c->m->p.keys, .seconds = 20}, &err);

    cr_assert(tracker, "%s", err.text);
    while (!is_ending(c->m)) {
        double asked = tec_clock();
        tec_rpc_lease *lease = tec_rpc_request(tracker, &o, &err);
        tec_rpc_lease_state state = TEC_RPC_WAITING;

        while (state == TEC_RPC_WAITING && !is_ending(c->m))
            state = tec_rpc_wait(lease, 0.2, &err);
        cr_assert_neq(state, TEC_RPC_FAILED, "%s", err.text);
        double begin = tec_clock();
        if (state == TEC_RPC_GRANTED)
            run(c, lease);
        tec_rpc_give_back(lease);
        if (state == TEC_RPC_GRANTED)
            note(c->m, c->job, asked, begin, tec_clock());
    }
    tec_rpc_disconnect(tracker);
    rt_free(c->kernels.module.data);
    return NULL;
}

/* What the market pays out: seconds of device time of each job between two times. */
static void add_up(const market *m, double from, double to, double seconds[JOBS], int leases[JOBS])
{
    for (int i = 0; i < m->n; i++) {
        double begin = m->held[i].begin > from ? m->held[i].begin : from,
               end = m->held[i].end < to ? m->held[i].end : to;

        if (end > begin) {
            seconds[m->held[i].job] += end - begin;
            leases[m->held[i].job]++;
        }
    }
}

/* Prints the table, and compares each share with the policy: a tenth of it, and on a busy machine two
 * seconds, which the longest waits come to, may be missing. Of the 90 seconds of a short run equal shares
 * would differ by 12. */
static void audit(const market *m, double from, double to)
{
    enum { SETTLING = 2 };
    double seconds[JOBS] = {0}, all = 0;
    int leases[JOBS] = {0};

    add_up(m, from, to, seconds, leases);
    for (int i = 0; i < JOBS; i++)
        all += seconds[i];
    printf("%-6s %-6s %9s %7s %9s %8s %8s %8s %13s\n", "USER", "JOB", "PRIORITY", "LEASES", "SECONDS",
           "SHARE", "POLICY", "RATIO", "LONGEST WAIT");
    for (int i = 0; i < JOBS; i++)
        printf("%-6s %-6s %9d %7d %9.1f %7.2f%% %7.2f%% %8.3f %11.1f s\n", jobs[i].user, jobs[i].name,
               jobs[i].priority, leases[i], seconds[i], 100 * seconds[i] / all, 100 * jobs[i].policy,
               seconds[i] / all / jobs[i].policy, m->longest_wait[i]);
    printf("%d devices leased for %.1f %% of %.1f s\n", SHARED, 100 * all / (SHARED * (to - from)),
           to - from);
    fflush(stdout);
    for (int i = 0; i < JOBS; i++)
        cr_assert(fabs(seconds[i] - jobs[i].policy * all) < 0.1 * jobs[i].policy * all + SETTLING,
                  "%s's job '%s' had %.2f %% of the device time; the policy says %.2f %%", jobs[i].user,
                  jobs[i].name, 100 * seconds[i] / all, 100 * jobs[i].policy);
}

static void open_market(market *m)
{
    FILE *config;

    snprintf(m->p.config, sizeof m->p.config, "/tmp/tec-shares-%d.conf", (int)getpid());
    config = fopen(m->p.config, "we");
    cr_assert(config && fputs("weight ann 2\n", config) >= 0 && fclose(config) == 0);
    pool_start_at(&m->p, SHARED, NULL);
    pthread_mutex_init(&m->lock, NULL);
}

Test(shares, of_six_servers_are_those_of_the_policy, .timeout = 300)
{
    static market m;
    static client clients[JOBS * CLIENTS];
    pthread_t thread[JOBS * CLIENTS];
    const char *wanted = getenv("TEC_SHARES");
    double seconds = wanted ? atof(wanted) : 15;

    cr_assert(seconds >= 5 && seconds <= 120);
    open_market(&m);
    for (int i = 0; i < JOBS * CLIENTS; i++) {
        clients[i] = (client){.m = &m, .job = i % JOBS};
        cr_assert_eq(pthread_create(&thread[i], NULL, work, &clients[i]), 0);
    }
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL); /* all have come */
    double from = tec_clock();
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds}, NULL);
    double to = tec_clock();
    __atomic_store_n(&m.ending, true, __ATOMIC_RELEASE);
    for (int i = 0; i < JOBS * CLIENTS; i++)
        pthread_join(thread[i], NULL);
    audit(&m, from, to);
    unlink(m.p.config);
    cr_assert_eq(pool_stop(&m.p), 0);
}
