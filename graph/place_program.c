/* graph/place_program.c -- see place_program.h.
 *
 * A *slot* is a tensor that a value has: one of a tensor, those of its parts of a tuple. A data type has
 * slots for the fields of its constructors, which all its values share. A tensor *flows* from slot to slot,
 * as from an operand to the parameter of the function that is called. *Sources* make a tensor of a slot,
 * *uses* read it; both are kernels or the host itself. A source costs a copy if some use that its tensor
 * flows to is on the other device. The copy is made when the use needs it: as often as the rarer of the two
 * runs.
 *
 *     if v1 { v2 = exp(v0)  output v2 } { output v0 }      flows: v2 -> v3, v0 -> v3
 *                                                          sources: the maker of v0, exp
 *                                                          uses: exp of v0, the readers of v3
 *
 * How often something runs is a *level*: 0 once, 1 in a loop, 2 in a loop of a loop. The minimum cut has a
 * vertex for each free kernel, and two for each slot and level: `some` is on the device as soon as one use of
 * that level or a higher one is that the slot flows to, `all` is on the host as soon as one is. An edge of
 * weight w from u to v costs w if u is on the host and v on the device:
 *
 *     some of a slot -> each use     unlimited        use -> all of its slot           unlimited
 *     some -> some that it flows to  unlimited        all that it flows to -> all      unlimited
 *     source -> some                 w                all -> source                    w
 *
 * with w = 1 for level 0, 7 for level 1, 56 for level 2 and so on up to the source's level: a source of level
 * 2 whose uses have level 1 costs 1 + 7 = 8.
 */
#include "graph/place_program.h"

#include "graph/cut.h"
#include "graph/emit.h"
#include "graph/plan_program.h"
#include "graph/rules.h"
#include "graph/scope.h"

/* Elements of a free kernel's operands and results, at most; levels; how much oftener what stands in a loop
 * runs than the loop. */
enum { FEW = 16, LEVELS = 4, OFTEN = 8 };

/* Ends of sources and uses: vertices of the cut, the first two of which stand for the devices themselves. */
enum { ON_HOST = CUT_SOURCE, ON_DEVICE = CUT_SINK };

typedef struct {
    int slot, end; /* a vertex */
    int level;
} touch;

typedef struct {
    int from, to; /* slots */
} flow;

typedef struct {
    tec_context *cx;
    const graph_module *module;
    const comp_options *options;
    graph_placed *placed;
    base_map scopes; /* body -> what is known there */
    base_map slots;  /* graph_value *, graph_case * -> its first slot + 1 */
    base_map levels; /* graph_function * -> the level at which it is called + 1 */
    base_vec parent; /* int *: of each slot, in its class of slots that are unified */
    base_vec flows, sources, uses;
    base_vec free; /* const graph_node *: vertex 2 + i */
} placer;

static int deeper(int level)
{
    return level < LEVELS - 1 ? level + 1 : level;
}

/* ---- slots ---- */

static int slots_of_type(const graph_type *type)
{
    int n = type->kind == GRAPH_TENSOR;

    for (int i = 0; type->kind == GRAPH_TUPLE && i < type->n; i++)
        n += slots_of_type(&type->part[i]);
    return n;
}

static int new_slots(placer *self, int count)
{
    int first = self->parent.n;

    for (int i = 0; i < count; i++) {
        int *parent = base_new(self->cx, int);

        *parent = first + i;
        base_push(self->cx, &self->parent, parent);
    }
    return first;
}

static void add_touch(placer *self, base_vec *list, int slot, int end, int level)
{
    touch *t = base_new(self->cx, touch);

    *t = (touch){slot, end, level};
    base_push(self->cx, list, t);
}

/* The first slot of a value, of which it has as many as its type. A constant is copied once in the life of
 * the program. */
static int slot_of(placer *self, const graph_value *value)
{
    intptr_t known = (intptr_t)base_map_get(&self->slots, value);
    graph_type type = graph_type_of(value);

    if (!known) {
        known = 1 + new_slots(self, slots_of_type(&type));
        base_map_put(self->cx, &self->slots, value, (void *)known);
        if (value->constant)
            add_touch(self, &self->sources, (int)known - 1, ON_HOST, 0);
    }
    return (int)known - 1;
}

/* The first slot of field `which` of the constructor. */
static int slot_of_field(placer *self, const graph_case *constructor, int which)
{
    intptr_t known = (intptr_t)base_map_get(&self->slots, constructor);
    int n = 0, before = 0;

    for (int i = 0; i < constructor->n; i++) {
        before += i < which ? slots_of_type(&constructor->field[i]) : 0;
        n += slots_of_type(&constructor->field[i]);
    }
    if (!known) {
        known = 1 + new_slots(self, n);
        base_map_put(self->cx, &self->slots, constructor, (void *)known);
    }
    return (int)known - 1 + before;
}

