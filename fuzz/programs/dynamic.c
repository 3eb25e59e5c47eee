/* fuzz/programs/dynamic.c -- statements whose results have extents that depend on data. */
#include "graph/dynamic.h"
#include "fuzz/programs/inside.h"
#include "graph/scope.h"
#include "ir/build.h"

static bool add(fuzz_program *self, const char *op, graph_value *const *in, int n, const op_attr *attr,
                int n_attrs, graph_value **out)
{
    for (int k = 0; k < n; k++)
        if (!in[k])
            return false;
    return graph_add_dynamic(self->f, graph_find_dynamic(op), op, in, n, attr, n_attrs, out);
}

static graph_value *cast(fuzz_program *self, graph_value *value, base_dtype dtype)
{
    op_attr to = op_attr_dtype("to", dtype);

    return fuzz_op(self, "cast", &value, 1, &to, 1);
}

/* ---- extents ---- */

/* A vector as rows, as many as a number says. */
static bool repeat(fuzz_program *self)
{
    const ir_expr *dim[] = {fuzz_extent(self, fuzz_pick(self, FUZZ_NUMBER)), ir_int(self->cx, FUZZ_WIDTH)};
    graph_value *vector = fuzz_pick(self, FUZZ_VECTOR);

    return dim[0] && vector && fuzz_keep(self, FUZZ_ROWS, fuzz_shaped(self, "expand", vector, dim, 2));
}

/* The number as an extent, or rarely another number: then the run may stop. */
static const ir_expr *same_extent(fuzz_program *self, graph_value *number)
{
    return fuzz_extent(self, fuzz_draw(&self->state, 5) ? number : fuzz_pick(self, FUZZ_NUMBER));
}

/* Two tensors whose extents are two symbols, which only the run can compare. */
static bool meet(fuzz_program *self)
{
    static const char *const ops[] = {"add", "sub", "mul", "concat"};
    graph_value *number = fuzz_pick(self, FUZZ_NUMBER);
    const ir_expr *width = ir_int(self->cx, FUZZ_WIDTH), *dim[] = {fuzz_extent(self, number), width},
                  *other[] = {same_extent(self, number), width};
    graph_value *in[] = {fuzz_pick(self, FUZZ_VECTOR), fuzz_pick(self, FUZZ_VECTOR)}, *both;
    op_attr axis = op_attr_int("axis", 1);
    const int64_t second[] = {1};
    op_attr mean[] = {op_attr_ints(self->cx, "axes", second, 1), op_attr_int("keepdims", 1)};
    int which = (int)fuzz_draw(&self->state, BASE_COUNT(ops));

    if (!dim[0] || !other[0] || !in[0] || !in[1])
        return false;
    in[0] = fuzz_shaped(self, "expand", in[0], dim, 2);
    in[1] = fuzz_shaped(self, "expand", in[1], other, 2);
    both = fuzz_op(self, ops[which], in, 2, &axis, which == 3);
    if (which == 3) /* the halves side by side: subtracted from their mean */
        both = fuzz_two(self, "sub", in[fuzz_draw(&self->state, 2)],
                        fuzz_op(self, "reduce_mean", &both, 1, mean, 2));
    return fuzz_keep(self, FUZZ_ROWS, fuzz_op(self, "tanh", &both, 1, NULL, 0));
}

/* Elements of two vectors by one set of flags: as many of both. */
static bool meet_by_data(fuzz_program *self)
{
    graph_value *ints = fuzz_pick(self, FUZZ_INTS), *out[2];

    if (!ints)
        return false;
    graph_value *flags = fuzz_two(self, "greater", ints, fuzz_number(self, 1)),
                *other = fuzz_within(self, fuzz_two(self, "mul", ints, ints), FUZZ_INTS_BELOW);
    for (int k = 0; k < 2; k++)
        if (!add(self, "compress", (graph_value *[]){k ? other : ints, flags}, 2, NULL, 0, &out[k]))
            return false;
    graph_value *sum = fuzz_two(self, "add", out[0], out[1]);
    return sum && fuzz_keep(self, FUZZ_INTS, fuzz_within(self, sum, FUZZ_INTS_BELOW));
}

