/* ops/toy.c -- a family with one operator. */
#include "ops/elementwise.h"
#include "ops/families.h"

static const ir_expr *square(const op_call *c, const ir_expr *const *a)
{
    return ir_mul(c->cx, a[0], a[0]);
}

static const op_info rows[] = {
    {.name = "toy_square", OP_POINTWISE(1, square), .doc = "a * a"},
};
const op_family op_toy_family = {rows, BASE_COUNT(rows)};
