/* autotune/adopt.c -- which schedule is used from now on: the fastest of a task are measured again, in turns
 * with what would be used without them, and one that wins beyond the noise is recorded as adopted.
 *
 * So is the schedule that stands, once, where nothing beats it: otherwise a compiler would take the fastest
 * record, which may be the fastest by luck alone.
 */
#include "autotune/ranges.h"
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

/* Compares count paired times of two schedules by the median of log(a/b), with the median distance as the
 * measure of noise: neither is moved by a few measurements that something else on the machine disturbed. b
 * wins if the gain is above three standard errors and above one percent. *gain and *noise are relative: 0.05
 * is five percent. For 5 pairs with ratios 1.10, 1.11, 1.09, 1.10 and, disturbed, 2: the median is 0.0953 as
 * a logarithm (10 percent), the median distance 0.0090, the error 3 * 1.2533 * 1.4826 * 0.0090 / sqrt(5) =
 * 0.0226: b wins. */
bool tune_wins(const double *a, const double *b, int count, double *gain, double *noise)
{
    enum { LEAST = 3, MOST = 4096 };
    /* Of normal numbers, a median distance times 1.4826 is the standard deviation, and that of their median
     * is 1.2533 times that of their mean. */
    const double deviation = 1.4826, of_median = 1.2533, errors = 3, least = 0.01;
    double d[MOST];

    *gain = 0;
    *noise = INFINITY;
    count = count < MOST ? count : MOST;
    if (count < LEAST)
        return false;
    for (int i = 0; i < count; i++)
        d[i] = log(a[i] / b[i]);
    double middle = median(d, count);
    for (int i = 0; i < count; i++)
        d[i] = fabs(d[i] - middle);
    double error = errors * of_median * deviation * median(d, count) / sqrt(count);
    *gain = expm1(middle);
    *noise = expm1(error);
    return middle > fmax(error, log1p(least));
}

/* ---- who stands, and who wants to ---- */

/* What was adopted last and still applies; NULL: nothing. */
static const store_record *adopted_before(tune_session *session, const tune_tuned *tuned)
{
    store_query q = {.exact_key = tuned->task->task->exact_key,
                     .target = tune_target_key(session->cx, tuned->task->target),
                     .tuner = TUNE_ADOPTED,
                     .only_ok = true};
    store_cursor *cursor = store_find(session->cx, session->o.db, &q);
    const store_record *last = NULL;
    store_record r;

    while (store_next(session->cx, cursor, &r)) {
        base_reset(session->scratch);
        if (sched_replay(tune_task_schedule(session->scratch, tuned->task), "record", r.trace))
            last = store_keep(session->cx, &r);
    }
    return store_end(cursor) ? last : NULL;
}

/* Schedules for ranges that stand beside it; NULL: none. */
static const space_ranges *ranges_before(tune_session *session, const tune_tuned *tuned)
{
    const space_source *source = tune_source(session->cx, session->o.db);

    return source->ranges(source, session->cx, tuned->task->task, tuned->task->target);
}

