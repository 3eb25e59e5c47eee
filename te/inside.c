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
 * comparisons that are not of sums, the access is the author's affair.
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
static void add_condition(deriver *x, const ir_expr *condition, const char *reason)
{
    base_push(x->cx, &x->out->conditions, condition);
    base_push(x->cx, &x->out->reasons, reason);
    ir_facts_assume(x->f, condition);
}

/* Whether a call can work it out from its symbols (compiler/dim.c). */
static bool check_operation(ir_walk *w, const ir_expr *e)
{
    switch (e->op) {
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
    default: w->stop = true; return false;
    }
}

/* Axes are variables too, but not of the caller. */
static bool is_symbol(const deriver *x, const ir_expr *v)
{
    for (int i = 0; i < x->def->symbols.n; i++)
        if (x->def->symbols.at[i] == v)
            return true;
    return false;
}

/* Whether a caller can test the condition before the call, by its symbols alone. */
static bool a_call_tells(const deriver *x, const ir_expr *e)
{
    ir_walk w = {.cx = x->cx, .expr = check_operation};
    base_vec vars = {0};

    ir_walk_expr(&w, e);
    ir_free_vars(x->cx, e, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!is_symbol(x, vars.at[i]))
            return false;
    return !w.stop;
}

/* ---- extents ---- */

/* An extent that is negative for all sizes is an error; one that may be negative for some becomes a condition
 * of the definition, with its reason in words. */
static bool check_extent(deriver *x, const ir_expr *extent, const char *what, base_loc loc)
{
    tec_context *cx = x->cx;
    const ir_expr *zero = ir_int(cx, 0);

    if (ir_prove_le(x->f, zero, extent))
        return true;
    if (ir_prove_lt(x->f, extent, zero)) {
        base_fail(cx, TEC_INVALID, loc, "%s is negative: %s", what,
                  ir_expr_text(cx, ir_simplify(x->f, extent)));
        return false;
    }
    const ir_expr *condition = ir_simplify(x->f, ir_le(cx, zero, extent));
    if (condition && a_call_tells(x, condition))
        add_condition(x, condition,
                      base_format(cx, "%s, %s, must not be negative", what, ir_expr_text(cx, extent)));
    return condition != NULL;
}

static bool check_shape(deriver *x, const ir_buffer *b, base_loc loc)
{
    for (int i = 0; i < b->n; i++)
        if (!check_extent(x, b->shape[i],
                          base_format(x->cx, "the extent of dimension %d of '%s'", i, b->name), loc))
            return false;
    return true;
}

static bool check_axes(deriver *x, const te_stage *s, const ir_expr *const *axis,
                       const ir_expr *const *extent, int n)
{
    for (int i = 0; i < n; i++)
        if (!check_extent(x, extent[i],
                          base_format(x->cx, "the extent of axis '%s' of '%s'", axis[i]->var.name, s->name),
                          s->loc))
            return false;
    return true;
}

/* Also of the first steps of a state, which are a stage of their own without a place in the list. */
static bool check_extents(deriver *x, const te_stage *s)
{
    if (!check_axes(x, s, s->axis, s->extent, s->n_axes) ||
        !check_axes(x, s, s->reduce_axis, s->reduce_extent, s->n_reduce))
        return false;
    for (int i = 0; i < s->n_outputs; i++)
        if (!check_shape(x, s->output[i]->buffer, s->loc))
            return false;
    return !s->init || check_extents(x, s->init);
}

/* ---- the points at which an expression is evaluated ---- */

typedef struct {
    const te_stage *stage;
    const ir_facts *f; /* with the axes, and the conditions around */
    base_vec var, min, extent;
    const ir_expr *where; /* the conditions around that do not depend on data; NULL: none */
    bool trusted;         /* a condition around depends on data */
} place;

static bool check_expr(deriver *x, const place *p, const ir_expr *e);

/* The lists are copied, so that axes of a reduction are gone behind it. */
static place copy_place(const deriver *x, const place *p)
{
    place t = *p;

    t.var = t.min = t.extent = (base_vec){0};
    for (int i = 0; i < p->var.n; i++) {
        base_push(x->cx, &t.var, p->var.at[i]);
        base_push(x->cx, &t.min, p->min.at[i]);
        base_push(x->cx, &t.extent, p->extent.at[i]);
    }
    return t;
}

/* From here on the axis lies between min and min + extent. */
static void enter_axis(const deriver *x, place *p, const ir_expr *axis, const ir_expr *min,
                       const ir_expr *extent)
{
    ir_facts *f = ir_facts_new(x->cx, p->f);

    ir_facts_range(f, axis, min, extent);
    p->f = f;
    base_push(x->cx, &p->var, axis);
    base_push(x->cx, &p->min, min);
    base_push(x->cx, &p->extent, extent);
}

