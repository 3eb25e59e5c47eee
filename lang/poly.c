/* lang/poly.c -- functions with type parameters, or with parameters that are functions.
 *
 *     def map[a, b](l: List[a], f: fn(a) -> b) -> List[b] { ... }
 *
 * is no function of the module. Each use reads it anew, with the types and the functions of that use in the
 * place of its parameters, so that nothing of them is left at run time:
 *
 *     map(l, tanh), l: List[f32[2]]      calls "map[f32[2], f32[2]; main#1]", whose body calls "main#1"
 *
 * A call tells the types in the order of its operands: l fits List[a], so a is f32[2]; then the function is
 * read with an operand f32[2], and its result tells b. Each list of types and functions makes one function,
 * also where the body calls itself.
 */
#include "lang/poly.h"

#include <string.h>

#include "ir/build.h"

enum { MOST_TYPES = 16, MOST_USES = 1000, LONGEST_NAME = 1000, MOST_OPERANDS = 64 };

const lang_poly *lang_find_poly(const lang_parser *parser, const char *name)
{
    for (int i = 0; i < parser->polys.n; i++)
        if (base_same(((const lang_poly *)parser->polys.at[i])->name, name))
            return parser->polys.at[i];
    return NULL;
}

/* ---- declarations ---- */

/* Behind the name: `[`, or `fn` where the type of a parameter begins. */
bool lang_is_poly(const lang_parser *parser)
{
    base_lexer ahead = *parser->lx;
    int depth = 0;

    if (base_at(&ahead, "["))
        return true;
    do {
        bool colon = base_at(&ahead, ":");

        depth += base_at(&ahead, "(") || base_at(&ahead, "[");
        depth -= base_at(&ahead, ")") || base_at(&ahead, "]");
        base_advance(&ahead);
        if (colon && base_at(&ahead, "fn"))
            return true;
    } while (depth > 0 && ahead.tok.kind != BASE_TOK_END);
    return false;
}

/* [a, b] */
static bool read_types(lang_parser *parser, lang_poly *poly)
{
    if (!lang_accept(parser, "["))
        return true;
    do {
        const char *at = parser->at, *name = lang_expect_name(parser, "a type parameter");

        if (!name)
            return false;
        if (lang_type_number(poly, name) >= 0)
            return lang_fail(parser, at, "there is a type parameter '%s' already", name);
        if (poly->types.n == MOST_TYPES)
            return lang_fail(parser, at, "a function has at most %d type parameters", MOST_TYPES);
        base_push(parser->cx, &poly->types, name);
    } while (lang_accept(parser, ","));
    return lang_expect(parser, "]");
}

/* (NAME: TYPE, ...), as patterns: the types are made for each use. */
static bool read_params(lang_parser *parser, lang_poly *poly)
{
    if (!lang_expect(parser, "("))
        return false;
    while (!lang_at(parser, ")")) {
        lang_poly_param *param = base_new(parser->cx, lang_poly_param);

        if (poly->params.n == MOST_OPERANDS)
            return lang_fail(parser, parser->at, "a function has at most %d parameters", MOST_OPERANDS);
        param->name = lang_expect_name(parser, "a parameter");
        if (!param->name || !lang_expect(parser, ":") || !(param->type = lang_read_pattern(parser, poly)))
            return false;
        base_push(parser->cx, &poly->params, param);
        if (!lang_accept(parser, ","))
            break;
    }
    return lang_expect(parser, ")");
}

/* Up to the body, which is read for each use. */
bool lang_read_poly(lang_parser *parser, const char *name)
{
    lang_poly *poly = base_new(parser->cx, lang_poly);

    poly->name = name;
    if (!read_types(parser, poly) || !read_params(parser, poly) || !lang_expect(parser, "->"))
        return false;
    if (!(poly->result = lang_read_pattern(parser, poly)))
        return false;
    if (poly->result->kind == LANG_FUNCTION)
        return lang_fail(parser, poly->result->from, "the result of '%s' cannot be a function", name);
    poly->body = *parser->lx;
    base_push(parser->cx, &parser->polys, poly);
    return true;
}

/* ---- instances ---- */

/* map[f32[2], i64; tanh] */
static const char *name_of_use(lang_parser *parser, const lang_poly *poly, const graph_type *type,
                               lang_function *const *function, int n_functions)
{
    base_text name = {0};

    base_addf(parser->cx, &name, "%s[", poly->name);
    for (int i = 0; i < poly->types.n; i++) {
        base_add(parser->cx, &name, i ? ", " : "");
        lang_add_type_name(parser, &name, &type[i]);
    }
    for (int i = 0; i < n_functions; i++)
        base_addf(parser->cx, &name, "%s%s", i ? ", " : "; ", function[i]->def->name);
    base_add(parser->cx, &name, "]");
    return base_text_str(parser->cx, &name);
}

