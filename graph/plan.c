/* graph/plan.c -- memory planning: lifetimes from the order of steps, then offsets.
 *
 * Values of constant size go first, the largest before the smaller, each to the lowest offset where nothing
 * that lives at the same time is in its way. Values whose size depends on symbols share places of equal size,
 * behind the constant part.
 *
 * An example, with sizes of 128, 64 and 64 bytes:
 *
 *     step   0: a = ..    1: b = f(a)    2: c = g(b)    3: d = h(c), the output
 *     lives  a 0..1       b 1..2         c 2..3
 *
 * a is the largest and goes to 0. b meets a, since both live at step 1, and goes behind it, to 128. c meets
 * only b, and the gap of 128 bytes before b is large enough: c goes to 0. The pool has 192 bytes instead of
 * 256.
 *
 * b may not lie where a does although a ends where b begins: a kernel may still read its operands when it has
 * written a part of its result.
 *
 * A concatenation whose operands lie one behind the other in its result is no step: its operands get their
 * places inside of its own, which lives from the first of them on. The 64 states of a recurrent layer are
 * written, and read by the steps that follow, where the layer's result has them.
 */
#include "graph/plan.h"

#include <stdlib.h>

#include "graph/node.h"
#include "graph/pass.h"
#include "ir/walk.h"

/* Bytes: a line of the cache, and as much as the widest vectors need. */
enum { ALIGN = 64 };

/* Memory in the pool. */
typedef struct {
    graph_place *place;
    const ir_expr *size; /* rounded up */
    int64_t bytes;       /* -1: depends on symbols */
    int64_t offset;
    int order;
} block;

/* The value whose memory it is: operators that only rename elements (reshape) have none of their own. */
static const graph_value *root_of(const graph_value *value)
{
    while (value->node && value->node->kind == GRAPH_OP && value->node->op->identity && !value->constant)
        value = value->node->in[0];
    return value;
}

/* Such a node computes nothing and is no step. */
static bool only_renames(const graph_node *node)
{
    return node->kind == GRAPH_OP && node->op->identity;
}

/* ---- concatenations ---- */

/* The axis, if all dimensions in front of it are 1; otherwise -1. */
static int outermost_axis(const graph_node *node)
{
    const op_attr *axis = graph_attribute(node, "axis");
    int at = axis ? (int)axis->i : 0;

    for (int i = 0; i < at; i++)
        if (!ir_is_value(node->out[0]->type.dim[i], 1))
            return -1;
    return at;
}

/* Each operand is a result of its own, computed here and no constant, and begins at a multiple of the
 * alignment of tensors: at 0, and behind those before it. */
bool graph_joins_pieces(const graph_module *module, const graph_node *node)
{
    tec_context *cx = module->cx;
    const ir_expr *begin = ir_int(cx, 0);
    base_map seen = {0};

    if (node->kind != GRAPH_OP || !base_same(node->op->name, "concat") || outermost_axis(node) < 0)
        return false;
    const ir_facts *facts = graph_facts(module);
    for (int k = 0; k < node->n_in; k++) {
        const graph_value *root = root_of(node->in[k]);

        if (!root->node || root->constant || base_map_has(&seen, root) ||
            !ir_prove_equal(facts, ir_floormod(cx, begin, ir_int(cx, ALIGN)), ir_int(cx, 0)))
            return false;
        base_map_put(cx, &seen, root, root);
        begin = ir_simplify(facts, ir_add(cx, begin, graph_type_bytes(cx, &root->type)));
    }
    return true;
}

/* ---- places ---- */

/* Made if need be, in no storage yet. */
static graph_place *place_for(graph_plan *plan, const graph_value *value)
{
    graph_place *at = base_map_get(&plan->places, value);

    if (!at) {
        at = base_new(plan->cx, graph_place);
        at->root = value;
        base_map_put(plan->cx, &plan->places, value, at);
    }
    return at;
}

const graph_place *graph_place_of(const graph_plan *plan, const graph_value *value)
{
    return base_map_get(&plan->places, root_of(value));
}

