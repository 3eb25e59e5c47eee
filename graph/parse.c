/* graph/parse.c -- text to graph modules. Types of operators are inferred and held against those that the
 * text gives.
 *
 *     graph "g" {
 *       symbols n
 *       function "main" {
 *         input v0 "x": f32[n, 4]
 *         v1: f32[n, 4] = op relu "r"(v0)
 *         output "y" v1
 *       }
 *     }
 *
 * One function per form; the grammar stands in docs/graph.md. The parsed module is verified as a whole at the
 * end, so that a text cannot say what a program could not build.
 */
#include "graph/constant.h"
#include "graph/program.h"
#include "graph/scope.h"
#include "graph/text.h"
#include "ir/text.h"

#include <string.h>

enum { DEEPEST = 64, MOST_DIMENSIONS = 16 };

typedef struct {
    tec_context *cx;
    base_lexer *lx;
    graph_module *m;
    graph_function *f;
    graph_body *scope; /* the innermost body that may bind symbols */
    const graph_module *constants;
    base_dict values; /* "v3" -> graph_value * */
    base_map told;    /* symbols of functions and regions that have a value */
    ir_scope_table names;
    int depth;
} parser;

static void *fail_at(parser *p, base_loc loc, const char *what)
{
    return base_fail(p->cx, TEC_INVALID, loc, "%s", what);
}

static void *fail(parser *p, const char *what)
{
    return fail_at(p, p->lx->tok.loc, what);
}

static const char *expect_string(parser *p, const char *what)
{
    const char *text = p->lx->tok.text;

    if (p->lx->tok.kind != BASE_TOK_STRING) {
        base_unexpected(p->lx, what);
        return NULL;
    }
    base_advance(p->lx);
    return text;
}

static bool more(parser *p, const char *close)
{
    return !base_failed(p->cx) && !base_at(p->lx, close) && p->lx->tok.kind != BASE_TOK_END;
}

/* ---- types and values ---- */

/* dtype[extent, ...]: extents are int64 expressions over the symbols in scope. */
static bool parse_type(parser *p, op_type *out)
{
    base_vec dims = {0};
    base_dtype t = ir_parse_dtype(p->lx);

    base_expect(p->lx, "[");
    while (more(p, "]")) {
        const ir_expr *e = ir_parse_expr(p->lx, &p->names);
        int64_t n;

        if (e && !base_dtype_same(e->dtype, BASE_I64))
            fail(p, base_format(p->cx, "the extent '%s' is %s, expected i64", ir_expr_text(p->cx, e),
                                base_dtype_text(p->cx, e->dtype)));
        if (e && ir_is_int(e, &n) && n < 0)
            fail(p, base_format(p->cx, "the extent %lld is negative", (long long)n));
        base_push(p->cx, &dims, e);
        if (!base_accept(p->lx, ","))
            break;
    }
    base_expect(p->lx, "]");
    if (dims.n > MOST_DIMENSIONS)
        fail(p, base_format(p->cx, "%d dimensions; there may be %d at most", dims.n, MOST_DIMENSIONS));
    *out = (op_type){t, dims.n, (const ir_expr *const *)dims.at};
    return !base_failed(p->cx);
}

static bool parse_full_type(parser *p, graph_type *out);

/* (f32[n, 64], "Tree") */
static bool parse_parts(parser *p, base_vec *out)
{
    for (base_expect(p->lx, "("); more(p, ")");) {
        graph_type *t = base_new(p->cx, graph_type);

        if (!parse_full_type(p, t))
            return false;
        base_push(p->cx, out, t);
        if (!base_accept(p->lx, ","))
            break;
    }
    return base_expect(p->lx, ")");
}

static const graph_type *parts_of(parser *p, const base_vec *parts)
{
    graph_type *t = base_array(p->cx, graph_type, parts->n);

    for (int i = 0; i < parts->n; i++)
        t[i] = *(const graph_type *)parts->at[i];
    return t;
}

/* (type, ...) is a tuple, fn(type, ...) -> (type, ...) a function. */
static bool parse_compound(parser *p, graph_type *out)
{
    base_vec parts = {0};
    bool is_function = base_accept(p->lx, "fn");

    if (!parse_parts(p, &parts))
        return false;
    int n_params = is_function ? parts.n : 0;
    if (is_function && (!base_expect(p->lx, "->") || !parse_parts(p, &parts)))
        return false;
    *out = (graph_type){.kind = is_function ? GRAPH_FUNCTION : GRAPH_TUPLE,
                        .n = parts.n,
                        .n_params = n_params,
                        .part = parts_of(p, &parts)};
    return true;
}

