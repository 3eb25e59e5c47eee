/* graph/onnx/recurrent.c -- ONNX's RNN, GRU and LSTM, written out step by step.
 *
 * What does not depend on the state, X * W' + bias for all steps, is one product; each step adds its state's
 * product and applies the gates:
 *
 *     LSTM   i, o, f = sigmoid     c' = f * c + i * tanh(g)     h' = o * tanh(c')
 *     GRU    z, r    = sigmoid     h' = (1 - z) * tanh(g(r)) + z * h
 *     RNN                          h' = tanh(x + h)
 *
 * A sequence of symbolic length cannot be written out.
 */
#include "graph/onnx/compose.h"

/* The gates of one operator, in ONNX's order: LSTM i o f c, GRU z r h. */
typedef struct {
    onnx_node *n;
    int gates;     /* 1, 3, 4 */
    int functions; /* activations of one direction */
    int64_t steps, hidden;
    const ir_expr *batch;
    base_dtype t;
    /* Of one direction: */
    graph_value *x; /* [steps, batch, gates * hidden]: products of inputs, with the bias */
    graph_value *r; /* [gates * hidden, hidden] */
    /* [hidden] of the last gate of a GRU whose reset comes after its product; NULL otherwise */
    graph_value *r_bias;
    graph_value *peephole[3]; /* of an LSTM: [hidden] for i, o, f, or NULL */
    /* [batch, 1] of sequences that end before the last step; NULL: all go on to the end */
    graph_value *lengths;
    int first; /* of its activations */
} cells;

/* ---- activations ---- */

/* Parameters are listed in order for those activations that have them. */
static double parameter(const onnx_node *node, const char *list, int which, double otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(node, list);

    return a && which < (int)a->n_floats ? (double)a->floats[which] : otherwise;
}

/* The list holds the functions of all directions; `first` is where those of this direction begin. */
static const char *function_name(const cells *self, int index)
{
    static const char *const lstm[] = {"Sigmoid", "Tanh", "Tanh"}, *const gru[] = {"Sigmoid", "Tanh"};
    const Onnx__AttributeProto *a = onnx_attr(self->n, "activations");

    if (a && self->first + index < (int)a->n_strings) {
        const ProtobufCBinaryData *name = &a->strings[self->first + index];

        return name->len ? base_strndup(self->n->cx, (const char *)name->data, name->len) : "";
    }
    return self->gates == 4 ? lstm[index] : self->gates == 3 ? gru[index] : "Tanh";
}

/* Activation index of this direction on value, with ONNX's default parameters where the node gives none. */
static graph_value *activate(const cells *self, int index, graph_value *value)
{
    static const struct {
        const char *onnx, *op;
        double alpha, beta;
        int parameters;
    } functions[] = {
        {"Sigmoid", "sigmoid", 0, 0, 0},
        {"Tanh", "tanh", 0, 0, 0},
        {"Relu", "relu", 0, 0, 0},
        {"Softsign", "softsign", 0, 0, 0},
        {"Softplus", "softplus", 0, 0, 0},
        {"LeakyRelu", "leaky_relu", 0.01, 0, 1},
        {"ThresholdedRelu", "thresholded_relu", 1, 0, 1},
        {"Elu", "elu", 1, 0, 1},
        {"HardSigmoid", "hard_sigmoid", 0.2, 0.5, 2},
    };
    onnx_node *node = self->n;
    const char *name = function_name(self, index);
    double clip = onnx_float(node, "clip", 0);

    if (clip > 0)
        value = onnx_binary_number(node, "min", onnx_binary_number(node, "max", value, -clip), clip);
    for (int i = 0; i < BASE_COUNT(functions); i++)
        if (base_same(functions[i].onnx, name)) {
            op_attr attr[] = {op_attr_float("alpha", parameter(node, "activation_alpha", self->first + index,
                                                               functions[i].alpha)),
                              op_attr_float("beta", parameter(node, "activation_beta", self->first + index,
                                                              functions[i].beta))};

            return value ? ONNX_MAKE(node, functions[i].op, attr, functions[i].parameters, value) : NULL;
        }
    onnx_unsupported(node, "activation '%s'", name);
    return NULL;
}

/* ---- one step ---- */

static graph_value *gate(const cells *self, graph_value *all, int k)
{
    return onnx_part(self->n, all, 1, k * self->hidden, ir_int(self->n->cx, self->hidden));
}

/* Gate k of what the inputs and the state add up to, with a peephole into the cell. */
static graph_value *lstm_gate(const cells *self, graph_value *all, int k, int peephole, graph_value *cell,
                              int function)
{
    graph_value *v = gate(self, all, k);

    if (peephole >= 0 && self->peephole[peephole])
        v = onnx_binary(self->n, "add", v, onnx_binary(self->n, "mul", cell, self->peephole[peephole]));
    return activate(self, function, v);
}

