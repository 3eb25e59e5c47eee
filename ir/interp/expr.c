/* ir/interp/expr.c -- expressions of the interpreter: how each kind is built into a node, and how its node
 * gives one lane.
 *
 * The common cases of index arithmetic and float32 have functions of their own; everything else goes through
 * the table of evaluators.
 */
#include "ir/interp/build.h"

/* ---- leaves ---- */

static ir_value eval_constant(ir_vm *vm, const vm_node *n, int lane)
{
    (void)vm;
    (void)lane;
    return n->value;
}

static ir_value eval_scalar_var(ir_vm *vm, const vm_node *n, int lane)
{
    (void)lane;
    return vm->var[n->slot];
}

/* Lanes of a vector let are computed when they are first asked for; `due` holds the node until then. */
static ir_value eval_vector_var(ir_vm *vm, const vm_node *n, int lane)
{
    ir_value *v = &vm->var[n->slot + lane], *due = v + n->lanes;

    if (due->i) {
        const vm_node *value = (const vm_node *)(uintptr_t)due->i;
        due->i = 0;
        *v = vm_run(vm, value, lane);
    }
    return *v;
}

static ir_value eval_load(ir_vm *vm, const vm_node *n, int lane)
{
    return ir_vm_load(vm, n->access, lane);
}

/* ---- operations ---- */

static void blame_zero(ir_vm *vm, const vm_node *n)
{
    ir_vm_fail(vm, TEC_INVALID, n->e->loc, "division by zero in '%s'", ir_ops[n->e->op].text);
}

static ir_value eval_op1(ir_vm *vm, const vm_node *n, int lane)
{
    ir_value a = vm_run(vm, n->op.arg[0], lane), out = {0};

    n->op.fn(n->t, &a, &out);
    return out;
}

/* A zero divisor is the program's error. */
static ir_value eval_op2(ir_vm *vm, const vm_node *n, int lane)
{
    ir_value a[2] = {vm_run(vm, n->op.arg[0], lane), vm_run(vm, n->op.arg[1], lane)}, out = {0};

    if (!n->op.fn(n->t, a, &out))
        blame_zero(vm, n);
    return out;
}

static ir_value eval_op3(ir_vm *vm, const vm_node *n, int lane)
{
    ir_value a[3] = {vm_run(vm, n->op.arg[0], lane), vm_run(vm, n->op.arg[1], lane),
                     vm_run(vm, n->op.arg[2], lane)},
             out = {0};

    n->op.fn(n->t, a, &out);
    return out;
}

static ir_value eval_select(ir_vm *vm, const vm_node *n, int lane)
{
    return vm_run(vm, n->op.arg[vm_run(vm, n->op.arg[0], lane).i ? 1 : 2], lane);
}

static ir_value eval_and(ir_vm *vm, const vm_node *n, int lane)
{
    ir_value a = vm_run(vm, n->op.arg[0], lane);

    return a.i ? vm_run(vm, n->op.arg[1], lane) : a;
}

static ir_value eval_or(ir_vm *vm, const vm_node *n, int lane)
{
    ir_value a = vm_run(vm, n->op.arg[0], lane);

    return a.i ? a : vm_run(vm, n->op.arg[1], lane);
}

#define FAST_I64(name, symbol)                                                                               \
    static ir_value eval_##name##_i64(ir_vm *vm, const vm_node *n, int lane)                                 \
    {                                                                                                        \
        uint64_t a = (uint64_t)vm_run(vm, n->op.arg[0], lane).i,                                             \
                 b = (uint64_t)vm_run(vm, n->op.arg[1], lane).i;                                             \
        return (ir_value){.i = (int64_t)(a symbol b)};                                                       \
    }
FAST_I64(add, +)
FAST_I64(sub, -)
FAST_I64(mul, *)

#define FAST_F32(name, symbol)                                                                               \
    static ir_value eval_##name##_f32(ir_vm *vm, const vm_node *n, int lane)                                 \
    {                                                                                                        \
        float a = (float)vm_run(vm, n->op.arg[0], lane).f, b = (float)vm_run(vm, n->op.arg[1], lane).f;      \
        return (ir_value){.f = a symbol b};                                                                  \
    }
FAST_F32(add, +)
FAST_F32(sub, -)
FAST_F32(mul, *)