/* f32[n, 2], "Tree", (f32[2], "Tree") or fn(f32[2]) -> (f32[2]) */
static bool parse_full_type(parser *p, graph_type *out)
{
    bool ok;

    if (++p->depth > DEEPEST)
        return fail(p, base_format(p->cx, "types nest deeper than %d", DEEPEST));
    if (p->lx->tok.kind == BASE_TOK_STRING) {
        *out = graph_data_type(expect_string(p, "a data type"));
        ok = true;
    } else if (base_at(p->lx, "(") || base_at(p->lx, "fn"))
        ok = parse_compound(p, out);
    else {
        op_type t;

        ok = parse_type(p, &t);
        *out = graph_tensor_type(&t);
    }
    p->depth--;
    return ok && !base_failed(p->cx);
}

/* v3 "name": f32[n, 2] device 1 */
static graph_value *parse_new_value(parser *p)
{
    base_loc loc = p->lx->tok.loc;
    const char *id = base_expect_name(p->lx, "a value"), *name = NULL;
    int64_t device = 0;
    graph_type t;

    if (p->lx->tok.kind == BASE_TOK_STRING)
        name = expect_string(p, "a name");
    if (!base_expect(p->lx, ":") || !parse_full_type(p, &t) ||
        (base_accept(p->lx, "device") && !base_expect_int(p->lx, "a device", &device)))
        return NULL;
    if (base_dict_has(&p->values, id))
        return base_fail(p->cx, TEC_INVALID, loc, "'%s' is made twice", id);
    base_set_where(p->cx, loc);
    graph_value *v = graph_typed_value(p->cx, name, &t);
    v->device = (int)device;
    base_dict_put(p->cx, &p->values, id, v);
    return v;
}

static graph_value *parse_operand(parser *p)
{
    base_loc loc = p->lx->tok.loc;
    const char *id = base_expect_name(p->lx, "a value or '_'");

    if (!id || base_same(id, "_"))
        return NULL;
    graph_value *v = base_dict_get(&p->values, id);
    return v ? v : base_fail(p->cx, TEC_INVALID, loc, "there is no value '%s' above this line", id);
}

static void parse_operands(parser *p, base_vec *out)
{
    base_expect(p->lx, "(");
    while (more(p, ")")) {
        base_push(p->cx, out, parse_operand(p));
        if (!base_accept(p->lx, ","))
            break;
    }
    base_expect(p->lx, ")");
}

/* ---- constants ---- */

static void store_float(base_dtype t, void *at, double f)
{
    uint16_t half = t.code == kDLBfloat ? base_double_to_bfloat(f) : base_double_to_half(f);
    float single = (float)f;

    memcpy(at,
           t.bits == 64   ? (const void *)&f
           : t.bits == 32 ? (const void *)&single
                          : (const void *)&half,
           (size_t)t.bits / 8);
}

/* One element of a constant at `at`: a number, or bits(N) for a float that has no decimal form. */
static bool parse_element(parser *p, base_dtype t, void *at)
{
    int64_t bits;

    if (base_is_float(t) && !(base_at(p->lx, "bits") && base_same(p->lx->next.text, "("))) {
        const ir_expr *e = ir_parse_expr(p->lx, &p->names);
        int64_t whole;

        if (e && e->op == IR_FLOAT)
            store_float(t, at, e->f);
        else if (e && ir_is_int(e, &whole))
            store_float(t, at, (double)whole);
        else
            return fail(p, "expected a number");
        return true;
    }
    bool wrapped = base_is_float(t) && base_accept(p->lx, "bits") && base_expect(p->lx, "(");
    if (p->lx->tok.kind == BASE_TOK_INT) {
        bits = p->lx->tok.i; /* of 2^63 and above: its bits */
        base_advance(p->lx);
    } else if (!base_expect_int(p->lx, "a number", &bits))
        return false;
    if (wrapped && !base_expect(p->lx, ")"))
        return false;
    memcpy(at, &bits, (size_t)base_dtype_bytes(t));
    return true;
}

static bool extent_product(parser *p, base_loc loc, const op_type *t, int64_t *out)
{
    int64_t n;

    *out = 1;
    for (int i = 0; i < t->n; i++)
        if (!ir_is_int(t->dim[i], &n) || __builtin_mul_overflow(*out, n, out) || *out > (int64_t)1 << 40)
            return fail_at(p, loc, base_format(p->cx, "a constant cannot be %s", op_type_text(p->cx, t)));
    if (t->dtype.bits > 64 || t->dtype.lanes != 1 || t->dtype.code == kDLOpaqueHandle)
        return fail_at(p, loc,
                       base_format(p->cx, "a constant cannot be of %s", base_dtype_text(p->cx, t->dtype)));
    return true;
}

