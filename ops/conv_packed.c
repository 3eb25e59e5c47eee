/* ops/conv_packed.c -- convolution that reads and writes packed channels, so that layers hand blocks of
 * channels to each other.
 *
 * Inputs X[n, c / b, spatial, b] (or plain: X[n, c, spatial], for the few channels of an image), W[o, c /
 * group, kernel], optional bias B[o]. Output [n, o / block, spatial, block].
 *
 *     P[n, ib, y, x, ii]  = X[n, ib, y, x - pad, ii]   or 0                     only where the last
 *                                                                                 dimension is padded
 *     A[n, ob, y, x, oi]  = sum[ib, ky, kx, ii](P[n, ib, y*s + ky*d - pad, x*s + kx*d, ii] * Wp[ob, ib, ky,
 *         kx, ii, oi] where that row exists);  in pairs of ii: Wp[ob, ib, ky, kx, io, oi, ip]
 *     Y[n, ob, y, x, oi]  = A[n, ob, y, x, oi] + B[ob*block + oi]
 *
 * Rows of padding are skipped by the loops over the kernel; columns are inside of a tile of sums, where
 * skipping does not pay. `conv_packed.depthwise` serves one channel per group: lanes are channels, padding is
 * tested where it is read.
 */
#include "ops/conv.h"
#include "ops/families.h"
#include "ops/packing.h"

/* The convolution as it would be on plain tensors. */
typedef struct {
    op_conv plain;
    bool packed; /* the input's channels are packed */
    bool depthwise;
    int64_t in_block, out_block; /* in_block 1: plain */
    bool pairs; /* of input channels lie together in the weights, and an instruction takes both */
} packed_conv;

/* Whether the CPU has dot products of two bfloat16, with vectors as long as a block of output channels. */
static bool takes_pairs(const op_call *call, const packed_conv *conv)
{
    const target *t = call->target;
    base_dtype dtype = call->input[0].dtype;

    return dtype.code == kDLBfloat && t && t->bf16_pairs && conv->packed && !conv->depthwise &&
           conv->in_block % 2 == 0 && (conv->out_block == 4 || conv->out_block == 8 || conv->out_block == 16);
}

/* A block must not reach from one group into the next: such a block would need weights that are mostly zero.
 */
static bool check_blocks(const op_call *call, const packed_conv *conv)
{
    const op_conv *p = &conv->plain;

    if (conv->out_block < 1 || (p->groups * p->out) % conv->out_block)
        return op_fail(call, "%lld output channels are not a multiple of 'block', %lld",
                       (long long)(p->groups * p->out), (long long)conv->out_block);
    if (conv->depthwise)
        return (conv->packed && conv->in_block == conv->out_block) ||
               op_fail(call, "one channel per group: the input must be packed by %lld",
                       (long long)conv->out_block);
    if (p->groups > 1 && (p->out % conv->out_block || p->in % conv->in_block))
        return op_fail(call, "groups of %lld to %lld channels are not multiples of the blocks, %lld and %lld",
                       (long long)p->in, (long long)p->out, (long long)conv->in_block,
                       (long long)conv->out_block);
    return true;
}

/* The convolution as if its input were unpacked, and the blocks. An input with one dimension less is plain:
 * an image. */
static bool read_packed(const op_call *call, packed_conv *conv)
{
    op_call plain = *call;
    op_type input[3];

    for (int i = 0; i < call->n_inputs; i++)
        input[i] = call->input[i];
    *conv = (packed_conv){
        .packed = input[0].n == input[1].n + 1, .in_block = 1, .out_block = op_int(call, "block", 0)};
    if (conv->packed && !op_unpacked_type(call->cx, &call->input[0], &input[0]))
        return op_fail(call, "the input is %s: expected [n, blocks, spatial dimensions..., block]",
                       op_type_text(call->cx, &call->input[0]));
    plain.input = input;
    if (!op_conv_read(&plain, &conv->plain))
        return false;
    if (conv->packed)
        ir_is_int(call->input[0].dim[call->input[0].n - 1], &conv->in_block);
    conv->depthwise = conv->plain.in == 1 && conv->plain.out == 1 && conv->plain.groups > 1;
    conv->pairs = takes_pairs(call, conv);
    return check_blocks(call, conv);
}

/* The result is packed by 'block' whatever the input is. */
static bool packed_relation(op_call *call)
{
    packed_conv v;

    if (!read_packed(call, &v))
        return false;
    int rank = v.plain.window.rank;
    const ir_expr **dim = base_array(call->cx, const ir_expr *, rank + 3);
    dim[0] = call->input[0].dim[0];
    dim[1] = ir_int(call->cx, v.plain.groups * v.plain.out / v.out_block);
    for (int i = 0; i < rank; i++) {
        dim[2 + i] = op_window_out(call, &v.plain.window, i, call->input[0].dim[2 + i]);
        if (!dim[2 + i])
            return false;
    }
    dim[2 + rank] = ir_int(call->cx, v.out_block);
    call->output[0] = (op_type){call->input[0].dtype, rank + 3, dim};
    return true;
}

