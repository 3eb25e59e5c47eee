/* runtime/program.c -- instances of programs, and values as users make and read them: include/tec/program.h.
 *
 * A data value is held against its constructor when it is made, so that a list of any length is right when
 * its
 * last cell is: no run walks through its arguments.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/tensor.h"
#include "runtime/vm.h"

enum { DEPTH = 1 << 21, TEXT_DEPTH = 8 };

/* ---- texts ---- */

/* "(f32[?, 4], List)"; tuples that nest deeper than TEXT_DEPTH are cut. */
static void put_type(rt_line *line, const rt_program_desc *p, int32_t type, int depth)
{
    const rt_type_desc *t = &p->types[type];
    char text[24];

    if (t->kind == RT_TYPE_DATA) {
        rt_put(line, "%s", p->data[t->data].name);
    } else if (t->kind == RT_TYPE_TENSOR) {
        rt_put(line, "%s", base_dtype_print(t->dtype, text, sizeof text));
        for (int32_t d = 0; d < t->rank; d++)
            rt_put(line, t->extents[d] < 0 ? "%s?" : "%s%lld", d ? ", " : "[", (long long)t->extents[d]);
        rt_put(line, "%s", t->rank ? "]" : "");
    } else {
        rt_put(line, t->kind == RT_TYPE_FUNCTION ? "function (" : "(");
        for (int32_t i = 0; i < t->n_parts && depth < TEXT_DEPTH; i++) {
            rt_put(line, "%s", i == 0 ? "" : i == t->n_params ? " -> " : ", ");
            put_type(line, p, t->parts[i], depth + 1);
        }
        rt_put(line, ")");
    }
}

/* Cut where the buffer ends. */
static const char *type_text(const tec_program *p, int32_t type, char *buffer, size_t size)
{
    rt_line line = {buffer, size, 0};

    buffer[0] = '\0';
    put_type(&line, p->program, type, 0);
    return buffer;
}

/* A data value of another instance is not named: its types are not ours. */
static const char *object_text(const tec_program *p, rt_object *o, char *buffer, size_t size)
{
    if (!o)
        snprintf(buffer, size, "nothing");
    else if (o->kind == RT_OBJECT_TENSOR)
        tec_tensor_text(&rt_as_tensor(o)->tensor, buffer, size);
    else if (o->kind == RT_OBJECT_DATA && o->heap == p->heap)
        snprintf(buffer, size, "%s", p->program->data[rt_as_node(o)->what].name);
    else
        snprintf(buffer, size, o->kind == RT_OBJECT_TUPLE ? "a tuple of %d" : "a value of another kind",
                 (int)rt_as_node(o)->n);
    return buffer;
}

/* ---- types of values ---- */

/* An extent below 0 takes any. */
static bool is_tensor_of(const rt_type_desc *t, const DLTensor *x)
{
    if (t->rank != x->ndim || !base_dtype_same(t->dtype, x->dtype))
        return false;
    for (int32_t d = 0; d < t->rank; d++)
        if (t->extents[d] >= 0 && t->extents[d] != x->shape[d])
            return false;
    return true;
}

/* Tuples nest as deep as their type does; what a data value holds was looked at when it was made. */
static bool has_type(const tec_program *p, int32_t type, rt_object *o)
{
    const rt_type_desc *t = &p->program->types[type];

    if (!o || (o->refs >= 0 && o->heap != p->heap))
        return false;
    switch (t->kind) {
    case RT_TYPE_TENSOR: return o->kind == RT_OBJECT_TENSOR && is_tensor_of(t, &rt_as_tensor(o)->tensor);
    case RT_TYPE_DATA: return o->kind == RT_OBJECT_DATA && rt_as_node(o)->what == t->data;
    case RT_TYPE_TUPLE:
        if (o->kind != RT_OBJECT_TUPLE || rt_as_node(o)->n != t->n_parts)
            return false;
        for (int32_t i = 0; i < t->n_parts; i++)
            if (!has_type(p, t->parts[i], rt_as_node(o)->part[i]))
                return false;
        return true;
    case RT_TYPE_NUMBER:
    case RT_TYPE_STORAGE:
    case RT_TYPE_FUNCTION: return false; /* users make none */
    }
    return false;
}

