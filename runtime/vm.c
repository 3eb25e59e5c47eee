/* runtime/vm.c -- the loop that runs bytecode.
 *
 * A register that holds an object owns a reference. A call copies its arguments' references into the callee's
 * first registers; `ret` moves the results into the caller's registers and releases the rest of the frame;
 * `tail` puts the arguments in the place of the frame. So the C stack does not grow, however deep a program
 * calls.
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

#include "runtime/fixed.h"
#include "runtime/launch.h"
#include "runtime/mirror.h"
#include "runtime/ranges.h"
#include "runtime/rivals.h"
#include "runtime/shape.h"
#include "runtime/tensor.h"

enum { LOOK_EVERY = 256 }; /* steps between looks at the limits, the clock and a cancel */

/* Short instructions are compiled into the loop, and long ones are functions of their own. So the loop keeps
 * the processor's registers from one instruction to the next, and only long instructions save them. */
#define IN_LOOP static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))

/* A run. `r` must be set anew whenever p->registers moves, which only `reserve` does. */
typedef struct {
    tec_program *p;
    const rt_vm_function *f;
    rt_word *r;          /* the registers of the frame that runs */
    int64_t base, depth; /* of that frame */
    int32_t at;          /* the instruction that runs */
    int64_t steps, look; /* done, and before which one to look around */
    double until;
    rt_object **out;
    tec_error *err;
    tec_error *inner; /* what a function of the runtime says, without a place; ends the run */
} run;

/* Names the line of the program's text, or the node of the model, where the code has such places. */
APART bool fail(const run *self, tec_status status, const char *text)
{
    return rt_fail_at(self->p->program, self->f->desc, self->at, status, text, self->err);
}

/* Runtime functions do not know the place; it is added here. */
static bool fail_inner(const run *self)
{
    return fail(self, self->inner->status, self->inner->text);
}

/* ---- registers ---- */

/* By the register's type, not by its contents. */
IN_LOOP bool holds_object(const run *self, int32_t r)
{
    return self->f->objects[r / 64] >> (r % 64) & 1;
}

/* The register takes over the reference to object. The old object goes last, as object may be a part of
 * it. */
IN_LOOP void set_object(const run *self, int32_t r, rt_object *object)
{
    rt_object *before = self->r[r].o;

    self->r[r].o = object;
    rt_release(before);
}

/* object: made by this instruction; NULL: that failed. */
static bool set_new(const run *self, int32_t r, rt_object *object)
{
    if (!object)
        return fail_inner(self);
    self->p->counts.allocations++;
    set_object(self, r, object);
    return true;
}

/* A number is copied as it is. */
IN_LOOP void copy_register(const run *self, int32_t to, int32_t from)
{
    if (holds_object(self, from))
        set_object(self, to, rt_retain(self->r[from].o));
    else
        self->r[to] = self->r[from];
}

/* Registers of frames that do not run are zero. Objects are looked for 64 registers at a time, as most are
 * numbers. */
