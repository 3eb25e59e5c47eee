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

static const ir_stmt *visit(vectorizer *z, const ir_facts *f, const ir_stmt *s);

static bool is_vector(const ir_expr *e)
{
    return e && e->dtype.lanes > 1;
}

static const ir_expr *expr(vectorizer *z, const ir_facts *f, const ir_expr *e)
{
    z->v.f = f;
    return lower_vector_expr(&z->v, e);
}

static const ir_stmt *give_up(vectorizer *z, const char *why)
{
    z->v.why = why;
    return NULL;
}

/* ---- lane by lane ---- */

/* The loop over the lanes stands around this statement alone, in the middle of vector code. */
static const ir_stmt *lane_by_lane(vectorizer *z, const ir_stmt *s)
{
    tec_context *cx = z->v.cx;
    const ir_expr *lane = ir_var(cx, base_format(cx, "%s.lane", z->loop->loop.var->var.name), BASE_I64);
    const ir_expr *guard = ir_conjoin(cx, &z->guards);

    base_log(cx, 1, "vectorize: a statement of loop '%s' runs lane by lane: %s", z->loop->loop.var->var.name,
             z->v.why);
    z->v.why = NULL;
    if (guard)
        s = ir_if(cx, guard, s, NULL);
    s = ir_substitute_stmt(cx, s, z->v.var, ir_add(cx, z->v.base, lane));
    return ir_for(cx, lane, ir_int(cx, 0), ir_int(cx, z->v.lanes), IR_SERIAL, s);
}

/* The result of a rewrite of s, or s lane by lane where that failed and can be helped. */
static const ir_stmt *or_scalar(vectorizer *z, const ir_stmt *s, const ir_stmt *done)
{
    if (done || !z->v.why || z->private)
        return done;
    return lane_by_lane(z, s);
}

/* ---- statements ---- */

/* A store to one element by all lanes is done once, if the value does not depend on how often. */
static const ir_stmt *store_once(vectorizer *z, const ir_stmt *s, const ir_expr *at, const ir_expr *value)
{
    tec_context *cx = z->v.cx;
    const ir_buffer *b = s->store.buffer;

    if (is_vector(value) || z->v.mask || ir_loads(cx, s->store.value))
        return give_up(z, base_format(cx, "all lanes store to one element of '%s'", b->name));
    return ir_store(cx, b, value, &at, 1);
}

/* The value is broadcast if all lanes store the same to elements of their own. */
static const ir_stmt *store(vectorizer *z, const ir_facts *f, const ir_stmt *s)
{
    tec_context *cx = z->v.cx;
    const ir_expr *value = expr(z, f, s->store.value);
    const ir_expr *at = value ? lower_vector_index(&z->v, s->store.buffer, s->store.index[0]) : NULL;
    const ir_buffer *b = lower_vector_buffer(&z->v, s->store.buffer);

    if (!at)
        return NULL;
    if (s->store.mask)
        return give_up(z, "it holds a store with a mask of its own");
    if (!is_vector(at))
        return store_once(z, s, at, value);
    value = lower_vector_of(&z->v, value);
    return ir_store_masked(cx, b, value, &at, 1, BASE_PLANT_ON(cx, vectorize_mask) ? NULL : z->v.mask);
}

/* What is proven of an index inside a statement holds neither outside of it nor in a copy of it, whose loops
 * have other bounds: loads are made anew there. */
static const ir_stmt *visit_inside(vectorizer *z, const ir_facts *f, const ir_stmt *s)
{
    base_map memo = z->v.memo;

    z->v.memo = (base_map){0};
    s = visit(z, f, s);
    z->v.memo = memo;
    return s;
}

static const ir_stmt *loop(vectorizer *z, const ir_facts *f, const ir_stmt *s)
{
    const ir_expr *min = expr(z, f, s->loop.min), *extent = min ? expr(z, f, s->loop.extent) : NULL;

    if (!extent)
        return NULL;
    if (is_vector(min) || is_vector(extent))
        return give_up(
            z, base_format(z->v.cx, "the bounds of loop '%s' differ between lanes", s->loop.var->var.name));
    const ir_stmt *body = visit_inside(z, lower_inside(f, s), s->loop.body);
    return body ? ir_for_like(z->v.cx, s, min, extent, body) : NULL;
}

/* s for those lanes only for which mask (as a scalar: guard) holds too. The memo of vectors is dropped for
 * the time, as loads made under this mask carry it. */
