/* tests/autotune/queue.c -- the queue with stand-ins for devices: they answer out of order, are lost, are
 * not to be trusted; what is handed on and what is proposed does not depend on that.
 */
#include "autotune/queue.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "tests/autotune/fake.h"

/* A device whose times follow from the module alone, and who takes its time at random. */
typedef struct {
    tune_runner runner; /* first */
    const char *name;
    uint64_t random;
    int sleep_us;         /* at most, for each */
    int lost_one_in;      /* of the questions, at random; 0: none */
    int lose, cut, doubt; /* so many questions from now on are answered by the device's end, or so */
    int lose_at;          /* the number of the question that its end answers; 0: none */
    double slower;        /* the share by which it gets slower with each question */
    int unchecked;        /* measurements without a check: anchors */
    int fail_to_prepare;  /* leaves at once */
    int forget_at;        /* the number of a question before which it loses its reference outputs; 0: none */
    bool has_reference;
    atomic_int asked, prepared, switches, kept, vain; /* vain: asked to measure without them */
    uint64_t arguments;                               /* of the last question */
    bool looks_ahead;
    uint64_t told; /* the module that it was told of, a hash */
    atomic_int foreseen;
    double cost[WORKER_MAX_COSTS];
    bool stopped;
} device;

enum { DEVICES = 4 };
static device devices[DEVICES];
static tune_measurer *m;

static tune_readiness stand_ready(tune_runner *r, char why[TUNE_WHY])
{
    device *d = (device *)r;

    d->prepared++;
    d->has_reference = false;
    tune_runner_has(r, d->name, "stand-in", "driver 7");
    snprintf(why, TUNE_WHY, "%s", "it was sold");
    return d->fail_to_prepare ? TUNE_LEAVES : TUNE_READY;
}

static void take_time(device *d)
{
    if (d->sleep_us)
        nanosleep(
            &(struct timespec){.tv_nsec = (long)(base_random(&d->random) % (uint64_t)d->sleep_us) * 1000},
            NULL);
}

/* Answers as a device of a pool might: late, never, or not as one should. The cost follows from the module's
 * bytes, so that the same candidate costs the same on each device. */
static tune_asked stand_ask(tune_runner *r, uint32_t question, const worker_job *j, double seconds,
                            worker_answer *a, double *costs, tune_failure *f)
{
    device *d = (device *)r;
    bool lost = d->lose > 0 || d->asked + 1 == d->lose_at ||
                (d->lost_one_in && base_random(&d->random) % (uint64_t)d->lost_one_in == 0);
    uint64_t state = base_hash(j->modules[0].data, j->modules[0].size, 7);

    (void)seconds;
    (void)costs;
    take_time(d);
    d->switches += d->asked++ > 0 && d->arguments != j->arguments;
    d->arguments = j->arguments;
    d->foreseen += d->told == base_hash(j->modules[0].data, j->modules[0].size, 7);
    d->told = r->ahead.n ? base_hash(r->ahead.data, r->ahead.n, 7) : 0;
    snprintf(f->error, sizeof f->error, "the board burns");
    d->lose -= d->lose > 0;
    if (lost || d->cut > 0 || d->doubt > 0) {
        bool cut = !lost && d->cut > 0;

        d->cut -= cut;
        d->doubt -= !lost && !cut;
        r->lost++;
        return lost ? TUNE_ASK_LOST : cut ? TUNE_ASK_CUT : TUNE_ASK_DOUBTED;
    }
    d->has_reference = question == WORKER_KEEP || (d->has_reference && d->asked != d->forget_at);
    d->kept += question == WORKER_KEEP;
    if (j->check && !d->has_reference) {
        d->vain++;
        *a = (worker_answer){.outcome = WORKER_NO_REFERENCE, .stage = "check"};
        return TUNE_ASK_ANSWERED;
    }
    for (int i = 0; i < 3; i++)
        d->cost[i] = 1e-3 * (1 + base_random_unit(&state)) * (1 + d->slower * d->asked);
    d->unchecked += question == WORKER_MEASURE && !j->check;
    *a = (worker_answer){.n_costs = 3, .costs = {d->cost, d->cost}, .clock_mhz = 1500, .temperature = 41.5};
    for (int i = 1; i < 3; i++)
        d->cost[i] = d->cost[0];
    return TUNE_ASK_ANSWERED;
}