static void release_frame(const run *self)
{
    const uint64_t *objects = self->f->objects;

    for (int32_t k = 0; k < self->f->n_registers; k += 64)
        for (uint64_t bits = objects[k / 64]; bits; bits &= bits - 1)
            rt_release(self->r[k + __builtin_ctzll(bits)].o);
    memset(self->r, 0, (size_t)self->f->n_registers * sizeof *self->r);
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
static bool reserve(run *self, int64_t base, const rt_vm_function *f)
{
    tec_program *program = self->p;
    rt_word *larger;

    if (base + f->n_registers <= program->n_registers)
        return true;
    larger =
        grown(program->registers, &program->n_registers, base + f->n_registers, sizeof *larger, self->inner);
    if (!larger)
        return fail_inner(self);
    program->registers = larger;
    self->r = larger + self->base;
    return true;
}

/* The registers keep what they hold: zeros, or the arguments of a tail call. */
static void enter(run *self, const rt_vm_function *f, int64_t base)
{
    self->f = f;
    self->base = base;
    self->r = self->p->registers + base;
    self->at = 0;
}

/* Remembers the caller, unless calls nest too deep. `at` still names the call, whose list of results is read
 * at the return. */
static bool push(run *self)
{
    tec_program *program = self->p;
    rt_call *larger;
    char text[120];

    if (self->depth >= program->options.max_depth) {
        snprintf(text, sizeof text, "calls nest deeper than the limit of %lld",
                 (long long)program->options.max_depth);
        return fail(self, TEC_INVALID, text);
    }
    if (self->depth == program->max_calls) {
        larger = grown(program->calls, &program->max_calls, self->depth + 1, sizeof *larger, self->inner);
        if (!larger)
            return fail_inner(self);
        program->calls = larger;
    }
    program->calls[self->depth++] = (rt_call){self->f, self->base, self->at};
    return true;
}

/* Calls a function; its parameters are `given`, then the registers of the list. After `reserve` no pointer
 * into the registers from before may be used. */
APART bool call(run *self, int32_t function, rt_node_object *given, const int32_t *list)
{
    const rt_vm_function *f = self->p->functions[function];
    int64_t base = self->base + self->f->n_registers;
    int32_t n = given ? given->n : 0;
    rt_word *to;

    if (!reserve(self, base, f) || !push(self))
        return false;
    to = self->p->registers + base;
    for (int32_t i = 0; i < n; i++)
        to[i].o = rt_retain(given->part[i]);
    for (int32_t i = 0; i < list[0]; i++)
        to[n + i].o = rt_retain(self->r[list[1 + i]].o);
    enter(self, f, base);
    return true;
}

/* The arguments are taken out before the frame is released, since they may be held by it alone. */
APART bool tail(run *self, int32_t function, const int32_t *list)
{
    const rt_vm_function *f = self->p->functions[function];
    rt_object *args[RT_MAX_FIELDS];

    for (int32_t i = 0; i < list[0]; i++)
        args[i] = rt_retain(self->r[list[1 + i]].o);
    release_frame(self);
    if (!reserve(self, self->base, f)) {
        for (int32_t i = 0; i < list[0]; i++)
            rt_release(args[i]);
        return false;
    }
    enter(self, f, self->base);
    for (int32_t i = 0; i < list[0]; i++)
        self->r[i].o = args[i];
    return true;
}

/* The registers that a call's results go to: the last list of the instruction. */
static const int32_t *result_list(const int32_t *w)
{
    return w + 3 + w[2];
}

/* false: the run has ended. Results are retained before the frame is released, and the caller's registers
 * take the references over. */
APART bool give_results(run *self, const int32_t *list)
{
    const rt_call *call;
    rt_word *from = self->r;
    rt_object *out[RT_MAX_FIELDS];
    const int32_t *to;

    for (int32_t i = 0; i < list[0]; i++)
        out[i] = rt_retain(from[list[1 + i]].o);
    release_frame(self);
    if (self->depth == 0) {
        memcpy(self->out, out, (size_t)list[0] * sizeof *out);
        return false;
    }
    call = &self->p->calls[--self->depth];
    enter(self, call->f, call->base);
    self->at = call->at;
    to = result_list(self->f->words + self->at);
    for (int32_t i = 0; i < to[0]; i++)
        set_object(self, to[1 + i], out[i]);
    self->at += rt_verified_words(self->f->words + self->at);
    return true;
}

/* Releases everything that a run that failed has left. */
static void unwind(run *self)
{
    for (;;) {
        release_frame(self);
        if (self->depth == 0)
            return;
        self->depth--;
        enter(self, self->p->calls[self->depth].f, self->p->calls[self->depth].base);
    }
}

/* ---- kernels ---- */

/* Before the host touches a tensor that a kernel of a device may have written or read. */
static bool touch(const run *self, const rt_tensor_object *tensor, bool writes)
{
    return !self->p->on_device || rt_mirror_on_host(tensor, writes, self->inner) || fail_inner(self);
}

/* Most dimensions are a number or a symbol. False: the extent cannot be computed, which refuses the
 * argument. */
static bool evaluate(rt_dim dim, const int64_t *symbols, int64_t *value)
{
    if (dim.n == 2) {
        *value = dim.word[0] == RT_DIM_CONST ? dim.word[1] : symbols[dim.word[1]];
        return true;
    }
    return rt_dim_eval(dim, symbols, value, NULL);
}

static bool refuse_argument(const run *self, const rt_function_desc *kernel, int32_t index,
                            const rt_tensor_object *tensor)
{
    char expected[160], where[100], found[100], text[512];
    const rt_param_desc *param = &kernel->params[index];

    snprintf(
        text, sizeof text, "'%s' of %s: expected %s%s, found %s", param->name, kernel->name,
        rt_shape_text(param->dtype, param->shape, param->rank, kernel->symbols, expected, sizeof expected),
        rt_where_text(param->shape, param->rank, kernel->symbols, self->p->dims, kernel->n_symbols, where,
                      sizeof where),
        tec_tensor_text(&tensor->tensor, found, sizeof found));
    return fail(self, TEC_INVALID, text);
}

/* Constants have no storage and may be mapped read-only. */
static bool check_argument(const run *self, const rt_function_desc *kernel, int32_t index,
                           const rt_tensor_object *tensor)
{
    const rt_param_desc *param = &kernel->params[index];
    int64_t extent;

    for (int32_t d = 0; d < param->rank; d++)
        if (!evaluate(param->shape[d], self->p->dims, &extent) || extent != tensor->shape[d])
            return refuse_argument(self, kernel, index, tensor);
    if (param->alignment && (uintptr_t)tensor->tensor.data & (uintptr_t)(param->alignment - 1))
        return fail(self, TEC_INVALID, "an argument does not have the alignment that its kernel needs");
    if (param->is_output && !tensor->storage)
        return fail(self, TEC_INVALID, "a constant would be written");
    return true;
}

/* An argument of a kernel: a register, or -1 - c for constant c. */
IN_LOOP rt_tensor_object *argument(const run *self, int32_t arg)
{
    return rt_as_tensor(arg >= 0 ? self->r[arg].o : self->p->constants[-1 - arg]);
}

/* Within one storage only: storages do not overlap. */
static bool overlap(const rt_tensor_object *left, const rt_tensor_object *right)
{
    const char *x = left->tensor.data, *y = right->tensor.data;

    return left->storage && left->storage == right->storage && x < y + right->bytes && y < x + left->bytes;
}

/* Values that the VM made have storages of their own mostly, so the storages are compared first. */
static bool check_overlap(const run *self, const rt_function_desc *kernel, const int32_t *args)
{
    for (int32_t b = 0; b < kernel->n_params; b++) {
        const rt_tensor_object *written = argument(self, args[b]);

        if (!kernel->params[b].is_output)
            continue;
        for (int32_t a = 0; a < kernel->n_params; a++)
            if (a != b && overlap(argument(self, args[a]), written) && !rt_may_alias(kernel, a, b))
                return fail(self, TEC_INVALID,
                            "the kernel would write memory that overlaps another argument");
    }
    return true;
}

/* A size that is a number and was reserved by an earlier call costs two comparisons. */
static bool reserve_workspace(const run *self, const rt_function_desc *kernel)
{
    const rt_env *env = &self->p->env;
    int64_t bytes = 0, thread_bytes = 0;

    if ((kernel->workspace.n == 0 || rt_dim_is_const(kernel->workspace, &bytes)) &&
        (kernel->thread_workspace.n == 0 || rt_dim_is_const(kernel->thread_workspace, &thread_bytes)) &&
        bytes >= 0 && bytes <= env->workspace_size && thread_bytes >= 0 &&
        thread_bytes <= env->env.thread_stride)
        return true;
    return (rt_size_eval(kernel->workspace, self->p->dims, &bytes, kernel->name, self->inner) &&
            rt_size_eval(kernel->thread_workspace, self->p->dims, &thread_bytes, kernel->name, self->inner) &&
            rt_env_reserve(&self->p->env, bytes, thread_bytes, self->inner)) ||
           fail_inner(self);
}

static tec_status why_stop(run *self, char *text, size_t size);

/* An iteration of a loop around launches is a step, so that the limits of the run hold inside of a kernel. */
static bool go_on(void *user, tec_error *err)
{
    run *self = user;
    char text[100];
    tec_status why = ++self->steps < self->look ? TEC_OK : why_stop(self, text, sizeof text);

    return why == TEC_OK || rt_fail(err, why, "%s", text);
}

/* Before the code of a kernel runs, and behind it: what the run counts, and the times of the profile. */
IN_LOOP void begin_code(const run *self)
{
    self->p->counts.kernels++;
    if (self->p->profile)
        rt_vm_profile_begin(self->p->profile);
}

IN_LOOP void end_code(const run *self, int32_t function)
{
    const tec_program *program = self->p;

    if (program->profile)
        rt_vm_profile_kernel(program->profile, function, &program->desc->functions[function], program->dims);
}

/* A kernel that streams its weights leaves nothing else in the first level of the cache. What the next
 * instructions read is fetched all at once here, rather than line by line where each one waits for the one
 * before. */
static inline void fetch_state(const run *self)
{
    enum { LINE = 64 };
    const char *registers = (const char *)self->r;

    for (int i = 0; i < 3; i++)
        __builtin_prefetch(registers + i * LINE, 1);
    __builtin_prefetch(self->f->words + self->at + LINE / 4);
    __builtin_prefetch(self->f);
    __builtin_prefetch(self->f->layouts);
    rt_heap_fetch(self->p->heap);
}

/* Runs code of the host on p->args and p->dims. */
static bool run_code(run *self, int32_t function, tec_kernel_fn *code, int64_t turn)
{
    tec_program *program = self->p;

    begin_code(self);
    int32_t status = rt_env_call(&program->env, code, turn, program->args, program->dims);
    end_code(self, function);
    fetch_state(self);
    if (status == 0)
        return true;
    rt_env_fail(&program->env, status, program->desc->functions[function].name, self->inner);
    return fail_inner(self);
}

/* Launches a kernel of a device on p->tensors and p->dims. */
static bool launch(run *self, int32_t function)
{
    tec_program *program = self->p;

    begin_code(self);
    bool good = rt_vm_launch(program, function, program->tensors, program->dims,
                             &(rt_launch_watch){go_on, self}, self->inner);
    end_code(self, function);
    return good || fail_inner(self);
}

/* Whether the argument is as its words say; *words then points to those of the next argument. A tensor of the
 * parameter's layout has its extents and alignment. What is wrong with an argument, check_argument finds out.
 */
static bool fits(const int64_t **words, const rt_tensor_object *tensor)
{
    const int64_t flags = *(*words)++, alignment = (uint32_t)(flags >> RT_FIXED_ALIGNMENT);
    int64_t differs = 0;

    if (tensor->layout && tensor->layout == flags >> RT_FIXED_LAYOUT) {
        *words += flags & RT_FIXED_RANK;
        return tensor->storage || !(flags & RT_FIXED_OUTPUT);
    }
    for (int64_t d = 0; d < (flags & RT_FIXED_RANK); d++)
        differs |= *(*words)++ ^ tensor->shape[d];
    return !differs && !(alignment && (uintptr_t)tensor->tensor.data & (uintptr_t)(alignment - 1)) &&
           !((flags & RT_FIXED_OUTPUT) && !tensor->storage);
}

/* The same checks as in call_kernel, by numbers that lie together. Overlaps are looked for where an output
 * shares its storage with another argument. */
static bool call_fixed(run *self, const int32_t *args, int32_t function, rt_fixed_call *call)
{
    tec_program *program = self->p;
    const rt_function_desc *kernel = &program->desc->functions[function];
    const int64_t *words = call->words;
    const rt_storage_object *written = NULL;
    bool shares = false;

    for (int32_t i = call->n_params - 1; i >= 0; i--) { /* outputs first */
        rt_tensor_object *tensor = argument(self, args[i]);
        bool is_output = *words & RT_FIXED_OUTPUT;

        if (!fits(&words, tensor))
            return check_argument(self, kernel, i, tensor) &&
                   fail(self, TEC_INTERNAL, "an argument is right and was refused");
        shares |= written && tensor->storage == written;
        if (is_output) {
            shares |= written != NULL;
            written = tensor->storage;
        }
        program->args[i] = tensor->tensor.data;
    }
    if (shares && !check_overlap(self, kernel, args))
        return false;
    if ((call->workspace > program->env.workspace_size ||
         call->thread_workspace > program->env.env.thread_stride) &&
        !reserve_workspace(self, kernel))
        return false;
    return run_code(self, function, call->code, call->turn++);
}

/* Everything that the metadata says of the kernel is checked before its code runs: of the one that the ranges
 * choose, which takes as many numbers and tensors. */
APART bool call_kernel(run *self, const int32_t *words)
{
    tec_program *program = self->p;
    const int32_t *dims = words + 3, *args = dims + words[2] + 1;

    if (program->fixed[words[1]])
        return call_fixed(self, args, words[1], program->fixed[words[1]]);
    for (int32_t i = 0; i < words[2]; i++)
        program->dims[i] = self->r[dims[i]].i;
    int32_t function = rt_function_for(program->desc, words[1], program->dims);
    const rt_function_desc *k = &program->desc->functions[function];
    for (int32_t i = 0; i < k->n_params; i++) {
        rt_tensor_object *tensor = argument(self, args[i]);

        if (!check_argument(self, k, i, tensor))
            return false;
        program->args[i] = tensor->tensor.data;
        program->tensors[i] = tensor;
    }
    if (!check_overlap(self, k, args) || (!k->device && !reserve_workspace(self, k)))
        return false;
    if (k->n_facts &&
        !rt_facts_hold(k->facts, k->n_facts, k->symbols, program->dims, k->n_symbols, k->name, self->inner))
        return fail_inner(self);
    for (int32_t i = 0; program->on_device && !k->device && i < k->n_params; i++)
        if (!touch(self, program->tensors[i], k->params[i].is_output))
            return false;
    return k->device
               ? launch(self, function)
               : run_code(self, function,
                          rt_code_for(&program->env, program->module, words[1], function, program->dims),
                          program->turns[function]++);
}

/* ---- other instructions ---- */

APART bool alloc_storage(run *self, const int32_t *words)
{
    rt_object *storage = rt_new_storage(self->p->heap, self->r[words[2]].i, self->inner);

    if (storage)
        ((rt_storage_object *)(void *)storage)->fresh = true;
    return set_new(self, words[1], storage);
}

/* The layout of what an instruction with numbers makes: that of the register's type, whose extents the
 * verifier has compared with the numbers. */
IN_LOOP int32_t layout_made(const run *self, const int32_t *words)
{
    return self->f->layouts[words[1]];
}

/* Extents and offset are numbers in the code, or registers. */
static bool alloc_tensor(run *self, const int32_t *words)
{
    bool in_registers = words[0] == RT_ALLOC_TENSOR_REG;
    const rt_type_desc *type = &self->p->program->types[self->f->desc->registers[words[1]]];
    int64_t shape[RT_MAX_RANK];
    rt_object *made;

    for (int32_t d = 0; d < type->rank; d++)
        shape[d] = in_registers ? self->r[words[5 + d]].i : words[5 + d];
    made = rt_new_tensor(self->p->heap, self->r[words[2]].o, in_registers ? self->r[words[3]].i : words[3],
                         type->dtype, type->rank, shape, self->inner);
    if (made && !in_registers)
        rt_as_tensor(made)->layout = layout_made(self, words);
    return set_new(self, words[1], made);
}

/* Extents are numbers in the code, or registers. */
static rt_object *make_whole(run *self, const int32_t *words, int32_t layout)
{
    const rt_type_desc *type = &self->p->program->types[self->f->desc->registers[words[1]]];
    int64_t shape[RT_MAX_RANK];

    for (int32_t d = 0; d < type->rank; d++)
        shape[d] = words[0] == RT_NEW_TENSOR_REG ? self->r[words[3 + d]].i : words[3 + d];
    return rt_new_known(self->p->heap, layout, type->dtype, type->rank, shape, self->inner);
}

/* A tensor that waits in the heap needs no look at the type nor at the extents, whose lines are far away in a
 * program that streams its weights. */
APART bool new_tensor(run *self, const int32_t *words)
{
    int32_t layout = words[0] == RT_NEW_TENSOR ? layout_made(self, words) : 0;
    rt_object *made = layout ? rt_take_ready(self->p->heap, layout) : NULL;

    made = made ? made : make_whole(self, words, layout);
    if (made && self->p->on_device)
        rt_as_tensor(made)->storage->fresh = true;
    return set_new(self, words[1], made);
}

/* The instructions that make a tuple, a constructor's value or a closure from values in registers. */
static bool alloc_node(run *self, const int32_t *words)
{
    const rt_type_desc *type = &self->p->program->types[self->f->desc->registers[words[1]]];
    rt_object_kind kind = words[0] == RT_ALLOC_CLOSURE  ? RT_OBJECT_CLOSURE
                          : type->kind == RT_TYPE_TUPLE ? RT_OBJECT_TUPLE
                                                        : RT_OBJECT_DATA;
    int32_t what = kind == RT_OBJECT_CLOSURE ? words[2] : type->data,
            tag = kind == RT_OBJECT_DATA ? words[2] : 0;
    rt_node_object *object = rt_new_node(self->p->heap, kind, what, tag, words[3], self->inner);

    for (int32_t i = 0; object && i < words[3]; i++)
        object->part[i] = rt_retain(self->r[words[4 + i]].o);
    return set_new(self, words[1], object ? &object->head : NULL);
}

/* Of a value that was taken out of another one, the first two parts (a node of a tree or a list has two).
 * They are probably taken next, and are on their way to the cache then. A tree of the user's is larger than
 * what the weights leave of the cache, and each of its objects is touched once. */
static inline void prefetch_parts(rt_object *object)
{
    const rt_node_object *node = rt_as_node(object);

    if (object->kind == RT_OBJECT_DATA)
        for (int32_t i = 0; i < node->n && i < 2; i++)
            __builtin_prefetch(node->part[i], 1);
}

/* The value's constructor is known only now. */
IN_LOOP bool get_field(run *self, const int32_t *w)
{
    const rt_node_object *o = rt_as_node(self->r[w[2]].o);
    rt_object *part;

    if (o->tag != w[3])
        return fail(self, TEC_INVALID, "a field of another constructor is read");
    part = rt_retain(o->part[w[4]]);
    prefetch_parts(part);
    set_object(self, w[1], part);
    return true;
}

static bool copy_tensor(run *self, const int32_t *words)
{
    rt_tensor_object *from = rt_as_tensor(self->r[words[1]].o), *to = rt_as_tensor(self->r[words[2]].o);

    if (!to->storage)
        return fail(self, TEC_INVALID, "a constant would be written");
    if (to->bytes != from->bytes)
        return fail(self, TEC_INVALID, "tensors of different sizes are copied");
    if (!touch(self, from, false) || !touch(self, to, true))
        return false;
    memmove(to->tensor.data, from->tensor.data, (size_t)to->bytes);
    return true;
}

static bool shape_of(run *self, const int32_t *words)
{
    const rt_tensor_object *tensor = rt_as_tensor(self->r[words[2]].o);
    int64_t rank = tensor->tensor.ndim;
    rt_object *made = rt_new_whole(self->p->heap, 0, BASE_I64, 1, &rank, self->inner);

    if (made && rank)
        memcpy(rt_as_tensor(made)->tensor.data, tensor->shape, (size_t)rank * 8);
    return set_new(self, words[1], made);
}

static bool reshape(run *self, const int32_t *w)
{
    int64_t shape[RT_MAX_RANK];

    for (int32_t d = 0; d < w[3]; d++)
        shape[d] = self->r[w[4 + d]].i;
    return set_new(self, w[1], rt_new_view(self->p->heap, self->r[w[2]].o, w[3], shape, self->inner));
}

/* p->dims is free between kernel calls. */
static bool compute_dim(run *self, const int32_t *w)
{
    for (int32_t i = 0; i < w[3]; i++)
        self->p->dims[i] = self->r[w[4 + i]].i;
    return rt_dim_eval(self->p->program->dims[w[2]], self->p->dims, &self->r[w[1]].i, self->inner) ||
           fail_inner(self);
}

/* By the tensor's own type; verify.c admits integers and truth values. */
static int64_t number_in(const rt_tensor_object *tensor)
{
    const void *data = tensor->tensor.data;

    switch (tensor->tensor.dtype.bits) {
    case 8: return tensor->tensor.dtype.code == kDLBool ? *(const uint8_t *)data != 0 : *(const int8_t *)data;
    case 16: return *(const int16_t *)data;
    case 32: return *(const int32_t *)data;
    default: return *(const int64_t *)data;
    }
}

APART bool read_scalar(run *self, const int32_t *words)
{
    const rt_tensor_object *tensor = rt_as_tensor(self->r[words[2]].o);

    if (!touch(self, tensor, false))
        return false;
    self->r[words[1]].i = number_in(tensor);
    return true;
}

static bool to_tensor(run *self, const int32_t *words)
{
    base_dtype t = self->p->program->types[self->f->desc->registers[words[1]]].dtype;
    int64_t number = t.code == kDLBool ? self->r[words[2]].i != 0 : self->r[words[2]].i;
    rt_object *made = rt_new_whole(self->p->heap, 0, t, 0, NULL, self->inner);

    if (made) /* little endian: the number's first bytes are the element */
        memcpy(rt_as_tensor(made)->tensor.data, &number, (size_t)base_dtype_bytes(t));
    return set_new(self, words[1], made);
}

static bool take_row(run *self, const int32_t *w)
{
    const rt_object *tensor = self->r[w[2]].o;

    if (!rt_shares_row(tensor, self->r[w[3]].i) &&
        !touch(self, (const rt_tensor_object *)(const void *)tensor, false))
        return false;
    return set_new(self, w[1], rt_new_row(self->p->heap, self->r[w[2]].o, self->r[w[3]].i, self->inner));
}

/* The register's reference goes to rt_append, so that a tensor that nobody else holds is extended in place.
 */
static bool append(run *self, const int32_t *words)
{
    rt_object *made, *tensor = self->r[words[2]].o;

    if (self->p->on_device && !(rt_mirror_before_append(rt_as_tensor(tensor), self->inner) &&
                                rt_mirror_on_host(rt_as_tensor(self->r[words[3]].o), false, self->inner)))
        return fail_inner(self);
    if (words[1] != words[2]) {
        rt_object *copy = rt_retain(tensor);

        made = rt_append(self->p->heap, copy, self->r[words[3]].o, self->inner);
        if (!made)
            rt_release(copy);
        return set_new(self, words[1], made);
    }
    made = rt_append(self->p->heap, tensor, self->r[words[3]].o, self->inner);
    if (!made)
        return fail_inner(self);
    self->p->counts.allocations += made != tensor;
    self->r[words[1]].o = made;
    return true;
}

APART bool check_equal(const run *self, const int32_t *w)
{
    char text[400];

    if (self->r[w[1]].i == self->r[w[2]].i)
        return true;
    snprintf(text, sizeof text, "%.340s: %lld and %lld", self->p->program->texts[w[3]],
             (long long)self->r[w[1]].i, (long long)self->r[w[2]].i);
    return fail(self, TEC_INVALID, text);
}

/* The number comes from a tag, so this fails only for damaged values. */
IN_LOOP bool choose(run *self, const int32_t *w)
{
    int64_t k = self->r[w[1]].i;

    if (k < 0 || k >= w[2])
        return fail(self, TEC_INVALID, "the switch has no entry for this value");
    self->at = w[3 + k];
    return true;
}

/* Looks at the limits of a run before step number `look`, which comes now and then, but not behind the last
 * step that is allowed. Gives TEC_OK, or else the status of the run, with its reason in `text`. A cancel is
 * taken once: the next run begins without it. */
static tec_status why_stop(run *self, char *text, size_t size)
{
    tec_program *program = self->p;
    int64_t most = program->options.max_steps;

    self->look = self->steps + LOOK_EVERY;
    if (most && self->look > most)
        self->look = most;
    if (most && self->steps >= most) {
        snprintf(text, size, "the limit of %lld steps is reached", (long long)program->options.max_steps);
        return TEC_INVALID;
    }
    if (atomic_load_explicit(&program->cancelled, memory_order_relaxed) &&
        atomic_exchange(&program->cancelled, false)) {
        snprintf(text, size, "the run was cancelled");
        return TEC_CANCELLED;
    }
    if (self->until <= 0 || tec_clock() <= self->until)
        return TEC_OK;
    snprintf(text, size, "the time limit of the run is reached");
    return TEC_TIMEOUT;
}

APART bool look_around(run *self)
{
    char text[100];
    tec_status why = why_stop(self, text, sizeof text);

    return why == TEC_OK || fail(self, why, text);
}

/* ---- the loop ---- */

/* The instructions of a fixed length, which the loops of a program run most. Gives the length in words; 0:
 * the instruction failed. */
IN_LOOP int32_t set_register(run *self, const int32_t *words)
{
    tec_program *program = self->p;

    switch ((rt_instruction)words[0]) {
    case RT_MOVE: copy_register(self, words[1], words[2]); return 3;
    case RT_LOAD_CONST: set_object(self, words[1], program->constants[words[2]]); return 3;
    case RT_LOAD_CONSTI: self->r[words[1]].i = words[2]; return 3;
    case RT_ALLOC_STORAGE: return alloc_storage(self, words) ? 4 : 0;
    case RT_FREE_STORAGE:
    case RT_FREE_TENSOR: set_object(self, words[1], NULL); return 2;
    case RT_GET_FIELD: return get_field(self, words) ? 5 : 0;
    case RT_GET_TAG: self->r[words[1]].i = rt_as_node(self->r[words[2]].o)->tag; return 3;
    case RT_CHECK:
        return self->r[words[1]].i || fail(self, TEC_INVALID, program->program->texts[words[2]]) ? 3 : 0;
    case RT_EQUAL: return check_equal(self, words) ? 4 : 0;
    case RT_EXTENT: self->r[words[1]].i = rt_as_tensor(self->r[words[2]].o)->shape[words[3]]; return 4;
    case RT_SCALAR: return read_scalar(self, words) ? 3 : 0;
    default: fail(self, TEC_INTERNAL, "no instruction of a fixed length"); return 0;
    }
}

/* The other instructions that make or change an object. Most hold a list, so their length is counted. */
APART bool make_object(run *self, const int32_t *words)
{
    switch ((rt_instruction)words[0]) {
    case RT_ALLOC_TENSOR:
    case RT_ALLOC_TENSOR_REG: return alloc_tensor(self, words);
    case RT_ALLOC_ADT:
    case RT_ALLOC_CLOSURE: return alloc_node(self, words);
    case RT_DEVICE_COPY: return copy_tensor(self, words);
    case RT_SHAPE_OF: return shape_of(self, words);
    case RT_RESHAPE_TENSOR: return reshape(self, words);
    case RT_TO_TENSOR: return to_tensor(self, words);
    case RT_ROW: return take_row(self, words);
    case RT_APPEND: return append(self, words);
    case RT_DIM: return compute_dim(self, words);
    default: return fail(self, TEC_INTERNAL, "no instruction that makes an object");
    }
}

/* One instruction. *done: the run has ended. Jumps and calls set `at` themselves; behind any other
 * instruction `at` moves on only where the instruction succeeded, so that an error names the instruction's
 * own line. The lengths of the most frequent instructions, invoke_packed and new_tensor, are counted here,
 * without the table of shapes. All instructions are listed here, so that the compiler names one that is
 * missing. */
IN_LOOP bool step(run *self, bool *done)
{
    const int32_t *w = self->f->words + self->at;
    int32_t words = 0;

    switch ((rt_instruction)w[0]) {
    case RT_RET: *done = !give_results(self, w + 1); return true;
    case RT_IF: self->at = self->r[w[1]].i ? w[2] : w[3]; return true;
    case RT_GOTO: self->at = w[1]; return true;
    case RT_SWITCH: return choose(self, w);
    case RT_INVOKE: return call(self, w[1], NULL, w + 2);
    case RT_INVOKE_CLOSURE: {
        rt_node_object *c = rt_as_node(self->r[w[1]].o);

        return call(self, c->what, c, w + 2);
    }
    case RT_TAIL: return tail(self, w[1], w + 2);
    case RT_FATAL: return fail(self, TEC_INVALID, self->p->program->texts[w[1]]);
    case RT_FREE:
        for (int32_t i = 0; i < w[1]; i++)
            set_object(self, w[2 + i], NULL);
        words = 2 + w[1];
        break;
    case RT_MOVE:
    case RT_LOAD_CONST:
    case RT_LOAD_CONSTI:
    case RT_ALLOC_STORAGE:
    case RT_FREE_STORAGE:
    case RT_FREE_TENSOR:
    case RT_GET_FIELD:
    case RT_GET_TAG:
    case RT_CHECK:
    case RT_EQUAL:
    case RT_EXTENT:
    case RT_SCALAR: words = set_register(self, w); break;
    case RT_INVOKE_PACKED: words = call_kernel(self, w) ? 4 + w[2] + w[3 + w[2]] : 0; break;
    case RT_NEW_TENSOR:
    case RT_NEW_TENSOR_REG: words = new_tensor(self, w) ? 3 + w[2] : 0; break;
    case RT_ALLOC_TENSOR:
    case RT_ALLOC_TENSOR_REG:
    case RT_ALLOC_ADT:
    case RT_ALLOC_CLOSURE:
    case RT_DEVICE_COPY:
    case RT_SHAPE_OF:
    case RT_RESHAPE_TENSOR:
    case RT_TO_TENSOR:
    case RT_ROW:
    case RT_APPEND:
    case RT_DIM: words = make_object(self, w) ? rt_verified_words(w) : 0; break;
    case RT_N_INSTRUCTIONS: return fail(self, TEC_INTERNAL, "no instruction");
    }
    self->at += words;
    return words > 0;
}

/* Runs to the end, or to the first error. A step counts even if it fails. */
static bool run_plain(run *self)
{
    bool done = false, ok;

    do {
        ok = (self->steps < self->look || look_around(self)) && step(self, &done);
        self->steps++;
    } while (ok && !done);
    return ok;
}

/* The same with the time of each instruction. The clock is read once for each: where one ends, the next
 * begins. */
static bool run_profiled(run *self)
{
    rt_vm_profile *profile = self->p->profile;
    bool done = false, ok;

    rt_vm_profile_start(profile);
    do {
        int32_t op = self->f->words[self->at];

        ok = (self->steps < self->look || look_around(self)) && step(self, &done);
        rt_vm_profile_step(profile, op);
        self->steps++;
    } while (ok && !done);
    return ok;
}

/* The one way in. Whatever ends the run, all frames are released before it returns. */
bool rt_vm_run(tec_program *program, int32_t function, rt_object *const *in, rt_object **out, tec_error *err)
{
    tec_error inner = {0};
    run v = {.p = program, .out = out, .err = err, .inner = &inner, .f = program->functions[function]};
    rt_heap_counts *heap = rt_heap_count(program->heap);
    unsigned mode;
    bool ok;

    program->counts = (tec_program_counts){0};
    *heap = (rt_heap_counts){.peak = rt_heap_bytes(program->heap)};
    v.until = program->options.deadline > 0 ? tec_clock() + program->options.deadline : 0;
    if (!reserve(&v, 0, v.f))
        return false;
    enter(&v, v.f, 0);
    for (int32_t i = 0; i < v.f->desc->n_params; i++)
        v.r[i].o = rt_retain(in[i]);
    mode = rt_env_enter(&program->env);
    ok = program->profile ? run_profiled(&v) : run_plain(&v);
    rt_env_leave(&program->env, mode);
    if (!rt_vm_devices_end(program, ok ? err : NULL) && ok) {
        for (int32_t i = 0; i < program->program->functions[function].n_results; i++) {
            rt_release(out[i]);
            out[i] = NULL;
        }
        ok = false;
    }
    if (!ok)
        unwind(&v);
    program->counts.steps = v.steps;
    program->counts.from_system = heap->from_system;
    program->counts.bytes = rt_heap_bytes(program->heap);
    program->counts.storages = heap->storages;
    program->counts.storage_bytes = heap->storage_bytes;
    program->counts.peak = heap->peak;
    program->counts.copied = heap->copied;
    return ok;
}
