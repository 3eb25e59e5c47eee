/* bench/models/write_resnet18.c -- writes ResNet-18 (1x3x224x224, seeded weights, batch normalisation as
 * nodes) as an ONNX model with its input.
 *
 *     write_resnet18 DIR [CLASSES]   // DIR/resnet18/model.onnx, DIR/resnet18/test_data_set_0/input_0.pb
 *
 * CLASSES (1000) is the size of the last layer: with another one the model differs in this layer alone.
 * The output to compare with is reference_resnet18's. Tensors are named as torchvision names them, nodes by
 * what they make.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "bench/models/weights.h"
#include "graph/onnx/onnx.pb-c.h"

enum { ONNX_FLOAT = 1, ATTR_FLOAT = 1, ATTR_INT = 2, ATTR_INTS = 7 };

typedef struct {
    tec_context *cx;
    int64_t classes;
    base_vec nodes, weights;
} writer;

/* ---- tensors ---- */

static Onnx__TensorProto *new_tensor(tec_context *cx, const char *name, const int64_t *dims, int n)
{
    Onnx__TensorProto *t = base_new(cx, Onnx__TensorProto);
    size_t elements = 1;

    onnx__tensor_proto__init(t);
    for (int i = 0; i < n; i++)
        elements *= (size_t)dims[i];
    t->name = base_strdup(cx, name);
    t->n_dims = (size_t)n;
    t->dims = base_copy(cx, dims, (size_t)n * sizeof *dims);
    t->has_data_type = t->has_raw_data = true;
    t->data_type = ONNX_FLOAT;
    t->raw_data.len = elements * sizeof(float);
    t->raw_data.data = base_alloc(cx, t->raw_data.len);
    return t;
}

/* A weight of the model; gives where its n numbers go. */
static float *add_weight(writer *w, const char *name, const int64_t *dims, int n)
{
    Onnx__TensorProto *t = new_tensor(w->cx, name, dims, n);

    base_push(w->cx, &w->weights, t);
    return (float *)(void *)t->raw_data.data;
}

/* ---- nodes ---- */

static Onnx__NodeProto *add_node(writer *w, const char *op, const char *out, const char *const *in, size_t n)
{
    Onnx__NodeProto *node = base_new(w->cx, Onnx__NodeProto);

    onnx__node_proto__init(node);
    node->op_type = base_strdup(w->cx, op);
    node->name = base_strdup(w->cx, out);
    node->n_output = 1;
    node->output = base_array(w->cx, char *, 1);
    node->output[0] = node->name;
    node->n_input = n;
    node->input = base_array(w->cx, char *, n);
    for (size_t i = 0; i < n; i++)
        node->input[i] = base_strdup(w->cx, in[i]);
    node->attribute = base_array(w->cx, Onnx__AttributeProto *, 4);
    base_push(w->cx, &w->nodes, node);
    return node;
}

