/* runtime/program.c -- instances of programs, and values as users make and read them: include/tec/program.h.
 *
 * A data value is compared with its constructor when it is made, so that a list of any length is right when
 * its last cell is: no run walks through its arguments.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/device.h"
#include "runtime/tensor.h"
#include "runtime/vm.h"

enum { DEPTH = 1 << 21, TEXT_DEPTH = 8 };

/* ---- texts ---- */

/* "(f32[?, 4], List)"; tuples that nest deeper than TEXT_DEPTH are cut. */
static void put_type(rt_line *line, const rt_program_desc *program, int32_t type, int depth)
{
    const rt_type_desc *t = &program->types[type];
    char text[24];

    if (t->kind == RT_TYPE_DATA) {
        rt_put(line, "%s", program->data[t->data].name);
    } else if (t->kind == RT_TYPE_TENSOR) {
        rt_put(line, "%s", base_dtype_print(t->dtype, text, sizeof text));
        for (int32_t d = 0; d < t->rank; d++)
            rt_put(line, t->extents[d] < 0 ? "%s?" : "%s%lld", d ? ", " : "[", (long long)t->extents[d]);
        rt_put(line, "%s", t->rank ? "]" : "");
    } else {
        rt_put(line, t->kind == RT_TYPE_FUNCTION ? "function (" : "(");
        for (int32_t i = 0; i < t->n_parts && depth < TEXT_DEPTH; i++) {
            rt_put(line, "%s", i == 0 ? "" : i == t->n_params ? " -> " : ", ");
            put_type(line, program, t->parts[i], depth + 1);
        }
        rt_put(line, ")");
    }
}

/* Cut where the buffer ends. */
const char *rt_type_text(const rt_program_desc *program, int32_t type, char *buffer, size_t size)
{
    rt_line line = {buffer, size, 0};

    buffer[0] = '\0';
    put_type(&line, program, type, 0);
    return buffer;
}

/* A data value of another instance is not named: its types are not ours. */
static const char *object_text(const tec_program *program, rt_object *object, char *buffer, size_t size)
{
    if (!object)
        snprintf(buffer, size, "nothing");
    else if (object->kind == RT_OBJECT_TENSOR)
        tec_tensor_text(&rt_as_tensor(object)->tensor, buffer, size);
    else if (object->kind == RT_OBJECT_DATA && object->heap == program->heap)
        snprintf(buffer, size, "%s", program->program->data[rt_as_node(object)->what].name);
    else
        snprintf(buffer, size, object->kind == RT_OBJECT_TUPLE ? "a tuple of %d" : "a value of another kind",
                 (int)rt_as_node(object)->n);
    return buffer;
}

/* ---- types of values ---- */

/* An extent below 0 takes any. */
static bool is_tensor_of(const rt_type_desc *type, const DLTensor *tensor)
{
    if (type->rank != tensor->ndim || !base_dtype_same(type->dtype, tensor->dtype))
        return false;
    for (int32_t d = 0; d < type->rank; d++)
        if (type->extents[d] >= 0 && type->extents[d] != tensor->shape[d])
            return false;
    return true;
}

/* Tuples nest as deep as their type does; what a data value holds was looked at when it was made. */
static bool has_type(const tec_program *program, int32_t type, rt_object *object)
{
    const rt_type_desc *t = &program->program->types[type];

    if (!object || (object->refs >= 0 && object->heap != program->heap))
        return false;
    switch (t->kind) {
    case RT_TYPE_TENSOR:
        return object->kind == RT_OBJECT_TENSOR && is_tensor_of(t, &rt_as_tensor(object)->tensor);
    case RT_TYPE_DATA: return object->kind == RT_OBJECT_DATA && rt_as_node(object)->what == t->data;
    case RT_TYPE_TUPLE:
        if (object->kind != RT_OBJECT_TUPLE || rt_as_node(object)->n != t->n_parts)
            return false;
        for (int32_t i = 0; i < t->n_parts; i++)
            if (!has_type(program, t->parts[i], rt_as_node(object)->part[i]))
                return false;
        return true;
    case RT_TYPE_NUMBER:
    case RT_TYPE_STORAGE:
    case RT_TYPE_FUNCTION: return false; /* users make none */
    }
    return false;
}

