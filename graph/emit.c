/* graph/emit.c -- one te definition for a fused group, an operator, a packing, or a whole expression over
 * constants.
 *
 *     group { v1 = conv(x, w);  v2 = relu(v1) }
 *     =>  input x, input w;  stage "v1" role anchor = the body of conv's implementation;
 *         stage "v2" = max(v1, 0);  output "v2"
 *
 * Operators add stages to one definition in the order in which they run. The role tells schedules which stage
 * decides: the anchor, what stands before it (prologue), what takes up its result (epilogue).
 */
#include "graph/emit.h"

#include <math.h>

#include "ir/walk.h"

typedef struct {
    const graph_module *m;
    const target *t;
    te_def *def;
    base_map tensors; /* graph_value * -> te_tensor * */
} emitter;

/* ---- symbols and inputs ---- */

static void use_symbols(emitter *e, const op_type *t)
{
    for (int i = 0; i < t->n; i++)
        te_use_symbols(e->def, t->dim[i]);
}

/* Symbols that attributes alone mention: where a slice begins, what a tensor is filled with. */
static void use_attributes(emitter *e, const graph_node *node)
{
    for (int i = 0; i < node->n_attrs; i++)
        for (int k = 0; node->attr[i].kind == OP_ATTR_EXPRS && k < node->attr[i].n; k++)
            te_use_symbols(e->def, node->attr[i].exprs[k]);
    for (int i = 0; node->kind == GRAPH_GROUP && i < node->body[0]->nodes.n; i++)
        use_attributes(e, node->body[0]->nodes.at[i]);
}

/* Facts about symbols that the definition uses. */
static void use_facts(emitter *e)
{
    tec_context *cx = e->m->cx;

    for (int i = 0; i < e->m->facts.n; i++) {
        base_vec vars = {0};
        bool used = true;

        ir_free_vars(cx, e->m->facts.at[i], &vars);
        for (int j = 0; j < vars.n; j++) {
            bool known = false;

            for (int k = 0; k < e->def->symbols.n; k++)
                known = known || e->def->symbols.at[k] == vars.at[j];
            used = used && known;
        }
        if (used)
            te_fact(e->def, e->m->facts.at[i]);
    }
}

static bool add_input(emitter *e, const graph_value *v, int k)
{
    if (base_map_has(&e->tensors, v))
        return true;
    use_symbols(e, &v->type);
    /* Named by position: a trace that names it fits the same kernel of any model. */
    te_tensor *t = te_input(e->def, op_stage_name(e->def, base_format(e->m->cx, "in%d", k)), v->type.dtype,
                            v->type.dim, v->type.n);
    if (t)
        base_map_put(e->m->cx, &e->tensors, v, t);
    return t != NULL;
}

void graph_distinct_operands(tec_context *cx, const graph_node *node, base_vec *out)
{
    for (int k = 0; k < node->n_in; k++) {
        bool known = !node->in[k];

        for (int i = 0; i < out->n; i++)
            known = known || out->at[i] == node->in[k];
        if (!known)
            base_push(cx, out, node->in[k]);
    }
}

/* ---- nodes ---- */

static te_tensor *tensor_of(const emitter *e, const graph_value *v)
{
    return v ? base_map_get(&e->tensors, v) : NULL;
}

/* Adds the stages of one operator. The stages of its operands are there already, or are inputs. */
static bool emit_operator(emitter *e, const graph_node *node)
{
    tec_context *cx = e->m->cx;
    te_tensor **in = base_array(cx, te_tensor *, node->n_in),
              **out = base_array(cx, te_tensor *, node->n_out);
    op_call c;

    graph_call(e->m, node, e->t, &c);
    const op_impl *impl = node->impl ? node->impl : op_choose(&c);
    if (!impl)
        return false;
    for (int k = 0; k < node->n_in; k++)
        in[k] = tensor_of(e, node->in[k]);
    if (!op_emit(&c, impl, e->def, in, node->plain != NULL, out))
        return false;
    for (int k = 0; k < node->n_out; k++)
        base_map_put(cx, &e->tensors, node->out[k], out[k]);
    return true;
}

static bool emit_packing(emitter *e, const graph_node *node)
{
    te_tensor *out;
    op_call c;

    graph_call(e->m, node, e->t, &c);
    if (!node->impl->pack(&c, e->def, tensor_of(e, node->in[0]), &out))
        return false;
    base_map_put(e->m->cx, &e->tensors, node->out[0], out);
    return true;
}

