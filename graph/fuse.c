/* graph/fuse.c -- fuses operators into groups that become one kernel each, by kind (the TVM paper, section
 * 3).
 *
 *     v1 = conv(x, w)   v2 = add(v1, b)   v3 = relu(v2)   v4 = max_pool(v3)
 *     =>  group "conv_add_relu" { v1, v2, v3 }    max_pool alone: it reads neighbours of v3
 *
 * - injective operators fuse with injective ones; - a reduction takes the injective operators in front of it,
 * but no concatenation: the loops of a reduction would choose the operand for each element;
 * - a complex operator takes the element-wise operators behind it that keep its shape; - an opaque operator
 * stays alone; so does one that only renames its operand's elements (reshape), which costs nothing by itself,
 * and a concatenation of what lies one behind the other, whose operands the plan puts into their places.
 *
 * A value moves into a kernel only where that kernel is its one reader: nothing is computed twice, nothing
 * waits for itself. A group stands where its last operator stood. Nor does it grow past what a kernel may
 * hold (graph/terms.h).
 *
 * In a program, where each kernel is an instruction, the results of a body may have one reader besides. An
 * element-wise group then gives two results, as in the step of an LSTM, whose state is both read and
 * returned:
 *
 *     v1 = mul(f, c)   v2 = tanh(v1)   v3 = mul(o, v2)   output v3, v1
 *     =>  v3, v1 = group "mul_tanh_mul" { ... }   output v3, v1
 *
 * Nothing but the body's end waits for v1, so v1 may come as late as v3.
 */
#include "graph/pass.h"
#include "graph/plan.h"
#include "graph/plan_program.h"
#include "graph/rewrite.h"
#include "graph/terms.h"
#include "ir/walk.h"

typedef struct {
    base_vec nodes;         /* graph_node *, in order */
    const graph_body *body; /* where they stand */
    op_kind kind;
    const graph_node *anchor; /* the complex operator, or NULL */
    const op_type *shape;     /* of a complex group: what its epilogue must keep */
    bool joins;               /* a concatenation is among the nodes */
    base_vec given;           /* graph_value *: results besides that of the last node */
} group;

typedef struct {
    base_map uses;   /* value -> how often */
    base_map groups; /* graph_node * -> group * */
    base_map terms;  /* graph_node * -> int64_t *: of its expression, with what is joined in front of it */
    base_map pieced; /* graph_node *: concatenations whose pieces the plan puts into them */
    const graph_module *m;
    bool program; /* for the VM, which extends tensors */
} state;

enum { MOST_OPERATORS = 64 }; /* in one kernel: longer chains are no faster and slow to compile */

/* A kernel writes one result; an opaque operator is a call of its own; a renaming one, and a concatenation
 * whose pieces the plan puts into it, is no work at all. */
static bool can_join(const state *self, const graph_node *node)
{
    if (self->program && graph_is_append(node) && graph_uses(&self->uses, node->in[0]) == 1)
        return false;
    if (base_map_has(&self->pieced, node))
        return false;
    return node->kind == GRAPH_OP && node->op->kind != OP_OPAQUE && node->n_out == 1 && !node->op->identity;
}

/* The epilogue runs where the anchor's element is finished, element by element, so in one shape. Extents are
 * compared as expressions: what needs a proof counts as different. */
static bool same_shape(const op_type *left, const op_type *right)
{
    for (int i = 0; left->n == right->n && i < left->n; i++)
        if (left->dim[i] != right->dim[i] && !ir_same(left->dim[i], right->dim[i]))
            return false;
    return left->n == right->n;
}

/* Whether `node`, which reads the result of the group, may become part of the group's kernel. With a second
 * result all results have one shape, so that the kernel has one set of loops for them. */
static bool fits(const group *self, const graph_node *node, op_kind kind_so_far)
{
    if (self->given.n)
        return kind_so_far == OP_INJECTIVE && node->op->scalar &&
               same_shape(&((const graph_value *)self->given.at[0])->type, &node->out[0]->type);
    switch (self->kind) {
    case OP_INJECTIVE:
        return kind_so_far == OP_INJECTIVE || (kind_so_far == OP_REDUCTION && !self->joins) ||
               (kind_so_far == OP_COMPLEX && node->op->scalar);
    case OP_COMPLEX:
        return kind_so_far == OP_INJECTIVE && node->op->scalar &&
               same_shape(self->shape, &node->out[0]->type);
    case OP_REDUCTION:
    case OP_OPAQUE: return false;
    }
    return false;
}

/* All that is in `from` belongs to `into` from now on, in the order in which it was. Nodes are told their new
 * group one by one: `from` itself is not looked at again. */
