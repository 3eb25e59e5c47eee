/* tests/autotune/fake.h -- a measurer whose times follow from the trace alone, so that two runs can be
 * compared; and a store to measure into.
 *
 *     fake_open(); tune_options o = fake_options(1); tune_session *s = tune_session_new(fake.cx, &o);
 *         ... fake_close();
 */
#ifndef TESTS_AUTOTUNE_FAKE_H
#define TESTS_AUTOTUNE_FAKE_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "autotune/explorer.h"
#include "autotune/session.h"
#include "autotune/source.h"
#include "te/text.h"

enum { FAKE_QUEUE = 1024, FAKE_TASKS = 3 };

typedef struct {
    tune_measurer measurer; /* first: the measurer is the fake */
    tec_context *cx;
    char path[64];
    store *db;
    const tune_task *task[FAKE_TASKS];
    tune_candidate queue[FAKE_QUEUE];
    int first, n;                         /* waiting */
    int measured, most_waiting, compared; /* in all */
    base_dict seen;
    bool native;       /* tasks are for this machine, to be run by real measurers */
    bool again;        /* something was measured twice */
    int fail_one_in;   /* of the candidates, by their trace; 0: none */
    bool wrong;        /* what fails gives a wrong answer */
    bool no_default;   /* the default schedule does not run */
    int sleep_us;      /* for each */
    double advantage;  /* of the second one in a comparison, as a share */
    const char *rival; /* the second one of the pair that waits */
    bool symbolic;     /* task 0 has an extent with a range */
    double noise;      /* of comparisons: the share by which pairs differ at random */
    double ramp;       /* the share by which the machine gets slower with each measurement */
    bool anchored;     /* results say what the default schedule takes at their time */
    bool fair;         /* comparisons tell the true costs */
    const char *flat;  /* the task whose candidates all cost the same; NULL: none */
    double scatter;    /* of the repeats of a trial: the share by which they differ at random */
    uint64_t random;   /* for that */
    const tune_candidate *pair[2];
} fake_state;
static fake_state fake;

/* At each extent another schedule is the fastest. */
static double fake_cost(const tune_candidate *c)
{
    if (fake.flat && strcmp(c->task->name, fake.flat) == 0)
        return 1e-3;
    uint64_t state = base_hash(c->trace, strlen(c->trace), c->task->extents ? (uint64_t)c->task->dims[0] : 7);

    return 1e-3 * (1 + base_random_unit(&state));
}

static bool fake_fails(const tune_candidate *c)
{
    if (strcmp(c->trace, c->task->default_trace) == 0)
        return fake.no_default;
    return fake.fail_one_in && base_hash(c->trace, strlen(c->trace), 11) % (uint64_t)fake.fail_one_in == 0;
}

static tune_result fake_result(tec_context *cx, const tune_candidate *c)
{
    enum { REPEATS = 3 };
    const tune_candidate standard = {.task = c->task, .trace = c->task->default_trace};
    double *cost = base_array(cx, double, REPEATS), slow = 1 + fake.ramp * fake.measured;
    tune_result good = {.status = STORE_OK,
                        .stage = "",
                        .error_kind = "",
                        .error = "",
                        .costs = cost,
                        .n_costs = REPEATS,
                        .anchor = fake.anchored ? slow * fake_cost(&standard) : 0,
                        .checked = c->check};

    if (fake_fails(c))
        return fake.wrong ? (tune_result){.status = STORE_WRONG,
                                          .stage = "check",
                                          .error_kind = "wrong answer",
                                          .error = "C[0, 0] is 1, expected 2"}
                          : (tune_result){.status = STORE_RUN_ERROR,
                                          .stage = "run",
                                          .error_kind = "SIGSEGV",
                                          .error = "signal 11"};
    for (int i = 0; i < REPEATS; i++)
        cost[i] = slow * fake_cost(c) * (1 + fake.scatter * (base_random_unit(&fake.random) - 0.5));
    store_summarise(cost, REPEATS, &good.median, &good.spread);
    return good;
}

