/* graph/layout.c -- keeps channels packed between the operators that gain from it.
 *
 *     conv(x, w, b)                 =>  unpack(conv_packed(pack(x), w, b))
 *     conv(x, w) of single pixels   =>  reshape(matmul(w, x))       where x is not packed already,
 *                                         and nobody wants the result packed
 *     relu(reshape(matmul(w, x)))   =>  reshape(relu(matmul(w, x))) so that the product ends with it
 *     relu(unpack(x))               =>  unpack(relu(x))             element-wise: operands of one shape,
 *                                         all packed or scalars
 *     max_pool(unpack(x))           =>  unpack(max_pool(x))         average_pool,
 *                                         and reductions over spatial dimensions, too
 *     concat(unpack(x), unpack(y))  =>  unpack(concat(x, y))        of channels
 *     pack(unpack(x))               =>  x                           equal blocks
 *
 * Values go through the body as they are, plain; the pass remembers which of them are `unpack` of what, and
 * nodes that nobody needs any more are left to graph_remove_dead. A block is one vector of the target. The
 * input of a convolution with few channels, an image, stays plain; other channels that are no multiple of the
 * block keep a convolution as it is.
 */
#include "graph/pass.h"
#include "graph/rewrite.h"
#include "ir/walk.h"

typedef struct {
    graph_value *packed;
    const graph_body *body; /* where it is made */
} form;

typedef struct {
    const target *t;
    base_map forms;    /* new plain value -> form *: the same, packed */
    base_map products; /* ... -> form *: the same, as a product [n, groups, channels, pixels] */
    base_map wanted; /* old value -> itself: a convolution reads it packed, perhaps behind other operators */
} state;

enum { IMAGE_CHANNELS = 4 }; /* up to here an input is read plain */

/* The form of value, if that was made in this body or one around it. A form that was made in a region is no
 * use behind it: on the path through the other region it does not exist. */
static graph_value *find_form(const graph_rewrite *rw, const base_map *forms, const graph_value *value)
{
    const form *f = base_map_get(forms, value);

    for (const graph_body *b = rw->body; f && b; b = b->outer)
        if (b == f->body)
            return f->packed;
    return NULL;
}

static graph_value *packed_form(const graph_rewrite *rw, const graph_value *value)
{
    return find_form(rw, &((const state *)rw->user)->forms, value);
}

static void put_form(graph_rewrite *rw, base_map *forms, const graph_value *plain, graph_value *packed)
{
    form *f = base_new(rw->cx, form);

    *f = (form){packed, rw->body};
    base_map_put(rw->cx, forms, plain, f);
}

/* At most one form for a value: one with another block would replace it, so callers ask first. */
static void note_form(graph_rewrite *rw, const graph_value *plain, graph_value *packed)
{
    put_form(rw, &((state *)rw->user)->forms, plain, packed);
}

/* The last extent is the block: [batch, channels / block, ..., block]. */
static int64_t block_of(const graph_value *packed)
{
    int64_t block = 0;

    ir_is_int(packed->type.dim[packed->type.n - 1], &block);
    return block;
}

/* `node` is replaced by what `packed` is, unpacked. */
static bool replace_by(graph_rewrite *rw, const graph_node *node, graph_value *packed)
{
    graph_value *plain = packed
                             ? graph_emit(rw, node, "unpack_channels",
                                          base_format(rw->cx, "%s.unpack", node->name), &packed, 1, NULL, 0)
                             : NULL;

    if (!plain)
        return false;
    note_form(rw, plain, packed);
    graph_replace(rw, node->out[0], plain);
    return true;
}

/* Packs input, or takes the form that it has: then pack(unpack(p)) is p. A form with another block is left as
 * it is beside the new one, which is not remembered. */
static graph_value *pack(graph_rewrite *rw, const graph_node *node, graph_value *input, int64_t block)
{
    graph_value *known = packed_form(rw, input);
    op_attr attr = op_attr_int("block", block);

    if (known && block_of(known) == block)
        return known;
    graph_value *packed = graph_emit(
        rw, node, "pack_channels", base_format(rw->cx, "%s.pack_channels", node->name), &input, 1, &attr, 1);
    if (packed && !known)
        note_form(rw, input, packed);
    return packed;
}

