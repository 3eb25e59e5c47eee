/* tests/graph/onnx/kit.h -- ONNX models in a few lines, packed to bytes and imported.
 *
 *     open_model(13);
 *     input("x", 1, "n", "3");
 *     node("Relu", "x", "y", 0);
 *     output("y");
 *     graph_module *m = imported();
 */
#ifndef TESTS_GRAPH_ONNX_KIT_H
#define TESTS_GRAPH_ONNX_KIT_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "graph/onnx/onnx.h"
#include "graph/onnx/onnx.pb-c.h"
#include "graph/text.h"

static tec_context *cx;
static Onnx__ModelProto model;
static Onnx__GraphProto *g;

static inline void open_context(void)
{
    cx = tec_context_new();
}
static inline void close_context(void)
{
    tec_context_free(cx);
}

/* A new message in the context. */
#define MESSAGE(type, init) ((type *)base_copy(cx, &(type)init, sizeof(type)))

static inline void *push(void *list, size_t *n, const void *item)
{
    void **longer = base_array(cx, void *, *n + 1);

    if (*n)
        memcpy(longer, list, *n * sizeof *longer);
    longer[(*n)++] = (void *)item;
    return longer;
}
#define PUSH(owner, field, item) ((owner)->field = push((owner)->field, &(owner)->n_##field, item))

static inline void open_model(int64_t opset)
{
    Onnx__OperatorSetIdProto *o = MESSAGE(Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);

    model = (Onnx__ModelProto)ONNX__MODEL_PROTO__INIT;
    g = MESSAGE(Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT);
    model.graph = g;
    g->name = "net";
    o->has_version = true;
    o->version = opset;
    PUSH(&model, opset_import, o);
}

/* Extents as text, up to NULL: numbers or names; "" has neither. */
static inline void input_of(const char *name, int elem_type, const char *const *dim)
{
    Onnx__ValueInfoProto *info = MESSAGE(Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);
    Onnx__TensorShapeProto *shape = MESSAGE(Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);

    info->name = (char *)name;
    info->type = MESSAGE(Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
    info->type->tensor_type = MESSAGE(Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
    info->type->tensor_type->has_elem_type = true;
    info->type->tensor_type->elem_type = elem_type;
    info->type->tensor_type->shape = shape;
    for (; *dim; dim++) {
        Onnx__TensorShapeProto__Dimension *d =
            MESSAGE(Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);

        d->has_dim_value = **dim >= '0' && **dim <= '9';
        d->dim_value = d->has_dim_value ? atoll(*dim) : 0;
        d->dim_param = d->has_dim_value ? NULL : (char *)*dim;
        PUSH(shape, dim, d);
    }
    PUSH(g, input, info);
}
#define input(name, elem_type, ...) input_of(name, elem_type, (const char *const[]){__VA_ARGS__, NULL})

static inline void output(const char *name)
{
    Onnx__ValueInfoProto *info = MESSAGE(Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);

    info->name = (char *)name;
    PUSH(g, output, info);
}

/* Names between commas. */
static inline char **names(const char *list, size_t *n)
{
    char **all = NULL;

    *n = 0;
    for (const char *end; list && *list; list = *end ? end + 1 : end) {
        end = strchr(list, ',') ? strchr(list, ',') : list + strlen(list);
        all = push(all, n, base_strndup(cx, list, (size_t)(end - list)));
    }
    return all;
}

static inline Onnx__AttributeProto *attr_int(const char *name, int64_t i)
{
    Onnx__AttributeProto *a = MESSAGE(Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);

    a->name = (char *)name;
    a->has_i = true;
    a->i = i;
    return a;
}

static inline Onnx__AttributeProto *attr_float(const char *name, float f)
{
    Onnx__AttributeProto *a = MESSAGE(Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);

    a->name = (char *)name;
    a->has_f = true;
    a->f = f;
    return a;
}

static inline Onnx__AttributeProto *attr_string(const char *name, const char *v)
{
    Onnx__AttributeProto *a = MESSAGE(Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);

    a->name = (char *)name;
    a->has_s = true;
    a->s = (ProtobufCBinaryData){strlen(v), (uint8_t *)(uintptr_t)v};
    return a;
}

static inline Onnx__AttributeProto *attr_ints(const char *name, const int64_t *v, size_t n)
{
    Onnx__AttributeProto *a = MESSAGE(Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);

    a->name = (char *)name;
    a->ints = base_copy(cx, v, n * sizeof *v);
    a->n_ints = n;
    return a;
}
#define INTS(name, ...)                                                                                      \
    attr_ints(name, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static inline Onnx__NodeProto *node_of(const char *op, const char *in, const char *out,
                                       Onnx__AttributeProto *const *attr)
{
    Onnx__NodeProto *p = MESSAGE(Onnx__NodeProto, ONNX__NODE_PROTO__INIT);

    p->op_type = (char *)op;
    p->input = names(in, &p->n_input);
    p->output = names(out, &p->n_output);
    p->name = base_format(cx, "the_%s", out);
    for (; *attr; attr++)
        PUSH(p, attribute, *attr);
    PUSH(g, node, p);
    return p;
}
#define node(op, in, out, ...) node_of(op, in, out, (Onnx__AttributeProto *const[]){__VA_ARGS__, NULL})

static inline Onnx__TensorProto *tensor(const char *name, int data_type, const int64_t *dims, size_t n)
{
    Onnx__TensorProto *t = MESSAGE(Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);

    t->name = (char *)name;
    t->has_data_type = true;
    t->data_type = data_type;
    t->dims = base_copy(cx, dims, n * sizeof *dims);
    t->n_dims = n;
    PUSH(g, initializer, t);
    return t;
}

static inline void raw(Onnx__TensorProto *t, const void *data, size_t size)
{
    t->has_raw_data = true;
    t->raw_data = (ProtobufCBinaryData){size, base_copy(cx, data, size)};
}

static inline void int64s(const char *name, const int64_t *v, size_t n)
{
    int64_t dims[] = {(int64_t)n};

    raw(tensor(name, 7, dims, 1), v, n * sizeof *v);
}
#define INT64S(name, ...)                                                                                    \
    int64s(name, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static inline void floats(const char *name, const float *v, size_t n)
{
    int64_t dims[] = {(int64_t)n};

    raw(tensor(name, 1, dims, 1), v, n * sizeof *v);
}
#define FLOATS(name, ...)                                                                                    \
    floats(name, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

static inline uint8_t *packed(size_t *size)
{
    *size = onnx__model_proto__get_packed_size(&model);
    uint8_t *bytes = base_alloc(cx, *size);
    onnx__model_proto__pack(&model, bytes);
    return bytes;
}

static inline graph_module *import_model(void)
{
    size_t size;
    uint8_t *bytes = packed(&size);

    return onnx_import_bytes(cx, "m.onnx", bytes, size, NULL);
}

static inline graph_module *imported(void)
{
    graph_module *m = import_model();

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert(graph_verify(m), "%s\n%s", tec_context_error(cx), graph_text(cx, m, 0));
    return m;
}

static inline const graph_value *result(const graph_module *m, int k)
{
    return ((const graph_function *)m->functions.at[0])->body->outputs.at[k];
}

static inline void refused(tec_status status, const char *message)
{
    cr_assert_null(import_model(), "expected: %s", message);
    cr_assert_str_eq(tec_context_error(cx), message);
    cr_assert_eq(tec_context_status(cx), status);
    tec_context_clear(cx);
}

/* The type of output 0. */
#define TYPE_IS(text) cr_assert_str_eq(op_type_text(cx, &result(imported(), 0)->type), text)

#endif
