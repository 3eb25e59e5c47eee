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

static graph_value *expression(lang_parser *p);

/* A value as the result of reading, or an error that no one has told of. */
static graph_value *first(const graph_node *node)
{
    return node ? node->out[0] : NULL;
}

/* ---- names ---- */

/* From the end, so that an inner name hides an outer one. */
static graph_value *find_name(const lang_parser *p, const char *name)
{
    for (int i = p->names.n - 1; i >= 0; i--) {
        const lang_name *n = p->names.at[i];

        if (base_same(n->name, name))
            return n->value;
    }
    return NULL;
}

/* `_` takes the value without a name for it. */
static void bind_name(lang_parser *p, const char *name, graph_value *v)
{
    lang_name *n = base_new(p->cx, lang_name);

    *n = (lang_name){name, v};
    if (!base_same(name, "_"))
        base_push(p->cx, &p->names, n);
}

/* NAME or (pattern, ...): the parts of a tuple, by their places. The parts become nodes even where their name
 * is `_`. */
static bool bind_pattern(lang_parser *p, graph_value *v)
{
    const char *at = p->at;
    int k = 0;

    if (!lang_accept(p, "(")) {
        const char *name = lang_expect_name(p, "a name or '('");
        if (name)
            bind_name(p, name, v);
        return name;
    }
    graph_type t = graph_type_of(v);
    do {
        if (t.kind != GRAPH_TUPLE || k >= t.n)
            return lang_fail(p, at, "the pattern does not fit a value of type %s",
                             graph_type_text(p->cx, &t));
        lang_blame(p, at);
        graph_value *part = graph_add_field(p->f, "part", v, k++);
        lang_stand(p);
        if (!part || !bind_pattern(p, part))
            return false;
    } while (lang_accept(p, ","));
    if (k < t.n)
        return lang_fail(p, at, "the pattern has %d names, expected %d for %s", k, t.n,
                         graph_type_text(p->cx, &t));
    return lang_expect(p, ")");
}

/* ---- blocks ---- */

/*     let PATTERN = EXPRESSION
 *
 * The pattern binds names that the expression must not see, and its types are known only from the expression.
 * So the pattern is stepped over first, the expression read, the pattern read, and the lexer set behind the
 * expression. Copies of the lexer do for this, as a lexer is a place in the text. */
static bool read_let(lang_parser *p)
{
    const base_lexer pattern = *p->lx;
    int depth = 0;

    while (p->lx->tok.kind != BASE_TOK_END && !lang_at(p, "=") && depth >= 0) {
        depth += lang_at(p, "(") ? 1 : lang_at(p, ")") ? -1 : 0;
        lang_advance(p);
    }
    if (!lang_expect(p, "="))
        return false;
    graph_value *v = expression(p);
    if (!v)
        return false;
    const base_lexer rest = *p->lx;
    *p->lx = pattern;
    lang_stand(p);
    if (!bind_pattern(p, v))
        return false;
    if (!lang_at(p, "="))
        return lang_expect(p, "=");
    *p->lx = rest;
    lang_stand(p);
    return true;
}

graph_value *lang_block(lang_parser *p)
{
    int n = p->names.n;

    if (!lang_expect(p, "{"))
        return NULL;
    while (lang_accept(p, "let"))
        if (!read_let(p))
            return NULL;
    graph_value *v = expression(p);
    p->names.n = n;
    return v && lang_expect(p, "}") ? v : NULL;
}

/* A region that gives the value of what is read by `read`. The region is closed even after an error, so that
 * the body is the one that was open before. */
static graph_body *region_of(lang_parser *p, graph_value *(*read)(lang_parser *p))
{
    graph_value *v = read(p);

    if (v)
        graph_output(p->f, "value", v);
    graph_body *region = graph_region_close(p->f);
    return v ? region : NULL;
}

/* The regions are read in the order of the text, and both before the node is made: it needs their types. */
static graph_value *read_if(lang_parser *p, const char *at)
{
    graph_value *condition = expression(p);

    if (!condition)
        return NULL;
    graph_region_open(p->f);
    graph_body *then = region_of(p, lang_block);
    if (!then || !lang_expect(p, "else"))
        return NULL;
    graph_region_open(p->f);
    graph_body *otherwise = region_of(p, lang_block);
    lang_blame(p, at);
    graph_value *v = first(graph_add_if(p->f, "if", condition, then, otherwise));
    lang_stand(p);
    return v;
}

