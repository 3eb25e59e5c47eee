/* tests/runtime/mutate.c -- damaged module files by their grammar: fields of the metadata are exchanged for
 * others of their kind, items of lists are left out, doubled and moved, and the checksums are right again.
 *
 *   TEC_MUTATIONS=1000000 TEC_MUTATION_SEED=7 build/asan/tests/test_runtime_mutate --jobs 1 --timeout 9000
 *
 * The grammar below is that of docs/module.md, written once more: if the codec reads a field that the page
 * does not have, the walk over the sound modules does not end at their ends. Each file is refused with an
 * error that names it, or opened; functions of opened modules are set up, and their programs loaded. At the
 * end the test says how many files there were, how many got behind the frame (footer, table, checksums), and
 * how many were opened.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/base.h"
#include "runtime/cpu.h"
#include "runtime/file.h"
#include "tec/program.h"
#include "tests/mutate.h"
#include "tests/runtime/kit.h"
#include "tests/runtime/listing.h"

enum { MOST_SECONDS = 10, MOST_FIELDS = 4096, MOST_MODULES = 4 };

static uint64_t dice;

static int below(size_t n)
{
    return n ? (int)base_random_below(&dice, (int64_t)n) : 0;
}

#define PICK(from) (from)[below(BASE_COUNT(from))]

/* ---- the grammar ---- */

/* b, i, l and u are numbers of 1, 4, 8 and 4 bytes, U one of 8, t a text, d a dtype; X* is a list of X; c is
 * code, whose size stands before it. Capital letters are structs. */
static const struct {
    char name;
    const char *fields;
} structs[] = {
    {'D', "l*"},                       /* dimension code */
    {'P', "tidbD*D*i"},                /* parameter */
    {'C', "Dt"},                       /* condition */
    {'A', "ii"},                       /* pair of parameters; symbol of a graph without its name; line */
    {'G', "iiD"},                      /* argument of a launch */
    {'L', "tDD*iiilG*"},               /* launch */
    {'O', "iiDD"},                     /* loop around launches */
    {'R', "li"},                       /* range */
    {'F', "tttL*O*P*t*C*A*DDDDtiR*t"}, /* function */
    {'K', "tdl*"},                     /* constant */
    {'S', "tii"},                      /* symbol of a graph */
    {'T', "tdD*"},                     /* tensor */
    {'V', "dD*iiDi"},                  /* value */
    {'I', "tD"},                       /* site */
    {'E', "ii*D*tt"},                  /* step */
    {'Q', "tS*C*T*T*V*DI*E*"},         /* graph */
    {'N', "ti*"},                      /* kernel of a piece of code */
    {'B', "ttiN*c"},                   /* piece of code */
    {'Y', "idl*ii*i"},                 /* type */
    {'X', "ti*"},                      /* constructor */
    {'Z', "tX*"},                      /* data type */
    {'M', "tti*it*i*i*A*"},            /* program function */
};
static const char *const sections[RT_SECTION_LAST + 1] = {
    [RT_SECTION_INFO] = "ttt*ut", [RT_SECTION_FUNCTIONS] = "F*", [RT_SECTION_CONSTANTS] = "K*",
    [RT_SECTION_GRAPHS] = "Q*",   [RT_SECTION_CODE] = "B*",      [RT_SECTION_PROGRAM] = "Y*Z*D*i*t*M*"};

/* A field of a section: where it lies, and what it is. A list is the place of its count. Fields that an
 * earlier damage made longer than the section are left out. */
typedef struct {
    size_t at, size;
    char kind; /* as above; '*' a list */
    char item; /* of a list, and of a field that is an item */
    int owner; /* the field of the list that holds it, -1: none */
} field;

typedef struct {
    const uint8_t *data;
    size_t n, at;
    field of[MOST_FIELDS];
    int count;
} walk;