static const ir_stmt *under_mask(vectorizer *z, const ir_facts *f, const ir_stmt *s, const ir_expr *mask,
                                 const ir_expr *guard)
{
    const ir_expr *outer = z->v.mask;

    base_push(z->v.cx, &z->guards, guard);
    z->v.mask = outer ? ir_and(z->v.cx, outer, mask) : mask;
    s = visit_inside(z, f, s);
    z->v.mask = outer;
    z->guards.n--;
    return s;
}

/* cond with the lanes' variable at one value. Used with lane 0 and the last lane: a linear condition that
 * holds in both holds in all between. */
static const ir_expr *at_lane(vectorizer *z, const ir_expr *cond, int lane)
{
    return ir_substitute(z->v.cx, cond, z->v.var, ir_add(z->v.cx, z->v.base, ir_int(z->v.cx, lane)));
}

/* Whether cond holds in all lanes where it holds in the first and the last. A conjunct that is linear in the
 * variable holds in an interval of lanes, so its ends decide. */
static bool is_linear(vectorizer *z, const ir_facts *f, const ir_expr *cond)
{
    base_vec all = {0};

    ir_conjuncts(z->v.cx, cond, IR_DROP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        lower_interval bounds;

        if (ir_loads(z->v.cx, all.at[i]))
            return false;
        if (ir_uses_var(z->v.cx, all.at[i], z->v.var) && !lower_solve(f, all.at[i], z->v.var, NULL, &bounds))
            return false;
    }
    return true;
}

/* Vector code where all lanes pass, and scalar code for the piece where some do not, such as the last one. */
static const ir_stmt *branch_without_masks(vectorizer *z, const ir_facts *f, const ir_stmt *s)
{
    tec_context *cx = z->v.cx;
    const ir_expr *cond = s->branch.cond;

    z->v.why = "the target has no masks";
    if (s->branch.otherwise || z->private || z->v.mask)
        return NULL;
    const ir_stmt *scalar = lane_by_lane(z, s);
    if (!is_linear(z, f, cond))
        return scalar;
    const ir_stmt *vector = visit(z, f, s->branch.then);
    return vector
               ? ir_if(cx, ir_and(cx, at_lane(z, cond, 0), at_lane(z, cond, z->v.lanes - 1)), vector, scalar)
               : NULL;
}

/* A condition that loads is bound to a variable first, as the branches may store to what it reads. */
static const ir_stmt *masked_branch(vectorizer *z, const ir_facts *f, const ir_stmt *s, const ir_expr *mask)
{
    tec_context *cx = z->v.cx;
    const ir_expr *cond = s->branch.cond, *name = NULL, *value = mask;

    if (!z->o->target->has_masks)
        return branch_without_masks(z, f, s);
    /* What the branches store must not change the condition of the lanes. */
    if (ir_loads(cx, cond)) {
        mask = name = ir_var(cx, "mask", mask->dtype);
        z->private ++;
    }
    const ir_stmt *then = under_mask(z, f, s->branch.then, mask, cond), *otherwise = NULL;
    if (then && s->branch.otherwise) {
        otherwise = under_mask(z, f, s->branch.otherwise, ir_not(cx, mask), ir_not(cx, cond));
        then = otherwise ? ir_seq2(cx, then, otherwise) : NULL;
    }
    z->private -= name != NULL;
    return then && name ? ir_let_stmt(cx, name, value, then) : then;
}

/* A condition that is the same in all lanes stays a branch. */
static const ir_stmt *branch(vectorizer *z, const ir_facts *f, const ir_stmt *s)
{
    const ir_expr *cond = expr(z, f, s->branch.cond);
    const ir_stmt *then, *otherwise = NULL;

    if (!cond)
        return NULL;
    if (is_vector(cond))
        return masked_branch(z, f, s, cond);
    then = visit_inside(z, lower_inside(f, s), s->branch.then);
    if (then && s->branch.otherwise &&
        !(otherwise = visit_inside(z, lower_inside_else(f, s), s->branch.otherwise)))
        return NULL;
    return then ? ir_if(z->v.cx, cond, then, otherwise) : NULL;
}

