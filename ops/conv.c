/* ops/conv.c -- N-dimensional convolution with groups, strides, dilations and padding, on N,C,spatial
 * tensors.
 *
 * Inputs X[n, groups*in, spatial], W[groups*out, in, kernel], optional bias B[groups*out].
 *
 * Two implementations. `conv.direct` packs the input into blocks of channels, with its padding, and the
 * weights into panels of one vector of output channels, so that the inner loop broadcasts an input element
 * and streams a vector of weights:
 *
 *     P[n, g, ib, y, x, ii]  = X[n, (g*IB + ib)*bi + ii, y - pad, x - pad]   or 0
 *     A[n, g, ob, y, x, oi]  = sum[ib, ky, kx, ii](P[n, g, ib, y*s + ky*d, x*s + kx*d, ii] * Wp[g, ob, ib,
 *         ky, kx, ii, oi])
 *     Y[n, c, y, x]          = A[n, c / out, c % out / bo, y, x, c % bo] + B[c]
 *
 * `conv.depthwise` serves one input channel per group: padded planes, vectors along the last spatial
 * dimension.
 */
#include "ops/conv.h"
#include "ops/families.h"
#include "ops/packing.h"

#include "ir/text.h"

static bool is_half(base_dtype dtype)
{
    return base_is_float(dtype) && dtype.bits == 16;
}

/* The least power of two that is not below n. */
static int64_t power_of_two_above(int64_t n)
{
    int64_t p = 1;

    while (p < n)
        p *= 2;
    return p;
}

/* 16 channels together where there are as many; otherwise all of them, or the largest even share: 3 channels
 * are one block of 3, 24 are two of 12, 32 two of 16. 17 have no share from 8 to 16: two blocks of 16, the
 * second with one channel and 15 zeros. */
static int64_t choose_in_block(int64_t in)
{
    enum { WANTED = 16 };

    if (in <= WANTED)
        return in;
    for (int64_t b = WANTED; b >= WANTED / 2; b--)
        if (in % b == 0)
            return b;
    return WANTED;
}

/* Blocks that fill each group, so that no tile of neighbouring channels computes pieces of two groups: 24
 * channels are three blocks of 8. The block stays where whole ones would be short. */
static int64_t share_of_group(int64_t out, int64_t block)
{
    enum { LEAST = 8 };
    int64_t b = block;

    while (b >= LEAST && out % b)
        b /= 2;
    return b >= LEAST ? b : block;
}

/* Of weights: blocks and loops over the kernel are written out for these numbers. */
static bool constant_dim(const op_call *call, int operand, int dim, int64_t *out)
{
    if (ir_is_int(call->input[operand].dim[dim], out) && *out >= 1)
        return true;
    return op_fail(call, "operand %d is %s: dimension %d must be a positive constant", operand,
                   op_type_text(call->cx, &call->input[operand]), dim);
}

/* What the messages call rank is the number of dimensions; spatial dimensions are those after batch and
 * channels. */
static bool check_operands(const op_call *call)
{
    const op_type *x = &call->input[0], *w = &call->input[1];

    if (x->n < 3)
        return op_fail(call, "the input is %s: expected [n, channels, spatial dimensions...]",
                       op_type_text(call->cx, x));
    if (w->n != x->n)
        return op_fail(call, "the input is %s and the weights are %s: expected equal ranks",
                       op_type_text(call->cx, x), op_type_text(call->cx, w));
    if (!base_dtype_same(x->dtype, w->dtype) || !base_is_float(x->dtype))
        return op_fail(call, "the input is %s and the weights are %s: expected the same float type",
                       op_type_text(call->cx, x), op_type_text(call->cx, w));
    return true;
}

/* The weights say how many input channels each group has; the input has to agree. */
static bool check_channels(const op_call *call, const op_conv *conv, int64_t outputs)
{
    if (conv->groups < 1 || outputs % conv->groups)
        return op_fail(call, "cannot divide %lld output channels into %lld groups", (long long)outputs,
                       (long long)conv->groups);
    if (!op_equal(call, call->input[0].dim[1], ir_int(call->cx, conv->groups * conv->in)))
        return op_fail(
            call, "the input has %s channels, but the weights are for %lld groups of %lld channels",
            ir_expr_text(call->cx, call->input[0].dim[1]), (long long)conv->groups, (long long)conv->in);
    if (op_has_input(call, 2) && (call->input[2].n != 1 || !ir_is_value(call->input[2].dim[0], outputs)))
        return op_fail(call, "the bias is %s, expected [%lld]", op_type_text(call->cx, &call->input[2]),
                       (long long)outputs);
    return true;
}

