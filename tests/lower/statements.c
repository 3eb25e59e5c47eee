/* tests/lower/statements.c -- random statements through the whole pipeline, as trees of blocks never come to
 * be: branches with an else, values with a name, buffers inside of buffers, and loops of every kind around
 * all of that. After each pass the results are the same.
 *
 *     for y in 0..n parallel { for v in 0..3 vectorised { allocate T0: f32[4] @local {
 *       for j in 0..4 unrolled { T0[j] = A[y + 2, v*4 + j] }
 *       let d1 = T0[3] { if y < 3 { for j in 1..+2 { C[y, v*4 + j] = T0[4 - j]*d1 } } else { ... } }
 *     } } }
 *
 * What is stored lies between -500 and 500, so that sums and products are exact whatever their order.
 */
#include "tests/lower/pass.h"

TestSuite(statements, .init = open_context, .fini = close_context);

enum { MAX_BUFFERS = 4, MAX_NAMES = 6 };

typedef struct {
    uint64_t state;
    base_text text;
    int names;         /* given so far */
    const char *outer; /* how the loop over v runs */
    int64_t width;     /* of a row of C as one v sees it, and of all buffers */
    const char *at;    /* "v*4 + " */
    const char *buffer[MAX_BUFFERS];
    int n_buffers;
    const char *value[MAX_NAMES];
    int n_values;
    const char *index[MAX_NAMES]; /* variables of serial loops, below width */
    int n_indices;
} maker;

static int64_t below(maker *m, int64_t n)
{
    return base_random_below(&m->state, n);
}
static bool chance(maker *m, int percent)
{
    return below(m, 100) < percent;
}
#define PUT(m, ...) base_addf(cx, &(m)->text, __VA_ARGS__)

/* ---- expressions: at element j of a loop, or anywhere where j is NULL ---- */

static const char *some_index(maker *m, const char *j)
{
    if (j && chance(m, 60))
        return j;
    return m->n_indices && chance(m, 70) ? m->index[below(m, m->n_indices)]
                                         : base_format(cx, "%d", (int)below(m, m->width));
}

/* An element of a buffer that nobody writes at the moment; of the one that is written, element j. */
static const char *some_element(maker *m, const char *j, const char *written)
{
    const char *b = m->n_buffers ? m->buffer[below(m, m->n_buffers)] : NULL, *i = some_index(m, j);
    int w = (int)m->width, by = (int)below(m, m->width);

    if (!b)
        return base_format(cx, "f32(%s)", i);
    if (b == written)
        return base_format(cx, "%s[%s]", b, j);
    switch (below(m, 4)) {
    case 0: return base_format(cx, "%s[%d - %s]", b, w - 1, i);
    case 1: return base_format(cx, "%s[(%s + %d) %% %d]", b, i, by, w);
    case 2: return base_format(cx, "select(%s >= %d, %s[%s - %d], 1.0)", i, by, b, i, by);
    default: return base_format(cx, "%s[%s]", b, i);
    }
}

static const char *some_condition(maker *m, const char *j)
{
    const char *i = some_index(m, j);
    int by = (int)below(m, m->width);

    switch (below(m, 6)) {
    case 0: return base_format(cx, "y + %s < n", i);
    case 1: return base_format(cx, "(y + %s) %% %d == 0", i, 2 + (int)below(m, 3));
    case 2: return base_format(cx, "%s >= %d && y > %d", i, by, (int)below(m, 3));
    case 3: return base_format(cx, "%s < %d || n == 5", i, by);
    case 4: return base_format(cx, "v*2 + %s != %d", i, by);
    default: return base_format(cx, "%s <= %d", i, by);
    }
}

static const char *some_value(maker *m, const char *j, const char *written)
{
    const char *i = some_index(m, j);

    switch (below(m, 7)) {
    case 0: return base_format(cx, "A[y + %d, %s%s]", (int)below(m, 8), m->at, i);
    case 1: return base_format(cx, "A[y, 11 - (%s%s)]", m->at, i);
    case 2: return base_format(cx, "f32(%s*%d - y)", i, (int)below(m, 3));
    case 3: return m->n_values ? m->value[below(m, m->n_values)] : "2.0";
    case 4:
        return base_format(cx, "select(%s, %s, %d.0)", some_condition(m, j), some_element(m, j, written),
                           (int)below(m, 3));
    default: return some_element(m, j, written);
    }
}

static const char *some_result(maker *m, const char *j, const char *written)
{
    const char *a = some_value(m, j, written), *b = some_value(m, j, written), *c = some_value(m, j, written);
    const char *e = chance(m, 50)   ? base_format(cx, "%s + %s*%s", a, b, c)
                    : chance(m, 50) ? base_format(cx, "%s - %s", a, b)
                                    : a;

    return base_format(cx, "max(-500.0, min(%s, 500.0))", e);
}

/* ---- statements ---- */

static const char *new_name(maker *m, const char *stem)
{
    return base_format(cx, "%s%d", stem, m->names++);
}

static const char *some_kind(maker *m)
{
    static const char *const inside_lanes[] = {"", " unrolled"}, *const all[] = {"", " unrolled",
                                                                                 " vectorised", " vectorised",
                                                                                 " vthread"};

    return base_same(m->outer, " vectorised") ? inside_lanes[below(m, 2)] : all[below(m, 5)];
}

