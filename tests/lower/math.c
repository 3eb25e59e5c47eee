/* tests/lower/math.c -- functions that a target has no instruction for: their expansions, interpreted,
 * against the C library on a few hundred arguments. tests/targets/llvm/math.c holds compiled ones to tighter
 * limits, on many more.
 */
#include <math.h>

#include "tests/lower/pass.h"

TestSuite(math, .init = open_context, .fini = close_context);

#define ROUND(f) "program p(A: f32[8], out B: f32[8]) {\n  for x in 0..8 { B[x] = " f "(A[x]) }\n}\n"

Test(math, keeps_rounding_where_the_target_has_it)
{
    static const char *const having[] = {"llvm -mcpu=x86-64-v2", AVX2, "llvm -mcpu=x86-64 -mattr=+sse4.1",
                                         "llvm -mcpu=x86-64 -mattr=+avx", "llvm -mtriple=aarch64-linux-gnu"};
    static const char *const functions[] = {"floor", "ceil", "round", "trunc"};

    for (int i = 0; i < BASE_COUNT(functions); i++) {
        const char *text = base_format(cx, ROUND("%s"), functions[i]),
                   *call = base_format(cx, "%s(A[x])", functions[i]);

        for (int j = 0; j < BASE_COUNT(having); j++)
            HAS(call, after("math", having[j], text));
        HAS_NOT(call, after("math", SSE2, text));
        same_meaning("math", SSE2, text, SIZES(1));
    }
}

/* ---- what the expansions compute ---- */

static long double rsqrt_l(long double x)
{
    return 1 / sqrtl(x);
}
static long double sigmoid_l(long double x)
{
    return 1 / (1 + expl(-x));
}

typedef struct {
    const char *name;
    long double (*one)(long double);
    long double (*two)(long double, long double);
    double most; /* of |x|; 0: any */
    double ulps;
} function;

static const function functions[] = {
    {"exp", expl, NULL, 0, 2},     {"exp2", exp2l, NULL, 0, 2},    {"log", logl, NULL, 0, 2},
    {"log2", log2l, NULL, 0, 2},   {"tanh", tanhl, NULL, 0, 2},    {"sigmoid", sigmoid_l, NULL, 0, 3},
    {"erf", erfl, NULL, 0, 2},     {"rsqrt", rsqrt_l, NULL, 0, 2}, {"sin", sinl, NULL, 1e6, 4},
    {"cos", cosl, NULL, 1e6, 4},   {"tan", tanl, NULL, 1e6, 4},    {"asin", asinl, NULL, 0, 4},
    {"acos", acosl, NULL, 0, 4},   {"atan", atanl, NULL, 0, 4},    {"sinh", sinhl, NULL, 0, 4},
    {"cosh", coshl, NULL, 0, 4},   {"asinh", asinhl, NULL, 0, 4},  {"acosh", acoshl, NULL, 0, 4},
    {"atanh", atanhl, NULL, 0, 4}, {"floor", floorl, NULL, 0, 0},  {"ceil", ceill, NULL, 0, 0},
    {"trunc", truncl, NULL, 0, 0}, {"round", rintl, NULL, 0, 0},   {"pow", NULL, powl, 0, 2},
};

enum { POINTS = 900 };

static const double corners[] = {0.0, -0.0,     1,         -1,       0.5,       -0.5, 0.625, 2,
                                 -2,  3,        -3,        7,        -8,        1e30, -1e30, 1e-30,
                                 0.1, 16777217, 1.0000001, INFINITY, -INFINITY, NAN};

/* Some corners (pairs of them), then numbers of all sizes that matter, most of them near 1. */
static double argument(uint64_t *state, int i, int which)
{
    int n = BASE_COUNT(corners);

    if (i < n * n)
        return corners[which ? i / n : i % n];
    double scale = exp2((base_random_unit(state) - 0.5) * (i % 4 ? 12 : 250));
    return base_random_below(state, 2) ? scale : -scale;
}

/* How far off, in units of the last place; a result below the normal numbers may be zero. */
static double off_by(double got, long double exact, int digits, double tiny)
{
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    long double limit = ldexpl(1, digits == 24 ? 128 : 1024);
    if (isinf(got) || fabsl(exact) >= limit)
        return (isinf(got) && (got > 0) == (exact > 0) &&
                fabsl(exact) >= limit * (1 - ldexpl(1, -digits + 2)))
                   ? 0
                   : INFINITY;
    if (fabsl(exact) < tiny)
        return fabs(got) <= tiny ? 0 : INFINITY;
    return (double)(fabsl(got - exact) / ldexpl(1, ilogbl(exact) + 1 - digits));
}

