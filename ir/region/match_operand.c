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

const char *ir_match_shown(ir_matcher *matcher, const ir_expr *expr)
{
    return expr ? ir_expr_text_cut(matcher->cx, expr, 120) : "nothing";
}

/* Keeps the reason with the highest score. Always false, for callers to return. */
bool ir_match_differ(ir_matcher *matcher, const char *fmt, ...)
{
    va_list args;

    if (matcher->score <= matcher->best)
        return false;
    matcher->best = matcher->score;
    va_start(args, fmt);
    matcher->reason = base_vformat(matcher->cx, fmt, args);
    va_end(args);
    return false;
}

/* ---- nests ---- */

/* Loops of one iteration stand for their value. False: more loops than are compared. Loops that do not begin
 * at 0 end the chain; what is below them is the leaf, which then fails to match.
 *
 *     for i in 0..4 { for one in 0..1 { if i < n { for j in 0..8 { X } } } }
 *     =>  loops i: 4, j: 8;  conditions i < n;  leaf X, with 0 in the place of `one`
 */
bool ir_match_read_nest(tec_context *cx, const ir_stmt *stmt, ir_nest *out)
{
    *out = (ir_nest){0};
    for (;; stmt = stmt->kind == IR_FOR ? stmt->loop.body : stmt->branch.then) {
        while (stmt->kind == IR_FOR && ir_is_value(stmt->loop.extent, 1))
            stmt = ir_substitute_stmt(cx, stmt->loop.body, stmt->loop.var, stmt->loop.min);
        if (stmt->kind == IR_IF && !stmt->branch.otherwise) {
            ir_conjuncts(cx, stmt->branch.cond, IR_DROP_LIKELY, &out->conditions);
            continue;
        }
        out->leaf = stmt;
        if (stmt->kind != IR_FOR || !ir_is_value(stmt->loop.min, 0))
            return true;
        if (out->n == IR_MATCH_LOOPS)
            return false;
        out->var[out->n] = stmt->loop.var;
        out->extent[out->n++] = stmt->loop.extent;
    }
}

int ir_match_loop_index(const ir_nest *nest, const ir_expr *var)
{
    for (int i = 0; i < nest->n; i++)
        if (nest->var[i] == var)
            return i;
    return -1;
}

bool ir_match_is_constant(const ir_expr *expr)
{
    int64_t v;

    return ir_is_int(expr, &v);
}

/* A condition var + rest < 0 over one loop with variable var: the loop ends at -rest.
 *
 *     for x in 0..16 { if xo*16 + x < n { .. } }:   x runs to min(16, max(n - xo*16, 0))
 */
static bool cut_loop(ir_matcher *matcher, ir_nest *nest, const ir_expr *condition)
{
    int64_t by[IR_MATCH_LOOPS];
    const ir_expr *rest;
    int loop = -1;

    if (condition->op != IR_LT || !base_dtype_same(condition->arg[0]->dtype, BASE_I64) ||
        !ir_linear(matcher->f, ir_sub(matcher->cx, condition->arg[0], condition->arg[1]), nest->var, nest->n,
                   by, &rest))
        return false;
    for (int i = 0; i < nest->n; i++) {
        if (by[i] && (by[i] != 1 || loop >= 0))
            return false;
        loop = by[i] ? i : loop;
    }
    if (loop < 0)
        return false;
    const ir_expr *end =
        ir_max(matcher->cx, ir_sub(matcher->cx, ir_int(matcher->cx, 0), rest), ir_int(matcher->cx, 0));
    nest->extent[loop] = ir_simplify(matcher->f, ir_min(matcher->cx, nest->extent[loop], end));
    nest->cut[loop] = true;
    return true;
}

/* Conditions that only end a loop early shorten its extent; the others stay. After this the extents may be
 * expressions such as min(16, nest - xo*16), which a fixed extent of an intrinsic does not match. */
void ir_match_cut_loops(ir_matcher *matcher, ir_nest *nest)
{
    base_vec others = {0};

    for (int i = 0; i < nest->conditions.n; i++)
        if (!cut_loop(matcher, nest, nest->conditions.at[i]))
            base_push(matcher->cx, &others, nest->conditions.at[i]);
    nest->conditions = others;
}

/* ---- values ---- */

