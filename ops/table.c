/* ops/table.c -- the families of operators: a new one is a name in OP_FAMILY_LIST (ops/families.h). */
#include "ops/families.h"

#define X(family) &op_##family##_family,
const op_family *const op_families[] = {OP_FAMILY_LIST(X)};
#undef X
const int op_n_families = BASE_COUNT(op_families);
