/* tests/ir/interp/interp.c -- what programs compute: loop trees with their inits, lowered loops, vectors,
 * intrinsics, symbols. */
#include "tests/ir/interp/run.h"

#include <math.h>

#include "ir/eval.h"

TestSuite(interp, .init = open_context, .fini = close_context);

static float in[64], out[64];

static void fill_in(void)
{
    for (int i = 0; i < BASE_COUNT(in); i++) {
        in[i] = (float)(i * 7 % 13 - 5);
        out[i] = -99;
    }
}

/* ---- reductions and their init ---- */

typedef struct {
    const ir_buffer *a, *c;
    const ir_expr *y, *k;
    const ir_block *block;
} row_sums;

/* C[y] = sum over k of A[y, k], with the loops around it left to the test. */
static row_sums rows_of(const ir_expr *height, const ir_expr *width)
{
    row_sums r = {.a = BUFFER("A", BASE_F32, height, width),
                  .c = BUFFER("C", BASE_F32, height),
                  .y = VAR("y"),
                  .k = VAR("k")};
    const ir_combiner *sum = ir_combiner_named(cx, "sum", BASE_F32, BASE_I64);
    const ir_expr *value = LOAD(r.a, r.y, r.k);

    r.block = block_of("C", ITERS(ITER(r.y, height, IR_SPATIAL), ITER(r.k, width, IR_REDUCE_ITER)),
                       STORE(r.c, FLT(0), r.y), ir_update(cx, sum, &r.c, &r.y, 1, &value));
    fill_in();
    return r;
}

static ir_program *sums(row_sums r, const ir_stmt *tree)
{
    ir_program *p = program(tree);

    param(p, r.a, false);
    param(p, r.c, true);
    return p;
}

static float row_sum(int y, int width, int from, int to)
{
    float s = 0;

    for (int k = from; k < to; k++)
        s += in[y * width + k];
    return s;
}

static void check_sums(row_sums r, const ir_stmt *tree)
{
    ir_program *p = sums(r, tree);

    RUNS(p, F32(in, 4, 6), F32(out, 4));
    for (int y = 0; y < 4; y++)
        cr_assert_eq(out[y], row_sum(y, 6, 0, 6), "C[%d] = %g", y, (double)out[y]);
}

Test(interp, a_reduction_in_its_default_tree)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *j = VAR("j");

    check_sums(r, FOR(i, INT(4), IR_SERIAL, FOR(j, INT(6), IR_SERIAL, BLOCK(r.block, NULL, i, j))));
}

Test(interp, the_reduce_loop_outside_initialises_once)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *j = VAR("j");

    check_sums(r, FOR(j, INT(6), IR_SERIAL, FOR(i, INT(4), IR_PARALLEL, BLOCK(r.block, NULL, i, j))));
}

Test(interp, a_split_reduce_loop_around_a_spatial_one)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *jo = VAR("jo"), *ji = VAR("ji");
    const ir_stmt *block = BLOCK(r.block, NULL, i, ADD(MUL(jo, INT(2)), ji));

    check_sums(r, FOR(jo, INT(3), IR_SERIAL, FOR(i, INT(4), IR_SERIAL, FOR(ji, INT(2), IR_UNROLLED, block))));
}

Test(interp, a_loop_fused_of_spatial_and_reduce)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *f = VAR("f");

    check_sums(r, FOR(f, INT(24), IR_SERIAL,
                      BLOCK(r.block, NULL, ir_floordiv(cx, f, INT(6)), ir_floormod(cx, f, INT(6)))));
}

Test(interp, a_predicate_over_both_kinds_guards_the_init_by_its_spatial_part)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    const ir_expr *where = ir_and(cx, LT(j, INT(6)), LT(i, INT(4)));

    check_sums(r, FOR(j, INT(8), IR_SERIAL, FOR(i, INT(5), IR_SERIAL, BLOCK(r.block, where, i, j))));
}

Test(interp, a_masked_first_tap_still_initialises)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    const ir_expr *where = ir_and(cx, ir_le(cx, INT(1), j), LT(j, INT(5)));
    ir_program *p =
        sums(r, FOR(i, INT(4), IR_SERIAL, FOR(j, INT(6), IR_SERIAL, BLOCK(r.block, where, i, j))));

    RUNS(p, F32(in, 4, 6), F32(out, 4));
    for (int y = 0; y < 4; y++)
        cr_assert_eq(out[y], row_sum(y, 6, 1, 5));
}

Test(interp, an_if_around_the_block_counts_like_its_predicate)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    const ir_stmt *block = BLOCK(r.block, NULL, i, j);
    const ir_stmt *guarded = ir_if(cx, ir_and(cx, ir_lt(cx, INT(0), j), LT(i, INT(4))), block, NULL);
    ir_program *p = sums(r, FOR(j, INT(6), IR_SERIAL, FOR(i, INT(5), IR_SERIAL, guarded)));

    RUNS(p, F32(in, 4, 6), F32(out, 4));
    for (int y = 0; y < 4; y++)
        cr_assert_eq(out[y], row_sum(y, 6, 1, 6));
}

