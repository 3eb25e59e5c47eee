/* tests/lower/random.c -- random loop trees through the whole pipeline: each pass keeps the results, whatever
 * the target and the sizes.
 *
 * A tree has up to three stages: P is made from A with or without padding, C reduces P along k (and fills c),
 * D takes C element by element. Every axis may be split, with a guard where the factor does not divide; loops
 * stand in random order; P may be computed inside an outer loop of C, for the rows that this needs. Loops are
 * parallel, vectorised or unrolled where that is legal.
 */
#include "tests/lower/pass.h"

TestSuite(random, .init = open_context, .fini = close_context);

typedef struct {
    uint64_t state;
    base_text text;
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

typedef struct {
    const char *name, *extent;
    int64_t constant; /* 0: symbolic */
    bool reduce;
    const char *bind;  /* over the loops */
    const char *guard; /* NULL: none */
} axis;

typedef struct {
    const char *var, *extent, *how;
    int64_t constant;
    bool reduce;
} loop;

typedef struct {
    loop at[16];
    int n;
} loops;

static void add_loop(loops *l, const char *var, const char *extent, int64_t constant, bool reduce)
{
    l->at[l->n++] = (loop){.var = var, .extent = extent, .how = "", .constant = constant, .reduce = reduce};
}

/* One or two loops for an axis. */
static void split_axis(maker *m, const char *stage, axis *a, loops *out)
{
    int64_t f = below(m, 4) == 0 ? 16 : 2 + below(m, 5);
    const char *name = base_format(cx, "%s.%s", stage, a->name);

    if (chance(m, 40)) {
        add_loop(out, name, a->extent, a->constant, a->reduce);
        a->bind = name;
        return;
    }
    const char *outer = base_format(cx, "%s.0", name), *inner = base_format(cx, "%s.1", name);
    int64_t whole = a->constant ? (a->constant + f - 1) / f : 0;
    add_loop(out, outer,
             whole ? base_format(cx, "%d", (int)whole)
                   : base_format(cx, "floordiv(%s + %d, %d)", a->extent, (int)f - 1, (int)f),
             whole, a->reduce);
    add_loop(out, inner, base_format(cx, "%d", (int)f), f, a->reduce);
    a->bind = base_format(cx, "%s*%d + %s", outer, (int)f, inner);
    if (!a->constant || a->constant % f)
        a->guard = base_format(cx, "%s < %s", a->bind, a->extent);
}

static void shuffle(maker *m, loops *l, int from)
{
    for (int i = l->n - 1; i > from; i--) {
        int j = from + (int)below(m, i - from + 1);
        loop t = l->at[i];

        l->at[i] = l->at[j];
        l->at[j] = t;
    }
}

static void annotate(maker *m, loops *l, bool inside)
{
    if (l->n && !inside && !l->at[0].reduce && chance(m, 30))
        l->at[0].how = " parallel";
    for (int i = 1; i < l->n; i++)
        if (l->at[i].constant && l->at[i].constant <= 6 && chance(m, 30))
            l->at[i].how = " unrolled";
    loop *last = &l->at[l->n - 1];
    if (l->n > 0 && last->constant && chance(m, 60) && !strstr(last->how, "parallel"))
        last->how = " vectorised";
}

static void open_loops(maker *m, const loops *l, int from, int to)
{
    for (int i = from; i < to; i++)
        PUT(m, "for %s in 0..%s%s {\n", l->at[i].var, l->at[i].extent, l->at[i].how);
}

static void close_loops(maker *m, int n)
{
    for (int i = 0; i < n; i++)
        PUT(m, "}\n");
}

static void put_block(maker *m, const char *name, const axis *a, int n, const char *more_guard,
                      const char *body)
{
    const char *word = " where ";

    PUT(m, "block %s(", name);
    for (int i = 0; i < n; i++)
        PUT(m, "%s%s%s = %s in 0..%s", i ? ", " : "", a[i].name, a[i].reduce ? " reduce" : "", a[i].bind,
            a[i].extent);
    PUT(m, ")");
    for (int i = 0; i <= n; i++) {
        const char *guard = i < n ? a[i].guard : more_guard;

        if (guard) {
            PUT(m, "%s%s", word, guard);
            word = " && ";
        }
    }
    PUT(m, " {\n%s}\n", body);
}

/* ---- stages ---- */

enum { WIDTH = 10, COLUMNS = 7 };

static const char *const producers[] = {
    "reads A[0:n, 0:10] writes P[y, x] P[y, x] = A[y, x]*2.0 + 1.0\n",
    "reads A[0:n, 0:10] writes P[y, x] P[y, x] = select(0 <= y - 1 && 0 <= x - 2, A[y - 1, x - 2], 0.0)\n",
    "reads A[0:n, 0:10] writes P[y, x] P[y, x] = select(y + 1 < n && x + 1 < 10, A[y + 1, x + 1] - A[y, x], "
    "A[y, 9 - x])\n",
};
static const char *const reducers[] = {
    "reads P[0:n, 0:10], W[0:10, 0:7] writes C[y, c] init { C[y, c] = 0.0 } C[y, c] sum= P[y, k]*W[k, c]\n",
    "reads P[0:n, 0:10], W[0:10, 0:7] writes C[y, c] init { C[y, c] = 1.0 } C[y, c] max= P[y, k] - W[k, c]\n",
    "reads P[0:n, 0:10], W[0:10, 0:7] writes C[y, c] init { C[y, c] = 0.0 } if c + k - 2 >= 0 && c + k - 2 < "
    "10 { C[y, c] sum= P[y, c + k - 2]*W[k, c] }\n",
};

static void put_producer_at_root(maker *m, const char *body)
{
    axis a[] = {{"y", "n", 0, false, NULL, NULL}, {"x", "10", WIDTH, false, NULL, NULL}};
    loops l = {0};

    split_axis(m, "P", &a[0], &l);
    split_axis(m, "P", &a[1], &l);
    shuffle(m, &l, 0);
    annotate(m, &l, false);
    open_loops(m, &l, 0, l.n);
    put_block(m, "P", a, 2, NULL, body);
    close_loops(m, l.n);
}

/* The rows first .. first+rows-1 of P, inside a loop of C. */
static void put_producer_inside(maker *m, const char *body, const char *first, int64_t rows)
{
    axis a[] = {{"y", "n", 0, false, NULL, NULL}, {"x", "10", WIDTH, false, NULL, NULL}};
    loops l = {0};

    add_loop(&l, "P.y", base_format(cx, "%d", (int)rows), rows, false);
    a[0].bind = base_format(cx, "%s + P.y", first);
    a[0].guard = base_format(cx, "%s + P.y < n", first);
    split_axis(m, "P", &a[1], &l);
    shuffle(m, &l, 0);
    annotate(m, &l, true);
    open_loops(m, &l, 0, l.n);
    put_block(m, "P", a, 2, NULL, body);
    close_loops(m, l.n);
}

static void put_reducer(maker *m, const char *producer, const char *body)
{
    axis a[] = {{"y", "n", 0, false, NULL, NULL},
                {"c", "7", COLUMNS, false, NULL, NULL},
                {"k", "10", WIDTH, true, NULL, NULL}};
    loops l = {0};

    split_axis(m, "C", &a[0], &l);
    bool split = l.n == 2, inside = split && producer && chance(m, 60);
    int64_t rows = l.at[l.n - 1].constant;
    split_axis(m, "C", &a[1], &l);
    split_axis(m, "C", &a[2], &l);
    shuffle(m, &l, inside ? 1 : 0);
    annotate(m, &l, false);
    if (producer && !inside)
        put_producer_at_root(m, producer);
    open_loops(m, &l, 0, inside ? 1 : 0);
    if (inside)
        put_producer_inside(m, producer, base_format(cx, "C.y.0*%d", (int)rows), rows);
    open_loops(m, &l, inside ? 1 : 0, l.n);
    put_block(m, "C", a, 3, NULL, body);
    close_loops(m, l.n);
}

static void put_epilogue(maker *m)
{
    axis a[] = {{"y", "n", 0, false, NULL, NULL}, {"c", "7", COLUMNS, false, NULL, NULL}};
    loops l = {0};

    split_axis(m, "D", &a[0], &l);
    split_axis(m, "D", &a[1], &l);
    shuffle(m, &l, 0);
    annotate(m, &l, false);
    open_loops(m, &l, 0, l.n);
    put_block(m, "D", a, 2, NULL,
              "reads C[y, c] writes D[y, c] D[y, c] = max(C[y, c], 0.0)*0.5 + select(c == 3, 1.0, -1.0)\n");
    close_loops(m, l.n);
}

static const char *random_tree(uint64_t seed)
{
    maker m = {.state = seed};

    PUT(&m, "program p%llu(symbol n, A: f32[n, 10], W: f32[10, 7], out D: f32[n, 7]) {\n",
        (unsigned long long)seed);
    PUT(&m, "buffer P: f32[n, 10]\nbuffer C: f32[n, 7]%s\n", "");
    put_reducer(&m, producers[below(&m, BASE_COUNT(producers))], reducers[below(&m, BASE_COUNT(reducers))]);
    put_epilogue(&m);
    PUT(&m, "}\n");
    return base_text_str(cx, &m.text);
}

/* ---- tiles: C in a local buffer of the size of a tile, inside the outer loops of D ---- */

typedef struct {
    int64_t rows, columns;
    const char *y, *c; /* the first row and column of the tile */
} tile;

static const char *one_of(maker *m, const char *a, const char *b, const char *c)
{
    int64_t i = below(m, 3);

    return i == 0 ? a : i == 1 ? b : c;
}

/* Loops over the tile for a stage, and over k where it reduces; one of them vectorised, wherever it
 * stands. */
static void tile_loops(maker *m, const char *stage, const tile *t, bool reduce, axis a[3], loops *l)
{
    const char *y = base_format(cx, "%s.y.1", stage), *c = base_format(cx, "%s.c.1", stage);

    a[0] = (axis){
        "y", "n", 0, false, base_format(cx, "%s + %s", t->y, y), base_format(cx, "%s + %s < n", t->y, y)};
    a[1] = (axis){"c",
                  "7",
                  COLUMNS,
                  false,
                  base_format(cx, "%s + %s", t->c, c),
                  COLUMNS % t->columns ? base_format(cx, "%s + %s < 7", t->c, c) : NULL};
    a[2] = (axis){"k", "10", WIDTH, true, NULL, NULL};
    add_loop(l, y, base_format(cx, "%d", (int)t->rows), t->rows, false);
    add_loop(l, c, base_format(cx, "%d", (int)t->columns), t->columns, false);
    if (reduce)
        split_axis(m, stage, &a[2], l);
    shuffle(m, l, 0);
    int vector = (int)below(m, l->n);
    for (int i = 0; i < l->n; i++)
        if (l->at[i].constant && l->at[i].constant <= 16)
            l->at[i].how = i == vector ? " vectorised" : one_of(m, "", " unrolled", " unrolled");
}

static const char *const tile_reducers[] = {
    "reads A[0:n, 0:10], W[0:10, 0:7] writes C[y, c] init { C[y, c] = 0.0 } C[y, c] sum= A[y, k]*W[k, c]\n",
    "reads A[0:n, 0:10], W[0:10, 0:7] writes C[y, c] init { C[y, c] = -1.0 } C[y, c] max= A[y, k] - W[k, "
    "c]\n",
    "reads A[0:n, 0:10], W[0:10, 0:7] writes C[y, c] init { C[y, c] = 0.0 }\n"
    "if y + k - 3 >= 0 && y + k - 3 < n { C[y, c] sum= A[y + k - 3, k]*W[k, c] }\n",
    "reads A[0:n, 0:10], W[0:10, 0:7] writes C[y, c] init { C[y, c] = 0.0 }\n"
    "C[y, c] sum= select(2 <= c + k && c + k < 12, A[y, c + k - 2], 0.0)*W[k, c]\n",
};

static const char *random_tiles(uint64_t seed)
{
    maker m = {.state = seed};
    tile t = {.rows = 1 + below(&m, 5), .columns = 1 + below(&m, 8)};
    int64_t across = (COLUMNS + t.columns - 1) / t.columns;
    axis a[3];
    loops l = {0}, d = {0};
    bool fused = chance(&m, 30);

    PUT(&m,
        "program t%llu(symbol n, A: f32[n, 10], W: f32[10, 7], out D: f32[n, 7]) {\nbuffer C: f32[n, 7]%s\n",
        (unsigned long long)seed, one_of(&m, " @local", " @local", ""));
    if (fused) {
        PUT(&m, "for yc in 0..floordiv(n + %d, %d)*%d%s {\n", (int)t.rows - 1, (int)t.rows, (int)across,
            one_of(&m, "", "", " parallel"));
        t.y = base_format(cx, "floordiv(yc, %d)*%d", (int)across, (int)t.rows);
        t.c = base_format(cx, "yc %% %d*%d", (int)across, (int)t.columns);
    } else {
        PUT(&m, "for y.0 in 0..floordiv(n + %d, %d)%s {\n", (int)t.rows - 1, (int)t.rows,
            one_of(&m, "", "", " parallel"));
        PUT(&m, "for c.0 in 0..%d {\n", (int)across);
        t.y = base_format(cx, "y.0*%d", (int)t.rows);
        t.c = base_format(cx, "c.0*%d", (int)t.columns);
    }
    tile_loops(&m, "C", &t, true, a, &l);
    open_loops(&m, &l, 0, l.n);
    put_block(&m, "C", a, 3, NULL, tile_reducers[below(&m, BASE_COUNT(tile_reducers))]);
    close_loops(&m, l.n);
    tile_loops(&m, "D", &t, false, a, &d);
    open_loops(&m, &d, 0, d.n);
    put_block(&m, "D", a, 2, NULL, "reads C[y, c] writes D[y, c] D[y, c] = C[y, c]*2.0 + 1.0\n");
    close_loops(&m, d.n + (fused ? 1 : 2));
    PUT(&m, "}\n");
    return base_text_str(cx, &m.text);
}

/* ---- each pass keeps the results ---- */

typedef struct {
    base_vec programs, names;
} history;

static void remember(void *user, const char *pass, const ir_program *before, const ir_program *now)
{
    history *h = user;

    if (now != before) {
        base_push(cx, &h->programs, now);
        base_push(cx, &h->names, pass);
    }
}

typedef const char *make_tree(uint64_t seed);

static void check_seed(make_tree *make, uint64_t seed, const char *cpu)
{
    const ir_program *tree = parse(make(seed));
    history h = {0};
    lower_options o = {.cx = cx, .target = target_parse(cx, cpu), .watch = remember, .user = &h};
    const ir_program *last = lower_run(&o, tree);
    static const int64_t sizes[] = {0, 1, 2, 5, 8, 13};

    cr_assert(last, "seed %llu: %s\n%s", (unsigned long long)seed, tec_context_error(cx),
              ir_program_text(cx, tree));
    for (int i = 0; i < h.programs.n; i++) {
        int64_t size = i + 1 == h.programs.n ? 5 : sizes[(seed + (uint64_t)i) % BASE_COUNT(sizes)];

        same_results(tree, h.programs.at[i], size, seed, h.names.at[i]);
    }
    for (int i = 0; i < BASE_COUNT(sizes); i++)
        same_results(tree, last, sizes[i], seed, "all passes");
}

static void check_seeds(make_tree *make, uint64_t from, uint64_t to, const char *cpu)
{
    for (uint64_t seed = from; seed < to; seed++) {
        check_seed(make, seed, cpu);
        close_context();
        open_context();
    }
}

Test(random, trees_keep_their_meaning_with_masks)
{
    check_seeds(random_tree, 1, 45, AVX512);
}
Test(random, trees_keep_their_meaning_with_short_vectors)
{
    check_seeds(random_tree, 1000, 1020, AVX2);
}
Test(random, trees_keep_their_meaning_without_masks)
{
    check_seeds(random_tree, 2000, 2045, SSE2);
}
Test(random, tiles_keep_their_meaning_with_masks)
{
    check_seeds(random_tiles, 1, 45, AVX512);
}
Test(random, tiles_keep_their_meaning_with_short_vectors)
{
    check_seeds(random_tiles, 1000, 1020, AVX2);
}
Test(random, tiles_keep_their_meaning_without_masks)
{
    check_seeds(random_tiles, 2000, 2045, SSE2);
}
