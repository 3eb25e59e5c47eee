/* graph/rules.h -- for the files that hold nodes with regions, calls and program nodes against their types:
 * one set of comparisons and errors.
 *
 *     graph_instance i = graph_instance_of_body(r->cx, f->body);
 *     return graph_rule_count(r, "operands", node->n_in, f->body->inputs.n) &&
 *            graph_rule_fit(r, &i, "operand", 0, taken, given, node->n_in);
 *
 * Errors: at the node, with what was found and what was expected.
 */
#ifndef GRAPH_RULES_H
#define GRAPH_RULES_H

#include "graph/scope.h"

typedef struct {
    tec_context *cx;
    const graph_module *m;
    const ir_facts *f; /* what is known where the node stands */
    const graph_node *node;
} graph_rules;

graph_rules graph_rules_inside(const graph_rules *rules,
                               const graph_body *region); /* with what is known inside of a region */
bool graph_rule_refuse(const graph_rules *rules, const char *what, int k, const graph_type *found,
                       const graph_type *expected); /* false */
bool graph_rule_count(const graph_rules *rules, const char *what, int found, int expected);
bool graph_rule_matches(const graph_rules *rules, const char *what, int k, const graph_type *found,
                        const graph_type *expected);
/* Whether `count` types fit `count` patterns, all with the same values for the instance's symbols. */
bool graph_rule_fit(const graph_rules *rules, graph_instance *instance, const char *what, int first,
                    const graph_type *pattern, const graph_type *found, int count);
bool graph_rule_scalar(const graph_rules *rules, const char *what, int k, const graph_value *value,
                       base_dtype dtype);                      /* NULL is one */
bool graph_rule_all_there(const graph_rules *rules, int from); /* no operand is left out */

graph_type *graph_types_of(tec_context *cx, graph_value *const *value, int n);
graph_type *graph_types_at(tec_context *cx, const base_vec *values, int from, int n);
const graph_function *graph_find_function(const graph_module *module, const char *name); /* NULL: none */
/* The function's output types with its symbols replaced by what the instance tells. What it does not tell is
 * another value in each call: a variable of this call takes its place, since in a recursive function the
 * caller's own symbol of that name is another one. */
graph_type *graph_instantiated(const graph_rules *rules, graph_instance *instance, const graph_body *body);

/* Of the program nodes: tuples, data, match, closures, checks. */
bool graph_check_program(const graph_rules *rules);

/* For constructors, before the types are compared: where `found` may turn out as `expected`, each extent that
 * is not known to be equal becomes a demand of the body, which the run checks. Where it cannot, nothing is
 * demanded, and the comparison refuses the types. what: "'f': operand 1 is", for the error of the run. */
void graph_demand_type(graph_module *module, graph_body *body, const char *what, const graph_type *found,
                       const graph_type *expected);
/* That values which were solved for (graph_instance_solve) are not negative. */
void graph_demand_solved(graph_module *module, graph_body *body, const graph_instance *instance,
                         const char *what);
/* The same of `count` types that must fit patterns. */
void graph_demand_fit(graph_module *module, graph_body *body, graph_instance *instance, const char *what,
                      const graph_type *pattern, const graph_type *found, int count);

/* For constructors: the node, with the symbols that its results define, checked and put into the open body;
 * NULL with an error. */
graph_node *graph_add_checked(graph_function *function, graph_node *node, const base_vec *symbols);
/* The type outside of `inner`: its symbols become what they stand for; a symbol that stands for nothing yet
 * gets a fresh one of the open body, which goes to `symbols`. An extent that is computed from such a symbol
 * becomes a fresh symbol as a whole. */
graph_type graph_seen_outside(graph_function *function, graph_instance *instance, const graph_body *inner,
                              const graph_type *type, base_vec *symbols);
/* The types of what comes from one of `count` branches, by symbols outside, as many as the first one gives.
 * An extent on which only the run decides is a fresh symbol of the open body, which goes to `symbols`;
 * results that share an extent after each branch share it. */
graph_type *graph_branch_types(graph_function *function, graph_body *const *branch, int count,
                               base_vec *symbols);

#endif
