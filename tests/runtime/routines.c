/* tests/runtime/routines.c -- functions that generated code calls: against what their definitions say, on
 * random numbers with equal elements, NaN and indices outside. */
#include "runtime/routines.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t top_k_2(const float *x, int64_t *out, int64_t n0, int64_t n1, int64_t k, int64_t axis,
                        int64_t largest);
typedef int32_t elements_2(const float *data, const int64_t *at, const float *update, float *out, int64_t n0,
                           int64_t n1, int64_t m0, int64_t m1, int64_t axis, int64_t how);
typedef int32_t nd_3(const uint16_t *data, const int64_t *at, const uint16_t *update, uint16_t *out,
                     int64_t n0, int64_t n1, int64_t n2, int64_t count, int64_t length, int64_t how);

static uint32_t state = 1;

static int random_below(int n)
{
    state = state * 1664525 + 1013904223;
    return (int)((state >> 8) % (uint32_t)n);
}

static void *routine(const char *name)
{
    void *f = rt_routine(name);

    cr_assert_not_null(f, "%s", name);
    return f;
}

static bool before(float a, float b, bool largest)
{
    if (isnan(a) || isnan(b))
        return largest ? isnan(a) && !isnan(b) : isnan(b) && !isnan(a);
    return largest ? a > b : a < b;
}

/* How many elements come before element i: its place in the order. */
static int rank_of(const float *x, int n, int step, int i, bool largest)
{
    int rank = 0;

    for (int j = 0; j < n; j++)
        rank += before(x[j * step], x[i * step], largest) ||
                (j < i && !before(x[i * step], x[j * step], largest));
    return rank;
}

/* Columns of 9 elements with few different values, so that many are equal. */
static void check_columns(const float *x, const int64_t *out, int n, int k, int columns, bool largest)
{
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < k; r++)
            cr_assert_eq(rank_of(x + c, n, columns, (int)out[r * columns + c], largest), r,
                         "%d of %d, column %d, place %d", k, n, c, r);
}

Test(routines, select_the_k_first_in_order)
{
    top_k_2 *f;
    void *p = routine("tec_top_k_f32_2");

    memcpy(&f, &p, sizeof f);
    for (int trial = 0; trial < 500; trial++) {
        enum { N = 9, COLUMNS = 3 };
        float x[N * COLUMNS];
        int64_t out[N * COLUMNS];
        int k = random_below(N + 1);
        bool largest = random_below(2);

        for (int i = 0; i < N * COLUMNS; i++)
            x[i] = random_below(12) == 0 ? NAN : (float)random_below(5);
        cr_assert_eq(f(x, out, N, COLUMNS, k, 0, largest), 0);
        check_columns(x, out, N, k, COLUMNS, largest);
    }
}

/* A row of up to 200 elements, in which most lie in whole blocks: few different values, both zeros, NaN,
 * infinities, and k of every size. */
static void check_row(top_k_2 *f)
{
    static const float special[] = {-0.0F, 0.0F, NAN, -NAN, INFINITY, -INFINITY, 1e-45F, -1e-45F};
    enum { MOST = 200 };
    float x[MOST];
    int64_t out[MOST];
    int n = random_below(MOST) + 1,
        k = random_below(4) ? random_below(n + 1 < 9 ? n + 1 : 9) : random_below(n + 1);
    bool largest = random_below(2);

    for (int i = 0; i < n; i++)
        x[i] = random_below(9) == 0 ? special[random_below(8)]
                                    : (float)(random_below(40) - 20) * (random_below(3) ? 1 : 0.01F);
    cr_assert_eq(f(x, out, 1, n, k, 1, largest), 0);
    check_columns(x, out, n, k, 1, largest);
}

Test(routines, select_from_rows_by_blocks)
{
    top_k_2 *f;
    void *p = routine("tec_top_k_f32_2");

    memcpy(&f, &p, sizeof f);
    for (int trial = 0; trial < 2000; trial++)
        check_row(f);
}

