/* ir/reason/reason.h -- inside ir/: what the files of the fact engine share. Linear forms, facts from inside,
 * proofs, the session of the simplifier.
 *
 *     ir_sum d = {0};
 *     ir_sum_read(f, &d, b, 1);
 *     ir_sum_read(f, &d, a, -1);
 *     if (ir_sum_nonneg(f, &d, IR_QUICK)) -> a <= b, always
 *
 * A form is constant + sum(by * atom) over int64. An atom is a simplified expression that is no sum and no
 * multiple: a variable, a division, a minimum, a load, or a product of such factors in their order. Terms are
 * sorted by ir_order and hold each atom once; the order rests on the order of definition, on structure and on
 * names, never on addresses. A coefficient that overflows makes the form `bad`: nothing is concluded from it.
 *
 * A form stands for a number without limits. So a sum, difference or product that may wrap is an atom of its
 * own (ir_wraps): the form of X + 1 for data X is that one atom, and (X + 1) - X is not taken for 1 in a
 * comparison. The value of a sum alone may be reassociated modulo 2^64; ir_sum_read_modulo opens all sums for
 * that.
 */
#ifndef IR_REASON_H
#define IR_REASON_H

#include "ir/build.h"
#include "ir/intern.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"

/* ---- integers (bounds.c): wide enough, or infinite ---- */

#define IR_NO_MIN INT64_MIN
#define IR_NO_MAX INT64_MAX
#define IR_EVERYTHING ((ir_interval){IR_NO_MIN, IR_NO_MAX})

int64_t ir_floordiv_int(int64_t a, int64_t b); /* b not 0 */
int64_t ir_floormod_int(int64_t a, int64_t b);
/* no least value of INT64_MAX, no greatest of INT64_MIN: as ends they would be infinite */
ir_interval ir_interval_proper(ir_interval range);
ir_interval ir_interval_add(ir_interval range, ir_interval other);
ir_interval ir_interval_scale(ir_interval range, int64_t by);
ir_interval ir_interval_mul(ir_interval range, ir_interval other);
ir_interval ir_interval_meet(ir_interval range, ir_interval other);
ir_interval ir_interval_hull(ir_interval range, ir_interval other);
ir_modular ir_modular_meet(ir_modular left, ir_modular right); /* both hold */
ir_interval ir_interval_align(ir_interval range,
                              ir_modular modular); /* the ends moved inwards to members of modular */

/* ---- forms (linear.c) ---- */

typedef struct {
    const ir_expr *atom;
    int64_t by;
} ir_term;

enum { IR_SUM_INLINE = 8 };
typedef struct {
    int64_t constant;
    int n, cap; /* cap 0: the terms are in `in` */
    bool bad;
    ir_term *more;
    ir_term in[IR_SUM_INLINE];
} ir_sum;

static inline const ir_term *ir_sum_terms(const ir_sum *sum)
{
    return sum->cap ? sum->more : sum->in;
}
void ir_sum_add_constant(ir_sum *sum, int64_t c);
void ir_sum_add_term(const ir_facts *facts, ir_sum *sum, const ir_expr *atom, int64_t by);
void ir_sum_add(const ir_facts *facts, ir_sum *a, const ir_sum *b, int64_t by);
void ir_sum_copy(const ir_facts *facts, ir_sum *out, const ir_sum *sum);
void ir_sum_scale(ir_sum *sum, int64_t by);
bool ir_sum_mul(const ir_facts *facts, ir_sum *out, const ir_sum *sum,
                const ir_sum *other); /* false: too many terms */
/* adds by * expr; expr is simplified */
void ir_sum_read(const ir_facts *facts, ir_sum *sum, const ir_expr *expr, int64_t by);
/* the same modulo 2^64 */
void ir_sum_read_modulo(const ir_facts *facts, ir_sum *sum, const ir_expr *expr, int64_t by);
/* Whether arithmetic on the form beyond its one atom may leave int64: an atom of it is data that may be any
 * number. */
bool ir_sum_is_wide(const ir_facts *facts, const ir_sum *sum);
bool ir_sum_is_atom(const ir_sum *sum);      /* one atom, once */
int64_t ir_sum_content(const ir_sum *sum);   /* gcd of the coefficients; 0 where there is no term */
void ir_sum_divide(ir_sum *sum, int64_t by); /* exact in the coefficients, floor in the constant */
int64_t ir_sum_by(const ir_sum *sum, const ir_expr *atom); /* coefficient, 0 where absent */
/* Whether each term of `part` stands in the sum with exactly `by` times its coefficient there. The constants
 * do not count. */
bool ir_sum_holds(const ir_sum *sum, const ir_sum *part, int64_t by);
/* The canonical expression; `like` itself where it already reads so (may be NULL). */
const ir_expr *ir_sum_expr(const ir_facts *facts, const ir_sum *sum, const ir_expr *like);