Test(interp, an_empty_reduction_initialises)
{
    row_sums r = rows_of(INT(4), INT(0));
    const ir_expr *i = VAR("i"), *j = VAR("j"), *jo = VAR("jo");
    const ir_stmt *inner = FOR(i, INT(4), IR_SERIAL, FOR(j, INT(0), IR_SERIAL, BLOCK(r.block, NULL, i, j)));

    RUNS(sums(r, inner), F32(in, 4, 0), F32(out, 4));
    for (int y = 0; y < 4; y++)
        cr_assert_eq(out[y], 0);
    fill_in();
    RUNS(sums(r, FOR(jo, INT(0), IR_SERIAL, FOR(i, INT(4), IR_SERIAL, BLOCK(r.block, NULL, i, jo)))),
         F32(in, 4, 0), F32(out, 4));
    for (int y = 0; y < 4; y++)
        cr_assert_eq(out[y], 0);
}

Test(interp, an_empty_inner_part_of_a_split_reduction_initialises)
{
    row_sums r = rows_of(INT(4), INT(0));
    const ir_expr *i = VAR("i"), *jo = VAR("jo"), *ji = VAR("ji");
    const ir_stmt *block = BLOCK(r.block, NULL, i, ADD(MUL(jo, INT(4)), ji));

    RUNS(sums(r, FOR(jo, INT(1), IR_SERIAL, FOR(i, INT(4), IR_SERIAL, FOR(ji, INT(0), IR_SERIAL, block)))),
         F32(in, 4, 0), F32(out, 4));
    for (int y = 0; y < 4; y++)
        cr_assert_eq(out[y], 0);
}

/* k was split by 8, and y fused with the outer part: f = y*8 + ko. The condition that a tile begins inside is
 * one on ko = f % 8, a part of what k is bound to. It guards no init. */
Test(interp, a_condition_on_a_part_of_the_reduction_guards_no_init)
{
    row_sums r = rows_of(INT(4), INT(0));
    const ir_expr *f = VAR("f"), *ki = VAR("ki");
    const ir_expr *y = ir_floordiv(cx, f, INT(8)), *ko = ir_floormod(cx, f, INT(8));
    const ir_stmt *block = BLOCK(r.block, LT(MUL(ko, INT(3)), INT(0)), y, ADD(MUL(ko, INT(3)), ki));

    RUNS(sums(r, FOR(f, INT(32), IR_SERIAL, FOR(ki, INT(0), IR_SERIAL, block))), F32(in, 4, 0), F32(out, 4));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(out[i], 0);
}

Test(interp, a_reduction_cut_in_two_initialises_in_its_first_part)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *j = VAR("j"), *i2 = VAR("i2"), *j2 = VAR("j2");
    const ir_stmt *first = FOR(j, INT(2), IR_SERIAL, FOR(i, INT(4), IR_SERIAL, BLOCK(r.block, NULL, i, j)));
    const ir_stmt *second =
        FOR(j2, INT(4), IR_SERIAL, FOR(i2, INT(4), IR_SERIAL, BLOCK(r.block, NULL, i2, ADD(j2, INT(2)))));

    check_sums(r, SEQ(first, second));
}

Test(interp, a_reduction_cut_in_two_can_run_again)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *again = VAR("again"), *i = VAR("i"), *j = VAR("j"), *i2 = VAR("i2"), *j2 = VAR("j2");
    const ir_stmt *first = FOR(j, INT(2), IR_SERIAL, FOR(i, INT(4), IR_SERIAL, BLOCK(r.block, NULL, i, j)));
    const ir_stmt *second =
        FOR(j2, INT(4), IR_SERIAL, FOR(i2, INT(4), IR_SERIAL, BLOCK(r.block, NULL, i2, ADD(j2, INT(2)))));

    check_sums(r, FOR(again, INT(2), IR_SERIAL, SEQ(first, second)));
}

Test(interp, a_reduction_without_loops_of_its_own_initialises_in_place)
{
    row_sums r = rows_of(INT(4), INT(1));
    const ir_expr *i = VAR("i");
    ir_program *p = sums(r, FOR(i, INT(4), IR_SERIAL, BLOCK(r.block, NULL, i, INT(0))));

    RUNS(p, F32(in, 4, 1), F32(out, 4));
    for (int y = 0; y < 4; y++)
        cr_assert_eq(out[y], in[y]);
}

Test(interp, a_recomputed_reduction_initialises_again)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *again = VAR("again"), *i = VAR("i"), *j = VAR("j");

    check_sums(r, FOR(again, INT(3), IR_SERIAL,
                      FOR(i, INT(4), IR_SERIAL, FOR(j, INT(6), IR_SERIAL, BLOCK(r.block, NULL, i, j)))));
}