static bool fake_submit(tune_measurer *m, tec_context *cx, const tune_candidate *c, int n)
{
    (void)m;
    for (int i = 0; i < n; i++) {
        const char *key = base_format(fake.cx, "%s %s", c[i].task->name, c[i].trace);

        fake.again |= base_dict_has(&fake.seen, key);
        base_dict_put(fake.cx, &fake.seen, key, key);
        if (fake.n == FAKE_QUEUE)
            return base_fail(cx, TEC_INTERNAL, (base_loc){0}, "too many candidates");
        fake.queue[(fake.first + fake.n++) % FAKE_QUEUE] = c[i];
    }
    fake.most_waiting = fake.n > fake.most_waiting ? fake.n : fake.most_waiting;
    return true;
}

static int fake_collect(tune_measurer *m, tec_context *cx, const tune_task *task, tune_result *out, int max,
                        double seconds)
{
    int n = 0;

    (void)m;
    (void)task;
    (void)seconds;
    for (; n < max && fake.n > 0; n++, fake.n--) {
        if (fake.sleep_us)
            nanosleep(&(struct timespec){.tv_nsec = 1000L * fake.sleep_us}, NULL);
        out[n] = fake_result(cx, &fake.queue[fake.first++ % FAKE_QUEUE]);
        fake.measured++;
    }
    return n;
}

static bool fake_submit_pair(tune_measurer *m, tec_context *cx, const tune_candidate *a,
                             const tune_candidate *b)
{
    (void)m;
    (void)cx;
    fake.pair[0] = base_copy(fake.cx, a, sizeof *a);
    fake.pair[1] = base_copy(fake.cx, b, sizeof *b);
    fake.rival = b->trace;
    return true;
}

static int fake_collect_pair(tune_measurer *m, tec_context *cx, tune_result out[2], double seconds)
{
    enum { PAIRS = 15 };
    double *cost[2] = {base_array(cx, double, PAIRS), base_array(cx, double, PAIRS)};
    uint64_t state = base_hash(fake.rival, strlen(fake.rival), 3);

    (void)m;
    (void)seconds;
    fake.compared++;
    for (int i = 0; i < PAIRS; i++) {
        cost[0][i] = 1e-3 * (1 + fake.noise * (base_random_unit(&state) - 0.5));
        cost[1][i] = 1e-3 * (1 + fake.noise * (base_random_unit(&state) - 0.5)) / (1 + fake.advantage);
        for (int k = 0; k < 2 && fake.fair; k++)
            cost[k][i] = fake_cost(fake.pair[k]);
    }
    for (int i = 0; i < 2; i++) {
        out[i] = (tune_result){.status = STORE_OK,
                               .stage = "",
                               .error_kind = "",
                               .error = "",
                               .costs = cost[i],
                               .n_costs = PAIRS};
        store_summarise(cost[i], PAIRS, &out[i].median, &out[i].spread);
    }
    return 1;
}

/* A small space that is quickly applied: tiles of the first two loops, with marks. */
static bool fake_tiles(tec_knobs *k, tec_schedule *s, void *user)
{
    const char *const *loop = user;
    int64_t y = tec_knob_choice(k, "y", 1, 2, 4, 8, 16, 32), x = tec_knob_choice(k, "x", 1, 2, 4, 8, 16, 32);
    const char *word = tec_knob_word(k, "y.1", "serial", "unrolled", "parallel"),
               *other = tec_knob_word(k, "x.1", "serial", "unrolled");
    const char *ys[2], *xs[2];

    if (!tec_knobs_done(k))
        return true;
    return tec_split_n(s, loop[0], TEC_GUARD, ys, (int64_t[]){TEC_INFER, y}, 2) &&
           tec_split_n(s, loop[1], TEC_GUARD, xs, (int64_t[]){TEC_INFER, x}, 2) &&
           tec_annotate(s, ys[1], word) && tec_annotate(s, xs[1], other);
}

