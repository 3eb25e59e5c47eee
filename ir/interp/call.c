/* ir/interp/call.c -- calls of intrinsics: the program that an intrinsic means, run on views of the operands'
 * memory.
 *
 * The buffer parameters of the meaning get the call's buffers in their order, each from its offset on (the
 * first arguments); the scalar parameters get the other arguments. A meaning with one parameter more, an
 * output, computes a value into that one.
 */
#include "ir/interp/build.h"

/* ---- building ---- */

static void add_param(exec_builder *builder, exec_meaning *meaning, const ir_param *param, int i)
{
    if (param->scalar)
        meaning->slot[i] = ir_exec_slot(builder, param->scalar);
    else
        meaning->buffer[i] = ir_exec_declare(builder, param->buffer, false);
}

/* Builds the meaning as a program of its own: it sees the caller's memory through its parameters only.
 * Buffers that it lists are given memory at each call. */
static void build_body(exec_builder *outer, exec_meaning *meaning)
{
    const ir_program *program = meaning->program;
    exec_builder b = {.exec = outer->exec, .names = outer->names, .depth = outer->depth};
    int first = b.names->listed.n;

    for (int i = 0; i < program->n_params; i++)
        add_param(&b, meaning, &program->params[i], i);
    for (int i = 0; i < program->n_params && !b.exec->failed; i++)
        if (meaning->buffer[i])
            ir_exec_size_buffer(&b, meaning->buffer[i]);
    for (int i = 0; i < program->n_buffers && !b.exec->failed; i++)
        ir_exec_size_buffer(&b, ir_exec_declare(&b, program->buffers[i], true));
    ir_exec_push_scope(&b, EXEC_IN_INTRINSIC, program->name, 0, NULL);
    ir_exec_count_blocks(&b, program->body);
    meaning->body = ir_exec_build(&b, program->body);
    meaning->n_listed = b.names->listed.n - first;
    meaning->listed = (const exec_buffer *const *)base_copy(
        b.exec->mem, b.names->listed.at + first, (size_t)meaning->n_listed * sizeof *meaning->listed);
    b.names->listed.n = first;
}

/* Each meaning is built once and shared by its calls. A meaning that is met again while it is being built
 * calls itself, directly or through others. */
static exec_meaning *find_meaning(exec_builder *builder, const ir_expr *expr)
{
    const ir_program *program = expr->call.intrinsic ? expr->call.intrinsic->meaning : NULL;
    exec_meaning *meaning = program ? base_map_get(&builder->names->meanings, program) : NULL;

    if (!program)
        ir_exec_fail(builder->exec, TEC_UNSUPPORTED, expr->loc,
                     "the interpreter cannot run '%s': it is an extern function without a meaning",
                     expr->call.name);
    else if (meaning && meaning->building)
        ir_exec_fail(builder->exec, TEC_INVALID, expr->loc, "the meaning of '%s' calls itself",
                     expr->call.name);
    if (meaning || !program)
        return meaning;
    meaning = base_new(builder->exec->mem, exec_meaning);
    base_map_put(builder->exec->mem, &builder->names->meanings, program, meaning);
    meaning->program = program;
    meaning->buffer = base_array(builder->exec->mem, exec_buffer *, program->n_params);
    meaning->slot = base_array(builder->exec->mem, int, program->n_params);
    meaning->building = true;
    build_body(builder, meaning);
    meaning->building = false;
    return meaning;
}

/* A buffer of the caller in the place of a parameter of the meaning. */
static void take_operand(exec_builder *builder, const exec_buffer **to, const ir_expr *expr,
                         const exec_buffer *param, const ir_buffer *operand)
{
    if (!base_dtype_same(operand->dtype, param->buffer->dtype))
        ir_exec_fail(builder->exec, TEC_INVALID, expr->loc,
                     "'%s' takes elements of type %s as '%s', '%s' has %s", expr->call.name,
                     base_dtype_text(builder->exec->mem, param->buffer->dtype), param->buffer->name,
                     operand->name, base_dtype_text(builder->exec->mem, operand->dtype));
    else
        *to = ir_exec_use(builder, operand, expr->loc);
}

