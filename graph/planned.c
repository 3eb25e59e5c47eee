/* graph/planned.c -- from operators and groups to the planned form: kernels by graph/kernels.c, places by
 * graph/plan.c, nodes here.
 *
 *     v2: f32[n] = op neg "a"(v1)        v4: f32[n] = alloc_tensor "a"(v3) @offset(exprs [0])
 *     v3: f32[n] = op exp "b"(v2)   =>   invoke "neg" "a"(v1, v4) @dims(exprs [n]) @operators("neg")
 *     output "y" v3                      v6: f32[n] = alloc_tensor "b"(v5) @offset(exprs [0])
 *                                        invoke "exp" "b"(v4, v6) @dims(exprs [n]) @operators("exp")
 *                                        kill "a"(v4)
 *                                        output "y" v6
 *
 * A piece of a concatenation is a part of its tensor:  v8: f32[n] = alloc_tensor "p"(v7) @offset(exprs [64])
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
    base_vec *ends;       /* for each step, and the end, the tensors that it uses as the last one */
} planner;

/* The caller fills in what the kind of node needs besides. */
static graph_node *add_node(planner *self, graph_node_kind kind, const char *name, base_loc loc,
                            graph_value *const *in, int n, const op_type *out)
{
    base_set_where(self->cx, loc);
    graph_node *node = graph_node_new(self->cx, kind, name, in, n, out, out ? 1 : 0);

    base_push(self->cx, &self->out->nodes, node);
    return node;
}

static void set_attrs(planner *self, graph_node *node, const op_attr *attr, int n)
{
    node->attr = base_copy(self->cx, attr, (size_t)n * sizeof *attr);
    node->n_attrs = n;
}

/* ---- storages and tensors ---- */

/* A storage is a value of bytes, so that tensors in it are nodes with an operand and nothing is special about
 * them. */
static graph_value *add_storage(planner *self, const char *name, const ir_expr *bytes, int device)
{
    const op_type type = {BASE_U8, 1, &bytes};
    graph_value *v = add_node(self, GRAPH_ALLOC_STORAGE, name, (base_loc){0}, NULL, 0, &type)->out[0];

    v->device = device;
    return v;
}

/* A pool for each device, then a storage for each output: both are made before any step, since a step may
 * write to each of them. The attribute `output` tells the executor which memory the caller gave. */
static void add_storages(planner *self)
{
    self->pool = base_array(self->cx, graph_value *, self->plan.n_devices);
    for (int d = 0; d < self->plan.n_devices; d++)
        self->pool[d] =
            add_storage(self, d ? base_format(self->cx, "pool.%d", d) : "pool", self->plan.pool[d], d);
    self->output = base_array(self->cx, graph_value *, self->body->outputs.n);
    for (int i = 0; i < self->body->outputs.n; i++) {
        const graph_value *value = self->body->outputs.at[i];
        op_attr which = op_attr_int("output", i);

        self->output[i] =
            add_storage(self, self->body->output_names.at[i],
                        ir_simplify(graph_facts(self->from), graph_type_bytes(self->cx, &value->type)), 0);
        set_attrs(self, self->output[i]->node, &which, 1);
    }
}

/* offset NULL: a view of the whole operand; the offset in a tensor: a part of it. */
static graph_value *add_tensor(planner *self, const char *name, base_loc loc, graph_value *of,
                               const ir_expr *offset, const op_type *type)
{
    graph_node *node = add_node(self, GRAPH_ALLOC_TENSOR, name, loc, &of, 1, type);

    if (offset) {
        op_attr at = op_attr_exprs(self->cx, "offset", &offset, 1);

        set_attrs(self, node, &at, 1);
    }
    node->out[0]->device = of->device;
    return node->out[0];
}

/* What stands for a value of the operators: its tensor; inputs and constants stand for themselves. */
static graph_value *tensor_of(const planner *self, graph_value *value)
{
    graph_value *t = base_map_get(&self->tensors, value);

    return t ? t : value;
}

/* ---- steps ---- */

/* To be called for the first step that uses the kernel, whose types count; later steps have the same
 * definition and so the same types but for the symbols. */
static void declare_kernel(planner *self, const graph_kernel_def *defined)
{
    graph_kernel_type *k = base_new(self->cx, graph_kernel_type);

    *k = graph_kernel_type_of(self->cx, defined);
    k->name = graph_kernel_at(self->kernels, self->to->kernels.n)->unit.name;
    base_push(self->cx, &self->to->kernels, k);
}

static graph_value *whole_of(planner *self, const graph_place *piece);

/* The tensor of a value that renames no other. One in the pool is noted in `ends` at the last step that uses
 * it; those in outputs live to the end, and a piece of a concatenation as long as the whole. */
static graph_value *add_result(planner *self, const graph_value *result)
{
    const graph_place *at = graph_place_of(&self->plan, result);
    bool pooled = at->storage == RT_IN_POOL;
    graph_value *of = at->whole ? whole_of(self, at)
                      : pooled  ? self->pool[result->device]
                                : self->output[at->index];
    graph_value *value = add_tensor(self, result->node->name, result->node->loc, of,
                                    pooled ? at->offset : ir_int(self->cx, 0), &result->type);

    value->name = result->name;
    base_map_put(self->cx, &self->tensors, result, value);
    if (pooled && !at->whole)
        base_push(self->cx, &self->ends[at->last], value);
    return value;
}

/* The concatenation that the piece lies in; its tensor stands before that of the first piece. */
static graph_value *whole_of(planner *self, const graph_place *piece)
{
    graph_value *known = base_map_get(&self->tensors, piece->whole->root);

    return known ? known : add_result(self, piece->whole->root);
}

