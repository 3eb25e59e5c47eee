/* targets/llvm/expr.c -- expressions to values: leaves, vectors, lets, and the lazy operations.
 *
 * Laziness. An operand of select, and, or that may trap or touch memory is evaluated under its condition:
 * behind a branch where the condition is scalar, under a lane mask where it is a vector. Loads combine that
 * mask with their own; divisions put 1 in place of the divisors of lanes that are off. An operand without
 * risk is evaluated always, since a select is cheaper than a branch.
 *
 * Shared nodes are emitted once: values are remembered in scopes that end with the block (or mask) under
 * which they were made.
 */
#include <string.h>

#include "ir/build.h"
#include "targets/llvm/gen.h"

void llvm_bind(llvm_gen *gen, const ir_expr *var, LLVMValueRef value, const ir_expr *expr, int64_t multiple,
               bool nonnegative)
{
    llvm_binding *v = base_new(gen->cx, llvm_binding);
    *v = (llvm_binding){value, expr, multiple, nonnegative, {INT64_MIN, INT64_MAX}};
    base_map_put(gen->cx, &gen->vars, var, v);
}

void llvm_bind_range(llvm_gen *gen, const ir_expr *var, llvm_range range)
{
    llvm_binding *v = base_map_get(&gen->vars, var);
    v->range = range;
}

void llvm_unbind(llvm_gen *gen, const ir_expr *var)
{
    base_map_put(gen->cx, &gen->vars, var, NULL);
}

static int *bucket_of(const llvm_gen *gen, const ir_expr *expr)
{
    return &gen->memo.buckets[((uintptr_t)expr >> 4) * 0x9e3779b9u / 4096 % LLVM_MEMO_BUCKETS];
}

int llvm_enter(llvm_gen *gen)
{
    return gen->memo.n;
}

/* The youngest entry is always the first of its bucket. */
void llvm_leave(llvm_gen *gen, int scope)
{
    llvm_memo *m = &gen->memo;
    while (m->n > scope) {
        m->n--;
        *bucket_of(gen, m->entries[m->n].key) = m->entries[m->n].next;
    }
}

/* Values are a stack with hash chains through it: leaving a scope cuts the stack, and the chains with it. */
static void remember(llvm_gen *gen, const ir_expr *expr, LLVMValueRef value)
{
    llvm_memo *memo = &gen->memo;
    if (memo->n == memo->cap) {
        int cap = memo->cap ? memo->cap * 2 : 256;
        llvm_known *more = base_array(gen->cx, llvm_known, cap);
        if (memo->n)
            memcpy(more, memo->entries, (size_t)memo->n * sizeof *more);
        memo->entries = more;
        memo->cap = cap;
    }
    int *bucket = bucket_of(gen, expr);
    memo->entries[memo->n] = (llvm_known){expr, value, *bucket};
    *bucket = ++memo->n;
}

static LLVMValueRef recall(const llvm_gen *gen, const ir_expr *expr)
{
    for (int i = *bucket_of(gen, expr); i; i = gen->memo.entries[i - 1].next)
        if (gen->memo.entries[i - 1].key == expr)
            return gen->memo.entries[i - 1].value;
    return NULL;
}

/* ---- masks ---- */

LLVMValueRef llvm_any(llvm_gen *gen, LLVMValueRef mask)
{
    return llvm_intrinsic1(gen, "llvm.vector.reduce.or", LLVMTypeOf(mask), mask);
}

/* A mask over other lanes than the operation's own can only be honoured as a whole: all lanes are on where
 * any is. */
LLVMValueRef llvm_mask_for(llvm_gen *gen, int lanes)
{
    if (!gen->mask || gen->mask_lanes == lanes)
        return gen->mask;
    return llvm_splat(gen, gen->mask_lanes == 1 ? gen->mask : llvm_any(gen, gen->mask), lanes);
}

static LLVMValueRef masked(llvm_gen *gen, const ir_expr *expr, LLVMValueRef mask)
{
    LLVMValueRef outer = gen->mask, own = llvm_mask_for(gen, llvm_lanes(LLVMTypeOf(mask)));
    int outer_lanes = gen->mask_lanes;
    int scope = llvm_enter(gen);
    gen->mask = own ? LLVMBuildAnd(gen->b, own, mask, "") : mask;
    gen->mask_lanes = llvm_lanes(LLVMTypeOf(mask));
    LLVMValueRef v = llvm_expr(gen, expr);
    gen->mask = outer;
    gen->mask_lanes = outer_lanes;
    llvm_leave(gen, scope);
    return v;
}

/* ---- lazy operations ---- */

