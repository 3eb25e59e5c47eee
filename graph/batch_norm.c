/* graph/batch_norm.c -- folds batch normalisation into the convolution before it.
 *
 *     y = batch_norm(conv(x, w, b), gamma, beta, mean, var)
 *  => s = gamma / sqrt(var + epsilon)
 *     y = conv(x, w * s[o, 1, ...], (b - mean) * s + beta)
 *
 * where the convolution has no other reader and all parameters depend on constants alone; otherwise y = x *
 * s[c, 1, ...] + (beta - mean * s)[c, 1, ...]. The arithmetic on parameters is left as nodes, which constant
 * folding computes, together with what parameters are computed by (a ConstantOfShape, say).
 */
#include "graph/pass.h"
#include "graph/rewrite.h"

typedef struct {
    base_map uses;
    base_map known; /* old value -> itself: it depends on constants alone */
} state;

/* Uses are counted in the old graph: in the new one, readers that were not visited yet would be missing. */
static void prepare(graph_rewrite *rw, const graph_body *old)
{
    state *st = rw->user;

    graph_count_uses(rw->cx, old, &st->uses);
}

/* [c] as [c, 1, ... 1] with `after` ones. NULL in, NULL out, as for all helpers here: an error made before
 * shows at the end of the chain. */
static graph_value *spread(graph_rewrite *rw, const graph_node *at, graph_value *value, int after)
{
    if (!value)
        return NULL;
    const ir_expr **dim = base_array(rw->cx, const ir_expr *, after + 1);

    dim[0] = value->type.dim[0];
    for (int i = 0; i < after; i++)
        dim[1 + i] = ir_int(rw->cx, 1);
    op_attr shape = op_attr_exprs(rw->cx, "shape", dim, after + 1);
    return graph_emit(rw, at, "reshape", base_format(rw->cx, "%s.spread", at->name), &value, 1, &shape, 1);
}

/* A node for two operands; NULL where one of them could not be made. */
static graph_value *binary(graph_rewrite *rw, const graph_node *at, const char *op, graph_value *left,
                           graph_value *right)
{
    return left && right ? graph_emit(rw, at, op, base_format(rw->cx, "%s.%s", at->name, op),
                                      (graph_value *[]){left, right}, 2, NULL, 0)
                         : NULL;
}

/* A constant scalar of the tensor's own type, so that no cast appears in the graph. */
static graph_value *float_constant(graph_rewrite *rw, base_dtype dtype, double value)
{
    op_constant *constant = base_new(rw->cx, op_constant);
    double *data = base_new(rw->cx, double);

    *constant = (op_constant){.type = {dtype, 0, NULL}, .data = data, .bytes = base_dtype_bytes(dtype)};
    if (dtype.code == kDLBfloat)
        *(uint16_t *)(void *)data = base_double_to_bfloat(value);
    else if (dtype.bits == 16)
        *(uint16_t *)(void *)data = base_double_to_half(value);
    else if (dtype.bits == 32)
        *(float *)(void *)data = (float)value;
    else
        *data = value;
    return graph_constant(rw->function, NULL, constant);
}

/* gamma / sqrt(var + epsilon) */
static graph_value *scale(graph_rewrite *rw, const graph_node *bn, graph_value *const *in)
{
    op_call c;
    graph_call(rw->from, bn, NULL, &c);
    graph_value *var =
        binary(rw, bn, "add", in[4], float_constant(rw, in[4]->type.dtype, op_float(&c, "epsilon", 1e-5)));
    graph_value *root =
        var ? graph_emit(rw, bn, "sqrt", base_format(rw->cx, "%s.sqrt", bn->name), &var, 1, NULL, 0) : NULL;

    return binary(rw, bn, "div", in[1], root);
}

/* The convolution with scaled weights and a bias of its own; a convolution without bias is treated as one
 * with bias 0. The normalisation's result becomes the convolution's. With one channel, gamma = 2, beta = 1,
 * mean = 3, var + epsilon = 4 and bias 5:
 *
 *     s = 2 / 2 = 1            w' = w * 1            b' = (5 - 3) * 1 + 1 = 3
 *     before: ((w*x + 5) - 3) / 2 * 2 + 1            after: w*x + 3
 *
 * The old convolution stays in the new body without a reader; graph_remove_dead drops it. Were there another
 * reader, both would run: twice the work. */
