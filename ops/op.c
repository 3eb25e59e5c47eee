/* ops/op.c -- finding operators, inferring types, choosing and emitting implementations; help for relations
 * and bodies. */
#include "ops/op.h"

#include <ctype.h>
#include <stdarg.h>

#include "ir/text.h"
#include "ir/walk.h"

/* Names are unique over all families. The tables are searched row by row: an importer asks once for each
 * node. */
const op_info *op_find(const char *name)
{
    for (int f = 0; f < op_n_families; f++)
        for (int i = 0; i < op_families[f]->n; i++)
            if (base_same(op_families[f]->rows[i].name, name))
                return &op_families[f]->rows[i];
    return NULL;
}

/* The message begins with the operator and, where the node has a name, with that. Gives false, so that a
 * check is `return condition || op_fail(...)`. */
bool op_fail(const op_call *c, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const char *text = base_vformat(c->cx, fmt, args);
    va_end(args);
    if (c->name && *c->name)
        base_fail(c->cx, TEC_INVALID, c->loc, "%s '%s': %s", c->op->name, c->name, text);
    else
        base_fail(c->cx, TEC_INVALID, c->loc, "%s: %s", c->op->name, text);
    return false;
}

/* ---- types ---- */

const char *op_type_text(tec_context *cx, const op_type *t)
{
    base_text text = {0};

    if (t->n < 0)
        return "nothing";
    base_addf(cx, &text, "%s[", base_dtype_text(cx, t->dtype));
    for (int i = 0; i < t->n; i++)
        base_addf(cx, &text, "%s%s", i ? ", " : "", ir_expr_text(cx, t->dim[i]));
    base_add(cx, &text, "]");
    return base_text_str(cx, &text);
}

/* One dimension of two operands under NumPy's rules; NULL: they do not fit. An extent 1 gives way to the
 * other. A symbol that may be 1 when the program runs does not: n against 8 needs the proof that n is 8. */
static const ir_expr *broadcast_dim(const op_call *c, const ir_expr *a, const ir_expr *b)
{
    if (ir_is_value(a, 1))
        return b;
    if (ir_is_value(b, 1) || a == b || ir_same(a, b))
        return a;
    return c->facts && ir_prove_equal(c->facts, a, b) ? a : NULL;
}

/* The shape that all operands broadcast to, by NumPy's rule: dimensions are aligned at the end, and an extent
 * of 1 fits any other.
 *
 *     f32[n, 1, 4] and f32[3, 1]     [n, 3, 4]
 *     f32[n, 4] and f32[m]           refused, unless m = 4 is a fact
 *
 * The element type is that of the first operand; relations that want another set it. */
bool op_broadcast(const op_call *c, op_type *out)
{
    int n = 0;

    for (int k = 0; k < c->n_inputs; k++)
        n = c->input[k].n > n ? c->input[k].n : n;
    const ir_expr **dim = base_array(c->cx, const ir_expr *, n);
    for (int k = 0; k < c->n_inputs; k++)
        for (int i = 0; i < c->input[k].n; i++) {
            int at = n - c->input[k].n + i;
            const ir_expr *mine = c->input[k].dim[i],
                          *both = dim[at] ? broadcast_dim(c, dim[at], mine) : mine;

            if (!both)
                return op_fail(c, "operand %d is %s: dimension %d does not broadcast with '%s'", k,
                               op_type_text(c->cx, &c->input[k]), i, ir_expr_text(c->cx, dim[at]));
            dim[at] = both;
        }
    *out = (op_type){c->input[0].dtype, n, dim};
    return true;
}

/* ---- sizes ---- */

/* A process addresses 2^47 bytes; a dimension that takes more terms than that would take longer to simplify
 * than the model to run. */
enum { MOST_BYTES_LOG = 47, MOST_TERMS = 1000 };

typedef struct {
    ir_walk walk; /* first, so that the hook finds the rest */
    int terms;
    bool large;
} dim_walk;

/* A hook. Stops at the first number that no address reaches, and where there are too many terms. */
static bool count_term(ir_walk *w, const ir_expr *e)
{
    dim_walk *d = (dim_walk *)w;
    int64_t n;

    d->large = d->large || (ir_is_int(e, &n) && (n >> MOST_BYTES_LOG) != 0 && (n >> MOST_BYTES_LOG) != -1);
    w->stop = ++d->terms > MOST_TERMS || d->large;
    return !w->stop;
}

/* A dimension grows with each operator that computes it from others, so twenty doublings in a row make an
 * expression of a million terms; a part that is shared counts each time. */
bool op_is_short(const ir_expr *e, bool *large)
{
    dim_walk d = {.walk = {.expr = count_term, .every = true}};

    ir_walk_expr(&d.walk, e);
    *large = d.large;
    return d.terms <= MOST_TERMS;
}

