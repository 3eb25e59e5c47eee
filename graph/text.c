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
    base_text out;
    base_map ids; /* graph_value * -> number + 1 */
    int n, indent;
    unsigned flags;
} printer;

static const char *quoted(printer *p, const char *s)
{
    return ir_expr_text(p->cx, ir_string(p->cx, s ? s : ""));
}

static void put_indent(printer *p)
{
    for (int i = 0; i < p->indent; i++)
        base_add(p->cx, &p->out, "  ");
}

/* ---- values ---- */

static void put_type(printer *p, const op_type *t)
{
    base_add(p->cx, &p->out, op_type_text(p->cx, t));
}

static void put_operand(printer *p, const graph_value *v)
{
    intptr_t id = v ? (intptr_t)base_map_get(&p->ids, v) : 0;

    if (!v)
        base_add(p->cx, &p->out, "_");
    else if (id)
        base_addf(p->cx, &p->out, "v%d", (int)id - 1);
    else
        /* a broken graph: the text is for the one who looks for the reason */
        base_addf(p->cx, &p->out, "unknown");
}

/* v3 "name": f32[n, 2] device 1 */
static void put_new_value(printer *p, const graph_value *v)
{
    base_map_put(p->cx, &p->ids, v, (void *)(intptr_t)(++p->n));
    put_operand(p, v);
    if (v->name)
        base_addf(p->cx, &p->out, " %s", quoted(p, v->name));
    graph_type t = graph_type_of(v);
    base_addf(p->cx, &p->out, ": %s", graph_type_text(p->cx, &t));
    if (v->device)
        base_addf(p->cx, &p->out, " device %d", v->device);
}

static void put_operands(printer *p, graph_value *const *v, int n)
{
    base_add(p->cx, &p->out, "(");
    for (int k = 0; k < n; k++) {
        base_add(p->cx, &p->out, k ? ", " : "");
        put_operand(p, v[k]);
    }
    base_add(p->cx, &p->out, ")");
}

/* Large constants are written as a hash of their data, unless the full text is asked for. */
static void put_constant(printer *p, const graph_value *v)
{
    int64_t n = graph_constant_count(v->constant);

    put_indent(p);
    base_add(p->cx, &p->out, "constant ");
    put_new_value(p, v);
    if (n > GRAPH_TEXT_SMALL && !(p->flags & GRAPH_TEXT_FULL)) {
        base_addf(p->cx, &p->out, " = hash \"%016llx\"\n",
                  (unsigned long long)graph_constant_hash(v->constant));
        return;
    }
    base_add(p->cx, &p->out, " = [");
    for (int64_t i = 0; i < n; i++)
        base_addf(p->cx, &p->out, "%s%s", i ? ", " : "", graph_element_text(p->cx, v->constant, i));
    base_add(p->cx, &p->out, "]\n");
}

/* ---- nodes ---- */

/* Lists of floats and of expressions name their kind, since [1, 2] alone is a list of integers. */
static void put_list(printer *p, const op_attr *a)
{
    base_add(p->cx, &p->out,
             a->kind == OP_ATTR_INTS     ? "["
             : a->kind == OP_ATTR_FLOATS ? "floats ["
                                         : "exprs [");
    for (int i = 0; i < a->n; i++) {
        base_add(p->cx, &p->out, i ? ", " : "");
        if (a->kind == OP_ATTR_INTS)
            base_addf(p->cx, &p->out, "%lld", (long long)a->ints[i]);
        else
            base_add(p->cx, &p->out,
                     ir_expr_text(p->cx, a->kind == OP_ATTR_FLOATS ? ir_imm(p->cx, BASE_F64, a->floats[i])
                                                                   : a->exprs[i]));
    }
    base_add(p->cx, &p->out, "]");
}

static void put_attribute(printer *p, const op_attr *a)
{
    base_addf(p->cx, &p->out, " @%s(", a->name);
    switch (a->kind) {
    case OP_ATTR_INT: base_addf(p->cx, &p->out, "%lld", (long long)a->i); break;
    case OP_ATTR_FLOAT: base_add(p->cx, &p->out, ir_expr_text(p->cx, ir_imm(p->cx, BASE_F64, a->f))); break;
    case OP_ATTR_STRING: base_add(p->cx, &p->out, quoted(p, a->string)); break;
    case OP_ATTR_DTYPE: base_addf(p->cx, &p->out, "dtype %s", base_dtype_text(p->cx, a->dtype)); break;
    case OP_ATTR_INTS:
    case OP_ATTR_FLOATS:
    case OP_ATTR_EXPRS: put_list(p, a); break;
    }
    base_add(p->cx, &p->out, ")");
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const op_attr *const *)a)->name, (*(const op_attr *const *)b)->name);
}

