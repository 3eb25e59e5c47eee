/* graph/unpack.c -- passes tuples as their parts: functions, calls, `if` and `match` give several results
 * where they gave one tuple that is taken apart again, and loops and scans carry several values.
 *
 *     v1: (f32[4], f32[4]) = call "step"(v0)         v1: f32[4], v2: f32[4] = call "step"(v0)
 *     v2 = field(v1) @index(0)                  =>   v4 = add(v1, v2)
 *     v3 = field(v1) @index(1)   v4 = add(v2, v3)
 *
 *     v3: (f32[4], f32[4]) = scan(v2, v1) @states(1) {           v2, v3 = scan(v0, v4, v1) @states(2) {
 *       input s: (f32[4], f32[4])   input x: f32[4]                input s.0: f32[4]   input s.1: f32[4]
 *       v4 = field(s) @index(0)                            =>      input x: f32[4]
 *       ...   v7 = tuple(v5, v6)                                   ...
 *       output v7                                                  output v5   output v6
 *     }                                                          }
 *
 * The tuple is no object then: nothing is allocated for it, and its parts live as long as they are read
 * instead of as long as the tuple. A function stays as it is where others rely on its type: the entry, and
 * functions that become values. So does a function that calls such a one and is called by it, in any number
 * of steps: a call in the last place of a function gives the function's own results, and with several results
 * on one side and a tuple on the other it would need a frame, so that a recursion through both would grow.
 *
 * An `if` or `match` is split where its tuple is only taken apart, or is itself a result that is split. Where
 * the tuple is needed as a whole (as a field of another value, as an argument), it is made again there. What
 * a loop carries is split where the body only takes it apart, or hands it on: made again in each iteration,
 * the tuple would cost as much as before. Whether the tuple behind the loop is needed as a whole does not
 * count.
 *
 * Each round splits one level of tuples: ((f32[4], f32[4]), i64) becomes (f32[4], f32[4]) and i64, which the
 * next round splits in turn.
 */
#include "graph/node.h"
#include "graph/pass.h"
#include "graph/program.h"
#include "graph/rewrite.h"
#include "graph/rules.h"
#include "runtime/bytecode.h"

typedef struct {
    tec_context *cx;
    const graph_module *module;
    base_map split; /* graph_function *: gives its tuples as parts */
    base_map whole; /* graph_value *: a tuple that is used as a whole */
} state;

static bool is_tuple(const graph_value *value)
{
    return value->compound && value->compound->kind == GRAPH_TUPLE && value->compound->n > 0;
}

/* ---- which functions ---- */

/* Who calls whom, in both directions, and which functions become values. */
typedef struct {
    tec_context *cx;
    const graph_module *module;
    base_map callees, callers; /* graph_function * -> base_vec * of graph_function * */
    base_vec values;
} calls;

static void add_call(calls *self, base_map *map, const graph_function *from, const graph_function *to)
{
    base_vec *list = base_map_get(map, from);

    if (!list) {
        list = base_new(self->cx, base_vec);
        base_map_put(self->cx, map, from, list);
    }
    base_push(self->cx, list, to);
}

/* Of the body and its regions. */
static void note_calls(calls *self, const graph_function *from, const graph_body *body)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        const graph_function *to = node->kind == GRAPH_CALL || node->kind == GRAPH_CLOSURE
                                       ? graph_find_function(self->module, node->callee)
                                       : NULL;

        if (to && node->kind == GRAPH_CLOSURE)
            base_push(self->cx, &self->values, to);
        if (to) {
            add_call(self, &self->callees, from, to);
            add_call(self, &self->callers, to, from);
        }
        for (int k = 0; k < node->n_bodies; k++)
            note_calls(self, from, node->body[k]);
    }
}

/* All functions that `from` leads to, itself included. */
static base_map reach(calls *self, const base_map *next, const graph_function *from)
{
    base_map seen = {0};
    base_vec todo = {0};

    base_push(self->cx, &todo, from);
    while (todo.n) {
        const graph_function *at = todo.at[--todo.n];
        const base_vec *list = base_map_get(next, at);

        if (base_map_has(&seen, at))
            continue;
        base_map_put(self->cx, &seen, at, at);
        for (int i = 0; list && i < list->n; i++)
            base_push(self->cx, &todo, list->at[i]);
    }
    return seen;
}

/* Whether there is a tuple among the values, and not too many parts: an instruction lists at most
 * RT_MAX_FIELDS results, and types of tuples in tuples may have any number of parts. */
static bool has_parts(graph_value *const *value, int count)
{
    int64_t n = 0;
    bool tuple = false;

    for (int k = 0; k < count; k++) {
        tuple |= is_tuple(value[k]);
        n += is_tuple(value[k]) ? value[k]->compound->n : 1;
    }
    return tuple && n <= RT_MAX_FIELDS;
}