/* `what` and `name` are for the message: "input 'x'". Always false. */
static bool refuse_value(const tec_program *program, int32_t type, rt_object *object, const char *what,
                         const char *name, tec_error *err)
{
    char expected[200], found[100];

    if (object && object->refs >= 0 && object->heap != program->heap)
        return rt_fail(err, TEC_INVALID, "%s '%s': the value was made for another instance", what, name);
    return rt_fail(err, TEC_INVALID, "%s '%s': expected %s, found %s", what, name,
                   rt_type_text(program->program, type, expected, sizeof expected),
                   object_text(program, object, found, sizeof found));
}

/* ---- instances ---- */

/* Without a name the first function, which is `main`. */
static int32_t find_function(const tec_module *module, const char *name, tec_error *err)
{
    const rt_program_desc *program = &rt_module_describe(module)->program;

    if (program->n_functions == 0)
        return rt_fail(err, TEC_INVALID, "%s: has no program%s", rt_module_path(module),
                       rt_module_describe(module)->n_graphs ? ", but a model of operators alone" : ""),
               -1;
    for (int32_t i = 0; i < program->n_functions; i++)
        if (!name || strcmp(program->functions[i].name, name) == 0)
            return i;
    return rt_fail(err, TEC_INVALID, "%s: its program has no function '%s'", rt_module_path(module), name),
           -1;
}

/* An object for each constant of the module, over the module's bytes. Constants are shared by all runs and
 * never counted. */
static bool make_constants(tec_program *program, tec_error *err)
{
    const rt_module_desc *desc = program->desc;

    program->constants = rt_arena_alloc(&program->arena, desc->n_constants, sizeof *program->constants, err);
    for (int32_t i = 0; program->constants && i < desc->n_constants; i++) {
        const rt_constant_desc *constant = &desc->constants[i];
        void *memory = rt_arena_alloc(&program->arena, 1, rt_constant_object_bytes(constant->rank), err);

        if (!memory)
            return false;
        rt_constant_object(memory, constant->dtype, constant->rank, constant->shape, constant->data);
        program->constants[i] = memory;
    }
    return program->constants != NULL;
}

/* Kernels of the host alone: where others may run on a device, each argument may have to be copied first; a
 * rival is chosen at each call. */
static bool fix_calls(tec_program *program, tec_error *err)
{
    const rt_module_desc *desc = program->desc;
    bool can = !program->on_device && !program->options.run.rivals;

    program->fixed = rt_arena_alloc(&program->arena, desc->n_functions, sizeof *program->fixed, err);
    for (int32_t i = 0; can && program->fixed && i < desc->n_functions; i++)
        if (!rt_fix_call(&program->arena, program->module, i, &program->layouts, &program->fixed[i], err))
            return false;
    return program->fixed != NULL;
}

/* Numbers for the shapes of the parameters of kernels, and of constants that have one of them or a type's. A
 * tensor with a number begins at a multiple of 64 bytes. */
static bool number_layouts(tec_program *program, tec_error *err)
{
    if (!fix_calls(program, err))
        return false;
    for (int32_t i = 0; i < program->desc->n_constants; i++) {
        rt_tensor_object *constant = rt_as_tensor(program->constants[i]);

        if ((uintptr_t)constant->tensor.data % 64 == 0)
            constant->layout = rt_layout_find(&program->layouts, constant->tensor.dtype,
                                              constant->tensor.ndim, constant->tensor.shape);
    }
    return true;
}

/* What the loop reads of a function. `layouts` are those of types. */
static rt_vm_function *make_function(tec_program *program, const rt_routine_desc *desc,
                                     const uint8_t *layouts, tec_error *err)
{
    size_t bits = ((size_t)desc->n_registers / 64 + 1) * sizeof(uint64_t);
    rt_vm_function *f = rt_arena_alloc(&program->arena, 1, sizeof *f + bits + (size_t)desc->n_registers, err);
    uint8_t *to = f ? (uint8_t *)f->objects + bits : NULL;

    if (!f)
        return NULL;
    f->words = desc->words;
    f->desc = desc;
    f->n_registers = desc->n_registers;
    f->layouts = to;
    for (int32_t r = 0; r < desc->n_registers; r++) {
        to[r] = layouts[desc->registers[r]];
        if (program->program->types[desc->registers[r]].kind != RT_TYPE_NUMBER)
            f->objects[r / 64] |= (uint64_t)1 << (r % 64);
    }
    return f;
}