/* The elements come first into a vector of pieces, so that no more is allocated than the text has. */
static op_constant *parse_elements(parser *p, base_loc loc, const op_type *t)
{
    int64_t wanted, n = 0, cap = 0;
    size_t size = (size_t)base_dtype_bytes(t->dtype);
    char *data = NULL;

    if (!extent_product(p, loc, t, &wanted))
        return NULL;
    for (base_expect(p->lx, "["); more(p, "]"); n++) {
        if (n == cap) {
            char *larger = base_alloc(p->cx, (size_t)(cap = cap ? 2 * cap : 16) * size);

            if (n)
                memcpy(larger, data, (size_t)n * size);
            data = larger;
        }
        if (!parse_element(p, t->dtype, data + (size_t)n * size))
            return NULL;
        if (!base_accept(p->lx, ",")) {
            n++;
            break;
        }
    }
    if (!base_expect(p->lx, "]"))
        return NULL;
    if (n != wanted)
        return fail_at(p, loc,
                       base_format(p->cx, "%lld elements for a constant that is %s", (long long)n,
                                   op_type_text(p->cx, t)));
    op_constant *c = base_new(p->cx, op_constant);
    *c = (op_constant){.type = *t, .data = data ? data : base_alloc(p->cx, 1), .bytes = n * (int64_t)size};
    return c;
}

/* Large constants stand in the text by their hash: the data comes from a module that has them. */
static const op_constant *find_constant(parser *p, base_loc loc, const op_type *t, const char *hash)
{
    for (int i = 0; p->constants && i < p->constants->functions.n; i++) {
        base_vec all = {0};

        graph_collect_constants(p->cx, ((const graph_function *)p->constants->functions.at[i])->body, &all);
        for (int k = 0; k < all.n; k++) {
            const op_constant *c = ((const graph_value *)all.at[k])->constant;
            const char *its = base_format(p->cx, "%016llx", (unsigned long long)graph_constant_hash(c));

            if (graph_same_type(NULL, &c->type, t) && base_same(its, hash))
                return c;
        }
    }
    return fail_at(
        p, loc,
        base_format(p->cx, "no constant %s with hash \"%s\" is at hand", op_type_text(p->cx, t), hash));
}

/* constant NAME: type = [elements] or = hash "..." */
static void parse_constant(parser *p)
{
    graph_value *v = parse_new_value(p);

    if (v && v->compound)
        fail_at(p, v->loc,
                base_format(p->cx, "a constant cannot be %s", graph_type_text(p->cx, v->compound)));
    if (!v || !base_expect(p->lx, "="))
        return;
    if (base_accept(p->lx, "hash")) {
        const char *hash = expect_string(p, "a hash");

        v->constant = hash ? find_constant(p, v->loc, &v->type, hash) : NULL;
    } else
        v->constant = parse_elements(p, v->loc, &v->type);
}

/* ---- attributes ---- */

/* The items of a list attribute, whose kind the word before the bracket said. */
static void parse_list(parser *p, op_attr *a)
{
    base_vec items = {0};

    for (base_expect(p->lx, "["); more(p, "]");) {
        const ir_expr *e = ir_parse_expr(p->lx, &p->names);
        int64_t unused;

        if (e && ((a->kind == OP_ATTR_FLOATS && e->op != IR_FLOAT) ||
                  (a->kind == OP_ATTR_INTS && !ir_is_int(e, &unused)) ||
                  (a->kind == OP_ATTR_EXPRS && !base_dtype_same(e->dtype, BASE_I64))))
            fail(p, base_format(p->cx, "'%s' is of the wrong type for this list", ir_expr_text(p->cx, e)));
        base_push(p->cx, &items, e);
        if (!base_accept(p->lx, ","))
            break;
    }
    if (!base_expect(p->lx, "]") || base_failed(p->cx))
        return;
    int64_t *ints = base_array(p->cx, int64_t, items.n);
    double *floats = base_array(p->cx, double, items.n);
    for (int i = 0; i < items.n; i++) {
        const ir_expr *e = items.at[i];

        ir_is_int(e, &ints[i]);
        floats[i] = e->op == IR_FLOAT ? e->f : 0;
    }
    a->n = items.n;
    if (a->kind == OP_ATTR_INTS)
        a->ints = ints;
    else if (a->kind == OP_ATTR_FLOATS)
        a->floats = floats;
    else
        a->exprs = (const ir_expr *const *)items.at;
}

