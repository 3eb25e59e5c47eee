/* tests/lower/launch.c -- random tiles of a matrix product on the threads of a GPU, through the whole
 * pipeline: each result is that of the serial tree, without a race, and with all barriers reached by all
 * threads.
 *
 *     for y.0 in 0..ceildiv(n, 4) blockIdx.x { for c.0 in 0..4 {
 *       for k.0 in 0..5 @double_buffer(1) {
 *         # shared
 *         for p.y in 0..4 threadIdx.y { for p.k in 0..2 threadIdx.x { block P: P[y, k] = A[y, k]*2 + 1 } }
 *         for C.y in 0..4 threadIdx.y { for C.c in 0..2 vthread { for C.k in 0..2 { block C: C[y,
 *             c] sum= P[y, k]*W[k, c] } } }
 *       }
 *       for D.y in 0..4 threadIdx.y { for D.c in 0..2 vthread { block D: D[y, c] = C[y, c]*0.5 } }
 *     } }
 *
 * Tiles need not divide their axes; a loop of one tile may be bound to an axis of threads, be virtual
 * threads, unrolled, or serial.
 */
#include "tests/lower/pass.h"

TestSuite(launch, .init = open_context, .fini = close_context);

enum { COLUMNS = 7, TERMS = 10 };

typedef struct {
    uint64_t state;
    base_text text;
    bool serial; /* the tree without threads */
} maker;

/* How the loops over a tile run: rows and columns in C and D, rows and terms in P. */
typedef struct {
    int rows, columns, terms;
    const char *row_how, *column_how, *copy_row_how, *copy_term_how, *term_how, *pipeline;
    const char *scope_of_p, *scope_of_c, *column_blocks;
    int body;
} tile;

static int64_t below(maker *m, int64_t n)
{
    return base_random_below(&m->state, n);
}
#define PUT(m, ...) base_addf(cx, &(m)->text, __VA_ARGS__)
#define ONE_OF(m, ...) ((const char *[]){__VA_ARGS__})[below(m, BASE_COUNT(((const char *[]){__VA_ARGS__})))]

static tile random_tile(maker *m)
{
    tile t = {.rows = 1 + (int)below(m, 5),
              .columns = 1 + (int)below(m, 4),
              .terms = 1 + (int)below(m, 4),
              .body = (int)below(m, 3)};
    bool crossed = below(m, 2);

    t.row_how = ONE_OF(m, "threadIdx.x", "threadIdx.x", "vthread", "");
    t.column_how = ONE_OF(m, "threadIdx.y", "threadIdx.y", "vthread", "unrolled", "");
    t.term_how = ONE_OF(m, "", "unrolled");
    /* One axis has as many threads everywhere. */
    t.copy_row_how = base_same(t.row_how, "threadIdx.x") ? t.row_how : "";
    if (crossed && t.rows == t.columns && base_same(t.column_how, "threadIdx.y"))
        t.copy_row_how = "threadIdx.y";
    t.copy_term_how = base_same(t.column_how, "threadIdx.y") && t.terms == t.columns &&
                              !base_same(t.copy_row_how, "threadIdx.y")
                          ? "threadIdx.y"
                          : "";
    t.scope_of_p = ONE_OF(m, " @shared", " @shared", "");
    t.scope_of_c = ONE_OF(m, " @local", " @local", " @shared", "");
    t.column_blocks = ONE_OF(m, "", "blockIdx.y", "unrolled");
    t.pipeline = t.scope_of_p[0] ? ONE_OF(m, "", " @double_buffer(1)") : "";
    return t;
}

static void put_loop(maker *m, const char *var, int64_t extent, const char *how)
{
    PUT(m, "for %s in 0..%d %s {\n", var, (int)extent, m->serial ? "" : how);
}

#define ROW(stage) "y = y.0*%d + " stage ".y in 0..n"
#define IN_ROWS(stage) "y.0*%d + " stage ".y < n"

