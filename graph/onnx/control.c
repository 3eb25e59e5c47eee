/* graph/onnx/control.c -- If, Loop and Scan: subgraphs as regions.
 *
 * A subgraph says names of its inputs, not always their shapes. The body of a loop is therefore read with the
 * types of the operands first. Where an output then has another extent than the input that it becomes, that
 * extent is a symbol of the body, and the body is read again:
 *
 *     cache: f32[1, 4] goes in, the body gives f32[2, 4]   =>   input cache: f32[n, 4], output f32[n + 1, 4]
 *
 * Each reading makes at least one more extent a symbol, so that there are at most as many readings as
 * extents.
 */
#include <string.h>

#include "graph/onnx/compose.h"
#include "graph/program.h"
#include "graph/scope.h"
#include "ir/reason/facts.h"

/* ---- If ---- */

/* The outputs of a subgraph become those of the open region, which is closed. NULL: see onnx_subgraph. */
static graph_body *read_branch(onnx_node *node, const char *attribute)
{
    const Onnx__GraphProto *g = onnx_attr(node, attribute)->g;

    graph_region_open(node->im->f);
    graph_value **out = onnx_subgraph(node->im, g, NULL, 0);
    for (size_t k = 0; out && k < g->n_output; k++)
        graph_output(node->im->f, g->output[k]->name, out[k]);
    graph_body *body = graph_region_close(node->im->f);
    return out ? body : NULL;
}

/* The branch of a condition that is known while importing, as nodes of the graph around it. */
static bool inline_branch(onnx_node *node, const char *attribute)
{
    const Onnx__GraphProto *g = onnx_attr(node, attribute)->g;
    graph_value **out = onnx_subgraph(node->im, g, NULL, 0);

    for (int k = 0; out && k < node->n_out; k++)
        onnx_set(node, k, out[k]);
    return out ? true : onnx_skip(node);
}

static bool set_results(onnx_node *source, const graph_node *node)
{
    for (int k = 0; node && k < source->n_out; k++)
        onnx_set(source, k, node->out[k]);
    return node != NULL;
}

/* A condition of shape [] or [1] as bool[]. */
static graph_value *truth(onnx_node *node, graph_value *value)
{
    return value && value->type.n == 1 ? onnx_reshape(node, value, NULL, 0) : value;
}

/* Both branches are read even where one is not supported, so that all that is missing is named. */
static bool convert_if(onnx_node *node)
{
    const Onnx__GraphProto *then = onnx_attr(node, "then_branch")->g,
                           *otherwise = onnx_attr(node, "else_branch")->g;
    double known;

    if (then->n_output != otherwise->n_output || (int)then->n_output != node->n_out)
        return onnx_wrong(node, "expected %d values of each branch, found %zu and %zu", node->n_out,
                          then->n_output, otherwise->n_output);
    if (onnx_constant_float(node, 0, &known))
        return inline_branch(node, known != 0 ? "then_branch" : "else_branch");
    graph_value *condition = truth(node, node->in[0]);
    graph_body *yes = read_branch(node, "then_branch"), *no = read_branch(node, "else_branch");
    if (base_failed(node->cx))
        return false;
    return yes && no ? set_results(node, graph_add_if(node->im->f, node->name, condition, yes, no))
                     : onnx_skip(node);
}

/* ---- what goes around ---- */

/* Values that a body hands to its next run: their types as far as they are known, and which extents change.
 */
typedef struct {
    int n;
    graph_value **in; /* what the first run gets */
    bool **changes;   /* for each of them and each axis */
} carried;

static carried carry(onnx_node *node, graph_value **in, int count)
{
    carried c = {count, in, base_array(node->cx, bool *, count)};

    for (int k = 0; k < count; k++)
        c.changes[k] = base_array(node->cx, bool, in[k]->type.n);
    return c;
}

/* Inputs of the open region for the carried values; an extent that changes is a symbol of the region. */
static void add_carried_inputs(onnx_node *node, const carried *self, Onnx__ValueInfoProto *const *info,
                               graph_value **out)
{
    graph_function *function = node->im->f;

    for (int k = 0; k < self->n; k++) {
        op_type t = self->in[k]->type;
        const ir_expr **dim = base_copy(node->cx, t.dim, (size_t)t.n * sizeof *dim);

        for (int d = 0; d < t.n; d++)
            if (self->changes[k][d])
                dim[d] = graph_symbol_in(node->im->m, function->body, NULL);
        t.dim = dim;
        out[k] = graph_input(function, info[k]->name, t);
    }
}

