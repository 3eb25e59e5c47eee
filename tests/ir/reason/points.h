/* tests/ir/reason/points.h -- for tests of reasoning: small worlds of variables with facts, all their points,
 * random expressions, an evaluator.
 *
 *     world w = {0};
 *     random_world(&w, cx, &seed);                       variables, facts, and the points that satisfy them
 *     const ir_expr *e = random_index(&w, &seed, 4);
 *     for (int p = 0; p < w.n_points; p++)
 *         eval(&w, p, e, &value)                          false: a zero divisor
 *
 * The evaluator is written again here, plainly, so that a slip in the interpreter cannot hide one in the
 * simplifier.
 */
#ifndef TESTS_IR_POINTS_H
#define TESTS_IR_POINTS_H

#include <stdlib.h>

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"

enum { MAX_VARS = 5, MAX_POINTS = 4096, MAX_FACTS = 4 };

typedef struct {
    tec_context *cx;
    ir_facts *f;
    int n_vars, n_points;
    const ir_expr *var[MAX_VARS];
    int64_t point[MAX_POINTS][MAX_VARS];
    const ir_expr *fact[MAX_FACTS];
    int n_facts;
    const ir_expr *bound_var[8]; /* lets */
    int64_t bound_value[8];
    int n_bound;
} world;

static inline int64_t floor_quotient(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline bool eval(world *w, const int64_t *point, const ir_expr *e, int64_t *out);

static inline bool eval_var(world *w, const int64_t *point, const ir_expr *e, int64_t *out)
{
    for (int i = w->n_bound - 1; i >= 0; i--)
        if (w->bound_var[i] == e) {
            *out = w->bound_value[i];
            return true;
        }
    for (int i = 0; i < w->n_vars; i++)
        if (w->var[i] == e) {
            *out = point[i];
            return true;
        }
    abort();
}

static inline int64_t wrapped(base_dtype t, int64_t v)
{
    if (base_is_bool(t))
        return v != 0;
    if (t.bits == 64)
        return v;
    uint64_t bits = (uint64_t)v << (64 - t.bits);
    return t.code == kDLUInt ? (int64_t)(bits >> (64 - t.bits)) : (int64_t)bits >> (64 - t.bits);
}

static inline bool eval_lazy(world *w, const int64_t *point, const ir_expr *e, int64_t *out)
{
    int64_t c;

    if (!eval(w, point, e->arg[0], &c))
        return false;
    if (e->op == IR_SELECT)
        return eval(w, point, e->arg[c ? 1 : 2], out);
    *out = c;
    return (c != 0) == (e->op == IR_OR) || eval(w, point, e->arg[1], out);
}

static inline bool eval_let(world *w, const int64_t *point, const ir_expr *e, int64_t *out)
{
    int64_t v;

    if (!eval(w, point, e->let.value, &v))
        return false;
    w->bound_var[w->n_bound] = e->let.var;
    w->bound_value[w->n_bound++] = v;
    bool ok = eval(w, point, e->let.body, out);
    w->n_bound--;
    return ok;
}

static inline bool eval_two(ir_op op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case IR_ADD: *out = a + b; return true;
    case IR_SUB: *out = a - b; return true;
    case IR_MUL: *out = a * b; return true;
    case IR_DIV: *out = b ? a / b : 0; return b != 0;
    case IR_MOD: *out = b ? a % b : 0; return b != 0;
    case IR_FLOORDIV: *out = b ? floor_quotient(a, b) : 0; return b != 0;
    case IR_FLOORMOD: *out = b ? a - b * floor_quotient(a, b) : 0; return b != 0;
    case IR_MIN: *out = a < b ? a : b; return true;
    case IR_MAX: *out = a > b ? a : b; return true;
    case IR_EQ: *out = a == b; return true;
    case IR_NE: *out = a != b; return true;
    case IR_LT: *out = a < b; return true;
    case IR_LE: *out = a <= b; return true;
    case IR_GT: *out = a > b; return true;
    case IR_GE: *out = a >= b; return true;
    case IR_BITAND: *out = a & b; return true;
    case IR_BITOR: *out = a | b; return true;
    case IR_BITXOR: *out = a ^ b; return true;
    case IR_SHL: *out = (int64_t)((uint64_t)a << (b & 63)); return true;
    case IR_SHR: *out = a >> (b & 63); return true;
    default: abort();
    }
}

