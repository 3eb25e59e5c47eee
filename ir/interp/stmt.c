/* ir/interp/stmt.c -- statements of the interpreter: how each kind is built into a code, and how one strand
 * runs it.
 *
 * A strand is one thread of control: the whole program, or one thread of a group on a GPU. Building resolves
 * names to slots once, so that running a loop looks nothing up. Blocks are in ir/interp/block.c, loops whose
 * iterations run side by side in ir/interp/thread.c.
 */
#include "ir/build.h"
#include "ir/calls.h"
#include "ir/interp/build.h"
#include "ir/walk.h"

#include <string.h>

static int at_least(int a, int b)
{
    return a > b ? a : b;
}

/* A write that does not depend on a thread index is done by the first thread along that axis alone. */
bool ir_exec_is_left_out(const ir_exec *exec, const exec_code *code)
{
    if (!code->missing || !exec->frame)
        return false;
    for (int axis = 0; axis < 3; axis++)
        if ((code->missing >> axis & 1) && exec->frame->coord[axis])
            return true;
    return false;
}

/* ---- running ---- */

/* The variable wraps as its type does, so a loop of narrow type behaves as compiled code would. */
static void run_serial(ir_exec *exec, const exec_code *code)
{
    int64_t min = exec_run(exec, code->loop.min, 0).i, n = exec_run(exec, code->loop.extent, 0).i;
    ir_value *var = &exec->var[code->loop.slot];

    for (int64_t i = 0; i < n && !exec->failed; i++) {
        var->i = ir_wrap(code->loop.t, (uint64_t)min + (uint64_t)i);
        exec_step(exec, code->loop.body);
    }
}

/* Nothing is written after a failure, whether it came from the mask, the value or the place. */
static void run_scalar_store(ir_exec *exec, const exec_code *code)
{
    const exec_access *to = code->store.to;
    ir_value v;
    int64_t at;

    if (ir_exec_is_left_out(exec, code) || (to->mask && !exec_run(exec, to->mask, 0).i))
        return;
    v = exec_run(exec, code->store.value, 0);
    at = ir_exec_locate(exec, to, 0, true);
    if (at < 0 || exec->failed)
        return;
    if (code->store.async)
        ir_exec_store_later(exec, to, at, v);
    else
        ir_exec_store(exec, to, at, 0, v);
}

static void check_twice(ir_exec *exec, const exec_code *code, int lane)
{
    for (int j = 0; j < lane; j++)
        if (code->store.at[j] >= 0 && code->store.at[j] == code->store.at[lane])
            ir_exec_twice(exec, code->store.to, lane, j);
}

/* All lanes are loaded before any is stored, those too that are masked off: a machine computes the vector as
 * a whole. */
static void run_vector_store(ir_exec *exec, const exec_code *code)
{
    const exec_access *to = code->store.to;
    int64_t *at = code->store.at;

    if (ir_exec_is_left_out(exec, code))
        return;
    for (int lane = 0; lane < code->store.lanes && !exec->failed; lane++) {
        at[lane] = -1;
        exec->unused = to->mask && !exec_run(exec, to->mask, lane).i;
        code->store.values[lane] = exec_run(exec, code->store.value, lane);
        if (exec->unused)
            continue;
        at[lane] = ir_exec_locate(exec, to, lane, true);
        check_twice(exec, code, lane);
    }
    exec->unused = false;
    for (int lane = 0; lane < code->store.lanes && !exec->failed; lane++)
        if (at[lane] >= 0)
            ir_exec_store(exec, to, at[lane], lane, code->store.values[lane]);
}

/* All old values are read before any new one is stored: the components of a tuple depend on each other. */
static void run_update_lane(ir_exec *exec, const exec_code *code, int lane)
{
    ir_value v[EXEC_MAX_TUPLE];
    int n = code->update.n;

    for (int j = 0; j < n; j++)
        v[j] = exec_run(exec, code->update.source[j], lane);
    for (int j = 0; j < n; j++) {
        exec->var[code->update.y[j]] = v[j];
        exec->var[code->update.x[j]] = ir_exec_load(exec, code->update.to[j], lane);
    }
    for (int j = 0; j < n; j++)
        v[j] = exec_run(exec, code->update.result[j], 0);
    for (int j = 0; j < n && !exec->failed; j++)
        ir_exec_store(exec, code->update.to[j], ir_exec_locate(exec, code->update.to[j], lane, true), lane,
                      v[j]);
}