static void parse_number(parser *p, op_attr *a)
{
    const ir_expr *e = ir_parse_expr(p->lx, &p->names);

    if (e && e->op == IR_FLOAT)
        *a = op_attr_float(a->name, e->f);
    else if (e && ir_is_int(e, &a->i))
        a->kind = OP_ATTR_INT;
    else
        fail(p, "expected the value of an attribute");
}

/* @axis(1) @mode("edge") @pads([1, 1]) @shape(exprs [n, 3]) @to(dtype f32) */
static void parse_attribute(parser *p, base_vec *out)
{
    op_attr *a = base_new(p->cx, op_attr);

    a->name = base_expect_name(p->lx, "an attribute");
    base_expect(p->lx, "(");
    if (p->lx->tok.kind == BASE_TOK_STRING)
        *a = op_attr_string(a->name, expect_string(p, "a string"));
    else if (base_accept(p->lx, "dtype"))
        *a = op_attr_dtype(a->name, ir_parse_dtype(p->lx));
    else if (base_at(p->lx, "[") || base_at(p->lx, "floats") || base_at(p->lx, "exprs")) {
        a->kind = base_accept(p->lx, "floats")  ? OP_ATTR_FLOATS
                  : base_accept(p->lx, "exprs") ? OP_ATTR_EXPRS
                                                : OP_ATTR_INTS;
        parse_list(p, a);
    } else
        parse_number(p, a);
    base_expect(p->lx, ")");
    base_push(p->cx, out, a);
}

/* ---- nodes ---- */

/* What stands behind the '=' of a node. */
typedef struct {
    base_loc loc;
    graph_node_kind kind;
    const char *what, *name, *impl;    /* what: the operator or the callee */
    base_vec in, plain, attrs, bodies; /* graph_value *, the same, op_attr *, graph_body * */
    bool has_plain;
} node_text;

static const struct {
    const char *word;
    graph_node_kind kind;
    bool has_results;
} kinds[] = {{"op", GRAPH_OP, true},
             {"pack", GRAPH_PACK, true},
             {"call", GRAPH_CALL, true},
             {"if", GRAPH_IF, true},
             {"loop", GRAPH_LOOP, true},
             {"scan", GRAPH_SCAN, true},
             {"group", GRAPH_GROUP, true},
             {"tuple", GRAPH_MAKE_TUPLE, true},
             {"field", GRAPH_FIELD, true},
             {"construct", GRAPH_CONSTRUCT, true},
             {"match", GRAPH_MATCH, true},
             {"closure", GRAPH_CLOSURE, true},
             {"apply", GRAPH_APPLY, true},
             {"check", GRAPH_CHECK, false},
             {"extents", GRAPH_EXTENTS, false},
             {"alloc_storage", GRAPH_ALLOC_STORAGE, true},
             {"alloc_tensor", GRAPH_ALLOC_TENSOR, true},
             {"invoke", GRAPH_INVOKE, false},
             {"device_copy", GRAPH_DEVICE_COPY, false},
             {"kill", GRAPH_KILL, false}};

/* Whether a node without results begins here: its kind comes first. */
static bool at_statement(const parser *p)
{
    for (int i = 0; i < BASE_COUNT(kinds); i++)
        if (!kinds[i].has_results && base_at(p->lx, kinds[i].word))
            return true;
    return false;
}

/* The word of a node's kind, and the name that some kinds have behind it. */
static bool parse_kind(parser *p, node_text *t)
{
    for (int i = 0; i < BASE_COUNT(kinds); i++)
        if (base_accept(p->lx, kinds[i].word)) {
            t->kind = kinds[i].kind;
            if (t->kind == GRAPH_CONSTRUCT)
                t->what = expect_string(p, "the name of a constructor");
            if (t->kind == GRAPH_CALL || t->kind == GRAPH_CLOSURE)
                t->what = expect_string(p, "the name of a function");
            if (t->kind == GRAPH_INVOKE)
                t->what = expect_string(p, "the name of a kernel");
            if (t->kind == GRAPH_OP || t->kind == GRAPH_PACK)
                t->what = base_expect_name(p->lx, "an operator");
            return !base_failed(p->cx);
        }
    base_unexpected(
        p->lx, "the kind of a node: op, group, call, if, loop, scan, tuple, match, pack, alloc_tensor, ...");
    return false;
}

