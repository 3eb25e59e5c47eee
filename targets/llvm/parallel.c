/* targets/llvm/parallel.c -- parallel loops: the body becomes a function of its own, called through the
 * environment.
 *
 *     for i in m..m+n parallel { S }     =>     closure = {what S uses from outside}
 *                                               status = env->parallel(env, body, &closure, n)
 *     body(env, closure, begin, end, worker):   for k in begin..end { S with i = m + k }
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

static void add_buffer(captures *c, const ir_buffer *b)
{
    if (!base_map_get(&c->g->places, b) || base_map_has(&c->seen, b))
        return;
    base_map_put(c->g->cx, &c->seen, b, b);
    base_push(c->g->cx, &c->buffers, b);
}

static bool in_expr(ir_walk *w, const ir_expr *e)
{
    captures *c = (captures *)w;
    if (e->op == IR_LOAD)
        add_buffer(c, e->load.buffer);
    if (e->op == IR_CALL)
        for (int i = 0; i < e->call.n_buffers; i++)
            add_buffer(c, e->call.buffer[i]);
    if (e->op == IR_VAR && base_map_get(&c->g->vars, e) && !base_map_has(&c->seen, e)) {
        base_map_put(c->g->cx, &c->seen, e, e);
        base_push(c->g->cx, &c->vars, e);
    }
    return true;
}

static bool in_stmt(ir_walk *w, const ir_stmt *s)
{
    if (s->kind == IR_STORE)
        add_buffer((captures *)w, s->store.buffer);
    return true;
}

static int count(const captures *c)
{
    return c->vars.n + c->buffers.n;
}

static LLVMValueRef outer_value(const captures *c, int i)
{
    if (i < c->vars.n)
        return ((llvm_binding *)base_map_get(&c->g->vars, c->vars.at[i]))->value;
    return ((llvm_place *)base_map_get(&c->g->places, c->buffers.at[i - c->vars.n]))->address;
}

static LLVMTypeRef closure_type(const captures *c)
{
    LLVMTypeRef *fields = base_array(c->g->cx, LLVMTypeRef, count(c));
    for (int i = 0; i < count(c); i++)
        fields[i] = LLVMTypeOf(outer_value(c, i));
    return LLVMStructTypeInContext(c->g->c, fields, (unsigned)count(c), 0);
}

static LLVMValueRef fill_closure(const captures *c, LLVMTypeRef type)
{
    llvm_gen *g = c->g;
    LLVMValueRef closure = llvm_entry_alloca(g, type, 64, "closure");
    for (int i = 0; i < count(c); i++)
        LLVMBuildStore(g->b, outer_value(c, i), LLVMBuildStructGEP2(g->b, type, closure, (unsigned)i, ""));
    return closure;
}

/* Binds everything captured again, in the body's own function. The maps of the outer function are still in
 * `outer`. */
static void open_closure(const captures *c, const llvm_gen *outer, LLVMTypeRef type)
{
    llvm_gen *g = c->g;
    LLVMValueRef closure = LLVMGetParam(g->f->function, 1);
    for (int i = 0; i < count(c); i++) {
        LLVMTypeRef field = LLVMStructGetTypeAtIndex(type, (unsigned)i);
        LLVMValueRef v =
            LLVMBuildLoad2(g->b, field, LLVMBuildStructGEP2(g->b, type, closure, (unsigned)i, ""), "");
        if (i < c->vars.n) {
            const llvm_binding *b = base_map_get(&outer->vars, c->vars.at[i]);
            LLVMValueRef value = LLVMIsConstant(b->value) ? b->value : v;
            llvm_bind(g, c->vars.at[i], value, NULL, b->multiple, b->nonnegative);
            llvm_bind_range(g, c->vars.at[i], b->range);
        } else {
            const ir_buffer *buffer = c->buffers.at[i - c->vars.n];
            llvm_place_buffer(g, buffer, v, ((llvm_place *)base_map_get(&outer->places, buffer))->align);
        }
    }
}

