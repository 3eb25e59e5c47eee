/* targets/llvm/walkers.c -- pointers that walk through memory with an innermost loop.
 *
 *     for k in 0..n {                              p = &A[i*64], q = &A[i*64 + 4096]
 *       ... A[i*64 + k*4] ... A[i*64 + k*4 + 32]   =>    for k in 0..n { ... p[0] ... p[32] ...; p += 4 }
 *
 * Accesses of one buffer whose indices differ by a constant share a pointer: an induction variable for each
 * operand, and constant displacements, is what processors address best. LLVM's code generation has a strength
 * reduction of its own, which would make a pointer for each displacement of a large tile, more than there are
 * registers. LLVM can switch it off for a whole process only, in which others may use LLVM as well. So the
 * advanced pointer goes through an empty piece of assembly: it costs no instruction, and LLVM does not see
 * any more that the pointer advances by a constant.
 */
#include <string.h>

#include "targets/llvm/gen.h"

#include "ir/build.h"
#include "ir/walk.h"

/* ---- indices as sums ---- */

static bool add_terms(const ir_expr *expr, int64_t factor, llvm_sum *sum);

static bool add_product(const ir_expr *expr, int64_t factor, llvm_sum *sum)
{
    int64_t by;

    if (ir_is_int(expr->arg[1], &by) && !__builtin_mul_overflow(factor, by, &by))
        return add_terms(expr->arg[0], by, sum);
    return false;
}

/* Adds factor * expr; false where it has too many terms. */
static bool add_terms(const ir_expr *expr, int64_t factor, llvm_sum *sum)
{
    int64_t value;

    if (ir_is_int(expr, &value))
        return !__builtin_mul_overflow(value, factor, &value) &&
               !__builtin_add_overflow(sum->offset, value, &sum->offset);
    if (expr->op == IR_ADD || expr->op == IR_SUB)
        return add_terms(expr->arg[0], factor, sum) &&
               add_terms(expr->arg[1], expr->op == IR_ADD ? factor : -factor, sum);
    if (expr->op == IR_MUL && add_product(expr, factor, sum))
        return true;
    if (sum->n == LLVM_MOST_TERMS)
        return false;
    sum->term[sum->n] = expr;
    sum->factor[sum->n++] = factor;
    return true;
}

/* Takes the loop's variable out of the sum, as its step; false where it is not linear in it. */
static bool take_step(tec_context *cx, llvm_sum *sum, const ir_expr *var)
{
    int n = 0;

    sum->step = 0;
    for (int i = 0; i < sum->n; i++) {
        if (sum->term[i] == var) {
            sum->step += sum->factor[i];
            continue;
        }
        if (ir_uses_var(cx, sum->term[i], var))
            return false;
        sum->term[n] = sum->term[i];
        sum->factor[n++] = sum->factor[i];
    }
    sum->n = n;
    return true;
}

static bool read_sum(tec_context *cx, const ir_expr *index, const ir_expr *var, llvm_sum *sum)
{
    *sum = (llvm_sum){.n = 0};
    return index->dtype.lanes == 1 && index->dtype.bits == 64 && add_terms(index, 1, sum) &&
           take_step(cx, sum, var);
}

static bool same_but_offset(const llvm_sum *sum, const llvm_sum *self)
{
    bool same = sum->n == self->n && sum->step == self->step;

    for (int i = 0; same && i < sum->n; i++)
        same = sum->factor[i] == self->factor[i] && ir_same(sum->term[i], self->term[i]);
    return same;
}

/* ---- finding ---- */

typedef struct {
    ir_walk w;
    llvm_gen *g;
    llvm_walkers *found;
    bool innermost;
} search;

/* Everything in the sum has a value in front of the loop, and computing it there is safe. */
static bool is_ready(llvm_gen *gen, const llvm_sum *sum)
{
    for (int i = 0; i < sum->n; i++) {
        base_vec vars = {0};

        if (llvm_risky(gen, sum->term[i]))
            return false;
        ir_free_vars(gen->cx, sum->term[i], &vars);
        for (int k = 0; k < vars.n; k++)
            if (!base_map_get(&gen->vars, vars.at[k]))
                return false;
    }
    return true;
}

static llvm_walker *walker_of(llvm_walkers *all, const ir_buffer *buffer, const llvm_sum *sum)
{
    for (int i = 0; i < all->n; i++)
        if (all->at[i].buffer == buffer && same_but_offset(&all->at[i].start, sum))
            return &all->at[i];
    return NULL;
}

/* Gives the access a walker unless one that differs by a constant is there already. Only indices that are
 * linear in the loop, with everything else computed before it, can have one. */
static void add_access(search *self, const ir_buffer *buffer, const ir_expr *index)
{
    const ir_expr *base = index;
    int64_t stride;
    llvm_sum s;

    if (self->found->n == LLVM_MOST_WALKERS || !base_map_get(&self->g->places, buffer))
        return;
    if (index->dtype.lanes > 1 && (!llvm_as_ramp(self->g, index, &base, &stride) || stride > 1 || stride < 0))
        return;
    if (!read_sum(self->g->cx, base, self->found->var, &s) || s.step == 0 ||
        walker_of(self->found, buffer, &s) || !is_ready(self->g, &s))
        return;
    self->found->at[self->found->n++] = (llvm_walker){.buffer = buffer, .start = s};
}

static bool see_expr(ir_walk *walk, const ir_expr *expr)
{
    if (expr->op == IR_LOAD && expr->load.n == 1)
        add_access((search *)walk, expr->load.buffer, expr->load.index[0]);
    return true;
}