/* The captured values of the function come as operands more. Their types have symbols of the function's
 * signature, for which this one has symbols of its own. */
static void add_captured(lang_parser *parser, lang_def *def, const char *name, const lang_function *given,
                         base_vec *types)
{
    lang_function *inside = base_new(parser->cx, lang_function);
    graph_value **value = base_array(parser->cx, graph_value *, given->n_captured);
    lang_name *entry = base_new(parser->cx, lang_name);
    base_map symbols = {0};

    for (int k = 0; k < given->n_captured; k++) {
        graph_type *type = base_new(parser->cx, graph_type);

        *type = lang_import_type(parser, &symbols, def,
                                 &given->def->param[given->def->n_params - given->n_captured + k]);
        value[k] = graph_typed_input(def->f, base_format(parser->cx, "%s.%d", name, k), type);
        base_push(parser->cx, types, type);
    }
    *inside = (lang_function){.def = given->def, .n_captured = given->n_captured, .captured = value};
    *entry = (lang_name){.name = name, .function = inside};
    base_push(parser->cx, &def->functions, entry);
}

/* A symbol that is new in the result is a `?` of it. */
bool lang_poly_signature(lang_parser *parser, lang_def *def, const lang_bindings *bindings,
                         lang_function *const *functions)
{
    const lang_poly *poly = def->poly;
    base_vec types = {0};
    int n = 0;

    for (int i = 0; i < poly->params.n; i++) {
        const lang_poly_param *param = poly->params.at[i];
        graph_type *type = base_new(parser->cx, graph_type);

        if (param->type->kind == LANG_FUNCTION)
            continue;
        if (!lang_pattern_type(parser, poly, param->type, bindings,
                               &(lang_scope){&def->signature->symbols, def->f->body}, type))
            return false;
        graph_typed_input(def->f, base_strdup(parser->cx, param->name), type);
        base_push(parser->cx, &types, type);
    }
    for (int i = 0; i < poly->params.n; i++) {
        const lang_poly_param *param = poly->params.at[i];

        if (param->type->kind == LANG_FUNCTION)
            add_captured(parser, def, param->name, functions[n++], &types);
    }
    graph_type *all = base_array(parser->cx, graph_type, types.n);
    for (int i = 0; i < types.n; i++)
        all[i] = *(const graph_type *)types.at[i];
    def->param = all;
    def->n_params = types.n;
    def->n_params_symbols = def->signature->symbols.n;
    return lang_check_extents(parser, def->f->body) &&
           lang_pattern_type(parser, poly, poly->result, bindings,
                             &(lang_scope){&def->signature->symbols, NULL}, &def->result);
}

static int count_functions(const lang_poly *poly)
{
    int n = 0;

    for (int i = 0; i < poly->params.n; i++)
        n += ((const lang_poly_param *)poly->params.at[i])->type->kind == LANG_FUNCTION;
    return n;
}

/* Found by its name, or made; the body is read later, behind those of the other functions, so that it may
 * call the same instance. The limits end a function that uses itself with ever larger types. */
const lang_def *lang_instance_of_poly(lang_parser *parser, const lang_poly *poly, const char *at,
                                      const lang_bindings *bindings, lang_function *const *functions)
{
    graph_type *type = base_array(parser->cx, graph_type, poly->types.n);
    lang_variables *variables = base_new(parser->cx, lang_variables);

    for (int i = 0; i < poly->types.n; i++) {
        const lang_pattern variable = {.kind = LANG_VARIABLE, .variable = i};
        base_vec own = {0};

        if (!lang_pattern_type(parser, poly, &variable, bindings, &(lang_scope){&own, NULL}, &type[i]))
            return NULL;
        type[i] = lang_as_argument(parser, &type[i]);
    }
    const char *name = name_of_use(parser, poly, type, functions, count_functions(poly));
    const lang_def *known = lang_find_def(parser, name);
    if (known)
        return known;
    if (parser->n_uses == MOST_USES || strlen(name) > LONGEST_NAME)
        return lang_fail(parser, at,
                         "'%s' is used with ever more types: at most %d, with names of at most %d "
                         "letters",
                         poly->name, MOST_USES, LONGEST_NAME);
    parser->n_uses++;
    *variables = (lang_variables){&poly->types, type};
    lang_def *def = base_new(parser->cx, lang_def);
    *def = (lang_def){.name = name,
                      .poly = poly,
                      .variables = variables,
                      .used = lang_place(parser, at),
                      .signature = base_new(parser->cx, graph_body),
                      .body = poly->body,
                      .f = graph_function_new(parser->m, name)};
    if (!lang_poly_signature(parser, def, bindings, functions))
        return NULL;
    base_push(parser->cx, &parser->defs, def);
    return def;
}

