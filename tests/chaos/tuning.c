/* tests/chaos/tuning.c -- tuning jobs (`tec tune --tracker`) on a pool whose parts are harmed while the jobs
 * work, and an audit of what came of them.
 *
 * Two jobs share three servers. The servers' logs tell which trials run now; a fault strikes while one of
 * them is unfinished, and counts only if it is still unfinished behind the fault, or, for faults of the wire,
 * if the proxy met a piece of an upload. Kernels that hang, crash or eat memory are candidates of the jobs
 * themselves, by schedules that bring C code along. A client that was killed is started again with the same
 * command. In the end each job must have each of its trials exactly once in its store, and each trial that
 * was measured must be in a server's log, and each run that a server has finished must be of a trial that is
 * stored; trials that ran more than once are counted.
 *
 *     TEC_CHAOS=31 build/debug/tests/test_chaos_tuning --timeout 3600      31 faults of each kind
 */
#include <poll.h>
#include <sqlite3.h>

#include "base/base.h"
#include "tests/chaos/stage.h"

enum { JOBS = 2, MOST_SESSIONS = 4096, MOST_LABELS = 8192, MOST_SCHEDULES = 256, LEAST_UPLOAD = 4096 };

typedef struct {
    pid_t pid; /* 0: not at work */
    char path[128], db[128], log[128];
    char schedule[MOST_SCHEDULES][160];
    int n_schedules, trials, starts;
    double again_at;
    bool done;
} job;

/* A session of a server, as the log tells of it. */
typedef struct {
    int server, life, number, job;
    uint64_t label; /* of the trial that runs; 0: none does */
    bool compares;  /* what runs is no trial, but two that were measured before */
} seen;

typedef struct {
    stage s;
    job jobs[JOBS];
    seen sessions[MOST_SESSIONS];
    int n_sessions, life[SERVERS];
    long read_to[SERVERS];                                /* of the logs */
    double free_since[SERVERS], longest_idle, last_trial; /* last_trial: when a trial began last */
    bool server_down[SERVERS], tracker_down;
    sqlite3 *db;
    uint64_t harmed[MOST_LABELS]; /* trials whose device was taken away once: twice would poison them */
    int n_harmed;
    int runs, comparisons, each, next, struck[N_FAULTS];
    int armed; /* server whose proxy has a fault that was not met yet; -1: none */
    fault armed_with;
    int hits_before;
    double armed_until, undo_at; /* undo_at 0: nothing is to be mended */
    fault undoing;
    int undo_server;
} chaos;

static void nap(double seconds)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds,
                                 .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)},
              NULL);
}

/* ---- the store of the audit ---- */

static int64_t ask(chaos *c, const char *text)
{
    sqlite3_stmt *s = NULL;

    cr_assert_eq(sqlite3_prepare_v2(c->db, text, -1, &s, NULL), SQLITE_OK, "%s: %s", text,
                 sqlite3_errmsg(c->db));
    int64_t n = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    return n;
}

/* In one session a trial counts once: a session that has lost the outputs to check the trial against says so,
 * makes them and is asked again. A fault that takes a trial away takes its session, too. */
static void note_execution(chaos *c, const seen *at, uint64_t label)
{
    char text[200];

    snprintf(text, sizeof text, "INSERT OR IGNORE INTO executions VALUES (%d, %d, %d, %d, %lld, 0)",
             at->server, at->life, at->number, at->job, (long long)label);
    ask(c, text);
}

static void note_finished(chaos *c, const seen *at)
{
    char text[200];

    snprintf(
        text, sizeof text,
        "UPDATE executions SET finished = 1 WHERE server = %d AND life = %d AND session = %d AND label = "
        "%lld",
        at->server, at->life, at->number, (long long)at->label);
    ask(c, text);
}

/* ---- what the servers' logs say ---- */

static seen *find_session(chaos *c, int server, int number)
{
    for (int i = c->n_sessions - 1; i >= 0; i--)
        if (c->sessions[i].server == server && c->sessions[i].life == c->life[server] &&
            c->sessions[i].number == number)
            return &c->sessions[i];
    return NULL;
}

/* "measures 'HASH'" of a trial; "measures 'HASH HASH'" compares two that were measured before, and is no
 * execution of a trial. */
