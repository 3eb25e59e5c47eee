/* graph/describe.c -- see describe.h. Values of the runtime get their numbers in the order in which steps
 * first use them.
 */
#include "graph/describe.h"

#include "compiler/compiler.h"
#include "graph/node.h"
#include "ir/text.h"
#include "ir/walk.h"

/* Where the bytes of a planned value are. */
typedef struct {
    rt_storage storage;
    int index;
    const ir_expr *offset; /* in the pool or an output; NULL: 0 */
    int site;
} location;

typedef struct {
    tec_context *cx;
    const graph_module *m;
    const graph_body *body;
    base_vec symbols; /* ir_expr *: those that inputs tell; their positions are the module's */
    const rt_symbol_desc *told;
    base_vec pools;     /* const ir_expr *: bytes of the pool of each device, the host's first */
    base_map where;     /* graph_value * -> location * */
    base_vec constants; /* graph_value *, in the order of their first use */
    base_map ids;       /* graph_value * -> id + 1 */
    base_vec values;    /* rt_value_desc * */
    base_vec steps;     /* rt_step_desc * */
} describer;

static bool is_told(const describer *self, const ir_expr *symbol)
{
    for (int i = 0; i < self->symbols.n; i++)
        if (self->symbols.at[i] == symbol)
            return true;
    return false;
}

/* The first variable of expr that no input tells; NULL: none. */
static const ir_expr *untold(describer *self, const ir_expr *expr)
{
    base_vec vars = {0};

    ir_free_vars(self->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!is_told(self, vars.at[i]))
            return vars.at[i];
    return NULL;
}

static bool dim(describer *self, const ir_expr *expr, rt_dim *out)
{
    const ir_expr *unknown = untold(self, expr);

    if (unknown) {
        base_fail(
            self->cx, TEC_UNSUPPORTED, unknown->loc,
            "dimension '%s' is not the extent of any input, so its value is not known before the model runs",
            unknown->var.name);
        return false;
    }
    return comp_dim(self->cx, expr, (const ir_expr *const *)self->symbols.at, self->symbols.n, out);
}

static bool dims(describer *self, const ir_expr *const *expr, int n, const rt_dim **out)
{
    rt_dim *d = base_array(self->cx, rt_dim, n);

    *out = d;
    for (int i = 0; i < n; i++)
        if (!dim(self, expr[i], &d[i]))
            return false;
    return true;
}

/* ---- where values lie ---- */

static const location *place(describer *self, const graph_value *value, rt_storage storage, int index,
                             const ir_expr *offset)
{
    location *l = base_new(self->cx, location);

    *l = (location){storage, index, offset,
                    storage == RT_IN_INPUT || storage == RT_IN_OUTPUT ? 0 : value->device};
    base_map_put(self->cx, &self->where, value, l);
    return l;
}

/* Constants get their place when they are first asked for. Those on a device have the same bytes in the
 * module as in main memory. */
static const location *location_of(describer *self, const graph_value *value)
{
    const location *known = base_map_get(&self->where, value);

    if (known || !value->constant)
        return known;
    int i = 0;
    while (i < self->constants.n && ((const graph_value *)self->constants.at[i])->constant != value->constant)
        i++;
    if (i == self->constants.n)
        base_push(self->cx, &self->constants, value);
    return place(self, value, RT_IN_CONSTANT, i, NULL);
}

static void place_storage(describer *self, const graph_node *node)
{
    const op_attr *output = graph_attribute(node, "output");

    if (output)
        place(self, node->out[0], RT_IN_OUTPUT, (int)output->i, NULL);
    else {
        base_push(self->cx, &self->pools, node->out[0]->type.dim[0]);
        place(self, node->out[0], RT_IN_POOL, 0, NULL);
    }
}

/* A view has the place of what it views; other tensors lie at an offset of a storage or of a tensor. */
static void place_tensor(describer *self, const graph_node *node)
{
    const op_attr *offset = graph_attribute(node, "offset");
    const location *of = location_of(self, node->in[0]);
    const ir_expr *at = of->offset;

    if (offset)
        at =
            at ? ir_simplify(graph_facts(self->m), ir_add(self->cx, at, offset->exprs[0])) : offset->exprs[0];
    place(self, node->out[0], of->storage, of->index,
          at && of->storage == RT_IN_OUTPUT && ir_is_value(at, 0) ? NULL : at);
}

