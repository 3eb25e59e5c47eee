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

#include "graph/dynamic.h"
#include "lang/poly.h"

/* A value as the result of reading, or an error that no one has told of. */
static graph_value *first(const graph_node *node)
{
    return node ? node->out[0] : NULL;
}

/* ---- names ---- */

/* From the end, so that an inner name hides an outer one; -1: there is no such name. */
static int place_of_name(const lang_parser *parser, const char *name)
{
    int i = parser->names.n - 1;

    while (i >= 0 && !base_same(((const lang_name *)parser->names.at[i])->name, name))
        i--;
    return i;
}

const lang_function *lang_find_function(lang_parser *parser, const char *name, graph_value **value)
{
    int place = place_of_name(parser, name);
    const lang_name *found = place >= 0 ? parser->names.at[place] : NULL;

    *value = found && found->value ? lang_import(parser, place, found->value) : NULL;
    return found && found->function ? lang_import_function(parser, place, found->function) : NULL;
}

/* `_` takes the value without a name for it. */
static void bind_name(lang_parser *parser, const char *name, graph_value *value)
{
    lang_name *n = base_new(parser->cx, lang_name);

    *n = (lang_name){.name = name, .value = value};
    if (!base_same(name, "_"))
        base_push(parser->cx, &parser->names, n);
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
    do {
        if (t.kind != GRAPH_TUPLE || k >= t.n)
            return lang_fail(parser, at, "the pattern does not fit a value of type %s",
                             graph_type_text(parser->cx, &t));
        lang_blame(parser, at);
        graph_value *part = graph_add_field(parser->f, "part", value, k++);
        lang_stand(parser);
        if (!part || !lang_bind_pattern(parser, part))
            return false;
    } while (lang_accept(parser, ","));
    if (k < t.n)
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
    lang_blame(parser, at);
    graph_value *value = first(graph_add_if(parser->f, "if", condition, then, otherwise));
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
    lang_blame(parser, at);
    value = first(graph_add_match(parser->f, "match", value, body, data->cases.n));
    lang_stand(parser);
    return value;
}

/* ---- operators by name ---- */

/* Lists that operators take as extents, also where all of them are numbers. [2, 4] as a shape must be of the
 * same kind as [n, 4]. */
static bool holds_extents(const char *attribute)
{
    static const char *const names[] = {"shape", "values", "begin", "extent"};

    for (int i = 0; i < BASE_COUNT(names); i++)
        if (base_same(attribute, names[i]))
            return true;
    return false;
}

/* name = 1, name = 0.5, name = [n, 4]; lists may have extents. All symbols of the bodies around may occur in
 * a list, from the innermost outwards. */
static bool read_attr(lang_parser *parser, const char *name, op_attr *out)
{
    base_vec symbols = {0}, items = {0};
    int64_t i;

    if (parser->lx->tok.kind == BASE_TOK_FLOAT) {
        *out = op_attr_float(name, parser->lx->tok.f);
        lang_advance(parser);
        return !base_failed(parser->cx);
    }
    if (!lang_accept(parser, "[")) {
        if (!base_expect_int(parser->lx, "a number or a list", &i))
            return false;
        lang_stand(parser);
        *out = op_attr_int(name, i);
        return true;
    }
    for (const graph_body *body = parser->f->body; body; body = body->outer)
        for (int k = 0; k < body->symbols.n; k++)
            base_push(parser->cx, &symbols, body->symbols.at[k]);
    do {
        const ir_expr *expr = lang_extent(parser, &(lang_scope){&symbols, NULL});
        if (!expr)
            return false;
        base_push(parser->cx, &items, expr);
    } while (lang_accept(parser, ","));
    int64_t *number = base_array(parser->cx, int64_t, items.n);
    bool known = true;
    for (int k = 0; k < items.n; k++)
        known = ir_is_int(items.at[k], &number[k]) && known;
    *out = known && !holds_extents(name)
               ? op_attr_ints(parser->cx, name, number, items.n)
               : op_attr_exprs(parser->cx, name, (const ir_expr *const *)items.at, items.n);
    return lang_expect(parser, "]");
}

/* For whom arguments are read: the types that are expected, as far as they are known. */
typedef struct {
    base_vec values; /* graph_value * */
    op_attr attr[16];
    int n_attrs;
    const graph_type *param; /* n_params of them; NULL: not known */
    int n_params;
    const lang_generic *generic; /* of a constructor whose data type is not known yet; NULL: another call */
    const lang_constructor *constructor;
    graph_type *bound; /* its type parameters, as far as they are known */
    bool *known;
    const lang_instance *instance; /* when all are */
    const char *at;
} arguments;

static const graph_case *case_of(const lang_instance *instance, const char *name)
{
    int which;

    return graph_find_case(instance->data, name, &which);
}

