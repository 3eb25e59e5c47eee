/* tests/tracker/pool.c -- servers and leases through their lives, and every refusal. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "tracker/pool.h"

typedef struct {
    track_pool *p;
    int granted, ended;
    track_lease *lease; /* granted last */
    void *data;         /* of its request */
    track_end how;
} fixture;

static void on_granted(void *user, track_request *r, track_lease *l)
{
    fixture *f = user;

    f->granted++;
    f->lease = l;
    f->data = r->user;
}

static void on_ended(void *user, track_lease *l, track_end how)
{
    fixture *f = user;

    f->ended++;
    f->how = how;
    if (f->lease == l)
        f->lease = NULL;
}

static const track_events events = {on_granted, on_ended};

static void open_pool(fixture *f)
{
    tec_error err = {0};

    f->p = track_pool_new(&(track_options){.events = &events, .user = f}, &err);
    cr_assert(f->p, "%s", err.text);
}

static const track_offered cpu = {
    .name = "cpu:0", .class = "rpi4", .fingerprint = "bcm2711", .hardware = "Cortex-A72", .driver = ""};

static track_server *offer(fixture *f, int64_t now, const char *name, const track_offered *d, tec_error *err)
{
    return track_register(f->p, now, &(track_offer){name, "10.0.0.7:9190", d, 1}, err);
}

static track_server *add(fixture *f, int64_t now, const char *name)
{
    tec_error err = {0};
    track_server *s = offer(f, now, name, &cpu, &err);

    cr_assert(s, "%s", err.text);
    track_reachable(f->p, now, s);
    return s;
}

static track_request *ask(fixture *f, int64_t now, const char *user, const char *prefer)
{
    tec_error err = {0};
    track_request *r;

    cr_assert(track_ask(f->p, now, &(track_wish){"rpi4", user, "1", 0, prefer, NULL, 0, f}, &r, &err), "%s",
              err.text);
    return r;
}

static const char *explain(const fixture *f, const char *device)
{
    static char text[300];
    const track_device *d = track_find_device(f->p, device);
    int n = snprintf(text, sizeof text, "%s: ", track_status_text(track_device_status(d)));

    track_explain(d, text + n, sizeof text - (size_t)n);
    return text;
}

Test(tracker_pool, grants_at_once_what_is_free_and_later_what_becomes_free)
{
    fixture f = {0};

    open_pool(&f);
    add(&f, 0, "a");
    cr_assert_null(ask(&f, 10, "ann", NULL));
    cr_assert(f.granted == 1 && f.data == &f);
    cr_assert_str_eq(f.lease->device->entry.name, "a/cpu:0");
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "leased: leased to ann");
    track_request *r = ask(&f, 20, "bob", NULL);
    cr_assert_not_null(r);
    track_lease *first = f.lease;
    track_release(f.p, 30, first);
    cr_assert(f.granted == 2 && f.how == TRACK_RELEASED);
    cr_assert_str_eq(track_user_name(f.lease->job), "bob");
    cr_assert_eq(f.lease->number, 2);
    track_pool_free(f.p);
}

Test(tracker_pool, gives_nothing_of_a_server_that_was_not_dialled_back)
{
    fixture f = {0};

    open_pool(&f);
    track_server *s = offer(&f, 0, "a", &cpu, NULL);
    ask(&f, 0, "ann", NULL);
    cr_assert_eq(f.granted, 0);
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "checking: registered, not dialled back yet");
    track_unreachable(f.p, 1, s, "connection refused at 10.0.0.7:9190");
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "unreachable: registered but unreachable: connection refused at "
                                             "10.0.0.7:9190");
    cr_assert_eq(f.granted, 0);
    track_reachable(f.p, 2, s);
    cr_assert_eq(f.granted, 1);
    track_pool_free(f.p);
}

Test(tracker_pool, ends_leases_that_nobody_renews)
{
    fixture f = {0};

    open_pool(&f);
    track_server *s = add(&f, 0, "a");
    ask(&f, 0, "ann", NULL);
    cr_assert_eq(track_advance(f.p, 1000), 15000, "the server's silence is due first");
    for (int64_t t = 5000; t <= 60000; t += 5000) {
        track_heard(f.p, t, s);
        track_renew(f.p, t, f.lease);
        track_advance(f.p, t);
    }
    cr_assert_eq(f.ended, 0);
    track_heard(f.p, 79000, s);
    track_advance(f.p, 79999);
    cr_assert_eq(f.ended, 0);
    track_advance(f.p, 80000);
    cr_assert(f.ended == 1 && f.how == TRACK_EXPIRED);
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "free: ");
    track_pool_free(f.p);
}

