/* ops/families.h -- the tables of operators, one for each family's file. */
#ifndef OPS_FAMILIES_H
#define OPS_FAMILIES_H

#include "ops/op.h"

#define OP_FAMILY_LIST(X) X(elementwise) X(activation) X(shape) X(conv) X(conv_packed) X(packing) X(matmul) X(pool) X(reduce) X(norm)
#define X(family) extern const op_family op_##family##_family;
OP_FAMILY_LIST(X)
#undef X

#endif