/* The first rows: a number of them, or all where there are fewer. */
static bool head(fuzz_program *self)
{
    tec_context *cx = self->cx;
    graph_value *rows = fuzz_pick(self, FUZZ_ROWS), *number = fuzz_pick(self, FUZZ_NUMBER);
    const int64_t one[] = {1, 1};

    if (!rows || !number)
        return false;
    op_attr values[] = {op_attr_exprs(cx, "values", rows->type.dim, 1), op_attr_int("scalar", 1)};
    const ir_expr *k =
        fuzz_extent(self, fuzz_two(self, "min", number, fuzz_op(self, "values", NULL, 0, values, 2)));
    if (!k)
        return false;
    graph_need_in(self->m, self->f->body, ir_le(cx, k, rows->type.dim[0]), NULL);
    const ir_expr *begin[] = {ir_int(cx, 0), ir_int(cx, 0)}, *extent[] = {k, ir_int(cx, FUZZ_WIDTH)};
    op_attr slice[] = {op_attr_exprs(cx, "begin", begin, 2), op_attr_exprs(cx, "extent", extent, 2),
                       op_attr_ints(cx, "step", one, 2)};
    return fuzz_keep(self, FUZZ_ROWS, fuzz_op(self, "slice", &rows, 1, slice, 3));
}

/* The last row, or the first three: fewer where there are fewer. A kernel takes such an extent as a symbol of
 * its own. */
static graph_value *few_of(fuzz_program *self, graph_value *rows)
{
    tec_context *cx = self->cx;
    const ir_expr *n = rows->type.dim[0], *zero = ir_int(cx, 0),
                  *last = ir_max(cx, zero, ir_sub(cx, n, ir_int(cx, 1)));
    bool first = fuzz_draw(&self->state, 2);
    const ir_expr *begin[] = {first ? zero : last, zero},
                  *extent[] = {first ? ir_min(cx, n, ir_int(cx, 3)) : ir_sub(cx, n, last),
                               ir_int(cx, FUZZ_WIDTH)};
    const int64_t one[] = {1, 1};
    op_attr slice[] = {op_attr_exprs(cx, "begin", begin, 2), op_attr_exprs(cx, "extent", extent, 2),
                       op_attr_ints(cx, "step", one, 2)};

    return fuzz_op(self, "slice", &rows, 1, slice, 3);
}

/* A few rows times a few others: the product has two extents with a constant bound. */
static bool few(fuzz_program *self)
{
    graph_value *rows[] = {fuzz_pick(self, FUZZ_ROWS), fuzz_pick(self, FUZZ_ROWS)};
    op_attr turned = op_attr_int("trans_b", 1);

    if (!rows[0] || !rows[1])
        return false;
    for (int k = 0; k < 2; k++)
        rows[k] = few_of(self, rows[k]);
    graph_value *product = rows[0] && rows[1] ? fuzz_op(self, "matmul", rows, 2, &turned, 1) : NULL;
    product = product ? fuzz_op(self, "tanh", &product, 1, NULL, 0) : NULL;
    product = product ? fuzz_two(self, "matmul", product, rows[1]) : NULL;
    return product && fuzz_keep(self, FUZZ_ROWS, fuzz_op(self, "tanh", &product, 1, NULL, 0));
}

/* Rows of a constant table, by numbers of rows. */
static bool rows_of_table(fuzz_program *self)
{
    const int64_t shape[] = {FUZZ_INTS_BELOW, FUZZ_WIDTH};
    op_attr axis = op_attr_int("axis", 0);
    graph_value *in[] = {fuzz_floats(self, 2, shape), fuzz_pick(self, FUZZ_INTS)};

    return fuzz_keep(self, FUZZ_ROWS, fuzz_op(self, "gather", in, 2, &axis, 1));
}

static bool sum_of_ints(fuzz_program *self)
{
    const int64_t first[] = {0};
    op_attr attr[] = {op_attr_ints(self->cx, "axes", first, 1), op_attr_int("keepdims", 0)};
    graph_value *ints = fuzz_pick(self, FUZZ_INTS);

    return fuzz_keep(self, FUZZ_NUMBER,
                     fuzz_within(self, fuzz_op(self, "reduce_sum", &ints, 1, attr, 2), FUZZ_LARGEST));
}

/* ---- operators of graph/dynamic.h ---- */

static bool keep_ints(fuzz_program *self, graph_value *value)
{
    return value && fuzz_keep(self, FUZZ_INTS, fuzz_within(self, value, FUZZ_INTS_BELOW));
}