static bool into_conv(graph_rewrite *rw, const graph_node *bn, const graph_node *conv, graph_value *const *in)
{
    graph_value *s = scale(rw, bn, in), *bias = conv->n_in > 2 ? conv->in[2] : NULL,
                *operand[3] = {conv->in[0]};

    if (!s)
        return false;
    operand[1] = binary(rw, bn, "mul", conv->in[1], spread(rw, bn, s, conv->in[1]->type.n - 1));
    graph_value *shift = bias
                             ? binary(rw, bn, "sub", bias, in[3])
                             : graph_emit(rw, bn, BASE_PLANT_ON(rw->cx, batch_norm_mean) ? "identity" : "neg",
                                          base_format(rw->cx, "%s.neg", bn->name), &in[3], 1, NULL, 0);
    operand[2] = binary(rw, bn, "add", binary(rw, bn, "mul", shift, s), in[2]);
    if (!operand[1] || !operand[2])
        return false;
    graph_value *y = graph_emit(rw, conv, conv->op->name, conv->name, operand, 3, conv->attr, conv->n_attrs);
    if (y)
        graph_replace(rw, bn->out[0], y);
    return y != NULL;
}

/* Without a convolution to take it up: two element-wise nodes, which fuse with what stands around. Operand 0
 * has shape [batch, channels, ...]: a channel's number is spread over all dimensions behind. */
static bool into_arithmetic(graph_rewrite *rw, const graph_node *bn, graph_value *const *in)
{
    int after = in[0]->type.n - 2;
    graph_value *s = scale(rw, bn, in),
                *shift = binary(rw, bn, "sub", in[2], binary(rw, bn, "mul", in[3], s));
    graph_value *y = binary(rw, bn, "add", binary(rw, bn, "mul", in[0], spread(rw, bn, s, after)),
                            spread(rw, bn, shift, after));

    if (y)
        graph_replace(rw, bn->out[0], y);
    return y != NULL;
}

static bool is_known(const state *st, const graph_value *value)
{
    return value->constant || base_map_get(&st->known, value);
}

/* Notes the results of an operator whose operands are known; nodes come in the order of their dependences. A
 * symbol in an extent is the run's. */
static void note_known(graph_rewrite *rw, const graph_node *node)
{
    state *st = rw->user;
    bool known = node->kind == GRAPH_OP;
    int64_t extent;

    for (int k = 0; k < node->n_in && known; k++)
        known = !node->in[k] || is_known(st, node->in[k]);
    for (int k = 0; k < node->n_out && known; k++) {
        for (int d = 0; d < node->out[k]->type.n && known; d++)
            known = ir_is_int(node->out[k]->type.dim[d], &extent);
        if (known)
            base_map_put(rw->cx, &st->known, node->out[k], node->out[k]);
    }
}

/* Rewrites a batch normalisation with constant parameters. A convolution whose result somebody else reads
 * must stay as it is: then the normalisation becomes a multiplication and an addition. */
static bool visit(graph_rewrite *rw, const graph_node *node)
{
    state *st = rw->user;
    graph_value *in[5];

    note_known(rw, node);
    if (node->kind != GRAPH_OP || !base_same(node->op->name, "batch_norm") || node->n_out != 1)
        return graph_keep(rw, node);
    for (int k = 0; k < 5; k++)
        in[k] = graph_new_value(rw, node->in[k]);
    for (int k = 1; k < 5; k++)
        if (!is_known(st, node->in[k]))
            return graph_keep(rw, node);
    const graph_node *conv = in[0]->node, *old = node->in[0]->node;
    if (conv && conv->kind == GRAPH_OP && base_same(conv->op->name, "conv") && old && old->kind == GRAPH_OP &&
        base_same(old->op->name, "conv") && is_known(st, old->in[1]) &&
        graph_uses(&st->uses, node->in[0]) == 1)
        return into_conv(rw, node, conv, in);
    return into_arithmetic(rw, node, in);
}

graph_module *graph_fold_batch_norm(graph_module *module, const target *machine)
{
    state st = {.uses = {0}};

    (void)machine;
    return graph_rewrite_module(module, visit, prepare, &st);
}