typedef struct {
    ir_walk walk;
    const deriver *x;
    const place *p;
} data_search;

/* Stops at whatever is no symbol, no axis and no arithmetic on them: a load, a call, a scalar, a variable of
 * a let. */
static bool find_data(ir_walk *w, const ir_expr *e)
{
    const data_search *s = (data_search *)w;
    bool known = e->op != IR_VAR || is_symbol(s->x, e);

    for (int i = 0; i < s->p->var.n; i++)
        known = known || s->p->var.at[i] == e;
    w->stop = w->stop || !known || e->op == IR_LOAD || e->op == IR_CALL || e->op == IR_REDUCE;
    return !w->stop;
}

/* Whether e depends on more than symbols and axes. */
static bool is_data(const deriver *x, const place *p, const ir_expr *e)
{
    data_search s = {.walk = {.cx = x->cx, .expr = find_data}, .x = x, .p = p};

    ir_walk_expr(&s.walk, e);
    return s.walk.stop;
}

/* Where the condition holds. Of `a && b` each part narrows by itself: in select(i < n && B[i] > 0, A[i], 0)
 * the first half bounds i although the second depends on data. A part that does depend on data says nothing
 * here that could be used; then the access is trusted, since the author may have put its bound there:
 *
 *     select(i < n, A[i], 0)            proven with i < n
 *     select(B[i] > 0, A[i + 2], 0)     trusted
 */
static place enter_condition(const deriver *x, const place *p, const ir_expr *condition)
{
    place t = *p;

    if (condition->op == IR_AND) {
        t = enter_condition(x, p, condition->arg[0]);
        return enter_condition(x, &t, condition->arg[1]);
    }
    if (condition->dtype.lanes != 1 || is_data(x, p, condition)) {
        t.trusted = true;
        return t;
    }
    ir_facts *f = ir_facts_new(x->cx, p->f);
    ir_facts_assume(f, condition);
    t.f = f;
    t.where = ir_all(x->cx, p->where, condition);
    return t;
}

/* ---- an access ---- */

typedef struct {
    const ir_buffer *buffer;
    int dim;
    const ir_expr *index, *extent;
    base_loc loc;
} access;

static const char *text_of(const deriver *x, const ir_expr *e)
{
    return ir_expr_text(x->cx, e);
}

static bool refuse(const deriver *x, const place *p, const access *a, const ir_expr *min, const ir_expr *max)
{
    base_fail(x->cx, TEC_INVALID, a->loc,
              "'%s' reads outside of '%s': its axis %d has extent %s, the index %s runs from %s to %s",
              p->stage->name, a->buffer->name, a->dim, text_of(x, a->extent), text_of(x, a->index),
              text_of(x, min), text_of(x, max));
    return false;
}

/* The facts where the stage has points. Accesses count only where there are points, so all axes may be taken
 * as at least one long. */
static ir_facts *nonempty(const deriver *x, const place *p)
{
    ir_facts *f = ir_facts_new(x->cx, x->f);

    for (int i = 0; i < p->extent.n; i++)
        ir_facts_assume(f, ir_ge(x->cx, p->extent.at[i], ir_int(x->cx, 1)));
    return f;
}

/* `condition`, or an axis is empty; an axis whose emptiness implies the condition is left out. For
 *
 *     def f(n, m, A: f32[n]) { Q[i: m] = A[i + 2] ... }
 *
 * the condition is m + 1 < n and the axis is empty where m < 1, so a call must have m < 1 || m + 1 < n: with
 * m = 0 nothing is read, whatever n is. With A: f32[n + 2] and Q[i: n] nothing is left to ask. */
static const ir_expr *unless_empty(const deriver *x, const place *p, const ir_expr *condition)
{
    tec_context *cx = x->cx;
    const ir_expr *all = condition;

    for (int i = p->extent.n - 1; i >= 0; i--) {
        const ir_expr *empty = ir_simplify(x->f, ir_le(cx, p->extent.at[i], ir_int(cx, 0)));
        ir_facts *f = ir_facts_new(cx, x->f);

        if (!empty)
            return NULL;
        ir_facts_assume(f, empty);
        if (!ir_is_value(empty, 0) && !ir_prove(f, all))
            all = ir_or(cx, empty, all);
    }
    return all;
}

/* What the ends of the index decide; f: what is known where the stage has points. An index that is outside
 * wherever there are points is an error; where the symbols decide, a condition is left to the calls. `exact`
 * means that the index does reach its ends: then one end outside is enough. Otherwise only an index that is
 * outside as a whole is one, since the ends are bounds that may never be reached: i * i - i, whose parts are
 * bounded one by one, has the bound -3 below for i in 0..4 and is never less than 0. With conditions around,
 * nothing is refused: they may never hold. */
