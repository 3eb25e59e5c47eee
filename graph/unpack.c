/* graph/unpack.c -- passes tuples as their parts: functions, calls, `if` and `match` give several results
 * where they gave one tuple that is taken apart again.
 *
 *     v1: (f32[4], f32[4]) = call "step"(v0)         v1: f32[4], v2: f32[4] = call "step"(v0)
 *     v2 = field(v1) @index(0)                  =>   v4 = add(v1, v2)
 *     v3 = field(v1) @index(1)   v4 = add(v2, v3)
 *
 * The tuple is no object then: nothing is allocated for it, and its parts live as long as they are read
 * instead of as long as the tuple. A function stays as it is where others rely on its type: the entry, and
 * functions that become values. So does a function that calls such a one and is called by it, in any number
 * of steps: a call in the last place of a function gives the function's own results, and with several results
 * on one side and a tuple on the other it would need a frame, so that a recursion through both would grow.
 *
 * An `if` or `match` is split where its tuple is only taken apart, or is itself a result that is split. Where
 * the tuple is needed as a whole (as a field of another value, as an argument), it is made again there.
 */
#include "graph/pass.h"
#include "graph/program.h"
#include "graph/rewrite.h"
#include "graph/rules.h"
#include "runtime/bytecode.h"

typedef struct {
    base_map split; /* graph_function *: gives its tuples as parts */
    base_map whole; /* graph_value *: a tuple that is used as a whole */
} state;

static bool is_tuple(const graph_value *value)
{
    return value->compound && value->compound->kind == GRAPH_TUPLE;
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

/* More results than an instruction may list would be too many parts. */
static bool has_parts(const graph_body *body)
{
    int64_t n = 0;
    bool tuple = false;

    for (int k = 0; k < body->outputs.n; k++) {
        const graph_value *value = body->outputs.at[k];

        tuple |= is_tuple(value);
        n += is_tuple(value) ? value->compound->n : 1;
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

        if (!base_map_has(&kept, function) && has_parts(function->body))
            base_map_put(c.cx, &st->split, function, st);
    }
}

/* ---- which `if` and `match` ---- */

/* Whether result k of the node becomes parts. */
static bool splits(const state *st, const graph_module *module, const graph_node *node, int k)
{
    if (!is_tuple(node->out[k]))
        return false;
    if (node->kind == GRAPH_CALL)
        return base_map_has(&st->split, graph_find_function(module, node->callee));
    return (node->kind == GRAPH_IF || node->kind == GRAPH_MATCH) && !base_map_has(&st->whole, node->out[k]);
}

/* Notes the tuples that are used as a whole. From the last use to the first: what uses a value stands behind
 * it, so all uses of a node's results are known when the node decides. node: whose region the body is; NULL:
 * of a function, and `split` says whether its tuples become parts. */
static void note_whole(tec_context *cx, state *st, const graph_module *module, const graph_body *body,
                       const graph_node *node, bool split)
{
    for (int k = 0; k < body->outputs.n; k++)
        if (node ? k >= node->n_out || !splits(st, module, node, k) : !split)
            base_map_put(cx, &st->whole, body->outputs.at[k], st);
    for (int i = body->nodes.n - 1; i >= 0; i--) {
        const graph_node *inner = body->nodes.at[i];

        for (int k = 0; k < inner->n_in && inner->kind != GRAPH_FIELD; k++)
            if (inner->in[k])
                base_map_put(cx, &st->whole, inner->in[k], st);
        for (int b = 0; b < inner->n_bodies; b++)
            note_whole(cx, st, module, inner->body[b], inner, false);
    }
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

/* The outputs of a body with the parts of those tuples for which `which` holds a value. */
static void split_outputs(tec_context *cx, graph_body *body, const bool *which)
{
    base_vec outputs = {0}, names = {0};

    for (int k = 0; k < body->outputs.n; k++) {
        const char *name = k < body->output_names.n ? body->output_names.at[k] : NULL;
        int before = outputs.n;

        if (which[k])
            push_parts(cx, body, body->outputs.at[k], &outputs);
        else
            base_push(cx, &outputs, body->outputs.at[k]);
        for (int i = before; name && i < outputs.n; i++)
            base_push(cx, &names, which[k] ? base_format(cx, "%s.%d", name, i - before) : name);
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

/* The node with parts as results, and a tuple of them for those who use it as a whole: readers of fields get
 * the parts themselves, and a tuple that nobody uses is removed as a dead node. */
static bool split_node(graph_rewrite *rw, const graph_node *node, const bool *which)
{
    tec_context *cx = rw->cx;
    graph_value **in = base_array(cx, graph_value *, node->n_in);

    for (int k = 0; k < node->n_in; k++)
        in[k] = graph_new_value(rw, node->in[k]);
    graph_node *copy = graph_copy_node(rw, node, in);
    for (int b = 0; b < copy->n_bodies; b++)
        split_outputs(cx, copy->body[b], which);
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
        graph_type type = graph_type_of(node->out[k]);

        if (which[k]) {
            base_set_where(cx, node->loc);
            graph_node *tuple =
                graph_typed_node(cx, GRAPH_MAKE_TUPLE, "tuple", copy->out + at, type.n, &type, 1);
            base_push(cx, &rw->body->nodes, tuple);
            graph_replace(rw, node->out[k], tuple->out[0]);
        } else {
            graph_replace(rw, node->out[k], copy->out[at]);
        }
        at += which[k] ? type.n : 1;
    }
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
        which[k] = splits(st, rw->from, node, k);
        any |= which[k];
    }
    return any ? split_node(rw, node, which) : graph_keep(rw, node);
}

/* Functions are named, so calls find the new ones. */
graph_module *graph_unpack_tuples(graph_module *module, const target *machine)
{
    state st = {0};

    (void)machine;
    choose_functions(&st, module);
    for (int i = 0; i < module->functions.n; i++) {
        const graph_function *function = module->functions.at[i];

        note_whole(module->cx, &st, module, function->body, NULL, base_map_has(&st.split, function));
    }
    graph_module *out = graph_rewrite_module(module, visit, NULL, &st);
    for (int i = 0; out && out != module && i < module->functions.n; i++) {
        const graph_function *old = module->functions.at[i], *function = out->functions.at[i];
        bool *which = base_array(module->cx, bool, old->body->outputs.n);

        for (int k = 0; k < old->body->outputs.n; k++)
            which[k] = base_map_has(&st.split, old) && is_tuple(old->body->outputs.at[k]);
        split_outputs(module->cx, function->body, which);
    }
    return out;
}
