/* ops/conv_packed.c -- convolution that reads and writes packed channels, so that layers hand blocks of
 * channels to each other.
 *
 * Inputs X[n, c / b, spatial, b] (or plain: X[n, c, spatial], for the few channels of an image), W[o, c /
 * group, kernel], optional bias B[o]. Output [n, o / block, spatial, block].
 *
 *     P[n, ib, y, x, ii]  = X[n, ib, y, x - pad, ii]   or 0                     only where the last
 *                                                                                 dimension is padded
 *     A[n, ob, y, x, oi]  = sum[ib, ky, kx, ii](P[n, ib, y*s + ky*d - pad, x*s + kx*d, ii] * Wp[ob, ib, ky,
 *         kx, ii, oi] where that row exists)
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
} packed_conv;

/* A block must not reach from one group into the next: such a block would need weights that are mostly zero.
 */
static bool check_blocks(const op_call *c, const packed_conv *v)
{
    const op_conv *p = &v->plain;

    if (v->out_block < 1 || (p->groups * p->out) % v->out_block)
        return op_fail(c, "%lld output channels are no multiple of 'block', %lld",
                       (long long)(p->groups * p->out), (long long)v->out_block);
    if (v->depthwise)
        return (v->packed && v->in_block == v->out_block) ||
               op_fail(c, "one channel per group: the input must be packed by %lld", (long long)v->out_block);
    if (p->groups > 1 && (p->out % v->out_block || p->in % v->in_block))
        return op_fail(c, "groups of %lld to %lld channels are no multiples of the blocks, %lld and %lld",
                       (long long)p->in, (long long)p->out, (long long)v->in_block, (long long)v->out_block);
    return true;
}

/* The convolution as if its input were unpacked, and the blocks. An input with one dimension less is plain:
 * an image. */
static bool read_packed(const op_call *c, packed_conv *v)
{
    op_call plain = *c;
    op_type input[3];

    for (int i = 0; i < c->n_inputs; i++)
        input[i] = c->input[i];
    *v = (packed_conv){
        .packed = input[0].n == input[1].n + 1, .in_block = 1, .out_block = op_int(c, "block", 0)};
    if (v->packed && !op_unpacked_type(c->cx, &c->input[0], &input[0]))
        return op_fail(c, "the input is %s: expected [n, blocks, spatial dimensions..., block]",
                       op_type_text(c->cx, &c->input[0]));
    plain.input = input;
    if (!op_conv_read(&plain, &v->plain))
        return false;
    if (v->packed)
        ir_is_int(c->input[0].dim[c->input[0].n - 1], &v->in_block);
    v->depthwise = v->plain.in == 1 && v->plain.out == 1 && v->plain.groups > 1;
    return check_blocks(c, v);
}

/* The result is packed by 'block' whatever the input is. */
static bool packed_relation(op_call *c)
{
    packed_conv v;

    if (!read_packed(c, &v))
        return false;
    int rank = v.plain.window.rank;
    const ir_expr **dim = base_array(c->cx, const ir_expr *, rank + 3);
    dim[0] = c->input[0].dim[0];
    dim[1] = ir_int(c->cx, v.plain.groups * v.plain.out / v.out_block);
    for (int i = 0; i < rank; i++) {
        dim[2 + i] = op_window_out(c, &v.plain.window, i, c->input[0].dim[2 + i]);
        if (!dim[2 + i])
            return false;
    }
    dim[2 + rank] = ir_int(c->cx, v.out_block);
    c->output[0] = (op_type){c->input[0].dtype, rank + 3, dim};
    return true;
}

/* ---- bodies ---- */

/* block * size + inner; without inner the block is the channel itself, which is so for plain inputs. */
static const ir_expr *join(tec_context *cx, const ir_expr *block, int64_t size, const ir_expr *inner)
{
    return inner ? ir_add(cx, ir_mul(cx, block, ir_int(cx, size)), inner) : block;
}

/* [ob, ib, kernel, ii, oi]; depthwise: [cb, kernel, ci]. An image has no ii: its input channels lie one by
 * one. Blocks were checked to fill the channels (check_blocks), so nothing overshoots. */
