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

ir_expr *ir_make(tec_context *cx, ir_op op, base_dtype t)
{
    ir_expr *e = base_new(cx, ir_expr);

    e->op = op;
    e->dtype = t;
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

static void take_number(summary *s, uint64_t x)
{
    uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);

    s->shape = mix(mix(s->shape, low), high);
    s->named = mix(mix(s->named, low), high);
}

static void take_name(summary *s, const char *name)
{
    s->named = mix(s->named, (uint32_t)base_hash(name, strlen(name), BASE_HASH_SEED));
}

/* A number beyond what indices may be is data. */
static void take_int(summary *s, const ir_expr *e)
{
    take_number(s, (uint64_t)e->i);
    if (base_dtype_same(e->dtype, BASE_I64) && (e->i > IR_MOST_INDEX || e->i < -IR_MOST_INDEX))
        s->has |= IR_HAS_DATA;
}

static void take_var(summary *s, const ir_expr *e)
{
    take_name(s, e->var.name);
    s->vars = UINT64_C(1) << (s->named >> 26);
    s->has |= e->var.data ? IR_HAS_DATA : 0;
}

static uint32_t number_of_type(base_dtype t)
{
    return (uint32_t)t.code << 24 | (uint32_t)t.bits << 16 | t.lanes;
}

static void take_inside(summary *s, const ir_expr *e)
{
    if (e->depth >= s->depth)
        s->depth = e->depth + 1;
    s->has |= e->has;
    s->vars |= e->vars;
    s->kinds |= e->kinds;
}

/* NULL, an absent part, counts as well: a load without a mask differs from one with it. */
static void take(summary *s, const ir_expr *e)
{
    if (!e) {
        take_number(s, 0);
        return;
    }
    s->shape = mix(s->shape, (uint32_t)(e->hash >> 32));
    s->named = mix(s->named, (uint32_t)e->hash);
    take_inside(s, e);
}

/* Something in the scope of a variable that is bound here. */
static void take_bound(summary *s, const ir_expr *e)
{
    take_number(s, e ? e->hash >> 32 : 0);
    if (e)
        take_inside(s, e);
}

static void take_all(summary *s, const ir_expr *const *e, int n)
{
    take_number(s, (uint64_t)n);
    for (int i = 0; i < n; i++)
        take(s, e[i]);
}

/* The name goes into the lower half only. */
static void take_buffer(summary *s, const ir_buffer *b)
{
    take_number(s, number_of_type(b->dtype));
    take_name(s, b->name);
}

static void take_float(summary *s, double f)
{
    uint64_t bits;

    memcpy(&bits, &f, sizeof bits);
    take_number(s, bits);
}

static void take_text(summary *s, const char *text)
{
    take_number(s, base_hash(text, strlen(text), BASE_HASH_SEED));
}

static void take_load(summary *s, const ir_expr *e)
{
    s->has |= IR_HAS_LOAD | IR_HAS_DATA;
    take_buffer(s, e->load.buffer);
    take_all(s, e->load.index, e->load.n);
    take(s, e->load.mask);
}

static void take_shuffle(summary *s, const ir_expr *e)
{
    take_all(s, e->shuffle.vectors, e->shuffle.n);
    for (int i = 0; i < e->dtype.lanes; i++)
        take_number(s, (uint64_t)e->shuffle.pick[i]);
}

static void take_let(summary *s, const ir_expr *e)
{
    s->has |= IR_HAS_BINDER;
    take(s, e->let.value);
    take_bound(s, e->let.body);
}

static void take_call(summary *s, const ir_expr *e)
{
    s->has |= (e->call.n_buffers ? IR_HAS_LOAD : 0) | (e->call.pure ? 0 : IR_HAS_EFFECT) | IR_HAS_DATA;
    take_text(s, e->call.name);
    take_number(s, e->call.pure);
    for (int i = 0; i < e->call.n_buffers; i++)
        take_buffer(s, e->call.buffer[i]);
    take_all(s, e->call.arg, e->call.n);
}

static void take_reduce(summary *s, const ir_expr *e)
{
    const ir_combiner *c = e->reduce.combiner;

    s->has |= IR_HAS_BINDER | IR_HAS_DATA;
    take_number(s, (uint64_t)(c->n * 64 + e->reduce.which));
    for (int i = 0; i < c->n; i++) {
        take_bound(s, c->result[i]);
        take_bound(s, e->reduce.source[i]);
    }
    take_all(s, e->reduce.extent, e->reduce.n_axes);
    take_bound(s, e->reduce.condition);
}

/* Three at most, and no gaps. */
static void take_operands(summary *s, const ir_expr *e)
{
    for (int i = 0; i < 3 && e->arg[i]; i++)
        take(s, e->arg[i]);
    if (ir_is_op(e->op) && (ir_ops[e->op].flags & IR_EFFECT))
        s->has |= IR_HAS_EFFECT;
}

/* Integers made from floats and from uint64 may have any value; those from narrower integers do not leave
 * their range. */
