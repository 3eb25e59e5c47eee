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

enum { MOST_STEPS = 4096 };

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
static double parameter(const onnx_node *n, const char *list, int which, double otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(n, list);

    return a && which < (int)a->n_floats ? (double)a->floats[which] : otherwise;
}

static const char *function_name(const cells *c, int k)
{
    static const char *const lstm[] = {"Sigmoid", "Tanh", "Tanh"}, *const gru[] = {"Sigmoid", "Tanh"};
    const Onnx__AttributeProto *a = onnx_attr(c->n, "activations");

    if (a && c->first + k < (int)a->n_strings) {
        const ProtobufCBinaryData *name = &a->strings[c->first + k];

        return name->len ? base_strndup(c->n->cx, (const char *)name->data, name->len) : "";
    }
    return c->gates == 4 ? lstm[k] : c->gates == 3 ? gru[k] : "Tanh";
}

/* Activation k of this direction on v, with ONNX's default parameters where the node gives none. */
static graph_value *activate(const cells *c, int k, graph_value *v)
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
    onnx_node *n = c->n;
    const char *name = function_name(c, k);
    double clip = onnx_float(n, "clip", 0);

    if (clip > 0)
        v = onnx_binary_number(n, "min", onnx_binary_number(n, "max", v, -clip), clip);
    for (int i = 0; i < BASE_COUNT(functions); i++)
        if (base_same(functions[i].onnx, name)) {
            op_attr attr[] = {
                op_attr_float("alpha", parameter(n, "activation_alpha", c->first + k, functions[i].alpha)),
                op_attr_float("beta", parameter(n, "activation_beta", c->first + k, functions[i].beta))};

            return v ? ONNX_MAKE(n, functions[i].op, attr, functions[i].parameters, v) : NULL;
        }
    onnx_unsupported(n, "activation '%s'", name);
    return NULL;
}

/* ---- one step ---- */

static graph_value *gate(const cells *c, graph_value *all, int k)
{
    return onnx_part(c->n, all, 1, k * c->hidden, ir_int(c->n->cx, c->hidden));
}

/* Gate k of what the inputs and the state add up to, with a peephole into the cell. */
static graph_value *lstm_gate(const cells *c, graph_value *all, int k, int peephole, graph_value *cell,
                              int function)
{
    graph_value *v = gate(c, all, k);

    if (peephole >= 0 && c->peephole[peephole])
        v = onnx_binary(c->n, "add", v, onnx_binary(c->n, "mul", cell, c->peephole[peephole]));
    return activate(c, function, v);
}

static graph_value *lstm_step(const cells *c, graph_value *x, graph_value *h, graph_value **cell)
{
    onnx_node *n = c->n;
    graph_value *all = onnx_binary(n, "add", x, onnx_matmul(n, h, c->r, true));
    graph_value *i = lstm_gate(c, all, 0, 0, *cell, 0);
    graph_value *f = onnx_int(n, "input_forget", 0) && i ? onnx_binary(n, "sub", onnx_scalar(n, c->t, 1), i)
                                                         : lstm_gate(c, all, 2, 2, *cell, 0);
    graph_value *g = lstm_gate(c, all, 3, -1, NULL, 1);

    *cell = onnx_binary(n, "add", onnx_binary(n, "mul", f, *cell), onnx_binary(n, "mul", i, g));
    graph_value *o = lstm_gate(c, all, 1, 1, *cell, 0);
    return onnx_binary(n, "mul", o, activate(c, 2, *cell));
}

/* `r_bias` says which of ONNX's two forms of the last gate is meant (linear_before_reset). */
static graph_value *gru_step(const cells *c, graph_value *x, graph_value *h)
{
    onnx_node *n = c->n;
    const ir_expr *two = ir_int(n->cx, 2 * c->hidden), *one = ir_int(n->cx, c->hidden);
    graph_value *states = onnx_matmul(n, h, onnx_part(n, c->r, 0, 0, two), true);
    graph_value *z = activate(c, 0, onnx_binary(n, "add", gate(c, x, 0), gate(c, states, 0)));
    graph_value *r = activate(c, 0, onnx_binary(n, "add", gate(c, x, 1), gate(c, states, 1)));
    graph_value *last = onnx_part(n, c->r, 0, 2 * c->hidden, one), *g;

    if (c->r_bias)
        g = onnx_binary(n, "mul", r, onnx_binary(n, "add", onnx_matmul(n, h, last, true), c->r_bias));
    else
        g = onnx_matmul(n, onnx_binary(n, "mul", r, h), last, true);
    g = activate(c, 1, onnx_binary(n, "add", gate(c, x, 2), g));
    graph_value *fresh =
        z ? onnx_binary(n, "mul", onnx_binary(n, "sub", onnx_scalar(n, c->t, 1), z), g) : NULL;
    return onnx_binary(n, "add", fresh, onnx_binary(n, "mul", z, h));
}

