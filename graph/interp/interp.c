/* graph/interp/interp.c -- functions, regions and nodes: what runs in which order. Operators are in op.c,
 * values and symbols in frame.c. */
#include "graph/interp/frame.h"
#include "graph/rules.h"

#include <string.h>

static bool run_body(interp_frame *frame, base_loc loc, interp_value *const *in, interp_value **out);

static bool fail_at(const interp_frame *frame, const graph_node *node, const char *what)
{
    base_fail(frame->in->cx, TEC_INVALID, node->loc, "'%s': %s", node->name, what);
    return false;
}

/* ---- calls ---- */

/* The depth is limited because this interpreter recurses on the C stack; the VM does not. */
static bool run_function(interp *in, const graph_function *fn, base_loc loc, interp_value *const *given,
                         interp_value **out)
{
    interp_frame f = {.in = in, .body = fn->body};

    if (in->depth_left == 0) {
        base_fail(in->cx, TEC_INVALID, loc, "calls nest too deeply, in a call of '%s'", fn->name);
        return false;
    }
    in->depth_left--;
    bool ok = run_body(&f, loc, given, out);
    in->depth_left++;
    return ok;
}

static bool run_call(interp_frame *frame, const graph_node *node, interp_value *const *in, interp_value **out)
{
    return run_function(frame->in, graph_find_function(frame->in->m, node->callee), node->loc, in, out);
}

/* A closure is a tuple of the arguments given so far, with the function: applying it appends the rest. */
static bool run_closure(interp_frame *frame, const graph_node *node, interp_value *const *in,
                        interp_value **out)
{
    out[0] = interp_tuple(frame->in->cx, in, node->n_in);
    out[0]->kind = INTERP_CLOSURE;
    out[0]->function = graph_find_function(frame->in->m, node->callee);
    return true;
}

/* The arguments of the closure come first, then those of the node. */
static bool run_apply(interp_frame *frame, const graph_node *node, interp_value *const *in,
                      interp_value **out)
{
    const interp_value *c = in[0];
    interp_value **all = base_array(frame->in->cx, interp_value *, c->n + node->n_in);

    for (int k = 0; k < c->n; k++)
        all[k] = c->part[k];
    for (int k = 1; k < node->n_in; k++)
        all[c->n + k - 1] = in[k];
    return run_function(frame->in, c->function, node->loc, all, out);
}

/* ---- regions ---- */

static bool run_region(interp_frame *frame, const graph_node *node, int which, interp_value *const *in,
                       interp_value **out)
{
    interp_frame inner = {.in = frame->in, .body = node->body[which], .outer = frame};

    return run_body(&inner, node->loc, in, out);
}

static bool truth(const interp_value *value)
{
    return *(const uint8_t *)value->array.data != 0;
}

static bool run_if(interp_frame *frame, const graph_node *node, interp_value *const *in, interp_value **out)
{
    return run_region(frame, node, truth(in[0]) ? 0 : 1, NULL, out);
}

static bool run_match(interp_frame *frame, const graph_node *node, interp_value *const *in,
                      interp_value **out)
{
    return run_region(frame, node, in[0]->which, in[0]->part, out);
}

/* One tensor of all elements, behind each other; where there is none, the type of the result tells the
 * extents. */
static interp_value *stack(interp_frame *frame, const graph_node *node, int index, const base_vec *elements)
{
    const op_type *type = &node->out[index]->type;
    const interp_value *first = elements->n ? elements->at[0] : NULL;
    int64_t shape[IR_MAX_DIMS] = {elements->n};

    for (int d = 1; d < type->n; d++)
        if (first)
            shape[d] = first->array.shape[d - 1];
        else if (!interp_extent(frame, node->loc, type->dim[d], &shape[d]))
            return NULL;
    interp_value *value = interp_tensor(frame->in->cx, type->dtype, type->n, shape, NULL);
    size_t size = elements->n ? (size_t)interp_count(&value->array) / (size_t)elements->n *
                                    (size_t)base_dtype_bytes(type->dtype)
                              : 0;
    for (int i = 0; i < elements->n; i++)
        memcpy((char *)value->array.data + (size_t)i * size,
               ((const interp_value *)elements->at[i])->array.data, size);
    return value;
}

static bool stack_all(interp_frame *frame, const graph_node *node, int first, const base_vec *collected,
                      interp_value **out)
{
    for (int k = first; k < node->n_out; k++)
        if (!(out[k] = stack(frame, node, k, &collected[k])))
            return false;
    return true;
}

