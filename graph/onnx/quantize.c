/* graph/onnx/quantize.c -- ONNX operators on quantised tensors: x = (q - zero point) * scale. Products are
 * added up in int32. */
#include "graph/onnx/compose.h"
#include "graph/onnx/window.h"

/* One number, or one for each element of dimension `axis`, ready to meet given. */
static graph_value *spread(onnx_node *node, graph_value *value, int64_t axis, const graph_value *given)
{
    return value && value->type.n == 1 && !ir_is_value(value->type.dim[0], 1)
               ? onnx_along(node, value, (int)axis, given->type.n)
           : value && value->type.n ? onnx_reshape(node, value, NULL, 0)
                                    : value;
}

static void limits(base_dtype dtype, double *low, double *high)
{
    *low = base_is_signed(dtype) ? -(double)((int64_t)1 << (dtype.bits - 1)) : 0;
    *high = (double)(((int64_t)1 << (base_is_signed(dtype) ? dtype.bits - 1 : dtype.bits)) - 1);
}

/* round(value) + zero point, cut to what dtype holds; value is float32. */
static graph_value *saturate(onnx_node *node, graph_value *value, graph_value *zero, base_dtype dtype)
{
    double low, high;

    limits(dtype, &low, &high);
    value = onnx_unary(node, "round", value);
    if (zero)
        value = onnx_binary(node, "add", value, onnx_cast(node, zero, BASE_F32));
    return onnx_cast(node, onnx_binary_number(node, "min", onnx_binary_number(node, "max", value, low), high),
                     dtype);
}

static bool is_byte(base_dtype dtype)
{
    return base_is_int(dtype) && dtype.bits <= 16;
}

/* Blocks and other types came in opset 21. */
static bool check_plain(onnx_node *node)
{
    if (onnx_int(node, "block_size", 0) || onnx_int(node, "output_dtype", 0) ||
        onnx_int(node, "precision", 0))
        return onnx_unsupported(node, "block_size, output_dtype or precision");
    return true;
}

/* round(x / scale) + zero point, kept within the type's range. A vector of scales belongs to `axis`. */
static bool convert_quantize(onnx_node *node)
{
    graph_value *x = onnx_cast(node, node->in[0], BASE_F32), *zero = onnx_has(node, 2) ? node->in[2] : NULL;
    base_dtype t = zero ? zero->type.dtype : BASE_U8;
    int64_t axis = onnx_int(node, "axis", 1);

    if (!check_plain(node) || !x)
        return false;
    if (!is_byte(t))
        return onnx_unsupported(node, "a quantised type %s", base_dtype_text(node->cx, t));
    axis = axis < 0 ? axis + x->type.n : axis;
    if (node->in[1]->type.n == 1 && !ir_is_value(node->in[1]->type.dim[0], 1) &&
        !onnx_axis(node, axis, x->type.n, &axis))
        return false;
    graph_value *scale = onnx_cast(node, spread(node, node->in[1], axis, x), BASE_F32);
    return onnx_set(node, 0,
                    saturate(node, onnx_binary(node, "div", x, scale), spread(node, zero, axis, x), t));
}

/* (q - zero point) * scale. */
static bool convert_dequantize(onnx_node *node)
{
    graph_value *x = node->in[0], *scale = node->in[1], *zero = onnx_has(node, 2) ? node->in[2] : NULL;
    int64_t axis = onnx_int(node, "axis", 1);

    if (!check_plain(node))
        return false;
    if (!base_is_int(x->type.dtype))
        return onnx_unsupported(node, "a quantised type %s", base_dtype_text(node->cx, x->type.dtype));
    axis = axis < 0 ? axis + x->type.n : axis;
    if (scale->type.n == 1 && !ir_is_value(scale->type.dim[0], 1) && !onnx_axis(node, axis, x->type.n, &axis))
        return false;
    /* The difference is exact in int32. */
    graph_value *value = onnx_cast(node, x, BASE_I32);
    if (zero)
        value = onnx_binary(node, "sub", value, onnx_cast(node, spread(node, zero, axis, x), BASE_I32));
    graph_value *y = onnx_binary(node, "mul", onnx_cast(node, value, BASE_F32),
                                 onnx_cast(node, spread(node, scale, axis, x), BASE_F32));
    return onnx_set(node, 0, onnx_cast(node, y, scale->type.dtype));
}

/* Scale and zero point from the least and greatest element, so that 0 is exact. */
static bool convert_dynamic_quantize(onnx_node *node)
{
    graph_value *x = node->in[0], *least, *most;
    int64_t all[ONNX_MAX_RANK];

    for (int i = 0; i < x->type.n; i++)
        all[i] = i;
    least = onnx_binary_number(node, "min", onnx_reduce(node, "reduce_min", x, all, x->type.n, false), 0);
    most = onnx_binary_number(node, "max", onnx_reduce(node, "reduce_max", x, all, x->type.n, false), 0);
    graph_value *scale = onnx_binary_number(node, "div", onnx_binary(node, "sub", most, least), 255);
    graph_value *zero =
        saturate(node, onnx_unary(node, "neg", onnx_binary(node, "div", least, scale)), NULL, BASE_U8);
    return onnx_set(node, 0, saturate(node, onnx_binary(node, "div", x, scale), zero, BASE_U8)) &&
           onnx_set(node, 1, scale) && onnx_set(node, 2, zero);
}