static void check_function(const function *f, bool wide, const char *cpu)
{
    const char *type = wide ? "f64" : "f32", *args = f->two ? "A[x], B[x]" : "A[x]";
    const ir_program *p = through(
        "math", cpu,
        parse(base_format(
            cx, "program p(A: %s[%d], B: %s[%d], out C: %s[%d]) {\n  for x in 0..%d { C[x] = %s(%s) }\n}\n",
            type, POINTS, type, POINTS, type, POINTS, POINTS, f->name, args)),
        false);
    memory m = fill(p, 1, 1);
    uint64_t state = 3;

    for (int i = 0; i < POINTS; i++)
        for (int k = 0; k < 2; k++) {
            double v = argument(&state, i, k);

            v = f->most > 0 && !(fabs(v) <= f->most) ? i : v;
            if (wide)
                ((double *)m.data[k])[i] = v;
            else
                ((float *)m.data[k])[i] = (float)v;
        }
    cr_assert(runs(p, &m), "%s", tec_context_error(cx));
    for (int i = 0; i < POINTS; i++) {
        double x = wide ? ((double *)m.data[0])[i] : ((float *)m.data[0])[i],
               y = wide ? ((double *)m.data[1])[i] : ((float *)m.data[1])[i];
        double got = wide ? ((double *)m.data[2])[i] : ((float *)m.data[2])[i];
        double off =
            off_by(got, f->one ? f->one(x) : f->two(x, y), wide ? 53 : 24, wide ? 0x1p-1022 : 0x1p-126);

        cr_assert(off <= f->ulps, "%s of %s on '%s' at %a, %a gives %a, %.2f ulp off", f->name, type, cpu, x,
                  y, got, off);
    }
}

static void check_functions(const char *cpu)
{
    for (int i = 0; i < BASE_COUNT(functions); i++) {
        check_function(&functions[i], false, cpu);
        check_function(&functions[i], true, cpu);
    }
}

Test(math, is_accurate_with_fma)
{
    check_functions(AVX512);
}
Test(math, is_accurate_without_fma)
{
    check_functions(SSE2);
}

/* One rounding: the sum cancels most of the product, or is far larger or smaller. */
static double addend(uint64_t *state, int i, double product)
{
    switch (i % 4) {
    case 0: return -product;
    case 1: return -product * (1 + (base_random_unit(state) - 0.5) * 0x1p-20);
    case 2: return product * exp2((base_random_unit(state) - 0.5) * 220);
    default: return argument(state, i, 0);
    }
}

Test(math, multiplies_and_adds_with_one_rounding)
{
    const ir_program *p =
        through("math", SSE2,
                parse("program p(A: f32[900], B: f32[900], C: f32[900], out D: f32[900],\n"
                      "          E: f64[900], F: f64[900], G: f64[900], out H: f64[900]) {\n"
                      "  for x in 0..900 { D[x] = fma(A[x], B[x], C[x])\n H[x] = fma(E[x], F[x], G[x]) }\n"
                      "}\n"),
                false);
    memory m = fill(p, 1, 1);
    float *a = m.data[0], *b = m.data[1], *c = m.data[2], *d = m.data[3];
    double *e = m.data[4], *f = m.data[5], *g = m.data[6], *h = m.data[7];
    uint64_t state = 5;

    for (int i = 0; i < POINTS; i++) {
        e[i] = argument(&state, i, 0) * (1 + base_random_unit(&state) * 0x1p-30);
        f[i] = argument(&state, i, 1) * (1 + base_random_unit(&state) * 0x1p-30);
        g[i] = addend(&state, i, e[i] * f[i]);
        a[i] = (float)e[i];
        b[i] = (float)f[i];
        c[i] = (float)addend(&state, i, (double)a[i] * b[i]);
    }
    cr_assert(runs(p, &m), "%s", tec_context_error(cx));
    for (int i = 0; i < POINTS; i++) {
        float single = fmaf(a[i], b[i], c[i]);
        double wide = fma(e[i], f[i], g[i]);

        cr_assert(d[i] == single || (isnan(d[i]) && isnan(single)) || fabsf(single) < 0x1p-126f,
                  "%a * %a + %a gives %a, not %a", (double)a[i], (double)b[i], (double)c[i], (double)d[i],
                  (double)single);
        cr_assert(h[i] == wide || (isnan(h[i]) && isnan(wide)) || fabs(wide) < 0x1p-1022,
                  "%a * %a + %a gives %a, not %a", e[i], f[i], g[i], h[i], wide);
    }
}