/* Whether tensors of the type may exist: limits keep damaged models from asking for terabytes. *why: the
 * reason, without the name of the tensor. Extents that are symbols count as 1: for them the caller's memory
 * is the limit. */
bool op_check_size(tec_context *cx, const op_type *t, const char **why)
{
    int64_t bytes = base_dtype_bytes(t->dtype), n;
    bool large;

    for (int i = 0; i < t->n; i++) {
        if (!op_is_short(t->dim[i], &large)) {
            *why = base_format(cx, "dimension %d is an expression of more than %d terms", i, MOST_TERMS);
            return false;
        }
        if (ir_is_int(t->dim[i], &n) && n < 0) {
            *why = base_format(cx, "dimension %d is %lld", i, (long long)n);
            return false;
        }
        if (large || (ir_is_int(t->dim[i], &n) && n > 0 &&
                      (__builtin_mul_overflow(bytes, n, &bytes) || bytes >> MOST_BYTES_LOG))) {
            *why = base_format(cx, "it would be larger than 2^%d bytes", MOST_BYTES_LOG);
            return false;
        }
    }
    return true;
}

static bool check_outputs(op_call *c)
{
    const char *why;

    for (int k = 0; k < c->n_outputs; k++)
        if (!op_check_size(c->cx, &c->output[k], &why))
            return op_fail(c, "result %d: %s", k, why);
    return true;
}

/* Whether the scalar function can be written for operands of these types: not all take integers, or bools. It
 * is written once for variables and thrown away: what is asked is whether that fails. */
static bool check_scalar(const op_call *c)
{
    const ir_expr **arg = base_array(c->cx, const ir_expr *, c->n_inputs);

    for (int k = 0; k < c->n_inputs; k++)
        if (c->input[k].n >= 0)
            arg[k] = ir_var(c->cx, base_format(c->cx, "operand%d", k), c->input[k].dtype);
    base_set_where(c->cx, c->loc);
    return c->op->scalar(c, arg) != NULL;
}

/* Checks the number of operands, then asks the operator's relation for the result types. Fills c->output.
 * Results get their array here, except for operators with any number of results, whose relation makes it. */
bool op_infer(op_call *c)
{
    if (c->n_inputs < c->op->min_inputs || (c->op->max_inputs >= 0 && c->n_inputs > c->op->max_inputs)) {
        const char *most = c->op->max_inputs < 0 ? " or more"
                           : c->op->max_inputs == c->op->min_inputs
                               ? ""
                               : base_format(c->cx, " to %d", c->op->max_inputs);

        return op_fail(c, "takes %d%s operands, found %d", c->op->min_inputs, most, c->n_inputs);
    }
    for (int k = 0; k < c->n_inputs; k++)
        if (c->input[k].n < 0 && (k < c->op->min_inputs || c->op->max_inputs < 0))
            return op_fail(c, "operand %d is left out", k);
    if (c->op->n_outputs >= 0) {
        c->n_outputs = c->op->n_outputs;
        c->output = base_array(c->cx, op_type, c->n_outputs);
    }
    return c->op->relation(c) && check_outputs(c) && (!c->op->scalar || check_scalar(c));
}

/* ---- attributes ---- */

const op_attr *op_attr_find(const op_call *c, const char *name)
{
    for (int i = 0; i < c->n_attrs; i++)
        if (base_same(c->attr[i].name, name))
            return &c->attr[i];
    return NULL;
}

int64_t op_int(const op_call *c, const char *name, int64_t otherwise)
{
    const op_attr *a = op_attr_find(c, name);

    return a && a->kind == OP_ATTR_INT ? a->i : otherwise;
}

/* A whole number is a float too: a text form says 1 for 1.0. */
double op_float(const op_call *c, const char *name, double otherwise)
{
    const op_attr *a = op_attr_find(c, name);

    return a && a->kind == OP_ATTR_FLOAT ? a->f : a && a->kind == OP_ATTR_INT ? (double)a->i : otherwise;
}

const char *op_string(const op_call *c, const char *name, const char *otherwise)
{
    const op_attr *a = op_attr_find(c, name);

    return a && a->kind == OP_ATTR_STRING ? a->string : otherwise;
}

/* 0 and NULL where there is no such attribute; an empty list gives 0 as well. */
int op_ints(const op_call *c, const char *name, const int64_t **out)
{
    const op_attr *a = op_attr_find(c, name);

    *out = a && a->kind == OP_ATTR_INTS ? a->ints : NULL;
    return *out ? a->n : 0;
}

/* Optional operands that are left out in the middle have rank -1. */
bool op_has_input(const op_call *c, int k)
{
    return k < c->n_inputs && c->input[k].n >= 0;
}

