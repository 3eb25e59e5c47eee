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

#include "base/limit.h"
#include "graph/bounded.h"
#include "graph/constant.h"
#include "ir/build.h"
#include "ir/walk.h"

typedef struct {
    const graph_module *m;
    const target *t;
    te_def *def;
    base_map tensors; /* graph_value * -> te_tensor * */
} emitter;

/* ---- symbols and inputs ---- */

static void use_symbols(emitter *self, const op_type *type)
{
    for (int i = 0; i < type->n; i++)
        te_use_symbols(self->def, type->dim[i]);
}

/* Symbols that attributes alone mention: where a slice begins, what a tensor is filled with; and those of
 * tensors inside of a group, whose extents a fact may equate with those of the operands. */
static void use_attributes(emitter *self, const graph_node *node)
{
    for (int k = 0; k < node->n_out; k++)
        use_symbols(self, &node->out[k]->type);
    for (int i = 0; i < node->n_attrs; i++)
        for (int k = 0; node->attr[i].kind == OP_ATTR_EXPRS && k < node->attr[i].n; k++)
            te_use_symbols(self->def, node->attr[i].exprs[k]);
    for (int i = 0; node->kind == GRAPH_GROUP && i < node->body[0]->nodes.n; i++)
        use_attributes(self, node->body[0]->nodes.at[i]);
}

/* Facts about symbols that the definition uses. */
static void use_facts(emitter *self)
{
    tec_context *cx = self->m->cx;

    for (int i = 0; i < self->m->facts.n; i++) {
        base_vec vars = {0};
        bool used = true;

        ir_free_vars(cx, self->m->facts.at[i], &vars);
        for (int j = 0; j < vars.n; j++) {
            bool known = false;

            for (int k = 0; k < self->def->symbols.n; k++)
                known = known || self->def->symbols.at[k] == vars.at[j];
            used = used && known;
        }
        if (used)
            te_fact(self->def, self->m->facts.at[i]);
    }
}

static bool add_input(emitter *self, const graph_value *value, int index)
{
    if (base_map_has(&self->tensors, value))
        return true;
    use_symbols(self, &value->type);
    /* Named by position: a trace that names it fits the same kernel of any model. */
    te_tensor *tensor = te_input(self->def, op_stage_name(self->def, base_format(self->m->cx, "in%d", index)),
                                 value->type.dtype, value->type.dim, value->type.n);
    if (tensor)
        base_map_put(self->m->cx, &self->tensors, value, tensor);
    return tensor != NULL;
}

static bool only_scalars_read(const graph_node *node, const graph_value *value);

/* A group that gives the value back as it is needs it in memory. */
static bool only_scalars_inside(const graph_node *group, const graph_value *input)
{
    const graph_body *body = group->body[0];

    for (int i = 0; i < body->nodes.n; i++)
        if (!only_scalars_read(body->nodes.at[i], input))
            return false;
    for (int i = 0; i < body->outputs.n; i++)
        if (body->outputs.at[i] == input)
            return false;
    return true;
}

/* Whether the node is element-wise, or does not read the value; for a group, whether that is true inside. */
static bool only_scalars_read(const graph_node *node, const graph_value *value)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] == value &&
            !(node->kind == GRAPH_GROUP ? only_scalars_inside(node, node->body[0]->inputs.at[k])
                                        : node->kind == GRAPH_OP && node->op->scalar))
            return false;
    return true;
}

/* A constant of one number becomes a number in the kernel, so that pow(x, 2) is seen to be a product. Nodes
 * with nothing else to read keep their operands: they are computed when the model is built. */
static bool is_inside(const graph_node *node, const graph_value *value)
{
    double number;
    bool others = false;

    if (!value->constant || !graph_constant_number(value->constant, &number))
        return false;
    for (int k = 0; k < node->n_in; k++)
        others = others || (node->in[k] && !node->in[k]->constant);
    return others && only_scalars_read(node, value);
}