static uint32_t u32_at(const uint8_t *data, size_t n, size_t at)
{
    uint32_t v = 0;

    for (size_t i = 0; i < 4 && at + i < n; i++)
        v |= (uint32_t)data[at + i] << 8 * i;
    return v;
}

static const char *fields_of(const char *name)
{
    for (int i = 0; i < BASE_COUNT(structs); i++)
        if (structs[i].name == *name)
            return structs[i].fields;
    return NULL;
}

static int note(walk *self, char kind, char item, size_t size, int owner)
{
    bool fits = self->count < MOST_FIELDS && self->at <= self->n && size <= self->n - self->at;

    if (fits)
        self->of[self->count] = (field){self->at, size, kind, item, owner};
    self->at += size;
    return fits ? self->count++ : -1;
}

static void walk_fields(walk *self, const char *fields, int owner);

static void walk_one(walk *self, const char *what, int owner)
{
    uint32_t n;
    int first;

    switch (*what) {
    case 'b': note(self, 'b', 0, 1, owner); return;
    case 'i':
    case 'u':
    case 'd': note(self, *what, 0, 4, owner); return;
    case 'l':
    case 'U': note(self, *what, 0, 8, owner); return;
    case 't':
        n = u32_at(self->data, self->n, self->at);
        note(self, 't', 0, 4 + (size_t)n, owner);
        return;
    case 'c':
        n = u32_at(self->data, self->n, self->at);
        note(self, 'c', 0, 8 + (size_t)n, owner);
        return;
    default:
        first = note(self, *what, 0, 0, owner);
        walk_fields(self, fields_of(what), owner);
        if (first >= 0 && self->at <= self->n)
            self->of[first].size = self->at - self->of[first].at;
    }
}

static void walk_fields(walk *self, const char *fields, int owner)
{
    for (; *fields; fields += 1 + (fields[1] == '*'))
        if (fields[1] == '*') {
            uint32_t n = u32_at(self->data, self->n, self->at);
            int list = note(self, '*', *fields, 4, owner);

            for (uint32_t i = 0; i < n && self->at < self->n; i++)
                walk_one(self, fields, list);
        } else {
            walk_one(self, fields, owner);
        }
}

/* ---- sound modules ---- */

typedef struct {
    rt_bytes section[RT_SECTION_LAST + 1];
    rt_module_desc desc;
    bool has_weights;
} sound;

static sound module[MOST_MODULES];
static int n_modules;

static void add_module(rt_module_desc desc)
{
    sound *s = &module[n_modules++];
    tec_error err = {0};

    s->desc = desc;
    s->has_weights = desc.n_constants > 0;
    cr_assert(rt_module_check(&desc, &err), "%s", err.text);
    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++)
        cr_assert(rt_module_encode(&desc, (rt_section_kind)kind, &s->section[kind], &err), "%s", err.text);
}

static const rt_arg_desc args[] = {
    {.index = 0}, {RT_ARG_WORKSPACE, 0, CONST(128)}, {RT_ARG_SIZE, 0, WORDS(RT_DIM_SYMBOL, 0)}};
static const rt_launch_desc launches[] = {{.kernel = "copy",
                                           .guard = WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 8, RT_DIM_LT),
                                           .grid = (const rt_dim[]){SYMBOL(0), CONST(1), CONST(1)},
                                           .block = {4, 1, 1},
                                           .n_args = 3,
                                           .args = args},
                                          {.kernel = "copy",
                                           .grid = (const rt_dim[]){SYMBOL(2), CONST(1), CONST(1)},
                                           .block = {2, 2, 1},
                                           .shared_bytes = 64,
                                           .n_args = 3,
                                           .args = args}};
