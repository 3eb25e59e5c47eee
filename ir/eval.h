/* ir/eval.h -- scalar values, operations of the table on them, and closed expressions.
 *
 *     ir_value v;
 *     if (ir_eval(cx, e, NULL, &v)) -> v.i, or v.f of a float
 */
#ifndef IR_EVAL_H
#define IR_EVAL_H

#include "ir/ir.h"

/* One scalar value; the field is chosen by the dtype: i for bool, int and uint (bits), f for floats (rounded
 * to the dtype). */
typedef union {
    int64_t i;
    double f;
} ir_value;

/* Evaluates an operation of the table on scalars of dtype dtype (that of the last operand); false: a zero
 * divisor. */
bool ir_eval_op(ir_op op, base_dtype dtype, const ir_value *arg, ir_value *out);
ir_value ir_eval_cast(base_dtype from, base_dtype to, ir_value value);
/* A closed scalar expression without loads, variables bound in `vars` (variable -> ir_value *, may be NULL).
 * False, without an error in the context: it is none, or divides by zero. */
bool ir_eval(tec_context *cx, const ir_expr *expr, const base_map *vars, ir_value *out);

#endif
