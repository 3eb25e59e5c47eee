/* runtime/profile.h -- inside the room: how often something ran and for how long: a step of an executor, a
 * kernel or an instruction of the VM.
 *
 *     rt_profile_add(&profile[i], tec_clock() - start);
 *     double typical = rt_profile_median(&profile[i]);
 *
 * Lifetime: plain data; zero is "never ran". Errors: none. Threads: one at a time for each struct.
 */
#ifndef RUNTIME_PROFILE_H
#define RUNTIME_PROFILE_H

#include <stdint.h>

enum { RT_SAMPLES = 256 };

typedef struct {
    int64_t calls;
    double min_s, total_s;
    double flops, bytes; /* as its user counts them: of one call, or of all */
    float sample[RT_SAMPLES];
} rt_step_profile;

/* The last RT_SAMPLES times are kept; the minimum and the sum are of all. */
void rt_profile_add(rt_step_profile *profile, double seconds);
/* Of the times that are kept; 0: there are none. */
double rt_profile_median(const rt_step_profile *profile);
/* Samples need not be cleared: `calls` says how many of them count. */
void rt_profile_reset(rt_step_profile *profile);

#endif
