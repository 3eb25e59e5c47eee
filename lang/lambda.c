/* lang/lambda.c -- operands that are functions.
 *
 *     fold(l, zero, (s, x) => s + x * w)
 *
 * The lambda becomes a function of the module, "main#1": its operands are s and x, and then w, which it has
 * captured: a value of the function around, which each call gives along. Operands have types of their own:
 * where w: f32[n] in main, main#1 has a symbol n of its own, and the call says what it stands for.
 *
 * A lambda is read where it stands, as the names around it are known there. So nodes are made in the new
 * function meanwhile (parser->f), and a name from around is imported at its first use (lang_import): in a
 * lambda within a lambda, first into the outer one.
 */
#include <string.h>

#include "ir/build.h"
#include "ir/walk.h"
#include "lang/poly.h"

/* ---- types in another function ---- */

/* The body of the function, whatever region is open. */
static graph_body *entry_of(const graph_function *function)
{
    graph_body *body = function->body;

    while (body->outer)
        body = body->outer;
    return body;
}

/* An extent that stands alone gets a symbol of this function, by the same name. */
static void import_symbols(lang_parser *parser, base_map *symbols, lang_def *def, const graph_type *type)
{
    for (int d = 0; type->kind == GRAPH_TENSOR && d < type->tensor.n; d++) {
        const ir_expr *dim = type->tensor.dim[d];

        if (dim->op != IR_VAR || base_map_has(symbols, dim))
            continue;
        const ir_expr *own = graph_symbol_in(parser->m, entry_of(def->f), dim->var.name);
        base_map_put(parser->cx, symbols, dim, own);
        base_push(parser->cx, &def->signature->symbols, own);
    }
    for (int k = 0; k < type->n; k++)
        import_symbols(parser, symbols, def, &type->part[k]);
}

/* The same extent by the own symbols; NULL: some symbol has none. */
static const ir_expr *import_extent(lang_parser *parser, const base_map *symbols, const ir_expr *extent)
{
    ir_subst map = {.vars = *symbols};
    base_vec vars = {0};

    ir_free_vars(parser->cx, extent, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!base_map_has(symbols, vars.at[i]))
            return NULL;
    return ir_apply(parser->cx, &map, extent);
}

/* The type by the own symbols. An extent such as n + 1 of which n is not known is a new symbol: of the entry
 * where `entry` is given, otherwise one that each call finds out. */
static graph_type with_symbols(lang_parser *parser, const base_map *symbols, lang_def *def,
                               const graph_type *type, graph_body *entry)
{
    int rank = type->kind == GRAPH_TENSOR ? type->tensor.n : 0;
    const ir_expr **dim = base_array(parser->cx, const ir_expr *, rank);
    graph_type out = *type, *part = base_array(parser->cx, graph_type, type->n);
    base_vec *own = &def->signature->symbols;

    for (int d = 0; d < rank; d++) {
        dim[d] = import_extent(parser, symbols, type->tensor.dim[d]);
        if (dim[d])
            continue;
        dim[d] = entry ? graph_symbol_in(parser->m, entry, NULL)
                       : ir_var(parser->cx, base_format(parser->cx, "u%d", own->n), BASE_I64);
        base_push(parser->cx, own, dim[d]);
    }
    for (int k = 0; k < type->n; k++)
        part[k] = with_symbols(parser, symbols, def, &type->part[k], entry);
    out.tensor.dim = dim;
    out.part = part;
    return out;
}

graph_type lang_import_type(lang_parser *parser, base_map *symbols, lang_def *def, const graph_type *type)
{
    import_symbols(parser, symbols, def, type);
    return with_symbols(parser, symbols, def, type, entry_of(def->f));
}

/* ---- values from around ---- */

/* An operand more, also where a region of the function is open. */
static graph_value *add_operand(lang_def *def, const char *name, const graph_type *type)
{
    graph_body *open = def->f->body;

    def->f->body = entry_of(def->f);
    graph_value *value = graph_typed_input(def->f, name, type);
    def->f->body = open;
    return value;
}

/* The value in the function of `frame`; `name` is the place of its name, which tells the function that it
 * belongs to. */
