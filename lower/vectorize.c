/* lower/vectorize.c -- vectorised loops become vector statements of the target's width.
 *
 *     for x in 0..40 vectorised {           for x.v in 0..2 unrolled {
 *       if x < n { B[x] = A[x*2] + w }  =>    B[ramp(x.v*16, 1, 16)] = (A[ramp(x.v*32, 2,
 *                                               16)] where m) + w where m
 *     }                                     }           # m is ramp(x.v*16, 1, 16) < n;
 *                                                         then the last 8 in one vector of 8
 *
 * requires  flat buffers; simplified indices
 * provides  no vectorised loop is left
 * breaks    nothing
 *
 * A register takes as many lanes as elements of the widest dtype that the body touches. A loop longer than
 * that is cut into pieces; what is left over takes one vector of a power of two lanes, the rest masked off,
 * where the target has masks, otherwise ever smaller vectors without masks. All lanes run in lockstep,
 * statement by statement: the schedule has shown that they are independent. A condition that differs between
 * lanes becomes a mask of the loads and stores below; on a target without masks the vector runs where all
 * lanes pass, and scalar code otherwise. A buffer allocated inside gets one copy for each lane, interleaved.
 * A statement that cannot be done so (an extern call, a loop whose bounds differ between lanes) runs lane by
 * lane, which is logged.
 *
 * How 40 iterations of f32 become vectors of 16 lanes: two whole pieces (a loop of 2, unrolled), and 8 left
 * over. With 41 iterations 9 are left: with masks one vector of 16 lanes of which 9 run; without masks a
 * vector of 8 and a scalar.
 *
 * Why statement by statement is right. `A[x] = B[x]; C[x] = A[x + 1]` in lockstep stores all of A before C
 * reads any of it, while in order lane 0 would read the old A[1]. The schedule has refused such a loop: its
 * lanes are not independent. For independent lanes both orders give the same.
 */
#include "lower/vector.h"

/* Above this many register-wide pieces, they stay a loop. */
enum { MAX_UNROLLED_PIECES = 16, MAX_EXTENT = 65536 };

/* One piece. `guards` holds the same conditions as the mask, as scalars over the old variable, for statements
 * that run lane by lane. While `private` is not 0 this way back is closed: lets and buffers around exist as
 * vectors only. */
typedef struct {
    lower_vector v;
    const lower_options *o;
    const ir_stmt *loop;
    base_vec guards; /* the conditions of the mask, scalar, over the old variable */
    int private;     /* lets and buffers around that exist in vector form only */
} vectorizer;

static const ir_stmt *visit(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt);

static bool is_vector(const ir_expr *expr)
{
    return expr && expr->dtype.lanes > 1;
}

static const ir_expr *expr(vectorizer *self, const ir_facts *facts, const ir_expr *expression)
{
    self->v.f = facts;
    return lower_vector_expr(&self->v, expression);
}

static const ir_stmt *give_up(vectorizer *self, const char *why)
{
    self->v.why = why;
    return NULL;
}

/* ---- lane by lane ---- */

/* The loop over the lanes stands around this statement alone, in the middle of vector code. */
static const ir_stmt *lane_by_lane(vectorizer *self, const ir_stmt *stmt)
{
    tec_context *cx = self->v.cx;
    const ir_expr *lane = ir_var(cx, base_format(cx, "%s.lane", self->loop->loop.var->var.name), BASE_I64);
    const ir_expr *guard = ir_conjoin(cx, &self->guards);

    base_log(cx, 1, "vectorize: a statement of loop '%s' runs lane by lane: %s",
             self->loop->loop.var->var.name, self->v.why);
    self->v.why = NULL;
    if (guard)
        stmt = ir_if(cx, guard, stmt, NULL);
    stmt = ir_substitute_stmt(cx, stmt, self->v.var, ir_add(cx, self->v.base, lane));
    return ir_for(cx, lane, ir_int(cx, 0), ir_int(cx, self->v.lanes), IR_SERIAL, stmt);
}

/* The result of a rewrite of stmt, or stmt lane by lane where that failed and can be helped. */
static const ir_stmt *or_scalar(vectorizer *self, const ir_stmt *stmt, const ir_stmt *done)
{
    if (done || !self->v.why || self->private)
        return done;
    return lane_by_lane(self, stmt);
}

