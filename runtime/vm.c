/* runtime/vm.c -- the loop that runs bytecode.
 *
 * A register that holds an object owns a reference. A call copies its arguments' references into the callee's
 * first registers; `ret` moves the results into the caller's registers and releases the rest of the frame;
 * `tail`
 * puts the arguments in the place of the frame. So the C stack does not grow, however deep a program calls.
 *
 * Frames lie one behind the other in p->registers, callers first:
 *
 *     base of main             base of f                 v->r points to the frame that runs
 *     | r0 r1 r2 (main) ...    | r0 r1 (f) ...           registers of objects that are not set are NULL
 *
 * Everything that could be wrong with the code itself was refused by verify.c; what is left to check here
 * depends on values: extents, constructors, limits.
 */
#include "runtime/vm.h"

#include <stdio.h>
#include <string.h>

#include "runtime/shape.h"
#include "runtime/tensor.h"

enum { LOOK_EVERY = 256 }; /* steps between looks at the clock and at a cancel */

/* A run. `r` must be set anew whenever p->registers moves, which only `reserve` does. */
typedef struct {
    tec_program *p;
    const rt_routine_desc *f;
    rt_word *r;           /* the registers of the frame that runs */
    int64_t base, depth;  /* of that frame */
    int32_t function, at; /* the instruction that runs */
    double until;
    rt_object **out;
    tec_error *err;
} run;

/* Names the line of the program's text where the code has lines. */
static bool fail(const run *v, tec_status status, const char *text)
{
    const rt_routine_desc *f = v->f;
    int32_t line = rt_line_of(f, v->at);

    if (f->file && line)
        return rt_fail(v->err, status, "%s:%d: in '%s': %s", f->file, (int)line, f->name, text);
    return rt_fail(v->err, status, "in '%s', word %d: %s", f->name, (int)v->at, text);
}

/* Runtime functions do not know the place; it is added here. */
static bool fail_inner(const run *v, const tec_error *inner)
{
    return fail(v, inner->status, inner->text);
}

/* ---- registers ---- */

/* By the register's type, not by its contents. */
static bool holds_object(const run *v, int32_t r)
{
    return v->p->objects[v->function][r / 64] >> (r % 64) & 1;
}

/* The register takes over the reference to o. The old object goes last, as o may be a part of it. */
static void set_object(const run *v, int32_t r, rt_object *o)
{
    rt_object *before = v->r[r].o;

    v->r[r].o = o;
    rt_release(before);
}

/* o: made by this instruction; NULL: that failed. */
static bool set_new(const run *v, int32_t r, rt_object *o, const tec_error *inner)
{
    if (!o)
        return fail_inner(v, inner);
    v->p->counts.allocations++;
    set_object(v, r, o);
    return true;
}

/* A number is copied as it is. */
static void copy_register(const run *v, int32_t to, int32_t from)
{
    if (holds_object(v, from))
        set_object(v, to, rt_retain(v->r[from].o));
    else
        v->r[to] = v->r[from];
}

/* 64 registers at a time, as most are numbers. */
static void release_frame(const run *v)
{
    const uint64_t *objects = v->p->objects[v->function];

    for (int32_t k = 0; k < v->f->n_registers; k += 64)
        for (uint64_t bits = objects[k / 64]; bits; bits &= bits - 1) {
            rt_object **o = &v->r[k + __builtin_ctzll(bits)].o;

            if (*o)
                rt_release(*o);
            *o = NULL;
        }
}

/* ---- frames ---- */

/* A larger array with the same items, zeros behind them. NULL with an error: the old one stays. */
static void *grown(void *old, int64_t *room, int64_t needed, size_t size, tec_error *err)
{
    int64_t more = *room ? *room : 256;
    void *larger;

    while (more < needed)
        more *= 2;
    larger = rt_alloc_array(more, size, err);
    if (!larger)
        return NULL;
    if (*room)
        memcpy(larger, old, (size_t)*room * size);
    rt_free(old);
    *room = more;
    return larger;
}

