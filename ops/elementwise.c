/* ops/elementwise.c -- relations and the body of element-wise operators; arithmetic, comparison, logic,
 * selection, casts.
 *
 * A row gives a scalar function; operands are broadcast by NumPy's rules. Activations stand in
 * ops/activation.c.
 */
#include "ops/elementwise.h"
#include "ops/families.h"

/* ---- relations ---- */

/* Operands from `from` on. There is no promotion: the importer or the model casts. */
static bool same_dtypes(const op_call *call, int from)
{
    for (int k = from + 1; k < call->n_inputs; k++)
        if (!base_dtype_same(call->input[k].dtype, call->input[from].dtype))
            return op_fail(call, "operand %d is %s, but operand %d is %s: expected the same type", from,
                           op_type_text(call->cx, &call->input[from]), k,
                           op_type_text(call->cx, &call->input[k]));
    return true;
}

bool op_same_relation(op_call *call)
{
    return same_dtypes(call, 0) && op_broadcast(call, &call->output[0]);
}

bool op_compare_relation(op_call *call)
{
    if (!op_same_relation(call))
        return false;
    call->output[0].dtype = BASE_BOOL;
    return true;
}

bool op_where_relation(op_call *call)
{
    if (!base_is_bool(call->input[0].dtype))
        return op_fail(call, "the condition is %s, expected bool", op_type_text(call->cx, &call->input[0]));
    if (!same_dtypes(call, 1) || !op_broadcast(call, &call->output[0]))
        return false;
    call->output[0].dtype = call->input[1].dtype;
    return true;
}

bool op_cast_relation(op_call *call)
{
    const op_attr *to = op_attr_find(call, "to");

    if (!to || to->kind != OP_ATTR_DTYPE)
        return op_fail(call, "attribute 'to' is missing");
    call->output[0] = (op_type){to->dtype, call->input[0].n, call->input[0].dim};
    return true;
}

/* ---- the body ---- */

/* The element of operand k that belongs to the result's: dimensions are aligned at the end, extent 1 is read
 * at 0. */
static const ir_expr *read_broadcast(const op_call *call, int k, te_tensor *tensor,
                                     const ir_expr *const *axis)
{
    const op_type *type = &call->input[k];
    const ir_expr **index = base_array(call->cx, const ir_expr *, type->n);
    int shift = call->output[0].n - type->n;

    for (int i = 0; i < type->n; i++)
        index[i] = ir_is_value(type->dim[i], 1) ? ir_int(call->cx, 0) : axis[shift + i];
    return te_read(tensor, index, type->n);
}

/* An operand that is left out is NULL for the scalar function too. */
static bool pointwise_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    int n = call->output[0].n;
    const ir_expr **axis = base_array(call->cx, const ir_expr *, n),
                  **arg = base_array(call->cx, const ir_expr *, call->n_inputs);

    for (int i = 0; i < n; i++)
        axis[i] = te_axis(call->cx, base_format(call->cx, "a%d", i), call->output[0].dim[i]);
    for (int k = 0; k < call->n_inputs; k++)
        if (in[k])
            arg[k] = read_broadcast(call, k, in[k], axis);
        else if (call->number)
            arg[k] = call->number[k];
    *out = te_compute(def, op_stage_name(def, call->op->name), axis, n, call->op->scalar(call, arg));
    return *out != NULL;
}

const op_impl op_pointwise_impls[] = {
    {.name = "pointwise", .version = 1, .body = pointwise_body, .packs = -1}};

/* ---- scalar functions ---- */

#define ONE(name)                                                                                            \
    static const ir_expr *name##_of(const op_call *c, const ir_expr *const *a)                               \
    {                                                                                                        \
        return ir_##name(c->cx, a[0]);                                                                       \
    }
#define TWO(name)                                                                                            \
    static const ir_expr *name##_of(const op_call *c, const ir_expr *const *a)                               \
    {                                                                                                        \
        return ir_##name(c->cx, a[0], a[1]);                                                                 \
    }
/* clang-format off */
ONE(neg) ONE(abs) ONE(floor) ONE(ceil) ONE(round) ONE(sqrt) ONE(exp) ONE(log) ONE(sin) ONE(cos) ONE(tan)
ONE(asin) ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(asinh) ONE(acosh) ONE(atanh) ONE(erf) ONE(isnan)
ONE(not) ONE(bitnot) TWO(add) TWO(sub) TWO(mul) TWO(div) TWO(mod) TWO(floormod) TWO(eq) TWO(lt) TWO(le)
TWO(gt) TWO(ge) TWO(and) TWO(or) TWO(ne) TWO(bitand) TWO(bitor) TWO(bitxor) TWO(shl) TWO(shr)
/* clang-format on */
#undef ONE
#undef TWO

                static const ir_expr *min_of(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *e = left[0];

    for (int k = 1; k < call->n_inputs; k++)
        e = ir_min(call->cx, e, left[k]);
    return e;
}