/* ---- match ---- */

/* The fields as inputs of the open region; unknown extents are symbols of the region. A type List = Nil |
 * Cons(f32[?], List) has an extent that only the value knows: in the region of the arm it gets a symbol of
 * its own. */
static void open_fields(lang_parser *p, const graph_case *c, graph_value **out)
{
    graph_instance i = {.cx = p->cx};

    for (int k = 0; k < c->symbols.n; k++)
        base_map_put(p->cx, &i.map.vars, c->symbols.at[k], graph_symbol_in(p->m, p->f->body, NULL));
    for (int k = 0; k < c->n; k++) {
        graph_type t = graph_instance_type(&i, &c->field[k]);
        out[k] = graph_typed_input(p->f, "field", &t);
    }
}

/* (a, b) behind a constructor's name. A constructor without fields has no parentheses. */
static bool bind_fields(lang_parser *p, const graph_case *c, graph_value *const *field, const char *at)
{
    int n = 0;

    if (lang_accept(p, "("))
        do {
            if (n == c->n)
                break;
            if (!bind_pattern(p, field[n++]))
                return false;
        } while (lang_accept(p, ","));
    if (n != c->n || (n > 0 && !lang_at(p, ")")))
        return lang_fail(p, at, "'%s' has %d fields, which the pattern must name", c->name, c->n);
    return n == 0 || lang_expect(p, ")");
}

/* Constructor(fields) => value; gives which constructor, -1 with an error. The names of the pattern hold for
 * this arm only. */
static int read_arm(lang_parser *p, const graph_data *d, graph_body **body)
{
    const char *at = p->at, *name = lang_expect_name(p, "a constructor");
    int which, n = p->names.n;
    const graph_case *c = name ? graph_find_case(d, name, &which) : NULL;

    if (name && !c)
        lang_fail(p, at, "'%s' has no constructor '%s'", d->name, name);
    if (!c)
        return -1;
    if (body[which]) {
        lang_fail(p, at, "'%s' stands twice in this match", name);
        return -1;
    }
    graph_value **field = base_array(p->cx, graph_value *, c->n + 1);
    graph_region_open(p->f);
    open_fields(p, c, field);
    if (!bind_fields(p, c, field, at) || !lang_expect(p, "=>"))
        return -1;
    body[which] = region_of(p, expression);
    p->names.n = n;
    return body[which] ? which : -1;
}

/* An arm for each constructor, in any order, but as regions in the order of the type: the node finds a region
 * by the number of the constructor. A constructor that lacks its arm is an error here, so that no value can
 * fall through. */
static graph_value *read_match(lang_parser *p, const char *at)
{
    graph_value *v = expression(p);
    graph_type t;

    if (!v || !lang_expect(p, "{"))
        return NULL;
    t = graph_type_of(v);
    if (t.kind != GRAPH_DATA)
        return lang_fail(p, at, "match takes a value of a data type, found %s", graph_type_text(p->cx, &t));
    const graph_data *d = graph_find_data(p->m, t.data);
    graph_body **body = base_array(p->cx, graph_body *, d->cases.n);
    while (!lang_at(p, "}")) {
        if (read_arm(p, d, body) < 0)
            return NULL;
        lang_accept(p, ",");
    }
    for (int k = 0; k < d->cases.n; k++)
        if (!body[k])
            return lang_fail(p, at, "the match lacks '%s'", ((const graph_case *)d->cases.at[k])->name);
    lang_advance(p);
    lang_blame(p, at);
    v = first(graph_add_match(p->f, "match", v, body, d->cases.n));
    lang_stand(p);
    return v;
}

/* ---- operators by name ---- */

/* Lists that operators take as extents, also where all of them are numbers. [2, 4] as a shape must be of the
 * same kind as [n, 4]. */
static bool holds_extents(const char *attribute)
{
    return base_same(attribute, "shape") || base_same(attribute, "values");
}

/* name = 1, name = 0.5, name = [n, 4]; lists may have extents. All symbols of the bodies around may occur in
 * a list, from the innermost outwards. */
