/* ir/match.c -- loop nests against the meaning of an intrinsic: see match.h.
 *
 *     for i in 0..16 { for k in 0..4 { c[i] sum= a[i, k] * b[k] } }                      the meaning
 *     for kk in 0..4 { for x in 0..16 { C[y, xo*16 + x] sum= B[ko*4 + kk] * A[xo, ko, x, kk] } }
 *     =>  i = x, k = kk;   c is C from y*n + xo*16 on, a is A from ..., b is B from ko*4 on
 *
 * Every assignment of the meaning's loops to those of the nest is tried, the given order first; under one, statements and expressions are
 * compared part by part, with backtracking where operands commute. The reason that is kept is that of the attempt which got furthest.
 */
#include "ir/match.h"

#include <string.h>

#include "ir/build.h"
#include "ir/make.h"
#include "ir/text.h"
#include "ir/walk.h"

/* IN_PLACE, ALIKE: what it counts for the report that loops or operands stand in the same order on both sides, and that both or neither
 * are constants. */
enum { MAX_LOOPS = 8, MAX_CHAIN = 16, IN_PLACE = 3, ALIKE = 4 };

/* Loops and conditions around a statement. */
typedef struct {
    const ir_expr *var[MAX_LOOPS], *extent[MAX_LOOPS];
    bool cut[MAX_LOOPS]; /* a condition ends it early; its extent says where */
    int n;
    base_vec conditions;
    const ir_stmt *leaf;
} nest;

typedef struct {
    tec_context *cx;
    const ir_facts *f; /* of the program that the nest stands in */
    const ir_program *meaning;
    const nest *p, *t;
    const ir_expr *image[MAX_LOOPS]; /* of the meaning's loops */
    int extent_of[MAX_LOOPS];
    ir_match m;
    int score, best; /* parts that agreed; of the attempt that is reported */
    const char *reason;
} matcher;

/* ---- reasons ---- */

static const char *shown(matcher *m, const ir_expr *e)
{
    return e ? ir_expr_text_cut(m->cx, e, 120) : "nothing";
}

static bool BASE_PRINTF(2, 3) differ(matcher *m, const char *fmt, ...)
{
    va_list args;

    if (m->score <= m->best)
        return false;
    m->best = m->score;
    va_start(args, fmt);
    m->reason = base_vformat(m->cx, fmt, args);
    va_end(args);
    return false;
}

static bool differ_exprs(matcher *m, const char *what, const ir_expr *p, const ir_expr *t)
{
    return differ(m, "%s differs: the intrinsic has '%s', the program '%s'", what, shown(m, p), shown(m, t));
}

/* ---- nests ---- */

static void add_conjuncts(tec_context *cx, const ir_expr *e, base_vec *out)
{
    if (e && e->op == IR_AND) {
        add_conjuncts(cx, e->arg[0], out);
        add_conjuncts(cx, e->arg[1], out);
    } else if (e && e->op == IR_LIKELY)
        add_conjuncts(cx, e->arg[0], out);
    else if (!ir_is_true(e))
        base_push(cx, out, e);
}

/* Loops of one iteration stand for their value. False: more loops than are compared. */
static bool read_nest(tec_context *cx, const ir_stmt *s, nest *out)
{
    *out = (nest){0};
    for (;; s = s->kind == IR_FOR ? s->loop.body : s->branch.then) {
        while (s->kind == IR_FOR && ir_is_value(s->loop.extent, 1))
            s = ir_substitute_stmt(cx, s->loop.body, s->loop.var, s->loop.min);
        if (s->kind == IR_IF && !s->branch.otherwise) {
            add_conjuncts(cx, s->branch.cond, &out->conditions);
            continue;
        }
        out->leaf = s;
        if (s->kind != IR_FOR || !ir_is_value(s->loop.min, 0))
            return true;
        if (out->n == MAX_LOOPS)
            return false;
        out->var[out->n] = s->loop.var;
        out->extent[out->n++] = s->loop.extent;
    }
}