/* Reads attributes and constant extents, and chooses the blocks: one vector of output channels of the target,
 * input channels that divide well. False with an error. For 16 lanes: 64 outputs are blocks of 16; 3 outputs
 * are one block of 4, since a wider one would be mostly zeros; 2 groups of 24 are blocks of 8
 * (share_of_group). Without a target there are no vectors. */
bool op_conv_read(const op_call *call, op_conv *conv)
{
    int64_t outputs, kernel[OP_MAX_SPATIAL];
    int rank = call->input[0].n - 2;

    *conv = (op_conv){.groups = op_int(call, "group", 1)};
    if (!check_operands(call) || !constant_dim(call, 1, 0, &outputs) || !constant_dim(call, 1, 1, &conv->in))
        return false;
    for (int i = 0; i < rank && i < OP_MAX_SPATIAL; i++)
        if (!constant_dim(call, 1, 2 + i, &kernel[i]))
            return false;
    if (!check_channels(call, conv, outputs) || !op_window_read(call, kernel, rank, &conv->window))
        return false;
    conv->out = outputs / conv->groups;
    conv->sum = is_half(call->input[0].dtype) ? BASE_F32 : call->input[0].dtype;
    conv->in_block = choose_in_block(conv->in);
    conv->out_block = call->target ? target_lanes(call->target, conv->sum) : 1;
    if (conv->out_block > power_of_two_above(conv->out))
        conv->out_block = power_of_two_above(conv->out);
    if (conv->groups > 1 && conv->out % conv->out_block)
        conv->out_block = share_of_group(conv->out, conv->out_block);
    return true;
}

/* The type of the result: spatial extents follow from the window and may be symbols. */
static bool conv_relation(op_call *call)
{
    op_conv v;

    if (!op_conv_read(call, &v))
        return false;
    const ir_expr **dim = base_array(call->cx, const ir_expr *, call->input[0].n);
    dim[0] = call->input[0].dim[0];
    dim[1] = ir_int(call->cx, v.groups * v.out);
    for (int i = 0; i < v.window.rank; i++) {
        dim[2 + i] = op_window_out(call, &v.window, i, call->input[0].dim[2 + i]);
        if (!dim[2 + i])
            return false;
    }
    call->output[0] = (op_type){call->input[0].dtype, call->input[0].n, dim};
    return true;
}

/* ---- help for bodies ---- */

/* How many blocks n channels need, the last one filled up. */
static const ir_expr *blocks(tec_context *cx, int64_t n, int64_t block)
{
    return ir_int(cx, (n + block - 1) / block);
}

static const ir_expr *zero(tec_context *cx, base_dtype dtype)
{
    return ir_imm(cx, dtype, 0);
}

/* block*size + inner, and the condition that it is below n where the blocks overshoot (joined to *inside). */
static const ir_expr *unblock(tec_context *cx, const ir_expr *block, const ir_expr *inner, int64_t size,
                              int64_t n, const ir_expr **inside)
{
    const ir_expr *i = ir_add(cx, ir_mul(cx, block, ir_int(cx, size)), inner);

    if (n % size)
        *inside = ir_all(cx, *inside, ir_lt(cx, i, ir_int(cx, n)));
    return i;
}

/* Without a condition the value as it is: then no block overshoots, and no comparison is made for each
 * element. */
static const ir_expr *guarded(tec_context *cx, const ir_expr *inside, const ir_expr *value)
{
    return inside && value ? ir_select(cx, inside, value, zero(cx, value->dtype)) : value;
}

/* ---- direct ---- */

/* W as panels [g, ob, ib, kernel, ii, oi], zero where a block reaches beyond the channels. `keep` holds the
 * stage apart, so that it is computed once and not in every tile. */
