/* graph/parse.c -- text to graph modules. Types of operators are inferred and compared with those that the
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

static void *fail_at(parser *self, base_loc loc, const char *what)
{
    return base_fail(self->cx, TEC_INVALID, loc, "%s", what);
}

static void *fail(parser *self, const char *what)
{
    return fail_at(self, self->lx->tok.loc, what);
}

static const char *expect_string(parser *self, const char *what)
{
    const char *text = self->lx->tok.text;

    if (self->lx->tok.kind != BASE_TOK_STRING) {
        base_unexpected(self->lx, what);
        return NULL;
    }
    base_advance(self->lx);
    return text;
}

static bool more(parser *self, const char *close)
{
    return !base_failed(self->cx) && !base_at(self->lx, close) && self->lx->tok.kind != BASE_TOK_END;
}

/* ---- types and values ---- */

/* dtype[extent, ...]: extents are int64 expressions over the symbols in scope. */
static bool parse_type(parser *self, op_type *out)
{
    base_vec dims = {0};
    base_dtype t = ir_parse_dtype(self->lx);

    base_expect(self->lx, "[");
    while (more(self, "]")) {
        const ir_expr *expr = ir_parse_expr(self->lx, &self->names);
        int64_t n;

        if (expr && !base_dtype_same(expr->dtype, BASE_I64))
            fail(self, base_format(self->cx, "the extent '%s' is %s, expected i64",
                                   ir_expr_text(self->cx, expr), base_dtype_text(self->cx, expr->dtype)));
        if (expr && ir_is_int(expr, &n) && n < 0)
            fail(self, base_format(self->cx, "the extent %lld is negative", (long long)n));
        base_push(self->cx, &dims, expr);
        if (!base_accept(self->lx, ","))
            break;
    }
    base_expect(self->lx, "]");
    if (dims.n > MOST_DIMENSIONS)
        fail(self,
             base_format(self->cx, "expected at most %d dimensions, found %d", MOST_DIMENSIONS, dims.n));
    *out = (op_type){t, dims.n, (const ir_expr *const *)dims.at};
    return !base_failed(self->cx);
}

static bool parse_full_type(parser *self, graph_type *out);

/* (f32[n, 64], "Tree") */
static bool parse_parts(parser *self, base_vec *out)
{
    for (base_expect(self->lx, "("); more(self, ")");) {
        graph_type *type = base_new(self->cx, graph_type);

        if (!parse_full_type(self, type))
            return false;
        base_push(self->cx, out, type);
        if (!base_accept(self->lx, ","))
            break;
    }
    return base_expect(self->lx, ")");
}

static const graph_type *parts_of(parser *self, const base_vec *parts)
{
    graph_type *t = base_array(self->cx, graph_type, parts->n);

    for (int i = 0; i < parts->n; i++)
        t[i] = *(const graph_type *)parts->at[i];
    return t;
}

/* (type, ...) is a tuple, fn(type, ...) -> (type, ...) a function. */
static bool parse_compound(parser *self, graph_type *out)
{
    base_vec parts = {0};
    bool is_function = base_accept(self->lx, "fn");

    if (!parse_parts(self, &parts))
        return false;
    int n_params = is_function ? parts.n : 0;
    if (is_function && (!base_expect(self->lx, "->") || !parse_parts(self, &parts)))
        return false;
    *out = (graph_type){.kind = is_function ? GRAPH_FUNCTION : GRAPH_TUPLE,
                        .n = parts.n,
                        .n_params = n_params,
                        .part = parts_of(self, &parts)};
    return true;
}

/* f32[n, 2], "Tree", (f32[2], "Tree") or fn(f32[2]) -> (f32[2]) */
static bool parse_full_type(parser *self, graph_type *out)
{
    bool ok;

    if (++self->depth > DEEPEST)
        return fail(self, base_format(self->cx, "types nest deeper than %d", DEEPEST));
    if (self->lx->tok.kind == BASE_TOK_STRING) {
        *out = graph_data_type(expect_string(self, "a data type"));
        ok = true;
    } else if (base_at(self->lx, "(") || base_at(self->lx, "fn"))
        ok = parse_compound(self, out);
    else {
        op_type t;

        ok = parse_type(self, &t);
        *out = graph_tensor_type(&t);
    }
    self->depth--;
    return ok && !base_failed(self->cx);
}

