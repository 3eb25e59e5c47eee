/* graph/text.c -- graph modules as text. Values get their numbers in the order in which the text makes
 * them.
 */
#include "graph/text.h"

#include <stdlib.h>
#include <string.h>

#include "graph/constant.h"
#include "graph/type.h"
#include "ir/text.h"

typedef struct {
    tec_context *cx;
    const graph_module *m;
    base_text out;
    base_map ids; /* graph_value * -> number + 1 */
    int n, indent;
    unsigned flags;
} printer;

static const char *quoted(printer *self, const char *s)
{
    return ir_expr_text(self->cx, ir_string(self->cx, s ? s : ""));
}

static void put_indent(printer *self)
{
    for (int i = 0; i < self->indent; i++)
        base_add(self->cx, &self->out, "  ");
}

/* ---- values ---- */

static void put_type(printer *self, const op_type *type)
{
    base_add(self->cx, &self->out, op_type_text(self->cx, type));
}

static void put_operand(printer *self, const graph_value *value)
{
    intptr_t id = value ? (intptr_t)base_map_get(&self->ids, value) : 0;

    if (!value)
        base_add(self->cx, &self->out, "_");
    else if (id)
        base_addf(self->cx, &self->out, "v%d", (int)id - 1);
    else
        /* a broken graph: the text is for the one who looks for the reason */
        base_addf(self->cx, &self->out, "unknown");
}

/* v3 "name": f32[n, 2] device 1 */
static void put_new_value(printer *self, const graph_value *value)
{
    base_map_put(self->cx, &self->ids, value, (void *)(intptr_t)(++self->n));
    put_operand(self, value);
    if (value->name)
        base_addf(self->cx, &self->out, " %s", quoted(self, value->name));
    graph_type t = graph_type_of(value);
    base_addf(self->cx, &self->out, ": %s", graph_type_text(self->cx, &t));
    if (value->device)
        base_addf(self->cx, &self->out, " device %d", value->device);
}

static void put_operands(printer *self, graph_value *const *value, int n)
{
    base_add(self->cx, &self->out, "(");
    for (int k = 0; k < n; k++) {
        base_add(self->cx, &self->out, k ? ", " : "");
        put_operand(self, value[k]);
    }
    base_add(self->cx, &self->out, ")");
}

/* Large constants are written as a hash of their data, unless the full text is asked for. */
static void put_constant(printer *self, const graph_value *value)
{
    int64_t n = graph_constant_count(value->constant);

    put_indent(self);
    base_add(self->cx, &self->out, "constant ");
    put_new_value(self, value);
    if (n > GRAPH_TEXT_SMALL && !(self->flags & GRAPH_TEXT_FULL)) {
        base_addf(self->cx, &self->out, " = hash \"%016llx\"\n",
                  (unsigned long long)graph_constant_hash(value->constant));
        return;
    }
    base_add(self->cx, &self->out, " = [");
    for (int64_t i = 0; i < n; i++)
        base_addf(self->cx, &self->out, "%s%s", i ? ", " : "",
                  graph_element_text(self->cx, value->constant, i));
    base_add(self->cx, &self->out, "]\n");
}

/* ---- nodes ---- */

/* Lists of floats and of expressions name their kind, since [1, 2] alone is a list of integers. */
static void put_list(printer *self, const op_attr *attr)
{
    base_add(self->cx, &self->out,
             attr->kind == OP_ATTR_INTS     ? "["
             : attr->kind == OP_ATTR_FLOATS ? "floats ["
                                            : "exprs [");
    for (int i = 0; i < attr->n; i++) {
        base_add(self->cx, &self->out, i ? ", " : "");
        if (attr->kind == OP_ATTR_INTS)
            base_addf(self->cx, &self->out, "%lld", (long long)attr->ints[i]);
        else
            base_add(self->cx, &self->out,
                     ir_expr_text(self->cx, attr->kind == OP_ATTR_FLOATS
                                                ? ir_imm(self->cx, BASE_F64, attr->floats[i])
                                                : attr->exprs[i]));
    }
    base_add(self->cx, &self->out, "]");
}

/* Writes an attribute as ` @name(value)`, in the form that the parser reads. */
static void put_attribute(printer *self, const op_attr *attr)
{
    base_addf(self->cx, &self->out, " @%s(", attr->name);
    switch (attr->kind) {
    case OP_ATTR_INT: base_addf(self->cx, &self->out, "%lld", (long long)attr->i); break;
    case OP_ATTR_FLOAT:
        base_add(self->cx, &self->out, ir_expr_text(self->cx, ir_imm(self->cx, BASE_F64, attr->f)));
        break;
    case OP_ATTR_STRING: base_add(self->cx, &self->out, quoted(self, attr->string)); break;
    case OP_ATTR_DTYPE:
        base_addf(self->cx, &self->out, "dtype %s", base_dtype_text(self->cx, attr->dtype));
        break;
    case OP_ATTR_INTS:
    case OP_ATTR_FLOATS:
    case OP_ATTR_EXPRS: put_list(self, attr); break;
    }
    base_add(self->cx, &self->out, ")");
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const op_attr *const *)a)->name, (*(const op_attr *const *)b)->name);
}

