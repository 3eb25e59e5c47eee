/* graph/build.c -- from a model to a module, in stages: passes, plan, machine code, description. */
#include "graph/build.h"

#include <string.h>
#include <sys/stat.h>

#include "graph/bytecode.h"
#include "graph/describe.h"
#include "graph/pass.h"
#include "graph/plan_program.h"
#include "graph/planned.h"
#include "graph/text.h"

typedef struct {
    tec_context *cx;
    graph_module *m; /* what the stages make of the model */
    const graph_build_options *o;
    graph_built *out;
    int dumped; /* files of --dump-graph */
} builder;

/* ---- --dump-graph ---- */

static bool dump(builder *b, const char *stage, const graph_module *m)
{
    const char *text = graph_text(b->cx, m, 0);

    return base_write_file(b->cx,
                           base_format(b->cx, "%s/%02d-%s.graph", b->o->dump_graph, b->dumped++, stage), text,
                           strlen(text));
}

static bool watch(void *user, const char *pass, const graph_module *m)
{
    return dump(user, pass, m);
}

/* ---- the stages ---- */

static bool optimise(builder *b)
{
    b->m = graph_optimise_watched(b->m, b->o->target, b->o->dump_graph ? watch : NULL, b);
    return b->m && b->m->functions.n > 0;
}

/* Gives each node its device. Programs with control flow stay on the host, as a device's list of launches has
 * no
 * branches. */
static bool place(builder *b)
{
    const comp_options options = {
        .target = b->o->target, .strict = b->o->strict, .no_verify = b->o->no_verify};
    graph_placed p = {.strict = b->o->place_strict};
    const graph_module *before = b->m;

    if (graph_is_program(b->m) && !target_offers(b->o->target, TARGET_HOST))
        return base_fail(
                   b->cx, TEC_UNSUPPORTED, (base_loc){0},
                   "'%s' has control flow or calls, and programs run on the host alone; target '%s' is a "
                   "device",
                   b->m->name, target_text(b->cx, b->o->target)),
               false;
    b->m = graph_place_nodes(b->m, &options, &p);
    b->out->hosted = p.hosted;
    return b->m && (b->m == before || !b->o->dump_graph || dump(b, "place", b->m));
}

static bool plan(builder *b)
{
    graph_kernels *kernels = base_new(b->cx, graph_kernels);

    *kernels = (graph_kernels){.cx = b->cx, .target = b->o->target, .source = b->o->source, .placed = true};
    b->out->kernels = kernels;
    b->out->module = b->m;
    b->m = graph_is_program(b->m) ? graph_planned_program(b->m, kernels) : graph_planned(b->m, kernels);
    return b->m && (!b->o->dump_graph || dump(b, "plan", b->m));
}

static bool compile(builder *b)
{
    const comp_options options = {.target = b->o->target,
                                  .jobs = b->o->jobs,
                                  .strict = b->o->strict,
                                  .no_verify = b->o->no_verify,
                                  .dump_dir = b->o->dump_dir};

    b->out->planned = b->m;
    b->out->code = graph_compile_kernels((graph_kernels *)b->out->kernels, &options);
    return b->out->code != NULL;
}

static bool describe(builder *b)
{
    b->out->desc = *comp_desc(b->out->code);
    return graph_is_program(b->m) ? graph_describe_program(b->m, &b->out->desc)
                                  : graph_describe(b->m, &b->out->desc);
}

static const struct {
    const char *name;
    bool (*run)(builder *b);
    bool changes; /* the module, which is verified afterwards in debug builds */
} stages[] = {
    {"optimise", optimise, false}, /* verifies each pass itself */
    {"place", place, true},        /* nodes get devices, values are copied between them */
    {"plan", plan, true},          /* operators and groups become allocations and invocations of kernels */
    {"compile", compile, false},   /* the kernels become machine code */
    {"describe", describe, false}, /* the planned nodes become the runtime's description */
};

static bool holds(const builder *b, const char *stage)
{
#ifdef TEC_DEBUG
    if (!graph_verify(b->m)) {
        base_note(b->cx, (base_loc){0}, "after stage '%s'", stage);
        return false;
    }
#endif
    (void)b;
    (void)stage;
    return true;
}

graph_built *graph_build(graph_module *m, const graph_build_options *o)
{
    builder b = {.cx = m->cx, .m = m, .o = o, .out = base_new(m->cx, graph_built)};

    b.out->cx = m->cx;
    if (o->dump_graph)
        mkdir(o->dump_graph, 0777); /* what is wrong with it, writing into it will tell */
    if (o->dump_graph && !dump(&b, "read", m))
        return NULL;
    for (int i = 0; i < BASE_COUNT(stages); i++)
        if (!stages[i].run(&b) || (stages[i].changes && !holds(&b, stages[i].name)))
            return NULL;
    return b.out;
}

/* ---- tasks and modules ---- */

graph_kernels *graph_tasks(graph_module *m, const target *t)
{
    graph_kernels *k;

    m = graph_optimise(m, t);
    if (!m || m->functions.n == 0)
        return NULL;
    k = base_new(m->cx, graph_kernels);
    *k = (graph_kernels){.cx = m->cx, .target = t, .want_tasks = true};
    return (graph_is_program(m) ? graph_planned_program(m, k) : graph_planned(m, k)) ? k : NULL;
}

bool graph_write(const graph_built *b, const char *path, unsigned rt_flags)
{
    return comp_write(b->cx, b->code, &b->desc, path, rt_flags);
}

TEC_GIVE tec_module *graph_load(const graph_built *b)
{
    return comp_load(b->cx, b->code, &b->desc);
}