/* One element after the other of a buffer or of the row of C: all of them, or some, with a condition or
 * without. */
static void put_fill(maker *m, bool whole)
{
    const char *j = new_name(m, "j"), *to = whole || chance(m, 50) ? m->buffer[m->n_buffers - 1] : NULL;
    const char *kind = some_kind(m),
               *store = to ? base_format(cx, "%s[%s]", to, j) : base_format(cx, "C[y, %s%s]", m->at, j);
    int min = whole ? 0 : (int)below(m, 3), n = whole ? (int)m->width : 1 + (int)below(m, m->width - min);
    const char *before = whole ? "0.0" : store;

    if (whole)
        m->n_buffers--;
    if (!whole && chance(m, 30) && *kind != ' ')
        PUT(m, "for %s in %d..+min(n, %d) {\n", j, min, n);
    else
        PUT(m, "for %s in %d..+%d%s {\n", j, min, n, kind);
    int way = (int)below(m, 4);
    if (way == 0)
        PUT(m, "if %s { %s = %s } else { %s = %s }\n", some_condition(m, j), store, some_result(m, j, to),
            store, some_result(m, j, to));
    else if (way == 1 && !whole)
        PUT(m, "if %s { %s = %s }\n", some_condition(m, j), store, some_result(m, j, to));
    else if (way == 2)
        PUT(m, "%s = max(-500.0, min(%s + %s, 500.0))\n", store, before, some_value(m, j, to));
    else
        PUT(m, "%s = %s\n", store, some_result(m, j, to));
    PUT(m, "}\n");
    if (whole)
        m->n_buffers++;
}

static void put_some(maker *m, int depth);

static void put_buffer(maker *m, int depth)
{
    const char *b = m->buffer[m->n_buffers++] = new_name(m, "T");

    PUT(m, "allocate %s: f32[%d]%s {\n", b, (int)m->width, chance(m, 70) ? " @local" : "");
    put_fill(m, true);
    put_some(m, depth - 1);
    put_some(m, depth - 1);
    put_fill(m, false);
    PUT(m, "}\n");
    m->n_buffers--;
}

static void put_some(maker *m, int depth)
{
    int way = depth > 0 ? (int)below(m, 6) : 5;

    if (way == 0 && m->n_buffers < MAX_BUFFERS) {
        put_buffer(m, depth);
    } else if (way == 1 && m->n_indices < MAX_NAMES) {
        const char *k = new_name(m, "k");

        PUT(m, "for %s in 0..%d%s {\n", k, 1 + (int)below(m, m->width), chance(m, 20) ? " unrolled" : "");
        m->index[m->n_indices++] = k;
        put_some(m, depth - 1);
        m->n_indices--;
        PUT(m, "}\n");
    } else if (way == 2) {
        PUT(m, "if %s {\n", some_condition(m, NULL));
        put_some(m, depth - 1);
        PUT(m, "}");
        if (chance(m, 60)) {
            PUT(m, " else {\n");
            put_some(m, depth - 1);
            PUT(m, "}");
        }
        PUT(m, "\n");
    } else if (way == 3 && m->n_values < MAX_NAMES) {
        const char *d = new_name(m, "d");

        PUT(m, "let %s = %s {\n", d, some_result(m, NULL, NULL));
        m->value[m->n_values++] = d;
        put_some(m, depth - 1);
        m->n_values--;
        PUT(m, "}\n");
    } else {
        put_fill(m, false);
        if (way == 4)
            put_some(m, depth - 1);
    }
}

static const char *random_program(uint64_t seed)
{
    static const char *const kinds[] = {"",          " vectorised", " vectorised",
                                        " unrolled", " vthread",    " parallel"};
    maker m = {.state = seed, .at = "v*4 + ", .width = 4};

    m.outer = kinds[below(&m, 6)];
    PUT(&m, "program s%llu(symbol n, A: f32[n + 8, 12], out C: f32[n, 12]) {\n", (unsigned long long)seed);
    PUT(&m, "for y in 0..n { for x in 0..12 { C[y, x] = 1.0 } }\nfor y in 0..n%s {\n",
        !base_same(m.outer, " parallel") && chance(&m, 30) ? " parallel" : "");
    PUT(&m, "for v in 0..3%s {\n", m.outer);
    put_buffer(&m, 4);
    PUT(&m, "}\n}\n}\n");
    return base_text_str(cx, &m.text);
}

/* ---- each pass keeps the results ---- */

static void check_seeds(uint64_t from, uint64_t to, const char *cpu)
{
    for (uint64_t seed = from; seed < to; seed++) {
        same_meaning("all", cpu, random_program(seed), SIZES(0, 1, 5, 7));
        close_context();
        open_context();
    }
}

Test(statements, keep_their_meaning_with_masks)
{
    check_seeds(1, 100, AVX512);
}
Test(statements, keep_their_meaning_with_short_vectors)
{
    check_seeds(1000, 1050, AVX2);
}
Test(statements, keep_their_meaning_without_masks)
{
    check_seeds(2000, 2050, SSE2);
}
