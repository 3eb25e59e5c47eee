/* lower/trim.c -- turns predicates into loop bounds, so that padding taps and tails are skipped and not
 * tested inside.
 *
 *     for ky in 0..3 {                                      for ky in max(0, 1 - y)..min(3, H + 1 - y) {
 *       for x in 0..W {                                 =>    for x in 0..W { C[x] = C[x] + A[y + ky - 1,
 *                                                               x] }
 *         if 0 <= y + ky - 1 && y + ky - 1 < H { ... }      }
 *     } }
 *
 * requires  no block is left
 * provides  no conjunct that is linear in the variable of a serial or parallel loop stands directly inside
 *           it; the others stand as far outside as their variables allow
 * breaks    loops that started at 0 may start elsewhere
 *
 * From the inside out: the conjuncts that do not use a loop's variable move out of it, the linear ones become
 * bounds. Statements in sequence under a common conjunct are put under it together, so that it goes on
 * moving. A conjunct that loads stays where it is; one that may divide by zero where its loop is empty stays
 * inside. A vectorised or unrolled loop is trimmed only where its bounds stay constant; a loop over threads
 * never, nor one inside of which threads meet to bounds that differ between them.
 *
 * A worked example: W = 8, H = 8, the conjuncts 0 <= y + ky - 1 and y + ky - 1 < H stand in loop x, in ky, in
 * y.
 *
 *     loop x     neither conjunct uses x: both move out of it
 *     loop ky    solved for ky: ky >= 1 - y and ky < 9 - y; the loop runs over max(0, 1 - y)..min(3, 9 - y)
 *     loop y     nothing is left to move
 *
 * At y = 0 the loop starts at 1, at y = 7 it ends at 2: the taps on the padding are not run. A conjunct that
 * loads, such as `i < L[y]`, must stay where it is, because a store between might change L[y]. One that
 * divides by n must not move out of a loop of n iterations: for n = 0 it was never evaluated.
 */
#include "lower/differ.h"

typedef struct {
    base_map differ; /* lower/differ.h; empty for CPUs */
} trimmer;

static const ir_stmt *visit(void *user, const ir_facts *facts, const ir_stmt *stmt);

/* stmt as `if conjuncts { inner }`: its own conjuncts are added, what is left is given back. An else keeps an
 * if whole. Nested ifs become one list of conjuncts. */
static const ir_stmt *take_if(tec_context *cx, const ir_stmt *stmt, base_vec *conjuncts)
{
    if (stmt->kind != IR_IF || stmt->branch.otherwise || stmt->branch.cond->dtype.lanes > 1)
        return stmt;
    ir_conjuncts(cx, stmt->branch.cond, IR_DROP_LIKELY, conjuncts);
    return take_if(cx, stmt->branch.then, conjuncts);
}

static const ir_stmt *guarded(tec_context *cx, const base_vec *conjuncts, const ir_stmt *stmt)
{
    const ir_expr *all = ir_conjoin(cx, conjuncts);

    return all ? ir_if(cx, all, stmt, NULL) : stmt;
}

/* The conjuncts that may stand outside s, where facts holds, go to `out`, the others to `in`. A conjunct may
 * leave a loop if it does not use the loop's variable, loads nothing and cannot fail. */
static void part(const ir_facts *facts, const base_vec *all, const ir_expr *var, base_vec *out, base_vec *in)
{
    tec_context *cx = ir_facts_context(facts);

    for (int i = 0; i < all->n; i++) {
        const ir_expr *c = all->at[i];

        base_push(cx,
                  (var && ir_uses_var(cx, c, var)) || ir_loads(cx, c) || lower_may_fail(facts, c) ? in : out,
                  c);
    }
}

/* ---- loops ---- */

typedef struct {
    const ir_expr *min, *end;
    bool changed;
} bounds;

/* By kind of loop: threads exist whether or not they have something to do, so their loops keep their
 * bounds. */
static bool may_trim(const ir_stmt *loop, const bounds *ends, const ir_expr *extent)
{
    int64_t k;

    switch (loop->loop.how) {
    case IR_SERIAL:
    case IR_PARALLEL: return true;
    case IR_VECTORISED:
    case IR_UNROLLED: return ir_is_int(ends->min, &k) && ir_is_int(extent, &k);
    case IR_BLOCK_X:
    case IR_BLOCK_Y:
    case IR_BLOCK_Z:
    case IR_THREAD_X:
    case IR_THREAD_Y:
    case IR_THREAD_Z:
    case IR_VTHREAD:
    case IR_N_HOWS: break;
    }
    return false;
}

/* Takes the bounds of one conjunct into ends; false where it is not linear in the loop's variable, or where
 * threads that hand over would part. */
static bool tighten(const trimmer *self, const ir_facts *inside, const ir_expr *conjunct, const ir_stmt *loop,
                    bounds *ends)
{
    tec_context *cx = ir_facts_context(inside);
    lower_interval i;

    if (!lower_solve(inside, conjunct, loop->loop.var, NULL, &i) ||
        lower_parts_exchange(cx, &self->differ, i.lo, i.hi, loop->loop.body))
        return false;
    if (i.lo)
        ends->min = ir_max(cx, ends->min, i.lo);
    if (i.hi)
        ends->end =
            ir_min(cx, ends->end, BASE_PLANT_ON(cx, trim_bound) ? ir_sub(cx, i.hi, ir_int(cx, 1)) : i.hi);
    ends->changed = true;
    return true;
}

