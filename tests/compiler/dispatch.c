/* tests/compiler/dispatch.c -- versions of a function for remainders of a symbolic extent. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/build.h"

enum { K = 12, M = 32, MOST = 40 };

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(dispatch, .init = open_context, .fini = close_context);

/* Rows in tiles of 8, which n need not be a multiple of. */
static const char *const tiles = "C.y.0, C.y.1 = split(C.y, _, 8)\n"
                                 "C.x.0, C.x.1 = split(C.x, _, 16)\n"
                                 "reorder(C.y.0, C.x.0, C.k, C.y.1, C.x.1)\n"
                                 "C.cache.local = cache_write(C, local, C.x.0)\n"
                                 "C.init = decompose_reduction(C, C.k)\n"
                                 "unroll(C.y.1)\nvectorize(C.x.1)\n"
                                 "unroll(C.init.y.1)\nvectorize(C.init.x.1)\n"
                                 "unroll(C.cache.local.y)\nvectorize(C.cache.local.x)\n";

/* C[n, M] = A[n, K] * B[K, M] * D[0]: D has the extent m, a symbol that stands before n. */
static tec_schedule *matmul(const char *trace)
{
    tec_def *d = tec_def_new(cx, "mm");
    const tec_expr *m = tec_symbol(d, "m"), *n = tec_symbol(d, "n"), *y = tec_axis(cx, "y", n),
                   *x = tec_axis(cx, "x", tec_int(cx, M));
    const tec_expr *k = tec_reduce_axis(cx, "k", tec_int(cx, K));
    tec_tensor *A = tec_input(d, "A", TEC_F32, n, tec_int(cx, K)),
               *B = tec_input(d, "B", TEC_F32, tec_int(cx, K), tec_int(cx, M));
    tec_tensor *D = tec_input(d, "D", TEC_F32, m);

    tec_fact(d, tec_ge(cx, m, tec_int(cx, 1)));
    tec_tensor *C = tec_compute(
        d, "C",
        tec_sum(cx, tec_mul(cx, tec_mul(cx, tec_at(A, y, k), tec_at(B, k, x)), tec_at(D, tec_int(cx, 0))), k),
        y, x);
    tec_output(d, C);
    tec_schedule *s = tec_schedule_new(cx, d, "native");

    cr_assert(s && tec_schedule_replay(s, "trace", trace), "%s %s", tec_context_error(cx),
              s ? tec_schedule_error(s) : "");
    return s;
}

static DLTensor tensor(float *data, int64_t *shape, int n)
{
    return (DLTensor){
        .data = data, .ndim = n, .dtype = {kDLFloat, 32, 1}, .device = {kDLCPU, 0}, .shape = shape};
}

static void check_rows(tec_function *f, int64_t n)
{
    static float a[MOST * K], b[K * M], c[(MOST + 1) * M];
    float two = 2;
    tec_error err = {0};
    DLTensor A = tensor(a, (int64_t[]){n, K}, 2), B = tensor(b, (int64_t[]){K, M}, 2),
             C = tensor(c, (int64_t[]){n, M}, 2);
    DLTensor D = tensor(&two, (int64_t[]){1}, 1);

    for (int i = 0; i < MOST * K; i++)
        a[i] = (float)(i % 11 - 5);
    for (int i = 0; i < K * M; i++)
        b[i] = (float)(i % 7 - 3);
    for (int i = 0; i < (MOST + 1) * M; i++)
        c[i] = 99;
    cr_assert(tec_function_call(f, (DLTensor *[]){&A, &B, &D, &C}, 4, &err), "n = %d: %s", (int)n, err.text);
    for (int y = 0; y <= MOST; y++)
        for (int x = 0; x < M; x++) {
            float sum = 0;

            for (int k = 0; k < K; k++)
                sum += y < n ? 2 * a[y * K + k] * b[k * M + x] : 0;
            cr_assert_eq(c[y * M + x], y < n ? sum : 99, "n = %d, row %d, column %d", (int)n, y, x);
        }
}

static void check_all_rows(const char *dispatch)
{
    tec_module *m = tec_build(matmul(tiles), &(tec_build_options){.dispatch = dispatch});
    tec_error err = {0};

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert_eq(tec_module_n_functions(m), 1);
    tec_function *f = tec_function_new(m, "mm", NULL, &err);
    cr_assert(f, "%s", err.text);
    for (int64_t n = 0; n <= MOST; n++)
        check_rows(f, n);
    tec_function_free(f);
    tec_module_free(m);
}

Test(dispatch, gives_the_same_results_for_every_remainder)
{
    check_all_rows("n%8");
}
Test(dispatch, leaves_other_remainders_to_the_general_version)
{
    check_all_rows("n%8=0,5");
}
Test(dispatch, works_where_the_tile_is_another_than_the_schedules)
{
    check_all_rows("n%3");
}

static int count(const char *text, const char *part)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

Test(dispatch, versions_test_nothing)
{
    const char *text =
        tec_build_text(matmul(tiles), &(tec_build_options){.dispatch = "n%8"}, TEC_TEXT_LOWERED);

    cr_assert(text, "%s", tec_context_error(cx));
    const char *versions = strstr(text, "program mm_r0(symbol m, symbol n_q,");
    cr_assert(versions, "%s", text);
    cr_assert_eq(count(versions, "program "), 8);
    cr_assert_eq(count(versions, "in 0..n_q {"), 8);
    cr_assert_eq(count(versions, "if "), 0, "%s", versions);
    cr_assert_eq(count(versions, " where "), 8, "masks beside the facts in the 8 headers:\n%s", versions);
    cr_assert_gt(count(text, "if "), 0, "the general version has nothing to test");
}

