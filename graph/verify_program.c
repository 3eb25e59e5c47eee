/* graph/verify_program.c -- what holds of the planned form of a program (graph/plan_program.h), node by node
 * and region by region.
 *
 * A tensor is written before it is read, and nothing is read behind its kill. Tensors of one storage that
 * live at the same time lie apart (graph/coalesce.c); the VM compares bytes once more, with real sizes, when
 * it allocates and before each kernel, so what is tried here at some sizes is held at all that occur.
 */
#include "graph/node.h"
#include "graph/plan.h"
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
    base_vec killed;    /* the same, in their order */
    base_map lodgers;   /* tensors and views -> lodger * */
    base_vec lodging;   /* lodger *: those that live here */
} checker;

/* A tensor with a place in a storage. */
typedef struct {
    const graph_value *storage;
    const ir_expr *begin, *bytes;
    int alive; /* tensor and views that are not killed */
} lodger;

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

static const ir_expr *rounded(const checker *self, const ir_expr *bytes)
{
    const ir_expr *line = ir_int(self->cx, 64);

    return ir_mul(self->cx, ir_ceildiv(self->cx, bytes, line), line);
}

/* The condition with each of the variables at `size`: 1, 0, or -1 if that does not decide it. */
static int decide_at(const checker *self, const ir_expr *condition, const base_vec *vars, int64_t size)
{
    int64_t holds;

    for (int i = 0; i < vars->n; i++)
        condition = ir_substitute(self->cx, condition, vars->at[i], ir_int(self->cx, size));
    return ir_is_int(ir_simplify(graph_facts_in(self->m, self->body), condition), &holds) ? holds != 0 : -1;
}

/* Whether the condition holds for all extents. Of products of extents the prover knows little: if it gives
 * up, four sizes are tried. */
static bool holds(const checker *self, const ir_expr *condition)
{
    static const int64_t sizes[] = {0, 1, 3, 64};
    const ir_facts *facts = graph_facts_in(self->m, self->body);
    base_vec vars = {0};

    ir_free_vars(self->cx, condition, &vars);
    if (ir_prove(facts, condition))
        return true;
    for (int i = 0; i < BASE_COUNT(sizes); i++)
        if (decide_at(self, condition, &vars, sizes[i]) != 1)
            return false;
    return vars.n > 0;
}

/* Whether `left` ends where `right` begins, or before. */
static bool is_behind(const checker *self, const lodger *left, const lodger *right)
{
    const ir_expr *end = ir_add(self->cx, left->begin, rounded(self, left->bytes));

    return holds(self, ir_le(self->cx, end, right->begin));
}

/* The tensor of the node gets its place; other tensors that live there now must lie apart. */
static bool check_place(checker *self)
{
    const graph_node *node = self->node;
    lodger *mine = base_new(self->cx, lodger);

    *mine = (lodger){.storage = node->in[0],
                     .begin = graph_attribute(node, "offset")->exprs[0],
                     .bytes = graph_type_bytes(self->cx, &node->out[0]->type),
                     .alive = 1};
    for (int i = 0; i < self->lodging.n; i++) {
        const lodger *other = self->lodging.at[i];

        if (other->alive > 0 && other->storage == mine->storage && !is_behind(self, mine, other) &&
            !is_behind(self, other, mine))
            return broken(self, "a tensor lies where another one of its storage lives");
    }
    base_push(self->cx, &self->lodging, mine);
    base_map_put(self->cx, &self->lodgers, node->out[0], mine);
    return true;
}

/* A tensor at an offset of a storage, or a view of a tensor. */
static bool check_tensor(checker *self)
{
    if (!check_counts(self, 1, 1) || !self->node->in[0])
        return check_counts(self, 1, 1) && broken(self, "an operand is left out");
    if (!graph_attribute(self->node, "offset")) {
        lodger *of = base_map_get(&self->lodgers, self->node->in[0]);

        if (of) {
            of->alive++;
            base_map_put(self->cx, &self->lodgers, self->node->out[0], of);
        }
        return can_be_read(self, self->node->in[0]);
    }
    if (!base_map_get(&self->storages, self->node->in[0]))
        return broken(self, "a tensor with an offset lies in no storage");
    base_map_put(self->cx, &self->unwritten, self->node->out[0], self->node);
    return check_place(self);
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

static void end_value(checker *self, const graph_value *value)
{
    base_map_put(self->cx, &self->dead, value, self->node);
    base_push(self->cx, &self->killed, (void *)(uintptr_t)value);
}

/* The values that were killed from number `first` on: dead, or alive again as in another branch. */
static void set_killed(checker *self, int first, const graph_node *by)
{
    for (int i = first; i < self->killed.n; i++)
        base_map_put(self->cx, &self->dead, self->killed.at[i], (void *)(uintptr_t)by);
}

static bool check_kill(checker *self)
{
    if (!check_counts(self, 1, 0) || !can_be_read(self, self->node->in[0]))
        return false;
    lodger *l = base_map_get(&self->lodgers, self->node->in[0]);
    if (l)
        l->alive--;
    end_value(self, self->node->in[0]);
    return true;
}

/* Two tensors of one element type and rank; the first is not used behind the node. */
static bool check_append(checker *self)
{
    const graph_node *node = self->node;

    if (!check_counts(self, 2, 1) || !can_be_read(self, node->in[0]) || !can_be_read(self, node->in[1]))
        return false;
    if (!node->in[0] || !node->in[1] || node->in[0] == node->in[1] || node->in[0]->constant)
        return broken(self, "expected two tensors, the first one made by this program");
    end_value(self, node->in[0]);
    return true;
}

static bool check_body(checker *self, const graph_body *body);

/* Operands, then each region. What one branch kills is alive in the next one, and dead behind both. */
static bool check_control(checker *self)
{
    const graph_node *node = self->node;
    const graph_body *body = self->body;
    int first = self->killed.n;
    bool ok = true;

    for (int k = 0; k < node->n_in && ok; k++)
        ok = can_be_read(self, node->in[k]);
    for (int k = 0; k < node->n_bodies && ok; k++) {
        set_killed(self, first, NULL);
        ok = check_body(self, node->body[k]);
    }
    set_killed(self, first, node);
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
    case GRAPH_APPEND: return check_append(self);
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
