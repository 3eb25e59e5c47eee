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

static const ir_stmt *simp_stmt(place *p, const ir_stmt *s);

static bool is_nothing(const ir_stmt *s)
{
    return s->kind == IR_SEQ && s->seq.n == 0;
}

/* A place with facts of its own above those of p. What is learned there ends with it. */
static place inside(place *p, ir_facts **f)
{
    *f = ir_facts_new(p->session.cx, p->session.f);
    return (place){.session = {.f = *f, .cx = p->session.cx, .common = p->session.common}, .tree = p->tree};
}

static bool find_block(ir_walk *w, const ir_stmt *s)
{
    if (s->kind == IR_BLOCK)
        w->every = true; /* found */
    return !w->every;
}

/* A walk that stops at the first block. */
static bool holds_block(tec_context *cx, const ir_stmt *s)
{
    ir_walk w = {.expr = ir_skip_expr, .stmt = find_block, .cx = cx};

    ir_walk_stmt(&w, s);
    return w.every;
}

/* All expressions of an array; the same array where nothing changed, NULL after an error. Nothing is copied
 * until the first element changes. */
static const ir_expr *const *simp_all(place *p, const ir_expr *const *e, int n)
{
    const ir_expr **out = NULL;

    for (int i = 0; i < n; i++) {
        const ir_expr *r = ir_simp(&p->session, e[i]);
        if (!r)
            return NULL;
        if (r == e[i] && !out)
            continue;
        if (!out)
            out = base_copy(p->session.cx, e, sizeof *e * (size_t)n);
        out[i] = r;
    }
    return out ? out : e;
}

/* ---- loops ---- */

typedef struct {
    ir_walk walk;
    const ir_expr *var;
    bool found;
} shape_search;

/* Whether a buffer that is allocated inside needs the variable for its shape, strides or offset. */
static bool shape_uses(ir_walk *w, const ir_stmt *s)
{
    shape_search *search = (shape_search *)w;

    if (s->kind == IR_ALLOCATE) {
        const ir_buffer *b = s->allocate.buffer;
        for (int i = 0; i < b->n && !search->found; i++)
            search->found = ir_mentions(b->shape[i], search->var) ||
                            (b->strides && ir_mentions(b->strides[i], search->var));
        search->found |= b->offset && ir_mentions(b->offset, search->var);
    }
    return !search->found;
}

/* Buffers keep their shapes here, so a loop whose variable a shape inside needs stays. Notes on the loop
 * would be lost with it, as would the name that a schedule may use. A loop that runs in parallel, as a vector
 * or on threads stays as well: later passes look for it. */
static bool can_replace(place *p, const ir_stmt *loop)
{
    shape_search search = {.walk = {.expr = ir_skip_expr, .stmt = shape_uses, .cx = p->session.cx},
                           .var = loop->loop.var};

    if (loop->loop.how != IR_SERIAL || loop->loop.notes ||
        (p->tree && holds_block(p->session.cx, loop->loop.body)))
        return false;
    ir_walk_stmt(&search.walk, loop->loop.body);
    return !search.found;
}

/* A loop with no iteration becomes nothing, a loop with one iteration its body; otherwise the range of the
 * variable is known inside. Inside the range is known together with "the loop runs", which is true for all
 * that is simplified there. */
static const ir_stmt *simp_for(place *p, const ir_stmt *s)
{
    const ir_expr *min = ir_simp(&p->session, s->loop.min), *extent = ir_simp(&p->session, s->loop.extent);
    ir_facts *f;
    place body = inside(p, &f);

    if (!min || !extent)
        return NULL;
    if (ir_bounds(p->session.f, extent).max <= 0)
        return ir_nothing(p->session.cx);
    if (ir_is_value(extent, 1) && can_replace(p, s)) {
        ir_facts_replace(f, s->loop.var, min);
        return simp_stmt(&body, s->loop.body);
    }
    ir_facts_range(f, s->loop.var, min, extent);
    const ir_stmt *inner = simp_stmt(&body, s->loop.body);
    if (!inner || is_nothing(inner))
        return inner;
    if (min == s->loop.min && extent == s->loop.extent && inner == s->loop.body)
        return s;
    return ir_for_like(p->session.cx, s, min, extent, inner);
}

