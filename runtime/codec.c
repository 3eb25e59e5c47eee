/* codec.c -- descriptions <-> bytes: the metadata sections of a module file.
 *
 * Each struct has one function that names its fields in the order of the file. It runs in both directions, on
 * a local copy of the struct: a writer's stream takes each field, a reader's stream sets it. So the two
 * cannot drift apart.
 *
 * All numbers are little-endian. A text is its length plus one as u32 (0: no text), its bytes and a NUL; an
 * array is its count as i32 and its items; dimension code is an array of i64.
 *
 * Reading trusts nothing: each count is held against the bytes that are left before memory is taken for it,
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

/* Room for n more bytes; after a failure everything written is dropped, which the caller sees at the end.
 * Doubles, so that n bytes are copied O(1) times each. */
static bool reserve(rt_bytes *b, size_t n)
{
    size_t cap = b->cap ? b->cap : 256;
    uint8_t *data;

    if (b->failed)
        return false;
    if (b->cap - b->n >= n)
        return true;
    while (cap - b->n < n)
        cap *= 2;
    data = rt_alloc(cap, NULL);
    if (!data) {
        b->failed = true;
        return false;
    }
    if (b->n)
        memcpy(data, b->data, b->n);
    rt_free(b->data);
    b->data = data;
    b->cap = cap;
    return true;
}

void rt_bytes_add(rt_bytes *b, const void *data, size_t n)
{
    if (n == 0 || !reserve(b, n))
        return;
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

void rt_bytes_free(rt_bytes *b)
{
    rt_free(b->data);
    *b = (rt_bytes){0};
}

/* ---- numbers and texts ---- */

/* Only the first complaint is kept. */
static void refuse(stream *s, const char *what)
{
    if (!s->failed)
        rt_fail(s->err, TEC_INVALID, "%s", what);
    s->failed = true;
    s->at = s->end;
}

/* `bytes` stays as it was where this is false. */
static bool take(stream *s, size_t n, const uint8_t **bytes)
{
    if (!s->failed && (size_t)(s->end - s->at) < n)
        refuse(s, "ends inside an entry");
    if (s->failed)
        return false;
    *bytes = s->at;
    s->at += n;
    return true;
}

/* The low `bytes` bytes of v, little-endian; when reading, the number that is there. */
static uint64_t number(stream *s, uint64_t v, int bytes)
{
    uint8_t buffer[8];
    const uint8_t *from = buffer;

    if (s->out) {
        for (int i = 0; i < bytes; i++)
            buffer[i] = (uint8_t)(v >> 8 * i);
        rt_bytes_add(s->out, buffer, (size_t)bytes);
        return v;
    }
    if (!take(s, (size_t)bytes, &from))
        return 0;
    v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)from[i] << 8 * i;
    return v;
}

static void io_u64(stream *s, uint64_t *v)
{
    *v = number(s, *v, 8);
}

static void io_u32(stream *s, uint32_t *v)
{
    *v = (uint32_t)number(s, *v, 4);
}

static void io_i32(stream *s, int32_t *v)
{
    *v = (int32_t)(uint32_t)number(s, (uint32_t)*v, 4);
}

static void io_i64(stream *s, int64_t *v)
{
    *v = (int64_t)number(s, (uint64_t)*v, 8);
}

/* Other numbers are refused, so that each description has one form only. */
static void io_bool(stream *s, bool *v)
{
    uint64_t n = number(s, *v, 1);

    if (n > 1)
        refuse(s, "a truth value is neither 0 nor 1");
    *v = n == 1;
}

static void io_dtype(stream *s, base_dtype *t)
{
    t->code = (uint8_t)number(s, t->code, 1);
    t->bits = (uint8_t)number(s, t->bits, 1);
    t->lanes = (uint16_t)number(s, t->lanes, 2);
}

/* The NUL goes into the file: a reader can use the text where it lies. */
static void write_text(stream *s, const char *text)
{
    size_t n = text ? strlen(text) : 0;

    if (n >= RT_MAX_TEXT) {
        refuse(s, "a text is too long");
        return;
    }
    number(s, text ? n + 1 : 0, 4);
    rt_bytes_add(s->out, text, text ? n + 1 : 0);
}