Test(interp, lets_on_the_way_to_the_block_are_seen_through)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *j = VAR("j"), *row = VAR("row"), *tap = VAR("tap");
    const ir_stmt *block = ir_let_stmt(cx, row, ir_sub(cx, INT(3), i),
                                       ir_let_stmt(cx, tap, ADD(j, INT(0)), BLOCK(r.block, NULL, row, tap)));

    check_sums(r, FOR(j, INT(6), IR_SERIAL, FOR(i, INT(4), IR_SERIAL, block)));
}

Test(interp, a_triangular_nest_initialises_every_row)
{
    row_sums r = rows_of(INT(4), INT(4));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    ir_program *p =
        sums(r, FOR(j, INT(4), IR_SERIAL, FOR(i, ADD(j, INT(1)), IR_SERIAL, BLOCK(r.block, NULL, i, j))));

    RUNS(p, F32(in, 4, 4), F32(out, 4));
    for (int y = 0; y < 4; y++)
        cr_assert_eq(out[y], row_sum(y, 4, y, 4));
}

Test(interp, a_reduction_nested_in_a_block_of_its_own)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *jo = VAR("jo"), *ji = VAR("ji"), *oy = VAR("oy"), *ok = VAR("ok");
    const ir_stmt *inner = FOR(ji, INT(3), IR_SERIAL, BLOCK(r.block, NULL, oy, ADD(MUL(ok, INT(3)), ji)));
    const ir_block *outer =
        block_of("C.o", ITERS(ITER(oy, INT(4), IR_SPATIAL), ITER(ok, INT(2), IR_REDUCE_ITER)), NULL, inner);

    check_sums(r, FOR(jo, INT(2), IR_SERIAL, FOR(i, INT(4), IR_SERIAL, BLOCK(outer, NULL, i, jo))));
}

/* ---- combiners ---- */

Test(interp, argmax_keeps_value_and_index_together)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(3), INT(5)), *v = BUFFER("V", BASE_F32, INT(3)),
                    *w = BUFFER("I", BASE_I64, INT(3));
    const ir_expr *y = VAR("y"), *k = VAR("k"), *i = VAR("i"), *j = VAR("j");
    const ir_combiner *argmax = ir_combiner_named(cx, "argmax", BASE_F32, BASE_I64);
    const ir_stmt *init = SEQ(STORE(v, argmax->identity[0], y), STORE(w, argmax->identity[1], y));
    const ir_stmt *step =
        ir_update(cx, argmax, (const ir_buffer *[]){v, w}, &y, 1, (const ir_expr *[]){LOAD(a, y, k), k});
    const ir_block *b =
        block_of("V", ITERS(ITER(y, INT(3), IR_SPATIAL), ITER(k, INT(5), IR_REDUCE_ITER)), init, step);
    ir_program *p = program(FOR(j, INT(5), IR_SERIAL, FOR(i, INT(3), IR_SERIAL, BLOCK(b, NULL, i, j))));
    float values[15] = {1, 9, 3, 9, 2, /**/ -5, -4, -3, -2, -1, /**/ 7, 7, 7, 7, 7};
    int64_t index[3] = {-1, -1, -1};

    param(p, a, false);
    param(p, v, true);
    param(p, w, true);
    RUNS(p, F32(values, 3, 5), F32(out, 3), ARRAY(BASE_I64, index, 3));
    cr_assert(out[0] == 9 && out[1] == -1 && out[2] == 7);
    cr_assert(index[0] == 1 && index[1] == 4 && index[2] == 0, "%ld %ld %ld", (long)index[0], (long)index[1],
              (long)index[2]);
}

Test(interp, a_tuple_loads_all_before_it_stores_any)
{
    const ir_buffer *f = BUFFER("F", BASE_I64, INT(1)), *g = BUFFER("G", BASE_I64, INT(1));
    const ir_expr *x0 = VAR("x0"), *x1 = VAR("x1"), *y0 = VAR("y0"), *y1 = VAR("y1"), *i = VAR("i"),
                  *zero = INT(0);
    /* Fibonacci: (x0, x1) with anything is (x1, x0 + x1). */
    const ir_combiner *fib =
        ir_combiner_new(cx, "fib", 2, (const ir_expr *[]){x0, x1}, (const ir_expr *[]){y0, y1},
                        (const ir_expr *[]){x1, ADD(x0, x1)}, (const ir_expr *[]){INT(0), INT(1)}, false);
    const ir_stmt *step =
        ir_update(cx, fib, (const ir_buffer *[]){f, g}, &zero, 1, (const ir_expr *[]){i, i});
    ir_program *p =
        program(SEQ(STORE(f, INT(0), zero), SEQ(STORE(g, INT(1), zero), FOR(i, INT(10), IR_SERIAL, step))));
    int64_t a = -1, b = -1;

    param(p, f, true);
    param(p, g, true);
    RUNS(p, ARRAY(BASE_I64, &a, 1), ARRAY(BASE_I64, &b, 1));
    cr_assert(a == 55 && b == 89, "%ld %ld", (long)a, (long)b);
}

