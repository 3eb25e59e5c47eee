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
    bool *used; /* for each given dimension: a definition has a symbol of its name */
} finder;

/* ---- one task ---- */

/* Times are measured at one size, so every symbol of a kernel needs a value. */
static bool has_symbols(const finder *f, const te_def *d, const char *name)
{
    if (d->symbols.n == 0)
        return false;
    const char *symbol = ((const ir_expr *)d->symbols.at[0])->var.name;
    base_fail(f->cx, TEC_INVALID, (base_loc){.file = f->from->path},
              "'%s' has a symbolic extent '%s': give it a value with --dim %s=N", name, symbol, symbol);
    return true;
}

const char *job_task_hash(const tune_task *t, char out[JOB_HASH_SIZE])
{
    const char *key = t->task->exact_key;

    snprintf(out, JOB_HASH_SIZE, "%016llx", (unsigned long long)base_hash(key, strlen(key), BASE_HASH_SEED));
    return out;
}

static bool has_hash(const job_source *from, const tune_task *t)
{
    char own[JOB_HASH_SIZE];

    job_task_hash(t, own);
    for (int i = 0; i < from->n_hashes; i++)
        if (strcmp(from->hashes[i], own) == 0)
            return true;
    return !from->n_hashes;
}

static bool is_wanted(const job_source *from, const tune_task *t)
{
    if (!has_hash(from, t))
        return false;
    for (int i = 0; i < from->n_keys; i++)
        if (strcmp(from->keys[i], t->task->exact_key) == 0)
            return true;
    return !from->keys;
}

static bool add_task(finder *f, const tune_task *spec)
{
    const tune_task *t = has_symbols(f, spec->def, spec->name) ? NULL : tune_task_new(f->cx, spec);

    if (t && is_wanted(f->from, t))
        f->out->at[f->out->n++] = t;
    return t;
}

/* ---- of a model ---- */

/* The kernels that compiling the model would make, each once; a weight says how often the model runs it. */
static bool find_in_model(finder *f)
{
    const onnx_options import = {.dims = f->from->dims, .n_dims = f->from->n_dims};
    graph_module *m = onnx_import(f->cx, f->from->path, &import);
    graph_kernels *k = m ? graph_tasks(m, f->from->target) : NULL;

    f->out->at = k ? base_array(f->cx, const tune_task *, k->entries.n) : NULL;
    for (int i = 0; k && i < k->entries.n; i++) {
        const graph_kernel_entry *e = graph_kernel_at(k, i);
        const tune_task spec = {.name = base_format(f->cx, "%s (%s)", e->unit.name, e->node),
                                .def = e->def,
                                .task = e->task,
                                .target = f->from->target,
                                .default_trace = e->trace,
                                .weight = e->uses,
                                .tree = e->plain};

        if (!add_task(f, &spec))
            return false;
    }
    return k;
}

/* ---- of a file of definitions ---- */

/* The definition with the symbols that the given dimensions name replaced by their values. */
static te_def *specialise(finder *f, te_def *d)
{
    const ir_expr **symbol = base_array(f->cx, const ir_expr *, d->symbols.n),
                  **value = base_array(f->cx, const ir_expr *, d->symbols.n);
    int n = 0;

    for (int i = 0; i < d->symbols.n; i++)
        for (int k = 0; k < f->from->n_dims; k++)
            if (strcmp(((const ir_expr *)d->symbols.at[i])->var.name, f->from->dims[k].name) == 0) {
                symbol[n] = d->symbols.at[i];
                value[n++] = ir_int(f->cx, f->from->dims[k].value);
                f->used[k] = true;
            }
    return n ? te_specialise(f->cx, d, symbol, value, n) : d;
}

/* What `tec te` would use: the schedule in the file, or the start of the space. */
static const char *default_of(finder *f, const te_file *file, const te_def *d, const space *sp)
{
    const char *text = base_dict_get(&file->schedules, d->name);

    if (text || !sp)
        return text;
    const space_point start = space_start(sp);
    sched *s = space_apply(f->cx, sp, &start);
    if (sched_failed(s))
        return base_fail(f->cx, TEC_INTERNAL, d->loc, "the start of the space of '%s' was refused: %s",
                         d->name, sched_error(s));
    return sched_trace_text(f->cx, s);
}

