/* graph/verify_program.c -- what holds of the planned form of a program (graph/plan_program.h), node by node
 * and region by region.
 *
 * Storages belong to one tensor each, so that tensors lie apart by construction; the VM looks at sizes when
 * it allocates. What is left to hold is the order: a tensor is written before it is read, and nothing is read
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

static bool broken(const checker *self, const char *what)
{
    base_fail(self->cx, TEC_INTERNAL, self->node->loc, "graph '%s', function '%s', node '%s': %s",
              self->m->name, self->f->name, self->node->name, what);
    return false;
}

static bool can_be_read(const checker *self, const graph_value *value)
{
    if (!value)
        return true;
    if (base_map_get(&self->dead, value))
        return broken(self, "a value is used after its kill");
    if (base_map_get(&self->storages, value))
        return broken(self, "a storage is used as a value");
    return !base_map_get(&self->unwritten, value) ||
           broken(self, "a tensor is read before anything was written to it");
}

static bool check_counts(const checker *self, int n_in, int n_out)
{
    return (self->node->n_in == n_in && self->node->n_out == n_out) ||
           broken(self, base_format(self->cx, "expected %d operands and %d results, found %d and %d", n_in,
                                    n_out, self->node->n_in, self->node->n_out));
}

static bool check_storage(checker *self)
{
    if (!check_counts(self, 0, 1))
        return false;
    const op_type *t = &self->node->out[0]->type;
    if (!base_dtype_same(t->dtype, BASE_U8) || t->n != 1)
        return broken(self,
                      base_format(self->cx, "a storage is u8[bytes], found %s", op_type_text(self->cx, t)));
    base_map_put(self->cx, &self->storages, self->node->out[0], self->node);
    return true;
}

/* A tensor at an offset of a storage, or a view of a tensor. */
static bool check_tensor(checker *self)
{
    if (!check_counts(self, 1, 1) || !self->node->in[0])
        return check_counts(self, 1, 1) && broken(self, "an operand is left out");
    if (!graph_attribute(self->node, "offset"))
        return can_be_read(self, self->node->in[0]);
    if (!base_map_get(&self->storages, self->node->in[0]))
        return broken(self, "a tensor with an offset lies in no storage");
    base_map_put(self->cx, &self->unwritten, self->node->out[0], self->node);
    return true;
}

/* What a kernel reads was written; what it writes was allocated for it; both have the declared type. */
static bool check_operand(checker *self, const graph_kernel_type *kernel_type, const graph_instance *symbols,
                          int index)
{
    graph_value *value = self->node->in[index];
    const graph_type param = graph_tensor_type(&kernel_type->param[index]),
                     expected = graph_instance_type(symbols, &param);

    if (!value)
        return broken(self, "an operand is left out");
    if (index >= kernel_type->n_reads && !base_map_get(&self->unwritten, value))
        return broken(self,
                      base_format(self->cx, "operand %d is written, but was not allocated for that", index));
    if (index < kernel_type->n_reads ? !can_be_read(self, value) : base_map_get(&self->dead, value) != NULL)
        return index < kernel_type->n_reads ? false : broken(self, "a value is written after its kill");
    const graph_type found = graph_type_of(value);
    return graph_types_same(graph_facts_in(self->m, self->body), &expected, &found) ||
           broken(self, base_format(self->cx, "operand %d is %s, kernel '%s' takes %s there", index,
                                    graph_type_text(self->cx, &found), kernel_type->name,
                                    graph_type_text(self->cx, &expected)));
}

/* The kernel's declaration with the values of its symbols, against each operand. */
static bool check_invoke(checker *self)
{
    const graph_kernel_type *k = graph_kernel_named(self->m, self->node->callee);
    const op_attr *dims = graph_attribute(self->node, "dims");

    if (!k)
        return broken(self, base_format(self->cx, "there is no kernel '%s'", self->node->callee));
    if (self->node->n_out || self->node->n_in != k->n_params || (dims ? dims->n : 0) != k->n_symbols)
        return broken(self, base_format(self->cx, "kernel '%s' takes %d operands and %d symbols", k->name,
                                        k->n_params, k->n_symbols));
    graph_instance symbols = {.cx = self->cx, .symbol = k->symbol, .n = k->n_symbols};
    for (int i = 0; i < k->n_symbols; i++)
        base_map_put(self->cx, &symbols.map.vars, k->symbol[i], dims->exprs[i]);
    for (int i = 0; i < k->n_params; i++)
        if (!check_operand(self, k, &symbols, i))
            return false;
    for (int i = k->n_reads; i < k->n_params; i++)
        base_map_put(self->cx, &self->unwritten, self->node->in[i], NULL);
    return true;
}

static bool check_kill(checker *self)
{
    if (!check_counts(self, 1, 0) || !can_be_read(self, self->node->in[0]))
        return false;
    base_map_put(self->cx, &self->dead, self->node->in[0], self->node);
    return true;
}

static bool check_body(checker *self, const graph_body *body);

static bool check_control(checker *self)
{
    const graph_node *node = self->node;
    const graph_body *body = self->body;
    bool ok = true;

    for (int k = 0; k < node->n_in && ok; k++)
        ok = can_be_read(self, node->in[k]);
    for (int k = 0; k < node->n_bodies && ok; k++)
        ok = check_body(self, node->body[k]);
    self->node = node;
    self->body = body;
    return ok;
}

/* The rule of one node, by its kind. */
static bool check_node(checker *self)
{
    switch (self->node->kind) {
    case GRAPH_ALLOC_STORAGE: return check_storage(self);
    case GRAPH_ALLOC_TENSOR: return check_tensor(self);
    case GRAPH_INVOKE: return check_invoke(self);
    case GRAPH_KILL: return check_kill(self);
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
    case GRAPH_SCAN: return check_control(self);
    case GRAPH_DEVICE_COPY:
    case GRAPH_OP:
    case GRAPH_GROUP:
    case GRAPH_PACK: break;
    }
    return broken(self, "this node has no place in a planned program");
}

static bool check_body(checker *self, const graph_body *body)
{
    self->body = body;
    for (int i = 0; i < body->nodes.n; i++) {
        self->node = body->nodes.at[i];
        if (!check_node(self))
            return false;
    }
    for (int i = 0; i < body->outputs.n && body->nodes.n > 0; i++)
        if (!can_be_read(self, body->outputs.at[i]))
            return false;
    return true;
}

bool graph_verify_program(const graph_module *module, const graph_function *function)
{
    checker c = {.cx = module->cx, .m = module, .f = function};

    return check_body(&c, function->body);
}