static const char *const updates[] = {
    "init { C[y, c] = 0.0 } C[y, c] sum= P[y, k]*W[k, c]\n",
    "init { C[y, c] = -9.0 } C[y, c] max= P[y, k] - W[k, c]\n",
    "init { C[y, c] = 1.0 } if c + k >= 2 { C[y, c] sum= P[y, k]*W[k, c] }\n",
};

static void put_copy(maker *m, const tile *t)
{
    put_loop(m, "P.y", t->rows, t->copy_row_how);
    put_loop(m, "P.k", t->terms, t->copy_term_how);
    PUT(m, "block P(" ROW("P") ", k = k.0*%d + P.k in 0..10) where " IN_ROWS("P") " && k.0*%d + P.k < 10 {\n",
        t->rows, t->terms, t->rows, t->terms);
    PUT(m, "reads A[y, k] writes P[y, k] P[y, k] = A[y, k]*2.0 + 1.0\n}\n}\n}\n");
}

static void put_reduction(maker *m, const tile *t)
{
    put_loop(m, "C.y", t->rows, t->row_how);
    put_loop(m, "C.c", t->columns, t->column_how);
    put_loop(m, "C.k", t->terms, t->term_how);
    PUT(m, "block C(" ROW("C") ", c = c.0*%d + C.c in 0..7, k reduce = k.0*%d + C.k in 0..10)", t->rows,
        t->columns, t->terms);
    PUT(m, " where " IN_ROWS("C") " && c.0*%d + C.c < 7 && k.0*%d + C.k < 10 {\n", t->rows, t->columns,
        t->terms);
    PUT(m, "reads P[y, k], W[k, c] writes C[y, c] %s}\n}\n}\n}\n", updates[t->body]);
}

static void put_result(maker *m, const tile *t)
{
    put_loop(m, "D.y", t->rows, t->row_how);
    put_loop(m, "D.c", t->columns, t->column_how);
    PUT(m, "block D(" ROW("D") ", c = c.0*%d + D.c in 0..7) where " IN_ROWS("D") " && c.0*%d + D.c < 7 {\n",
        t->rows, t->columns, t->rows, t->columns);
    PUT(m, "reads C[y, c] writes D[y, c] D[y, c] = C[y, c]*0.5 + select(c == 3, 1.0, -1.0)\n}\n}\n}\n");
}

static const char *random_program(uint64_t seed, bool serial)
{
    maker m = {.state = seed, .serial = serial};
    tile t = random_tile(&m);

    PUT(&m, "program g%llu(symbol n, A: f32[n, 10], W: f32[10, 7], out D: f32[n, 7]) {\n",
        (unsigned long long)seed);
    PUT(&m, "buffer P: f32[n, 10]%s\nbuffer C: f32[n, 7]%s\n", t.scope_of_p, t.scope_of_c);
    PUT(&m, "for y.0 in 0..floordiv(n + %d, %d) %s {\n", t.rows - 1, t.rows, serial ? "" : "blockIdx.x");
    put_loop(&m, "c.0", (COLUMNS + t.columns - 1) / t.columns, t.column_blocks);
    PUT(&m, "for k.0 in 0..%d%s {\n", (TERMS + t.terms - 1) / t.terms, serial ? "" : t.pipeline);
    put_copy(&m, &t);
    put_reduction(&m, &t);
    PUT(&m, "}\n");
    put_result(&m, &t);
    PUT(&m, "}\n}\n}\n");
    return base_text_str(cx, &m.text);
}

Test(launch, tiles_on_threads_keep_their_meaning)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        const ir_program *serial = parse(random_program(seed, true)),
                         *tree = parse(random_program(seed, false));
        const ir_program *p = through("all", "cuda", tree, false);

        cr_assert(p, "seed %llu: %s\n%s", (unsigned long long)seed, tec_context_error(cx),
                  ir_program_text(cx, tree));
        for (int64_t n = 0; n <= 11; n += 1 + n)
            same_results(serial, p, n, seed, "all");
        close_context();
        open_context();
    }
}