static bool read_attr(lang_parser *p, const char *name, op_attr *out)
{
    base_vec symbols = {0}, items = {0};
    int64_t i;

    if (p->lx->tok.kind == BASE_TOK_FLOAT) {
        *out = op_attr_float(name, p->lx->tok.f);
        lang_advance(p);
        return !base_failed(p->cx);
    }
    if (!lang_accept(p, "[")) {
        if (!base_expect_int(p->lx, "a number or a list", &i))
            return false;
        lang_stand(p);
        *out = op_attr_int(name, i);
        return true;
    }
    for (const graph_body *b = p->f->body; b; b = b->outer)
        for (int k = 0; k < b->symbols.n; k++)
            base_push(p->cx, &symbols, b->symbols.at[k]);
    do {
        const ir_expr *e = lang_extent(p, &(lang_scope){&symbols, NULL});
        if (!e)
            return false;
        base_push(p->cx, &items, e);
    } while (lang_accept(p, ","));
    int64_t *number = base_array(p->cx, int64_t, items.n);
    bool known = true;
    for (int k = 0; k < items.n; k++)
        known = ir_is_int(items.at[k], &number[k]) && known;
    *out = known && !holds_extents(name)
               ? op_attr_ints(p->cx, name, number, items.n)
               : op_attr_exprs(p->cx, name, (const ir_expr *const *)items.at, items.n);
    return lang_expect(p, "]");
}

typedef struct {
    base_vec values; /* graph_value * */
    op_attr attr[16];
    int n_attrs;
} arguments;

/* (value, ..., name = attribute, ...) Whether a name is an attribute is seen from the '=' behind it, for
 * which the lexer looks ahead by one token. A comma at the end is allowed. */
static bool read_arguments(lang_parser *p, arguments *a)
{
    if (!lang_expect(p, "("))
        return false;
    while (!lang_at(p, ")")) {
        const base_token *next = &p->lx->next;

        if (p->lx->tok.kind == BASE_TOK_NAME && next->kind == BASE_TOK_SYMBOL && base_same(next->text, "=")) {
            const char *name = p->lx->tok.text;

            lang_advance(p);
            lang_advance(p);
            if (a->n_attrs == BASE_COUNT(a->attr))
                return lang_fail(p, p->at, "an operator has at most %d attributes", a->n_attrs);
            if (!read_attr(p, name, &a->attr[a->n_attrs++]))
                return false;
        } else {
            graph_value *v = expression(p);
            if (!v)
                return false;
            base_push(p->cx, &a->values, v);
        }
        if (!lang_accept(p, ","))
            break;
    }
    return lang_expect(p, ")");
}

/* One result as it is, several as a tuple. */
static graph_value *add_operator(lang_parser *p, const op_info *op, const char *at, graph_value *const *in,
                                 int n, const op_attr *attr, int n_attrs)
{
    lang_blame(p, at);
    graph_node *node = graph_add_node(p->f, op, op->name, in, n, attr, n_attrs);
    graph_value *v = !node              ? NULL
                     : node->n_out == 1 ? node->out[0]
                                        : graph_add_tuple(p->f, op->name, node->out, node->n_out);

    lang_stand(p);
    return v;
}

/* Names of constructors are unique in a program, so the first data type that has one is the right one. */
static graph_value *construct(lang_parser *p, const char *name, const char *at, const arguments *a)
{
    int which;

    for (int i = 0; i < p->m->data.n; i++) {
        const graph_data *d = p->m->data.at[i];

        if (!graph_find_case(d, name, &which))
            continue;
        lang_blame(p, at);
        graph_value *v =
            graph_add_construct(p->f, d->name, name, name, (graph_value *const *)a->values.at, a->values.n);
        lang_stand(p);
        return v;
    }
    return lang_fail(p, at, "there is no value, function, constructor or operator '%s'", name);
}

/* name, or name(arguments): a value in scope, a function of the program, an operator, a constructor. A value
 * hides functions and operators, a function hides an operator of its name. A constructor without fields is a
 * name alone, so the last case is reached with and without arguments. */
