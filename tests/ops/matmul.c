/* tests/ops/matmul.c -- matrix products against three nested loops. */
#include "ops/packing.h"
#include "tests/ops/kit.h"

TestSuite(matmul, .init = open_context, .fini = close_context);

static double element(const nd *a, const int64_t *index, int n, int64_t row, int64_t column, bool transposed)
{
    int64_t mine[8];
    int batches = a->n - 2;

    for (int i = 0; i < batches; i++)
        mine[i] = a->shape[i] == 1 ? 0 : index[n - 2 - batches + i];
    mine[batches + transposed] = row;
    mine[batches + !transposed] = column;
    return a->v[offset_of(a, mine)];
}

static nd reference(const nd *a, const nd *b, bool trans_a, bool trans_b)
{
    int n = a->n > b->n ? a->n : b->n;
    int64_t shape[8], depth = a->shape[a->n - 1 - trans_a], index[8];

    for (int i = 0; i < n - 2; i++) {
        int ia = i - (n - a->n), ib = i - (n - b->n);
        int64_t x = ia >= 0 ? a->shape[ia] : 1, y = ib >= 0 ? b->shape[ib] : 1;

        shape[i] = x == 1 ? y : x;
    }
    shape[n - 2] = a->shape[a->n - 2 + trans_a];
    shape[n - 1] = b->shape[b->n - 1 - trans_b];
    nd y = new_nd(a->t, n, shape);
    for (int64_t k = 0; k < y.size; k++) {
        unravel(&y, k, index);
        for (int64_t d = 0; d < depth; d++)
            y.v[k] += element(a, index, n, index[n - 2], d, trans_a) *
                      element(b, index, n, d, index[n - 1], trans_b);
    }
    return y;
}

static void check(nd a, nd b, bool trans_a, bool trans_b)
{
    gives("matmul", ATTRS(op_attr_int("trans_a", trans_a), op_attr_int("trans_b", trans_b)), IN(a, b),
          reference(&a, &b, trans_a, trans_b), 0);
}

#define RANDOM(...) random_nd(BASE_F32, SHAPE(__VA_ARGS__))

Test(matmul, of_odd_sizes)
{
    check(RANDOM(7, 5), RANDOM(5, 9), false, false);
    check(RANDOM(1, 3), RANDOM(3, 1), false, false);
    check(RANDOM(13, 8), RANDOM(8, 33), false, false);
    check(RANDOM(3, 1), RANDOM(1, 70), false, false);
}

Test(matmul, with_transposed_operands)
{
    check(RANDOM(5, 7), RANDOM(5, 9), true, false);
    check(RANDOM(7, 5), RANDOM(9, 5), false, true);
    check(RANDOM(5, 7), RANDOM(9, 5), true, true);
}

Test(matmul, of_one_row)
{
    check(RANDOM(1, 12), RANDOM(12, 150), false, false);
}

Test(matmul, with_batches)
{
    check(RANDOM(2, 3, 4, 5), RANDOM(2, 3, 5, 6), false, false);
    check(RANDOM(2, 1, 4, 5), RANDOM(3, 5, 6), false, false);
    check(RANDOM(4, 5), RANDOM(3, 5, 6), false, false);
    check(RANDOM(3, 4, 5), RANDOM(5, 6), false, false);
    check(RANDOM(3, 5, 4), RANDOM(1, 6, 5), true, true);
}

Test(matmul, of_other_types)
{
    check(random_nd(BASE_F64, SHAPE(5, 7)), random_nd(BASE_F64, SHAPE(7, 11)), false, false);
    check(random_nd(BASE_I32, SHAPE(5, 7)), random_nd(BASE_I32, SHAPE(7, 11)), false, false);
    check(random_nd(BASE_F16, SHAPE(3, 4)), random_nd(BASE_F16, SHAPE(4, 18)), false, false);
    check(random_nd(BASE_F16, SHAPE(9, 5)), random_nd(BASE_F16, SHAPE(5, 18)), false, false);
    check(random_nd(BASE_F16, SHAPE(33, 32)), random_nd(BASE_F16, SHAPE(32, 6)), false, false);
}

/* The number of bits in which the second operand of a product is packed. */
static int packed_bits(const char *machine, base_dtype dtype, int64_t rows, int64_t columns)
{
    const ir_expr *dim[] = {ir_int(cx, 512), ir_int(cx, columns)};
    const op_type type[] = {{dtype, 2, dim}, {dtype, 2, dim}};
    const op_call call = {.cx = cx, .target = target_parse(cx, machine), .input = type, .n_inputs = 2};

    cr_assert(call.target, "%s", tec_context_error(cx));
    return op_packed_dtype(&call, 1, rows).bits;
}

