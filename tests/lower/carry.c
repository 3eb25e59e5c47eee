/* tests/lower/carry.c -- which loops carry the values of a buffer: random programs whose buffers are declared
 * at the top, through compact, which allocates each as far inside as its values live. One loop too far
 * inside, and the interpreter finds a read of what nothing wrote.
 *
 *     buffer P: f32[8]
 *     for t in 0..4 {
 *       if t == 0 { for x in 0..8 { P[x] = 1.0 } }
 *       for i in 0..4 { if i < n { for j in 0..2 { P[i*2 + j] = A[t, i] } } }  what this leaves,
 *           the first iteration wrote
 *       for x in 0..8 { B[t, x] = select(x < n, P[7 - x], 2.0) }
 *     }
 *
 * What a store writes below its loops is a box without holes, unless a condition leaves some out, as
 * schedules make it: no variable is in two indices, or steps over elements.
 */
#include "tests/lower/pass.h"

TestSuite(carry, .init = open_context, .fini = close_context);

enum { STEPS = 4, WIDTH = 8, MAX_VARS = 8 };

typedef struct {
    const char *name;
    int64_t below; /* its values are from 0 to below - 1 */
    bool whole;    /* and all of these */
    int loops;     /* the loops that it goes with, as bits; a step of t is none of them */
} variable;

