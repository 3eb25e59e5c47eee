/* tests/targets/alone/arith.h -- 64-bit arithmetic that 32-bit CPUs take functions for, on many operands:
 * the same number on every machine whose functions are right. */
#ifndef TESTS_TARGETS_ALONE_ARITH_H
#define TESTS_TARGETS_ALONE_ARITH_H

#include <stdint.h>

/* SplitMix64. */
static inline uint64_t arith_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Numbers of any length, those around powers of two, and those just above the middle of two floats, which
 * are rounded wrongly where they are rounded twice. */
static inline uint64_t arith_operand(uint64_t *state)
{
    uint64_t bits = arith_next(state), shape = arith_next(state);
    uint64_t value = bits >> (shape & 63);

    if ((shape >> 8 & 3) == 0)
        value = (UINT64_C(1) << (shape & 63)) + (shape >> 16 & 3) - 2;
    if ((shape >> 8 & 3) == 1)
        value = bits >> 40 << 40 | UINT64_C(1) << 63 | UINT64_C(1) << 39 | (shape >> 16 & 3);
    return shape >> 20 & 1 ? 0 - value : value;
}

static inline uint64_t arith_mix(uint64_t sum, uint64_t v)
{
    return (sum ^ v) * UINT64_C(0x100000001b3) + (sum >> 29);
}

static inline uint64_t arith_of_float(float f)
{
    union {
        float f;
        uint32_t bits;
    } u = {f};
    return u.bits;
}

static inline uint64_t arith_of_double(double d)
{
    union {
        double d;
        uint64_t bits;
    } u = {d};
    return u.bits;
}

static inline uint64_t arith_divisions(uint64_t sum, uint64_t a, uint64_t b)
{
    b = b ? b : 1;
    sum = arith_mix(arith_mix(sum, a / b), a % b);
    if ((int64_t)b != -1)
        sum = arith_mix(arith_mix(sum, (uint64_t)((int64_t)a / (int64_t)b)),
                        (uint64_t)((int64_t)a % (int64_t)b));
    uint32_t c = (uint32_t)a, d = (uint32_t)b ? (uint32_t)b : 1;
    sum = arith_mix(arith_mix(sum, c / d), c % d);
    if ((int32_t)d != -1)
        sum = arith_mix(arith_mix(sum, (uint32_t)((int32_t)c / (int32_t)d)),
                        (uint32_t)((int32_t)c % (int32_t)d));
    return sum;
}

/* Only floats whose integer fits: others have no defined result. */
static inline uint64_t arith_conversions(uint64_t sum, uint64_t a)
{
    float f = (float)a, g = (float)(int64_t)a;
    double d = (double)a, e = (double)(int64_t)a;

    sum = arith_mix(arith_mix(sum, arith_of_float(f)), arith_of_float(g));
    sum = arith_mix(arith_mix(sum, arith_of_double(d)), arith_of_double(e));
    if (f < 18446744073709551616.0f)
        sum = arith_mix(sum, (uint64_t)(f / 3));
    if (d < 18446744073709551616.0)
        sum = arith_mix(sum, (uint64_t)(d / 3));
    sum = arith_mix(sum, (uint64_t)(int64_t)(g / 3));
    return arith_mix(sum, (uint64_t)(int64_t)(e / 3));
}

static inline uint64_t arith_sum(int n)
{
    uint64_t state = 1, sum = 0;

    for (int i = 0; i < n; i++) {
        uint64_t a = arith_operand(&state), b = arith_operand(&state);

        sum = arith_conversions(arith_divisions(sum, a, b), a);
    }
    return sum;
}

#endif