static const ir_expr *max_of(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *e = left[0];

    for (int k = 1; k < call->n_inputs; k++)
        e = ir_max(call->cx, e, left[k]);
    return e;
}

static const ir_expr *sum_of(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *e = left[0];

    for (int k = 1; k < call->n_inputs; k++)
        e = ir_add(call->cx, e, left[k]);
    return e;
}

/* Summed in the operands' own type. */
static const ir_expr *mean_of(const op_call *call, const ir_expr *const *left)
{
    return ir_div(call->cx, sum_of(call, left), ir_imm(call->cx, left[0]->dtype, call->n_inputs));
}

static const ir_expr *identity_of(const op_call *call, const ir_expr *const *left)
{
    (void)call;
    return left[0];
}

static const ir_expr *cast_of(const op_call *call, const ir_expr *const *left)
{
    return ir_cast(call->cx, call->output[0].dtype, left[0]);
}

static const ir_expr *where_of(const op_call *call, const ir_expr *const *left)
{
    return ir_select(call->cx, left[0], left[1], left[2]);
}

static const ir_expr *reciprocal_of(const op_call *call, const ir_expr *const *left)
{
    return ir_div(call->cx, ir_imm(call->cx, left[0]->dtype, 1), left[0]);
}

/* Integers go through float64: exact while the power is below 2^53, and a negative exponent gives a fraction
 * that is cut off. */
static const ir_expr *pow_of(const op_call *call, const ir_expr *const *left)
{
    tec_context *cx = call->cx;

    if (base_is_float(left[0]->dtype))
        return ir_pow(cx, left[0], left[1]);
    return ir_cast(cx, left[0]->dtype,
                   ir_pow(cx, ir_cast(cx, BASE_F64, left[0]), ir_cast(cx, BASE_F64, left[1])));
}

/* Of NaN: NaN, since neither comparison holds. An unsigned number is never below 0. */
static const ir_expr *sign_of(const op_call *call, const ir_expr *const *left)
{
    tec_context *cx = call->cx;
    const ir_expr *zero = ir_imm(cx, left[0]->dtype, 0), *one = ir_imm(cx, left[0]->dtype, 1);
    const ir_expr *below =
        left[0]->dtype.code == kDLUInt
            ? left[0]
            : ir_select(cx, ir_lt(cx, left[0], zero), ir_imm(cx, left[0]->dtype, -1), left[0]);

    return ir_select(cx, ir_gt(cx, left[0], zero), one, below);
}

static const ir_expr *isinf_of(const op_call *call, const ir_expr *const *left)
{
    tec_context *cx = call->cx;
    const ir_expr *zero = ir_imm(cx, left[0]->dtype, 0), *is = ir_isinf(cx, left[0]);

    if (!op_int(call, "positive", 1))
        is = ir_and(cx, is, ir_lt(cx, left[0], zero));
    if (!op_int(call, "negative", 1))
        is = ir_and(cx, is, ir_gt(cx, left[0], zero));
    return is;
}

static const ir_expr *xor_of(const op_call *call, const ir_expr *const *left)
{
    return ir_ne(call->cx, left[0], left[1]);
}

#define TO_BOOL(inputs, function)                                                                            \
    .min_inputs = (inputs), .max_inputs = (inputs), .n_outputs = 1, .kind = OP_INJECTIVE,                    \
    .relation = op_compare_relation, .impls = op_pointwise_impls, .n_impls = 1, .scalar = (function),        \
    .in_place = -1
#define ANY_NUMBER(function)                                                                                 \
    .min_inputs = 1, .max_inputs = -1, .n_outputs = 1, .kind = OP_INJECTIVE, .relation = op_same_relation,   \
    .impls = op_pointwise_impls, .n_impls = 1, .scalar = (function), .in_place = 0

