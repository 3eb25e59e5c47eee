/* graph/kernels.c -- schedules definitions and collects them as units; a definition that equals an earlier one gets its unit. */
#include "graph/kernels.h"

#include "ir/walk.h"

static int find_equal(const graph_kernels *k, const ir_program *tree, uint64_t hash)
{
    for (int i = 0; i < k->trees.n; i++)
        if (*(const uint64_t *)k->hashes.at[i] == hash && ir_same_program(k->cx, k->trees.at[i], tree))
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

static const ir_program *schedule(graph_kernels *k, const ir_program *tree, const op_impl *anchor, const char *name)
{
    sched *s = sched_new(k->cx, tree, k->target);

    if (op_schedule(s, anchor))
        return sched_tree(s);
    return base_fail(k->cx, TEC_INTERNAL, tree->loc, "the default schedule of '%s' was refused: %s", name, sched_error(s) ? sched_error(s) : "no reason");
}

int graph_kernel(graph_kernels *k, const te_def *def, const op_impl *anchor, const char *name)
{
    const ir_program *tree = te_tree(k->cx, def);

    if (!tree)
        return -1;
    uint64_t hash = ir_hash_program(k->cx, tree);
    int known = find_equal(k, tree, hash);
    if (known >= 0)
        return known;
    comp_unit *u = base_new(k->cx, comp_unit);
    u->tree = schedule(k, tree, anchor, name);
    if (!u->tree)
        return -1;
    u->name = unique_name(k, name);
    u->origin = "default";
    base_push(k->cx, &k->trees, tree);
    base_push(k->cx, &k->hashes, base_copy(k->cx, &hash, sizeof hash));
    base_push(k->cx, &k->units, u);
    return k->units.n - 1;
}

const comp_unit *graph_kernel_unit(const graph_kernels *k, int unit)
{
    return k->units.at[unit];
}

comp_code *graph_compile_kernels(graph_kernels *k, const comp_options *o)
{
    comp_unit *units = base_array(k->cx, comp_unit, k->units.n);

    for (int i = 0; i < k->units.n; i++)
        units[i] = *graph_kernel_unit(k, i);
    return comp_compile(k->cx, units, k->units.n, o);
}
