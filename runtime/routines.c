/* runtime/routines.c -- what generated code calls for selecting and scattering; see routines.h.
 *
 * Each function exists for the ranks 1 to 5, since a call has one argument for each extent. These small
 * functions put the extents into an array and call the one that does the work.
 *
 * top_k keeps the positions of the best k elements in a heap, with the worst of them at the root. Most
 * elements are not better than the root; where neighbours in a row are neighbours in memory, a block of them
 * is compared at once, which a compiler does by vectors:
 *
 *     x = [3, 9, 4, 1], k = 2, largest:   heap {3, 9};  4 beats 3: {4, 9};  1 does not;  in order: 9, 4
 *
 * scatter_elements goes through the updates by rows of their last dimension: in a row, places differ by the
 * index and by the column alone.
 */
#include "runtime/routines.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MOST_RANK = 5, BLOCK = 16 };

typedef float f32;
typedef double f64;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t b1;
typedef uint16_t b2;
typedef uint32_t b4;
typedef uint64_t b8;

static int64_t product(const int64_t *n, int from, int to)
{
    int64_t all = 1;

    for (int d = from; d < to; d++)
        all *= n[d];
    return all;
}

/* An index below zero counts from the end; others are moved inside. */
static int64_t inside(int64_t at, int64_t extent)
{
    at = at < 0 ? at + extent : at;
    at = at < extent ? at : extent - 1;
    return at > 0 ? at : 0;
}

/* ---- top_k: positions of the k greatest (or least) elements along an axis, in order ---- */

/* One row: element i is x[i * step], position r is at out[r * step]. */
typedef struct {
    int64_t n, k, step;
    bool largest;
} row;

/* Whether a goes before b by their values alone: NaN counts as greatest. The test with b in place of a tells
 * equal values from others. */
#define BEFORE(T)                                                                                            \
    static inline bool before_##T(bool largest, T a, T b)                                                    \
    {                                                                                                        \
        return largest ? a > b || (a != a && b == b) : a < b || (b != b && a == a);                          \
    }

/* The first position from i on whose element goes before `worst`; the row's length: none does. Where worst is
 * no NaN, one comparison tells: NaN is never less or equal. */
