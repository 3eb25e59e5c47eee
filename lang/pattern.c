/* lang/pattern.c -- types with type parameters in them, as they are written, and what the type parameters
 * stand for.
 *
 *     List[(a, f32[n])]  and the type  List[(i64, f32[3])] of an operand:   a is i64
 *
 * The one direction is lang_match_type: a type that was found tells type parameters. The other one is
 * lang_pattern_type: what they stand for is put in their places. What stands where no type parameter is, such
 * as f32[n], is read as any type is, and compared when the function is called.
 */
#include <string.h>

#include "ir/build.h"
#include "lang/poly.h"

/* ---- patterns ---- */

intptr_t lang_type_number(const lang_poly *poly, const char *name)
{
    for (int i = 0; i < poly->types.n; i++)
        if (base_same(poly->types.at[i], name))
            return i;
    return -1;
}

/* (PATTERN, ...), with any closing token. */
static bool read_parts(lang_parser *parser, const lang_poly *poly, lang_pattern *out, const char *close)
{
    while (!lang_at(parser, close)) {
        lang_pattern *part = lang_read_pattern(parser, poly);

        if (!part)
            return false;
        base_push(parser->cx, &out->part, part);
        if (!lang_accept(parser, ","))
            break;
    }
    return lang_expect(parser, close);
}

/* Steps over the extents of a tensor type, which are read when the type is needed. */
static bool skip_extents(lang_parser *parser)
{
    int depth = 0;

    if (!lang_at(parser, "["))
        return true;
    do {
        depth += lang_at(parser, "[") ? 1 : lang_at(parser, "]") ? -1 : 0;
        lang_advance(parser);
    } while (depth > 0 && parser->lx->tok.kind != BASE_TOK_END);
    return depth == 0 || lang_expect(parser, "]");
}

/* A type that begins with a name. */
static bool read_named_pattern(lang_parser *parser, const lang_poly *poly, lang_pattern *out)
{
    const char *name = lang_expect_name(parser, "a type");

    if (!name)
        return false;
    out->variable = lang_type_number(poly, name);
    out->generic = lang_find_generic(parser, name);
    out->kind = out->variable >= 0 ? LANG_VARIABLE : out->generic ? LANG_APPLIED : LANG_PLAIN;
    if (out->kind == LANG_APPLIED) {
        const char *at = parser->at;

        if (!lang_expect(parser, "[") || !read_parts(parser, poly, out, "]"))
            return false;
        if (out->part.n != out->generic->params.n)
            return lang_fail(parser, at, "'%s' takes %d types, found %d", name, out->generic->params.n,
                             out->part.n);
    }
    return out->kind != LANG_PLAIN || skip_extents(parser);
}

/* One type in parentheses is only grouped. */
lang_pattern *lang_read_pattern(lang_parser *parser, const lang_poly *poly)
{
    lang_pattern *out = base_new(parser->cx, lang_pattern), *result;

    if (++parser->depth > 200)
        return lang_fail(parser, parser->at, "types and expressions nest deeper than 200");
    *out = (lang_pattern){.kind = LANG_PARTS, .at = *parser->lx, .from = parser->at};
    if (lang_accept(parser, "fn")) {
        out->kind = LANG_FUNCTION;
        if (!lang_expect(parser, "(") || !read_parts(parser, poly, out, ")") || !lang_expect(parser, "->") ||
            !(result = lang_read_pattern(parser, poly)))
            return NULL;
        base_push(parser->cx, &out->part, result);
    } else if (lang_accept(parser, "(")) {
        if (!read_parts(parser, poly, out, ")"))
            return NULL;
        if (out->part.n == 1)
            out = out->part.at[0];
    } else if (!read_named_pattern(parser, poly, out)) {
        return NULL;
    }
    parser->depth--;
    if (!out->to)
        out->to = parser->at;
    return out;
}

