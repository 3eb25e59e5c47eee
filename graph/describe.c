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
    const ir_expr *offset; /* in the pool; NULL elsewhere */
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

static bool is_told(const describer *b, const ir_expr *symbol)
{
    for (int i = 0; i < b->symbols.n; i++)
        if (b->symbols.at[i] == symbol)
            return true;
    return false;
}

/* The first variable of e that no input tells; NULL: none. */
static const ir_expr *untold(describer *b, const ir_expr *e)
{
    base_vec vars = {0};

    ir_free_vars(b->cx, e, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!is_told(b, vars.at[i]))
            return vars.at[i];
    return NULL;
}

static bool dim(describer *b, const ir_expr *e, rt_dim *out)
{
    const ir_expr *unknown = untold(b, e);

    if (unknown) {
        base_fail(
            b->cx, TEC_UNSUPPORTED, unknown->loc,
            "dimension '%s' is not the extent of any input: its value is not known before the model runs",
            unknown->var.name);
        return false;
    }
    return comp_dim(b->cx, e, (const ir_expr *const *)b->symbols.at, b->symbols.n, out);
}

static bool dims(describer *b, const ir_expr *const *e, int n, const rt_dim **out)
{
    rt_dim *d = base_array(b->cx, rt_dim, n);

    *out = d;
    for (int i = 0; i < n; i++)
        if (!dim(b, e[i], &d[i]))
            return false;
    return true;
}

/* ---- where values lie ---- */

static const location *place(describer *b, const graph_value *v, rt_storage storage, int index,
                             const ir_expr *offset)
{
    location *l = base_new(b->cx, location);

    *l =
        (location){storage, index, offset, storage == RT_IN_INPUT || storage == RT_IN_OUTPUT ? 0 : v->device};
    base_map_put(b->cx, &b->where, v, l);
    return l;
}

/* Constants get their place when they are first asked for. Those on a device have the same bytes in the
 * module
 * as in main memory. */
static const location *location_of(describer *b, const graph_value *v)
{
    const location *known = base_map_get(&b->where, v);

    if (known || !v->constant)
        return known;
    int i = 0;
    while (i < b->constants.n && ((const graph_value *)b->constants.at[i])->constant != v->constant)
        i++;
    if (i == b->constants.n)
        base_push(b->cx, &b->constants, v);
    return place(b, v, RT_IN_CONSTANT, i, NULL);
}

static void place_storage(describer *b, const graph_node *node)
{
    const op_attr *output = graph_attribute(node, "output");

    if (output)
        place(b, node->out[0], RT_IN_OUTPUT, (int)output->i, NULL);
    else {
        base_push(b->cx, &b->pools, node->out[0]->type.dim[0]);
        place(b, node->out[0], RT_IN_POOL, 0, NULL);
    }
}

static void place_tensor(describer *b, const graph_node *node)
{
    const op_attr *offset = graph_attribute(node, "offset");
    const location *of = location_of(b, node->in[0]);

    place(b, node->out[0], of->storage, of->index,
          of->storage != RT_IN_POOL ? NULL
          : offset                  ? offset->exprs[0]
                                    : of->offset);
}

/* Before any value gets its number: a constant that only a view uses has a place too. */
static void place_values(describer *b)
{
    for (int i = 0; i < b->body->inputs.n; i++)
        place(b, b->body->inputs.at[i], RT_IN_INPUT, i, NULL);
    for (int i = 0; i < b->body->nodes.n; i++) {
        const graph_node *node = b->body->nodes.at[i];

        if (node->kind == GRAPH_ALLOC_STORAGE)
            place_storage(b, node);
        else if (node->kind == GRAPH_ALLOC_TENSOR)
            place_tensor(b, node);
        else
            for (int k = 0; k < node->n_in; k++)
                location_of(b, node->in[k]);
    }
}

/* ---- values and steps ---- */

