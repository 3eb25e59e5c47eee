/* graph/onnx/onnx.h -- ONNX models to graphs, and ONNX tensors.
 *
 *     graph_module *m = onnx_import(cx, "model.onnx", &(onnx_options){.n_dims = 1,
 *         .dims = &(onnx_dim){"batch", 8}});
 *     if (!m) puts(tec_context_error(cx));        // every unsupported node, with its name
 *
 * Errors: a damaged file and a wrong model are INVALID; a true model that uses what tec lacks is UNSUPPORTED,
 * with one note for each node. The input is taken for hostile: sizes, depth and counts are limited before
 * anything is allocated.
 * Lifetime: everything is the context's.
 */
#ifndef GRAPH_ONNX_ONNX_H
#define GRAPH_ONNX_ONNX_H

#include "graph/graph.h"

/* A symbolic dimension that gets a value: by its name in the model, or "INPUT.AXIS" where it has none. */
typedef struct {
    const char *name;
    int64_t value;
} onnx_dim;

/* The shape that an input will have: its symbols get those values. */
typedef struct {
    const char *input; /* NULL: by position */
    int position, n;
    const int64_t *shape;
} onnx_shape;

typedef struct {
    int n_dims, n_shapes;
    const onnx_dim *dims;
    const onnx_shape *shapes;
    /* becomes true where a value is given for a dimension that the model does not leave open; NULL: nobody
     * asks */
    bool *unknown_dim;
} onnx_options;

graph_module *onnx_import(tec_context *cx, const char *path, const onnx_options *options);
graph_module *onnx_import_bytes(tec_context *cx, const char *name, const void *data, size_t size,
                                const onnx_options *options);

/* A summary of a model without importing it: counts of operators by type, as text lines "12 Conv". */
const char *onnx_summary(tec_context *cx, const char *path);

/* One tensor file (TensorProto). */
const op_constant *onnx_read_tensor(tec_context *cx, const char *path, const char **name);
bool onnx_write_tensor(tec_context *cx, const char *path, const char *name, const op_constant *constant);

#endif