/* Numbered in the order of the first use. */
static void add_constant(graph_plan *plan, const graph_value *value)
{
    graph_place *at = place_for(plan, value);

    if (at->storage == RT_IN_CONSTANT)
        return;
    at->storage = RT_IN_CONSTANT;
    at->index = plan->constants.n;
    base_push(plan->cx, &plan->constants, value);
}

/* An input's memory is the caller's. */
static bool place_inputs(graph_plan *plan, const graph_body *body)
{
    for (int i = 0; i < body->inputs.n; i++) {
        const graph_value *value = body->inputs.at[i];
        graph_place *at = place_for(plan, value);

        if (value->compound) {
            base_fail(plan->cx, TEC_UNSUPPORTED, value->loc,
                      "input %d ('%s') is not a tensor, so it cannot be an input of a static graph", i,
                      value->name ? value->name : "");
            return false;
        }
        at->storage = RT_IN_INPUT;
        at->index = i;
    }
    return true;
}

/* Whether the plan may put the operands of the concatenation into its result: none lies in another
 * concatenation already, and all are on its device. */
static bool can_join(const graph_plan *plan, const graph_node *node)
{
    for (int k = 0; k < node->n_in; k++) {
        const graph_place *at = graph_place_of(plan, node->in[k]);

        if (!at || at->storage != RT_IN_POOL || at->whole || at->root->device != node->out[0]->device)
            return false;
    }
    return true;
}

/* The result is kept from the first piece on. */
static void join_pieces(const graph_module *module, graph_plan *plan, const graph_node *node)
{
    graph_place *whole = place_for(plan, node->out[0]);
    const ir_facts *facts = graph_facts(module);
    const ir_expr *begin = ir_int(plan->cx, 0);

    whole->storage = RT_IN_POOL;
    whole->first = plan->steps.n;
    for (int k = 0; k < node->n_in; k++) {
        graph_place *piece = base_map_get(&plan->places, root_of(node->in[k]));

        piece->whole = whole;
        piece->offset = begin;
        begin = ir_simplify(facts, ir_add(plan->cx, begin, graph_type_bytes(plan->cx, &piece->root->type)));
        whole->first = piece->first < whole->first ? piece->first : whole->first;
        whole->last = piece->last > whole->last ? piece->last : whole->last;
    }
    base_push(plan->cx, &plan->joined, node);
}

/* Each result is in the pool until place_outputs says otherwise. first and last are the numbers of steps:
 * last is extended later by the steps that read it. Steps keep the order of nodes, in which operands come
 * first. */
static bool place_steps(const graph_module *module, graph_plan *plan, const graph_body *body)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        if (node->kind != GRAPH_OP && node->kind != GRAPH_GROUP && node->kind != GRAPH_DEVICE_COPY) {
            base_fail(plan->cx, TEC_UNSUPPORTED, node->loc,
                      "'%s': expected a static graph, found control flow or a call", node->name);
            return false;
        }
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] && root_of(node->in[k])->constant)
                add_constant(plan, root_of(node->in[k]));
        if (only_renames(node))
            continue;
        if (graph_joins_pieces(module, node) && can_join(plan, node)) {
            join_pieces(module, plan, node);
            continue;
        }
        for (int k = 0; k < node->n_out; k++) {
            graph_place *at = place_for(plan, node->out[k]);

            at->storage = RT_IN_POOL;
            at->first = at->last = plan->steps.n;
        }
        base_push(plan->cx, &plan->steps, node);
    }
    return true;
}

/* The value is used at that step, and so is what it is a piece of. */
static void keep_until(graph_place *at, int step)
{
    for (; at; at = at->whole)
        at->last = at->last < step ? step : at->last;
}

/* The first output that a step's result is becomes its storage; other outputs are copied at the end. A result
 * that is an output twice is written once and copied: a kernel writes to one place. So is a piece of a
 * concatenation. */
static void place_outputs(graph_plan *plan, const graph_body *body)
{
    for (int i = 0; i < body->outputs.n; i++) {
        const graph_value *value = body->outputs.at[i], *root = root_of(value);

        if (root->constant)
            add_constant(plan, root);
        graph_place *at = place_for(plan, root);
        if (at->storage == RT_IN_POOL && !at->whole) {
            at->storage = RT_IN_OUTPUT;
            at->index = i;
        } else {
            graph_copy *copy = base_new(plan->cx, graph_copy);

            keep_until(at, plan->steps.n);
            *copy = (graph_copy){value, i};
            base_push(plan->cx, &plan->copies, copy);
        }
    }
}

