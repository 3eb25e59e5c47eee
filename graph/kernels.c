/* graph/kernels.c -- schedules definitions and collects them as units; a definition that equals an earlier
 * one gets its unit.
 */
#include "graph/kernels.h"

#include <string.h>

#include "compiler/dispatch.h"
#include "graph/text.h"
#include "ir/build.h"
#include "ir/walk.h"

const graph_kernel_entry *graph_kernel_at(const graph_kernels *kernels, int i)
{
    return kernels->entries.at[i];
}

static int find_equal(const graph_kernels *kernels, const target *machine, const ir_program *tree,
                      uint64_t hash)
{
    for (int i = 0; i < kernels->entries.n; i++)
        if (graph_kernel_at(kernels, i)->hash == hash &&
            graph_kernel_at(kernels, i)->unit.target == machine &&
            ir_same_program(kernels->cx, graph_kernel_at(kernels, i)->plain, tree))
            return i;
    return -1;
}

/* An equal kernel that is known already; -1: there is none. The tree is made in a scratch context first: a
 * large model has a hundred nodes for each kernel, and their trees would stay. Errors are left to who makes
 * the tree for good. */
static int find_known(const graph_kernels *kernels, const target *machine, const te_def *def)
{
    tec_context *scratch = base_child(kernels->cx);
    const ir_program *tree = te_tree(scratch, def);
    const graph_kernels within = {.cx = scratch, .entries = kernels->entries};
    int known = tree ? find_equal(&within, machine, tree, ir_hash_program(scratch, tree)) : -1;

    tec_context_free(scratch);
    return known;
}