/* NULL for no text. The bytes stay in the file's memory, so they must end with a NUL there. */
static const char *read_text(stream *s)
{
    uint64_t n = number(s, 0, 4);
    const uint8_t *bytes;

    if (n == 0)
        return NULL;
    if (n > RT_MAX_TEXT) {
        refuse(s, "a text is too long");
        return NULL;
    }
    if (!take(s, n, &bytes))
        return NULL;
    if (memchr(bytes, '\0', n) != bytes + n - 1) {
        refuse(s, "a text has a zero byte inside, or none at its end");
        return NULL;
    }
    return (const char *)bytes;
}

static void io_text(stream *s, const char **text)
{
    if (s->out)
        write_text(s, *text);
    else
        *text = read_text(s);
}

/* ---- arrays ---- */

typedef void io_fn(stream *s, void *item);

enum { MAX_ITEM_BYTES = 256 };
_Static_assert(sizeof(rt_function_desc) <= MAX_ITEM_BYTES, "the largest item must fit");

/* The array behind `given` when writing, a new zeroed one when reading. Each item takes at least 4 bytes of
 * the file. The least size of an item bounds what a wrong count can allocate: the file has to be as long. */
static void *open_array(stream *s, const void *given, int32_t *n, size_t size, int32_t max)
{
    void *items;

    io_i32(s, n);
    if (!s->failed && (*n < 0 || *n > max || (!s->out && (s->end - s->at) / 4 < *n)))
        refuse(s, "a count is out of range");
    if (s->failed)
        *n = 0;
    if (s->out || *n == 0)
        return s->out ? (void *)(uintptr_t)given : NULL;
    items = rt_arena_alloc(s->arena, *n, size, s->err);
    if (!items) {
        s->failed = true;
        *n = 0;
    }
    return items;
}

/* Each item goes through io as a local copy, so that a description in constant memory can be written. The
 * copy back is left out when writing, since the source may be constant. */
static void *io_array(stream *s, const void *given, int32_t *n, size_t size, int32_t max, io_fn *io)
{
    unsigned char *items = open_array(s, given, n, size, max);
    _Alignas(max_align_t) unsigned char local[MAX_ITEM_BYTES];

    for (int32_t i = 0; i < *n && !s->failed; i++) {
        memcpy(local, items + (size_t)i * size, size);
        io(s, local);
        if (!s->out)
            memcpy(items + (size_t)i * size, local, size);
    }
    return items;
}

static void item_i32(stream *s, void *item)
{
    io_i32(s, item);
}

static void item_i64(stream *s, void *item)
{
    io_i64(s, item);
}

static void item_text(stream *s, void *item)
{
    io_text(s, item);
}

/* Words are checked later (rt_dim_verify); here they are numbers. */
static void io_dim(stream *s, rt_dim *d)
{
    d->word = io_array(s, d->word, &d->n, sizeof *d->word, RT_DIM_MAX_WORDS, item_i64);
}

static void item_dim(stream *s, void *item)
{
    io_dim(s, item);
}

static void io_shape(stream *s, const rt_dim **shape, int32_t *rank)
{
    *shape = io_array(s, *shape, rank, sizeof **shape, RT_MAX_RANK, item_dim);
}

/* ---- the structs ---- */

/* Strides are an empty list where the parameter has none. */
static void io_param(stream *s, void *item)
{
    rt_param_desc *p = item;
    int32_t kind = (int32_t)p->kind, n_strides = p->strides ? p->rank : 0;

    io_text(s, &p->name);
    io_i32(s, &kind);
    p->kind = (rt_param_kind)kind;
    io_dtype(s, &p->dtype);
    io_bool(s, &p->is_output);
    io_shape(s, &p->shape, &p->rank);
    io_shape(s, &p->strides, &n_strides);
    if (n_strides && n_strides != p->rank)
        refuse(s, "a parameter has another number of strides than dimensions");
    if (!n_strides)
        p->strides = NULL;
    io_i32(s, &p->alignment);
}

static void io_fact(stream *s, void *item)
{
    rt_fact_desc *f = item;

    io_dim(s, &f->condition);
    io_text(s, &f->text);
}

static void io_alias(stream *s, void *item)
{
    rt_alias_desc *a = item;

    io_i32(s, &a->a);
    io_i32(s, &a->b);
}

