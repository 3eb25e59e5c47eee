/* ops/table.c -- the families of operators, made from ops/families.def. */
#include "ops/families.h"

const op_family *const op_families[] = {
#define OP_FAMILY(name) &op_##name##_family,
#include "ops/families.def"
};
const int op_n_families = BASE_COUNT(op_families);
