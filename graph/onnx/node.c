/* graph/onnx/node.c -- what conversions ask of a node, and how they build. */
#include <string.h>

#include "graph/onnx/import.h"
#include "graph/program.h"
#include "graph/scope.h"
#include "ir/text.h"

#define X(family) &onnx_##family##_rows,
static const onnx_rows *const families[] = {ONNX_FAMILY_LIST(X)};
#undef X

/* Rows of one operator differ by the opsets that they are for: the first that fits. */
const onnx_row *onnx_find(const char *op, int64_t opset)
{
    for (int f = 0; f < BASE_COUNT(families); f++)
        for (int i = 0; i < families[f]->n; i++) {
            const onnx_row *row = &families[f]->rows[i];

            if (base_same(row->op, op) && opset >= row->since && (row->until == 0 || opset <= row->until))
                return row;
        }
    return NULL;
}

bool onnx_knows(const char *op)
{
    for (int f = 0; f < BASE_COUNT(families); f++)
        for (int i = 0; i < families[f]->n; i++)
            if (base_same(families[f]->rows[i].op, op))
                return true;
    return false;
}

/* ---- attributes ---- */

const Onnx__AttributeProto *onnx_attr(const onnx_node *node, const char *name)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (base_same(node->proto->attribute[i]->name, name))
            return node->proto->attribute[i];
    return NULL;
}

int64_t onnx_int(const onnx_node *node, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);

    /* Writers of the third version of protocol buffers leave zeros out; the attribute's type tells. */
    return a && (a->has_i || a->has_type) ? a->i : otherwise;
}

double onnx_float(const onnx_node *node, const char *name, double otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);

    /* ONNX's defaults are float32, as the attributes are. */
    return a && (a->has_f || a->has_type) ? a->f : (float)otherwise;
}

const char *onnx_string(const onnx_node *node, const char *name, const char *otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);

    return a ? a->s.len ? base_strndup(node->cx, (const char *)a->s.data, a->s.len) : "" : otherwise;
}

int onnx_ints(const onnx_node *node, const char *name, const int64_t **out)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);

    *out = a ? a->ints : NULL;
    return a ? (int)a->n_ints : -1;
}

/* ---- operands ---- */

bool onnx_has(const onnx_node *node, int k)
{
    return k < node->n_in && node->in[k];
}

int onnx_rank(const onnx_node *node, int k)
{
    return node->in[k]->type.n;
}

/* Element `index` of a constant of integers, with its sign. */
static int64_t element(const op_constant *constant, int64_t index)
{
    const char *p = (const char *)constant->data + index * base_dtype_bytes(constant->type.dtype);
    int64_t v = 0;

    memcpy(&v, p, (size_t)base_dtype_bytes(constant->type.dtype));
    if (base_is_signed(constant->type.dtype) && constant->type.dtype.bits < 64) {
        int shift = 64 - constant->type.dtype.bits;

        v = (int64_t)((uint64_t)v << shift) >> shift;
    }
    return v;
}

/* A tensor without elements is known whatever it will hold. */
bool onnx_is_empty(const graph_value *value)
{
    for (int i = 0; i < value->type.n; i++)
        if (ir_is_value(value->type.dim[i], 0))
            return true;
    return false;
}

/* Integers of a limited number of elements: what shapes are computed from. */
static const onnx_known *known_constant(onnx_node *node, const graph_value *value)
{
    const op_constant *constant = value->constant;
    int64_t count = constant ? constant->bytes / base_dtype_bytes(constant->type.dtype) : 0;

    if ((!constant && !onnx_is_empty(value)) || base_is_float(value->type.dtype))
        return NULL;
    if (count > base_limit(node->cx, BASE_LIMIT_known_elements)) {
        base_map_put(node->cx, &node->im->many, value, node);
        return NULL;
    }
    onnx_known *known = base_new(node->cx, onnx_known);
    known->n = (int)count;
    known->at = base_array(node->cx, const ir_expr *, count);
    for (int64_t i = 0; i < count; i++)
        known->at[i] = ir_int(node->cx, element(constant, i));
    return known;
}

