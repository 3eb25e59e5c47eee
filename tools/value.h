/* tools/value.h -- values of programs as JSON.
 *
 *     tensor    1.5, [[1, 2], [3, 4]], {"shape": [0, 2], "data": []}, "x.npy"
 *     tuple     [1.5, "x.npy"]
 *     data      {"Node": [{"Leaf": [[1, 2]]}, "Nil"]}; a list, of a type like Nil | Cons(T, List), also [1,
 * 2, 3]
 *
 * Lifetime: values are the caller's. Errors: in the context, with the place in the JSON.
 */
#ifndef TOOLS_VALUE_H
#define TOOLS_VALUE_H

#include "base/base.h"
#include "runtime/format.h"
#include "tec/program.h"

/* A value of that type of the program, from a .json, .npy or .pb file. NULL with an error. */
TEC_GIVE tec_object *tool_read_value(tec_context *cx, tec_program *program, const rt_program_desc *desc,
                                     int32_t type, const char *path);
/* One line of JSON. */
const char *tool_value_text(tec_context *cx, const tec_program *program, const tec_object *object);

#endif
