/* pool/judge.c -- see judge.h.
 *
 * A device is held against the median of the others that are not set aside, and where there are no others,
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

static pool_judged *find(pool_judge *j, const char *name)
{
    for (int i = 0; i < j->n; i++)
        if (strcmp(j->device[i].name, name) == 0)
            return &j->device[i];
    return NULL;
}

void pool_judge_note(pool_judge *j, const char *name, double seconds)
{
    pool_judged *d = find(j, name);

    if (!d && j->n < POOL_JUDGED) {
        d = &j->device[j->n++];
        *d = (pool_judged){.first = seconds};
        snprintf(d->name, sizeof d->name, "%s", name);
    }
    if (d)
        d->last = seconds;
}

bool pool_judge_has_set_aside(const pool_judge *j, const char *name)
{
    const pool_judged *d = find((pool_judge *)j, name);

    return d && d->aside;
}

/* Of the others that are not set aside; 0: there are none. */
static double median_of_others(const pool_judge *j, const pool_judged *d)
{
    double seconds[POOL_JUDGED];
    int n = 0;

    for (int i = 0; i < j->n; i++)
        if (&j->device[i] != d && !j->device[i].aside)
            seconds[n++] = j->device[i].last;
    qsort(seconds, (size_t)n, sizeof *seconds, base_compare_doubles);
    return n == 0 ? 0 : n % 2 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
}

static bool is_near(const pool_judge *j, double a, double b)
{
    return fabs(log(a / b)) <= log1p(j->tolerance);
}

/* A device that is refused stays refused: it is no measure for the others any more. */
bool pool_judge_accepts(pool_judge *j, const char *name, char *why, size_t size)
{
    pool_judged *d = find(j, name);
    double others = d ? median_of_others(j, d) : 0;

    if (!d || is_near(j, d->last, others > 0 ? others : d->first))
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
bool pool_are_outlying(const double *costs, int n)
{
    enum { LEAST = 3, MOST = 1024 };
    const double share = 0.2;
    double c[MOST], middle;

    if (n < LEAST || n > MOST)
        return false;
    memcpy(c, costs, (size_t)n * sizeof *c);
    qsort(c, (size_t)n, sizeof *c, base_compare_doubles);
    middle = c[n / 2];
    for (int i = 0; i < n; i++)
        c[i] = fabs(c[i] - middle);
    qsort(c, (size_t)n, sizeof *c, base_compare_doubles);
    return c[n / 2] > share * middle;
}