const char *graph_attributes_text(tec_context *cx, const op_attr *attr, int n)
{
    printer p = {.cx = cx};
    const op_attr **sorted = base_array(cx, const op_attr *, n);

    for (int i = 0; i < n; i++)
        sorted[i] = &attr[i];
    qsort(sorted, (size_t)n, sizeof(*sorted), by_name);
    for (int i = 0; i < n; i++)
        put_attribute(&p, sorted[i]);
    return base_text_str(cx, &p.out);
}

/* What a node does, before its name: the kind, and the operator or the function. */
static void put_kind(printer *p, const graph_node *node)
{
    switch (node->kind) {
    case GRAPH_OP: base_addf(p->cx, &p->out, "op %s ", node->op->name); return;
    case GRAPH_PACK: base_addf(p->cx, &p->out, "pack %s ", node->plain->op->name); return;
    case GRAPH_CALL: base_addf(p->cx, &p->out, "call %s ", quoted(p, node->callee)); return;
    case GRAPH_IF: base_add(p->cx, &p->out, "if "); return;
    case GRAPH_LOOP: base_add(p->cx, &p->out, "loop "); return;
    case GRAPH_SCAN: base_add(p->cx, &p->out, "scan "); return;
    case GRAPH_GROUP: base_add(p->cx, &p->out, "group "); return;
    case GRAPH_MAKE_TUPLE: base_add(p->cx, &p->out, "tuple "); return;
    case GRAPH_FIELD: base_add(p->cx, &p->out, "field "); return;
    case GRAPH_CONSTRUCT: base_addf(p->cx, &p->out, "construct %s ", quoted(p, node->callee)); return;
    case GRAPH_MATCH: base_add(p->cx, &p->out, "match "); return;
    case GRAPH_CLOSURE: base_addf(p->cx, &p->out, "closure %s ", quoted(p, node->callee)); return;
    case GRAPH_APPLY: base_add(p->cx, &p->out, "apply "); return;
    case GRAPH_CHECK: base_add(p->cx, &p->out, "check "); return;
    case GRAPH_EXTENTS: base_add(p->cx, &p->out, "extents "); return;
    case GRAPH_ALLOC_STORAGE: base_add(p->cx, &p->out, "alloc_storage "); return;
    case GRAPH_ALLOC_TENSOR: base_add(p->cx, &p->out, "alloc_tensor "); return;
    case GRAPH_INVOKE: base_addf(p->cx, &p->out, "invoke %s ", quoted(p, node->callee)); return;
    case GRAPH_DEVICE_COPY: base_add(p->cx, &p->out, "device_copy "); return;
    case GRAPH_KILL: base_add(p->cx, &p->out, "kill "); return;
    }
}

/* The types of the operator as it was before an operand was packed. */
static void put_plain(printer *p, const graph_node *plain)
{
    base_add(p->cx, &p->out, " plain(");
    for (int k = 0; k < plain->n_in; k++) {
        base_add(p->cx, &p->out, k ? ", " : "");
        if (plain->in[k])
            put_type(p, &plain->in[k]->type);
        else
            base_add(p->cx, &p->out, "_");
    }
    base_add(p->cx, &p->out, ")");
}

static void put_scope(printer *p, const base_vec *symbols, const base_vec *facts)
{
    for (int i = 0; i < symbols->n; i++) {
        if (i == 0)
            put_indent(p);
        base_addf(p->cx, &p->out, "%s%s%s", i ? ", " : "symbols ",
                  ((const ir_expr *)symbols->at[i])->var.name, i + 1 < symbols->n ? "" : "\n");
    }
    for (int i = 0; i < facts->n; i++) {
        put_indent(p);
        base_addf(p->cx, &p->out, "fact %s\n", ir_expr_text(p->cx, facts->at[i]));
    }
}

static void put_lines(printer *p, const graph_body *body);

/* The right side is written first: numbers are given to values in the order of use, operands before results.
 */
static void put_node(printer *p, const graph_node *node)
{
    const graph_node *with_attrs = node->kind == GRAPH_PACK ? node->plain : node;

    put_indent(p);
    base_text before = p->out;
    p->out = (base_text){0};
    put_kind(p, node);
    base_add(p->cx, &p->out, quoted(p, node->name));
    put_operands(p, node->in, node->n_in);
    if (node->plain)
        put_plain(p, node->plain);
    for (int k = 0; k < with_attrs->n_attrs; k++)
        put_attribute(p, &with_attrs->attr[k]);
    if (node->impl && node->kind != GRAPH_GROUP)
        base_addf(p->cx, &p->out, " impl %s", quoted(p, node->impl->name));
    for (int k = 0; k < node->n_bodies; k++) {
        base_add(p->cx, &p->out, " {\n");
        p->indent++;
        put_scope(p, &node->body[k]->symbols, &node->body[k]->facts);
        put_lines(p, node->body[k]);
        p->indent--;
        put_indent(p);
        base_add(p->cx, &p->out, "}");
    }
    base_text what = p->out;
    p->out = before;
    for (int k = 0; k < node->n_out; k++) {
        base_add(p->cx, &p->out, k ? ", " : "");
        put_new_value(p, node->out[k]);
    }
    base_addf(p->cx, &p->out, "%s%s\n", node->n_out ? " = " : "", base_text_str(p->cx, &what));
}

