/* tests/ops/index.c -- operators that read and write by index, against plain loops. */
#include "tests/ops/kit.h"

TestSuite(index, .init = open_context, .fini = close_context);

#define RANDOM(...) random_nd(BASE_F32, SHAPE(__VA_ARGS__))

static int64_t inside(double at, int64_t extent)
{
    int64_t i = at < 0 ? (int64_t)at + extent : (int64_t)at;

    return i < 0 ? 0 : i >= extent ? extent - 1 : i;
}

/* ---- gather ---- */

Test(index, gather_elements_picks_each_by_itself)
{
    nd x = RANDOM(4, 5), at = random_nd_between(BASE_I64, -4, 5, SHAPE(3, 5)),
       y = new_nd(BASE_F32, SHAPE(3, 5));

    /* 4 and 5 lie behind the end, and are kept inside. */
    for (int64_t i = 0; i < y.size; i++)
        y.v[i] = x.v[inside(at.v[i], 4) * 5 + i % 5];
    gives("gather_elements", ATTRS(op_attr_int("axis", 0)), IN(x, at), y, 0);
}

Test(index, gather_elements_may_cover_less_than_the_data)
{
    nd x = RANDOM(4, 5), at = random_nd_between(BASE_I32, -5, 4, SHAPE(2, 7)),
       y = new_nd(BASE_F32, SHAPE(2, 7));

    for (int64_t i = 0; i < y.size; i++)
        y.v[i] = x.v[i / 7 * 5 + inside(at.v[i], 5)];
    gives("gather_elements", ATTRS(op_attr_int("axis", 1)), IN(x, at), y, 0);
}

Test(index, gather_nd_follows_tuples)
{
    nd x = RANDOM(3, 4, 5), at = random_nd_between(BASE_I64, -3, 2, SHAPE(6, 2)),
       y = new_nd(BASE_F32, SHAPE(6, 5));

    for (int64_t i = 0; i < y.size; i++)
        y.v[i] = x.v[(inside(at.v[i / 5 * 2], 3) * 4 + inside(at.v[i / 5 * 2 + 1], 4)) * 5 + i % 5];
    gives("gather_nd", NO_ATTRS, IN(x, at), y, 0);
}

Test(index, gather_nd_goes_through_batches)
{
    nd x = RANDOM(3, 4, 5), at = random_nd_between(BASE_I64, 0, 3, SHAPE(3, 1)),
       y = new_nd(BASE_F32, SHAPE(3, 5));

    for (int64_t i = 0; i < y.size; i++)
        y.v[i] = x.v[(i / 5 * 4 + inside(at.v[i / 5], 4)) * 5 + i % 5];
    gives("gather_nd", ATTRS(op_attr_int("batch_dims", 1)), IN(x, at), y, 0);
}

/* ---- scatter ---- */

static double combined(const char *how, double a, double b)
{
    return *how == 'n'     ? b
           : *how == 'a'   ? a + b
           : how[1] == 'u' ? a * b
           : how[1] == 'a' ? fmax(a, b)
                           : fmin(a, b);
}

static const char *const ways[] = {"none", "add", "mul", "max", "min"};

Test(index, scatter_elements_places_each_by_itself)
{
    for (int w = 0; w < 5; w++) {
        nd x = RANDOM(4, 5), at = random_nd_between(BASE_I64, -4, 3, SHAPE(6, 3)), u = RANDOM(6, 3),
           y = new_nd(BASE_F32, SHAPE(4, 5));

        for (int64_t i = 0; i < y.size; i++)
            y.v[i] = x.v[i];
        for (int64_t i = 0; i < u.size; i++) {
            double *to = &y.v[inside(at.v[i], 4) * 5 + i % 3];

            *to = combined(ways[w], *to, u.v[i]);
        }
        gives("scatter_elements", ATTRS(op_attr_int("axis", 0), op_attr_string("reduction", ways[w])),
              IN(x, at, u), y, 0);
    }
}

