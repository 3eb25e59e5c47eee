/* graph/onnx/import.h -- inside the room: the state of an import, and what the conversion of a node may ask
 * and do.
 *
 *     static bool convert_relu(onnx_node *n)
 *     {
 *         return onnx_emit(n, "relu", NULL, 0);
 *     }
 *
 * A conversion gives false after onnx_unsupported (the import goes on, to find all such nodes) or after an
 * error in the context.
 */
#ifndef GRAPH_ONNX_IMPORT_H
#define GRAPH_ONNX_IMPORT_H

#include "base/limit.h"
#include "graph/node.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/onnx.pb-c.h"

enum {
    ONNX_NEWEST_OPSET = 28, /* what the forms of the operators were compared with */
    ONNX_MAX_RANK = 16
};

/* Elements of a small integer tensor, as expressions over symbols: what shapes are computed from. */
typedef struct {
    int n;
    const ir_expr **at;
} onnx_known;

/* The names of one graph of the model: its own, and for a subgraph those of the graphs around it. */
typedef struct onnx_names onnx_names;
struct onnx_names {
    base_dict values;  /* name -> graph_value * */
    base_dict skipped; /* names whose node was unsupported */
    onnx_names *outer;
};

/* ---- weights that stay in the model's file (lift.c) ---- */
typedef struct {
    const uint8_t *data;
    size_t size;
} onnx_span;
typedef struct {
    base_vec spans; /* onnx_span * */
    bool mapped;    /* they lie in a mapping of a file that lives as long as the context */
} onnx_weights;
void onnx_lift_weights(tec_context *cx, const uint8_t **data, size_t *size, onnx_weights *weights);
const onnx_span *onnx_lifted(const onnx_weights *weights, const Onnx__TensorProto *tensor);
/* A number of up to 64 bits, 7 in a byte; steps over it. False: it does not end. */
bool onnx_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *out);

typedef struct {
    tec_context *cx;
    const char *path; /* for messages; data beside it is found from its folder */
    const onnx_options *options;
    onnx_weights weights;
    graph_module *m;
    graph_function *f;
    onnx_names *names; /* of the graph that is read */
    base_map known;    /* graph_value * -> onnx_known * */
    base_map symbols;  /* graph_value * -> what onnx_as_symbols made of it last */
    /* graph_value *: integers that would be known, but as expressions of too many terms */
    base_map long_ones;
    /* graph_value *: integers that would be known, but of more elements than are followed */
    base_map many;
    base_dict dims;       /* name -> ir_expr *: dimensions with a given value */
    base_dict open_dims;  /* names of dimensions without a value in the model, also as "INPUT.AXIS" */
    base_vec unsupported; /* char *: one line for each node */
    int64_t opset;        /* of the default domain */
    int64_t n_nodes;      /* that were converted so far, each as often as that happened */
} onnx_import_state;

typedef struct onnx_row onnx_row;

/* One node under conversion. */
typedef struct {
    onnx_import_state *im;
    tec_context *cx;
    const Onnx__NodeProto *proto;
    const onnx_row *row;
    const char *name;
    int n_in, n_out;
    graph_value **in; /* NULL: left out */
    int64_t opset;
} onnx_node;

struct onnx_row {
    const char *op;
    bool (*convert)(onnx_node *node);
    int since, until; /* opsets that the row is for; until 0: no end */
    /* operands, results and attributes, see form.c: `convert` need not look whether those that must be there
     * are */
    const char *form;
    const char *as; /* of an operator that is one of tec's: its name there */
};

/* The tables of the families, NULL-terminated lists of rows by op. */
typedef struct {
    const onnx_row *rows;
    int n;
} onnx_rows;
#define ONNX_FAMILY_LIST(X)                                                                                  \
    X(arithmetic)                                                                                            \
    X(shape)                                                                                                 \
    X(dynamic)                                                                                               \
    X(control)                                                                                               \
    X(nn) X(transposed) X(reduce) X(norm) X(pick) X(einsum) X(resize) X(recurrent) X(quantize) X(loss)
#define X(family) extern const onnx_rows onnx_##family##_rows;
ONNX_FAMILY_LIST(X)
#undef X
const onnx_row *onnx_find(const char *op, int64_t opset);
bool onnx_knows(const char *op); /* in some opset */
/* Whether the node fits the form of its operator, as ONNX's own checker would have it; otherwise an error. */
bool onnx_check_form(onnx_node *node, const char *form);

/* ---- subgraphs (import.c) ---- */
/* Reads a subgraph into the open region, or into the body at hand: its inputs are the values of `in`. Gives
 * its outputs; NULL after an error, or where a part is not supported, which then is noted. */
graph_value **onnx_subgraph(onnx_import_state *im, const Onnx__GraphProto *GraphProto, graph_value *const *in,
                            int count);
/* The results of the node are missing because of something that was noted already; always false. */
bool onnx_skip(onnx_node *node);

/* ---- attributes ---- */
const Onnx__AttributeProto *onnx_attr(const onnx_node *node, const char *name);
int64_t onnx_int(const onnx_node *node, const char *name, int64_t otherwise);
double onnx_float(const onnx_node *node, const char *name, double otherwise);
const char *onnx_string(const onnx_node *node, const char *name, const char *otherwise);
int onnx_ints(const onnx_node *node, const char *name, const int64_t **out); /* -1 where absent */

