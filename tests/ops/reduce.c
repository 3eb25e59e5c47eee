/* tests/ops/reduce.c -- reductions, searches and softmax against plain loops. */
#include "tests/ops/kit.h"

TestSuite(reduce, .init = open_context, .fini = close_context);

typedef double step_fn(double so_far, double x);
typedef double end_fn(double total, double count);

static double plus(double a, double x)
{
    return a + x;
}
static double times(double a, double x)
{
    return a * x;
}
static double greater(double a, double x)
{
    return x > a ? x : a;
}
static double lesser(double a, double x)
{
    return x < a ? x : a;
}
static double magnitude(double a, double x)
{
    return a + fabs(x);
}
static double squares(double a, double x)
{
    return a + x * x;
}
static double exponentials(double a, double x)
{
    return a + exp(x);
}
static double keep(double a, double n)
{
    return n < 0 ? n : a;
}
static double mean(double a, double n)
{
    return a / n;
}
static double root(double a, double n)
{
    return n < 0 ? n : sqrt(a);
}
static double logarithm(double a, double n)
{
    return n < 0 ? n : log(a);
}

static const struct {
    const char *op;
    double start;
    step_fn *step;
    end_fn *end;
    bool exact;
} rows[] = {
    {"reduce_sum", 0, plus, keep, true},
    {"reduce_mean", 0, plus, mean, false},
    {"reduce_max", -INFINITY, greater, keep, true},
    {"reduce_min", INFINITY, lesser, keep, true},
    {"reduce_prod", 1, times, keep, true},
    {"reduce_l1", 0, magnitude, keep, true},
    {"reduce_l2", 0, squares, root, false},
    {"reduce_sum_square", 0, squares, keep, true},
    {"reduce_log_sum", 0, plus, logarithm, false},
    {"reduce_log_sum_exp", 0, exponentials, logarithm, false},
};

/* axes: a bit for each reduced dimension. */
static nd reference(int row, const nd *x, unsigned axes, bool keepdims)
{
    int64_t shape[8], index[8], to[8], count = 1;
    int n = 0;

    for (int i = 0; i < x->n; i++) {
        if (axes >> i & 1) {
            count *= x->shape[i];
            if (keepdims)
                shape[n++] = 1;
        } else
            shape[n++] = x->shape[i];
    }
    nd y = new_nd(x->t, n, shape);
    for (int64_t k = 0; k < y.size; k++)
        y.v[k] = rows[row].start;
    for (int64_t k = 0; k < x->size; k++) {
        int m = 0;

        unravel(x, k, index);
        for (int i = 0; i < x->n; i++)
            if (!(axes >> i & 1) || keepdims)
                to[m++] = axes >> i & 1 ? 0 : index[i];
        double *at = &y.v[offset_of(&y, to)];
        *at = rows[row].step(*at, x->v[k]);
    }
    for (int64_t k = 0; k < y.size; k++)
        y.v[k] = rows[row].end(y.v[k], (double)count);
    return y;
}

static void check_row(int row, nd x, unsigned axes, bool keepdims)
{
    int64_t list[8];
    int n = 0;

    for (int i = 0; i < x.n; i++)
        if (axes >> i & 1)
            list[n++] = i;
    op_attr attr[] = {op_attr_ints(cx, "axes", list, n), op_attr_int("keepdims", keepdims)};
    gives(rows[row].op, attr, 2, &x, 1, reference(row, &x, axes, keepdims), rows[row].exact ? 0 : 1e-5);
}

static nd positive(int n, const int64_t *shape)
{
    return random_nd_between(BASE_F32, 1, 3, n, shape);
}

Test(reduce, over_each_set_of_axes)
{
    for (int row = 0; row < BASE_COUNT(rows); row++)
        for (unsigned axes = 1; axes < 8; axes++)
            check_row(row, positive(SHAPE(2, 3, 5)), axes, axes % 2);
}

Test(reduce, over_rows_and_columns_longer_than_vectors)
{
    for (int row = 0; row < BASE_COUNT(rows); row += 3) {
        check_row(row, positive(SHAPE(3, 32)), 2, true);
        check_row(row, positive(SHAPE(3, 37)), 2, true);
        check_row(row, positive(SHAPE(4, 37)), 1, false);
    }
}

Test(reduce, negative_numbers)
{
    for (int row = 0; row < 8; row++)
        check_row(row, random_nd(BASE_F32, SHAPE(4, 6)), 2, false);
}