/* The elements of a value as symbols of a body: known in that body and in the regions inside of it. */
typedef struct {
    const graph_body *body;
    onnx_known known;
} as_symbols;

/* Symbols that a node bound are seen in its body and in the bodies inside of that, nowhere else. */
static const onnx_known *symbols_here(const onnx_node *node, const graph_value *value)
{
    const as_symbols *found = base_map_get(&node->im->symbols, value);

    for (const graph_body *b = node->im->f->body; found && b; b = b->outer)
        if (b == found->body)
            return &found->known;
    return NULL;
}

const onnx_known *onnx_known_of(onnx_node *node, const graph_value *value)
{
    const onnx_known *known = base_map_get(&node->im->known, value);

    known = known ? known : symbols_here(node, value);
    return known ? known : known_constant(node, value);
}

/* The symbols belong to the body at hand, and so does the node that gives them their values. */
const onnx_known *onnx_as_symbols(onnx_node *node, graph_value *value)
{
    int64_t count = 1;

    if (!value || value->type.n < 0 || value->type.n > 1 || value->type.dtype.code != kDLInt ||
        (value->type.n == 1 &&
         (!ir_is_int(value->type.dim[0], &count) || count < 1 || count > ONNX_MAX_RANK)))
        return NULL;
    as_symbols *made = base_new(node->cx, as_symbols);
    made->body = node->im->f->body;
    made->known = (onnx_known){(int)count, base_array(node->cx, const ir_expr *, count)};
    for (int i = 0; i < count; i++)
        made->known.at[i] = graph_symbol_in(node->im->m, node->im->f->body, NULL);
    if (!graph_add_extents(node->im->f, value->name ? value->name : node->name, value, made->known.at,
                           (int)count))
        return NULL;
    base_map_put(node->cx, &node->im->symbols, value, made);
    return &made->known;
}

const onnx_known *onnx_needed_value(onnx_node *node, int k)
{
    const onnx_known *known = onnx_known_value(node, k);

    return known || !onnx_has(node, k) || base_map_has(&node->im->long_ones, node->in[k])
               ? known
               : onnx_as_symbols(node, node->in[k]);
}

const onnx_known *onnx_known_value(onnx_node *node, int k)
{
    return onnx_has(node, k) ? onnx_known_of(node, node->in[k]) : NULL;
}

bool onnx_unknown(onnx_node *node, int k, const char *what)
{
    if (onnx_has(node, k) && base_map_has(&node->im->long_ones, node->in[k]))
        return onnx_unsupported(node, "%s that is an expression of too many terms; %s", what,
                                base_limit_text(node->cx, BASE_LIMIT_dim_terms));
    if (onnx_has(node, k) && base_map_has(&node->im->many, node->in[k]))
        return onnx_unsupported(node, "%s computed from integers of too many elements; %s", what,
                                base_limit_text(node->cx, BASE_LIMIT_known_elements));
    return onnx_unsupported(node, "%s that %s known at run time only", what,
                            what[strlen(what) - 1] == 's' ? "are" : "is");
}

/* -1: the operand is not known, or some element is no constant. */
int onnx_constant_ints(onnx_node *node, int index, const int64_t **out)
{
    const onnx_known *known = onnx_known_value(node, index);
    int64_t *v = known ? base_array(node->cx, int64_t, known->n) : NULL;

    *out = v;
    for (int i = 0; known && i < known->n; i++)
        if (!ir_is_int(known->at[i], &v[i]))
            return -1;
    return known ? known->n : -1;
}