/* Kernels of devices keep copies of storages, which tensors that wait in the heap do not have. */
static bool make_functions(tec_program *program, tec_error *err)
{
    const rt_program_desc *d = program->program;
    uint8_t *layouts = rt_arena_alloc(&program->arena, d->n_types, sizeof *layouts, err);

    program->functions = rt_arena_alloc(&program->arena, d->n_functions, sizeof *program->functions, err);
    if (!layouts || !program->functions)
        return false;
    for (int32_t i = 0; !program->on_device && i < d->n_types; i++)
        if (d->types[i].kind == RT_TYPE_TENSOR)
            layouts[i] = (uint8_t)rt_layout_add(&program->layouts, d->types[i].dtype, d->types[i].rank,
                                                d->types[i].extents);
    for (int32_t i = 0; i < d->n_functions; i++)
        if (!(program->functions[i] = make_function(program, &d->functions[i], layouts, err)))
            return false;
    return true;
}

/* dims and args are for one kernel's call at a time. */
static bool set_up(tec_program *program, tec_error *err)
{
    program->dims = rt_arena_alloc(&program->arena, RT_MAX_SYMBOLS, sizeof *program->dims, err);
    program->args = rt_arena_alloc(&program->arena, RT_MAX_PARAMS, sizeof *program->args, err);
    program->turns = rt_arena_alloc(&program->arena, program->desc->n_functions, sizeof *program->turns, err);
    if (program->options.run.profile &&
        !(program->profile = rt_vm_profile_new(&program->arena, program->desc->n_functions, err)))
        return false;
    program->tensors = rt_arena_alloc(&program->arena, RT_MAX_PARAMS, sizeof *program->tensors, err);
    for (int32_t i = 0; i < program->desc->n_functions; i++)
        program->on_device = program->on_device || program->desc->functions[i].device;
    return program->dims && program->args && program->turns && program->tensors &&
           make_constants(program, err) && make_functions(program, err) && number_layouts(program, err) &&
           (program->heap = rt_heap_new(program->options.max_bytes, program->layouts.n, err)) &&
           rt_env_open(&program->env, &program->options.run, program->desc->flags & RT_MODULE_KEEP_DENORMALS,
                       err);
}

/* Three quarters of the machine's memory, so that a program without end meets an error and not the system's
 * end of all memory. 0, no limit, where the system does not tell. */
static int64_t default_bytes(void)
{
    int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? pages / 4 * 3 * size : 0;
}

/* The module stays open while the instance lives. The values of an instance live in its heap: instances share
 * nothing but the module. */
tec_program *tec_program_new(tec_module *module, const char *function, const tec_program_options *options,
                             tec_error *err)
{
    tec_program *program;
    int32_t entry;

    if (!module)
        return rt_fail(err, TEC_INVALID, "expected a module, found NULL"), NULL;
    entry = find_function(module, function, err);
    program = entry < 0 ? NULL : rt_alloc(sizeof *program, err);
    if (!program)
        return NULL;
    program->module = tec_module_ref(module);
    program->desc = rt_module_describe(module);
    program->program = &program->desc->program;
    program->entry = entry;
    if (options)
        program->options = *options;
    if (program->options.max_depth <= 0)
        program->options.max_depth = DEPTH;
    if (program->options.max_bytes <= 0)
        program->options.max_bytes = program->options.max_bytes ? 0 : default_bytes();
    atomic_init(&program->cancelled, false);
    if (program->options.run.max_steps || program->options.run.deadline > 0)
        rt_fail(err, TEC_INVALID, "limits of a program are those of tec_program_options");
    else if (rt_stream_check(&program->options.run, err) && set_up(program, err))
        return program;
    tec_program_free(program);
    return NULL;
}

