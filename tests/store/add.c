/* Writing: round trips, batches, duplicates, two writers, and death at any moment. */
#include <signal.h>
#include <time.h>

#include "tests/store/kit.h"

TestSuite(add, .init = set_up, .fini = tear_down);

static void expect_same(const store_record *a, const store_record *b)
{
    for (int i = 0; i < store_n_fields; i++) {
        const store_field *f = &store_fields[i];
        const char *x = (const char *)a + f->at, *y = (const char *)b + f->at;

        if (f->kind == STORE_FIELD_TEXT || f->kind == STORE_FIELD_LINE)
            cr_assert(eq(str, (char *)store_field_text(f, a), (char *)store_field_text(f, b)), "%s", f->name);
        else if (f->kind == STORE_FIELD_STATUS || f->kind == STORE_FIELD_INT32)
            cr_assert(eq(int, *(const int *)x, *(const int *)y), "%s", f->name);
        else if (f->kind != STORE_FIELD_REALS && f->kind != STORE_FIELD_BYTES)
            cr_assert(eq(int, memcmp(x, y, 8), 0), "%s", f->name);
    }
    cr_assert(eq(int, a->n_costs, b->n_costs));
    cr_assert(eq(int, memcmp(a->costs, b->costs, (size_t)a->n_costs * sizeof(double)), 0));
    cr_assert(eq(int, a->workload.n_shape, b->workload.n_shape));
    cr_assert(eq(
        int, memcmp(a->workload.shape, b->workload.shape, (size_t)a->workload.n_shape * sizeof(double)), 0));
    cr_assert(eq(sz, a->features_size, b->features_size));
    cr_assert(eq(int, memcmp(a->features, b->features, a->features_size), 0));
}

Test(add, gives_back_every_field)
{
    store *s = open_store("a.db");
    store_record r = record(4, 1, 0.1), got;

    r.job = "job 1";
    r.status = STORE_WRONG;
    r.stage = "check";
    r.error_kind = "value";
    r.error = "element 3 is \"-1\", expected \xc3\xa4";
    r.features_version = 3;
    r.features = "a\0b\xff";
    r.features_size = 4;
    r.point = "{\"C.y\": [4, 12]}";
    r.driver = "CUDA 12.4";
    r.clock_mhz = 1410;
    r.temperature = -2.5;
    add(s, r);
    store_cursor *c = store_find(cx, s, NULL);
    cr_assert(store_next(cx, c, &got));
    cr_assert(eq(i64, got.id, 1));
    expect_same(store_complete(cx, &r), &got);
    expect_same(store_complete(cx, &r), store_keep(cx, &got));
    for (int i = 0; i < 3; i++)
        cr_assert(not(store_next(cx, c, &got)), "the end stays the end");
    cr_assert(store_end(c));
    store_close(s);
}

Test(add, counts_what_it_has_already)
{
    store *s = open_store("a.db");
    store_record r[] = {record(4, 1, 0.1), record(4, 2, 0.1), record(4, 1, 0.1)};
    store_added added;

    cr_assert(store_add(cx, s, r, 3, NULL, &added));
    cr_assert(eq(i64, added.added, 2));
    cr_assert(eq(i64, added.duplicates, 1));
    cr_assert(store_add(cx, s, r, 0, NULL, &added));
    cr_assert(eq(i64, added.added, 0));
    store_close(s);
}

Test(add, a_newer_definition_replaces_the_older_and_none_replaces_nothing)
{
    store *s = open_store("a.db");
    store_record r = record(4, 1, 0.1), got;

    add(s, r);
    r.trial = 2;
    r.workload.definition = "def newer";
    add(s, r);
    r.trial = 3;
    r.workload.definition = NULL;
    r.workload.n_shape = 0;
    r.workload.flops = 0;
    add(s, r);
    store_cursor *c = store_find(cx, s, NULL);
    cr_assert(store_next(cx, c, &got));
    cr_assert(eq(str, (char *)got.workload.definition, "def newer"));
    cr_assert(eq(int, got.workload.n_shape, 2));
    cr_assert(eq(dbl, got.workload.flops, 4e9));
    store_end(c);
    store_close(s);
}

Test(add, a_batch_is_all_or_nothing)
{
    store *s = open_store("a.db");
    store_record r[] = {record(4, 1, 0.1), record(4, 2, 0.1), record(4, 3, 0.1)};

    r[1].trace = "\xff";
    cr_assert(not(store_add(cx, s, r, 3, &(store_job){.name = "j"}, NULL)));
    expect_error("trace is not UTF-8 text\nnote: in record 2 of a batch of 3");
    cr_assert(eq(i64, count(s), 0));
    cr_assert(store_get_job(cx, s, "j") == NULL);
    r[1].trace = "";
    cr_assert(not(store_add(cx, s, r, 3, &(store_job){.name = ""}, NULL)));
    expect_error("the name of the job is missing");
    cr_assert(eq(i64, count(s), 0));
    cr_assert(store_add(cx, s, r, 3, &(store_job){.name = "j"}, NULL));
    cr_assert(store_get_job(cx, s, "j") != NULL);
    store_close(s);
}