static graph_value *read_named(lang_parser *p, const char *name, const char *at)
{
    arguments a = {0};
    bool called = lang_at(p, "(") && !p->lx->tok.space_before; /* on its own, a tuple follows */
    graph_value *v = called ? NULL : find_name(p, name);
    const lang_def *d = lang_find_def(p, name);
    const op_info *op = op_find(name);

    if (v || (called && !read_arguments(p, &a)))
        return v;
    graph_value *const *in = (graph_value *const *)a.values.at;
    if (called && op && !d)
        return add_operator(p, op, at, in, a.values.n, a.attr, a.n_attrs);
    if (a.n_attrs > 0)
        return lang_fail(p, at, "'%s' is no operator, so it has no attribute '%s'", name, a.attr[0].name);
    return called && d ? lang_call(p, d, at, in, a.values.n) : construct(p, name, at, &a);
}

/* ---- what binds most closely ---- */

/* One part in parentheses is only grouped. */
static graph_value *read_tuple(lang_parser *p, const char *at)
{
    base_vec part = {0};

    do {
        graph_value *v = expression(p);
        if (!v)
            return NULL;
        base_push(p->cx, &part, v);
    } while (lang_accept(p, ","));
    if (!lang_expect(p, ")"))
        return NULL;
    if (part.n == 1)
        return part.at[0];
    lang_blame(p, at);
    graph_value *v = graph_add_tuple(p->f, "tuple", (graph_value *const *)part.at, part.n);
    lang_stand(p);
    return v;
}

/* A number stands first since it is known by its kind; then what begins by a symbol or a word; a name
 * last. */
static graph_value *primary(lang_parser *p)
{
    const char *at = p->at, *name;

    if (p->lx->tok.kind == BASE_TOK_INT || p->lx->tok.kind == BASE_TOK_FLOAT)
        return lang_literal(p);
    if (lang_accept(p, "("))
        return read_tuple(p, at);
    if (lang_at(p, "{"))
        return lang_block(p);
    if (lang_accept(p, "if"))
        return read_if(p, at);
    if (lang_accept(p, "match"))
        return read_match(p, at);
    name = lang_expect_name(p, "an expression");
    return name ? read_named(p, name, at) : NULL;
}

/* One minus only: -x is the operator neg, and there are no negative literals. */
static graph_value *unary(lang_parser *p)
{
    const char *at = p->at;

    if (!lang_accept(p, "-"))
        return primary(p);
    graph_value *v = primary(p);
    return v ? add_operator(p, op_find("neg"), at, &v, 1, NULL, 0) : NULL;
}

/* ---- operators by symbol ---- */

static const struct {
    const char *symbol, *op;
    int level;
} binary[] = {{"==", "equal", 0}, {"!=", "not_equal", 0}, {"<=", "less_equal", 0}, {">=", "greater_equal", 0},
              {"<", "less", 0},   {">", "greater", 0},    {"+", "add", 1},         {"-", "sub", 1},
              {"*", "mul", 2},    {"/", "div", 2}};

static int binary_at(const lang_parser *p, int level)
{
    for (int i = 0; i < BASE_COUNT(binary); i++)
        if (binary[i].level == level && lang_at(p, binary[i].symbol))
            return i;
    return -1;
}

/* Level 0 compares, 1 adds, 2 multiplies; equal levels group to the left. The recursion goes up by levels: a
 * - b * c reads a, then `-`, then all of b * c on level 2. A number beside a tensor takes the tensor's type
 * before the node is made. */
static graph_value *operators(lang_parser *p, int level)
{
    graph_value *left = level < 3 ? operators(p, level + 1) : unary(p);

    for (int k; left && level < 3 && (k = binary_at(p, level)) >= 0;) {
        const char *at = p->at;

        lang_advance(p);
        graph_value *right = operators(p, level + 1);
        if (!right)
            return NULL;
        lang_blame(p, at);
        graph_value *l = lang_literal_as(p, left, right), *r = lang_literal_as(p, right, left);
        left = l && r ? add_operator(p, op_find(binary[k].op), at, (graph_value *const[]){l, r}, 2, NULL, 0)
                      : NULL;
    }
    return left;
}

/* The depth is bounded because this parser recurses, and its text may come from anywhere. */
static graph_value *expression(lang_parser *p)
{
    if (++p->depth > 200)
        return lang_fail(p, p->at, "types and expressions nest deeper than 200");
    graph_value *v = operators(p, 0);
    p->depth--;
    return v;
}
