/* tests/ops/elementwise.c -- element-wise operators against the C library; broadcasting; activations. */
#include "tests/ops/kit.h"

TestSuite(elementwise, .init = open_context, .fini = close_context);

typedef double one_fn(double x);
typedef double two_fn(double x, double y);

static nd map_one(one_fn *f, const nd *x, base_dtype t)
{
    nd y = new_nd(t, x->n, x->shape);

    for (int64_t i = 0; i < x->size; i++)
        y.v[i] = f(x->v[i]);
    return y;
}

static nd map_two(two_fn *f, const nd *a, const nd *b, base_dtype t)
{
    int n = a->n > b->n ? a->n : b->n;
    int64_t shape[8], index[8];

    for (int i = 0; i < n; i++) {
        int ia = i - (n - a->n), ib = i - (n - b->n);
        int64_t x = ia >= 0 ? a->shape[ia] : 1, y = ib >= 0 ? b->shape[ib] : 1;

        shape[i] = x == 1 ? y : x;
    }
    nd y = new_nd(t, n, shape);
    for (int64_t i = 0; i < y.size; i++) {
        unravel(&y, i, index);
        y.v[i] = f(broadcast_at(a, index, n), broadcast_at(b, index, n));
    }
    return y;
}

/* ---- two operands ---- */

static double add(double a, double b)
{
    return a + b;
}
static double sub(double a, double b)
{
    return a - b;
}
static double mul(double a, double b)
{
    return a * b;
}
static double divide(double a, double b)
{
    return a / b;
}
static double whole_div(double a, double b)
{
    return trunc(a / b);
}
static double floor_mod(double a, double b)
{
    return a - floor(a / b) * b;
}
static double least(double a, double b)
{
    return a < b ? a : b;
}
static double greatest(double a, double b)
{
    return a > b ? a : b;
}
static double average(double a, double b)
{
    return (a + b) / 2;
}
static double equal(double a, double b)
{
    return a == b;
}
static double not_equal(double a, double b)
{
    return a != b;
}
static double less(double a, double b)
{
    return a < b;
}
static double less_equal(double a, double b)
{
    return a <= b;
}
static double more(double a, double b)
{
    return a > b;
}
static double more_equal(double a, double b)
{
    return a >= b;
}
static double both(double a, double b)
{
    return a != 0 && b != 0;
}
static double either(double a, double b)
{
    return a != 0 || b != 0;
}
static double bits_and(double a, double b)
{
    return (double)((int64_t)a & (int64_t)b);
}
static double bits_or(double a, double b)
{
    return (double)((int64_t)a | (int64_t)b);
}
static double bits_xor(double a, double b)
{
    return (double)((int64_t)a ^ (int64_t)b);
}
static double left(double a, double b)
{
    return (double)((int64_t)a << (int64_t)b);
}
static double right(double a, double b)
{
    return (double)((int64_t)a >> (int64_t)b);
}

static const struct {
    const char *op;
    two_fn *f;
    bool to_bool;
} arithmetic[] = {
    {"add", add, false},
    {"sub", sub, false},
    {"mul", mul, false},
    {"min", least, false},
    {"max", greatest, false},
    {"equal", equal, true},
    {"not_equal", not_equal, true},
    {"less", less, true},
    {"less_equal", less_equal, true},
    {"greater", more, true},
    {"greater_equal", more_equal, true},
    {"sum", add, false},
};

static void check_arithmetic(int row, nd a, nd b)
{
    nd y = map_two(arithmetic[row].f, &a, &b, arithmetic[row].to_bool ? BASE_BOOL : a.t);

    gives(arithmetic[row].op, NO_ATTRS, IN(a, b), y, 0);
}

Test(elementwise, arithmetic_and_comparison_of_each_type)
{
    static const base_dtype types[] = {{kDLFloat, 32, 1}, {kDLFloat, 64, 1}, {kDLFloat, 16, 1},
                                       {kDLInt, 8, 1},    {kDLInt, 32, 1},   {kDLInt, 64, 1}};

    for (int row = 0; row < BASE_COUNT(arithmetic); row++)
        for (int t = 0; t < BASE_COUNT(types); t++)
            check_arithmetic(row, random_nd(types[t], SHAPE(3, 7)), random_nd(types[t], SHAPE(3, 7)));
}