/* Room for a frame of the function at `base`; its registers are zero. The frame's pointer is adjusted, since
 * the array may have moved. */
static bool reserve(run *v, int64_t base, const rt_routine_desc *f)
{
    tec_program *p = v->p;
    tec_error inner = {0};
    rt_word *larger;

    if (base + f->n_registers <= p->n_registers)
        return true;
    larger = grown(p->registers, &p->n_registers, base + f->n_registers, sizeof *larger, &inner);
    if (!larger)
        return fail_inner(v, &inner);
    p->registers = larger;
    v->r = larger + v->base;
    return true;
}

/* The registers keep what they hold: zeros, or the arguments of a tail call. */
static void enter(run *v, int32_t function, int64_t base)
{
    v->function = function;
    v->f = &v->p->program->functions[function];
    v->base = base;
    v->r = v->p->registers + base;
    v->at = 0;
}

/* Remembers the caller, unless calls nest too deep. `at` still names the call, whose list of results is read
 * at the return. */
static bool push(run *v)
{
    tec_program *p = v->p;
    tec_error inner = {0};
    rt_call *larger;
    char text[120];

    if (v->depth >= p->options.max_depth) {
        snprintf(text, sizeof text, "calls nest deeper than the limit of %lld",
                 (long long)p->options.max_depth);
        return fail(v, TEC_INVALID, text);
    }
    if (v->depth == p->max_calls) {
        larger = grown(p->calls, &p->max_calls, v->depth + 1, sizeof *larger, &inner);
        if (!larger)
            return fail_inner(v, &inner);
        p->calls = larger;
    }
    p->calls[v->depth++] = (rt_call){v->function, v->at, v->base};
    return true;
}

/* Calls a function; its parameters are `given`, then the registers of the list. After `reserve` no pointer
 * into the registers from before may be used. */
static bool call(run *v, int32_t function, rt_node_object *given, const int32_t *list)
{
    const rt_routine_desc *f = &v->p->program->functions[function];
    int64_t base = v->base + v->f->n_registers;
    int32_t n = given ? given->n : 0;
    rt_word *to;

    if (!reserve(v, base, f) || !push(v))
        return false;
    to = v->p->registers + base;
    for (int32_t i = 0; i < n; i++)
        to[i].o = rt_retain(given->part[i]);
    for (int32_t i = 0; i < list[0]; i++)
        to[n + i].o = rt_retain(v->r[list[1 + i]].o);
    enter(v, function, base);
    return true;
}

/* The arguments are taken out before the frame is released, since they may be held by it alone. The larger of
 * both frames is cleared, so that registers behind the new frame are zero for calls. */
static bool tail(run *v, int32_t function, const int32_t *list)
{
    const rt_routine_desc *f = &v->p->program->functions[function];
    rt_object *args[RT_MAX_FIELDS];

    for (int32_t i = 0; i < list[0]; i++)
        args[i] = rt_retain(v->r[list[1 + i]].o);
    release_frame(v);
    if (!reserve(v, v->base, f)) {
        for (int32_t i = 0; i < list[0]; i++)
            rt_release(args[i]);
        return false;
    }
    memset(v->r, 0,
           (size_t)(v->f->n_registers > f->n_registers ? v->f->n_registers : f->n_registers) * sizeof *v->r);
    enter(v, function, v->base);
    for (int32_t i = 0; i < list[0]; i++)
        v->r[i].o = args[i];
    return true;
}

/* The registers that a call's results go to: the last list of the instruction. */
static const int32_t *result_list(const int32_t *w)
{
    return w + 3 + w[2];
}

/* false: the run has ended. Results are retained before the frame is released, and the caller's registers
 * take the references over. */
