/* tests/chaos/chaos.c -- jobs on a pool whose parts are killed, cut off, slowed down and filled up while they
 * work, and an audit of what came of them.
 *
 * A trial is computed by a process of its own (trial.h) on a device leased from the pool. The first attempt
 * at most trials has a fault, which strikes while that attempt is in the middle of an upload or of a call. An
 * attempt that fails is queued again without a fault. Each result is stored once; each attempt that opened a
 * session is an execution. The audit asks SQL whether every trial issued is stored exactly once, and holds
 * the executions against the servers' own logs.
 *
 *     TEC_CHAOS=31 build/debug/tests/test_chaos_chaos          31 faults of each kind (tests/chaos/run)
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sqlite3.h>

#include "tests/chaos/stage.h"
#include "tests/chaos/trial.h"

enum { AT_ONCE = 4, MOST_TRIALS = 1000 };

/* An attempt fails by a fault of these kinds, and does not notice the others. */
static bool fails(fault f)
{
    return f == SERVER_KILLED || f == CLIENT_KILLED || f == CUT || f == TRUNCATED || f == FLIPPED ||
           f == HUNG_KERNEL || f == CRASHING_KERNEL || f == EATING_KERNEL;
}

typedef struct {
    pid_t pid; /* 0: none */
    trial t;
    int from, to, server, got;
    bool opened, struck, done;
    char word[8];
} attempt;

typedef struct {
    stage s;
    sqlite3 *db;
    rt_bytes module;
    attempt running[AT_ONCE];
    int queue[MOST_TRIALS], n_queue, n_trials, stored;
    fault planned[MOST_TRIALS];
    int struck[N_FAULTS], failed[N_FAULTS], survived[N_FAULTS];
    attempt *exclusive; /* has a fault that concerns everybody, of which there is one at a time */
    double undo_at;     /* when it is mended */
    double free_since[SERVERS], longest_idle;
} chaos;

/* ---- faults ---- */

static void undo(chaos *c)
{
    fault f = c->exclusive->t.fault;

    if (f == TRACKER_KILLED)
        pool_start_tracker(&c->s.p, pool_port(&c->s.p));
    else if (f == DISK_FULL) {
        unlink(c->s.ballast);
        /* The tracker stores its state again within a second; killed before, it would know less than its
         * clients. */
        nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 300000000}, NULL);
    } else if (f == SERVER_KILLED)
        stage_start_server(&c->s, c->exclusive->server);
    c->exclusive = NULL;
}

static void strike(chaos *c, attempt *a)
{
    fixture *f = &c->s.p.server[a->server];
    proxy_shared *s = c->s.proxies[a->server].shared;
    fault what = a->t.fault;

    if (what == SERVER_KILLED) {
        kill(f->pid, SIGKILL);
        waitpid(f->pid, NULL, 0);
        close(f->out);
    } else if (what == TRACKER_KILLED)
        pool_kill_tracker(&c->s.p);
    else if (what == CLIENT_KILLED)
        kill(a->pid, SIGKILL);
    else if (trial_harms_upload(what)) {
        s->trial = a->t.number;
        s->fault = stage_harm(what);
    } else if (what == SLOW_LORIS)
        stage_send_loris(&c->s, a->server);
    else if (what == DISK_FULL)
        cr_assert(stage_fill_disk(&c->s), "the tracker has not noticed the full disk: see %s", c->s.p.log);
    else if (what == CLOCK_BACK)
        kill(c->s.p.tracker_pid, SIGUSR2);
    c->struck[what]++;
    a->struck = true;
    if (what == SERVER_KILLED || what == TRACKER_KILLED || what == DISK_FULL) {
        c->exclusive = a;
        c->undo_at = tec_clock() + (what == DISK_FULL ? 0.6 : 0.15);
    }
}

static bool may_strike(const chaos *c, const attempt *a)
{
    fault f = a->t.fault;

    return !(c->exclusive &&
             (f == SERVER_KILLED || f == TRACKER_KILLED || f == DISK_FULL || f == CLOCK_BACK));
}

/* ---- attempts ---- */

static void sql(chaos *c, const char *text, int a, int b)
{
    sqlite3_stmt *s = NULL;

    cr_assert_eq(sqlite3_prepare_v2(c->db, text, -1, &s, NULL), SQLITE_OK, "%s", sqlite3_errmsg(c->db));
    sqlite3_bind_int(s, 1, a);
    sqlite3_bind_int(s, 2, b);
    while (sqlite3_step(s) == SQLITE_ROW)
        ;
    cr_assert_eq(sqlite3_finalize(s), SQLITE_OK, "%s", sqlite3_errmsg(c->db));
}

