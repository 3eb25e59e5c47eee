/* lang/named.c -- expressions that begin with a name: values, calls of functions and operators, constructors.
 *
 *     x    f(x, y)    concat(x, y, axis = 0)    Cons(x, Nil)    Nil[f32[2]]    map(l, (x) => x + 1)
 *
 * What a name means is decided before its operands are read, since the declared types of a function tell what
 * is expected of them.
 */
#include <string.h>

#include "graph/dynamic.h"
#include "lang/poly.h"

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
    if (lang_some_are_open(parser, in, count))
        return lang_open_operator(parser, op->name, at, op->min_inputs, op->max_inputs, count);
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

    if (lang_some_are_open(parser, in, count))
        return lang_open_operator(parser, op->name, at, op->min_in, op->max_in, count);
    lang_blame(parser, at);
    if (graph_add_dynamic(parser->f, op, op->name, in, count, attr, n_attrs, out))
        value = op->n_out == 1 ? out[0] : graph_add_tuple(parser->f, op->name, out, op->n_out);
    lang_stand(parser);
    return value;
}

/* By its constructor. An operand that fits since nothing is known of a part of its type is one of the field's
 * type, so that the node tells of the others alone. */
static graph_value *add_construct(lang_parser *parser, const graph_data *data, const char *name,
                                  const char *at, const arguments *self)
{
    int which, n = self->values.n;
    const graph_case *of = graph_find_case(data, name, &which);
    graph_value **in = base_copy(parser->cx, self->values.at, (size_t)n * sizeof *in);

    for (int k = 0; parser->any && k < n && k < of->n; k++) {
        graph_type found = graph_type_of(in[k]);

        if ((lang_has_any(parser, &found) || lang_has_any(parser, &of->field[k])) &&
            lang_may_fit(parser, &of->field[k], &found))
            in[k] = lang_some_value(parser, &of->field[k]);
    }
    lang_blame(parser, at);
    graph_value *value = graph_add_construct(parser->f, data->name, name, name, in, n);
    lang_stand(parser);
    return value;
}

/* Names of constructors are unique in a program, so the first data type that has one is the right one. */
static graph_value *construct(lang_parser *parser, const char *name, const char *at, const arguments *self)
{
    int which;

    for (int i = 0; i < parser->m->data.n; i++) {
        const graph_data *data = parser->m->data.at[i];

        if (graph_find_case(data, name, &which))
            return add_construct(parser, data, name, at, self);
    }
    return lang_fail(parser, at, "there is no value, function, constructor or operator '%s'", name);
}

/* Whether what stands in the place of "?" could tell the data type. */
static bool is_told_later(const lang_parser *parser, const arguments *self, const graph_type *expected)
{
    bool later = expected && lang_has_any(parser, expected);

    for (int k = 0; k < self->values.n; k++) {
        graph_type type = graph_type_of(self->values.at[k]);

        later = later || lang_has_any(parser, &type);
    }
    return later;
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
    if (!a.instance && is_told_later(parser, &a, expected) &&
        !(a.instance = lang_any_instance(parser, generic, at)))
        return NULL;
    if (!a.instance)
        return lang_fail(parser, at, "the type of '%s' is not known here: write %s[TYPE], for a value of %s",
                         constructor->name, constructor->name, generic->name);
    return add_construct(parser, a.instance->data, constructor->name, at, &a);
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
graph_value *lang_read_named(lang_parser *parser, const char *name, const char *at)
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