static int loop_index(const nest *n, const ir_expr *var)
{
    for (int i = 0; i < n->n; i++)
        if (n->var[i] == var)
            return i;
    return -1;
}

static bool is_constant(const ir_expr *e)
{
    int64_t v;

    return ir_is_int(e, &v);
}

/* v + rest < 0 for the loop of v: the loop ends at -rest. */
static bool cut_loop(matcher *m, nest *n, const ir_expr *condition)
{
    int64_t by[MAX_LOOPS];
    const ir_expr *rest;
    int loop = -1;

    if (condition->op != IR_LT || !base_dtype_same(condition->arg[0]->dtype, BASE_I64) ||
        !ir_linear(m->f, ir_sub(m->cx, condition->arg[0], condition->arg[1]), n->var, n->n, by, &rest))
        return false;
    for (int i = 0; i < n->n; i++) {
        if (by[i] && (by[i] != 1 || loop >= 0))
            return false;
        loop = by[i] ? i : loop;
    }
    if (loop < 0)
        return false;
    const ir_expr *end = ir_max(m->cx, ir_sub(m->cx, ir_int(m->cx, 0), rest), ir_int(m->cx, 0));
    n->extent[loop] = ir_simplify(m->f, ir_min(m->cx, n->extent[loop], end));
    n->cut[loop] = true;
    return true;
}

static void cut_loops(matcher *m, nest *n)
{
    base_vec others = {0};

    for (int i = 0; i < n->conditions.n; i++)
        if (!cut_loop(m, n, n->conditions.at[i]))
            base_push(m->cx, &others, n->conditions.at[i]);
    n->conditions = others;
}

/* ---- values ---- */

static const ir_expr *value_of(const matcher *m, const ir_expr *var)
{
    for (int i = 0; i < m->m.n_values; i++)
        if (m->m.var[i] == var)
            return m->m.value[i];
    return NULL;
}

static bool is_param(const matcher *m, const ir_expr *var)
{
    for (int i = 0; i < m->meaning->n_params; i++)
        if (m->meaning->params[i].scalar == var)
            return true;
    return false;
}

static bool uses_loops(const matcher *m, const nest *n, const ir_expr *e)
{
    for (int i = 0; i < n->n; i++)
        if (ir_uses_var(m->cx, e, n->var[i]))
            return true;
    return false;
}

static bool same_value(matcher *m, const ir_expr *a, const ir_expr *b)
{
    return a == b || ir_same(a, b) || (base_dtype_same(a->dtype, BASE_I64) && ir_prove_equal(m->f, a, b));
}

static bool set_value(matcher *m, const ir_expr *var, const ir_expr *value)
{
    const ir_expr *known = value_of(m, var);

    if (known)
        return same_value(m, known, value) ||
               differ(m, "'%s' of the intrinsic would be '%s' and '%s'", var->var.name, shown(m, known), shown(m, value));
    if (m->m.n_values == IR_MATCH_VALUES)
        return differ(m, "the intrinsic has more than %d values", IR_MATCH_VALUES);
    m->m.var[m->m.n_values] = var;
    m->m.value[m->m.n_values++] = value;
    return true;
}

/* An expression of the meaning over symbols, with what is known of them. */
static const ir_expr *applied(matcher *m, const ir_expr *e)
{
    ir_subst map = {0};

    for (int i = 0; i < m->m.n_values; i++)
        base_map_put(m->cx, &map.vars, m->m.var[i], m->m.value[i]);
    return ir_apply(m->cx, &map, e);
}

static bool has_unknown(matcher *m, const ir_expr *e)
{
    base_vec vars = {0};

    ir_free_vars(m->cx, e, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!value_of(m, vars.at[i]))
            return true;
    return false;
}

/* A size of the meaning against one of the program: a symbol that is not known yet takes it. */
static bool same_size(matcher *m, const ir_expr *p, const ir_expr *t)
{
    if (p->op == IR_VAR && !value_of(m, p))
        return set_value(m, p, t);
    return !has_unknown(m, p) && ir_prove_equal(m->f, applied(m, p), t);
}

