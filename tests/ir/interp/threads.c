/* tests/ir/interp/threads.c -- groups of threads: shared memory and barriers, races, divergence, local and
 * virtual. */
#include "tests/ir/interp/run.h"

TestSuite(interp_threads, .init = open_context, .fini = close_context);

static float in[256], out[256];

static const ir_stmt *grid(const ir_expr *bx, int blocks, const ir_stmt *body)
{
    return FOR(bx, INT(blocks), IR_BLOCK_X, body);
}

/* S[tx] = A[bx*4 + tx]; BETWEEN; C[bx*4 + tx] = S[3 - tx] over 2 blocks of 4 threads. */
static ir_program *reverse(const ir_stmt *between, ir_scope scope)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(8)), *c = BUFFER("C", BASE_F32, INT(8)),
                    *s = scoped(BUFFER("S", BASE_F32, INT(4)), scope);
    const ir_expr *bx = VAR("bx"), *tx = VAR("tx"), *at = ADD(MUL(bx, INT(4)), tx);
    const ir_stmt *body =
        SEQ(STORE(s, LOAD(a, at), tx), SEQ(between, STORE(c, LOAD(s, ir_sub(cx, INT(3), tx)), at)));
    ir_program *p = program(grid(bx, 2, ir_allocate(cx, s, FOR(tx, INT(4), IR_THREAD_X, body))));

    param(p, a, false);
    param(p, c, true);
    for (int i = 0; i < 8; i++)
        in[i] = (float)i;
    return p;
}

Test(interp_threads, threads_exchange_shared_memory_across_a_barrier)
{
    RUNS(reverse(BARRIER("shared"), IR_SHARED), F32(in, 8), F32(out, 8));
    for (int i = 0; i < 8; i++)
        cr_assert_eq(out[i], (float)(i / 4 * 4 + 3 - i % 4));
}

/* C[tx] = S[0] after S[0] = 1 by thread 0: the second thread races unless it waits. */
static ir_program *broadcast(const ir_stmt *between)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(2)), *s = scoped(BUFFER("S", BASE_F32, INT(1)), IR_SHARED);
    const ir_expr *tx = VAR("tx"), *zero = INT(0);
    const ir_stmt *write = ir_if(cx, ir_eq(cx, tx, INT(0)), STORE(s, FLT(1), zero), NULL);
    ir_program *p =
        program(FOR(tx, INT(2), IR_THREAD_X, SEQ(write, SEQ(between, STORE(c, LOAD(s, zero), tx)))));

    listed(p, s);
    param(p, c, true);
    return p;
}

Test(interp_threads, two_threads_without_a_barrier_race)
{
    FAILS(
        "race: thread (1, 0, 0) reads 'S'[0], which thread (0, 0, 0) wrote with no barrier between (tx = 1)",
        broadcast(ir_nothing(cx)), F32(out, 2));
}

Test(interp_threads, the_same_with_a_barrier_is_fine)
{
    RUNS(broadcast(BARRIER("shared")), F32(out, 2));
    RUNS(broadcast(BARRIER("global")), F32(out, 2));
    RUNS(broadcast(BARRIER("warp")), F32(out, 2));
    cr_assert_eq(out[1], 1);
}

Test(interp_threads, before_barriers_are_placed_they_are_implied)
{
    ir_program *p = broadcast(ir_nothing(cx));

    cr_assert(ir_interpret(cx, p, &(ir_run){.args = (ir_arg[]){F32(out, 2)}, .implied_barriers = true}), "%s",
              tec_context_error(cx));
    cr_assert(ir_interpret(cx, reverse(ir_nothing(cx), IR_SHARED),
                           &(ir_run){.args = (ir_arg[]){F32(in, 8), F32(out, 8)}, .implied_barriers = true}),
              "%s", tec_context_error(cx));
    cr_assert_eq(out[0], 3);
    cr_assert(ir_interpret(cx, reverse(ir_nothing(cx), IR_GLOBAL),
                           &(ir_run){.args = (ir_arg[]){F32(in, 8), F32(out, 8)}, .implied_barriers = true}),
              "%s", tec_context_error(cx));
}

/* S[tx] = 0; if S[1 - tx] == VALUE { S[tx] = 1 }; S[tx] = 2 by two threads. */
static ir_program *ask_the_other(double value)
{
    const ir_buffer *s = scoped(BUFFER("S", BASE_F32, INT(2)), IR_SHARED);
    const ir_expr *tx = VAR("tx"), *asks = ir_eq(cx, LOAD(s, ir_sub(cx, INT(1), tx)), FLT(value));
    const ir_stmt *ask = ir_if(cx, asks, STORE(s, FLT(1), tx), NULL);
    ir_program *p =
        program(FOR(tx, INT(2), IR_THREAD_X, SEQ(STORE(s, FLT(0), tx), SEQ(ask, STORE(s, FLT(2), tx)))));

    listed(p, s);
    return p;
}

Test(interp_threads, a_barrier_is_implied_behind_a_condition_that_is_false)
{
    cr_assert(ir_interpret(cx, ask_the_other(7), &(ir_run){.implied_barriers = true}), "%s",
              tec_context_error(cx));
}

Test(interp_threads, no_barrier_is_implied_between_a_condition_and_its_body)
{
    cr_assert_not(ir_interpret(cx, ask_the_other(0), &(ir_run){.implied_barriers = true}));
    cr_assert(
        strstr(tec_context_error(cx), "race: thread (0, 0, 0) writes 'S'[0], which thread (1, 0, 0) read"),
        "%s", tec_context_error(cx));
}

Test(interp_threads, an_implied_barrier_does_not_order_two_writers_of_one_statement)
{
    const ir_buffer *s = scoped(BUFFER("S", BASE_F32, INT(1)), IR_SHARED);
    const ir_expr *tx = VAR("tx");
    ir_program *p = program(FOR(tx, INT(2), IR_THREAD_X, STORE(s, FLT(1), INT(0))));

    listed(p, s);
    cr_assert_not(ir_interpret(cx, p, &(ir_run){.implied_barriers = true}));
    cr_assert(
        strstr(tec_context_error(cx), "race: thread (1, 0, 0) writes 'S'[0], which thread (0, 0, 0) wrote"),
        "%s", tec_context_error(cx));
}

