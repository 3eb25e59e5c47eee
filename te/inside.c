/* te/inside.c -- the conditions under which all extents of a definition are at least 0 and all indices stay
 * inside of their tensors.
 *
 *     def f(n, m, A: f32[n]) { P[i: m - 2] = A[i + 2]  return P }
 * =>  m >= 2        the extent m - 2 of axis 'i' of 'P' must not be negative
 *     m <= n        'P' reads axis 0 of 'A' at 2 to m - 1, its extent is n
 *
 * Extents come first, so that indices are looked at with extents that are not negative. An access matters
 * where the stage has points: a condition holds as well where an axis is empty. The conditions around an
 * access (of select, && and ||, which evaluate only the operand that they ask for, and of a reduction's
 * `where`) narrow the points that count. Where these conditions or the index depend on data, or on
 * comparisons that are not of sums, the author of the definition is responsible for the access.
 */
#include "te/inside.h"

#include "ir/region/region.h"
#include "ir/text.h"
#include "ir/walk.h"

typedef struct {
    tec_context *cx;
    const te_def *def;
    ir_facts *f; /* of the definition, with what was derived so far */
    te_conditions *out;
} deriver;

/* A condition is a fact from here on: later ones that follow from it are not written. */
static void add_condition(deriver *self, const ir_expr *condition, const char *reason)
{
    base_push(self->cx, &self->out->conditions, condition);
    base_push(self->cx, &self->out->reasons, reason);
    ir_facts_assume(self->f, condition);
}

/* Whether a call can work it out from its symbols (compiler/dim.c). */
static bool check_operation(ir_walk *walk, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_INT:
    case IR_VAR:
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_NEG:
    case IR_FLOORDIV:
    case IR_FLOORMOD:
    case IR_MIN:
    case IR_MAX:
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE:
    case IR_GT:
    case IR_GE:
    case IR_AND:
    case IR_OR:
    case IR_NOT:
    case IR_SELECT:
    case IR_LIKELY: return true;
    default: walk->stop = true; return false;
    }
}

/* Axes are variables too, but not of the caller. */
static bool is_symbol(const deriver *self, const ir_expr *var)
{
    for (int i = 0; i < self->def->symbols.n; i++)
        if (self->def->symbols.at[i] == var)
            return true;
    return false;
}

/* Whether a caller can test the condition before the call, by its symbols alone. */
static bool a_call_tells(const deriver *self, const ir_expr *expr)
{
    ir_walk w = {.cx = self->cx, .expr = check_operation};
    base_vec vars = {0};

    ir_walk_expr(&w, expr);
    ir_free_vars(self->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!is_symbol(self, vars.at[i]))
            return false;
    return !w.stop;
}

/* ---- extents ---- */

/* An extent that is negative for all sizes is an error; one that may be negative for some becomes a condition
 * of the definition, with its reason in words. */
static bool check_extent(deriver *self, const ir_expr *extent, const char *what, base_loc loc)
{
    tec_context *cx = self->cx;
    const ir_expr *zero = ir_int(cx, 0);

    if (ir_prove_le(self->f, zero, extent))
        return true;
    if (ir_prove_lt(self->f, extent, zero)) {
        base_fail(cx, TEC_INVALID, loc, "%s is negative: %s", what,
                  ir_expr_text(cx, ir_simplify(self->f, extent)));
        return false;
    }
    const ir_expr *condition = ir_simplify(self->f, ir_le(cx, zero, extent));
    if (condition && a_call_tells(self, condition))
        add_condition(self, condition,
                      base_format(cx, "%s, %s, must not be negative", what, ir_expr_text(cx, extent)));
    return condition != NULL;
}

static bool check_shape(deriver *self, const ir_buffer *buffer, base_loc loc)
{
    for (int i = 0; i < buffer->n; i++)
        if (!check_extent(self, buffer->shape[i],
                          base_format(self->cx, "the extent of dimension %d of '%s'", i, buffer->name), loc))
            return false;
    return true;
}

static bool check_axes(deriver *self, const te_stage *stage, const ir_expr *const *axis,
                       const ir_expr *const *extent, int n)
{
    for (int i = 0; i < n; i++)
        if (!check_extent(
                self, extent[i],
                base_format(self->cx, "the extent of axis '%s' of '%s'", axis[i]->var.name, stage->name),
                stage->loc))
            return false;
    return true;
}