/* ---- accesses ---- */

/* Elements from one index of dimension d to the next. */
static const ir_expr *stride_of(tec_context *cx, const ir_buffer *b, int d)
{
    const ir_expr *product = ir_int(cx, 1);

    if (b->strides)
        return b->strides[d];
    for (int i = d + 1; i < b->n; i++)
        product = ir_mul(cx, product, b->shape[i]);
    return product;
}

/* The element number as base + the sum of step[j] * loop j. False: some index is not linear in the loops. */
static bool read_access(matcher *m, const nest *n, const ir_buffer *b, const ir_expr *const *index, const ir_expr **base,
                        const ir_expr **step)
{
    tec_context *cx = m->cx;

    *base = ir_int(cx, 0);
    for (int j = 0; j < n->n; j++)
        step[j] = ir_int(cx, 0);
    for (int d = 0; d < b->n; d++) {
        int64_t by[MAX_LOOPS];
        const ir_expr *rest, *stride = stride_of(cx, b, d);

        if (!ir_linear(m->f, index[d], n->var, n->n, by, &rest))
            return differ(m, "the index '%s' of '%s' is not linear in the loops", shown(m, index[d]), b->name);
        *base = ir_add(cx, *base, ir_mul(cx, rest, stride));
        for (int j = 0; j < n->n; j++)
            step[j] = ir_add(cx, step[j], ir_mul(cx, ir_int(cx, by[j]), stride));
    }
    *base = ir_simplify(m->f, *base);
    for (int j = 0; j < n->n; j++)
        step[j] = ir_simplify(m->f, step[j]);
    return true;
}

static bool same_steps(matcher *m, const ir_buffer *p, const ir_expr *const *ps, const ir_buffer *t, const ir_expr *const *ts)
{
    for (int j = 0; j < m->p->n; j++) {
        const ir_expr *step = ts[loop_index(m->t, m->image[j])];

        m->score += ir_is_value(ps[j], 0) == ir_is_value(step, 0);
        if (!same_size(m, ps[j], step))
            return differ(m, "the stride of '%s' along '%s' is %s in the intrinsic; in the program '%s' has %s along '%s'", p->name,
                          m->p->var[j]->var.name, shown(m, ps[j]), t->name, shown(m, step), m->image[j]->var.name);
        m->score++;
    }
    return true;
}

static bool is_output(const matcher *m, const ir_buffer *b)
{
    for (int i = 0; i < m->meaning->n_params; i++)
        if (m->meaning->params[i].buffer == b)
            return m->meaning->params[i].output;
    return false;
}

/* What is written must not be what another operand reads. */
static bool check_overlap(matcher *m, const ir_buffer *p, const ir_buffer *t)
{
    for (int i = 0; i < m->m.n; i++) {
        const ir_operand *o = &m->m.operand[i];
        bool shared = o->buffer == t || (t->alias && o->buffer->alias == t->alias);

        if (shared && (is_output(m, p) || is_output(m, o->param)))
            return differ(m, "'%s' and '%s' of the intrinsic would share the memory of '%s'", o->param->name, p->name, t->name);
    }
    return true;
}

static bool check_place(matcher *m, const ir_buffer *p, const ir_buffer *t, const ir_expr *offset)
{
    int64_t bytes = base_dtype_bytes(t->dtype), have;

    if (p->scope != IR_GLOBAL && p->scope != t->scope)
        return differ(m, "the scope of '%s' is %s in the intrinsic; in the program '%s' is %s", p->name, ir_scope_text(p->scope), t->name,
                      ir_scope_text(t->scope));
    if (!p->align)
        return true;
    ir_modular at = ir_modulus(m->f, ir_mul(m->cx, ir_add(m->cx, offset, t->offset ? t->offset : ir_int(m->cx, 0)), ir_int(m->cx, bytes)));
    int64_t align = t->align ? t->align : bytes;
    have = at.coefficient == 0 && at.base == 0 ? align : at.base % p->align == 0 && at.coefficient % p->align == 0 ? align : bytes;
    if (have % p->align != 0)
        return differ(m, "the alignment of '%s' is %d bytes in the intrinsic; in the program '%s' at element %s is only known to be aligned to %lld",
                      p->name, p->align, t->name, shown(m, offset), (long long)have);
    return true;
}

