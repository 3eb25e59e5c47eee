/* graph/place.c -- see place.h.
 *
 * Whether the device can run a node is found out by trying: its definition is scheduled, lowered and
 * generated for the target in a scratch context, once for all nodes of equal definition. So no table of
 * operators can disagree with what the generator does. A group that fails runs on the host as a whole.
 */
#include "graph/place.h"

#include <string.h>

#include "base/guard.h"
#include "compiler/generators.h"
#include "graph/emit.h"
#include "graph/rewrite.h"
#include "ir/build.h"
#include "ir/walk.h"
#include "space/task.h"

enum { HOST, DEVICE };

/* A definition that was tried. */
typedef struct {
    const ir_program *plain;
    uint64_t hash;
    const char *why; /* NULL: the device can run it */
} trial;

typedef struct {
    const comp_options *options;
    graph_placed *result;
    base_map version; /* graph_value * of the new body -> the same value on the other device */
} placer;

/* ---- shape arithmetic ---- */

static bool is_shape(tec_context *cx, const graph_node *node, base_map *memo);

/* Whether the value is made of extents and constants alone. */
static bool is_shape_value(tec_context *cx, const graph_value *value, base_map *memo)
{
    return value->constant || (value->node && is_shape(cx, value->node, memo));
}

/* Floats are never extents, so a node that makes one is work even if all its operands are constant. */
static bool makes_integers(const graph_node *node)
{
    for (int k = 0; k < node->n_out; k++)
        if (base_is_float(node->out[k]->type.dtype))
            return false;
    return true;
}

static bool operators_are_shape(tec_context *cx, const graph_node *node, base_map *memo)
{
    if (!makes_integers(node))
        return false;
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] && !is_shape_value(cx, node->in[k], memo))
            return false;
    return true;
}

/* Integers that depend on nothing that is computed from the inputs' elements. The memo holds 1 for no and 2
 * for yes, since 0 is "not asked yet". Shapes of a dynamic model are a few numbers each: a copy to the device
 * and back would cost more than to compute them here. */
static bool is_shape(tec_context *cx, const graph_node *node, base_map *memo)
{
    intptr_t known = (intptr_t)base_map_get(memo, node);

    if (!known) {
        known = 1 + operators_are_shape(cx, node, memo);
        base_map_put(cx, memo, node, (void *)known);
    }
    return known == 2;
}

/* ---- what the device can run ---- */

/* The first error's own line, without the place in the model, which is the node's. */
static const char *reason(tec_context *cx, const tec_context *from)
{
    const char *text = tec_context_error(from), *mark = text ? strstr(text, "error: ") : NULL;

    if (!text)
        return "no reason was given";
    text = mark ? mark + strlen("error: ") : text;
    return base_strndup(cx, text, strcspn(text, "\n"));
}

/* Schedules, lowers and generates in the scratch context. What is made is thrown away with the context,
 * errors included. Nothing is written to the dump directory, or the user would find kernels there that are in
 * no module. */
static bool can_make(tec_context *scratch, const comp_options *options, const graph_node *node,
                     const ir_program *plain)
{
    BASE_GUARD(scratch, false);
    const sched *s = space_default(scratch, plain, options->target);
    comp_options o = *options;

    if (!s)
        return false;
    if (sched_failed(s))
        return base_fail(scratch, TEC_UNSUPPORTED, node->loc, "its default schedule was refused: %s",
                         sched_error(s)),
               false;
    o.dump_dir = NULL;
    return comp_can_compile(scratch, &(comp_unit){.name = "probe", .tree = sched_tree(s), .of_graph = true},
                            &o);
}

/* Why the device cannot run the definition; NULL: it can. The hash only saves comparisons; what is equal by
 * hash is compared as a whole, because a wrong answer would place a node where it does not run. */
static const char *try_definition(tec_context *cx, graph_placed *placed, const comp_options *options,
                                  const graph_node *node, const ir_program *plain)
{
    uint64_t hash = ir_hash_program(cx, plain);

    for (int i = 0; i < placed->trials.n; i++) {
        const trial *t = placed->trials.at[i];

        if (t->hash == hash && ir_same_program(cx, t->plain, plain))
            return t->why;
    }
    trial *t = base_new(cx, trial);
    tec_context *scratch = base_child(cx);
    *t = (trial){.plain = plain, .hash = hash};
    if (!can_make(scratch, options, node, plain))
        t->why = reason(cx, scratch);
    tec_context_free(scratch);
    base_push(cx, &placed->trials, t);
    return t->why;
}

/* DEVICE, HOST, or -1 with an error. A node that has no place on the device is noted with the reason. */
static int choose_for(tec_context *cx, const graph_node *node, const te_def *def, const comp_options *options,
                      graph_placed *placed)
{
    const ir_program *plain = def ? te_tree(cx, def) : NULL;

    if (!plain) {
        base_note(cx, node->loc, "while placing '%s'", node->name);
        return -1;
    }
    const char *why = try_definition(cx, placed, options, node, plain);
    if (!why || BASE_PLANT_ON(cx, place_possible))
        return DEVICE;
    if (placed->strict)
        return base_fail(
                   cx, TEC_UNSUPPORTED, node->loc,
                   "'%s' cannot run on target '%s', and --place strict forbids to run it on the host: %s",
                   node->name, target_text(cx, options->target), why),
               -1;
    graph_hosted *hosted = base_new(cx, graph_hosted);
    *hosted = (graph_hosted){node, why};
    base_push(cx, &placed->hosted, hosted);
    return HOST;
}