#define NEXT(T)                                                                                              \
    static int64_t next_##T(const row *self, const T *x, int64_t i, T worst)                                 \
    {                                                                                                        \
        int64_t n = self->n, step = self->step;                                                              \
        if (worst != worst)                                                                                  \
            while (i < n && !before_##T(self->largest, x[i * step], worst))                                  \
                i++;                                                                                         \
        else if (self->largest)                                                                              \
            SKIP(!(x[i * step] <= worst), !(x[i + j] <= worst))                                              \
        else                                                                                                 \
            SKIP(x[i * step] < worst, x[i + j] < worst)                                                      \
        return i;                                                                                            \
    }

/* Advances i to the next element of which `is` holds, whole blocks at once where `any` does not. */
#define SKIP(is, any)                                                                                        \
    {                                                                                                        \
        for (int hits = 0; step == 1 && i + BLOCK <= n; i += BLOCK) {                                        \
            for (int j = 0; j < BLOCK; j++)                                                                  \
                hits |= any;                                                                                 \
            if (hits)                                                                                        \
                break;                                                                                       \
        }                                                                                                    \
        while (i < n && !(is))                                                                               \
            i++;                                                                                             \
    }

/* Whether the element at position i goes after the one at j: by value, then by position. */
#define AFTER(T)                                                                                             \
    static inline bool after_##T(const row *self, const T *x, int64_t i, int64_t j)                          \
    {                                                                                                        \
        T a = x[i * self->step], b = x[j * self->step];                                                      \
        return before_##T(self->largest, b, a) || (!before_##T(self->largest, a, b) && i > j);               \
    }

/* Lets the position at `at` sink in a heap of `size`, whose root is the element that goes last. */
#define SINK(T)                                                                                              \
    static void sink_##T(const row *self, const T *x, int64_t *out, int64_t at, int64_t size)                \
    {                                                                                                        \
        int64_t moved = out[at * self->step];                                                                \
        for (int64_t child; (child = 2 * at + 1) < size; at = child) {                                       \
            if (child + 1 < size &&                                                                          \
                after_##T(self, x, out[(child + 1) * self->step], out[child * self->step]))                  \
                child++;                                                                                     \
            if (!after_##T(self, x, out[child * self->step], moved))                                         \
                break;                                                                                       \
            out[at * self->step] = out[child * self->step];                                                  \
        }                                                                                                    \
        out[at * self->step] = moved;                                                                        \
    }

/* Selects, then takes the root of the heap to its end again and again, so that the order is right. Elements
 * come by rising position, so one that equals the root never replaces it. */
#define SELECT(T)                                                                                            \
    static void select_##T(const row *self, const T *x, int64_t *out)                                        \
    {                                                                                                        \
        int64_t step = self->step, k = self->k;                                                              \
        for (int64_t i = 0; i < k; i++)                                                                      \
            out[i * step] = i;                                                                               \
        for (int64_t i = k / 2 - 1; i >= 0; i--)                                                             \
            sink_##T(self, x, out, i, k);                                                                    \
        T worst = k ? x[out[0] * step] : 0;                                                                  \
        for (int64_t i = k; k && (i = next_##T(self, x, i, worst)) < self->n; i++) {                         \
            out[0] = i;                                                                                      \
            sink_##T(self, x, out, 0, k);                                                                    \
            worst = x[out[0] * step];                                                                        \
        }                                                                                                    \
        for (int64_t size = k; size-- > 1;) {                                                                \
            int64_t last = out[0];                                                                           \
            out[0] = out[size * step];                                                                       \
            out[size * step] = last;                                                                         \
            sink_##T(self, x, out, 0, size);                                                                 \
        }                                                                                                    \
    }

#define SELECT_ANY(T) BEFORE(T) NEXT(T) AFTER(T) SINK(T) SELECT(T)
SELECT_ANY(f32)
SELECT_ANY(f64)
SELECT_ANY(i32)
SELECT_ANY(i64)

/* ---- the same for 32-bit elements, in rows of less than 2^32 of them ----
 *
 * Value and position make one number, the entry, so that one comparison decides. The value is in the upper
 * half, as a number that is greater the earlier the element goes; below is the complement of the position.
 * Entries stand where the positions will stand in the end. */

static uint32_t key_f32(f32 value, bool largest)
{
    const uint32_t sign = (uint32_t)1 << 31;
    uint32_t bits;

    value = value == 0 ? 0 : value; /* both zeros are equal */
    memcpy(&bits, &value, sizeof bits);
    bits = value != value ? UINT32_MAX : bits & sign ? ~bits : bits | sign;
    return largest ? bits : ~bits;
}

static uint32_t key_i32(i32 value, bool largest)
{
    uint32_t bits = (uint32_t)value ^ (uint32_t)1 << 31;

    return largest ? bits : ~bits;
}

static int64_t position_of(uint64_t entry)
{
    return (int64_t)(uint32_t)~entry;
}

/* Lets the entry at `at` sink in a heap of `size`, whose root is the least. Most entries sink far, so the
 * lesser children move up all the way to a leaf first, and the entry rises from there. */
static void sink_entry(uint64_t *heap, int64_t step, int64_t at, int64_t size)
{
    int64_t top = at;
    uint64_t moved = heap[at * step];

    for (int64_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size)
            child += heap[(child + 1) * step] < heap[child * step];
        heap[at * step] = heap[child * step];
    }
    for (; at > top && moved < heap[(at - 1) / 2 * step]; at = (at - 1) / 2)
        heap[at * step] = heap[(at - 1) / 2 * step];
    heap[at * step] = moved;
}

#define SELECT_ENTRIES(T)                                                                                    \
    static inline uint64_t entry_##T(const row *self, const T *x, int64_t i)                                 \
    {                                                                                                        \
        return (uint64_t)key_##T(x[i * self->step], self->largest) << 32 | (uint32_t)~(uint64_t)i;           \
    }                                                                                                        \
    static void select_entries_##T(const row *self, const T *x, int64_t *out)                                \
    {                                                                                                        \
        int64_t step = self->step, k = self->k;                                                              \
        uint64_t *heap = (uint64_t *)out;                                                                    \
        for (int64_t i = 0; i < k; i++)                                                                      \
            heap[i * step] = entry_##T(self, x, i);                                                          \
        for (int64_t i = k / 2 - 1; i >= 0; i--)                                                             \
            sink_entry(heap, step, i, k);                                                                    \
        for (int64_t i = k; k; i++) {                                                                        \
            i = next_##T(self, x, i, x[position_of(heap[0]) * step]);                                        \
            if (i >= self->n)                                                                                \
                break;                                                                                       \
            heap[0] = entry_##T(self, x, i);                                                                 \
            sink_entry(heap, step, 0, k);                                                                    \
        }                                                                                                    \
        for (int64_t size = k; size-- > 0;) {                                                                \
            int64_t last = position_of(heap[0]);                                                             \
            heap[0] = heap[size * step];                                                                     \
            sink_entry(heap, step, 0, size);                                                                 \
            out[size * step] = last;                                                                         \
        }                                                                                                    \
    }

#define TOP_K(T, SHORT)                                                                                      \
    static int32_t top_k_##T(const T *x, int64_t *out, const int64_t *n, int rank, int64_t k, int64_t axis,  \
                             int64_t largest)                                                                \
    {                                                                                                        \
        row r = {n[axis], k, product(n, (int)axis + 1, rank), largest != 0};                                 \
        int64_t outer = product(n, 0, (int)axis);                                                            \
        for (int64_t i = 0; i < outer; i++)                                                                  \
            for (int64_t j = 0; j < r.step; j++)                                                             \
                (r.n <= UINT32_MAX ? SHORT : select_##T)(&r, x + i * r.n * r.step + j,                       \
                                                         out + i * k * r.step + j);                          \
        return 0;                                                                                            \
    }

SELECT_ENTRIES(f32)
SELECT_ENTRIES(i32)
TOP_K(f32, select_entries_f32)
TOP_K(f64, select_f64)
TOP_K(i32, select_entries_i32)
TOP_K(i64, select_i64)

/* ---- scatter: a copy of the data, into which updates go one after the other ---- */

/* What an update does to an element, numbered as in ops/scatter.c. Numbers of plain bytes are replaced only.
 */
enum { REPLACE, ADD, MUL, MAX, MIN };

#define COMBINE(T, WRAPS)                                                                                    \
    static inline T combine_##T(int64_t how, T a, T b)                                                       \
    {                                                                                                        \
        switch (how) {                                                                                       \
        case ADD: return (T)((WRAPS)a + (WRAPS)b);                                                           \
        case MUL: return (T)((WRAPS)a * (WRAPS)b);                                                           \
        case MAX: return a != a || a > b ? a : b;                                                            \
        case MIN: return a != a || a < b ? a : b;                                                            \
        default: return b;                                                                                   \
        }                                                                                                    \
    }

/* Where the updates of a row go: `to` is the place of column 0 at index 0; an index moves by `stride`
 * elements, a column by `step`. */
typedef struct {
    int64_t width, extent, stride, step;
} scatter_row;

#define SCATTER_ROW(T)                                                                                       \
    static void scatter_row_##T(const scatter_row *self, const int64_t *at, const T *update, T *to,          \
                                int64_t how)                                                                 \
    {                                                                                                        \
        const scatter_row r = *self;                                                                         \
        if (how == REPLACE)                                                                                  \
            for (int64_t j = 0; j < r.width; j++)                                                            \
                to[inside(at[j], r.extent) * r.stride + j * r.step] = update[j];                             \
        else                                                                                                 \
            for (int64_t j = 0; j < r.width; j++) {                                                          \
                T *place = to + inside(at[j], r.extent) * r.stride + j * r.step;                             \
                *place = combine_##T(how, *place, update[j]);                                                \
            }                                                                                                \
    }

/* Where the row of updates p[0], p[1], ... begins, with 0 for the index along the axis; -1: outside of the
 * data. */
static int64_t row_place(const int64_t *p, const int64_t *n, int last, int64_t axis)
{
    int64_t place = 0;

    for (int d = 0; d < last; d++) {
        if (d != axis && p[d] >= n[d])
            return -1;
        place = place * n[d] + (d == axis ? 0 : p[d]);
    }
    return place * n[last];
}

/* Update [p0, p1, ...] goes to the element with these indices, but for the one along the axis. Updates that
 * lie outside of the data in another dimension have no element. */
#define SCATTER_ELEMENTS(T)                                                                                  \
    static int32_t scatter_elements_##T(const T *data, const int64_t *at, const T *update, T *out,           \
                                        const int64_t *n, const int64_t *m, int rank, int64_t axis,          \
                                        int64_t how)                                                         \
    {                                                                                                        \
        int64_t p[MOST_RANK] = {0}, size = product(n, 0, rank);                                              \
        int last = rank - 1;                                                                                 \
        int64_t rows = product(m, 0, last);                                                                  \
        scatter_row r = {m[last], n[axis], product(n, (int)axis + 1, rank), axis != last};                   \
        if (axis != last && r.width > n[last])                                                               \
            r.width = n[last];                                                                               \
        if (size > 0)                                                                                        \
            memcpy(out, data, (size_t)size * sizeof *out);                                                   \
        for (int64_t i = 0; i < rows && size > 0; i++) {                                                     \
            int64_t place = row_place(p, n, last, axis);                                                     \
            if (place >= 0)                                                                                  \
                scatter_row_##T(&r, at + i * m[last], update + i * m[last], out + place, how);               \
            for (int d = last - 1; d >= 0 && ++p[d] == m[d]; d--)                                            \
                p[d] = 0;                                                                                    \
        }                                                                                                    \
        return 0;                                                                                            \
    }