static bool pack_weights(const op_call *c, te_def *d, te_tensor *in, te_tensor **out)
{
    packed_conv v;
    op_axes a = {.cx = c->cx};
    const ir_expr *index[OP_MAX_SPATIAL + 2], *ib = NULL, *ii = NULL;
    tec_context *cx = c->cx;

    if (!read_packed(c, &v))
        return false;
    int rank = v.plain.window.rank;
    const ir_expr *ob = op_add_axis(&a, "ob", ir_int(cx, v.plain.groups * v.plain.out / v.out_block));
    if (!v.depthwise)
        ib = op_add_axis(&a, "ib", ir_int(cx, v.plain.in / v.in_block));
    for (int i = 0; i < rank; i++)
        index[2 + i] = op_add_axis(&a, op_numbered(cx, "k", i), ir_int(cx, v.plain.window.kernel[i]));
    if (v.packed && !v.depthwise)
        ii = op_add_axis(&a, "ii", ir_int(cx, v.in_block));
    index[0] = join(cx, ob, v.out_block, op_add_axis(&a, "oi", ir_int(cx, v.out_block)));
    index[1] = v.depthwise ? ir_int(cx, 0) : join(cx, ib, v.in_block, ii);
    *out = te_compute(d, op_stage_name(d, base_format(cx, "%s.weights", c->op->name)), a.axis, a.n,
                      te_read(in, index, 2 + rank));
    te_note(*out, "keep", ir_bool(cx, true));
    return *out != NULL;
}

/* The input with zeros around it in spatial dimensions first..; itself where there are none. Padding in all
 * dimensions is for a depthwise convolution, which reads each element a few times only: it is tested where it
 * is read, and loops are cut where it ends. */
static te_tensor *pad_input(const op_call *c, const packed_conv *v, te_def *d, te_tensor *x, int first)
{
    const op_window *w = &v->plain.window;
    op_axes a = {.cx = c->cx};
    const ir_expr *index[OP_MAX_SPATIAL + 3], *inside = NULL;
    tec_context *cx = c->cx;

    index[0] = op_add_axis(&a, "n", c->input[0].dim[0]);
    index[1] = op_add_axis(&a, "ib", c->input[0].dim[1]);
    for (int i = 0; i < w->rank; i++) {
        const ir_expr *extent = c->input[0].dim[2 + i],
                      *span = op_window_span(c, w, i, c->output[0].dim[2 + i]);
        const ir_expr *p = op_add_axis(&a, op_numbered(cx, "s", i), i < first ? extent : span);

        index[2 + i] = p;
        if (i < first)
            continue;
        inside = ir_all(cx, inside, op_window_inside(c, w, i, p, extent, span));
        index[2 + i] = ir_sub(cx, p, ir_int(cx, w->before[i]));
    }
    if (!inside)
        return x;
    if (v->packed)
        index[2 + w->rank] = op_add_axis(&a, "ii", ir_int(cx, v->in_block));
    const ir_expr *e = te_read(x, index, c->input[0].n);
    ir_role role = d->role;
    d->role = IR_ROLE_PROLOGUE;
    te_tensor *t = te_compute(d, op_stage_name(d, base_format(cx, "%s.padded", c->op->name)), a.axis, a.n,
                              e ? ir_select(cx, inside, e, ir_imm(cx, e->dtype, 0)) : NULL);
    d->role = role;
    if (first > 0)
        te_note(t, "keep", ir_bool(cx, true));
    return t;
}

/* Axes n, ob, spatial; then those of the kernel, and the positions in the padded input. */
typedef struct {
    op_axes axis, reduce;
    const ir_expr *at[OP_MAX_SPATIAL], *tap[OP_MAX_SPATIAL], *inside;
} windows;

/* Opened once for the sums and once for what follows: a stage has axes of its own. */
static void open_spatial(const op_call *c, const packed_conv *v, windows *o)
{
    tec_context *cx = c->cx;

    o->axis.cx = o->reduce.cx = cx;
    op_add_axis(&o->axis, "n", c->output[0].dim[0]);
    op_add_axis(&o->axis, "ob", c->output[0].dim[1]);
    for (int i = 0; i < v->plain.window.rank; i++)
        op_add_axis(&o->axis, op_numbered(cx, "s", i), c->output[0].dim[2 + i]);
    op_add_axis(&o->axis, "oi", ir_int(cx, v->out_block));
}

/* Dimensions before `padded` are read where they exist, the others are padded. `inside` collects the rows
 * that exist. For a kernel of 3 rows with padding 1 and stride 1, row y of the result reads the input rows y
 * - 1, y and y + 1, and `inside` is 1 <= y + k && y + k < h + 1, which the first and the last row of the
 * result do not meet for one k each. */
static void open_taps(const op_call *c, const packed_conv *v, windows *o, int padded)
{
    const op_window *w = &v->plain.window;
    tec_context *cx = c->cx;

    for (int i = 0; i < w->rank; i++) {
        o->tap[i] = op_add_reduce(&o->reduce, op_numbered(cx, "k", i), ir_int(cx, w->kernel[i]));
        o->at[i] = op_window_at(cx, w, i, o->axis.axis[2 + i], o->tap[i]);
        if (i >= padded)
            continue;
        const ir_expr *span = op_window_span(c, w, i, c->output[0].dim[2 + i]);
        o->inside = ir_all(cx, o->inside, op_window_inside(c, w, i, o->at[i], c->input[0].dim[2 + i], span));
        o->at[i] = ir_sub(cx, o->at[i], ir_int(cx, w->before[i]));
    }
}

