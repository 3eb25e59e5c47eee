/* jobs/find.c -- see find.h. */
#include "jobs/find.h"

#include <stdio.h>
#include <string.h>

#include "graph/build.h"
#include "te/text.h"

typedef struct {
    tec_context *cx;
    const job_source *from;
    job_tasks *out;
    bool *used;        /* for each given dimension: a definition has a symbol of its name */
    bool *ranged;      /* for each range: a kernel has a symbol of its name */
    base_dict symbols; /* names of all symbols that were met, for messages */
} finder;

static void note_symbols(finder *self, const te_def *def)
{
    for (int i = 0; i < def->symbols.n; i++)
        base_dict_put(self->cx, &self->symbols, ((const ir_expr *)def->symbols.at[i])->var.name, self);
}

/* ---- one task ---- */

static const job_range *range_of(const finder *self, const char *symbol)
{
    for (int i = 0; i < self->from->n_ranges; i++)
        if (base_same(self->from->ranges[i].name, symbol)) {
            self->ranged[i] = true;
            return &self->from->ranges[i];
        }
    return NULL;
}

/* Times are measured at some sizes, so every symbol of a kernel needs a value or a range. One of them may
 * have a range: over two, the number of sizes would be the product. */
static bool has_symbols(const finder *self, const te_def *def, const char *name)
{
    const base_loc loc = {.file = self->from->path};
    int n_ranges = 0;

    for (int i = 0; i < def->symbols.n; i++) {
        const char *symbol = ((const ir_expr *)def->symbols.at[i])->var.name;

        if (!range_of(self, symbol))
            return !base_fail(self->cx, TEC_INVALID, loc,
                              "'%s' has a symbolic extent '%s': give it a value with --dim %s=N, values with "
                              "--dim %s=N,N, or a range with --dim %s=FROM..TO",
                              name, symbol, symbol, symbol, symbol);
        if (++n_ranges > 1)
            return !base_fail(self->cx, TEC_INVALID, loc,
                              "'%s' has two extents with several values: give '%s' one with --dim %s=N", name,
                              symbol, symbol);
    }
    return false;
}

/* The range of the definition's symbol becomes extents; candidates are tried at a large one of them. */
static void set_extents(const finder *self, tune_task *spec)
{
    int64_t *dims = base_array(self->cx, int64_t, spec->def->symbols.n);

    for (int i = 0; i < spec->def->symbols.n; i++) {
        const job_range *range = range_of(self, ((const ir_expr *)spec->def->symbols.at[i])->var.name);

        dims[i] = tune_large_extent(&range->range);
        spec->extents = tune_extents_new(self->cx, &range->range, i);
        spec->dims = dims;
    }
}

const char *job_task_hash(const tune_task *task, char out[JOB_HASH_SIZE])
{
    const char *key = task->task->exact_key;

    snprintf(out, JOB_HASH_SIZE, "%016llx", (unsigned long long)base_hash(key, strlen(key), BASE_HASH_SEED));
    return out;
}

/* Without hashes every task is wanted. */
static bool has_hash(const job_source *from, const tune_task *task)
{
    char own[JOB_HASH_SIZE];

    job_task_hash(task, own);
    for (int i = 0; i < from->n_hashes; i++)
        if (strcmp(from->hashes[i], own) == 0)
            return true;
    return !from->n_hashes;
}

/* By hash, then by the exact key of the workload: both lists restrict the tasks of a file, an absent one
 * restricts nothing. */
static bool is_wanted(const job_source *from, const tune_task *task)
{
    if (!has_hash(from, task))
        return false;
    for (int i = 0; i < from->n_keys; i++)
        if (strcmp(from->keys[i], task->task->exact_key) == 0)
            return true;
    return !from->keys;
}

static bool add_task(finder *self, const tune_task *spec)
{
    tune_task with = *spec;

    if (has_symbols(self, spec->def, spec->name))
        return false;
    set_extents(self, &with);
    const tune_task *t = tune_task_new(self->cx, &with);

    if (t && is_wanted(self->from, t))
        self->out->at[self->out->n++] = t;
    return t;
}

/* How many tasks so many kernels may have. */
static int most_tasks(const finder *self, int n_kernels)
{
    int most = 1;

    for (int i = 0; i < self->from->n_ranges; i++)
        if (self->from->ranges[i].range.n_values > most)
            most = self->from->ranges[i].range.n_values;
    return n_kernels * most;
}