/* Before any value gets its number: a constant that only a view uses has a place too. */
static void place_values(describer *self)
{
    for (int i = 0; i < self->body->inputs.n; i++)
        place(self, self->body->inputs.at[i], RT_IN_INPUT, i, NULL);
    for (int i = 0; i < self->body->nodes.n; i++) {
        const graph_node *node = self->body->nodes.at[i];

        if (node->kind == GRAPH_ALLOC_STORAGE)
            place_storage(self, node);
        else if (node->kind == GRAPH_ALLOC_TENSOR)
            place_tensor(self, node);
        else
            for (int k = 0; k < node->n_in; k++)
                location_of(self, node->in[k]);
    }
}

/* ---- values and steps ---- */

/* The number of a value in the module's table; its description is added at first use. */
static bool value_id(describer *self, const graph_value *value, int32_t *id)
{
    intptr_t known = (intptr_t)base_map_get(&self->ids, value);
    const location *at = location_of(self, value);
    rt_value_desc *d = base_new(self->cx, rt_value_desc);

    *id = known ? (int32_t)known - 1 : self->values.n;
    if (known)
        return true;
    *d = (rt_value_desc){.dtype = value->type.dtype,
                         .rank = value->type.n,
                         .storage = at->storage,
                         .index = at->index,
                         .site = at->site};
    if (!dims(self, value->type.dim, value->type.n, &d->shape) ||
        (at->offset && !dim(self, at->offset, &d->offset)))
        return false;
    base_push(self->cx, &self->values, d);
    base_map_put(self->cx, &self->ids, value, (void *)((intptr_t)*id + 1));
    return true;
}

static bool step_values(describer *self, const graph_node *node, rt_step_desc *step)
{
    int32_t *ids = base_array(self->cx, int32_t, node->n_in);

    step->values = ids;
    step->n_values = node->n_in;
    for (int k = 0; k < node->n_in; k++)
        if (!value_id(self, node->in[k], &ids[k]))
            return false;
    return true;
}

static int kernel_index(const graph_module *module, const char *name)
{
    int i = 0;

    while (i < module->kernels.n &&
           !base_same(((const graph_kernel_type *)module->kernels.at[i])->name, name))
        i++;
    return i;
}

/* One step of the executor: a kernel with its arguments and the values of its symbols, or a copy between
 * devices. */
static bool add_step(describer *self, const graph_node *node)
{
    rt_step_desc *step = base_new(self->cx, rt_step_desc);
    const op_attr *operators = graph_attribute(node, "operators"), *values = graph_attribute(node, "dims");

    *step =
        (rt_step_desc){.function = RT_STEP_COPY, .name = "copy", .nodes = node->name[0] ? node->name : NULL};
    if (node->kind == GRAPH_INVOKE) {
        step->function = kernel_index(self->m, node->callee);
        step->name = operators ? operators->string : node->callee;
        step->nodes = node->name;
        step->n_dims = values ? values->n : 0;
    }
    base_push(self->cx, &self->steps, step);
    return step_values(self, node, step) &&
           (node->kind != GRAPH_INVOKE ||
            dims(self, values ? values->exprs : NULL, step->n_dims, &step->dims));
}

static bool add_steps(describer *self)
{
    for (int i = 0; i < self->body->nodes.n; i++) {
        const graph_node *node = self->body->nodes.at[i];

        if ((node->kind == GRAPH_INVOKE || node->kind == GRAPH_DEVICE_COPY) && !add_step(self, node))
            return false;
    }
    return true;
}

/* ---- the graph's description ---- */

/* A symbol is known from the first input that has it alone as an extent. */
static bool describe_symbol(const describer *self, const ir_expr *symbol, rt_symbol_desc *out)
{
    for (int i = 0; i < self->body->inputs.n; i++) {
        const op_type *type = &((const graph_value *)self->body->inputs.at[i])->type;

        for (int d = 0; d < type->n; d++)
            if (type->dim[d] == symbol) {
                *out = (rt_symbol_desc){.name = symbol->var.name, .input = i, .dim = d};
                return true;
            }
    }
    return false;
}

/* Symbols of the module that are no input's extent may be left over from what passes dropped; using one is an
 * error. */
static const rt_symbol_desc *describe_symbols(describer *self)
{
    rt_symbol_desc *symbols = base_array(self->cx, rt_symbol_desc, self->m->symbols.n);

    for (int i = 0; i < self->m->symbols.n; i++)
        if (describe_symbol(self, self->m->symbols.at[i], &symbols[self->symbols.n]))
            base_push(self->cx, &self->symbols, self->m->symbols.at[i]);
    return symbols;
}

/* The condition, and what it means where that is known. */
static const char *fact_text(const describer *self, const ir_expr *fact)
{
    const char *condition = ir_expr_text(self->cx, fact), *meaning = base_map_get(self->m->meanings, fact);

    return meaning ? base_format(self->cx, "%s (%s)", condition, meaning) : condition;
}

