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
bool ir_vm_is_left_out(const ir_vm *vm, const vm_code *c)
{
    if (!c->missing || !vm->frame)
        return false;
    for (int axis = 0; axis < 3; axis++)
        if ((c->missing >> axis & 1) && vm->frame->coord[axis])
            return true;
    return false;
}

/* ---- running ---- */

/* The variable wraps as its type does, so a loop of narrow type behaves as compiled code would. */
static void run_serial(ir_vm *vm, const vm_code *c)
{
    int64_t min = vm_run(vm, c->loop.min, 0).i, n = vm_run(vm, c->loop.extent, 0).i;
    ir_value *var = &vm->var[c->loop.slot];

    for (int64_t i = 0; i < n && !vm->failed; i++) {
        var->i = ir_wrap(c->loop.t, (uint64_t)min + (uint64_t)i);
        vm_step(vm, c->loop.body);
    }
}

/* Nothing is written after a failure, whether it came from the mask, the value or the place. */
static void run_scalar_store(ir_vm *vm, const vm_code *c)
{
    const vm_access *to = c->store.to;
    ir_value v;
    int64_t at;

    if (ir_vm_is_left_out(vm, c) || (to->mask && !vm_run(vm, to->mask, 0).i))
        return;
    v = vm_run(vm, c->store.value, 0);
    at = ir_vm_locate(vm, to, 0, true);
    if (at < 0 || vm->failed)
        return;
    if (c->store.async)
        ir_vm_store_later(vm, to, at, v);
    else
        ir_vm_store(vm, to, at, 0, v);
}

static void check_twice(ir_vm *vm, const vm_code *c, int lane)
{
    for (int j = 0; j < lane; j++)
        if (c->store.at[j] >= 0 && c->store.at[j] == c->store.at[lane])
            ir_vm_twice(vm, c->store.to, lane, j);
}

/* All lanes are loaded before any is stored, those too that are masked off: a machine computes the vector as
 * a whole. */
static void run_vector_store(ir_vm *vm, const vm_code *c)
{
    const vm_access *to = c->store.to;
    int64_t *at = c->store.at;

    if (ir_vm_is_left_out(vm, c))
        return;
    for (int lane = 0; lane < c->store.lanes && !vm->failed; lane++) {
        at[lane] = -1;
        vm->unused = to->mask && !vm_run(vm, to->mask, lane).i;
        c->store.values[lane] = vm_run(vm, c->store.value, lane);
        if (vm->unused)
            continue;
        at[lane] = ir_vm_locate(vm, to, lane, true);
        check_twice(vm, c, lane);
    }
    vm->unused = false;
    for (int lane = 0; lane < c->store.lanes && !vm->failed; lane++)
        if (at[lane] >= 0)
            ir_vm_store(vm, to, at[lane], lane, c->store.values[lane]);
}

/* All old values are read before any new one is stored: the components of a tuple depend on each other. */
static void run_update_lane(ir_vm *vm, const vm_code *c, int lane)
{
    ir_value v[VM_MAX_TUPLE];
    int n = c->update.n;

    for (int j = 0; j < n; j++)
        v[j] = vm_run(vm, c->update.source[j], lane);
    for (int j = 0; j < n; j++) {
        vm->var[c->update.y[j]] = v[j];
        vm->var[c->update.x[j]] = ir_vm_load(vm, c->update.to[j], lane);
    }
    for (int j = 0; j < n; j++)
        v[j] = vm_run(vm, c->update.result[j], 0);
    for (int j = 0; j < n && !vm->failed; j++)
        ir_vm_store(vm, c->update.to[j], ir_vm_locate(vm, c->update.to[j], lane, true), lane, v[j]);
}

static void run_update(ir_vm *vm, const vm_code *c)
{
    if (ir_vm_is_left_out(vm, c))
        return;
    for (int lane = 0; lane < c->update.lanes && !vm->failed; lane++)
        run_update_lane(vm, c, lane);
}

/* All lanes are computed at once here, so none is due. */
void ir_vm_bind_let(ir_vm *vm, const vm_code *c)
{
    int lanes = c->let.lanes, slot = c->let.slot;

    for (int i = 0; i < lanes; i++) {
        vm->var[slot + i] = vm_run(vm, c->let.value, i);
        if (lanes > 1)
            vm->var[slot + lanes + i].i = 0;
    }
}

