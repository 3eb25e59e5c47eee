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

static bool add_terms(const ir_expr *e, int64_t factor, llvm_sum *s);

static bool add_product(const ir_expr *e, int64_t factor, llvm_sum *s)
{
    int64_t by;

    if (ir_is_int(e->arg[1], &by) && !__builtin_mul_overflow(factor, by, &by))
        return add_terms(e->arg[0], by, s);
    return false;
}

/* Adds factor * e; false where it has too many terms. */
static bool add_terms(const ir_expr *e, int64_t factor, llvm_sum *s)
{
    int64_t value;

    if (ir_is_int(e, &value))
        return !__builtin_mul_overflow(value, factor, &value) &&
               !__builtin_add_overflow(s->offset, value, &s->offset);
    if (e->op == IR_ADD || e->op == IR_SUB)
        return add_terms(e->arg[0], factor, s) && add_terms(e->arg[1], e->op == IR_ADD ? factor : -factor, s);
    if (e->op == IR_MUL && add_product(e, factor, s))
        return true;
    if (s->n == LLVM_MOST_TERMS)
        return false;
    s->term[s->n] = e;
    s->factor[s->n++] = factor;
    return true;
}

/* Takes the loop's variable out of the sum, as its step; false where it is not linear in it. */
static bool take_step(tec_context *cx, llvm_sum *s, const ir_expr *var)
{
    int n = 0;

    s->step = 0;
    for (int i = 0; i < s->n; i++) {
        if (s->term[i] == var) {
            s->step += s->factor[i];
            continue;
        }
        if (ir_uses_var(cx, s->term[i], var))
            return false;
        s->term[n] = s->term[i];
        s->factor[n++] = s->factor[i];
    }
    s->n = n;
    return true;
}

static bool read_sum(tec_context *cx, const ir_expr *index, const ir_expr *var, llvm_sum *s)
{
    *s = (llvm_sum){.n = 0};
    return index->dtype.lanes == 1 && index->dtype.bits == 64 && add_terms(index, 1, s) &&
           take_step(cx, s, var);
}

static bool same_but_offset(const llvm_sum *a, const llvm_sum *b)
{
    bool same = a->n == b->n && a->step == b->step;

    for (int i = 0; same && i < a->n; i++)
        same = a->factor[i] == b->factor[i] && ir_same(a->term[i], b->term[i]);
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
static bool is_ready(llvm_gen *g, const llvm_sum *s)
{
    for (int i = 0; i < s->n; i++) {
        base_vec vars = {0};

        if (llvm_risky(g, s->term[i]))
            return false;
        ir_free_vars(g->cx, s->term[i], &vars);
        for (int k = 0; k < vars.n; k++)
            if (!base_map_get(&g->vars, vars.at[k]))
                return false;
    }
    return true;
}

static llvm_walker *walker_of(llvm_walkers *all, const ir_buffer *b, const llvm_sum *s)
{
    for (int i = 0; i < all->n; i++)
        if (all->at[i].buffer == b && same_but_offset(&all->at[i].start, s))
            return &all->at[i];
    return NULL;
}

/* Gives the access a walker unless one that differs by a constant is there already. Only indices that are
 * linear in the loop, with everything else computed before it, can have one. */
static void add_access(search *f, const ir_buffer *b, const ir_expr *index)
{
    const ir_expr *base = index;
    int64_t stride;
    llvm_sum s;

    if (f->found->n == LLVM_MOST_WALKERS || !base_map_get(&f->g->places, b))
        return;
    if (index->dtype.lanes > 1 && (!llvm_as_ramp(f->g, index, &base, &stride) || stride > 1 || stride < 0))
        return;
    if (!read_sum(f->g->cx, base, f->found->var, &s) || s.step == 0 || walker_of(f->found, b, &s) ||
        !is_ready(f->g, &s))
        return;
    f->found->at[f->found->n++] = (llvm_walker){.buffer = b, .start = s};
}

static bool see_expr(ir_walk *w, const ir_expr *e)
{
    if (e->op == IR_LOAD && e->load.n == 1)
        add_access((search *)w, e->load.buffer, e->load.index[0]);
    return true;
}

static bool see_stmt(ir_walk *w, const ir_stmt *s)
{
    search *f = (search *)w;

    f->innermost = f->innermost && s->kind != IR_FOR;
    if (s->kind == IR_STORE && s->store.n == 1)
        add_access(f, s->store.buffer, s->store.index[0]);
    return f->innermost;
}

void llvm_find_walkers(llvm_gen *g, const ir_stmt *loop, llvm_walkers *out)
{
    *out = (llvm_walkers){.var = loop->loop.var};
    search f = {
        .w = {.expr = see_expr, .stmt = see_stmt, .cx = g->cx}, .g = g, .found = out, .innermost = true};

    ir_walk_stmt(&f.w, loop->loop.body);
    if (!f.innermost)
        out->n = 0;
}

/* ---- walking ---- */

static LLVMValueRef step_by(llvm_gen *g, const llvm_walker *w, LLVMValueRef pointer, LLVMValueRef elements)
{
    return LLVMBuildGEP2(g->b, llvm_memory_type(g, w->buffer->dtype), pointer, &elements, 1, "");
}

static bool holds_data(const llvm_sum *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->term[i]->has & IR_HAS_DATA)
            return true;
    return false;
}