/* `what` and `name` are for the message: "input 'x'". */
static bool check_value(const tec_program *p, int32_t type, rt_object *o, const char *what, const char *name,
                        tec_error *err)
{
    char expected[200], found[100];

    if (has_type(p, type, o))
        return true;
    if (o && o->refs >= 0 && o->heap != p->heap)
        return rt_fail(err, TEC_INVALID, "%s '%s': the value was made for another instance", what, name);
    return rt_fail(err, TEC_INVALID, "%s '%s': expected %s, found %s", what, name,
                   type_text(p, type, expected, sizeof expected), object_text(p, o, found, sizeof found));
}

/* ---- instances ---- */

/* Without a name the first function, which is `main`. */
static int32_t find_function(const tec_module *m, const char *name, tec_error *err)
{
    const rt_program_desc *p = &rt_module_describe(m)->program;

    if (p->n_functions == 0)
        return rt_fail(err, TEC_INVALID, "%s: has no program", rt_module_path(m)), -1;
    for (int32_t i = 0; i < p->n_functions; i++)
        if (!name || strcmp(p->functions[i].name, name) == 0)
            return i;
    return rt_fail(err, TEC_INVALID, "%s: its program has no function '%s'", rt_module_path(m), name), -1;
}

/* An object for each constant of the module, over the module's bytes. Constants are shared by all runs and
 * never counted. */
static bool make_constants(tec_program *p, tec_error *err)
{
    const rt_module_desc *d = p->desc;

    p->constants = rt_arena_alloc(&p->arena, d->n_constants, sizeof *p->constants, err);
    for (int32_t i = 0; p->constants && i < d->n_constants; i++) {
        const rt_constant_desc *c = &d->constants[i];
        void *memory = rt_arena_alloc(&p->arena, 1, rt_constant_object_bytes(c->rank), err);

        if (!memory)
            return false;
        rt_constant_object(memory, c->dtype, c->rank, c->shape, c->data);
        p->constants[i] = memory;
    }
    return p->constants != NULL;
}

/* Which registers of each function hold objects. One bit for each register: when a call ends, those with a
 * bit are released. */
static bool mark_objects(tec_program *p, tec_error *err)
{
    const rt_program_desc *d = p->program;

    p->objects = rt_arena_alloc(&p->arena, d->n_functions, sizeof *p->objects, err);
    for (int32_t i = 0; p->objects && i < d->n_functions; i++) {
        const rt_routine_desc *f = &d->functions[i];

        p->objects[i] = rt_arena_alloc(&p->arena, f->n_registers / 64 + 1, sizeof **p->objects, err);
        if (!p->objects[i])
            return false;
        for (int32_t r = 0; r < f->n_registers; r++)
            if (d->types[f->registers[r]].kind != RT_TYPE_NUMBER)
                p->objects[i][r / 64] |= (uint64_t)1 << (r % 64);
    }
    return p->objects != NULL;
}

/* dims and args are for one kernel's call at a time. */
static bool set_up(tec_program *p, tec_error *err)
{
    p->dims = rt_arena_alloc(&p->arena, RT_MAX_SYMBOLS, sizeof *p->dims, err);
    p->args = rt_arena_alloc(&p->arena, RT_MAX_PARAMS, sizeof *p->args, err);
    p->heap = rt_heap_new(p->options.max_bytes, err);
    return p->dims && p->args && p->heap && make_constants(p, err) && mark_objects(p, err) &&
           rt_env_open(&p->env, &p->options.run, p->desc->flags & RT_MODULE_KEEP_DENORMALS, err);
}

/* The module stays open while the instance lives. The values of an instance live in its heap: instances share
 * nothing but the module. */