static void run_update(ir_exec *exec, const exec_code *code)
{
    if (ir_exec_is_left_out(exec, code))
        return;
    for (int lane = 0; lane < code->update.lanes && !exec->failed; lane++)
        run_update_lane(exec, code, lane);
}

/* All lanes are computed at once here, so none is due. */
void ir_exec_bind_let(ir_exec *exec, const exec_code *code)
{
    int lanes = code->let.lanes, slot = code->let.slot;

    for (int i = 0; i < lanes; i++) {
        exec->var[slot + i] = exec_run(exec, code->let.value, i);
        if (lanes > 1)
            exec->var[slot + lanes + i].i = 0;
    }
}

static void run_let(ir_exec *exec, const exec_code *code)
{
    if (ir_exec_is_left_out(exec, code))
        return;
    ir_exec_bind_let(exec, code);
    if (!exec->failed)
        exec_step(exec, code->let.body);
}

/* The memory is gone after the body, and an outer buffer of the same name is visible again. */
static void run_allocate(ir_exec *exec, const exec_code *code)
{
    int slot = code->allocate.buffer->slot;
    exec_view *saved = exec->view[slot];
    base_mark mark = base_arena_mark(exec->mem);
    int64_t bytes = exec->bytes;

    exec->view[slot] = ir_exec_new_view(exec, code->allocate.buffer);
    if (!exec->failed)
        exec_step(exec, code->allocate.body);
    exec->view[slot] = saved;
    exec->bytes = bytes;
    base_arena_release(exec->mem, mark);
}

static void run_if(ir_exec *exec, const exec_code *code)
{
    if (ir_exec_is_left_out(exec, code))
        return;
    const exec_code *next =
        exec_run(exec, code->branch.cond, 0).i ? code->branch.then : code->branch.otherwise;

    if (next && !exec->failed)
        exec_step(exec, next);
}

static void run_seq(ir_exec *exec, const exec_code *code)
{
    for (int i = 0; i < code->seq.n && !exec->failed; i++)
        exec_step(exec, code->seq.code[i]);
}

static void run_assert(ir_exec *exec, const exec_code *code)
{
    if (!ir_exec_is_left_out(exec, code) && !exec_run(exec, code->check.cond, 0).i && !exec->failed)
        ir_exec_fail(exec, TEC_INVALID, code->s->loc, "assertion failed: %s", code->check.message);
}

static void run_attribute(ir_exec *exec, const exec_code *code)
{
    exec_step(exec, code->inner);
}

static void run_evaluate(ir_exec *exec, const exec_code *code)
{
    if (ir_exec_is_left_out(exec, code))
        return;
    for (int lane = 0; lane < code->evaluate.value->lanes && !exec->failed; lane++)
        exec_run(exec, code->evaluate.value, lane);
}

/* ---- building ---- */

/* A code of cost 1 for statement stmt in the present scope. */
exec_code *ir_exec_new_code(exec_builder *builder, const ir_stmt *stmt, exec_do *run)
{
    exec_code *code = base_new(builder->exec->mem, exec_code);

    code->run = run;
    code->kind = stmt->kind;
    code->s = stmt;
    code->scope = builder->scope;
    code->cost = 1;
    code->bound = (uint8_t)builder->bound;
    return code;
}

/* code is made of these: run in step if one of them is, left out by the threads that leave out all of
 * them. */
static void hold(exec_code *code, const exec_code *const *inside, int n)
{
    for (int i = 0; i < n && inside[i]; i++) {
        code->lockstep |= inside[i]->lockstep;
        code->missing = i == 0 ? inside[i]->missing : code->missing & inside[i]->missing;
    }
}