static bool give_results(run *v, const int32_t *list)
{
    const rt_call *c;
    rt_word *from = v->r;
    rt_object *out[RT_MAX_FIELDS];
    const int32_t *to;

    for (int32_t i = 0; i < list[0]; i++)
        out[i] = rt_retain(from[list[1 + i]].o);
    release_frame(v);
    memset(v->r, 0, (size_t)v->f->n_registers * sizeof *v->r);
    if (v->depth == 0) {
        memcpy(v->out, out, (size_t)list[0] * sizeof *out);
        return false;
    }
    c = &v->p->calls[--v->depth];
    enter(v, c->function, c->base);
    v->at = c->at;
    to = result_list(v->f->words + v->at);
    for (int32_t i = 0; i < to[0]; i++)
        set_object(v, to[1 + i], out[i]);
    v->at += rt_instruction_words(v->f->words, v->at, v->f->n_words);
    return true;
}

/* Releases everything that a run that failed has left. */
static void unwind(run *v)
{
    for (;;) {
        release_frame(v);
        memset(v->r, 0, (size_t)v->f->n_registers * sizeof *v->r);
        if (v->depth == 0)
            return;
        v->depth--;
        enter(v, v->p->calls[v->depth].function, v->p->calls[v->depth].base);
    }
}

/* ---- kernels ---- */

/* Most dimensions are a number or a symbol. False: the extent cannot be computed, which refuses the
 * argument. */
static bool evaluate(rt_dim d, const int64_t *symbols, int64_t *value)
{
    if (d.n == 2) {
        *value = d.word[0] == RT_DIM_CONST ? d.word[1] : symbols[d.word[1]];
        return true;
    }
    return rt_dim_eval(d, symbols, value, NULL);
}

static bool refuse_argument(const run *v, const rt_function_desc *k, int32_t i, const rt_tensor_object *t)
{
    char expected[160], where[100], found[100], text[512];
    const rt_param_desc *p = &k->params[i];

    snprintf(text, sizeof text, "'%s' of %s: expected %s%s, found %s", p->name, k->name,
             rt_shape_text(p->dtype, p->shape, p->rank, k->symbols, expected, sizeof expected),
             rt_where_text(p->shape, p->rank, k->symbols, v->p->dims, k->n_symbols, where, sizeof where),
             tec_tensor_text(&t->tensor, found, sizeof found));
    return fail(v, TEC_INVALID, text);
}

/* Constants have no storage and may be mapped read-only. */
static bool check_argument(const run *v, const rt_function_desc *k, int32_t i, const rt_tensor_object *t)
{
    const rt_param_desc *p = &k->params[i];
    int64_t extent;

    for (int32_t d = 0; d < p->rank; d++)
        if (!evaluate(p->shape[d], v->p->dims, &extent) || extent != t->shape[d])
            return refuse_argument(v, k, i, t);
    if (p->alignment && (uintptr_t)t->tensor.data % (uintptr_t)p->alignment)
        return fail(v, TEC_INVALID, "an argument is not aligned as its kernel asks");
    if (p->is_output && !t->storage)
        return fail(v, TEC_INVALID, "a constant is written");
    return true;
}

/* Within one storage only: storages do not overlap. */
static bool overlap(const rt_tensor_object *a, const rt_tensor_object *b)
{
    const char *x = a->tensor.data, *y = b->tensor.data;

    return a->storage && a->storage == b->storage && x < y + b->bytes && y < x + a->bytes;
}

static bool check_overlap(const run *v, const rt_function_desc *k, const int32_t *args)
{
    for (int32_t a = 0; a < k->n_params; a++)
        for (int32_t b = 0; b < k->n_params && k->params[a].is_output; b++)
            if (a != b && overlap(rt_as_tensor(v->r[args[a]].o), rt_as_tensor(v->r[args[b]].o)) &&
                !rt_may_alias(k, a, b))
                return fail(v, TEC_INVALID, "a kernel writes where another of its arguments lies");
    return true;
}

