/* ir/ir.h -- the nodes: expressions, buffers, statements, blocks, programs.
 *
 *     const ir_expr *i = ir_var(cx, "i", BASE_I64), *x = ir_load(cx, A, &i, 1);
 *     const ir_stmt *s = ir_for(cx, i, ir_int(cx, 0), n, IR_SERIAL, ir_store(cx, B, ir_mul(cx, x, x), &i,
 *         1));
 *     puts(ir_stmt_text(cx, s));
 *
 * A node never changes after its constructor returned it; a pass returns a new tree that shares what it did
 * not touch, and the same pointer where it changed nothing. Variables and buffers are identified by address,
 * not by name. Constructors (ir/build.h) check types; they give NULL, with an error in the context, for
 * operands that do not fit, and NULL for NULL.
 *
 * Semantics
 * - Integers wrap in two's complement. Index arithmetic is assumed not to overflow: int64 expressions over
 *   loop variables, iteration variables, symbols and constants up to IR_MOST_INDEX. The simplifier may
 *   compare differences of it. An int64 expression that holds data wraps: loads, calls, scalar arguments,
 *   operands of combiners, larger constants, results of <<, integers made from floats, from uint64 or by
 *   reinterpret, and lets of those. Sums and products of data are reassociated (that is exact modulo 2^64),
 *   but differences of them prove nothing, unless bounds of the data show that nothing can wrap: i64(A[i]) *
 *   4 of int32. bool is its own type: no arithmetic on it; false < true holds for EQ and NE only.
 * - DIV and MOD of ints truncate, FLOORDIV and FLOORMOD floor. INT_MIN / -1 wraps. Data divided by 0 gives 0,
 *   quotient and remainder alike (ir_divides_data): nobody can promise that data are not 0. Index arithmetic
 *   may take a divisor for nonzero; there a zero is an error of the program, which the interpreter reports.
 * - Floats follow IEEE 754, round to nearest even, each operation rounded to its dtype; nothing is
 *   reassociated by the simplifier and no `x*0` or `x-x` is folded for floats. MIN and MAX give NaN where an
 *   operand is NaN. FMA rounds once. float16 and bfloat16 operations compute in float32 and round once per
 *   operation.
 * - CAST float -> int truncates and saturates, NaN gives 0; int -> int wraps; to bool is `!= 0`. REINTERPRET
 *   keeps the bits.
 * - SELECT, AND and OR evaluate what they need only: an operand that is not chosen may be out of bounds.
 *   Other operands are evaluated in any order; loads have no side effects.
 * - LET evaluates its value once. RAMP(base, stride, n) is the vector base + stride*k. A vector operation
 *   works lane by lane; on lane-varying conditions the laziness above holds per lane.
 * - A vector LOAD or STORE takes vector indices (a ramp in the last one, after flattening in the only one)
 *   and an optional lane mask: a masked-off lane touches nothing and loads 0.
 */
#ifndef IR_IR_H
#define IR_IR_H

#include "base/base.h"

typedef struct tec_expr ir_expr;
typedef struct ir_stmt ir_stmt;
typedef struct ir_buffer ir_buffer;
typedef struct ir_block ir_block;
typedef struct ir_combiner ir_combiner;
typedef struct ir_program ir_program;
typedef struct ir_intrinsic ir_intrinsic;
typedef struct ir_facts ir_facts; /* ir/reason/facts.h */

/* ---- expressions ---- */

typedef enum {
    IR_INT,    /* 7, i32(7), true       the value; bool and every int type; uint64 as its bits */
    IR_FLOAT,  /* 1.5, f16(0x1p-3)      exact */
    IR_STRING, /* "text"                operand of calls only; dtype handle */
    /* i                     loop variable, block iteration variable, symbol, let variable, scalar argument */
    IR_VAR,
    IR_LOAD,        /* A[i, j]               with a mask: (A[i, j] where m) */
    IR_CAST,        /* f32(x)                */
    IR_REINTERPRET, /* reinterpret<i32>(x)   same number of bits */
    IR_RAMP,        /* ramp(base, stride, 8) */
    IR_BROADCAST,   /* broadcast(x, 8)       x scalar */
    IR_SHUFFLE,     /* shuffle([a, b], [0, 3, 1])   lanes picked from the concatenated operands */
    IR_LET,         /* let x = a in b        */
    IR_CALL,        /* name(a, b)            an extern function or tensor intrinsic, by registered name */
    IR_REDUCE,      /* sum[k](A[k]), argmax[k](A[k], k).0   in te bodies only */
#define IR_OP(NAME, ...) IR_##NAME,
#include "ir/ops.def"
    IR_N_OPS
} ir_op;

