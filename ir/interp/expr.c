/* ir/interp/expr.c -- expressions of the interpreter: how each kind is built into a node, and how its node
 * gives one lane.
 *
 * The common cases of index arithmetic and float32 have functions of their own; everything else goes through
 * the table of evaluators.
 */
#include "ir/interp/build.h"

/* ---- leaves ---- */

static ir_value eval_constant(ir_exec *exec, const exec_node *node, int lane)
{
    (void)exec;
    (void)lane;
    return node->value;
}

static ir_value eval_scalar_var(ir_exec *exec, const exec_node *node, int lane)
{
    (void)lane;
    return exec->var[node->slot];
}

/* Lanes of a vector let are computed when they are first asked for; `due` holds the node until then. */
static ir_value eval_vector_var(ir_exec *exec, const exec_node *node, int lane)
{
    ir_value *v = &exec->var[node->slot + lane], *due = v + node->lanes;

    if (due->i) {
        const exec_node *value = (const exec_node *)(uintptr_t)due->i;
        due->i = 0;
        *v = exec_run(exec, value, lane);
    }
    return *v;
}

static ir_value eval_load(ir_exec *exec, const exec_node *node, int lane)
{
    return ir_exec_load(exec, node->access, lane);
}

/* ---- operations ---- */

static void blame_zero(ir_exec *exec, const exec_node *node)
{
    ir_exec_fail(exec, TEC_INVALID, node->e->loc, "division by zero in '%s'", ir_ops[node->e->op].text);
}

static ir_value eval_op1(ir_exec *exec, const exec_node *node, int lane)
{
    ir_value a = exec_run(exec, node->op.arg[0], lane), out = {0};

    node->op.fn(node->t, &a, &out);
    return out;
}

/* A zero divisor is the program's error in index arithmetic, and gives 0 for data. */
static ir_value eval_op2(ir_exec *exec, const exec_node *node, int lane)
{
    ir_value a[2] = {exec_run(exec, node->op.arg[0], lane), exec_run(exec, node->op.arg[1], lane)}, out = {0};

    if (!node->op.fn(node->t, a, &out) && !ir_divides_data(node->e))
        blame_zero(exec, node);
    return out;
}

static ir_value eval_op3(ir_exec *exec, const exec_node *node, int lane)
{
    ir_value a[3] = {exec_run(exec, node->op.arg[0], lane), exec_run(exec, node->op.arg[1], lane),
                     exec_run(exec, node->op.arg[2], lane)},
             out = {0};

    node->op.fn(node->t, a, &out);
    return out;
}

static ir_value eval_select(ir_exec *exec, const exec_node *node, int lane)
{
    return exec_run(exec, node->op.arg[exec_run(exec, node->op.arg[0], lane).i ? 1 : 2], lane);
}

static ir_value eval_and(ir_exec *exec, const exec_node *node, int lane)
{
    ir_value a = exec_run(exec, node->op.arg[0], lane);

    return a.i ? exec_run(exec, node->op.arg[1], lane) : a;
}

static ir_value eval_or(ir_exec *exec, const exec_node *node, int lane)
{
    ir_value a = exec_run(exec, node->op.arg[0], lane);

    return a.i ? a : exec_run(exec, node->op.arg[1], lane);
}

#define FAST_I64(name, symbol)                                                                               \
    static ir_value eval_##name##_i64(ir_exec *exec, const exec_node *n, int lane)                           \
    {                                                                                                        \
        uint64_t a = (uint64_t)exec_run(exec, n->op.arg[0], lane).i,                                         \
                 b = (uint64_t)exec_run(exec, n->op.arg[1], lane).i;                                         \
        return (ir_value){.i = (int64_t)(a symbol b)};                                                       \
    }
FAST_I64(add, +)
FAST_I64(sub, -)
FAST_I64(mul, *)

#define FAST_F32(name, symbol)                                                                               \
    static ir_value eval_##name##_f32(ir_exec *exec, const exec_node *n, int lane)                           \
    {                                                                                                        \
        float a = (float)exec_run(exec, n->op.arg[0], lane).f,                                               \
              b = (float)exec_run(exec, n->op.arg[1], lane).f;                                               \
        return (ir_value){.f = a symbol b};                                                                  \
    }
FAST_F32(add, +)
FAST_F32(sub, -)
FAST_F32(mul, *)

