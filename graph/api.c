/* graph/api.c -- the public face of graph/: include/tec/graph.h over graph/graph.h and graph/build.h.
 * Importing is in graph/onnx/api.c.
 */
#include "tec/graph.h"

#include <string.h>

#include "base/guard.h"
#include "compiler/options.h"
#include "graph/build.h"
#include "graph/node.h"
#include "te/element.h"

tec_graph *tec_here_graph(tec_graph *graph, const char *file, int line)
{
    if (graph)
        tec_here(graph->cx, file, line);
    return graph;
}

static graph_function *main_of(const tec_graph *graph)
{
    return graph->functions.at[0];
}

/* ---- graphs ---- */

tec_graph *tec_graph_new(tec_context *cx, const char *name)
{
    BASE_GUARD(cx, NULL);
    tec_graph *g = graph_new(cx, name ? name : "main");

    graph_function_new(g, "main");
    return g;
}

const tec_expr *tec_graph_symbol(tec_graph *graph, const char *name)
{
    BASE_GUARD(graph ? graph->cx : NULL, NULL);
    return graph ? graph_symbol(graph, name) : NULL;
}

void tec_graph_fact(tec_graph *graph, const tec_expr *condition)
{
    BASE_GUARD(graph ? graph->cx : NULL, );
    if (graph && condition)
        base_push(graph->cx, &graph->facts, condition);
}

tec_value *tec_graph_input_n(tec_graph *graph, const char *name, tec_dtype dtype,
                             const tec_expr *const *shape, int n)
{
    BASE_GUARD(graph ? graph->cx : NULL, NULL);
    for (int i = 0; graph && i < n; i++)
        if (!shape[i])
            return NULL;
    return graph ? graph_input(main_of(graph), name,
                               (op_type){te_element(dtype), n,
                                         base_copy(graph->cx, shape, (size_t)n * sizeof *shape)})
                 : NULL;
}

void(tec_graph_output)(tec_graph *graph, const char *name, tec_value *value)
{
    BASE_GUARD(graph ? graph->cx : NULL, );
    if (graph)
        graph_output(main_of(graph), name, value);
}

const char *tec_value_type(tec_graph *graph, const tec_value *value)
{
    BASE_GUARD(graph ? graph->cx : NULL, NULL);
    return graph && value ? op_type_text(graph->cx, &value->type) : NULL;
}

static void free_array(void *a)
{
    tec_array_free(a);
}

/* The tensor may have strides: its elements are copied in order, and the caller's memory is not needed
 * afterwards. */
tec_value *(tec_graph_constant)(tec_graph *graph, const char *name, const DLTensor *tensor)
{
    BASE_GUARD(graph ? graph->cx : NULL, NULL);
    tec_error err = {0};
    base_held held;
    tec_array *compact = graph && tensor ? tec_array_copy(tensor, &err) : NULL;

    if (!compact)
        return graph && tensor ? base_fail(graph->cx, err.status, base_where(graph->cx), "constant '%s': %s",
                                           name ? name : "", err.text)
                               : NULL;
    base_hold(graph->cx, &held, free_array, compact);
    op_constant *constant = base_new(graph->cx, op_constant);
    const ir_expr **dim = base_array(graph->cx, const ir_expr *, tensor->ndim);
    for (int i = 0; i < tensor->ndim; i++)
        dim[i] = ir_int(graph->cx, tensor->shape[i]);
    constant->type = (op_type){tensor->dtype, tensor->ndim, dim};
    constant->bytes = tec_tensor_bytes(tec_array_tensor(compact));
    constant->data = base_copy(graph->cx, tec_array_data(compact), (size_t)constant->bytes);
    base_drop(&held);
    return graph_constant(main_of(graph), name, constant);
}

/* ---- operators ---- */

tec_attr tec_attr_int(const char *name, int64_t value)
{
    return (tec_attr){name, TEC_ATTR_INT, 0, {.i = value}};
}
tec_attr tec_attr_float(const char *name, double value)
{
    return (tec_attr){name, TEC_ATTR_FLOAT, 0, {.f = value}};
}
tec_attr tec_attr_string(const char *name, const char *value)
{
    return (tec_attr){name, TEC_ATTR_STRING, 0, {.string = value}};
}
tec_attr tec_attr_ints(const char *name, const int64_t *value, int n)
{
    return (tec_attr){name, TEC_ATTR_INTS, n, {.ints = value}};
}
tec_attr tec_attr_floats(const char *name, const double *value, int n)
{
    return (tec_attr){name, TEC_ATTR_FLOATS, n, {.floats = value}};
}
tec_attr tec_attr_exprs(const char *name, const tec_expr *const *value, int n)
{
    return (tec_attr){name, TEC_ATTR_EXPRS, n, {.exprs = value}};
}
tec_attr tec_attr_dtype(const char *name, tec_dtype value)
{
    return (tec_attr){name, TEC_ATTR_DTYPE, 0, {.dtype = value}};
}