Test(interp_threads, a_shared_barrier_does_not_order_global_memory)
{
    FAILS("race: thread (0, 0, 0) reads", reverse(BARRIER("shared"), IR_GLOBAL), F32(in, 8), F32(out, 8));
    tec_context_clear(cx);
    RUNS(reverse(BARRIER("global"), IR_GLOBAL), F32(in, 8), F32(out, 8));
}

/* allocate S { for tx { S[tx] = tx; BETWEEN; C[tx] = S[7 - tx] } ANOTHER }: with another launch, S is no
 * launch's own. */
static ir_program *exchange_with_another(ir_scope scope, const ir_stmt *between, bool another)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(8)), *d = BUFFER("D", BASE_F32, INT(8)),
                    *s = scoped(BUFFER("S", BASE_F32, INT(8)), scope);
    const ir_expr *tx = VAR("tx"), *ty = VAR("ty");
    const ir_stmt *first = FOR(tx, INT(8), IR_THREAD_X,
                               SEQ(STORE(s, ir_cast(cx, BASE_F32, tx), tx),
                                   SEQ(between, STORE(c, LOAD(s, ir_sub(cx, INT(7), tx)), tx))));
    const ir_stmt *second =
        FOR(ty, INT(8), IR_THREAD_X, STORE(d, another ? LOAD(s, ir_sub(cx, INT(7), ty)) : FLT(0), ty));
    ir_program *p =
        program(another ? ir_allocate(cx, s, SEQ(first, second)) : SEQ(ir_allocate(cx, s, first), second));

    param(p, c, true);
    param(p, d, true);
    return p;
}

/* Memory that two launches use has a place in the workspace, which is global memory of the device: its scope
 * says nothing of the barriers that order it. A barrier of a warp orders all memory, for its threads. */
Test(interp_threads, a_shared_barrier_does_not_order_memory_outside_of_launches)
{
    static float other[8];
    static const ir_scope scopes[] = {IR_SHARED, IR_WARP};

    for (int i = 0; i < BASE_COUNT(scopes); i++) {
        RUNS(exchange_with_another(scopes[i], BARRIER("shared"), false), F32(out, 8), F32(other, 8));
        FAILS("race: thread (0, 0, 0) reads 'S'[7], which thread (7, 0, 0) wrote with no barrier of global "
              "memory between (tx = 0)",
              exchange_with_another(scopes[i], BARRIER("shared"), true), F32(out, 8), F32(other, 8));
        tec_context_clear(cx);
        RUNS(exchange_with_another(scopes[i], BARRIER("global"), true), F32(out, 8), F32(other, 8));
        RUNS(exchange_with_another(scopes[i], BARRIER("warp"), true), F32(out, 8), F32(other, 8));
        cr_assert_eq(out[1], 6);
        cr_assert_eq(other[1], 6);
    }
}

/* Between two loops over blocks, memory of scope shared is still that of a block. */
Test(interp_threads, memory_inside_of_a_loop_over_blocks_is_the_block_s)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(8)), *s = scoped(BUFFER("S", BASE_F32, INT(8)), IR_SHARED);
    const ir_expr *bx = VAR("bx"), *by = VAR("by"), *tx = VAR("tx");
    const ir_stmt *body = SEQ(STORE(s, ir_cast(cx, BASE_F32, tx), tx),
                              SEQ(BARRIER("shared"), STORE(c, LOAD(s, ir_sub(cx, INT(7), tx)), tx)));
    ir_program *p = program(grid(
        bx, 1,
        ir_allocate(cx, s,
                    FOR(by, INT(1), IR_BLOCK_Y, SEQ(FOR(tx, INT(8), IR_THREAD_X, body), ir_nothing(cx))))));

    param(p, c, true);
    RUNS(p, F32(out, 8));
    cr_assert_eq(out[1], 6);
}

/* One thread fills S; after BETWEEN all of them copy it by a call, whose operand says nothing of S's
 * scope. */
static ir_program *calling(const ir_stmt *between)
{
    const ir_buffer *a = BUFFER("a", BASE_F32, INT(1)), *o = BUFFER("o", BASE_F32, INT(1)),
                    *c = BUFFER("C", BASE_F32, INT(2)), *s = scoped(BUFFER("S", BASE_F32, INT(1)), IR_SHARED);
    const ir_expr *tx = VAR("tx"), *zero = INT(0), *args[] = {zero, tx};
    ir_program *copy = program(STORE(o, LOAD(a, zero), zero)), *p;
    ir_intrinsic *what = base_new(cx, ir_intrinsic);

    param(copy, a, false);
    param(copy, o, true);
    *what = (ir_intrinsic){.name = "copy", .meaning = copy};
    const ir_stmt *write = ir_if(cx, ir_eq(cx, tx, zero), STORE(s, FLT(1), zero), NULL);
    const ir_stmt *call =
        ir_evaluate(cx, ir_call(cx, BASE_I32, "copy", what, args, 2, (const ir_buffer *[]){s, c}, 2, false));
    p = program(FOR(tx, INT(2), IR_THREAD_X, SEQ(write, SEQ(between, call))));
    listed(p, s);
    param(p, c, true);
    return p;
}

Test(interp_threads, what_a_call_reads_is_ordered_by_the_barriers_of_its_memory)
{
    RUNS(calling(BARRIER("shared")), F32(out, 2));
    cr_assert(out[0] == 1 && out[1] == 1);
    FAILS(
        "race: thread (1, 0, 0) reads 'a'[0], which thread (0, 0, 0) wrote with no barrier between (tx = 1)",
        calling(ir_nothing(cx)), F32(out, 2));
}

/* Outside of the loop over threads L and T are filled, one from the other by a call; inside, each thread
 * takes what T holds. */
