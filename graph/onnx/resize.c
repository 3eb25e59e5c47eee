/* graph/onnx/resize.c -- ONNX's Resize and Upsample, one dimension after another.
 *
 * Where an element of the result lies in the operand is known while importing. So along each dimension that
 * changes, the result is a sum of picked elements with weights, both constants: one of weight 1 (nearest),
 * two (linear), four (cubic), more where a smaller result is smoothed (antialias).
 *
 *     y[i] = sum[t](x[index[t][i]] * weight[t][i])
 */
#include <math.h>

#include "graph/onnx/compose.h"

enum { MOST_TAPS = 64, MOST_ELEMENTS = 1 << 20 };

/* One dimension. */
typedef struct {
    onnx_node *n;
    const char *mode, *coordinates, *nearest;
    int64_t in, out;
    double scale, begin, end; /* begin, end: of the region that is cropped */
    double cubic;
    bool exclude_outside, antialias;
    int taps;
    int64_t *index; /* [taps][out] */
    double *weight;
    bool *outside; /* [out]: gets the value for what lies outside */
    bool any_outside;
} axis_map;

/* Where result i lies in the operand, by the node's coordinate_transformation_mode. */
static double source(const axis_map *m, double i)
{
    if (base_same(m->coordinates, "asymmetric"))
        return i / m->scale;
    /* By the length that the scale gives, whole or not. */
    if (base_same(m->coordinates, "align_corners")) {
        double length = m->scale * (double)m->in;

        return m->out == 1 || length == 1 ? 0 : i * (double)(m->in - 1) / (length - 1);
    }
    if (base_same(m->coordinates, "pytorch_half_pixel") && m->out == 1)
        return 0;
    if (base_same(m->coordinates, "tf_half_pixel_for_nn"))
        return (i + 0.5) / m->scale;
    if (base_same(m->coordinates, "tf_crop_and_resize")) {
        double last = (double)(m->in - 1);

        return m->out > 1 ? m->begin * last + i * (m->end - m->begin) * last / (double)(m->out - 1)
                          : 0.5 * (m->begin + m->end) * last;
    }
    if (base_same(m->coordinates, "half_pixel_symmetric")) {
        double exact = m->scale * (double)m->in, offset = (double)m->in / 2 * (1 - (double)m->out / exact);

        return offset + (i + 0.5) / m->scale - 0.5;
    }
    return (i + 0.5) / m->scale - 0.5;
}

static double nearest(const axis_map *m, double x)
{
    if (base_same(m->nearest, "round_prefer_ceil"))
        return floor(x + 0.5);
    if (base_same(m->nearest, "floor"))
        return floor(x);
    if (base_same(m->nearest, "ceil"))
        return ceil(x);
    return ceil(x - 0.5);
}