typedef struct {
    uint64_t state;
    base_text text;
    int names, n_vars;
    variable var[MAX_VARS];
    int loops;        /* of the variables in the expression so far */
    int64_t shape[2]; /* of P; its product is WIDTH */
    int n;
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

/* One of the last variables, with at most that many values; NULL: what came up does not do. */
static const variable *some_variable(maker *m, int64_t most)
{
    const variable *v = m->n_vars ? &m->var[m->n_vars - 1 - below(m, m->n_vars < 3 ? m->n_vars : 3)] : NULL;

    return v && v->below <= most && !(m->loops & v->loops) ? v : NULL;
}

/* A number from 0 to limit - 1: the variable by itself, or shifted, or backwards. */
static const char *shifted(maker *m, const variable *v, int64_t limit)
{
    switch (below(m, 3)) {
    case 0: return base_format(cx, "%d - %s", (int)limit - 1, v->name);
    case 1: return base_format(cx, "%s + %d", v->name, (int)below(m, limit - v->below + 1));
    default: return v->name;
    }
}

/* A number from 0 to limit - 1 that goes with loops no other index went with. */
static const char *dense_index(maker *m, int64_t limit)
{
    const variable *v = some_variable(m, limit);

    if (!v)
        return base_format(cx, "%d", (int)below(m, limit));
    m->loops |= v->loops;
    const variable *w = some_variable(m, limit / v->below);
    if (!w || !w->whole || w->below < 2)
        return shifted(m, v, limit);
    m->loops |= w->loops;
    return base_format(cx, "%s*%d + %s", v->name, (int)w->below, w->name);
}

static const char *some_index(maker *m, int64_t limit)
{
    m->loops = 0;
    const char *e = dense_index(m, limit);
    return chance(m, 20) ? base_format(cx, "(%s + %d) %% %d", e, (int)below(m, limit), (int)limit) : e;
}

static const char *some_element(maker *m)
{
    const char *first = some_index(m, m->shape[0]);

    return m->n == 1 ? base_format(cx, "P[%s]", first)
                     : base_format(cx, "P[%s, %s]", first, some_index(m, m->shape[1]));
}

static const char *dense_element(maker *m)
{
    m->loops = 0;
    const char *first = dense_index(m, m->shape[0]);
    return m->n == 1 ? base_format(cx, "P[%s]", first)
                     : base_format(cx, "P[%s, %s]", first, dense_index(m, m->shape[1]));
}

static const char *some_condition(maker *m)
{
    const char *i = some_index(m, WIDTH);

    switch (below(m, 7)) {
    case 0: return base_format(cx, "%s < n", i);
    case 1: return base_format(cx, "%s >= %d", i, (int)below(m, 3));
    case 2: return "t == 0";
    case 3: return base_format(cx, "t > 0 && %s != 2", i);
    case 4: return base_format(cx, "%s + t < n", i);
    case 5: return "n > 3";
    default: return base_format(cx, "%s < n || t == 0", i);
    }
}

static const char *add_variable(maker *m, const char *stem, int64_t most, bool whole, int loops)
{
    const char *name = base_format(cx, "%s%d", stem, m->names++);

    m->var[m->n_vars++] = (variable){name, most, whole, loops};
    return name;
}

static void open_loop(maker *m)
{
    int extent = 2 << below(m, 3);
    bool whole = chance(m, 70);
    const char *i = add_variable(m, "i", extent, whole, 1 << m->names),
               *bound = chance(m, 50) ? "n" : "n - t";

    if (whole)
        PUT(m, "for %s in 0..%d", i, extent);
    else
        PUT(m, "for %s in 0..min(%s, %d)", i, bound, extent);
}

static void open_let(maker *m)
{
    m->loops = 0;
    const char *value = dense_index(m, 4);
    PUT(m, "let %s = %s", add_variable(m, "q", 4, false, m->loops), value);
}

/* Stores below some loops, conditions and lets, in random order. */
static void put_writes(maker *m, int depth)
{
    int way = depth ? (int)below(m, 6) : 5, n_vars = m->n_vars;

    if (way <= 1) {
        open_loop(m);
    } else if (way == 2) {
        PUT(m, "if %s", some_condition(m));
    } else if (way == 3) {
        open_let(m);
    } else {
        PUT(m, "%s = A[t, %s]", dense_element(m), some_index(m, WIDTH));
        if (chance(m, 10))
            PUT(m, " where %s", some_condition(m));
        PUT(m, "\n");
        if (depth && chance(m, 30))
            put_writes(m, depth - 1);
        return;
    }
    PUT(m, " {\n");
    put_writes(m, depth - 1);
    PUT(m, "}");
    if (way == 2 && chance(m, 40)) {
        PUT(m, " else {\n");
        put_writes(m, depth - 1);
        PUT(m, "}");
    }
    PUT(m, "\n");
    m->n_vars = n_vars;
}

static void put_all(maker *m, const char *condition)
{
    PUT(m, "if %s {\n", condition);
    for (int d = 0; d < m->n; d++)
        PUT(m, "for a%d in 0..%d {\n", d, (int)m->shape[d]);
    PUT(m, "P[%s] = 1.0\n}\n}\n", m->n == 1 ? "a0" : "a0, a1");
    PUT(m, m->n == 1 ? "" : "}\n");
}

static void put_reads(maker *m)
{
    int n_vars = m->n_vars;
    const char *x = add_variable(m, "x", WIDTH, true, 1 << m->names);

    PUT(m, "for %s in 0..%d { B[t, %s] = ", x, WIDTH, x);
    if (chance(m, 60))
        PUT(m, "select(%s, %s, A[t, %s])", some_condition(m), some_element(m), x);
    else
        PUT(m, "%s", some_element(m));
    PUT(m, " }\n");
    m->n_vars = n_vars;
}

static const char *random_program(uint64_t seed)
{
    static const char *const starts[] = {"t == 0", "t == 0", "t >= 0", "t % 2 == 0", "n <= 4"};
    maker m = {.state = seed, .n = 1, .shape = {WIDTH}};

    if (chance(&m, 40)) {
        m.n = 2;
        m.shape[0] = (int64_t)2 << below(&m, 2);
        m.shape[1] = WIDTH / m.shape[0];
    }
    PUT(&m, "program c%llu(symbol n, A: f32[4, 8], out B: f32[4, 8]) {\nbuffer P: f32[%d",
        (unsigned long long)seed, (int)m.shape[0]);
    PUT(&m, m.n == 2 ? ", %d]\n" : "]\n", (int)m.shape[1]);
    PUT(&m, "for t in 0..%d {\n", STEPS);
    m.var[m.n_vars++] = (variable){"t", STEPS, false, 0};
    if (chance(&m, 70))
        put_all(&m, starts[below(&m, BASE_COUNT(starts))]);
    for (int i = 1 + (int)below(&m, 3); i > 0; i--)
        put_writes(&m, 4);
    put_reads(&m);
    if (chance(&m, 40))
        put_writes(&m, 3);
    PUT(&m, "}\n}\n");
    return base_text_str(cx, &m.text);
}

/* How many of the sizes the program itself is right for; there it is so behind the pass too. */
static int check(uint64_t seed, bool *inside)
{
    const ir_program *before = parse(random_program(seed)), *now = through("compact", AVX512, before, false);
    int ran = 0;

    cr_assert(now, "seed %llu: %s", (unsigned long long)seed, tec_context_error(cx));
    *inside = strstr(ir_program_text(cx, now), "{\n    allocate P") != NULL;
    for (int64_t size = 0; size <= 9; size += 3) {
        memory m = fill(before, size, seed);

        if (runs(before, &m)) {
            same_results(before, now, size, seed, "compact");
            ran++;
        }
        tec_context_clear(cx);
    }
    return ran;
}

Test(carry, what_a_loop_carries_is_allocated_outside_of_it)
{
    int ran = 0, allocated_inside = 0;

    for (uint64_t seed = 1; seed <= 1200; seed++) {
        bool inside;

        if (check(seed, &inside) == 4) {
            ran++;
            allocated_inside += inside;
        }
        close_context();
        open_context();
    }
    cr_assert(ran > 600 && allocated_inside > 100,
              "of %d programs that run, %d have the buffer inside of the loop", ran, allocated_inside);
}
