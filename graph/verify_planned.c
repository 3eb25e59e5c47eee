/* graph/verify_planned.c -- what holds of the planned form, node by node in the order in which they run.
 *
 * The state is a record for each value: the storage that its bytes lie in, where they begin, whether
 * something was written there, whether the tensor still lives. Two tensors of one storage that live at the
 * same time must lie apart:
 *
 *     v4: f32[16] = alloc_tensor "a"(v2) @offset(exprs [0])       bytes 0 to 63
 *     v5: f32[16] = alloc_tensor "b"(v2) @offset(exprs [32])      refused: bytes 32 to 95, while 'a' lives
 *
 * Bytes that depend on symbols are compared by the prover. What it cannot prove is tried at three sizes of
 * all symbols; the executor, which knows the real sizes, holds every tensor against its storage once more.
 */
#include "graph/node.h"
#include "graph/plan.h"
#include "graph/planned.h"
#include "ir/build.h"
#include "ir/text.h"
#include "ir/walk.h"

enum { ALIGN = 64 };

/* What is known of a value. A view has the root of what it views. A part of a tensor is one of the `parts` of
 * its root, and lives as long. */
typedef struct value_state {
    const graph_value *value;
    struct value_state *root;     /* itself, unless it is a view */
    struct value_state *whole;    /* the root that it is a part of; NULL: it is none */
    base_vec parts;               /* value_state *: of a root */
    const graph_node *storage;    /* its alloc_storage; NULL: an input or a constant */
    const ir_expr *begin, *bytes; /* in the storage, or in the whole */
    bool is_storage, written, dead;
} value_state;

typedef struct {
    tec_context *cx;
    const graph_module *m;
    const graph_function *f;
    const ir_facts *facts;
    const graph_node *node; /* at which the check stands; NULL: behind the last */
    base_map states;        /* graph_value * -> value_state * */
    base_vec live;          /* value_state *: tensors of storages, not killed yet */
} checker;

static bool broken(const checker *self, const char *what)
{
    const graph_node *node = self->node;

    base_fail(self->cx, TEC_INTERNAL, node ? node->loc : (base_loc){0}, "graph '%s', function '%s'%s%s%s: %s",
              self->m->name, self->f->name, node ? ", node '" : "", node ? node->name : "", node ? "'" : "",
              what);
    return false;
}

static const char *name_of(const checker *self, const graph_value *value)
{
    return value->name                           ? value->name
           : value->node && value->node->name[0] ? value->node->name
                                                 : op_type_text(self->cx, &value->type);
}

/* ---- proofs ---- */

/* The condition with every symbol at `size`: 1, 0, or -1 where that does not decide it. */
static int decide_at(const checker *self, const ir_expr *condition, int64_t size)
{
    int64_t holds;

    for (int i = 0; i < self->m->symbols.n; i++)
        condition = ir_substitute(self->cx, condition, self->m->symbols.at[i], ir_int(self->cx, size));
    return ir_is_int(ir_simplify(self->facts, condition), &holds) ? holds != 0 : -1;
}

/* Whether the condition holds for all sizes. Where the prover gives up, three sizes are tried that obey the
 * facts. The runtime repeats the comparison with real sizes, so a mistake here is caught and not a
 * corruption. */
static bool holds(const checker *self, const ir_expr *condition)
{
    static const int64_t sizes[] = {1, 3, 64};

    if (ir_prove(self->facts, condition))
        return true;
    for (int i = 0; i < BASE_COUNT(sizes); i++) {
        bool possible = true;

        for (int k = 0; k < self->m->facts.n; k++)
            possible = possible && decide_at(self, self->m->facts.at[k], sizes[i]) != 0;
        if (possible && decide_at(self, condition, sizes[i]) != 1)
            return false;
    }
    return self->m->symbols.n > 0;
}

static bool lie_apart(const checker *self, const value_state *left, const value_state *right)
{
    return holds(self, ir_le(self->cx, ir_add(self->cx, left->begin, left->bytes), right->begin)) ||
           holds(self, ir_le(self->cx, ir_add(self->cx, right->begin, right->bytes), left->begin));
}

