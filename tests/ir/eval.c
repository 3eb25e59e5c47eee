/* tests/ir/eval.c -- every operation of the table against the same thing written in C, on all combinations of
 * edge values. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/value.h"

static const double floats[] = {
    0.0,   -0.0,     1.0,       -1.0,     0.5,      -0.5,     1.5,     2.5,        -2.5,     3.0,
    -7.25, 0x1p-149, -0x1p-130, 0x1p-126, 16777216, 33554432, 0x1p127, -0x1.fp127, INFINITY, -INFINITY,
    NAN,   1e-3,     100.125,   -88.5,    7.0,      -3.0,     65504.0, 0x1p-24,    2.0,      -2.0};
static const int64_t ints[] = {0,
                               1,
                               -1,
                               2,
                               -2,
                               3,
                               -3,
                               7,
                               -7,
                               8,
                               31,
                               63,
                               64,
                               100,
                               127,
                               -128,
                               128,
                               255,
                               256,
                               32767,
                               -32768,
                               65535,
                               INT32_MAX,
                               INT32_MIN,
                               UINT32_MAX,
                               INT64_MAX,
                               INT64_MIN,
                               INT64_MIN + 1,
                               0x123456789abcdef};

static bool same_double(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* ---- floats ---- */

/* Each row for float and double; the expression is evaluated in T. */
#define FLOAT_ROWS(X)                                                                                        \
    X(ADD, a + b)                                                                                            \
    X(SUB, a - b)                                                                                            \
    X(MUL, a *b)                                                                                             \
    X(DIV, a / b)                                                                                            \
    X(MOD, (T)fmod(a, b))                                                                                    \
    X(FLOORMOD, (T)(fmod(a, b) != 0 && (fmod(a, b) < 0) != (b < 0) ? fmod(a, b) + b : fmod(a, b)))           \
    X(MIN, isnan(a) || isnan(b) ? NAN : a == 0 && b == 0 ? (signbit(a) ? a : b) : a < b ? a : b)             \
    X(MAX, isnan(a) || isnan(b) ? NAN : a == 0 && b == 0 ? (signbit(a) ? b : a) : a < b ? b : a)             \
    X(NEG, -a)                                                                                               \
    X(ABS, (T)fabs(a))                                                                                       \
    X(FLOOR, (T)floor(a))                                                                                    \
    X(CEIL, (T)ceil(a))                                                                                      \
    X(TRUNC, (T)trunc(a))                                                                                    \
    X(ROUND, (T)rint(a))                                                                                     \
    X(SQRT, (T)sqrt(a))                                                                                      \
    X(RSQRT, (T)(1 / sqrt(a)))                                                                               \
    X(EXP, (T)exp(a))                                                                                        \
    X(EXP2, (T)exp2(a))                                                                                      \
    X(LOG, (T)log(a))                                                                                        \
    X(LOG2, (T)log2(a))                                                                                      \
    X(POW, (T)pow(a, b))                                                                                     \
    X(TANH, (T)tanh(a))                                                                                      \
    X(SIGMOID, (T)(1 / (1 + exp(-(double)a))))                                                               \
    X(ERF, (T)erf(a))                                                                                        \
    X(SIN, (T)sin(a))                                                                                        \
    X(COS, (T)cos(a))                                                                                        \
    X(TAN, (T)tan(a))                                                                                        \
    X(ASIN, (T)asin(a))                                                                                      \
    X(ACOS, (T)acos(a))                                                                                      \
    X(ATAN, (T)atan(a))                                                                                      \
    X(SINH, (T)sinh(a))                                                                                      \
    X(COSH, (T)cosh(a))                                                                                      \
    X(ASINH, (T)asinh(a))                                                                                    \
    X(ACOSH, (T)acosh(a))                                                                                    \
    X(ATANH, (T)atanh(a))                                                                                    \
    X(COPYSIGN, (T)copysign(a, b))                                                                           \
    X(FMA, sizeof(T) == 4 ? fmaf((float)a, (float)b, (float)c) : (T)fma(a, b, c))
