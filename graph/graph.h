/* graph/graph.h -- the model IR: a module of functions; dataflow of operators, with regions and calls.
 *
 *     graph_module *m = graph_new(cx, "net");
 *     graph_function *f = graph_function_new(m, "main");
 *     graph_value *x = graph_input(f, "x", type), *w = graph_constant(f, "w", constant);
 *     graph_value *y = graph_add(f, "conv", "conv1", (graph_value *[]){x, w}, 2, attrs, n);
 *     graph_output(f, "y", y);
 *     m = graph_optimise(m, t);                  // all passes, see graph/passes.c
 *     graph_build(m, &options) ...               // graph/build.h
 *
 * A body lists nodes in an order in which each value is made before it is used. A node is an operator, a call
 * of another function, `if`, `loop` or `scan` with bodies as regions, a *group* (what fusion made: a body
 * that becomes one kernel), or the packing of an operator's constant operand. Programs have values that are
 * no tensors (graph/type.h) and nodes for them. Passes make new bodies and leave old ones as they are; a pass
 * recurses into regions or refuses them by name. Values carry their type and device.
 *
 * The module, functions and regions bind symbols, the unknown extents of types, and hold facts about them
 * (graph/scope.h): a symbol of the module has one value in a whole run, a function's one for each call, a
 * region's one each time that the region runs.
 *
 * The last stages of a build turn a function into its *planned form* (graph/planned.h), of other nodes:
 * memory is allocated, kernels are invoked with the tensors that they read and write, and what nobody reads
 * any more is given back.
 * Lifetime: the context's. Text: graph/text.h, round-trips (constants by hash or in full).
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "compiler/compiler.h"
#include "ops/op.h"

typedef struct tec_graph graph_module;
typedef struct graph_function graph_function;
typedef struct graph_body graph_body;
typedef struct graph_node graph_node;
typedef struct tec_value graph_value;

typedef enum {
    GRAPH_OP,
    GRAPH_CALL,
    GRAPH_IF,
    GRAPH_LOOP,
    GRAPH_SCAN,
    GRAPH_GROUP,
    GRAPH_PACK,
    /* of programs (graph/program.h) */
    GRAPH_MAKE_TUPLE, /* its operands as one value */
    GRAPH_FIELD,      /* @index(k): part k of a tuple */
    GRAPH_CONSTRUCT,  /* a value of a data type, by the constructor `callee`, of its fields */
    /* runs the region of the constructor that made the value; the region's inputs are the fields */
    GRAPH_MATCH,
    GRAPH_CLOSURE, /* the function `callee` with its first parameters given */
    GRAPH_APPLY,   /* calls a function value */
    GRAPH_CHECK,   /* bool[]: fails with @message where the condition is false */
    /* The elements of an integer tensor, of rank 0 or 1, become the values of @symbols(exprs [n, m]), so that
     * shapes may depend on data. Fails where an element is negative. */
    GRAPH_EXTENTS,
    /* of the planned form */
    /* a piece of a device's memory: u8[bytes]; @output(i): the memory that the reader of output i sees */
    GRAPH_ALLOC_STORAGE,
    /* a tensor at @offset(exprs [bytes]) of a storage, or without an offset another shape of a tensor */
    GRAPH_ALLOC_TENSOR,
    /* runs a kernel on tensors: those that it reads, then those that it writes; @dims: values of the kernel's
     * symbols */
    GRAPH_INVOKE,
    /* the first tensor with the second behind it along the first dimension; the first is read no more, so
     * that its memory may be extended */
    GRAPH_APPEND,
    GRAPH_DEVICE_COPY, /* copies the first tensor's elements to the second, also between devices */
    GRAPH_KILL         /* the tensor is read no more: its bytes may be allocated again */
} graph_node_kind;
enum { GRAPH_N_KINDS = GRAPH_KILL + 1 };

struct tec_value {
    const char *name; /* the user's where there is one */
    op_type type;     /* of a tensor; n -1: of no tensor */
    /* of a tuple, a data type or a function (graph/type.h); NULL: a tensor */
    const struct graph_type *compound;
    int device;                  /* 0: the host */
    const op_constant *constant; /* of constants; NULL otherwise */
    graph_node *node;            /* what makes it; NULL for inputs of bodies and constants */
    int which;
    base_loc loc;
};

struct graph_node {
    graph_node_kind kind;
    const char *name;  /* the user's, or derived: "conv1", "conv1+bn1+relu1" */
    base_loc loc;      /* model file and node */
    const op_info *op; /* GRAPH_OP */
    /* chosen implementation of an operator, of the anchor of a group; may be NULL */
    const op_impl *impl;
    /* of an operator whose operand impl->packs is packed already, and of GRAPH_PACK: the operator as it
     * was */
    const graph_node *plain;
    /* GRAPH_CALL, GRAPH_CLOSURE: a function of the module; GRAPH_CONSTRUCT: a constructor; GRAPH_INVOKE: a
     * kernel */
    const char *callee;
    int n_in, n_out, n_attrs, n_bodies;
    graph_value **in, **out; /* an operand that is left out is NULL */
    const op_attr *attr;
    /* regions: if: then, else; loop: body; match: for each constructor; group: its operators */
    graph_body **body;
    int n_symbols;
    const ir_expr *const *symbol; /* of its body: extents of its results that only running it tells */
};