void graph_distinct_operands(tec_context *cx, const graph_node *node, base_vec *out)
{
    for (int k = 0; k < node->n_in; k++) {
        bool known = !node->in[k] || is_inside(node, node->in[k]);

        for (int i = 0; i < out->n; i++)
            known = known || out->at[i] == node->in[k];
        if (!known)
            base_push(cx, out, node->in[k]);
    }
}

/* ---- nodes ---- */

static te_tensor *tensor_of(const emitter *self, const graph_value *value)
{
    return value ? base_map_get(&self->tensors, value) : NULL;
}

/* The numbers that stand in for operands without a tensor; the others are NULL. */
static const ir_expr *const *numbers_of(const emitter *self, const graph_node *node, te_tensor *const *in)
{
    const ir_expr **number = base_array(self->m->cx, const ir_expr *, node->n_in);
    double value;

    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] && !in[k] && graph_constant_number(node->in[k]->constant, &value))
            number[k] = ir_imm(self->m->cx, node->in[k]->type.dtype, value);
    return number;
}

/* Adds the stages of one operator. The stages of its operands are there already, or are inputs. */
static bool emit_operator(emitter *self, const graph_node *node)
{
    tec_context *cx = self->m->cx;
    te_tensor **in = base_array(cx, te_tensor *, node->n_in),
              **out = base_array(cx, te_tensor *, node->n_out);
    op_call c;

    graph_call(self->m, node, self->t, &c);
    const op_impl *impl = node->impl ? node->impl : op_choose(&c);
    if (!impl)
        return false;
    for (int k = 0; k < node->n_in; k++)
        in[k] = tensor_of(self, node->in[k]);
    if (node->op->scalar)
        c.number = numbers_of(self, node, in);
    if (!op_emit(&c, impl, self->def, in, node->plain != NULL, out))
        return false;
    for (int k = 0; k < node->n_out; k++)
        base_map_put(cx, &self->tensors, node->out[k], out[k]);
    return true;
}

static bool emit_packing(emitter *self, const graph_node *node)
{
    te_tensor *out;
    op_call c;

    graph_call(self->m, node, self->t, &c);
    if (!node->impl->pack(&c, self->def, tensor_of(self, node->in[0]), &out))
        return false;
    base_map_put(self->m->cx, &self->tensors, node->out[0], out);
    return true;
}

static bool emit_node(emitter *self, const graph_node *node, ir_role role)
{
    self->def->role = role;
    base_set_where(self->m->cx, node->loc);
    if (node->kind == GRAPH_OP)
        return emit_operator(self, node);
    if (node->kind == GRAPH_PACK)
        return emit_packing(self, node);
    BASE_BUG(self->m->cx, "node '%s' cannot be one kernel", node->name);
    return false;
}

/* Before the anchor all is prologue, behind it epilogue; without one there are no roles. */
static bool emit_group(emitter *self, const graph_node *group)
{
    const graph_body *body = group->body[0];
    bool has_anchor = false, passed = false;

    for (int i = 0; i < body->nodes.n; i++)
        has_anchor = has_anchor || ((const graph_node *)body->nodes.at[i])->op->kind == OP_COMPLEX;
    for (int i = 0; i < body->inputs.n; i++)
        base_map_put(self->m->cx, &self->tensors, body->inputs.at[i], tensor_of(self, group->in[i]));
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        bool anchor = node->op->kind == OP_COMPLEX;
        ir_role role = anchor        ? IR_ROLE_ANCHOR
                       : !has_anchor ? IR_ROLE_NONE
                       : passed      ? IR_ROLE_EPILOGUE
                                     : IR_ROLE_PROLOGUE;

        if (!emit_node(self, node, role))
            return false;
        passed = passed || anchor;
    }
    for (int k = 0; k < group->n_out; k++)
        base_map_put(self->m->cx, &self->tensors, group->out[k], tensor_of(self, body->outputs.at[k]));
    return true;
}