const ir_expr *ir_match_value_of(const ir_matcher *matcher, const ir_expr *var)
{
    for (int i = 0; i < matcher->m.n_values; i++)
        if (matcher->m.var[i] == var)
            return matcher->m.value[i];
    return NULL;
}

bool ir_match_is_param(const ir_matcher *matcher, const ir_expr *var)
{
    for (int i = 0; i < matcher->meaning->n_params; i++)
        if (matcher->meaning->params[i].scalar == var)
            return true;
    return false;
}

bool ir_match_uses_loops(const ir_matcher *matcher, const ir_nest *nest, const ir_expr *expr)
{
    for (int i = 0; i < nest->n; i++)
        if (ir_uses_var(matcher->cx, expr, nest->var[i]))
            return true;
    return false;
}

static bool same_value(ir_matcher *matcher, const ir_expr *left, const ir_expr *right)
{
    return left == right || ir_same(left, right) ||
           (base_dtype_same(left->dtype, BASE_I64) && ir_prove_equal(matcher->f, left, right));
}

/* A parameter has one value: a second use must give the same. Values are undone with the attempt, as they lie
 * in matcher->matcher. */
bool ir_match_set_value(ir_matcher *matcher, const ir_expr *var, const ir_expr *value)
{
    const ir_expr *known = ir_match_value_of(matcher, var);

    if (known)
        return same_value(matcher, known, value) ||
               ir_match_differ(matcher, "'%s' of the intrinsic would be '%s' and '%s'", var->var.name,
                               ir_match_shown(matcher, known), ir_match_shown(matcher, value));
    if (matcher->m.n_values == IR_MATCH_VALUES)
        return ir_match_differ(matcher, "the intrinsic has more than %d values", IR_MATCH_VALUES);
    matcher->m.var[matcher->m.n_values] = var;
    matcher->m.value[matcher->m.n_values++] = value;
    return true;
}

/* An expression of the meaning over symbols, with what is known of them. */
const ir_expr *ir_match_applied(ir_matcher *matcher, const ir_expr *expr)
{
    ir_subst map = {0};

    for (int i = 0; i < matcher->m.n_values; i++)
        base_map_put(matcher->cx, &map.vars, matcher->m.var[i], matcher->m.value[i]);
    return ir_apply(matcher->cx, &map, expr);
}

static bool has_unknown(ir_matcher *matcher, const ir_expr *expr)
{
    base_vec vars = {0};

    ir_free_vars(matcher->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!ir_match_value_of(matcher, vars.at[i]))
            return true;
    return false;
}

/* A size of the meaning against one of the program: a symbol that is not known yet takes it. Once a symbol
 * has its value, later sizes must be proven equal to it. */
bool ir_match_same_size(ir_matcher *matcher, const ir_expr *pattern, const ir_expr *target)
{
    if (pattern->op == IR_VAR && !ir_match_value_of(matcher, pattern))
        return ir_match_set_value(matcher, pattern, target);
    return !has_unknown(matcher, pattern) &&
           ir_prove_equal(matcher->f, ir_match_applied(matcher, pattern), target);
}

/* ---- accesses ---- */

/* Elements from one index of dimension d to the next. */
static const ir_expr *stride_of(tec_context *cx, const ir_buffer *buffer, int d)
{
    const ir_expr *product = ir_int(cx, 1);

    if (buffer->strides)
        return buffer->strides[d];
    for (int i = d + 1; i < buffer->n; i++)
        product = ir_mul(cx, product, buffer->shape[i]);
    return product;
}

/* The element number as base + the sum of step[j] * loop j. False: some index is not linear in the loops.
 *
 *     C[y, xo*16 + x] of a C: f32[m, n], loops x:   base = y*n + xo*16, step of x = 1
 */
static bool read_access(ir_matcher *matcher, const ir_nest *nest, const ir_buffer *buffer,
                        const ir_expr *const *index, const ir_expr **base, const ir_expr **step)
{
    tec_context *cx = matcher->cx;

    *base = ir_int(cx, 0);
    for (int j = 0; j < nest->n; j++)
        step[j] = ir_int(cx, 0);
    for (int d = 0; d < buffer->n; d++) {
        int64_t by[IR_MATCH_LOOPS];
        const ir_expr *rest, *stride = stride_of(cx, buffer, d);

        if (!ir_linear(matcher->f, index[d], nest->var, nest->n, by, &rest))
            return ir_match_differ(matcher, "the index '%s' of '%s' is not linear in the loops",
                                   ir_match_shown(matcher, index[d]), buffer->name);
        *base = ir_add(cx, *base, ir_mul(cx, rest, stride));
        for (int j = 0; j < nest->n; j++)
            step[j] = ir_add(cx, step[j], ir_mul(cx, ir_int(cx, by[j]), stride));
    }
    *base = ir_simplify(matcher->f, *base);
    for (int j = 0; j < nest->n; j++)
        step[j] = ir_simplify(matcher->f, step[j]);
    return true;
}

