/* ir/region/tried.c -- what an index reaches over few points: each is tried. Exact for any index and any
 * condition without loads.
 *
 *     i*i % 7 over i in 0..10 where i != 3:   the values 0 1 4 . 2 4 1 0 1 4, so 0..4
 *
 * No rule of the other files says more than 0..6 here. It is used where the ranges are small constants: 2^16
 * points at most, so that asking stays cheap.
 */
#include "ir/eval.h"
#include "ir/reason/reason.h"
#include "ir/region/region.h"

enum { MAX_VARIABLES = 16, MAX_POINTS = 1 << 16 };

typedef struct {
    tec_context *cx;
    const ir_expr *e, *where;
    int n;
    int64_t min[MAX_VARIABLES], extent[MAX_VARIABLES];
    ir_value value[MAX_VARIABLES];
    base_map vars;
    ir_tried *out;
} trial;

/* The variables that matter, with constant ranges; false: too many points. Only variables that the index or
 * the condition mentions are tried: a loop of a million iterations that neither of them uses costs nothing.
 */
static bool set_up(trial *self, const ir_facts *facts, const ir_ranges *inner)
{
    int64_t points = 1;

    for (int i = 0; i < inner->n; i++) {
        int64_t min = 0, extent;

        if (!ir_mentions(self->e, inner->var[i]) && !(self->where && ir_mentions(self->where, inner->var[i])))
            continue;
        if ((inner->min && !ir_is_int(ir_simplify(facts, inner->min[i]), &min)) ||
            !ir_is_int(ir_simplify(facts, inner->extent[i]), &extent))
            return false;
        if (self->n == MAX_VARIABLES || __builtin_mul_overflow(points, extent < 0 ? 0 : extent, &points) ||
            points > MAX_POINTS)
            return false;
        self->min[self->n] = min;
        self->extent[self->n] = extent;
        base_map_put(self->cx, &self->vars, inner->var[i], &self->value[self->n]);
        self->n++;
    }
    return true;
}

/* Evaluates the index at one point if the condition holds there. False: a value cannot be computed, for
 * example a division by zero. */
static bool try_point(trial *self)
{
    ir_value holds = {.i = 1}, v;

    if (self->where && !ir_eval(self->cx, self->where, &self->vars, &holds))
        return false;
    if (!holds.i)
        return true;
    if (!ir_eval(self->cx, self->e, &self->vars, &v))
        return false;
    self->out->min = self->out->any && self->out->min < v.i ? self->out->min : v.i;
    self->out->max = self->out->any && self->out->max > v.i ? self->out->max : v.i;
    self->out->any = true;
    return true;
}

static bool try_from(trial *self, int index)
{
    if (index == self->n)
        return try_point(self);
    for (int64_t k = 0; k < self->extent[index]; k++) {
        self->value[index].i = self->min[index] + k;
        if (!try_from(self, index + 1))
            return false;
    }
    return true;
}

/* Evaluates the index at every point that satisfies `where`. False: too many points, or something cannot be
 * evaluated. */
bool ir_try_points(const ir_facts *facts, const ir_expr *expr, const ir_ranges *inner, const ir_expr *where,
                   ir_tried *out)
{
    trial t = {.cx = facts->cx,
               .e = ir_simplify(facts, expr),
               .where = where ? ir_simplify(facts, where) : NULL,
               .out = out};

    *out = (ir_tried){0};
    return t.e && ir_is_index(t.e) && (t.where || !where) && set_up(&t, facts, inner) && try_from(&t, 0);
}