static bool reserve_workspace(const run *v, const rt_function_desc *k)
{
    tec_error inner = {0};
    int64_t bytes, thread_bytes;

    if (k->workspace.n == 0 && k->thread_workspace.n == 0)
        return true;
    return (rt_size_eval(k->workspace, v->p->dims, &bytes, k->name, &inner) &&
            rt_size_eval(k->thread_workspace, v->p->dims, &thread_bytes, k->name, &inner) &&
            rt_env_reserve(&v->p->env, bytes, thread_bytes, &inner)) ||
           fail_inner(v, &inner);
}

/* Everything that the metadata says of the kernel is checked before its code runs. */
static bool call_kernel(run *v, const int32_t *w)
{
    tec_program *p = v->p;
    const rt_function_desc *k = &p->desc->functions[w[1]];
    const int32_t *dims = w + 3, *args = dims + w[2] + 1;
    tec_error inner = {0};
    int32_t status;

    for (int32_t i = 0; i < k->n_symbols; i++)
        p->dims[i] = v->r[dims[i]].i;
    for (int32_t i = 0; i < k->n_params; i++) {
        rt_tensor_object *t = rt_as_tensor(v->r[args[i]].o);

        if (!check_argument(v, k, i, t))
            return false;
        p->args[i] = t->tensor.data;
    }
    if (!check_overlap(v, k, args) || !reserve_workspace(v, k))
        return false;
    if (k->n_facts &&
        !rt_facts_hold(k->facts, k->n_facts, k->symbols, p->dims, k->n_symbols, k->name, &inner))
        return fail_inner(v, &inner);
    p->counts.kernels++;
    status = rt_env_call(&p->env, rt_module_code(p->module, w[1]), p->args, p->dims);
    if (status == 0)
        return true;
    rt_env_fail(&p->env, status, k->name, &inner);
    return fail_inner(v, &inner);
}

/* ---- other instructions ---- */

/* Extents and offset are numbers in the code, or registers. */
static bool alloc_tensor(run *v, const int32_t *w)
{
    bool in_registers = w[0] == RT_ALLOC_TENSOR_REG;
    const rt_type_desc *t = &v->p->program->types[v->f->registers[w[1]]];
    int64_t shape[RT_MAX_RANK];
    tec_error inner = {0};

    for (int32_t d = 0; d < t->rank; d++)
        shape[d] = in_registers ? v->r[w[5 + d]].i : w[5 + d];
    return set_new(v, w[1],
                   rt_new_tensor(v->p->heap, v->r[w[2]].o, in_registers ? v->r[w[3]].i : w[3], t->dtype,
                                 t->rank, shape, &inner),
                   &inner);
}

static bool alloc_node(run *v, const int32_t *w)
{
    const rt_type_desc *t = &v->p->program->types[v->f->registers[w[1]]];
    rt_object_kind kind = w[0] == RT_ALLOC_CLOSURE   ? RT_OBJECT_CLOSURE
                          : t->kind == RT_TYPE_TUPLE ? RT_OBJECT_TUPLE
                                                     : RT_OBJECT_DATA;
    int32_t what = kind == RT_OBJECT_CLOSURE ? w[2] : t->data, tag = kind == RT_OBJECT_DATA ? w[2] : 0;
    tec_error inner = {0};
    rt_node_object *o = rt_new_node(v->p->heap, kind, what, tag, w[3], &inner);

    for (int32_t i = 0; o && i < w[3]; i++)
        o->part[i] = rt_retain(v->r[w[4 + i]].o);
    return set_new(v, w[1], o ? &o->head : NULL, &inner);
}

/* The value's constructor is known only now. */
static bool get_field(run *v, const int32_t *w)
{
    const rt_node_object *o = rt_as_node(v->r[w[2]].o);

    if (o->tag != w[3])
        return fail(v, TEC_INVALID, "a field of another constructor is read");
    set_object(v, w[1], rt_retain(o->part[w[4]]));
    return true;
}

