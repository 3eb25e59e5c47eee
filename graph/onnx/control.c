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
static graph_body *read_branch(onnx_node *n, const char *attribute)
{
    const Onnx__GraphProto *g = onnx_attr(n, attribute)->g;

    graph_region_open(n->im->f);
    graph_value **out = onnx_subgraph(n->im, g, NULL, 0);
    for (size_t k = 0; out && k < g->n_output; k++)
        graph_output(n->im->f, g->output[k]->name, out[k]);
    graph_body *body = graph_region_close(n->im->f);
    return out ? body : NULL;
}

/* The branch of a condition that is known while importing, as nodes of the graph around it. */
static bool inline_branch(onnx_node *n, const char *attribute)
{
    const Onnx__GraphProto *g = onnx_attr(n, attribute)->g;
    graph_value **out = onnx_subgraph(n->im, g, NULL, 0);

    for (int k = 0; out && k < n->n_out; k++)
        onnx_set(n, k, out[k]);
    return out ? true : onnx_skip(n);
}

static bool set_results(onnx_node *n, const graph_node *node)
{
    for (int k = 0; node && k < n->n_out; k++)
        onnx_set(n, k, node->out[k]);
    return node != NULL;
}

/* A condition of shape [] or [1] as bool[]. */
static graph_value *truth(onnx_node *n, graph_value *v)
{
    return v && v->type.n == 1 ? onnx_reshape(n, v, NULL, 0) : v;
}

/* Both branches are read even where one is not supported, so that all that is missing is named. */
static bool convert_if(onnx_node *n)
{
    const Onnx__GraphProto *then = onnx_attr(n, "then_branch")->g,
                           *otherwise = onnx_attr(n, "else_branch")->g;
    double known;

    if (then->n_output != otherwise->n_output || (int)then->n_output != n->n_out)
        return onnx_wrong(n, "the branches give %zu and %zu values, expected %d", then->n_output,
                          otherwise->n_output, n->n_out);
    if (onnx_constant_float(n, 0, &known))
        return inline_branch(n, known != 0 ? "then_branch" : "else_branch");
    graph_value *condition = truth(n, n->in[0]);
    graph_body *yes = read_branch(n, "then_branch"), *no = read_branch(n, "else_branch");
    if (base_failed(n->cx))
        return false;
    return yes && no ? set_results(n, graph_add_if(n->im->f, n->name, condition, yes, no)) : onnx_skip(n);
}

/* ---- what goes around ---- */

/* Values that a body hands to its next run: their types as far as they are known, and which extents change.
 */
typedef struct {
    int n;
    graph_value **in; /* what the first run gets */
    bool **changes;   /* for each of them and each axis */
} carried;

static carried carry(onnx_node *n, graph_value **in, int count)
{
    carried c = {count, in, base_array(n->cx, bool *, count)};

    for (int k = 0; k < count; k++)
        c.changes[k] = base_array(n->cx, bool, in[k]->type.n);
    return c;
}

/* Inputs of the open region for the carried values; an extent that changes is a symbol of the region. */
static void add_carried_inputs(onnx_node *n, const carried *c, Onnx__ValueInfoProto *const *info,
                               graph_value **out)
{
    graph_function *f = n->im->f;

    for (int k = 0; k < c->n; k++) {
        op_type t = c->in[k]->type;
        const ir_expr **dim = base_copy(n->cx, t.dim, (size_t)t.n * sizeof *dim);

        for (int d = 0; d < t.n; d++)
            if (c->changes[k][d])
                dim[d] = graph_symbol_in(n->im->m, f->body, NULL);
        t.dim = dim;
        out[k] = graph_input(f, info[k]->name, t);
    }
}

/* Notes the extents in which the body's outputs differ from its inputs. *more: there are new ones. False with
 * an error where the types differ in more than extents. */
static bool compare_carried(onnx_node *n, const graph_body *body, carried *c, graph_value *const *in,
                            graph_value *const *out, bool *more)
{
    const ir_facts *facts = graph_facts_in(n->im->m, body);

    for (int k = 0; k < c->n; k++) {
        const op_type *from = &in[k]->type, *to = &out[k]->type;

        if (!base_dtype_same(from->dtype, to->dtype) || from->n != to->n)
            return onnx_wrong(n, "its body takes value %d as %s and gives %s", k, op_type_text(n->cx, from),
                              op_type_text(n->cx, to));
        for (int d = 0; d < from->n; d++)
            if (!c->changes[k][d] && !ir_prove(facts, ir_eq(n->cx, from->dim[d], to->dim[d])))
                c->changes[k][d] = *more = true;
    }
    return true;
}