static bool check_ends(deriver *x, const place *p, const access *a, const ir_facts *f, const ir_reach *r)
{
    tec_context *cx = x->cx;
    const ir_expr *zero = ir_int(cx, 0), *last = ir_sub(cx, a->extent, ir_int(cx, 1));
    const ir_expr *min = ir_simplify(f, r->min), *max = ir_simplify(f, r->max);
    bool below = ir_prove_lt(f, min, zero), above = ir_prove_lt(f, last, max);

    if (!p->where &&
        ((r->exact && (below || above)) || ir_prove_lt(f, max, zero) || ir_prove_lt(f, last, min)))
        return refuse(x, p, a, min, max);
    const ir_expr *inside = ir_and(cx, ir_le(cx, zero, min), ir_le(cx, max, last));
    inside = ir_simplify(f, r->empty ? ir_or(cx, r->empty, inside) : inside);
    if (inside && ir_is_value(inside, 0) && r->exact)
        return refuse(x, p, a, min, max);
    if (!inside || ir_is_value(inside, 1) || ir_is_value(inside, 0))
        return inside != NULL;
    inside = unless_empty(x, p, inside);
    if (inside && a_call_tells(x, inside) && !ir_prove(x->f, inside))
        add_condition(x, inside,
                      base_format(cx, "'%s' reads axis %d of '%s' at %s to %s, its extent is %s",
                                  p->stage->name, a->dim, a->buffer->name, text_of(x, min), text_of(x, max),
                                  text_of(x, a->extent)));
    return inside != NULL;
}

/* The conjuncts over nothing but axes that the index mentions: these can be tried with the index. NULL: there
 * are none. */
static const ir_expr *conjuncts_about(const deriver *x, const ir_expr *where, const ir_expr *index)
{
    if (where->op == IR_AND)
        return ir_all(x->cx, conjuncts_about(x, where->arg[0], index),
                      conjuncts_about(x, where->arg[1], index));
    base_vec vars = {0};
    ir_free_vars(x->cx, where, &vars);
    for (int i = 0; i < vars.n; i++)
        if (is_symbol(x, vars.at[i]) || !ir_uses_var(x->cx, index, vars.at[i]))
            return NULL;
    return where;
}

/* Where no axis has a point nothing is read. */
static bool has_no_points(const deriver *x, const place *p)
{
    for (int i = 0; i < p->extent.n; i++)
        if (ir_prove_le(x->f, p->extent.at[i], ir_int(x->cx, 0)))
            return true;
    return false;
}

/* One index of an access: proven, or tried point by point where there are few, or turned into conditions on
 * its ends. */
static bool check_index(deriver *x, const place *p, const access *a)
{
    ir_ranges inner = {(const ir_expr *const *)p->var.at, (const ir_expr *const *)p->min.at,
                       (const ir_expr *const *)p->extent.at, p->var.n};
    ir_reach reach;
    ir_tried tried;

    if (ir_prove_le(p->f, ir_int(x->cx, 0), a->index) && ir_prove_lt(p->f, a->index, a->extent))
        return true;
    if (p->trusted || is_data(x, p, a->index) || has_no_points(x, p))
        return true;
    const ir_facts *f = nonempty(x, p);
    bool reaches = ir_reach_of(f, a->index, &inner, p->where, &reach);
    const ir_expr *about = p->where ? conjuncts_about(x, p->where, a->index) : NULL;
    if (ir_try_points(x->f, a->index, &inner, about, &tried)) {
        if (!tried.any)
            return true;
        reach.exact = !p->where || ir_same(about, p->where);
        reach.understood = reaches = true;
        reach.min = ir_int(x->cx, tried.min);
        reach.max = ir_int(x->cx, tried.max);
    }
    return !reaches || !reach.understood || check_ends(x, p, a, f, &reach);
}

