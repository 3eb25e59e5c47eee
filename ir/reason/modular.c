/* ir/reason/modular.c -- residues: e == coefficient * (something) + base.
 *
 *     x = 12*i + 8, i unknown:   x is (12, 8);  x//4 is (3, 2);  x + y with y in (8, 3) is (4, 3)
 *
 * Coefficient 0 stands for the constant `base`; (1, 0) for no knowledge. Otherwise 0 <= base < coefficient.
 * Residues show what intervals cannot: that a vector of 4 elements at x begins at a multiple of 4.
 */
#include "ir/reason/reason.h"

enum { MAX_DEPTH = 8 };
static const ir_modular unknown = {1, 0};

static ir_modular normal(int64_t coefficient, int64_t base)
{
    if (coefficient == INT64_MIN)
        return unknown;
    coefficient = coefficient < 0 ? -coefficient : coefficient;
    return (ir_modular){coefficient, coefficient ? ir_floormod_int(base, coefficient) : base};
}

/* Both are known modulo the common divisor of the coefficients: (12, 8) + (8, 3) is (4, 11) = (4, 3). */
static ir_modular add(ir_modular left, ir_modular right)
{
    int64_t base;

    return __builtin_add_overflow(left.base, right.base, &base)
               ? unknown
               : normal(ir_gcd(left.coefficient, right.coefficient), base);
}

/* (a*x + b) * (c*y + d) = a*c*x*y + a*d*x + b*c*y + b*d: the coefficient is the common divisor of the first
 * three factors, the base is b*d. */
static ir_modular mul(ir_modular one, ir_modular two)
{
    int64_t both, left, right, base;

    if (__builtin_mul_overflow(one.coefficient, two.coefficient, &both) ||
        __builtin_mul_overflow(one.coefficient, two.base, &left) ||
        __builtin_mul_overflow(one.base, two.coefficient, &right) ||
        __builtin_mul_overflow(one.base, two.base, &base))
        return unknown;
    return normal(ir_gcd(both, ir_gcd(left, right)), base);
}

/* Either of the two. An example: 3 modulo 8 or 7 modulo 8 is 3 modulo 4, as the bases differ by 4. */
static ir_modular join(ir_modular left, ir_modular right)
{
    int64_t apart;

    if (__builtin_sub_overflow(left.base, right.base, &apart))
        return unknown;
    return normal(ir_gcd(ir_gcd(left.coefficient, right.coefficient), apart), left.base);
}

/* Both residues hold, so the Chinese remainder theorem gives a finer one: 1 modulo 2 and 2 modulo 3 is 5
 * modulo 6. Tried by counting, so large moduli are left alone. Residues that contradict each other belong to
 * code that never runs; one of the two is then as good as the other. */
ir_modular ir_modular_meet(ir_modular left, ir_modular right)
{
    if (left.coefficient == 0 || right.coefficient == 0)
        return left.coefficient == 0 ? left : right;
    int64_t big = left.coefficient / ir_gcd(left.coefficient, right.coefficient);

    if (__builtin_mul_overflow(big, right.coefficient, &big) || left.coefficient > 4096 ||
        right.coefficient > 4096)
        return left.coefficient > right.coefficient ? left : right;
    for (int64_t x = left.base; x < big; x += left.coefficient)
        if (x % right.coefficient == right.base)
            return (ir_modular){big, x};
    return left;
}

static ir_modular of_int(int64_t v)
{
    return (ir_modular){0, v};
}

/* Division by a k that divides the coefficient.
 *
 *     (12, 8) // 4 = (3, 2):   12*i + 8 = 4*(3*i + 2)
 */
static ir_modular divide(ir_modular left, int64_t k)
{
    if (k <= 0 || left.coefficient % k != 0)
        return unknown;
    return normal(left.coefficient / k, ir_floordiv_int(left.base, k));
}

/* x%k is known where k divides the coefficient, otherwise modulo their common divisor.
 *
 *     (12, 8) % 4 = 0;   (12, 8) % 8 is 0 modulo 4, their common divisor
 */
static ir_modular remainder_of(ir_modular left, int64_t k)
{
    if (k <= 0)
        return unknown;
    if (left.coefficient % k == 0)
        return of_int(ir_floormod_int(left.base, k));
    return normal(ir_gcd(left.coefficient, k), left.base);
}

static ir_modular modulus_of(const ir_facts *facts, const ir_expr *expr, int depth);

/* What was assumed of this very atom. */
static ir_modular assumed(const ir_facts *facts, const ir_expr *expr)
{
    ir_modular m = unknown;

    for (facts = ir_facts_ready(facts); facts; facts = facts->outer)
        for (const ir_residue *residue = facts->residues; residue; residue = residue->next) {
            const ir_term *term = ir_sum_terms(&residue->form);
            int64_t base;
            if (residue->form.n == 1 && term->by == 1 && ir_alike(term->atom, expr) &&
                !__builtin_sub_overflow(residue->modulus.base, residue->form.constant, &base))
                m = ir_modular_meet(m, normal(residue->modulus.coefficient, base));
        }
    return m;
}

