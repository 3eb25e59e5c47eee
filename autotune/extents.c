/* autotune/extents.c -- see extents.h. A schedule's loss at an extent is its time there divided by that of
 * the fastest candidate there, less 1:
 *
 *     extent      1     64    256
 *     A          2 us   9 us  30 us
 *     B          1 us  10 us  36 us         A loses 100 % at 1;  B loses 11 % at 64 and 20 % at 256
 *
 * With equal weights B loses less on average. With the weights of a histogram in which 1 hardly comes, A
 * does.
 */
#include "autotune/extents.h"

#include <math.h>
#include <string.h>

#include "autotune/run.h"

/* ---- which extents ---- */

int64_t tune_large_extent(const tune_range *range)
{
    return range->to < TUNE_LARGE_EXTENT     ? range->to
           : range->from > TUNE_LARGE_EXTENT ? range->from
                                             : TUNE_LARGE_EXTENT;
}

static int nearest(const int64_t *at, int n, int64_t extent)
{
    int best = 0;

    for (int i = 1; i < n; i++)
        if (fabs(log((double)extent / (double)at[i])) < fabs(log((double)extent / (double)at[best])))
            best = i;
    return best;
}

/* Counts outside of the range, and of 0, belong to no extent. */
static const double *weights_of(tec_context *cx, const tune_range *range, const int64_t *at, int n)
{
    double *weight = base_array(cx, double, n), all = 0;

    for (int i = 0; i < range->n_counts; i++)
        if (range->extent[i] >= range->from && range->extent[i] <= range->to && range->count[i] > 0) {
            weight[nearest(at, n, range->extent[i])] += range->count[i];
            all += range->count[i];
        }
    for (int i = 0; i < n; i++)
        weight[i] = all > 0 ? weight[i] / all : 1.0 / n;
    return weight;
}

/* The powers of two that lie inside of the range, between its ends. */
static const int64_t *powers_of(tec_context *cx, const tune_range *range, int *count)
{
    int64_t *at = base_array(cx, int64_t, TUNE_MOST_EXTENTS);
    int n = 0;

    at[n++] = range->from;
    for (int64_t k = 1; k < range->to && k > 0; k *= 2)
        if (k > range->from)
            at[n++] = k;
    if (range->to > range->from)
        at[n++] = range->to;
    *count = n;
    return at;
}

const tune_extents *tune_extents_new(tec_context *cx, const tune_range *range, int symbol)
{
    tune_extents *extents = base_new(cx, tune_extents);
    int n = range->n_values;
    const int64_t *at = n ? base_copy(cx, range->value, (size_t)n * sizeof *at) : powers_of(cx, range, &n);

    *extents = (tune_extents){.symbol = symbol, .at = at, .weight = weights_of(cx, range, at, n), .n = n};
    return extents;
}

/* ---- measuring ---- */

/* The task with another value of its symbol. */
static const tune_task *task_at(tec_context *cx, const tune_task *task, int64_t extent)
{
    tune_task *copy = base_copy(cx, task, sizeof *copy);
    int64_t *dims = base_copy(cx, task->dims, (size_t)task->def->symbols.n * sizeof *dims);

    dims[task->extents->symbol] = extent;
    copy->dims = dims;
    return copy;
}

/* All traces at one extent, into results. False: stopped, or an error. */
static bool measure_at(tune_session *session, const tune_task *task, const char *const *trace, int count,
                       tune_result *result)
{
    const double slice = 0.1;
    tune_measurer *measurer = session->o.measurer;
    tune_candidate *candidate = base_array(session->cx, tune_candidate, count);
    int done = 0;

    for (int i = 0; i < count; i++)
        candidate[i] = (tune_candidate){task, trace[i], session->o.seed, true};
    if (!measurer->submit(measurer, session->cx, candidate, count))
        return false;
    while (done < count) {
        int got = measurer->collect(measurer, session->cx, task, result + done, count - done, slice);

        if (got < 0 || (got == 0 && tune_is_stopped(session)))
            return false;
        done += got;
    }
    return true;
}

/* As fast as each would have been when the first was measured: see autotune/anchor.c. */
static void correct_drift(tune_result *result, int count)
{
    double first = 0;

    for (int i = 0; i < count; i++) {
        if (result[i].status != STORE_OK || !(result[i].anchor > 0))
            continue;
        first = first > 0 ? first : result[i].anchor;
        result[i].median *= first / result[i].anchor;
    }
}

/* One extent after the other, so that all schedules meet the machine in the same state at each. */
bool tune_measure_extents(tune_session *session, const tune_task *task, const char *const *trace, int count,
                          tune_result *result, double *loss)
{
    const tune_extents *extents = task->extents;

    for (int e = 0; e < extents->n; e++) {
        double best = INFINITY;

        if (!measure_at(session, task_at(session->cx, task, extents->at[e]), trace, count, result))
            return false;
        correct_drift(result, count);
        for (int i = 0; i < count; i++)
            if (result[i].status == STORE_OK && result[i].median < best)
                best = result[i].median;
        for (int i = 0; i < count; i++)
            loss[i * extents->n + e] = result[i].status == STORE_OK ? result[i].median / best - 1 : INFINITY;
    }
    return true;
}

double tune_mean_loss(const tune_extents *extents, const double *loss)
{
    double mean = 0;

    for (int e = 0; e < extents->n; e++)
        mean += extents->weight[e] > 0 ? extents->weight[e] * loss[e] : 0;
    return mean;
}