static void join(tec_context *cx, state *st, group *into, group *from)
{
    for (int i = 0; i < from->nodes.n; i++) {
        base_push(cx, &into->nodes, from->nodes.at[i]);
        base_map_put(cx, &st->groups, from->nodes.at[i], into);
    }
    for (int i = 0; i < from->given.n; i++)
        base_push(cx, &into->given, from->given.at[i]);
    into->joins = into->joins || from->joins;
    if (from->kind == OP_COMPLEX) {
        into->kind = OP_COMPLEX;
        into->anchor = from->anchor;
        into->shape = from->shape;
    }
}

/* The node is the value's one reader, however often it reads it: mul(value, value) is one reader. An output
 * of the body counts as a use, so a value that the user sees is never swallowed by a kernel. */
static bool only_reader(const state *st, const graph_node *node, const graph_value *value)
{
    int n = 0;

    for (int k = 0; k < node->n_in; k++)
        n += node->in[k] == value;
    return graph_uses(&st->uses, value) == n || BASE_PLANT_ON(st->m->cx, fuse_readers);
}

/* The value is a result of the body as well, and nobody else reads it. A loop's body gives its results to the
 * next iteration, so a state of the loop that is read and carried counts. */
static bool is_result(const state *st, const graph_body *body, const graph_node *node,
                      const graph_value *value)
{
    int n = 0;

    for (int i = 0; i < body->outputs.n; i++)
        n += body->outputs.at[i] == value;
    for (int k = 0; n && k < node->n_in; k++)
        n += node->in[k] == value;
    return n && graph_uses(&st->uses, value) == n;
}

/* Whether the node joins the group that makes the value although the value is a result of the body. */
static bool may_give(const state *st, const group *self, const group *from, const graph_node *node,
                     const graph_value *value)
{
    return st->program && self->kind == OP_INJECTIVE && from->kind == OP_INJECTIVE && node->op->scalar &&
           same_shape(&value->type, &node->out[0]->type) && is_result(st, self->body, node, value);
}

/* Terms that operand k adds where what makes it is joined; 1 otherwise, a load. */
static int64_t operand_terms(const state *st, const graph_node *node, int k, const group *mine)
{
    const graph_node *before = node->in[k] ? node->in[k]->node : NULL;
    const int64_t *terms =
        before && base_map_get(&st->groups, before) == mine ? base_map_get(&st->terms, before) : NULL;

    return terms && before->op->kind != OP_COMPLEX ? *terms : 1;
}

/* Terms of the node where group `more` would be joined as well as what is joined already. For v3 = mul(v2,
 * v2) and v2 = add(v1, v1), both alone so far: v2 has own terms and two loads, and joining it to v3 counts it
 * twice, once for each read. An operand in front that is complex counts 1: its result lies in a buffer and is
 * loaded. */
static int64_t terms_with(const state *st, const graph_node *node, const int *reads, int own,
                          const group *mine, const group *more)
{
    int64_t terms = own;

    for (int k = 0; k < node->n_in; k++) {
        int64_t a = operand_terms(st, node, k, mine), b = more ? operand_terms(st, node, k, more) : 1;

        terms = graph_add_terms(terms, reads[k], a > b ? a : b);
    }
    return terms;
}

/* Decides for one node, all before it being decided, which groups of its operands it joins. A complex
 * operator starts a group and never joins one: what is in front of it would be computed again for each use.
 * Earlier operands are joined first: where both do not fit together, the first one wins. */
static void place(tec_context *cx, state *st, const graph_body *body, const graph_node *node)
{
    group *g = base_new(cx, group);
    op_kind kind = node->kind == GRAPH_OP ? node->op->kind : OP_OPAQUE;

    if (!st->program && graph_joins_pieces(st->m, node))
        base_map_put(cx, &st->pieced, node, g);
    g->kind = kind;
    g->body = body;
    g->joins = node->kind == GRAPH_OP && base_same(node->op->name, "concat");
    if (kind == OP_COMPLEX) {
        g->anchor = node;
        g->shape = &node->out[0]->type;
    }
    int *reads = base_array(cx, int, node->n_in),
        own = can_join(st, node) ? graph_own_terms(st->m, node, reads) : 1;
    for (int k = 0; can_join(st, node) && kind != OP_COMPLEX && k < node->n_in; k++) {
        const graph_node *before = node->in[k] ? node->in[k]->node : NULL;
        group *p = before ? base_map_get(&st->groups, before) : NULL;

        if (!p || p == g || p->body != body || !can_join(st, before) ||
            p->nodes.n + g->nodes.n >= MOST_OPERATORS || (g->given.n && p->kind != OP_INJECTIVE))
            continue;
        bool gives = !only_reader(st, node, node->in[k]);
        if (gives && !may_give(st, g, p, node, node->in[k]))
            continue;
        if (fits(p, node, g->kind) && terms_with(st, node, reads, own, g, p) <= GRAPH_MOST_TERMS) {
            join(cx, st, g, p);
            if (gives)
                base_push(cx, &g->given, node->in[k]);
        }
    }
    int64_t *terms = base_new(cx, int64_t);
    *terms = terms_with(st, node, reads, own, g, NULL);
    base_map_put(cx, &st->terms, node, terms);
    base_push(cx, &g->nodes, node);
    base_map_put(cx, &st->groups, node, g);
}