static const rt_loop_desc loops[] = {{0, 2, CONST(0), CONST(3)}, {1, 2, CONST(1), SYMBOL(0)}};
static const rt_function_desc device_functions[] = {{.name = "there",
                                                     .device = "opencl",
                                                     .launches = launches,
                                                     .n_launches = 2,
                                                     .loops = loops,
                                                     .n_loops = 2,
                                                     .params = relu_params,
                                                     .n_params = 2,
                                                     .symbols = (const char *const[]){"n", "m"},
                                                     .n_symbols = 2,
                                                     .workspace = CONST(4096),
                                                     .ranges = (const rt_range_desc[]){{8, 1}, {64, 1}},
                                                     .n_ranges = 2,
                                                     .summary = "relu 8 x 8"},
                                                    {.name = "also",
                                                     .device = "opencl",
                                                     .launches = launches,
                                                     .n_launches = 1,
                                                     .params = relu_params,
                                                     .n_params = 2,
                                                     .symbols = (const char *const[]){"n", "m"},
                                                     .n_symbols = 2,
                                                     .workspace = CONST(4096)}};
static const rt_code_desc codes[] = {
    {.target = "opencl",
     .device = "opencl",
     .format = RT_CODE_OPENCL_C,
     .kernels = &(const rt_kernel_desc){"copy", (const int32_t[]){0, 0, 8}, 3},
     .n_kernels = 1,
     .bytes = "text",
     .size = 4}};
static const rt_value_desc there_values[] = {
    {F32, 2, (const rt_dim[]){SYMBOL(0), CONST(8)}, RT_IN_INPUT, 0, {0}, 0},
    {F32, 2, (const rt_dim[]){SYMBOL(0), CONST(8)}, RT_IN_POOL, 0, CONST(0), 1},
    {F32, 2, (const rt_dim[]){SYMBOL(0), CONST(8)}, RT_IN_POOL, 0,
     WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 64, RT_DIM_MUL), 1},
    {F32, 2, (const rt_dim[]){SYMBOL(0), CONST(8)}, RT_IN_OUTPUT, 0, {0}, 0}};
static const rt_step_desc there_steps[] = {
    {.function = RT_STEP_COPY, .values = (const int32_t[]){0, 1}, .n_values = 2, .name = "copy"},
    {.function = 0,
     .values = (const int32_t[]){1, 2},
     .n_values = 2,
     .dims = (const rt_dim[]){SYMBOL(0), CONST(8)},
     .n_dims = 2,
     .name = "Relu"},
    {.function = RT_STEP_COPY, .values = (const int32_t[]){2, 3}, .n_values = 2, .name = "copy"}};
static const rt_graph_desc there_graph[] = {
    {.name = "net",
     .symbols = (const rt_symbol_desc[]){{"n", 0, 0}},
     .n_symbols = 1,
     .inputs = (const rt_tensor_desc[]){{"x", F32, 2, (const rt_dim[]){SYMBOL(0), CONST(8)}}},
     .n_inputs = 1,
     .outputs = (const rt_tensor_desc[]){{"y", F32, 2, (const rt_dim[]){SYMBOL(0), CONST(8)}}},
     .n_outputs = 1,
     .values = there_values,
     .n_values = 4,
     .sites = (const rt_site_desc[]){{"opencl", WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 128, RT_DIM_MUL)}},
     .n_sites = 1,
     .steps = there_steps,
     .n_steps = 3}};

static void make_modules(void)
{
    static program p;
    rt_module_desc kit = kit_module(), there = {.target = "opencl", .producer = "test"};

    set_up(&p);
    kit.features = (const char *const[]){"sse2"};
    kit.n_features = 1;
    kit.arch = p.m.arch = rt_cpu_arch();
    add_module(kit);
    add_module(p.m);
    there.functions = device_functions, there.n_functions = 2;
    there.codes = codes, there.n_codes = 1;
    there.graphs = there_graph, there.n_graphs = 1;
    add_module(there);
}

/* ---- damage ---- */

typedef struct {
    uint8_t *data;
    size_t n, cap;
} buffer;

