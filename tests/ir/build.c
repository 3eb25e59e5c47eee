/* tests/ir/build.c -- constructors: folds of ints, no folds of floats, conversions, and the message of every
 * refusal. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#include "ir/build.h"
#include "ir/text.h"
#include "ir/walk.h"

static tec_context *cx;
static const ir_expr *i, *j, *f, *g, *p, *small;
static const ir_buffer *A;

static void setup(void)
{
    cx = tec_context_new();
    i = ir_var(cx, "i", BASE_I64);
    j = ir_var(cx, "j", BASE_I64);
    f = ir_var(cx, "f", BASE_F32);
    g = ir_var(cx, "g", BASE_F32);
    p = ir_var(cx, "p", BASE_BOOL);
    small = ir_var(cx, "small", BASE_I8);
    A = ir_buffer_new(cx, "A", BASE_F32, (const ir_expr *[]){i, j}, 2);
}

static void teardown(void)
{
    tec_context_free(cx);
}

TestSuite(build, .init = setup, .fini = teardown);

static void check(const ir_expr *e, const char *text)
{
    cr_expect(eq(str, (char *)ir_expr_text(cx, e), (char *)text), "%s", tec_context_error(cx));
}

static void check_refused(const void *node, const char *message)
{
    cr_expect(node == NULL);
    cr_expect(eq(str, (char *)tec_context_error(cx), (char *)message));
    cr_expect(tec_context_status(cx) == TEC_INVALID);
    tec_context_clear(cx);
}

Test(build, folds_identities_of_integers)
{
    const ir_expr *zero = ir_int(cx, 0), *one = ir_int(cx, 1);

    cr_expect(ir_add(cx, i, zero) == i);
    cr_expect(ir_add(cx, zero, i) == i);
    cr_expect(ir_sub(cx, i, zero) == i);
    cr_expect(ir_mul(cx, i, one) == i);
    cr_expect(ir_mul(cx, one, i) == i);
    cr_expect(ir_floordiv(cx, i, one) == i);
    cr_expect(ir_ceildiv(cx, i, one) == i);
    cr_expect(ir_min(cx, i, i) == i);
    cr_expect(ir_neg(cx, ir_neg(cx, i)) == i);
    check(ir_mul(cx, i, zero), "0");
    check(ir_sub(cx, i, i), "0");
    check(ir_sub(cx, zero, i), "-i");
    check(ir_floormod(cx, i, one), "0");
    check(ir_le(cx, i, i), "true");
    check(ir_ceildiv(cx, i, ir_int(cx, 12)), "floordiv(i + 11, 12)");
}

Test(build, folds_constants_as_the_evaluator_computes_them)
{
    check(ir_add(cx, ir_int(cx, 2), ir_int(cx, 3)), "5");
    check(ir_floordiv(cx, ir_int(cx, -7), ir_int(cx, 2)), "-4");
    check(ir_div(cx, ir_int(cx, -7), ir_int(cx, 2)), "-3");
    check(ir_floormod(cx, ir_int(cx, -7), ir_int(cx, 2)), "1");
    check(ir_add(cx, ir_imm_int(cx, BASE_I8, 127), ir_imm_int(cx, BASE_I8, 1)), "i8(-128)");
    check(ir_lt(cx, ir_int(cx, 2), ir_int(cx, 3)), "true");
    check(ir_div(cx, ir_int(cx, 1), ir_int(cx, 0)), "1 / 0");
    check(ir_cast(cx, BASE_I8, ir_imm(cx, BASE_F32, 300)), "i8(127)");
    check(ir_cast(cx, BASE_F16, ir_int(cx, 3)), "f16(3.0)");
    check(ir_add(cx, ir_imm_int(cx, base_dtype_lanes(BASE_I32, 4), 1), ir_imm_int(cx, BASE_I32, 2)),
          "broadcast(i32(3), 4)");
}

Test(build, folds_logic_and_selections)
{
    const ir_expr *yes = ir_bool(cx, true), *no = ir_bool(cx, false);

    cr_expect(ir_and(cx, p, yes) == p);
    cr_expect(ir_or(cx, no, p) == p);
    cr_expect(ir_not(cx, ir_not(cx, p)) == p);
    cr_expect(ir_select(cx, yes, f, g) == f);
    cr_expect(ir_select(cx, no, f, g) == g);
    cr_expect(ir_select(cx, p, f, f) == f);
    cr_expect(ir_all(cx, NULL, p) == p);
    check(ir_and(cx, p, no), "false");
    check(ir_or(cx, p, yes), "true");
}

Test(build, leaves_floats_alone)
{
    const ir_expr *zero = ir_imm(cx, BASE_F32, 0);

    check(ir_add(cx, f, zero), "f + 0.0");
    check(ir_mul(cx, f, zero), "f * 0.0");
    check(ir_sub(cx, f, f), "f - f");
    check(ir_eq(cx, f, f), "f == f");
    check(ir_min(cx, f, f), "min(f, f)");
    check(ir_add(cx, ir_imm(cx, BASE_F32, 1), ir_imm(cx, BASE_F32, 2)), "1.0 + 2.0");
    check(ir_neg(cx, ir_imm(cx, BASE_F32, 1.5)), "-1.5");
}

Test(build, keeps_what_has_an_effect)
{
    const ir_expr *call = ir_call(cx, BASE_I64, "tick", NULL, NULL, 0, NULL, 0, false);
    const ir_expr *pure = ir_call(cx, BASE_I64, "tock", NULL, NULL, 0, NULL, 0, true);

    check(ir_mul(cx, call, ir_int(cx, 0)), "call<i64> tick() * 0");
    check(ir_sub(cx, call, call), "call<i64> tick() - call<i64> tick()");
    check(ir_mul(cx, pure, ir_int(cx, 0)), "0");
}

Test(build, gives_bare_integers_the_type_beside_them)
{
    check(ir_add(cx, f, ir_int(cx, 2)), "f + 2.0");
    check(ir_lt(cx, ir_int(cx, 2), small), "i8(2) < small");
    check(ir_fma(cx, ir_int(cx, 2), f, ir_int(cx, 1)), "fma(2.0, f, 1.0)");
    check(ir_select(cx, p, ir_int(cx, 2), f), "select(p, 2.0, f)");
    check(ir_add(cx, ir_broadcast(cx, f, 4), g), "broadcast(f, 4) + broadcast(g, 4)");
    check_refused(ir_add(cx, small, ir_int(cx, 300)),
                  "error: '+' of 'small' (i8) and '300' (i64): the operands must have one type");
    check_refused(ir_add(cx, f, ir_int(cx, 16777217)),
                  "error: '+' of 'f' (f32) and '16777217' (i64): the operands must have one type");
}

Test(build, names_the_operation_and_both_types)
{
    check_refused(ir_add(cx, f, i), "error: '+' of 'f' (f32) and 'i' (i64): the operands must have one type");
    check_refused(ir_add(cx, p, p), "error: '+' of 'p' (bool) and 'p' (bool): numbers are needed");
    check_refused(ir_and(cx, i, j), "error: '&&' of 'i' (i64) and 'j' (i64): bools are needed");
    check_refused(ir_bitand(cx, f, g), "error: '&' of 'f' (f32) and 'g' (f32): integers are needed");
    check_refused(ir_sqrt(cx, i), "error: 'sqrt' of 'i' (i64): floats are needed");
    check_refused(ir_select(cx, i, f, g),
                  "error: 'select' of 'i' (i64), 'f' (f32) and 'g' (f32): the condition must be bool");
    check_refused(ir_add(cx, ir_broadcast(cx, f, 4), ir_broadcast(cx, f, 8)),
                  "error: '+' of 'broadcast(f, 4)' (f32x4) and 'broadcast(f, 8)' (f32x8): the operands must "
                  "have one number of lanes");
}

Test(build, stands_at_the_callers_line)
{
    ir_at(cx, (base_loc){.file = "conv.c", .line = 41});
    check_refused(ir_add(cx, f, i),
                  "conv.c:41: error: '+' of 'f' (f32) and 'i' (i64): the operands must have one type");
    cr_expect(ir_add(cx, i, j)->loc.line == 41);
}

Test(build, checks_accesses)
{
    check_refused(ir_load(cx, A, (const ir_expr *[]){i, j, i}, 3),
                  "error: 'A' has 2 dimensions, and 3 indices are given");
    check_refused(ir_load(cx, A, (const ir_expr *[]){i, f}, 2),
                  "error: index 2 of 'A' is 'f' (f32): an integer is needed");
    check_refused(ir_load_masked(cx, A, (const ir_expr *[]){i, j}, 2, i),
                  "error: the mask of 'A' is 'i' (i64): bool is needed");
    check_refused(ir_store(cx, A, i, (const ir_expr *[]){i, j}, 2),
                  "error: 'i' (i64) is stored in 'A': f32 is needed");
    const ir_expr *wide[2] = {i, ir_ramp(cx, j, ir_int(cx, 1), 8)};
    cr_expect(ir_load(cx, A, wide, 2)->dtype.lanes == 8);
    cr_expect(eq(str, (char *)ir_stmt_text(cx, ir_store(cx, A, f, wide, 2)),
                 "A[i, ramp(j, 1, 8)] = broadcast(f, 8)\n"));
}

Test(build, checks_statements)
{
    const ir_stmt *nothing = ir_nothing(cx);

    check_refused(ir_for(cx, f, ir_int(cx, 0), i, IR_SERIAL, nothing),
                  "error: a loop over 'f' (f32) starts at '0.0' (f32) with extent 'i' (i64): integers of one "
                  "type are needed");
    check_refused(ir_if(cx, i, nothing, NULL), "error: 'if' of 'i' (i64): a bool is needed");
    check_refused(ir_let_stmt(cx, f, i, nothing), "error: 'let' gives 'f' (f32) the value 'i' (i64)");
    check_refused(ir_reinterpret(cx, BASE_I64, f),
                  "error: cannot reinterpret 'f' (f32) as i64: the number of bits differs");
    cr_expect(ir_for(cx, i, ir_int(cx, 0), j, IR_SERIAL, NULL) == NULL);
    cr_expect(tec_context_status(cx) == TEC_OK);
}

Test(build, flattens_sequences)
{
    const ir_stmt *a = ir_evaluate(cx, i), *b = ir_evaluate(cx, j), *ab = ir_seq2(cx, a, b);
    const ir_stmt *all = ir_seq(cx, (const ir_stmt *[]){ab, ir_nothing(cx), ab}, 3);

    cr_expect(all->kind == IR_SEQ && all->seq.n == 4);
    cr_expect(ir_seq(cx, &a, 1) == a);
    cr_expect(ir_seq2(cx, ir_nothing(cx), a) == a);
}

Test(build, keeps_notes_sorted_and_single)
{
    const ir_note *n = ir_note_set(cx, ir_note_set(cx, ir_note_set(cx, NULL, "b", i), "c", i), "a", j);

    n = ir_note_set(cx, n, "b", j);
    cr_expect(base_same(n->key, "a") && base_same(n->next->key, "b") && base_same(n->next->next->key, "c"));
    cr_expect(ir_note_get(n, "b") == j);
    n = ir_note_set(cx, n, "b", NULL);
    cr_expect(ir_note_get(n, "b") == NULL && base_same(n->next->key, "c"));
}

/* The texts of the conjuncts of e, each in brackets. */
static const char *conjuncts(const ir_expr *e, ir_hints hints)
{
    base_vec all = {0};
    const char *text = "";

    ir_conjuncts(cx, e, hints, &all);
    for (int n = 0; n < all.n; n++)
        text = base_format(cx, "%s[%s]", text, ir_expr_text(cx, all.at[n]));
    return text;
}