Test(tracker_pool, loses_a_silent_server_and_takes_it_back_with_its_lease)
{
    fixture f = {0};

    open_pool(&f);
    add(&f, 0, "a");
    ask(&f, 0, "ann", NULL);
    track_renew(f.p, 14000, f.lease);
    track_advance(f.p, 15000);
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "leased: leased to ann");
    add(&f, 16000, "a");
    cr_assert(f.lease && track_device_status(f.lease->device) == TRACK_LEASED);
    track_release(f.p, 17000, f.lease);
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "free: ");
    track_advance(f.p, 40000);
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "lost: no heartbeat for 15 s");
    cr_assert(track_forget(f.p, track_find_server(f.p, "a")));
    cr_assert_null(track_find_device(f.p, "a/cpu:0"));
    track_pool_free(f.p);
}

Test(tracker_pool, forgets_servers_that_stay_lost_and_hold_nothing)
{
    fixture f = {0};

    open_pool(&f);
    add(&f, 0, "a");
    add(&f, 0, "b");
    add(&f, 0, "c");
    ask(&f, 0, "ann", "b/cpu:0");
    track_set_aside(f.p, 0, track_find_device(f.p, "c/cpu:0"), "hot", NULL);
    for (const char *name = "abc"; *name; name++)
        track_lose(f.p, 10, track_find_server(f.p, (char[]){*name, 0}), "gone");
    track_forget_lost(f.p, 109, 100);
    cr_assert_eq(track_servers(f.p)->n, 3);
    track_forget_lost(f.p, 110, 100);
    cr_assert(!track_find_server(f.p, "a") && track_find_server(f.p, "b") && track_find_server(f.p, "c"));
    track_pool_free(f.p);
}

Test(tracker_pool, drains_a_server_after_its_leases)
{
    fixture f = {0};

    open_pool(&f);
    track_server *s = add(&f, 0, "a");
    ask(&f, 0, "ann", NULL);
    track_drain(f.p, 1, s, true);
    track_release(f.p, 2, f.lease);
    ask(&f, 3, "bob", NULL);
    cr_assert_eq(f.granted, 1);
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "draining: its server ends once its leases have ended");
    track_drain(f.p, 4, s, false);
    cr_assert_eq(f.granted, 2);
    track_pool_free(f.p);
}

Test(tracker_pool, sets_a_device_aside_with_a_reason)
{
    fixture f = {0};

    open_pool(&f);
    add(&f, 0, "a");
    track_set_aside(f.p, 1, track_find_device(f.p, "a/cpu:0"), "12 % slower than its class", NULL);
    ask(&f, 2, "ann", NULL);
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "set aside: 12 % slower than its class");
    cr_assert_eq(f.granted, 0);
    track_set_aside(f.p, 3, track_find_device(f.p, "a/cpu:0"), NULL, NULL);
    cr_assert_eq(f.granted, 1);
    track_pool_free(f.p);
}

Test(tracker_pool, gives_the_device_that_a_request_prefers)
{
    fixture f = {0};

    open_pool(&f);
    add(&f, 0, "a");
    add(&f, 0, "b");
    add(&f, 0, "c");
    ask(&f, 1, "ann", "b/cpu:0");
    cr_assert_str_eq(f.lease->device->entry.name, "b/cpu:0");
    ask(&f, 1, "ann", "b/cpu:0");
    cr_assert_str_eq(f.lease->device->entry.name, "a/cpu:0", "b is taken: the longest free one");
    track_pool_free(f.p);
}

Test(tracker_pool, forgets_requests_that_are_withdrawn)
{
    fixture f = {0};

    open_pool(&f);
    add(&f, 0, "a");
    ask(&f, 1, "ann", NULL);
    track_request *r = ask(&f, 1, "bob", NULL);
    ask(&f, 1, "cid", NULL);
    track_withdraw(f.p, 2, r);
    track_release(f.p, 3, f.lease);
    cr_assert_str_eq(track_user_name(f.lease->job), "cid");
    track_pool_free(f.p);
}