/* The loop over what the conjuncts `in` leave of it; those that are no bounds stay inside. Where the new
 * bounds are not allowed, the loop stays, with all its conjuncts inside. */
static const ir_stmt *trim_loop(const trimmer *self, const ir_facts *facts, const ir_stmt *loop,
                                const base_vec *in, const ir_stmt *body)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_facts *inside = lower_inside(facts, loop);
    bounds b = {.min = loop->loop.min, .end = ir_add(cx, loop->loop.min, loop->loop.extent)};
    base_vec rest = {0};

    for (int i = 0; i < in->n; i++)
        if (ir_loads(cx, in->at[i]) || lower_may_fail(facts, in->at[i]) ||
            !tighten(self, inside, in->at[i], loop, &b))
            base_push(cx, &rest, in->at[i]);
    if (b.changed) {
        b.min = ir_simplify(facts, b.min);
        const ir_expr *extent = ir_simplify(facts, lower_extent(facts, b.min, b.end));

        if (may_trim(loop, &b, extent))
            return ir_for_like(cx, loop, b.min, extent, guarded(cx, &rest, body));
    }
    return lower_with_inner(cx, loop, guarded(cx, in, body));
}

/* The body is visited first, so that conjuncts from deep inside have already come up to its top. */
static const ir_stmt *visit_loop(trimmer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_stmt *body = visit(self, lower_inside(facts, stmt), stmt->loop.body);
    base_vec all = {0}, out = {0}, in = {0};

    if (!body)
        return NULL;
    const ir_stmt *inner = take_if(cx, body, &all);
    if (all.n == 0)
        return lower_with_inner(cx, stmt, body);
    part(facts, &all, stmt->loop.var, &out, &in);
    if (in.n == 0)
        return guarded(cx, &out, lower_with_inner(cx, stmt, inner));
    return guarded(cx, &out, trim_loop(self, facts, stmt, &in, inner));
}

/* ---- other statements ---- */

/* Lets and allocations let conjuncts pass; the value of a let is evaluated under them then, which only asks
 * for less. An attribute keeps everything inside: it says something about the whole statement below. */
static const ir_stmt *visit_scope(trimmer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_stmt *body = visit(self, lower_inside(facts, stmt), lower_inner(stmt));
    base_vec all = {0}, out = {0}, in = {0};

    if (!body)
        return NULL;
    const ir_stmt *inner = take_if(cx, body, &all);
    part(facts, &all, stmt->kind == IR_LET_STMT ? stmt->let.var : NULL, &out, &in);
    if (out.n == 0 || stmt->kind == IR_ATTRIBUTE)
        return lower_with_inner(cx, stmt, body);
    return guarded(cx, &out, lower_with_inner(cx, stmt, guarded(cx, &in, inner)));
}

/* Compared word for word. */
static bool among(const base_vec *conjuncts, const ir_expr *cond)
{
    for (int i = 0; i < conjuncts->n; i++)
        if (ir_same(conjuncts->at[i], cond))
            return true;
    return false;
}

/* A sequence of ifs that share conjuncts: these go around the whole. Where one of the statements is no `if`,
 * nothing is common to all. */
static const ir_stmt *factor(tec_context *cx, const ir_stmt *statement)
{
    base_vec *own = base_array(cx, base_vec, statement->seq.n), common = {0};
    const ir_stmt **stmt = base_array(cx, const ir_stmt *, statement->seq.n);

    for (int i = 0; i < statement->seq.n; i++) {
        stmt[i] = take_if(cx, statement->seq.stmt[i], &own[i]);
        if (own[i].n == 0)
            return statement;
    }
    for (int j = 0; j < own[0].n; j++) {
        bool all = !ir_loads(cx, own[0].at[j]);

        for (int i = 1; i < statement->seq.n; i++)
            all &= among(&own[i], own[0].at[j]);
        if (all)
            base_push(cx, &common, own[0].at[j]);
    }
    if (common.n == 0)
        return statement;
    for (int i = 0; i < statement->seq.n; i++) {
        base_vec rest = {0};

        for (int j = 0; j < own[i].n; j++)
            if (!among(&common, own[i].at[j]))
                base_push(cx, &rest, own[i].at[j]);
        stmt[i] = guarded(cx, &rest, stmt[i]);
    }
    return guarded(cx, &common, ir_seq(cx, stmt, statement->seq.n));
}

/* Facts go down, conjuncts come up; what the statements of a sequence have in common moves around it. */
static const ir_stmt *visit(void *user, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = ir_facts_context(facts);

    ir_at(cx, stmt->loc);
    if (stmt->kind == IR_FOR)
        return visit_loop(user, facts, stmt);
    if (lower_inner(stmt))
        return visit_scope(user, facts, stmt);
    const ir_stmt *out = lower_visit_children(facts, stmt, visit, user);
    return out && out->kind == IR_SEQ && out->seq.n > 1 ? factor(cx, out) : out;
}

const ir_program *lower_trim(const lower_options *options, const ir_program *program)
{
    trimmer t = {0};

    if (target_offers(options->target, TARGET_THREADS))
        t.differ = lower_find_differing(options->cx, program->body);
    return lower_with_body(options->cx, program,
                           visit(&t, ir_facts_of_program(options->cx, program), program->body));
}
