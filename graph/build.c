/* graph/build.c -- kernels for all steps, the plan as the runtime's description of the graph, and the module. */
#include "graph/build.h"

#include "graph/emit.h"
#include "graph/kernels.h"
#include "graph/pass.h"
#include "graph/plan.h"
#include "ir/text.h"
#include "ir/walk.h"

typedef struct {
    tec_context *cx;
    const graph_module *m;
    const graph_body *body;
    graph_plan plan;
    graph_kernels *kernels;
    base_vec symbols; /* ir_expr *: those that inputs tell; their positions are the module's */
    const rt_symbol_desc *told;
    base_map ids;    /* graph_value * -> id + 1 */
    base_vec values; /* rt_value_desc * */
    base_vec steps;  /* rt_step_desc * */
} builder;

static bool is_told(const builder *b, const ir_expr *symbol)
{
    for (int i = 0; i < b->symbols.n; i++)
        if (b->symbols.at[i] == symbol)
            return true;
    return false;
}

/* The first variable of e that no input tells; NULL: none. */
static const ir_expr *untold(builder *b, const ir_expr *e)
{
    base_vec vars = {0};

    ir_free_vars(b->cx, e, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!is_told(b, vars.at[i]))
            return vars.at[i];
    return NULL;
}

static bool dim(builder *b, const ir_expr *e, rt_dim *out)
{
    const ir_expr *unknown = untold(b, e);

    if (unknown) {
        base_fail(b->cx, TEC_UNSUPPORTED, unknown->loc, "dimension '%s' is not the extent of any input: its value is not known before the model runs",
                  unknown->var.name);
        return false;
    }
    return comp_dim(b->cx, e, (const ir_expr *const *)b->symbols.at, b->symbols.n, out);
}

static bool dims(builder *b, const ir_expr *const *e, int n, const rt_dim **out)
{
    rt_dim *d = base_array(b->cx, rt_dim, n);

    *out = d;
    for (int i = 0; i < n; i++)
        if (!dim(b, e[i], &d[i]))
            return false;
    return true;
}

/* ---- values ---- */

static bool describe_value(builder *b, const graph_value *v, rt_storage storage, int index, const ir_expr *offset, int32_t *id)
{
    rt_value_desc *d = base_new(b->cx, rt_value_desc);

    *d = (rt_value_desc){.dtype = v->type.dtype, .rank = v->type.n, .storage = storage, .index = index};
    if (!dims(b, v->type.dim, v->type.n, &d->shape) || (offset && !dim(b, offset, &d->offset)))
        return false;
    *id = b->values.n;
    base_push(b->cx, &b->values, d);
    return true;
}

static bool value_id(builder *b, const graph_value *v, int32_t *id)
{
    intptr_t known = (intptr_t)base_map_get(&b->ids, v);
    const graph_place *at = graph_place_of(&b->plan, v);

    if (known) {
        *id = (int32_t)known - 1;
        return true;
    }
    if (!describe_value(b, v, at->storage, at->index, at->storage == RT_IN_POOL ? at->offset : NULL, id))
        return false;
    base_map_put(b->cx, &b->ids, v, (void *)((intptr_t)*id + 1));
    return true;
}

/* ---- steps ---- */

static bool step_values(builder *b, const graph_node *node, rt_step_desc *s)
{
    base_vec operands = {0};

    graph_distinct_operands(b->cx, node, &operands);
    int32_t *ids = base_array(b->cx, int32_t, operands.n + node->n_out);
    s->values = ids;
    for (int k = 0; k < operands.n; k++)
        if (!value_id(b, operands.at[k], &ids[s->n_values++]))
            return false;
    for (int k = 0; k < node->n_out; k++)
        if (!value_id(b, node->out[k], &ids[s->n_values++]))
            return false;
    return true;
}

static bool add_step(builder *b, const graph_node *node)
{
    rt_step_desc *s = base_new(b->cx, rt_step_desc);
    te_def *d = graph_definition(b->m, node, b->kernels->target);
    int unit = d ? graph_kernel(b->kernels, d, node, graph_operators_text(b->cx, node)) : -1;

    if (unit < 0) {
        base_note(b->cx, node->loc, "while building '%s'", node->name);
        return false;
    }
    s->function = unit;
    s->name = graph_operators_text(b->cx, node);
    s->nodes = node->name;
    s->n_dims = d->symbols.n;
    base_push(b->cx, &b->steps, s);
    return step_values(b, node, s) && dims(b, (const ir_expr *const *)d->symbols.at, d->symbols.n, &s->dims);
}

static bool add_copy(builder *b, const graph_copy *copy)
{
    rt_step_desc *s = base_new(b->cx, rt_step_desc);
    int32_t *ids = base_array(b->cx, int32_t, 2);

    *s = (rt_step_desc){.function = RT_STEP_COPY, .values = ids, .n_values = 2, .name = "copy", .nodes = copy->from->name};
    base_push(b->cx, &b->steps, s);
    return value_id(b, copy->from, &ids[0]) && describe_value(b, copy->from, RT_IN_OUTPUT, copy->output, NULL, &ids[1]);
}

static bool add_steps(builder *b)
{
    for (int i = 0; i < b->plan.steps.n; i++)
        if (!add_step(b, b->plan.steps.at[i]))
            return false;
    for (int i = 0; i < b->plan.copies.n; i++)
        if (!add_copy(b, b->plan.copies.at[i]))
            return false;
    return true;
}

