/* graph/type.c -- see type.h. */
#include "graph/type.h"

#include "graph/node.h"
#include "ir/text.h"

/* ---- making ---- */

graph_type graph_tensor_type(const op_type *type)
{
    return (graph_type){.kind = GRAPH_TENSOR, .tensor = *type};
}

graph_type graph_tuple_type(tec_context *cx, const graph_type *part, int n)
{
    return (graph_type){.kind = GRAPH_TUPLE, .n = n, .part = base_copy(cx, part, (size_t)n * sizeof *part)};
}

graph_type graph_data_type(const char *name)
{
    return (graph_type){.kind = GRAPH_DATA, .data = name};
}

graph_type graph_type_of(const graph_value *value)
{
    return value->compound ? *value->compound : graph_tensor_type(&value->type);
}

graph_value *graph_typed_value(tec_context *cx, const char *name, const graph_type *type)
{
    if (type->kind == GRAPH_TENSOR)
        return graph_value_new(cx, name, type->tensor);
    graph_value *v = graph_value_new(cx, name, (op_type){.dtype = BASE_HANDLE, .n = -1});

    v->compound = base_copy(cx, type, sizeof *type);
    return v;
}

graph_value *graph_typed_input(graph_function *function, const char *name, const graph_type *type)
{
    graph_value *v = graph_typed_value(function->module->cx, name, type);

    base_push(function->module->cx, &function->body->inputs, v);
    return v;
}

/* ---- asking ---- */

bool graph_types_same(const ir_facts *facts, const graph_type *left, const graph_type *right)
{
    if (left->kind != right->kind || left->n != right->n || left->n_params != right->n_params)
        return false;
    if (left->kind == GRAPH_TENSOR)
        return graph_same_type(facts, &left->tensor, &right->tensor);
    if (left->kind == GRAPH_DATA)
        return base_same(left->data, right->data);
    for (int i = 0; i < left->n; i++)
        if (!graph_types_same(facts, &left->part[i], &right->part[i]))
            return false;
    return true;
}

bool graph_type_each(const graph_type *t, bool (*tensor)(void *user, const op_type *type), void *user)
{
    if (t->kind == GRAPH_TENSOR)
        return tensor(user, &t->tensor);
    for (int i = 0; i < t->n; i++)
        if (!graph_type_each(&t->part[i], tensor, user))
            return false;
    return true;
}

static void add_type(tec_context *cx, base_text *out, const graph_type *type);

static void add_types(tec_context *cx, base_text *out, const graph_type *part, int n)
{
    base_add(cx, out, "(");
    for (int i = 0; i < n; i++) {
        base_add(cx, out, i ? ", " : "");
        add_type(cx, out, &part[i]);
    }
    base_add(cx, out, ")");
}

static void add_type(tec_context *cx, base_text *out, const graph_type *type)
{
    switch (type->kind) {
    case GRAPH_TENSOR: base_add(cx, out, op_type_text(cx, &type->tensor)); return;
    case GRAPH_DATA: base_add(cx, out, ir_expr_text(cx, ir_string(cx, type->data))); return;
    case GRAPH_TUPLE: add_types(cx, out, type->part, type->n); return;
    case GRAPH_FUNCTION:
        base_add(cx, out, "fn");
        add_types(cx, out, type->part, type->n_params);
        base_add(cx, out, " -> ");
        add_types(cx, out, type->part + type->n_params, type->n - type->n_params);
        return;
    }
}

const char *graph_type_text(tec_context *cx, const graph_type *type)
{
    base_text out = {0};

    add_type(cx, &out, type);
    return base_text_str(cx, &out);
}

/* ---- data types ---- */

const graph_data *graph_find_data(const graph_module *module, const char *name)
{
    for (int i = 0; i < module->data.n; i++)
        if (base_same(((const graph_data *)module->data.at[i])->name, name))
            return module->data.at[i];
    return NULL;
}

const graph_case *graph_find_case(const graph_data *data, const char *name, int *which)
{
    for (int i = 0; data && i < data->cases.n; i++)
        if (base_same(((const graph_case *)data->cases.at[i])->name, name)) {
            *which = i;
            return data->cases.at[i];
        }
    return NULL;
}