/* The fastest trials that are ok, but not `standing`. */
static int challengers(const tune_tuned *tuned, const char *standing, tune_sample **out, int most)
{
    int n = 0;

    for (int i = 0; i < tuned->trials.n; i++) {
        tune_sample *trial = tuned->trials.at[i];
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
    const space_ranges *ranges; /* to be used in place of `standing`; NULL: none */
} contest;

/* Results are checked again: a schedule that is adopted is used from now on by everybody. */
static tune_candidate candidate(const contest *self, const char *trace)
{
    return (tune_candidate){.task = self->t->task, .trace = trace, .seed = self->s->o.seed, .check = true};
}

/* The first comparison says how fast what stood at first is; a later one says how much faster its winner is
 * again. */
static void record_comparison(contest *self, const tune_result result[2], bool won, double gain, double noise)
{
    tune_state *st = &self->t->state;

    if (self->standing.result.status != STORE_OK) {
        st->before = st->after = result[0].median;
        self->t->stood = result[0];
    }
    if (won) {
        st->after = self->won ? st->after / (1 + gain) : result[1].median;
        st->noise = noise;
    }
}

/* Both in turns, by one device. False: stopped, or an error. */
static bool measure_pair(tune_session *session, const tune_candidate *left, const tune_candidate *right,
                         tune_result result[2])
{
    const double slice = 0.1;
    tune_measurer *measurer = session->o.measurer;
    int got = measurer->submit_pair(measurer, session->cx, left, right) ? 0 : -1;

    while (got == 0) {
        got = measurer->collect_pair(measurer, session->cx, result, slice);
        if (got == 0 && tune_is_stopped(session))
            break;
    }
    return got == 1;
}

/* Measures the standing schedule and the challenger in turns, so that a change of the machine's speed meets
 * both alike. True also where nothing was decided because a candidate failed or tuning was stopped. */
static bool challenge(contest *self, const tune_sample *sample)
{
    tune_candidate a = candidate(self, self->standing.trace), b = candidate(self, sample->trace);
    tune_result r[2];
    double gain, noise, start = tec_clock();
    bool measured = measure_pair(self->s, &a, &b, r);

    self->s->times.compare += tec_clock() - start;
    if (!measured)
        return !base_failed(self->s->cx) && tune_is_stopped(self->s);
    if (r[0].status != STORE_OK || r[1].status != STORE_OK)
        return true; /* who does not run wins nothing */
    bool won = tune_wins(r[0].costs, r[1].costs, r[0].n_costs < r[1].n_costs ? r[0].n_costs : r[1].n_costs,
                         &gain, &noise);
    record_comparison(self, r, won, gain, noise);
    if (won) {
        self->standing.trace = sample->trace;
        self->standing.features = sample->features;
    }
    if (won || self->standing.result.status != STORE_OK)
        self->standing.result = r[won];
    self->won |= won;
    return true;
}

/* In a record's words: adopted, by this job, after so many trials. */
static bool record_winner(contest *self)
{
    store_record *record = base_new(self->s->cx, store_record);

    self->standing.tuner = TUNE_ADOPTED;
    self->standing.batch = self->s->n_batches;
    self->standing.number = self->s->n_trials;
    *record = tune_record(self->s, self->t, &self->standing);
    self->t->state.adopted = self->won;
    return tune_write_records(self->s, record, 1, STORE_JOB_RUNNING);
}

/* What is dispatched, as a record behind that of the best single schedule (autotune/source.h). */
static bool record_ranges(contest *self)
{
    store_record *record = base_new(self->s->cx, store_record);
    tune_sample sample = self->standing;

    sample.tuner = TUNE_ADOPTED;
    sample.batch = self->s->n_batches;
    sample.number = self->s->n_trials;
    sample.trace = space_ranges_text(self->s->cx, self->ranges);
    sample.features = NULL;
    *record = tune_record(self->s, self->t, &sample);
    self->t->state.adopted = true;
    return tune_write_records(self->s, record, 1, STORE_JOB_RUNNING);
}

/* The losses by extent, each that of the schedule of its piece. */
static const double *losses_of(const contest *self, const tune_pieces *pieces, const double *loss)
{
    int n = self->t->task->extents->n;
    double *out = base_array(self->s->cx, double, n);

    for (int e = 0, k = 0; e < n; e++) {
        k += k + 1 < pieces->n && e == pieces->first[k + 1];
        out[e] = loss[pieces->trace[k] * n + e];
    }
    return out;
}

/* Where trace[best] alone loses much, a few schedules for ranges of the extents. They are chosen as the
 * fastest of many by one measurement, which flatters them, so they and the single one are measured again.
 * False: stopped, or an error. */
static bool choose_ranges(contest *self, const char *const *trace, int count, int best, const double *loss)
{
    tec_context *cx = self->s->cx;
    const tune_task *task = self->t->task;
    tune_pieces pieces = tune_choose_pieces(cx, task->extents, loss, count), again = pieces;
    const char *few[TUNE_MOST_PIECES + 1] = {trace[best]};
    tune_result result[TUNE_MOST_PIECES + 1];
    double *second = base_array(cx, double, (pieces.n + 1) * task->extents->n), single, several;

    if (pieces.n < 2)
        return true;
    for (int k = 0; k < pieces.n; k++) {
        few[k + 1] = trace[pieces.trace[k]];
        again.trace[k] = k + 1;
    }
    if (!tune_measure_extents(self->s, task, few, pieces.n + 1, result, second))
        return false;
    single = tune_mean_loss(task->extents, second);
    several = tune_pieces_loss(task->extents, &again, second);
    if ((1 + single) / (1 + several) <= 1.01)
        return true;
    self->ranges = tune_pieces_ranges(cx, task->extents, &pieces, trace);
    self->t->state.ranges = self->ranges;
    self->t->state.loss = losses_of(self, &pieces, loss);
    return true;
}

/* Of a kernel with a symbolic extent: among what would be used without the trials and the fastest of them,
 * the schedule with the least mean loss over the extents. What stands stays unless another one gains a
 * percent. */
static bool adopt_over_extents(contest *self)
{
    enum { CANDIDATES = 100 };
    const tune_extents *extents = self->t->task->extents;
    tune_sample *fastest[CANDIDATES];
    int n = challengers(self->t, self->standing.trace, fastest, CANDIDATES) + 1, best = 0;
    const char **trace = base_array(self->s->cx, const char *, n);
    tune_result *result = base_array(self->s->cx, tune_result, n);
    double *loss = base_array(self->s->cx, double, n * extents->n), start = tec_clock();
    bool measured, chosen;

    trace[0] = self->standing.trace;
    for (int i = 1; i < n; i++)
        trace[i] = fastest[i - 1]->trace;
    measured = tune_measure_extents(self->s, self->t->task, trace, n, result, loss);
    for (int i = 1; measured && i < n; i++)
        if (tune_mean_loss(extents, loss + i * extents->n) + (best ? 0 : 0.01) <
            tune_mean_loss(extents, loss + best * extents->n))
            best = i;
    self->t->state.loss = measured ? loss + best * extents->n : NULL;
    if (measured)
        self->t->stood = result[0];
    chosen = measured && choose_ranges(self, trace, n, best, loss);
    self->s->times.compare += tec_clock() - start;
    if (!chosen)
        return !base_failed(self->s->cx);
    self->won = best > 0;
    self->standing.trace = trace[best];
    self->standing.features = best ? fastest[best - 1]->features : NULL;
    self->standing.result = best ? fastest[best - 1]->result : result[0];
    self->t->state.before = self->t->state.first;
    self->t->state.after = self->t->state.first * (1 + tune_mean_loss(extents, self->t->state.loss)) /
                           (1 + tune_mean_loss(extents, loss));
    return true;
}

/* What may be tried in the model: the one that won by itself, then the others by their times. */
static void keep_candidates(tune_tuned *tuned, tune_sample *const *fastest, int n, const char *winner)
{
    tune_state *state = &tuned->state;

    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < n; i++)
            if ((strcmp(fastest[i]->trace, winner) == 0) == (turn == 0)) {
                state->candidate[state->n_candidates] = fastest[i]->trace;
                tuned->candidate[state->n_candidates++] = fastest[i];
            }
}