static bool copy_tensor(run *v, const int32_t *w)
{
    rt_tensor_object *from = rt_as_tensor(v->r[w[1]].o), *to = rt_as_tensor(v->r[w[2]].o);

    if (!to->storage)
        return fail(v, TEC_INVALID, "a constant is written");
    if (to->bytes != from->bytes)
        return fail(v, TEC_INVALID, "tensors of different sizes are copied");
    memmove(to->tensor.data, from->tensor.data, (size_t)to->bytes);
    return true;
}

/* The storage is held by the tensor alone afterwards. */
static bool shape_of(run *v, const int32_t *w)
{
    const rt_tensor_object *t = rt_as_tensor(v->r[w[2]].o);
    int64_t rank = t->tensor.ndim;
    tec_error inner = {0};
    rt_object *s = rt_new_storage(v->p->heap, rank * 8, &inner),
              *made = s ? rt_new_tensor(v->p->heap, s, 0, BASE_I64, 1, &rank, &inner) : NULL;

    if (made && rank)
        memcpy(rt_as_tensor(made)->tensor.data, t->shape, (size_t)rank * 8);
    rt_release(s);
    return set_new(v, w[1], made, &inner);
}

static bool reshape(run *v, const int32_t *w)
{
    int64_t shape[RT_MAX_RANK];
    tec_error inner = {0};

    for (int32_t d = 0; d < w[3]; d++)
        shape[d] = v->r[w[4 + d]].i;
    return set_new(v, w[1], rt_new_view(v->p->heap, v->r[w[2]].o, w[3], shape, &inner), &inner);
}

/* p->dims is free between kernel calls. */
static bool compute_dim(run *v, const int32_t *w)
{
    tec_error inner = {0};

    for (int32_t i = 0; i < w[3]; i++)
        v->p->dims[i] = v->r[w[4 + i]].i;
    return rt_dim_eval(v->p->program->dims[w[2]], v->p->dims, &v->r[w[1]].i, &inner) || fail_inner(v, &inner);
}

/* By the tensor's own type; verify.c admits integers and truth values. */
static int64_t read_scalar(const rt_tensor_object *t)
{
    const void *data = t->tensor.data;

    switch (t->tensor.dtype.bits) {
    case 8: return t->tensor.dtype.code == kDLBool ? *(const uint8_t *)data != 0 : *(const int8_t *)data;
    case 16: return *(const int16_t *)data;
    case 32: return *(const int32_t *)data;
    default: return *(const int64_t *)data;
    }
}

static bool to_tensor(run *v, const int32_t *w)
{
    base_dtype t = v->p->program->types[v->f->registers[w[1]]].dtype;
    int64_t number = t.code == kDLBool ? v->r[w[2]].i != 0 : v->r[w[2]].i;
    tec_error inner = {0};
    rt_object *s = rt_new_storage(v->p->heap, 8, &inner),
              *made = s ? rt_new_tensor(v->p->heap, s, 0, t, 0, NULL, &inner) : NULL;

    if (made) /* little endian: the number's first bytes are the element */
        memcpy(rt_as_tensor(made)->tensor.data, &number, (size_t)base_dtype_bytes(t));
    rt_release(s);
    return set_new(v, w[1], made, &inner);
}

static bool take_row(run *v, const int32_t *w)
{
    tec_error inner = {0};

    return set_new(v, w[1], rt_new_row(v->p->heap, v->r[w[2]].o, v->r[w[3]].i, &inner), &inner);
}

/* The register's reference goes to rt_append, so that a tensor that nobody else holds is extended in place.
 */