/* The names and slots that messages show values of. */
const exec_scope *ir_exec_push_scope(exec_builder *builder, int kind, const char *name, int count,
                                     const ir_expr *const *var)
{
    exec_scope *scope = base_new(builder->exec->mem, exec_scope);
    const char **names = base_array(builder->exec->mem, const char *, count);
    int *slots = base_array(builder->exec->mem, int, count);

    for (int i = 0; i < count; i++) {
        names[i] = var[i]->var.name;
        slots[i] = ir_exec_slot(builder, var[i]);
    }
    *scope = (exec_scope){
        .up = builder->scope, .kind = kind, .name = name, .n = count, .var = names, .slot = slots};
    return builder->scope = scope;
}

const exec_code *ir_exec_seq(exec_builder *builder, const ir_stmt *stmt, const base_vec *codes)
{
    exec_code *c = ir_exec_new_code(builder, stmt, run_seq);

    c->kind = IR_SEQ;
    c->seq.code = (const exec_code *const *)codes->at;
    c->seq.n = codes->n;
    hold(c, c->seq.code, c->seq.n);
    return c;
}

/* How a kind of loop runs when one strand meets it. */
static exec_do *pick_loop(ir_how how)
{
    switch (how) {
    case IR_SERIAL:
    case IR_UNROLLED: return run_serial;
    case IR_PARALLEL:
    case IR_VECTORISED:
    case IR_VTHREAD: return ir_exec_run_parallel;
    case IR_THREAD_X:
    case IR_THREAD_Y:
    case IR_THREAD_Z: return ir_exec_run_thread_loop;
    case IR_BLOCK_X:
    case IR_BLOCK_Y:
    case IR_BLOCK_Z:
    case IR_N_HOWS: break;
    }
    return ir_exec_run_block_loop;
}

/* Its bounds stand outside it: with the scope and path of the loop's surroundings. */
exec_code *ir_exec_wrap_loop(exec_builder *builder, const ir_stmt *loop, const exec_code *body)
{
    exec_code *code = ir_exec_new_code(builder, loop, pick_loop(loop->loop.how));

    code->loop.min = ir_exec_expr(builder, loop->loop.min);
    code->loop.extent = ir_exec_expr(builder, loop->loop.extent);
    code->loop.slot = ir_exec_slot(builder, loop->loop.var);
    code->loop.t = loop->loop.var->dtype;
    code->loop.how = loop->loop.how;
    code->loop.body = body;
    code->loop.launch = builder->launch && builder->launch->root == loop ? builder->launch : NULL;
    hold(code, &body, 1);
    return code;
}

/* The body of a loop, with the loop on the path (for inits that move out to it) and among the places of
 * buffers. */
static const exec_code *build_body(exec_builder *builder, const ir_stmt *stmt, base_vec *before)
{
    exec_path path = {.up = builder->path, .s = stmt, .before = before};
    exec_place *place = base_new(builder->exec->mem, exec_place);
    const exec_code *body;

    *place = (exec_place){
        .up = builder->place, .loop = stmt, .depth = builder->place ? builder->place->depth + 1 : 1};
    ir_exec_push_scope(builder, EXEC_IN_LOOP, stmt->loop.var->var.name, 1, &stmt->loop.var);
    builder->path = &path;
    builder->place = place;
    builder->bound |= ir_exec_axis_bit(stmt->loop.how);
    body = ir_exec_build(builder, stmt->loop.body);
    builder->path = path.up;
    builder->place = place->up;
    return body;
}

/* Inits that must run before this loop were collected in `before` while its body was built. */
static const exec_code *build_for(exec_builder *builder, const ir_stmt *stmt)
{
    const exec_scope *scope = builder->scope;
    exec_launch *launch = builder->launch;
    int bound = builder->bound;
    base_vec before = {0};
    const exec_code *body;
    exec_code *code;

    if (!launch)
        builder->launch = ir_exec_find_launch(builder, stmt);
    body = build_body(builder, stmt, &before);
    builder->scope = scope;
    builder->bound = bound;
    code = ir_exec_wrap_loop(builder, stmt, body);
    builder->launch = launch;
    if (!before.n)
        return code;
    base_push(builder->exec->mem, &before, code);
    return ir_exec_seq(builder, stmt, &before);
}