/* Inputs, nodes and outputs; only functions name their outputs. */
static void put_lines(printer *p, const graph_body *body)
{
    for (int i = 0; i < body->inputs.n; i++) {
        put_indent(p);
        base_add(p->cx, &p->out, "input ");
        put_new_value(p, body->inputs.at[i]);
        base_add(p->cx, &p->out, "\n");
    }
    for (int i = 0; i < body->nodes.n; i++)
        put_node(p, body->nodes.at[i]);
    for (int i = 0; i < body->outputs.n; i++) {
        put_indent(p);
        base_add(p->cx, &p->out, "output ");
        if (i < body->output_names.n)
            base_addf(p->cx, &p->out, "%s ", quoted(p, body->output_names.at[i]));
        put_operand(p, body->outputs.at[i]);
        base_add(p->cx, &p->out, "\n");
    }
}

static void put_function(printer *p, const graph_function *f)
{
    base_vec constants = {0};

    base_addf(p->cx, &p->out, "  function %s {\n", quoted(p, f->name));
    p->indent = 2;
    put_scope(p, &f->body->symbols, &f->body->facts);
    graph_collect_constants(p->cx, f->body, &constants);
    for (int i = 0; i < constants.n; i++)
        if (!base_map_has(&p->ids, constants.at[i]))
            put_constant(p, constants.at[i]);
    put_lines(p, f->body);
    base_add(p->cx, &p->out, "  }\n");
}

static void put_types(printer *p, const op_type *t, int n)
{
    base_add(p->cx, &p->out, "(");
    for (int i = 0; i < n; i++) {
        base_add(p->cx, &p->out, i ? ", " : "");
        put_type(p, &t[i]);
    }
    base_add(p->cx, &p->out, ")");
}

/* kernel "matmul" over n (f32[n, 64], f32[64, 10]) -> (f32[n, 10]) */
static void put_kernel(printer *p, const graph_kernel_type *k)
{
    base_addf(p->cx, &p->out, "  kernel %s", quoted(p, k->name));
    for (int i = 0; i < k->n_symbols; i++)
        base_addf(p->cx, &p->out, "%s%s", i ? ", " : " over ", k->symbol[i]->var.name);
    base_add(p->cx, &p->out, " ");
    put_types(p, k->param, k->n_reads);
    base_add(p->cx, &p->out, " -> ");
    put_types(p, k->param + k->n_reads, k->n_params - k->n_reads);
    base_add(p->cx, &p->out, "\n");
}

/* data "Tree" {
 *   case "Leaf" over k (f32[k])
 * } */
static void put_data(printer *p, const graph_data *d)
{
    base_addf(p->cx, &p->out, "  data %s {\n", quoted(p, d->name));
    for (int i = 0; i < d->cases.n; i++) {
        const graph_case *c = d->cases.at[i];
        graph_type fields = graph_tuple_type(p->cx, c->field, c->n);

        base_addf(p->cx, &p->out, "    case %s", quoted(p, c->name));
        for (int k = 0; k < c->symbols.n; k++)
            base_addf(p->cx, &p->out, "%s%s", k ? ", " : " over ",
                      ((const ir_expr *)c->symbols.at[k])->var.name);
        base_addf(p->cx, &p->out, " %s\n", graph_type_text(p->cx, &fields));
    }
    base_add(p->cx, &p->out, "  }\n");
}

/* devices "opencl", "opencl" */
static void put_devices(printer *p, const base_vec *devices)
{
    for (int i = 0; i < devices->n; i++)
        base_addf(p->cx, &p->out, "%s%s%s", i ? ", " : "  devices ", quoted(p, devices->at[i]),
                  i + 1 < devices->n ? "" : "\n");
}

/* The module as graph/parse.c reads it. */
const char *graph_text(tec_context *cx, const graph_module *m, unsigned flags)
{
    printer p = {.cx = cx, .flags = flags};

    if (!m)
        return NULL;
    base_addf(cx, &p.out, "graph %s {\n", quoted(&p, m->name));
    p.indent = 1;
    put_devices(&p, &m->devices);
    put_scope(&p, &m->symbols, &m->facts);
    for (int i = 0; i < m->data.n; i++)
        put_data(&p, m->data.at[i]);
    for (int i = 0; i < m->kernels.n; i++)
        put_kernel(&p, m->kernels.at[i]);
    for (int i = 0; i < m->functions.n; i++)
        put_function(&p, m->functions.at[i]);
    base_add(cx, &p.out, "}\n");
    return base_text_str(cx, &p.out);
}