static graph_value *one_step(const cells *c, graph_value *x, graph_value *h, graph_value **cell)
{
    if (c->gates == 4)
        return lstm_step(c, x, h, cell);
    return c->gates == 3 ? gru_step(c, x, h)
                         : activate(c, 0, onnx_binary(c->n, "add", x, onnx_matmul(c->n, h, c->r, true)));
}

/* ---- all steps of one direction ---- */

/* Whether step t belongs to each sequence: [batch, 1]; NULL: it does to all. */
static graph_value *goes_on(const cells *c, int64_t t)
{
    return c->lengths ? onnx_unary(c->n, "not", onnx_binary_number(c->n, "less_equal", c->lengths, (double)t))
                      : NULL;
}

/* All steps of one direction. Steps behind the end of a shorter sequence leave the state as it is and show 0.
 */
static bool run(const cells *c, bool reverse, graph_value **h, graph_value **cell, graph_value **outputs)
{
    onnx_node *n = c->n;

    for (int64_t i = 0; i < c->steps && *h; i++) {
        int64_t t = reverse ? c->steps - 1 - i : i;
        graph_value *x = onnx_drop_dim(n, onnx_part(n, c->x, 0, t, ir_int(n->cx, 1)), 0), *before = *cell,
                    *on = goes_on(c, t);
        graph_value *next = one_step(c, x, *h, cell), *shown = next;

        if (on) {
            shown = onnx_where(n, on, next, onnx_scalar(n, c->t, 0));
            next = onnx_where(n, on, next, *h);
            *cell = before ? onnx_where(n, on, *cell, before) : NULL;
        }
        *h = next;
        outputs[t] = onnx_add_dim(n, onnx_add_dim(n, shown, 0), 0); /* [1, 1, batch, hidden] */
    }
    return *h != NULL;
}

/* Part `d` of an operand whose first dimension is directions, without that dimension; NULL where the operand
 * is left out. */
static graph_value *of_direction(onnx_node *n, int k, int d)
{
    return onnx_has(n, k) ? onnx_drop_dim(n, onnx_part(n, n->in[k], 0, d, ir_int(n->cx, 1)), 0) : NULL;
}

/* A state of zeros where none is given; batches first, where layout 1 has them so. */
static graph_value *initial(const cells *c, int k, int d)
{
    onnx_node *n = c->n;
    const ir_expr *dim[] = {c->batch, ir_int(n->cx, c->hidden)};
    op_attr attr[] = {op_attr_exprs(n->cx, "shape", dim, 2), op_attr_dtype("dtype", c->t),
                      op_attr_float("value", 0)};

    if (!onnx_has(n, k))
        return onnx_make(n, "fill", NULL, 0, attr, 3);
    if (onnx_int(n, "layout", 0))
        return onnx_drop_dim(n, onnx_part(n, n->in[k], 1, d, ir_int(n->cx, 1)), 1);
    return of_direction(n, k, d);
}

/* x: [steps, batch, input]. The biases of inputs and states are added at once, but for that of a GRU's last
 * gate where its reset comes after. */
static bool open_direction(cells *c, graph_value *x, int d)
{
    onnx_node *n = c->n;
    tec_context *cx = n->cx;
    const ir_expr *width = ir_int(cx, c->gates * c->hidden);
    const ir_expr *rows[2] = {ir_mul(cx, x->type.dim[0], x->type.dim[1]), x->type.dim[2]},
                  *steps[3] = {x->type.dim[0], x->type.dim[1], width};
    graph_value *product = onnx_matmul(n, onnx_reshape(n, x, rows, 2), of_direction(n, 1, d), true),
                *bias = of_direction(n, 3, d);

    c->r = of_direction(n, 2, d);
    c->r_bias = NULL;
    if (bias) {
        graph_value *of_x = onnx_part(n, bias, 0, 0, width),
                    *of_h = onnx_part(n, bias, 0, c->gates * c->hidden, width);

        if (c->gates == 3 && onnx_int(n, "linear_before_reset", 0)) {
            const int64_t none[] = {0}, one[] = {c->hidden};

            c->r_bias = onnx_part(n, of_h, 0, 2 * c->hidden, ir_int(cx, c->hidden));
            of_h = onnx_pad_zeros(n, onnx_part(n, of_h, 0, 0, ir_int(cx, 2 * c->hidden)), none, one);
        }
        product = onnx_binary(n, "add", product, onnx_binary(n, "add", of_x, of_h));
    } else if (c->gates == 3 && onnx_int(n, "linear_before_reset", 0))
        c->r_bias = onnx_scalar(n, c->t, 0);
    c->x = product ? onnx_reshape(n, product, steps, 3) : NULL;
    graph_value *peepholes = c->gates == 4 ? of_direction(n, 7, d) : NULL;
    for (int k = 0; k < 3; k++)
        c->peephole[k] = peepholes ? onnx_part(n, peepholes, 0, k * c->hidden, ir_int(cx, c->hidden)) : NULL;
    return c->x && c->r;
}

