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

tec_graph *tec_here_graph(tec_graph *g, const char *file, int line)
{
    if (g)
        tec_here(g->cx, file, line);
    return g;
}

static graph_function *main_of(const tec_graph *g)
{
    return g->functions.at[0];
}

/* ---- graphs ---- */

tec_graph *tec_graph_new(tec_context *cx, const char *name)
{
    BASE_GUARD(cx, NULL);
    tec_graph *g = graph_new(cx, name ? name : "main");

    graph_function_new(g, "main");
    return g;
}

const tec_expr *tec_graph_symbol(tec_graph *g, const char *name)
{
    BASE_GUARD(g ? g->cx : NULL, NULL);
    return g ? graph_symbol(g, name) : NULL;
}

void tec_graph_fact(tec_graph *g, const tec_expr *condition)
{
    BASE_GUARD(g ? g->cx : NULL, );
    if (g && condition)
        base_push(g->cx, &g->facts, condition);
}

tec_value *tec_graph_input_n(tec_graph *g, const char *name, tec_dtype t, const tec_expr *const *shape, int n)
{
    BASE_GUARD(g ? g->cx : NULL, NULL);
    for (int i = 0; g && i < n; i++)
        if (!shape[i])
            return NULL;
    return g ? graph_input(main_of(g), name,
                           (op_type){te_element(t), n, base_copy(g->cx, shape, (size_t)n * sizeof *shape)})
             : NULL;
}

void(tec_graph_output)(tec_graph *g, const char *name, tec_value *v)
{
    BASE_GUARD(g ? g->cx : NULL, );
    if (g)
        graph_output(main_of(g), name, v);
}

const char *tec_value_type(tec_graph *g, const tec_value *v)
{
    BASE_GUARD(g ? g->cx : NULL, NULL);
    return g && v ? op_type_text(g->cx, &v->type) : NULL;
}

static void free_array(void *a)
{
    tec_array_free(a);
}

/* The tensor may have strides: its elements are copied in order, and the caller's memory is not needed
 * afterwards. */
tec_value *(tec_graph_constant)(tec_graph *g, const char *name, const DLTensor *t)
{
    BASE_GUARD(g ? g->cx : NULL, NULL);
    tec_error err = {0};
    base_held held;
    tec_array *compact = g && t ? tec_array_copy(t, &err) : NULL;

    if (!compact)
        return g && t ? base_fail(g->cx, err.status, base_where(g->cx), "constant '%s': %s", name ? name : "",
                                  err.text)
                      : NULL;
    base_hold(g->cx, &held, free_array, compact);
    op_constant *c = base_new(g->cx, op_constant);
    const ir_expr **dim = base_array(g->cx, const ir_expr *, t->ndim);
    for (int i = 0; i < t->ndim; i++)
        dim[i] = ir_int(g->cx, t->shape[i]);
    c->type = (op_type){t->dtype, t->ndim, dim};
    c->bytes = tec_tensor_bytes(tec_array_tensor(compact));
    c->data = base_copy(g->cx, tec_array_data(compact), (size_t)c->bytes);
    base_drop(&held);
    return graph_constant(main_of(g), name, c);
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
static op_attr read_attr(tec_context *cx, const tec_attr *a)
{
    op_attr out = {.name = base_strdup(cx, a->name), .n = a->n};
    size_t n = (size_t)a->n;

    switch (a->kind) {
    case TEC_ATTR_INT: out.kind = OP_ATTR_INT, out.i = a->value.i; break;
    case TEC_ATTR_FLOAT: out.kind = OP_ATTR_FLOAT, out.f = a->value.f; break;
    case TEC_ATTR_STRING: out.kind = OP_ATTR_STRING, out.string = base_strdup(cx, a->value.string); break;
    case TEC_ATTR_INTS:
        out.kind = OP_ATTR_INTS, out.ints = base_copy(cx, a->value.ints, n * sizeof *a->value.ints);
        break;
    case TEC_ATTR_FLOATS:
        out.kind = OP_ATTR_FLOATS, out.floats = base_copy(cx, a->value.floats, n * sizeof *a->value.floats);
        break;
    case TEC_ATTR_EXPRS:
        out.kind = OP_ATTR_EXPRS, out.exprs = base_copy(cx, a->value.exprs, n * sizeof *a->value.exprs);
        break;
    case TEC_ATTR_DTYPE: out.kind = OP_ATTR_DTYPE, out.dtype = te_element(a->value.dtype); break;
    }
    return out;
}

tec_value *tec_graph_op_n(tec_graph *g, const char *op, const char *name, tec_attrs attrs,
                          tec_value *const *in, int n)
{
    BASE_GUARD(g ? g->cx : NULL, NULL);
    if (!g)
        return NULL;
    op_attr *list = base_array(g->cx, op_attr, attrs.n);
    for (int i = 0; i < attrs.n; i++)
        list[i] = read_attr(g->cx, &attrs.at[i]);
    return graph_add(main_of(g), op, name, in, n, list, attrs.n);
}

tec_value *tec_graph_result(tec_graph *g, tec_value *v, int k)
{
    BASE_GUARD(g ? g->cx : NULL, NULL);
    if (!g || !v)
        return NULL;
    if (v->node && k >= 0 && k < v->node->n_out)
        return v->node->out[k];
    return base_fail(g->cx, TEC_INVALID, base_where(g->cx), "there is no output %d: %s", k,
                     v->node ? base_format(g->cx, "'%s' has %d", v->node->name, v->node->n_out)
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

static graph_built *build(tec_graph *g, const tec_build_options *options)
{
    comp_options c;

    if (!g || base_failed(g->cx) || !comp_read_options(g->cx, options, NULL, &c))
        return NULL;
    if (main_of(g)->body->outputs.n == 0)
        return base_fail(g->cx, TEC_INVALID, base_where(g->cx), "graph '%s' has no output", g->name);
    return graph_build(g, &(graph_build_options){.target = c.target,
                                                 .jobs = c.jobs,
                                                 .strict = c.strict,
                                                 .dump_dir = c.dump_dir,
                                                 .source = options ? options->records : NULL});
}

TEC_GIVE tec_module *tec_graph_build(tec_graph *g, const tec_build_options *options)
{
    BASE_GUARD(g ? g->cx : NULL, NULL);
    graph_built *b = build(g, options);

    return b ? graph_load(b) : NULL;
}

bool tec_graph_build_file(tec_graph *g, const tec_build_options *options, const char *path)
{
    BASE_GUARD(g ? g->cx : NULL, false);
    graph_built *b = build(g, options);

    return b && graph_write(b, path, comp_write_flags(options));
}
