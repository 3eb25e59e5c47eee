/* lang/expr.c -- expressions: each is made into nodes of the open body as it is read.
 *
 * There is no tree of the syntax. What is read becomes a node at once, with the type that the graph finds for
 * it, so a faulty expression is told where it stands and with types. Before each node is made, lang_blame
 * says which place in the text its errors belong to, and lang_stand goes back to where reading goes on.
 *
 *     let (a, b) = pair; if less(a, b) { a } else { f(b) }
 *
 * becomes two nodes for the parts of `pair`, a node for the comparison, two regions, one with a call, and a
 * node `if` that has both regions. A region is opened before its block is read and closed behind it: nodes
 * made in between lie in the region, and names that were bound in it are forgotten (p->names is cut to its
 * old length).
 */
#include <string.h>

#include "lang/inside.h"

/* A value as the result of reading, or an error that no one has told of. */
static graph_value *first(const graph_node *node)
{
    return node ? node->out[0] : NULL;
}

/* ---- names ---- */

/* `_` takes the value without a name for it. */
static void bind_name(lang_parser *parser, const char *name, graph_value *value)
{
    lang_name *n = base_new(parser->cx, lang_name);

    *n = (lang_name){.name = name, .value = value};
    if (base_same(name, "_"))
        return;
    base_push(parser->cx, &parser->names, n);
    if (!base_map_has(parser->m->names, value))
        base_map_put(parser->cx, parser->m->names, value, (void *)name);
}

/* NAME or (pattern, ...): the parts of a tuple, by their places. The parts become nodes even where their name
 * is `_`. */
bool lang_bind_pattern(lang_parser *parser, graph_value *value)
{
    const char *at = parser->at;
    int k = 0;

    if (!lang_accept(parser, "(")) {
        const char *name = lang_expect_name(parser, "a name or '('");
        if (name)
            bind_name(parser, name, value);
        return name;
    }
    graph_type t = graph_type_of(value);
    bool open = lang_is_open(parser, &t);
    do {
        if (open) {
            if (!lang_bind_pattern(parser, lang_any_value(parser)))
                return false;
            continue;
        }
        if (t.kind != GRAPH_TUPLE || k >= t.n)
            return lang_fail(parser, at, "the pattern does not fit a value of type %s",
                             graph_type_text(parser->cx, &t));
        lang_blame(parser, at);
        graph_value *part = graph_add_field(parser->f, "part", value, k++);
        lang_stand(parser);
        if (!part || !lang_bind_pattern(parser, part))
            return false;
    } while (lang_accept(parser, ","));
    if (k < t.n && !open)
        return lang_fail(parser, at, "the pattern has %d names, expected %d for %s", k, t.n,
                         graph_type_text(parser->cx, &t));
    return lang_expect(parser, ")");
}

/* ---- blocks ---- */

/*     let PATTERN = EXPRESSION
 *
 * The pattern binds names that the expression must not see, and its types are known only from the expression.
 * So the pattern is stepped over first, the expression read, the pattern read, and the lexer set behind the
 * expression. Copies of the lexer do for this, as a lexer is a place in the text. */
static bool read_let(lang_parser *parser)
{
    const base_lexer pattern = *parser->lx;
    int depth = 0;

    while (parser->lx->tok.kind != BASE_TOK_END && !lang_at(parser, "=") && depth >= 0) {
        depth += lang_at(parser, "(") ? 1 : lang_at(parser, ")") ? -1 : 0;
        lang_advance(parser);
    }
    if (!lang_expect(parser, "="))
        return false;
    graph_value *value = lang_expression(parser);
    if (!value)
        return false;
    const base_lexer rest = *parser->lx;
    *parser->lx = pattern;
    lang_stand(parser);
    if (!lang_bind_pattern(parser, value))
        return false;
    if (!lang_at(parser, "="))
        return lang_expect(parser, "=");
    *parser->lx = rest;
    lang_stand(parser);
    return true;
}

/* What is expected of the block is expected of its value. */
graph_value *lang_block(lang_parser *parser)
{
    const graph_type *expected = parser->expected;
    int n = parser->names.n;

    parser->expected = NULL;
    if (!lang_expect(parser, "{"))
        return NULL;
    while (lang_accept(parser, "let"))
        if (!read_let(parser))
            return NULL;
    parser->expected = expected;
    graph_value *value = lang_expression(parser);
    parser->names.n = n;
    return value && lang_expect(parser, "}") ? value : NULL;
}

/* A region that gives the value of what is read by `read`. The region is closed even after an error, so that
 * the body is the one that was open before. */
static graph_body *region_of(lang_parser *p, graph_value *(*read)(lang_parser *parser))
{
    graph_value *v = read(p);

    if (v)
        graph_output(p->f, "value", v);
    graph_body *region = graph_region_close(p->f);
    return v ? region : NULL;
}