static void stand_renew(tune_runner *r)
{
    (void)r;
}
static void stand_stop(tune_runner *r)
{
    ((device *)r)->stopped = true;
}
static void stand_close(tune_runner *r)
{
    stand_stop(r);
    rt_bytes_free(&r->ahead);
}

/* n devices; they are asked only while somebody waits and nothing is built where `turns` is true. */
static void open_queue(int n, bool turns)
{
    static const char *const names[DEVICES] = {"a/cpu:0", "b/cpu:0", "c/cpu:0", "d/cpu:0"};
    tune_queue *q = tune_queue_new(
        fake.cx, &(tune_queue_options){.measure = {.builder = TEC_BINARY_DIR "/tec", .builders = 2},
                                       .takes_turns = turns});

    cr_assert(q, "%s", tec_context_error(fake.cx));
    m = tune_queue_measurer(q);
    for (int i = 0; i < n; i++) {
        devices[i].name = names[i];
        devices[i].random = (uint64_t)i + 1;
        devices[i].runner = (tune_runner){.prepare = stand_ready,
                                          .ask = stand_ask,
                                          .renew = stand_renew,
                                          .stop = stand_stop,
                                          .looks_ahead = devices[i].looks_ahead,
                                          .close = stand_close};
        cr_assert(tune_queue_add(fake.cx, q, &devices[i].runner));
    }
}

static void open_all(void)
{
    fake_open();
    memset(devices, 0, sizeof devices);
}

static void close_all(void)
{
    if (m)
        m->close(m);
    m = NULL;
    fake_close();
}
TestSuite(queue, .init = open_all, .fini = close_all, .timeout = 300);

/* Traces of the first task, as many as are asked for. */
static const char *const traces[] = {"",
                                     "split(C.y, _, 4)\n",
                                     "split(C.y, _, 8)\n",
                                     "split(C.y, _, 16)\n",
                                     "split(C.x, _, 4)\n",
                                     "split(C.x, _, 8)\n",
                                     "split(C.x, _, 16)\n",
                                     "vectorize(C.x)\n"};

static void submit(const tune_task *t, int n)
{
    for (int i = 0; i < n; i++) {
        const tune_candidate c = {.task = t, .trace = traces[i], .seed = 1};

        cr_assert(m->submit(m, fake.cx, &c, 1), "%s", tec_context_error(fake.cx));
    }
}

static void collect(const tune_task *t, tune_result *r, int n)
{
    for (int got = 0, k; got < n; got += k) {
        k = m->collect(m, fake.cx, t, r + got, n - got, INFINITY);
        cr_assert(k > 0, "%s", tec_context_error(fake.cx));
    }
}

/* ---- order ---- */

/* The same candidates by one device, then by four that answer at random times: equal costs at equal
 * places. */
Test(queue, hands_on_in_the_order_of_submission)
{
    tune_result one[8], four[8];

    open_queue(1, false);
    submit(fake.task[0], 8);
    collect(NULL, one, 8);
    m->close(m);
    for (int i = 0; i < DEVICES; i++)
        devices[i].sleep_us = 40000;
    open_queue(4, false);
    submit(fake.task[0], 8);
    collect(NULL, four, 8);
    for (int i = 0; i < 8; i++) {
        cr_assert_eq(four[i].status, STORE_OK, "%s", four[i].error);
        cr_assert_eq(four[i].median, one[i].median, "result %d", i);
    }
    int at_work = 0;
    for (int i = 0; i < DEVICES; i++)
        at_work += devices[i].asked > 0;
    cr_assert_geq(at_work, 2);
}

