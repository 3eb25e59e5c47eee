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

void llvm_bind(llvm_gen *g, const ir_expr *var, LLVMValueRef value, const ir_expr *expr, int64_t multiple,
               bool nonnegative)
{
    llvm_binding *v = base_new(g->cx, llvm_binding);
    *v = (llvm_binding){value, expr, multiple, nonnegative, {INT64_MIN, INT64_MAX}};
    base_map_put(g->cx, &g->vars, var, v);
}

void llvm_bind_range(llvm_gen *g, const ir_expr *var, llvm_range range)
{
    llvm_binding *v = base_map_get(&g->vars, var);
    v->range = range;
}

void llvm_unbind(llvm_gen *g, const ir_expr *var)
{
    base_map_put(g->cx, &g->vars, var, NULL);
}

static int *bucket_of(const llvm_gen *g, const ir_expr *e)
{
    return &g->memo.buckets[((uintptr_t)e >> 4) * 0x9e3779b9u / 4096 % LLVM_MEMO_BUCKETS];
}

int llvm_enter(llvm_gen *g)
{
    return g->memo.n;
}

/* The youngest entry is always the first of its bucket. */
void llvm_leave(llvm_gen *g, int scope)
{
    llvm_memo *m = &g->memo;
    while (m->n > scope) {
        m->n--;
        *bucket_of(g, m->entries[m->n].key) = m->entries[m->n].next;
    }
}

/* Values are a stack with hash chains through it: leaving a scope cuts the stack, and the chains with it. */
static void remember(llvm_gen *g, const ir_expr *e, LLVMValueRef v)
{
    llvm_memo *m = &g->memo;
    if (m->n == m->cap) {
        int cap = m->cap ? m->cap * 2 : 256;
        llvm_known *more = base_array(g->cx, llvm_known, cap);
        if (m->n)
            memcpy(more, m->entries, (size_t)m->n * sizeof *more);
        m->entries = more;
        m->cap = cap;
    }
    int *bucket = bucket_of(g, e);
    m->entries[m->n] = (llvm_known){e, v, *bucket};
    *bucket = ++m->n;
}

static LLVMValueRef recall(const llvm_gen *g, const ir_expr *e)
{
    for (int i = *bucket_of(g, e); i; i = g->memo.entries[i - 1].next)
        if (g->memo.entries[i - 1].key == e)
            return g->memo.entries[i - 1].value;
    return NULL;
}

/* ---- masks ---- */

LLVMValueRef llvm_any(llvm_gen *g, LLVMValueRef mask)
{
    return llvm_intrinsic1(g, "llvm.vector.reduce.or", LLVMTypeOf(mask), mask);
}

/* A mask over other lanes than the operation's own can only be honoured as a whole: all lanes are on where
 * any is. */
LLVMValueRef llvm_mask_for(llvm_gen *g, int lanes)
{
    if (!g->mask || g->mask_lanes == lanes)
        return g->mask;
    return llvm_splat(g, g->mask_lanes == 1 ? g->mask : llvm_any(g, g->mask), lanes);
}

static LLVMValueRef masked(llvm_gen *g, const ir_expr *e, LLVMValueRef mask)
{
    LLVMValueRef outer = g->mask, own = llvm_mask_for(g, llvm_lanes(LLVMTypeOf(mask)));
    int outer_lanes = g->mask_lanes;
    int scope = llvm_enter(g);
    g->mask = own ? LLVMBuildAnd(g->b, own, mask, "") : mask;
    g->mask_lanes = llvm_lanes(LLVMTypeOf(mask));
    LLVMValueRef v = llvm_expr(g, e);
    g->mask = outer;
    g->mask_lanes = outer_lanes;
    llvm_leave(g, scope);
    return v;
}

/* ---- lazy operations ---- */

