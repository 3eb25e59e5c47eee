/* ir/interp/interp.c -- a run from outside: arguments in, the program built and run, outputs looked over.
 *
 * Symbols get their values from the shapes of the arguments, then from the caller's list. Two arguments at
 * one address share their marks, if their buffers are of one alias class; the same memory under two other
 * names is refused, since the program was promised that it does not happen.
 */
#include "ir/interp/build.h"

#include <string.h>

#include "ir/text.h"

enum { DEFAULT_GIB = 4 };
static const int64_t default_steps = 10000000000;

typedef struct {
    ir_exec *exec;
    const ir_program *p;
    const ir_run *run;
    exec_builder b;
    exec_names names;
    exec_buffer **param; /* NULL for scalars */
    base_map known;      /* symbols that have their value */
    base_vec once;
    const exec_node *const *facts;
    const exec_code *body;
} session;

/* ---- building ---- */

/* Symbols and scalars get their slots first, since shapes are expressions over them. */
static void declare_params(session *self)
{
    self->param = base_array(self->exec->mem, exec_buffer *, self->p->n_params);
    for (int i = 0; i < self->p->n_symbols; i++)
        ir_exec_slot(&self->b, self->p->symbols[i]);
    for (int i = 0; i < self->p->n_params; i++)
        if (self->p->params[i].scalar)
            ir_exec_slot(&self->b, self->p->params[i].scalar);
        else
            self->param[i] = ir_exec_declare(&self->b, self->p->params[i].buffer, false);
    for (int i = 0; i < self->p->n_params && !self->exec->failed; i++)
        if (self->param[i])
            ir_exec_size_buffer(&self->b, self->param[i]);
}

/* From program to code: declares parameters and buffers, builds facts and body, and only then knows how many
 * variables and views the run needs. */
static bool build(session *self)
{
    declare_params(self);
    for (int i = 0; i < self->p->n_buffers && !self->exec->failed; i++)
        ir_exec_size_buffer(&self->b, ir_exec_declare(&self->b, self->p->buffers[i], true));
    ir_exec_count_blocks(&self->b, self->p->body);
    self->facts = ir_exec_exprs(&self->b, self->p->facts, self->p->n_facts);
    self->body = self->exec->failed ? NULL : ir_exec_build(&self->b, self->p->body);
    if (self->exec->failed)
        return false;
    ir_exec_place_buffers(&self->b, &self->once);
    self->exec->implied = self->run->implied_barriers || self->b.copies.n > 0;
    self->exec->var = base_array(self->exec->mem, ir_value, self->exec->n_slots);
    self->exec->view = base_array(self->exec->mem, exec_view *, self->exec->n_views);
    return true;
}

/* ---- symbols ---- */

/* Whether expr is a symbol without a value yet: an extent that is just this symbol gives it one. */
static bool is_open_symbol(session *self, const ir_expr *expr)
{
    if (!expr || expr->op != IR_VAR || base_map_has(&self->known, expr))
        return false;
    for (int i = 0; i < self->p->n_symbols; i++)
        if (self->p->symbols[i] == expr)
            return true;
    return false;
}

static void give(session *self, const ir_expr *var, int64_t value)
{
    self->exec->var[ir_exec_slot(&self->b, var)].i = value;
    base_map_put(self->exec->mem, &self->known, var, var);
}

/* Extents that are more than a symbol are checked later, when all symbols are known. */
static void bind_shape(session *self, const ir_buffer *buffer, const ir_array *array)
{
    for (int d = 0; d < buffer->n; d++)
        if (is_open_symbol(self, buffer->shape[d]))
            give(self, buffer->shape[d], array->shape[d]);
    for (int d = 0; buffer->strides && d < buffer->n; d++)
        if (is_open_symbol(self, buffer->strides[d]))
            give(self, buffer->strides[d], array->strides[d]);
}

/* The caller's list, for symbols that no shape gives. */
static void bind_listed(session *self, const ir_expr *symbol)
{
    for (int i = 0; i < self->run->n_symbols; i++)
        if (strcmp(self->run->symbol_name[i], symbol->var.name) == 0) {
            give(self, symbol, self->run->symbol_value[i]);
            return;
        }
    ir_exec_fail(self->exec, TEC_INVALID, symbol->loc,
                 "symbol '%s' has no value: no argument's shape gives it, and the caller does not",
                 symbol->var.name);
}

/* What the caller handed in must have the type and the number of dimensions that the program declares. */
static bool check_array(session *self, int index)
{
    const ir_buffer *buffer = self->p->params[index].buffer;
    const ir_array *array = self->run->args[index].array;

    if (!array)
        ir_exec_fail(self->exec, TEC_INVALID, buffer->loc, "argument '%s' has no array", buffer->name);
    else if (!base_dtype_same(array->dtype, buffer->dtype))
        ir_exec_fail(self->exec, TEC_INVALID, buffer->loc, "argument '%s' has type %s, expected %s",
                     buffer->name, base_dtype_text(self->exec->mem, array->dtype),
                     base_dtype_text(self->exec->mem, buffer->dtype));
    else if (array->n != buffer->n)
        ir_exec_fail(self->exec, TEC_INVALID, buffer->loc, "argument '%s' has %d dimensions, expected %d",
                     buffer->name, array->n, buffer->n);
    return !self->exec->failed;
}

