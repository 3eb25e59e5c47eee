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

const ir_program *lower_with_body(tec_context *cx, const ir_program *program, const ir_stmt *body)
{
    if (!body || base_failed(cx))
        return NULL;
    if (body == program->body)
        return program;

    ir_program *copy = ir_program_copy(cx, program);
    copy->body = body;
    return copy;
}

/* `lists` maps keys to vectors, which are made when the first entry comes. */
void lower_list_add(tec_context *cx, base_map *lists, const void *key, const void *what)
{
    base_vec *list = base_map_get(lists, key);

    if (!list) {
        list = base_new(cx, base_vec);
        base_map_put(cx, lists, key, list);
    }
    base_push(cx, list, what);
}

/* A comparison as up to two differences sides with sides <= 0; their number, 0 where it is no such
 * comparison. `a != b` has no such form: it leaves values on both sides. */
static int differences(tec_context *cx, const ir_expr *cond, const ir_expr *sides[2])
{
    const ir_expr *a = cond->arg[0], *b = cond->arg[1];

    if (cond->op < IR_EQ || cond->op > IR_GE || !base_dtype_same(a->dtype, BASE_I64))
        return 0;
    switch (cond->op) {
    case IR_LT: sides[0] = ir_add(cx, ir_sub(cx, a, b), ir_int(cx, 1)); return 1;
    case IR_LE: sides[0] = ir_sub(cx, a, b); return 1;
    case IR_GT: sides[0] = ir_add(cx, ir_sub(cx, b, a), ir_int(cx, 1)); return 1;
    case IR_GE: sides[0] = ir_sub(cx, b, a); return 1;
    case IR_EQ:
        sides[0] = ir_sub(cx, a, b);
        sides[1] = ir_sub(cx, b, a);
        return 2;
    default: return 0;
    }
}

static void tighten(tec_context *cx, const ir_expr **bound, const ir_expr *value, ir_op how)
{
    *bound = *bound ? ir_op2(cx, how, *bound, value) : value;
}

/* The values of var with diff <= 0 at the worst of the inner variables. The inner variables are eliminated
 * first: diff at its greatest. A division rounds towards the side that keeps diff <= 0. The least int64 as a
 * coefficient could not be negated. */
static bool solve_difference(const ir_facts *facts, const ir_expr *diff, const ir_expr *var,
                             const base_vec *inner, lower_interval *out)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *min, *rest;
    int64_t c;

    if (inner && inner->n > 0 &&
        !ir_eliminate(facts, diff, (const ir_expr *const *)inner->at, inner->n, &min, &diff))
        return false;
    if (!diff || !ir_linear(facts, diff, &var, 1, &c, &rest) || c == 0 || c == INT64_MIN)
        return false;
    if (c > 0)
        tighten(cx, &out->hi, ir_add(cx, ir_floordiv(cx, ir_neg(cx, rest), ir_int(cx, c)), ir_int(cx, 1)),
                IR_MIN);
    else
        tighten(cx, &out->lo, ir_ceildiv(cx, rest, ir_int(cx, -c)), IR_MAX);
    return true;
}

/* An equality is two differences, both of which must be solved. */
bool lower_solve(const ir_facts *facts, const ir_expr *cond, const ir_expr *var, const base_vec *inner,
                 lower_interval *out)
{
    const ir_expr *d[2];
    int n = differences(ir_facts_context(facts), cond, d);

    *out = (lower_interval){0};
    for (int i = 0; i < n; i++)
        if (!solve_difference(facts, d[i], var, inner, out))
            return false;
    return n > 0;
}

/* The condition over the remaining variables that says the same of all inner values (worst), or of some
 * (best). */
static const ir_expr *at_end(const ir_facts *facts, const ir_expr *cond, const base_vec *inner, bool worst)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *d[2], *all = NULL;
    int n = differences(cx, cond, d);

    for (int i = 0; i < n; i++) {
        const ir_expr *min = d[i], *max = d[i];

        if (inner->n > 0 &&
            !ir_eliminate(facts, d[i], (const ir_expr *const *)inner->at, inner->n, &min, &max))
            return NULL;
        all = ir_all(cx, all, ir_le(cx, worst ? max : min, ir_int(cx, 0)));
    }
    return all;
}

const ir_expr *lower_worst(const ir_facts *facts, const ir_expr *cond, const base_vec *inner)
{
    return at_end(facts, cond, inner, true);
}

const ir_expr *lower_best(const ir_facts *facts, const ir_expr *cond, const base_vec *inner)
{
    return at_end(facts, cond, inner, false);
}