/* plain (type, ...): the operand types before packing; `_` stands for an absent operand. */
static void parse_plain(parser *p, node_text *t)
{
    t->has_plain = true;
    for (base_expect(p->lx, "("); more(p, ")");) {
        op_type type;
        bool absent = base_accept(p->lx, "_");

        if (!absent && !parse_type(p, &type))
            return;
        base_push(p->cx, &t->plain, absent ? NULL : graph_value_new(p->cx, NULL, type));
        if (!base_accept(p->lx, ","))
            break;
    }
    base_expect(p->lx, ")");
}

static graph_body *parse_body(parser *p, graph_body *outer, const base_vec *operands);

/* Everything to the right of `=`. Nothing is built yet, since types need the results on the left. */
static bool parse_node_text(parser *p, node_text *t, graph_body *body)
{
    t->loc = p->lx->tok.loc;
    if (!parse_kind(p, t))
        return false;
    t->name = expect_string(p, "the name of the node");
    parse_operands(p, &t->in);
    if (base_accept(p->lx, "plain"))
        parse_plain(p, t);
    while (base_accept(p->lx, "@"))
        parse_attribute(p, &t->attrs);
    if (base_accept(p->lx, "impl"))
        t->impl = expect_string(p, "an implementation");
    while (!base_failed(p->cx) && base_at(p->lx, "{"))
        base_push(p->cx, &t->bodies, parse_body(p, body, t->kind == GRAPH_GROUP ? &t->in : NULL));
    return !base_failed(p->cx);
}

static const op_attr *attributes(parser *p, const node_text *t)
{
    op_attr *a = base_array(p->cx, op_attr, t->attrs.n);

    for (int i = 0; i < t->attrs.n; i++)
        a[i] = *(const op_attr *)t->attrs.at[i];
    return a;
}

static graph_node *infer(parser *p, const node_text *t, const base_vec *in)
{
    const op_info *op = op_find(t->what);

    if (!op)
        return base_fail(p->cx, TEC_INVALID, t->loc, "there is no operator '%s'", t->what);
    for (int k = 0; k < in->n && k < op->min_inputs; k++)
        if (!in->at[k])
            return base_fail(p->cx, TEC_INVALID, t->loc, "operand %d of '%s' is left out", k, t->what);
    base_set_where(p->cx, t->loc);
    return graph_node_of(p->m, p->scope, op, t->name, (graph_value *const *)in->at, in->n, attributes(p, t),
                         t->attrs.n);
}

static bool find_impl(parser *p, const node_text *t, graph_node *node, const op_info *op)
{
    for (int i = 0; t->impl && i < op->n_impls; i++)
        if (base_same(op->impls[i].name, t->impl))
            node->impl = &op->impls[i];
    if (t->impl && !node->impl)
        base_fail(p->cx, TEC_INVALID, t->loc, "operator '%s' has no implementation '%s'", op->name, t->impl);
    return !base_failed(p->cx);
}

/* With `plain`, types are inferred from the operands before packing, and the node then reads the packed one.
 */
static graph_node *make_operator(parser *p, const node_text *t)
{
    graph_node *node = infer(p, t, t->has_plain ? &t->plain : &t->in);

    if (!node || !find_impl(p, t, node, node->op))
        return NULL;
    if (!t->has_plain)
        return node;
    if (t->in.n != t->plain.n)
        return base_fail(p->cx, TEC_INVALID, t->loc, "'%s' has %d operands, but 'plain' lists %d types",
                         t->name, t->in.n, t->plain.n);
    graph_node *packed = base_copy(p->cx, node, sizeof *node);
    packed->plain = node;
    packed->in = (graph_value **)t->in.at;
    return packed;
}

/* A packing knows the whole operator that it serves, since the implementation says how to pack. */
static graph_node *make_packing(parser *p, const node_text *t, const graph_type *type, int n_out)
{
    graph_node *plain = t->has_plain ? infer(p, t, &t->plain) : NULL;

    if (!t->has_plain || !t->impl || t->in.n != 1 || !t->in.at[0] || n_out != 1)
        return base_fail(p->cx, TEC_INVALID, t->loc,
                         "a packing has one operand and one result, 'plain' and an implementation");
    if (!plain || !find_impl(p, t, plain, plain->op))
        return NULL;
    graph_node *node =
        graph_typed_node(p->cx, GRAPH_PACK, t->name, (graph_value *const *)t->in.at, 1, type, 1);
    node->impl = plain->impl;
    node->plain = plain;
    return node;
}

static const op_impl *anchor_of(const graph_body *body)
{
    for (int i = 0; body && i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        if (node->kind == GRAPH_OP && node->op->kind == OP_COMPLEX)
            return node->impl;
    }
    return NULL;
}