/* The element that a walker starts from. Index arithmetic does not overflow, sums with data may. */
static LLVMValueRef start_of(llvm_gen *g, const llvm_sum *s, LLVMValueRef begin)
{
    bool wraps = holds_data(s);
    LLVMValueRef (*add)(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, const char *) =
        wraps ? LLVMBuildAdd : LLVMBuildNSWAdd;
    LLVMValueRef (*mul)(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, const char *) =
        wraps ? LLVMBuildMul : LLVMBuildNSWMul;
    LLVMValueRef at = mul(g->b, begin, llvm_int_like(g, g->i64, s->step), "");

    for (int k = 0; k < s->n; k++) {
        LLVMValueRef v = llvm_index(g, s->term[k]);

        if (!v)
            break;
        at = add(g->b, at, mul(g->b, v, llvm_int_like(g, g->i64, s->factor[k]), ""), "");
    }
    return add(g->b, at, llvm_int_like(g, g->i64, s->offset), "");
}

void llvm_start_walkers(llvm_gen *g, llvm_walkers *all, LLVMValueRef begin)
{
    int scope = llvm_enter(g);

    for (int i = 0; i < all->n; i++) {
        llvm_walker *w = &all->at[i];
        const llvm_place *p = base_map_get(&g->places, w->buffer);

        w->pointer = step_by(g, w, p->address, start_of(g, &w->start, begin));
    }
    llvm_leave(g, scope);
}

void llvm_enter_walkers(llvm_gen *g, llvm_walkers *all, LLVMBasicBlockRef before)
{
    for (int i = 0; i < all->n; i++) {
        LLVMValueRef phi = LLVMBuildPhi(g->b, g->ptr, all->at[i].buffer->name);

        LLVMAddIncoming(phi, &all->at[i].pointer, &before, 1);
        all->at[i].pointer = phi;
    }
    all->outer = g->walkers;
    g->walkers = all;
}

void llvm_advance_walkers(llvm_gen *g, llvm_walkers *all)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);

    g->walkers = all->outer;
    for (int i = 0; i < all->n; i++) {
        LLVMValueRef next =
            step_by(g, &all->at[i], all->at[i].pointer, llvm_int_like(g, g->i64, all->at[i].start.step));

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
void llvm_hide_walkers(LLVMModuleRef m)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(m));

    for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef at = LLVMGetFirstBasicBlock(f); at; at = LLVMGetNextBasicBlock(at)) {
            LLVMValueRef phi = LLVMGetFirstInstruction(at);

            for (; phi && LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
                if (LLVMGetTypeKind(LLVMTypeOf(phi)) == LLVMPointerTypeKind)
                    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
                        hide_advance(b, phi, i);
        }
    LLVMDisposeBuilder(b);
}

LLVMValueRef llvm_walker_at(llvm_gen *g, const ir_buffer *b, const ir_expr *index)
{
    llvm_sum s;

    if (!g->walkers || g->walkers->n == 0 || !read_sum(g->cx, index, g->walkers->var, &s))
        return NULL;
    const llvm_walker *w = walker_of(g->walkers, b, &s);
    return w ? step_by(g, w, w->pointer, llvm_int_like(g, g->i64, s.offset - w->start.offset)) : NULL;
}
