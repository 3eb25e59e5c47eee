/* graph/onnx/resize.c -- ONNX's Resize and Upsample, one dimension after another.
 *
 * Where an element of the result lies in the operand is known while importing. So along each dimension that
 * changes, the result is a sum of picked elements with weights, both constants: one of weight 1 (nearest),
 * two (linear), four (cubic), more where a smaller result is smoothed (antialias).
 *
 *     y[i] = sum[t](x[index[t][i]] * weight[t][i])
 *
 * Where an extent or a size is no number, indices and weights are computed when the model runs
 * (resize_exprs.c).
 */
#include <math.h>

#include "graph/onnx/resize.h"

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

/* Where result position lies in the operand, by the node's coordinate_transformation_mode. */
static double source(const axis_map *map, double position)
{
    if (base_same(map->coordinates, "asymmetric"))
        return position / map->scale;
    /* By the length that the scale gives, whole or not. */
    if (base_same(map->coordinates, "align_corners")) {
        double length = map->scale * (double)map->in;

        return map->out == 1 || length == 1 ? 0 : position * (double)(map->in - 1) / (length - 1);
    }
    if (base_same(map->coordinates, "pytorch_half_pixel") && map->out == 1)
        return 0;
    if (base_same(map->coordinates, "tf_half_pixel_for_nn"))
        return (position + 0.5) / map->scale;
    if (base_same(map->coordinates, "tf_crop_and_resize")) {
        double last = (double)(map->in - 1);

        return map->out > 1
                   ? map->begin * last + position * (map->end - map->begin) * last / (double)(map->out - 1)
                   : 0.5 * (map->begin + map->end) * last;
    }
    if (base_same(map->coordinates, "half_pixel_symmetric")) {
        double exact = map->scale * (double)map->in,
               offset = (double)map->in / 2 * (1 - (double)map->out / exact);

        return offset + (position + 0.5) / map->scale - 0.5;
    }
    return (position + 0.5) / map->scale - 0.5;
}

/* round_prefer_floor is the rule where the attribute is absent: halves go down. */
static double nearest(const axis_map *map, double x)
{
    if (base_same(map->nearest, "round_prefer_ceil"))
        return floor(x + 0.5);
    if (base_same(map->nearest, "floor"))
        return floor(x);
    if (base_same(map->nearest, "ceil"))
        return ceil(x);
    return ceil(x - 0.5);
}

/* The weight of an element at distance value. */
static double kernel(const axis_map *map, double value)
{
    double a = map->cubic;

    value = fabs(value);
    if (base_same(map->mode, "linear"))
        return value < 1 ? 1 - value : 0;
    if (value <= 1)
        return ((a + 2) * value - (a + 3)) * value * value + 1;
    return value < 2 ? ((a * value - 5 * a) * value + 8 * a) * value - 4 * a : 0;
}

static int64_t kept_inside(const axis_map *map, double at)
{
    return at<0 ? 0 : at>(double)(map->in - 1) ? map->in - 1 : (int64_t)at;
}

/* The taps of element index, weights made to add up to 1 where elements outside do not count, or where the
 * kernel was stretched. */
static void fill_taps(axis_map *map, int64_t index, double stretch)
{
    double x = source(map, (double)index), sum = 0, first = floor(x) - (double)(map->taps / 2 - 1);

    for (int t = 0; t < map->taps; t++) {
        double at = first + t, w = kernel(map, (at - x) * stretch);
        bool out = at < 0 || at > (double)(map->in - 1);

        if (map->exclude_outside && out)
            w = 0;
        map->index[t * map->out + index] = kept_inside(map, at);
        map->weight[t * map->out + index] = w;
        sum += w;
    }
    for (int t = 0; (map->exclude_outside || stretch < 1) && sum != 0 && t < map->taps; t++)
        map->weight[t * map->out + index] /= sum;
}

/* Smoothing widens the reach of the taps: distances count less. */
static double stretch_of(const axis_map *map)
{
    return map->antialias && map->scale < 1 ? map->scale : 1;
}

/* How many elements make one, up to twice the limit. */
static int count_taps(const axis_map *map)
{
    double reach = (base_same(map->mode, "cubic") ? 2 : 1) / stretch_of(map),
           most = (double)base_limit(map->n->cx, BASE_LIMIT_resize_taps);

    return base_same(map->mode, "nearest") ? 1 : 2 * (int)fmin(ceil(reach), most);
}

