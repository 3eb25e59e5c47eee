/* ir/combiner.c -- how partial results combine: the named combiners, and the user's own with their checks. */
#include "ir/make.h"

#include <string.h>

/* Running value, new value, result and identity of a component have one type. */
static bool check_component(tec_context *cx, const char *name, const ir_expr *x, const ir_expr *y,
                            const ir_expr *result, const ir_expr *identity)
{
    if (!ir_check_var(cx, "a combiner over", x) || !ir_check_var(cx, "a combiner over", y) || !result ||
        !identity)
        return false;
    if (!base_dtype_same(x->dtype, y->dtype) || !base_dtype_same(x->dtype, result->dtype) ||
        !base_dtype_same(x->dtype, identity->dtype))
        return ir_refuse(cx, "combiner '%s' of %s and %s gives %s and starts from %s: one type is needed",
                         name, ir_shown(cx, x), ir_shown(cx, y), ir_shown(cx, result),
                         ir_shown(cx, identity));
    return true;
}

/* Per component j: x[j] is the running result, y[j] the new element, result[j] their combination and
 * identity[j] the start. `reorders` promises that the order of elements does not matter; combiner_check.c
 * tries whether it may be true. */
const ir_combiner *ir_combiner_new(tec_context *cx, const char *name, int n, const ir_expr *const *x,
                                   const ir_expr *const *y, const ir_expr *const *result,
                                   const ir_expr *const *identity, bool reorders)
{
    const ir_expr **start = base_array(cx, const ir_expr *, n), **end = base_array(cx, const ir_expr *, n);

    for (int i = 0; i < n; i++) {
        if (!x[i])
            return NULL;
        start[i] = ir_adopt(cx, identity[i], x[i]->dtype);
        end[i] = ir_adopt(cx, result[i], x[i]->dtype);
        if (!check_component(cx, name, x[i], y[i], end[i], start[i]))
            return NULL;
    }
    ir_combiner *c = base_new(cx, ir_combiner);
    *c = (ir_combiner){
        base_strdup(cx, name), n, ir_copy_exprs(cx, x, n), ir_copy_exprs(cx, y, n), end, start, reorders,
        base_where(cx)};
    return c;
}

/* ---- the named ones ---- */

typedef enum { NUMBERS, BOOLS } domain;

typedef struct {
    const char *name;
    ir_op op;
    domain domain;
    enum { ZERO, ONE, LOWEST, HIGHEST } identity;
} simple;

static const simple simples[] = {
    {"sum", IR_ADD, NUMBERS, ZERO},   {"prod", IR_MUL, NUMBERS, ONE}, {"min", IR_MIN, NUMBERS, HIGHEST},
    {"max", IR_MAX, NUMBERS, LOWEST}, {"any", IR_OR, BOOLS, ZERO},    {"all", IR_AND, BOOLS, ONE},
};

/* An example: the identity of min over i32 is 2147483647, over f32 inf. */
static const ir_expr *make_identity(tec_context *cx, const simple *s, base_dtype t)
{
    switch (s->identity) {
    case ZERO: return ir_imm_int(cx, t, 0);
    case ONE: return ir_imm_int(cx, t, 1);
    case LOWEST: return ir_lowest(cx, t);
    case HIGHEST: return ir_highest(cx, t);
    }
    return NULL;
}

/* Fresh variables for each combiner: its formula is over them. */
static const ir_combiner *make_simple(tec_context *cx, const simple *s, base_dtype t)
{
    const ir_expr *x = ir_data_var(cx, "x", t), *y = ir_data_var(cx, "y", t), *identity;

    if (s->domain == BOOLS ? !base_is_bool(t) : !base_is_int(t) && !base_is_float(t))
        return ir_refuse(cx, "'%s' does not combine %s", s->name, base_dtype_text(cx, t));
    identity = make_identity(cx, s, t);
    const ir_expr *result = ir_op2(cx, s->op, x, y);
    return ir_combiner_new(cx, s->name, 1, &x, &y, &result, &identity, true);
}

/* Whether y wins over x: it is better, or a NaN where x is none, or equal with a smaller index. An example of
 * argmax: of (3, index 5) and (3, index 2) the second wins, so the result does not depend on the order in
 * which a schedule visits them. */
static const ir_expr *second_wins(tec_context *cx, ir_op better, const ir_expr *const *x,
                                  const ir_expr *const *y)
{
    const ir_expr *wins = ir_op2(cx, better, y[0], x[0]), *ties = ir_eq(cx, y[0], x[0]);

    if (base_is_float(x[0]->dtype)) {
        const ir_expr *x_nan = ir_isnan(cx, x[0]), *y_nan = ir_isnan(cx, y[0]);
        wins = ir_or(cx, wins, ir_and(cx, y_nan, ir_not(cx, x_nan)));
        ties = ir_or(cx, ties, ir_and(cx, y_nan, x_nan));
    }
    return ir_or(cx, wins, ir_and(cx, ties, ir_lt(cx, y[1], x[1])));
}

/* The identity has the worst value and the greatest index, so that every element wins over it. */
static const ir_combiner *make_arg(tec_context *cx, const char *name, ir_op better, base_dtype t,
                                   base_dtype index_t)
{
    const ir_expr *x[2] = {ir_data_var(cx, "x", t), ir_data_var(cx, "xi", index_t)},
                  *y[2] = {ir_data_var(cx, "y", t), ir_data_var(cx, "yi", index_t)};
    bool fits = (base_is_int(t) || base_is_float(t)) && base_is_int(index_t);

    if (!fits)
        return ir_refuse(cx, "'%s' does not combine %s with an index of type %s", name,
                         base_dtype_text(cx, t), base_dtype_text(cx, index_t));
    const ir_expr *second = second_wins(cx, better, x, y);
    const ir_expr *result[2] = {ir_select(cx, second, y[0], x[0]), ir_select(cx, second, y[1], x[1])};
    const ir_expr *identity[2] = {better == IR_LT ? ir_highest(cx, t) : ir_lowest(cx, t),
                                  ir_highest(cx, index_t)};
    return ir_combiner_new(cx, name, 2, x, y, result, identity, true);
}

bool ir_names_combiner(const char *name)
{
    for (int i = 0; i < BASE_COUNT(simples); i++)
        if (base_same(simples[i].name, name))
            return true;
    return base_same(name, "argmin") || base_same(name, "argmax");
}

const ir_combiner *ir_combiner_named(tec_context *cx, const char *name, base_dtype t, base_dtype index_t)
{
    for (int i = 0; i < BASE_COUNT(simples); i++)
        if (base_same(simples[i].name, name))
            return make_simple(cx, &simples[i], base_dtype_lanes(t, 1));
    if (base_same(name, "argmin"))
        return make_arg(cx, name, IR_LT, base_dtype_lanes(t, 1), index_t);
    return base_same(name, "argmax") ? make_arg(cx, name, IR_GT, base_dtype_lanes(t, 1), index_t) : NULL;
}