static interp_value *scalar(interp *in, base_dtype dtype, int64_t value)
{
    return interp_tensor(in->cx, dtype, 0, NULL, &value); /* little endian: the first bytes are the value */
}

/* in and out of the body: (i, condition, carried...) and (condition, carried..., collected...). */
static bool run_loop(interp_frame *frame, const graph_node *node, interp_value *const *in, interp_value **out)
{
    tec_context *cx = frame->in->cx;
    int carried = node->n_in - 2, n_out = node->n_out;
    int64_t most = in[0] ? *(const int64_t *)in[0]->array.data : INT64_MAX;
    interp_value **given = base_array(cx, interp_value *, 2 + carried),
                 **made = base_array(cx, interp_value *, 1 + n_out);
    base_vec *collected = base_array(cx, base_vec, n_out);

    given[1] = in[1] ? in[1] : scalar(frame->in, BASE_BOOL, 1);
    memcpy(given + 2, in + 2, (size_t)carried * sizeof *in);
    for (int64_t i = 0; i < most && truth(given[1]); i++) {
        given[0] = scalar(frame->in, BASE_I64, i);
        if (!run_region(frame, node, 0, given, made))
            return false;
        memcpy(given + 1, made, (size_t)(1 + carried) * sizeof *made);
        for (int k = carried; k < n_out; k++)
            base_push(cx, &collected[k], made[1 + k]);
    }
    memcpy(out, given + 2, (size_t)carried * sizeof *given);
    return stack_all(frame, node, carried, collected, out);
}

/* Element i along the first dimension, as a copy without that dimension. */
static interp_value *row(interp *in, const interp_value *value, int64_t i)
{
    interp_value *r =
        interp_tensor(in->cx, value->array.dtype, value->array.n - 1, value->array.shape + 1, NULL);
    size_t size = (size_t)interp_count(&r->array) * (size_t)base_dtype_bytes(value->array.dtype);

    memcpy(r->array.data, (const char *)value->array.data + (size_t)i * size, size);
    return r;
}

/* One element of each sequence per iteration; what the body gives beside the states is stacked at the end. */
static bool run_scan(interp_frame *frame, const graph_node *node, interp_value *const *in, interp_value **out)
{
    tec_context *cx = frame->in->cx;
    int states = (int)graph_attribute(node, "states")->i, n_out = node->n_out;
    int64_t length = in[states]->array.shape[0];
    interp_value **given = base_array(cx, interp_value *, node->n_in),
                 **made = base_array(cx, interp_value *, n_out);
    base_vec *collected = base_array(cx, base_vec, n_out);

    memcpy(given, in, (size_t)states * sizeof *in);
    for (int k = states; k < node->n_in; k++)
        if (in[k]->array.shape[0] != length)
            return fail_at(frame, node,
                           base_format(cx, "sequence %d has %lld elements, expected %lld", k - states,
                                       (long long)in[k]->array.shape[0], (long long)length));
    for (int64_t i = 0; i < length; i++) {
        for (int k = states; k < node->n_in; k++)
            given[k] = row(frame->in, in[k], i);
        if (!run_region(frame, node, 0, given, made))
            return false;
        memcpy(given, made, (size_t)states * sizeof *made);
        for (int k = states; k < n_out; k++)
            base_push(cx, &collected[k], made[k]);
    }
    memcpy(out, given, (size_t)states * sizeof *given);
    return stack_all(frame, node, states, collected, out);
}

/* ---- nodes ---- */

static bool run_check(interp_frame *frame, const graph_node *node, interp_value *const *in)
{
    return truth(in[0]) || fail_at(frame, node, graph_attribute(node, "message")->string);
}

/* Element i of a vector of integers. */
static int64_t integer_at(const ir_array *array, int i)
{
    switch (array->dtype.bits) {
    case 64: return ((const int64_t *)array->data)[i];
    case 32: return ((const int32_t *)array->data)[i];
    case 16: return ((const int16_t *)array->data)[i];
    default: return ((const int8_t *)array->data)[i];
    }
}

/* Makes elements of a tensor the values of symbols, as a shape that is computed at run time needs. */
static bool run_extents(interp_frame *frame, const graph_node *node, interp_value *const *in)
{
    for (int i = 0; i < node->n_symbols; i++) {
        int64_t n = integer_at(&in[0]->array, i);

        if (n < 0)
            return fail_at(frame, node, base_format(frame->in->cx, "element %d is negative", i));
        interp_bind_symbol(frame, node->symbol[i], n);
    }
    return true;
}