static bool append(run *v, const int32_t *w)
{
    tec_error inner = {0};
    rt_object *made, *tensor = v->r[w[2]].o;

    if (w[1] != w[2]) {
        rt_object *copy = rt_retain(tensor);

        made = rt_append(v->p->heap, copy, v->r[w[3]].o, &inner);
        if (!made)
            rt_release(copy);
        return set_new(v, w[1], made, &inner);
    }
    made = rt_append(v->p->heap, tensor, v->r[w[3]].o, &inner);
    if (!made)
        return fail_inner(v, &inner);
    v->p->counts.allocations += made != tensor;
    v->r[w[1]].o = made;
    return true;
}

/* The number comes from a tag, so this fails only for damaged values. */
static bool choose(run *v, const int32_t *w)
{
    int64_t k = v->r[w[1]].i;

    if (k < 0 || k >= w[2])
        return fail(v, TEC_INVALID, "a switch has no such place");
    v->at = w[3 + k];
    return true;
}

/* The limits of a run: steps at each one, clock and cancel now and then. A cancel is taken once: the next run
 * begins without it. */
static bool look_around(const run *v)
{
    tec_program *p = v->p;
    char text[100];

    if (p->options.max_steps && p->counts.steps >= p->options.max_steps) {
        snprintf(text, sizeof text, "the limit of %lld steps is reached", (long long)p->options.max_steps);
        return fail(v, TEC_INVALID, text);
    }
    if (p->counts.steps % LOOK_EVERY)
        return true;
    if (atomic_load_explicit(&p->cancelled, memory_order_relaxed) && atomic_exchange(&p->cancelled, false))
        return fail(v, TEC_INVALID, "the run was cancelled");
    if (v->until > 0 && tec_clock() > v->until)
        return fail(v, TEC_INVALID, "the run's time is over");
    return true;
}

/* ---- the loop ---- */

/* The instructions of a fixed length, which the loops of a program run most. Gives the length in words; 0:
 * the instruction failed. */
static int32_t set_register(run *v, const int32_t *w)
{
    tec_program *p = v->p;
    tec_error inner = {0};

    switch ((rt_instruction)w[0]) {
    case RT_MOVE: copy_register(v, w[1], w[2]); return 3;
    case RT_LOAD_CONST: set_object(v, w[1], p->constants[w[2]]); return 3;
    case RT_LOAD_CONSTI: v->r[w[1]].i = w[2]; return 3;
    case RT_ALLOC_STORAGE:
        return set_new(v, w[1], rt_new_storage(p->heap, v->r[w[2]].i, &inner), &inner) ? 4 : 0;
    case RT_FREE_STORAGE:
    case RT_FREE_TENSOR: set_object(v, w[1], NULL); return 2;
    case RT_GET_TAG: v->r[w[1]].i = rt_as_node(v->r[w[2]].o)->tag; return 3;
    case RT_CHECK: return v->r[w[1]].i || fail(v, TEC_INVALID, p->program->texts[w[2]]) ? 3 : 0;
    case RT_EXTENT: v->r[w[1]].i = rt_as_tensor(v->r[w[2]].o)->shape[w[3]]; return 4;
    case RT_SCALAR: v->r[w[1]].i = read_scalar(rt_as_tensor(v->r[w[2]].o)); return 3;
    default: fail(v, TEC_INTERNAL, "no instruction of a fixed length"); return 0;
    }
}

/* The instructions that make or change an object. Most hold a list, so their length is counted. */
static bool make_object(run *v, const int32_t *w)
{
    switch ((rt_instruction)w[0]) {
    case RT_INVOKE_PACKED: return call_kernel(v, w);
    case RT_ALLOC_TENSOR:
    case RT_ALLOC_TENSOR_REG: return alloc_tensor(v, w);
    case RT_ALLOC_ADT:
    case RT_ALLOC_CLOSURE: return alloc_node(v, w);
    case RT_GET_FIELD: return get_field(v, w);
    case RT_DEVICE_COPY: return copy_tensor(v, w);
    case RT_SHAPE_OF: return shape_of(v, w);
    case RT_RESHAPE_TENSOR: return reshape(v, w);
    case RT_TO_TENSOR: return to_tensor(v, w);
    case RT_ROW: return take_row(v, w);
    case RT_APPEND: return append(v, w);
    case RT_DIM: return compute_dim(v, w);
    default: return fail(v, TEC_INTERNAL, "no instruction that makes an object");
    }
}