/* Factors of an atom: itself, or those of a product. A product of data has one factor: it may be another
 * number than the factors say. */
enum { IR_MAX_FACTORS = 16 };
int ir_factors(const ir_expr *atom, const ir_expr *factor[IR_MAX_FACTORS]);
/* sum == part * factor + rest: the terms of the sum that have the factor, with one `factor` less each, are
 * `part`. */
void ir_sum_split(const ir_facts *facts, const ir_sum *sum, const ir_expr *factor, ir_sum *part,
                  ir_sum *rest);
/* quotient * divisor == sum exactly; false where the divisor does not divide the sum. */
bool ir_sum_exact_quotient(const ir_facts *facts, const ir_sum *sum, const ir_sum *divisor, ir_sum *quotient);
/* One term divided by the leading term of divisor: what a long division subtracts divisor times. */
bool ir_sum_leading_quotient(const ir_facts *facts, const ir_sum *term, const ir_sum *divisor,
                             ir_sum *quotient);

/* ---- order (order.c) ---- */

/* 0 also for namesakes that nothing tells apart */
int ir_order(const ir_facts *facts, const ir_expr *left, const ir_expr *right);
/* the same structure; false where that would take too long to see */
bool ir_alike(const ir_expr *left, const ir_expr *right);
/* when the last of its variables was defined; 0: no variable is known */
int ir_rank(const ir_facts *facts, const ir_expr *expr);
bool ir_mentions(const ir_expr *expr, const ir_expr *var);

static inline bool ir_is_index(const ir_expr *expr)
{
    return expr->dtype.code == kDLInt && expr->dtype.bits == 64 && expr->dtype.lanes == 1;
}
/* What is larger leaves no room beside it for the sums that rules write. */
static inline bool ir_is_index_constant(int64_t c)
{
    return c >= -IR_MOST_INDEX && c <= IR_MOST_INDEX;
}
static inline bool ir_is_sum(const ir_expr *expr)
{
    return expr->op == IR_ADD || expr->op == IR_SUB || expr->op == IR_NEG || expr->op == IR_MUL;
}
static inline bool ir_is_flag(const ir_expr *expr)
{
    return expr->dtype.code == kDLBool && expr->dtype.lanes == 1;
}

/* ---- facts from inside (facts.c) ---- */

typedef struct ir_var_fact {
    const ir_expr *var;
    int rank;                 /* order of definition along the chain, from 1 */
    bool replace;             /* `value` stands for the variable wherever it is used */
    const ir_expr *value;     /* NULL, or what it equals */
    const ir_expr *min, *max; /* inclusive, simplified; NULL: the interval says all */
    ir_interval interval;
    ir_modular modulus;
    const struct ir_var_fact *next;
} ir_var_fact;

typedef struct ir_assumption {
    ir_sum nonneg; /* >= 0 */
    const struct ir_assumption *next;
} ir_assumption;

typedef struct ir_residue {
    ir_sum form; /* form mod modulus.coefficient == modulus.base */
    ir_modular modulus;
    const struct ir_residue *next;
} ir_residue;

typedef struct ir_truth {
    const ir_expr *condition;
    bool value;
    const struct ir_truth *next;
} ir_truth;

enum { IR_FACT_LISTS = 8 };

/* Of a whole chain. */
typedef struct {
    int proofs;     /* how many are under way, one inside the other */
    int aside;      /* the steps that are left for those inside the first */
    uint64_t asked; /* how often something was asked that may depend on all that is assumed */
    uint64_t last_version;
} ir_reasoning;

struct ir_facts {
    tec_context *cx;
    const ir_facts *outer;
    const ir_stmt *inside; /* not taken in yet: what holds inside this statement; NULL: nothing waits */
    bool otherwise;        /* in its second branch */
    int rank;
    /* another one whenever a variable or a condition is added here; of no other level */
    uint64_t version;
    uint64_t touched; /* what these use (ir_expr.vars) */
    ir_reasoning *all;
    const ir_var_fact *vars[IR_FACT_LISTS]; /* by the bit of the variable */
    const ir_assumption *assumptions;
    const ir_residue *residues;
    const ir_truth *truths;
};
/* facts with all that waited taken in; code that reads the lists of a chain starts from this. */
const ir_facts *ir_facts_ready(const ir_facts *facts);
const ir_var_fact *ir_fact_of(const ir_facts *facts, const ir_expr *var); /* NULL: nothing is known */
/* A number that stands for all that the chain knows of the variables of expr, but for inequalities between
 * them; 0: nothing. */