/* ---- statements ---- */

/* A store to one element by all lanes is done once, if the value does not depend on how often. */
static const ir_stmt *store_once(vectorizer *self, const ir_stmt *stmt, const ir_expr *at,
                                 const ir_expr *value)
{
    tec_context *cx = self->v.cx;
    const ir_buffer *b = stmt->store.buffer;

    if (is_vector(value) || self->v.mask || ir_loads(cx, stmt->store.value))
        return give_up(self, base_format(cx, "all lanes store to one element of '%s'", b->name));
    return ir_store(cx, b, value, &at, 1);
}

/* The value is broadcast if all lanes store the same to elements of their own. */
static const ir_stmt *store(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = self->v.cx;
    const ir_expr *value = expr(self, facts, stmt->store.value);
    const ir_expr *at = value ? lower_vector_index(&self->v, stmt->store.buffer, stmt->store.index[0]) : NULL;
    const ir_buffer *buffer = lower_vector_buffer(&self->v, stmt->store.buffer);

    if (!at)
        return NULL;
    if (stmt->store.mask)
        return give_up(self, "it holds a store with a mask of its own");
    if (!is_vector(at))
        return store_once(self, stmt, at, value);
    value = lower_vector_of(&self->v, value);
    return ir_store_masked(cx, buffer, value, &at, 1,
                           BASE_PLANT_ON(cx, vectorize_mask) ? NULL : self->v.mask);
}

/* What is proven of an index inside a statement holds neither outside of it nor in a copy of it, whose loops
 * have other bounds: loads are made anew there. */
static const ir_stmt *visit_inside(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    base_map memo = self->v.memo;

    self->v.memo = (base_map){0};
    stmt = visit(self, facts, stmt);
    self->v.memo = memo;
    return stmt;
}

/* An inner loop runs as often for all lanes, or the vectorised loop is given up. */
static const ir_stmt *loop(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    const ir_expr *min = expr(self, facts, stmt->loop.min),
                  *extent = min ? expr(self, facts, stmt->loop.extent) : NULL;

    if (!extent)
        return NULL;
    if (is_vector(min) || is_vector(extent))
        return give_up(self, base_format(self->v.cx, "the bounds of loop '%s' differ between lanes",
                                         stmt->loop.var->var.name));
    const ir_stmt *body = visit_inside(self, lower_inside(facts, stmt), stmt->loop.body);
    return body ? ir_for_like(self->v.cx, stmt, min, extent, body) : NULL;
}

/* stmt for those lanes only for which mask (as a scalar: guard) holds too. The memo of vectors is dropped for
 * the time, as loads made under this mask carry it. */
static const ir_stmt *under_mask(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt,
                                 const ir_expr *mask, const ir_expr *guard)
{
    const ir_expr *outer = self->v.mask;
    bool idle = self->v.idle;

    base_push(self->v.cx, &self->guards, guard);
    self->v.mask = outer ? ir_and(self->v.cx, outer, mask) : mask;
    self->v.idle = true;
    stmt = visit_inside(self, facts, stmt);
    self->v.mask = outer;
    self->v.idle = idle;
    self->guards.n--;
    return stmt;
}

/* cond with the lanes' variable at one value. Used with lane 0 and the last lane: a linear condition that
 * holds in both holds in all between. */
static const ir_expr *at_lane(vectorizer *self, const ir_expr *cond, int lane)
{
    return ir_substitute(self->v.cx, cond, self->v.var,
                         ir_add(self->v.cx, self->v.base, ir_int(self->v.cx, lane)));
}

/* Whether cond holds in all lanes where it holds in the first and the last. A conjunct that is linear in the
 * variable holds in an interval of lanes, so its ends decide. */
static bool is_linear(vectorizer *self, const ir_facts *facts, const ir_expr *cond)
{
    base_vec all = {0};

    ir_conjuncts(self->v.cx, cond, IR_DROP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        lower_interval bounds;

        if (ir_loads(self->v.cx, all.at[i]))
            return false;
        if (ir_uses_var(self->v.cx, all.at[i], self->v.var) &&
            !lower_solve(facts, all.at[i], self->v.var, NULL, &bounds))
            return false;
    }
    return true;
}