/* The node's attributes and one more. */
static op_attr *with_attr(graph_rewrite *rw, const graph_node *node, op_attr more)
{
    op_attr *attr = base_array(rw->cx, op_attr, node->n_attrs + 1);

    for (int i = 0; i < node->n_attrs; i++)
        attr[i] = node->attr[i];
    attr[node->n_attrs] = more;
    return attr;
}

/* ---- convolutions ---- */

typedef struct {
    int64_t in, out, groups, block;
} channels;

/* Whether the convolution gains from packed channels. Grouped convolutions gain where a block lies within one
 * group on both sides, or where each channel is a group of its own (depthwise) and lanes are channels. For 8
 * lanes:
 *
 *      in 64, out 32, 1 group               packed
 *      in 3,  out 32, 1 group               packed result, plain input: an image
 *      in 12, out 32, 1 group               plain: 12 is not a multiple of 8
 *      in 64, out 64, 64 groups             depthwise: packed
 *      in 64, out 64, 16 groups of 4        plain: one block would mix two groups
 */
static bool read_channels(const graph_rewrite *rw, const graph_node *node, channels *self)
{
    const state *st = rw->user;
    const op_type *x = &node->in[0]->type, *w = &node->in[1]->type;
    const op_attr *group = graph_attribute(node, "group");
    int64_t per_group;

    self->groups = group ? group->i : 1;
    self->block = target_lanes(st->t, BASE_F32); /* 16-bit floats are summed in float32 */
    if (!base_is_float(x->dtype) || x->dtype.bits > 32 || self->block < 2 ||
        !ir_is_int(x->dim[1], &self->in) || !ir_is_int(w->dim[0], &self->out) ||
        !ir_is_int(w->dim[1], &per_group) || self->out % self->block)
        return false;
    if (self->groups == 1 && self->in <= IMAGE_CHANNELS)
        return true;
    if (self->in % self->block)
        return false;
    bool depthwise = per_group == 1 && self->out == self->groups;
    return self->groups == 1 || depthwise ||
           (per_group % self->block == 0 && self->out / self->groups % self->block == 0);
}

/* ---- convolutions of single pixels ---- */

static bool all_are(const op_attr *attr, int64_t value)
{
    for (int i = 0; attr && i < attr->n; i++)
        if (attr->ints[i] != value)
            return false;
    return true;
}

/* A kernel of one pixel, with step 1 and no padding: then each group is a product of matrices, the weights
 * [out, in] times the pixels [in, height * width], which needs no packed channels. Groups of few channels are
 * too narrow for it. */
static bool is_pointwise(const graph_rewrite *rw, const graph_node *node, channels *self)
{
    enum { FEW = 8 };
    const state *st = rw->user;
    const op_type *x = &node->in[0]->type, *w = &node->in[1]->type;
    const op_attr *group = graph_attribute(node, "group"), *automatic = graph_attribute(node, "auto_pad");
    int64_t per_group, extent;

    self->groups = group ? group->i : 1;
    if (!target_offers(st->t, TARGET_HOST) || !base_is_float(x->dtype) || automatic ||
        !ir_is_int(w->dim[0], &self->out) || !ir_is_int(w->dim[1], &per_group))
        return false;
    self->in = self->groups * per_group;
    for (int i = 2; i < x->n; i++)
        if (!ir_is_value(w->dim[i], 1) || !ir_is_int(x->dim[i], &extent))
            return false;
    return all_are(graph_attribute(node, "strides"), 1) && all_are(graph_attribute(node, "pads"), 0) &&
           per_group >= FEW && self->out / self->groups >= FEW;
}

static graph_value *reshaped(graph_rewrite *rw, const graph_node *node, const char *what, graph_value *value,
                             const ir_expr *const *dim, int n)
{
    op_attr shape = op_attr_exprs(rw->cx, "shape", dim, n);

    return value ? graph_emit(rw, node, "reshape", base_format(rw->cx, "%s.%s", node->name, what), &value, 1,
                              &shape, 1)
                 : NULL;
}

/* `node` is replaced by what the product is in the node's own shape. */
static bool replace_by_product(graph_rewrite *rw, const graph_node *node, graph_value *product)
{
    state *st = rw->user;
    const op_type *out = &node->out[0]->type;
    graph_value *plain = reshaped(rw, node, "planes", product, out->dim, out->n);

    if (!plain)
        return false;
    put_form(rw, &st->products, plain, product);
    graph_replace(rw, node->out[0], plain);
    return true;
}

