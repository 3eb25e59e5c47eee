/* autotune/adopt.c -- which schedule is used from now on: the fastest of a task are measured again, in turns
 * with what would be used without them, and one that wins beyond the noise is recorded as adopted.
 *
 * So is the schedule that stands, once, where nothing beats it: otherwise a compiler would take the fastest
 * record, which may be the fastest by luck alone.
 */
#include "autotune/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tec/runtime.h"

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Sorts x. */
static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_number);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Compares n paired times of two schedules by the median of log(a/b), with the median distance as the measure
 * of noise: neither is moved by a few measurements that something else on the machine disturbed. b wins if
 * the gain is above three standard errors and above one percent. *gain and *noise are relative: 0.05 is five
 * percent. For 5 pairs with ratios 1.10, 1.11, 1.09, 1.10 and, disturbed, 2: the median is 0.0953 as a
 * logarithm (10 percent), the median distance 0.0090, the error 3 * 1.2533 * 1.4826 * 0.0090 / sqrt(5) =
 * 0.0226: b wins. */
bool tune_wins(const double *a, const double *b, int n, double *gain, double *noise)
{
    enum { LEAST = 3, MOST = 4096 };
    /* Of normal numbers, a median distance times 1.4826 is the standard deviation, and that of their median
     * is 1.2533 times that of their mean. */
    const double deviation = 1.4826, of_median = 1.2533, errors = 3, least = 0.01;
    double d[MOST];

    *gain = 0;
    *noise = INFINITY;
    n = n < MOST ? n : MOST;
    if (n < LEAST)
        return false;
    for (int i = 0; i < n; i++)
        d[i] = log(a[i] / b[i]);
    double middle = median(d, n);
    for (int i = 0; i < n; i++)
        d[i] = fabs(d[i] - middle);
    double error = errors * of_median * deviation * median(d, n) / sqrt(n);
    *gain = expm1(middle);
    *noise = expm1(error);
    return middle > fmax(error, log1p(least));
}

/* ---- who stands, and who wants to ---- */

/* What was adopted last and still applies; NULL: nothing. */
static const store_record *adopted_before(tune_session *s, const tune_tuned *t)
{
    store_query q = {.exact_key = t->task->task->exact_key,
                     .target = tune_target_key(s->cx, t->task->target),
                     .tuner = TUNE_ADOPTED,
                     .only_ok = true};
    store_cursor *c = store_find(s->cx, s->o.db, &q);
    const store_record *last = NULL;
    store_record r;

    while (store_next(s->cx, c, &r)) {
        base_reset(s->scratch);
        if (sched_replay(tune_task_schedule(s->scratch, t->task), "record", r.trace))
            last = store_keep(s->cx, &r);
    }
    return store_end(c) ? last : NULL;
}

/* The fastest trials that are ok, but not `standing`. */
static int challengers(const tune_tuned *t, const char *standing, tune_sample **out, int most)
{
    int n = 0;

    for (int i = 0; i < t->trials.n; i++) {
        tune_sample *trial = t->trials.at[i];
        int at = n < most ? n : most - 1;

        if (trial->result.status != STORE_OK || strcmp(trial->trace, standing) == 0 ||
            (n == most && trial->result.median >= out[at]->result.median))
            continue;
        for (; at > 0 && out[at - 1]->result.median > trial->result.median; at--)
            out[at] = out[at - 1];
        out[at] = trial;
        n += n < most;
    }
    return n;
}

/* ---- the comparison ---- */

typedef struct {
    tune_session *s;
    tune_tuned *t;
    /* what is used, as far as the contest has come; its result fails until it was measured */
    tune_sample standing;
    bool won;
} contest;

/* Results are checked again: a schedule that is adopted is used from now on by everybody. */
static tune_candidate candidate(const contest *c, const char *trace)
{
    return (tune_candidate){.task = c->t->task, .trace = trace, .seed = c->s->o.seed, .check = true};
}

/* The first comparison says how fast what stood at first is; a later one says how much faster its winner is
 * again. */
static void record_comparison(contest *c, const tune_result r[2], bool won, double gain, double noise)
{
    tune_state *st = &c->t->state;

    if (c->standing.result.status != STORE_OK)
        st->before = st->after = r[0].median;
    if (won) {
        st->after = c->won ? st->after / (1 + gain) : r[1].median;
        st->noise = noise;
    }
}

/* Both in turns, by one device. False: stopped, or an error. */
static bool measure_pair(tune_session *s, const tune_candidate *a, const tune_candidate *b, tune_result r[2])
{
    const double slice = 0.1;
    tune_measurer *m = s->o.measurer;
    int got = m->submit_pair(m, s->cx, a, b) ? 0 : -1;

    while (got == 0) {
        got = m->collect_pair(m, s->cx, r, slice);
        if (got == 0 && tune_is_stopped(s))
            break;
    }
    return got == 1;
}

/* Measures the standing schedule and the challenger in turns, so that a change of the machine's speed meets
 * both alike. True also where nothing was decided because a candidate failed or tuning was stopped. */
