/* Accuracy of the expanded math functions, in units of the last place, against the C library in a wider
 * format.
 *
 * The quick sweep takes every exponent and sign with random significands; TEC_TEST_FULL=1 takes every float32
 * for the functions that models use, on this machine's own target, and every 37th for the others and on other
 * targets. Denormal arguments count as zero and denormal results may be zero, as kernels flush them.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "tests/targets/llvm/run.h"

#include <criterion/parameterized.h>

static tec_context *cx;

static void setup(void)
{
    cx = tec_context_new();
}
static void teardown(void)
{
    tec_context_free(cx);
}

TestSuite(math, .init = setup, .fini = teardown, .timeout = 3600);

static long double rsqrtl(long double x)
{
    return 1 / sqrtl(x);
}
static long double sigmoidl(long double x)
{
    return 1 / (1 + expl(-x));
}
static double rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

typedef struct {
    const char *name;
    ir_op op;
    double (*for_single)(double);
    long double (*for_double)(long double);
    double single, twice; /* the most ulp in float32 and float64 */
    double limit;         /* float64: of |x|; 0: none */
    bool common;
} function;

static const function functions[] = {
    {"exp", IR_EXP, exp, expl, 1.2, 1.2, 0, true},
    {"exp2", IR_EXP2, exp2, exp2l, 1.3, 1.3, 0, true},
    {"log", IR_LOG, log, logl, 1, 1, 0, true},
    {"log2", IR_LOG2, log2, log2l, 2, 2, 0, true},
    {"tanh", IR_TANH, tanh, tanhl, 2, 2, 0, true},
    {"sigmoid", IR_SIGMOID, sigmoid, sigmoidl, 3, 3, 0, true},
    {"erf", IR_ERF, erf, erfl, 2, 2, 0, true},
    {"rsqrt", IR_RSQRT, rsqrt, rsqrtl, 1.6, 1.6, 0, true},
    {"sqrt", IR_SQRT, sqrt, sqrtl, 0.5001, 0.5001, 0, true},
    {"sin", IR_SIN, sin, sinl, 4, 4, 1e6, false},
    {"cos", IR_COS, cos, cosl, 4, 4, 1e6, false},
    {"tan", IR_TAN, tan, tanl, 4, 4, 1e6, false},
    {"asin", IR_ASIN, asin, asinl, 1, 4, 0, false},
    {"acos", IR_ACOS, acos, acosl, 1, 4, 0, false},
    {"atan", IR_ATAN, atan, atanl, 1, 4, 0, false},
    {"sinh", IR_SINH, sinh, sinhl, 1, 4, 0, false},
    {"cosh", IR_COSH, cosh, coshl, 1, 4, 0, false},
    {"asinh", IR_ASINH, asinh, asinhl, 1, 4, 0, false},
    {"acosh", IR_ACOSH, acosh, acoshl, 1, 4, 0, false},
    {"atanh", IR_ATANH, atanh, atanhl, 1, 4, 0, false},
    {"floor", IR_FLOOR, floor, floorl, 0, 0, 0, false},
    {"ceil", IR_CEIL, ceil, ceill, 0, 0, 0, false},
    {"trunc", IR_TRUNC, trunc, truncl, 0, 0, 0, false},
    {"round", IR_ROUND, rint, rintl, 0, 0, 0, false},
};

static const ir_expr *apply(tec_context *c, const void *what, const ir_expr *const *in)
{
    const function *f = what;
    return ir_op1(c, f->op, in[0]);
}

/* ---- errors ---- */

/* Of a result of the given precision; least and most are the format's normal range. */
static double ulps(double got, long double exact, int digits, double least, double most)
{
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (fabsl(exact) > (long double)most || isinf(got)) { /* infinity, or rounded to its neighbour */
        exact = fabsl(exact) > (long double)most ? copysignl(most, exact) : exact;
        got = isinf(got) ? copysign(most, got) : got;
        return fabsl((got - exact) / most) < 1e-6L ? 0 : INFINITY;
    }
    if (fabsl(exact) < (long double)least)
        return fabs(got) <= least * 1.0001 ? 0 : INFINITY;
    int e;
    frexpl(exact, &e);
    return fabs((double)((got - exact) / ldexpl(1, e - digits)));
}