/* Vector code where all lanes pass, and scalar code for the piece where some do not, such as the last one. */
static const ir_stmt *branch_without_masks(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = self->v.cx;
    const ir_expr *cond = stmt->branch.cond;

    self->v.why = "the target has no masks";
    if (stmt->branch.otherwise || self->private || self->v.mask)
        return NULL;
    const ir_stmt *scalar = lane_by_lane(self, stmt);
    if (!is_linear(self, facts, cond))
        return scalar;
    const ir_stmt *vector = visit(self, facts, stmt->branch.then);
    return vector ? ir_if(cx, ir_and(cx, at_lane(self, cond, 0), at_lane(self, cond, self->v.lanes - 1)),
                          vector, scalar)
                  : NULL;
}

/* A condition that loads is bound to a variable first, as the branches may store to what it reads. */
static const ir_stmt *masked_branch(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt,
                                    const ir_expr *mask)
{
    tec_context *cx = self->v.cx;
    const ir_expr *cond = stmt->branch.cond, *name = NULL, *value = mask;

    if (!self->o->target->has_masks)
        return branch_without_masks(self, facts, stmt);
    /* What the branches store must not change the condition of the lanes. */
    if (ir_loads(cx, cond)) {
        mask = name = ir_var(cx, "mask", mask->dtype);
        self->private ++;
    }
    const ir_stmt *then = under_mask(self, facts, stmt->branch.then, mask, cond), *otherwise = NULL;
    if (then && stmt->branch.otherwise) {
        otherwise = under_mask(self, facts, stmt->branch.otherwise, ir_not(cx, mask), ir_not(cx, cond));
        then = otherwise ? ir_seq2(cx, then, otherwise) : NULL;
    }
    self->private -= name != NULL;
    return then && name ? ir_let_stmt(cx, name, value, then) : then;
}

/* A condition that is the same in all lanes stays a branch. */
static const ir_stmt *branch(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    const ir_expr *cond = expr(self, facts, stmt->branch.cond);
    const ir_stmt *then, *otherwise = NULL;

    if (!cond)
        return NULL;
    if (is_vector(cond))
        return masked_branch(self, facts, stmt, cond);
    then = visit_inside(self, lower_inside(facts, stmt), stmt->branch.then);
    if (then && stmt->branch.otherwise &&
        !(otherwise = visit_inside(self, lower_inside_else(facts, stmt), stmt->branch.otherwise)))
        return NULL;
    return then ? ir_if(self->v.cx, cond, then, otherwise) : NULL;
}

/* A vector value has no scalar form that a statement in lane-by-lane form could use: `private` counts it. */
static const ir_stmt *let(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = self->v.cx;
    const ir_expr *value = expr(self, facts, stmt->let.value),
                  *var = value ? lower_vector_bind(&self->v, stmt->let.var, value) : NULL;
    bool private = is_vector(value);

    if (!value)
        return NULL;
    self->private += private;
    const ir_stmt *body = visit_inside(self, private ? facts : lower_inside(facts, stmt), stmt->let.body);
    self->private -= private;
    return body ? ir_let_stmt(cx, var, value, body) : NULL;
}

/* All lanes need the same number of elements, since the copies are interleaved. */
static const ir_stmt *allocate(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = self->v.cx;
    ir_buffer *buffer = ir_buffer_copy(cx, stmt->allocate.buffer);
    const ir_expr **shape = base_array(cx, const ir_expr *, 1);

    shape[0] = expr(self, facts, stmt->allocate.buffer->shape[0]);
    if (!shape[0])
        return NULL;
    if (is_vector(shape[0]))
        return give_up(self, base_format(cx, "the size of '%s' differs between lanes", buffer->name));
    shape[0] = ir_mul(cx, shape[0], ir_int(cx, self->v.lanes));
    buffer->shape = shape;
    if (base_map_has(&self->v.buffers, stmt->allocate.buffer)) /* in another copy of a loop's body */
        self->v.memo = (base_map){0};
    base_map_put(cx, &self->v.buffers, stmt->allocate.buffer, buffer);
    self->private ++;
    const ir_stmt *body = visit(self, facts, stmt->allocate.body);
    self->private --;
    return body ? ir_allocate(cx, buffer, body) : NULL;
}