/* ---- blocks ---- */

/* The declared region with simple bounds. It may say more than what the body touches now: nobody computes it
 * anew here, because schedules rely on what a block declares. */
static bool simp_region(place *p, const ir_region *r, ir_region *out, bool *changed)
{
    *out = *r;
    out->min = simp_all(p, r->min, r->buffer->n);
    out->extent = simp_all(p, r->extent, r->buffer->n);
    *changed |= out->min != r->min || out->extent != r->extent;
    return r->buffer->n == 0 || (out->min && out->extent);
}

/* NULL after an error; the same array where nothing changed. */
static const ir_region *simp_regions(place *p, const ir_region *r, int n)
{
    ir_region *out = base_array(p->session.cx, ir_region, n);
    bool changed = false;

    for (int i = 0; i < n; i++)
        if (!simp_region(p, r + i, out + i, &changed))
            return NULL;
    return changed ? out : r;
}

/* Of a block only its domain is known inside: where it stands may change later, what it says may not. The
 * block's own facts are the ranges of its variables, and the predicate over them. */
static const ir_block *simp_block_inside(place *p, const ir_block *b)
{
    const ir_stmt *init = b->init ? simp_stmt(p, b->init) : NULL, *body = simp_stmt(p, b->body);
    const ir_region *reads = simp_regions(p, b->reads, b->n_reads),
                    *writes = simp_regions(p, b->writes, b->n_writes);

    if (!body || (b->init && !init) || (b->n_reads && !reads) || (b->n_writes && !writes))
        return NULL;
    if (init == b->init && body == b->body && reads == b->reads && writes == b->writes)
        return b;
    ir_block *copy = ir_block_copy(p->session.cx, b);
    copy->init = init;
    copy->body = body;
    copy->reads = reads;
    copy->writes = writes;
    return copy;
}

/* The predicate `where` is known inside the block only through the bindings: an instance of the block runs
 * only where it holds. */
static const ir_stmt *simp_block(place *p, const ir_stmt *s)
{
    const ir_block *b = s->block.block;
    const ir_expr *const *bind = simp_all(p, s->block.bind, b->n_iters);
    const ir_expr *where = s->block.where ? ir_simp(&p->session, s->block.where) : NULL;
    ir_facts *f;
    place body = inside(p, &f);

    if ((b->n_iters && !bind) || (s->block.where && !where))
        return NULL;
    if (where && ir_is_int(where, &(int64_t){0}) && !ir_is_true(where))
        return ir_nothing(p->session.cx);
    if (where && ir_is_true(where))
        where = NULL;
    if (where)
        ir_facts_learn(f, where, true);
    for (int i = 0; i < b->n_iters; i++)
        ir_facts_range(f, b->iters[i].var, ir_int(p->session.cx, 0), b->iters[i].extent);
    const ir_block *inner = simp_block_inside(&body, b);
    if (!inner)
        return NULL;
    if (inner == b && bind == s->block.bind && where == s->block.where)
        return s;
    return ir_block_stmt(p->session.cx, inner, bind, where);
}

/* ---- leaves ---- */

/* A store whose mask is never true stores nothing; one whose mask is always true needs no mask. */
static const ir_stmt *simp_store(place *p, const ir_stmt *s)
{
    const ir_expr *const *index = simp_all(p, s->store.index, s->store.n);
    const ir_expr *value = ir_simp(&p->session, s->store.value), *mask = ir_simp(&p->session, s->store.mask);

    if ((s->store.n && !index) || !value || (s->store.mask && !mask))
        return NULL;
    if (mask && ir_is_int(mask, &(int64_t){0}) && !ir_is_true(mask))
        return ir_nothing(p->session.cx);
    if (mask && ir_is_true(mask))
        mask = NULL;
    if (index == s->store.index && value == s->store.value && mask == s->store.mask)
        return s;
    return mask ? ir_store_masked(p->session.cx, s->store.buffer, value, index, s->store.n, mask)
                : ir_store(p->session.cx, s->store.buffer, value, index, s->store.n);
}