static ir_value eval_lt_i64(ir_vm *vm, const vm_node *n, int lane)
{
    int64_t a = vm_run(vm, n->op.arg[0], lane).i;

    return (ir_value){.i = a < vm_run(vm, n->op.arg[1], lane).i};
}

/* Functions of their own for the operations that most programs spend their time in; NULL for all others. */
static vm_eval *pick_fast(ir_op op, base_dtype t)
{
    bool i64 = t.code == kDLInt && t.bits == 64, f32 = t.code == kDLFloat && t.bits == 32;

    switch ((int)op) {
    case IR_ADD: return i64 ? eval_add_i64 : f32 ? eval_add_f32 : NULL;
    case IR_SUB: return i64 ? eval_sub_i64 : f32 ? eval_sub_f32 : NULL;
    case IR_MUL: return i64 ? eval_mul_i64 : f32 ? eval_mul_f32 : NULL;
    case IR_LT: return i64 ? eval_lt_i64 : NULL;
    }
    return NULL;
}

/* select, && and || evaluate only the operand that they ask for. */
static vm_eval *pick_operation(ir_op op, base_dtype t)
{
    vm_eval *fast = pick_fast(op, t);

    if (fast)
        return fast;
    if (ir_ops[op].flags & IR_LAZY)
        return op == IR_SELECT ? eval_select : op == IR_AND ? eval_and : eval_or;
    return ir_ops[op].arity == 1 ? eval_op1 : ir_ops[op].arity == 2 ? eval_op2 : eval_op3;
}

/* ---- conversions and vectors ---- */

static ir_value eval_cast(ir_vm *vm, const vm_node *n, int lane)
{
    return ir_eval_cast(n->t, n->e->dtype, vm_run(vm, n->op.arg[0], lane));
}

static ir_value eval_reinterpret(ir_vm *vm, const vm_node *n, int lane)
{
    return ir_value_of_bits(n->e->dtype, ir_value_bits(n->t, vm_run(vm, n->op.arg[0], lane)));
}

/* Lanes of another width: the lowest lane has the lowest bits. Whole operands make up one lane, or the other
 * way round. */
static ir_value eval_regroup(ir_vm *vm, const vm_node *n, int lane)
{
    int to = n->e->dtype.bits, from = n->t.bits;
    uint64_t bits = 0;

    if (from > to) {
        bits = ir_value_bits(n->t, vm_run(vm, n->op.arg[0], lane * to / from)) >> (lane * to % from);
        return ir_value_of_bits(n->e->dtype, to < 64 ? bits & ((UINT64_C(1) << to) - 1) : bits);
    }
    for (int i = 0; i < to / from; i++)
        bits |= ir_value_bits(n->t, vm_run(vm, n->op.arg[0], lane * (to / from) + i)) << (i * from);
    return ir_value_of_bits(n->e->dtype, bits);
}

static ir_value eval_ramp(ir_vm *vm, const vm_node *n, int lane)
{
    uint64_t base = (uint64_t)vm_run(vm, n->op.arg[0], 0).i, stride = (uint64_t)vm_run(vm, n->op.arg[1], 0).i;

    return (ir_value){.i = ir_wrap(n->t, base + stride * (uint64_t)lane)};
}

static ir_value eval_broadcast(ir_vm *vm, const vm_node *n, int lane)
{
    (void)lane;
    return vm_run(vm, n->op.arg[0], 0);
}

/* Lane numbers count through all vectors, one behind the other. */
static ir_value eval_shuffle(ir_vm *vm, const vm_node *n, int lane)
{
    int at = n->e->shuffle.pick[n->lanes == 1 ? 0 : lane], v = 0;

    while (at >= n->vectors[v]->lanes)
        at -= n->vectors[v++]->lanes;
    return vm_run(vm, n->vectors[v], at);
}

/* A vector is only noted as due: most of its lanes may never be read. */
static ir_value eval_let(ir_vm *vm, const vm_node *n, int lane)
{
    int lanes = n->let.value->lanes, slot = n->let.slot;

    if (lanes == 1)
        vm->var[slot] = vm_run(vm, n->let.value, 0);
    else
        for (int i = 0; i < lanes; i++)
            vm->var[slot + lanes + i].i = (int64_t)(uintptr_t)n->let.value;
    return vm_run(vm, n->let.body, lane);
}

/* ---- building ---- */