/* How many elements the access touches. */
static int lanes_of(const exec_access *access)
{
    int lanes = access && access->mask ? access->mask->lanes : 1;

    for (int d = 0; access && d < access->n; d++)
        lanes = at_least(lanes, access->index[d]->lanes);
    return lanes;
}

static void set_missing(exec_builder *builder, exec_code *code, const ir_buffer *written)
{
    if (builder->launch && written->scope != IR_LOCAL)
        code->missing = (uint8_t)(builder->launch->axes & ~builder->bound);
}

typedef struct {
    ir_walk walk;
    bool local;          /* a call writes local memory: all threads do it */
    const ir_buffer *to; /* what else one writes; NULL: nothing */
} call_walk;

/* What a call writes: memory that threads share, or each thread's own. */
static bool note_call(ir_walk *walk, const ir_expr *expr)
{
    call_walk *c = (call_walk *)walk;

    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++) {
        const ir_buffer *buffer = ir_call_writes(expr, i) ? expr->call.buffer[i] : NULL;

        c->local |= buffer && buffer->scope == IR_LOCAL;
        c->to = buffer && buffer->scope != IR_LOCAL ? buffer : c->to;
    }
    return true;
}

/* A call that writes shared memory is made by one thread, unless it writes to the thread's own memory as
 * well. */
static void set_missing_of_calls(exec_builder *builder, exec_code *code, const ir_expr *expr)
{
    call_walk w = {.walk = {.expr = note_call, .kinds = IR_KIND_ACCESS, .cx = builder->exec->mem}};

    ir_walk_expr(&w.walk, expr);
    if (w.to && !w.local)
        set_missing(builder, code, w.to);
}

/* A store of several lanes evaluates all of them before it writes the first. Its cost counts the lanes. */
static const exec_code *build_store(exec_builder *builder, const ir_stmt *stmt)
{
    exec_code *code = ir_exec_new_code(builder, stmt, run_scalar_store);

    builder->nodes = (base_map){0};
    code->store.to = ir_exec_access(builder, stmt->store.buffer, stmt->store.index, stmt->store.n,
                                    stmt->store.mask, stmt->loc);
    code->store.value = ir_exec_expr(builder, stmt->store.value);
    if (builder->exec->failed)
        return code;
    code->store.lanes = at_least(lanes_of(code->store.to), code->store.value->lanes);
    code->cost +=
        ir_exec_cost(code->store.value) * code->store.lanes + code->store.lanes / 8 * (code->store.lanes / 8);
    set_missing(builder, code, stmt->store.buffer);
    code->store.async = builder->async;
    builder->exec->copies_async |= builder->async;
    if (builder->async && (code->store.lanes > 1 || stmt->store.buffer->scope != IR_SHARED))
        ir_exec_fail(builder->exec, TEC_INVALID, stmt->loc,
                     "asynchronous copies put single elements into shared memory, not into '%s'",
                     stmt->store.buffer->name);
    if (code->store.lanes > 1) {
        code->run = run_vector_store;
        code->store.at = base_array(builder->exec->mem, int64_t, code->store.lanes);
        code->store.values = base_array(builder->exec->mem, ir_value, code->store.lanes);
    }
    return code;
}

/* Vectorised loops and thread axes over which a declared reduction may meet itself: those that do not choose
 * its target. */
static void find_across(exec_builder *builder, const ir_stmt *stmt, exec_access *access)
{
    base_map choosing = {0};

    for (int d = 0; d < stmt->update.n; d++)
        ir_exec_feeders(builder, &choosing, stmt->update.index[d], false);
    for (const exec_path *path = builder->path; path; path = path->up) {
        if (path->s->kind != IR_FOR || base_map_has(&choosing, path->s->loop.var))
            continue;
        access->threads |= (uint8_t)ir_exec_axis_bit(path->s->loop.how);
        if (path->s->loop.how == IR_VECTORISED)
            base_map_put(builder->exec->mem, &access->across, path->s->loop.var, path->s->loop.var);
    }
    access->reduces = stmt->update.combiner->reorders;
}