static void run_let(ir_vm *vm, const vm_code *c)
{
    if (ir_vm_is_left_out(vm, c))
        return;
    ir_vm_bind_let(vm, c);
    if (!vm->failed)
        vm_step(vm, c->let.body);
}

/* The memory is gone after the body, and an outer buffer of the same name is visible again. */
static void run_allocate(ir_vm *vm, const vm_code *c)
{
    int slot = c->allocate.buffer->slot;
    vm_view *saved = vm->view[slot];
    base_mark mark = base_arena_mark(vm->mem);
    int64_t bytes = vm->bytes;

    vm->view[slot] = ir_vm_new_view(vm, c->allocate.buffer);
    if (!vm->failed)
        vm_step(vm, c->allocate.body);
    vm->view[slot] = saved;
    vm->bytes = bytes;
    base_arena_release(vm->mem, mark);
}

static void run_if(ir_vm *vm, const vm_code *c)
{
    if (ir_vm_is_left_out(vm, c))
        return;
    const vm_code *next = vm_run(vm, c->branch.cond, 0).i ? c->branch.then : c->branch.otherwise;

    if (next && !vm->failed)
        vm_step(vm, next);
}

static void run_seq(ir_vm *vm, const vm_code *c)
{
    for (int i = 0; i < c->seq.n && !vm->failed; i++)
        vm_step(vm, c->seq.code[i]);
}

static void run_assert(ir_vm *vm, const vm_code *c)
{
    if (!ir_vm_is_left_out(vm, c) && !vm_run(vm, c->check.cond, 0).i && !vm->failed)
        ir_vm_fail(vm, TEC_INVALID, c->s->loc, "assertion failed: %s", c->check.message);
}

static void run_attribute(ir_vm *vm, const vm_code *c)
{
    vm_step(vm, c->inner);
}

static void run_evaluate(ir_vm *vm, const vm_code *c)
{
    if (ir_vm_is_left_out(vm, c))
        return;
    for (int lane = 0; lane < c->evaluate.value->lanes && !vm->failed; lane++)
        vm_run(vm, c->evaluate.value, lane);
}

/* ---- building ---- */

/* A code of cost 1 for statement s in the present scope. */
vm_code *ir_vm_new_code(vm_builder *b, const ir_stmt *s, vm_do *run)
{
    vm_code *c = base_new(b->vm->mem, vm_code);

    c->run = run;
    c->kind = s->kind;
    c->s = s;
    c->scope = b->scope;
    c->cost = 1;
    c->bound = (uint8_t)b->bound;
    return c;
}

/* c is made of these: run in step if one of them is, left out by the threads that leave out all of them. */
static void hold(vm_code *c, const vm_code *const *inside, int n)
{
    for (int i = 0; i < n && inside[i]; i++) {
        c->lockstep |= inside[i]->lockstep;
        c->missing = i == 0 ? inside[i]->missing : c->missing & inside[i]->missing;
    }
}

/* The names and slots that messages show values of. */
const vm_scope *ir_vm_push_scope(vm_builder *b, int kind, const char *name, int n, const ir_expr *const *var)
{
    vm_scope *s = base_new(b->vm->mem, vm_scope);
    const char **names = base_array(b->vm->mem, const char *, n);
    int *slots = base_array(b->vm->mem, int, n);

    for (int i = 0; i < n; i++) {
        names[i] = var[i]->var.name;
        slots[i] = ir_vm_slot(b, var[i]);
    }
    *s = (vm_scope){.up = b->scope, .kind = kind, .name = name, .n = n, .var = names, .slot = slots};
    return b->scope = s;
}

const vm_code *ir_vm_seq(vm_builder *b, const ir_stmt *s, const base_vec *codes)
{
    vm_code *c = ir_vm_new_code(b, s, run_seq);

    c->kind = IR_SEQ;
    c->seq.code = (const vm_code *const *)codes->at;
    c->seq.n = codes->n;
    hold(c, c->seq.code, c->seq.n);
    return c;
}

/* How a kind of loop runs when one strand meets it. */
static vm_do *pick_loop(ir_how how)
{
    switch (how) {
    case IR_SERIAL:
    case IR_UNROLLED: return run_serial;
    case IR_PARALLEL:
    case IR_VECTORISED:
    case IR_VTHREAD: return ir_vm_run_parallel;
    case IR_THREAD_X:
    case IR_THREAD_Y:
    case IR_THREAD_Z: return ir_vm_run_thread_loop;
    case IR_BLOCK_X:
    case IR_BLOCK_Y:
    case IR_BLOCK_Z:
    case IR_N_HOWS: break;
    }
    return ir_vm_run_block_loop;
}