static graph_value *import_to(lang_parser *parser, lang_frame *frame, int name, graph_value *value)
{
    if (!frame || name >= frame->names)
        return value;
    value = import_to(parser, frame->outer, name, value);
    graph_value *inside = base_map_get(&frame->imported, value);
    if (inside)
        return inside;
    graph_type found = graph_type_of(value),
               type = lang_import_type(parser, &frame->symbols, frame->def, &found);
    inside = add_operand(frame->def, value->name, &type);
    base_map_put(parser->cx, &frame->imported, value, inside);
    base_push(parser->cx, &frame->captured, value);
    base_push(parser->cx, &frame->types, base_copy(parser->cx, &type, sizeof type));
    return inside;
}

graph_value *lang_import(lang_parser *parser, int name, graph_value *value)
{
    return import_to(parser, parser->frame, name, value);
}

const lang_function *lang_import_function(lang_parser *parser, int name, const lang_function *function)
{
    lang_function *inside = base_new(parser->cx, lang_function);
    graph_value **value = base_array(parser->cx, graph_value *, function->n_captured);

    for (int k = 0; k < function->n_captured; k++)
        value[k] = lang_import(parser, name, function->captured[k]);
    *inside = (lang_function){.def = function->def, .n_captured = function->n_captured, .captured = value};
    return inside;
}

/* ---- lambdas ---- */

static const lang_pattern *result_of(const lang_pattern *function)
{
    return function->part.at[function->part.n - 1];
}

/* A function with one operand for each parameter of the pattern, to be read now. */
static lang_def *open_lambda(lang_parser *parser, const lang_poly *poly, const lang_pattern *pattern,
                             const lang_bindings *bindings, lang_frame *frame)
{
    lang_def *def = base_new(parser->cx, lang_def);

    *def = (lang_def){.name = base_format(parser->cx, "%s#%d", parser->f->name, ++parser->n_lambdas),
                      .signature = base_new(parser->cx, graph_body)};
    def->f = graph_function_new(parser->m, def->name);
    *frame = (lang_frame){.outer = parser->frame, .def = def, .around = parser->f, .names = parser->names.n};
    for (int k = 0; k < pattern->part.n - 1; k++) {
        graph_type *type = base_new(parser->cx, graph_type);

        if (!lang_pattern_type(parser, poly, pattern->part.at[k], bindings,
                               &(lang_scope){&def->signature->symbols, def->f->body}, type))
            return NULL;
        add_operand(def, base_format(parser->cx, "x%d", k), type);
        base_push(parser->cx, &frame->types, type);
    }
    parser->frame = frame;
    parser->f = def->f;
    return def;
}

/* Back to the function around. The value is the result; NULL: an error. */
static lang_function *close_lambda(lang_parser *parser, lang_frame *frame, graph_value *value)
{
    lang_def *def = frame->def;
    lang_function *out = base_new(parser->cx, lang_function);
    graph_type *param = base_array(parser->cx, graph_type, frame->types.n);
    base_map own = {0};

    if (value)
        graph_output(def->f, "result", value);
    parser->frame = frame->outer;
    parser->f = frame->around;
    parser->names.n = frame->names;
    if (!value)
        return NULL;
    for (int k = 0; k < frame->types.n; k++)
        param[k] = *(const graph_type *)frame->types.at[k];
    for (int i = 0; i < def->signature->symbols.n; i++)
        base_map_put(parser->cx, &own, def->signature->symbols.at[i], def->signature->symbols.at[i]);
    def->param = param;
    def->n_params = frame->types.n;
    def->n_params_symbols = def->signature->symbols.n;
    graph_type found = graph_type_of(value);
    def->result = with_symbols(parser, &own, def, &found, NULL);
    *out = (lang_function){.def = def,
                           .made = true,
                           .n_captured = frame->captured.n,
                           .captured = (graph_value *const *)frame->captured.at};
    return out;
}

/* (pattern, ...) => */
static bool bind_patterns(lang_parser *parser, const lang_poly *poly, const lang_poly_param *param,
                          const lang_def *def)
{
    const base_vec *inputs = &entry_of(def->f)->inputs;
    const char *at = parser->at;
    int n = param->type->part.n - 1, count = 0;

    if (!lang_expect(parser, "("))
        return false;
    while (!lang_at(parser, ")")) {
        if (count == n)
            return lang_fail(parser, at, "'%s': the function '%s' has %d operands, found more names",
                             poly->name, param->name, n);
        if (!lang_bind_pattern(parser, inputs->at[count++]))
            return false;
        if (!lang_accept(parser, ","))
            break;
    }
    if (count < n)
        return lang_fail(parser, at, "'%s': the function '%s' has %d operands, found %d names", poly->name,
                         param->name, n, count);
    return lang_expect(parser, ")") && lang_expect(parser, "=>");
}

