/* compiler/compile.h -- inside the room: what compiling made.
 *
 *     for (int k = 0; k < code->n; k++) use(code->codes[k], &code->functions[k]);
 */
#ifndef COMPILER_COMPILE_H
#define COMPILER_COMPILE_H

#include "compiler/compiler.h"
#include "targets/codegen.h"

struct comp_code {
    comp_options options;
    const target_codegen *codegen; /* of the options' target */
    int n;
    const target **targets;      /* of each unit */
    const target_code **codes;   /* of each unit; NULL where the units were lowered only */
    const char **lowered;        /* texts; NULL where not asked for */
    rt_function_desc *functions; /* in the order of the units */
    rt_module_desc desc;
};

/* The codes of the units that run on the host, or of those that run on a device. */
const target_code **comp_codes(tec_context *cx, const comp_code *code, bool of_device, int *n);

#endif