static ir_program *calling_outside(ir_scope from, ir_scope to, bool checked)
{
    const ir_buffer *a = BUFFER("a", BASE_F32, INT(1)), *o = BUFFER("o", BASE_F32, INT(1)),
                    *b = BUFFER("B", BASE_F32, INT(2)), *l = scoped(BUFFER("L", BASE_F32, INT(1)), from),
                    *t = scoped(BUFFER("T", BASE_F32, INT(1)), to);
    const ir_expr *tx = VAR("tx"), *zero = INT(0), *args[] = {zero, zero};
    ir_program *copy = program(STORE(o, LOAD(a, zero), zero)), *p;
    ir_intrinsic *what = base_new(cx, ir_intrinsic);

    param(copy, a, false);
    param(copy, o, true);
    *what = (ir_intrinsic){.name = "copy", .meaning = copy};
    const ir_expr *value =
        ir_call(cx, BASE_I32, "copy", what, args, 2, (const ir_buffer *[]){l, t}, 2, false);
    const ir_stmt *call = checked
                              ? ir_assert(cx, ir_eq(cx, value, ir_imm_int(cx, BASE_I32, 0)), "copy failed")
                              : ir_evaluate(cx, value);
    const ir_stmt *take = FOR(tx, INT(2), IR_THREAD_X, STORE(b, LOAD(t, zero), tx));
    p = program(
        FOR(VAR("bx"), INT(1), IR_BLOCK_X,
            SEQ(SEQ(STORE(l, FLT(3), zero), BARRIER("shared")), SEQ(SEQ(call, BARRIER("shared")), take))));
    listed(p, l);
    listed(p, t);
    param(p, b, true);
    return p;
}

Test(interp_threads, a_call_outside_of_a_loop_over_threads_is_done_by_all_where_it_writes_local_memory)
{
    static const ir_scope from[] = {IR_LOCAL, IR_SHARED, IR_LOCAL}, to[] = {IR_LOCAL, IR_LOCAL, IR_SHARED};

    for (int i = 0; i < 2 * BASE_COUNT(from); i++) {
        out[0] = out[1] = 0;
        RUNS(calling_outside(from[i / 2], to[i / 2], i % 2), F32(out, 2));
        cr_assert(out[0] == 3 && out[1] == 3);
    }
}

Test(interp_threads, a_write_after_a_read_needs_a_barrier_too)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(4)), *s = scoped(BUFFER("S", BASE_F32, INT(4)), IR_SHARED);
    const ir_expr *tx = VAR("tx"), *k = VAR("k");
    const ir_stmt *step =
        SEQ(STORE(s, FLT(1), tx), SEQ(BARRIER("shared"), STORE(c, LOAD(s, ir_sub(cx, INT(3), tx)), tx)));
    ir_program *p = program(FOR(tx, INT(4), IR_THREAD_X, FOR(k, INT(2), IR_SERIAL, step))), *q;

    listed(p, s);
    param(p, c, true);
    FAILS("race: thread (0, 0, 0) writes 'S'[0], which thread (3, 0, 0) read with no barrier between (tx = "
          "0, k = 1)",
          p, F32(out, 4));
    tec_context_clear(cx);
    q = program(FOR(tx, INT(4), IR_THREAD_X, FOR(k, INT(2), IR_SERIAL, SEQ(step, BARRIER("shared")))));
    listed(q, s);
    param(q, c, true);
    RUNS(q, F32(out, 4));
}

Test(interp_threads, the_last_reader_does_not_hide_the_others)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(1)), *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *tx = VAR("tx"), *zero = INT(0);
    const ir_stmt *write = ir_if(cx, ir_eq(cx, tx, INT(3)), STORE(a, FLT(1), zero), NULL);
    ir_program *p = program(FOR(tx, INT(4), IR_THREAD_X, SEQ(STORE(c, LOAD(a, zero), tx), write)));

    param(p, a, false);
    param(p, c, true);
    FAILS("race: thread (3, 0, 0) writes 'A'[0], which thread (2, 0, 0) read with no barrier between", p,
          F32(in, 1), F32(out, 4));
}

static void carries_from_launch_to_launch(ir_how how)
{
    const ir_buffer *h = BUFFER("H", BASE_F32, INT(4), INT(4)), *c = BUFFER("C", BASE_F32, INT(3), INT(4));
    const ir_expr *t = VAR("t"), *tx = VAR("tx"), *next = ADD(t, INT(1));
    const ir_stmt *start = ir_if(cx, ir_eq(cx, t, INT(0)), STORE(h, FLT(1), t, tx), NULL);
    const ir_stmt *step =
        SEQ(STORE(h, ADD(LOAD(h, t, tx), FLT(1)), next, tx), STORE(c, LOAD(h, next, tx), t, tx));
    ir_program *p = program(FOR(t, INT(3), how, FOR(tx, INT(4), IR_THREAD_X, SEQ(start, step))));

    listed(p, h);
    param(p, c, true);
    RUNS(p, F32(out, 3, 4));
    cr_assert_eq(out[11], 4);
}

Test(interp_threads, values_that_a_loop_carries_from_launch_to_launch_last)
{
    carries_from_launch_to_launch(IR_SERIAL);
    carries_from_launch_to_launch(IR_UNROLLED);
}

Test(interp_threads, a_barrier_in_a_branch_that_not_all_threads_take_is_divergence)
{
    const ir_expr *tx = VAR("tx"), *ty = VAR("ty");
    const ir_stmt *branch = ir_if(cx, LT(tx, INT(3)), BARRIER("shared"), NULL);

    FAILS("error: divergence: 6 of 8 threads come to the shared barrier, thread (3, 0, 0) does not",
          program(FOR(ty, INT(2), IR_THREAD_Y, FOR(tx, INT(4), IR_THREAD_X, branch))), {0});
}

Test(interp_threads, a_loop_that_one_thread_leaves_early_is_divergence)
{
    const ir_expr *tx = VAR("tx"), *k = VAR("k");

    FAILS("divergence: 3 of 4 threads come to the shared barrier, thread (0, 0, 0) does not",
          program(FOR(tx, INT(4), IR_THREAD_X,
                      FOR(k, ADD(ir_min(cx, tx, INT(1)), INT(2)), IR_SERIAL, BARRIER("shared")))),
          {0});
}