/* ---- values ---- */

static value_state *add_state(checker *self, const graph_value *value)
{
    value_state *s = base_new(self->cx, value_state);

    *s = (value_state){
        .value = value, .begin = ir_int(self->cx, 0), .bytes = graph_type_bytes(self->cx, &value->type)};
    s->root = s;
    base_map_put(self->cx, &self->states, value, s);
    return s;
}

/* Inputs and constants are there from the start. */
static value_state *state_of(checker *self, const graph_value *value)
{
    value_state *s = base_map_get(&self->states, value);

    if (!s) {
        s = add_state(self, value);
        s->written = true;
    }
    return s;
}

/* Whether a root, or what it is a part of, was killed. */
static bool is_dead(const value_state *state)
{
    for (; state; state = state->whole)
        if (state->dead)
            return true;
    return false;
}

/* Whether a root was written, as a part of another one or by parts that are all of it. */
static bool is_written(const checker *self, const value_state *state)
{
    const ir_expr *bytes = ir_int(self->cx, 0);

    for (const value_state *s = state; s; s = s->whole)
        if (s->written)
            return true;
    for (int i = 0; i < state->parts.n; i++) {
        const value_state *part = state->parts.at[i];

        if (!is_written(self, part))
            return false;
        bytes = ir_add(self->cx, bytes, part->bytes);
    }
    return state->parts.n > 0 && holds(self, ir_eq(self->cx, bytes, state->bytes));
}

/* Whether two roots are the same, or one is inside of the other. */
static bool share_bytes(const value_state *left, const value_state *right)
{
    for (const value_state *s = left; s; s = s->whole)
        if (s == right)
            return true;
    for (const value_state *s = right; s; s = s->whole)
        if (s == left)
            return true;
    return false;
}

/* A tensor that may be used here. */
static value_state *live_tensor(checker *self, const graph_value *value)
{
    value_state *state = value ? state_of(self, value) : NULL;

    if (!state)
        broken(self, "an operand is left out");
    else if (state->is_storage)
        broken(self, base_format(self->cx, "'%s' is a storage, not a tensor", name_of(self, value)));
    else if (is_dead(state->root))
        broken(self, base_format(self->cx, "'%s' is used after its kill", name_of(self, state->root->value)));
    else
        return state;
    return NULL;
}

static bool can_be_read(checker *self, const graph_value *value)
{
    const value_state *s = live_tensor(self, value);

    return s && (is_written(self, s->root) ||
                 broken(self, base_format(self->cx, "'%s' is read before anything was written to it",
                                          name_of(self, value))));
}

/* Marks the tensor as written. */
static bool can_be_written(checker *self, const graph_value *value)
{
    value_state *state = live_tensor(self, value);

    if (!state)
        return false;
    if (!state->root->storage)
        return broken(self, base_format(self->cx, "'%s' is an input or a constant and cannot be written",
                                        name_of(self, value)));
    state->root->written = true;
    return true;
}

static bool check_device(const checker *self, const graph_value *value)
{
    if (value->device >= 0 && value->device <= self->m->devices.n)
        return true;
    return broken(self,
                  base_format(self->cx, "'%s' is on device %d; the module names %d devices beside the host",
                              name_of(self, value), value->device, self->m->devices.n));
}

/* ---- nodes ---- */

static bool check_counts(checker *self, int n_in, int n_out)
{
    if (self->node->n_in == n_in && self->node->n_out == n_out)
        return true;
    return broken(self, base_format(self->cx, "expected %d operands and %d results, found %d and %d", n_in,
                                    n_out, self->node->n_in, self->node->n_out));
}

/* The value of an attribute that is one extent; NULL: the node has none. */
static const ir_expr *extent_attribute(const graph_node *node, const char *name)
{
    const op_attr *a = graph_attribute(node, name);

    return a && a->kind == OP_ATTR_EXPRS && a->n == 1 ? a->exprs[0] : NULL;
}