/* ---- bodies ---- */

/* block * size + inner; without inner the block is the channel itself, which is so for plain inputs. */
static const ir_expr *join(tec_context *cx, const ir_expr *block, int64_t size, const ir_expr *inner)
{
    return inner ? ir_add(cx, ir_mul(cx, block, ir_int(cx, size)), inner) : block;
}

/* The first channel of a pair, and the second: channel `io * 2 + ip` of a block. */
static const ir_expr *join_pair(tec_context *cx, const ir_expr *io, const ir_expr *ip)
{
    return ir_add(cx, ir_mul(cx, io, ir_int(cx, 2)), ip);
}

/* [ob, ib, kernel, ii, oi]; in pairs: [ob, ib, kernel, io, oi, ip]; depthwise: [cb, kernel, ci]. An image has
 * no ii: its input channels lie one by one. Blocks were checked to fill the channels (check_blocks), so
 * nothing overshoots. */
static bool pack_weights(const op_call *call, te_def *def, te_tensor *in, te_tensor **out)
{
    packed_conv v;
    op_axes a = {.cx = call->cx};
    const ir_expr *index[OP_MAX_SPATIAL + 2], *ib = NULL, *ii = NULL;
    tec_context *cx = call->cx;

    if (!read_packed(call, &v))
        return false;
    int rank = v.plain.window.rank;
    const ir_expr *ob = op_add_axis(&a, "ob", ir_int(cx, v.plain.groups * v.plain.out / v.out_block));
    if (!v.depthwise)
        ib = op_add_axis(&a, "ib", ir_int(cx, v.plain.in / v.in_block));
    for (int i = 0; i < rank; i++)
        index[2 + i] = op_add_axis(&a, op_numbered(cx, "k", i), ir_int(cx, v.plain.window.kernel[i]));
    if (v.packed && !v.depthwise)
        ii = op_add_axis(&a, "ii", ir_int(cx, v.pairs ? v.in_block / 2 : v.in_block));
    index[0] = join(cx, ob, v.out_block, op_add_axis(&a, "oi", ir_int(cx, v.out_block)));
    if (v.pairs)
        ii = join_pair(cx, ii, op_add_axis(&a, "ip", ir_int(cx, 2)));
    index[1] = v.depthwise ? ir_int(cx, 0) : join(cx, ib, v.in_block, ii);
    base_dtype dtype = v.pairs ? call->input[1].dtype
                               : op_packed_dtype(call, 1, op_count_uses(&call->output[0], 2, 2 + rank));
    *out = te_compute(def, op_stage_name(def, base_format(cx, "%s.weights", call->op->name)), a.axis, a.n,
                      ir_cast(cx, dtype, te_read(in, index, 2 + rank)));
    te_note(*out, "keep", ir_bool(cx, true));
    return *out != NULL;
}

/* The input with zeros around it in spatial dimensions first..; itself where there are none. Padding in all
 * dimensions is for a depthwise convolution, which reads each element a few times only: it is tested where it
 * is read, and loops are cut where it ends. Otherwise the result has the type of the sums: an element is read
 * for each block of output channels, and would be converted each time. Pairs are read as they are, but from
 * memory. */
static te_tensor *pad_input(const op_call *call, const packed_conv *conv, te_def *def, te_tensor *input,
                            int first)
{
    const op_window *window = &conv->plain.window;
    op_axes a = {.cx = call->cx};
    const ir_expr *index[OP_MAX_SPATIAL + 3], *inside = NULL;
    tec_context *cx = call->cx;

    index[0] = op_add_axis(&a, "n", call->input[0].dim[0]);
    index[1] = op_add_axis(&a, "ib", call->input[0].dim[1]);
    for (int i = 0; i < window->rank; i++) {
        const ir_expr *extent = call->input[0].dim[2 + i],
                      *span = op_window_span(call, window, i, call->output[0].dim[2 + i]);
        const ir_expr *p = op_add_axis(&a, op_numbered(cx, "s", i), i < first ? extent : span);

        index[2 + i] = p;
        if (i < first)
            continue;
        inside = ir_all(cx, inside, op_window_inside(call, window, i, p, extent, span));
        index[2 + i] = ir_sub(cx, p, ir_int(cx, window->before[i]));
    }
    if (!input)
        return NULL;
    bool widens = first > 0 && !conv->pairs && !base_dtype_same(input->buffer->dtype, conv->plain.sum);
    bool moves = conv->pairs && input->stage->kind != TE_INPUT;
    if (!inside && !widens && !moves)
        return input;
    if (conv->packed)
        index[2 + window->rank] = op_add_axis(&a, "ii", ir_int(cx, conv->in_block));
    const ir_expr *expr = te_read(input, index, call->input[0].n);
    ir_role role = def->role;
    if (widens)
        expr = ir_cast(cx, conv->plain.sum, expr);
    if (inside && expr)
        expr = ir_select(cx, inside, expr, ir_imm(cx, expr->dtype, 0));
    def->role = IR_ROLE_PROLOGUE;
    te_tensor *tensor =
        te_compute(def, op_stage_name(def, base_format(cx, "%s.padded", call->op->name)), a.axis, a.n, expr);
    def->role = role;
    if (first > 0 || conv->pairs)
        te_note(tensor, "keep", ir_bool(cx, true));
    return tensor;
}

