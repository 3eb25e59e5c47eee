/* profile.c -- see profile.h. */
#include "runtime/profile.h"

#include <stdlib.h>
#include <string.h>

void rt_profile_add(rt_step_profile *profile, double seconds)
{
    profile->sample[profile->calls % RT_SAMPLES] = (float)seconds;
    profile->min_s = profile->calls == 0 || seconds < profile->min_s ? seconds : profile->min_s;
    profile->total_s += seconds;
    profile->calls++;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

double rt_profile_median(const rt_step_profile *profile)
{
    float sorted[RT_SAMPLES];
    size_t n = profile->calls < RT_SAMPLES ? (size_t)profile->calls : RT_SAMPLES;

    if (n == 0)
        return 0;
    memcpy(sorted, profile->sample, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_floats);
    return sorted[n / 2];
}

void rt_profile_reset(rt_step_profile *profile)
{
    profile->calls = 0;
    profile->min_s = profile->total_s = 0;
}