/* Replaces a piece of the section by other bytes, which may lie in it. */
static void splice(buffer *b, size_t at, size_t size, const void *by, size_t n)
{
    uint8_t *copy = malloc(n + 1);

    at = at < b->n ? at : b->n;
    size = size < b->n - at ? size : b->n - at;
    memcpy(copy, by, n);
    if (b->n - size + n > b->cap) {
        b->cap = 2 * (b->n - size + n);
        b->data = realloc(b->data, b->cap);
    }
    if (b->n > at + size)
        memmove(b->data + at + n, b->data + at + size, b->n - at - size);
    if (n)
        memcpy(b->data + at, copy, n);
    b->n += n - size;
    free(copy);
}

static int64_t some_number(void)
{
    static const int64_t rare[] = {INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 1 << 20, 65536, 255, -2};

    return below(6) ? below(12) - 1 : below(2) ? below(200) : PICK(rare);
}

/* Another field of the kind; its own one where there is no other. */
static const field *like(const walk *w, const field *f)
{
    const field *found = f;

    for (int tries = 0; tries < 200; tries++) {
        const field *other = &w->of[below((size_t)w->count)];

        if (other->kind == f->kind)
            found = other;
        if (found != f)
            break;
    }
    return found;
}

static void add_to_count(buffer *b, const walk *w, int owner, int by)
{
    if (owner < 0)
        return;
    uint32_t n = u32_at(b->data, b->n, w->of[owner].at) + (uint32_t)by;
    for (size_t i = 0; i < 4; i++)
        b->data[w->of[owner].at + i] = (uint8_t)(n >> 8 * i);
}

/* One item of a list is left out, doubled, or becomes another of its kind. */
static void damage_item(buffer *b, const walk *w, const field *f)
{
    const field *other = like(w, f);

    switch (below(4)) {
    case 0:
        add_to_count(b, w, f->owner, -1);
        splice(b, f->at, f->size, "", 0);
        return;
    case 1:
        add_to_count(b, w, f->owner, 1);
        splice(b, f->at, 0, b->data + other->at, other->size);
        return;
    default: splice(b, f->at, f->size, b->data + other->at, other->size);
    }
}

static void damage_number(buffer *b, const field *f)
{
    uint64_t v = (uint64_t)some_number();
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> 8 * i);
    splice(b, f->at, f->size, bytes, f->size);
}

static void damage_field(buffer *b, const char *grammar)
{
    static walk w;

    w = (walk){.data = b->data, .n = b->n};
    walk_fields(&w, grammar, -1);
    if (w.count == 0)
        return;
    const field *f = &w.of[below((size_t)w.count)];
    if (f->kind == 'd' && below(2)) {
        b->data[f->at + (size_t)below(3)] = (uint8_t)(below(3) ? below(9) : below(256));
    } else if (f->kind == '*' ||
               (f->kind != 't' && f->kind != 'c' && f->size && f->size <= 8 && below(4) > 0)) {
        if (f->kind != '*' || below(4) == 0)
            damage_number(b, f);
    } else if (f->size) {
        const field *other = like(&w, f);

        if (f->owner >= 0 && w.of[f->owner].item == f->kind)
            damage_item(b, &w, f);
        else if (f->kind == 't' && below(8) == 0)
            splice(b, f->at, f->size, "\0\0\0\0", 4); /* no text */
        else if (f->kind == 't' && below(8) == 0)
            splice(b, f->at, f->size, "\2\0\0\0x", 6);
        else
            splice(b, f->at, f->size, b->data + other->at, other->size);
    }
}

/* ---- files ---- */

static void put(buffer *b, const void *data, size_t n)
{
    if (n == 0)
        return;
    splice(b, b->n, 0, data, n);
}

static void pad(buffer *b, size_t align)
{
    static const uint8_t zeros[RT_PAGE];

    put(b, zeros, (align - b->n % align) % align);
}

