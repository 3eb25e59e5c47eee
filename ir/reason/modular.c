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
static ir_modular add(ir_modular a, ir_modular b)
{
    int64_t base;

    return __builtin_add_overflow(a.base, b.base, &base) ? unknown
                                                         : normal(ir_gcd(a.coefficient, b.coefficient), base);
}

/* (ax + b)(cy + d) = acxy + adx + bcy + bd */
static ir_modular mul(ir_modular a, ir_modular b)
{
    int64_t both, left, right, base;

    if (__builtin_mul_overflow(a.coefficient, b.coefficient, &both) ||
        __builtin_mul_overflow(a.coefficient, b.base, &left) ||
        __builtin_mul_overflow(a.base, b.coefficient, &right) ||
        __builtin_mul_overflow(a.base, b.base, &base))
        return unknown;
    return normal(ir_gcd(both, ir_gcd(left, right)), base);
}

/* Either of the two. An example: 3 modulo 8 or 7 modulo 8 is 3 modulo 4, as the bases differ by 4. */
static ir_modular join(ir_modular a, ir_modular b)
{
    int64_t apart;

    if (__builtin_sub_overflow(a.base, b.base, &apart))
        return unknown;
    return normal(ir_gcd(ir_gcd(a.coefficient, b.coefficient), apart), a.base);
}

/* Both residues hold, so the Chinese remainder theorem gives a finer one: 1 modulo 2 and 2 modulo 3 is 5
 * modulo 6. Tried by counting, so large moduli are left alone. Residues that contradict each other belong to
 * code that never runs; one of the two is then as good as the other. */
ir_modular ir_modular_meet(ir_modular a, ir_modular b)
{
    if (a.coefficient == 0 || b.coefficient == 0)
        return a.coefficient == 0 ? a : b;
    int64_t big = a.coefficient / ir_gcd(a.coefficient, b.coefficient);

    if (__builtin_mul_overflow(big, b.coefficient, &big) || a.coefficient > 4096 || b.coefficient > 4096)
        return a.coefficient > b.coefficient ? a : b;
    for (int64_t x = a.base; x < big; x += a.coefficient)
        if (x % b.coefficient == b.base)
            return (ir_modular){big, x};
    return a;
}

static ir_modular of_int(int64_t v)
{
    return (ir_modular){0, v};
}

/* (kCx + b) // k with k dividing the coefficient.
 *
 *     (12, 8) // 4 = (3, 2):   12*i + 8 = 4*(3*i + 2)
 */
static ir_modular divide(ir_modular a, int64_t k)
{
    if (k <= 0 || a.coefficient % k != 0)
        return unknown;
    return normal(a.coefficient / k, ir_floordiv_int(a.base, k));
}

/* x%k is known where k divides the coefficient, otherwise modulo their common divisor.
 *
 *     (12, 8) % 4 = 0;   (12, 8) % 8 is 0 modulo 4, their common divisor
 */
static ir_modular remainder_of(ir_modular a, int64_t k)
{
    if (k <= 0)
        return unknown;
    if (a.coefficient % k == 0)
        return of_int(ir_floormod_int(a.base, k));
    return normal(ir_gcd(a.coefficient, k), a.base);
}

static ir_modular modulus_of(const ir_facts *f, const ir_expr *e, int depth);

/* What was assumed of this very atom. */
static ir_modular assumed(const ir_facts *f, const ir_expr *e)
{
    ir_modular m = unknown;

    for (f = ir_facts_ready(f); f; f = f->outer)
        for (const ir_residue *r = f->residues; r; r = r->next) {
            const ir_term *t = ir_sum_terms(&r->form);
            int64_t base;
            if (r->form.n == 1 && t->by == 1 && ir_alike(t->atom, e) &&
                !__builtin_sub_overflow(r->modulus.base, r->form.constant, &base))
                m = ir_modular_meet(m, normal(r->modulus.coefficient, base));
        }
    return m;
}

/* Wrapping keeps residues modulo powers of two alone. A wrapped sum differs from the exact one by a multiple
 * of 2^64, and of each smaller power of two. */
