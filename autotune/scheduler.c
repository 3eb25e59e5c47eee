/* autotune/scheduler.c -- see scheduler.h. */
#include "autotune/scheduler.h"

#include <math.h>
#include <string.h>

void tune_curve_add(tec_context *cx, tune_curve *c, double best)
{
    if (c->n == c->cap) {
        double *larger = base_array(cx, double, c->cap ? 2 * c->cap : 32);

        if (c->n)
            memcpy(larger, c->best, (size_t)c->n * sizeof *larger);
        c->best = larger;
        c->cap = c->cap ? 2 * c->cap : 32;
    }
    c->best[c->n++] = best;
}

static double best_of(const tune_curve *c)
{
    return c->n ? c->best[c->n - 1] : INFINITY;
}

double tune_total_seconds(const tune_curve *c, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += isfinite(best_of(&c[i])) ? c[i].weight * best_of(&c[i]) : 0;
    return sum;
}

/* What a batch brought, over the last `window` ones. */
static double slope(const tune_curve *c, int window)
{
    int back = c->n - 1 < window ? c->n - 1 : window;

    return back > 0 && isfinite(c->best[c->n - 1 - back]) ? (c->best[c->n - 1 - back] - best_of(c)) / back
                                                          : 0;
}

/* How far the task is behind the fastest other one of its family, in seconds; its whole time where there is
 * no other. */
static double behind_family(const tune_curve *all, int n, const tune_curve *c)
{
    double rate = 0;

    for (int i = 0; i < n; i++)
        if (&all[i] != c && all[i].family == c->family && isfinite(best_of(&all[i])))
            rate = fmax(rate, all[i].flops / best_of(&all[i]));
    if (rate <= 0 || c->flops <= 0)
        return best_of(c);
    /* Twice that speed: the family's fastest is not at its end either. */
    return fmax(0, best_of(c) - c->flops / (2 * rate));
}

/* Batches since the last one that brought half a percent. */
static int stale(const tune_curve *c)
{
    int i = c->n - 1;

    while (i > 0 && !(best_of(c) < 0.995 * c->best[i - 1]))
        i--;
    return c->n - 1 - i;
}

static double hoped_gain(const tune_curve *all, int n, const tune_curve *c)
{
    enum { WINDOW = 3 };
    const double from_past = 0.3;
    double hope = fmin(best_of(c) / (c->asked + stale(c)), behind_family(all, n, c));

    return c->weight * (from_past * slope(c, WINDOW) + (1 - from_past) * hope);
}

/* Tasks that have nothing yet come first; then the task whose further tuning promises the largest gain of the
 * whole model. -1: all have ended. */
int tune_next_task(const tune_curve *c, int n)
{
    int found = -1;
    double most = -1;

    for (int i = 0; i < n; i++)
        if (!c[i].ended && c[i].asked == 0)
            return i;
    for (int i = 0; i < n; i++) {
        /* Its first results are still under way: the others go first, and among such tasks those with the
         * least batches. */
        double gain = c[i].ended ? -1 : isfinite(best_of(&c[i])) ? hoped_gain(c, n, &c[i]) : 0;

        if (gain > most || (gain == most && found >= 0 && gain >= 0 && c[i].asked < c[found].asked)) {
            most = gain;
            found = i;
        }
    }
    return most >= 0 ? found : -1;
}

double tune_expected_gain(const tune_curve *c, int n)
{
    enum { WINDOW = 6 };
    double total = tune_total_seconds(c, n), most = 0;

    for (int i = 0; i < n; i++) {
        if (c[i].ended)
            continue;
        if (c[i].n <= WINDOW)
            return 1;
        most = fmax(most, c[i].weight * slope(&c[i], WINDOW));
    }
    return total > 0 ? most / total : 0;
}