static ir_value eval_lt_i64(ir_exec *exec, const exec_node *node, int lane)
{
    int64_t a = exec_run(exec, node->op.arg[0], lane).i;

    return (ir_value){.i = a < exec_run(exec, node->op.arg[1], lane).i};
}

/* Functions of their own for the operations that most programs spend their time in; NULL for all others. */
static exec_eval *pick_fast(ir_op op, base_dtype dtype)
{
    bool i64 = dtype.code == kDLInt && dtype.bits == 64, f32 = dtype.code == kDLFloat && dtype.bits == 32;

    switch ((int)op) {
    case IR_ADD: return i64 ? eval_add_i64 : f32 ? eval_add_f32 : NULL;
    case IR_SUB: return i64 ? eval_sub_i64 : f32 ? eval_sub_f32 : NULL;
    case IR_MUL: return i64 ? eval_mul_i64 : f32 ? eval_mul_f32 : NULL;
    case IR_LT: return i64 ? eval_lt_i64 : NULL;
    }
    return NULL;
}

/* select, && and || evaluate only the operand that they ask for. */
static exec_eval *pick_operation(ir_op op, base_dtype dtype)
{
    exec_eval *fast = pick_fast(op, dtype);

    if (fast)
        return fast;
    if (ir_ops[op].flags & IR_LAZY)
        return op == IR_SELECT ? eval_select : op == IR_AND ? eval_and : eval_or;
    return ir_ops[op].arity == 1 ? eval_op1 : ir_ops[op].arity == 2 ? eval_op2 : eval_op3;
}

/* ---- conversions and vectors ---- */

static ir_value eval_cast(ir_exec *exec, const exec_node *node, int lane)
{
    return ir_eval_cast(node->t, node->e->dtype, exec_run(exec, node->op.arg[0], lane));
}

static ir_value eval_reinterpret(ir_exec *exec, const exec_node *node, int lane)
{
    return ir_value_of_bits(node->e->dtype, ir_value_bits(node->t, exec_run(exec, node->op.arg[0], lane)));
}

/* Lanes of another width: the lowest lane has the lowest bits. Whole operands make up one lane, or the other
 * way round. */
static ir_value eval_regroup(ir_exec *exec, const exec_node *node, int lane)
{
    int to = node->e->dtype.bits, from = node->t.bits;
    uint64_t bits = 0;

    if (from > to) {
        bits =
            ir_value_bits(node->t, exec_run(exec, node->op.arg[0], lane * to / from)) >> (lane * to % from);
        return ir_value_of_bits(node->e->dtype, to < 64 ? bits & ((UINT64_C(1) << to) - 1) : bits);
    }
    for (int i = 0; i < to / from; i++)
        bits |= ir_value_bits(node->t, exec_run(exec, node->op.arg[0], lane * (to / from) + i)) << (i * from);
    return ir_value_of_bits(node->e->dtype, bits);
}

static ir_value eval_ramp(ir_exec *exec, const exec_node *node, int lane)
{
    uint64_t base = (uint64_t)exec_run(exec, node->op.arg[0], 0).i,
             stride = (uint64_t)exec_run(exec, node->op.arg[1], 0).i;

    return (ir_value){.i = ir_wrap(node->t, base + stride * (uint64_t)lane)};
}

static ir_value eval_broadcast(ir_exec *exec, const exec_node *node, int lane)
{
    (void)lane;
    return exec_run(exec, node->op.arg[0], 0);
}

/* Lane numbers count through all vectors, one behind the other. */
static ir_value eval_shuffle(ir_exec *exec, const exec_node *node, int lane)
{
    int at = node->e->shuffle.pick[node->lanes == 1 ? 0 : lane], v = 0;

    while (at >= node->vectors[v]->lanes)
        at -= node->vectors[v++]->lanes;
    return exec_run(exec, node->vectors[v], at);
}

/* A vector is only noted as due: most of its lanes may never be read. */
static ir_value eval_let(ir_exec *exec, const exec_node *node, int lane)
{
    int lanes = node->let.value->lanes, slot = node->let.slot;

    if (lanes == 1)
        exec->var[slot] = exec_run(exec, node->let.value, 0);
    else
        for (int i = 0; i < lanes; i++)
            exec->var[slot + lanes + i].i = (int64_t)(uintptr_t)node->let.value;
    return exec_run(exec, node->let.body, lane);
}

/* ---- building ---- */

static const exec_node *build(exec_builder *builder, const ir_expr *expr);

static void refuse(exec_builder *builder, const ir_expr *expr, const char *what)
{
    ir_exec_fail(builder->exec, TEC_UNSUPPORTED, expr->loc, "the interpreter does not run %s", what);
}

