/* The queue of a daemon: order, states, files, and what a daemon that was killed leaves. */
#include "store/queue.h"

#include <signal.h>

#include "tests/store/kit.h"

TestSuite(queue, .init = set_up, .fini = tear_down);

static int64_t submit(store *s, const char *name, int64_t priority)
{
    int64_t id = store_queue_add(
        cx, s, &(store_queued){.name = name, .options = "{}", .trials = 8, .priority = priority}, "def", 3);

    cr_assert(id > 0, "%s", tec_context_error(cx));
    return id;
}

static int64_t take(store *s)
{
    int64_t id;

    cr_assert(store_queue_take(cx, s, "here", 60, &id), "%s", tec_context_error(cx));
    return id;
}

static bool end(store *s, int64_t id, store_queue_state to, const char *cause, const store_queue_file *files)
{
    return store_queue_end(cx, s, &(store_queue_end_of){id, "here", to, cause, files, files ? 2 : 0});
}

static const store_queued *get(store *s, int64_t id)
{
    const store_queued *j = store_queue_get(cx, s, id);

    cr_assert(j != NULL, "%s", tec_context_error(cx));
    return j;
}

Test(queue, gives_jobs_by_priority_and_then_by_age)
{
    store *s = open_store("a.db");
    int64_t first = submit(s, "a.te", 0), second = submit(s, "b.te", 0), urgent = submit(s, "c.te", 5);

    cr_assert(eq(i64, take(s), urgent));
    cr_assert(eq(i64, take(s), first));
    cr_assert(eq(i64, take(s), second));
    cr_assert(eq(i64, take(s), 0));
    cr_assert(eq(i64, problems(s), 0));
    store_close(s);
}

Test(queue, keeps_what_a_job_is_and_how_far_it_came)
{
    store *s = open_store("a.db");
    int64_t id = submit(s, "a.te", 2);
    int n;

    cr_assert(store_queue_add(cx, s, &(store_queued){.name = "b.te"}, NULL, 0) > id);
    cr_assert(eq(i64, take(s), id));
    cr_assert(store_queue_progress(cx, s, id, 7));
    store_close(s);
    s = open_store("a.db");
    const store_queued *j = get(s, id);
    cr_assert(eq(str, (char *)j->name, "a.te"));
    cr_assert(eq(str, (char *)j->options, "{}"));
    cr_assert(eq(i64, j->trials, 8));
    cr_assert(eq(i64, j->priority, 2));
    cr_assert(eq(i64, j->tried, 7));
    cr_assert(eq(int, (int)j->state, STORE_QUEUE_RUNNING));
    cr_assert(j->created > 0 && j->updated >= j->created);
    cr_assert(store_queue_all(cx, s, &n) != NULL);
    cr_assert(eq(int, n, 2));
    store_close(s);
}

Test(queue, ends_a_job_with_its_files_or_not_at_all)
{
    store *s = open_store("a.db");
    int64_t id = submit(s, "a.te", 0);
    const store_queue_file files[] = {{"module", "\0elf", 4}, {"report", "", 0}};
    size_t size;

    cr_assert(not(end(s, id, STORE_QUEUE_DONE, NULL, files)));
    expect_error("job 1 is queued, but must be running to become done");
    cr_assert(store_queue_read(cx, s, id, "module", &size) == NULL);
    expect_error("job 1 has no file 'module'");
    cr_assert(eq(i64, take(s), id));
    const store_queue_file huge[] = {{"module", "m", 1}, {"report", "r", (size_t)STORE_MAX_BLOB + 1}};
    cr_assert(not(end(s, id, STORE_QUEUE_DONE, NULL, huge)));
    expect_error("over the limit");
    cr_assert(eq(int, (int)get(s, id)->state, STORE_QUEUE_RUNNING));
    cr_assert(end(s, id, STORE_QUEUE_DONE, NULL, files));
    cr_assert(eq(int, memcmp(store_queue_read(cx, s, id, "module", &size), "\0elf", 4), 0));
    cr_assert(eq(sz, size, 4));
    cr_assert(store_queue_read(cx, s, id, "report", &size) != NULL);
    cr_assert(eq(sz, size, 0));
    store_close(s);
}