static bool bind_operand(matcher *m, const ir_buffer *p, const ir_buffer *t, const ir_expr *offset)
{
    for (int i = 0; i < m->m.n; i++) {
        const ir_operand *o = &m->m.operand[i];

        if (o->param != p)
            continue;
        if (o->buffer != t || !ir_prove_equal(m->f, o->offset, offset))
            return differ(m, "operand '%s' of the intrinsic would be '%s' from element %s on, and '%s' from element %s on", p->name,
                          o->buffer->name, shown(m, o->offset), t->name, shown(m, offset));
        return true;
    }
    if (m->m.n == IR_MATCH_OPERANDS || !check_overlap(m, p, t) || !check_place(m, p, t, offset))
        return false;
    m->m.operand[m->m.n++] = (ir_operand){p, t, offset};
    return true;
}

static bool same_dtype(matcher *m, const ir_buffer *p, const ir_buffer *t)
{
    return base_dtype_same(p->dtype, t->dtype) ||
           differ(m, "the dtype differs: '%s' of the intrinsic is %s, '%s' is %s", p->name, base_dtype_text(m->cx, p->dtype), t->name,
                  base_dtype_text(m->cx, t->dtype));
}

static bool match_access(matcher *m, const ir_buffer *p, const ir_expr *const *pi, const ir_buffer *t, const ir_expr *const *ti)
{
    const ir_expr *pb, *tb, *ps[MAX_LOOPS], *ts[MAX_LOOPS];

    if (!same_dtype(m, p, t))
        return false;
    m->score++;
    if (!read_access(m, m->p, p, pi, &pb, ps) || !read_access(m, m->t, t, ti, &tb, ts) || !same_steps(m, p, ps, t, ts))
        return false;
    return bind_operand(m, p, t, ir_simplify(m->f, ir_sub(m->cx, tb, applied(m, pb))));
}

/* ---- expressions ---- */

static bool match_expr(matcher *m, const ir_expr *p, const ir_expr *t);

static bool match_var(matcher *m, const ir_expr *p, const ir_expr *t)
{
    int loop = loop_index(m->p, p);

    if (loop >= 0)
        return m->image[loop] == t || differ_exprs(m, "an operand", p, t);
    if (!is_param(m, p))
        return value_of(m, p) == t || differ_exprs(m, "an operand", p, t); /* of a let */
    if (t->has || uses_loops(m, m->t, t))
        return differ(m, "'%s' of the intrinsic is one value, in the program '%s' is not", p->var.name, shown(m, t));
    return set_value(m, p, t);
}

/* The operands of nested equal operations, where regrouping them changes nothing; otherwise the two of e. */
static int chain(const ir_expr *e, ir_op op, const ir_expr **out, int n)
{
    bool regroups = (ir_ops[op].flags & IR_ASSOCIATES) && !base_is_float(e->dtype);

    for (int i = 0; i < 2; i++) {
        if (regroups && e->arg[i]->op == op && n < MAX_CHAIN - 2)
            n = chain(e->arg[i], op, out, n);
        else if (n < MAX_CHAIN)
            out[n++] = e->arg[i];
    }
    return n;
}

/* Operand i.. of p each against one of t that is not used yet. */
static bool match_chain(matcher *m, const ir_expr *const *p, const ir_expr *const *t, int n, int i, unsigned used)
{
    if (i == n)
        return true;
    for (int j = 0; j < n; j++) {
        ir_match before = m->m;
        int score = m->score;

        if (used & 1u << j)
            continue;
        m->score += i == j ? IN_PLACE : 0;
        if (match_expr(m, p[i], t[j]) && match_chain(m, p, t, n, i + 1, used | 1u << j))
            return true;
        m->m = before;
        m->score = score;
    }
    return false;
}

