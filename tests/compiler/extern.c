/* tests/compiler/extern.c -- extern stages compiled: C functions that the options of a run know. */
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
TestSuite(build_extern, .init = open_context, .fini = close_context);

/* B = A + 1; S, T = the sums of B's prefixes times by, and how many are positive; C = S * 2. */
static const char *const text = "def f(n, A: f32[n], by: f32) {\n"
                                "  B[i] = A[i] + 1.0\n"
                                "  extern P(S: f32[n], T: i64[1]) = prefix_sums(B, n, by)\n"
                                "  C[i] = S[i] * 2.0\n"
                                "  return C, T\n"
                                "}\n";

static int32_t prefix_sums(const float *b, float *s, int64_t *t, int64_t n, float by)
{
    float sum = 0;

    *t = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += b[i] * by;
        s[i] = sum;
        *t += sum > 0;
    }
    return 0;
}

static int32_t fail_always(const float *b, float *s, int64_t *t, int64_t n, float by)
{
    return prefix_sums(b, s, t, n, by) + 1;
}

/* user: whether the function does its work. */
static void *find(void *user, const char *name)
{
    if (strcmp(name, "prefix_sums") != 0)
        return NULL;
    return *(bool *)user ? (void *)(uintptr_t)prefix_sums : (void *)(uintptr_t)fail_always;
}

static bool call(tec_schedule *s, const tec_run_options *options, float *c, int64_t *t, tec_error *err)
{
    tec_module *m = tec_build(s, NULL);
    cr_assert(m, "%s\n%s", tec_context_error(cx), tec_schedule_tree(s));
    tec_function *f = tec_function_new(m, "f", options, err);
    float a[5] = {1, -4, 2, 3, -9}, by = 0.5f;
    int64_t n = 5, one = 1;
    DLTensor A = {.data = a, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .device = {kDLCPU, 0}, .shape = &n},
             C = A, T = A, BY = A;

    cr_assert(f, "%s", err->text);
    C.data = c;
    T = (DLTensor){.data = t, .ndim = 1, .dtype = {kDLInt, 64, 1}, .device = {kDLCPU, 0}, .shape = &one};
    BY.data = &by;
    BY.ndim = 0;
    bool done = tec_function_call(f, (DLTensor *[]){&A, &BY, &C, &T}, 4, err);
    tec_function_free(f);
    tec_module_free(m);
    return done;
}

static tec_schedule *plain(void)
{
    return tec_schedule_new(cx, tec_def_parse(cx, "f.te", text, 0), "native");
}

static void check_calls(tec_schedule *s)
{
    const float want[5] = {2, -1, 2, 6, -2};
    bool works = true;
    float c[5];
    int64_t t;
    tec_error err = {0};

    cr_assert(call(s, &(tec_run_options){.extern_function = find, .extern_user = &works}, c, &t, &err), "%s",
              err.text);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(c[i], want[i]);
    cr_assert_eq(t, 3);
}

Test(build_extern, calls_the_function_of_the_options)
{
    check_calls(plain());
}

Test(build_extern, the_stages_around_can_be_scheduled)
{
    tec_schedule *s = plain();
    const char *i[2];

    cr_assert(tec_split(s, "B.i", i, TEC_INFER, 4) && tec_vectorize(s, i[1]), "%s", tec_schedule_error(s));
    cr_assert(tec_parallel(s, "C.i"), "%s", tec_schedule_error(s));
    check_calls(s);
    cr_assert_not(tec_compute_inline(s, "P"));
}

/* The same from the C API, with a meaning, which generated code does without. */
Test(build_extern, takes_a_meaning)
{
    const tec_def *meaning =
        tec_def_parse(cx, "m.te",
                      "def sums(n, X: f32[n], by: f32) { S[i: n] = sum[k: n](X[k] * by where k <= i) "
                      "T[i: 1] = sum[k: n](i64(S[k] > 0.0)) return S, T }",
                      0);
    tec_def *d = tec_def_new(cx, "f");
    const tec_expr *n = tec_symbol(d, "n"), *one = tec_int(cx, 1), *i = tec_axis(cx, "i", n);
    tec_tensor *A = tec_input(d, "A", TEC_F32, n), *out[2];
    const tec_expr *by = tec_scalar(d, "by", TEC_F32);
    tec_tensor *B = tec_compute(d, "B", tec_add(cx, tec_at(A, i), tec_const(cx, TEC_F32, 1)), i);

    cr_assert(tec_extern(d, "P",
                         (&(tec_extern_call){
                             .function = "prefix_sums",
                             .input = &B,
                             .n_inputs = 1,
                             .output = (tec_extern_output[]){{"S", TEC_F32, &n, 1}, {"T", TEC_I64, &one, 1}},
                             .n_outputs = 2,
                             .arg = (const tec_expr *[]){n, by},
                             .n_args = 2,
                             .meaning = meaning}),
                         out),
              "%s", tec_context_error(cx));
    const tec_expr *j = tec_axis(cx, "j", n);
    tec_output(d, tec_compute(d, "C", tec_mul(cx, tec_at(out[0], j), tec_const(cx, TEC_F32, 2)), j));
    tec_output(d, out[1]);
    check_calls(tec_schedule_new(cx, d, "native"));
}

Test(build_extern, reports_a_function_that_fails)
{
    bool works = false;
    float c[5];
    int64_t t;
    tec_error err = {0};

    cr_assert_not(
        call(plain(), &(tec_run_options){.extern_function = find, .extern_user = &works}, c, &t, &err));
    cr_assert(strstr(err.text, "the extern function 'prefix_sums' of stage 'P' failed"), "%s", err.text);
}

Test(build_extern, reports_a_function_that_is_not_registered)
{
    float c[5];
    int64_t t;
    tec_error err = {0};

    cr_assert_not(call(plain(), NULL, c, &t, &err));
    cr_assert(strstr(err.text, "the extern function 'prefix_sums' is not registered"), "%s", err.text);
}