Test(elementwise, broadcasting)
{
    check_arithmetic(1, random_nd(BASE_F32, SHAPE(2, 3, 17)), random_nd(BASE_F32, SHAPE(17)));
    check_arithmetic(1, random_nd(BASE_F32, SHAPE(2, 3, 4)), random_nd(BASE_F32, SHAPE(3, 1)));
    check_arithmetic(1, random_nd(BASE_F32, SHAPE(2, 1, 4)), random_nd(BASE_F32, SHAPE(1, 3, 1)));
    check_arithmetic(1, random_nd(BASE_F32, SCALAR_SHAPE), random_nd(BASE_F32, SHAPE(5, 6)));
    check_arithmetic(1, random_nd(BASE_F32, SCALAR_SHAPE), random_nd(BASE_F32, SCALAR_SHAPE));
}

Test(elementwise, batches_known_when_they_run)
{
    for (int64_t n = 0; n <= 3; n++) {
        check_arithmetic(1, symbolic(random_nd(BASE_F32, SHAPE(n, 3, 5))),
                         symbolic(random_nd(BASE_F32, SHAPE(n, 3, 5))));
        check_arithmetic(1, symbolic(random_nd(BASE_F32, SHAPE(n, 3, 5))), random_nd(BASE_F32, SHAPE(3, 1)));
        check_arithmetic(1, symbolic(random_nd(BASE_F32, SHAPE(n))), symbolic(random_nd(BASE_F32, SHAPE(n))));
        check_arithmetic(1, symbolic(random_nd(BASE_F32, SHAPE(n, 3, 4, 4))),
                         symbolic(random_nd(BASE_F32, SHAPE(n, 3, 4, 4))));
    }
}

Test(elementwise, larger_than_what_pays_in_parallel)
{
    check_arithmetic(0, random_nd(BASE_F32, SHAPE(3, 5500)), random_nd(BASE_F32, SHAPE(3, 5500)));
    check_arithmetic(0, random_nd(BASE_F32, SHAPE(130, 127)), random_nd(BASE_F32, SHAPE(130, 1)));
}

Test(elementwise, division)
{
    nd a = random_nd(BASE_F32, SHAPE(4, 5)), b = random_nd_between(BASE_F32, 1, 3, SHAPE(4, 5)),
       i = random_nd_between(BASE_I32, -9, 9, SHAPE(20));
    nd j = random_nd_between(BASE_I32, 1, 4, SHAPE(20));

    gives("div", NO_ATTRS, IN(a, b), map_two(divide, &a, &b, BASE_F32), 1e-6);
    gives("div", NO_ATTRS, IN(i, j), map_two(whole_div, &i, &j, BASE_I32), 0);
    gives("fmod", NO_ATTRS, IN(i, j), map_two(fmod, &i, &j, BASE_I32), 0);
    gives("mod", NO_ATTRS, IN(i, j), map_two(floor_mod, &i, &j, BASE_I32), 0);
    gives("fmod", NO_ATTRS, IN(a, b), map_two(fmod, &a, &b, BASE_F32), 0);
    gives("mean", NO_ATTRS, IN(a, b), map_two(average, &a, &b, BASE_F32), 0);
}

Test(elementwise, powers)
{
    nd a = random_nd_between(BASE_F32, 1, 4, SHAPE(20)), b = random_nd_between(BASE_F32, -2, 4, SHAPE(20)),
       i = random_nd(BASE_I32, SHAPE(20));
    nd j = random_nd_between(BASE_I32, 0, 5, SHAPE(20));

    gives("pow", NO_ATTRS, IN(a, b), map_two(pow, &a, &b, BASE_F32), 1e-5);
    gives("pow", NO_ATTRS, IN(i, j), map_two(pow, &i, &j, BASE_I32), 0);
}