Test(interp_threads, a_warp_barrier_waits_for_its_warp_alone)
{
    const ir_expr *tx = VAR("tx");

    RUNS(program(FOR(tx, INT(64), IR_THREAD_X, ir_if(cx, LT(tx, INT(32)), BARRIER("warp"), NULL))), {0});
    FAILS("divergence: 8 of 32 threads come to the warp barrier, thread (40, 0, 0) does not",
          program(FOR(tx, INT(64), IR_THREAD_X, ir_if(cx, LT(tx, INT(40)), BARRIER("warp"), NULL))), {0});
}

Test(interp_threads, a_barrier_needs_threads)
{
    FAILS("a barrier where no threads run", program(BARRIER("shared")), {0});
    tec_context_clear(cx);
    FAILS("a barrier takes \"shared\", \"global\" or \"warp\"", program(BARRIER("everything")), {0});
}

Test(interp_threads, a_barrier_inside_a_vectorised_loop_is_refused)
{
    const ir_expr *tx = VAR("tx"), *v = VAR("v");

    FAILS("threads meet inside the vectorised loop 'v'",
          program(FOR(tx, INT(4), IR_THREAD_X, FOR(v, INT(4), IR_VECTORISED, BARRIER("shared")))), {0});
}

/* In one block of a launch whose threads share what is allocated in each lane. */
Test(interp_threads, each_lane_has_memory_that_threads_share)
{
    const ir_buffer *s = BUFFER("S", BASE_F32, INT(1)), *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *bx = VAR("bx"), *v = VAR("v");
    const ir_stmt *body = SEQ(STORE(s, ir_cast(cx, BASE_F32, v), INT(0)), STORE(c, LOAD(s, INT(0)), v));
    ir_program *p =
        program(FOR(bx, INT(1), IR_BLOCK_X, FOR(v, INT(4), IR_VECTORISED, ir_allocate(cx, s, body))));

    param(p, c, true);
    RUNS(p, F32(out, 4));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(out[i], (float)i);
}

Test(interp_threads, blocks_of_a_grid_must_not_meet)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *bx = VAR("bx"), *tx = VAR("tx");
    ir_program *p = program(grid(bx, 2, FOR(tx, INT(4), IR_THREAD_X, STORE(c, FLT(1), tx))));

    param(p, c, true);
    FAILS("race: this iteration of the blockIdx.x loop 'bx' writes 'C'[0], which another iteration wrote", p,
          F32(out, 4));
}

/* ---- local memory and missing axes ---- */

Test(interp_threads, local_memory_belongs_to_one_thread_and_lasts_over_its_loops)
{
    const ir_buffer *l = scoped(BUFFER("L", BASE_F32, INT(1)), IR_LOCAL), *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *bx = VAR("bx"), *tx = VAR("tx"), *ty = VAR("tx2"), *zero = INT(0);
    const ir_stmt *fill = FOR(tx, INT(4), IR_THREAD_X, STORE(l, ir_cast(cx, BASE_F32, tx), zero));
    ir_program *p = program(grid(
        bx, 1, SEQ(fill, SEQ(BARRIER("shared"), FOR(ty, INT(4), IR_THREAD_X, STORE(c, LOAD(l, zero), ty))))));

    listed(p, l);
    param(p, c, true);
    RUNS(p, F32(out, 4));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(out[i], (float)i);
}

Test(interp_threads, what_no_thread_loop_binds_is_done_by_thread_zero_alone)
{
    const ir_buffer *s = scoped(BUFFER("S", BASE_F32, INT(1)), IR_SHARED), *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *bx = VAR("bx"), *tx = VAR("tx"), *zero = INT(0);
    const ir_stmt *use = FOR(tx, INT(4), IR_THREAD_X, STORE(c, LOAD(s, zero), tx));
    ir_program *p = program(grid(bx, 1, SEQ(STORE(s, FLT(5), zero), SEQ(BARRIER("shared"), use)))), *q;

    listed(p, s);
    param(p, c, true);
    RUNS(p, F32(out, 4));
    cr_assert_eq(out[3], 5);
    q = program(grid(bx, 1, SEQ(STORE(s, FLT(5), zero), use)));
    listed(q, s);
    param(q, c, true);
    FAILS("race: thread (1, 0, 0) reads 'S'[0], which thread (0, 0, 0) wrote", q, F32(out, 4));
}

/* S[0] = 5, then three times S[0] = S[0] + 1, by way of a let and under a condition that read S: the other
 * threads look at neither. */
Test(interp_threads, lets_and_conditions_around_the_work_of_thread_zero_are_its_own)
{
    const ir_buffer *s = scoped(BUFFER("S", BASE_F32, INT(1)), IR_SHARED), *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *bx = VAR("bx"), *k = VAR("k"), *tx = VAR("tx"), *zero = INT(0),
                  *v = ir_var(cx, "v", BASE_F32);
    const ir_stmt *more = ir_let_stmt(cx, v, LOAD(s, zero), STORE(s, ADD(v, FLT(1)), zero));
    const ir_stmt *count = FOR(k, INT(3), IR_SERIAL, ir_if(cx, LT(LOAD(s, zero), FLT(7)), more, NULL));
    const ir_stmt *use = FOR(tx, INT(4), IR_THREAD_X, STORE(c, LOAD(s, zero), tx));
    ir_program *p =
        program(grid(bx, 1, SEQ(SEQ(STORE(s, FLT(5), zero), count), SEQ(BARRIER("shared"), use))));

    listed(p, s);
    param(p, c, true);
    RUNS(p, F32(out, 4));
    cr_assert_eq(out[3], 7);
}