static void take_cast(summary *s, const ir_expr *e)
{
    base_dtype from = e->arg[0]->dtype;

    take_operands(s, e);
    if (!base_is_float(e->dtype) && (base_is_float(from) || (from.code == kDLUInt && from.bits == 64)))
        s->has |= IR_HAS_DATA;
}

/* What each kind mixes into the hash, and which variables and flags it passes on. Data marks values that may
 * be any number of their type: IR_HAS_DATA keeps the reasoner from treating them as indices. */
static void take_node(summary *s, const ir_expr *e)
{
    switch (e->op) {
    case IR_INT: take_int(s, e); return;
    case IR_FLOAT: take_float(s, e->f); return;
    case IR_STRING: take_text(s, e->string); return;
    case IR_VAR: take_var(s, e); return;
    case IR_LOAD: take_load(s, e); return;
    case IR_RAMP:
        take(s, e->ramp.base);
        take(s, e->ramp.stride);
        return;
    case IR_SHUFFLE: take_shuffle(s, e); return;
    case IR_LET: take_let(s, e); return;
    case IR_CALL: take_call(s, e); return;
    case IR_REDUCE: take_reduce(s, e); return;
    case IR_CAST: take_cast(s, e); return;
    case IR_REINTERPRET:
    case IR_SHL:
        s->has |= IR_HAS_DATA;
        take_operands(s, e);
        return;
    default: take_operands(s, e); return; /* broadcasts and the rows of the table */
    }
}

/* The bit that passes look for to skip a whole subtree: one bit for each kind of node that some pass
 * rewrites. */
static int kind_of(const ir_expr *e)
{
    int kinds = e->dtype.lanes > 1 && base_is_bool(e->dtype) ? IR_KIND_MASK : 0;

    if (e->op == IR_LOAD || e->op == IR_CALL)
        return kinds | IR_KIND_ACCESS;
    if (e->op >= IR_EQ && e->op <= IR_GE)
        return base_dtype_same(e->arg[0]->dtype, BASE_I64) ? kinds | IR_KIND_COMPARE : kinds;
    if (e->op == IR_LIKELY)
        return kinds | IR_KIND_HINT;
    if (e->op == IR_MUL)
        return base_is_float(e->dtype) ? kinds | IR_KIND_PRODUCT : kinds;
    return ir_is_op(e->op) && ir_ops[e->op].operands == IR_FLT && e->op != IR_FMA ? kinds | IR_KIND_FUNCTION
                                                                                  : kinds;
}

/* The last step of every constructor: after it the node is never changed. */
const ir_expr *ir_finish(ir_expr *e)
{
    summary s = {.depth = 1, .kinds = kind_of(e)};

    take_number(&s, (uint64_t)e->op << 32 | number_of_type(e->dtype));
    take_node(&s, e);
    e->hash = (uint64_t)s.shape << 32 | s.named;
    e->depth = s.depth;
    e->has = (uint16_t)s.has;
    e->kinds = (uint16_t)s.kinds;
    e->vars = s.vars;
    return e;
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

const char *ir_brief(tec_context *cx, const ir_expr *e)
{
    return ir_expr_text_cut(cx, e, 60);
}

const char *ir_shown(tec_context *cx, const ir_expr *e)
{
    return base_format(cx, "'%s' (%s)", ir_brief(cx, e), base_dtype_text(cx, e->dtype));
}

/* ---- conversions ---- */

bool ir_all_there(const ir_expr *const *e, int n)
{
    for (int i = 0; i < n; i++)
        if (!e[i])
            return false;
    return true;
}

const ir_expr *const *ir_copy_exprs(tec_context *cx, const ir_expr *const *e, int n)
{
    return n ? base_copy(cx, e, (size_t)n * sizeof *e) : NULL;
}

/* Whether i as a t is i again. */
static bool holds(base_dtype t, int64_t i)
{
    if (base_is_float(t)) {
        double d = ir_round_to(t, (double)i);
        return d >= -0x1p62 && d <= 0x1p62 && (int64_t)d == i;
    }
    return base_is_int(t) && ir_wrap(t, (uint64_t)i) == i && (base_is_signed(t) || i >= 0);
}

/* Only a bare i64 constant that fits adopts a type: 1 beside an f32 is 1.0f, and 300 beside a u8 stays i64,
 * so that the mistake is told. */
const ir_expr *ir_adopt(tec_context *cx, const ir_expr *e, base_dtype t)
{
    if (!e || e->op != IR_INT || !base_dtype_same(e->dtype, BASE_I64) || !holds(t, e->i))
        return e;
    t = base_dtype_lanes(t, 1);
    return base_dtype_same(t, BASE_I64) ? e : ir_imm_int(cx, t, e->i);
}

const ir_expr *ir_convert(tec_context *cx, const ir_expr *e, base_dtype t)
{
    e = ir_adopt(cx, e, t);
    if (!e || e->dtype.lanes != 1 || t.lanes == 1 || !base_dtype_same(e->dtype, base_dtype_lanes(t, 1)))
        return e;
    return ir_broadcast_raw(cx, e, t.lanes);
}

/* ---- operands of the table's operations ---- */

static bool is_bare(const ir_expr *e)
{
    return e->op == IR_INT && base_dtype_same(e->dtype, BASE_I64);
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