/* A vector value has no scalar form that a statement in lane-by-lane form could use: `private` counts it. */
static const ir_stmt *let(vectorizer *z, const ir_facts *f, const ir_stmt *s)
{
    tec_context *cx = z->v.cx;
    const ir_expr *value = expr(z, f, s->let.value),
                  *var = value ? lower_vector_bind(&z->v, s->let.var, value) : NULL;
    bool private = is_vector(value);

    if (!value)
        return NULL;
    z->private += private;
    const ir_stmt *body = visit_inside(z, private ? f : lower_inside(f, s), s->let.body);
    z->private -= private;
    return body ? ir_let_stmt(cx, var, value, body) : NULL;
}

/* All lanes need the same number of elements, since the copies are interleaved. */
static const ir_stmt *allocate(vectorizer *z, const ir_facts *f, const ir_stmt *s)
{
    tec_context *cx = z->v.cx;
    ir_buffer *b = ir_buffer_copy(cx, s->allocate.buffer);
    const ir_expr **shape = base_array(cx, const ir_expr *, 1);

    shape[0] = expr(z, f, s->allocate.buffer->shape[0]);
    if (!shape[0])
        return NULL;
    if (is_vector(shape[0]))
        return give_up(z, base_format(cx, "the size of '%s' differs between lanes", b->name));
    shape[0] = ir_mul(cx, shape[0], ir_int(cx, z->v.lanes));
    b->shape = shape;
    if (base_map_has(&z->v.buffers, s->allocate.buffer)) /* in another copy of a loop's body */
        z->v.memo = (base_map){0};
    base_map_put(cx, &z->v.buffers, s->allocate.buffer, b);
    z->private ++;
    const ir_stmt *body = visit(z, f, s->allocate.body);
    z->private --;
    return body ? ir_allocate(cx, b, body) : NULL;
}

static const ir_stmt *sequence(vectorizer *z, const ir_facts *f, const ir_stmt *s)
{
    const ir_stmt **stmt = base_array(z->v.cx, const ir_stmt *, s->seq.n);

    for (int i = 0; i < s->seq.n; i++) {
        stmt[i] = visit(z, f, s->seq.stmt[i]);
        if (!stmt[i])
            return NULL;
    }
    return ir_seq(z->v.cx, stmt, s->seq.n);
}

/* A statement that cannot be vectorised runs lane by lane (or_scalar) if nothing around prevents this. */
static const ir_stmt *visit(vectorizer *z, const ir_facts *f, const ir_stmt *s)
{
    ir_at(z->v.cx, s->loc);
    switch (s->kind) {
    case IR_STORE: return or_scalar(z, s, store(z, f, s));
    case IR_FOR: return or_scalar(z, s, loop(z, f, s));
    case IR_IF: return or_scalar(z, s, branch(z, f, s));
    case IR_LET_STMT: return or_scalar(z, s, let(z, f, s));
    case IR_ALLOCATE: return or_scalar(z, s, allocate(z, f, s));
    case IR_SEQ: return sequence(z, f, s);
    case IR_ASSERT: return or_scalar(z, s, give_up(z, "it holds an assert"));
    case IR_EVALUATE: return or_scalar(z, s, give_up(z, "it evaluates a call"));
    case IR_ATTRIBUTE: {
        const ir_stmt *body = visit(z, f, s->attribute.body);

        return body ? lower_with_inner(z->v.cx, s, body) : NULL;
    }
    case IR_BLOCK:
    case IR_UPDATE: break;
    }
    return give_up(z, "it holds a block");
}

/* ---- pieces ---- */

/* One vector of `lanes`, of which the first `used` run. The mask of a last, incomplete vector is lane <
 * used. */
static const ir_stmt *piece(const lower_options *o, const ir_facts *f, const ir_stmt *loop_stmt,
                            const ir_expr *base, int lanes, int used, const char **why)
{
    tec_context *cx = o->cx;
    vectorizer z = {.v = {.cx = cx, .f = f, .var = loop_stmt->loop.var, .base = base, .lanes = lanes},
                    .o = o,
                    .loop = loop_stmt};
    const ir_stmt *body = loop_stmt->loop.body;

    if (lanes == 1)
        return ir_substitute_stmt(cx, body, loop_stmt->loop.var, base);
    if (used < lanes) {
        z.v.mask = ir_lt(cx, ir_ramp(cx, ir_int(cx, 0), ir_int(cx, 1), lanes),
                         ir_broadcast(cx, ir_int(cx, used), lanes));
        base_push(cx, &z.guards, ir_lt(cx, loop_stmt->loop.var, ir_add(cx, base, ir_int(cx, used))));
    }
    const ir_stmt *s = visit(&z, f, body);
    *why = z.v.why;
    return s;
}