/* For each loop, both sides must move through memory by the same number of elements. A stride that is a
 * symbol in the meaning takes the program's stride at its first use. Compared by elements and not by bytes,
 * as both sides have one dtype. */
static bool same_steps(ir_matcher *matcher, const ir_buffer *pattern, const ir_expr *const *ps,
                       const ir_buffer *target, const ir_expr *const *ts)
{
    for (int j = 0; j < matcher->p->n; j++) {
        const ir_expr *step = ts[ir_match_loop_index(matcher->t, matcher->image[j])];

        matcher->score += ir_is_value(ps[j], 0) == ir_is_value(step, 0);
        if (!ir_match_same_size(matcher, ps[j], step))
            return ir_match_differ(
                matcher,
                "the stride of '%s' along '%s' is %s in the intrinsic; in the program '%s' has %s along '%s'",
                pattern->name, matcher->p->var[j]->var.name, ir_match_shown(matcher, ps[j]), target->name,
                ir_match_shown(matcher, step), matcher->image[j]->var.name);
        matcher->score++;
    }
    return true;
}

static bool is_output(const ir_matcher *matcher, const ir_buffer *buffer)
{
    for (int i = 0; i < matcher->meaning->n_params; i++)
        if (matcher->meaning->params[i].buffer == buffer)
            return matcher->meaning->params[i].output;
    return false;
}

/* Elements that are apart in an output of the intrinsic are apart in the program: its text may write them in
 * any order, or all at once. An output C[i] with i in 0..4 that the program stores to D[j], for all four
 * values of i, is another meaning: the intrinsic leaves four elements, the program one. */
static bool check_apart(ir_matcher *matcher, const ir_buffer *pattern, const ir_expr *const *ps,
                        const ir_buffer *target, const ir_expr *const *ti)
{
    for (int j = 0; j < matcher->p->n && is_output(matcher, pattern); j++) {
        bool moves = ir_is_value(ps[j], 0);

        for (int d = 0; d < target->n; d++)
            moves = moves || ir_uses_var(matcher->cx, ti[d], matcher->image[j]);
        if (!moves)
            return ir_match_differ(matcher,
                                   "each '%s' has elements of '%s' of its own in the intrinsic; in the "
                                   "program all '%s' have the same of '%s'",
                                   matcher->p->var[j]->var.name, pattern->name, matcher->image[j]->var.name,
                                   target->name);
    }
    return true;
}

/* What is written must not be what another operand reads. Reading and writing the same element of one buffer
 * is fine if the meaning itself has one operand for both. */
static bool check_overlap(ir_matcher *matcher, const ir_buffer *pattern, const ir_buffer *target)
{
    for (int i = 0; i < matcher->m.n; i++) {
        const ir_operand *operand = &matcher->m.operand[i];
        bool shared = operand->buffer == target || (target->alias && operand->buffer->alias == target->alias);

        if (shared && (is_output(matcher, pattern) || is_output(matcher, operand->param)))
            return ir_match_differ(matcher, "'%s' and '%s' of the intrinsic would share the memory of '%s'",
                                   operand->param->name, pattern->name, target->name);
    }
    return true;
}

/* The memory that the intrinsic demands of this operand: its scope, and its alignment as far as it can be
 * proven from the offset in bytes and the alignment of the buffer. Known alignment is all or nothing: either
 * the offset in bytes is a multiple of what is asked for, and the buffer's own alignment counts, or only that
 * of an element is certain. */