/* Index and weight of every tap for every element along one axis. */
static bool fill_map(axis_map *map)
{
    tec_context *cx = map->n->cx;
    bool is_nearest = base_same(map->mode, "nearest");
    double stretch = stretch_of(map);
    int64_t most = base_limit(cx, BASE_LIMIT_resize_taps);

    map->taps = count_taps(map);
    if (map->taps > most || map->out > base_limit(cx, BASE_LIMIT_resize_weights) / map->taps)
        return onnx_unsupported(
            map->n, "%lld elements that are each made of %d%s; %s", (long long)map->out, map->taps,
            map->taps > most ? " or more" : "",
            base_limit_text(cx, map->taps > most ? BASE_LIMIT_resize_taps : BASE_LIMIT_resize_weights));
    map->index = base_array(cx, int64_t, map->taps * map->out + 1);
    map->weight = base_array(cx, double, map->taps * map->out + 1);
    map->outside = base_array(cx, bool, map->out + 1);
    for (int64_t i = 0; i < map->out; i++) {
        double x = source(map, (double)i);

        map->outside[i] =
            base_same(map->coordinates, "tf_crop_and_resize") && (x < 0 || x > (double)(map->in - 1));
        map->any_outside = map->any_outside || map->outside[i];
        if (is_nearest)
            map->index[i] = kept_inside(map, nearest(map, x));
        else
            fill_taps(map, i, stretch);
    }
    return true;
}

static base_dtype wide(base_dtype dtype)
{
    return base_is_float(dtype) && dtype.bits == 64 ? BASE_F64 : BASE_F32;
}

/* How often each element stands beside itself in the result: 2 for 0, 0, 1, 1, 2, 2; 0: it is no such row. */
static int64_t repeats_of(const axis_map *map)
{
    int64_t times = map->out / map->in;

    if (map->taps != 1 || map->any_outside || times < 1 || map->out != times * map->in)
        return 0;
    for (int64_t i = 0; i < map->out; i++)
        if (map->index[i] != i / times)
            return 0;
    return times;
}

static graph_value *repeat_axis(onnx_node *node, graph_value *input, int axis, int64_t times)
{
    int64_t repeats[ONNX_MAX_RANK];

    for (int i = 0; i < input->type.n; i++)
        repeats[i] = i == axis ? times : 1;
    op_attr attr = op_attr_ints(node->cx, "repeats", repeats, input->type.n);
    return ONNX_MAKE(node, "repeat", &attr, 1, input);
}

/* The weighted sum of gathered operands, one for each tap; elements outside of a crop get the extrapolation
 * value. */
static graph_value *resize_axis(axis_map *map, graph_value *input, int axis)
{
    onnx_node *node = map->n;
    int rank = input->type.n;
    graph_value *sum = NULL;

    if (!fill_map(map))
        return NULL;
    int64_t times = repeats_of(map);
    if (times)
        return repeat_axis(node, input, axis, times);
    for (int t = 0; t < map->taps; t++) {
        graph_value *part =
            onnx_gather(node, input, onnx_constant_i64(node, map->index + t * map->out, (int)map->out), axis);

        if (map->taps > 1)
            part = onnx_binary(node, "mul", part,
                               onnx_along(node,
                                          onnx_constant_floats(node, input->type.dtype,
                                                               map->weight + t * map->out, (int)map->out),
                                          axis, rank));
        sum = sum ? onnx_binary(node, "add", sum, part) : part;
    }
    if (map->any_outside) {
        double *flag = base_array(node->cx, double, map->out);

        for (int64_t i = 0; i < map->out; i++)
            flag[i] = map->outside[i];
        graph_value *outside =
            onnx_along(node, onnx_constant_floats(node, BASE_BOOL, flag, (int)map->out), axis, rank);
        sum =
            onnx_where(node, outside,
                       onnx_scalar(node, input->type.dtype, onnx_float(node, "extrapolation_value", 0)), sum);
    }
    return sum;
}

/* ---- sizes ---- */

