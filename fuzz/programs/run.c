/* fuzz/programs/run.c -- one case: drawn, run three ways, compared, counted. */
#include "fuzz/programs/programs.h"

#include <string.h>

#include "fuzz/programs/inside.h"
#include "fuzz/programs/values.h"
#include "graph/build.h"
#include "graph/pass.h"
#include "graph/text.h"
#include "lang/format.h"
#include "lang/lang.h"

enum { MAX_RESULTS = 6 };

/* A case while it runs. `state` is where the drawing begins. */
typedef struct {
    fuzz_program_case *c;
    uint64_t state;
    bool drawn; /* the function "drawn" is run; otherwise main */
    int n_in, n_out;
    const char *stop; /* what the interpreter says of extents that had to be equal; NULL: it ran to the end */
    interp_value *in[FUZZ_MAX_VALUES], *expected[MAX_RESULTS];
    bool nodes[GRAPH_N_KINDS], instructions[RT_N_INSTRUCTIONS], passes[FUZZ_MAX_PASSES], uses[FUZZ_N_USES];
} trial;

static bool finding(trial *self, const char *why)
{
    if (!self->c->why)
        self->c->why = base_strdup(self->c->cx, why ? why : "it failed without an error");
    return false;
}

/* The module in the context; the same each time. *state is where inputs are drawn from. */
static graph_module *make_module(const trial *self, tec_context *cx, uint64_t *state)
{
    *state = self->state;
    const char *text = fuzz_program_text(cx, state, !self->drawn);
    graph_module *module = lang_parse(cx, "case.tecp", text, NULL);
    fuzz_program p = {.cx = cx, .state = *state, .m = module};

    if (module && self->drawn && !fuzz_program_function(&p))
        return NULL;
    *state = p.state;
    return module;
}

/* ---- what occurs ---- */

static void note_nodes(trial *self, const graph_body *body)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        self->nodes[node->kind] = true;
        for (int k = 0; k < node->n_bodies; k++)
            note_nodes(self, node->body[k]);
    }
}

/* A stage that changed something; one that is new gets the next place. */
static void note_stage(trial *self, const char *stage)
{
    fuzz_program_counts *counts = self->c->counts;
    int i = 0;

    while (i < counts->n_passes && strcmp(counts->pass[i], stage) != 0)
        i++;
    if (i == counts->n_passes && i < FUZZ_MAX_PASSES)
        counts->pass[counts->n_passes++] = stage;
    if (i < counts->n_passes)
        self->passes[i] = true;
}

/* Sees the module at each stage that changed it. */
static bool watch(void *user, const char *stage, const graph_module *module)
{
    for (int f = 0; f < module->functions.n; f++)
        note_nodes(user, ((const graph_function *)module->functions.at[f])->body);
    note_stage(user, stage);
    return true;
}

/* What works on kernels and not on the module (graph/bounded.h, graph/place_program.h). */
static void note_kernels(trial *self, const graph_built *built)
{
    if (built->n_bounded)
        note_stage(self, "bounded");
    if (built->n_free)
        note_stage(self, "place");
}

static void note_instructions(trial *self, const rt_program_desc *program)
{
    for (int i = 0; i < program->n_functions; i++) {
        const rt_routine_desc *f = &program->functions[i];

        for (int32_t at = 0; at < f->n_words; at += rt_instruction_words(f->words, at, f->n_words))
            self->instructions[f->words[at]] = true;
    }
}

/* Functions of the module "NAME[TYPES; FUNCTIONS]" are uses of NAME (lang/poly.h). */
static void note_uses(trial *self, const graph_module *module)
{
    for (int i = 0; i < module->functions.n; i++) {
        const char *name = ((const graph_function *)module->functions.at[i])->name,
                   *types = strchr(name, '['), *functions = types ? strchr(types, ';') : NULL;

        if (!types)
            continue;
        const char *end = functions ? functions : types + strlen(types) - 1;
        self->uses[FUZZ_USED] = true;
        self->uses[FUZZ_WITH_FUNCTION] |= functions != NULL;
        self->uses[FUZZ_WITH_COMPOUND] |=
            memchr(types, '(', (size_t)(end - types)) || strstr(types, "Seq[") || strstr(types, "Pair[");
        for (int k = 0; k < i; k++) {
            const char *other = ((const graph_function *)module->functions.at[k])->name;

            self->uses[FUZZ_USED_OFTEN] |= strncmp(name, other, (size_t)(types + 1 - name)) == 0 &&
                                           strncmp(name, other, (size_t)(end - name)) != 0;
        }
    }
}