static void make_room(finder *self, int n_kernels)
{
    self->out->at = base_array(self->cx, const tune_task *, most_tasks(self, n_kernels));
    self->out->versions = base_array(self->cx, job_versions, n_kernels);
}

/* ---- versions of a kernel ---- */

/* The symbol that has listed values; -1: none has. */
static int listed_symbol(const finder *self, const te_def *def)
{
    for (int i = 0; i < def->symbols.n; i++) {
        const job_range *range = range_of(self, ((const ir_expr *)def->symbols.at[i])->var.name);

        if (range && range->range.n_values)
            return i;
    }
    return -1;
}

/* The number of the task in the list, where an equal one may be; -1: it is not wanted. */
static int add_version(finder *self, const tune_task *task)
{
    for (int i = 0; i < self->out->n; i++)
        if (strcmp(self->out->at[i]->task->exact_key, task->task->exact_key) == 0)
            return i;
    if (!is_wanted(self->from, task))
        return -1;
    self->out->at[self->out->n] = task;
    return self->out->n++;
}

/* The specification of a version, from the kernel's and the value. */
typedef bool make_version(finder *self, const void *of, const tune_task *kernel, int symbol, int64_t value,
                          tune_task *out);

/* A task for each value, which counts by the value's weight. */
static bool add_versions(finder *self, const tune_task *kernel, int symbol, make_version *make,
                         const void *of)
{
    const tune_range *range =
        &range_of(self, ((const ir_expr *)kernel->def->symbols.at[symbol])->var.name)->range;
    const tune_extents *values = tune_extents_new(self->cx, range, symbol);
    int *number = base_array(self->cx, int, range->n_values);

    if (has_symbols(self, kernel->def, kernel->name))
        return false;
    for (int i = 0; i < range->n_values; i++) {
        tune_task spec = *kernel;

        if (!make(self, of, kernel, symbol, range->value[i], &spec))
            return false;
        spec.weight = kernel->weight * values->weight[i];
        const tune_task *t = tune_task_new(self->cx, &spec);
        if (!t)
            return false;
        number[i] = add_version(self, t);
    }
    const tune_task *whole = tune_task_new(self->cx, kernel);
    self->out->versions[self->out->n_versions++] = (job_versions){whole, symbol, range, number};
    return whole;
}

/* ---- of a model ---- */

static graph_module *read_model(const finder *self)
{
    const job_source *from = self->from;
    const onnx_options import = {
        .dims = from->dims, .n_dims = from->n_dims, .unknown_dim = from->unknown_dim};
    size_t size;

    if (!base_ends_with(from->path, ".tecp"))
        return onnx_import(self->cx, from->path, &import);
    const char *text = base_read_file(self->cx, from->path, &size);
    const lang_params *params = from->params ? lang_params_read(self->cx, from->params) : NULL;
    return text && (params || !from->params) ? lang_parse(self->cx, from->path, text, params) : NULL;
}

typedef struct {
    graph_kernels *kernels;
    const graph_kernel_entry *entry;
} model_kernel;

/* Named like the kernels of a build with --dim NAME=VALUE, and with their keys. */
static bool version_in_model(finder *self, const void *of, const tune_task *kernel, int symbol, int64_t value,
                             tune_task *out)
{
    const model_kernel *k = of;
    graph_fixed_kernel fixed;

    (void)kernel;
    if (!graph_fix_kernel(k->kernels, k->entry, symbol, value, &fixed))
        return false;
    out->name = base_format(self->cx, "%s (%s)", fixed.task->summary, k->entry->node);
    out->def = fixed.def;
    out->task = fixed.task;
    out->default_trace = fixed.trace;
    out->tree = fixed.plain;
    return true;
}