/* Numbers of an operand, floats or ints, as doubles; -1 where it is left out or not known. */
static int read_numbers(onnx_node *node, int index, double *out)
{
    const int64_t *ints;
    int count = onnx_has(node, index) ? onnx_constant_ints(node, index, &ints) : -1;

    if (count > 2 * ONNX_MAX_RANK)
        return -1;
    if (count >= 0 && !base_is_float(node->in[index]->type.dtype)) {
        for (int i = 0; i < count; i++)
            out[i] = (double)ints[i];
        return count;
    }
    const op_constant *constant = onnx_has(node, index) ? node->in[index]->constant : NULL;
    if (!constant || !base_dtype_same(constant->type.dtype, BASE_F32) ||
        constant->bytes > 2 * ONNX_MAX_RANK * 4)
        return onnx_has(node, index) && onnx_is_empty(node->in[index]) ? 0 : -1;
    for (int i = 0; i < (int)(constant->bytes / 4); i++)
        out[i] = ((const float *)constant->data)[i];
    return (int)(constant->bytes / 4);
}

/* What is asked for: of `count` axes, their scales or sizes, and the region. */
typedef struct {
    int count;
    int64_t axis[ONNX_MAX_RANK];
    bool sized;
    const ir_expr *size[ONNX_MAX_RANK]; /* that are no number; NULL: `number` has it */
    graph_value *scales;                /* f64[count] of the run; NULL: `number` has them */
    double number[2 * ONNX_MAX_RANK], region[2 * ONNX_MAX_RANK];
} request;

/* Sizes that are expressions over symbols, or numbers of the run; -1: not known. */
static int read_sizes(onnx_node *node, request *self)
{
    const onnx_known *given = onnx_needed_value(node, 3);
    int64_t number;

    for (int i = 0; given && i < given->n && i < ONNX_MAX_RANK; i++) {
        bool known = ir_is_int(given->at[i], &number);

        self->size[i] = known ? NULL : given->at[i];
        self->number[i] = known ? (double)number : 1;
    }
    return given && given->n <= ONNX_MAX_RANK ? given->n : -1;
}

/* Scales that are numbers of the run; -1: not even how many is known. */
static int read_scales(onnx_node *node, int operand, request *self)
{
    graph_value *value = onnx_has(node, operand) ? node->in[operand] : NULL;
    int64_t count;

    if (!value || value->constant || value->type.n != 1 || !base_is_float(value->type.dtype) ||
        !ir_is_int(value->type.dim[0], &count) || count > ONNX_MAX_RANK)
        return -1;
    for (int i = 0; i < count; i++)
        self->number[i] = 1;
    self->scales = onnx_cast(node, value, BASE_F64);
    return (int)count;
}

/* Without the attribute all dimensions, in order. */
static bool read_axes(onnx_node *node, request *self)
{
    const int64_t *axes;
    int given = onnx_ints(node, "axes", &axes), rank = onnx_rank(node, 0);

    self->count = given < 0 ? rank : given;
    if (self->count > rank)
        return onnx_wrong(node, "found %d axes for an operand of %d dimensions", self->count, rank);
    for (int i = 0; i < self->count; i++)
        if (!onnx_axis(node, given < 0 ? i : axes[i], rank, &self->axis[i]))
            return false;
    return true;
}

/* Scales or sizes for each axis, and the region where the mode crops. */
static bool read_request(onnx_node *node, request *self)
{
    int scales = node->opset < 11 ? 1 : 2, found = read_numbers(node, scales, self->number), region;

    if (!read_axes(node, self))
        return false;
    if (found <= 0 && node->opset >= 11 && onnx_has(node, 3)) {
        self->sized = true;
        found = read_numbers(node, 3, self->number);
        found = found < 0 ? read_sizes(node, self) : found;
    } else if (found < 0)
        found = read_scales(node, scales, self);
    if (found < 0)
        return onnx_unknown(node, self->sized ? 3 : scales, self->sized ? "sizes" : "scales");
    if (found != self->count)
        return onnx_wrong(node, "expected one scale or size for each dimension, found %d for %d dimensions",
                          found, self->count);
    for (int i = 0; i < self->count; i++)
        if (!(self->number[i] > 0) || !(self->number[i] < 1e9))
            return onnx_wrong(node, "scale or size %g of dimension %lld", self->number[i],
                              (long long)self->axis[i]);
    if (!base_same(onnx_string(node, "coordinate_transformation_mode", ""), "tf_crop_and_resize"))
        return true;
    region = read_numbers(node, 1, self->region);
    if (region < 0)
        return onnx_unknown(node, 1, "a region");
    return region == 2 * self->count ||
           onnx_wrong(node, "%d numbers of the region, expected %d", region, 2 * self->count);
}