/* The gates stand side by side in `all`, in the order of ONNX: i o f c. With input_forget the forget gate is
 * 1 - i. */
static graph_value *lstm_step(const cells *self, graph_value *input, graph_value *hidden, graph_value **cell)
{
    onnx_node *node = self->n;
    graph_value *all = onnx_binary(node, "add", input, onnx_matmul(node, hidden, self->r, true));
    graph_value *i = lstm_gate(self, all, 0, 0, *cell, 0);
    graph_value *f = onnx_int(node, "input_forget", 0) && i
                         ? onnx_binary(node, "sub", onnx_scalar(node, self->t, 1), i)
                         : lstm_gate(self, all, 2, 2, *cell, 0);
    graph_value *g = lstm_gate(self, all, 3, -1, NULL, 1);

    *cell = onnx_binary(node, "add", onnx_binary(node, "mul", f, *cell), onnx_binary(node, "mul", i, g));
    graph_value *o = lstm_gate(self, all, 1, 1, *cell, 0);
    return onnx_binary(node, "mul", o, activate(self, 2, *cell));
}

/* `r_bias` says which of ONNX's two forms of the last gate is meant (linear_before_reset). */
static graph_value *gru_step(const cells *self, graph_value *input, graph_value *hidden)
{
    onnx_node *node = self->n;
    const ir_expr *two = ir_int(node->cx, 2 * self->hidden), *one = ir_int(node->cx, self->hidden);
    graph_value *states = onnx_matmul(node, hidden, onnx_part(node, self->r, 0, 0, two), true);
    graph_value *z = activate(self, 0, onnx_binary(node, "add", gate(self, input, 0), gate(self, states, 0)));
    graph_value *r = activate(self, 0, onnx_binary(node, "add", gate(self, input, 1), gate(self, states, 1)));
    graph_value *last = onnx_part(node, self->r, 0, 2 * self->hidden, one), *g;

    if (self->r_bias)
        g = onnx_binary(node, "mul", r,
                        onnx_binary(node, "add", onnx_matmul(node, hidden, last, true), self->r_bias));
    else
        g = onnx_matmul(node, onnx_binary(node, "mul", r, hidden), last, true);
    g = activate(self, 1, onnx_binary(node, "add", gate(self, input, 2), g));
    graph_value *fresh =
        z ? onnx_binary(node, "mul", onnx_binary(node, "sub", onnx_scalar(node, self->t, 1), z), g) : NULL;
    return onnx_binary(node, "add", fresh, onnx_binary(node, "mul", z, hidden));
}

static graph_value *one_step(const cells *self, graph_value *input, graph_value *hidden, graph_value **cell)
{
    if (self->gates == 4)
        return lstm_step(self, input, hidden, cell);
    return self->gates == 3
               ? gru_step(self, input, hidden)
               : activate(self, 0,
                          onnx_binary(self->n, "add", input, onnx_matmul(self->n, hidden, self->r, true)));
}

/* ---- all steps of one direction ---- */

/* Whether step t belongs to each sequence: [batch, 1]; NULL: it does to all. */
static graph_value *goes_on(const cells *self, int64_t t)
{
    return self->lengths ? onnx_unary(self->n, "not",
                                      onnx_binary_number(self->n, "less_equal", self->lengths, (double)t))
                         : NULL;
}

/* All steps of one direction. Steps behind the end of a shorter sequence leave the state as it is and show 0.
 * The outputs of a step stand `apart` from those of the next one. */
static bool run(const cells *self, bool reverse, graph_value **hidden, graph_value **cell,
                graph_value **outputs, int apart)
{
    onnx_node *node = self->n;

    for (int64_t i = 0; i < self->steps && *hidden; i++) {
        int64_t t = reverse ? self->steps - 1 - i : i;
        graph_value *x = onnx_drop_dim(node, onnx_part(node, self->x, 0, t, ir_int(node->cx, 1)), 0),
                    *before = *cell, *on = goes_on(self, t);
        graph_value *next = one_step(self, x, *hidden, cell), *shown = next;

        if (on) {
            shown = onnx_where(node, on, next, onnx_scalar(node, self->t, 0));
            next = onnx_where(node, on, next, *hidden);
            *cell = before ? onnx_where(node, on, *cell, before) : NULL;
        }
        *hidden = next;
        outputs[t * apart] = onnx_add_dim(node, shown, 0); /* [1, batch, hidden] */
    }
    return *hidden != NULL;
}

