/* lang/sequence.c -- `fold`, `scan` and `map` over the first axis of a tensor.
 *
 *     fold(x, s0, (s, row) => s + row)              s0 + x[0] + x[1] + ...
 *     scan(x, s0, (s, row) => (s + row, s))         the last state, and all second parts
 *     map(x, (row) => row * 2)                      what each row gives, one behind the other
 *
 * Each becomes a node `scan` of the graph (docs/graph.md) whose region is what stands behind `=>`: a loop of
 * the VM, no recursion. fold and map are a scan that collects nothing and one without a state.
 */
#include "lang/poly.h"

typedef enum { FOLD, SCAN, MAP } kind;

/* The element that each iteration sees: the tensor's type without its first extent. */
static bool element_type(lang_parser *parser, const char *at, const graph_value *sequence, graph_type *out)
{
    graph_type type = graph_type_of(sequence);

    if (type.kind != GRAPH_TENSOR || type.tensor.n < 1)
        return lang_fail(parser, at, "expected a tensor with a first axis to run along, found %s",
                         graph_type_text(parser->cx, &type));
    *out = graph_tensor_type(&(op_type){type.tensor.dtype, type.tensor.n - 1, type.tensor.dim + 1});
    return true;
}

/* (patterns) =>: binds the inputs of the region that is open. */
static bool read_patterns(lang_parser *parser, graph_value *const *input, int count)
{
    if (!lang_expect(parser, "("))
        return false;
    for (int i = 0; i < count; i++)
        if ((i > 0 && !lang_expect(parser, ",")) || !lang_bind_pattern(parser, input[i]))
            return false;
    return lang_expect(parser, ")") && lang_expect(parser, "=>");
}

/* What the region gives: the value; for a scan the two parts of it. */
static bool give(lang_parser *parser, kind how, const char *at, graph_value *value)
{
    graph_type type = graph_type_of(value);

    if (how != SCAN) {
        graph_output(parser->f, "value", value);
        return true;
    }
    if (lang_is_open(parser, &type)) {
        graph_output(parser->f, "value", value);
        return true;
    }
    if (type.kind != GRAPH_TUPLE || type.n != 2)
        return lang_fail(parser, at, "scan's function gives (state, element), found %s",
                         graph_type_text(parser->cx, &type));
    lang_blame(parser, at);
    for (int i = 0; i < 2; i++)
        graph_output(parser->f, "value", graph_add_field(parser->f, "part", value, i));
    lang_stand(parser);
    return !base_failed(parser->cx);
}

/* The region: a state unless it is a map, and an element. It is closed after an error too. */
static graph_body *read_region(lang_parser *parser, kind how, const graph_value *state,
                               const graph_type *element)
{
    graph_value *input[2], *value = NULL;
    int n = 0, names = parser->names.n;

    graph_region_open(parser->f);
    if (state) {
        graph_type type = graph_type_of(state);

        input[n++] = graph_typed_input(parser->f, "state", &type);
    }
    input[n++] = graph_typed_input(parser->f, "element", element);
    bool good = read_patterns(parser, input, n);
    const char *at = parser->at;
    good = good && (value = lang_expression(parser)) && give(parser, how, at, value);
    parser->names.n = names;
    graph_body *region = graph_region_close(parser->f);
    return good ? region : NULL;
}

/* Whether nothing is known of a part of the state or of what the region gives. */
static bool gives_any(const lang_parser *parser, const graph_value *state, const graph_body *region)
{
    graph_type type = state ? graph_type_of(state) : (graph_type){0};
    bool any = state && lang_has_any(parser, &type);

    for (int k = 0; k < region->outputs.n; k++) {
        type = graph_type_of(region->outputs.at[k]);
        any = any || lang_has_any(parser, &type);
    }
    return any;
}

bool lang_is_sequence(const char *name)
{
    return base_same(name, "fold") || base_same(name, "scan") || base_same(name, "map");
}

static bool is_tensor(const graph_value *value)
{
    return graph_type_of(value).kind == GRAPH_TENSOR;
}

/* Behind the name: (sequence, state, function), or (sequence, function) of a map. Where the sequence is no
 * tensor, the function of the prelude that has the name takes it, as `map` takes a list. */
graph_value *lang_sequence(lang_parser *parser, const char *name, const char *at, const graph_type *expected)
{
    kind how = base_same(name, "fold") ? FOLD : base_same(name, "scan") ? SCAN : MAP;
    graph_value *sequence, *state = NULL;
    graph_type element;

    if (!lang_expect(parser, "("))
        return NULL;
    const char *sequence_at = parser->at;
    if (!(sequence = lang_expression(parser)) || !lang_expect(parser, ","))
        return NULL;
    const lang_poly *poly = lang_find_poly(parser, name);
    bool open = lang_some_are_open(parser, &sequence, 1);
    if (open)
        return poly && lang_call_poly(parser, poly, at, lang_any_value(parser), NULL) ? lang_any_value(parser)
                                                                                      : NULL;
    if (poly && !is_tensor(sequence))
        return lang_call_poly(parser, poly, at, sequence, expected);
    if (how != MAP && (!(state = lang_expression(parser)) || !lang_expect(parser, ",")))
        return NULL;
    if (!element_type(parser, sequence_at, sequence, &element))
        return NULL;
    graph_body *region = read_region(parser, how, state, &element);
    if (!region || !lang_expect(parser, ")"))
        return NULL;
    graph_value *in[] = {state ? state : sequence, sequence};
    if (gives_any(parser, state, region))
        return lang_any_value(parser);
    lang_blame(parser, at);
    graph_node *node = graph_add_scan(parser->f, name, in, state ? 2 : 1, state ? 1 : 0, region);
    graph_value *value = !node         ? NULL
                         : how == SCAN ? graph_add_tuple(parser->f, name, node->out, 2)
                                       : node->out[0];
    lang_stand(parser);
    return value;
}