Test(tracker_pool, keeps_leases_and_reasons_over_a_restart)
{
    fixture f = {0};
    tec_error err = {0};
    track_memory m = {7, "a/cpu:0", "rpi4", "ann", "1", "key", 10, 20000};

    open_pool(&f);
    cr_assert(track_restore_class(f.p, "rpi4", "bcm2711", &err), "%s", err.text);
    cr_assert(track_restore(f.p, 0, &m, &err), "%s", err.text);
    cr_assert(track_restore_aside(f.p, 0, "b/cpu:0", "rpi4", "hot", &err), "%s", err.text);
    add(&f, 5, "a");
    add(&f, 5, "b");
    ask(&f, 6, "bob", NULL);
    cr_assert_eq(f.granted, 0, "one is leased, one is set aside");
    track_lease *l = track_find_lease(f.p, 7);
    cr_assert(l && l->restored);
    cr_assert_str_eq(l->owner, "key");
    track_release(f.p, 10, l);
    cr_assert(f.granted == 1 && f.lease->number == 8);
    track_pool_free(f.p);
}

Test(tracker_pool, ends_restored_leases_of_servers_that_never_come_back)
{
    fixture f = {0};
    track_memory m = {7, "a/cpu:0", "rpi4", "ann", "1", "key", 10, 20000};

    open_pool(&f);
    cr_assert(track_restore(f.p, 0, &m, NULL));
    track_advance(f.p, 20000);
    cr_assert(f.ended == 1 && f.how == TRACK_EXPIRED);
    cr_assert_str_eq(explain(&f, "a/cpu:0"), "lost: not registered since the tracker started");
    track_pool_free(f.p);
}

Test(tracker_pool, refuses_a_device_of_another_fingerprint)
{
    fixture f = {0};
    tec_error err = {0};
    track_offered other = cpu;

    open_pool(&f);
    add(&f, 0, "a");
    other.fingerprint = "bcm2712";
    cr_assert_null(offer(&f, 0, "b", &other, &err));
    cr_assert_str_eq(err.text, "devices of class 'rpi4' have the fingerprint 'bcm2711', but this device has "
                               "'bcm2712': give it another class");
    cr_assert_null(track_find_server(f.p, "b"));
    track_pool_free(f.p);
}

Test(tracker_pool, refuses_wrong_registrations_and_requests)
{
    fixture f = {0};
    track_request *r;
    track_offered twice[] = {cpu, cpu}, unnamed = cpu;

    open_pool(&f);
    add(&f, 0, "a");
#define REFUSED(call, said)                                                                                  \
    do {                                                                                                     \
        tec_error err = {0};                                                                                 \
        cr_assert_not(call);                                                                                 \
        cr_assert(strstr(err.text, said), "%s", err.text);                                                   \
    } while (0)
    unnamed.name = "";
    REFUSED(offer(&f, 0, "a", &cpu, &err), "a server named 'a' is registered already, at 10.0.0.7:9190");
    REFUSED(offer(&f, 0, "a/b", &cpu, &err), "the server's name 'a/b' has a '/'");
    REFUSED(offer(&f, 0, "b\n", &cpu, &err), "the name of a server has the control character 0x0a");
    REFUSED(offer(&f, 0, "b", &unnamed, &err), "the name of a device has 0 bytes");
    REFUSED(track_register(f.p, 0, &(track_offer){"b", "x:1", twice, 2}, &err),
            "server 'b' offers 'cpu:0' twice");
    REFUSED(track_register(f.p, 0, &(track_offer){"b", "x:1", twice, 0}, &err),
            "server 'b' offers 0 devices");
    unnamed = cpu;
    char wordy[300];
    memset(wordy, 'x', sizeof wordy);
    wordy[sizeof wordy - 1] = 0;
    unnamed.hardware = wordy;
    REFUSED(offer(&f, 0, "b", &unnamed, &err),
            "the hardware of device 'cpu:0' has 299 bytes; expected at most 200");
    REFUSED(track_ask(f.p, 0, &(track_wish){"rpi5", "ann", "1", 0, NULL, NULL, 0, NULL}, &r, &err),
            "there is no device class 'rpi5'; there are: rpi4");
    REFUSED(track_ask(f.p, 0, &(track_wish){"rpi4", "ann", "1", 101, NULL, NULL, 0, NULL}, &r, &err),
            "expected a priority from 1 to 100, found 101");
    REFUSED(track_ask(f.p, 0, &(track_wish){"rpi4", "", "1", 0, NULL, NULL, 0, NULL}, &r, &err),
            "the name of a user has 0 bytes");
    REFUSED(track_set_weight(f.p, "ann", 0, &err), "the weight of user 'ann' is 0; expected 0.001 to 1000");
    track_pool_free(f.p);
}