static void place_body(tec_context *cx, state *st, const graph_body *body)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        place(cx, st, body, node);
        for (int k = 0; k < node->n_bodies; k++)
            place_body(cx, st, node->body[k]);
    }
}

static void prepare(graph_rewrite *rw, const graph_body *old)
{
    state *st = rw->user;

    graph_count_uses(rw->cx, old, &st->uses);
    place_body(rw->cx, st, old);
}

/* ---- making groups ---- */

static const char *group_name(tec_context *cx, const group *self)
{
    base_text t = {0};

    for (int i = 0; i < self->nodes.n; i++)
        base_addf(cx, &t, "%s%s", i ? "+" : "", ((const graph_node *)self->nodes.at[i])->name);
    return base_text_str(cx, &t);
}

typedef struct {
    base_map inner;    /* old value -> value inside the group */
    base_vec operands; /* new values outside */
    graph_body *body;
} making;

/* A value of the group itself, or one from outside, which becomes an operand and an input the first time it
 * is read; a second read finds the same input. NULL is an operand that is left out, and stays so. */
static graph_value *inner_value(graph_rewrite *rw, making *mk, const graph_value *old)
{
    if (!old)
        return NULL;
    graph_value *value = base_map_get(&mk->inner, old);
    if (!value) {
        value = graph_value_new(rw->cx, old->name, old->type);
        value->constant = old->constant;
        base_map_put(rw->cx, &mk->inner, old, value);
        base_push(rw->cx, &mk->body->inputs, value);
        base_push(rw->cx, &mk->operands, graph_new_value(rw, old));
    }
    return value;
}

/* The node goes into the group's body, so rw->body is that body while it is copied. Its result is known
 * inside; make_group tells the body outside of those that the group gives. */
static void copy_inside(graph_rewrite *rw, making *mk, const graph_node *node)
{
    graph_body *outer = rw->body;
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);

    for (int k = 0; k < node->n_in; k++)
        in[k] = inner_value(rw, mk, node->in[k]);
    rw->body = mk->body;
    graph_node *copy = graph_copy_node(rw, node, in);
    rw->body = outer;
    base_map_put(rw->cx, &mk->inner, node->out[0], copy->out[0]);
}

/* Makes the node of a finished group at the place of its last operator. Values from outside become operands
 * of the group and inputs of its body. The last operator's result is the first one. */
static bool make_group(graph_rewrite *rw, const group *self, const graph_node *last)
{
    tec_context *cx = rw->cx;
    making mk = {.body = base_new(cx, graph_body)};
    int n = 1 + self->given.n;
    graph_value **result = base_array(cx, graph_value *, n);
    op_type *type = base_array(cx, op_type, n);

    mk.body->outer = rw->body;
    for (int i = 0; i < self->nodes.n; i++)
        copy_inside(rw, &mk, self->nodes.at[i]);
    for (int k = 0; k < n; k++) {
        result[k] = k ? self->given.at[k - 1] : last->out[0];
        type[k] = result[k]->type;
        base_push(cx, &mk.body->outputs, base_map_get(&mk.inner, result[k]));
    }
    base_set_where(cx, self->anchor ? self->anchor->loc : last->loc);
    graph_node *node = graph_node_new(cx, GRAPH_GROUP, group_name(cx, self),
                                      (graph_value *const *)mk.operands.at, mk.operands.n, type, n);
    node->body = base_array(cx, graph_body *, 1);
    node->body[0] = mk.body;
    node->n_bodies = 1;
    node->impl = self->anchor ? self->anchor->impl : NULL;
    base_push(cx, &rw->body->nodes, node);
    for (int k = 0; k < n; k++)
        graph_replace(rw, result[k], node->out[BASE_PLANT_ON(cx, fuse_results) ? n - 1 - k : k]);
    return true;
}

/* Nodes of a group other than its last are passed over: they are made when the last one comes, where all
 * operands of all of them exist. */
static bool visit(graph_rewrite *rw, const graph_node *node)
{
    state *st = rw->user;
    const group *g = base_map_get(&st->groups, node);

    if (!g || g->nodes.n == 1)
        return graph_keep(rw, node);
    return g->nodes.at[g->nodes.n - 1] == node ? make_group(rw, g, node) : true;
}

graph_module *graph_fuse(graph_module *module, const target *machine)
{
    state st = {.m = module, .program = graph_is_program(module)};

    (void)machine;
    return graph_rewrite_module(module, visit, prepare, &st);
}