/* Rounded or wrapped to the parameter's type, as a compiled function would see it. */
static void bind_scalar(session *self, int i)
{
    const ir_expr *var = self->p->params[i].scalar;
    const ir_arg *arg = &self->run->args[i];
    ir_value v = base_is_float(var->dtype) ? (ir_value){.f = ir_round_to(var->dtype, arg->scalar_float)}
                                           : (ir_value){.i = ir_wrap(var->dtype, (uint64_t)arg->scalar_int)};

    self->exec->var[ir_exec_slot(&self->b, var)] = v;
    base_map_put(self->exec->mem, &self->known, var, var);
}

static void refuse_fact(session *self, int i)
{
    const ir_expr *fact = self->p->facts[i];
    const char *text = ir_expr_text(self->exec->mem, fact),
               *reason = self->p->reasons ? self->p->reasons[i] : NULL;

    ir_exec_fail(self->exec, TEC_INVALID, fact->loc, "the promise '%s' does not hold for these arguments%s%s",
                 text, reason ? ": " : "", reason ? reason : "");
}

/* Scalars, then shapes, then the caller's list: a symbol gets its value where it is seen first, and later
 * ones must agree. The program's facts are checked last, when all symbols are known. */
static bool bind_symbols(session *self)
{
    for (int i = 0; i < self->p->n_params; i++)
        if (self->p->params[i].scalar)
            bind_scalar(self, i);
    for (int i = 0; i < self->p->n_params && !self->exec->failed; i++)
        if (self->param[i] && check_array(self, i))
            bind_shape(self, self->p->params[i].buffer, self->run->args[i].array);
    for (int i = 0; i < self->p->n_symbols && !self->exec->failed; i++)
        if (!base_map_has(&self->known, self->p->symbols[i]))
            bind_listed(self, self->p->symbols[i]);
    for (int i = 0; i < self->p->n_facts && !self->exec->failed; i++)
        if (!exec_run(self->exec, self->facts[i], 0).i)
            refuse_fact(self, i);
    return !self->exec->failed;
}

/* ---- argument memory ---- */

static void check_shape(session *self, int index, const exec_view *view)
{
    const ir_buffer *buffer = self->p->params[index].buffer;
    const ir_array *array = self->run->args[index].array;

    for (int d = 0; d < buffer->n; d++)
        if (array->shape[d] != view->shape[d])
            ir_exec_fail(self->exec, TEC_INVALID, buffer->loc,
                         "dimension %d of argument '%s' is %lld, expected %lld", d, buffer->name,
                         (long long)array->shape[d], (long long)view->shape[d]);
}

static bool overlap(const exec_store *left, const exec_store *right)
{
    return left->count && right->count && left->data < right->data + right->count * right->bytes &&
           right->data < left->data + left->count * left->bytes;
}

/* The store of an earlier argument at the same memory. */
static exec_store *find_shared(session *self, int index, const exec_store *mine)
{
    const ir_buffer *buffer = self->p->params[index].buffer;

    for (int j = 0; j < index; j++) {
        exec_store *other = self->param[j] ? self->exec->view[self->param[j]->slot]->store : NULL;
        const ir_buffer *name = self->p->params[j].buffer;
        if (!other || !overlap(mine, other))
            continue;
        if (buffer->alias == 0 || buffer->alias != name->alias)
            ir_exec_fail(self->exec, TEC_INVALID, buffer->loc,
                         "arguments '%s' and '%s' share memory, which the program excludes", name->name,
                         buffer->name);
        else if (mine->data != other->data || mine->count != other->count || mine->bytes != other->bytes)
            ir_exec_fail(self->exec, TEC_UNSUPPORTED, buffer->loc,
                         "arguments '%s' and '%s' share a part of their memory", name->name, buffer->name);
        return other;
    }
    return NULL;
}

/* Two arguments at the same address share one set of marks, so that a write through one is seen by reads of
 * the other. What an input holds counts as written. */
