/* codec.c -- descriptions <-> bytes: the metadata sections of a module file.
 *
 * Each struct has one function that names its fields in the order of the file. It runs in both directions, on
 * a local copy of the struct: a writer's stream takes each field, a reader's stream sets it. So the two
 * cannot drift apart.
 *
 * All numbers are little-endian. A text is its length plus one as u32 (0: no text), its bytes and a NUL; an
 * array is its count as i32 and its items; dimension code is an array of i64.
 *
 * Reading trusts nothing: each count is compared with the bytes that are left before memory is taken for it,
 * each text ends with its NUL inside of the section, and after the first error the stream stands at its end
 * and gives zeros, so that loops end by themselves and no field has to be asked for errors.
 */
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/format.h"

/* `out` decides the direction. When reading, at..end is what is left, and texts of the result point into
 * it. */
typedef struct {
    rt_bytes *out; /* writing; NULL: reading */
    const uint8_t *at, *end;
    struct rt_arena *arena;
    tec_error *err;
    bool failed; /* readers give zeros from then on */
} stream;

/* ---- growing bytes ---- */

/* Room for size more bytes; after a failure everything written is dropped, which the caller sees at the end.
 * Doubles, so that size bytes are copied O(1) times each. */
static bool reserve(rt_bytes *bytes, size_t size)
{
    size_t cap = bytes->cap ? bytes->cap : 256;
    uint8_t *data;

    if (bytes->failed)
        return false;
    if (bytes->cap - bytes->n >= size)
        return true;
    while (cap - bytes->n < size)
        cap *= 2;
    data = rt_alloc(cap, NULL);
    if (!data) {
        bytes->failed = true;
        return false;
    }
    if (bytes->n)
        memcpy(data, bytes->data, bytes->n);
    rt_free(bytes->data);
    bytes->data = data;
    bytes->cap = cap;
    return true;
}

void rt_bytes_add(rt_bytes *bytes, const void *data, size_t n)
{
    if (n == 0 || !reserve(bytes, n))
        return;
    memcpy(bytes->data + bytes->n, data, n);
    bytes->n += n;
}

void rt_bytes_free(rt_bytes *bytes)
{
    rt_free(bytes->data);
    *bytes = (rt_bytes){0};
}

/* ---- numbers and texts ---- */

/* Only the first complaint is kept. */
static void refuse(stream *self, const char *what)
{
    if (!self->failed)
        rt_fail(self->err, TEC_INVALID, "%s", what);
    self->failed = true;
    self->at = self->end;
}

/* `bytes` stays as it was where this is false. */
static bool take(stream *self, size_t n, const uint8_t **bytes)
{
    if (!self->failed && (size_t)(self->end - self->at) < n)
        refuse(self, "ends inside an entry");
    if (self->failed)
        return false;
    *bytes = self->at;
    self->at += n;
    return true;
}

