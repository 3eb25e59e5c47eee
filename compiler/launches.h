/* compiler/launches.h -- inside the room: what a module says about functions of a device: their launches,
 * and the code that has the kernels.
 *
 *     comp_describe_launches(cx, tree, lowered, symbol, "opencl", &function);
 *     comp_describe_device(cx, code);                                        // code->desc.codes
 *
 * Lifetime: the context's. Errors: false, with one in the context.
 */
#ifndef COMPILER_LAUNCHES_H
#define COMPILER_LAUNCHES_H

#include "compiler/compile.h"

/* The launches of a lowered program, over the symbols of its tree. */
bool comp_describe_launches(tec_context *cx, const ir_program *tree, const ir_program *lowered,
                            const char *symbol, const char *device, rt_function_desc *function);
/* The device code of all units, and its kernels. */
bool comp_describe_device(tec_context *cx, comp_code *code);

#endif