/* Wrapping keeps residues modulo powers of two alone. A wrapped sum differs from the exact one by a multiple
 * of 2^64, and of each smaller power of two. */
static ir_modular modulo_power(ir_modular modular)
{
    int64_t power = modular.coefficient == 0 ? INT64_MIN : modular.coefficient & -modular.coefficient;

    return power < 0 ? modular : normal(power, modular.base);
}

/* The residue that the operation of expr gives from those of its operands, as if the arithmetic could not
 * wrap. An example: i*12 + 8 with i unknown is (1, 0)*(0, 12) + (0, 8) = (12, 8). */
static ir_modular structural(const ir_facts *facts, const ir_expr *expr, int depth)
{
    switch (expr->op) {
    case IR_ADD: return add(modulus_of(facts, expr->arg[0], depth), modulus_of(facts, expr->arg[1], depth));
    case IR_SUB:
        return add(modulus_of(facts, expr->arg[0], depth),
                   mul(modulus_of(facts, expr->arg[1], depth), of_int(-1)));
    case IR_NEG: return mul(modulus_of(facts, expr->arg[0], depth), of_int(-1));
    case IR_MUL: return mul(modulus_of(facts, expr->arg[0], depth), modulus_of(facts, expr->arg[1], depth));
    case IR_FLOORDIV:
        return expr->arg[1]->op == IR_INT ? divide(modulus_of(facts, expr->arg[0], depth), expr->arg[1]->i)
                                          : unknown;
    case IR_FLOORMOD:
        return expr->arg[1]->op == IR_INT
                   ? remainder_of(modulus_of(facts, expr->arg[0], depth), expr->arg[1]->i)
                   : unknown;
    case IR_MIN:
    case IR_MAX: return join(modulus_of(facts, expr->arg[0], depth), modulus_of(facts, expr->arg[1], depth));
    case IR_SELECT:
        return join(modulus_of(facts, expr->arg[1], depth), modulus_of(facts, expr->arg[2], depth));
    default: return unknown;
    }
}

/* `depth` limits how far into operands the search goes; below that limit nothing is known. Assumed residues
 * of the whole expression are combined with those of its structure. */
static ir_modular modulus_of(const ir_facts *facts, const ir_expr *expr, int depth)
{
    if (!ir_is_index(expr))
        return unknown;
    if (expr->op == IR_INT)
        return of_int(expr->i);
    if (expr->op == IR_VAR) {
        const ir_var_fact *v = ir_fact_of(facts, expr);
        return v ? v->modulus : unknown;
    }
    if (depth == 0)
        return unknown;
    ir_modular m = structural(facts, expr, depth - 1);

    return ir_modular_meet(assumed(facts, expr), ir_wraps(facts, expr) ? modulo_power(m) : m);
}

ir_modular ir_atom_modulus(const ir_facts *facts, const ir_expr *expr)
{
    return modulus_of(facts, expr, MAX_DEPTH);
}

/* Stops once nothing is known any more: no further term can bring it back. Terms are independent: the residue
 * of a sum is that of its terms, added. */
static ir_modular sum_modulus(const ir_facts *facts, const ir_sum *sum)
{
    const ir_term *term = ir_sum_terms(sum);
    ir_modular m = of_int(sum->constant);

    if (sum->bad)
        return unknown;
    for (int i = 0; i < sum->n && !(m.coefficient == 1); i++)
        m = add(m, mul(ir_atom_modulus(facts, term[i].atom), of_int(term[i].by)));
    return m;
}

/* The residue of the sum, met with each residue that was assumed of a form which the sum holds: with i + j ==
 * 3 mod 4 the sum i + j + 4*k is 3 mod 4. */
ir_modular ir_sum_modulus(const ir_facts *facts, const ir_sum *sum)
{
    ir_modular m = sum_modulus(facts, sum);

    for (const ir_facts *level = ir_facts_ready(facts); level; level = level->outer)
        for (const ir_residue *residue = level->residues; residue; residue = residue->next) {
            if (residue->form.n < 2 || !ir_sum_holds(sum, &residue->form, 1))
                continue;
            ir_sum rest;
            ir_sum_copy(facts, &rest, sum);
            ir_sum_add(facts, &rest, &residue->form, -1);
            m = ir_modular_meet(m, add(sum_modulus(facts, &rest), residue->modulus));
        }
    return m;
}

/* The residue of the linear form, which knows more than that of the expression: i*4 + j*4 is 0 mod 4 in
 * both, but (i + j)*4 - j*4 only in the form is i*4. */
ir_modular ir_modulus(const ir_facts *facts, const ir_expr *expr)
{
    ir_sum a = {0};

    expr = ir_simplify(facts, expr);
    if (!expr || !ir_is_index(expr))
        return unknown;
    ir_sum_read(facts, &a, expr, 1);
    return ir_sum_modulus(facts, &a);
}