static inline bool eval(world *w, const int64_t *point, const ir_expr *e, int64_t *out)
{
    int64_t a, b;

    switch (e->op) {
    case IR_INT: *out = e->i; return true;
    case IR_VAR: return eval_var(w, point, e, out);
    case IR_LET: return eval_let(w, point, e, out);
    case IR_SELECT:
    case IR_AND:
    case IR_OR: return eval_lazy(w, point, e, out);
    case IR_NEG:
    case IR_NOT:
    case IR_ABS:
    case IR_LIKELY:
    case IR_CAST:
        if (!eval(w, point, e->arg[0], &a))
            return false;
        *out = e->op == IR_NEG   ? -a
               : e->op == IR_NOT ? !a
               : e->op == IR_ABS ? (a < 0 ? -a : a)
                                 : wrapped(e->dtype, a);
        return true;
    default:
        if (!eval(w, point, e->arg[0], &a) || !eval(w, point, e->arg[1], &b) || !eval_two(e->op, a, b, out))
            return false;
        *out = wrapped(e->dtype, *out);
        return true;
    }
}

/* ---- random worlds ---- */

static inline const ir_expr *raw(tec_context *cx, ir_op op, const ir_expr *a, const ir_expr *b)
{
    return ir_op_raw(cx, op, (const ir_expr *[]){a, b, NULL});
}

static inline int64_t between(uint64_t *seed, int64_t low, int64_t high)
{
    return low + base_random_below(seed, high - low + 1);
}

static inline const ir_expr *random_index(world *w, uint64_t *seed, int depth);

static inline const ir_expr *random_leaf(world *w, uint64_t *seed)
{
    if (base_random_below(seed, 3) == 0)
        return ir_int(w->cx, between(seed, -7, 12));
    return w->var[base_random_below(seed, w->n_vars)];
}

static inline const ir_expr *random_divisor(world *w, uint64_t *seed)
{
    static const int64_t common[] = {2, 3, 4, 6, 8, 12, -1, -2, -3, 1};

    if (base_random_below(seed, 6) == 0)
        return random_leaf(w, seed);
    return ir_int(w->cx, common[base_random_below(seed, BASE_COUNT(common))]);
}

static inline const ir_expr *random_condition(world *w, uint64_t *seed, int depth)
{
    static const ir_op compares[] = {IR_EQ, IR_NE, IR_LT, IR_LE, IR_GT, IR_GE};
    int kind = (int)base_random_below(seed, depth > 0 ? 10 : 6);

    if (kind < 6)
        return raw(w->cx, compares[base_random_below(seed, 6)], random_index(w, seed, depth - 1),
                   random_index(w, seed, depth - 1));
    if (kind < 8)
        return raw(w->cx, IR_AND, random_condition(w, seed, depth - 1), random_condition(w, seed, depth - 1));
    if (kind == 8)
        return raw(w->cx, IR_OR, random_condition(w, seed, depth - 1), random_condition(w, seed, depth - 1));
    return raw(w->cx, IR_NOT, random_condition(w, seed, depth - 1), NULL);
}

static inline const ir_expr *random_let(world *w, uint64_t *seed, int depth)
{
    const ir_expr *value = random_index(w, seed, depth - 1), *var = ir_var(w->cx, "t", BASE_I64),
                  *kept = w->var[0];

    w->var[0] = var;
    const ir_expr *body = random_index(w, seed, depth - 1);
    w->var[0] = kept;
    return ir_let(w->cx, var, value, body);
}

static inline const ir_expr *random_index(world *w, uint64_t *seed, int depth)
{
    static const ir_op divisions[] = {IR_FLOORDIV, IR_FLOORMOD, IR_FLOORDIV, IR_FLOORMOD, IR_DIV, IR_MOD};
    static const base_dtype types[] = {{kDLInt, 32, 1}, {kDLInt, 8, 1}, {kDLUInt, 8, 1}, {kDLInt, 64, 1}};

    if (depth <= 0)
        return random_leaf(w, seed);
    switch (base_random_below(seed, 20)) {
    case 0:
    case 1:
    case 2:
    case 3: return raw(w->cx, IR_ADD, random_index(w, seed, depth - 1), random_index(w, seed, depth - 1));
    case 4:
    case 5: return raw(w->cx, IR_SUB, random_index(w, seed, depth - 1), random_index(w, seed, depth - 1));
    case 6:
    case 7:
    case 8: return raw(w->cx, IR_MUL, random_index(w, seed, depth - 1), ir_int(w->cx, between(seed, -4, 12)));
    case 9: return raw(w->cx, IR_MUL, random_index(w, seed, depth - 1), random_index(w, seed, depth - 2));
    case 10:
    case 11:
    case 12:
    case 13:
        return raw(w->cx, divisions[base_random_below(seed, BASE_COUNT(divisions))],
                   random_index(w, seed, depth - 1), random_divisor(w, seed));
    case 14: return raw(w->cx, IR_MIN, random_index(w, seed, depth - 1), random_index(w, seed, depth - 1));
    case 15: return raw(w->cx, IR_MAX, random_index(w, seed, depth - 1), random_index(w, seed, depth - 1));
    case 16:
        return ir_op_raw(w->cx, IR_SELECT,
                         (const ir_expr *[]){random_condition(w, seed, depth - 2),
                                             random_index(w, seed, depth - 1),
                                             random_index(w, seed, depth - 1)});
    case 17:
        return raw(w->cx, base_random_below(seed, 2) ? IR_NEG : IR_ABS, random_index(w, seed, depth - 1),
                   NULL);
    case 18: return random_let(w, seed, depth);
    default:
        return ir_cast(w->cx, BASE_I64,
                       ir_cast(w->cx, types[base_random_below(seed, BASE_COUNT(types))],
                               random_index(w, seed, depth - 1)));
    }
}

