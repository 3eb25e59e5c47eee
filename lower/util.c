/* lower/util.c -- facts on the way down, solving a comparison for a loop variable.
 *
 * Solving by example, in `for x { for i in 0..4 { if x*4 + i < n } }`, for x with i at its worst:
 *
 *     x*4 + i < n          as d <= 0:      x*4 + i - n + 1 <= 0
 *     greatest over i      (i = 3)         x*4 - n + 4 <= 0
 *     linear in x          c = 4           x < floordiv(n - 4, 4) + 1, the upper bound `hi`
 *
 * A negative coefficient gives a lower bound, and an equality gives both, from its two differences.
 */
#include "lower/util.h"

const ir_program *lower_with_body(tec_context *cx, const ir_program *p, const ir_stmt *body)
{
    if (!body || base_failed(cx))
        return NULL;
    if (body == p->body)
        return p;

    ir_program *copy = ir_program_copy(cx, p);
    copy->body = body;
    return copy;
}

void lower_list_add(tec_context *cx, base_map *lists, const void *key, const void *what)
{
    base_vec *list = base_map_get(lists, key);

    if (!list) {
        list = base_new(cx, base_vec);
        base_map_put(cx, lists, key, list);
    }
    base_push(cx, list, what);
}

/* A comparison as up to two differences d with d <= 0; their number, 0 where it is no such comparison. `a !=
 * b` has no such form: it leaves values on both sides. */
static int differences(tec_context *cx, const ir_expr *cond, const ir_expr *d[2])
{
    const ir_expr *a = cond->arg[0], *b = cond->arg[1];

    if (cond->op < IR_EQ || cond->op > IR_GE || !base_dtype_same(a->dtype, BASE_I64))
        return 0;
    switch (cond->op) {
    case IR_LT: d[0] = ir_add(cx, ir_sub(cx, a, b), ir_int(cx, 1)); return 1;
    case IR_LE: d[0] = ir_sub(cx, a, b); return 1;
    case IR_GT: d[0] = ir_add(cx, ir_sub(cx, b, a), ir_int(cx, 1)); return 1;
    case IR_GE: d[0] = ir_sub(cx, b, a); return 1;
    case IR_EQ:
        d[0] = ir_sub(cx, a, b);
        d[1] = ir_sub(cx, b, a);
        return 2;
    default: return 0;
    }
}

static void tighten(tec_context *cx, const ir_expr **bound, const ir_expr *value, ir_op how)
{
    *bound = *bound ? ir_op2(cx, how, *bound, value) : value;
}

/* The values of var with d <= 0 at the worst of the inner variables. The inner variables are eliminated
 * first: d at its greatest. A division rounds towards the side that keeps d <= 0. The least int64 as a
 * coefficient could not be negated. */
static bool solve_difference(const ir_facts *f, const ir_expr *d, const ir_expr *var, const base_vec *inner,
                             lower_interval *out)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr *min, *rest;
    int64_t c;

    if (inner && inner->n > 0 && !ir_eliminate(f, d, (const ir_expr *const *)inner->at, inner->n, &min, &d))
        return false;
    if (!d || !ir_linear(f, d, &var, 1, &c, &rest) || c == 0 || c == INT64_MIN)
        return false;
    if (c > 0)
        tighten(cx, &out->hi, ir_add(cx, ir_floordiv(cx, ir_neg(cx, rest), ir_int(cx, c)), ir_int(cx, 1)),
                IR_MIN);
    else
        tighten(cx, &out->lo, ir_ceildiv(cx, rest, ir_int(cx, -c)), IR_MAX);
    return true;
}

bool lower_solve(const ir_facts *f, const ir_expr *cond, const ir_expr *var, const base_vec *inner,
                 lower_interval *out)
{
    const ir_expr *d[2];
    int n = differences(ir_facts_context(f), cond, d);

    *out = (lower_interval){0};
    for (int i = 0; i < n; i++)
        if (!solve_difference(f, d[i], var, inner, out))
            return false;
    return n > 0;
}

/* The condition over the remaining variables that says the same of all inner values (worst), or of some
 * (best). */
static const ir_expr *at_end(const ir_facts *f, const ir_expr *cond, const base_vec *inner, bool worst)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr *d[2], *all = NULL;
    int n = differences(cx, cond, d);

    for (int i = 0; i < n; i++) {
        const ir_expr *min = d[i], *max = d[i];

        if (inner->n > 0 && !ir_eliminate(f, d[i], (const ir_expr *const *)inner->at, inner->n, &min, &max))
            return NULL;
        all = ir_all(cx, all, ir_le(cx, worst ? max : min, ir_int(cx, 0)));
    }
    return all;
}

const ir_expr *lower_worst(const ir_facts *f, const ir_expr *cond, const base_vec *inner)
{
    return at_end(f, cond, inner, true);
}

const ir_expr *lower_best(const ir_facts *f, const ir_expr *cond, const base_vec *inner)
{
    return at_end(f, cond, inner, false);
}

typedef struct {
    ir_walk walk;
    const ir_facts *f;
} failure_walk;

/* Division by zero is the only failure. Integers other than indices may be anything, so their divisors are
 * never proven. */
static bool find_failure(ir_walk *w, const ir_expr *e)
{
    const ir_facts *f = ((failure_walk *)w)->f;

    if (ir_is_op(e->op) && (ir_ops[e->op].flags & IR_ZERO_FAILS) && base_is_int(e->dtype))
        w->stop |= !base_dtype_same(e->dtype, BASE_I64) || !(ir_prove_le(f, ir_int(w->cx, 1), e->arg[1]) ||
                                                             ir_prove_lt(f, e->arg[1], ir_int(w->cx, 0)));
    return !w->stop;
}

