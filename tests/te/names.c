/* tests/te/names.c -- names of axes: the loops of a definition that was built by the API are those of its
 * text. */
#include "tests/te/kit.h"

TestSuite(te_names, .init = open_context, .fini = close_context);

#define AXES(...)                                                                                            \
    (const ir_expr *[]){__VA_ARGS__},                                                                        \
        (int)(sizeof((const ir_expr *[]){__VA_ARGS__}) / sizeof(const ir_expr *))

static const char *tree_text(const te_def *def)
{
    const ir_program *tree = te_tree(cx, def);

    cr_assert(tree, "%s\n%s", tec_context_error(cx), te_text(cx, def));
    return ir_program_text(cx, tree);
}

/* The definition has this stage in its text, and the text has the same tree. */
static void has(const te_def *def, const char *stage, const char *loop)
{
    const char *text = te_text(cx, def), *tree = tree_text(def);
    const te_def *again = defined(text);

    cr_assert(strstr(text, stage), "%s", text);
    cr_assert(strstr(tree, loop), "%s", tree);
    cr_assert_str_eq(te_text(cx, again), text);
    cr_assert_str_eq(tree_text(again), tree);
}

static const ir_expr *number(int64_t value)
{
    return ir_int(cx, value);
}

/* f(n, m) with A: [n, m]. */
typedef struct {
    te_def *def;
    const ir_expr *n, *m;
    te_tensor *A;
} matrix;

static matrix open_matrix(void)
{
    te_def *def = te_def_new(cx, "f");
    const ir_expr *n = te_symbol(def, "n"), *m = te_symbol(def, "m");

    return (matrix){def, n, m, te_input(def, "A", BASE_I64, (const ir_expr *[]){n, m}, 2)};
}

Test(te_names, an_axis_keeps_the_name_of_a_symbol_that_it_does_not_hide)
{
    matrix f = open_matrix();
    const ir_expr *n = te_axis(cx, "n", f.n), *m = te_axis(cx, "m", f.m);

    te_output(f.def, te_compute(f.def, "C", AXES(n, m), te_at(f.A, n, m)));
    has(f.def, "C[n: n, m: m] = A[n, m]", "for C.n in 0..n {");
}

Test(te_names, an_axis_does_not_hide_a_symbol_of_a_later_extent)
{
    matrix f = open_matrix();
    const ir_expr *m = te_axis(cx, "m", f.n), *n = te_axis(cx, "n", f.m);

    te_output(f.def, te_compute(f.def, "C", AXES(m, n), te_at(f.A, m, n)));
    has(f.def, "C[m'2: n, n: m] = A[m'2, n]", "for C.m'2 in 0..n {");
}

Test(te_names, an_axis_does_not_hide_a_symbol_or_scalar_of_the_body)
{
    matrix f = open_matrix();
    const ir_expr *s = te_scalar(f.def, "s", BASE_I64), *n = te_axis(cx, "n", f.n),
                  *j = te_axis(cx, "s", f.m);

    te_output(f.def, te_compute(f.def, "C", AXES(n, j), ir_add(cx, te_at(f.A, n, j), ir_mul(cx, f.n, s))));
    has(f.def, "C[n'2: n, s'2: m] = A[n'2, s'2] + n * s", "for C.s'2 in 0..m {");
}

Test(te_names, two_axes_of_one_name)
{
    matrix f = open_matrix();
    const ir_expr *i = te_axis(cx, "i", f.n), *j = te_axis(cx, "i", f.m);

    te_output(f.def, te_compute(f.def, "C", AXES(i, j), te_at(f.A, i, j)));
    has(f.def, "C[i: n, i'2: m] = A[i, i'2]", "for C.i'2 in 0..m {");
}

Test(te_names, a_reduction_axis_of_the_name_of_an_axis)
{
    matrix f = open_matrix();
    const ir_expr *i = te_axis(cx, "i", f.n), *k = te_reduce_axis(cx, "i", f.m);

    te_output(f.def, te_compute(f.def, "C", AXES(i), te_sum(cx, te_at(f.A, i, k), k)));
    has(f.def, "C[i: n] = sum[i'2: m](A[i, i'2])", "for C.i'2 in 0..m {");
}

/* Of the symbols, only m is mentioned inside of the sum. */
Test(te_names, a_reduction_axis_hides_what_the_reduction_does_not_mention)
{
    matrix f = open_matrix();
    const ir_expr *i = te_axis(cx, "i", f.n), *n = te_reduce_axis(cx, "n", f.m),
                  *m = te_reduce_axis(cx, "m", number(3));
    const ir_expr *term = te_at(f.A, i, n), *within = ir_lt(cx, ir_add(cx, m, n), f.m);

    te_output(f.def, te_compute(f.def, "C", AXES(i), te_reduce_where(cx, "sum", term, AXES(n, m), within)));
    has(f.def, "C[i: n] = sum[n: m, m'2: 3](A[i, n] where m'2 + n < m)", "for C.m'2 in 0..3 {");
}

Test(te_names, names_that_end_in_a_number_already)
{
    matrix f = open_matrix();
    const ir_expr *a = te_axis(cx, "i'2", f.n), *b = te_axis(cx, "i", f.n), *c = te_axis(cx, "i", f.n),
                  *e = te_axis(cx, "i'2", f.m);

    te_output(f.def, te_compute(f.def, "C", AXES(a, b, c, e), te_at(f.A, c, e)));
    has(f.def, "C[i'2: n, i: n, i'3: n, i'2'2: m] = A[i'3, i'2'2]", "for C.i'2'2 in 0..m {");
}

