/* graph/planned.c -- from operators and groups to the planned form: kernels by graph/kernels.c, places by
 * graph/plan.c, nodes here.
 *
 *     v2: f32[n] = op neg "a"(v1)        v4: f32[n] = alloc_tensor "a"(v3) @offset(exprs [0])
 *     v3: f32[n] = op exp "b"(v2)   =>   invoke "neg" "a"(v1, v4) @dims(exprs [n]) @operators("neg")
 *     output "y" v3                      v6: f32[n] = alloc_tensor "b"(v5) @offset(exprs [0])
 *                                        invoke "exp" "b"(v4, v6) @dims(exprs [n]) @operators("exp")
 *                                        kill "a"(v4)
 *                                        output "y" v6
 */
#include "graph/planned.h"

#include "graph/emit.h"
#include "graph/plan.h"

typedef struct {
    tec_context *cx;
    const graph_module *from;
    graph_module *to;
    graph_kernels *kernels;
    const graph_body *body;
    graph_body *out;
    graph_plan plan;
    graph_value **pool;   /* of each device */
    graph_value **output; /* the storage of each output */
    base_map tensors;     /* graph_value * of the operators -> graph_value * of the plan */
    base_vec *ends;       /* for each step the tensors that it reads as the last one */
} planner;

/* The caller fills in what the kind of node needs besides. */
static graph_node *add_node(planner *p, graph_node_kind kind, const char *name, base_loc loc,
                            graph_value *const *in, int n, const op_type *out)
{
    base_set_where(p->cx, loc);
    graph_node *node = graph_node_new(p->cx, kind, name, in, n, out, out ? 1 : 0);

    base_push(p->cx, &p->out->nodes, node);
    return node;
}

static void set_attrs(planner *p, graph_node *node, const op_attr *attr, int n)
{
    node->attr = base_copy(p->cx, attr, (size_t)n * sizeof *attr);
    node->n_attrs = n;
}

/* ---- storages and tensors ---- */

/* A storage is a value of bytes, so that tensors in it are nodes with an operand and nothing is special about
 * them. */
static graph_value *add_storage(planner *p, const char *name, const ir_expr *bytes, int device)
{
    const op_type type = {BASE_U8, 1, &bytes};
    graph_value *v = add_node(p, GRAPH_ALLOC_STORAGE, name, (base_loc){0}, NULL, 0, &type)->out[0];

    v->device = device;
    return v;
}

/* A pool for each device, then a storage for each output: both are made before any step, since a step may
 * write to each of them. The attribute `output` tells the executor which memory the caller gave. */
static void add_storages(planner *p)
{
    p->pool = base_array(p->cx, graph_value *, p->plan.n_devices);
    for (int d = 0; d < p->plan.n_devices; d++)
        p->pool[d] = add_storage(p, d ? base_format(p->cx, "pool.%d", d) : "pool", p->plan.pool[d], d);
    p->output = base_array(p->cx, graph_value *, p->body->outputs.n);
    for (int i = 0; i < p->body->outputs.n; i++) {
        const graph_value *v = p->body->outputs.at[i];
        op_attr which = op_attr_int("output", i);

        p->output[i] = add_storage(p, p->body->output_names.at[i],
                                   ir_simplify(graph_facts(p->from), graph_type_bytes(p->cx, &v->type)), 0);
        set_attrs(p, p->output[i]->node, &which, 1);
    }
}

/* offset NULL: a view of the whole operand. */
static graph_value *add_tensor(planner *p, const char *name, base_loc loc, graph_value *of,
                               const ir_expr *offset, const op_type *type)
{
    graph_node *node = add_node(p, GRAPH_ALLOC_TENSOR, name, loc, &of, 1, type);

    if (offset) {
        op_attr at = op_attr_exprs(p->cx, "offset", &offset, 1);

        set_attrs(p, node, &at, 1);
    }
    node->out[0]->device = of->device;
    return node->out[0];
}

/* What stands for a value of the operators: its tensor; inputs and constants stand for themselves. */
static graph_value *tensor_of(const planner *p, graph_value *v)
{
    graph_value *t = base_map_get(&p->tensors, v);

    return t ? t : v;
}

/* ---- steps ---- */

/* To be called for the first step that uses the kernel, whose types count; later steps have the same
 * definition and so the same types but for the symbols. */
static void declare_kernel(planner *p, const te_def *d, const base_vec *reads, const graph_node *node)
{
    graph_kernel_type *k = base_new(p->cx, graph_kernel_type);
    op_type *type = base_array(p->cx, op_type, reads->n + node->n_out);

    for (int i = 0; i < reads->n; i++)
        type[i] = ((const graph_value *)reads->at[i])->type;
    for (int i = 0; i < node->n_out; i++)
        type[reads->n + i] = node->out[i]->type;
    *k = (graph_kernel_type){.name = graph_kernel_at(p->kernels, p->to->kernels.n)->unit.name,
                             .n_symbols = d->symbols.n,
                             .n_params = reads->n + node->n_out,
                             .n_reads = reads->n,
                             .symbol = (const ir_expr *const *)d->symbols.at,
                             .param = type};
    base_push(p->cx, &p->to->kernels, k);
}

/* A result in the pool is noted in `ends` at the last step that reads it. Results in outputs live to the
 * end. */
static graph_value *add_result(planner *p, const graph_node *node, int k)
{
    const graph_place *at = graph_place_of(&p->plan, node->out[k]);
    bool pooled = at->storage == RT_IN_POOL;
    graph_value *v =
        add_tensor(p, node->name, node->loc, pooled ? p->pool[node->out[k]->device] : p->output[at->index],
                   pooled ? at->offset : ir_int(p->cx, 0), &node->out[k]->type);

    v->name = node->out[k]->name;
    base_map_put(p->cx, &p->tensors, node->out[k], v);
    if (pooled)
        base_push(p->cx, &p->ends[at->last], v);
    return v;
}