/* The number of a value in the module's table; its description is added at first use. */
static bool value_id(describer *b, const graph_value *v, int32_t *id)
{
    intptr_t known = (intptr_t)base_map_get(&b->ids, v);
    const location *at = location_of(b, v);
    rt_value_desc *d = base_new(b->cx, rt_value_desc);

    *id = known ? (int32_t)known - 1 : b->values.n;
    if (known)
        return true;
    *d = (rt_value_desc){.dtype = v->type.dtype,
                         .rank = v->type.n,
                         .storage = at->storage,
                         .index = at->index,
                         .site = at->site};
    if (!dims(b, v->type.dim, v->type.n, &d->shape) || (at->offset && !dim(b, at->offset, &d->offset)))
        return false;
    base_push(b->cx, &b->values, d);
    base_map_put(b->cx, &b->ids, v, (void *)((intptr_t)*id + 1));
    return true;
}

static bool step_values(describer *b, const graph_node *node, rt_step_desc *s)
{
    int32_t *ids = base_array(b->cx, int32_t, node->n_in);

    s->values = ids;
    s->n_values = node->n_in;
    for (int k = 0; k < node->n_in; k++)
        if (!value_id(b, node->in[k], &ids[k]))
            return false;
    return true;
}

static int kernel_index(const graph_module *m, const char *name)
{
    int i = 0;

    while (i < m->kernels.n && !base_same(((const graph_kernel_type *)m->kernels.at[i])->name, name))
        i++;
    return i;
}

/* One step of the executor: a kernel with its arguments and the values of its symbols, or a copy between
 * devices. */
static bool add_step(describer *b, const graph_node *node)
{
    rt_step_desc *s = base_new(b->cx, rt_step_desc);
    const op_attr *operators = graph_attribute(node, "operators"), *values = graph_attribute(node, "dims");

    *s = (rt_step_desc){.function = RT_STEP_COPY, .name = "copy", .nodes = node->name[0] ? node->name : NULL};
    if (node->kind == GRAPH_INVOKE) {
        s->function = kernel_index(b->m, node->callee);
        s->name = operators ? operators->string : node->callee;
        s->nodes = node->name;
        s->n_dims = values ? values->n : 0;
    }
    base_push(b->cx, &b->steps, s);
    return step_values(b, node, s) &&
           (node->kind != GRAPH_INVOKE || dims(b, values ? values->exprs : NULL, s->n_dims, &s->dims));
}

static bool add_steps(describer *b)
{
    for (int i = 0; i < b->body->nodes.n; i++) {
        const graph_node *node = b->body->nodes.at[i];

        if ((node->kind == GRAPH_INVOKE || node->kind == GRAPH_DEVICE_COPY) && !add_step(b, node))
            return false;
    }
    return true;
}

/* ---- the graph's description ---- */

/* A symbol is known from the first input that has it alone as an extent. */
static bool describe_symbol(const describer *b, const ir_expr *symbol, rt_symbol_desc *out)
{
    for (int i = 0; i < b->body->inputs.n; i++) {
        const op_type *t = &((const graph_value *)b->body->inputs.at[i])->type;

        for (int d = 0; d < t->n; d++)
            if (t->dim[d] == symbol) {
                *out = (rt_symbol_desc){.name = symbol->var.name, .input = i, .dim = d};
                return true;
            }
    }
    return false;
}

/* Symbols of the module that are no input's extent may be left over from what passes dropped; using one is an
 * error. */
static const rt_symbol_desc *describe_symbols(describer *b)
{
    rt_symbol_desc *symbols = base_array(b->cx, rt_symbol_desc, b->m->symbols.n);

    for (int i = 0; i < b->m->symbols.n; i++)
        if (describe_symbol(b, b->m->symbols.at[i], &symbols[b->symbols.n]))
            base_push(b->cx, &b->symbols, b->m->symbols.at[i]);
    return symbols;
}

static bool describe_facts(describer *b, rt_graph_desc *g)
{
    rt_fact_desc *facts = base_array(b->cx, rt_fact_desc, b->m->facts.n);

    g->facts = facts;
    for (int i = 0; i < b->m->facts.n; i++) {
        if (untold(b, b->m->facts.at[i]))
            continue;
        facts[g->n_facts].text = ir_expr_text(b->cx, b->m->facts.at[i]);
        if (!dim(b, b->m->facts.at[i], &facts[g->n_facts++].condition))
            return false;
    }
    return true;
}