/* Also of the first steps of a state, which are a stage of their own without a place in the list. */
static bool check_extents(deriver *self, const te_stage *stage)
{
    if (!check_axes(self, stage, stage->axis, stage->extent, stage->n_axes) ||
        !check_axes(self, stage, stage->reduce_axis, stage->reduce_extent, stage->n_reduce))
        return false;
    for (int i = 0; i < stage->n_outputs; i++)
        if (!check_shape(self, stage->output[i]->buffer, stage->loc))
            return false;
    return !stage->init || check_extents(self, stage->init);
}

/* ---- the points at which an expression is evaluated ---- */

typedef struct {
    const te_stage *stage;
    const ir_facts *f; /* with the axes, and the conditions around */
    base_vec var, min, extent;
    const ir_expr *where; /* the conditions around that do not depend on data; NULL: none */
    bool trusted;         /* a condition around depends on data */
} place;

static bool check_expr(deriver *self, const place *at, const ir_expr *expr);

/* The lists are copied, so that axes of a reduction are gone behind it. */
static place copy_place(const deriver *self, const place *at)
{
    place t = *at;

    t.var = t.min = t.extent = (base_vec){0};
    for (int i = 0; i < at->var.n; i++) {
        base_push(self->cx, &t.var, at->var.at[i]);
        base_push(self->cx, &t.min, at->min.at[i]);
        base_push(self->cx, &t.extent, at->extent.at[i]);
    }
    return t;
}

/* From here on the axis lies between min and min + extent. */
static void enter_axis(const deriver *self, place *at, const ir_expr *axis, const ir_expr *min,
                       const ir_expr *extent)
{
    ir_facts *f = ir_facts_new(self->cx, at->f);

    ir_facts_range(f, axis, min, extent);
    at->f = f;
    base_push(self->cx, &at->var, axis);
    base_push(self->cx, &at->min, min);
    base_push(self->cx, &at->extent, extent);
}

typedef struct {
    ir_walk walk;
    const deriver *x;
    const place *p;
} data_search;

/* Stops at whatever is no symbol, no axis and no arithmetic on them: a load, a call, a scalar, a variable of
 * a let. */
static bool find_data(ir_walk *walk, const ir_expr *expr)
{
    const data_search *s = (data_search *)walk;
    bool known = expr->op != IR_VAR || is_symbol(s->x, expr);

    for (int i = 0; i < s->p->var.n; i++)
        known = known || s->p->var.at[i] == expr;
    walk->stop = walk->stop || !known || expr->op == IR_LOAD || expr->op == IR_CALL || expr->op == IR_REDUCE;
    return !walk->stop;
}

/* Whether expr depends on more than symbols and axes. */
static bool is_data(const deriver *self, const place *at, const ir_expr *expr)
{
    data_search s = {.walk = {.cx = self->cx, .expr = find_data}, .x = self, .p = at};

    ir_walk_expr(&s.walk, expr);
    return s.walk.stop;
}

/* Where the condition holds. Of `a && b` each part narrows by itself: in select(i < n && B[i] > 0, A[i], 0)
 * the first half bounds i although the second depends on data. A part that does depend on data says nothing
 * here that could be used; then the access is trusted, since the author may have put its bound there:
 *
 *     select(i < n, A[i], 0)            proven with i < n
 *     select(B[i] > 0, A[i + 2], 0)     trusted
 */
static place enter_condition(const deriver *self, const place *at, const ir_expr *condition)
{
    place t = *at;

    if (condition->op == IR_AND) {
        t = enter_condition(self, at, condition->arg[0]);
        return enter_condition(self, &t, condition->arg[1]);
    }
    if (condition->dtype.lanes != 1 || is_data(self, at, condition)) {
        t.trusted = true;
        return t;
    }
    ir_facts *facts = ir_facts_new(self->cx, at->f);
    ir_facts_assume(facts, condition);
    t.f = facts;
    t.where = ir_all(self->cx, at->where, condition);
    return t;
}

/* ---- an access ---- */

typedef struct {
    const ir_buffer *buffer;
    int dim;
    const ir_expr *index, *extent;
    base_loc loc;
} access;