/* Operands in the order of the kernel: what is read, then what is written. The extents are those of this
 * step. */
static void invoke(planner *p, const graph_node *node, const te_def *d, int kernel, const base_vec *reads)
{
    graph_value **in = base_array(p->cx, graph_value *, reads->n + node->n_out);
    const op_attr attr[] = {op_attr_exprs(p->cx, "dims", (const ir_expr *const *)d->symbols.at, d->symbols.n),
                            op_attr_string("operators", graph_operators_text(p->cx, node))};

    for (int i = 0; i < reads->n; i++)
        in[i] = tensor_of(p, reads->at[i]);
    for (int i = 0; i < node->n_out; i++)
        in[reads->n + i] = add_result(p, node, i);
    graph_node *call = add_node(p, GRAPH_INVOKE, node->name, node->loc, in, reads->n + node->n_out, NULL);
    call->callee = graph_kernel_at(p->kernels, kernel)->unit.name;
    set_attrs(p, call, attr, BASE_COUNT(attr));
}

/* Kernels are found by their definition: two steps that compute the same with the same extents share one.
 * With a target for two devices, what lies on device 0, the host, is built for the host. A kernel with the
 * next free number is new. */
static bool plan_step(planner *p, const graph_node *node)
{
    if (node->kind == GRAPH_DEVICE_COPY) {
        graph_value *from = tensor_of(p, node->in[0]);

        add_node(p, GRAPH_DEVICE_COPY, node->name, node->loc,
                 (graph_value *const[]){from, add_result(p, node, 0)}, 2, NULL);
        return true;
    }
    const target *t = p->kernels->target;
    te_def *d = graph_definition(p->from, node, t);
    if (p->kernels->placed && node->out[0]->device == 0)
        t = target_host(p->cx, t);
    int kernel = d ? graph_kernel_for(p->kernels, t, d, node, graph_operators_text(p->cx, node)) : -1;
    base_vec reads = {0};

    if (kernel < 0) {
        base_note(p->cx, node->loc, "while building '%s'", node->name);
        return false;
    }
    graph_distinct_operands(p->cx, node, &reads);
    if (kernel == p->to->kernels.n)
        declare_kernel(p, d, &reads, node);
    invoke(p, node, d, kernel, &reads);
    return true;
}

static void kill_tensors(planner *p, const base_vec *ends)
{
    for (int i = 0; i < ends->n; i++) {
        graph_value *v = ends->at[i];

        add_node(p, GRAPH_KILL, v->node->name, v->node->loc, &v, 1, NULL);
    }
}

/* Steps are a part of the nodes, in the same order; a node that is no step only renames, and becomes a
 * view. */
static bool plan_nodes(planner *p)
{
    int step = 0;

    for (int i = 0; i < p->body->nodes.n; i++) {
        const graph_node *node = p->body->nodes.at[i];

        if (step < p->plan.steps.n && p->plan.steps.at[step] == node) {
            if (!plan_step(p, node))
                return false;
            kill_tensors(p, &p->ends[step++]);
        } else /* only renames its operand's elements */
            base_map_put(
                p->cx, &p->tensors, node->out[0],
                add_tensor(p, node->name, node->loc, tensor_of(p, node->in[0]), NULL, &node->out[0]->type));
    }
    return true;
}

/* ---- outputs ---- */

/* An output is the tensor that a kernel wrote into its storage, or a copy made at the end. Copies come last,
 * behind all steps, as an output may be an input or a constant, or be listed twice. */
static void plan_outputs(planner *p)
{
    graph_value **result = base_array(p->cx, graph_value *, p->body->outputs.n);

    for (int i = 0; i < p->plan.copies.n; i++) {
        const graph_copy *copy = p->plan.copies.at[i];
        graph_value *from = tensor_of(p, (graph_value *)copy->from);
        graph_value *to = add_tensor(p, p->body->output_names.at[copy->output], copy->from->loc,
                                     p->output[copy->output], ir_int(p->cx, 0), &copy->from->type);

        add_node(p, GRAPH_DEVICE_COPY, copy->from->name, copy->from->loc, (graph_value *const[]){from, to}, 2,
                 NULL);
        result[copy->output] = to;
    }
    for (int i = 0; i < p->body->outputs.n; i++) {
        base_push(p->cx, &p->out->outputs, result[i] ? result[i] : tensor_of(p, p->body->outputs.at[i]));
        base_push(p->cx, &p->out->output_names, p->body->output_names.at[i]);
    }
}

/* The module is copied with other functions: data types, symbols and facts are shared, and nothing of `m` is
 * changed. */
graph_module *graph_planned(const graph_module *m, graph_kernels *k)
{
    const graph_function *main = m->functions.at[0];
    planner p = {
        .cx = m->cx, .from = m, .to = base_copy(m->cx, m, sizeof *m), .kernels = k, .body = main->body};

    if (!graph_plan_memory(m, p.body, &p.plan))
        return NULL;
    p.to->functions = p.to->kernels = (base_vec){0};
    p.out = graph_function_new(p.to, main->name)->body;
    for (int i = 0; i < p.body->inputs.n; i++)
        base_push(p.cx, &p.out->inputs, p.body->inputs.at[i]);
    p.ends = base_array(p.cx, base_vec, p.plan.steps.n);
    add_storages(&p);
    if (!plan_nodes(&p))
        return NULL;
    plan_outputs(&p);
    return p.to;
}
