/* tests/graph/onnx/draw.h -- the dice of random models, and the names of the values that they have so far. */
#ifndef TESTS_GRAPH_ONNX_DRAW_H
#define TESTS_GRAPH_ONNX_DRAW_H

#include "tests/graph/onnx/kit.h"

enum { MOST_VALUES = 64 };

static uint64_t dice;
static const char *value[MOST_VALUES], *list[MOST_VALUES]; /* names: anything so far, and lists of ints */
static int n_values, n_lists;

static inline int below(int n)
{
    return (int)base_random_below(&dice, n);
}

static inline bool chance(int percent)
{
    return below(100) < percent;
}

#define PICK(from) (from)[below(BASE_COUNT(from))]

static inline int64_t some_int(void)
{
    static const int64_t common[] = {0, 1, 1, 2, 2, 3, -1, -1, -2, 4, 5, 7, 8};
    static const int64_t rare[] = {INT64_MAX,        INT64_MIN,           INT64_MAX - 1, INT32_MAX,
                                   (int64_t)1 << 40, -((int64_t)1 << 40), 1000,          -3,
                                   1 << 20};

    return chance(93) ? PICK(common) : PICK(rare);
}

/* ---- values ---- */

static inline const char *new_value(void)
{
    const char *name = base_format(cx, "v%d", n_values);

    if (n_values < MOST_VALUES)
        value[n_values++] = name;
    return name;
}

#endif