static const vm_node *build(vm_builder *b, const ir_expr *e);

static void refuse(vm_builder *b, const ir_expr *e, const char *what)
{
    ir_vm_fail(b->vm, TEC_UNSUPPORTED, e->loc, "the interpreter does not run %s", what);
}

static int64_t add_cost(int64_t a, const vm_node *n)
{
    const int64_t most = INT64_C(1) << 44;

    return !n ? a : a + n->cost > most ? most : a + n->cost;
}

static void set_args(vm_builder *b, vm_node *n, const ir_expr *const *arg, int count)
{
    for (int i = 0; i < count; i++) {
        n->op.arg[i] = build(b, arg[i]);
        n->cost = add_cost(n->cost, n->op.arg[i]);
    }
    if (count && arg[count - 1])
        n->t = base_dtype_lanes(arg[count - 1]->dtype, 1);
}

static void build_operation(vm_builder *b, vm_node *n, const ir_expr *e)
{
    set_args(b, n, e->arg, ir_ops[e->op].arity);
    n->op.fn = ir_evaluator_of(e->op);
    n->eval = pick_operation(e->op, n->t);
}

/* Between widths that do not divide each other there is no meaning. */
static void build_reinterpret(vm_builder *b, vm_node *n, const ir_expr *e)
{
    int to = e->dtype.bits, from = e->arg[0]->dtype.bits;

    set_args(b, n, e->arg, 1);
    n->eval = to == from ? eval_reinterpret : eval_regroup;
    if (to % from != 0 && from % to != 0)
        refuse(b, e, "a reinterpret between element widths of which neither divides the other");
}

static void build_let(vm_builder *b, vm_node *n, const ir_expr *e)
{
    n->eval = eval_let;
    n->let.value = build(b, e->let.value);
    n->let.slot = ir_vm_slot(b, e->let.var);
    n->let.body = build(b, e->let.body);
    n->cost = add_cost(add_cost(n->cost, n->let.value), n->let.body);
}

static void build_var(vm_builder *b, vm_node *n, const ir_expr *e)
{
    n->eval = e->dtype.lanes == 1 ? eval_scalar_var : eval_vector_var;
    if (!base_map_has(&b->names->slots, e))
        ir_vm_fail(b->vm, TEC_INVALID, e->loc, "'%s' has no value here", e->var.name);
    n->slot = ir_vm_slot(b, e);
}

static void build_shuffle(vm_builder *b, vm_node *n, const ir_expr *e)
{
    const vm_node **v = base_array(b->vm->mem, const vm_node *, e->shuffle.n);

    for (int i = 0; i < e->shuffle.n; i++) {
        v[i] = build(b, e->shuffle.vectors[i]);
        n->cost = add_cost(n->cost, v[i]);
    }
    n->vectors = v;
    n->eval = eval_shuffle;
}

/* An intrinsic may do a lot: each of its runs counts its own steps. */
static void build_call(vm_builder *b, vm_node *n, const ir_expr *e)
{
    n->call = ir_vm_call(b, e);
    n->eval = ir_vm_eval_call;
    for (int i = 0; n->call && i < e->call.n; i++)
        n->cost = add_cost(n->cost, n->call->arg[i]);
}

static void build_load(vm_builder *b, vm_node *n, const ir_expr *e)
{
    n->access = ir_vm_access(b, e->load.buffer, e->load.index, e->load.n, e->load.mask, e->loc);
    n->eval = eval_load;
    for (int d = 0; n->access && d < n->access->n; d++)
        n->cost = add_cost(n->cost, n->access->index[d]);
    n->cost = add_cost(n->cost, n->access ? n->access->mask : NULL);
}

static void build_ramp(vm_builder *b, vm_node *n, const ir_expr *e)
{
    set_args(b, n, (const ir_expr *[]){e->ramp.base, e->ramp.stride}, 2);
    n->t = base_dtype_lanes(e->dtype, 1);
    n->eval = eval_ramp;
}

static void build_constant(vm_node *n, const ir_expr *e)
{
    n->value = e->op == IR_INT ? (ir_value){.i = e->i} : (ir_value){.f = e->f};
    n->eval = eval_constant;
}

