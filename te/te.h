/* te/te.h -- definitions: tensors by expressions, stages in dependence order, and the default loop tree of a
 * definition.
 *
 *     te_def *d = te_def_new(cx, "mm");
 *     const ir_expr *y = te_axis(cx, "y", n), *x = te_axis(cx, "x", m), *k = te_reduce_axis(cx, "k", l);
 *     te_tensor *C = te_compute(d, "C", (const ir_expr *[]){y, x}, 2, te_sum(cx, ir_mul(cx, te_at(A, y, k),
 *         te_at(B, k, x)), k));
 *     te_output(d, C);
 *     const ir_program *tree = te_tree(cx, d);
 *
 * A tensor is read by loading from its buffer: te_at gives an IR_LOAD. A definition is closed: its stages
 * read its inputs and each other only. Fusion writes roles on the stages. The text form (te/text.h,
 * docs/te.md) round-trips.
 * Lifetime: the context's. Errors: as everywhere, first one wins, NULL flows. Threads: a finished definition
 * may be read by many.
 */
#ifndef TE_TE_H
#define TE_TE_H

#include "ir/build.h"

typedef struct tec_def te_def;
typedef struct te_stage te_stage;
typedef struct te_scan te_scan;
typedef struct te_call te_call;
typedef struct tec_tensor te_tensor;

typedef enum { TE_INPUT, TE_COMPUTE, TE_SCAN, TE_EXTERN } te_kind;

struct tec_tensor {
    te_def *def;
    const te_stage *stage;
    int which;               /* output of the stage */
    const ir_buffer *buffer; /* name, dtype, shape */
};

struct te_stage {
    te_kind kind;
    const char *name; /* unique in the definition */
    ir_role role;
    int n_axes, n_reduce, n_outputs;
    /* spatial: one for each dimension of the outputs */
    const ir_expr *const *axis, *const *extent;
    /* of the reduction that is the whole body, if it is one */
    const ir_expr *const *reduce_axis, *const *reduce_extent;
    /* n_outputs; a reduction stage: IR_REDUCE nodes of one combiner */
    const ir_expr *const *body;
    te_tensor *const *output;
    const ir_note *notes; /* what the operator tells its schedule */
    /* TE_SCAN: the recurrence of which this is one update; the updates of a scan stand next to each other */
    te_scan *scan;
    const te_stage *init; /* TE_SCAN: the first steps of the same output, named OUTPUT.first; NULL: none */
    const te_call *call;  /* TE_EXTERN: the function and what it gets */
    base_loc loc;
};

/* A recurrence: updates that run one after the other in each step of time, and read earlier steps of its
 * tensors at constant distances. The first steps of its states are given; what has none is computed and used
 * within one step. */
struct te_scan {
    te_def *def;
    const char *name;
    const ir_expr *time, *extent; /* the axis that is the first of all its tensors */
    int64_t first;                /* steps that are given; time runs from there on */
    base_vec states;              /* te_tensor *: those with first steps */
    base_vec steps;               /* te_stage *: the updates, in order */
    base_loc loc;
};

struct tec_def {
    tec_context *cx;
    const char *name;
    base_vec symbols; /* ir_expr * (int64 variables) */
    base_vec facts;   /* ir_expr * (conditions) */
    base_vec inputs;  /* te_tensor *, and scalars as ir_expr * in `scalars` */
    base_vec scalars;
    base_vec outputs; /* te_tensor * */
    base_vec stages;  /* te_stage *, each after those it reads; inputs included */
    base_dict names;
    te_scan *open; /* the scan that is being made, or NULL */
    ir_role role;  /* given to the stages that are made from now on */
    base_loc loc;
};

te_def *te_def_new(tec_context *cx, const char *name);
const ir_expr *te_symbol(te_def *def, const char *name); /* count >= 0 is known; one for each name */
/* variables of expr that stand for sizes become symbols of the definition */
void te_use_symbols(te_def *def, const ir_expr *expr);
void te_fact(te_def *def, const ir_expr *condition);
te_tensor *te_input(te_def *def, const char *name, base_dtype dtype, const ir_expr *const *shape, int count);
const ir_expr *te_scalar(te_def *def, const char *name, base_dtype dtype);
void te_output(te_def *def, te_tensor *tensor);

/* An axis runs over 0..extent-1; it is an int64 variable that knows its extent and kind. */
const ir_expr *te_axis(tec_context *cx, const char *name, const ir_expr *extent);
const ir_expr *te_reduce_axis(tec_context *cx, const char *name, const ir_expr *extent);
const ir_expr *te_axis_extent(const ir_expr *axis);
bool te_axis_is_reduce(const ir_expr *axis);

const ir_expr *te_read(te_tensor *tensor, const ir_expr *const *index, int count);
#define te_at(t, ...)                                                                                        \
    te_read((t), (const ir_expr *const[]){__VA_ARGS__},                                                      \
            (int)(sizeof((const ir_expr *const[]){__VA_ARGS__}) / sizeof(const ir_expr *)))