static const char *unique_name(graph_kernels *kernels, const char *name)
{
    const char *unique = name;

    for (int i = 2; base_dict_has(&kernels->names, unique); i++)
        unique = base_format(kernels->cx, "%s'%d", name, i);
    base_dict_put(kernels->cx, &kernels->names, unique, kernels);
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

/* Dimensions with one symbol as a number; NULL: all symbols stay. */
static const ir_expr *const *fixed_dims(tec_context *cx, const ir_expr *const *dim, int n,
                                        const ir_expr *symbol, int64_t value)
{
    const ir_expr **out = base_array(cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        out[i] = symbol ? ir_substitute(cx, dim[i], symbol, ir_int(cx, value)) : dim[i];
    return out;
}

/* The tuning task that records are looked up by: the anchor operator as before packing, so that a record fits
 * whether or not its weights were packed. `symbol` (NULL: none) is the number `value` in the definition. */
static const space_task *task_of(graph_kernels *kernels, const te_def *def, const graph_node *anchor,
                                 const ir_expr *symbol, int64_t value)
{
    if (!anchor || !anchor->impl)
        return space_task_new(kernels->cx, def, NULL);
    const graph_node *plain = anchor->plain ? anchor->plain : anchor;
    const ir_buffer **operand = base_array(kernels->cx, const ir_buffer *, plain->n_in);
    int n = 0;

    for (int i = 0; i < plain->n_in; i++)
        if (plain->in[i])
            operand[n++] = ir_buffer_new(
                kernels->cx, "", plain->in[i]->type.dtype,
                fixed_dims(kernels->cx, plain->in[i]->type.dim, plain->in[i]->type.n, symbol, value),
                plain->in[i]->type.n);
    space_anchor a = {.impl = anchor->impl->name,
                      .version = anchor->impl->version,
                      .operand = operand,
                      .n_operands = n,
                      .attributes = graph_attributes_text(kernels->cx, anchor->attr, anchor->n_attrs)};
    return space_task_new(kernels->cx, def, &a);
}

/* ---- schedules ---- */

/* A tree for each range; that of the last is the entry's own. False: they do not apply. */
static bool use_ranges(graph_kernels *kernels, graph_kernel_entry *entry, const space_ranges *ranges,
                       const char **refused)
{
    const ir_program **tree =
        space_ranges_trees(kernels->cx, entry->def, entry->unit.target, ranges, refused);

    if (!tree)
        return false;
    entry->unit.tree = tree[ranges->n - 1];
    entry->ranges = ranges;
    entry->range_trees = tree;
    return true;
}

/* Schedules of the source for ranges of a symbol. False: it has none, or they do not apply. */
static bool ranges_from_source(graph_kernels *kernels, graph_kernel_entry *entry)
{
    const space_source *source = kernels->source;
    const space_ranges *ranges = source && source->ranges
                                     ? source->ranges(source, kernels->cx, entry->task, entry->unit.target)
                                     : NULL;

    if (!ranges || !use_ranges(kernels, entry, ranges, &entry->refused))
        return false;
    entry->unit.origin = "record";
    entry->trace = ranges->at[ranges->n - 1].trace;
    return true;
}

/* What the source knows; NULL: nothing, or nothing that fits (entry->refused). */
static const sched *from_source(graph_kernels *kernels, graph_kernel_entry *entry)
{
    const char *origin = NULL, *trace = kernels->source
                                            ? kernels->source->best(kernels->source, kernels->cx, entry->task,
                                                                    entry->unit.target, &origin)
                                            : NULL;
    sched *s = trace ? sched_new(kernels->cx, entry->plain, entry->unit.target) : NULL;

    if (!s)
        return NULL;
    if (!sched_replay(s, "record", trace)) {
        entry->refused = base_strdup(kernels->cx, sched_error(s));
        return NULL;
    }
    entry->unit.origin = origin ? origin : "record";
    entry->trace = trace;
    return s;
}

static const sched *by_default(graph_kernels *kernels, graph_kernel_entry *entry, const char *name)
{
    const sched *s = space_default(kernels->cx, entry->plain, entry->unit.target);

    if (!s)
        return NULL;
    if (sched_failed(s))
        return base_fail(kernels->cx, TEC_INTERNAL, entry->plain->loc,
                         "the default schedule of '%s' was refused: %s", name, sched_error(s));
    if (kernels->want_tasks)
        entry->trace = sched_trace_text(kernels->cx, s);
    return s;
}

/* The default schedule, and others for one row and a few rows where the number of rows is a symbol. */
static const sched *by_defaults(graph_kernels *kernels, graph_kernel_entry *entry, const char *name)
{
    const sched *s = by_default(kernels, entry, name);
    const space_ranges *ranges = s ? space_default_ranges(kernels->cx, entry->def, s) : NULL;
    const char *refused = NULL;

    if (ranges && !use_ranges(kernels, entry, ranges, &refused))
        return base_fail(kernels->cx, TEC_INTERNAL, entry->plain->loc,
                         "the default schedule of '%s' for a few rows was refused: %s", name,
                         refused ? refused : "no reason");
    return s;
}

/* Versions for remainders, of an operator that tiles: where the schedule does not apply to one of them, the
 * kernel has none, and says why. That is found out in a context of its own, since a failure stays in a
 * context. */
static void add_dispatch(graph_kernels *kernels, graph_kernel_entry *entry, const sched *schedule,
                         const graph_node *anchor)
{
    bool named = false;

    for (int i = 0; i < entry->plain->n_symbols && kernels->dispatch; i++) {
        const char *name = entry->plain->symbols[i]->var.name;

        named |= base_starts_with(kernels->dispatch, name) && kernels->dispatch[strlen(name)] == '%';
    }
    if (!named || !anchor || !target_offers(entry->unit.target, TARGET_HOST))
        return;
    tec_context *once = base_child(kernels->cx);
    if (comp_dispatch_new(once, entry->def, schedule, kernels->dispatch))
        entry->unit.dispatch = comp_dispatch_new(kernels->cx, entry->def, schedule, kernels->dispatch);
    else
        entry->undispatched = base_strdup(kernels->cx, tec_context_error(once));
    tec_context_free(once);
}

/* The number of the kernel for a definition; equal definitions share one. -1: an error, which the context
 * has. */
int graph_kernel(graph_kernels *kernels, const te_def *def, const graph_node *node, const char *name)
{
    return graph_kernel_for(kernels, kernels->target, def, node, name);
}

/* Equal definitions are one kernel for each target. */
int graph_kernel_for(graph_kernels *kernels, const target *machine, const te_def *def, const graph_node *node,
                     const char *name)
{
    int known = def ? find_known(kernels, machine, def) : -1;

    if (known >= 0) {
        ((graph_kernel_entry *)kernels->entries.at[known])->uses++;
        return known;
    }
    const ir_program *plain = te_tree(kernels->cx, def);
    if (!plain)
        return -1;
    graph_kernel_entry *entry = base_new(kernels->cx, graph_kernel_entry);
    *entry = (graph_kernel_entry){.unit = {.origin = "default", .of_graph = true, .target = machine},
                                  .def = def,
                                  .impl = node ? node->impl : NULL,
                                  .anchor = anchor_of(node),
                                  .plain = plain,
                                  .hash = ir_hash_program(kernels->cx, plain),
                                  .uses = 1,
                                  .node = node ? node->name : name};
    entry->task = task_of(kernels, def, entry->anchor, NULL, 0);
    if (!entry->task)
        return -1;
    entry->unit.summary = entry->task->summary;
    if (!ranges_from_source(kernels, entry)) {
        const sched *s = from_source(kernels, entry);

        s = s ? s : by_defaults(kernels, entry, name);
        if (!s || base_failed(kernels->cx))
            return -1;
        if (!entry->ranges)
            entry->unit.tree = sched_tree(s);
        add_dispatch(kernels, entry, s, entry->anchor);
    }
    if (!entry->unit.tree || base_failed(kernels->cx))
        return -1;
    entry->unit.plain = plain;
    entry->unit.name = unique_name(kernels, name);
    base_push(kernels->cx, &kernels->entries, entry);
    return kernels->entries.n - 1;
}

/* An example: a network of 40 MiB of weights, one of which, of 1 MiB, is read by all 16 steps of a
 * recurrence. Between two of its reads this 1 MiB alone is read; between two runs of any other layer, all
 * that the nodes read. */
void graph_kernel_reads(graph_kernels *kernels, int i, const base_vec *reads)
{
    graph_kernel_entry *entry = kernels->entries.at[i];

    for (int k = 0; k < reads->n; k++) {
        const graph_value *value = reads->at[k];

        if (!value->constant)
            continue;
        int64_t *before = base_map_get(&kernels->constants, value);
        int64_t between = before ? kernels->constant_bytes - *before : 0;
        if (between && (!entry->again || between < entry->again))
            entry->again = between;
        if (!before)
            base_map_put(kernels->cx, &kernels->constants, value, before = base_new(kernels->cx, int64_t));
        *before = kernels->constant_bytes;
        entry->constants |= k < 64 ? (uint64_t)1 << k : 0;
        kernels->constant_bytes += value->constant->bytes;
    }
}

/* What a build would make of the kernel if the symbol was this number from the beginning. */
bool graph_fix_kernel(graph_kernels *kernels, const graph_kernel_entry *entry, int symbol, int64_t value,
                      graph_fixed_kernel *out)
{
    tec_context *cx = kernels->cx;
    const ir_expr *var = entry->plain->symbols[symbol], *number = ir_int(cx, value);

    out->def = te_specialise(cx, entry->def, &var, &number, 1);
    out->plain = out->def ? te_tree(cx, out->def) : NULL;
    out->task = out->plain ? task_of(kernels, out->def, entry->anchor, var, value) : NULL;
    const sched *s = out->task ? space_default(cx, out->plain, entry->unit.target) : NULL;
    if (!s)
        return false;
    if (sched_failed(s))
        return base_fail(cx, TEC_INTERNAL, entry->plain->loc,
                         "the default schedule of '%s' at %s = %lld was refused: %s", entry->unit.name,
                         var->var.name, (long long)value, sched_error(s));
    out->trace = sched_trace_text(cx, s);
    return out->trace;
}

/* The functions of the module begin with the kernels, whose numbers the planned graph has. */
comp_code *graph_compile_kernels(graph_kernels *kernels, const comp_options *options)
{
    int n = kernels->entries.n, all;
    comp_ranged *ranged = base_array(kernels->cx, comp_ranged, n);

    for (int i = 0; i < n; i++) {
        const graph_kernel_entry *entry = graph_kernel_at(kernels, i);

        ranged[i].unit = entry->unit;
        if (entry->ranges)
            ranged[i] = (comp_ranged){entry->unit, entry->ranges->symbol, entry->ranges->n - 1,
                                      space_ranges_ends(kernels->cx, entry->ranges), entry->range_trees};
    }
    const comp_unit *units = comp_units_of_ranges(kernels->cx, ranged, n, &all);
    return comp_compile(kernels->cx, units, all, options);
}
