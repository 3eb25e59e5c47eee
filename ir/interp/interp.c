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
    ir_vm *vm;
    const ir_program *p;
    const ir_run *run;
    vm_builder b;
    vm_names names;
    vm_buffer **param; /* NULL for scalars */
    base_map known;    /* symbols that have their value */
    base_vec once;
    const vm_node *const *facts;
    const vm_code *body;
} session;

/* ---- building ---- */

/* Symbols and scalars get their slots first, since shapes are expressions over them. */
static void declare_params(session *s)
{
    s->param = base_array(s->vm->mem, vm_buffer *, s->p->n_params);
    for (int i = 0; i < s->p->n_symbols; i++)
        ir_vm_slot(&s->b, s->p->symbols[i]);
    for (int i = 0; i < s->p->n_params; i++)
        if (s->p->params[i].scalar)
            ir_vm_slot(&s->b, s->p->params[i].scalar);
        else
            s->param[i] = ir_vm_declare(&s->b, s->p->params[i].buffer, false);
    for (int i = 0; i < s->p->n_params && !s->vm->failed; i++)
        if (s->param[i])
            ir_vm_size_buffer(&s->b, s->param[i]);
}

/* From program to code: declares parameters and buffers, builds facts and body, and only then knows how many
 * variables and views the run needs. */
static bool build(session *s)
{
    declare_params(s);
    for (int i = 0; i < s->p->n_buffers && !s->vm->failed; i++)
        ir_vm_size_buffer(&s->b, ir_vm_declare(&s->b, s->p->buffers[i], true));
    ir_vm_count_blocks(&s->b, s->p->body);
    s->facts = ir_vm_exprs(&s->b, s->p->facts, s->p->n_facts);
    s->body = s->vm->failed ? NULL : ir_vm_build(&s->b, s->p->body);
    if (s->vm->failed)
        return false;
    ir_vm_place_buffers(&s->b, &s->once);
    s->vm->implied = s->run->implied_barriers || s->b.copies.n > 0;
    s->vm->var = base_array(s->vm->mem, ir_value, s->vm->n_slots);
    s->vm->view = base_array(s->vm->mem, vm_view *, s->vm->n_views);
    return true;
}

/* ---- symbols ---- */

/* Whether e is a symbol without a value yet: an extent that is just this symbol gives it one. */
static bool is_open_symbol(session *s, const ir_expr *e)
{
    if (!e || e->op != IR_VAR || base_map_has(&s->known, e))
        return false;
    for (int i = 0; i < s->p->n_symbols; i++)
        if (s->p->symbols[i] == e)
            return true;
    return false;
}

static void give(session *s, const ir_expr *var, int64_t value)
{
    s->vm->var[ir_vm_slot(&s->b, var)].i = value;
    base_map_put(s->vm->mem, &s->known, var, var);
}

/* Extents that are more than a symbol are checked later, when all symbols are known. */
static void bind_shape(session *s, const ir_buffer *buffer, const ir_array *a)
{
    for (int d = 0; d < buffer->n; d++)
        if (is_open_symbol(s, buffer->shape[d]))
            give(s, buffer->shape[d], a->shape[d]);
    for (int d = 0; buffer->strides && d < buffer->n; d++)
        if (is_open_symbol(s, buffer->strides[d]))
            give(s, buffer->strides[d], a->strides[d]);
}

/* The caller's list, for symbols that no shape gives. */
static void bind_listed(session *s, const ir_expr *symbol)
{
    for (int i = 0; i < s->run->n_symbols; i++)
        if (strcmp(s->run->symbol_name[i], symbol->var.name) == 0) {
            give(s, symbol, s->run->symbol_value[i]);
            return;
        }
    ir_vm_fail(s->vm, TEC_INVALID, symbol->loc,
               "symbol '%s' has no value: no argument's shape gives it, and the caller does not",
               symbol->var.name);
}

/* What the caller handed in must have the type and the number of dimensions that the program declares. */
static bool check_array(session *s, int i)
{
    const ir_buffer *buffer = s->p->params[i].buffer;
    const ir_array *a = s->run->args[i].array;

    if (!a)
        ir_vm_fail(s->vm, TEC_INVALID, buffer->loc, "argument '%s' has no array", buffer->name);
    else if (!base_dtype_same(a->dtype, buffer->dtype))
        ir_vm_fail(s->vm, TEC_INVALID, buffer->loc, "argument '%s' has type %s, expected %s", buffer->name,
                   base_dtype_text(s->vm->mem, a->dtype), base_dtype_text(s->vm->mem, buffer->dtype));
    else if (a->n != buffer->n)
        ir_vm_fail(s->vm, TEC_INVALID, buffer->loc, "argument '%s' has %d dimensions, expected %d",
                   buffer->name, a->n, buffer->n);
    return !s->vm->failed;
}