enum {
    IR_COMMUTES = 1,
    IR_ASSOCIATES = 2,
    IR_LAZY = 4,
    IR_EFFECT = 8,
    IR_ZERO_FAILS = 16,
    IR_LANES = 32,
    IR_FLOAT_LANES = 64
};

typedef enum { IR_FORM_NODE, IR_I1, IR_I2, IR_I3, IR_I4, IR_I5, IR_I6, IR_I7, IR_I8, IR_PRE, IR_FUN } ir_form;
typedef enum { IR_OPERANDS_NODE, IR_NUM, IR_INTS, IR_FLT, IR_BOOL, IR_ANY, IR_COND } ir_operands;
typedef enum { IR_RESULT_NODE, IR_SAME, IR_BOOLEAN } ir_result;

/* One row of the operation table; rows of the structural kinds above have form IR_FORM_NODE and arity 0. */
typedef struct {
    const char *name; /* "ADD" */
    const char *text; /* "+" */
    ir_form form;
    int arity;
    ir_operands operands;
    ir_result result;
    int flags;
} ir_op_info;
extern const ir_op_info ir_ops[IR_N_OPS];
static inline bool ir_is_op(ir_op op)
{
    return op > IR_REDUCE && op < IR_N_OPS;
}
/* Whether kernels in text may have the operation on vectors of the dtype, with the meaning that it has for
 * each element. */
static inline bool ir_has_vectors(ir_op op, base_dtype dtype)
{
    int needed = base_is_float(dtype) ? IR_LANES | IR_FLOAT_LANES : IR_LANES;

    return ir_is_op(op) && (ir_ops[op].flags & needed) != 0;
}

/* What a node holds somewhere inside, itself included. */
enum { IR_HAS_LOAD = 1, IR_HAS_EFFECT = 2, IR_HAS_BINDER = 4, IR_HAS_DATA = 8 };

/* Beyond this magnitude an int64 is no index, extent or stride: no memory has so many elements. */
#define IR_MOST_INDEX ((int64_t)1 << 56)

/* Kinds of nodes that passes look for; what holds none of the kind inside, itself included, needs no
 * visit. */
enum {
    IR_KIND_ACCESS = 1,    /* loads and calls */
    IR_KIND_COMPARE = 2,   /* comparisons of index expressions */
    IR_KIND_MASK = 4,      /* vectors of bools */
    IR_KIND_PRODUCT = 8,   /* products of floats */
    IR_KIND_FUNCTION = 16, /* operations on floats alone, but fma */
    IR_KIND_HINT = 32      /* likely */
};

struct tec_expr {
    ir_op op;
    base_dtype dtype;
    base_loc loc;
    uint64_t hash; /* ir_hash; the constructors compute it, with the four below */
    /* one bit for each variable used inside. Variables may share a bit: where it is not set, none of them is
     * used; where it is set, one of them may be */
    uint64_t vars;
    int depth;      /* 1 for leaves */
    uint16_t kinds; /* IR_KIND_... */
    /* IR_HAS_LOAD (loads, calls that read buffers), IR_HAS_EFFECT (impure calls), IR_HAS_BINDER (let,
     * reduce), IR_HAS_DATA (see Semantics) */
    uint16_t has;
    union {
        int64_t i; /* IR_INT */
        double f;  /* IR_FLOAT */
        const char *string;
        struct {
            const char *name;
            const void *owner; /* te: the axis that it stands for, otherwise NULL; no meaning in ir/ */
            /* its value may be any number: a scalar argument, a combiner's operand, a let of data */
            bool data;
        } var;
        struct {
            const ir_buffer *buffer;
            const ir_expr *const *index;
            const ir_expr *mask; /* NULL: all lanes */
            int n;               /* dimensions of the buffer; 1 after flattening */
        } load;
        const ir_expr *arg[3]; /* operations, IR_CAST, IR_REINTERPRET, IR_BROADCAST; unused ones NULL */
        struct {
            const ir_expr *base, *stride; /* scalars of one int dtype; lanes in dtype */
        } ramp;
        struct {
            const ir_expr *const *vectors;
            const int *pick;
            int n; /* vectors; picks: dtype.lanes */
        } shuffle;
        struct {
            const ir_expr *var, *value, *body;
        } let;
        struct {
            const char *name;
            const ir_intrinsic *intrinsic; /* its meaning, or NULL for an opaque extern function */
            const ir_expr *const *arg;
            /* buffer operands (n_buffers), each with its own element offset in `arg` */
            const ir_buffer *const *buffer;
            int n, n_buffers;
            bool pure;
        } call;
        struct {
            const ir_combiner *combiner;
            const ir_expr *const *source; /* combiner->n of them */
            const ir_expr *const *axis;   /* variables with extents: see te/ */
            const ir_expr *const *extent;
            const ir_expr *condition; /* NULL: always */
            int n_axes;
            int which; /* the component of the tuple that this expression is */
        } reduce;
    };
};

