/* graph/onnx/node.c -- what conversions ask of a node, and how they build. */
#include <string.h>

#include "graph/onnx/import.h"
#include "graph/program.h"
#include "graph/scope.h"
#include "ir/text.h"

#define X(family) &onnx_##family##_rows,
static const onnx_rows *const families[] = {ONNX_FAMILY_LIST(X)};
#undef X

const onnx_row *onnx_find(const char *op, int64_t opset)
{
    for (int f = 0; f < BASE_COUNT(families); f++)
        for (int i = 0; i < families[f]->n; i++) {
            const onnx_row *r = &families[f]->rows[i];

            if (base_same(r->op, op) && opset >= r->since && (r->until == 0 || opset <= r->until))
                return r;
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

const Onnx__AttributeProto *onnx_attr(const onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++)
        if (base_same(n->proto->attribute[i]->name, name))
            return n->proto->attribute[i];
    return NULL;
}

int64_t onnx_int(const onnx_node *n, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(n, name);

    /* Writers of the third version of protocol buffers leave zeros out; the attribute's type tells. */
    return a && (a->has_i || a->has_type) ? a->i : otherwise;
}

double onnx_float(const onnx_node *n, const char *name, double otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(n, name);

    /* ONNX's defaults are float32, as the attributes are. */
    return a && (a->has_f || a->has_type) ? a->f : (float)otherwise;
}

const char *onnx_string(const onnx_node *n, const char *name, const char *otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(n, name);

    return a ? a->s.len ? base_strndup(n->cx, (const char *)a->s.data, a->s.len) : "" : otherwise;
}

int onnx_ints(const onnx_node *n, const char *name, const int64_t **out)
{
    const Onnx__AttributeProto *a = onnx_attr(n, name);

    *out = a ? a->ints : NULL;
    return a ? (int)a->n_ints : -1;
}

/* ---- operands ---- */

bool onnx_has(const onnx_node *n, int k)
{
    return k < n->n_in && n->in[k];
}

int onnx_rank(const onnx_node *n, int k)
{
    return n->in[k]->type.n;
}

static int64_t element(const op_constant *c, int64_t i)
{
    const char *p = (const char *)c->data + i * base_dtype_bytes(c->type.dtype);
    int64_t v = 0;

    memcpy(&v, p, (size_t)base_dtype_bytes(c->type.dtype));
    if (base_is_signed(c->type.dtype) && c->type.dtype.bits < 64) {
        int shift = 64 - c->type.dtype.bits;

        v = (int64_t)((uint64_t)v << shift) >> shift;
    }
    return v;
}

/* A tensor without elements is known whatever it will hold. */
bool onnx_is_empty(const graph_value *v)
{
    for (int i = 0; i < v->type.n; i++)
        if (ir_is_value(v->type.dim[i], 0))
            return true;
    return false;
}

static const onnx_known *known_constant(onnx_node *n, const graph_value *v)
{
    const op_constant *c = v->constant;
    int64_t count = c ? c->bytes / base_dtype_bytes(c->type.dtype) : 0;

    if ((!c && !onnx_is_empty(v)) || base_is_float(v->type.dtype) || count > ONNX_MAX_KNOWN)
        return NULL;
    onnx_known *known = base_new(n->cx, onnx_known);
    known->n = (int)count;
    known->at = base_array(n->cx, const ir_expr *, count);
    for (int64_t i = 0; i < count; i++)
        known->at[i] = ir_int(n->cx, element(c, i));
    return known;
}

/* The elements of a value as symbols of a body: known in that body and in the regions inside of it. */
typedef struct {
    const graph_body *body;
    onnx_known known;
} as_symbols;

static const onnx_known *symbols_here(const onnx_node *n, const graph_value *v)
{
    const as_symbols *found = base_map_get(&n->im->symbols, v);

    for (const graph_body *b = n->im->f->body; found && b; b = b->outer)
        if (b == found->body)
            return &found->known;
    return NULL;
}

const onnx_known *onnx_known_of(onnx_node *n, const graph_value *v)
{
    const onnx_known *known = base_map_get(&n->im->known, v);

    known = known ? known : symbols_here(n, v);
    return known ? known : known_constant(n, v);
}

/* The symbols belong to the body at hand, and so does the node that gives them their values. */
const onnx_known *onnx_as_symbols(onnx_node *n, graph_value *v)
{
    int64_t count = 1;

    if (!v || v->type.n < 0 || v->type.n > 1 || v->type.dtype.code != kDLInt ||
        (v->type.n == 1 && (!ir_is_int(v->type.dim[0], &count) || count < 1 || count > ONNX_MAX_RANK)))
        return NULL;
    as_symbols *made = base_new(n->cx, as_symbols);
    made->body = n->im->f->body;
    made->known = (onnx_known){(int)count, base_array(n->cx, const ir_expr *, count)};
    for (int i = 0; i < count; i++)
        made->known.at[i] = graph_symbol_in(n->im->m, n->im->f->body, NULL);
    if (!graph_add_extents(n->im->f, v->name ? v->name : n->name, v, made->known.at, (int)count))
        return NULL;
    base_map_put(n->cx, &n->im->symbols, v, made);
    return &made->known;
}

const onnx_known *onnx_needed_value(onnx_node *n, int k)
{
    const onnx_known *known = onnx_known_value(n, k);

    return known || !onnx_has(n, k) || base_map_has(&n->im->long_ones, n->in[k])
               ? known
               : onnx_as_symbols(n, n->in[k]);
}

const onnx_known *onnx_known_value(onnx_node *n, int k)
{
    return onnx_has(n, k) ? onnx_known_of(n, n->in[k]) : NULL;
}

bool onnx_unknown(onnx_node *n, int k, const char *what)
{
    if (onnx_has(n, k) && base_map_has(&n->im->long_ones, n->in[k]))
        return onnx_unsupported(n, "%s that is an expression of too many terms", what);
    return onnx_unsupported(n, "%s that %s known at run time only", what,
                            what[strlen(what) - 1] == 's' ? "are" : "is");
}

int onnx_constant_ints(onnx_node *n, int k, const int64_t **out)
{
    const onnx_known *known = onnx_known_value(n, k);
    int64_t *v = known ? base_array(n->cx, int64_t, known->n) : NULL;

    *out = v;
    for (int i = 0; known && i < known->n; i++)
        if (!ir_is_int(known->at[i], &v[i]))
            return -1;
    return known ? known->n : -1;
}

/* The number in a constant operand of one element, of any type. False: it is none. */
bool onnx_constant_float(onnx_node *n, int k, double *out)
{
    const op_constant *c = onnx_has(n, k) ? n->in[k]->constant : NULL;

    if (!c || c->bytes != base_dtype_bytes(c->type.dtype))
        return false;
    if (!base_is_float(c->type.dtype))
        *out = (double)element(c, 0);
    else if (c->type.dtype.bits == 64)
        memcpy(out, c->data, sizeof *out);
    else if (c->type.dtype.bits == 32) {
        float f;
        memcpy(&f, c->data, sizeof f);
        *out = f;
    } else {
        uint16_t h;
        memcpy(&h, c->data, sizeof h);
        *out = c->type.dtype.code == kDLBfloat ? base_bfloat_to_float(h) : base_half_to_float(h);
    }
    return true;
}

bool onnx_axis(onnx_node *n, int64_t axis, int rank, int64_t *out)
{
    if (axis < -rank || axis >= rank)
        return onnx_wrong(n, "axis %lld, but there are %d dimensions", (long long)axis, rank);
    *out = axis < 0 ? axis + rank : axis;
    return true;
}

/* ---- results ---- */

graph_value *onnx_make(onnx_node *n, const char *op, graph_value *const *in, int n_in, const op_attr *attr,
                       int n_attrs)
{
    for (int k = 0; k < n_in; k++)
        if (!in[k] && base_failed(n->cx))
            return NULL;
    graph_value *v = graph_add(n->im->f, op, n->name, in, n_in, attr, n_attrs);
    onnx_track(n, v, op, in, n_in, attr, n_attrs);
    return v;
}

bool onnx_set(onnx_node *n, int k, graph_value *v)
{
    if (!v || k >= n->n_out)
        return v != NULL;
    if (*n->proto->output[k]) {
        if (!v->name)
            v->name = n->proto->output[k];
        base_dict_put(n->cx, &n->im->names->values, n->proto->output[k], v);
    }
    return true;
}

bool onnx_emit(onnx_node *n, const char *op, const op_attr *attr, int n_attrs)
{
    return onnx_set(n, 0, onnx_make(n, op, n->in, n->n_in, attr, n_attrs));
}

/* Remembers the elements of v as expressions, unless they are many or grow too long. */
void onnx_set_known(onnx_node *n, graph_value *v, const ir_expr *const *at, int count)
{
    if (!v || count > ONNX_MAX_KNOWN)
        return;
    onnx_known *known = base_new(n->cx, onnx_known);
    const ir_facts *f = graph_facts_in(n->im->m, n->im->f->body);
    known->n = count;
    known->at = base_array(n->cx, const ir_expr *, count);
    for (int i = 0; i < count; i++) {
        bool large;

        /* Before it is simplified: that takes time by the terms. */
        if (!op_is_short(at[i], &large)) {
            base_map_put(n->cx, &n->im->long_ones, v, v);
            return;
        }
        known->at[i] = ir_simplify(f, at[i]);
    }
    base_map_put(n->cx, &n->im->known, v, known);
}

graph_value *onnx_scalar(onnx_node *n, base_dtype t, double value)
{
    op_attr attrs[] = {op_attr_exprs(n->cx, "shape", NULL, 0), op_attr_dtype("dtype", t),
                       op_attr_float("value", value)};

    return onnx_make(n, "fill", NULL, 0, attrs, 3);
}

graph_value *onnx_reshape(onnx_node *n, graph_value *v, const ir_expr *const *dim, int count)
{
    op_attr shape = op_attr_exprs(n->cx, "shape", dim, count);

    return ONNX_MAKE(n, "reshape", &shape, 1, v);
}

graph_value *onnx_values(onnx_node *n, const ir_expr *const *at, int count, bool scalar)
{
    op_attr attrs[] = {op_attr_exprs(n->cx, "values", at, count), op_attr_int("scalar", scalar)};
    graph_value *v = onnx_make(n, "values", NULL, 0, attrs, 2);

    onnx_set_known(n, v, at, count);
    return v;
}
