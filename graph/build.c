/* graph/build.c -- from a model to a module, in stages: passes, plan, machine code, description. */
#include "graph/build.h"

#include <string.h>
#include <sys/stat.h>

#include "compiler/generators.h"
#include "graph/bytecode.h"
#include "graph/coalesce.h"
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

/* A stage that changed the module: for the caller's hook, and as a file. */
static bool dump(builder *self, const char *stage, const graph_module *module)
{
    if (self->o->watch && !self->o->watch(self->o->watch_user, stage, module))
        return false;
    if (!self->o->dump_graph)
        return true;
    const char *text = graph_text(self->cx, module, 0);
    return base_write_file(
        self->cx, base_format(self->cx, "%s/%02d-%s.graph", self->o->dump_graph, self->dumped++, stage), text,
        strlen(text));
}

static bool watch(void *user, const char *pass, const graph_module *module)
{
    return dump(user, pass, module);
}

/* ---- the stages ---- */

static bool optimise(builder *self)
{
    if (self->o->unoptimised && graph_is_program(self->m))
        return true;
    self->m = graph_optimise_watched(self->m, self->o->target, watch, self);
    return self->m && self->m->functions.n > 0;
}

/* Gives each node its device. In a program the plan does that for each kernel, and values have no device: the
 * run finds out where they are needed. */
static bool place(builder *self)
{
    const comp_options options = {
        .target = self->o->target, .strict = self->o->strict, .no_verify = self->o->no_verify};
    graph_placed p = {.strict = self->o->place_strict};
    const graph_module *before = self->m;

    if (graph_is_program(self->m))
        return true; /* the plan chooses for each kernel */
    self->m = graph_place_nodes(self->m, &options, &p);
    self->out->hosted = p.hosted;
    return self->m && (self->m == before || dump(self, "place", self->m));
}

/* The planned form, with the kernels that it needs; in a program tensors then share storages. */
static bool plan(builder *self)
{
    graph_kernels *kernels = base_new(self->cx, graph_kernels);

    *kernels = (graph_kernels){.cx = self->cx,
                               .target = self->o->target,
                               .source = self->o->source,
                               .dispatch = self->o->dispatch,
                               .placed = true};
    self->out->kernels = kernels;
    self->out->module = self->m;
    const comp_options options = {
        .target = self->o->target, .strict = self->o->strict, .no_verify = self->o->no_verify};
    graph_placed placed = {.strict = self->o->place_strict,
                           .rule = self->o->place_strict ? GRAPH_ON_DEVICE : self->o->place_rule,
                           .given = self->o->place_given};
    bool program = graph_is_program(self->m);
    if (program && !target_offers(self->o->target, TARGET_HOST)) {
        if (!comp_can_generate(self->cx, &options))
            return false;
        kernels->where = &placed;
        kernels->try_options = &options;
    }
    self->m = program ? graph_planned_program(self->m, kernels, self->o->unoptimised)
                      : graph_planned(self->m, kernels);
    if (kernels->where) {
        self->out->hosted = placed.hosted;
        self->out->n_free = placed.n_free;
        memcpy(self->out->counted, placed.count, sizeof placed.count);
        kernels->where = NULL;
        kernels->try_options = NULL;
    }
    self->out->n_bounded = kernels->n_bounded;
    if (!self->m || !dump(self, "plan", self->m))
        return false;
    graph_module *before = self->m;
    if (program && !self->o->unoptimised)
        self->m = graph_coalesce(self->m, self->o->coalesce_small);
    return self->m && (self->m == before || dump(self, "coalesce", self->m));
}

/* Versions that were asked for and that no kernel could have are a mistake. */
static bool check_dispatch(builder *self)
{
    const char *why = NULL;

    for (int i = 0; i < self->out->kernels->entries.n; i++) {
        const graph_kernel_entry *entry = graph_kernel_at(self->out->kernels, i);

        if (entry->unit.dispatch)
            return true;
        why = why ? why : entry->undispatched;
    }
    if (why)
        base_fail(self->cx, TEC_UNSUPPORTED, (base_loc){0}, "no kernel can have the versions: %s", why);
    else
        base_fail(self->cx, TEC_INVALID, (base_loc){0},
                  "dispatch '%s': no product or convolution of the host has this symbol", self->o->dispatch);
    return false;
}

/* The kernels of the plan, in parallel, to code. */
static bool compile(builder *self)
{
    const comp_options options = {.target = self->o->target,
                                  .jobs = self->o->jobs,
                                  .strict = self->o->strict,
                                  .no_verify = self->o->no_verify,
                                  .dump_dir = self->o->dump_dir,
                                  .cache = self->m->cache};

    self->out->planned = self->m;
    if (self->o->dispatch && !check_dispatch(self))
        return false;
    self->out->code = graph_compile_kernels((graph_kernels *)self->out->kernels, &options);
    return self->out->code != NULL;
}

static bool describe(builder *self)
{
    self->out->desc = *comp_desc(self->out->code);
    return graph_is_program(self->m) ? graph_describe_program(self->m, self->o->unoptimised, &self->out->desc)
                                     : graph_describe(self->m, &self->out->desc);
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

static bool holds(const builder *self, const char *stage)
{
#ifdef TEC_DEBUG
    if (!graph_verify(self->m)) {
        base_note(self->cx, (base_loc){0}, "after stage '%s'", stage);
        return false;
    }
#endif
    (void)self;
    (void)stage;
    return true;
}

graph_built *graph_build(graph_module *module, const graph_build_options *options)
{
    builder b = {.cx = module->cx, .m = module, .o = options, .out = base_new(module->cx, graph_built)};

    b.out->cx = module->cx;
    if (options->dump_graph)
        mkdir(options->dump_graph, 0777); /* what is wrong with it, writing into it will tell */
    if (!dump(&b, "read", module))
        return NULL;
    for (int i = 0; i < BASE_COUNT(stages); i++)
        if (!stages[i].run(&b) || (stages[i].changes && !holds(&b, stages[i].name)))
            return NULL;
    return b.out;
}

/* ---- tasks and modules ---- */

graph_kernels *graph_tasks(graph_module *module, const target *machine)
{
    graph_kernels *kernels;

    module = graph_optimise(module, machine);
    if (!module || module->functions.n == 0)
        return NULL;
    kernels = base_new(module->cx, graph_kernels);
    *kernels = (graph_kernels){.cx = module->cx, .target = machine, .want_tasks = true};
    return (graph_is_program(module) ? graph_planned_program(module, kernels, false)
                                     : graph_planned(module, kernels))
               ? kernels
               : NULL;
}

bool graph_write(const graph_built *built, const char *path, unsigned rt_flags)
{
    return comp_write(built->cx, built->code, &built->desc, path, rt_flags);
}

TEC_GIVE tec_module *graph_load(const graph_built *built)
{
    return comp_load(built->cx, built->code, &built->desc);
}
