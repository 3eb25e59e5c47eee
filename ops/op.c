/* ops/op.c -- finding operators, inferring types, choosing and emitting implementations; help for relations
 * and bodies. */
#include "ops/op.h"

#include <ctype.h>
#include <stdarg.h>

#include "base/limit.h"
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
bool op_fail(const op_call *call, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const char *text = base_vformat(call->cx, fmt, args);
    va_end(args);
    if (call->name && *call->name)
        base_fail(call->cx, TEC_INVALID, call->loc, "%s '%s': %s", call->op->name, call->name, text);
    else
        base_fail(call->cx, TEC_INVALID, call->loc, "%s: %s", call->op->name, text);
    return false;
}

/* ---- types ---- */

const char *op_type_text(tec_context *cx, const op_type *type)
{
    base_text text = {0};

    if (type->n < 0)
        return "nothing";
    base_addf(cx, &text, "%s[", base_dtype_text(cx, type->dtype));
    for (int i = 0; i < type->n; i++)
        base_addf(cx, &text, "%s%s", i ? ", " : "", ir_expr_text(cx, type->dim[i]));
    base_add(cx, &text, "]");
    return base_text_str(cx, &text);
}

/* What the user calls the operand: "operand 1 'x'". */
static const char *operand_text(const op_call *call, int k)
{
    const char *name = call->operand ? call->operand[k] : NULL;

    return name && *name ? base_format(call->cx, "operand %d '%s'", k, name)
                         : base_format(call->cx, "operand %d", k);
}

static const char *equal_text(const op_call *call, int k, int i, int l, int j)
{
    const char *name = call->name && *call->name ? base_format(call->cx, " '%s'", call->name) : "";

    return base_format(call->cx, "%s%s: dimension %d of %s and dimension %d of %s must be equal",
                       call->op->name, name, i, operand_text(call, k), j, operand_text(call, l));
}

/* Whether the extents differ whatever the symbols are: 3 and 4, n and n + 1. Facts are left out: those of
 * code that is never reached may contradict each other, and then would prove anything. */
bool op_differ(tec_context *cx, const ir_expr *left, const ir_expr *right)
{
    int64_t distance;

    return ir_is_int(ir_simplify(ir_facts_new(cx, NULL), ir_sub(cx, left, right)), &distance) &&
           distance != 0;
}

static bool known_equal(const op_call *call, const ir_expr *left, const ir_expr *right)
{
    return left == right || ir_same(left, right) || (call->facts && ir_prove_equal(call->facts, left, right));
}

static void demand(const op_call *call, const ir_expr *condition, const char *text)
{
    op_demand *d = base_new(call->cx, op_demand);

    *d = (op_demand){condition, text};
    base_push(call->cx, call->needs, d);
}

/* Operands whose dimensions broadcast, as far as they were seen. */
typedef struct {
    const op_call *call;
    const ir_expr **dim;
    int *operand, *at; /* where the extent comes from */
} broadcasting;

/* The extent of both under NumPy's rules; NULL: they do not fit. An extent 1 gives way to the other. A symbol
 * that may be 1 when the program runs does not: n and m must be equal. Of two equal extents the number stays.
 */
static const ir_expr *broadcast_dim(const broadcasting *self, int dim, int operand, int at)
{
    const op_call *call = self->call;
    const ir_expr *left = self->dim[dim], *right = call->input[operand].dim[at];
    int64_t number;

    if (ir_is_value(left, 1))
        return right;
    if (ir_is_value(right, 1) || known_equal(call, left, right))
        return left;
    if (!call->needs || op_differ(call->cx, left, right))
        return NULL;
    demand(call, ir_eq(call->cx, left, right),
           equal_text(call, self->operand[dim], self->at[dim], operand, at));
    return ir_is_int(right, &number) ? right : left;
}

/* The shape that all operands broadcast to, by NumPy's rule: dimensions are aligned at the end, and an extent
 * of 1 fits any other.
 *
 *     f32[n, 1, 4] and f32[3, 1]     [n, 3, 4]
 *     f32[n, 4] and f32[m]           [n, 4], with the demand that m is 4
 *
 * The element type is that of the first operand; relations that want another set it. */