static const op_info rows[] = {
    {.name = "add", OP_POINTWISE(2, add_of), .doc = "a + b"},
    {.name = "sub", OP_POINTWISE(2, sub_of), .doc = "a - b"},
    {.name = "mul", OP_POINTWISE(2, mul_of), .doc = "a * b"},
    {.name = "div", OP_POINTWISE(2, div_of), .doc = "a / b, toward zero for ints"},
    {.name = "fmod", OP_POINTWISE(2, mod_of), .doc = "remainder with the sign of a"},
    {.name = "mod", OP_POINTWISE(2, floormod_of), .doc = "remainder with the sign of b"},
    {.name = "pow", OP_POINTWISE(2, pow_of), .doc = "a to the power b"},
    {.name = "min", ANY_NUMBER(min_of), .doc = "the least operand; NaN wins"},
    {.name = "max", ANY_NUMBER(max_of), .doc = "the greatest operand; NaN wins"},
    {.name = "sum", ANY_NUMBER(sum_of), .doc = "the sum of all operands"},
    {.name = "mean", ANY_NUMBER(mean_of), .doc = "the mean of all operands"},
    {.name = "equal", TO_BOOL(2, eq_of), .doc = "a == b"},
    {.name = "not_equal", TO_BOOL(2, ne_of), .doc = "a != b"},
    {.name = "less", TO_BOOL(2, lt_of), .doc = "a < b"},
    {.name = "less_equal", TO_BOOL(2, le_of), .doc = "a <= b"},
    {.name = "greater", TO_BOOL(2, gt_of), .doc = "a > b"},
    {.name = "greater_equal", TO_BOOL(2, ge_of), .doc = "a >= b"},
    {.name = "and", OP_POINTWISE(2, and_of), .doc = "a and b, of bools"},
    {.name = "or", OP_POINTWISE(2, or_of), .doc = "a or b, of bools"},
    {.name = "xor", TO_BOOL(2, xor_of), .doc = "a differs from b, of bools"},
    {.name = "not", OP_POINTWISE(1, not_of), .doc = "not a, of bools"},
    {.name = "bit_and", OP_POINTWISE(2, bitand_of), .doc = "bits in both"},
    {.name = "bit_or", OP_POINTWISE(2, bitor_of), .doc = "bits in either"},
    {.name = "bit_xor", OP_POINTWISE(2, bitxor_of), .doc = "bits in one"},
    {.name = "bit_not", OP_POINTWISE(1, bitnot_of), .doc = "bits inverted"},
    {.name = "shift_left", OP_POINTWISE(2, shl_of), .doc = "a << b"},
    {.name = "shift_right", OP_POINTWISE(2, shr_of), .doc = "a >> b"},
    {.name = "where",
     .min_inputs = 3,
     .max_inputs = 3,
     .n_outputs = 1,
     .kind = OP_INJECTIVE,
     .relation = op_where_relation,
     .impls = op_pointwise_impls,
     .n_impls = 1,
     .scalar = where_of,
     .in_place = 1,
     .doc = "b where a holds, otherwise c"},
    {.name = "cast",
     .min_inputs = 1,
     .max_inputs = 1,
     .n_outputs = 1,
     .kind = OP_INJECTIVE,
     .relation = op_cast_relation,
     .impls = op_pointwise_impls,
     .n_impls = 1,
     .scalar = cast_of,
     .in_place = -1,
     .doc = "to: dtype of the result"},
    {.name = "identity", OP_POINTWISE(1, identity_of), .identity = true, .doc = "a"},
    {.name = "neg", OP_POINTWISE(1, neg_of), .doc = "-a"},
    {.name = "abs", OP_POINTWISE(1, abs_of), .doc = "|a|"},
    {.name = "sign", OP_POINTWISE(1, sign_of), .doc = "-1, 0 or 1"},
    {.name = "reciprocal", OP_POINTWISE(1, reciprocal_of), .doc = "1 / a"},
    {.name = "floor", OP_POINTWISE(1, floor_of), .doc = "the integer below"},
    {.name = "ceil", OP_POINTWISE(1, ceil_of), .doc = "the integer above"},
    {.name = "round", OP_POINTWISE(1, round_of), .doc = "the nearest integer, halves to even"},
    {.name = "sqrt", OP_POINTWISE(1, sqrt_of), .doc = "square root"},
    {.name = "exp", OP_POINTWISE(1, exp_of), .doc = "e to the power a"},
    {.name = "log", OP_POINTWISE(1, log_of), .doc = "natural logarithm"},
    {.name = "sin", OP_POINTWISE(1, sin_of), .doc = "sine, in radians"},
    {.name = "cos", OP_POINTWISE(1, cos_of), .doc = "cosine"},
    {.name = "tan", OP_POINTWISE(1, tan_of), .doc = "tangent"},
    {.name = "asin", OP_POINTWISE(1, asin_of), .doc = "arc sine"},
    {.name = "acos", OP_POINTWISE(1, acos_of), .doc = "arc cosine"},
    {.name = "atan", OP_POINTWISE(1, atan_of), .doc = "arc tangent"},
    {.name = "sinh", OP_POINTWISE(1, sinh_of), .doc = "hyperbolic sine"},
    {.name = "cosh", OP_POINTWISE(1, cosh_of), .doc = "hyperbolic cosine"},
    {.name = "asinh", OP_POINTWISE(1, asinh_of), .doc = "inverse hyperbolic sine"},
    {.name = "acosh", OP_POINTWISE(1, acosh_of), .doc = "inverse hyperbolic cosine"},
    {.name = "atanh", OP_POINTWISE(1, atanh_of), .doc = "inverse hyperbolic tangent"},
    {.name = "erf", OP_POINTWISE(1, erf_of), .doc = "error function"},
    {.name = "isnan", TO_BOOL(1, isnan_of), .doc = "a is not a number"},
    {.name = "isinf",
     TO_BOOL(1, isinf_of),
     .doc = "a is infinite; positive, negative: which signs count (1)"},
};
const op_family op_elementwise_family = {rows, BASE_COUNT(rows)};
