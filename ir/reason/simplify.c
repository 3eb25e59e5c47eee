/* ir/reason/simplify.c -- the simplifier's entry, its session, sums, casts and what has no rules of its own.
 *
 *     (y*12 + yi)//12 + x - x    =>    y        with 0 <= yi < 12
 *
 * A sum is collected into one linear form from all its nested additions and multiples, and written once.
 * Every compound node is visited once in a session: results are remembered by address, and results map to
 * themselves. A session has one set of facts; a branch that knows more gets a session of its own.
 *
 * How the example comes out. (y*12 + yi)//12 is read first: the form y*12 + yi, divided by 12, gives y and
 * the rest yi//12, which is 0 as yi lies in 0..11. Then x - x cancels in the form of the sum: y + 1*x - 1*x.
 * What is written at last is the form y, whose canonical text is the variable itself.
 */
#include "ir/reason/reason.h"

/* Nested additions that are collected without remembering them; more of them are simplified on their own, so
 * that a shared chain x + x, (x + x) + (x + x), ... costs its nodes and not its paths. */
enum { MAX_UNREMEMBERED = 48 };

/* A collection under way; `modulo`: the value modulo 2^64 is asked for, so that sums of data are opened too
 * (ir/reason/reason.h). */
typedef struct {
    ir_session *s;
    int left;
    bool modulo;
} collection;

static void collect(collection *c, const ir_expr *e, int64_t by, ir_sum *out);

/* The result for e where there is one already. Results that rest on proofs lie in the session's own memo.
 * Using one counts as asking again, because what is built from it rests on the same proof. */
static const ir_expr *recall(ir_session *s, const ir_expr *e)
{
    const ir_expr *known = s->common ? ir_results_get(s->common, e, ir_facts_version(s->f, e)) : NULL;

    if (known || !(known = base_map_get(&s->memo, e)))
        return known;
    s->f->all->asked++; /* as it did for what is in the memo */
    return known;
}

/* Where no inequality was asked, the result depends on the facts of its own variables alone and serves all
 * sessions of the statement; otherwise only this one. */
static void remember(ir_session *s, const ir_expr *e, const ir_expr *result, bool asked)
{
    if (s->common && !asked)
        ir_results_put(s->common, e, ir_facts_version(s->f, e), result);
    else
        base_map_put(s->cx, &s->memo, e, result);
}

static void add_simplified(collection *c, const ir_expr *e, int64_t by, ir_sum *out)
{
    if (e)
        (c->modulo ? ir_sum_read_modulo : ir_sum_read)(c->s->f, out, e, by);
    else
        out->bad = true;
}

static void collect_scaled(collection *c, const ir_expr *e, int64_t by, int64_t factor, ir_sum *out)
{
    int64_t both;

    if (__builtin_mul_overflow(by, factor, &both))
        out->bad = true;
    else
        collect(c, e, both, out);
}

/* Too large to expand: the product of the two sums is an atom. */
static const ir_expr *product_atom(ir_session *s, const ir_sum *a, const ir_sum *b)
{
    const ir_expr *x = ir_sum_expr(s->f, a, NULL), *y = ir_sum_expr(s->f, b, NULL);

    return ir_order(s->f, x, y) <= 0 ? ir_mul(s->cx, x, y) : ir_mul(s->cx, y, x);
}

/* Both factors as forms, multiplied out where that stays small. A product of two atoms that is already in
 * canonical order is taken as the atom that it is, without building it again. */
static void collect_product(collection *c, const ir_expr *e, int64_t by, ir_sum *out)
{
    ir_sum a = {0}, b = {0}, both = {0};
    const ir_facts *f = c->s->f;

    collect(c, e->arg[0], 1, &a);
    collect(c, e->arg[1], 1, &b);
    if (a.bad || b.bad) {
        out->bad = true;
    } else if (ir_sum_is_atom(&a) && ir_sum_is_atom(&b) && ir_sum_terms(&a)->atom == e->arg[0] &&
               ir_sum_terms(&b)->atom == e->arg[1] && ir_sum_terms(&b)->atom->op != IR_MUL &&
               ir_order(f, e->arg[0], e->arg[1]) <= 0 && e->arg[0]->op != IR_MUL) {
        ir_sum_add_term(f, out, e, by);
    } else if (ir_sum_mul(f, &both, &a, &b)) {
        ir_sum_add(f, out, &both, by);
    } else {
        ir_sum_add_term(f, out, product_atom(c->s, &a, &b), by);
    }
}