void lang_bind_functions(lang_parser *parser, const lang_def *def)
{
    for (int i = 0; i < def->functions.n; i++)
        base_push(parser->cx, &parser->names, def->functions.at[i]);
}

/* ---- calls ---- */

/* [types] behind the name of the function. */
static bool read_given_types(lang_parser *parser, const lang_poly *poly, lang_bindings *bindings)
{
    const char *at = parser->at;
    base_vec symbols = {0};
    int n = 0;

    if (!lang_accept(parser, "["))
        return true;
    do {
        graph_type type;

        if (!lang_type(parser, &(lang_scope){&symbols, NULL}, &type))
            return false;
        if (n < poly->types.n) {
            bindings->type[n] = lang_as_argument(parser, &type);
            bindings->known[n] = true;
        }
        n++;
    } while (lang_accept(parser, ","));
    if (n != poly->types.n)
        return lang_fail(parser, at, "'%s' takes %d types, found %d", poly->name, poly->types.n, n);
    return lang_expect(parser, "]");
}

/* What the expected result says, should the operands not say it. A type that does not fit says nothing here:
 * the one who expects it compares. */
static void take_hints(lang_parser *parser, const lang_poly *poly, const graph_type *expected,
                       lang_bindings *bindings)
{
    lang_bindings told = lang_new_bindings(parser, poly);

    if (!expected || !lang_match_type(parser, poly->result, expected, &told))
        return;
    bindings->hint = told.type;
    bindings->hinted = told.known;
}

/* One operand that is a value: with the expected type, as far as it is known. */
static graph_value *read_value(lang_parser *parser, const lang_poly *poly, int index, graph_value *given,
                               lang_bindings *bindings)
{
    const lang_poly_param *param = poly->params.at[index];
    const char *at = parser->at;
    graph_type expected;
    base_vec own = {0};

    parser->expected = NULL;
    if (!given && param->type->kind != LANG_PLAIN && lang_pattern_is_known(param->type, bindings)) {
        if (!lang_pattern_type(parser, poly, param->type, bindings, &(lang_scope){&own, NULL}, &expected))
            return NULL;
        parser->expected = &expected;
    }
    graph_value *value = given ? given : lang_expression(parser);
    if (!value)
        return NULL;
    graph_type found = graph_type_of(value);
    if (!lang_match_type(parser, param->type, &found, bindings))
        return lang_fail(parser, at, "'%s': operand %d is %s, expected %s", poly->name, index + 1,
                         graph_type_text(parser->cx, &found),
                         lang_expected_text(parser, param->type, bindings));
    return value;
}

/* (operand, ...) by the parameters of the function; values and functions in the order of their parameters. */
static bool read_operands(lang_parser *parser, const lang_poly *poly, const char *at, graph_value *first,
                          lang_bindings *bindings, base_vec *values, base_vec *functions)
{
    if (!first && !lang_expect(parser, "("))
        return false;
    for (int i = 0; i < poly->params.n; i++) {
        const lang_poly_param *param = poly->params.at[i];
        bool given = first && i == 0;

        if (lang_at(parser, ")") && !given)
            return lang_fail(parser, at, "'%s' takes %d operands, found %d", poly->name, poly->params.n, i);
        void *operand = param->type->kind == LANG_FUNCTION
                            ? (void *)lang_read_function(parser, poly, param, bindings)
                            : (void *)read_value(parser, poly, i, given ? first : NULL, bindings);
        if (!operand)
            return false;
        base_push(parser->cx, param->type->kind == LANG_FUNCTION ? functions : values, operand);
        if (!given && !lang_accept(parser, ",") && !lang_at(parser, ")"))
            return lang_expect(parser, ")");
    }
    if (!lang_at(parser, ")"))
        return lang_fail(parser, at, "'%s' takes %d operands, found more", poly->name, poly->params.n);
    return lang_expect(parser, ")");
}

/* The operands tell the types, and these the function that is called. The values that the functions among the
 * operands have captured are operands of it, too. */
graph_value *lang_call_poly(lang_parser *parser, const lang_poly *poly, const char *at, graph_value *first,
                            const graph_type *expected)
{
    lang_bindings bindings = lang_new_bindings(parser, poly);
    base_vec values = {0}, functions = {0};

    take_hints(parser, poly, expected, &bindings);
    if (!read_given_types(parser, poly, &bindings) ||
        !read_operands(parser, poly, at, first, &bindings, &values, &functions))
        return NULL;
    const lang_def *def =
        lang_instance_of_poly(parser, poly, at, &bindings, (lang_function *const *)functions.at);
    for (int i = 0; i < functions.n; i++) {
        const lang_function *function = functions.at[i];
        for (int k = 0; k < function->n_captured; k++)
            base_push(parser->cx, &values, function->captured[k]);
    }
    return def ? lang_call(parser, def, at, (graph_value *const *)values.at, values.n) : NULL;
}