/* Axes n, ob, spatial; then those of the kernel, and the positions in the padded input. */
typedef struct {
    op_axes axis, reduce;
    const ir_expr *at[OP_MAX_SPATIAL], *tap[OP_MAX_SPATIAL], *inside;
} windows;

/* Opened once for the sums and once for what follows: a stage has axes of its own. */
static void open_spatial(const op_call *call, const packed_conv *conv, windows *self)
{
    tec_context *cx = call->cx;

    self->axis.cx = self->reduce.cx = cx;
    op_add_axis(&self->axis, "n", call->output[0].dim[0]);
    op_add_axis(&self->axis, "ob", call->output[0].dim[1]);
    for (int i = 0; i < conv->plain.window.rank; i++)
        op_add_axis(&self->axis, op_numbered(cx, "s", i), call->output[0].dim[2 + i]);
    op_add_axis(&self->axis, "oi", ir_int(cx, conv->out_block));
}

/* Dimensions before `padded` are read where they exist, the others are padded. `inside` collects the rows
 * that exist. For a kernel of 3 rows with padding 1 and stride 1, row y of the result reads the input rows y
 * - 1, y and y + 1, and `inside` is 1 <= y + k && y + k < h + 1, which the first and the last row of the
 * result do not meet for one k each. */
static void open_taps(const op_call *call, const packed_conv *conv, windows *self, int padded)
{
    const op_window *window = &conv->plain.window;
    tec_context *cx = call->cx;

    for (int i = 0; i < window->rank; i++) {
        self->tap[i] = op_add_reduce(&self->reduce, op_numbered(cx, "k", i), ir_int(cx, window->kernel[i]));
        self->at[i] = op_window_at(cx, window, i, self->axis.axis[2 + i], self->tap[i]);
        if (i >= padded)
            continue;
        const ir_expr *span = op_window_span(call, window, i, call->output[0].dim[2 + i]);
        self->inside =
            ir_all(cx, self->inside,
                   op_window_inside(call, window, i, self->at[i], call->input[0].dim[2 + i], span));
        self->at[i] = ir_sub(cx, self->at[i], ir_int(cx, window->before[i]));
    }
}

/* The sum over the kernel and the input channels, of products in the wider type. NULL goes through: an error
 * that was made before. */
static te_tensor *sum_up(const op_call *call, const packed_conv *conv, te_def *def, const windows *self,
                         const ir_expr *expr, const ir_expr *value)
{
    tec_context *cx = call->cx;
    const ir_expr *product =
        expr && value ? ir_mul(cx, ir_cast(cx, conv->plain.sum, expr), ir_cast(cx, conv->plain.sum, value))
                      : NULL;
    const ir_expr *sum = te_reduce_where(cx, "sum", product, self->reduce.axis, self->reduce.n, self->inside);

    te_tensor *sums = te_compute(def, op_stage_name(def, base_format(cx, "%s.acc", call->op->name)),
                                 self->axis.axis, self->axis.n, sum);
    if (conv->pairs)
        te_note(sums, "pairs", ir_bool(cx, true));
    return sums;
}

/* Bias and conversion to the result's type, in a stage of its own behind the sums, where fusion adds what
 * follows. */
static bool finish(const op_call *call, const packed_conv *conv, te_def *def, te_tensor *sums,
                   te_tensor *bias, te_tensor **out)
{
    windows o = {.inside = NULL};
    tec_context *cx = call->cx;

    if (!sums)
        return false;
    open_spatial(call, conv, &o);
    const ir_expr *expr = te_read(sums, o.axis.axis, o.axis.n),
                  *channel = join(cx, o.axis.axis[1], conv->out_block, o.axis.axis[o.axis.n - 1]);
    if (bias)
        expr = ir_add(cx, expr, ir_cast(cx, conv->plain.sum, te_read(bias, &channel, 1)));
    ir_role role = def->role;
    def->role = IR_ROLE_EPILOGUE;
    *out = te_compute(def, op_stage_name(def, call->op->name), o.axis.axis, o.axis.n,
                      ir_cast(cx, call->output[0].dtype, expr));
    def->role = role;
    return *out != NULL;
}