bool op_broadcast(const op_call *call, op_type *out)
{
    broadcasting b = {.call = call};
    int n = 0;

    for (int k = 0; k < call->n_inputs; k++)
        n = call->input[k].n > n ? call->input[k].n : n;
    b.dim = base_array(call->cx, const ir_expr *, n);
    b.operand = base_array(call->cx, int, n);
    b.at = base_array(call->cx, int, n);
    for (int k = 0; k < call->n_inputs; k++)
        for (int i = 0; i < call->input[k].n; i++) {
            int at = n - call->input[k].n + i;
            const ir_expr *before = b.dim[at],
                          *both = before ? broadcast_dim(&b, at, k, i) : call->input[k].dim[i];

            if (!both)
                return op_fail(call, "operand %d is %s: dimension %d does not broadcast with '%s'", k,
                               op_type_text(call->cx, &call->input[k]), i, ir_expr_text(call->cx, before));
            if (both != before) {
                b.operand[at] = k;
                b.at[at] = i;
            }
            b.dim[at] = both;
        }
    *out = (op_type){call->input[0].dtype, n, b.dim};
    return true;
}

/* ---- sizes ---- */

/* A process addresses 2^47 bytes; a dimension that takes more terms than that would take longer to simplify
 * than the model to run. */
enum { ADDRESS_BITS = 47 };

typedef struct {
    ir_walk walk; /* first, so that the hook finds the rest */
    int64_t terms, most;
    bool large;
} dim_walk;

/* A hook. Stops at the first number that no address reaches, and where there are too many terms. */
static bool count_term(ir_walk *walk, const ir_expr *expr)
{
    dim_walk *d = (dim_walk *)walk;
    int64_t n;

    d->large = d->large || (ir_is_int(expr, &n) && (n >> ADDRESS_BITS) != 0 && (n >> ADDRESS_BITS) != -1);
    walk->stop = ++d->terms > d->most || d->large;
    return !walk->stop;
}

/* A dimension grows with each operator that computes it from others, so twenty doublings in a row make an
 * expression of a million terms; a part that is shared counts each time. */
bool op_is_short(tec_context *cx, const ir_expr *expr, bool *large)
{
    dim_walk d = {.walk = {.expr = count_term, .every = true}, .most = base_limit(cx, BASE_LIMIT_dim_terms)};

    ir_walk_expr(&d.walk, expr);
    *large = d.large;
    return d.terms <= d.most;
}

/* Whether tensors of the type may exist: limits keep damaged models from asking for terabytes. *why: the
 * reason, without the name of the tensor. Extents that are symbols count as 1: for them the caller's memory
 * is the limit. */
bool op_check_size(tec_context *cx, const op_type *type, const char **why)
{
    int64_t bytes = base_dtype_bytes(type->dtype), most = base_limit(cx, BASE_LIMIT_tensor_bytes), n;
    bool large;

    for (int i = 0; i < type->n; i++) {
        if (!op_is_short(cx, type->dim[i], &large)) {
            *why = base_format(cx, "dimension %d is an expression of too many terms; %s", i,
                               base_limit_text(cx, BASE_LIMIT_dim_terms));
            return false;
        }
        if (ir_is_int(type->dim[i], &n) && n < 0) {
            *why = base_format(cx, "dimension %d is %lld", i, (long long)n);
            return false;
        }
        if (large || (ir_is_int(type->dim[i], &n) && n > 0 &&
                      (__builtin_mul_overflow(bytes, n, &bytes) || bytes > most))) {
            *why = base_format(cx, "it would have too many bytes; %s",
                               base_limit_text(cx, BASE_LIMIT_tensor_bytes));
            return false;
        }
    }
    return true;
}

static bool check_outputs(op_call *call)
{
    const char *why;

    for (int k = 0; k < call->n_outputs; k++)
        if (!op_check_size(call->cx, &call->output[k], &why))
            return op_fail(call, "result %d: %s", k, why);
    return true;
}

