/* lang/lang.c -- declarations: data types and functions, then the bodies of functions.
 *
 * Two passes over the text: the first reads all data types and signatures and steps over the bodies, the
 * second reads the bodies. So functions may call each other in any order, and every call has a declared type,
 * also a recursive one whose body is not read yet.
 */
#include "lang/lang.h"

#include <string.h>

#include "graph/rules.h"
#include "lang/poly.h"

/* ---- data types ---- */

/* In any data type: names of constructors are unique, or a call would not say which type it means. */
static bool is_constructor(const lang_parser *parser, const char *name)
{
    int which;

    for (int i = 0; i < parser->m->data.n; i++)
        if (graph_find_case(parser->m->data.at[i], name, &which))
            return true;
    return false;
}

/* NAME or NAME(types) of a data type. Each `?` of the fields becomes a symbol of this constructor. */
bool lang_case(lang_parser *parser, graph_data *data)
{
    const char *at = parser->at, *name = lang_expect_constructor(parser);
    base_vec symbols = {0};
    graph_type field[64];
    int n = 0;

    if (!name)
        return false;
    if (!parser->instance && (is_constructor(parser, name) || lang_generic_of(parser, name, NULL)))
        return lang_fail(parser, at, "there is a constructor '%s' already", name);
    if (lang_accept(parser, "("))
        do {
            if (n == BASE_COUNT(field))
                return lang_fail(parser, parser->at, "a constructor has at most %d fields", n);
            if (!lang_type(parser, &(lang_scope){&symbols, NULL}, &field[n++]))
                return false;
        } while (lang_accept(parser, ","));
    if (n > 0 && !lang_expect(parser, ")"))
        return false;
    graph_case *constructor = graph_data_case(parser->m, data, name, field, n);
    constructor->symbols = symbols;
    constructor->loc = lang_place(parser, at);
    return true;
}

/* Steps over a generic data type, which lang_find_generics has read, to the next declaration. */
static bool skip_generic(lang_parser *parser)
{
    while (parser->lx->tok.kind != BASE_TOK_END && !lang_at(parser, "type") && !lang_at(parser, "def") &&
           !lang_at(parser, "param"))
        lang_advance(parser);
    return !base_failed(parser->cx);
}

/* The type is known before its constructors are read, since a field may be of the type itself. */
static bool read_data(lang_parser *parser)
{
    const char *at = parser->at, *name = lang_expect_name(parser, "the name of a data type");

    if (!name)
        return false;
    if (graph_find_data(parser->m, name) || (lang_find_generic(parser, name) && !lang_at(parser, "[")))
        return lang_fail(parser, at, "there is a data type '%s' already", name);
    if (lang_at(parser, "["))
        return skip_generic(parser);
    graph_data *data = graph_data_new(parser->m, name);
    if (!lang_expect(parser, "="))
        return false;
    do {
        if (!lang_case(parser, data))
            return false;
    } while (lang_accept(parser, "|"));
    return true;
}

/* Names of data types may stand in the text before the type itself. */
bool lang_know_types(lang_parser *parser)
{
    for (int i = 0; i < parser->uses.n; i++) {
        const lang_use *use = parser->uses.at[i];

        if (!graph_find_data(parser->m, use->data))
            return lang_fail(parser, use->at, "there is no type '%s'", use->data);
    }
    return true;
}

/* ---- parameters ---- */

/* At least 0 and less than 2^40 elements, so that their bytes can be counted. */
static bool fits_memory(const op_type *type)
{
    int64_t count = 1, extent;

    for (int d = 0; d < type->n; d++)
        if (!ir_is_int(type->dim[d], &extent) || extent < 0 ||
            __builtin_mul_overflow(count, extent, &count) || count >= (int64_t)1 << 40)
            return false;
    return true;
}

/* A tensor with known extents: it is a constant of the module. */
static bool read_parameter(lang_parser *parser)
{
    const char *at = parser->at, *name = lang_expect_name(parser, "the name of a parameter");
    lang_parameter *parameter = base_new(parser->cx, lang_parameter);
    base_vec symbols = {0};
    graph_type type;

    if (!name || !lang_expect(parser, ":"))
        return false;
    const char *type_at = parser->at;
    if (!lang_type(parser, &(lang_scope){&symbols, NULL}, &type))
        return false;
    if (type.kind != GRAPH_TENSOR || symbols.n > 0)
        return lang_fail(parser, type_at, "a parameter is a tensor with known extents");
    if (!fits_memory(&type.tensor))
        return lang_fail(parser, type_at, "the extents of '%s' have a product of 2^40 or more", name);
    for (int i = 0; i < parser->parameters.n; i++)
        if (base_same(((const lang_parameter *)parser->parameters.at[i])->name, name))
            return lang_fail(parser, at, "there is a parameter '%s' already", name);
    if (!parser->params)
        return lang_fail(parser, at, "the parameter '%s' has no value: give the program's .safetensors file",
                         name);
    lang_blame(parser, at);
    *parameter = (lang_parameter){.name = base_strdup(parser->cx, name),
                                  .constant = lang_param(parser->cx, parser->params, name, &type.tensor)};
    lang_stand(parser);
    base_push(parser->cx, &parser->parameters, parameter);
    return parameter->constant;
}