/* A storage is bytes on a device; one with @output is memory that the caller hands in. */
static bool check_storage(checker *self)
{
    const graph_node *node = self->node;
    const op_attr *output = graph_attribute(node, "output");

    if (!check_counts(self, 0, 1))
        return false;
    const op_type *type = &node->out[0]->type;
    if (!base_dtype_same(type->dtype, BASE_U8) || type->n != 1)
        return broken(
            self, base_format(self->cx, "a storage is u8[bytes], found %s", op_type_text(self->cx, type)));
    if (output && (output->kind != OP_ATTR_INT || output->i < 0 || output->i >= self->f->body->outputs.n))
        return broken(self, "@output names no output of the function");
    value_state *state = add_state(self, node->out[0]);
    state->is_storage = true;
    state->storage = node;
    return check_device(self, node->out[0]);
}

/* Another shape of the same elements. */
static bool check_view(checker *self, value_state *of)
{
    const graph_value *value = self->node->out[0];

    if (!holds(self, ir_eq(self->cx, graph_type_bytes(self->cx, &value->type),
                           graph_type_bytes(self->cx, &of->value->type))))
        return broken(self, base_format(self->cx, "%s has another size than %s, which it views",
                                        op_type_text(self->cx, &value->type),
                                        op_type_text(self->cx, &of->value->type)));
    value_state *state = add_state(self, value);
    state->root = of->root;
    state->storage = of->storage;
    return true;
}

/* The tensor's bytes lie aligned in the `bytes` of its storage or whole, apart from the tensors `others`. */
static bool check_place(checker *self, const ir_expr *bytes, const base_vec *others, value_state *state)
{
    if (!holds(self, ir_eq(self->cx, ir_floormod(self->cx, state->begin, ir_int(self->cx, ALIGN)),
                           ir_int(self->cx, 0))))
        return broken(self, base_format(self->cx, "offset %s is not a multiple of %d",
                                        ir_expr_text(self->cx, state->begin), ALIGN));
    if (!holds(self, ir_le(self->cx, ir_add(self->cx, state->begin, state->bytes), bytes)) ||
        !holds(self, ir_ge(self->cx, state->begin, ir_int(self->cx, 0))))
        return broken(self, base_format(self->cx, "%s at offset %s does not fit into %s bytes",
                                        op_type_text(self->cx, &state->value->type),
                                        ir_expr_text(self->cx, state->begin), ir_expr_text(self->cx, bytes)));
    for (int i = 0; i < others->n; i++) {
        const value_state *other = others->at[i];

        if (other->storage == state->storage && !lie_apart(self, other, state))
            return broken(self, base_format(self->cx, "its bytes overlap those of '%s', which still lives",
                                            name_of(self, other->value)));
    }
    return true;
}

/* A part of a tensor of a storage: its bytes from an offset on, which no other part has. */
static bool check_part(checker *self, value_state *of, const ir_expr *offset)
{
    if (!of->storage)
        return broken(self, base_format(self->cx, "'%s' is an input or a constant, which has no parts",
                                        name_of(self, of->value)));
    value_state *state = add_state(self, self->node->out[0]);
    state->storage = of->storage;
    state->whole = of->root;
    state->begin = offset;
    if (!check_place(self, of->root->bytes, &of->root->parts, state))
        return false;
    base_push(self->cx, &of->root->parts, state);
    return true;
}

/* A tensor lies in a storage at an offset, or is a part or a view of a living tensor. */
static bool check_tensor(checker *self)
{
    if (!check_counts(self, 1, 1) || !self->node->in[0])
        return check_counts(self, 1, 1) && broken(self, "an operand is left out");
    value_state *of = state_of(self, self->node->in[0]);
    const ir_expr *offset = extent_attribute(self->node, "offset");
    const graph_value *value = self->node->out[0];

    if (value->device != of->value->device)
        return broken(self, base_format(self->cx, "it is on device %d, its storage on device %d",
                                        value->device, of->value->device));
    if (!of->is_storage)
        return live_tensor(self, of->value) && (offset ? check_part(self, of, offset) : check_view(self, of));
    if (!offset)
        return broken(self, "a tensor in a storage has @offset(exprs [bytes])");
    value_state *state = add_state(self, value);
    state->storage = of->storage;
    state->begin = offset;
    if (!check_place(self, of->value->type.dim[0], &self->live, state))
        return false;
    base_push(self->cx, &self->live, state);
    return true;
}