static int class_of(const placer *self, int slot)
{
    int *parent = self->parent.at[slot];

    while (*parent != slot) {
        slot = *parent = *(const int *)self->parent.at[*parent];
        parent = self->parent.at[slot];
    }
    return slot;
}

static void join(placer *self, int left, int right)
{
    *(int *)self->parent.at[class_of(self, left)] = class_of(self, right);
}

/* The tensors of `count` slots flow to as many others. */
static void add_flow(placer *self, int from, int to, int count)
{
    for (int i = 0; i < count; i++) {
        flow *f = base_new(self->cx, flow);

        *f = (flow){from + i, to + i};
        base_push(self->cx, &self->flows, f);
        join(self, from + i, to + i);
    }
}

static int count_slots(const graph_value *value)
{
    graph_type type = graph_type_of(value);

    return slots_of_type(&type);
}

static void flow_value(placer *self, const graph_value *from, const graph_value *to)
{
    if (from && to && count_slots(from) == count_slots(to))
        add_flow(self, slot_of(self, from), slot_of(self, to), count_slots(from));
}

/* `count` values flow to those of the list from `first` on. */
static void flow_into(placer *self, graph_value *const *from, const base_vec *to, int first, int count)
{
    for (int i = 0; i < count && first + i < to->n; i++)
        flow_value(self, from[i], to->at[first + i]);
}

static void flow_out(placer *self, const base_vec *from, int first, graph_value *const *to, int count)
{
    for (int i = 0; i < count && first + i < from->n; i++)
        flow_value(self, from->at[first + i], to[i]);
}

/* ---- sources and uses ---- */

static void note_touch(placer *self, base_vec *list, const graph_value *value, int end, int level)
{
    int n = value ? count_slots(value) : 0;

    for (int i = 0; i < n; i++)
        add_touch(self, list, slot_of(self, value) + i, end, level);
}

static bool has_few_elements(const graph_value *value)
{
    int64_t n = 1, extent;

    for (int d = 0; value && d < value->type.n; d++) {
        if (!ir_is_int(value->type.dim[d], &extent) || extent > FEW)
            return false;
        n *= extent;
    }
    return n <= FEW;
}

static bool is_small(const graph_node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (!has_few_elements(node->in[i]))
            return false;
    for (int i = 0; i < node->n_out; i++)
        if (!has_few_elements(node->out[i]))
            return false;
    return true;
}

static void set_device(placer *self, const graph_node *node, bool there)
{
    base_map_put(self->cx, &self->placed->device, node, (void *)(intptr_t)(there ? 2 : 1));
}

/* Where the node's kernel can run: 0, the host alone; 1, anywhere; -1 with an error. Until it is known to be
 * free, it gets the device that it can have. */
static int try_kernel(placer *self, const graph_body *body, const graph_node *node)
{
    const graph_module *seen = graph_module_in(self->module, body, &self->scopes);
    int device = graph_try_kernel(self->cx, node, graph_definition(seen, node, self->options->target),
                                  self->options, self->placed);

    if (device >= 0)
        set_device(self, node, device);
    return device;
}

/* A kernel makes its results and reads its operands where it runs; a free one has a vertex of its own. */
static bool note_kernel(placer *self, const graph_body *body, const graph_node *node, int level)
{
    int device = try_kernel(self, body, node), end = device ? ON_DEVICE : ON_HOST;

    if (device < 0)
        return false;
    if (device && self->placed->rule != GRAPH_ON_DEVICE && is_small(node)) {
        base_push(self->cx, &self->free, (void *)(uintptr_t)node);
        end = 1 + self->free.n;
    }
    for (int i = 0; i < node->n_in; i++)
        note_touch(self, &self->uses, node->in[i], end, level);
    for (int i = 0; i < node->n_out; i++)
        note_touch(self, &self->sources, node->out[i], end, level);
    return true;
}

/* ---- what becomes what ---- */

/* The state goes around; the host reads the conditions, and makes the number of the iteration and what is
 * collected. */
