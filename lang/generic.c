/* lang/generic.c -- data types with type parameters.
 *
 *     type List[a] = Nil | Cons(a, List[a])
 *     def main(l: List[f32[2]], m: List[List[i64]]) -> ...
 *
 * makes two data types of the module for each that is used here: "List[f32[2]]", "List[i64]",
 * "List[List[i64]]". The constructors are read anew for each, with the type parameters standing for the
 * arguments, so nothing is left of the generic type in the module, and nothing at all of an unused one
 * (which lang/unused.c checks).
 * An extent that is no number is `?` in an argument: each element has its own.
 */
#include <string.h>

#include "ir/build.h"
#include "lang/inside.h"

enum { MOST_PARAMS = 16, MOST_INSTANCES = 256, LONGEST_NAME = 1000 };

/* ---- declarations ---- */

const lang_generic *lang_find_generic(const lang_parser *parser, const char *name)
{
    for (int i = 0; i < parser->generics.n; i++)
        if (base_same(((const lang_generic *)parser->generics.at[i])->name, name))
            return parser->generics.at[i];
    return NULL;
}

/* Names of constructors are unique among all generic types, so the first one that has the name is it. */
const lang_generic *lang_generic_of(const lang_parser *parser, const char *name,
                                    const lang_constructor **constructor)
{
    for (int i = 0; i < parser->generics.n; i++) {
        const lang_generic *generic = parser->generics.at[i];

        for (int k = 0; k < generic->constructors.n; k++) {
            const lang_constructor *c = generic->constructors.at[k];
            if (!base_same(c->name, name))
                continue;
            if (constructor)
                *constructor = c;
            return generic;
        }
    }
    return NULL;
}

static intptr_t param_of(const lang_generic *generic, const char *name)
{
    for (int i = 0; i < generic->params.n; i++)
        if (base_same(generic->params.at[i], name))
            return i;
    return LANG_OTHER;
}

/* One field: a type parameter alone, the type itself with its parameters, or anything else. Steps over
 * the field, whose types are read for each instance. */
static intptr_t skip_field(lang_parser *parser, const lang_generic *generic)
{
    const char *name = parser->lx->tok.text;
    const base_token *next = &parser->lx->next;
    bool alone = base_same(next->text, ",") || base_same(next->text, ")");
    intptr_t kind = alone                                                          ? param_of(generic, name)
                    : base_same(name, generic->name) && base_same(next->text, "[") ? LANG_SELF
                                                                                   : LANG_OTHER;
    int depth = 0;

    while (parser->lx->tok.kind != BASE_TOK_END) {
        if (depth == 0 && (lang_at(parser, ",") || lang_at(parser, ")")))
            break;
        depth += lang_at(parser, "(") || lang_at(parser, "[");
        depth -= lang_at(parser, ")") || lang_at(parser, "]");
        lang_advance(parser);
    }
    return kind;
}

/* NAME or NAME(fields): notes what each field can tell about the type parameters. */
static bool read_constructor(lang_parser *parser, lang_generic *generic)
{
    const char *at = parser->at, *name = lang_expect_constructor(parser);
    lang_constructor *constructor = base_new(parser->cx, lang_constructor);

    if (!name)
        return false;
    if (lang_generic_of(parser, name, NULL))
        return lang_fail(parser, at, "there is a constructor '%s' already", name);
    constructor->name = name;
    base_push(parser->cx, &generic->constructors, constructor);
    if (!lang_accept(parser, "("))
        return true;
    do
        base_push(parser->cx, &constructor->fields, (void *)skip_field(parser, generic));
    while (lang_accept(parser, ","));
    return lang_expect(parser, ")");
}

/* NAME[a, b] = constructors */
static bool read_generic(lang_parser *parser)
{
    lang_generic *generic = base_new(parser->cx, lang_generic);
    const char *at = generic->at = parser->at;

    generic->name = lang_expect_name(parser, "the name of a data type");
    if (lang_find_generic(parser, generic->name))
        return lang_fail(parser, at, "there is a data type '%s' already", generic->name);
    lang_advance(parser);
    do {
        const char *here = parser->at, *name = lang_expect_name(parser, "a type parameter");
        if (!name)
            return false;
        if (param_of(generic, name) != LANG_OTHER)
            return lang_fail(parser, here, "there is a type parameter '%s' already", name);
        if (base_dtype_parse(name, &(base_dtype){0}))
            return lang_fail(parser, here, "expected a type parameter, found the type '%s'", name);
        if (generic->params.n == MOST_PARAMS)
            return lang_fail(parser, at, "a data type has at most %d type parameters", MOST_PARAMS);
        base_push(parser->cx, &generic->params, name);
    } while (lang_accept(parser, ","));
    if (!lang_expect(parser, "]") || !lang_expect(parser, "="))
        return false;
    generic->cases = *parser->lx;
    base_push(parser->cx, &parser->generics, generic);
    do
        if (!read_constructor(parser, generic))
            return false;
    while (lang_accept(parser, "|"));
    return true;
}