/* Notes the extents in which the body's outputs differ from its inputs. *more: there are new ones. False with
 * an error where the types differ in more than extents. */
static bool compare_carried(onnx_node *node, const graph_body *body, carried *self, graph_value *const *in,
                            graph_value *const *out, bool *more)
{
    const ir_facts *facts = graph_facts_in(node->im->m, body);

    for (int k = 0; k < self->n; k++) {
        const op_type *from = &in[k]->type, *to = &out[k]->type;

        if (!base_dtype_same(from->dtype, to->dtype) || from->n != to->n)
            return onnx_wrong(node, "its body takes value %d as %s, but gives it as %s", k,
                              op_type_text(node->cx, from), op_type_text(node->cx, to));
        for (int d = 0; d < from->n; d++)
            if (!self->changes[k][d] && !ir_prove(facts, ir_eq(node->cx, from->dim[d], to->dim[d])))
                self->changes[k][d] = *more = true;
    }
    return true;
}

/* ---- Loop ---- */

/* A scalar input of the open region, under the name and with the rank (0 or 1) that the subgraph declares. */
static graph_value *scalar_input(onnx_node *node, const Onnx__ValueInfoProto *info, base_dtype dtype)
{
    const Onnx__TypeProto *type = info->type;
    graph_value *v = graph_input(node->im->f, info->name, (op_type){.dtype = dtype});
    const ir_expr *one = ir_int(node->cx, 1);
    bool vector =
        type && type->tensor_type && type->tensor_type->shape && type->tensor_type->shape->n_dim == 1;

    return vector ? onnx_reshape(node, v, &one, 1) : v;
}

/* The number of an iteration is known as a symbol of the body, so that slices and shapes may be computed from
 * it. */
static graph_value *number_input(onnx_node *node, const Onnx__ValueInfoProto *info)
{
    graph_value *number = scalar_input(node, info, BASE_I64);

    return number && onnx_as_symbols(node, number) ? number : NULL;
}

/* One reading of a loop's body. NULL: see onnx_subgraph. `more`: the types of what is carried are to be
 * looked for again. */
static graph_body *read_loop(onnx_node *node, const Onnx__GraphProto *GraphProto, carried *self, bool *more)
{
    graph_function *function = node->im->f;
    graph_value **in = base_array(node->cx, graph_value *, self->n + 2);

    graph_region_open(function);
    in[0] = number_input(node, GraphProto->input[0]);
    in[1] = scalar_input(node, GraphProto->input[1], BASE_BOOL);
    add_carried_inputs(node, self, GraphProto->input + 2, in + 2);
    graph_value **out = onnx_subgraph(node->im, GraphProto, in, self->n + 2);
    if (out && compare_carried(node, function->body, self, in + 2, out + 1, more) && !*more) {
        graph_output(function, GraphProto->output[0]->name, truth(node, out[0]));
        for (size_t k = 1; k < GraphProto->n_output; k++)
            graph_output(function, GraphProto->output[k]->name, out[k]);
    }
    graph_body *body = graph_region_close(function);
    return out && !base_failed(node->cx) ? body : NULL;
}

/* M and cond may have the shape [1]; each may be left out. */
static bool convert_loop(onnx_node *node)
{
    const Onnx__GraphProto *g = onnx_attr(node, "body")->g;
    int count = node->n_in > 2 ? node->n_in - 2 : 0;
    bool more = true;
    graph_body *body = NULL;

    if ((int)g->n_input != count + 2 || (int)g->n_output < count + 1 || (int)g->n_output != node->n_out + 1)
        return onnx_wrong(node, "its body has %zu inputs and %zu outputs, expected %d and %d", g->n_input,
                          g->n_output, count + 2, node->n_out + 1);
    graph_value **in = base_array(node->cx, graph_value *, count + 2);
    in[0] = onnx_has(node, 0) ? truth(node, node->in[0]) : NULL;
    in[1] = onnx_has(node, 1) ? truth(node, node->in[1]) : NULL;
    for (int k = 0; k < count; k++)
        if (!(in[2 + k] = node->in[2 + k]))
            return onnx_wrong(node, "operand %d is missing", 2 + k);
    carried c = carry(node, in + 2, count);
    while (more) {
        more = false;
        body = read_loop(node, g, &c, &more);
        if (!body)
            return base_failed(node->cx) ? false : onnx_skip(node);
    }
    return set_results(node, graph_add_loop(node->im->f, node->name, in, count + 2, body));
}

