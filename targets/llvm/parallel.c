/* targets/llvm/parallel.c -- parallel loops: the body becomes a function of its own, called through the
 * environment.
 *
 *     for i in m..m+n parallel { S }     =>     closure = {what S uses from outside}
 *                                               status = env->parallel(env, body, &closure, n)
 *     body(env, closure, begin, end, worker):   for k in begin..end { S with i = m + k }
 *
 * A loop with the note "alternate" runs its slices backwards in every other call of the kernel: what the
 * call before has read last is still in the caches, and is read first.
 *
 *     for x.0 in 0..16 parallel @alternate(1) { B[x.0, ..] }     0 1 2 .. 15, then 15 14 .. 0, then 0 1 ..
 *
 * The pool then takes the slices of each thread from the last one on (runtime/pool.h).
 *
 * Constants need no place in the closure. A status other than 0 leaves the caller at once.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"
#include "ir/walk.h"

/* What the body uses from outside: variables first, then buffers. */
typedef struct {
    ir_walk walk;
    llvm_gen *g;
    base_vec vars, buffers;
    base_map seen;
} captures;

static void add_buffer(captures *self, const ir_buffer *buffer)
{
    if (!base_map_get(&self->g->places, buffer) || base_map_has(&self->seen, buffer))
        return;
    base_map_put(self->g->cx, &self->seen, buffer, buffer);
    base_push(self->g->cx, &self->buffers, buffer);
}

static bool in_expr(ir_walk *walk, const ir_expr *expr)
{
    captures *c = (captures *)walk;
    if (expr->op == IR_LOAD)
        add_buffer(c, expr->load.buffer);
    if (expr->op == IR_CALL)
        for (int i = 0; i < expr->call.n_buffers; i++)
            add_buffer(c, expr->call.buffer[i]);
    if (expr->op == IR_VAR && base_map_get(&c->g->vars, expr) && !base_map_has(&c->seen, expr)) {
        base_map_put(c->g->cx, &c->seen, expr, expr);
        base_push(c->g->cx, &c->vars, expr);
    }
    return true;
}

static bool in_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt->kind == IR_STORE)
        add_buffer((captures *)walk, stmt->store.buffer);
    return true;
}

static int count(const captures *self)
{
    return self->vars.n + self->buffers.n;
}

static LLVMValueRef outer_value(const captures *self, int i)
{
    if (i < self->vars.n)
        return ((llvm_binding *)base_map_get(&self->g->vars, self->vars.at[i]))->value;
    return ((llvm_place *)base_map_get(&self->g->places, self->buffers.at[i - self->vars.n]))->address;
}

static LLVMTypeRef closure_type(const captures *self)
{
    LLVMTypeRef *fields = base_array(self->g->cx, LLVMTypeRef, count(self));
    for (int i = 0; i < count(self); i++)
        fields[i] = LLVMTypeOf(outer_value(self, i));
    return LLVMStructTypeInContext(self->g->c, fields, (unsigned)count(self), 0);
}

static LLVMValueRef fill_closure(const captures *self, LLVMTypeRef type)
{
    llvm_gen *g = self->g;
    LLVMValueRef closure = llvm_entry_alloca(g, type, 64, "closure");
    for (int i = 0; i < count(self); i++)
        LLVMBuildStore(g->b, outer_value(self, i), LLVMBuildStructGEP2(g->b, type, closure, (unsigned)i, ""));
    return closure;
}

/* Binds everything captured again, in the body's own function. The maps of the outer function are still in
 * `outer`. */
static void open_closure(const captures *self, const llvm_gen *outer, LLVMTypeRef type)
{
    llvm_gen *gen = self->g;
    LLVMValueRef closure = LLVMGetParam(gen->f->function, 1);
    for (int i = 0; i < count(self); i++) {
        LLVMTypeRef field = LLVMStructGetTypeAtIndex(type, (unsigned)i);
        LLVMValueRef v =
            LLVMBuildLoad2(gen->b, field, LLVMBuildStructGEP2(gen->b, type, closure, (unsigned)i, ""), "");
        if (i < self->vars.n) {
            const llvm_binding *binding = base_map_get(&outer->vars, self->vars.at[i]);
            LLVMValueRef value = LLVMIsConstant(binding->value) ? binding->value : v;
            llvm_bind(gen, self->vars.at[i], value, NULL, binding->multiple, binding->nonnegative);
            llvm_bind_range(gen, self->vars.at[i], binding->range);
        } else {
            const ir_buffer *buffer = self->buffers.at[i - self->vars.n];
            llvm_place_buffer(gen, buffer, v, ((llvm_place *)base_map_get(&outer->places, buffer))->align);
        }
    }
}