static void note_loop(placer *self, const graph_node *node, int level)
{
    const graph_body *body = node->body[0];
    graph_carried carried = graph_carried_of(node);
    int operand = carried.operand, output = carried.output, n = carried.n;

    flow_into(self, node->in + operand, &body->inputs, operand, n);
    flow_into(self, (graph_value *const *)body->outputs.at + output, &body->inputs, operand, n);
    flow_out(self, &body->outputs, output, node->out, n);
    for (int i = 0; i < n; i++)
        flow_value(self, node->in[operand + i], node->out[i]);
    for (int i = 0; i < operand; i++) {
        note_touch(self, &self->uses, node->in[i], ON_HOST, level);
        note_touch(self, &self->sources, body->inputs.at[i], ON_HOST, deeper(level));
    }
    for (int i = 0; i < output; i++)
        note_touch(self, &self->uses, body->outputs.at[i], ON_HOST, deeper(level));
    for (int k = n; node->kind == GRAPH_SCAN && k < node->n_in; k++) /* rows are parts of the operand */
        if (k < body->inputs.n)
            add_flow(self, slot_of(self, node->in[k]), slot_of(self, body->inputs.at[k]), 1);
    for (int k = n; k < node->n_out; k++) {
        note_touch(self, &self->uses, body->outputs.at[output + k], ON_HOST, deeper(level));
        note_touch(self, &self->sources, node->out[k], ON_HOST, level);
    }
}

static void note_match(placer *self, const graph_node *node)
{
    const graph_data *data = graph_find_data(self->module, graph_type_of(node->in[0]).data);

    for (int b = 0; data && b < node->n_bodies && b < data->cases.n; b++) {
        const graph_case *constructor = data->cases.at[b];

        for (int i = 0; i < constructor->n; i++)
            add_flow(self, slot_of_field(self, constructor, i), slot_of(self, node->body[b]->inputs.at[i]),
                     slots_of_type(&constructor->field[i]));
        flow_out(self, &node->body[b]->outputs, 0, node->out, node->n_out);
    }
}

static void note_construct(placer *self, const graph_node *node)
{
    const graph_data *data = graph_find_data(self->module, graph_type_of(node->out[0]).data);
    int which;
    const graph_case *constructor = data ? graph_find_case(data, node->callee, &which) : NULL;

    for (int i = 0; constructor && i < node->n_in; i++) {
        int field = slot_of_field(self, constructor, i);

        add_flow(self, slot_of(self, node->in[i]), field, count_slots(node->in[i]));
    }
}

/* Part k of a tuple has the slots behind those of the parts before. */
static void note_tuple(placer *self, const graph_node *node)
{
    int slot = slot_of(self, node->kind == GRAPH_FIELD ? node->in[0] : node->out[0]);
    graph_type type = graph_type_of(node->kind == GRAPH_FIELD ? node->in[0] : node->out[0]);
    int field = node->kind == GRAPH_FIELD ? (int)graph_attribute(node, "index")->i : -1;

    for (int i = 0; i < type.n; i++) {
        const graph_value *part = field < 0 ? node->in[i] : i == field ? node->out[0] : NULL;
        int n = slots_of_type(&type.part[i]);

        if (part && field < 0)
            add_flow(self, slot_of(self, part), slot, n);
        else if (part)
            add_flow(self, slot, slot_of(self, part), n);
        slot += n;
    }
}

static void note_call(placer *self, const graph_node *node)
{
    const graph_function *callee = graph_find_function(self->module, node->callee);

    if (!callee)
        return;
    flow_into(self, node->in, &callee->body->inputs, 0, node->n_in);
    if (node->kind == GRAPH_CALL)
        flow_out(self, &callee->body->outputs, 0, node->out, node->n_out);
}

/* What a function value is called with may go to any function that becomes a value of such a type. */
static void note_apply(placer *self, const base_vec *closures, const graph_node *node)
{
    for (int i = 0; i < closures->n; i++) {
        const graph_node *closure = closures->at[i];
        const graph_function *callee = graph_find_function(self->module, closure->callee);

        if (!callee || callee->body->inputs.n != closure->n_in + node->n_in - 1 ||
            callee->body->outputs.n != node->n_out)
            continue;
        flow_into(self, node->in + 1, &callee->body->inputs, closure->n_in, node->n_in - 1);
        flow_out(self, &callee->body->outputs, 0, node->out, node->n_out);
    }
}

/* Appending is the host's work. Where the operand is read again, a kernel puts both together instead. */
static bool note_append(placer *self, const graph_body *body, const graph_node *node, int level)
{
    if (try_kernel(self, body, node) < 0)
        return false;
    note_touch(self, &self->uses, node->in[0], ON_HOST, level);
    note_touch(self, &self->uses, node->in[1], ON_HOST, level);
    note_touch(self, &self->sources, node->out[0], ON_HOST, level);
    return true;
}

/* ---- the walk ---- */

static bool note_body(placer *self, const base_vec *closures, const graph_body *body, int level);