/* All with a tuple among their results, but those whose type others rely on. */
static void choose_functions(state *st, const graph_module *module)
{
    calls c = {.cx = module->cx, .module = module};
    base_map kept = {0};

    for (int i = 0; i < module->functions.n; i++) {
        const graph_function *function = module->functions.at[i];

        note_calls(&c, function, function->body);
        if (function->body->entry)
            base_push(c.cx, &c.values, function);
    }
    for (int i = 0; i < c.values.n; i++) {
        if (base_map_has(&kept, c.values.at[i]))
            continue;
        base_map to = reach(&c, &c.callees, c.values.at[i]), from = reach(&c, &c.callers, c.values.at[i]);

        for (int k = 0; k < module->functions.n; k++)
            if (base_map_has(&to, module->functions.at[k]) && base_map_has(&from, module->functions.at[k]))
                base_map_put(c.cx, &kept, module->functions.at[k], st);
    }
    for (int i = 0; i < module->functions.n; i++) {
        const graph_function *function = module->functions.at[i];

        if (!base_map_has(&kept, function) &&
            has_parts((graph_value *const *)function->body->outputs.at, function->body->outputs.n))
            base_map_put(c.cx, &st->split, function, st);
    }
}

/* ---- which nodes ---- */

/* Whether result k of the node becomes parts; of a loop with what it is before and in the iterations. */
static bool splits(const state *st, const graph_node *node, int k)
{
    graph_carried carried = graph_carried_of(node);

    if (!is_tuple(node->out[k]))
        return false;
    if (node->kind == GRAPH_CALL)
        return base_map_has(&st->split, graph_find_function(st->module, node->callee));
    if (!has_parts(node->out, node->n_out))
        return false;
    if (k < carried.n)
        return !base_map_has(&st->whole, node->body[0]->inputs.at[carried.operand + k]);
    return (node->kind == GRAPH_IF || node->kind == GRAPH_MATCH) && !base_map_has(&st->whole, node->out[k]);
}

/* Whether operand k is carried by the node, and becomes parts. */
static bool splits_operand(const state *st, const graph_node *node, int k)
{
    graph_carried carried = graph_carried_of(node);
    int result = k - carried.operand;

    return result >= 0 && result < carried.n && splits(st, node, result);
}

static void mark_whole(state *st, const graph_value *value)
{
    if (value)
        base_map_put(st->cx, &st->whole, value, st);
}

/* The operands that the node needs as a whole. A tuple that is only taken apart again holds nothing, and what
 * is taken out of it is the operand itself:
 *
 *     v3 = tuple(v1, v2)   v4 = field(v3) @index(0)   v5 = construct(v4)       v1 is needed, v2 is not
 */
static void note_operands(state *st, const graph_node *node)
{
    const graph_node *made = node->kind == GRAPH_FIELD ? node->in[0]->node : NULL;

    if (node->kind == GRAPH_FIELD) {
        if (made && made->kind == GRAPH_MAKE_TUPLE && base_map_has(&st->whole, node->out[0]))
            mark_whole(st, made->in[graph_attribute(node, "index")->i]);
        return;
    }
    if (node->kind == GRAPH_MAKE_TUPLE && !base_map_has(&st->whole, node->out[0]))
        return;
    for (int k = 0; k < node->n_in; k++)
        if (!splits_operand(st, node, k))
            mark_whole(st, node->in[k]);
}

/* Notes the tuples that are used as a whole. From the last use to the first: what uses a value stands behind
 * it, so most uses of a node's results are known when the node decides. node: whose region the body is; NULL:
 * of a function, and `split` says whether its tuples become parts. */
static void note_body(state *st, const graph_body *body, const graph_node *node, bool split)
{
    int first = node ? graph_carried_of(node).output : 0;

    for (int k = 0; k < body->outputs.n; k++)
        if (node ? k < first || k - first >= node->n_out || !splits(st, node, k - first) : !split)
            mark_whole(st, body->outputs.at[k]);
    for (int i = body->nodes.n - 1; i >= 0; i--) {
        const graph_node *inner = body->nodes.at[i];

        for (int b = 0; b < inner->n_bodies; b++)
            note_body(st, inner->body[b], inner, false);
        note_operands(st, inner);
    }
}

/* Until nothing is added: of two tuples that change places in each iteration, one that is needed as a whole
 * makes the other so. */
static void note_whole(state *st, const graph_function *function)
{
    int before;

    do {
        before = st->whole.n;
        note_body(st, function->body, NULL, base_map_has(&st->split, function));
    } while (st->whole.n != before);
}

/* ---- the rewrite ---- */