Test(elementwise, logic_and_bits)
{
    nd a = random_nd(BASE_BOOL, SHAPE(3, 7)), b = random_nd(BASE_BOOL, SHAPE(3, 7)),
       i = random_nd_between(BASE_I32, -99, 99, SHAPE(20));
    nd j = random_nd_between(BASE_I32, -99, 99, SHAPE(20)), u = random_nd_between(BASE_U32, 0, 99, SHAPE(20)),
       by = random_nd_between(BASE_U32, 0, 7, SHAPE(20));

    gives("and", NO_ATTRS, IN(a, b), map_two(both, &a, &b, BASE_BOOL), 0);
    gives("or", NO_ATTRS, IN(a, b), map_two(either, &a, &b, BASE_BOOL), 0);
    gives("xor", NO_ATTRS, IN(a, b), map_two(not_equal, &a, &b, BASE_BOOL), 0);
    gives("equal", NO_ATTRS, IN(a, b), map_two(equal, &a, &b, BASE_BOOL), 0);
    gives("bit_and", NO_ATTRS, IN(i, j), map_two(bits_and, &i, &j, BASE_I32), 0);
    gives("bit_or", NO_ATTRS, IN(i, j), map_two(bits_or, &i, &j, BASE_I32), 0);
    gives("bit_xor", NO_ATTRS, IN(i, j), map_two(bits_xor, &i, &j, BASE_I32), 0);
    gives("shift_left", NO_ATTRS, IN(u, by), map_two(left, &u, &by, BASE_U32), 0);
    gives("shift_right", NO_ATTRS, IN(u, by), map_two(right, &u, &by, BASE_U32), 0);
}

Test(elementwise, least_and_greatest_of_many_and_of_one)
{
    nd a = random_nd(BASE_F32, SHAPE(9)), b = random_nd(BASE_F32, SHAPE(9)),
       c = random_nd(BASE_F32, SHAPE(1)), y = map_two(greatest, &a, &b, BASE_F32);

    y = map_two(greatest, &y, &c, BASE_F32);
    gives("max", NO_ATTRS, IN(a, b, c), y, 0);
    gives("max", NO_ATTRS, IN(a), a, 0);
    gives("mean", NO_ATTRS, IN(a), a, 0);
}

/* ---- one operand ---- */

static double negate(double x)
{
    return -x;
}
static double sign(double x)
{
    return (x > 0) - (x < 0);
}
static double inverse(double x)
{
    return 1 / x;
}
static double invert(double x)
{
    return x == 0;
}
static double invert_bits(double x)
{
    return (double)~(int64_t)x;
}
static double same(double x)
{
    return x;
}
static double relu(double x)
{
    return x > 0 ? x : 0;
}
static double leaky(double x)
{
    return x < 0 ? 0.01 * x : x;
}
static double elu(double x)
{
    return x > 0 ? x : exp(x) - 1;
}
static double celu(double x)
{
    return x > 0 ? x : 2 * (exp(x / 2) - 1);
}
static double selu(double x)
{
    return 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * (exp(x) - 1));
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double hard_sigmoid(double x)
{
    return fmin(1, fmax(0, 0.2 * x + 0.5));
}
static double hard_swish(double x)
{
    return x * fmin(1, fmax(0, x / 6 + 0.5));
}
static double softplus(double x)
{
    return log1p(exp(-fabs(x))) + fmax(x, 0);
}
static double softsign(double x)
{
    return x / (1 + fabs(x));
}
static double thresholded(double x)
{
    return x > 1 ? x : 0;
}
static double shrink(double x)
{
    return x > 0.5 ? x : x < -0.5 ? x : 0;
}

static const struct {
    const char *op;
    one_fn *f;
    double low, high;
} functions[] = {
    {"neg", negate, -4, 4},
    {"abs", fabs, -4, 4},
    {"sign", sign, -4, 4},
    {"reciprocal", inverse, 1, 4},
    {"floor", floor, -4, 4},
    {"ceil", ceil, -4, 4},
    {"round", nearbyint, -4, 4},
    {"sqrt", sqrt, 0, 9},
    {"exp", exp, -9, 9},
    {"log", log, 0.1, 9},
    {"sin", sin, -4, 4},
    {"cos", cos, -4, 4},
    {"tan", tan, -1, 1},
    {"asin", asin, -1, 1},
    {"acos", acos, -1, 1},
    {"atan", atan, -9, 9},
    {"sinh", sinh, -4, 4},
    {"cosh", cosh, -4, 4},
    {"asinh", asinh, -9, 9},
    {"acosh", acosh, 1, 9},
    {"atanh", atanh, -0.9, 0.9},
    {"erf", erf, -3, 3},
    {"identity", same, -4, 4},
    {"relu", relu, -4, 4},
    {"leaky_relu", leaky, -4, 4},
    {"elu", elu, -9, 9},
    {"selu", selu, -9, 9},
    {"sigmoid", sigmoid, -90, 90},
    {"tanh", tanh, -90, 90},
    {"hard_sigmoid", hard_sigmoid, -4, 4},
    {"hard_swish", hard_swish, -5, 5},
    {"softplus", softplus, -90, 90},
    {"softsign", softsign, -9, 9},
    {"thresholded_relu", thresholded, -4, 4},
    {"shrink", shrink, -2, 2},
};

