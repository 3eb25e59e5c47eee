/* tests/ir/interp/check.c -- each kind of violation, provoked once, with the message that it must give. */
#include "tests/ir/interp/run.h"

TestSuite(interp_check, .init = open_context, .fini = close_context);

static float in[128], out[128];

static const ir_program *copying(const ir_expr *from, const ir_expr *i, const ir_expr *n, ir_how how,
                                 const ir_expr *to)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(16)), *c = BUFFER("C", BASE_F32, INT(16));
    ir_program *p = program(FOR(i, n, how, STORE(c, LOAD(a, from), to)));

    param(p, a, false);
    param(p, c, true);
    return p;
}

/* ---- bounds ---- */

Test(interp_check, names_buffer_index_and_loops_of_a_read_out_of_bounds)
{
    const ir_expr *i = VAR("i");

    FAILS("error: read of 'A' out of bounds: index 0 is 16, extent is 16 (i = 13)",
          copying(ADD(i, INT(3)), i, INT(16), IR_SERIAL, i), F32(in, 16), F32(out, 16));
}

Test(interp_check, names_a_write_out_of_bounds)
{
    const ir_expr *i = VAR("i");

    FAILS("error: write of 'C' out of bounds: index 0 is -1, extent is 16 (i = 0)",
          copying(i, i, INT(16), IR_SERIAL, ir_sub(cx, i, INT(1))), F32(in, 16), F32(out, 16));
}

Test(interp_check, what_lanes_compute_that_are_not_stored_must_exist)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(16)), *c = BUFFER("C", BASE_F32, INT(16));
    const ir_expr *at = ir_ramp(cx, INT(0), INT(1), 4), *none = LT(at, ir_broadcast(cx, INT(0), 4));
    ir_program *p = program(ir_store_masked(cx, c, ir_broadcast(cx, LOAD(a, INT(16)), 4), &at, 1, none));

    param(p, a, false);
    param(p, c, true);
    FAILS("error: read of 'A' out of bounds: index 0 is 16, extent is 16", p, F32(in, 16), F32(out, 16));
}

Test(interp_check, names_the_stage_and_its_iteration_variables)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(4), INT(16)), *c = BUFFER("C", BASE_F32, INT(4), INT(18));
    const ir_expr *y = VAR("y"), *k = VAR("k"), *yo = VAR("yo"), *ko = VAR("ko");
    const ir_block *b = block_of("C", ITERS(ITER(y, INT(4), IR_SPATIAL), ITER(k, INT(18), IR_SPATIAL)), NULL,
                                 STORE(c, LOAD(a, y, k), y, k));
    ir_program *p = program(FOR(yo, INT(4), IR_SERIAL, FOR(ko, INT(18), IR_SERIAL, BLOCK(b, NULL, yo, ko))));

    param(p, a, false);
    param(p, c, true);
    FAILS("error: stage 'C': read of 'A' out of bounds: index 1 is 16, extent is 16 (y = 0, k = 16)", p,
          F32(in, 4, 16), F32(out, 4, 18));
    cr_assert(strstr(tec_context_error(cx), "the loops around it are at yo = 0, ko = 16"), "%s",
              tec_context_error(cx));
}

Test(interp_check, a_flat_index_is_held_against_the_whole_buffer)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(4), INT(4)), *c = BUFFER("C", BASE_F32, INT(17));
    const ir_expr *i = VAR("i");
    ir_program *p = program(FOR(i, INT(17), IR_SERIAL, STORE(c, ir_load(cx, a, &i, 1), i)));

    param(p, a, false);
    param(p, c, true);
    FAILS("read of 'A' out of bounds: flat index 0 is 16, extent is 16 (i = 16)", p, F32(in, 4, 4),
          F32(out, 17));
}

Test(interp_check, an_iteration_variable_stays_inside_its_domain)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(16));
    const ir_expr *y = VAR("y"), *i = VAR("i");
    const ir_block *b = block_of("S", ITERS(ITER(y, INT(8), IR_SPATIAL)), NULL, STORE(c, FLT(1), y));
    ir_program *p = program(FOR(i, INT(16), IR_SERIAL, BLOCK(b, NULL, i)));

    param(p, c, true);
    FAILS("iteration variable 'y' of block 'S' is 8, its extent is 8 (i = 8)", p, F32(out, 16));
}