/* sum, prod, min, max over the axes, of dtype of expr; any combiner with count sources through ir_reduce. */
const ir_expr *te_reduce(tec_context *cx, const char *combiner, const ir_expr *expr,
                         const ir_expr *const *axis, int n);
/* The same over the points where the condition holds; NULL: everywhere. */
const ir_expr *te_reduce_where(tec_context *cx, const char *combiner, const ir_expr *expr,
                               const ir_expr *const *axis, int count, const ir_expr *condition);
#define te_sum(cx, e, ...)                                                                                   \
    te_reduce((cx), "sum", (e), (const ir_expr *const[]){__VA_ARGS__},                                       \
              (int)(sizeof((const ir_expr *const[]){__VA_ARGS__}) / sizeof(const ir_expr *)))

/* One output for each body; a body whose root is a reduction makes a reduction stage; a reduction deeper in
 * an expression becomes a stage of its own, named NAME.r, NAME.r2. */
te_tensor *te_compute(te_def *def, const char *name, const ir_expr *const *axis, int n, const ir_expr *body);
bool te_compute_n(te_def *def, const char *name, const ir_expr *const *axis, int n,
                  const ir_expr *const *body, int n_bodies, te_tensor **out);
/* The same with the outputs' own names. */
bool te_compute_named(te_def *def, const char *name, const char *const *output, const ir_expr *const *axis,
                      int count, const ir_expr *const *body, int n_bodies, te_tensor **out);
/* an update without first steps in a scan that has some: not all of its output is written */
bool te_stage_is_partial(const te_stage *stage);
te_tensor *te_tensor_named(const te_def *def, const char *name); /* NULL: none */

/* ---- scans ---- */

/*     te_scan *scan = te_scan_new(def, "cell", t);                                       // time: t in 0..n
 *     // its first steps, for t0 in 0..1
 *     te_tensor *h = te_scan_state(s, "h", (const ir_expr *[]){t0, j}, 2, ...);
 *     te_scan_step(s, "h", (const ir_expr *[]){t, j}, 2, ... te_at(h, ir_sub(cx, t, ir_int(cx, 1)), k) ...);
 *     te_scan_close(s);
 *
 * An update reads tensors of the scan at t - k: k >= 1 back to the first steps, 0 where it is computed
 * earlier in the same step. All states have the same constant number of first steps, which must be proven to
 * be at most the extent of time. What is computed without first steps is for the scan alone, unless there are
 * none at all. The scan's tensors become the definition's when it is closed. */
te_scan *te_scan_new(te_def *def, const char *name, const ir_expr *time);
/* before all updates */
te_tensor *te_scan_state(te_scan *scan, const char *name, const ir_expr *const *axis, int count,
                         const ir_expr *body);
te_tensor *te_scan_step(te_scan *scan, const char *name, const ir_expr *const *axis, int n,
                        const ir_expr *body);
/* Several outputs of one update, none of them a state: NAME.v0, ..., or with names of their own. */
bool te_scan_step_n(te_scan *scan, const char *name, const ir_expr *const *axis, int n,
                    const ir_expr *const *body, int n_bodies, te_tensor **out);
bool te_scan_step_named(te_scan *scan, const char *name, const char *const *output,
                        const ir_expr *const *axis, int count, const ir_expr *const *body, int n_bodies,
                        te_tensor **out);
bool te_scan_close(te_scan *scan);

/* ---- extern stages ---- */

typedef struct {
    const char *name;
    base_dtype dtype;
    const ir_expr *const *shape;
    int n;
} te_extern_output;

/* A function of the user's, known by its name alone. In C: int32_t f(const T *input..., T *output...,
 * argument...), 0 where it did its work; tensors are compact and row-major. It writes all of its outputs and
 * nothing else. */
struct te_call {
    const char *name;     /* of the stage; with one output, that output's name */
    const char *function; /* a C identifier */
    te_tensor *const *input;
    int n_inputs;
    const te_extern_output *output;
    int n_outputs;
    const ir_expr *const *arg; /* over symbols and scalars */
    int n_args;
    /* inputs and outputs as here; its symbols, then its scalars, are the arguments. NULL: the interpreter
     * cannot run it */
    const te_def *meaning;
    const ir_intrinsic *intrinsic; /* set by te_extern; NULL without a meaning */
};
bool te_extern(te_def *def, const te_call *call, te_tensor **out); /* out: n_outputs */

/* Adds a note to a stage (before the tree is made), for the schedule of the operator. */
void te_note(te_tensor *tensor, const char *key, const ir_expr *value);

/* The default tree: inputs and outputs are the parameters (inputs, scalars, outputs in that order), one block
 * for each stage in dependence order, each under a perfect nest of its own axes, loops named STAGE.AXIS. An
 * output that is an input too is an error. */
const ir_program *te_tree(tec_context *cx, const te_def *def);

/* Specialisation: symbols replaced by expressions (constants, or 8*k + r), everywhere. */
te_def *te_specialise(tec_context *cx, const te_def *def, const ir_expr *const *symbol,
                      const ir_expr *const *value, int count);

#endif