static int count(chaos *c, const char *text)
{
    sqlite3_stmt *s = NULL;

    cr_assert_eq(sqlite3_prepare_v2(c->db, text, -1, &s, NULL), SQLITE_OK, "%s", sqlite3_errmsg(c->db));
    cr_assert_eq(sqlite3_step(s), SQLITE_ROW);
    int n = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return n;
}

static void start_attempt(chaos *c, attempt *a, int number)
{
    int up[2], down[2];

    cr_assert(pipe2(up, O_CLOEXEC) == 0 && pipe2(down, O_CLOEXEC) == 0);
    *a = (attempt){.t = {.number = number,
                         .fault = c->planned[number],
                         .tracker = c->s.p.tracker,
                         .keys = c->s.p.keys,
                         .module = &c->module,
                         .to_parent = up[1],
                         .from_parent = down[0]},
                   .from = up[0],
                   .to = down[1],
                   .server = -1};
    c->planned[number] = NO_FAULT; /* the next attempt has none */
    a->pid = fork();
    if (a->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        trial_main(&a->t);
    }
    close(up[1]);
    close(down[0]);
}

static void on_word(chaos *c, attempt *a)
{
    int32_t value;

    memcpy(&value, a->word + 1, sizeof value);
    switch (a->word[0]) {
    case 'O':
        a->opened = true;
        a->server = value;
        sql(c, "INSERT INTO executions VALUES (?, ?)", a->t.number, value);
        double idle = tec_clock() - c->free_since[value];
        c->longest_idle = idle > c->longest_idle ? idle : c->longest_idle;
        break;
    case 'M':
        while (!may_strike(c, a)) {
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
            if (c->exclusive && tec_clock() >= c->undo_at)
                undo(c);
        }
        if (trial_harms_upload(a->t.fault))
            strike(c, a); /* waits at the proxy for the next piece */
        cr_assert_eq(write(a->to, "", 1), 1);
        if (a->t.fault == NO_FAULT || a->struck)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL); /* the call is under way */
        strike(c, a);
        break;
    case 'D':
        a->done = a->t.fault != EATING_KERNEL && value == trial_sum(&a->t);
        if (a->t.fault == EATING_KERNEL)
            cr_assert(value > 0 && value <= 64, "a session of 64 MiB got %d", value);
        else
            cr_assert(a->done, "trial %d: %d, not %d", a->t.number, value, trial_sum(&a->t));
        break;
    default: break;
    }
}

/* A fault of the wire that no piece met did not strike. */
static void take_back(chaos *c, attempt *a)
{
    proxy_shared *s = a->server >= 0 ? c->s.proxies[a->server].shared : NULL;

    if (!a->struck || !trial_harms_upload(a->t.fault) || s->fault == PROXY_PASS || s->trial != a->t.number)
        return;
    s->fault = PROXY_PASS;
    a->struck = false;
    c->struck[a->t.fault]--;
}

/* The attempt is over: its trial is stored, or queued again. */
static void end_attempt(chaos *c, attempt *a)
{
    fault f = a->t.fault;

    waitpid(a->pid, NULL, 0);
    take_back(c, a);
    close(a->from);
    close(a->to);
    if (a->server >= 0)
        c->free_since[a->server] = tec_clock();
    if (f != NO_FAULT && a->struck) {
        c->failed[f] += !a->done;
        c->survived[f] += a->done;
    }
    if (f != NO_FAULT && !a->struck)
        c->planned[a->t.number] = f; /* it never came to its middle: another attempt has the fault */
    if (a->done) {
        sql(c, "INSERT INTO stored VALUES (?, ?)", a->t.number, trial_sum(&a->t));
        c->stored++;
    } else
        c->queue[c->n_queue++] = a->t.number;
    a->pid = 0;
    if (c->exclusive == a) {
        while (tec_clock() < c->undo_at)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        undo(c);
    }
}

static void serve_attempts(chaos *c)
{
    struct pollfd p[AT_ONCE];

    for (int i = 0; i < AT_ONCE; i++)
        p[i] = (struct pollfd){.fd = c->running[i].pid ? c->running[i].from : -1, .events = POLLIN};
    poll(p, AT_ONCE, 20);
    for (int i = 0; i < AT_ONCE; i++) {
        attempt *a = &c->running[i];
        if (!a->pid || !p[i].revents)
            continue;
        ssize_t n = read(a->from, a->word + a->got, (size_t)(5 - a->got));
        if (n <= 0)
            end_attempt(c, a);
        else if ((a->got += (int)n) == 5) {
            a->got = 0;
            on_word(c, a);
        }
    }
    stage_dribble(&c->s);
    if (c->exclusive && tec_clock() >= c->undo_at)
        undo(c);
}

