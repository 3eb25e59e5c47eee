/* targets/llvm/stmt.c -- statements: loops, conditions, lets, allocations, assertions.
 *
 * A serial loop tests at its end; where it may have no iteration, a test stands before it. Nothing is
 * evaluated twice for that.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"

/* The program's blocks keep these bytes on the stack at most. */
enum { MOST_STACK = 64 * 1024 };

/* The loop's variable where its counter is v. */
static LLVMValueRef variable_at(llvm_gen *g, const llvm_counted *l, LLVMValueRef v)
{
    LLVMValueRef wide = LLVMTypeOf(v) == g->i64 ? v : llvm_extend(g, v);
    return l->add ? LLVMBuildNSWAdd(g->b, wide, l->add, "") : wide;
}

/* The body once for each value of the counter. */
void llvm_loop(llvm_gen *g, const llvm_counted *l, const ir_stmt *body)
{
    LLVMValueRef begin = l->begin, end = l->end;
    llvm_start_walkers(g, l->walkers, variable_at(g, l, begin));
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), loop = llvm_block(g, "loop"),
                      after = llvm_block(g, "after");
    if (l->runs)
        LLVMBuildBr(g->b, loop);
    else
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, begin, end, ""), loop, after);
    LLVMPositionBuilderAtEnd(g->b, loop);
    LLVMValueRef i = LLVMBuildPhi(g->b, LLVMTypeOf(begin), "i");
    llvm_enter_walkers(g, l->walkers, before);
    llvm_bind(g, l->var, variable_at(g, l, i), NULL, 1, l->nonnegative);
    llvm_bind_range(g, l->var, l->range);
    llvm_stmt(g, body);
    llvm_unbind(g, l->var);
    llvm_advance_walkers(g, l->walkers);
    LLVMValueRef next = LLVMBuildNSWAdd(g->b, i, llvm_int_like(g, LLVMTypeOf(i), 1), "");
    LLVMBasicBlockRef last = LLVMGetInsertBlock(g->b);
    /* Not "less than": LLVM would compare i with end - 1, and keep i beside its successor for that. */
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, next, end, ""), loop, after);
    LLVMAddIncoming(i, (LLVMValueRef[]){begin, next}, (LLVMBasicBlockRef[]){before, last}, 2);
    LLVMPositionBuilderAtEnd(g->b, after);
}

/* A loop of one iteration is only a binding of its variable. */
static void emit_serial(llvm_gen *g, const ir_stmt *s)
{
    int64_t extent = -1, min;
    bool constant = ir_is_int(s->loop.extent, &extent), starts = ir_is_int(s->loop.min, &min) && min >= 0;
    if (constant && extent <= 0)
        return;
    int scope = llvm_enter(g);
    LLVMValueRef begin = llvm_index(g, s->loop.min), n = llvm_index(g, s->loop.extent);
    llvm_leave(g, scope);
    if (!begin || !n)
        return;
    bool nonnegative = starts || llvm_nonnegative(g, s->loop.min);
    llvm_range range = llvm_loop_range(g, s->loop.min, s->loop.extent);
    if (constant && extent == 1) {
        llvm_bind(g, s->loop.var, begin, s->loop.min, llvm_multiple(g, s->loop.min), nonnegative);
        llvm_bind_range(g, s->loop.var, range);
        llvm_stmt(g, s->loop.body);
        llvm_unbind(g, s->loop.var);
        return;
    }
    llvm_walkers walkers;
    llvm_find_walkers(g, s, &walkers);
    if (llvm_counts_narrow(g, s->loop.min, s->loop.extent)) {
        begin = llvm_cut(g, begin);
        n = llvm_cut(g, n);
    }
    llvm_counted l = {.begin = begin,
                      .end = LLVMBuildNSWAdd(g->b, begin, n, ""),
                      .runs = constant,
                      .var = s->loop.var,
                      .nonnegative = nonnegative,
                      .range = range,
                      .walkers = &walkers};
    llvm_loop(g, &l, s->loop.body);
}