static const ir_stmt *sequence(vectorizer *self, const ir_facts *facts, const ir_stmt *statement)
{
    const ir_stmt **stmt = base_array(self->v.cx, const ir_stmt *, statement->seq.n);

    for (int i = 0; i < statement->seq.n; i++) {
        stmt[i] = visit(self, facts, statement->seq.stmt[i]);
        if (!stmt[i])
            return NULL;
    }
    return ir_seq(self->v.cx, stmt, statement->seq.n);
}

/* A statement that cannot be vectorised runs lane by lane (or_scalar) if nothing around prevents this. */
static const ir_stmt *visit(vectorizer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    ir_at(self->v.cx, stmt->loc);
    switch (stmt->kind) {
    case IR_STORE: return or_scalar(self, stmt, store(self, facts, stmt));
    case IR_FOR: return or_scalar(self, stmt, loop(self, facts, stmt));
    case IR_IF: return or_scalar(self, stmt, branch(self, facts, stmt));
    case IR_LET_STMT: return or_scalar(self, stmt, let(self, facts, stmt));
    case IR_ALLOCATE: return or_scalar(self, stmt, allocate(self, facts, stmt));
    case IR_SEQ: return sequence(self, facts, stmt);
    case IR_ASSERT: return or_scalar(self, stmt, give_up(self, "it holds an assert"));
    case IR_EVALUATE: return or_scalar(self, stmt, give_up(self, "it evaluates a call"));
    case IR_ATTRIBUTE: {
        const ir_stmt *body = visit(self, facts, stmt->attribute.body);

        return body ? lower_with_inner(self->v.cx, stmt, body) : NULL;
    }
    case IR_BLOCK:
    case IR_UPDATE: break;
    }
    return give_up(self, "it holds a block");
}

/* ---- pieces ---- */

typedef struct {
    const lower_options *o;
    base_map shared; /* lower_vector.shared */
} program_vectorizer;

/* One vector of `lanes`, of which the first `used` run. The mask of a last, incomplete vector is lane <
 * used. */
static const ir_stmt *piece(const program_vectorizer *self, const ir_facts *facts, const ir_stmt *loop_stmt,
                            const ir_expr *base, int lanes, int used, const char **why)
{
    tec_context *cx = self->o->cx;
    vectorizer z = {.v = {.cx = cx,
                          .f = facts,
                          .var = loop_stmt->loop.var,
                          .base = base,
                          .lanes = lanes,
                          .shared = &self->shared},
                    .o = self->o,
                    .loop = loop_stmt};
    const ir_stmt *body = loop_stmt->loop.body;

    if (lanes == 1)
        return ir_substitute_stmt(cx, body, loop_stmt->loop.var, base);
    if (used < lanes) {
        z.v.mask = ir_lt(cx, ir_ramp(cx, ir_int(cx, 0), ir_int(cx, 1), lanes),
                         ir_broadcast(cx, ir_int(cx, used), lanes));
        base_push(cx, &z.guards, ir_lt(cx, loop_stmt->loop.var, ir_add(cx, base, ir_int(cx, used))));
    }
    const ir_stmt *stmt = visit(&z, facts, body);
    *why = z.v.why;
    return stmt;
}

typedef struct {
    ir_walk walk;
    const ir_expr *var;
    int bits;
    bool divides;
} survey;

/* float16 counts as 32 bits, since it is computed in float32. */
static void see(survey *self, base_dtype dtype)
{
    int bits = dtype.bits < 32 && base_is_float(dtype) ? 32 : dtype.bits;

    if (bits > self->bits)
        self->bits = bits;
}

/* Index arithmetic does not count: it stays scalar, or becomes the index vector of a gather. */
static bool survey_expr(ir_walk *walk, const ir_expr *expr)
{
    survey *s = (survey *)walk;

    if (expr->op == IR_FLOORDIV || expr->op == IR_FLOORMOD || expr->op == IR_DIV || expr->op == IR_MOD)
        s->divides |= base_is_int(expr->dtype);
    if (expr->op == IR_LOAD)
        see(s, expr->load.buffer->dtype);
    return true;
}

