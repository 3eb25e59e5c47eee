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

/* What is known of a value. A view has the root of what it views. */
typedef struct value_state {
    const graph_value *value;
    struct value_state *root;     /* itself, unless it is a view */
    const graph_node *storage;    /* its alloc_storage; NULL: an input or a constant */
    const ir_expr *begin, *bytes; /* in the storage */
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

static bool broken(const checker *c, const char *what)
{
    const graph_node *node = c->node;

    base_fail(c->cx, TEC_INTERNAL, node ? node->loc : (base_loc){0}, "graph '%s', function '%s'%s%s%s: %s",
              c->m->name, c->f->name, node ? ", node '" : "", node ? node->name : "", node ? "'" : "", what);
    return false;
}

static const char *name_of(const checker *c, const graph_value *v)
{
    return v->name ? v->name : v->node && v->node->name[0] ? v->node->name : op_type_text(c->cx, &v->type);
}

/* ---- proofs ---- */

/* The condition with every symbol at `size`: 1, 0, or -1 where that does not decide it. */
static int decide_at(const checker *c, const ir_expr *condition, int64_t size)
{
    int64_t holds;

    for (int i = 0; i < c->m->symbols.n; i++)
        condition = ir_substitute(c->cx, condition, c->m->symbols.at[i], ir_int(c->cx, size));
    return ir_is_int(ir_simplify(c->facts, condition), &holds) ? holds != 0 : -1;
}

/* Whether the condition holds for all sizes. Where the prover gives up, three sizes are tried that obey the
 * facts. The runtime repeats the comparison with real sizes, so a mistake here is caught and not a
 * corruption. */
static bool holds(const checker *c, const ir_expr *condition)
{
    static const int64_t sizes[] = {1, 3, 64};

    if (ir_prove(c->facts, condition))
        return true;
    for (int i = 0; i < BASE_COUNT(sizes); i++) {
        bool possible = true;

        for (int k = 0; k < c->m->facts.n; k++)
            possible = possible && decide_at(c, c->m->facts.at[k], sizes[i]) != 0;
        if (possible && decide_at(c, condition, sizes[i]) != 1)
            return false;
    }
    return c->m->symbols.n > 0;
}

static bool lie_apart(const checker *c, const value_state *a, const value_state *b)
{
    return holds(c, ir_le(c->cx, ir_add(c->cx, a->begin, a->bytes), b->begin)) ||
           holds(c, ir_le(c->cx, ir_add(c->cx, b->begin, b->bytes), a->begin));
}

/* ---- values ---- */

static value_state *add_state(checker *c, const graph_value *v)
{
    value_state *s = base_new(c->cx, value_state);

    *s = (value_state){.value = v, .begin = ir_int(c->cx, 0), .bytes = graph_type_bytes(c->cx, &v->type)};
    s->root = s;
    base_map_put(c->cx, &c->states, v, s);
    return s;
}

/* Inputs and constants are there from the start. */
static value_state *state_of(checker *c, const graph_value *v)
{
    value_state *s = base_map_get(&c->states, v);

    if (!s) {
        s = add_state(c, v);
        s->written = true;
    }
    return s;
}

/* A tensor that may be used here. */
static value_state *live_tensor(checker *c, const graph_value *v)
{
    value_state *s = v ? state_of(c, v) : NULL;

    if (!s)
        broken(c, "an operand is left out");
    else if (s->is_storage)
        broken(c, base_format(c->cx, "'%s' is a storage, not a tensor", name_of(c, v)));
    else if (s->root->dead)
        broken(c, base_format(c->cx, "'%s' is used after its kill", name_of(c, s->root->value)));
    else
        return s;
    return NULL;
}

static bool can_be_read(checker *c, const graph_value *v)
{
    const value_state *s = live_tensor(c, v);

    return s &&
           (s->root->written ||
            broken(c, base_format(c->cx, "'%s' is read before anything was written to it", name_of(c, v))));
}

/* Marks the tensor as written. */
static bool can_be_written(checker *c, const graph_value *v)
{
    value_state *s = live_tensor(c, v);

    if (!s)
        return false;
    if (!s->root->storage)
        return broken(
            c, base_format(c->cx, "'%s' is an input or a constant and cannot be written", name_of(c, v)));
    s->root->written = true;
    return true;
}

static bool check_device(const checker *c, const graph_value *v)
{
    if (v->device >= 0 && v->device <= c->m->devices.n)
        return true;
    return broken(c, base_format(c->cx, "'%s' is on device %d; the module names %d devices beside the host",
                                 name_of(c, v), v->device, c->m->devices.n));
}

/* ---- nodes ---- */

static bool check_counts(checker *c, int n_in, int n_out)
{
    if (c->node->n_in == n_in && c->node->n_out == n_out)
        return true;
    return broken(c, base_format(c->cx, "expected %d operands and %d results, found %d and %d", n_in, n_out,
                                 c->node->n_in, c->node->n_out));
}

/* The value of an attribute that is one extent; NULL: the node has none. */
static const ir_expr *extent_attribute(const graph_node *node, const char *name)
{
    const op_attr *a = graph_attribute(node, name);

    return a && a->kind == OP_ATTR_EXPRS && a->n == 1 ? a->exprs[0] : NULL;
}

/* A storage is bytes on a device; one with @output is memory that the caller hands in. */
static bool check_storage(checker *c)
{
    const graph_node *node = c->node;
    const op_attr *output = graph_attribute(node, "output");

    if (!check_counts(c, 0, 1))
        return false;
    const op_type *t = &node->out[0]->type;
    if (!base_dtype_same(t->dtype, BASE_U8) || t->n != 1)
        return broken(c, base_format(c->cx, "a storage is u8[bytes], found %s", op_type_text(c->cx, t)));
    if (output && (output->kind != OP_ATTR_INT || output->i < 0 || output->i >= c->f->body->outputs.n))
        return broken(c, "@output names no output of the function");
    value_state *s = add_state(c, node->out[0]);
    s->is_storage = true;
    s->storage = node;
    return check_device(c, node->out[0]);
}

/* Another shape of the same elements. */
static bool check_view(checker *c, value_state *of)
{
    const graph_value *v = c->node->out[0];

    if (extent_attribute(c->node, "offset"))
        return broken(c, "a view of a tensor has no offset");
    if (!holds(c, ir_eq(c->cx, graph_type_bytes(c->cx, &v->type), graph_type_bytes(c->cx, &of->value->type))))
        return broken(c, base_format(c->cx, "%s has another size than %s, which it views",
                                     op_type_text(c->cx, &v->type), op_type_text(c->cx, &of->value->type)));
    value_state *s = add_state(c, v);
    s->root = of->root;
    s->storage = of->storage;
    return true;
}

/* The tensor's bytes lie in the storage, aligned, and apart from every tensor that still lives there. */
static bool check_place(checker *c, const value_state *storage, value_state *s)
{
    bool pooled = !graph_attribute(storage->storage, "output");

    if (pooled &&
        !holds(c, ir_eq(c->cx, ir_floormod(c->cx, s->begin, ir_int(c->cx, ALIGN)), ir_int(c->cx, 0))))
        return broken(
            c, base_format(c->cx, "offset %s is no multiple of %d", ir_expr_text(c->cx, s->begin), ALIGN));
    if (!holds(c, ir_le(c->cx, ir_add(c->cx, s->begin, s->bytes), storage->value->type.dim[0])) ||
        !holds(c, ir_ge(c->cx, s->begin, ir_int(c->cx, 0))))
        return broken(c, base_format(c->cx, "%s at offset %s does not fit into %s bytes",
                                     op_type_text(c->cx, &s->value->type), ir_expr_text(c->cx, s->begin),
                                     ir_expr_text(c->cx, storage->value->type.dim[0])));
    for (int i = 0; i < c->live.n; i++) {
        const value_state *other = c->live.at[i];

        if (other->storage == s->storage && !lie_apart(c, other, s))
            return broken(c, base_format(c->cx, "its bytes overlap those of '%s', which still lives",
                                         name_of(c, other->value)));
    }
    return true;
}

/* A tensor lies in a storage at an offset, or is a view of a living tensor. */
static bool check_tensor(checker *c)
{
    if (!check_counts(c, 1, 1) || !c->node->in[0])
        return check_counts(c, 1, 1) && broken(c, "an operand is left out");
    value_state *of = state_of(c, c->node->in[0]);
    const ir_expr *offset = extent_attribute(c->node, "offset");
    const graph_value *v = c->node->out[0];

    if (v->device != of->value->device)
        return broken(c, base_format(c->cx, "it is on device %d, its storage on device %d", v->device,
                                     of->value->device));
    if (!of->is_storage)
        return live_tensor(c, of->value) && check_view(c, of);
    if (!offset)
        return broken(c, "a tensor in a storage has @offset(exprs [bytes])");
    value_state *s = add_state(c, v);
    s->storage = of->storage;
    s->begin = offset;
    if (!check_place(c, of, s))
        return false;
    base_push(c->cx, &c->live, s);
    return true;
}

/* The type of a parameter, with the kernel's symbols at the values that the node gives them. */
static op_type param_type(const checker *c, const graph_kernel_type *k, int i, const op_attr *dims)
{
    op_type t = k->param[i];
    const ir_expr **dim = base_array(c->cx, const ir_expr *, t.n);
    const ir_expr **fresh = base_array(c->cx, const ir_expr *, k->n_symbols);

    /* Through fresh variables: a value may be made of the symbols themselves. */
    for (int s = 0; s < k->n_symbols; s++)
        fresh[s] = ir_var(c->cx, "s", BASE_I64);
    for (int d = 0; d < t.n; d++) {
        dim[d] = t.dim[d];
        for (int s = 0; s < k->n_symbols; s++)
            dim[d] = ir_substitute(c->cx, dim[d], k->symbol[s], fresh[s]);
        for (int s = 0; s < k->n_symbols; s++)
            dim[d] = ir_substitute(c->cx, dim[d], fresh[s], dims->exprs[s]);
    }
    t.dim = dim;
    return t;
}

/* Kernels read operands that were written, and write operands that no other operand shares. */
static bool check_operand(checker *c, const graph_kernel_type *k, int i, const op_attr *dims)
{
    const graph_value *v = c->node->in[i];

    if (!v)
        return broken(c, "an operand is left out");
    if (v->device != c->node->in[0]->device)
        return broken(
            c,
            base_format(c->cx,
                        "operand %d is on device %d, operand 0 on device %d, and no device_copy lies between",
                        i, v->device, c->node->in[0]->device));
    if (!(i < k->n_reads ? can_be_read(c, v) : can_be_written(c, v)))
        return false;
    const op_type t = param_type(c, k, i, dims);
    if (!graph_same_type(c->facts, &t, &v->type))
        return broken(c, base_format(c->cx, "operand %d is %s, kernel '%s' takes %s there", i,
                                     op_type_text(c->cx, &v->type), k->name, op_type_text(c->cx, &t)));
    for (int j = 0; j < i && i >= k->n_reads; j++)
        if (state_of(c, c->node->in[j])->root == state_of(c, v)->root)
            return broken(c, base_format(c->cx, "operand %d is written and is operand %d too", i, j));
    return true;
}

/* The kernel exists, and operands and symbols fit it in number and type. */
static bool check_invoke(checker *c)
{
    const graph_kernel_type *k = graph_kernel_named(c->m, c->node->callee);
    const op_attr *dims = graph_attribute(c->node, "dims");

    if (!k)
        return broken(c, base_format(c->cx, "there is no kernel '%s'", c->node->callee));
    if (c->node->n_out || c->node->n_in != k->n_params)
        return broken(c, base_format(c->cx, "kernel '%s' takes %d operands, found %d", k->name, k->n_params,
                                     c->node->n_in));
    if ((dims ? dims->n : 0) != k->n_symbols || (dims && dims->kind != OP_ATTR_EXPRS && dims->n))
        return broken(c, base_format(c->cx, "kernel '%s' has %d symbols, @dims gives %d", k->name,
                                     k->n_symbols, dims ? dims->n : 0));
    for (int i = 0; i < k->n_params; i++)
        if (!check_operand(c, k, i, dims))
            return false;
    return true;
}

static bool check_copy(checker *c)
{
    if (!check_counts(c, 2, 0))
        return false;
    const graph_value *from = c->node->in[0], *to = c->node->in[1];
    if (!can_be_read(c, from) || !can_be_written(c, to))
        return false;
    if (state_of(c, from)->root == state_of(c, to)->root)
        return broken(c, "it copies a tensor to itself");
    return graph_same_type(c->facts, &from->type, &to->type) ||
           broken(c, base_format(c->cx, "it copies %s to %s", op_type_text(c->cx, &from->type),
                                 op_type_text(c->cx, &to->type)));
}

/* The end of a tensor's life: from here on its bytes may be used again. */
static bool check_kill(checker *c)
{
    value_state *s = check_counts(c, 1, 0) ? live_tensor(c, c->node->in[0]) : NULL;

    if (!s)
        return false;
    if (s != s->root || !s->storage || graph_attribute(s->storage, "output"))
        return broken(
            c, base_format(c->cx,
                           "'%s' is no tensor of a pool: views, inputs, constants and outputs are not killed",
                           name_of(c, s->value)));
    s->dead = true;
    for (int i = 0; i < c->live.n; i++)
        if (c->live.at[i] == s)
            c->live.at[i] = c->live.at[--c->live.n];
    return true;
}

/* Only the five kinds of planned nodes may stand in a planned function. */
static bool check_node(checker *c)
{
    switch (c->node->kind) {
    case GRAPH_ALLOC_STORAGE: return check_storage(c);
    case GRAPH_ALLOC_TENSOR: return check_tensor(c);
    case GRAPH_INVOKE: return check_invoke(c);
    case GRAPH_DEVICE_COPY: return check_copy(c);
    case GRAPH_KILL: return check_kill(c);
    case GRAPH_MAKE_TUPLE:
    case GRAPH_FIELD:
    case GRAPH_CONSTRUCT:
    case GRAPH_MATCH:
    case GRAPH_CLOSURE:
    case GRAPH_APPLY:
    case GRAPH_CHECK:
    case GRAPH_EXTENTS:
    case GRAPH_OP:
    case GRAPH_CALL:
    case GRAPH_IF:
    case GRAPH_LOOP:
    case GRAPH_SCAN:
    case GRAPH_GROUP:
    case GRAPH_PACK: break;
    }
    return broken(c, "this node has no place in a planned function");
}

/* ---- the end ---- */

static bool check_output(checker *c, int i)
{
    const graph_value *v = c->f->body->outputs.at[i];
    const value_state *s = live_tensor(c, v);
    const op_attr *which = s && s->storage ? graph_attribute(s->storage, "output") : NULL;

    if (!s)
        return false;
    if (!which || which->i != i)
        return broken(c, base_format(c->cx, "output %d does not lie in the storage of output %d", i, i));
    return can_be_read(c, v);
}

static bool check_end(checker *c)
{
    c->node = NULL;
    for (int i = 0; i < c->live.n; i++) {
        const value_state *s = c->live.at[i];

        if (!graph_attribute(s->storage, "output"))
            return broken(c, base_format(c->cx, "'%s' is never killed", name_of(c, s->value)));
    }
    for (int i = 0; i < c->f->body->outputs.n; i++)
        if (!check_output(c, i))
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

bool graph_verify_planned(const graph_module *m, const graph_function *f)
{
    checker c = {.cx = m->cx, .m = m, .f = f, .facts = graph_facts(m)};

    for (int i = 0; i < f->body->nodes.n; i++) {
        c.node = f->body->nodes.at[i];
        if (!check_node(&c))
            return false;
    }
    return check_end(&c);
}