static double single_ulps(float got, long double exact)
{
    return ulps(got, exact, 24, FLT_MIN, FLT_MAX);
}
static double double_ulps(double got, long double exact)
{
    return ulps(got, exact, 53, DBL_MIN, DBL_MAX);
}

/* ---- float32 ---- */

enum { BATCH = 1 << 16 };

static float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return fabsf(f) < FLT_MIN ? copysignf(0, f) : f;
}

static double check_batch(const kernel *k, const function *f, float *in, float *out, float *worst_at)
{
    double worst = 0;
    cr_assert(eq(int, call(k, (void *[]){in, out}, NULL), 0));
    for (int i = 0; i < BATCH; i++) {
        double e = single_ulps(out[i], f->for_single(in[i]));
        if (e > worst) {
            worst = e;
            *worst_at = in[i];
        }
    }
    return worst;
}

static bool full(void)
{
    const char *v = getenv("TEC_TEST_FULL");
    return v && strcmp(v, "0");
}

static void sweep(const char *words, const function *f)
{
    static float in[BATCH], out[BATCH];
    const target *t = target_parse(cx, words);
    kernel k = compile(
        cx, map_program(cx, f->name, &BASE_F32, 1, BASE_F32, BATCH, target_lanes(t, BASE_F32), apply, f),
        words);
    bool every = f->common && strcmp(words, "native") == 0;
    uint64_t state = 11, step = every ? 1 : 37, batches = full() ? (UINT64_C(1) << 16) / step : 1;
    double worst = 0;
    float at = 0;
    for (uint64_t b = 0; b < batches; b++) {
        for (uint32_t i = 0; i < BATCH; i++)
            in[i] = from_bits(full()    ? (uint32_t)((b * BATCH + i) * step)
                              : i < 512 ? i << 23
                                        : (i << 23) | (uint32_t)(base_random(&state) & 0x7fffff));
        float here = 0;
        double e = check_batch(&k, f, in, out, &here);
        at = e > worst ? here : at;
        worst = e > worst ? e : worst;
    }
    close_kernel(&k);
    cr_log_info("%-8s f32 %-22s %.3f ulp at %a", f->name, words, worst, (double)at);
    cr_assert(worst <= f->single, "%s of float32 on '%s': %.3f ulp at %a, limit %.1f", f->name, words, worst,
              (double)at, f->single);
}

/* ---- float64 ---- */

static void sweep_double(const char *words, const function *f)
{
    static double in[BATCH], out[BATCH];
    const target *t = target_parse(cx, words);
    kernel k = compile(
        cx, map_program(cx, f->name, &BASE_F64, 1, BASE_F64, BATCH, target_lanes(t, BASE_F64), apply, f),
        words);
    uint64_t state = 12;
    double worst = 0, at = 0;
    for (int i = 0; i < BATCH; i++) {
        /* Half of them anywhere, half where the functions are neither 0 nor 1 nor infinite. */
        uint64_t u = base_random(&state), e = i % 2 ? u >> 52 & 2047 : 1003 + (u >> 52) % 40;
        u = (u & ((UINT64_C(1) << 52) - 1)) | e << 52 | (u >> 63) << 63;
        memcpy(&in[i], &u, sizeof u);
        if (fabs(in[i]) < DBL_MIN || (f->limit != 0 && fabs(in[i]) > f->limit))
            in[i] = (double)i / 64;
    }
    cr_assert(eq(int, call(&k, (void *[]){in, out}, NULL), 0));
    for (int i = 0; i < BATCH; i++) {
        double e = double_ulps(out[i], f->for_double(in[i]));
        at = e > worst ? in[i] : at;
        worst = e > worst ? e : worst;
    }
    close_kernel(&k);
    cr_log_info("%-8s f64 %-22s %.3f ulp at %a", f->name, words, worst, at);
    cr_assert(worst <= f->twice, "%s of float64 on '%s': %.3f ulp at %a, limit %.1f", f->name, words, worst,
              at, f->twice);
}