static bool pack_weights(const op_call *call, te_def *def, te_tensor *in, te_tensor **out)
{
    op_conv v;
    op_axes a = {.cx = call->cx};
    const ir_expr *index[OP_MAX_SPATIAL + 2], *inside = NULL, *k[OP_MAX_SPATIAL];
    tec_context *cx = call->cx;

    if (!op_conv_read(call, &v))
        return false;
    const ir_expr *g = op_add_axis(&a, "g", ir_int(cx, v.groups)),
                  *ob = op_add_axis(&a, "ob", blocks(cx, v.out, v.out_block));
    const ir_expr *ib = op_add_axis(&a, "ib", blocks(cx, v.in, v.in_block));
    for (int i = 0; i < v.window.rank; i++)
        k[i] = op_add_axis(&a, op_numbered(cx, "k", i), ir_int(cx, v.window.kernel[i]));
    const ir_expr *ii = op_add_axis(&a, "ii", ir_int(cx, v.in_block)),
                  *oi = op_add_axis(&a, "oi", ir_int(cx, v.out_block));

    index[0] = ir_add(cx, ir_mul(cx, g, ir_int(cx, v.out)), unblock(cx, ob, oi, v.out_block, v.out, &inside));
    index[1] = unblock(cx, ib, ii, v.in_block, v.in, &inside);
    for (int i = 0; i < v.window.rank; i++)
        index[2 + i] = k[i];
    base_dtype dtype = op_packed_dtype(call, 1, op_count_uses(&call->output[0], 2, 2 + v.window.rank));
    const ir_expr *expr = guarded(cx, inside, ir_cast(cx, dtype, te_read(in, index, 2 + v.window.rank)));
    *out =
        te_compute(def, op_stage_name(def, base_format(cx, "%s.weights", call->op->name)), a.axis, a.n, expr);
    te_note(*out, "keep", ir_bool(cx, true));
    return *out != NULL;
}

/* A CPU would convert an element of 16 bits for each of its uses. The tensor cores of a GPU take 16 bits. */
static base_dtype packed_input_dtype(const op_call *call, const op_conv *conv)
{
    return call->target && target_offers(call->target, TARGET_CPU) ? conv->sum : call->input[0].dtype;
}

/* X as blocks of channels with its padding: [n, g, ib, spatial, ii]. Outside of the input it is 0. Extents
 * are those that the windows reach, not those of the input plus padding: rows behind the last window would be
 * packed for nobody. */
static te_tensor *pack_input(const op_call *call, const op_conv *conv, te_def *def, te_tensor *input,
                             const ir_expr *const *out_extent)
{
    op_axes a = {.cx = call->cx};
    const ir_expr *index[OP_MAX_SPATIAL + 2], *inside = NULL, *p[OP_MAX_SPATIAL];
    tec_context *cx = call->cx;
    ir_role role = def->role;

    const ir_expr *n = op_add_axis(&a, "n", call->input[0].dim[0]),
                  *g = op_add_axis(&a, "g", ir_int(cx, conv->groups));
    const ir_expr *ib = op_add_axis(&a, "ib", blocks(cx, conv->in, conv->in_block));
    for (int i = 0; i < conv->window.rank; i++)
        p[i] =
            op_add_axis(&a, op_numbered(cx, "s", i), op_window_span(call, &conv->window, i, out_extent[i]));
    const ir_expr *ii = op_add_axis(&a, "ii", ir_int(cx, conv->in_block));

    index[0] = n;
    index[1] = ir_add(cx, ir_mul(cx, g, ir_int(cx, conv->in)),
                      unblock(cx, ib, ii, conv->in_block, conv->in, &inside));
    for (int i = 0; i < conv->window.rank; i++) {
        inside = ir_all(
            cx, inside,
            op_window_inside(call, &conv->window, i, p[i], call->input[0].dim[2 + i], te_axis_extent(p[i])));
        index[2 + i] = ir_sub(cx, p[i], ir_int(cx, conv->window.before[i]));
    }
    const ir_expr *expr =
        guarded(cx, inside,
                ir_cast(cx, packed_input_dtype(call, conv), te_read(input, index, 2 + conv->window.rank)));
    def->role = IR_ROLE_PROLOGUE;
    te_tensor *tensor =
        te_compute(def, op_stage_name(def, base_format(cx, "%s.packed", call->op->name)), a.axis, a.n, expr);
    def->role = role;
    te_note(tensor, "keep", ir_bool(cx, true));
    return tensor;
}

/* The sums of products in blocks of output channels, without bias; 16-bit floats are summed in float32. The
 * lanes, oi, are the last axis of the sums and of the weights, so both are read in order; the input element
 * is the same for all lanes. */
