/* fuzz/programs/plain.c -- statements of operators alone: arithmetic, rows that grow, and what each pass over
 * operators looks for.
 */
#include "fuzz/programs/inside.h"
#include "graph/scope.h"
#include "ir/build.h"

#define PICK(list) (list)[fuzz_draw(&self->state, BASE_COUNT(list))]

/* ---- vectors ---- */

static bool unary(fuzz_program *self)
{
    static const char *const ops[] = {"tanh", "relu", "sigmoid", "neg", "abs"};
    graph_value *value = fuzz_pick(self, FUZZ_VECTOR);

    return fuzz_keep(self, FUZZ_VECTOR, fuzz_op(self, PICK(ops), &value, 1, NULL, 0));
}

/* Of two values within -2 and 2 half the sum and half the product are within them too. */
static graph_value *halved(fuzz_program *self, graph_value *left, graph_value *right)
{
    static const char *const ops[] = {"add", "sub", "mul"};

    return fuzz_two(self, "mul", fuzz_two(self, PICK(ops), left, right), fuzz_float(self, 0.5F));
}

static bool binary(fuzz_program *self)
{
    return fuzz_keep(self, FUZZ_VECTOR,
                     halved(self, fuzz_pick(self, FUZZ_VECTOR), fuzz_pick(self, FUZZ_VECTOR)));
}

static bool where(fuzz_program *self)
{
    graph_value *in[] = {fuzz_pick(self, FUZZ_FLAG), fuzz_pick(self, FUZZ_VECTOR),
                         fuzz_pick(self, FUZZ_VECTOR)};

    return fuzz_keep(self, FUZZ_VECTOR, fuzz_op(self, "where", in, 3, NULL, 0));
}

/* ---- for passes ---- */

static graph_value *transposed(fuzz_program *self, graph_value *value)
{
    const int64_t swap[] = {1, 0};
    op_attr perm = op_attr_ints(self->cx, "perm", swap, 2);

    return fuzz_op(self, "transpose", &value, 1, &perm, 1);
}

/* Chains that simplify joins. */
static bool roundabout(fuzz_program *self)
{
    graph_value *rows = fuzz_pick(self, FUZZ_ROWS), *vector = fuzz_pick(self, FUZZ_VECTOR);
    const ir_expr *square[] = {ir_int(self->cx, 2), ir_int(self->cx, 2)},
                  *four = ir_int(self->cx, FUZZ_WIDTH);

    if (fuzz_draw(&self->state, 2) && rows) {
        graph_value *turned = transposed(self, rows);

        turned = fuzz_op(self, "neg", &turned, 1, NULL, 0);
        return fuzz_keep(self, FUZZ_ROWS,
                         transposed(self, fuzz_draw(&self->state, 2) ? turned : transposed(self, rows)));
    }
    vector = fuzz_shaped(self, "reshape", vector, square, 2);
    if (fuzz_draw(&self->state, 2))
        vector = fuzz_op(self, "identity", &vector, 1, NULL, 0);
    return fuzz_keep(self, FUZZ_VECTOR, fuzz_shaped(self, "reshape", vector, &four, 1));
}

/* One expression computed twice. */
static bool twins(fuzz_program *self)
{
    graph_value *left = fuzz_pick(self, FUZZ_VECTOR), *right = fuzz_pick(self, FUZZ_VECTOR), *twin[2];
    const char *op = fuzz_draw(&self->state, 2) ? "min" : "max";

    for (int k = 0; k < 2; k++)
        twin[k] = fuzz_two(self, op, left, right);
    return fuzz_keep(self, FUZZ_VECTOR,
                     fuzz_two(self, fuzz_draw(&self->state, 2) ? "sub" : "min", twin[0], twin[1]));
}

/* Arithmetic on constants. */
static bool of_constants(fuzz_program *self)
{
    const int64_t shape[] = {FUZZ_WIDTH};
    graph_value *value = fuzz_two(self, "mul", fuzz_floats(self, 1, shape), fuzz_floats(self, 1, shape));

    return fuzz_keep(self, FUZZ_VECTOR, halved(self, fuzz_pick(self, FUZZ_VECTOR), value));
}