static void on_run(chaos *c, seen *at, const char *labels)
{
    double idle = tec_clock() - c->free_since[at->server];

    c->longest_idle = idle > c->longest_idle ? idle : c->longest_idle;
    c->runs++;
    at->label = strtoull(labels, NULL, 16);
    at->compares = labels[strspn(labels, "0123456789abcdef")] == ' ';
    if (at->compares)
        c->comparisons++;
    else {
        note_execution(c, at, at->label);
        c->last_trial = tec_clock();
    }
}

/* A device that had no run again waited until the last trial of all began, which it could have had. */
static void close_waits(chaos *c)
{
    for (int i = 0; i < SERVERS; i++) {
        double idle = c->last_trial - c->free_since[i];

        c->longest_idle = idle > c->longest_idle ? idle : c->longest_idle;
    }
}

static void on_line(chaos *c, int server, const char *line)
{
    const char *text = strstr(line, "session ");
    int number, n = 0;

    if (!text || sscanf(text, "session %d: %n", &number, &n) != 1 || !n)
        return;
    text += n;
    seen *at = find_session(c, server, number);
    if (strncmp(text, "opened", 6) == 0 && c->n_sessions < MOST_SESSIONS) {
        const char *name = strstr(text, "/job");

        c->sessions[c->n_sessions++] =
            (seen){server, c->life[server], number, name ? name[4] - '0' : -1, 0, false};
    } else if (at && strncmp(text, "measures '", 10) == 0)
        on_run(c, at, text + 10);
    else if (at) { /* it has measured, or is over */
        if (at->label && !at->compares && strncmp(text, "has measured", 12) == 0)
            note_finished(c, at);
        at->label = 0;
        c->free_since[server] = tec_clock();
    }
}

/* Whole lines that were not read yet. */
static void read_log(chaos *c, int server)
{
    char line[2000];
    FILE *f = fopen(c->s.p.server[server].log, "re");

    cr_assert(f && fseek(f, c->read_to[server], SEEK_SET) == 0);
    while (fgets(line, sizeof line, f) && strchr(line, '\n')) {
        c->read_to[server] = ftell(f);
        on_line(c, server, line);
    }
    fclose(f);
}

/* A session with an unfinished trial, of this server or for -1 of any; NULL: there is none. */
static seen *find_running(chaos *c, int server)
{
    for (int i = 0; i < c->n_sessions; i++) {
        seen *at = &c->sessions[i];

        if (at->label && at->life == c->life[at->server] && !c->server_down[at->server] &&
            (server < 0 || at->server == server))
            return at;
    }
    return NULL;
}

/* Whether the trial is still unfinished, by all that its server has written. */
static bool still_runs(chaos *c, const seen *at, uint64_t label)
{
    read_log(c, at->server);
    return at->label == label;
}

static bool was_harmed(const chaos *c, uint64_t label)
{
    for (int i = 0; i < c->n_harmed; i++)
        if (c->harmed[i] == label)
            return true;
    return false;
}

/* ---- jobs ---- */

static const char tile[] =
    "intrinsic tile(m, a: f32[4, m], b: f32[m, 8]) {\n"
    "  c[i: 4, j: 8] = sum[k: m](a[i, k] * b[k, j])\n  return c\n"
    "  strides a[lda, 1] strides b[ldb, 1] strides c[ldc, 1]\n  update \"call tile_update\"\n}\n";

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Adds to the job a candidate whose kernel has this body. The file of its schedule lies in `folder`. */
static void add_schedule(job *j, const char *folder, const char *name, int number, const char *body)
{
    char text[2000];
    char *path = j->schedule[j->n_schedules++];

    snprintf(path, sizeof j->schedule[0], "%s/%s%d.schedule", folder, name, number);
    snprintf(text, sizeof text,
             "y0, y1 = split(C.y, _, 4)\nx0, x1 = split(C.x, _, 8)\nreorder(y0, x0, C.k, y1, x1)\n"
             "tensorize(C.k, tile)\npragma(y0, import_c, \"int tile_update(const float *a, const float *b, "
             "float *c, long m, long lda, long ldb, long ldc) { /* %s%d */ %s return 0; }\")\n",
             name, number, body);
    write_text(path, text);
}