Test(elementwise, functions_of_one_value)
{
    for (int f = 0; f < BASE_COUNT(functions); f++) {
        nd x = new_nd(BASE_F32, SHAPE(3, 11));

        for (int64_t i = 0; i < x.size; i++)
            x.v[i] = (double)(float)(functions[f].low + (functions[f].high - functions[f].low) * (double)i /
                                                            (double)(x.size - 1));
        gives(functions[f].op, NO_ATTRS, IN(x), map_one(functions[f].f, &x, BASE_F32), 2e-6);
    }
}

Test(elementwise, functions_of_integers)
{
    nd i = random_nd(BASE_I32, SHAPE(17)), b = random_nd(BASE_BOOL, SHAPE(17)),
       u = random_nd_between(BASE_U8, 0, 3, SHAPE(17));

    gives("neg", NO_ATTRS, IN(i), map_one(negate, &i, BASE_I32), 0);
    gives("abs", NO_ATTRS, IN(i), map_one(fabs, &i, BASE_I32), 0);
    gives("sign", NO_ATTRS, IN(i), map_one(sign, &i, BASE_I32), 0);
    gives("sign", NO_ATTRS, IN(u), map_one(sign, &u, BASE_U8), 0);
    gives("relu", NO_ATTRS, IN(i), map_one(relu, &i, BASE_I32), 0);
    gives("not", NO_ATTRS, IN(b), map_one(invert, &b, BASE_BOOL), 0);
    gives("bit_not", NO_ATTRS, IN(i), map_one(invert_bits, &i, BASE_I32), 0);
    gives("identity", NO_ATTRS, IN(b), b, 0);
}

Test(elementwise, parameters_of_activations)
{
    nd x = random_nd(BASE_F32, SHAPE(3, 9)), slope = random_nd(BASE_F32, SHAPE(9)),
       y = new_nd(BASE_F32, SHAPE(3, 9));

    gives("celu", ATTRS(op_attr_float("alpha", 2)), IN(x), map_one(celu, &x, BASE_F32), 1e-6);
    for (int i = 0; i < 27; i++)
        y.v[i] = x.v[i] < 0 ? x.v[i] * slope.v[i % 9] : x.v[i];
    gives("prelu", NO_ATTRS, IN(x, slope), y, 0);
    for (int i = 0; i < 27; i++)
        y.v[i] = x.v[i] > 2 ? x.v[i] - 1 : x.v[i] < -2 ? x.v[i] + 1 : 0;
    gives("shrink", ATTRS(op_attr_float("lambd", 2), op_attr_float("bias", 1)), IN(x), y, 0);
}

Test(elementwise, not_a_number_and_infinity)
{
    nd x = new_nd(BASE_F32, SHAPE(5)), y = new_nd(BASE_BOOL, SHAPE(5)), z = y, above = y;
    static const double values[] = {NAN, INFINITY, -INFINITY, 0, 3};

    z.v = base_array(cx, double, 5);
    above.v = base_array(cx, double, 5);
    for (int i = 0; i < 5; i++) {
        x.v[i] = values[i];
        y.v[i] = isnan(values[i]);
        z.v[i] = isinf(values[i]) != 0;
        above.v[i] = values[i] == INFINITY;
    }
    gives("isnan", NO_ATTRS, IN(x), y, 0);
    gives("isinf", NO_ATTRS, IN(x), z, 0);
    gives("isinf", ATTRS(op_attr_int("negative", 0)), IN(x), above, 0);
}

Test(elementwise, clip_with_either_bound_left_out)
{
    nd x = random_nd(BASE_F32, SHAPE(2, 9)), low = new_nd(BASE_F32, SCALAR_SHAPE), high = low,
       none = {.absent = true}, y = new_nd(BASE_F32, SHAPE(2, 9));

    high.v = base_array(cx, double, 1);
    low.v[0] = -2;
    high.v[0] = 1;
    for (int i = 0; i < 18; i++)
        y.v[i] = fmin(1, fmax(-2, x.v[i]));
    gives("clip", NO_ATTRS, IN(x, low, high), y, 0);
    for (int i = 0; i < 18; i++)
        y.v[i] = fmin(1, x.v[i]);
    gives("clip", NO_ATTRS, IN(x, none, high), y, 0);
    gives("clip", NO_ATTRS, IN(x), x, 0);
}