static void io_arg(stream *s, void *item)
{
    rt_arg_desc *a = item;
    int32_t kind = (int32_t)a->kind;

    io_i32(s, &kind);
    a->kind = (rt_arg_kind)kind;
    io_i32(s, &a->index);
    io_dim(s, &a->value);
}

/* A grid has three sizes, always. */
static void io_launch(stream *s, void *item)
{
    rt_launch_desc *l = item;
    int32_t axes = 3;

    io_text(s, &l->kernel);
    io_dim(s, &l->guard);
    io_shape(s, &l->grid, &axes);
    if (axes != 3)
        refuse(s, "a launch has not three sizes of its grid");
    for (int i = 0; i < 3; i++)
        io_i32(s, &l->block[i]);
    io_i64(s, &l->shared_bytes);
    l->args = io_array(s, l->args, &l->n_args, sizeof *l->args, RT_MAX_PARAMS, io_arg);
}

static void io_loop(stream *s, void *item)
{
    rt_loop_desc *l = item;

    io_i32(s, &l->first);
    io_i32(s, &l->end);
    io_dim(s, &l->min);
    io_dim(s, &l->extent);
}

/* The fields in the order of format version RT_FORMAT_VERSION. */
static void io_function(stream *s, void *item)
{
    rt_function_desc *f = item;

    io_text(s, &f->name);
    io_text(s, &f->symbol);
    io_text(s, &f->device);
    f->launches = io_array(s, f->launches, &f->n_launches, sizeof *f->launches, RT_MAX_LAUNCHES, io_launch);
    f->loops = io_array(s, f->loops, &f->n_loops, sizeof *f->loops, RT_MAX_LOOPS, io_loop);
    f->params = io_array(s, f->params, &f->n_params, sizeof *f->params, RT_MAX_PARAMS, io_param);
    f->symbols = io_array(s, f->symbols, &f->n_symbols, sizeof *f->symbols, RT_MAX_SYMBOLS, item_text);
    f->facts = io_array(s, f->facts, &f->n_facts, sizeof *f->facts, RT_MAX_SYMBOLS, io_fact);
    f->aliases = io_array(s, f->aliases, &f->n_aliases, sizeof *f->aliases, RT_MAX_PARAMS, io_alias);
    io_dim(s, &f->workspace);
    io_dim(s, &f->thread_workspace);
    io_dim(s, &f->flops);
    io_dim(s, &f->bytes);
    io_text(s, &f->origin);
}

static void io_constant(stream *s, void *item)
{
    rt_constant_desc *c = item;

    io_text(s, &c->name);
    io_dtype(s, &c->dtype);
    c->shape = io_array(s, c->shape, &c->rank, sizeof *c->shape, RT_MAX_RANK, item_i64);
}

static void io_symbol(stream *s, void *item)
{
    rt_symbol_desc *y = item;

    io_text(s, &y->name);
    io_i32(s, &y->input);
    io_i32(s, &y->dim);
}

static void io_tensor(stream *s, void *item)
{
    rt_tensor_desc *t = item;

    io_text(s, &t->name);
    io_dtype(s, &t->dtype);
    io_shape(s, &t->shape, &t->rank);
}

static void io_value(stream *s, void *item)
{
    rt_value_desc *v = item;
    int32_t storage = (int32_t)v->storage;

    io_dtype(s, &v->dtype);
    io_shape(s, &v->shape, &v->rank);
    io_i32(s, &storage);
    v->storage = (rt_storage)storage;
    io_i32(s, &v->index);
    io_dim(s, &v->offset);
    io_i32(s, &v->site);
}

static void io_site(stream *s, void *item)
{
    rt_site_desc *d = item;

    io_text(s, &d->device);
    io_dim(s, &d->pool_size);
}

static void io_step(stream *s, void *item)
{
    rt_step_desc *t = item;

    io_i32(s, &t->function);
    t->values = io_array(s, t->values, &t->n_values, sizeof *t->values, RT_MAX_PARAMS, item_i32);
    t->dims = io_array(s, t->dims, &t->n_dims, sizeof *t->dims, RT_MAX_SYMBOLS, item_dim);
    io_text(s, &t->name);
    io_text(s, &t->nodes);
}