/* condition ? a : b behind a branch; a or b NULL: the constant `otherwise`. */
static LLVMValueRef branch(llvm_gen *gen, LLVMValueRef condition, const ir_expr *a, const ir_expr *b,
                           LLVMValueRef otherwise)
{
    LLVMBasicBlockRef blocks[2] = {llvm_block(gen, "chosen"), llvm_block(gen, "other")},
                      join = llvm_block(gen, "join");
    const ir_expr *arms[2] = {a, b};
    LLVMValueRef values[2];
    LLVMBuildCondBr(gen->b, condition, blocks[0], blocks[1]);
    for (int i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(gen->b, blocks[i]);
        int scope = llvm_enter(gen);
        values[i] = arms[i] ? llvm_expr(gen, arms[i]) : otherwise;
        llvm_leave(gen, scope);
        if (!values[i])
            return NULL;
        blocks[i] = LLVMGetInsertBlock(gen->b);
        LLVMBuildBr(gen->b, join);
    }
    LLVMPositionBuilderAtEnd(gen->b, join);
    LLVMValueRef phi = LLVMBuildPhi(gen->b, LLVMTypeOf(values[0]), "");
    LLVMAddIncoming(phi, values, blocks, 2);
    return phi;
}

/* Neighbours of one local buffer, or one element: they are there, whichever of them are wanted. A masked load
 * would keep the buffer in memory. */
static bool is_there(const ir_expr *expr)
{
    const ir_expr *i =
        expr->op == IR_LOAD && expr->load.n == 1 && !expr->load.mask && expr->load.buffer->scope == IR_LOCAL
            ? expr->load.index[0]
            : NULL;
    int64_t first, size;

    if (i && i->op == IR_RAMP)
        i = ir_is_value(i->ramp.stride, 1) ? i->ramp.base : NULL;
    return i && ir_is_int(i, &first) && expr->load.buffer->n == 1 &&
           ir_is_int(expr->load.buffer->shape[0], &size) && first >= 0 && first + expr->dtype.lanes <= size;
}

/* A scalar condition with risky operands becomes a branch; a vector condition a mask on the risky operand's
 * accesses. */
static LLVMValueRef emit_select(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef c = llvm_expr(gen, expr->arg[0]);
    bool risky = llvm_risky(gen, expr->arg[1]) || llvm_risky(gen, expr->arg[2]);
    if (!c)
        return NULL;
    if (risky && expr->arg[0]->dtype.lanes == 1)
        return branch(gen, c, expr->arg[1], expr->arg[2], NULL);
    LLVMValueRef a = llvm_risky(gen, expr->arg[1]) && !is_there(expr->arg[1]) ? masked(gen, expr->arg[1], c)
                                                                              : llvm_expr(gen, expr->arg[1]);
    LLVMValueRef b = llvm_risky(gen, expr->arg[2]) && !is_there(expr->arg[2])
                         ? masked(gen, expr->arg[2], LLVMBuildNot(gen->b, c, ""))
                         : llvm_expr(gen, expr->arg[2]);
    return a && b ? LLVMBuildSelect(gen->b, c, a, b, "") : NULL;
}

/* && and || evaluate their second operand only where it decides; without risk both are evaluated and
 * combined. */
static LLVMValueRef emit_logic(llvm_gen *gen, const ir_expr *expr)
{
    bool is_and = expr->op == IR_AND;
    LLVMValueRef a = llvm_expr(gen, expr->arg[0]), b;
    if (!a)
        return NULL;
    if (!llvm_risky(gen, expr->arg[1]))
        b = llvm_expr(gen, expr->arg[1]);
    else if (expr->dtype.lanes == 1)
        return is_and ? branch(gen, a, expr->arg[1], NULL, LLVMConstInt(gen->i1, 0, 0))
                      : branch(gen, a, NULL, expr->arg[1], LLVMConstInt(gen->i1, 1, 0));
    else
        b = masked(gen, expr->arg[1], is_and ? a : LLVMBuildNot(gen->b, a, ""));
    if (!b)
        return NULL;
    return is_and ? LLVMBuildAnd(gen->b, a, b, "") : LLVMBuildOr(gen->b, a, b, "");
}

/* ---- vectors ---- */