/* param NAME: TYPE, NAME: TYPE */
static bool read_parameters(lang_parser *parser)
{
    do {
        if (!read_parameter(parser))
            return false;
    } while (lang_accept(parser, ","));
    return true;
}

/* A value belongs to one function, so each function that uses the parameter gets a value of its own, over the
 * same constant. */
graph_value *lang_find_parameter(lang_parser *parser, const char *name)
{
    for (int i = 0; i < parser->parameters.n; i++) {
        lang_parameter *p = parser->parameters.at[i];
        graph_value *value = base_map_get(&p->values, parser->f);

        if (!base_same(p->name, name))
            continue;
        if (!value)
            base_map_put(parser->cx, &p->values, parser->f,
                         value = graph_constant(parser->f, p->name, p->constant));
        return value;
    }
    return NULL;
}

/* ---- functions ---- */

const lang_def *lang_find_def(const lang_parser *parser, const char *name)
{
    for (int i = 0; i < parser->defs.n; i++)
        if (base_same(((const lang_def *)parser->defs.at[i])->name, name))
            return parser->defs.at[i];
    return NULL;
}

/* The first time that a name of an extent occurs it becomes a symbol of the function; after that it means the
 * same one. */
static bool read_param(lang_parser *parser, lang_def *def, graph_type *out)
{
    const char *at = parser->at, *name = lang_expect_name(parser, "a parameter");

    if (!name || !lang_expect(parser, ":"))
        return false;
    if (!lang_type(parser, &(lang_scope){&def->signature->symbols, def->f->body}, out))
        return false;
    base_set_where(parser->cx, lang_place(parser, at));
    graph_typed_input(def->f, base_strdup(parser->cx, name), out);
    return true;
}

/* (name: type, ...) -> type Symbols that are new in the result are the `?` of it: names must come from the
 * parameters. n_params_symbols is where they begin. */
static bool read_signature(lang_parser *parser, lang_def *def)
{
    graph_type param[64];

    if (!lang_expect(parser, "("))
        return false;
    while (!lang_at(parser, ")")) {
        if (def->n_params == BASE_COUNT(param))
            return lang_fail(parser, parser->at, "a function has at most %d parameters", def->n_params);
        if (!read_param(parser, def, &param[def->n_params++]))
            return false;
        if (!lang_accept(parser, ","))
            break;
    }
    def->param = base_copy(parser->cx, param, (size_t)def->n_params * sizeof *param);
    def->n_params_symbols = def->signature->symbols.n;
    return lang_expect(parser, ")") && lang_check_extents(parser, def->f->body) &&
           lang_expect(parser, "->") &&
           lang_type(parser, &(lang_scope){&def->signature->symbols, NULL}, &def->result);
}

/* Steps over the body, which is read when all functions are known. */
static bool skip_body(lang_parser *parser)
{
    int depth = 0;

    if (!lang_at(parser, "{"))
        return lang_expect(parser, "{");
    do {
        depth += lang_at(parser, "{") ? 1 : lang_at(parser, "}") ? -1 : 0;
        lang_advance(parser);
    } while (depth > 0 && parser->lx->tok.kind != BASE_TOK_END);
    return depth == 0 || lang_expect(parser, "}");
}

/* `main` is made at the start, as it is function 0 of the module whatever order the text has. The place of
 * the body is kept as a copy of the lexer. */
static bool read_def(lang_parser *parser)
{
    const char *at = parser->at, *name = lang_expect_name(parser, "the name of a function");
    lang_def *def = base_new(parser->cx, lang_def);

    if (!name)
        return false;
    if (lang_find_def(parser, name) || lang_find_poly(parser, name))
        return lang_fail(parser, at, "there is a function '%s' already", name);
    if (lang_is_poly(parser) && base_same(name, "main"))
        return lang_fail(parser, at, "'main' has no type parameters, and its parameters are values");
    if (lang_is_poly(parser))
        return lang_read_poly(parser, name) && skip_body(parser);
    *def = (lang_def){.name = name, .signature = base_new(parser->cx, graph_body)};
    def->f = base_same(name, "main") ? parser->m->functions.at[0] : graph_function_new(parser->m, name);
    if (!read_signature(parser, def))
        return false;
    base_push(parser->cx, &parser->defs, def);
    def->body = *parser->lx;
    return skip_body(parser);
}

