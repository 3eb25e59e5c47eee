/* tests/ops/shape.c -- operators that move elements, against index arithmetic. */
#include "tests/ops/kit.h"

TestSuite(shape, .init = open_context, .fini = close_context);

#define RANDOM(...) random_nd(BASE_F32, SHAPE(__VA_ARGS__))

static nd as(nd x, int n, const int64_t *shape)
{
    nd y = new_nd(x.t, n, shape);

    memcpy(y.v, x.v, (size_t)x.size * sizeof *x.v);
    return y;
}

/* ---- reshape ---- */

Test(shape, reshape_keeps_the_order_of_elements)
{
    nd x = RANDOM(4, 6), s = RANDOM(1);

    gives("reshape", ATTRS(EXPRS("shape", I(3), I(8))), IN(x), as(x, SHAPE(3, 8)), 0);
    gives("reshape", ATTRS(EXPRS("shape", I(24))), IN(x), as(x, SHAPE(24)), 0);
    gives("reshape", ATTRS(EXPRS("shape", I(2), I(2), I(3), I(2))), IN(x), as(x, SHAPE(2, 2, 3, 2)), 0);
    gives("reshape", ATTRS(op_attr_exprs(cx, "shape", NULL, 0)), IN(s), as(s, SCALAR_SHAPE), 0);
    gives("reshape", ATTRS(EXPRS("shape", I(0), I(5))), IN(RANDOM(3, 0)), as(RANDOM(3, 0), SHAPE(0, 5)), 0);
}

Test(shape, reshape_with_a_batch_known_when_it_runs)
{
    for (int64_t n = 1; n <= 3; n++) {
        nd x = symbolic(RANDOM(n, 3, 4));

        gives("reshape", ATTRS(EXPRS("shape", batch, I(12))), IN(x), as(x, SHAPE(n, 12)), 0);
        gives("reshape", ATTRS(EXPRS("shape", ir_mul(cx, batch, I(3)), I(4))), IN(x), as(x, SHAPE(n * 3, 4)),
              0);
    }
}

Test(shape, reshape_counts_elements)
{
    refuses("reshape 'reshape': f32[2, 3] has 6 elements, shape f32[4] has 4", "reshape",
            ATTRS(EXPRS("shape", I(4))), IN(RANDOM(2, 3)));
    refuses("reshape 'reshape': attribute 'shape' is missing", "reshape", NO_ATTRS, IN(RANDOM(2, 3)));
}

/* ---- transpose ---- */

static void check_transpose(nd x, int64_t a, int64_t b, int64_t c)
{
    int64_t perm[3] = {a, b, c}, at[3], from[3];
    nd y = new_nd(x.t, SHAPE(x.shape[a], x.shape[b], x.shape[c]));

    for (int64_t i = 0; i < y.size; i++) {
        unravel(&y, i, at);
        for (int k = 0; k < 3; k++)
            from[perm[k]] = at[k];
        y.v[i] = x.v[offset_of(&x, from)];
    }
    gives("transpose", ATTRS(INTS("perm", a, b, c)), IN(x), y, 0);
}

Test(shape, transpose_each_way)
{
    check_transpose(RANDOM(3, 4, 19), 0, 2, 1);
    check_transpose(RANDOM(3, 4, 5), 1, 0, 2);
    check_transpose(RANDOM(17, 4, 5), 2, 1, 0);
    check_transpose(RANDOM(3, 4, 5), 1, 2, 0);
    check_transpose(RANDOM(3, 4, 5), 0, 1, 2);
    for (int64_t n = 1; n <= 3; n++)
        check_transpose(symbolic(RANDOM(n, 4, 5)), 2, 0, 1);
}

Test(shape, transpose_wants_a_permutation)
{
    refuses("'perm' is not a permutation of the dimensions of f32[2, 3]", "transpose",
            ATTRS(INTS("perm", 0, 0)), IN(RANDOM(2, 3)));
    refuses("'perm' is not a permutation of the dimensions of f32[2, 3]", "transpose",
            ATTRS(INTS("perm", 0, 2)), IN(RANDOM(2, 3)));
    refuses("'perm' has 1 values, but the operand is f32[2, 3]", "transpose", ATTRS(INTS("perm", 0)),
            IN(RANDOM(2, 3)));
}