/* c ? a : b behind a branch; a or b NULL: the constant `otherwise`. */
static LLVMValueRef branch(llvm_gen *g, LLVMValueRef c, const ir_expr *a, const ir_expr *b,
                           LLVMValueRef otherwise)
{
    LLVMBasicBlockRef blocks[2] = {llvm_block(g, "chosen"), llvm_block(g, "other")},
                      join = llvm_block(g, "join");
    const ir_expr *arms[2] = {a, b};
    LLVMValueRef values[2];
    LLVMBuildCondBr(g->b, c, blocks[0], blocks[1]);
    for (int i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(g->b, blocks[i]);
        int scope = llvm_enter(g);
        values[i] = arms[i] ? llvm_expr(g, arms[i]) : otherwise;
        llvm_leave(g, scope);
        if (!values[i])
            return NULL;
        blocks[i] = LLVMGetInsertBlock(g->b);
        LLVMBuildBr(g->b, join);
    }
    LLVMPositionBuilderAtEnd(g->b, join);
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(values[0]), "");
    LLVMAddIncoming(phi, values, blocks, 2);
    return phi;
}

/* Neighbours of one local buffer, or one element: they are there, whichever of them are wanted. A masked load
 * would keep the buffer in memory. */
static bool is_there(const ir_expr *e)
{
    const ir_expr *i =
        e->op == IR_LOAD && e->load.n == 1 && !e->load.mask && e->load.buffer->scope == IR_LOCAL
            ? e->load.index[0]
            : NULL;
    int64_t first, size;

    if (i && i->op == IR_RAMP)
        i = ir_is_value(i->ramp.stride, 1) ? i->ramp.base : NULL;
    return i && ir_is_int(i, &first) && e->load.buffer->n == 1 &&
           ir_is_int(e->load.buffer->shape[0], &size) && first >= 0 && first + e->dtype.lanes <= size;
}

/* A scalar condition with risky operands becomes a branch; a vector condition a mask on the risky operand's
 * accesses. */
static LLVMValueRef emit_select(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef c = llvm_expr(g, e->arg[0]);
    bool risky = llvm_risky(g, e->arg[1]) || llvm_risky(g, e->arg[2]);
    if (!c)
        return NULL;
    if (risky && e->arg[0]->dtype.lanes == 1)
        return branch(g, c, e->arg[1], e->arg[2], NULL);
    LLVMValueRef a =
        llvm_risky(g, e->arg[1]) && !is_there(e->arg[1]) ? masked(g, e->arg[1], c) : llvm_expr(g, e->arg[1]);
    LLVMValueRef b = llvm_risky(g, e->arg[2]) && !is_there(e->arg[2])
                         ? masked(g, e->arg[2], LLVMBuildNot(g->b, c, ""))
                         : llvm_expr(g, e->arg[2]);
    return a && b ? LLVMBuildSelect(g->b, c, a, b, "") : NULL;
}

/* && and || evaluate their second operand only where it decides; without risk both are evaluated and
 * combined. */
static LLVMValueRef emit_logic(llvm_gen *g, const ir_expr *e)
{
    bool is_and = e->op == IR_AND;
    LLVMValueRef a = llvm_expr(g, e->arg[0]), b;
    if (!a)
        return NULL;
    if (!llvm_risky(g, e->arg[1]))
        b = llvm_expr(g, e->arg[1]);
    else if (e->dtype.lanes == 1)
        return is_and ? branch(g, a, e->arg[1], NULL, LLVMConstInt(g->i1, 0, 0))
                      : branch(g, a, NULL, e->arg[1], LLVMConstInt(g->i1, 1, 0));
    else
        b = masked(g, e->arg[1], is_and ? a : LLVMBuildNot(g->b, a, ""));
    if (!b)
        return NULL;
    return is_and ? LLVMBuildAnd(g->b, a, b, "") : LLVMBuildOr(g->b, a, b, "");
}

/* ---- vectors ---- */

