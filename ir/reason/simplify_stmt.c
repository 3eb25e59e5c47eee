/* ir/reason/simplify_stmt.c -- simplifies all expressions of a statement with what loops, lets, conditions,
 * asserts and blocks say.
 *
 *     for i in 0..16 {                         for i in 0..16 {
 *       if i < 20 { A[i//4*4 + i%4] = 0 }  =>    A[i] = 0
 *     }                                        }
 *
 * Branches that cannot be taken, loops that do not run and statements without effect go. A serial loop that
 * runs once is replaced by its body, unless it holds a block: in a loop tree unit loops stay, since schedules
 * name them.
 *
 * The order of facts. A condition holds for its branch, an assert for what follows in its sequence, a loop's
 * range and "the loop runs" for its body. A let's value holds for its body unless it reads memory. Nothing
 * goes upwards: what a branch has learned says nothing of the statements behind the `if`.
 */
#include "ir/reason/reason.h"

/* The facts of one point of the program. Results are common to all places (`session.common`), under the
 * version of the facts that they were found with. */
typedef struct {
    ir_session session;
    bool tree; /* blocks are somewhere in the statement that was asked for */
} place;

static const ir_stmt *simp_stmt(place *at, const ir_stmt *stmt);

static bool is_nothing(const ir_stmt *stmt)
{
    return stmt->kind == IR_SEQ && stmt->seq.n == 0;
}

/* A place with facts of its own above those of at. What is learned there ends with it. */
static place inside(place *at, ir_facts **facts)
{
    *facts = ir_facts_new(at->session.cx, at->session.f);
    return (place){.session = {.f = *facts, .cx = at->session.cx, .common = at->session.common},
                   .tree = at->tree};
}

static bool find_block(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt->kind == IR_BLOCK)
        walk->every = true; /* found */
    return !walk->every;
}

/* A walk that stops at the first block. */
static bool holds_block(tec_context *cx, const ir_stmt *stmt)
{
    ir_walk w = {.expr = ir_skip_expr, .stmt = find_block, .cx = cx};

    ir_walk_stmt(&w, stmt);
    return w.every;
}

/* All expressions of an array; the same array where nothing changed, NULL after an error. Nothing is copied
 * until the first element changes. */
static const ir_expr *const *simp_all(place *at, const ir_expr *const *expr, int count)
{
    const ir_expr **out = NULL;

    for (int i = 0; i < count; i++) {
        const ir_expr *r = ir_simp(&at->session, expr[i]);
        if (!r)
            return NULL;
        if (r == expr[i] && !out)
            continue;
        if (!out)
            out = base_copy(at->session.cx, expr, sizeof *expr * (size_t)count);
        out[i] = r;
    }
    return out ? out : expr;
}

/* ---- loops ---- */

typedef struct {
    ir_walk walk;
    const ir_expr *var;
    bool found;
} shape_search;

/* Whether a buffer that is allocated inside needs the variable for its shape, strides or offset. */
static bool shape_uses(ir_walk *walk, const ir_stmt *stmt)
{
    shape_search *search = (shape_search *)walk;

    if (stmt->kind == IR_ALLOCATE) {
        const ir_buffer *buffer = stmt->allocate.buffer;
        for (int i = 0; i < buffer->n && !search->found; i++)
            search->found = ir_mentions(buffer->shape[i], search->var) ||
                            (buffer->strides && ir_mentions(buffer->strides[i], search->var));
        search->found |= buffer->offset && ir_mentions(buffer->offset, search->var);
    }
    return !search->found;
}

/* Buffers keep their shapes here, so a loop whose variable a shape inside needs stays. Notes on the loop
 * would be lost with it, as would the name that a schedule may use. A loop that runs in parallel, as a vector
 * or on threads stays as well: later passes look for it. */
static bool can_replace(place *at, const ir_stmt *loop)
{
    shape_search search = {.walk = {.expr = ir_skip_expr, .stmt = shape_uses, .cx = at->session.cx},
                           .var = loop->loop.var};

    if (loop->loop.how != IR_SERIAL || loop->loop.notes ||
        (at->tree && holds_block(at->session.cx, loop->loop.body)))
        return false;
    ir_walk_stmt(&search.walk, loop->loop.body);
    return !search.found;
}

/* A loop with no iteration becomes nothing, a loop with one iteration its body; otherwise the range of the
 * variable is known inside. Inside the range is known together with "the loop runs", which is true for all
 * that is simplified there. */