/* What occurred in the case, once each. */
static void count(const trial *self)
{
    fuzz_program_counts *counts = self->c->counts;

    counts->cases++;
    counts->stops += self->stop != NULL;
    for (int i = 0; i < GRAPH_N_KINDS; i++)
        counts->node[i] += self->nodes[i];
    for (int i = 0; i < RT_N_INSTRUCTIONS; i++)
        counts->instruction[i] += self->instructions[i];
    for (int i = 0; i < counts->n_passes; i++)
        counts->passed[i] += self->passes[i];
    for (int i = 0; i < FUZZ_N_USES; i++)
        counts->use[i] += self->uses[i];
}

const char *const fuzz_program_uses[FUZZ_N_USES] = {
    [FUZZ_USED] = "used",
    [FUZZ_USED_OFTEN] = "used with several types",
    [FUZZ_WITH_FUNCTION] = "with a function as operand",
    [FUZZ_WITH_COMPOUND] = "with a type made of others",
};

/* A pass that changes nothing has its place too, with a count of 0. */
fuzz_program_counts fuzz_program_no_counts(void)
{
    fuzz_program_counts counts = {0};

    for (int i = 0; i < graph_n_passes; i++) {
        bool known = false;

        for (int k = 0; k < counts.n_passes; k++)
            known = known || base_same(counts.pass[k], graph_passes[i].name);
        if (!known && counts.n_passes < FUZZ_MAX_PASSES)
            counts.pass[counts.n_passes++] = graph_passes[i].name;
    }
    return counts;
}

/* The run of a program copies values where they are needed: only static modules have nodes for it. */
bool fuzz_program_has_node(graph_node_kind kind)
{
    return kind != GRAPH_DEVICE_COPY;
}

/* No module that tec makes has the two others (docs/dynamic.md). */
bool fuzz_program_has_instruction(int instruction)
{
    return instruction != RT_DEVICE_COPY && instruction != RT_SHAPE_OF;
}

/* ---- running ---- */

static bool compare(trial *self, const tec_program *program, tec_object *const *out, const char *how)
{
    for (int k = 0; k < self->n_out; k++)
        if (!fuzz_same_value(program, self->expected[k], out[k]))
            return finding(self, base_format(self->c->cx, "%s: result %d differs", how, k));
    return true;
}

/* Whether the run ended as the interpreter's did: with results, or with the same words about the same
 * extents. */
static bool ends_alike(trial *self, bool ran, const tec_error *err, const char *how)
{
    if (ran && self->stop)
        return finding(self,
                       base_format(self->c->cx, "%s: it runs, but the interpreter: %s", how, self->stop));
    if (!ran && !(self->stop && strstr(err->text, self->stop)))
        return finding(self, base_format(self->c->cx, "%s: %s", how, err->text));
    return true;
}

/* Runs the module on the inputs and compares. */
static bool run_vm(trial *self, tec_module *module, const char *how)
{
    const tec_program_options o = {.run = {.threads = 1}};
    tec_error err = {0};
    tec_program *program = tec_program_new(module, self->drawn ? "drawn" : NULL, &o, &err);
    tec_object *given[FUZZ_MAX_VALUES] = {NULL}, *out[MAX_RESULTS] = {NULL};
    bool ok = program != NULL;

    for (int i = 0; i < self->n_in && ok; i++)
        ok = (given[i] = fuzz_object(program, self->in[i], &err)) != NULL;
    bool ran = ok && tec_program_run(program, given, self->n_in, out, self->n_out, &err);
    ok = ends_alike(self, ran, &err, how) && (!ran || compare(self, program, out, how));
    for (int k = 0; k < self->n_out; k++)
        tec_object_free(out[k]);
    for (int i = 0; i < self->n_in; i++)
        tec_object_free(given[i]);
    tec_program_free(program);
    return ok;
}