/* The low `bytes` bytes of value, little-endian; when reading, the number that is there. */
static uint64_t number(stream *self, uint64_t value, int bytes)
{
    uint8_t buffer[8];
    const uint8_t *from = buffer;

    if (self->out) {
        for (int i = 0; i < bytes; i++)
            buffer[i] = (uint8_t)(value >> 8 * i);
        rt_bytes_add(self->out, buffer, (size_t)bytes);
        return value;
    }
    if (!take(self, (size_t)bytes, &from))
        return 0;
    value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

static void io_u64(stream *self, uint64_t *v)
{
    *v = number(self, *v, 8);
}

static void io_u32(stream *self, uint32_t *v)
{
    *v = (uint32_t)number(self, *v, 4);
}

static void io_i32(stream *self, int32_t *v)
{
    *v = (int32_t)(uint32_t)number(self, (uint32_t)*v, 4);
}

static void io_i64(stream *self, int64_t *v)
{
    *v = (int64_t)number(self, (uint64_t)*v, 8);
}

/* Other numbers are refused, so that each description has one form only. */
static void io_bool(stream *self, bool *v)
{
    uint64_t n = number(self, *v, 1);

    if (n > 1)
        refuse(self, "a truth value is neither 0 nor 1");
    *v = n == 1;
}

static void io_dtype(stream *self, base_dtype *dtype)
{
    dtype->code = (uint8_t)number(self, dtype->code, 1);
    dtype->bits = (uint8_t)number(self, dtype->bits, 1);
    dtype->lanes = (uint16_t)number(self, dtype->lanes, 2);
}

/* The NUL goes into the file: a reader can use the text where it lies. */
static void write_text(stream *self, const char *text)
{
    size_t n = text ? strlen(text) : 0;

    if (n >= RT_MAX_TEXT) {
        refuse(self, "a text is too long");
        return;
    }
    number(self, text ? n + 1 : 0, 4);
    rt_bytes_add(self->out, text, text ? n + 1 : 0);
}

/* NULL for no text. The bytes stay in the file's memory, so they must end with a NUL there. */
static const char *read_text(stream *self)
{
    uint64_t n = number(self, 0, 4);
    const uint8_t *bytes;

    if (n == 0)
        return NULL;
    if (n > RT_MAX_TEXT) {
        refuse(self, "a text is too long");
        return NULL;
    }
    if (!take(self, n, &bytes))
        return NULL;
    if (memchr(bytes, '\0', n) != bytes + n - 1) {
        refuse(self, "a text has a zero byte inside, or none at its end");
        return NULL;
    }
    return (const char *)bytes;
}

static void io_text(stream *self, const char **text)
{
    if (self->out)
        write_text(self, *text);
    else
        *text = read_text(self);
}

/* ---- arrays ---- */

typedef void io_fn(stream *s, void *item);

enum { MAX_ITEM_BYTES = 256 };
_Static_assert(sizeof(rt_function_desc) <= MAX_ITEM_BYTES, "the largest item must fit");

/* The array behind `given` when writing, a new zeroed one when reading. Each item takes at least 4 bytes of
 * the file. The least size of an item bounds what a wrong count can allocate: the file has to be as long. */
static void *open_array(stream *self, const void *given, int32_t *count, size_t size, int32_t max)
{
    void *items;

    io_i32(self, count);
    if (!self->failed && (*count < 0 || *count > max || (!self->out && (self->end - self->at) / 4 < *count)))
        refuse(self, "a count is out of range");
    if (self->failed)
        *count = 0;
    if (self->out || *count == 0)
        return self->out ? (void *)(uintptr_t)given : NULL;
    items = rt_arena_alloc(self->arena, *count, size, self->err);
    if (!items) {
        self->failed = true;
        *count = 0;
    }
    return items;
}

/* Each item goes through io as a local copy, so that a description in constant memory can be written. The
 * copy back is left out when writing, since the source may be constant. */
static void *io_array(stream *self, const void *given, int32_t *count, size_t size, int32_t max, io_fn *io)
{
    unsigned char *items = open_array(self, given, count, size, max);
    _Alignas(max_align_t) unsigned char local[MAX_ITEM_BYTES];

    for (int32_t i = 0; i < *count && !self->failed; i++) {
        memcpy(local, items + (size_t)i * size, size);
        io(self, local);
        if (!self->out)
            memcpy(items + (size_t)i * size, local, size);
    }
    return items;
}

static void item_i32(stream *self, void *item)
{
    io_i32(self, item);
}

static void item_i64(stream *self, void *item)
{
    io_i64(self, item);
}

static void item_text(stream *self, void *item)
{
    io_text(self, item);
}

/* Words are checked later (rt_dim_verify); here they are numbers. */
static void io_dim(stream *self, rt_dim *dim)
{
    dim->word = io_array(self, dim->word, &dim->n, sizeof *dim->word, RT_DIM_MAX_WORDS, item_i64);
}

static void item_dim(stream *self, void *item)
{
    io_dim(self, item);
}

static void io_shape(stream *self, const rt_dim **shape, int32_t *rank)
{
    *shape = io_array(self, *shape, rank, sizeof **shape, RT_MAX_RANK, item_dim);
}

/* ---- the structs ---- */

/* Strides are an empty list where the parameter has none. */
static void io_param(stream *self, void *item)
{
    rt_param_desc *param = item;
    int32_t kind = (int32_t)param->kind, n_strides = param->strides ? param->rank : 0;

    io_text(self, &param->name);
    io_i32(self, &kind);
    param->kind = (rt_param_kind)kind;
    io_dtype(self, &param->dtype);
    io_bool(self, &param->is_output);
    io_shape(self, &param->shape, &param->rank);
    io_shape(self, &param->strides, &n_strides);
    if (n_strides && n_strides != param->rank)
        refuse(self, "a parameter has another number of strides than dimensions");
    if (!n_strides)
        param->strides = NULL;
    io_i32(self, &param->alignment);
}

static void io_fact(stream *self, void *item)
{
    rt_fact_desc *f = item;

    io_dim(self, &f->condition);
    io_text(self, &f->text);
}

static void io_alias(stream *self, void *item)
{
    rt_alias_desc *a = item;

    io_i32(self, &a->a);
    io_i32(self, &a->b);
}

static void io_arg(stream *self, void *item)
{
    rt_arg_desc *a = item;
    int32_t kind = (int32_t)a->kind;

    io_i32(self, &kind);
    a->kind = (rt_arg_kind)kind;
    io_i32(self, &a->index);
    io_dim(self, &a->value);
}

/* A grid has three sizes, always. */
static void io_launch(stream *self, void *item)
{
    rt_launch_desc *launch = item;
    int32_t axes = 3;

    io_text(self, &launch->kernel);
    io_dim(self, &launch->guard);
    io_shape(self, &launch->grid, &axes);
    if (axes != 3)
        refuse(self, "a launch does not have three sizes of its grid");
    for (int i = 0; i < 3; i++)
        io_i32(self, &launch->block[i]);
    io_i64(self, &launch->shared_bytes);
    launch->args = io_array(self, launch->args, &launch->n_args, sizeof *launch->args, RT_MAX_PARAMS, io_arg);
}

static void io_loop(stream *self, void *item)
{
    rt_loop_desc *l = item;

    io_i32(self, &l->first);
    io_i32(self, &l->end);
    io_dim(self, &l->min);
    io_dim(self, &l->extent);
}

static void io_range(stream *self, void *item)
{
    rt_range_desc *range = item;

    io_i64(self, &range->to);
    io_i32(self, &range->function);
}

/* The fields in the order of format version RT_FORMAT_VERSION. */
static void io_function(stream *self, void *item)
{
    rt_function_desc *function = item;

    io_text(self, &function->name);
    io_text(self, &function->symbol);
    io_text(self, &function->device);
    function->launches = io_array(self, function->launches, &function->n_launches, sizeof *function->launches,
                                  RT_MAX_LAUNCHES, io_launch);
    function->loops =
        io_array(self, function->loops, &function->n_loops, sizeof *function->loops, RT_MAX_LOOPS, io_loop);
    function->params = io_array(self, function->params, &function->n_params, sizeof *function->params,
                                RT_MAX_PARAMS, io_param);
    function->symbols = io_array(self, function->symbols, &function->n_symbols, sizeof *function->symbols,
                                 RT_MAX_SYMBOLS, item_text);
    function->facts =
        io_array(self, function->facts, &function->n_facts, sizeof *function->facts, RT_MAX_SYMBOLS, io_fact);
    function->aliases = io_array(self, function->aliases, &function->n_aliases, sizeof *function->aliases,
                                 RT_MAX_PARAMS, io_alias);
    io_dim(self, &function->workspace);
    io_dim(self, &function->thread_workspace);
    io_dim(self, &function->flops);
    io_dim(self, &function->bytes);
    io_text(self, &function->origin);
    io_i32(self, &function->chooser);
    function->ranges = io_array(self, function->ranges, &function->n_ranges, sizeof *function->ranges,
                                RT_MAX_RANGES, io_range);
    io_text(self, &function->summary);
}

static void io_constant(stream *self, void *item)
{
    rt_constant_desc *c = item;

    io_text(self, &c->name);
    io_dtype(self, &c->dtype);
    c->shape = io_array(self, c->shape, &c->rank, sizeof *c->shape, RT_MAX_RANK, item_i64);
}

static void io_symbol(stream *self, void *item)
{
    rt_symbol_desc *y = item;

    io_text(self, &y->name);
    io_i32(self, &y->input);
    io_i32(self, &y->dim);
}

static void io_tensor(stream *self, void *item)
{
    rt_tensor_desc *t = item;

    io_text(self, &t->name);
    io_dtype(self, &t->dtype);
    io_shape(self, &t->shape, &t->rank);
}

static void io_value(stream *self, void *item)
{
    rt_value_desc *value = item;
    int32_t storage = (int32_t)value->storage;

    io_dtype(self, &value->dtype);
    io_shape(self, &value->shape, &value->rank);
    io_i32(self, &storage);
    value->storage = (rt_storage)storage;
    io_i32(self, &value->index);
    io_dim(self, &value->offset);
    io_i32(self, &value->site);
}

static void io_site(stream *self, void *item)
{
    rt_site_desc *d = item;

    io_text(self, &d->device);
    io_dim(self, &d->pool_size);
}

static void io_step(stream *self, void *item)
{
    rt_step_desc *t = item;

    io_i32(self, &t->function);
    t->values = io_array(self, t->values, &t->n_values, sizeof *t->values, RT_MAX_PARAMS, item_i32);
    t->dims = io_array(self, t->dims, &t->n_dims, sizeof *t->dims, RT_MAX_SYMBOLS, item_dim);
    io_text(self, &t->name);
    io_text(self, &t->nodes);
}

/* Reads or writes the description of a graph, field by field in the order of the file. */
static void io_graph(stream *self, void *item)
{
    rt_graph_desc *graph = item;

    io_text(self, &graph->name);
    graph->symbols =
        io_array(self, graph->symbols, &graph->n_symbols, sizeof *graph->symbols, RT_MAX_SYMBOLS, io_symbol);
    graph->facts =
        io_array(self, graph->facts, &graph->n_facts, sizeof *graph->facts, RT_MAX_SYMBOLS, io_fact);
    graph->inputs =
        io_array(self, graph->inputs, &graph->n_inputs, sizeof *graph->inputs, RT_MAX_PARAMS, io_tensor);
    graph->outputs =
        io_array(self, graph->outputs, &graph->n_outputs, sizeof *graph->outputs, RT_MAX_PARAMS, io_tensor);
    graph->values =
        io_array(self, graph->values, &graph->n_values, sizeof *graph->values, RT_MAX_STEPS, io_value);
    io_dim(self, &graph->pool_size);
    graph->sites = io_array(self, graph->sites, &graph->n_sites, sizeof *graph->sites, RT_MAX_SITES, io_site);
    graph->steps = io_array(self, graph->steps, &graph->n_steps, sizeof *graph->steps, RT_MAX_STEPS, io_step);
}

/* Which machine the module is for stands first, so that it can be refused early. */
static void io_info(stream *self, rt_module_desc *module)
{
    io_text(self, &module->target);
    io_text(self, &module->arch);
    module->features = io_array(self, module->features, &module->n_features, sizeof *module->features,
                                RT_MAX_SYMBOLS, item_text);
    io_u32(self, &module->flags);
    io_text(self, &module->producer);
}

static void io_kernel(stream *self, void *item)
{
    rt_kernel_desc *k = item;

    io_text(self, &k->name);
    k->args = io_array(self, k->args, &k->n_args, sizeof *k->args, RT_MAX_PARAMS, item_i32);
}

/* The code's bytes stay where they were read. */
static void io_code(stream *self, void *item)
{
    rt_code_desc *code = item;
    int32_t format = (int32_t)code->format;
    const uint8_t *bytes = NULL;

    io_text(self, &code->target);
    io_text(self, &code->device);
    io_i32(self, &format);
    code->format = (rt_code_format)format;
    code->kernels =
        io_array(self, code->kernels, &code->n_kernels, sizeof *code->kernels, RT_MAX_LAUNCHES, io_kernel);
    io_u64(self, &code->size);
    if (self->out)
        rt_bytes_add(self->out, code->bytes, (size_t)code->size);
    else if (take(self, (size_t)code->size, &bytes))
        code->bytes = bytes;
}

/* ---- programs ---- */

static void io_type(stream *self, void *item)
{
    rt_type_desc *type = item;
    int32_t kind = (int32_t)type->kind;

    io_i32(self, &kind);
    type->kind = (rt_type_kind)kind;
    io_dtype(self, &type->dtype);
    type->extents = io_array(self, type->extents, &type->rank, sizeof *type->extents, RT_MAX_RANK, item_i64);
    io_i32(self, &type->data);
    type->parts = io_array(self, type->parts, &type->n_parts, sizeof *type->parts, RT_MAX_FIELDS, item_i32);
    io_i32(self, &type->n_params);
}

static void io_constructor(stream *self, void *item)
{
    rt_constructor_desc *c = item;

    io_text(self, &c->name);
    c->fields = io_array(self, c->fields, &c->n_fields, sizeof *c->fields, RT_MAX_FIELDS, item_i32);
}

static void io_data(stream *self, void *item)
{
    rt_data_desc *d = item;

    io_text(self, &d->name);
    d->constructors = io_array(self, d->constructors, &d->n_constructors, sizeof *d->constructors,
                               RT_MAX_FIELDS, io_constructor);
}

static void io_line(stream *self, void *item)
{
    rt_line_desc *l = item;

    io_i32(self, &l->word);
    io_i32(self, &l->line);
}

static void io_routine(stream *self, void *item)
{
    rt_routine_desc *f = item;

    io_text(self, &f->name);
    io_text(self, &f->file);
    f->registers =
        io_array(self, f->registers, &f->n_registers, sizeof *f->registers, RT_MAX_REGISTERS, item_i32);
    io_i32(self, &f->n_params);
    f->params = io_array(self, f->params, &f->n_names, sizeof *f->params, RT_MAX_FIELDS, item_text);
    f->results = io_array(self, f->results, &f->n_results, sizeof *f->results, RT_MAX_FIELDS, item_i32);
    f->words = io_array(self, f->words, &f->n_words, sizeof *f->words, RT_MAX_WORDS, item_i32);
    f->lines = io_array(self, f->lines, &f->n_lines, sizeof *f->lines, RT_MAX_WORDS, io_line);
}

/* Reads or writes a program: its types, data types, dimensions, texts and functions. */
static void io_program(stream *self, rt_program_desc *program)
{
    program->types =
        io_array(self, program->types, &program->n_types, sizeof *program->types, RT_MAX_TYPES, io_type);
    program->data =
        io_array(self, program->data, &program->n_data, sizeof *program->data, RT_MAX_TYPES, io_data);
    program->dims =
        io_array(self, program->dims, &program->n_dims, sizeof *program->dims, RT_MAX_STEPS, item_dim);
    program->dim_symbols = io_array(self, program->dim_symbols, &program->n_dim_symbols,
                                    sizeof *program->dim_symbols, RT_MAX_STEPS, item_i32);
    program->texts =
        io_array(self, program->texts, &program->n_texts, sizeof *program->texts, RT_MAX_STEPS, item_text);
    program->functions = io_array(self, program->functions, &program->n_functions, sizeof *program->functions,
                                  RT_MAX_FUNCTIONS, io_routine);
}

/* Which lists of the description a section holds. */
static void io_section(stream *self, rt_module_desc *module, rt_section_kind kind)
{
    switch (kind) {
    case RT_SECTION_INFO: io_info(self, module); break;
    case RT_SECTION_FUNCTIONS:
        module->functions = io_array(self, module->functions, &module->n_functions, sizeof *module->functions,
                                     RT_MAX_FUNCTIONS, io_function);
        break;
    case RT_SECTION_CONSTANTS:
        module->constants = io_array(self, module->constants, &module->n_constants, sizeof *module->constants,
                                     RT_MAX_STEPS, io_constant);
        break;
    case RT_SECTION_GRAPHS:
        module->graphs = io_array(self, module->graphs, &module->n_graphs, sizeof *module->graphs,
                                  RT_MAX_GRAPHS, io_graph);
        break;
    case RT_SECTION_CODE:
        module->codes =
            io_array(self, module->codes, &module->n_codes, sizeof *module->codes, RT_MAX_CODES, io_code);
        break;
    case RT_SECTION_PROGRAM: io_program(self, &module->program); break;
    case RT_SECTION_WEIGHTS:
    case RT_SECTION_BESIDE:
    case RT_SECTION_END: refuse(self, "not a section of metadata"); break;
    }
}

static void io_beside(stream *self, rt_beside *beside)
{
    io_text(self, &beside->name);
    io_u64(self, &beside->offset);
    io_u64(self, &beside->size);
    io_u64(self, &beside->checksum);
    io_u64(self, &beside->head_checksum);
}

/* Memory failures of the bytes were only noted until here. */
static bool finish_writing(stream *self)
{
    if (self->out->failed)
        return rt_fail_memory(self->err, self->out->cap);
    return !self->failed;
}

/* Bytes that nobody read would be a field of another version. */
static bool finish_reading(stream *self)
{
    if (self->at != self->end)
        refuse(self, "has bytes after its last entry");
    return !self->failed;
}

bool rt_module_encode(const rt_module_desc *module, rt_section_kind kind, rt_bytes *out, tec_error *err)
{
    stream s = {.out = out, .err = err};
    rt_module_desc local = *module;

    io_section(&s, &local, kind);
    return finish_writing(&s);
}

/* Sections of one module are decoded into one description, each filling its own lists. */
bool rt_module_decode(rt_module_desc *module, rt_section_kind kind, const void *data, size_t size,
                      struct rt_arena *arena, tec_error *err)
{
    stream s = {.at = data, .end = (const uint8_t *)data + size, .arena = arena, .err = err};

    io_section(&s, module, kind);
    return finish_reading(&s);
}

bool rt_beside_encode(const rt_beside *beside, rt_bytes *out, tec_error *err)
{
    stream s = {.out = out, .err = err};
    rt_beside local = *beside;

    io_beside(&s, &local);
    return finish_writing(&s);
}

bool rt_beside_decode(rt_beside *beside, const void *data, size_t size, tec_error *err)
{
    stream s = {.at = data, .end = (const uint8_t *)data + size, .err = err};

    io_beside(&s, beside);
    return finish_reading(&s);
}