/* Its bounds stand outside it: with the scope and path of the loop's surroundings. */
vm_code *ir_vm_wrap_loop(vm_builder *b, const ir_stmt *loop, const vm_code *body)
{
    vm_code *c = ir_vm_new_code(b, loop, pick_loop(loop->loop.how));

    c->loop.min = ir_vm_expr(b, loop->loop.min);
    c->loop.extent = ir_vm_expr(b, loop->loop.extent);
    c->loop.slot = ir_vm_slot(b, loop->loop.var);
    c->loop.t = loop->loop.var->dtype;
    c->loop.how = loop->loop.how;
    c->loop.body = body;
    c->loop.launch = b->launch && b->launch->root == loop ? b->launch : NULL;
    hold(c, &body, 1);
    return c;
}

/* The body of a loop, with the loop on the path (for inits that move out to it) and among the places of
 * buffers. */
static const vm_code *build_body(vm_builder *b, const ir_stmt *s, base_vec *before)
{
    vm_path path = {.up = b->path, .s = s, .before = before};
    vm_place *place = base_new(b->vm->mem, vm_place);
    const vm_code *body;

    *place = (vm_place){.up = b->place, .loop = s, .depth = b->place ? b->place->depth + 1 : 1};
    ir_vm_push_scope(b, VM_IN_LOOP, s->loop.var->var.name, 1, &s->loop.var);
    b->path = &path;
    b->place = place;
    b->bound |= ir_vm_axis_bit(s->loop.how);
    body = ir_vm_build(b, s->loop.body);
    b->path = path.up;
    b->place = place->up;
    return body;
}

/* Inits that must run before this loop were collected in `before` while its body was built. */
static const vm_code *build_for(vm_builder *b, const ir_stmt *s)
{
    const vm_scope *scope = b->scope;
    vm_launch *launch = b->launch;
    int bound = b->bound;
    base_vec before = {0};
    const vm_code *body;
    vm_code *c;

    if (!launch)
        b->launch = ir_vm_find_launch(b, s);
    body = build_body(b, s, &before);
    b->scope = scope;
    b->bound = bound;
    c = ir_vm_wrap_loop(b, s, body);
    b->launch = launch;
    if (!before.n)
        return c;
    base_push(b->vm->mem, &before, c);
    return ir_vm_seq(b, s, &before);
}

/* How many elements the access touches. */
static int lanes_of(const vm_access *a)
{
    int lanes = a && a->mask ? a->mask->lanes : 1;

    for (int d = 0; a && d < a->n; d++)
        lanes = at_least(lanes, a->index[d]->lanes);
    return lanes;
}

static void set_missing(vm_builder *b, vm_code *c, const ir_buffer *written)
{
    if (b->launch && written->scope != IR_LOCAL)
        c->missing = (uint8_t)(b->launch->axes & ~b->bound);
}

typedef struct {
    ir_walk walk;
    bool local;          /* a call writes local memory: all threads do it */
    const ir_buffer *to; /* what else one writes; NULL: nothing */
} call_walk;

/* What a call writes: memory that threads share, or each thread's own. */
static bool note_call(ir_walk *w, const ir_expr *e)
{
    call_walk *c = (call_walk *)w;

    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++) {
        const ir_buffer *b = ir_call_writes(e, i) ? e->call.buffer[i] : NULL;

        c->local |= b && b->scope == IR_LOCAL;
        c->to = b && b->scope != IR_LOCAL ? b : c->to;
    }
    return true;
}

/* A call that writes shared memory is made by one thread, unless it writes to the thread's own memory as
 * well. */
static void set_missing_of_calls(vm_builder *b, vm_code *c, const ir_expr *e)
{
    call_walk w = {.walk = {.expr = note_call, .kinds = IR_KIND_ACCESS, .cx = b->vm->mem}};

    ir_walk_expr(&w.walk, e);
    if (w.to && !w.local)
        set_missing(b, c, w.to);
}