/* ---- lowered loops ---- */

Test(interp, flattened_accesses_count_from_the_address)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(4), INT(4)), *c = BUFFER("C", BASE_F32, INT(4), INT(4));
    const ir_expr *i = VAR("i"), *j = VAR("j"), *from = ADD(MUL(j, INT(4)), i), *to = ADD(MUL(i, INT(4)), j);
    const ir_stmt *store = ir_store(cx, c, ir_load(cx, a, &from, 1), &to, 1);
    ir_program *p = program(FOR(i, INT(4), IR_SERIAL, FOR(j, INT(4), IR_UNROLLED, store)));

    param(p, a, false);
    param(p, c, true);
    fill_in();
    RUNS(p, F32(in, 4, 4), F32(out, 4, 4));
    cr_assert_eq(out[6], in[9]);
}

Test(interp, vectors_with_masks_touch_nothing_beyond_them)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(6)), *c = BUFFER("C", BASE_F32, INT(6));
    const ir_expr *i = VAR("i"), *at = ir_ramp(cx, MUL(i, INT(4)), INT(1), 4);
    const ir_expr *mask = LT(at, ir_broadcast(cx, INT(6), 4)), *v = ir_load_masked(cx, a, &at, 1, mask);
    ir_program *p = program(FOR(i, INT(2), IR_SERIAL, ir_store_masked(cx, c, ADD(v, v), &at, 1, mask)));

    param(p, a, false);
    param(p, c, true);
    fill_in();
    RUNS(p, F32(in, 6), F32(out, 6));
    for (int k = 0; k < 6; k++)
        cr_assert_eq(out[k], 2 * in[k]);
    cr_assert_eq(out[6], -99);
}

Test(interp, a_masked_off_lane_loads_zero)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(2)), *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *at = ir_ramp(cx, INT(0), INT(1), 4), *mask = LT(at, ir_broadcast(cx, INT(2), 4));
    ir_program *p = program(ir_store(cx, c, ir_load_masked(cx, a, &at, 1, mask), &at, 1));

    param(p, a, false);
    param(p, c, true);
    fill_in();
    RUNS(p, F32(in, 2), F32(out, 4));
    cr_assert(out[0] == in[0] && out[1] == in[1] && out[2] == 0 && out[3] == 0);
}

Test(interp, a_vector_store_reads_all_lanes_first)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(8));
    const ir_expr *from = ir_ramp(cx, INT(0), INT(1), 4), *to = ir_ramp(cx, INT(1), INT(1), 4);
    ir_program *p = program(ir_store(cx, a, ir_load(cx, a, &from, 1), &to, 1));

    param(p, a, false);
    fill_in();
    RUNS(p, F32(in, 8));
    cr_assert(in[1] == -5 && in[2] == 2 && in[3] == -4 && in[4] == 3);
}

Test(interp, shuffles_pick_lanes_of_the_concatenation)
{
    const ir_buffer *c = BUFFER("C", BASE_I64, INT(4));
    const ir_expr *a = ir_ramp(cx, INT(10), INT(1), 2), *b = ir_ramp(cx, INT(20), INT(1), 3),
                  *at = ir_ramp(cx, INT(0), INT(1), 4);
    const ir_expr *v = ir_shuffle(cx, (const ir_expr *[]){a, b}, 2, (int[]){4, 0, 2, 1}, 4);
    int64_t values[4];
    ir_program *p = program(ir_store(cx, c, v, &at, 1));

    param(p, c, true);
    RUNS(p, ARRAY(BASE_I64, values, 4));
    cr_assert(values[0] == 22 && values[1] == 10 && values[2] == 20 && values[3] == 11);
}

Test(interp, selection_is_lazy_in_every_lane)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(3)), *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *at = ir_ramp(cx, INT(0), INT(1), 4), *inside = LT(at, ir_broadcast(cx, INT(3), 4));
    const ir_expr *x = ir_var(cx, "x", base_dtype_lanes(BASE_F32, 4)), *zero = ir_broadcast(cx, FLT(0), 4);
    const ir_expr *v = ir_let(cx, x, ir_load(cx, a, &at, 1), ir_select(cx, inside, ADD(x, x), zero));
    ir_program *p = program(ir_store(cx, c, v, &at, 1));

    param(p, a, false);
    param(p, c, true);
    fill_in();
    RUNS(p, F32(in, 3), F32(out, 4));
    cr_assert(out[0] == 2 * in[0] && out[2] == 2 * in[2] && out[3] == 0);
}