/* Part `d` of an operand whose first dimension is directions, without that dimension; NULL where the operand
 * is left out. */
static graph_value *of_direction(onnx_node *node, int k, int d)
{
    return onnx_has(node, k) ? onnx_drop_dim(node, onnx_part(node, node->in[k], 0, d, ir_int(node->cx, 1)), 0)
                             : NULL;
}

/* A state of zeros where none is given; batches first, where layout 1 has them so. */
static graph_value *initial(const cells *self, int index, int direction)
{
    onnx_node *node = self->n;
    const ir_expr *dim[] = {self->batch, ir_int(node->cx, self->hidden)};
    op_attr attr[] = {op_attr_exprs(node->cx, "shape", dim, 2), op_attr_dtype("dtype", self->t),
                      op_attr_float("value", 0)};

    if (!onnx_has(node, index))
        return onnx_make(node, "fill", NULL, 0, attr, 3);
    if (onnx_int(node, "layout", 0))
        return onnx_drop_dim(node, onnx_part(node, node->in[index], 1, direction, ir_int(node->cx, 1)), 1);
    return of_direction(node, index, direction);
}

/* input: [steps, batch, input]. The biases of inputs and states are added at once, but for that of a GRU's
 * last gate where its reset comes after. */
static bool open_direction(cells *self, graph_value *input, int direction)
{
    onnx_node *node = self->n;
    tec_context *cx = node->cx;
    const ir_expr *width = ir_int(cx, self->gates * self->hidden);
    const ir_expr *rows[2] = {ir_mul(cx, input->type.dim[0], input->type.dim[1]), input->type.dim[2]},
                  *steps[3] = {input->type.dim[0], input->type.dim[1], width};
    graph_value *product = onnx_matmul(node, onnx_reshape(node, input, rows, 2),
                                       of_direction(node, 1, direction), true),
                *bias = of_direction(node, 3, direction);

    self->r = of_direction(node, 2, direction);
    self->r_bias = NULL;
    if (bias) {
        graph_value *of_x = onnx_part(node, bias, 0, 0, width),
                    *of_h = onnx_part(node, bias, 0, self->gates * self->hidden, width);

        if (self->gates == 3 && onnx_int(node, "linear_before_reset", 0)) {
            const int64_t none[] = {0}, one[] = {self->hidden};

            self->r_bias = onnx_part(node, of_h, 0, 2 * self->hidden, ir_int(cx, self->hidden));
            of_h = onnx_pad_zeros(node, onnx_part(node, of_h, 0, 0, ir_int(cx, 2 * self->hidden)), none, one);
        }
        product = onnx_binary(node, "add", product, onnx_binary(node, "add", of_x, of_h));
    } else if (self->gates == 3 && onnx_int(node, "linear_before_reset", 0))
        self->r_bias = onnx_scalar(node, self->t, 0);
    self->x = product ? onnx_reshape(node, product, steps, 3) : NULL;
    graph_value *peepholes = self->gates == 4 ? of_direction(node, 7, direction) : NULL;
    for (int k = 0; k < 3; k++)
        self->peephole[k] =
            peepholes ? onnx_part(node, peepholes, 0, k * self->hidden, ir_int(cx, self->hidden)) : NULL;
    return self->x && self->r;
}

/* ---- the operator ---- */

/* Lengths that are all the number of steps say nothing. */
static bool read_lengths(cells *self)
{
    onnx_node *node = self->n;
    const int64_t *given;
    int count = onnx_has(node, 4) ? onnx_constant_ints(node, 4, &given) : 0;
    bool all = count >= 0;

    for (int i = 0; i < count; i++)
        all = all && given[i] == self->steps;
    if (!all)
        self->lengths = onnx_along(node, onnx_cast(node, node->in[4], BASE_I64), 0, 2);
    return all || self->lengths;
}

/* Checks operands and extents. Sequences are written out, so their length must be constant and not too long.
 */