/* Operands in the order of the kernel: what is read, then what is written. The extents are those of this
 * step. */
static void invoke(planner *self, const graph_node *node, const graph_kernel_def *defined, int kernel,
                   const base_vec *reads)
{
    graph_value **in = base_array(self->cx, graph_value *, reads->n + node->n_out);
    const op_attr attr[] = {op_attr_exprs(self->cx, "dims", defined->dims, defined->def->symbols.n),
                            op_attr_string("operators", graph_operators_text(self->cx, node))};

    for (int i = 0; i < reads->n; i++)
        in[i] = tensor_of(self, reads->at[i]);
    for (int i = 0; i < node->n_out; i++)
        in[reads->n + i] = add_result(self, node->out[i]);
    graph_node *call = add_node(self, GRAPH_INVOKE, node->name, node->loc, in, reads->n + node->n_out, NULL);
    call->callee = graph_kernel_at(self->kernels, kernel)->unit.name;
    set_attrs(self, call, attr, BASE_COUNT(attr));
}

/* Kernels are found by their definition: two steps that compute the same with the same extents share one.
 * With a target for two devices, what lies on device 0, the host, is built for the host. A kernel with the
 * next free number is new. */
static bool plan_step(planner *self, const graph_node *node)
{
    if (node->kind == GRAPH_DEVICE_COPY) {
        graph_value *from = tensor_of(self, node->in[0]);

        add_node(self, GRAPH_DEVICE_COPY, node->name, node->loc,
                 (graph_value *const[]){from, add_result(self, node->out[0])}, 2, NULL);
        return true;
    }
    const target *t = self->kernels->target;
    graph_kernel_def k = graph_define_kernel(self->from, node, t);
    if (self->kernels->placed && node->out[0]->device == 0)
        t = target_host(self->cx, t);
    int kernel =
        k.def ? graph_kernel_for(self->kernels, t, k.def, k.node, graph_operators_text(self->cx, node)) : -1;
    base_vec reads = {0};

    if (kernel < 0) {
        base_note(self->cx, node->loc, "while building '%s'", node->name);
        return false;
    }
    graph_distinct_operands(self->cx, node, &reads);
    graph_kernel_reads(self->kernels, kernel, &reads);
    if (kernel == self->to->kernels.n)
        declare_kernel(self, &k);
    invoke(self, node, &k, kernel, &reads);
    return true;
}

static void kill_tensors(planner *self, const base_vec *ends)
{
    for (int i = 0; i < ends->n; i++) {
        graph_value *v = ends->at[i];

        add_node(self, GRAPH_KILL, v->node->name, v->node->loc, &v, 1, NULL);
    }
}

/* Steps are a part of the nodes, in the same order. Others rename, and become a view, or are a concatenation
 * that stands with its first piece. */
static bool plan_nodes(planner *self)
{
    int step = 0;

    for (int i = 0; i < self->body->nodes.n; i++) {
        const graph_node *node = self->body->nodes.at[i];

        if (step < self->plan.steps.n && self->plan.steps.at[step] == node) {
            if (!plan_step(self, node))
                return false;
            kill_tensors(self, &self->ends[step++]);
        } else if (!base_map_has(&self->tensors, node->out[0])) /* only renames its operand's elements */
            base_map_put(self->cx, &self->tensors, node->out[0],
                         add_tensor(self, node->name, node->loc, tensor_of(self, node->in[0]), NULL,
                                    &node->out[0]->type));
    }
    return true;
}

/* ---- outputs ---- */

/* An output is the tensor that a kernel wrote into its storage, or a copy made at the end. Copies come last,
 * behind all steps, as an output may be an input or a constant, or be listed twice. */
static void plan_outputs(planner *self)
{
    graph_value **result = base_array(self->cx, graph_value *, self->body->outputs.n);

    for (int i = 0; i < self->plan.copies.n; i++) {
        const graph_copy *copy = self->plan.copies.at[i];
        graph_value *from = tensor_of(self, (graph_value *)copy->from);
        graph_value *to = add_tensor(self, self->body->output_names.at[copy->output], copy->from->loc,
                                     self->output[copy->output], ir_int(self->cx, 0), &copy->from->type);

        add_node(self, GRAPH_DEVICE_COPY, copy->from->name, copy->from->loc, (graph_value *const[]){from, to},
                 2, NULL);
        result[copy->output] = to;
    }
    for (int i = 0; i < self->body->outputs.n; i++) {
        base_push(self->cx, &self->out->outputs,
                  result[i] ? result[i] : tensor_of(self, self->body->outputs.at[i]));
        base_push(self->cx, &self->out->output_names, self->body->output_names.at[i]);
    }
}

/* The module is copied with other functions: data types, symbols and facts are shared, and nothing of
 * `module` is changed. */
graph_module *graph_planned(const graph_module *module, graph_kernels *kernels)
{
    const graph_function *main = module->functions.at[0];
    planner p = {.cx = module->cx,
                 .from = module,
                 .to = base_copy(module->cx, module, sizeof *module),
                 .kernels = kernels,
                 .body = main->body};

    if (!graph_plan_memory(module, p.body, &p.plan))
        return NULL;
    p.to->functions = p.to->kernels = (base_vec){0};
    p.out = graph_function_new(p.to, main->name)->body;
    for (int i = 0; i < p.body->inputs.n; i++)
        base_push(p.cx, &p.out->inputs, p.body->inputs.at[i]);
    p.ends = base_array(p.cx, base_vec, p.plan.steps.n + 1);
    add_storages(&p);
    if (!plan_nodes(&p))
        return NULL;
    plan_outputs(&p);
    kill_tensors(&p, &p.ends[p.plan.steps.n]);
    return p.to;
}
