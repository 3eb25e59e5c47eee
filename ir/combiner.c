/* ir/combiner.c -- how partial results combine: the named combiners, and the user's own with their checks. */
#include "ir/make.h"

#include <string.h>

/* Running value, new value, result and identity of a component have one type. */
static bool check_component(tec_context *cx, const char *name, const ir_expr *left, const ir_expr *right,
                            const ir_expr *result, const ir_expr *identity)
{
    if (!ir_check_var(cx, "a combiner over", left) || !ir_check_var(cx, "a combiner over", right) ||
        !result || !identity)
        return false;
    if (!base_dtype_same(left->dtype, right->dtype) || !base_dtype_same(left->dtype, result->dtype) ||
        !base_dtype_same(left->dtype, identity->dtype))
        return ir_refuse(cx, "combiner '%s' of %s and %s gives %s and starts from %s: one type is needed",
                         name, ir_shown(cx, left), ir_shown(cx, right), ir_shown(cx, result),
                         ir_shown(cx, identity));
    return true;
}

/* Per component j: left[j] is the running result, right[j] the new element, result[j] their combination and
 * identity[j] the start. `reorders` promises that the order of elements does not matter; combiner_check.c
 * tries whether it may be true. */
const ir_combiner *ir_combiner_new(tec_context *cx, const char *name, int count, const ir_expr *const *left,
                                   const ir_expr *const *right, const ir_expr *const *result,
                                   const ir_expr *const *identity, bool reorders)
{
    const ir_expr **start = base_array(cx, const ir_expr *, count),
                  **end = base_array(cx, const ir_expr *, count);

    for (int i = 0; i < count; i++) {
        if (!left[i])
            return NULL;
        start[i] = ir_adopt(cx, identity[i], left[i]->dtype);
        end[i] = ir_adopt(cx, result[i], left[i]->dtype);
        if (!check_component(cx, name, left[i], right[i], end[i], start[i]))
            return NULL;
    }
    ir_combiner *combiner = base_new(cx, ir_combiner);
    *combiner = (ir_combiner){base_strdup(cx, name),
                              count,
                              ir_copy_exprs(cx, left, count),
                              ir_copy_exprs(cx, right, count),
                              end,
                              start,
                              reorders,
                              base_where(cx)};
    return combiner;
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
static const ir_expr *make_identity(tec_context *cx, const simple *self, base_dtype dtype)
{
    switch (self->identity) {
    case ZERO: return ir_imm_int(cx, dtype, 0);
    case ONE: return ir_imm_int(cx, dtype, 1);
    case LOWEST: return ir_lowest(cx, dtype);
    case HIGHEST: return ir_highest(cx, dtype);
    }
    return NULL;
}

/* Fresh variables for each combiner: its formula is over them. */
static const ir_combiner *make_simple(tec_context *cx, const simple *self, base_dtype dtype)
{
    const ir_expr *x = ir_data_var(cx, "x", dtype), *y = ir_data_var(cx, "y", dtype), *identity;

    if (self->domain == BOOLS ? !base_is_bool(dtype) : !base_is_int(dtype) && !base_is_float(dtype))
        return ir_refuse(cx, "'%s' does not combine %s", self->name, base_dtype_text(cx, dtype));
    identity = make_identity(cx, self, dtype);
    const ir_expr *result = ir_op2(cx, self->op, x, y);
    return ir_combiner_new(cx, self->name, 1, &x, &y, &result, &identity, true);
}

/* Whether right wins over left: it is better, or a NaN where left is none, or equal with a smaller index. An
 * example of argmax: of (3, index 5) and (3, index 2) the second wins, so the result does not depend on the
 * order in which a schedule visits them. */
static const ir_expr *second_wins(tec_context *cx, ir_op better, const ir_expr *const *left,
                                  const ir_expr *const *right)
{
    const ir_expr *wins = ir_op2(cx, better, right[0], left[0]), *ties = ir_eq(cx, right[0], left[0]);

    if (base_is_float(left[0]->dtype)) {
        const ir_expr *x_nan = ir_isnan(cx, left[0]), *y_nan = ir_isnan(cx, right[0]);
        wins = ir_or(cx, wins, ir_and(cx, y_nan, ir_not(cx, x_nan)));
        ties = ir_or(cx, ties, ir_and(cx, y_nan, x_nan));
    }
    return ir_or(cx, wins, ir_and(cx, ties, ir_lt(cx, right[1], left[1])));
}

/* The identity has the worst value and the greatest index, so that every element wins over it. */
static const ir_combiner *make_arg(tec_context *cx, const char *name, ir_op better, base_dtype dtype,
                                   base_dtype index_t)
{
    const ir_expr *x[2] = {ir_data_var(cx, "x", dtype), ir_data_var(cx, "xi", index_t)},
                  *y[2] = {ir_data_var(cx, "y", dtype), ir_data_var(cx, "yi", index_t)};
    bool fits = (base_is_int(dtype) || base_is_float(dtype)) && base_is_int(index_t);

    if (!fits)
        return ir_refuse(cx, "'%s' does not combine %s with an index of type %s", name,
                         base_dtype_text(cx, dtype), base_dtype_text(cx, index_t));
    const ir_expr *second = second_wins(cx, better, x, y);
    const ir_expr *result[2] = {ir_select(cx, second, y[0], x[0]), ir_select(cx, second, y[1], x[1])};
    const ir_expr *identity[2] = {better == IR_LT ? ir_highest(cx, dtype) : ir_lowest(cx, dtype),
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

const ir_combiner *ir_combiner_named(tec_context *cx, const char *name, base_dtype dtype, base_dtype index_t)
{
    for (int i = 0; i < BASE_COUNT(simples); i++)
        if (base_same(simples[i].name, name))
            return make_simple(cx, &simples[i], base_dtype_lanes(dtype, 1));
    if (base_same(name, "argmin"))
        return make_arg(cx, name, IR_LT, base_dtype_lanes(dtype, 1), index_t);
    return base_same(name, "argmax") ? make_arg(cx, name, IR_GT, base_dtype_lanes(dtype, 1), index_t) : NULL;
}