/* The parts of a tuple, as values that the body may use: those it was made of, or fields of it. */
static void push_parts(tec_context *cx, graph_body *body, graph_value *tuple, base_vec *out)
{
    graph_node *made = tuple->node;
    int n = tuple->compound->n;

    for (int k = 0; k < n; k++) {
        if (made && made->kind == GRAPH_MAKE_TUPLE) {
            base_push(cx, out, made->in[k]);
            continue;
        }
        op_attr index = op_attr_int("index", k);
        graph_node *field =
            graph_typed_node(cx, GRAPH_FIELD, "part", &tuple, 1, &tuple->compound->part[k], 1);
        field->attr = base_copy(cx, &index, sizeof index);
        field->n_attrs = 1;
        base_push(cx, &body->nodes, field);
        base_push(cx, out, field->out[0]);
    }
}

/* The outputs of a body with the parts of those tuples that `which` names, from output `first` on: `count`
 * of them. */
static void split_outputs(tec_context *cx, graph_body *body, const bool *which, int first, int count)
{
    base_vec outputs = {0}, names = {0};

    for (int k = 0; k < body->outputs.n; k++) {
        const char *name = k < body->output_names.n ? body->output_names.at[k] : NULL;
        bool split = k >= first && k < first + count && which[k - first];
        int before = outputs.n;

        if (split)
            push_parts(cx, body, body->outputs.at[k], &outputs);
        else
            base_push(cx, &outputs, body->outputs.at[k]);
        for (int i = before; name && i < outputs.n; i++)
            base_push(cx, &names, split ? base_format(cx, "%s.%d", name, i - before) : name);
    }
    body->outputs = outputs;
    body->output_names = names;
}

/* The types of the node's results, with parts in the place of tuples. */
static base_vec split_types(tec_context *cx, const graph_node *node, const bool *which)
{
    base_vec types = {0};

    for (int k = 0; k < node->n_out; k++) {
        graph_type *type = base_new(cx, graph_type);

        *type = graph_type_of(node->out[k]);
        for (int i = 0; which[k] && i < type->n; i++)
            base_push(cx, &types, &type->part[i]);
        if (!which[k])
            base_push(cx, &types, type);
    }
    return types;
}

/* Operands of a loop or scan, with parts in the place of carried tuples. */
static base_vec split_operands(graph_rewrite *rw, const graph_node *node, const bool *which)
{
    graph_carried carried = graph_carried_of(node);
    base_vec in = {0};

    for (int k = 0; k < node->n_in; k++) {
        int result = k - carried.operand, first = in.n;
        graph_value *value = graph_new_value(rw, node->in[k]);

        if (result < 0 || result >= carried.n || !which[result]) {
            base_push(rw->cx, &in, value);
            continue;
        }
        push_parts(rw->cx, rw->body, value, &in);
        if (BASE_PLANT_ON(rw->cx, unpack_carried) && in.n > first + 1)
            in.at[first] = in.at[first + 1];
    }
    return in;
}

/* A tuple that is made again out of parts: readers of fields get the parts themselves, and a tuple that
 * nobody uses is removed as a dead node. */
static graph_node *tuple_of(graph_rewrite *rw, const graph_value *old, graph_value *const *part, base_loc loc)
{
    graph_type type = graph_type_of(old);

    base_set_where(rw->cx, loc);
    graph_node *tuple = graph_typed_node(rw->cx, GRAPH_MAKE_TUPLE, "tuple", part, type.n, &type, 1);
    graph_replace(rw, old, tuple->out[0]);
    return tuple;
}

/* What an iteration takes: `inputs` with parts in the place of tuples, and the tuples of these for the head
 * of the body. */
static void split_inputs(graph_rewrite *rw, const graph_node *node, const bool *which, base_vec *inputs,
                         base_vec *tuples)
{
    graph_carried carried = graph_carried_of(node);
    const base_vec *old = &node->body[0]->inputs;

    for (int k = 0; k < old->n; k++) {
        const graph_value *value = old->at[k];
        int result = k - carried.operand, first = inputs->n;

        if (result < 0 || result >= carried.n || !which[result]) {
            base_push(rw->cx, inputs, value);
            continue;
        }
        for (int i = 0; i < value->compound->n; i++) {
            const char *name = value->name ? base_format(rw->cx, "%s.%d", value->name, i) : NULL;
            graph_value *part = graph_typed_value(rw->cx, name, &value->compound->part[i]);

            part->loc = value->loc;
            base_push(rw->cx, inputs, part);
        }
        base_push(rw->cx, tuples, tuple_of(rw, value, (graph_value **)inputs->at + first, value->loc));
    }
}

