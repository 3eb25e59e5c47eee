/* autotune/touch.c -- the values of an index while loops run: spans. See touch.h. */
#include <math.h>

#include "autotune/touch.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"

/* What a variable stands for: an open loop, an expression, or a number. */
typedef struct {
    int loop;             /* -1: none */
    const ir_expr *value; /* NULL: the number */
    double number;
    tune_span span; /* of the expression, as of `entered` with n open loops */
    int entered, n;
} meaning;

/* ---- variables ---- */

/* A variable that is bound again gets a new meaning: blocks in turn may bind one variable to other values. */
static meaning *new_meaning(tune_scope *scope, const ir_expr *var)
{
    meaning *m = base_new(scope->cx, meaning);

    m->loop = -1;
    m->entered = -1;
    base_map_put(scope->cx, &scope->meaning, var, m);
    return m;
}

/* The middle of the range of a symbol: the geometric mean; of one without end, not far above its start. */
static double usual_size(const ir_facts *facts, const ir_expr *symbol)
{
    enum { USUAL = 256 };
    ir_interval range = ir_bounds(facts, symbol);
    double least = range.min > 1 ? (double)range.min : 1;

    return range.max == INT64_MAX ? fmax(least, USUAL) : sqrt(least * fmax(1, (double)range.max));
}

/* Without dims a symbol has a usual size: the features of a schedule for all sizes are those of one size. */
void tune_open_scope(tec_context *cx, const ir_program *program, const int64_t *dims, tune_scope *out)
{
    const ir_facts *f = dims || !program->n_symbols ? NULL : ir_facts_of_program(cx, program);

    *out = (tune_scope){.cx = cx};
    for (int i = 0; i < program->n_symbols; i++)
        new_meaning(out, program->symbols[i])->number =
            dims ? (double)dims[i] : rint(usual_size(f, program->symbols[i]));
}

/* Loops of one iteration are left out: they touch nothing new. */
void tune_enter_loop(tune_scope *scope, const ir_stmt *loop)
{
    double extent = tune_value(scope, loop->loop.extent);
    meaning *m = new_meaning(scope, loop->loop.var);

    scope->entered++;
    if (extent <= 1)
        return;
    if (scope->n == scope->cap) {
        tune_loop *more = base_array(scope->cx, tune_loop, scope->cap = 2 * scope->cap + 16);

        for (int i = 0; i < scope->n; i++)
            more[i] = scope->loop[i];
        scope->loop = more;
    }
    m->loop = scope->n;
    scope->loop[scope->n++] = (tune_loop){.var = loop->loop.var, .extent = extent, .how = loop->loop.how};
}

void tune_mean(tune_scope *scope, const ir_expr *var, const ir_expr *value)
{
    new_meaning(scope, var)->value = value;
}

/* ---- spans ---- */

/* A value that no loop moves. */
static tune_span number(tune_scope *scope, double value)
{
    return (tune_span){.width = base_array(scope->cx, double, scope->n + 1),
                       .step = base_array(scope->cx, double, scope->n + 1),
                       .at = value};
}

/* A value that no loop explains: data decide. */
static tune_span unknown(tune_scope *scope)
{
    tune_span out = number(scope, 0);

    out.odd = true;
    return out;
}

/* width[p] is how far the value moves while the loops p, p + 1, ... run: the loop's own extent less 1 for all
 * p up to its own number, 0 behind it. */
static tune_span of_loop(tune_scope *scope, int loop)
{
    tune_span out = number(scope, 0);

    for (int p = 0; p <= loop; p++)
        out.width[p] = scope->loop[loop].extent - 1;
    out.step[loop] = 1;
    return out;
}

/* The span of a let or a binding is computed once per set of loops and remembered. */
static tune_span of_variable(tune_scope *scope, const ir_expr *var)
{
    meaning *m = base_map_get(&scope->meaning, var);

    if (!m)
        return number(scope, 0);
    if (m->loop >= 0)
        return of_loop(scope, m->loop);
    if (!m->value)
        return number(scope, m->number);
    if (m->entered != scope->entered || m->n != scope->n) {
        m->span = tune_span_of(scope, m->value);
        m->entered = scope->entered;
        m->n = scope->n;
    }
    return m->span;
}

/* The value of an operation at a point. */
static double apply(ir_op op, double left, double right)
{
    switch (op) {
    case IR_ADD: return left + right;
    case IR_SUB: return left - right;
    case IR_MUL: return left * right;
    case IR_MIN: return fmin(left, right);
    case IR_MAX: return fmax(left, right);
    case IR_FLOORDIV: return right == 0 ? 0 : floor(left / right);
    case IR_DIV: return right == 0 ? 0 : trunc(left / right);
    case IR_FLOORMOD: return right == 0 ? 0 : left - right * floor(left / right);
    case IR_MOD: return right == 0 ? 0 : fmod(left, right);
    default: return 0;
    }
}

