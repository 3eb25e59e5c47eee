/* ops/reduce.c -- reductions over chosen axes, argmin and argmax, softmax, pooling's global forms.
 *
 * Attributes of reductions: axes (positive, sorted; all where absent), keepdims (1).
 */
#include "ops/families.h"
#include "ops/op.h"

/* ---- shape ---- */

/* Without the attribute all dimensions are; with an empty list none. */
static bool is_reduced(const op_call *call, int dim)
{
    const int64_t *axes;
    int n = op_ints(call, "axes", &axes);

    for (int i = 0; i < n; i++)
        if (axes[i] == dim)
            return true;
    return !op_attr_find(call, "axes");
}

/* Reduced dimensions go, or stay with extent 1. */
static bool reduce_relation(op_call *call)
{
    const op_type *type = &call->input[0];
    const ir_expr **dim = base_array(call->cx, const ir_expr *, type->n);
    const int64_t *axes;
    int n = 0, n_axes = op_ints(call, "axes", &axes);

    for (int i = 0; i < n_axes; i++)
        if (axes[i] < 0 || axes[i] >= type->n)
            return op_fail(call, "axis %lld does not exist: the operand is %s", (long long)axes[i],
                           op_type_text(call->cx, type));
    for (int i = 0; i < type->n; i++) {
        if (!is_reduced(call, i))
            dim[n++] = type->dim[i];
        else if (op_int(call, "keepdims", 1))
            dim[n++] = ir_int(call->cx, 1);
    }
    call->output[0] = (op_type){type->dtype, n, dim};
    return true;
}

/* The position along the axis: its type does not depend on the operand's. */
static bool arg_relation(op_call *call)
{
    if (!reduce_relation(call))
        return false;
    call->output[0].dtype = BASE_I64;
    return true;
}

/* ---- bodies ---- */

/* Axes of the result and of the reduction, and the operand's index over them. */
typedef struct {
    const ir_expr **out, **reduce, **index;
    int n_out, n_reduce;
    const ir_expr *count; /* elements of one reduction */
} reduction;

/* Axes of the result and of the reduction, the index that reads the operand, and how many elements each
 * result combines. */
static reduction open_reduction(const op_call *call)
{
    tec_context *cx = call->cx;
    int n = call->input[0].n;
    bool keep = op_int(call, "keepdims", 1);
    reduction r = {.out = base_array(cx, const ir_expr *, n),
                   .reduce = base_array(cx, const ir_expr *, n),
                   .index = base_array(cx, const ir_expr *, n),
                   .count = ir_int(cx, 1)};

    for (int i = 0; i < n; i++) {
        const ir_expr *extent = call->input[0].dim[i];

        if (is_reduced(call, i)) {
            r.index[i] = r.reduce[r.n_reduce++] = te_reduce_axis(cx, base_format(cx, "r%d", i), extent);
            r.count = ir_mul(cx, r.count, extent);
            if (keep)
                r.out[r.n_out++] = te_axis(cx, base_format(cx, "a%d", i), ir_int(cx, 1));
        } else
            r.index[i] = r.out[r.n_out++] = te_axis(cx, base_format(cx, "a%d", i), extent);
    }
    return r;
}

/* What is added up in float16 or bfloat16 would lose its last bits after a few elements. */
static base_dtype wide(base_dtype dtype)
{
    return base_is_float(dtype) && dtype.bits == 16 ? BASE_F32 : dtype;
}

/* What is reduced, by what, and what becomes of the result. */
typedef struct {
    const char *name, *combiner;
    const ir_expr *(*before)(tec_context *cx, const ir_expr *expr);
    const ir_expr *(*after)(tec_context *cx, const ir_expr *expr, const ir_expr *count);
} reducer;

static const ir_expr *square(tec_context *cx, const ir_expr *expr)
{
    return ir_mul(cx, expr, expr);
}
static const ir_expr *magnitude(tec_context *cx, const ir_expr *expr)
{
    return ir_abs(cx, expr);
}

/* The mean of integers is cut off. */
static const ir_expr *mean(tec_context *cx, const ir_expr *expr, const ir_expr *count)
{
    return ir_div(cx, expr, ir_cast(cx, expr->dtype, count));
}

static const ir_expr *root(tec_context *cx, const ir_expr *expr, const ir_expr *count)
{
    (void)count;
    if (base_is_float(expr->dtype))
        return ir_sqrt(cx, expr);
    return ir_cast(cx, expr->dtype, ir_sqrt(cx, ir_cast(cx, BASE_F64, expr)));
}