/* base + stride * lane. On a 32-bit CPU the lanes have 32 bits where all values fit. */
static LLVMValueRef emit_ramp(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef base = llvm_expr(g, e->ramp.base), stride = llvm_expr(g, e->ramp.stride), steps[1024];
    int lanes = e->dtype.lanes;
    if (!base || !stride)
        return NULL;
    if (lanes > 1024)
        return BASE_BUG(g->cx, "a ramp of %d lanes", lanes);
    bool narrow = llvm_is_wide(e->dtype) && llvm_fits_narrow(g, llvm_range_of(g, e)) &&
                  llvm_fits_narrow(g, llvm_range_of(g, e->ramp.base)) &&
                  llvm_fits_narrow(g, llvm_range_of(g, e->ramp.stride));
    if (narrow) {
        base = llvm_cut(g, base);
        stride = llvm_cut(g, stride);
    }
    for (int i = 0; i < lanes; i++)
        steps[i] = LLVMConstInt(LLVMTypeOf(base), (unsigned long long)i, 0);
    LLVMValueRef offsets =
        LLVMBuildMul(g->b, llvm_splat(g, stride, lanes), LLVMConstVector(steps, (unsigned)lanes), "");
    LLVMValueRef all = LLVMBuildAdd(g->b, llvm_splat(g, base, lanes), offsets, "");
    return narrow ? llvm_extend(g, all) : all;
}

/* A vector as long as `lanes`, the new lanes undefined. */
static LLVMValueRef lengthen(llvm_gen *g, LLVMValueRef v, int lanes)
{
    int n = llvm_lanes(LLVMTypeOf(v));
    LLVMValueRef pick[1024];
    if (n == lanes)
        return v;
    if (LLVMGetTypeKind(LLVMTypeOf(v)) != LLVMVectorTypeKind)
        return LLVMBuildInsertElement(g->b, LLVMGetPoison(LLVMVectorType(LLVMTypeOf(v), (unsigned)lanes)), v,
                                      LLVMConstInt(g->i32, 0, 0), "");
    for (int i = 0; i < lanes; i++)
        pick[i] = i < n ? LLVMConstInt(g->i32, (unsigned long long)i, 0) : LLVMGetPoison(g->i32);
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(pick, (unsigned)lanes), "");
}

/* a's lanes, then b's. */
static LLVMValueRef concatenate(llvm_gen *g, LLVMValueRef a, int n, LLVMValueRef b, int m)
{
    LLVMValueRef pick[2048];
    int longest = n > m ? n : m;
    if (longest == 1) {
        LLVMValueRef pair = lengthen(g, a, 2);
        return LLVMBuildInsertElement(g->b, pair, b, LLVMConstInt(g->i32, 1, 0), "");
    }
    for (int i = 0; i < n + m; i++)
        pick[i] = LLVMConstInt(g->i32, (unsigned long long)(i < n ? i : longest + i - n), 0);
    return LLVMBuildShuffleVector(g->b, lengthen(g, a, longest), lengthen(g, b, longest),
                                  LLVMConstVector(pick, (unsigned)(n + m)), "");
}

static LLVMValueRef pick_lanes(llvm_gen *g, LLVMValueRef v, const int *pick, int lanes)
{
    LLVMValueRef index[1024];
    if (LLVMGetTypeKind(LLVMTypeOf(v)) != LLVMVectorTypeKind)
        return llvm_splat(g, v, lanes);
    if (lanes == 1)
        return LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, (unsigned long long)pick[0], 0), "");
    for (int i = 0; i < lanes; i++)
        index[i] = LLVMConstInt(g->i32, (unsigned long long)pick[i], 0);
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(index, (unsigned)lanes), "");
}

/* An operand of a shuffle. Its lanes are others than the result's, even where they are as many: of a mask
 * counts whether any is on. */
static LLVMValueRef shuffled(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef outer = g->mask, v;
    int outer_lanes = g->mask_lanes, scope = llvm_enter(g);

    if (!outer)
        return llvm_expr(g, e);
    g->mask = llvm_mask_for(g, 1);
    g->mask_lanes = 1;
    v = llvm_expr(g, e);
    g->mask = outer;
    g->mask_lanes = outer_lanes;
    llvm_leave(g, scope);
    return v;
}

/* LLVM shuffles two vectors at a time, so all operands are laid one behind the other first. */
static LLVMValueRef emit_shuffle(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef all = NULL;
    int n = 0;
    for (int i = 0; i < e->shuffle.n; i++) {
        LLVMValueRef v = shuffled(g, e->shuffle.vectors[i]);
        int lanes = e->shuffle.vectors[i]->dtype.lanes;
        if (!v)
            return NULL;
        if (n + lanes > 1024 || e->dtype.lanes > 1024)
            return BASE_BUG(g->cx, "a shuffle of more than 1024 lanes");
        all = all ? concatenate(g, all, n, v, lanes) : v;
        n += lanes;
    }
    return pick_lanes(g, all, e->shuffle.pick, e->dtype.lanes);
}