/* The flows, sources and uses of a node and of its regions, by its kind. */
static bool note_node(placer *self, const base_vec *closures, const graph_body *body, const graph_node *node,
                      int level)
{
    bool loops = node->kind == GRAPH_LOOP || node->kind == GRAPH_SCAN;

    switch (node->kind) {
    case GRAPH_IF:
        note_touch(self, &self->uses, node->in[0], ON_HOST, level);
        for (int b = 0; b < node->n_bodies; b++)
            flow_out(self, &node->body[b]->outputs, 0, node->out, node->n_out);
        break;
    case GRAPH_LOOP:
    case GRAPH_SCAN: note_loop(self, node, level); break;
    case GRAPH_MATCH: note_match(self, node); break;
    case GRAPH_CONSTRUCT: note_construct(self, node); break;
    case GRAPH_MAKE_TUPLE:
    case GRAPH_FIELD: note_tuple(self, node); break;
    case GRAPH_CALL:
    case GRAPH_CLOSURE: note_call(self, node); break;
    case GRAPH_APPLY: note_apply(self, closures, node); break;
    case GRAPH_CHECK:
    case GRAPH_EXTENTS: note_touch(self, &self->uses, node->in[0], ON_HOST, level); break;
    default:
        if (node->kind == GRAPH_OP && (node->op->identity || graph_is_beginning(node)))
            add_flow(self, slot_of(self, node->in[0]), slot_of(self, node->out[0]), 1);
        else
            return graph_is_append(node) ? note_append(self, body, node, level)
                                         : note_kernel(self, body, node, level);
        return true;
    }
    for (int b = 0; b < node->n_bodies; b++)
        if (!note_body(self, closures, node->body[b], loops ? deeper(level) : level))
            return false;
    return true;
}

static bool note_body(placer *self, const base_vec *closures, const graph_body *body, int level)
{
    for (int i = 0; i < body->nodes.n; i++)
        if (!note_node(self, closures, body, body->nodes.at[i], level))
            return false;
    return true;
}

static void list_closures(tec_context *cx, const graph_body *body, base_vec *out)
{
    for (int i = 0; i < body->nodes.n; i++) {
        graph_node *node = body->nodes.at[i];

        if (node->kind == GRAPH_CLOSURE)
            base_push(cx, out, node);
        for (int b = 0; b < node->n_bodies; b++)
            list_closures(cx, node->body[b], out);
    }
}

/* NULL: it calls no function that is known. */
static const graph_function *called_by(const placer *self, const graph_node *node)
{
    bool calls = node->kind == GRAPH_CALL || node->kind == GRAPH_CLOSURE;

    return calls ? graph_find_function(self->module, node->callee) : NULL;
}

/* Whether a call of the function may lead to a call of `to`. */
static bool leads_to(placer *self, const graph_body *body, const graph_function *to, base_map *seen)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        const graph_function *callee = called_by(self, node);

        if (callee && callee == to)
            return true;
        if (callee && !base_map_get(seen, callee)) {
            base_map_put(self->cx, seen, callee, callee);
            if (leads_to(self, callee->body, to, seen))
                return true;
        }
        for (int b = 0; b < node->n_bodies; b++)
            if (leads_to(self, node->body[b], to, seen))
                return true;
    }
    return false;
}

/* The levels of functions: a call from a loop, or one that leads back to its function, is a level deeper. */
static void level_calls(placer *self, const graph_function *from, const graph_body *body, int level)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        const graph_function *callee = called_by(self, node);
        bool loops = node->kind == GRAPH_LOOP || node->kind == GRAPH_SCAN;
        int inner = loops ? deeper(level) : level;

        if (callee && (callee == from || leads_to(self, callee->body, from, &(base_map){0})))
            inner = level ? level : deeper(level);
        if (callee && inner + 1 > (intptr_t)base_map_get(&self->levels, callee)) {
            base_map_put(self->cx, &self->levels, callee, (void *)(intptr_t)(inner + 1));
            level_calls(self, callee, callee->body, inner);
        }
        for (int b = 0; b < node->n_bodies; b++)
            level_calls(self, from, node->body[b], inner);
    }
}