static void expect_fields(arguments *self, const lang_instance *instance)
{
    const graph_case *of = case_of(instance, self->constructor->name);

    self->instance = instance;
    self->param = of->field;
    self->n_params = of->n;
}

/* The value of a field may complete the type parameters. False with an error. */
static bool learn(lang_parser *parser, arguments *self, int index, const graph_value *value)
{
    bool all = true;

    if (!self->generic || self->instance)
        return true;
    lang_bind_field(parser, self->generic, self->constructor, index, value, self->bound, self->known);
    for (int i = 0; i < self->generic->params.n; i++)
        all = all && self->known[i];
    const lang_instance *made = all ? lang_instantiate(parser, self->generic, self->bound, self->at) : NULL;
    if (made)
        expect_fields(self, made);
    return !all || made;
}

/* (value, ..., name = attribute, ...) Whether a name is an attribute is seen from the '=' behind it, for
 * which the lexer looks ahead by one token. A comma at the end is allowed. */
static bool read_arguments(lang_parser *parser, arguments *self)
{
    if (!lang_expect(parser, "("))
        return false;
    while (!lang_at(parser, ")")) {
        const base_token *next = &parser->lx->next;

        if (parser->lx->tok.kind == BASE_TOK_NAME && next->kind == BASE_TOK_SYMBOL &&
            base_same(next->text, "=")) {
            const char *name = parser->lx->tok.text;

            lang_advance(parser);
            lang_advance(parser);
            if (self->n_attrs == BASE_COUNT(self->attr))
                return lang_fail(parser, parser->at, "an operator has at most %d attributes", self->n_attrs);
            if (!read_attr(parser, name, &self->attr[self->n_attrs++]))
                return false;
        } else {
            int index = self->values.n;
            parser->expected = index < self->n_params ? &self->param[index] : NULL;
            graph_value *value = lang_expression(parser);
            if (!value || !learn(parser, self, index, value))
                return false;
            base_push(parser->cx, &self->values, value);
        }
        if (!lang_accept(parser, ","))
            break;
    }
    return lang_expect(parser, ")");
}

graph_value *lang_add_operator(lang_parser *parser, const op_info *op, const char *at, graph_value *const *in,
                               int count, const op_attr *attr, int n_attrs)
{
    lang_blame(parser, at);
    graph_node *node = graph_add_node(parser->f, op, op->name, in, count, attr, n_attrs);
    graph_value *value = !node              ? NULL
                         : node->n_out == 1 ? node->out[0]
                                            : graph_add_tuple(parser->f, op->name, node->out, node->n_out);

    lang_stand(parser);
    return value;
}

/* An operator whose extents only the run tells: its nodes, and its results as for other operators. */
static graph_value *add_dynamic(lang_parser *parser, const graph_dynamic *op, const char *at,
                                graph_value *const *in, int count, const op_attr *attr, int n_attrs)
{
    graph_value *out[GRAPH_DYNAMIC_RESULTS], *value = NULL;

    lang_blame(parser, at);
    if (graph_add_dynamic(parser->f, op, op->name, in, count, attr, n_attrs, out))
        value = op->n_out == 1 ? out[0] : graph_add_tuple(parser->f, op->name, out, op->n_out);
    lang_stand(parser);
    return value;
}

/* Names of constructors are unique in a program, so the first data type that has one is the right one. */
static graph_value *construct(lang_parser *parser, const char *name, const char *at, const arguments *self)
{
    int which;

    for (int i = 0; i < parser->m->data.n; i++) {
        const graph_data *data = parser->m->data.at[i];

        if (!graph_find_case(data, name, &which))
            continue;
        lang_blame(parser, at);
        graph_value *value = graph_add_construct(parser->f, data->name, name, name,
                                                 (graph_value *const *)self->values.at, self->values.n);
        lang_stand(parser);
        return value;
    }
    return lang_fail(parser, at, "there is no value, function, constructor or operator '%s'", name);
}

/* The value of a generic data type. Its type is the one that is expected, or the one that is written behind
 * the name, or the values of the fields tell its type parameters. */
