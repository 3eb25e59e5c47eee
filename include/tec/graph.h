/* tec/graph.h -- models: graphs of tensor operators, made by hand or read from ONNX, and the modules that
 * they become.
 *
 *     tec_graph *g = tec_graph_import(cx, "resnet18.onnx", NULL);      // or:
 *     tec_graph *g = tec_graph_new(cx, "net");
 *     const tec_expr *n = tec_graph_symbol(g, "batch");
 *     tec_value *x = tec_graph_input(g, "x", TEC_F32, n, tec_int(cx, 64));
 *     tec_value *w = tec_graph_constant(g, "w", tec_array_tensor(weights));
 *     tec_value *y = tec_graph_op(g, "matmul", "fc", TEC_NO_ATTRS, x, w);
 *     y = tec_graph_op(g, "softmax", "scores", TEC_ATTRS(tec_attr_int("axis", 1)), y);
 *     tec_graph_output(g, "y", y);
 *     tec_module *m = tec_graph_build(g, NULL);                        // run it with tec/runtime.h
 *
 * Lifetime: graphs and values belong to the context and die with it; a module is the caller's and needs no
 * context.
 * Errors: a constructor that cannot make sense of its operands records a message with the caller's line, the
 *   operator and its name, and returns NULL; NULL operands give NULL, so a whole graph is checked once, when
 *   it is built. The first message wins.
 * Threads: one context, one thread.
 */
#ifndef TEC_GRAPH_H
#define TEC_GRAPH_H

#include <stdbool.h>

#include "tec/build.h"
#include "tec/runtime.h"
#include "tec/te.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tec_graph tec_graph;
typedef struct tec_value tec_value;

/* ---- graphs ---- */

TEC_API tec_graph *tec_graph_new(tec_context *cx, const char *name);
/* A dimension whose value is known only when the graph runs; the same name gives the same symbol. Its value
 * is read from the shape of an input: at least one input must have the symbol itself as an extent, as in
 * f32[n, 64]. */
TEC_API const tec_expr *tec_graph_symbol(tec_graph *graph, const char *name);
/* A condition on symbols that callers promise to meet, such as batch <= 32. Each run is checked against
 * it. */
TEC_API void tec_graph_fact(tec_graph *graph, const tec_expr *condition);
TEC_API tec_value *tec_graph_input_n(tec_graph *graph, const char *name, tec_dtype dtype,
                                     const tec_expr *const *shape, int n);
/* A copy of a tensor in main memory, strided or not. */
TEC_API tec_value *tec_graph_constant(tec_graph *graph, const char *name, const DLTensor *tensor);
TEC_API void tec_graph_output(tec_graph *graph, const char *name, tec_value *value);
/* "f32[batch, 64]". */
TEC_API const char *tec_value_type(tec_graph *graph, const tec_value *value);

/* ---- operators ---- */

/* An attribute of an operator, such as the axis of a softmax; tec_operator_help lists those of an operator.
 * The arrays and texts that it points at are copied when the operator is added. */
typedef enum {
    TEC_ATTR_INT,
    TEC_ATTR_FLOAT,
    TEC_ATTR_STRING,
    TEC_ATTR_INTS,
    TEC_ATTR_FLOATS,
    TEC_ATTR_EXPRS,
    TEC_ATTR_DTYPE
} tec_attr_kind;

typedef struct {
    const char *name;
    tec_attr_kind kind;
    int n; /* of ints, floats, exprs */
    union {
        int64_t i;
        double f;
        const char *string;
        const int64_t *ints;
        const double *floats;
        const tec_expr *const *exprs; /* dimensions that may depend on symbols */
        tec_dtype dtype;
    } value;
} tec_attr;

typedef struct {
    const tec_attr *at;
    int n;
} tec_attrs;

TEC_API tec_attr tec_attr_int(const char *name, int64_t value);
TEC_API tec_attr tec_attr_float(const char *name, double value);
TEC_API tec_attr tec_attr_string(const char *name, const char *value);
TEC_API tec_attr tec_attr_ints(const char *name, const int64_t *value, int n);
TEC_API tec_attr tec_attr_floats(const char *name, const double *value, int n);
TEC_API tec_attr tec_attr_exprs(const char *name, const tec_expr *const *value, int n);
TEC_API tec_attr tec_attr_dtype(const char *name, tec_dtype value);