static void all_functions(const char *words)
{
    if (!runs_here(cx, words))
        cr_skip("this machine cannot run '%s'", words);
    for (int i = 0; i < BASE_COUNT(functions); i++) {
        sweep(words, &functions[i]);
        sweep_double(words, &functions[i]);
    }
}

/* One test for each function: with TEC_TEST_FULL one takes minutes, and they run side by side. */
ParameterizedTestParameters(math, is_accurate_on_this_machine)
{
    static int index[BASE_COUNT(functions)];

    for (int i = 0; i < BASE_COUNT(functions); i++)
        index[i] = i;
    return cr_make_param_array(int, index, BASE_COUNT(functions));
}
ParameterizedTest(int *index, math, is_accurate_on_this_machine)
{
    sweep("native", &functions[*index]);
    sweep_double("native", &functions[*index]);
}

Test(math, is_accurate_with_avx2_and_fma)
{
    all_functions("llvm -mcpu=x86-64-v3");
}
Test(math, is_accurate_without_fma)
{
    all_functions("llvm -mcpu=x86-64-v2");
}
Test(math, is_accurate_on_the_baseline)
{
    all_functions("llvm -mcpu=x86-64");
}

/* ---- pow ---- */

static const ir_expr *apply_pow(tec_context *c, const void *what, const ir_expr *const *in)
{
    (void)what;
    return ir_pow(c, in[0], in[1]);
}

static const double corners[] = {0.0,   -0.0,  1,  -1,       0.5,       -0.5,     2,
                                 -2,    3,     -3, INFINITY, -INFINITY, NAN,      1e30,
                                 -1e30, 1e-30, 7,  -8,       0.1,       16777217, 1.0000001};

static void power_pair(uint64_t *state, int i, double scale, double *x, double *y)
{
    int n = BASE_COUNT(corners);
    if (i < n * n) {
        *x = corners[i / n];
        *y = corners[i % n];
        return;
    }
    *x = exp2((base_random_unit(state) - 0.5) * (i % 3 ? 4 : scale));
    double log = log2(*x);
    *y = (base_random_unit(state) - 0.5) * 2.1 * scale / (log == 0 ? 1 : log);
    if (i % 5 == 0) {
        *x = -*x;
        *y = rint(*y);
    }
}

static void powers(const char *words)
{
    static float x[BATCH], y[BATCH], z[BATCH];
    static double dx[BATCH], dy[BATCH], dz[BATCH];
    if (!runs_here(cx, words))
        return;
    const target *t = target_parse(cx, words);
    kernel single = compile(cx,
                            map_program(cx, "pow", (base_dtype[]){BASE_F32, BASE_F32}, 2, BASE_F32, BATCH,
                                        target_lanes(t, BASE_F32), apply_pow, NULL),
                            words);
    kernel wide = compile(cx,
                          map_program(cx, "pow", (base_dtype[]){BASE_F64, BASE_F64}, 2, BASE_F64, BATCH,
                                      target_lanes(t, BASE_F64), apply_pow, NULL),
                          words);
    uint64_t state = 13;
    for (int i = 0; i < BATCH; i++) {
        double a, b;
        power_pair(&state, i, 128, &a, &b);
        x[i] = (float)a;
        y[i] = (float)b;
        power_pair(&state, i, 1024, &dx[i], &dy[i]);
    }
    cr_assert(eq(int, call(&single, (void *[]){x, y, z}, NULL), 0));
    cr_assert(eq(int, call(&wide, (void *[]){dx, dy, dz}, NULL), 0));
    double worst = 0, worst_wide = 0;
    for (int i = 0; i < BATCH; i++) {
        double e = single_ulps(z[i], powl(x[i], y[i])), d = double_ulps(dz[i], powl(dx[i], dy[i]));
        cr_assert(e <= 2, "pow(%a, %a) of float32 on '%s' gives %a, %.3f ulp off", (double)x[i], (double)y[i],
                  words, (double)z[i], e);
        cr_assert(d <= 2, "pow(%a, %a) of float64 on '%s' gives %a, %.3f ulp off", dx[i], dy[i], words, dz[i],
                  d);
        worst = e > worst ? e : worst;
        worst_wide = d > worst_wide ? d : worst_wide;
    }
    cr_log_info("pow %-22s f32 %.3f, f64 %.3f ulp", words, worst, worst_wide);
    close_kernel(&single);
    close_kernel(&wide);
}