static const ir_stmt *simp_for(place *at, const ir_stmt *stmt)
{
    const ir_expr *min = ir_simp(&at->session, stmt->loop.min),
                  *extent = ir_simp(&at->session, stmt->loop.extent);
    ir_facts *facts;
    place body = inside(at, &facts);

    if (!min || !extent)
        return NULL;
    if (ir_bounds(at->session.f, extent).max <= 0)
        return ir_nothing(at->session.cx);
    if (ir_is_value(extent, 1) && can_replace(at, stmt)) {
        ir_facts_replace(facts, stmt->loop.var, min);
        return simp_stmt(&body, stmt->loop.body);
    }
    ir_facts_range(facts, stmt->loop.var, min, extent);
    const ir_stmt *inner = simp_stmt(&body, stmt->loop.body);
    if (!inner || is_nothing(inner))
        return inner;
    if (min == stmt->loop.min && extent == stmt->loop.extent && inner == stmt->loop.body)
        return stmt;
    return ir_for_like(at->session.cx, stmt, min, extent, inner);
}

/* ---- blocks ---- */

/* The declared region with simple bounds. It may say more than what the body touches now: nobody computes it
 * anew here, because schedules rely on what a block declares. */
static bool simp_region(place *at, const ir_region *region, ir_region *out, bool *changed)
{
    *out = *region;
    out->min = simp_all(at, region->min, region->buffer->n);
    out->extent = simp_all(at, region->extent, region->buffer->n);
    *changed |= out->min != region->min || out->extent != region->extent;
    return region->buffer->n == 0 || (out->min && out->extent);
}

/* NULL after an error; the same array where nothing changed. */
static const ir_region *simp_regions(place *at, const ir_region *region, int n)
{
    ir_region *out = base_array(at->session.cx, ir_region, n);
    bool changed = false;

    for (int i = 0; i < n; i++)
        if (!simp_region(at, region + i, out + i, &changed))
            return NULL;
    return changed ? out : region;
}

/* Of a block only its domain is known inside: where it stands may change later, what it says may not. The
 * block's own facts are the ranges of its variables, and the predicate over them. */
static const ir_block *simp_block_inside(place *at, const ir_block *block)
{
    const ir_stmt *init = block->init ? simp_stmt(at, block->init) : NULL, *body = simp_stmt(at, block->body);
    const ir_region *reads = simp_regions(at, block->reads, block->n_reads),
                    *writes = simp_regions(at, block->writes, block->n_writes);

    if (!body || (block->init && !init) || (block->n_reads && !reads) || (block->n_writes && !writes))
        return NULL;
    if (init == block->init && body == block->body && reads == block->reads && writes == block->writes)
        return block;
    ir_block *copy = ir_block_copy(at->session.cx, block);
    copy->init = init;
    copy->body = body;
    copy->reads = reads;
    copy->writes = writes;
    return copy;
}

/* The predicate `where` is known inside the block only through the bindings: an instance of the block runs
 * only where it holds. */
static const ir_stmt *simp_block(place *at, const ir_stmt *stmt)
{
    const ir_block *block = stmt->block.block;
    const ir_expr *const *bind = simp_all(at, stmt->block.bind, block->n_iters);
    const ir_expr *where = stmt->block.where ? ir_simp(&at->session, stmt->block.where) : NULL;
    ir_facts *facts;
    place body = inside(at, &facts);

    if ((block->n_iters && !bind) || (stmt->block.where && !where))
        return NULL;
    if (where && ir_is_int(where, &(int64_t){0}) && !ir_is_true(where))
        return ir_nothing(at->session.cx);
    if (where && ir_is_true(where))
        where = NULL;
    if (where)
        ir_facts_learn(facts, where, true);
    for (int i = 0; i < block->n_iters; i++)
        ir_facts_range(facts, block->iters[i].var, ir_int(at->session.cx, 0), block->iters[i].extent);
    const ir_block *inner = simp_block_inside(&body, block);
    if (!inner)
        return NULL;
    if (inner == block && bind == stmt->block.bind && where == stmt->block.where)
        return stmt;
    return ir_block_stmt(at->session.cx, inner, bind, where);
}

/* ---- leaves ---- */