typedef struct {
    ir_walk walk;
    const ir_facts *f;
} failure_walk;

/* Division of indices by zero is the only failure. */
static bool find_failure(ir_walk *walk, const ir_expr *expr)
{
    const ir_facts *f = ((failure_walk *)walk)->f;

    if (ir_is_op(expr->op) && (ir_ops[expr->op].flags & IR_ZERO_FAILS) && !ir_divides_data(expr))
        walk->stop |= !(ir_prove_le(f, ir_int(walk->cx, 1), expr->arg[1]) ||
                        ir_prove_lt(f, expr->arg[1], ir_int(walk->cx, 0)));
    return !walk->stop;
}

bool lower_may_fail(const ir_facts *facts, const ir_expr *expr)
{
    failure_walk w = {.walk = {.cx = ir_facts_context(facts), .expr = find_failure}, .f = facts};

    ir_walk_expr(&w.walk, expr);
    return w.walk.stop;
}

static bool stop_at_blocks(ir_walk *walk, const ir_stmt *stmt)
{
    walk->stop |= lower_is_blocks(stmt);
    return !walk->stop;
}

/* The outermost of nested loops over blocks: there the launch begins. */
bool lower_launches_blocks(tec_context *cx, const ir_stmt *stmt)
{
    ir_walk w = {.cx = cx, .stmt = stop_at_blocks};

    if (!lower_is_blocks(stmt))
        return false;
    ir_walk_stmt(&w, stmt->loop.body);
    return !w.stop;
}

/* For a loop whose end may lie before its beginning: it runs no iteration then, and its extent must be 0. */
const ir_expr *lower_extent(const ir_facts *facts, const ir_expr *min, const ir_expr *end)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *extent = ir_simplify(facts, ir_sub(cx, end, min));

    return ir_prove_le(facts, ir_int(cx, 0), extent) ? extent : ir_max(cx, extent, ir_int(cx, 0));
}

/* Statements with two children, or a list of them, have none that could be called the body. */
const ir_stmt *lower_inner(const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: return stmt->loop.body;
    case IR_LET_STMT: return stmt->let.body;
    case IR_ALLOCATE: return stmt->allocate.body;
    case IR_ATTRIBUTE: return stmt->attribute.body;
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
const ir_stmt *lower_with_inner(tec_context *cx, const ir_stmt *stmt, const ir_stmt *body)
{
    if (!body || body == lower_inner(stmt))
        return body ? stmt : NULL;

    ir_stmt *copy = ir_stmt_copy(cx, stmt);
    if (stmt->kind == IR_FOR)
        copy->loop.body = body;
    else if (stmt->kind == IR_LET_STMT)
        copy->let.body = body;
    else if (stmt->kind == IR_ALLOCATE)
        copy->allocate.body = body;
    else
        copy->attribute.body = body;
    return copy;
}

/* The statements of a sequence, all under the same facts. */
static const ir_stmt *visit_seq(const ir_facts *facts, const ir_stmt *statement, lower_visit *visit,
                                void *user)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_stmt **stmt = base_array(cx, const ir_stmt *, statement->seq.n);
    bool same = true;

    for (int i = 0; i < statement->seq.n; i++) {
        stmt[i] = visit(user, facts, statement->seq.stmt[i]);
        if (!stmt[i])
            return NULL;
        same &= stmt[i] == statement->seq.stmt[i];
    }
    return same ? statement : ir_seq(cx, stmt, statement->seq.n);
}

/* Both branches of an if, each under what the condition says there. */
static const ir_stmt *visit_if(const ir_facts *facts, const ir_stmt *stmt, lower_visit *visit, void *user)
{
    const ir_stmt *then = visit(user, lower_inside(facts, stmt), stmt->branch.then), *otherwise = NULL;

    if (!then || (stmt->branch.otherwise &&
                  !(otherwise = visit(user, lower_inside_else(facts, stmt), stmt->branch.otherwise))))
        return NULL;
    return then == stmt->branch.then && otherwise == stmt->branch.otherwise
               ? stmt
               : ir_if(ir_facts_context(facts), stmt->branch.cond, then, otherwise);
}

const ir_stmt *lower_visit_children(const ir_facts *facts, const ir_stmt *stmt, lower_visit *visit,
                                    void *user)
{
    if (stmt->kind == IR_SEQ)
        return visit_seq(facts, stmt, visit, user);
    if (stmt->kind == IR_IF)
        return visit_if(facts, stmt, visit, user);
    return lower_inner(stmt) ? lower_with_inner(ir_facts_context(facts), stmt,
                                                visit(user, lower_inside(facts, stmt), lower_inner(stmt)))
                             : stmt;
}