Test(reduce, over_all_axes_without_the_attribute)
{
    nd x = random_nd(BASE_F32, SHAPE(3, 4)), y = reference(0, &x, 3, true);

    gives("reduce_sum", NO_ATTRS, IN(x), y, 0);
    y = reference(0, &x, 3, false);
    gives("reduce_sum", ATTRS(op_attr_int("keepdims", 0)), IN(x), y, 0);
}

Test(reduce, over_no_axis_changes_nothing_but_the_values)
{
    nd x = random_nd(BASE_F32, SHAPE(3, 4)), y = x;

    gives("reduce_sum", ATTRS(op_attr_ints(cx, "axes", NULL, 0)), IN(x), y, 0);
    y = reference(5, &x, 0, true);
    gives("reduce_l1", ATTRS(op_attr_ints(cx, "axes", NULL, 0)), IN(x), y, 0);
}

Test(reduce, over_nothing_gives_the_identity)
{
    for (int row = 0; row < 5; row++)
        if (row != 1)
            check_row(row, new_nd(BASE_F32, SHAPE(3, 0)), 2, true);
}

Test(reduce, integers)
{
    for (int row = 0; row < 6; row++) {
        if (row == 1)
            continue;
        check_row(row, random_nd(BASE_I32, SHAPE(3, 5)), 2, true);
        check_row(row, random_nd(BASE_I64, SHAPE(3, 5)), 1, false);
    }
    nd bytes = random_nd_between(BASE_U8, 0, 9, SHAPE(4, 5));
    check_row(2, bytes, 2, true);
    check_row(3, bytes, 1, true);
}

Test(reduce, halves_in_single_precision)
{
    check_row(0, random_nd(BASE_F16, SHAPE(3, 40)), 2, true);
    check_row(2, random_nd(BASE_F16, SHAPE(3, 40)), 2, true);
}

Test(reduce, with_a_batch_known_when_it_runs)
{
    for (int64_t n = 1; n <= 3; n++) {
        check_row(0, symbolic(random_nd(BASE_F32, SHAPE(n, 5, 6))), 4, true);
        check_row(1, symbolic(positive(SHAPE(n, 7))), 1, false);
    }
}

Test(reduce, large_exponents_do_not_overflow)
{
    nd x = new_nd(BASE_F32, SHAPE(2, 3)), y = new_nd(BASE_F32, SHAPE(2, 1));

    for (int i = 0; i < 6; i++)
        x.v[i] = i < 3 ? 1000 : -1000;
    y.v[0] = 1000 + log(3);
    y.v[1] = -1000 + log(3);
    gives("reduce_log_sum_exp", ATTRS(INTS("axes", 1)), IN(x), y, 1e-6);
}

Test(reduce, keeps_nan)
{
    nd x = new_nd(BASE_F32, SHAPE(2, 3)), y = new_nd(BASE_F32, SHAPE(2, 1));

    x.v[1] = NAN;
    y.v[0] = NAN;
    gives("reduce_max", ATTRS(INTS("axes", 1)), IN(x), y, 0);
    gives("reduce_min", ATTRS(INTS("axes", 1)), IN(x), y, 0);
}

Test(reduce, refuses_axes_that_are_none)
{
    refuses("reduce_sum 'reduce_sum': axis 3 does not exist: the operand is f32[2, 3]", "reduce_sum",
            ATTRS(INTS("axes", 3)), IN(positive(SHAPE(2, 3))));
    refuses("axis -1 does not exist: the operand is f32[2, 3]", "reduce_max", ATTRS(INTS("axes", -1)),
            IN(positive(SHAPE(2, 3))));
    refuses("expected 1 operands, found 2", "reduce_max", NO_ATTRS,
            IN(positive(SHAPE(2)), positive(SHAPE(2))));
}

Test(reduce, infers_types)
{
    infers("f32[n, 1]", "reduce_sum", ATTRS(INTS("axes", 1)), IN(symbolic(positive(SHAPE(2, 3)))));
    infers("f32[]", "reduce_sum", ATTRS(op_attr_int("keepdims", 0)), IN(positive(SHAPE(2, 3))));
    infers("i64[2]", "arg_max", ATTRS(INTS("axes", 1), op_attr_int("keepdims", 0)),
           IN(positive(SHAPE(2, 3))));
}

/* ---- searches ---- */

static nd position(const nd *x, bool greatest, bool last)
{
    nd y = new_nd(BASE_I64, SHAPE(x->shape[0], 1));

    for (int64_t i = 0; i < x->shape[0]; i++) {
        const double *row = x->v + i * x->shape[1];
        int64_t best = 0;

        for (int64_t j = 1; j < x->shape[1]; j++)
            if ((greatest ? row[j] > row[best] : row[j] < row[best]) || (last && row[j] == row[best]))
                best = j;
        y.v[i] = (double)best;
    }
    return y;
}

