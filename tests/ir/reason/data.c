/* tests/ir/reason/data.c -- int64 data wraps: no simplification, proof, bound or residue may take it for
 * index arithmetic.
 *
 * Random expressions over data with extreme values, narrow data, and loop variables; ir_eval is the oracle.
 */
#include <criterion/criterion.h>

#include "ir/eval.h"
#include "ir/reason/reason.h"
#include "ir/text.h"
#include "ir/value.h"
#include "tests/ir/reason/points.h"

enum { X, Y, W, I, N, N_DATA_VARS };

typedef struct {
    tec_context *cx;
    ir_facts *f;
    const ir_expr *var[N_DATA_VARS];
    uint64_t seed;
} data_world;

static const int64_t extremes[] = {INT64_MIN,
                                   INT64_MAX,
                                   INT64_MIN + 1,
                                   INT64_MAX - 1,
                                   INT64_MIN / 2,
                                   INT64_MAX / 2,
                                   (int64_t)1 << 62,
                                   -7,
                                   -1,
                                   0,
                                   1,
                                   5,
                                   8};
static const int64_t divisors[] = {2, 3, 4, 7, 8, 12, -1, -2, -5, -7, -8, INT64_MIN, INT64_MAX};

static data_world new_world(tec_context *cx, uint64_t seed)
{
    data_world w = {.cx = cx, .f = ir_facts_new(cx, NULL), .seed = seed};

    w.var[X] = ir_data_var(cx, "X", BASE_I64);
    w.var[Y] = ir_data_var(cx, "Y", BASE_I64);
    w.var[W] = ir_data_var(cx, "W", BASE_I32);
    w.var[N] = ir_var(cx, "n", BASE_I64);
    w.var[I] = ir_var(cx, "i", BASE_I64);
    ir_facts_assume(w.f, ir_ge(cx, w.var[N], ir_int(cx, 1)));
    ir_facts_range(w.f, w.var[I], ir_int(cx, 0), w.var[N]);
    return w;
}

static int64_t draw_from(data_world *w, const int64_t *list, int n)
{
    return list[base_random_below(&w->seed, n)];
}

static base_map draw_point(data_world *w)
{
    base_map vars = {0};
    int64_t n = between(&w->seed, 1, 9);
    const int64_t value[] = {draw_from(w, extremes, BASE_COUNT(extremes)),
                             draw_from(w, extremes, BASE_COUNT(extremes)),
                             base_random_below(&w->seed, 3)   ? between(&w->seed, -20, 20)
                             : base_random_below(&w->seed, 2) ? INT32_MIN
                                                              : INT32_MAX,
                             between(&w->seed, 0, n - 1), n};

    for (int i = 0; i < N_DATA_VARS; i++) {
        ir_value *v = base_new(w->cx, ir_value);
        v->i = value[i];
        base_map_put(w->cx, &vars, w->var[i], v);
    }
    return vars;
}

static const ir_expr *draw(data_world *w, int depth);

static const ir_expr *draw_leaf(data_world *w)
{
    switch (base_random_below(&w->seed, 10)) {
    case 0:
    case 1:
    case 2: return w->var[X];
    case 3: return w->var[Y];
    case 4:
    case 5: return ir_cast(w->cx, BASE_I64, w->var[W]);
    case 6: return w->var[I];
    case 7: return w->var[N];
    case 8: return ir_int(w->cx, draw_from(w, extremes, BASE_COUNT(extremes)));
    default: return ir_int(w->cx, between(&w->seed, -7, 12));
    }
}

static const ir_expr *draw_condition(data_world *w, int depth)
{
    static const ir_op compares[] = {IR_EQ, IR_NE, IR_LT, IR_LE, IR_GT, IR_GE};

    if (depth > 1 && base_random_below(&w->seed, 4) == 0)
        return raw(w->cx, base_random_below(&w->seed, 2) ? IR_AND : IR_OR, draw_condition(w, depth - 1),
                   draw_condition(w, depth - 1));
    return raw(w->cx, compares[base_random_below(&w->seed, BASE_COUNT(compares))], draw(w, depth - 1),
               draw(w, depth - 1));
}

static const ir_expr *draw_let(data_world *w, int depth)
{
    const ir_expr *value = draw(w, depth - 1), *kept = w->var[X];

    w->var[X] = ir_let_var(w->cx, "t", value);
    const ir_expr *body = draw(w, depth - 1), *var = w->var[X];
    w->var[X] = kept;
    return ir_let(w->cx, var, value, body);
}