static const char *text_of(const deriver *self, const ir_expr *expr)
{
    return ir_expr_text(self->cx, expr);
}

static bool refuse(const deriver *self, const place *at, const access *read, const ir_expr *min,
                   const ir_expr *max)
{
    base_fail(self->cx, TEC_INVALID, read->loc,
              "'%s' reads outside of '%s': its axis %d has extent %s, the index %s runs from %s to %s",
              at->stage->name, read->buffer->name, read->dim, text_of(self, read->extent),
              text_of(self, read->index), text_of(self, min), text_of(self, max));
    return false;
}

/* The facts where the stage has points. Accesses count only where there are points, so all axes may be taken
 * as at least one long. */
static ir_facts *nonempty(const deriver *self, const place *at)
{
    ir_facts *f = ir_facts_new(self->cx, self->f);

    for (int i = 0; i < at->extent.n; i++)
        ir_facts_assume(f, ir_ge(self->cx, at->extent.at[i], ir_int(self->cx, 1)));
    return f;
}

/* `condition`, or an axis is empty; an axis whose emptiness implies the condition is left out. For
 *
 *     def f(n, m, A: f32[n]) { Q[i: m] = A[i + 2] ... }
 *
 * the condition is m + 1 < n and the axis is empty where m < 1, so a call must have m < 1 || m + 1 < n: with
 * m = 0 nothing is read, whatever n is. With A: f32[n + 2] and Q[i: n] nothing is left to ask. */
static const ir_expr *unless_empty(const deriver *self, const place *at, const ir_expr *condition)
{
    tec_context *cx = self->cx;
    const ir_expr *all = condition;

    for (int i = at->extent.n - 1; i >= 0; i--) {
        const ir_expr *empty = ir_simplify(self->f, ir_le(cx, at->extent.at[i], ir_int(cx, 0)));
        ir_facts *facts = ir_facts_new(cx, self->f);

        if (!empty)
            return NULL;
        ir_facts_assume(facts, empty);
        if (!ir_is_value(empty, 0) && !ir_prove(facts, all))
            all = ir_or(cx, empty, all);
    }
    return all;
}

/* What the ends of the index decide; facts: what is known where the stage has points. An index that is
 * outside wherever there are points is an error; where the symbols decide, a condition is left to the calls.
 * `exact` means that the index does reach its ends: then one end outside is enough. Otherwise only an index
 * that is outside as a whole is one, since the ends are bounds that may never be reached: i * i - i, whose
 * parts are bounded one by one, has the bound -3 below for i in 0..4 and is never less than 0. With
 * conditions around, nothing is refused: they may never hold. */
static bool check_ends(deriver *self, const place *at, const access *read, const ir_facts *facts,
                       const ir_reach *reach)
{
    tec_context *cx = self->cx;
    const ir_expr *zero = ir_int(cx, 0), *last = ir_sub(cx, read->extent, ir_int(cx, 1));
    const ir_expr *min = ir_simplify(facts, reach->min), *max = ir_simplify(facts, reach->max);
    bool below = ir_prove_lt(facts, min, zero), above = ir_prove_lt(facts, last, max);

    if (!at->where && ((reach->exact && (below || above)) || ir_prove_lt(facts, max, zero) ||
                       ir_prove_lt(facts, last, min)))
        return refuse(self, at, read, min, max);
    const ir_expr *inside = ir_and(cx, ir_le(cx, zero, min), ir_le(cx, max, last));
    inside = ir_simplify(facts, reach->empty ? ir_or(cx, reach->empty, inside) : inside);
    if (inside && ir_is_value(inside, 0) && reach->exact)
        return refuse(self, at, read, min, max);
    if (!inside || ir_is_value(inside, 1) || ir_is_value(inside, 0))
        return inside != NULL;
    inside = unless_empty(self, at, inside);
    if (inside && a_call_tells(self, inside) && !ir_prove(self->f, inside))
        add_condition(self, inside,
                      base_format(cx, "'%s' reads axis %d of '%s' at %s to %s, its extent is %s",
                                  at->stage->name, read->dim, read->buffer->name, text_of(self, min),
                                  text_of(self, max), text_of(self, read->extent)));
    return inside != NULL;
}