/* ---- Scan ---- */

/* An entry of a list of ints that may be left out; 0 where it is. */
static int64_t entry(const onnx_node *node, const char *name, int k)
{
    const int64_t *list;
    int count = onnx_ints(node, name, &list);

    return k < count ? list[k] : 0;
}

/* The value with its axis `from` moved to `to`. */
static graph_value *move_axis(onnx_node *node, graph_value *value, int64_t from, int64_t to)
{
    int rank = value->type.n;
    int64_t *perm = base_array(node->cx, int64_t, rank);

    for (int64_t d = 0, k = 0; d < rank; d++)
        if (d != to) {
            k += k == from;
            perm[d] = k++;
        }
    perm[to] = from;
    return from == to ? value : onnx_transpose(node, value, perm);
}

/* A value backwards along its first axis. */
static graph_value *reversed(onnx_node *node, graph_value *value)
{
    tec_context *cx = node->cx;
    int rank = value->type.n;
    const ir_expr **begin = base_array(cx, const ir_expr *, rank);
    int64_t *step = base_array(cx, int64_t, rank);

    for (int d = 0; d < rank; d++) {
        begin[d] = d ? ir_int(cx, 0) : ir_sub(cx, value->type.dim[0], ir_int(cx, 1));
        step[d] = d ? 1 : -1;
    }
    return onnx_slice(node, value, begin, value->type.dim, step);
}

/* A sequence with the scanned axis first, in the order in which the elements are met. */
static graph_value *as_sequence(onnx_node *node, int index, graph_value *value)
{
    int64_t axis;

    if (value->type.n < 1) {
        onnx_wrong(node, "sequence %d is %s, expected at least one dimension", index,
                   op_type_text(node->cx, &value->type));
        return NULL;
    }
    if (!onnx_axis(node, entry(node, "scan_input_axes", index), value->type.n, &axis))
        return NULL;
    value = move_axis(node, value, axis, 0);
    return value && entry(node, "scan_input_directions", index) ? reversed(node, value) : value;
}

/* The results of a Scan are stacked along the first dimension; attributes ask for another axis or the
 * reversed order. */
static graph_value *from_sequence(onnx_node *node, int k, graph_value *value)
{
    int64_t axis;

    if (!onnx_axis(node, entry(node, "scan_output_axes", k), value->type.n, &axis))
        return NULL;
    if (entry(node, "scan_output_directions", k))
        value = reversed(node, value);
    return value ? move_axis(node, value, 0, axis) : NULL;
}

/* One reading of a scan's body: states, then an element of each sequence. */
static graph_body *read_scan(onnx_node *node, const Onnx__GraphProto *GraphProto, carried *self,
                             graph_value *const *sequence, int n_sequences, bool *more)
{
    graph_function *function = node->im->f;
    graph_value **in = base_array(node->cx, graph_value *, self->n + n_sequences);

    graph_region_open(function);
    add_carried_inputs(node, self, GraphProto->input, in);
    for (int k = 0; k < n_sequences; k++) {
        const op_type *type = &sequence[k]->type;

        in[self->n + k] = graph_input(function, GraphProto->input[self->n + k]->name,
                                      (op_type){type->dtype, type->n - 1, type->dim + 1});
    }
    graph_value **out = onnx_subgraph(node->im, GraphProto, in, self->n + n_sequences);
    if (out && compare_carried(node, function->body, self, in, out, more) && !*more)
        for (size_t k = 0; k < GraphProto->n_output; k++)
            graph_output(function, GraphProto->output[k]->name, out[k]);
    graph_body *body = graph_region_close(function);
    return out && !base_failed(node->cx) ? body : NULL;
}

/* The node over states and sequences. Its body is read until the states have the same types before and behind
 * it. NULL: see onnx_subgraph. */
static graph_node *add_scan(onnx_node *source, graph_value **in, int count, int states)
{
    const Onnx__GraphProto *g = onnx_attr(source, "body")->g;
    carried c = carry(source, in, states);
    graph_body *body = NULL;

    for (bool more = true; more;) {
        more = false;
        body = read_scan(source, g, &c, in + states, count - states, &more);
        if (!body)
            return NULL;
    }
    return graph_add_scan(source->im->f, source->name, in, count, states, body);
}