static te_tensor *accumulate(const op_call *call, const op_conv *conv, te_def *def, te_tensor *packed,
                             te_tensor *weights, const ir_expr *const *out_extent)
{
    op_axes a = {.cx = call->cx}, r = {.cx = call->cx};
    const ir_expr *x[OP_MAX_SPATIAL + 8], *w[OP_MAX_SPATIAL + 8], *y[OP_MAX_SPATIAL], *k;
    tec_context *cx = call->cx;
    int rank = conv->window.rank;

    const ir_expr *n = op_add_axis(&a, "n", call->input[0].dim[0]),
                  *g = op_add_axis(&a, "g", ir_int(cx, conv->groups));
    const ir_expr *ob = op_add_axis(&a, "ob", blocks(cx, conv->out, conv->out_block));
    for (int i = 0; i < rank; i++)
        y[i] = op_add_axis(&a, op_numbered(cx, "s", i), out_extent[i]);
    const ir_expr *oi = op_add_axis(&a, "oi", ir_int(cx, conv->out_block)),
                  *ib = op_add_reduce(&r, "ib", blocks(cx, conv->in, conv->in_block));

    x[0] = n, x[1] = g, x[2] = ib;
    w[0] = g, w[1] = ob, w[2] = ib;
    for (int i = 0; i < rank; i++) {
        k = op_add_reduce(&r, op_numbered(cx, "k", i), ir_int(cx, conv->window.kernel[i]));
        x[3 + i] = op_window_at(cx, &conv->window, i, y[i], k);
        w[3 + i] = k;
    }
    const ir_expr *ii = op_add_reduce(&r, "ii", ir_int(cx, conv->in_block));
    x[3 + rank] = w[3 + rank] = ii;
    w[4 + rank] = oi;
    const ir_expr *product = ir_mul(cx, ir_cast(cx, conv->sum, te_read(packed, x, 4 + rank)),
                                    ir_cast(cx, conv->sum, te_read(weights, w, 5 + rank)));
    return te_compute(def, op_stage_name(def, base_format(cx, "%s.acc", call->op->name)), a.axis, a.n,
                      te_reduce(cx, "sum", product, r.axis, r.n));
}

/* Y[n, c, s...] from the blocked sums, with the bias. Channel call is lane call % out % block of block call %
 * out / block in group call / out. With one group the division falls away and indices stay plain sums. */
static te_tensor *unpack(const op_call *call, const op_conv *conv, te_def *def, te_tensor *sums,
                         te_tensor *bias)
{
    op_axes a = {.cx = call->cx};
    const ir_expr *index[OP_MAX_SPATIAL + 8];
    tec_context *cx = call->cx;
    int rank = conv->window.rank;

    const ir_expr *n = op_add_axis(&a, "n", call->output[0].dim[0]),
                  *ch = op_add_axis(&a, "c", call->output[0].dim[1]);
    const ir_expr *in_group = conv->groups == 1 ? ch : ir_floormod(cx, ch, ir_int(cx, conv->out)),
                  *block = ir_int(cx, conv->out_block);

    index[0] = n;
    index[1] = conv->groups == 1 ? ir_int(cx, 0) : ir_floordiv(cx, ch, ir_int(cx, conv->out));
    index[2] = ir_floordiv(cx, in_group, block);
    for (int i = 0; i < rank; i++)
        index[3 + i] = op_add_axis(&a, op_numbered(cx, "s", i), call->output[0].dim[2 + i]);
    index[3 + rank] = ir_floormod(cx, in_group, block);
    const ir_expr *expr = te_read(sums, index, 4 + rank);
    if (bias)
        expr = ir_add(cx, expr, ir_cast(cx, conv->sum, te_at(bias, ch)));
    ir_role role = def->role;
    def->role = IR_ROLE_EPILOGUE;
    te_tensor *tensor = te_compute(def, op_stage_name(def, call->op->name), a.axis, a.n,
                                   ir_cast(cx, call->output[0].dtype, expr));
    def->role = role;
    return tensor;
}

static bool direct_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    op_conv v;

    if (!op_conv_read(call, &v))
        return false;
    te_tensor *packed = pack_input(call, &v, def, in[0], call->output[0].dim + 2);
    te_tensor *sums = accumulate(call, &v, def, packed, in[1], call->output[0].dim + 2);

    *out = unpack(call, &v, def, sums, op_has_input(call, 2) ? in[2] : NULL);
    return *out != NULL;
}

/* ---- depthwise ---- */

/* Several outputs for a channel count as well: the group is what has one input. */
static bool is_depthwise(const op_call *call)
{
    op_conv v;

    return op_conv_read(call, &v) && v.in == 1 && v.groups > 1;
}

/* The input with zeros around, or the input itself where the window needs no padding. The extent of each
 * dimension is what the windows reach, as in pack_input. */