static bool emit_node(emitter *e, const graph_node *node, ir_role role)
{
    e->def->role = role;
    base_set_where(e->m->cx, node->loc);
    if (node->kind == GRAPH_OP)
        return emit_operator(e, node);
    if (node->kind == GRAPH_PACK)
        return emit_packing(e, node);
    BASE_BUG(e->m->cx, "node '%s' cannot be one kernel", node->name);
    return false;
}

/* Before the anchor all is prologue, behind it epilogue; without one there are no roles. */
static bool emit_group(emitter *e, const graph_node *group)
{
    const graph_body *body = group->body[0];
    bool has_anchor = false, passed = false;

    for (int i = 0; i < body->nodes.n; i++)
        has_anchor = has_anchor || ((const graph_node *)body->nodes.at[i])->op->kind == OP_COMPLEX;
    for (int i = 0; i < body->inputs.n; i++)
        base_map_put(e->m->cx, &e->tensors, body->inputs.at[i], tensor_of(e, group->in[i]));
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        bool anchor = node->op->kind == OP_COMPLEX;
        ir_role role = anchor        ? IR_ROLE_ANCHOR
                       : !has_anchor ? IR_ROLE_NONE
                       : passed      ? IR_ROLE_EPILOGUE
                                     : IR_ROLE_PROLOGUE;

        if (!emit_node(e, node, role))
            return false;
        passed = passed || anchor;
    }
    for (int k = 0; k < group->n_out; k++)
        base_map_put(e->m->cx, &e->tensors, group->out[k], tensor_of(e, body->outputs.at[k]));
    return true;
}

/* A value that is an input too (an operator that is the identity) needs a stage of its own. */
static te_tensor *as_output(emitter *e, te_tensor *t)
{
    tec_context *cx = e->m->cx;

    if (!t || t->stage->kind != TE_INPUT)
        return t;
    const ir_expr **axis = base_array(cx, const ir_expr *, t->buffer->n);
    for (int i = 0; i < t->buffer->n; i++)
        axis[i] = te_axis(cx, base_format(cx, "a%d", i), t->buffer->shape[i]);
    return te_compute(e->def, op_stage_name(e->def, base_format(cx, "%s.copy", t->buffer->name)), axis,
                      t->buffer->n, te_read(t, axis, t->buffer->n));
}

static emitter open_definition(const graph_module *m, const char *name, const target *t)
{
    emitter e = {.m = m, .t = t};
    te_def scratch = {.cx = m->cx};

    e.def = te_def_new(m->cx, op_stage_name(&scratch, name));
    return e;
}

/* The definition of one node: its distinct operands become inputs, its outputs the definition's outputs.
 * Errors inside name the node, not the place in the model where the next one begins. */
te_def *graph_definition(const graph_module *m, const graph_node *node, const target *t)
{
    /* The definition itself stands where its node does. */
    base_set_where(m->cx, node->loc);
    emitter e = open_definition(m, node->name, t);
    base_vec operands = {0};

    graph_distinct_operands(m->cx, node, &operands);
    for (int k = 0; k < operands.n; k++)
        if (!add_input(&e, operands.at[k], k))
            return NULL;
    for (int k = 0; k < node->n_out; k++)
        use_symbols(&e, &node->out[k]->type);
    use_attributes(&e, node);
    use_facts(&e);
    ir_role role = node->kind == GRAPH_OP && node->op->kind == OP_COMPLEX ? IR_ROLE_ANCHOR : IR_ROLE_NONE;
    if (!(node->kind == GRAPH_GROUP ? emit_group(&e, node) : emit_node(&e, node, role)))
        return NULL;
    for (int k = 0; k < node->n_out; k++)
        te_output(e.def, as_output(&e, tensor_of(&e, node->out[k])));
    return base_failed(m->cx) ? NULL : e.def;
}

/* ---- constants ---- */

/* Constants are not made much larger than what they are made of, and not in more time than a model's user
 * would wait for. What is past these limits is computed when the model runs. */
enum { FOLD_ELEMENTS_LOG = 24, FOLD_WORK_LOG = 34 };

static bool element_count(const op_type *t, int64_t *total)
{
    int64_t n;

    *total = 1;
    for (int i = 0; i < t->n; i++)
        if (!ir_is_int(t->dim[i], &n) || n < 0 || __builtin_mul_overflow(*total, n, total))
            return false;
    return true;
}

/* Multiplications of a matrix product [m, k] * [k, n]: the root of mk * kn * mn. A convolution's are about
 * that; the work of other operators is their elements. */
