/* graph/control.c -- calls, `if`, loops and scans: the rules that bind operands, regions and results.
 *
 *     loop: operands (trip, cond, c...)  body (i, cond, c...) -> (cond, c..., e...)  results (c..., [?,
 *         e]...)
 *     scan: operands (s..., [n, x]...)   body (s..., x...) -> (s..., y...)           results (s..., [n,
 *                                          y]...)
 *
 * Where the called function or the region binds symbols, its inputs fit operands of more than one type (an
 * instance, graph/scope.h). A cache that grows by a row in each iteration:
 *
 *     v3: f32[d, 4] = loop "decode"(v0, _, v1) {        // v1: f32[1, 4]
 *       symbols n
 *       input i: i64[] input go: bool[] input c: f32[n, 4]
 *       ...                                             // gives f32[n + 1, 4]
 *     }
 *
 * The operand fits with n = 1, the body's output with n = n + 1; the result's d is another symbol, of the
 * body around the loop. With n in the result's place the type would speak of an iteration that is over.
 */
#include "graph/rules.h"

static const op_type *type_at(const base_vec *values, int k)
{
    return &((const graph_value *)values->at[k])->type;
}

/* One element of a sequence. */
static op_type element(const op_type *type)
{
    return (op_type){type->dtype, type->n - 1, type->dim + 1};
}

/* An `if` has two regions without inputs; both give as many outputs as the node has results, of types that
 * fit them. */
static bool check_if(const graph_rules *rules)
{
    const graph_node *node = rules->node;

    if (!graph_rule_count(rules, "operands", node->n_in, 1) ||
        !graph_rule_count(rules, "regions", node->n_bodies, 2) || !graph_rule_all_there(rules, 0) ||
        !graph_rule_scalar(rules, "operand", 0, node->in[0], BASE_BOOL))
        return false;
    const graph_type *results = graph_types_of(rules->cx, node->out, node->n_out);
    for (int b = 0; b < 2; b++) {
        graph_rules in = graph_rules_inside(rules, node->body[b]);
        graph_instance i = graph_instance_of_node(rules->cx, node);

        if (!graph_rule_count(rules, b ? "inputs of 'else'" : "inputs of 'then'", node->body[b]->inputs.n,
                              0) ||
            !graph_rule_count(rules, b ? "outputs of 'else'" : "outputs of 'then'", node->body[b]->outputs.n,
                              node->n_out) ||
            !graph_rule_fit(&in, &i, b ? "output of 'else'" : "output of 'then'", 0, results,
                            graph_types_at(rules->cx, &node->body[b]->outputs, 0, node->n_out), node->n_out))
            return false;
    }
    return true;
}

/* `count` values that go around: operands from `in` on, inputs from `input` on, outputs from `output` on,
 * results from 0 on. The operands and what each iteration gives fit the inputs; both fit the results, which
 * are the operands where no iteration runs. Four separate questions, each with values of its own for the
 * symbols. For the cache above, with an operand f32[1, 4] and a result f32[d, 4]:
 *
 *     first   operand f32[1, 4] as input  f32[n, 4]      n = 1
 *     next    output  f32[n+1, 4] as input f32[n, 4]     n = n + 1, of the iteration before
 *     none    operand f32[1, 4] as result f32[d, 4]      d = 1
 *     some    output  f32[n+1, 4] as result f32[d, 4]    d = n + 1
 *
 * With one instance for the first two, count = 1 would forbid the second iteration. An input c: f32[8, 4]
 * that gets back f32[9, 4] is refused by `next`. */
static bool check_carried(const graph_rules *rules, const graph_body *body, int count, int in, int input,
                          int output)
{
    tec_context *cx = rules->cx;
    const graph_type *given = graph_types_of(cx, rules->node->in + in, count),
                     *taken = graph_types_at(cx, &body->inputs, input, count);
    const graph_type *made = graph_types_at(cx, &body->outputs, output, count),
                     *results = graph_types_of(cx, rules->node->out, count);
    graph_instance first = graph_instance_of_body(cx, body), next = first;
    graph_instance none = graph_instance_of_node(cx, rules->node), some = none;
    graph_rules within = graph_rules_inside(rules, body);

    return graph_rule_fit(rules, &first, "operand", in, taken, given, count) &&
           graph_rule_fit(&within, &next, "output", output, taken, made, count) &&
           graph_rule_fit(rules, &none, "operand", in, results, given, count) &&
           graph_rule_fit(&within, &some, "output", output, results, made, count);
}