Test(reduce, searches_the_first_or_the_last_of_equals)
{
    nd x = random_nd_between(BASE_F32, 0, 3, SHAPE(5, 19));

    for (int last = 0; last <= 1; last++) {
        gives("arg_max", ATTRS(INTS("axes", 1), op_attr_int("select_last", last)), IN(x),
              position(&x, true, last), 0);
        gives("arg_min", ATTRS(INTS("axes", 1), op_attr_int("select_last", last)), IN(x),
              position(&x, false, last), 0);
    }
}

Test(reduce, searches_with_a_batch_known_when_it_runs)
{
    nd x = symbolic(random_nd_between(BASE_F32, 0, 3, SHAPE(3, 16)));

    gives("arg_max", ATTRS(INTS("axes", 1)), IN(x), position(&x, true, false), 0);
}

/* ---- softmax ---- */

/* Rows of `length` elements that lie side by side. */
static nd softmax_rows(const nd *x, int64_t length, bool logs)
{
    nd y = *x;

    y.symbolic = false;
    y.v = base_array(cx, double, x->size + 1);
    for (int64_t r = 0; r < x->size; r += length) {
        double top = -INFINITY, sum = 0;

        for (int64_t i = r; i < r + length; i++)
            top = fmax(top, x->v[i]);
        for (int64_t i = r; i < r + length; i++)
            sum += exp(x->v[i] - top);
        for (int64_t i = r; i < r + length; i++)
            y.v[i] = logs ? x->v[i] - top - log(sum) : exp(x->v[i] - top) / sum;
    }
    return y;
}

static void check_softmax(nd x, const op_attr *attr, int n_attrs, int64_t length)
{
    gives("softmax", attr, n_attrs, &x, 1, softmax_rows(&x, length, false), 1e-5);
    gives("log_softmax", attr, n_attrs, &x, 1, softmax_rows(&x, length, true), 1e-5);
}

Test(reduce, softmax_of_rows)
{
    check_softmax(random_nd(BASE_F32, SHAPE(3, 7)), NO_ATTRS, 7);
    check_softmax(random_nd(BASE_F32, SHAPE(2, 3, 32)), ATTRS(op_attr_int("axis", 2)), 32);
}

Test(reduce, softmax_of_large_values)
{
    nd x = random_nd(BASE_F32, SHAPE(3, 9));

    for (int64_t i = 0; i < x.size; i++)
        x.v[i] = x.v[i] * 1000 + (double)(i / 9 - 1) * 100000;
    check_softmax(x, NO_ATTRS, 9);
}

Test(reduce, softmax_over_all_axes_from_one_on)
{
    check_softmax(random_nd(BASE_F32, SHAPE(2, 3, 4)),
                  ATTRS(op_attr_int("axis", 1), op_attr_int("flatten", 1)), 12);
    check_softmax(random_nd(BASE_F32, SHAPE(2, 3)), ATTRS(op_attr_int("axis", 0), op_attr_int("flatten", 1)),
                  6);
}

Test(reduce, softmax_of_columns)
{
    nd x = random_nd(BASE_F32, SHAPE(5, 19)), t = new_nd(BASE_F32, SHAPE(19, 5)),
       y = new_nd(BASE_F32, SHAPE(5, 19));

    for (int64_t i = 0; i < 95; i++)
        t.v[i % 19 * 5 + i / 19] = x.v[i];
    t = softmax_rows(&t, 5, false);
    for (int64_t i = 0; i < 95; i++)
        y.v[i] = t.v[i % 19 * 5 + i / 19];
    gives("softmax", ATTRS(op_attr_int("axis", 0)), IN(x), y, 1e-5);
}

Test(reduce, softmax_with_a_batch_known_when_it_runs)
{
    for (int64_t n = 1; n <= 3; n++)
        check_softmax(symbolic(random_nd(BASE_F32, SHAPE(n, 10))), NO_ATTRS, 10);
}

Test(reduce, softmax_refuses_what_does_not_fit)
{
    refuses("softmax 'softmax': axis 2 does not exist: the operand is f32[2, 3]", "softmax",
            ATTRS(op_attr_int("axis", 2)), IN(positive(SHAPE(2, 3))));
    refuses("softmax 'softmax': the operand is i32[2, 3], expected floats", "softmax", NO_ATTRS,
            IN(new_nd(BASE_I32, SHAPE(2, 3))));
}
