/* targets/source/narrow.c -- which kernels compute their indices in 32 bits.
 *
 *     for b in 0..64 blockIdx.x { for t in 0..256 threadIdx.x { B[b * 256 + t] = A[b * 256 + t] } }
 *
 * The greatest index is 63 * 256 + 255. All of `b`, `t`, `b * 256` and the sum are proven to lie between
 * -2^31 and 2^31 - 1, so they may be computed in `int`: GPUs have no registers and no multipliers of 64 bits.
 * Numbers that are data are left alone.
 *
 * With a symbol n in place of 64 nothing bounds the sum. The same proof holds for n < 2^23 though, so the
 * launch becomes two, one of which runs:
 *
 *     if n < 8388608 { attribute launch(0) { attribute narrow(1) { for b in 0..n ... } } }
 *     else { attribute launch(1) { for b in 0..n ... } }
 *
 * The bounds are found in two steps. First all symbols get the greatest power of two under which the proof
 * succeeds. Then one symbol after the other loses its bound, or gets a greater power, if the proof still
 * succeeds. For i * m + j with i < n and j < m, both symbols get 2^15 first. Then n gets 2^16, since
 * 65534 * 32766 + 32766 < 2^31, and m keeps 2^15.
 */
#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"
#include "lower/launches.h"
#include "targets/source/printer.h"

typedef struct {
    ir_walk walk;
    const ir_facts *facts;
    bool fits;
} checker;

/* ---- indices ---- */

bool source_is_index(const ir_expr *expr)
{
    return expr->dtype.bits == 64 && base_is_signed(expr->dtype) && expr->dtype.lanes == 1 &&
           !(expr->has & IR_HAS_LOAD);
}

const char *source_type(const source_printer *printer, const ir_expr *expr)
{
    return printer->narrow && source_is_index(expr) ? printer->d->type(BASE_I32)
                                                    : printer->d->type(expr->dtype);
}

/* Operations whose result depends on the width of their operand, whatever its value. */
static bool tells_width(const ir_expr *expr)
{
    switch (expr->op) {
    case IR_SHL:
    case IR_SHR:
    case IR_POPCOUNT:
    case IR_CLZ:
    case IR_REINTERPRET: return source_is_index(expr->arg[0]);
    default: return false;
    }
}

static bool check_expr(ir_walk *walk, const ir_expr *expr)
{
    checker *self = (checker *)walk;

    self->fits = self->fits && !tells_width(expr);
    if (self->fits && source_is_index(expr)) {
        ir_interval b = ir_bounds(self->facts, expr);

        self->fits = b.min >= INT32_MIN && b.max <= INT32_MAX;
    }
    return self->fits;
}

static bool fits_expr(tec_context *cx, const ir_facts *facts, const ir_expr *expr)
{
    checker c = {.walk = {.cx = cx, .expr = check_expr}, .facts = facts, .fits = true};

    if (expr)
        ir_walk_expr(&c.walk, expr);
    return c.fits;
}

static bool fits_exprs(tec_context *cx, const ir_facts *facts, const ir_expr *const *expr, int n)
{
    for (int i = 0; i < n; i++)
        if (!fits_expr(cx, facts, expr[i]))
            return false;
    return true;
}

/* What the statement itself computes. */
static bool fits_own(tec_context *cx, const ir_facts *facts, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR:
        return fits_expr(cx, facts, stmt->loop.min) && fits_expr(cx, facts, stmt->loop.extent) &&
               fits_expr(cx, facts, ir_add(cx, stmt->loop.min, stmt->loop.extent));
    case IR_STORE:
        return fits_exprs(cx, facts, stmt->store.index, stmt->store.n) &&
               fits_expr(cx, facts, stmt->store.value);
    case IR_LET_STMT: return fits_expr(cx, facts, stmt->let.value);
    case IR_IF: return fits_expr(cx, facts, stmt->branch.cond);
    case IR_EVALUATE: return fits_expr(cx, facts, stmt->value);
    case IR_ALLOCATE:
    case IR_SEQ:
    case IR_ATTRIBUTE: return true;
    case IR_ASSERT:
    case IR_BLOCK:
    case IR_UPDATE: return false;
    }
    return false;
}

/* Whether every index of the statement, and what it is computed from, is proven to fit into 32 bits. Facts
 * are added on the way down, since the range of a loop's variable is what bounds an index inside. */
static bool fits(tec_context *cx, const ir_facts *facts, const ir_stmt *stmt)
{
    if (!fits_own(cx, facts, stmt))
        return false;
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++)
        if (!fits(cx, facts, stmt->seq.stmt[i]))
            return false;
    switch (stmt->kind) {
    case IR_FOR: return fits(cx, ir_facts_inside(facts, stmt, false), stmt->loop.body);
    case IR_LET_STMT: return fits(cx, ir_facts_inside(facts, stmt, false), stmt->let.body);
    case IR_IF:
        return fits(cx, ir_facts_inside(facts, stmt, false), stmt->branch.then) &&
               (!stmt->branch.otherwise ||
                fits(cx, ir_facts_inside(facts, stmt, true), stmt->branch.otherwise));
    case IR_ALLOCATE: return fits(cx, facts, stmt->allocate.body);
    case IR_ATTRIBUTE: return fits(cx, facts, stmt->attribute.body);
    default: return true;
    }
}

