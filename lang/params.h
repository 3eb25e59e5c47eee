/* lang/params.h -- the values of a program's parameters: the tensors of a .safetensors file by name.
 *
 *     const lang_params *params = lang_params_read(cx, "tree.safetensors");
 *     graph_module *m = lang_parse(cx, "tree.tecp", text, params);
 *
 * Lifetime: the context's. Errors: NULL, with the file's name. Threads: one at a time for each context.
 */
#ifndef LANG_PARAMS_H
#define LANG_PARAMS_H

#include "ops/op.h"

typedef struct lang_params lang_params;

lang_params *lang_params_read(tec_context *cx, const char *path);
/* Parameters that are all zero, whatever their names and types: for who reads types alone. Large ones take no
 * memory. */
lang_params *lang_params_zero(tec_context *cx);
/* NULL with an error at base_where(cx): there is no such tensor, or it has another type. */
const op_constant *lang_param(tec_context *cx, const lang_params *params, const char *name,
                              const op_type *type);

#endif
