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
#include "lower/util.h"

/* Lane values base + stride*lane. */
typedef struct {
    int64_t base, stride;
} lanes;

static bool constant_lanes(const ir_expr *e, lanes *out)
{
    out->stride = 0;
    if (e->op == IR_RAMP)
        return ir_is_int(e->ramp.base, &out->base) && ir_is_int(e->ramp.stride, &out->stride);
    return ir_is_int(e, &out->base);
}

static bool holds(ir_op op, int64_t a, int64_t b)
{
    switch (op) {
    case IR_EQ: return a == b;
    case IR_NE: return a != b;
    case IR_LT: return a < b;
    case IR_LE: return a <= b;
    case IR_GT: return a > b;
    case IR_GE: return a >= b;
    default: return false;
    }
}

/* The comparison of constant lanes where they all agree; e itself where they do not. */
static const ir_expr *compare(tec_context *cx, const ir_expr *e)
{
    lanes a, b;
    int n = e->dtype.lanes, true_lanes = 0;

    if (n == 1 || !base_is_signed(e->arg[0]->dtype) || !constant_lanes(e->arg[0], &a) ||
        !constant_lanes(e->arg[1], &b))
        return e;
    for (int i = 0; i < n; i++)
        true_lanes += holds(e->op, a.base + a.stride * i, b.base + b.stride * i);
    if (true_lanes && BASE_PLANT_ON(cx, masks_decided))
        true_lanes = n;
    return true_lanes == 0 || true_lanes == n ? ir_broadcast(cx, ir_bool(cx, true_lanes == n), n) : e;
}

/* 1: all lanes, 0: none, -1: not known, or both. */
static int decided(const ir_expr *mask)
{
    int64_t v;

    return mask && ir_is_int(mask, &v) ? v != 0 : -1;
}

/* `true` is the neutral operand of `and`, `false` that of `or`; the other constant decides alone. */
static const ir_expr *visit_logic(tec_context *cx, const ir_expr *e)
{
    int a = decided(e->arg[0]), b = e->op == IR_NOT ? -1 : decided(e->arg[1]);

    if (e->op == IR_NOT)
        return a < 0 ? e : ir_broadcast(cx, ir_bool(cx, !a), e->dtype.lanes);
    bool neutral = e->op == IR_AND;
    if (a >= 0)
        return a == neutral ? e->arg[1] : e->arg[0];
    if (b >= 0)
        return b == neutral ? e->arg[0] : e->arg[1];
    return e;
}

static const ir_expr *visit_load(tec_context *cx, const ir_expr *e)
{
    switch (decided(e->load.mask)) {
    case 0: return ir_imm(cx, e->dtype, 0);
    case 1: return ir_load(cx, e->load.buffer, e->load.index, e->load.n);
    default: return e;
    }
}

/* The operands are decided first, so that a mask of masks is decided in one go. */
static const ir_expr *visit_expr(ir_rewrite *rw, const ir_expr *e)
{
    e = ir_rewrite_children(rw, e);
    if (!e || e->dtype.lanes == 1)
        return e;
    ir_at(rw->cx, e->loc);
    if (e->op >= IR_EQ && e->op <= IR_GE)
        return compare(rw->cx, e);
    if (e->op == IR_AND || e->op == IR_OR || e->op == IR_NOT)
        return visit_logic(rw->cx, e);
    if (e->op == IR_LOAD)
        return visit_load(rw->cx, e);
    if (e->op == IR_SELECT && decided(e->arg[0]) >= 0) {
        const ir_expr *arm = e->arg[decided(e->arg[0]) ? 1 : 2];

        return arm->dtype.lanes == e->dtype.lanes ? arm : ir_broadcast(rw->cx, arm, e->dtype.lanes);
    }
    return e;
}

/* ---- values under a mask ---- */

typedef struct {
    ir_rewrite rw;
    const ir_expr *mask;
} under;

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
static bool find_guarded_load(ir_walk *w, const ir_expr *e)
{
    w->stop |= e->op == IR_LOAD && !e->load.mask && !is_inside(e);
    return !w->stop;
}

static bool needs_test(tec_context *cx, const ir_expr *e)
{
    ir_walk look = {.cx = cx, .expr = find_guarded_load};

    ir_walk_expr(&look, e);
    return look.stop;
}

/* What lanes without a store compute does not matter, but for two things: a division by zero, and a load out
 * of bounds. A divisor keeps its test, since a lane that does not store would still divide. */
static const ir_expr *drop_tests(ir_rewrite *rw, const ir_expr *e)
{
    if (ir_is_op(e->op) && (ir_ops[e->op].flags & IR_ZERO_FAILS) && base_is_int(e->dtype)) {
        const ir_expr *dividend = ir_rewrite_expr(rw, e->arg[0]);

        return dividend == e->arg[0] ? e : ir_op2(rw->cx, e->op, dividend, e->arg[1]);
    }
    if (e->op == IR_SHUFFLE) /* its operands' lanes are not the mask's */
        return e;
    if (e->op == IR_SELECT && ir_same(e->arg[0], ((under *)rw)->mask) && !needs_test(rw->cx, e->arg[1]))
        return ir_rewrite_expr(rw, e->arg[1]);
    return ir_rewrite_children(rw, e);
}

const ir_expr *lower_under_mask(tec_context *cx, const ir_expr *mask, const ir_expr *e)
{
    under u = {.rw = {.cx = cx, .expr = drop_tests}, .mask = mask};

    return ir_rewrite_expr(&u.rw, e);
}

/* A store that no lane makes goes away; its value may hold loads, which have no effect. */
static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    tec_context *cx = rw->cx;

    s = ir_rewrite_stmt_children(rw, s);
    if (!s || s->kind != IR_STORE || !s->store.mask)
        return s;
    if (decided(s->store.mask) == 0)
        return ir_nothing(cx);
    if (decided(s->store.mask) == 1)
        return ir_store(cx, s->store.buffer, s->store.value, s->store.index, s->store.n);
    const ir_expr *value = lower_under_mask(cx, s->store.mask, s->store.value);
    return value == s->store.value
               ? s
               : ir_store_masked(cx, s->store.buffer, value, s->store.index, s->store.n, s->store.mask);
}

static bool find_mask(ir_walk *w, const ir_expr *e)
{
    (void)e;
    w->stop = true; /* the walk meets nothing else */
    return false;
}

const ir_program *lower_masks(const lower_options *o, const ir_program *p)
{
    ir_rewrite rw = {.cx = o->cx, .expr = visit_expr, .stmt = visit_stmt, .kinds = IR_KIND_MASK};
    ir_walk look = {.cx = o->cx, .expr = find_mask, .kinds = IR_KIND_MASK};

    ir_walk_stmt(&look, p->body);
    return look.stop ? lower_with_body(o->cx, p, ir_rewrite_stmt(&rw, p->body)) : p;
}