static const char hangs[] = "for (;;) __asm__ volatile(\\\"\\\");";
static const char crashes[] = "*(volatile int *)8 = 1;";
/* Sixteen megabytes at a time, until the limit refuses them. */
#ifdef __x86_64__
static const char eats[] =
    "for (;;) { long p; register long f __asm__(\\\"r10\\\") = 0x22, d __asm__(\\\"r8\\\") = -1, o "
    "__asm__(\\\"r9\\\") = 0; __asm__ volatile(\\\"syscall\\\" : \\\"=a\\\"(p) : \\\"a\\\"(9), "
    "\\\"D\\\"(0), \\\"S\\\"(16L << 20), \\\"d\\\"(3), \\\"r\\\"(f), \\\"r\\\"(d), \\\"r\\\"(o) : "
    "\\\"rcx\\\", \\\"r11\\\", \\\"memory\\\"); if (p < 0) __builtin_trap(); }";
#else
static const char eats[] =
    "for (;;) { register long n __asm__(\\\"x8\\\") = 222, p __asm__(\\\"x0\\\") = 0, s "
    "__asm__(\\\"x1\\\") = 16L << 20, m __asm__(\\\"x2\\\") = 3, f __asm__(\\\"x3\\\") = 0x22, d "
    "__asm__(\\\"x4\\\") = -1, o __asm__(\\\"x5\\\") = 0; __asm__ volatile(\\\"svc 0\\\" : "
    "\\\"+r\\\"(p) : \\\"r\\\"(n), \\\"r\\\"(s), \\\"r\\\"(m), \\\"r\\\"(f), \\\"r\\\"(d), \\\"r\\\"(o) "
    ": \\\"memory\\\"); if (p < 0) __builtin_trap(); }";
#endif

static void make_jobs(chaos *c)
{
    char text[1000], folder[sizeof c->s.p.folder]; /* a copy: gcc takes the names beside it for an overlap */

    memcpy(folder, c->s.p.folder, sizeof folder);
    for (int i = 0; i < JOBS; i++) {
        job *j = &c->jobs[i];

        j->trials = 14 * c->each > 128 ? 14 * c->each : 128;
        snprintf(j->path, sizeof j->path, "%s/job%d.te", folder, i);
        snprintf(j->db, sizeof j->db, "%s/job%d.db", folder, i);
        snprintf(j->log, sizeof j->log, "%s/job%d.log", folder, i);
        snprintf(text, sizeof text,
                 "%sdef mm%d(A: f32[64, %d], B: f32[%d, 64]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                 "  return C\n}\n",
                 tile, i, 64 + 16 * i, 64 + 16 * i);
        write_text(j->path, text);
        for (int k = i; k < c->each; k += JOBS) {
            add_schedule(j, folder, "hang", k, hangs);
            add_schedule(j, folder, "crash", k, crashes);
            add_schedule(j, folder, "eat", k, eats);
        }
    }
}