/* Rounded or wrapped to the parameter's type, as a compiled function would see it. */
static void bind_scalar(session *s, int i)
{
    const ir_expr *var = s->p->params[i].scalar;
    const ir_arg *arg = &s->run->args[i];
    ir_value v = base_is_float(var->dtype) ? (ir_value){.f = ir_round_to(var->dtype, arg->scalar_float)}
                                           : (ir_value){.i = ir_wrap(var->dtype, (uint64_t)arg->scalar_int)};

    s->vm->var[ir_vm_slot(&s->b, var)] = v;
    base_map_put(s->vm->mem, &s->known, var, var);
}

static void refuse_fact(session *s, int i)
{
    const ir_expr *fact = s->p->facts[i];
    const char *text = ir_expr_text(s->vm->mem, fact), *reason = s->p->reasons ? s->p->reasons[i] : NULL;

    ir_vm_fail(s->vm, TEC_INVALID, fact->loc, "the promise '%s' does not hold for these arguments%s%s", text,
               reason ? ": " : "", reason ? reason : "");
}

/* Scalars, then shapes, then the caller's list: a symbol gets its value where it is seen first, and later
 * ones must agree. The program's facts are checked last, when all symbols are known. */
static bool bind_symbols(session *s)
{
    for (int i = 0; i < s->p->n_params; i++)
        if (s->p->params[i].scalar)
            bind_scalar(s, i);
    for (int i = 0; i < s->p->n_params && !s->vm->failed; i++)
        if (s->param[i] && check_array(s, i))
            bind_shape(s, s->p->params[i].buffer, s->run->args[i].array);
    for (int i = 0; i < s->p->n_symbols && !s->vm->failed; i++)
        if (!base_map_has(&s->known, s->p->symbols[i]))
            bind_listed(s, s->p->symbols[i]);
    for (int i = 0; i < s->p->n_facts && !s->vm->failed; i++)
        if (!vm_run(s->vm, s->facts[i], 0).i)
            refuse_fact(s, i);
    return !s->vm->failed;
}

/* ---- argument memory ---- */

static void check_shape(session *s, int i, const vm_view *view)
{
    const ir_buffer *buffer = s->p->params[i].buffer;
    const ir_array *a = s->run->args[i].array;

    for (int d = 0; d < buffer->n; d++)
        if (a->shape[d] != view->shape[d])
            ir_vm_fail(s->vm, TEC_INVALID, buffer->loc,
                       "dimension %d of argument '%s' is %lld, expected %lld", d, buffer->name,
                       (long long)a->shape[d], (long long)view->shape[d]);
}

static bool overlap(const vm_store *a, const vm_store *b)
{
    return a->count && b->count && a->data < b->data + b->count * b->bytes &&
           b->data < a->data + a->count * a->bytes;
}

/* The store of an earlier argument at the same memory. */
static vm_store *find_shared(session *s, int i, const vm_store *mine)
{
    const ir_buffer *buffer = s->p->params[i].buffer;

    for (int j = 0; j < i; j++) {
        vm_store *other = s->param[j] ? s->vm->view[s->param[j]->slot]->store : NULL;
        const ir_buffer *name = s->p->params[j].buffer;
        if (!other || !overlap(mine, other))
            continue;
        if (buffer->alias == 0 || buffer->alias != name->alias)
            ir_vm_fail(s->vm, TEC_INVALID, buffer->loc,
                       "arguments '%s' and '%s' share memory, which the program excludes", name->name,
                       buffer->name);
        else if (mine->data != other->data || mine->count != other->count || mine->bytes != other->bytes)
            ir_vm_fail(s->vm, TEC_UNSUPPORTED, buffer->loc,
                       "arguments '%s' and '%s' share a part of their memory", name->name, buffer->name);
        return other;
    }
    return NULL;
}

/* Two arguments at the same address share one set of marks, so that a write through one is seen by reads of
 * the other. What an input holds counts as written. */
