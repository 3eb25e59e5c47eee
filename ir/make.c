/* ir/make.c -- nodes as they are made: hash, variables, depth, kinds and flags of what is inside, type
 * checks, conversions of operands.
 *
 * The hash is two halves of 32 bits. The upper one ignores the names of variables and buffers, the lower one
 * mixes them in. A binder (let, reduce) takes only upper halves of what stands in its scope, so that
 * expressions that differ in the names of bound variables alone have equal hashes, at no cost at all.
 *
 * An example: let a = x in a + 1. The let takes the upper half of the hash of `a + 1`, in which the name of a
 * does not occur; so let b = x in b + 1 has the same hash, both halves of it, and i + 1 and j + 1 as free
 * expressions agree in the upper half only.
 *
 * `vars` is a set of variables by 64 bits, one for each value of the hash of a name: a variable whose bit is
 * not set is certainly not in the tree; one whose bit is set may be.
 */
#include "ir/make.h"

#include <string.h>

#include "ir/text.h"
#include "ir/value.h"

ir_expr *ir_make(tec_context *cx, ir_op op, base_dtype dtype)
{
    ir_expr *e = base_new(cx, ir_expr);

    e->op = op;
    e->dtype = dtype;
    e->loc = base_where(cx);
    return e;
}

/* ---- hash, variables, depth, kinds, flags ---- */

/* What is collected while the operands are taken; becomes the node's fields. */
typedef struct {
    uint32_t shape, named;
    uint64_t vars;
    int depth, has, kinds;
} summary;

/* Multiplies by the golden ratio, whose high bits depend on all bits of both. */
static uint32_t mix(uint32_t h, uint32_t x)
{
    uint64_t z = (((uint64_t)h << 32) | x) * 0x9e3779b97f4a7c15u;

    return (uint32_t)(z >> 32) ^ (uint32_t)(z >> 7);
}

static void take_number(summary *self, uint64_t x)
{
    uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);

    self->shape = mix(mix(self->shape, low), high);
    self->named = mix(mix(self->named, low), high);
}

static void take_name(summary *self, const char *name)
{
    self->named = mix(self->named, (uint32_t)base_hash(name, strlen(name), BASE_HASH_SEED));
}

/* A number beyond what indices may be is data. */
static void take_int(summary *self, const ir_expr *expr)
{
    take_number(self, (uint64_t)expr->i);
    if (base_dtype_same(expr->dtype, BASE_I64) && (expr->i > IR_MOST_INDEX || expr->i < -IR_MOST_INDEX))
        self->has |= IR_HAS_DATA;
}

static void take_var(summary *self, const ir_expr *expr)
{
    take_name(self, expr->var.name);
    self->vars = UINT64_C(1) << (self->named >> 26);
    self->has |= expr->var.data ? IR_HAS_DATA : 0;
}

static uint32_t number_of_type(base_dtype dtype)
{
    return (uint32_t)dtype.code << 24 | (uint32_t)dtype.bits << 16 | dtype.lanes;
}

static void take_inside(summary *self, const ir_expr *expr)
{
    if (expr->depth >= self->depth)
        self->depth = expr->depth + 1;
    self->has |= expr->has;
    self->vars |= expr->vars;
    self->kinds |= expr->kinds;
}

/* NULL, an absent part, counts as well: a load without a mask differs from one with it. */
static void take(summary *self, const ir_expr *expr)
{
    if (!expr) {
        take_number(self, 0);
        return;
    }
    self->shape = mix(self->shape, (uint32_t)(expr->hash >> 32));
    self->named = mix(self->named, (uint32_t)expr->hash);
    take_inside(self, expr);
}

/* Something in the scope of a variable that is bound here. */
static void take_bound(summary *self, const ir_expr *expr)
{
    take_number(self, expr ? expr->hash >> 32 : 0);
    if (expr)
        take_inside(self, expr);
}

static void take_all(summary *self, const ir_expr *const *expr, int n)
{
    take_number(self, (uint64_t)n);
    for (int i = 0; i < n; i++)
        take(self, expr[i]);
}

/* The name goes into the lower half only. */
static void take_buffer(summary *self, const ir_buffer *buffer)
{
    take_number(self, number_of_type(buffer->dtype));
    take_name(self, buffer->name);
}

