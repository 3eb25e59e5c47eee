/* tests/tracker/fair.c -- the example of fair.h, absence without credit, corrections of guesses. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "tracker/fair.h"

enum { MANY = 4000 };

typedef struct {
    track_flow root;
    track_waiter waiters[MANY];
    int n;
} fixture;

static track_flow *add_job(fixture *f, const char *user, double weight, const char *job, double priority)
{
    return track_flow_child(track_flow_child(&f->root, user, weight), job, priority);
}

static void wait_for(fixture *f, track_flow *job, int n)
{
    for (int i = 0; i < n; i++)
        cr_assert(track_flow_wait(job, &f->waiters[f->n++]));
}

/* Who is served by one device, a letter each; every lease lasts as long as it is charged. */
static void serve(fixture *f, char *to, int n, double ms)
{
    track_flow *job;

    for (int i = 0; i < n && track_flow_serve(&f->root, &job); i++) {
        *to++ = job->parent->entry.name[0];
        track_flow_charge(job, ms);
        track_flow_done(job);
    }
    *to = 0;
}

Test(tracker_fair, serves_the_example_of_the_header)
{
    static fixture f;
    char served[20];

    wait_for(&f, add_job(&f, "ann", 2, "1", 10), 10);
    wait_for(&f, add_job(&f, "bob", 1, "1", 10), 10);
    serve(&f, served, 6, 6);
    cr_assert_str_eq(served, "ababaa");
    track_flow_clear(&f.root);
}

Test(tracker_fair, gives_no_credit_for_absence)
{
    static fixture f;
    char served[20];

    wait_for(&f, add_job(&f, "ann", 1, "1", 10), 40);
    serve(&f, served, 10, 6);
    wait_for(&f, add_job(&f, "bob", 1, "1", 10), 40);
    serve(&f, served, 10, 6);
    int n = 0;
    for (const char *s = served; *s; s++)
        n += *s == 'b';
    cr_assert(n == 5, "%s", served);
    track_flow_clear(&f.root);
}

Test(tracker_fair, remembers_what_a_job_owes_after_it_left)
{
    static fixture f;
    char served[20];

    wait_for(&f, add_job(&f, "bob", 1, "1", 10), 20);
    wait_for(&f, add_job(&f, "ann", 1, "1", 10), 1);
    serve(&f, served, 1, 10); /* bob */
    cr_assert_str_eq(served, "b");
    serve(&f, served, 1, 100);
    cr_assert_str_eq(served, "a");
    wait_for(&f, add_job(&f, "ann", 1, "1", 10), 1);
    serve(&f, served, 10, 10);
    cr_assert_str_eq(served, "bbbbbbbbba", "ann used as much as ten leases of bob: %s", served);
    track_flow_clear(&f.root);
}

Test(tracker_fair, moves_a_flow_when_its_guess_is_corrected)
{
    static fixture f;
    track_flow *job;
    char served[20];

    wait_for(&f, add_job(&f, "ann", 1, "1", 10), 10);
    wait_for(&f, add_job(&f, "bob", 1, "1", 10), 10);
    track_flow_serve(&f.root, &job);
    track_flow_charge(job, 1); /* the guess */
    track_flow_serve(&f.root, &job);
    track_flow_charge(job, 10);
    job = track_flow_find(track_flow_find(&f.root, "ann"), "1");
    track_flow_charge(job, 99); /* it took 100 */
    serve(&f, served, 9, 10);
    cr_assert_str_eq(served, "bbbbbbbbb");
    track_flow_clear(&f.root);
}

Test(tracker_fair, shares_a_users_time_by_priority)
{
    static fixture f;
    track_flow *slow = add_job(&f, "ann", 1, "slow", 5), *fast = add_job(&f, "ann", 1, "fast", 20);
    char served[110];

    wait_for(&f, slow, 200);
    wait_for(&f, fast, 200);
    wait_for(&f, add_job(&f, "bob", 1, "1", 100), 200);
    serve(&f, served, 100, 7);
    cr_assert(fast->grants >= 39 && fast->grants <= 41 && slow->grants >= 9 && slow->grants <= 11,
              "%lld, %lld", (long long)fast->grants, (long long)slow->grants);
    track_flow_clear(&f.root);
}

Test(tracker_fair, forgets_flows_without_work)
{
    static fixture f;
    char served[200], name[20];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "u%d", i);
        wait_for(&f, add_job(&f, name, 1, "1", 10), 1);
    }
    serve(&f, served, 100, 5);
    cr_assert_eq(f.root.children.n, 0);
    track_flow_clear(&f.root);
}

Test(tracker_fair, withdraws_in_any_order)
{
    static fixture f;
    track_flow *job = add_job(&f, "ann", 1, "1", 10);
    char served[20];

    wait_for(&f, job, 3);
    wait_for(&f, add_job(&f, "bob", 1, "1", 10), 1);
    track_flow_leave(job, &f.waiters[1]);
    track_flow_leave(job, &f.waiters[0]);
    track_flow_leave(job, &f.waiters[2]);
    cr_assert_null(track_flow_find(&f.root, "ann"));
    serve(&f, served, 5, 5);
    cr_assert_str_eq(served, "b");
    track_flow_clear(&f.root);
}