Test(index, scatter_nd_places_parts)
{
    for (int w = 0; w < 5; w++) {
        nd x = RANDOM(3, 4, 2), at = random_nd_between(BASE_I64, -3, 2, SHAPE(5, 2)), u = RANDOM(5, 2),
           y = new_nd(BASE_F32, SHAPE(3, 4, 2));

        for (int64_t i = 0; i < y.size; i++)
            y.v[i] = x.v[i];
        for (int64_t i = 0; i < u.size; i++) {
            double *to = &y.v[(inside(at.v[i / 2 * 2], 3) * 4 + inside(at.v[i / 2 * 2 + 1], 4)) * 2 + i % 2];

            *to = combined(ways[w], *to, u.v[i]);
        }
        gives("scatter_nd", ATTRS(op_attr_string("reduction", ways[w])), IN(x, at, u), y, 0);
    }
}

/* ---- counting ---- */

Test(index, range_counts)
{
    nd plain = new_nd(BASE_I64, SHAPE(7)), steps = new_nd(BASE_F32, SHAPE(7)),
       back = new_nd(BASE_I32, SHAPE(7));

    for (int i = 0; i < 7; i++) {
        plain.v[i] = i;
        steps.v[i] = 1.5 + i * 0.25;
        back.v[i] = 20 - 3 * i;
    }
    gives("range", ATTRS(EXPRS("shape", I(7))), NO_INPUTS, plain, 0);
    gives("range",
          ATTRS(EXPRS("shape", I(7)), op_attr_dtype("dtype", BASE_F32), op_attr_float("start", 1.5),
                op_attr_float("step", 0.25)),
          NO_INPUTS, steps, 0);
    gives("range",
          ATTRS(EXPRS("shape", I(7)), op_attr_dtype("dtype", BASE_I32), EXPRS("start", I(20), I(-3))),
          NO_INPUTS, back, 0);
}

Test(index, trilu_keeps_one_side_of_a_diagonal)
{
    for (int upper = 0; upper < 2; upper++)
        for (int k = -7; k <= 7; k++) {
            nd x = random_nd_between(BASE_I64, 1, 9, SHAPE(2, 4, 5)),
               diagonal = random_nd_between(BASE_I64, k, k, SCALAR_SHAPE),
               y = new_nd(BASE_I64, SHAPE(2, 4, 5));

            for (int64_t i = 0; i < y.size; i++) {
                int64_t above = i % 5 - i / 5 % 4;

                y.v[i] = (upper ? above >= k : above <= k) ? x.v[i] : 0;
            }
            gives("trilu", ATTRS(op_attr_int("upper", upper)), IN(x, diagonal), y, 0);
        }
}

/* Along the first dimension the sums are the result itself; rows of 40 have whole vectors and a rest. */
Test(index, cum_sum_adds_up_what_came_so_far)
{
    for (int form = 0; form < 8; form++) {
        int64_t outer = form & 4 ? 1 : 3, inner = form & 4 ? 40 : 2, shape[] = {outer, 6, inner};
        nd x = random_nd(BASE_F32, 3, shape), y = new_nd(BASE_F32, 3, shape);

        for (int64_t i = 0; i < y.size; i++)
            for (int64_t j = 0; j < 6; j++) {
                int64_t at = i / inner % 6;
                bool counts = form & 1 ? (form & 2 ? j > at : j < at) : (form & 2 ? j >= at : j <= at);

                y.v[i] += counts ? x.v[(i / inner / 6 * 6 + j) * inner + i % inner] : 0;
            }
        op_attr attrs[] = {op_attr_int("axis", 1), op_attr_int("exclusive", form & 1),
                           op_attr_int("reverse", form >> 1 & 1)};
        gives("cum_sum", attrs, 3, IN(x), y, 0);
        if (!(form & 4))
            continue;
        x.n = y.n = 2;
        x.shape[0] = y.shape[0] = 6, x.shape[1] = y.shape[1] = 40;
        attrs[0] = op_attr_int("axis", 0);
        gives("cum_sum", attrs, 3, IN(x), y, 0);
    }
}

