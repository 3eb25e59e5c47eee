/* graph/interp/op.c -- one operator: its te body for the shapes at hand, as a default loop tree, run by the
 * interpreter of expressions.
 *
 * Trees are kept by operator, attributes, types and constant operands: a loop runs the same one in each
 * iteration.
 */
#include "graph/interp/frame.h"
#include "graph/text.h"

static bool same_array(const ir_array *array, const ir_array *other)
{
    bool same =
        array->data == other->data && array->n == other->n && base_dtype_same(array->dtype, other->dtype);

    for (int d = 0; same && d < array->n; d++)
        same = array->shape[d] == other->shape[d];
    return same;
}

/* The first operand that is the same memory as operand k: a tree takes each memory once. */
static int first_same(interp_value *const *in, int k)
{
    int first = 0;

    while (first < k && !(in[first] && same_array(&in[first]->array, &in[k]->array)))
        first++;
    return first;
}

/* The type of the value at hand: te bodies are made for constant extents alone, anew for each size. */
static op_type concrete_type(tec_context *cx, const ir_array *array)
{
    const ir_expr **dim = base_array(cx, const ir_expr *, array->n);

    for (int d = 0; d < array->n; d++)
        dim[d] = ir_int(cx, array->shape[d]);
    return (op_type){array->dtype, array->n, dim};
}

/* Attributes with symbols replaced by their values. */
static const op_attr *concrete_attrs(const interp_frame *frame, const graph_node *node)
{
    tec_context *cx = frame->in->cx;
    op_attr *attr = base_copy(cx, node->attr, (size_t)node->n_attrs * sizeof *attr);

    for (int i = 0; i < node->n_attrs; i++) {
        if (attr[i].kind != OP_ATTR_EXPRS)
            continue;
        const ir_expr **expr = base_array(cx, const ir_expr *, attr[i].n);
        int64_t value;

        for (int k = 0; k < attr[i].n; k++) {
            if (!interp_extent(frame, node->loc, attr[i].exprs[k], &value))
                return NULL;
            expr[k] = ir_int(cx, value);
        }
        attr[i].exprs = expr;
    }
    return attr;
}

static const op_impl *first_impl(const op_call *call)
{
    for (int i = 0; i < call->op->n_impls; i++)
        if (!call->op->impls[i].applies || call->op->impls[i].applies(call))
            return &call->op->impls[i];
    return base_fail(call->cx, TEC_UNSUPPORTED, call->loc, "no implementation of '%s' applies",
                     call->op->name);
}

/* One operator that is to be run. `packed`: an operand is packed already; `packs`: what it does is the
 * packing. */
typedef struct {
    interp_frame *f;
    const graph_node *node;
    op_call call;
    const op_impl *impl;
    interp_value **in;
    int n_in;
    bool packed, packs;
} operation;

/* The types of the operands before one was packed. */
static bool plain_types(operation *self, const graph_node *plain, op_type *types)
{
    tec_context *cx = self->f->in->cx;

    for (int k = 0; k < plain->n_in; k++) {
        const op_type *type = plain->in[k] ? &plain->in[k]->type : NULL;
        const ir_expr **dim = base_array(cx, const ir_expr *, type ? type->n : 0);
        int64_t extent;

        for (int d = 0; type && d < type->n; d++) {
            if (!interp_extent(self->f, self->node->loc, type->dim[d], &extent))
                return false;
            dim[d] = ir_int(cx, extent);
        }
        types[k] = type ? (op_type){type->dtype, type->n, dim} : (op_type){.n = -1};
    }
    return true;
}

/* The operator's call with the concrete types of this run; types are inferred anew, so a wrong shape is found
 * here. */
static bool prepare(operation *self)
{
    tec_context *cx = self->f->in->cx;
    const graph_node *node = self->node, *plain = node->plain ? node->plain : node;
    op_type *types = base_array(cx, op_type, plain->n_in);
    const op_constant **constants = base_array(cx, const op_constant *, plain->n_in);
    const op_attr *attr = concrete_attrs(self->f, plain);

    for (int k = 0; !node->plain && k < node->n_in; k++) {
        types[k] = self->in[k] ? concrete_type(cx, &self->in[k]->array) : (op_type){.n = -1};
        constants[k] = node->in[k] ? node->in[k]->constant : NULL;
    }
    if (!attr || (node->plain && !plain_types(self, plain, types)))
        return false;
    self->call = (op_call){.cx = cx,
                           .op = plain->op,
                           .name = "op",
                           .loc = node->loc,
                           .n_inputs = plain->n_in,
                           .n_attrs = plain->n_attrs,
                           .input = types,
                           .constant = constants,
                           .attr = attr,
                           .facts = ir_facts_new(cx, NULL)};
    if (!op_infer(&self->call))
        return false;
    self->impl = node->impl ? node->impl : first_impl(&self->call);
    return self->impl != NULL;
}

/* All that the tree of an operator depends on: the implementation, attributes, types, constants by address,
 * and which operands are one and the same array. Equal keys share a tree. */
