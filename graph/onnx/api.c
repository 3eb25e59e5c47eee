/* graph/onnx/api.c -- importing of the public API: include/tec/graph.h over graph/onnx/onnx.h. */
#include "base/guard.h"
#include "graph/onnx/onnx.h"
#include "tec/graph.h"

static onnx_options read_options(tec_context *cx, const tec_import_options *options)
{
    int n = options ? options->n_dims : 0;
    onnx_dim *dims = base_array(cx, onnx_dim, n);

    for (int i = 0; i < n; i++)
        dims[i] = (onnx_dim){options->dim[i], options->value[i]};
    return (onnx_options){.dims = dims, .n_dims = n};
}

tec_graph *tec_graph_import(tec_context *cx, const char *path, const tec_import_options *options)
{
    BASE_GUARD(cx, NULL);
    if (!path)
        return base_fail(cx, TEC_INVALID, base_where(cx), "expected the path of a model, found NULL");
    onnx_options o = read_options(cx, options);

    return onnx_import(cx, path, &o);
}

tec_graph *tec_graph_import_bytes(tec_context *cx, const char *name, const void *data, size_t size,
                                  const tec_import_options *options)
{
    BASE_GUARD(cx, NULL);
    if (!data)
        return base_fail(cx, TEC_INVALID, base_where(cx), "expected the bytes of a model, found NULL");
    onnx_options o = read_options(cx, options);

    return onnx_import_bytes(cx, name ? name : "model", data, size, &o);
}