Test(build, takes_conditions_apart_and_puts_them_together)
{
    const ir_expr *a = ir_lt(cx, i, j), *b = ir_lt(cx, j, i), *c = ir_eq(cx, i, ir_int(cx, 3));
    const ir_expr *hint = ir_likely(cx, ir_and(cx, b, c)), *either = ir_or(cx, a, b);

    cr_assert(eq(str, (char *)conjuncts(NULL, IR_KEEP_LIKELY), ""));
    cr_assert(eq(str, (char *)conjuncts(ir_bool(cx, true), IR_DROP_LIKELY), ""));
    cr_assert(eq(str, (char *)conjuncts(ir_bool(cx, false), IR_KEEP_LIKELY), "[false]"));
    cr_assert(eq(str, (char *)conjuncts(either, IR_DROP_LIKELY), "[i < j || j < i]"));
    cr_assert(eq(str, (char *)conjuncts(ir_and(cx, a, ir_and(cx, b, c)), IR_KEEP_LIKELY),
                 "[i < j][j < i][i == 3]"));
    cr_assert(
        eq(str, (char *)conjuncts(ir_and(cx, a, hint), IR_KEEP_LIKELY), "[i < j][likely(j < i && i == 3)]"));
    cr_assert(eq(str, (char *)conjuncts(ir_and(cx, a, hint), IR_DROP_LIKELY), "[i < j][j < i][i == 3]"));

    base_vec all = {0};
    cr_assert(zero(ptr, (void *)ir_conjoin(cx, &all)));
    ir_conjuncts(cx, ir_and(cx, a, hint), IR_DROP_LIKELY, &all);
    cr_assert(eq(str, (char *)ir_expr_text(cx, ir_conjoin(cx, &all)), "i < j && j < i && i == 3"));
}