static te_tensor *pad_planes(const op_call *call, const op_conv *conv, te_def *def, te_tensor *input,
                             const ir_expr *const *out_extent)
{
    op_axes a = {.cx = call->cx};
    const ir_expr *index[OP_MAX_SPATIAL + 2], *inside = NULL;
    tec_context *cx = call->cx;

    index[0] = op_add_axis(&a, "n", call->input[0].dim[0]);
    index[1] = op_add_axis(&a, "c", call->input[0].dim[1]);
    for (int i = 0; i < conv->window.rank; i++) {
        const ir_expr *p =
            op_add_axis(&a, op_numbered(cx, "s", i), op_window_span(call, &conv->window, i, out_extent[i]));

        inside =
            ir_all(cx, inside,
                   op_window_inside(call, &conv->window, i, p, call->input[0].dim[2 + i], te_axis_extent(p)));
        index[2 + i] = ir_sub(cx, p, ir_int(cx, conv->window.before[i]));
    }
    if (!inside)
        return input;
    ir_role role = def->role;
    def->role = IR_ROLE_PROLOGUE;
    te_tensor *tensor =
        te_compute(def, op_stage_name(def, base_format(cx, "%s.padded", call->op->name)), a.axis, a.n,
                   guarded(cx, inside, te_read(input, index, 2 + conv->window.rank)));
    def->role = role;
    te_note(tensor, "keep", ir_bool(cx, true));
    return tensor;
}

/* Each output channel reads one input channel, so packing channels would bring nothing. Output channel call
 * reads input channel call / out. The sums are a stage of their own, and a second one adds the bias and
 * converts, where fusion joins what follows. */
static bool depthwise_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    op_conv v;
    op_axes a = {.cx = call->cx}, r = {.cx = call->cx};
    const ir_expr *x[OP_MAX_SPATIAL + 2], *w[OP_MAX_SPATIAL + 2];
    tec_context *cx = call->cx;

    if (!op_conv_read(call, &v))
        return false;
    te_tensor *padded = pad_planes(call, &v, def, in[0], call->output[0].dim + 2);
    x[0] = op_add_axis(&a, "n", call->output[0].dim[0]);
    w[0] = op_add_axis(&a, "c", call->output[0].dim[1]);
    x[1] = v.out == 1 ? w[0] : ir_floordiv(cx, w[0], ir_int(cx, v.out));
    w[1] = ir_int(cx, 0);
    for (int i = 0; i < v.window.rank; i++) {
        const ir_expr *y = op_add_axis(&a, op_numbered(cx, "s", i), call->output[0].dim[2 + i]);

        w[2 + i] = op_add_reduce(&r, op_numbered(cx, "k", i), ir_int(cx, v.window.kernel[i]));
        x[2 + i] = op_window_at(cx, &v.window, i, y, w[2 + i]);
    }
    const ir_expr *product = ir_mul(cx, ir_cast(cx, v.sum, te_read(padded, x, 2 + v.window.rank)),
                                    ir_cast(cx, v.sum, te_read(in[1], w, 2 + v.window.rank)));
    te_tensor *sums = te_compute(def, op_stage_name(def, base_format(cx, "%s.acc", call->op->name)), a.axis,
                                 a.n, te_reduce(cx, "sum", product, r.axis, r.n));

    op_axes b = {.cx = cx};
    const ir_expr *at[OP_MAX_SPATIAL + 2];
    for (int i = 0; i < 2 + v.window.rank; i++)
        at[i] = op_add_axis(&b, a.axis[i] ? a.axis[i]->var.name : "", call->output[0].dim[i]);
    const ir_expr *expr = te_read(sums, at, b.n);
    if (op_has_input(call, 2))
        expr = ir_add(cx, expr, ir_cast(cx, v.sum, te_at(in[2], at[1])));
    ir_role role = def->role;
    def->role = IR_ROLE_EPILOGUE;
    *out = te_compute(def, op_stage_name(def, call->op->name), b.axis, b.n,
                      ir_cast(cx, call->output[0].dtype, expr));
    def->role = role;
    return *out != NULL;
}

static const op_impl impls[] = {
    {.name = "conv.direct", .version = 1, .body = direct_body, .packs = 1, .pack = pack_weights},
    {.name = "conv.depthwise",
     .version = 1,
     .applies = is_depthwise,
     /* where it applies, conv.direct would pack each channel into a block of its own */
     .rank = op_rank_first,
     .body = depthwise_body,
     .packs = -1},
};

static const op_info rows[] = {
    {.name = "conv",
     .min_inputs = 2,
     .max_inputs = 3,
     .n_outputs = 1,
     .kind = OP_COMPLEX,
     .relation = conv_relation,
     .impls = impls,
     .n_impls = BASE_COUNT(impls),
     .in_place = -1,
     .doc = "convolution of [n, c, spatial] with weights [o, c / group, kernel] and a bias; group (1), "
            "strides, dilations, pads"},
};
const op_family op_conv_family = {rows, BASE_COUNT(rows)};