/* Of a division of integers: whether a zero divisor gives 0 (see Semantics). */
static inline bool ir_divides_data(const ir_expr *expr)
{
    return (expr->has & IR_HAS_DATA) || expr->dtype.code != kDLInt || expr->dtype.bits != 64;
}

/* How partial results combine. `x` and `y` are parameter variables: result[j] is over x[0..n-1] (so far) and
 * y[0..n-1] (new). identity[j] has no variables but y's dtype. Sum, product, min, max, argmin and argmax are
 * made by ir_combiner_named; a user's own have any name. */
struct ir_combiner {
    const char *name;
    int n;
    const ir_expr *const *x, *const *y;
    const ir_expr *const *result;
    const ir_expr *const *identity;
    bool reorders; /* declared associative and commutative (for floats: up to rounding) */
    base_loc loc;
};

/* ---- buffers ---- */

#define IR_SCOPE_LIST(X)                                                                                     \
    X(GLOBAL, "global")                                                                                      \
    X(SHARED, "shared")                                                                                      \
    X(LOCAL, "local")                                                                                        \
    X(WARP, "warp")                                                                                          \
    X(ACC_INPUT, "acc.input") /* the accelerator's on-chip buffers */                                        \
    X(ACC_WEIGHT, "acc.weight")                                                                              \
    X(ACC_OUTPUT, "acc.output")                                                                              \
    X(ACC_UOP, "acc.uop")
typedef enum {
#define X(NAME, text) IR_##NAME,
    IR_SCOPE_LIST(X)
#undef X
} ir_scope;
const char *ir_scope_text(ir_scope scope);
bool ir_scope_parse(const char *text, ir_scope *out);

/* Most dimensions of a buffer that the interpreter runs, and of one that lowering keeps in the workspace. */
enum { IR_MAX_DIMS = 16 };

struct ir_buffer {
    const char *name;
    base_dtype dtype; /* of one element; lanes 1 */
    int n;            /* dimensions; 0: one element */
    const ir_expr *const *shape;
    const ir_expr *const *strides; /* in elements, not overlapping; NULL: compact row-major */
    const ir_expr *offset;         /* in elements, from the address that is passed; NULL: 0 */
    ir_scope scope;
    int align; /* bytes that the address is proven to be a multiple of; 0: the element's natural alignment */
    int alias; /* buffers of one class other than 0 may overlap; all others never do */
    const ir_expr *pad; /* the value that elements outside every store are known to hold, or NULL */
    base_loc loc;
};

/* A box of a buffer: min[d] .. min[d]+extent[d]-1 in each dimension. */
typedef struct {
    const ir_buffer *buffer;
    const ir_expr *const *min, *const *extent; /* buffer->n each */
} ir_region;

/* ---- statements ---- */

typedef enum {
    IR_FOR,
    IR_BLOCK,
    IR_STORE,
    IR_UPDATE,
    IR_LET_STMT,
    IR_ALLOCATE,
    IR_IF,
    IR_SEQ,
    IR_ASSERT,
    IR_ATTRIBUTE,
    IR_EVALUATE
} ir_stmt_kind;

#define IR_HOW_LIST(X)                                                                                       \
    X(SERIAL, "")                                                                                            \
    X(PARALLEL, "parallel")                                                                                  \
    X(VECTORISED, "vectorised")                                                                              \
    X(UNROLLED, "unrolled")                                                                                  \
    X(BLOCK_X, "blockIdx.x")                                                                                 \
    X(BLOCK_Y, "blockIdx.y")                                                                                 \
    X(BLOCK_Z, "blockIdx.z")                                                                                 \
    X(THREAD_X, "threadIdx.x")                                                                               \
    X(THREAD_Y, "threadIdx.y")                                                                               \
    X(THREAD_Z, "threadIdx.z")                                                                               \
    X(VTHREAD, "vthread")
typedef enum {
#define X(NAME, text) IR_##NAME,
    IR_HOW_LIST(X)
#undef X
        IR_N_HOWS
} ir_how;
const char *ir_how_text(ir_how how); /* "" for serial */
bool ir_how_parse(const char *text, ir_how *out);

/* A pragma or attribute on a loop or block: key and value (an int or string immediate, or any expression). */
typedef struct ir_note {
    const char *key;
    const ir_expr *value;
    const struct ir_note *next; /* sorted by key text, one of each */
} ir_note;

