/* tools/dims.h -- `--dim NAME=N`: one grammar for every command that fixes symbolic dimensions.
 *
 *     tool_dims dims;
 *     if (!tool_read_dims("te", &list, &dims)) return TOOL_USAGE;
 *     def = tool_specialise(cx, def, &dims);
 *     if ((name = tool_unused_dim(&dims))) return tool_misuse("te", "--dim %s: nothing has this name", name);
 *
 * NAME is a symbol, or INPUT.AXIS: the dimension AXIS of the input INPUT, counted from 0.
 */
#ifndef TOOLS_DIMS_H
#define TOOLS_DIMS_H

#include "graph/onnx/onnx.h"
#include "te/te.h"
#include "tools/args.h"

typedef struct {
    const char *name;
    int64_t value;
    bool used; /* somebody asked for this name */
} tool_dim;

typedef struct {
    tool_dim *at;
    int n;
    bool unknown; /* what was asked has no dimension of one of the names: wrong usage */
} tool_dims;

/* The values of --dim. False, reported on standard error: a value of another form, an extent below 0, a name
 * given twice. */
bool tool_read_dims(const char *command, const tool_list *list, tool_dims *out);
/* The value of that name, which counts as used from now on; NULL: not given. */
const int64_t *tool_find_dim(tool_dims *dims, const char *name);
/* The first name that nobody asked for; NULL: there is none. */
const char *tool_unused_dim(const tool_dims *dims);

/* The definition with the symbols that the dimensions name replaced by their values. NULL with an error in
 * the context. */
te_def *tool_specialise(tec_context *cx, te_def *def, tool_dims *dims);
/* The dimensions as the ONNX importer takes them, which itself refuses names that the model does not have. */
onnx_options tool_import_options(tec_context *cx, tool_dims *dims);
/* Prints the context's error: TOOL_USAGE where a name was unknown, else TOOL_FAILED. */
int tool_fail_dims(const char *command, tec_context *cx, const tool_dims *dims);

#endif
