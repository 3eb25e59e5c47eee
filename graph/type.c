/* graph/type.c -- see type.h. */
#include "graph/type.h"

#include "graph/node.h"
#include "ir/text.h"

/* ---- making ---- */

graph_type graph_tensor_type(const op_type *t)
{
    return (graph_type){.kind = GRAPH_TENSOR, .tensor = *t};
}

graph_type graph_tuple_type(tec_context *cx, const graph_type *part, int n)
{
    return (graph_type){.kind = GRAPH_TUPLE, .n = n, .part = base_copy(cx, part, (size_t)n * sizeof *part)};
}

graph_type graph_data_type(const char *name)
{
    return (graph_type){.kind = GRAPH_DATA, .data = name};
}

graph_type graph_type_of(const graph_value *v)
{
    return v->compound ? *v->compound : graph_tensor_type(&v->type);
}

graph_value *graph_typed_value(tec_context *cx, const char *name, const graph_type *t)
{
    if (t->kind == GRAPH_TENSOR)
        return graph_value_new(cx, name, t->tensor);
    graph_value *v = graph_value_new(cx, name, (op_type){.dtype = BASE_HANDLE, .n = -1});

    v->compound = base_copy(cx, t, sizeof *t);
    return v;
}

graph_value *graph_typed_input(graph_function *f, const char *name, const graph_type *t)
{
    graph_value *v = graph_typed_value(f->module->cx, name, t);

    base_push(f->module->cx, &f->body->inputs, v);
    return v;
}

/* ---- asking ---- */

bool graph_types_same(const ir_facts *f, const graph_type *a, const graph_type *b)
{
    if (a->kind != b->kind || a->n != b->n || a->n_params != b->n_params)
        return false;
    if (a->kind == GRAPH_TENSOR)
        return graph_same_type(f, &a->tensor, &b->tensor);
    if (a->kind == GRAPH_DATA)
        return base_same(a->data, b->data);
    for (int i = 0; i < a->n; i++)
        if (!graph_types_same(f, &a->part[i], &b->part[i]))
            return false;
    return true;
}

bool graph_type_each(const graph_type *t, bool (*tensor)(void *user, const op_type *t), void *user)
{
    if (t->kind == GRAPH_TENSOR)
        return tensor(user, &t->tensor);
    for (int i = 0; i < t->n; i++)
        if (!graph_type_each(&t->part[i], tensor, user))
            return false;
    return true;
}

static void add_type(tec_context *cx, base_text *out, const graph_type *t);

static void add_types(tec_context *cx, base_text *out, const graph_type *part, int n)
{
    base_add(cx, out, "(");
    for (int i = 0; i < n; i++) {
        base_add(cx, out, i ? ", " : "");
        add_type(cx, out, &part[i]);
    }
    base_add(cx, out, ")");
}

static void add_type(tec_context *cx, base_text *out, const graph_type *t)
{
    switch (t->kind) {
    case GRAPH_TENSOR: base_add(cx, out, op_type_text(cx, &t->tensor)); return;
    case GRAPH_DATA: base_add(cx, out, ir_expr_text(cx, ir_string(cx, t->data))); return;
    case GRAPH_TUPLE: add_types(cx, out, t->part, t->n); return;
    case GRAPH_FUNCTION:
        base_add(cx, out, "fn");
        add_types(cx, out, t->part, t->n_params);
        base_add(cx, out, " -> ");
        add_types(cx, out, t->part + t->n_params, t->n - t->n_params);
        return;
    }
}

const char *graph_type_text(tec_context *cx, const graph_type *t)
{
    base_text out = {0};

    add_type(cx, &out, t);
    return base_text_str(cx, &out);
}

/* ---- data types ---- */

const graph_data *graph_find_data(const graph_module *m, const char *name)
{
    for (int i = 0; i < m->data.n; i++)
        if (base_same(((const graph_data *)m->data.at[i])->name, name))
            return m->data.at[i];
    return NULL;
}

const graph_case *graph_find_case(const graph_data *d, const char *name, int *which)
{
    for (int i = 0; d && i < d->cases.n; i++)
        if (base_same(((const graph_case *)d->cases.at[i])->name, name)) {
            *which = i;
            return d->cases.at[i];
        }
    return NULL;
}