struct ir_stmt {
    ir_stmt_kind kind;
    base_loc loc;
    union {
        /* for i in 0..n parallel @key(value) { ... }      min..min+extent-1, ascending where serial */
        struct {
            const ir_expr *var, *min, *extent;
            ir_how how;
            const ir_note *notes;
            const ir_stmt *body;
        } loop;
        struct { /* block S(y = e1, k reduce = e2) where p { ... } */
            const ir_block *block;
            const ir_expr *const *bind; /* block->n_iters, over the enclosing loops */
            const ir_expr *where;       /* NULL: always */
        } block;
        struct { /* A[i, j] = e      A[i, j] = e where m */
            const ir_buffer *buffer;
            const ir_expr *const *index;
            const ir_expr *value, *mask;
            int n;
        } store;
        /* A[i] sum= e      (V[i], I[i]) argmax= (e, k)     a reduction's step; combiner->n targets */
        struct {
            const ir_combiner *combiner;
            const ir_buffer *const *buffer;
            const ir_expr *const *index; /* the same for all targets */
            const ir_expr *const *source;
            int n; /* indices */
        } update;
        struct { /* let x = e { ... } */
            const ir_expr *var, *value;
            const ir_stmt *body;
        } let;
        struct { /* allocate B: f32[8, 16] @local { ... } */
            const ir_buffer *buffer;
            const ir_note *notes;
            const ir_stmt *body;
        } allocate;
        struct { /* if c { ... } else { ... } */
            const ir_expr *cond;
            const ir_stmt *then, *otherwise; /* otherwise may be NULL */
        } branch;
        struct { /* one after the other; n = 0 does nothing */
            const ir_stmt *const *stmt;
            int n;
        } seq;
        struct { /* assert c, "message" */
            const ir_expr *cond;
            const char *message;
        } check;
        struct { /* attribute key(value) { ... } */
            const char *key;
            const ir_expr *value;
            const ir_stmt *body;
        } attribute;
        const ir_expr *value; /* evaluate e */
    };
};

/* ---- blocks ---- */

typedef enum { IR_SPATIAL, IR_REDUCE_ITER, IR_SCAN, IR_OPAQUE } ir_iter_kind;

typedef struct {
    const ir_expr *var;    /* int64 */
    const ir_expr *extent; /* values 0..extent-1 */
    ir_iter_kind kind;
} ir_iter;

#define IR_ROLE_LIST(X)                                                                                      \
    X(NONE, "")                                                                                              \
    X(ANCHOR, "anchor") X(PROLOGUE, "prologue") X(EPILOGUE, "epilogue") X(CACHE, "cache") X(COPY, "copy")
typedef enum {
#define X(NAME, text) IR_ROLE_##NAME,
    IR_ROLE_LIST(X)
#undef X
} ir_role;
const char *ir_role_text(ir_role role);
bool ir_role_parse(const char *text, ir_role *out);

/* One instance of a stage: what it does, over its iteration variables only. */
struct ir_block {
    const char *name; /* unique in its program */
    ir_role role;
    int n_iters, n_reads, n_writes;
    const ir_iter *iters;
    /* contain all that init and body touch; a reduction's own output is a write only */
    const ir_region *reads, *writes;
    const ir_stmt *init; /* of a reduction that was not decomposed, else NULL */
    const ir_stmt *body;
    const ir_note *notes;
    base_loc loc;
};

/* ---- programs ---- */

/* Buffers of scope shared begin at a multiple of so many bytes, whatever their elements are. */
enum { IR_SHARED_ALIGN = 16 };
/* Neighbouring threads of a block that share memory of scope warp, x first, then y, then z. */
enum { IR_WARP_THREADS = 32 };

/* What a named intrinsic or extern function means: a program over the same parameters, or none (opaque). */
struct ir_intrinsic {
    const char *name;
    const ir_program *meaning; /* NULL: opaque */
    /* how it is written: a function or statements (ir/intrinsic.h); NULL: by name */
    const char *text;
};

typedef struct {
    const ir_buffer *buffer; /* or */
    const ir_expr *scalar;   /* a variable */
    bool output;             /* buffers only: the program writes all of it */
} ir_param;

/* Buffers, facts about symbols, and one tree: a loop tree with blocks before lowering, a loop AST without
 * after it. */
struct ir_program {
    const char *name;
    int n_params, n_symbols, n_facts, n_buffers, n_intrinsics;
    const ir_param *params;
    const ir_expr *const *symbols; /* int64 variables that shapes are made of */
    /* conditions over symbols that the caller promises: n >= 1, n % 8 == 0 */
    const ir_expr *const *facts;
    /* NULL, or of each fact: NULL, or why a call has to keep a condition that the user did not write */
    const char *const *reasons;
    const ir_buffer *const *buffers; /* every buffer that is no parameter and has no allocate statement yet */
    const ir_intrinsic *const *intrinsics;
    const ir_stmt *body;
    const ir_note *notes;
    base_loc loc;
};

#endif