/* ---- bounds of symbols ---- */

/* A symbol is less than 1 << bits; NO_BOUND: as the program's facts say. */
enum { LEAST_BITS = 8, MOST_BITS = 30, NO_BOUND = 31 };

typedef struct {
    ir_rewrite rw;
    const ir_program *program;
    const ir_facts *facts; /* of the program */
    base_vec loops;        /* around the launches that are rewritten, outermost first */
    int n_launches;
    int *bits; /* [n_symbols] */
} narrower;

/* The bounds as a condition; NULL where no symbol has one. */
static const ir_expr *bounds_of(const narrower *self)
{
    tec_context *cx = self->rw.cx;
    const ir_expr *all = NULL;

    for (int i = 0; i < self->program->n_symbols; i++)
        if (self->bits[i] < NO_BOUND)
            all = ir_all(cx, all,
                         ir_lt(cx, self->program->symbols[i], ir_int(cx, INT64_C(1) << self->bits[i])));
    return all;
}

/* The bounds are told before the ranges of the loops, which depend on them. */
static bool fits_within(const narrower *self, const ir_stmt *stmt)
{
    ir_facts *facts = ir_facts_new(self->rw.cx, self->facts);
    const ir_expr *bounds = bounds_of(self);

    if (bounds)
        ir_facts_assume(facts, bounds);
    for (int i = 0; i < self->loops.n; i++)
        facts = ir_facts_inside(facts, self->loops.at[i], false);
    return fits(self->rw.cx, facts, stmt);
}

/* Sets n symbols to the greatest bound above `low` under which the statement fits, and to `low` where there
 * is none; gives that. */
static int raise_bounds(const narrower *self, const ir_stmt *stmt, int *bits, int n, int low)
{
    int high = MOST_BITS;

    while (low < high) {
        int middle = (low + high + 1) / 2;

        for (int i = 0; i < n; i++)
            bits[i] = middle;
        if (fits_within(self, stmt))
            low = middle;
        else
            high = middle - 1;
    }
    for (int i = 0; i < n; i++)
        bits[i] = low;
    return low;
}

/* Finds bounds under which 32 bits hold all indices of a launch's code; false: there are none, or a symbol
 * is always beyond them. */
static bool find_bounds(const narrower *self, const ir_stmt *stmt)
{
    int n = self->program->n_symbols;

    if (raise_bounds(self, stmt, self->bits, n, LEAST_BITS - 1) < LEAST_BITS)
        return false;
    for (int i = 0; i < n; i++) {
        int common = self->bits[i];

        if (ir_bounds(self->facts, self->program->symbols[i]).min >> common > 0)
            return false;
        self->bits[i] = NO_BOUND;
        if (!fits_within(self, stmt))
            raise_bounds(self, stmt, &self->bits[i], 1, common);
    }
    return true;
}

/* ---- launches ---- */

static const ir_stmt *launch(narrower *self, const ir_stmt *body, bool narrow)
{
    tec_context *cx = self->rw.cx;

    return ir_attribute(cx, LOWER_LAUNCH, ir_int(cx, self->n_launches++),
                        narrow ? ir_attribute(cx, SOURCE_NARROW, ir_int(cx, 1), body) : body);
}

/* A launch stays alone if its indices fit for all sizes, or if no bounds make them fit. The loops
 * of two launches have variables of their own. */
static const ir_stmt *narrow_launch(narrower *self, const ir_stmt *body)
{
    tec_context *cx = self->rw.cx;

    for (int i = 0; i < self->program->n_symbols; i++)
        self->bits[i] = NO_BOUND;
    if (fits_within(self, body))
        return launch(self, body, true);
    if (self->program->n_symbols == 0 || !find_bounds(self, body))
        return launch(self, body, false);
    const ir_stmt *narrow = launch(self, body, true), *wide = launch(self, ir_rename(cx, body), false);

    return ir_if(cx, bounds_of(self), narrow, wide);
}

/* Launches are numbered anew in the order of the text. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    narrower *self = (narrower *)rw;

    if (stmt->kind == IR_ATTRIBUTE && base_same(stmt->attribute.key, LOWER_LAUNCH))
        return narrow_launch(self, stmt->attribute.body);
    if (stmt->kind == IR_FOR)
        base_push(rw->cx, &self->loops, stmt);
    const ir_stmt *out = ir_rewrite_stmt_children(rw, stmt);
    self->loops.n -= stmt->kind == IR_FOR;
    return out;
}

const ir_program *source_narrow(tec_context *cx, const ir_program *program)
{
    narrower self = {.rw = {.cx = cx, .expr = ir_keep_expr, .stmt = visit, .no_memo = true},
                     .program = program,
                     .facts = ir_facts_of_program(cx, program),
                     .bits = base_array(cx, int, program->n_symbols + 1)};
    ir_program *out = ir_program_copy(cx, program);

    out->body = ir_rewrite_stmt(&self.rw, program->body);
    return base_failed(cx) ? NULL : out;
}