/* The body as a function of its own: what it uses from outside comes out of the closure, and the state of the
 * function around it is put back afterwards. */
static LLVMValueRef write_body(const captures *c, const ir_stmt *s, LLVMTypeRef closure)
{
    llvm_gen *g = c->g, outer = *g;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    llvm_function f;
    int64_t min;
    g->vars = (base_map){0};
    g->places = (base_map){0};
    LLVMValueRef function = llvm_begin_function(
        g, &f, base_format(g->cx, "%s.body.%d", g->symbol, g->n_bodies++), false, llvm_body_type(g));
    f.worker = LLVMGetParam(function, 4);
    open_closure(c, &outer, closure);
    int scope = llvm_enter(g);
    LLVMValueRef add = ir_is_value(s->loop.min, 0) ? NULL : llvm_index(g, s->loop.min);
    llvm_leave(g, scope);
    bool nonnegative = (ir_is_int(s->loop.min, &min) && min >= 0) || llvm_nonnegative(g, s->loop.min);
    llvm_walkers walkers;
    llvm_find_walkers(g, s, &walkers);
    llvm_counted l = {.begin = LLVMGetParam(function, 2),
                      .end = LLVMGetParam(function, 3),
                      .add = add,
                      .var = s->loop.var,
                      .nonnegative = nonnegative,
                      .range = llvm_loop_range(g, s->loop.min, s->loop.extent),
                      .walkers = &walkers};
    if (llvm_counts_narrow(g, ir_int(g->cx, 0), s->loop.extent)) {
        l.begin = llvm_cut(g, l.begin);
        l.end = llvm_cut(g, l.end);
    }
    llvm_loop(g, &l, s->loop.body);
    llvm_end_function(g);
    g->vars = outer.vars;
    g->places = outer.places;
    g->f = outer.f;
    LLVMPositionBuilderAtEnd(g->b, here);
    return function;
}

static LLVMValueRef call_parallel(llvm_gen *g, LLVMValueRef body, LLVMValueRef closure, LLVMValueRef n)
{
    LLVMTypeRef type = LLVMFunctionType(g->i32, (LLVMTypeRef[]){g->ptr, g->ptr, g->ptr, g->i64}, 4, 0);
    LLVMValueRef args[] = {g->f->env, body, closure, n};
    return LLVMBuildCall2(g->b, type, llvm_env_field(g, g->ptr, LLVM_ENV_PARALLEL), args, 4, "");
}

/* The call in place of the loop. A negative extent is no iteration. */
void llvm_parallel(llvm_gen *g, const ir_stmt *s)
{
    captures c = {.walk = {.cx = g->cx, .expr = in_expr, .stmt = in_stmt}, .g = g};
    int64_t extent;
    if (ir_is_int(s->loop.extent, &extent) && extent <= 0)
        return;
    int scope = llvm_enter(g);
    LLVMValueRef n = llvm_index(g, s->loop.extent);
    llvm_leave(g, scope);
    if (!n)
        return;
    ir_walk_stmt(&c.walk, s->loop.body);
    ir_walk_expr(&c.walk, s->loop.min);
    LLVMTypeRef type = closure_type(&c);
    LLVMValueRef closure = fill_closure(&c, type), body = write_body(&c, s, type);
    if (!LLVMIsConstant(n))
        n = llvm_intrinsic2(g, "llvm.smax", g->i64, n, LLVMConstInt(g->i64, 0, 0));
    LLVMValueRef status = call_parallel(g, body, closure, n);
    LLVMBasicBlockRef failed = llvm_block(g, "failed"), after = llvm_block(g, "after");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, status, LLVMConstInt(g->i32, 0, 0), ""), after,
                    failed);
    LLVMPositionBuilderAtEnd(g->b, failed);
    LLVMBuildStore(g->b, status, g->f->status);
    LLVMBuildBr(g->b, g->f->exit);
    LLVMPositionBuilderAtEnd(g->b, after);
}