/* ---- what was never written ---- */

Test(interp_check, a_read_of_what_nothing_wrote)
{
    const ir_buffer *t = BUFFER("T", BASE_F32, INT(4)), *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    const ir_stmt *fill = FOR(i, INT(3), IR_SERIAL, STORE(t, FLT(1), i)),
                  *use = FOR(j, INT(4), IR_SERIAL, STORE(c, LOAD(t, j), j));
    ir_program *p = program(ir_allocate(cx, t, SEQ(fill, use)));

    param(p, c, true);
    FAILS("error: read of 'T'[3], which nothing has written (j = 3)", p, F32(out, 4));
}

Test(interp_check, an_output_that_is_not_written_in_full)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(2), INT(3));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    ir_program *p = program(
        FOR(i, INT(2), IR_SERIAL,
            FOR(j, INT(3), IR_SERIAL, ir_if(cx, LT(ADD(i, j), INT(3)), STORE(c, FLT(1), i, j), NULL))));

    param(p, c, true);
    FAILS("error: output 'C' is not written at [1, 2]", p, F32(out, 2, 3));
}

Test(interp_check, a_parameter_that_is_an_output_is_not_yet_readable)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(1));
    ir_program *p = program(STORE(c, ADD(LOAD(c, INT(0)), FLT(1)), INT(0)));

    param(p, c, true);
    FAILS("read of 'C'[0], which nothing has written", p, F32(out, 1));
}

/* ---- races ---- */

Test(interp_check, parallel_iterations_that_write_one_element)
{
    const ir_expr *i = VAR("i");

    FAILS(
        "race: this iteration of the parallel loop 'i' writes 'C'[0], which another iteration wrote (i = 1)",
        copying(i, i, INT(16), IR_PARALLEL, ir_floordiv(cx, i, INT(2))), F32(in, 16), F32(out, 16));
}

Test(interp_check, a_parallel_iteration_that_reads_what_another_wrote)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(8));
    const ir_expr *i = VAR("i");
    const ir_stmt *first = STORE(c, FLT(1), INT(0));
    ir_program *p = program(SEQ(first, FOR(i, INT(7), IR_PARALLEL, STORE(c, LOAD(c, i), ADD(i, INT(1))))));

    param(p, c, true);
    FAILS("race: this iteration of the parallel loop 'i' reads 'C'[1], which another iteration wrote (i = 1)",
          p, F32(out, 8));
}

Test(interp_check, a_parallel_iteration_that_overwrites_what_others_read)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(8));
    const ir_expr *i = VAR("i");
    ir_program *p = program(FOR(i, INT(7), IR_PARALLEL, STORE(a, LOAD(a, INT(7)), ADD(i, INT(1)))));

    param(p, a, false);
    FAILS("race: this iteration of the parallel loop 'i' writes 'A'[7], which another iteration read (i = 6)",
          p, F32(in, 8));
}

Test(interp_check, vectorised_iterations_that_meet)
{
    const ir_expr *i = VAR("i");

    FAILS("race: this iteration of the vectorised loop 'i' writes 'C'[5], which another iteration wrote (i = "
          "1)",
          copying(i, i, INT(16), IR_VECTORISED, INT(5)), F32(in, 16), F32(out, 16));
}

Test(interp_check, an_inner_loop_does_not_hide_the_outer_readers)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(8)), *c = BUFFER("C", BASE_F32, INT(2), INT(4));
    const ir_expr *i = VAR("i"), *j = VAR("j");
    const ir_stmt *read = FOR(j, INT(4), IR_VECTORISED, STORE(c, LOAD(a, INT(0)), i, j));
    const ir_stmt *write = ir_if(cx, ir_eq(cx, i, INT(1)), STORE(a, FLT(2), INT(0)), NULL);
    ir_program *p = program(FOR(i, INT(2), IR_PARALLEL, SEQ(read, write)));

    param(p, a, false);
    param(p, c, true);
    FAILS("race: this iteration of the parallel loop 'i' writes 'A'[0], which another iteration read (i = 1)",
          p, F32(in, 8), F32(out, 2, 4));
}