static bool match_commuting(matcher *m, const ir_expr *p, const ir_expr *t)
{
    const ir_expr *a[MAX_CHAIN], *b[MAX_CHAIN];
    int n = chain(p, p->op, a, 0);

    if (chain(t, t->op, b, 0) != n)
        return differ_exprs(m, "an operand", p, t);
    return match_chain(m, a, b, n, 0, 0);
}

static bool match_args(matcher *m, const ir_expr *const *p, const ir_expr *const *t, int n)
{
    for (int i = 0; i < n; i++)
        if ((p[i] || t[i]) && !(p[i] && t[i] && match_expr(m, p[i], t[i])))
            return false;
    return true;
}

static bool match_expr(matcher *m, const ir_expr *p, const ir_expr *t)
{
    if (!base_dtype_same(p->dtype, t->dtype))
        return differ(m, "the dtype differs: the intrinsic has '%s' of %s, the program '%s' of %s", shown(m, p),
                      base_dtype_text(m->cx, p->dtype), shown(m, t), base_dtype_text(m->cx, t->dtype));
    if (p->op == IR_VAR)
        return match_var(m, p, t);
    m->score += is_constant(p) == is_constant(t) ? ALIKE : 0;
    if (p->op != t->op)
        return differ_exprs(m, "an operand", p, t);
    m->score++;
    if (p->op == IR_LOAD)
        return p->load.n == p->load.buffer->n && t->load.n == t->load.buffer->n && !p->load.mask && !t->load.mask &&
               match_access(m, p->load.buffer, p->load.index, t->load.buffer, t->load.index);
    if (p->op == IR_INT || p->op == IR_FLOAT)
        return ir_same(p, t) || differ_exprs(m, "a constant", p, t);
    if (p->op == IR_CALL)
        return (base_same(p->call.name, t->call.name) && p->call.n == t->call.n && !p->call.n_buffers && !t->call.n_buffers &&
                match_args(m, p->call.arg, t->call.arg, p->call.n)) ||
               differ_exprs(m, "a call", p, t);
    if (ir_is_op(p->op) && (ir_ops[p->op].flags & IR_COMMUTES))
        return match_commuting(m, p, t);
    if (ir_is_op(p->op) || p->op == IR_CAST || p->op == IR_REINTERPRET)
        return match_args(m, p->arg, t->arg, 3);
    return ir_same(p, t) || differ_exprs(m, "an operand", p, t);
}

/* ---- statements ---- */

static bool match_stmt(matcher *m, const ir_stmt *p, const ir_stmt *t);

static const char *kind_text(const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: return "a loop";
    case IR_STORE: return "a store";
    case IR_UPDATE: return "an update";
    case IR_IF: return "a condition";
    case IR_SEQ: return "a sequence";
    case IR_LET_STMT: return "a let";
    case IR_BLOCK: case IR_ALLOCATE: case IR_ASSERT: case IR_ATTRIBUTE: case IR_EVALUATE: break;
    }
    return "another statement";
}

static const char *first_line(matcher *m, const ir_stmt *s)
{
    const char *text = ir_stmt_text(m->cx, s), *end = strchr(text, '\n');

    return base_strndup(m->cx, text, end ? (size_t)(end - text) : strlen(text));
}

static bool match_update(matcher *m, const ir_stmt *p, const ir_stmt *t)
{
    const ir_combiner *c = p->update.combiner;

    for (int i = 0; i < c->n && i < t->update.combiner->n; i++)
        if (!same_dtype(m, p->update.buffer[i], t->update.buffer[i]))
            return false;
    if (!ir_same_combiner(c, t->update.combiner))
        return differ(m, "the combiner differs: the intrinsic has '%s', the program '%s'", first_line(m, p), first_line(m, t));
    m->score++;
    for (int i = 0; i < c->n; i++)
        if (!match_expr(m, p->update.source[i], t->update.source[i]))
            return false;
    for (int i = 0; i < c->n; i++)
        if (!match_access(m, p->update.buffer[i], p->update.index, t->update.buffer[i], t->update.index))
            return false;
    return true;
}