/* All functions; inputs and outputs of the first one are the host's. */
static bool note_module(placer *self)
{
    const graph_function *main = self->module->functions.at[0];
    base_vec closures = {0};

    for (int i = 0; i < self->module->functions.n; i++)
        list_closures(self->cx, ((const graph_function *)self->module->functions.at[i])->body, &closures);
    level_calls(self, main, main->body, 0);
    for (int i = 0; i < main->body->inputs.n; i++)
        note_touch(self, &self->sources, main->body->inputs.at[i], ON_HOST, 0);
    for (int i = 0; i < main->body->outputs.n; i++)
        note_touch(self, &self->uses, main->body->outputs.at[i], ON_HOST, 0);
    for (int i = 0; i < self->module->functions.n; i++) {
        const graph_function *function = self->module->functions.at[i];
        int level = (int)(intptr_t)base_map_get(&self->levels, function);

        if (!note_body(self, &closures, function->body, level ? level - 1 : 0))
            return false;
    }
    return true;
}

/* ---- the rules ---- */

/* The vertex `some` of a slot at a level; `all` is the next one. */
static int vertex(const placer *self, int slot, int level)
{
    return 2 + self->free.n + 2 * (slot * LEVELS + level);
}

static void add_use_edges(const placer *self, graph_cut *cut, const touch *use)
{
    for (int l = 0; l <= use->level; l++) {
        graph_cut_edge(cut, vertex(self, use->slot, l), use->end, CUT_NEVER);
        graph_cut_edge(cut, use->end, vertex(self, use->slot, l) + 1, CUT_NEVER);
    }
}

static void add_source_edges(const placer *self, graph_cut *cut, const touch *source)
{
    int64_t often = 1, before = 0;

    for (int l = 0; l <= source->level; l++) {
        graph_cut_edge(cut, source->end, vertex(self, source->slot, l), often - before);
        graph_cut_edge(cut, vertex(self, source->slot, l) + 1, source->end, often - before);
        before = often;
        often *= OFTEN;
    }
}

/* The minimum cut of the head of this file. */
static const bool *cut_copies(const placer *self)
{
    graph_cut *cut = graph_cut_new(self->cx, vertex(self, self->parent.n, 0));

    for (int i = 0; i < self->uses.n; i++)
        add_use_edges(self, cut, self->uses.at[i]);
    for (int i = 0; i < self->flows.n; i++) {
        const flow *f = self->flows.at[i];

        for (int l = 0; l < LEVELS; l++) {
            graph_cut_edge(cut, vertex(self, f->from, l), vertex(self, f->to, l), CUT_NEVER);
            graph_cut_edge(cut, vertex(self, f->to, l) + 1, vertex(self, f->from, l) + 1, CUT_NEVER);
        }
    }
    for (int i = 0; i < self->sources.n; i++)
        add_source_edges(self, cut, self->sources.at[i]);
    return graph_cut_minimum(cut);
}

/* All classes that a free kernel touches become one; those with a use of the host's own are its. */
static const bool *unify(placer *self)
{
    bool *there = base_array(self->cx, bool, 2 + self->free.n), *host;
    int *slot = base_array(self->cx, int, 2 + self->free.n);
    const base_vec *lists[] = {&self->sources, &self->uses};

    for (int l = 0; l < 2; l++)
        for (int i = 0; i < lists[l]->n; i++) {
            const touch *t = lists[l]->at[i];

            if (t->end == ON_HOST || t->end == ON_DEVICE)
                continue;
            if (slot[t->end])
                join(self, slot[t->end] - 1, t->slot);
            slot[t->end] = 1 + t->slot;
        }
    host = base_array(self->cx, bool, self->parent.n + 1);
    for (int i = 0; i < self->uses.n; i++) {
        const touch *t = self->uses.at[i];

        if (t->end == ON_HOST)
            host[class_of(self, t->slot)] = true;
    }
    for (int v = 2; v < 2 + self->free.n; v++)
        there[v] = !slot[v] || !host[class_of(self, slot[v] - 1)];
    return there;
}

/* As the caller says: one character for each free kernel, 'd' for the device. */
static const bool *take_given(const placer *self)
{
    bool *there = base_array(self->cx, bool, 2 + self->free.n);
    const char *given = self->placed->given;

    for (int v = 2; v < 2 + self->free.n && *given; v++)
        there[v] = *given++ == 'd';
    return there;
}

/* Kernels of one place keep it; free ones get theirs by what the caller gives, or by the rule. */
bool graph_place_program(const graph_module *module, const comp_options *options, graph_placed *placed)
{
    placer p = {.cx = module->cx, .module = module, .options = options, .placed = placed};

    if (!note_module(&p))
        return false;
    placed->n_free = p.free.n;
    if (p.free.n == 0)
        return true;
    const bool *there = placed->given                   ? take_given(&p)
                        : placed->rule == GRAPH_UNIFIED ? unify(&p)
                                                        : cut_copies(&p);
    for (int i = 0; i < p.free.n; i++)
        set_device(&p, p.free.at[i], there[2 + i]);
    return true;
}