Test(queue, says_what_has_measured)
{
    const tune_device *d;
    tune_result r;

    open_queue(1, false);
    submit(fake.task[0], 1);
    collect(fake.task[0], &r, 1);
    cr_assert_str_eq(r.device, "a/cpu:0");
    cr_assert_str_eq(r.device_text, "stand-in");
    cr_assert_str_eq(r.driver, "driver 7");
    cr_assert_eq(r.clock_mhz, 1500);
    cr_assert_eq(r.temperature, 41.5);
    cr_assert_eq(m->devices(m, fake.cx, &d), 1);
    cr_assert_str_eq(d[0].name, "a/cpu:0");
    cr_assert_eq(d[0].trials, 1);
}

/* Two tasks and two devices: each device changes its task once at most, when the other task is all that is
 * left. */
Test(queue, a_task_keeps_to_its_device)
{
    tune_result r[16];

    for (int i = 0; i < 2; i++)
        devices[i].sleep_us = 5000;
    open_queue(2, true);
    for (int i = 0; i < 6; i++)
        for (int t = 0; t < 3; t += 2) {
            const tune_candidate c = {.task = fake.task[t], .trace = traces[i], .seed = 1};

            cr_assert(m->submit(m, fake.cx, &c, 1));
        }
    collect(NULL, r, 12);
    cr_assert_leq(devices[0].switches + devices[1].switches, 2);
    cr_assert_eq(devices[0].asked + devices[1].asked, 12);
}

/* Candidates that are checked, one after the other. */
static void check_some(int n)
{
    tune_result r;

    for (int i = 0; i < n; i++) {
        const tune_candidate c = {.task = fake.task[0], .trace = traces[i], .seed = 1, .check = true};

        cr_assert(m->submit(m, fake.cx, &c, 1));
        collect(NULL, &r, 1);
        cr_assert_eq(r.status, STORE_OK, "%s", r.error);
    }
}

/* A question to measure is a run in a device's log: none is asked in vain, also not of the next device. */
Test(queue, a_device_has_the_reference_outputs_before_it_measures)
{
    open_queue(1, false);
    check_some(3);
    cr_assert_eq(devices[0].kept, 1);
    devices[0].lose = 1;
    check_some(3);
    cr_assert_eq(devices[0].prepared, 2);
    cr_assert_eq(devices[0].kept, 2);
    cr_assert_eq(devices[0].vain, 0);
}

/* A device that says that it has them no more is given them again. */
Test(queue, a_device_that_lost_the_reference_outputs_gets_them_again)
{
    open_queue(1, false);
    devices[0].forget_at = 3;
    check_some(4);
    cr_assert_eq(devices[0].vain, 1);
    cr_assert_eq(devices[0].kept, 2);
    cr_assert_eq(devices[0].asked, 4 + 2 + 1);
}

/* All are built before the first is measured: each device knows what comes next, and no two of them the same.
 * What a device that is lost was told of goes to others. */
Test(queue, a_device_is_told_what_it_measures_next)
{
    tune_result r[8];

    devices[0].looks_ahead = true;
    open_queue(1, true);
    submit(fake.task[0], 8);
    collect(NULL, r, 8);
    cr_assert_eq(devices[0].foreseen, 7);
    m->close(m);
    for (int i = 0; i < 2; i++)
        devices[i] = (device){.looks_ahead = true, .sleep_us = 5000, .lose = i};
    open_queue(2, true);
    submit(fake.task[0], 8);
    collect(NULL, r, 8);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(r[i].status, STORE_OK, "%s", r[i].error);
    cr_assert_eq(devices[0].asked + devices[1].asked, 9);
    cr_assert_geq(devices[0].foreseen + devices[1].foreseen,
                  5); /* not the first two, and one that was lost */
}

/* ---- devices that go ---- */

Test(queue, a_trial_whose_device_is_lost_is_measured_again)
{
    tune_result r[3];

    devices[0].lose = 1;
    open_queue(1, false);
    submit(fake.task[0], 3);
    collect(NULL, r, 3);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(r[i].status, STORE_OK, "%s", r[i].error);
    cr_assert_eq(devices[0].prepared, 2, "it got another device");
    cr_assert_eq(devices[0].asked, 4);
    cr_assert_eq(m->stats(m).repeated, 1);
    cr_assert_eq(m->stats(m).runners_lost, 1);
}

