/* targets/llvm/stmt.c -- statements: loops, conditions, lets, allocations, assertions.
 *
 * A serial loop tests at its end; where it may have no iteration, a test stands before it. Nothing is
 * evaluated twice for that.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"

/* The program's blocks keep these bytes on the stack at most. */
enum { MOST_STACK = 64 * 1024 };

/* The loop's variable where its counter is value. The counter always runs upwards; a loop that runs backwards
 * takes for the counter's value i its mirror image: begin + (end - 1 - i). */
static LLVMValueRef variable_at(llvm_gen *gen, const llvm_counted *counted, LLVMValueRef value)
{
    if (counted->backwards) {
        LLVMValueRef last =
                         LLVMBuildNSWSub(gen->b, counted->end, llvm_int_like(gen, LLVMTypeOf(value), 1), ""),
                     left = LLVMBuildNSWSub(gen->b, last, value, ""),
                     mirrored = LLVMBuildNSWAdd(gen->b, counted->begin, left, "");

        value = LLVMBuildSelect(gen->b, counted->backwards, mirrored, value, "");
    }
    LLVMValueRef wide = LLVMTypeOf(value) == gen->i64 ? value : llvm_extend(gen, value);
    return counted->add ? LLVMBuildNSWAdd(gen->b, wide, counted->add, "") : wide;
}

/* The body once for each value of the counter. */
void llvm_loop(llvm_gen *gen, const llvm_counted *counted, const ir_stmt *body)
{
    LLVMValueRef begin = counted->begin, end = counted->end;
    llvm_start_walkers(gen, counted->walkers, variable_at(gen, counted, begin));
    LLVMBasicBlockRef before = LLVMGetInsertBlock(gen->b), loop = llvm_block(gen, "loop"),
                      after = llvm_block(gen, "after");
    if (counted->runs)
        LLVMBuildBr(gen->b, loop);
    else
        LLVMBuildCondBr(gen->b, LLVMBuildICmp(gen->b, LLVMIntSLT, begin, end, ""), loop, after);
    LLVMPositionBuilderAtEnd(gen->b, loop);
    LLVMValueRef i = LLVMBuildPhi(gen->b, LLVMTypeOf(begin), "i");
    llvm_enter_walkers(gen, counted->walkers, before);
    llvm_bind(gen, counted->var, variable_at(gen, counted, i), NULL, 1, counted->nonnegative);
    llvm_bind_range(gen, counted->var, counted->range);
    llvm_stmt(gen, body);
    llvm_unbind(gen, counted->var);
    llvm_advance_walkers(gen, counted->walkers);
    LLVMValueRef next = LLVMBuildNSWAdd(gen->b, i, llvm_int_like(gen, LLVMTypeOf(i), 1), "");
    LLVMBasicBlockRef last = LLVMGetInsertBlock(gen->b);
    /* Not "less than": LLVM would compare i with end - 1, and keep i beside its successor for that. */
    LLVMBuildCondBr(gen->b, LLVMBuildICmp(gen->b, LLVMIntNE, next, end, ""), loop, after);
    LLVMAddIncoming(i, (LLVMValueRef[]){begin, next}, (LLVMBasicBlockRef[]){before, last}, 2);
    LLVMPositionBuilderAtEnd(gen->b, after);
}

/* A loop of one iteration is only a binding of its variable. */
static void emit_serial(llvm_gen *gen, const ir_stmt *stmt)
{
    int64_t extent = -1, min;
    bool constant = ir_is_int(stmt->loop.extent, &extent),
         starts = ir_is_int(stmt->loop.min, &min) && min >= 0;
    if (constant && extent <= 0)
        return;
    int scope = llvm_enter(gen);
    LLVMValueRef begin = llvm_index(gen, stmt->loop.min), n = llvm_index(gen, stmt->loop.extent);
    llvm_leave(gen, scope);
    if (!begin || !n)
        return;
    bool nonnegative = starts || llvm_nonnegative(gen, stmt->loop.min);
    llvm_range range = llvm_loop_range(gen, stmt->loop.min, stmt->loop.extent);
    if (constant && extent == 1) {
        llvm_bind(gen, stmt->loop.var, begin, stmt->loop.min, llvm_multiple(gen, stmt->loop.min),
                  nonnegative);
        llvm_bind_range(gen, stmt->loop.var, range);
        llvm_stmt(gen, stmt->loop.body);
        llvm_unbind(gen, stmt->loop.var);
        return;
    }
    llvm_walkers walkers;
    llvm_find_walkers(gen, stmt, &walkers);
    if (llvm_counts_narrow(gen, stmt->loop.min, stmt->loop.extent)) {
        begin = llvm_cut(gen, begin);
        n = llvm_cut(gen, n);
    }
    llvm_counted l = {.begin = begin,
                      .end = LLVMBuildNSWAdd(gen->b, begin, n, ""),
                      .runs = constant,
                      .var = stmt->loop.var,
                      .nonnegative = nonnegative,
                      .range = range,
                      .walkers = &walkers};
    llvm_loop(gen, &l, stmt->loop.body);
}