static void take_float(summary *self, double f)
{
    uint64_t bits;

    memcpy(&bits, &f, sizeof bits);
    take_number(self, bits);
}

static void take_text(summary *self, const char *text)
{
    take_number(self, base_hash(text, strlen(text), BASE_HASH_SEED));
}

static void take_load(summary *self, const ir_expr *expr)
{
    self->has |= IR_HAS_LOAD | IR_HAS_DATA;
    take_buffer(self, expr->load.buffer);
    take_all(self, expr->load.index, expr->load.n);
    take(self, expr->load.mask);
}

static void take_shuffle(summary *self, const ir_expr *expr)
{
    take_all(self, expr->shuffle.vectors, expr->shuffle.n);
    for (int i = 0; i < expr->dtype.lanes; i++)
        take_number(self, (uint64_t)expr->shuffle.pick[i]);
}

static void take_let(summary *self, const ir_expr *expr)
{
    self->has |= IR_HAS_BINDER;
    take(self, expr->let.value);
    take_bound(self, expr->let.body);
}

static void take_call(summary *self, const ir_expr *expr)
{
    self->has |=
        (expr->call.n_buffers ? IR_HAS_LOAD : 0) | (expr->call.pure ? 0 : IR_HAS_EFFECT) | IR_HAS_DATA;
    take_text(self, expr->call.name);
    take_number(self, expr->call.pure);
    for (int i = 0; i < expr->call.n_buffers; i++)
        take_buffer(self, expr->call.buffer[i]);
    take_all(self, expr->call.arg, expr->call.n);
}

static void take_reduce(summary *self, const ir_expr *expr)
{
    const ir_combiner *combiner = expr->reduce.combiner;

    self->has |= IR_HAS_BINDER | IR_HAS_DATA;
    take_number(self, (uint64_t)(combiner->n * 64 + expr->reduce.which));
    for (int i = 0; i < combiner->n; i++) {
        take_bound(self, combiner->result[i]);
        take_bound(self, expr->reduce.source[i]);
    }
    take_all(self, expr->reduce.extent, expr->reduce.n_axes);
    take_bound(self, expr->reduce.condition);
}

/* Three at most, and no gaps. */
static void take_operands(summary *self, const ir_expr *expr)
{
    for (int i = 0; i < 3 && expr->arg[i]; i++)
        take(self, expr->arg[i]);
    if (ir_is_op(expr->op) && (ir_ops[expr->op].flags & IR_EFFECT))
        self->has |= IR_HAS_EFFECT;
}

/* Integers made from floats and from uint64 may have any value; those from narrower integers do not leave
 * their range. */
static void take_cast(summary *self, const ir_expr *expr)
{
    base_dtype from = expr->arg[0]->dtype;

    take_operands(self, expr);
    if (!base_is_float(expr->dtype) && (base_is_float(from) || (from.code == kDLUInt && from.bits == 64)))
        self->has |= IR_HAS_DATA;
}

/* What each kind mixes into the hash, and which variables and flags it passes on. Data marks values that may
 * be any number of their type: IR_HAS_DATA keeps the reasoner from treating them as indices. */
static void take_node(summary *self, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_INT: take_int(self, expr); return;
    case IR_FLOAT: take_float(self, expr->f); return;
    case IR_STRING: take_text(self, expr->string); return;
    case IR_VAR: take_var(self, expr); return;
    case IR_LOAD: take_load(self, expr); return;
    case IR_RAMP:
        take(self, expr->ramp.base);
        take(self, expr->ramp.stride);
        return;
    case IR_SHUFFLE: take_shuffle(self, expr); return;
    case IR_LET: take_let(self, expr); return;
    case IR_CALL: take_call(self, expr); return;
    case IR_REDUCE: take_reduce(self, expr); return;
    case IR_CAST: take_cast(self, expr); return;
    case IR_REINTERPRET:
    case IR_SHL:
        self->has |= IR_HAS_DATA;
        take_operands(self, expr);
        return;
    default: take_operands(self, expr); return; /* broadcasts and the rows of the table */
    }
}

/* The bit that passes look for to skip a whole subtree: one bit for each kind of node that some pass
 * rewrites. */