static void start_job(chaos *c, job *j)
{
    static const char *argv[32 + 2 * MOST_SCHEDULES];
    char trials[16];
    const char *const fixed[] = {"tec",          "tune",       j->path,     "--tracker",
                                 c->s.p.tracker, "--key-file", c->s.p.keys, "--device-class",
                                 "board",        "--threads",  "1",         "--tolerance",
                                 "900",          "--records",  j->db,       "--explorer",
                                 "random",       "--model",    "none",      "--trials",
                                 trials};
    int n = BASE_COUNT(fixed);

    snprintf(trials, sizeof trials, "%d", j->trials);
    memcpy(argv, fixed, sizeof fixed);
    for (int i = 0; i < j->n_schedules; i++) {
        argv[n++] = "--schedule";
        argv[n++] = j->schedule[i];
    }
    argv[n] = NULL;
    j->starts++;
    j->pid = fork();
    if (j->pid == 0) {
        int log = open(j->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        stage_mark_client(&c->s);
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* a command keeps its options to its end */
        dup2(log, 1);
        dup2(log, 2);
        execv(TEC_BINARY_DIR "/tec", (char *const *)(uintptr_t)argv);
        _exit(127);
    }
}

/* A job that ended before its last trial (killed, or its tracker was away) is started again. */
static void tend_job(chaos *c, job *j)
{
    int status;

    if (j->pid && waitpid(j->pid, &status, WNOHANG) == j->pid) {
        j->pid = 0;
        j->done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        j->again_at = tec_clock() + 0.3;
        cr_assert_leq(j->starts, 20 + 4 * c->each, "a job does not come to its end: see %s", j->log);
    } else if (!j->pid && !j->done && tec_clock() >= j->again_at && !c->tracker_down)
        start_job(c, j);
}

static bool all_done(const chaos *c)
{
    for (int i = 0; i < JOBS; i++)
        if (!c->jobs[i].done)
            return false;
    return true;
}

/* ---- faults ---- */

/* In turn; those of kernels are candidates of the jobs. NO_FAULT: all have struck. */
static fault next_fault(const chaos *c)
{
    for (int i = 0; i < N_FAULTS; i++) {
        fault f = (fault)((c->next + i) % N_FAULTS);

        if (f != HUNG_KERNEL && f != CRASHING_KERNEL && f != EATING_KERNEL && c->struck[f] < c->each)
            return f;
    }
    return NO_FAULT;
}

static void undo(chaos *c)
{
    if (c->undoing == TRACKER_KILLED) {
        pool_start_tracker(&c->s.p, pool_port(&c->s.p));
        c->tracker_down = false;
    } else if (c->undoing == SERVER_KILLED) {
        stage_start_server(&c->s, c->undo_server);
        c->life[c->undo_server]++;
        c->server_down[c->undo_server] = false;
        c->free_since[c->undo_server] = tec_clock();
    } else if (c->undoing == DISK_FULL) {
        unlink(c->s.ballast);
        /* The tracker stores its state again within a second; killed before, it would know less than its
         * clients. */
        nap(1.3);
    }
    c->undo_at = 0;
}

static void kill_server(chaos *c, int server)
{
    fixture *f = &c->s.p.server[server];

    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    close(f->out);
}

static void mend_later(chaos *c, fault f, int server, double seconds)
{
    c->undoing = f;
    c->undo_server = server;
    c->undo_at = tec_clock() + seconds;
}

/* Does it to the part that has to do with the trial. False: the part did not notice. */
static bool harm(chaos *c, fault f, const seen *at)
{
    switch (f) {
    case SERVER_KILLED: kill_server(c, at->server); break;
    case TRACKER_KILLED:
        pool_kill_tracker(&c->s.p);
        c->tracker_down = true;
        break;
    case CLIENT_KILLED: kill(c->jobs[at->job].pid, SIGKILL); break;
    case SLOW_LORIS: stage_send_loris(&c->s, at->server); break;
    case DISK_FULL: return stage_fill_disk(&c->s);
    case CLOCK_BACK: kill(c->s.p.tracker_pid, SIGUSR2); break;
    default: break;
    }
    return true;
}

/* Strikes while the trial runs; counts if it is unfinished behind the fault. */
static void strike(chaos *c, fault f, const seen *at)
{
    uint64_t label = at->label;

    if ((f == SERVER_KILLED && was_harmed(c, label)) || (f == CLIENT_KILLED && !c->jobs[at->job].pid))
        return;
    bool met = harm(c, f, at) && still_runs(c, at, label);
    c->struck[f] += met;
    if (f == SERVER_KILLED) {
        c->server_down[at->server] = true;
        if (at->label &&
            c->n_harmed < MOST_LABELS) /* perhaps the next trial had begun when the server died */
            c->harmed[c->n_harmed++] = at->label;
    }
    if (f == SERVER_KILLED || f == TRACKER_KILLED || f == DISK_FULL)
        mend_later(c, f, at->server, f == DISK_FULL ? 0.6 : 0.15);
}

/* The next long piece from a client of this server is a module on its way. */
static void arm(chaos *c, fault f, int server)
{
    proxy_shared *s = c->s.proxies[server].shared;

    c->armed = server;
    c->armed_with = f;
    c->hits_before = s->hits;
    c->armed_until = tec_clock() + 5;
    s->fault = (int)stage_harm(f);
}

/* What was not met within its time is taken back, and tried at another server. */
static void look_at_armed(chaos *c)
{
    proxy_shared *s = c->s.proxies[c->armed].shared;
    bool met = s->hits > c->hits_before;

    if (!met && tec_clock() < c->armed_until)
        return;
    s->fault = PROXY_PASS;
    met = s->hits > c->hits_before;
    c->struck[c->armed_with] += met;
    c->armed = -1;
}

/* Faults are spread over the first three tenths of the runs. The short form has too few runs for that: its
 * next fault is due at once, so that each fault has many runs left in which to meet an unfinished trial. */
static bool is_due(const chaos *c)
{
    int struck = 0, trials = 0;

    if (c->each == 1)
        return true;

    for (int f = 0; f < N_FAULTS; f++)
        struck += c->struck[f];
    for (int i = 0; i < JOBS; i++)
        trials += c->jobs[i].trials;
    return (double)struck <= (double)c->runs / (0.3 * trials) * 10 * c->each;
}

static void maybe_strike(chaos *c)
{
    fault f = next_fault(c);
    const seen *at = find_running(c, -1);

    if (c->armed >= 0)
        look_at_armed(c);
    else if (f != NO_FAULT && at && !c->undo_at && is_due(c)) {
        if (stage_harm(f) != PROXY_PASS)
            arm(c, f, at->server);
        else
            strike(c, f, at);
        c->next = (int)f + 1;
    }
}

static void run_jobs(chaos *c)
{
    while (!all_done(c)) {
        for (int i = 0; i < SERVERS; i++)
            read_log(c, i);
        for (int i = 0; i < JOBS; i++)
            tend_job(c, &c->jobs[i]);
        if (c->undo_at && tec_clock() >= c->undo_at)
            undo(c);
        maybe_strike(c);
        stage_dribble(&c->s);
        nap(0.004);
    }
    for (int i = 0; i < SERVERS; i++)
        read_log(c, i);
}

/* ---- the audit ---- */

/* Every trial of all jobs in one table, with the label that servers know it by. */
static void collect_trials(chaos *c)
{
    char text[200];
    sqlite3_stmt *s;

    for (int i = 0; i < JOBS; i++) {
        sqlite3 *db = NULL;

        cr_assert_eq(sqlite3_open_v2(c->jobs[i].db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
        cr_assert_eq(
            sqlite3_prepare_v2(db,
                               "SELECT trial, trace, status, stage, error_kind FROM records WHERE tuner "
                               "<> 'adopted'",
                               -1, &s, NULL),
            SQLITE_OK, "%s", sqlite3_errmsg(db));
        while (sqlite3_step(s) == SQLITE_ROW) {
            const char *trace = (const char *)sqlite3_column_text(s, 1);
            const char *planted = strstr(trace, "/* hang")    ? "hang"
                                  : strstr(trace, "/* crash") ? "crash"
                                  : strstr(trace, "/* eat")   ? "eat"
                                                              : "";

            snprintf(text, sizeof text, "INSERT INTO stored VALUES (%d, %d, %lld, '%s', '%s', '%s', '%s')", i,
                     sqlite3_column_int(s, 0), (long long)base_hash(trace, strlen(trace), BASE_HASH_SEED),
                     planted, sqlite3_column_text(s, 2), sqlite3_column_text(s, 3),
                     sqlite3_column_text(s, 4));
            ask(c, text);
        }
        sqlite3_finalize(s);
        sqlite3_close(db);
        snprintf(text, sizeof text,
                 "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO "
                 "issued SELECT %d, i FROM n",
                 c->jobs[i].trials - 1, i);
        ask(c, text);
    }
    c->struck[HUNG_KERNEL] =
        (int)ask(c, "SELECT count(*) FROM stored WHERE planted = 'hang' AND status <> 'ok'");
    c->struck[CRASHING_KERNEL] =
        (int)ask(c, "SELECT count(*) FROM stored WHERE planted = 'crash' AND status <> 'ok'");
    c->struck[EATING_KERNEL] =
        (int)ask(c, "SELECT count(*) FROM stored WHERE planted = 'eat' AND status <> 'ok'");
}

static const char lost[] =
    "SELECT count(*) FROM issued WHERE NOT EXISTS (SELECT 1 FROM stored WHERE stored.job = "
    "issued.job AND stored.trial = issued.trial)";
static const char twice[] =
    "SELECT count(*) FROM (SELECT 1 FROM stored GROUP BY job, trial HAVING count(*) > 1)";
static const char unlogged[] =
    "SELECT count(*) FROM stored WHERE stage NOT IN ('schedule', 'build', 'reference') AND NOT EXISTS "
    "(SELECT 1 FROM executions e WHERE e.job = stored.job AND e.label = stored.label)";
static const char unstored[] = "SELECT count(*) FROM executions e WHERE finished AND NOT EXISTS "
                               "(SELECT 1 FROM stored WHERE e.job = stored.job AND e.label = stored.label)";
static const char innocent[] = "SELECT count(*) FROM stored WHERE planted = '' AND status <> 'ok'";
static const char repeated[] = "SELECT count(*) - count(DISTINCT job || ' ' || label) FROM executions";

static void print_table(chaos *c)
{
    int all = 0, starts = 0;

    printf("%-28s %8s\n", "FAULT", "STRUCK");
    for (int f = 0; f < N_FAULTS; f++) {
        printf("%-28s %8d\n", stage_faults[f], c->struck[f]);
        all += c->struck[f];
    }
    for (int i = 0; i < JOBS; i++)
        starts += c->jobs[i].starts;
    printf("%d faults in %d tuning jobs of %d trials each, started %d times\n", all, JOBS, c->jobs[0].trials,
           starts);
    printf("trials issued %lld, stored %lld, stored twice %lld, lost %lld, failed without a planted cause "
           "%lld\n",
           (long long)ask(c, "SELECT count(*) FROM issued"), (long long)ask(c, "SELECT count(*) FROM stored"),
           (long long)ask(c, twice), (long long)ask(c, lost), (long long)ask(c, innocent));
    printf("executions in the logs of the servers %lld, of these finished %lld, repeated %lld; stored and in "
           "no log %lld; finished and not stored %lld; comparisons %d\n",
           (long long)ask(c, "SELECT count(*) FROM executions"),
           (long long)ask(c, "SELECT count(*) FROM executions WHERE finished"), (long long)ask(c, repeated),
           (long long)ask(c, unlogged), (long long)ask(c, unstored), c->comparisons);
    printf("longest wait of a device while work waited: %.1f s\n", c->longest_idle);
    fflush(stdout);
}

static void audit(chaos *c)
{
    for (int f = 0; f < N_FAULTS; f++)
        cr_assert_geq(c->struck[f], c->each, "%s: struck %d times", stage_faults[f], c->struck[f]);
    cr_assert_eq(ask(c, lost), 0);
    cr_assert_eq(ask(c, twice), 0);
    cr_assert_eq(ask(c, unlogged), 0, "trials are stored that no server has run");
    cr_assert_gt(ask(c, "SELECT count(*) FROM executions WHERE finished"), 0);
    cr_assert_eq(ask(c, unstored), 0, "servers have finished trials that are not stored");
    cr_assert_eq(ask(c, innocent), 0, "faults of the pool cost trials: see the errors in %s and %s",
                 c->jobs[0].db, c->jobs[1].db);
    cr_assert_lt(c->longest_idle, 30.0);
    cr_assert(stage_count_logged(&c->s, "the state is not stored") > 0,
              "the disk was never full for the tracker: see %s", c->s.p.log);
    cr_assert_leq(stage_count_logged(&c->s, "the state is not stored"),
                  stage_count_logged(&c->s, "the state is stored again"),
                  "the tracker's state stayed unstored: see %s", c->s.p.log);
    cr_assert(stage_count_logged(&c->s, "the clock was set back") > 0);
}

Test(tuning, loses_no_trial_and_stores_none_twice, .timeout = 3500)
{
    static chaos c;
    const char *wanted = getenv("TEC_CHAOS");

#ifndef TEC_DEBUG
    cr_skip_test("the tracker's clock can be set back in builds for debugging alone");
#endif
    c.each = wanted ? atoi(wanted) : 1;
    c.armed = -1;
    cr_assert(c.each > 0 && c.each <= 60);
    cr_assert_eq(sqlite3_open(":memory:", &c.db), SQLITE_OK);
    ask(&c, "CREATE TABLE issued(job, trial)");
    ask(&c, "CREATE TABLE stored(job, trial, label, planted, status, stage, kind)");
    ask(&c, "CREATE TABLE executions(server, life, session, job, label, finished, UNIQUE (server, life, "
            "session, job, label))");
    stage_start(&c.s);
    for (int i = 0; i < SERVERS; i++) {
        c.s.proxies[i].shared->least = LEAST_UPLOAD;
        c.free_since[i] = tec_clock();
    }
    stage_start_spare(&c.s);
    make_jobs(&c);
    run_jobs(&c);
    if (c.undo_at)
        undo(&c);
    close_waits(&c);
    collect_trials(&c);
    print_table(&c);
    audit(&c);
    stage_rest(&c.s);
    cr_assert_eq(kit_stop(&c.s.p.server[SPARE]), 0);
    stage_find_leaks(&c.s);
    stage_find_left_behind(&c.s);
    stage_stop(&c.s);
    sqlite3_close(c.db);
}