Test(interp_check, iterations_of_one_loop_after_another_do_not_race)
{
    const ir_buffer *t = BUFFER("T", BASE_F32, INT(8)), *c = BUFFER("C", BASE_F32, INT(8));
    const ir_expr *i = VAR("i"), *j = VAR("j"), *r = VAR("r");
    const ir_stmt *fill = FOR(i, INT(8), IR_PARALLEL, STORE(t, FLT(1), i));
    const ir_stmt *turn = FOR(j, INT(8), IR_PARALLEL, STORE(c, LOAD(t, ir_sub(cx, INT(7), j)), j));
    ir_program *p = program(ir_allocate(cx, t, FOR(r, INT(3), IR_SERIAL, SEQ(fill, turn))));

    param(p, c, true);
    RUNS(p, F32(out, 8));
}

Test(interp_check, memory_allocated_inside_a_parallel_loop_is_its_own)
{
    const ir_buffer *t = BUFFER("T", BASE_F32, INT(1)), *c = BUFFER("C", BASE_F32, INT(8));
    const ir_expr *i = VAR("i");
    const ir_stmt *body = SEQ(STORE(t, FLT(3), INT(0)), STORE(c, LOAD(t, INT(0)), i));
    ir_program *p = program(FOR(i, INT(8), IR_PARALLEL, ir_allocate(cx, t, body)));

    param(p, c, true);
    RUNS(p, F32(out, 8));
    cr_assert_eq(out[7], 3);
}

/* T is listed, and an iteration owns it; what the call writes there it calls 'c'. */
Test(interp_check, a_call_may_write_what_is_private_to_an_iteration)
{
    const ir_buffer *t = BUFFER("T", BASE_F32, INT(1)), *c = BUFFER("c", BASE_F32, INT(1)),
                    *out8 = BUFFER("C", BASE_F32, INT(8));
    const ir_expr *i = VAR("i"), *x = ir_var(cx, "x", BASE_F32), *zero = INT(0),
                  *args[] = {zero, ir_cast(cx, BASE_F32, i)};
    ir_program *set = program(STORE(c, x, zero)), *p;
    ir_intrinsic *what = base_new(cx, ir_intrinsic);

    param(set, c, true);
    scalar(set, x);
    *what = (ir_intrinsic){.name = "set", .meaning = set};
    const ir_stmt *call = ir_evaluate(cx, ir_call(cx, BASE_I32, "set", what, args, 2, &t, 1, false));
    p = program(FOR(i, INT(8), IR_PARALLEL, SEQ(call, STORE(out8, LOAD(t, zero), i))));
    listed(p, t);
    param(p, out8, true);
    RUNS(p, F32(out, 8));
    cr_assert_eq(out[7], 7);
}

/* A halo that each iteration computes again: legal where the buffer ends up inside the loop. */
static ir_program *halo(bool recomputed)
{
    const ir_buffer *t = BUFFER("T", BASE_F32, INT(9)), *c = BUFFER("C", BASE_F32, INT(8));
    const ir_expr *i = VAR("i"), *j = VAR("j"), *x = VAR("x"), *z = VAR("z");
    const ir_block *make = block_of("T", ITERS(ITER(x, INT(9), IR_SPATIAL)), NULL, STORE(t, FLT(1), x));
    const ir_block *use = block_of("C", ITERS(ITER(z, INT(8), IR_SPATIAL)), NULL,
                                   STORE(c, ADD(LOAD(t, z), LOAD(t, ADD(z, INT(1)))), z));
    const ir_stmt *fill = FOR(j, INT(recomputed ? 2 : 1), IR_SERIAL, BLOCK(make, NULL, ADD(i, j)));
    ir_program *p = program(FOR(i, INT(8), IR_PARALLEL, SEQ(fill, BLOCK(use, NULL, i))));

    listed(p, t);
    param(p, c, true);
    return p;
}

Test(interp_check, a_recomputed_halo_is_private_to_its_iteration)
{
    RUNS(halo(true), F32(out, 8));
    cr_assert_eq(out[7], 2);
}

Test(interp_check, a_halo_that_is_not_recomputed_is_noticed)
{
    FAILS("stage 'C': read of 'T'[1], which nothing has written (z = 0)", halo(false), F32(out, 8));
}

