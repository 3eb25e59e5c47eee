/* ir/interp/call.c -- calls of intrinsics: the program that an intrinsic means, run on views of the operands'
 * memory.
 *
 * The buffer parameters of the meaning get the call's buffers in their order, each from its offset on (the
 * first arguments); the scalar parameters get the other arguments. A meaning with one parameter more, an
 * output, computes a value into that one.
 */
#include "ir/interp/build.h"

/* ---- building ---- */

static void add_param(vm_builder *b, vm_meaning *m, const ir_param *p, int i)
{
    if (p->scalar)
        m->slot[i] = ir_vm_slot(b, p->scalar);
    else
        m->buffer[i] = ir_vm_declare(b, p->buffer, false);
}

/* Builds the meaning as a program of its own: it sees the caller's memory through its parameters only.
 * Buffers that it lists are given memory at each call. */
static void build_body(vm_builder *outer, vm_meaning *m)
{
    const ir_program *p = m->program;
    vm_builder b = {.vm = outer->vm, .names = outer->names, .depth = outer->depth};
    int first = b.names->listed.n;

    for (int i = 0; i < p->n_params; i++)
        add_param(&b, m, &p->params[i], i);
    for (int i = 0; i < p->n_params && !b.vm->failed; i++)
        if (m->buffer[i])
            ir_vm_size_buffer(&b, m->buffer[i]);
    for (int i = 0; i < p->n_buffers && !b.vm->failed; i++)
        ir_vm_size_buffer(&b, ir_vm_declare(&b, p->buffers[i], true));
    ir_vm_push_scope(&b, VM_IN_INTRINSIC, p->name, 0, NULL);
    ir_vm_count_blocks(&b, p->body);
    m->body = ir_vm_build(&b, p->body);
    m->n_listed = b.names->listed.n - first;
    m->listed = (const vm_buffer *const *)base_copy(b.vm->mem, b.names->listed.at + first,
                                                    (size_t)m->n_listed * sizeof *m->listed);
    b.names->listed.n = first;
}

/* Each meaning is built once and shared by its calls. A meaning that is met again while it is being built
 * calls itself, directly or through others. */
static vm_meaning *find_meaning(vm_builder *b, const ir_expr *e)
{
    const ir_program *p = e->call.intrinsic ? e->call.intrinsic->meaning : NULL;
    vm_meaning *m = p ? base_map_get(&b->names->meanings, p) : NULL;

    if (!p)
        ir_vm_fail(b->vm, TEC_UNSUPPORTED, e->loc,
                   "the interpreter cannot run '%s': it is an extern function without a meaning",
                   e->call.name);
    else if (m && m->building)
        ir_vm_fail(b->vm, TEC_INVALID, e->loc, "the meaning of '%s' calls itself", e->call.name);
    if (m || !p)
        return m;
    m = base_new(b->vm->mem, vm_meaning);
    base_map_put(b->vm->mem, &b->names->meanings, p, m);
    m->program = p;
    m->buffer = base_array(b->vm->mem, vm_buffer *, p->n_params);
    m->slot = base_array(b->vm->mem, int, p->n_params);
    m->building = true;
    build_body(b, m);
    m->building = false;
    return m;
}

/* A buffer of the caller in the place of a parameter of the meaning. */
static void take_operand(vm_builder *b, const vm_buffer **to, const ir_expr *e, const vm_buffer *param,
                         const ir_buffer *operand)
{
    if (!base_dtype_same(operand->dtype, param->buffer->dtype))
        ir_vm_fail(b->vm, TEC_INVALID, e->loc, "'%s' takes elements of type %s as '%s', '%s' has %s",
                   e->call.name, base_dtype_text(b->vm->mem, param->buffer->dtype), param->buffer->name,
                   operand->name, base_dtype_text(b->vm->mem, operand->dtype));
    else
        *to = ir_vm_use(b, operand, e->loc);
}