/* The sum over the kernel and the input channels, of products in the wider type. NULL goes through: an error
 * that was made before. */
static te_tensor *sum_up(const op_call *c, const packed_conv *v, te_def *d, const windows *o,
                         const ir_expr *x, const ir_expr *w)
{
    tec_context *cx = c->cx;
    const ir_expr *product =
        x && w ? ir_mul(cx, ir_cast(cx, v->plain.sum, x), ir_cast(cx, v->plain.sum, w)) : NULL;
    const ir_expr *sum = te_reduce_where(cx, "sum", product, o->reduce.axis, o->reduce.n, o->inside);

    return te_compute(d, op_stage_name(d, base_format(cx, "%s.acc", c->op->name)), o->axis.axis, o->axis.n,
                      sum);
}

/* Bias and conversion to the result's type, in a stage of its own behind the sums, where fusion adds what
 * follows. */
static bool finish(const op_call *c, const packed_conv *v, te_def *d, te_tensor *sums, te_tensor *bias,
                   te_tensor **out)
{
    windows o = {.inside = NULL};
    tec_context *cx = c->cx;

    if (!sums)
        return false;
    open_spatial(c, v, &o);
    const ir_expr *e = te_read(sums, o.axis.axis, o.axis.n),
                  *channel = join(cx, o.axis.axis[1], v->out_block, o.axis.axis[o.axis.n - 1]);
    if (bias)
        e = ir_add(cx, e, ir_cast(cx, v->plain.sum, te_read(bias, &channel, 1)));
    ir_role role = d->role;
    d->role = IR_ROLE_EPILOGUE;
    *out = te_compute(d, op_stage_name(d, c->op->name), o.axis.axis, o.axis.n,
                      ir_cast(cx, c->output[0].dtype, e));
    d->role = role;
    return *out != NULL;
}

/* Input channels of block ib at the window's place, times weights [ob, ib, kernel, ii, oi]. Group g reads the
 * blocks from g * (in / in_block) on, and output block ob belongs to group ob / (out / out_block), since
 * blocks do not cross groups. */
static bool direct_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    packed_conv v;
    windows o = {.inside = NULL};
    const ir_expr *x[OP_MAX_SPATIAL + 3], *w[OP_MAX_SPATIAL + 4];
    tec_context *cx = c->cx;

    if (!read_packed(c, &v))
        return false;
    int rank = v.plain.window.rank, n = 0;
    te_tensor *padded = pad_input(c, &v, d, in[0], rank - 1);

    open_spatial(c, &v, &o);
    const ir_expr *ob = o.axis.axis[1], *oi = o.axis.axis[2 + rank];
    const ir_expr *ib = op_add_reduce(&o.reduce, "ib", ir_int(cx, v.plain.in / v.in_block));
    open_taps(c, &v, &o, rank - 1);
    const ir_expr *ii = v.packed ? op_add_reduce(&o.reduce, "ii", ir_int(cx, v.in_block)) : NULL;
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
    return finish(c, &v, d, sum_up(c, &v, d, &o, te_read(padded, x, c->input[0].n), te_read(in[1], w, n)),
                  op_has_input(c, 2) ? in[2] : NULL, out);
}

static bool is_depthwise(const op_call *c)
{
    packed_conv v;

    return read_packed(c, &v) && v.depthwise;
}

static bool is_direct(const op_call *c)
{
    return !is_depthwise(c);
}

/* The lanes of a vector are channels, which all have the same window. */
static bool depthwise_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    packed_conv v;
    windows o = {.inside = NULL};
    const ir_expr *x[OP_MAX_SPATIAL + 3], *w[OP_MAX_SPATIAL + 2];

    if (!read_packed(c, &v))
        return false;
    int rank = v.plain.window.rank;
    te_tensor *padded = pad_input(c, &v, d, in[0], 0);

    open_spatial(c, &v, &o);
    open_taps(c, &v, &o, 0);
    x[0] = o.axis.axis[0];
    x[1] = w[0] = o.axis.axis[1];
    for (int i = 0; i < rank; i++) {
        x[2 + i] = o.at[i];
        w[1 + i] = o.tap[i];
    }
    x[2 + rank] = w[1 + rank] = o.axis.axis[2 + rank];
    return finish(c, &v, d, sum_up(c, &v, d, &o, te_read(padded, x, rank + 3), te_read(in[1], w, rank + 2)),
                  op_has_input(c, 2) ? in[2] : NULL, out);
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