static bool survey_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt->kind == IR_STORE)
        see((survey *)walk, stmt->store.buffer->dtype);
    return true;
}

static int power_below(int64_t n)
{
    int p = 1;

    while (p * 2 <= n)
        p *= 2;
    return p;
}

/* What is left over behind the whole pieces, from `done` on. With masks one vector is enough. Without, ever
 * smaller powers of two. */
static bool rest(const program_vectorizer *self, const ir_facts *facts, const ir_stmt *stmt, int64_t done,
                 int64_t extent, base_vec *out, const char **why)
{
    tec_context *cx = self->o->cx;

    while (done < extent) {
        int lanes = power_below(extent - done), used = lanes;

        if (lanes < extent - done && self->o->target->has_masks) {
            used = (int)(extent - done);
            lanes *= 2;
        }
        const ir_stmt *one =
            piece(self, facts, stmt, ir_add(cx, stmt->loop.min, ir_int(cx, done)), lanes, used, why);
        if (!one)
            return false;
        base_push(cx, out, one);
        done += used;
    }
    return true;
}

/* The whole pieces of `lanes` each. The pieces are a loop, so that the body is written once; it is unrolled
 * if there are few. */
static bool whole(const program_vectorizer *self, const ir_facts *facts, const ir_stmt *stmt, int64_t extent,
                  int lanes, base_vec *out, const char **why)
{
    tec_context *cx = self->o->cx;
    const ir_expr *var, *base = stmt->loop.min;
    const ir_stmt *one;

    if (extent == 0)
        return true;
    if (extent == 1) {
        one = piece(self, facts, stmt, base, lanes, lanes, why);
    } else {
        ir_facts *inside = ir_facts_new(cx, facts);

        var = ir_var(cx, base_format(cx, "%s.v", stmt->loop.var->var.name), BASE_I64);
        base = ir_add(cx, stmt->loop.min, ir_mul(cx, var, ir_int(cx, lanes)));
        ir_facts_range(inside, var, ir_int(cx, 0), ir_int(cx, extent));
        one = piece(self, inside, stmt, base, lanes, lanes, why);
        one = one ? ir_for(cx, var, ir_int(cx, 0), ir_int(cx, extent),
                           extent <= MAX_UNROLLED_PIECES ? IR_UNROLLED : IR_SERIAL, one)
                  : NULL;
    }
    if (one)
        base_push(cx, out, one);
    return one != NULL;
}

/* floor(x / 16) is the same in all lanes of a piece that starts at a multiple of 16; the simplifier sees that
 * in the scalar loop, once the pieces are a loop of their own. The parts are then vectorised one by one, as
 * the loop inside has as many iterations as a register has lanes. */
static const ir_stmt *cut(const program_vectorizer *self, const ir_facts *facts, const ir_stmt *stmt,
                          int64_t extent, int lanes)
{
    tec_context *cx = self->o->cx;
    const ir_expr *part = ir_var(cx, base_format(cx, "%s.v", stmt->loop.var->var.name), BASE_I64);
    const ir_expr *lane = ir_var(cx, stmt->loop.var->var.name, BASE_I64);
    const ir_expr *at = ir_add(cx, ir_add(cx, stmt->loop.min, ir_mul(cx, part, ir_int(cx, lanes))), lane);
    const ir_stmt *body = ir_for(cx, lane, ir_int(cx, 0), ir_int(cx, lanes), IR_VECTORISED,
                                 ir_substitute_stmt(cx, stmt->loop.body, stmt->loop.var, at));

    body = ir_for(cx, part, ir_int(cx, 0), ir_int(cx, extent / lanes),
                  extent / lanes <= MAX_UNROLLED_PIECES ? IR_UNROLLED : IR_SERIAL, body);
    if (extent % lanes != 0) {
        ir_stmt *tail = ir_stmt_copy(cx, stmt);

        tail->loop.min = ir_add(cx, stmt->loop.min, ir_int(cx, extent / lanes * lanes));
        tail->loop.extent = ir_int(cx, extent % lanes);
        body = ir_seq2(cx, body, tail);
    }
    return body ? ir_simplify_stmt(facts, body) : NULL;
}