/* The heap stays as long as the user holds one of its values. */
void tec_program_free(tec_program *program)
{
    if (!program)
        return;
    rt_vm_devices_close(program->devices);
    rt_free(program->registers);
    rt_free(program->calls);
    rt_heap_close(program->heap);
    rt_arena_free(&program->arena);
    rt_env_close(&program->env);
    tec_module_free(program->module);
    rt_free(program);
}

static const rt_routine_desc *entry_of(const tec_program *program)
{
    return &program->program->functions[program->entry];
}

int tec_program_n_inputs(const tec_program *program)
{
    return program ? entry_of(program)->n_params : 0;
}

int tec_program_n_outputs(const tec_program *program)
{
    return program ? entry_of(program)->n_results : 0;
}

const char *tec_program_input_name(const tec_program *program, int i)
{
    return i >= 0 && i < tec_program_n_inputs(program) ? entry_of(program)->params[i] : NULL;
}

const char *tec_program_input_text(const tec_program *program, int i, char *buffer, size_t size)
{
    if (i < 0 || i >= tec_program_n_inputs(program) || !buffer || size == 0)
        return NULL;
    return rt_type_text(program->program, entry_of(program)->registers[i], buffer, size);
}

/* The error names the place of the parameter. */
static bool check_input(const tec_program *program, int i, rt_object *object, tec_error *err)
{
    const rt_routine_desc *f = entry_of(program);

    if (has_type(program, f->registers[i], object))
        return true;
    tec_error inner = {0};
    refuse_value(program, f->registers[i], object, "input", f->params[i], &inner);
    return rt_fail_at(program->program, f, i - f->n_params, inner.status, inner.text, err);
}

/* Types of the inputs are checked here; extents that depend on each other, by the code. */
bool tec_program_run(tec_program *program, tec_object *const *in, int n_in, tec_object **out, int n_out,
                     tec_error *err)
{
    const rt_routine_desc *f;

    if (!program)
        return rt_fail(err, TEC_INVALID, "expected a program to run, found NULL");
    f = entry_of(program);
    if (n_in != f->n_params || n_out != f->n_results || (n_in && !in) || (n_out && !out))
        return rt_fail(err, TEC_INVALID, "'%s' has %d inputs and %d outputs, found %d and %d", f->name,
                       (int)f->n_params, (int)f->n_results, n_in, n_out);
    for (int i = 0; i < n_in; i++)
        if (!check_input(program, i, in[i], err))
            return false;
    return rt_vm_run(program, program->entry, in, out, err);
}

/* From any thread; the run stops at its next look. */
void tec_program_cancel(tec_program *program)
{
    if (program)
        atomic_store(&program->cancelled, true);
}

bool tec_program_count(const tec_program *program, tec_program_counts *out)
{
    if (!program || !out)
        return false;
    *out = program->counts;
    return true;
}

/* ---- values ---- */

/* The elements are copied: the tensor of the caller may change afterwards. */
tec_object *tec_object_tensor(tec_program *program, const DLTensor *tensor, tec_error *err)
{
    int32_t layout;
    rt_object *made;

    if (!program)
        return rt_fail(err, TEC_INVALID, "expected a program, found NULL"), NULL;
    if (!rt_tensor_check(tensor, "a value", err))
        return NULL;
    layout = rt_layout_find(&program->layouts, tensor->dtype, tensor->ndim, tensor->shape);
    made = rt_new_known(program->heap, layout, tensor->dtype, tensor->ndim, tensor->shape, err);
    if (made && !tec_tensor_copy(&rt_as_tensor(made)->tensor, tensor, err)) {
        rt_release(made);
        return NULL;
    }
    return made;
}

/* Takes a reference to each part: the caller keeps its own. */
static tec_object *new_parts(tec_program *program, rt_object_kind kind, int32_t what, int32_t tag,
                             tec_object *const *part, int n, tec_error *err)
{
    rt_node_object *o = rt_new_node(program->heap, kind, what, tag, n, err);

    for (int i = 0; o && i < n; i++)
        o->part[i] = rt_retain(part[i]);
    return o ? &o->head : NULL;
}