/* Opens one node of a sum and collects its operands with their signs and factors. */
static void collect_sum(collection *c, const ir_expr *e, int64_t by, ir_sum *out)
{
    if (e->op == IR_ADD || e->op == IR_SUB) {
        collect(c, e->arg[0], by, out);
        collect(c, e->arg[1], e->op == IR_ADD ? by : -by, out);
    } else if (e->op == IR_NEG) {
        collect(c, e->arg[0], -by, out);
    } else if (e->arg[1]->op == IR_INT) {
        collect_scaled(c, e->arg[0], by, e->arg[1]->i, out);
    } else if (e->arg[0]->op == IR_INT) {
        collect_scaled(c, e->arg[1], by, e->arg[0]->i, out);
    } else {
        collect_product(c, e, by, out);
    }
}

/* Adds by * e to the form: from an earlier result where there is one, through the operands where e is a sum,
 * and otherwise e simplified as one term. `left` bounds how many nodes are opened without being remembered.
 * Behind that each sum is simplified as a node, and found in the memo the next time. */
static void collect(collection *c, const ir_expr *e, int64_t by, ir_sum *out)
{
    const ir_expr *known;

    if (!ir_is_index(e) || by == INT64_MIN)
        out->bad = true;
    else if (e->op == IR_INT)
        ir_sum_read(c->s->f, out, e, by);
    else if ((known = recall(c->s, e)))
        add_simplified(c, known, by, out);
    else if (--c->left < 0 || !ir_is_sum(e) || (!c->modulo && (e->has & IR_HAS_DATA)))
        add_simplified(c, ir_simp(c->s, e), by, out);
    else
        collect_sum(c, e, by, out);
}

void ir_simp_sum(ir_session *s, const ir_expr *e, int64_t by, ir_sum *out)
{
    collection c = {.s = s, .left = MAX_UNREMEMBERED};

    collect(&c, e, by, out);
}

/* ---- everything else ---- */

static const ir_expr *rebuild_child(ir_rewrite *rw, const ir_expr *e);

typedef struct {
    ir_rewrite rw;
    ir_session *session;
} rebuilder;

/* For operations without rules. The rewriter only finds the operands; each is simplified in this session. */
static const ir_expr *simp_children(ir_session *s, const ir_expr *e)
{
    rebuilder r = {.rw = {.cx = s->cx, .expr = rebuild_child, .no_memo = true}, .session = s};

    return ir_rewrite_children(&r.rw, e);
}

static const ir_expr *rebuild_child(ir_rewrite *rw, const ir_expr *e)
{
    return ir_simp(((rebuilder *)rw)->session, e);
}

/* Data are added modulo 2^64, as the machine does, so sums of data may be reordered too. The form may be
 * `bad` although the expression is fine: then its operands are simplified, and the sum stays. */
static const ir_expr *simp_sum(ir_session *s, const ir_expr *e)
{
    collection c = {.s = s, .left = MAX_UNREMEMBERED, .modulo = true};
    ir_sum a = {0};

    collect_sum(&c, e, 1, &a);
    if (a.bad)
        return simp_children(s, e);
    ir_recombine(s->f, &a);
    return ir_sum_expr(s->f, &a, e);
}

/* A variable whose range has one value is that value. Outside of index arithmetic only an explicit
 * replacement counts. */
static const ir_expr *simp_var(ir_session *s, const ir_expr *e)
{
    const ir_var_fact *v = ir_fact_of(s->f, e);

    if (!v)
        return e;
    if (v->replace)
        return v->value;
    return ir_is_index(e) && v->interval.min == v->interval.max ? ir_int(s->cx, v->interval.min) : e;
}

/* A cast to the widest integer and back, or through a type that holds all values, does nothing.
 *
 *     i64(i32(x)) with 0 <= x < 2^31:  the inner cast keeps x, so both casts go
 */
static const ir_expr *simp_cast(ir_session *s, const ir_expr *e)
{
    const ir_expr *a = ir_simp(s, e->arg[0]);

    if (!a)
        return NULL;
    if (a->op == IR_CAST && base_is_int(a->dtype) && base_is_int(e->dtype) && a->dtype.lanes == 1 &&
        e->dtype.lanes == 1) {
        const ir_expr *inner = a->arg[0];
        ir_interval b = ir_is_index(inner) ? ir_atom_bounds(s->f, inner) : IR_EVERYTHING;
        int bits = a->dtype.code == kDLUInt ? a->dtype.bits : a->dtype.bits - 1;
        if (bits < 63 && b.max < INT64_C(1) << bits &&
            b.min >= (a->dtype.code == kDLUInt ? 0 : -(INT64_C(1) << bits)))
            a = inner;
    }
    if (base_dtype_same(a->dtype, e->dtype))
        return a;
    return a == e->arg[0] ? e : ir_cast(s->cx, e->dtype, a);
}

static ir_session child_session(ir_session *s, ir_facts **f)
{
    *f = ir_facts_new(s->cx, s->f);
    return (ir_session){.f = *f, .cx = s->cx, .common = s->common};
}