Test(queue, a_candidate_that_loses_two_devices_is_poisoned)
{
    tune_result r[2];

    devices[0].lose = 2;
    open_queue(1, true);
    submit(fake.task[0], 2);
    collect(NULL, r, 2);
    cr_assert_eq(r[0].status, STORE_RUN_ERROR);
    cr_assert_str_eq(r[0].error_kind, "poisoned");
    cr_assert_str_eq(r[0].error, "2 devices were lost while it ran: the board burns");
    cr_assert_eq(r[1].status, STORE_OK, "%s", r[1].error);
}

/* Seven connections that break cost nothing; eight are no coincidence either. */
Test(queue, a_candidate_outlives_connections_that_break_but_not_any_number)
{
    tune_result r[2];

    devices[0].cut = 7 + 8;
    open_queue(1, true);
    for (int i = 0; i < 2; i++) {
        submit(fake.task[i], 1);
        collect(NULL, &r[i], 1);
    }
    cr_assert_eq(r[0].status, STORE_RUN_ERROR);
    cr_assert_str_eq(r[0].error_kind, "poisoned");
    cr_assert_str_eq(r[0].error, "8 connections to devices broke while it ran: the board burns");
    cr_assert_eq(r[1].status, STORE_OK, "%s", r[1].error);
    cr_assert_eq(m->stats(m).repeated, 7 + 7);
}

/* However often: the device is at fault, and not what it measured. */
Test(queue, a_device_that_is_not_trusted_poisons_nobody)
{
    tune_result r[2];

    devices[0].doubt = 5;
    open_queue(1, false);
    submit(fake.task[0], 2);
    collect(NULL, r, 2);
    cr_assert_eq(r[0].status, STORE_OK, "%s", r[0].error);
    cr_assert_eq(r[1].status, STORE_OK, "%s", r[1].error);
    cr_assert_eq(m->stats(m).repeated, 5);
}

Test(queue, says_why_no_device_is_left)
{
    tune_result r;

    devices[0].fail_to_prepare = 1;
    open_queue(1, false);
    const tune_candidate c = {.task = fake.task[0], .seed = 1};
    bool submitted = m->submit(m, fake.cx, &c, 1);
    cr_assert(!submitted || m->collect(m, fake.cx, NULL, &r, 1, INFINITY) == -1);
    cr_assert(strstr(tec_context_error(fake.cx), "measuring: no device is left: it was sold"), "%s",
              tec_context_error(fake.cx));
}

Test(queue, a_pair_is_measured_by_one_device)
{
    const tune_candidate a = {.task = fake.task[0], .seed = 1},
                         b = {.task = fake.task[0], .trace = traces[1], .seed = 1};
    tune_result r[2];

    devices[0].lose = 1;
    open_queue(2, false);
    cr_assert(m->submit_pair(m, fake.cx, &a, &b));
    cr_assert_eq(m->collect_pair(m, fake.cx, r, INFINITY), 1);
    cr_assert(r[0].status == STORE_OK && r[1].status == STORE_OK);
    cr_assert_str_eq(r[0].device, r[1].device);
    cr_assert_eq(m->collect_pair(m, fake.cx, r, 0), 0);
}

/* ---- sessions ---- */

/* All trials of the job in their order: number, batch, task, trace; each is stored once. */
static const char *trials_of(const char *job)
{
    store_query q = {.job = job};
    base_vec line = {0};
    base_text all = {0};
    store_record r;

    for (int i = 0; i < 256; i++)
        base_push(fake.cx, &line, NULL);
    store_cursor *c = store_find(fake.cx, fake.db, &q);
    while (store_next(fake.cx, c, &r)) {
        cr_assert(r.trial >= 0 && r.trial < line.n && strcmp(r.tuner, TUNE_ADOPTED) != 0);
        cr_assert_null(line.at[r.trial], "trial %lld is stored twice", (long long)r.trial);
        cr_assert_eq(r.status, STORE_OK, "%s", r.error);
        line.at[r.trial] = base_format(fake.cx, "%lld %lld %s %.17g\n%s", (long long)r.trial,
                                       (long long)r.batch, r.workload.summary, r.median, r.trace);
    }
    cr_assert(store_end(c));
    for (int i = 0; i < line.n && line.at[i]; i++)
        base_addf(fake.cx, &all, "%s\n", (char *)line.at[i]);
    return base_text_str(fake.cx, &all);
}