/* ---- slice ---- */

Test(shape, slice_forwards_and_backwards)
{
    nd x = RANDOM(6, 19), y = new_nd(BASE_F32, SHAPE(3, 7));

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 7; j++)
            y.v[i * 7 + j] = x.v[(5 - 2 * i) * 19 + 1 + 2 * j];
    gives("slice", ATTRS(EXPRS("begin", I(5), I(1)), EXPRS("extent", I(3), I(7)), INTS("step", -2, 2)), IN(x),
          y, 0);
}

Test(shape, slice_of_nothing)
{
    gives("slice", ATTRS(EXPRS("begin", I(2)), EXPRS("extent", I(0)), INTS("step", 1)), IN(RANDOM(5)),
          new_nd(BASE_F32, SHAPE(0)), 0);
}

Test(shape, slice_with_bounds_known_when_it_runs)
{
    for (int64_t n = 2; n <= 4; n++) {
        nd x = symbolic(RANDOM(n, 5)), y = new_nd(BASE_F32, SHAPE(n - 1, 5));

        memcpy(y.v, x.v + 5, (size_t)y.size * sizeof *y.v);
        gives("slice",
              ATTRS(EXPRS("begin", I(1), I(0)), EXPRS("extent", ir_sub(cx, batch, I(1)), I(5)),
                    INTS("step", 1, 1)),
              IN(x), y, 0);
    }
}

Test(shape, slice_wants_bounds_for_each_dimension)
{
    refuses("'step' has 1 values, but the operand is f32[2, 3]", "slice", ATTRS(INTS("step", 1)),
            IN(RANDOM(2, 3)));
    refuses("'begin' must have one value for each dimension of the operand, which is f32[2, 3]", "slice",
            ATTRS(INTS("step", 1, 1)), IN(RANDOM(2, 3)));
}

/* ---- pad ---- */

static int64_t padded_source(int64_t i, int64_t n, const char *mode)
{
    if (*mode == 'e')
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    if (*mode == 'w')
        return (i % n + n) % n;
    while (*mode == 'r' && (i < 0 || i >= n))
        i = i < 0 ? -i : 2 * (n - 1) - i;
    return i >= 0 && i < n ? i : -1;
}

static nd pad_reference(const nd *x, const int64_t *before, const int64_t *after, const char *mode,
                        double value)
{
    nd y = new_nd(x->t, SHAPE(x->shape[0] + before[0] + after[0], x->shape[1] + before[1] + after[1]));
    int64_t at[2];

    for (int64_t i = 0; i < y.size; i++) {
        unravel(&y, i, at);
        int64_t p = padded_source(at[0] - before[0], x->shape[0], mode),
                q = padded_source(at[1] - before[1], x->shape[1], mode);
        y.v[i] = p < 0 || q < 0 ? value : x->v[p * x->shape[1] + q];
    }
    return y;
}

Test(shape, pad_in_each_mode)
{
    static const int64_t before[] = {2, 1}, after[] = {1, 3};
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    nd x = RANDOM(4, 5);

    for (int m = 0; m < 4; m++)
        gives("pad",
              ATTRS(op_attr_ints(cx, "before", before, 2), op_attr_ints(cx, "after", after, 2),
                    op_attr_string("mode", modes[m]), op_attr_float("value", 7)),
              IN(x), pad_reference(&x, before, after, modes[m], 7), 0);
}

/* More than the operand has: mirrors and copies go on. */
Test(shape, pad_by_more_than_there_is)
{
    static const int64_t before[] = {7, 1}, after[] = {4, 13};
    static const char *const modes[] = {"reflect", "edge", "wrap"};
    nd x = RANDOM(2, 3);

    for (int m = 0; m < 3; m++)
        gives("pad",
              ATTRS(op_attr_ints(cx, "before", before, 2), op_attr_ints(cx, "after", after, 2),
                    op_attr_string("mode", modes[m])),
              IN(x), pad_reference(&x, before, after, modes[m], 0), 0);
}

