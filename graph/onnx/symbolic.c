/* graph/onnx/symbolic.c -- Split, Pad and Expand by sizes that are expressions over symbols, or numbers of
 * the run.
 *
 * A Split of n rows in halves, and a Pad of m columns to a multiple of 4:
 *
 *     sizes = [n / 2, n - n / 2]      x[0 : n/2], x[n/2 : n]                 both within x for each n
 *     pads  = [0, 0, 0, -m mod 4]     concat(x, zeros of [n, -m mod 4])
 *
 * What ONNX demands of the sizes and cannot be proven becomes a condition that is checked when the model
 * runs: the sizes add up to the extent, none is negative, and no more is cropped than is there.
 */
#include "graph/onnx/compose.h"
#include "graph/scope.h"
#include "ir/reason/facts.h"
#include "ir/text.h"

static const ir_facts *facts_here(const onnx_node *node)
{
    return graph_facts_in(node->im->m, node->im->f->body);
}

void onnx_demand(onnx_node *node, const ir_expr *condition)
{
    if (graph_rules_out(node->im->m, node->im->f->body, condition))
        onnx_wrong(node, "needs %s, which what stands before rules out: the model could never run",
                   ir_expr_text(node->cx, condition));
    else if (!ir_prove(facts_here(node), condition))
        graph_need_in(node->im->m, node->im->f->body, condition, NULL);
}

/* ---- split ---- */

/* Part k of n_out equal ones. Of an extent that they do not divide, the last part is smaller; before opset 18
 * there is no such extent. */
static const ir_expr *equal_part(onnx_node *node, const ir_expr *extent, int k)
{
    tec_context *cx = node->cx;
    const ir_expr *n = ir_int(cx, node->n_out), *share;

    if (node->opset < 18) {
        onnx_demand(node, ir_eq(cx, ir_floormod(cx, extent, n), ir_int(cx, 0)));
        return ir_floordiv(cx, extent, n);
    }
    share = ir_ceildiv(cx, extent, n);
    return ir_max(cx, ir_int(cx, 0), ir_min(cx, share, ir_sub(cx, extent, ir_mul(cx, share, ir_int(cx, k)))));
}

/* The sizes of the parts of `extent`. given: what the node says; NULL: they are equal. */
const ir_expr **onnx_split_exprs(onnx_node *node, const ir_expr *extent, const onnx_known *given)
{
    tec_context *cx = node->cx;
    const ir_expr **size = base_array(cx, const ir_expr *, node->n_out + 1), *sum = ir_int(cx, 0);

    if (given && given->n != node->n_out)
        return onnx_wrong(node, "expected one size for each result, found %d sizes for %d results", given->n,
                          node->n_out),
               NULL;
    for (int k = 0; k < node->n_out; k++) {
        int64_t number;

        size[k] = ir_simplify(facts_here(node), given ? given->at[k] : equal_part(node, extent, k));
        if (ir_is_int(size[k], &number) && number < 0)
            return onnx_wrong(node, "size %lld of part %d is negative", (long long)number, k), NULL;
        onnx_demand(node, ir_ge(cx, size[k], ir_int(cx, 0)));
        if (ir_is_value(extent, 0)) { /* no part of nothing may begin behind it */
            onnx_demand(node, ir_eq(cx, size[k], extent));
            size[k] = extent;
        }
        sum = ir_add(cx, sum, size[k]);
    }
    if (given)
        onnx_demand(node, ir_eq(cx, sum, extent));
    return size;
}

/* ---- pad ---- */

static bool is_positive(onnx_node *node, const ir_expr *expr)
{
    return ir_prove_le(facts_here(node), ir_int(node->cx, 0), expr);
}

/* One dimension whose pads are expressions. */
typedef struct {
    onnx_node *n;
    int axis;
    const ir_expr *before, *after;
} side;

/* `size` times the filling; NULL where the size is 0. */
static graph_value *filling(const side *self, const graph_value *value, graph_value *fill,
                            const ir_expr *size)
{
    const ir_expr *dim[ONNX_MAX_RANK];

    for (int i = 0; i < value->type.n; i++)
        dim[i] = value->type.dim[i];
    dim[self->axis] = ir_simplify(facts_here(self->n), size);
    return ir_is_value(dim[self->axis], 0) ? NULL : onnx_expand(self->n, fill, dim, value->type.n);
}

/* Pads of 0 and more: what stands before, the operand, what stands after. */
static graph_value *pad_around(const side *self, graph_value *value, graph_value *fill)
{
    graph_value *part[3];
    int count = 0;

    if ((part[count] = filling(self, value, fill, self->before)))
        count++;
    part[count++] = value;
    if ((part[count] = filling(self, value, fill, self->after)))
        count++;
    return count == 1 ? value : onnx_concat(self->n, part, count, self->axis);
}