static int kind_of(const ir_expr *expr)
{
    int kinds = expr->dtype.lanes > 1 && base_is_bool(expr->dtype) ? IR_KIND_MASK : 0;

    if (expr->op == IR_LOAD || expr->op == IR_CALL)
        return kinds | IR_KIND_ACCESS;
    if (expr->op >= IR_EQ && expr->op <= IR_GE)
        return base_dtype_same(expr->arg[0]->dtype, BASE_I64) ? kinds | IR_KIND_COMPARE : kinds;
    if (expr->op == IR_LIKELY)
        return kinds | IR_KIND_HINT;
    if (expr->op == IR_MUL)
        return base_is_float(expr->dtype) ? kinds | IR_KIND_PRODUCT : kinds;
    return ir_is_op(expr->op) && ir_ops[expr->op].operands == IR_FLT && expr->op != IR_FMA
               ? kinds | IR_KIND_FUNCTION
               : kinds;
}

/* The last step of every constructor: after it the node is never changed. */
const ir_expr *ir_finish(ir_expr *expr)
{
    summary s = {.depth = 1, .kinds = kind_of(expr)};

    take_number(&s, (uint64_t)expr->op << 32 | number_of_type(expr->dtype));
    take_node(&s, expr);
    expr->hash = (uint64_t)s.shape << 32 | s.named;
    expr->depth = s.depth;
    expr->has = (uint16_t)s.has;
    expr->kinds = (uint16_t)s.kinds;
    expr->vars = s.vars;
    return expr;
}

/* ---- messages ---- */

void *ir_refuse(tec_context *cx, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const char *text = base_vformat(cx, fmt, args);
    va_end(args);
    return base_fail(cx, TEC_INVALID, base_where(cx), "%s", text);
}

const char *ir_brief(tec_context *cx, const ir_expr *expr)
{
    return ir_expr_text_cut(cx, expr, 60);
}

const char *ir_shown(tec_context *cx, const ir_expr *expr)
{
    return base_format(cx, "'%s' (%s)", ir_brief(cx, expr), base_dtype_text(cx, expr->dtype));
}

/* ---- conversions ---- */

bool ir_all_there(const ir_expr *const *expr, int n)
{
    for (int i = 0; i < n; i++)
        if (!expr[i])
            return false;
    return true;
}

const ir_expr *const *ir_copy_exprs(tec_context *cx, const ir_expr *const *expr, int n)
{
    return n ? base_copy(cx, expr, (size_t)n * sizeof *expr) : NULL;
}

/* Whether i as a dtype is i again. */
static bool holds(base_dtype dtype, int64_t i)
{
    if (base_is_float(dtype)) {
        double d = ir_round_to(dtype, (double)i);
        return d >= -0x1p62 && d <= 0x1p62 && (int64_t)d == i;
    }
    return base_is_int(dtype) && ir_wrap(dtype, (uint64_t)i) == i && (base_is_signed(dtype) || i >= 0);
}

/* Only a bare i64 constant that fits adopts a type: 1 beside an f32 is 1.0f, and 300 beside a u8 stays i64,
 * so that the mistake is told. */
const ir_expr *ir_adopt(tec_context *cx, const ir_expr *expr, base_dtype dtype)
{
    if (!expr || expr->op != IR_INT || !base_dtype_same(expr->dtype, BASE_I64) || !holds(dtype, expr->i))
        return expr;
    dtype = base_dtype_lanes(dtype, 1);
    return base_dtype_same(dtype, BASE_I64) ? expr : ir_imm_int(cx, dtype, expr->i);
}

const ir_expr *ir_convert(tec_context *cx, const ir_expr *expr, base_dtype dtype)
{
    expr = ir_adopt(cx, expr, dtype);
    if (!expr || expr->dtype.lanes != 1 || dtype.lanes == 1 ||
        !base_dtype_same(expr->dtype, base_dtype_lanes(dtype, 1)))
        return expr;
    return ir_broadcast_raw(cx, expr, dtype.lanes);
}

/* ---- operands of the table's operations ---- */

static bool is_bare(const ir_expr *expr)
{
    return expr->op == IR_INT && base_dtype_same(expr->dtype, BASE_I64);
}