static void io_graph(stream *s, void *item)
{
    rt_graph_desc *g = item;

    io_text(s, &g->name);
    g->symbols = io_array(s, g->symbols, &g->n_symbols, sizeof *g->symbols, RT_MAX_SYMBOLS, io_symbol);
    g->facts = io_array(s, g->facts, &g->n_facts, sizeof *g->facts, RT_MAX_SYMBOLS, io_fact);
    g->inputs = io_array(s, g->inputs, &g->n_inputs, sizeof *g->inputs, RT_MAX_PARAMS, io_tensor);
    g->outputs = io_array(s, g->outputs, &g->n_outputs, sizeof *g->outputs, RT_MAX_PARAMS, io_tensor);
    g->values = io_array(s, g->values, &g->n_values, sizeof *g->values, RT_MAX_STEPS, io_value);
    io_dim(s, &g->pool_size);
    g->sites = io_array(s, g->sites, &g->n_sites, sizeof *g->sites, RT_MAX_SITES, io_site);
    g->steps = io_array(s, g->steps, &g->n_steps, sizeof *g->steps, RT_MAX_STEPS, io_step);
}

/* Which machine the module is for stands first, so that it can be refused early. */
static void io_info(stream *s, rt_module_desc *m)
{
    io_text(s, &m->target);
    io_text(s, &m->arch);
    m->features = io_array(s, m->features, &m->n_features, sizeof *m->features, RT_MAX_SYMBOLS, item_text);
    io_u32(s, &m->flags);
    io_text(s, &m->producer);
}

static void io_kernel(stream *s, void *item)
{
    rt_kernel_desc *k = item;

    io_text(s, &k->name);
    k->args = io_array(s, k->args, &k->n_args, sizeof *k->args, RT_MAX_PARAMS, item_i32);
}

/* The code's bytes stay where they were read. */
static void io_code(stream *s, void *item)
{
    rt_code_desc *c = item;
    int32_t format = (int32_t)c->format;
    const uint8_t *bytes = NULL;

    io_text(s, &c->target);
    io_text(s, &c->device);
    io_i32(s, &format);
    c->format = (rt_code_format)format;
    c->kernels = io_array(s, c->kernels, &c->n_kernels, sizeof *c->kernels, RT_MAX_LAUNCHES, io_kernel);
    io_u64(s, &c->size);
    if (s->out)
        rt_bytes_add(s->out, c->bytes, (size_t)c->size);
    else if (take(s, (size_t)c->size, &bytes))
        c->bytes = bytes;
}

/* ---- programs ---- */

static void io_type(stream *s, void *item)
{
    rt_type_desc *t = item;
    int32_t kind = (int32_t)t->kind;

    io_i32(s, &kind);
    t->kind = (rt_type_kind)kind;
    io_dtype(s, &t->dtype);
    t->extents = io_array(s, t->extents, &t->rank, sizeof *t->extents, RT_MAX_RANK, item_i64);
    io_i32(s, &t->data);
    t->parts = io_array(s, t->parts, &t->n_parts, sizeof *t->parts, RT_MAX_FIELDS, item_i32);
    io_i32(s, &t->n_params);
}

static void io_constructor(stream *s, void *item)
{
    rt_constructor_desc *c = item;

    io_text(s, &c->name);
    c->fields = io_array(s, c->fields, &c->n_fields, sizeof *c->fields, RT_MAX_FIELDS, item_i32);
}

static void io_data(stream *s, void *item)
{
    rt_data_desc *d = item;

    io_text(s, &d->name);
    d->constructors = io_array(s, d->constructors, &d->n_constructors, sizeof *d->constructors, RT_MAX_FIELDS,
                               io_constructor);
}

static void io_line(stream *s, void *item)
{
    rt_line_desc *l = item;

    io_i32(s, &l->word);
    io_i32(s, &l->line);
}

static void io_routine(stream *s, void *item)
{
    rt_routine_desc *f = item;

    io_text(s, &f->name);
    io_text(s, &f->file);
    f->registers =
        io_array(s, f->registers, &f->n_registers, sizeof *f->registers, RT_MAX_REGISTERS, item_i32);
    io_i32(s, &f->n_params);
    f->params = io_array(s, f->params, &f->n_names, sizeof *f->params, RT_MAX_FIELDS, item_text);
    f->results = io_array(s, f->results, &f->n_results, sizeof *f->results, RT_MAX_FIELDS, item_i32);
    f->words = io_array(s, f->words, &f->n_words, sizeof *f->words, RT_MAX_WORDS, item_i32);
    f->lines = io_array(s, f->lines, &f->n_lines, sizeof *f->lines, RT_MAX_WORDS, io_line);
}