/* The weight of an element at distance x. */
static double kernel(const axis_map *m, double x)
{
    double a = m->cubic;

    x = fabs(x);
    if (base_same(m->mode, "linear"))
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t kept_inside(const axis_map *m, double at)
{
    return at<0 ? 0 : at>(double)(m->in - 1) ? m->in - 1 : (int64_t)at;
}

/* The taps of element i, weights made to add up to 1 where elements outside do not count, or where the kernel
 * was stretched. */
static void fill_taps(axis_map *m, int64_t i, double stretch)
{
    double x = source(m, (double)i), sum = 0, first = floor(x) - (double)(m->taps / 2 - 1);

    for (int t = 0; t < m->taps; t++) {
        double at = first + t, w = kernel(m, (at - x) * stretch);
        bool out = at < 0 || at > (double)(m->in - 1);

        if (m->exclude_outside && out)
            w = 0;
        m->index[t * m->out + i] = kept_inside(m, at);
        m->weight[t * m->out + i] = w;
        sum += w;
    }
    for (int t = 0; (m->exclude_outside || stretch < 1) && sum != 0 && t < m->taps; t++)
        m->weight[t * m->out + i] /= sum;
}

/* Index and weight of every tap for every element along one axis. Smoothing widens the reach of the taps. */
static bool fill_map(axis_map *m)
{
    tec_context *cx = m->n->cx;
    bool is_nearest = base_same(m->mode, "nearest");
    double stretch = m->antialias && m->scale < 1 ? m->scale : 1,
           reach = (base_same(m->mode, "cubic") ? 2 : 1) / stretch;

    m->taps = is_nearest ? 1 : 2 * (int)fmin(ceil(reach), MOST_TAPS);
    if (m->taps > MOST_TAPS || m->out > MOST_ELEMENTS / m->taps)
        return onnx_unsupported(m->n, "%lld elements of %d taps each", (long long)m->out, m->taps);
    m->index = base_array(cx, int64_t, m->taps * m->out + 1);
    m->weight = base_array(cx, double, m->taps * m->out + 1);
    m->outside = base_array(cx, bool, m->out + 1);
    for (int64_t i = 0; i < m->out; i++) {
        double x = source(m, (double)i);

        m->outside[i] = base_same(m->coordinates, "tf_crop_and_resize") && (x < 0 || x > (double)(m->in - 1));
        m->any_outside = m->any_outside || m->outside[i];
        if (is_nearest)
            m->index[i] = kept_inside(m, nearest(m, x));
        else
            fill_taps(m, i, stretch);
    }
    return true;
}

static base_dtype wide(base_dtype t)
{
    return base_is_float(t) && t.bits == 64 ? BASE_F64 : BASE_F32;
}

/* The weighted sum of gathered operands, one for each tap; elements outside of a crop get the extrapolation
 * value. */
static graph_value *resize_axis(axis_map *m, graph_value *x, int axis)
{
    onnx_node *n = m->n;
    int rank = x->type.n;
    graph_value *sum = NULL;

    if (!fill_map(m))
        return NULL;
    for (int t = 0; t < m->taps; t++) {
        graph_value *part = onnx_gather(n, x, onnx_constant_i64(n, m->index + t * m->out, (int)m->out), axis);

        if (m->taps > 1)
            part = onnx_binary(
                n, "mul", part,
                onnx_along(n, onnx_constant_floats(n, x->type.dtype, m->weight + t * m->out, (int)m->out),
                           axis, rank));
        sum = sum ? onnx_binary(n, "add", sum, part) : part;
    }
    if (m->any_outside) {
        double *flag = base_array(n->cx, double, m->out);

        for (int64_t i = 0; i < m->out; i++)
            flag[i] = m->outside[i];
        graph_value *outside =
            onnx_along(n, onnx_constant_floats(n, BASE_BOOL, flag, (int)m->out), axis, rank);
        sum = onnx_where(n, outside, onnx_scalar(n, x->type.dtype, onnx_float(n, "extrapolation_value", 0)),
                         sum);
    }
    return sum;
}

/* ---- sizes ---- */

/* Numbers of an operand, floats or ints, as doubles; -1 where it is left out or not known. */
static int read_numbers(onnx_node *n, int k, double *out)
{
    const int64_t *ints;
    int count = onnx_has(n, k) ? onnx_constant_ints(n, k, &ints) : -1;

    if (count > 2 * ONNX_MAX_RANK)
        return -1;
    if (count >= 0 && !base_is_float(n->in[k]->type.dtype)) {
        for (int i = 0; i < count; i++)
            out[i] = (double)ints[i];
        return count;
    }
    const op_constant *c = onnx_has(n, k) ? n->in[k]->constant : NULL;
    if (!c || !base_dtype_same(c->type.dtype, BASE_F32) || c->bytes > 2 * ONNX_MAX_RANK * 4)
        return onnx_has(n, k) && onnx_is_empty(n->in[k]) ? 0 : -1;
    for (int i = 0; i < (int)(c->bytes / 4); i++)
        out[i] = ((const float *)c->data)[i];
    return (int)(c->bytes / 4);
}

/* What is asked for: of `count` axes, their scales or sizes, and the region. */
typedef struct {
    int count;
    int64_t axis[ONNX_MAX_RANK];
    bool sized;
    double number[2 * ONNX_MAX_RANK], region[2 * ONNX_MAX_RANK];
} request;

static bool read_axes(onnx_node *n, request *r)
{
    const int64_t *axes;
    int given = onnx_ints(n, "axes", &axes), rank = onnx_rank(n, 0);

    r->count = given < 0 ? rank : given;
    if (r->count > rank)
        return onnx_wrong(n, "%d axes of %d dimensions", r->count, rank);
    for (int i = 0; i < r->count; i++)
        if (!onnx_axis(n, given < 0 ? i : axes[i], rank, &r->axis[i]))
            return false;
    return true;
}

/* Scales or sizes for each axis, and the region where the mode crops. */
static bool read_request(onnx_node *n, request *r)
{
    int scales = n->opset < 11 ? 1 : 2, found = read_numbers(n, scales, r->number), region;

    if (!read_axes(n, r))
        return false;
    if (found <= 0 && n->opset >= 11 && onnx_has(n, 3)) {
        r->sized = true;
        found = read_numbers(n, 3, r->number);
    }
    if (found < 0)
        return onnx_unknown(n, r->sized ? 3 : scales, r->sized ? "sizes" : "scales");
    if (found != r->count)
        return onnx_wrong(n, "%d scales or sizes for %d dimensions", found, r->count);
    for (int i = 0; i < r->count; i++)
        if (!(r->number[i] > 0) || !(r->number[i] < 1e9))
            return onnx_wrong(n, "scale or size %g of dimension %lld", r->number[i], (long long)r->axis[i]);
    if (!base_same(onnx_string(n, "coordinate_transformation_mode", ""), "tf_crop_and_resize"))
        return true;
    region = read_numbers(n, 1, r->region);
    if (region < 0)
        return onnx_unknown(n, 1, "a region");
    return region == 2 * r->count ||
           onnx_wrong(n, "%d numbers of the region, expected %d", region, 2 * r->count);
}

/* One scale for all axes, the least or greatest that sizes ask for. */
static void keep_ratio(onnx_node *n, request *r)
{
    const char *policy = onnx_string(n, "keep_aspect_ratio_policy", "stretch");
    double scale = 0;
    int64_t extent;

    if (!r->sized || base_same(policy, "stretch"))
        return;
    for (int i = 0; i < r->count; i++) {
        if (!ir_is_int(n->in[0]->type.dim[r->axis[i]], &extent) || extent < 1)
            return;
        double mine = r->number[i] / (double)extent;

        if (i == 0 || (base_same(policy, "not_larger") ? mine < scale : mine > scale))
            scale = mine;
    }
    for (int i = 0; i < r->count; i++) {
        ir_is_int(n->in[0]->type.dim[r->axis[i]], &extent);
        r->number[i] = floor(scale * (double)extent + 0.5);
    }
}

/* Axis k of the request. Sizes that stay as they are cost nothing. */
static graph_value *resize_one(onnx_node *n, graph_value *x, const request *r, int k)
{
    axis_map m = {.n = n,
                  .mode = onnx_string(n, "mode", "nearest"),
                  .coordinates = onnx_string(n, "coordinate_transformation_mode", "half_pixel"),
                  .nearest = onnx_string(n, "nearest_mode", "round_prefer_floor"),
                  .cubic = onnx_float(n, "cubic_coeff_a", -0.75),
                  .exclude_outside = onnx_int(n, "exclude_outside", 0) != 0,
                  .antialias = onnx_int(n, "antialias", 0) != 0,
                  .begin = r->region[k],
                  .end = r->region[r->count + k]};
    int axis = (int)r->axis[k];
    bool cropped = base_same(m.coordinates, "tf_crop_and_resize") && (m.begin != 0 || m.end != 1);

    /* Before opset 11 there was one way to do it. */
    if (n->opset < 11) {
        m.coordinates = "asymmetric";
        m.nearest = "floor";
    }
    if (!r->sized && r->number[k] == 1 && !cropped)
        return x;
    if (!ir_is_int(x->type.dim[axis], &m.in)) {
        onnx_unsupported(n, "a symbolic dimension is resized");
        return NULL;
    }
    m.out = r->sized ? (int64_t)r->number[k]
                     : (int64_t)floor((double)m.in * r->number[k] * (cropped ? m.end - m.begin : 1));
    m.scale = r->sized ? (double)m.out / (double)m.in : r->number[k];
    if (m.in < 1 || m.out < 0) {
        onnx_wrong(n, "dimension %d has %lld elements, its result %lld", axis, (long long)m.in,
                   (long long)m.out);
        return NULL;
    }
    return m.out == m.in && r->sized && !cropped ? x : resize_axis(&m, x, axis);
}

/* Integers are resized as floats and rounded at the end, unless elements are only picked. */
static bool resize(onnx_node *n, request *r)
{
    base_dtype t = n->in[0]->type.dtype;
    bool exact = base_same(onnx_string(n, "mode", "nearest"), "nearest");
    graph_value *x = exact ? n->in[0] : onnx_cast(n, n->in[0], wide(t));

    keep_ratio(n, r);
    for (int k = 0; x && k < r->count; k++)
        x = resize_one(n, x, r, k);
    if (x == n->in[0])
        x = onnx_unary(n, "identity", x);
    if (x && !base_is_float(t) && !exact)
        x = onnx_unary(n, "round", x);
    return onnx_set(n, 0, onnx_cast(n, x, t));
}

static bool convert_resize(onnx_node *n)
{
    request r = {.count = 0};

    return read_request(n, &r) && resize(n, &r);
}

/* Until opset 8 the scales were attributes. */
static bool convert_upsample(onnx_node *n)
{
    request r = {.count = onnx_rank(n, 0)};
    const Onnx__AttributeProto *a = onnx_attr(n, "scales");

    if (n->opset >= 9)
        return convert_resize(n);
    if ((int)a->n_floats != r.count)
        return onnx_wrong(n, "%zu scales for %d dimensions", a->n_floats, r.count);
    for (int i = 0; i < r.count; i++) {
        r.axis[i] = i;
        r.number[i] = (double)a->floats[i];
        if (!(r.number[i] > 0) || !(r.number[i] < 1e9))
            return onnx_wrong(n, "scale %g of dimension %d", r.number[i], i);
    }
    return resize(n, &r);
}

#define HOW                                                                                                  \
    "coordinate_transformation_mode:s(half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_" \
    "for_nn|tf_crop_and_resize|half_pixel_symmetric) "                                                       \
    "cubic_coeff_a:f exclude_outside:i extrapolation_value:f mode:s(nearest|linear|cubic) "                  \
    "nearest_mode:s(round_prefer_floor|round_prefer_ceil|floor|ceil) "
static const onnx_row rows[] = {
    {"Resize", convert_resize, 10, 10, "2>1 mode:s(nearest|linear)", NULL},
    {"Resize", convert_resize, 11, 12, "3-4>1 " HOW, NULL},
    {"Resize", convert_resize, 13, 0,
     "1-4>1 " HOW "antialias:i@18 axes:I@18 keep_aspect_ratio_policy:s(stretch|not_larger|not_smaller)@18",
     NULL},
    {"Upsample", convert_upsample, 7, 8, "1>1 !scales:F mode:s(nearest|linear)", NULL},
    {"Upsample", convert_upsample, 9, 9, "2>1 mode:s(nearest|linear)", NULL},
};
const onnx_rows onnx_resize_rows = {rows, BASE_COUNT(rows)};