Test(interp, and_guards_what_stands_behind_it)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(3)), *c = BUFFER("C", BASE_BOOL, INT(4));
    const ir_expr *i = VAR("i"), *test = ir_lt(cx, LOAD(a, i), FLT(100));
    uint8_t values[4];
    ir_program *p = program(FOR(i, INT(4), IR_SERIAL, STORE(c, ir_and(cx, LT(i, INT(3)), test), i))), *q;

    param(p, a, false);
    param(p, c, true);
    RUNS(p, F32(in, 3), ARRAY(BASE_BOOL, values, 4));
    cr_assert(values[0] && values[2] && !values[3]);
    q = program(FOR(i, INT(4), IR_SERIAL, STORE(c, ir_or(cx, ir_le(cx, INT(3), i), test), i)));
    q->params = p->params;
    q->n_params = 2;
    RUNS(q, F32(in, 3), ARRAY(BASE_BOOL, values, 4));
    cr_assert(values[0] && values[3]);
}

Test(interp, strides_offsets_and_small_types)
{
    ir_buffer *a = ir_buffer_copy(cx, BUFFER("A", BASE_F16, INT(2), INT(3)));
    const ir_buffer *c = BUFFER("C", BASE_BF16, INT(2), INT(3));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    uint16_t values[16] = {0}, result[6] = {0};
    ir_program *p;

    a->strides = base_copy(cx, (const ir_expr *[]){INT(8), INT(2)}, 2 * sizeof(ir_expr *));
    a->offset = INT(1);
    p = program(FOR(i, INT(2), IR_SERIAL,
                    FOR(j, INT(3), IR_SERIAL, STORE(c, ir_cast(cx, BASE_BF16, LOAD(a, i, j)), i, j))));
    param(p, a, false);
    param(p, c, true);
    for (int k = 0; k < 16; k++)
        values[k] = base_float_to_half((float)k);
    RUNS(p, ARRAY(BASE_F16, values, 2, 3), ARRAY(BASE_BF16, result, 2, 3));
    for (int k = 0; k < 6; k++)
        cr_assert_eq(base_bfloat_to_float(result[k]), (float)(1 + k / 3 * 8 + k % 3 * 2));
}

Test(interp, reinterpretation_regroups_lanes)
{
    const ir_buffer *c = BUFFER("C", BASE_U32, INT(1));
    const ir_expr *bytes = ir_ramp(cx, ir_imm_int(cx, BASE_U8, 1), ir_imm_int(cx, BASE_U8, 1), 4);
    uint32_t value = 0;
    ir_program *p = program(STORE(c, ir_reinterpret(cx, BASE_U32, bytes), INT(0)));

    param(p, c, true);
    RUNS(p, ARRAY(BASE_U32, &value, 1));
    cr_assert_eq(value, 0x04030201u);
}

Test(interp, statements_let_and_scalars)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(2));
    const ir_expr *s = ir_var(cx, "s", BASE_F32), *n = ir_var(cx, "n", BASE_I32),
                  *t = ir_var(cx, "t", BASE_F32), *i = VAR("i");
    const ir_stmt *body = FOR(i, INT(2), IR_SERIAL, STORE(c, ADD(t, ir_cast(cx, BASE_F32, n)), i));
    ir_program *p = program(ir_let_stmt(cx, t, MUL(s, FLT(2)), body));

    scalar(p, s);
    scalar(p, n);
    param(p, c, true);
    RUNS(p, {.scalar_float = 1.5}, {.scalar_int = 4}, F32(out, 2));
    cr_assert_eq(out[1], 7);
}

/* ---- symbols ---- */

Test(interp, symbols_come_from_shapes_or_from_the_caller)
{
    const ir_expr *n = VAR("n"), *m = VAR("m"), *i = VAR("i");
    const ir_buffer *a = BUFFER("A", BASE_F32, n), *c = BUFFER("C", BASE_F32, ADD(n, m));
    const ir_stmt *store = STORE(c, ir_select(cx, LT(i, n), LOAD(a, i), FLT(0)), i);
    ir_program *p = program(FOR(i, ADD(n, m), IR_SERIAL, store));
    const char *const names[] = {"m"};
    const int64_t values[] = {3};
    ir_run run = {.args = (ir_arg[]){F32(in, 5), F32(out, 8)},
                  .symbol_name = names,
                  .symbol_value = values,
                  .n_symbols = 1};

    symbol(p, n);
    symbol(p, m);
    param(p, a, false);
    param(p, c, true);
    fill_in();
    cr_assert(ir_interpret(cx, p, &run), "%s", tec_context_error(cx));
    cr_assert(out[4] == in[4] && out[7] == 0 && out[8] == -99);
}