/* Whether the body gives what was declared; each `?` of the result may be any extent. An example: declared
 * f32[?], found f32[n * 2]; ? is bound to n * 2, and then both types are the same. With f32[m] declared, no
 * extent but m would do. */
static bool fits_result(lang_parser *parser, const lang_def *def, const graph_value *value)
{
    graph_instance i = {.cx = parser->cx,
                        .symbol = (const ir_expr *const *)def->signature->symbols.at + def->n_params_symbols,
                        .n = def->signature->symbols.n - def->n_params_symbols};
    graph_type found = graph_type_of(value);

    graph_instance_bind(&i, &def->result, &found);
    graph_type expected = graph_instance_type(&i, &def->result);
    graph_demand_type(parser->m, def->f->body, base_format(parser->cx, "'%s' gives", def->name), &found,
                      &expected);
    if (graph_types_same(graph_facts_in(parser->m, def->f->body), &expected, &found) ||
        (lang_has_any(parser, &found) && lang_may_fit(parser, &expected, &found)))
        return true;
    return lang_fail(parser, parser->at, "'%s' gives %s, expected %s", def->name,
                     graph_type_text(parser->cx, &found), graph_type_text(parser->cx, &def->result));
}

/* An error in the body of a function with type parameters is one of a use of it, with those types. */
static bool blame_use(lang_parser *parser, const lang_def *def)
{
    if (def->poly && !parser->any)
        base_note(parser->cx, def->used, "'%s' is used here as '%.100s%s'", def->poly->name, def->name,
                  strlen(def->name) > 100 ? "..." : "");
    return false;
}

/* Parameters are names like any other. */
bool lang_read_body(lang_parser *parser, const lang_def *def)
{
    *parser->lx = def->body;
    parser->f = def->f;
    parser->names.n = 0;
    lang_stand(parser);
    const char *at = parser->at;
    for (int k = 0; k < def->n_params; k++) {
        graph_value *value = def->f->body->inputs.at[k];
        lang_name *name = base_new(parser->cx, lang_name);

        *name = (lang_name){.name = value->name, .value = value};
        base_push(parser->cx, &parser->names, name);
    }
    lang_bind_functions(parser, def);
    parser->variables = def->variables;
    parser->expected = &def->result;
    graph_value *value = lang_block(parser);
    if (value)
        lang_blame(parser, at);
    if (!value || !fits_result(parser, def, value))
        return blame_use(parser, def);
    graph_output(def->f, "result", value);
    return true;
}

/* ---- the whole ---- */

/* The names of types are checked at the end, when all are known. */
static bool read_declarations(lang_parser *parser)
{
    lang_stand(parser);
    while (parser->lx->tok.kind != BASE_TOK_END) {
        if (lang_accept(parser, "type")) {
            if (!read_data(parser))
                return false;
        } else if (lang_accept(parser, "def")) {
            if (!read_def(parser))
                return false;
        } else if (lang_accept(parser, "param")) {
            if (!read_parameters(parser))
                return false;
        } else {
            base_unexpected(parser->lx, "'type', 'param' or 'def'");
            return false;
        }
    }
    return !base_failed(parser->cx) && lang_know_types(parser);
}

/* Verified at the end, once for all functions: after that no other code need look for errors. */
static bool read_program(lang_parser *parser)
{
    if (!lang_find_generics(parser) || !lang_prelude_types(parser) || !read_declarations(parser) ||
        !lang_prelude_functions(parser))
        return false;
    if (!lang_find_def(parser, "main"))
        return lang_fail(parser, parser->text + strlen(parser->text), "the program has no function 'main'");
    for (int i = 0; i < parser->defs.n; i++)
        if (!lang_read_body(parser, parser->defs.at[i]))
            return false;
    return lang_check_unused(parser) && lang_know_types(parser) && graph_verify(parser->m);
}

/* The text is copied by the lexer, so the caller may free it. */
graph_module *lang_parse(tec_context *cx, const char *file, const char *text, const lang_params *params)
{
    lang_parser p = {.cx = cx, .file = base_strdup(cx, file), .params = params};

    p.lx = base_lexer_new(cx, p.file, text);
    p.text = p.at = p.lx->source;
    p.m = graph_new(cx, "program");
    graph_function_new(p.m, "main");
    return read_program(&p) ? p.m : NULL;
}