/* v3 "name": f32[n, 2] device 1 */
static graph_value *parse_new_value(parser *self)
{
    base_loc loc = self->lx->tok.loc;
    const char *id = base_expect_name(self->lx, "a value"), *name = NULL;
    int64_t device = 0;
    graph_type t;

    if (self->lx->tok.kind == BASE_TOK_STRING)
        name = expect_string(self, "a name");
    if (!base_expect(self->lx, ":") || !parse_full_type(self, &t) ||
        (base_accept(self->lx, "device") && !base_expect_int(self->lx, "a device", &device)))
        return NULL;
    if (base_dict_has(&self->values, id))
        return base_fail(self->cx, TEC_INVALID, loc, "'%s' is made twice", id);
    base_set_where(self->cx, loc);
    graph_value *value = graph_typed_value(self->cx, name, &t);
    value->device = (int)device;
    base_dict_put(self->cx, &self->values, id, value);
    return value;
}

static graph_value *parse_operand(parser *self)
{
    base_loc loc = self->lx->tok.loc;
    const char *id = base_expect_name(self->lx, "a value or '_'");

    if (!id || base_same(id, "_"))
        return NULL;
    graph_value *v = base_dict_get(&self->values, id);
    return v ? v : base_fail(self->cx, TEC_INVALID, loc, "there is no value '%s' above this line", id);
}

static void parse_operands(parser *self, base_vec *out)
{
    base_expect(self->lx, "(");
    while (more(self, ")")) {
        base_push(self->cx, out, parse_operand(self));
        if (!base_accept(self->lx, ","))
            break;
    }
    base_expect(self->lx, ")");
}

/* ---- constants ---- */

static void store_float(base_dtype dtype, void *at, double value)
{
    uint16_t half = dtype.code == kDLBfloat ? base_double_to_bfloat(value) : base_double_to_half(value);
    float single = (float)value;

    memcpy(at,
           dtype.bits == 64   ? (const void *)&value
           : dtype.bits == 32 ? (const void *)&single
                              : (const void *)&half,
           (size_t)dtype.bits / 8);
}

/* One element of a constant at `at`: a number, or bits(N) for a float that has no decimal form. */
static bool parse_element(parser *self, base_dtype dtype, void *at)
{
    int64_t bits;

    if (base_is_float(dtype) && !(base_at(self->lx, "bits") && base_same(self->lx->next.text, "("))) {
        const ir_expr *expr = ir_parse_expr(self->lx, &self->names);
        int64_t whole;

        if (expr && expr->op == IR_FLOAT)
            store_float(dtype, at, expr->f);
        else if (expr && ir_is_int(expr, &whole))
            store_float(dtype, at, (double)whole);
        else
            return fail(self, "expected a number");
        return true;
    }
    bool wrapped = base_is_float(dtype) && base_accept(self->lx, "bits") && base_expect(self->lx, "(");
    if (self->lx->tok.kind == BASE_TOK_INT) {
        bits = self->lx->tok.i; /* of 2^63 and above: its bits */
        base_advance(self->lx);
    } else if (!base_expect_int(self->lx, "a number", &bits))
        return false;
    if (wrapped && !base_expect(self->lx, ")"))
        return false;
    memcpy(at, &bits, (size_t)base_dtype_bytes(dtype));
    return true;
}

/* The number of elements of a constant; refuses symbolic extents, sizes past 2^40 and dtypes without text. */
static bool extent_product(parser *self, base_loc loc, const op_type *type, int64_t *out)
{
    int64_t n;

    *out = 1;
    for (int i = 0; i < type->n; i++)
        if (!ir_is_int(type->dim[i], &n) || __builtin_mul_overflow(*out, n, out) || *out > (int64_t)1 << 40)
            return fail_at(self, loc,
                           base_format(self->cx, "a constant cannot be %s", op_type_text(self->cx, type)));
    if (type->dtype.bits > 64 || type->dtype.lanes != 1 || type->dtype.code == kDLOpaqueHandle)
        return fail_at(
            self, loc,
            base_format(self->cx, "a constant cannot be of %s", base_dtype_text(self->cx, type->dtype)));
    return true;
}