/* base + stride * lane. On a 32-bit CPU the lanes have 32 bits where all values fit. */
static LLVMValueRef emit_ramp(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef base = llvm_expr(gen, expr->ramp.base), stride = llvm_expr(gen, expr->ramp.stride),
                 steps[1024];
    int lanes = expr->dtype.lanes;
    if (!base || !stride)
        return NULL;
    if (lanes > 1024)
        return BASE_BUG(gen->cx, "a ramp of %d lanes", lanes);
    bool narrow = llvm_is_wide(expr->dtype) && llvm_fits_narrow(gen, llvm_range_of(gen, expr)) &&
                  llvm_fits_narrow(gen, llvm_range_of(gen, expr->ramp.base)) &&
                  llvm_fits_narrow(gen, llvm_range_of(gen, expr->ramp.stride));
    if (narrow) {
        base = llvm_cut(gen, base);
        stride = llvm_cut(gen, stride);
    }
    for (int i = 0; i < lanes; i++)
        steps[i] = LLVMConstInt(LLVMTypeOf(base), (unsigned long long)i, 0);
    LLVMValueRef offsets =
        LLVMBuildMul(gen->b, llvm_splat(gen, stride, lanes), LLVMConstVector(steps, (unsigned)lanes), "");
    LLVMValueRef all = LLVMBuildAdd(gen->b, llvm_splat(gen, base, lanes), offsets, "");
    return narrow ? llvm_extend(gen, all) : all;
}

/* A vector as long as `lanes`, the new lanes undefined. */
static LLVMValueRef lengthen(llvm_gen *gen, LLVMValueRef value, int lanes)
{
    int n = llvm_lanes(LLVMTypeOf(value));
    LLVMValueRef pick[1024];
    if (n == lanes)
        return value;
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMVectorTypeKind)
        return LLVMBuildInsertElement(gen->b,
                                      LLVMGetPoison(LLVMVectorType(LLVMTypeOf(value), (unsigned)lanes)),
                                      value, LLVMConstInt(gen->i32, 0, 0), "");
    for (int i = 0; i < lanes; i++)
        pick[i] = i < n ? LLVMConstInt(gen->i32, (unsigned long long)i, 0) : LLVMGetPoison(gen->i32);
    return LLVMBuildShuffleVector(gen->b, value, LLVMGetPoison(LLVMTypeOf(value)),
                                  LLVMConstVector(pick, (unsigned)lanes), "");
}

/* a's lanes, then b's. */
static LLVMValueRef concatenate(llvm_gen *gen, LLVMValueRef left, int left_lanes, LLVMValueRef right,
                                int right_lanes)
{
    LLVMValueRef pick[2048];
    int longest = left_lanes > right_lanes ? left_lanes : right_lanes;
    if (longest == 1) {
        LLVMValueRef pair = lengthen(gen, left, 2);
        return LLVMBuildInsertElement(gen->b, pair, right, LLVMConstInt(gen->i32, 1, 0), "");
    }
    for (int i = 0; i < left_lanes + right_lanes; i++)
        pick[i] =
            LLVMConstInt(gen->i32, (unsigned long long)(i < left_lanes ? i : longest + i - left_lanes), 0);
    return LLVMBuildShuffleVector(gen->b, lengthen(gen, left, longest), lengthen(gen, right, longest),
                                  LLVMConstVector(pick, (unsigned)(left_lanes + right_lanes)), "");
}

static LLVMValueRef pick_lanes(llvm_gen *gen, LLVMValueRef value, const int *pick, int lanes)
{
    LLVMValueRef index[1024];
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMVectorTypeKind)
        return llvm_splat(gen, value, lanes);
    if (lanes == 1)
        return LLVMBuildExtractElement(gen->b, value, LLVMConstInt(gen->i32, (unsigned long long)pick[0], 0),
                                       "");
    for (int i = 0; i < lanes; i++)
        index[i] = LLVMConstInt(gen->i32, (unsigned long long)pick[i], 0);
    return LLVMBuildShuffleVector(gen->b, value, LLVMGetPoison(LLVMTypeOf(value)),
                                  LLVMConstVector(index, (unsigned)lanes), "");
}

/* An operand of a shuffle. Its lanes are others than the result's, even where they are as many: of a mask
 * counts whether any is on. */
static LLVMValueRef shuffled(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef outer = gen->mask, v;
    int outer_lanes = gen->mask_lanes, scope = llvm_enter(gen);

    if (!outer)
        return llvm_expr(gen, expr);
    gen->mask = llvm_mask_for(gen, 1);
    gen->mask_lanes = 1;
    v = llvm_expr(gen, expr);
    gen->mask = outer;
    gen->mask_lanes = outer_lanes;
    llvm_leave(gen, scope);
    return v;
}

