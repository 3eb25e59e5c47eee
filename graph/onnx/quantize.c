/* graph/onnx/quantize.c -- ONNX operators on quantised tensors: x = (q - zero point) * scale. Products are
 * added up in int32. */
#include "graph/onnx/compose.h"
#include "graph/onnx/window.h"

/* One number, or one for each element of dimension `axis`, ready to meet v. */
static graph_value *spread(onnx_node *n, graph_value *p, int64_t axis, const graph_value *v)
{
    return p && p->type.n == 1 && !ir_is_value(p->type.dim[0], 1) ? onnx_along(n, p, (int)axis, v->type.n)
           : p && p->type.n                                       ? onnx_reshape(n, p, NULL, 0)
                                                                  : p;
}

static void limits(base_dtype t, double *low, double *high)
{
    *low = base_is_signed(t) ? -(double)((int64_t)1 << (t.bits - 1)) : 0;
    *high = (double)(((int64_t)1 << (base_is_signed(t) ? t.bits - 1 : t.bits)) - 1);
}

/* round(v) + zero point, cut to what t holds; v is float32. */
static graph_value *saturate(onnx_node *n, graph_value *v, graph_value *zero, base_dtype t)
{
    double low, high;

    limits(t, &low, &high);
    v = onnx_unary(n, "round", v);
    if (zero)
        v = onnx_binary(n, "add", v, onnx_cast(n, zero, BASE_F32));
    return onnx_cast(n, onnx_binary_number(n, "min", onnx_binary_number(n, "max", v, low), high), t);
}

static bool is_byte(base_dtype t)
{
    return base_is_int(t) && t.bits <= 16;
}

/* Blocks and other types came in opset 21. */
static bool check_plain(onnx_node *n)
{
    if (onnx_int(n, "block_size", 0) || onnx_int(n, "output_dtype", 0) || onnx_int(n, "precision", 0))
        return onnx_unsupported(n, "block_size, output_dtype or precision");
    return true;
}

/* round(x / scale) + zero point, kept within the type's range. A vector of scales belongs to `axis`. */
static bool convert_quantize(onnx_node *n)
{
    graph_value *x = onnx_cast(n, n->in[0], BASE_F32), *zero = onnx_has(n, 2) ? n->in[2] : NULL;
    base_dtype t = zero ? zero->type.dtype : BASE_U8;
    int64_t axis = onnx_int(n, "axis", 1);

    if (!check_plain(n) || !x)
        return false;
    if (!is_byte(t))
        return onnx_unsupported(n, "a quantised type %s", base_dtype_text(n->cx, t));
    axis = axis < 0 ? axis + x->type.n : axis;
    if (n->in[1]->type.n == 1 && !ir_is_value(n->in[1]->type.dim[0], 1) &&
        !onnx_axis(n, axis, x->type.n, &axis))
        return false;
    graph_value *scale = onnx_cast(n, spread(n, n->in[1], axis, x), BASE_F32);
    return onnx_set(n, 0, saturate(n, onnx_binary(n, "div", x, scale), spread(n, zero, axis, x), t));
}

/* (q - zero point) * scale. */
static bool convert_dequantize(onnx_node *n)
{
    graph_value *x = n->in[0], *scale = n->in[1], *zero = onnx_has(n, 2) ? n->in[2] : NULL;
    int64_t axis = onnx_int(n, "axis", 1);

    if (!check_plain(n))
        return false;
    if (!base_is_int(x->type.dtype))
        return onnx_unsupported(n, "a quantised type %s", base_dtype_text(n->cx, x->type.dtype));
    axis = axis < 0 ? axis + x->type.n : axis;
    if (scale->type.n == 1 && !ir_is_value(scale->type.dim[0], 1) && !onnx_axis(n, axis, x->type.n, &axis))
        return false;
    /* The difference is exact in int32. */
    graph_value *v = onnx_cast(n, x, BASE_I32);
    if (zero)
        v = onnx_binary(n, "sub", v, onnx_cast(n, spread(n, zero, axis, x), BASE_I32));
    graph_value *y =
        onnx_binary(n, "mul", onnx_cast(n, v, BASE_F32), onnx_cast(n, spread(n, scale, axis, x), BASE_F32));
    return onnx_set(n, 0, onnx_cast(n, y, scale->type.dtype));
}