/* reshape(matmul(weights [groups, out, in], pixels [n, groups, in, all]) + bias [groups, out, 1]). */
static bool make_product(graph_rewrite *rw, const graph_node *node, const channels *self)
{
    tec_context *cx = rw->cx;
    const op_type *x = &node->in[0]->type;
    const ir_expr *groups = ir_int(cx, self->groups), *out = ir_int(cx, self->out / self->groups),
                  *in = ir_int(cx, self->in / self->groups), *pixels = ir_int(cx, 1);

    for (int i = 2; i < x->n; i++)
        pixels = ir_mul(cx, pixels, x->dim[i]);
    graph_value *of[] = {reshaped(rw, node, "weights", graph_new_value(rw, node->in[1]),
                                  (const ir_expr *[]){groups, out, in}, 3),
                         reshaped(rw, node, "pixels", graph_new_value(rw, node->in[0]),
                                  (const ir_expr *[]){x->dim[0], groups, in, pixels}, 4)};
    graph_value *y = of[0] && of[1] ? graph_emit(rw, node, "matmul", node->name, of, 2, NULL, 0) : NULL;
    if (y && node->n_in > 2 && node->in[2]) {
        graph_value *sum[] = {y, reshaped(rw, node, "bias", graph_new_value(rw, node->in[2]),
                                          (const ir_expr *[]){groups, out, ir_int(cx, 1)}, 3)};

        y = sum[1] ? graph_emit(rw, node, "add", base_format(cx, "%s.biased", node->name), sum, 2, NULL, 0)
                   : NULL;
    }
    return replace_by_product(rw, node, y);
}

/* An operand beside a product: as it is where it has one element, otherwise in the shape of the product, or
 * of its channels where it has a value for each; NULL: it has another shape. */
static graph_value *product_operand(graph_rewrite *rw, const graph_node *node, graph_value *value,
                                    const op_type *product)
{
    const state *st = rw->user;
    const op_type *out = &node->out[0]->type;
    graph_value *known = value ? find_form(rw, &st->products, value) : NULL;
    const ir_expr *per[] = {product->dim[1], product->dim[2], ir_int(rw->cx, 1)};
    bool whole = true, per_channel = true;

    if (!value || value->type.n == 0)
        return value;
    for (int i = 0; i < out->n; i++) {
        int d = i - (out->n - value->type.n);
        const ir_expr *dim = d >= 0 && value->type.n <= out->n ? value->type.dim[d] : NULL;

        whole = whole && dim && ir_same(dim, out->dim[i]);
        per_channel = per_channel && (i == 0 ? !dim || ir_is_value(dim, 1)
                                             : dim && ir_same(dim, i == 1 ? out->dim[1] : ir_int(rw->cx, 1)));
    }
    if (whole && known && ir_same(known->type.dim[1], product->dim[1]))
        return known;
    return whole         ? reshaped(rw, node, "as_product", value, product->dim, product->n)
           : per_channel ? reshaped(rw, node, "per_channel", value, per, 3)
                         : NULL;
}

static bool has_same_shape(const op_type *left, const op_type *right)
{
    for (int i = 0; i < left->n && left->n == right->n; i++)
        if (!ir_same(left->dim[i], right->dim[i]))
            return false;
    return left->n == right->n;
}

/* An element-wise operator of a product works on the product, if its other operands can be brought to that
 * shape: behind the reshape it would be a kernel of its own. *done is false where the node has to stay. */
static bool visit_product(graph_rewrite *rw, const graph_node *node, bool *done)
{
    const state *st = rw->user;
    const op_type *product = NULL;
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);

    *done = false;
    for (int k = 0; k < node->n_in && !product; k++) {
        const graph_value *known =
            node->in[k] ? find_form(rw, &st->products, graph_new_value(rw, node->in[k])) : NULL;

        product = known && has_same_shape(&node->in[k]->type, &node->out[0]->type) ? &known->type : NULL;
    }
    for (int k = 0; k < node->n_in; k++) {
        in[k] = product ? product_operand(rw, node, graph_new_value(rw, node->in[k]), product) : NULL;
        if (!in[k])
            return !base_failed(rw->cx);
    }
    *done = true;
    return replace_by_product(
        rw, node,
        graph_emit(rw, node, node->op->name, node->name, in, node->n_in, node->attr, node->n_attrs));
}

/* Packs the input unless it is an image with its few channels; the weights are packed later, by the
 * implementation. */