/* The other types agree with float32 on small integers; the extremes of int32 are apart. */
Test(routines, select_from_every_type)
{
    typedef int32_t top_k_f64(const double *, int64_t *, int64_t, int64_t, int64_t, int64_t, int64_t);
    typedef int32_t top_k_i32(const int32_t *, int64_t *, int64_t, int64_t, int64_t, int64_t, int64_t);
    typedef int32_t top_k_i64(const int64_t *, int64_t *, int64_t, int64_t, int64_t, int64_t, int64_t);
    void *p[] = {routine("tec_top_k_f32_2"), routine("tec_top_k_f64_2"), routine("tec_top_k_i32_2"),
                 routine("tec_top_k_i64_2")};
    top_k_2 *f32;
    top_k_f64 *f64;
    top_k_i32 *i32;
    top_k_i64 *i64;
    enum { N = 100 };

    memcpy(&f32, &p[0], sizeof f32);
    memcpy(&f64, &p[1], sizeof f64);
    memcpy(&i32, &p[2], sizeof i32);
    memcpy(&i64, &p[3], sizeof i64);
    for (int trial = 0; trial < 400; trial++) {
        float a[N];
        double b[N];
        int32_t c[N];
        int64_t d[N], want[N], out[N];
        int k = random_below(N + 1), largest = random_below(2);

        for (int i = 0; i < N; i++)
            d[i] = c[i] = (int32_t)(b[i] = a[i] = (float)(random_below(30) - 15));
        f32(a, want, 1, N, k, 1, largest);
        check_columns(a, want, N, k, 1, largest);
        f64(b, out, 1, N, k, 1, largest);
        cr_assert_arr_eq(out, want, (size_t)k * sizeof *out);
        i32(c, out, 1, N, k, 1, largest);
        cr_assert_arr_eq(out, want, (size_t)k * sizeof *out);
        i64(d, out, 1, N, k, 1, largest);
        cr_assert_arr_eq(out, want, (size_t)k * sizeof *out);
    }
    int64_t out[3];
    i32((const int32_t[]){INT32_MIN, 0, INT32_MAX}, out, 1, 3, 3, 1, true);
    cr_assert(out[0] == 2 && out[1] == 1 && out[2] == 0);
}

static int inside(int64_t at, int extent)
{
    at = at < 0 ? at + extent : at;
    return (int)(at < 0 ? 0 : at >= extent ? extent - 1 : at);
}

/* With more rows or columns of updates than of data in the other dimension, and indices that lie outside. */
static void scatter_along(elements_2 *f, int axis)
{
    enum { ROWS = 3, N = 5, MORE = 4, M = 6 };
    float data[ROWS * N], update[MORE * M], out[ROWS * N], want[ROWS * N];
    int64_t at[MORE * M];
    bool adds = random_below(2);

    for (int i = 0; i < ROWS * N; i++)
        want[i] = data[i] = (float)random_below(100);
    for (int i = 0; i < MORE * M; i++) {
        at[i] = random_below(16) - 8;
        update[i] = (float)random_below(100);
    }
    for (int i = 0; i < MORE; i++)
        for (int j = 0; j < M; j++) {
            int row = axis ? i : inside(at[i * M + j], ROWS), column = axis ? inside(at[i * M + j], N) : j;

            if (row < ROWS && column < N)
                want[row * N + column] = (adds ? want[row * N + column] : 0) + update[i * M + j];
        }
    cr_assert_eq(f(data, at, update, out, ROWS, N, MORE, M, axis, adds), 0);
    cr_assert_eq(memcmp(out, want, sizeof out), 0);
}

Test(routines, scatter_elements_one_after_the_other)
{
    elements_2 *f;
    void *p = routine("tec_scatter_elements_f32_2");

    memcpy(&f, &p, sizeof f);
    for (int trial = 0; trial < 400; trial++)
        scatter_along(f, trial % 2);
}

Test(routines, scatter_slices_by_tuples)
{
    enum { A = 3, B = 2, C = 4, COUNT = 2 };
    uint16_t data[A * B * C], update[COUNT * C], out[A * B * C];
    const int64_t at[COUNT * 2] = {2, -1, 0, 0};
    nd_3 *f;
    void *p = routine("tec_scatter_nd_b2_3");

    memcpy(&f, &p, sizeof f);
    for (int i = 0; i < A * B * C; i++)
        data[i] = (uint16_t)i;
    for (int i = 0; i < COUNT * C; i++)
        update[i] = (uint16_t)(100 + i);
    cr_assert_eq(f(data, at, update, out, A, B, C, COUNT, 2, 0), 0);
    for (int i = 0; i < A * B * C; i++) {
        int slice = i / C;
        cr_assert_eq(out[i], slice == 2 * B + 1 ? 100 + i % C : slice == 0 ? 100 + C + i % C : i, "%d", i);
    }
}

Test(routines, an_empty_tensor_has_nothing_to_do)
{
    elements_2 *f;
    void *p = routine("tec_scatter_elements_f32_2");
    const int64_t at[1] = {0};
    const float update[1] = {1};

    memcpy(&f, &p, sizeof f);
    cr_assert_eq(f(NULL, at, update, NULL, 0, 3, 1, 1, 1, 0), 0);
}

Test(routines, are_found_by_their_whole_name)
{
    const char *const unknown[] = {"",
                                   "5",
                                   "tec_top_k_f32_",
                                   "tec_top_k_f32_0",
                                   "tec_top_k_f32_6",
                                   "tec_top_k_f16_2",
                                   "tec_top_k_f32_22",
                                   "top_k_f32_2"};

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        cr_assert_null(rt_routine(unknown[i]), "%s", unknown[i]);
}