/* Builds in a context of its own, so that a planted fault is the VM's alone. */
static bool try_vm(trial *self, bool unoptimised)
{
    const char *how = unoptimised ? "unoptimised" : "optimised";
    tec_context *cx = base_child(self->c->cx);
    uint64_t state;

#ifdef TEC_DEBUG
    if (self->c->plant)
        base_set_plant(cx, self->c->plant);
#endif
    const graph_build_options options = {.target = self->c->target,
                                         .jobs = 1,
                                         .unoptimised = unoptimised,
                                         .coalesce_small = self->c->index % 2,
                                         .watch = self->c->counts ? watch : NULL,
                                         .watch_user = self};
    graph_module *module = make_module(self, cx, &state);
    if (module)
        module->cache = self->c->cache;
    graph_built *built = module ? graph_build(module, &options) : NULL;
    tec_module *loaded = built ? graph_load(built) : NULL;
    bool ok = loaded ? run_vm(self, loaded, how)
                     : finding(self, base_format(self->c->cx, "%s: %s", how, tec_context_error(cx)));
    if (built) {
        note_instructions(self, &built->desc.program);
        if (self->c->counts)
            note_kernels(self, built);
    }
    tec_module_free(loaded);
    tec_context_free(cx);
    return ok;
}

/* The text in its canonical layout becomes the same graph, and laid out again it is the same text. */
static bool keeps_its_meaning(trial *self, const graph_module *module)
{
    tec_context *cx = self->c->cx;
    uint64_t state = self->state;
    const char *once = lang_format(cx, "case.tecp", fuzz_program_text(cx, &state, !self->drawn)),
               *twice = once ? lang_format(cx, "case.tecp", once) : NULL;
    const graph_module *again = twice ? lang_parse(cx, "case.tecp", once, NULL) : NULL;

    if (!again)
        return finding(self, base_format(cx, "formatted: %s", tec_context_error(cx)));
    if (strcmp(once, twice) != 0)
        return finding(self, "formatted twice, the text is another one");
    return strcmp(graph_text(cx, module, 0), graph_text(cx, again, 0)) == 0 ||
           finding(self, "formatted, the program becomes another graph");
}

/* Whether the interpreter ended at extents that are not equal though they had to be: the words from the
 * node's name on, and both numbers, are expected of the VM too. */
static bool stops(trial *self)
{
    const char *text = tec_context_error(self->c->cx), *error = strstr(text, "error: ");
    char *words = base_strdup(self->c->cx, error ? error + 7 : text), *end = strchr(words, '\n');

    if (end)
        *end = '\0';
    if (!strstr(words, " must be equal: ") && !strstr(words, " differs: ") &&
        !strstr(words, " would be negative"))
        return false;
    self->stop = words;
    tec_context_clear(self->c->cx);
    return true;
}

/* The interpreter's results are what the VM's are compared with. Draws the inputs. */
static bool run_oracle(trial *self)
{
    uint64_t state;
    const graph_module *module = make_module(self, self->c->cx, &state);

    if (!module)
        return finding(self, tec_context_error(self->c->cx));
    if (!self->drawn && !keeps_its_meaning(self, module))
        return false;
    note_uses(self, module);
    self->c->text = graph_text(self->c->cx, module, GRAPH_TEXT_FULL);
    self->n_in = fuzz_program_inputs(self->c->cx, &state, module, self->drawn, self->in);
    self->n_out = self->drawn ? MAX_RESULTS : 1;
    return interp_run(self->c->cx, module, self->drawn ? "drawn" : NULL, self->in, self->n_in, NULL,
                      self->expected, self->n_out) ||
           stops(self) ||
           finding(self, base_format(self->c->cx, "interpreter: %s", tec_context_error(self->c->cx)));
}

/* Both ways of building are tried even where the first differs: it tells whether a pass is at fault. */
bool fuzz_program_try(fuzz_program_case *self)
{
    trial t = {.c = self,
               .state = (self->seed * 1000003 + (uint64_t)self->index) * 0x9e3779b97f4a7c15u + 0x1234567};

    t.drawn = fuzz_draw(&t.state, 3) != 0;
    self->why = self->text = NULL;
    if (!run_oracle(&t))
        return false;
    bool optimised = try_vm(&t, false), plain = try_vm(&t, true);
    if (self->counts)
        count(&t);
    return optimised && plain;
}