static bool visit_conv(graph_rewrite *rw, const graph_node *node)
{
    channels c;
    graph_value *in[3] = {NULL};

    if (!packed_form(rw, graph_new_value(rw, node->in[0])) &&
        !base_map_get(&((const state *)rw->user)->wanted, node->out[0]) && is_pointwise(rw, node, &c))
        return make_product(rw, node, &c);
    if (!read_channels(rw, node, &c))
        return graph_keep(rw, node);
    for (int k = 0; k < node->n_in; k++)
        in[k] = graph_new_value(rw, node->in[k]);
    if (c.groups > 1 || c.in > IMAGE_CHANNELS)
        in[0] = pack(rw, node, in[0], c.block);
    if (!in[0])
        return false;
    op_attr *attr = with_attr(rw, node, op_attr_int("block", c.block));
    return replace_by(
        rw, node, graph_emit(rw, node, "conv_packed", node->name, in, node->n_in, attr, node->n_attrs + 1));
}

/* ---- what goes through ---- */

/* The packed forms of all operands, of one block; NULL: not all have one. */
static graph_value **packed_operands(graph_rewrite *rw, const graph_node *node)
{
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);

    for (int k = 0; k < node->n_in; k++) {
        in[k] = packed_form(rw, graph_new_value(rw, node->in[k]));
        if (!in[k] || block_of(in[k]) != block_of(in[0]))
            return NULL;
    }
    return node->n_in > 0 ? in : NULL;
}

/* [c, 1, ...] or [1, c, 1, ...] beside operands of rank count, as [1, c, 1, ...] packed; NULL: it is none
 * such. A bias [32, 1, 1] beside [n, 32, h, w] lacks the first extent and gets it by a reshape; [1, 1, h, w]
 * would need a value for each pixel and is refused, since it has no channels to pack. */
static graph_value *pack_per_channel(graph_rewrite *rw, const graph_node *node, graph_value *value,
                                     const ir_expr *extent, int count, int64_t block)
{
    const ir_expr **dim = base_array(rw->cx, const ir_expr *, count);
    int missing = count - value->type.n;

    if (missing < 0 || missing > 1)
        return NULL;
    for (int i = 0; i < count; i++) {
        dim[i] = i < missing ? ir_int(rw->cx, 1) : value->type.dim[i - missing];
        if (!ir_same(dim[i], i == 1 ? extent : ir_int(rw->cx, 1)))
            return NULL;
    }
    op_attr shape = op_attr_exprs(rw->cx, "shape", dim, count);
    if (missing)
        value = graph_emit(rw, node, "reshape", base_format(rw->cx, "%s.per_channel", node->name), &value, 1,
                           &shape, 1);
    return value ? pack(rw, node, value, block) : NULL;
}

/* An operand of an element-wise operator: as it is where it has one element, otherwise packed; NULL: it
 * cannot be. */
static graph_value *packed_operand(graph_rewrite *rw, const graph_node *node, graph_value *value,
                                   int64_t block)
{
    const op_type *out = &node->out[0]->type;
    graph_value *p = value ? packed_form(rw, value) : NULL;

    if (!value || value->type.n == 0)
        return value;
    if (p && block_of(p) == block && value->type.n == out->n && ir_same(value->type.dim[1], out->dim[1]))
        return p;
    return pack_per_channel(rw, node, value, out->dim[1], out->n, block);
}

/* With one packed operand, an element-wise operator works on packed values: other operands are packed too, if
 * they can be. Otherwise the node stays, and reads its operands unpacked. */
static bool visit_elementwise(graph_rewrite *rw, const graph_node *node)
{
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);
    int64_t block = 0;
    bool done;

    for (int k = 0; k < node->n_in; k++) {
        graph_value *p = node->in[k] ? packed_form(rw, graph_new_value(rw, node->in[k])) : NULL;

        if (p && node->in[k]->type.n == node->out[0]->type.n)
            block = block_of(p);
    }
    if (!block && (!visit_product(rw, node, &done) || done))
        return done;
    for (int k = 0; k < node->n_in; k++) {
        in[k] = block ? packed_operand(rw, node, graph_new_value(rw, node->in[k]), block) : NULL;
        if (!in[k])
            return graph_keep(rw, node);
    }
    return replace_by(
        rw, node,
        graph_emit(rw, node, node->op->name, node->name, in, node->n_in, node->attr, node->n_attrs));
}