static void check_scalar(exec_builder *builder, const ir_expr *expr, const ir_expr *param, const ir_expr *arg)
{
    base_dtype t = param->dtype;

    if (t.code != arg->dtype.code || t.bits != arg->dtype.bits ||
        (t.lanes > 1 && t.lanes != arg->dtype.lanes))
        ir_exec_fail(builder->exec, TEC_INVALID, expr->loc, "'%s' is called with %s for '%s': expected %s",
                     expr->call.name, base_dtype_text(builder->exec->mem, arg->dtype), param->var.name,
                     base_dtype_text(builder->exec->mem, t));
}

/* With a scalar before a buffer, "the first arguments are the offsets" and "in the order of the parameters"
 * would differ. */
static bool has_buffers_first(exec_builder *builder, const ir_expr *expr, const exec_meaning *meaning)
{
    for (int i = 1; i < expr->call.n; i++)
        if (meaning->buffer[i] && !meaning->buffer[i - 1]) {
            ir_exec_fail(builder->exec, TEC_UNSUPPORTED, expr->loc,
                         "the meaning of '%s' has the buffer '%s' behind a scalar; buffers come first",
                         expr->call.name, meaning->buffer[i]->buffer->name);
            return false;
        }
    return true;
}

/* Whether the call has as many buffers and arguments as the meaning has parameters. A meaning with an output
 * as its last parameter, beyond the call's arguments, makes the call an expression with that output as its
 * value. */
static bool fits(exec_builder *builder, const ir_expr *expr, exec_meaning *meaning)
{
    int n = meaning->program->n_params, buffers = 0;

    for (int i = 0; i < n; i++)
        buffers += meaning->buffer[i] != NULL;
    meaning->gives_value = expr->call.n == n - 1 && meaning->program->params[n - 1].buffer &&
                           meaning->program->params[n - 1].output;
    if ((expr->call.n == n || meaning->gives_value) && buffers - meaning->gives_value == expr->call.n_buffers)
        return has_buffers_first(builder, expr, meaning);
    ir_exec_fail(
        builder->exec, TEC_INVALID, expr->loc,
        "'%s' is called with %d buffers and %d arguments, its meaning has %d buffers among %d parameters",
        expr->call.name, expr->call.n_buffers, expr->call.n, buffers, n);
    return false;
}

/* Builds a call: the meaning, one node for each argument, and one buffer for each parameter that is a buffer.
 */
exec_call *ir_exec_call(exec_builder *builder, const ir_expr *expr)
{
    exec_call *call = base_new(builder->exec->mem, exec_call);
    exec_meaning *meaning = find_meaning(builder, expr);
    const exec_node **arg = base_array(builder->exec->mem, const exec_node *, expr->call.n);
    const exec_buffer **buffer;

    if (builder->exec->failed || !fits(builder, expr, meaning))
        return NULL;
    buffer = base_array(builder->exec->mem, const exec_buffer *, meaning->program->n_params);
    for (int i = 0; i < expr->call.n && !builder->exec->failed; i++) {
        arg[i] = ir_exec_part(builder, expr->call.arg[i]);
        if (meaning->buffer[i])
            take_operand(builder, &buffer[i], expr, meaning->buffer[i], expr->call.buffer[i]);
        else
            check_scalar(builder, expr, meaning->program->params[i].scalar, expr->call.arg[i]);
    }
    *call = (exec_call){.meaning = meaning, .arg = arg, .buffer = buffer, .e = expr};
    return call;
}

/* ---- running ---- */

/* All arguments before any parameter is set, since an argument may call the same intrinsic. */
static ir_value **evaluate_args(ir_exec *exec, const exec_call *call)
{
    ir_value **value = base_array(exec->mem, ir_value *, call->e->call.n);

    for (int i = 0; i < call->e->call.n; i++) {
        value[i] = base_array(exec->mem, ir_value, call->arg[i]->lanes);
        for (int lane = 0; lane < call->arg[i]->lanes; lane++)
            value[i][lane] = exec_run(exec, call->arg[i], lane);
    }
    return value;
}

static void set_vector(ir_exec *exec, int slot, const ir_value *value, int lanes)
{
    for (int lane = 0; lane < lanes; lane++) {
        exec->var[slot + lane] = value[lane];
        exec->var[slot + lanes + lane].i = 0;
    }
}

/* An operand that has elements begins at one of the buffer's; where one that has none begins is never looked
 * at. */