tec_program *tec_program_new(tec_module *m, const char *function, const tec_program_options *options,
                             tec_error *err)
{
    tec_program *p;
    int32_t entry;

    if (!m)
        return rt_fail(err, TEC_INVALID, "a program of no module"), NULL;
    entry = find_function(m, function, err);
    p = entry < 0 ? NULL : rt_alloc(sizeof *p, err);
    if (!p)
        return NULL;
    p->module = tec_module_ref(m);
    p->desc = rt_module_describe(m);
    p->program = &p->desc->program;
    p->entry = entry;
    if (options)
        p->options = *options;
    if (p->options.max_depth <= 0)
        p->options.max_depth = DEPTH;
    atomic_init(&p->cancelled, false);
    if (set_up(p, err))
        return p;
    tec_program_free(p);
    return NULL;
}

/* The heap stays as long as the user holds one of its values. */
void tec_program_free(tec_program *p)
{
    if (!p)
        return;
    rt_free(p->registers);
    rt_free(p->calls);
    rt_heap_close(p->heap);
    rt_arena_free(&p->arena);
    rt_env_close(&p->env);
    tec_module_free(p->module);
    rt_free(p);
}

static const rt_routine_desc *entry_of(const tec_program *p)
{
    return &p->program->functions[p->entry];
}

int tec_program_n_inputs(const tec_program *p)
{
    return p ? entry_of(p)->n_params : 0;
}

int tec_program_n_outputs(const tec_program *p)
{
    return p ? entry_of(p)->n_results : 0;
}

const char *tec_program_input_name(const tec_program *p, int i)
{
    return i >= 0 && i < tec_program_n_inputs(p) ? entry_of(p)->params[i] : NULL;
}

const char *tec_program_input_text(const tec_program *p, int i, char *buffer, size_t size)
{
    if (i < 0 || i >= tec_program_n_inputs(p) || !buffer || size == 0)
        return NULL;
    return type_text(p, entry_of(p)->registers[i], buffer, size);
}

/* Types of the inputs are checked here; extents that depend on each other, by the code. */
bool tec_program_run(tec_program *p, tec_object *const *in, int n_in, tec_object **out, int n_out,
                     tec_error *err)
{
    const rt_routine_desc *f;

    if (!p)
        return rt_fail(err, TEC_INVALID, "a run of no program");
    f = entry_of(p);
    if (n_in != f->n_params || n_out != f->n_results || (n_in && !in) || (n_out && !out))
        return rt_fail(err, TEC_INVALID, "'%s' has %d inputs and %d outputs, found %d and %d", f->name,
                       (int)f->n_params, (int)f->n_results, n_in, n_out);
    for (int i = 0; i < n_in; i++)
        if (!check_value(p, f->registers[i], in[i], "input", f->params[i], err))
            return false;
    return rt_vm_run(p, p->entry, in, out, err);
}

/* From any thread; the run stops at its next look. */
void tec_program_cancel(tec_program *p)
{
    if (p)
        atomic_store(&p->cancelled, true);
}

bool tec_program_count(const tec_program *p, tec_program_counts *out)
{
    if (!p || !out)
        return false;
    *out = p->counts;
    return true;
}

/* ---- values ---- */

/* The elements are copied: the tensor of the caller may change afterwards. */
tec_object *tec_object_tensor(tec_program *p, const DLTensor *t, tec_error *err)
{
    rt_object *storage, *made;

    if (!p)
        return rt_fail(err, TEC_INVALID, "a value for no program"), NULL;
    if (!rt_tensor_check(t, "a value", err))
        return NULL;
    storage = rt_new_storage(p->heap, tec_tensor_elements(t) * base_dtype_bytes(t->dtype), err);
    made = storage ? rt_new_tensor(p->heap, storage, 0, t->dtype, t->ndim, t->shape, err) : NULL;
    rt_release(storage);
    if (made && !tec_tensor_copy(&rt_as_tensor(made)->tensor, t, err)) {
        rt_release(made);
        return NULL;
    }
    return made;
}