static void check_scalar(vm_builder *b, const ir_expr *e, const ir_expr *param, const ir_expr *arg)
{
    base_dtype t = param->dtype;

    if (t.code != arg->dtype.code || t.bits != arg->dtype.bits ||
        (t.lanes > 1 && t.lanes != arg->dtype.lanes))
        ir_vm_fail(b->vm, TEC_INVALID, e->loc, "'%s' is called with %s for '%s': expected %s", e->call.name,
                   base_dtype_text(b->vm->mem, arg->dtype), param->var.name, base_dtype_text(b->vm->mem, t));
}

/* With a scalar before a buffer, "the first arguments are the offsets" and "in the order of the parameters"
 * would differ. */
static bool has_buffers_first(vm_builder *b, const ir_expr *e, const vm_meaning *m)
{
    for (int i = 1; i < e->call.n; i++)
        if (m->buffer[i] && !m->buffer[i - 1]) {
            ir_vm_fail(b->vm, TEC_UNSUPPORTED, e->loc,
                       "the meaning of '%s' has the buffer '%s' behind a scalar; buffers come first",
                       e->call.name, m->buffer[i]->buffer->name);
            return false;
        }
    return true;
}

/* Whether the call has as many buffers and arguments as the meaning has parameters. A meaning with an output
 * as its last parameter, beyond the call's arguments, makes the call an expression with that output as its
 * value. */
static bool fits(vm_builder *b, const ir_expr *e, vm_meaning *m)
{
    int n = m->program->n_params, buffers = 0;

    for (int i = 0; i < n; i++)
        buffers += m->buffer[i] != NULL;
    m->gives_value =
        e->call.n == n - 1 && m->program->params[n - 1].buffer && m->program->params[n - 1].output;
    if ((e->call.n == n || m->gives_value) && buffers - m->gives_value == e->call.n_buffers)
        return has_buffers_first(b, e, m);
    ir_vm_fail(
        b->vm, TEC_INVALID, e->loc,
        "'%s' is called with %d buffers and %d arguments, its meaning has %d buffers among %d parameters",
        e->call.name, e->call.n_buffers, e->call.n, buffers, n);
    return false;
}

/* Builds a call: the meaning, one node for each argument, and one buffer for each parameter that is a buffer.
 */
vm_call *ir_vm_call(vm_builder *b, const ir_expr *e)
{
    vm_call *c = base_new(b->vm->mem, vm_call);
    vm_meaning *m = find_meaning(b, e);
    const vm_node **arg = base_array(b->vm->mem, const vm_node *, e->call.n);
    const vm_buffer **buffer;

    if (b->vm->failed || !fits(b, e, m))
        return NULL;
    buffer = base_array(b->vm->mem, const vm_buffer *, m->program->n_params);
    for (int i = 0; i < e->call.n && !b->vm->failed; i++) {
        arg[i] = ir_vm_part(b, e->call.arg[i]);
        if (m->buffer[i])
            take_operand(b, &buffer[i], e, m->buffer[i], e->call.buffer[i]);
        else
            check_scalar(b, e, m->program->params[i].scalar, e->call.arg[i]);
    }
    *c = (vm_call){.meaning = m, .arg = arg, .buffer = buffer, .e = e};
    return c;
}

/* ---- running ---- */

/* All arguments before any parameter is set, since an argument may call the same intrinsic. */
static ir_value **evaluate_args(ir_vm *vm, const vm_call *c)
{
    ir_value **v = base_array(vm->mem, ir_value *, c->e->call.n);

    for (int i = 0; i < c->e->call.n; i++) {
        v[i] = base_array(vm->mem, ir_value, c->arg[i]->lanes);
        for (int lane = 0; lane < c->arg[i]->lanes; lane++)
            v[i][lane] = vm_run(vm, c->arg[i], lane);
    }
    return v;
}

static void set_vector(ir_vm *vm, int slot, const ir_value *v, int lanes)
{
    for (int lane = 0; lane < lanes; lane++) {
        vm->var[slot + lane] = v[lane];
        vm->var[slot + lanes + lane].i = 0;
    }
}

/* An operand that has elements begins at one of the buffer's; where one that has none begins is never looked
 * at. */