/* All kinds whose result types are given by the text: calls, regions, groups, planned nodes. */
static graph_node *make_other(parser *p, const node_text *t, const graph_type *types, int n_out)
{
    base_set_where(p->cx, t->loc);
    graph_node *node =
        graph_typed_node(p->cx, t->kind, t->name, (graph_value *const *)t->in.at, t->in.n, types, n_out);

    node->callee = t->what;
    node->attr = attributes(p, t);
    node->n_attrs = t->attrs.n;
    node->body = (graph_body **)t->bodies.at;
    node->n_bodies = t->bodies.n;
    if (t->kind == GRAPH_GROUP)
        node->impl = anchor_of(node->n_bodies ? node->body[0] : NULL);
    return node;
}

/* The values of the text take the place of those that the node was made with. */
static bool adopt_outputs(parser *p, const node_text *t, graph_node *node, const base_vec *out)
{
    if (node->n_out != out->n) {
        base_fail(p->cx, TEC_INVALID, t->loc, "'%s' gives %d value%s, found %d", t->name, node->n_out,
                  node->n_out == 1 ? "" : "s", out->n);
        return false;
    }
    const ir_facts *f = graph_facts_in(p->m, p->scope);
    for (int k = 0; k < out->n; k++) {
        graph_value *v = out->at[k];
        graph_type said = graph_type_of(v), made = graph_type_of(node->out[k]);

        if (!graph_types_same(f, &said, &made)) {
            base_fail(p->cx, TEC_INVALID, v->loc, "result %d of '%s' is %s, the text says %s", k, t->name,
                      graph_type_text(p->cx, &made), graph_type_text(p->cx, &said));
            return false;
        }
        v->node = node;
        v->which = k;
    }
    node->out = (graph_value **)out->at;
    return true;
}

typedef struct {
    parser *p;
    const graph_body *body;
    base_vec *found;
} telling;

static bool tell_extents(void *user, const op_type *t)
{
    const telling *to = user;
    parser *p = to->p;

    for (int d = 0; d < t->n; d++) {
        if (!graph_binds_symbol(to->body, t->dim[d]) || base_map_has(&p->told, t->dim[d]))
            continue;
        base_map_put(p->cx, &p->told, t->dim[d], t->dim[d]);
        if (to->found)
            base_push(p->cx, to->found, t->dim[d]);
    }
    return true;
}

/* Marks the symbols of the body that are an extent of v's type and have no value yet; `found` takes them,
 * where it is not NULL. */
static void tell_symbols(parser *p, const graph_body *body, const graph_value *v, base_vec *found)
{
    telling to = {p, body, found};
    graph_type t = graph_type_of(v);

    graph_type_each(&t, tell_extents, &to);
}

/* The symbols that the elements of its operand become; what is none of the body's is left to the verifier. */
static void define_elements(parser *p, graph_node *node)
{
    const op_attr *a = graph_attribute(node, "symbols");

    if (!a || a->kind != OP_ATTR_EXPRS)
        return;
    node->symbol = a->exprs;
    node->n_symbols = a->n;
    for (int i = 0; i < a->n; i++)
        base_map_put(p->cx, &p->told, a->exprs[i], a->exprs[i]);
}

/* Results of nodes other than operators define the symbols that they are the first to have. */
static void define_symbols(parser *p, graph_node *node)
{
    base_vec symbols = {0};

    if (node->kind == GRAPH_OP || node->kind == GRAPH_PACK || node->kind == GRAPH_GROUP)
        return;
    if (node->kind == GRAPH_EXTENTS) {
        define_elements(p, node);
        return;
    }
    for (int k = 0; k < node->n_out; k++)
        tell_symbols(p, p->scope, node->out[k], &symbols);
    node->symbol = (const ir_expr *const *)symbols.at;
    node->n_symbols = symbols.n;
}

/* results = kind "name"(operands) ...: the results become the node's own values if their types agree. */
static void parse_node(parser *p, graph_body *body)
{
    base_vec out = {0};
    node_text t = {.name = NULL};
    bool has_results = !at_statement(p);

    if (has_results)
        do
            base_push(p->cx, &out, parse_new_value(p));
        while (base_accept(p->lx, ","));
    if (base_failed(p->cx) || (has_results && !base_expect(p->lx, "=")) || !parse_node_text(p, &t, body))
        return;
    graph_type *types = base_array(p->cx, graph_type, out.n);
    for (int k = 0; k < out.n; k++)
        types[k] = graph_type_of(out.at[k]);
    graph_node *node = t.kind == GRAPH_OP     ? make_operator(p, &t)
                       : t.kind == GRAPH_PACK ? make_packing(p, &t, types, out.n)
                                              : make_other(p, &t, types, out.n);
    if (!node || !adopt_outputs(p, &t, node, &out))
        return;
    define_symbols(p, node);
    base_push(p->cx, &body->nodes, node);
}