/* Lets the fastest trials of one task challenge what would be used without them. A record is written when one
 * won, or when the standing schedule was never recorded before. */
static bool adopt_for(tune_session *session, tune_tuned *tuned)
{
    const store_record *before = adopted_before(session, tuned);
    contest c = {
        .s = session, .t = tuned, .standing = {.trace = before ? before->trace : tuned->task->default_trace}};
    tune_sample *fastest[TUNE_CANDIDATES];
    int n = challengers(tuned, c.standing.trace, fastest, TUNE_CANDIDATES);

    c.standing.result.status = STORE_RUN_ERROR;
    tuned->stood.status = STORE_RUN_ERROR;
    tuned->state.stood = tuned->state.stands = c.standing.trace;
    tuned->state.stood_ranges = tuned->task->extents ? ranges_before(session, tuned) : NULL;
    tuned->state.before = tuned->state.after = before ? before->median : tuned->state.first;
    if (tuned->task->extents && !adopt_over_extents(&c))
        return false;
    for (int i = 0; i < n && !tuned->task->extents && !base_failed(session->cx) && !tune_is_stopped(session);
         i++)
        if (!challenge(&c, fastest[i]))
            return false;
    tuned->state.stands = c.standing.trace;
    if (!tuned->task->extents && !tune_is_stopped(session))
        keep_candidates(tuned, fastest, n, c.standing.trace);
    bool news = c.won || (!before && c.standing.result.status == STORE_OK);
    bool write = !base_failed(session->cx) && session->end != TUNE_STOPPED;
    return !base_failed(session->cx) && (!write || !news || record_winner(&c)) &&
           (!write || !c.ranges || record_ranges(&c));
}

/* One schedule of an earlier code generator. False with an error. */
static bool remeasure(tune_session *session, tune_tuned *tuned, const store_record *old)
{
    const tune_sample best = {.trace = old->trace};
    contest c = {.s = session, .t = tuned, .standing = {.trace = tuned->task->default_trace}};

    c.standing.result.status = STORE_RUN_ERROR;
    if (!challenge(&c, &best))
        return false;
    session->n_stale++;
    session->n_kept += c.won;
    return c.standing.result.status != STORE_OK || tune_is_stopped(session) || record_winner(&c);
}

