/* lang/unused.c -- functions and data types with type parameters that the program uses nowhere.
 *
 *     def swap[a, b](p: Pair[a, b]) -> Pair[b, a] { match p { Pair(x, y) => Pair(x, y) } }
 *
 * is read once with a data type "a" and a data type "b", which have no constructors: the body gives
 * Pair[a, b], expected Pair[b, a]. So a value of such a type fits where its type parameter is expected, and
 * nowhere else. A parameter that is a function is a function of the declared type without a body.
 *
 * The type that a use brings may be a tensor, a tuple or a data type, so operators, patterns and `match` take
 * such a value too. Of what they give nothing is known: it has the type "?", which fits everywhere. An error
 * is told only where no type in the place of "?" would mend it.
 *
 * The constructors of a data type that is used nowhere are read once in the same way.
 *
 * Nothing of the check stays in the module: its functions and data types are cut off again. Instances that a
 * body calls get a signature and no body, since functions are read for themselves.
 */
#include "ir/build.h"
#include "lang/poly.h"

/* ---- types of which nothing is known ---- */

static bool is_any(const lang_parser *parser, const graph_type *type)
{
    return parser->any && type->kind == GRAPH_DATA && base_same(type->data, parser->any);
}

bool lang_is_open(const lang_parser *parser, const graph_type *type)
{
    if (!parser->any || type->kind != GRAPH_DATA)
        return false;
    for (int i = 0; i < parser->opaque.n; i++)
        if (base_same(parser->opaque.at[i], type->data))
            return true;
    return is_any(parser, type);
}

bool lang_has_any(const lang_parser *parser, const graph_type *type)
{
    const lang_instance *instance = parser->any ? lang_instance_of(parser, type) : NULL;
    const graph_type *part = instance ? instance->arg : type->part;
    int n = instance ? instance->generic->params.n : type->n;

    for (int k = 0; parser->any && k < n; k++)
        if (lang_has_any(parser, &part[k]))
            return true;
    return is_any(parser, type);
}

static bool tensors_may_fit(const op_type *left, const op_type *right)
{
    int64_t m, n;

    if (left->n != right->n || !base_dtype_same(left->dtype, right->dtype))
        return false;
    for (int d = 0; d < left->n; d++)
        if (ir_is_int(left->dim[d], &m) && ir_is_int(right->dim[d], &n) && m != n)
            return false;
    return true;
}

/* Down both types at once; two instances of one generic data type are compared by their arguments. */
bool lang_may_fit(const lang_parser *parser, const graph_type *left, const graph_type *right)
{
    const lang_instance *l = lang_instance_of(parser, left), *r = lang_instance_of(parser, right);

    if (is_any(parser, left) || is_any(parser, right))
        return true;
    if (left->kind != right->kind || left->n != right->n)
        return false;
    if (left->kind == GRAPH_TENSOR)
        return tensors_may_fit(&left->tensor, &right->tensor);
    if (left->kind == GRAPH_DATA && !(l && r && l->generic == r->generic))
        return base_same(left->data, right->data);
    const graph_type *a = l ? l->arg : left->part, *b = r ? r->arg : right->part;
    for (int k = 0; k < (l ? l->generic->params.n : left->n); k++)
        if (!lang_may_fit(parser, &a[k], &b[k]))
            return false;
    return true;
}

/* An input of the function that is read, whatever region is open: the function goes away with the check. */
graph_value *lang_some_value(lang_parser *parser, const graph_type *type)
{
    graph_body *open = parser->f->body;

    while (parser->f->body->outer)
        parser->f->body = parser->f->body->outer;
    graph_value *value = graph_typed_input(parser->f, "?", type);
    parser->f->body = open;
    return value;
}

graph_value *lang_any_value(lang_parser *parser)
{
    const graph_type any = graph_data_type(parser->any);

    return lang_some_value(parser, &any);
}

const lang_instance *lang_any_instance(lang_parser *parser, const lang_generic *generic, const char *at)
{
    graph_type *arg = base_array(parser->cx, graph_type, generic->params.n);

    for (int i = 0; i < generic->params.n; i++)
        arg[i] = graph_data_type(parser->any);
    return lang_instantiate(parser, generic, arg, at);
}