/* A quotient of w + 1 neighbours, the first of which has this remainder. 6, 7, 8, 9 divided by 4: the first
 * has remainder 2, the last is 3 on, so the quotient moves by (2 + 3) / 4 = 1. */
static double width_of_quotient(double at, double w, double by)
{
    by = fabs(by);
    return by >= 1 ? floor((at - by * floor(at / by) + w) / by) : w;
}

/* How far the value of an operation moves while loops inside `parameter` run, from the widths of its
 * operands. An upper bound. */
static double apply_width(ir_op op, const tune_span *left, const tune_span *right, int parameter)
{
    double x = left->width[parameter], y = right->width[parameter];

    switch (op) {
    case IR_ADD:
    case IR_SUB: return x + y;
    case IR_MUL: return fabs(left->at) * y + fabs(right->at) * x + x * y;
    case IR_FLOORDIV:
    case IR_DIV: return width_of_quotient(left->at, x, right->at);
    case IR_FLOORMOD:
    case IR_MOD: return fmin(x, fmax(0, fabs(right->at) + y - 1));
    default: return fmax(x, y);
    }
}

/* Steps are differences at the start: of i % 4 with i from 0 the step is 1, although every fourth one goes
 * back. */
static tune_span of_operation(tune_scope *scope, const ir_expr *expr)
{
    tune_span a = tune_span_of(scope, expr->arg[0]), b = tune_span_of(scope, expr->arg[1]),
              out = number(scope, apply(expr->op, a.at, b.at));

    out.odd = a.odd || b.odd;
    for (int p = 0; p <= scope->n; p++)
        out.width[p] = apply_width(expr->op, &a, &b, p);
    for (int l = 0; l < scope->n; l++)
        out.step[l] = apply(expr->op, a.at + a.step[l], b.at + b.step[l]) - out.at;
    return out;
}

/* Either value; the first one's steps. */
static tune_span of_choice(tune_scope *scope, const ir_expr *expr)
{
    tune_span a = tune_span_of(scope, expr->arg[1]), b = tune_span_of(scope, expr->arg[2]),
              out = number(scope, a.at);

    out.odd = a.odd || b.odd;
    for (int p = 0; p <= scope->n; p++)
        out.width[p] = fmax(a.width[p], b.width[p]);
    for (int l = 0; l < scope->n; l++)
        out.step[l] = a.step[l];
    return out;
}

/* The value of an index where all loops start, and how it moves with each of them. Comparisons and loads have
 * no span. */
tune_span tune_span_of(tune_scope *scope, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_INT: return number(scope, (double)expr->i);
    case IR_VAR: return of_variable(scope, expr);
    case IR_CAST:
    case IR_LIKELY: return tune_span_of(scope, expr->arg[0]);
    case IR_LET: tune_mean(scope, expr->let.var, expr->let.value); return tune_span_of(scope, expr->let.body);
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD:
    case IR_MIN:
    case IR_MAX: return of_operation(scope, expr);
    case IR_SELECT: return of_choice(scope, expr);
    default: return unknown(scope);
    }
}

/* Of an extent: at least 0, and where loops move it the value at their start. */
double tune_value(tune_scope *scope, const ir_expr *expr)
{
    return fmax(0, expr->op == IR_INT ? (double)expr->i : tune_span_of(scope, expr).at);
}

/* ---- dependence ---- */

typedef struct {
    ir_walk walk;
    tune_scope *scope;
    bool *loop;
} finder;

/* A let or a binding depends on whatever its value depends on. */
static bool find(ir_walk *walk, const ir_expr *expr)
{
    finder *f = (finder *)walk;
    const meaning *m = expr->op == IR_VAR ? base_map_get(&f->scope->meaning, expr) : NULL;

    if (m && m->loop >= 0 && m->loop < f->scope->n)
        f->loop[m->loop] = true;
    else if (m && m->value)
        ir_walk_expr(walk, m->value);
    return true;
}

/* Sets loop[i] for each open loop that moves expr; others stay as they are, so that several expressions add
 * up. */
void tune_depends(tune_scope *scope, const ir_expr *expr, bool *loop)
{
    finder f = {.walk = {.cx = scope->cx, .expr = find}, .scope = scope, .loop = loop};

    ir_walk_expr(&f.walk, expr);
}