/* A store whose mask is never true stores nothing; one whose mask is always true needs no mask. */
static const ir_stmt *simp_store(place *at, const ir_stmt *stmt)
{
    const ir_expr *const *index = simp_all(at, stmt->store.index, stmt->store.n);
    const ir_expr *value = ir_simp(&at->session, stmt->store.value),
                  *mask = ir_simp(&at->session, stmt->store.mask);

    if ((stmt->store.n && !index) || !value || (stmt->store.mask && !mask))
        return NULL;
    if (mask && ir_is_int(mask, &(int64_t){0}) && !ir_is_true(mask))
        return ir_nothing(at->session.cx);
    if (mask && ir_is_true(mask))
        mask = NULL;
    if (index == stmt->store.index && value == stmt->store.value && mask == stmt->store.mask)
        return stmt;
    return mask ? ir_store_masked(at->session.cx, stmt->store.buffer, value, index, stmt->store.n, mask)
                : ir_store(at->session.cx, stmt->store.buffer, value, index, stmt->store.n);
}

/* Sources and indices are simplified; whether an update has an effect is not asked, since a combiner may be
 * anything. */
static const ir_stmt *simp_update(place *at, const ir_stmt *stmt)
{
    const ir_combiner *combiner = stmt->update.combiner;
    const ir_expr *const *index = simp_all(at, stmt->update.index, stmt->update.n);
    const ir_expr *const *source = simp_all(at, stmt->update.source, combiner->n);

    if ((stmt->update.n && !index) || !source)
        return NULL;
    if (index == stmt->update.index && source == stmt->update.source)
        return stmt;
    return ir_update(at->session.cx, combiner, stmt->update.buffer, index, stmt->update.n, source);
}

/* A value that neither reads memory nor calls anything has no effect, so the statement goes. */
static const ir_stmt *simp_evaluate(place *at, const ir_stmt *stmt)
{
    const ir_expr *value = ir_simp(&at->session, stmt->value);

    if (!value)
        return NULL;
    if (!ir_loads(at->session.cx, value))
        return ir_nothing(at->session.cx);
    return value == stmt->value ? stmt : ir_evaluate(at->session.cx, value);
}

/* An assertion that always holds goes; one that never does stays, to be reported when it is reached. */
static const ir_stmt *simp_assert(place *at, const ir_stmt *stmt)
{
    const ir_expr *cond = ir_simp(&at->session, stmt->check.cond);

    if (!cond)
        return NULL;
    if (ir_is_true(cond))
        return ir_nothing(at->session.cx);
    return cond == stmt->check.cond ? stmt : ir_assert(at->session.cx, cond, stmt->check.message);
}

/* ---- nesting ---- */

/* A value that reads memory is not substituted for its variable: memory may change between the let and the
 * use. The let goes where the value replaced every use of the variable. */
static const ir_stmt *simp_let(place *at, const ir_stmt *stmt)
{
    const ir_expr *value = ir_simp(&at->session, stmt->let.value);
    ir_facts *facts;
    place body = inside(at, &facts);

    if (!value)
        return NULL;
    if (!ir_loads(at->session.cx, value))
        ir_facts_value(facts, stmt->let.var, value);
    const ir_stmt *inner = simp_stmt(&body, stmt->let.body);
    if (!inner || is_nothing(inner))
        return inner;
    const ir_var_fact *known = ir_fact_of(facts, stmt->let.var);
    if (known && known->replace && !ir_stmt_uses_var(at->session.cx, inner, stmt->let.var))
        return inner;
    return value == stmt->let.value && inner == stmt->let.body
               ? stmt
               : ir_let_stmt(at->session.cx, stmt->let.var, value, inner);
}

/* The branch under the condition or its negation; an absent branch is an empty statement. */
static const ir_stmt *simp_branch(place *at, const ir_stmt *stmt, const ir_expr *cond, bool holds)
{
    ir_facts *f;
    place under = inside(at, &f);

    if (!stmt)
        return ir_nothing(at->session.cx);
    ir_facts_learn(f, cond, holds);
    return simp_stmt(&under, stmt);
}

/* Each branch is simplified under the condition or its negation. With only an else branch left the condition
 * is turned round. The condition is written once; if both branches go, it has no effect and goes too. */
static const ir_stmt *simp_if(place *at, const ir_stmt *stmt)
{
    const ir_expr *cond = ir_simp(&at->session, stmt->branch.cond);
    int64_t literal;

    if (!cond)
        return NULL;
    if (ir_is_int(cond, &literal)) {
        const ir_stmt *taken = literal ? stmt->branch.then : stmt->branch.otherwise;
        return taken ? simp_stmt(at, taken) : ir_nothing(at->session.cx);
    }
    const ir_stmt *then = simp_branch(at, stmt->branch.then, cond, true),
                  *otherwise = simp_branch(at, stmt->branch.otherwise, cond, false);
    if (!then || !otherwise)
        return NULL;
    if (is_nothing(otherwise))
        otherwise = NULL;
    if (is_nothing(then) && !otherwise)
        return then;
    if (is_nothing(then))
        return ir_if(at->session.cx, ir_simp(&at->session, ir_not(at->session.cx, cond)), otherwise, NULL);
    if (cond == stmt->branch.cond && then == stmt->branch.then && otherwise == stmt->branch.otherwise)
        return stmt;
    return ir_if(at->session.cx, cond, then, otherwise);
}