/* The memory of a view is its root's, so a step that reads the view keeps the root alive. */
static void extend_lifetimes(graph_plan *plan)
{
    for (int i = 0; i < plan->steps.n; i++) {
        const graph_node *node = plan->steps.at[i];

        for (int k = 0; k < node->n_in; k++)
            if (node->in[k])
                keep_until(base_map_get(&plan->places, root_of(node->in[k])), i);
    }
}

/* ---- offsets ---- */

const ir_expr *graph_type_bytes(tec_context *cx, const op_type *type)
{
    const ir_expr *size = ir_int(cx, base_dtype_bytes(type->dtype));

    for (int i = 0; i < type->n; i++)
        size = ir_mul(cx, size, type->dim[i]);
    return size;
}

/* Simplified, as two equal sizes must be one text for shelves. */
static const ir_expr *size_of(const graph_module *module, const ir_facts *facts, const graph_value *value)
{
    tec_context *cx = module->cx;
    const ir_expr *size = graph_type_bytes(cx, &value->type);

    size = ir_mul(cx, ir_ceildiv(cx, size, ir_int(cx, ALIGN)), ir_int(cx, ALIGN));
    return ir_simplify(facts, size);
}

typedef struct {
    const graph_module *m;
    graph_plan *plan;
    int device;
    base_vec constant, symbolic; /* block *: by whether the size depends on symbols */
} collection;

/* The results of a node that need memory of their own in the pool of the device. */
static void collect_results(collection *self, const graph_node *node)
{
    tec_context *cx = self->plan->cx;

    for (int k = 0; k < node->n_out; k++) {
        graph_place *at = base_map_get(&self->plan->places, node->out[k]);

        if (at->storage != RT_IN_POOL || at->whole || node->out[k]->device != self->device)
            continue;
        block *b = base_new(cx, block);
        b->place = at;
        b->size = size_of(self->m, graph_facts(self->m), node->out[k]);
        b->order = self->constant.n + self->symbolic.n;
        if (!ir_is_int(b->size, &b->bytes))
            b->bytes = -1;
        base_push(cx, b->bytes < 0 ? &self->symbolic : &self->constant, b);
    }
}