static bool match_let(matcher *m, const ir_stmt *p, const ir_stmt *t)
{
    return match_expr(m, p->let.value, t->let.value) && set_value(m, p->let.var, t->let.var) && match_stmt(m, p->let.body, t->let.body);
}

static bool match_seq(matcher *m, const ir_stmt *p, const ir_stmt *t)
{
    if (p->seq.n != t->seq.n)
        return differ(m, "the intrinsic does %d things one after the other, the program %d", p->seq.n, t->seq.n);
    for (int i = 0; i < p->seq.n; i++)
        if (!match_stmt(m, p->seq.stmt[i], t->seq.stmt[i]))
            return false;
    return true;
}

static bool match_leaf(matcher *m, const ir_stmt *p, const ir_stmt *t)
{
    if (p->kind != t->kind)
        return differ(m, "the intrinsic has %s where the program has %s: '%s' against '%s'", kind_text(p), kind_text(t), first_line(m, p),
                      first_line(m, t));
    m->score++;
    if (p->kind == IR_UPDATE)
        return match_update(m, p, t);
    if (p->kind == IR_LET_STMT)
        return match_let(m, p, t);
    if (p->kind == IR_SEQ)
        return match_seq(m, p, t);
    if (p->kind == IR_STORE)
        return !p->store.mask && !t->store.mask && p->store.n == p->store.buffer->n && t->store.n == t->store.buffer->n &&
               match_expr(m, p->store.value, t->store.value) &&
               match_access(m, p->store.buffer, p->store.index, t->store.buffer, t->store.index);
    return differ(m, "the program has '%s', which no intrinsic means", first_line(m, t));
}

/* ---- loops ---- */

static bool match_conditions(matcher *m, const nest *p, const nest *t)
{
    if (p->conditions.n != t->conditions.n)
        return differ(m, "the conditions differ: the intrinsic has '%s', the program '%s'", shown(m, p->conditions.n ? p->conditions.at[0] : NULL),
                      shown(m, t->conditions.n ? t->conditions.at[0] : NULL));
    return match_chain(m, (const ir_expr *const *)p->conditions.at, (const ir_expr *const *)t->conditions.at, p->conditions.n, 0, 0);
}

static bool same_extent(matcher *m, int i, int j)
{
    const ir_expr *p = m->p->extent[i], *t = m->t->extent[j];

    if (m->t->cut[j] && is_constant(p))
        return differ(m, "a condition differs: loop '%s' runs to %s in the intrinsic; in the program a condition ends '%s' at %s",
                      m->p->var[i]->var.name, shown(m, p), m->t->var[j]->var.name, shown(m, t));
    return same_size(m, p, t) || differ(m, "the extent of '%s' is %s in the intrinsic; in the program '%s' has %s", m->p->var[i]->var.name,
                                        shown(m, p), m->t->var[j]->var.name, shown(m, t));
}

/* Whether the order of loops that both accumulate into one element is kept: a combiner that does not reorder demands it. */
static bool order_is_free(matcher *m)
{
    const ir_stmt *p = m->p->leaf;

    if (p->kind == IR_STORE && !ir_loads(m->cx, p->store.value))
        return true;
    if (p->kind == IR_UPDATE && p->update.combiner->reorders)
        return true;
    for (int i = 1; i < m->p->n; i++)
        if (loop_index(m->t, m->image[i]) < loop_index(m->t, m->image[i - 1]))
            return p->kind != IR_UPDATE || differ(m, "the order of the loops differs, and the combiner '%s' is not declared associative and commutative",
                                                  p->update.combiner->name);
    return true;
}

static bool assign(matcher *m, int i, unsigned used)
{
    if (i == m->p->n)
        return order_is_free(m) && match_conditions(m, m->p, m->t) && match_leaf(m, m->p->leaf, m->t->leaf);
    for (int j = 0; j < m->t->n; j++) {
        ir_match before = m->m;
        int score = m->score;

        if (used & 1u << j)
            continue;
        m->image[i] = m->t->var[j];
        m->score += i == j ? IN_PLACE : 0;
        if (same_extent(m, i, j) && assign(m, i + 1, used | 1u << j))
            return true;
        m->m = before;
        m->score = score;
    }
    return false;
}