/* The regions are read in the order of the text, and both before the node is made: it needs their types. */
static graph_value *read_if(lang_parser *parser, const char *at)
{
    const graph_type *expected = parser->expected;

    parser->expected = NULL;
    graph_value *condition = lang_expression(parser);

    if (!condition)
        return NULL;
    graph_region_open(parser->f);
    parser->expected = expected;
    graph_body *then = region_of(parser, lang_block);
    if (!then || !lang_expect(parser, "else"))
        return NULL;
    graph_region_open(parser->f);
    parser->expected = expected;
    graph_body *otherwise = region_of(parser, lang_block);
    graph_value *value = otherwise ? lang_open_regions(parser, (graph_body *[]){then, otherwise}, 2) : NULL;
    if (lang_some_are_open(parser, &condition, 1))
        condition = lang_some_value(parser, &(graph_type){.tensor = {.dtype = BASE_BOOL}});
    lang_blame(parser, at);
    if (!value)
        value = first(graph_add_if(parser->f, "if", condition, then, otherwise));
    lang_stand(parser);
    return value;
}

/* ---- match ---- */

/* The fields as inputs of the open region; unknown extents are symbols of the region. A type List = Nil |
 * Cons(f32[?], List) has an extent that only the value knows: in the region of the arm it gets a symbol of
 * its own. */
static void open_fields(lang_parser *parser, const graph_case *branch, graph_value **out)
{
    graph_instance i = {.cx = parser->cx};

    for (int k = 0; k < branch->symbols.n; k++)
        base_map_put(parser->cx, &i.map.vars, branch->symbols.at[k],
                     graph_symbol_in(parser->m, parser->f->body, NULL));
    for (int k = 0; k < branch->n; k++) {
        graph_type t = graph_instance_type(&i, &branch->field[k]);
        out[k] = graph_typed_input(parser->f, "field", &t);
    }
}

/* (a, b) behind a constructor's name. A constructor without fields has no parentheses. */
static bool bind_fields(lang_parser *parser, const graph_case *branch, graph_value *const *field,
                        const char *at)
{
    int n = 0;

    if (lang_accept(parser, "("))
        do {
            if (n == branch->n)
                break;
            if (!lang_bind_pattern(parser, field[n++]))
                return false;
        } while (lang_accept(parser, ","));
    if (n != branch->n || (n > 0 && !lang_at(parser, ")")))
        return lang_fail(parser, at, "'%s' has %d fields, which the pattern must name", branch->name,
                         branch->n);
    return n == 0 || lang_expect(parser, ")");
}

/* Constructor(fields) => value; gives which constructor, -1 with an error. The names of the pattern hold for
 * this arm only. */
static int read_arm(lang_parser *parser, const graph_data *data, graph_body **body)
{
    const char *at = parser->at, *name = lang_expect_name(parser, "a constructor");
    int which, n = parser->names.n;
    const graph_case *c = name ? graph_find_case(data, name, &which) : NULL;

    if (name && !c)
        lang_fail(parser, at, "'%s' has no constructor '%s'", data->name, name);
    if (!c)
        return -1;
    if (body[which]) {
        lang_fail(parser, at, "constructor '%s' has two arms in this match", name);
        return -1;
    }
    graph_value **field = base_array(parser->cx, graph_value *, c->n + 1);
    graph_region_open(parser->f);
    open_fields(parser, c, field);
    if (!bind_fields(parser, c, field, at) || !lang_expect(parser, "=>"))
        return -1;
    body[which] = region_of(parser, lang_expression);
    parser->names.n = n;
    return body[which] ? which : -1;
}

/* An arm for each constructor, in any order, but as regions in the order of the type: the node finds a region
 * by the number of the constructor. A constructor that lacks its arm is an error here, so that no value can
 * fall through. */
static graph_value *read_match(lang_parser *parser, const char *at)
{
    const graph_type *expected = parser->expected;

    parser->expected = NULL;
    graph_value *value = lang_expression(parser);
    graph_type t;

    if (!value || !lang_expect(parser, "{"))
        return NULL;
    if (lang_some_are_open(parser, &value, 1) && !(value = lang_open_match(parser, value)))
        return NULL;
    t = graph_type_of(value);
    if (t.kind != GRAPH_DATA)
        return lang_fail(parser, at, "match takes a value of a data type, found %s",
                         graph_type_text(parser->cx, &t));
    const graph_data *data = graph_find_data(parser->m, t.data);
    graph_body **body = base_array(parser->cx, graph_body *, data->cases.n);
    while (!lang_at(parser, "}")) {
        parser->expected = expected;
        if (read_arm(parser, data, body) < 0)
            return NULL;
        lang_accept(parser, ",");
    }
    for (int k = 0; k < data->cases.n; k++)
        if (!body[k])
            return lang_fail(parser, at, "the match has no arm for constructor '%s'",
                             ((const graph_case *)data->cases.at[k])->name);
    lang_advance(parser);
    graph_value *open = lang_open_regions(parser, body, data->cases.n);
    lang_blame(parser, at);
    value = open ? open : first(graph_add_match(parser->f, "match", value, body, data->cases.n));
    lang_stand(parser);
    return value;
}