#define ADD_NODE(w, op, out, ...)                                                                            \
    add_node((w), (op), (out), (const char *const[]){__VA_ARGS__},                                           \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static Onnx__AttributeProto *add_attribute(writer *w, Onnx__NodeProto *node, const char *name, int type)
{
    Onnx__AttributeProto *a = base_new(w->cx, Onnx__AttributeProto);

    onnx__attribute_proto__init(a);
    a->name = base_strdup(w->cx, name);
    a->has_type = true;
    a->type = type;
    node->attribute[node->n_attribute++] = a;
    return a;
}

static void add_ints(writer *w, Onnx__NodeProto *node, const char *name, const int64_t *at, size_t n)
{
    Onnx__AttributeProto *a = add_attribute(w, node, name, ATTR_INTS);

    a->n_ints = n;
    a->ints = base_copy(w->cx, at, n * sizeof *at);
}

static void add_window(writer *w, Onnx__NodeProto *node, int64_t kernel, int64_t stride, int64_t pad)
{
    add_ints(w, node, "kernel_shape", (int64_t[]){kernel, kernel}, 2);
    add_ints(w, node, "strides", (int64_t[]){stride, stride}, 2);
    add_ints(w, node, "pads", (int64_t[]){pad, pad, pad, pad}, 4);
}

/* ---- layers; each gives the name of its output ---- */

static const char *add_conv(writer *w, const char *x, const char *name, int64_t in, int64_t out,
                            int64_t kernel, int64_t stride)
{
    const char *weight = base_format(w->cx, "%s.weight", name);

    weights_normal(weight, add_weight(w, weight, (int64_t[]){out, in, kernel, kernel}, 4),
                   (size_t)(out * in * kernel * kernel), 0, sqrt(2.0 / (double)(in * kernel * kernel)));
    Onnx__NodeProto *node = ADD_NODE(w, "Conv", name, x, weight);
    add_window(w, node, kernel, stride, kernel / 2);
    return name;
}

static const char *add_norm(writer *w, const char *x, const char *name, int64_t n)
{
    const char *scale = base_format(w->cx, "%s.weight", name), *bias = base_format(w->cx, "%s.bias", name);
    const char *mean = base_format(w->cx, "%s.running_mean", name),
               *var = base_format(w->cx, "%s.running_var", name);

    weights_uniform(scale, add_weight(w, scale, &n, 1), (size_t)n, 0.5, 1.0);
    weights_normal(bias, add_weight(w, bias, &n, 1), (size_t)n, 0, 0.1);
    weights_normal(mean, add_weight(w, mean, &n, 1), (size_t)n, 0, 0.1);
    weights_uniform(var, add_weight(w, var, &n, 1), (size_t)n, 0.5, 1.5);
    Onnx__AttributeProto *epsilon = add_attribute(
        w, ADD_NODE(w, "BatchNormalization", name, x, scale, bias, mean, var), "epsilon", ATTR_FLOAT);
    epsilon->has_f = true;
    epsilon->f = 1e-5f;
    return name;
}

static const char *add_relu(writer *w, const char *x, const char *name)
{
    ADD_NODE(w, "Relu", name, x);
    return name;
}

static const char *add_block(writer *w, const char *x, const char *name, int64_t in, int64_t out,
                             int64_t stride)
{
    tec_context *cx = w->cx;
    const char *skip = x;

    const char *y = add_conv(w, x, base_format(cx, "%s.conv1", name), in, out, 3, stride);
    y = add_norm(w, y, base_format(cx, "%s.bn1", name), out);
    y = add_relu(w, y, base_format(cx, "%s.relu1", name));
    y = add_conv(w, y, base_format(cx, "%s.conv2", name), out, out, 3, 1);
    y = add_norm(w, y, base_format(cx, "%s.bn2", name), out);
    if (stride != 1) {
        skip = add_conv(w, x, base_format(cx, "%s.downsample.0", name), in, out, 1, stride);
        skip = add_norm(w, skip, base_format(cx, "%s.downsample.1", name), out);
    }
    const char *sum = base_format(cx, "%s.add", name);
    ADD_NODE(w, "Add", sum, y, skip);
    return add_relu(w, sum, base_format(cx, "%s.relu2", name));
}

static void add_classifier(writer *w, const char *x)
{
    const int64_t in = 512, out = w->classes;

    weights_normal("fc.weight", add_weight(w, "fc.weight", (int64_t[]){out, in}, 2), (size_t)(out * in), 0,
                   sqrt(2.0 / (double)in));
    weights_normal("fc.bias", add_weight(w, "fc.bias", &out, 1), (size_t)out, 0, 0.1);
    ADD_NODE(w, "GlobalAveragePool", "avgpool", x);
    ADD_NODE(w, "Flatten", "flatten", "avgpool");
    Onnx__AttributeProto *transposed = add_attribute(
        w, ADD_NODE(w, "Gemm", "output", "flatten", "fc.weight", "fc.bias"), "transB", ATTR_INT);
    transposed->has_i = true;
    transposed->i = 1;
}

static void add_network(writer *w)
{
    const char *x = add_relu(w, add_norm(w, add_conv(w, "input", "conv1", 3, 64, 7, 2), "bn1", 64), "relu");

    add_window(w, ADD_NODE(w, "MaxPool", "maxpool", x), 3, 2, 1);
    x = "maxpool";
    for (int stage = 1; stage <= 4; stage++) {
        int64_t width = 32 << stage;

        x = add_block(w, x, base_format(w->cx, "layer%d.0", stage), stage > 1 ? width / 2 : width, width,
                      stage > 1 ? 2 : 1);
        x = add_block(w, x, base_format(w->cx, "layer%d.1", stage), width, width, 1);
    }
    add_classifier(w, x);
}

/* ---- the model ---- */

static Onnx__ValueInfoProto **describe(tec_context *cx, const char *name, const int64_t *dims, size_t n)
{
    Onnx__ValueInfoProto **list = base_array(cx, Onnx__ValueInfoProto *, 1),
                         *info = base_new(cx, Onnx__ValueInfoProto);
    Onnx__TypeProto__Tensor *type = base_new(cx, Onnx__TypeProto__Tensor);
    Onnx__TensorShapeProto *shape = base_new(cx, Onnx__TensorShapeProto);

    onnx__value_info_proto__init(info);
    onnx__type_proto__tensor__init(type);
    onnx__tensor_shape_proto__init(shape);
    info->name = base_strdup(cx, name);
    info->type = base_new(cx, Onnx__TypeProto);
    onnx__type_proto__init(info->type);
    info->type->tensor_type = type;
    type->has_elem_type = true;
    type->elem_type = ONNX_FLOAT;
    type->shape = shape;
    shape->n_dim = n;
    shape->dim = base_array(cx, Onnx__TensorShapeProto__Dimension *, n);
    for (size_t i = 0; i < n; i++) {
        shape->dim[i] = base_new(cx, Onnx__TensorShapeProto__Dimension);
        onnx__tensor_shape_proto__dimension__init(shape->dim[i]);
        shape->dim[i]->has_dim_value = true;
        shape->dim[i]->dim_value = dims[i];
    }
    list[0] = info;
    return list;
}

static Onnx__OperatorSetIdProto **opset(tec_context *cx, int64_t version)
{
    Onnx__OperatorSetIdProto **list = base_array(cx, Onnx__OperatorSetIdProto *, 1);

    list[0] = base_new(cx, Onnx__OperatorSetIdProto);
    onnx__operator_set_id_proto__init(list[0]);
    list[0]->domain = base_strdup(cx, "");
    list[0]->has_version = true;
    list[0]->version = version;
    return list;
}

static bool write_model(writer *w, const char *path)
{
    tec_context *cx = w->cx;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;

    graph.name = base_strdup(cx, "resnet18");
    graph.n_node = (size_t)w->nodes.n;
    graph.node = (Onnx__NodeProto **)w->nodes.at;
    graph.n_initializer = (size_t)w->weights.n;
    graph.initializer = (Onnx__TensorProto **)w->weights.at;
    graph.n_input = graph.n_output = 1;
    graph.input = describe(cx, "input", (int64_t[]){1, 3, 224, 224}, 4);
    graph.output = describe(cx, "output", (int64_t[]){1, w->classes}, 2);
    model.has_ir_version = true;
    model.ir_version = 7;
    model.producer_name = base_strdup(cx, "write_resnet18");
    model.n_opset_import = 1;
    model.opset_import = opset(cx, 13);
    model.graph = &graph;
    size_t size = onnx__model_proto__get_packed_size(&model);
    uint8_t *bytes = base_alloc(cx, size);
    onnx__model_proto__pack(&model, bytes);
    return base_write_file(cx, path, bytes, size);
}

static bool write_input(tec_context *cx, const char *path)
{
    Onnx__TensorProto *t = new_tensor(cx, "input", (int64_t[]){1, 3, 224, 224}, 4);

    weights_normal("input", (float *)(void *)t->raw_data.data, 3 * 224 * 224, 0, 1);
    size_t size = onnx__tensor_proto__get_packed_size(t);
    uint8_t *bytes = base_alloc(cx, size);
    onnx__tensor_proto__pack(t, bytes);
    return base_write_file(cx, path, bytes, size);
}

static bool make_folder(tec_context *cx, const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return true;
    base_fail(cx, TEC_IO, (base_loc){.file = path}, "%s", strerror(errno));
    return false;
}

static bool write_all(tec_context *cx, const char *dir, int64_t classes)
{
    writer w = {.cx = cx, .classes = classes};
    const char *folder = base_format(cx, "%s/resnet18", dir),
               *data = base_format(cx, "%s/test_data_set_0", folder);

    add_network(&w);
    return make_folder(cx, dir) && make_folder(cx, folder) && make_folder(cx, data) &&
           write_model(&w, base_format(cx, "%s/model.onnx", folder)) &&
           write_input(cx, base_format(cx, "%s/input_0.pb", data));
}

int main(int argc, char **argv)
{
    tec_context *cx = tec_context_new();

    int64_t classes = argc > 2 ? atoll(argv[2]) : 1000;

    if (argc < 2 || argc > 3 || classes < 1) {
        fprintf(stderr, "usage: write_resnet18 DIR [CLASSES]\n");
        return 2;
    }
    bool good = write_all(cx, argv[1], classes);
    if (!good)
        fprintf(stderr, "write_resnet18: %s\n", tec_context_error(cx));
    tec_context_free(cx);
    return good ? 0 : 1;
}
