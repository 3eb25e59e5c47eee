/* ir/reason/facts.h -- what is known about variables, and what follows: bounds, divisibility, proofs,
 * simplification.
 *
 *     ir_facts *f = ir_facts_new(cx, outer);
 *     ir_facts_range(f, i, ir_int(cx, 0), n);                 // 0 <= i < n
 *     ir_facts_assume(f, ir_le(cx, n, ir_int(cx, 64)));
 *     e = ir_simplify(f, e);
 *     if (ir_prove(f, ir_lt(cx, i, ir_int(cx, 64)))) ...
 *
 * Facts form a chain: a child sees its parents' facts and its own; nothing is taken back, a pass makes a
 * child for each loop or condition that it enters and forgets it on leaving. Sound for negative numbers and
 * symbols: "unproven" never means "false". Only int64 (index) and bool expressions are reasoned about; the
 * operands of other dtypes are simplified inside.
 */
#ifndef IR_FACTS_H
#define IR_FACTS_H

#include "ir/ir.h"

ir_facts *ir_facts_new(tec_context *cx, const ir_facts *outer); /* outer NULL: nothing known */
/* symbols and facts of the program; symbols default to >= 0 */
ir_facts *ir_facts_of_program(tec_context *cx, const ir_program *program);
/* min <= var < min + extent */
void ir_facts_range(ir_facts *facts, const ir_expr *var, const ir_expr *min, const ir_expr *extent);
/* The same for a range that may be empty: nothing is learned about the extent. */
void ir_facts_span(ir_facts *facts, const ir_expr *var, const ir_expr *min, const ir_expr *extent);
/* Whether a range that ir_facts_span told may be empty; false for all other variables. */
bool ir_may_be_empty(const ir_facts *facts, const ir_expr *var);
void ir_facts_value(ir_facts *facts, const ir_expr *var, const ir_expr *value); /* a let: var is value */
/* conjunctions are taken apart; x % 8 == 0 is understood */
void ir_facts_assume(ir_facts *facts, const ir_expr *condition);
tec_context *ir_facts_context(const ir_facts *facts);
/* What holds inside of a statement: the range of a loop's variable, the value of a let, the condition of an
 * if, in its first branch or its second. It is worked out when something first asks: most statements that a
 * pass goes through ask nothing. */
ir_facts *ir_facts_inside(const ir_facts *outer, const ir_stmt *stmt, bool otherwise);

/* Constant bounds, inclusive; INT64_MIN / INT64_MAX where nothing is known on that side. */
typedef struct {
    int64_t min, max;
} ir_interval;
ir_interval ir_bounds(const ir_facts *facts, const ir_expr *expr);

/* expr == coefficient * (something) + base, 0 <= base < coefficient, or coefficient 0: expr is the constant
 * base; (1, 0) is no knowledge. */
typedef struct {
    int64_t coefficient, base;
} ir_modular;
ir_modular ir_modulus(const ir_facts *facts, const ir_expr *expr);
int64_t ir_gcd(int64_t left, int64_t right); /* of the absolute values; gcd(0, right) = |right| */

const ir_expr *ir_simplify(const ir_facts *facts, const ir_expr *expr);
/* The same for all expressions of a statement, with the facts of the loops, lets and conditions inside; drops
 * branches that cannot be taken, loops that do not run, and statements without effect. */
const ir_stmt *ir_simplify_stmt(const ir_facts *facts, const ir_stmt *stmt);

bool ir_prove(const ir_facts *facts, const ir_expr *condition); /* true: holds always */
bool ir_prove_equal(const ir_facts *facts, const ir_expr *left, const ir_expr *right);
bool ir_prove_le(const ir_facts *facts, const ir_expr *left, const ir_expr *right);
bool ir_prove_lt(const ir_facts *facts, const ir_expr *left, const ir_expr *right);

/* Bounds of expr as expressions free of the given variables, each eliminated by its range; false where not
 * expressible. min <= expr <= max. */
bool ir_eliminate(const ir_facts *facts, const ir_expr *expr, const ir_expr *const *vars, int count,
                  const ir_expr **min, const ir_expr **max);

/* expr as a sum over `vars` with constant coefficients plus a rest free of them: expr == sum(coefficient[j] *
 * vars[j]) + *rest. */
bool ir_linear(const ir_facts *facts, const ir_expr *expr, const ir_expr *const *vars, int count,
               int64_t *coefficient, const ir_expr **rest);

#endif