/* The conjuncts over nothing but axes that the index mentions: these can be tried with the index. NULL: there
 * are none. */
static const ir_expr *conjuncts_about(const deriver *self, const ir_expr *where, const ir_expr *index)
{
    if (where->op == IR_AND)
        return ir_all(self->cx, conjuncts_about(self, where->arg[0], index),
                      conjuncts_about(self, where->arg[1], index));
    base_vec vars = {0};
    ir_free_vars(self->cx, where, &vars);
    for (int i = 0; i < vars.n; i++)
        if (is_symbol(self, vars.at[i]) || !ir_uses_var(self->cx, index, vars.at[i]))
            return NULL;
    return where;
}

/* Where no axis has a point nothing is read. */
static bool has_no_points(const deriver *self, const place *at)
{
    for (int i = 0; i < at->extent.n; i++)
        if (ir_prove_le(self->f, at->extent.at[i], ir_int(self->cx, 0)))
            return true;
    return false;
}

/* One index of an access: proven, or tried point by point where there are few, or turned into conditions on
 * its ends. */
static bool check_index(deriver *self, const place *at, const access *read)
{
    ir_ranges inner = {(const ir_expr *const *)at->var.at, (const ir_expr *const *)at->min.at,
                       (const ir_expr *const *)at->extent.at, at->var.n};
    ir_reach reach;
    ir_tried tried;

    if (ir_prove_le(at->f, ir_int(self->cx, 0), read->index) && ir_prove_lt(at->f, read->index, read->extent))
        return true;
    if (at->trusted || is_data(self, at, read->index) || has_no_points(self, at))
        return true;
    const ir_facts *facts = nonempty(self, at);
    bool reaches = ir_reach_of(facts, read->index, &inner, at->where, &reach);
    const ir_expr *about = at->where ? conjuncts_about(self, at->where, read->index) : NULL;
    if (ir_try_points(self->f, read->index, &inner, about, &tried)) {
        if (!tried.any)
            return true;
        reach.exact = !at->where || ir_same(about, at->where);
        reach.understood = reaches = true;
        reach.min = ir_int(self->cx, tried.min);
        reach.max = ir_int(self->cx, tried.max);
    }
    return !reaches || !reach.understood || check_ends(self, at, read, facts, &reach);
}

/* A wrong number of indices is refused elsewhere. */
static bool check_load(deriver *self, const place *at, const ir_expr *expr)
{
    const ir_buffer *buffer = expr->load.buffer;

    for (int i = 0; i < buffer->n && buffer->n == expr->load.n; i++)
        if (!check_index(self, at,
                         &(access){.buffer = buffer,
                                   .dim = i,
                                   .index = expr->load.index[i],
                                   .extent = buffer->shape[i],
                                   .loc = expr->loc}))
            return false;
    return true;
}

/* ---- expressions ---- */

typedef struct {
    ir_walk walk;
    deriver *x;
    const place *p;
    bool good;
} visitor;

static bool check_under(deriver *self, const place *at, const ir_expr *condition, const ir_expr *expr)
{
    place t = condition ? enter_condition(self, at, condition) : *at;

    return check_expr(self, &t, expr);
}

/* The condition itself is evaluated at all points of the axes, its sources only where it holds. */
static bool check_reduce(deriver *self, const place *at, const ir_expr *expr)
{
    place t = copy_place(self, at);

    for (int i = 0; i < expr->reduce.n_axes; i++)
        enter_axis(self, &t, expr->reduce.axis[i], ir_int(self->cx, 0), expr->reduce.extent[i]);
    if (expr->reduce.condition && !check_expr(self, &t, expr->reduce.condition))
        return false;
    for (int i = 0; i < expr->reduce.combiner->n; i++)
        if (!check_under(self, &t, expr->reduce.condition, expr->reduce.source[i]))
            return false;
    return true;
}

/* A value that depends on data leaves its variable unknown. */
static bool check_let(deriver *self, const place *at, const ir_expr *expr)
{
    if (!check_expr(self, at, expr->let.value))
        return false;
    return check_expr(self, at,
                      is_data(self, at, expr->let.value)
                          ? expr->let.body
                          : ir_substitute(self->cx, expr->let.body, expr->let.var, expr->let.value));
}