/* ---- values that operators and regions take ---- */

bool lang_some_are_open(const lang_parser *parser, graph_value *const *in, int n)
{
    for (int k = 0; parser->any && k < n; k++) {
        graph_type type = in[k] ? graph_type_of(in[k]) : (graph_type){0};

        if (in[k] && lang_is_open(parser, &type))
            return true;
    }
    return false;
}

/* The operands that are tensors are checked with the rest when the types are known. */
graph_value *lang_open_operator(lang_parser *parser, const char *name, const char *at, int least, int most,
                                int count)
{
    if (count < least || (most >= 0 && count > most))
        return lang_fail(parser, at, "%s: expected %d%s operands, found %d", name, least,
                         most < 0        ? " or more"
                         : most == least ? ""
                                         : base_format(parser->cx, " to %d", most),
                         count);
    return lang_any_value(parser);
}

/* The constructor that stands first in the arms says which data type it is. */
graph_value *lang_open_match(lang_parser *parser, graph_value *value)
{
    const char *at = parser->at, *name = parser->lx->tok.text;
    const lang_generic *generic = lang_generic_of(parser, name, NULL);
    const lang_instance *instance = NULL;
    int which;

    if (parser->lx->tok.kind != BASE_TOK_NAME)
        return value;
    for (int i = 0; i < parser->m->data.n; i++) {
        const graph_data *data = parser->m->data.at[i];
        const graph_type type = graph_data_type(data->name);

        if (graph_find_case(data, name, &which) && !lang_instance_of(parser, &type))
            return lang_some_value(parser, &type);
    }
    if (!generic)
        return lang_fail(parser, at, "there is no constructor '%s'", name);
    if (!(instance = lang_any_instance(parser, generic, at)))
        return NULL;
    const graph_type type = graph_data_type(instance->data->name);
    return lang_some_value(parser, &type);
}

/* The value of regions of which some give what nothing is known of; NULL: all are known, or they do not fit,
 * which their node tells. */
graph_value *lang_open_regions(lang_parser *parser, graph_body *const *body, int n)
{
    bool any = false;
    graph_type best = {0};

    for (int k = 0; parser->any && k < n; k++) {
        graph_type type = graph_type_of(body[k]->outputs.at[0]);

        if (k > 0 && !lang_may_fit(parser, &best, &type))
            return NULL;
        any = any || lang_has_any(parser, &type);
        if (k == 0 || lang_has_any(parser, &best))
            best = type;
    }
    return any ? lang_some_value(parser, &best) : NULL;
}

/* ---- functions ---- */

static bool is_used(const lang_parser *parser, const lang_poly *poly)
{
    for (int i = 0; i < parser->defs.n; i++)
        if (((const lang_def *)parser->defs.at[i])->poly == poly)
            return true;
    return false;
}

/* A data type without constructors, with a name that no data type has yet. */
static graph_type new_type(lang_parser *parser, const char *name)
{
    while (graph_find_data(parser->m, name))
        name = base_format(parser->cx, "%s'", name);
    return graph_data_type(graph_data_new(parser->m, name)->name);
}

/* What a parameter that is a function stands for: a function of its type. */
static lang_function *opaque_function(lang_parser *parser, const lang_poly *poly,
                                      const lang_poly_param *param, const lang_bindings *bindings)
{
    lang_def *def = base_new(parser->cx, lang_def);
    lang_function *function = base_new(parser->cx, lang_function);
    int n = param->type->part.n - 1;
    graph_type *type = base_array(parser->cx, graph_type, n);

    *def = (lang_def){.name = param->name,
                      .param = type,
                      .n_params = n,
                      .signature = base_new(parser->cx, graph_body),
                      .f = graph_function_new(parser->m, param->name)};
    const lang_scope scope = {&def->signature->symbols, def->f->body};
    for (int k = 0; k < n; k++)
        if (!lang_pattern_type(parser, poly, param->type->part.at[k], bindings, &scope, &type[k]))
            return NULL;
    def->n_params_symbols = def->signature->symbols.n;
    *function = (lang_function){.def = def};
    return lang_pattern_type(parser, poly, param->type->part.at[n], bindings, &scope, &def->result) ? function
                                                                                                    : NULL;
}

