/* compiler/generators.h -- which code generator makes code for a target.
 *
 *     const target_codegen *g = comp_codegen(t);
 *     if (g->generate) ...                                  // NULL without a generator, as all functions
 */
#ifndef COMPILER_GENERATORS_H
#define COMPILER_GENERATORS_H

#include "targets/codegen.h"

const target_codegen *comp_codegen(const target *machine);

/* Why this machine cannot run code for the target; NULL: it can. For a device that is: it has one of its
 * kind. */
const char *comp_unfit(tec_context *cx, const target *machine);

/* The forms of text that the generators have beside code, each once: "llvm", "asm", ...; ends with NULL. */
const char *const *comp_code_forms(tec_context *cx);

#endif