/* ---- what a job can spare ---- */

static void ask_as(fixture *f, int64_t now, const char *job)
{
    tec_error err = {0};
    track_request *request;

    cr_assert(track_ask(f->p, now, &(track_wish){"rpi4", "ann", job, 0, NULL, NULL, 0, f}, &request, &err),
              "%s", err.text);
}

static track_lease *lease_of(const track_entry *entry)
{
    return (track_lease *)((char *)(uintptr_t)entry - offsetof(track_lease, entry));
}

static int leases_of(const fixture *f, const char *job)
{
    int n = 0;

    for (const track_entry *e = track_leases(f->p)->first; e; e = e->later)
        n += strcmp(lease_of(e)->job->entry.name, job) == 0;
    return n;
}

/* What runners do when their time on a device is over: those that were told that others wait give it
 * back, and ask again. How many did. */
static int take_turns(fixture *f, int64_t now)
{
    int64_t given[16];
    const char *job[16];
    int n = 0;

    for (const track_entry *e = track_leases(f->p)->first; e; e = e->later)
        if (track_wanted(f->p, lease_of(e)) > 0) {
            job[n] = strcmp(lease_of(e)->job->entry.name, "one") == 0 ? "one" : "two";
            given[n++] = lease_of(e)->number;
        }
    for (int i = 0; i < n; i++)
        track_release(f->p, now, track_find_lease(f->p, given[i]));
    for (int i = 0; i < n; i++)
        ask_as(f, now, job[i]);
    return n;
}

/* Two jobs that ask for all devices, as tuning jobs do: neither stands still while the other one has
 * them all. */
Test(tracker_pool, asks_a_job_for_the_devices_above_its_share)
{
    for (int devices = 1; devices <= 5; devices++) {
        fixture f = {0};
        int turns[2] = {0}, moved = 0;

        open_pool(&f);
        for (int i = 0; i < devices; i++)
            add(&f, 0, (char[]){(char)('a' + i), '\0'});
        for (int i = 0; i < 8; i++)
            ask_as(&f, 0, "one");
        cr_assert_eq(leases_of(&f, "one"), devices);
        cr_assert_eq(take_turns(&f, 10), 0, "nobody else waits");
        for (int i = 0; i < 8; i++)
            ask_as(&f, 20, "two");
        for (int now = 1; now <= 20; now++) {
            moved = take_turns(&f, 10000 * now);
            turns[0] += leases_of(&f, "one") > 0;
            turns[1] += leases_of(&f, "two") > 0;
            cr_assert(devices == 1 || (leases_of(&f, "one") && leases_of(&f, "two")),
                      "%d devices: a job has none in turn %d", devices, now);
        }
        cr_assert_eq(moved, devices % 2, "%d devices: %d go to and fro", devices, moved);
        cr_assert(turns[0] >= 10 && turns[1] >= 10);
        track_pool_free(f.p);
    }
}

Test(tracker_pool, survives_a_failure_of_each_allocation)
{
    bool failed = true;

    for (int64_t n = 1; failed; n++) {
        int64_t live = rt_alloc_live();
        fixture f = {0};
        track_request *r;
        tec_error err = {0};

        open_pool(&f);
        rt_alloc_fail_at(n);
        track_server *s = offer(&f, 0, "a", &cpu, &err);
        if (s) {
            track_reachable(f.p, 0, s);
            track_ask(f.p, 0, &(track_wish){"rpi4", "ann", "1", 0, "a/cpu:0", "k", 0, NULL}, &r, &err);
            if (f.lease)
                track_release(f.p, 5, f.lease);
        }
        failed = err.status != TEC_OK || f.ended == 0;
        rt_alloc_fail_at(0);
        track_pool_free(f.p);
        cr_assert_eq(rt_alloc_live(), live, "allocation %lld failed and %lld are left", (long long)n,
                     (long long)(rt_alloc_live() - live));
        cr_assert_lt(n, 1000);
    }
}