static int choose(graph_rewrite *rw, const graph_node *node)
{
    placer *p = rw->user;

    if (node->kind != GRAPH_OP && node->kind != GRAPH_GROUP)
        return HOST; /* the planner refuses it by name */
    if (is_shape(rw->cx, node, &p->result->shape))
        return HOST;
    return choose_for(rw->cx, node, graph_definition(rw->from, node, p->options->target), p->options,
                      p->result);
}

/* ---- values on devices ---- */

/* A constant as its bytes on the device. */
static graph_value *constant_there(graph_rewrite *rw, const graph_value *value)
{
    graph_value *there = base_copy(rw->cx, value, sizeof *value);

    there->device = DEVICE;
    return there;
}

/* The copy of the value on the device. It is made when the first reader there is rewritten, so it stands
 * before all readers. */
static graph_value *copy_of(graph_rewrite *rw, graph_value *value, int device)
{
    const char *name = value->name ? value->name : value->node ? value->node->name : "";

    base_set_where(rw->cx, value->loc);
    graph_node *copy = graph_node_new(rw->cx, GRAPH_DEVICE_COPY, name, &value, 1, &value->type, 1);
    copy->out[0]->name = value->name;
    copy->out[0]->device = device;
    base_push(rw->cx, &rw->body->nodes, copy);
    return copy->out[0];
}

/* The new value where it is needed; made there when it is first asked for. A second reader gets the same
 * copy:
 *
 *     v1 on the host, read by two device nodes:   v1' = device_copy(v1)   v2 = f(v1')   v3 = g(v1')
 *
 * One map serves both directions, since a value is made on one device and there are two. */
static graph_value *value_on(graph_rewrite *rw, graph_value *value, int device)
{
    placer *p = rw->user;

    if (!value || value->device == device)
        return value;
    graph_value *other = base_map_get(&p->version, value);
    if (other)
        return other;
    other = value->constant ? constant_there(rw, value) : copy_of(rw, value, device);
    base_map_put(rw->cx, &p->version, value, other);
    return other;
}

static bool only_renames(const graph_node *node)
{
    return node->kind == GRAPH_OP && node->op->identity;
}

/* The node on its device, reading what lies there. Renaming costs nothing anywhere: it happens where the
 * operand lies, and no copy is made for it. */
static bool place_node(graph_rewrite *rw, const graph_node *node)
{
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);
    int device;

    for (int k = 0; k < node->n_in; k++)
        in[k] = graph_new_value(rw, node->in[k]);
    device = only_renames(node) ? in[0]->device : choose(rw, node);
    if (device < 0)
        return false;
    for (int k = 0; k < node->n_in; k++)
        in[k] = value_on(rw, in[k], device);
    graph_node *copy = graph_copy_node(rw, node, in);
    for (int k = 0; k < node->n_out; k++) {
        copy->out[k]->device = device;
        graph_replace(rw, node->out[k], copy->out[k]);
    }
    return true;
}

/* A body of a group or a region stays as it is: it runs where its node does. */
static bool place(graph_rewrite *rw, const graph_node *node)
{
    return rw->body->outer ? graph_keep(rw, node) : place_node(rw, node);
}

/* What the graph gives lies in main memory. */
static void fetch_outputs(graph_module *module, placer *self)
{
    graph_body *body = ((graph_function *)module->functions.at[0])->body;
    graph_rewrite rw = {.cx = module->cx, .body = body, .user = self};

    for (int i = 0; i < body->outputs.n; i++)
        body->outputs.at[i] = value_on(&rw, body->outputs.at[i], HOST);
}

/* For a device: rewrites each node to the device that runs it, names that device's kind in the module, and
 * copies outputs back to the host. */
graph_module *graph_place_nodes(graph_module *module, const comp_options *options, graph_placed *p)
{
    placer pl = {.options = options, .result = p};

    if (target_offers(options->target, TARGET_HOST))
        return module;
    if (!comp_can_generate(module->cx, options))
        return NULL;
    graph_module *placed = graph_rewrite_module(module, place, NULL, &pl);
    if (!placed)
        return NULL;
    if (placed != module)
        base_push(module->cx, &placed->devices, (void *)comp_codegen(options->target)->device);
    fetch_outputs(placed, &pl);
    return placed;
}

/* ---- counting ---- */

static int operators_in(const graph_node *node)
{
    int n = 0;

    if (node->kind == GRAPH_OP)
        return !only_renames(node);
    for (int i = 0; node->kind == GRAPH_GROUP && i < node->body[0]->nodes.n; i++)
        n += operators_in(node->body[0]->nodes.at[i]);
    return n;
}

int graph_try_kernel(tec_context *cx, const graph_node *node, const te_def *def, const comp_options *options,
                     graph_placed *placed)
{
    return is_shape(cx, node, &placed->shape) ? HOST : choose_for(cx, node, def, options, placed);
}

const target *graph_place_kernel(tec_context *cx, const graph_node *node, const te_def *def,
                                 const comp_options *options, graph_placed *placed)
{
    intptr_t known = (intptr_t)base_map_get(&placed->device, node);
    int device = known ? (int)known - 1 : graph_try_kernel(cx, node, def, options, placed);

    if (device < 0)
        return NULL;
    if (!is_shape(cx, node, &placed->shape))
        placed->count[device] += operators_in(node);
    return device == DEVICE ? options->target : target_host(cx, options->target);
}

void graph_count_operators(const graph_module *module, int count[2])
{
    const graph_body *body = ((const graph_function *)module->functions.at[0])->body;
    base_map shape = {0};

    count[HOST] = count[DEVICE] = 0;
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        if ((node->kind == GRAPH_OP || node->kind == GRAPH_GROUP) && !is_shape(module->cx, node, &shape))
            count[node->out[0]->device == HOST ? HOST : DEVICE] += operators_in(node);
    }
}
