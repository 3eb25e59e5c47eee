/* lower/masks.c -- masks that are the same for all lanes, known now that unrolling has made their ramps
 * constant.
 *
 *     T[ramp(16, 1, 16)] = A[ramp(16, 1, 16)] where ramp(16, 1, 16) < broadcast(8, 16)   =>      (nothing)
 *     T[ramp(0, 1, 4)] = A[ramp(9, 1, 4)] where ramp(0, 1, 4) < broadcast(8, 4)      =>   T[ramp(0, 1,
 *         4)] = A[ramp(9, 1, 4)]
 *
 * requires  no unrolled loop
 * provides  no access under a mask that constants decide for all lanes alike; the value under a mask does not
 *           test that mask again
 * breaks    nothing
 */
#include "lower/cells.h"

/* Lane values base + stride*lane. */
typedef struct {
    int64_t base, stride;
} lanes;

/* A constant, or base + stride * lane with constants for both: the value of each lane is known. */
static bool constant_lanes(const ir_expr *expr, lanes *out)
{
    out->stride = 0;
    if (expr->op == IR_RAMP)
        return ir_is_int(expr->ramp.base, &out->base) && ir_is_int(expr->ramp.stride, &out->stride);
    return ir_is_int(expr, &out->base);
}

static bool holds(ir_op op, int64_t left, int64_t right)
{
    switch (op) {
    case IR_EQ: return left == right;
    case IR_NE: return left != right;
    case IR_LT: return left < right;
    case IR_LE: return left <= right;
    case IR_GT: return left > right;
    case IR_GE: return left >= right;
    default: return false;
    }
}

/* The comparison of constant lanes where they all agree; expr itself where they do not. */
static const ir_expr *compare(tec_context *cx, const ir_expr *expr)
{
    lanes a, b;
    int n = expr->dtype.lanes, true_lanes = 0;

    if (n == 1 || !base_is_signed(expr->arg[0]->dtype) || !constant_lanes(expr->arg[0], &a) ||
        !constant_lanes(expr->arg[1], &b))
        return expr;
    for (int i = 0; i < n; i++)
        true_lanes += holds(expr->op, a.base + a.stride * i, b.base + b.stride * i);
    if (true_lanes && BASE_PLANT_ON(cx, masks_decided))
        true_lanes = n;
    return true_lanes == 0 || true_lanes == n ? ir_broadcast(cx, ir_bool(cx, true_lanes == n), n) : expr;
}

/* 1: all lanes, 0: none, -1: not known, or both. */
static int decided(const ir_expr *mask)
{
    int64_t v;

    return mask && ir_is_int(mask, &v) ? v != 0 : -1;
}

/* Of two masks that each leave a constant number of the first lanes, the one that leaves fewer; NULL where
 * they are not both so. A constant comparison leaves fewer than all lanes here: compare has decided the
 * others. */
static const ir_expr *narrower(const ir_expr *left, const ir_expr *right)
{
    int n = left->dtype.lanes, a = lower_lanes_left(left, n), b = lower_lanes_left(right, n);

    return a == n || b == n ? NULL : a <= b ? left : right;
}

/* `true` is the neutral operand of `and`, `false` that of `or`; the other constant decides alone. */
static const ir_expr *visit_logic(tec_context *cx, const ir_expr *expr)
{
    int a = decided(expr->arg[0]), b = expr->op == IR_NOT ? -1 : decided(expr->arg[1]);

    if (expr->op == IR_NOT)
        return a < 0 ? expr : ir_broadcast(cx, ir_bool(cx, !a), expr->dtype.lanes);
    bool neutral = expr->op == IR_AND;
    if (a >= 0)
        return a == neutral ? expr->arg[1] : expr->arg[0];
    if (b >= 0)
        return b == neutral ? expr->arg[0] : expr->arg[1];
    const ir_expr *one = neutral ? narrower(expr->arg[0], expr->arg[1]) : NULL;
    return one ? one : expr;
}

static const ir_expr *visit_load(tec_context *cx, const ir_expr *expr)
{
    switch (decided(expr->load.mask)) {
    case 0: return ir_imm(cx, expr->dtype, 0);
    case 1: return ir_load(cx, expr->load.buffer, expr->load.index, expr->load.n);
    default: return expr;
    }
}

