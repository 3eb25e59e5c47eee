/* graph/onnx/arithmetic.c -- element-wise ONNX operators: arithmetic, comparison, logic, activations, casts.
 *
 * Most are one operator of tec's under another name: `as` in its row. Until opset 6, binary operators
 * broadcast only on request, by the attributes `broadcast` and `axis`.
 */
#include "graph/onnx/import.h"

/* ---- one to one ---- */

static bool convert_plain(onnx_node *node)
{
    return onnx_emit(node, node->row->as, NULL, 0);
}

/* ---- old broadcasting ---- */

/* b with ones behind it, so that its first dimension meets dimension `axis` of a. */
static graph_value *shift_to_axis(onnx_node *node, graph_value *a, graph_value *b, int64_t axis)
{
    int count = a->type.n - (int)axis;
    const ir_expr **dim = base_array(node->cx, const ir_expr *, count > 0 ? count : 1);

    if (axis < 0 || count < b->type.n) {
        onnx_wrong(node, "axis %lld does not fit the dimensions of the operands", (long long)axis);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        dim[i] = i < b->type.n ? b->type.dim[i] : ir_int(node->cx, 1);
    return onnx_reshape(node, b, dim, count);
}

/* Until opset 6 operands were broadcast only when an attribute said so, from a given axis on: the second
 * operand gets dimensions of 1 behind its own. */
static bool convert_binary(onnx_node *node)
{
    graph_value *b = node->in[1];
    int64_t axis = onnx_int(node, "axis", -1);

    if (node->opset < 7 && onnx_int(node, "broadcast", 0) && axis >= 0)
        b = shift_to_axis(node, node->in[0], b, axis);
    return b && onnx_set(node, 0, ONNX_MAKE(node, node->row->as, NULL, 0, node->in[0], b));
}

/* ---- with parameters ---- */

/* Float attributes passed on under the same names. */
static bool with_floats(onnx_node *node, const char *op, const char *const *names, const double *defaults,
                        int count)
{
    op_attr attr[4];

    for (int i = 0; i < count; i++)
        attr[i] = op_attr_float(names[i], onnx_float(node, names[i], defaults[i]));
    return onnx_set(node, 0, ONNX_MAKE(node, op, attr, count, node->in[0]));
}

#define WITH_FLOATS(function, op, count, ...)                                                                \
    static bool function(onnx_node *n)                                                                       \
    {                                                                                                        \
        static const struct {                                                                                \
            const char *names[2];                                                                            \
            double defaults[2];                                                                              \
        } a = __VA_ARGS__;                                                                                   \
        return with_floats(n, op, a.names, a.defaults, count);                                               \
    }
WITH_FLOATS(convert_leaky_relu, "leaky_relu", 1, {{"alpha", ""}, {0.01, 0}})
WITH_FLOATS(convert_elu, "elu", 1, {{"alpha", ""}, {1, 0}})
WITH_FLOATS(convert_celu, "celu", 1, {{"alpha", ""}, {1, 0}})
WITH_FLOATS(convert_thresholded_relu, "thresholded_relu", 1, {{"alpha", ""}, {1, 0}})
WITH_FLOATS(convert_selu, "selu", 2,
            {{"alpha", "gamma"}, {1.67326319217681884765625, 1.05070102214813232421875}})
WITH_FLOATS(convert_old_selu, "selu", 2, {{"alpha", "gamma"}, {1.6732, 1.0507}})
WITH_FLOATS(convert_hard_sigmoid, "hard_sigmoid", 2, {{"alpha", "beta"}, {0.2, 0.5}})
WITH_FLOATS(convert_shrink, "shrink", 2, {{"bias", "lambd"}, {0, 0.5}})

/* In ONNX a function of other operators, whose attributes are float32: so is its sixth. */
static bool convert_hard_swish(onnx_node *node)
{
    op_attr alpha = op_attr_float("alpha", (float)(1.0 / 6));

    return onnx_set(node, 0, ONNX_MAKE(node, "hard_swish", &alpha, 1, node->in[0]));
}

static bool convert_prelu(onnx_node *node)
{
    graph_value *slope = node->in[1];

    /* Until opset 6 a slope of one dimension belonged to the channels. */
    if (node->opset < 7 && slope->type.n == 1 && node->in[0]->type.n > 1 &&
        !ir_is_value(slope->type.dim[0], 1))
        slope = shift_to_axis(node, node->in[0], slope, 1);
    return slope && onnx_set(node, 0, ONNX_MAKE(node, "prelu", NULL, 0, node->in[0], slope));
}

/* Bounds became operands in opset 11. */
static bool convert_clip(onnx_node *node)
{
    graph_value *in[3] = {node->in[0], node->n_in > 1 ? node->in[1] : NULL,
                          node->n_in > 2 ? node->in[2] : NULL};

    if (node->opset < 11) {
        base_dtype t = node->in[0]->type.dtype;

        in[1] = onnx_attr(node, "min") ? onnx_scalar(node, t, onnx_float(node, "min", 0)) : NULL;
        in[2] = onnx_attr(node, "max") ? onnx_scalar(node, t, onnx_float(node, "max", 0)) : NULL;
    }
    return onnx_set(node, 0, onnx_make(node, "clip", in, 3, NULL, 0));
}

/* A cast to bool keeps what is not 0 as true; the operator sees to that, whatever the source type. */
static bool convert_cast(onnx_node *node)
{
    base_dtype t;

    if (node->opset < 6)
        return onnx_unsupported(node, "'to' as a string (opset 5 and before)");
    if (!onnx_dtype(onnx_int(node, "to", 0), &t))
        return onnx_unsupported(node, "a cast to %s", onnx_type_name(node->cx, onnx_int(node, "to", 0)));
    op_attr to = op_attr_dtype("to", t);
    return onnx_set(node, 0, ONNX_MAKE(node, "cast", &to, 1, node->in[0]));
}

static bool convert_cast_like(onnx_node *node)
{
    op_attr to = op_attr_dtype("to", node->in[1]->type.dtype);

    return onnx_set(node, 0, ONNX_MAKE(node, "cast", &to, 1, node->in[0]));
}

/* ONNX lets base and exponent have different types; tec's operator wants one. */
static bool convert_pow(onnx_node *node)
{
    graph_value *b = node->in[1];
    op_attr to = op_attr_dtype("to", node->in[0]->type.dtype);

    if (node->opset < 7 && onnx_int(node, "broadcast", 0) && onnx_int(node, "axis", -1) >= 0)
        b = shift_to_axis(node, node->in[0], b, onnx_int(node, "axis", -1));
    if (b && !base_dtype_same(b->type.dtype, node->in[0]->type.dtype)) {
        /* The result has the base's type; an exponent that is a float must not lose its fraction first. */
        if (base_is_float(b->type.dtype) && !base_is_float(node->in[0]->type.dtype)) {
            op_attr up = op_attr_dtype("to", b->type.dtype);
            graph_value *a = ONNX_MAKE(node, "cast", &up, 1, node->in[0]),
                        *y = ONNX_MAKE(node, "pow", NULL, 0, a, b);

            return y && onnx_set(node, 0, ONNX_MAKE(node, "cast", &to, 1, y));
        }
        b = ONNX_MAKE(node, "cast", &to, 1, b);
    }
    return b && onnx_set(node, 0, ONNX_MAKE(node, "pow", NULL, 0, node->in[0], b));
}

static bool convert_mod(onnx_node *node)
{
    return onnx_emit(node, onnx_int(node, "fmod", 0) ? "fmod" : "mod", NULL, 0);
}

static bool convert_isinf(onnx_node *node)
{
    op_attr attr[] = {op_attr_int("positive", onnx_int(node, "detect_positive", 1)),
                      op_attr_int("negative", onnx_int(node, "detect_negative", 1))};

    return onnx_emit(node, "isinf", attr, 2);
}

static bool convert_bit_shift(onnx_node *node)
{
    return onnx_emit(
        node, base_same(onnx_string(node, "direction", ""), "LEFT") ? "shift_left" : "shift_right", NULL, 0);
}

/* Inference: the operand itself; its mask holds everywhere. */
static bool convert_dropout(onnx_node *node)
{
    if (node->opset >= 12 && onnx_has(node, 2)) {
        const int64_t *training;

        if (onnx_constant_ints(node, 2, &training) != 1 || training[0])
            return onnx_unsupported(node, "training mode");
    }
    if (node->n_out > 1 && *node->proto->output[1]) {
        op_attr attr[] = {op_attr_exprs(node->cx, "shape", node->in[0]->type.dim, node->in[0]->type.n),
                          op_attr_dtype("dtype", node->opset >= 10 ? BASE_BOOL : node->in[0]->type.dtype),
                          op_attr_float("value", 1)};

        if (!onnx_set(node, 1, onnx_make(node, "fill", NULL, 0, attr, 3)))
            return false;
    }
    return onnx_set(node, 0, ONNX_MAKE(node, "identity", NULL, 0, node->in[0]));
}

#define UNARY(op, since, as) {op, convert_plain, since, 0, "1>1", as}
#define ANY(op, as) {op, convert_plain, 1, 0, "1-*>1", as}
#define BINARY(op, since, as) {op, convert_binary, since, 0, "2>1 axis:i<7 broadcast:i<7", as}
static const onnx_row rows[] = {
    UNARY("Abs", 1, "abs"),
    UNARY("Acos", 7, "acos"),
    UNARY("Acosh", 9, "acosh"),
    UNARY("Asin", 7, "asin"),
    UNARY("Asinh", 9, "asinh"),
    UNARY("Atan", 7, "atan"),
    UNARY("Atanh", 9, "atanh"),
    UNARY("Ceil", 1, "ceil"),
    UNARY("Cos", 7, "cos"),
    UNARY("Cosh", 9, "cosh"),
    UNARY("Erf", 9, "erf"),
    UNARY("Exp", 1, "exp"),
    UNARY("Floor", 1, "floor"),
    UNARY("Identity", 1, "identity"),
    UNARY("IsNaN", 9, "isnan"),
    UNARY("Log", 1, "log"),
    UNARY("Neg", 1, "neg"),
    UNARY("Not", 1, "not"),
    UNARY("Reciprocal", 1, "reciprocal"),
    UNARY("Relu", 1, "relu"),
    UNARY("Round", 11, "round"),
    UNARY("Sigmoid", 1, "sigmoid"),
    UNARY("Sign", 9, "sign"),
    UNARY("Sin", 7, "sin"),
    UNARY("Sinh", 9, "sinh"),
    UNARY("Softplus", 1, "softplus"),
    UNARY("Softsign", 1, "softsign"),
    UNARY("Sqrt", 1, "sqrt"),
    UNARY("Tan", 7, "tan"),
    UNARY("Tanh", 1, "tanh"),
    UNARY("BitwiseNot", 18, "bit_not"),
    ANY("Max", "max"),
    ANY("Min", "min"),
    ANY("Sum", "sum"),
    ANY("Mean", "mean"),
    BINARY("Add", 1, "add"),
    BINARY("Sub", 1, "sub"),
    BINARY("Mul", 1, "mul"),
    BINARY("Div", 1, "div"),
    BINARY("Equal", 1, "equal"),
    BINARY("Less", 1, "less"),
    BINARY("Greater", 1, "greater"),
    BINARY("And", 1, "and"),
    BINARY("Or", 1, "or"),
    BINARY("Xor", 1, "xor"),
    BINARY("LessOrEqual", 12, "less_equal"),
    BINARY("GreaterOrEqual", 12, "greater_equal"),
    BINARY("BitwiseAnd", 18, "bit_and"),
    BINARY("BitwiseOr", 18, "bit_or"),
    BINARY("BitwiseXor", 18, "bit_xor"),
    {"Where", convert_plain, 9, 0, "3>1", "where"},
    {"HardSwish", convert_hard_swish, 14, 0, "1>1", NULL},
    {"Pow", convert_pow, 1, 0, "2>1 axis:i<7 broadcast:i<7", NULL},
    {"Mod", convert_mod, 10, 0, "2>1 fmod:i", NULL},
    {"IsInf", convert_isinf, 10, 0, "1>1 detect_negative:i detect_positive:i", NULL},
    {"BitShift", convert_bit_shift, 11, 0, "2>1 !direction:s(LEFT|RIGHT)", NULL},
    {"LeakyRelu", convert_leaky_relu, 1, 0, "1>1 alpha:f", NULL},
    {"Elu", convert_elu, 1, 0, "1>1 alpha:f", NULL},
    {"Celu", convert_celu, 12, 0, "1>1 alpha:f", NULL},
    {"Selu", convert_old_selu, 1, 5, "1>1 alpha:f gamma:f", NULL},
    {"Selu", convert_selu, 6, 0, "1>1 alpha:f gamma:f", NULL},
    {"HardSigmoid", convert_hard_sigmoid, 1, 0, "1>1 alpha:f beta:f", NULL},
    {"ThresholdedRelu", convert_thresholded_relu, 10, 0, "1>1 alpha:f", NULL},
    {"Shrink", convert_shrink, 9, 0, "1>1 bias:f lambd:f", NULL},
    {"PRelu", convert_prelu, 1, 0, "2>1", NULL},
    {"Clip", convert_clip, 1, 10, "1>1 max:f min:f", NULL},
    {"Clip", convert_clip, 11, 0, "1-3>1", NULL},
    {"Cast", convert_cast, 1, 5, "1>1 !to:s", NULL},
    {"Cast", convert_cast, 6, 0, "1>1 !to:i saturate:i@19 round_mode:s@24", NULL},
    {"CastLike", convert_cast_like, 15, 0, "2>1 saturate:i@19 round_mode:s@24", NULL},
    {"Dropout", convert_dropout, 1, 11, "1>1-2 is_test:i<7 ratio:f", NULL},
    {"Dropout", convert_dropout, 12, 0, "1-3>1-2 seed:i", NULL},
};
const onnx_rows onnx_arithmetic_rows = {rows, BASE_COUNT(rows)};