/* The number of elements from the first to behind the last one: with strides, 1 + sum of (extent - 1) *
 * stride. */
const ir_expr *lower_span(tec_context *cx, const ir_buffer *buffer)
{
    const ir_expr *product = ir_int(cx, 1), *last = ir_int(cx, 0);

    for (int d = 0; d < buffer->n; d++)
        product = ir_mul(cx, product, buffer->shape[d]);
    if (!buffer->strides)
        return product;
    for (int d = 0; d < buffer->n; d++)
        last = ir_add(cx, last, ir_mul(cx, ir_sub(cx, buffer->shape[d], ir_int(cx, 1)), buffer->strides[d]));
    /* Without elements nothing is reached; the last index would be negative. */
    return ir_select(cx, ir_gt(cx, product, ir_int(cx, 0)), ir_add(cx, last, ir_int(cx, 1)), ir_int(cx, 0));
}

int64_t lower_constant_elements(const ir_buffer *buffer)
{
    int64_t product = 1, extent;

    for (int i = 0; i < buffer->n; i++)
        if (!ir_is_int(buffer->shape[i], &extent) || __builtin_mul_overflow(product, extent, &product))
            return -1;
    return product;
}

/* ---- looking for a statement ---- */

typedef struct {
    ir_walk walk;
    bool (*is)(const ir_stmt *stmt);
    const ir_stmt *found;
} finder;

static bool look_at(ir_walk *walk, const ir_stmt *stmt)
{
    finder *f = (finder *)walk;

    if (!f->is(stmt))
        return true;
    f->found = stmt;
    walk->stop = true;
    return false;
}

const ir_stmt *lower_find_stmt(tec_context *cx, const ir_stmt *stmt, bool (*is)(const ir_stmt *))
{
    finder f = {.walk = {.cx = cx, .stmt = look_at, .expr = ir_skip_expr}, .is = is};

    ir_walk_stmt(&f.walk, stmt);
    return f.found;
}

/* ---- stores ---- */

typedef struct {
    ir_walk walk;
    base_map inside, *out;
} store_walk;

static void note_store(ir_walk *walk, const ir_buffer *buffer, const ir_expr *const *index, bool writes)
{
    store_walk *w = (store_walk *)walk;

    (void)index;
    if (writes && !base_map_has(&w->inside, buffer))
        base_map_put(walk->cx, w->out, buffer, (void *)(uintptr_t)buffer);
}

static bool note_allocation(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt->kind == IR_ALLOCATE)
        base_map_put(walk->cx, &((store_walk *)walk)->inside, stmt->allocate.buffer, (void *)(uintptr_t)stmt);
    return true;
}

void lower_stored_outside(tec_context *cx, const ir_stmt *stmt, base_map *out)
{
    store_walk w = {.walk = {.cx = cx, .stmt = note_allocation, .touch = note_store, .kinds = IR_KIND_ACCESS},
                    .out = out};

    ir_walk_stmt(&w.walk, stmt);
}

/* ---- names of blocks ---- */

typedef struct {
    ir_rewrite rw;
    base_dict holder; /* name -> the block that has it */
} namer;

/* A block that stands in several places is one node and keeps one name. */
static const ir_stmt *name_block(ir_rewrite *rw, const ir_stmt *stmt)
{
    namer *n = (namer *)rw;

    if (stmt->kind != IR_BLOCK)
        return ir_rewrite_stmt_children(rw, stmt);
    const char *name = stmt->block.block->name;
    for (int i = 2; base_dict_has(&n->holder, name) && base_dict_get(&n->holder, name) != stmt->block.block;
         i++)
        name = base_format(rw->cx, "%s'%d", stmt->block.block->name, i);
    base_dict_put(rw->cx, &n->holder, name, stmt->block.block);
    if (name == stmt->block.block->name)
        return stmt;
    ir_stmt *copy = ir_stmt_copy(rw->cx, stmt);
    ir_block *block = ir_block_copy(rw->cx, stmt->block.block);
    block->name = name;
    copy->block.block = block;
    return copy;
}

const ir_stmt *lower_name_blocks(tec_context *cx, const ir_stmt *stmt)
{
    namer n = {.rw = {.cx = cx, .stmt = name_block}};

    return stmt ? ir_rewrite_stmt(&n.rw, stmt) : NULL;
}