static void emit_for(llvm_gen *g, const ir_stmt *s)
{
    if (s->loop.how == IR_SERIAL)
        emit_serial(g, s);
    else if (s->loop.how == IR_PARALLEL && !g->f->worker)
        llvm_parallel(g, s);
    else
        BASE_BUG(g->cx, "a loop over '%s' that is %s reached code generation%s", s->loop.var->var.name,
                 ir_how_text(s->loop.how), g->f->worker ? " inside a parallel loop" : "");
}

/* The condition's values are forgotten behind it, since they were computed in a block that need not run
 * again. */
static void emit_if(llvm_gen *g, const ir_stmt *s)
{
    int scope = llvm_enter(g);
    LLVMValueRef c = llvm_expr(g, s->branch.cond);
    llvm_leave(g, scope);
    if (!c)
        return;
    LLVMBasicBlockRef yes = llvm_block(g, "then"), no = s->branch.otherwise ? llvm_block(g, "else") : NULL,
                      after = llvm_block(g, "after");
    LLVMBuildCondBr(g->b, c, yes, no ? no : after);
    LLVMPositionBuilderAtEnd(g->b, yes);
    llvm_stmt(g, s->branch.then);
    LLVMBuildBr(g->b, after);
    if (no) {
        LLVMPositionBuilderAtEnd(g->b, no);
        llvm_stmt(g, s->branch.otherwise);
        LLVMBuildBr(g->b, after);
    }
    LLVMPositionBuilderAtEnd(g->b, after);
}

/* The body with the variable bound, and what is known of its value. */
static void emit_let(llvm_gen *g, const ir_stmt *s)
{
    int scope = llvm_enter(g);
    LLVMValueRef v = llvm_expr(g, s->let.value);
    llvm_leave(g, scope);
    if (!v)
        return;
    /* Seeing through a load would read it again, perhaps after a store. */
    const ir_expr *transparent = llvm_risky(g, s->let.value) ? NULL : s->let.value;
    llvm_bind(g, s->let.var, v, transparent, llvm_multiple(g, s->let.value),
              llvm_nonnegative(g, s->let.value));
    llvm_bind_range(g, s->let.var, llvm_range_of(g, s->let.value));
    llvm_stmt(g, s->let.body);
    llvm_unbind(g, s->let.var);
}

/* What does not hold hands its message to the environment and leaves the function through its exit. */
void llvm_check(llvm_gen *g, LLVMValueRef condition, const char *message)
{
    LLVMBasicBlockRef failed = llvm_block(g, "failed"), after = llvm_block(g, "holds");
    LLVMBuildCondBr(g->b, condition, after, failed);
    LLVMPositionBuilderAtEnd(g->b, failed);
    LLVMValueRef args[] = {g->f->env, LLVMBuildGlobalStringPtr(g->b, message, "message")};
    LLVMTypeRef type = LLVMFunctionType(g->nothing, (LLVMTypeRef[]){g->ptr, g->ptr}, 2, 0);
    LLVMBuildCall2(g->b, type, llvm_env_field(g, g->ptr, LLVM_ENV_FAIL), args, 2, "");
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, TEC_INVALID, 0), g->f->status);
    LLVMBuildBr(g->b, g->f->exit);
    LLVMPositionBuilderAtEnd(g->b, after);
}

static void emit_assert(llvm_gen *g, const ir_stmt *s)
{
    int scope = llvm_enter(g);
    LLVMValueRef c = llvm_expr(g, s->check.cond);
    llvm_leave(g, scope);
    if (c)
        llvm_check(g, c, s->check.message);
}

/* ---- allocations ---- */

static bool constant_size(const ir_buffer *b, int64_t *n)
{
    int64_t extent;
    *n = 1;
    for (int i = 0; i < b->n; i++) {
        if (!ir_is_int(b->shape[i], &extent) || extent < 0 || (extent && *n > INT64_MAX / extent))
            return false;
        *n *= extent;
    }
    return true;
}