/* The same where extents or sizes are no numbers. */
static bool keep_symbolic_ratio(onnx_node *node, request *self, bool least)
{
    const ir_expr **in = base_array(node->cx, const ir_expr *, self->count + 1);

    for (int i = 0; i < self->count; i++) {
        in[i] = node->in[0]->type.dim[self->axis[i]];
        if (!self->size[i])
            self->size[i] = ir_int(node->cx, (int64_t)self->number[i]);
    }
    return onnx_keep_ratio(node, in, self->size, self->count, least);
}

/* One scale for all axes, the least or greatest that sizes ask for. False after an error. */
static bool keep_ratio(onnx_node *node, request *self)
{
    const char *policy = onnx_string(node, "keep_aspect_ratio_policy", "stretch");
    bool least = base_same(policy, "not_larger");
    double scale = 0;
    int64_t extent;

    if (!self->sized || base_same(policy, "stretch"))
        return true;
    for (int i = 0; i < self->count; i++) {
        if (self->size[i] || !ir_is_int(node->in[0]->type.dim[self->axis[i]], &extent))
            return keep_symbolic_ratio(node, self, least);
        double mine = self->number[i] / (double)extent;

        if (i == 0 || (least ? mine < scale : mine > scale))
            scale = mine;
    }
    for (int i = 0; i < self->count; i++) {
        ir_is_int(node->in[0]->type.dim[self->axis[i]], &extent);
        self->number[i] = extent < 1 ? self->number[i] : floor(scale * (double)extent + 0.5);
    }
    return true;
}

/* Whether something that the result depends on is no number. */
static bool is_symbolic(const graph_value *input, const request *self, int index)
{
    int64_t extent;

    return self->scales || self->size[index] || !ir_is_int(input->type.dim[self->axis[index]], &extent);
}

/* Of 16 elements, how often each stands beside itself in the result, which no number of elements changes; 0:
 * it is another map. */
static int64_t repeats_of_any(axis_map *map)
{
    double times = map->scale;

    if (!base_same(map->mode, "nearest") || base_same(map->coordinates, "align_corners") ||
        base_same(map->coordinates, "tf_crop_and_resize") || times != floor(times))
        return 0;
    map->in = 16;
    map->out = map->in * (int64_t)times;
    return fill_map(map) ? repeats_of(map) : 0;
}

/* How many taps smoothing takes depends on the scale alone. False: noted as not supported. */
static bool set_taps(axis_map *map, onnx_resized *out)
{
    int64_t most = base_limit(map->n->cx, BASE_LIMIT_resize_taps);
    bool is_nearest = base_same(map->mode, "nearest");

    if (map->antialias && out->scale == 0 && !is_nearest)
        return onnx_unsupported(map->n,
                                "a symbolic dimension is resized with antialias by sizes, or by scales of "
                                "the run; expected constant extents and sizes, or constant scales");
    map->scale = out->scale;
    out->stretch = out->scale != 0 ? stretch_of(map) : 1;
    out->taps = is_nearest ? 1 : out->stretch < 1 ? count_taps(map) : base_same(map->mode, "cubic") ? 4 : 2;
    return out->taps <= most ||
           onnx_unsupported(map->n, "elements that are each made of %d or more; %s", out->taps,
                            base_limit_text(map->n->cx, BASE_LIMIT_resize_taps));
}

/* The same for an extent or a size that is no number. */
static graph_value *resize_symbolic(axis_map *map, graph_value *input, const request *self, int index)
{
    onnx_node *node = map->n;
    tec_context *cx = node->cx;
    int axis = (int)self->axis[index];
    onnx_resized r = {.mode = map->mode,
                      .coordinates = map->coordinates,
                      .nearest = map->nearest,
                      .cubic = map->cubic,
                      .exclude_outside = map->exclude_outside,
                      .scale = self->sized || self->scales ? 0 : self->number[index],
                      .in = input->type.dim[axis],
                      .out = self->size[index],
                      .crops = base_same(map->coordinates, "tf_crop_and_resize"),
                      .extrapolation = onnx_float(node, "extrapolation_value", 0),
                      .end = 1};

    if (r.crops) {
        r.begin = map->begin;
        r.end = map->end;
    }
    if (self->scales)
        r.run_scale = onnx_part(node, self->scales, 0, index, ir_int(cx, 1));
    if (!set_taps(map, &r))
        return NULL;
    int64_t times = self->sized || self->scales ? 0 : repeats_of_any(map);
    if (times)
        return repeat_axis(node, input, axis, times);
    if (!r.out)
        r.out = self->sized ? ir_int(cx, (int64_t)self->number[index]) : onnx_scaled(node, &r);
    return r.out ? onnx_resize_exprs(node, input, axis, &r) : NULL;
}