/* ---- the graph's description ---- */

/* A symbol is known from the first input that has it alone as an extent. */
static bool describe_symbol(const builder *b, const ir_expr *symbol, rt_symbol_desc *out)
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

/* Symbols of the module that are no input's extent may be left over from what passes dropped; using one is an error. */
static const rt_symbol_desc *describe_symbols(builder *b)
{
    rt_symbol_desc *symbols = base_array(b->cx, rt_symbol_desc, b->m->symbols.n);

    for (int i = 0; i < b->m->symbols.n; i++)
        if (describe_symbol(b, b->m->symbols.at[i], &symbols[b->symbols.n]))
            base_push(b->cx, &b->symbols, b->m->symbols.at[i]);
    return symbols;
}

static bool describe_facts(builder *b, rt_graph_desc *g)
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

static bool describe_tensors(builder *b, const base_vec *values, const base_vec *names, const rt_tensor_desc **out, int32_t *n)
{
    rt_tensor_desc *t = base_array(b->cx, rt_tensor_desc, values->n);

    *out = t;
    *n = values->n;
    for (int i = 0; i < values->n; i++) {
        const graph_value *v = values->at[i];

        t[i] = (rt_tensor_desc){.name = names ? names->at[i] : v->name, .dtype = v->type.dtype, .rank = v->type.n};
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

static bool describe_graph(builder *b, const char *name, rt_graph_desc *g)
{
    *g = (rt_graph_desc){.name = name, .values = flatten(b->cx, &b->values, sizeof(rt_value_desc)), .n_values = b->values.n,
                         .steps = flatten(b->cx, &b->steps, sizeof(rt_step_desc)), .n_steps = b->steps.n};
    g->symbols = b->told;
    g->n_symbols = b->symbols.n;
    return describe_facts(b, g) && describe_tensors(b, &b->body->inputs, NULL, &g->inputs, &g->n_inputs) &&
           describe_tensors(b, &b->body->outputs, &b->body->output_names, &g->outputs, &g->n_outputs) && dim(b, b->plan.pool, &g->pool_size);
}

static const rt_constant_desc *describe_constants(builder *b)
{
    rt_constant_desc *c = base_array(b->cx, rt_constant_desc, b->plan.constants.n);

    for (int i = 0; i < b->plan.constants.n; i++) {
        const graph_value *v = b->plan.constants.at[i];
        int64_t *shape = base_array(b->cx, int64_t, v->type.n);

        for (int d = 0; d < v->type.n; d++)
            ir_is_int(v->type.dim[d], &shape[d]);
        c[i] = (rt_constant_desc){.name = v->name, .dtype = v->type.dtype, .rank = v->type.n, .shape = shape, .data = v->constant->data};
    }
    return c;
}

static bool describe_module(builder *b, graph_built *out)
{
    rt_graph_desc *g = base_new(b->cx, rt_graph_desc);
    const graph_function *main = b->m->functions.at[0];

    out->desc = *comp_desc(out->code);
    out->desc.constants = describe_constants(b);
    out->desc.n_constants = b->plan.constants.n;
    out->desc.graphs = g;
    out->desc.n_graphs = 1;
    return describe_graph(b, main->name, g);
}

graph_kernels *graph_tasks(graph_module *m, const target *t)
{
    graph_plan plan;

    m = graph_optimise(m, t);
    if (!m || m->functions.n == 0)
        return NULL;
    graph_kernels *k = base_new(m->cx, graph_kernels);
    *k = (graph_kernels){.cx = m->cx, .target = t, .want_tasks = true};
    if (!graph_plan_memory(m, ((const graph_function *)m->functions.at[0])->body, &plan))
        return NULL;
    for (int i = 0; i < plan.steps.n; i++) {
        const graph_node *node = plan.steps.at[i];
        te_def *d = graph_definition(m, node, t);

        if (!d || graph_kernel(k, d, node, graph_operators_text(m->cx, node)) < 0) {
            base_note(m->cx, node->loc, "while looking for tasks in '%s'", node->name);
            return NULL;
        }
    }
    return k;
}

graph_built *graph_build(graph_module *m, const graph_build_options *o)
{
    m = graph_optimise(m, o->target);
    if (!m || m->functions.n == 0)
        return NULL;
    graph_kernels *kernels = base_new(m->cx, graph_kernels);
    builder b = {.cx = m->cx, .m = m, .body = ((const graph_function *)m->functions.at[0])->body, .kernels = kernels};
    graph_built *out = base_new(m->cx, graph_built);
    comp_options compile = {.target = o->target, .jobs = o->jobs, .strict = o->strict, .no_verify = o->no_verify, .dump_dir = o->dump_dir};

    *kernels = (graph_kernels){.cx = m->cx, .target = o->target, .source = o->source};
    *out = (graph_built){.cx = m->cx, .module = m, .kernels = kernels};
    b.told = describe_symbols(&b);
    if (!graph_plan_memory(m, b.body, &b.plan) || !add_steps(&b))
        return NULL;
    out->code = graph_compile_kernels(kernels, &compile);
    return out->code && describe_module(&b, out) ? out : NULL;
}

bool graph_write(const graph_built *b, const char *path, unsigned rt_flags)
{
    return comp_write(b->cx, b->code, &b->desc, path, rt_flags);
}

TEC_GIVE tec_module *graph_load(const graph_built *b)
{
    return comp_load(b->cx, b->code, &b->desc);
}
