/* ops/families.h -- inside the room: the tables of operators, one for each family's file. */
#ifndef OPS_FAMILIES_H
#define OPS_FAMILIES_H

#include "ops/op.h"

#define OP_FAMILY(name) extern const op_family op_##name##_family;
#include "ops/families.def"

#endif