/* Copies the attribute with everything that it points to into the context. */
static op_attr read_attr(tec_context *cx, const tec_attr *attr)
{
    op_attr out = {.name = base_strdup(cx, attr->name), .n = attr->n};
    size_t n = (size_t)attr->n;

    switch (attr->kind) {
    case TEC_ATTR_INT: out.kind = OP_ATTR_INT, out.i = attr->value.i; break;
    case TEC_ATTR_FLOAT: out.kind = OP_ATTR_FLOAT, out.f = attr->value.f; break;
    case TEC_ATTR_STRING: out.kind = OP_ATTR_STRING, out.string = base_strdup(cx, attr->value.string); break;
    case TEC_ATTR_INTS:
        out.kind = OP_ATTR_INTS, out.ints = base_copy(cx, attr->value.ints, n * sizeof *attr->value.ints);
        break;
    case TEC_ATTR_FLOATS:
        out.kind = OP_ATTR_FLOATS,
        out.floats = base_copy(cx, attr->value.floats, n * sizeof *attr->value.floats);
        break;
    case TEC_ATTR_EXPRS:
        out.kind = OP_ATTR_EXPRS, out.exprs = base_copy(cx, attr->value.exprs, n * sizeof *attr->value.exprs);
        break;
    case TEC_ATTR_DTYPE: out.kind = OP_ATTR_DTYPE, out.dtype = te_element(attr->value.dtype); break;
    }
    return out;
}

tec_value *tec_graph_op_n(tec_graph *graph, const char *op, const char *name, tec_attrs attrs,
                          tec_value *const *in, int n)
{
    BASE_GUARD(graph ? graph->cx : NULL, NULL);
    if (!graph)
        return NULL;
    op_attr *list = base_array(graph->cx, op_attr, attrs.n);
    for (int i = 0; i < attrs.n; i++)
        list[i] = read_attr(graph->cx, &attrs.at[i]);
    return graph_add(main_of(graph), op, name, in, n, list, attrs.n);
}

tec_value *tec_graph_result(tec_graph *graph, tec_value *value, int at)
{
    BASE_GUARD(graph ? graph->cx : NULL, NULL);
    if (!graph || !value)
        return NULL;
    if (value->node && at >= 0 && at < value->node->n_out)
        return value->node->out[at];
    return base_fail(graph->cx, TEC_INVALID, base_where(graph->cx), "there is no output %d: %s", at,
                     value->node
                         ? base_format(graph->cx, "'%s' has %d", value->node->name, value->node->n_out)
                         : "this value is not made by an operator");
}

const char *tec_operator_name(int k)
{
    for (int f = 0; f < op_n_families && k >= 0; k -= op_families[f]->n, f++)
        if (k < op_families[f]->n)
            return op_families[f]->rows[k].name;
    return NULL;
}

const char *tec_operator_help(const char *op)
{
    const op_info *info = op_find(op);

    return info ? info->doc : NULL;
}

/* ---- modules ---- */

/* Builds the graph for the target of the options; NULL: an error, which stands in the graph's context. */
static graph_built *build(tec_graph *graph, const tec_build_options *options)
{
    comp_options c;

    if (!graph || base_failed(graph->cx) || !comp_read_options(graph->cx, options, NULL, &c))
        return NULL;
    if (main_of(graph)->body->outputs.n == 0)
        return base_fail(graph->cx, TEC_INVALID, base_where(graph->cx), "graph '%s' has no output",
                         graph->name);
    return graph_build(graph, &(graph_build_options){.target = c.target,
                                                     .jobs = c.jobs,
                                                     .strict = c.strict,
                                                     .dump_dir = c.dump_dir,
                                                     .dispatch = options ? options->dispatch : NULL,
                                                     .source = options ? options->records : NULL});
}

TEC_GIVE tec_module *tec_graph_build(tec_graph *graph, const tec_build_options *options)
{
    BASE_GUARD(graph ? graph->cx : NULL, NULL);
    graph_built *b = build(graph, options);

    return b ? graph_load(b) : NULL;
}

bool tec_graph_build_file(tec_graph *graph, const tec_build_options *options, const char *path)
{
    BASE_GUARD(graph ? graph->cx : NULL, false);
    graph_built *b = build(graph, options);

    return b && graph_write(b, path, comp_write_flags(options));
}