/* The accesses of an update, with the vector loops that reduce into one element. */
static exec_access *const *build_targets(exec_builder *builder, const ir_stmt *stmt)
{
    int n = stmt->update.combiner->n;
    exec_access **to = base_array(builder->exec->mem, exec_access *, n);

    for (int j = 0; j < n && !builder->exec->failed; j++) {
        builder->nodes = (base_map){0};
        to[j] = ir_exec_access(builder, stmt->update.buffer[j], stmt->update.index, stmt->update.n, NULL,
                               stmt->loc);
        if (to[j])
            find_across(builder, stmt, to[j]);
    }
    return to;
}

static const int *number(exec_builder *builder, const ir_expr *const *var, int n)
{
    int *slot = base_array(builder->exec->mem, int, n);

    for (int j = 0; j < n; j++)
        slot[j] = ir_exec_slot(builder, var[j]);
    return slot;
}

/* x are the old values and y the new ones, as the combiner's formula calls them. */
static const exec_code *build_update(exec_builder *builder, const ir_stmt *stmt)
{
    exec_code *code = ir_exec_new_code(builder, stmt, run_update);
    const ir_combiner *how = stmt->update.combiner;

    if (how->n > EXEC_MAX_TUPLE) {
        ir_exec_fail(builder->exec, TEC_UNSUPPORTED, stmt->loc,
                     "'%s' combines %d values, the interpreter takes %d", how->name, how->n, EXEC_MAX_TUPLE);
        return code;
    }
    code->update.n = how->n;
    code->update.to = build_targets(builder, stmt);
    code->update.source = ir_exec_exprs(builder, stmt->update.source, how->n);
    code->update.x = number(builder, how->x, how->n);
    code->update.y = number(builder, how->y, how->n);
    code->update.result = ir_exec_exprs(builder, how->result, how->n);
    for (int j = 0; j < how->n && !builder->exec->failed; j++) {
        code->update.lanes = at_least(code->update.lanes,
                                      at_least(lanes_of(code->update.to[j]), code->update.source[j]->lanes));
        code->cost += ir_exec_cost(code->update.source[j]) + ir_exec_cost(code->update.result[j]);
    }
    set_missing(builder, code, stmt->update.buffer[0]);
    return code;
}

exec_code *ir_exec_wrap_let(exec_builder *builder, const ir_stmt *stmt, const ir_expr *var,
                            const ir_expr *value, const exec_code *body)
{
    exec_code *code = ir_exec_new_code(builder, stmt, run_let);

    code->kind = IR_LET_STMT;
    code->let.value = ir_exec_expr(builder, value);
    code->let.slot = ir_exec_slot(builder, var);
    code->let.lanes = var->dtype.lanes;
    code->let.body = body;
    code->cost += ir_exec_cost(code->let.value);
    hold(code, &body, 1);
    return code;
}

static bool is_call_of(const ir_expr *expr, const char *name)
{
    return expr->op == IR_CALL && strcmp(expr->call.name, name) == 0;
}

/* let v = shuffle(value, mask or lane): the threads of a warp exchange values, so they must come to this
 * place together (lockstep). */
static const exec_code *build_shuffle(exec_builder *builder, const ir_stmt *stmt, const exec_code *body)
{
    const ir_expr *expr = stmt->let.value;
    exec_code *code = ir_exec_new_code(builder, stmt, ir_exec_run_shuffle);

    bool named = is_call_of(expr, IR_CALL_SHUFFLE_FROM);
    if (expr->call.n != 2 || expr->call.n_buffers ||
        !base_dtype_same(expr->call.arg[0]->dtype, expr->dtype) || expr->dtype.lanes != 1)
        ir_exec_fail(builder->exec, TEC_INVALID, stmt->loc, "a shuffle takes a scalar and a thread");
    else if (named ? !base_dtype_same(expr->call.arg[1]->dtype, BASE_I64)
                   : !ir_is_int(expr->call.arg[1], &code->let.mask) || code->let.mask < 0)
        ir_exec_fail(builder->exec, TEC_INVALID, stmt->loc,
                     named ? "the thread of a shuffle is an index"
                           : "a shuffle takes a scalar and a constant");
    else if (named)
        code->let.lane = ir_exec_expr(builder, expr->call.arg[1]);
    code->lockstep = true;
    code->let.shuffle = true;
    code->let.value = ir_exec_expr(builder, expr->call.arg[0]);
    code->let.slot = ir_exec_slot(builder, stmt->let.var);
    code->let.lanes = 1;
    code->let.body = body;
    return code;
}