static ir_modular modulo_power(ir_modular m)
{
    int64_t power = m.coefficient == 0 ? INT64_MIN : m.coefficient & -m.coefficient;

    return power < 0 ? m : normal(power, m.base);
}

/* The residue that the operation of e gives from those of its operands, as if the arithmetic could not wrap.
 * An example: i*12 + 8 with i unknown is (1, 0)*(0, 12) + (0, 8) = (12, 8). */
static ir_modular structural(const ir_facts *f, const ir_expr *e, int depth)
{
    switch (e->op) {
    case IR_ADD: return add(modulus_of(f, e->arg[0], depth), modulus_of(f, e->arg[1], depth));
    case IR_SUB:
        return add(modulus_of(f, e->arg[0], depth), mul(modulus_of(f, e->arg[1], depth), of_int(-1)));
    case IR_NEG: return mul(modulus_of(f, e->arg[0], depth), of_int(-1));
    case IR_MUL: return mul(modulus_of(f, e->arg[0], depth), modulus_of(f, e->arg[1], depth));
    case IR_FLOORDIV:
        return e->arg[1]->op == IR_INT ? divide(modulus_of(f, e->arg[0], depth), e->arg[1]->i) : unknown;
    case IR_FLOORMOD:
        return e->arg[1]->op == IR_INT ? remainder_of(modulus_of(f, e->arg[0], depth), e->arg[1]->i)
                                       : unknown;
    case IR_MIN:
    case IR_MAX: return join(modulus_of(f, e->arg[0], depth), modulus_of(f, e->arg[1], depth));
    case IR_SELECT: return join(modulus_of(f, e->arg[1], depth), modulus_of(f, e->arg[2], depth));
    default: return unknown;
    }
}

/* `depth` limits how far into operands the search goes; below that limit nothing is known. Assumed residues
 * of the whole expression are combined with those of its structure. */
static ir_modular modulus_of(const ir_facts *f, const ir_expr *e, int depth)
{
    if (!ir_is_index(e))
        return unknown;
    if (e->op == IR_INT)
        return of_int(e->i);
    if (e->op == IR_VAR) {
        const ir_var_fact *v = ir_fact_of(f, e);
        return v ? v->modulus : unknown;
    }
    if (depth == 0)
        return unknown;
    ir_modular m = structural(f, e, depth - 1);

    return ir_modular_meet(assumed(f, e), ir_wraps(f, e) ? modulo_power(m) : m);
}

ir_modular ir_atom_modulus(const ir_facts *f, const ir_expr *e)
{
    return modulus_of(f, e, MAX_DEPTH);
}

/* Stops once nothing is known any more: no further term can bring it back. Terms are independent: the residue
 * of a sum is that of its terms, added. */
static ir_modular sum_modulus(const ir_facts *f, const ir_sum *a)
{
    const ir_term *t = ir_sum_terms(a);
    ir_modular m = of_int(a->constant);

    if (a->bad)
        return unknown;
    for (int i = 0; i < a->n && !(m.coefficient == 1); i++)
        m = add(m, mul(ir_atom_modulus(f, t[i].atom), of_int(t[i].by)));
    return m;
}

/* Sums that residues were assumed of: a == sum + rest. */
ir_modular ir_sum_modulus(const ir_facts *f, const ir_sum *a)
{
    ir_modular m = sum_modulus(f, a);

    for (const ir_facts *level = ir_facts_ready(f); level; level = level->outer)
        for (const ir_residue *r = level->residues; r; r = r->next) {
            if (r->form.n < 2 || !ir_sum_holds(a, &r->form, 1))
                continue;
            ir_sum rest;
            ir_sum_copy(f, &rest, a);
            ir_sum_add(f, &rest, &r->form, -1);
            m = ir_modular_meet(m, add(sum_modulus(f, &rest), r->modulus));
        }
    return m;
}

ir_modular ir_modulus(const ir_facts *f, const ir_expr *e)
{
    ir_sum a = {0};

    e = ir_simplify(f, e);
    if (!e || !ir_is_index(e))
        return unknown;
    ir_sum_read(f, &a, e, 1);
    return ir_sum_modulus(f, &a);
}