static bool run_construct(interp_frame *frame, const graph_node *node, interp_value *const *in,
                          interp_value **out)
{
    const graph_data *d = graph_find_data(frame->in->m, node->out[0]->compound->data);
    int which;

    graph_find_case(d, node->callee, &which);
    out[0] = interp_data(frame->in->cx, d, which, in, node->n_in);
    return true;
}

/* One case per kind of node. Planned nodes do not belong here. */
static bool run_kind(interp_frame *frame, const graph_node *node, interp_value *const *in, interp_value **out)
{
    switch (node->kind) {
    case GRAPH_OP:
    case GRAPH_PACK: return interp_operator(frame, node, out);
    case GRAPH_GROUP: return run_region(frame, node, 0, in, out);
    case GRAPH_CALL: return run_call(frame, node, in, out);
    case GRAPH_IF: return run_if(frame, node, in, out);
    case GRAPH_LOOP: return run_loop(frame, node, in, out);
    case GRAPH_SCAN: return run_scan(frame, node, in, out);
    case GRAPH_MAKE_TUPLE: out[0] = interp_tuple(frame->in->cx, in, node->n_in); return true;
    case GRAPH_FIELD: out[0] = in[0]->part[graph_attribute(node, "index")->i]; return true;
    case GRAPH_CONSTRUCT: return run_construct(frame, node, in, out);
    case GRAPH_MATCH: return run_match(frame, node, in, out);
    case GRAPH_CLOSURE: return run_closure(frame, node, in, out);
    case GRAPH_APPLY: return run_apply(frame, node, in, out);
    case GRAPH_CHECK: return run_check(frame, node, in);
    case GRAPH_EXTENTS: return run_extents(frame, node, in);
    case GRAPH_ALLOC_STORAGE:
    case GRAPH_ALLOC_TENSOR:
    case GRAPH_INVOKE:
    case GRAPH_APPEND:
    case GRAPH_DEVICE_COPY:
    case GRAPH_KILL: break;
    }
    return fail_at(frame, node, "the interpreter runs graphs before they are planned");
}

/* Every node counts against the limit, so that a loop without end is an error and no hang. */
static bool run_node(interp_frame *frame, const graph_node *node)
{
    interp_value **in = base_array(frame->in->cx, interp_value *, node->n_in),
                 **out = base_array(frame->in->cx, interp_value *, node->n_out);

    if (frame->in->nodes_left-- == 0)
        return fail_at(frame, node, "the limit on nodes is reached");
    for (int k = 0; k < node->n_in; k++)
        in[k] = interp_value_of(frame, node->in[k]);
    return run_kind(frame, node, in, out) && interp_bind_results(frame, node, out);
}

static bool run_body(interp_frame *frame, base_loc loc, interp_value *const *in, interp_value **out)
{
    if (!interp_enter(frame, loc, in))
        return false;
    for (int i = 0; i < frame->body->nodes.n; i++)
        if (!run_node(frame, frame->body->nodes.at[i]))
            return false;
    for (int k = 0; k < frame->body->outputs.n; k++)
        out[k] = interp_value_of(frame, frame->body->outputs.at[k]);
    return true;
}

/* Runs a function on values and gives its results. Limits on nodes and on the depth of calls end programs
 * that would not end. */
bool interp_run(tec_context *cx, const graph_module *module, const char *function, interp_value *const *in,
                int n_in, const interp_options *options, interp_value **out, int n_out)
{
    interp_options o = options ? *options : (interp_options){0};
    interp run = {.cx = cx,
                  .m = module,
                  .nodes_left = o.max_nodes ? o.max_nodes : 10000000,
                  .depth_left = o.max_depth ? o.max_depth : 1000};
    const graph_function *f = function ? graph_find_function(module, function) : module->functions.at[0];

    if (!f)
        base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no function '%s'", function);
    else if (n_in != f->body->inputs.n || n_out != f->body->outputs.n)
        base_fail(cx, TEC_INVALID, (base_loc){0}, "'%s' has %d inputs and %d outputs, found %d and %d",
                  f->name, f->body->inputs.n, f->body->outputs.n, n_in, n_out);
    if (base_failed(cx))
        return false;
    run.scratch = base_child(cx);
    bool ok = run_function(&run, f, (base_loc){0}, in, out);
    tec_context_free(run.scratch);
    return ok;
}
