/* graph/layout.c -- keeps channels packed between the operators that gain from it.
 *
 *     conv(x, w, b)                 =>  unpack(conv_packed(pack(x), w, b))
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
    base_map forms; /* new plain value -> form *: the same, packed */
} state;

enum { IMAGE_CHANNELS = 4 }; /* up to here an input is read plain */

/* value packed, if that was made in this body or one around it. A form that was made in a region is no use
 * behind it: on the path through the other region it does not exist. */
static graph_value *packed_form(const graph_rewrite *rw, const graph_value *value)
{
    const state *st = rw->user;
    const form *f = base_map_get(&st->forms, value);

    for (const graph_body *b = rw->body; f && b; b = b->outer)
        if (b == f->body)
            return f->packed;
    return NULL;
}

/* At most one form for a value: one with another block would replace it, so callers ask first. */
static void note_form(graph_rewrite *rw, const graph_value *plain, graph_value *packed)
{
    state *st = rw->user;
    form *f = base_new(rw->cx, form);

    *f = (form){packed, rw->body};
    base_map_put(rw->cx, &st->forms, plain, f);
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

/* Packs the input unless it is an image with its few channels; the weights are packed later, by the
 * implementation. */
static bool visit_conv(graph_rewrite *rw, const graph_node *node)
{
    channels c;
    graph_value *in[3] = {NULL};

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

    for (int k = 0; k < node->n_in; k++) {
        graph_value *p = node->in[k] ? packed_form(rw, graph_new_value(rw, node->in[k])) : NULL;

        if (p && node->in[k]->type.n == node->out[0]->type.n)
            block = block_of(p);
    }
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

graph_module *graph_layout(graph_module *module, const target *machine)
{
    state st = {.t = machine};

    return graph_rewrite_module(module, visit, NULL, &st);
}