/* Sources and indices are simplified; whether an update has an effect is not asked, since a combiner may be
 * anything. */
static const ir_stmt *simp_update(place *p, const ir_stmt *s)
{
    const ir_combiner *c = s->update.combiner;
    const ir_expr *const *index = simp_all(p, s->update.index, s->update.n);
    const ir_expr *const *source = simp_all(p, s->update.source, c->n);

    if ((s->update.n && !index) || !source)
        return NULL;
    if (index == s->update.index && source == s->update.source)
        return s;
    return ir_update(p->session.cx, c, s->update.buffer, index, s->update.n, source);
}

/* A value that neither reads memory nor calls anything has no effect, so the statement goes. */
static const ir_stmt *simp_evaluate(place *p, const ir_stmt *s)
{
    const ir_expr *value = ir_simp(&p->session, s->value);

    if (!value)
        return NULL;
    if (!ir_loads(p->session.cx, value))
        return ir_nothing(p->session.cx);
    return value == s->value ? s : ir_evaluate(p->session.cx, value);
}

/* An assertion that always holds goes; one that never does stays, to be reported when it is reached. */
static const ir_stmt *simp_assert(place *p, const ir_stmt *s)
{
    const ir_expr *cond = ir_simp(&p->session, s->check.cond);

    if (!cond)
        return NULL;
    if (ir_is_true(cond))
        return ir_nothing(p->session.cx);
    return cond == s->check.cond ? s : ir_assert(p->session.cx, cond, s->check.message);
}

/* ---- nesting ---- */

/* A value that reads memory is not substituted for its variable: memory may change between the let and the
 * use. The let goes where the value replaced every use of the variable. */
static const ir_stmt *simp_let(place *p, const ir_stmt *s)
{
    const ir_expr *value = ir_simp(&p->session, s->let.value);
    ir_facts *f;
    place body = inside(p, &f);

    if (!value)
        return NULL;
    if (!ir_loads(p->session.cx, value))
        ir_facts_value(f, s->let.var, value);
    const ir_stmt *inner = simp_stmt(&body, s->let.body);
    if (!inner || is_nothing(inner))
        return inner;
    const ir_var_fact *known = ir_fact_of(f, s->let.var);
    if (known && known->replace && !ir_stmt_uses_var(p->session.cx, inner, s->let.var))
        return inner;
    return value == s->let.value && inner == s->let.body
               ? s
               : ir_let_stmt(p->session.cx, s->let.var, value, inner);
}

/* The branch under the condition or its negation; an absent branch is an empty statement. */
static const ir_stmt *simp_branch(place *p, const ir_stmt *s, const ir_expr *cond, bool holds)
{
    ir_facts *f;
    place under = inside(p, &f);

    if (!s)
        return ir_nothing(p->session.cx);
    ir_facts_learn(f, cond, holds);
    return simp_stmt(&under, s);
}

/* Each branch is simplified under the condition or its negation. With only an else branch left the condition
 * is turned round. The condition is written once; if both branches go, it has no effect and goes too. */
static const ir_stmt *simp_if(place *p, const ir_stmt *s)
{
    const ir_expr *cond = ir_simp(&p->session, s->branch.cond);
    int64_t literal;

    if (!cond)
        return NULL;
    if (ir_is_int(cond, &literal)) {
        const ir_stmt *taken = literal ? s->branch.then : s->branch.otherwise;
        return taken ? simp_stmt(p, taken) : ir_nothing(p->session.cx);
    }
    const ir_stmt *then = simp_branch(p, s->branch.then, cond, true),
                  *otherwise = simp_branch(p, s->branch.otherwise, cond, false);
    if (!then || !otherwise)
        return NULL;
    if (is_nothing(otherwise))
        otherwise = NULL;
    if (is_nothing(then) && !otherwise)
        return then;
    if (is_nothing(then))
        return ir_if(p->session.cx, ir_simp(&p->session, ir_not(p->session.cx, cond)), otherwise, NULL);
    if (cond == s->branch.cond && then == s->branch.then && otherwise == s->branch.otherwise)
        return s;
    return ir_if(p->session.cx, cond, then, otherwise);
}