/* The kernels that compiling the model would make, each once; a weight says how often the model runs it. */
static bool find_in_model(finder *self)
{
    graph_module *module = read_model(self);
    graph_kernels *kernels = module ? graph_tasks(module, self->from->target) : NULL;

    if (kernels)
        make_room(self, kernels->entries.n);
    for (int i = 0; kernels && i < kernels->entries.n; i++) {
        const graph_kernel_entry *entry = graph_kernel_at(kernels, i);
        const tune_task spec = {.name = base_format(self->cx, "%s (%s)", entry->task->summary, entry->node),
                                .def = entry->def,
                                .task = entry->task,
                                .target = self->from->target,
                                .default_trace = entry->trace,
                                .weight = entry->uses,
                                .constants = entry->constants,
                                .constant_bytes = entry->again ? entry->again : kernels->constant_bytes,
                                .tree = entry->plain};
        note_symbols(self, entry->def);
        int listed = listed_symbol(self, entry->def);

        if (listed >= 0
                ? !add_versions(self, &spec, listed, version_in_model, &(model_kernel){kernels, entry})
                : !add_task(self, &spec))
            return false;
    }
    return kernels;
}

/* ---- of a file of definitions ---- */

/* The definition with the symbols that the given dimensions name replaced by their values. */
static te_def *specialise(finder *self, te_def *def)
{
    const ir_expr **symbol = base_array(self->cx, const ir_expr *, def->symbols.n),
                  **value = base_array(self->cx, const ir_expr *, def->symbols.n);
    int n = 0;

    note_symbols(self, def);
    for (int i = 0; i < def->symbols.n; i++)
        for (int k = 0; k < self->from->n_dims; k++)
            if (strcmp(((const ir_expr *)def->symbols.at[i])->var.name, self->from->dims[k].name) == 0) {
                symbol[n] = def->symbols.at[i];
                value[n++] = ir_int(self->cx, self->from->dims[k].value);
                self->used[k] = true;
            }
    return n ? te_specialise(self->cx, def, symbol, value, n) : def;
}

/* What `tec te` would use: the schedule in the file, or the start of the space. */
static const char *default_of(finder *self, const te_file *file, const te_def *def, const space *sp)
{
    const char *text = base_dict_get(&file->schedules, def->name);

    if (text || !sp)
        return text;
    const space_point start = space_start(sp);
    sched *s = space_apply(self->cx, sp, &start);
    if (sched_failed(s))
        return base_fail(self->cx, TEC_INTERNAL, def->loc, "the start of the space of '%s' was refused: %s",
                         def->name, sched_error(s));
    return sched_trace_text(self->cx, s);
}

/* What a tuner is told of a definition. False with an error. */
static bool describe_definition(finder *self, const te_file *file, const te_def *def, tune_task *out)
{
    const ir_program *tree = te_tree(self->cx, def);
    const space *sp = tree ? space_master(self->cx, tree, self->from->target) : NULL;
    const char *trace = sp ? default_of(self, file, def, sp) : NULL;

    *out = (tune_task){.name = def->name,
                       .def = def,
                       .target = self->from->target,
                       .default_trace = trace,
                       .tree = tree,
                       .space = sp,
                       .intrinsics = &file->intrinsics};
    return trace;
}

static bool version_in_file(finder *self, const void *of, const tune_task *kernel, int symbol, int64_t value,
                            tune_task *out)
{
    const ir_expr *var = kernel->def->symbols.at[symbol], *number = ir_int(self->cx, value);
    const te_def *def = te_specialise(self->cx, kernel->def, &var, &number, 1);

    if (!def || !describe_definition(self, of, def, out))
        return false;
    out->name = base_format(self->cx, "%s (%s = %lld)", def->name, var->var.name, (long long)value);
    return true;
}

/* A definition with symbols has no task of its own: --dim gives its symbols values first. */
static bool add_definition(finder *self, const te_file *file, te_def *def)
{
    tune_task spec;

    if (!def || has_symbols(self, def, def->name) || !describe_definition(self, file, def, &spec))
        return false;
    int listed = listed_symbol(self, def);
    spec.weight = 1;
    return listed < 0 ? add_task(self, &spec) : add_versions(self, &spec, listed, version_in_file, file);
}

/* A misspelt --dim would be ignored silently otherwise: an error that lists the symbols; always false. */
static bool refuse_dim(const finder *self, const char *name, const char *what)
{
    const base_vec *symbols = &self->symbols.order;
    base_text t = {0};

    for (int i = 0; i < symbols->n; i++)
        base_addf(self->cx, &t, "%s%s", i ? ", " : "; the symbols are ", (const char *)symbols->at[i]);
    if (self->from->unknown_dim)
        *self->from->unknown_dim = true;
    return base_fail(self->cx, TEC_INVALID, (base_loc){.file = self->from->path},
                     "--dim %s: no %s has a symbol of this name%s", name, what, base_text_str(self->cx, &t));
}