/* ---- bodies ---- */

static void parse_output(parser *p, graph_body *body)
{
    if (p->lx->tok.kind == BASE_TOK_STRING)
        base_push(p->cx, &body->output_names, expect_string(p, "a name"));
    graph_value *v = parse_operand(p);
    if (!v)
        fail(p, "an output cannot be left out");
    base_push(p->cx, &body->outputs, v);
}

/* Inputs of a group that stand for constants are those constants. */
static void parse_input(parser *p, graph_body *body, const base_vec *operands)
{
    graph_value *v = parse_new_value(p);
    const graph_value *from =
        v && operands && body->inputs.n < operands->n ? operands->at[body->inputs.n] : NULL;

    if (!v)
        return;
    v->constant = from ? from->constant : NULL;
    tell_symbols(p, body, v, NULL);
    base_push(p->cx, &body->inputs, v);
}

/* ---- scopes ---- */

static bool is_known(const parser *p, const graph_body *body, const char *name)
{
    for (; body; body = body->outer)
        for (int i = 0; i < body->symbols.n; i++)
            if (base_same(((const ir_expr *)body->symbols.at[i])->var.name, name))
                return true;
    return base_dict_has(&p->m->symbol_by_name, name);
}

/* symbols n, m -- of the body, or of the module where `body` is NULL. */
static void parse_symbols(parser *p, graph_body *body)
{
    do {
        const char *name = base_expect_name(p->lx, "a symbol");

        if (name && is_known(p, body, name))
            fail(p, base_format(p->cx, "symbol '%s' is declared twice", name));
        else if (name)
            base_dict_put(p->cx, &p->names.vars, name, graph_symbol_in(p->m, body, name));
    } while (!base_failed(p->cx) && base_accept(p->lx, ","));
}

static void parse_fact(parser *p, graph_body *body)
{
    const ir_expr *e = ir_parse_expr(p->lx, &p->names);

    if (e && !base_is_bool(e->dtype))
        fail(p, base_format(p->cx, "a fact must be a condition, '%s' is not", ir_expr_text(p->cx, e)));
    else
        graph_fact_in(p->m, body, e);
}

/* The names of the body's symbols mean nothing behind it. */
static void forget_symbols(parser *p, const graph_body *body)
{
    for (int i = 0; i < body->symbols.n; i++)
        base_dict_put(p->cx, &p->names.vars, ((const ir_expr *)body->symbols.at[i])->var.name, NULL);
}

/* One line of a body. Inside a group (`operands`) there are no symbols and facts of its own. */
static void parse_line(parser *p, graph_body *body, const base_vec *operands)
{
    if (base_accept(p->lx, "constant"))
        parse_constant(p);
    else if (base_accept(p->lx, "input"))
        parse_input(p, body, operands);
    else if (base_accept(p->lx, "output"))
        parse_output(p, body);
    else if (!operands && base_accept(p->lx, "symbols"))
        parse_symbols(p, body);
    else if (!operands && base_accept(p->lx, "fact"))
        parse_fact(p, body);
    else
        parse_node(p, body);
}

/* operands: of the group that the body is the inside of; NULL: a function's or a region's, which may bind
 * symbols. */
static graph_body *parse_body(parser *p, graph_body *outer, const base_vec *operands)
{
    graph_body *body = base_new(p->cx, graph_body), *scope = p->scope;

    body->outer = outer;
    body->entry = !outer && p->m->functions.n == 1;
    if (++p->depth > DEEPEST)
        return fail(p, base_format(p->cx, "regions nest deeper than %d", DEEPEST));
    p->scope = operands ? scope : body;
    for (base_expect(p->lx, "{"); more(p, "}");)
        parse_line(p, body, operands);
    base_expect(p->lx, "}");
    forget_symbols(p, body);
    p->scope = scope;
    p->depth--;
    return body;
}

/* ---- modules ---- */

/* (f32[n, 64], f32[64, 10]) */
static void parse_types(parser *p, base_vec *out)
{
    for (base_expect(p->lx, "("); more(p, ")");) {
        op_type *t = base_new(p->cx, op_type);

        if (!parse_type(p, t))
            return;
        base_push(p->cx, out, t);
        if (!base_accept(p->lx, ","))
            break;
    }
    base_expect(p->lx, ")");
}