static void run_job(chaos *c)
{
    while (c->stored < c->n_trials) {
        for (int i = 0; i < AT_ONCE; i++)
            if (!c->running[i].pid && c->n_queue)
                start_attempt(c, &c->running[i], c->queue[--c->n_queue]);
        serve_attempts(c);
    }
}

/* ---- the audit ---- */

/* Lines of the servers' logs that say a session of a trial was opened. */
static int logged_executions(const chaos *c)
{
    char line[2000];
    int n = 0;

    for (int i = 0; i < SERVERS; i++) {
        FILE *f = fopen(c->s.p.server[i].log, "re");

        while (f && fgets(line, sizeof line, f))
            n += strstr(line, ": opened on cpu:0 by client ") && strstr(line, ", 'trial ");
        if (f)
            fclose(f);
    }
    return n;
}

static void print_table(chaos *c)
{
    int all = 0;

    printf("%-28s %8s %14s %16s\n", "FAULT", "STRUCK", "FAILED TRIALS", "UNNOTICED");
    for (int f = 0; f < N_FAULTS; f++) {
        printf("%-28s %8d %14d %16d\n", stage_faults[f], c->struck[f], c->failed[f], c->survived[f]);
        all += c->struck[f];
    }
    printf("%d faults in a job of %d trials\n", all, c->n_trials);
    printf("trials issued %d, stored %d, stored twice %d, lost %d\n", count(c, "SELECT count(*) FROM issued"),
           count(c, "SELECT count(*) FROM stored"),
           count(c, "SELECT count(*) FROM (SELECT trial FROM stored GROUP BY trial HAVING count(*) > 1)"),
           count(c, "SELECT count(*) FROM issued WHERE trial NOT IN (SELECT trial FROM stored)"));
    printf("executions %d, of these repeated %d; in the logs of the servers %d\n",
           count(c, "SELECT count(*) FROM executions"),
           count(c, "SELECT count(*) - count(DISTINCT trial) FROM executions"), logged_executions(c));
    printf("longest wait of a device while work waited: %.1f s\n", c->longest_idle);
    fflush(stdout);
}

static void audit(chaos *c)
{
    for (int f = 0; f < N_FAULTS; f++)
        cr_assert(fails((fault)f) ? c->survived[f] == 0 : c->failed[f] == 0,
                  "%s: %d trials failed, %d did not", stage_faults[f], c->failed[f], c->survived[f]);
    cr_assert_eq(count(c, "SELECT count(*) FROM issued WHERE trial NOT IN (SELECT trial FROM stored)"), 0);
    cr_assert_eq(count(c, "SELECT count(*) FROM stored"),
                 count(c, "SELECT count(DISTINCT trial) FROM stored"));
    cr_assert_eq(count(c, "SELECT count(*) FROM executions"), logged_executions(c));
    cr_assert_lt(c->longest_idle, 30.0);
    cr_assert_leq(stage_count_logged(&c->s, "the state is not stored"),
                  stage_count_logged(&c->s, "the state is stored again"),
                  "the tracker's state stayed unstored: see %s", c->s.p.log);
    cr_assert(stage_count_logged(&c->s, "the clock was set back") > 0);
}

Test(chaos, loses_no_trial_and_stores_none_twice, .timeout = 3000)
{
    static chaos c;
    const char *wanted = getenv("TEC_CHAOS");
    int each = wanted ? atoi(wanted) : 2, n = each * N_FAULTS + each * 2;

#ifndef TEC_DEBUG
    cr_skip_test("the tracker's clock can be set back in builds for debugging alone");
#endif
    cr_assert(each > 0 && n <= MOST_TRIALS);
    cr_assert_eq(sqlite3_open(":memory:", &c.db), SQLITE_OK);
    sqlite3_exec(c.db,
                 "CREATE TABLE issued(trial); CREATE TABLE stored(trial, value); CREATE TABLE "
                 "executions(trial, server)",
                 NULL, NULL, NULL);
    stage_start(&c.s);
    stage_start_spare(&c.s);
    c.module = kit_module(KIT_ARCH);
    for (int i = 0; i < SERVERS; i++)
        c.free_since[i] = tec_clock();
    for (int i = 0; i < n; i++) {
        c.planned[i] = i < each * N_FAULTS ? (fault)(i % N_FAULTS) : NO_FAULT;
        c.queue[c.n_queue++] = i;
        sql(&c, "INSERT INTO issued VALUES (?1 + 0 * ?2)", i, 0);
    }
    c.n_trials = n;
    run_job(&c);
    print_table(&c);
    audit(&c);
    stage_rest(&c.s);
    cr_assert_eq(kit_stop(&c.s.p.server[SPARE]), 0);
    stage_find_leaks(&c.s);
    stage_stop(&c.s);
    sqlite3_close(c.db);
    rt_free(c.module.data);
}