/* Update i, a whole slice, goes where the tuple of `length` indices says. */
#define SCATTER_ND(T)                                                                                        \
    static int32_t scatter_nd_##T(const T *data, const int64_t *at, const T *update, T *out,                 \
                                  const int64_t *n, int rank, int64_t count, int64_t length, int64_t how)    \
    {                                                                                                        \
        int64_t size = product(n, 0, rank), slice = product(n, (int)length, rank);                           \
        if (size > 0)                                                                                        \
            memcpy(out, data, (size_t)size * sizeof *out);                                                   \
        for (int64_t i = 0; i < count && size > 0; i++) {                                                    \
            int64_t place = 0;                                                                               \
            for (int d = 0; d < length; d++)                                                                 \
                place = place * n[d] + inside(at[i * length + d], n[d]);                                     \
            T *to = out + place * slice;                                                                     \
            const T *from = update + i * slice;                                                              \
            if (how == REPLACE)                                                                              \
                memcpy(to, from, (size_t)slice * sizeof *to);                                                \
            for (int64_t j = 0; j < slice && how != REPLACE; j++)                                            \
                to[j] = combine_##T(how, to[j], from[j]);                                                    \
        }                                                                                                    \
        return 0;                                                                                            \
    }

#define SCATTER(T, WRAPS) COMBINE(T, WRAPS) SCATTER_ROW(T) SCATTER_ELEMENTS(T) SCATTER_ND(T)
SCATTER(f32, f32)
SCATTER(f64, f64)
SCATTER(i32, uint32_t)
SCATTER(i64, uint64_t)
SCATTER(b1, unsigned)
SCATTER(b2, unsigned)
SCATTER(b4, b4)
SCATTER(b8, b8)

