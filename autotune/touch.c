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
static meaning *new_meaning(tune_scope *s, const ir_expr *var)
{
    meaning *m = base_new(s->cx, meaning);

    m->loop = -1;
    m->entered = -1;
    base_map_put(s->cx, &s->meaning, var, m);
    return m;
}

/* The middle of the range of a symbol: the geometric mean; of one without end, not far above its start. */
static double usual_size(const ir_facts *f, const ir_expr *symbol)
{
    enum { USUAL = 256 };
    ir_interval range = ir_bounds(f, symbol);
    double least = range.min > 1 ? (double)range.min : 1;

    return range.max == INT64_MAX ? fmax(least, USUAL) : sqrt(least * fmax(1, (double)range.max));
}

/* Without dims a symbol has a usual size: the features of a schedule for all sizes are those of one size. */
void tune_open_scope(tec_context *cx, const ir_program *p, const int64_t *dims, tune_scope *out)
{
    const ir_facts *f = dims || !p->n_symbols ? NULL : ir_facts_of_program(cx, p);

    *out = (tune_scope){.cx = cx};
    for (int i = 0; i < p->n_symbols; i++)
        new_meaning(out, p->symbols[i])->number = dims ? (double)dims[i] : rint(usual_size(f, p->symbols[i]));
}

/* Loops of one iteration are left out: they touch nothing new. */
void tune_enter_loop(tune_scope *s, const ir_stmt *loop)
{
    double extent = tune_value(s, loop->loop.extent);
    meaning *m = new_meaning(s, loop->loop.var);

    s->entered++;
    if (extent <= 1)
        return;
    if (s->n == s->cap) {
        tune_loop *more = base_array(s->cx, tune_loop, s->cap = 2 * s->cap + 16);

        for (int i = 0; i < s->n; i++)
            more[i] = s->loop[i];
        s->loop = more;
    }
    m->loop = s->n;
    s->loop[s->n++] = (tune_loop){.var = loop->loop.var, .extent = extent, .how = loop->loop.how};
}

void tune_mean(tune_scope *s, const ir_expr *var, const ir_expr *value)
{
    new_meaning(s, var)->value = value;
}

/* ---- spans ---- */

/* A value that no loop moves. */
static tune_span number(tune_scope *s, double value)
{
    return (tune_span){.width = base_array(s->cx, double, s->n + 1),
                       .step = base_array(s->cx, double, s->n + 1),
                       .at = value};
}

/* A value that no loop explains: data decide. */
static tune_span unknown(tune_scope *s)
{
    tune_span out = number(s, 0);

    out.odd = true;
    return out;
}

/* width[p] is how far the value moves while the loops p, p + 1, ... run: the loop's own extent less 1 for all
 * p up to its own number, 0 behind it. */
static tune_span of_loop(tune_scope *s, int loop)
{
    tune_span out = number(s, 0);

    for (int p = 0; p <= loop; p++)
        out.width[p] = s->loop[loop].extent - 1;
    out.step[loop] = 1;
    return out;
}

/* The span of a let or a binding is computed once per set of loops and remembered. */
static tune_span of_variable(tune_scope *s, const ir_expr *var)
{
    meaning *m = base_map_get(&s->meaning, var);

    if (!m)
        return number(s, 0);
    if (m->loop >= 0)
        return of_loop(s, m->loop);
    if (!m->value)
        return number(s, m->number);
    if (m->entered != s->entered || m->n != s->n) {
        m->span = tune_span_of(s, m->value);
        m->entered = s->entered;
        m->n = s->n;
    }
    return m->span;
}