static bool all_dims_used(const finder *self)
{
    for (int i = 0; i < self->from->n_dims; i++)
        if (!self->used[i])
            return refuse_dim(self, self->from->dims[i].name, "definition");
    return true;
}

/* The definitions of the file, or the one that was named; each given dimension must be a symbol of one. */
static bool find_in_definitions(finder *self)
{
    size_t size;
    const char *text = base_read_file(self->cx, self->from->path, &size), *name = self->from->definition;
    te_file *file = text ? te_parse(self->cx, self->from->path, text) : NULL;
    int found = 0;

    if (file)
        make_room(self, file->defs.n);
    for (int i = 0; file && i < file->defs.n; i++) {
        te_def *def = file->defs.at[i];

        if (name && strcmp(def->name, name) != 0)
            continue;
        if (!add_definition(self, file, specialise(self, def)))
            return false;
        found++;
    }
    if (!file || !all_dims_used(self))
        return false;
    if (found == 0)
        base_fail(self->cx, TEC_INVALID, (base_loc){.file = self->from->path}, "there is no definition '%s'",
                  name);
    return found;
}

/* ---- schedules of the user's own ---- */

/* A schedule that is refused is reported now, with its line, and not after an hour of tuning. */
static const char *read_schedule(finder *self, const tune_task *task, const char *path)
{
    size_t size;
    const char *text = base_read_file(self->cx, path, &size);
    sched *s = text ? tune_task_schedule(self->cx, task) : NULL;

    if (!s || sched_replay(s, path, text))
        return text;
    return base_fail(self->cx, TEC_INVALID, (base_loc){0}, "%s", sched_error(s));
}

/* Reads the files of schedules and gives them to the one task there is. */
static bool read_schedules(finder *self)
{
    enum { MOST = 100 };
    int n = self->from->n_schedules;
    const char **given = base_array(self->cx, const char *, n);

    if (n == 0)
        return true;
    if (self->out->n > 1)
        return base_fail(self->cx, TEC_INVALID, (base_loc){.file = self->from->path},
                         "--schedule needs a single kernel, but there are %d: choose one with --name",
                         self->out->n);
    if (n > MOST)
        return base_fail(self->cx, TEC_INVALID, (base_loc){.file = self->from->path},
                         "expected at most %d schedules with --schedule, found %d", MOST, n);
    for (int i = 0; i < n && self->out->n; i++)
        if (!(given[i] = read_schedule(self, self->out->at[0], self->from->schedules[i])))
            return false;
    for (int i = 0; i < self->out->n; i++) {
        tune_task *task = base_copy(self->cx, self->out->at[i], sizeof *task);

        task->given = given;
        task->n_given = n;
        self->out->at[i] = task;
    }
    return true;
}

/* Every hash that was asked for is that of a task. */
static bool all_hashes_found(const finder *self)
{
    char own[JOB_HASH_SIZE];

    for (int i = 0; i < self->from->n_hashes; i++) {
        bool found = false;

        for (int k = 0; k < self->out->n; k++)
            found |= strcmp(job_task_hash(self->out->at[k], own), self->from->hashes[i]) == 0;
        if (!found)
            return base_fail(self->cx, TEC_INVALID, (base_loc){.file = self->from->path},
                             "no kernel has the key '%s' (tec tune --kernels lists them)",
                             self->from->hashes[i]);
    }
    return true;
}

static bool all_ranges_used(const finder *self)
{
    for (int i = 0; i < self->from->n_ranges; i++)
        if (!self->ranged[i])
            return refuse_dim(self, self->from->ranges[i].name, "kernel");
    return true;
}

bool job_find_tasks(tec_context *cx, const job_source *from, job_tasks *out)
{
    finder f = {.cx = cx,
                .from = from,
                .out = out,
                .used = base_array(cx, bool, from->n_dims),
                .ranged = base_array(cx, bool, from->n_ranges)};
    const char *dot = strrchr(from->path, '.');

    *out = (job_tasks){0};
    return (dot && strcmp(dot, ".te") == 0 ? find_in_definitions(&f) : find_in_model(&f)) &&
           all_ranges_used(&f) && all_hashes_found(&f) && read_schedules(&f);
}