Test(math, raises_to_powers)
{
    for (int i = 0; i < BASE_COUNT(test_targets); i++)
        powers(test_targets[i]);
}

static const ir_expr *apply_power(tec_context *c, const void *what, const ir_expr *const *in)
{
    return ir_pow(c, in[0], ir_imm(c, in[0]->dtype, *(const double *)what));
}

/* Exponents that are known become products, quotients and roots: of the same corners. */
static void known_power(const char *words, double y)
{
    static float x[BATCH], z[BATCH];
    const target *t = target_parse(cx, words);
    kernel k = compile(cx,
                       map_program(cx, "power", (base_dtype[]){BASE_F32}, 1, BASE_F32, BATCH,
                                   target_lanes(t, BASE_F32), apply_power, &y),
                       words);
    uint64_t state = 17;

    for (int i = 0; i < BATCH; i++) {
        double a = i < BASE_COUNT(corners) ? corners[i] : exp2((base_random_unit(&state) - 0.5) * 60);

        x[i] = (float)(i % 2 && i >= BASE_COUNT(corners) ? -a : a);
    }
    cr_assert(eq(int, call(&k, (void *[]){x, z}, NULL), 0));
    for (int i = 0; i < BATCH; i++) {
        long double exact = powl(x[i], y);
        double e = single_ulps(z[i], exact);

        cr_assert(e <= 2 && (isnan(exact) || !signbit(z[i]) == !signbit(exact)),
                  "pow(%a, %g) on '%s' gives %a, %.3f ulp off", (double)x[i], y, words, (double)z[i], e);
    }
    close_kernel(&k);
}

Test(math, raises_to_known_powers)
{
    const double y[] = {0, 1, 2, 3, 4, 0.5, -1, -2, -0.5, 5};

    for (int i = 0; i < BASE_COUNT(test_targets); i++)
        for (int k = 0; k < BASE_COUNT(y) && runs_here(cx, test_targets[i]); k++)
            known_power(test_targets[i], y[k]);
}

/* ---- fused multiply-add, where the CPU has none ---- */

static const ir_expr *apply_fma(tec_context *c, const void *what, const ir_expr *const *in)
{
    (void)what;
    return ir_fma(c, in[0], in[1], in[2]);
}

/* Products near each other's negative, so that what the product's rounding drops decides. */
static void fused_operands(uint64_t *state, int i, double *v)
{
    v[0] = (base_random_unit(state) + 0.5) * (i % 2 ? 1 : -1);
    v[1] = base_random_unit(state) + 0.5;
    v[2] = i % 3 ? -v[0] * v[1] * (i % 5 ? 1 : 1 + base_random_unit(state))
                 : ldexp(base_random_unit(state), i % 200 - 100);
    v[0] = ldexp(v[0], i % 61 - 30);
    v[2] = ldexp(v[2], i % 61 - 30);
}