/* A symbol of the module, or one that only this kernel's types name: in a program, kernels take extents that
 * belong to a function or a region. */
static const ir_expr *parse_kernel_symbol(parser *p, graph_body *scope)
{
    const char *name = base_expect_name(p->lx, "a symbol");
    const ir_expr *s = name ? base_dict_get(&p->m->symbol_by_name, name) : NULL;

    if (s || !name)
        return s;
    s = graph_symbol_in(p->m, scope, name);
    base_dict_put(p->cx, &p->names.vars, name, s);
    return s;
}

/* kernel "matmul" over n (f32[n, 64], f32[64, 10]) -> (f32[n, 10]) */
static void parse_kernel(parser *p)
{
    graph_kernel_type *k = base_new(p->cx, graph_kernel_type);
    base_vec symbols = {0}, params = {0};
    graph_body scope = {.outer = NULL};

    k->name = expect_string(p, "the name of a kernel");
    if (base_accept(p->lx, "over"))
        do
            base_push(p->cx, &symbols, parse_kernel_symbol(p, &scope));
        while (!base_failed(p->cx) && base_accept(p->lx, ","));
    parse_types(p, &params);
    k->n_reads = params.n;
    base_expect(p->lx, "->");
    parse_types(p, &params);
    op_type *types = base_array(p->cx, op_type, params.n);
    for (int i = 0; i < params.n; i++)
        types[i] = *(const op_type *)params.at[i];
    k->n_symbols = symbols.n;
    k->symbol = (const ir_expr *const *)symbols.at;
    k->n_params = params.n;
    k->param = types;
    forget_symbols(p, &scope);
    base_push(p->cx, &p->m->kernels, k);
}

/* case "Leaf" over k (f32[k], "Tree") */
static void parse_case(parser *p, graph_data *d)
{
    graph_body scope = {.outer = NULL};
    base_vec fields = {0};
    const char *name = expect_string(p, "the name of a constructor");

    if (name && base_accept(p->lx, "over"))
        parse_symbols(p, &scope);
    if (!name || base_failed(p->cx) || !parse_parts(p, &fields))
        return;
    graph_data_case(p->m, d, name, parts_of(p, &fields), fields.n)->symbols = scope.symbols;
    forget_symbols(p, &scope);
}

static void parse_data(parser *p)
{
    const char *name = expect_string(p, "the name of a data type");
    graph_data *d = name ? graph_data_new(p->m, name) : NULL;

    for (base_expect(p->lx, "{"); d && more(p, "}");) {
        base_expect(p->lx, "case");
        parse_case(p, d);
    }
    base_expect(p->lx, "}");
}

static void parse_function(parser *p)
{
    const char *name = expect_string(p, "the name of a function");

    if (!name)
        return;
    p->f = graph_function_new(p->m, name);
    graph_body *body = parse_body(p, NULL, NULL);
    if (body)
        p->f->body = body;
}

/* devices "opencl", "opencl" */
static void parse_devices(parser *p)
{
    do {
        const char *kind = expect_string(p, "a kind of device");

        if (kind)
            base_push(p->cx, &p->m->devices, (void *)kind);
    } while (base_accept(p->lx, ","));
}

/* NULL with the first error in the context. `constants`: a module whose constants the text may name by hash;
 * may be NULL. */
graph_module *graph_parse(tec_context *cx, const char *file, const char *text, const graph_module *constants)
{
    parser p = {.cx = cx, .lx = base_lexer_new(cx, file, text), .constants = constants};

    base_expect(p.lx, "graph");
    const char *name = expect_string(&p, "the name of the graph");
    if (!name)
        return NULL;
    p.m = graph_new(cx, name);
    for (base_expect(p.lx, "{"); more(&p, "}");) {
        if (base_accept(p.lx, "devices"))
            parse_devices(&p);
        else if (base_accept(p.lx, "symbols"))
            parse_symbols(&p, NULL);
        else if (base_accept(p.lx, "fact"))
            parse_fact(&p, NULL);
        else if (base_accept(p.lx, "data"))
            parse_data(&p);
        else if (base_accept(p.lx, "kernel"))
            parse_kernel(&p);
        else if (base_accept(p.lx, "function"))
            parse_function(&p);
        else
            base_unexpected(p.lx, "devices, symbols, fact, data, kernel or function");
    }
    base_expect(p.lx, "}");
    if (p.lx->tok.kind != BASE_TOK_END)
        base_unexpected(p.lx, "the end of the text");
    return !base_failed(cx) && graph_verify(p.m) ? p.m : NULL;
}
