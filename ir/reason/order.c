/* ir/reason/order.c -- a total order of simplified expressions that is the same on every run.
 *
 * First by when the last variable inside was defined (outer loops before inner ones), then by structure, then
 * by names. Addresses never decide, so namesakes that nothing is known about compare as 0; their identity is
 * asked with ir_alike. Comparing stops after a number of nodes: expressions that share much could otherwise
 * take exponential time.
 *
 * Why an order is needed at all: a + b and b + a must become one text, or two equal sums would be different
 * atoms. Why not by address: the text of a program, and with it the bytes of a module, must be the same on
 * every run.
 */
#include <string.h>

#include "ir/reason/reason.h"

enum { MAX_COMPARED = 512, MAX_RANKED = 256 };

/* Operands of a node, for comparing and searching: at most three named ones, then an array. */
typedef struct {
    const ir_expr *few[4];
    const ir_expr *const *many;
    int n_few, n_many;
} operands;

/* Every operand that can hold a variable, so that searching and comparing need no case of their own per
 * node.
 *
 * `few` are single operands, `many` a list that the node owns. */
static operands operands_of(const ir_expr *expr)
{
    switch (expr->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING:
    case IR_VAR: return (operands){.n_few = 0};
    case IR_LOAD:
        return (operands){.few = {expr->load.mask},
                          .n_few = expr->load.mask ? 1 : 0,
                          .many = expr->load.index,
                          .n_many = expr->load.n};
    case IR_CAST:
    case IR_REINTERPRET:
    case IR_BROADCAST: return (operands){.few = {expr->arg[0]}, .n_few = 1};
    case IR_RAMP: return (operands){.few = {expr->ramp.base, expr->ramp.stride}, .n_few = 2};
    case IR_SHUFFLE: return (operands){.many = expr->shuffle.vectors, .n_many = expr->shuffle.n};
    case IR_LET: return (operands){.few = {expr->let.var, expr->let.value, expr->let.body}, .n_few = 3};
    case IR_CALL: return (operands){.many = expr->call.arg, .n_many = expr->call.n};
    case IR_REDUCE:
        return (operands){.few = {expr->reduce.condition},
                          .n_few = expr->reduce.condition ? 1 : 0,
                          .many = expr->reduce.source,
                          .n_many = expr->reduce.combiner->n};
    default:
        return (operands){.few = {expr->arg[0], expr->arg[1], expr->arg[2]}, .n_few = ir_ops[expr->op].arity};
    }
}

static const ir_expr *operand(const operands *self, int i)
{
    return i < self->n_few ? self->few[i] : self->many[i - self->n_few];
}

/* The highest rank of the variables inside, or what was found of it after `left` nodes: an order that looks
 * at part of a huge expression is still the same on every run. `left` is shared by the whole search, so that
 * its cost is bounded for any shape of the expression. */
static int rank_inside(const ir_facts *facts, const ir_expr *expr, int *left)
{
    if (expr->op == IR_VAR) {
        const ir_var_fact *v = ir_fact_of(facts, expr);
        return v ? v->rank : 0;
    }
    operands o = operands_of(expr);
    int rank = 0;

    for (int i = 0; i < o.n_few + o.n_many && --*left > 0; i++) {
        int r = rank_inside(facts, operand(&o, i), left);
        rank = r > rank ? r : rank;
    }
    return rank;
}

int ir_rank(const ir_facts *facts, const ir_expr *expr)
{
    int left = MAX_RANKED;

    return rank_inside(facts, expr, &left);
}

/* Answers "yes" when it gives up: a caller who is told that expr may mention var only loses a chance to
 * simplify. The set `vars` of a node is a filter of 64 bits: a variable without its bit there does not occur,
 * one with its bit may. */
