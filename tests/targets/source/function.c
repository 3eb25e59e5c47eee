/* tests/targets/source/function.c -- the table of operations against the names of functions in kernels. */
#include <criterion/criterion.h>

#include "ir/ir.h"
#include "targets/source/source.h"

/* A vector of floats is printed as an operator, or as a call of a function. */
Test(function, operations_with_vectors_of_floats_have_a_name)
{
    int calls = 0;

    for (ir_op op = IR_REDUCE + 1; op < IR_N_OPS; op++)
        if (ir_ops[op].flags & IR_FLOAT_LANES && op != IR_DIV) {
            cr_assert_not_null(source_function(op), "%s", ir_ops[op].name);
            calls++;
        }
    cr_assert_gt(calls, 20);
}