static const exec_code *build_let(exec_builder *builder, const ir_stmt *stmt)
{
    exec_path path = {.up = builder->path, .s = stmt};
    const exec_code *body;

    ir_exec_slot(builder, stmt->let.var);
    builder->path = &path;
    body = ir_exec_build(builder, stmt->let.body);
    builder->path = path.up;
    if (is_call_of(stmt->let.value, IR_CALL_SHUFFLE) || is_call_of(stmt->let.value, IR_CALL_SHUFFLE_FROM))
        return build_shuffle(builder, stmt, body);
    return ir_exec_wrap_let(builder, stmt, stmt->let.var, stmt->let.value, body);
}

/* Memory that threads share is made once for all of them, so they must come to it together. */
static bool is_shared_by_threads(const exec_builder *builder, const ir_buffer *buffer)
{
    return builder->launch && buffer->scope != IR_LOCAL && (!builder->bound || buffer->scope != IR_GLOBAL);
}

/* Memory that the threads of a group share needs all of them to enter together. */
static const exec_code *build_allocate(exec_builder *builder, const ir_stmt *stmt)
{
    exec_buffer *vb = base_map_get(&builder->names->buffers, stmt->allocate.buffer);
    exec_code *code = ir_exec_new_code(builder, stmt, run_allocate);

    if (!vb)
        vb = ir_exec_declare(builder, stmt->allocate.buffer, false);
    ir_exec_size_buffer(builder, vb);
    vb->outside |= ir_exec_is_outside(builder, stmt);
    code->allocate.buffer = vb;
    code->allocate.body = ir_exec_build(builder, stmt->allocate.body);
    code->allocate.shared = is_shared_by_threads(builder, stmt->allocate.buffer);
    hold(code, &code->allocate.body, 1);
    code->lockstep |= code->allocate.shared;
    return code;
}

exec_code *ir_exec_wrap_if(exec_builder *builder, const ir_stmt *stmt, const exec_node *cond,
                           const exec_code *then, const exec_code *otherwise)
{
    exec_code *code = ir_exec_new_code(builder, stmt, run_if);

    code->kind = IR_IF;
    code->branch.cond = cond;
    code->branch.then = then;
    code->branch.otherwise = otherwise;
    code->cost += ir_exec_cost(cond);
    hold(code, (const exec_code *const[]){then, otherwise}, otherwise ? 2 : 1);
    return code;
}

static const exec_code *build_branch(exec_builder *builder, const ir_stmt *stmt, bool otherwise)
{
    exec_path path = {.up = builder->path, .s = stmt, .otherwise = otherwise};
    const exec_code *c;

    builder->path = &path;
    c = ir_exec_build(builder, otherwise ? stmt->branch.otherwise : stmt->branch.then);
    builder->path = path.up;
    return c;
}

static const exec_code *build_if(exec_builder *builder, const ir_stmt *stmt)
{
    const exec_node *cond = ir_exec_expr(builder, stmt->branch.cond);
    const exec_code *then = build_branch(builder, stmt, false);

    return ir_exec_wrap_if(builder, stmt, cond, then,
                           stmt->branch.otherwise ? build_branch(builder, stmt, true) : NULL);
}

static const exec_code *build_seq(exec_builder *builder, const ir_stmt *stmt)
{
    base_vec codes = {0};

    for (int i = 0; i < stmt->seq.n && !builder->exec->failed; i++)
        base_push(builder->exec->mem, &codes, ir_exec_build(builder, stmt->seq.stmt[i]));
    return ir_exec_seq(builder, stmt, &codes);
}

static const exec_code *build_assert(exec_builder *builder, const ir_stmt *stmt)
{
    exec_code *c = ir_exec_new_code(builder, stmt, run_assert);

    c->check.cond = ir_exec_expr(builder, stmt->check.cond);
    c->check.message = stmt->check.message;
    c->cost += ir_exec_cost(c->check.cond);
    set_missing_of_calls(builder, c, stmt->check.cond);
    return c;
}