static const ir_expr *draw(data_world *w, int depth)
{
    static const ir_op two[] = {IR_ADD, IR_ADD, IR_SUB,    IR_SUB, IR_MUL,
                                IR_MIN, IR_MAX, IR_BITAND, IR_SHR, IR_SHL};
    static const ir_op divisions[] = {IR_FLOORDIV, IR_FLOORMOD, IR_DIV, IR_MOD};
    tec_context *cx = w->cx;

    if (depth <= 0)
        return draw_leaf(w);
    switch (base_random_below(&w->seed, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        return raw(cx, two[base_random_below(&w->seed, BASE_COUNT(two))], draw(w, depth - 1),
                   draw(w, depth - 1));
    case 4:
    case 5: return raw(cx, IR_MUL, draw(w, depth - 1), ir_int(cx, between(&w->seed, -4, 12)));
    case 6:
    case 7:
    case 8:
        return raw(cx, divisions[base_random_below(&w->seed, BASE_COUNT(divisions))], draw(w, depth - 1),
                   ir_int(cx, draw_from(w, divisors, BASE_COUNT(divisors))));
    case 9: return raw(cx, base_random_below(&w->seed, 2) ? IR_NEG : IR_ABS, draw(w, depth - 1), NULL);
    case 10:
        return base_random_below(&w->seed, 3)
                   ? ir_select(cx, draw_condition(w, depth - 1), draw(w, depth - 1), draw(w, depth - 1))
                   : draw_let(w, depth);
    default:
        return ir_cast(
            cx, BASE_I64,
            ir_cast(cx, base_random_below(&w->seed, 2) ? BASE_I32 : BASE_BOOL, draw(w, depth - 1)));
    }
}

static void check_point(data_world *w, const ir_expr *e, const ir_expr *r)
{
    base_map vars = draw_point(w);
    ir_value before, after;

    if (!ir_eval(w->cx, e, &vars, &before)) {
        tec_context_clear(w->cx);
        return;
    }
    cr_assert(ir_eval(w->cx, r, &vars, &after), "%s => %s fails", ir_expr_text(w->cx, e),
              ir_expr_text(w->cx, r));
    cr_assert(before.i == after.i, "%s => %s: %lld became %lld", ir_expr_text(w->cx, e),
              ir_expr_text(w->cx, r), (long long)before.i, (long long)after.i);
    if (ir_is_flag(e)) {
        cr_assert(before.i || !ir_prove(w->f, e), "'%s' was proven", ir_expr_text(w->cx, e));
        return;
    }
    ir_interval b = ir_bounds(w->f, e);
    ir_modular m = ir_modulus(w->f, e);
    cr_assert(b.min <= before.i && before.i <= b.max, "%s is %lld, outside of %lld..%lld",
              ir_expr_text(w->cx, e), (long long)before.i, (long long)b.min, (long long)b.max);
    cr_assert(m.coefficient == 0 ? before.i == m.base : ir_floormod_int(before.i, m.coefficient) == m.base,
              "%s is %lld, not %lld mod %lld", ir_expr_text(w->cx, e), (long long)before.i, (long long)m.base,
              (long long)m.coefficient);
}

Test(data, keeps_its_value_whatever_wraps)
{
    int n = cases(6000, 400000);

    for (int i = 0; i < n; i++) {
        tec_context *cx = tec_context_new();
        data_world w = new_world(cx, (uint64_t)i * 7919 + 3);
        const ir_expr *e = i % 3 ? draw(&w, 1 + i % 4) : draw_condition(&w, 1 + i % 4),
                      *r = ir_simplify(w.f, e);

        cr_assert(r && (ir_is_index(e) || ir_is_flag(e)), "%s", tec_context_error(cx));
        for (int p = 0; p < 24; p++)
            check_point(&w, e, r);
        tec_context_free(cx);
    }
}

/* X - X is 0, and X - X + i is i: an index, but what is divided by it was data, so that 0 gives 0. */
Test(data, is_divided_by_what_cancels)
{
    static const ir_op divisions[] = {IR_FLOORDIV, IR_FLOORMOD, IR_DIV, IR_MOD};

    for (int k = 0; k < BASE_COUNT(divisions); k++) {
        tec_context *cx = tec_context_new();
        data_world w = new_world(cx, 5);
        const ir_expr *zero = raw(cx, IR_SUB, w.var[X], w.var[X]), *index = raw(cx, IR_ADD, zero, w.var[I]);
        const ir_expr *by_zero = ir_simplify(w.f, raw(cx, divisions[k], ir_int(cx, -1), zero)),
                      *by_index = ir_simplify(w.f, raw(cx, divisions[k], w.var[N], index));

        cr_assert(ir_alike(by_zero, ir_int(cx, 0)), "%s", ir_expr_text(cx, by_zero));
        cr_assert(by_index->op == IR_SELECT &&
                      ir_alike(by_index->arg[0], ir_eq(cx, w.var[I], ir_int(cx, 0))) &&
                      ir_alike(by_index->arg[1], ir_int(cx, 0)) && by_index->arg[2]->op == divisions[k],
                  "%s", ir_expr_text(cx, by_index));
        tec_context_free(cx);
    }
}