Test(shape, pad_of_nothing_has_no_source)
{
    op_attr one[] = {INTS("before", 1, 0), INTS("after", 0, 0), op_attr_string("mode", "edge")};
    op_attr far[] = {INTS("before", INT64_MAX, 0), INTS("after", 1, 0)};

    refuses("dimension 0 is empty, so mode edge has no elements to fill the padding with", "pad", one, 3,
            IN(RANDOM(0, 3)));
    refuses("cannot add 9223372036854775807 and 1 elements to dimension 0: out of range", "pad", far, 2,
            IN(RANDOM(2, 3)));
}

Test(shape, pad_by_negative_numbers_crops)
{
    static const int64_t before[] = {-1, 2}, after[] = {1, -2};
    nd x = RANDOM(4, 5);

    gives("pad", ATTRS(op_attr_ints(cx, "before", before, 2), op_attr_ints(cx, "after", after, 2)), IN(x),
          pad_reference(&x, before, after, "constant", 0), 0);
}

Test(shape, pad_with_a_value_that_is_an_operand)
{
    static const int64_t before[] = {0, 2}, after[] = {0, 0};
    nd x = symbolic(RANDOM(2, 17)), v = random_nd_between(BASE_F32, 9, 9, SCALAR_SHAPE);

    gives("pad", ATTRS(op_attr_ints(cx, "before", before, 2), op_attr_ints(cx, "after", after, 2)), IN(x, v),
          pad_reference(&x, before, after, "constant", 9), 0);
}

Test(shape, pad_refuses_what_does_not_fit)
{
    op_attr one[] = {INTS("before", 1, 1), INTS("after", 1, 1), op_attr_string("mode", "turn")},
            crop[] = {INTS("before", -2, 0), INTS("after", -2, 0)};

    refuses("unknown mode 'turn': expected constant, reflect, edge or wrap", "pad", one, 3, IN(RANDOM(2, 3)));
    refuses("dimension 0 of f32[2, 3] would have extent -2", "pad", crop, 2, IN(RANDOM(2, 3)));
    refuses("'before' has 0 values, but the operand is f32[2, 3]", "pad", NO_ATTRS, IN(RANDOM(2, 3)));
}

/* ---- concat ---- */

static nd joined(const nd *x, int n, int axis)
{
    int64_t shape[2] = {x[0].shape[0], x[0].shape[1]}, at[2], start = 0;

    shape[axis] = 0;
    for (int k = 0; k < n; k++)
        shape[axis] += x[k].shape[axis];
    nd y = new_nd(x[0].t, 2, shape);
    for (int k = 0; k < n; k++) {
        for (int64_t i = 0; i < x[k].size; i++) {
            unravel(&x[k], i, at);
            at[axis] += start;
            y.v[offset_of(&y, at)] = x[k].v[i];
        }
        start += x[k].shape[axis];
    }
    return y;
}

Test(shape, concat_along_each_axis)
{
    nd rows[] = {RANDOM(2, 19), RANDOM(1, 19), RANDOM(3, 19)},
       columns[] = {RANDOM(3, 4), RANDOM(3, 15), RANDOM(3, 1), RANDOM(3, 0)};

    gives("concat", NO_ATTRS, rows, 3, joined(rows, 3, 0), 0);
    gives("concat", ATTRS(op_attr_int("axis", 1)), columns, 4, joined(columns, 4, 1), 0);
    gives("concat", NO_ATTRS, rows, 1, rows[0], 0);
}