static const ir_expr *logarithm(tec_context *cx, const ir_expr *expr, const ir_expr *count)
{
    (void)count;
    if (base_is_float(expr->dtype))
        return ir_log(cx, expr);
    return ir_cast(cx, expr->dtype, ir_log(cx, ir_cast(cx, BASE_F64, expr)));
}

static const reducer reducers[] = {
    {"reduce_sum", "sum", NULL, NULL},          {"reduce_mean", "sum", NULL, mean},
    {"reduce_max", "max", NULL, NULL},          {"reduce_min", "min", NULL, NULL},
    {"reduce_prod", "prod", NULL, NULL},        {"reduce_l1", "sum", magnitude, NULL},
    {"reduce_l2", "sum", square, root},         {"reduce_sum_square", "sum", square, NULL},
    {"reduce_log_sum", "sum", NULL, logarithm},
};

/* before(x), combined, after(result, count): a mean is a sum divided by the count, an L2 norm the root of a
 * sum of squares. */
static bool reduce_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const reducer *how = NULL;
    tec_context *cx = call->cx;
    reduction r = open_reduction(call);

    for (int i = 0; i < BASE_COUNT(reducers); i++)
        if (base_same(reducers[i].name, call->op->name))
            how = &reducers[i];
    const ir_expr *expr = te_read(in[0], r.index, call->input[0].n);
    if (!expr)
        return false;
    expr = ir_cast(cx, wide(expr->dtype), expr);
    if (how->before)
        expr = how->before(cx, expr);
    if (r.n_reduce)
        expr = te_reduce(cx, how->combiner, expr, r.reduce, r.n_reduce);
    if (expr && how->after)
        expr = how->after(cx, expr, r.count);
    *out = te_compute(def, op_stage_name(def, call->op->name), r.out, r.n_out,
                      ir_cast(cx, call->output[0].dtype, expr));
    return *out != NULL;
}

/* What is subtracted from the exponents of one reduction: the greatest, so that none overflows; 0 where that
 * is infinite. inf - inf would be no number: with 0 in its place the sum is infinite and so is its logarithm,
 * and where all are -inf the sum is 0 and its logarithm -inf. */
static te_tensor *greatest_exponents(const op_call *call, te_def *def, te_tensor *input, base_dtype dtype)
{
    tec_context *cx = call->cx;
    reduction r = open_reduction(call), own = open_reduction(call);
    const ir_expr *expr = te_read(input, r.index, call->input[0].n);

    expr = expr ? te_reduce(cx, "max", ir_cast(cx, dtype, expr), r.reduce, r.n_reduce) : NULL;
    te_tensor *top =
        te_compute(def, op_stage_name(def, base_format(cx, "%s.max", call->op->name)), r.out, r.n_out, expr);
    expr = te_read(top, own.out, own.n_out);
    return te_compute(def, op_stage_name(def, base_format(cx, "%s.shift", call->op->name)), own.out,
                      own.n_out, ir_select(cx, ir_isinf(cx, expr), expr ? ir_imm(cx, dtype, 0) : NULL, expr));
}

/* log(sum(exp(x))) = max + log(sum(exp(x - max))). Integers are computed in float64, and cut off at the end.
 * Nothing to reduce: the logarithm and the exponential cancel. */
static bool log_sum_exp_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    base_dtype from = call->input[0].dtype, t = base_is_float(from) ? wide(from) : BASE_F64;
    reduction r = open_reduction(call), own = open_reduction(call);
    const ir_expr *expr = te_read(in[0], r.index, call->input[0].n);

    if (expr && r.n_reduce) {
        te_tensor *shift = greatest_exponents(call, def, in[0], t);
        const ir_expr *power = ir_exp(cx, ir_sub(cx, ir_cast(cx, t, expr), te_read(shift, r.out, r.n_out)));
        te_tensor *sum = te_compute(def, op_stage_name(def, base_format(cx, "%s.sum", call->op->name)), r.out,
                                    r.n_out, te_reduce(cx, "sum", power, r.reduce, r.n_reduce));

        expr = ir_add(cx, ir_log(cx, te_read(sum, own.out, own.n_out)), te_read(shift, own.out, own.n_out));
        r = own;
    }
    *out = te_compute(def, op_stage_name(def, call->op->name), r.out, r.n_out,
                      ir_cast(cx, call->output[0].dtype, expr));
    return *out != NULL;
}

/* select_last: the last of equal elements: the index is counted from the end while it is searched, because
 * the combiner keeps the smaller index of two equal elements. In [5, 7, 7] position 2 counts as 0, and 1 as
 * 1: the search gives 0, which is position 2. */