/* What cannot be proven becomes a need of the model, where the caller collects needs: f32[m, k] times f32[j,
 * n] is allowed, and k = j is checked when the model is called. Two different numbers are never equal. */
bool op_equal(const op_call *c, const ir_expr *a, const ir_expr *b)
{
    int64_t x, y;

    if (ir_is_int(a, &x) && ir_is_int(b, &y))
        return x == y;
    if (ir_same(a, b) || (c->facts && ir_prove_equal(c->facts, a, b)))
        return true;
    if (c->needs)
        base_push(c->cx, c->needs, ir_eq(c->cx, a, b));
    return c->needs != NULL;
}

op_attr op_attr_int(const char *name, int64_t v)
{
    return (op_attr){.name = name, .kind = OP_ATTR_INT, .i = v};
}

op_attr op_attr_float(const char *name, double v)
{
    return (op_attr){.name = name, .kind = OP_ATTR_FLOAT, .f = v};
}

op_attr op_attr_string(const char *name, const char *v)
{
    return (op_attr){.name = name, .kind = OP_ATTR_STRING, .string = v};
}

op_attr op_attr_ints(tec_context *cx, const char *name, const int64_t *v, int n)
{
    return (op_attr){
        .name = name, .kind = OP_ATTR_INTS, .n = n, .ints = base_copy(cx, v, (size_t)n * sizeof *v)};
}

op_attr op_attr_exprs(tec_context *cx, const char *name, const ir_expr *const *v, int n)
{
    return (op_attr){
        .name = name, .kind = OP_ATTR_EXPRS, .n = n, .exprs = base_copy(cx, v, (size_t)n * sizeof *v)};
}

op_attr op_attr_dtype(const char *name, base_dtype v)
{
    return (op_attr){.name = name, .kind = OP_ATTR_DTYPE, .dtype = v};
}

/* ---- implementations ---- */

/* The implementation of highest rank among those that apply; with equal ranks the first in the table. */
const op_impl *op_choose(const op_call *c)
{
    const op_impl *best = NULL;
    int best_rank = 0;

    for (int i = 0; i < c->op->n_impls; i++) {
        const op_impl *impl = &c->op->impls[i];

        if (impl->applies && !impl->applies(c))
            continue;
        int rank = impl->rank ? impl->rank(c) : 0;
        if (!best || rank > best_rank) {
            best = impl;
            best_rank = rank;
        }
    }
    if (!best)
        op_fail(c, "no implementation fits these operands on target '%s'", target_text(c->cx, c->target));
    return best;
}

/* Adds the operator's stages to the definition. A constant operand that was not packed before is packed by a
 * stage in front. The role of the packing stage is prologue, whatever the operator's own is. */
bool op_emit(const op_call *c, const op_impl *impl, te_def *d, te_tensor *const *in, bool packed,
             te_tensor **out)
{
    te_tensor **operands = base_copy(c->cx, in, (size_t)c->n_inputs * sizeof *in);

    base_set_where(c->cx, c->loc);
    if (impl->packs >= 0 && !packed && impl->pack && op_has_input(c, impl->packs)) {
        ir_role role = d->role;

        d->role = IR_ROLE_PROLOGUE;
        if (!impl->pack(c, d, in[impl->packs], &operands[impl->packs]))
            return false;
        d->role = role;
    }
    return impl->body(c, d, operands, out);
}

/* New axes: an axis belongs to one stage, so each stage of a body asks for its own. */
const ir_expr **op_axes_of(const op_call *c, const op_type *t)
{
    const ir_expr **axis = base_array(c->cx, const ir_expr *, t->n);

    for (int i = 0; i < t->n; i++)
        axis[i] = te_axis(c->cx, base_format(c->cx, "a%d", i), t->dim[i]);
    return axis;
}

/* A node's name made fit for text forms: letters, digits, underscores. */
const char *op_stage_name(te_def *d, const char *base)
{
    char *clean =
        base_format(d->cx, "%s%s", base && isalpha((unsigned char)*base) ? "" : "v", base ? base : "");

    for (char *p = clean; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_' && !(*p == '.' && isalnum((unsigned char)p[1])))
            *p = '_';
    const char *name = clean;
    for (int i = 2; base_dict_has(&d->names, name); i++)
        name = base_format(d->cx, "%s'%d", clean, i);
    return name;
}

/* The last stage of an operator with one result, which has the operator's name. */
bool op_compute(const op_call *c, te_def *d, const ir_expr *const *axis, const ir_expr *e, te_tensor **out)
{
    *out = te_compute(d, op_stage_name(d, c->op->name), axis, c->output[0].n, e);
    return *out != NULL;
}