/* Many pieces, and pieces that are long enough for threads of their own, in the middle and at both ends. */
Test(shape, concat_of_many_and_of_long_pieces)
{
    nd many[7], long_rows[] = {RANDOM(1, 66000), RANDOM(2, 66000)},
                long_columns[] = {RANDOM(3, 30000), RANDOM(3, 30001)};

    for (int k = 0; k < BASE_COUNT(many); k++)
        many[k] = RANDOM(5, k % 3 * 8 + 1);
    gives("concat", ATTRS(op_attr_int("axis", 1)), many, 7, joined(many, 7, 1), 0);
    gives("concat", NO_ATTRS, long_rows, 2, joined(long_rows, 2, 0), 0);
    gives("concat", ATTRS(op_attr_int("axis", 1)), long_columns, 2, joined(long_columns, 2, 1), 0);
}

Test(shape, concat_with_a_batch_known_when_it_runs)
{
    for (int64_t n = 1; n <= 3; n++) {
        nd columns[] = {symbolic(RANDOM(n, 4)), symbolic(RANDOM(n, 3))},
           rows[] = {symbolic(RANDOM(n, 4)), RANDOM(2, 4), symbolic(RANDOM(n, 4))};

        gives("concat", ATTRS(op_attr_int("axis", 1)), columns, 2, joined(columns, 2, 1), 0);
        gives("concat", NO_ATTRS, rows, 3, joined(rows, 3, 0), 0);
    }
}

Test(shape, concat_refuses_what_does_not_fit)
{
    refuses("operand 1 is f32[2, 4], but the first operand is f32[2, 3]: dimension 1 differs", "concat",
            NO_ATTRS, IN(RANDOM(2, 3), RANDOM(2, 4)));
    refuses("axis 2 does not exist: the operand is f32[2, 3]", "concat", ATTRS(op_attr_int("axis", 2)),
            IN(RANDOM(2, 3)));
    refuses("operand 1 is i32[2, 3], but the first operand is f32[2, 3]", "concat", NO_ATTRS,
            IN(RANDOM(2, 3), random_nd(BASE_I32, SHAPE(2, 3))));
}

/* ---- expand, tile ---- */

Test(shape, expand_broadcasts)
{
    nd x = RANDOM(3, 1), y = new_nd(BASE_F32, SHAPE(2, 3, 5));

    for (int i = 0; i < 30; i++)
        y.v[i] = x.v[i / 5 % 3];
    gives("expand", ATTRS(EXPRS("shape", I(2), I(1), I(5))), IN(x), y, 0);
    infers("f32[n, 3, 1]", "expand", ATTRS(EXPRS("shape", batch, I(3), I(1))), IN(x));
    refuses("operand 1 is f32[2, 1]: dimension 0 does not broadcast with '3'", "expand",
            ATTRS(EXPRS("shape", I(2), I(1))), IN(x));
}

Test(shape, tile_repeats)
{
    nd x = RANDOM(2, 3), y = new_nd(BASE_F32, SHAPE(4, 9));

    for (int i = 0; i < 36; i++)
        y.v[i] = x.v[i / 9 % 2 * 3 + i % 9 % 3];
    gives("tile", ATTRS(INTS("repeats", 2, 3)), IN(x), y, 0);
    gives("tile", ATTRS(INTS("repeats", 0, 3)), IN(x), new_nd(BASE_F32, SHAPE(0, 9)), 0);
    refuses("'repeats' is negative: -1", "tile", ATTRS(INTS("repeats", 1, -1)), IN(x));
}

Test(shape, repeat_puts_each_element_beside_itself)
{
    nd x = RANDOM(3, 8), y = new_nd(BASE_F32, SHAPE(6, 24));

    for (int i = 0; i < 144; i++)
        y.v[i] = x.v[i / 24 / 2 * 8 + i % 24 / 3];
    gives("repeat", ATTRS(INTS("repeats", 2, 3)), IN(x), y, 0);
    gives("repeat", ATTRS(INTS("repeats", 1, 1)), IN(x), x, 0);
    refuses("'repeats' is 0, expected at least 1", "repeat", ATTRS(INTS("repeats", 0, 1)), IN(x));
}

/* ---- gather ---- */