/* A store of several lanes evaluates all of them before it writes the first. Its cost counts the lanes. */
static const vm_code *build_store(vm_builder *b, const ir_stmt *s)
{
    vm_code *c = ir_vm_new_code(b, s, run_scalar_store);

    b->nodes = (base_map){0};
    c->store.to = ir_vm_access(b, s->store.buffer, s->store.index, s->store.n, s->store.mask, s->loc);
    c->store.value = ir_vm_expr(b, s->store.value);
    if (b->vm->failed)
        return c;
    c->store.lanes = at_least(lanes_of(c->store.to), c->store.value->lanes);
    c->cost += ir_vm_cost(c->store.value) * c->store.lanes + c->store.lanes / 8 * (c->store.lanes / 8);
    set_missing(b, c, s->store.buffer);
    c->store.async = b->async;
    b->vm->copies_async |= b->async;
    if (b->async && (c->store.lanes > 1 || s->store.buffer->scope != IR_SHARED))
        ir_vm_fail(b->vm, TEC_INVALID, s->loc,
                   "asynchronous copies put single elements into shared memory, not into '%s'",
                   s->store.buffer->name);
    if (c->store.lanes > 1) {
        c->run = run_vector_store;
        c->store.at = base_array(b->vm->mem, int64_t, c->store.lanes);
        c->store.values = base_array(b->vm->mem, ir_value, c->store.lanes);
    }
    return c;
}

/* Vectorised loops and thread axes over which a declared reduction may meet itself: those that do not choose
 * its target. */
static void find_across(vm_builder *b, const ir_stmt *s, vm_access *a)
{
    base_map choosing = {0};

    for (int d = 0; d < s->update.n; d++)
        ir_vm_feeders(b, &choosing, s->update.index[d], false);
    for (const vm_path *p = b->path; p; p = p->up) {
        if (p->s->kind != IR_FOR || base_map_has(&choosing, p->s->loop.var))
            continue;
        a->threads |= (uint8_t)ir_vm_axis_bit(p->s->loop.how);
        if (p->s->loop.how == IR_VECTORISED)
            base_map_put(b->vm->mem, &a->across, p->s->loop.var, p->s->loop.var);
    }
    a->reduces = s->update.combiner->reorders;
}

/* The accesses of an update, with the vector loops that reduce into one element. */
static vm_access *const *build_targets(vm_builder *b, const ir_stmt *s)
{
    int n = s->update.combiner->n;
    vm_access **to = base_array(b->vm->mem, vm_access *, n);

    for (int j = 0; j < n && !b->vm->failed; j++) {
        b->nodes = (base_map){0};
        to[j] = ir_vm_access(b, s->update.buffer[j], s->update.index, s->update.n, NULL, s->loc);
        if (to[j])
            find_across(b, s, to[j]);
    }
    return to;
}

static const int *number(vm_builder *b, const ir_expr *const *var, int n)
{
    int *slot = base_array(b->vm->mem, int, n);

    for (int j = 0; j < n; j++)
        slot[j] = ir_vm_slot(b, var[j]);
    return slot;
}

/* x are the old values and y the new ones, as the combiner's formula calls them. */
static const vm_code *build_update(vm_builder *b, const ir_stmt *s)
{
    vm_code *c = ir_vm_new_code(b, s, run_update);
    const ir_combiner *how = s->update.combiner;

    if (how->n > VM_MAX_TUPLE) {
        ir_vm_fail(b->vm, TEC_UNSUPPORTED, s->loc, "'%s' combines %d values, the interpreter takes %d",
                   how->name, how->n, VM_MAX_TUPLE);
        return c;
    }
    c->update.n = how->n;
    c->update.to = build_targets(b, s);
    c->update.source = ir_vm_exprs(b, s->update.source, how->n);
    c->update.x = number(b, how->x, how->n);
    c->update.y = number(b, how->y, how->n);
    c->update.result = ir_vm_exprs(b, how->result, how->n);
    for (int j = 0; j < how->n && !b->vm->failed; j++) {
        c->update.lanes =
            at_least(c->update.lanes, at_least(lanes_of(c->update.to[j]), c->update.source[j]->lanes));
        c->cost += ir_vm_cost(c->update.source[j]) + ir_vm_cost(c->update.result[j]);
    }
    set_missing(b, c, s->update.buffer[0]);
    return c;
}