Test(interp_threads, a_shorter_loop_leaves_threads_out)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(4)), *d = BUFFER("D", BASE_F32, INT(2));
    const ir_expr *bx = VAR("bx"), *tx = VAR("tx"), *ty = VAR("t2");
    ir_program *p = program(grid(bx, 1,
                                 SEQ(FOR(tx, INT(4), IR_THREAD_X, STORE(c, FLT(1), tx)),
                                     FOR(ty, INT(2), IR_THREAD_X, STORE(d, FLT(2), ty)))));

    param(p, c, true);
    param(p, d, true);
    RUNS(p, F32(out, 4), F32(in, 2));
    cr_assert_eq(in[1], 2);
}

Test(interp_threads, fresh_shared_memory_for_every_block)
{
    const ir_buffer *s = scoped(BUFFER("S", BASE_F32, INT(4)), IR_SHARED), *c = BUFFER("C", BASE_F32, INT(8));
    const ir_expr *bx = VAR("bx"), *tx = VAR("tx");
    const ir_stmt *fill = ir_if(cx, ir_eq(cx, bx, INT(0)), STORE(s, FLT(1), tx), NULL);
    ir_program *p = program(grid(
        bx, 2, FOR(tx, INT(4), IR_THREAD_X, SEQ(fill, STORE(c, LOAD(s, tx), ADD(MUL(bx, INT(4)), tx))))));

    listed(p, s);
    param(p, c, true);
    FAILS("read of 'S'[0], which nothing has written (bx = 1, tx = 0)", p, F32(out, 8));
}

Test(interp_threads, warp_memory_is_one_for_each_warp)
{
    const ir_buffer *w = scoped(BUFFER("W", BASE_F32, INT(32)), IR_WARP), *c = BUFFER("C", BASE_F32, INT(64));
    const ir_expr *tx = VAR("tx"), *lane = ir_floormod(cx, tx, INT(32));
    const ir_stmt *use = STORE(c, LOAD(w, ir_sub(cx, INT(31), lane)), tx);
    const ir_stmt *body = SEQ(STORE(w, ir_cast(cx, BASE_F32, tx), lane), SEQ(BARRIER("warp"), use));
    ir_program *p = program(FOR(tx, INT(64), IR_THREAD_X, ir_allocate(cx, w, body)));

    param(p, c, true);
    RUNS(p, F32(out, 64));
    cr_assert(out[0] == 31 && out[31] == 0 && out[32] == 63 && out[63] == 32);
}

Test(interp_threads, too_many_threads)
{
    const ir_expr *tx = VAR("tx"), *ty = VAR("ty");

    FAILS("a block of more than 65535 threads",
          program(FOR(tx, INT(1024), IR_THREAD_X, FOR(ty, INT(1024), IR_THREAD_Y, ir_nothing(cx)))), {0});
}

Test(interp_threads, the_extent_of_a_thread_loop_is_known_at_the_launch)
{
    const ir_expr *tx = VAR("tx"), *ty = VAR("ty");

    FAILS("the extent of the threadIdx.y loop 'ty' depends on 'tx', which is bound inside the launch",
          program(FOR(tx, INT(4), IR_THREAD_X, FOR(ty, ADD(tx, INT(1)), IR_THREAD_Y, ir_nothing(cx)))), {0});
}

/* ---- virtual threads ---- */

static ir_program *virtual_threads(const ir_stmt *between, int width)
{
    const ir_buffer *s = scoped(BUFFER("S", BASE_F32, INT(8)), IR_SHARED), *c = BUFFER("C", BASE_F32, INT(8));
    const ir_expr *tx = VAR("tx"), *v = VAR("v"), *at = ADD(MUL(v, INT(width)), tx);
    const ir_stmt *body = SEQ(STORE(s, ir_cast(cx, BASE_F32, at), at),
                              SEQ(between, STORE(c, LOAD(s, ir_sub(cx, INT(7), at)), at)));
    ir_program *p = program(FOR(tx, INT(4), IR_THREAD_X, FOR(v, INT(2), IR_VTHREAD, body)));

    listed(p, s);
    param(p, c, true);
    return p;
}

Test(interp_threads, virtual_threads_pass_a_barrier_in_step)
{
    RUNS(virtual_threads(BARRIER("shared"), 4), F32(out, 8));
    for (int i = 0; i < 8; i++)
        cr_assert_eq(out[i], (float)(7 - i));
}

Test(interp_threads, virtual_threads_that_write_one_element_race)
{
    FAILS("race: virtual thread 1 of thread (0, 0, 0) writes 'S'[3], which virtual thread 0 of thread (3, 0, "
          "0) wrote",
          virtual_threads(BARRIER("shared"), 3), F32(out, 8));
}

Test(interp_threads, a_thread_may_use_what_its_virtual_threads_left)
{
    const ir_buffer *l = scoped(BUFFER("L", BASE_F32, INT(2)), IR_LOCAL), *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *tx = VAR("tx"), *v = VAR("v");
    const ir_stmt *fill =
        FOR(v, INT(2), IR_VTHREAD, SEQ(STORE(l, ir_cast(cx, BASE_F32, v), v), BARRIER("shared")));
    ir_program *p =
        program(FOR(tx, INT(4), IR_THREAD_X, SEQ(fill, STORE(c, ADD(LOAD(l, INT(0)), LOAD(l, INT(1))), tx))));

    listed(p, l);
    param(p, c, true);
    RUNS(p, F32(out, 4));
    cr_assert_eq(out[3], 1);
}

/* Memory of the block that is allocated inside of their loop is that of each of them: v fills four elements,
 * and reads what it wrote. */
Test(interp_threads, virtual_threads_have_shared_memory_of_their_own)
{
    const ir_buffer *s = scoped(BUFFER("S", BASE_F32, INT(4)), IR_SHARED),
                    *c = BUFFER("C", BASE_F32, INT(2), INT(4));
    const ir_expr *tx = VAR("tx"), *v = VAR("v"), *i = VAR("i");
    const ir_stmt *fill =
        FOR(tx, INT(4), IR_THREAD_X, STORE(s, ir_cast(cx, BASE_F32, ADD(MUL(v, INT(10)), tx)), tx));
    const ir_stmt *use = FOR(i, INT(4), IR_THREAD_X, STORE(c, LOAD(s, ir_sub(cx, INT(3), i)), v, i));
    ir_program *p =
        program(grid(VAR("bx"), 1,
                     FOR(v, INT(2), IR_VTHREAD, ir_allocate(cx, s, SEQ(fill, SEQ(BARRIER("shared"), use))))));

    param(p, c, true);
    RUNS(p, F32(out, 2, 4));
    cr_assert_eq(out[1], 2);
    cr_assert_eq(out[5], 12);
}