/* What an assert checks holds for all that follows it. The facts of an assert are a level of their own for
 * the statements behind it:
 *
 *     assert n % 4 == 0;  for i in 0..n//4 { A[i*4] = 0 }  if n % 4 == 0 { B[0] = 1 }
 *     =>                  the `if` goes, and B[0] = 1 stays
 *
 * In front of the assert the same `if` would stay. */
static const ir_stmt *simp_seq(place *p, const ir_stmt *s)
{
    const ir_stmt **out = base_array(p->session.cx, const ir_stmt *, s->seq.n);
    place after_assert, *here = p;
    bool changed = false;
    int n = 0;

    for (int i = 0; i < s->seq.n; i++) {
        const ir_stmt *r = simp_stmt(here, s->seq.stmt[i]);
        if (!r)
            return NULL;
        changed |= r != s->seq.stmt[i];
        if (is_nothing(r))
            continue;
        out[n++] = r;
        if (r->kind == IR_ASSERT) {
            ir_facts *f;
            after_assert = inside(here, &f);
            here = &after_assert;
            ir_facts_learn(f, r->check.cond, true);
        }
    }
    return changed ? ir_seq(p->session.cx, out, n) : s;
}

/* The buffer of a body that does nothing is not needed. A buffer that nobody reads stays: stores to it are
 * effects. */
static const ir_stmt *simp_allocate(place *p, const ir_stmt *s)
{
    const ir_stmt *body = simp_stmt(p, s->allocate.body);

    if (!body || is_nothing(body) || body == s->allocate.body)
        return !body || is_nothing(body) ? body : s;
    ir_stmt *copy = ir_stmt_copy(p->session.cx, s);
    copy->allocate.body = body;
    return copy;
}

/* What the attribute says of an empty body says nothing. */
static const ir_stmt *simp_attribute(place *p, const ir_stmt *s)
{
    const ir_expr *value = ir_simp(&p->session, s->attribute.value);
    const ir_stmt *body = simp_stmt(p, s->attribute.body);

    if (!body || (s->attribute.value && !value) || is_nothing(body))
        return body;
    if (value == s->attribute.value && body == s->attribute.body)
        return s;
    return ir_attribute(p->session.cx, s->attribute.key, value, body);
}

/* One function per kind of statement; without `default`, so that the compiler names the place where a new
 * kind is missing. */
static const ir_stmt *simp_kind(place *p, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: return simp_for(p, s);
    case IR_BLOCK: return simp_block(p, s);
    case IR_STORE: return simp_store(p, s);
    case IR_UPDATE: return simp_update(p, s);
    case IR_LET_STMT: return simp_let(p, s);
    case IR_ALLOCATE: return simp_allocate(p, s);
    case IR_IF: return simp_if(p, s);
    case IR_SEQ: return simp_seq(p, s);
    case IR_ASSERT: return simp_assert(p, s);
    case IR_ATTRIBUTE: return simp_attribute(p, s);
    case IR_EVALUATE: return simp_evaluate(p, s);
    }
    return NULL;
}

/* One statement, with its place as the place of all that is made for it: an error names the user's line, and
 * so does the profile of the code that comes of it. */
static const ir_stmt *simp_stmt(place *p, const ir_stmt *s)
{
    if (!s)
        return NULL;
    base_loc where = base_where(p->session.cx);
    ir_at(p->session.cx, s->loc);
    const ir_stmt *r = simp_kind(p, s);
    ir_at(p->session.cx, where);
    return r;
}

const ir_stmt *ir_simplify_stmt(const ir_facts *f, const ir_stmt *s)
{
    if (!s)
        return NULL;
    ir_results common = {.equal.cx = f->cx};
    place p = {.session = {.f = f, .cx = f->cx, .common = &common}, .tree = holds_block(f->cx, s)};

    return simp_stmt(&p, s);
}
