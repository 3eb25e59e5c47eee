/* graph/verify_program.c -- what holds of the planned form of a program (graph/plan_program.h), node by node
 * and region by region.
 *
 * Storages belong to one tensor each, so that tensors lie apart by construction; the VM looks at sizes when
 * it
 * allocates. What is left to hold is the order: a tensor is written before it is read, and nothing is read
 * behind its kill.
 */
#include "graph/node.h"
#include "graph/plan_program.h"
#include "graph/scope.h"

typedef struct {
    tec_context *cx;
    const graph_module *m;
    const graph_function *f;
    const graph_body *body;
    const graph_node *node;
    base_map storages;  /* u8[bytes] -> its alloc_storage */
    base_map unwritten; /* tensors that nothing was written to so far */
    base_map dead;      /* values behind their kill */
} checker;

static bool broken(const checker *c, const char *what)
{
    base_fail(c->cx, TEC_INTERNAL, c->node->loc, "graph '%s', function '%s', node '%s': %s", c->m->name,
              c->f->name, c->node->name, what);
    return false;
}

static bool can_be_read(const checker *c, const graph_value *v)
{
    if (!v)
        return true;
    if (base_map_get(&c->dead, v))
        return broken(c, "a value is used after its kill");
    if (base_map_get(&c->storages, v))
        return broken(c, "a storage is used as a value");
    return !base_map_get(&c->unwritten, v) || broken(c, "a tensor is read before anything was written to it");
}

static bool check_counts(const checker *c, int n_in, int n_out)
{
    return (c->node->n_in == n_in && c->node->n_out == n_out) ||
           broken(c, base_format(c->cx, "expected %d operands and %d results, found %d and %d", n_in, n_out,
                                 c->node->n_in, c->node->n_out));
}

static bool check_storage(checker *c)
{
    if (!check_counts(c, 0, 1))
        return false;
    const op_type *t = &c->node->out[0]->type;
    if (!base_dtype_same(t->dtype, BASE_U8) || t->n != 1)
        return broken(c, base_format(c->cx, "a storage is u8[bytes], found %s", op_type_text(c->cx, t)));
    base_map_put(c->cx, &c->storages, c->node->out[0], c->node);
    return true;
}

/* A tensor at an offset of a storage, or a view of a tensor. */
static bool check_tensor(checker *c)
{
    if (!check_counts(c, 1, 1) || !c->node->in[0])
        return check_counts(c, 1, 1) && broken(c, "an operand is left out");
    if (!graph_attribute(c->node, "offset"))
        return can_be_read(c, c->node->in[0]);
    if (!base_map_get(&c->storages, c->node->in[0]))
        return broken(c, "a tensor with an offset lies in no storage");
    base_map_put(c->cx, &c->unwritten, c->node->out[0], c->node);
    return true;
}

/* What a kernel reads was written; what it writes was allocated for it; both have the declared type. */
static bool check_operand(checker *c, const graph_kernel_type *k, const graph_instance *symbols, int i)
{
    graph_value *v = c->node->in[i];
    const graph_type param = graph_tensor_type(&k->param[i]), expected = graph_instance_type(symbols, &param);

    if (!v)
        return broken(c, "an operand is left out");
    if (i >= k->n_reads && !base_map_get(&c->unwritten, v))
        return broken(c, base_format(c->cx, "operand %d is written, but was not allocated for that", i));
    if (i < k->n_reads ? !can_be_read(c, v) : base_map_get(&c->dead, v) != NULL)
        return i < k->n_reads ? false : broken(c, "a value is written after its kill");
    const graph_type found = graph_type_of(v);
    return graph_types_same(graph_facts_in(c->m, c->body), &expected, &found) ||
           broken(c, base_format(c->cx, "operand %d is %s, kernel '%s' takes %s there", i,
                                 graph_type_text(c->cx, &found), k->name, graph_type_text(c->cx, &expected)));
}

/* The kernel's declaration with the values of its symbols, against each operand. */
static bool check_invoke(checker *c)
{
    const graph_kernel_type *k = graph_kernel_named(c->m, c->node->callee);
    const op_attr *dims = graph_attribute(c->node, "dims");

    if (!k)
        return broken(c, base_format(c->cx, "there is no kernel '%s'", c->node->callee));
    if (c->node->n_out || c->node->n_in != k->n_params || (dims ? dims->n : 0) != k->n_symbols)
        return broken(c, base_format(c->cx, "kernel '%s' takes %d operands and %d symbols", k->name,
                                     k->n_params, k->n_symbols));
    graph_instance symbols = {.cx = c->cx, .symbol = k->symbol, .n = k->n_symbols};
    for (int i = 0; i < k->n_symbols; i++)
        base_map_put(c->cx, &symbols.map.vars, k->symbol[i], dims->exprs[i]);
    for (int i = 0; i < k->n_params; i++)
        if (!check_operand(c, k, &symbols, i))
            return false;
    for (int i = k->n_reads; i < k->n_params; i++)
        base_map_put(c->cx, &c->unwritten, c->node->in[i], NULL);
    return true;
}

static bool check_kill(checker *c)
{
    if (!check_counts(c, 1, 0) || !can_be_read(c, c->node->in[0]))
        return false;
    base_map_put(c->cx, &c->dead, c->node->in[0], c->node);
    return true;
}

static bool check_body(checker *c, const graph_body *body);

static bool check_control(checker *c)
{
    const graph_node *node = c->node;
    const graph_body *body = c->body;
    bool ok = true;

    for (int k = 0; k < node->n_in && ok; k++)
        ok = can_be_read(c, node->in[k]);
    for (int k = 0; k < node->n_bodies && ok; k++)
        ok = check_body(c, node->body[k]);
    c->node = node;
    c->body = body;
    return ok;
}

/* The rule of one node, by its kind. */
static bool check_node(checker *c)
{
    switch (c->node->kind) {
    case GRAPH_ALLOC_STORAGE: return check_storage(c);
    case GRAPH_ALLOC_TENSOR: return check_tensor(c);
    case GRAPH_INVOKE: return check_invoke(c);
    case GRAPH_KILL: return check_kill(c);
    case GRAPH_MAKE_TUPLE:
    case GRAPH_FIELD:
    case GRAPH_CONSTRUCT:
    case GRAPH_MATCH:
    case GRAPH_CLOSURE:
    case GRAPH_APPLY:
    case GRAPH_CHECK:
    case GRAPH_EXTENTS:
    case GRAPH_CALL:
    case GRAPH_IF:
    case GRAPH_LOOP:
    case GRAPH_SCAN: return check_control(c);
    case GRAPH_DEVICE_COPY:
    case GRAPH_OP:
    case GRAPH_GROUP:
    case GRAPH_PACK: break;
    }
    return broken(c, "this node has no place in a planned program");
}

static bool check_body(checker *c, const graph_body *body)
{
    c->body = body;
    for (int i = 0; i < body->nodes.n; i++) {
        c->node = body->nodes.at[i];
        if (!check_node(c))
            return false;
    }
    for (int i = 0; i < body->outputs.n && body->nodes.n > 0; i++)
        if (!can_be_read(c, body->outputs.at[i]))
            return false;
    return true;
}

bool graph_verify_program(const graph_module *m, const graph_function *f)
{
    checker c = {.cx = m->cx, .m = m, .f = f};

    return check_body(&c, f->body);
}