static vm_store *store_of_array(session *s, int i, int64_t count)
{
    const ir_buffer *buffer = s->p->params[i].buffer;
    vm_store mine = {
        .data = s->run->args[i].array->data, .count = count, .bytes = base_dtype_bytes(buffer->dtype)};
    vm_store *st = find_shared(s, i, &mine);

    if (!mine.data && count)
        ir_vm_fail(s->vm, TEC_INVALID, buffer->loc, "argument '%s' has no data", buffer->name);
    if (!st && !s->vm->failed && (st = ir_vm_new_store(s->vm, buffer->dtype, 0, buffer->name, buffer->loc))) {
        vm_store *marks = ir_vm_new_store(s->vm, BASE_BOOL, count, buffer->name, buffer->loc);
        mine.flags = marks ? marks->flags : NULL;
        mine.shadow = marks ? marks->shadow : NULL;
        *st = mine;
    }
    if (!s->vm->failed && !s->p->params[i].output)
        memset(st->flags, VM_INITIALISED, (size_t)count);
    return st;
}

/* Views the caller's array as the program's buffer: shape, strides and offset of the declaration, which must
 * fit into the elements that were handed in. */
static void bind_array(session *s, int i)
{
    vm_view *view = base_new(s->vm->mem, vm_view);
    int64_t span;

    if (!ir_vm_shape_view(s->vm, s->param[i], view))
        return;
    check_shape(s, i, view);
    span = s->vm->failed ? -1 : ir_vm_span(s->vm, s->param[i], view);
    if (span < 0)
        return;
    if (view->offset < 0 || view->offset > INT64_MAX / 128)
        ir_vm_fail(s->vm, TEC_INVALID, s->param[i]->buffer->loc, "argument '%s' begins at element %lld",
                   s->param[i]->buffer->name, (long long)view->offset);
    else
        view->store = store_of_array(s, i, view->offset + span);
    s->vm->view[s->param[i]->slot] = view;
}

/* Arguments first, then the buffers that exist once for the run. */
static bool bind_memory(session *s)
{
    for (int i = 0; i < s->p->n_params && !s->vm->failed; i++)
        if (s->param[i])
            bind_array(s, i);
    for (int i = 0; i < s->once.n && !s->vm->failed; i++) {
        vm_buffer *vb = s->once.at[i];
        s->vm->view[vb->slot] = ir_vm_new_view(s->vm, vb);
    }
    return !s->vm->failed;
}

/* ---- outputs ---- */

static void blame_unwritten(session *s, const ir_buffer *buffer, const int64_t *index)
{
    base_text t = {0};

    for (int d = 0; d < buffer->n; d++)
        base_addf(s->vm->mem, &t, "%s%lld", d ? ", " : "[", (long long)index[d]);
    s->vm->scope = NULL;
    ir_vm_fail(s->vm, TEC_INVALID, buffer->loc, "output '%s' is not written at %s%s", buffer->name,
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
static void check_output(session *s, int i)
{
    const ir_buffer *buffer = s->p->params[i].buffer;
    const vm_view *view = s->vm->view[s->param[i]->slot];
    int64_t *index = base_array(s->vm->mem, int64_t, buffer->n);

    for (int d = 0; d < buffer->n; d++)
        if (view->shape[d] == 0)
            return;
    do {
        int64_t at = view->offset;
        for (int d = 0; d < buffer->n; d++)
            at += index[d] * view->strides[d];
        if (!(view->store->flags[at] & VM_WRITTEN)) {
            blame_unwritten(s, buffer, index);
            return;
        }
    } while (next_index(index, view->shape, buffer->n));
}

/* ---- the run ---- */

/* Build, bind, run, and look whether every output was written. */
static bool run(session *s)
{
    if (!build(s) || !bind_symbols(s) || !bind_memory(s))
        return false;
    vm_step(s->vm, s->body);
    for (int i = 0; i < s->p->n_params && !s->vm->failed; i++)
        if (s->p->params[i].output && s->param[i])
            check_output(s, i);
    return !s->vm->failed;
}

/* All memory of a run lies in a child context that is freed at the end, whatever happened; only messages
 * stay. */
bool ir_interpret(tec_context *cx, const ir_program *p, const ir_run *how)
{
    tec_context *mem;
    ir_vm *vm;
    bool ok;

    if (!p || base_failed(cx))
        return false;
    mem = base_child(cx);
    vm = base_new(mem, ir_vm);
    vm->cx = cx;
    vm->mem = mem;
    vm->checks_races = !how->unchecked_races;
    vm->max_steps = how->max_steps ? how->max_steps : default_steps;
    vm->max_bytes = (int64_t)DEFAULT_GIB << 30;
    vm->shuffle = (uint64_t)how->parallel_seed;
    session s = {.vm = vm, .p = p, .run = how};
    s.b = (vm_builder){.vm = vm, .names = &s.names};
    ok = run(&s);
    tec_context_free(mem);
    return ok;
}