#define FLOAT_TESTS(X)                                                                                       \
    X(EQ, a == b)                                                                                            \
    X(NE, a != b)                                                                                            \
    X(LT, a < b)                                                                                             \
    X(LE, a <= b)                                                                                            \
    X(GT, a > b)                                                                                             \
    X(GE, a >= b)                                                                                            \
    X(ISNAN, isnan(a))                                                                                       \
    X(ISINF, isinf(a))

#define T float
#define X(NAME, e)                                                                                           \
    static float f32_##NAME(float a, float b, float c)                                                       \
    {                                                                                                        \
        (void)b, (void)c;                                                                                    \
        return (float)(e);                                                                                   \
    }
FLOAT_ROWS(X)
#undef X
#undef T
#define T double
#define X(NAME, e)                                                                                           \
    static double f64_##NAME(double a, double b, double c)                                                   \
    {                                                                                                        \
        (void)b, (void)c;                                                                                    \
        return e;                                                                                            \
    }
FLOAT_ROWS(X)
#undef X
#undef T
#define X(NAME, e)                                                                                           \
    static bool test_##NAME(double a, double b)                                                              \
    {                                                                                                        \
        (void)b;                                                                                             \
        return e;                                                                                            \
    }
FLOAT_TESTS(X)
#undef X

static const struct {
    ir_op op;
    float (*f32)(float, float, float);
    double (*f64)(double, double, double);
} float_rows[] = {
#define X(NAME, e) {IR_##NAME, f32_##NAME, f64_##NAME},
    FLOAT_ROWS(X)
#undef X
};
static const struct {
    ir_op op;
    bool (*f)(double, double);
} float_tests[] = {
#define X(NAME, e) {IR_##NAME, test_##NAME},
    FLOAT_TESTS(X)
#undef X
};

static void check_floats(int row, base_dtype t, double a, double b, double c)
{
    ir_value arg[3] = {{.f = a}, {.f = b}, {.f = c}}, out = {0};
    double expected = t.bits == 32 ? (double)float_rows[row].f32((float)a, (float)b, (float)c)
                                   : float_rows[row].f64(a, b, c);

    cr_assert(ir_eval_op(float_rows[row].op, t, arg, &out));
    cr_assert(same_double(out.f, expected), "%s(%a, %a, %a) in %d bits: %a, expected %a",
              ir_ops[float_rows[row].op].name, a, b, c, t.bits, out.f, expected);
}

static void for_float_pairs(int row, base_dtype t)
{
    for (int i = 0; i < BASE_COUNT(floats); i++)
        for (int j = 0; j < BASE_COUNT(floats); j++)
            check_floats(row, t, ir_round_to(t, floats[i]), ir_round_to(t, floats[j]),
                         ir_round_to(t, floats[(i * 7 + j) % BASE_COUNT(floats)]));
}

Test(eval, float32_and_float64_agree_with_c)
{
    for (int row = 0; row < BASE_COUNT(float_rows); row++) {
        for_float_pairs(row, BASE_F32);
        for_float_pairs(row, BASE_F64);
    }
}

Test(eval, sixteen_bit_floats_compute_in_float32_and_round_once)
{
    static const base_dtype types[] = {{kDLFloat, 16, 1}, {kDLBfloat, 16, 1}};
    static const ir_op ops[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_SQRT, IR_FMA, IR_NEG};

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < BASE_COUNT(floats) * BASE_COUNT(floats); i++)
            for (int o = 0; o < BASE_COUNT(ops); o++) {
                base_dtype t = types[k];
                double a = ir_round_to(t, floats[i % BASE_COUNT(floats)]),
                       b = ir_round_to(t, floats[i / BASE_COUNT(floats)]);
                ir_value arg[3] = {{.f = a}, {.f = b}, {.f = a}}, out;
                float x = (float)a, y = (float)b;
                float wide[] = {x + y, x - y, x * y, x / y, sqrtf(x), fmaf(x, y, x), -x};
                float expected = k ? base_bfloat_to_float(base_float_to_bfloat(wide[o]))
                                   : base_half_to_float(base_float_to_half(wide[o]));
                cr_assert(ir_eval_op(ops[o], t, arg, &out));
                cr_assert(same_double(out.f, expected), "%s(%a, %a): %a, expected %a", ir_ops[ops[o]].name, a,
                          b, out.f, expected);
            }
}