/* What is expected of the result, where its types are known. */
static const graph_type *expected_result(lang_parser *parser, const lang_poly *poly,
                                         const lang_pattern *pattern, const lang_bindings *bindings)
{
    graph_type *type = base_new(parser->cx, graph_type);
    base_vec own = {0};

    return lang_pattern_is_known(pattern, bindings) &&
                   lang_pattern_type(parser, poly, pattern, bindings, &(lang_scope){&own, NULL}, type)
               ? type
               : NULL;
}

/* A lambda, which is made into a function while it is read. */
static lang_function *read_lambda(lang_parser *parser, const lang_poly *poly, const lang_poly_param *param,
                                  const lang_bindings *bindings)
{
    lang_frame *frame = base_new(parser->cx, lang_frame);
    lang_def *def = open_lambda(parser, poly, param->type, bindings, frame);
    graph_value *value = NULL;

    if (!def)
        return NULL;
    if (bind_patterns(parser, poly, param, def)) {
        parser->expected = expected_result(parser, poly, result_of(param->type), bindings);
        value = lang_expression(parser);
    }
    return close_lambda(parser, frame, value);
}

/* The operator as a function of the module. */
static lang_function *wrap_operator(lang_parser *parser, const lang_poly *poly, const lang_poly_param *param,
                                    const lang_bindings *bindings, const op_info *op, const char *at)
{
    lang_frame *frame = base_new(parser->cx, lang_frame);
    lang_def *def = open_lambda(parser, poly, param->type, bindings, frame);

    return def ? close_lambda(parser, frame,
                              lang_add_operator(parser, op, at,
                                                (graph_value *const *)entry_of(def->f)->inputs.at,
                                                param->type->part.n - 1, NULL, 0))
               : NULL;
}

/* A function with type parameters of its own: the types of the operands tell them. */
static lang_function *instance_for(lang_parser *parser, const lang_poly *poly, const lang_poly_param *param,
                                   const lang_bindings *bindings, const lang_poly *given, const char *at)
{
    lang_bindings own = lang_new_bindings(parser, given);
    lang_function *out = base_new(parser->cx, lang_function);
    int n = param->type->part.n - 1;

    if (given->params.n != n)
        return lang_fail(parser, at, "'%s' takes %d operands, expected %d as '%s' of '%s'", given->name,
                         given->params.n, n, param->name, poly->name);
    for (int k = 0; k < n; k++) {
        const lang_poly_param *operand = given->params.at[k];
        base_vec symbols = {0};
        graph_type type;

        if (!lang_pattern_type(parser, poly, param->type->part.at[k], bindings, &(lang_scope){&symbols, NULL},
                               &type))
            return NULL;
        if (!lang_match_type(parser, operand->type, &type, &own))
            return lang_fail(parser, at, "'%s' does not take %s as operand %d, which '%s' of '%s' gives",
                             given->name, graph_type_text(parser->cx, &type), k + 1, param->name, poly->name);
    }
    out->def = lang_instance_of_poly(parser, given, at, &own, NULL);
    return out->def ? out : NULL;
}

/* (...) => ahead. */
static bool is_lambda(const lang_parser *parser)
{
    base_lexer ahead = *parser->lx;
    int depth = 0;

    if (!base_at(&ahead, "("))
        return false;
    do {
        depth += base_at(&ahead, "(") ? 1 : base_at(&ahead, ")") ? -1 : 0;
        base_advance(&ahead);
    } while (depth > 0 && ahead.tok.kind != BASE_TOK_END);
    return base_at(&ahead, "=>");
}

/* A name: of a parameter that is a function, of a function, with type parameters or without, or of an
 * operator. */