/* Before all else, so that a type may be used in front of its declaration. The lexer is set back. */
bool lang_find_generics(lang_parser *parser)
{
    const base_lexer start = *parser->lx;

    parser->unknown = ir_var(parser->cx, "?", BASE_I64);
    lang_stand(parser);
    while (parser->lx->tok.kind != BASE_TOK_END) {
        bool type = lang_accept(parser, "type");

        if (!type || parser->lx->tok.kind != BASE_TOK_NAME || !base_same(parser->lx->next.text, "["))
            lang_advance(parser);
        else if (!read_generic(parser))
            return false;
    }
    if (base_failed(parser->cx))
        return false;
    *parser->lx = start;
    lang_stand(parser);
    return true;
}

/* ---- types ---- */

/* Two types whose extents differ only where they are no numbers are one argument. */
graph_type lang_as_argument(lang_parser *parser, const graph_type *type)
{
    graph_type out = *type, *part = base_array(parser->cx, graph_type, type->n);
    int rank = type->kind == GRAPH_TENSOR ? type->tensor.n : 0;
    const ir_expr **dim = base_array(parser->cx, const ir_expr *, rank);
    int64_t extent;

    for (int d = 0; d < rank; d++)
        dim[d] = ir_is_int(type->tensor.dim[d], &extent) ? type->tensor.dim[d] : parser->unknown;
    for (int k = 0; k < type->n; k++)
        part[k] = lang_as_argument(parser, &type->part[k]);
    out.tensor.dim = dim;
    out.part = part;
    return out;
}

/* In a constructor or a result a `?` is a variable that each value or call has for itself; in a parameter the
 * symbol is the function's. */
graph_type lang_as_field(lang_parser *parser, const graph_type *type, const lang_scope *scope)
{
    graph_type out = *type, *part = base_array(parser->cx, graph_type, type->n);
    int rank = type->kind == GRAPH_TENSOR ? type->tensor.n : 0;
    const ir_expr **dim = base_array(parser->cx, const ir_expr *, rank);

    for (int d = 0; d < rank; d++) {
        dim[d] = type->tensor.dim[d];
        if (dim[d] != parser->unknown)
            continue;
        dim[d] = scope->body
                     ? graph_symbol_in(parser->m, scope->body, NULL)
                     : ir_var(parser->cx, base_format(parser->cx, "u%d", scope->symbols->n), BASE_I64);
        base_push(parser->cx, scope->symbols, dim[d]);
    }
    for (int k = 0; k < type->n; k++)
        part[k] = lang_as_field(parser, &type->part[k], scope);
    out.tensor.dim = dim;
    out.part = part;
    return out;
}

bool lang_type_variable(lang_parser *parser, const char *name, const lang_scope *scope, graph_type *out)
{
    const lang_variables *variables = parser->variables;

    for (int i = 0; variables && i < variables->name->n; i++)
        if (base_same(variables->name->at[i], name)) {
            *out = lang_as_field(parser, &variables->type[i], scope);
            return true;
        }
    return false;
}

/* As it is written in a program: `i64` for a number, `?` for an unknown extent, names of types without
 * quotes. */
void lang_add_type_name(lang_parser *parser, base_text *text, const graph_type *type)
{
    tec_context *cx = parser->cx;
    bool scalar = type->kind == GRAPH_TENSOR && type->tensor.n == 0;
    int n = type->kind == GRAPH_TENSOR ? type->tensor.n : type->n;
    int64_t extent;

    if (type->kind == GRAPH_DATA)
        base_add(cx, text, type->data);
    else if (type->kind == GRAPH_TENSOR)
        base_add(cx, text, base_dtype_text(cx, type->tensor.dtype));
    if (scalar || type->kind == GRAPH_DATA)
        return;
    base_add(cx, text, type->kind == GRAPH_TENSOR ? "[" : "(");
    for (int k = 0; k < n; k++) {
        base_add(cx, text, k ? ", " : "");
        if (type->kind != GRAPH_TENSOR)
            lang_add_type_name(parser, text, &type->part[k]);
        else if (ir_is_int(type->tensor.dim[k], &extent))
            base_addf(cx, text, "%lld", (long long)extent);
        else
            base_add(cx, text, "?");
    }
    base_add(cx, text, type->kind == GRAPH_TENSOR ? "]" : ")");
}