Test(interp, one_argument_under_two_names_of_one_alias_class)
{
    ir_buffer *a = ir_buffer_copy(cx, BUFFER("A", BASE_F32, INT(8))),
              *c = ir_buffer_copy(cx, BUFFER("C", BASE_F32, INT(8)));
    const ir_expr *i = VAR("i");
    ir_program *p;

    a->alias = c->alias = 1;
    p = program(FOR(i, INT(8), IR_PARALLEL, STORE(c, ADD(LOAD(a, i), FLT(1)), i)));
    param(p, a, false);
    param(p, c, true);
    fill_in();
    RUNS(p, F32(in, 8), F32(in, 8));
    cr_assert_eq(in[0], -4);
    p = program(FOR(i, INT(7), IR_PARALLEL, STORE(c, LOAD(a, ADD(i, INT(1))), i)));
    param(p, a, false);
    param(p, c, false);
    FAILS("race: this iteration of the parallel loop 'i' writes 'C'[1], which another iteration read (i = 1)",
          p, F32(in, 8), F32(in, 8));
}

/* ---- intrinsics ---- */

/* dot4(c, a, b, scale): c[0] += scale * sum of a[i] * b[i] */
static const ir_intrinsic *dot4(void)
{
    const ir_buffer *c = BUFFER("c", BASE_F32, INT(1)), *a = BUFFER("a", BASE_F32, INT(4)),
                    *b = BUFFER("b", BASE_F32, INT(4));
    const ir_expr *i = VAR("i"), *scale = ir_var(cx, "scale", BASE_F32), *zero = INT(0);
    const ir_stmt *step = STORE(c, ADD(LOAD(c, zero), MUL(scale, MUL(LOAD(a, i), LOAD(b, i)))), zero);
    ir_program *p = program(FOR(i, INT(4), IR_SERIAL, step));
    ir_intrinsic *in4 = base_new(cx, ir_intrinsic);

    p->name = "dot4";
    param(p, c, true);
    param(p, a, false);
    param(p, b, false);
    scalar(p, scale);
    *in4 = (ir_intrinsic){.name = "dot4", .meaning = p};
    return in4;
}

static ir_program *calling_dot4(const ir_expr *offset)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(8)), *c = BUFFER("C", BASE_F32, INT(2));
    const ir_expr *i = VAR("i");
    const ir_expr *args[] = {i, MUL(i, INT(4)), offset, FLT(2)};
    const ir_stmt *call = ir_evaluate(
        cx, ir_call(cx, BASE_I32, "dot4", dot4(), args, 4, (const ir_buffer *[]){c, a, a}, 3, false));
    ir_program *p = program(FOR(i, INT(2), IR_SERIAL, SEQ(STORE(c, FLT(1), i), call)));

    param(p, a, false);
    param(p, c, true);
    fill_in();
    return p;
}

Test(interp, an_intrinsic_is_run_by_its_meaning)
{
    RUNS(calling_dot4(INT(4)), F32(in, 8), F32(out, 2));
    for (int i = 0; i < 2; i++)
        cr_assert_eq(out[i], 1 + 2 * (in[i * 4] * in[4] + in[i * 4 + 1] * in[5] + in[i * 4 + 2] * in[6] +
                                      in[i * 4 + 3] * in[7]));
}

Test(interp, an_operands_offset_counts_behind_that_of_its_buffer)
{
    ir_buffer *a = ir_buffer_copy(cx, BUFFER("A", BASE_F32, INT(8)));
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(1));
    const ir_expr *args[] = {INT(0), INT(0), INT(4), FLT(1)};
    const ir_stmt *call = ir_evaluate(
        cx, ir_call(cx, BASE_I32, "dot4", dot4(), args, 4, (const ir_buffer *[]){c, a, a}, 3, false));
    ir_program *p = program(SEQ(STORE(c, FLT(0), INT(0)), call));

    a->offset = INT(3);
    param(p, a, false);
    param(p, c, true);
    fill_in();
    RUNS(p, F32(in, 8), F32(out, 1));
    cr_assert_eq(out[0], in[3] * in[7] + in[4] * in[8] + in[5] * in[9] + in[6] * in[10]);
}

Test(interp, a_call_must_fit_its_meaning)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(8)), *h = BUFFER("H", BASE_F16, INT(8));
    const ir_expr *args[] = {INT(0), INT(0), INT(0), FLT(1), FLT(1)},
                  *wrong[] = {INT(0), INT(0), INT(0), INT(1)};
    const ir_stmt *many = ir_evaluate(
        cx, ir_call(cx, BASE_I32, "dot4", dot4(), args, 5, (const ir_buffer *[]){a, a, a}, 3, false));
    const ir_stmt *type = ir_evaluate(
        cx, ir_call(cx, BASE_I32, "dot4", dot4(), args, 4, (const ir_buffer *[]){a, h, a}, 3, false));
    const ir_stmt *kind = ir_evaluate(
        cx, ir_call(cx, BASE_I32, "dot4", dot4(), wrong, 4, (const ir_buffer *[]){a, a, a}, 3, false));
    ir_program *p = program(many);

    param(p, a, false);
    param(p, h, false);
    FAILS("'dot4' is called with 3 buffers and 5 arguments, its meaning has 3 buffers among 4 parameters", p,
          F32(in, 8), ARRAY(BASE_F16, out, 8));
    tec_context_clear(cx);
    p->body = type;
    FAILS("'dot4' takes elements of type f32 as 'a', 'H' has f16", p, F32(in, 8), ARRAY(BASE_F16, out, 8));
    tec_context_clear(cx);
    p->body = kind;
    FAILS("'dot4' is called with i64 for 'scale': expected f32", p, F32(in, 8), ARRAY(BASE_F16, out, 8));
}