static inline bool holds_at(world *w, const int64_t *point, const ir_expr *c)
{
    int64_t v;

    return eval(w, point, c, &v) && v != 0;
}

static inline void keep_point(world *w, const int64_t *point)
{
    for (int i = 0; i < w->n_facts; i++)
        if (!holds_at(w, point, w->fact[i]))
            return;
    if (w->n_points < MAX_POINTS) {
        for (int i = 0; i < w->n_vars; i++)
            w->point[w->n_points][i] = point[i];
        w->n_points++;
    }
}

/* Ranges may end at another variable: 0 <= i < n. */
typedef struct {
    int64_t min, extent;
    int symbol; /* index of the variable that is the extent, or -1 */
} range;

static inline void fill_points(world *w, const range *r, int64_t *point, int at)
{
    if (at == w->n_vars) {
        keep_point(w, point);
        return;
    }
    int64_t extent = r[at].symbol >= 0 ? point[r[at].symbol] : r[at].extent;

    for (int64_t i = 0; i < extent; i++) {
        point[at] = r[at].min + i;
        fill_points(w, r, point, at + 1);
    }
}

static inline const ir_expr *random_fact(world *w, uint64_t *seed)
{
    const ir_expr *v = w->var[base_random_below(seed, w->n_vars)];

    switch (base_random_below(seed, 4)) {
    case 0: {
        int64_t k = between(seed, 2, 4);
        return ir_eq(w->cx, ir_floormod(w->cx, v, ir_int(w->cx, k)), ir_int(w->cx, between(seed, 0, k - 1)));
    }
    case 1: return raw(w->cx, IR_LE, random_index(w, seed, 1), random_index(w, seed, 1));
    case 2: return raw(w->cx, IR_LT, random_index(w, seed, 2), random_index(w, seed, 1));
    default: return random_condition(w, seed, 2);
    }
}

static inline void random_world(world *w, tec_context *cx, uint64_t *seed)
{
    static const char *const names[] = {"n", "y", "x", "k", "z"};
    int64_t point[MAX_VARS];
    range r[MAX_VARS];

    *w = (world){.cx = cx, .f = ir_facts_new(cx, NULL), .n_vars = (int)between(seed, 2, 4)};
    for (int i = 0; i < w->n_vars; i++) {
        bool symbol = i == 0;
        w->var[i] = ir_var(cx, names[i], BASE_I64);
        r[i] = (range){.min = symbol                       ? 1
                              : base_random_below(seed, 2) ? 0
                                                           : between(seed, -6, 6),
                       .extent = between(seed, 1, 7),
                       .symbol = -1};
        if (i > 0 && base_random_below(seed, 3) == 0)
            r[i] = (range){.min = r[i].min, .symbol = 0};
        ir_facts_range(w->f, w->var[i], ir_int(cx, r[i].min),
                       r[i].symbol == 0 ? w->var[0] : ir_int(cx, r[i].extent));
    }
    int n = (int)base_random_below(seed, MAX_FACTS);
    for (int i = 0; i < n; i++) {
        w->fact[i] = random_fact(w, seed);
        ir_facts_assume(w->f, w->fact[i]);
    }
    w->n_facts = n;
    fill_points(w, r, point, 0);
}

static inline int cases(int quick, int full)
{
    const char *s = getenv("TEC_TEST_FULL");

    return s && *s && *s != '0' ? full : quick;
}

#endif