/* A nest within the nests that m stands in has its own loops. */
static bool match_stmt(matcher *m, const ir_stmt *ps, const ir_stmt *ts)
{
    nest p, t;
    matcher inner = *m;

    if (!read_nest(m->cx, ps, &p) || !read_nest(m->cx, ts, &t))
        return differ(m, "more than %d loops are not compared", MAX_LOOPS);
    inner.p = &p;
    inner.t = &t;
    cut_loops(&inner, &t);
    bool good = p.n == t.n ? assign(&inner, 0, 0)
                           : differ(&inner, "the loops differ: the intrinsic has %d of more than one iteration, the program %d", p.n, t.n);
    m->m = inner.m;
    m->score = inner.score;
    m->best = inner.best;
    m->reason = inner.reason;
    return good;
}

/* Strides and sizes that only loops of one iteration would have told. */
static void fill_values(matcher *m)
{
    for (int i = 0; i < m->meaning->n_params; i++) {
        const ir_expr *s = m->meaning->params[i].scalar;

        if (s && !value_of(m, s) && base_dtype_same(s->dtype, BASE_I64))
            set_value(m, s, ir_int(m->cx, 1));
    }
}

static bool check_facts(matcher *m)
{
    for (int i = 0; i < m->meaning->n_facts; i++)
        if (!ir_prove(m->f, applied(m, m->meaning->facts[i])))
            return differ(m, "the intrinsic wants '%s', which is not proven: '%s'", shown(m, m->meaning->facts[i]),
                          shown(m, applied(m, m->meaning->facts[i])));
    return true;
}

bool ir_match_nest(const ir_facts *f, const ir_program *meaning, const ir_stmt *s, ir_match *out)
{
    tec_context *cx = ir_facts_context(f);
    matcher m = {.cx = cx, .f = f, .meaning = meaning, .score = 1};
    const ir_stmt *pattern = ir_plain_nest(cx, meaning->body);
    bool good = pattern && s && match_stmt(&m, pattern, s);

    if (good)
        fill_values(&m);
    good = good && check_facts(&m);
    *out = m.m;
    out->reason = good ? NULL : m.reason ? m.reason : "they differ";
    return good;
}

/* ---- the call ---- */

static const ir_operand *operand_of(const ir_match *m, const ir_buffer *param)
{
    for (int i = 0; i < m->n; i++)
        if (m->operand[i].param == param)
            return &m->operand[i];
    return NULL;
}

const ir_expr *ir_match_call(tec_context *cx, const ir_intrinsic *in, const ir_match *m)
{
    const ir_program *p = in->meaning;
    const ir_buffer **buffer = base_array(cx, const ir_buffer *, p->n_params);
    const ir_expr **arg = base_array(cx, const ir_expr *, p->n_params);
    int n_buffers = 0;

    for (int i = 0; i < p->n_params; i++) {
        const ir_operand *o = p->params[i].buffer ? operand_of(m, p->params[i].buffer) : NULL;

        if (p->params[i].buffer && !o)
            return base_fail(cx, TEC_INVALID, in->meaning->loc, "'%s' does not use its operand '%s'", in->name, p->params[i].buffer->name);
        if (o) {
            buffer[n_buffers++] = o->buffer;
            arg[i] = o->offset;
        }
        for (int k = 0; !o && k < m->n_values; k++)
            if (m->var[k] == p->params[i].scalar)
                arg[i] = m->value[k];
        if (!arg[i])
            return base_fail(cx, TEC_INVALID, in->meaning->loc, "'%s' does not use its value '%s'", in->name, p->params[i].scalar->var.name);
    }
    return ir_call(cx, BASE_I32, in->name, in, arg, p->n_params, buffer, n_buffers, false);
}
