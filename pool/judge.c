/* pool/judge.c -- see judge.h.
 *
 * A device is compared with the median of the others that are not set aside, and where there are no others,
 * against itself when it was new. Tolerance 0.25:
 *
 *     a 1.00 ms, b 1.02 ms, c 1.40 ms     the others of c have 1.01 in the median: c is outlying
 *     a 1.00 ms, c 1.40 ms                the later one is: which of two boards is odd cannot be seen
 *     a 1.00 ms, later 1.30 ms            alone: it has become slower, as one that is too hot
 */
#include "pool/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static pool_judged *find(pool_judge *judge, const char *name)
{
    for (int i = 0; i < judge->n; i++)
        if (strcmp(judge->device[i].name, name) == 0)
            return &judge->device[i];
    return NULL;
}

void pool_judge_note(pool_judge *judge, const char *name, double seconds)
{
    pool_judged *d = find(judge, name);

    if (!d && judge->n < POOL_JUDGED) {
        d = &judge->device[judge->n++];
        *d = (pool_judged){.first = seconds};
        snprintf(d->name, sizeof d->name, "%s", name);
    }
    if (d)
        d->last = seconds;
}

bool pool_judge_has_set_aside(const pool_judge *judge, const char *name)
{
    const pool_judged *d = find((pool_judge *)judge, name);

    return d && d->aside;
}

/* Of the others that are not set aside; 0: there are none. */
static double median_of_others(const pool_judge *judge, const pool_judged *judged)
{
    double seconds[POOL_JUDGED];
    int n = 0;

    for (int i = 0; i < judge->n; i++)
        if (&judge->device[i] != judged && !judge->device[i].aside)
            seconds[n++] = judge->device[i].last;
    qsort(seconds, (size_t)n, sizeof *seconds, base_compare_doubles);
    return n == 0 ? 0 : n % 2 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
}

static bool is_near(const pool_judge *judge, double a, double b)
{
    return fabs(log(a / b)) <= log1p(judge->tolerance);
}

/* A device that is refused stays refused: it is no measure for the others any more. */
bool pool_judge_accepts(pool_judge *judge, const char *name, char *why, size_t size)
{
    pool_judged *d = find(judge, name);
    double others = d ? median_of_others(judge, d) : 0;

    if (!d || is_near(judge, d->last, others > 0 ? others : d->first))
        return true;
    if (others > 0)
        snprintf(why, size, "the calibration kernel takes %.4g ms; on the others of the class %.4g ms",
                 d->last * 1e3, others * 1e3);
    else
        snprintf(why, size, "the calibration kernel takes %.4g ms; %.4g ms when the device was new",
                 d->last * 1e3, d->first * 1e3);
    d->aside = true;
    return false;
}

/* Half of the costs are farther from their median than a fifth of it. */
bool pool_are_outlying(const double *costs, int count)
{
    enum { LEAST = 3, MOST = 1024 };
    const double share = 0.2;
    double c[MOST], middle;

    if (count < LEAST || count > MOST)
        return false;
    memcpy(c, costs, (size_t)count * sizeof *c);
    qsort(c, (size_t)count, sizeof *c, base_compare_doubles);
    middle = c[count / 2];
    for (int i = 0; i < count; i++)
        c[i] = fabs(c[i] - middle);
    qsort(c, (size_t)count, sizeof *c, base_compare_doubles);
    return c[count / 2] > share * middle;
}