static bool mentions_inside(const ir_expr *expr, const ir_expr *var, int *left)
{
    if (!(expr->vars & var->vars))
        return false;
    if (expr == var || --*left < 0)
        return true;
    operands o = operands_of(expr);

    for (int i = 0; i < o.n_few + o.n_many; i++)
        if (mentions_inside(operand(&o, i), var, left))
            return true;
    if (expr->op == IR_REDUCE)
        for (int i = 0; i < expr->reduce.n_axes; i++)
            if (mentions_inside(expr->reduce.extent[i], var, left))
                return true;
    return false;
}

bool ir_mentions(const ir_expr *expr, const ir_expr *var)
{
    int left = 4096;

    return mentions_inside(expr, var, &left);
}

static int by_number(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 ? 0 : a < b ? -1 : 1;
}

static int by_type(base_dtype left, base_dtype right)
{
    return by_number(left.code << 24 | left.bits << 16 | left.lanes,
                     right.code << 24 | right.bits << 16 | right.lanes);
}

/* The part of a node that is no operand. */
static int by_payload(const ir_expr *left, const ir_expr *right)
{
    switch (left->op) {
    case IR_INT: return by_number(left->i, right->i);
    case IR_FLOAT: return by_bits(left->f, right->f);
    case IR_STRING: return strcmp(left->string, right->string);
    case IR_VAR: return strcmp(left->var.name, right->var.name);
    case IR_LOAD: return strcmp(left->load.buffer->name, right->load.buffer->name);
    case IR_CALL: return strcmp(left->call.name, right->call.name);
    default: return 0;
    }
}

/* Namesakes: equal in all that the order looks at, different things. Impure calls and calls with buffers are
 * never equal: each evaluation may give another value. */
static bool same_identity(const ir_expr *left, const ir_expr *right)
{
    switch (left->op) {
    case IR_VAR: return left == right;
    case IR_LOAD: return left->load.buffer == right->load.buffer;
    case IR_SHUFFLE:
        return memcmp(left->shuffle.pick, right->shuffle.pick, sizeof(int) * left->dtype.lanes) == 0;
    case IR_CALL:
        return left->call.pure && right->call.pure && left->call.n_buffers == 0 && right->call.n_buffers == 0;
    case IR_LET:
    case IR_REDUCE: return false;
    default: return true;
    }
}

/* 0 where equal; 2 where equal but for identities. The result 2 lets a caller tell "no order between them"
 * from "equal". Kinds first, then types, payloads and operands; `left` counts down the nodes that may still
 * be looked at. */
static int compare(const ir_expr *first, const ir_expr *right, int *left)
{
    if (first == right)
        return 0;
    if (--*left < 0)
        return 2;
    int c = by_number(first->op, right->op);
    if (c || (c = by_type(first->dtype, right->dtype)) || (c = by_payload(first, right)))
        return c;
    operands x = operands_of(first), y = operands_of(right);
    bool alike = same_identity(first, right);

    if ((c = by_number(x.n_few, y.n_few)) || (c = by_number(x.n_many, y.n_many)))
        return c;
    for (int i = 0; i < x.n_few + x.n_many; i++) {
        c = compare(operand(&x, i), operand(&y, i), left);
        if (c == 1 || c == -1)
            return c;
        alike = alike && c == 0;
    }
    return alike ? 0 : 2;
}

/* Rank first: terms of inner loops come after those of outer ones in every text. */
int ir_order(const ir_facts *facts, const ir_expr *left, const ir_expr *right)
{
    int budget = MAX_COMPARED;

    if (left == right)
        return 0;
    int c = by_number(ir_rank(facts, left), ir_rank(facts, right));
    if (c)
        return c;
    c = compare(left, right, &budget);
    return c == 2 ? 0 : c;
}

/* Structural equality up to a limit of nodes; a variable is like itself alone. */
bool ir_alike(const ir_expr *left, const ir_expr *right)
{
    int budget = MAX_COMPARED;

    return left == right ||
           (left->op == right->op && left->op != IR_VAR && compare(left, right, &budget) == 0);
}