static bool is_quick(const graph_node *node)
{
    double work = 1, most = 1;
    int64_t n;

    for (int k = 0; k < node->n_in + node->n_out; k++) {
        const graph_value *v = k < node->n_in ? node->in[k] : node->out[k - node->n_in];

        if (v && element_count(&v->type, &n)) {
            work *= (double)(n > 0 ? n : 1);
            most = (double)n > most ? (double)n : most;
        }
    }
    if (node->kind == GRAPH_OP && node->op->kind == OP_COMPLEX)
        most = sqrt(work) > most ? sqrt(work) : most;
    return most <= (double)((int64_t)1 << FOLD_WORK_LOG);
}

static bool is_small(const op_type *t, int64_t largest_leaf)
{
    int64_t n;

    return element_count(t, &n) && (n <= (int64_t)1 << FOLD_ELEMENTS_LOG || n / 2 <= largest_leaf);
}

/* Values of dimensions are operands too, though no edge shows them. */
static bool uses_symbols(tec_context *cx, const graph_node *node)
{
    base_vec symbols = {0};

    for (int i = 0; i < node->n_attrs; i++)
        for (int k = 0; node->attr[i].kind == OP_ATTR_EXPRS && k < node->attr[i].n; k++)
            ir_free_vars(cx, node->attr[i].exprs[k], &symbols);
    return symbols.n > 0;
}

/* Elements of the largest constant that v is made of; -1: it cannot be computed now. */
static int64_t largest_leaf(tec_context *cx, const graph_value *v, base_map *memo)
{
    const graph_node *node = v->node;
    int64_t largest = 0, n;

    if (v->constant)
        return element_count(&v->type, &n) ? n : 0;
    if (!node || (node->kind != GRAPH_OP && node->kind != GRAPH_PACK) || uses_symbols(cx, node))
        return -1;
    for (int k = 0; k < node->n_in; k++) {
        if (!node->in[k])
            continue;
        if (!graph_is_computable(cx, node->in[k], memo))
            return -1;
        n = (int64_t)(intptr_t)base_map_get(memo, node->in[k]) - 1;
        largest = n > largest ? n : largest;
    }
    for (int k = 0; k < node->n_out; k++)
        if (!is_small(&node->out[k]->type, largest))
            return -1;
    return is_quick(node) ? largest : -1;
}

/* The memo holds the elements of the largest leaf, plus one; -1: not computable. */
bool graph_is_computable(tec_context *cx, const graph_value *v, base_map *memo)
{
    intptr_t known = (intptr_t)base_map_get(memo, v);

    if (!known) {
        int64_t leaf = largest_leaf(cx, v, memo);

        known = leaf < 0 ? -1 : (intptr_t)leaf + 1;
        base_map_put(cx, memo, v, (void *)known);
    }
    return known > 0;
}

/* A constant that v is, or has become. */
static bool add_leaf(emitter *e, const graph_value *v, const graph_value *constant, base_vec *leaves)
{
    base_push(e->m->cx, leaves, constant);
    if (!add_input(e, constant, leaves->n))
        return false;
    base_map_put(e->m->cx, &e->tensors, v, tensor_of(e, constant));
    return true;
}

static bool emit_ancestors(emitter *e, const graph_value *v, const base_map *done, base_vec *leaves)
{
    if (!v || base_map_has(&e->tensors, v))
        return true;
    if (v->constant || base_map_has(done, v))
        return add_leaf(e, v, v->constant ? v : base_map_get(done, v), leaves);
    for (int k = 0; k < v->node->n_in; k++)
        if (!emit_ancestors(e, v->node->in[k], done, leaves))
            return false;
    return emit_node(e, v->node, IR_ROLE_NONE);
}

te_def *graph_constant_definition(const graph_module *m, const graph_value *v, const target *t,
                                  const base_map *done, base_vec *leaves)
{
    base_set_where(m->cx, v->node->loc);
    emitter e = open_definition(m, v->node->name, t);

    if (!emit_ancestors(&e, v, done, leaves))
        return NULL;
    te_output(e.def, as_output(&e, tensor_of(&e, v)));
    return base_failed(m->cx) ? NULL : e.def;
}

const te_def *graph_packing(const graph_module *m, const graph_node *node, const target *t, op_type *out)
{
    base_set_where(m->cx, node->loc);
    emitter e = open_definition(m, node->name, t);
    const graph_value *operand = node->in[node->impl->packs];
    te_tensor *packed;
    op_call c;

    graph_call(m, node, t, &c);
    if (!add_input(&e, operand, 0) || !node->impl->pack(&c, e.def, tensor_of(&e, operand), &packed))
        return NULL;
    *out = (op_type){packed->buffer->dtype, packed->buffer->n, packed->buffer->shape};
    return e.def;
}