static bool refuse_sequence(const graph_rules *rules, int k, const op_type *found, const op_type *element)
{
    base_fail(rules->cx, TEC_INVALID, rules->node->loc, "'%s': result %d is %s, expected a sequence of %s",
              rules->node->name, k, op_type_text(rules->cx, found), op_type_text(rules->cx, element));
    return false;
}

/* Whether all extents are of symbols that are known outside of the body: others may differ from iteration to
 * iteration, as that of a value that grows. */
static bool stays(const graph_rules *rules, const graph_body *body, const op_type *type)
{
    base_vec vars = {0};

    for (int d = 0; d < type->n; d++)
        ir_free_vars(rules->cx, type->dim[d], &vars);
    for (int i = 0; i < vars.n; i++)
        if (graph_binds_symbol(body, vars.at[i]))
            return false;
    return true;
}

/* Results from `first` on are sequences of the body's outputs from `output` on, whose extents are the same in
 * each iteration. */
static bool check_collected(const graph_rules *rules, const graph_body *body, int first, int output)
{
    const ir_facts *facts = graph_facts_in(rules->m, body);

    for (int k = first; k < rules->node->n_out; k++) {
        const op_type *type = &rules->node->out[k]->type, *made = type_at(&body->outputs, output + k - first);
        op_type one = element(type);

        if (type->n < 1 || !graph_same_type(facts, made, &one))
            return refuse_sequence(rules, k, type, made);
        if (!stays(rules, body, made))
            return base_fail(
                       rules->cx, TEC_UNSUPPORTED, rules->node->loc,
                       "'%s': result %d collects values of %s, whose extents may differ between iterations",
                       rules->node->name, k, op_type_text(rules->cx, made)) != NULL;
    }
    return true;
}

/* Whether the symbol gets its value by the node's results. */
static bool defines(const graph_node *node, const ir_expr *symbol)
{
    for (int i = 0; i < node->n_symbols; i++)
        if (node->symbol[i] == symbol)
            return true;
    return false;
}

/* How often a loop ran is known behind it only: what it collects has a first extent of its own. */
static bool check_lengths(const graph_rules *rules, int first)
{
    const graph_node *node = rules->node;

    for (int k = first; k < node->n_out; k++)
        if (node->out[k]->type.dim[0] != node->out[first]->type.dim[0] ||
            !defines(node, node->out[k]->type.dim[0])) {
            base_fail(rules->cx, TEC_INVALID, node->loc,
                      "'%s': expected a symbol of the surrounding body as the first extent of result %d, the "
                      "same for all collected results; found %s",
                      node->name, k, op_type_text(rules->cx, &node->out[k]->type));
            return false;
        }
    return true;
}

/* operands: how often at most, whether to begin, then the carried values. The body takes the iteration number
 * and the condition before the carried values, and gives the next condition first. */
static bool check_loop(const graph_rules *rules)
{
    const graph_node *node = rules->node;
    int carried = node->n_in - 2;

    if ((carried < 0 && !graph_rule_count(rules, "operands", node->n_in, 2)) ||
        !graph_rule_count(rules, "regions", node->n_bodies, 1) || !graph_rule_all_there(rules, 2) ||
        !graph_rule_scalar(rules, "operand", 0, node->in[0], BASE_I64) ||
        !graph_rule_scalar(rules, "operand", 1, node->in[1], BASE_BOOL))
        return false;
    const graph_body *body = node->body[0];
    return graph_rule_count(rules, "inputs of its body", body->inputs.n, 2 + carried) &&
           graph_rule_count(rules, "outputs of its body", body->outputs.n, 1 + node->n_out) &&
           (node->n_out >= carried || graph_rule_count(rules, "results", node->n_out, carried)) &&
           graph_rule_scalar(rules, "input", 0, body->inputs.at[0], BASE_I64) &&
           graph_rule_scalar(rules, "input", 1, body->inputs.at[1], BASE_BOOL) &&
           graph_rule_scalar(rules, "output", 0, body->outputs.at[0], BASE_BOOL) &&
           check_carried(rules, body, carried, 2, 2, 1) &&
           check_collected(rules, body, carried, 1 + carried) && check_lengths(rules, carried);
}

/* An attribute that is missing or of no sense counts as no states: the checks behind then name what is wrong
 * with the operands instead of reading past them. */
static int states_of(const graph_node *node)
{
    for (int i = 0; i < node->n_attrs; i++)
        if (base_same(node->attr[i].name, "states") && node->attr[i].kind == OP_ATTR_INT &&
            node->attr[i].i >= 0 && node->attr[i].i <= node->n_in)
            return (int)node->attr[i].i;
    return 0;
}

/* Operands after the states, and results after the states, are sequences: their first extents are equal, and
 * the body sees one element of each. */