/* ---- one function for each rank ---- */

#define EXTENTS_1(n) int64_t n##0
#define EXTENTS_2(n) EXTENTS_1(n), int64_t n##1
#define EXTENTS_3(n) EXTENTS_2(n), int64_t n##2
#define EXTENTS_4(n) EXTENTS_3(n), int64_t n##3
#define EXTENTS_5(n) EXTENTS_4(n), int64_t n##4
#define ARRAY_1(n) n##0
#define ARRAY_2(n) ARRAY_1(n), n##1
#define ARRAY_3(n) ARRAY_2(n), n##2
#define ARRAY_4(n) ARRAY_3(n), n##3
#define ARRAY_5(n) ARRAY_4(n), n##4
#define FOR_RANKS(M, T) M(T, 1) M(T, 2) M(T, 3) M(T, 4) M(T, 5)

#define TOP_K_OF(T, R)                                                                                       \
    static int32_t top_k_##T##_##R(const T *x, int64_t *out, EXTENTS_##R(n), int64_t k, int64_t axis,        \
                                   int64_t largest)                                                          \
    {                                                                                                        \
        return top_k_##T(x, out, (const int64_t[]){ARRAY_##R(n)}, R, k, axis, largest);                      \
    }
#define SCATTER_OF(T, R)                                                                                     \
    static int32_t scatter_elements_##T##_##R(const T *data, const int64_t *at, const T *update, T *out,     \
                                              EXTENTS_##R(n), EXTENTS_##R(m), int64_t axis, int64_t how)     \
    {                                                                                                        \
        return scatter_elements_##T(data, at, update, out, (const int64_t[]){ARRAY_##R(n)},                  \
                                    (const int64_t[]){ARRAY_##R(m)}, R, axis, how);                          \
    }                                                                                                        \
    static int32_t scatter_nd_##T##_##R(const T *data, const int64_t *at, const T *update, T *out,           \
                                        EXTENTS_##R(n), int64_t count, int64_t length, int64_t how)          \
    {                                                                                                        \
        return scatter_nd_##T(data, at, update, out, (const int64_t[]){ARRAY_##R(n)}, R, count, length,      \
                              how);                                                                          \
    }