/* The type of a parameter, with the kernel's symbols at the values that the node gives them. */
static op_type param_type(const checker *self, const graph_kernel_type *kernel_type, int index,
                          const op_attr *dims)
{
    op_type t = kernel_type->param[index];
    const ir_expr **dim = base_array(self->cx, const ir_expr *, t.n);
    const ir_expr **fresh = base_array(self->cx, const ir_expr *, kernel_type->n_symbols);

    /* Through fresh variables: a value may be made of the symbols themselves. */
    for (int s = 0; s < kernel_type->n_symbols; s++)
        fresh[s] = ir_var(self->cx, "s", BASE_I64);
    for (int d = 0; d < t.n; d++) {
        dim[d] = t.dim[d];
        for (int s = 0; s < kernel_type->n_symbols; s++)
            dim[d] = ir_substitute(self->cx, dim[d], kernel_type->symbol[s], fresh[s]);
        for (int s = 0; s < kernel_type->n_symbols; s++)
            dim[d] = ir_substitute(self->cx, dim[d], fresh[s], dims->exprs[s]);
    }
    t.dim = dim;
    return t;
}

/* Kernels read operands that were written, and write operands that no other operand shares. */
static bool check_operand(checker *self, const graph_kernel_type *kernel_type, int index, const op_attr *dims)
{
    const graph_value *value = self->node->in[index];

    if (!value)
        return broken(self, "an operand is left out");
    if (value->device != self->node->in[0]->device)
        return broken(
            self,
            base_format(self->cx,
                        "operand %d is on device %d, operand 0 on device %d, and no device_copy lies between",
                        index, value->device, self->node->in[0]->device));
    if (!(index < kernel_type->n_reads ? can_be_read(self, value) : can_be_written(self, value)))
        return false;
    const op_type t = param_type(self, kernel_type, index, dims);
    if (!graph_same_type(self->facts, &t, &value->type))
        return broken(self, base_format(self->cx, "operand %d is %s, kernel '%s' takes %s there", index,
                                        op_type_text(self->cx, &value->type), kernel_type->name,
                                        op_type_text(self->cx, &t)));
    for (int j = 0; j < index && index >= kernel_type->n_reads; j++)
        if (share_bytes(state_of(self, self->node->in[j])->root, state_of(self, value)->root))
            return broken(self,
                          base_format(self->cx, "operand %d is written and is operand %d too", index, j));
    return true;
}

/* The kernel exists, and operands and symbols fit it in number and type. */
static bool check_invoke(checker *self)
{
    const graph_kernel_type *k = graph_kernel_named(self->m, self->node->callee);
    const op_attr *dims = graph_attribute(self->node, "dims");

    if (!k)
        return broken(self, base_format(self->cx, "there is no kernel '%s'", self->node->callee));
    if (self->node->n_out || self->node->n_in != k->n_params)
        return broken(self, base_format(self->cx, "kernel '%s' takes %d operands, found %d", k->name,
                                        k->n_params, self->node->n_in));
    if ((dims ? dims->n : 0) != k->n_symbols || (dims && dims->kind != OP_ATTR_EXPRS && dims->n))
        return broken(self, base_format(self->cx, "kernel '%s' has %d symbols, @dims gives %d", k->name,
                                        k->n_symbols, dims ? dims->n : 0));
    for (int i = 0; i < k->n_params; i++)
        if (!check_operand(self, k, i, dims))
            return false;
    return true;
}