static void set_operand(ir_vm *vm, const vm_call *c, int i, int64_t offset)
{
    const vm_view *operand = vm->view[c->buffer[i]->slot];
    vm_view *view = base_new(vm->mem, vm_view);

    if (!operand) {
        ir_vm_fail(vm, TEC_INVALID, c->e->loc, "'%s' is used outside its allocation",
                   c->buffer[i]->buffer->name);
        return;
    }
    view->store = operand->store;
    bool counted = !__builtin_add_overflow(operand->offset, offset, &view->base);
    if (counted && !ir_vm_shape_view(vm, c->meaning->buffer[i], view))
        return;
    if (!counted || ((uint64_t)view->base >= (uint64_t)operand->store->count &&
                     ir_vm_span(vm, c->meaning->buffer[i], view) != 0))
        ir_vm_fail(vm, TEC_INVALID, c->e->loc,
                   "'%s' is called with '%s' from element %lld on, of %lld elements", c->e->call.name,
                   c->buffer[i]->buffer->name, (long long)offset,
                   (long long)(operand->store->count - operand->offset));
    vm->view[c->meaning->buffer[i]->slot] = view;
}

/* A vector argument of a scalar parameter: the meaning is run for one lane of it. */
static void set_params(ir_vm *vm, const vm_call *c, int lane)
{
    const vm_meaning *m = c->meaning;
    ir_value **v = evaluate_args(vm, c);

    for (int i = 0; i < c->e->call.n && !vm->failed; i++)
        if (!m->buffer[i] && m->program->params[i].scalar->dtype.lanes > 1)
            set_vector(vm, m->slot[i], v[i], c->arg[i]->lanes);
        else if (!m->buffer[i])
            vm->var[m->slot[i]] = v[i][c->arg[i]->lanes > 1 ? lane : 0];
    for (int i = 0; i < c->e->call.n && !vm->failed; i++)
        if (m->buffer[i])
            set_operand(vm, c, i, v[i][c->arg[i]->lanes > 1 ? lane : 0].i);
    for (int i = 0; i < m->n_listed && !vm->failed; i++)
        vm->view[m->listed[i]->slot] = ir_vm_new_view(vm, m->listed[i]);
}

/* The value that the meaning left in its last parameter, by lane for vectors. */
static ir_value read_result(ir_vm *vm, const vm_call *c, int lane)
{
    const vm_buffer *vb = c->meaning->buffer[c->meaning->program->n_params - 1];
    const vm_view *view = vm->view[vb->slot];
    int64_t at = view->offset + (vb->buffer->n ? lane * view->strides[vb->buffer->n - 1] : 0);

    if (at < view->store->count && view->store->flags[at])
        return ir_value_read(vb->buffer->dtype, view->store->data + at * view->store->bytes);
    ir_vm_fail(vm, TEC_INVALID, c->e->loc, "'%s' gives no value for lane %d", c->e->call.name, lane);
    return (ir_value){0};
}

/* Runs the body with `caller` on the stack, which lets messages name both the place in the meaning and the
 * call. */
static ir_value run_meaning(ir_vm *vm, const vm_call *c, int lane)
{
    const vm_meaning *m = c->meaning;
    vm_caller caller = {.up = vm->caller, .scope = vm->scope};
    ir_value v = {0};

    if (m->gives_value)
        vm->view[m->buffer[m->program->n_params - 1]->slot] =
            ir_vm_new_view(vm, m->buffer[m->program->n_params - 1]);
    if (vm->failed)
        return v;
    vm->caller = &caller;
    vm_step(vm, m->body);
    vm->caller = caller.up;
    vm->scope = caller.scope;
    return m->gives_value && !vm->failed ? read_result(vm, c, lane) : v;
}

/* Memory that the call took is free again afterwards, so that a call in a loop does not grow the run. */
ir_value ir_vm_eval_call(ir_vm *vm, const vm_node *n, int lane)
{
    base_mark mark = base_arena_mark(vm->mem);
    int64_t bytes = vm->bytes;
    ir_value v = {0};

    if (vm->failed)
        return v;
    set_params(vm, n->call, lane);
    if (!vm->failed)
        v = run_meaning(vm, n->call, lane);
    vm->bytes = bytes;
    base_arena_release(vm->mem, mark);
    return v;
}