Test(interp_threads, virtual_threads_outside_a_launch_must_be_independent)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(4));
    const ir_expr *v = VAR("v");
    ir_program *p = program(FOR(v, INT(4), IR_VTHREAD, STORE(c, FLT(1), ir_floordiv(cx, v, INT(2)))));

    param(p, c, false);
    FAILS("race: this iteration of the vthread loop 'v' writes 'C'[0], which another iteration wrote (v = 1)",
          p, F32(out, 4));
}

/* ---- trees ---- */

/* A matrix product with its operand staged through shared memory by a nested loop over the same threads. */
Test(interp_threads, a_loop_tree_with_a_shared_cache_runs_before_barriers_exist)
{
    enum { N = 8, K = 4 };
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(K), INT(N)), *c = BUFFER("C", BASE_F32, INT(N));
    const ir_buffer *s = scoped(BUFFER("A.shared", BASE_F32, INT(K), INT(N)), IR_SHARED);
    const ir_buffer *acc = scoped(BUFFER("C.local", BASE_F32, INT(N)), IR_LOCAL);
    const ir_expr *bx = VAR("bx"), *tx = VAR("tx"), *k = VAR("k"), *t2 = VAR("t2"), *y = VAR("y"),
                  *x = VAR("x"), *r = VAR("r"), *z = VAR("z"), *w = VAR("w");
    const ir_expr *load = LOAD(s, r, ir_sub(cx, INT(N - 1), x)), *mine = ADD(MUL(bx, INT(4)), tx);
    const ir_combiner *sum = ir_combiner_named(cx, "sum", BASE_F32, BASE_I64);
    const ir_block *copy =
        block_of("A.shared", ITERS(ITER(y, INT(K), IR_SPATIAL), ITER(w, INT(N), IR_SPATIAL)), NULL,
                 STORE(s, LOAD(a, y, w), y, w));
    const ir_block *main = block_of("C", ITERS(ITER(x, INT(N), IR_SPATIAL), ITER(r, INT(K), IR_REDUCE_ITER)),
                                    STORE(acc, FLT(0), x), ir_update(cx, sum, &acc, &x, 1, &load));
    const ir_block *back =
        block_of("C.out", ITERS(ITER(z, INT(N), IR_SPATIAL)), NULL, STORE(c, LOAD(acc, z), z));
    const ir_expr *half = VAR("half");
    const ir_stmt *fill = FOR(half, INT(2), IR_SERIAL,
                              FOR(t2, INT(4), IR_THREAD_X, BLOCK(copy, NULL, k, ADD(MUL(half, INT(4)), t2))));
    const ir_stmt *body =
        SEQ(FOR(k, INT(K), IR_SERIAL, SEQ(fill, BLOCK(main, NULL, mine, k))), BLOCK(back, NULL, mine));
    ir_program *p = program(grid(bx, 2, FOR(tx, INT(4), IR_THREAD_X, body)));

    listed(p, s);
    listed(p, acc);
    param(p, a, false);
    param(p, c, true);
    for (int i = 0; i < N * K; i++)
        in[i] = (float)(i * i % 7);
    RUNS(p, F32(in, K, N), F32(out, N));
    for (int i = 0; i < N; i++)
        cr_assert_eq(out[i], in[N - 1 - i] + in[2 * N - 1 - i] + in[3 * N - 1 - i] + in[4 * N - 1 - i]);
}

/* for tx in 0..4 threadIdx.x { for v in 0..2 vthread { S[written] = v*4 + tx; C[v*4 + tx] = S[read] } } */
static ir_program *private_to_virtual_threads(const ir_expr *tx, const ir_expr *v, const ir_expr *written,
                                              const ir_expr *read)
{
    const ir_buffer *s = scoped(BUFFER("S", BASE_F32, INT(8)), IR_SHARED), *c = BUFFER("C", BASE_F32, INT(8));
    const ir_expr *y = VAR("y"), *z = VAR("z"), *from = VAR("from"), *at = ADD(MUL(v, INT(4)), tx);
    const ir_block *fill = block_of("S", ITERS(ITER(y, INT(8), IR_SPATIAL), ITER(z, INT(8), IR_SPATIAL)),
                                    NULL, STORE(s, ir_cast(cx, BASE_F32, z), y));
    const ir_block *use = block_of("C", ITERS(ITER(y, INT(8), IR_SPATIAL), ITER(from, INT(8), IR_SPATIAL)),
                                   NULL, STORE(c, LOAD(s, from), y));
    const ir_stmt *both = SEQ(BLOCK(fill, NULL, written, at), BLOCK(use, NULL, at, read));
    ir_program *p = program(FOR(tx, INT(4), IR_THREAD_X, FOR(v, INT(2), IR_VTHREAD, both)));

    listed(p, s);
    param(p, c, true);
    return p;
}

Test(interp_threads, a_loop_tree_runs_before_virtual_threads_have_copies)
{
    const ir_expr *tx = VAR("tx"), *v = VAR("v");

    RUNS(private_to_virtual_threads(tx, v, tx, ir_sub(cx, INT(3), tx)), F32(out, 8));
    for (int i = 0; i < 8; i++)
        cr_assert_eq(out[i], (float)(i / 4 * 4 + 3 - i % 4));
}

Test(interp_threads, virtual_threads_of_a_loop_tree_must_be_independent)
{
    const ir_expr *tx = VAR("tx"), *v = VAR("v"), *at = ADD(MUL(v, INT(4)), tx);

    FAILS("race: this iteration of the vthread loop 'v' reads 'S'[0], which another iteration wrote",
          private_to_virtual_threads(tx, v, at, tx), F32(out, 8));
}