/* As many rows as they like begin again: 8 rows of 40 as two sums of 4 rows. */
Test(index, cum_sum_begins_again)
{
    nd x = random_nd(BASE_F32, SHAPE(8, 40)), y = new_nd(BASE_F32, SHAPE(8, 40));

    for (int64_t i = 0; i < y.size; i++)
        y.v[i] = x.v[i] + (i / 40 % 4 ? y.v[i - 40] : 0);
    gives("cum_sum", ATTRS(op_attr_int("axis", 0), op_attr_int("restart", 4)), IN(x), y, 0);
    refuses("cannot begin again after 3 elements", "cum_sum", ATTRS(op_attr_int("restart", 3)), IN(x));
    refuses("cannot begin again after -4 elements", "cum_sum", ATTRS(op_attr_int("restart", -4)), IN(x));
    refuses("cannot begin again after 4 elements", "cum_sum",
            ATTRS(op_attr_int("restart", 4), op_attr_int("reverse", 1)), IN(x));
}

/* ---- order ---- */

Test(index, search_sorted_counts_what_is_at_most_the_value)
{
    for (int64_t n = 0; n < 40; n += 13) {
        nd a = new_nd(BASE_I64, 1, &n), v = random_nd_between(BASE_I64, -2, 45, SHAPE(3, 7)),
           y = new_nd(BASE_I64, SHAPE(3, 7));

        for (int64_t i = 0; i < n; i++)
            a.v[i] = (double)(i / 3 * 3);
        for (int64_t i = 0; i < y.size; i++)
            for (int64_t j = 0; j < n; j++)
                y.v[i] += a.v[j] <= v.v[i];
        for (int64_t i = 1; i < n; i++)
            cr_assert_leq(a.v[i - 1], a.v[i]);
        gives("search_sorted", NO_ATTRS, IN(a, v), y, 0);
    }
}

Test(index, top_k_orders_equal_elements_as_they_came)
{
    for (int largest = 0; largest < 2; largest++) {
        nd x = random_nd_between(BASE_F32, 0, 5, SHAPE(3, 9)), y = new_nd(BASE_I64, SHAPE(3, 4));

        x.v[4] = NAN;
        x.v[7] = NAN;
        for (int row = 0; row < 3; row++) {
            bool taken[9] = {false};

            for (int r = 0; r < 4; r++) {
                int best = -1;

                for (int i = 0; i < 9; i++) {
                    double v = isnan(x.v[row * 9 + i]) ? INFINITY : x.v[row * 9 + i],
                           b = best < 0                     ? 0
                               : isnan(x.v[row * 9 + best]) ? INFINITY
                                                            : x.v[row * 9 + best];

                    if (!taken[i] && (best < 0 || (largest ? v > b : v < b)))
                        best = i;
                }
                taken[best] = true;
                y.v[row * 4 + r] = best;
            }
        }
        gives("top_k", ATTRS(op_attr_int("axis", 1), op_attr_int("k", 4), op_attr_int("largest", largest)),
              IN(x), y, 0);
    }
}

/* ---- einsum ---- */

Test(index, einsum_sums_over_what_the_result_lacks)
{
    nd a = RANDOM(2, 3, 4), b = RANDOM(2, 4, 5), y = new_nd(BASE_F32, SHAPE(3, 2, 5));

    for (int64_t i = 0; i < y.size; i++)
        for (int64_t k = 0; k < 4; k++)
            y.v[i] += a.v[(i / 5 % 2 * 3 + i / 10) * 4 + k] * b.v[(i / 5 % 2 * 4 + k) * 5 + i % 5];
    gives("einsum", ATTRS(op_attr_string("equation", "bik,bkj->ibj")), IN(a, b), y, 0);
}

Test(index, einsum_takes_diagonals_and_stretches_ones)
{
    nd a = RANDOM(3, 4, 4), b = RANDOM(1, 4), y = new_nd(BASE_F32, SHAPE(3, 4)),
       total = new_nd(BASE_F32, SCALAR_SHAPE);

    for (int64_t i = 0; i < y.size; i++) {
        y.v[i] = a.v[(i / 4 * 4 + i % 4) * 4 + i % 4] * b.v[i % 4];
        total.v[0] += y.v[i];
    }
    gives("einsum", ATTRS(op_attr_string("equation", "bii,bi->bi")), IN(a, b), y, 0);
    gives("einsum", ATTRS(op_attr_string("equation", "bii,bi->")), IN(a, b), total, 0);
}

