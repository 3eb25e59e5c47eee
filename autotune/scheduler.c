/* autotune/scheduler.c -- see scheduler.h. */
#include "autotune/scheduler.h"

#include <math.h>
#include <string.h>

static double best_of(const tune_curve *curve)
{
    return curve->n ? curve->best[curve->n - 1] : INFINITY;
}

/* Whether the time is shorter than the curve's beyond the noise: by more than the luck of the fastest of some
 * dozens, and by a percent, which is the least that is ever adopted. */
static bool is_gain(const tune_curve *curve, double best, double noise)
{
    const double luck = 2.5, least = 0.01;

    return !isfinite(best_of(curve)) || best < best_of(curve) * (1 - fmax(least, luck * noise));
}

void tune_curve_add(tec_context *cx, tune_curve *curve, double best, double noise)
{
    best = is_gain(curve, best, noise) ? best : best_of(curve);
    if (curve->n == curve->cap) {
        double *larger = base_array(cx, double, curve->cap ? 2 * curve->cap : 32);

        if (curve->n)
            memcpy(larger, curve->best, (size_t)curve->n * sizeof *larger);
        curve->best = larger;
        curve->cap = curve->cap ? 2 * curve->cap : 32;
    }
    curve->best[curve->n++] = best;
}

double tune_total_seconds(const tune_curve *curve, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += isfinite(best_of(&curve[i])) ? curve[i].weight * best_of(&curve[i]) : 0;
    return sum;
}

/* What a batch brought, over the last `window` ones. */
static double slope(const tune_curve *curve, int window)
{
    int back = curve->n - 1 < window ? curve->n - 1 : window;

    return back > 0 && isfinite(curve->best[curve->n - 1 - back])
               ? (curve->best[curve->n - 1 - back] - best_of(curve)) / back
               : 0;
}

/* How far the task is behind the fastest other one of its family, in seconds; its whole time where there is
 * no other. */
static double behind_family(const tune_curve *all, int count, const tune_curve *curve)
{
    double rate = 0;

    for (int i = 0; i < count; i++)
        if (&all[i] != curve && all[i].family == curve->family && isfinite(best_of(&all[i])))
            rate = fmax(rate, all[i].flops / best_of(&all[i]));
    if (rate <= 0 || curve->flops <= 0)
        return best_of(curve);
    /* Twice that speed: the family's fastest is not at its end either. */
    return fmax(0, best_of(curve) - curve->flops / (2 * rate));
}

/* Batches since the last one that brought something. */
static int stale(const tune_curve *curve)
{
    int i = curve->n - 1;

    while (i > 0 && !(best_of(curve) < curve->best[i - 1]))
        i--;
    return curve->n - 1 - i;
}

/* What is left of the hope after batches that brought nothing. */
static double patience(int stale)
{
    enum { GRANTED = 3 };

    return stale > GRANTED ? exp2((GRANTED - stale) / 2.0) : 1;
}

static double hoped_gain(const tune_curve *all, int n, const tune_curve *curve)
{
    enum { WINDOW = 3 };
    const double from_past = 0.3;
    double hope = fmin(best_of(curve) / (curve->asked + stale(curve)), behind_family(all, n, curve)) *
                  patience(stale(curve));

    return curve->weight * (from_past * slope(curve, WINDOW) + (1 - from_past) * hope);
}

/* Tasks that have nothing yet come first; then the task whose further tuning promises the largest gain of the
 * whole model. -1: all have ended. */
int tune_next_task(const tune_curve *curve, int count)
{
    int found = -1;
    double most = -1;

    for (int i = 0; i < count; i++)
        if (!curve[i].ended && curve[i].asked == 0)
            return i;
    for (int i = 0; i < count; i++) {
        /* Its first results are still under way: the others go first, and among such tasks those with the
         * least batches. */
        double gain = curve[i].ended                 ? -1
                      : isfinite(best_of(&curve[i])) ? hoped_gain(curve, count, &curve[i])
                                                     : 0;

        if (gain > most || (gain == most && found >= 0 && gain >= 0 && curve[i].asked < curve[found].asked)) {
            most = gain;
            found = i;
        }
    }
    return most >= 0 ? found : -1;
}

double tune_expected_gain(const tune_curve *curve, int count)
{
    enum { WINDOW = 6 };
    double total = tune_total_seconds(curve, count), most = 0;

    for (int i = 0; i < count; i++) {
        if (curve[i].ended)
            continue;
        if (curve[i].n <= WINDOW)
            return 1;
        most = fmax(most, curve[i].weight * slope(&curve[i], WINDOW));
    }
    return total > 0 ? most / total : 0;
}