/* ---- Loop ---- */

/* A scalar input of the open region, under the name and with the rank (0 or 1) that the subgraph declares. */
static graph_value *scalar_input(onnx_node *n, const Onnx__ValueInfoProto *info, base_dtype t)
{
    const Onnx__TypeProto *type = info->type;
    graph_value *v = graph_input(n->im->f, info->name, (op_type){.dtype = t});
    const ir_expr *one = ir_int(n->cx, 1);
    bool vector =
        type && type->tensor_type && type->tensor_type->shape && type->tensor_type->shape->n_dim == 1;

    return vector ? onnx_reshape(n, v, &one, 1) : v;
}

/* The number of an iteration is known as a symbol of the body, so that slices and shapes may be computed from
 * it. */
static graph_value *number_input(onnx_node *n, const Onnx__ValueInfoProto *info)
{
    graph_value *number = scalar_input(n, info, BASE_I64);

    return number && onnx_as_symbols(n, number) ? number : NULL;
}

/* One reading of a loop's body. NULL: see onnx_subgraph. `more`: the types of what is carried are to be
 * looked for again. */
static graph_body *read_loop(onnx_node *n, const Onnx__GraphProto *g, carried *c, bool *more)
{
    graph_function *f = n->im->f;
    graph_value **in = base_array(n->cx, graph_value *, c->n + 2);

    graph_region_open(f);
    in[0] = number_input(n, g->input[0]);
    in[1] = scalar_input(n, g->input[1], BASE_BOOL);
    add_carried_inputs(n, c, g->input + 2, in + 2);
    graph_value **out = onnx_subgraph(n->im, g, in, c->n + 2);
    if (out && compare_carried(n, f->body, c, in + 2, out + 1, more) && !*more) {
        graph_output(f, g->output[0]->name, truth(n, out[0]));
        for (size_t k = 1; k < g->n_output; k++)
            graph_output(f, g->output[k]->name, out[k]);
    }
    graph_body *body = graph_region_close(f);
    return out && !base_failed(n->cx) ? body : NULL;
}

/* M and cond may have the shape [1]; each may be left out. */
static bool convert_loop(onnx_node *n)
{
    const Onnx__GraphProto *g = onnx_attr(n, "body")->g;
    int count = n->n_in > 2 ? n->n_in - 2 : 0;
    bool more = true;
    graph_body *body = NULL;

    if ((int)g->n_input != count + 2 || (int)g->n_output < count + 1 || (int)g->n_output != n->n_out + 1)
        return onnx_wrong(n, "its body has %zu inputs and %zu outputs, expected %d and %d", g->n_input,
                          g->n_output, count + 2, n->n_out + 1);
    graph_value **in = base_array(n->cx, graph_value *, count + 2);
    in[0] = onnx_has(n, 0) ? truth(n, n->in[0]) : NULL;
    in[1] = onnx_has(n, 1) ? truth(n, n->in[1]) : NULL;
    for (int k = 0; k < count; k++)
        if (!(in[2 + k] = n->in[2 + k]))
            return onnx_wrong(n, "operand %d is missing", 2 + k);
    carried c = carry(n, in + 2, count);
    while (more) {
        more = false;
        body = read_loop(n, g, &c, &more);
        if (!body)
            return base_failed(n->cx) ? false : onnx_skip(n);
    }
    return set_results(n, graph_add_loop(n->im->f, n->name, in, count + 2, body));
}

/* ---- Scan ---- */

/* An entry of a list of ints that may be left out; 0 where it is. */
static int64_t entry(const onnx_node *n, const char *name, int k)
{
    const int64_t *list;
    int count = onnx_ints(n, name, &list);

    return k < count ? list[k] : 0;
}

/* The value with its axis `from` moved to `to`. */
static graph_value *move_axis(onnx_node *n, graph_value *v, int64_t from, int64_t to)
{
    int rank = v->type.n;
    int64_t *perm = base_array(n->cx, int64_t, rank);

    for (int64_t d = 0, k = 0; d < rank; d++)
        if (d != to) {
            k += k == from;
            perm[d] = k++;
        }
    perm[to] = from;
    return from == to ? v : onnx_transpose(n, v, perm);
}

/* A value backwards along its first axis. */
static graph_value *reversed(onnx_node *n, graph_value *v)
{
    tec_context *cx = n->cx;
    int rank = v->type.n;
    const ir_expr **begin = base_array(cx, const ir_expr *, rank);
    int64_t *step = base_array(cx, int64_t, rank);

    for (int d = 0; d < rank; d++) {
        begin[d] = d ? ir_int(cx, 0) : ir_sub(cx, v->type.dim[0], ir_int(cx, 1));
        step[d] = d ? 1 : -1;
    }
    return onnx_slice(n, v, begin, v->type.dim, step);
}