/* Input channels of block ib at the window's place, times weights [ob, ib, kernel, ii, oi]. Group g reads the
 * blocks from g * (in / in_block) on, and output block ob belongs to group ob / (out / out_block), since
 * blocks do not cross groups. */
static bool direct_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    packed_conv v;
    windows o = {.inside = NULL};
    const ir_expr *x[OP_MAX_SPATIAL + 3], *w[OP_MAX_SPATIAL + 5];
    tec_context *cx = call->cx;

    if (!read_packed(call, &v))
        return false;
    int rank = v.plain.window.rank, n = 0;
    te_tensor *padded = pad_input(call, &v, def, in[0], rank - 1);

    open_spatial(call, &v, &o);
    const ir_expr *ob = o.axis.axis[1], *oi = o.axis.axis[2 + rank];
    const ir_expr *ib = op_add_reduce(&o.reduce, "ib", ir_int(cx, v.plain.in / v.in_block));
    open_taps(call, &v, &o, rank - 1);
    const ir_expr *ii =
        v.packed ? op_add_reduce(&o.reduce, "ii", ir_int(cx, v.pairs ? v.in_block / 2 : v.in_block)) : NULL;
    const ir_expr *ip = v.pairs ? op_add_reduce(&o.reduce, "ip", ir_int(cx, 2)) : NULL;
    const ir_expr *group =
        v.plain.groups == 1 ? ir_int(cx, 0) : ir_floordiv(cx, ob, ir_int(cx, v.plain.out / v.out_block));

    x[0] = o.axis.axis[0];
    x[1] = ir_add(cx, ir_mul(cx, group, ir_int(cx, v.plain.in / v.in_block)), ib);
    w[n++] = ob;
    w[n++] = ib;
    for (int i = 0; i < rank; i++) {
        x[2 + i] = o.at[i];
        w[n++] = o.tap[i];
    }
    if (ii)
        x[2 + rank] = w[n++] = ii;
    w[n++] = oi;
    if (ip) {
        x[2 + rank] = join_pair(cx, ii, ip);
        w[n++] = ip;
    }
    return finish(call, &v, def,
                  sum_up(call, &v, def, &o, te_read(padded, x, call->input[0].n), te_read(in[1], w, n)),
                  op_has_input(call, 2) ? in[2] : NULL, out);
}

static bool is_depthwise(const op_call *call)
{
    packed_conv v;

    return read_packed(call, &v) && v.depthwise;
}

static bool is_direct(const op_call *call)
{
    return !is_depthwise(call);
}

/* The lanes of a vector are channels, which all have the same window. */
static bool depthwise_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    packed_conv v;
    windows o = {.inside = NULL};
    const ir_expr *x[OP_MAX_SPATIAL + 3], *w[OP_MAX_SPATIAL + 2];

    if (!read_packed(call, &v))
        return false;
    int rank = v.plain.window.rank;
    te_tensor *padded = pad_input(call, &v, def, in[0], 0);

    open_spatial(call, &v, &o);
    open_taps(call, &v, &o, 0);
    x[0] = o.axis.axis[0];
    x[1] = w[0] = o.axis.axis[1];
    for (int i = 0; i < rank; i++) {
        x[2 + i] = o.at[i];
        w[1 + i] = o.tap[i];
    }
    x[2 + rank] = w[1 + rank] = o.axis.axis[2 + rank];
    return finish(call, &v, def,
                  sum_up(call, &v, def, &o, te_read(padded, x, rank + 3), te_read(in[1], w, rank + 2)),
                  op_has_input(call, 2) ? in[2] : NULL, out);
}

static const op_impl impls[] = {
    {.name = "conv_packed.direct",
     .version = 1,
     .applies = is_direct,
     .body = direct_body,
     .packs = 1,
     .pack = pack_weights},
    {.name = "conv_packed.depthwise",
     .version = 1,
     .applies = is_depthwise,
     .body = depthwise_body,
     .packs = 1,
     .pack = pack_weights},
};

static const op_info rows[] = {
    {.name = "conv_packed",
     .min_inputs = 2,
     .max_inputs = 3,
     .n_outputs = 1,
     .kind = OP_COMPLEX,
     .relation = packed_relation,
     .impls = impls,
     .n_impls = BASE_COUNT(impls),
     .in_place = -1,
     .doc = "convolution of [n, c / b, spatial, b], or of plain [n, c, spatial], that gives [n, o / block, "
            "spatial, block]; block, and conv's"},
};
const op_family op_conv_packed_family = {rows, BASE_COUNT(rows)};