/* ---- what binds most closely ---- */

/* One part in parentheses is only grouped. */
static graph_value *read_tuple(lang_parser *parser, const char *at)
{
    const graph_type *expected = parser->expected;
    base_vec part = {0};

    do {
        bool inside = expected && expected->kind == GRAPH_TUPLE && part.n < expected->n;
        parser->expected = inside                 ? &expected->part[part.n]
                           : lang_at(parser, ")") ? NULL
                           : part.n               ? NULL
                                                  : expected;
        graph_value *value = lang_expression(parser);
        if (!value)
            return NULL;
        base_push(parser->cx, &part, value);
    } while (lang_accept(parser, ","));
    if (!lang_expect(parser, ")"))
        return NULL;
    if (part.n == 1)
        return part.at[0];
    lang_blame(parser, at);
    graph_value *value = graph_add_tuple(parser->f, "tuple", (graph_value *const *)part.at, part.n);
    lang_stand(parser);
    return value;
}

/* A number stands first since it is known by its kind; then what begins by a symbol or a word; a name
 * last. */
static graph_value *primary(lang_parser *parser)
{
    const char *at = parser->at, *name;

    if (parser->lx->tok.kind == BASE_TOK_INT || parser->lx->tok.kind == BASE_TOK_FLOAT)
        return lang_literal(parser);
    if (lang_accept(parser, "("))
        return read_tuple(parser, at);
    if (lang_at(parser, "{"))
        return lang_block(parser);
    if (lang_accept(parser, "if"))
        return read_if(parser, at);
    if (lang_accept(parser, "match"))
        return read_match(parser, at);
    name = lang_expect_name(parser, "an expression");
    return name ? lang_read_named(parser, name, at) : NULL;
}

/* One minus only: -x is the operator neg, and there are no negative literals. */
static graph_value *unary(lang_parser *parser)
{
    const char *at = parser->at;

    if (!lang_accept(parser, "-"))
        return primary(parser);
    graph_value *v = primary(parser);
    return v ? lang_add_operator(parser, op_find("neg"), at, &v, 1, NULL, 0) : NULL;
}

/* ---- operators by symbol ---- */

static const struct {
    const char *symbol, *op;
    int level;
} binary[] = {{"==", "equal", 0}, {"!=", "not_equal", 0}, {"<=", "less_equal", 0}, {">=", "greater_equal", 0},
              {"<", "less", 0},   {">", "greater", 0},    {"+", "add", 1},         {"-", "sub", 1},
              {"*", "mul", 2},    {"/", "div", 2}};

static int binary_at(const lang_parser *parser, int level)
{
    for (int i = 0; i < BASE_COUNT(binary); i++)
        if (binary[i].level == level && lang_at(parser, binary[i].symbol))
            return i;
    return -1;
}

/* Level 0 compares, 1 adds, 2 multiplies; equal levels group to the left. The recursion goes up by levels: a
 * - b * c reads a, then `-`, then all of b * c on level 2. A number beside a tensor takes the tensor's type
 * before the node is made. */
static graph_value *operators(lang_parser *parser, int level)
{
    graph_value *left = level < 3 ? operators(parser, level + 1) : unary(parser);

    for (int k; left && level < 3 && (k = binary_at(parser, level)) >= 0;) {
        const char *at = parser->at;

        lang_advance(parser);
        graph_value *right = operators(parser, level + 1);
        if (!right)
            return NULL;
        lang_blame(parser, at);
        graph_value *l = lang_literal_as(parser, left, right), *r = lang_literal_as(parser, right, left);
        left = l && r ? lang_add_operator(parser, op_find(binary[k].op), at, (graph_value *const[]){l, r}, 2,
                                          NULL, 0)
                      : NULL;
    }
    return left;
}

/* The depth is bounded because this parser recurses, and its text may come from anywhere. The expected type
 * is this expression's alone: a number does not ask for it, and the type may lie in a frame that ends. */
graph_value *lang_expression(lang_parser *parser)
{
    if (++parser->depth > 200)
        return lang_fail(parser, parser->at, "types and expressions nest deeper than 200");
    graph_value *v = operators(parser, 0);
    parser->expected = NULL;
    parser->depth--;
    return v;
}