/* 0 and more by one, of i64: the greatest is `last`. */
static graph_value *cut_to(onnx_node *node, graph_value *at, const ir_expr *last)
{
    const ir_expr *zero = ir_int(node->cx, 0);

    return onnx_binary(node, "min", onnx_binary(node, "max", at, onnx_values(node, &zero, 1, false)),
                       onnx_values(node, &last, 1, false));
}

/* What the place `at` of a result reads of a dimension that is padded by copies; 4 elements reflected are
 * ... 2 1 0 1 2 3 2 1 0 1 ..., with a period of 6. */
static graph_value *source(onnx_node *node, graph_value *at, const ir_expr *extent, const char *mode)
{
    tec_context *cx = node->cx;
    const ir_expr *one = ir_int(cx, 1), *last = ir_sub(cx, extent, one),
                  *period = ir_max(cx, one, ir_mul(cx, ir_int(cx, 2), last));

    if (base_same(mode, "wrap"))
        return onnx_binary(node, "mod", at, onnx_values(node, &extent, 1, false));
    if (!base_same(mode, "reflect"))
        return cut_to(node, at, last);
    at = onnx_binary(node, "mod", at, onnx_values(node, &period, 1, false));
    return onnx_binary(node, "min", at, onnx_binary(node, "sub", onnx_values(node, &period, 1, false), at));
}

/* Each place of the result reads the element at place - before, brought into 0..extent by the mode. A
 * negative pad crops. A constant stands where the place is outside. */
static graph_value *pad_by_index(const side *self, graph_value *value, const char *mode, graph_value *fill)
{
    onnx_node *node = self->n;
    tec_context *cx = node->cx;
    const ir_expr *extent = value->type.dim[self->axis], *zero = ir_int(cx, 0),
                  *size = ir_simplify(facts_here(node),
                                      ir_add(cx, extent, ir_add(cx, self->before, self->after)));
    int rank = value->type.n;

    onnx_demand(node, ir_ge(cx, size, zero));
    onnx_demand(node, ir_ge(cx, extent, ir_int(cx, 1)));
    graph_value *at = onnx_binary(node, "sub", onnx_count(node, size),
                                  onnx_values(node, &self->before, 1, false)),
                *from = source(node, at, extent, mode), *padded = onnx_gather(node, value, from, self->axis);
    if (!base_same(mode, "constant"))
        return padded;
    return onnx_where(node, onnx_along(node, onnx_binary(node, "equal", at, from), self->axis, rank), padded,
                      fill);
}

/* Pads dimension by dimension. fill: the constant as a scalar, of the operand's type. */
graph_value *onnx_pad_exprs(onnx_node *node, const ir_expr *const *before, const ir_expr *const *after,
                            const char *mode, graph_value *fill)
{
    graph_value *value = node->in[0];

    for (int i = 0; value && i < onnx_rank(node, 0); i++) {
        const side s = {node, i, before[i], after[i]};

        if (ir_is_value(before[i], 0) && ir_is_value(after[i], 0))
            continue;
        bool grows = is_positive(node, before[i]) && is_positive(node, after[i]);
        value = grows && base_same(mode, "constant") ? pad_around(&s, value, fill)
                                                     : pad_by_index(&s, value, mode, fill);
    }
    return value;
}

/* ---- expand ---- */

/* The operand broadcast to a shape whose extents are not all known to fit: an extent that is not 1 stays, and
 * what the shape says there must be the same, or 1. */
graph_value *onnx_expand_exprs(onnx_node *node, const ir_expr *const *dim, int count)
{
    tec_context *cx = node->cx;
    const op_type *type = &node->in[0]->type;
    int rank = count > type->n ? count : type->n;
    const ir_expr **to = base_array(cx, const ir_expr *, rank);

    for (int i = 0; i < rank; i++) {
        int of_shape = i - (rank - count), of_x = i - (rank - type->n);
        const ir_expr *wanted = of_shape >= 0 ? dim[of_shape] : ir_int(cx, 1),
                      *mine = of_x >= 0 ? type->dim[of_x] : ir_int(cx, 1);

        to[i] = ir_is_value(mine, 1) ? wanted : mine;
        if (to[i] == mine && of_shape >= 0)
            onnx_demand(node, ir_or(cx, ir_eq(cx, wanted, mine), ir_eq(cx, wanted, ir_int(cx, 1))));
    }
    return onnx_expand(node, node->in[0], to, rank);
}
