/* tests/tracker/state.c -- what is stored, over restarts, commits that fail, and files that are none. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracker/state.h"

static track_state *stored; /* of the pool whose events are at work */

static void on_granted(void *user, track_request *r, track_lease *l)
{
    (void)user;
    (void)r;
    track_state_add_lease(stored, l);
}

static void on_ended(void *user, track_lease *l, track_end how)
{
    (void)user;
    (void)how;
    track_state_end_lease(stored, l->number);
}

static const track_events events = {on_granted, on_ended};
static char folder[] = "/tmp/tec-tracker-XXXXXX", path[64];

static void set_up(void)
{
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/state.db", folder);
}

static void tear_down(void)
{
    char file[80];

    for (int i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "%s%s", path, i == 1 ? "-wal" : i == 2 ? "-shm" : "");
        unlink(file);
    }
    rmdir(folder);
}

static track_pool *open_all(void)
{
    tec_error err = {0};

    stored = track_state_open(path, &err);
    cr_assert(stored, "%s", err.text);
    track_pool *p = track_pool_new(
        &(track_options){.events = &events, .first_lease = track_state_next_lease(stored)}, &err);
    cr_assert(track_state_load(stored, p, 0, &err), "%s", err.text);
    return p;
}

static void add_server(track_pool *p, const char *name)
{
    track_offered d = {
        .name = "cpu:0", .class = "rpi4", .fingerprint = "bcm2711", .hardware = "", .driver = ""};
    track_server *s = track_register(p, 0, &(track_offer){name, "x:1", &d, 1}, NULL);

    cr_assert(s);
    track_reachable(p, 0, s);
    track_state_set_class(stored, track_find_class(p, "rpi4"));
}

static void ask(track_pool *p, const char *user)
{
    track_request *r;

    cr_assert(track_ask(p, 0, &(track_wish){"rpi4", user, "7", 30, NULL, "key", 5000, NULL}, &r, NULL));
}

Test(tracker_state, has_leases_classes_and_reasons_after_a_restart, .init = set_up, .fini = tear_down)
{
    track_pool *p = open_all();
    tec_error err = {0};

    add_server(p, "a");
    add_server(p, "b");
    ask(p, "ann");
    ask(p, "bob");
    track_release(p, 0, track_find_lease(p, 1));
    track_device *d = track_find_device(p, "a/cpu:0");
    cr_assert(track_set_aside(p, 0, d, "hot", NULL));
    track_state_set_aside(stored, d);
    cr_assert(track_state_commit(stored, &err), "%s", err.text);
    track_state_close(stored);
    track_pool_free(p);

    p = open_all();
    cr_assert_null(track_find_lease(p, 1));
    track_lease *l = track_find_lease(p, 2);
    cr_assert(l && l->term_ms == 5000 && l->job->weight > 29);
    cr_assert_str_eq(l->device->entry.name, "b/cpu:0");
    cr_assert_str_eq(track_user_name(l->job), "bob");
    cr_assert_str_eq(l->owner, "key");
    cr_assert_str_eq(track_find_device(p, "a/cpu:0")->aside, "hot");
    cr_assert_str_eq(track_find_class(p, "rpi4")->fingerprint, "bcm2711");
    cr_assert_eq(track_state_next_lease(stored), 3);
    track_state_close(stored);
    track_pool_free(p);
}

Test(tracker_state, never_uses_a_number_twice, .init = set_up, .fini = tear_down)
{
    for (int64_t i = 1; i <= 3; i++) {
        track_pool *p = open_all();

        add_server(p, "a");
        ask(p, "ann");
        cr_assert_not_null(track_find_lease(p, i));
        track_release(p, 0, track_find_lease(p, i));
        cr_assert(track_state_commit(stored, NULL));
        track_state_close(stored);
        track_pool_free(p);
    }
}