/* Whether the subgraph takes and gives as many values as the node has operands and results. */
static bool check_scan(onnx_node *source, int count, int states, int n_sequences)
{
    const Onnx__GraphProto *g = onnx_attr(source, "body")->g;

    if (n_sequences < 1 || states < 0 || states > source->n_out || (int)g->n_input != count ||
        (int)g->n_output != source->n_out)
        return onnx_wrong(
            source, "%d operands with %d sequences, %d results; its body has %zu inputs and %zu outputs",
            count, n_sequences, source->n_out, g->n_input, g->n_output);
    return true;
}

/* States first, then sequences, whose scanned axis is moved to the front and back. */
static bool convert_scan(onnx_node *source)
{
    int n_sequences = (int)onnx_int(source, "num_scan_inputs", 0), states = source->n_in - n_sequences;

    if (!check_scan(source, source->n_in, states, n_sequences))
        return false;
    graph_value **in = base_array(source->cx, graph_value *, source->n_in);
    for (int k = 0; k < source->n_in; k++) {
        in[k] = k < states ? source->in[k] : as_sequence(source, k - states, source->in[k]);
        if (!in[k])
            return false;
    }
    graph_node *node = add_scan(source, in, source->n_in, states);
    if (!node)
        return base_failed(source->cx) ? false : onnx_skip(source);
    for (int k = 0; k < source->n_out; k++) {
        graph_value *value = k < states ? node->out[k] : from_sequence(source, k - states, node->out[k]);

        if (!onnx_set(source, k, value))
            return false;
    }
    return true;
}

/* Inputs of the open region: what one member of the batch has of each operand. Sequences are given in the
 * order in which they are met. */
static bool open_member(onnx_node *source, graph_value *const *in, int count, int states, graph_value **out)
{
    for (int k = 0; k < count; k++) {
        const op_type *type = &in[k]->type;

        out[k] = graph_input(source->im->f, "member", (op_type){type->dtype, type->n - 1, type->dim + 1});
        if (k >= states && type->n < 2)
            return onnx_wrong(source, "sequence %d is %s, expected a batch of sequences", k - states,
                              op_type_text(source->cx, type));
        if (k >= states && entry(source, "directions", k - states))
            out[k] = reversed(source, out[k]);
    }
    return true;
}

/* Until opset 8 all operands have a batch as their first dimension: a scan over the batch, whose body is the
 * scan over the sequences. Lengths of the members' sequences, the first operand, are not supported. */
static bool convert_scan_of_batch(onnx_node *source)
{
    int n_sequences = (int)onnx_int(source, "num_scan_inputs", 0), count = source->n_in - 1,
        states = count - n_sequences;
    graph_function *function = source->im->f;
    graph_value **in = base_array(source->cx, graph_value *, count + 1);

    if (onnx_has(source, 0))
        return onnx_unsupported(source, "lengths of sequences");
    if (!check_scan(source, count, states, n_sequences))
        return false;
    for (int k = 0; k < count; k++)
        if (!source->in[k + 1] || source->in[k + 1]->type.n < 1)
            return onnx_wrong(source, "operand %d has no batch", k + 1);
    graph_region_open(function);
    graph_node *inner =
        open_member(source, source->in + 1, count, states, in) ? add_scan(source, in, count, states) : NULL;
    for (int k = 0; inner && k < source->n_out; k++)
        graph_output(function, "member", inner->out[k]);
    graph_body *body = graph_region_close(function);
    if (!inner)
        return base_failed(source->cx) ? false : onnx_skip(source);
    return set_results(source, graph_add_scan(function, source->name, source->in + 1, count, 0, body));
}

static const onnx_row rows[] = {
    {"If", convert_if, 1, 0, "1>0-* !else_branch:g !then_branch:g", NULL},
    /* Operands that are left out are allowed, which `*` would refuse. */
    {"Loop", convert_loop, 1, 0, "0-1000000>0-1000000 !body:g", NULL},
    {"Scan", convert_scan_of_batch, 8, 8, "0-1000000>0-1000000 !body:g !num_scan_inputs:i directions:I",
     NULL},
    {"Scan", convert_scan, 9, 0,
     "0-*>0-* !body:g !num_scan_inputs:i scan_input_axes:I scan_input_directions:I scan_output_axes:I "
     "scan_output_directions:I",
     NULL},
};
const onnx_rows onnx_control_rows = {rows, BASE_COUNT(rows)};
