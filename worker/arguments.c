/* worker/arguments.c -- see arguments.h. */
#include "worker/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/shape.h"
#include "worker/tensors.h"

/* Of the largest pages in use, those of aarch64. */
enum { PAGE = 1 << 16 };

/* Memory between two pages that cannot be touched. */
typedef struct worker_region {
    char *base;  /* of the first page; NULL: none */
    size_t size; /* in all */
} region;

/* ---- memory ---- */

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* A page that cannot be touched stands on both sides: a kernel that writes outside of its argument is killed
 * at once, and the trial is an error rather than a wrong time. */
static void *new_region(worker_arguments *arguments, size_t bytes, tec_error *err)
{
    size_t inside = pages(bytes ? bytes : 1), all = inside + 2 * PAGE;
    char *base = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (base == MAP_FAILED || mprotect(base + PAGE, inside, PROT_READ | PROT_WRITE) != 0) {
        if (base != MAP_FAILED)
            munmap(base, all);
        return rt_fail_memory(err, bytes), NULL;
    }
    arguments->regions[arguments->n_regions++] = (region){base, all};
    return base + PAGE;
}

static bool make_read_only(const DLTensor *tensor)
{
    return mprotect(tensor->data, pages((size_t)tec_tensor_bytes(tensor)), PROT_READ) == 0;
}

static void clear(worker_arguments *arguments)
{
    for (int i = 0; i < arguments->n_regions; i++)
        munmap(arguments->regions[i].base, arguments->regions[i].size);
    rt_arena_free(&arguments->arena);
    *arguments = (worker_arguments){0};
}

/* ---- making ---- */

/* The sizes of a function's symbols from the job, by name; an error where one is missing. */
static bool read_symbols(const rt_function_desc *function, const worker_job *job, int64_t *symbols,
                         tec_error *err)
{
    for (int s = 0; s < function->n_symbols; s++) {
        int k = 0;

        while (k < job->n_dims && strcmp(job->dims[k].name, function->symbols[s]) != 0)
            k++;
        if (k == job->n_dims)
            return rt_fail(err, TEC_INVALID, "%s: no value was given for symbol '%s'", function->name,
                           function->symbols[s]);
        symbols[s] = job->dims[k].value;
    }
    return true;
}

static DLTensor *new_tensor(worker_arguments *arguments, DLDataType dtype, int rank, tec_error *err)
{
    DLTensor *t = rt_arena_alloc(&arguments->arena, 1, sizeof *t, err);
    int64_t *shape = rt_arena_alloc(&arguments->arena, rank, sizeof *shape, err);

    if (!t || !shape)
        return NULL;
    *t = (DLTensor){.device = {kDLCPU, 0}, .dtype = dtype, .ndim = rank, .shape = shape};
    return t;
}

/* A second place for the elements of a tensor, zeroed by the kernel of the operating system. */
static DLTensor *like(worker_arguments *arguments, const DLTensor *of, tec_error *err)
{
    DLTensor *t = new_tensor(arguments, of->dtype, of->ndim, err);

    if (!t)
        return NULL;
    memcpy(t->shape, of->shape, (size_t)of->ndim * sizeof *t->shape);
    t->data = new_region(arguments, (size_t)tec_tensor_bytes(t), err);
    return t->data ? t : NULL;
}

/* Compact, whatever the parameter asks for: of all candidates of a task the arguments are the same. */
static DLTensor *new_argument(worker_arguments *arguments, const rt_param_desc *param, const int64_t *symbols,
                              tec_error *err)
{
    DLTensor *t = new_tensor(arguments, param->dtype, param->rank, err);

    if (!t || !rt_shape_eval(param->shape, param->rank, symbols, t->shape, param->name, err))
        return NULL;
    if (tec_tensor_bytes(t) < 0)
        return rt_fail(err, TEC_INVALID, "there is not enough memory for parameter '%s'", param->name), NULL;
    t->data = new_region(arguments, (size_t)tec_tensor_bytes(t), err);
    return t->data ? t : NULL;
}

/* ---- cold inputs ---- */

/* Elements of one copy in the memory of all copies of a tensor. */
static int64_t step_of(const DLTensor *tensor)
{
    enum { LINE = 64 };

    return (tec_tensor_bytes(tensor) + LINE - 1) / LINE * LINE;
}

static bool is_cold(const worker_arguments *arguments, const worker_job *job, int i)
{
    return i < 64 && job->cold >> i & 1 && !arguments->is_output[i] && arguments->args[i]->ndim > 0;
}

/* How many copies of the cold inputs have the job's bytes together. An example: weights of 2 MiB and a bias
 * of 1 KiB, of a model with 40 MiB of weights: 20 copies of both. */
static int count_sets(const worker_arguments *arguments, const worker_job *job)
{
    enum { MOST = 1024 };
    int64_t bytes = 0;

    for (int i = 0; i < arguments->n; i++)
        bytes += is_cold(arguments, job, i) ? step_of(arguments->args[i]) : 0;
    int64_t sets = bytes > 0 ? job->cold_bytes / bytes + (job->cold_bytes % bytes > bytes / 2) : 1;
    return sets < 1 ? 1 : sets > MOST ? MOST : (int)sets;
}

/* Fills the places of one parameter in all sets but the first with copies. */
static bool copy_cold(worker_arguments *arguments, int i, tec_error *err)
{
    const DLTensor *of = arguments->args[i];
    int64_t step = step_of(of);
    size_t bytes = (size_t)step * (size_t)(arguments->n_sets - 1);
    char *at = new_region(arguments, bytes, err);

    for (int k = 1; at && k < arguments->n_sets; k++) {
        DLTensor *copy = rt_arena_alloc(&arguments->arena, 1, sizeof *copy, err);

        if (!copy)
            return false;
        *copy = *of;
        copy->data = memcpy(at + step * (k - 1), of->data, (size_t)tec_tensor_bytes(of));
        arguments->sets[k][i] = copy;
    }
    return at && mprotect(at, pages(bytes), PROT_READ) == 0;
}