/* ---- the rest ---- */

static LLVMValueRef emit_var(llvm_gen *g, const ir_expr *e)
{
    const llvm_binding *v = base_map_get(&g->vars, e);
    if (!v)
        return BASE_BUG(g->cx, "variable '%s' is used outside its binding", e->var.name);
    return v->value;
}

static LLVMValueRef emit_let(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef value = llvm_expr(g, e->let.value);
    if (!value)
        return NULL;
    int scope = llvm_enter(g);
    llvm_bind(g, e->let.var, value, e->let.value, llvm_multiple(g, e->let.value),
              llvm_nonnegative(g, e->let.value));
    llvm_bind_range(g, e->let.var, llvm_range_of(g, e->let.value));
    LLVMValueRef body = llvm_expr(g, e->let.body);
    llvm_unbind(g, e->let.var);
    llvm_leave(g, scope);
    return body;
}

static LLVMValueRef emit_reinterpret(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef v = llvm_expr(g, e->arg[0]);
    return v ? LLVMBuildBitCast(g->b, v, llvm_type(g, e->dtype), "") : NULL;
}

static LLVMValueRef emit_cast(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef v = llvm_expr(g, e->arg[0]);
    if (!v)
        return NULL;
    base_dtype from = e->arg[0]->dtype;
    v = llvm_cast(g, from, base_dtype_lanes(e->dtype, from.lanes), v);
    return from.lanes == e->dtype.lanes ? v : llvm_splat(g, v, e->dtype.lanes);
}

/* One case per kind of expression. */
static LLVMValueRef emit(llvm_gen *g, const ir_expr *e)
{
    switch ((int)e->op) {
    case IR_INT:
    case IR_FLOAT: return llvm_constant(g, e->dtype, e);
    case IR_STRING: return LLVMBuildGlobalStringPtr(g->b, e->string, "text");
    case IR_VAR: return emit_var(g, e);
    case IR_LOAD: return llvm_load(g, e);
    case IR_CAST: return emit_cast(g, e);
    case IR_REINTERPRET: return emit_reinterpret(g, e);
    case IR_RAMP: return emit_ramp(g, e);
    case IR_BROADCAST: {
        LLVMValueRef v = llvm_expr(g, e->arg[0]);
        return v ? llvm_splat(g, v, e->dtype.lanes) : NULL;
    }
    case IR_SHUFFLE: return emit_shuffle(g, e);
    case IR_LET: return emit_let(g, e);
    case IR_CALL: return llvm_call(g, e);
    case IR_SELECT: return emit_select(g, e);
    case IR_AND:
    case IR_OR: return emit_logic(g, e);
    case IR_REDUCE: return BASE_BUG(g->cx, "a reduction reached code generation");
    default: return llvm_operation(g, e);
    }
}

/* The value of an expression; one that was computed before in this scope is used again. NULL after an error.
 */
LLVMValueRef llvm_expr(llvm_gen *g, const ir_expr *e)
{
    bool leaf = e->op == IR_INT || e->op == IR_FLOAT || e->op == IR_VAR;
    LLVMValueRef v = leaf ? NULL : recall(g, e);
    if (v || base_failed(g->cx))
        return v;
    bool index = g->index;
    /* parts of what wraps may have been put together anew: they may wrap too */
    g->index = index && !(e->has & IR_HAS_DATA);
    v = emit(g, e);
    g->index = index;
    if (v && !leaf)
        remember(g, e, v);
    return v;
}

/* In a scope of its own: what is known not to overflow here must not be taken for a wrapping value
 * elsewhere. */
LLVMValueRef llvm_index(llvm_gen *g, const ir_expr *e)
{
    if (g->index)
        return llvm_expr(g, e);
    int scope = llvm_enter(g);
    g->index = true;
    LLVMValueRef v = llvm_expr(g, e);
    g->index = false;
    llvm_leave(g, scope);
    return v;
}