/* Types are not checked: a tuple has none before it is used. */
tec_object *tec_object_tuple(tec_program *program, tec_object *const *part, int n, tec_error *err)
{
    if (!program || n < 0 || n > RT_MAX_FIELDS || (n && !part))
        return rt_fail(err, TEC_INVALID, "a tuple of %d parts", n), NULL;
    for (int i = 0; i < n; i++)
        if (!part[i] || (part[i]->refs >= 0 && part[i]->heap != program->heap))
            return rt_fail(err, TEC_INVALID, "part %d of the tuple is not a value of this instance", i), NULL;
    return new_parts(program, RT_OBJECT_TUPLE, 0, 0, part, n, err);
}

/* Whether `name` is the constructor's, alone or behind the name of its data type: "Nil", "List[i64].Nil". */
static bool is_named(const rt_data_desc *data, const rt_constructor_desc *constructor, const char *name)
{
    size_t n = strlen(data->name);

    return strcmp(constructor->name, name) == 0 || (strncmp(data->name, name, n) == 0 && name[n] == '.' &&
                                                    strcmp(constructor->name, name + n + 1) == 0);
}

/* Each field against its declared type. */
static bool fields_fit(const tec_program *program, const rt_constructor_desc *constructor,
                       tec_object *const *field, int count, tec_error *err)
{
    char name[80];

    if (count != constructor->n_fields)
        return rt_fail(err, TEC_INVALID, "'%s' has %d fields, found %d", constructor->name,
                       (int)constructor->n_fields, count);
    for (int i = 0; i < count; i++) {
        if (has_type(program, constructor->fields[i], field[i]))
            continue;
        snprintf(name, sizeof name, "%d' of '%s", i + 1, constructor->name);
        return refuse_value(program, constructor->fields[i], field[i], "field", name, err);
    }
    return true;
}

/* Data types that were made of one generic type have constructors of the same names: the first that takes the
 * fields. The error is that of the first by the name. */
tec_object *tec_object_data(tec_program *program, const char *constructor, tec_object *const *field,
                            int count, tec_error *err)
{
    tec_error first = {0};
    bool found = false;

    if (!program || !constructor || (count && !field))
        return rt_fail(err, TEC_INVALID, "expected the name of a constructor, found NULL"), NULL;
    for (int32_t data = 0; data < program->program->n_data; ++data)
        for (int32_t which = 0; which < program->program->data[data].n_constructors; ++which) {
            const rt_data_desc *type = &program->program->data[data];

            if (!is_named(type, &type->constructors[which], constructor))
                continue;
            if (fields_fit(program, &type->constructors[which], field, count, &first))
                return new_parts(program, RT_OBJECT_DATA, data, which, field, count, err);
            found = true;
        }
    if (!found)
        return rt_fail(err, TEC_INVALID, "there is no constructor '%s'", constructor), NULL;
    return rt_fail(err, first.status, "%s", first.text), NULL;
}

tec_object *tec_object_ref(tec_object *object)
{
    return rt_retain(object);
}

void tec_object_free(tec_object *object)
{
    rt_release(object);
}

const DLTensor *tec_object_dltensor(const tec_object *object)
{
    return object && object->kind == RT_OBJECT_TENSOR
               ? &((const rt_tensor_object *)(const void *)object)->tensor
               : NULL;
}

/* NULL: a tensor or nothing. */
static const rt_node_object *parts_of(const tec_object *object)
{
    return object && (object->kind == RT_OBJECT_TUPLE || object->kind == RT_OBJECT_DATA)
               ? (const rt_node_object *)(const void *)object
               : NULL;
}

int tec_object_n_parts(const tec_object *object)
{
    const rt_node_object *n = parts_of(object);

    return n ? n->n : 0;
}

tec_object *tec_object_part(const tec_object *object, int i)
{
    const rt_node_object *n = parts_of(object);

    return n && i >= 0 && i < n->n ? n->part[i] : NULL;
}

const char *tec_object_constructor(const tec_program *program, const tec_object *object)
{
    if (!program || !object || object->kind != RT_OBJECT_DATA || object->heap != program->heap)
        return NULL;
    return program->program->data[parts_of(object)->what].constructors[parts_of(object)->tag].name;
}