static bool open_cells(onnx_node *node, cells *self, graph_value *input, int gates, int directions)
{
    const op_type *r = &node->in[2]->type;
    int64_t width, count;

    *self = (cells){.n = node,
                    .gates = gates,
                    .functions = gates == 4   ? 3
                                 : gates == 3 ? 2
                                              : 1,
                    .t = input->type.dtype};
    if (input->type.n != 3 || r->n != 3 || onnx_rank(node, 1) != 3)
        return onnx_wrong(node, "the operands have %d, %d and %d dimensions, expected 3 each", input->type.n,
                          onnx_rank(node, 1), r->n);
    if (!ir_is_int(r->dim[0], &count) || !ir_is_int(r->dim[1], &width) ||
        !ir_is_int(r->dim[2], &self->hidden))
        return onnx_unsupported(node, "weights of symbolic extents");
    if (count != directions || self->hidden < 1 || width != gates * self->hidden ||
        onnx_int(node, "hidden_size", self->hidden) != self->hidden)
        return onnx_wrong(node, "the weights of the state are %s, expected %d direction%s and %d gates",
                          op_type_text(node->cx, r), directions, directions == 1 ? "" : "s", gates);
    if (!ir_is_int(input->type.dim[0], &self->steps))
        return onnx_unsupported(node, "a sequence of symbolic length");
    if (self->steps < 1 || self->steps > base_limit(node->cx, BASE_LIMIT_recurrent_steps))
        return onnx_unsupported(node, "%lld steps; %s", (long long)self->steps,
                                self->steps < 1 ? "expected at least 1"
                                                : base_limit_text(node->cx, BASE_LIMIT_recurrent_steps));
    self->batch = input->type.dim[1];
    return read_lengths(self);
}

/* States of each direction, [1, batch, hidden], as one result; batches first in layout 1. */
static bool set_states(onnx_node *node, int k, graph_value *const *state, int directions)
{
    static const int64_t swap[] = {1, 0, 2};
    graph_value *all = onnx_concat(node, state, directions, 0);

    return onnx_set(node, k, all && onnx_int(node, "layout", 0) ? onnx_transpose(node, all, swap) : all);
}

/* What the steps show, those of both directions beside each other, as [steps, directions, batch, hidden]. All
 * lie one behind the other, so that the steps can write into the result. */
static graph_value *all_steps(const cells *self, graph_value *const *shown, int directions)
{
    onnx_node *node = self->n;
    const ir_expr *dim[] = {ir_int(node->cx, self->steps), ir_int(node->cx, directions), self->batch,
                            ir_int(node->cx, self->hidden)};
    graph_value *all = onnx_concat(node, shown, (int)self->steps * directions, 0);

    return all ? onnx_reshape(node, all, dim, 4) : NULL;
}

/* RNN, GRU and LSTM differ in the number of gates; `layout` 1 has batches first. */
static bool recurrent(onnx_node *node, int gates)
{
    static const int64_t swap[] = {1, 0, 2}, batches_first[] = {2, 0, 1, 3};
    const char *direction = onnx_string(node, "direction", "forward");
    int directions = base_same(direction, "bidirectional") ? 2 : 1;
    bool layout = onnx_int(node, "layout", 0) != 0;
    graph_value *x =
                    layout && onnx_rank(node, 0) == 3 ? onnx_transpose(node, node->in[0], swap) : node->in[0],
                *h[2], *cell[2] = {NULL, NULL};
    cells c;

    if (!x || !open_cells(node, &c, x, gates, directions))
        return false;
    graph_value **shown = base_array(node->cx, graph_value *, c.steps * directions);
    for (int d = 0; d < directions; d++) {
        c.first = d * c.functions;
        h[d] = initial(&c, 5, d);
        cell[d] = gates == 4 ? initial(&c, 6, d) : NULL;
        if (!open_direction(&c, x, d) ||
            !run(&c, d == 1 || base_same(direction, "reverse"), &h[d], &cell[d], shown + d, directions))
            return false;
        h[d] = onnx_add_dim(node, h[d], 0);
        cell[d] = onnx_add_dim(node, cell[d], 0);
    }
    graph_value *y = all_steps(&c, shown, directions);
    y = y && layout ? onnx_transpose(node, y, batches_first) : y;
    return (node->n_out < 1 || onnx_set(node, 0, y)) &&
           (node->n_out < 2 || set_states(node, 1, h, directions)) &&
           (node->n_out < 3 || set_states(node, 2, cell, directions));
}

static bool convert_rnn(onnx_node *node)
{
    return recurrent(node, 1);
}
static bool convert_gru(onnx_node *node)
{
    return recurrent(node, 3);
}
static bool convert_lstm(onnx_node *node)
{
    return recurrent(node, 4);
}

#define COMMON                                                                                               \
    "activation_alpha:F activation_beta:F activations:S clip:f direction:s(forward|reverse|bidirectional) "  \
    "hidden_size:i layout:i@14 "
static const onnx_row rows[] = {
    {"RNN", convert_rnn, 1, 0, "3-6>0-2 " COMMON "output_sequence:i<7", NULL},
    {"GRU", convert_gru, 3, 0, "3-6>0-2 " COMMON "linear_before_reset:i output_sequence:i<7", NULL},
    {"LSTM", convert_lstm, 1, 0, "3-8>0-3 " COMMON "input_forget:i output_sequence:i<7", NULL},
};
const onnx_rows onnx_recurrent_rows = {rows, BASE_COUNT(rows)};