static const char *key_of(const operation *self)
{
    tec_context *cx = self->f->in->cx;
    base_text t = {0};

    base_addf(cx, &t, "%s %s %d%d%s", self->call.op->name, self->impl->name, self->packed, self->packs,
              graph_attributes_text(cx, self->call.attr, self->call.n_attrs));
    for (int k = 0; k < self->call.n_inputs; k++)
        base_addf(cx, &t, " %s %p", op_type_text(cx, &self->call.input[k]),
                  (const void *)self->call.constant[k]);
    for (int k = 0; k < self->n_in; k++)
        base_addf(cx, &t, " %d", self->in[k] ? first_same(self->in, k) : -1);
    return base_text_str(cx, &t);
}

/* A result that is an operand as it is gets a stage of its own. */
static te_tensor *as_output(te_def *def, te_tensor *tensor)
{
    tec_context *cx = def->cx;

    if (tensor->stage->kind != TE_INPUT)
        return tensor;
    const ir_expr **axis = base_array(cx, const ir_expr *, tensor->buffer->n);
    for (int i = 0; i < tensor->buffer->n; i++)
        axis[i] = te_axis(cx, base_format(cx, "a%d", i), tensor->buffer->shape[i]);
    return te_compute(def, op_stage_name(def, "copy"), axis, tensor->buffer->n,
                      te_read(tensor, axis, tensor->buffer->n));
}

/* The te body for these types as a loop tree. An operand that is given twice is one input. */
static const ir_program *make_tree(const operation *self)
{
    tec_context *cx = self->f->in->cx;
    te_def *def = te_def_new(cx, "op");
    te_tensor **in = base_array(cx, te_tensor *, self->n_in),
              **out = base_array(cx, te_tensor *, self->node->n_out);

    for (int k = 0; k < self->n_in; k++) {
        if (!self->in[k])
            continue;
        op_type t = concrete_type(cx, &self->in[k]->array);
        int first = first_same(self->in, k);

        in[k] = first < k ? in[first] : te_input(def, base_format(cx, "in%d", k), t.dtype, t.dim, t.n);
    }
    if (!(self->packs ? self->impl->pack(&self->call, def, in[0], out)
                      : op_emit(&self->call, self->impl, def, in, self->packed, out)))
        return NULL;
    for (int k = 0; k < self->node->n_out; k++)
        te_output(def, as_output(def, out[k]));
    return base_failed(cx) ? NULL : te_tree(cx, def);
}

static const ir_program *tree_of(const operation *self)
{
    interp *in = self->f->in;
    const char *key = key_of(self);

    if (base_dict_has(&in->programs, key))
        return base_dict_get(&in->programs, key);
    const ir_program *program = make_tree(self);
    base_dict_put(in->cx, &in->programs, key, program);
    return program;
}

/* An error of the interpreter gets a note that names the node. */
static bool run_tree(const operation *self, const ir_program *program, interp_value **out)
{
    tec_context *cx = self->f->in->cx;
    ir_arg *args = base_array(cx, ir_arg, self->n_in + self->node->n_out);
    int n = 0;

    for (int k = 0; k < self->n_in; k++)
        if (self->in[k] && first_same(self->in, k) == k)
            args[n++].array = &self->in[k]->array;
    for (int k = 0; k < self->node->n_out; k++)
        args[n++].array = &out[k]->array;
    base_reset(self->f->in->scratch);
    if (!ir_interpret(self->f->in->scratch, program, &(ir_run){.args = args, .unchecked_races = true})) {
        base_adopt(cx, self->f->in->scratch);
        base_note(cx, self->node->loc, "in '%s'", self->node->name);
    }
    return !base_failed(cx);
}

/* The shapes are those that the te body has, and not the declared ones: bind_results holds them against the
 * types. */
static bool make_results(const operation *self, const ir_program *program, interp_value **out)
{
    int64_t shape[IR_MAX_DIMS];

    for (int k = 0; k < self->node->n_out; k++) {
        const ir_buffer *buffer = program->params[program->n_params - self->node->n_out + k].buffer;

        for (int d = 0; d < buffer->n; d++)
            if (!ir_is_int(buffer->shape[d], &shape[d]))
                return BASE_BUG(self->f->in->cx, "an extent of '%s' is not constant", self->node->name);
        out[k] = interp_tensor(self->f->in->cx, buffer->dtype, buffer->n, shape, NULL);
    }
    return true;
}

/* An operator that only renames elements: the same data in another shape. */
static bool same_elements(const operation *self, interp_value **out)
{
    const op_type *t = &self->call.output[0];
    int64_t shape[IR_MAX_DIMS];

    for (int d = 0; d < t->n; d++)
        ir_is_int(t->dim[d], &shape[d]);
    out[0] = interp_tensor(self->f->in->cx, t->dtype, t->n, shape, self->in[0]->array.data);
    return true;
}

/* Operators that only rename elements share their operand's memory. */
bool interp_operator(interp_frame *frame, const graph_node *node, interp_value **out)
{
    operation o = {.f = frame,
                   .node = node,
                   .n_in = node->n_in,
                   .packs = node->kind == GRAPH_PACK,
                   .packed = node->kind == GRAPH_OP && node->plain};

    o.in = base_array(frame->in->cx, interp_value *, node->n_in);
    for (int k = 0; k < node->n_in; k++)
        o.in[k] = interp_value_of(frame, node->in[k]);
    if (!prepare(&o))
        return false;
    if (node->kind == GRAPH_OP && node->op->identity)
        return same_elements(&o, out);
    const ir_program *program = tree_of(&o);
    return program && make_results(&o, program, out) && run_tree(&o, program, out);
}