/* A child grants and commits without end, and tells each commit; it is killed at a random moment. */
static void grant_until_killed(int told)
{
    track_pool *p = open_all();
    int64_t now = 0;

    add_server(p, "a");
    add_server(p, "b");
    for (int64_t i = 1;; i++) {
        ask(p, "ann");
        ask(p, "bob");
        if (!track_state_commit(stored, NULL) || write(told, &i, sizeof i) != sizeof i)
            _exit(1);
        track_release(p, ++now, track_find_lease(p, 2 * i - 1));
        track_release(p, ++now, track_find_lease(p, 2 * i));
    }
}

Test(tracker_state, loses_nothing_that_was_committed_before_a_kill, .init = set_up, .fini = tear_down)
{
    for (int round = 0; round < 10; round++) {
        int64_t told = 0, i;
        int ends[2];

        tear_down();
        cr_assert(mkdir(folder, 0700) == 0 && pipe(ends) == 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            grant_until_killed(ends[1]);
        }
        close(ends[1]);
        usleep(1000 + 1700 * (unsigned)round);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(ends[0], &i, sizeof i) == sizeof i)
            told = i;
        close(ends[0]);
        track_pool *p = open_all();
        /* The leases of the last commit that was told are there, or those of a later one. */
        cr_assert_geq(track_state_next_lease(stored), 2 * told + 1);
        cr_assert(told == 0 || track_leases(p)->n == 2 || track_state_next_lease(stored) > 2 * told + 1,
                  "after %lld commits %d leases are left", (long long)told, track_leases(p)->n);
        track_state_close(stored);
        track_pool_free(p);
    }
}

Test(tracker_state, writes_all_anew_after_a_commit_that_failed, .init = set_up, .fini = tear_down)
{
    track_pool *p = open_all();
    tec_error err = {0};
    track_memory m = {7, "a/cpu:0", "rpi4", "ann", "1", "key", 10, 20000};

    add_server(p, "b");
    ask(p, "ann");
    cr_assert(track_state_commit(stored, &err), "%s", err.text);
    /* The lease of this number stands in the table already: the commit fails as a whole. */
    track_state_add_lease(stored, track_find_lease(p, 1));
    cr_assert_not(track_state_commit(stored, &err));
    cr_assert(strstr(err.text, "UNIQUE constraint failed") && strstr(err.text, path), "%s", err.text);
    cr_assert(track_restore(p, 0, &m, NULL));
    err = (tec_error){0};
    cr_assert(track_state_rewrite(stored, p, &err), "%s", err.text);
    track_state_close(stored);
    track_pool_free(p);
    p = open_all();
    cr_assert(track_leases(p)->n == 2 && track_find_lease(p, 1) && track_find_lease(p, 7));
    cr_assert_eq(track_state_next_lease(stored), 8);
    track_state_close(stored);
    track_pool_free(p);
}

static void put_sql(const char *sql)
{
    sqlite3 *db;

    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void refuses(const char *said)
{
    tec_error err = {0};

    cr_assert_null(track_state_open(path, &err));
    cr_assert(strstr(err.text, said) && strstr(err.text, path), "%s", err.text);
}

Test(tracker_state, refuses_files_of_others, .init = set_up, .fini = tear_down)
{
    put_sql("CREATE TABLE people (name)");
    refuses("the file is not the state of a tracker");
    tear_down();
    cr_assert_eq(mkdir(folder, 0700), 0);
    FILE *f = fopen(path, "w");
    cr_assert(f &&
              fputs("certainly not a database, but a text of some length: as long as a header, and more. "
                    "certainly not a database, but a text of some length: as long as a header, and more.",
                    f) >= 0);
    fclose(f);
    refuses("the file is not the state of a tracker");
}

Test(tracker_state, refuses_a_later_version_and_a_second_tracker, .init = set_up, .fini = tear_down)
{
    track_pool *p = open_all();

    refuses("another tracker uses this state");
    track_state_close(stored);
    track_pool_free(p);
    put_sql("PRAGMA user_version = 9");
    refuses("the state has version 9, but this tracker reads version 1");
}
