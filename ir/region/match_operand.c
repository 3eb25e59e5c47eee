/* ir/region/match_operand.c -- nests read for comparing them, and the operands of intrinsics: sizes, strides,
 * memory. See matcher.h.
 *
 *     C[y, xo*16 + x] under x   is   element y*n + xo*16 of C, and 1 more for each step of x
 *
 * A worked example, of the intrinsic's c[i*s] against the program's C[y, xo*16 + x], with i = x and C: f32[m,
 * n]:
 *
 *     meaning    base 0, step of i: s
 *     program    base y*n + xo*16, step of x: 1
 *     steps      s is a parameter without a value: it becomes 1
 *     operand    c is C from element y*n + xo*16 - 0 on
 *
 * A second access of c must then have the step 1 along i and begin at the same element. An output that does
 * not move with a loop in the program (C[y] under x) is refused: the instruction would store 16 numbers to
 * places of their own, and the program means one place.
 */
#include <string.h>

#include "ir/build.h"
#include "ir/region/matcher.h"
#include "ir/text.h"
#include "ir/walk.h"

/* ---- reasons ---- */

const char *ir_match_shown(ir_matcher *m, const ir_expr *e)
{
    return e ? ir_expr_text_cut(m->cx, e, 120) : "nothing";
}

/* Keeps the reason with the highest score. Always false, for callers to return. */
bool ir_match_differ(ir_matcher *m, const char *fmt, ...)
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

/* ---- nests ---- */

/* Loops of one iteration stand for their value. False: more loops than are compared. Loops that do not begin
 * at 0 end the chain; what is below them is the leaf, which then fails to match. */
bool ir_match_read_nest(tec_context *cx, const ir_stmt *s, ir_nest *out)
{
    *out = (ir_nest){0};
    for (;; s = s->kind == IR_FOR ? s->loop.body : s->branch.then) {
        while (s->kind == IR_FOR && ir_is_value(s->loop.extent, 1))
            s = ir_substitute_stmt(cx, s->loop.body, s->loop.var, s->loop.min);
        if (s->kind == IR_IF && !s->branch.otherwise) {
            ir_conjuncts(cx, s->branch.cond, IR_DROP_LIKELY, &out->conditions);
            continue;
        }
        out->leaf = s;
        if (s->kind != IR_FOR || !ir_is_value(s->loop.min, 0))
            return true;
        if (out->n == IR_MATCH_LOOPS)
            return false;
        out->var[out->n] = s->loop.var;
        out->extent[out->n++] = s->loop.extent;
    }
}

int ir_match_loop_index(const ir_nest *n, const ir_expr *var)
{
    for (int i = 0; i < n->n; i++)
        if (n->var[i] == var)
            return i;
    return -1;
}

bool ir_match_is_constant(const ir_expr *e)
{
    int64_t v;

    return ir_is_int(e, &v);
}

/* v + rest < 0 for the loop of v: the loop ends at -rest.
 *
 *     for x in 0..16 { if xo*16 + x < n { .. } }:   x runs to min(16, max(n - xo*16, 0))
 */