/* The number in a constant operand of one element, of any type. False: it is none. */
bool onnx_constant_float(onnx_node *node, int index, double *out)
{
    const op_constant *constant = onnx_has(node, index) ? node->in[index]->constant : NULL;

    if (!constant || constant->bytes != base_dtype_bytes(constant->type.dtype))
        return false;
    if (!base_is_float(constant->type.dtype))
        *out = (double)element(constant, 0);
    else if (constant->type.dtype.bits == 64)
        memcpy(out, constant->data, sizeof *out);
    else if (constant->type.dtype.bits == 32) {
        float f;
        memcpy(&f, constant->data, sizeof f);
        *out = f;
    } else {
        uint16_t h;
        memcpy(&h, constant->data, sizeof h);
        *out = constant->type.dtype.code == kDLBfloat ? base_bfloat_to_float(h) : base_half_to_float(h);
    }
    return true;
}

bool onnx_axis(onnx_node *node, int64_t axis, int rank, int64_t *out)
{
    if (axis < -rank || axis >= rank)
        return onnx_wrong(node, "axis %lld does not exist: the operand has %d dimensions", (long long)axis,
                          rank);
    *out = axis < 0 ? axis + rank : axis;
    return true;
}

/* ---- results ---- */

/* Adds an operator, and tracks its elements if it computes shapes. */
graph_value *onnx_make(onnx_node *node, const char *op, graph_value *const *in, int n_in, const op_attr *attr,
                       int n_attrs)
{
    for (int k = 0; k < n_in; k++)
        if (!in[k] && base_failed(node->cx))
            return NULL;
    graph_value *v = graph_add(node->im->f, op, node->name, in, n_in, attr, n_attrs);
    onnx_track(node, v, op, in, n_in, attr, n_attrs);
    return v;
}

/* The first value with this name keeps it for messages and outputs. */
bool onnx_set(onnx_node *node, int index, graph_value *value)
{
    if (!value || index >= node->n_out)
        return value != NULL;
    if (*node->proto->output[index]) {
        if (!value->name)
            value->name = node->proto->output[index];
        base_dict_put(node->cx, &node->im->names->values, node->proto->output[index], value);
    }
    return true;
}

bool onnx_emit(onnx_node *node, const char *op, const op_attr *attr, int n_attrs)
{
    return onnx_set(node, 0, onnx_make(node, op, node->in, node->n_in, attr, n_attrs));
}

/* Remembers the elements of value as expressions, unless they are many or grow too long. */
void onnx_set_known(onnx_node *node, graph_value *value, const ir_expr *const *at, int count)
{
    if (value && count > base_limit(node->cx, BASE_LIMIT_known_elements))
        base_map_put(node->cx, &node->im->many, value, value);
    if (!value || count > base_limit(node->cx, BASE_LIMIT_known_elements))
        return;
    onnx_known *known = base_new(node->cx, onnx_known);
    const ir_facts *facts = graph_facts_in(node->im->m, node->im->f->body);
    known->n = count;
    known->at = base_array(node->cx, const ir_expr *, count);
    for (int i = 0; i < count; i++) {
        bool large;

        /* Before it is simplified: that takes time by the terms. */
        if (!op_is_short(node->cx, at[i], &large)) {
            base_map_put(node->cx, &node->im->long_ones, value, value);
            return;
        }
        known->at[i] = ir_simplify(facts, at[i]);
    }
    base_map_put(node->cx, &node->im->known, value, known);
}

graph_value *onnx_scalar(onnx_node *node, base_dtype dtype, double value)
{
    op_attr attrs[] = {op_attr_exprs(node->cx, "shape", NULL, 0), op_attr_dtype("dtype", dtype),
                       op_attr_float("value", value)};

    return onnx_make(node, "fill", NULL, 0, attrs, 3);
}

graph_value *onnx_reshape(onnx_node *node, graph_value *value, const ir_expr *const *dim, int count)
{
    op_attr shape = op_attr_exprs(node->cx, "shape", dim, count);

    return ONNX_MAKE(node, "reshape", &shape, 1, value);
}

graph_value *onnx_values(onnx_node *node, const ir_expr *const *at, int count, bool scalar)
{
    op_attr attrs[] = {op_attr_exprs(node->cx, "values", at, count), op_attr_int("scalar", scalar)};
    graph_value *v = onnx_make(node, "values", NULL, 0, attrs, 2);

    onnx_set_known(node, v, at, count);
    return v;
}