/* The first set is the arguments themselves; the others share all but the cold inputs with it. */
static bool make_sets(worker_arguments *arguments, const worker_job *job, tec_error *err)
{
    arguments->n_sets = count_sets(arguments, job);
    arguments->sets = rt_arena_alloc(&arguments->arena, arguments->n_sets, sizeof(DLTensor **), err);
    if (!arguments->sets)
        return false;
    arguments->sets[0] = arguments->args;
    for (int k = 1; k < arguments->n_sets; k++) {
        arguments->sets[k] = rt_arena_alloc(&arguments->arena, arguments->n, sizeof(DLTensor *), err);
        if (!arguments->sets[k])
            return false;
        memcpy(arguments->sets[k], arguments->args, (size_t)arguments->n * sizeof(DLTensor *));
    }
    for (int i = 0; i < arguments->n && arguments->n_sets > 1; i++)
        if (is_cold(arguments, job, i) && !copy_cold(arguments, i, err))
            return false;
    return true;
}

/* Tensors for every parameter with the job's sizes. Inputs are random from the seed and then protected: a
 * kernel that writes to one ends the process, which is the candidate's failure. */
static bool make(worker_arguments *arguments, const rt_function_desc *function, const worker_job *job,
                 tec_error *err)
{
    int64_t symbols[RT_MAX_SYMBOLS];

    *arguments = (worker_arguments){.key = job->arguments, .seed = job->seed, .n = function->n_params};
    arguments->args = rt_arena_alloc(&arguments->arena, function->n_params, sizeof(DLTensor *), err);
    arguments->kept = rt_arena_alloc(&arguments->arena, function->n_params, sizeof(DLTensor *), err);
    arguments->is_output = rt_arena_alloc(&arguments->arena, function->n_params, sizeof(bool), err);
    arguments->regions = rt_arena_alloc(&arguments->arena, 3 * function->n_params, sizeof(region), err);
    if (!arguments->args || !arguments->kept || !arguments->is_output || !arguments->regions ||
        !read_symbols(function, job, symbols, err))
        return false;
    for (int i = 0; i < function->n_params; i++) {
        arguments->args[i] = new_argument(arguments, &function->params[i], symbols, err);
        arguments->is_output[i] = function->params[i].is_output;
        if (!arguments->args[i])
            return false;
        if (arguments->is_output[i])
            continue;
        worker_fill_random(arguments->args[i], job->seed + (uint64_t)i);
        if (!make_read_only(arguments->args[i]))
            return rt_fail_io(err, function->params[i].name, "make its memory read-only", errno);
    }
    return make_sets(arguments, job, err);
}

/* Arguments of recent jobs are kept on a shelf by their key; the one that was unused for longest gives way.
 */
worker_arguments *worker_arguments_for(worker_shelf *shelf, const rt_function_desc *function,
                                       const worker_job *job, tec_error *err)
{
    worker_arguments *oldest = &shelf->slot[0];

    for (int i = 0; i < WORKER_SHELF; i++) {
        worker_arguments *arguments = &shelf->slot[i];

        if (arguments->used && arguments->key == job->arguments && arguments->seed == job->seed &&
            arguments->n == function->n_params) {
            arguments->used = ++shelf->clock;
            return arguments;
        }
        if (arguments->used < oldest->used)
            oldest = arguments;
    }
    clear(oldest);
    if (make(oldest, function, job, err)) {
        oldest->used = ++shelf->clock;
        return oldest;
    }
    clear(oldest);
    return NULL;
}

void worker_shelf_clear(worker_shelf *shelf)
{
    for (int i = 0; i < WORKER_SHELF; i++)
        clear(&shelf->slot[i]);
}

/* ---- outputs ---- */

void worker_arguments_blank(worker_arguments *arguments, int byte)
{
    for (int i = 0; i < arguments->n; i++)
        if (arguments->is_output[i])
            memset(arguments->args[i]->data, byte, (size_t)tec_tensor_bytes(arguments->args[i]));
}

/* What the outputs hold now becomes the reference that later runs are compared with. */
bool worker_arguments_keep(worker_arguments *arguments, tec_error *err)
{
    for (int i = 0; i < arguments->n && !arguments->has_kept; i++)
        if (arguments->is_output[i] && !arguments->kept[i] &&
            !(arguments->kept[i] = like(arguments, arguments->args[i], err)))
            return false;
    for (int i = 0; i < arguments->n && !arguments->has_kept; i++) {
        if (!arguments->is_output[i])
            continue;
        memcpy(arguments->kept[i]->data, arguments->args[i]->data,
               (size_t)tec_tensor_bytes(arguments->args[i]));
        if (!make_read_only(arguments->kept[i]))
            return rt_fail_io(err, "the expected outputs", "make their memory read-only", errno);
    }
    arguments->has_kept = true;
    return true;
}

/* Outputs against those of the reference that were kept; the first that differs is reported by its name. */
bool worker_arguments_check(const worker_arguments *arguments, const rt_function_desc *function, char *text,
                            size_t size)
{
    char what[400];

    for (int i = 0; i < arguments->n; i++)
        if (arguments->is_output[i] &&
            !worker_compare(arguments->args[i], arguments->kept[i], what, sizeof what)) {
            snprintf(text, size, "output '%s' %s", function->params[i].name, what);
            return false;
        }
    return true;
}