static bool arange(fuzz_program *self)
{
    int64_t step = 1 + (int64_t)fuzz_draw(&self->state, 2);
    graph_value *in[] = {fuzz_pick(self, FUZZ_NUMBER), fuzz_pick(self, FUZZ_NUMBER),
                         fuzz_number(self, fuzz_draw(&self->state, 3) ? step : -step)},
                *out;

    return add(self, "arange", in, 3, NULL, 0, &out) && keep_ints(self, out);
}

static bool non_zero(fuzz_program *self)
{
    graph_value *ints = fuzz_pick(self, FUZZ_INTS), *out;

    if (!add(self, "non_zero", &ints, 1, NULL, 0, &out))
        return false;
    return keep_ints(self, fuzz_shaped(self, "reshape", out, &out->type.dim[1], 1));
}

static bool compress(fuzz_program *self)
{
    graph_value *ints = fuzz_pick(self, FUZZ_INTS);
    graph_value *in[] = {ints, ints ? fuzz_two(self, "greater", ints, fuzz_number(self, 1)) : NULL}, *out;

    return add(self, "compress", in, 2, NULL, 0, &out) && keep_ints(self, out);
}

static bool unique(fuzz_program *self)
{
    op_attr sorted = op_attr_int("sorted", (int64_t)fuzz_draw(&self->state, 2));
    graph_value *ints = fuzz_pick(self, FUZZ_INTS), *out[GRAPH_DYNAMIC_RESULTS];

    return add(self, "unique", &ints, 1, &sorted, 1, out) &&
           keep_ints(self, out[fuzz_draw(&self->state, GRAPH_DYNAMIC_RESULTS)]);
}

/* The probabilities are multiples of 1/16, whose sums are exact: the limit is met by both or by none. */
static bool top_p(fuzz_program *self)
{
    graph_value *ints = fuzz_pick(self, FUZZ_INTS);
    graph_value *in[] = {ints ? fuzz_two(self, "mul", cast(self, ints, BASE_F32), fuzz_float(self, 0.0625F))
                              : NULL,
                         fuzz_float(self, (float)fuzz_draw(&self->state, 16) / 16.0F)},
                *out[GRAPH_DYNAMIC_RESULTS];

    return add(self, "top_p", in, 2, NULL, 0, out) && keep_ints(self, out[1]);
}

/* Squares on a line, whose overlaps are far from the limit. */
static bool boxes(fuzz_program *self)
{
    tec_context *cx = self->cx;
    graph_value *ints = fuzz_pick(self, FUZZ_INTS), *side[4], *out;
    op_attr last = op_attr_int("axis", 2);

    if (!ints)
        return false;
    const ir_expr *column[] = {ir_int(cx, 1), ints->type.dim[0], ir_int(cx, 1)},
                  *scores[] = {column[0], column[0], column[1]};
    graph_value *at = cast(self, ints, BASE_F32);
    graph_value *lines[] = {
        fuzz_two(self, "mul", at, fuzz_float(self, 0)), at,
        fuzz_two(self, "add", fuzz_two(self, "mul", at, fuzz_float(self, 0)), fuzz_float(self, 2)),
        fuzz_two(self, "add", at, fuzz_float(self, 2))};
    for (int k = 0; k < 4; k++)
        side[k] = fuzz_shaped(self, "reshape", lines[k], column, 3);
    graph_value *in[] = {fuzz_op(self, "concat", side, 4, &last, 1),
                         fuzz_shaped(self, "reshape", at, scores, 3), fuzz_pick(self, FUZZ_NUMBER),
                         fuzz_float(self, 0.25F), fuzz_float(self, 0.5F)};
    if (!add(self, "non_max_suppression", in, 5, NULL, 0, &out))
        return false;
    op_attr axis = op_attr_int("axis", 1);
    graph_value *which[] = {out, fuzz_number(self, 2)};
    return keep_ints(self, fuzz_op(self, "gather", which, 2, &axis, 1));
}

const fuzz_statement fuzz_dynamic[] = {
    {"repeat", 3, repeat},
    {"head", 4, head},
    {"few", 4, few},
    {"meet", 4, meet},
    {"meet_by_data", 1, meet_by_data},
    {"rows_of_table", 4, rows_of_table},
    {"sum_of_ints", 3, sum_of_ints},
    {"arange", 4, arange},
    {"non_zero", 2, non_zero},
    {"compress", 2, compress},
    {"unique", 1, unique},
    {"top_p", 2, top_p},
    {"boxes", 1, boxes},
};
const int fuzz_n_dynamic = BASE_COUNT(fuzz_dynamic);
