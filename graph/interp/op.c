/* graph/interp/op.c -- one operator: its te body for the shapes at hand, as a default loop tree, run by the
 * interpreter of expressions.
 *
 * Trees are kept by operator, attributes, types and constant operands: a loop runs the same one in each
 * iteration.
 */
#include "graph/interp/frame.h"
#include "graph/text.h"

static bool same_array(const ir_array *a, const ir_array *b)
{
    bool same = a->data == b->data && a->n == b->n && base_dtype_same(a->dtype, b->dtype);

    for (int d = 0; same && d < a->n; d++)
        same = a->shape[d] == b->shape[d];
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

static op_type concrete_type(tec_context *cx, const ir_array *a)
{
    const ir_expr **dim = base_array(cx, const ir_expr *, a->n);

    for (int d = 0; d < a->n; d++)
        dim[d] = ir_int(cx, a->shape[d]);
    return (op_type){a->dtype, a->n, dim};
}

/* Attributes with symbols replaced by their values. */
static const op_attr *concrete_attrs(const interp_frame *f, const graph_node *node)
{
    tec_context *cx = f->in->cx;
    op_attr *attr = base_copy(cx, node->attr, (size_t)node->n_attrs * sizeof *attr);

    for (int i = 0; i < node->n_attrs; i++) {
        if (attr[i].kind != OP_ATTR_EXPRS)
            continue;
        const ir_expr **e = base_array(cx, const ir_expr *, attr[i].n);
        int64_t value;

        for (int k = 0; k < attr[i].n; k++) {
            if (!interp_extent(f, node->loc, attr[i].exprs[k], &value))
                return NULL;
            e[k] = ir_int(cx, value);
        }
        attr[i].exprs = e;
    }
    return attr;
}

static const op_impl *first_impl(const op_call *c)
{
    for (int i = 0; i < c->op->n_impls; i++)
        if (!c->op->impls[i].applies || c->op->impls[i].applies(c))
            return &c->op->impls[i];
    return base_fail(c->cx, TEC_UNSUPPORTED, c->loc, "no implementation of '%s' applies", c->op->name);
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
static bool plain_types(operation *o, const graph_node *plain, op_type *types)
{
    tec_context *cx = o->f->in->cx;

    for (int k = 0; k < plain->n_in; k++) {
        const op_type *t = plain->in[k] ? &plain->in[k]->type : NULL;
        const ir_expr **dim = base_array(cx, const ir_expr *, t ? t->n : 0);
        int64_t extent;

        for (int d = 0; t && d < t->n; d++) {
            if (!interp_extent(o->f, o->node->loc, t->dim[d], &extent))
                return false;
            dim[d] = ir_int(cx, extent);
        }
        types[k] = t ? (op_type){t->dtype, t->n, dim} : (op_type){.n = -1};
    }
    return true;
}

/* The operator's call with the concrete types of this run; types are inferred anew, so a wrong shape is found
 * here. */
static bool prepare(operation *o)
{
    tec_context *cx = o->f->in->cx;
    const graph_node *node = o->node, *plain = node->plain ? node->plain : node;
    op_type *types = base_array(cx, op_type, plain->n_in);
    const op_constant **constants = base_array(cx, const op_constant *, plain->n_in);
    const op_attr *attr = concrete_attrs(o->f, plain);

    for (int k = 0; !node->plain && k < node->n_in; k++) {
        types[k] = o->in[k] ? concrete_type(cx, &o->in[k]->array) : (op_type){.n = -1};
        constants[k] = node->in[k] ? node->in[k]->constant : NULL;
    }
    if (!attr || (node->plain && !plain_types(o, plain, types)))
        return false;
    o->call = (op_call){.cx = cx,
                        .op = plain->op,
                        .name = "op",
                        .loc = node->loc,
                        .n_inputs = plain->n_in,
                        .n_attrs = plain->n_attrs,
                        .input = types,
                        .constant = constants,
                        .attr = attr,
                        .facts = ir_facts_new(cx, NULL)};
    if (!op_infer(&o->call))
        return false;
    o->impl = node->impl ? node->impl : first_impl(&o->call);
    return o->impl != NULL;
}

static const char *key_of(const operation *o)
{
    tec_context *cx = o->f->in->cx;
    base_text t = {0};

    base_addf(cx, &t, "%s %s %d%d%s", o->call.op->name, o->impl->name, o->packed, o->packs,
              graph_attributes_text(cx, o->call.attr, o->call.n_attrs));
    for (int k = 0; k < o->call.n_inputs; k++)
        base_addf(cx, &t, " %s %p", op_type_text(cx, &o->call.input[k]), (const void *)o->call.constant[k]);
    for (int k = 0; k < o->n_in; k++)
        base_addf(cx, &t, " %d", o->in[k] ? first_same(o->in, k) : -1);
    return base_text_str(cx, &t);
}

/* A result that is an operand as it is gets a stage of its own. */
static te_tensor *as_output(te_def *d, te_tensor *t)
{
    tec_context *cx = d->cx;

    if (t->stage->kind != TE_INPUT)
        return t;
    const ir_expr **axis = base_array(cx, const ir_expr *, t->buffer->n);
    for (int i = 0; i < t->buffer->n; i++)
        axis[i] = te_axis(cx, base_format(cx, "a%d", i), t->buffer->shape[i]);
    return te_compute(d, op_stage_name(d, "copy"), axis, t->buffer->n, te_read(t, axis, t->buffer->n));
}

/* The te body for these types as a loop tree. An operand that is given twice is one input. */
static const ir_program *make_tree(const operation *o)
{
    tec_context *cx = o->f->in->cx;
    te_def *d = te_def_new(cx, "op");
    te_tensor **in = base_array(cx, te_tensor *, o->n_in),
              **out = base_array(cx, te_tensor *, o->node->n_out);

    for (int k = 0; k < o->n_in; k++) {
        if (!o->in[k])
            continue;
        op_type t = concrete_type(cx, &o->in[k]->array);
        int first = first_same(o->in, k);

        in[k] = first < k ? in[first] : te_input(d, base_format(cx, "in%d", k), t.dtype, t.dim, t.n);
    }
    if (!(o->packs ? o->impl->pack(&o->call, d, in[0], out)
                   : op_emit(&o->call, o->impl, d, in, o->packed, out)))
        return NULL;
    for (int k = 0; k < o->node->n_out; k++)
        te_output(d, as_output(d, out[k]));
    return base_failed(cx) ? NULL : te_tree(cx, d);
}

static const ir_program *tree_of(const operation *o)
{
    interp *in = o->f->in;
    const char *key = key_of(o);

    if (base_dict_has(&in->programs, key))
        return base_dict_get(&in->programs, key);
    const ir_program *p = make_tree(o);
    base_dict_put(in->cx, &in->programs, key, p);
    return p;
}

/* An error of the interpreter gets a note that names the node. */
static bool run_tree(const operation *o, const ir_program *p, interp_value **out)
{
    tec_context *cx = o->f->in->cx;
    ir_arg *args = base_array(cx, ir_arg, o->n_in + o->node->n_out);
    int n = 0;

    for (int k = 0; k < o->n_in; k++)
        if (o->in[k] && first_same(o->in, k) == k)
            args[n++].array = &o->in[k]->array;
    for (int k = 0; k < o->node->n_out; k++)
        args[n++].array = &out[k]->array;
    base_reset(o->f->in->scratch);
    if (!ir_interpret(o->f->in->scratch, p, &(ir_run){.args = args, .unchecked_races = true})) {
        base_adopt(cx, o->f->in->scratch);
        base_note(cx, o->node->loc, "in '%s'", o->node->name);
    }
    return !base_failed(cx);
}

static bool make_results(const operation *o, const ir_program *p, interp_value **out)
{
    int64_t shape[IR_MAX_DIMS];

    for (int k = 0; k < o->node->n_out; k++) {
        const ir_buffer *b = p->params[p->n_params - o->node->n_out + k].buffer;

        for (int d = 0; d < b->n; d++)
            if (!ir_is_int(b->shape[d], &shape[d]))
                return BASE_BUG(o->f->in->cx, "an extent of '%s' is not constant", o->node->name);
        out[k] = interp_tensor(o->f->in->cx, b->dtype, b->n, shape, NULL);
    }
    return true;
}

static bool same_elements(const operation *o, interp_value **out)
{
    const op_type *t = &o->call.output[0];
    int64_t shape[IR_MAX_DIMS];

    for (int d = 0; d < t->n; d++)
        ir_is_int(t->dim[d], &shape[d]);
    out[0] = interp_tensor(o->f->in->cx, t->dtype, t->n, shape, o->in[0]->array.data);
    return true;
}

/* Operators that only rename elements share their operand's memory. */
bool interp_operator(interp_frame *f, const graph_node *node, interp_value **out)
{
    operation o = {.f = f,
                   .node = node,
                   .n_in = node->n_in,
                   .packs = node->kind == GRAPH_PACK,
                   .packed = node->kind == GRAPH_OP && node->plain};

    o.in = base_array(f->in->cx, interp_value *, node->n_in);
    for (int k = 0; k < node->n_in; k++)
        o.in[k] = interp_value_of(f, node->in[k]);
    if (!prepare(&o))
        return false;
    if (node->kind == GRAPH_OP && node->op->identity)
        return same_elements(&o, out);
    const ir_program *p = tree_of(&o);
    return p && make_results(&o, p, out) && run_tree(&o, p, out);
}
