/* ir/value.h -- inside ir/: scalar values as the interpreter holds them, and their form in memory.
 *
 *     ir_value v = ir_value_read(BASE_F16, p);                     // v.f is exact
 *     v.f = ir_round_to(BASE_F16, v.f + 1);
 *     ir_value_write(BASE_F16, p, v);
 *
 * Canonical form, which every function here expects and gives: bool 0 or 1; signed ints sign-extended and
 * unsigned ones zero-extended to 64 bits (uint64 as its bits); floats as the double that equals them. Lanes
 * of dtypes are ignored.
 */
#ifndef IR_VALUE_H
#define IR_VALUE_H

#include "ir/eval.h"

/* The evaluator of one row of the operation table; `t` is the dtype of the last operand. False: a zero
 * divisor. */
typedef bool ir_evaluator(base_dtype dtype, const ir_value *arg, ir_value *out);
ir_evaluator *ir_evaluator_of(ir_op op);

bool ir_value_knows(base_dtype dtype); /* bool, ints of 1 to 64 bits, the four float types, handles */

/* `bits` cut to the width of dtype, extended as its sign says; for bool: != 0. */
int64_t ir_wrap(base_dtype dtype, uint64_t bits);
double ir_round_to(base_dtype dtype, double v); /* to the float type dtype, once */

uint64_t ir_value_bits(base_dtype dtype, ir_value value); /* as in memory, zero-extended */
ir_value ir_value_of_bits(base_dtype dtype, uint64_t bits);
ir_value ir_value_read(base_dtype dtype, const void *place); /* one element, unaligned is fine */
void ir_value_write(base_dtype dtype, void *place, ir_value value);

#endif