static bool check_copy(checker *self)
{
    if (!check_counts(self, 2, 0))
        return false;
    const graph_value *from = self->node->in[0], *to = self->node->in[1];
    if (!can_be_read(self, from) || !can_be_written(self, to))
        return false;
    if (share_bytes(state_of(self, from)->root, state_of(self, to)->root))
        return broken(self, "it copies a tensor to itself");
    return graph_same_type(self->facts, &from->type, &to->type) ||
           broken(self, base_format(self->cx, "it copies %s to %s", op_type_text(self->cx, &from->type),
                                    op_type_text(self->cx, &to->type)));
}

/* The end of a tensor's life: from here on its bytes may be used again. */
static bool check_kill(checker *self)
{
    value_state *state = check_counts(self, 1, 0) ? live_tensor(self, self->node->in[0]) : NULL;

    if (!state)
        return false;
    if (state != state->root || state->whole || !state->storage || graph_attribute(state->storage, "output"))
        return broken(
            self,
            base_format(
                self->cx,
                "'%s' is not a tensor of a pool: views, parts, inputs, constants and outputs are not killed",
                name_of(self, state->value)));
    state->dead = true;
    for (int i = 0; i < self->live.n; i++)
        if (self->live.at[i] == state)
            self->live.at[i] = self->live.at[--self->live.n];
    return true;
}

/* Only the five kinds of planned nodes may stand in a planned function. */
static bool check_node(checker *self)
{
    switch (self->node->kind) {
    case GRAPH_ALLOC_STORAGE: return check_storage(self);
    case GRAPH_ALLOC_TENSOR: return check_tensor(self);
    case GRAPH_INVOKE: return check_invoke(self);
    case GRAPH_DEVICE_COPY: return check_copy(self);
    case GRAPH_KILL: return check_kill(self);
    case GRAPH_MAKE_TUPLE:
    case GRAPH_FIELD:
    case GRAPH_CONSTRUCT:
    case GRAPH_MATCH:
    case GRAPH_CLOSURE:
    case GRAPH_APPLY:
    case GRAPH_CHECK:
    case GRAPH_EXTENTS:
    case GRAPH_APPEND:
    case GRAPH_OP:
    case GRAPH_CALL:
    case GRAPH_IF:
    case GRAPH_LOOP:
    case GRAPH_SCAN:
    case GRAPH_GROUP:
    case GRAPH_PACK: break;
    }
    return broken(self, "this node has no place in a planned function");
}

/* ---- the end ---- */

static bool check_output(checker *self, int index)
{
    const graph_value *value = self->f->body->outputs.at[index];
    const value_state *state = live_tensor(self, value);
    const op_attr *which = state && state->storage ? graph_attribute(state->storage, "output") : NULL;

    if (!state)
        return false;
    if (!which || which->i != index)
        return broken(
            self, base_format(self->cx, "output %d does not lie in the storage of output %d", index, index));
    return can_be_read(self, value);
}

static bool check_end(checker *self)
{
    self->node = NULL;
    for (int i = 0; i < self->live.n; i++) {
        const value_state *state = self->live.at[i];

        if (!graph_attribute(state->storage, "output"))
            return broken(self, base_format(self->cx, "'%s' is never killed", name_of(self, state->value)));
    }
    for (int i = 0; i < self->f->body->outputs.n; i++)
        if (!check_output(self, i))
            return false;
    return true;
}

bool graph_is_planned(const graph_body *body)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        /* a copy with a result is placed, not planned (graph/place.h) */
        if (node->kind >= GRAPH_ALLOC_STORAGE && !(node->kind == GRAPH_DEVICE_COPY && node->n_out == 1))
            return true;
    }
    return false;
}

bool graph_verify_planned(const graph_module *module, const graph_function *function)
{
    checker c = {.cx = module->cx, .m = module, .f = function, .facts = graph_facts(module)};

    for (int i = 0; i < function->body->nodes.n; i++) {
        c.node = function->body->nodes.at[i];
        if (!check_node(&c))
            return false;
    }
    return check_end(&c);
}
