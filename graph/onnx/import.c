/* graph/onnx/import.c -- a model's graph: values by name, nodes in order, all that is unsupported collected
 * and reported at once.
 *
 * Integers that shapes are computed from are tracked as expressions while importing (onnx_known), so that a
 * chain like Shape -> Gather -> Concat -> Reshape works on symbolic dimensions.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/onnx/import.h"
#include "ir/text.h"
#include "ir/walk.h"

/* ---- what is not supported ---- */

static const char *describe(const onnx_import_state *im, const Onnx__NodeProto *NodeProto)
{
    if (NodeProto->name && *NodeProto->name)
        return base_format(im->cx, "node '%s' (%s)", NodeProto->name,
                           NodeProto->op_type ? NodeProto->op_type : "");
    return base_format(im->cx, "node '%s' (%s)", NodeProto->n_output ? NodeProto->output[0] : "",
                       NodeProto->op_type ? NodeProto->op_type : "");
}

static void add_unsupported(onnx_import_state *im, const Onnx__NodeProto *NodeProto, const char *text)
{
    base_push(im->cx, &im->unsupported, base_format(im->cx, "%s: %s", describe(im, NodeProto), text));
    for (size_t i = 0; i < NodeProto->n_output; i++)
        base_dict_put(im->cx, &im->names->skipped, NodeProto->output[i], NodeProto);
}

bool onnx_skip(onnx_node *node)
{
    for (size_t i = 0; i < node->proto->n_output; i++)
        base_dict_put(node->cx, &node->im->names->skipped, node->proto->output[i], node);
    return false;
}

/* Collected, and reported all at once at the end: a model with ten unsupported nodes is one error with ten
 * notes. */
bool onnx_unsupported(onnx_node *node, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_unsupported(node->im, node->proto, base_vformat(node->cx, fmt, args));
    va_end(args);
    return false;
}

/* A model that breaks the rules of ONNX is refused at the first such place. */
bool onnx_wrong(onnx_node *node, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    base_fail(node->cx, TEC_INVALID, (base_loc){.file = node->im->path}, "%s: %s",
              describe(node->im, node->proto), base_vformat(node->cx, fmt, args));
    va_end(args);
    return false;
}