/* LLVM shuffles two vectors at a time, so all operands are laid one behind the other first. */
static LLVMValueRef emit_shuffle(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef all = NULL;
    int n = 0;
    for (int i = 0; i < expr->shuffle.n; i++) {
        LLVMValueRef v = shuffled(gen, expr->shuffle.vectors[i]);
        int lanes = expr->shuffle.vectors[i]->dtype.lanes;
        if (!v)
            return NULL;
        if (n + lanes > 1024 || expr->dtype.lanes > 1024)
            return BASE_BUG(gen->cx, "a shuffle of more than 1024 lanes");
        all = all ? concatenate(gen, all, n, v, lanes) : v;
        n += lanes;
    }
    return pick_lanes(gen, all, expr->shuffle.pick, expr->dtype.lanes);
}

/* ---- the rest ---- */

static LLVMValueRef emit_var(llvm_gen *gen, const ir_expr *expr)
{
    const llvm_binding *v = base_map_get(&gen->vars, expr);
    if (!v)
        return BASE_BUG(gen->cx, "variable '%s' is used outside its binding", expr->var.name);
    return v->value;
}

static LLVMValueRef emit_let(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef value = llvm_expr(gen, expr->let.value);
    if (!value)
        return NULL;
    int scope = llvm_enter(gen);
    llvm_bind(gen, expr->let.var, value, expr->let.value, llvm_multiple(gen, expr->let.value),
              llvm_nonnegative(gen, expr->let.value));
    llvm_bind_range(gen, expr->let.var, llvm_range_of(gen, expr->let.value));
    LLVMValueRef body = llvm_expr(gen, expr->let.body);
    llvm_unbind(gen, expr->let.var);
    llvm_leave(gen, scope);
    return body;
}

static LLVMValueRef emit_reinterpret(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef v = llvm_expr(gen, expr->arg[0]);
    return v ? LLVMBuildBitCast(gen->b, v, llvm_type(gen, expr->dtype), "") : NULL;
}

static LLVMValueRef emit_cast(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef v = llvm_expr(gen, expr->arg[0]);
    if (!v)
        return NULL;
    base_dtype from = expr->arg[0]->dtype;
    v = llvm_cast(gen, from, base_dtype_lanes(expr->dtype, from.lanes), v);
    return from.lanes == expr->dtype.lanes ? v : llvm_splat(gen, v, expr->dtype.lanes);
}

/* One case per kind of expression. */
static LLVMValueRef emit(llvm_gen *gen, const ir_expr *expr)
{
    switch ((int)expr->op) {
    case IR_INT:
    case IR_FLOAT: return llvm_constant(gen, expr->dtype, expr);
    case IR_STRING: return LLVMBuildGlobalStringPtr(gen->b, expr->string, "text");
    case IR_VAR: return emit_var(gen, expr);
    case IR_LOAD: return llvm_load(gen, expr);
    case IR_CAST: return emit_cast(gen, expr);
    case IR_REINTERPRET: return emit_reinterpret(gen, expr);
    case IR_RAMP: return emit_ramp(gen, expr);
    case IR_BROADCAST: {
        LLVMValueRef v = llvm_expr(gen, expr->arg[0]);
        return v ? llvm_splat(gen, v, expr->dtype.lanes) : NULL;
    }
    case IR_SHUFFLE: return emit_shuffle(gen, expr);
    case IR_LET: return emit_let(gen, expr);
    case IR_CALL: return llvm_call(gen, expr);
    case IR_SELECT: return emit_select(gen, expr);
    case IR_AND:
    case IR_OR: return emit_logic(gen, expr);
    case IR_REDUCE: return BASE_BUG(gen->cx, "a reduction reached code generation");
    default: return llvm_operation(gen, expr);
    }
}

/* The value of an expression; one that was computed before in this scope is used again. NULL after an error.
 */
LLVMValueRef llvm_expr(llvm_gen *gen, const ir_expr *expr)
{
    bool leaf = expr->op == IR_INT || expr->op == IR_FLOAT || expr->op == IR_VAR;
    LLVMValueRef v = leaf ? NULL : recall(gen, expr);
    if (v || base_failed(gen->cx))
        return v;
    bool index = gen->index;
    /* parts of what wraps may have been put together anew: they may wrap too */
    gen->index = index && !(expr->has & IR_HAS_DATA);
    v = emit(gen, expr);
    gen->index = index;
    if (v && !leaf)
        remember(gen, expr, v);
    return v;
}

/* In a scope of its own: what is known not to overflow here must not be taken for a wrapping value
 * elsewhere. */
LLVMValueRef llvm_index(llvm_gen *gen, const ir_expr *expr)
{
    if (gen->index)
        return llvm_expr(gen, expr);
    int scope = llvm_enter(gen);
    gen->index = true;
    LLVMValueRef v = llvm_expr(gen, expr);
    gen->index = false;
    llvm_leave(gen, scope);
    return v;
}