typedef struct {
    ir_walk walk;
    const ir_expr *var;
    int bits;
    bool divides;
} survey;

/* float16 counts as 32 bits, since it is computed in float32. */
static void see(survey *s, base_dtype t)
{
    int bits = t.bits < 32 && base_is_float(t) ? 32 : t.bits;

    if (bits > s->bits)
        s->bits = bits;
}

/* Index arithmetic does not count: it stays scalar, or becomes the index vector of a gather. */
static bool survey_expr(ir_walk *w, const ir_expr *e)
{
    survey *s = (survey *)w;

    if (e->op == IR_FLOORDIV || e->op == IR_FLOORMOD || e->op == IR_DIV || e->op == IR_MOD)
        s->divides |= base_is_int(e->dtype);
    if (e->op == IR_LOAD)
        see(s, e->load.buffer->dtype);
    return true;
}

static bool survey_stmt(ir_walk *w, const ir_stmt *s)
{
    if (s->kind == IR_STORE)
        see((survey *)w, s->store.buffer->dtype);
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
static bool rest(const lower_options *o, const ir_facts *f, const ir_stmt *s, int64_t done, int64_t n,
                 base_vec *out, const char **why)
{
    tec_context *cx = o->cx;

    while (done < n) {
        int lanes = power_below(n - done), used = lanes;

        if (lanes < n - done && o->target->has_masks) {
            used = (int)(n - done);
            lanes *= 2;
        }
        const ir_stmt *one = piece(o, f, s, ir_add(cx, s->loop.min, ir_int(cx, done)), lanes, used, why);
        if (!one)
            return false;
        base_push(cx, out, one);
        done += used;
    }
    return true;
}

/* The whole pieces of `lanes` each. The pieces are a loop, so that the body is written once; it is unrolled
 * if there are few. */
static bool whole(const lower_options *o, const ir_facts *f, const ir_stmt *s, int64_t n, int lanes,
                  base_vec *out, const char **why)
{
    tec_context *cx = o->cx;
    const ir_expr *var, *base = s->loop.min;
    const ir_stmt *one;

    if (n == 0)
        return true;
    if (n == 1) {
        one = piece(o, f, s, base, lanes, lanes, why);
    } else {
        ir_facts *inside = ir_facts_new(cx, f);

        var = ir_var(cx, base_format(cx, "%s.v", s->loop.var->var.name), BASE_I64);
        base = ir_add(cx, s->loop.min, ir_mul(cx, var, ir_int(cx, lanes)));
        ir_facts_range(inside, var, ir_int(cx, 0), ir_int(cx, n));
        one = piece(o, inside, s, base, lanes, lanes, why);
        one = one ? ir_for(cx, var, ir_int(cx, 0), ir_int(cx, n),
                           n <= MAX_UNROLLED_PIECES ? IR_UNROLLED : IR_SERIAL, one)
                  : NULL;
    }
    if (one)
        base_push(cx, out, one);
    return one != NULL;
}

/* floor(x / 16) is the same in all lanes of a piece that starts at a multiple of 16; the simplifier sees that
 * in the scalar loop, once the pieces are a loop of their own. The parts are then vectorised one by one, as
 * the loop inside has as many iterations as a register has lanes. */
static const ir_stmt *cut(const lower_options *o, const ir_facts *f, const ir_stmt *s, int64_t n, int lanes)
{
    tec_context *cx = o->cx;
    const ir_expr *part = ir_var(cx, base_format(cx, "%s.v", s->loop.var->var.name), BASE_I64);
    const ir_expr *lane = ir_var(cx, s->loop.var->var.name, BASE_I64);
    const ir_expr *at = ir_add(cx, ir_add(cx, s->loop.min, ir_mul(cx, part, ir_int(cx, lanes))), lane);
    const ir_stmt *body = ir_for(cx, lane, ir_int(cx, 0), ir_int(cx, lanes), IR_VECTORISED,
                                 ir_substitute_stmt(cx, s->loop.body, s->loop.var, at));

    body = ir_for(cx, part, ir_int(cx, 0), ir_int(cx, n / lanes),
                  n / lanes <= MAX_UNROLLED_PIECES ? IR_UNROLLED : IR_SERIAL, body);
    if (n % lanes != 0) {
        ir_stmt *tail = ir_stmt_copy(cx, s);

        tail->loop.min = ir_add(cx, s->loop.min, ir_int(cx, n / lanes * lanes));
        tail->loop.extent = ir_int(cx, n % lanes);
        body = ir_seq2(cx, body, tail);
    }
    return body ? ir_simplify_stmt(f, body) : NULL;
}

static const ir_stmt *serial(const lower_options *o, const ir_stmt *s, const char *why)
{
    ir_stmt *copy = ir_stmt_copy(o->cx, s);

    base_log(o->cx, 1, "vectorize: loop '%s' runs lane by lane: %s", s->loop.var->var.name, why);
    copy->loop.how = IR_SERIAL;
    return copy;
}

static const ir_stmt *rewrite(const lower_options *o, const ir_facts *f, const ir_stmt *s);

/* The widest dtype decides how many lanes a register has, so a body of f32 and i8 takes the lanes of f32. */
static const ir_stmt *vectorize_loop(const lower_options *o, const ir_facts *f, const ir_stmt *s)
{
    tec_context *cx = o->cx;
    survey look = {.walk = {.expr = survey_expr, .stmt = survey_stmt, .cx = cx}, .bits = 8};
    base_vec parts = {0};
    const char *why = NULL;
    int64_t n;

    if (!ir_is_int(s->loop.extent, &n))
        return base_fail(cx, TEC_INVALID, s->loc, "cannot vectorise '%s': extent '%s' is not a constant",
                         s->loop.var->var.name, ir_expr_text(cx, s->loop.extent));
    if (n > MAX_EXTENT)
        return base_fail(cx, TEC_INVALID, s->loc, "cannot vectorise '%s' of extent %lld (limit %d)",
                         s->loop.var->var.name, (long long)n, MAX_EXTENT);
    ir_walk_stmt(&look.walk, s->loop.body);
    int lanes = o->target->vector_bits / look.bits;
    if (lanes <= 1 || n <= 1)
        return serial(o, s,
                      lanes <= 1 ? "the target has no vectors of its elements" : "it has one iteration");
    if (look.divides && n / lanes > 1) {
        s = cut(o, f, s, n, lanes);
        return s ? rewrite(o, f, s) : NULL;
    }
    if (whole(o, f, s, n / lanes, lanes, &parts, &why) && rest(o, f, s, n / lanes * lanes, n, &parts, &why))
        return ir_seq(cx, (const ir_stmt *const *)parts.at, parts.n);
    return why ? serial(o, s, why) : NULL;
}

/* The vectorised loops in s, from the inside out. From the inside out; a vectorised loop inside of another
 * one was refused by the schedule. */
static const ir_stmt *rewrite(const lower_options *o, const ir_facts *f, const ir_stmt *s)
{
    const ir_stmt *then, *otherwise = NULL;

    switch (s->kind) {
    case IR_FOR:
    case IR_LET_STMT:
    case IR_ALLOCATE:
    case IR_ATTRIBUTE:
        then = rewrite(o, lower_inside(f, s), lower_inner(s));
        s = then ? lower_with_inner(o->cx, s, then) : NULL;
        return s && s->kind == IR_FOR && s->loop.how == IR_VECTORISED ? vectorize_loop(o, f, s) : s;
    case IR_IF:
        then = rewrite(o, lower_inside(f, s), s->branch.then);
        if (s->branch.otherwise && !(otherwise = rewrite(o, lower_inside_else(f, s), s->branch.otherwise)))
            return NULL;
        if (!then || (then == s->branch.then && otherwise == s->branch.otherwise))
            return then ? s : NULL;
        return ir_if(o->cx, s->branch.cond, then, otherwise);
    case IR_SEQ: {
        const ir_stmt **stmt = base_array(o->cx, const ir_stmt *, s->seq.n);
        bool same = true;

        for (int i = 0; i < s->seq.n; i++) {
            stmt[i] = rewrite(o, f, s->seq.stmt[i]);
            if (!stmt[i])
                return NULL;
            same &= stmt[i] == s->seq.stmt[i];
        }
        return same ? s : ir_seq(o->cx, stmt, s->seq.n);
    }
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: break;
    }
    return s;
}

const ir_program *lower_vectorize(const lower_options *o, const ir_program *p)
{
    return lower_with_body(o->cx, p, rewrite(o, ir_facts_of_program(o->cx, p), p->body));
}