/* ---- several processes ---- */

enum { BATCHES = 25 };

static _Noreturn void write_batches(int who)
{
    tec_context *own = tec_context_new();
    store *s = store_open(own, place("a.db"), NULL);
    bool ok = s != NULL;

    for (int b = 0; ok && b < BATCHES; b++) {
        store_record r[4];

        for (int i = 0; i < 4; i++)
            r[i] = record(who, b * 4 + i, 0.1);
        ok = store_add(own, s, r, 4, NULL, NULL);
    }
    if (!ok)
        fprintf(stderr, "%s\n", tec_context_error(own));
    store_close(s);
    _exit(!ok);
}

/* The file does not exist before, so that its making is contested as well. */
Test(add, processes_that_write_at_once_all_succeed)
{
    pid_t pid[3];
    int status;

    place("a.db");
    for (int i = 0; i < BASE_COUNT(pid); i++)
        if ((pid[i] = fork()) == 0)
            write_batches(i + 1);
    for (int i = 0; i < BASE_COUNT(pid); i++) {
        waitpid(pid[i], &status, 0);
        cr_assert(eq(int, status, 0));
    }
    store *s = open_store("a.db");
    cr_assert(eq(i64, count(s), 3 * 4 * BATCHES));
    cr_assert(eq(i64, problems(s), 0));
    store_close(s);
}

Test(add, gives_up_on_a_writer_that_never_ends)
{
    store *a = open_store("a.db"), *b = store_open(cx, place("a.db"), &(store_options){.busy_ms = 100});
    store_record r = record(4, 1, 1), first = record(4, 2, 1);

    cr_assert(store_begin(cx, a));
    cr_assert(store_insert(cx, a, &first, 1, &(store_added){0}));
    cr_assert(not(store_add(cx, b, &r, 1, NULL, NULL)));
    expect_error("another process is writing; gave up after 0.1 s");
    cr_assert(eq(i64, count(b), 0), "reading goes on");
    cr_assert(store_end_write(cx, a, true));
    add(b, r);
    store_close(a);
    store_close(b);
}

/* ---- death ---- */

/* Adds batches, and reports each one that was acknowledged, until it is killed. */
static _Noreturn void write_until_killed(int report, int round)
{
    tec_context *own = tec_context_new();
    store *s = store_open(own, place("a.db"), NULL);

    for (int b = 0; s; b++) {
        store_record r[5];
        store_job job = {
            .name = base_format(own, "job %d", round), .progress = &b, .progress_size = sizeof b};

        for (int i = 0; i < 5; i++) {
            r[i] = record(4, 1000000 * round + 5 * b + i, 0.1);
            r[i].job = job.name;
        }
        if (!store_add(own, s, r, 5, &job, NULL) || write(report, &b, sizeof b) != sizeof b)
            break;
        base_reset(own);
    }
    _exit(1);
}

/* The number of batches that the child had reported when it died. */
static int run_and_kill(int round, long microseconds)
{
    int pipes[2], last, n = 0, status;

    cr_assert(eq(int, pipe(pipes), 0));
    pid_t pid = fork();
    if (pid == 0) {
        close(pipes[0]);
        write_until_killed(pipes[1], round);
    }
    close(pipes[1]);
    nanosleep(&(struct timespec){0, microseconds * 1000}, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    cr_assert(eq(int, WTERMSIG(status), SIGKILL), "the child ended by itself");
    while (read(pipes[0], &last, sizeof last) == sizeof last)
        n = last + 1;
    close(pipes[0]);
    return n;
}

Test(add, a_kill_at_any_moment_loses_nothing_that_was_acknowledged)
{
    uint64_t seed = (uint64_t)time(NULL);
    int total = 0;

    place("a.db");
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    bool server = getenv("TEC_TEST_STORE"); /* connecting takes longer than opening a file */
    for (int round = 0; round < (server ? 10 : 30); round++) {
        int n = run_and_kill(round, base_random_below(&seed, server ? 900000 : 60000));
        const char *name = base_format(cx, "job %d", round);
        store *s = open_store("a.db");
        int64_t found = store_count(cx, s, &(store_query){.job = name});
        const store_job *job = store_get_job(cx, s, name);
        int64_t batches = job ? *(const int *)job->progress + 1 : 0;

        cr_assert(eq(i64, found % 5, 0), "half a batch");
        cr_assert(found >= 5 * n && found <= 5 * (n + 1),
                  "%d batches were acknowledged, %lld records are there", n, (long long)found);
        cr_assert(eq(i64, batches * 5, found), "the job's progress is that of its records");
        cr_assert(eq(i64, problems(s), 0));
        store_close(s);
        total += n;
    }
    cr_assert(total > 0, "no batch was ever written in time");
}