Test(interp_threads, a_reduction_across_threads_is_summed)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(1));
    const ir_expr *tx = VAR("tx"), *k = VAR("k"), *zero = INT(0), *one = FLT(1);
    const ir_combiner *sum = ir_combiner_named(cx, "sum", BASE_F32, BASE_I64);
    const ir_block *b = block_of("C", ITERS(ITER(k, INT(4), IR_REDUCE_ITER)), STORE(c, FLT(0), zero),
                                 ir_update(cx, sum, &c, &zero, 1, &one));
    ir_program *p = program(FOR(tx, INT(4), IR_THREAD_X, BLOCK(b, NULL, tx)));

    param(p, c, true);
    RUNS(p, F32(out, 1));
    cr_assert_eq(out[0], 4);
}

Test(interp_threads, a_reduction_across_blocks_is_refused_by_name)
{
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(1));
    const ir_expr *tx = VAR("tx"), *k = VAR("k"), *zero = INT(0), *one = FLT(1);
    const ir_combiner *sum = ir_combiner_named(cx, "sum", BASE_F32, BASE_I64);
    const ir_block *b = block_of("C", ITERS(ITER(k, INT(4), IR_REDUCE_ITER)), STORE(c, FLT(0), zero),
                                 ir_update(cx, sum, &c, &zero, 1, &one));
    ir_program *p = program(FOR(tx, INT(4), IR_BLOCK_X, BLOCK(b, NULL, tx)));

    param(p, c, true);
    FAILS("stage 'C': the interpreter does not run a reduction across blockIdx.x ('tx')", p, F32(out, 1));
    cr_assert_eq(tec_context_status(cx), TEC_UNSUPPORTED);
}

/* C[tx] = what the thread tx ^ mask has in A, of n threads, those below `upto` taking part. */
static ir_program *exchange(int n, int mask, int upto)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(256)), *c = BUFFER("C", BASE_F32, INT(256));
    const ir_expr *tx = VAR("tx"), *other = ir_var(cx, "other", BASE_F32), *arg[2] = {LOAD(a, tx), INT(mask)};
    const ir_expr *value = ir_call(cx, BASE_F32, IR_CALL_SHUFFLE, NULL, arg, 2, NULL, 0, false);
    const ir_stmt *take = ir_let_stmt(cx, other, value, STORE(c, other, tx));
    ir_program *p = program(FOR(tx, INT(n), IR_THREAD_X, ir_if(cx, ir_lt(cx, tx, INT(upto)), take, NULL)));

    param(p, a, false);
    param(p, c, false);
    return p;
}

Test(interp_threads, shuffles_bring_what_the_other_thread_gives)
{
    for (int i = 0; i < 256; i++)
        in[i] = (float)(i * 3);
    RUNS(exchange(64, 5, 64), F32(in, 256), F32(out, 256));
    for (int i = 0; i < 64; i++)
        cr_assert_eq(out[i], (float)((i ^ 5) * 3));
    RUNS(exchange(64, 3, 40), F32(in, 256), F32(out, 256));
}

Test(interp_threads, shuffles_from_threads_that_do_not_come_are_reported)
{
    FAILS(
        "divergence: thread (0, 0, 0) comes to the shuffle, the one 8 from it in the warp does not (tx = 0)",
        exchange(64, 8, 8), F32(in, 256), F32(out, 256));
    tec_context_clear(cx);
    FAILS(
        "divergence: thread (4, 0, 0) comes to the shuffle, the one 16 from it in the warp does not (tx = 4)",
        exchange(40, 16, 20), F32(in, 256), F32(out, 256));
    tec_context_clear(cx);
    FAILS(
        "divergence: thread (0, 0, 0) comes to the shuffle, the one 32 from it in the warp does not (tx = 0)",
        exchange(64, 32, 64), F32(in, 256), F32(out, 256));
}

/* C[tx] = what the thread `lane` of the warp has in A, of n threads, those below `upto` taking part. */
static ir_program *named(int n, const ir_expr *tx, const ir_expr *lane, int upto)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(256)), *c = BUFFER("C", BASE_F32, INT(256));
    const ir_expr *other = ir_var(cx, "other", BASE_F32), *arg[2] = {LOAD(a, tx), lane};
    const ir_expr *value = ir_call(cx, BASE_F32, IR_CALL_SHUFFLE_FROM, NULL, arg, 2, NULL, 0, false);
    const ir_stmt *take = ir_let_stmt(cx, other, value, STORE(c, other, tx));
    ir_program *p = program(FOR(tx, INT(n), IR_THREAD_X, ir_if(cx, ir_lt(cx, tx, INT(upto)), take, NULL)));

    param(p, a, false);
    param(p, c, false);
    return p;
}

/* Each thread names another one; the number counts modulo 32, in the thread's own warp. */
Test(interp_threads, shuffles_bring_what_a_named_thread_gives)
{
    const ir_expr *tx = VAR("tx");

    for (int i = 0; i < 256; i++)
        in[i] = (float)(i * 3);
    RUNS(named(64, tx, ir_mul(cx, tx, INT(3)), 64), F32(in, 256), F32(out, 256));
    for (int i = 0; i < 64; i++)
        cr_assert_eq(out[i], (float)((i / 32 * 32 + i * 3 % 32) * 3));
    RUNS(named(64, tx, INT(5), 40), F32(in, 256), F32(out, 256));
    for (int i = 0; i < 40; i++)
        cr_assert_eq(out[i], (float)((i / 32 * 32 + 5) * 3));
    FAILS(
        "divergence: thread (0, 0, 0) comes to the shuffle, the one 9 from it in the warp does not (tx = 0)",
        named(40, tx, INT(9), 8), F32(in, 256), F32(out, 256));
}

/* ---- messages ---- */