/* The order of steps decides among equals: the result does not depend on the sorting of the machine. */
static int larger_first(const void *a, const void *b)
{
    const block *x = *(block *const *)a, *y = *(block *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->order - y->order;
}

/* Ends count: see the example above. */
static bool meet(const block *left, const block *piece)
{
    return left->place->first <= piece->place->last && piece->place->first <= left->place->last;
}

static int by_offset(const void *a, const void *b)
{
    const block *x = *(block *const *)a, *y = *(block *const *)b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The lowest gap among the blocks that were placed already and live at the same time. Walks through the
 * blocks in the way by offset; `at` is the end of the highest one so far. */
static int64_t lowest_gap(tec_context *cx, const base_vec *placed, const block *piece)
{
    base_vec near = {0};
    int64_t at = 0;

    for (int i = 0; i < placed->n; i++)
        if (meet(placed->at[i], piece))
            base_push(cx, &near, placed->at[i]);
    if (near.n)
        qsort(near.at, (size_t)near.n, sizeof *near.at, by_offset);
    for (int i = 0; i < near.n; i++) {
        const block *o = near.at[i];

        if (at + piece->bytes <= o->offset)
            break;
        if (o->offset + o->bytes > at)
            at = o->offset + o->bytes;
    }
    return at;
}

/* Large blocks first, since they find fewer gaps. This gives no least pool (that is as hard as packing), but
 * a close one. Gives the bytes of this part. */
static int64_t place_constant_sizes(tec_context *cx, base_vec *blocks)
{
    base_vec placed = {0};
    int64_t total = 0;

    if (blocks->n)
        qsort(blocks->at, (size_t)blocks->n, sizeof *blocks->at, larger_first);
    for (int i = 0; i < blocks->n; i++) {
        block *b = blocks->at[i];

        b->offset = lowest_gap(cx, &placed, b);
        b->place->offset = ir_int(cx, b->offset);
        total = b->offset + b->bytes > total ? b->offset + b->bytes : total;
        base_push(cx, &placed, b);
    }
    return total;
}

/* One place for values of equal size that never live at the same time. */
typedef struct {
    const ir_expr *size, *offset;
    base_vec users; /* block * */
} shelf;

static bool is_free(const shelf *self, const block *piece)
{
    for (int i = 0; i < self->users.n; i++)
        if (meet(self->users.at[i], piece))
            return false;
    return true;
}

/* Sizes with symbols cannot be compared, only found equal: so no gaps are looked for, and a place is used
 * again only for the same size. Gives the bytes of the whole pool, which may depend on symbols. */
static const ir_expr *place_symbolic_sizes(tec_context *cx, const base_vec *blocks, int64_t start)
{
    base_vec shelves = {0};
    const ir_expr *total = ir_int(cx, start);

    for (int i = 0; i < blocks->n; i++) {
        block *b = blocks->at[i];
        shelf *found = NULL;

        for (int j = 0; !found && j < shelves.n; j++) {
            shelf *s = shelves.at[j];

            if (ir_same(s->size, b->size) && is_free(s, b))
                found = s;
        }
        if (!found) {
            found = base_new(cx, shelf);
            found->size = b->size;
            found->offset = total;
            total = ir_add(cx, total, b->size);
            base_push(cx, &shelves, found);
        }
        base_push(cx, &found->users, b);
        b->place->offset = found->offset;
    }
    return total;
}

/* The pool of one device; its bytes. */
static const ir_expr *plan_pool(const graph_module *module, graph_plan *plan, int device)
{
    collection c = {.m = module, .plan = plan, .device = device};

    for (int i = 0; i < plan->steps.n; i++)
        collect_results(&c, plan->steps.at[i]);
    for (int i = 0; i < plan->joined.n; i++)
        collect_results(&c, plan->joined.at[i]);
    return place_symbolic_sizes(module->cx, &c.symbolic, place_constant_sizes(module->cx, &c.constant));
}

/* The algorithm of the static plan, for requests that are no values of a static graph. */
const ir_expr *graph_plan_places(tec_context *cx, graph_place_request *const *request, int n)
{
    base_vec constant = {0}, symbolic = {0};
    graph_place *place = base_array(cx, graph_place, n);

    for (int i = 0; i < n; i++) {
        block *b = base_new(cx, block);

        place[i] = (graph_place){.first = request[i]->first, .last = request[i]->last};
        *b = (block){.place = &place[i], .size = request[i]->size, .order = i};
        if (!ir_is_int(b->size, &b->bytes))
            b->bytes = -1;
        base_push(cx, b->bytes < 0 ? &symbolic : &constant, b);
    }
    const ir_expr *total = place_symbolic_sizes(cx, &symbolic, place_constant_sizes(cx, &constant));
    for (int i = 0; i < n; i++)
        request[i]->offset = place[i].offset;
    return total;
}

/* Device 0 has a pool even if nothing is in it. */
static int count_devices(const graph_plan *plan)
{
    int most = 0;

    for (int i = 0; i < plan->steps.n; i++) {
        const graph_node *node = plan->steps.at[i];

        for (int k = 0; k < node->n_out; k++)
            most = node->out[k]->device > most ? node->out[k]->device : most;
    }
    return most + 1;
}

bool graph_plan_memory(const graph_module *module, const graph_body *body, graph_plan *out)
{
    *out = (graph_plan){.cx = module->cx};
    if (!place_inputs(out, body) || !place_steps(module, out, body))
        return false;
    place_outputs(out, body);
    extend_lifetimes(out);
    out->n_devices = count_devices(out);
    out->pool = base_array(module->cx, const ir_expr *, out->n_devices);
    for (int device = 0; device < out->n_devices; device++)
        out->pool[device] = plan_pool(module, out, device);
    return true;
}