static int64_t add_cost(int64_t a, const exec_node *node)
{
    const int64_t most = INT64_C(1) << 44;

    return !node ? a : a + node->cost > most ? most : a + node->cost;
}

static void set_args(exec_builder *builder, exec_node *node, const ir_expr *const *arg, int count)
{
    for (int i = 0; i < count; i++) {
        node->op.arg[i] = build(builder, arg[i]);
        node->cost = add_cost(node->cost, node->op.arg[i]);
    }
    if (count && arg[count - 1])
        node->t = base_dtype_lanes(arg[count - 1]->dtype, 1);
}

static void build_operation(exec_builder *builder, exec_node *node, const ir_expr *expr)
{
    set_args(builder, node, expr->arg, ir_ops[expr->op].arity);
    node->op.fn = ir_evaluator_of(expr->op);
    node->eval = pick_operation(expr->op, node->t);
}

/* Between widths that do not divide each other there is no meaning. */
static void build_reinterpret(exec_builder *builder, exec_node *node, const ir_expr *expr)
{
    int to = expr->dtype.bits, from = expr->arg[0]->dtype.bits;

    set_args(builder, node, expr->arg, 1);
    node->eval = to == from ? eval_reinterpret : eval_regroup;
    if (to % from != 0 && from % to != 0)
        refuse(builder, expr, "a reinterpret between element widths of which neither divides the other");
}

static void build_let(exec_builder *builder, exec_node *node, const ir_expr *expr)
{
    node->eval = eval_let;
    node->let.value = build(builder, expr->let.value);
    node->let.slot = ir_exec_slot(builder, expr->let.var);
    node->let.body = build(builder, expr->let.body);
    node->cost = add_cost(add_cost(node->cost, node->let.value), node->let.body);
}

static void build_var(exec_builder *builder, exec_node *node, const ir_expr *expr)
{
    node->eval = expr->dtype.lanes == 1 ? eval_scalar_var : eval_vector_var;
    if (!base_map_has(&builder->names->slots, expr))
        ir_exec_fail(builder->exec, TEC_INVALID, expr->loc, "'%s' has no value here", expr->var.name);
    node->slot = ir_exec_slot(builder, expr);
}

static void build_shuffle(exec_builder *builder, exec_node *node, const ir_expr *expr)
{
    const exec_node **v = base_array(builder->exec->mem, const exec_node *, expr->shuffle.n);

    for (int i = 0; i < expr->shuffle.n; i++) {
        v[i] = build(builder, expr->shuffle.vectors[i]);
        node->cost = add_cost(node->cost, v[i]);
    }
    node->vectors = v;
    node->eval = eval_shuffle;
}

/* An intrinsic may do a lot: each of its runs counts its own steps. */
static void build_call(exec_builder *builder, exec_node *node, const ir_expr *expr)
{
    node->call = ir_exec_call(builder, expr);
    node->eval = ir_exec_eval_call;
    for (int i = 0; node->call && i < expr->call.n; i++)
        node->cost = add_cost(node->cost, node->call->arg[i]);
}

static void build_load(exec_builder *builder, exec_node *node, const ir_expr *expr)
{
    node->access = ir_exec_access(builder, expr->load.buffer, expr->load.index, expr->load.n, expr->load.mask,
                                  expr->loc);
    node->eval = eval_load;
    for (int d = 0; node->access && d < node->access->n; d++)
        node->cost = add_cost(node->cost, node->access->index[d]);
    node->cost = add_cost(node->cost, node->access ? node->access->mask : NULL);
}

static void build_ramp(exec_builder *builder, exec_node *node, const ir_expr *expr)
{
    set_args(builder, node, (const ir_expr *[]){expr->ramp.base, expr->ramp.stride}, 2);
    node->t = base_dtype_lanes(expr->dtype, 1);
    node->eval = eval_ramp;
}

static void build_constant(exec_node *node, const ir_expr *expr)
{
    node->value = expr->op == IR_INT ? (ir_value){.i = expr->i} : (ir_value){.f = expr->f};
    node->eval = eval_constant;
}