vm_code *ir_vm_wrap_let(vm_builder *b, const ir_stmt *s, const ir_expr *var, const ir_expr *value,
                        const vm_code *body)
{
    vm_code *c = ir_vm_new_code(b, s, run_let);

    c->kind = IR_LET_STMT;
    c->let.value = ir_vm_expr(b, value);
    c->let.slot = ir_vm_slot(b, var);
    c->let.lanes = var->dtype.lanes;
    c->let.body = body;
    c->cost += ir_vm_cost(c->let.value);
    hold(c, &body, 1);
    return c;
}

static bool is_call_of(const ir_expr *e, const char *name)
{
    return e->op == IR_CALL && strcmp(e->call.name, name) == 0;
}

/* let v = warp_shuffle(value, mask): the threads of a warp exchange values, so they must come to this place
 * together (lockstep). */
static const vm_code *build_shuffle(vm_builder *b, const ir_stmt *s, const vm_code *body)
{
    const ir_expr *e = s->let.value;
    vm_code *c = ir_vm_new_code(b, s, ir_vm_run_shuffle);

    if (e->call.n != 2 || e->call.n_buffers || !base_dtype_same(e->call.arg[0]->dtype, e->dtype) ||
        e->dtype.lanes != 1 || !ir_is_int(e->call.arg[1], &c->let.mask) || c->let.mask < 0)
        ir_vm_fail(b->vm, TEC_INVALID, s->loc, "a shuffle takes a scalar and a constant");
    c->lockstep = true;
    c->let.shuffle = true;
    c->let.value = ir_vm_expr(b, e->call.arg[0]);
    c->let.slot = ir_vm_slot(b, s->let.var);
    c->let.lanes = 1;
    c->let.body = body;
    return c;
}

static const vm_code *build_let(vm_builder *b, const ir_stmt *s)
{
    vm_path path = {.up = b->path, .s = s};
    const vm_code *body;

    ir_vm_slot(b, s->let.var);
    b->path = &path;
    body = ir_vm_build(b, s->let.body);
    b->path = path.up;
    if (is_call_of(s->let.value, IR_CALL_SHUFFLE))
        return build_shuffle(b, s, body);
    return ir_vm_wrap_let(b, s, s->let.var, s->let.value, body);
}

/* Memory that threads share is made once for all of them, so they must come to it together. */
static bool is_shared_by_threads(const vm_builder *b, const ir_buffer *buffer)
{
    return b->launch && buffer->scope != IR_LOCAL && (!b->bound || buffer->scope != IR_GLOBAL);
}

/* Memory that the threads of a group share needs all of them to enter together. */
static const vm_code *build_allocate(vm_builder *b, const ir_stmt *s)
{
    vm_buffer *vb = base_map_get(&b->names->buffers, s->allocate.buffer);
    vm_code *c = ir_vm_new_code(b, s, run_allocate);

    if (!vb)
        vb = ir_vm_declare(b, s->allocate.buffer, false);
    ir_vm_size_buffer(b, vb);
    c->allocate.buffer = vb;
    c->allocate.body = ir_vm_build(b, s->allocate.body);
    c->allocate.shared = is_shared_by_threads(b, s->allocate.buffer);
    hold(c, &c->allocate.body, 1);
    c->lockstep |= c->allocate.shared;
    return c;
}

vm_code *ir_vm_wrap_if(vm_builder *b, const ir_stmt *s, const vm_node *cond, const vm_code *then,
                       const vm_code *otherwise)
{
    vm_code *c = ir_vm_new_code(b, s, run_if);

    c->kind = IR_IF;
    c->branch.cond = cond;
    c->branch.then = then;
    c->branch.otherwise = otherwise;
    c->cost += ir_vm_cost(cond);
    hold(c, (const vm_code *const[]){then, otherwise}, otherwise ? 2 : 1);
    return c;
}

static const vm_code *build_branch(vm_builder *b, const ir_stmt *s, bool otherwise)
{
    vm_path path = {.up = b->path, .s = s, .otherwise = otherwise};
    const vm_code *c;

    b->path = &path;
    c = ir_vm_build(b, otherwise ? s->branch.otherwise : s->branch.then);
    b->path = path.up;
    return c;
}

static const vm_code *build_if(vm_builder *b, const ir_stmt *s)
{
    const vm_node *cond = ir_vm_expr(b, s->branch.cond);
    const vm_code *then = build_branch(b, s, false);

    return ir_vm_wrap_if(b, s, cond, then, s->branch.otherwise ? build_branch(b, s, true) : NULL);
}

