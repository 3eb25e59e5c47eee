/* targets/llvm/facts.c -- what address arithmetic relies on: multiples, signs, ramps; and which expressions
 * must wait for their condition.
 *
 * These are cheap structural answers about index expressions, whose arithmetic is assumed not to overflow;
 * that of data may. The thorough proofs were made by the passes before; "no knowledge" (1, false) is always a
 * right answer.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"

static int64_t gcd(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

enum { MOST = 4096 }; /* no alignment beyond a page is of use */

static int64_t product(int64_t a, int64_t b)
{
    return a >= MOST || b >= MOST ? gcd(MOST, a) > gcd(MOST, b) ? gcd(MOST, a) : gcd(MOST, b) : a * b;
}

/* 0 stands for "is 0", a multiple of everything. */
static int64_t multiple(llvm_gen *g, const ir_expr *e)
{
    const llvm_binding *v;
    if (e->op == IR_INT)
        return e->i == INT64_MIN ? 1 : e->i < 0 ? -e->i : e->i;
    if (e->op == IR_VAR)
        return (v = base_map_get(&g->vars, e)) ? v->multiple : 1;
    if (e->op == IR_ADD || e->op == IR_SUB)
        return gcd(multiple(g, e->arg[0]), multiple(g, e->arg[1]));
    if (e->op == IR_MUL)
        return product(multiple(g, e->arg[0]), multiple(g, e->arg[1]));
    if (e->op == IR_SELECT)
        return gcd(multiple(g, e->arg[1]), multiple(g, e->arg[2]));
    if (e->op == IR_MIN || e->op == IR_MAX)
        return gcd(multiple(g, e->arg[0]), multiple(g, e->arg[1]));
    return 1;
}

int64_t llvm_multiple(llvm_gen *g, const ir_expr *e)
{
    int64_t m = multiple(g, e);
    return m == 0 ? MOST : m;
}

/* Whether the index is never negative, by its structure alone. False says nothing. */
bool llvm_nonnegative(llvm_gen *g, const ir_expr *e)
{
    const llvm_binding *v;
    if (e->op == IR_INT)
        return e->i >= 0;
    if (e->op == IR_VAR)
        return (v = base_map_get(&g->vars, e)) && v->nonnegative;
    if (e->op == IR_BROADCAST)
        return llvm_nonnegative(g, e->arg[0]);
    if (e->op == IR_RAMP)
        return llvm_nonnegative(g, e->ramp.base) && llvm_nonnegative(g, e->ramp.stride);
    if (e->dtype.code == kDLInt && e->dtype.bits < 64)
        return false;
    if ((e->op == IR_ADD || e->op == IR_MUL) && (e->has & IR_HAS_DATA))
        return false;
    if (e->op == IR_ADD || e->op == IR_MUL || e->op == IR_MIN || e->op == IR_FLOORDIV || e->op == IR_DIV)
        return llvm_nonnegative(g, e->arg[0]) && llvm_nonnegative(g, e->arg[1]);
    if (e->op == IR_FLOORMOD)
        return llvm_nonnegative(g, e->arg[1]);
    if (e->op == IR_MAX)
        return llvm_nonnegative(g, e->arg[0]) || llvm_nonnegative(g, e->arg[1]);
    return false;
}

static bool divides(const ir_expr *e)
{
    int64_t value;
    return ir_is_op(e->op) && (ir_ops[e->op].flags & IR_ZERO_FAILS) && !base_is_float(e->dtype) &&
           !ir_is_int(e->arg[1], &value);
}

/* Whether evaluating e where the program would not may trap or touch memory. */
static bool find_risk(llvm_gen *g, const ir_expr *e)
{
    bool risk = e->op == IR_LOAD || e->op == IR_CALL || divides(e);
    if (e->op == IR_LET)
        risk = llvm_risky(g, e->let.value) || llvm_risky(g, e->let.body);
    if (e->op == IR_RAMP)
        risk = llvm_risky(g, e->ramp.base) || llvm_risky(g, e->ramp.stride);
    if (e->op == IR_SHUFFLE)
        for (int i = 0; i < e->shuffle.n && !risk; i++)
            risk = llvm_risky(g, e->shuffle.vectors[i]);
    if (ir_is_op(e->op) || e->op == IR_CAST || e->op == IR_REINTERPRET || e->op == IR_BROADCAST)
        for (int i = 0; i < 3 && !risk; i++)
            risk = e->arg[i] && llvm_risky(g, e->arg[i]);
    return risk;
}

bool llvm_risky(llvm_gen *g, const ir_expr *e)
{
    static const char known[2];
    if (e->op == IR_INT || e->op == IR_FLOAT || e->op == IR_VAR)
        return false;
    const char *answer = base_map_get(&g->risky, e);
    if (!answer) {
        answer = &known[find_risk(g, e)];
        base_map_put(g->cx, &g->risky, e, answer);
    }
    return answer == &known[1];
}

static bool ramp_of_sum(llvm_gen *g, const ir_expr *e, const ir_expr **base, int64_t *stride)
{
    const ir_expr *a, *b;
    int64_t s, t;
    if (!llvm_as_ramp(g, e->arg[0], &a, &s) || !llvm_as_ramp(g, e->arg[1], &b, &t))
        return false;
    *base = ir_op2(g->cx, e->op, a, b);
    *stride = e->op == IR_ADD ? s + t : s - t;
    return true;
}

static bool ramp_of_product(llvm_gen *g, const ir_expr *e, const ir_expr **base, int64_t *stride)
{
    const ir_expr *a;
    int64_t s, factor;
    int constant = ir_is_int(e->arg[1], &factor) ? 1 : ir_is_int(e->arg[0], &factor) ? 0 : -1;
    if (constant < 0 || !llvm_as_ramp(g, e->arg[1 - constant], &a, &s))
        return false;
    *base = ir_mul(g->cx, a, ir_imm_int(g->cx, a->dtype, factor));
    *stride = s * factor;
    return true;
}

/* Whether the lanes of e are base, base + stride, base + 2*stride, ... with a constant stride. */
bool llvm_as_ramp(llvm_gen *g, const ir_expr *e, const ir_expr **base, int64_t *stride)
{
    if (e->op == IR_RAMP) {
        *base = e->ramp.base;
        return ir_is_int(e->ramp.stride, stride);
    }
    if (e->op == IR_BROADCAST) {
        *base = e->arg[0];
        *stride = 0;
        return true;
    }
    if (e->op == IR_ADD || e->op == IR_SUB)
        return ramp_of_sum(g, e, base, stride);
    if (e->op == IR_MUL)
        return ramp_of_product(g, e, base, stride);
    if (e->op == IR_VAR) {
        const llvm_binding *v = base_map_get(&g->vars, e);
        return v && v->expr && llvm_as_ramp(g, v->expr, base, stride);
    }
    return false;
}