static bool arg_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    reduction r = open_reduction(call);
    const ir_expr *value = te_read(in[0], r.index, call->input[0].n);
    bool last = op_int(call, "select_last", 0);

    if (r.n_reduce != 1)
        return op_fail(call, "expected one axis to search, found %d", r.n_reduce);
    if (!value)
        return false;
    const ir_expr *extent = te_axis_extent(r.reduce[0]),
                  *at = last ? ir_sub(cx, ir_sub(cx, extent, ir_int(cx, 1)), r.reduce[0]) : r.reduce[0];
    const ir_combiner *combiner = ir_combiner_named(
        cx, base_same(call->op->name, "arg_max") ? "argmax" : "argmin", value->dtype, BASE_I64);
    const ir_expr *source[2] = {value, at};
    const ir_expr *expr = ir_reduce(cx, combiner, source, r.reduce, &extent, 1, NULL, 1);

    if (last && expr)
        expr = ir_sub(cx, ir_sub(cx, extent, ir_int(cx, 1)), expr);
    *out = te_compute(def, op_stage_name(def, call->op->name), r.out, r.n_out, ir_cast(cx, BASE_I64, expr));
    return *out != NULL;
}

/* ---- softmax: axis, or from_axis: all axes from there on as one ---- */

/* A scalar with axis 0 is one element, and passes. */
static bool softmax_relation(op_call *call)
{
    int64_t axis = op_int(call, "axis", call->input[0].n - 1);

    if (axis < 0 || axis >= (call->input[0].n > 0 ? call->input[0].n : 1))
        return op_fail(call, "axis %lld does not exist: the operand is %s", (long long)axis,
                       op_type_text(call->cx, &call->input[0]));
    if (!base_is_float(call->input[0].dtype))
        return op_fail(call, "the operand is %s, expected floats", op_type_text(call->cx, &call->input[0]));
    call->output[0] = call->input[0];
    return true;
}

/* Axes of one stage over the operand: those that are normalised over, and the others. */
typedef struct {
    const ir_expr **all, **outer;
    int n_outer;
} softmax_axes;

/* `flatten` is how older models say it: all dimensions from the axis on are one. */
static bool is_normalised(const op_call *call, int i)
{
    int64_t axis = op_int(call, "axis", call->input[0].n - 1);

    return op_int(call, "flatten", 0) ? i >= axis : i == axis;
}

/* softmax has three stages over the same axes: the maximum, the sum of exponentials, and the quotient. */
static softmax_axes open_axes(const op_call *call, bool reduce, const ir_expr **reduced, int *n_reduced)
{
    tec_context *cx = call->cx;
    int n = call->input[0].n;
    softmax_axes a = {.all = base_array(cx, const ir_expr *, n), .outer = base_array(cx, const ir_expr *, n)};

    for (int i = 0; i < n; i++) {
        const ir_expr *extent = call->input[0].dim[i];

        if (is_normalised(call, i)) {
            a.all[i] = reduce ? te_reduce_axis(cx, base_format(cx, "r%d", i), extent)
                              : te_axis(cx, base_format(cx, "a%d", i), extent);
            if (reduce)
                reduced[(*n_reduced)++] = a.all[i];
        } else
            a.outer[a.n_outer++] = a.all[i] = te_axis(cx, base_format(cx, "a%d", i), extent);
    }
    return a;
}

/* One number for each place outside of the normalised axes. */
static te_tensor *reduce_stage(const op_call *call, te_def *def, te_tensor *tensor, const char *combiner,
                               const char *suffix)
{
    const ir_expr **reduced = base_array(call->cx, const ir_expr *, call->input[0].n);
    int n = 0;
    softmax_axes a = open_axes(call, true, reduced, &n);
    const ir_expr *expr = te_read(tensor, a.all, call->input[0].n);

    expr =
        expr ? te_reduce(call->cx, combiner, ir_cast(call->cx, wide(expr->dtype), expr), reduced, n) : NULL;
    return te_compute(def, op_stage_name(def, base_format(call->cx, "%s.%s", call->op->name, suffix)),
                      a.outer, a.n_outer, expr);
}

static const ir_expr *shifted(const op_call *call, te_tensor *input, te_tensor *top, const softmax_axes *axes)
{
    const ir_expr *e = te_read(input, axes->all, call->input[0].n);

    return e ? ir_sub(call->cx, ir_cast(call->cx, wide(e->dtype), e),
                      te_read(top, axes->outer, axes->n_outer))
             : NULL;
}