/* One builder per kind; operations of the table go through their evaluators. */
static void build_kind(exec_builder *builder, exec_node *node, const ir_expr *expr)
{
    switch ((int)expr->op) {
    case IR_INT:
    case IR_FLOAT: build_constant(node, expr); break;
    case IR_VAR: build_var(builder, node, expr); break;
    case IR_LOAD: build_load(builder, node, expr); break;
    case IR_CAST:
        set_args(builder, node, expr->arg, 1);
        node->eval = eval_cast;
        break;
    case IR_REINTERPRET: build_reinterpret(builder, node, expr); break;
    case IR_RAMP: build_ramp(builder, node, expr); break;
    case IR_BROADCAST:
        set_args(builder, node, expr->arg, 1);
        node->eval = eval_broadcast;
        break;
    case IR_SHUFFLE: build_shuffle(builder, node, expr); break;
    case IR_LET: build_let(builder, node, expr); break;
    case IR_CALL: build_call(builder, node, expr); break;
    case IR_STRING: refuse(builder, expr, "a string outside a call"); break;
    case IR_REDUCE:
        refuse(builder, expr, "a reduction inside an expression; expand it into a block first");
        break;
    default: build_operation(builder, node, expr);
    }
}

/* Limits the depth and the size of a program: texts of strangers must not end this process. */
bool ir_exec_may_grow(exec_builder *builder, base_loc loc)
{
    if (builder->depth >= EXEC_MAX_NESTING)
        ir_exec_fail(builder->exec, TEC_INVALID, loc, "nested more than %d levels deep", EXEC_MAX_NESTING);
    else if (++builder->exec->built > EXEC_MAX_NODES)
        ir_exec_fail(builder->exec, TEC_INVALID, loc, "the program has more than %d nodes", EXEC_MAX_NODES);
    return !builder->exec->failed;
}

/* Each expression becomes one node, shared by all its uses within a statement. Deep texts end with an error
 * and not with the stack. */
static const exec_node *build(exec_builder *builder, const ir_expr *expr)
{
    exec_node *node = base_map_get(&builder->nodes, expr);

    if (node || builder->exec->failed || !ir_exec_may_grow(builder, expr->loc))
        return node;
    if (!ir_value_knows(expr->dtype) && expr->op != IR_CALL) {
        refuse(builder, expr,
               base_format(builder->exec->mem, "values of type %s",
                           base_dtype_text(builder->exec->mem, expr->dtype)));
        return NULL;
    }
    node = base_new(builder->exec->mem, exec_node);
    node->e = expr;
    node->lanes = expr->dtype.lanes;
    node->cost = 1;
    builder->depth++;
    build_kind(builder, node, expr);
    builder->depth--;
    base_map_put(builder->exec->mem, &builder->nodes, expr, node);
    return builder->exec->failed ? NULL : node;
}

const exec_node *ir_exec_part(exec_builder *builder, const ir_expr *expr)
{
    return expr ? build(builder, expr) : NULL;
}

/* The memo ends with each whole expression: a node that stands in two places counts as a use of its buffers
 * in both. */
const exec_node *ir_exec_expr(exec_builder *builder, const ir_expr *expr)
{
    builder->nodes = (base_map){0};
    return expr ? build(builder, expr) : NULL;
}

const exec_node *const *ir_exec_exprs(exec_builder *builder, const ir_expr *const *expr, int n)
{
    const exec_node **out = base_array(builder->exec->mem, const exec_node *, n);

    for (int i = 0; i < n; i++)
        out[i] = ir_exec_expr(builder, expr[i]);
    return out;
}

int64_t ir_exec_cost(const exec_node *node)
{
    return node ? node->cost / 64 : 0;
}

/* An access with one index to a buffer of several dimensions is flat: it counts elements of the memory as a
 * whole. */
exec_access *ir_exec_access(exec_builder *builder, const ir_buffer *buffer, const ir_expr *const *index,
                            int count, const ir_expr *mask, base_loc loc)
{
    exec_access *access = base_new(builder->exec->mem, exec_access);
    const exec_node **at = base_array(builder->exec->mem, const exec_node *, count);

    access->buffer = ir_exec_use(builder, buffer, loc);
    access->t = buffer->dtype;
    access->n = count;
    access->flat = count == 1 && buffer->n != 1;
    access->index = at;
    access->loc = loc;
    if (count != buffer->n && !access->flat)
        ir_exec_fail(builder->exec, TEC_INVALID, loc, "'%s' has %d dimensions, the access has %d",
                     buffer->name, buffer->n, count);
    for (int d = 0; d < count; d++)
        at[d] = build(builder, index[d]);
    access->mask = mask ? build(builder, mask) : NULL;
    return builder->exec->failed ? NULL : access;
}