Test(interp_check, a_halo_from_another_iteration_is_a_race)
{
    const ir_buffer *t = BUFFER("T", BASE_F32, INT(8)), *c = BUFFER("C", BASE_F32, INT(8));
    const ir_expr *i = VAR("i"), *x = VAR("x"), *z = VAR("z"),
                  *before = ir_max(cx, ir_sub(cx, z, INT(1)), INT(0));
    const ir_block *make = block_of("T", ITERS(ITER(x, INT(8), IR_SPATIAL)), NULL, STORE(t, FLT(1), x));
    const ir_block *use = block_of("C", ITERS(ITER(z, INT(8), IR_SPATIAL)), NULL,
                                   STORE(c, ADD(LOAD(t, z), LOAD(t, before)), z));
    ir_program *p = program(FOR(i, INT(8), IR_PARALLEL, SEQ(BLOCK(make, NULL, i), BLOCK(use, NULL, i))));

    listed(p, t);
    param(p, c, true);
    FAILS("stage 'C': race: this iteration of the parallel loop 'i' reads 'T'[0], which another iteration "
          "wrote (z = 1)",
          p, F32(out, 8));
}

Test(interp_check, a_declared_reduction_may_be_vectorised)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(16)), *c = BUFFER("C", BASE_F32, INT(1));
    const ir_expr *k = VAR("k"), *kk = VAR("kk"), *zero = INT(0), *value = LOAD(a, k);
    const ir_combiner *sum = ir_combiner_named(cx, "sum", BASE_F32, BASE_I64);
    const ir_stmt *step = ir_update(cx, sum, &c, &zero, 1, &value);
    const ir_block *b =
        block_of("C", ITERS(ITER(k, INT(16), IR_REDUCE_ITER)), STORE(c, FLT(0), INT(0)), step);
    ir_program *p = program(FOR(kk, INT(16), IR_VECTORISED, BLOCK(b, NULL, kk))), *q;

    param(p, a, false);
    param(p, c, true);
    for (int i = 0; i < 16; i++)
        in[i] = (float)i;
    RUNS(p, F32(in, 16), F32(out, 1));
    cr_assert_eq(out[0], 120);
    q = program(FOR(kk, INT(16), IR_PARALLEL, BLOCK(b, NULL, kk)));
    q->params = p->params;
    q->n_params = 2;
    FAILS("stage 'C': race: this iteration of the parallel loop 'kk' reads 'C'[0], which another iteration "
          "wrote",
          q, F32(in, 16), F32(out, 1));
}

Test(interp_check, a_reduction_of_fixed_order_may_not_be_vectorised)
{
    const ir_buffer *c = BUFFER("C", BASE_I64, INT(1));
    const ir_expr *x = VAR("x"), *y = VAR("y"), *i = VAR("i"), *zero = INT(0), *sum = ADD(MUL(x, INT(3)), y);
    const ir_combiner *horner = ir_combiner_new(cx, "horner", 1, &x, &y, &sum, &zero, false);
    ir_program *p = program(
        SEQ(STORE(c, zero, zero), FOR(i, INT(4), IR_VECTORISED, ir_update(cx, horner, &c, &zero, 1, &i))));
    int64_t value;

    param(p, c, true);
    FAILS(
        "race: this iteration of the vectorised loop 'i' reads 'C'[0], which another iteration wrote (i = 1)",
        p, ARRAY(BASE_I64, &value, 1));
}

Test(interp_check, two_lanes_of_one_store)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(8));
    ir_program *p = program(STORE(c, ir_broadcast(cx, FLT(1), 4), ir_broadcast(cx, INT(3), 4)));

    param(p, c, true);
    FAILS("race: lanes 0 and 1 of one store write 'C'[3]", p, F32(out, 8));
}

/* ---- other failures ---- */

Test(interp_check, division_by_zero)
{
    const ir_buffer *c = BUFFER("C", BASE_I64, INT(4));
    const ir_expr *i = VAR("i");
    int64_t values[4];
    ir_program *p =
        program(FOR(i, INT(4), IR_SERIAL, STORE(c, ir_floordiv(cx, INT(12), ir_sub(cx, i, INT(2))), i)));

    param(p, c, true);
    FAILS("error: division by zero in 'floordiv' (i = 2)", p, ARRAY(BASE_I64, values, 4));
}

Test(interp_check, a_failed_assert)
{
    const ir_expr *i = VAR("i");
    ir_program *p = program(FOR(i, INT(4), IR_SERIAL, ir_assert(cx, LT(i, INT(3)), "only three")));

    FAILS("error: assertion failed: only three (i = 3)", p, {0});
}