/* Inputs or outputs as the runtime shows them to its caller; names NULL: the values' own. */
static bool describe_tensors(describer *b, const base_vec *values, const base_vec *names,
                             const rt_tensor_desc **out, int32_t *n)
{
    rt_tensor_desc *t = base_array(b->cx, rt_tensor_desc, values->n);

    *out = t;
    *n = values->n;
    for (int i = 0; i < values->n; i++) {
        const graph_value *v = values->at[i];

        t[i] = (rt_tensor_desc){
            .name = names ? names->at[i] : v->name, .dtype = v->type.dtype, .rank = v->type.n};
        if (!dims(b, v->type.dim, v->type.n, &t[i].shape))
            return false;
    }
    return true;
}

static void *flatten(tec_context *cx, const base_vec *v, size_t size)
{
    char *all = base_alloc_array(cx, (size_t)v->n, size);

    for (int i = 0; i < v->n; i++)
        for (size_t k = 0; k < size; k++)
            all[(size_t)i * size + k] = ((const char *)v->at[i])[k];
    return all;
}

/* Each device but the host. */
static bool describe_sites(describer *b, rt_graph_desc *g)
{
    rt_site_desc *sites = base_array(b->cx, rt_site_desc, b->pools.n);

    for (int i = 1; i < b->pools.n; i++) {
        sites[i - 1].device = b->m->devices.at[i - 1];
        if (!dim(b, b->pools.at[i], &sites[i - 1].pool_size))
            return false;
    }
    g->sites = sites;
    g->n_sites = b->pools.n > 1 ? b->pools.n - 1 : 0;
    return true;
}

/* Values and steps are there already; the rest is read from the module and the body's ends. */
static bool describe_graph(describer *b, const char *name, rt_graph_desc *g)
{
    *g = (rt_graph_desc){.name = name,
                         .values = flatten(b->cx, &b->values, sizeof(rt_value_desc)),
                         .n_values = b->values.n,
                         .steps = flatten(b->cx, &b->steps, sizeof(rt_step_desc)),
                         .n_steps = b->steps.n};
    g->symbols = b->told;
    g->n_symbols = b->symbols.n;
    if (!describe_sites(b, g))
        return false;
    return describe_facts(b, g) && describe_tensors(b, &b->body->inputs, NULL, &g->inputs, &g->n_inputs) &&
           describe_tensors(b, &b->body->outputs, &b->body->output_names, &g->outputs, &g->n_outputs) &&
           dim(b, b->pools.n ? b->pools.at[0] : ir_int(b->cx, 0), &g->pool_size);
}

/* Constants have constant extents: their data lies in the module. */
static const rt_constant_desc *describe_constants(describer *b)
{
    rt_constant_desc *c = base_array(b->cx, rt_constant_desc, b->constants.n);

    for (int i = 0; i < b->constants.n; i++) {
        const graph_value *v = b->constants.at[i];
        int64_t *shape = base_array(b->cx, int64_t, v->type.n);

        for (int d = 0; d < v->type.n; d++)
            ir_is_int(v->type.dim[d], &shape[d]);
        c[i] = (rt_constant_desc){.name = v->name,
                                  .dtype = v->type.dtype,
                                  .rank = v->type.n,
                                  .shape = shape,
                                  .data = v->constant->data};
    }
    return c;
}

/* Only the planned nodes of the first function are read: whatever the runtime is to do must stand there. */
bool graph_describe(const graph_module *m, rt_module_desc *out)
{
    const graph_function *main = m->functions.at[0];
    describer b = {.cx = m->cx, .m = m, .body = main->body};
    rt_graph_desc *g = base_new(m->cx, rt_graph_desc);

    b.told = describe_symbols(&b);
    place_values(&b);
    if (!add_steps(&b) || !describe_graph(&b, main->name, g))
        return false;
    out->constants = describe_constants(&b);
    out->n_constants = b.constants.n;
    out->graphs = g;
    out->n_graphs = 1;
    return true;
}
