/* fuzz/programs/values.h -- inside the room: inputs of programs, and results compared.
 *
 * A value of the interpreter is made first; the VM gets a copy. Lifetime: the context's; the objects of the
 * VM are the caller's.
 */
#ifndef FUZZ_PROGRAMS_VALUES_H
#define FUZZ_PROGRAMS_VALUES_H

#include "graph/interp/interp.h"
#include "tec/program.h"

enum { FUZZ_MAX_VALUES = 8 };

/* For `main` five inputs, for "drawn" seven; gives their number. */
int fuzz_program_inputs(tec_context *cx, uint64_t *state, const graph_module *module, bool drawn,
                        interp_value **in);
/* The same value for the VM; NULL with an error. */
tec_object *fuzz_object(tec_program *program, const interp_value *value, tec_error *err);
/* Shapes and integers are equal, floats are close. */
bool fuzz_same_value(const tec_program *program, const interp_value *value, const tec_object *object);

#endif