Test(interp_check, too_many_steps)
{
    const ir_expr *i = VAR("i");
    ir_program *p = program(FOR(i, INT(INT64_C(1) << 60), IR_SERIAL, ir_nothing(cx)));

    cr_assert_not(ir_interpret(cx, p, &(ir_run){.max_steps = 1000}));
    cr_assert(strstr(tec_context_error(cx), "the program ran for more than 1000 steps (i = "), "%s",
              tec_context_error(cx));
}

Test(interp_check, an_expression_that_explodes_counts_as_many_steps)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(1));
    const ir_expr *e = LOAD(c, INT(0));
    ir_program *p;

    for (int i = 0; i < 60; i++)
        e = ADD(e, e);
    p = program(STORE(c, e, INT(0)));
    param(p, c, false);
    FAILS("the program ran for more than 10000000000 steps", p, F32(out, 1));
}

Test(interp_check, too_much_memory)
{
    const ir_buffer *t = BUFFER("T", BASE_F32, INT(INT64_C(1) << 40));
    ir_program *p = program(ir_allocate(cx, t, ir_nothing(cx)));

    FAILS("error: 'T' has 1099511627776 elements: the buffers of this run would pass 4096 MiB", p, {0});
}

Test(interp_check, an_extent_below_zero)
{
    const ir_buffer *t = BUFFER("T", BASE_F32, INT(-3));
    ir_program *p = program(ir_allocate(cx, t, ir_nothing(cx)));

    FAILS("error: dimension 0 of 'T' has the extent -3", p, {0});
}

Test(interp_check, nested_too_deeply)
{
    const ir_stmt *s = ir_nothing(cx);

    for (int i = 0; i < 5000; i++)
        s = ir_attribute(cx, "note", INT(1), s);
    FAILS("nested more than 4000 levels deep", program(s), {0});
}

Test(interp_check, an_extern_function_has_no_meaning)
{
    const ir_expr *e = ir_call(cx, BASE_F32, "cblas_sgemm", NULL, NULL, 0, NULL, 0, false);

    FAILS("error: the interpreter cannot run 'cblas_sgemm': it is an extern function without a meaning",
          program(ir_evaluate(cx, e)), {0});
    cr_assert_eq(tec_context_status(cx), TEC_UNSUPPORTED);
}

/* ---- arguments ---- */

Test(interp_check, arguments_must_fit)
{
    const ir_expr *i = VAR("i");

    FAILS("dimension 0 of argument 'A' is 8, expected 16", copying(i, i, INT(16), IR_SERIAL, i), F32(in, 8),
          F32(out, 16));
    tec_context_clear(cx);
    FAILS("argument 'A' has type i32, expected f32", copying(i, i, INT(16), IR_SERIAL, i),
          ARRAY(BASE_I32, in, 16), F32(out, 16));
    tec_context_clear(cx);
    FAILS("argument 'A' has 2 dimensions, expected 1", copying(i, i, INT(16), IR_SERIAL, i), F32(in, 4, 4),
          F32(out, 16));
    tec_context_clear(cx);
    FAILS("argument 'A' has no array", copying(i, i, INT(16), IR_SERIAL, i), {0}, F32(out, 16));
    tec_context_clear(cx);
    FAILS("arguments 'A' and 'C' share memory, which the program excludes",
          copying(i, i, INT(16), IR_SERIAL, i), F32(in, 16), F32(in, 16));
}

Test(interp_check, a_promise_about_symbols_must_hold)
{
    const ir_expr *n = VAR("n");
    const ir_buffer *a = BUFFER("A", BASE_F32, n);
    ir_program *p = program(ir_nothing(cx));

    symbol(p, n);
    param(p, a, false);
    fact(p, ir_eq(cx, ir_floormod(cx, n, INT(8)), INT(0)));
    RUNS(p, F32(in, 16));
    FAILS("does not hold for these arguments", p, F32(in, 13));
}

Test(interp_check, a_symbol_needs_a_value)
{
    const ir_expr *n = VAR("n"), *i = VAR("i");
    ir_program *p = program(FOR(i, n, IR_SERIAL, ir_nothing(cx)));

    symbol(p, n);
    FAILS("symbol 'n' has no value: no argument's shape gives it, and the caller does not", p, {0});
}