/* The function with a type of its own for each type parameter, for lang_read_body. */
static const lang_def *opaque_use(lang_parser *parser, const lang_poly *poly)
{
    lang_bindings bindings = lang_new_bindings(parser, poly);
    lang_variables *variables = base_new(parser->cx, lang_variables);
    lang_def *def = base_new(parser->cx, lang_def);
    base_vec functions = {0};

    for (int i = 0; i < poly->types.n; i++) {
        bindings.type[i] = new_type(parser, poly->types.at[i]);
        bindings.known[i] = true;
        base_push(parser->cx, &parser->opaque, (void *)(uintptr_t)bindings.type[i].data);
    }
    *variables = (lang_variables){&poly->types, bindings.type};
    *def = (lang_def){.name = poly->name,
                      .poly = poly,
                      .variables = variables,
                      .signature = base_new(parser->cx, graph_body),
                      .body = poly->body,
                      .f = graph_function_new(parser->m, poly->name)};
    for (int i = 0; i < poly->params.n; i++) {
        const lang_poly_param *param = poly->params.at[i];

        if (param->type->kind != LANG_FUNCTION)
            continue;
        lang_function *function = opaque_function(parser, poly, param, &bindings);
        if (!function)
            return NULL;
        base_push(parser->cx, &functions, function);
    }
    return lang_poly_signature(parser, def, &bindings, (lang_function *const *)functions.at) ? def : NULL;
}

/* What a check adds to the parser. */
typedef struct {
    int functions, data, defs, instances;
} mark;

static mark begin_check(lang_parser *parser)
{
    mark m = {parser->m->functions.n, parser->m->data.n, parser->defs.n, parser->instances.n};

    parser->any = new_type(parser, "?").data;
    parser->n_uses = 0;
    parser->n_instances = m.instances;
    parser->opaque.n = 0;
    return m;
}

/* Cuts off what was made since. */
static void end_check(lang_parser *parser, mark before)
{
    parser->any = NULL;
    parser->opaque.n = 0;
    parser->m->functions.n = before.functions;
    parser->m->data.n = before.data;
    parser->defs.n = before.defs;
    parser->instances.n = before.instances;
}

static bool check_function(lang_parser *parser, const lang_poly *poly)
{
    mark before = begin_check(parser);
    const lang_def *def = opaque_use(parser, poly);
    bool good = def && lang_read_body(parser, def) && lang_know_types(parser);

    end_check(parser, before);
    return good;
}

/* Reads the constructors of a data type with a type of its own for each type parameter. */
static bool check_type(lang_parser *parser, const lang_generic *generic)
{
    mark before = begin_check(parser);
    graph_type *arg = base_array(parser->cx, graph_type, generic->params.n);

    for (int i = 0; i < generic->params.n; i++)
        arg[i] = new_type(parser, generic->params.at[i]);
    bool good = lang_instantiate(parser, generic, arg, generic->at) && lang_know_types(parser);
    end_check(parser, before);
    return good;
}

static bool is_instantiated(const lang_parser *parser, const lang_generic *generic)
{
    for (int i = 0; i < parser->instances.n; i++)
        if (((const lang_instance *)parser->instances.at[i])->generic == generic)
            return true;
    return false;
}

/* Types first: a body that uses a wrong one would show the error where the body uses the type. */
bool lang_check_unused(lang_parser *parser)
{
    for (int i = 0; i < parser->generics.n; i++) {
        const lang_generic *generic = parser->generics.at[i];

        if (!generic->prelude && !is_instantiated(parser, generic) && !check_type(parser, generic))
            return false;
    }
    for (int i = 0; i < parser->polys.n; i++) {
        const lang_poly *poly = parser->polys.at[i];

        if (!poly->prelude && !is_used(parser, poly) && !check_function(parser, poly))
            return false;
    }
    return true;
}