/* The k-th operator's name, k from 0; NULL behind the last. */
TEC_API const char *tec_operator_name(int k);
/* One line: what it computes, its attributes with their meaning. NULL: no such operator. */
TEC_API const char *tec_operator_help(const char *op);

/* Adds operator `op` to the graph and gives its first output. `name` is for messages and profiles. To leave
 * out an optional operand, put NULL in its place, or make the array shorter if no other operand follows. */
TEC_API tec_value *tec_graph_op_n(tec_graph *graph, const char *op, const char *name, tec_attrs attrs,
                                  tec_value *const *in, int n);
/* Output at of the operator that has value as its first output. */
TEC_API tec_value *tec_graph_result(tec_graph *graph, tec_value *value, int at);

/* ---- models ---- */

/* Zero is the default. A symbolic dimension stays symbolic unless it gets a value here: by its name in the
 * model, or as "INPUT.AXIS". A value for a name that is no open dimension is an INVALID error. */
typedef struct {
    int n_dims;
    const char *const *dim;
    const int64_t *value;
} tec_import_options;

/* Reads an ONNX model. If it uses operators or attributes that tec does not support, the call fails with
 * TEC_UNSUPPORTED and a note for each such node. options may be NULL. */
TEC_API tec_graph *tec_graph_import(tec_context *cx, const char *path, const tec_import_options *options);
/* The same for a model in memory. `name` is for messages; files with external data are looked for in the
 * directory of `name`. */
TEC_API tec_graph *tec_graph_import_bytes(tec_context *cx, const char *name, const void *data, size_t size,
                                          const tec_import_options *options);

/* Reads a program of functions, data types and control flow (docs/lang.md). params: the .safetensors file
 * with the tensors that it declares with `param`; NULL where it declares none. A module of a program is run
 * with tec/program.h. */
TEC_API tec_graph *tec_graph_read_program(tec_context *cx, const char *path, const char *params);
/* The text of a program in its canonical layout, as `tec fmt` prints it; the context's. `path` is for
 * messages. NULL where the syntax is faulty. */
TEC_API const char *tec_graph_format_program(tec_context *cx, const char *path, const char *text);

/* ---- modules ---- */

/* Optimises the graph, plans its memory, and compiles its kernels. The graph itself does not change. options
 * may be NULL. */
TEC_API TEC_GIVE tec_module *tec_graph_build(tec_graph *graph, const tec_build_options *options);
TEC_API bool tec_graph_build_file(tec_graph *graph, const tec_build_options *options, const char *path);

/* ---- the caller's line ---- */

TEC_API tec_graph *tec_here_graph(tec_graph *graph, const char *file, int line);
#define TEC_HERE_GRAPH(g) tec_here_graph((g), __FILE__, __LINE__)

#define TEC_VALUES(...) TEC_LIST(tec_value *const, __VA_ARGS__)
#define TEC_VALUE_COUNT(...) TEC_LIST_COUNT(tec_value *const, __VA_ARGS__)
#ifdef __cplusplus
#define TEC_ATTRS_OF(at, n) (tec_attrs{(at), (n)})
#else
#define TEC_ATTRS_OF(at, n) ((tec_attrs){(at), (n)})
#endif
#define TEC_NO_ATTRS TEC_ATTRS_OF(NULL, 0)
#define TEC_ATTRS(...)                                                                                       \
    TEC_ATTRS_OF(TEC_LIST(const tec_attr, __VA_ARGS__), TEC_LIST_COUNT(const tec_attr, __VA_ARGS__))
#define TEC_INTS(name, ...)                                                                                  \
    tec_attr_ints((name), TEC_LIST(const int64_t, __VA_ARGS__), TEC_LIST_COUNT(const int64_t, __VA_ARGS__))

#define tec_graph_input(g, name, t, ...)                                                                     \
    tec_graph_input_n(TEC_HERE_GRAPH(g), (name), (t), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_graph_constant(g, name, t) (tec_graph_constant)(TEC_HERE_GRAPH(g), (name), (t))
#define tec_graph_output(g, name, v) (tec_graph_output)(TEC_HERE_GRAPH(g), (name), (v))
#define tec_graph_op(g, op, name, attrs, ...)                                                                \
    tec_graph_op_n(TEC_HERE_GRAPH(g), (op), (name), (attrs), TEC_VALUES(__VA_ARGS__),                        \
                   TEC_VALUE_COUNT(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
