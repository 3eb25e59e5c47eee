/* graph/kernels.c -- schedules definitions and collects them as units; a definition that equals an earlier
 * one gets its unit.
 */
#include "graph/kernels.h"

#include "graph/text.h"
#include "ir/build.h"
#include "ir/walk.h"

const graph_kernel_entry *graph_kernel_at(const graph_kernels *k, int i)
{
    return k->entries.at[i];
}

static int find_equal(const graph_kernels *k, const target *t, const ir_program *tree, uint64_t hash)
{
    for (int i = 0; i < k->entries.n; i++)
        if (graph_kernel_at(k, i)->hash == hash && graph_kernel_at(k, i)->unit.target == t &&
            ir_same_program(k->cx, graph_kernel_at(k, i)->plain, tree))
            return i;
    return -1;
}

static const char *unique_name(graph_kernels *k, const char *name)
{
    const char *unique = name;

    for (int i = 2; base_dict_has(&k->names, unique); i++)
        unique = base_format(k->cx, "%s'%d", name, i);
    base_dict_put(k->cx, &k->names, unique, k);
    return unique;
}

/* ---- tasks ---- */

/* The operator that decides how the node is scheduled; NULL: none. */
static const graph_node *anchor_of(const graph_node *node)
{
    if (!node || node->kind == GRAPH_OP)
        return node && node->op->kind == OP_COMPLEX ? node : NULL;
    for (int i = 0; node->kind == GRAPH_GROUP && i < node->body[0]->nodes.n; i++)
        if (anchor_of(node->body[0]->nodes.at[i]))
            return node->body[0]->nodes.at[i];
    return NULL;
}

/* The tuning task that records are looked up by: the anchor operator as before packing, so that a record fits
 * whether or not its weights were packed. */
static const space_task *task_of(graph_kernels *k, const te_def *def, const graph_node *anchor)
{
    if (!anchor || !anchor->impl)
        return space_task_new(k->cx, def, NULL);
    const graph_node *plain = anchor->plain ? anchor->plain : anchor;
    const ir_buffer **operand = base_array(k->cx, const ir_buffer *, plain->n_in);
    int n = 0;

    for (int i = 0; i < plain->n_in; i++)
        if (plain->in[i])
            operand[n++] = ir_buffer_new(k->cx, "", plain->in[i]->type.dtype, plain->in[i]->type.dim,
                                         plain->in[i]->type.n);
    space_anchor a = {.impl = anchor->impl->name,
                      .version = anchor->impl->version,
                      .operand = operand,
                      .n_operands = n,
                      .attributes = graph_attributes_text(k->cx, anchor->attr, anchor->n_attrs)};
    return space_task_new(k->cx, def, &a);
}

/* ---- schedules ---- */

/* What the source knows; NULL: nothing, or nothing that fits (e->refused). */
static const ir_program *from_source(graph_kernels *k, graph_kernel_entry *e)
{
    const char *origin = NULL,
               *trace =
                   k->source ? k->source->best(k->source, k->cx, e->task, e->unit.target, &origin) : NULL;
    sched *s = trace ? sched_new(k->cx, e->plain, e->unit.target) : NULL;

    if (!s)
        return NULL;
    if (!sched_replay(s, "record", trace)) {
        e->refused = base_strdup(k->cx, sched_error(s));
        return NULL;
    }
    e->unit.origin = origin ? origin : "record";
    return sched_tree(s);
}

static const ir_program *by_default(graph_kernels *k, graph_kernel_entry *e, const char *name)
{
    const sched *s = space_default(k->cx, e->plain, e->unit.target);

    if (!s)
        return NULL;
    if (sched_failed(s))
        return base_fail(k->cx, TEC_INTERNAL, e->plain->loc, "the default schedule of '%s' was refused: %s",
                         name, sched_error(s));
    if (k->want_tasks)
        e->trace = sched_trace_text(k->cx, s);
    return sched_tree(s);
}

/* The number of the kernel for a definition; equal definitions share one. -1: an error, which the context
 * has. */
int graph_kernel(graph_kernels *k, const te_def *def, const graph_node *node, const char *name)
{
    return graph_kernel_for(k, k->target, def, node, name);
}

/* Equal definitions are one kernel for each target. */
int graph_kernel_for(graph_kernels *k, const target *t, const te_def *def, const graph_node *node,
                     const char *name)
{
    const ir_program *plain = te_tree(k->cx, def);

    if (!plain)
        return -1;
    uint64_t hash = ir_hash_program(k->cx, plain);
    int known = find_equal(k, t, plain, hash);
    if (known >= 0) {
        ((graph_kernel_entry *)k->entries.at[known])->uses++;
        return known;
    }
    graph_kernel_entry *e = base_new(k->cx, graph_kernel_entry);
    *e = (graph_kernel_entry){.unit = {.origin = "default", .of_graph = true, .target = t},
                              .def = def,
                              .impl = node ? node->impl : NULL,
                              .plain = plain,
                              .hash = hash,
                              .uses = 1,
                              .node = node ? node->name : name};
    if (k->source || k->want_tasks)
        e->task = task_of(k, def, anchor_of(node));
    e->unit.tree = from_source(k, e);
    if (!e->unit.tree)
        e->unit.tree = by_default(k, e, name);
    if (!e->unit.tree || base_failed(k->cx))
        return -1;
    e->unit.name = unique_name(k, name);
    base_push(k->cx, &k->entries, e);
    return k->entries.n - 1;
}

comp_code *graph_compile_kernels(graph_kernels *k, const comp_options *o)
{
    comp_unit *units = base_array(k->cx, comp_unit, k->entries.n);

    for (int i = 0; i < k->entries.n; i++)
        units[i] = graph_kernel_at(k, i)->unit;
    return comp_compile(k->cx, units, k->entries.n, o);
}