/* A value that is an input too (an operator that is the identity) needs a stage of its own. */
static te_tensor *as_output(emitter *self, te_tensor *tensor)
{
    tec_context *cx = self->m->cx;

    if (!tensor || tensor->stage->kind != TE_INPUT)
        return tensor;
    const ir_expr **axis = base_array(cx, const ir_expr *, tensor->buffer->n);
    for (int i = 0; i < tensor->buffer->n; i++)
        axis[i] = te_axis(cx, base_format(cx, "a%d", i), tensor->buffer->shape[i]);
    return te_compute(self->def, op_stage_name(self->def, base_format(cx, "%s.copy", tensor->buffer->name)),
                      axis, tensor->buffer->n, te_read(tensor, axis, tensor->buffer->n));
}

static emitter open_definition(const graph_module *module, const char *name, const target *machine)
{
    emitter e = {.m = module, .t = machine};
    te_def scratch = {.cx = module->cx};

    e.def = te_def_new(module->cx, op_stage_name(&scratch, name));
    return e;
}

/* The definition of one node: its distinct operands become inputs, its outputs the definition's outputs.
 * Errors inside name the node, not the place in the model where the next one begins. */
static te_def *define(const graph_module *module, const graph_node *node, const target *machine)
{
    /* The definition itself stands where its node does. */
    base_set_where(module->cx, node->loc);
    emitter e = open_definition(module, node->name, machine);
    base_vec operands = {0};

    graph_distinct_operands(module->cx, node, &operands);
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
    return base_failed(module->cx) ? NULL : e.def;
}

graph_kernel_def graph_define_kernel(const graph_module *module, const graph_node *node,
                                     const target *machine)
{
    graph_bounded bounded = graph_bounded_extents(module, node);
    te_def *def = define(module, bounded.node, machine);
    const ir_expr **dims = base_array(module->cx, const ir_expr *, def ? def->symbols.n : 0);

    for (int i = 0; def && i < def->symbols.n; i++)
        dims[i] = graph_bounded_value(&bounded, def->symbols.at[i]);
    return (graph_kernel_def){def, bounded.node, dims};
}

/* Types in the order of the definition's parameters. */
graph_kernel_type graph_kernel_type_of(tec_context *cx, const graph_kernel_def *kernel)
{
    const graph_node *node = kernel->node;
    base_vec reads = {0};

    graph_distinct_operands(cx, node, &reads);
    op_type *type = base_array(cx, op_type, reads.n + node->n_out);
    for (int i = 0; i < reads.n; i++)
        type[i] = ((const graph_value *)reads.at[i])->type;
    for (int i = 0; i < node->n_out; i++)
        type[reads.n + i] = node->out[i]->type;
    return (graph_kernel_type){.n_symbols = kernel->def->symbols.n,
                               .n_params = reads.n + node->n_out,
                               .n_reads = reads.n,
                               .symbol = (const ir_expr *const *)kernel->def->symbols.at,
                               .param = type};
}

te_def *graph_definition(const graph_module *module, const graph_node *node, const target *machine)
{
    return graph_define_kernel(module, node, machine).def;
}

/* ---- constants ---- */

static bool element_count(const op_type *type, int64_t *total)
{
    int64_t n;

    *total = 1;
    for (int i = 0; i < type->n; i++)
        if (!ir_is_int(type->dim[i], &n) || n < 0 || __builtin_mul_overflow(*total, n, total))
            return false;
    return true;
}

/* Multiplications of a matrix product [m, k] * [k, n]: the root of mk * kn * mn. A convolution's are about
 * that; the work of other operators is their elements. */