/* A matrix product with constant weights, which an implementation packs. */
static bool dense(fuzz_program *self)
{
    const int64_t shape[] = {FUZZ_WIDTH, FUZZ_WIDTH}, wide[] = {FUZZ_WIDTH};
    graph_value *value = fuzz_two(self, "matmul", fuzz_pick(self, FUZZ_ROWS), fuzz_floats(self, 2, shape));

    value = fuzz_two(self, "add", value, fuzz_floats(self, 1, wide));
    return fuzz_keep(self, FUZZ_ROWS, fuzz_op(self, "tanh", &value, 1, NULL, 0));
}

/* Batch normalisation with constants around 0 and 1. */
static graph_value *normalised(fuzz_program *self, graph_value *value, int64_t channels)
{
    graph_value *in[] = {value, fuzz_floats(self, 1, &channels), fuzz_floats(self, 1, &channels),
                         fuzz_floats(self, 1, &channels), fuzz_positive(self, channels)};

    return fuzz_op(self, "batch_norm", in, 5, NULL, 0);
}

enum { CHANNELS = 16 };

/* The image stays as large as it is. A kernel of one pixel is computed as a product of matrices, a larger one
 * over packed channels. */
static graph_value *convolution(fuzz_program *self, graph_value *value)
{
    tec_context *cx = self->cx;
    int64_t size = 1 + fuzz_draw(&self->state, 2);
    const int64_t weight[] = {CHANNELS, CHANNELS, size, size}, one[] = {1, 1},
                  pads[] = {0, 0, size - 1, size - 1};
    op_attr attr[] = {op_attr_ints(cx, "strides", one, 2), op_attr_ints(cx, "dilations", one, 2),
                      op_attr_ints(cx, "pads", pads, 4), op_attr_int("group", 1)};
    graph_value *in[] = {value, fuzz_floats(self, 4, weight)};

    return fuzz_op(self, "conv", in, 2, attr, 4);
}

/* Two convolutions with a batch normalisation between them, over as many channels as a vector may have. */
static bool convolutions(fuzz_program *self)
{
    tec_context *cx = self->cx;
    const int64_t one[] = {1, 1}, axes[] = {2, 3};
    const ir_expr *wide[] = {ir_int(cx, CHANNELS), ir_int(cx, FUZZ_WIDTH)},
                  *image[] = {ir_int(cx, 1), wide[0], ir_int(cx, 2), ir_int(cx, 2)};
    op_attr mean[] = {op_attr_ints(cx, "axes", axes, 2), op_attr_int("keepdims", 1)};
    graph_value *value = fuzz_shaped(
        self, "reshape", fuzz_shaped(self, "expand", fuzz_pick(self, FUZZ_VECTOR), wide, 2), image, 4);

    for (int k = 0; k < 2; k++) {
        value = convolution(self, value);
        if (k == 0)
            value = normalised(self, value, CHANNELS);
        value = fuzz_op(self, "tanh", &value, 1, NULL, 0);
    }
    value = fuzz_shaped(self, "reshape", fuzz_op(self, "reduce_mean", &value, 1, mean, 2), wide, 1);
    const ir_expr *begin = ir_int(cx, 0), *extent = ir_int(cx, FUZZ_WIDTH);
    op_attr slice[] = {op_attr_exprs(cx, "begin", &begin, 1), op_attr_exprs(cx, "extent", &extent, 1),
                       op_attr_ints(cx, "step", one, 1)};
    return fuzz_keep(self, FUZZ_VECTOR, fuzz_op(self, "slice", &value, 1, slice, 3));
}

/* ---- rows ---- */

static graph_value *as_row(fuzz_program *self, graph_value *vector)
{
    const ir_expr *dim[] = {ir_int(self->cx, 1), ir_int(self->cx, FUZZ_WIDTH)};

    return fuzz_shaped(self, "reshape", vector, dim, 2);
}