bool tune_remeasure(tune_session *session)
{
    for (int i = 0; i < session->o.n_tasks && !tune_is_replay(session) && !tune_is_stopped(session); i++) {
        const store_record *old = adopted_before(session, &session->task[i]);

        if (old && strcmp(old->codegen, tec_version()) != 0 &&
            strcmp(old->trace, session->task[i].task->default_trace) != 0 &&
            !remeasure(session, &session->task[i], old))
            return false;
    }
    return !base_failed(session->cx);
}

int tune_session_remeasured(const tune_session *session, int *kept)
{
    *kept = session->n_kept;
    return session->n_stale;
}

/* What this job has adopted already, before it was interrupted or in an earlier call. A job of an earlier
 * version did not keep both times of a comparison: then neither is known. */
static bool recall(tune_session *session, tune_tuned *tuned)
{
    const double *told = session->told[tuned - session->task];
    const store_record *record = adopted_before(session, tuned);
    bool done = session->adopted == session->n_trials ||
                (record && base_same(record->job, session->o.job) && record->trial == session->n_trials);

    if (!done)
        return false;
    tuned->state.before = told[0];
    tuned->state.after = told[1];
    tuned->state.adopted = record && strcmp(record->trace, tuned->task->default_trace) != 0;
    return true;
}

/* Goes through the tasks once, leaving out those that an earlier run of the job has decided, and marks the
 * job as done. */
bool tune_adopt(tune_session *session)
{
    for (int i = 0; i < session->o.n_tasks && !tune_is_stopped(session); i++) {
        tune_tuned *tuned = &session->task[i];

        session->current = i;
        if (!recall(session, tuned) && tuned->state.best > 0 && !tuned->state.failure &&
            !adopt_for(session, tuned))
            return false;
        tuned->state.compared = session->end != TUNE_STOPPED;
        if (session->o.progress)
            session->o.progress(session->o.user, session);
    }
    if (base_failed(session->cx) || session->adopted == session->n_trials)
        return !base_failed(session->cx);
    if (session->end != TUNE_STOPPED)
        session->adopted = session->n_trials;
    return tune_write_records(session, NULL, 0,
                              session->end == TUNE_STOPPED ? STORE_JOB_PAUSED : STORE_JOB_DONE);
}

bool tune_adopt_ranges(tune_session *session, const tune_task *kernel, const space_ranges *ranges, int like)
{
    tune_tuned tuned = {.task = kernel};
    contest c = {.s = session, .t = &tuned, .standing.result = session->task[like].stood, .ranges = ranges};

    return c.standing.result.status != STORE_OK || !c.standing.result.n_costs || record_ranges(&c);
}

/* The record has the times that the comparison gave for it. */
static bool take_back(tune_session *session, tune_tuned *tuned)
{
    contest c = {.s = session, .t = tuned, .standing = {.trace = tuned->state.stood, .result = tuned->stood}};

    tuned->state.stands = tuned->state.stood;
    tuned->state.after = tuned->state.before;
    tuned->state.ranges = c.ranges = tuned->state.stood_ranges;
    bool done = record_winner(&c) && (!c.ranges || record_ranges(&c));
    tuned->state.adopted = false;
    return done;
}

bool tune_take_back_task(tune_session *session, int task)
{
    tune_tuned *tuned = &session->task[task];

    tuned->state.only_alone = true;
    return take_back(session, tuned);
}

/* The record has the times of the trial. */
bool tune_adopt_candidate(tune_session *session, int task, int number)
{
    tune_tuned *tuned = &session->task[task];
    contest c = {.s = session, .t = tuned, .standing = *tuned->candidate[number], .won = true};

    tuned->state.stands = c.standing.trace;
    tuned->state.only_alone = false;
    return record_winner(&c);
}

void tune_set_times(tune_session *session, int task, double before, double after, double noise)
{
    tune_state *state = &session->task[task].state;

    state->before = before;
    state->after = after;
    state->noise = noise;
}

bool tune_keep_times(tune_session *session)
{
    return tune_write_records(session, NULL, 0, STORE_JOB_DONE);
}

bool tune_take_back(tune_session *session)
{
    for (int i = 0; i < session->o.n_tasks; i++) {
        tune_tuned *tuned = &session->task[i];
        bool changed = tuned->state.adopted && tuned->state.stood && tuned->stood.status == STORE_OK;

        if (changed && !take_back(session, tuned))
            return false;
    }
    return !base_failed(session->cx);
}