/* The elements come first into a vector of pieces, so that no more is allocated than the text has. */
static op_constant *parse_elements(parser *self, base_loc loc, const op_type *type)
{
    int64_t wanted, n = 0, cap = 0;
    size_t size = (size_t)base_dtype_bytes(type->dtype);
    char *data = NULL;

    if (!extent_product(self, loc, type, &wanted))
        return NULL;
    for (base_expect(self->lx, "["); more(self, "]"); n++) {
        if (n == cap) {
            char *larger = base_alloc(self->cx, (size_t)(cap = cap ? 2 * cap : 16) * size);

            if (n)
                memcpy(larger, data, (size_t)n * size);
            data = larger;
        }
        if (!parse_element(self, type->dtype, data + (size_t)n * size))
            return NULL;
        if (!base_accept(self->lx, ",")) {
            n++;
            break;
        }
    }
    if (!base_expect(self->lx, "]"))
        return NULL;
    if (n != wanted)
        return fail_at(self, loc,
                       base_format(self->cx,
                                   "the number of elements, %lld, does not fit the type of the constant, %s",
                                   (long long)n, op_type_text(self->cx, type)));
    op_constant *constant = base_new(self->cx, op_constant);
    *constant = (op_constant){
        .type = *type, .data = data ? data : base_alloc(self->cx, 1), .bytes = n * (int64_t)size};
    return constant;
}

/* Large constants stand in the text by their hash: the data comes from a module that has them. */
static const op_constant *find_constant(parser *self, base_loc loc, const op_type *type, const char *hash)
{
    for (int i = 0; self->constants && i < self->constants->functions.n; i++) {
        base_vec all = {0};

        graph_collect_constants(self->cx, ((const graph_function *)self->constants->functions.at[i])->body,
                                &all);
        for (int k = 0; k < all.n; k++) {
            const op_constant *constant = ((const graph_value *)all.at[k])->constant;
            const char *its =
                base_format(self->cx, "%016llx", (unsigned long long)graph_constant_hash(constant));

            if (graph_same_type(NULL, &constant->type, type) && base_same(its, hash))
                return constant;
        }
    }
    return fail_at(self, loc,
                   base_format(self->cx, "the module given to the parser has no constant %s with hash \"%s\"",
                               op_type_text(self->cx, type), hash));
}

/* constant NAME: type = [elements] or = hash "..." */
static void parse_constant(parser *self)
{
    graph_value *value = parse_new_value(self);

    if (value && value->compound)
        fail_at(self, value->loc,
                base_format(self->cx, "a constant cannot be %s", graph_type_text(self->cx, value->compound)));
    if (!value || !base_expect(self->lx, "="))
        return;
    if (base_accept(self->lx, "hash")) {
        const char *hash = expect_string(self, "a hash");

        value->constant = hash ? find_constant(self, value->loc, &value->type, hash) : NULL;
    } else
        value->constant = parse_elements(self, value->loc, &value->type);
}

/* ---- attributes ---- */

/* The items of a list attribute, whose kind the word before the bracket said. */
static void parse_list(parser *self, op_attr *attr)
{
    base_vec items = {0};

    for (base_expect(self->lx, "["); more(self, "]");) {
        const ir_expr *expr = ir_parse_expr(self->lx, &self->names);
        int64_t unused;

        if (expr && ((attr->kind == OP_ATTR_FLOATS && expr->op != IR_FLOAT) ||
                     (attr->kind == OP_ATTR_INTS && !ir_is_int(expr, &unused)) ||
                     (attr->kind == OP_ATTR_EXPRS && !base_dtype_same(expr->dtype, BASE_I64))))
            fail(self, base_format(self->cx, "'%s' is of the wrong type for this list",
                                   ir_expr_text(self->cx, expr)));
        base_push(self->cx, &items, expr);
        if (!base_accept(self->lx, ","))
            break;
    }
    if (!base_expect(self->lx, "]") || base_failed(self->cx))
        return;
    int64_t *ints = base_array(self->cx, int64_t, items.n);
    double *floats = base_array(self->cx, double, items.n);
    for (int i = 0; i < items.n; i++) {
        const ir_expr *expr = items.at[i];

        ir_is_int(expr, &ints[i]);
        floats[i] = expr->op == IR_FLOAT ? expr->f : 0;
    }
    attr->n = items.n;
    if (attr->kind == OP_ATTR_INTS)
        attr->ints = ints;
    else if (attr->kind == OP_ATTR_FLOATS)
        attr->floats = floats;
    else
        attr->exprs = (const ir_expr *const *)items.at;
}