static exec_store *store_of_array(session *self, int index, int64_t count)
{
    const ir_buffer *buffer = self->p->params[index].buffer;
    exec_store mine = {
        .data = self->run->args[index].array->data, .count = count, .bytes = base_dtype_bytes(buffer->dtype)};
    exec_store *st = find_shared(self, index, &mine);

    if (!mine.data && count)
        ir_exec_fail(self->exec, TEC_INVALID, buffer->loc, "argument '%s' has no data", buffer->name);
    if (!st && !self->exec->failed &&
        (st = ir_exec_new_store(self->exec, buffer->dtype, 0, buffer->name, buffer->loc))) {
        exec_store *marks = ir_exec_new_store(self->exec, BASE_BOOL, count, buffer->name, buffer->loc);
        mine.flags = marks ? marks->flags : NULL;
        mine.shadow = marks ? marks->shadow : NULL;
        *st = mine;
    }
    if (!self->exec->failed && !self->p->params[index].output)
        memset(st->flags, EXEC_INITIALISED, (size_t)count);
    return st;
}

/* Views the caller's array as the program's buffer: shape, strides and offset of the declaration, which must
 * fit into the elements that were handed in. */
static void bind_array(session *self, int index)
{
    exec_view *view = base_new(self->exec->mem, exec_view);
    int64_t span;

    if (!ir_exec_shape_view(self->exec, self->param[index], view))
        return;
    check_shape(self, index, view);
    span = self->exec->failed ? -1 : ir_exec_span(self->exec, self->param[index], view);
    if (span < 0)
        return;
    if (view->offset < 0 || view->offset > INT64_MAX / 128)
        ir_exec_fail(self->exec, TEC_INVALID, self->param[index]->buffer->loc,
                     "argument '%s' begins at element %lld", self->param[index]->buffer->name,
                     (long long)view->offset);
    else
        view->store = store_of_array(self, index, view->offset + span);
    self->exec->view[self->param[index]->slot] = view;
}

/* Arguments first, then the buffers that exist once for the run. */
static bool bind_memory(session *self)
{
    for (int i = 0; i < self->p->n_params && !self->exec->failed; i++)
        if (self->param[i])
            bind_array(self, i);
    for (int i = 0; i < self->once.n && !self->exec->failed; i++) {
        exec_buffer *vb = self->once.at[i];
        self->exec->view[vb->slot] = ir_exec_new_view(self->exec, vb);
    }
    return !self->exec->failed;
}

/* ---- outputs ---- */

static void blame_unwritten(session *self, const ir_buffer *buffer, const int64_t *index)
{
    base_text t = {0};

    for (int d = 0; d < buffer->n; d++)
        base_addf(self->exec->mem, &t, "%s%lld", d ? ", " : "[", (long long)index[d]);
    self->exec->scope = NULL;
    ir_exec_fail(self->exec, TEC_INVALID, buffer->loc, "output '%s' is not written at %s%s", buffer->name,
                 buffer->n ? t.data : "its one element", buffer->n ? "]" : "");
}

/* Counts like an odometer; false after the last index. */
static bool next_index(int64_t *index, const int64_t *shape, int n)
{
    for (int d = n - 1; d >= 0; d--) {
        if (++index[d] < shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

/* Every element of an output must have been written; the message names the first that was not. */
static void check_output(session *self, int nth)
{
    const ir_buffer *buffer = self->p->params[nth].buffer;
    const exec_view *view = self->exec->view[self->param[nth]->slot];
    int64_t *index = base_array(self->exec->mem, int64_t, buffer->n);

    for (int d = 0; d < buffer->n; d++)
        if (view->shape[d] == 0)
            return;
    do {
        int64_t at = view->offset;
        for (int d = 0; d < buffer->n; d++)
            at += index[d] * view->strides[d];
        if (!(view->store->flags[at] & EXEC_WRITTEN)) {
            blame_unwritten(self, buffer, index);
            return;
        }
    } while (next_index(index, view->shape, buffer->n));
}

/* ---- the run ---- */

/* Build, bind, run, and look whether every output was written. */
static bool run(session *self)
{
    if (!build(self) || !bind_symbols(self) || !bind_memory(self))
        return false;
    exec_step(self->exec, self->body);
    for (int i = 0; i < self->p->n_params && !self->exec->failed; i++)
        if (self->p->params[i].output && self->param[i])
            check_output(self, i);
    return !self->exec->failed;
}

/* All memory of a run lies in a child context that is freed at the end, whatever happened; only messages
 * stay. */
bool ir_interpret(tec_context *cx, const ir_program *program, const ir_run *how)
{
    tec_context *mem;
    ir_exec *exec;
    bool ok;

    if (!program || base_failed(cx))
        return false;
    mem = base_child(cx);
    exec = base_new(mem, ir_exec);
    exec->cx = cx;
    exec->mem = mem;
    exec->checks_races = !how->unchecked_races;
    exec->max_steps = how->max_steps ? how->max_steps : default_steps;
    exec->max_bytes = (int64_t)DEFAULT_GIB << 30;
    exec->shuffle = (uint64_t)how->parallel_seed;
    session s = {.exec = exec, .p = program, .run = how};
    s.b = (exec_builder){.exec = exec, .names = &s.names};
    ok = run(&s);
    tec_context_free(mem);
    return ok;
}