/* Scale and zero point from the least and greatest element, so that 0 is exact. */
static bool convert_dynamic_quantize(onnx_node *n)
{
    graph_value *x = n->in[0], *least, *most;
    int64_t all[ONNX_MAX_RANK];

    for (int i = 0; i < x->type.n; i++)
        all[i] = i;
    least = onnx_binary_number(n, "min", onnx_reduce(n, "reduce_min", x, all, x->type.n, false), 0);
    most = onnx_binary_number(n, "max", onnx_reduce(n, "reduce_max", x, all, x->type.n, false), 0);
    graph_value *scale = onnx_binary_number(n, "div", onnx_binary(n, "sub", most, least), 255);
    graph_value *zero = saturate(n, onnx_unary(n, "neg", onnx_binary(n, "div", least, scale)), NULL, BASE_U8);
    return onnx_set(n, 0, saturate(n, onnx_binary(n, "div", x, scale), zero, BASE_U8)) &&
           onnx_set(n, 1, scale) && onnx_set(n, 2, zero);
}

/* ---- products ---- */

/* Operand k in int32, less its zero point. */
static graph_value *centred(onnx_node *n, int k, int zero, int64_t axis)
{
    graph_value *v = onnx_cast(n, n->in[k], BASE_I32), *z = onnx_has(n, zero) ? n->in[zero] : NULL;

    if (!is_byte(n->in[k]->type.dtype)) {
        onnx_wrong(n, "operand %d is %s, expected int8 or uint8", k, op_type_text(n->cx, &n->in[k]->type));
        return NULL;
    }
    if (!v || !z)
        return v;
    if (z->type.n <= 1)
        z = spread(n, z, axis, v);
    return onnx_binary(n, "sub", v, onnx_cast(n, z, BASE_I32));
}

static graph_value *int_product(onnx_node *n, int a, int a_zero, int b, int b_zero)
{
    if (onnx_rank(n, a) < 2 || onnx_rank(n, b) < 2) {
        onnx_unsupported(n, "a quantised vector");
        return NULL;
    }
    return onnx_matmul(n, centred(n, a, a_zero, onnx_rank(n, a) - 2),
                       centred(n, b, b_zero, onnx_rank(n, b) - 1), false);
}

static bool convert_matmul_integer(onnx_node *n)
{
    return onnx_set(n, 0, int_product(n, 0, 2, 1, 3));
}

/* int32 sums times (scale of a * scale of b / scale of y), quantised. */
static bool requantise(onnx_node *n, graph_value *sum, graph_value *a_scale, graph_value *b_scale,
                       graph_value *y_scale, graph_value *y_zero)
{
    if (!is_byte(n->in[7]->type.dtype))
        return onnx_wrong(n, "the zero point of the result is %s, expected int8 or uint8",
                          op_type_text(n->cx, &n->in[7]->type));
    graph_value *factor = onnx_binary(n, "div", onnx_binary(n, "mul", a_scale, b_scale), y_scale);

    return onnx_set(n, 0,
                    saturate(n, onnx_binary(n, "mul", onnx_cast(n, sum, BASE_F32), factor), y_zero,
                             n->in[7]->type.dtype));
}

static bool convert_qlinear_matmul(onnx_node *n)
{
    graph_value *sum = int_product(n, 0, 2, 3, 5);

    if (!sum)
        return false;
    graph_value *a = spread(n, n->in[1], sum->type.n - 2, sum),
                *b = spread(n, n->in[4], sum->type.n - 1, sum);
    return requantise(n, sum, a, b, spread(n, n->in[6], 0, sum), spread(n, n->in[7], 0, sum));
}

static bool convert_conv_integer(onnx_node *n)
{
    return onnx_set(n, 0, onnx_make_conv(n, centred(n, 0, 2, 1), centred(n, 1, 3, 0), NULL));
}

static bool convert_qlinear_conv(onnx_node *n)
{
    graph_value *sum =
        onnx_make_conv(n, centred(n, 0, 2, 1), centred(n, 3, 5, 0), onnx_has(n, 8) ? n->in[8] : NULL);

    if (!sum)
        return false;
    return requantise(n, sum, spread(n, n->in[1], 1, sum), spread(n, n->in[4], 1, sum),
                      spread(n, n->in[6], 1, sum), spread(n, n->in[7], 1, sum));
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