/* A sequence with the scanned axis first, in the order in which the elements are met. */
static graph_value *as_sequence(onnx_node *n, int k, graph_value *v)
{
    int64_t axis;

    if (v->type.n < 1) {
        onnx_wrong(n, "sequence %d is %s, expected at least one dimension", k, op_type_text(n->cx, &v->type));
        return NULL;
    }
    if (!onnx_axis(n, entry(n, "scan_input_axes", k), v->type.n, &axis))
        return NULL;
    v = move_axis(n, v, axis, 0);
    return v && entry(n, "scan_input_directions", k) ? reversed(n, v) : v;
}

static graph_value *from_sequence(onnx_node *n, int k, graph_value *v)
{
    int64_t axis;

    if (!onnx_axis(n, entry(n, "scan_output_axes", k), v->type.n, &axis))
        return NULL;
    if (entry(n, "scan_output_directions", k))
        v = reversed(n, v);
    return v ? move_axis(n, v, 0, axis) : NULL;
}

/* One reading of a scan's body: states, then an element of each sequence. */
static graph_body *read_scan(onnx_node *n, const Onnx__GraphProto *g, carried *c,
                             graph_value *const *sequence, int n_sequences, bool *more)
{
    graph_function *f = n->im->f;
    graph_value **in = base_array(n->cx, graph_value *, c->n + n_sequences);

    graph_region_open(f);
    add_carried_inputs(n, c, g->input, in);
    for (int k = 0; k < n_sequences; k++) {
        const op_type *t = &sequence[k]->type;

        in[c->n + k] = graph_input(f, g->input[c->n + k]->name, (op_type){t->dtype, t->n - 1, t->dim + 1});
    }
    graph_value **out = onnx_subgraph(n->im, g, in, c->n + n_sequences);
    if (out && compare_carried(n, f->body, c, in, out, more) && !*more)
        for (size_t k = 0; k < g->n_output; k++)
            graph_output(f, g->output[k]->name, out[k]);
    graph_body *body = graph_region_close(f);
    return out && !base_failed(n->cx) ? body : NULL;
}

/* The states' types are found by reading the body until they are the same before and after it. */
static bool convert_scan(onnx_node *n)
{
    const Onnx__GraphProto *g = onnx_attr(n, "body")->g;
    int n_sequences = (int)onnx_int(n, "num_scan_inputs", 0), states = n->n_in - n_sequences;
    bool more = true;
    graph_body *body = NULL;

    if (n_sequences < 1 || states < 0 || states > n->n_out || (int)g->n_input != n->n_in ||
        (int)g->n_output != n->n_out)
        return onnx_wrong(
            n, "%d operands with %d sequences, %d results; its body has %zu inputs and %zu outputs", n->n_in,
            n_sequences, n->n_out, g->n_input, g->n_output);
    graph_value **in = base_array(n->cx, graph_value *, n->n_in);
    for (int k = 0; k < n->n_in; k++) {
        in[k] = k < states ? n->in[k] : as_sequence(n, k - states, n->in[k]);
        if (!in[k])
            return false;
    }
    carried c = carry(n, in, states);
    while (more) {
        more = false;
        body = read_scan(n, g, &c, in + states, n_sequences, &more);
        if (!body)
            return base_failed(n->cx) ? false : onnx_skip(n);
    }
    graph_node *node = graph_add_scan(n->im->f, n->name, in, n->n_in, states, body);
    for (int k = 0; node && k < n->n_out; k++) {
        graph_value *v = k < states ? node->out[k] : from_sequence(n, k - states, node->out[k]);

        if (!onnx_set(n, k, v))
            return false;
    }
    return node != NULL;
}

static const onnx_row rows[] = {
    {"If", convert_if, 1, 0, "1>0-* !else_branch:g !then_branch:g", NULL},
    /* Operands that are left out are allowed, which `*` would refuse. */
    {"Loop", convert_loop, 1, 0, "0-1000000>0-1000000 !body:g", NULL},
    {"Scan", convert_scan, 9, 0,
     "0-*>0-* !body:g !num_scan_inputs:i scan_input_axes:I scan_input_directions:I scan_output_axes:I "
     "scan_output_directions:I",
     NULL},
};
const onnx_rows onnx_control_rows = {rows, BASE_COUNT(rows)};