/* Windows run over the spatial dimensions only, so a block of channels goes through as it is. The attribute
 * tells the operator that the last dimension is no spatial one. */
static bool visit_pool(graph_rewrite *rw, const graph_node *node)
{
    graph_value **in = packed_operands(rw, node);

    if (!in)
        return graph_keep(rw, node);
    op_attr *attr = with_attr(rw, node, op_attr_int("packed", 1));
    return replace_by(rw, node,
                      graph_emit(rw, node, node->op->name, node->name, in, 1, attr, node->n_attrs + 1));
}

/* Reductions over spatial dimensions that keep them as 1. Without keepdims the rank would shrink, and what
 * unpacks the result expects the channels at 1 and the block at the end. */
static bool visit_reduction(graph_rewrite *rw, const graph_node *node)
{
    const op_attr *axes = graph_attribute(node, "axes"), *keep = graph_attribute(node, "keepdims");
    graph_value **in = node->n_in == 1 ? packed_operands(rw, node) : NULL;
    bool spatial = in && axes && axes->kind == OP_ATTR_INTS && (!keep || keep->i);

    for (int i = 0; spatial && i < axes->n; i++)
        spatial = axes->ints[i] >= 2;
    if (spatial && BASE_PLANT_ON(rw->cx, layout_axes))
        ((op_attr *)(uintptr_t)axes)->n--;
    return spatial ? replace_by(
                         rw, node,
                         graph_emit(rw, node, node->op->name, node->name, in, 1, node->attr, node->n_attrs))
                   : graph_keep(rw, node);
}

/* Concatenation of channels is one of blocks, where each operand's channels are whole blocks: operands have
 * packed forms only then. */
static bool visit_concat(graph_rewrite *rw, const graph_node *node)
{
    const op_attr *axis = graph_attribute(node, "axis");
    graph_value **in = axis && axis->i == 1 ? packed_operands(rw, node) : NULL;

    return in ? replace_by(
                    rw, node,
                    graph_emit(rw, node, "concat", node->name, in, node->n_in, node->attr, node->n_attrs))
              : graph_keep(rw, node);
}

/* ---- the pass ---- */

static const struct {
    const char *op;
    bool (*visit)(graph_rewrite *rw, const graph_node *node);
} rows[] = {
    {"conv", visit_conv},
    {"max_pool", visit_pool},
    {"average_pool", visit_pool},
    {"concat", visit_concat},
    {"reduce_mean", visit_reduction},
    {"reduce_max", visit_reduction},
    {"reduce_sum", visit_reduction},
};

static bool visit(graph_rewrite *rw, const graph_node *node)
{
    for (int i = 0; node->kind == GRAPH_OP && i < BASE_COUNT(rows); i++)
        if (base_same(node->op->name, rows[i].op))
            return rows[i].visit(rw, node);
    if (node->kind == GRAPH_OP && node->op->scalar && node->n_in > 0)
        return visit_elementwise(rw, node);
    return graph_keep(rw, node);
}

static bool lets_channels_through(const graph_node *node)
{
    for (int i = 0; i < BASE_COUNT(rows); i++)
        if (base_same(node->op->name, rows[i].op))
            return rows[i].visit != visit_conv;
    return node->op->scalar;
}

/* Finds what convolutions want packed, from the last node to the first: what goes through wants its operands
 * as its result is wanted. */
static void find_wanted(graph_rewrite *rw, const graph_body *body)
{
    state *st = rw->user;

    for (int i = body->nodes.n - 1; i >= 0; i--) {
        const graph_node *node = body->nodes.at[i];
        bool is_conv = node->kind == GRAPH_OP && base_same(node->op->name, "conv");
        channels c;

        if (node->kind != GRAPH_OP || node->n_out != 1)
            continue;
        bool wanted = base_map_get(&st->wanted, node->out[0]) != NULL;
        if (is_conv ? read_channels(rw, node, &c) && (wanted || !is_pointwise(rw, node, &c))
                    : wanted && lets_channels_through(node))
            for (int k = 0; k < (is_conv ? 1 : node->n_in); k++)
                if (node->in[k])
                    base_map_put(rw->cx, &st->wanted, node->in[k], node->in[k]);
    }
}

graph_module *graph_layout(graph_module *module, const target *machine)
{
    state st = {.t = machine};

    return graph_rewrite_module(module, visit, find_wanted, &st);
}