static graph_value *read_generic(lang_parser *parser, const lang_generic *generic,
                                 const lang_constructor *constructor, const char *at,
                                 const graph_type *expected)
{
    arguments a = {.generic = generic,
                   .constructor = constructor,
                   .at = at,
                   .bound = base_array(parser->cx, graph_type, generic->params.n),
                   .known = base_array(parser->cx, bool, generic->params.n)};
    const lang_instance *instance = expected ? lang_instance_of(parser, expected) : NULL;

    if (lang_at(parser, "[")) {
        const graph_type *arg = lang_type_arguments(parser, generic);
        instance = arg ? lang_instantiate(parser, generic, arg, at) : NULL;
        if (!instance)
            return NULL;
    }
    if (instance && instance->generic == generic)
        expect_fields(&a, instance);
    if (lang_at(parser, "(") && !parser->lx->tok.space_before && !read_arguments(parser, &a))
        return NULL;
    if (!a.instance)
        return lang_fail(parser, at, "the type of '%s' is not known here: write %s[TYPE], for a value of %s",
                         constructor->name, constructor->name, generic->name);
    lang_blame(parser, at);
    graph_value *value =
        graph_add_construct(parser->f, a.instance->data->name, constructor->name, constructor->name,
                            (graph_value *const *)a.values.at, a.values.n);
    lang_stand(parser);
    return value;
}

/* What a call by name may mean: the first that is there counts. A name that is no function hides nothing. */
typedef struct {
    const lang_function *function; /* a parameter */
    const lang_def *def;
    const lang_poly *poly;
    bool sequence; /* fold, scan, map */
    const op_info *op;
    const graph_dynamic *dynamic;
    const lang_generic *generic; /* whose constructor it is */
    const lang_constructor *constructor;
} meaning;

/* A name of the program hides those of the prelude (lang/prelude.c) and those of operators. */
static meaning meaning_of(lang_parser *parser, const char *name)
{
    graph_value *value;
    meaning out = {.function = lang_find_function(parser, name, &value)};

    out.def = lang_find_def(parser, name);
    out.poly = lang_find_poly(parser, name);
    out.sequence = lang_is_sequence(name) && (!out.poly || out.poly->prelude);
    out.op = op_find(name);
    out.dynamic = graph_find_dynamic(name);
    out.generic = lang_generic_of(parser, name, &out.constructor);
    return out;
}

static bool is_function(const meaning *what)
{
    return what->function || what->def || what->poly || what->op || what->dynamic;
}

/* name(arguments) of what is no constructor of a generic type. */
static graph_value *read_call(lang_parser *parser, const char *name, const meaning *what, const char *at,
                              const graph_type *expected)
{
    arguments a = {0};

    if (!what->function && what->def) {
        a.param = what->def->param;
        a.n_params = what->def->n_params;
    } else if (!what->function && what->sequence) {
        return lang_sequence(parser, name, at, expected);
    } else if (!what->function && what->poly) {
        return lang_call_poly(parser, what->poly, at, NULL, expected);
    }
    if (!read_arguments(parser, &a))
        return NULL;
    graph_value *const *in = (graph_value *const *)a.values.at;
    if (!what->function && !what->def && what->op)
        return lang_add_operator(parser, what->op, at, in, a.values.n, a.attr, a.n_attrs);
    if (!what->function && !what->def && what->dynamic)
        return add_dynamic(parser, what->dynamic, at, in, a.values.n, a.attr, a.n_attrs);
    if (a.n_attrs > 0)
        return lang_fail(parser, at, "'%s' is not an operator, so it cannot take the attribute '%s'", name,
                         a.attr[0].name);
    return what->function ? lang_call_function(parser, name, what->function, at, &a.values)
           : what->def    ? lang_call(parser, what->def, at, in, a.values.n)
                          : construct(parser, name, at, &a);
}

/* name, or name(arguments): a value in scope, a function of the program, an operator, a constructor. A value
 * hides functions and operators, a function hides an operator of its name. A constructor without fields is a
 * name alone, so the last case is reached with and without arguments. */
static graph_value *read_named(lang_parser *parser, const char *name, const char *at)
{
    const graph_type *expected = parser->expected;
    bool called = lang_at(parser, "(") && !parser->lx->tok.space_before; /* on its own, a tuple follows */
    const meaning what = meaning_of(parser, name);
    graph_value *value = NULL;

    parser->expected = NULL;
    called = called || (what.poly && lang_at(parser, "[") && !parser->lx->tok.space_before);
    if (!called && lang_find_function(parser, name, &value))
        return lang_fail(parser, at,
                         "'%s' is a function: it can be called, or given to a parameter that is a function",
                         name);
    if (!called && !value)
        value = lang_find_parameter(parser, name);
    if (value)
        return value;
    if (what.generic && !(called && is_function(&what)))
        return read_generic(parser, what.generic, what.constructor, at, expected);
    return called ? read_call(parser, name, &what, at, expected)
                  : construct(parser, name, at, &(arguments){0});
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
    return name ? read_named(parser, name, at) : NULL;
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

/* The depth is bounded because this parser recurses, and its text may come from anywhere. */
graph_value *lang_expression(lang_parser *parser)
{
    if (++parser->depth > 200)
        return lang_fail(parser, parser->at, "types and expressions nest deeper than 200");
    graph_value *v = operators(parser, 0);
    parser->depth--;
    return v;
}