static void put_section(buffer *file, rt_section *row, uint64_t *n, uint64_t kind, const void *data,
                        size_t size)
{
    pad(file, kind == RT_SECTION_WEIGHTS ? RT_PAGE : RT_SECTION_ALIGN);
    row[(*n)++] = (rt_section){kind, file->n, size, rt_checksum(data, size)};
    put(file, data, size);
}

/* Table and footer, of which a number is wrong now and then. */
static void put_frame(buffer *file, rt_section *row, uint64_t n, size_t elf)
{
    uint8_t rows[16 * RT_ROW_BYTES], footer[RT_FOOTER_BYTES];
    rt_footer f = {.version = RT_FORMAT_VERSION, .abi = TEC_KERNEL_ABI, .elf_size = elf, .n_sections = n};
    bool wrong = below(8) == 0;

    for (uint64_t i = 0; i < n; i++) {
        if (wrong && below(8) == 0) {
            uint64_t *which[] = {&row[i].kind, &row[i].offset, &row[i].size, &row[i].checksum};

            *PICK(which) += (uint64_t)some_number();
        }
        rt_section_write(&row[i], rows + i * RT_ROW_BYTES);
    }
    f.elf_checksum = rt_checksum(file->data, elf);
    pad(file, RT_SECTION_ALIGN);
    f.table_offset = file->n;
    f.table_checksum = rt_checksum(rows, n * RT_ROW_BYTES);
    put(file, rows, n * RT_ROW_BYTES);
    f.file_size = file->n + RT_FOOTER_BYTES;
    if (wrong && below(4) == 0) {
        uint64_t *which[] = {&f.file_size, &f.elf_size, &f.table_offset, &f.n_sections, &f.table_checksum};

        *PICK(which) += (uint64_t)some_number();
        f.version += below(8) == 0;
        f.abi += below(8) == 0;
    }
    rt_footer_write(&f, footer);
    put(file, footer, RT_FOOTER_BYTES);
}

/* A file of the sections, one or more of which are damaged. */
static buffer some_file(bool *whole)
{
    const sound *s = &module[below((size_t)n_modules)];
    buffer file = {0};
    rt_section row[16];
    uint64_t n = 0;
    size_t elf = 0;
    int hurt = RT_SECTION_INFO + below(RT_SECTION_LAST);

    if (s->desc.arch) {
        put(&file, "\177ELF no code", 13);
        elf = file.n;
        pad(&file, RT_PAGE);
    }
    *whole = below(50) == 0;
    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++) {
        buffer b = {0};

        put(&b, s->section[kind].data, s->section[kind].n);
        for (int k = !*whole && (kind == hurt || below(10) == 0) ? 1 + below(3) : 0; k > 0; k--)
            damage_field(&b, sections[kind]);
        if (!*whole && below(200) == 0)
            b.n -= (size_t)below(b.n);
        if (*whole || below(200))
            put_section(&file, row, &n, (uint64_t)kind, b.data, b.n);
        free(b.data);
    }
    if (s->has_weights && below(100)) {
        rt_module_desc d = s->desc;
        uint8_t weights[512] = {0};
        bool padded;

        put_section(&file, row, &n, RT_SECTION_WEIGHTS, weights, (size_t)rt_weights_size(&d));
        row[n - 1].checksum = rt_weights_checksum(&d, weights, &padded);
    } else if (below(50) == 0) {
        rt_bytes b = {0};

        rt_beside_encode(&(rt_beside){.name = below(2) ? "w.safetensors" : "../w", .size = 192}, &b, NULL);
        put_section(&file, row, &n, RT_SECTION_BESIDE, b.data, b.n);
        rt_bytes_free(&b);
    }
    put_frame(&file, row, n, elf);
    if (!*whole && below(20) == 0)
        file.n -= (size_t)below(200);
    return file;
}

/* ---- runs ---- */

static struct {
    int64_t files, framed, opened;
} total;