/* Whether the scalar function can be written for operands of these types: not all take integers, or bools. It
 * is written once for variables and thrown away: what is asked is whether that fails. */
static bool check_scalar(const op_call *call)
{
    const ir_expr **arg = base_array(call->cx, const ir_expr *, call->n_inputs);

    for (int k = 0; k < call->n_inputs; k++)
        if (call->input[k].n >= 0)
            arg[k] = ir_var(call->cx, base_format(call->cx, "operand%d", k), call->input[k].dtype);
    base_set_where(call->cx, call->loc);
    return call->op->scalar(call, arg) != NULL;
}

/* Checks the number of operands, then asks the operator's relation for the result types. Fills call->output.
 * Results get their array here, except for operators with any number of results, whose relation makes it. */
bool op_infer(op_call *call)
{
    if (call->n_inputs < call->op->min_inputs ||
        (call->op->max_inputs >= 0 && call->n_inputs > call->op->max_inputs)) {
        const char *most = call->op->max_inputs < 0 ? " or more"
                           : call->op->max_inputs == call->op->min_inputs
                               ? ""
                               : base_format(call->cx, " to %d", call->op->max_inputs);

        return op_fail(call, "expected %d%s operands, found %d", call->op->min_inputs, most, call->n_inputs);
    }
    for (int k = 0; k < call->n_inputs; k++)
        if (call->input[k].n < 0 && (k < call->op->min_inputs || call->op->max_inputs < 0))
            return op_fail(call, "operand %d is left out", k);
    if (call->op->n_outputs >= 0) {
        call->n_outputs = call->op->n_outputs;
        call->output = base_array(call->cx, op_type, call->n_outputs);
    }
    return call->op->relation(call) && check_outputs(call) && (!call->op->scalar || check_scalar(call));
}

/* ---- attributes ---- */

const op_attr *op_attr_among(const op_attr *attr, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (base_same(attr[i].name, name))
            return &attr[i];
    return NULL;
}

const op_attr *op_attr_find(const op_call *call, const char *name)
{
    return op_attr_among(call->attr, call->n_attrs, name);
}

int64_t op_int(const op_call *call, const char *name, int64_t otherwise)
{
    const op_attr *a = op_attr_find(call, name);

    return a && a->kind == OP_ATTR_INT ? a->i : otherwise;
}

/* A whole number is a float too: a text form says 1 for 1.0. */
double op_float(const op_call *call, const char *name, double otherwise)
{
    const op_attr *a = op_attr_find(call, name);

    return a && a->kind == OP_ATTR_FLOAT ? a->f : a && a->kind == OP_ATTR_INT ? (double)a->i : otherwise;
}

const char *op_string(const op_call *call, const char *name, const char *otherwise)
{
    const op_attr *a = op_attr_find(call, name);

    return a && a->kind == OP_ATTR_STRING ? a->string : otherwise;
}

/* 0 and NULL where there is no such attribute; an empty list gives 0 as well. */
int op_ints(const op_call *call, const char *name, const int64_t **out)
{
    const op_attr *a = op_attr_find(call, name);

    *out = a && a->kind == OP_ATTR_INTS ? a->ints : NULL;
    return *out ? a->n : 0;
}

/* Optional operands that are left out in the middle have rank -1. */
bool op_has_input(const op_call *call, int k)
{
    return k < call->n_inputs && call->input[k].n >= 0;
}

/* Whether the extents are proven equal; *open: they may be, and the caller takes what is left to check. Two
 * different numbers are never equal. */
static bool compare(const op_call *call, const ir_expr *left, const ir_expr *right, bool *open)
{
    int64_t x, y;
    bool numbers = ir_is_int(left, &x) && ir_is_int(right, &y),
         equal = numbers ? x == y : known_equal(call, left, right);

    *open = !equal && !numbers && call->needs;
    return equal;
}

/* What cannot be proven becomes a need of the model, where the caller collects needs: f32[m, k] times f32[j,
 * n] is allowed, and k = j is checked when the model is called. */