/* As it is written, without the white space behind it. */
const char *lang_pattern_text(lang_parser *parser, const lang_pattern *pattern)
{
    const char *end = pattern->to;

    while (end > pattern->from && strchr(" \t\r\n", end[-1]))
        end--;
    return base_format(parser->cx, "%.*s", (int)(end - pattern->from), pattern->from);
}

const char *lang_expected_text(lang_parser *parser, const lang_pattern *pattern,
                               const lang_bindings *bindings)
{
    const char *text = lang_pattern_text(parser, pattern);

    return pattern->kind == LANG_VARIABLE && bindings->known[pattern->variable]
               ? base_format(parser->cx, "%s, for which '%s' stands",
                             graph_type_text(parser->cx, &bindings->type[pattern->variable]), text)
               : text;
}

/* ---- what type parameters stand for ---- */

lang_bindings lang_new_bindings(lang_parser *parser, const lang_poly *poly)
{
    tec_context *cx = parser->cx;
    int n = poly->types.n;

    return (lang_bindings){base_array(cx, graph_type, n), base_array(cx, graph_type, n),
                           base_array(cx, bool, n), base_array(cx, bool, n)};
}

lang_bindings lang_copy_bindings(lang_parser *parser, const lang_poly *poly, const lang_bindings *bindings)
{
    lang_bindings copy = *bindings;
    size_t n = (size_t)poly->types.n;

    copy.type = base_copy(parser->cx, bindings->type, n * sizeof *copy.type);
    copy.known = base_copy(parser->cx, bindings->known, n * sizeof *copy.known);
    return copy;
}

bool lang_keeps_bindings(const lang_poly *poly, const lang_bindings *before, const lang_bindings *after)
{
    for (int i = 0; i < poly->types.n; i++)
        if (before->known[i] && !graph_types_same(NULL, &before->type[i], &after->type[i]))
            return false;
    return true;
}

/* One type for both: extents that differ become `?`. False: the types differ in more than extents. A list of
 * f32[2] and a list of f32[?] are two data types. */
static bool join(lang_parser *parser, graph_type *type, const graph_type *other)
{
    graph_type *part = base_copy(parser->cx, type->part, (size_t)type->n * sizeof *part);

    if (type->kind != other->kind || type->n != other->n || !base_same(type->data, other->data))
        return false;
    for (int k = 0; k < type->n; k++)
        if (!join(parser, &part[k], &other->part[k]))
            return false;
    type->part = part;
    if (type->kind != GRAPH_TENSOR)
        return true;
    if (type->tensor.n != other->tensor.n || !base_dtype_same(type->tensor.dtype, other->tensor.dtype))
        return false;
    const ir_expr **dim =
        base_copy(parser->cx, type->tensor.dim, (size_t)type->tensor.n * sizeof *type->tensor.dim);
    for (int d = 0; d < type->tensor.n; d++)
        dim[d] = ir_same(dim[d], other->tensor.dim[d]) ? dim[d] : parser->unknown;
    type->tensor.dim = dim;
    return true;
}

/* What a type tells of which nothing is known: variables that are not known yet are of such a type. */
static void bind_any(const graph_type *any, const lang_pattern *pattern, lang_bindings *bindings)
{
    if (pattern->kind == LANG_VARIABLE && !bindings->known[pattern->variable]) {
        bindings->type[pattern->variable] = *any;
        bindings->known[pattern->variable] = true;
    }
    for (int k = 0; k < pattern->part.n; k++)
        bind_any(any, pattern->part.at[k], bindings);
}

/* A type parameter whose type is known in part takes what fits. */
static bool join_any(lang_parser *parser, graph_type *type, const graph_type *other)
{
    bool fit = lang_may_fit(parser, type, other);

    if (fit && lang_has_any(parser, type))
        *type = *other;
    return fit;
}