const char *graph_attributes_text(tec_context *cx, const op_attr *attr, int count)
{
    printer p = {.cx = cx};
    const op_attr **sorted = base_array(cx, const op_attr *, count);

    for (int i = 0; i < count; i++)
        sorted[i] = &attr[i];
    qsort(sorted, (size_t)count, sizeof(*sorted), by_name);
    for (int i = 0; i < count; i++)
        put_attribute(&p, sorted[i]);
    return base_text_str(cx, &p.out);
}

/* The word of a kind, which the parser looks for in the same table. */
const char *graph_kind_text(graph_node_kind kind)
{
    static const char *const words[GRAPH_N_KINDS] = {
        [GRAPH_OP] = "op",
        [GRAPH_CALL] = "call",
        [GRAPH_IF] = "if",
        [GRAPH_LOOP] = "loop",
        [GRAPH_SCAN] = "scan",
        [GRAPH_GROUP] = "group",
        [GRAPH_PACK] = "pack",
        [GRAPH_MAKE_TUPLE] = "tuple",
        [GRAPH_FIELD] = "field",
        [GRAPH_CONSTRUCT] = "construct",
        [GRAPH_MATCH] = "match",
        [GRAPH_CLOSURE] = "closure",
        [GRAPH_APPLY] = "apply",
        [GRAPH_CHECK] = "check",
        [GRAPH_EXTENTS] = "extents",
        [GRAPH_ALLOC_STORAGE] = "alloc_storage",
        [GRAPH_ALLOC_TENSOR] = "alloc_tensor",
        [GRAPH_INVOKE] = "invoke",
        [GRAPH_APPEND] = "append",
        [GRAPH_DEVICE_COPY] = "device_copy",
        [GRAPH_KILL] = "kill",
    };

    return words[kind];
}

/* What a node does, before its name: the kind, and the operator or the function. */
static void put_kind(printer *self, const graph_node *node)
{
    base_addf(self->cx, &self->out, "%s ", graph_kind_text(node->kind));
    if (node->kind == GRAPH_OP || node->kind == GRAPH_PACK)
        base_addf(self->cx, &self->out, "%s ", (node->kind == GRAPH_OP ? node : node->plain)->op->name);
    else if (node->callee)
        base_addf(self->cx, &self->out, "%s ", quoted(self, node->callee));
}

/* The types of the operator as it was before an operand was packed. */
static void put_plain(printer *self, const graph_node *plain)
{
    base_add(self->cx, &self->out, " plain(");
    for (int k = 0; k < plain->n_in; k++) {
        base_add(self->cx, &self->out, k ? ", " : "");
        if (plain->in[k])
            put_type(self, &plain->in[k]->type);
        else
            base_add(self->cx, &self->out, "_");
    }
    base_add(self->cx, &self->out, ")");
}

static void put_fact(printer *self, const ir_expr *fact)
{
    const char *meaning = base_map_get(self->m->meanings, fact);

    base_addf(self->cx, &self->out, "fact %s", ir_expr_text(self->cx, fact));
    base_addf(self->cx, &self->out, meaning ? " %s\n" : "\n", meaning ? quoted(self, meaning) : "");
}

static void put_scope(printer *self, const base_vec *symbols, const base_vec *facts)
{
    for (int i = 0; i < symbols->n; i++) {
        if (i == 0)
            put_indent(self);
        base_addf(self->cx, &self->out, "%s%s%s", i ? ", " : "symbols ",
                  ((const ir_expr *)symbols->at[i])->var.name, i + 1 < symbols->n ? "" : "\n");
    }
    for (int i = 0; i < facts->n; i++) {
        put_indent(self);
        put_fact(self, facts->at[i]);
    }
}

static void put_lines(printer *self, const graph_body *body);

/* The right side is written first: numbers are given to values in the order of use, operands before results.
 */
static void put_node(printer *self, const graph_node *node)
{
    const graph_node *with_attrs = node->kind == GRAPH_PACK ? node->plain : node;

    put_indent(self);
    base_text before = self->out;
    self->out = (base_text){0};
    put_kind(self, node);
    base_add(self->cx, &self->out, quoted(self, node->name));
    put_operands(self, node->in, node->n_in);
    if (node->plain)
        put_plain(self, node->plain);
    for (int k = 0; k < with_attrs->n_attrs; k++)
        put_attribute(self, &with_attrs->attr[k]);
    if (node->impl && node->kind != GRAPH_GROUP)
        base_addf(self->cx, &self->out, " impl %s", quoted(self, node->impl->name));
    for (int k = 0; k < node->n_bodies; k++) {
        base_add(self->cx, &self->out, " {\n");
        self->indent++;
        put_scope(self, &node->body[k]->symbols, &node->body[k]->facts);
        put_lines(self, node->body[k]);
        self->indent--;
        put_indent(self);
        base_add(self->cx, &self->out, "}");
    }
    base_text what = self->out;
    self->out = before;
    for (int k = 0; k < node->n_out; k++) {
        base_add(self->cx, &self->out, k ? ", " : "");
        put_new_value(self, node->out[k]);
    }
    base_addf(self->cx, &self->out, "%s%s\n", node->n_out ? " = " : "", base_text_str(self->cx, &what));
}

