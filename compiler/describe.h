/* compiler/describe.h -- inside the room: the metadata of one function.
 *
 *     rt_function_desc f;
 *     if (!comp_describe(cx, unit, lowered, NULL, "tec_k0_mm", &f)) return NULL;
 */
#ifndef COMPILER_DESCRIBE_H
#define COMPILER_DESCRIBE_H

#include "compiler/compiler.h"

/* version: the lowered versions of unit->dispatch, in its order. */
bool comp_describe(tec_context *cx, const comp_unit *unit, const ir_program *lowered,
                   const ir_program *const *version, const char *symbol, rt_function_desc *out);

#endif