struct graph_body {
    base_vec inputs;                     /* graph_value * */
    base_vec nodes;                      /* graph_node *, in order */
    base_vec outputs;                    /* graph_value * */
    base_vec output_names;               /* char *: the user's, whatever passes make of the values */
    graph_body *outer;                   /* of a region: values of outer bodies may be used */
    base_vec symbols;                    /* ir_expr *: what the body binds */
    base_vec facts;                      /* conditions that hold while it runs */
    bool entry;                          /* of the function that a run of the module begins with */
    const ir_facts *known, *known_outer; /* of so many symbols and facts: what graph_facts_in gave last */
    int n_known_symbols, n_known_facts;
};

struct graph_function {
    const char *name;
    graph_module *module;
    graph_body *body;
};

/* What a kernel takes, for `invoke` to be compared with. Shapes are over the kernel's own symbols. */
typedef struct {
    const char *name;
    int n_symbols, n_params, n_reads; /* the parameters behind the first n_reads are written */
    const ir_expr *const *symbol;
    const op_type *param;
} graph_kernel_type;

struct tec_graph {
    tec_context *cx;
    const char *name;
    base_vec devices;   /* const char *: the kind of device 1, 2, ..., "opencl"; device 0 is the host */
    base_vec data;      /* graph_data *: data types */
    base_vec kernels;   /* graph_kernel_type *: what planned functions invoke */
    base_vec functions; /* graph_function *; the entry is the first, "main" */
    base_vec symbols;   /* ir_expr *, named dimensions: of all functions, with one value in a run */
    base_vec facts;     /* conditions over symbols */
    base_dict symbol_by_name;
    base_dict fresh; /* names of symbols that were made without a name */
    /* For messages, and shared by all modules that passes make of one: what a fact means (condition -> char
     * *), and what the user calls a value that has no name of its own (graph_value * -> char *). */
    base_map *meanings, *names;
    const ir_facts *known; /* of so many symbols and facts: what graph_facts gave last */
    int n_known_symbols, n_known_facts;
    bool for_vm;       /* becomes bytecode even if the static executor could run it */
    comp_cache *cache; /* of code that is generated for the module; NULL: none */
};

graph_module *graph_new(tec_context *cx, const char *name);
graph_function *graph_function_new(graph_module *module, const char *name);
const graph_kernel_type *graph_kernel_named(const graph_module *module, const char *name); /* NULL: none */
const ir_expr *graph_symbol(graph_module *module,
                            const char *name); /* of the module; NULL name: a fresh one */
graph_value *graph_input(graph_function *function, const char *name, op_type type);
graph_value *graph_constant(graph_function *function, const char *name, const op_constant *constant);
/* An operator node with its types inferred; NULL with an error. n_outputs is 1 unless the operator says
 * otherwise. */
#define GRAPH_ADD(f, op, name, attr, n_attrs, ...)                                                           \
    graph_add((f), (op), (name), (graph_value *const[]){__VA_ARGS__},                                        \
              (int)(sizeof((graph_value *[]){__VA_ARGS__}) / sizeof(graph_value *)), (attr), (n_attrs))
graph_value *graph_add(graph_function *function, const char *op, const char *name, graph_value *const *in,
                       int n, const op_attr *attr, int n_attrs);
graph_node *graph_add_node(graph_function *function, const op_info *op, const char *name,
                           graph_value *const *in, int count, const op_attr *attr, int n_attrs);
void graph_output(graph_function *function, const char *name, graph_value *value);

/* Regions: inputs, nodes and outputs that are added between open and close are the region's; they may use
 * values of the bodies around it. A region that is closed is handed to the constructor of the node that holds
 * it. Regions nest. */
void graph_region_open(graph_function *function);
graph_body *graph_region_close(graph_function *function);

/* Nodes with regions, and calls. NULL with an error where types do not fit; a NULL value or body among those
 * needed gives NULL. */
graph_node *graph_add_call(graph_function *function, const char *callee, const char *name,
                           graph_value *const *in, int count);
/* cond: bool[]. Both branches have no inputs and the same outputs. */
graph_node *graph_add_if(graph_function *function, const char *name, graph_value *cond, graph_body *then,
                         graph_body *otherwise);
/* in: the largest number of iterations (i64[], NULL: any), whether to begin (bool[], NULL: yes), then the
 * carried values. The body takes the number of the iteration, the condition and the carried values; it gives
 * whether to go on, the carried values, and what is collected: that gets a first dimension of its own in the
 * result, a fresh symbol. */
graph_node *graph_add_loop(graph_function *function, const char *name, graph_value *const *in, int count,
                           graph_body *body);
/* in: n_states states, then sequences of one length, their first dimension. The body takes the states and one
 * element of each sequence; it gives the new states and an element for each sequence of the result. A value
 * that is carried may change its extents: where the type of the body's input has a symbol of the body, each
 * iteration has another value for it, and the result has a fresh symbol there. */
graph_node *graph_add_scan(graph_function *function, const char *name, graph_value *const *in, int count,
                           int n_states, graph_body *body);

/* What always holds: values are made before they are used, and used inside their body only; types agree with
 * relations; inputs and outputs of regions match their node; the functions that are called exist; extents are
 * made of the module's symbols. False with an error that names the node. */
bool graph_verify(const graph_module *module);

#endif