bool op_equal(const op_call *call, const ir_expr *left, const ir_expr *right)
{
    bool open, equal = compare(call, left, right, &open);

    if (open)
        demand(call, ir_eq(call->cx, left, right), NULL);
    return equal || open;
}

bool op_equal_extents(const op_call *call, int k, int i, int l, int j)
{
    const ir_expr *left = call->input[k].dim[i], *right = call->input[l].dim[j];
    bool open, equal = compare(call, left, right, &open);

    if (open)
        demand(call, ir_eq(call->cx, left, right), equal_text(call, k, i, l, j));
    return equal || open;
}

void op_need(const op_call *call, const ir_expr *condition)
{
    if (call->needs && !(call->facts && ir_prove(call->facts, condition)))
        demand(call, condition, NULL);
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

op_attr op_attr_exprs(tec_context *cx, const char *name, const ir_expr *const *var, int n)
{
    return (op_attr){
        .name = name, .kind = OP_ATTR_EXPRS, .n = n, .exprs = base_copy(cx, var, (size_t)n * sizeof *var)};
}

op_attr op_attr_dtype(const char *name, base_dtype dtype)
{
    return (op_attr){.name = name, .kind = OP_ATTR_DTYPE, .dtype = dtype};
}

int op_rank_first(const op_call *call)
{
    (void)call;
    return 1;
}

/* ---- implementations ---- */

/* The implementation of highest rank among those that apply; with equal ranks the first in the table. */
const op_impl *op_choose(const op_call *call)
{
    const op_impl *best = NULL;
    int best_rank = 0;

    for (int i = 0; i < call->op->n_impls; i++) {
        const op_impl *impl = &call->op->impls[i];

        if (impl->applies && !impl->applies(call))
            continue;
        int rank = impl->rank ? impl->rank(call) : 0;
        if (!best || rank > best_rank) {
            best = impl;
            best_rank = rank;
        }
    }
    if (!best)
        op_fail(call, "no implementation fits these operands on target '%s'",
                target_text(call->cx, call->target));
    return best;
}

/* Adds the operator's stages to the definition. A constant operand that was not packed before is packed by a
 * stage in front. The role of the packing stage is prologue, whatever the operator's own is. */
bool op_emit(const op_call *call, const op_impl *impl, te_def *def, te_tensor *const *in, bool packed,
             te_tensor **out)
{
    te_tensor **operands = base_copy(call->cx, in, (size_t)call->n_inputs * sizeof *in);

    base_set_where(call->cx, call->loc);
    if (impl->packs >= 0 && !packed && impl->pack && op_has_input(call, impl->packs)) {
        ir_role role = def->role;

        def->role = IR_ROLE_PROLOGUE;
        if (!impl->pack(call, def, in[impl->packs], &operands[impl->packs]))
            return false;
        def->role = role;
    }
    return impl->body(call, def, operands, out);
}

/* New axes: an axis belongs to one stage, so each stage of a body asks for its own. */
const ir_expr **op_axes_of(const op_call *call, const op_type *type)
{
    const ir_expr **axis = base_array(call->cx, const ir_expr *, type->n);

    for (int i = 0; i < type->n; i++)
        axis[i] = te_axis(call->cx, base_format(call->cx, "a%d", i), type->dim[i]);
    return axis;
}

/* A node's name made fit for text forms: letters, digits, underscores. */
const char *op_stage_name(te_def *def, const char *base)
{
    char *clean =
        base_format(def->cx, "%s%s", base && isalpha((unsigned char)*base) ? "" : "v", base ? base : "");

    for (char *p = clean; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_' && !(*p == '.' && isalnum((unsigned char)p[1])))
            *p = '_';
    const char *name = clean;
    for (int i = 2; base_dict_has(&def->names, name); i++)
        name = base_format(def->cx, "%s'%d", clean, i);
    return name;
}

/* The last stage of an operator with one result, which has the operator's name. */
bool op_compute(const op_call *call, te_def *def, const ir_expr *const *axis, const ir_expr *expr,
                te_tensor **out)
{
    *out = te_compute(def, op_stage_name(def, call->op->name), axis, call->output[0].n, expr);
    return *out != NULL;
}