static bool add_definition(finder *f, const te_file *file, te_def *d)
{
    const ir_program *tree = d && !has_symbols(f, d, d->name) ? te_tree(f->cx, d) : NULL;
    const space *sp = tree ? space_master(f->cx, tree, f->from->target) : NULL;
    const char *trace = sp ? default_of(f, file, d, sp) : NULL;

    return trace && add_task(f, &(tune_task){.name = d->name,
                                             .def = d,
                                             .target = f->from->target,
                                             .default_trace = trace,
                                             .tree = tree,
                                             .space = sp,
                                             .intrinsics = &file->intrinsics});
}

static bool all_dims_used(finder *f)
{
    for (int i = 0; i < f->from->n_dims; i++)
        if (!f->used[i])
            return base_fail(f->cx, TEC_INVALID, (base_loc){.file = f->from->path},
                             "--dim %s: no definition has a symbol of this name", f->from->dims[i].name);
    return true;
}

/* The definitions of the file, or the one that was named; each given dimension must be a symbol of one. */
static bool find_in_definitions(finder *f)
{
    size_t size;
    const char *text = base_read_file(f->cx, f->from->path, &size), *name = f->from->definition;
    te_file *file = text ? te_parse(f->cx, f->from->path, text) : NULL;
    int found = 0;

    f->out->at = file ? base_array(f->cx, const tune_task *, file->defs.n) : NULL;
    for (int i = 0; file && i < file->defs.n; i++) {
        te_def *d = file->defs.at[i];

        if (name && strcmp(d->name, name) != 0)
            continue;
        if (!add_definition(f, file, specialise(f, d)))
            return false;
        found++;
    }
    if (!file || !all_dims_used(f))
        return false;
    if (found == 0)
        base_fail(f->cx, TEC_INVALID, (base_loc){.file = f->from->path}, "there is no definition '%s'", name);
    return found;
}

/* ---- schedules of the user's own ---- */

/* A schedule that is refused is reported now, with its line, and not after an hour of tuning. */
static const char *read_schedule(finder *f, const tune_task *t, const char *path)
{
    size_t size;
    const char *text = base_read_file(f->cx, path, &size);
    sched *s = text ? tune_task_schedule(f->cx, t) : NULL;

    if (!s || sched_replay(s, path, text))
        return text;
    return base_fail(f->cx, TEC_INVALID, (base_loc){0}, "%s", sched_error(s));
}

/* Reads the files of schedules and gives them to the one task there is. */
static bool read_schedules(finder *f)
{
    enum { MOST = 100 };
    int n = f->from->n_schedules;
    const char **given = base_array(f->cx, const char *, n);

    if (n == 0)
        return true;
    if (f->out->n > 1)
        return base_fail(f->cx, TEC_INVALID, (base_loc){.file = f->from->path},
                         "--schedule is for one kernel, and there are %d: choose one with --name", f->out->n);
    if (n > MOST)
        return base_fail(f->cx, TEC_INVALID, (base_loc){.file = f->from->path},
                         "%d schedules were given with --schedule: at most %d can be tried first", n, MOST);
    for (int i = 0; i < n && f->out->n; i++)
        if (!(given[i] = read_schedule(f, f->out->at[0], f->from->schedules[i])))
            return false;
    for (int i = 0; i < f->out->n; i++) {
        tune_task *t = base_copy(f->cx, f->out->at[i], sizeof *t);

        t->given = given;
        t->n_given = n;
        f->out->at[i] = t;
    }
    return true;
}

/* Every hash that was asked for is that of a task. */
static bool all_hashes_found(const finder *f)
{
    char own[JOB_HASH_SIZE];

    for (int i = 0; i < f->from->n_hashes; i++) {
        bool found = false;

        for (int k = 0; k < f->out->n; k++)
            found |= strcmp(job_task_hash(f->out->at[k], own), f->from->hashes[i]) == 0;
        if (!found)
            return base_fail(f->cx, TEC_INVALID, (base_loc){.file = f->from->path},
                             "no kernel has the key '%s' (tec tune --kernels lists them)",
                             f->from->hashes[i]);
    }
    return true;
}

bool job_find_tasks(tec_context *cx, const job_source *from, job_tasks *out)
{
    finder f = {.cx = cx, .from = from, .out = out, .used = base_array(cx, bool, from->n_dims)};
    const char *dot = strrchr(from->path, '.');

    *out = (job_tasks){0};
    return (dot && strcmp(dot, ".te") == 0 ? find_in_definitions(&f) : find_in_model(&f)) &&
           all_hashes_found(&f) && read_schedules(&f);
}