static void check_gather(nd x, nd at, int axis)
{
    int64_t shape[8], index[8], from[8];
    int n = 0;

    for (int i = 0; i < axis; i++)
        shape[n++] = x.shape[i];
    for (int i = 0; i < at.n; i++)
        shape[n++] = at.shape[i];
    for (int i = axis + 1; i < x.n; i++)
        shape[n++] = x.shape[i];
    nd y = new_nd(x.t, n, shape);
    for (int64_t k = 0; k < y.size; k++) {
        unravel(&y, k, index);
        int64_t i = (int64_t)at.v[offset_of(&at, index + axis)];

        for (int d = 0; d < x.n; d++)
            from[d] = d < axis ? index[d] : d == axis ? (i < 0 ? i + x.shape[axis] : i) : index[d - 1 + at.n];
        y.v[k] = x.v[offset_of(&x, from)];
    }
    gives("gather", ATTRS(op_attr_int("axis", axis)), IN(x, at), y, 0);
}

Test(shape, gather_counts_negative_indices_from_the_end)
{
    check_gather(RANDOM(4, 5), random_nd_between(BASE_I64, -4, 3, SHAPE(3)), 0);
    check_gather(RANDOM(4, 5), random_nd_between(BASE_I32, -5, 4, SHAPE(2, 3)), 1);
    check_gather(RANDOM(3, 4, 5), random_nd_between(BASE_I64, -4, 3, SHAPE(17)), 1);
    check_gather(RANDOM(4, 5), random_nd_between(BASE_I64, -4, 3, SCALAR_SHAPE), 0);
    for (int64_t n = 1; n <= 3; n++) {
        check_gather(RANDOM(4, 5), symbolic(random_nd_between(BASE_I64, -4, 3, SHAPE(n))), 0);
        check_gather(symbolic(RANDOM(n, 5)), random_nd_between(BASE_I64, -5, 4, SHAPE(2)), 1);
    }
}

Test(shape, gather_refuses_what_does_not_fit)
{
    refuses("the indices are f32[2], expected integers", "gather", NO_ATTRS, IN(RANDOM(2, 3), RANDOM(2)));
    refuses("axis 2 does not exist: the operand is f32[2, 3]", "gather", ATTRS(op_attr_int("axis", 2)),
            IN(RANDOM(2, 3), random_nd(BASE_I64, SHAPE(2))));
}

/* ---- fill, values ---- */

Test(shape, fill_and_values_need_no_operand)
{
    nd y = random_nd_between(BASE_F32, 3, 3, SHAPE(2, 5)), v = new_nd(BASE_I64, SHAPE(3)),
       b = random_nd_between(BASE_BOOL, 1, 1, SHAPE(4));

    gives("fill",
          ATTRS(EXPRS("shape", I(2), I(5)), op_attr_dtype("dtype", BASE_F32), op_attr_float("value", 3)),
          NO_INPUTS, y, 0);
    gives("fill", ATTRS(EXPRS("shape", I(4)), op_attr_dtype("dtype", BASE_BOOL), op_attr_int("value", 1)),
          NO_INPUTS, b, 0);
    for (int i = 0; i < 3; i++)
        v.v[i] = 10 - i;
    gives("values", ATTRS(EXPRS("values", I(10), I(9), I(8))), NO_INPUTS, v, 0);
    refuses("attributes 'shape' and 'dtype' are missing", "fill", NO_ATTRS, NO_INPUTS);
    refuses("attribute 'values' is missing", "values", NO_ATTRS, NO_INPUTS);
}

Test(shape, infers_types)
{
    infers("f32[n, 12]", "reshape", ATTRS(EXPRS("shape", batch, I(12))), IN(symbolic(RANDOM(2, 3, 4))));
    infers("f32[n * 2, 4]", "concat", NO_ATTRS, IN(symbolic(RANDOM(2, 4)), symbolic(RANDOM(2, 4))));
    infers("f32[4, n]", "transpose", ATTRS(INTS("perm", 1, 0)), IN(symbolic(RANDOM(2, 4))));
}
