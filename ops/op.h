/* ops/op.h -- tensor operators as data: type relation, implementations in te, fusion kind.
 *
 *     const op_info *op = op_find("conv");
 *     op_call c = {.cx = cx, .op = op, .target = t, .n_inputs = 2, .input = types, .n_attrs = n,
 *         .attr = attrs};
 *     if (op_infer(&c)) ... c.output[0] is the type of the result
 *     const op_impl *impl = op_choose(&c);
 *     impl->body(&c, def, in, out);                 // adds stages to the te definition of the group
 *
 * An operator says nothing of schedules: the default one is the start of the space of its definition
 * (space/space.h), which reads the roles and notes of the stages. A stage has the note "keep" where it is to
 * stay a stage of its own, and "by_rows" where its reader wants one row of its results at a time. An operator
 * is one row of its family's table (ops/table.c lists the families) and one file, or a piece of the family's.
 * Operators are tec's own: front ends map theirs to these, with normalised attributes (explicit pads,
 * positive axes). Every dimension is an i64 expression over symbols.
 * Lifetime: the context's. Errors: user errors name the operator, the operand and c->loc.
 */
#ifndef OPS_OP_H
#define OPS_OP_H

#include "ir/reason/facts.h"
#include "targets/target.h"
#include "te/te.h"

typedef struct op_info op_info;
typedef struct op_call op_call;

typedef struct {
    base_dtype dtype;
    int n;
    const ir_expr *const *dim;
} op_type;

typedef enum {
    OP_ATTR_INT,
    OP_ATTR_FLOAT,
    OP_ATTR_STRING,
    OP_ATTR_INTS,
    OP_ATTR_FLOATS,
    OP_ATTR_EXPRS,
    OP_ATTR_DTYPE
} op_attr_kind;

typedef struct {
    const char *name;
    op_attr_kind kind;
    int n; /* of ints, floats, exprs */
    union {
        int64_t i;
        double f;
        const char *string;
        const int64_t *ints;
        const double *floats;
        /* dimensions that depend on symbols: the shape of a reshape, bounds of a slice */
        const ir_expr *const *exprs;
        base_dtype dtype;
    };
} op_attr;

/* A value that is known at build time: compact, row-major. Its data lie at any address where they are
 * `mapped`, with natural alignment at least otherwise. */
typedef struct {
    op_type type;
    const void *data;
    int64_t bytes;
    bool mapped; /* in a file: their pages may be given back, and are read again when they are needed */
} op_constant;

/* A condition over symbols that the relation of an operator relies on. */
typedef struct {
    const ir_expr *condition;
    const char *text; /* what must hold, in words: "add 'sum': dimension 0 of ..."; NULL: the condition */
} op_demand;

struct op_call {
    tec_context *cx;
    const op_info *op;
    const target *target;
    const char *name; /* the user's, of the node */
    base_loc loc;
    int n_inputs, n_outputs, n_attrs;
    const op_type *input; /* an operand that is left out has n = -1 */
    /* for each input, what the user calls it, for messages; NULL where it has no name; the array may be
     * NULL */
    const char *const *operand;
    /* for each input, NULL unless known at build time; the array may be NULL */
    const op_constant *const *constant;
    /* for each input of an element-wise operator, NULL unless the body is to use this number in place of a
     * tensor; the array may be NULL */
    const ir_expr *const *number;
    const op_attr *attr;
    op_type *output;       /* filled by op_infer */
    const ir_facts *facts; /* about symbols; may be NULL */
    /* takes what the relation relies on (op_demand *), for the caller to check; NULL: nothing may be left
     * open */
    base_vec *needs;
};

/* How an operator may fuse (the TVM paper, section 3). */
typedef enum {
    OP_INJECTIVE, /* one-to-one index map: element-wise, broadcast, reshape, transpose, slice, concat */
    OP_REDUCTION, /* sum, max, softmax's parts, pooling */
    OP_COMPLEX,   /* convolution, matrix product: element-wise operators fuse to the output */
    OP_OPAQUE     /* nothing fuses */
} op_kind;

typedef struct op_impl {
    const char *name; /* "conv.direct" */
    int version;      /* of the meaning that records refer to */
    /* NULL: always. The first row that applies, by falling `rank`, is the default choice */
    bool (*applies)(const op_call *call);
    int (*rank)(const op_call *call); /* NULL: 0 */
    /* Adds stages to d. in[k] is NULL for an operand that is left out. Stages are named after c->name (unique
     * in d by op_stage_name). The main stage has the role that d->role says; a body may set roles of helper
     * stages (padding: prologue). */
    bool (*body)(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out);
    /* A constant operand that the body wants transformed (packed): the graph computes it once, at build time;
     * for an operand that is not constant, its stages go in front of the body. The body is handed the result
     * in place of in[packs]. */
    int packs; /* operand index, or -1 */
    bool (*pack)(const op_call *call, te_def *def, te_tensor *in, te_tensor **out);
} op_impl;