static LLVMValueRef on_stack(llvm_gen *g, const ir_stmt *s)
{
    const ir_buffer *b = s->allocate.buffer;
    int64_t n;
    if (!constant_size(b, &n) || n * base_dtype_bytes(b->dtype) > MOST_STACK)
        return BASE_BUG(g->cx, "local buffer '%s' has no small constant size", b->name);
    return llvm_entry_alloca(g, LLVMArrayType2(llvm_memory_type(g, b->dtype), (uint64_t)(n ? n : 1)), 64,
                             b->name);
}

/* `offset` bytes into the caller's workspace, or into the worker's own. */
static LLVMValueRef in_workspace(llvm_gen *g, const ir_buffer *b, const ir_expr *offset, bool own)
{
    int scope = llvm_enter(g);
    LLVMValueRef at = llvm_index(g, offset),
                 area = llvm_env_field(g, g->ptr, own ? LLVM_ENV_THREAD_WORKSPACE : LLVM_ENV_WORKSPACE);
    llvm_leave(g, scope);
    if (!at)
        return NULL;
    if (own && g->f->worker) {
        LLVMValueRef w = LLVMBuildSExt(g->b, g->f->worker, g->i64, "");
        LLVMValueRef stride = llvm_env_field(g, g->i64, LLVM_ENV_THREAD_STRIDE);
        at = LLVMBuildNSWAdd(g->b, at, LLVMBuildNSWMul(g->b, w, stride, ""), "");
    }
    return LLVMBuildInBoundsGEP2(g->b, g->i8, area, &at, 1, b->name);
}

static LLVMValueRef allocation(llvm_gen *g, const ir_stmt *s)
{
    const ir_expr *shared = ir_note_get(s->allocate.notes, "workspace"),
                  *own = ir_note_get(s->allocate.notes, "thread_workspace");
    if (shared || own)
        return in_workspace(g, s->allocate.buffer, shared ? shared : own, !shared);
    if (s->allocate.buffer->scope != IR_LOCAL)
        return BASE_BUG(g->cx, "buffer '%s' has no place in a workspace", s->allocate.buffer->name);
    return on_stack(g, s);
}

static void emit_allocate(llvm_gen *g, const ir_stmt *s)
{
    const ir_buffer *b = s->allocate.buffer;
    LLVMValueRef address = allocation(g, s);
    if (!address)
        return;
    llvm_place_buffer(g, b, address, 64);
    llvm_stmt(g, s->allocate.body);
    base_map_put(g->cx, &g->places, b, NULL);
}

/* ---- all ---- */

/* Does nothing after an error, so callers need not look. Values computed for one statement are forgotten
 * after it. */
void llvm_stmt(llvm_gen *g, const ir_stmt *s)
{
    int scope;
    if (base_failed(g->cx))
        return;
    switch (s->kind) {
    case IR_FOR: emit_for(g, s); return;
    case IR_STORE:
        scope = llvm_enter(g);
        llvm_store(g, s);
        llvm_leave(g, scope);
        return;
    case IR_LET_STMT: emit_let(g, s); return;
    case IR_ALLOCATE: emit_allocate(g, s); return;
    case IR_IF: emit_if(g, s); return;
    case IR_SEQ:
        for (int i = 0; i < s->seq.n; i++)
            llvm_stmt(g, s->seq.stmt[i]);
        return;
    case IR_ASSERT: emit_assert(g, s); return;
    case IR_ATTRIBUTE: llvm_stmt(g, s->attribute.body); return;
    case IR_EVALUATE:
        scope = llvm_enter(g);
        llvm_expr(g, s->value);
        llvm_leave(g, scope);
        return;
    case IR_BLOCK:
    case IR_UPDATE: BASE_BUG(g->cx, "a block or reduction step reached code generation"); return;
    }
}