/* Half of the second cache holds `room` columns of 512 floats. */
Test(matmul, packs_as_floats_what_is_converted_often)
{
    const char converts[] = "llvm -mcpu=x86-64-v4", does_not[] = "llvm -mcpu=x86-64-v2";
    int64_t room = target_parse(cx, converts)->l2_bytes / 2 / 4 / 512;

    cr_assert_eq(packed_bits(converts, BASE_F16, 7, room), 16);
    cr_assert_eq(packed_bits(converts, BASE_F16, 8, room), 32);
    cr_assert_eq(packed_bits(converts, BASE_F16, 8, room + 1), 16);
    cr_assert_eq(packed_bits(does_not, BASE_F16, 1, room + 1), 32);
    cr_assert_eq(packed_bits(does_not, BASE_BF16, 1, room + 1), 16);
    cr_assert_eq(packed_bits(converts, BASE_BF16, 7, room), 16);
    cr_assert_eq(packed_bits(converts, BASE_BF16, 8, room), 32);
    cr_assert_eq(packed_bits(converts, BASE_F32, 8, room), 32);
}

/* What is not known counts as often. */
Test(matmul, counts_the_uses_of_an_element)
{
    const ir_expr *dim[] = {ir_int(cx, 3), batch, ir_int(cx, 0), ir_int(cx, INT64_MAX)};
    const op_type type = {BASE_F16, 4, dim};

    cr_assert_eq(op_count_uses(&type, 0, 1), 3);
    cr_assert_eq(op_count_uses(&type, 0, 2), 24);
    cr_assert_eq(op_count_uses(&type, 0, 3), 0);
    cr_assert_eq(op_count_uses(&type, 3, 4), INT64_MAX);
    cr_assert_eq(op_count_uses(&type, 2, 2), 1);
}

#define BF16(...) random_nd(BASE_BF16, SHAPE(__VA_ARGS__))

/* The last k of an odd number has no partner; columns that fill no vector are widened. */
Test(matmul, of_pairs_of_bfloat16)
{
    check(BF16(5, 6), BF16(6, 32), false, false);
    check(BF16(13, 7), BF16(7, 48), false, false);
    check(BF16(3, 1), BF16(1, 16), false, false);
    check(BF16(7, 5), BF16(5, 9), false, false);
    check(BF16(1, 11), BF16(11, 128), false, false);
}

Test(matmul, of_pairs_of_bfloat16_in_other_forms)
{
    check(BF16(6, 7), BF16(6, 16), true, false);
    check(BF16(7, 5), BF16(32, 5), false, true);
    check(BF16(2, 1, 4, 5), BF16(3, 5, 16), false, false);
    check(symbolic(BF16(3, 5)), BF16(5, 32), false, false);
    check(symbolic(BF16(14, 8)), BF16(8, 32), false, false);
    check(symbolic(BF16(2, 4, 6)), symbolic(BF16(2, 6, 16)), false, false);
}

Test(matmul, with_rows_known_when_it_runs)
{
    for (int64_t n = 1; n <= 14; n += n < 3 ? 1 : 5)
        check(symbolic(RANDOM(n, 5)), RANDOM(5, 18), false, false);
}

Test(matmul, with_a_batch_known_when_it_runs)
{
    for (int64_t n = 1; n <= 3; n++)
        check(symbolic(RANDOM(n, 4, 5)), symbolic(RANDOM(n, 5, 6)), false, false);
}

Test(matmul, of_no_rows_gives_nothing)
{
    check(symbolic(RANDOM(0, 5)), RANDOM(5, 18), false, false);
}

Test(matmul, over_nothing_is_zero)
{
    check(RANDOM(3, 0), RANDOM(0, 5), false, false);
}

Test(matmul, infers_types)
{
    infers("f32[n, 4, 6]", "matmul", NO_ATTRS, IN(symbolic(RANDOM(2, 4, 5)), RANDOM(5, 6)));
    infers("f32[7, 9]", "matmul", ATTRS(op_attr_int("trans_a", 1), op_attr_int("trans_b", 1)),
           IN(RANDOM(5, 7), RANDOM(9, 5)));
}

Test(matmul, refuses_what_does_not_fit)
{
    refuses("matmul 'matmul': cannot multiply f32[4, 5] by f32[4, 6]: the inner dimensions differ", "matmul",
            NO_ATTRS, IN(RANDOM(4, 5), RANDOM(4, 6)));
    refuses("matmul 'matmul': the operands are f32[5] and f32[5, 6]: expected matrices", "matmul", NO_ATTRS,
            IN(RANDOM(5), RANDOM(5, 6)));
    refuses("matmul 'matmul': the operands are f32[4, 5] and f64[5, 6]: expected the same numeric type",
            "matmul", NO_ATTRS, IN(RANDOM(4, 5), random_nd(BASE_F64, SHAPE(5, 6))));
    refuses("dimension 0 does not broadcast with '2'", "matmul", NO_ATTRS,
            IN(RANDOM(2, 4, 5), RANDOM(3, 5, 6)));
}
