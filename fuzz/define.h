/* fuzz/define.h -- inside the room: a definition while it is being written: tensors with their extents and
 * the largest magnitude of their values.
 *
 *     fuzz_axis a[2]; ... fuzz_open_stage(m, "y", extent) ...
 *     const char *e = fuzz_expr(m, a, 2, 2, &bound);      // reads tensors of m within their bounds
 *
 * Invariant: every value is an integer of magnitude at most `bound`, and bounds stay where the dtype is
 * exact, so that the order of a reduction never shows in the result.
 */
#ifndef FUZZ_DEFINE_H
#define FUZZ_DEFINE_H

#include "base/base.h"

enum {
    FUZZ_MAX_RANK = 5,
    FUZZ_MAX_TENSORS = 40,
    FUZZ_SYMBOLS = 2,
    FUZZ_SYMBOL_MAX = 13,
    FUZZ_DATA_MAX = 4,
    FUZZ_MAX_AXES = 8
};

/* coef * symbol + c */
typedef struct {
    int coef, sym;
    int64_t c;
} fuzz_dim;

typedef struct {
    const char *name;
    base_dtype t;
    int rank;
    fuzz_dim shape[FUZZ_MAX_RANK];
    int64_t bound;
    bool input;
} fuzz_tensor;

typedef struct {
    const char *name;
    fuzz_dim extent;
} fuzz_axis;

typedef struct {
    tec_context *cx;
    uint64_t *state;
    base_text params, body, intrinsics;
    fuzz_tensor at[FUZZ_MAX_TENSORS];
    int n, n_inputs, n_stages;
    bool uses[FUZZ_SYMBOLS];                   /* the symbol occurs */
    int at_least[FUZZ_SYMBOLS];                /* a fact says so */
    int multiple[FUZZ_SYMBOLS];                /* and that the symbol is a multiple of this; 1: nothing */
    int low[FUZZ_SYMBOLS], high[FUZZ_SYMBOLS]; /* values at which all open indices so far stay inside */
    bool has_scalar;
    /* the stage that is being drawn has an index that the symbols decide: no condition may stand around it,
     * since te trusts the author with what conditions on data leave */
    bool open;
    bool closed; /* such an index may not be drawn, as where a condition will stand around it */
    base_text combiners;
    base_dtype t; /* what most stages compute in */
} fuzz_maker;

/* ---- extents ---- */
fuzz_dim fuzz_const(int64_t c);
bool fuzz_is_const(fuzz_dim dim);
bool fuzz_same_dim(fuzz_dim left, fuzz_dim right);
int64_t fuzz_dim_max(fuzz_dim dim);
int64_t fuzz_dim_min(const fuzz_maker *maker, fuzz_dim dim);
const char *fuzz_dim_text(const fuzz_maker *maker, fuzz_dim dim);

/* ---- reads and expressions (fuzz/expr.c) ---- */
/* t at random indices that lie within its shape, or a select that guards them. */
const char *fuzz_read(fuzz_maker *maker, const fuzz_tensor *tensor, const fuzz_axis *axis, int count,
                      int64_t *bound);
/* A text of the tensor's dtype, as one of dtype maker->dtype. */
const char *fuzz_converted(const fuzz_maker *maker, const fuzz_tensor *tensor, const char *e);
/* Of dtype maker->dtype. `first` (may be NULL) is read in any case. */
const char *fuzz_expr(fuzz_maker *maker, const fuzz_tensor *first, const fuzz_axis *axis, int count,
                      int depth, int64_t *bound);
/* Of dtype bool. */
const char *fuzz_condition(fuzz_maker *maker, const fuzz_axis *axis, int count);
const char *fuzz_literal(const fuzz_maker *maker, int64_t v);
int64_t fuzz_limit(base_dtype dtype);
/* e within -9..9 where its bound is over limit. */
const char *fuzz_clamp(fuzz_maker *maker, const char *e, int64_t limit, int64_t *bound);

/* ---- parts of a definition (fuzz/define.c) ---- */
fuzz_tensor *fuzz_add_input(fuzz_maker *maker, base_dtype dtype, const fuzz_dim *shape, int rank);
const char *fuzz_stage_name(fuzz_maker *maker);
fuzz_tensor *fuzz_add_tensor(fuzz_maker *maker, const char *name, base_dtype dtype, const fuzz_axis *axis,
                             int n, int64_t bound);
/* The product of the extents at their largest. */
int64_t fuzz_points(const fuzz_axis *axis, int n);
const char *fuzz_axes_text(fuzz_maker *maker, const fuzz_axis *axis, int n);

/* A stage on top of `base`; false: it does not fit, nothing was written (fuzz/stages.c, fuzz/windows.c,
 * fuzz/scans.c, fuzz/patterns.c, fuzz/externs.c). */
typedef bool fuzz_stage_maker(fuzz_maker *maker, const fuzz_tensor *base);
fuzz_stage_maker fuzz_elementwise, fuzz_reduction, fuzz_reshape, fuzz_padding, fuzz_matmul, fuzz_window,
    fuzz_conv, fuzz_arg_reduction, fuzz_moments, fuzz_horner, fuzz_several, fuzz_triangle, fuzz_gather,
    fuzz_predicate, fuzz_scan, fuzz_pattern, fuzz_bits, fuzz_extern;

#endif