/* What an assert checks holds for all that follows it. The facts of an assert are a level of their own for
 * the statements behind it:
 *
 *     assert n % 4 == 0;  for i in 0..n//4 { A[i*4] = 0 }  if n % 4 == 0 { B[0] = 1 }
 *     =>                  the `if` goes, and B[0] = 1 stays
 *
 * In front of the assert the same `if` would stay. */
static const ir_stmt *simp_seq(place *at, const ir_stmt *stmt)
{
    const ir_stmt **out = base_array(at->session.cx, const ir_stmt *, stmt->seq.n);
    place after_assert, *here = at;
    bool changed = false;
    int n = 0;

    for (int i = 0; i < stmt->seq.n; i++) {
        const ir_stmt *r = simp_stmt(here, stmt->seq.stmt[i]);
        if (!r)
            return NULL;
        changed |= r != stmt->seq.stmt[i];
        if (is_nothing(r))
            continue;
        out[n++] = r;
        if (r->kind == IR_ASSERT) {
            ir_facts *facts;
            after_assert = inside(here, &facts);
            here = &after_assert;
            ir_facts_learn(facts, r->check.cond, true);
        }
    }
    return changed ? ir_seq(at->session.cx, out, n) : stmt;
}

/* The buffer of a body that does nothing is not needed. A buffer that nobody reads stays: stores to it are
 * effects. */
static const ir_stmt *simp_allocate(place *at, const ir_stmt *stmt)
{
    const ir_stmt *body = simp_stmt(at, stmt->allocate.body);

    if (!body || is_nothing(body) || body == stmt->allocate.body)
        return !body || is_nothing(body) ? body : stmt;
    ir_stmt *copy = ir_stmt_copy(at->session.cx, stmt);
    copy->allocate.body = body;
    return copy;
}

/* What the attribute says of an empty body says nothing. */
static const ir_stmt *simp_attribute(place *at, const ir_stmt *stmt)
{
    const ir_expr *value = ir_simp(&at->session, stmt->attribute.value);
    const ir_stmt *body = simp_stmt(at, stmt->attribute.body);

    if (!body || (stmt->attribute.value && !value) || is_nothing(body))
        return body;
    if (value == stmt->attribute.value && body == stmt->attribute.body)
        return stmt;
    return ir_attribute(at->session.cx, stmt->attribute.key, value, body);
}

/* One function per kind of statement; without `default`, so that the compiler names the place where a new
 * kind is missing. */
static const ir_stmt *simp_kind(place *at, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: return simp_for(at, stmt);
    case IR_BLOCK: return simp_block(at, stmt);
    case IR_STORE: return simp_store(at, stmt);
    case IR_UPDATE: return simp_update(at, stmt);
    case IR_LET_STMT: return simp_let(at, stmt);
    case IR_ALLOCATE: return simp_allocate(at, stmt);
    case IR_IF: return simp_if(at, stmt);
    case IR_SEQ: return simp_seq(at, stmt);
    case IR_ASSERT: return simp_assert(at, stmt);
    case IR_ATTRIBUTE: return simp_attribute(at, stmt);
    case IR_EVALUATE: return simp_evaluate(at, stmt);
    }
    return NULL;
}

/* One statement, with its place as the place of all that is made for it: an error names the user's line, and
 * so does the profile of the code that comes of it. */
static const ir_stmt *simp_stmt(place *at, const ir_stmt *stmt)
{
    if (!stmt)
        return NULL;
    base_loc where = base_where(at->session.cx);
    ir_at(at->session.cx, stmt->loc);
    const ir_stmt *r = simp_kind(at, stmt);
    ir_at(at->session.cx, where);
    return r;
}

/* `tree` says that blocks are left: then loops that are not known to run must not teach that they do. */
const ir_stmt *ir_simplify_stmt(const ir_facts *facts, const ir_stmt *stmt)
{
    if (!stmt)
        return NULL;
    ir_results common = {.equal.cx = facts->cx};
    place p = {.session = {.f = facts, .cx = facts->cx, .common = &common},
               .tree = holds_block(facts->cx, stmt)};

    return simp_stmt(&p, stmt);
}