/* Inputs, nodes and outputs; only functions name their outputs. */
static void put_lines(printer *self, const graph_body *body)
{
    for (int i = 0; i < body->inputs.n; i++) {
        put_indent(self);
        base_add(self->cx, &self->out, "input ");
        put_new_value(self, body->inputs.at[i]);
        base_add(self->cx, &self->out, "\n");
    }
    for (int i = 0; i < body->nodes.n; i++)
        put_node(self, body->nodes.at[i]);
    for (int i = 0; i < body->outputs.n; i++) {
        put_indent(self);
        base_add(self->cx, &self->out, "output ");
        if (i < body->output_names.n)
            base_addf(self->cx, &self->out, "%s ", quoted(self, body->output_names.at[i]));
        put_operand(self, body->outputs.at[i]);
        base_add(self->cx, &self->out, "\n");
    }
}

static void put_function(printer *self, const graph_function *function)
{
    base_vec constants = {0};

    base_addf(self->cx, &self->out, "  function %s {\n", quoted(self, function->name));
    self->indent = 2;
    put_scope(self, &function->body->symbols, &function->body->facts);
    graph_collect_constants(self->cx, function->body, &constants);
    for (int i = 0; i < constants.n; i++)
        if (!base_map_has(&self->ids, constants.at[i]))
            put_constant(self, constants.at[i]);
    put_lines(self, function->body);
    base_add(self->cx, &self->out, "  }\n");
}

static void put_types(printer *self, const op_type *type, int n)
{
    base_add(self->cx, &self->out, "(");
    for (int i = 0; i < n; i++) {
        base_add(self->cx, &self->out, i ? ", " : "");
        put_type(self, &type[i]);
    }
    base_add(self->cx, &self->out, ")");
}

/* kernel "matmul" over n (f32[n, 64], f32[64, 10]) -> (f32[n, 10]) */
static void put_kernel(printer *self, const graph_kernel_type *kernel_type)
{
    base_addf(self->cx, &self->out, "  kernel %s", quoted(self, kernel_type->name));
    for (int i = 0; i < kernel_type->n_symbols; i++)
        base_addf(self->cx, &self->out, "%s%s", i ? ", " : " over ", kernel_type->symbol[i]->var.name);
    base_add(self->cx, &self->out, " ");
    put_types(self, kernel_type->param, kernel_type->n_reads);
    base_add(self->cx, &self->out, " -> ");
    put_types(self, kernel_type->param + kernel_type->n_reads, kernel_type->n_params - kernel_type->n_reads);
    base_add(self->cx, &self->out, "\n");
}

/* data "Tree" {
 *   case "Leaf" over k (f32[k])
 * } */
static void put_data(printer *self, const graph_data *data)
{
    base_addf(self->cx, &self->out, "  data %s {\n", quoted(self, data->name));
    for (int i = 0; i < data->cases.n; i++) {
        const graph_case *c = data->cases.at[i];
        graph_type fields = graph_tuple_type(self->cx, c->field, c->n);

        base_addf(self->cx, &self->out, "    case %s", quoted(self, c->name));
        for (int k = 0; k < c->symbols.n; k++)
            base_addf(self->cx, &self->out, "%s%s", k ? ", " : " over ",
                      ((const ir_expr *)c->symbols.at[k])->var.name);
        base_addf(self->cx, &self->out, " %s\n", graph_type_text(self->cx, &fields));
    }
    base_add(self->cx, &self->out, "  }\n");
}

/* devices "opencl", "opencl" */
static void put_devices(printer *self, const base_vec *devices)
{
    for (int i = 0; i < devices->n; i++)
        base_addf(self->cx, &self->out, "%s%s%s", i ? ", " : "  devices ", quoted(self, devices->at[i]),
                  i + 1 < devices->n ? "" : "\n");
}

/* The module as graph/parse.c reads it. */
const char *graph_text(tec_context *cx, const graph_module *module, unsigned flags)
{
    printer p = {.cx = cx, .m = module, .flags = flags};

    if (!module)
        return NULL;
    base_addf(cx, &p.out, "graph %s {\n", quoted(&p, module->name));
    p.indent = 1;
    put_devices(&p, &module->devices);
    put_scope(&p, &module->symbols, &module->facts);
    for (int i = 0; i < module->data.n; i++)
        put_data(&p, module->data.at[i]);
    for (int i = 0; i < module->kernels.n; i++)
        put_kernel(&p, module->kernels.at[i]);
    for (int i = 0; i < module->functions.n; i++)
        put_function(&p, module->functions.at[i]);
    base_add(cx, &p.out, "}\n");
    return base_text_str(cx, &p.out);
}