Test(build, makes_the_named_combiners)
{
    static const char *const arithmetic[] = {"sum", "prod", "min", "max", "argmin", "argmax"};

    for (int k = 0; k < BASE_COUNT(arithmetic); k++) {
        const ir_combiner *c = ir_combiner_named(cx, arithmetic[k], BASE_F16, BASE_I64);
        cr_expect(c != NULL && c->reorders && ir_combiner_is_named(cx, c), "%s", arithmetic[k]);
    }
    check(ir_combiner_named(cx, "max", BASE_F32, BASE_I64)->identity[0], "f32(-inf)");
    check(ir_combiner_named(cx, "min", BASE_I8, BASE_I64)->identity[0], "i8(127)");
    check(ir_combiner_named(cx, "max", BASE_U8, BASE_I64)->identity[0], "u8(0)");
    check(ir_combiner_named(cx, "argmax", BASE_I32, BASE_I64)->result[1],
          "select(y > x || y == x && yi < xi, yi, xi)");
    cr_expect(ir_combiner_named(cx, "median", BASE_F32, BASE_I64) == NULL);
    cr_expect(tec_context_status(cx) == TEC_OK);
    check_refused(ir_combiner_named(cx, "any", BASE_F32, BASE_I64), "error: 'any' does not combine f32");
}