static lang_function *named_function(lang_parser *parser, const lang_poly *poly, const lang_poly_param *param,
                                     const lang_bindings *bindings)
{
    const char *at = parser->at, *name = lang_expect_name(parser, "a function");
    graph_value *value = NULL;
    lang_function *out = base_new(parser->cx, lang_function);

    if (!name)
        return NULL;
    const lang_function *known = lang_find_function(parser, name, &value);
    if (value) {
        graph_type type = graph_type_of(value);

        return lang_fail(parser, at, "'%s' is a value of type %s, expected a function for '%s' of '%s'", name,
                         graph_type_text(parser->cx, &type), param->name, poly->name);
    }
    if (known)
        *out = *known;
    else if (lang_find_def(parser, name))
        out->def = lang_find_def(parser, name);
    else if (lang_find_poly(parser, name))
        return instance_for(parser, poly, param, bindings, lang_find_poly(parser, name), at);
    else if (op_find(name))
        return wrap_operator(parser, poly, param, bindings, op_find(name), at);
    else
        return lang_fail(parser, at, "there is no function or operator '%s'", name);
    return out;
}

/* Takes a lambda that is read again out of the module. */
static void forget(lang_parser *parser, const lang_def *def)
{
    base_vec *all = &parser->m->functions;
    int n = 0;

    for (int i = 0; i < all->n; i++)
        if (all->at[i] != def->f)
            all->at[n++] = all->at[i];
    all->n = n;
}

/* In a function that nobody uses, the call that would compare the types is not read. */
static bool operands_may_fit(lang_parser *parser, const lang_poly *poly, const lang_poly_param *param,
                             const lang_bindings *bindings, const lang_def *given, const char *at)
{
    for (int k = 0; parser->any && k < param->type->part.n - 1; k++) {
        base_vec own = {0};
        graph_type type;

        if (!lang_pattern_type(parser, poly, param->type->part.at[k], bindings,
                               &(lang_scope){&own, parser->f->body}, &type))
            return false;
        if (!lang_may_fit(parser, &given->param[k], &type))
            return lang_fail(parser, at, "'%s' does not take %s as operand %d, which '%s' of '%s' gives",
                             given->name, graph_type_text(parser->cx, &type), k + 1, param->name, poly->name);
    }
    return true;
}

/* A function whose operand is the state that it gives, as that of `fold`, may give a state of other extents
 * than the first one: f32[0, 4], then f32[1, 4]. Then the state is f32[?, 4], and the lambda is read again
 * with this type. */
lang_function *lang_read_function(lang_parser *parser, const lang_poly *poly, const lang_poly_param *param,
                                  lang_bindings *bindings)
{
    const base_lexer start = *parser->lx;
    const char *at = parser->at;
    int n = param->type->part.n - 1;

    for (bool again = false;; again = true) {
        const lang_bindings before = lang_copy_bindings(parser, poly, bindings);
        lang_function *out = is_lambda(parser) ? read_lambda(parser, poly, param, bindings)
                                               : named_function(parser, poly, param, bindings);

        if (!out)
            return NULL;
        if (out->def->n_params - out->n_captured != n)
            return lang_fail(parser, at, "'%s' takes %d operands, expected %d as '%s' of '%s'",
                             out->def->name, out->def->n_params - out->n_captured, n, param->name,
                             poly->name);
        if (!operands_may_fit(parser, poly, param, bindings, out->def, at))
            return NULL;
        if (!lang_match_type(parser, result_of(param->type), &out->def->result, bindings))
            return lang_fail(parser, at, "'%s': the function '%s' gives %s, expected %s", poly->name,
                             param->name, graph_type_text(parser->cx, &out->def->result),
                             lang_expected_text(parser, result_of(param->type), bindings));
        if (again || lang_keeps_bindings(poly, &before, bindings))
            return out;
        if (out->made)
            forget(parser, out->def);
        *parser->lx = start;
        lang_stand(parser);
    }
}

graph_value *lang_call_function(lang_parser *parser, const char *name, const lang_function *function,
                                const char *at, const base_vec *values)
{
    int count = function->def->n_params - function->n_captured;
    base_vec all = {0};

    if (values->n != count)
        return lang_fail(parser, at, "'%s' takes %d operands, found %d", name, count, values->n);
    for (int k = 0; k < count; k++)
        base_push(parser->cx, &all, values->at[k]);
    for (int k = 0; k < function->n_captured; k++)
        base_push(parser->cx, &all, function->captured[k]);
    return lang_call(parser, function->def, at, (graph_value *const *)all.at, all.n);
}