bool lower_may_fail(const ir_facts *f, const ir_expr *e)
{
    failure_walk w = {.walk = {.cx = ir_facts_context(f), .expr = find_failure}, .f = f};

    ir_walk_expr(&w.walk, e);
    return w.walk.stop;
}

static bool stop_at_blocks(ir_walk *w, const ir_stmt *s)
{
    w->stop |= lower_is_blocks(s);
    return !w->stop;
}

bool lower_launches_blocks(tec_context *cx, const ir_stmt *s)
{
    ir_walk w = {.cx = cx, .stmt = stop_at_blocks};

    if (!lower_is_blocks(s))
        return false;
    ir_walk_stmt(&w, s->loop.body);
    return !w.stop;
}

/* For a loop whose end may lie before its beginning: it runs no iteration then, and its extent must be 0. */
const ir_expr *lower_extent(const ir_facts *f, const ir_expr *min, const ir_expr *end)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr *extent = ir_simplify(f, ir_sub(cx, end, min));

    return ir_prove_le(f, ir_int(cx, 0), extent) ? extent : ir_max(cx, extent, ir_int(cx, 0));
}

/* Statements with two children, or a list of them, have none that could be called the body. */
const ir_stmt *lower_inner(const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: return s->loop.body;
    case IR_LET_STMT: return s->let.body;
    case IR_ALLOCATE: return s->allocate.body;
    case IR_ATTRIBUTE: return s->attribute.body;
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_IF:
    case IR_SEQ:
    case IR_ASSERT:
    case IR_EVALUATE: break;
    }
    return NULL;
}

/* NULL stays NULL, so that a failed rewrite of the body passes through. */
const ir_stmt *lower_with_inner(tec_context *cx, const ir_stmt *s, const ir_stmt *body)
{
    if (!body || body == lower_inner(s))
        return body ? s : NULL;

    ir_stmt *copy = ir_stmt_copy(cx, s);
    if (s->kind == IR_FOR)
        copy->loop.body = body;
    else if (s->kind == IR_LET_STMT)
        copy->let.body = body;
    else if (s->kind == IR_ALLOCATE)
        copy->allocate.body = body;
    else
        copy->attribute.body = body;
    return copy;
}

const ir_expr *lower_span(tec_context *cx, const ir_buffer *b)
{
    const ir_expr *product = ir_int(cx, 1), *last = ir_int(cx, 0);

    for (int d = 0; d < b->n; d++)
        product = ir_mul(cx, product, b->shape[d]);
    if (!b->strides)
        return product;
    for (int d = 0; d < b->n; d++)
        last = ir_add(cx, last, ir_mul(cx, ir_sub(cx, b->shape[d], ir_int(cx, 1)), b->strides[d]));
    /* Without elements nothing is reached; the last index would be negative. */
    return ir_select(cx, ir_gt(cx, product, ir_int(cx, 0)), ir_add(cx, last, ir_int(cx, 1)), ir_int(cx, 0));
}

int64_t lower_constant_elements(const ir_buffer *b)
{
    int64_t product = 1, extent;

    for (int i = 0; i < b->n; i++)
        if (!ir_is_int(b->shape[i], &extent) || __builtin_mul_overflow(product, extent, &product))
            return -1;
    return product;
}

/* ---- looking for a statement ---- */

typedef struct {
    ir_walk walk;
    bool (*is)(const ir_stmt *s);
    const ir_stmt *found;
} finder;

static bool look_at(ir_walk *w, const ir_stmt *s)
{
    finder *f = (finder *)w;

    if (!f->is(s))
        return true;
    f->found = s;
    w->stop = true;
    return false;
}

const ir_stmt *lower_find_stmt(tec_context *cx, const ir_stmt *s, bool (*is)(const ir_stmt *))
{
    finder f = {.walk = {.cx = cx, .stmt = look_at, .expr = ir_skip_expr}, .is = is};

    ir_walk_stmt(&f.walk, s);
    return f.found;
}

/* ---- names of blocks ---- */

typedef struct {
    ir_rewrite rw;
    base_dict holder; /* name -> the block that has it */
} namer;

/* A block that stands in several places is one node and keeps one name. */
static const ir_stmt *name_block(ir_rewrite *rw, const ir_stmt *s)
{
    namer *n = (namer *)rw;

    if (s->kind != IR_BLOCK)
        return ir_rewrite_stmt_children(rw, s);
    const char *name = s->block.block->name;
    for (int i = 2; base_dict_has(&n->holder, name) && base_dict_get(&n->holder, name) != s->block.block; i++)
        name = base_format(rw->cx, "%s'%d", s->block.block->name, i);
    base_dict_put(rw->cx, &n->holder, name, s->block.block);
    if (name == s->block.block->name)
        return s;
    ir_stmt *copy = ir_stmt_copy(rw->cx, s);
    ir_block *b = ir_block_copy(rw->cx, s->block.block);
    b->name = name;
    copy->block.block = b;
    return copy;
}

const ir_stmt *lower_name_blocks(tec_context *cx, const ir_stmt *s)
{
    namer n = {.rw = {.cx = cx, .stmt = name_block}};

    return s ? ir_rewrite_stmt(&n.rw, s) : NULL;
}