/* The body of a loop or scan that was copied gets its new inputs, and behind them the tuples. */
static void begin_body(tec_context *cx, graph_body *body, const base_vec *inputs, const base_vec *tuples)
{
    base_vec nodes = {0};

    for (int i = 0; i < tuples->n; i++)
        base_push(cx, &nodes, tuples->at[i]);
    for (int i = 0; i < body->nodes.n; i++)
        base_push(cx, &nodes, body->nodes.at[i]);
    body->inputs = *inputs;
    body->nodes = nodes;
}

/* The copy of a loop or scan carries as many values more as the tuples have parts more. */
static void widen(tec_context *cx, graph_node *copy, const base_vec *in)
{
    op_attr states = op_attr_int("states", graph_carried_of(copy).n + in->n - copy->n_in);

    copy->in = (graph_value **)in->at;
    copy->n_in = in->n;
    if (copy->kind == GRAPH_SCAN)
        copy->attr = base_copy(cx, &states, sizeof states);
}

/* The copy's results of these types, and what stands for the old ones: parts, and tuples of parts. */
static void split_results(graph_rewrite *rw, const graph_node *node, graph_node *copy, const bool *which)
{
    tec_context *cx = rw->cx;
    base_vec types = split_types(cx, node, which);

    copy->out = base_array(cx, graph_value *, types.n);
    copy->n_out = types.n;
    for (int k = 0; k < types.n; k++) {
        copy->out[k] = graph_typed_value(cx, NULL, types.at[k]);
        copy->out[k]->node = copy;
        copy->out[k]->which = k;
        copy->out[k]->loc = node->loc;
    }
    for (int k = 0, at = 0; k < node->n_out; k++) {
        if (which[k])
            base_push(cx, &rw->body->nodes, tuple_of(rw, node->out[k], copy->out + at, node->loc));
        else
            graph_replace(rw, node->out[k], copy->out[at]);
        at += which[k] ? node->out[k]->compound->n : 1;
    }
}

/* The node with parts as results, and a tuple of them for those who use it as a whole. Inputs of a body are
 * replaced before the body is copied, so that the copy reads the new ones. */
static bool split_node(graph_rewrite *rw, const graph_node *node, const bool *which)
{
    tec_context *cx = rw->cx;
    graph_carried carried = graph_carried_of(node);
    base_vec in = split_operands(rw, node, which), inputs = {0}, tuples = {0};

    if (carried.n)
        split_inputs(rw, node, which, &inputs, &tuples);
    graph_node *copy = graph_copy_node(rw, node, (graph_value *const *)in.at);
    if (carried.n) {
        begin_body(cx, copy->body[0], &inputs, &tuples);
        widen(cx, copy, &in);
    }
    for (int b = 0; b < copy->n_bodies; b++)
        split_outputs(cx, copy->body[b], which, carried.output, node->n_out);
    split_results(rw, node, copy, which);
    return true;
}

/* A field of a tuple that was just made is the part itself. */
static bool visit(graph_rewrite *rw, const graph_node *node)
{
    const state *st = rw->user;
    bool *which = base_array(rw->cx, bool, node->n_out), any = false;

    if (node->kind == GRAPH_FIELD) {
        const graph_node *made = graph_new_value(rw, node->in[0])->node;

        if (made && made->kind == GRAPH_MAKE_TUPLE) {
            int64_t index = graph_attribute(node, "index")->i;

            graph_replace(rw, node->out[0], made->in[BASE_PLANT_ON(rw->cx, unpack_index) ? 0 : index]);
            return true;
        }
    }
    for (int k = 0; k < node->n_out; k++) {
        which[k] = splits(st, node, k);
        any |= which[k];
    }
    return any ? split_node(rw, node, which) : graph_keep(rw, node);
}

/* One level of tuples. Functions are named, so calls find the new ones. */
static graph_module *unpack_level(graph_module *module)
{
    state st = {.cx = module->cx, .module = module};

    choose_functions(&st, module);
    for (int i = 0; i < module->functions.n; i++)
        note_whole(&st, module->functions.at[i]);
    graph_module *out = graph_rewrite_module(module, visit, NULL, &st);
    for (int i = 0; out && out != module && i < module->functions.n; i++) {
        const graph_function *old = module->functions.at[i], *function = out->functions.at[i];
        int n = old->body->outputs.n;
        bool *which = base_array(module->cx, bool, n);

        for (int k = 0; k < n; k++)
            which[k] = base_map_has(&st.split, old) && is_tuple(old->body->outputs.at[k]);
        split_outputs(module->cx, function->body, which, 0, n);
    }
    return out;
}

graph_module *graph_unpack_tuples(graph_module *module, const target *machine)
{
    const graph_module *before;

    (void)machine;
    do {
        before = module;
        module = unpack_level(module);
    } while (module && module != before);
    return module;
}