/* Takes a reference to each part: the caller keeps its own. */
static tec_object *new_parts(tec_program *p, rt_object_kind kind, int32_t what, int32_t tag,
                             tec_object *const *part, int n, tec_error *err)
{
    rt_node_object *o = rt_new_node(p->heap, kind, what, tag, n, err);

    for (int i = 0; o && i < n; i++)
        o->part[i] = rt_retain(part[i]);
    return o ? &o->head : NULL;
}

/* Types are not checked: a tuple has none before it is used. */
tec_object *tec_object_tuple(tec_program *p, tec_object *const *part, int n, tec_error *err)
{
    if (!p || n < 0 || n > RT_MAX_FIELDS || (n && !part))
        return rt_fail(err, TEC_INVALID, "a tuple of %d parts", n), NULL;
    for (int i = 0; i < n; i++)
        if (!part[i] || (part[i]->refs >= 0 && part[i]->heap != p->heap))
            return rt_fail(err, TEC_INVALID, "part %d of a tuple is no value of this instance", i), NULL;
    return new_parts(p, RT_OBJECT_TUPLE, 0, 0, part, n, err);
}

/* Names of constructors are unique in a program. */
static const rt_constructor_desc *find_constructor(const rt_program_desc *d, const char *name, int32_t *data,
                                                   int32_t *which)
{
    for (*data = 0; *data < d->n_data; ++*data)
        for (*which = 0; *which < d->data[*data].n_constructors; ++*which)
            if (strcmp(d->data[*data].constructors[*which].name, name) == 0)
                return &d->data[*data].constructors[*which];
    return NULL;
}

/* Finds the constructor by name and checks each field against its declared type. */
tec_object *tec_object_data(tec_program *p, const char *constructor, tec_object *const *field, int n,
                            tec_error *err)
{
    const rt_constructor_desc *c;
    int32_t data, which;
    char name[80];

    if (!p || !constructor || (n && !field))
        return rt_fail(err, TEC_INVALID, "a data value of nothing"), NULL;
    c = find_constructor(p->program, constructor, &data, &which);
    if (!c)
        return rt_fail(err, TEC_INVALID, "there is no constructor '%s'", constructor), NULL;
    if (n != c->n_fields)
        return rt_fail(err, TEC_INVALID, "'%s' has %d fields, found %d", constructor, (int)c->n_fields, n),
               NULL;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%d' of '%s", i + 1, constructor);
        if (!check_value(p, c->fields[i], field[i], "field", name, err))
            return NULL;
    }
    return new_parts(p, RT_OBJECT_DATA, data, which, field, n, err);
}

tec_object *tec_object_ref(tec_object *o)
{
    return rt_retain(o);
}

void tec_object_free(tec_object *o)
{
    rt_release(o);
}

const DLTensor *tec_object_dltensor(const tec_object *o)
{
    return o && o->kind == RT_OBJECT_TENSOR ? &((const rt_tensor_object *)(const void *)o)->tensor : NULL;
}

/* NULL: a tensor or nothing. */
static const rt_node_object *parts_of(const tec_object *o)
{
    return o && (o->kind == RT_OBJECT_TUPLE || o->kind == RT_OBJECT_DATA)
               ? (const rt_node_object *)(const void *)o
               : NULL;
}

int tec_object_n_parts(const tec_object *o)
{
    const rt_node_object *n = parts_of(o);

    return n ? n->n : 0;
}

tec_object *tec_object_part(const tec_object *o, int i)
{
    const rt_node_object *n = parts_of(o);

    return n && i >= 0 && i < n->n ? n->part[i] : NULL;
}

const char *tec_object_constructor(const tec_program *p, const tec_object *o)
{
    if (!p || !o || o->kind != RT_OBJECT_DATA || o->heap != p->heap)
        return NULL;
    return p->program->data[parts_of(o)->what].constructors[parts_of(o)->tag].name;
}
