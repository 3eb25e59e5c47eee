/* lang/value.c -- calls by declared types, and numbers. */
#include <string.h>

#include "graph/rules.h"
#include "lang/inside.h"

/* ---- calls ---- */

/* " 'x'" where the program calls the value so; otherwise "". */
static const char *name_text(const lang_parser *parser, const graph_value *value)
{
    const char *name = base_map_get(parser->m->names, value);

    name = name ? name : value->name;
    return name ? base_format(parser->cx, " '%s'", name) : "";
}

/* Whether each operand has the declared type, with one value for each symbol of the signature. In two passes:
 * all operands bind symbols first, then all are compared, as a symbol may be bound by a later operand than
 * the one that uses it in a sum. */
static bool operands_fit(lang_parser *parser, const lang_def *def, graph_instance *instance, const char *at,
                         graph_value *const *in, int count)
{
    const ir_facts *facts = graph_facts_in(parser->m, parser->f->body);

    if (count != def->n_params)
        return lang_fail(parser, at, "'%s' takes %d operands, found %d", def->name, def->n_params, count);
    for (int k = 0; k < count; k++) {
        graph_type found = graph_type_of(in[k]);
        graph_instance_bind(instance, &def->param[k], &found);
    }
    graph_instance_solve(instance, def->param, graph_types_of(parser->cx, in, count), count);
    lang_blame(parser, at);
    graph_demand_solved(parser->m, parser->f->body, instance, base_format(parser->cx, "'%s'", def->name));
    for (int k = 0; k < count; k++) {
        graph_type found = graph_type_of(in[k]), expected = graph_instance_type(instance, &def->param[k]);
        const char *what =
            base_format(parser->cx, "'%s': operand %d%s is", def->name, k + 1, name_text(parser, in[k]));

        graph_demand_type(parser->m, parser->f->body, what, &found, &expected);
        facts = graph_facts_in(parser->m, parser->f->body);
        bool any = lang_has_any(parser, &expected) || lang_has_any(parser, &found);
        if (any ? !lang_may_fit(parser, &expected, &found) : !graph_types_same(facts, &expected, &found))
            return lang_fail(parser, at, "'%s': operand %d is %s, expected %s", def->name, k + 1,
                             graph_type_text(parser->cx, &found), graph_type_text(parser->cx, &expected));
    }
    return true;
}

/* Each symbol of the result that the operands do not determine, as the length of a list that is read, becomes
 * a new symbol of this call. */
graph_value *lang_call(lang_parser *parser, const lang_def *def, const char *at, graph_value *const *in,
                       int count)
{
    graph_instance i = graph_instance_of_body(parser->cx, def->signature);
    base_vec symbols = {0};

    if (!operands_fit(parser, def, &i, at, in, count))
        return NULL;
    lang_blame(parser, at);
    graph_type t = graph_seen_outside(parser->f, &i, def->signature, &def->result, &symbols);
    graph_node *node =
        graph_add_parts(parser->f, &(graph_node_parts){.kind = GRAPH_CALL,
                                                       .callee = def->f->name,
                                                       .name = def->name,
                                                       .in = in,
                                                       .n_in = count,
                                                       .result = &t,
                                                       .n_results = 1,
                                                       .symbol = (const ir_expr *const *)symbols.at,
                                                       .n_symbols = symbols.n});
    lang_stand(parser);
    return node->out[0];
}

/* ---- numbers ---- */

/* Both forms of the number: which one counts is known only when its type is. */
typedef struct {
    double f;
    int64_t i;
    bool whole;
} number;

static graph_value *constant(lang_parser *parser, const void *data, int bytes, base_dtype dtype)
{
    op_constant *c = base_new(parser->cx, op_constant);

    *c = (op_constant){
        .type = {.dtype = dtype}, .data = base_copy(parser->cx, data, (size_t)bytes), .bytes = bytes};
    return graph_constant(parser->f, "number", c);
}

/* Where a number stands beside a tensor, it takes the tensor's element type; a fraction or a number too large
 * for an integer type, and any other type, is refused. */
static graph_value *number_as(lang_parser *parser, const number *self, base_dtype dtype)
{
    if (base_dtype_same(dtype, BASE_F32))
        return constant(parser, &(float){(float)self->f}, 4, dtype);
    if (base_dtype_same(dtype, BASE_F64))
        return constant(parser, &self->f, 8, dtype);
    if (base_dtype_same(dtype, BASE_I64) && self->whole)
        return constant(parser, &self->i, 8, dtype);
    if (base_dtype_same(dtype, BASE_I32) && self->whole && self->i <= INT32_MAX)
        return constant(parser, &(int32_t){(int32_t)self->i}, 4, dtype);
    return lang_fail(parser, parser->at, "the number %g is not a value of the other operand's type", self->f);
}

/* On its own, 1 is an i64 and 1.0 an f32. The lexer wraps what is 2^63 or more to a negative number. */
graph_value *lang_literal(lang_parser *parser)
{
    number *n = base_new(parser->cx, number);

    *n = (number){parser->lx->tok.f, parser->lx->tok.i, parser->lx->tok.kind == BASE_TOK_INT};
    if (n->whole && n->i < 0)
        return lang_fail(parser, parser->at, "the number is 2^63 or more");
    graph_value *value = number_as(parser, n, n->whole ? BASE_I64 : BASE_F32);
    base_map_put(parser->cx, &parser->literals, value, n);
    lang_advance(parser);
    return value;
}

/* `value` is returned as it is unless it is a number beside a tensor of another type. The constant made first
 * stays unused. */
graph_value *lang_literal_as(lang_parser *parser, graph_value *value, const graph_value *other)
{
    const number *n = base_map_get(&parser->literals, value);
    bool tensor = other->type.n >= 0 && !base_map_has(&parser->literals, other);

    return n && tensor && !base_dtype_same(value->type.dtype, other->type.dtype)
               ? number_as(parser, n, other->type.dtype)
               : value;
}