Test(elementwise, selection_broadcasts)
{
    nd c = random_nd(BASE_BOOL, SHAPE(3, 1)), a = random_nd(BASE_F32, SHAPE(3, 5)),
       b = random_nd(BASE_F32, SHAPE(5)), y = new_nd(BASE_F32, SHAPE(3, 5));

    for (int i = 0; i < 15; i++)
        y.v[i] = c.v[i / 5] != 0 ? a.v[i] : b.v[i % 5];
    gives("where", NO_ATTRS, IN(c, a, b), y, 0);
}

Test(elementwise, casts)
{
    nd x = new_nd(BASE_F32, SHAPE(6)), y = new_nd(BASE_I32, SHAPE(6)), b = new_nd(BASE_BOOL, SHAPE(6)),
       u = new_nd(BASE_U8, SHAPE(6));
    static const double values[] = {-2.75, -0.5, 0, 0.5, 2.75, 300};

    for (int i = 0; i < 6; i++) {
        x.v[i] = values[i];
        y.v[i] = trunc(values[i]);
        b.v[i] = values[i] != 0;
        u.v[i] = fmin(255, fmax(0, trunc(values[i])));
    }
    gives("cast", ATTRS(op_attr_dtype("to", BASE_I32)), IN(x), y, 0);
    gives("cast", ATTRS(op_attr_dtype("to", BASE_BOOL)), IN(x), b, 0);
    gives("cast", ATTRS(op_attr_dtype("to", BASE_U8)), IN(x), u, 0);
}

/* ---- batch normalisation ---- */

Test(elementwise, batch_norm)
{
    nd x = random_nd(BASE_F32, SHAPE(2, 3, 4)), p[4], y = new_nd(BASE_F32, SHAPE(2, 3, 4));

    for (int k = 0; k < 4; k++)
        p[k] = random_nd_between(BASE_F32, 1, 4, SHAPE(3));
    for (int i = 0; i < 24; i++) {
        int c = i / 4 % 3;
        y.v[i] = p[0].v[c] * (x.v[i] - p[2].v[c]) / sqrt(p[3].v[c] + 0.25) + p[1].v[c];
    }
    gives("batch_norm", ATTRS(op_attr_float("epsilon", 0.25)), IN(x, p[0], p[1], p[2], p[3]), y, 1e-6);
    refuses("batch_norm 'batch_norm': operand 2 is f32[2, 3, 4], expected one float for each channel",
            "batch_norm", NO_ATTRS, IN(x, p[0], x, p[2], p[3]));
}

/* ---- errors ---- */

Test(elementwise, refuses_what_does_not_fit)
{
    nd f = new_nd(BASE_F32, SHAPE(2, 3)), i = new_nd(BASE_I32, SHAPE(2, 3)),
       g = new_nd(BASE_F32, SHAPE(2, 4)), n = symbolic(new_nd(BASE_F32, SHAPE(2, 3)));

    refuses("add 'add': operand 0 is f32[2, 3], but operand 1 is i32[2, 3]: expected the same type", "add",
            NO_ATTRS, IN(f, i));
    refuses("add 'add': operand 1 is f32[2, 4]: dimension 1 does not broadcast with '3'", "add", NO_ATTRS,
            IN(f, g));
    refuses("add 'add': operand 1 is f32[n, 3]: dimension 0 does not broadcast with '2'", "add", NO_ATTRS,
            IN(f, n));
    refuses("add 'add': expected 2 operands, found 1", "add", NO_ATTRS, IN(f));
    refuses("max 'max': expected 1 or more operands, found 0", "max", NO_ATTRS, NO_INPUTS);
    refuses("where 'where': the condition is f32[2, 3], expected bool", "where", NO_ATTRS, IN(f, f, f));
    refuses("cast 'cast': attribute 'to' is missing", "cast", NO_ATTRS, IN(f));
    refuses("clip 'clip': the bound is f32[2, 3], expected a single f32", "clip", NO_ATTRS, IN(f, f));
}

Test(elementwise, infers_types)
{
    infers("bool[n, 3]", "less", NO_ATTRS,
           IN(symbolic(new_nd(BASE_F32, SHAPE(2, 3))), new_nd(BASE_F32, SHAPE(3))));
    infers("f32[n, 4, 3]", "add", NO_ATTRS,
           IN(symbolic(new_nd(BASE_F32, SHAPE(2, 1, 3))), new_nd(BASE_F32, SHAPE(4, 1))));
}