Test(eval, comparisons_of_floats_agree_with_c)
{
    for (int row = 0; row < BASE_COUNT(float_tests); row++)
        for (int i = 0; i < BASE_COUNT(floats) * BASE_COUNT(floats); i++) {
            double a = floats[i % BASE_COUNT(floats)], b = floats[i / BASE_COUNT(floats)];
            ir_value out;
            cr_assert(ir_eval_op(float_tests[row].op, BASE_F64, (ir_value[]){{.f = a}, {.f = b}}, &out));
            cr_assert_eq(out.i, float_tests[row].f(a, b), "%s(%a, %a)", ir_ops[float_tests[row].op].name, a,
                         b);
        }
}

/* ---- ints ---- */

/* Evaluated in the C type; the divisor is neither 0 nor -1 here. */
#define INT_ROWS(X)                                                                                          \
    X(ADD, (uint64_t)a + (uint64_t)b)                                                                        \
    X(SUB, (uint64_t)a - (uint64_t)b)                                                                        \
    X(MUL, (uint64_t)a *(uint64_t)b)                                                                         \
    X(MIN, a < b ? a : b)                                                                                    \
    X(MAX, a < b ? b : a)                                                                                    \
    X(NEG, 0 - (uint64_t)a)                                                                                  \
    X(ABS, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)                                                            \
    X(BITAND, a &b)                                                                                          \
    X(BITXOR, a ^ b)                                                                                         \
    X(BITOR, a | b)                                                                                          \
    X(BITNOT, ~a)                                                                                            \
    X(SHL, (uint64_t)a << ((uint64_t)b & (sizeof a * 8 - 1)))                                                \
    X(SHR, a >> ((uint64_t)b & (sizeof a * 8 - 1)))                                                          \
    X(POPCOUNT, count_ones((uint64_t)a, sizeof a * 8))                                                       \
    X(CLZ, count_leading((uint64_t)a, sizeof a * 8))
#define DIVISION_ROWS(X)                                                                                     \
    X(DIV, a / b)                                                                                            \
    X(MOD, a % b)                                                                                            \
    X(FLOORDIV, a / b - (a % b != 0 && (a % b < 0) != (b < 0)))                                              \
    X(FLOORMOD, a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0))
#define INT_TESTS(X) X(EQ, a == b) X(NE, a != b) X(LT, a < b) X(LE, a <= b) X(GT, a > b) X(GE, a >= b)

static uint64_t count_ones(uint64_t v, unsigned width)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < width; i++)
        n += v >> i & 1;
    return n;
}

