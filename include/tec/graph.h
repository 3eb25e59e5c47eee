/* tec/graph.h -- models: graphs of tensor operators, made by hand or read from ONNX, and the modules that they become.
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
 * Lifetime: graphs and values belong to the context and die with it; a module is the caller's and needs no context.
 * Errors: a constructor that cannot make sense of its operands records a message with the caller's line, the operator and its name, and
 *   returns NULL; NULL operands give NULL, so a whole graph is checked once, when it is built. The first message wins.
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
/* A dimension that is known when the graph runs; the same name gives the same symbol. It must be the whole extent of some input. */
TEC_API const tec_expr *tec_graph_symbol(tec_graph *g, const char *name);
/* A promise of the caller about symbols, checked at each run: batch <= 32. */
TEC_API void tec_graph_fact(tec_graph *g, const tec_expr *condition);
TEC_API tec_value *tec_graph_input_n(tec_graph *g, const char *name, tec_dtype t, const tec_expr *const *shape, int n);
/* A copy of a tensor in main memory, strided or not. */
TEC_API tec_value *tec_graph_constant(tec_graph *g, const char *name, const DLTensor *t);
TEC_API void tec_graph_output(tec_graph *g, const char *name, tec_value *v);
/* "f32[batch, 64]". */
TEC_API const char *tec_value_type(tec_graph *g, const tec_value *v);

/* ---- operators ---- */

/* An attribute of an operator: tec_operator_help says which there are. What it points at is copied when the operator is added. */
typedef enum { TEC_ATTR_INT, TEC_ATTR_FLOAT, TEC_ATTR_STRING, TEC_ATTR_INTS, TEC_ATTR_FLOATS, TEC_ATTR_EXPRS, TEC_ATTR_DTYPE } tec_attr_kind;

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

/* The first output of operator `op` on operands; `name` is the user's, for messages and profiles. An operand that is left out is NULL in
 * the array and counts in n; operands that may be left out are the operator's last. */
TEC_API tec_value *tec_graph_op_n(tec_graph *g, const char *op, const char *name, tec_attrs attrs, tec_value *const *in, int n);
/* Output k of the operator whose first output v is. */
TEC_API tec_value *tec_graph_result(tec_graph *g, tec_value *v, int k);

/* ---- models ---- */

/* Zero is the default. A symbolic dimension stays symbolic unless it gets a value here: by its name in the model, or as "INPUT.AXIS". */
typedef struct {
    int n_dims;
    const char *const *dim;
    const int64_t *value;
} tec_import_options;

/* Reads an ONNX model. What it needs and tec lacks is an UNSUPPORTED error with a note for each node. options may be NULL. */
TEC_API tec_graph *tec_graph_import(tec_context *cx, const char *path, const tec_import_options *options);
/* The same from memory; `name` is for messages. External data is sought beside it. */
TEC_API tec_graph *tec_graph_import_bytes(tec_context *cx, const char *name, const void *data, size_t size, const tec_import_options *options);

/* ---- modules ---- */

/* Optimises, plans and compiles. The graph is left as it is. options may be NULL. */
TEC_API TEC_GIVE tec_module *tec_graph_build(tec_graph *g, const tec_build_options *options);
TEC_API bool tec_graph_build_file(tec_graph *g, const tec_build_options *options, const char *path);

/* ---- the caller's line ---- */

TEC_API tec_graph *tec_here_graph(tec_graph *g, const char *file, int line);
#define TEC_HERE_GRAPH(g) tec_here_graph((g), __FILE__, __LINE__)

#define TEC_VALUES(...) (tec_value *const[]){__VA_ARGS__}
#define TEC_VALUE_COUNT(...) ((int)(sizeof((tec_value *const[]){__VA_ARGS__}) / sizeof(tec_value *)))
#define TEC_NO_ATTRS ((tec_attrs){NULL, 0})
#define TEC_ATTRS(...) ((tec_attrs){(const tec_attr[]){__VA_ARGS__}, (int)(sizeof((const tec_attr[]){__VA_ARGS__}) / sizeof(tec_attr))})
#define TEC_INTS(name, ...) tec_attr_ints((name), (const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

#define tec_graph_input(g, name, t, ...) tec_graph_input_n(TEC_HERE_GRAPH(g), (name), (t), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_graph_constant(g, name, t) (tec_graph_constant)(TEC_HERE_GRAPH(g), (name), (t))
#define tec_graph_output(g, name, v) (tec_graph_output)(TEC_HERE_GRAPH(g), (name), (v))
#define tec_graph_op(g, op, name, attrs, ...) \
    tec_graph_op_n(TEC_HERE_GRAPH(g), (op), (name), (attrs), TEC_VALUES(__VA_ARGS__), TEC_VALUE_COUNT(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
