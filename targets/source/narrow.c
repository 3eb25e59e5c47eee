/* targets/source/narrow.c -- whether 32 bits hold every index of a kernel.
 *
 *     for b in 0..64 blockIdx.x { for t in 0..256 threadIdx.x { B[b * 256 + t] = A[b * 256 + t] } }
 *
 * The greatest index is 63 * 256 + 255. All of `b`, `t`, `b * 256` and the sum are proven to lie between
 * -2^31 and 2^31 - 1, so they may be computed in `int`: GPUs have no registers and no multipliers of 64 bits.
 * With a symbol in place of 64 nothing bounds the sum, and the kernel keeps 64 bits. Numbers that are data
 * are left alone.
 */
#include "ir/build.h"
#include "ir/walk.h"
#include "targets/source/printer.h"

typedef struct {
    ir_walk walk;
    const ir_facts *facts;
    bool fits;
} checker;

bool source_is_index(const ir_expr *expr)
{
    return expr->dtype.bits == 64 && base_is_signed(expr->dtype) && expr->dtype.lanes == 1 &&
           !(expr->has & IR_HAS_LOAD);
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

/* The facts grow on the way down, since the range of a loop's variable is what bounds an index inside. */
bool source_fits_32_bits(tec_context *cx, const ir_facts *facts, const ir_stmt *stmt)
{
    if (!fits_own(cx, facts, stmt))
        return false;
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++)
        if (!source_fits_32_bits(cx, facts, stmt->seq.stmt[i]))
            return false;
    switch (stmt->kind) {
    case IR_FOR: return source_fits_32_bits(cx, ir_facts_inside(facts, stmt, false), stmt->loop.body);
    case IR_LET_STMT: return source_fits_32_bits(cx, ir_facts_inside(facts, stmt, false), stmt->let.body);
    case IR_IF:
        return source_fits_32_bits(cx, ir_facts_inside(facts, stmt, false), stmt->branch.then) &&
               (!stmt->branch.otherwise ||
                source_fits_32_bits(cx, ir_facts_inside(facts, stmt, true), stmt->branch.otherwise));
    case IR_ALLOCATE: return source_fits_32_bits(cx, facts, stmt->allocate.body);
    case IR_ATTRIBUTE: return source_fits_32_bits(cx, facts, stmt->attribute.body);
    default: return true;
    }
}

const char *source_type(const source_printer *printer, const ir_expr *expr)
{
    return printer->narrow && source_is_index(expr) ? printer->d->type(BASE_I32)
                                                    : printer->d->type(expr->dtype);
}
