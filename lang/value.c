/* lang/value.c -- calls by declared types, and numbers. */
#include <string.h>

#include "graph/rules.h"
#include "lang/inside.h"

/* ---- calls ---- */

/* Whether each operand has the declared type, with one value for each symbol of the signature. In two passes:
 * all operands bind symbols first, then all are compared, as a symbol may be bound by a later operand than
 * the one that uses it in a sum. */
static bool operands_fit(lang_parser *p, const lang_def *d, graph_instance *i, const char *at,
                         graph_value *const *in, int n)
{
    const ir_facts *facts = graph_facts_in(p->m, p->f->body);

    if (n != d->n_params)
        return lang_fail(p, at, "'%s' takes %d operands, found %d", d->name, d->n_params, n);
    for (int k = 0; k < n; k++) {
        graph_type found = graph_type_of(in[k]);
        graph_instance_bind(i, &d->param[k], &found);
    }
    for (int k = 0; k < n; k++) {
        graph_type found = graph_type_of(in[k]), expected = graph_instance_type(i, &d->param[k]);
        if (!graph_types_same(facts, &expected, &found))
            return lang_fail(p, at, "'%s': operand %d is %s, expected %s", d->name, k + 1,
                             graph_type_text(p->cx, &found), graph_type_text(p->cx, &expected));
    }
    return true;
}

/* Each symbol of the result that the operands do not determine, as the length of a list that is read, becomes
 * a new symbol of this call. */
graph_value *lang_call(lang_parser *p, const lang_def *d, const char *at, graph_value *const *in, int n)
{
    graph_instance i = graph_instance_of_body(p->cx, d->signature);
    base_vec symbols = {0};

    if (!operands_fit(p, d, &i, at, in, n))
        return NULL;
    lang_blame(p, at);
    graph_type t = graph_seen_outside(p->f, &i, d->signature, &d->result, &symbols);
    graph_node *node = graph_add_parts(p->f, &(graph_node_parts){.kind = GRAPH_CALL,
                                                                 .callee = d->f->name,
                                                                 .name = d->name,
                                                                 .in = in,
                                                                 .n_in = n,
                                                                 .result = &t,
                                                                 .n_results = 1,
                                                                 .symbol = (const ir_expr *const *)symbols.at,
                                                                 .n_symbols = symbols.n});
    lang_stand(p);
    return node->out[0];
}

/* ---- numbers ---- */

/* Both forms of the number: which one counts is known only when its type is. */
typedef struct {
    double f;
    int64_t i;
    bool whole;
} number;

static graph_value *constant(lang_parser *p, const void *data, int bytes, base_dtype t)
{
    op_constant *c = base_new(p->cx, op_constant);

    *c = (op_constant){.type = {.dtype = t}, .data = base_copy(p->cx, data, (size_t)bytes), .bytes = bytes};
    return graph_constant(p->f, "number", c);
}

/* Where a number stands beside a tensor, it takes the tensor's element type; a fraction or a number too large
 * for an integer type, and any other type, is refused. */
static graph_value *number_as(lang_parser *p, const number *n, base_dtype t)
{
    if (base_dtype_same(t, BASE_F32))
        return constant(p, &(float){(float)n->f}, 4, t);
    if (base_dtype_same(t, BASE_F64))
        return constant(p, &n->f, 8, t);
    if (base_dtype_same(t, BASE_I64) && n->whole)
        return constant(p, &n->i, 8, t);
    if (base_dtype_same(t, BASE_I32) && n->whole && n->i <= INT32_MAX)
        return constant(p, &(int32_t){(int32_t)n->i}, 4, t);
    return lang_fail(p, p->at, "the number %g is no value of the other side's type", n->f);
}

/* On its own, 1 is an i64 and 1.0 an f32. The lexer wraps what is 2^63 or more to a negative number. */
graph_value *lang_literal(lang_parser *p)
{
    number *n = base_new(p->cx, number);

    *n = (number){p->lx->tok.f, p->lx->tok.i, p->lx->tok.kind == BASE_TOK_INT};
    if (n->whole && n->i < 0)
        return lang_fail(p, p->at, "the number is 2^63 or more");
    graph_value *v = number_as(p, n, n->whole ? BASE_I64 : BASE_F32);
    base_map_put(p->cx, &p->literals, v, n);
    lang_advance(p);
    return v;
}

/* `v` is returned as it is unless it is a number beside a tensor of another type. The constant made first
 * stays unused. */
graph_value *lang_literal_as(lang_parser *p, graph_value *v, const graph_value *other)
{
    const number *n = base_map_get(&p->literals, v);
    bool tensor = other->type.n >= 0 && !base_map_has(&p->literals, other);

    return n && tensor && !base_dtype_same(v->type.dtype, other->type.dtype)
               ? number_as(p, n, other->type.dtype)
               : v;
}