static void *report_unsupported(onnx_import_state *im)
{
    int n = im->unsupported.n;

    base_fail(im->cx, TEC_UNSUPPORTED, (base_loc){.file = im->path},
              "%d part%s of the model %s not supported", n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
    for (int i = 0; i < n; i++)
        base_note(im->cx, (base_loc){.file = im->path}, "%s", (const char *)im->unsupported.at[i]);
    return NULL;
}

/* ---- types of inputs ---- */

/* A shape of another rank is not this input's: setting the input reports the error. */
static const onnx_shape *given_shape(const onnx_import_state *im, const char *input, int position, int rank)
{
    for (int i = 0; im->options && i < im->options->n_shapes; i++) {
        const onnx_shape *s = &im->options->shapes[i];

        if (s->n == rank && (s->input ? base_same(s->input, input) : s->position == position))
            return s;
    }
    return NULL;
}

/* What the options say for that name, or what the symbol of that name is already; NULL: nothing. The name
 * counts as one that options may give. */
static const ir_expr *given_dim(onnx_import_state *im, const char *name)
{
    if (!base_dict_has(&im->open_dims, name))
        base_dict_put(im->cx, &im->open_dims, name, name);
    for (int i = 0; im->options && i < im->options->n_dims; i++)
        if (base_same(im->options->dims[i].name, name))
            return ir_int(im->cx, im->options->dims[i].value);
    return base_dict_get(&im->dims, name);
}

/* A symbol by the model's name, or "INPUT.AXIS"; its value where one was given. */
static const ir_expr *symbolic_dim(onnx_import_state *im, const char *param, const char *input, int axis,
                                   const onnx_shape *shape)
{
    const char *own = base_format(im->cx, "%s.%d", input, axis), *name = param && *param ? param : own;
    const ir_expr *given = given_dim(im, name), *here = given_dim(im, own);

    if (given && here && !ir_same(given, here))
        return base_fail(im->cx, TEC_INVALID, (base_loc){.file = im->path},
                         "dimension '%s' is given as %s, but as '%s' it is given as %s", own,
                         ir_expr_text(im->cx, here), name, ir_expr_text(im->cx, given));
    given = given ? given : here;
    if (!given && shape)
        given = ir_int(im->cx, shape->shape[axis]);
    if (given) {
        base_dict_put(im->cx, &im->dims, name, given);
        return given;
    }
    return graph_symbol(im->m, name);
}

/* Each value that the options give is that of a dimension which the model leaves open. */
static bool check_given_dims(onnx_import_state *im)
{
    const base_vec *open = &im->open_dims.order;
    base_text list = {0};

    for (int i = 0; i < open->n; i++)
        base_addf(im->cx, &list, "%s'%s'", i ? ", " : "", (const char *)open->at[i]);
    for (int i = 0; im->options && i < im->options->n_dims; i++) {
        const char *name = im->options->dims[i].name;

        if (base_dict_has(&im->open_dims, name))
            continue;
        if (im->options->unknown_dim)
            *im->options->unknown_dim = true;
        base_fail(im->cx, TEC_INVALID, (base_loc){.file = im->path},
                  "a value is given for dimension '%s', %s%s%s", name,
                  open->n ? "but the model leaves only these open: "
                          : "but the model leaves no dimension open",
                  base_text_str(im->cx, &list), base_did_you_mean(im->cx, name, open));
    }
    return !base_failed(im->cx);
}

static void *refuse_input(onnx_import_state *im, const char *name, const char *text)
{
    base_push(im->cx, &im->unsupported, base_format(im->cx, "input '%s': %s", name, text));
    base_dict_put(im->cx, &im->names->skipped, name, im);
    return NULL;
}

static void wrong_model(onnx_import_state *im, const char *text)
{
    base_fail(im->cx, TEC_INVALID, (base_loc){.file = im->path}, "%s", text);
}

/* Each name is one value: an input, an initializer or a result of a node. A subgraph may use a name again. */
static bool is_new_name(onnx_import_state *im, const char *name)
{
    return !base_dict_has(&im->names->values, name) && !base_dict_has(&im->names->skipped, name);
}

/* The value of that name in the graph at hand or in one around it; NULL: none. */
static graph_value *find_value(const onnx_import_state *im, const char *name)
{
    for (const onnx_names *at = im->names; at; at = at->outer)
        if (base_dict_has(&at->values, name) || base_dict_has(&at->skipped, name))
            return base_dict_get(&at->values, name);
    return NULL;
}

static bool is_skipped(const onnx_import_state *im, const char *name)
{
    for (const onnx_names *at = im->names; at; at = at->outer)
        if (base_dict_has(&at->values, name) || base_dict_has(&at->skipped, name))
            return base_dict_has(&at->skipped, name);
    return false;
}

/* Extents of an input: constants, or symbols by the names that the model gives them; sizes that the caller
 * gave win. */
static const ir_expr **input_dims(onnx_import_state *im, const Onnx__ValueInfoProto *info, int position)
{
    const Onnx__TensorShapeProto *s = info->type->tensor_type->shape;
    const onnx_shape *given = given_shape(im, info->name, position, (int)s->n_dim);
    const ir_expr **dim = base_array(im->cx, const ir_expr *, s->n_dim);

    for (size_t i = 0; i < s->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = s->dim[i];

        if (!d->has_dim_value || d->dim_value < 0)
            dim[i] = symbolic_dim(im, d->dim_param, info->name, (int)i, given);
        else
            dim[i] = ir_int(im->cx, d->dim_value);
    }
    return dim;
}

/* NULL where the input cannot be had; whatever reads it is then skipped, so that all faults are reported at
 * once. */
static graph_value *import_input(onnx_import_state *im, const Onnx__ValueInfoProto *info, int position)
{
    const Onnx__TypeProto *t = info->type;
    base_dtype dtype;

    if (!t || !t->tensor_type)
        return refuse_input(im, info->name, "it is not a tensor");
    if (!onnx_dtype(t->tensor_type->elem_type, &dtype))
        return refuse_input(
            im, info->name,
            base_format(im->cx, "elements of type %s", onnx_type_name(im->cx, t->tensor_type->elem_type)));
    if (!t->tensor_type->shape)
        return refuse_input(im, info->name, "its rank is not known");
    if (t->tensor_type->shape->n_dim > ONNX_MAX_RANK)
        return refuse_input(im, info->name, "it has too many dimensions");
    op_type type = {dtype, (int)t->tensor_type->shape->n_dim, input_dims(im, info, position)};
    const char *why;
    if (!op_check_size(im->cx, &type, &why))
        wrong_model(
            im, base_format(im->cx, "input '%s' is %s: %s", info->name, op_type_text(im->cx, &type), why));
    return base_failed(im->cx) ? NULL : graph_input(im->f, info->name, type);
}

/* ---- graph ---- */

/* Every initializer becomes a constant; one of an unknown type is noted and skipped. */
static bool import_constants(onnx_import_state *im, const Onnx__GraphProto *GraphProto)
{
    for (size_t i = 0; i < GraphProto->n_initializer && !base_failed(im->cx); i++) {
        const Onnx__TensorProto *t = GraphProto->initializer[i];
        base_dtype dtype;

        if (!t->name || !*t->name) {
            wrong_model(im, "an initializer has no name");
            break;
        }
        if (!is_new_name(im, t->name)) {
            wrong_model(im, base_format(im->cx, "there are two initializers '%s'", t->name));
            break;
        }
        if (!onnx_dtype(t->data_type, &dtype)) {
            refuse_input(im, t->name,
                         base_format(im->cx, "initializer with elements of type %s",
                                     onnx_type_name(im->cx, t->data_type)));
            continue;
        }
        base_set_where(im->cx, (base_loc){.file = im->path});
        graph_value *value =
            graph_constant(im->f, t->name, onnx_tensor(im->cx, im->path, &im->weights, t, "initializer"));
        if (value)
            base_dict_put(im->cx, &im->names->values, t->name, value);
    }
    return !base_failed(im->cx);
}

/* Initializers are often listed among the inputs too; they are defaults there, and constants here. */
static bool import_inputs(onnx_import_state *im, const Onnx__GraphProto *GraphProto)
{
    base_dict seen = {0};
    int position = 0;

    for (size_t i = 0; i < GraphProto->n_input && !base_failed(im->cx); i++) {
        const char *name = GraphProto->input[i]->name;

        if (!name || !*name || base_dict_has(&seen, name)) {
            wrong_model(im, name && *name ? base_format(im->cx, "there are two inputs '%s'", name)
                                          : "an input has no name");
            break;
        }
        base_dict_put(im->cx, &seen, name, GraphProto);
        if (!is_new_name(im, name))
            continue;
        base_set_where(im->cx, (base_loc){.file = im->path});
        graph_value *value = import_input(im, GraphProto->input[i], position++);
        if (value)
            base_dict_put(im->cx, &im->names->values, GraphProto->input[i]->name, value);
    }
    return !base_failed(im->cx);
}

/* Its operands; false where one comes from an unsupported node (skipped silently: that node is named already)
 * or from nowhere. */
static bool find_operands(onnx_node *node)
{
    for (int k = 0; k < node->n_in; k++) {
        const char *name = node->proto->input[k];

        if (!*name)
            continue;
        if (is_skipped(node->im, name))
            return onnx_skip(node);
        node->in[k] = find_value(node->im, name);
        if (!node->in[k])
            return onnx_wrong(
                node, "operand '%s' is not the result of an earlier node, an input or an initializer", name);
    }
    return true;
}

/* A result's name is its own: no other value has it, here or in the node itself. */
static bool has_new_results(onnx_node *node)
{
    base_dict mine = {0};

    for (int k = 0; k < node->n_out; k++) {
        const char *name = node->proto->output[k];

        if (*name && !is_new_name(node->im, name))
            return onnx_wrong(node, "result '%s' has the same name as another value", name);
        if (*name && base_dict_has(&mine, name))
            return onnx_wrong(node, "two results are named '%s'", name);
        if (*name)
            base_dict_put(node->cx, &mine, name, node);
    }
    return true;
}

static bool is_default_domain(const char *domain)
{
    return !domain || !*domain || base_same(domain, "ai.onnx");
}

/* Converts one node, or notes why not. Errors while converting name the model, the node and its operator. */
static void import_node(onnx_import_state *im, const Onnx__NodeProto *NodeProto)
{
    const char *name = NodeProto->name && *NodeProto->name ? NodeProto->name
                       : NodeProto->n_output               ? NodeProto->output[0]
                                                           : NodeProto->op_type;
    const onnx_row *row = NodeProto->op_type && is_default_domain(NodeProto->domain)
                              ? onnx_find(NodeProto->op_type, im->opset)
                              : NULL;
    onnx_node n = {.im = im,
                   .cx = im->cx,
                   .proto = NodeProto,
                   .row = row,
                   .name = name,
                   .n_in = (int)NodeProto->n_input,
                   .n_out = (int)NodeProto->n_output,
                   .opset = im->opset};

    n.in = base_array(im->cx, graph_value *, n.n_in);
    base_set_where(im->cx,
                   (base_loc){.file = base_format(im->cx, "%s: %s", im->path, describe(im, NodeProto))});
    if (!NodeProto->op_type || !*NodeProto->op_type)
        onnx_wrong(&n, "the node names no operator");
    else if (!is_default_domain(NodeProto->domain))
        onnx_unsupported(&n, "operators of domain '%s'", NodeProto->domain);
    else if (!row && onnx_knows(NodeProto->op_type ? NodeProto->op_type : ""))
        onnx_unsupported(&n, "this operator in opset %lld", (long long)im->opset);
    else if (!row)
        onnx_unsupported(&n, "there is no such operator here");
    else if (onnx_check_form(&n, row->form) && has_new_results(&n) && find_operands(&n))
        row->convert(&n);
}

/* An output that was not made is an error only if nothing unsupported explains it. */
static bool import_outputs(onnx_import_state *im, const Onnx__GraphProto *GraphProto)
{
    base_dict seen = {0};

    for (size_t i = 0; i < GraphProto->n_output && !base_failed(im->cx); i++) {
        const char *name = GraphProto->output[i]->name ? GraphProto->output[i]->name : "";
        graph_value *value = find_value(im, name);

        if (base_dict_has(&seen, name))
            wrong_model(im, base_format(im->cx, "there are two outputs '%s'", name));
        base_dict_put(im->cx, &seen, name, GraphProto);
        if (!value && !is_skipped(im, name))
            base_fail(im->cx, TEC_INVALID, (base_loc){.file = im->path}, "no node computes output '%s'",
                      name);
        graph_output(im->f, name, value);
    }
    return !base_failed(im->cx);
}

/* Nodes in the file's order. A subgraph is read once for each type that its inputs turn out to have, so nodes
 * are counted over the whole import. */
static bool import_nodes(onnx_import_state *im, const Onnx__GraphProto *GraphProto)
{
    im->n_nodes += (int64_t)GraphProto->n_node;
    if (im->n_nodes > base_limit(im->cx, BASE_LIMIT_nodes)) {
        base_fail(im->cx, TEC_UNSUPPORTED, (base_loc){.file = im->path},
                  "the model has %lld nodes or more; %s", (long long)im->n_nodes,
                  base_limit_text(im->cx, BASE_LIMIT_nodes));
        return false;
    }
    for (size_t i = 0; i < GraphProto->n_node && !base_failed(im->cx); i++)
        import_node(im, GraphProto->node[i]);
    if (GraphProto->n_sparse_initializer)
        base_push(im->cx, &im->unsupported, "sparse initializers");
    return !base_failed(im->cx);
}

/* Constants, inputs, nodes, outputs. NULL with an error that lists everything unsupported. */
static graph_module *import_graph(onnx_import_state *im, const Onnx__GraphProto *GraphProto)
{
    if (!import_constants(im, GraphProto) || !import_inputs(im, GraphProto) || !check_given_dims(im) ||
        !import_nodes(im, GraphProto) || !import_outputs(im, GraphProto))
        return NULL;
    return im->unsupported.n ? report_unsupported(im) : im->m;
}

/* ---- subgraphs ---- */

/* The inputs of a subgraph are values that exist already. */
static bool name_inputs(onnx_import_state *im, const Onnx__GraphProto *GraphProto, graph_value *const *in,
                        int count)
{
    for (int k = 0; k < count; k++) {
        const char *name = GraphProto->input[k]->name;

        if (!name || !*name || !is_new_name(im, name)) {
            wrong_model(im, name && *name
                                ? base_format(im->cx, "there are two values '%s' in a subgraph", name)
                                : "an input of a subgraph has no name");
            return false;
        }
        base_dict_put(im->cx, &im->names->values, name, in[k]);
    }
    return true;
}

/* The values of the subgraph's outputs. NULL without an error: one of them is not supported. */
static graph_value **subgraph_outputs(onnx_import_state *im, const Onnx__GraphProto *GraphProto)
{
    graph_value **out = base_array(im->cx, graph_value *, GraphProto->n_output);

    for (size_t i = 0; i < GraphProto->n_output; i++) {
        const char *name = GraphProto->output[i]->name ? GraphProto->output[i]->name : "";

        if (is_skipped(im, name))
            return NULL;
        out[i] = find_value(im, name);
        if (!out[i])
            return base_fail(im->cx, TEC_INVALID, (base_loc){.file = im->path},
                             "no node computes output '%s' of a subgraph", name);
    }
    return out;
}

/* A scope of names of its own; what was not supported before this subgraph is not its fault. */
graph_value **onnx_subgraph(onnx_import_state *im, const Onnx__GraphProto *GraphProto, graph_value *const *in,
                            int count)
{
    onnx_names names = {.outer = im->names};
    int before = im->unsupported.n;
    base_loc where = base_where(im->cx);
    graph_value **out = NULL;

    im->names = &names;
    if ((int)GraphProto->n_input != count)
        wrong_model(
            im, base_format(im->cx, "a subgraph has %zu inputs, expected %d", GraphProto->n_input, count));
    else if (name_inputs(im, GraphProto, in, count) && import_constants(im, GraphProto) &&
             import_nodes(im, GraphProto))
        out = subgraph_outputs(im, GraphProto);
    im->names = names.outer;
    base_set_where(im->cx, where);
    return im->unsupported.n > before ? NULL : out;
}

/* Of the default domain; files from before operator sets mean the first. 0 with an error. */
static int64_t default_opset(tec_context *cx, const char *path, const Onnx__ModelProto *model)
{
    int64_t version = 0;

    for (size_t i = 0; i < model->n_opset_import; i++) {
        if (!is_default_domain(model->opset_import[i]->domain))
            continue;
        if (version)
            return base_fail(cx, TEC_INVALID, (base_loc){.file = path},
                             "the model imports two operator sets of the default domain"),
                   0;
        version = model->opset_import[i]->version;
        if (version < 1)
            return base_fail(cx, TEC_INVALID, (base_loc){.file = path},
                             "operator set %lld, expected 1 or later", (long long)version),
                   0;
    }
    if (version > ONNX_NEWEST_OPSET)
        return base_fail(cx, TEC_UNSUPPORTED, (base_loc){.file = path},
                         "operator set %lld is newer than the newest one that tec knows, %d",
                         (long long)version, ONNX_NEWEST_OPSET),
               0;
    return version ? version : 1;
}

/* The depth is looked at before the library unpacks: it recurses, and a hostile file could nest without end.
 */
static Onnx__ModelProto *unpack(tec_context *cx, const char *name, const void *data, size_t size)
{
    Onnx__ModelProto *model = onnx_is_shallow(cx, name, &onnx__model_proto__descriptor, data, size)
                                  ? onnx__model_proto__unpack(onnx_allocator(cx), size, data)
                                  : NULL;

    if (!model || !model->graph)
        return base_fail(cx, TEC_INVALID, (base_loc){.file = name},
                         model ? "the model has no graph"
                               : "the file is not an ONNX model, or it is damaged");
    return model;
}

/* The module with the one function "main", of a message that may stay where it is (`mapped`). */
static graph_module *import_message(tec_context *cx, const char *name, const uint8_t *data, size_t size,
                                    bool mapped, const onnx_options *options)
{
    onnx_weights weights = {.mapped = mapped};

    onnx_lift_weights(cx, &data, &size, &weights);
    Onnx__ModelProto *model = unpack(cx, name, data, size);

    if (!model)
        return NULL;
    const char *title = model->graph->name && *model->graph->name ? model->graph->name : "main";
    onnx_names names = {0};
    onnx_import_state im = {.cx = cx,
                            .path = name,
                            .names = &names,
                            .options = options,
                            .weights = weights,
                            .m = graph_new(cx, title),
                            .opset = default_opset(cx, name, model)};
    if (!im.opset)
        return NULL;
    im.f = graph_function_new(im.m, "main");
    return import_graph(&im, model->graph);
}

/* `name` is what messages call the model. */
graph_module *onnx_import_bytes(tec_context *cx, const char *name, const void *data, size_t size,
                                const onnx_options *options)
{
    return import_message(cx, name, data, size, false, options);
}

graph_module *onnx_import(tec_context *cx, const char *path, const onnx_options *options)
{
    size_t size;
    bool mapped;
    const void *data = base_view_file(cx, path, &size, &mapped);

    return data ? import_message(cx, path, data, size, mapped, options) : NULL;
}

/* ---- summary ---- */

typedef struct {
    const char *op;
    int n;
} op_count;

static int by_name(const void *a, const void *b)
{
    return strcmp((*(op_count *const *)a)->op, (*(op_count *const *)b)->op);
}

/* "12 Conv\n3 MaxPool\n...": which operators a model has how often, whether or not they are supported. */
const char *onnx_summary(tec_context *cx, const char *path)
{
    size_t size;
    bool mapped;
    const uint8_t *data = base_view_file(cx, path, &size, &mapped);
    onnx_weights weights = {0};

    if (data)
        onnx_lift_weights(cx, &data, &size, &weights);
    Onnx__ModelProto *model = data ? unpack(cx, path, data, size) : NULL;
    base_dict counts = {0};
    base_vec sorted = {0};
    base_text t = {0};

    if (!model)
        return NULL;
    for (size_t i = 0; i < model->graph->n_node; i++) {
        const char *op = model->graph->node[i]->op_type ? model->graph->node[i]->op_type : "";
        op_count *count = base_dict_get(&counts, op);

        if (!count) {
            count = base_new(cx, op_count);
            count->op = op;
            base_dict_put(cx, &counts, op, count);
            base_push(cx, &sorted, count);
        }
        count->n++;
    }
    if (sorted.n)
        qsort(sorted.at, (size_t)sorted.n, sizeof *sorted.at, by_name);
    for (int i = 0; i < sorted.n; i++)
        base_addf(cx, &t, "%d %s\n", ((op_count *)sorted.at[i])->n, ((op_count *)sorted.at[i])->op);
    return base_text_str(cx, &t);
}