FOR_RANKS(TOP_K_OF, f32)
FOR_RANKS(TOP_K_OF, f64)
FOR_RANKS(TOP_K_OF, i32)
FOR_RANKS(TOP_K_OF, i64)
FOR_RANKS(SCATTER_OF, f32)
FOR_RANKS(SCATTER_OF, f64)
FOR_RANKS(SCATTER_OF, i32)
FOR_RANKS(SCATTER_OF, i64)
FOR_RANKS(SCATTER_OF, b1)
FOR_RANKS(SCATTER_OF, b2)
FOR_RANKS(SCATTER_OF, b4)
FOR_RANKS(SCATTER_OF, b8)

/* ---- by name ---- */

typedef void any_function(void);
typedef struct {
    const char *name; /* without the rank */
    any_function *of_rank[MOST_RANK];
} routine;

#define ROW(WHAT, T)                                                                                         \
    {                                                                                                        \
        "tec_" #WHAT "_" #T "_",                                                                             \
        {                                                                                                    \
            (any_function *)WHAT##_##T##_1, (any_function *)WHAT##_##T##_2, (any_function *)WHAT##_##T##_3,  \
                (any_function *)WHAT##_##T##_4, (any_function *)WHAT##_##T##_5                               \
        }                                                                                                    \
    }
static const routine routines[] = {
    ROW(top_k, f32),
    ROW(top_k, f64),
    ROW(top_k, i32),
    ROW(top_k, i64),
    ROW(scatter_elements, f32),
    ROW(scatter_elements, f64),
    ROW(scatter_elements, i32),
    ROW(scatter_elements, i64),
    ROW(scatter_elements, b1),
    ROW(scatter_elements, b2),
    ROW(scatter_elements, b4),
    ROW(scatter_elements, b8),
    ROW(scatter_nd, f32),
    ROW(scatter_nd, f64),
    ROW(scatter_nd, i32),
    ROW(scatter_nd, i64),
    ROW(scatter_nd, b1),
    ROW(scatter_nd, b2),
    ROW(scatter_nd, b4),
    ROW(scatter_nd, b8),
};

void *rt_routine(const char *name)
{
    size_t size = strlen(name);
    void *found = NULL;

    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++) {
        int rank = size ? name[size - 1] - '0' : 0;
        if (rank >= 1 && rank <= MOST_RANK && strlen(routines[i].name) == size - 1 &&
            memcmp(routines[i].name, name, size - 1) == 0)
            memcpy(&found, &routines[i].of_rank[rank - 1], sizeof found);
    }
    return found;
}