static void set_operand(ir_exec *exec, const exec_call *call, int index, int64_t offset)
{
    const exec_view *operand = exec->view[call->buffer[index]->slot];
    exec_view *view = base_new(exec->mem, exec_view);

    if (!operand) {
        ir_exec_fail(exec, TEC_INVALID, call->e->loc, "'%s' is used outside its allocation",
                     call->buffer[index]->buffer->name);
        return;
    }
    view->store = operand->store;
    bool counted = !__builtin_add_overflow(operand->offset, offset, &view->base);
    if (counted && !ir_exec_shape_view(exec, call->meaning->buffer[index], view))
        return;
    if (!counted || ((uint64_t)view->base >= (uint64_t)operand->store->count &&
                     ir_exec_span(exec, call->meaning->buffer[index], view) != 0))
        ir_exec_fail(exec, TEC_INVALID, call->e->loc,
                     "'%s' is called with '%s' from element %lld on, of %lld elements", call->e->call.name,
                     call->buffer[index]->buffer->name, (long long)offset,
                     (long long)(operand->store->count - operand->offset));
    exec->view[call->meaning->buffer[index]->slot] = view;
}

/* A vector argument of a scalar parameter: the meaning is run for one lane of it. */
static void set_params(ir_exec *exec, const exec_call *call, int lane)
{
    const exec_meaning *meaning = call->meaning;
    ir_value **value = evaluate_args(exec, call);

    for (int i = 0; i < call->e->call.n && !exec->failed; i++)
        if (!meaning->buffer[i] && meaning->program->params[i].scalar->dtype.lanes > 1)
            set_vector(exec, meaning->slot[i], value[i], call->arg[i]->lanes);
        else if (!meaning->buffer[i])
            exec->var[meaning->slot[i]] = value[i][call->arg[i]->lanes > 1 ? lane : 0];
    for (int i = 0; i < call->e->call.n && !exec->failed; i++)
        if (meaning->buffer[i])
            set_operand(exec, call, i, value[i][call->arg[i]->lanes > 1 ? lane : 0].i);
    for (int i = 0; i < meaning->n_listed && !exec->failed; i++)
        exec->view[meaning->listed[i]->slot] = ir_exec_new_view(exec, meaning->listed[i]);
}

/* The value that the meaning left in its last parameter, by lane for vectors. */
static ir_value read_result(ir_exec *exec, const exec_call *call, int lane)
{
    const exec_buffer *vb = call->meaning->buffer[call->meaning->program->n_params - 1];
    const exec_view *view = exec->view[vb->slot];
    int64_t at = view->offset + (vb->buffer->n ? lane * view->strides[vb->buffer->n - 1] : 0);

    if (at < view->store->count && view->store->flags[at])
        return ir_value_read(vb->buffer->dtype, view->store->data + at * view->store->bytes);
    ir_exec_fail(exec, TEC_INVALID, call->e->loc, "'%s' gives no value for lane %d", call->e->call.name,
                 lane);
    return (ir_value){0};
}

/* Runs the body with `caller` on the stack, which lets messages name both the place in the meaning and the
 * call. */
static ir_value run_meaning(ir_exec *exec, const exec_call *call, int lane)
{
    const exec_meaning *meaning = call->meaning;
    exec_caller caller = {.up = exec->caller, .scope = exec->scope};
    ir_value v = {0};

    if (meaning->gives_value)
        exec->view[meaning->buffer[meaning->program->n_params - 1]->slot] =
            ir_exec_new_view(exec, meaning->buffer[meaning->program->n_params - 1]);
    if (exec->failed)
        return v;
    exec->caller = &caller;
    exec_step(exec, meaning->body);
    exec->caller = caller.up;
    exec->scope = caller.scope;
    return meaning->gives_value && !exec->failed ? read_result(exec, call, lane) : v;
}

/* Memory that the call took is free again afterwards, so that a call in a loop does not grow the run. */
ir_value ir_exec_eval_call(ir_exec *exec, const exec_node *node, int lane)
{
    base_mark mark = base_arena_mark(exec->mem);
    int64_t bytes = exec->bytes;
    ir_value v = {0};

    if (exec->failed)
        return v;
    set_params(exec, node->call, lane);
    if (!exec->failed)
        v = run_meaning(exec, node->call, lane);
    exec->bytes = bytes;
    base_arena_release(exec->mem, mark);
    return v;
}