static int32_t nothing(const tec_env *env, void *const *given, const int64_t *dims_of_call)
{
    (void)env, (void)given, (void)dims_of_call;
    return 0;
}

static tec_kernel_fn *any_kernel(void *user, const char *symbol)
{
    (void)user, (void)symbol;
    return nothing;
}

/* Sets up what a caller would: the module again with kernels that do nothing, its functions, its program. */
static void use(const rt_file *file)
{
    rt_module_desc d = file->desc;
    const rt_memory_code code = {.resolve = any_kernel};
    tec_error err = {0};
    tec_module *m = rt_module_from_memory(&d, &code, 0, &err);

    if (!m) { /* code of another machine, or a feature that this one lacks */
        cr_assert(err.status == TEC_INVALID || err.status == TEC_UNSUPPORTED, "%s", err.text);
        return;
    }
    for (int32_t i = 0; i < d.n_functions; i++)
        if (!d.functions[i].device) /* those of devices need one */
            tec_function_free(tec_function_new(m, d.functions[i].name, NULL, &err));
    for (int32_t i = 0; i < d.program.n_types; i++) {
        char text[200];

        rt_type_text(&d.program, i, text, sizeof text);
    }
    tec_module_free(m);
}

/* The bytes lie in a block of just their size, so that the address sanitizer sees a read past them. */
static void one(void)
{
    uint64_t start = dice;
    int64_t before = rt_alloc_live();
    bool whole;
    clock_t begin = clock();
    tec_error err = {0};
    rt_file opened;
    const tec_module_options verified = {.verify_weights = below(4) > 0};

    mutation_note(start);
    buffer file = some_file(&whole);
    uint8_t *exact = malloc(file.n);
    memcpy(exact, file.data, file.n);
    bool ok = rt_file_open_bytes(&opened, exact, file.n, &verified, &err);
    total.files++;
    total.opened += ok;
    total.framed += ok || !(strstr(err.text, "footer") || strstr(err.text, "section table") ||
                            strstr(err.text, "checksum") || strstr(err.text, "no tec module"));
    cr_assert(ok || strncmp(err.text, "module in memory: ", 18) == 0, "seed %llu: %s",
              (unsigned long long)start, err.text);
    if (getenv("TEC_MUTATION_SHOW"))
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)start, ok ? "opened" : err.text);
    if (ok)
        use(&opened);
    if (ok)
        rt_file_close(&opened);
    free(exact);
    free(file.data);
    cr_assert_eq(rt_alloc_live(), before, "seed %llu leaks", (unsigned long long)start);
    int took = (int)((clock() - begin) / CLOCKS_PER_SEC);
    cr_assert(took <= MOST_SECONDS, "seed %llu takes %d s", (unsigned long long)start, took);
}

/* The walk by the grammar ends where the section ends: the codec and the page agree. */
Test(runtime_mutate, the_grammar_is_that_of_the_codec)
{
    static walk w;

    make_modules();
    for (int i = 0; i < n_modules; i++)
        for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++) {
            w = (walk){.data = module[i].section[kind].data, .n = module[i].section[kind].n};
            walk_fields(&w, sections[kind], -1);
            cr_assert_eq(w.at, w.n, "module %d, section %s: %zu of %zu bytes", i,
                         rt_section_name((uint64_t)kind), w.at, w.n);
        }
}

Test(runtime_mutate, every_file_is_refused_or_opened)
{
    int64_t n = mutation_count(20000);

    make_modules();
    dice = mutation_begin();
    for (int64_t i = 0; i < n; i++)
        one();
    fprintf(stderr, "%lld module files: %.1f %% behind the frame, %.1f %% opened\n", (long long)total.files,
            100.0 * (double)total.framed / (double)total.files,
            100.0 * (double)total.opened / (double)total.files);
    cr_assert(total.framed * 10 >= total.files * 3, "too few files get behind the frame");
}