/* They are kept: the sum and the quotient both read them, and an exponential costs more than a load. */
static te_tensor *exponentials(const op_call *call, te_def *def, te_tensor *input, te_tensor *top)
{
    softmax_axes a = open_axes(call, false, NULL, NULL);
    te_tensor *t = te_compute(def, op_stage_name(def, base_format(call->cx, "%s.exp", call->op->name)), a.all,
                              call->input[0].n, ir_exp(call->cx, shifted(call, input, top, &a)));

    te_note(t, "keep", ir_bool(call->cx, true));
    return t;
}

/* exp(x - max) / sum(exp(x - max)), with one division for each sum, which is at least 1; or its logarithm,
 * x - max - log(sum(exp(x - max))) */
static bool softmax_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;

    te_tensor *top = reduce_stage(call, def, in[0], "max", "max"), *exp = exponentials(call, def, in[0], top),
              *sum = reduce_stage(call, def, exp, "sum", "sum");
    softmax_axes a = open_axes(call, false, NULL, NULL);
    const ir_expr *total = te_read(sum, a.outer, a.n_outer), *expr;

    if (base_same(call->op->name, "log_softmax"))
        expr = ir_sub(cx, shifted(call, in[0], top, &a), ir_log(cx, total));
    else
        expr =
            ir_mul(cx, te_read(exp, a.all, call->input[0].n), ir_div(cx, ir_imm(cx, total->dtype, 1), total));
    *out = te_compute(def, op_stage_name(def, call->op->name), a.all, call->input[0].n,
                      ir_cast(cx, call->output[0].dtype, expr));
    return *out != NULL;
}

static const op_impl reduce_impls[] = {{.name = "reduce", .version = 1, .body = reduce_body, .packs = -1}};
static const op_impl log_sum_exp_impls[] = {
    {.name = "log_sum_exp", .version = 1, .body = log_sum_exp_body, .packs = -1}};
static const op_impl arg_impls[] = {{.name = "arg", .version = 1, .body = arg_body, .packs = -1}};
static const op_impl softmax_impls[] = {{.name = "softmax", .version = 2, .body = softmax_body, .packs = -1}};

#define REDUCE_BY(op, how, text)                                                                             \
    {.name = op,                                                                                             \
     .min_inputs = 1,                                                                                        \
     .max_inputs = 1,                                                                                        \
     .n_outputs = 1,                                                                                         \
     .kind = OP_REDUCTION,                                                                                   \
     .relation = reduce_relation,                                                                            \
     .impls = how##_impls,                                                                                   \
     .n_impls = 1,                                                                                           \
     .in_place = -1,                                                                                         \
     .doc = text "; axes (all), keepdims (1)"}
#define REDUCE(op, text) REDUCE_BY(op, reduce, text)
#define ARG(op, text)                                                                                        \
    {.name = op,                                                                                             \
     .min_inputs = 1,                                                                                        \
     .max_inputs = 1,                                                                                        \
     .n_outputs = 1,                                                                                         \
     .kind = OP_REDUCTION,                                                                                   \
     .relation = arg_relation,                                                                               \
     .impls = arg_impls,                                                                                     \
     .n_impls = 1,                                                                                           \
     .in_place = -1,                                                                                         \
     .doc = text "; axes (one), keepdims (1), select_last (0)"}
#define SOFTMAX(op, text)                                                                                    \
    {.name = op,                                                                                             \
     .min_inputs = 1,                                                                                        \
     .max_inputs = 1,                                                                                        \
     .n_outputs = 1,                                                                                         \
     .kind = OP_OPAQUE,                                                                                      \
     .relation = softmax_relation,                                                                           \
     .impls = softmax_impls,                                                                                 \
     .n_impls = 1,                                                                                           \
     .in_place = -1,                                                                                         \
     .doc = text "; axis (the last), flatten (0): all axes from there on as one"}

static const op_info rows[] = {
    REDUCE("reduce_sum", "sum"),
    REDUCE("reduce_mean", "mean"),
    REDUCE("reduce_max", "greatest element"),
    REDUCE("reduce_min", "least element"),
    REDUCE("reduce_prod", "product"),
    REDUCE("reduce_l1", "sum of magnitudes"),
    REDUCE("reduce_l2", "root of the sum of squares"),
    REDUCE("reduce_sum_square", "sum of squares"),
    REDUCE("reduce_log_sum", "logarithm of the sum"),
    REDUCE_BY("reduce_log_sum_exp", log_sum_exp, "logarithm of the sum of exponentials"),
    ARG("arg_max", "position of the greatest element"),
    ARG("arg_min", "position of the least element"),
    SOFTMAX("softmax", "exp(a) normalised to a sum of 1"),
    SOFTMAX("log_softmax", "logarithm of softmax"),
};
const op_family op_reduce_family = {rows, BASE_COUNT(rows)};