static const vm_code *build_seq(vm_builder *b, const ir_stmt *s)
{
    base_vec codes = {0};

    for (int i = 0; i < s->seq.n && !b->vm->failed; i++)
        base_push(b->vm->mem, &codes, ir_vm_build(b, s->seq.stmt[i]));
    return ir_vm_seq(b, s, &codes);
}

static const vm_code *build_assert(vm_builder *b, const ir_stmt *s)
{
    vm_code *c = ir_vm_new_code(b, s, run_assert);

    c->check.cond = ir_vm_expr(b, s->check.cond);
    c->check.message = s->check.message;
    c->cost += ir_vm_cost(c->check.cond);
    set_missing_of_calls(b, c, s->check.cond);
    return c;
}

/* Inside of the attribute stores are asynchronous copies. */
static const vm_code *build_attribute(vm_builder *b, const ir_stmt *s)
{
    vm_code *c = ir_vm_new_code(b, s, run_attribute);
    bool async = b->async;

    b->async |= strcmp(s->attribute.key, IR_ASYNC_COPY) == 0;
    c->inner = ir_vm_build(b, s->attribute.body);
    b->async = async;
    hold(c, &c->inner, 1);
    return c;
}

/* A barrier names the memory that it orders; the word must be a constant. */
static const vm_code *build_barrier(vm_builder *b, const ir_stmt *s)
{
    const ir_expr *e = s->value, *over = e->call.n == 1 ? e->call.arg[0] : NULL;
    vm_code *c = ir_vm_new_code(b, s, ir_vm_run_barrier);
    static const ir_scope scopes[] = {IR_SHARED, IR_GLOBAL, IR_WARP};

    c->lockstep = true;
    for (int i = 0; over && over->op == IR_STRING && i < BASE_COUNT(scopes); i++)
        if (strcmp(over->string, ir_scope_text(scopes[i])) == 0) {
            c->evaluate.barrier = scopes[i];
            return c;
        }
    ir_vm_fail(b->vm, TEC_INVALID, s->loc, "a barrier takes \"shared\", \"global\" or \"warp\"");
    return c;
}

/* The number of groups must be constant. */
static const vm_code *build_wait(vm_builder *b, const ir_stmt *s)
{
    vm_code *c = ir_vm_new_code(b, s, ir_vm_run_wait);

    if (s->value->call.n != 1 || !ir_is_int(s->value->call.arg[0], &c->evaluate.groups) ||
        c->evaluate.groups < 0)
        ir_vm_fail(b->vm, TEC_INVALID, s->loc,
                   "a wait has one argument: the number of groups that may still be under way, a constant");
    return c;
}

/* An expression for its effect: barriers, commits and waits of asynchronous copies, or a call. */
static const vm_code *build_evaluate(vm_builder *b, const ir_stmt *s)
{
    vm_code *c;

    if (is_call_of(s->value, IR_CALL_BARRIER))
        return build_barrier(b, s);
    if (is_call_of(s->value, IR_CALL_COMMIT))
        return ir_vm_new_code(b, s, ir_vm_run_commit);
    if (is_call_of(s->value, IR_CALL_WAIT))
        return build_wait(b, s);
    c = ir_vm_new_code(b, s, run_evaluate);
    c->evaluate.value = ir_vm_expr(b, s->value);
    c->cost += ir_vm_cost(c->evaluate.value);
    set_missing_of_calls(b, c, s->value);
    return c;
}

/* One builder per kind of statement. */
static const vm_code *build(vm_builder *b, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: return build_for(b, s);
    case IR_BLOCK: return ir_vm_block(b, s);
    case IR_STORE: return build_store(b, s);
    case IR_UPDATE: return build_update(b, s);
    case IR_LET_STMT: return build_let(b, s);
    case IR_ALLOCATE: return build_allocate(b, s);
    case IR_IF: return build_if(b, s);
    case IR_SEQ: return build_seq(b, s);
    case IR_ASSERT: return build_assert(b, s);
    case IR_ATTRIBUTE: return build_attribute(b, s);
    case IR_EVALUATE: break;
    }
    return build_evaluate(b, s);
}

/* NULL after a failure: nothing of the program is run then. */
const vm_code *ir_vm_build(vm_builder *b, const ir_stmt *s)
{
    const vm_code *c;

    if (b->vm->failed || !ir_vm_may_grow(b, s->loc))
        return NULL;
    b->depth++;
    c = build(b, s);
    b->depth--;
    return b->vm->failed ? NULL : c;
}