/* One builder per kind; operations of the table go through their evaluators. */
static void build_kind(vm_builder *b, vm_node *n, const ir_expr *e)
{
    switch ((int)e->op) {
    case IR_INT:
    case IR_FLOAT: build_constant(n, e); break;
    case IR_VAR: build_var(b, n, e); break;
    case IR_LOAD: build_load(b, n, e); break;
    case IR_CAST:
        set_args(b, n, e->arg, 1);
        n->eval = eval_cast;
        break;
    case IR_REINTERPRET: build_reinterpret(b, n, e); break;
    case IR_RAMP: build_ramp(b, n, e); break;
    case IR_BROADCAST:
        set_args(b, n, e->arg, 1);
        n->eval = eval_broadcast;
        break;
    case IR_SHUFFLE: build_shuffle(b, n, e); break;
    case IR_LET: build_let(b, n, e); break;
    case IR_CALL: build_call(b, n, e); break;
    case IR_STRING: refuse(b, e, "a string outside a call"); break;
    case IR_REDUCE: refuse(b, e, "a reduction inside an expression; expand it into a block first"); break;
    default: build_operation(b, n, e);
    }
}

/* Limits the depth and the size of a program: texts of strangers must not end this process. */
bool ir_vm_may_grow(vm_builder *b, base_loc loc)
{
    if (b->depth >= VM_MAX_NESTING)
        ir_vm_fail(b->vm, TEC_INVALID, loc, "nested more than %d levels deep", VM_MAX_NESTING);
    else if (++b->vm->built > VM_MAX_NODES)
        ir_vm_fail(b->vm, TEC_INVALID, loc, "the program has more than %d nodes", VM_MAX_NODES);
    return !b->vm->failed;
}

/* Each expression becomes one node, shared by all its uses within a statement. Deep texts end with an error
 * and not with the stack. */
static const vm_node *build(vm_builder *b, const ir_expr *e)
{
    vm_node *n = base_map_get(&b->nodes, e);

    if (n || b->vm->failed || !ir_vm_may_grow(b, e->loc))
        return n;
    if (!ir_value_knows(e->dtype) && e->op != IR_CALL) {
        refuse(b, e, base_format(b->vm->mem, "values of type %s", base_dtype_text(b->vm->mem, e->dtype)));
        return NULL;
    }
    n = base_new(b->vm->mem, vm_node);
    n->e = e;
    n->lanes = e->dtype.lanes;
    n->cost = 1;
    b->depth++;
    build_kind(b, n, e);
    b->depth--;
    base_map_put(b->vm->mem, &b->nodes, e, n);
    return b->vm->failed ? NULL : n;
}

const vm_node *ir_vm_part(vm_builder *b, const ir_expr *e)
{
    return e ? build(b, e) : NULL;
}

/* The memo ends with each whole expression: a node that stands in two places counts as a use of its buffers
 * in both. */
const vm_node *ir_vm_expr(vm_builder *b, const ir_expr *e)
{
    b->nodes = (base_map){0};
    return e ? build(b, e) : NULL;
}

const vm_node *const *ir_vm_exprs(vm_builder *b, const ir_expr *const *e, int n)
{
    const vm_node **out = base_array(b->vm->mem, const vm_node *, n);

    for (int i = 0; i < n; i++)
        out[i] = ir_vm_expr(b, e[i]);
    return out;
}

int64_t ir_vm_cost(const vm_node *n)
{
    return n ? n->cost / 64 : 0;
}

/* An access with one index to a buffer of several dimensions is flat: it counts elements of the memory as a
 * whole. */
vm_access *ir_vm_access(vm_builder *b, const ir_buffer *buffer, const ir_expr *const *index, int n,
                        const ir_expr *mask, base_loc loc)
{
    vm_access *a = base_new(b->vm->mem, vm_access);
    const vm_node **at = base_array(b->vm->mem, const vm_node *, n);

    a->buffer = ir_vm_use(b, buffer, loc);
    a->t = buffer->dtype;
    a->n = n;
    a->flat = n == 1 && buffer->n != 1;
    a->index = at;
    a->loc = loc;
    if (n != buffer->n && !a->flat)
        ir_vm_fail(b->vm, TEC_INVALID, loc, "'%s' has %d dimensions, the access has %d", buffer->name,
                   buffer->n, n);
    for (int d = 0; d < n; d++)
        at[d] = build(b, index[d]);
    a->mask = mask ? build(b, mask) : NULL;
    return b->vm->failed ? NULL : a;
}