static const tune_task *fake_task(int i)
{
    static const char *loop[FAKE_TASKS][2] = {{"C.y", "C.x"}, {"S.y", "S.x"}, {"C.y", "C.x"}};
    static const char *const texts[FAKE_TASKS] = {
        "def mm(A: f32[64, 48], B: f32[48, 96]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n",
        "def rows(A: f32[128, 512]) {\n  S[y] = sum[x](A[y, x])\n  return S\n}\n",
        "def mm2(A: f32[32, 48], B: f32[48, 32]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n",
    };
    static const char of_n[] =
        "def mm(n, A: f32[n, 48], B: f32[48, 96]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n";
    static const int64_t large[] = {64};
    bool symbolic = fake.symbolic && i == 0;
    te_file *f = te_parse(fake.cx, "test.te", symbolic ? of_n : texts[i]);
    const target *t =
        fake.native ? target_native(fake.cx) : target_parse(fake.cx, "llvm -mcpu=x86-64-v3 -num-cores=2");

    cr_assert(f && t, "%s", tec_context_error(fake.cx));
    space *sp =
        space_new(fake.cx, sched_new(fake.cx, te_tree(fake.cx, f->defs.at[0]), t), fake_tiles, loop[i]);
    return tune_task_new(
        fake.cx,
        &(tune_task){.def = f->defs.at[0],
                     .target = t,
                     .weight = i + 1,
                     .space = sp,
                     .dims = symbolic ? large : NULL,
                     .extents = symbolic ? tune_extents_new(fake.cx, &(tune_range){.from = 1, .to = 256}, 0)
                                         : NULL});
}

/* A context, tasks and a measurer that has nothing to do; the store stays. */
static inline void fake_begin(void)
{
    fake.cx = tec_context_new();
    for (int i = 0; i < FAKE_TASKS; i++)
        fake.task[i] = fake_task(i);
    fake.measurer = (tune_measurer){.submit = fake_submit,
                                    .collect = fake_collect,
                                    .submit_pair = fake_submit_pair,
                                    .collect_pair = fake_collect_pair};
    fake.first = fake.n = fake.measured = fake.most_waiting = 0;
    fake.seen = (base_dict){0};
    fake.db = store_open(fake.cx, fake.path, NULL);
    cr_assert(fake.task[0] && fake.task[1] && fake.task[2] && fake.db, "%s", tec_context_error(fake.cx));
}

static inline void fake_end(void)
{
    store_close(fake.db);
    tec_context_free(fake.cx);
    fake.db = NULL; /* a test that fails in between closes once more */
    fake.cx = NULL;
}

static inline void fake_open(void)
{
    fake = (fake_state){.path = "/tmp/tec_tune_XXXXXX"};
    cr_assert(mkstemp(fake.path) >= 0);
    unlink(fake.path);
    fake_begin();
}

static inline void fake_remove(const char *path)
{
    static const char *const suffix[] = {"", "-wal", "-shm"};
    char name[128];

    for (int i = 0; i < BASE_COUNT(suffix); i++) {
        snprintf(name, sizeof name, "%s%s", path, suffix[i]);
        unlink(name);
    }
}

static inline void fake_close(void)
{
    fake_end();
    fake_remove(fake.path);
}

/* The first n tasks. */
static inline tune_options fake_options(int n)
{
    return (tune_options){.tasks = fake.task,
                          .n_tasks = n,
                          .measurer = &fake.measurer,
                          .db = fake.db,
                          .job = "job",
                          .seed = 5,
                          .batch = 8};
}

static inline tune_session *fake_session(const tune_options *o)
{
    tune_session *s = tune_session_new(fake.cx, o);

    cr_assert(s, "%s", tec_context_error(fake.cx));
    return s;
}

/* To its end; the session stays open. */
static inline tune_session *fake_run(const tune_options *o)
{
    tune_session *s = fake_session(o);

    while (tune_step(s))
        ;
    return s;
}

#endif