static void io_program(stream *s, rt_program_desc *p)
{
    p->types = io_array(s, p->types, &p->n_types, sizeof *p->types, RT_MAX_TYPES, io_type);
    p->data = io_array(s, p->data, &p->n_data, sizeof *p->data, RT_MAX_TYPES, io_data);
    p->dims = io_array(s, p->dims, &p->n_dims, sizeof *p->dims, RT_MAX_STEPS, item_dim);
    p->dim_symbols =
        io_array(s, p->dim_symbols, &p->n_dim_symbols, sizeof *p->dim_symbols, RT_MAX_STEPS, item_i32);
    p->texts = io_array(s, p->texts, &p->n_texts, sizeof *p->texts, RT_MAX_STEPS, item_text);
    p->functions =
        io_array(s, p->functions, &p->n_functions, sizeof *p->functions, RT_MAX_FUNCTIONS, io_routine);
}

/* Which lists of the description a section holds. */
static void io_section(stream *s, rt_module_desc *m, rt_section_kind kind)
{
    switch (kind) {
    case RT_SECTION_INFO: io_info(s, m); break;
    case RT_SECTION_FUNCTIONS:
        m->functions =
            io_array(s, m->functions, &m->n_functions, sizeof *m->functions, RT_MAX_FUNCTIONS, io_function);
        break;
    case RT_SECTION_CONSTANTS:
        m->constants =
            io_array(s, m->constants, &m->n_constants, sizeof *m->constants, RT_MAX_STEPS, io_constant);
        break;
    case RT_SECTION_GRAPHS:
        m->graphs = io_array(s, m->graphs, &m->n_graphs, sizeof *m->graphs, RT_MAX_GRAPHS, io_graph);
        break;
    case RT_SECTION_CODE:
        m->codes = io_array(s, m->codes, &m->n_codes, sizeof *m->codes, RT_MAX_CODES, io_code);
        break;
    case RT_SECTION_PROGRAM: io_program(s, &m->program); break;
    case RT_SECTION_WEIGHTS:
    case RT_SECTION_BESIDE:
    case RT_SECTION_END: refuse(s, "not a section of metadata"); break;
    }
}

static void io_beside(stream *s, rt_beside *b)
{
    io_text(s, &b->name);
    io_u64(s, &b->offset);
    io_u64(s, &b->size);
    io_u64(s, &b->checksum);
    io_u64(s, &b->head_checksum);
}

/* Memory failures of the bytes were only noted until here. */
static bool finish_writing(stream *s)
{
    if (s->out->failed)
        return rt_fail_memory(s->err, s->out->cap);
    return !s->failed;
}

/* Bytes that nobody read would be a field of another version. */
static bool finish_reading(stream *s)
{
    if (s->at != s->end)
        refuse(s, "has bytes after its last entry");
    return !s->failed;
}

bool rt_module_encode(const rt_module_desc *m, rt_section_kind kind, rt_bytes *out, tec_error *err)
{
    stream s = {.out = out, .err = err};
    rt_module_desc local = *m;

    io_section(&s, &local, kind);
    return finish_writing(&s);
}

/* Sections of one module are decoded into one description, each filling its own lists. */
bool rt_module_decode(rt_module_desc *m, rt_section_kind kind, const void *data, size_t size,
                      struct rt_arena *arena, tec_error *err)
{
    stream s = {.at = data, .end = (const uint8_t *)data + size, .arena = arena, .err = err};

    io_section(&s, m, kind);
    return finish_reading(&s);
}

bool rt_beside_encode(const rt_beside *b, rt_bytes *out, tec_error *err)
{
    stream s = {.out = out, .err = err};
    rt_beside local = *b;

    io_beside(&s, &local);
    return finish_writing(&s);
}

bool rt_beside_decode(rt_beside *b, const void *data, size_t size, tec_error *err)
{
    stream s = {.at = data, .end = (const uint8_t *)data + size, .err = err};

    io_beside(&s, b);
    return finish_reading(&s);
}