struct op_info {
    const char *name;
    int min_inputs, max_inputs, n_outputs; /* max -1: any number; n_outputs -1: the relation says */
    op_kind kind;
    bool (*relation)(op_call *call); /* fills c->output (allocated, n_outputs of them) or fails */
    const op_impl *impls;
    int n_impls;
    /* Of element-wise operators: the scalar function over operands that were broadcast and are of one
     * dtype. */
    const ir_expr *(*scalar)(const op_call *call, const ir_expr *const *arg);
    int in_place; /* input whose storage the output may take, or -1 */
    /* the same elements in the same order: storage may be shared (reshape, flatten, identity) */
    bool identity;
    const char *doc; /* one line; attributes with their meaning */
};

/* The operators of one family, in its own file; ops/table.c lists the families. */
typedef struct {
    const op_info *rows;
    int n;
} op_family;
extern const op_family *const op_families[];
extern const int op_n_families;
const op_info *op_find(const char *name);

bool op_infer(op_call *call); /* checks the number of inputs, runs the relation */
/* Whether a tensor of this type could exist: no negative extent, less than 2^47 bytes, dimensions of at most
 * 1000 terms; otherwise why not. */
bool op_check_size(tec_context *cx, const op_type *type, const char **why);
/* Whether a dimension has at most 1000 terms. *large: a number beyond 2^47 is among them. */
bool op_is_short(tec_context *cx, const ir_expr *expr, bool *large);
/* As the rank of a row: chosen before those without a rank wherever it applies. */
int op_rank_first(const op_call *call);
const op_impl *op_choose(const op_call *call); /* NULL with an error: nothing applies */
/* body with packing: what the graph and tests call. packed: in[impl->packs] is packed already. */
bool op_emit(const op_call *call, const op_impl *impl, te_def *def, te_tensor *const *in, bool packed,
             te_tensor **out);

/* ---- for relations and bodies ---- */
/* The attribute of that name among n; NULL: there is none. */
const op_attr *op_attr_among(const op_attr *attr, int n, const char *name);
const op_attr *op_attr_find(const op_call *call, const char *name);
int64_t op_int(const op_call *call, const char *name, int64_t otherwise);
double op_float(const op_call *call, const char *name, double otherwise);
const char *op_string(const op_call *call, const char *name, const char *otherwise);
int op_ints(const op_call *call, const char *name, const int64_t **out); /* count; 0 where absent */
bool op_has_input(const op_call *call, int k);
/* Extents that must be equal: proven, or left to the caller as a condition (see needs); false where neither
 * is possible. */
bool op_equal(const op_call *call, const ir_expr *left, const ir_expr *right);
/* The same of dimension i of operand k and dimension j of operand l, which the demand names. */
bool op_equal_extents(const op_call *call, int k, int i, int l, int j);
bool op_differ(tec_context *cx, const ir_expr *left, const ir_expr *right); /* whatever the symbols are */
/* A condition that callers must keep: left to them (see needs) unless it is proven, or nobody takes it. */
void op_need(const op_call *call, const ir_expr *condition);
/* An error about this call: "conv 'layer1/conv': ..." at the user's node; always false. */
bool op_fail(const op_call *call, const char *fmt, ...) BASE_PRINTF(2, 3);
/* NumPy's rules over all inputs. Only an extent that is the number 1 gives way to another; two unknown
 * extents must be equal, which is left to the caller as op_equal leaves it. */
bool op_broadcast(const op_call *call, op_type *out);
const char *op_type_text(tec_context *cx, const op_type *type); /* "f32[n, 64]" */
const char *op_stage_name(te_def *def, const char *base);       /* unique in def */
/* The one stage of an operator with one output. */
bool op_compute(const op_call *call, te_def *def, const ir_expr *const *axis, const ir_expr *expr,
                te_tensor **out);
const ir_expr **op_axes_of(const op_call *call,
                           const op_type *type); /* a0, a1, ...: one for each dimension */

/* Constructors of attributes. */
op_attr op_attr_int(const char *name, int64_t v);
op_attr op_attr_float(const char *name, double v);
op_attr op_attr_string(const char *name, const char *v);
op_attr op_attr_ints(tec_context *cx, const char *name, const int64_t *v, int n);
op_attr op_attr_exprs(tec_context *cx, const char *name, const ir_expr *const *var, int n);
op_attr op_attr_dtype(const char *name, base_dtype dtype);

#endif