Test(interp, a_meaning_takes_its_buffers_first)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(1)), *c = BUFFER("c", BASE_F32, INT(1));
    const ir_expr *x = ir_var(cx, "x", BASE_F32), *zero = INT(0), *args[] = {zero, FLT(1)};
    ir_program *set = program(STORE(c, x, zero)), *p;
    ir_intrinsic *what = base_new(cx, ir_intrinsic);

    scalar(set, x);
    param(set, c, true);
    *what = (ir_intrinsic){.name = "set", .meaning = set};
    p = program(ir_evaluate(cx, ir_call(cx, BASE_I32, "set", what, args, 2, &a, 1, false)));
    param(p, a, true);
    FAILS("the meaning of 'set' has the buffer 'c' behind a scalar; buffers come first", p, F32(out, 1));
}

Test(interp, an_intrinsic_must_stay_inside_its_operands)
{
    FAILS("intrinsic 'dot4': read of 'b'[3] lies outside the memory that the operand was given",
          calling_dot4(INT(5)), F32(in, 8), F32(out, 2));
}

/* tail(c, n): c[0..n] = 1, of the elements from 4 on. */
static ir_program *calling_tail(const ir_expr *n)
{
    const ir_expr *m = VAR("m"), *i = VAR("i"), *args[] = {INT(4), n};
    const ir_buffer *c = BUFFER("c", BASE_F32, m), *a = BUFFER("A", BASE_F32, INT(2));
    ir_program *tail = program(FOR(i, m, IR_SERIAL, STORE(c, FLT(1), i))), *p;
    ir_intrinsic *what = base_new(cx, ir_intrinsic);

    param(tail, c, true);
    scalar(tail, m);
    *what = (ir_intrinsic){.name = "tail", .meaning = tail};
    p = program(SEQ(FOR(i, INT(2), IR_SERIAL, STORE(a, FLT(3), i)),
                    ir_evaluate(cx, ir_call(cx, BASE_I32, "tail", what, args, 2, &a, 1, false))));
    param(p, a, true);
    return p;
}

Test(interp, an_operand_without_elements_may_begin_anywhere)
{
    RUNS(calling_tail(INT(0)), F32(out, 2));
    cr_assert(out[0] == 3 && out[1] == 3);
    FAILS("'tail' is called with 'A' from element 4 on, of 2 elements", calling_tail(INT(1)), F32(out, 2));
}

Test(interp, an_intrinsic_may_give_a_value)
{
    const ir_expr *x = ir_var(cx, "x", BASE_F32), *zero = INT(0), *i = VAR("i");
    const ir_buffer *r = BUFFER("r", BASE_F32, INT(1)), *c = BUFFER("C", BASE_F32, INT(3));
    ir_program *square = program(STORE(r, MUL(x, x), zero)), *p;
    ir_intrinsic *what = base_new(cx, ir_intrinsic);
    const ir_expr *inner, *outer, *arg = ir_cast(cx, BASE_F32, i);

    scalar(square, x);
    param(square, r, true);
    *what = (ir_intrinsic){.name = "square", .meaning = square};
    inner = ir_call(cx, BASE_F32, "square", what, &arg, 1, NULL, 0, true);
    outer = ir_call(cx, BASE_F32, "square", what, &inner, 1, NULL, 0, true);
    p = program(FOR(i, INT(3), IR_SERIAL, STORE(c, ADD(inner, outer), i)));
    param(p, c, true);
    RUNS(p, F32(out, 3));
    cr_assert(out[0] == 0 && out[1] == 2 && out[2] == 20);
}

Test(interp, what_follows_a_call_is_not_blamed_on_it)
{
    const ir_buffer *r = BUFFER("r", BASE_F32, INT(1)), *c = BUFFER("C", BASE_F32, INT(3));
    const ir_expr *zero = INT(0), *i = VAR("i"), *call;
    ir_program *one = program(STORE(r, FLT(1), zero)), *p;
    ir_intrinsic *what = base_new(cx, ir_intrinsic);

    param(one, r, true);
    *what = (ir_intrinsic){.name = "one", .meaning = one};
    call = ir_call(cx, BASE_F32, "one", what, NULL, 0, NULL, 0, true);
    p = program(FOR(i, INT(4), IR_SERIAL, STORE(c, call, i)));
    param(p, c, true);
    FAILS("error: write of 'C' out of bounds: index 0 is 3, extent is 3 (i = 3)", p, F32(out, 3));
}