static bool is_quick(const tec_context *cx, const graph_node *node)
{
    double work = 1, most = 1;
    int64_t n;

    for (int k = 0; k < node->n_in + node->n_out; k++) {
        const graph_value *value = k < node->n_in ? node->in[k] : node->out[k - node->n_in];

        if (value && element_count(&value->type, &n)) {
            work *= (double)(n > 0 ? n : 1);
            most = (double)n > most ? (double)n : most;
        }
    }
    if (node->kind == GRAPH_OP && node->op->kind == OP_COMPLEX)
        most = sqrt(work) > most ? sqrt(work) : most;
    return most <= (double)base_limit(cx, BASE_LIMIT_fold_work);
}

/* Constants are not made much larger than what they are made of, and not in more time than a model's user
 * would wait for. What is past the limits fold-elements and fold-work is computed when the model runs. */
static bool is_small(const tec_context *cx, const op_type *type, int64_t largest_leaf)
{
    int64_t n;

    return element_count(type, &n) &&
           (n <= base_limit(cx, BASE_LIMIT_fold_elements) || n / 2 <= largest_leaf);
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

/* Elements of the largest constant that value is made of; -1: it cannot be computed now. */
static int64_t largest_leaf(tec_context *cx, const graph_value *value, base_map *memo)
{
    const graph_node *node = value->node;
    int64_t largest = 0, n;

    if (value->constant)
        return element_count(&value->type, &n) ? n : 0;
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
        if (!is_small(cx, &node->out[k]->type, largest))
            return -1;
    return is_quick(cx, node) ? largest : -1;
}

/* The memo holds the elements of the largest leaf, plus one; -1: not computable. */
bool graph_is_computable(tec_context *cx, const graph_value *value, base_map *memo)
{
    intptr_t known = (intptr_t)base_map_get(memo, value);

    if (!known) {
        int64_t leaf = largest_leaf(cx, value, memo);

        known = leaf < 0 ? -1 : (intptr_t)leaf + 1;
        base_map_put(cx, memo, value, (void *)known);
    }
    return known > 0;
}

/* A constant that value is, or has become. */
static bool add_leaf(emitter *self, const graph_value *value, const graph_value *constant, base_vec *leaves)
{
    base_push(self->m->cx, leaves, constant);
    if (!add_input(self, constant, leaves->n))
        return false;
    base_map_put(self->m->cx, &self->tensors, value, tensor_of(self, constant));
    return true;
}

static bool emit_ancestors(emitter *self, const graph_value *value, const base_map *done, base_vec *leaves)
{
    if (!value || base_map_has(&self->tensors, value))
        return true;
    if (value->constant || base_map_has(done, value))
        return add_leaf(self, value, value->constant ? value : base_map_get(done, value), leaves);
    for (int k = 0; k < value->node->n_in; k++)
        if (!emit_ancestors(self, value->node->in[k], done, leaves))
            return false;
    return emit_node(self, value->node, IR_ROLE_NONE);
}

te_def *graph_constant_definition(const graph_module *module, const graph_value *value, const target *machine,
                                  const base_map *done, base_vec *leaves)
{
    base_set_where(module->cx, value->node->loc);
    emitter e = open_definition(module, value->node->name, machine);

    if (!emit_ancestors(&e, value, done, leaves))
        return NULL;
    te_output(e.def, as_output(&e, tensor_of(&e, value)));
    return base_failed(module->cx) ? NULL : e.def;
}

/* The definition that packs the constant operand of a node as its implementation wants it, and the packed
 * type. */
const te_def *graph_packing(const graph_module *module, const graph_node *node, const target *machine,
                            op_type *out)
{
    base_set_where(module->cx, node->loc);
    emitter e = open_definition(module, node->name, machine);
    const graph_value *operand = node->in[node->impl->packs];
    te_tensor *packed;
    op_call c;

    graph_call(module, node, machine, &c);
    if (!add_input(&e, operand, 0) || !node->impl->pack(&c, e.def, tensor_of(&e, operand), &packed))
        return NULL;
    *out = (op_type){packed->buffer->dtype, packed->buffer->n, packed->buffer->shape};
    return e.def;
}