/* What is learned holds for the branch alone: the child's facts are a level above the session's. */
ir_session ir_session_under(ir_session *s, const ir_expr *condition, bool holds)
{
    ir_facts *f;
    ir_session child = child_session(s, &f);

    ir_facts_learn(f, condition, holds);
    return child;
}

/* A let whose value replaces its variable everywhere goes. The variable's facts hold in the body alone. */
static const ir_expr *simp_let(ir_session *s, const ir_expr *e)
{
    const ir_expr *value = ir_simp(s, e->let.value);
    ir_facts *f;
    ir_session child = child_session(s, &f);

    if (!value)
        return NULL;
    ir_facts_value(f, e->let.var, value);
    const ir_expr *body = ir_simp(&child, e->let.body);
    if (!body || ir_fact_of(f, e->let.var)->replace || !ir_uses_var(s->cx, body, e->let.var))
        return body;
    return value == e->let.value && body == e->let.body ? e : ir_let(s->cx, e->let.var, value, body);
}

/* Inside, each axis is known to be in its range. */
static const ir_expr *simp_reduce(ir_session *s, const ir_expr *e)
{
    ir_facts *f;
    ir_session child = child_session(s, &f);

    for (int i = 0; i < e->reduce.n_axes; i++)
        ir_facts_range(f, e->reduce.axis[i], ir_int(s->cx, 0), e->reduce.extent[i]);
    return simp_children(&child, e);
}

/* The rules for int64 expressions by operation; an operation without rules has its operands simplified. */
static const ir_expr *simp_index(ir_session *s, const ir_expr *e)
{
    switch (e->op) {
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_NEG: return simp_sum(s, e);
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD: return ir_simp_div(s, e);
    case IR_MIN:
    case IR_MAX: return ir_simp_minmax(s, e);
    default: return simp_children(s, e);
    }
}

/* The rules for conditions by operation. Comparisons of int64 go through linear forms; those of other types
 * only fold constants. */
static const ir_expr *simp_flag(ir_session *s, const ir_expr *e)
{
    switch (e->op) {
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE:
    case IR_GT:
    case IR_GE:
        if (ir_is_index(e->arg[0]))
            return ir_simp_compare(s, e);
        return ir_simp_bool(s, simp_children(s, e));
    case IR_AND:
    case IR_OR:
    case IR_NOT:
    case IR_LIKELY: return ir_simp_bool(s, e);
    default: return simp_children(s, e);
    }
}

static const ir_expr *simp_node(ir_session *s, const ir_expr *e)
{
    switch (e->op) {
    case IR_CAST: return simp_cast(s, e);
    case IR_LET: return simp_let(s, e);
    case IR_REDUCE: return simp_reduce(s, e);
    case IR_SELECT:
        if (ir_is_flag(e->arg[0]))
            return ir_simp_select(s, e);
        break;
    default: break;
    }
    return ir_is_index(e) ? simp_index(s, e) : ir_is_flag(e) ? simp_flag(s, e) : simp_children(s, e);
}

/* A value that was proven to be known: 4*x + 1 under x == 2, or a residue of one element. */
static const ir_expr *known_value(ir_session *s, const ir_expr *e)
{
    if (e->op == IR_INT || e->op == IR_ADD || e->op == IR_SUB || e->op == IR_LOAD)
        return e;
    ir_interval b = ir_atom_bounds(s->f, e);

    return b.min == b.max ? ir_int(s->cx, b.min) : e;
}

/* The result is remembered for e and for itself, so that simplifying a simplified expression costs a look-up.
 * Errors that the rules meet are reported at the location of e. */
const ir_expr *ir_simp(ir_session *s, const ir_expr *e)
{
    if (!e || e->op == IR_INT || e->op == IR_FLOAT || e->op == IR_STRING)
        return e;
    if (e->op == IR_VAR)
        return simp_var(s, e);
    const ir_expr *known = recall(s, e);
    if (known)
        return known;
    uint64_t asked = s->f->all->asked;
    base_loc where = base_where(s->cx);
    ir_at(s->cx, e->loc);
    const ir_expr *r = simp_node(s, e);
    if (r && ir_is_index(r))
        r = known_value(s, r);
    ir_at(s->cx, where);
    if (!r)
        return NULL;
    if (r != e && s->common)
        r = ir_intern(&s->common->equal, r);
    remember(s, e, r, s->f->all->asked != asked);
    if (r != e && r->op != IR_INT && r->op != IR_VAR && !base_is_float(r->dtype))
        remember(s, r, r, s->f->all->asked != asked);
    return r;
}

const ir_expr *ir_simplify(const ir_facts *f, const ir_expr *e)
{
    ir_session s = {.f = f, .cx = f->cx};

    return ir_simp(&s, e);
}