static void emit_for(llvm_gen *gen, const ir_stmt *stmt)
{
    if (stmt->loop.how == IR_SERIAL)
        emit_serial(gen, stmt);
    else if (stmt->loop.how == IR_PARALLEL && !gen->f->worker)
        llvm_parallel(gen, stmt);
    else
        BASE_BUG(gen->cx, "a loop over '%s' that is %s reached code generation%s", stmt->loop.var->var.name,
                 ir_how_text(stmt->loop.how), gen->f->worker ? " inside a parallel loop" : "");
}

/* The condition's values are forgotten behind it, since they were computed in a block that need not run
 * again. */
static void emit_if(llvm_gen *gen, const ir_stmt *stmt)
{
    int scope = llvm_enter(gen);
    LLVMValueRef c = llvm_expr(gen, stmt->branch.cond);
    llvm_leave(gen, scope);
    if (!c)
        return;
    LLVMBasicBlockRef yes = llvm_block(gen, "then"),
                      no = stmt->branch.otherwise ? llvm_block(gen, "else") : NULL,
                      after = llvm_block(gen, "after");
    LLVMBuildCondBr(gen->b, c, yes, no ? no : after);
    LLVMPositionBuilderAtEnd(gen->b, yes);
    llvm_stmt(gen, stmt->branch.then);
    LLVMBuildBr(gen->b, after);
    if (no) {
        LLVMPositionBuilderAtEnd(gen->b, no);
        llvm_stmt(gen, stmt->branch.otherwise);
        LLVMBuildBr(gen->b, after);
    }
    LLVMPositionBuilderAtEnd(gen->b, after);
}

/* The body with the variable bound, and what is known of its value. */
static void emit_let(llvm_gen *gen, const ir_stmt *stmt)
{
    int scope = llvm_enter(gen);
    LLVMValueRef v = llvm_expr(gen, stmt->let.value);
    llvm_leave(gen, scope);
    if (!v)
        return;
    /* Seeing through a load would read it again, perhaps after a store. */
    const ir_expr *transparent = llvm_risky(gen, stmt->let.value) ? NULL : stmt->let.value;
    llvm_bind(gen, stmt->let.var, v, transparent, llvm_multiple(gen, stmt->let.value),
              llvm_nonnegative(gen, stmt->let.value));
    llvm_bind_range(gen, stmt->let.var, llvm_range_of(gen, stmt->let.value));
    llvm_stmt(gen, stmt->let.body);
    llvm_unbind(gen, stmt->let.var);
}

/* What does not hold hands its message to the environment and leaves the function through its exit. */
void llvm_check(llvm_gen *gen, LLVMValueRef condition, const char *message)
{
    LLVMBasicBlockRef failed = llvm_block(gen, "failed"), after = llvm_block(gen, "holds");
    LLVMBuildCondBr(gen->b, condition, after, failed);
    LLVMPositionBuilderAtEnd(gen->b, failed);
    LLVMValueRef args[] = {gen->f->env, LLVMBuildGlobalStringPtr(gen->b, message, "message")};
    LLVMTypeRef type = LLVMFunctionType(gen->nothing, (LLVMTypeRef[]){gen->ptr, gen->ptr}, 2, 0);
    LLVMBuildCall2(gen->b, type, llvm_env_field(gen, gen->ptr, LLVM_ENV_FAIL), args, 2, "");
    LLVMBuildStore(gen->b, LLVMConstInt(gen->i32, TEC_INVALID, 0), gen->f->status);
    LLVMBuildBr(gen->b, gen->f->exit);
    LLVMPositionBuilderAtEnd(gen->b, after);
}

static void emit_assert(llvm_gen *gen, const ir_stmt *stmt)
{
    int scope = llvm_enter(gen);
    LLVMValueRef c = llvm_expr(gen, stmt->check.cond);
    llvm_leave(gen, scope);
    if (c)
        llvm_check(gen, c, stmt->check.message);
}