static bool cut_loop(ir_matcher *m, ir_nest *n, const ir_expr *condition)
{
    int64_t by[IR_MATCH_LOOPS];
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

/* Conditions that only end a loop early shorten its extent; the others stay. After this the extents may be
 * expressions such as min(16, n - xo*16), which a fixed extent of an intrinsic does not match. */
void ir_match_cut_loops(ir_matcher *m, ir_nest *n)
{
    base_vec others = {0};

    for (int i = 0; i < n->conditions.n; i++)
        if (!cut_loop(m, n, n->conditions.at[i]))
            base_push(m->cx, &others, n->conditions.at[i]);
    n->conditions = others;
}

/* ---- values ---- */

const ir_expr *ir_match_value_of(const ir_matcher *m, const ir_expr *var)
{
    for (int i = 0; i < m->m.n_values; i++)
        if (m->m.var[i] == var)
            return m->m.value[i];
    return NULL;
}

bool ir_match_is_param(const ir_matcher *m, const ir_expr *var)
{
    for (int i = 0; i < m->meaning->n_params; i++)
        if (m->meaning->params[i].scalar == var)
            return true;
    return false;
}

bool ir_match_uses_loops(const ir_matcher *m, const ir_nest *n, const ir_expr *e)
{
    for (int i = 0; i < n->n; i++)
        if (ir_uses_var(m->cx, e, n->var[i]))
            return true;
    return false;
}

static bool same_value(ir_matcher *m, const ir_expr *a, const ir_expr *b)
{
    return a == b || ir_same(a, b) || (base_dtype_same(a->dtype, BASE_I64) && ir_prove_equal(m->f, a, b));
}

/* A parameter has one value: a second use must give the same. Values are undone with the attempt, as they lie
 * in m->m. */
bool ir_match_set_value(ir_matcher *m, const ir_expr *var, const ir_expr *value)
{
    const ir_expr *known = ir_match_value_of(m, var);

    if (known)
        return same_value(m, known, value) ||
               ir_match_differ(m, "'%s' of the intrinsic would be '%s' and '%s'", var->var.name,
                               ir_match_shown(m, known), ir_match_shown(m, value));
    if (m->m.n_values == IR_MATCH_VALUES)
        return ir_match_differ(m, "the intrinsic has more than %d values", IR_MATCH_VALUES);
    m->m.var[m->m.n_values] = var;
    m->m.value[m->m.n_values++] = value;
    return true;
}

/* An expression of the meaning over symbols, with what is known of them. */
const ir_expr *ir_match_applied(ir_matcher *m, const ir_expr *e)
{
    ir_subst map = {0};

    for (int i = 0; i < m->m.n_values; i++)
        base_map_put(m->cx, &map.vars, m->m.var[i], m->m.value[i]);
    return ir_apply(m->cx, &map, e);
}

static bool has_unknown(ir_matcher *m, const ir_expr *e)
{
    base_vec vars = {0};

    ir_free_vars(m->cx, e, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!ir_match_value_of(m, vars.at[i]))
            return true;
    return false;
}

/* A size of the meaning against one of the program: a symbol that is not known yet takes it. Once a symbol
 * has its value, later sizes must be proven equal to it. */
bool ir_match_same_size(ir_matcher *m, const ir_expr *p, const ir_expr *t)
{
    if (p->op == IR_VAR && !ir_match_value_of(m, p))
        return ir_match_set_value(m, p, t);
    return !has_unknown(m, p) && ir_prove_equal(m->f, ir_match_applied(m, p), t);
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

/* The element number as base + the sum of step[j] * loop j. False: some index is not linear in the loops.
 *
 *     C[y, xo*16 + x] of a C: f32[m, n], loops x:   base = y*n + xo*16, step of x = 1
 */
static bool read_access(ir_matcher *m, const ir_nest *n, const ir_buffer *b, const ir_expr *const *index,
                        const ir_expr **base, const ir_expr **step)
{
    tec_context *cx = m->cx;

    *base = ir_int(cx, 0);
    for (int j = 0; j < n->n; j++)
        step[j] = ir_int(cx, 0);
    for (int d = 0; d < b->n; d++) {
        int64_t by[IR_MATCH_LOOPS];
        const ir_expr *rest, *stride = stride_of(cx, b, d);

        if (!ir_linear(m->f, index[d], n->var, n->n, by, &rest))
            return ir_match_differ(m, "the index '%s' of '%s' is not linear in the loops",
                                   ir_match_shown(m, index[d]), b->name);
        *base = ir_add(cx, *base, ir_mul(cx, rest, stride));
        for (int j = 0; j < n->n; j++)
            step[j] = ir_add(cx, step[j], ir_mul(cx, ir_int(cx, by[j]), stride));
    }
    *base = ir_simplify(m->f, *base);
    for (int j = 0; j < n->n; j++)
        step[j] = ir_simplify(m->f, step[j]);
    return true;
}

/* For each loop, both sides must move through memory by the same number of elements. A stride that is a
 * symbol in the meaning takes the program's stride at its first use. Compared by elements and not by bytes,
 * as both sides have one dtype. */
static bool same_steps(ir_matcher *m, const ir_buffer *p, const ir_expr *const *ps, const ir_buffer *t,
                       const ir_expr *const *ts)
{
    for (int j = 0; j < m->p->n; j++) {
        const ir_expr *step = ts[ir_match_loop_index(m->t, m->image[j])];

        m->score += ir_is_value(ps[j], 0) == ir_is_value(step, 0);
        if (!ir_match_same_size(m, ps[j], step))
            return ir_match_differ(
                m,
                "the stride of '%s' along '%s' is %s in the intrinsic; in the program '%s' has %s along '%s'",
                p->name, m->p->var[j]->var.name, ir_match_shown(m, ps[j]), t->name, ir_match_shown(m, step),
                m->image[j]->var.name);
        m->score++;
    }
    return true;
}

static bool is_output(const ir_matcher *m, const ir_buffer *b)
{
    for (int i = 0; i < m->meaning->n_params; i++)
        if (m->meaning->params[i].buffer == b)
            return m->meaning->params[i].output;
    return false;
}

/* Elements that are apart in an output of the intrinsic are apart in the program: its text may write them in
 * any order, or all at once. */
static bool check_apart(ir_matcher *m, const ir_buffer *p, const ir_expr *const *ps, const ir_buffer *t,
                        const ir_expr *const *ti)
{
    for (int j = 0; j < m->p->n && is_output(m, p); j++) {
        bool moves = ir_is_value(ps[j], 0);

        for (int d = 0; d < t->n; d++)
            moves = moves || ir_uses_var(m->cx, ti[d], m->image[j]);
        if (!moves)
            return ir_match_differ(m,
                                   "each '%s' has elements of '%s' of its own in the intrinsic; in the "
                                   "program all '%s' have the same of '%s'",
                                   m->p->var[j]->var.name, p->name, m->image[j]->var.name, t->name);
    }
    return true;
}

/* What is written must not be what another operand reads. Reading and writing the same element of one buffer
 * is fine if the meaning itself has one operand for both. */
static bool check_overlap(ir_matcher *m, const ir_buffer *p, const ir_buffer *t)
{
    for (int i = 0; i < m->m.n; i++) {
        const ir_operand *o = &m->m.operand[i];
        bool shared = o->buffer == t || (t->alias && o->buffer->alias == t->alias);

        if (shared && (is_output(m, p) || is_output(m, o->param)))
            return ir_match_differ(m, "'%s' and '%s' of the intrinsic would share the memory of '%s'",
                                   o->param->name, p->name, t->name);
    }
    return true;
}

/* The memory that the intrinsic demands of this operand: its scope, and its alignment as far as it can be
 * proven from the offset in bytes and the alignment of the buffer. Known alignment is all or nothing: either
 * the offset in bytes is a multiple of what is asked for, and the buffer's own alignment counts, or only that
 * of an element is certain. */
static bool check_place(ir_matcher *m, const ir_buffer *p, const ir_buffer *t, const ir_expr *offset)
{
    int64_t bytes = base_dtype_bytes(t->dtype), have;

    if (p->scope != IR_GLOBAL && p->scope != t->scope)
        return ir_match_differ(m, "the scope of '%s' is %s in the intrinsic; in the program '%s' is %s",
                               p->name, ir_scope_text(p->scope), t->name, ir_scope_text(t->scope));
    if (!p->align)
        return true;
    ir_modular at =
        ir_modulus(m->f, ir_mul(m->cx, ir_add(m->cx, offset, t->offset ? t->offset : ir_int(m->cx, 0)),
                                ir_int(m->cx, bytes)));
    int64_t align = t->align ? t->align : bytes;
    have = at.coefficient == 0 && at.base == 0                         ? align
           : at.base % p->align == 0 && at.coefficient % p->align == 0 ? align
                                                                       : bytes;
    if (have % p->align != 0)
        return ir_match_differ(m,
                               "the alignment of '%s' is %d bytes in the intrinsic; in the program '%s' at "
                               "element %s is only known to be aligned to %lld",
                               p->name, p->align, t->name, ir_match_shown(m, offset), (long long)have);
    return true;
}

/* A buffer that the meaning uses twice, say loaded and stored, is one operand: both uses must begin at the
 * same element of the same buffer. */
static bool bind_operand(ir_matcher *m, const ir_buffer *p, const ir_buffer *t, const ir_expr *offset)
{
    for (int i = 0; i < m->m.n; i++) {
        const ir_operand *o = &m->m.operand[i];

        if (o->param != p)
            continue;
        if (o->buffer != t || !ir_prove_equal(m->f, o->offset, offset))
            return ir_match_differ(
                m,
                "operand '%s' of the intrinsic would be '%s' from element %s on, and '%s' from element %s on",
                p->name, o->buffer->name, ir_match_shown(m, o->offset), t->name, ir_match_shown(m, offset));
        return true;
    }
    if (m->m.n == IR_MATCH_OPERANDS || !check_overlap(m, p, t) || !check_place(m, p, t, offset))
        return false;
    m->m.operand[m->m.n++] = (ir_operand){p, t, offset};
    return true;
}

bool ir_match_same_dtype(ir_matcher *m, const ir_buffer *p, const ir_buffer *t)
{
    return base_dtype_same(p->dtype, t->dtype) ||
           ir_match_differ(m, "the dtype differs: '%s' of the intrinsic is %s, '%s' is %s", p->name,
                           base_dtype_text(m->cx, p->dtype), t->name, base_dtype_text(m->cx, t->dtype));
}

/* Compares one load or store of both sides and binds the operand. Where the intrinsic's own access begins at
 * an element that depends on an unknown symbol, the operand's first element cannot be computed. */
bool ir_match_access(ir_matcher *m, const ir_buffer *p, const ir_expr *const *pi, const ir_buffer *t,
                     const ir_expr *const *ti)
{
    const ir_expr *pb, *tb, *ps[IR_MATCH_LOOPS], *ts[IR_MATCH_LOOPS];

    if (!ir_match_same_dtype(m, p, t))
        return false;
    m->score++;
    if (!read_access(m, m->p, p, pi, &pb, ps) || !read_access(m, m->t, t, ti, &tb, ts) ||
        !same_steps(m, p, ps, t, ts) || !check_apart(m, p, ps, t, ti))
        return false;
    if (has_unknown(m, pb))
        return ir_match_differ(m, "where '%s' of the intrinsic begins, '%s', no loop of the program tells",
                               p->name, ir_match_shown(m, pb));
    return bind_operand(m, p, t, ir_simplify(m->f, ir_sub(m->cx, tb, ir_match_applied(m, pb))));
}
