/* bench/models/weights.h -- the numbers of seeded networks, by the name of their tensor.
 *
 *     weights_normal("conv1.weight", w, n, 0, sqrt(2.0 / fan_in));       // He's initialisation
 *     weights_uniform("bn1.running_var", v, n, 0.5, 1.5);
 *
 * A tensor's numbers depend on its name alone. That lets a program that writes a model and a program that
 * computes what the model should give agree on the weights without sharing anything else.
 * Threads: no state.
 */
#ifndef BENCH_MODELS_WEIGHTS_H
#define BENCH_MODELS_WEIGHTS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* FNV-1a. */
static inline uint64_t weights_seed(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

/* SplitMix64 as a number in (0, 1). */
static inline double weights_unit(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static inline void weights_uniform(const char *name, float *out, size_t n, double low, double high)
{
    uint64_t state = weights_seed(name);

    for (size_t i = 0; i < n; i++)
        out[i] = (float)(low + (high - low) * weights_unit(&state));
}

/* Box and Muller's method. */
static inline void weights_normal(const char *name, float *out, size_t n, double mean, double deviation)
{
    const double two_pi = 6.283185307179586;
    uint64_t state = weights_seed(name);

    for (size_t i = 0; i < n; i++) {
        double radius = sqrt(-2 * log(weights_unit(&state)));

        out[i] = (float)(mean + deviation * radius * cos(two_pi * weights_unit(&state)));
    }
}

#endif