/* One instruction. *done: the run has ended. Jumps and calls set `at` themselves; behind any other
 * instruction it moves on only where the instruction succeeded, so that an error names the instruction's own
 * line. All instructions are listed here, so that the compiler names one that is missing. */
static bool step(run *v, bool *done)
{
    const int32_t *w = v->f->words + v->at;
    int32_t words = 0;

    switch ((rt_instruction)w[0]) {
    case RT_RET: *done = !give_results(v, w + 1); return true;
    case RT_IF: v->at = v->r[w[1]].i ? w[2] : w[3]; return true;
    case RT_GOTO: v->at = w[1]; return true;
    case RT_SWITCH: return choose(v, w);
    case RT_INVOKE: return call(v, w[1], NULL, w + 2);
    case RT_INVOKE_CLOSURE: {
        rt_node_object *c = rt_as_node(v->r[w[1]].o);

        return call(v, c->what, c, w + 2);
    }
    case RT_TAIL: return tail(v, w[1], w + 2);
    case RT_FATAL: return fail(v, TEC_INVALID, v->p->program->texts[w[1]]);
    case RT_MOVE:
    case RT_LOAD_CONST:
    case RT_LOAD_CONSTI:
    case RT_ALLOC_STORAGE:
    case RT_FREE_STORAGE:
    case RT_FREE_TENSOR:
    case RT_GET_TAG:
    case RT_CHECK:
    case RT_EXTENT:
    case RT_SCALAR: words = set_register(v, w); break;
    case RT_INVOKE_PACKED:
    case RT_ALLOC_TENSOR:
    case RT_ALLOC_TENSOR_REG:
    case RT_ALLOC_ADT:
    case RT_ALLOC_CLOSURE:
    case RT_GET_FIELD:
    case RT_DEVICE_COPY:
    case RT_SHAPE_OF:
    case RT_RESHAPE_TENSOR:
    case RT_TO_TENSOR:
    case RT_ROW:
    case RT_APPEND:
    case RT_DIM:
        words = make_object(v, w) ? rt_instruction_words(v->f->words, v->at, v->f->n_words) : 0;
        break;
    case RT_N_INSTRUCTIONS: return fail(v, TEC_INTERNAL, "no instruction");
    }
    v->at += words;
    return words > 0;
}

/* The one way in. Whatever ends the run, all frames are released before it returns. A step counts even if it
 * fails. */
bool rt_vm_run(tec_program *p, int32_t function, rt_object *const *in, rt_object **out, tec_error *err)
{
    run v = {.p = p, .out = out, .err = err, .f = &p->program->functions[function], .function = function};
    int64_t before = rt_heap_system_calls(p->heap);
    bool done = false, ok;
    unsigned mode;

    p->counts = (tec_program_counts){0};
    v.until = p->options.deadline > 0 ? tec_clock() + p->options.deadline : 0;
    if (!reserve(&v, 0, v.f))
        return false;
    enter(&v, function, 0);
    for (int32_t i = 0; i < v.f->n_params; i++)
        v.r[i].o = rt_retain(in[i]);
    mode = rt_env_enter(&p->env);
    do {
        ok = look_around(&v) && step(&v, &done);
        p->counts.steps++;
    } while (ok && !done);
    rt_env_leave(&p->env, mode);
    if (!ok)
        unwind(&v);
    p->counts.from_system = rt_heap_system_calls(p->heap) - before;
    p->counts.bytes = rt_heap_bytes(p->heap);
    return ok;
}