Test(queue, takes_what_a_killed_daemon_was_running_first)
{
    store *s = open_store("a.db");
    int64_t running = submit(s, "a.te", 0);

    cr_assert(eq(i64, take(s), running));
    pid_t child = fork();
    if (child == 0) { /* a daemon with a store of its own that dies with a job in hand */
        int64_t urgent = 0;
        store *own = store_open(cx, place("a.db"), NULL);

        if (own && store_queue_add(cx, own, &(store_queued){.name = "b.te", .priority = 9}, "x", 1) &&
            store_queue_take(cx, own, "here", 60, &urgent))
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    int status;
    waitpid(child, &status, 0);
    cr_assert(eq(int, status, SIGKILL));
    submit(s, "c.te", 20);
    cr_assert(eq(i64, take(s), 3));
    cr_assert(end(s, 3, STORE_QUEUE_FAILED, "no such kernel", NULL));
    cr_assert(store_queue_recover(cx, s, "here"));
    cr_assert(eq(int, (int)get(s, running)->state, STORE_QUEUE_INTERRUPTED));
    submit(s, "d.te", 20);
    cr_assert(eq(i64, take(s), 2));
    cr_assert(eq(i64, take(s), running));
    cr_assert(eq(i64, take(s), 4));
    cr_assert(eq(str, (char *)get(s, 3)->cause, "no such kernel"));
    store_close(s);
}

Test(queue, moves_only_from_the_state_that_is_named)
{
    store *s = open_store("a.db");
    int64_t id = submit(s, "a.te", 0);

    cr_assert(store_queue_move(cx, s, id, STORE_QUEUE_QUEUED, STORE_QUEUE_PAUSED, "the disk is full"));
    cr_assert(eq(str, (char *)get(s, id)->cause, "the disk is full"));
    cr_assert(eq(i64, take(s), 0));
    cr_assert(not(store_queue_move(cx, s, id, STORE_QUEUE_RUNNING, STORE_QUEUE_DONE, NULL)));
    expect_error("job 1 is paused, but must be running to become done");
    cr_assert(store_queue_move(cx, s, id, STORE_QUEUE_PAUSED, STORE_QUEUE_QUEUED, NULL));
    cr_assert(eq(i64, take(s), id));
    cr_assert(not(store_queue_remove(cx, s, id)));
    expect_error("job 1 is running: cancel it first");
    cr_assert(end(s, id, STORE_QUEUE_FAILED, "cancelled", NULL));
    cr_assert(store_queue_remove(cx, s, id));
    cr_assert(store_queue_get(cx, s, id) == NULL);
    expect_error("there is no job 1");
    run_sql(
        s,
        "INSERT INTO queue (name, options, trials, seconds, priority, state, cause, tried, created, updated) "
        "VALUES ('x', '', 0, 0, 0, 'odd', '', 0, 1, 1)");
    cr_assert(store_queue_get(cx, s, 2) == NULL);
    expect_error("unknown state 'odd'");
    store_close(s);
}

Test(queue, refuses_jobs_that_say_nothing_or_too_much)
{
    store *s = open_store("a.db");

    cr_assert(eq(i64, store_queue_add(cx, s, &(store_queued){.name = ""}, "x", 1), 0));
    expect_error("the name of the job is missing");
    cr_assert(eq(i64, store_queue_add(cx, s, &(store_queued){.name = "a.te", .trials = -1}, "x", 1), 0));
    expect_error("may not be negative");
    cr_assert(eq(i64, store_queue_add(cx, s, &(store_queued){.name = "\xff"}, "x", 1), 0));
    expect_error("is not UTF-8 text");
    store_close(s);
}

/* ---- several daemons ---- */

static int64_t take_as(store *s, const char *owner, int64_t seconds)
{
    int64_t id;

    cr_assert(store_queue_take(cx, s, owner, seconds, &id), "%s", tec_context_error(cx));
    return id;
}

static bool renew_as(store *s, int64_t id, const char *owner)
{
    bool held;

    cr_assert(store_queue_renew(cx, s, id, owner, 60, &held), "%s", tec_context_error(cx));
    return held;
}

Test(queue, a_job_whose_lease_is_over_goes_to_another_daemon_and_its_first_one_may_not_end_it)
{
    store *s = open_store("a.db");
    int64_t id = submit(s, "a.te", 0);

    cr_assert(eq(i64, take_as(s, "one", 60), id));
    cr_assert(eq(i64, take_as(s, "two", 60), 0), "one job for one daemon");
    cr_assert(renew_as(s, id, "one"));
    cr_assert(not(renew_as(s, id, "two")));
    run_sql(s, "UPDATE queue SET lease = 1000");
    cr_assert(eq(i64, take_as(s, "two", 60), id));
    cr_assert(eq(str, (char *)get(s, id)->owner, "two"));
    cr_assert(not(renew_as(s, id, "one")));
    cr_assert(not(store_queue_end(cx, s, &(store_queue_end_of){id, "one", STORE_QUEUE_DONE, NULL, NULL, 0})));
    expect_error("another daemon, 'two', runs job 1 now");
    cr_assert(store_queue_recover(cx, s, "one"));
    cr_assert(eq(int, (int)get(s, id)->state, STORE_QUEUE_RUNNING), "one recovers nothing of two");
    cr_assert(store_queue_end(cx, s, &(store_queue_end_of){id, "two", STORE_QUEUE_DONE, NULL, NULL, 0}));
    store_close(s);
}

Test(queue, a_pause_that_was_asked_for_holds_when_the_lease_is_over)
{
    store *s = open_store("a.db");
    int64_t id = submit(s, "a.te", 0);
    bool done;

    cr_assert(eq(i64, take_as(s, "one", 60), id));
    cr_assert(store_queue_ask(cx, s, id, STORE_QUEUE_PAUSE, &done));
    run_sql(s, "UPDATE queue SET lease = 1000");
    cr_assert(eq(i64, take_as(s, "two", 60), 0));
    cr_assert(eq(int, (int)get(s, id)->state, STORE_QUEUE_PAUSED));
    store_close(s);
}

enum { DAEMONS = 4, JOBS = 40 };

/* Takes jobs until there are none, and ends each; the number of them as the exit status. */
static _Noreturn void take_all(int who)
{
    tec_context *own = tec_context_new();
    store *s = store_open(own, place("a.db"), NULL);
    const char *owner = base_format(own, "daemon %d", who);
    int64_t id = 0, n = 0;

    while (s && store_queue_take(own, s, owner, 60, &id) && id) {
        if (!store_queue_end(own, s, &(store_queue_end_of){id, owner, STORE_QUEUE_DONE, owner, NULL, 0}))
            break;
        n++;
    }
    if (base_failed(own))
        fprintf(stderr, "%s\n", tec_context_error(own));
    _exit(base_failed(own) ? 255 : (int)n);
}

Test(queue, several_daemons_take_each_job_once)
{
    store *s = open_store("a.db");
    pid_t pid[DAEMONS];
    int status, total = 0, n;

    for (int i = 0; i < JOBS; i++)
        submit(s, "a.te", i % 3);
    for (int i = 0; i < DAEMONS; i++)
        if ((pid[i] = fork()) == 0)
            take_all(i);
    for (int i = 0; i < DAEMONS; i++) {
        cr_assert(eq(int, waitpid(pid[i], &status, 0), pid[i]));
        cr_assert(eq(int, WIFEXITED(status), 1));
        cr_assert(lt(int, WEXITSTATUS(status), 255));
        total += WEXITSTATUS(status);
    }
    cr_assert(eq(int, total, JOBS));
    const store_queued *const *all = store_queue_all(cx, s, &n);
    for (int i = 0; i < n; i++)
        cr_assert(eq(int, (int)all[i]->state, STORE_QUEUE_DONE));
    store_close(s);
}