/* Whether this call runs the loop backwards; NULL: none does. */
static LLVMValueRef runs_backwards(llvm_gen *gen, const ir_stmt *loop)
{
    if (!ir_note_get(loop->loop.notes, "alternate"))
        return NULL;
    LLVMValueRef turn = llvm_env_field(gen, gen->i64, LLVM_ENV_TURN);
    return LLVMBuildTrunc(gen->b, turn, LLVMInt1TypeInContext(gen->c), "");
}

/* The body as a function of its own: what it uses from outside comes out of the closure, and the state of the
 * function around it is put back afterwards. */
static LLVMValueRef write_body(const captures *self, const ir_stmt *stmt, LLVMTypeRef closure)
{
    llvm_gen *gen = self->g, outer = *gen;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(gen->b);
    llvm_function f;
    int64_t min;
    gen->vars = gen->places = gen->halves = (base_map){0};
    LLVMValueRef function =
        llvm_begin_function(gen, &f, base_format(gen->cx, "%s.body.%d", gen->symbol, gen->n_bodies++), false,
                            llvm_body_type(gen));
    f.worker = LLVMGetParam(function, 4);
    open_closure(self, &outer, closure);
    int scope = llvm_enter(gen);
    LLVMValueRef add = ir_is_value(stmt->loop.min, 0) ? NULL : llvm_index(gen, stmt->loop.min);
    llvm_leave(gen, scope);
    bool nonnegative = (ir_is_int(stmt->loop.min, &min) && min >= 0) || llvm_nonnegative(gen, stmt->loop.min);
    llvm_walkers walkers;
    LLVMValueRef backwards = runs_backwards(gen, stmt);
    if (backwards)
        walkers = (llvm_walkers){0}; /* they only advance */
    else
        llvm_find_walkers(gen, stmt, &walkers);
    llvm_counted l = {.begin = LLVMGetParam(function, 2),
                      .end = LLVMGetParam(function, 3),
                      .add = add,
                      .backwards = backwards,
                      .var = stmt->loop.var,
                      .nonnegative = nonnegative,
                      .range = llvm_loop_range(gen, stmt->loop.min, stmt->loop.extent),
                      .walkers = &walkers};
    if (llvm_counts_narrow(gen, ir_int(gen->cx, 0), stmt->loop.extent)) {
        l.begin = llvm_cut(gen, l.begin);
        l.end = llvm_cut(gen, l.end);
    }
    llvm_loop(gen, &l, stmt->loop.body);
    llvm_end_function(gen);
    gen->vars = outer.vars;
    gen->places = outer.places;
    gen->f = outer.f;
    LLVMPositionBuilderAtEnd(gen->b, here);
    return function;
}

static LLVMValueRef call_parallel(llvm_gen *gen, LLVMValueRef body, LLVMValueRef closure, LLVMValueRef count)
{
    LLVMTypeRef type =
        LLVMFunctionType(gen->i32, (LLVMTypeRef[]){gen->ptr, gen->ptr, gen->ptr, gen->i64}, 4, 0);
    LLVMValueRef args[] = {gen->f->env, body, closure, count};
    return LLVMBuildCall2(gen->b, type, llvm_env_field(gen, gen->ptr, LLVM_ENV_PARALLEL), args, 4, "");
}

/* The call in place of the loop. A negative extent is no iteration. */
void llvm_parallel(llvm_gen *gen, const ir_stmt *stmt)
{
    captures c = {.walk = {.cx = gen->cx, .expr = in_expr, .stmt = in_stmt}, .g = gen};
    int64_t extent;
    if (ir_is_int(stmt->loop.extent, &extent) && extent <= 0)
        return;
    int scope = llvm_enter(gen);
    LLVMValueRef n = llvm_index(gen, stmt->loop.extent);
    llvm_leave(gen, scope);
    if (!n)
        return;
    ir_walk_stmt(&c.walk, stmt->loop.body);
    ir_walk_expr(&c.walk, stmt->loop.min);
    LLVMTypeRef type = closure_type(&c);
    LLVMValueRef closure = fill_closure(&c, type), body = write_body(&c, stmt, type);
    if (!LLVMIsConstant(n))
        n = llvm_intrinsic2(gen, "llvm.smax", gen->i64, n, LLVMConstInt(gen->i64, 0, 0));
    LLVMValueRef status = call_parallel(gen, body, closure, n);
    LLVMBasicBlockRef failed = llvm_block(gen, "failed"), after = llvm_block(gen, "after");
    LLVMBuildCondBr(gen->b, LLVMBuildICmp(gen->b, LLVMIntEQ, status, LLVMConstInt(gen->i32, 0, 0), ""), after,
                    failed);
    LLVMPositionBuilderAtEnd(gen->b, failed);
    LLVMBuildStore(gen->b, status, gen->f->status);
    LLVMBuildBr(gen->b, gen->f->exit);
    LLVMPositionBuilderAtEnd(gen->b, after);
}