/* Axis index of the request. Sizes that stay as they are cost nothing. */
static graph_value *resize_one(onnx_node *node, graph_value *input, const request *self, int index)
{
    axis_map m = {.n = node,
                  .mode = onnx_string(node, "mode", "nearest"),
                  .coordinates = onnx_string(node, "coordinate_transformation_mode", "half_pixel"),
                  .nearest = onnx_string(node, "nearest_mode", "round_prefer_floor"),
                  .cubic = onnx_float(node, "cubic_coeff_a", -0.75),
                  .exclude_outside = onnx_int(node, "exclude_outside", 0) != 0,
                  .antialias = onnx_int(node, "antialias", 0) != 0,
                  .begin = self->region[index],
                  .end = self->region[self->count + index]};
    int axis = (int)self->axis[index];
    bool cropped = base_same(m.coordinates, "tf_crop_and_resize") && (m.begin != 0 || m.end != 1);

    /* Before opset 11 there was one way to do it. */
    if (node->opset < 11) {
        m.coordinates = "asymmetric";
        m.nearest = "floor";
    }
    if (!self->sized && !self->scales && self->number[index] == 1 && !cropped)
        return input;
    if (is_symbolic(input, self, index))
        return resize_symbolic(&m, input, self, index);
    ir_is_int(input->type.dim[axis], &m.in);
    m.out = self->sized
                ? (int64_t)self->number[index]
                : (int64_t)floor((double)m.in * self->number[index] * (cropped ? m.end - m.begin : 1));
    m.scale = self->sized ? (double)m.out / (double)m.in : self->number[index];
    if (m.in < 1 || m.out < 0) {
        onnx_wrong(node, "dimension %d has %lld elements, its result %lld", axis, (long long)m.in,
                   (long long)m.out);
        return NULL;
    }
    return m.out == m.in && self->sized && !cropped ? input : resize_axis(&m, input, axis);
}

/* Integers are resized as floats and rounded at the end, unless elements are only picked. */
static bool resize(onnx_node *node, request *self)
{
    base_dtype t = node->in[0]->type.dtype;
    bool exact = base_same(onnx_string(node, "mode", "nearest"), "nearest");
    graph_value *x = exact ? node->in[0] : onnx_cast(node, node->in[0], wide(t));

    if (!keep_ratio(node, self))
        return false;
    for (int k = 0; x && k < self->count; k++)
        x = resize_one(node, x, self, k);
    if (x == node->in[0])
        x = onnx_unary(node, "identity", x);
    if (x && !base_is_float(t) && !exact)
        x = onnx_unary(node, "round", x);
    return onnx_set(node, 0, onnx_cast(node, x, t));
}

static bool convert_resize(onnx_node *node)
{
    request r = {.count = 0};

    return read_request(node, &r) && resize(node, &r);
}

/* Until opset 8 the scales were attributes. */
static bool convert_upsample(onnx_node *node)
{
    request r = {.count = onnx_rank(node, 0)};
    const Onnx__AttributeProto *a = onnx_attr(node, "scales");

    if (node->opset >= 9)
        return convert_resize(node);
    if ((int)a->n_floats != r.count)
        return onnx_wrong(node, "expected one scale for each dimension, found %zu for %d dimensions",
                          a->n_floats, r.count);
    for (int i = 0; i < r.count; i++) {
        r.axis[i] = i;
        r.number[i] = (double)a->floats[i];
        if (!(r.number[i] > 0) || !(r.number[i] < 1e9))
            return onnx_wrong(node, "scale %g of dimension %d", r.number[i], i);
    }
    return resize(node, &r);
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
