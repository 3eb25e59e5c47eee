/* graph/scope.h -- who knows which symbol: scopes of symbols and facts, and what a type over symbols stands
 * for at a call.
 *
 *     function "grow" {                      // binds n: each call has its own
 *       symbols n
 *       fact n >= 1                          // checked where n gets its value
 *       input v0 "x": f32[n]
 *       ...
 *     }
 *     v2: f32[7] = call "grow" "g"(v1)       // v1: f32[7]; here n is 7
 *
 * The module's symbols have one value for a whole run. The symbols of a function have one for each call,
 * those of a region one each time that the region runs. A symbol gets its value in one place: from the first
 * input of its body that has the symbol as an extent, or from the first node of its body one of whose results
 * has it (graph_node.symbol). Facts of a scope hold while that scope runs and are not known outside: who runs
 * the graph checks each of them as soon as its symbols have values.
 *
 * An *instance* is an assignment of extents to symbols that makes one type fit another: f32[n, 4] fits f32[7,
 * 4] with n = 7. Lifetime: the context's. Errors: none here; NULL and false say that something does not fit.
 */
#ifndef GRAPH_SCOPE_H
#define GRAPH_SCOPE_H

#include "graph/node.h"
#include "graph/type.h"
#include "ir/walk.h"

/* A symbol that the body binds; NULL for a body: the module's. A name that an outer scope has already gets a
 * suffix; a NULL name: a fresh one. */
const ir_expr *graph_symbol_in(graph_module *module, graph_body *body, const char *name);
/* A condition that holds in the body; the module's where `body` is NULL. */
void graph_fact_in(graph_module *module, graph_body *body, const ir_expr *condition);
/* What a node of the body relies on; `meaning` says so in words: "add 'sum': dimension 0 of ..."; NULL: the
 * condition. In the entry, where only symbols of the module matter, it is the module's fact: the model
 * demands it. */
void graph_need_in(graph_module *module, graph_body *body, const ir_expr *condition, const char *meaning);
/* What does not hold where the fact fails: "'n == m' does not hold", or its meaning. */
const char *graph_meaning(const graph_module *module, const ir_expr *fact);
/* Whether such a need of the entry contradicts what is known, so that no input would fulfil both. A branch or
 * a loop with such a need need not run. */
bool graph_rules_out(const graph_module *module, const graph_body *body, const ir_expr *condition);
/* What is known in the body: its facts, those of the bodies around it, the module's. Symbols are at least
 * 0. */
const ir_facts *graph_facts_in(const graph_module *module, const graph_body *body);
/* Of that, what holds from the first node of the body on, whatever its nodes compute: the facts of the
 * module. A fact of the body about extents that data tell is checked when they are told, so memory that is
 * allocated before must not rely on it. */
const ir_facts *graph_facts_at_start(const graph_module *module, const graph_body *body);
/* The module as the body sees it: with its symbols and facts, and those of the bodies around it. `known`
 * keeps one for each body that was asked for. */
const graph_module *graph_module_in(const graph_module *module, const graph_body *body, base_map *known);
/* Whether the module, the body or a body around it binds the variable. */
bool graph_sees_symbol(const graph_module *module, const graph_body *body, const ir_expr *var);
bool graph_binds_symbol(const graph_body *body, const ir_expr *var);

/* What symbols stand for. Only those of `symbol` may get a value; the first extent that they meet is
 * theirs. */
typedef struct {
    tec_context *cx;
    const ir_expr *const *symbol;
    int n;
    ir_subst map;
    base_vec solved; /* symbols whose value was solved for: it may turn out negative, or not whole */
} graph_instance;
graph_instance graph_instance_of_body(tec_context *cx, const graph_body *body); /* of the body's symbols */
graph_instance graph_instance_of_node(tec_context *cx,
                                      const graph_node *node); /* of those that the node's results define */
/* Gives values to symbols that are an extent of `pattern` by themselves and have none yet. Call it for all
 * pairs, then compare their types. */
void graph_instance_bind(graph_instance *instance, const graph_type *pattern, const graph_type *found);
/* Behind that: values of symbols that extents tell in sums or multiples alone. From f32[n * 2 + 1] and
 * f32[k], n is (k - 1) // 2. The caller compares the types, and demands that the value is not negative. */
void graph_instance_solve(graph_instance *instance, const graph_type *pattern, const graph_type *found,
                          int count);
/* Whether the extent is by * symbol + *rest with by other than 0 and a rest without the symbol. */
bool graph_extent_tells(tec_context *cx, const ir_expr *extent, const ir_expr *symbol, int64_t *by,
                        const ir_expr **rest);
/* The symbol's value where that extent is `found`, rounded down where none is exact. */
const ir_expr *graph_extent_value(tec_context *cx, int64_t by, const ir_expr *rest, const ir_expr *found);
/* Whether the inputs of the body tell the symbol, which it binds, in sums or multiples alone. */
bool graph_is_solved(tec_context *cx, const graph_body *body, const ir_expr *symbol);
/* Whether they tell the symbol in any way. */
bool graph_is_told(tec_context *cx, const graph_body *body, const ir_expr *symbol);
/* `pattern` with symbols replaced by their values. */
graph_type graph_instance_type(const graph_instance *instance, const graph_type *pattern);

/* Makes the symbols of the entry that are extents of its inputs the module's, in place, and the facts about
 * them: a run of the module calls the entry once. Nothing changes where a node calls the entry. Gives
 * module. */
graph_module *graph_hoist_entry(graph_module *module);

#endif