static void fused(const char *words)
{
    static float in[3][BATCH], out[BATCH];
    static double wide_in[3][BATCH], wide_out[BATCH];
    if (!runs_here(cx, words))
        return;
    const base_dtype f32[] = {BASE_F32, BASE_F32, BASE_F32}, f64[] = {BASE_F64, BASE_F64, BASE_F64};
    kernel single = compile(cx, map_program(cx, "fma", f32, 3, BASE_F32, BATCH, 4, apply_fma, NULL), words);
    kernel wide = compile(cx, map_program(cx, "fma", f64, 3, BASE_F64, BATCH, 2, apply_fma, NULL), words);
    uint64_t state = 14;
    for (int i = 0; i < BATCH; i++) {
        double v[3];
        fused_operands(&state, i, v);
        for (int k = 0; k < 3; k++) {
            in[k][i] = (float)v[k];
            wide_in[k][i] = v[k] * (k < 2 && i % 7 == 0 ? 0x1p400 : 1);
        }
    }
    cr_assert(eq(int, call(&single, (void *[]){in[0], in[1], in[2], out}, NULL), 0));
    cr_assert(eq(int, call(&wide, (void *[]){wide_in[0], wide_in[1], wide_in[2], wide_out}, NULL), 0));
    for (int i = 0; i < BATCH; i++) {
        float e = fmaf(in[0][i], in[1][i], in[2][i]);
        double d = fma(wide_in[0][i], wide_in[1][i], wide_in[2][i]);
        cr_assert(out[i] == e || fabsf(e) < FLT_MIN, "fma of float32 on '%s': case %d gives %a, not %a",
                  words, i, (double)out[i], (double)e);
        cr_assert(wide_out[i] == d || fabs(d) < DBL_MIN, "fma of float64 on '%s': case %d gives %a, not %a",
                  words, i, wide_out[i], d);
    }
    close_kernel(&single);
    close_kernel(&wide);
}

Test(math, rounds_a_fused_multiply_add_once)
{
    for (int i = 0; i < BASE_COUNT(test_targets); i++)
        fused(test_targets[i]);
}

/* ---- strict ---- */

static const ir_expr *apply_to_half(tec_context *c, const void *what, const ir_expr *const *in)
{
    return ir_op1(c, *(const ir_op *)what, ir_mul(c, in[0], ir_imm(c, in[0]->dtype, 0.5)));
}

Test(math, strict_kernels_keep_denormals)
{
    static float in[BATCH], out[BATCH];
    static const ir_op ops[] = {IR_LOG, IR_LOG2, IR_ABS};
    const base_dtype f32 = BASE_F32;
    for (int i = 0; i < BATCH; i++)
        in[i] = ldexpf(1.0f + (float)i / BATCH, -126 - i % 20);
    for (int w = 0; w < 2 * BASE_COUNT(ops); w++) {
        ir_op op = ops[w / 2];
        kernel k =
            compile_as(cx, map_program(cx, "strict", &f32, 1, BASE_F32, BATCH, 8, apply_to_half, &ops[w / 2]),
                       w % 2 ? "native" : test_targets[3], true);
        cr_assert(eq(int, call(&k, (void *[]){in, out}, NULL), 0));
        for (int i = 0; i < BATCH; i++) {
            double half = (double)(in[i] * 0.5f), want = op == IR_LOG    ? log(half)
                                                         : op == IR_LOG2 ? log2(half)
                                                                         : half;
            cr_assert(fabs((double)out[i] - want) <= fabs(want) * 0x1p-22, "%s of %a is %a, not %a",
                      ir_ops[op].name, half, (double)out[i], want);
        }
        close_kernel(&k);
    }
}

/* ---- 16 bits ---- */

Test(math, rounds_16_bit_floats_once_at_the_end)
{
    static uint16_t in[1 << 16], out[1 << 16];
    for (int i = 0; i < BASE_COUNT(test_targets); i++) {
        if (!runs_here(cx, test_targets[i]))
            continue;
        kernel k =
            compile(cx, map_program(cx, "tanh", &BASE_F16, 1, BASE_F16, 1 << 16, 16, apply, &functions[4]),
                    test_targets[i]);
        for (int h = 0; h < 1 << 16; h++)
            in[h] = (uint16_t)h;
        cr_assert(eq(int, call(&k, (void *[]){in, out}, NULL), 0));
        for (int h = 0; h < 1 << 16; h++) {
            float got = base_half_to_float(out[h]);
            double exact = tanh((double)base_half_to_float(in[h]));
            cr_assert(isnan(exact) ? isnan(got)
                                   : fabs(got - exact) <= 0.502 * fmax(ldexp(fabs(exact), -10), 0x1p-24),
                      "%a: %a, not %a", (double)base_half_to_float(in[h]), (double)got, exact);
        }
        close_kernel(&k);
    }
}