static bool append(fuzz_program *self)
{
    op_attr axis = op_attr_int("axis", 0);
    graph_value *rows = fuzz_pick(self, FUZZ_ROWS), *row = as_row(self, fuzz_pick(self, FUZZ_VECTOR));
    bool behind = fuzz_draw(&self->state, 3);
    graph_value *in[] = {behind ? rows : row, behind ? row : rows};

    return fuzz_keep(self, FUZZ_ROWS, fuzz_op(self, "concat", in, 2, &axis, 1));
}

static bool rows_and_vector(fuzz_program *self)
{
    return fuzz_keep(self, FUZZ_ROWS, halved(self, fuzz_pick(self, FUZZ_ROWS), fuzz_pick(self, FUZZ_VECTOR)));
}

static bool sum_of_rows(fuzz_program *self)
{
    const int64_t first[] = {0};
    op_attr attr[] = {op_attr_ints(self->cx, "axes", first, 1), op_attr_int("keepdims", 0)};
    graph_value *rows = fuzz_pick(self, FUZZ_ROWS);
    graph_value *sum = fuzz_op(self, "reduce_sum", &rows, 1, attr, 2);

    return fuzz_keep(self, FUZZ_VECTOR, fuzz_op(self, "tanh", &sum, 1, NULL, 0));
}

/* ---- whole numbers and conditions ---- */

static bool number(fuzz_program *self)
{
    static const char *const ops[] = {"add", "sub", "mul", "min", "max"};
    graph_value *right = fuzz_draw(&self->state, 2) ? fuzz_pick(self, FUZZ_NUMBER)
                                                    : fuzz_number(self, (int64_t)fuzz_draw(&self->state, 4));

    return fuzz_keep(
        self, FUZZ_NUMBER,
        fuzz_within(self, fuzz_two(self, PICK(ops), fuzz_pick(self, FUZZ_NUMBER), right), FUZZ_LARGEST));
}

/* How many rows there are. */
static bool length(fuzz_program *self)
{
    graph_value *rows = fuzz_pick(self, FUZZ_ROWS);

    if (!rows)
        return false;
    op_attr attr[] = {op_attr_exprs(self->cx, "values", rows->type.dim, 1), op_attr_int("scalar", 1)};
    return fuzz_keep(self, FUZZ_NUMBER,
                     fuzz_within(self, fuzz_op(self, "values", NULL, 0, attr, 2), FUZZ_LARGEST));
}

static bool flag(fuzz_program *self)
{
    static const char *const compare[] = {"less", "equal", "greater"}, *const join[] = {"and", "or", "xor"};
    bool joins = fuzz_draw(&self->state, 3) == 0;
    fuzz_pool kind = joins ? FUZZ_FLAG : FUZZ_NUMBER;

    return fuzz_keep(
        self, FUZZ_FLAG,
        fuzz_two(self, joins ? PICK(join) : PICK(compare), fuzz_pick(self, kind), fuzz_pick(self, kind)));
}

static bool flag_as_number(fuzz_program *self)
{
    op_attr to = op_attr_dtype("to", BASE_I64);
    graph_value *value = fuzz_pick(self, FUZZ_FLAG);

    return fuzz_keep(self, FUZZ_NUMBER, fuzz_op(self, "cast", &value, 1, &to, 1));
}

const fuzz_statement fuzz_plain[] = {
    {"unary", 6, unary},
    {"binary", 6, binary},
    {"where", 3, where},
    {"roundabout", 4, roundabout},
    {"twins", 3, twins},
    {"of_constants", 3, of_constants},
    {"dense", 3, dense},
    {"convolutions", 2, convolutions},
    {"append", 5, append},
    {"rows_and_vector", 4, rows_and_vector},
    {"sum_of_rows", 4, sum_of_rows},
    {"number", 5, number},
    {"length", 3, length},
    {"flag", 4, flag},
    {"flag_as_number", 2, flag_as_number},
};
const int fuzz_n_plain = BASE_COUNT(fuzz_plain);