static bool check_place(ir_matcher *matcher, const ir_buffer *pattern, const ir_buffer *target,
                        const ir_expr *offset)
{
    int64_t bytes = base_dtype_bytes(target->dtype), have;

    if (pattern->scope != IR_GLOBAL && pattern->scope != target->scope)
        return ir_match_differ(matcher, "the scope of '%s' is %s in the intrinsic; in the program '%s' is %s",
                               pattern->name, ir_scope_text(pattern->scope), target->name,
                               ir_scope_text(target->scope));
    if (!pattern->align)
        return true;
    ir_modular at = ir_modulus(
        matcher->f,
        ir_mul(matcher->cx,
               ir_add(matcher->cx, offset, target->offset ? target->offset : ir_int(matcher->cx, 0)),
               ir_int(matcher->cx, bytes)));
    int64_t align = target->align ? target->align : target->scope == IR_SHARED ? IR_SHARED_ALIGN : bytes;
    have = at.coefficient == 0 && at.base == 0                                     ? align
           : at.base % pattern->align == 0 && at.coefficient % pattern->align == 0 ? align
                                                                                   : bytes;
    if (have % pattern->align != 0)
        return ir_match_differ(matcher,
                               "the alignment of '%s' is %d bytes in the intrinsic; in the program '%s' at "
                               "element %s is only known to be aligned to %lld",
                               pattern->name, pattern->align, target->name, ir_match_shown(matcher, offset),
                               (long long)have);
    return true;
}

/* A buffer that the meaning uses twice, say loaded and stored, is one operand: both uses must begin at the
 * same element of the same buffer. The first use binds the parameter; each further one must agree. Then the
 * rules for what an operand may be: outputs overlap nothing else, and the place fits the alignment and
 * strides that the intrinsic needs. */
static bool bind_operand(ir_matcher *matcher, const ir_buffer *pattern, const ir_buffer *target,
                         const ir_expr *offset)
{
    for (int i = 0; i < matcher->m.n; i++) {
        const ir_operand *operand = &matcher->m.operand[i];

        if (operand->param != pattern)
            continue;
        if (operand->buffer != target || !ir_prove_equal(matcher->f, operand->offset, offset))
            return ir_match_differ(
                matcher,
                "operand '%s' of the intrinsic would be '%s' from element %s on, and '%s' from element %s on",
                pattern->name, operand->buffer->name, ir_match_shown(matcher, operand->offset), target->name,
                ir_match_shown(matcher, offset));
        return true;
    }
    if (matcher->m.n == IR_MATCH_OPERANDS || !check_overlap(matcher, pattern, target) ||
        !check_place(matcher, pattern, target, offset))
        return false;
    matcher->m.operand[matcher->m.n++] = (ir_operand){pattern, target, offset};
    return true;
}

bool ir_match_same_dtype(ir_matcher *matcher, const ir_buffer *pattern, const ir_buffer *target)
{
    return base_dtype_same(pattern->dtype, target->dtype) ||
           ir_match_differ(matcher, "the dtype differs: '%s' of the intrinsic is %s, '%s' is %s",
                           pattern->name, base_dtype_text(matcher->cx, pattern->dtype), target->name,
                           base_dtype_text(matcher->cx, target->dtype));
}

/* Compares one load or store of both sides and binds the operand. Where the intrinsic's own access begins at
 * an element that depends on an unknown symbol, the operand's first element cannot be computed. An access is
 * base + sum of step * loop on both sides. Steps must agree loop by loop; the difference of the bases is the
 * operand's first element:
 *
 *     intrinsic  A[i*8 + k]          base 0, steps i: 8, k: 1
 *     program    P[y*64 + i*8 + k]   base y*64, the same steps:      A is P from element y*64 on
 */
bool ir_match_access(ir_matcher *matcher, const ir_buffer *pattern, const ir_expr *const *pi,
                     const ir_buffer *target, const ir_expr *const *ti)
{
    const ir_expr *pb, *tb, *ps[IR_MATCH_LOOPS], *ts[IR_MATCH_LOOPS];

    if (!ir_match_same_dtype(matcher, pattern, target))
        return false;
    matcher->score++;
    if (!read_access(matcher, matcher->p, pattern, pi, &pb, ps) ||
        !read_access(matcher, matcher->t, target, ti, &tb, ts) ||
        !same_steps(matcher, pattern, ps, target, ts) || !check_apart(matcher, pattern, ps, target, ti))
        return false;
    if (has_unknown(matcher, pb))
        return ir_match_differ(matcher,
                               "where '%s' of the intrinsic begins, '%s', no loop of the program tells",
                               pattern->name, ir_match_shown(matcher, pb));
    return bind_operand(matcher, pattern, target,
                        ir_simplify(matcher->f, ir_sub(matcher->cx, tb, ir_match_applied(matcher, pb))));
}