/* The code does not depend on n. */
Test(dispatch, compiles_equal_versions_once)
{
    tec_def *d = tec_def_new(cx, "first");
    const tec_expr *n = tec_symbol(d, "n"), *x = tec_axis(cx, "x", tec_int(cx, 4));
    tec_tensor *A = tec_input(d, "A", TEC_F32, n, tec_int(cx, 4));

    tec_fact(d, tec_ge(cx, n, tec_int(cx, 1)));
    tec_output(d,
               tec_compute(d, "B", tec_mul(cx, tec_at(A, tec_int(cx, 0), x), tec_const(cx, TEC_F32, 2)), x));
    tec_schedule *s = tec_schedule_new(cx, d, "native");
    const char *text = tec_build_text(s, &(tec_build_options){.dispatch = "n%8"}, TEC_TEXT_LOWERED);

    cr_assert(text, "%s", tec_context_error(cx));
    cr_assert_eq(count(text, "program "), 2, "%s", text);
}

Test(dispatch, knows_the_schedule_that_a_fork_continues)
{
    tec_schedule *s = tec_schedule_fork(matmul(tiles));

    cr_assert(tec_build_text(s, &(tec_build_options){.dispatch = "n%8=1"}, TEC_TEXT_LOWERED), "%s",
              tec_context_error(cx));
}

/* As a symbol, n_q would be hidden by the axis in the extent of y. */
Test(dispatch, names_the_quotient_unlike_any_axis)
{
    tec_def *d =
        tec_def_parse(cx, "f.te", "def f(n, A: f32[n, 8]) { C[n_q: 8, y: n] = A[y, n_q] return C }", 0);
    tec_schedule *s = tec_schedule_new(cx, d, "native");

    cr_assert(tec_schedule_replay(s, "trace", "split(C.n_q, _, 4)"), "%s", tec_schedule_error(s));
    const char *text = tec_build_text(s, &(tec_build_options){.dispatch = "n%8=0"}, TEC_TEXT_LOWERED);
    cr_assert(text, "%s", tec_context_error(cx));
    cr_assert(strstr(text, "program f_r0(symbol n_q_,"), "%s", text);
}

/* ---- what is refused ---- */

static void refused(const char *dispatch, const char *message)
{
    tec_context_clear(cx);
    cr_assert_null(
        tec_build_text(matmul(tiles), &(tec_build_options){.dispatch = dispatch}, TEC_TEXT_LOWERED));
    cr_assert(strstr(tec_context_error(cx), message), "%s: expected '%s', found '%s'", dispatch, message,
              tec_context_error(cx));
}

Test(dispatch, says_what_the_text_should_be)
{
    const char *const bad[] = {"", "n", "%8", "n%", "n%x", "n%8x", "n%8=", "n%8=1,", "n%8=1;2", "n%-8"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(bad[i], "expected a symbol and a tile, and remainders if not all: n%8 or n%8=0,4");
}

Test(dispatch, refuses_tiles_and_remainders_out_of_range)
{
    refused("n%1", "dispatch 'n%1': expected a tile from 2 to 4096");
    refused("n%4097", "expected a tile from 2 to 4096");
    refused("n%99999999999999999999", "expected a tile from 2 to 4096");
    refused("n%8=8", "dispatch 'n%8=8': 8 is not a remainder of a division by 8");
    refused("n%8=3,3", "the remainder 3 is given twice");
}

Test(dispatch, refuses_more_versions_than_its_budget)
{
    refused(
        "n%64",
        "dispatch 'n%64' asks for more than 32 versions: name the remainders that matter, as in n%64=0,32");
}

Test(dispatch, refuses_a_symbol_that_is_none)
{
    refused("q%8", "dispatch 'q%8': 'mm' has no symbol 'q'");
}

Test(dispatch, refuses_a_remainder_that_the_facts_exclude)
{
    tec_def *d = tec_def_new(cx, "f");
    const tec_expr *n = tec_symbol(d, "n"), *i = tec_axis(cx, "i", n);

    tec_fact(d, tec_eq(cx, tec_mod(cx, n, tec_int(cx, 4)), tec_int(cx, 0)));
    tec_output(d, tec_compute(d, "B", tec_at(tec_input(d, "A", TEC_F32, n), i), i));
    cr_assert_null(tec_build_text(tec_schedule_new(cx, d, "native"),
                                  &(tec_build_options){.dispatch = "n%8=0,2"}, TEC_TEXT_LOWERED));
    cr_assert(strstr(tec_context_error(cx), "the facts of 'f' exclude n % 8 == 2, which dispatch asks for"),
              "%s", tec_context_error(cx));
}

/* Its trace speaks of n, which the versions do not have. */
Test(dispatch, names_the_version_that_cannot_be_scheduled)
{
    tec_schedule *s = matmul("pragma(C.y, hint, n)\n");

    cr_assert_null(tec_build_text(s, &(tec_build_options){.dispatch = "n%8=2"}, TEC_TEXT_LOWERED));
    cr_assert(strstr(tec_context_error(cx), "the version of 'mm' for n % 8 == 2 cannot be scheduled: "), "%s",
              tec_context_error(cx));
}