/* ---- products ---- */

/* Operand index in int32, less its zero point. */
static graph_value *centred(onnx_node *node, int index, int zero, int64_t axis)
{
    graph_value *value = onnx_cast(node, node->in[index], BASE_I32),
                *z = onnx_has(node, zero) ? node->in[zero] : NULL;

    if (!is_byte(node->in[index]->type.dtype)) {
        onnx_wrong(node, "operand %d is %s, expected int8 or uint8", index,
                   op_type_text(node->cx, &node->in[index]->type));
        return NULL;
    }
    if (!value || !z)
        return value;
    if (z->type.n <= 1)
        z = spread(node, z, axis, value);
    return onnx_binary(node, "sub", value, onnx_cast(node, z, BASE_I32));
}

/* (a - a_zero) * (b - b_zero) in int32: the zero points lie along rows of a and columns of b. */
static graph_value *int_product(onnx_node *node, int a, int a_zero, int b, int b_zero)
{
    if (onnx_rank(node, a) < 2 || onnx_rank(node, b) < 2) {
        onnx_unsupported(node, "a quantised vector");
        return NULL;
    }
    return onnx_matmul(node, centred(node, a, a_zero, onnx_rank(node, a) - 2),
                       centred(node, b, b_zero, onnx_rank(node, b) - 1), false);
}

static bool convert_matmul_integer(onnx_node *node)
{
    return onnx_set(node, 0, int_product(node, 0, 2, 1, 3));
}

/* int32 sums times (scale of a * scale of b / scale of y), quantised. */
static bool requantise(onnx_node *node, graph_value *sum, graph_value *a_scale, graph_value *b_scale,
                       graph_value *y_scale, graph_value *y_zero)
{
    if (!is_byte(node->in[7]->type.dtype))
        return onnx_wrong(node, "the zero point of the result is %s, expected int8 or uint8",
                          op_type_text(node->cx, &node->in[7]->type));
    graph_value *factor = onnx_binary(node, "div", onnx_binary(node, "mul", a_scale, b_scale), y_scale);

    return onnx_set(node, 0,
                    saturate(node, onnx_binary(node, "mul", onnx_cast(node, sum, BASE_F32), factor), y_zero,
                             node->in[7]->type.dtype));
}

static bool convert_qlinear_matmul(onnx_node *node)
{
    graph_value *sum = int_product(node, 0, 2, 3, 5);

    if (!sum)
        return false;
    graph_value *a = spread(node, node->in[1], sum->type.n - 2, sum),
                *b = spread(node, node->in[4], sum->type.n - 1, sum);
    return requantise(node, sum, a, b, spread(node, node->in[6], 0, sum), spread(node, node->in[7], 0, sum));
}

static bool convert_conv_integer(onnx_node *node)
{
    return onnx_set(node, 0, onnx_make_conv(node, centred(node, 0, 2, 1), centred(node, 1, 3, 0), NULL));
}

static bool convert_qlinear_conv(onnx_node *node)
{
    graph_value *sum = onnx_make_conv(node, centred(node, 0, 2, 1), centred(node, 3, 5, 0),
                                      onnx_has(node, 8) ? node->in[8] : NULL);

    if (!sum)
        return false;
    return requantise(node, sum, spread(node, node->in[1], 1, sum), spread(node, node->in[4], 1, sum),
                      spread(node, node->in[6], 1, sum), spread(node, node->in[7], 1, sum));
}

static const onnx_row rows[] = {
    {"QuantizeLinear", convert_quantize, 10, 12, "2-3>1", NULL},
    {"QuantizeLinear", convert_quantize, 13, 0,
     "2-3>1 axis:i saturate:i@19 block_size:i@21 output_dtype:i@21 precision:i@23", NULL},
    {"DequantizeLinear", convert_dequantize, 10, 12, "2-3>1", NULL},
    {"DequantizeLinear", convert_dequantize, 13, 0, "2-3>1 axis:i block_size:i@21 output_dtype:i@23", NULL},
    {"DynamicQuantizeLinear", convert_dynamic_quantize, 11, 0, "1>3", NULL},
    {"MatMulInteger", convert_matmul_integer, 10, 0, "2-4>1", NULL},
    {"QLinearMatMul", convert_qlinear_matmul, 10, 0, "8>1", NULL},
    {"ConvInteger", convert_conv_integer, 10, 0,
     "2-4>1 " ONNX_AUTO_PAD "dilations:I group:i kernel_shape:I pads:I strides:I", NULL},
    {"QLinearConv", convert_qlinear_conv, 10, 0,
     "8-9>1 " ONNX_AUTO_PAD "dilations:I group:i kernel_shape:I pads:I strides:I", NULL},
};
const onnx_rows onnx_quantize_rows = {rows, BASE_COUNT(rows)};