/* ---- what does not fit ---- */

Test(index, refuses_what_does_not_fit)
{
    nd x = RANDOM(3, 4), at = random_nd(BASE_I64, SHAPE(3, 4)), row = random_nd(BASE_I64, SHAPE(4));

    refuses("axis 2 does not exist: the operand is f32[3, 4]", "gather_elements",
            ATTRS(op_attr_int("axis", 2)), IN(x, at));
    refuses("the indices are f32[3, 4], expected integers", "gather_elements", NO_ATTRS, IN(x, x));
    refuses("the indices are i64[4], but the data are f32[3, 4]: expected equal ranks", "gather_elements",
            NO_ATTRS, IN(x, row));
    refuses("tuples of 4 behind 0 batch dimensions do not index f32[3, 4]", "gather_nd", NO_ATTRS, IN(x, at));
    refuses("expected tuples of constant length", "gather_nd", NO_ATTRS,
            IN(x, random_nd(BASE_I64, SCALAR_SHAPE)));
    refuses("batch dimension 0 of f32[3, 4] and i64[2, 1] differs", "gather_nd",
            ATTRS(op_attr_int("batch_dims", 1)), IN(x, random_nd(BASE_I64, SHAPE(2, 1))));
    refuses("attribute 'shape' must have one extent", "range", NO_ATTRS, NO_INPUTS);
    refuses("'start' must be the first number and the step", "range",
            ATTRS(EXPRS("shape", I(3)), EXPRS("start", I(3))), NO_INPUTS);
    refuses("the operand is i64[4]: expected matrices", "trilu", NO_ATTRS, IN(row));
    refuses("the diagonal is i64[4], expected i64[]", "trilu", NO_ATTRS, IN(x, row));
    refuses("cannot take 5 elements from dimension 1 of f32[3, 4]", "top_k",
            ATTRS(op_attr_int("axis", 1), op_attr_int("k", 5)), IN(x));
    refuses("the updates are i64[3, 4], but the data are f32[3, 4]: expected the same type",
            "scatter_elements", NO_ATTRS, IN(x, at, at));
    refuses("unknown reduction 'or': expected none, add, mul, max or min", "scatter_elements",
            ATTRS(op_attr_string("reduction", "or")), IN(x, at, x));
    refuses("expected equal ranks", "scatter_elements", NO_ATTRS, IN(x, row, x));
    refuses("the indices are i64[3, 4], but the updates are f32[2, 4]: expected equal shapes",
            "scatter_elements", NO_ATTRS, IN(x, at, RANDOM(2, 4)));
    refuses("do not fit each other", "scatter_nd", NO_ATTRS, IN(x, at, x));
    refuses("dimension 1 of the updates, f32[2, 5], differs from that dimension of the data, f32[3, 4]",
            "scatter_nd", NO_ATTRS, IN(x, random_nd(BASE_I64, SHAPE(2, 1)), RANDOM(2, 5)));
    refuses("equation 'ij' has no '->'", "einsum", ATTRS(op_attr_string("equation", "ij")), IN(x));
    refuses("equation 'ij,jk->ik' does not describe 1 operands", "einsum",
            ATTRS(op_attr_string("equation", "ij,jk->ik")), IN(x));
    refuses("'i' does not name the dimensions of operand 0", "einsum",
            ATTRS(op_attr_string("equation", "i->i")), IN(x));
    refuses("dimension 'i' of operand 0, which is f32[3, 4], has another extent elsewhere", "einsum",
            ATTRS(op_attr_string("equation", "ii->i")), IN(x));
    refuses("dimension 'k' of the result is no operand's", "einsum",
            ATTRS(op_attr_string("equation", "ij->k")), IN(x));
    refuses("dimension 'i' of the result is named twice", "einsum",
            ATTRS(op_attr_string("equation", "ij->ii")), IN(x));
}