/* The value of an operation at a point. */
static double apply(ir_op op, double a, double b)
{
    switch (op) {
    case IR_ADD: return a + b;
    case IR_SUB: return a - b;
    case IR_MUL: return a * b;
    case IR_MIN: return fmin(a, b);
    case IR_MAX: return fmax(a, b);
    case IR_FLOORDIV: return b == 0 ? 0 : floor(a / b);
    case IR_DIV: return b == 0 ? 0 : trunc(a / b);
    case IR_FLOORMOD: return b == 0 ? 0 : a - b * floor(a / b);
    case IR_MOD: return b == 0 ? 0 : fmod(a, b);
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

/* How far the value of an operation moves while loops inside `p` run, from the widths of its operands. An
 * upper bound. */
static double apply_width(ir_op op, const tune_span *a, const tune_span *b, int p)
{
    double x = a->width[p], y = b->width[p];

    switch (op) {
    case IR_ADD:
    case IR_SUB: return x + y;
    case IR_MUL: return fabs(a->at) * y + fabs(b->at) * x + x * y;
    case IR_FLOORDIV:
    case IR_DIV: return width_of_quotient(a->at, x, b->at);
    case IR_FLOORMOD:
    case IR_MOD: return fmin(x, fmax(0, fabs(b->at) + y - 1));
    default: return fmax(x, y);
    }
}

/* Steps are differences at the start: of i % 4 with i from 0 the step is 1, although every fourth one goes
 * back. */
static tune_span of_operation(tune_scope *s, const ir_expr *e)
{
    tune_span a = tune_span_of(s, e->arg[0]), b = tune_span_of(s, e->arg[1]),
              out = number(s, apply(e->op, a.at, b.at));

    out.odd = a.odd || b.odd;
    for (int p = 0; p <= s->n; p++)
        out.width[p] = apply_width(e->op, &a, &b, p);
    for (int l = 0; l < s->n; l++)
        out.step[l] = apply(e->op, a.at + a.step[l], b.at + b.step[l]) - out.at;
    return out;
}

/* Either value; the first one's steps. */
static tune_span of_choice(tune_scope *s, const ir_expr *e)
{
    tune_span a = tune_span_of(s, e->arg[1]), b = tune_span_of(s, e->arg[2]), out = number(s, a.at);

    out.odd = a.odd || b.odd;
    for (int p = 0; p <= s->n; p++)
        out.width[p] = fmax(a.width[p], b.width[p]);
    for (int l = 0; l < s->n; l++)
        out.step[l] = a.step[l];
    return out;
}

/* The value of an index where all loops start, and how it moves with each of them. Comparisons and loads have
 * no span. */
tune_span tune_span_of(tune_scope *s, const ir_expr *e)
{
    switch (e->op) {
    case IR_INT: return number(s, (double)e->i);
    case IR_VAR: return of_variable(s, e);
    case IR_CAST:
    case IR_LIKELY: return tune_span_of(s, e->arg[0]);
    case IR_LET: tune_mean(s, e->let.var, e->let.value); return tune_span_of(s, e->let.body);
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD:
    case IR_MIN:
    case IR_MAX: return of_operation(s, e);
    case IR_SELECT: return of_choice(s, e);
    default: return unknown(s);
    }
}

/* Of an extent: at least 0, and where loops move it the value at their start. */
double tune_value(tune_scope *s, const ir_expr *e)
{
    return fmax(0, e->op == IR_INT ? (double)e->i : tune_span_of(s, e).at);
}

/* ---- dependence ---- */

typedef struct {
    ir_walk walk;
    tune_scope *scope;
    bool *loop;
} finder;

/* A let or a binding depends on whatever its value depends on. */
static bool find(ir_walk *walk, const ir_expr *e)
{
    finder *f = (finder *)walk;
    const meaning *m = e->op == IR_VAR ? base_map_get(&f->scope->meaning, e) : NULL;

    if (m && m->loop >= 0 && m->loop < f->scope->n)
        f->loop[m->loop] = true;
    else if (m && m->value)
        ir_walk_expr(walk, m->value);
    return true;
}

/* Sets loop[i] for each open loop that moves e; others stay as they are, so that several expressions add
 * up. */
void tune_depends(tune_scope *s, const ir_expr *e, bool *loop)
{
    finder f = {.walk = {.cx = s->cx, .expr = find}, .scope = s, .loop = loop};

    ir_walk_expr(&f.walk, e);
}
