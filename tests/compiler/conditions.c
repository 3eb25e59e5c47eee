/* tests/compiler/conditions.c -- conditions that the definition needs and the user did not write: calls check
 * them, in every build. */
#include <criterion/criterion.h>
#include <string.h>

#include "tec/build.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(build_conditions, .init = open_context, .fini = close_context);

static tec_function *built(const char *text)
{
    tec_schedule *s = tec_schedule_new(cx, tec_def_parse(cx, "f.te", text, 0), "native");
    tec_module *m = s ? tec_build(s, NULL) : NULL;
    tec_error err = {0};

    cr_assert(m, "%s", tec_context_error(cx));
    tec_function *f = tec_function_new(m, "f", NULL, &err);
    cr_assert(f, "%s", err.text);
    tec_module_free(m);
    return f;
}

static DLTensor matrix(float *data, int64_t *shape)
{
    return (DLTensor){
        .data = data, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .device = {kDLCPU, 0}, .shape = shape};
}

Test(build_conditions, a_call_is_refused_where_an_index_would_leave_its_tensor)
{
    tec_function *f =
        built("def f(n, m, A: f32[n, m], B: f32[n, m]) { C[i, j] = sum[k](A[i, k] * B[k, j]) return C }");
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 1, 1, 1, 1, 1}, c[6] = {0};
    int64_t wide[2] = {2, 3}, tall[2] = {3, 2};
    DLTensor A = matrix(a, wide), B = matrix(b, wide), C = matrix(c, wide);
    tec_error err = {0};

    cr_assert_not(tec_function_call(f, (DLTensor *[]){&A, &B, &C}, 3, &err));
    cr_assert_str_eq(
        err.text,
        "f: needs n < 1 || m <= n ('C' reads axis 0 of 'B' at 0 to m - 1, its extent is n), which does "
        "not hold where n = 2, m = 3");
    A.shape = B.shape = C.shape = tall;
    err = (tec_error){0};
    cr_assert(tec_function_call(f, (DLTensor *[]){&A, &B, &C}, 3, &err), "%s", err.text);
    cr_assert_eq(c[0], 3);
    cr_assert_eq(c[5], 11);
    tec_function_free(f);
}

Test(build_conditions, a_call_is_refused_where_an_extent_would_be_negative)
{
    tec_function *f =
        built("def f(n, A: f32[n, n]) { S[x: 1, y: 1] = sum[k: n - 2, l: n - 2](A[k, l] + 1.0) return S }");
    float a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, s[1] = {-1};
    int64_t shape[2] = {1, 1}, one[2] = {1, 1};
    DLTensor A = matrix(a, shape), S = matrix(s, one);
    tec_error err = {0};

    cr_assert_not(tec_function_call(f, (DLTensor *[]){&A, &S}, 2, &err));
    cr_assert_str_eq(err.text, "f: needs 2 <= n (the extent of axis 'k' of 'S', n - 2, must not be "
                               "negative), which does not hold where n = 1");
    for (int64_t n = 2; n <= 3; n++) {
        shape[0] = shape[1] = n;
        err = (tec_error){0};
        cr_assert(tec_function_call(f, (DLTensor *[]){&A, &S}, 2, &err), "%s", err.text);
        cr_assert_eq(s[0], n == 2 ? 0 : 2);
    }
    tec_function_free(f);
}