/* ---- the operator ---- */

/* Lengths that are all the number of steps say nothing. */
static bool read_lengths(cells *c)
{
    onnx_node *n = c->n;
    const int64_t *given;
    int count = onnx_has(n, 4) ? onnx_constant_ints(n, 4, &given) : 0;
    bool all = count >= 0;

    for (int i = 0; i < count; i++)
        all = all && given[i] == c->steps;
    if (!all)
        c->lengths = onnx_along(n, onnx_cast(n, n->in[4], BASE_I64), 0, 2);
    return all || c->lengths;
}

/* Checks operands and extents. Sequences are written out, so their length must be constant and not too long.
 */
static bool open_cells(onnx_node *n, cells *c, graph_value *x, int gates, int directions)
{
    const op_type *r = &n->in[2]->type;
    int64_t width, count;

    *c = (cells){.n = n,
                 .gates = gates,
                 .functions = gates == 4   ? 3
                              : gates == 3 ? 2
                                           : 1,
                 .t = x->type.dtype};
    if (x->type.n != 3 || r->n != 3 || onnx_rank(n, 1) != 3)
        return onnx_wrong(n, "the operands have %d, %d and %d dimensions, expected 3 each", x->type.n,
                          onnx_rank(n, 1), r->n);
    if (!ir_is_int(r->dim[0], &count) || !ir_is_int(r->dim[1], &width) || !ir_is_int(r->dim[2], &c->hidden))
        return onnx_unsupported(n, "weights of symbolic extents");
    if (count != directions || c->hidden < 1 || width != gates * c->hidden ||
        onnx_int(n, "hidden_size", c->hidden) != c->hidden)
        return onnx_wrong(n, "the weights of the state are %s, expected %d direction%s and %d gates",
                          op_type_text(n->cx, r), directions, directions == 1 ? "" : "s", gates);
    if (!ir_is_int(x->type.dim[0], &c->steps))
        return onnx_unsupported(n, "a sequence of symbolic length");
    if (c->steps < 1 || c->steps > MOST_STEPS)
        return onnx_unsupported(n, "%lld steps; at most %d", (long long)c->steps, MOST_STEPS);
    c->batch = x->type.dim[1];
    return read_lengths(c);
}

/* States of each direction, [1, batch, hidden], as one result; batches first in layout 1. */
static bool set_states(onnx_node *n, int k, graph_value *const *state, int directions)
{
    static const int64_t swap[] = {1, 0, 2};
    graph_value *all = onnx_concat(n, state, directions, 0);

    return onnx_set(n, k, all && onnx_int(n, "layout", 0) ? onnx_transpose(n, all, swap) : all);
}

/* RNN, GRU and LSTM differ in the number of gates; `layout` 1 has batches first. */
static bool recurrent(onnx_node *n, int gates)
{
    static const int64_t swap[] = {1, 0, 2}, batches_first[] = {2, 0, 1, 3};
    const char *direction = onnx_string(n, "direction", "forward");
    int directions = base_same(direction, "bidirectional") ? 2 : 1;
    bool layout = onnx_int(n, "layout", 0) != 0;
    graph_value *x = layout && onnx_rank(n, 0) == 3 ? onnx_transpose(n, n->in[0], swap) : n->in[0], *h[2],
                *cell[2] = {NULL, NULL}, *whole[2];
    cells c;

    if (!x || !open_cells(n, &c, x, gates, directions))
        return false;
    for (int d = 0; d < directions; d++) {
        graph_value **out = base_array(n->cx, graph_value *, c.steps);

        c.first = d * c.functions;
        h[d] = initial(&c, 5, d);
        cell[d] = gates == 4 ? initial(&c, 6, d) : NULL;
        if (!open_direction(&c, x, d) ||
            !run(&c, d == 1 || base_same(direction, "reverse"), &h[d], &cell[d], out))
            return false;
        whole[d] = onnx_concat(n, out, (int)c.steps, 0);
        h[d] = onnx_add_dim(n, h[d], 0);
        cell[d] = onnx_add_dim(n, cell[d], 0);
    }
    graph_value *y = onnx_concat(n, whole, directions, 1);
    y = y && layout ? onnx_transpose(n, y, batches_first) : y;
    return (n->n_out < 1 || onnx_set(n, 0, y)) && (n->n_out < 2 || set_states(n, 1, h, directions)) &&
           (n->n_out < 3 || set_states(n, 2, cell, directions));
}

static bool convert_rnn(onnx_node *n)
{
    return recurrent(n, 1);
}
static bool convert_gru(onnx_node *n)
{
    return recurrent(n, 3);
}
static bool convert_lstm(onnx_node *n)
{
    return recurrent(n, 4);
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