/* A wrong number of indices is refused elsewhere. */
static bool check_load(deriver *x, const place *p, const ir_expr *e)
{
    const ir_buffer *b = e->load.buffer;

    for (int i = 0; i < b->n && b->n == e->load.n; i++)
        if (!check_index(
                x, p,
                &(access){
                    .buffer = b, .dim = i, .index = e->load.index[i], .extent = b->shape[i], .loc = e->loc}))
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

static bool check_under(deriver *x, const place *p, const ir_expr *condition, const ir_expr *e)
{
    place t = condition ? enter_condition(x, p, condition) : *p;

    return check_expr(x, &t, e);
}

/* The condition itself is evaluated at all points of the axes, its sources only where it holds. */
static bool check_reduce(deriver *x, const place *p, const ir_expr *e)
{
    place t = copy_place(x, p);

    for (int i = 0; i < e->reduce.n_axes; i++)
        enter_axis(x, &t, e->reduce.axis[i], ir_int(x->cx, 0), e->reduce.extent[i]);
    if (e->reduce.condition && !check_expr(x, &t, e->reduce.condition))
        return false;
    for (int i = 0; i < e->reduce.combiner->n; i++)
        if (!check_under(x, &t, e->reduce.condition, e->reduce.source[i]))
            return false;
    return true;
}

/* A value that depends on data leaves its variable unknown. */
static bool check_let(deriver *x, const place *p, const ir_expr *e)
{
    if (!check_expr(x, p, e->let.value))
        return false;
    return check_expr(x, p,
                      is_data(x, p, e->let.value)
                          ? e->let.body
                          : ir_substitute(x->cx, e->let.body, e->let.var, e->let.value));
}

/* Operations that evaluate only what they ask for, and those that bind variables; false: all operands are
 * visited at this place. */
static bool check_special(deriver *x, const place *p, const ir_expr *e, bool *good)
{
    const ir_expr *const *arg = e->arg;

    if (e->op == IR_REDUCE)
        *good = check_reduce(x, p, e);
    else if (e->op == IR_LET)
        *good = check_let(x, p, e);
    else if (e->op == IR_SELECT)
        *good = check_expr(x, p, arg[0]) && check_under(x, p, arg[0], arg[1]) &&
                check_under(x, p, ir_not(x->cx, arg[0]), arg[2]);
    else if (e->op == IR_AND || e->op == IR_OR)
        *good = check_expr(x, p, arg[0]) &&
                check_under(x, p, e->op == IR_AND ? arg[0] : ir_not(x->cx, arg[0]), arg[1]);
    else
        return false;
    return true;
}

static bool visit(ir_walk *w, const ir_expr *e)
{
    visitor *v = (visitor *)w;

    if (check_special(v->x, v->p, e, &v->good)) {
        w->stop = !v->good;
        return false;
    }
    if (e->op == IR_LOAD)
        v->good = check_load(v->x, v->p, e);
    w->stop = !v->good;
    return v->good;
}

static bool check_expr(deriver *x, const place *p, const ir_expr *e)
{
    visitor v = {.walk = {.expr = visit, .kinds = IR_KIND_ACCESS, .cx = x->cx}, .x = x, .p = p, .good = true};

    if (ir_loads(x->cx, e)) /* all else reads nothing */
        ir_walk_expr(&v.walk, e);
    return v.good && !base_failed(x->cx);
}

/* ---- stages ---- */

/* A scan's own axes begin at its first computed step. */
static bool check_stage(deriver *x, const te_stage *s)
{
    place p = {.stage = s, .f = x->f};
    int64_t first = s->kind == TE_SCAN ? s->scan->first : 0;

    for (int i = 0; i < s->n_axes; i++) {
        int64_t given = i == 0 ? first : 0;

        enter_axis(x, &p, s->axis[i], ir_int(x->cx, given),
                   ir_sub(x->cx, s->extent[i], ir_int(x->cx, given)));
    }
    for (int i = 0; i < s->n_outputs && s->body; i++)
        if (!check_expr(x, &p, s->body[i]))
            return false;
    return !s->init || check_stage(x, s->init);
}

/* What the meaning of an extern stage asks of its own calls. The definition's own promises are proven
 * (te/extern.c). */
static void take_from_meaning(deriver *x, const te_stage *s)
{
    const ir_program *m = s->call->intrinsic ? s->call->intrinsic->meaning : NULL;
    int first = s->call->n_inputs + s->call->n_outputs;
    ir_subst map = {0};

    for (int i = 0; m && i < s->call->n_args; i++)
        base_map_put(x->cx, &map.vars, m->params[first + i].scalar, s->call->arg[i]);
    for (int i = 0; m && m->reasons && i < m->n_facts; i++) {
        const ir_expr *condition =
            m->reasons[i] ? ir_simplify(x->f, ir_apply(x->cx, &map, m->facts[i])) : NULL;

        if (condition && !ir_prove(x->f, condition) && a_call_tells(x, condition))
            add_condition(
                x, condition,
                base_format(x->cx, "in the meaning of extern stage '%s': %s", s->name, m->reasons[i]));
    }
}

/* Adds the conditions to `out` and as facts to `f`, so that each is derived under those before it. Extents of
 * all stages come first: an index is looked at under "the stage has points", which means little for an extent
 * that may be negative. */
bool te_derive_conditions(tec_context *cx, const te_def *d, ir_facts *f, te_conditions *out)
{
    deriver x = {.cx = cx, .def = d, .f = f, .out = out};

    for (int i = 0; i < d->stages.n; i++)
        if (!check_extents(&x, d->stages.at[i]))
            return false;
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        if (s->kind == TE_EXTERN)
            take_from_meaning(&x, s);
        else if (!check_stage(&x, s))
            return false;
    }
    return !base_failed(cx);
}