/* Operations that evaluate only what they ask for, and those that bind variables; false: all operands are
 * visited at this place. */
static bool check_special(deriver *self, const place *at, const ir_expr *expr, bool *good)
{
    const ir_expr *const *arg = expr->arg;

    if (expr->op == IR_REDUCE)
        *good = check_reduce(self, at, expr);
    else if (expr->op == IR_LET)
        *good = check_let(self, at, expr);
    else if (expr->op == IR_SELECT)
        *good = check_expr(self, at, arg[0]) && check_under(self, at, arg[0], arg[1]) &&
                check_under(self, at, ir_not(self->cx, arg[0]), arg[2]);
    else if (expr->op == IR_AND || expr->op == IR_OR)
        *good = check_expr(self, at, arg[0]) &&
                check_under(self, at, expr->op == IR_AND ? arg[0] : ir_not(self->cx, arg[0]), arg[1]);
    else
        return false;
    return true;
}

static bool visit(ir_walk *walk, const ir_expr *expr)
{
    visitor *v = (visitor *)walk;

    if (check_special(v->x, v->p, expr, &v->good)) {
        walk->stop = !v->good;
        return false;
    }
    if (expr->op == IR_LOAD)
        v->good = check_load(v->x, v->p, expr);
    walk->stop = !v->good;
    return v->good;
}

static bool check_expr(deriver *self, const place *at, const ir_expr *expr)
{
    visitor v = {
        .walk = {.expr = visit, .kinds = IR_KIND_ACCESS, .cx = self->cx}, .x = self, .p = at, .good = true};

    if (ir_loads(self->cx, expr)) /* all else reads nothing */
        ir_walk_expr(&v.walk, expr);
    return v.good && !base_failed(self->cx);
}

/* ---- stages ---- */

/* A scan's own axes begin at its first computed step. */
static bool check_stage(deriver *self, const te_stage *stage)
{
    place p = {.stage = stage, .f = self->f};
    int64_t first = stage->kind == TE_SCAN ? stage->scan->first : 0;

    for (int i = 0; i < stage->n_axes; i++) {
        int64_t given = i == 0 ? first : 0;

        enter_axis(self, &p, stage->axis[i], ir_int(self->cx, given),
                   ir_sub(self->cx, stage->extent[i], ir_int(self->cx, given)));
    }
    for (int i = 0; i < stage->n_outputs && stage->body; i++)
        if (!check_expr(self, &p, stage->body[i]))
            return false;
    return !stage->init || check_stage(self, stage->init);
}

/* What the meaning of an extern stage asks of its own calls. The definition's own promises are proven
 * (te/extern.c). */
static void take_from_meaning(deriver *self, const te_stage *stage)
{
    const ir_program *m = stage->call->intrinsic ? stage->call->intrinsic->meaning : NULL;
    int first = stage->call->n_inputs + stage->call->n_outputs;
    ir_subst map = {0};

    for (int i = 0; m && i < stage->call->n_args; i++)
        base_map_put(self->cx, &map.vars, m->params[first + i].scalar, stage->call->arg[i]);
    for (int i = 0; m && m->reasons && i < m->n_facts; i++) {
        const ir_expr *condition =
            m->reasons[i] ? ir_simplify(self->f, ir_apply(self->cx, &map, m->facts[i])) : NULL;

        if (condition && !ir_prove(self->f, condition) && a_call_tells(self, condition))
            add_condition(
                self, condition,
                base_format(self->cx, "in the meaning of extern stage '%s': %s", stage->name, m->reasons[i]));
    }
}

/* Adds the conditions to `out` and as facts to `facts`, so that each is derived under those before it.
 * Extents of all stages come first: an index is looked at under "the stage has points", which means little
 * for an extent that may be negative. */
bool te_derive_conditions(tec_context *cx, const te_def *def, ir_facts *facts, te_conditions *out)
{
    deriver x = {.cx = cx, .def = def, .f = facts, .out = out};

    for (int i = 0; i < def->stages.n; i++)
        if (!check_extents(&x, def->stages.at[i]))
            return false;
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        if (stage->kind == TE_EXTERN)
            take_from_meaning(&x, stage);
        else if (!check_stage(&x, stage))
            return false;
    }
    return !base_failed(cx);
}