/* As many types as the data type has parameters. Names of extents are refused: no value binds them here. */
const graph_type *lang_type_arguments(lang_parser *parser, const lang_generic *generic)
{
    graph_type *arg = base_array(parser->cx, graph_type, generic->params.n);
    const char *at = parser->at;
    base_vec symbols = {0};
    int n = 0;

    if (!lang_at(parser, "["))
        return lang_fail(parser, at, "'%s' has type parameters: expected %s[...] with %d types",
                         generic->name, generic->name, generic->params.n);
    lang_advance(parser);
    do {
        graph_type type;
        if (!lang_type(parser, &(lang_scope){&symbols, NULL}, &type))
            return NULL;
        if (n < generic->params.n)
            arg[n] = lang_as_argument(parser, &type);
        n++;
    } while (lang_accept(parser, ","));
    if (n != generic->params.n)
        return lang_fail(parser, at, "'%s' takes %d types, found %d", generic->name, generic->params.n, n);
    return lang_expect(parser, "]") ? arg : NULL;
}

/* ---- instances ---- */

const lang_instance *lang_instance_of(const lang_parser *parser, const graph_type *type)
{
    for (int i = 0; i < parser->instances.n; i++) {
        const lang_instance *instance = parser->instances.at[i];

        if (type->kind == GRAPH_DATA && base_same(instance->data->name, type->data))
            return instance;
    }
    return NULL;
}

/* Reads the constructors with the arguments; the instance is known, since a field may have its type. */
static bool read_cases(lang_parser *parser, const lang_instance *instance)
{
    const base_lexer back = *parser->lx;
    const lang_instance *outer = parser->instance;
    const lang_variables *around = parser->variables, variables = {&instance->generic->params, instance->arg};

    *parser->lx = instance->generic->cases;
    parser->instance = instance;
    parser->variables = &variables;
    lang_stand(parser);
    do
        if (!lang_case(parser, instance->data))
            return false;
    while (lang_accept(parser, "|"));
    *parser->lx = back;
    parser->instance = outer;
    parser->variables = around;
    lang_stand(parser);
    return true;
}

/* Found by its name, or made. The limits end types that contain ever larger types: T[a] = A(a, T[(a, a)]). */
const lang_instance *lang_instantiate(lang_parser *parser, const lang_generic *generic, const graph_type *arg,
                                      const char *at)
{
    lang_instance *instance = base_new(parser->cx, lang_instance);
    base_text name = {0};

    base_addf(parser->cx, &name, "%s[", generic->name);
    for (int i = 0; i < generic->params.n; i++) {
        base_add(parser->cx, &name, i ? ", " : "");
        lang_add_type_name(parser, &name, &arg[i]);
    }
    base_add(parser->cx, &name, "]");
    graph_type type = graph_data_type(base_text_str(parser->cx, &name));
    const lang_instance *known = lang_instance_of(parser, &type);
    if (known)
        return known;
    if (parser->instances.n - parser->n_instances == MOST_INSTANCES)
        return lang_fail(parser, at, "'%s' is used with more than %d different types", generic->name,
                         MOST_INSTANCES);
    if (name.n > LONGEST_NAME)
        return lang_fail(parser, at, "the type parameters of '%s' need more than %d letters", generic->name,
                         LONGEST_NAME);
    *instance = (lang_instance){generic, base_copy(parser->cx, arg, (size_t)generic->params.n * sizeof *arg),
                                graph_data_new(parser->m, type.data)};
    base_push(parser->cx, &parser->instances, instance);
    return read_cases(parser, instance) ? instance : NULL;
}

/* A field that is the type itself tells all of them, and more exactly than a tensor does. */
void lang_bind_field(lang_parser *parser, const lang_generic *generic, const lang_constructor *constructor,
                     int index, const graph_value *value, graph_type *bound, bool *known)
{
    intptr_t kind = index < constructor->fields.n ? (intptr_t)constructor->fields.at[index] : LANG_OTHER;
    graph_type type = graph_type_of(value);
    const lang_instance *instance = lang_instance_of(parser, &type);

    if (kind >= 0 && !known[kind]) {
        bound[kind] = lang_as_argument(parser, &type);
        known[kind] = true;
    }
    for (int i = 0; kind == LANG_SELF && instance && instance->generic == generic && i < generic->params.n;
         i++) {
        bound[i] = instance->arg[i];
        known[i] = true;
    }
}