static uint64_t count_leading(uint64_t v, unsigned width)
{
    uint64_t n = 0;

    while (n < width && !(v >> (width - 1 - n) & 1))
        n++;
    return n;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
#define CASE(NAME, e)                                                                                        \
    case IR_##NAME: r = (e); break;
/* Storing into r cuts to the type, which is what wrapping means. */
#define DEFINE(name, type)                                                                                   \
    static int64_t name(ir_op op, int64_t x, int64_t y)                                                      \
    {                                                                                                        \
        type a = (type)x, b = (type)y, r = 0;                                                                \
        switch ((int)op) {                                                                                   \
            INT_ROWS(CASE) DIVISION_ROWS(CASE) INT_TESTS(CASE)                                               \
        }                                                                                                    \
        return (int64_t)r;                                                                                   \
    }
DEFINE(in_i8, int8_t)
DEFINE(in_i16, int16_t)
DEFINE(in_i32, int32_t)
DEFINE(in_i64, int64_t)
DEFINE(in_u8, uint8_t)
DEFINE(in_u16, uint16_t)
DEFINE(in_u32, uint32_t)
DEFINE(in_u64, uint64_t)
#pragma GCC diagnostic pop

static const ir_op int_rows[] = {
#define X(NAME, e) IR_##NAME,
    INT_ROWS(X) DIVISION_ROWS(X) INT_TESTS(X)
#undef X
};

static const struct {
    base_dtype t;
    int64_t (*in_c)(ir_op, int64_t, int64_t);
} int_types[] = {
    {{kDLInt, 8, 1}, in_i8},    {{kDLInt, 16, 1}, in_i16},  {{kDLInt, 32, 1}, in_i32},
    {{kDLInt, 64, 1}, in_i64},  {{kDLUInt, 8, 1}, in_u8},   {{kDLUInt, 16, 1}, in_u16},
    {{kDLUInt, 32, 1}, in_u32}, {{kDLUInt, 64, 1}, in_u64},
};

static bool divides(ir_op op)
{
    return (ir_ops[op].flags & IR_ZERO_FAILS) != 0;
}

static void check_ints(int type, int row, int64_t a, int64_t b)
{
    base_dtype t = int_types[type].t;
    ir_value arg[2] = {{.i = ir_wrap(t, (uint64_t)a)}, {.i = ir_wrap(t, (uint64_t)b)}}, out = {0};
    int64_t expected;

    if (divides(int_rows[row]) && (arg[1].i == 0 || (base_is_signed(t) && arg[1].i == -1)))
        return;
    expected = int_types[type].in_c(int_rows[row], a, b);
    cr_assert(ir_eval_op(int_rows[row], t, arg, &out));
    cr_assert_eq(out.i, expected, "%s(%" PRId64 ", %" PRId64 ") in %d bits: %" PRId64 ", expected %" PRId64,
                 ir_ops[int_rows[row]].name, arg[0].i, arg[1].i, t.bits, out.i, expected);
}

Test(eval, ints_of_every_width_agree_with_c)
{
    for (int type = 0; type < BASE_COUNT(int_types); type++)
        for (int row = 0; row < BASE_COUNT(int_rows); row++)
            for (int i = 0; i < BASE_COUNT(ints) * BASE_COUNT(ints); i++)
                check_ints(type, row, ints[i % BASE_COUNT(ints)], ints[i / BASE_COUNT(ints)]);
}

Test(eval, division_by_zero_fails_and_by_minus_one_wraps)
{
    static const ir_op ops[] = {IR_DIV, IR_MOD, IR_FLOORDIV, IR_FLOORMOD};
    ir_value out;

    for (int type = 0; type < BASE_COUNT(int_types); type++)
        for (int o = 0; o < 4; o++) {
            base_dtype t = int_types[type].t;
            int64_t least = ir_wrap(t, UINT64_C(1) << (t.bits - 1));
            cr_assert_not(ir_eval_op(ops[o], t, (ir_value[]){{.i = 5}, {.i = 0}}, &out));
            if (!base_is_signed(t))
                continue;
            cr_assert(ir_eval_op(ops[o], t, (ir_value[]){{.i = least}, {.i = -1}}, &out));
            cr_assert_eq(out.i, o % 2 ? 0 : least);
            cr_assert(ir_eval_op(ops[o], t, (ir_value[]){{.i = 7}, {.i = -1}}, &out));
            cr_assert_eq(out.i, o % 2 ? 0 : -7);
        }
}

Test(eval, odd_widths_wrap_and_extend)
{
    base_dtype i4 = BASE_DTYPE(kDLInt, 4, 1), u1 = BASE_DTYPE(kDLUInt, 1, 1);
    ir_value out;

    cr_assert(ir_eval_op(IR_ADD, i4, (ir_value[]){{.i = 7}, {.i = 1}}, &out));
    cr_assert_eq(out.i, -8);
    cr_assert(ir_eval_op(IR_ADD, u1, (ir_value[]){{.i = 1}, {.i = 1}}, &out));
    cr_assert_eq(out.i, 0);
    cr_assert(ir_eval_op(IR_CLZ, i4, (ir_value[]){{.i = 1}}, &out));
    cr_assert_eq(out.i, 3);
}

/* ---- bools ---- */

Test(eval, bools_and_selection)
{
    ir_value out;

    for (int a = 0; a < 2; a++) {
        for (int b = 0; b < 2; b++) {
            ir_value arg[] = {{.i = a}, {.i = b}};
            cr_assert(ir_eval_op(IR_AND, BASE_BOOL, arg, &out) && out.i == (a && b));
            cr_assert(ir_eval_op(IR_OR, BASE_BOOL, arg, &out) && out.i == (a || b));
            cr_assert(ir_eval_op(IR_EQ, BASE_BOOL, arg, &out) && out.i == (a == b));
            cr_assert(ir_eval_op(IR_NE, BASE_BOOL, arg, &out) && out.i == (a != b));
        }
        cr_assert(ir_eval_op(IR_NOT, BASE_BOOL, (ir_value[]){{.i = a}}, &out) && out.i == !a);
        cr_assert(ir_eval_op(IR_LIKELY, BASE_BOOL, (ir_value[]){{.i = a}}, &out) && out.i == a);
        cr_assert(ir_eval_op(IR_SELECT, BASE_I32, (ir_value[]){{.i = a}, {.i = 5}, {.i = 6}}, &out) &&
                  out.i == (a ? 5 : 6));
    }
}

Test(eval, every_row_of_the_table_is_tested_here)
{
    static const ir_op others[] = {IR_AND, IR_OR, IR_NOT, IR_LIKELY, IR_SELECT};
    bool seen[IR_N_OPS] = {0};

    for (int i = 0; i < BASE_COUNT(float_rows); i++)
        seen[float_rows[i].op] = true;
    for (int i = 0; i < BASE_COUNT(float_tests); i++)
        seen[float_tests[i].op] = true;
    for (int i = 0; i < BASE_COUNT(int_rows); i++)
        seen[int_rows[i]] = true;
    for (int i = 0; i < BASE_COUNT(others); i++)
        seen[others[i]] = true;
    for (int op = IR_REDUCE + 1; op < IR_N_OPS; op++)
        cr_assert(seen[op], "%s has no test", ir_ops[op].name);
}

/* ---- casts ---- */

static int64_t cast_to_int(base_dtype to, double v)
{
    return ir_eval_cast(BASE_F64, to, (ir_value){.f = v}).i;
}

Test(eval, floats_cast_to_ints_truncate_and_saturate)
{
    cr_assert_eq(cast_to_int(BASE_I32, 2.9), 2);
    cr_assert_eq(cast_to_int(BASE_I32, -2.9), -2);
    cr_assert_eq(cast_to_int(BASE_I32, NAN), 0);
    cr_assert_eq(cast_to_int(BASE_I32, INFINITY), INT32_MAX);
    cr_assert_eq(cast_to_int(BASE_I32, -INFINITY), INT32_MIN);
    cr_assert_eq(cast_to_int(BASE_I32, 2147483647.5), INT32_MAX);
    cr_assert_eq(cast_to_int(BASE_I32, -2147483648.5), INT32_MIN);
    cr_assert_eq(cast_to_int(BASE_I64, 0x1p63), INT64_MAX);
    cr_assert_eq(cast_to_int(BASE_I64, -0x1p63), INT64_MIN);
    cr_assert_eq(cast_to_int(BASE_I64, 1e300), INT64_MAX);
    cr_assert_eq(cast_to_int(BASE_I8, 127.9), 127);
    cr_assert_eq(cast_to_int(BASE_I8, -128.9), -128);
    cr_assert_eq(cast_to_int(BASE_I8, 300), 127);
    cr_assert_eq(cast_to_int(BASE_U8, 300), 255);
    cr_assert_eq(cast_to_int(BASE_U8, -1), 0);
    cr_assert_eq(cast_to_int(BASE_U8, -0.5), 0);
    cr_assert_eq(cast_to_int(BASE_U64, 0x1p63), INT64_MIN);
    cr_assert_eq(cast_to_int(BASE_U64, 1e30), -1);
    cr_assert_eq(cast_to_int(BASE_BOOL, 0.25), 1);
    cr_assert_eq(cast_to_int(BASE_BOOL, -0.0), 0);
    cr_assert_eq(cast_to_int(BASE_BOOL, NAN), 1);
}

Test(eval, ints_cast_to_ints_wrap)
{
    cr_assert_eq(ir_eval_cast(BASE_I64, BASE_I8, (ir_value){.i = 200}).i, -56);
    cr_assert_eq(ir_eval_cast(BASE_I64, BASE_U8, (ir_value){.i = -1}).i, 255);
    cr_assert_eq(ir_eval_cast(BASE_U8, BASE_I8, (ir_value){.i = 255}).i, -1);
    cr_assert_eq(ir_eval_cast(BASE_I8, BASE_U32, (ir_value){.i = -1}).i, UINT32_MAX);
    cr_assert_eq(ir_eval_cast(BASE_I64, BASE_BOOL, (ir_value){.i = 256}).i, 1);
    cr_assert_eq(ir_eval_cast(BASE_BOOL, BASE_I32, (ir_value){.i = 1}).i, 1);
}

Test(eval, ints_cast_to_floats_round_to_even)
{
    cr_assert_eq(ir_eval_cast(BASE_I64, BASE_F32, (ir_value){.i = 16777217}).f, 16777216.0);
    cr_assert_eq(ir_eval_cast(BASE_I64, BASE_F32, (ir_value){.i = INT64_MAX}).f, 0x1p63);
    cr_assert_eq(ir_eval_cast(BASE_U64, BASE_F64, (ir_value){.i = -1}).f, 0x1p64);
    cr_assert_eq(ir_eval_cast(BASE_U64, BASE_F32, (ir_value){.i = -1}).f, 0x1p64);
    cr_assert_eq(ir_eval_cast(BASE_I32, BASE_F16, (ir_value){.i = 2049}).f, 2048.0);
    cr_assert(isinf(ir_eval_cast(BASE_I32, BASE_F16, (ir_value){.i = 65520}).f));
    cr_assert_eq(ir_eval_cast(BASE_I32, BASE_BF16, (ir_value){.i = 257}).f, 256.0);
}

Test(eval, floats_cast_to_floats_round_once)
{
    /* Above the middle between two halves by less than float32 can tell: through float32 it would round
     * down. */
    cr_assert_eq(ir_eval_cast(BASE_F64, BASE_F16, (ir_value){.f = 1 + 0x1p-11 + 0x1p-40}).f, 1 + 0x1p-10);
    cr_assert_eq(ir_eval_cast(BASE_F64, BASE_F32, (ir_value){.f = 1e300}).f, (double)INFINITY);
    cr_assert(isnan(ir_eval_cast(BASE_F32, BASE_BF16, (ir_value){.f = NAN}).f));
}

/* ---- memory ---- */

Test(eval, values_survive_memory)
{
    static const base_dtype types[] = {{kDLBool, 8, 1},  {kDLInt, 4, 1},   {kDLInt, 8, 1},
                                       {kDLInt, 24, 1},  {kDLInt, 64, 1},  {kDLUInt, 1, 1},
                                       {kDLUInt, 16, 1}, {kDLUInt, 32, 1}, {kDLUInt, 64, 1}};
    uint8_t place[8];

    for (int k = 0; k < BASE_COUNT(types); k++)
        for (int i = 0; i < BASE_COUNT(ints); i++) {
            ir_value v = {.i = ir_wrap(types[k], (uint64_t)ints[i])};
            memset(place, 0xa5, sizeof place);
            ir_value_write(types[k], place, v);
            cr_assert_eq(ir_value_read(types[k], place).i, v.i);
            for (int b = base_dtype_bytes(types[k]); b < 8; b++)
                cr_assert_eq(place[b], 0xa5, "%d bits wrote byte %d", types[k].bits, b);
        }
}