/* Inside of the attribute stores are asynchronous copies. */
static const exec_code *build_attribute(exec_builder *builder, const ir_stmt *stmt)
{
    exec_code *code = ir_exec_new_code(builder, stmt, run_attribute);
    bool async = builder->async;

    builder->async |= strcmp(stmt->attribute.key, IR_ASYNC_COPY) == 0;
    code->inner = ir_exec_build(builder, stmt->attribute.body);
    builder->async = async;
    hold(code, &code->inner, 1);
    return code;
}

/* A barrier names the memory that it orders; the word must be a constant. */
static const exec_code *build_barrier(exec_builder *builder, const ir_stmt *stmt)
{
    const ir_expr *expr = stmt->value, *over = expr->call.n == 1 ? expr->call.arg[0] : NULL;
    exec_code *code = ir_exec_new_code(builder, stmt, ir_exec_run_barrier);
    static const ir_scope scopes[] = {IR_SHARED, IR_GLOBAL, IR_WARP};

    code->lockstep = true;
    for (int i = 0; over && over->op == IR_STRING && i < BASE_COUNT(scopes); i++)
        if (strcmp(over->string, ir_scope_text(scopes[i])) == 0) {
            code->evaluate.barrier = scopes[i];
            return code;
        }
    ir_exec_fail(builder->exec, TEC_INVALID, stmt->loc, "a barrier takes \"shared\", \"global\" or \"warp\"");
    return code;
}

/* The number of groups must be constant. */
static const exec_code *build_wait(exec_builder *builder, const ir_stmt *stmt)
{
    exec_code *c = ir_exec_new_code(builder, stmt, ir_exec_run_wait);

    if (stmt->value->call.n != 1 || !ir_is_int(stmt->value->call.arg[0], &c->evaluate.groups) ||
        c->evaluate.groups < 0)
        ir_exec_fail(builder->exec, TEC_INVALID, stmt->loc,
                     "a wait has one argument: the number of groups that may still be under way, a constant");
    return c;
}

/* An expression for its effect: barriers, commits and waits of asynchronous copies, or a call. */
static const exec_code *build_evaluate(exec_builder *builder, const ir_stmt *stmt)
{
    exec_code *code;

    if (is_call_of(stmt->value, IR_CALL_BARRIER))
        return build_barrier(builder, stmt);
    if (is_call_of(stmt->value, IR_CALL_COMMIT))
        return ir_exec_new_code(builder, stmt, ir_exec_run_commit);
    if (is_call_of(stmt->value, IR_CALL_WAIT))
        return build_wait(builder, stmt);
    code = ir_exec_new_code(builder, stmt, run_evaluate);
    code->evaluate.value = ir_exec_expr(builder, stmt->value);
    code->cost += ir_exec_cost(code->evaluate.value);
    set_missing_of_calls(builder, code, stmt->value);
    return code;
}

/* One builder per kind of statement. */
static const exec_code *build(exec_builder *builder, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: return build_for(builder, stmt);
    case IR_BLOCK: return ir_exec_block(builder, stmt);
    case IR_STORE: return build_store(builder, stmt);
    case IR_UPDATE: return build_update(builder, stmt);
    case IR_LET_STMT: return build_let(builder, stmt);
    case IR_ALLOCATE: return build_allocate(builder, stmt);
    case IR_IF: return build_if(builder, stmt);
    case IR_SEQ: return build_seq(builder, stmt);
    case IR_ASSERT: return build_assert(builder, stmt);
    case IR_ATTRIBUTE: return build_attribute(builder, stmt);
    case IR_EVALUATE: break;
    }
    return build_evaluate(builder, stmt);
}

/* NULL after a failure: nothing of the program is run then. */
const exec_code *ir_exec_build(exec_builder *builder, const ir_stmt *stmt)
{
    const exec_code *code;

    if (builder->exec->failed || !ir_exec_may_grow(builder, stmt->loc))
        return NULL;
    builder->depth++;
    code = build(builder, stmt);
    builder->depth--;
    return builder->exec->failed ? NULL : code;
}