uint64_t ir_facts_version(const ir_facts *facts, const ir_expr *expr);
/* A let or a loop that runs once: the simplifier writes the value for the variable. */
void ir_facts_replace(ir_facts *facts, const ir_expr *var, const ir_expr *value);
/* A condition, simplified under facts, holds or does not. It is not simplified anew, or each operand of a
 * chain of && would double its cost. */
void ir_facts_learn(ir_facts *facts, const ir_expr *condition, bool holds);

/* ---- bounds.c, modular.c: of simplified expressions ---- */

ir_interval ir_atom_bounds(const ir_facts *facts, const ir_expr *expr);
/* Whether the value of a sum, difference, product or negation may differ from the exact one. */
bool ir_wraps(const ir_facts *facts, const ir_expr *expr);
/* Data that may be as large as int64 is. */
bool ir_is_wide(const ir_facts *facts, const ir_expr *expr);
ir_interval ir_sum_bounds(const ir_facts *facts, const ir_sum *form);
ir_modular ir_atom_modulus(const ir_facts *facts, const ir_expr *expr);
ir_modular ir_sum_modulus(const ir_facts *facts, const ir_sum *sum);

/* ---- prove.c ---- */

enum { IR_QUICK = 24, IR_THOROUGH = 400 }; /* steps that a proof may take */
/* A proof inside a proof inside a proof sees bounds and assumptions only: each could ask for more of its kind
 * without end. */
bool ir_sum_nonneg(const ir_facts *facts, const ir_sum *sum, int steps);
int ir_sum_sign(const ir_facts *facts,
                const ir_sum *coefficient); /* 1: at least 0, -1: at most 0, 0: not known */
/* A bound of a that is free of vars: lower, or upper. */
bool ir_sum_eliminate(const ir_facts *facts, const ir_sum *sum, const ir_expr *const *vars, int count,
                      bool upper, ir_sum *out);
bool ir_sum_uses(const ir_sum *sum, const ir_expr *const *vars, int n);

/* ---- simplify.c and its rules ---- */

/* What the sessions for one statement have in common. A result that came about without a question about
 * inequalities is right wherever the same is known of the variables (ir_facts_version): an index under many
 * conditions is simplified once. */
typedef struct {
    ir_interned equal; /* results */
    struct ir_result {
        const ir_expr *e, *result;
        uint64_t version;
    } *slots; /* open addressing by expr, at most half full; the newest result of each */
    int n, cap;
} ir_results;
void ir_results_put(ir_results *results, const ir_expr *expr, uint64_t version, const ir_expr *result);
const ir_expr *ir_results_get(const ir_results *results, const ir_expr *expr,
                              uint64_t version); /* NULL: none */

typedef struct {
    const ir_facts *f;
    tec_context *cx;
    ir_results *common; /* NULL: none */
    base_map memo;      /* what is not in `common` */
} ir_session;
const ir_expr *ir_simp(ir_session *session, const ir_expr *expr);
/* Adds by * expr, simplified, to the form. */
void ir_simp_sum(ir_session *session, const ir_expr *expr, int64_t by, ir_sum *out);
void ir_recombine(const ir_facts *facts, ir_sum *sum); /* x//8*8 + x%8 => x */
ir_session ir_session_under(ir_session *session, const ir_expr *condition, bool holds);

/* adds floordiv(a, divisor); divisor >= 1 */
void ir_floordiv_sum(const ir_facts *facts, const ir_sum *sum, int64_t divisor, ir_sum *out);
void ir_floormod_sum(const ir_facts *facts, const ir_sum *sum, int64_t divisor, ir_sum *out);
const ir_expr *ir_simp_div(ir_session *session,
                           const ir_expr *expr); /* FLOORDIV, FLOORMOD, DIV, MOD of int64 */
const ir_expr *ir_simp_minmax(ir_session *session, const ir_expr *expr);
const ir_expr *ir_simp_compare(ir_session *session, const ir_expr *expr); /* of int64 */
const ir_expr *ir_simp_bool(ir_session *session,
                            const ir_expr *expr); /* AND, OR, NOT, LIKELY, EQ and NE of bool */
const ir_expr *ir_simp_select(ir_session *session, const ir_expr *expr);
ir_op ir_opposite(ir_op op); /* of a comparison; IR_N_OPS: none */
/* The canonical comparison of a form with 0: sum >= 0, sum == 0, sum != 0. */
const ir_expr *ir_sum_compare(const ir_facts *facts, ir_op op, const ir_sum *sum, const ir_expr *like);
/* Reads a simplified comparison back: >= 0 for LT, LE, GT, GE; == 0 or != 0 for EQ and NE. False for anything
 * else. */
bool ir_compare_sum(const ir_facts *facts, const ir_expr *expr, ir_sum *out, ir_op *op);

#endif