Test(interp, a_meaning_that_calls_itself_is_refused)
{
    ir_intrinsic *what = base_new(cx, ir_intrinsic);
    ir_program *p;

    *what = (ir_intrinsic){.name = "loop"};
    p = program(ir_evaluate(cx, ir_call(cx, BASE_I32, "loop", what, NULL, 0, NULL, 0, false)));
    what->meaning = p;
    FAILS("error: the meaning of 'loop' calls itself", p, {0});
}

Test(interp, shared_arguments_of_calls_are_built_once)
{
    const ir_buffer *r = BUFFER("r", BASE_F32, INT(1)), *c = BUFFER("C", BASE_F32, INT(1));
    const ir_expr *x = ir_var(cx, "x", BASE_F32), *y = ir_var(cx, "y", BASE_F32), *zero = INT(0), *e = FLT(1);
    ir_program *first = program(STORE(r, x, zero)), *p;
    ir_intrinsic *what = base_new(cx, ir_intrinsic);

    scalar(first, x);
    scalar(first, y);
    param(first, r, true);
    *what = (ir_intrinsic){.name = "first", .meaning = first};
    for (int n = 0; n < 60; n++)
        e = ir_call(cx, BASE_F32, "first", what, (const ir_expr *[]){e, e}, 2, NULL, 0, true);
    p = program(STORE(c, e, zero));
    param(p, c, true);
    FAILS("the program ran for more than 10000000000 steps", p, F32(out, 1));
}

/* ---- what a run costs ---- */

Test(interp, the_callers_arena_does_not_grow)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    ir_program *p = sums(r, FOR(i, INT(4), IR_SERIAL, FOR(j, INT(6), IR_SERIAL, BLOCK(r.block, NULL, i, j))));
    size_t before = base_used(cx);

    for (int n = 0; n < 100; n++)
        RUNS(p, F32(in, 4, 6), F32(out, 4));
    cr_assert_eq(base_used(cx), before);
}

Test(interp, any_order_of_parallel_iterations_gives_the_same)
{
    row_sums r = rows_of(INT(4), INT(6));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    ir_program *p =
        sums(r, FOR(i, INT(4), IR_PARALLEL, FOR(j, INT(6), IR_SERIAL, BLOCK(r.block, NULL, i, j))));

    for (int seed = 1; seed < 20; seed++) {
        fill_in();
        cr_assert(
            ir_interpret(cx, p,
                         &(ir_run){.args = (ir_arg[]){F32(in, 4, 6), F32(out, 4)}, .parallel_seed = seed}),
            "seed %d: %s", seed, tec_context_error(cx));
        for (int y = 0; y < 4; y++)
            cr_assert_eq(out[y], row_sum(y, 6, 0, 6), "seed %d", seed);
    }
}

Test(interp, a_seed_changes_the_order_of_parallel_iterations)
{
    const ir_buffer *c = BUFFER("C", BASE_I64, INT(1));
    const ir_expr *i = VAR("i");
    ir_program *p = program(FOR(i, INT(10), IR_PARALLEL, STORE(c, i, INT(0))));
    bool last[10] = {0};
    int64_t value;
    int different = 0;

    param(p, c, true);
    for (int seed = 0; seed < 20; seed++) {
        cr_assert(ir_interpret(cx, p,
                               &(ir_run){.args = (ir_arg[]){ARRAY(BASE_I64, &value, 1)},
                                         .parallel_seed = seed,
                                         .unchecked_races = true}));
        different += !last[value];
        last[value] = true;
    }
    cr_assert(last[9] && different > 3, "%d", different);
}

/* ---- closed expressions ---- */

Test(interp, closed_expressions_evaluate_without_a_program)
{
    const ir_expr *n = VAR("n"), *x = VAR("x"),
                  *e = ir_let(cx, x, ADD(n, INT(1)), MUL(x, ir_let(cx, x, INT(2), x)));
    const ir_buffer *a = BUFFER("A", BASE_I64, INT(1));
    ir_value value = {.i = 20}, got = {0};
    base_map vars = {0};

    base_map_put(cx, &vars, n, &value);
    cr_assert(ir_eval(cx, e, &vars, &got) && got.i == 42);
    cr_assert_not(ir_eval(cx, e, NULL, &got), "an unknown variable");
    cr_assert_not(ir_eval(cx, LOAD(a, INT(0)), &vars, &got), "a load");
    cr_assert_not(ir_eval(cx, ir_floordiv(cx, n, ir_sub(cx, n, n)), &vars, &got), "a zero divisor");
    cr_assert(
        ir_eval(cx, ir_select(cx, ir_lt(cx, n, INT(5)), ir_floordiv(cx, n, INT(0)), INT(7)), &vars, &got) &&
        got.i == 7);
    cr_assert_not(base_failed(cx));
}