/* Stage C under 4 threads: C[at(y)] = A[from(y)], for y = tx. */
static ir_program *stage(const ir_expr *y, const ir_expr *at, const ir_expr *from, const ir_buffer *a)
{
    const ir_expr *tx = VAR("tx");
    const ir_buffer *c = BUFFER("C", BASE_F32, INT(4));
    const ir_block *b = block_of("C", ITERS(ITER(y, INT(4), IR_SPATIAL)), NULL, STORE(c, LOAD(a, from), at));
    ir_program *p = program(FOR(tx, INT(4), IR_THREAD_X, BLOCK(b, NULL, tx)));

    if (a->scope == IR_GLOBAL)
        param(p, a, false);
    else
        listed(p, a);
    param(p, c, false);
    return p;
}

Test(interp_threads, messages_name_the_stage_and_its_index_values)
{
    const ir_expr *y = VAR("y");
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(4)), *s = scoped(BUFFER("S", BASE_F32, INT(4)), IR_SHARED);

    FAILS("stage 'C': race: thread (1, 0, 0) writes 'C'[0], which thread (0, 0, 0) wrote with no barrier "
          "between (y = 1)",
          stage(y, INT(0), y, a), F32(in, 4), F32(out, 4));
    tec_context_clear(cx);
    FAILS("stage 'C': read of 'A' out of bounds: index 0 is 4, extent is 4 (y = 3)",
          stage(y, y, ir_add(cx, y, INT(1)), a), F32(in, 4), F32(out, 4));
    tec_context_clear(cx);
    FAILS("stage 'C': read of 'S'[0], which nothing has written (y = 0)", stage(y, y, y, s), F32(out, 4));
}

/* ---- asynchronous copies ---- */

/* Each of 8 threads copies an element of A to S, and another one takes it: with the given calls between. */
static ir_program *copied(const ir_stmt *between, const ir_stmt *behind)
{
    const ir_buffer *a = BUFFER("A", BASE_F32, INT(8)), *c = BUFFER("C", BASE_F32, INT(8)),
                    *s = scoped(BUFFER("S", BASE_F32, INT(8)), IR_SHARED);
    const ir_expr *tx = VAR("tx");
    const ir_stmt *fetch = ir_attribute(cx, IR_ASYNC_COPY, INT(1), STORE(s, LOAD(a, tx), tx));
    const ir_stmt *take = STORE(c, LOAD(s, ir_sub(cx, INT(7), tx)), tx);
    ir_program *p = program(ir_allocate(
        cx, s,
        FOR(tx, INT(8), IR_THREAD_X, ir_seq(cx, (const ir_stmt *[]){fetch, between, behind, take}, 4))));

    param(p, a, false);
    param(p, c, true);
    return p;
}

static const ir_stmt *ask(const char *name, const ir_expr *arg)
{
    return ir_evaluate(cx, ir_call(cx, BASE_I32, name, NULL, &arg, arg != NULL, NULL, 0, false));
}

Test(interp_threads, asynchronous_copies_are_there_after_a_wait_and_a_barrier)
{
    const ir_stmt *both = SEQ(ask(IR_CALL_WAIT, INT(0)), ask(IR_CALL_BARRIER, ir_string(cx, "shared")));

    for (int i = 0; i < 8; i++)
        in[i] = (float)i;
    RUNS(copied(ask(IR_CALL_COMMIT, NULL), both), F32(in, 8), F32(out, 8));
    for (int i = 0; i < 8; i++)
        cr_assert_eq(out[i], 7 - i);
}

Test(interp_threads, asynchronous_copies_are_reported_before)
{
    const ir_stmt *wait = ask(IR_CALL_WAIT, INT(0)), *one = ask(IR_CALL_WAIT, INT(1)),
                  *commit = ask(IR_CALL_COMMIT, NULL);
    const ir_stmt *meet = ask(IR_CALL_BARRIER, ir_string(cx, "shared"));

    FAILS("read of 'S'[7], whose asynchronous copy was not waited for (tx = 0)", copied(commit, meet),
          F32(in, 8), F32(out, 8));
    tec_context_clear(cx);
    FAILS("read of 'S'[7], whose asynchronous copy was not waited for (tx = 0)", copied(wait, meet),
          F32(in, 8), F32(out, 8));
    tec_context_clear(cx);
    FAILS("read of 'S'[7], whose asynchronous copy was not waited for (tx = 0)",
          copied(commit, SEQ(one, meet)), F32(in, 8), F32(out, 8));
    tec_context_clear(cx);
    FAILS(
        "race: thread (0, 0, 0) reads 'S'[7], which thread (7, 0, 0) wrote with no barrier between (tx = 0)",
        copied(commit, SEQ(meet, wait)), F32(in, 8), F32(out, 8));
}

Test(interp_threads, asynchronous_copies_are_not_written_over)
{
    const ir_buffer *s = scoped(BUFFER("S", BASE_F32, INT(8)), IR_SHARED);
    const ir_expr *tx = VAR("tx");
    const ir_stmt *copy = ir_attribute(cx, IR_ASYNC_COPY, INT(1), STORE(s, FLT(1), tx));

    FAILS("write of 'S'[0], whose asynchronous copy was not waited for (tx = 0)",
          program(ir_allocate(cx, s, FOR(tx, INT(8), IR_THREAD_X, SEQ(copy, STORE(s, FLT(2), tx))))),
          F32(in, 8));
    tec_context_clear(cx);
    FAILS("an asynchronous copy to 'S' where no threads run",
          program(ir_allocate(cx, s, FOR(tx, INT(8), IR_SERIAL, copy))), F32(in, 8));
    tec_context_clear(cx);
    FAILS("asynchronous copies are committed where no threads run", program(ask(IR_CALL_COMMIT, NULL)),
          F32(in, 8));
    tec_context_clear(cx);
    FAILS("a wait for asynchronous copies where no threads run", program(ask(IR_CALL_WAIT, INT(0))),
          F32(in, 8));
    tec_context_clear(cx);
    FAILS("a wait has one argument: the number of groups that may still be under way, a constant",
          program(ask(IR_CALL_WAIT, NULL)), F32(in, 8));
}