static bool check_sequences(const graph_rules *rules, const graph_body *body, int states)
{
    const graph_node *node = rules->node;
    const ir_expr *length = NULL;

    for (int k = states; k < node->n_in + node->n_out - states; k++) {
        bool is_in = k < node->n_in;
        const op_type *type = is_in ? &node->in[k]->type : &node->out[k - node->n_in + states]->type;

        if (type->n < 1 || (length && !graph_same_type(rules->f, &(op_type){BASE_I64, 1, type->dim},
                                                       &(op_type){BASE_I64, 1, &length}))) {
            base_fail(rules->cx, TEC_INVALID, node->loc, "'%s': %s %d is %s, expected a sequence%s%s",
                      node->name, is_in ? "operand" : "result", is_in ? k : k - node->n_in + states,
                      op_type_text(rules->cx, type), length ? " of length " : "",
                      length ? op_type_text(rules->cx, &(op_type){BASE_I64, 1, &length}) : "");
            return false;
        }
        length = type->dim[0];
        op_type row = element(type);
        graph_type one = graph_tensor_type(&row), taken = is_in ? graph_type_of(body->inputs.at[k]) : one;
        if (!graph_rule_matches(rules, "input", k, &taken, &one))
            return false;
    }
    return true;
}

/* The order matters: counts first, since the checks behind read inputs and outputs by position. */
static bool check_scan(const graph_rules *rules)
{
    const graph_node *node = rules->node;
    int states = states_of(node);

    if (!graph_rule_count(rules, "regions", node->n_bodies, 1) || !graph_rule_all_there(rules, 0))
        return false;
    const graph_body *body = node->body[0];
    return graph_rule_count(rules, "inputs of its body", body->inputs.n, node->n_in) &&
           graph_rule_count(rules, "outputs of its body", body->outputs.n, node->n_out) &&
           (node->n_out >= states || graph_rule_count(rules, "results", node->n_out, states)) &&
           check_carried(rules, body, states, 0, 0, 0) && check_sequences(rules, body, states) &&
           check_collected(rules, body, states, states);
}

/* The operands must fit the inputs of the function for some values of its symbols; with those values, its
 * outputs must be the node's results. */
static bool check_call(const graph_rules *rules)
{
    const graph_node *node = rules->node;
    const graph_function *function = graph_find_function(rules->m, node->callee);

    if (!function) {
        base_fail(rules->cx, TEC_INVALID, node->loc, "'%s' calls '%s', but there is no such function",
                  node->name, node->callee);
        return false;
    }
    if (!graph_rule_count(rules, "operands", node->n_in, function->body->inputs.n) ||
        !graph_rule_count(rules, "results", node->n_out, function->body->outputs.n) ||
        !graph_rule_all_there(rules, 0))
        return false;
    graph_instance called = graph_instance_of_body(rules->cx, function->body),
                   told = graph_instance_of_node(rules->cx, node);
    return graph_rule_fit(rules, &called, "operand", 0,
                          graph_types_at(rules->cx, &function->body->inputs, 0, node->n_in),
                          graph_types_of(rules->cx, node->in, node->n_in), node->n_in) &&
           graph_rule_fit(rules, &told, "result", 0, graph_types_of(rules->cx, node->out, node->n_out),
                          graph_instantiated(rules, &called, function->body), node->n_out);
}

/* Nodes whose types follow from operators or from the plan are checked elsewhere (graph/verify.c). */
bool graph_check_control(const graph_module *module, const graph_body *body, const graph_node *node)
{
    graph_rules r = {module->cx, module, graph_facts_in(module, body), node};

    switch (node->kind) {
    case GRAPH_CALL: return check_call(&r);
    case GRAPH_IF: return check_if(&r);
    case GRAPH_LOOP: return check_loop(&r);
    case GRAPH_SCAN: return check_scan(&r);
    case GRAPH_MAKE_TUPLE:
    case GRAPH_FIELD:
    case GRAPH_CONSTRUCT:
    case GRAPH_MATCH:
    case GRAPH_CLOSURE:
    case GRAPH_APPLY:
    case GRAPH_CHECK:
    case GRAPH_EXTENTS: return graph_check_program(&r);
    case GRAPH_OP:
    case GRAPH_GROUP:
    case GRAPH_PACK:
    case GRAPH_ALLOC_STORAGE:
    case GRAPH_ALLOC_TENSOR:
    case GRAPH_INVOKE:
    case GRAPH_APPEND:
    case GRAPH_DEVICE_COPY:
    case GRAPH_KILL: return true;
    }
    return true;
}