Test(te_names, names_that_no_text_can_hold)
{
    matrix f = open_matrix();
    const ir_expr *a = te_axis(cx, "the row", f.n), *b = te_axis(cx, "the_row", f.m),
                  *k = te_reduce_axis(cx, "in", number(2));

    te_output(f.def, te_compute(f.def, "C", AXES(a, b), te_sum(cx, te_at(f.A, a, b), k)));
    has(f.def, "C[the_row: n, the_row'2: m] = sum[in'2: 2](A[the_row, the_row'2])", "for C.the_row'2 in");
}

/* The time stands around all updates and first steps: the symbol t of the first step of h would be hidden. */
Test(te_names, the_time_of_a_scan)
{
    matrix f = open_matrix();
    const ir_expr *t = te_symbol(f.def, "t"), *time = te_axis(cx, "t", f.n),
                  *first = te_axis(cx, "t", number(1)), *j = te_axis(cx, "j", f.m),
                  *i = te_axis(cx, "t", f.m);

    te_fact(f.def, ir_ge(cx, f.n, number(1)));
    te_scan *scan = te_scan_new(f.def, "S", time);
    te_tensor *h = te_scan_state(scan, "h", AXES(first, j), ir_add(cx, t, te_at(f.A, number(0), j)));
    te_scan_step(scan, "h", AXES(time, i), te_at(h, ir_sub(cx, time, number(1)), i));
    te_scan_close(scan);
    te_output(f.def, h);
    has(f.def, "scan S[t'2: n] {\n    init h[t'2: 1, j: m] = ", "for S.t'2 in 0..n - 1 {");
    cr_assert(strstr(te_text(cx, f.def), "update h[t'2, t: m] = h[t'2 - 1, t]"), "%s", te_text(cx, f.def));
}

/* What a symbol becomes does not change the names, so that a schedule fits all specialisations. */
Test(te_names, stay_when_the_symbol_has_become_a_number)
{
    matrix f = open_matrix();
    const ir_expr *i = te_axis(cx, "n", f.n), *j = te_axis(cx, "j", f.m), *four = number(4);

    te_output(f.def, te_compute(f.def, "C", AXES(i, j), ir_add(cx, te_at(f.A, i, j), f.n)));
    has(te_specialise(cx, f.def, &f.n, &four, 1), "C[n'2: 4, j: m] = A[n'2, j] + 4", "for C.n'2 in 0..4 {");
}

/* ---- random definitions ---- */

static const char *const pool[] = {"n", "m", "s", "i", "n'2", "i'2", "m'2'2", "i'3"};

static const ir_expr *drawn_extent(const matrix *f, uint64_t *seed)
{
    int64_t k = base_random_below(seed, 4);

    return k == 0 ? f->n : k == 1 ? f->m : k == 2 ? ir_add(cx, f->n, f->m) : number(k);
}

/* Sums over random axes, symbols and the scalar. */
static const ir_expr *drawn_value(const matrix *f, const ir_expr *scalar, const ir_expr *const *axis, int n,
                                  uint64_t *seed)
{
    const ir_expr *const others[] = {f->n, f->m, scalar};
    const ir_expr *value = number(1);

    for (int64_t terms = base_random_below(seed, 4); terms-- > 0;) {
        int64_t k = base_random_below(seed, n + 3);

        value = ir_add(cx, value, k < n ? axis[k] : others[k - n]);
    }
    return value;
}

/* A stage with up to three axes, and up to two that it reduces over, all of names of the pool. */
static te_tensor *drawn_stage(const matrix *f, const ir_expr *scalar, const char *name, uint64_t *seed)
{
    int count = 1 + (int)base_random_below(seed, 3), reduced = (int)base_random_below(seed, 3);
    const ir_expr *axis[5];

    for (int i = 0; i < count + reduced; i++) {
        const char *own = pool[base_random_below(seed, BASE_COUNT(pool))];
        const ir_expr *extent = drawn_extent(f, seed);

        axis[i] = i < count ? te_axis(cx, own, extent) : te_reduce_axis(cx, own, extent);
    }
    const ir_expr *value = drawn_value(f, scalar, axis, count + reduced, seed);
    const ir_expr *where = base_random_below(seed, 2)
                               ? ir_lt(cx, drawn_value(f, scalar, axis, count + reduced, seed), f->m)
                               : NULL;

    return te_compute(f->def, name, axis, count,
                      reduced ? te_reduce_where(cx, "sum", value, axis + count, reduced, where) : value);
}

Test(te_names, random_definitions_have_the_loops_of_their_text)
{
    int renamed = 0;

    for (uint64_t round = 1; round <= 2000; round++) {
        uint64_t seed = round;
        matrix f = open_matrix();
        const ir_expr *scalar = te_scalar(f.def, "s", BASE_I64);

        te_output(f.def, drawn_stage(&f, scalar, "C", &seed));
        te_output(f.def, drawn_stage(&f, scalar, "D", &seed));
        const char *text = te_text(cx, f.def);
        const te_def *again = defined(text);
        cr_assert_str_eq(te_text(cx, again), text, "seed %llu", (unsigned long long)round);
        cr_assert_str_eq(tree_text(again), tree_text(f.def), "seed %llu\n%s", (unsigned long long)round,
                         text);
        renamed += strstr(text, "n'2") != NULL;
    }
    cr_assert_gt(renamed, 200);
}