/* Goes down both at once: a variable takes what stands in its place in the type that was found. */
bool lang_match_type(lang_parser *parser, const lang_pattern *pattern, const graph_type *found,
                     lang_bindings *bindings)
{
    graph_type type = lang_as_argument(parser, found);
    const lang_instance *instance = lang_instance_of(parser, found);
    const graph_type *part = instance ? instance->arg : type.part;
    int n = instance ? instance->generic->params.n : type.n;

    if (lang_is_open(parser, found) && lang_has_any(parser, found)) {
        bind_any(found, pattern, bindings);
        return true;
    }
    switch (pattern->kind) {
    case LANG_VARIABLE:
        if (bindings->known[pattern->variable] &&
            (lang_has_any(parser, &bindings->type[pattern->variable]) || lang_has_any(parser, found)))
            return join_any(parser, &bindings->type[pattern->variable], &type);
        if (bindings->known[pattern->variable])
            return join(parser, &bindings->type[pattern->variable], &type);
        bindings->type[pattern->variable] = type;
        bindings->known[pattern->variable] = true;
        return true;
    case LANG_PLAIN: return true; /* the call compares the types */
    case LANG_FUNCTION: return false;
    case LANG_APPLIED:
        if (!instance || instance->generic != pattern->generic)
            return false;
        break;
    case LANG_PARTS:
        if (found->kind != GRAPH_TUPLE || found->n != pattern->part.n)
            return false;
        break;
    }
    for (int k = 0; k < n; k++)
        if (!lang_match_type(parser, pattern->part.at[k], &part[k], bindings))
            return false;
    return true;
}

static const graph_type *type_of_variable(const lang_bindings *bindings, intptr_t variable)
{
    return bindings->known[variable]    ? &bindings->type[variable]
           : bindings->hinted[variable] ? &bindings->hint[variable]
                                        : NULL;
}

bool lang_pattern_is_known(const lang_pattern *pattern, const lang_bindings *bindings)
{
    if (pattern->kind == LANG_VARIABLE)
        return type_of_variable(bindings, pattern->variable);
    for (int k = 0; k < pattern->part.n; k++)
        if (!lang_pattern_is_known(pattern->part.at[k], bindings))
            return false;
    return true;
}

/* A type without type parameters, from the text. */
static bool read_plain(lang_parser *parser, const lang_pattern *pattern, const lang_scope *scope,
                       graph_type *out)
{
    const base_lexer back = *parser->lx;

    *parser->lx = pattern->at;
    lang_stand(parser);
    bool good = lang_type(parser, scope, out);
    *parser->lx = back;
    lang_stand(parser);
    return good;
}

/* The reverse of lang_match_type: what stands for each variable is put in its place. */
bool lang_pattern_type(lang_parser *parser, const lang_poly *poly, const lang_pattern *pattern,
                       const lang_bindings *bindings, const lang_scope *scope, graph_type *out)
{
    graph_type *part = base_array(parser->cx, graph_type, pattern->part.n);
    base_vec own = {0}; /* the extents of a data type's arguments are `?`, whatever the scope */
    const lang_scope inside = pattern->kind == LANG_APPLIED ? (lang_scope){&own, NULL} : *scope;

    if (pattern->kind == LANG_VARIABLE) {
        const graph_type *type = type_of_variable(bindings, pattern->variable);

        if (!type)
            return lang_fail(parser, parser->at,
                             "the type '%s' of '%s' is not known here: write %s[TYPES](...), with a type for "
                             "each type parameter",
                             (const char *)poly->types.at[pattern->variable], poly->name, poly->name);
        *out = lang_as_field(parser, type, scope);
        return true;
    }
    if (pattern->kind == LANG_PLAIN)
        return read_plain(parser, pattern, scope, out);
    for (int k = 0; k < pattern->part.n; k++) {
        if (!lang_pattern_type(parser, poly, pattern->part.at[k], bindings, &inside, &part[k]))
            return false;
        if (pattern->kind == LANG_APPLIED)
            part[k] = lang_as_argument(parser, &part[k]);
    }
    if (pattern->kind == LANG_PARTS) {
        *out = graph_tuple_type(parser->cx, part, pattern->part.n);
        return true;
    }
    const lang_instance *made = lang_instantiate(parser, pattern->generic, part, parser->at);
    if (made)
        *out = graph_data_type(made->data->name);
    return made;
}