static void parse_number(parser *self, op_attr *attr)
{
    const ir_expr *expr = ir_parse_expr(self->lx, &self->names);

    if (expr && expr->op == IR_FLOAT)
        *attr = op_attr_float(attr->name, expr->f);
    else if (expr && ir_is_int(expr, &attr->i))
        attr->kind = OP_ATTR_INT;
    else
        fail(self, "expected the value of an attribute");
}

/* @axis(1) @mode("edge") @pads([1, 1]) @shape(exprs [n, 3]) @to(dtype f32) */
static void parse_attribute(parser *self, base_vec *out)
{
    op_attr *attr = base_new(self->cx, op_attr);

    attr->name = base_expect_name(self->lx, "an attribute");
    base_expect(self->lx, "(");
    if (self->lx->tok.kind == BASE_TOK_STRING)
        *attr = op_attr_string(attr->name, expect_string(self, "a string"));
    else if (base_accept(self->lx, "dtype"))
        *attr = op_attr_dtype(attr->name, ir_parse_dtype(self->lx));
    else if (base_at(self->lx, "[") || base_at(self->lx, "floats") || base_at(self->lx, "exprs")) {
        attr->kind = base_accept(self->lx, "floats")  ? OP_ATTR_FLOATS
                     : base_accept(self->lx, "exprs") ? OP_ATTR_EXPRS
                                                      : OP_ATTR_INTS;
        parse_list(self, attr);
    } else
        parse_number(self, attr);
    base_expect(self->lx, ")");
    base_push(self->cx, out, attr);
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

/* Whether a node without results begins here: its kind comes first. */
static bool at_statement(const parser *self)
{
    static const graph_node_kind without_results[] = {GRAPH_CHECK, GRAPH_EXTENTS, GRAPH_INVOKE,
                                                      GRAPH_DEVICE_COPY, GRAPH_KILL};

    for (int i = 0; i < BASE_COUNT(without_results); i++)
        if (base_at(self->lx, graph_kind_text(without_results[i])))
            return true;
    return false;
}

/* The word of a node's kind, and the name that some kinds have behind it. */
static bool parse_kind(parser *self, node_text *text)
{
    for (int i = 0; i < GRAPH_N_KINDS; i++)
        if (base_accept(self->lx, graph_kind_text((graph_node_kind)i))) {
            text->kind = (graph_node_kind)i;
            if (text->kind == GRAPH_CONSTRUCT)
                text->what = expect_string(self, "the name of a constructor");
            if (text->kind == GRAPH_CALL || text->kind == GRAPH_CLOSURE)
                text->what = expect_string(self, "the name of a function");
            if (text->kind == GRAPH_INVOKE)
                text->what = expect_string(self, "the name of a kernel");
            if (text->kind == GRAPH_OP || text->kind == GRAPH_PACK)
                text->what = base_expect_name(self->lx, "an operator");
            return !base_failed(self->cx);
        }
    base_unexpected(
        self->lx,
        "the kind of a node: op, group, call, if, loop, scan, tuple, match, pack, alloc_tensor, ...");
    return false;
}

/* plain (type, ...): the operand types before packing; `_` stands for an absent operand. */
static void parse_plain(parser *self, node_text *text)
{
    text->has_plain = true;
    for (base_expect(self->lx, "("); more(self, ")");) {
        op_type type;
        bool absent = base_accept(self->lx, "_");

        if (!absent && !parse_type(self, &type))
            return;
        base_push(self->cx, &text->plain, absent ? NULL : graph_value_new(self->cx, NULL, type));
        if (!base_accept(self->lx, ","))
            break;
    }
    base_expect(self->lx, ")");
}

static graph_body *parse_body(parser *self, graph_body *outer, const base_vec *operands);

/* Everything to the right of `=`. Nothing is built yet, since types need the results on the left. */
static bool parse_node_text(parser *self, node_text *text, graph_body *body)
{
    text->loc = self->lx->tok.loc;
    if (!parse_kind(self, text))
        return false;
    text->name = expect_string(self, "the name of the node");
    parse_operands(self, &text->in);
    if (base_accept(self->lx, "plain"))
        parse_plain(self, text);
    while (base_accept(self->lx, "@"))
        parse_attribute(self, &text->attrs);
    if (base_accept(self->lx, "impl"))
        text->impl = expect_string(self, "an implementation");
    while (!base_failed(self->cx) && base_at(self->lx, "{"))
        base_push(self->cx, &text->bodies,
                  parse_body(self, body, text->kind == GRAPH_GROUP ? &text->in : NULL));
    return !base_failed(self->cx);
}

static const op_attr *attributes(parser *self, const node_text *text)
{
    op_attr *a = base_array(self->cx, op_attr, text->attrs.n);

    for (int i = 0; i < text->attrs.n; i++)
        a[i] = *(const op_attr *)text->attrs.at[i];
    return a;
}

static graph_node *infer(parser *self, const node_text *text, const base_vec *in)
{
    const op_info *op = op_find(text->what);

    if (!op)
        return base_fail(self->cx, TEC_INVALID, text->loc, "there is no operator '%s'", text->what);
    for (int k = 0; k < in->n && k < op->min_inputs; k++)
        if (!in->at[k])
            return base_fail(self->cx, TEC_INVALID, text->loc, "operand %d of '%s' is left out", k,
                             text->what);
    base_set_where(self->cx, text->loc);
    return graph_node_of(self->m, self->scope, op, text->name, (graph_value *const *)in->at, in->n,
                         attributes(self, text), text->attrs.n);
}

static bool find_impl(parser *self, const node_text *text, graph_node *node, const op_info *op)
{
    for (int i = 0; text->impl && i < op->n_impls; i++)
        if (base_same(op->impls[i].name, text->impl))
            node->impl = &op->impls[i];
    if (text->impl && !node->impl)
        base_fail(self->cx, TEC_INVALID, text->loc, "operator '%s' has no implementation '%s'", op->name,
                  text->impl);
    return !base_failed(self->cx);
}

/* With `plain`, types are inferred from the operands before packing, and the node then reads the packed one.
 */
static graph_node *make_operator(parser *self, const node_text *text)
{
    graph_node *node = infer(self, text, text->has_plain ? &text->plain : &text->in);

    if (!node || !find_impl(self, text, node, node->op))
        return NULL;
    if (!text->has_plain)
        return node;
    if (text->in.n != text->plain.n)
        return base_fail(self->cx, TEC_INVALID, text->loc, "'%s' has %d operands, but 'plain' lists %d types",
                         text->name, text->in.n, text->plain.n);
    graph_node *packed = base_copy(self->cx, node, sizeof *node);
    packed->plain = node;
    packed->in = (graph_value **)text->in.at;
    return packed;
}

/* A packing knows the whole operator that it serves, since the implementation says how to pack. */
static graph_node *make_packing(parser *self, const node_text *text, const graph_type *type, int n_out)
{
    graph_node *plain = text->has_plain ? infer(self, text, &text->plain) : NULL;

    if (!text->has_plain || !text->impl || text->in.n != 1 || !text->in.at[0] || n_out != 1)
        return base_fail(self->cx, TEC_INVALID, text->loc,
                         "a packing needs one operand, one result, 'plain' and an implementation");
    if (!plain || !find_impl(self, text, plain, plain->op))
        return NULL;
    graph_node *node =
        graph_typed_node(self->cx, GRAPH_PACK, text->name, (graph_value *const *)text->in.at, 1, type, 1);
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
static graph_node *make_other(parser *self, const node_text *text, const graph_type *types, int n_out)
{
    base_set_where(self->cx, text->loc);
    graph_node *node = graph_typed_node(self->cx, text->kind, text->name, (graph_value *const *)text->in.at,
                                        text->in.n, types, n_out);

    node->callee = text->what;
    node->attr = attributes(self, text);
    node->n_attrs = text->attrs.n;
    node->body = (graph_body **)text->bodies.at;
    node->n_bodies = text->bodies.n;
    if (text->kind == GRAPH_GROUP)
        node->impl = anchor_of(node->n_bodies ? node->body[0] : NULL);
    return node;
}

/* The values of the text take the place of those that the node was made with. */
static bool adopt_outputs(parser *self, const node_text *text, graph_node *node, const base_vec *out)
{
    if (node->n_out != out->n) {
        base_fail(self->cx, TEC_INVALID, text->loc, "'%s' gives %d value%s, but the text names %d",
                  text->name, node->n_out, node->n_out == 1 ? "" : "s", out->n);
        return false;
    }
    const ir_facts *facts = graph_facts_in(self->m, self->scope);
    for (int k = 0; k < out->n; k++) {
        graph_value *value = out->at[k];
        graph_type said = graph_type_of(value), made = graph_type_of(node->out[k]);

        if (!graph_types_same(facts, &said, &made)) {
            base_fail(self->cx, TEC_INVALID, value->loc, "result %d of '%s' is %s, but the text says %s", k,
                      text->name, graph_type_text(self->cx, &made), graph_type_text(self->cx, &said));
            return false;
        }
        value->node = node;
        value->which = k;
    }
    node->out = (graph_value **)out->at;
    return true;
}

typedef struct {
    parser *p;
    const graph_body *body;
    base_vec *found;
} telling;

static bool tell_extents(void *user, const op_type *type)
{
    const telling *to = user;
    parser *p = to->p;

    for (int d = 0; d < type->n; d++) {
        if (!graph_binds_symbol(to->body, type->dim[d]) || base_map_has(&p->told, type->dim[d]))
            continue;
        base_map_put(p->cx, &p->told, type->dim[d], type->dim[d]);
        if (to->found)
            base_push(p->cx, to->found, type->dim[d]);
    }
    return true;
}

/* Marks the symbols of the body that are an extent of the value's type and have no value yet; `found` takes
 * them, where it is not NULL. */
static void tell_symbols(parser *self, const graph_body *body, const graph_value *value, base_vec *found)
{
    telling to = {self, body, found};
    graph_type t = graph_type_of(value);

    graph_type_each(&t, tell_extents, &to);
}

/* The symbols that the elements of its operand become; what is none of the body's is left to the verifier. */
static void define_elements(parser *self, graph_node *node)
{
    const op_attr *attr = graph_attribute(node, "symbols");

    if (!attr || attr->kind != OP_ATTR_EXPRS)
        return;
    node->symbol = attr->exprs;
    node->n_symbols = attr->n;
    for (int i = 0; i < attr->n; i++)
        base_map_put(self->cx, &self->told, attr->exprs[i], attr->exprs[i]);
}

/* Results of nodes other than operators define the symbols that they are the first to have. */
static void define_symbols(parser *self, graph_node *node)
{
    base_vec symbols = {0};

    if (node->kind == GRAPH_OP || node->kind == GRAPH_PACK || node->kind == GRAPH_GROUP)
        return;
    if (node->kind == GRAPH_EXTENTS) {
        define_elements(self, node);
        return;
    }
    for (int k = 0; k < node->n_out; k++)
        tell_symbols(self, self->scope, node->out[k], &symbols);
    node->symbol = (const ir_expr *const *)symbols.at;
    node->n_symbols = symbols.n;
}

/* results = kind "name"(operands) ...: the results become the node's own values if their types agree. */
static void parse_node(parser *self, graph_body *body)
{
    base_vec out = {0};
    node_text t = {.name = NULL};
    bool has_results = !at_statement(self);

    if (has_results)
        do
            base_push(self->cx, &out, parse_new_value(self));
        while (base_accept(self->lx, ","));
    if (base_failed(self->cx) || (has_results && !base_expect(self->lx, "=")) ||
        !parse_node_text(self, &t, body))
        return;
    graph_type *types = base_array(self->cx, graph_type, out.n);
    for (int k = 0; k < out.n; k++)
        types[k] = graph_type_of(out.at[k]);
    graph_node *node = t.kind == GRAPH_OP     ? make_operator(self, &t)
                       : t.kind == GRAPH_PACK ? make_packing(self, &t, types, out.n)
                                              : make_other(self, &t, types, out.n);
    if (!node || !adopt_outputs(self, &t, node, &out))
        return;
    define_symbols(self, node);
    base_push(self->cx, &body->nodes, node);
}

/* ---- bodies ---- */

static void parse_output(parser *self, graph_body *body)
{
    if (self->lx->tok.kind == BASE_TOK_STRING)
        base_push(self->cx, &body->output_names, expect_string(self, "a name"));
    graph_value *v = parse_operand(self);
    if (!v)
        fail(self, "expected a value as an output, found '_'");
    base_push(self->cx, &body->outputs, v);
}

/* Inputs of a group that stand for constants are those constants. */
static void parse_input(parser *self, graph_body *body, const base_vec *operands)
{
    graph_value *value = parse_new_value(self);
    const graph_value *from =
        value && operands && body->inputs.n < operands->n ? operands->at[body->inputs.n] : NULL;

    if (!value)
        return;
    value->constant = from ? from->constant : NULL;
    tell_symbols(self, body, value, NULL);
    base_push(self->cx, &body->inputs, value);
}

/* ---- scopes ---- */

static bool is_known(const parser *self, const graph_body *body, const char *name)
{
    for (; body; body = body->outer)
        for (int i = 0; i < body->symbols.n; i++)
            if (base_same(((const ir_expr *)body->symbols.at[i])->var.name, name))
                return true;
    return base_dict_has(&self->m->symbol_by_name, name);
}

/* symbols n, m -- of the body, or of the module where `body` is NULL. */
static void parse_symbols(parser *self, graph_body *body)
{
    do {
        const char *name = base_expect_name(self->lx, "a symbol");

        if (name && is_known(self, body, name))
            fail(self, base_format(self->cx, "symbol '%s' is declared twice", name));
        else if (name)
            base_dict_put(self->cx, &self->names.vars, name, graph_symbol_in(self->m, body, name));
    } while (!base_failed(self->cx) && base_accept(self->lx, ","));
}

static void parse_fact(parser *self, graph_body *body)
{
    const ir_expr *e = ir_parse_expr(self->lx, &self->names);

    if (e && !base_is_bool(e->dtype))
        fail(self,
             base_format(self->cx, "expected a condition as a fact, found '%s'", ir_expr_text(self->cx, e)));
    else
        graph_fact_in(self->m, body, e);
    if (e && self->lx->tok.kind == BASE_TOK_STRING)
        base_map_put(self->cx, self->m->meanings, e, (void *)expect_string(self, "what the fact means"));
}

/* The names of the body's symbols mean nothing behind it. */
static void forget_symbols(parser *self, const graph_body *body)
{
    for (int i = 0; i < body->symbols.n; i++)
        base_dict_put(self->cx, &self->names.vars, ((const ir_expr *)body->symbols.at[i])->var.name, NULL);
}

/* One line of a body. Inside a group (`operands`) there are no symbols and facts of its own. */
static void parse_line(parser *self, graph_body *body, const base_vec *operands)
{
    if (base_accept(self->lx, "constant"))
        parse_constant(self);
    else if (base_accept(self->lx, "input"))
        parse_input(self, body, operands);
    else if (base_accept(self->lx, "output"))
        parse_output(self, body);
    else if (!operands && base_accept(self->lx, "symbols"))
        parse_symbols(self, body);
    else if (!operands && base_accept(self->lx, "fact"))
        parse_fact(self, body);
    else
        parse_node(self, body);
}

/* operands: of the group that the body is the inside of; NULL: a function's or a region's, which may bind
 * symbols. */
static graph_body *parse_body(parser *self, graph_body *outer, const base_vec *operands)
{
    graph_body *body = base_new(self->cx, graph_body), *scope = self->scope;

    body->outer = outer;
    body->entry = !outer && self->m->functions.n == 1;
    if (++self->depth > DEEPEST)
        return fail(self, base_format(self->cx, "regions nest deeper than %d", DEEPEST));
    self->scope = operands ? scope : body;
    for (base_expect(self->lx, "{"); more(self, "}");)
        parse_line(self, body, operands);
    base_expect(self->lx, "}");
    forget_symbols(self, body);
    self->scope = scope;
    self->depth--;
    return body;
}

/* ---- modules ---- */

/* (f32[n, 64], f32[64, 10]) */
static void parse_types(parser *self, base_vec *out)
{
    for (base_expect(self->lx, "("); more(self, ")");) {
        op_type *type = base_new(self->cx, op_type);

        if (!parse_type(self, type))
            return;
        base_push(self->cx, out, type);
        if (!base_accept(self->lx, ","))
            break;
    }
    base_expect(self->lx, ")");
}

/* A symbol of the module, or one that only this kernel's types name: in a program, kernels take extents that
 * belong to a function or a region. */
static const ir_expr *parse_kernel_symbol(parser *self, graph_body *scope)
{
    const char *name = base_expect_name(self->lx, "a symbol");
    const ir_expr *s = name ? base_dict_get(&self->m->symbol_by_name, name) : NULL;

    if (s || !name)
        return s;
    s = graph_symbol_in(self->m, scope, name);
    base_dict_put(self->cx, &self->names.vars, name, s);
    return s;
}

/* kernel "matmul" over n (f32[n, 64], f32[64, 10]) -> (f32[n, 10]) */
static void parse_kernel(parser *self)
{
    graph_kernel_type *k = base_new(self->cx, graph_kernel_type);
    base_vec symbols = {0}, params = {0};
    graph_body scope = {.outer = NULL};

    k->name = expect_string(self, "the name of a kernel");
    if (base_accept(self->lx, "over"))
        do
            base_push(self->cx, &symbols, parse_kernel_symbol(self, &scope));
        while (!base_failed(self->cx) && base_accept(self->lx, ","));
    parse_types(self, &params);
    k->n_reads = params.n;
    base_expect(self->lx, "->");
    parse_types(self, &params);
    op_type *types = base_array(self->cx, op_type, params.n);
    for (int i = 0; i < params.n; i++)
        types[i] = *(const op_type *)params.at[i];
    k->n_symbols = symbols.n;
    k->symbol = (const ir_expr *const *)symbols.at;
    k->n_params = params.n;
    k->param = types;
    forget_symbols(self, &scope);
    base_push(self->cx, &self->m->kernels, k);
}

/* case "Leaf" over k (f32[k], "Tree") */
static void parse_case(parser *self, graph_data *data)
{
    graph_body scope = {.outer = NULL};
    base_vec fields = {0};
    const char *name = expect_string(self, "the name of a constructor");

    if (name && base_accept(self->lx, "over"))
        parse_symbols(self, &scope);
    if (!name || base_failed(self->cx) || !parse_parts(self, &fields))
        return;
    graph_data_case(self->m, data, name, parts_of(self, &fields), fields.n)->symbols = scope.symbols;
    forget_symbols(self, &scope);
}

static void parse_data(parser *self)
{
    const char *name = expect_string(self, "the name of a data type");
    graph_data *data = name ? graph_data_new(self->m, name) : NULL;

    for (base_expect(self->lx, "{"); data && more(self, "}");) {
        base_expect(self->lx, "case");
        parse_case(self, data);
    }
    base_expect(self->lx, "}");
}

static void parse_function(parser *self)
{
    const char *name = expect_string(self, "the name of a function");

    if (!name)
        return;
    self->f = graph_function_new(self->m, name);
    graph_body *body = parse_body(self, NULL, NULL);
    if (body)
        self->f->body = body;
}

/* devices "opencl", "opencl" */
static void parse_devices(parser *self)
{
    do {
        const char *kind = expect_string(self, "a kind of device");

        if (kind)
            base_push(self->cx, &self->m->devices, (void *)kind);
    } while (base_accept(self->lx, ","));
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