/* ---- allocations ---- */

static bool constant_size(const ir_buffer *buffer, int64_t *size)
{
    int64_t extent;
    *size = 1;
    for (int i = 0; i < buffer->n; i++) {
        if (!ir_is_int(buffer->shape[i], &extent) || extent < 0 || (extent && *size > INT64_MAX / extent))
            return false;
        *size *= extent;
    }
    return true;
}

static LLVMValueRef on_stack(llvm_gen *gen, const ir_stmt *stmt)
{
    const ir_buffer *b = stmt->allocate.buffer;
    int64_t n;
    if (!constant_size(b, &n) || n * base_dtype_bytes(b->dtype) > MOST_STACK)
        return BASE_BUG(gen->cx, "local buffer '%s' has no small constant size", b->name);
    return llvm_entry_alloca(gen, LLVMArrayType2(llvm_memory_type(gen, b->dtype), (uint64_t)(n ? n : 1)), 64,
                             b->name);
}

/* `offset` bytes into the caller's workspace, or into the worker's own. */
static LLVMValueRef in_workspace(llvm_gen *gen, const ir_buffer *buffer, const ir_expr *offset, bool own)
{
    int scope = llvm_enter(gen);
    LLVMValueRef at = llvm_index(gen, offset),
                 area = llvm_env_field(gen, gen->ptr, own ? LLVM_ENV_THREAD_WORKSPACE : LLVM_ENV_WORKSPACE);
    llvm_leave(gen, scope);
    if (!at)
        return NULL;
    if (own && gen->f->worker) {
        LLVMValueRef w = LLVMBuildSExt(gen->b, gen->f->worker, gen->i64, "");
        LLVMValueRef stride = llvm_env_field(gen, gen->i64, LLVM_ENV_THREAD_STRIDE);
        at = LLVMBuildNSWAdd(gen->b, at, LLVMBuildNSWMul(gen->b, w, stride, ""), "");
    }
    return LLVMBuildInBoundsGEP2(gen->b, gen->i8, area, &at, 1, buffer->name);
}

static LLVMValueRef allocation(llvm_gen *gen, const ir_stmt *stmt)
{
    const ir_expr *shared = ir_note_get(stmt->allocate.notes, "workspace"),
                  *own = ir_note_get(stmt->allocate.notes, "thread_workspace");
    if (shared || own)
        return in_workspace(gen, stmt->allocate.buffer, shared ? shared : own, !shared);
    if (stmt->allocate.buffer->scope != IR_LOCAL)
        return BASE_BUG(gen->cx, "buffer '%s' has no place in a workspace", stmt->allocate.buffer->name);
    return on_stack(gen, stmt);
}

static void emit_allocate(llvm_gen *gen, const ir_stmt *stmt)
{
    const ir_buffer *b = stmt->allocate.buffer;
    LLVMValueRef address = allocation(gen, stmt);
    if (!address)
        return;
    llvm_place_buffer(gen, b, address, 64);
    llvm_stmt(gen, stmt->allocate.body);
    base_map_put(gen->cx, &gen->places, b, NULL);
}

/* ---- all ---- */

/* Does nothing after an error, so callers need not look. Values computed for one statement are forgotten
 * after it. */
void llvm_stmt(llvm_gen *gen, const ir_stmt *stmt)
{
    int scope;
    if (base_failed(gen->cx))
        return;
    switch (stmt->kind) {
    case IR_FOR: emit_for(gen, stmt); return;
    case IR_STORE:
        scope = llvm_enter(gen);
        llvm_store(gen, stmt);
        llvm_leave(gen, scope);
        return;
    case IR_LET_STMT: emit_let(gen, stmt); return;
    case IR_ALLOCATE: emit_allocate(gen, stmt); return;
    case IR_IF: emit_if(gen, stmt); return;
    case IR_SEQ:
        for (int i = 0; i < stmt->seq.n; i++)
            llvm_stmt(gen, stmt->seq.stmt[i]);
        return;
    case IR_ASSERT: emit_assert(gen, stmt); return;
    case IR_ATTRIBUTE: llvm_stmt(gen, stmt->attribute.body); return;
    case IR_EVALUATE:
        scope = llvm_enter(gen);
        llvm_expr(gen, stmt->value);
        llvm_leave(gen, scope);
        return;
    case IR_BLOCK:
    case IR_UPDATE: BASE_BUG(gen->cx, "a block or reduction step reached code generation"); return;
    }
}