static bool challenge(contest *c, const tune_sample *t)
{
    tune_candidate a = candidate(c, c->standing.trace), b = candidate(c, t->trace);
    tune_result r[2];
    double gain, noise, start = tec_clock();
    bool measured = measure_pair(c->s, &a, &b, r);

    c->s->times.compare += tec_clock() - start;
    if (!measured)
        return !base_failed(c->s->cx) && tune_is_stopped(c->s);
    if (r[0].status != STORE_OK || r[1].status != STORE_OK)
        return true; /* who does not run wins nothing */
    bool won = tune_wins(r[0].costs, r[1].costs, r[0].n_costs < r[1].n_costs ? r[0].n_costs : r[1].n_costs,
                         &gain, &noise);
    record_comparison(c, r, won, gain, noise);
    if (won) {
        c->standing.trace = t->trace;
        c->standing.features = t->features;
    }
    if (won || c->standing.result.status != STORE_OK)
        c->standing.result = r[won];
    c->won |= won;
    return true;
}

/* In a record's words: adopted, by this job, after so many trials. */
static bool record_winner(contest *c)
{
    store_record *r = base_new(c->s->cx, store_record);

    c->standing.tuner = TUNE_ADOPTED;
    c->standing.batch = c->s->n_batches;
    c->standing.number = c->s->n_trials;
    *r = tune_record(c->s, c->t, &c->standing);
    c->t->state.adopted = c->won;
    return tune_write_records(c->s, r, 1, STORE_JOB_RUNNING);
}

/* Lets the fastest trials of one task challenge what would be used without them. A record is written when one
 * won, or when the standing schedule was never recorded before. */
static bool adopt_for(tune_session *s, tune_tuned *t)
{
    enum { CHALLENGERS = 3 };
    const store_record *before = adopted_before(s, t);
    contest c = {.s = s, .t = t, .standing = {.trace = before ? before->trace : t->task->default_trace}};
    tune_sample *fastest[CHALLENGERS];
    int n = challengers(t, c.standing.trace, fastest, CHALLENGERS);

    c.standing.result.status = STORE_RUN_ERROR;
    t->state.before = t->state.after = before ? before->median : t->state.first;
    for (int i = 0; i < n && !base_failed(s->cx) && !tune_is_stopped(s); i++)
        if (!challenge(&c, fastest[i]))
            return false;
    bool news = c.won || (!before && c.standing.result.status == STORE_OK);
    return !base_failed(s->cx) && (!news || s->end == TUNE_STOPPED || record_winner(&c));
}

/* One schedule of an earlier code generator. False with an error. */
static bool remeasure(tune_session *s, tune_tuned *t, const store_record *old)
{
    const tune_sample best = {.trace = old->trace};
    contest c = {.s = s, .t = t, .standing = {.trace = t->task->default_trace}};

    c.standing.result.status = STORE_RUN_ERROR;
    if (!challenge(&c, &best))
        return false;
    s->n_stale++;
    s->n_kept += c.won;
    return c.standing.result.status != STORE_OK || tune_is_stopped(s) || record_winner(&c);
}

bool tune_remeasure(tune_session *s)
{
    for (int i = 0; i < s->o.n_tasks && !tune_is_replay(s) && !tune_is_stopped(s); i++) {
        const store_record *old = adopted_before(s, &s->task[i]);

        if (old && strcmp(old->codegen, tec_version()) != 0 &&
            strcmp(old->trace, s->task[i].task->default_trace) != 0 && !remeasure(s, &s->task[i], old))
            return false;
    }
    return !base_failed(s->cx);
}

int tune_session_remeasured(const tune_session *s, int *kept)
{
    *kept = s->n_kept;
    return s->n_stale;
}

/* What this job has adopted already, before it was interrupted or in an earlier call. A job of an earlier
 * version did not keep both times of a comparison: then neither is known. */
static bool recall(tune_session *s, tune_tuned *t)
{
    const double *told = s->told[t - s->task];
    const store_record *r = adopted_before(s, t);
    bool done = s->adopted == s->n_trials || (r && base_same(r->job, s->o.job) && r->trial == s->n_trials);

    if (!done)
        return false;
    t->state.before = told[0];
    t->state.after = told[1];
    t->state.adopted = r && strcmp(r->trace, t->task->default_trace) != 0;
    return true;
}

/* Goes through the tasks once, leaving out those that an earlier run of the job has decided, and marks the
 * job as done. */
bool tune_adopt(tune_session *s)
{
    for (int i = 0; i < s->o.n_tasks && !tune_is_stopped(s); i++) {
        tune_tuned *t = &s->task[i];

        s->current = i;
        if (!recall(s, t) && t->state.best > 0 && !t->state.failure && !adopt_for(s, t))
            return false;
        t->state.compared = s->end != TUNE_STOPPED;
        if (s->o.progress)
            s->o.progress(s->o.user, s);
    }
    if (base_failed(s->cx) || s->adopted == s->n_trials)
        return !base_failed(s->cx);
    if (s->end != TUNE_STOPPED)
        s->adopted = s->n_trials;
    return tune_write_records(s, NULL, 0, s->end == TUNE_STOPPED ? STORE_JOB_PAUSED : STORE_JOB_DONE);
}