static bool see_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    search *f = (search *)walk;

    f->innermost = f->innermost && stmt->kind != IR_FOR;
    if (stmt->kind == IR_STORE && stmt->store.n == 1)
        add_access(f, stmt->store.buffer, stmt->store.index[0]);
    return f->innermost;
}

void llvm_find_walkers(llvm_gen *gen, const ir_stmt *loop, llvm_walkers *out)
{
    *out = (llvm_walkers){.var = loop->loop.var};
    search f = {
        .w = {.expr = see_expr, .stmt = see_stmt, .cx = gen->cx}, .g = gen, .found = out, .innermost = true};

    ir_walk_stmt(&f.w, loop->loop.body);
    if (!f.innermost)
        out->n = 0;
}

/* ---- walking ---- */

static LLVMValueRef step_by(llvm_gen *gen, const llvm_walker *walker, LLVMValueRef pointer,
                            LLVMValueRef elements)
{
    return LLVMBuildGEP2(gen->b, llvm_memory_type(gen, walker->buffer->dtype), pointer, &elements, 1, "");
}

static bool holds_data(const llvm_sum *sum)
{
    for (int i = 0; i < sum->n; i++)
        if (sum->term[i]->has & IR_HAS_DATA)
            return true;
    return false;
}

/* The element that a walker starts from. Index arithmetic does not overflow, sums with data may. */
static LLVMValueRef start_of(llvm_gen *gen, const llvm_sum *sum, LLVMValueRef begin)
{
    bool wraps = holds_data(sum);
    LLVMValueRef (*add)(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, const char *) =
        wraps ? LLVMBuildAdd : LLVMBuildNSWAdd;
    LLVMValueRef (*mul)(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, const char *) =
        wraps ? LLVMBuildMul : LLVMBuildNSWMul;
    LLVMValueRef at = mul(gen->b, begin, llvm_int_like(gen, gen->i64, sum->step), "");

    for (int k = 0; k < sum->n; k++) {
        LLVMValueRef v = llvm_index(gen, sum->term[k]);

        if (!v)
            break;
        at = add(gen->b, at, mul(gen->b, v, llvm_int_like(gen, gen->i64, sum->factor[k]), ""), "");
    }
    return add(gen->b, at, llvm_int_like(gen, gen->i64, sum->offset), "");
}

void llvm_start_walkers(llvm_gen *gen, llvm_walkers *all, LLVMValueRef begin)
{
    int scope = llvm_enter(gen);

    for (int i = 0; i < all->n; i++) {
        llvm_walker *walker = &all->at[i];
        const llvm_place *place = base_map_get(&gen->places, walker->buffer);

        walker->pointer = step_by(gen, walker, place->address, start_of(gen, &walker->start, begin));
    }
    llvm_leave(gen, scope);
}

void llvm_enter_walkers(llvm_gen *gen, llvm_walkers *all, LLVMBasicBlockRef before)
{
    for (int i = 0; i < all->n; i++) {
        LLVMValueRef phi = LLVMBuildPhi(gen->b, gen->ptr, all->at[i].buffer->name);

        LLVMAddIncoming(phi, &all->at[i].pointer, &before, 1);
        all->at[i].pointer = phi;
    }
    all->outer = gen->walkers;
    gen->walkers = all;
}

void llvm_advance_walkers(llvm_gen *gen, llvm_walkers *all)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(gen->b);

    gen->walkers = all->outer;
    for (int i = 0; i < all->n; i++) {
        LLVMValueRef next = step_by(gen, &all->at[i], all->at[i].pointer,
                                    llvm_int_like(gen, gen->i64, all->at[i].start.step));

        LLVMAddIncoming(all->at[i].pointer, &next, &here, 1);
    }
}

/* The value that the pointer `phi` gets from its predecessor i, hidden where it is the advanced pointer. */
static void hide_advance(LLVMBuilderRef b, LLVMValueRef phi, unsigned i)
{
    LLVMValueRef next = LLVMGetIncomingValue(phi, i);
    LLVMTypeRef pointer = LLVMTypeOf(phi), type = LLVMFunctionType(pointer, &pointer, 1, false);
    static const char same_register[] = "=r,0";

    if (!LLVMIsAGetElementPtrInst(next) || LLVMGetOperand(next, 0) != phi)
        return;
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(phi, i)));
    LLVMValueRef nothing = LLVMGetInlineAsm(type, "", 0, same_register, strlen(same_register), false, false,
                                            LLVMInlineAsmDialectATT, false);
    LLVMSetOperand(phi, i, LLVMBuildCall2(b, type, nothing, &next, 1, ""));
}

/* For a module whose passes have run: to them the pointers are what they are. */
void llvm_hide_walkers(LLVMModuleRef module)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));

    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef at = LLVMGetFirstBasicBlock(f); at; at = LLVMGetNextBasicBlock(at)) {
            LLVMValueRef phi = LLVMGetFirstInstruction(at);

            for (; phi && LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
                if (LLVMGetTypeKind(LLVMTypeOf(phi)) == LLVMPointerTypeKind)
                    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
                        hide_advance(b, phi, i);
        }
    LLVMDisposeBuilder(b);
}

LLVMValueRef llvm_walker_at(llvm_gen *gen, const ir_buffer *buffer, const ir_expr *index)
{
    llvm_sum s;

    if (!gen->walkers || gen->walkers->n == 0 || !read_sum(gen->cx, index, gen->walkers->var, &s))
        return NULL;
    const llvm_walker *w = walker_of(gen->walkers, buffer, &s);
    return w ? step_by(gen, w, w->pointer, llvm_int_like(gen, gen->i64, s.offset - w->start.offset)) : NULL;
}