/* Four devices that become slower, each at its own pace: a candidate and the default schedule on the same
 * device have the same ratio all the time. */
Test(queue, says_what_the_default_schedule_takes_there_and_then)
{
    enum { N = 7, ROUNDS = 6 };
    tune_result first[N], r[N];
    int anchors = 0;

    for (int i = 0; i < DEVICES; i++)
        devices[i].slower = 0.001 * i;
    open_queue(DEVICES, false);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            const tune_candidate c = {.task = fake.task[0], .trace = traces[i + 1], .seed = 1, .check = true};

            cr_assert(m->submit(m, fake.cx, &c, 1), "%s", tec_context_error(fake.cx));
        }
        collect(fake.task[0], r, N);
        for (int i = 0; i < N; i++) {
            cr_assert(r[i].status == STORE_OK && r[i].anchor > 0);
            if (round > 0)
                cr_expect_float_eq(r[i].median / r[i].anchor, first[i].median / first[i].anchor, 0.05);
        }
        if (round == 0)
            memcpy(first, r, sizeof first);
    }
    for (int i = 0; i < DEVICES; i++)
        anchors += devices[i].unchecked;
    cr_expect(anchors >= ROUNDS * N / 8 && anchors <= ROUNDS * N / 8 + DEVICES, "%d anchors for %d trials",
              anchors, ROUNDS * N);
}

/* A device that is lost while the default schedule is measured again is another one from then on, and the
 * trial before keeps its result. */
Test(queue, a_device_that_is_lost_at_an_anchor_costs_no_trial)
{
    const tune_candidate c = {.task = fake.task[0], .trace = traces[1], .seed = 1, .check = true};
    tune_result r;

    devices[0].lose_at = 3; /* the reference outputs, the candidate, its anchor */
    open_queue(1, false);
    cr_assert(m->submit(m, fake.cx, &c, 1), "%s", tec_context_error(fake.cx));
    collect(fake.task[0], &r, 1);
    cr_expect(r.status == STORE_OK && r.n_costs == 3 && r.anchor == 0);
    cr_assert(m->submit(m, fake.cx, &c, 1), "%s", tec_context_error(fake.cx));
    collect(fake.task[0], &r, 1);
    cr_expect(r.status == STORE_OK && r.anchor > 0);
    cr_expect_eq(devices[0].prepared, 2);
    cr_expect_eq(m->stats(m).repeated, 0);
}

/* A job from nothing, with n devices, in a store of its own. Its trials, in `cx`. */
static const char *tune(tec_context *cx, int n, const char *job)
{
    fake_end();
    fake_remove(fake.path);
    fake_begin();
    open_queue(n, false);
    tune_options o = fake_options(2);
    o.measurer = m;
    o.job = job;
    o.trials = 48;
    tune_session *s = fake_run(&o);
    cr_assert_eq(tune_session_end(s), TUNE_TRIALS, "%s", tec_context_error(fake.cx));
    tune_session_close(s);
    m->close(m);
    m = NULL;
    return base_strdup(cx, trials_of(job));
}

Test(queue, proposals_do_not_depend_on_who_answers_when)
{
    tec_context *cx = tec_context_new();
    const char *one = tune(cx, 1, "one");

    cr_assert(strlen(one) > 1000);
    for (int i = 0; i < DEVICES; i++)
        devices[i].sleep_us = 60000;
    cr_assert_str_eq(tune(cx, 4, "four"), one, "four devices, out of order");
    for (int i = 0; i < DEVICES; i++) {
        devices[i].sleep_us = 5000;
        devices[i].doubt = 3;
    }
    cr_assert_str_eq(tune(cx, 3, "faults"), one, "devices that are set aside");
    tec_context_free(cx);
}