static bool describe_facts(describer *self, rt_graph_desc *graph)
{
    rt_fact_desc *facts = base_array(self->cx, rt_fact_desc, self->m->facts.n);

    graph->facts = facts;
    for (int i = 0; i < self->m->facts.n; i++) {
        if (untold(self, self->m->facts.at[i]))
            continue;
        facts[graph->n_facts].text = fact_text(self, self->m->facts.at[i]);
        if (!dim(self, self->m->facts.at[i], &facts[graph->n_facts++].condition))
            return false;
    }
    return true;
}

/* Inputs or outputs as the runtime shows them to its caller; names NULL: the values' own. */
static bool describe_tensors(describer *self, const base_vec *values, const base_vec *names,
                             const rt_tensor_desc **out, int32_t *count)
{
    rt_tensor_desc *tensor = base_array(self->cx, rt_tensor_desc, values->n);

    *out = tensor;
    *count = values->n;
    for (int i = 0; i < values->n; i++) {
        const graph_value *value = values->at[i];

        tensor[i] = (rt_tensor_desc){
            .name = names ? names->at[i] : value->name, .dtype = value->type.dtype, .rank = value->type.n};
        if (!dims(self, value->type.dim, value->type.n, &tensor[i].shape))
            return false;
    }
    return true;
}

static void *flatten(tec_context *cx, const base_vec *vec, size_t size)
{
    char *all = base_alloc_array(cx, (size_t)vec->n, size);

    for (int i = 0; i < vec->n; i++)
        for (size_t k = 0; k < size; k++)
            all[(size_t)i * size + k] = ((const char *)vec->at[i])[k];
    return all;
}

/* Each device but the host. */
static bool describe_sites(describer *self, rt_graph_desc *graph)
{
    rt_site_desc *sites = base_array(self->cx, rt_site_desc, self->pools.n);

    for (int i = 1; i < self->pools.n; i++) {
        sites[i - 1].device = self->m->devices.at[i - 1];
        if (!dim(self, self->pools.at[i], &sites[i - 1].pool_size))
            return false;
    }
    graph->sites = sites;
    graph->n_sites = self->pools.n > 1 ? self->pools.n - 1 : 0;
    return true;
}

/* Values and steps are there already; the rest is read from the module and the body's ends. */
static bool describe_graph(describer *self, const char *name, rt_graph_desc *graph)
{
    *graph = (rt_graph_desc){.name = name,
                             .values = flatten(self->cx, &self->values, sizeof(rt_value_desc)),
                             .n_values = self->values.n,
                             .steps = flatten(self->cx, &self->steps, sizeof(rt_step_desc)),
                             .n_steps = self->steps.n};
    graph->symbols = self->told;
    graph->n_symbols = self->symbols.n;
    if (!describe_sites(self, graph))
        return false;
    return describe_facts(self, graph) &&
           describe_tensors(self, &self->body->inputs, NULL, &graph->inputs, &graph->n_inputs) &&
           describe_tensors(self, &self->body->outputs, &self->body->output_names, &graph->outputs,
                            &graph->n_outputs) &&
           dim(self, self->pools.n ? self->pools.at[0] : ir_int(self->cx, 0), &graph->pool_size);
}

/* Name, dtype and shape are copied, the bytes are not: they stay with the value. */
const rt_constant_desc *graph_describe_constants(tec_context *cx, const base_vec *values)
{
    rt_constant_desc *constant = base_array(cx, rt_constant_desc, values->n);

    for (int i = 0; i < values->n; i++) {
        const graph_value *value = values->at[i];
        int64_t *shape = base_array(cx, int64_t, value->type.n);

        for (int d = 0; d < value->type.n; d++)
            ir_is_int(value->type.dim[d], &shape[d]);
        constant[i] = (rt_constant_desc){.name = value->name,
                                         .dtype = value->type.dtype,
                                         .rank = value->type.n,
                                         .shape = shape,
                                         .data = value->constant->data};
    }
    return constant;
}

/* Only the planned nodes of the first function are read: whatever the runtime is to do must stand there. */
bool graph_describe(const graph_module *module, rt_module_desc *out)
{
    const graph_function *main = module->functions.at[0];
    describer b = {.cx = module->cx, .m = module, .body = main->body};
    rt_graph_desc *graph = base_new(module->cx, rt_graph_desc);

    b.told = describe_symbols(&b);
    place_values(&b);
    if (!add_steps(&b) || !describe_graph(&b, main->name, graph))
        return false;
    out->constants = graph_describe_constants(b.cx, &b.constants);
    out->n_constants = b.constants.n;
    out->graphs = graph;
    out->n_graphs = 1;
    return true;
}