/* The operands are decided first, so that a mask of masks is decided in one go. */
static const ir_expr *visit_expr(ir_rewrite *rw, const ir_expr *expr)
{
    expr = ir_rewrite_children(rw, expr);
    if (!expr || expr->dtype.lanes == 1)
        return expr;
    ir_at(rw->cx, expr->loc);
    if (expr->op >= IR_EQ && expr->op <= IR_GE)
        return compare(rw->cx, expr);
    if (expr->op == IR_AND || expr->op == IR_OR || expr->op == IR_NOT)
        return visit_logic(rw->cx, expr);
    if (expr->op == IR_LOAD)
        return visit_load(rw->cx, expr);
    if (expr->op == IR_SELECT && decided(expr->arg[0]) >= 0) {
        const ir_expr *arm = expr->arg[decided(expr->arg[0]) ? 1 : 2];

        return arm->dtype.lanes == expr->dtype.lanes ? arm : ir_broadcast(rw->cx, arm, expr->dtype.lanes);
    }
    return expr;
}

/* ---- values under a mask ---- */

typedef struct {
    ir_rewrite rw;
    const ir_expr *mask;
} under;

/* The first and the last lane decide, as the lanes between them lie between: base + stride * lane is
 * monotone. */
static bool is_inside(const ir_expr *load)
{
    lanes at;
    int64_t size, last;

    if (load->load.n != 1 || !constant_lanes(load->load.index[0], &at) ||
        !ir_is_int(load->load.buffer->shape[0], &size))
        return false;
    last = at.base + at.stride * (load->load.index[0]->dtype.lanes - 1);
    return at.base >= 0 && at.base < size && last >= 0 && last < size;
}

/* A load that its test may have kept from memory that is not there. */
static bool find_guarded_load(ir_walk *walk, const ir_expr *expr)
{
    walk->stop |= expr->op == IR_LOAD && !expr->load.mask && !is_inside(expr);
    return !walk->stop;
}

/* A load below a select on this mask may only be reached where the mask holds: with the mask gone nothing
 * guards it. */
static bool needs_test(tec_context *cx, const ir_expr *expr)
{
    ir_walk look = {.cx = cx, .expr = find_guarded_load};

    ir_walk_expr(&look, expr);
    return look.stop;
}

/* What lanes without a store compute does not matter, but for two things: a division of indices by zero, and
 * a load out of bounds. A divisor keeps its test, since a lane that does not store would still divide. */
static const ir_expr *drop_tests(ir_rewrite *rw, const ir_expr *expr)
{
    if (ir_is_op(expr->op) && (ir_ops[expr->op].flags & IR_ZERO_FAILS) && !ir_divides_data(expr)) {
        const ir_expr *dividend = ir_rewrite_expr(rw, expr->arg[0]);

        return dividend == expr->arg[0] ? expr : ir_op2(rw->cx, expr->op, dividend, expr->arg[1]);
    }
    if (expr->op == IR_SHUFFLE) /* its operands' lanes are not the mask's */
        return expr;
    if (expr->op == IR_SELECT && ir_same(expr->arg[0], ((under *)rw)->mask) &&
        !needs_test(rw->cx, expr->arg[1]))
        return ir_rewrite_expr(rw, expr->arg[1]);
    return ir_rewrite_children(rw, expr);
}

const ir_expr *lower_under_mask(tec_context *cx, const ir_expr *mask, const ir_expr *expr)
{
    under u = {.rw = {.cx = cx, .expr = drop_tests}, .mask = mask};

    return ir_rewrite_expr(&u.rw, expr);
}

/* A store that no lane makes goes away; its value may hold loads, which have no effect. */
static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    tec_context *cx = rw->cx;

    stmt = ir_rewrite_stmt_children(rw, stmt);
    if (!stmt || stmt->kind != IR_STORE || !stmt->store.mask)
        return stmt;
    if (decided(stmt->store.mask) == 0)
        return ir_nothing(cx);
    if (decided(stmt->store.mask) == 1)
        return ir_store(cx, stmt->store.buffer, stmt->store.value, stmt->store.index, stmt->store.n);
    const ir_expr *value = lower_under_mask(cx, stmt->store.mask, stmt->store.value);
    return value == stmt->store.value ? stmt
                                      : ir_store_masked(cx, stmt->store.buffer, value, stmt->store.index,
                                                        stmt->store.n, stmt->store.mask);
}

static bool find_mask(ir_walk *walk, const ir_expr *expr)
{
    (void)expr;
    walk->stop = true; /* the walk meets nothing else */
    return false;
}

const ir_program *lower_masks(const lower_options *options, const ir_program *program)
{
    ir_rewrite rw = {.cx = options->cx, .expr = visit_expr, .stmt = visit_stmt, .kinds = IR_KIND_MASK};
    ir_walk look = {.cx = options->cx, .expr = find_mask, .kinds = IR_KIND_MASK};

    ir_walk_stmt(&look, program->body);
    return look.stop ? lower_with_body(options->cx, program, ir_rewrite_stmt(&rw, program->body)) : program;
}