/* ---- operands ---- */
bool onnx_has(const onnx_node *node, int k);
int onnx_rank(const onnx_node *node, int k);
bool onnx_is_empty(const graph_value *value); /* has no elements, whatever it will hold */
/* The elements of operand index where they can be known while importing; NULL otherwise. */
const onnx_known *onnx_known_value(onnx_node *node, int k);
const onnx_known *onnx_known_of(onnx_node *node, const graph_value *value);
/* The elements of operand index, a short vector of integers or one integer: as they are known while
 * importing, or as symbols of the body at hand that get their values when the model runs, which fails there
 * where one is negative. NULL: the operand is nothing of that kind. */
const onnx_known *onnx_needed_value(onnx_node *node, int k);
/* The same for any value: symbols for its elements, by which they are known from here on. */
const onnx_known *onnx_as_symbols(onnx_node *node, graph_value *value);
/* Reshape, Expand and Slice of operand 0, computed from operands that are known when the model runs only
 * (dynamic.c). NULL after an error, or where that was noted as not supported. */
graph_value *onnx_run_reshape(onnx_node *node);
bool onnx_run_range(onnx_node *node);
bool onnx_run_tile(onnx_node *node);
graph_value *onnx_run_expand(onnx_node *node);
graph_value *onnx_run_slice(onnx_node *node, const int64_t *axes, int n_axes, const int64_t *steps,
                            int n_steps);
/* An axis of operand 0 that only the run knows, as i64[1] from 0 on. NULL as above. */
graph_value *onnx_run_axis(onnx_node *node, int index);
/* Split, Pad and Expand by sizes that are expressions (symbolic.c); NULL after an error. */
const ir_expr **onnx_split_exprs(onnx_node *node, const ir_expr *extent, const onnx_known *given);
graph_value *onnx_pad_exprs(onnx_node *node, const ir_expr *const *before, const ir_expr *const *after,
                            const char *mode, graph_value *fill);
graph_value *onnx_expand_exprs(onnx_node *node, const ir_expr *const *dim, int count);
/* Demands that the condition holds when the model runs, unless it is known to. */
void onnx_demand(onnx_node *node, const ir_expr *condition);
/* Says that operand index, which is `what` ("a shape"), is not known while importing, and why; always
 * false. */
bool onnx_unknown(onnx_node *node, int k, const char *what);
/* The same as constant integers; -1 where not known or not constant. */
int onnx_constant_ints(onnx_node *node, int index, const int64_t **out);
/* One constant number. */
bool onnx_constant_float(onnx_node *node, int index, double *out);
/* Axis within -rank..rank-1 made positive; an error where it is not. */
bool onnx_axis(onnx_node *node, int64_t axis, int rank, int64_t *out);

/* ---- results ---- */
/* Operator `op` on the node's operands, as output 0. */
bool onnx_emit(onnx_node *node, const char *op, const op_attr *attr, int n_attrs);
/* An operator in the graph; its result goes on to further steps. Where its elements follow from known ones
 * they are known too. */
graph_value *onnx_make(onnx_node *node, const char *op, graph_value *const *in, int n_in, const op_attr *attr,
                       int n_attrs);
#define ONNX_MAKE(n, op, attr, n_attrs, ...)                                                                 \
    onnx_make((n), (op), (graph_value *const[]){__VA_ARGS__},                                                \
              (int)(sizeof((graph_value *const[]){__VA_ARGS__}) / sizeof(graph_value *)), (attr), (n_attrs))
bool onnx_set(onnx_node *node, int index, graph_value *value); /* false for NULL */
void onnx_set_known(onnx_node *node, graph_value *value, const ir_expr *const *at, int count);
/* Called by onnx_make: what is known of value, the result of operator `op` (known.c). */
void onnx_track(onnx_node *node, graph_value *value, const char *op, graph_value *const *in, int n_in,
                const op_attr *attr, int n_attrs);
graph_value *onnx_scalar(onnx_node *node, base_dtype dtype, double value);
graph_value *onnx_reshape(onnx_node *node, graph_value *value, const ir_expr *const *dim, int count);
/* An i64 tensor of expressions over symbols: a vector, or a scalar where `scalar`. */
graph_value *onnx_values(onnx_node *node, const ir_expr *const *at, int count, bool scalar);

/* Says why this node cannot be imported; always false. */
bool onnx_unsupported(onnx_node *node, const char *fmt, ...) BASE_PRINTF(2, 3);
/* The model is wrong here; always false. */
bool onnx_wrong(onnx_node *node, const char *fmt, ...) BASE_PRINTF(2, 3);

/* ---- tensors (tensor.c) ---- */
/* `weights` may be NULL: the tensor holds its data itself. */
const op_constant *onnx_tensor(tec_context *cx, const char *path, const onnx_weights *weights,
                               const Onnx__TensorProto *TensorProto, const char *what);
bool onnx_dtype(int64_t data_type, base_dtype *out);
/* "float8e4m3fn", whether tec has it or not */
const char *onnx_type_name(tec_context *cx, int64_t data_type);
int32_t onnx_data_type(base_dtype dtype); /* 0: none */
ProtobufCAllocator *onnx_allocator(tec_context *cx);
/* Whether messages nest in each other no deeper than any honest file needs: unpacking recurses (depth.c). */
bool onnx_is_shallow(tec_context *cx, const char *name, const ProtobufCMessageDescriptor *self,
                     const uint8_t *data, size_t size);

#endif