static const ir_stmt *serial(const program_vectorizer *self, const ir_stmt *stmt, const char *why)
{
    ir_stmt *copy = ir_stmt_copy(self->o->cx, stmt);

    base_log(self->o->cx, 1, "vectorize: loop '%s' runs lane by lane: %s", stmt->loop.var->var.name, why);
    copy->loop.how = IR_SERIAL;
    return copy;
}

static const ir_stmt *rewrite(const program_vectorizer *self, const ir_facts *facts, const ir_stmt *stmt);

/* The widest dtype decides how many lanes a register has, so a body of f32 and i8 takes the lanes of f32. */
static const ir_stmt *vectorize_loop(const program_vectorizer *self, const ir_facts *facts,
                                     const ir_stmt *stmt)
{
    tec_context *cx = self->o->cx;
    survey look = {.walk = {.expr = survey_expr, .stmt = survey_stmt, .cx = cx}, .bits = 8};
    base_vec parts = {0};
    const char *why = NULL;
    int64_t n;

    if (!ir_is_int(stmt->loop.extent, &n))
        return base_fail(cx, TEC_INVALID, stmt->loc, "cannot vectorise '%s': extent '%s' is not a constant",
                         stmt->loop.var->var.name, ir_expr_text(cx, stmt->loop.extent));
    if (n > MAX_EXTENT)
        return base_fail(cx, TEC_INVALID, stmt->loc, "cannot vectorise '%s' of extent %lld (limit %d)",
                         stmt->loop.var->var.name, (long long)n, MAX_EXTENT);
    ir_walk_stmt(&look.walk, stmt->loop.body);
    int lanes = self->o->target->vector_bits / look.bits;
    if (lanes <= 1 || n <= 1)
        return serial(self, stmt,
                      lanes <= 1 ? "the target has no vectors of its elements" : "it has one iteration");
    if (look.divides && n / lanes > 1) {
        stmt = cut(self, facts, stmt, n, lanes);
        return stmt ? rewrite(self, facts, stmt) : NULL;
    }
    if (whole(self, facts, stmt, n / lanes, lanes, &parts, &why) &&
        rest(self, facts, stmt, n / lanes * lanes, n, &parts, &why))
        return ir_seq(cx, (const ir_stmt *const *)parts.at, parts.n);
    return why ? serial(self, stmt, why) : NULL;
}

/* The children first: vectorised loops are rewritten from the inside out. */
static const ir_stmt *visit_all(void *user, const ir_facts *facts, const ir_stmt *stmt)
{
    const ir_stmt *out = lower_visit_children(facts, stmt, visit_all, user);

    return out && out->kind == IR_FOR && out->loop.how == IR_VECTORISED ? vectorize_loop(user, facts, out)
                                                                        : out;
}

/* A vectorised loop inside of another one was refused by the schedule. */
static const ir_stmt *rewrite(const program_vectorizer *self, const ir_facts *facts, const ir_stmt *stmt)
{
    return visit_all((void *)(uintptr_t)self, facts, stmt);
}

typedef struct {
    ir_walk walk;
    base_map *out;
} concurrent_walk;

static bool note_concurrent(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt->kind == IR_FOR &&
        (stmt->loop.how == IR_PARALLEL || lower_is_thread(stmt) || lower_is_blocks(stmt)))
        lower_stored_outside(walk->cx, stmt->loop.body, ((concurrent_walk *)walk)->out);
    return true;
}

const ir_program *lower_vectorize(const lower_options *options, const ir_program *program)
{
    program_vectorizer z = {.o = options};
    concurrent_walk w = {.walk = {.cx = options->cx, .stmt = note_concurrent, .expr = ir_skip_expr},
                         .out = &z.shared};

    ir_walk_stmt(&w.walk, program->body);
    return lower_with_body(options->cx, program,
                           rewrite(&z, ir_facts_of_program(options->cx, program), program->body));
}