static bool have_one_type(const ir_op_info *info, const ir_expr *const *arg)
{
    for (int i = 1; i < info->arity; i++)
        if (!base_dtype_same(arg[i]->dtype, arg[0]->dtype))
            return false;
    return true;
}

/* Bare immediates take the type of the first operand that is none; scalars take the lanes of the widest
 * operand. An example: select(c, 1, x) with x: f32[4 lanes]. The condition is left out of the search, 1 takes
 * the type of x, and c and 1 become four lanes. */
static void convert_operands(tec_context *cx, const ir_op_info *info, const ir_expr **arg)
{
    int first = info->operands == IR_COND, typed = first, lanes = 1;

    while (typed < info->arity - 1 && is_bare(arg[typed]))
        typed++;
    for (int i = 0; i < info->arity; i++)
        lanes = arg[i]->dtype.lanes > lanes ? arg[i]->dtype.lanes : lanes;
    for (int i = 0; i < info->arity; i++) {
        base_dtype t = i < first ? arg[i]->dtype : arg[typed]->dtype;
        arg[i] = ir_adopt(cx, arg[i], t);
        if (arg[i]->dtype.lanes == 1 && lanes > 1)
            arg[i] = ir_broadcast_raw(cx, arg[i], lanes);
    }
}

/* What is wrong with the operands, or NULL. */
static const char *find_fault(const ir_op_info *info, const ir_expr *const *arg)
{
    int first = info->operands == IR_COND;
    base_dtype t = arg[info->arity - 1]->dtype;

    if (first && !base_is_bool(arg[0]->dtype))
        return "the condition must be bool";
    for (int i = 0; i < info->arity; i++)
        if (arg[i]->dtype.lanes != t.lanes)
            return "the operands must have one number of lanes";
    for (int i = first; i < info->arity; i++)
        if (!base_dtype_same(arg[i]->dtype, t))
            return "the operands must have one type";
    switch (info->operands) {
    case IR_NUM: return base_is_int(t) || base_is_float(t) ? NULL : "numbers are needed";
    case IR_INTS: return base_is_int(t) ? NULL : "integers are needed";
    case IR_FLT: return base_is_float(t) ? NULL : "floats are needed";
    case IR_BOOL: return base_is_bool(t) ? NULL : "bools are needed";
    case IR_ANY:
    case IR_COND:
    case IR_OPERANDS_NODE: return NULL;
    }
    return NULL;
}

static const char *list_operands(tec_context *cx, const ir_expr *const *arg, int n)
{
    base_text t = {0};

    for (int i = 0; i < n; i++)
        base_addf(cx, &t, "%s%s", i == 0 ? "" : i == n - 1 ? " and " : ", ", ir_shown(cx, arg[i]));
    return base_text_str(cx, &t);
}

/* `given` is kept for the message, which shows the operands as they were written. */
bool ir_unify(tec_context *cx, ir_op op, const ir_expr **arg)
{
    const ir_op_info *info = &ir_ops[op];

    if (!ir_all_there(arg, info->arity))
        return false;
    const ir_expr *given[3] = {arg[0], info->arity > 1 ? arg[1] : NULL, info->arity > 2 ? arg[2] : NULL};
    if (!have_one_type(info, arg))
        convert_operands(cx, info, arg);
    const char *fault = find_fault(info, arg);
    if (fault)
        ir_refuse(cx, "'%s' of %s: %s", info->text, list_operands(cx, given, info->arity), fault);
    return !fault;
}

static const ir_expr *make_op(tec_context *cx, ir_op op, const ir_expr *const *arg)
{
    const ir_op_info *info = &ir_ops[op];
    base_dtype t = arg[info->arity - 1]->dtype;
    ir_expr *e = ir_make(cx, op, info->result == IR_BOOLEAN ? base_dtype_lanes(BASE_BOOL, t.lanes) : t);

    memcpy(e->arg, arg, (size_t)info->arity * sizeof *arg);
    return ir_finish(e);
}

/* Checked and converted, but not folded. */
const ir_expr *ir_op_raw(tec_context *cx, ir_op op, const ir_expr *const *arg)
{
    const ir_expr *operand[3] = {0};

    memcpy(operand, arg, (size_t)ir_ops[op].arity * sizeof *arg);
    return ir_unify(cx, op, operand) ? make_op(cx, op, operand) : NULL;
}
